/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.c - lower bounds of time and memory, see bounds.h.
 *
 * Time: the equation of branches.h, with what is recomputed.
 *
 * Memory: the states of what a stage holds, the working set of its heaviest pass, what does not depend on the stage, and its
 * activations right before its first backward pass, when stage s of p holds
 *
 *   1f1b         min(p - s, m) microbatches
 *   gpipe        m
 *   interleaved  its first 2 (p - s - 1) + (v - 1) g + 1 passes, g of each chunk in turn (Megatron-LM's warm-up)
 *   others       what their skeleton says, with enough microbatches; else one of the first chunk
 */
#include "planner/uniform/bounds.h"

#include <math.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/schedule/schedule.h"
#include "train/memory/stage_memory.h"
#include "train/predict.h"

/* ---- what a position holds ---- */

/* Sum of a range of atoms. */
static double range(const double *before, uint32_t first, uint32_t last)
{
    return before[last] - before[first];
}

/* Layers [first, last) of the model, the first `redone` of them recomputed, all of them offloaded or none. While one works, what
 * those behind it keep is not there, unless it waits for a pass of its weight gradients (`splits`). */
static void add_layers(struct maq_position_bound *h, const struct maq_bound_sums *s, uint32_t first, uint32_t redone,
                       uint32_t last, bool splits)
{
    redone = redone < first ? first : redone > last ? last : redone;
    h->forward += range(s->redone_forward_ns, first, redone) + range(s->forward_ns, redone, last);
    h->backward += range(s->redone_backward_ns, first, redone) + range(s->backward_ns, redone, last);
    h->act += range(s->redone_act_bytes, first, redone) + range(s->act_bytes, redone, last);
    for (uint32_t i = first; i < last; i++) {
        double bytes = i < redone ? s->redone_transient_bytes[i] : s->transient_bytes[i];
        double before = splits ? h->transient : h->transient - s->most_act_bytes[i];
        h->transient = bytes > before ? bytes : before;
    }
}

/* Atoms [first, last): nothing is computed before the first gather ends, nor reduced before it is computed. */
static void add_sync(struct maq_position_bound *h, const struct maq_sync_sums *s, uint32_t first, uint32_t last)
{
    if (first == last)
        return;
    double gathered = range(s->backward_gather_ns, first, last), reduced = range(s->reduce_ns, first, last);
    h->forward =
        fmax(h->forward + range(s->forward_gather_ns, first, first + 1), range(s->forward_gather_ns, first, last));
    h->backward =
        fmax(h->backward + range(s->backward_gather_ns, last - 1, last) + range(s->reduce_ns, first, first + 1),
             gathered + reduced);
}

static struct maq_position_bound held_at(const struct maq_branch_bounds *f, const struct maq_bound_query *q,
                                         uint32_t position, uint32_t layer)
{
    const struct maq_pipeline *p = q->pipeline;
    const struct maq_bound_sums *s = maq_bound_sums_of(f, q, false);
    uint32_t n = (uint32_t)p->layers[position], own = 1 + layer, first = position == 0 ? 0 : own,
             last = position + 1 == p->n_virtual ? f->n_atoms : own + n,
             away = own + ((uint32_t)q->offloaded < n ? (uint32_t)q->offloaded : n),
             redone = q->value != MAQ_RECOMPUTE_VALUE_BLOCK && q->value != MAQ_RECOMPUTE_VALUE_STAGES
                          ? last
                          : own + (uint32_t)q->block;
    struct maq_position_bound h = {.dense = range(s->dense_params, first, last),
                                   .expert = range(s->expert_params, first, last),
                                   .narrow = range(s->narrow_params, first, last)};
    bool splits = maq_schedule_splits(p->schedule);
    add_layers(&h, s, first, redone, own, splits); /* the embedding */
    if (q->offloaded > 0)
        add_layers(&h, maq_bound_sums_of(f, q, true), own, redone, away, splits);
    else
        away = own;
    add_layers(&h, s, away, redone, last, splits);
    if (q->sync)
        add_sync(&h, q->sync, first, last);
    return h;
}

static void hold(struct maq_position_bound *out, const struct maq_branch_bounds *f, const struct maq_bound_query *q)
{
    const struct maq_pipeline *p = q->pipeline;
    uint32_t layer = 0;
    for (uint32_t v = 0; v < p->n_virtual; v++) {
        bool again = f->alike && v > 1 && v + 1 < p->n_virtual && p->layers[v] == p->layers[v - 1];
        out[v] = again ? out[v - 1] : held_at(f, q, v, layer);
        layer += (uint32_t)p->layers[v];
    }
}

/* Only the time of the passes of MAQ_BOUND_PLAIN. */
static void pass_times(struct maq_position_bound *out, const struct maq_branch_bounds *f,
                       const struct maq_bound_query *q)
{
    const struct maq_pipeline *p = q->pipeline;
    const struct maq_bound_sums *s = maq_bound_sums_of(f, q, false);
    uint32_t first = 0;
    for (uint32_t v = 0, layer = 1; v < p->n_virtual; v++) {
        layer += (uint32_t)p->layers[v];
        uint32_t last = v + 1 == p->n_virtual ? f->n_atoms : layer;
        out[v].forward = range(s->forward_ns, first, last);
        out[v].backward = range(s->backward_ns, first, last);
        if (q->sync)
            add_sync(&out[v], q->sync, first, last);
        first = last;
    }
}

/* ---- bounds ---- */

/* The most that a stage holds at once. */
static double inflight(const struct maq_schedule *s, const struct maq_position_bound *held, uint32_t stage,
                       const uint16_t *at, uint32_t n)
{
    double most = 0;
    for (uint32_t i = s->inflight_first[stage]; i < s->inflight_first[stage + 1]; i++) {
        double bytes = 0;
        for (uint32_t c = 0; c < n; c++)
            bytes += s->inflight[i].chunk[c] * held[at[c]].act;
        most = fmax(most, bytes);
    }
    return most;
}

/* Least bytes of activations on a stage at once. */
static double activations(const struct maq_branch_bounds *f, const struct maq_pipeline *p,
                          const struct maq_position_bound *held, uint32_t stage, const uint16_t *at, uint32_t n)
{
    uint32_t stages = (uint32_t)f->resolved.plan.pp, m = f->microbatches;
    if (p->schedule == MAQ_SCHEDULE_1F1B)
        return fmin(stages - stage, m) * held[at[0]].act;
    if (p->schedule == MAQ_SCHEDULE_GPIPE)
        return m * held[at[0]].act;
    if (p->skeleton && m >= p->skeleton->microbatches)
        return inflight(p->skeleton, held, stage, at, n);
    if (p->schedule != MAQ_SCHEDULE_INTERLEAVED)
        return held[at[0]].act;
    uint32_t group = f->resolved.plan.microbatch_group > 0 ? (uint32_t)f->resolved.plan.microbatch_group : stages;
    uint64_t passes = 2ull * (stages - stage - 1) + (uint64_t)(n - 1) * group + 1, round = (uint64_t)group * n;
    if (m % group != 0 || passes > (uint64_t)m * n) /* a last group of another size: no closed form */
        return held[at[0]].act;
    double bytes = 0;
    for (uint32_t c = 0; c < n; c++) {
        uint64_t rest = passes % round, of_rest = rest > (uint64_t)c * group ? rest - (uint64_t)c * group : 0;
        uint64_t live = passes / round * group + (of_rest < group ? of_rest : group);
        bytes += (double)live * held[at[c]].act;
    }
    return bytes;
}

/* The bound where the layers of the stages are not known: an even share of the work. */
static void flat_bound(struct maq_pipeline_bound *out, const struct maq_branch_bounds *f,
                       const struct maq_bound_sums *sums)
{
    uint32_t stages = (uint32_t)f->resolved.plan.pp;
    out->step_s = f->microbatches * (sums->forward_ns[f->n_atoms] + sums->backward_ns[f->n_atoms]) / stages * 1e-9;
    for (uint32_t s = 0; s < stages; s++)
        out->stages[s] =
            (struct maq_stage_bound){sums->dense_params[f->n_atoms] / stages, sums->expert_params[f->n_atoms] / stages,
                                     sums->narrow_params[f->n_atoms] / stages, 0, 0};
}

/* What a stage holds. */
static struct maq_stage_bound stage_bound(const struct maq_branch_bounds *f, const struct maq_pipeline *p, uint32_t s,
                                          const uint16_t *at, uint32_t n)
{
    struct maq_stage_bound stage = {.act_bytes = activations(f, p, f->held, s, at, n)};
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_position_bound *h = &f->held[at[i]];
        stage.dense_params += h->dense;
        stage.expert_params += h->expert;
        stage.narrow_params += h->narrow;
        stage.transient_bytes = h->transient > stage.transient_bytes ? h->transient : stage.transient_bytes;
    }
    return stage;
}

