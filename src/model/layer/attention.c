/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention.c - softmax attention: multi-head, grouped-query and multi-query.
 *
 *   linear_qkv    hidden -> heads x d + kv_heads x (d + v)          (+ heads x v for an output gate)
 *                 or, with a rank of queries: linear_q_down_proj hidden -> rank, a norm, linear_q_up_proj rank -> heads x d (Step-3)
 *   q/k norm      inside heads, over all heads, or without weights
 *   rope          rope_dim features of each query and key head
 *   core          scores, softmax, values; windowed or chunked; optional sinks (one learned logit per head)
 *   linear_proj   heads x v -> hidden
 *
 * Parameters   hidden (heads d + kv (d + v)) + heads v hidden, biases and norms beside. Order and names: Megatron-
 * LM's SelfAttention (megatron/core/transformer/attention.py).
 */
#include "model/layer/module_list.h"

static void write_qk_norm(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const struct maq_arch_attention *a = &arch->attention;
    int64_t q = a->heads * a->head_dim, k = a->kv_heads * a->head_dim;
    int64_t q_width = q, k_width = k;
    if (a->qk_norm == MAQ_QK_NORM_NONE)
        return;
    if (a->qk_norm == MAQ_QK_NORM_EACH) {
        maq__block_norm(b, "q_layernorm", MAQ_PART_ATTENTION, MAQ_SHARD_HEADS, MAQ_NORM_LAYER_NO_BIAS, q, q);
        maq__block_norm(b, "k_layernorm", MAQ_PART_ATTENTION, MAQ_SHARD_HEADS, MAQ_NORM_LAYER_NO_BIAS, k, k);
        return;
    }
    if (a->qk_norm == MAQ_QK_NORM_HEAD)
        q_width = k_width = a->head_dim;
    else if (a->qk_norm == MAQ_QK_NORM_PLAIN)
        q_width = k_width = 0;
    uint32_t wide = a->qk_norm == MAQ_QK_NORM_WIDE ? MAQ_MODULE_OVER_HEADS : 0;
    maq__block_norm(b, "q_layernorm", MAQ_PART_ATTENTION, MAQ_SHARD_HEADS, arch->norm, q, q_width)->flags |= wide;
    if (!a->shares_kv)
        maq__block_norm(b, "k_layernorm", MAQ_PART_ATTENTION, MAQ_SHARD_HEADS, arch->norm, k, k_width)->flags |= wide;
}

/* Of the smallest square that holds so many tokens. */
static int64_t side_of(int64_t tokens)
{
    int64_t side = 1;
    while (side * side < tokens)
        side++;
    return side;
}

static void write_core(struct maq_block_writer *b, const struct maq_arch_attention *a,
                       const struct maq_arch_layer *layer)
{
    int64_t in = a->heads * a->head_dim + a->kv_heads * (a->head_dim + a->v_dim);
    struct maq_module *core =
        maq__block_plain(b, MAQ_MODULE_ATTENTION, "core_attention", MAQ_PART_CORE_ATTENTION, MAQ_SHARD_HEADS, in,
                         a->heads * a->v_dim, a->dropout ? MAQ_MODULE_DROPOUT : 0u);
    core->params = (a->sinks ? a->heads : 0) + a->core_params;
    if (a->position_bias) /* for each head, a number per distance along both sides of a square of tokens */
        core->params = maq__block_add(
            b, core->params,
            maq__block_mul(b, a->heads, (2 * side_of(layer->chunk) - 1) * (2 * side_of(layer->chunk) - 1)));
    core->u.attention = (struct maq_attention_geometry){
        .heads = (int32_t)a->heads,
        .kv_heads = (int32_t)a->kv_heads,
        .qk_dim = (int32_t)a->head_dim,
        .v_dim = (int32_t)a->v_dim,
        .window = layer->window,
        .chunk = layer->chunk,
        .selected = a->selected,
        .stride = a->stride,
        .shares_kv = a->shares_kv,
        .causal = !a->bidirectional,
        .sinks = a->sinks,
        .dropout = a->dropout,
        .position_bias = a->position_bias,
    };
}

/* Queries through a low rank, keys and values beside it. */
static void write_low_rank(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const struct maq_arch_attention *a = &arch->attention;
    const enum maq_part part = MAQ_PART_ATTENTION;
    maq__block_linear(b, "linear_q_down_proj", part, MAQ_SHARD_SEQUENCE, arch->hidden, a->q_rank, 0);
    maq__block_linear(b, "linear_kv", part, MAQ_SHARD_COLUMN, arch->hidden,
                      a->kv_heads * (a->keys_are_values ? a->head_dim : a->head_dim + a->v_dim),
                      MAQ_MODULE_GATHER_IN | MAQ_MODULE_SHARED_INPUT);
    maq__block_norm(b, "q_layernorm", part, MAQ_SHARD_SEQUENCE, arch->norm, a->q_rank, a->q_rank);
    maq__block_linear(b, "linear_q_up_proj", part, MAQ_SHARD_COLUMN, a->q_rank, a->heads * a->head_dim,
                      MAQ_MODULE_GATHER_IN);
}

/* Features that are projected for a token: queries, keys and values, and a gate that comes with the queries. */
static int64_t projected(const struct maq_arch_attention *a)
{
    int64_t q = a->heads * a->head_dim, k = a->kv_heads * a->head_dim, v = a->kv_heads * a->v_dim;
    int64_t gate = a->gate == MAQ_GATE_WITH_QUERIES ? a->heads * a->v_dim : 0;
    if (a->shares_kv)
        k = v = 0;
    return q + k + (a->keys_are_values ? 0 : v) + gate;
}

