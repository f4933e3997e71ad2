/* SPDX-License-Identifier: Apache-2.0 */
/* step.h - the files that a step of post-training is made of: step.c adds up what the others say. */
#ifndef MAQ_POST_TRAINING_STEP_H
#define MAQ_POST_TRAINING_STEP_H

#include "maquette/post_training.h"

/* Seconds of one sync of weights. weight_sync.c */
double maq_rl_sync_s(const struct maq_post_training_result *r);

#endif