void maq_pipeline_bound(struct maq_pipeline_bound *out, const struct maq_branch_bounds *f,
                        const struct maq_bound_query *q)
{
    const struct maq_pipeline *p = q->pipeline;
    bool splits = maq_schedule_splits(p->schedule), timed = q->recompute == MAQ_BOUND_PLAIN;
    const struct maq_bound_sums *sums = maq_bound_sums_of(f, q, false);
    flat_bound(out, f, &f->plain_sums[maq_passes_of(p->schedule)]);
    if (p->as_written)
        return;
    uint32_t stages = (uint32_t)f->resolved.plan.pp;
    uint16_t *at = f->positions;
    double m = f->microbatches, bound = out->step_s * 1e9, before = 0;
    struct maq_position_bound *held = f->held;
    (timed ? pass_times : hold)(held, f, q);
    for (uint32_t s = 0; s < stages; s++) {
        double work = 0, hops = s * sums->hop_ns * (splits ? 1 : 2);
        uint32_t n = maq_positions_of(at, p->schedule, stages, p->n_virtual, s);
        for (uint32_t i = 0; i < n; i++)
            work += held[at[i]].forward + held[at[i]].backward;
        if (!timed)
            out->stages[s] = stage_bound(f, p, s, at, n);
        double busy = m * work + before + hops;
        if (p->schedule != MAQ_SCHEDULE_DUALPIPE &&
            busy > bound) /* DualPipe: each direction has its share of the microbatches */
            bound = busy;
        before += held[s].forward + (splits ? 0 : held[s].backward);
    }
    out->step_s = bound * 1e-9;
}

