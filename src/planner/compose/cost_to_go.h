/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cost_to_go.h - cost to go of a pipeline's front: the least sum of stage times over the atoms in front, for a number
 * of device units left.
 *
 * A table by position, atom and device code, filled by the dynamic program of cost_to_go.c; a lower bound for every
 * state of the programs that count devices (counted_bound.h, pipelines_count.h).
 */
#ifndef MAQ_PLANNER_COMPOSE_COST_TO_GO_H
#define MAQ_PLANNER_COMPOSE_COST_TO_GO_H

#include "planner/compose/bottleneck_box.h"
#include "planner/compose/device_units.h"

struct maq_cost_to_go;
bool maq_cost_to_go_new(struct maq_cost_to_go **out, const struct maq_layer_ranges *layer_ranges,
                        const struct maq_units *units, struct maq_arena *arena);

/* Fills the table for a box. `priced` [option]: seconds that are added to the cost of each stage of that option. */
void maq_cost_to_go_fill(struct maq_cost_to_go *left, const struct maq_bottleneck_box *box, const double *priced);
double maq_cost_to_go_of(const struct maq_cost_to_go *left, uint32_t behind, uint32_t atom, uint32_t code);

#endif
