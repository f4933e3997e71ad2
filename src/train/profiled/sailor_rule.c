/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sailor_rule.c - the cost rule of Sailor's simulator (SOSP'25; github eth-easl/sailor, branch sosp25_ae,
 * sailor/Planner/simulations/runtime_simulator.py), written anew from its formulas.
 *
 * For a pipeline of stages i with replicas j and M micro batches:
 *
 *     comp_i = max_j sum over layers (forward + backward)
 *     comm_i = act_i + grad_i between other stages, 2 grad_i for the last, act_i (2 act_i from 4 stages on) for the first,
 *              act_i = slowest send of the stage's output to the next stage, grad_i of its first layer's output to the one before
 *     t      = (M - 1) max_i (comp_i + comm_i) + sum comp_i + sum comm_i + max_i update_i
 *     step   = max over pipelines t + sync,   M = global batch / (micro batch x replicas of the first stage x pipelines), rounded up
 *     sync   = max_i ring all-reduce of the stage's weights (of TP 1, over the least TP, at most 4) in buckets of 500 MB between
 *              neighbouring replicas, one device per node; and of the stages of the longest pipeline among the pipelines
 *
 * A tensor-parallel group of several members takes, per pass and layer, max over members of (time at TP of the member's devices) / TP,
 * plus one all-reduce for the embedding and two for a transformer layer but the last two, over its slowest link. That maximum is what
 * the published code computes and then drops; here it counts.
 *
 * Memory: parameters x 24 B (weights, gradients, Adam's two moments, the reduction's copy, DeepSpeed's copy) + activations of stages - i
 * micro batches + 5.06 GB; the fit check has 2 GB (TP 1) or 3 GB in place of the last term.
 */
#include "base/check.h"
#include "plan/mixed/codes.h"
#include "plan/mixed/mixed_plan.h"
#include "train/profiled/profiled.h"

#define FLOAT_BYTES 4.0
#define BUCKET_BYTES 500e6
#define STATE_BYTES 24.0
#define FOOTPRINT_BYTES (4.76e9 + 300e6)
#define FIT_BYTES(tp) ((tp) == 1 ? 2e9 : 3e9)

static double larger(double a, double b)
{
    return a > b ? a : b;
}

/* ---- time of a pipeline ---- */

static double compute_of(const struct maq_bound_plan *b, const struct maq_bound_stage *s,
                         const struct maq_bound_replica *r)
{
    uint32_t n = r->plan->n_members, end = s->plan->first_layer + s->plan->layers;
    double sum = 0;
    for (uint32_t l = s->plan->first_layer; l < end; l++) {
        double forward = 0, backward = 0;
        for (uint32_t i = 0; i < n; i++) {
            double share = n > 1 ? 1.0 / r->plan->tp : 1.0;
            forward = larger(forward, r->members[i].times[l].forward_s * share);
            backward = larger(backward, r->members[i].times[l].backward_s * share);
        }
        sum += forward + backward + 2 * maq_mixed_group_sync_s(b, r, l);
    }
    return sum;
}

/* The slowest send of `bytes` from the replicas of a stage to those of another. */
static enum maq_status slowest_send(double *out, const struct maq_bound_plan *b, const struct maq_bound_stage *from,
                                    const struct maq_bound_stage *to, double bytes, struct maq_diag *diag)
{
    *out = 0;
    MAQ_ASSERT(to->plan->n_replicas > 0);
    for (uint32_t j = 0; j < from->plan->n_replicas; j++) {
        const struct maq_bound_replica *a = &from->replicas[j], *z = &to->replicas[j % to->plan->n_replicas];
        const struct maq_link_fit *link = maq_bound_link(b, a, z, true);
        if (!link)
            return maq_bound_no_link(b, a->members[0].at, z->members[0].at, diag);
        *out = larger(*out, maq_link_send_s(link, bytes));
    }
    return MAQ_OK;
}

static enum maq_status communication_of(double *out, const struct maq_bound_plan *b,
                                        const struct maq_bound_pipeline *line, uint32_t i, struct maq_diag *diag)
{
    const struct maq_bound_stage *s = &line->stages[i];
    double scale = FLOAT_BYTES * b->plan->micro_batch, act = 0, grad = 0;
    if (i + 1 < line->n_stages)
        MAQ_TRY(
            slowest_send(&act, b, s, s + 1, b->whole[s->plan->first_layer + s->plan->layers - 1].output * scale, diag));
    if (i > 0)
        MAQ_TRY(slowest_send(&grad, b, s, s - 1, b->whole[s->plan->first_layer].output * scale, diag));
    if (i > 0 && i + 1 < line->n_stages)
        *out = act + grad;
    else if (i > 0)
        *out = 2 * grad;
    else
        *out = line->n_stages <= 3 ? act : 2 * act;
    return MAQ_OK;
}

static enum maq_status pipeline_time(double *t, double *update, const struct maq_bound_plan *b,
                                     const struct maq_bound_pipeline *line, uint32_t microbatches,
                                     struct maq_diag *diag)
{
    double straggler = 0, sum = 0, most = 0;
    for (uint32_t i = 0; i < line->n_stages; i++) {
        const struct maq_bound_stage *s = &line->stages[i];
        double compute = 0, communication = 0;
        for (uint32_t j = 0; j < s->plan->n_replicas; j++) {
            compute = larger(compute, compute_of(b, s, &s->replicas[j]));
            most = larger(most, s->replicas[j].update[s->plan->first_layer].update_s);
        }
        MAQ_TRY(communication_of(&communication, b, line, i, diag));
        straggler = larger(straggler, compute + communication);
        sum += compute + communication;
    }
    *t = (microbatches - 1) * straggler + sum;
    *update = most;
    return MAQ_OK;
}

/* ---- reduction ---- */

static double ring_in_buckets(const struct maq_link_fit *link, double bytes, uint32_t ranks)
{
    double t = 0;
    for (double left = bytes; left > 0; left -= BUCKET_BYTES)
        t += maq_link_ring_s(link, left > BUCKET_BYTES ? BUCKET_BYTES : left, ranks);
    return t;
}

static enum maq_status sync_inside(double *out, const struct maq_bound_plan *b, const struct maq_bound_pipeline *line,
                                   struct maq_diag *diag)
{
    *out = 0;
    for (uint32_t i = 0; i < line->n_stages; i++) {
        const struct maq_bound_stage *s = &line->stages[i];
        uint32_t n = s->plan->n_replicas, tp = 4;
        for (uint32_t j = 0; j < n; j++)
            tp = s->replicas[j].plan->tp < tp ? s->replicas[j].plan->tp : tp;
        double bytes = maq_bound_parameters(s->plan, b->whole) * FLOAT_BYTES / tp;
        for (uint32_t j = 0; j + 1 < n; j++) {
            const struct maq_link_fit *link = maq_bound_link(b, &s->replicas[j], &s->replicas[j + 1], false);
            if (!link)
                return maq_bound_no_link(b, s->replicas[j].members[0].at, s->replicas[j + 1].members[0].at, diag);
            *out = larger(*out, ring_in_buckets(link, bytes, n));
        }
    }
    return MAQ_OK;
}

static enum maq_status sync_between(double *out, const struct maq_bound_plan *b, struct maq_diag *diag)
{
    const struct maq_bound_pipeline *longest = &b->pipelines[0];
    *out = 0;
    for (uint32_t p = 1; p < b->plan->n_pipelines; p++)
        longest = b->pipelines[p].n_stages > longest->n_stages ? &b->pipelines[p] : longest;
    for (uint32_t i = 0; b->plan->n_pipelines > 1 && i < longest->n_stages; i++) {
        const struct maq_bound_stage *s = &longest->stages[i];
        double bytes = maq_bound_parameters(s->plan, b->whole) * FLOAT_BYTES;
        for (uint32_t j = 0; j < s->plan->n_replicas; j++) {
            const struct maq_bound_replica *r = &s->replicas[j];
            const struct maq_link_fit *link = maq_bound_link(b, r, r, false);
            if (!link)
                return maq_bound_no_link(b, r->members[0].at, r->members[0].at, diag);
            *out = larger(*out, ring_in_buckets(link, bytes, b->plan->n_pipelines));
        }
    }
    return MAQ_OK;
}

/* ---- memory ---- */

static void memory_of(struct maq_mixed_cost *out, const struct maq_bound_plan *b, uint32_t pipeline, uint32_t stage)
{
    const struct maq_bound_stage *s = &b->pipelines[pipeline].stages[stage];
    uint32_t in_flight = b->pipelines[pipeline].n_stages - stage;
    for (uint32_t j = 0; j < s->plan->n_replicas; j++) {
        const struct maq_bound_replica *r = &s->replicas[j];
        double kept = 0, capacity = maq_profile_dir_device(b->profile, r->members[0].at.device)->capacity_bytes;
        for (uint32_t l = s->plan->first_layer; l < s->plan->first_layer + s->plan->layers; l++)
            kept += r->sizes[l].activations;
        double bytes = maq_bound_parameters(s->plan, r->sizes) * STATE_BYTES +
                       kept * b->plan->micro_batch * FLOAT_BYTES * in_flight;
        bool fits = bytes + FIT_BYTES(r->plan->tp) <= capacity;
        if (out->fits ? !fits || bytes + FOOTPRINT_BYTES > out->memory_bytes : false) {
            out->pipeline = pipeline;
            out->stage = stage;
        }
        out->memory_bytes = larger(out->memory_bytes, bytes + FOOTPRINT_BYTES);
        out->fits = out->fits && fits;
    }
}

/* ---- the rule ---- */

static enum maq_status check_techniques(const struct maq_mixed_plan *plan, struct maq_diag *diag)
{
    for (uint32_t p = 0; p < plan->n_pipelines; p++)
        for (uint32_t i = 0; i < plan->pipelines[p].n_stages; i++) {
            const struct maq_mixed_stage *s = &plan->pipelines[p].stages[i];
            if (s->sharding != MAQ_SHARDING_NONE || s->recompute != MAQ_RECOMPUTE_NONE)
                return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_MIXED_UNPRICED, (struct maq_span){0}, NULL,
                                     "Sailor's rule knows neither ZeRO nor recomputation");
        }
    return MAQ_OK;
}

static enum maq_status judge(struct maq_mixed_cost *out, const struct maq_mixed_plan *plan,
                             const struct maq_profile_dir *profile, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_bound_plan b;
    double inside = 0, between = 0;
    MAQ_TRY(check_techniques(plan, diag));
    MAQ_TRY(maq_mixed_bind(&b, plan, profile, arena, diag));
    *out = (struct maq_mixed_cost){.fits = true};
    const struct maq_bound_pipeline *last = &b.pipelines[plan->n_pipelines - 1];
    double ways = (double)last->stages[0].plan->n_replicas * plan->n_pipelines * plan->micro_batch;
    uint32_t microbatches = (uint32_t)(plan->global_batch / ways);
    microbatches += microbatches * ways < plan->global_batch;
    for (uint32_t p = 0; p < plan->n_pipelines; p++) {
        double t, update, sync;
        MAQ_TRY(pipeline_time(&t, &update, &b, &b.pipelines[p], microbatches, diag));
        MAQ_TRY(sync_inside(&sync, &b, &b.pipelines[p], diag));
        if (t + update > out->pipeline_s + out->update_s) {
            out->pipeline_s = t;
            out->update_s = update;
        }
        inside = larger(inside, sync);
        for (uint32_t s = 0; s < b.pipelines[p].n_stages; s++)
            memory_of(out, &b, p, s);
    }
    MAQ_TRY(sync_between(&between, &b, diag));
    out->reduce_s = inside + between;
    out->step_s = out->pipeline_s + out->update_s + out->reduce_s;
    return MAQ_OK;
}

enum maq_status maq_mixed_judge_sailor(struct maq_mixed_cost *out, const struct maq_mixed_plan *plan,
                                       const struct maq_profile_dir *profile, struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_mixed_cost cost;
    maq_arena_init(&arena, 0);
    enum maq_status status = judge(&cost, plan, profile, &arena, diag);
    maq_arena_fini(&arena);
    if (status == MAQ_OK)
        *out = cost;
    return status;
}
