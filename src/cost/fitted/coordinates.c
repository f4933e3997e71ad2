/* SPDX-License-Identifier: Apache-2.0 */
/*
 * coordinates.c - an operator in the coordinates of fitted tables, and the physical time that a table corrects.
 *
 *   t_math  exact FLOP / datasheet peak of the arithmetic's type
 *   t_mem   compulsory bytes: up to half of the last-level cache at its bandwidth, the rest at that of memory; tables
 *           are taken in loops, so that a small kernel finds its operands in the cache
 *   base    = launch + (t_math^4 + t_mem^4)^(1/4)
 *   floor   = max(t_math, bytes / bandwidth of the cache)
 *
 * Axes are the sizes that the surface depends on; sizes that only enter FLOP and bytes are none. A kernel that works on
 * heads of sequences sees one number, their product. What selects another kernel (head size, types, causality of a
 * window, one query or many) is the variant.
 */
#include <math.h>

#include "cost/analytical/analytical.h"
#include "cost/fitted/table.h"

#define ALIGNED 8.0   /* elements; tables hold multiples of 32 */
#define LAUNCH_S 2e-6 /* order of the smallest kernel in any table; the surface corrects it */

/* Where the bandwidth of the last-level cache is not known: bytes that it delivers per SM and clock (A100 35, H100 39). */
#define CACHE_BYTES_PER_CLOCK 37.0
#define CACHE_SHARE 0.5 /* of its size: what stays from one run of a loop to the next */

double maq__fit_cache_bps(const struct maq_device *device)
{
    double known = device->l2_bps, guess = CACHE_BYTES_PER_CLOCK * (double)device->sms * device->clock_hz;
    return maq__max(known > 0.0 ? known : guess, device->mem_bps);
}

static double memory_s(const struct maq_device *device, double bytes)
{
    double kept = maq__min(bytes, CACHE_SHARE * maq__max(device->l2_bytes, 0.0));
    return maq__over(kept, maq__fit_cache_bps(device)) + maq__over(bytes - kept, device->mem_bps);
}

static double log2_of(double x)
{
    return (double)(float)log2(maq__max(x, 1e-6)); /* knots are floats: the same rounding for both */
}

static void set_axes(struct maq_fit_point *p, double a, double b, double c, double d)
{
    p->x[0] = log2_of(a);
    p->x[1] = log2_of(b);
    p->x[2] = log2_of(c);
    p->x[3] = log2_of(d);
}

static bool gemm_point(struct maq_fit_point *p, const struct maq_op *op)
{
    double m = maq__count(op, 0), n = maq__count(op, 1), k = maq__count(op, 2), batch = maq__count(op, 3);
    p->key.variant[0] = op->flags & (MAQ_OP_BLOCKS | MAQ_OP_WEIGHT8 | MAQ_OP_WEIGHT4);
    if (!(m > 0.0 && n > 0.0 && k > 0.0))
        return false;
    if (fmod(n, ALIGNED) != 0.0 || fmod(maq__sums_rows(op) ? m : k, ALIGNED) != 0.0)
        return false; /* other kernels, which no table has */
    if (batch > 1.0) {
        p->key.family = MAQ_FIT_BMM;
        set_axes(p, m, batch, n, k);
    } else {
        p->key.family = MAQ_FIT_GEMM;
        set_axes(p, m, n, k, 1.0);
    }
    return true;
}

/* Queries of a sequence: as the operator says, or as many as its mean keys imply. */
static double queries_of(const struct maq_op *op)
{
    double keys = maq__count(op, 1);
    if (op->queries > 0)
        return (double)op->queries;
    return maq__max(1.0, (op->flags & MAQ_OP_CAUSAL) ? 2.0 * keys - 1.0 : keys);
}

/* Kernels of other generations than those in the tables of a device: its newest. */
static bool is_older_kernel(const struct maq_op *op, const struct maq_device *device)
{
    if (op->flags & (MAQ_OP_FLASH1 | MAQ_OP_TRITON))
        return true;
    return (op->flags & MAQ_OP_FLASH2) && maq__kernel_traits(device)->flash2_fwd[0] > 0.0;
}

static bool attention_point(struct maq_fit_point *p, const struct maq_op *op)
{
    double tokens = maq__count(op, 0), heads = maq__count(op, 2), kv_heads = maq__max(1.0, maq__count(op, 3));
    double queries = maq__min(queries_of(op), tokens), reach = maq__count(op, 1);
    if (!(tokens > 0.0 && heads > 0.0 && reach > 0.0))
        return false;
    double sequences = tokens / queries;
    p->key.variant[0] = (uint16_t)maq__min(maq__count(op, 4), 65535.0);
    p->key.variant[1] = (uint16_t)maq__min(maq__count(op, 5), 65535.0);
    p->key.variant[2] = op->flags & (MAQ_OP_KV_FP8 | MAQ_OP_WINDOW);
    if (op->queries == 1) {
        p->key.family = MAQ_FIT_DECODE;
        set_axes(p, reach, sequences * kv_heads, heads / kv_heads, 1.0);
    } else {
        p->key.family = MAQ_FIT_PREFILL; /* reach: 1 = causal, all of the sequence; less = a window; more = a prefix */
        set_axes(p, queries, sequences * heads, heads / kv_heads, 2.0 * reach / (queries + 1.0));
    }
    return true;
}

