/* SPDX-License-Identifier: Apache-2.0 */
/*
 * short_conv.c - the gated short convolution of LFM2.
 *
 *   in_proj    hidden -> B, C, x, each as wide as hidden
 *   gate       B * x
 *   conv1d     depthwise and causal over a few tokens
 *   gate       C * the convolution
 *   out_proj   hidden -> hidden
 *
 * Parameters: 4 hidden^2 + kernel hidden, and with biases 5 hidden more. Source: Hugging Face transformers, models/lfm2.
 */
#include "model/layer/module_list.h"

void maq__write_conv(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const struct maq_arch_conv *c = &arch->conv;
    const enum maq_part part = MAQ_PART_SSM;
    int64_t h = arch->hidden;
    uint32_t bias = c->bias ? MAQ_MODULE_BIAS : 0u;

    maq__block_linear(b, "in_proj", part, MAQ_SHARD_COLUMN, h, 3 * h, bias | MAQ_MODULE_GATHER_IN);
    maq__block_plain(b, MAQ_MODULE_GATE, "gate_in", part, MAQ_SHARD_HEADS, 2 * h, h, 0);
    struct maq_module *m = maq__block_plain(b, MAQ_MODULE_CONV1D, "conv1d", part, MAQ_SHARD_HEADS, h, h, bias);
    m->params = maq__block_mul(b, h, c->kernel + (c->bias ? 1 : 0));
    m->u.kernel = (int32_t)c->kernel;
    maq__block_plain(b, MAQ_MODULE_GATE, "gate_out", part, MAQ_SHARD_HEADS, 2 * h, h, 0);
    maq__block_linear(b, "out_proj", part, MAQ_SHARD_ROW, h, h, bias | MAQ_MODULE_REDUCE_OUT);
}
