/* counted_bound.h - relaxed programs that count devices: see counted_bound.c. */
#ifndef MAQ_PLANNER_COMPOSE_COUNTED_BOUND_H
#define MAQ_PLANNER_COMPOSE_COUNTED_BOUND_H

#include "planner/compose/bottleneck_box.h"

struct maq_counted_bound;

/* Of countable layer ranges; NULL, which is no error, for others. false when out of memory. */
bool maq_counted_bound_new(struct maq_counted_bound **out, const struct maq_layer_ranges *layer_ranges,
                           struct maq_arena *arena);

struct maq_count_options {
    uint64_t work; /* most stages tried and states compared */
    uint32_t beam; /* states kept of a level, atom and group: a good path without a proof; 0: all */
    bool left;     /* prune by the table of what is left as well */
};

/*
 * The least sum of t_i of a box over compositions that keep to the devices, if it is below `wanted`, with its path;
 * otherwise `wanted`, and a path without stages. When it took too much work: what is known by then, 0 at least, and
 * no path. Sets where in the box the path lies. `rest`: at the box's prices. false when out of memory.
 */
bool maq_counted_bound_solve(double *least, struct maq_bottleneck_box *box, struct maq_composition *path,
                             struct maq_counted_bound *counted, const double *rest, double wanted,
                             const struct maq_count_options *options);

#endif
