/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pytorch_operators.c - kernels of PyTorch that say how many numbers they go over: element-wise ones, and reductions (sums, means, norms, the
 * largest), which read each of their inputs once and write next to nothing.
 */
#include "shim/cuda/arithmetic/kernel_kinds.h"
#include "shim/cuda/operator_rules.h"

void vg_pytorch_apply(struct maq_rec_op *op, const struct vg_launch *l)
{
    uint64_t read, written;
    if (op->kind != MAQ_REC_KERNEL || !l->kernel->code.found || l->args == NULL ||
        !(vg_reduction_moves(&read, &written, l) || vg_elementwise_moves(&read, &written, l)))
        return;
    op->kind = MAQ_REC_WORK;
    op->d[1] = (int64_t)read;
    op->d[2] = (int64_t)written;
}
