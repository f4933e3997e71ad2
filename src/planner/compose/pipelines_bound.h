/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelines_bound.h - a lower bound of the step of every plan of several pipelines: column generation, then counting
 * (pipelines_bound.c has the proof).
 */
#ifndef MAQ_PLANNER_COMPOSE_PIPELINES_BOUND_H
#define MAQ_PLANNER_COMPOSE_PIPELINES_BOUND_H

#include "planner/compose/layer_ranges.h"

struct maq_chain_bound_options {
    uint32_t global_batch;
    double cutoff_s; /* step of a plan that is known: the bound is raised no further than this */
    uint32_t ranges; /* ranges of the number of chains that columns examine; the others keep their first bound */
    bool counts;     /* count devices as well, where they come in few units */
    double enough_s; /* counting stops at a bound of this many seconds */
};

/*
 * *bound_s: seconds, at most the cutoff; no plan of chains over this table takes less. The table's wave is the micro batch of one
 * chain. Adds the relaxed programs solved to *programs. false when out of memory.
 */
bool maq_chain_bound(double *bound_s, uint64_t *programs, const struct maq_stage_table *table,
                     const struct maq_chain_bound_options *options, struct maq_arena *arena);

#endif
