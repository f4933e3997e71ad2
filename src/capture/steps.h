/* SPDX-License-Identifier: Apache-2.0 */
/* steps.h - finds the training steps in a class's program, by its marks or by its periodicity. */
#ifndef MAQ_CAPTURE_STEPS_H
#define MAQ_CAPTURE_STEPS_H

#include "base/arena.h"
#include "maquette/capture.h"

/* Records at which steps end, in ascending order, from marks of the program or the period of its work. */
enum maq_status maq_capture_steps(const uint32_t **step_at, uint32_t *n, bool *marked,
                                  const struct maq_capture *capture, uint32_t class, struct maq_arena *arena);

/* The period of the repetition that covers most, which begins at *first and is there *count times; 0 = none. */
uint32_t maq_records_period(const uint64_t *shape, uint32_t n, uint32_t *first, uint32_t *count);

#endif
