/* SPDX-License-Identifier: Apache-2.0 */
/*
 * moe.c - mixture of experts: router, exchange, grouped experts, shared experts.
 *
 *   router            hidden -> experts logits in 32 bits, top-k
 *   dispatch          each token to its top-k experts
 *   experts fc1/act/fc2   one MLP per expert; in and out are per expert and token, parameters cover all experts
 *   combine           weighted sum back at the token's place
 *   shared experts    a dense MLP beside them, optionally scaled by a scalar gate (Qwen2-MoE), then added
 *
 * Latent MoE (Nemotron 3 Super): routed experts work at width `latent` between two projections that every token
 * passes; Megatron-LM's moe_latent_size with fc1_latent_proj and fc2_latent_proj, replicated over TP.
 *
 * Parameters: experts x (3 or 2) x width x hidden-or-latent + router hidden x experts + shared (3 or 2) x hidden x
 * shared_ffn.
 */
#include "model/layer/module_list.h"

static void write_expert_linear(struct maq_block_writer *b, const char *name, const struct maq_arch_moe *moe,
                                struct maq_moe_geometry g, int64_t in, int64_t out, uint32_t flags)
{
    struct maq_module *m = maq__block_plain(b, MAQ_MODULE_EXPERT_LINEAR, name, MAQ_PART_MOE, MAQ_SHARD_EXPERT, in, out,
                                            flags | (moe->bias ? MAQ_MODULE_BIAS : 0u));
    int64_t one = maq__block_mul(b, in, out);
    if (moe->bias)
        one = maq__block_add(b, one, out);
    m->params = maq__block_mul(b, one, moe->experts);
    m->u.moe = g;
}

static uint32_t activation_flags(const struct maq_arch_moe *moe)
{
    return (moe->gated ? MAQ_MODULE_GATED : 0u) | (moe->squared_relu ? MAQ_MODULE_DYNAMIC_KEEPS_INPUT : 0u) |
           (moe->clamped ? MAQ_MODULE_CLAMPED : 0u);
}

static void write_routed(struct maq_block_writer *b, const struct maq_architecture *arch, struct maq_moe_geometry g)
{
    const struct maq_arch_moe *moe = &arch->moe;
    int64_t width = moe->latent > 0 ? moe->latent : arch->hidden;
    int64_t fc1 = moe->gated ? 2 * moe->ffn : moe->ffn;

    if (moe->latent > 0)
        maq__block_linear(b, "fc1_latent_proj", MAQ_PART_MOE, MAQ_SHARD_SEQUENCE, arch->hidden, width,
                          MAQ_MODULE_SHARED_INPUT);
    maq__block_plain(b, MAQ_MODULE_DISPATCH, "token_dispatch", MAQ_PART_MOE, MAQ_SHARD_EXPERT, width, width,
                     moe->latent > 0 ? 0u : MAQ_MODULE_SHARED_INPUT)
        ->u.moe = g;
    write_expert_linear(b, "experts.linear_fc1", moe, g, width, fc1, MAQ_MODULE_GATHER_IN);
    maq__block_plain(b, MAQ_MODULE_EXPERT_ACTIVATION, "experts.activation_func", MAQ_PART_MOE_ACT, MAQ_SHARD_EXPERT,
                     fc1, moe->ffn, activation_flags(moe))
        ->u.moe = g;
    write_expert_linear(b, "experts.linear_fc2", moe, g, moe->ffn, width, MAQ_MODULE_REDUCE_OUT);
    maq__block_plain(b, MAQ_MODULE_COMBINE, "token_combine", MAQ_PART_MOE, MAQ_SHARD_EXPERT, width, width, 0)->u.moe =
        g;
    if (moe->latent > 0)
        maq__block_linear(b, "fc2_latent_proj", MAQ_PART_MOE, MAQ_SHARD_SEQUENCE, width, arch->hidden, 0);
}

static void write_shared(struct maq_block_writer *b, const struct maq_architecture *arch)
{
    const struct maq_arch_moe *moe = &arch->moe;
    const enum maq_part part = MAQ_PART_SHARED_EXPERTS;
    int64_t fc1 = moe->gated ? 2 * moe->shared_ffn : moe->shared_ffn;
    uint32_t bias = moe->bias || moe->shared_bias ? MAQ_MODULE_BIAS : 0u;

    maq__block_linear(b, "shared_experts.linear_fc1", part, MAQ_SHARD_COLUMN, arch->hidden, fc1,
                      bias | MAQ_MODULE_GATHER_IN | MAQ_MODULE_SHARED_INPUT);
    maq__block_plain(b, MAQ_MODULE_ACTIVATION, "shared_experts.activation_func", part, MAQ_SHARD_HEADS, fc1,
                     moe->shared_ffn, activation_flags(moe));
    maq__block_linear(b, "shared_experts.linear_fc2", part, MAQ_SHARD_ROW, moe->shared_ffn, arch->hidden,
                      bias | MAQ_MODULE_REDUCE_OUT);
    if (moe->shared_gate) {
        maq__block_linear(b, "shared_experts.gate", part, MAQ_SHARD_SEQUENCE, arch->hidden, 1,
                          MAQ_MODULE_SHARED_INPUT | MAQ_MODULE_UNQUANTIZED);
        maq__block_plain(b, MAQ_MODULE_GATE, "shared_experts.gate_product", part, MAQ_SHARD_SEQUENCE, arch->hidden + 1,
                         arch->hidden, 0);
    }
    maq__block_plain(b, MAQ_MODULE_RESIDUAL, "shared_experts.add", part, MAQ_SHARD_SEQUENCE, arch->hidden, arch->hidden,
                     0);
}

void maq__write_moe(struct maq_block_writer *b, const struct maq_architecture *arch, struct maq_branch branch)
{
    const struct maq_arch_moe *moe = &arch->moe;
    bool limited = moe->group_topk > 0 && moe->group_topk < moe->groups;
    struct maq_moe_geometry g = {.experts = (int32_t)moe->experts,
                                 .topk = (int32_t)moe->topk,
                                 .groups = limited ? (int32_t)moe->groups : 0,
                                 .group_topk = limited ? (int32_t)moe->group_topk : 0};
    struct maq_module *router = maq__block_plain(b, MAQ_MODULE_ROUTER, "router", MAQ_PART_ROUTER, MAQ_SHARD_SEQUENCE,
                                                 arch->hidden, moe->experts, MAQ_MODULE_FP32 | MAQ_MODULE_UNQUANTIZED);
    router->params = maq__block_mul(b, arch->hidden + (moe->router_bias ? 1 : 0), moe->experts);
    if (branch.shared_input)
        router->flags |= MAQ_MODULE_SHARED_INPUT;
    if (moe->router_bias)
        router->flags |= MAQ_MODULE_BIAS;
    router->u.moe = g;
    b->moe = true;
    write_routed(b, arch, g);
    if (moe->shared_ffn > 0)
        write_shared(b, arch);
}
