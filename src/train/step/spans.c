/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spans.c - what every stage does in a step, with its begin and end: passes of microbatches, transfers to other stages, data-parallel
 * communication outside of passes, and the end of the step.
 *
 * Times are the fast path's. A pass ends when the schedule's evaluation says so, and has lasted as long as a pass of its virtual stage
 * does; what it waited for lies before it. A transfer sets out when its pass has ended and, over the network, when the port of its stage
 * is free; it is there a hop later. A reduction of gradients is drawn from the begin of the last pass that completes them, or from the
 * end of the one before it, to its end: its buckets follow each other in that time.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "train/predict.h"
#include "train/step/dp_comm.h"
#include "train/step/job_step.h"

struct writer {
    const struct maq_blueprint *bp;
    const struct maq_step_times *times;
    struct maq_train_span *spans;
    uint32_t n;
};

const char *maq_train_span_name(enum maq_train_span_kind kind)
{
    static const char *const names[MAQ_SPAN_KIND_COUNT] = {
        [MAQ_SPAN_FORWARD] = "forward",           [MAQ_SPAN_BACKWARD] = "backward",
        [MAQ_SPAN_WEIGHT] = "weight gradient",    [MAQ_SPAN_PAIR] = "forward and backward",
        [MAQ_SPAN_SEND] = "pipeline transfer",    [MAQ_SPAN_GATHER] = "parameter gather",
        [MAQ_SPAN_REDUCE] = "gradient reduction", [MAQ_SPAN_NORM] = "gradient norm",
        [MAQ_SPAN_UPDATE] = "optimizer"};
    MAQ_ASSERT(kind < MAQ_SPAN_KIND_COUNT);
    return names[kind];
}

static void add(struct writer *w, enum maq_train_span_kind kind, double start, double end, uint16_t chunk,
                uint32_t microbatch)
{
    int64_t from = llround(start > 0 ? start : 0), to = llround(end);
    if (to > from)
        w->spans[w->n++] = (struct maq_train_span){
            .kind = (uint8_t)kind, .chunk = chunk, .microbatch = microbatch, .start_ns = from, .end_ns = to};
}

static uint16_t chunk_of(const struct maq_schedule *s, uint32_t position, uint32_t direction)
{
    uint16_t stage, chunk;
    maq_schedule_locate(&stage, &chunk, s->kind, s->stages, position, direction);
    return chunk;
}

/* How long the pass itself takes. */
static double length_of(const struct writer *w, uint32_t id)
{
    const struct maq_schedule *s = w->bp->schedule;
    const struct maq_task *t = &s->tasks[id];
    const struct maq_program *p = w->bp->programs[t->position], *b = p;
    double ns = 0;
    switch ((enum maq_task_kind)t->kind) {
    case MAQ_TASK_F:
        return p->forward_ns;
    case MAQ_TASK_B:
        ns = p->backward_ns + (s->split_backward && !t->split ? p->weight_ns : 0);
        break;
    case MAQ_TASK_W:
        ns = p->weight_ns;
        break;
    case MAQ_TASK_FB:
        b = w->bp->programs[t->b_position];
        ns = p->forward_ns + b->backward_ns + b->weight_ns;
        break;
    case MAQ_TASK_KIND_COUNT:
        break;
    }
    return ns + (maq_task_is_last(s, id) ? maq_sync_late_ns(w->bp, b) : 0);
}

static void add_passes(struct writer *w, uint32_t stage)
{
    static const enum maq_train_span_kind kinds[MAQ_TASK_KIND_COUNT] = {[MAQ_TASK_F] = MAQ_SPAN_FORWARD,
                                                                        [MAQ_TASK_B] = MAQ_SPAN_BACKWARD,
                                                                        [MAQ_TASK_W] = MAQ_SPAN_WEIGHT,
                                                                        [MAQ_TASK_FB] = MAQ_SPAN_PAIR};
    const struct maq_schedule *s = w->bp->schedule;
    for (uint32_t id = s->stage_first[stage]; id != MAQ_NO_TASK; id = s->next_on_stage[id]) {
        const struct maq_task *t = &s->tasks[id];
        double end = w->times->finish[(size_t)id * w->times->stride];
        add(w, kinds[t->kind], end - length_of(w, id), end, chunk_of(s, t->position, t->direction), t->microbatch);
    }
}

