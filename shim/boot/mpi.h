/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mpi.h - what the files of shim/boot share that answer as libmpi.so.40.
 */
#ifndef MAQ_SHIM_BOOT_MPI_H
#define MAQ_SHIM_BOOT_MPI_H

#include "shim/abi/mpi.h"
#include "shim/nccl/nccl.h"

/* MPI_x and PMPI_x. */
#define MPI_API(type, name, ...)                                                                                       \
    VG_EXPORT type name(__VA_ARGS__);                                                                                  \
    VG_EXPORT type P##name(__VA_ARGS__) __attribute__((alias(#name)))

/* Handles of programs. */
struct vg_mpi_object; /* opaque: what is in an exported object does not matter */

struct vg_mpi_comm {
    uint32_t alive;
    uint32_t n, me;
    uint64_t lineage;
    uint32_t *members; /* [n] global ranks */
    uint32_t splits;
};
#define VG_MPI_ALIVE 0x6d706963u

/* The communicator of a handle; NULL: none. */
struct vg_mpi_comm *vg_mpi_comm_of(const void *handle);

struct vg_mpi_type {
    uint64_t bytes;
    enum vg_mpi_number number;
};
/* The type of a handle; false: none. */
bool vg_mpi_type_of(struct vg_mpi_type *out, const void *handle);

/* acc = acc op x over `count` elements. false: not such an operation on such a type. */
bool vg_mpi_reduce(void *acc, const void *x, uint64_t count, struct vg_mpi_type type, const void *op);

/* An exchange on a communicator; all: [n * bytes]. */
int vg_mpi_exchange(const struct vg_mpi_comm *comm, const void *mine, uint64_t bytes, void *all);
/* The same of colors and keys. */
int vg_mpi_colors(const struct vg_mpi_comm *comm, const uint32_t mine[2], uint32_t (*all)[2]);

/* The same, of which only those that want it need know what the others gave; out: [n * bytes]. */
int vg_mpi_gather_at(const struct vg_mpi_comm *comm, const void *own, uint64_t bytes, void *out, bool wanted);
/* The root's bytes come to everybody. */
int vg_mpi_from_root(const struct vg_mpi_comm *comm, void *data, uint64_t bytes, uint32_t root);

/* Ends the program as MPI's default error handler does, where the program has not asked for errors back. */
int vg_mpi_error(const char *call, int error);

#endif
