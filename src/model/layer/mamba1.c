/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mamba1.c - the first Mamba's mixer (selective state spaces).
 *
 *   in_proj    hidden -> x, z (each inner)
 *   conv1d     depthwise and causal over x
 *   x_proj     inner -> dt (rank), B, C (each state); Jamba has a norm on each, Zamba one projection for each of its heads
 *   dt_proj    rank -> inner, with a bias
 *   scan       h <- exp(A dt) h + dt B x,  y = C h + D x;  A is a number per channel and state, D one per channel
 *   gate       y * silu(z)
 *   out_proj   inner -> hidden
 *
 * Parameters: 3 hidden inner + (kernel + bias) inner + inner (rank + 2 state) + (rank + 1) inner + inner state + inner.
 * The scan is no product of matrices: it has no model FLOP, and time by its vector operations. Source: arXiv 2312.00752; Hugging Face
 * transformers, models/mamba, models/jamba, models/zamba.
 */
#include "model/layer/module_list.h"

void maq__write_mamba1(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const struct maq_arch_mamba1 *s = &arch->mamba1;
    const enum maq_part part = MAQ_PART_SSM;
    int64_t inner = s->inner, heads = s->heads > 1 ? s->heads : 1, each = inner / heads;
    int64_t dts = s->dt_rank + 2 * s->state;
    uint32_t bias = s->proj_bias ? MAQ_MODULE_BIAS : 0u;

    maq__block_linear(b, "in_proj", part, MAQ_SHARD_COLUMN, arch->hidden, 2 * inner, bias | MAQ_MODULE_GATHER_IN);
    struct maq_module *m = maq__block_plain(b, MAQ_MODULE_CONV1D, "conv1d", part, MAQ_SHARD_HEADS, inner, inner,
                                            s->conv_bias ? MAQ_MODULE_BIAS : 0u);
    m->params = maq__block_mul(b, inner, s->conv_kernel + (s->conv_bias ? 1 : 0));
    m->u.kernel = (int32_t)s->conv_kernel;
    for (int64_t h = 0; h < heads; h++) {
        maq__block_linear(b, "x_proj", part, MAQ_SHARD_ROW, each, dts, MAQ_MODULE_REDUCE_OUT);
        if (s->norms)
            maq__block_norm(b, "x_norms", part, MAQ_SHARD_SEQUENCE, MAQ_NORM_RMS, dts, dts);
        maq__block_linear(b, "dt_proj", part, MAQ_SHARD_COLUMN, s->dt_rank, each, MAQ_MODULE_BIAS);
    }
    m = maq__block_plain(b, MAQ_MODULE_SELECTIVE_SCAN, "selective_scan", part, MAQ_SHARD_HEADS,
                         2 * inner + heads * 2 * s->state, inner, 0);
    m->params = maq__block_mul(b, inner, s->state + 1);
    m->u.ssm = (struct maq_ssm_geometry){
        .heads = (int32_t)inner, .head_dim = 1, .groups = (int32_t)heads, .state = (int32_t)s->state};
    maq__block_plain(b, MAQ_MODULE_GATE, "gate", part, MAQ_SHARD_HEADS, 2 * inner, inner, 0);
    maq__block_linear(b, "out_proj", part, MAQ_SHARD_ROW, inner, arch->hidden, bias | MAQ_MODULE_REDUCE_OUT);
}
