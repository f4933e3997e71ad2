/* SPDX-License-Identifier: Apache-2.0 */
/*
 * op.c - what an operator does: exact counts, independent of the device.
 *
 * matrix_flop counts 2 per multiply-add on the matrix units. vector_flop counts one per scalar operation of the
 * textbook formula, a transcendental as one, too. bytes is compulsory traffic: every operand read once, every result
 * written once, nothing kept in a cache between operators. What a kernel adds to that (tiles read again, passes of
 * unfused kernels) belongs to the cost.
 *
 *   GEMM           2 m n k;  (m k + k n) e + m n o       e, o: width of operands and output; accumulating reads and
 *                                                        writes outputs of 4 bytes
 *   ATTENTION      2 T K h (q + v)                       T queries, K mean keys: scores and values
 *   ATTENTION_BWD  2 T K h (3 q + 2 v)                   scores again, dV, dP, dQ, dK
 *   SSM_SCAN       per token  2 Q g N + 2 Q h P + 4 h P N
 *                  Q chunk, g groups, N state, h heads, P head width: scores inside the chunk, their product with X,
 *                  the chunk's state, its use [Dao and Gu 2024, arXiv:2405.21060, section 6]
 *   DELTA_RULE     per token and head  2 C (3 a + 2 v) + 6 a v + C^2 / 3
 *                  C chunk, a key width, v value width: K K^T, Q K^T, W, U, the chunk's output, the state's update and
 *                  two uses, the triangular inverse [Yang et al. 2024, arXiv:2412.06464, section 3]
 *   SELECTIVE_SCAN vector operations only: 9 per token, channel and state [Gu and Dao 2023, arXiv:2312.00752]; backward twice that
 *   backward of both other scans: 2.5 times (two products for each one, and half of the forward again)
 */
#include "maquette/cost.h"

#include "cost/analytical/analytical.h"
#include "cost/analytical/composite.h"

static const char *const names[] = {
#define MAQ_OP_NAME(kind, text) [MAQ_OP_##kind] = text,
    MAQ_OP_LIST(MAQ_OP_NAME)
#undef MAQ_OP_NAME
};

const char *maq_op_kind_name(enum maq_op_kind kind)
{
    return (unsigned)kind < MAQ_OP_KIND_COUNT ? names[kind] : "unknown";
}

static double element_bytes(enum maq_dtype dtype)
{
    return (unsigned)dtype < MAQ_DTYPE_COUNT ? maq_dtype_bytes(dtype) : 2.0;
}

double maq__out_bytes(enum maq_dtype dtype)
{
    double e = element_bytes(dtype);
    return e < 2.0 ? 2.0 : e; /* products of 8- and 4-bit types come out in 16 bits */
}

double maq__weight_bytes(const struct maq_op *op)
{
    bool product = op->kind == MAQ_OP_GEMM || op->kind == MAQ_OP_GROUPED_GEMM;
    if (product && op->flags & MAQ_OP_WEIGHT4)
        return 0.5;
    return product && op->flags & MAQ_OP_WEIGHT8 ? 1.0 : element_bytes((enum maq_dtype)op->dtype);
}

/* Vector operations per element of the textbook formulas. */
#define SOFTMAX_FLOP 5.0 /* scale, maximum, difference, exponential, sum */
#define NORM_FLOP 5.0
#define ADAM_FLOP 12.0

static struct maq_work gemm_work(const struct maq_op *op)
{
    double m = maq__count(op, 0), n = maq__count(op, 1), k = maq__count(op, 2), count = maq__count(op, 3);
    enum maq_dtype dtype = (enum maq_dtype)op->dtype;
    double e = element_bytes(dtype), out = maq__out_bytes(dtype), weight = maq__weight_bytes(op);

    if (count == 0.0)
        count = 1.0;
    if (op->flags & MAQ_OP_ACCUMULATE)
        out = 8.0;
    else if (op->flags & MAQ_OP_OUT_FP32)
        out = 4.0;
    return (struct maq_work){
        .matrix_flop = 2.0 * m * n * k * count,
        .vector_flop = (op->flags & (MAQ_OP_BIAS | MAQ_OP_ACCUMULATE)) ? m * n * count : 0.0,
        .bytes = count * (m * k * e + k * n * weight + m * n * out +
                          ((op->flags & MAQ_OP_BIAS) ? n * maq__out_bytes(dtype) : 0.0)),
    };
}

