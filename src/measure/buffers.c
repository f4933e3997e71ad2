/* SPDX-License-Identifier: Apache-2.0 */
/*
 * buffers.c - the tensors of an operator, as a backend allocates them and as the plan counts them.
 *
 * Order of the buffers of each kind:
 *
 *   gemm, grouped_gemm   A  B  D  bias
 *   attention            Q  K  V  O  row sums;   backward: Q K V O row sums dO dQ dK dV
 *   norm                 x  weights  y  row sums;   backward: dy x weights dx dweights row sums
 *   activation           in out;   backward: dout in din
 *   softmax              in out;   backward: dy y dx
 *   elementwise          in out         rope  x  table
 *   embedding            tokens table out;   backward: tokens dout dtable
 *   cross_entropy        logits labels losses;   backward: the same
 *   permute              in out rows           quantize  in out scales
 *   optimizer            state                 host_copy device host
 *   collectives          send receive
 *
 * Some operators say too little to be run: their shapes are means (an uneven grouped product, a window, packed
 * documents), or no kernel of theirs is at hand.
 */
#include <string.h>

#include "base/check.h"
#include "cost/measured/op_key.h"
#include "measure/plan.h"

#define WORKSPACE_BYTES (64.0 * 1024 * 1024) /* as PyTorch gives cuBLASLt on Hopper and later, doubled */

static double at_least_one(int64_t d)
{
    return d > 0 ? (double)d : 1.0;
}

static void add(struct maq_profile_case *c, double bytes)
{
    MAQ_ASSERT(c->n_buffers < MAQ_PROFILE_BUFFERS);
    c->bytes[c->n_buffers++] = bytes;
}

static double element(const struct maq_op *op)
{
    return maq_dtype_bytes((enum maq_dtype)op->dtype);
}

static double written(const struct maq_op *op) /* 8- and 4-bit types come out in 16 bits */
{
    return element(op) < 2 ? 2 : element(op);
}

static const char *fill_gemm(struct maq_profile_case *c)
{
    const struct maq_op *op = &c->op;
    double m = (double)op->d[0], n = (double)op->d[1], k = (double)op->d[2], count = at_least_one(op->d[3]);
    double out = op->flags & (MAQ_OP_ACCUMULATE | MAQ_OP_OUT_FP32) ? 4 : written(op);
    if (op->dtype == MAQ_FP4 || op->dtype == MAQ_FP6)
        return "products of 4- and 6-bit types are not measured";
    if (op->kind == MAQ_OP_GEMM && op->flags & (MAQ_OP_BLOCKS | MAQ_OP_WEIGHT8 | MAQ_OP_WEIGHT4))
        return "blockwise scales and weights of other types are not measured";
    if (op->kind == MAQ_OP_GROUPED_GEMM && op->d[4] > 0)
        return "only the busiest group of an uneven product is known";
    add(c, count * m * k * element(op));
    add(c, count * k * n * element(op));
    add(c, count * m * n * out);
    add(c, n * 4);
    c->workspace_bytes = WORKSPACE_BYTES;
    return NULL;
}

/* Sequences whose mean of keys per query is the operator's: s without a mask, (s + 1) / 2, halves up, if causal. */
static bool find_sequences(struct maq_profile_case *c)
{
    const struct maq_op *op = &c->op;
    int64_t tokens = op->d[0], keys = op->d[1];
    int64_t from = op->flags & MAQ_OP_CAUSAL ? 2 * keys - 2 : keys, to = op->flags & MAQ_OP_CAUSAL ? 2 * keys : keys;
    for (int64_t s = to; s >= from && s > 0; s--) {
        int64_t mean = op->flags & MAQ_OP_CAUSAL ? (s + 2) / 2 : s; /* (s + 1) / 2, halves up */
        if (mean == keys && tokens % s == 0) {
            c->seq = s;
            c->batch = tokens / s;
            return true;
        }
    }
    return false;
}

