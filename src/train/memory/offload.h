/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload.h - which inputs of a layer's modules are offloaded to the host between its passes (Megatron Core's offload_modules).
 *
 * Megatron Core copies what autograd saves inside a module to the host after its forward pass and back before its backward pass,
 * each overlapped with other work (pipeline_parallel/fine_grained_activation_offload.py). Tensors of less than MAQ_OFFLOAD_LEAST
 * numbers stay. The norm in front of attention or of a dense MLP is one module with the product behind it, but in front of MLA and
 * of experts; there alone `attn_norm` and `mlp_norm` move something, and elsewhere `qkv_linear` has the norm's input too.
 */
#ifndef MAQ_TRAIN_MEMORY_OFFLOAD_H
#define MAQ_TRAIN_MEMORY_OFFLOAD_H

#include "maquette/model.h"
#include "maquette/plan.h"

#define MAQ_OFFLOAD_LEAST 1048576.0 /* Megatron Core's default of min_offloaded_tensor_size (transformer_config.py) */

/* Whether module `i` of a layer belongs to a module that the plan offloads. */
bool maq_offload_chosen(const struct maq_plan *plan, const struct maq_layer *layer, uint32_t i);

#endif
