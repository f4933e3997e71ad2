/* SPDX-License-Identifier: Apache-2.0 */
/*
 * result_plan.c - rows of pieces as plans of a maq_slices_result, and such plans as mixed plans
 * (maquette/mixed_plan.h).
 */
#include <math.h>
#include <string.h>

#include "plan/mixed/codes.h"
#include "plan/mixed/mixed_plan.h"
#include "planner/external/codes.h"
#include "planner/external/search.h"

/* ---- results ---- */

static void fill_stage(struct maq_slices_stage *out, const struct maq_parallelizer_stage *s, uint32_t island,
                       const struct maq_slices_chain *chain, uint32_t behind, uint32_t waves)
{
    bool said = s->tensor_parallel_size > 0;
    *out = (struct maq_slices_stage){.island = island,
                                     .devices = s->devices,
                                     .replicas = s->replicas > 0 ? s->replicas : 1,
                                     .tp = s->tensor_parallel_size,
                                     .cp = s->context_parallel_size > 0 ? s->context_parallel_size : 1,
                                     .ep = s->expert_parallel_size > 0 ? s->expert_parallel_size : 1,
                                     .micro_batch = s->micro_batch_size,
                                     .recompute = said ? s->recompute : -1,
                                     .sharding = said ? s->sharding : -1,
                                     .compute_s = s->time_s,
                                     .sync_s = s->sync_s,
                                     .once_s = s->once_s,
                                     .capacity_bytes = chain->islands[island].memory_bytes,
                                     .in_flight = behind + 1 < waves ? behind + 1 : waves};
    out->memory_bytes = s->static_bytes + s->flight_bytes * out->in_flight;
}

/* What each stage sends: forward to the next one, backward to the one before. */
static void add_hops(struct maq_slices_stage *stages, const struct maq_hop_class *hops, uint32_t n,
                     const struct maq_slices_chain *chain)
{
    for (uint32_t i = 0; i + 1 < n; i++) {
        double s = maq_slices_hop_s(chain, &hops[i], &hops[i + 1]);
        stages[i].hop_s += s;
        stages[i + 1].hop_s += s;
    }
}

bool maq_slices_take_plan(struct maq_slices_plan *out, struct maq_slices_run *run, const struct maq_slices_kept *kept)
{
    const struct maq_piece_line *row = &kept->row;
    const struct maq_slices_wave *wave = &run->waves[kept->wave];
    uint32_t n = 0, at = 0, layers = 0, atom = 0;
    for (uint32_t i = 0; i < row->n; i++)
        n += row->pieces[i]->plan->n_stages;
    struct maq_slices_stage *stages = MAQ_ARENA_NEW(&run->arena, struct maq_slices_stage, n);
    struct maq_slices_piece *pieces = MAQ_ARENA_NEW(&run->arena, struct maq_slices_piece, row->n);
    struct maq_hop_class *hops = MAQ_ARENA_NEW(&run->arena, struct maq_hop_class, n);
    if (!stages || !pieces || !hops)
        return false;
    for (uint32_t i = 0; i < row->n; i++) {
        const struct maq_piece *p = row->pieces[i];
        const char *text = p->plan->text;
        pieces[i] =
            (struct maq_slices_piece){.first_layer = layers,
                                      .island = p->island,
                                      .first_stage = at,
                                      .n_stages = p->plan->n_stages,
                                      .text = maq_arena_strdup(&run->arena, (struct maq_str){text, strlen(text)})};
        if (!pieces[i].text)
            return false;
        for (uint32_t s = 0; s < p->plan->n_stages; s++, at++) {
            const struct maq_parallelizer_stage *stage = &p->plan->stages[s];
            fill_stage(&stages[at], stage, p->island, &run->chain, n - 1 - at, wave->waves);
            hops[at] = maq_hop_class_of(stage, p->island);
            stages[at].piece = i;
            stages[at].first_layer = layers;
            atom += stage->atoms;
            layers = run->enumeration.layers_before[atom];
            stages[at].layers = layers - stages[at].first_layer;
        }
        pieces[i].layers = layers - pieces[i].first_layer;
    }
    add_hops(stages, hops, n, &run->chain);
    *out = (struct maq_slices_plan){.waves = wave->waves,
                                    .wave_samples = wave->wave_samples,
                                    .step_s = row->step_s,
                                    .bottleneck_s = row->bottleneck_s,
                                    .fill_s = row->fill_s,
                                    .sync_s = row->sync_s,
                                    .n_stages = n,
                                    .n_pieces = row->n,
                                    .stages = stages,
                                    .pieces = pieces};
    for (uint32_t i = 1; i < n; i++)
        if (stages[i].compute_s + stages[i].hop_s > stages[out->bottleneck].compute_s + stages[out->bottleneck].hop_s)
            out->bottleneck = i;
    return true;
}

