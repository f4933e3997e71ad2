/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step_time.c - the step time of the fast path: a pipeline of whole passes, then the end of the step.
 *
 *   pass             forward, backward or weight-gradient time of a virtual stage, a sum of its layers' segments
 *   pipeline         max-plus over the schedule skeleton (plan/schedule/schedule.h), several plans at once
 *   last backward    is longer where it alone reduces gradients, those of its virtual stage (reduce_once_per_step)
 *   first forward    may not end before its parameters have arrived and been used (overlap_param_gather)
 *   reduction        starts when the last backward pass of a virtual stage has passed a bucket, runs on the DP stream of its device
 *   lost             compute lost to concurrent reductions and gathers, charged after the update
 *   unpaired         expert all-to-all that no other microbatch hides while the pipeline fills and drains, charged there as well
 *   end              all-reduce of the gradient norm (joins all ranks), update, gather of parameters when it is not overlapped
 *   period           with post_validation no stage waits for those behind it: the time from one step to the next (repeated_step.h)
 */
#include <string.h>

#include "base/check.h"
#include "train/cache.h"
#include "train/memory/stage_memory.h"
#include "train/predict.h"
#include "train/step/dp_comm.h"
#include "train/step/repeated_step.h"

static double *doubles(struct maq_arena *a, size_t n)
{
    return MAQ_ARENA_NEW(a, double, n > 0 ? n : 1);
}

struct lanes {
    double *dur, *ready, *late, *hop, *stall, *port, *makespan, *finish;
    uint32_t K;
    bool waits;   /* some lane gathers parameters first */
    bool reduces; /* some lane reduces gradients in the last backward passes */
};

/* Pass times by (kind, position), and the earliest end of each position's first forward, of lane k. */
static void fill_lane(struct lanes *l, const struct maq_blueprint *bp, uint32_t k)
{
    uint32_t n = bp->schedule->n_positions, K = l->K;
    for (uint32_t v = 0; v < n; v++) {
        const struct maq_program *pr = bp->programs[v];
        l->dur[(MAQ_TASK_F * n + v) * K + k] = pr->forward_ns;
        l->dur[(MAQ_TASK_B * n + v) * K + k] = pr->backward_ns;
        l->dur[(MAQ_TASK_W * n + v) * K + k] = pr->weight_ns;
        l->hop[v * K + k] = bp->hop_ns ? bp->hop_ns[v] : 0;
        l->stall[v * K + k] = bp->stalls && bp->hop_ns ? bp->hop_ns[v] : 0;
        l->port[v * K + k] = v > 0 ? maq_blueprint_port_ns(bp, v) : 0;
        l->ready[v * K + k] = 0;
        l->late[v * K + k] = maq_sync_late_ns(bp, pr);
    }
    l->reduces = l->reduces || bp->sync_last_pass;
    if (!bp->gather_first)
        return;
    l->waits = true;
    for (uint32_t s = 0; s < bp->schedule->stages; s++) {
        uint16_t at[MAQ_MAX_STAGES];
        uint32_t chunks = maq_schedule_positions(bp->schedule, s, at);
        double stream = 0;
        for (uint32_t c = 0; c < chunks; c++) { /* a device gathers its chunks in order */
            double r = maq_sync_ready_ns(bp->programs[at[c]], stream, &stream) + bp->programs[at[c]]->forward_gap_ns +
                       bp->programs[at[c]]->forward_drag_ns,
                   *slot = &l->ready[at[c] * K + k];
            *slot = r > *slot ? r : *slot;
        }
    }
}

/* End of the gradient reduction on one stage: its chunks in the order in which their last backward pass runs. */
static double reduce_stage(const struct maq_blueprint *bp, uint32_t stage, const struct maq_step_times *times)
{
    const struct maq_schedule *s = bp->schedule;
    bool overlaps = bp->job->plan.overlap_grad_reduce == MAQ_ON;
    double end = times->stage_end[stage],
           stream = overlaps ? 0 : end; /* otherwise one after another when all backward passes are done */
    for (uint32_t i = s->grads_first[stage]; i < s->grads_first[stage + 1]; i++) {
        uint32_t id = s->grads[i];
        const struct maq_task *task = &s->tasks[id];
        const struct maq_program *pr = bp->programs[task->kind == MAQ_TASK_FB ? task->b_position : task->position];
        double start =
            times->finish[(size_t)id * times->stride] - (s->split_backward ? pr->weight_ns : pr->backward_ns);
        stream = overlaps ? maq_sync_reduced_ns(bp, pr, start, stream) : stream + pr->reduce_ns;
    }
    return stream > end ? stream : end;
}

double maq_program_exposed_gather(const struct maq_blueprint *bp, const struct maq_program *program)
{
    bool hidden = bp->gather_first || bp->gather_every_pass || bp->job->plan.sharding == MAQ_SHARDING_NONE;
    return hidden ? 0 : program->gather_ns;
}