static struct maq_work attention_work(const struct maq_op *op, bool backward)
{
    double tokens = maq__count(op, 0), keys = maq__count(op, 1), heads = maq__count(op, 2),
           kv_heads = maq__count(op, 3);
    double qk = maq__count(op, 4), v = maq__count(op, 5);
    double e = element_bytes((enum maq_dtype)op->dtype), out = maq__out_bytes((enum maq_dtype)op->dtype);
    double kv_rows = tokens, scores = tokens * keys * heads;

    if (op->queries > 0) {
        double reach = keys + ((op->flags & MAQ_OP_CAUSAL) ? ((double)op->queries - 1.0) / 2.0 : 0.0);
        kv_rows = tokens / (double)op->queries * reach;
        if (op->flags & MAQ_OP_WINDOW && op->queries > 1) /* the window slides over all of them */
            kv_rows = maq__max(kv_rows, tokens);
    }
    double kv_e = op->flags & MAQ_OP_KV_FP8 ? 1.0 : e;
    /* one latent is key and value at once (absorbed MLA): it is read once */
    double kv_width = kv_heads == 1.0 && v < qk && qk > 256.0 ? qk : qk + v;
    double q_bytes = tokens * heads * qk * e, kv_bytes = kv_rows * kv_heads * kv_width * kv_e;
    double o_bytes = tokens * heads * v * out, lse_bytes = tokens * heads * 4.0;
    if (!backward)
        return (struct maq_work){2.0 * scores * (qk + v), SOFTMAX_FLOP * scores,
                                 q_bytes + kv_bytes + o_bytes + lse_bytes};
    /* reads q, k, v, o, do and the row sums; writes dq, dk, dv */
    double grads = tokens * heads * qk * out + kv_rows * kv_heads * (qk + v) * out;
    return (struct maq_work){2.0 * scores * (3.0 * qk + 2.0 * v), 8.0 * scores,
                             q_bytes + kv_bytes + 2.0 * o_bytes + lse_bytes + grads};
}

static struct maq_work scan_work(const struct maq_op *op)
{
    double tokens = maq__count(op, 0), heads = maq__count(op, 1), width = maq__count(op, 2);
    double groups = maq__count(op, 3), state = maq__count(op, 4), chunk = maq__count(op, 5);
    double e = element_bytes((enum maq_dtype)op->dtype);
    bool ssm = op->kind == MAQ_OP_SSM_SCAN || op->kind == MAQ_OP_SSM_SCAN_BWD;
    bool backward = op->kind == MAQ_OP_SSM_SCAN_BWD || op->kind == MAQ_OP_DELTA_RULE_BWD;
    double flop, states;

    if (chunk == 0.0)
        chunk = ssm ? 128.0 : 64.0;
    if (ssm)
        flop = 2.0 * chunk * groups * state + 2.0 * chunk * heads * width + 4.0 * heads * width * state;
    else
        flop = heads * (2.0 * chunk * (3.0 * state + 2.0 * width) + 6.0 * state * width + chunk * chunk / 3.0);
    states = 2.0 * heads * width * state * 4.0 / chunk; /* one state per chunk, written and read, FP32 */
    /* in: x, two projections of the state, two scalars per head; out: y */
    double bytes = e * (2.0 * heads * width + 2.0 * groups * state) + 8.0 * heads + states;
    double scale = backward ? 2.5 : 1.0, traffic = backward ? 2.0 : 1.0;
    return (struct maq_work){scale * tokens * flop, scale * tokens * heads * (width + 2.0 * chunk),
                             traffic * tokens * bytes};
}

/* Per token, channel and state: decay and its exponential, two products into the state, its use. A channel's input, its step and its
 * output besides, and the two projections of the state that all channels share. Backward recomputes the states. */
#define SELECTIVE_FLOP 9.0