struct maq_state_bound maq_state_bound(const struct maq_branch_bounds *f, const struct maq_plan *plan)
{
    struct maq_plan states = f->resolved.plan;
    double shards = (double)f->resolved.dp * plan->cp / plan->num_optimizer_instances;
    states.sharding = plan->sharding;
    states.optimizer_offload = plan->optimizer_offload;
    double dense = maq_state_bytes(&f->resolved, &states, 1, 0, shards),
           expert = maq_state_bytes(&f->resolved, &states, 1, 0, f->resolved.edp),
           narrow_dense = maq_state_bytes(&f->resolved, &states, 1, 1, shards) - dense,
           narrow_expert = maq_state_bytes(&f->resolved, &states, 1, 1, f->resolved.edp) - expert;
    return (struct maq_state_bound){.dense = dense,
                                    .expert = expert,
                                    .narrow = fmin(narrow_dense, narrow_expert),
                                    .none = plan->lora_rank > 0 || plan->vocab_parallel_pipeline};
}

double maq_mean_state_bytes(const struct maq_branch_bounds *f, const struct maq_plan *plan)
{
    const struct maq_bound_sums *sums = &f->plain_sums[f->plain_passes];
    struct maq_state_bound states = maq_state_bound(f, plan);
    if (states.none)
        return 0;
    return (sums->dense_params[f->n_atoms] * states.dense + sums->expert_params[f->n_atoms] * states.expert +
            sums->narrow_params[f->n_atoms] * states.narrow) /
               plan->pp +
           f->fixed_bytes;
}

double maq_memory_bound(const struct maq_branch_bounds *f, const struct maq_pipeline_bound *p,
                        const struct maq_state_bound *states)
{
    double worst = 0;
    for (int32_t s = 0; s < f->resolved.plan.pp && !states->none; s++) {
        const struct maq_stage_bound *stage = &p->stages[s];
        worst = fmax(worst, stage->dense_params * states->dense + stage->expert_params * states->expert +
                                stage->narrow_params * states->narrow + stage->act_bytes + stage->transient_bytes);
    }
    return states->none ? 0 : worst + f->fixed_bytes;
}
