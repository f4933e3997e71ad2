/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gemm.c - dense and grouped matrix products.
 *
 * The output is cut into tiles of bm x bn; each is one unit of work for an SM. With T tiles on P SMs, k in K steps:
 *
 *   r       matrix rate of one SM under the power limit (sustained rate / P), times the share that a tile of this
 *           shape reaches [FLOP/s]
 *   step    = 2 bm bn (elements of k in a step) / r
 *   store   = what the next tile's main loop does not hide of writing a tile
 *   t_math  = prologue + ceil(T / P) (K step + store)                       whole tiles
 *           | prologue + T / P K step + seams + ...                         stream-K: the steps are dealt out evenly
 *           | ceil(T s / P) ((K / s) step + prologue + store) + reduction   split-K: every tile cut s ways along k
 *   t_mem   = traffic / (share * memory bandwidth): operands and result once, and operands again for each band of
 *           tiles when the cache does not hold them
 *   t       = fixed + (t_math^4 + t_mem^4)^(1/4)        both overlap, except near balance
 *
 * The fastest of the generation's tile shapes and cuts is taken, as a library's heuristic would; that it is not always
 * right is part of the error. A grouped product is the tiles of all groups in one launch: a group's rows are rounded
 * up to whole tiles, each group alone. How the rows are spread over the groups matters only through that rounding.
 */
#include <math.h>

#include "cost/analytical/analytical.h"

/* Elements of k that one step of the main loop consumes: 128 bytes of 16-bit values. */
#define K_STEP_BYTES 128.0
/* Steps until the pipeline of the first tile is full; later tiles of a persistent kernel hide most of it. */
#define PROLOGUE_STEPS 4.0
#define STREAM_STEPS 6.0  /* what dealing out steps costs: partial tiles at the seams */
#define STREAM_WAVES 6.0  /* beyond this many waves the last one hardly matters and libraries do not bother */
#define EXPOSED_STORE 0.5 /* share of a tile's store that the next tile's main loop does not hide */
#define MAX_SPLIT 16.0
#define NARROW_SHARE 0.92  /* scale factors, and half the time per step to feed the pipe */
#define GROUPED_SHARE 0.92 /* tiles of one launch belong to different matrices */

/*
 * A product in 32 bits where the matrix units have no rate for it runs on the vector units, in tiles that start smaller and with shorter steps: cuBLAS's
 * kernels are named after them (sgemm_128x128 to sgemm_32x32). Shares of the vector rate are estimates; power does not limit it.
 */
#define VECTOR_STEP 8.0 /* elements of k */
#define VECTOR_TILES 5
static const struct maq_gemm_tile vector_tiles[VECTOR_TILES] = {
    {128, 128, 0.88f}, {128, 64, 0.82f}, {64, 64, 0.7f}, {64, 32, 0.55f}, {32, 32, 0.4f}};

struct product {
    double m, n, k;              /* of one member */
    double count;                /* members of a batch, or groups */
    double share;                /* of the tile's rate: 8- and 4-bit types and grouped kernels reach less of theirs */
    double tiles_add;            /* part of a tile of m that a group wastes because its rows are not the mean */
    double element, weight, out; /* bytes: first operand, second, result */
    double bytes;                /* exact total */
    bool vector;                 /* on the vector units */
};

static double ceil_div(double a, double b)
{
    return ceil(a / b);
}

/*
 * Traffic beyond the compulsory: a wave of tiles reads bands of A and B; later waves read them again unless the cache
 * holds them.
 */
static double traffic(const struct product *p, const struct maq_device *device, double bm, double bn, double sms)
{
    double a = p->m * p->k * p->element, b = p->n * p->k * p->weight;
    double side = sqrt(sms); /* a wave's tiles are arranged as a square */
    double bands_m = maq__max(1.0, p->m / (bm * side)), bands_n = maq__max(1.0, p->n / (bn * side));
    double cache = maq__max(device->l2_bytes, 0.0) * 0.5;
    /* the smaller operand stays in the cache if it fits; otherwise each band of the other reads it again */
    double again_a = a <= cache ? 0.0 : (bands_n - 1.0) * a, again_b = b <= cache ? 0.0 : (bands_m - 1.0) * b;
    return p->bytes + p->count * maq__min(again_a, again_b);
}