static const char *fill_attention(struct maq_profile_case *c)
{
    const struct maq_op *op = &c->op;
    double tokens = (double)op->d[0], heads = (double)op->d[2], kv = (double)op->d[3];
    double q = tokens * heads * (double)op->d[4] * element(op), o = tokens * heads * (double)op->d[5] * written(op);
    double k = tokens * kv * (double)op->d[4] * element(op), v = tokens * kv * (double)op->d[5] * element(op);
    if (op->flags & MAQ_OP_FLASH2)
        return "FlashAttention-2's kernels are not in this program";
    if (op->flags & (MAQ_OP_WINDOW | MAQ_OP_KV_FP8))
        return "windows and 8-bit keys are not measured";
    if (op->queries > 0)
        return "decoding and prefixes are not measured";
    if (op->dtype != MAQ_BF16 && op->dtype != MAQ_FP16)
        return "attention is measured in 16 bits only";
    if (!find_sequences(c))
        return "its keys are a mean over windows or packed documents";
    add(c, q);
    add(c, k);
    add(c, v);
    add(c, o);
    add(c, tokens * heads * 4);
    if (op->kind == MAQ_OP_ATTENTION_BWD) {
        add(c, o);
        add(c, q);
        add(c, k);
        add(c, v);
    }
    c->workspace_bytes = op->kind == MAQ_OP_ATTENTION_BWD ? 2 * tokens * heads * (double)op->d[4] * 4 : WORKSPACE_BYTES;
    return NULL;
}

/* Kinds that memory bounds: rows x columns. */
static const char *fill_rows(struct maq_profile_case *c)
{
    const struct maq_op *op = &c->op;
    double rows = (double)op->d[0], columns = (double)op->d[1], n = rows * columns, e = element(op);
    double weights = columns * e * (op->flags & MAQ_OP_BIAS ? 2 : 1);
    bool back = op->kind == MAQ_OP_NORM_BWD || op->kind == MAQ_OP_SOFTMAX_BWD;
    switch (op->kind) {
    case MAQ_OP_NORM:
    case MAQ_OP_NORM_BWD:
        add(c, n * e);
        if (back)
            add(c, n * e);
        add(c, weights);
        add(c, n * e);
        if (back) {
            add(c, columns * 8);
            c->workspace_bytes = MAQ_PROFILE_PARTS * columns * 4;
        }
        add(c, 4 * rows);
        break;
    case MAQ_OP_SOFTMAX:
    case MAQ_OP_SOFTMAX_BWD:
        add(c, n * e);
        if (back)
            add(c, n * e);
        add(c, n * e);
        break;
    case MAQ_OP_ROPE:
        add(c, n * e);
        add(c, rows * columns * 4);
        break;
    case MAQ_OP_CROSS_ENTROPY:
    case MAQ_OP_CROSS_ENTROPY_BWD:
        add(c, n * e);
        add(c, 8 * rows);
        add(c, 4 * rows);
        break;
    case MAQ_OP_PERMUTE:
        add(c, n * e);
        add(c, n * e);
        add(c, 4 * rows);
        break;
    default:
        return "it is no kernel";
    }
    return NULL;
}

static const char *fill_other(struct maq_profile_case *c)
{
    const struct maq_op *op = &c->op;
    double a = (double)op->d[0], b = (double)op->d[1], d2 = (double)op->d[2], e = element(op);
    switch (op->kind) {
    case MAQ_OP_ACTIVATION:
        add(c, a * b * e);
        add(c, a * d2 * e);
        break;
    case MAQ_OP_ACTIVATION_BWD:
        add(c, a * d2 * e);
        add(c, a * b * e);
        add(c, a * b * e);
        break;
    case MAQ_OP_ELEMENTWISE:
        add(c, a * b);
        add(c, a * d2);
        break;
    case MAQ_OP_EMBEDDING:
        add(c, 8 * a);
        add(c, d2 * b * e);
        add(c, a * b * e);
        break;
    case MAQ_OP_EMBEDDING_BWD:
        add(c, 8 * a);
        add(c, a * b * e);
        add(c, d2 * b * e);
        break;
    case MAQ_OP_QUANTIZE:
        if (op->dtype != MAQ_FP8 && op->dtype != MAQ_INT8)
            return "quantisation to less than 8 bits is not measured";
        add(c, a * b * 2);
        add(c, a * b * at_least_one(op->d[2]));
        add(c, a * b / 32 * at_least_one(op->d[2]) + 4);
        break;
    case MAQ_OP_OPTIMIZER:
        add(c, a * (b > d2 ? b : d2));
        break;
    case MAQ_OP_HOST_COPY:
        add(c, a);
        add(c, a);
        break;
    default:
        return "it is no kernel";
    }
    return NULL;
}

