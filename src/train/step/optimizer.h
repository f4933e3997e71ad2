/* SPDX-License-Identifier: Apache-2.0 */
/*
 * optimizer.h - the end of a step on one rank as a segment: norm, clipping, update, quantized copies. See
 * optimizer.c.
 */
#ifndef MAQ_TRAIN_STEP_OPTIMIZER_H
#define MAQ_TRAIN_STEP_OPTIMIZER_H

#include "train/step/blueprint.h"

/* The end of the step on one rank that holds n programs, on the selected stage; NULL when out of memory. `migrated`: bytes of a paged
 * optimizer that come and go (train/memory/paged_optimizer.h). */
const struct maq_segment *maq_blueprint_optimizer(struct maq_blueprint *bp, const struct maq_program *const *programs,
                                                  uint32_t n, double migrated);

#endif
