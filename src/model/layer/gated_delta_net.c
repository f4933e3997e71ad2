/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gated_delta_net.c - gated delta-rule linear attention (Gated DeltaNet, as in Qwen3-Next).
 *
 *   in_proj     hidden -> q, k (each key_heads x key_dim), v, z (each heads x v_dim), b and a (each heads)
 *   conv1d      depthwise and causal over q, k, v; no bias
 *   delta rule  S <- a S (I - b k k^T) + b v k^T,  o = S q;  decay and bias of a are one number per value head
 *   norm        inside heads, then gated with silu(z)
 *   out_proj    heads x v_dim -> hidden
 *
 * In struct maq_arch_ssm: heads and head_dim are the value heads, groups the key heads, state the key width.
 * Source: arXiv 2412.06464; Hugging Face transformers, models/qwen3_next.
 */
#include "model/layer/module_list.h"

void maq__write_delta(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const struct maq_arch_ssm *s = &arch->delta;
    const enum maq_part part = MAQ_PART_SSM;
    int64_t key = s->groups * s->state, value = s->heads * s->head_dim;
    int64_t conv = 2 * key + value;

    maq__block_linear(b, "in_proj", part, MAQ_SHARD_COLUMN, arch->hidden, conv + value + 2 * s->heads,
                      MAQ_MODULE_GATHER_IN);
    struct maq_module *m = maq__block_plain(b, MAQ_MODULE_CONV1D, "conv1d", part, MAQ_SHARD_HEADS, conv, conv,
                                            s->conv_bias ? MAQ_MODULE_BIAS : 0u);
    m->params = maq__block_mul(b, conv, s->conv_kernel + (s->conv_bias ? 1 : 0));
    m->u.kernel = (int32_t)s->conv_kernel;
    m = maq__block_plain(b, MAQ_MODULE_DELTA_RULE, "gated_delta_rule", part, MAQ_SHARD_HEADS, conv + 2 * s->heads,
                         value, 0);
    m->params = 2 * s->heads;
    m->u.ssm = (struct maq_ssm_geometry){.heads = (int32_t)s->heads,
                                         .head_dim = (int32_t)s->head_dim,
                                         .groups = (int32_t)s->groups,
                                         .state = (int32_t)s->state,
                                         .chunk = (int32_t)s->chunk};
    maq__block_norm(b, "out_norm", part, MAQ_SHARD_HEADS, MAQ_NORM_RMS, value, s->head_dim);
    maq__block_plain(b, MAQ_MODULE_GATE, "gate", part, MAQ_SHARD_HEADS, 2 * value, value, 0);
    maq__block_linear(b, "out_proj", part, MAQ_SHARD_ROW, value, arch->hidden, MAQ_MODULE_REDUCE_OUT);
}
