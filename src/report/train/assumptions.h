/* SPDX-License-Identifier: Apache-2.0 */
/* assumptions.h - what a part of a step rests on that was not measured, or on one machine alone: said where that part matters. */
#ifndef MAQ_REPORT_TRAIN_ASSUMPTIONS_H
#define MAQ_REPORT_TRAIN_ASSUMPTIONS_H

#include "maquette/train.h"

#define MAQ_ASSUMPTIONS 2
#define MAQ_ASSUMPTION_SIZE 192

/* Writes a sentence for each assumption; returns how many. */
size_t maq_train_assumptions(char text[MAQ_ASSUMPTIONS][MAQ_ASSUMPTION_SIZE], const struct maq_train_result *r);

#endif
