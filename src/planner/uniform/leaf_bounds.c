/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaf_bounds.c - remembers the bounds of one pipeline by recomputation, offloading, number of recomputed layers and
 * sharding. See leaf_bounds.h.
 */
#include "planner/uniform/leaf_bounds.h"

#include <math.h>

#include "base/check.h"
#include "plan/schedule/schedule.h"

static uint32_t values(const struct maq_leaf_bounds *f, enum maq_axis axis)
{
    return f->space->axis[axis].n;
}

static uint32_t index_of_nothing(const struct maq_search_space *space)
{
    const struct maq_axis_values *axis = &space->axis[MAQ_AXIS_RECOMPUTE];
    uint32_t i = 0;
    while (i < axis->n && axis->at[i] != MAQ_RECOMPUTE_VALUE_NONE)
        i++;
    return i;
}

enum maq_status maq_leaf_bounds_init(struct maq_leaf_bounds *out, const struct maq_search_space *space,
                                     const struct maq_job *job, const struct maq_plan *plain,
                                     struct maq_train_sweep *sweep, struct maq_arena *arena)
{
    *out = (struct maq_leaf_bounds){.space = space, .none = index_of_nothing(space)};
    MAQ_TRY(maq_branch_bounds(&out->branch, space, job, plain, sweep, arena));
    size_t stages = (size_t)plain->pp,
           n = ((size_t)space->axis[MAQ_AXIS_RECOMPUTE].n + 1) * space->axis[MAQ_AXIS_OFFLOAD].n,
           blocks = (size_t)job->model.num_layers + 1;
    struct maq_stage_bound *at = MAQ_ARENA_NEW(arena, struct maq_stage_bound, (n + blocks + 1) * stages);
    out->of = MAQ_ARENA_NEW(arena, struct maq_pipeline_bound, n);
    out->block = MAQ_ARENA_NEW(arena, struct maq_pipeline_bound, blocks);
    out->sync = MAQ_ARENA_NEW(arena, struct maq_sync_sums,
                              (size_t)space->axis[MAQ_AXIS_SHARDING].n * space->axis[MAQ_AXIS_REPLICAS].n);
    if (!at || !out->of || !out->block || !out->sync)
        return MAQ_NO_MEMORY;
    for (size_t i = 0; i < n; i++, at += stages)
        out->of[i].stages = at;
    for (size_t i = 0; i < blocks; i++, at += stages)
        out->block[i].stages = at;
    out->scratch.stages = at;
    return MAQ_OK;
}

void maq_leaf_bounds_select(struct maq_leaf_bounds *f, const struct maq_pipeline *pipeline)
{
    f->pipeline = pipeline;
    for (uint32_t i = 0; i < (values(f, MAQ_AXIS_RECOMPUTE) + 1) * values(f, MAQ_AXIS_OFFLOAD); i++)
        f->of[i].step_s = -1;
    for (int32_t n = 0; n <= pipeline->most_layers; n++)
        f->block[n].step_s = -1;
}

int32_t maq_leaf_offloaded(const struct maq_leaf_bounds *f, uint32_t offload)
{
    int32_t value = f->space->axis[MAQ_AXIS_OFFLOAD].at[offload];
    return value == MAQ_VALUE_AS_WRITTEN ? f->space->base.offload_layers : value;
}

bool maq_leaf_on_device(const struct maq_leaf_bounds *f, uint32_t offload)
{
    return maq_leaf_offloaded(f, offload) == 0 && f->branch.inputs == 0;
}

static struct maq_bound_query query_of(const struct maq_leaf_bounds *f, uint32_t recompute, uint32_t offload)
{
    bool all = recompute >= values(f, MAQ_AXIS_RECOMPUTE);
    return (struct maq_bound_query){.pipeline = f->pipeline,
                                    .recompute = recompute,
                                    .value = all ? MAQ_RECOMPUTE_VALUE_NONE
                                                 : f->space->axis[MAQ_AXIS_RECOMPUTE].at[recompute],
                                    .block = 1,
                                    .offloaded = maq_leaf_offloaded(f, offload)};
}

