/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_plan.c - compositions and sets of chains as plans of a maq_compose_result, and such plans as mixed plans
 * (maquette/mixed_plan.h).
 */
#include <string.h>

#include "plan/mixed/codes.h"
#include "plan/mixed/mixed_plan.h"
#include "planner/measured/search.h"

/* ---- results ---- */

static void fill_stage(struct maq_compose_stage *out, const struct maq_stage *s, const struct maq_stage_table *t,
                       uint32_t pipelines)
{
    *out = (struct maq_compose_stage){.first_layer = s->first,
                                      .layers = s->end - s->first,
                                      .n_parts = s->n_parts,
                                      .compute_s = s->compute_s,
                                      .hop_s = s->hop_s,
                                      .sync_s = s->sync_s,
                                      .memory_share = s->memory_share,
                                      .in_flight = s->in_flight};
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct maq_stage_option *o = &t->options[s->parts[i].option];
        out->parts[i] = (struct maq_compose_part){o->kind, o->devices, s->parts[i].replicas * pipelines, o->samples};
    }
}

static bool fill_pipeline(struct maq_compose_pipeline *out, struct maq_compose_run *run, const struct maq_stage *stages,
                          uint32_t n, uint32_t count, const struct maq_stage_table *t)
{
    struct maq_compose_stage *copies = MAQ_ARENA_NEW(&run->arena, struct maq_compose_stage, n);
    if (!copies)
        return false;
    for (uint32_t i = 0; i < n; i++)
        fill_stage(&copies[i], &stages[i], t, count);
    out->n_stages = n;
    out->stages = copies;
    return true;
}

bool maq_compose_take_composition(struct maq_compose_plan *out, struct maq_compose_run *run,
                                  const struct maq_compose_found *found, const struct maq_stage_table *t)
{
    const struct maq_composition *c = &found->composition;
    struct maq_compose_pipeline *one = MAQ_ARENA_NEW(&run->arena, struct maq_compose_pipeline, 1);
    if (!one)
        return false;
    *one = (struct maq_compose_pipeline){.count = run->cases[found->table].replicas,
                                         .microbatches = t->waves,
                                         .bottleneck_s = c->bottleneck_s,
                                         .fill_s = c->fill_s};
    *out = (struct maq_compose_plan){.micro_batch = run->cases[found->table].micro_batch,
                                     .step_s = c->step_s,
                                     .run_s = (t->waves - 1) * c->bottleneck_s + c->fill_s,
                                     .sync_s = c->sync_s,
                                     .update_s = c->update_s,
                                     .n_pipelines = 1,
                                     .pipelines = one};
    return fill_pipeline(one, run, c->stages, c->n_stages, 1, t);
}

bool maq_compose_take_pipelines(struct maq_compose_plan *out, struct maq_compose_run *run,
                                const struct maq_chain_result *found, const struct maq_stage_table *t)
{
    const struct maq_chain_set *p = &found->best;
    struct maq_compose_pipeline *all = MAQ_ARENA_NEW(&run->arena, struct maq_compose_pipeline, p->n_kinds);
    if (!all)
        return false;
    *out = (struct maq_compose_plan){.micro_batch = run->cases[found->table].micro_batch,
                                     .step_s = p->step_s,
                                     .run_s = p->run_s,
                                     .sync_s = p->sync_s,
                                     .update_s = p->update_s,
                                     .n_pipelines = p->n_kinds,
                                     .pipelines = all};
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const struct maq_chain *c = &p->kinds[k];
        all[k] = (struct maq_compose_pipeline){
            .count = c->count, .microbatches = c->micro_batches, .bottleneck_s = c->bottleneck_s, .fill_s = c->fill_s};
        if (!fill_pipeline(&all[k], run, c->stages, c->n_stages, c->count, t))
            return false;
    }
    return true;
}

/* ---- mixed plans ---- */

