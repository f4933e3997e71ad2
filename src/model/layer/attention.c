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
    if (a->qk_norm == MAQ_QK_NORM_HEAD)
        q_width = k_width = a->head_dim;
    else if (a->qk_norm == MAQ_QK_NORM_PLAIN)
        q_width = k_width = 0;
    maq__block_norm(b, "q_layernorm", MAQ_PART_ATTENTION, MAQ_SHARD_HEADS, arch->norm, q, q_width);
    maq__block_norm(b, "k_layernorm", MAQ_PART_ATTENTION, MAQ_SHARD_HEADS, arch->norm, k, k_width);
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
    core->params = a->sinks ? a->heads : 0;
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
    maq__block_linear(b, "linear_kv", part, MAQ_SHARD_COLUMN, arch->hidden, a->kv_heads * (a->head_dim + a->v_dim),
                      MAQ_MODULE_GATHER_IN | MAQ_MODULE_SHARED_INPUT);
    maq__block_norm(b, "q_layernorm", part, MAQ_SHARD_SEQUENCE, arch->norm, a->q_rank, a->q_rank);
    maq__block_linear(b, "linear_q_up_proj", part, MAQ_SHARD_COLUMN, a->q_rank, a->heads * a->head_dim,
                      MAQ_MODULE_GATHER_IN);
}

void maq__write_attention(struct maq_block_writer *b, const struct maq_architecture *arch,
                          const struct maq_arch_layer *layer, struct maq_branch branch)
{
    const struct maq_arch_attention *a = &arch->attention;
    int64_t out = a->heads * a->v_dim;
    int64_t qkv = a->heads * a->head_dim + a->kv_heads * (a->head_dim + a->v_dim) + (a->output_gate ? out : 0);
    uint32_t enter = branch.shared_input ? MAQ_MODULE_SHARED_INPUT : MAQ_MODULE_GATHER_IN;
    uint32_t leave = branch.keep_partial ? 0u : MAQ_MODULE_REDUCE_OUT;

    if (a->q_rank > 0)
        write_low_rank(b, arch);
    else
        maq__block_linear(b, "linear_qkv", MAQ_PART_ATTENTION, MAQ_SHARD_COLUMN, arch->hidden, qkv,
                          enter | (a->qkv_bias ? MAQ_MODULE_BIAS : 0u));
    write_qk_norm(b, arch);
    if (layer->rope && a->rope_dim > 0) {
        int64_t rotated = (a->heads + a->kv_heads) * a->rope_dim;
        maq__block_plain(b, MAQ_MODULE_ROPE, "rotary_pos_emb", MAQ_PART_ATTENTION, MAQ_SHARD_HEADS, rotated, rotated,
                         0);
    }
    write_core(b, a, layer);
    if (a->output_gate)
        maq__block_plain(b, MAQ_MODULE_GATE, "output_gate", MAQ_PART_ATTENTION, MAQ_SHARD_HEADS, 2 * out, out, 0);
    maq__block_linear(b, "linear_proj", MAQ_PART_ATTENTION, MAQ_SHARD_ROW, out, arch->hidden,
                      leave | (a->out_bias ? MAQ_MODULE_BIAS : 0u));
}