/* Makes the sums that a query needs; false when out of memory, and then bounds are below every plan. */
static bool has_sums(struct maq_leaf_bounds *f, const struct maq_bound_query *q)
{
    enum maq_passes passes = maq_passes_of(f->pipeline->schedule);
    if (f->status == MAQ_OK)
        f->status = maq_branch_bounds_need(&f->branch, passes, false);
    if (f->status == MAQ_OK && q->offloaded > 0)
        f->status = maq_branch_bounds_need(&f->branch, passes, true);
    return f->status == MAQ_OK;
}

double maq_leaf_time_bound(struct maq_leaf_bounds *f)
{
    struct maq_bound_query q = query_of(f, MAQ_BOUND_PLAIN, 0);
    q.offloaded = 0;
    maq_pipeline_bound(&f->scratch, &f->branch, &q);
    return f->scratch.step_s;
}

const struct maq_pipeline_bound *maq_leaf_bound(struct maq_leaf_bounds *f, uint32_t recompute, uint32_t offload)
{
    struct maq_pipeline_bound *bound = &f->of[offload * (values(f, MAQ_AXIS_RECOMPUTE) + 1) + recompute];
    if (bound->step_s >= 0)
        return bound;
    struct maq_bound_query q = query_of(f, recompute, offload);
    if (!has_sums(f, &q))
        return bound;
    bool stages = q.value == MAQ_RECOMPUTE_VALUE_STAGES, block = q.value == MAQ_RECOMPUTE_VALUE_BLOCK || stages;
    if (block) /* the memory with the most layers, the time with the least */
        q.block = f->pipeline->most_layers;
    maq_pipeline_bound(bound, &f->branch, &q);
    if (block) {
        q.block = stages ? 0 : 1;
        maq_pipeline_bound(&f->scratch, &f->branch, &q);
        bound->step_s = f->scratch.step_s;
        if (!maq_leaf_recompute_adds(f, recompute, offload)) /* then more layers may take less */
            bound->step_s = fmin(bound->step_s, maq_leaf_bound(f, values(f, MAQ_AXIS_RECOMPUTE), offload)->step_s);
    }
    return bound;
}

bool maq_leaf_recompute_adds(const struct maq_leaf_bounds *f, uint32_t recompute, uint32_t offload)
{
    bool layers = maq_leaf_offloaded(f, offload) > 0;
    const struct maq_bound_sums *sums = f->branch.sums[maq_passes_of(f->pipeline->schedule)][layers];
    return maq_leaf_on_device(f, offload) || !sums || sums[recompute].adds;
}

const struct maq_pipeline_bound *maq_leaf_block_bound(struct maq_leaf_bounds *f, uint32_t recompute, uint32_t offload,
                                                      int32_t layers)
{
    struct maq_bound_query q = query_of(f, recompute, offload);
    struct maq_pipeline_bound *bound = q.offloaded > 0 ? &f->scratch : &f->block[layers];
    q.block = layers;
    if (has_sums(f, &q) && (q.offloaded > 0 || bound->step_s < 0))
        maq_pipeline_bound(bound, &f->branch, &q);
    return bound;
}

enum maq_status maq_leaf_sync_bound(double *step_s, struct maq_leaf_bounds *f, const struct maq_plan *plan,
                                    uint32_t sharding, uint32_t replicas, double limit_s)
{
    struct maq_sync_sums *sync = &f->sync[sharding * values(f, MAQ_AXIS_REPLICAS) + replicas];
    *step_s = 0;
    if (!sync->reduce_ns)
        MAQ_TRY(maq_sync_bound(sync, &f->branch, plan));
    if (sync->total_ns == 0)
        return MAQ_OK;
    double alone_s = f->branch.microbatches * sync->total_ns / f->branch.plain.pp * 1e-9; /* the mean stage */
    *step_s = alone_s;
    if (alone_s >= limit_s)
        return MAQ_OK;
    struct maq_bound_query q = query_of(f, MAQ_BOUND_PLAIN, 0);
    q.offloaded = 0;
    q.sync = sync;
    maq_pipeline_bound(&f->scratch, &f->branch, &q);
    *step_s = f->scratch.step_s;
    return MAQ_OK;
}
