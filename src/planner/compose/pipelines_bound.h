/*
 * pipelines_bound.h - what no plan of several pipelines can be below.
 */
#ifndef MAQ_PLANNER_COMPOSE_PIPELINES_BOUND_H
#define MAQ_PLANNER_COMPOSE_PIPELINES_BOUND_H

#include "planner/compose/layer_ranges.h"

struct maq_chain_bound_options {
    uint32_t global_batch;
    double cutoff_s; /* of a plan that is known: a bound above it is not looked for */
    uint32_t ranges; /* of the number of chains that columns look at; the rest are taken as they are */
    bool counts;     /* devices too, where they are few */
    double enough_s; /* and what that looks for at most */
};

/*
 * A step time that no plan of chains over this table is below, at most the cutoff. The table's wave is the micro batch of one chain. false
 * when out of memory.
 */
bool maq_chain_bound(double *bound_s, uint64_t *programs, const struct maq_stage_table *table,
                     const struct maq_chain_bound_options *options, struct maq_arena *arena);

#endif