static struct maq_work selective_work(const struct maq_op *op)
{
    double tokens = maq__count(op, 0), channels = maq__count(op, 1), state = maq__count(op, 2);
    double e = element_bytes((enum maq_dtype)op->dtype), scale = op->kind == MAQ_OP_SELECTIVE_SCAN_BWD ? 2.0 : 1.0;
    return (struct maq_work){0, scale * SELECTIVE_FLOP * tokens * channels * state,
                             scale * tokens * e * (3.0 * channels + 2.0 * state)};
}

/* Row-wise kinds: per element of rows x columns. */
static struct maq_work row_work(const struct maq_op *op)
{
    double rows = maq__count(op, 0), columns = maq__count(op, 1), n = rows * columns;
    double e = element_bytes((enum maq_dtype)op->dtype), mask = (op->flags & MAQ_OP_DROPOUT) ? 1.0 : 0.0;
    double weights = columns * e * ((op->flags & MAQ_OP_BIAS) ? 2.0 : 1.0);

    switch (op->kind) {
    case MAQ_OP_SOFTMAX:
        return (struct maq_work){0, SOFTMAX_FLOP * n, n * (2.0 * e + maq__max(mask, op->d[2] > 0 ? 1.0 : 0.0))};
    case MAQ_OP_SOFTMAX_BWD:
        return (struct maq_work){0, 4.0 * n, n * (3.0 * e + maq__max(mask, op->d[2] > 0 ? 1.0 : 0.0))};
    case MAQ_OP_NORM:
        return (struct maq_work){0, NORM_FLOP * n, 2.0 * n * e + weights + 4.0 * rows};
    case MAQ_OP_NORM_BWD:
        return (struct maq_work){0, 2.0 * NORM_FLOP * n, 3.0 * n * e + 2.0 * weights + 4.0 * rows};
    case MAQ_OP_ROPE:
        return (struct maq_work){0, 3.0 * n, 2.0 * n * e};
    case MAQ_OP_CROSS_ENTROPY: /* writes exp(logit - maximum) for the backward pass */
        return (struct maq_work){0, SOFTMAX_FLOP * n, 2.0 * n * e + 12.0 * rows};
    case MAQ_OP_CROSS_ENTROPY_BWD:
        return (struct maq_work){0, 2.0 * n, 2.0 * n * e + 12.0 * rows};
    case MAQ_OP_PERMUTE:
        return (struct maq_work){0, 0, 2.0 * n * e + 4.0 * rows};
    default:
        return (struct maq_work){0, 0, 0};
    }
}

static struct maq_work activation_work(const struct maq_op *op, bool backward)
{
    double rows = maq__count(op, 0), in = maq__count(op, 1), out = maq__count(op, 2);
    double e = element_bytes((enum maq_dtype)op->dtype), mask = (op->flags & MAQ_OP_DROPOUT) ? rows * out : 0.0;

    if (!backward)
        return (struct maq_work){0, rows * out * ((op->flags & MAQ_OP_GATED) ? 6.0 : 5.0),
                                 rows * (in + out) * e + mask};
    return (struct maq_work){0, rows * in * 6.0, rows * (2.0 * in + out) * e + mask};
}

static struct maq_work other_work(const struct maq_op *op)
{
    double a = maq__count(op, 0), b = maq__count(op, 1), c = maq__count(op, 2);
    double e = element_bytes((enum maq_dtype)op->dtype);

