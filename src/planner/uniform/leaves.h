/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaves.h - leaves of the branch and bound, the plans of a branch: how its work is arranged over stages and replicas, and what is
 * kept in memory.
 *
 *   pipeline x sharding x copies of the shards x (layers offloaded x optimizer on the host x recomputation)
 *
 * The axes in brackets save memory and cost time, never the reverse. So the plan that uses none of them is a lower bound of the
 * time of the others; where it fits, the others need not be timed, and of "the first N layers are recomputed" the least N that
 * fits is the fastest. The same holds stage by stage, where N may differ from stage to stage: a step is no shorter when one of its
 * stages takes longer, and what a stage holds does not depend on what another one recomputes.
 */
#ifndef MAQ_PLANNER_UNIFORM_LEAVES_H
#define MAQ_PLANNER_UNIFORM_LEAVES_H

#include "planner/uniform/branches.h"
#include "planner/uniform/pareto.h"

/* Share of a step: offloading that could gain at most this much, by hiding in a wait, is not searched. */
#define MAQ_NEGLIGIBLE_GAIN 1e-3

/* An impossible plan, for a diagnostic. Of several, the one with the most specific reason is kept. */
struct maq_refused {
    struct maq_plan plan;
    enum { MAQ_REFUSED_NONE, MAQ_REFUSED_SCHEDULE, MAQ_REFUSED_PLAN } by;
};
void maq_refused_keep(struct maq_refused *kept, const struct maq_refused *other);

/* A thread's state while it explores a branch, and what it found there. Counts are of this branch alone. */
struct maq_leaf_search {
    const struct maq_search_space *space;
    const struct maq_pipelines *pipelines;
    const struct maq_job *job;
    struct maq_train_sweep *sweep;
    struct maq_arena *scratch;
    struct maq_arena *keep; /* for the strings of plans that were found; lives as long as they do */
    bool exhaustive;
    double limit_s;                 /* plans that take this long or longer are of no use */
    const struct maq_pareto *front; /* plans that it beats in time and memory are of no use; NULL = only time counts */
    /* found */
    struct maq_search_plan best;   /* step_s = 0: nothing under the limit */
    struct maq_search_plan frugal; /* of those that do not fit, the least memory; needed_bytes = 0: none */
    struct maq_refused refused;    /* the first impossible plan */
    struct maq_pareto *found;      /* with a front: what to add to it */
    struct maq_search_counts counts;
    enum maq_status status;
};

/* How many plans a branch has. */
uint64_t maq_leaves_count(const struct maq_search_space *space, const struct maq_pipelines *pipelines,
                          const struct maq_job *job, const struct maq_plan *plan);

/* Explores the plans of a branch; fills the members under `found`. */
enum maq_status maq_leaves_explore(struct maq_leaf_search *search, const struct maq_search_branch *branch);

#endif
