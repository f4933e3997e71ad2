/* SPDX-License-Identifier: Apache-2.0 */
/*
 * communication.h - rows of the kernel tables about communication: NCCL, all-reduce kernels of serving engines, and the
 * exchanges of expert parallelism.
 */
#ifndef MAQ_VALIDATE_KERNELS_COMMUNICATION_H
#define MAQ_VALIDATE_KERNELS_COMMUNICATION_H

#include "validate/collectives/point.h"

/* Text of a column of the row at hand; empty when the table has no such column. */
struct maq_kernel_cells {
    struct maq_str (*get)(void *user, const char *column);
    void *user;
};

#define MAQ_KERNEL_COMM_POINTS 2 /* dispatch and combine of one row */

struct maq_kernel_comm {
    uint32_t n;
    struct maq_coll_point points[MAQ_KERNEL_COMM_POINTS];
    const char *why; /* there is no point; static text, NULL when there is one */
};

/*
 * table: "nccl", "custom_allreduce", "wideep_deepep_ll", "wideep_deepep_normal" or "trtllm_alltoall"; system: the
 * folder, "h100_sxm"; framework: "trtllm", "vllm", "sglang", "nccl". False when the table is none of these.
 */
bool maq__kernel_comm_row(struct maq_kernel_comm *out, struct maq_str table, struct maq_str system,
                          struct maq_str framework, const struct maq_kernel_cells *cells,
                          struct maq_coll_clusters *clusters, struct maq_diag *diag);

#endif