/* ---- mixed plans ---- */

/* What keeps the plan from being written down; NULL: nothing. */
static const char *fault_of(const struct maq_slices_plan *p)
{
    for (uint32_t i = 0; i < p->n_stages; i++) {
        const struct maq_slices_stage *s = &p->stages[i];
        if (s->tp == 0 || s->micro_batch == 0 || s->recompute < 0 || s->sharding < 0)
            return "the parallelizer does not say the degrees of all stages";
        if ((uint64_t)s->tp * s->cp * s->replicas != s->devices)
            return "a stage has other devices than TP degree x CP degree x replicas";
        if (s->micro_batch != p->stages[0].micro_batch)
            return "replicas of different stages take different micro batches";
        if (s->micro_batch * s->replicas != p->wave_samples)
            return "a stage's replicas do not make up a wave of its micro batches";
    }
    return NULL;
}

static bool fill_mixed_stage(struct maq_mixed_stage *out, const struct maq_slices_stage *s, const char *device,
                             bool sequence_parallel, struct maq_arena *arena)
{
    const struct maq_even_stage stage = {.device = device,
                                         .island = s->island,
                                         .first_layer = s->first_layer,
                                         .layers = s->layers,
                                         .replicas = s->replicas,
                                         .tp = s->tp,
                                         .cp = s->cp,
                                         .ep = s->ep,
                                         .sharding = s->sharding,
                                         .recompute = s->recompute,
                                         .sequence_parallel = sequence_parallel};
    return maq__mixed_even_stage(out, &stage, arena);
}

static bool fill_mixed(struct maq_mixed_plan *out, const struct maq_slices_run *run, const struct maq_slices_plan *p,
                       struct maq_arena *arena)
{
    const struct maq_job *job = &run->chain.space.job;
    struct maq_mixed_pipeline *pipeline = MAQ_ARENA_NEW(arena, struct maq_mixed_pipeline, 1);
    struct maq_mixed_stage *stages = MAQ_ARENA_NEW(arena, struct maq_mixed_stage, p->n_stages);
    *out = (struct maq_mixed_plan){
        .model = maq_arena_strdup(arena, (struct maq_str){job->model.name, strlen(job->model.name)}),
        .micro_batch = p->stages[0].micro_batch,
        .global_batch = (uint32_t)job->workload.gbs,
        .layers = run->result.n_layers,
        .schedule = MAQ_SCHEDULE_1F1B,
        .n_pipelines = 1,
        .pipelines = pipeline};
    if (!pipeline || !stages || !out->model)
        return false;
    for (uint32_t i = 0; i < p->n_stages; i++)
        if (!fill_mixed_stage(&stages[i], &p->stages[i], run->result.islands[p->stages[i].island].device,
                              job->plan.sequence_parallel != MAQ_OFF, arena))
            return false;
    *pipeline = (struct maq_mixed_pipeline){.n_stages = p->n_stages, .stages = stages};
    return true;
}

enum maq_status maq_slices_mixed_plan(struct maq_loaded_mixed_plan **out, const struct maq_slices_result *result,
                                      uint32_t plan, struct maq_diag *diag)
{
    if (plan >= result->n_plans)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_MIXED_FORM, (struct maq_span){0}, NULL, "there is no plan %u",
                             plan);
    const char *wrong = fault_of(&result->plans[plan]);
    if (wrong)
        return maq_diag_fail(MAQ_NO, diag, MAQ_CODE_SLICES_FORM, (struct maq_span){0},
                             "--json has the plan with the parallelizer's own words",
                             "the form of mixed plans has no words for it: %s", wrong);
    struct maq_loaded_mixed_plan *loaded = maq__mixed_new(0);
    bool filled = loaded && fill_mixed(&loaded->plan, result->owner, &result->plans[plan], &loaded->arena);
    return maq__mixed_hand_out(out, loaded, filled, diag);
}
