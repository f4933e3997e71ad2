/* SPDX-License-Identifier: Apache-2.0 */
/*
 * mlp.c - the dense feed-forward part: fc1, nonlinearity, fc2.
 *
 * A gated MLP (SwiGLU, GeGLU) computes act(x W_gate) * (x W_up) W_down; Megatron-LM fuses gate and up into one
 * linear_fc1 of 2 x width. Parameters: 2 hidden width, gated 3 hidden width, biases beside.
 */
#include "model/layer/module_list.h"

void maq__write_mlp(struct maq_block_writer *b, const struct maq_architecture *arch, const struct maq_arch_layer *layer,
                    struct maq_branch branch)
{
    int64_t width = layer->ffn_width;
    const struct maq_arch_mlp *mlp = &arch->mlp;
    int64_t fc1 = mlp->gated ? 2 * width : width;
    uint32_t bias = mlp->bias ? MAQ_MODULE_BIAS : 0u;
    uint32_t enter = branch.shared_input ? MAQ_MODULE_SHARED_INPUT : MAQ_MODULE_GATHER_IN;
    uint32_t leave = branch.keep_partial ? 0u : MAQ_MODULE_REDUCE_OUT;
    uint32_t act = (mlp->gated ? MAQ_MODULE_GATED : 0u) | (mlp->squared_relu ? MAQ_MODULE_DYNAMIC_KEEPS_INPUT : 0u);

    maq__block_linear(b, "linear_fc1", MAQ_PART_MLP, MAQ_SHARD_COLUMN, arch->hidden, fc1, bias | enter);
    maq__block_plain(b, MAQ_MODULE_ACTIVATION, "activation_func", MAQ_PART_MLP, MAQ_SHARD_HEADS, fc1, width, act)
        ->params = mlp->act_params;
    maq__block_extras(b, arch, MAQ_PLACE_FFN_MID, layer);
    maq__block_linear(b, "linear_fc2", MAQ_PART_MLP, MAQ_SHARD_ROW, width, arch->hidden, bias | leave);
}
