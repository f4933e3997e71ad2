/* SPDX-License-Identifier: Apache-2.0 */
/* assumed.h - what a part of a step rests on that was not measured, or on one machine alone: said where that part matters. */
#ifndef MAQ_REPORT_TRAIN_ASSUMED_H
#define MAQ_REPORT_TRAIN_ASSUMED_H

#include "maquette/train.h"

#define MAQ_ASSUMED 2
#define MAQ_ASSUMED_SIZE 192

/* Writes a sentence for each assumption; returns how many. */
size_t maq_train_assumed(char text[MAQ_ASSUMED][MAQ_ASSUMED_SIZE], const struct maq_train_result *r);

#endif