/* One tile shape: time of the main loops and of what they do not hide. */
static double math_s(const struct product *p, const struct maq_device *device, const struct maq_gemm_tile *tile,
                     double rate, double sms)
{
    double bm = (double)tile->m, bn = (double)tile->n, step = p->vector ? VECTOR_STEP : K_STEP_BYTES / p->element;
    double per_sm = rate / sms * (double)tile->share * p->share,
           cache_bps = maq__max(device->l2_bps, 2.0 * device->mem_bps);
    double tiles = (ceil_div(p->m, bm) + p->tiles_add) * ceil_div(p->n, bn) * p->count;
    double steps = maq__max(1.0, ceil_div(p->k, step));
    double t_step = 2.0 * bm * bn * step / per_sm;
    double t_store = bm * bn * p->out * EXPOSED_STORE / (cache_bps / sms);
    double waves = ceil_div(tiles, sms), best;

    /* whole tiles, or their steps dealt out evenly (stream-K): seams to mend, but no idle SMs in the last wave */
    best = t_step * PROLOGUE_STEPS + waves * (t_step * steps + t_store);
    if (waves > 1.0 && waves <= STREAM_WAVES)
        best = maq__min(best, t_step * (PROLOGUE_STEPS + STREAM_STEPS) + (tiles / sms) * t_step * steps +
                                  waves * t_store + t_store);
    for (double split = 2.0; split <= MAX_SPLIT && split <= steps && waves <= 1.0; split *= 2.0) {
        double t = ceil_div(tiles * split, sms) * (t_step * (ceil_div(steps, split) + PROLOGUE_STEPS) + t_store);
        t += maq__over(2.0 * split * p->m * p->n * p->count * 4.0,
                       cache_bps); /* partial tiles in FP32, written and read */
        best = maq__min(best, t);
    }
    return best;
}

double maq__overlap_s(double a, double b)
{
    double hi = maq__max(a, b), lo = maq__min(a, b);
    if (!(hi > 0.0))
        return 0.0;
    double r = lo / hi;
    return hi * sqrt(sqrt(1.0 + r * r * r * r));
}

static double best_tile_s(const struct product *p, const struct maq_device *device, enum maq_dtype dtype)
{
    const struct maq_kernel_traits *traits = maq__kernel_traits(device);
    const struct maq_gemm_tile *tiles = p->vector ? vector_tiles : traits->tiles;
    unsigned n = p->vector ? VECTOR_TILES : MAQ_GEMM_TILES;
    double rate = p->vector ? maq__vector_rate(device) : maq__matrix_rate(device, dtype);
    double best = MAQ_FOREVER_S, sms = device->sms > 0 ? (double)device->sms : 1.0;

    if (!(rate > 0.0) || !(device->mem_bps > 0.0))
        return MAQ_FOREVER_S;
    for (unsigned i = 0; i < n && tiles[i].m; i++) {
        const struct maq_gemm_tile *tile = &tiles[i];
        double t_math = math_s(p, device, tile, rate, sms);
        double t_mem =
            traffic(p, device, (double)tile->m, (double)tile->n, sms) / (device->mem_bps * traits->mem_share);
        best = maq__min(best, maq__overlap_s(t_math, t_mem));
    }
    return traits->gemm_s + best;
}

/*
 * Rows that do not start on 16 bytes are loaded in smaller pieces (odd head sizes, unpadded vocabularies). That 16 bytes is
 * what full speed needs is NVIDIA's own rule (Deep Learning Performance guide, "Tensor Core requirements"); the shares are
 * estimates. Batched products have no such kernels and leave the matrix units: BLOOM's log tables have three head sizes
 * that are no multiple of 8 (108, 150, 225), and each loses what the products of attention take at 10 TFLOP/s on an A100, half
 * of its FP32 rate.
 */
#define UNALIGNED_VECTOR_SHARE 0.5

/* Rows of the operands have n and `side` elements. */
static double aligned_share(const struct product *p, double side, const struct maq_device *device, enum maq_dtype dtype)
{
    static const double share[] = {0.3, 0.55, 0.8, 1.0}; /* 2, 4, 8, 16 bytes */
    double n = p->n * p->element, k = side * p->element;
    int power = 0;
    while (power < 3 && fmod(n, 4 << power) == 0 && fmod(k, 4 << power) == 0)
        power++;
    bool thin = p->n < 64.0 || side < 64.0; /* a vector or a handful of columns: other kernels */
    if (thin || p->element < 1.0 || power == 3)
        return 1.0;
    double vector = maq__over(UNALIGNED_VECTOR_SHARE * maq__vector_rate(device), maq__matrix_rate(device, dtype));
    return p->count > 1.0 && vector > 0.0 ? maq__min(share[power], vector) : share[power];
}

/*
 * Attention with heads of a few features (4 to 28 in vision transformers): batches of products with one such side,
 * whose rows do not start on 16 bytes. They run on the vector units as well, in tiles of 32 x 32 and steps of 8 (the
 * smallest of cuBLAS's "sliced" kernels), so that a side of 4 costs as much as one of 32.
 */
