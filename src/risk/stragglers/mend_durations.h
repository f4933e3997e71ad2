/* SPDX-License-Identifier: Apache-2.0 */
/* mend_durations.h - a part of mending a recorded job: durations that were not recorded, or cannot be. */
#ifndef MAQ_RISK_STRAGGLERS_MEND_DURATIONS_H
#define MAQ_RISK_STRAGGLERS_MEND_DURATIONS_H

#include "risk/stragglers/replay.h"

/* Mends them in rows that are in the order of steps, workers and starts; what was mended goes to `m`, as does the time recorded in all. */
enum maq_status maq_replay_mend_durations(struct maq_replay_rows *rows, const struct maq_replay_trace *t,
                                          struct maq_mending *m, struct maq_arena *arena);

/* The stream of a worker that an operation is on: dependencies.c. */
int maq_replay_stream(const struct maq_replay_trace *t, const struct maq_replay_op *op);

#endif
