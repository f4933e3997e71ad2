/* whole.c - what the search of one node group finds, for node groups of one kind as one, and for each alone: see uniform.h. */
#include "base/check.h"
#include "base/str.h"
#include "maquette/search.h"
#include "maquette/train.h"
#include "mixed/mixed_plan.h"
#include "mixed_search/uniform.h"
#include "plan/job_build.h"

/* A virtual stage of the resolved job. */
static void fill_stage(struct maq_mixed_search_stage *out, const struct maq_job *job, uint32_t k, uint32_t n_layers)
{
    const struct maq_plan *p = &job->plan;
    const struct maq_virtual_stage *v = &job->virtual_stages[k];
    const uint32_t each = job->cluster.devices / (uint32_t)p->pp;
    const struct maq_node_group *group = maq_cluster_group_of(&job->cluster, v->stage * each),
                                *last = maq_cluster_group_of(&job->cluster, (v->stage + 1u) * each - 1);
    const uint32_t behind = v->output ? n_layers - 1 - job->model.num_layers : 0;
    *out = (struct maq_mixed_search_stage){
        .first_layer = v->embedding ? 0 : 1 + (uint32_t)v->first_layer,
        .layers = (uint32_t)v->n_layers + v->embedding + behind,
        .island = (uint32_t)(group - job->cluster.groups),
        .islands = (uint32_t)(last - group) + 1,
        .tp = (uint32_t)p->tp,
        .cp = (uint32_t)p->cp,
        .ep = (uint32_t)p->ep,
        .etp = (uint32_t)p->etp,
        .cp_comm = p->cp_comm,
        .replicas = (uint32_t)p->dp,
        .devices = each,
        .optimizer_offload = p->optimizer_offload,
        .optimizer_instances = (uint32_t)p->num_optimizer_instances,
        .offload = p->offload_layers > 0,
        .offload_modules = p->offload_modules,
        .recompute = p->recompute,
        .recompute_parts = p->recompute_parts,
        .sharding = p->sharding,
        .capacity_bytes = group->device.mem_bytes,
        .on_devices_of = -1,
    };
    for (uint32_t i = 0; i < k && out->on_devices_of < 0; i++)
        if (job->virtual_stages[i].stage == v->stage)
            out->on_devices_of = (int32_t)i;
}

/* The plan, and its stages to be filled further; NULL: no memory. */
static struct maq_mixed_search_stage *fill_plan(struct maq_mixed_search_plan *out, struct maq_mixed_run *run,
                                                const struct maq_job *job, const struct maq_search_plan *found)
{
    const uint32_t n = (uint32_t)job->plan.pp * (uint32_t)job->plan.vp;
    struct maq_mixed_search_stage *stages = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_stage, n);
    struct maq_plan *whole = MAQ_ARENA_NEW(&run->arena, struct maq_plan, 1);
    const char *layout = maq_arena_strdup(&run->arena, found->plan.layout),
               *order = maq_arena_strdup(&run->arena, found->plan.rank_order);
    if (!stages || !whole || !layout || !order)
        return NULL;
    *whole = found->plan;
    whole->layout = maq_str_of(layout);
    whole->rank_order = maq_str_of(order);
    for (uint32_t k = 0; k < n; k++) {
        fill_stage(&stages[k], job, k, run->result.n_layers);
        stages[k].memory_bytes = found->needed_bytes;
    }
    *out = (struct maq_mixed_search_plan){.micro_batch = (uint32_t)job->plan.mbs,
                                          .replicas = (uint32_t)job->plan.dp,
                                          .microbatches = (uint32_t)job->microbatches,
                                          .chunks = (uint32_t)job->plan.vp,
                                          .group = job->plan.vp > 1 ? (uint32_t)job->plan.pp : 0,
                                          .n_pipelines = 1,
                                          .uniform = whole,
                                          .n_stages = n,
                                          .stages = stages};
    return stages;
}

/* As `maquette train` says of the node groups as they are written: a process group that crosses from one to another may be slower. */
static enum maq_status predict(struct maq_mixed_search_plan *out, struct maq_mixed_run *run,
                               const struct maq_job_box *open, const struct maq_search_plan *found,
                               struct maq_diag *diag)
{
    struct maq_job_box *box;
    struct maq_train_result *r = NULL;
    MAQ_TRY(maq_job_complete(&box, open, &found->plan, diag));
    enum maq_status status = maq_train_predict(&r, maq_job_get(box), diag);
    if (status == MAQ_OK && r->fits) {
        status = fill_plan(out, run, maq_job_get(box), found) ? MAQ_OK : maq_no_memory(diag, "the search");
        out->step_s = out->composed_s = r->step_s;
    }
    if (r)
        maq_train_result_free(r);
    maq_job_free(box);
    return status;
}

