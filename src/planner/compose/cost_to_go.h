/* cost_to_go.h - what the front of a pipeline still costs with so many units left: see cost_to_go.c. */
#ifndef MAQ_PLANNER_COMPOSE_COST_TO_GO_H
#define MAQ_PLANNER_COMPOSE_COST_TO_GO_H

#include "planner/compose/bottleneck_box.h"
#include "planner/compose/device_units.h"

struct maq_left;
bool maq_left_new(struct maq_left **out, const struct maq_arcs *arcs, const struct maq_units *units,
                  struct maq_arena *arena);

/* `priced` is added to the cost of each stage, by option. */
void maq_left_fill(struct maq_left *left, const struct maq_box *box, const double *priced);
double maq_left_of(const struct maq_left *left, uint32_t behind, uint32_t atom, uint32_t code);

#endif
