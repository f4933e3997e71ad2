/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.h - lower bounds of step time and memory of the plans of a branch, from sums over its atoms. The equations are
 * in branches.h and bounds.c.
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
    /* recomputing makes no pass of an atom shorter. With offloading it may, since there is less to transfer */
    bool adds;
};

struct maq_branch_bounds {
    const struct maq_search_space *space;
    struct maq_train_sweep *sweep;
    struct maq_arena *arena;
    struct maq_plan plain;   /* the branch's plainest plan, with nothing on the host */
    uint32_t inputs;         /* modules whose inputs are on the host in the branch: bits of enum maq_offload_module */
    struct maq_job resolved; /* the job with it, for what states take */
    struct maq_bound_sums plain_sums[MAQ_PASSES_COUNT]; /* no saving of memory; NULL: no schedule has such passes */
    enum maq_passes plain_passes;                       /* one that is there */
    /* [values of RECOMPUTE + 1], the last one the least of all atom by atom; by passes, and by whether layers are
     * offloaded; NULL: not made yet */
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

/* Makes the sums that queries need, with layers offloaded (`away`) or without. */
enum maq_status maq_branch_bounds_need(struct maq_branch_bounds *bounds, enum maq_passes passes, bool away);

/* What a sharding (ZeRO, copies) adds to each pass, as prefix sums over atoms [atoms + 1]. */
struct maq_sync_sums {
    double *forward_gather_ns, *backward_gather_ns, *reduce_ns;
    double total_ns; /* of all atoms, both passes */
};

/* Sums for plans with the sharding of `plan`. Lives in the arena of the bounds. */
enum maq_status maq_sync_bound(struct maq_sync_sums *out, const struct maq_branch_bounds *bounds,
                               const struct maq_plan *plan);

/* no saving of memory: only its time is asked for, which bounds all recomputations */
#define MAQ_BOUND_PLAIN UINT32_MAX

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

/* Lower bounds of what a stage holds, before sharding. */
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

/* Bytes of state per parameter under a sharding; narrow: in addition, for parameters that the recipe quantizes (negative where
 * they are kept in 8 bits alone). */
struct maq_state_bound {
    double dense, expert, narrow;
    bool none; /* no bound is known */
};
struct maq_state_bound maq_state_bound(const struct maq_branch_bounds *bounds, const struct maq_plan *plan);

/*
 * Bytes of the states of the mean stage under a sharding, plus what does not depend on the stage: a lower bound for the
 * fullest stage.
 */
double maq_mean_state_bytes(const struct maq_branch_bounds *bounds, const struct maq_plan *plan);

/* Lower bound of the memory of every plan of the pipeline with that sharding. */
double maq_memory_bound(const struct maq_branch_bounds *bounds, const struct maq_pipeline_bound *pipeline,
                        const struct maq_state_bound *states);

#endif
