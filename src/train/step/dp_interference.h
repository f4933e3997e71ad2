/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dp_interference.h - compute that a program loses to concurrent data-parallel communication (lower/contention.h has
 * the law).
 */
#ifndef MAQ_TRAIN_STEP_DP_INTERFERENCE_H
#define MAQ_TRAIN_STEP_DP_INTERFERENCE_H

#include "train/step/blueprint.h"

/*
 * Compute time that the passes of a program lose to the communication inside them; to be called when the passes have been timed
 * without it. `reduces`: the backward pass reduces gradients.
 */
void maq_dp_interference_passes(const struct maq_blueprint *bp, struct maq_program *program, bool reduces);

/*
 * Nanoseconds that the compute of a stage, or of a stage that is this one program, loses to the reduction of gradients during the
 * last backward pass and to the gathering of parameters during the first forward pass of a step.
 */
double maq_dp_interference_step_ns(const struct maq_blueprint *bp, uint32_t stage);
double maq_dp_interference_program_ns(const struct maq_blueprint *bp, const struct maq_program *program);

#endif
