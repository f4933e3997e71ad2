/* SPDX-License-Identifier: Apache-2.0 */
/*
 * composite.c - operators that are made of others: what the serving engines run as one call.
 *
 *   EXPERTS    the experts of a rank: rows gathered by expert, up (and gate) projection, activation, down projection,
 *              rows weighted and scattered back. Experts without a row are not touched, their weights not read.
 *   MLA_BLOCK  multi-head latent attention (DeepSeek-V2, arXiv 2405.04434, section 2.1) with its projections and norms.
 *              Many queries: keys and values are expanded per head. One query: the expansion is absorbed into queries
 *              and outputs, and attention runs on the latent, one key/value head for all.
 */
#include <math.h>

#include "cost/analytical/analytical.h"
#include "cost/analytical/composite.h"

/* Widths of DeepSeek-V2 and -V3: the parts of a head with and without rotary embedding, and its values. */
#define NOPE 128
#define ROPE 64
#define VALUE 128

static void add(struct maq_op_list *list, struct maq_op op)
{
    list->at[list->n++] = op;
}

static struct maq_op make(const struct maq_op *of, enum maq_op_kind kind, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return (struct maq_op){.kind = (uint16_t)kind, .dtype = of->dtype, .d = {a, b, c, d}};
}

/* d[i], within what products of a few of them can hold. */
static int64_t size_of(const struct maq_op *op, unsigned i)
{
    const int64_t most = (int64_t)1 << 40;
    return op->d[i] < 0 ? 0 : op->d[i] < most ? op->d[i] : most;
}

/* Experts with at least one row: all when rows are dealt evenly, fewer when there are fewer rows than experts. */
static int64_t touched(int64_t rows, int64_t groups)
{
    return rows < groups ? (rows > 0 ? rows : 1) : groups;
}

static void experts(struct maq_op_list *list, const struct maq_op *op)
{
    int64_t rows = size_of(op, 0), hidden = size_of(op, 1), ffn = size_of(op, 2),
            groups = size_of(op, 3) > 0 ? size_of(op, 3) : 1;
    int64_t used = touched(rows, groups), mean = (rows + used / 2) / used,
            up = (op->flags & MAQ_OP_GATED) ? 2 * ffn : ffn;
    uint8_t narrow = op->flags & (MAQ_OP_BLOCKS | MAQ_OP_WEIGHT8 | MAQ_OP_WEIGHT4);
    bool quantized = (unsigned)op->dtype < MAQ_DTYPE_COUNT && maq_dtype_bytes((enum maq_dtype)op->dtype) < 2.0;
    struct maq_op gather = make(op, MAQ_OP_PERMUTE, rows, hidden, 0, 0);
    struct maq_op gemm = make(op, MAQ_OP_GROUPED_GEMM, mean > 0 ? mean : 1, up, hidden, used);
    struct maq_op act = make(op, MAQ_OP_ACTIVATION, rows, up, ffn, 0);

    gather.dtype = act.dtype = MAQ_BF16;
    act.flags = op->flags & MAQ_OP_GATED;
    gemm.flags = narrow;
    gemm.d[4] = size_of(op, 4) > gemm.d[0] ? size_of(op, 4) : 0;
    add(list, gather);
    if (quantized)
        add(list, make(op, MAQ_OP_QUANTIZE, rows, hidden, 1, 0));
    add(list, gemm);
    add(list, act);
    if (quantized)
        add(list, make(op, MAQ_OP_QUANTIZE, rows, ffn, 1, 0));
    gemm.d[1] = hidden;
    gemm.d[2] = ffn;
    add(list, gemm);
    add(list, gather);
}

static struct maq_op projection(const struct maq_op *op, int64_t m, int64_t n, int64_t k, int64_t batch)
{
    struct maq_op gemm = make(op, MAQ_OP_GEMM, m, n, k, batch);
    gemm.flags = op->flags & MAQ_OP_BLOCKS;
    return gemm;
}

static void mla_block(struct maq_op_list *list, const struct maq_op *op)
{
    int64_t tokens = size_of(op, 0), heads = size_of(op, 2), hidden = size_of(op, 3), q_lora = size_of(op, 4),
            kv_lora = size_of(op, 5);
    bool absorbed = op->queries == 1;
    struct maq_op attention = {.kind = MAQ_OP_ATTENTION, .dtype = MAQ_BF16, .queries = op->queries};
    int64_t down = q_lora + kv_lora + ROPE;

    add(list, projection(op, tokens, down, hidden, 1));
    add(list, make(op, MAQ_OP_NORM, tokens, down, 0, 0));
    add(list, projection(op, tokens, heads * (NOPE + ROPE), q_lora, 1));
    attention.flags = op->flags & MAQ_OP_KV_FP8;
    attention.d[0] = tokens;
    attention.d[1] = size_of(op, 1);
    attention.d[2] = heads;
    if (absorbed) {
        struct maq_op expand = {.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {tokens, kv_lora, NOPE, heads}};
        add(list, expand);
        attention.d[3] = 1;
        attention.d[4] = kv_lora + ROPE;
        attention.d[5] = kv_lora;
        add(list, attention);
        expand.d[1] = VALUE;
        expand.d[2] = kv_lora;
        add(list, expand);
    } else {
        add(list, projection(op, tokens, heads * (NOPE + VALUE), kv_lora, 1));
        attention.flags |= MAQ_OP_CAUSAL;
        attention.d[3] = heads;
        attention.d[4] = NOPE + ROPE;
        attention.d[5] = VALUE;
        add(list, attention);
    }
    add(list, projection(op, tokens, hidden, heads * VALUE, 1));
}

bool maq__op_parts(struct maq_op_list *out, const struct maq_op *op)
{
    out->n = 0;
    if (op->d[0] <= 0)
        return op->kind == MAQ_OP_EXPERTS || op->kind == MAQ_OP_MLA_BLOCK;
    if (op->kind == MAQ_OP_EXPERTS)
        experts(out, op);
    else if (op->kind == MAQ_OP_MLA_BLOCK)
        mla_block(out, op);
    else
        return false;
    return true;
}
