/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory_bound.c - kernels that memory bandwidth bounds, and the blocked scans.
 *
 *   t = kernels * fixed + passes * compulsory bytes / (share * bandwidth)
 *
 * `passes` is how often the real kernels move the compulsory bytes; `share` how much of the streaming bandwidth such a
 * kernel reaches (rows to reduce, gathers). With MAQ_OP_UNFUSED the operator is the chain of kernels that a framework
 * launches without a fused one. What fits the last-level cache moves faster (maq__memory_s). Arithmetic outside the
 * matrix units bounds a kernel only on devices with little of it.
 *
 * Scans (Mamba-2's SSD, gated delta rule) are a few kernels of small batched products: matrix work at a share of the
 * matrix rate, plus traffic.
 */
#include "cost/analytical/analytical.h"

struct kernel_shape {
    float kernels, passes;       /* fused */
    float share;                 /* of the streaming bandwidth */
    float un_kernels, un_passes; /* MAQ_OP_UNFUSED */
};

/* Unfused: bytes of the chain of kernels in the comment, as PyTorch runs it eagerly, over the compulsory ones. */
static const struct kernel_shape shapes[MAQ_OP_KIND_COUNT] = {
    [MAQ_OP_SOFTMAX] = {1, 1.0f, 0.80f, 4, 5.0f}, /* scale, mask, softmax in FP32 with conversions, dropout */
    [MAQ_OP_SOFTMAX_BWD] = {1, 1.0f, 0.80f, 3, 3.5f},
    [MAQ_OP_NORM] = {1, 1.0f, 0.85f, 6, 9.0f},       /* convert, square, mean, rsqrt, scale, convert, weight */
    [MAQ_OP_NORM_BWD] = {2, 1.1f, 0.80f, 10, 9.0f},  /* second kernel: reduction of the weight gradient over the rows */
    [MAQ_OP_ACTIVATION] = {1, 1.0f, 0.85f, 2, 1.7f}, /* function, product */
    [MAQ_OP_ACTIVATION_BWD] = {1, 1.0f, 0.85f, 4, 2.0f},
    [MAQ_OP_ELEMENTWISE] = {1, 1.0f, 1.0f, 3, 2.0f}, /* bias, dropout, addition */
    [MAQ_OP_ROPE] = {1, 1.0f, 0.65f, 4, 4.5f},       /* negate and join halves, two products, sum */
    [MAQ_OP_EMBEDDING] = {1, 1.0f, 0.95f, 1, 1.0f},
    [MAQ_OP_EMBEDDING_BWD] = {3, 1.0f, 0.60f, 3, 1.0f}, /* sort, clear, add */
    [MAQ_OP_CROSS_ENTROPY] =
        {2, 1.5f, 0.90f, 8,
         9.0f}, /* fused: maximum, then exponentials; unfused: FP32 copy, maximum, difference, exp, sum, divide */
    [MAQ_OP_CROSS_ENTROPY_BWD] = {1, 1.0f, 0.90f, 4, 4.0f},
    [MAQ_OP_ROUTER] = {2, 1.0f, 0.60f, 6, 3.0f},
    [MAQ_OP_PERMUTE] = {1, 1.0f, 0.80f, 2, 1.5f},
    [MAQ_OP_QUANTIZE] = {1, 1.0f, 0.85f, 3, 1.6f}, /* unfused: largest value first */
    [MAQ_OP_CONV1D] = {1, 1.0f, 0.75f, 1, 1.0f},
    [MAQ_OP_CONV1D_BWD] = {2, 1.0f, 0.60f, 2, 1.0f},
    [MAQ_OP_SELECTIVE_SCAN] = {1, 1.0f, 0.75f, 1, 1.0f},     /* as a convolution: not measured */
    [MAQ_OP_SELECTIVE_SCAN_BWD] = {2, 1.0f, 0.60f, 2, 1.0f}, /* the same */
    [MAQ_OP_OPTIMIZER] = {1, 1.0f, 0.90f, 12, 3.0f},         /* unfused: one kernel per step of Adam */
};

double maq__pointwise_s(const struct maq_op *op, const struct maq_device *device)
{
    const struct maq_kernel_traits *traits = maq__kernel_traits(device);
    const struct kernel_shape *shape = &shapes[op->kind];
    struct maq_work work = maq_op_work(op);
    bool unfused = (op->flags & MAQ_OP_UNFUSED) != 0;
    double kernels = (double)(unfused ? shape->un_kernels : shape->kernels);
    double passes = (double)(unfused ? shape->un_passes : shape->passes);

    if (!(work.bytes > 0.0))
        return 0.0;
    double t_mem = passes * maq__memory_s(device, work.bytes, traits->mem_share * (double)shape->share);
    double vector = maq__vector_rate(device), t_math = vector > 0.0 ? work.vector_flop / (0.5 * vector) : 0.0;
    return kernels * traits->kernel_s + maq__max(t_mem, t_math);
}

/* Small products of a scan reach this share of the matrix rate. */
#define SCAN_MATRIX_SHARE 0.17
#define SCAN_MEMORY_SHARE 0.55
#define SCAN_KERNELS 5.0

double maq__scan_s(const struct maq_op *op, const struct maq_device *device)
{
    const struct maq_kernel_traits *traits = maq__kernel_traits(device);
    struct maq_work work = maq_op_work(op);
    bool backward = op->kind == MAQ_OP_SSM_SCAN_BWD || op->kind == MAQ_OP_DELTA_RULE_BWD;

    if (!(work.matrix_flop > 0.0))
        return 0.0;
    double t_math =
        maq__over(work.matrix_flop, SCAN_MATRIX_SHARE * maq__matrix_rate(device, (enum maq_dtype)op->dtype));
    double t_mem = maq__memory_s(device, work.bytes, traits->mem_share * SCAN_MEMORY_SHARE);
    return SCAN_KERNELS * (backward ? 2.0 : 1.0) * traits->kernel_s + t_math + t_mem;
}
