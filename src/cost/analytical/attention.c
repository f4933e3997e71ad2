/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - fused (flash) attention, forward and backward.
 *
 * A unit of work is a block of `rows` queries of one head that walks over its keys. With U units on P SMs, head size d
 * and K mean keys:
 *
 *   r       = min(peak * share(generation, d), sustained matrix rate) / P        FLOP/s of one SM
 *   unit    = rows * (FLOP per query and key) * (K + rows / 2 if causal + fill) / r
 *             Blocks on the diagonal are computed whole; `fill` is what starting and finishing a block costs, in keys.
 *   longest = a unit that sees all keys of its sequence: twice the mean under a causal mask
 *   t_math  = max(longest, (U / P + 1/2) unit)          1/2: the tail
 *   t_mem   = compulsory bytes / memory bandwidth: what bounds decoding, where queries are few
 *   t       = fixed + max(t_math, t_mem)
 *
 * Queries of the heads that share keys (GQA) are packed into one block when a sequence has fewer of them than rows;
 * such a unit may be cut along its keys to occupy all SMs (flash-decoding). Units of the backward pass are blocks of
 * keys that walk over their queries: the same count.
 *
 * Under a window a block of queries sees the keys of all of them, K + rows. Backward kernels in 8 bits compute what a mask hides,
 * wholly or in part (unmasked_keys). A share e of the time is exponentials: with x of an SM each clock instead of 16,
 *   t_math (1 - e (1 - 16 / x))
 *
 * This is what a short loop takes; what the power limit adds in a step of training is at the head of cost/fitted/fitted.c.
 */
#include <math.h>

#include "cost/analytical/analytical.h"

#define SPLIT_KEYS 256.0        /* a range of keys is not cut into pieces shorter than this */
#define TAIL_UNITS 0.5          /* mean idle time of an SM at the end, in units */
#define USUAL_EXPONENTIALS 16.0 /* of an SM, each clock */

/* Share of the matrix peak at head size d: linear between 64, 128, 256; below, products are too thin for the pipe. */
static double share_at(const double share[3], double d)
{
    if (d <= 64.0)
        return share[0] * maq__max(d, 16.0) / 64.0;
    if (d <= 128.0)
        return share[0] + (share[1] - share[0]) * (d - 64.0) / 64.0;
    if (d <= 256.0)
        return share[1] + (share[2] - share[1]) * (d - 128.0) / 128.0;
    return share[2];
}

/* Whether a kernel in 8 bits runs: where there is none, one in 16 does. */
static bool in_8_bits(const struct maq_op *op, const struct maq_device *device)
{
    const struct maq_kernel_traits *traits = maq__kernel_traits(device);
    bool backward = op->kind == MAQ_OP_ATTENTION_BWD;
    return op->dtype == MAQ_FP8 && device->peak_flops[MAQ_FP8] > 0.0 &&
           (backward ? traits->attention_bwd_fp8 : traits->attention_fp8)[0] > 0.0;
}

double maq__exponentials_share(const struct maq_op *op, const struct maq_device *device)
{
    const struct maq_kernel_traits *traits = maq__kernel_traits(device);
    const double *share = in_8_bits(op, device) ? traits->attention_fp8_exp : traits->attention_exp;
    double units = device->exponentials > 0 ? (double)device->exponentials : USUAL_EXPONENTIALS;
    return 1.0 - share[op->kind == MAQ_OP_ATTENTION_BWD] * (1.0 - USUAL_EXPONENTIALS / units);
}

/* Of its products. */
static enum maq_dtype product_type(const struct maq_op *op, const struct maq_device *device)
{
    bool own = in_8_bits(op, device) || op->dtype == MAQ_FP32 || op->dtype == MAQ_TF32 || op->dtype == MAQ_FP16;
    return own ? (enum maq_dtype)op->dtype : MAQ_BF16;
}

double maq__attention_rate(const struct maq_op *op, const struct maq_device *device)
{
    bool backward = op->kind == MAQ_OP_ATTENTION_BWD;
    const struct maq_kernel_traits *traits = maq__kernel_traits(device);
    double width = 0.5 * (maq__count(op, 4) + maq__count(op, 5));
    const double *share = backward ? traits->attention_bwd : traits->attention_fwd;

    if ((op->flags & MAQ_OP_FLASH2) && traits->flash2_fwd[0] > 0)
        share = backward ? traits->flash2_bwd : traits->flash2_fwd;
    if (in_8_bits(op, device))
        share = backward ? traits->attention_bwd_fp8 : traits->attention_fp8;
    return maq__matrix_peak(device, product_type(op, device)) * maq__share_of_part(device, share_at(share, width));
}

/* The same, and no more than what the power limit leaves products. */
static double loop_rate(const struct maq_op *op, const struct maq_device *device)
{
    return maq__min(maq__attention_rate(op, device), maq__matrix_rate(device, product_type(op, device)));
}