static bool fill_replicas(struct maq_mixed_stage *out, const struct maq_compose_stage *s,
                          const struct maq_compose_run *run, struct maq_arena *arena)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_parts; i++)
        n += s->parts[i].replicas;
    struct maq_mixed_replica *replicas = MAQ_ARENA_NEW(arena, struct maq_mixed_replica, n);
    struct maq_mixed_member *members = MAQ_ARENA_NEW(arena, struct maq_mixed_member, s->n_parts);
    if (!replicas || !members)
        return false;
    *out = (struct maq_mixed_stage){.first_layer = s->first_layer,
                                    .layers = s->layers,
                                    .replicas = replicas,
                                    .sharding = MAQ_SHARDING_NONE,
                                    .recompute = MAQ_RECOMPUTE_NONE,
                                    .on_devices_of = -1};
    for (uint32_t i = 0; i < s->n_parts; i++) {
        const struct maq_compose_part *part = &s->parts[i];
        const char *device =
            maq_arena_strdup(arena, (struct maq_str){run->device[part->pool], strlen(run->device[part->pool])});
        const char *zone =
            maq_arena_strdup(arena, (struct maq_str){run->zone[part->pool], strlen(run->zone[part->pool])});
        if (!device || !zone)
            return false;
        members[i] = (struct maq_mixed_member){device, zone, part->tp};
        for (uint32_t j = 0; j < part->replicas; j++)
            replicas[out->n_replicas++] =
                (struct maq_mixed_replica){.members = &members[i], .n_members = 1, .tp = part->tp, .cp = 1, .ep = 1};
    }
    return true;
}

/* Shares of the micro batches, of pipelines that have different ones: they add up to the step, so the last ones get less. */
static void share_out(struct maq_mixed_pipeline *pipelines, const struct maq_mixed_plan *out,
                      const struct maq_compose_plan *plan)
{
    uint32_t left = maq_mixed_microbatches(out);
    for (uint32_t k = 0; k < plan->n_pipelines && plan->n_pipelines > 1; k++) {
        uint32_t share = plan->pipelines[k].count * plan->pipelines[k].microbatches;
        pipelines[k].microbatches = share < left ? share : left;
        left -= pipelines[k].microbatches;
    }
}

static bool fill_mixed(struct maq_mixed_plan *out, const struct maq_compose_run *run,
                       const struct maq_compose_plan *plan, struct maq_arena *arena)
{
    struct maq_mixed_pipeline *pipelines = MAQ_ARENA_NEW(arena, struct maq_mixed_pipeline, plan->n_pipelines);
    *out = (struct maq_mixed_plan){.model = maq_arena_strdup(arena, (struct maq_str){run->model, strlen(run->model)}),
                                   .micro_batch = plan->micro_batch,
                                   .global_batch = run->costs.global_batch,
                                   .layers = maq_profile_dir_model(run->profile, run->costs.model)->layers,
                                   .schedule = MAQ_SCHEDULE_1F1B,
                                   .n_pipelines = plan->n_pipelines,
                                   .pipelines = pipelines};
    if (!pipelines || !out->model)
        return false;
    for (uint32_t k = 0; k < plan->n_pipelines; k++) {
        const struct maq_compose_pipeline *p = &plan->pipelines[k];
        struct maq_mixed_stage *stages = MAQ_ARENA_NEW(arena, struct maq_mixed_stage, p->n_stages);
        pipelines[k] = (struct maq_mixed_pipeline){.n_stages = p->n_stages, .stages = stages};
        if (!stages)
            return false;
        for (uint32_t i = 0; i < p->n_stages; i++)
            if (!fill_replicas(&stages[i], &p->stages[i], run, arena))
                return false;
    }
    share_out(pipelines, out, plan);
    return true;
}

static bool splits(const struct maq_compose_plan *plan)
{
    for (uint32_t k = 0; k < plan->n_pipelines; k++)
        for (uint32_t i = 0; i < plan->pipelines[k].n_stages; i++)
            if (plan->pipelines[k].stages[i].parts[0].micro_batch != plan->micro_batch)
                return true;
    return false;
}

enum maq_status maq_compose_mixed_plan(struct maq_loaded_mixed_plan **out, const struct maq_compose_result *result,
                                       uint32_t plan, struct maq_diag *diag)
{
    if (plan >= result->n_plans)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_MIXED_FORM, (struct maq_span){0}, NULL, "there is no plan %u",
                             plan);
    if (splits(&result->plans[plan]))
        return maq_diag_fail(MAQ_NO, diag, MAQ_CODE_MIXED_UNPRICED, (struct maq_span){0},
                             "search the uniform or the mixed class",
                             "stages that split micro batches: a mixed plan has one micro batch for all stages");
    struct maq_loaded_mixed_plan *loaded = maq__mixed_new(0);
    bool filled = loaded && fill_mixed(&loaded->plan, result->owner, &result->plans[plan], &loaded->arena);
    return maq__mixed_hand_out(out, loaded, filled, diag);
}
