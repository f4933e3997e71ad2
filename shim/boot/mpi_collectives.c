/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi_collectives.c - MPI's collectives, all of them exchanges: everybody's bytes come to everybody, and each makes its own
 * result, in the order of ranks.
 *
 * In a host program: MPI_Allreduce() and its like, with which it sets itself up.
 *
 * A reduction goes through in pieces, so that a rank of 8,192 does not hold everybody's whole buffer. An all-to-all of
 * so many that even one piece does not fit gives back what one sends.
 */
#include <stdlib.h>
#include <string.h>

#include "shim/boot/mpi.h"

#define MOST (UINT64_C(64) << 20) /* of everybody's bytes at one time */

/* Bytes of `count` elements of a type. */
static int sized(uint64_t *out, int count, const void *type)
{
    struct vg_mpi_type t;
    if (count < 0)
        return VG_MPI_ERR_COUNT;
    if (!vg_mpi_type_of(&t, type))
        return VG_MPI_ERR_TYPE;
    *out = t.bytes * (uint64_t)count;
    return VG_MPI_SUCCESS;
}

static int rooted(const struct vg_mpi_comm *c, int root)
{
    if (!c)
        return VG_MPI_ERR_COMM;
    return root >= 0 && (uint32_t)root < c->n ? VG_MPI_SUCCESS : VG_MPI_ERR_ROOT;
}

MPI_API(int, MPI_Barrier, void *comm);
int MPI_Barrier(void *comm)
{
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    unsigned char *all = c ? malloc(c->n) : NULL;
    int error = !c ? VG_MPI_ERR_COMM : !all ? VG_MPI_ERR_NO_MEM : vg_mpi_exchange(c, "", 1, all);
    free(all);
    return vg_mpi_error("MPI_Barrier", error);
}

MPI_API(int, MPI_Bcast, void *data, int count, void *type, int root, void *comm);
int MPI_Bcast(void *data, int count, void *type, int root, void *comm)
{
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    uint64_t bytes = 0;
    int error = rooted(c, root);
    if (error == VG_MPI_SUCCESS)
        error = sized(&bytes, count, type);
    if (error == VG_MPI_SUCCESS && bytes)
        error = vg_mpi_from_root(c, data, bytes, (uint32_t)root);
    return vg_mpi_error("MPI_Bcast", error);
}

/* --- gathers ---------------------------------------------------------------------------------------------------------- */

/* Blocks of `bytes` from everybody, one behind the other; own: NULL where it is already in its place. */
static int gather(const struct vg_mpi_comm *c, const void *own, uint64_t bytes, void *all)
{
    const void *mine = own ? own : (char *)all + c->me * bytes;
    return bytes ? vg_mpi_exchange(c, mine, bytes, all) : VG_MPI_SUCCESS;
}

MPI_API(int, MPI_Allgather, const void *in, int n_in, void *in_type, void *out, int n_out, void *out_type, void *comm);
int MPI_Allgather(const void *in, int n_in, void *in_type, void *out, int n_out, void *out_type, void *comm)
{
    (void)n_in;
    (void)in_type;
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    uint64_t bytes = 0;
    int error = c ? sized(&bytes, n_out, out_type) : VG_MPI_ERR_COMM;
    if (error == VG_MPI_SUCCESS)
        error = gather(c, in == VG_MPI_IN_PLACE ? NULL : in, bytes, out);
    return vg_mpi_error("MPI_Allgather", error);
}

MPI_API(int, MPI_Gather, const void *in, int n_in, void *in_type, void *out, int n_out, void *out_type, int root,
        void *comm);
