/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predict.c - maquette's own prediction of a mixed plan from a foreign profile.
 *
 *     step = slowest pipeline (pipeline.c) + reduction + optimizer + host, one after the other: the runtime of the profile waits at
 *     a barrier before it reduces (Sailor's pipe_engine.py, `_exec_reduce_tied_grads`), and reduces in one go after the last
 *     backward pass.
 *
 *     reduction   over all replicas of all pipelines that hold a stage's layers: a ring per TP rank, all of them at once over the
 *                 links of their nodes, so the bytes are those of the whole TP group and the link that of as many devices; buckets
 *                 of 500 million elements (DeepSpeed's MEMORY_OPT_ALLREDUCE_SIZE); the slowest link of the ring sets the pace.
 *                 Gradients are copied into the bucket, scaled and copied back: 24 bytes per parameter
 *     optimizer   the profile's update is that of the profiled model: embedding, head and two layers (Sailor's profile.sh,
 *                 num_prof_layers 2). Adam streams 28 bytes per parameter (4 read, 3 written), so the time goes with the
 *                 parameters, and the copies above take 24 / 28 of it. ZeRO leaves each replica its part
 *     host        once a step, of the default framework profile
 *
 * ZeRO-3 (parameters gathered layer by layer) is refused: the profile has no times of gathers that overlap with compute.
 */
#include "base/check.h"
#include "plan/framework.h"
#include "plan/mixed/codes.h"
#include "plan/mixed/mixed_plan.h"
#include "train/profiled/profiled.h"

#define FLOAT_BYTES 4.0
#define BUCKET_ELEMENTS 500e6
#define UPDATE_BYTES 28.0
#define COPY_BYTES 24.0
#define PROFILED_LAYERS 2

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- optimizer ---- */

/* Adam over all parameters of a stage on a replica. */
static double update_of(const struct maq_bound_plan *b, const struct maq_bound_stage *s,
                        const struct maq_bound_replica *r)
{
    uint32_t last = b->plan->layers - 1;
    double profiled = 0;
    for (uint32_t l = 0; l <= last; l++)
        profiled += l <= PROFILED_LAYERS || l == last ? r->sizes[l].parameters : 0;
    double own = maq_bound_parameters(s->plan, r->sizes);
    return profiled > 0 ? r->update[s->plan->first_layer].update_s * own / profiled : 0;
}

/* ---- reduction ---- */

/* Replicas that hold a layer, over all pipelines. */
struct ring {
    const struct maq_bound_replica *const *at;
    uint32_t n;
};

static const struct maq_bound_stage *stage_with(const struct maq_bound_pipeline *line, uint32_t layer)
{
    const struct maq_bound_stage *s = line->stages;
    while (layer >= s->plan->first_layer + s->plan->layers)
        s++;
    return s;
}

static enum maq_status ring_of(struct ring *out, const struct maq_bound_plan *b, uint32_t layer,
                               struct maq_arena *arena, struct maq_diag *diag)
{
    uint32_t n = 0;
    for (uint32_t p = 0; p < b->plan->n_pipelines; p++)
        n += stage_with(&b->pipelines[p], layer)->plan->n_replicas;
    const struct maq_bound_replica **at = MAQ_ARENA_NEW(arena, const struct maq_bound_replica *, n);
    if (!at)
        return maq_no_memory(diag, "the plan");
    *out = (struct ring){.at = at};
    for (uint32_t p = 0; p < b->plan->n_pipelines; p++) {
        const struct maq_bound_stage *s = stage_with(&b->pipelines[p], layer);
        for (uint32_t j = 0; j < s->plan->n_replicas; j++)
            at[out->n++] = &s->replicas[j];
    }
    return MAQ_OK;
}

static double ring_in_buckets(const struct maq_link_fit *link, double elements, uint32_t tp, uint32_t ranks)
{
    double t = 0;
    for (double left = elements; left > 0; left -= BUCKET_ELEMENTS)
        t += maq_link_ring_s(link, (left > BUCKET_ELEMENTS ? BUCKET_ELEMENTS : left) * FLOAT_BYTES * tp, ranks);
    return t;
}

static bool same_end(const struct maq_bound_replica *a, const struct maq_bound_replica *b)
{
    return a->members == b->members && a->plan->tp == b->plan->tp;
}

static enum maq_status reduce_of(double *out, const struct maq_bound_plan *b, const struct maq_bound_stage *s,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    struct ring ring = {0};
    *out = 0;
    MAQ_TRY(ring_of(&ring, b, s->plan->first_layer, arena, diag));
    for (uint32_t i = 0; ring.n > 1 && i < ring.n; i++) {
        const struct maq_bound_replica *a = ring.at[i], *z = ring.at[(i + 1) % ring.n];
        if (i > 0 && same_end(a, ring.at[i - 1]) && same_end(z, a))
            continue; /* the same link as the one before */
        const struct maq_link_fit *link = maq_bound_link(b, a, z, true);
        if (!link)
            return maq_bound_no_link(b, a->members[0].at, z->members[0].at, diag);
        *out = larger(*out, ring_in_buckets(link, maq_bound_parameters(s->plan, a->sizes), a->plan->tp, ring.n));
    }
    return MAQ_OK;
}

/* Adds the end of the step on a stage. */
static enum maq_status end_of(struct maq_mixed_cost *out, const struct maq_bound_plan *b,
                              const struct maq_bound_stage *s, struct maq_arena *arena, struct maq_diag *diag)
{
    double ring, copies = 0;
    MAQ_TRY(reduce_of(&ring, b, s, arena, diag));
    for (uint32_t j = 0; j < s->plan->n_replicas; j++) {
        double update = update_of(b, s, &s->replicas[j]);
        double part = s->plan->sharding >= MAQ_SHARDING_OPTIM ? 1.0 / s->plan->n_replicas : 1;
        copies = larger(copies, update * COPY_BYTES / UPDATE_BYTES);
        out->update_s = larger(out->update_s, update * part);
    }
    out->reduce_s = larger(out->reduce_s, ring > 0 ? ring + copies : 0);
    return MAQ_OK;
}

/* ---- a plan ---- */

static void memory_of(struct maq_mixed_cost *out, const struct maq_bound_plan *b, uint32_t pipeline, uint32_t stage,
                      const uint32_t *in_flight)
{
    const struct maq_bound_stage *s = &b->pipelines[pipeline].stages[stage];
    for (uint32_t j = 0; j < s->plan->n_replicas; j++) {
        double bytes = maq_mixed_memory(b, pipeline, stage, j, in_flight[j]);
        bool fits = bytes <= maq_profile_dir_device(b->profile, s->replicas[j].members[0].at.device)->capacity_bytes;
        if (out->fits && (!fits || bytes > out->memory_bytes)) {
            out->pipeline = pipeline;
            out->stage = stage;
        }
        out->memory_bytes = larger(out->memory_bytes, bytes);
        out->fits = out->fits && fits;
    }
}

static enum maq_status predict_pipeline(struct maq_mixed_cost *out, const struct maq_bound_plan *b, uint32_t pipeline,
                                        struct maq_arena *arena, struct maq_diag *diag)
{
    const struct maq_bound_pipeline *line = &b->pipelines[pipeline];
    uint32_t n = 0;
    double t;
    for (uint32_t s = 0; s < line->n_stages; s++)
        n += line->stages[s].plan->n_replicas;
    uint32_t *in_flight = MAQ_ARENA_NEW(arena, uint32_t, n);
    if (!in_flight)
        return maq_no_memory(diag, "the plan");
    MAQ_TRY(maq_mixed_simulate_pipeline(&t, in_flight, b, pipeline, arena, diag));
    out->pipeline_s = larger(out->pipeline_s, t);
    for (uint32_t s = 0; s < line->n_stages; in_flight += line->stages[s++].plan->n_replicas) {
        memory_of(out, b, pipeline, s, in_flight);
        MAQ_TRY(end_of(out, b, &line->stages[s], arena, diag));
    }
    return MAQ_OK;
}

static enum maq_status check_techniques(const struct maq_mixed_plan *plan, struct maq_diag *diag)
{
    for (uint32_t p = 0; p < plan->n_pipelines; p++)
        for (uint32_t i = 0; i < plan->pipelines[p].n_stages; i++) {
            const struct maq_mixed_stage *s = &plan->pipelines[p].stages[i];
            if (s->sharding == MAQ_SHARDING_PARAMS || s->recompute == MAQ_RECOMPUTE_SELECTIVE ||
                s->optimizer_offload > 0 || s->optimizer_instances > 1 || s->offload_layers > 0 ||
                s->offload_modules != 0)
                return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, (struct maq_span){0}, NULL,
                                     "the profile has no costs of ZeRO-3, HSDP, selective recomputation or offloading");
        }
    return MAQ_OK;
}

static enum maq_status predict(struct maq_mixed_cost *out, const struct maq_mixed_plan *plan,
                               const struct maq_profile_dir *profile, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_bound_plan b;
    MAQ_TRY(check_techniques(plan, diag));
    MAQ_TRY(maq_mixed_bind(&b, plan, profile, arena, diag));
    *out = (struct maq_mixed_cost){.fits = true};
    for (uint32_t p = 0; p < plan->n_pipelines; p++)
        MAQ_TRY(predict_pipeline(out, &b, p, arena, diag));
    out->update_s += maq_framework_default.host.step_s;
    out->step_s = out->pipeline_s + out->reduce_s + out->update_s;
    return MAQ_OK;
}

enum maq_status maq_mixed_predict(struct maq_mixed_cost *out, const struct maq_mixed_plan *plan,
                                  const struct maq_profile_dir *profile, struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_mixed_cost cost;
    maq_arena_init(&arena, 0);
    enum maq_status status = predict(&cost, plan, profile, &arena, diag);
    maq_arena_fini(&arena);
    if (status == MAQ_OK)
        *out = cost;
    return status;
}
