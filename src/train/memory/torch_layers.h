/* SPDX-License-Identifier: Apache-2.0 */
/*
 * torch_layers.h - what layers of PyTorch keep for their backward pass where programs write them in ways of their own: under
 * autocast, with norms of pointwise operations, with adapters. torch_layers.c says by module what is kept and where that is decided.
 */
#ifndef MAQ_TRAIN_MEMORY_TORCH_LAYERS_H
#define MAQ_TRAIN_MEMORY_TORCH_LAYERS_H

#include "lower/lower.h"

/* Whether products read 16-bit copies of parameters in 4 bytes. */
bool maq_autocasts(const struct maq_job *job);

/* Bytes of a number of the residual stream. */
double maq_stream_bytes(const struct maq_lower *lower);

/* Bytes that a norm keeps of each number that it reads. */
double maq_norm_bytes(const struct maq_lower *lower, const struct maq_module *m);
/* Whether that is something else than its input. */
bool maq_norm_is_apart(const struct maq_lower *lower, const struct maq_module *m);

/* Bytes that a trained linear keeps of each number that it reads, under autocast and with adapters; else those of the store. */
double maq_linear_bytes(const struct maq_lower *lower, const struct maq_layer *layer, const struct maq_module *m);
/* The 16-bit copy of its weight that autograd keeps. */
double maq_weight_copy_bytes(const struct maq_lower *lower, const struct maq_layer *layer, const struct maq_module *m);

/* What DoRA keeps of each row that an adapted linear reads; and what its merged weight holds while the linear runs, in bytes. */
double maq_dora_bytes(const struct maq_lower *lower, const struct maq_layer *layer, const struct maq_module *m);
double maq_dora_working_bytes(const struct maq_lower *lower, const struct maq_layer *layer, const struct maq_module *m);

/* What an activation keeps besides its input. */
double maq_gate_bytes(const struct maq_lower *lower, const struct maq_layer *layer, const struct maq_module *m);

/* What the last product of experts returns, where that is kept for the gradient of the probabilities that multiply it. */
double maq_scored_bytes(const struct maq_lower *lower, const struct maq_layer *layer, const struct maq_module *m);

#endif
