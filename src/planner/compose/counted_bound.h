/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counted_bound.h - relaxed programs that count devices: the least sum of stage times of a box over compositions that
 * use no more devices than there are.
 *
 * Tighter than priced_bound.h where devices come in few units, since it knows no fractions of a device.
 * counted_bound.c has the states and the rules by which they are dropped.
 */
#ifndef MAQ_PLANNER_COMPOSE_COUNTED_BOUND_H
#define MAQ_PLANNER_COMPOSE_COUNTED_BOUND_H

#include "planner/compose/bottleneck_box.h"

struct maq_counted_bound;

/*
 * *out = NULL, which is no error, where the devices are too many to count (maq_countable()). Lives in the arena. false
 * when out of memory.
 */
bool maq_counted_bound_new(struct maq_counted_bound **out, const struct maq_layer_ranges *layer_ranges,
                           struct maq_arena *arena);

struct maq_count_options {
    uint64_t work; /* limit on stages tried plus states compared */
    uint32_t beam; /* beam: states kept per level, atom and hop group, for a good path without a proof; 0: all */
    bool left;     /* prune by the cost to go as well (cost_to_go.h) */
};

/*
 * The least sum of t_i of a box over compositions that use no more devices than there are, and the path that attains
 * it, if the sum is below `wanted`; otherwise `wanted`, and a path without stages. Where the limit on work is reached:
 * a lower bound that is proven by then (0 or more), and no path. Sets bottleneck_at and sync_at of the box. `rest` is
 * the table of priced_bound.c at the box's prices. false when out of memory.
 */
bool maq_counted_bound_solve(double *least, struct maq_bottleneck_box *box, struct maq_composition *path,
                             struct maq_counted_bound *counted, const double *rest, double wanted,
                             const struct maq_count_options *options);

#endif
