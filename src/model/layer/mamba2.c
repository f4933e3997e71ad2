/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mamba2.c - the Mamba-2 mixer (state-space duality).
 *
 *   in_proj    hidden -> z, x (each inner), B, C (each groups x state), dt (heads);   inner = heads x head_dim
 *   conv1d     depthwise and causal over x, B, C
 *   scan       h <- exp(A dt) h + dt B x,  y = C h + D x;  A, D and the bias of dt are one number per head
 *   norm       gated: RMSNorm(y * silu(z)); or the gate alone
 *   out_proj   inner -> hidden
 *
 * Parameters: hidden (2 inner + 2 groups state + heads) + (kernel + bias) (inner + 2 groups state) + 3 heads + inner
 * + inner hidden. Source: arXiv 2405.21060; order and names: megatron/core/ssm/mamba_mixer.py.
 */
#include "model/layer/module_list.h"

void maq__write_mamba(struct maq_block_writer *b, const struct maq_architecture *arch, struct maq_branch branch)
{
    const struct maq_arch_ssm *s = &arch->mamba;
    const enum maq_part part = MAQ_PART_SSM;
    int64_t inner = s->heads * s->head_dim;
    int64_t conv = inner + 2 * s->groups * s->state;
    uint32_t bias = s->proj_bias ? MAQ_MODULE_BIAS : 0u,
             out_bias = (s->apart ? 0u : bias) | (s->out_bias ? MAQ_MODULE_BIAS : 0u);
    uint32_t enter = branch.shared_input ? MAQ_MODULE_SHARED_INPUT : MAQ_MODULE_GATHER_IN;
    uint32_t leave = branch.keep_partial ? 0u : MAQ_MODULE_REDUCE_OUT;

    maq__block_linear(b, "in_proj", part, MAQ_SHARD_COLUMN, arch->hidden, inner + conv + s->heads, bias | enter);
    struct maq_module *m = maq__block_plain(b, MAQ_MODULE_CONV1D, "conv1d", part, MAQ_SHARD_HEADS, conv, conv,
                                            s->conv_bias ? MAQ_MODULE_BIAS : 0u);
    m->params = maq__block_mul(b, conv, s->conv_kernel + (s->conv_bias ? 1 : 0));
    m->u.kernel = (int32_t)s->conv_kernel;
    m = maq__block_plain(b, MAQ_MODULE_SSM_SCAN, "ssm_scan", part, MAQ_SHARD_HEADS, conv + s->heads, inner, 0);
    m->params = 3 * s->heads;
    m->u.ssm = (struct maq_ssm_geometry){.heads = (int32_t)s->heads,
                                         .head_dim = (int32_t)s->head_dim,
                                         .groups = (int32_t)s->groups,
                                         .state = (int32_t)s->state,
                                         .chunk = (int32_t)s->chunk};
    maq__block_plain(b, MAQ_MODULE_GATE, "gate", part, MAQ_SHARD_HEADS, 2 * inner, inner, 0);
    if (!s->no_norm)
        maq__block_norm(b, "norm", part, MAQ_SHARD_HEADS, MAQ_NORM_RMS, inner, inner);
    maq__block_linear(b, "out_proj", part, MAQ_SHARD_ROW, inner, arch->hidden, out_bias | leave);
}
