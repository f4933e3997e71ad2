/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.c - builds the model from the prediction: tasks of the schedule with their durations and predecessors,
 * distinct passes, exposed reductions, and the share of passes that wait for the slowest GPU. See model.h.
 */
#include "risk/step/model.h"

#include <string.h>

#include "base/check.h"
#include "risk/codes.h"
#include "train/predict.h"
#include "train/step/dp_comm.h"
#include "train/step/job_step.h"

static void copy_task(struct maq_step_task *out, const struct maq_schedule *s, uint32_t id,
                      const struct maq_blueprint *bp)
{
    const struct maq_task *t = &s->tasks[id];
    const struct maq_program *p = bp->programs[t->position];
    *out = (struct maq_step_task){
        .previous = t->previous, .pred = {t->pred[0], t->pred[1]}, .stage = t->stage, .microbatch = t->microbatch};
    switch ((enum maq_task_kind)t->kind) {
    case MAQ_TASK_F:
        out->dur_ns = p->forward_ns;
        break;
    case MAQ_TASK_B:
        out->dur_ns = p->backward_ns + (s->split_backward && !t->split ? p->weight_ns : 0);
        break;
    case MAQ_TASK_W:
        out->dur_ns = p->weight_ns;
        break;
    case MAQ_TASK_FB:
        out->dur_ns = p->forward_ns + bp->programs[t->b_position]->backward_ns + bp->programs[t->b_position]->weight_ns;
        break;
    case MAQ_TASK_KIND_COUNT:
        break;
    }
    if (maq_task_is_last(s, id))
        out->dur_ns += maq_sync_late_ns(bp, bp->programs[t->kind == MAQ_TASK_FB ? t->b_position : t->position]);
    /* The border that a result crosses: in front of a position going forward, behind it going back. */
    uint32_t forward = t->position, backward = (t->kind == MAQ_TASK_FB ? t->b_position : t->position) + 1u;
    out->hop[0] = t->hop[0] ? (uint16_t)(t->kind == MAQ_TASK_B ? backward : forward) : 0;
    out->hop[1] = t->hop[1] ? (uint16_t)backward : 0;
    if (t->previous != MAQ_NO_TASK)
        out->stall = (uint16_t)maq_task_sends(s, &s->tasks[t->previous]);
}

/* Tasks of one kind on one virtual stage are the same pass, but for the last one where it reduces gradients. */
static enum maq_status name_passes(struct maq_step_model *m, const struct maq_schedule *s, struct maq_arena *arena)
{
    uint32_t slots = MAQ_TASK_KIND_COUNT * s->n_positions, *last = MAQ_ARENA_NEW(arena, uint32_t, slots),
             *before = MAQ_ARENA_NEW(arena, uint32_t, s->n_tasks), *first = MAQ_ARENA_NEW(arena, uint32_t, s->n_tasks);
    m->pass_ns = MAQ_ARENA_NEW(arena, double, s->n_tasks);
    if (!last || !before || !first || !m->pass_ns)
        return MAQ_NO_MEMORY;
    for (uint32_t id = 0; id < s->n_tasks; id++) {
        const struct maq_task *t = &s->tasks[id];
        uint32_t *slot = &last[t->kind * s->n_positions + t->position], p = *slot; /* numbers are from 1 */
        for (; p > 0;
             p = before[p - 1]) { /* of a pair of passes the second may differ, and a backward pass may be whole */
            const struct maq_task *same = &s->tasks[first[p - 1]];
            if (same->b_position == t->b_position && same->split == t->split && same->stage == t->stage &&
                m->pass_ns[p - 1] == m->tasks[id].dur_ns)
                break;
        }
        if (p == 0) {
            p = ++m->n_passes;
            first[p - 1] = id;
            before[p - 1] = *slot;
            *slot = p;
            m->pass_ns[p - 1] = m->tasks[id].dur_ns;
        }
        m->tasks[id].pass = p - 1;
    }
    return MAQ_OK;
}

/* The first forward of a position does not end before its parameters have arrived: what the fast path waits for, step_time.c. */
static void set_ready(struct maq_step_model *m, const struct maq_schedule *s, const struct maq_blueprint *bp)
{
    for (uint32_t stage = 0; bp->gather_first && stage < s->stages; stage++) {
        uint16_t at[MAQ_MAX_STAGES];
        double stream = 0;
        uint32_t chunks = maq_schedule_positions(bp->schedule, stage, at);
        for (uint32_t c = 0; c < chunks; c++) {
            const struct maq_program *p = bp->programs[at[c]];
            double ready = maq_sync_ready_ns(p, stream, &stream) + p->forward_gap_ns + p->forward_drag_ns;
            for (uint32_t id = 0; id < s->n_tasks; id++)
                if (s->tasks[id].stage == stage && s->tasks[id].position == at[c] && s->tasks[id].kind == MAQ_TASK_F) {
                    if (ready > m->tasks[id].ready_ns)
                        m->tasks[id].ready_ns = ready;
                    break;
                }
        }
    }
}