static double exposed_gather(const struct maq_blueprint *bp, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    double t = 0;
    uint32_t chunks = maq_schedule_positions(bp->schedule, stage, at);
    for (uint32_t c = 0; c < chunks; c++)
        t += maq_program_exposed_gather(bp, bp->programs[at[c]]);
    return t;
}

/* Lower bound of the reduction that is left after the compute of the last pass. */
static double least_reduction(const struct maq_blueprint *bp)
{
    double least = -1;
    if (!maq_reduces_behind(bp))
        return 0;
    for (uint32_t v = 0; v < bp->schedule->n_positions; v++) {
        const struct maq_program *pr = bp->programs[v];
        double ns = maq_sync_last_ns(pr);
        least = least < 0 || ns < least ? ns : least;
    }
    return least;
}

/* What a stage does behind the norm. */
static double update_ns(double *gather, const struct maq_blueprint *bp, uint32_t stage)
{
    *gather = exposed_gather(bp, stage);
    return bp->optimizer[stage]->dur_ns + bp->lost_ns[stage] + bp->unpaired_ns[stage];
}

/*
 * Steps that overlap: a stage updates when its own gradients' norm is known and the stage before has told it what it knows; done[pp] gets
 * the ends, from which the next step goes on.
 */
static void end_in_turn(struct maq_step_times *out, double *done, const struct maq_blueprint *bp)
{
    const uint32_t pp = bp->schedule->stages;
    const double told = bp->items->at[bp->told_item].dur_ns;
    double both = 0, before = 0;
    out->norm = bp->items->at[bp->norm_item].dur_ns;
    out->pipeline = out->optimizer = out->gather = 0;
    if (bp->tied_item) { /* of a tied table's gradients first and last stage wait for each other */
        both = out->reduced[0] > out->reduced[pp - 1] ? out->reduced[0] : out->reduced[pp - 1];
        both += bp->items->at[bp->tied_item].dur_ns;
    }
    for (uint32_t s = 0; s < pp; s++) {
        const bool tied = bp->tied_item && (s == 0 || s == pp - 1);
        double ready = tied && both > out->reduced[s] ? both : out->reduced[s], gather,
               update = update_ns(&gather, bp, s);
        ready += out->norm;
        before = s > 0 && before + told > ready ? before + told : ready;
        out->update[s] = before;
        done[s] = before + update + gather;
        out->pipeline = before - out->norm > out->pipeline ? before - out->norm : out->pipeline;
        if (update + gather > out->optimizer + out->gather) {
            out->optimizer = update;
            out->gather = gather;
        }
    }
}

static void end_of_step(struct maq_step_times *out, const struct maq_blueprint *bp)
{
    uint32_t pp = bp->schedule->stages;
    for (uint32_t s = 0; s < pp; s++)
        out->pipeline = out->reduced[s] > out->pipeline ? out->reduced[s] : out->pipeline;
    if (bp->tied_item) { /* all-reduce of a tied table between first and last stage */
        double a = out->reduced[0] > out->reduced[pp - 1] ? out->reduced[0] : out->reduced[pp - 1];
        a += bp->items->at[bp->tied_item].dur_ns;
        out->pipeline = a > out->pipeline ? a : out->pipeline;
    }
    out->norm = bp->norm_item ? bp->items->at[bp->norm_item].dur_ns : 0;
    double end = 0;
    for (uint32_t s = 0; s < pp; s++) {
        double gather, update = update_ns(&gather, bp, s);
        out->update[s] = out->pipeline + out->norm;
        if (update + gather > end) {
            end = update + gather;
            out->optimizer = update;
            out->gather = gather;
        }
    }
    out->step = out->pipeline + out->norm + end;
    out->tail = least_reduction(bp) + out->norm + end;
}

static bool allocate(struct lanes *l, uint32_t n_positions, uint32_t K, struct maq_arena *arena)
{
    size_t n = (size_t)n_positions * K;
    *l = (struct lanes){.K = K,
                        .dur = doubles(arena, MAQ_TASK_KIND_COUNT * n),
                        .ready = doubles(arena, n),
                        .late = doubles(arena, n),
                        .hop = doubles(arena, n),
                        .stall = doubles(arena, n),
                        .port = doubles(arena, n),
                        .makespan = doubles(arena, K)};
    return l->dur && l->ready && l->late && l->hop && l->stall && l->port && l->makespan;
}

static struct maq_task_times times_of(const struct lanes *l)
{
    return (struct maq_task_times){.dur = l->dur,
                                   .hop = l->hop,
                                   .stall = l->stall,
                                   .port = l->port,
                                   .ready = l->waits ? l->ready : NULL,
                                   .late = l->reduces ? l->late : NULL};
}

/*
 * Most microbatches of a stage where zb-auto finds the limit itself, as its program does: activations may have what the share of
 * the device that is asked for leaves behind everything else that is allocated at the peak.
 */