/*
 * Backward kernels in 8 bits know no windows: what a window hides is computed as well; on Hopper so is a part of what the causal
 * mask hides (a causal kernel takes 0.52 of the time of one without a mask at 2,048 tokens and 0.91 at 32,768).
 */
static double unmasked_keys(const struct maq_op *op, const struct maq_kernel_traits *traits, double keys,
                            double queries)
{
    bool window = (op->flags & MAQ_OP_WINDOW) != 0, causal = window || (op->flags & MAQ_OP_CAUSAL);
    double all = window ? maq__max(keys, 0.5 * (queries + 1.0)) : keys;
    return causal ? all + traits->attention_bwd_fp8_masked * maq__max(0.0, maq__min(all, queries - all)) : all;
}

static double math_s(const struct maq_op *op, const struct maq_device *device, double flop, bool backward)
{
    const struct maq_kernel_traits *traits = maq__kernel_traits(device);
    double tokens = maq__count(op, 0), keys = maq__count(op, 1), heads = maq__count(op, 2),
           kv_heads = maq__max(1.0, maq__count(op, 3));
    double rows = (double)traits->attention_rows, sms = device->sms > 0 ? (double)device->sms : 1.0;
    bool causal = (op->flags & MAQ_OP_CAUSAL) != 0, fp8_bwd = backward && in_8_bits(op, device);

    /* queries per sequence: given, or as many as the mean keys imply, but a block at least: short documents are
     * packed, and a window is shorter than its sequence */
    double queries = op->queries > 0 ? (double)op->queries : maq__max(rows, causal ? 2.0 * keys - 1.0 : keys);
    queries = maq__min(queries, tokens);
    double share_keys = maq__max(1.0, heads / kv_heads);
    double packed = queries < rows ? maq__max(1.0, maq__min(share_keys, floor(rows / queries))) : 1.0;
    double blocks = ceil(queries * packed / rows), units = blocks * (tokens / queries) * (heads / packed);
    double fill = fp8_bwd ? traits->attention_fill_bwd_fp8 : traits->attention_fill;
    double seen = fp8_bwd ? unmasked_keys(op, traits, keys, queries) : keys; /* whose scores are computed */
    double diagonal = causal ? 0.5 * maq__min(rows, queries) : !backward && op->flags & MAQ_OP_WINDOW ? rows : 0.0;
    double walked = seen + diagonal + fill;
    double longest = causal ? maq__min(2.0 * seen, seen + 0.5 * queries) + fill : walked;

    if (blocks <= 1.0) { /* may be cut along the keys */
        double pieces = maq__max(1.0, maq__min(floor(keys / SPLIT_KEYS), ceil(sms / units)));
        units *= pieces;
        walked = (seen + diagonal) / pieces + fill;
        longest = walked;
    }
    double per_key = rows * flop / (tokens * keys * heads); /* of one unit */
    double rate = loop_rate(op, device) / sms;
    double time_keys = maq__max(longest, (units / sms + TAIL_UNITS) * walked);
    return maq__over(per_key * time_keys, rate);
}

/*
 * FlashAttention-2 is 1.7 to 3.0 times as fast as the first FlashAttention and 1.3 to 2.5 times as fast as the one written in
 * Triton ("FlashAttention-2", arXiv 2307.08691, section 4.1, A100, forward and backward): the geometric means of the ranges.
 */
#define FLASH1_SLOWDOWN 2.26
#define TRITON_SLOWDOWN 1.8

/* Time of attention in 8 bits with a scale for every 32 numbers over that with one scale for a tensor: medians of cuDNN 9.22 on
 * GB200 (generation_traits.c). */
#define MX_FORWARD 1.07
#define MX_BACKWARD 1.2

double maq__attention_s(const struct maq_op *op, const struct maq_device *device)
{
    const struct maq_kernel_traits *traits = maq__kernel_traits(device);
    bool backward = op->kind == MAQ_OP_ATTENTION_BWD;
    struct maq_work work = maq_op_work(op);

    if (!(work.matrix_flop > 0.0))
        return 0.0;
    double t_math = math_s(op, device, work.matrix_flop, backward);
    if (op->flags & MAQ_OP_FLASH1)
        t_math *= FLASH1_SLOWDOWN;
    else if (op->flags & MAQ_OP_TRITON)
        t_math *= TRITON_SLOWDOWN;
    double t_mem = maq__memory_s(device, work.bytes, traits->mem_share);
    if ((op->flags & MAQ_OP_MX) && in_8_bits(op, device))
        t_math *= backward ? MX_BACKWARD : MX_FORWARD;
    t_math *= maq__exponentials_share(op, device);
    return traits->attention_s * (backward ? 2.0 : 1.0) + maq__max(t_math, t_mem);
}
