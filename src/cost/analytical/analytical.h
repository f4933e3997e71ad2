/* SPDX-License-Identifier: Apache-2.0 */
/*
 * analytical.h - what the analytical provider's files share: the shares of the datasheet that a generation's kernels reach,
 * and the entry point of each kind of kernel.
 *
 * Everything here is pure: a value from values, no allocation, no state.
 */
#ifndef MAQ_COST_ANALYTICAL_ANALYTICAL_H
#define MAQ_COST_ANALYTICAL_ANALYTICAL_H

#include "maquette/cost.h"

/*
 * A time beyond any use, for a device that cannot do the work at all (a rate of zero); finite so that sums of it stay
 * finite.
 */
#define MAQ_FOREVER_S 1e18

/* A block of the output that one SM computes, and the share of its matrix rate that the main loop reaches. */
struct maq_gemm_tile {
    uint16_t m, n;
    float share;
};
#define MAQ_GEMM_TILES 10

/* How well a generation's kernels use its hardware. Shares are of the datasheet's figures, dimensionless. */
struct maq_kernel_traits {
    double full_rate; /* FLOP per SM and cycle of a board with all of its die's matrix rate, FP32 sums; 0 = not known */
    double sustained_share; /* matrix rate under the power limit over peak, where device.sustained_flops is not known */
    double typical_share;   /* of an ordinary large product over the best of many shapes */
    /* rate of 8-bit products whose sums leave short accumulators on the way; 0 = accumulators are not short */
    double promoted_share;
    double mem_share; /* memory bandwidth of a large streaming kernel over peak */
    double kernel_s;  /* a kernel that does nothing: gap on the stream, launch of the blocks, drain */
    double gemm_s;    /* fixed time of a GEMM: kernel_s, pipeline fill, last epilogue */
    struct maq_gemm_tile tiles[MAQ_GEMM_TILES]; /* ends at m = 0 */
    double attention_fwd[3]; /* share of the matrix peak in the inner loop, for head sizes 64, 128, 256 */
    double attention_bwd[3];
    double attention_fp8[3];                       /* forward in 8 bits, over the 8-bit peak */
    double attention_bwd_fp8[3];                   /* backward; 0 = in 16 bits */
    double flash2_fwd[3], flash2_bwd[3];           /* the same of FlashAttention-2; 0 = no different */
    double attention_s;                            /* fixed time of an attention kernel */
    double attention_fill;                         /* start and finish of a block, in keys */
    double attention_fill_bwd_fp8;                 /* of a backward one in 8 bits */
    double attention_bwd_fp8_masked;               /* share of the scores above the diagonal that it computes as well */
    double attention_exp[2], attention_fp8_exp[2]; /* share of the time that exponentials take, forward and backward */
    uint16_t attention_rows;                       /* queries per block */
};
const struct maq_kernel_traits *maq__kernel_traits(const struct maq_device *device);

/*
 * Matrix rate of continuous training over a sustained figure: those are means of a hundred runs on one device, a fraction of a
 * second, shorter than it takes the power limiter and the temperature of a full node to settle. The value was chosen against
 * published training runs, the same for every device, model and job; docs/cost-model.md gives the error without it.
 */
#define MAQ_CONTINUOUS_SHARE 0.85

/*
 * What a board is sold with of its die's matrix rate, per SM and cycle: 1, or GeForce's half, or an H20's quarter. Such a board
 * has the power, the clock, the caches and all other units of the whole rate:
 *
 *   - its power limit does not hold its matrix units back in a short loop, unless it would hold the whole rate below what is sold; in
 *     training it does so by the rate that it has of the whole die's fastest product (cost/fitted/fitted.c);
 *   - a kernel that reaches the share s of the whole rate spends 1 of 1 / s on the matrix units and the rest on what lies beside them
 *     (exponentials, stores, filling the pipe). That rest is as long as before, so that of the part p the kernel reaches
 *
 *       1 / (1 + (1 / s - 1) p)
 *
 * Measured: docs/devices.md, "Boards held back by power, and not".
 */
double maq__matrix_part(const struct maq_device *device);
double maq__share_of_part(const struct maq_device *device, double share);

/* FLOP/s; the type that the device has units for is substituted. 0 only for a device without any figure. */
double maq__matrix_peak(const struct maq_device *device, enum maq_dtype dtype);
double maq__matrix_rate(const struct maq_device *device, enum maq_dtype dtype);
/* The best rate that a device's power leaves it, for a second: more than its peak on a board that is sold with a part of it. */
double maq__powered_rate(const struct maq_device *device, enum maq_dtype dtype);
/* The best rate held under the power limit over the peak. */
double maq__held_share(const struct maq_device *device, enum maq_dtype dtype);
/* The same device as kernels in a short loop find it: no power limit lowers its clock. */
struct maq_device maq__device_in_bursts(const struct maq_device *device);
/* The same device as kernels of a run of minutes find it: MAQ_CONTINUOUS_SHARE takes nothing off. */
struct maq_device maq__device_in_short_run(const struct maq_device *device);
double maq__vector_rate(const struct maq_device *device);
/* Seconds to move `bytes` through memory, once each: what fits the last-level cache moves at the cache's rate. */
double maq__memory_s(const struct maq_device *device, double bytes, double share);

/* Width in memory of what an operator in this type writes; bytes. */
double maq__out_bytes(enum maq_dtype dtype);

/* Width in memory of the second operand of a product; bytes. */
double maq__weight_bytes(const struct maq_op *op);

bool maq__sums_rows(const struct maq_op *op); /* whether k is a number of rows: then its alignment does not matter */
/* (a^4 + b^4)^(1/4), seconds, without overflow: arithmetic and traffic run side by side, except near balance. */
double maq__overlap_s(double a, double b);
double maq__gemm_s(const struct maq_op *op, const struct maq_device *device);
/* Seconds that a product takes longer because its result is wider than its type's own: tables have none of those. 0 for other kinds. */
double maq__wide_store_s(const struct maq_op *op, const struct maq_device *device);
double maq__attention_s(const struct maq_op *op, const struct maq_device *device);
/* FLOP/s of attention's inner loop on the whole device, whatever its power limit leaves, and without the exponentials below. */
double maq__attention_rate(const struct maq_op *op, const struct maq_device *device);
/* Time of attention over that on a device with as many exponentials as usual. */
double maq__exponentials_share(const struct maq_op *op, const struct maq_device *device);
double maq__pointwise_s(const struct maq_op *op, const struct maq_device *device);
double maq__scan_s(const struct maq_op *op, const struct maq_device *device);

static inline double maq__max(double a, double b)
{
    return a > b ? a : b;
}
static inline double maq__min(double a, double b)
{
    return a < b ? a : b;
}
/* d[i] as a count: negative is zero. */
static inline double maq__count(const struct maq_op *op, unsigned i)
{
    return op->d[i] > 0 ? (double)op->d[i] : 0.0;
}
/* x / rate in seconds; FOREVER when the rate is zero and there is work. */
static inline double maq__over(double work, double rate)
{
    if (!(work > 0.0))
        return 0.0;
    return rate > 0.0 ? maq__min(work / rate, MAQ_FOREVER_S) : MAQ_FOREVER_S;
}

#endif
