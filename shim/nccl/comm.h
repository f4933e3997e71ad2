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
    struct vg_comm **out;                  /* splits: where the handle goes */
    int (*begin)(struct vg_comm_job *job); /* an enum vg_nccl_result, like all of these */
    int (*end)(struct vg_comm_job *job);
    struct vg_exchange x;
    uint32_t word[2]; /* what this member puts in */
    uint32_t *guess;  /* members, if nobody says otherwise */
};

/* Now, or at the end of the open group. */
int vg_group_job(const struct vg_comm_job *job);

void vg_comm_drop(struct vg_comm *comm); /* one that was never given out */
uint32_t *vg_comm_everybody(uint32_t n); /* 0, 1, ... n - 1; the caller's */

#endif
