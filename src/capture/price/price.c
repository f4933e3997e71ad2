/* SPDX-License-Identifier: Apache-2.0 */
/*
 * price.c - maps operators of a trace to operators of the cost chain: see price.h.
 *
 * Library calls say what they compute, so a GEMM, an attention or a norm becomes the chain's operator of that kind and
 * costs what it costs in a predicted job. cuBLAS counts column-major: its D[m,n] is a row-major D[n,m].
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
 */
#include "capture/price/price.h"

#include <math.h>
#include <stdlib.h>

#define THREAD_BYTES 48u
#define KERNEL_ERROR 1.0f
#define MOST_NS 9.0e15

static struct maq_price answer(struct maq_cost cost)
{
    double ns = cost.seconds * 1e9;
    return (struct maq_price){
        .ns = (uint64_t)(ns < MOST_NS ? ns + 0.5 : MOST_NS), .error = cost.error, .provider = cost.provider};
}

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
    op.d[3] = w->d[3] > 0 ? w->d[3] : 0;
    bool narrow = !wide(w->type);
    op.flags = (uint8_t)((wide(w->out) && narrow ? MAQ_OP_OUT_FP32 : 0u) |
                         (w->flags & MAQ_REC_ACCUMULATES && wide(w->out) && narrow ? MAQ_OP_ACCUMULATE : 0u) |
                         (w->flags & MAQ_REC_BIAS ? MAQ_OP_BIAS : 0u));
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

static struct maq_op stream_of(double bytes)
{
    struct maq_op op = {.kind = MAQ_OP_ELEMENTWISE, .dtype = MAQ_FP32};
    op.d[0] = bytes >= 2 ? (int64_t)(bytes / 2 < MOST_NS ? bytes / 2 : MOST_NS) : 1;
    op.d[1] = op.d[2] = 1;
    return op;
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

bool maq_price_map(struct maq_op *out, const struct maq_rec_op *w, const struct maq_device *device)
{
    switch (w->kind) {
    case MAQ_REC_GEMM:
        *out = gemm_of(w);
        return true;
    case MAQ_REC_GROUPED_GEMM:
        *out = (struct maq_op){.kind = MAQ_OP_GROUPED_GEMM, .dtype = type_of(w->type)};
        for (int i = 0; i < 5; i++)
            out->d[i] = i == 4 ? (w->d[4] > 0 ? w->d[4] : 0) : at_least_one(w->d[i]);
        return true;
    case MAQ_REC_ATTENTION:
    case MAQ_REC_ATTENTION_BWD:
        *out = attention_of(w);
        return true;
    case MAQ_REC_NORM:
    case MAQ_REC_NORM_BWD:
        *out = (struct maq_op){.kind = w->kind == MAQ_REC_NORM ? MAQ_OP_NORM : MAQ_OP_NORM_BWD,
                               .dtype = type_of(w->type),
                               .d = {at_least_one(w->d[0]), at_least_one(w->d[1])}};
        return true;
    case MAQ_REC_CONV: {
        int64_t side = at_least_one((int64_t)(cbrt((double)at_least_one(w->d[0]) / 2) + 0.5));
        *out = (struct maq_op){.kind = MAQ_OP_GEMM, .dtype = type_of(w->type), .d = {side, side, side}};
        return true;
    }
    case MAQ_REC_KERNEL:
        *out = stream_of(kernel_bytes(w, device));
        return false;
    default:
        *out = stream_of((double)w->bytes);
        return false;
    }
}

struct maq_price maq_price_op(const struct maq_pricer *p, const struct maq_rec_op *what, const char *name,
                              const struct maq_device *device)
{
    struct maq_op op;
    if (p->kernels && name) {
        double ns = maq_replay_kernels_find(p->kernels, name, what->name_bytes, what->grid);
        if (ns >= 0)
            return (struct maq_price){.ns = (uint64_t)(ns + 0.5), .provider = MAQ_PROVIDER_MEASURED};
    }
    bool known = maq_price_map(&op, what, device);
    struct maq_price price = answer(maq_cost_op(p->costs, &op, device));
    if (!known) {
        price.modelled = true;
        price.error = KERNEL_ERROR;
        price.provider = MAQ_PROVIDER_ANALYTICAL;
    }
    return price;
}

struct maq_price maq_price_copy(const struct maq_pricer *p, uint32_t copy, bool set, uint64_t bytes,
                                const struct maq_device *device)
{
    double n = bytes < (uint64_t)MOST_NS ? (double)bytes : MOST_NS;
    struct maq_op op = stream_of(set ? n : 2 * n);
    if (bytes == 0)
        return (struct maq_price){.provider = MAQ_PROVIDER_ANALYTICAL};
    if (!set && (copy == MAQ_REC_H2D || copy == MAQ_REC_D2H || copy == MAQ_REC_H2H))
        op = (struct maq_op){.kind = MAQ_OP_HOST_COPY, .d = {(int64_t)n}};
    if (!set && copy == MAQ_REC_P2P) {
        double rate = device->domain_bps > 0 ? device->domain_bps : device->host_bps;
        double s = device->domain_latency_s + (rate > 0 ? n / rate : 0);
        return answer((struct maq_cost){.seconds = s, .error = 0.3f, .provider = MAQ_PROVIDER_ANALYTICAL});
    }
    return answer(maq_cost_op(p->costs, &op, device));
}