#define THIN_TILE 32.0
#define THIN_STEP 8.0
#define THIN_SIDE 32.0

static bool is_thin_batch(const struct product *p)
{
    bool thin = p->n < THIN_SIDE || p->k < THIN_SIDE;
    bool aligned = fmod(p->n * p->element, 16.0) == 0.0 && fmod(p->k * p->element, 16.0) == 0.0;
    return p->count > 1.0 && p->element == 2.0 && thin && !aligned && p->m >= THIN_SIDE;
}

static double thin_batch_s(const struct product *p, const struct maq_device *device)
{
    const struct maq_kernel_traits *traits = maq__kernel_traits(device);
    double m = ceil_div(p->m, THIN_TILE) * THIN_TILE, n = ceil_div(p->n, THIN_TILE) * THIN_TILE,
           k = ceil_div(p->k, THIN_STEP) * THIN_STEP;
    double t_math = maq__over(2.0 * m * n * k * p->count, UNALIGNED_VECTOR_SHARE * maq__vector_rate(device));
    double t_mem = maq__over(p->bytes, device->mem_bps * traits->mem_share);
    return traits->gemm_s + maq__overlap_s(t_math, t_mem);
}

/* As the tile's store above, of what a result in 4 bytes, or added into 4 bytes, has beyond the type's own. */
double maq__wide_store_s(const struct maq_op *op, const struct maq_device *device)
{
    enum maq_dtype dtype = (unsigned)op->dtype < MAQ_DTYPE_COUNT ? (enum maq_dtype)op->dtype : MAQ_BF16;
    double out = op->flags & MAQ_OP_ACCUMULATE ? 8.0 : op->flags & MAQ_OP_OUT_FP32 ? 4.0 : 0.0;
    double more = maq__max(0.0, out - maq__out_bytes(dtype));
    double cache_bps = maq__max(device->l2_bps, 2.0 * device->mem_bps);
    return op->kind == MAQ_OP_GEMM ? maq__over(maq__count(op, 0) * maq__count(op, 1) * more * EXPOSED_STORE, cache_bps)
                                   : 0.0;
}

/* Weight gradients sum over tokens: the rows of both operands are features, of m and of n. In 8 bits operands lie the other way round. */
bool maq__sums_rows(const struct maq_op *op)
{
    if (op->kind == MAQ_OP_GROUPED_GEMM)
        return op->flags & MAQ_OP_VARIABLE_K;
    bool wide = (unsigned)op->dtype < MAQ_DTYPE_COUNT && maq_dtype_bytes((enum maq_dtype)op->dtype) >= 2.0;
    return op->kind == MAQ_OP_GEMM && wide && op->d[3] <= 1 && op->flags & (MAQ_OP_ACCUMULATE | MAQ_OP_SUMS_ROWS);
}

double maq__gemm_s(const struct maq_op *op, const struct maq_device *device)
{
    enum maq_dtype dtype = (unsigned)op->dtype < MAQ_DTYPE_COUNT ? (enum maq_dtype)op->dtype : MAQ_BF16;
    struct maq_work work = maq_op_work(op);
    struct product p = {
        .m = maq__count(op, 0),
        .n = maq__count(op, 1),
        .k = maq__count(op, 2),
        .count = maq__max(1.0, maq__count(op, 3)),
        .element = maq_dtype_bytes(dtype),
        .weight = maq__weight_bytes(op),
        .out = maq__out_bytes(dtype),
        .bytes = work.bytes,
        .vector = dtype == MAQ_FP32 && !(device->peak_flops[MAQ_FP32] > 0.0) && maq__vector_rate(device) > 0.0,
    };

    if (!(p.m > 0.0 && p.n > 0.0))
        return 0.0;
    if (op->flags & MAQ_OP_ACCUMULATE)
        p.out = 8.0; /* read and written */
    else if (op->flags & MAQ_OP_OUT_FP32)
        p.out = 4.0;
    p.share = (p.element < 2.0 ? NARROW_SHARE : 1.0) * (op->kind == MAQ_OP_GROUPED_GEMM ? GROUPED_SHARE : 1.0);
    if (op->kind == MAQ_OP_GEMM && is_thin_batch(&p) && maq__vector_rate(device) > 0.0 && device->mem_bps > 0.0)
        return thin_batch_s(&p, device);
    p.share *= aligned_share(&p, maq__sums_rows(op) ? p.m : p.k, device, dtype);
    if (op->kind == MAQ_OP_GROUPED_GEMM && !(op->flags & MAQ_OP_VARIABLE_K)) {
        double busiest = maq__count(op, 4);
        if (busiest > p.m)
            p.tiles_add = 0.5 * (1.0 - p.m / busiest);
    }
    return best_tile_s(&p, device, dtype);
}
