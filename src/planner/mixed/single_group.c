/* SPDX-License-Identifier: Apache-2.0 */
/*
 * single_group.c - runs the search of one node group (maq_search()) on node groups of one kind as one, and on each
 * group alone, and turns its best plans into plans of stages.
 *
 * A plan on one group alone is simulated as stages there: the TRIED best plans, of different degrees, and the fastest
 * is taken. See uniform.h.
 */
#include "base/check.h"
#include "maquette/planner.h"
#include "maquette/train.h"
#include "plan/mixed/mixed_plan.h"
#include "planner/mixed/uniform.h"
#include "train/mixed/placed.h"

/*
 * The step by maq_train_predict() on the node groups as the document has them: a process group that crosses from one to another may
 * be slower.
 */
static enum maq_status predict(struct maq_mixed_search_plan *out, struct maq_mixed_run *run,
                               const struct maq_loaded_job *open, const struct maq_search_plan *found,
                               struct maq_diag *diag)
{
    struct maq_loaded_job *loaded;
    struct maq_train_result *r = NULL;
    MAQ_TRY(maq_job_complete(&loaded, open, &found->plan, diag));
    enum maq_status status = maq_train_predict(&r, maq_job_get(loaded), diag);
    if (status == MAQ_OK && r->fits) {
        bool filled = maq_mixed_uniform_plan(out, run, &run->space.job.cluster, found);
        status = filled ? MAQ_OK : maq_no_memory(diag, "the search");
        out->step_s = out->composed_s = r->step_s;
    }
    if (r)
        maq_train_result_free(r);
    maq_job_free(loaded);
    return status;
}

/* *out is owned by the caller (maq_search_result_free()); NULL: no plan is possible. */
static enum maq_status search(struct maq_search_result **out, const struct maq_loaded_job *open,
                              const struct maq_mixed_search_opts *opts, uint32_t only_group, uint32_t top,
                              struct maq_diag *diag)
{
    const struct maq_search_opts whole = {
        .top = top,
        .lists = opts->lists,
        .n_lists = opts->n_lists,
        .threads = opts->threads,
        .stop = opts->stop,
        .min_fit_probability = opts->min_fit_probability,
        .as_predicted = opts->as_predicted,
        /* alone it is simulated as stages, which have the job's switches (simulate()) */
        .keep_switches = only_group > 0,
        .only_group = only_group};
    *out = NULL;
    enum maq_status status = maq_search(out, open, &whole, NULL);
    if (status == MAQ_BAD_INPUT || status == MAQ_LIMIT)
        return MAQ_OK;
    return status == MAQ_OK ? status : maq_no_memory(diag, "the search");
}

enum maq_status maq_mixed_groups_as_one(struct maq_mixed_search_plan *out, double *bound_s, struct maq_mixed_run *run,
                                        const struct maq_loaded_job *open, const struct maq_mixed_search_opts *opts,
                                        struct maq_diag *diag)
{
    struct maq_search_result *found;
    *out = (struct maq_mixed_search_plan){0};
    *bound_s = 0;
    MAQ_TRY(search(&found, open, opts, 0, 1, diag));
    enum maq_status status = MAQ_OK;
    if (found && found->n_plans > 0) {
        *bound_s = found->bound_s;
        status = predict(out, run, open, &found->plans[0], diag);
    }
    maq_search_result_free(found);
    return status;
}

/* ---- one node group alone ---- */

#define TRIED 5u /* plans that are simulated, each of other degrees */

/* A plan as stages of that group; NULL where it cannot be one. */
static struct maq_mixed_search_stage *resolve(struct maq_mixed_search_plan *out, struct maq_mixed_run *run,
                                              uint32_t group, const struct maq_search_plan *found)
{
    struct maq_cluster cluster = run->space.job.cluster;
    struct maq_node_group only = cluster.groups[group];
    only.first_rank = 0;
    cluster.groups = &only;
    cluster.n_groups = 1;
    cluster.n_links = 0;
    cluster.devices = (uint32_t)(only.nodes * only.devices_per_node);
    struct maq_mixed_search_stage *stages = maq_mixed_uniform_plan(out, run, &cluster, found);
    for (uint32_t k = 0; stages && k < out->n_stages; k++)
        stages[k].island = group;
    out->uniform = NULL;
    return stages;
}

/* Times and memory of its stages as simulated; false where it does not fit. */
static bool simulate(struct maq_mixed_search_plan *plan, struct maq_mixed_search_stage *stages,
                     struct maq_mixed_run *run)
{
    struct maq_mixed_plan mixed;
    struct maq_mixed_placed *placed;
    if (!maq_mixed_result_plan(&mixed, run, plan, &run->arena) ||
        maq__mixed_place_on(&placed, &mixed, &run->space.job, NULL) != MAQ_OK)
        return false;
    bool whole = placed->fits && placed->n_stages == plan->n_stages;
    for (uint32_t k = 0; whole && k < plan->n_stages; k++) {
        const struct maq_mixed_placed_stage *s = &placed->stages[k];
        stages[k].compute_s = s->forward_s + s->backward_s;
        stages[k].hop_s = s->hop_s;
        stages[k].sync_s = s->reduce_s;
        stages[k].memory_bytes = s->memory_bytes;
        stages[k].in_flight = s->in_flight;
    }
    plan->bottleneck = placed->slowest;
    plan->step_s = plan->composed_s = placed->step_s;
    maq_mixed_placed_free(placed);
    return whole;
}

enum maq_status maq_mixed_group_alone(struct maq_mixed_search_plan *out, double *bound_s, struct maq_mixed_run *run,
                                      uint32_t group, const struct maq_loaded_job *open,
                                      const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    struct maq_search_result *found;
    *out = (struct maq_mixed_search_plan){0};
    *bound_s = 0;
    MAQ_TRY(search(&found, open, opts, group + 1, TRIED, diag));
    *bound_s = found && found->n_plans > 0 ? found->bound_s : 0;
    for (uint32_t i = 0; found && i < found->n_plans; i++) {
        struct maq_mixed_search_plan plan = {0};
        struct maq_mixed_search_stage *stages = resolve(&plan, run, group, &found->plans[i]);
        if (stages && simulate(&plan, stages, run) && (out->n_stages == 0 || plan.step_s < out->step_s))
            *out = plan;
    }
    maq_search_result_free(found);
    return MAQ_OK;
}