int MPI_Gather(const void *in, int n_in, void *in_type, void *out, int n_out, void *out_type, int root, void *comm)
{
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    int error = rooted(c, root);
    uint64_t bytes = 0;
    bool at_root = error == VG_MPI_SUCCESS && c->me == (uint32_t)root;
    if (error == VG_MPI_SUCCESS)
        error = at_root ? sized(&bytes, n_out, out_type) : sized(&bytes, n_in, in_type);
    const void *own = in == VG_MPI_IN_PLACE && at_root ? (char *)out + c->me * bytes : in;
    if (error == VG_MPI_SUCCESS && bytes)
        error = vg_mpi_gather_at(c, own, bytes, out, at_root);
    return vg_mpi_error("MPI_Gather", error);
}

/* Blocks of different lengths: the longest decides what is exchanged. */
MPI_API(int, MPI_Allgatherv, const void *in, int n_in, void *in_type, void *out, const int *counts, const int *at,
        void *type, void *comm);
int MPI_Allgatherv(const void *in, int n_in, void *in_type, void *out, const int *counts, const int *at, void *type,
                   void *comm)
{
    (void)n_in;
    (void)in_type;
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    struct vg_mpi_type t;
    if (!c || !counts || !at || !vg_mpi_type_of(&t, type))
        return vg_mpi_error("MPI_Allgatherv", c ? VG_MPI_ERR_TYPE : VG_MPI_ERR_COMM);
    uint64_t longest = 0;
    for (uint32_t i = 0; i < c->n; i++)
        longest = (uint64_t)counts[i] * t.bytes > longest ? (uint64_t)counts[i] * t.bytes : longest;
    char *all = malloc((c->n + 1) * longest + 1), *mine = all ? all + c->n * longest : NULL;
    const char *own = in == VG_MPI_IN_PLACE ? (char *)out + (uint64_t)at[c->me] * t.bytes : in;
    int error = all ? VG_MPI_SUCCESS : VG_MPI_ERR_NO_MEM;
    if (all) {
        memset(mine, 0, longest);
        memcpy(mine, own, (uint64_t)counts[c->me] * t.bytes);
        error = longest ? vg_mpi_exchange(c, mine, longest, all) : VG_MPI_SUCCESS;
    }
    for (uint32_t i = 0; error == VG_MPI_SUCCESS && i < c->n; i++)
        memcpy((char *)out + (uint64_t)at[i] * t.bytes, all + i * longest, (uint64_t)counts[i] * t.bytes);
    free(all);
    return vg_mpi_error("MPI_Allgatherv", error);
}

MPI_API(int, MPI_Scatter, const void *in, int n_in, void *in_type, void *out, int n_out, void *out_type, int root,
        void *comm);
int MPI_Scatter(const void *in, int n_in, void *in_type, void *out, int n_out, void *out_type, int root, void *comm)
{
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    int error = rooted(c, root);
    uint64_t bytes = 0;
    bool at_root = error == VG_MPI_SUCCESS && c->me == (uint32_t)root;
    if (error == VG_MPI_SUCCESS)
        error = at_root ? sized(&bytes, n_in, in_type) : sized(&bytes, n_out, out_type);
    char *all = error == VG_MPI_SUCCESS ? calloc(c->n, bytes ? bytes : 1) : NULL;
    if (error == VG_MPI_SUCCESS && !all)
        error = VG_MPI_ERR_NO_MEM;
    if (all && at_root)
        memcpy(all, in, c->n * bytes);
    if (all && !at_root)
        memcpy(all + c->me * bytes, out, bytes); /* what stays where nobody recorded it */
    if (all && bytes)
        error = vg_mpi_from_root(c, all, c->n * bytes, (uint32_t)root);
    if (error == VG_MPI_SUCCESS && out != VG_MPI_IN_PLACE)
        memcpy(out, all + c->me * bytes, bytes);
    free(all);
    return vg_mpi_error("MPI_Scatter", error);
}