void maq__write_gate(struct maq_block_writer *b, const struct maq_architecture *arch, enum maq_gate gate, int64_t heads,
                     int64_t width)
{
    int64_t out = heads * width, gates = gate == MAQ_GATE_HEAD ? heads : out;
    if (gate == MAQ_GATE_NONE)
        return;
    if (gate == MAQ_GATE_FULL || gate == MAQ_GATE_HEAD)
        maq__block_linear(b, "linear_gate", MAQ_PART_ATTENTION, MAQ_SHARD_COLUMN, arch->hidden, gates,
                          MAQ_MODULE_SHARED_INPUT);
    maq__block_plain(b, MAQ_MODULE_GATE, "output_gate", MAQ_PART_ATTENTION, MAQ_SHARD_HEADS, out + gates, out, 0);
}

/* One key for `stride` tokens: two projections, of which the second weighs the first with learned positions, and a norm. */
static void write_pool(struct maq_block_writer *b, const struct maq_architecture *arch, const char *kv,
                       const char *gate, const char *pool, int64_t stride, int64_t width, int64_t out)
{
    const enum maq_part part = MAQ_PART_ATTENTION;
    maq__block_linear(b, kv, part, MAQ_SHARD_SEQUENCE, arch->hidden, width, MAQ_MODULE_SHARED_INPUT);
    maq__block_linear(b, gate, part, MAQ_SHARD_SEQUENCE, arch->hidden, width, MAQ_MODULE_SHARED_INPUT);
    maq__block_plain(b, MAQ_MODULE_GATE, pool, part, MAQ_SHARD_SEQUENCE, 2 * width, width, 0)->params =
        maq__block_add(b, maq__block_mul(b, stride, width), out); /* positions; the norm, over fewer rows */
}

void maq__write_index(struct maq_block_writer *b, const struct maq_architecture *arch, const struct maq_arch_index *x)
{
    const enum maq_part part = MAQ_PART_ATTENTION;
    int64_t queries = x->heads * x->dim, from = x->query_rank > 0 ? x->query_rank : arch->hidden;
    if (x->heads == 0)
        return;
    maq__block_linear(b, "index_q", part, MAQ_SHARD_SEQUENCE, from, queries, MAQ_MODULE_SHARED_INPUT);
    if (x->norms_queries)
        maq__block_norm(b, "index_q_norm", part, MAQ_SHARD_SEQUENCE, x->norm, queries, x->dim);
    if (x->stride > 0) {
        write_pool(b, arch, "index_k", "index_k_gate", "index_k_pool", x->stride, x->key_width, x->dim);
    } else {
        maq__block_linear(b, "index_k", part, MAQ_SHARD_SEQUENCE, arch->hidden, x->dim, MAQ_MODULE_SHARED_INPUT);
        maq__block_norm(b, "index_k_norm", part, MAQ_SHARD_SEQUENCE, x->norm, x->dim, x->dim);
    }
    if (x->weighs)
        maq__block_linear(b, "index_weights", part, MAQ_SHARD_SEQUENCE, arch->hidden, x->heads,
                          MAQ_MODULE_SHARED_INPUT);
    maq__block_plain(b, MAQ_MODULE_INDEXER, "indexer", part, MAQ_SHARD_SEQUENCE,
                     queries + x->dim + (x->weighs ? x->heads : 0), x->selected, 0)
        ->u.attention = (struct maq_attention_geometry){
        .heads = (int32_t)x->heads, .kv_heads = 1, .qk_dim = (int32_t)x->dim, .selected = x->selected, .causal = true};
}

void maq__write_attention(struct maq_block_writer *b, const struct maq_architecture *arch,
                          const struct maq_arch_layer *layer, struct maq_branch branch)
{
    const struct maq_arch_attention *a = &arch->attention;
    int64_t out = a->heads * a->v_dim;
    uint32_t enter = branch.shared_input ? MAQ_MODULE_SHARED_INPUT : MAQ_MODULE_GATHER_IN;
    uint32_t leave = branch.keep_partial ? 0u : MAQ_MODULE_REDUCE_OUT;

    if (a->q_rank > 0)
        write_low_rank(b, arch);
    else
        maq__block_linear(b, "linear_qkv", MAQ_PART_ATTENTION, MAQ_SHARD_COLUMN, a->input > 0 ? a->input : arch->hidden,
                          projected(a), enter | (a->qkv_bias ? MAQ_MODULE_BIAS : 0u));
    maq__block_extras(b, arch, MAQ_PLACE_QUERIES, layer);
    write_qk_norm(b, arch);
    if (layer->rope && a->rope_dim > 0) {
        int64_t rotated = (a->heads + (a->shares_kv ? 0 : a->kv_heads)) * a->rope_dim;
        maq__block_plain(b, MAQ_MODULE_ROPE, "rotary_pos_emb", MAQ_PART_ATTENTION, MAQ_SHARD_HEADS, rotated, rotated,
                         0);
    }
    if (a->stride > 0)
        write_pool(b, arch, "pooled_kv", "pooled_kv_gate", "pooled_kv_pool", a->stride, a->pool_width, a->head_dim);
    maq__write_index(b, arch, &a->index);
    write_core(b, a, layer);
    maq__write_gate(b, arch, a->gate, a->heads, a->v_dim);
    maq__block_extras(b, arch, MAQ_PLACE_CORE, layer);
    if (a->out_groups > 0) {
        maq__block_linear(b, "linear_o_down_proj", MAQ_PART_ATTENTION, MAQ_SHARD_COLUMN, out / a->out_groups,
                          a->out_groups * a->out_rank, 0);
        out = a->out_groups * a->out_rank;
    }
    maq__block_linear(b, "linear_proj", MAQ_PART_ATTENTION, MAQ_SHARD_ROW, out, arch->hidden,
                      leave | (a->out_bias ? MAQ_MODULE_BIAS : 0u));
}
