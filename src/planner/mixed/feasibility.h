/*
 * feasibility.h - whether any composition of a table fits in memory, without asking how fast it is.
 *
 * From the last stage forward: of stages that end at the same atom with as many behind them, the longest that fits is the best to have. A
 * back part of a pipeline is as good as another if it covers no less with no more devices of any kind; those that are not are kept, up to
 * a number for each depth. So "yes" is certain, and "no" where that number was not reached.
 */
#ifndef MAQ_PLANNER_MIXED_FEASIBILITY_H
#define MAQ_PLANNER_MIXED_FEASIBILITY_H

#include "base/arena.h"
#include "planner/compose/stage_table.h"

/* false when out of memory. */
bool maq_mixed_feasible(bool *fits, const struct maq_stage_table *table, struct maq_arena *arena);

#endif