MPI_API(int, MPI_Alltoall, const void *in, int n_in, void *in_type, void *out, int n_out, void *out_type, void *comm);
int MPI_Alltoall(const void *in, int n_in, void *in_type, void *out, int n_out, void *out_type, void *comm)
{
    (void)n_in;
    (void)in_type;
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    uint64_t bytes = 0;
    int error = c ? sized(&bytes, n_out, out_type) : VG_MPI_ERR_COMM;
    if (error != VG_MPI_SUCCESS || !bytes)
        return vg_mpi_error("MPI_Alltoall", error);
    const void *own = in == VG_MPI_IN_PLACE ? out : in;
    uint64_t row = c->n * bytes;
    if (row > MOST / c->n) {
        memmove(out, own, row);
        return VG_MPI_SUCCESS;
    }
    char *all = malloc(c->n * row);
    error = all ? vg_mpi_exchange(c, own, row, all) : VG_MPI_ERR_NO_MEM;
    for (uint32_t i = 0; error == VG_MPI_SUCCESS && i < c->n; i++)
        memcpy((char *)out + i * bytes, all + i * row + c->me * bytes, bytes);
    free(all);
    return vg_mpi_error("MPI_Alltoall", error);
}

/* --- reductions ------------------------------------------------------------------------------------------------------- */

/* `count` elements, at most a piece. */
static int reduce_piece(const struct vg_mpi_comm *c, const char *in, char *out, uint64_t count, struct vg_mpi_type type,
                        const void *op)
{
    uint64_t bytes = count * type.bytes;
    char *all = malloc((c->n + 1) * bytes), *mine = all ? all + c->n * bytes : NULL;
    if (!all)
        return VG_MPI_ERR_NO_MEM;
    memcpy(mine, in, bytes);
    int error = vg_mpi_exchange(c, mine, bytes, all);
    for (uint32_t i = 1; error == VG_MPI_SUCCESS && i < c->n; i++)
        if (!vg_mpi_reduce(all, all + i * bytes, count, type, op))
            error = VG_MPI_ERR_OP;
    if (error == VG_MPI_SUCCESS && out)
        memcpy(out, all, bytes);
    free(all);
    return error;
}

/* out: NULL where nobody wants it. */
static int reduce(const struct vg_mpi_comm *c, const void *in, void *out, int count, void *type, const void *op)
{
    struct vg_mpi_type t;
    if (count < 0 || !vg_mpi_type_of(&t, type) || !t.bytes)
        return count < 0 ? VG_MPI_ERR_COUNT : VG_MPI_ERR_TYPE;
    if (!in)
        return count ? VG_MPI_ERR_BUFFER : VG_MPI_SUCCESS;
    uint64_t most = MOST / c->n / t.bytes ? MOST / c->n / t.bytes : 1, n = (uint64_t)count;
    int error = VG_MPI_SUCCESS;
    for (uint64_t at = 0; at < n && error == VG_MPI_SUCCESS; at += most)
        error = reduce_piece(c, (const char *)in + at * t.bytes, out ? (char *)out + at * t.bytes : NULL,
                             n - at < most ? n - at : most, t, op);
    return error;
}

MPI_API(int, MPI_Allreduce, const void *in, void *out, int count, void *type, void *op, void *comm);
int MPI_Allreduce(const void *in, void *out, int count, void *type, void *op, void *comm)
{
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    int error = c ? reduce(c, in == VG_MPI_IN_PLACE ? out : in, out, count, type, op) : VG_MPI_ERR_COMM;
    return vg_mpi_error("MPI_Allreduce", error);
}

MPI_API(int, MPI_Reduce, const void *in, void *out, int count, void *type, void *op, int root, void *comm);
int MPI_Reduce(const void *in, void *out, int count, void *type, void *op, int root, void *comm)
{
    const struct vg_mpi_comm *c = vg_mpi_comm_of(comm);
    int error = rooted(c, root);
    bool at_root = error == VG_MPI_SUCCESS && c->me == (uint32_t)root;
    if (error == VG_MPI_SUCCESS)
        error = reduce(c, in == VG_MPI_IN_PLACE ? out : in, at_root ? out : NULL, count, type, op);
    return vg_mpi_error("MPI_Reduce", error);
}