static void add_sends(struct writer *w, uint32_t stage)
{
    const struct maq_schedule *s = w->bp->schedule;
    double free_at = 0;
    for (uint32_t id = s->stage_first[stage]; id != MAQ_NO_TASK && w->bp->hop_ns; id = s->next_on_stage[id]) {
        const struct maq_task *t = &s->tasks[id];
        uint32_t border = maq_task_sends(s, t);
        double sent = w->times->finish[(size_t)id * w->times->stride];
        if (border == 0)
            continue;
        double port = maq_blueprint_port_ns(w->bp, border);
        if (port > 0) {
            sent = sent > free_at ? sent : free_at;
            free_at = sent + port;
        }
        add(w, MAQ_SPAN_SEND, sent, sent + w->bp->hop_ns[border], chunk_of(s, t->position, t->direction),
            t->microbatch);
    }
}

/* Parameters before the first microbatch, gradients behind the last one: maq_step_times() has the same sums. */
static void add_data_parallel(struct writer *w, uint32_t stage)
{
    const struct maq_blueprint *bp = w->bp;
    const struct maq_schedule *s = bp->schedule;
    bool overlaps = bp->job->plan.overlap_grad_reduce == MAQ_ON;
    double stream = 0;
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t chunks = maq_schedule_positions(s, stage, at);
    for (uint32_t c = 0; c < chunks && bp->gather_first; c++) {
        double from = stream;
        (void)maq_sync_ready_ns(bp->programs[at[c]], from, &stream);
        add(w, MAQ_SPAN_GATHER, from, stream, (uint16_t)c, 0);
    }
    stream = overlaps ? 0 : w->times->stage_end[stage];
    for (uint32_t i = s->grads_first[stage]; i < s->grads_first[stage + 1] && maq_reduces_behind(bp); i++) {
        uint32_t id = s->grads[i];
        const struct maq_task *t = &s->tasks[id];
        bool pair = t->kind == MAQ_TASK_FB;
        uint32_t position = pair ? t->b_position : t->position;
        const struct maq_program *p = bp->programs[position];
        double start =
            w->times->finish[(size_t)id * w->times->stride] - (s->split_backward ? p->weight_ns : p->backward_ns);
        double from = overlaps && start > stream ? start : stream;
        stream = overlaps ? maq_sync_reduced_ns(bp, p, start, stream) : stream + p->reduce_ns;
        add(w, MAQ_SPAN_REDUCE, from, stream, chunk_of(s, position, pair ? t->b_direction : t->direction),
            pair ? t->b_microbatch : t->microbatch);
    }
}

static void add_end(struct writer *w, uint32_t stage)
{
    const struct maq_blueprint *bp = w->bp;
    double t = w->times->update[stage] - w->times->norm, gather = 0;
    uint16_t at[MAQ_MAX_STAGES];
    uint32_t chunks = maq_schedule_positions(bp->schedule, stage, at);
    for (uint32_t c = 0; c < chunks; c++)
        gather += maq_program_exposed_gather(bp, bp->programs[at[c]]);
    double update = t + w->times->norm + bp->optimizer[stage]->dur_ns + bp->lost_ns[stage] + bp->unpaired_ns[stage];
    add(w, MAQ_SPAN_NORM, t, t + w->times->norm, 0, 0);
    add(w, MAQ_SPAN_UPDATE, t + w->times->norm, update, 0, 0);
    add(w, MAQ_SPAN_GATHER, update, update + gather, 0, 0);
}

/* --- what passes are made of --------------------------------------------------------------------------------------- */

static const struct maq_segment *segment_of(const struct maq_blueprint *bp, const struct maq_entry *e, int kind)
{
    const struct maq_block *b = bp->blocks[e->block];
    return kind == MAQ_SPAN_FORWARD    ? b->forward[e->redo]
           : kind == MAQ_SPAN_BACKWARD ? b->backward[e->redo]
                                       : b->weight;
}

/* Adds to count[items] what a pass of a program runs; name[items] is the module that is first to. */
static void count_pass(double *count, uint16_t *name, const struct maq_blueprint *bp, const struct maq_program *p,
                       int kind)
{
    for (uint32_t i = 0; i < p->n_entries; i++) {
        const struct maq_segment *g = segment_of(bp, &p->entries[i], kind);
        for (uint32_t k = 0; g && k < g->n; k++) {
            if (count[g->steps[k].item] <= 0)
                name[g->steps[k].item] = g->steps[k].name;
            count[g->steps[k].item] += 1;
        }
    }
}