/* Devices of a stage that wait for each other in every layer. */
static double lockstep_of(const struct maq_job *job, const struct maq_blueprint *bp)
{
    const struct maq_plan *p = &job->plan;
    double dense = (double)p->tp * p->cp, experts = (double)p->ep * p->etp,
           stage = (double)job->cluster.devices / p->pp;
    double group = dense > experts ? dense : experts;
    return bp->gather_every_pass ? stage : group < stage ? group : stage;
}

/* Of a stage's passes, the share of the kernels that wait for the slowest GPU. */
static enum maq_status find_paced(struct maq_step_model *m, const struct maq_blueprint *bp, struct maq_arena *arena)
{
    const struct maq_items *items = bp->items;
    double *calls = MAQ_ARENA_NEW(arena, double, items->n), *passes = MAQ_ARENA_NEW(arena, double, m->stages);
    m->pace = items->pace;
    m->paced = MAQ_ARENA_NEW(arena, double, m->stages);
    if (!calls || !passes || !m->paced)
        return MAQ_NO_MEMORY;
    for (uint32_t id = 0; id < m->n_tasks; id++)
        passes[m->tasks[id].stage] += m->tasks[id].dur_ns;
    for (uint32_t st = 0; st < m->stages; st++) {
        double paced = 0;
        memset(calls, 0, items->n * sizeof *calls);
        maq_stage_count_items(calls, NULL, bp, st);
        for (uint32_t i = 0; i < items->n; i++)
            paced += maq_item_is_paced(&items->at[i]) ? calls[i] * items->at[i].dur_ns : 0;
        m->paced[st] = paced < passes[st] ? paced / passes[st] : 1;
    }
    return MAQ_OK;
}

static enum maq_status fill(struct maq_step_model *m, const struct maq_job *job, const struct maq_blueprint *bp,
                            const struct maq_step_times *t, struct maq_arena *arena)
{
    const struct maq_schedule *s = bp->schedule;
    *m = (struct maq_step_model){.n_tasks = s->n_tasks,
                                 .stages = s->stages,
                                 .n_positions = s->n_positions,
                                 .tasks = MAQ_ARENA_NEW(arena, struct maq_step_task, s->n_tasks),
                                 .stage_last = MAQ_ARENA_NEW(arena, uint32_t, s->stages),
                                 .hop_ns = MAQ_ARENA_NEW(arena, double, s->n_positions + 1),
                                 .stall_ns = MAQ_ARENA_NEW(arena, double, s->n_positions + 1),
                                 .rest_ns = MAQ_ARENA_NEW(arena, double, s->stages),
                                 .microbatches = s->microbatches};
    if (!m->tasks || !m->stage_last || !m->hop_ns || !m->stall_ns || !m->rest_ns)
        return MAQ_NO_MEMORY;
    for (uint32_t id = 0; id < s->n_tasks; id++)
        copy_task(&m->tasks[id], s, id, bp);
    MAQ_TRY(name_passes(m, s, arena));
    MAQ_TRY(find_paced(m, bp, arena));
    set_ready(m, s, bp);
    for (uint32_t v = 1; v < s->n_positions && bp->hop_ns; v++) {
        m->hop_ns[v] = bp->hop_ns[v];
        m->stall_ns[v] = bp->stalls ? bp->hop_ns[v] : 0;
    }
    for (uint32_t st = 0; st < s->stages; st++) {
        m->stage_last[st] = s->stage_last[st];
        m->rest_ns[st] = t->reduced[st] - t->stage_end[st];
    }
    m->tied_ns = bp->tied_item ? bp->items->at[bp->tied_item].dur_ns : 0;
    m->norm_ns = t->norm;
    m->end_ns = t->optimizer + t->gather;
    m->base_ns = t->step;
    m->lockstep = lockstep_of(job, bp);
    m->replicas = (double)job->cluster.devices / (m->stages * m->lockstep);
    m->devices_per_node = (uint32_t)job->cluster.groups[0].devices_per_node;
    m->nodes = (uint32_t)((m->lockstep + m->devices_per_node - 1) / m->devices_per_node);
    return MAQ_OK;
}

enum maq_status maq_step_model_build(struct maq_step_model *out, const struct maq_job *job, struct maq_arena *arena,
                                     struct maq_diag *diag)
{
    return maq_step_model_build_slowed(out, job, NULL, arena, diag);
}

enum maq_status maq_step_model_build_slowed(struct maq_step_model *out, const struct maq_job *job,
                                            const struct maq_slowdown *slowdown, struct maq_arena *arena,
                                            struct maq_diag *diag)
{
    struct maq_job_step step;
    if (job->plan.post_validation && job->plan.pp > 1)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_STEP, (struct maq_span){0},
                             "leave it out: --set plan.enable_optimizer_post_validation=false",
                             "steps that overlap (enable_optimizer_post_validation) have no distribution here");
    enum maq_status status = maq_job_step_open_timed(&step, job, slowdown, diag);
    if (status == MAQ_OK)
        status = fill(out, job, &step.bp, &step.times, arena);
    maq_job_step_close(&step);
    return status;
}
