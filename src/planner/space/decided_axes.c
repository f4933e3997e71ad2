/* SPDX-License-Identifier: Apache-2.0 */
/*
 * decided_axes.c - which axes of a space the job decides, by the axis's own key or by one that goes with it, and the place
 * in the document that says so.
 */
#include "planner/space/decided_axes.h"

#include "base/check.h"
#include "plan/job_build.h"

typedef bool sets_fn(const struct maq_loaded_job *loaded, const char *key);

/* Keys that decide an axis beside its own. */
static const char *const layout_keys[] = {"decoder_first_pipeline_num_layers", "decoder_last_pipeline_num_layers",
                                          "account_for_embedding_in_pipeline_split",
                                          "account_for_loss_in_pipeline_split"};
static const char *const recompute_keys[] = {"recompute_method", "recompute_num_layers"};
static const char *const inputs_keys[] = {"fine_grained_activation_offloading"};
static const char *const graphs_keys[] = {"enable_cuda_graph"};

static const struct {
    const char *const *keys;
    size_t n;
} beside[MAQ_AXIS_COUNT] = {
    [MAQ_AXIS_LAYOUT] = {layout_keys, MAQ_COUNT(layout_keys)},
    [MAQ_AXIS_RECOMPUTE] = {recompute_keys, MAQ_COUNT(recompute_keys)},
    [MAQ_AXIS_INPUTS] = {inputs_keys, MAQ_COUNT(inputs_keys)},
    [MAQ_AXIS_GRAPHS] = {graphs_keys, MAQ_COUNT(graphs_keys)},
};

/* The first key that decides an axis; NULL: none does. */
static const char *deciding(const struct maq_loaded_job *loaded, enum maq_axis axis, sets_fn *sets)
{
    if (sets(loaded, maq_axis_key(axis)))
        return maq_axis_key(axis);
    for (size_t i = 0; i < beside[axis].n; i++)
        if (sets(loaded, beside[axis].keys[i]))
            return beside[axis].keys[i];
    return NULL;
}

static sets_fn *setter(enum maq_space_kept kept)
{
    return kept == MAQ_KEPT_FLAGS ? maq_job_flag_sets : maq_job_sets;
}

bool maq_space_decided(const struct maq_loaded_job *loaded, enum maq_axis axis, enum maq_space_kept kept)
{
    bool modules = axis == MAQ_AXIS_RECOMPUTE && kept == MAQ_KEPT_ALL && maq_job_get(loaded)->plan.recompute_parts != 0;
    return kept != MAQ_KEPT_NOTHING && (modules || deciding(loaded, axis, setter(kept)) != NULL);
}

static bool keeps(const struct maq_loaded_job *loaded, const char *key, enum maq_space_kept kept)
{
    return kept != MAQ_KEPT_NOTHING && setter(kept)(loaded, key);
}

void maq_space_release(struct maq_plan *base, const struct maq_loaded_job *loaded, enum maq_space_kept kept)
{
    if (!keeps(loaded, "data_parallel_size", kept))
        base->dp = 0;
    if (!maq_space_decided(loaded, MAQ_AXIS_LAYOUT, kept)) {
        base->first_stage_layers = base->last_stage_layers = 0;
        base->account_for_embedding = base->account_for_loss = false;
    }
    if (!maq_space_decided(loaded, MAQ_AXIS_RECOMPUTE, kept)) {
        base->recompute = MAQ_RECOMPUTE_NONE;
        base->recompute_method = MAQ_RECOMPUTE_UNIFORM;
        base->recompute_num_layers = 0;
        base->recompute_parts = 0;
        base->recompute_stages = (struct maq_str){0};
    }
    if (!keeps(loaded, "microbatch_group_size_per_vp_stage", kept))
        base->microbatch_group = 0;
    if (!keeps(loaded, "hierarchical_cp_a2a_size", kept))
        base->cp_a2a = 0;
}

struct maq_span maq_space_place_of(const struct maq_loaded_job *loaded, const char *key)
{
    const struct maq_job_places at = maq_job_written(loaded);
    return key && maq_job_sets(loaded, key) ? maq_place_of_plan(&at, key) : (struct maq_span){0};
}

enum maq_status maq_space_keep_written(struct maq_axis_values *out, const struct maq_loaded_job *loaded,
                                       enum maq_axis axis, struct maq_arena *arena)
{
    out->at = MAQ_ARENA_NEW(arena, int32_t, 1);
    if (!out->at)
        return MAQ_NO_MEMORY;
    out->at[0] = MAQ_VALUE_AS_WRITTEN;
    out->n = 1;
    out->fixed = true;
    out->written = maq_space_place_of(loaded, deciding(loaded, axis, maq_job_sets));
    return MAQ_OK;
}
