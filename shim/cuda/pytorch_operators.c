/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pytorch_operators.c - kernels of PyTorch that say how many numbers they go over: element-wise ones, concatenations, running sums, softmaxes, random
 * numbers, and reductions (sums, means, norms, the largest), which read each of their inputs once and write next to nothing.
 */
#include "shim/cuda/arithmetic/kernel_kinds.h"
#include "shim/cuda/operator_rules.h"

#include <string.h>

/* Kernels of which is known where they write: those that draw numbers read none, the others about as much as they write. */
static bool extent_moves(uint64_t *read, uint64_t *written, const struct vg_launch *l)
{
    struct vg_output place;
    if (!vg_output_extent(&place, l) && !vg_cumulative_sum_writes(&place, l))
        return false;
    *written = place.bytes;
    *read = strstr(l->kernel->name, "distribution_elementwise") != NULL ? 0 : place.bytes;
    return true;
}

void vg_pytorch_apply(struct maq_rec_op *op, const struct vg_launch *l)
{
    uint64_t read, written;
    if (op->kind != MAQ_REC_KERNEL || !l->kernel->code.found || l->args == NULL ||
        !(vg_reduction_moves(&read, &written, l) || vg_elementwise_moves(&read, &written, l) ||
          vg_concatenation_moves(&read, &written, l) || extent_moves(&read, &written, l)))
        return;
    op->kind = MAQ_REC_WORK;
    op->d[1] = (int64_t)read;
    op->d[2] = (int64_t)written;
}
