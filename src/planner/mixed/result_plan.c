/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_plan.c - a plan that maq_mixed_search() found as a mixed plan (maquette/mixed_plan.h). Layer 0 is the
 * embedding, the last one the output; devices are numbered in the cluster's order.
 */
#include <string.h>

#include "base/str.h"
#include "plan/mixed/codes.h"
#include "plan/mixed/mixed_plan.h"
#include "planner/mixed/search_state.h"

static bool fill_stage(struct maq_mixed_stage *out, const struct maq_mixed_search_stage *s, const struct maq_job *job,
                       struct maq_arena *arena)
{
    const struct maq_even_stage stage = {.device = job->cluster.groups[s->island].device.name,
                                         .island = s->island,
                                         .first_layer = s->first_layer,
                                         .layers = s->layers,
                                         .replicas = s->replicas,
                                         .tp = s->tp,
                                         .cp = s->cp,
                                         .ep = s->ep,
                                         .etp = s->etp,
                                         .cp_comm = s->cp_comm,
                                         .sharding = s->sharding,
                                         .recompute = s->recompute,
                                         .recompute_parts = s->recompute_parts,
                                         .optimizer_offload = s->optimizer_offload,
                                         .optimizer_instances = s->optimizer_instances,
                                         .offload_layers = s->offload ? s->layers : 0,
                                         .offload_modules = s->offload_modules,
                                         .sequence_parallel = job->plan.sequence_parallel != MAQ_OFF};
    if (!maq__mixed_even_stage(out, &stage, arena))
        return false;
    out->on_devices_of = s->on_devices_of;
    return true;
}

/* Replicas of a stage over several node groups, in the cluster's order from device `first` on. */
static bool spread(struct maq_mixed_stage *out, const struct maq_mixed_search_stage *s,
                   const struct maq_cluster *cluster, uint32_t first, struct maq_arena *arena)
{
    struct maq_mixed_replica *replicas = MAQ_ARENA_NEW(arena, struct maq_mixed_replica, s->replicas);
    for (uint32_t i = 0, at = first; replicas && i < s->replicas; i++) {
        uint32_t end = at + s->tp * s->cp, n = 0;
        struct maq_mixed_member *members = MAQ_ARENA_NEW(arena, struct maq_mixed_member, s->islands);
        const struct maq_node_group *group = maq_cluster_group_of(cluster, at);
        replicas[i] = out->replicas[i];
        replicas[i].group = maq_arena_printf(arena, "%u", (uint32_t)(group - cluster->groups));
        if (!members || !replicas[i].group)
            return false;
        for (; at < end; group++, n++) {
            uint32_t behind = group->first_rank + (uint32_t)(group->nodes * group->devices_per_node),
                     until = end < behind ? end : behind;
            const char *device = maq_arena_strdup(arena, maq_str_of(group->device.name));
            if (!device)
                return false;
            members[n] = (struct maq_mixed_member){.device = device, .devices = until - at};
            at = until;
        }
        replicas[i].members = members;
        replicas[i].n_members = n;
    }
    out->replicas = replicas;
    return replicas;
}

/* Micro batches of each replica of a stage, where replicas do different numbers of them. */
static bool deal(struct maq_mixed_stage *stage, const struct maq_mixed_search_share *share, struct maq_arena *arena)
{
    struct maq_mixed_replica *replicas = MAQ_ARENA_NEW(arena, struct maq_mixed_replica, stage->n_replicas);
    if (!replicas)
        return false;
    for (uint32_t i = 0; i < stage->n_replicas; i++) {
        replicas[i] = stage->replicas[i];
        replicas[i].microbatches = share->microbatches - (i >= stage->n_replicas - share->fewer);
    }
    stage->replicas = replicas;
    return true;
}

static struct maq_mixed_pipeline *fill_pipelines(struct maq_mixed_stage *stages,
                                                 const struct maq_mixed_search_plan *plan, struct maq_arena *arena)
{
    struct maq_mixed_pipeline *out = MAQ_ARENA_NEW(arena, struct maq_mixed_pipeline, plan->n_pipelines);
    for (uint32_t i = 0; out && i < plan->n_stages; i++) {
        uint32_t p = plan->stages[i].pipeline;
        const struct maq_mixed_search_share *share = plan->pipelines ? &plan->pipelines[p] : NULL;
        out[p].stages = out[p].n_stages == 0 ? &stages[i] : out[p].stages;
        out[p].n_stages++;
        out[p].microbatches = share ? share->replicas * share->microbatches - share->fewer : 0;
        if (share && !deal(&stages[i], share, arena))
            return NULL;
    }
    return out;
}

/* The first device of a stage, in the cluster's order; a virtual stage has that of the stage whose devices it shares. */
static uint32_t first_device(const struct maq_mixed_search_plan *plan, uint32_t stage)
{
    const struct maq_mixed_search_stage *s = plan->stages;
    uint32_t own = s[stage].on_devices_of < 0 ? stage : (uint32_t)s[stage].on_devices_of, first = 0;
    for (uint32_t i = 0; i < own; i++)
        first += s[i].on_devices_of < 0 ? s[i].devices : 0;
    return first;
}

bool maq_mixed_result_plan(struct maq_mixed_plan *out, const struct maq_mixed_run *run,
                           const struct maq_mixed_search_plan *plan, struct maq_arena *arena)
{
    const struct maq_job *job = &run->space.job;
    struct maq_mixed_stage *stages = MAQ_ARENA_NEW(arena, struct maq_mixed_stage, plan->n_stages);
    const char *model = maq_arena_strdup(arena, (struct maq_str){job->model.name, strlen(job->model.name)});
    if (!stages || !model)
        return false;
    for (uint32_t i = 0; i < plan->n_stages; i++)
        if (!fill_stage(&stages[i], &plan->stages[i], job, arena) ||
            (plan->stages[i].islands > 1 &&
             !spread(&stages[i], &plan->stages[i], &job->cluster, first_device(plan, i), arena)))
            return false;
    *out = (struct maq_mixed_plan){.model = model,
                                   .micro_batch = plan->micro_batch,
                                   .global_batch = (uint32_t)job->workload.gbs,
                                   .layers = run->result.n_layers,
                                   .schedule = plan->chunks > 1 ? MAQ_SCHEDULE_INTERLEAVED : MAQ_SCHEDULE_1F1B,
                                   .microbatch_group = plan->group,
                                   .overlap_ep = plan->overlap_ep,
                                   .n_pipelines = plan->n_pipelines,
                                   .pipelines = fill_pipelines(stages, plan, arena)};
    return out->pipelines;
}

enum maq_status maq_mixed_search_mixed_plan(struct maq_loaded_mixed_plan **out,
                                            const struct maq_mixed_search_result *result, uint32_t plan,
                                            struct maq_diag *diag)
{
    if (plan >= result->n_plans)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_MIXED_FORM, (struct maq_span){0}, NULL, "there is no plan %u",
                             plan);
    struct maq_loaded_mixed_plan *loaded = maq__mixed_new(0);
    bool filled = loaded && maq_mixed_result_plan(&loaded->plan, result->owner, &result->plans[plan], &loaded->arena);
    return maq__mixed_hand_out(out, loaded, filled, diag);
}
