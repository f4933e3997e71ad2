/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mla.c - multi-head latent attention (DeepSeek-V2 and later), as it is trained: the latent is expanded to full
 * heads.
 *
 *   linear_q_down_proj    hidden -> q_lora                  replicated over TP
 *   linear_kv_down_proj   hidden -> kv_lora + rope          replicated; the rope part is one key shared by all heads
 *   q/kv layernorm        over q_lora and kv_lora
 *   linear_q_up_proj      q_lora -> heads (nope + rope)
 *   linear_kv_up_proj     kv_lora -> heads (nope + v)
 *   core                  heads = kv heads, qk width nope + rope, value width v
 *   linear_proj           heads v -> hidden
 *
 * Sparse ones (DeepSeek-V3.2) have an index that chooses keys, in front of the core; some have a gate on its output.
 *
 * With q_lora = 0 (DeepSeek-V2-Lite) queries come from one linear_q_proj. Source: arXiv 2405.04434 section 2.1; order
 * and names: megatron/core/transformer/multi_latent_attention.py.
 */
#include "model/layer/module_list.h"

static void write_down(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const struct maq_arch_mla *m = &arch->mla;
    uint32_t bias = m->bias ? MAQ_MODULE_BIAS : 0u;
    if (m->q_lora > 0)
        maq__block_linear(b, "linear_q_down_proj", MAQ_PART_ATTENTION, MAQ_SHARD_SEQUENCE, arch->hidden, m->q_lora,
                          bias);
    else
        maq__block_linear(b, "linear_q_proj", MAQ_PART_ATTENTION, MAQ_SHARD_COLUMN, arch->hidden,
                          m->heads * (m->nope_dim + m->rope_dim), MAQ_MODULE_GATHER_IN);
    maq__block_linear(b, "linear_kv_down_proj", MAQ_PART_ATTENTION, MAQ_SHARD_SEQUENCE, arch->hidden,
                      m->kv_lora + m->rope_dim, bias | MAQ_MODULE_SHARED_INPUT);
    if (m->q_lora > 0)
        maq__block_norm(b, "q_layernorm", MAQ_PART_ATTENTION, MAQ_SHARD_SEQUENCE, arch->norm, m->q_lora, m->q_lora);
    maq__block_norm(b, "kv_layernorm", MAQ_PART_ATTENTION, MAQ_SHARD_SEQUENCE, arch->norm, m->kv_lora, m->kv_lora);
    if (m->norms_rotated_key)
        maq__block_norm(b, "k_rope_layernorm", MAQ_PART_ATTENTION, MAQ_SHARD_SEQUENCE, arch->norm, m->rope_dim,
                        m->rope_dim);
}

static void write_up(struct maq_block_writer *b, const struct maq_arch_mla *m)
{
    int64_t rotated = (m->heads + 1) * m->rope_dim;
    if (m->q_lora > 0)
        maq__block_linear(b, "linear_q_up_proj", MAQ_PART_MLA_UP, MAQ_SHARD_COLUMN,
                          m->queries_twice ? 2 * m->q_lora : m->q_lora,
                          m->heads * (m->nope_dim + m->rope_dim + (m->gate == MAQ_GATE_WITH_QUERIES ? m->v_dim : 0)),
                          MAQ_MODULE_GATHER_IN);
    maq__block_linear(b, "linear_kv_up_proj", MAQ_PART_MLA_UP, MAQ_SHARD_COLUMN, m->kv_lora,
                      m->heads * (m->nope_dim + m->v_dim), MAQ_MODULE_GATHER_IN);
    if (m->rope_dim > 0)
        maq__block_plain(b, MAQ_MODULE_ROPE, "rotary_pos_emb", MAQ_PART_MLA_UP, MAQ_SHARD_HEADS, rotated, rotated, 0);
}

void maq__write_mla(struct maq_block_writer *b, const struct maq_architecture *arch, const struct maq_arch_layer *layer)
{
    const struct maq_arch_mla *m = &arch->mla;
    int64_t qk = m->nope_dim + m->rope_dim;
    write_down(b, arch);
    write_up(b, m);
    maq__write_index(b, arch, &m->index);
    struct maq_module *core =
        maq__block_plain(b, MAQ_MODULE_ATTENTION, "core_attention", MAQ_PART_CORE_ATTENTION, MAQ_SHARD_HEADS,
                         m->heads * (2 * qk + m->v_dim), m->heads * m->v_dim, m->dropout ? MAQ_MODULE_DROPOUT : 0u);
    core->u.attention = (struct maq_attention_geometry){
        .heads = (int32_t)m->heads,
        .kv_heads = (int32_t)m->heads,
        .qk_dim = (int32_t)qk,
        .v_dim = (int32_t)m->v_dim,
        .window = layer->window,
        .selected = m->selected,
        .causal = true,
        .sinks = m->sinks,
        .dropout = m->dropout,
    };
    core->params = m->sinks ? m->heads : 0;
    maq__write_gate(b, arch, m->gate, m->heads, m->v_dim);
    maq__block_linear(b, "linear_proj", MAQ_PART_ATTENTION, MAQ_SHARD_ROW, m->heads * m->v_dim, arch->hidden,
                      MAQ_MODULE_REDUCE_OUT | (m->bias ? MAQ_MODULE_BIAS : 0u));
}
