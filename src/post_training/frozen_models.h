/* SPDX-License-Identifier: Apache-2.0 */
/*
 * frozen_models.h - the models of a post-training job that are asked and not trained: their jobs, a forward pass that keeps nothing, their
 * weights. With adapters off the policy is one of them. A reward or value model has a head of one number in place of the vocabulary.
 */
#ifndef MAQ_POST_TRAINING_FROZEN_MODELS_H
#define MAQ_POST_TRAINING_FROZEN_MODELS_H

#include "base/arena.h"
#include "maquette/train.h"

enum maq_rl_adapters {
    MAQ_RL_ADAPTERS_ON,
    MAQ_RL_ADAPTERS_OFF, /* the base model as it lies there, quantized or not */
    MAQ_RL_ADAPTERS_NONE /* a model of its own, which has none and is whole */
};
/* The job as one whose parameters nobody trains: nothing is kept, redone or reduced. */
struct maq_job maq_rl_frozen(const struct maq_job *of, enum maq_rl_adapters adapters);

/* Seconds of a forward pass of a microbatch; the last of a step, behind whatever comes before the first. */
enum maq_status maq_rl_forward_s(double *out, const struct maq_job *job, struct maq_diag *diag);
/* Bytes of a rank's weights. */
enum maq_status maq_rl_weights(double *out, const struct maq_job *job, struct maq_diag *diag);

/* *out: `like`, its plan and batch, of the model `name` with one number for each token (num_labels 1); owned by the caller. Its model lives in `arena`. */
enum maq_status maq_rl_scoring_job(struct maq_loaded_job **loaded, struct maq_job *out,
                                   const struct maq_loaded_job *like, const char *key, struct maq_str name,
                                   struct maq_arena *arena, struct maq_diag *diag);

#endif
