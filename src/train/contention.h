/*
 * contention.h - compute beside communication: what the SMs that communication holds cost the kernels that run meanwhile.
 */
#ifndef MAQ_TRAIN_CONTENTION_H
#define MAQ_TRAIN_CONTENTION_H

#include "train/blueprint.h"

/* Share of the compute time lost while communication runs on a stream, 0..1. */
void maq_contention_shares(double share[MAQ_STREAM_COUNT], const struct maq_plan *plan,
                           const struct maq_device *device);

/* What the data-parallel communication inside the passes of a program costs their compute; call when the passes are timed without. */
void maq_contention_passes(const struct maq_blueprint *bp, struct maq_program *program);

/* What the reduction of gradients and the gathering of parameters that run beside the last backward and the first forward
 * pass of a step cost the compute of one stage, in nanoseconds. */
double maq_contention_step_ns(const struct maq_blueprint *bp, uint32_t stage);
/* The same for a stage that is this program. */
double maq_contention_program_ns(const struct maq_blueprint *bp, const struct maq_program *program);

#endif
