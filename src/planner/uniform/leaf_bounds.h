/*
 * leaf_bounds.h - the bounds of the plans under one pipeline of a branch, each worked out when it is first asked for.
 *
 * Most pipelines are left out for their time alone, and most that remain have a plan that fits without saving memory: so few of
 * the combinations of recomputation and offloading are ever looked at.
 */
#ifndef MAQ_PLANNER_UNIFORM_LEAF_BOUNDS_H
#define MAQ_PLANNER_UNIFORM_LEAF_BOUNDS_H

#include "planner/uniform/bounds.h"

struct maq_leaf_bounds {
    const struct maq_search_space *space;
    struct maq_branch_bounds branch;
    enum maq_status status; /* of working bounds out */
    const struct maq_pipeline *pipeline;
    uint32_t none; /* where "nothing is recomputed" stands on its axis; as many as there are values when it does not */
    /* step_s < 0: not worked out yet */
    struct maq_pipeline_bound *of;    /* [of OFFLOAD * (of RECOMPUTE + 1)] */
    struct maq_pipeline_bound *block; /* [layers + 1] of BLOCK without offloading */
    struct maq_pipeline_bound scratch;
    struct maq_sync_sums *sync; /* [of SHARDING * of REPLICAS] of the branch; reduce_ns NULL: not worked out yet */
};

/* Of a branch with the plainest plan `plain`; no pipeline yet. Everything lives in `arena`. */
enum maq_status maq_leaf_bounds_init(struct maq_leaf_bounds *out, const struct maq_search_space *space,
                                     const struct maq_job *job, const struct maq_plan *plain,
                                     struct maq_train_sweep *sweep, struct maq_arena *arena);

/* Goes to a pipeline of the branch. */
void maq_leaf_bounds_select(struct maq_leaf_bounds *bounds, const struct maq_pipeline *pipeline);

/* First layers of each virtual stage that a value of OFFLOAD puts on the host. */
int32_t maq_leaf_offloaded(const struct maq_leaf_bounds *bounds, uint32_t offload);
/* Whether nothing of the activations waits on the host then. */
bool maq_leaf_on_device(const struct maq_leaf_bounds *bounds, uint32_t offload);

/* No plan of the pipeline is faster. */
double maq_leaf_time_bound(struct maq_leaf_bounds *bounds);

/* Of a recomputation and an offloading, however sharded; of BLOCK the time of one layer and the memory of all of them. Behind the
 * end of the axis: of all recomputations. */
const struct maq_pipeline_bound *maq_leaf_bound(struct maq_leaf_bounds *bounds, uint32_t recompute, uint32_t offload);

/* Whether a recomputation makes no pass shorter where so much is offloaded. */
bool maq_leaf_recompute_adds(const struct maq_leaf_bounds *bounds, uint32_t recompute, uint32_t offload);

/* Of BLOCK, the value `recompute` of its axis, with so many layers of each virtual stage. Good until the next call. */
const struct maq_pipeline_bound *maq_leaf_block_bound(struct maq_leaf_bounds *bounds, uint32_t recompute,
                                                      uint32_t offload, int32_t layers);

/* Least time of what saves no memory under a way to shard, the values `sharding` and `replicas` of their axes, which `plan` has; 0
 * where it adds nothing to a pass. Not looked into beyond `limit_s`. */
enum maq_status maq_leaf_sync_bound(double *step_s, struct maq_leaf_bounds *bounds, const struct maq_plan *plan,
                                    uint32_t sharding, uint32_t replicas, double limit_s);

#endif