static bool experts_point(struct maq_fit_point *p, const struct maq_op *op)
{
    double rows = maq__count(op, 0), hidden = maq__count(op, 1), ffn = maq__count(op, 2);
    double groups = op->resident > 0 ? (double)op->resident : maq__max(1.0, maq__count(op, 3)), mean = rows / groups;
    if (!(rows > 0.0 && hidden > 0.0 && ffn > 0.0))
        return false;
    p->key.family = MAQ_FIT_EXPERTS;
    p->key.variant[0] = op->flags & (MAQ_OP_GATED | MAQ_OP_BLOCKS | MAQ_OP_WEIGHT8 | MAQ_OP_WEIGHT4);
    /* Even or skewed. Tables have an even load or a power law, rank^-0.6 to rank^-1.2: the busiest of three experts has 1.38
     * times the mean or more, and of more experts more. */
    p->key.variant[1] = maq__count(op, 4) > 1.3 * maq__max(mean, 1.0);
    set_axes(p, mean, groups, hidden, ffn);
    return true;
}

static bool mla_block_point(struct maq_fit_point *p, const struct maq_op *op)
{
    double tokens = maq__count(op, 0), queries = maq__min(queries_of(op), tokens);
    if (!(tokens > 0.0 && maq__count(op, 2) > 0.0))
        return false;
    p->key.family = op->queries == 1 ? MAQ_FIT_MLA_DECODE : MAQ_FIT_MLA_PREFILL;
    p->key.variant[0] = op->flags & (MAQ_OP_KV_FP8 | MAQ_OP_BLOCKS);
    p->key.variant[1] = (uint16_t)maq__min(maq__count(op, 3), 65535.0);
    set_axes(p, op->queries == 1 ? maq__count(op, 1) : queries, tokens / queries, maq__count(op, 2), 1.0);
    return true;
}

static bool linear_point(struct maq_fit_point *p, const struct maq_op *op)
{
    double tokens = maq__count(op, 0), queries = op->queries > 0 ? (double)op->queries : tokens;
    if (!(tokens > 0.0 && maq__count(op, 1) > 0.0))
        return false;
    p->key.variant[0] = op->queries == 1;
    if (op->kind == MAQ_OP_CONV1D) {
        p->key.family = MAQ_FIT_CONV1D;
        p->key.variant[1] = (uint16_t)maq__min(maq__count(op, 2), 65535.0);
        set_axes(p, tokens, maq__count(op, 1), queries, 1.0);
    } else {
        p->key.family = MAQ_FIT_DELTA_RULE;
        p->key.variant[1] = (uint16_t)maq__min(maq__count(op, 2), 65535.0);
        p->key.variant[2] = (uint16_t)maq__min(maq__count(op, 4), 65535.0);
        set_axes(p, tokens, maq__count(op, 1), maq__max(1.0, maq__count(op, 3)), queries);
    }
    return true;
}

static bool pointwise_point(struct maq_fit_point *p, const struct maq_op *op)
{
    if (!(maq__count(op, 0) > 0.0))
        return false;
    if (op->kind == MAQ_OP_QUANTIZE) {
        p->key.family = MAQ_FIT_QUANTIZE;
        p->key.variant[0] = (uint16_t)maq__min(maq__max(1.0, maq__count(op, 2)), 65535.0);
        set_axes(p, maq__count(op, 0), maq__count(op, 1), 1.0, 1.0);
        return maq__count(op, 1) > 0.0;
    }
    p->key.family = MAQ_FIT_ELEMENTWISE;
    p->key.variant[0] = (uint16_t)maq__min(maq__count(op, 1), 65535.0);
    p->key.variant[1] = (uint16_t)maq__min(maq__count(op, 2), 65535.0);
    set_axes(p, maq__count(op, 0), 1.0, 1.0, 1.0);
    return true;
}

static bool axes_of(struct maq_fit_point *p, const struct maq_op *op)
{
    p->key.dtype = op->dtype;
    switch ((int)op->kind) {
    case MAQ_OP_GEMM:
        return gemm_point(p, op);
    case MAQ_OP_ATTENTION:
        return attention_point(p, op);
    case MAQ_OP_EXPERTS:
        return experts_point(p, op);
    case MAQ_OP_MLA_BLOCK:
        return mla_block_point(p, op);
    case MAQ_OP_DELTA_RULE:
    case MAQ_OP_CONV1D:
        return linear_point(p, op);
    case MAQ_OP_QUANTIZE:
    case MAQ_OP_ELEMENTWISE:
        return pointwise_point(p, op);
    default:
        return false;
    }
}

bool maq__fit_point(struct maq_fit_point *out, const struct maq_op *op, const struct maq_device *device)
{
    *out = (struct maq_fit_point){0};
    if ((unsigned)op->dtype >= MAQ_DTYPE_COUNT || !axes_of(out, op))
        return false;
    if (op->kind == MAQ_OP_ATTENTION && is_older_kernel(op, device))
        return false;

    struct maq_work work = maq_op_work(op);
    enum maq_dtype dtype = (enum maq_dtype)op->dtype;
    /* a kernel that finds keys and values in 8 bits may multiply in 8 bits, too (TensorRT-LLM on Hopper) */
    double fastest =
        maq__matrix_peak(device, op->flags & MAQ_OP_KV_FP8 && op->kind == MAQ_OP_ATTENTION ? MAQ_FP8 : dtype);
    double mem = memory_s(device, work.bytes), math = maq__over(work.matrix_flop, maq__matrix_peak(device, dtype));

    out->math_s = math;
    out->memory_s = mem;
    out->base_s = LAUNCH_S + maq__overlap_s(math, mem);
    out->floor_s = maq__max(maq__over(work.matrix_flop, maq__max(fastest, maq__matrix_peak(device, dtype))),
                            maq__over(work.bytes, maq__fit_cache_bps(device)));
    return true;
}
