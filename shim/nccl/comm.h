/* SPDX-License-Identifier: Apache-2.0 */
/*
 * comm.h - jobs that make communicators, for comm.c, split.c and group.c.
 *
 * Initialisation and splits inside a group wait for its end. Several handles of one process may take part in the same
 * exchange (one process that drives eight devices): all of them put in what they have before any waits for the others.
 */
#ifndef MAQ_SHIM_COMM_H
#define MAQ_SHIM_COMM_H

#include "shim/nccl/nccl.h"

struct vg_comm_job {
    struct vg_comm *comm;
    struct vg_comm **out;                  /* where the handle goes */
    int (*begin)(struct vg_comm_job *job); /* an enum vg_nccl_result, like all of these */
    int (*end)(struct vg_comm_job *job);
    void (*drop)(struct vg_comm_job *job); /* it came to nothing; NULL: nothing to undo */
    bool ended;
    struct vg_exchange x;
    uint32_t word[2]; /* what this member puts in */
};

/* Now, or at the end of the open group. */
int vg_group_job(const struct vg_comm_job *job);

#endif
