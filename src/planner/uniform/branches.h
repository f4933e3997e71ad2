/* SPDX-License-Identifier: Apache-2.0 */
/*
 * branches.h - branches of the branch and bound: the space cut by the axes that change what a layer computes, with a lower bound
 * of each branch.
 *
 * A branch is one value of every axis before MAQ_AXIS_BRANCHES. All its plans run the same operators on a microbatch, so that the
 * atoms of one of them (train/atoms.h) bound all. With W the forward and backward time of a microbatch through the whole model,
 * nothing recomputed, m microbatches and p stages, the stages together compute m W, the busiest at least its share:
 *
 *   step >= m W / p
 *
 * With the schedule, the number of virtual stages and the layout known (leaves.c), stage s also waits until the first microbatch
 * has come through the stages before it, and they wait for its last one to come back (not where weight gradients are put off):
 *
 *   step >= m w_s + sum of f_q over q < s (+ sum of b_q)        over positions q in front of the first that s holds
 */
#ifndef MAQ_PLANNER_UNIFORM_BRANCHES_H
#define MAQ_PLANNER_UNIFORM_BRANCHES_H

#include "planner/uniform/pipeline_layouts.h"
#include "train/atoms.h"

struct maq_search_branch {
    int32_t value[MAQ_AXIS_BRANCHES];
    uint32_t number; /* in the order of the space */
    uint64_t plans;  /* plans of the space in the branch, filled in by maq_leaves_count() */
    double bound_s;  /* lower bound of the step of its plans */
    bool impossible;
};

struct maq_search_branches {
    struct maq_search_branch *at; /* [n] in the order of the space */
    uint32_t n;
};

/*
 * The plan of a branch with the other axes at their simplest values: one virtual stage, 1F1B, balanced, unsharded, nothing
 * recomputed.
 */
void maq_branch_plan(struct maq_plan *out, const struct maq_search_space *space,
                     const struct maq_search_branch *branch);
/* Microbatches of a plan of the branch; its degrees fit the cluster and the batch. */
int32_t maq_branch_microbatches(const struct maq_job *job, const struct maq_plan *plan);

/*
 * Every branch whose degrees fit the cluster and the batch; branches that differ only in axes without effect are listed
 * once. Lives in the arena.
 */
enum maq_status maq_branches_list(struct maq_search_branches *out, const struct maq_search_space *space,
                                  const struct maq_job *job, struct maq_arena *arena);
/* Fills bound_s or impossible. `scratch` is reset before it returns. */
enum maq_status maq_branch_bound(struct maq_search_branch *branch, const struct maq_search_space *space,
                                 const struct maq_job *job, struct maq_train_sweep *sweep, struct maq_arena *scratch);

#endif
