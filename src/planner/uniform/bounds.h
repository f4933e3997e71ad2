/*
 * bounds.h - what the plans of a branch need at least, from its atoms. The equations are in branches.h and bounds.c.
 */
#ifndef MAQ_PLANNER_UNIFORM_BOUNDS_H
#define MAQ_PLANNER_UNIFORM_BOUNDS_H

#include "planner/uniform/pipeline_layouts.h"
#include "train/atoms.h"

/* What a position of a pipeline holds at least. */
struct maq_position_bound {
    double forward, backward, dense, expert, narrow, act, transient;
};

/* Sums over the atoms before each, under one recomputation: a range is a difference. */
struct maq_bound_sums {
    double *forward_ns, *backward_ns, *redone_forward_ns, *redone_backward_ns; /* [atoms + 1] */
    double *act_bytes, *redone_act_bytes, *dense_params, *expert_params, *narrow_params;
    const double *transient_bytes, *redone_transient_bytes, *most_act_bytes; /* [atoms], of each */
    double hop_ns;
    bool adds; /* recomputing makes no pass of an atom shorter; of offloaded layers it may: there is less to move */
};

struct maq_branch_bounds {
    const struct maq_search_space *space;
    struct maq_train_sweep *sweep;
    struct maq_arena *arena;
    struct maq_plan plain;   /* the branch's plainest plan, with nothing on the host */
    uint32_t inputs;         /* of modules that wait there in the branch: bits of enum maq_offload_module */
    struct maq_job resolved; /* the job with it, for what states take */
    struct maq_bound_sums plain_sums[MAQ_PASSES_COUNT]; /* nothing is saved; NULL: of no schedule of the space */
    enum maq_passes plain_passes;                       /* one that is there */
    /* [of RECOMPUTE + 1], the last of each atom the least of all; by the same, and whether layers are offloaded; NULL: not
     * worked out yet */
    struct maq_bound_sums *sums[MAQ_PASSES_COUNT][2];
    uint32_t n_atoms, microbatches;
    bool alike; /* all layers of the model are */
    double capacity_bytes;
    double fixed_bytes;              /* context, workspace, communicators */
    struct maq_position_bound *held; /* scratch, by position */
    uint16_t *positions;             /* scratch, of a stage */
};

/* `plain` is the plan of maq_branch_plan(). Everything lives in `arena`. */
enum maq_status maq_branch_bounds(struct maq_branch_bounds *out, const struct maq_search_space *space,
                                  const struct maq_job *job, const struct maq_plan *plain,
                                  struct maq_train_sweep *sweep, struct maq_arena *arena);

/* What queries of recomputations need, with layers offloaded or without. */
enum maq_status maq_branch_bounds_need(struct maq_branch_bounds *bounds, enum maq_passes passes, bool away);

/* What a way to shard adds to each pass, sums over the atoms before each [atoms + 1]. */
struct maq_sync_sums {
    double *forward_gather_ns, *backward_gather_ns, *reduce_ns;
    double total_ns; /* of all atoms, both passes */
};

/* Of plans that shard as `plan` does. Lives in the arena of the bounds. */
enum maq_status maq_sync_bound(struct maq_sync_sums *out, const struct maq_branch_bounds *bounds,
                               const struct maq_plan *plan);

#define MAQ_BOUND_PLAIN UINT32_MAX /* nothing is saved: the time of this bounds all, and nothing else is asked of it */

/* Which plans a bound is of. */
struct maq_bound_query {
    const struct maq_pipeline *pipeline;
    uint32_t recompute;               /* index on that axis; behind its end: the least of all */
    int32_t value;                    /* its value; any but BLOCK behind the end */
    int32_t block;                    /* MAQ_RECOMPUTE_VALUE_BLOCK and _STAGES: layers of each virtual stage */
    int32_t offloaded;                /* first layers of each virtual stage whose activations are on the host */
    const struct maq_sync_sums *sync; /* NULL: however sharded */
};

const struct maq_bound_sums *maq_bound_sums_of(const struct maq_branch_bounds *bounds,
                                               const struct maq_bound_query *query, bool away);

/* What a stage holds at least; whatever way it is sharded. */
struct maq_stage_bound {
    double dense_params, expert_params, narrow_params, act_bytes, transient_bytes;
};

/* The plans of a pipeline under one query. */
struct maq_pipeline_bound {
    double step_s;                  /* none is faster */
    struct maq_stage_bound *stages; /* [pp], given by the caller */
};
void maq_pipeline_bound(struct maq_pipeline_bound *out, const struct maq_branch_bounds *bounds,
                        const struct maq_bound_query *query);

/* Bytes of state per parameter under a way to shard; narrow: on top of them, for what the recipe quantizes (less than 0 where it is
 * kept in 8 bits alone). */
struct maq_state_bound {
    double dense, expert, narrow;
    bool none; /* there is no bound */
};
struct maq_state_bound maq_state_bound(const struct maq_branch_bounds *bounds, const struct maq_plan *plan);

/* States of an average stage under a way to shard, and what does not depend on the stage: the fullest one has no less. */
double maq_mean_state_bytes(const struct maq_branch_bounds *bounds, const struct maq_plan *plan);

/* No plan of the pipeline so sharded needs less memory. */
double maq_memory_bound(const struct maq_branch_bounds *bounds, const struct maq_pipeline_bound *pipeline,
                        const struct maq_state_bound *states);

#endif
