/* SPDX-License-Identifier: Apache-2.0 */
/* grid.h - how many blocks of how many threads NCCL's kernel would hold. */
#ifndef MAQ_SHIM_GPU_GRID_H
#define MAQ_SHIM_GPU_GRID_H

#include "shim/nccl/nccl.h"

struct vg_grid {
    unsigned blocks, threads;
};

/* Of the kernel that carries out these parts of a group, all on one communicator. */
struct vg_grid vg_grid_of(const struct vg_comm *comm, const struct vg_meeting *parts, uint32_t n);

#endif
