/* SPDX-License-Identifier: Apache-2.0 */
/*
 * transformer_engine_script.h - the tensors that Megatron-LM with Transformer Engine asks PyTorch for in a pass of a layer, one by one, as a script
 * (eager_script.h has what that is).
 */
#ifndef MAQ_TRAIN_MEMORY_TRANSFORMER_ENGINE_SCRIPT_H
#define MAQ_TRAIN_MEMORY_TRANSFORMER_ENGINE_SCRIPT_H

#include "train/memory/eager_script.h"

/* Numbers of a module's weight on one rank, without its bias. */
double maq_te_weight_numbers(const struct maq_lower *lower, const struct maq_module *module);

/*
 * False, and nothing to free, where a layer or a plan is of a kind whose order of requests is not known here, or memory is out (`failed`).
 * MAQ_MOVE_WEIGHT gives a weight's gradient back, which another stream still works with, and MAQ_MOVE_RENAME says what a layer returns, or the
 * gradient of what it reads. MAQ_SLOT_IN lives until the backward pass gives it back, but in the embedding, which has none.
 */
bool maq_te_script(struct maq_eager_script *out, const struct maq_lower *lower, const struct maq_layer *layer);

/*
 * Where a layer's script is known, what it holds at most in a forward and in a backward pass beyond the `kept` bytes of its activations; else
 * neither is touched. transformer_engine_peaks.c
 */
void maq_te_transients(double *forward, double *backward, struct maq_lower *lower, const struct maq_layer *layer,
                       double kept);

#endif
