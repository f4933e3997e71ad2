/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_exchange.c - the exchanges under MPI's collectives and communicators: everybody's bytes come to everybody.
 *
 * In a host program: the bytes that MPI moves for a collective.
 */
#include <stdlib.h>

#include "shim/boot/mpi.h"

static uint64_t channel_of(const struct vg_mpi_comm *comm)
{
    return vg_channel(comm->lineage, VG_CHANNEL_MPI);
}

static struct vg_exchange exchange_on(const struct vg_mpi_comm *comm, const void *mine, uint64_t bytes, uint32_t root)
{
    return (struct vg_exchange){.channel = channel_of(comm),
                                .n = comm->n,
                                .me = comm->me,
                                .members = comm->members,
                                .mine = mine,
                                .bytes = bytes,
                                .root = root};
}

int vg_mpi_exchange(const struct vg_mpi_comm *comm, const void *mine, uint64_t bytes, void *all)
{
    struct vg_exchange x = exchange_on(comm, mine, bytes, MAQ_REC_NONE);
    return vg_exchange_put(&x) && vg_exchange_get(&x, all) ? VG_MPI_SUCCESS : VG_MPI_ERR_OTHER;
}

int vg_mpi_colors(const struct vg_mpi_comm *comm, const uint32_t mine[2], uint32_t (*all)[2])
{
    struct vg_exchange x = exchange_on(comm, mine, sizeof *all, MAQ_REC_NONE);
    x.colors = true;
    return vg_exchange_put(&x) && vg_exchange_get(&x, all) ? VG_MPI_SUCCESS : VG_MPI_ERR_OTHER;
}

int vg_mpi_from_root(const struct vg_mpi_comm *comm, void *data, uint64_t bytes, uint32_t root)
{
    struct vg_exchange x = exchange_on(comm, comm->me == root ? data : NULL, bytes, root);
    return vg_exchange_put(&x) && vg_exchange_get(&x, data) ? VG_MPI_SUCCESS : VG_MPI_ERR_OTHER;
}

int vg_mpi_gather_at(const struct vg_mpi_comm *c, const void *own, uint64_t bytes, void *out, bool wanted)
{
    struct vg_exchange x = exchange_on(c, own, bytes, MAQ_REC_NONE);
    if (!vg_exchange_put(&x))
        return VG_MPI_ERR_OTHER;
    if (!wanted && !x.slot)
        return VG_MPI_SUCCESS;
    void *all = wanted ? out : malloc(c->n * bytes);
    int error = !all ? VG_MPI_ERR_NO_MEM : vg_exchange_get(&x, all) ? VG_MPI_SUCCESS : VG_MPI_ERR_OTHER;
    if (!wanted)
        free(all);
    return error;
}
