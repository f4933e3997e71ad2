/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lora_targets.h - what the words of lora_target_modules name: linears of a model, or parts of them.
 *
 * Megatron-LM and NeMo name whole linears (linear_qkv) and, in NeMo's canonical form, what is fused in them (linear_q);
 * Hugging Face's PEFT names the linears of a family's own classes (q_proj, c_attn), and all-linear. A word names what the
 * model at hand has of it. An adapter on a part of a linear is one of its own: A is in x r for each of q, k and v.
 */
#ifndef MAQ_PLAN_LORA_TARGETS_H
#define MAQ_PLAN_LORA_TARGETS_H

#include "base/str.h"
#include "maquette/model.h"
#include "maquette/plan.h"

/* How much of a linear an adapter spans. */
enum maq_lora_span {
    MAQ_LORA_WHOLE,
    MAQ_LORA_QUERIES, /* with an output gate, which Hugging Face's q_proj has in it */
    MAQ_LORA_KEYS,
    MAQ_LORA_VALUES,
    MAQ_LORA_GATE, /* the half of a gated fc1 that goes through the activation */
    MAQ_LORA_UP,   /* the other half; all of one that is not gated */
    MAQ_LORA_SPANS
};

/*
 * Sites (bits of plan.lora_sites) that the words of a comma list name in a model; no words: NeMo's default, linear_qkv, linear_proj,
 * linear_fc1 and linear_fc2. 0: *wrong is the word that names nothing, and *known says whether another model has it.
 */
uint32_t maq_lora_sites(struct maq_str words, const struct maq_model *model, struct maq_str *wrong, bool *known);

/* Spans of a linear that have adapters: bits of enum maq_lora_span; 0: none. A whole one leaves no parts. */
uint32_t maq_lora_spans(uint32_t sites, const struct maq_module *m);

/* Names of sites, in NeMo's words: "linear_q, linear_v". */
void maq_lora_add_names(struct maq_buf *out, uint32_t sites, const char *between);
/* Sites that a model has. */
uint32_t maq_lora_model_sites(const struct maq_model *model);

#endif