/* *out is the caller's (maq_search_result_free); NULL: no plan can be. */
static enum maq_status search(struct maq_search_result **out, const struct maq_job_box *open,
                              const struct maq_mixed_search_opts *opts, uint32_t only_group, uint32_t top,
                              struct maq_diag *diag)
{
    const struct maq_search_opts whole = {.top = top,
                                          .lists = opts->lists,
                                          .n_lists = opts->n_lists,
                                          .threads = opts->threads,
                                          .stop = opts->stop,
                                          .only_group = only_group};
    *out = NULL;
    enum maq_status status = maq_search(out, open, &whole, NULL);
    if (status == MAQ_BAD_INPUT || status == MAQ_LIMIT)
        return MAQ_OK;
    return status == MAQ_OK ? status : maq_no_memory(diag, "the search");
}

enum maq_status maq_mixed_whole(struct maq_mixed_search_plan *out, double *bound_s, struct maq_mixed_run *run,
                                const struct maq_job_box *open, const struct maq_mixed_search_opts *opts,
                                struct maq_diag *diag)
{
    struct maq_search_result *found;
    *out = (struct maq_mixed_search_plan){0};
    *bound_s = 0;
    MAQ_TRY(search(&found, open, opts, 0, 1, diag));
    enum maq_status status = MAQ_OK;
    if (found && found->n_plans > 0) {
        *bound_s = found->floor_s;
        status = predict(out, run, open, &found->plans[0], diag);
    }
    maq_search_result_free(found);
    return status;
}

/* ---- one node group alone ---- */

#define TRIED 5u /* plans of other degrees each */

/* As stages of that group; NULL where it cannot be. */
static struct maq_mixed_search_stage *resolve(struct maq_mixed_search_plan *out, struct maq_mixed_run *run,
                                              uint32_t group, const struct maq_search_plan *found)
{
    const struct maq_job_places nowhere = {0};
    struct maq_job job = run->space.job;
    struct maq_node_group only = job.cluster.groups[group];
    struct maq_mixed_search_stage *stages = NULL;
    job.plan = found->plan;
    only.first_rank = 0;
    job.cluster.groups = &only;
    job.cluster.n_groups = 1;
    job.cluster.n_links = 0;
    job.cluster.devices = (uint32_t)(only.nodes * only.devices_per_node);
    if (maq_job_resolve(&job, &nowhere, NULL) == MAQ_OK &&
        maq_job_split_layers(&job, &nowhere, &run->arena, NULL) == MAQ_OK)
        stages = fill_plan(out, run, &job, found);
    for (uint32_t k = 0; stages && k < out->n_stages; k++)
        stages[k].island = group;
    out->uniform = NULL;
    return stages;
}

/* Times and memory of its stages as played; false where it does not fit. */
static bool play(struct maq_mixed_search_plan *plan, struct maq_mixed_search_stage *stages, struct maq_mixed_run *run)
{
    struct maq_mixed_plan mixed;
    struct maq_mixed_placed *placed;
    if (!maq_mixed_found_fill(&mixed, run, plan, &run->arena) ||
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

enum maq_status maq_mixed_alone(struct maq_mixed_search_plan *out, double *bound_s, struct maq_mixed_run *run,
                                uint32_t group, const struct maq_job_box *open,
                                const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    struct maq_search_result *found;
    *out = (struct maq_mixed_search_plan){0};
    *bound_s = 0;
    MAQ_TRY(search(&found, open, opts, group + 1, TRIED, diag));
    *bound_s = found && found->n_plans > 0 ? found->floor_s : 0;
    for (uint32_t i = 0; found && i < found->n_plans; i++) {
        struct maq_mixed_search_plan plan = {0};
        struct maq_mixed_search_stage *stages = resolve(&plan, run, group, &found->plans[i]);
        if (stages && play(&plan, stages, run) && (out->n_stages == 0 || plan.step_s < out->step_s))
            *out = plan;
    }
    maq_search_result_free(found);
    return MAQ_OK;
}