static const char *fill_coll(struct maq_profile_case *c)
{
    double ranks = (double)c->coll.at.size, bytes = c->coll.bytes;
    if (!maq_coll_is_local(&c->coll) || c->coll.at.per_node != c->coll.at.size)
        return "it leaves the node";
    switch ((enum maq_coll_kind)c->coll.kind) {
    case MAQ_COLL_ALL_REDUCE:
    case MAQ_COLL_BROADCAST:
    case MAQ_COLL_ALL_TO_ALL:
    case MAQ_COLL_SEND_RECV:
        add(c, bytes);
        add(c, bytes);
        return NULL;
    case MAQ_COLL_ALL_GATHER:
        add(c, bytes / ranks);
        add(c, bytes);
        return NULL;
    case MAQ_COLL_REDUCE_SCATTER:
        add(c, bytes);
        add(c, bytes / ranks);
        return NULL;
    case MAQ_COLL_DISPATCH:
    case MAQ_COLL_COMBINE:
    case MAQ_COLL_KIND_COUNT:
        break;
    }
    return "fused expert exchange is not in NCCL";
}

const char *maq_profile_fill_case(struct maq_profile_case *c)
{
    c->n_buffers = 0;
    if (c->is_coll)
        return fill_coll(c);
    bool softmax = c->op.kind == MAQ_OP_SOFTMAX || c->op.kind == MAQ_OP_SOFTMAX_BWD;
    if (c->op.kind != MAQ_OP_GEMM && c->op.flags & MAQ_OP_UNFUSED) /* a product has other words for these bits */
        return "several kernels of a framework stand behind it";
    if ((c->op.kind != MAQ_OP_GEMM && c->op.flags & MAQ_OP_DROPOUT) || (softmax && c->op.d[2] > 0))
        return "dropout is not measured";
    switch ((enum maq_op_kind)c->op.kind) {
    case MAQ_OP_GEMM:
    case MAQ_OP_GROUPED_GEMM:
        return fill_gemm(c);
    case MAQ_OP_ATTENTION:
    case MAQ_OP_ATTENTION_BWD:
        return fill_attention(c);
    case MAQ_OP_SOFTMAX:
    case MAQ_OP_SOFTMAX_BWD:
    case MAQ_OP_NORM:
    case MAQ_OP_NORM_BWD:
    case MAQ_OP_ROPE:
    case MAQ_OP_CROSS_ENTROPY:
    case MAQ_OP_CROSS_ENTROPY_BWD:
    case MAQ_OP_PERMUTE:
        return fill_rows(c);
    case MAQ_OP_ACTIVATION:
    case MAQ_OP_ACTIVATION_BWD:
    case MAQ_OP_ELEMENTWISE:
    case MAQ_OP_EMBEDDING:
    case MAQ_OP_EMBEDDING_BWD:
    case MAQ_OP_QUANTIZE:
    case MAQ_OP_OPTIMIZER:
    case MAQ_OP_HOST_COPY:
        return fill_other(c);
    case MAQ_OP_ROUTER:
    case MAQ_OP_CONV1D:
    case MAQ_OP_CONV1D_BWD:
    case MAQ_OP_SSM_SCAN:
    case MAQ_OP_SSM_SCAN_BWD:
    case MAQ_OP_DELTA_RULE:
    case MAQ_OP_DELTA_RULE_BWD:
    case MAQ_OP_SELECTIVE_SCAN:
    case MAQ_OP_SELECTIVE_SCAN_BWD:
        return "there is no kernel of it in this program";
    case MAQ_OP_EXPERTS:
    case MAQ_OP_MLA_BLOCK:
        return "it is a block of several operators";
    case MAQ_OP_NONE:
    case MAQ_OP_GAP:
    case MAQ_OP_KIND_COUNT:
        break;
    }
    return "it is no kernel";
}
