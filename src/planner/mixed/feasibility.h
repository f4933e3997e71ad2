/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feasibility.h - whether any composition of a table fits in memory, without asking how fast it is.
 *
 * A dynamic program from the last stage towards the front. Of the stages that end at an atom with a given number behind them, only
 * the longest that fits needs to be tried. A back part of a pipeline is dominated by one that covers at least as many atoms with no
 * more devices of any kind; the others are kept, up to a limit for each depth. So a yes is certain, and a no is certain unless the
 * limit was reached.
 */
#ifndef MAQ_PLANNER_MIXED_FEASIBILITY_H
#define MAQ_PLANNER_MIXED_FEASIBILITY_H

#include "base/arena.h"
#include "planner/compose/stage_table.h"

/* *fits: whether a composition fits. The arena is scratch. false when out of memory. */
bool maq_mixed_feasible(bool *fits, const struct maq_stage_table *table, struct maq_arena *arena);

#endif
