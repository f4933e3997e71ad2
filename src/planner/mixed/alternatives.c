/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alternatives.c - runs the other searches in turn and merges what they find: a plan enters the result where it is
 * faster than all plans before it, and the bound becomes the lesser of both. See alternatives.h.
 */
#include "planner/mixed/alternatives.h"

#include <string.h>

#include "base/check.h"
#include "planner/mixed/compositions.h"
#include "planner/mixed/uniform.h"

/* Copies a plan out of the result of another search, which is freed afterwards. */
static enum maq_status insert_copy(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                                   const struct maq_mixed_search_plan *found, struct maq_diag *diag)
{
    struct maq_mixed_search_plan plan = *found;
    struct maq_mixed_search_stage *stages = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_stage, found->n_stages);
    struct maq_mixed_search_share *shares =
        MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_share, found->n_pipelines);
    struct maq_plan *whole = found->uniform ? maq_mixed_keep_plan(found->uniform, &run->arena) : NULL;
    if (!stages || !shares || (found->uniform && !whole))
        return maq_no_memory(diag, "the search");
    memcpy(stages, found->stages, found->n_stages * sizeof *stages);
    plan.stages = stages;
    plan.uniform = whole;
    if (found->pipelines) {
        memcpy(shares, found->pipelines, found->n_pipelines * sizeof *shares);
        plan.pipelines = shares;
    }
    maq_mixed_run_insert(run, opts, &plan);
    return MAQ_OK;
}

static double least(double a, double b)
{
    return a > 0 && (b <= 0 || a < b) ? a : b;
}

/* Bound, gap and the least closed form then hold for both classes of plans. */
static void join_bounds(struct maq_mixed_search_result *r, double composed_s, double bound_s)
{
    r->bound_s = least(r->bound_s, bound_s);
    r->composed_s = least(r->composed_s, composed_s);
}

/* Adds overlap_moe_expert_parallel_comm to the lists of the options; false when out of memory. */
static bool overlap(struct maq_mixed_search_opts *opts, struct maq_arena *arena)
{
    const char **lists = MAQ_ARENA_NEW(arena, const char *, opts->n_lists + 1);
    for (size_t i = 0; lists && i < opts->n_lists; i++)
        lists[i] = opts->lists[i];
    if (lists)
        lists[opts->n_lists++] = "overlap_moe_expert_parallel_comm=true";
    opts->lists = lists;
    return lists;
}

/* Runs another search and puts its plans among those of the run; where asked for, only a plan that is faster than all others. */
static enum maq_status search_other(struct maq_mixed_run *run, const struct maq_loaded_job *open,
                                    const struct maq_mixed_search_opts *opts, bool faster, struct maq_diag *diag)
{
    struct maq_mixed_search_result *found, *r = &run->result;
    struct maq_mixed_search_opts other = *opts;
    other.progress = NULL;
    other.together_only = true;
    enum maq_status status = maq_mixed_compositions(&found, open, &other, NULL);
    if (status == MAQ_BAD_INPUT) /* no plan of that class is possible */
        return MAQ_OK;
    if (status != MAQ_OK)
        return maq_no_memory(diag, "the search");
    r->complete = r->complete && found->complete;
    for (uint32_t i = 0; i < found->n_plans && status == MAQ_OK; i++)
        if (!faster || r->n_plans == 0 || found->plans[i].step_s < run->plans[0].step_s)
            status = insert_copy(run, opts, &found->plans[i], diag);
    if (found->n_plans > 0)
        join_bounds(r, found->composed_s, found->bound_s);
    maq_mixed_search_free(found);
    return status;
}

/*
 * The best uniform plan, put among the plans found so far where it is faster than all of them. Node groups that are nearly alike
 * are faster with replicas over all of them than with stages on each, and a stage on two groups is in no composition. Where neither
 * document nor flag decides it, the expert all-to-all may overlap with another micro batch: in compositions with virtual stages,
 * and in uniform plans of one stage (plan/incompatible.c).
 */
static enum maq_status search_others(struct maq_mixed_run *run, const struct maq_loaded_job *open,
                                     const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    struct maq_mixed_search_opts uniform = *opts, hides = *opts;
    uniform.planner = MAQ_MIXED_PLANNER_UNIFORM;
    MAQ_TRY(search_other(run, open, &uniform, true, diag));
    if (!run->space.overlap_open)
        return MAQ_OK;
    if (!overlap(&hides, &run->arena) || !overlap(&uniform, &run->arena))
        return maq_no_memory(diag, "the search");
    MAQ_TRY(search_other(run, open, &hides, false, diag));
    return search_other(run, open, &uniform, true, diag);
}

/*
 * Takes a plan that is no composition: it is inserted where it is faster than all, and bounds then hold for both
 * classes.
 */
static void take_found(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                       const struct maq_mixed_search_plan *plan, double bound_s)
{
    struct maq_mixed_search_result *r = &run->result;
    if (r->n_plans > 0 && plan->step_s >= run->plans[0].step_s)
        return;
    maq_mixed_run_insert(run, opts, plan);
    join_bounds(r, plan->step_s, bound_s);
}

/* Searches node groups of one kind as one group, with every technique of the search of one node group. */
static enum maq_status search_whole(struct maq_mixed_run *run, const struct maq_loaded_job *open,
                                    const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    const struct maq_cluster *cluster = &run->space.job.cluster;
    struct maq_mixed_search_plan plan;
    double bound;
    bool as_written = opts->more_bytes <= 0 && opts->more_nodes == 0;
    if (cluster->n_groups < 2 || !maq_cluster_one_kind(cluster) || !as_written)
        return MAQ_OK;
    MAQ_TRY(maq_mixed_groups_as_one(&plan, &bound, run, open, opts, diag));
    if (plan.step_s > 0)
        take_found(run, opts, &plan, bound);
    return MAQ_OK;
}

/* Runs the search of one node group on each group alone: never slower than a composition that leaves the others out. */
static enum maq_status search_each(struct maq_mixed_run *run, const struct maq_loaded_job *open,
                                   const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    struct maq_mixed_search_island *islands = run->islands;
    bool as_written = opts->more_bytes <= 0 && opts->more_nodes == 0;
    for (uint32_t g = 0; as_written && run->costs.n_pools > 1 && g < run->costs.n_pools; g++) {
        struct maq_mixed_search_plan plan;
        double bound;
        MAQ_TRY(maq_mixed_group_alone(&plan, &bound, run, g, open, opts, diag));
        if (!(plan.step_s > 0))
            continue;
        if (islands[g].alone_s <= 0 || plan.step_s < islands[g].alone_s)
            islands[g].alone_s = plan.step_s;
        take_found(run, opts, &plan, bound);
    }
    return MAQ_OK;
}

enum maq_status maq_mixed_alternatives(struct maq_mixed_run *run, const struct maq_loaded_job *open,
                                       const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    MAQ_TRY(search_others(run, open, opts, diag));
    MAQ_TRY(search_whole(run, open, opts, diag));
    return run->result.alone ? search_each(run, open, opts, diag) : MAQ_OK;
}