static uint32_t room(const struct maq_blueprint *bp, uint32_t stage)
{
    struct maq_stage_result st;
    double share = bp->job->plan.zb_memory_percentile / 100.0, each = bp->programs[stage]->act_bytes;
    uint32_t m = bp->schedule->microbatches;
    maq_stage_memory(&st, bp, stage);
    double left = share * st.capacity_bytes - (st.allocated_bytes - st.bytes[MAQ_MEM_ACTIVATIONS]);
    if (each <= 0 || left >= each * m)
        return m;
    return left < each ? 1 : (uint32_t)(left / each);
}

enum maq_status maq_blueprint_order(struct maq_blueprint *bp, struct maq_diag *diag)
{
    const struct maq_schedule *s = bp->schedule;
    const struct maq_plan *p = &bp->job->plan;
    struct lanes l;
    if (!maq_schedule_is_searched(s->kind))
        return MAQ_OK;
    struct maq_schedule *ordered = MAQ_ARENA_NEW(bp->arena, struct maq_schedule, 1);
    uint32_t *limit = MAQ_ARENA_NEW(bp->arena, uint32_t, s->stages);
    if (!ordered || !limit || !allocate(&l, s->n_positions, 1, bp->arena))
        return MAQ_NO_MEMORY;
    fill_lane(&l, bp, 0);
    bool adaptive = s->kind == MAQ_SCHEDULE_ZB_AUTO && p->zb_limit == 0;
    for (uint32_t stage = 0; stage < s->stages && adaptive; stage++)
        limit[stage] = room(bp, stage);
    const struct maq_task_times times = times_of(&l);
    const struct maq_schedule_durations durations = {
        .times = &times, .limit = adaptive ? limit : NULL, .spans = p->post_validation};
    const struct maq_schedule_spec spec = {.kind = s->kind,
                                           .stages = s->stages,
                                           .chunks = 1,
                                           .microbatches = s->microbatches,
                                           .limit = (uint32_t)p->zb_limit};
    MAQ_TRY(maq_schedule_search(ordered, &spec, &durations, bp->arena, diag));
    bp->schedule = ordered;
    return MAQ_OK;
}

static void take_ends(struct maq_step_times *out, const struct maq_blueprint *bp, const struct lanes *l, uint32_t k)
{
    const struct maq_schedule *s = bp->schedule;
    for (uint32_t st = 0; st < s->stages; st++) {
        out->stage_end[st] = l->finish[(size_t)s->stage_last[st] * l->K + k];
        out->reduced[st] = maq_reduces_behind(bp) ? reduce_stage(bp, st, out) : out->stage_end[st];
    }
}

/* One step after the other until they repeat: the next one begins on each stage where this one ends there. */
static enum maq_status repeat(struct maq_step_times *out, const struct maq_blueprint *bp, struct lanes *l, uint32_t k,
                              struct maq_arena *arena)
{
    const struct maq_schedule *s = bp->schedule;
    struct maq_repeated_step steps;
    double *done = doubles(arena, s->stages);
    if (!done || !maq_repeated_step_begin(&steps, s->stages, arena))
        return MAQ_NO_MEMORY;
    for (;;) {
        end_in_turn(out, done, bp);
        if (maq_repeated_step_ends(&out->step, &steps, done))
            return MAQ_OK;
        maq_repeated_step_next(out->begin, &steps);
        l->waits = true;
        for (uint32_t st = 0; st < s->stages; st++) { /* whose first task is the first forward of its position */
            const uint32_t v = s->tasks[s->stage_first[st]].position;
            l->ready[v * l->K + k] = out->begin[st] + bp->programs[v]->forward_ns;
        }
        const struct maq_task_times times = times_of(l);
        maq_schedule_eval(l->makespan, l->finish, s, l->K, &times);
        take_ends(out, bp, l, k);
    }
}

enum maq_status maq_step_times(struct maq_step_times *out, const struct maq_blueprint *const *bps, uint32_t K,
                               struct maq_arena *arena)
{
    const struct maq_schedule *s = bps[0]->schedule;
    struct lanes l;
    if (!allocate(&l, s->n_positions, K, arena) ||
        !(l.finish = maq_cache_finish(bps[0]->cache, 2 * (size_t)s->n_tasks * K)))
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < K; k++)
        fill_lane(&l, bps[k], k);
    const struct maq_task_times times = times_of(&l);
    maq_schedule_eval(l.makespan, l.finish, s, K, &times);
    for (uint32_t k = 0; k < K; k++) {
        const struct maq_blueprint *bp = bps[k];
        out[k] = (struct maq_step_times){.finish = l.finish + k,
                                         .stride = K,
                                         .stage_end = doubles(arena, s->stages),
                                         .reduced = doubles(arena, s->stages),
                                         .begin = doubles(arena, s->stages),
                                         .update = doubles(arena, s->stages)};
        if (!out[k].stage_end || !out[k].reduced || !out[k].begin || !out[k].update)
            return MAQ_NO_MEMORY;
        take_ends(&out[k], bp, &l, k);
        if (!bp->told_item)
            end_of_step(&out[k], bp);
    }
    for (uint32_t k = 0; k < K; k++)
        if (bps[k]->told_item)
            MAQ_TRY(repeat(&out[k], bps[k], &l, k, arena));
    return MAQ_OK;
}
