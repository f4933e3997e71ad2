/* SPDX-License-Identifier: Apache-2.0 */
/*
 * priced_bound.h - relaxed programs that price devices (Lagrangian relaxation): a lower bound of the sum of stage
 * times of a box.
 *
 * priced_bound.c has the bound and the subgradient steps that raise it.
 */
#ifndef MAQ_PLANNER_COMPOSE_PRICED_BOUND_H
#define MAQ_PLANNER_COMPOSE_PRICED_BOUND_H

#include "planner/compose/bottleneck_box.h"

struct maq_priced_bound;
bool maq_priced_bound_new(struct maq_priced_bound **out, const struct maq_layer_ranges *layer_ranges,
                          struct maq_arena *arena);

/* Forgets which options a box holds: for who has changed the synchronization of the layer ranges (`sync_s`). */
void maq_priced_bound_forget(struct maq_priced_bound *priced);

/*
 * Raises box->price[0] until the box is refuted (the result is `wanted` or more) or steps gain little. Returns the lower bound of
 * sum t_i.
 */
double maq_priced_bound_raise(struct maq_priced_bound *priced, struct maq_bottleneck_box *box,
                              struct maq_composition *best, double wanted,
                              const struct maq_bottleneck_box_options *options, uint64_t *programs);

/* The cost-to-go table `rest` of the box at its prices: valid until the next program. */
const double *maq_priced_bound_rest(struct maq_priced_bound *priced, const struct maq_bottleneck_box *box,
                                    uint32_t dual, double wanted);

/* The optimal path of a program, with hops to the nearest neighbours. */
struct maq_priced_path {
    uint32_t n_stages; /* 0: none below the limit */
    double fill_s, bottleneck_s, sync_s;
    double used[MAQ_STAGE_KINDS]; /* devices */
};

/*
 * Lower bound of the sum of t_i plus the price of devices (box->price[0]) over the stages of a box, or the limit if
 * that is less.
 */
double maq_priced_bound_least(struct maq_priced_bound *priced, struct maq_priced_path *path,
                              const struct maq_bottleneck_box *box, double limit);

/*
 * Hands a path that a program found to the hook; it becomes *best if it is a better composition and uses no more
 * devices than there are.
 */
void maq_composition_offer(struct maq_composition *best, struct maq_composition *path,
                           const struct maq_stage_table *table, const struct maq_bottleneck_box_options *options);

#endif
