/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data_parallel.h - data parallelism across node groups: each group runs the whole model as a pipeline of its own, for its share of
 * the micro batches.
 *
 * Two or more node groups make a pipeline each, with D_g replicas that do m_g micro batches each; together they do the global
 * batch. Between groups only gradients are communicated, once a step: over R = sum D_g replicas in a ring that crosses the slowest
 * link between two groups (train/mixed/placed.c). With the stages of a group's table (planner/stages/stage_costs.h), in seconds,
 *
 *   T   = max_g ((m_g - 1) max t_i + sum t_i + max (sync_i + across_i) + max update_i)
 *   across_i = 2 (R - 1) / R of the gradients of a device of stage i to the slowest group, all devices of a replica sending
 *
 * Simplifications: a group that ends before the others does not wait for their gradients (shorter); gradients are reduced inside
 * the group and across groups one after the other (longer). The step of a plan is the simulated one.
 *
 * The search finds the least T over every micro batch, every set of groups, and the numbers of replicas that waves have
 * (compositions.c). Under a limit of T, a group with D replicas does at most the largest m whose best composition, found exactly,
 * is below the limit. Where the groups together do less than the global batch for all numbers of replicas, no plan is below the
 * limit. Otherwise there is a plan, and the limit is lowered to it.
 *
 * A cheap bound comes first: a step of m micro batches takes at least m / M of a step of M, since a composition's time is linear in
 * m with an intercept above 0. So a group that alone takes B for all micro batches does at most T / B of them, and none where it
 * cannot hold the model. (For this bound a stage holds as many micro batches in flight as with all of the wave's.) What the other
 * groups leave is the least that a group has to do; numbers of replicas that cannot do as much below the limit are dropped.
 */
#ifndef MAQ_PLANNER_MIXED_DATA_PARALLEL_H
#define MAQ_PLANNER_MIXED_DATA_PARALLEL_H

#include "planner/mixed/search_state.h"

/*
 * Adds the plans that it finds to those of the run, and lowers the bound to its own. `islands`: what each node group
 * takes alone, where `alone` is set.
 */
enum maq_status maq_mixed_data_parallel_search(struct maq_mixed_run *run, const struct maq_mixed_search_island *islands,
                                               bool alone, const struct maq_mixed_search_opts *opts,
                                               struct maq_diag *diag);

/* ---- for tests ---- */

/* A node group's part of a plan. */
struct maq_mixed_share {
    uint32_t group, wave; /* of the run */
    uint32_t waves;       /* micro batches of a replica */
    double run_s, pace_s; /* of all its micro batches; of one micro batch more or less */
    struct maq_composition composition;
    bool found;
};

struct maq_mixed_share_query {
    uint32_t group, wave;
    uint32_t groups, ranks; /* the set of groups (bits, its own included), and their replicas in all */
    uint32_t least;         /* micro batches of a replica that it has to do at least */
    double limit_s;
};

/* The most micro batches that a group does below the limit, with the replicas of a wave; out->found is false where it is less
 * than `least`. With `least`, the composition need not be the best one for that number. false when out of memory. */
bool maq_mixed_share_largest(struct maq_mixed_share *out, const struct maq_mixed_run *run,
                             const struct maq_mixed_share_query *ask, struct maq_arena *scratch);

#endif
