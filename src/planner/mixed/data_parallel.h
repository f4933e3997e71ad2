/*
 * data_parallel.h - data parallelism across node groups: each runs the whole model for its share of the micro batches.
 *
 * Two node groups or more make a pipeline each, with D_g replicas, which do m_g micro batches; together all there
 * are. Between them nothing crosses but gradients, once a step: over R = sum D_g replicas in a ring that crosses the
 * slowest link from a group to another (train/mixed/placed.c). With the stages that a group's table has (planner/stages/stage_costs.h), in
 * seconds,
 *
 *   T   = max_g ((m_g - 1) max t_i + sum t_i + max (sync_i + across_i) + max update_i)
 *   across_i = 2 (R - 1) / R of the gradients of a device of stage i to the slowest group, all devices of a replica sending
 *
 * Simplifications: a group that is done before the others is not kept waiting for their gradients (shorter);
 * gradients are reduced inside the group and across groups one after the other (longer). The step of a plan is the
 * one that is simulated.
 *
 * Found is the least T of all: of every micro batch, every set of groups, the numbers of replicas that waves have
 * (search.c). For a limit of T a group does so many micro batches at most with D replicas: the most m whose
 * best composition, found exactly, is below it. Where that is less than there are for all numbers of replicas, no
 * plan is below the limit. Otherwise the limit follows the plan that is there.
 *
 * Before that: a step of m micro batches is no less than m / M of one of M, for compositions are straight lines over
 * m that begin above 0. So a group that alone takes B for all of them does no more than T / B of them, and none where
 * it cannot hold the model. (For that a stage holds as many micro batches as with all of the wave's.) What the others
 * leave is the least that it has to do: numbers of replicas that do not do so much below the limit are out, which is
 * soon seen.
 */
#ifndef MAQ_PLANNER_MIXED_DATA_PARALLEL_H
#define MAQ_PLANNER_MIXED_DATA_PARALLEL_H

#include "planner/mixed/search_state.h"

/* Adds to plans and bound what it finds. `islands`: what node groups do alone, where that is known. */
enum maq_status maq_mixed_data_parallel_search(struct maq_mixed_run *run, const struct maq_mixed_search_island *islands,
                                               bool alone, const struct maq_mixed_search_opts *opts,
                                               struct maq_diag *diag);

/* ---- for tests ---- */

/* A node group's part of a plan. */
struct maq_mixed_share {
    uint32_t group, wave; /* of the run */
    uint32_t waves;       /* micro batches of a replica */
    double run_s, pace_s; /* all of it; what one micro batch more or less is */
    struct maq_composition composition;
    bool found;
};

struct maq_mixed_share_query {
    uint32_t group, wave;
    uint32_t groups, ranks; /* beside groups (a bit set, its own included) of so many replicas in all */
    uint32_t least;         /* micro batches of a replica: less than that is nothing */
    double limit_s;
};

/* The most micro batches that a group does below the limit, with the replicas of a wave; with `least` the composition is not the best one
 * that does so many. false when out of memory. */
bool maq_mixed_share_largest(struct maq_mixed_share *out, const struct maq_mixed_run *run,
                             const struct maq_mixed_share_query *ask, struct maq_arena *scratch);

#endif
