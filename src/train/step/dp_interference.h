/* dp_interference.h - what the compute of a program loses to the data-parallel communication that runs beside it (lower/contention.h has the law). */
#ifndef MAQ_TRAIN_STEP_DP_INTERFERENCE_H
#define MAQ_TRAIN_STEP_DP_INTERFERENCE_H

#include "train/step/blueprint.h"

/*
 * What the communication inside the passes of a program costs their compute; call when the passes are timed without. `reduces`: the
 * backward pass reduces gradients.
 */
void maq_dp_interference_passes(const struct maq_blueprint *bp, struct maq_program *program, bool reduces);

/*
 * What the reduction of gradients and the gathering of parameters that run beside the last backward and the first forward pass of a
 * step cost the compute of one stage, in nanoseconds; and of a stage that is this program.
 */
double maq_dp_interference_step_ns(const struct maq_blueprint *bp, uint32_t stage);
double maq_dp_interference_program_ns(const struct maq_blueprint *bp, const struct maq_program *program);

#endif
