/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uniform_plan.c - a plan of one strategy for all stages, resolved on a cluster, as a list of stages with their
 * devices. See uniform.h.
 */
#include <math.h>

#include "base/check.h"
#include "base/str.h"
#include "plan/job_build.h"
#include "planner/mixed/uniform.h"

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
    for (; group < last; group++)
        out->capacity_bytes = fmin(out->capacity_bytes, group[1].device.mem_bytes);
    for (uint32_t i = 0; i < k && out->on_devices_of < 0; i++)
        if (job->virtual_stages[i].stage == v->stage)
            out->on_devices_of = (int32_t)i;
}

struct maq_plan *maq_mixed_keep_plan(const struct maq_plan *plan, struct maq_arena *arena)
{
    struct maq_plan *kept = MAQ_ARENA_NEW(arena, struct maq_plan, 1);
    const char *layout = maq_arena_strdup(arena, plan->layout), *order = maq_arena_strdup(arena, plan->rank_order);
    if (!kept || !layout || !order)
        return NULL;
    *kept = *plan;
    kept->layout = maq_str_of(layout);
    kept->rank_order = maq_str_of(order);
    return kept;
}

static struct maq_mixed_search_stage *fill_plan(struct maq_mixed_search_plan *out, struct maq_mixed_run *run,
                                                const struct maq_job *job, const struct maq_search_plan *found)
{
    const uint32_t n = (uint32_t)job->plan.pp * (uint32_t)job->plan.vp;
    struct maq_mixed_search_stage *stages = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_stage, n);
    struct maq_plan *whole = maq_mixed_keep_plan(&found->plan, &run->arena);
    if (!stages || !whole)
        return NULL;
    for (uint32_t k = 0; k < n; k++) {
        fill_stage(&stages[k], job, k, run->result.n_layers);
        stages[k].memory_bytes = found->needed_bytes;
        stages[k].capacity_bytes = maq_search_device_bytes(&run->memory, stages[k].capacity_bytes);
    }
    *out = (struct maq_mixed_search_plan){.micro_batch = (uint32_t)job->plan.mbs,
                                          .replicas = (uint32_t)job->plan.dp,
                                          .microbatches = (uint32_t)job->microbatches,
                                          .chunks = (uint32_t)job->plan.vp,
                                          .group = job->plan.vp > 1 ? (uint32_t)job->plan.pp : 0,
                                          .overlap_ep = found->plan.overlap_ep,
                                          .n_pipelines = 1,
                                          .uniform = whole,
                                          .n_stages = n,
                                          .stages = stages};
    return stages;
}

struct maq_mixed_search_stage *maq_mixed_uniform_plan(struct maq_mixed_search_plan *out, struct maq_mixed_run *run,
                                                      const struct maq_cluster *cluster,
                                                      const struct maq_search_plan *found)
{
    const struct maq_job_places nowhere = {0};
    struct maq_job job = run->space.job;
    job.plan = found->plan;
    job.cluster = *cluster;
    if (maq_job_resolve(&job, &nowhere, NULL) != MAQ_OK ||
        maq_job_split_layers(&job, &nowhere, &run->arena, NULL) != MAQ_OK)
        return NULL;
    return fill_plan(out, run, &job, found);
}
