/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.h - the host as the second clock of a rank: the time that it takes to issue a pass, and when the device waits
 * for it.
 */
#ifndef MAQ_TRAIN_STEP_HOST_H
#define MAQ_TRAIN_STEP_HOST_H

#include "lower/lower.h"

struct maq_blueprint;
struct maq_program;

/* Host time at the end of a step during which the device is idle: 0 where the host never waits for it. */
double maq_host_step_ns(const struct maq_job *job, const struct maq_device *device);

/*
 * Fills the gaps of a program: device time that its passes lose to the host. Call when its passes are timed. `reduces`: the
 * backward pass reduces gradients.
 */
void maq_host_gaps(const struct maq_blueprint *bp, struct maq_program *program, bool reduces);

#endif
