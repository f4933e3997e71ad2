/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace_operators.c - maps operators of a trace to operators of the cost chain.
 *
 * Library calls say what they compute, and of some kernels of the program's own a rule does (shim/cuda/operator_rules.h), so a GEMM, an
 * attention or a norm becomes the chain's operator of that kind and costs what it costs in a predicted job. cuBLAS counts column-major: its D[m,n] is a row-major D[n,m].
 *
 * Of a kernel of the program's own only its grid and the memory that its pointers can reach are known. It is priced as a
 * stream through memory:
 *
 *     bytes = min(reach, threads * THREAD_BYTES)          where there are more blocks than the device holds at once
 *             reach                                       where there are not: such a kernel strides over its data
 *     ns    = cost chain's elementwise operator that reads half of the bytes and writes half
 *
 * since a pointer into a framework's pool reaches far more than one kernel touches. A thread of a vectorised kernel moves
 * one 16-byte word of each operand (CUDA C++ Best Practices Guide, "coalesced access"; PyTorch's vectorized_elementwise
 * and llm.c's x128 do), two read and one written. No constant is fitted. On DeepSeek's published training
 * trace (H800), of 317 launches of 17 kernels with more blocks than the device holds, without their reach, half are
 * predicted within a factor of three, and the median is 0.6 of what was measured. So its error says 1.0, and a table of
 * measured times replaces it (kernel_times.c).
 *
 * A convolution is the square GEMM of its FLOPs.
 *
 * A kernel whose code was read (MAQ_REC_WORK) takes the longer of two: the stream of its bytes, and its products. These are the square GEMM
 * of their depth, or attention as FlashAttention-2 has it, of which FlexAttention's kernels by Triton reach 90 % forward and 85 % backward
 * (PyTorch's blog, "FlexAttention: The Flexibility of PyTorch with the Performance of FlashAttention", August 2024).
 */
#include <math.h>

#include "capture/price/price.h"

#define THREAD_BYTES 48u
#define MOST_BYTES 9.0e15
#define LEAST_SIDE 16 /* of the output of a product: a tile of the tensor cores */

static uint8_t type_of(uint32_t type)
{
    static const uint8_t map[MAQ_REC_TYPE_COUNT] = {
        [MAQ_REC_I8] = MAQ_INT8,         [MAQ_REC_U8] = MAQ_INT8,    [MAQ_REC_I32] = MAQ_FP32,
        [MAQ_REC_U32] = MAQ_FP32,        [MAQ_REC_I64] = MAQ_FP32,   [MAQ_REC_U64] = MAQ_FP32,
        [MAQ_REC_F16] = MAQ_FP16,        [MAQ_REC_F32] = MAQ_FP32,   [MAQ_REC_F64] = MAQ_FP32,
        [MAQ_REC_BF16] = MAQ_BF16,       [MAQ_REC_F8E4M3] = MAQ_FP8, [MAQ_REC_F8E5M2] = MAQ_FP8,
        [MAQ_REC_TF32] = MAQ_TF32,       [MAQ_REC_F4] = MAQ_FP4,     [MAQ_REC_BIT] = MAQ_INT8,
        [MAQ_REC_TYPE_OTHER] = MAQ_BF16,
    };
    return map[type < MAQ_REC_TYPE_COUNT ? type : MAQ_REC_TYPE_OTHER];
}

static int64_t at_least_one(int64_t x)
{
    return x > 0 ? x : 1;
}

static int64_t not_negative(int64_t x)
{
    return x > 0 ? x : 0;
}

static bool wide(uint32_t type)
{
    return type == MAQ_REC_F32 || type == MAQ_REC_F64 || type == MAQ_REC_I32;
}

static struct maq_op gemm_of(const struct maq_rec_op *w)
{
    struct maq_op op = {.kind = MAQ_OP_GEMM, .dtype = type_of(w->type)};
    op.d[0] = at_least_one(w->d[1]);
    op.d[1] = at_least_one(w->d[0]);
    op.d[2] = at_least_one(w->d[2]);
    op.d[3] = not_negative(w->d[3]);
    bool narrow = !wide(w->type);
    op.flags =
        (uint8_t)((wide(w->out) && narrow ? MAQ_OP_OUT_FP32 : 0u) |
                  (w->flags & MAQ_REC_ACCUMULATES && wide(w->out) && narrow ? MAQ_OP_ACCUMULATE : 0u) |
                  (w->flags & MAQ_REC_BIAS ? MAQ_OP_BIAS : 0u) | (w->flags & MAQ_REC_BLOCKS ? MAQ_OP_BLOCKS : 0u));
    return op;
}

/* The last query sees all keys; under a causal mask the mean one sees (queries - 1) / 2 fewer. */
static struct maq_op attention_of(const struct maq_rec_op *w)
{
    bool causal = w->flags & MAQ_REC_CAUSAL;
    int64_t queries = at_least_one(w->d[3]), keys = at_least_one(w->d[4]);
    struct maq_op op = {.kind = w->kind == MAQ_REC_ATTENTION ? MAQ_OP_ATTENTION : MAQ_OP_ATTENTION_BWD,
                        .dtype = type_of(w->type),
                        .flags = causal ? MAQ_OP_CAUSAL : 0};
    double seen = causal ? (double)keys - ((double)(queries < keys ? queries : keys) - 1) / 2 : (double)keys;
    op.queries = queries == keys || queries > UINT32_MAX ? 0 : (uint32_t)queries;
    op.d[0] = at_least_one(w->d[0]) > INT64_MAX / queries ? INT64_MAX : at_least_one(w->d[0]) * queries;
    op.d[1] = at_least_one((int64_t)(seen + 0.5));
    op.d[2] = at_least_one(w->d[1]);
    op.d[3] = w->d[2] > 0 ? w->d[2] : op.d[2];
    op.d[4] = op.d[5] = at_least_one(w->d[5]);
    return op;
}

static struct maq_op sized(enum maq_op_kind kind, uint8_t type, unsigned flags, int64_t d0, int64_t d1, int64_t d2)
{
    return (struct maq_op){.kind = (uint16_t)kind, .dtype = type, .flags = (uint8_t)flags, .d = {d0, d1, d2}};
}

/* One part of attention over sequences: `n` queries that see so many keys in the mean, so many of a sequence. */
static struct maq_op part_of(const struct maq_rec_op *w, int64_t n, int64_t keys, int64_t queries)
{
    const bool window = w->flags & MAQ_REC_WINDOW, causal = w->flags & MAQ_REC_CAUSAL;
    struct maq_op op = {.kind = w->kind == MAQ_REC_SEQUENCES ? MAQ_OP_ATTENTION : MAQ_OP_ATTENTION_BWD,
                        .dtype = type_of(w->type)};
    op.flags =
        (uint8_t)((window                  ? MAQ_OP_WINDOW
                   : queries > 1 && causal ? MAQ_OP_CAUSAL
                                           : 0u) |
                  (w->flags & MAQ_REC_FLASH2 ? MAQ_OP_FLASH2 : 0u) | (w->flags & MAQ_REC_FLASH1 ? MAQ_OP_FLASH1 : 0u));
    op.queries = (uint32_t)(queries < UINT32_MAX ? queries : UINT32_MAX);
    op.d[0] = n;
    op.d[1] = at_least_one(keys);
    for (unsigned i = 0; i < 4; i++)
        op.d[2 + i] = at_least_one(maq_rec_heads_part(w->d[5], i));
    return op;
}

/* Those with several queries, and those that decode, are two operators, as serve has them (src/serve/pass/mixers.c). */
static uint32_t sequences_of(struct maq_op out[MAQ_PRICE_PARTS], const struct maq_rec_op *w)
{
    uint32_t n = 0;
    if (w->d[0] > 0)
        out[n++] = part_of(w, w->d[0], w->d[1], at_least_one(w->d[2]));
    if (w->d[3] > 0)
        out[n++] = part_of(w, w->d[3], w->d[4], 1);
    return n;
}

struct maq_op maq_price_stream(double bytes)
{
    struct maq_op op = {.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_FP32};
    op.d[0] = bytes >= 2 ? (int64_t)(bytes / 2 < MOST_BYTES ? bytes / 2 : MOST_BYTES) : 1;
    op.d[1] = op.d[2] = 1;
    return op;
}

/* The nearest size that tensor cores take whole: the kernel's own tiles are, whatever is in them. */
static int64_t in_tiles(double size)
{
    const double tile = size >= 16 * LEAST_SIDE ? 8 * LEAST_SIDE : LEAST_SIDE;
    return at_least_one((int64_t)(size / tile + 0.5)) * (int64_t)tile;
}

/*
 * What the products of a kernel cost: w->d has their flop, their depth (flop / 2 / numbers written) and the features of a head. Attention
 * takes 4 flop for each query, key and feature, and writes a number for each query and feature: so its depth is twice the keys. A kernel
 * that writes next to nothing, as a loss, is a cube.
 */
static struct maq_op products_of(const struct maq_rec_op *w)
{
    const double half = (double)w->d[0] / 2, depth = (double)w->d[3], features = (double)w->d[4];
    const uint8_t type = type_of(w->type);
    if (features > 0 && depth >= 1) {
        const double queries = half / depth / features;
        struct maq_op op = sized(MAQ_OP_ATTENTION, type, MAQ_OP_FLASH2, at_least_one((int64_t)queries),
                                 at_least_one((int64_t)(depth / 2)), 1);
        op.d[3] = 1;
        op.d[4] = op.d[5] = w->d[4];
        return op;
    }
    const double side = depth >= 1 ? sqrt(half / depth) : 0, cube = cbrt(half);
    const bool flat = side >= LEAST_SIDE;
    const int64_t each = in_tiles(flat ? side : cube);
    return sized(MAQ_OP_GEMM, type, 0, each, each, in_tiles(flat ? depth : cube));
}

static double product(const uint32_t d[3])
{
    double n = 1;
    for (int i = 0; i < 3; i++)
        n *= d[i] > 0 ? d[i] : 1;
    return n;
}

static double kernel_bytes(const struct maq_rec_op *w, const struct maq_device *device)
{
    double blocks = product(w->grid), threads = product(w->block), reach = (double)w->bytes;
    double most = 2048.0 / (threads < 2048 ? threads : 2048); /* blocks of an SM: 2048 threads, 32 blocks */
    double resident = (double)(device->sms > 0 ? device->sms : 1) * (most < 32 ? most : 32);
    double moved = blocks * threads * THREAD_BYTES;
    if (reach <= 0)
        return moved;
    return blocks > resident && moved < reach ? moved : reach;
}

uint32_t maq_price_map(struct maq_op out[MAQ_PRICE_PARTS], const struct maq_rec_op *w, const struct maq_device *device,
                       bool *known)
{
    const uint8_t type = type_of(w->type);
    const int64_t d0 = at_least_one(w->d[0]), d1 = at_least_one(w->d[1]), d2 = at_least_one(w->d[2]);
    *known = true;
    switch ((enum maq_rec_op_kind)w->kind) {
    case MAQ_REC_GEMM:
        *out = gemm_of(w);
        return 1;
    case MAQ_REC_GROUPED_GEMM:
        *out = (struct maq_op){.kind = MAQ_OP_GROUPED_GEMM, .dtype = type};
        for (int i = 0; i < 5; i++)
            out->d[i] = i == 4 ? not_negative(w->d[4]) : at_least_one(w->d[i]);
        return 1;
    case MAQ_REC_ATTENTION:
    case MAQ_REC_ATTENTION_BWD:
        *out = attention_of(w);
        return 1;
    case MAQ_REC_SEQUENCES:
    case MAQ_REC_SEQUENCES_BWD:
        return sequences_of(out, w);
    case MAQ_REC_NORM:
        *out = sized(MAQ_OP_NORM, type, 0, d0, d1, 0);
        return 1;
    case MAQ_REC_NORM_BWD:
        *out = sized(MAQ_OP_NORM_BWD, type, 0, d0, d1, 0);
        return 1;
    case MAQ_REC_ELEMENTWISE:
        *out = sized(MAQ_OP_ELEMENTWISE, type, 0, d0, not_negative(w->d[1]), not_negative(w->d[2]));
        return 1;
    case MAQ_REC_GATED_ACTIVATION:
        *out = sized(MAQ_OP_ACTIVATION, type, MAQ_OP_GATED, d0, d1 < INT64_MAX / 2 ? 2 * d1 : d1, d1);
        return 1;
    case MAQ_REC_ROPE:
        *out = sized(MAQ_OP_ROPE, type, 0, d0, d1, 0);
        return 1;
    case MAQ_REC_EMBEDDING:
        *out = sized(MAQ_OP_EMBEDDING, type, 0, d0, d1, d2);
        return 1;
    case MAQ_REC_SOFTMAX:
        *out = sized(MAQ_OP_SOFTMAX, type, 0, d0, d1, 0);
        return 1;
    case MAQ_REC_QUANTIZE:
        *out = sized(MAQ_OP_QUANTIZE, type, 0, d0, d1, 1);
        return 1;
    case MAQ_REC_PART:
        return 0;
    case MAQ_REC_WORK:
        out[0] = maq_price_stream((double)not_negative(w->d[1]) + (double)not_negative(w->d[2]));
        out[1] = products_of(w);
        return w->d[0] > 0 ? 2 : 1;
    case MAQ_REC_CONV: {
        int64_t side = at_least_one((int64_t)(cbrt((double)d0 / 2) + 0.5));
        *out = sized(MAQ_OP_GEMM, type, 0, side, side, side);
        return 1;
    }
    case MAQ_REC_KERNEL:
    case MAQ_REC_LIBRARY:
    case MAQ_REC_OP_KIND_COUNT:
        break;
    }
    *known = false;
    *out = maq_price_stream(w->kind == MAQ_REC_KERNEL ? kernel_bytes(w, device) : (double)w->bytes);
    return 1;
}