static void rank_pass(struct maq_train_pass *out, const struct maq_blueprint *bp, const double *count,
                      const uint16_t *name)
{
    uint32_t item[MAQ_TRAIN_PASS_OPS] = {0};
    for (uint32_t i = 1; i < bp->items->n; i++) {
        double ns = count[i] * bp->items->at[i].dur_ns;
        uint32_t at = out->n;
        if (ns <= 0)
            continue;
        while (at > 0 && count[item[at - 1]] * bp->items->at[item[at - 1]].dur_ns < ns)
            at--;
        if (at == MAQ_TRAIN_PASS_OPS)
            continue;
        out->n += out->n < MAQ_TRAIN_PASS_OPS;
        for (uint32_t k = out->n - 1; k > at; k--)
            item[k] = item[k - 1];
        item[at] = i;
    }
    for (uint32_t k = 0; k < out->n; k++) {
        const struct maq_item *it = &bp->items->at[item[k]];
        struct maq_train_pass_op *op = &out->ops[k];
        uint16_t module = name[item[k]];
        maq_item_describe(op->text, it);
        maq__snprintf(op->where, sizeof op->where, "%s", module < bp->items->n_names ? bp->items->names[module] : "");
        op->count = count[item[k]];
        op->seconds = op->count * it->dur_ns * 1e-9;
    }
}

static enum maq_status write_passes(struct maq_train_spans *out, const struct maq_blueprint *bp,
                                    struct maq_arena *arena)
{
    const struct maq_schedule *s = bp->schedule;
    uint32_t n = s->n_positions;
    uint16_t at[MAQ_MAX_STAGES];
    const struct maq_program **known = MAQ_ARENA_NEW(arena, const struct maq_program *, n);
    uint16_t *name = MAQ_ARENA_NEW(arena, uint16_t, bp->items->n);
    out->n_chunks = maq_schedule_positions(s, 0, at);
    out->program = calloc((size_t)s->stages * out->n_chunks, sizeof *out->program);
    out->passes = calloc(n, sizeof *out->passes);
    if (!known || !name || !out->program || !out->passes)
        return MAQ_NO_MEMORY;
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        uint32_t chunks = maq_schedule_positions(s, stage, at);
        for (uint32_t c = 0; c < chunks && c < out->n_chunks; c++) {
            const struct maq_program *p = bp->programs[at[c]];
            uint32_t i = 0;
            while (i < out->n_programs && known[i] != p)
                i++;
            out->program[stage * out->n_chunks + c] = i;
            if (i < out->n_programs)
                continue;
            known[out->n_programs++] = p;
            for (int kind = MAQ_SPAN_FORWARD; kind <= MAQ_SPAN_WEIGHT; kind++) {
                struct maq_arena_mark mark = maq_arena_mark(arena);
                double *count = MAQ_ARENA_NEW(arena, double, bp->items->n);
                if (!count)
                    return MAQ_NO_MEMORY;
                count_pass(count, name, bp, p, kind);
                rank_pass(&out->passes[i][kind], bp, count, name);
                maq_arena_reset(arena, mark);
            }
        }
    }
    return MAQ_OK;
}

static enum maq_status write_spans(struct maq_train_spans *out, const struct maq_blueprint *bp,
                                   const struct maq_step_times *times)
{
    const struct maq_schedule *s = bp->schedule;
    struct writer w = {.bp = bp, .times = times};
    size_t room = 2 * (size_t)s->n_tasks + 3 * (size_t)s->stages;
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        uint16_t at[MAQ_MAX_STAGES];
        room += maq_schedule_positions(s, stage, at) + s->grads_first[stage + 1] - s->grads_first[stage];
    }
    out->first = calloc((size_t)s->stages + 1, sizeof *out->first);
    out->spans = w.spans = calloc(room, sizeof *w.spans);
    if (!out->first || !out->spans)
        return MAQ_NO_MEMORY;
    for (uint32_t stage = 0; stage < s->stages; stage++) {
        out->first[stage] = w.n;
        add_passes(&w, stage);
        add_sends(&w, stage);
        add_data_parallel(&w, stage);
        add_end(&w, stage);
    }
    out->n_stages = s->stages;
    out->first[s->stages] = w.n;
    return MAQ_OK;
}

enum maq_status maq_train_spans(struct maq_train_spans *out, const struct maq_job *job, struct maq_diag *diag)
{
    struct maq_job_step step;
    struct maq_train_spans spans = {0};
    enum maq_status status = maq_job_step_open_timed(&step, job, NULL, diag);
    if (status == MAQ_OK)
        status = write_spans(&spans, &step.bp, &step.times);
    if (status == MAQ_OK)
        status = write_passes(&spans, &step.bp, &step.arena);
    maq_job_step_close(&step);
    if (status != MAQ_OK) {
        maq_train_spans_free(&spans);
        return status == MAQ_NO_MEMORY ? maq_no_memory(diag, "the spans of a step") : status;
    }
    *out = spans;
    return MAQ_OK;
}

void maq_train_spans_free(struct maq_train_spans *spans)
{
    free(spans->first);
    free(spans->spans);
    free(spans->program);
    free(spans->passes);
    *spans = (struct maq_train_spans){0};
}