    switch (op->kind) {
    case MAQ_OP_ELEMENTWISE:
        return (struct maq_work){0, a, a * (b + c) + ((op->flags & MAQ_OP_DROPOUT) ? a : 0.0)};
    case MAQ_OP_EMBEDDING: /* indices are 8 bytes */
        return (struct maq_work){0, 0, 2.0 * a * b * e + 8.0 * a};
    case MAQ_OP_EMBEDDING_BWD: /* reads the gradient, clears the table's, adds the touched rows */
        return (struct maq_work){0, a * b, a * b * e + c * b * e + 2.0 * maq__min(a, c) * b * e + 8.0 * a};
    case MAQ_OP_ROUTER: /* scores in, probabilities and the map out, FP32 */
        return (struct maq_work){0, a * b * (SOFTMAX_FLOP + c), a * b * 8.0 + a * c * 8.0};
    case MAQ_OP_QUANTIZE: { /* scales: one FP32 per 128 in 8 bits, one byte per 16 in 4 bits */
        double copies = c > 1.0 ? c : 1.0, scale = e < 1.0 ? 1.0 / 16.0 : 4.0 / 128.0;
        return (struct maq_work){0, 3.0 * a * b, a * b * (2.0 + copies * (e + scale))};
    }
    case MAQ_OP_CONV1D:
        return (struct maq_work){0, 2.0 * a * b * c, 2.0 * a * b * e + b * c * e};
    case MAQ_OP_CONV1D_BWD:
        return (struct maq_work){0, 4.0 * a * b * c, 3.0 * a * b * e + 2.0 * b * c * e};
    case MAQ_OP_OPTIMIZER:
        return (struct maq_work){0, ADAM_FLOP * a, a * (b + c)};
    case MAQ_OP_HOST_COPY:
        return (struct maq_work){0, 0, a};
    default:
        return (struct maq_work){0, 0, 0};
    }
}

/* Grouped: the mean group times the number of groups, each with weights of its own. */
static struct maq_work grouped_work(const struct maq_op *op)
{
    struct maq_op all = *op;
    all.d[3] = op->d[3] > 1 ? op->d[3] : 1;
    all.d[4] = 0;
    return gemm_work(&all);
}

static struct maq_work work_of_parts(const struct maq_op *op)
{
    struct maq_op_list parts;
    struct maq_work sum = {0, 0, 0};
    if (!maq__op_parts(&parts, op))
        return sum;
    for (uint32_t i = 0; i < parts.n; i++) {
        struct maq_work w = maq_op_work(&parts.at[i]);
        sum.matrix_flop += w.matrix_flop;
        sum.vector_flop += w.vector_flop;
        sum.bytes += w.bytes;
    }
    return sum;
}

struct maq_work maq_op_work(const struct maq_op *op)
{
    switch ((enum maq_op_kind)op->kind) {
    case MAQ_OP_EXPERTS:
    case MAQ_OP_MLA_BLOCK:
        return work_of_parts(op);
    case MAQ_OP_GEMM:
        return gemm_work(op);
    case MAQ_OP_GROUPED_GEMM:
        return grouped_work(op);
    case MAQ_OP_ATTENTION:
        return attention_work(op, false);
    case MAQ_OP_ATTENTION_BWD:
        return attention_work(op, true);
    case MAQ_OP_SSM_SCAN:
    case MAQ_OP_SSM_SCAN_BWD:
    case MAQ_OP_DELTA_RULE:
    case MAQ_OP_DELTA_RULE_BWD:
        return scan_work(op);
    case MAQ_OP_SELECTIVE_SCAN:
    case MAQ_OP_SELECTIVE_SCAN_BWD:
        return selective_work(op);
    case MAQ_OP_ACTIVATION:
        return activation_work(op, false);
    case MAQ_OP_ACTIVATION_BWD:
        return activation_work(op, true);
    case MAQ_OP_SOFTMAX:
    case MAQ_OP_SOFTMAX_BWD:
    case MAQ_OP_NORM:
    case MAQ_OP_NORM_BWD:
    case MAQ_OP_ROPE:
    case MAQ_OP_CROSS_ENTROPY:
    case MAQ_OP_CROSS_ENTROPY_BWD:
    case MAQ_OP_PERMUTE:
        return row_work(op);
    case MAQ_OP_ELEMENTWISE:
    case MAQ_OP_EMBEDDING:
    case MAQ_OP_EMBEDDING_BWD:
    case MAQ_OP_ROUTER:
    case MAQ_OP_QUANTIZE:
    case MAQ_OP_CONV1D:
    case MAQ_OP_CONV1D_BWD:
    case MAQ_OP_OPTIMIZER:
    case MAQ_OP_HOST_COPY:
        return other_work(op);
    case MAQ_OP_NONE:
    case MAQ_OP_GAP:
    case MAQ_OP_KIND_COUNT:
        break;
    }
    return (struct maq_work){0, 0, 0};
}
