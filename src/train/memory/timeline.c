/* SPDX-License-Identifier: Apache-2.0 */
/*
 * timeline.c - live activations of every stage over a step.
 *
 * The activations of a (microbatch, virtual stage) are counted from the end of its forward pass to the end of its
 * backward pass, or of its weight-gradient pass when the backward is split; those of a forward that runs in a pair
 * with a backward (DualPipe) from the start of the pair, since both are held while it runs. So the highest point of a
 * stage is its MAQ_MEM_ACTIVATIONS. Times are the fast path's.
 */
#include <stdlib.h>

#include "base/check.h"
#include "train/predict.h"
#include "train/step/dp_comm.h"
#include "train/step/job_step.h"

struct writer {
    const struct maq_blueprint *bp;
    const struct maq_step_times *times;
    struct maq_train_memory_point *points;
    uint32_t n;
    double live;
};

static void add(struct writer *w, double t_ns, double bytes)
{
    double t = t_ns > 0 ? t_ns : 0;
    w->live += bytes;
    if (w->live < 0.5) /* what rounding leaves */
        w->live = 0;
    w->points[w->n++] = (struct maq_train_memory_point){(int64_t)t, w->live};
}

static void add_task(struct writer *w, uint32_t id)
{
    const struct maq_task *t = &w->bp->schedule->tasks[id];
    const struct maq_program *f = w->bp->programs[t->position];
    double end = w->times->finish[(size_t)id * w->times->stride];
    if (t->kind == MAQ_TASK_F) {
        add(w, end, f->act_bytes);
    } else if (t->kind == MAQ_TASK_FB) {
        const struct maq_program *b = w->bp->programs[t->b_position];
        double late = maq_task_is_last(w->bp->schedule, id) ? maq_sync_late_ns(w->bp, b) : 0;
        add(w, end - f->forward_ns - b->backward_ns - b->weight_ns - late, f->act_bytes);
        add(w, end, -b->act_bytes);
    } else if (t->kind == MAQ_TASK_W || !t->split) {
        add(w, end, -f->act_bytes);
    }
}

static enum maq_status write_points(struct maq_train_memory *out, const struct maq_blueprint *bp,
                                    const struct maq_step_times *times)
{
    const struct maq_schedule *s = bp->schedule;
    struct writer w = {.bp = bp, .times = times};
    out->first = calloc((size_t)s->stages + 1, sizeof *out->first);
    out->points = w.points = calloc(2 * (size_t)s->n_tasks + s->stages, sizeof *w.points);
    if (!out->first || !out->points)
        return MAQ_NO_MEMORY;
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        out->first[stage] = w.n;
        w.live = 0;
        add(&w, 0, 0);
        for (uint32_t t = s->stage_first[stage]; t != MAQ_NO_TASK; t = s->next_on_stage[t])
            add_task(&w, t);
    }
    out->n_stages = s->stages;
    out->first[s->stages] = w.n;
    return MAQ_OK;
}

enum maq_status maq_train_memory(struct maq_train_memory *out, const struct maq_job *job, struct maq_diag *diag)
{
    struct maq_job_step step;
    struct maq_train_memory memory = {0};
    enum maq_status status = maq_job_step_open_timed(&step, job, NULL, diag);
    if (status == MAQ_OK)
        status = write_points(&memory, &step.bp, &step.times);
    maq_job_step_close(&step);
    if (status != MAQ_OK) {
        maq_train_memory_free(&memory);
        return status;
    }
    *out = memory;
    return MAQ_OK;
}

void maq_train_memory_free(struct maq_train_memory *memory)
{
    free(memory->first);
    free(memory->points);
    *memory = (struct maq_train_memory){0};
}
