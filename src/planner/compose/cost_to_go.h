/* cost_to_go.h - what the front of a pipeline still costs with so many units left: see cost_to_go.c. */
#ifndef MAQ_PLANNER_COMPOSE_COST_TO_GO_H
#define MAQ_PLANNER_COMPOSE_COST_TO_GO_H

#include "planner/compose/bottleneck_box.h"
#include "planner/compose/device_units.h"

struct maq_cost_to_go;
bool maq_cost_to_go_new(struct maq_cost_to_go **out, const struct maq_layer_ranges *layer_ranges,
                        const struct maq_units *units, struct maq_arena *arena);

/* `priced` is added to the cost of each stage, by option. */
void maq_cost_to_go_fill(struct maq_cost_to_go *left, const struct maq_bottleneck_box *box, const double *priced);
double maq_cost_to_go_of(const struct maq_cost_to_go *left, uint32_t behind, uint32_t atom, uint32_t code);

#endif
