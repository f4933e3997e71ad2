/* SPDX-License-Identifier: Apache-2.0 */
/*
 * family_rows.h - how rows of families and of their keys are written: a key is a member of struct maq_hf under the name that config.json has for it.
 */
#ifndef MAQ_MODEL_HF_FAMILY_ROWS_H
#define MAQ_MODEL_HF_FAMILY_ROWS_H

#include "model/hf/config.h"

#define I64(member, key, ...) MAQ_FIELD_I64(struct maq_hf, member, key, __VA_ARGS__)
#define BOOL(member, key, ...) MAQ_FIELD_BOOL(struct maq_hf, member, key, __VA_ARGS__)
#define REAL(member, key, ...) MAQ_FIELD_DOUBLE(struct maq_hf, member, key, __VA_ARGS__)
#define STR(member, key, ...) MAQ_FIELD_STR(struct maq_hf, member, key, __VA_ARGS__)
#define NODE(member, key, ...) MAQ_FIELD_NODE(struct maq_hf, member, key, __VA_ARGS__)

#define WIDTH .min = 1, .max = 16777216 /* a feature width: up to 2^24 */
#define OPTIONAL .min = 0, .max = 16777216
#define COUNT .min = 1, .max = 65536 /* heads, experts, groups */
#define SOME .min = 0, .max = 65536
#define LAYERS .min = 0, .max = MAQ_ARCH_LAYERS_MAX

/* The keys of a family: core and attention, and the tables that are named. */
#define TABLES(...) ((const struct maq_field *const[]){maq__hf_core, maq__hf_attention, __VA_ARGS__, NULL})
/* What a Llama has; experts over grouped queries; latent attention with experts in the words of DeepSeek-V3. */
#define LLAMA_KEYS maq__hf_bias, maq__hf_window, maq__hf_dropout
#define EXPERT_KEYS maq__hf_bias, maq__hf_window, maq__hf_dropout, maq__hf_moe, maq__hf_mlp_types
#define LATENT_KEYS maq__hf_bias, maq__hf_dropout, maq__hf_mla, maq__hf_moe, maq__hf_moe_dense, maq__hf_mlp_types

#endif
