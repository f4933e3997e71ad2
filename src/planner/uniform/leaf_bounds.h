/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_bounds.h - bounds of the plans under one pipeline of a branch (bounds.h), remembered, each worked out when it is first
 * asked for.
 *
 * Most pipelines are dropped for their time alone, and most that remain have a plan that fits without saving memory, so few
 * combinations of recomputation and offloading are ever bounded.
 */
#ifndef MAQ_PLANNER_UNIFORM_LEAF_BOUNDS_H
#define MAQ_PLANNER_UNIFORM_LEAF_BOUNDS_H

#include "planner/uniform/bounds.h"

struct maq_leaf_bounds {
    const struct maq_search_space *space;
    struct maq_branch_bounds branch;
    enum maq_status status; /* of working bounds out */
    const struct maq_pipeline *pipeline;
    uint32_t none; /* index of "nothing is recomputed" on its axis; the number of values when it is not there */
    /* step_s < 0: not worked out yet */
    struct maq_pipeline_bound *of;    /* [of OFFLOAD * (of RECOMPUTE + 1)] */
    struct maq_pipeline_bound *block; /* [layers + 1] of BLOCK without offloading */
    struct maq_pipeline_bound scratch;
    struct maq_sync_sums *sync; /* [of SHARDING * of REPLICAS] of the branch; reduce_ns NULL: not worked out yet */
};

/*
 * Bounds of the branch whose simplest plan is `plain` (maq_branch_plan()); no pipeline is selected yet. Everything
 * lives in `arena`.
 */
enum maq_status maq_leaf_bounds_init(struct maq_leaf_bounds *out, const struct maq_search_space *space,
                                     const struct maq_job *job, const struct maq_plan *plain,
                                     struct maq_train_sweep *sweep, struct maq_arena *arena);

/* Goes to a pipeline of the branch. */
void maq_leaf_bounds_select(struct maq_leaf_bounds *bounds, const struct maq_pipeline *pipeline);

/* First layers of each virtual stage that a value of OFFLOAD puts on the host. */
int32_t maq_leaf_offloaded(const struct maq_leaf_bounds *bounds, uint32_t offload);
/* Whether no activations are offloaded under that value. */
bool maq_leaf_on_device(const struct maq_leaf_bounds *bounds, uint32_t offload);

/* Lower bound of the step of every plan of the pipeline, s. */
double maq_leaf_time_bound(struct maq_leaf_bounds *bounds);

/* Bounds of a recomputation and an offloading, under any sharding; of BLOCK the time with one layer and the memory with all of
 * them. An index behind the end of the axis: the least of all recomputations. */
const struct maq_pipeline_bound *maq_leaf_bound(struct maq_leaf_bounds *bounds, uint32_t recompute, uint32_t offload);

/* Whether a recomputation makes no pass shorter under that offloading. */
bool maq_leaf_recompute_adds(const struct maq_leaf_bounds *bounds, uint32_t recompute, uint32_t offload);

/*
 * Bounds of BLOCK, the value `recompute` of its axis, with so many layers of each virtual stage. Valid until the next
 * call.
 */
const struct maq_pipeline_bound *maq_leaf_block_bound(struct maq_leaf_bounds *bounds, uint32_t recompute,
                                                      uint32_t offload, int32_t layers);

/* Lower bound of the step without saving of memory, under the sharding of `plan`, whose values on the axes are `sharding` and
 * `replicas`; 0 where the sharding adds nothing to a pass. Not worked out further than `limit_s`. */
enum maq_status maq_leaf_sync_bound(double *step_s, struct maq_leaf_bounds *bounds, const struct maq_plan *plan,
                                    uint32_t sharding, uint32_t replicas, double limit_s);

#endif
