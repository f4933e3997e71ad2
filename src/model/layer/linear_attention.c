/* SPDX-License-Identifier: Apache-2.0 */
/*
 * linear_attention.c - two more mixers whose state is a matrix for each head: Kimi's delta attention, and lightning attention.
 *
 *   Kimi delta attention (Kimi Linear, Ling 2.5)
 *     in_proj      hidden -> q, k (heads x key width each), v (heads x value width), beta (heads)
 *     decays       hidden -> one for each channel of a key, at once or through a narrow width; a bias per channel, a scale per head
 *     conv1d       depthwise and causal over q, k, v
 *     delta rule   as the gated delta rule, but every channel of a key decays by itself: costed as that rule, with the decays as one
 *                  more tensor that is read
 *     gate         hidden -> heads x value width, at once or through the narrow width, on a norm inside heads
 *     out_proj     heads x value width -> hidden
 *
 *   Lightning attention (MiniMax-01)
 *     in_proj      hidden -> q, k, v
 *     scan         S <- a S + k v^T,  o = q S;  the decay a is fixed for each head. A Mamba-2 scan whose every head has a B and a C
 *     norm, gate   over all heads; hidden -> heads x width
 *     out_proj     heads x width -> hidden
 *
 * In struct maq_arch_ssm: heads and head_dim are of the values, groups the key heads, state the key width. Sources: arXiv 2510.26692,
 * arXiv 2501.08313; Hugging Face transformers, models/kimi_linear, models/bailing_hybrid, models/minimax.
 */
#include "model/layer/module_list.h"

static struct maq_ssm_geometry geometry_of(const struct maq_arch_ssm *s)
{
    return (struct maq_ssm_geometry){.heads = (int32_t)s->heads,
                                     .head_dim = (int32_t)s->head_dim,
                                     .groups = (int32_t)s->groups,
                                     .state = (int32_t)s->state,
                                     .chunk = (int32_t)s->chunk};
}

/* From hidden to `out`, at once or through `rank`. */
static void write_through(struct maq_block_writer *b, const struct maq_architecture *arch, int64_t rank, int64_t out,
                          const char *down, const char *up)
{
    const enum maq_part part = MAQ_PART_SSM;
    if (rank > 0)
        maq__block_linear(b, down, part, MAQ_SHARD_SEQUENCE, arch->hidden, rank, MAQ_MODULE_SHARED_INPUT);
    maq__block_linear(b, up, part, MAQ_SHARD_COLUMN, rank > 0 ? rank : arch->hidden, out,
                      rank > 0 ? MAQ_MODULE_GATHER_IN : MAQ_MODULE_SHARED_INPUT);
}

void maq__write_kda(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const struct maq_arch_ssm *s = &arch->delta;
    const enum maq_part part = MAQ_PART_SSM;
    int64_t key = s->groups * s->state, value = s->heads * s->head_dim, conv = 2 * key + value;

    maq__block_linear(b, "in_proj", part, MAQ_SHARD_COLUMN, arch->hidden, conv + s->heads, MAQ_MODULE_GATHER_IN);
    write_through(b, arch, s->gate_rank, key, "decay_down_proj", "decay_up_proj");
    struct maq_module *m = maq__block_plain(b, MAQ_MODULE_CONV1D, "conv1d", part, MAQ_SHARD_HEADS, conv, conv, 0);
    m->params = maq__block_mul(b, conv, s->conv_kernel);
    m->u.kernel = (int32_t)s->conv_kernel;
    m = maq__block_plain(b, MAQ_MODULE_DELTA_RULE, "kimi_delta_rule", part, MAQ_SHARD_HEADS, conv + key + s->heads,
                         value, 0);
    m->params = key + s->heads;
    m->u.ssm = geometry_of(s);
    write_through(b, arch, s->gate_rank, value, "gate_down_proj", "gate_up_proj");
    maq__block_norm(b, "out_norm", part, MAQ_SHARD_HEADS, MAQ_NORM_RMS, value, s->head_dim);
    maq__block_plain(b, MAQ_MODULE_GATE, "gate", part, MAQ_SHARD_HEADS, 2 * value, value, 0);
    maq__block_linear(b, "out_proj", part, MAQ_SHARD_ROW, value, arch->hidden, MAQ_MODULE_REDUCE_OUT);
}

void maq__write_lightning(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const struct maq_arch_ssm *s = &arch->lightning;
    const enum maq_part part = MAQ_PART_SSM;
    int64_t key = s->groups * s->state, value = s->heads * s->head_dim;

    maq__block_linear(b, "in_proj", part, MAQ_SHARD_COLUMN, arch->hidden, 2 * key + value, MAQ_MODULE_GATHER_IN);
    maq__block_plain(b, MAQ_MODULE_ACTIVATION, "activation_func", part, MAQ_SHARD_HEADS, 2 * key + value,
                     2 * key + value, 0);
    struct maq_module *m = maq__block_plain(b, MAQ_MODULE_SSM_SCAN, "lightning_attention", part, MAQ_SHARD_HEADS,
                                            2 * key + value, value, 0);
    m->u.ssm = geometry_of(s);
    maq__block_norm(b, "norm", part, MAQ_SHARD_HEADS, MAQ_NORM_RMS, value, value)->flags |= MAQ_MODULE_OVER_HEADS;
    maq__block_linear(b, "output_gate_proj", part, MAQ_SHARD_COLUMN, arch->hidden, value, MAQ_MODULE_SHARED_INPUT);
    maq__block_plain(b, MAQ_MODULE_GATE, "gate", part, MAQ_SHARD_HEADS, 2 * value, value, 0);
    maq__block_linear(b, "out_proj", part, MAQ_SHARD_ROW, value, arch->hidden, MAQ_MODULE_REDUCE_OUT);
}
