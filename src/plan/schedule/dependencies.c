/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dependencies.c - from the order of each stage to a topological order of all tasks, with the predecessors of each.
 *
 * The stages are advanced in rounds: in a round every stage runs its next task if what that task needs was
 * run in an earlier round. The order of the rounds is topological. It also puts tasks side by side that do
 * not wait for each other (as many as there are busy stages), which lets the processor overlap their
 * evaluation, and it puts a predecessor close to its successors, where the cache still has it. The tasks that
 * wait for nothing come first, all in round one.
 *
 * Every schedule of the table advances in each round until it is done; one that does not would hang on a real
 * cluster, and is a bug here.
 */
#include <string.h>

#include "base/check.h"
#include "plan/schedule/build.h"

struct linker {
    struct maq_schedule *s;
    const struct maq_orders *o;
    struct maq_task *tasks;
    uint32_t *next_on_stage, *stage_first;
    struct maq_task_hot *hot;
    struct maq_task_pair *pair;
    uint32_t *f, *b;       /* [microbatch * n_positions + position]: the task that runs that F or B */
    uint32_t *next, *last; /* [stage]: next step to run; task run last */
    uint32_t *last_grad;   /* [direction * n_positions + position]: the last task that completes gradients, from 1 on */
    uint16_t *sends[2];    /* [direction * n_positions + position]: what a forward pass, a backward pass there sends */
};

static uint32_t stage_of(const struct maq_schedule *s, uint32_t position, uint32_t direction)
{
    uint16_t stage, chunk;
    maq_schedule_locate(&stage, &chunk, s->kind, s->stages, position, direction);
    return stage;
}

static uint32_t direction_of(const struct maq_schedule *s, uint32_t microbatch)
{
    return s->kind == MAQ_SCHEDULE_DUALPIPE && microbatch >= s->microbatches / 2;
}

static uint32_t *slot(const struct linker *l, uint32_t *table, uint32_t position, uint32_t microbatch)
{
    return &table[(size_t)microbatch * l->s->n_positions + position];
}

/* The data predecessors of a step. False when one of them has not run before task `limit`. */
static bool find_preds(uint32_t pred[2], const struct linker *l, const struct maq_order_step *st, uint32_t limit)
{
    uint32_t v = st->position, mb = st->microbatch, end = l->s->n_positions - 1;
    bool ready = true;
    pred[0] = pred[1] = MAQ_NO_TASK;
    switch ((enum maq_task_kind)st->kind) {
    case MAQ_TASK_F:
    case MAQ_TASK_FB:
        if (v > 0) {
            pred[0] = *slot(l, l->f, v - 1, mb);
            ready = pred[0] < limit;
        }
        if (st->kind == MAQ_TASK_FB && st->b_position < end) {
            pred[1] = *slot(l, l->b, st->b_position + 1u, st->b_microbatch);
            ready = ready && pred[1] < limit;
        }
        if (st->kind == MAQ_TASK_FB) /* on this stage, so it only has to come earlier */
            MAQ_ASSERT(!ready || *slot(l, l->f, st->b_position, st->b_microbatch) != MAQ_NO_TASK);
        break;
    case MAQ_TASK_B:
        pred[0] = *slot(l, l->f, v, mb);
        ready = pred[0] < limit;
        if (v < end) {
            pred[1] = *slot(l, l->b, v + 1, mb);
            ready = ready && pred[1] < limit;
        }
        break;
    case MAQ_TASK_W:
        pred[0] = *slot(l, l->b, v, mb);
        ready = pred[0] < limit;
        break;
    case MAQ_TASK_KIND_COUNT:
        MAQ_ASSERT(false);
    }
    return ready;
}

bool maq_task_is_last(const struct maq_schedule *s, uint32_t task)
{
    return s->hot[task].last;
}

/* Whose gradients a task completes, as direction * n_positions + position. */
static uint32_t completes(const struct maq_schedule *s, const struct maq_task *t)
{
    if (t->kind == MAQ_TASK_FB)
        return (uint32_t)t->b_direction * s->n_positions + t->b_position;
    bool whole = t->kind == MAQ_TASK_B && !(s->split_backward && t->split);
    return t->kind == MAQ_TASK_W || whole ? (uint32_t)t->direction * s->n_positions + t->position : MAQ_NO_TASK;
}

/* As maq_task_sends(), of a position's forward or backward pass. */
static uint32_t position_sends(const struct maq_schedule *s, uint32_t position, uint32_t direction, bool backward)
{
    uint32_t own = stage_of(s, position, direction);
    if (backward)
        return position > 0 && stage_of(s, position - 1, direction) != own ? position : 0;
    return position + 1 < s->n_positions && stage_of(s, position + 1, direction) != own ? position + 1 : 0;
}

/* maq_task_sends() for every task, of which there are many more than positions. */
static uint32_t sends(const struct linker *l, const struct maq_task *t)
{
    uint32_t n = l->s->n_positions, ahead = 0;
    bool pair = t->kind == MAQ_TASK_FB;
    if (t->kind == MAQ_TASK_F || pair)
        ahead = l->sends[0][t->direction * n + t->position];
    if (ahead > 0 || t->kind == MAQ_TASK_F || t->kind == MAQ_TASK_W)
        return ahead;
    return pair ? l->sends[1][t->b_direction * n + t->b_position] : l->sends[1][t->direction * n + t->position];
}

uint32_t maq_task_sends(const struct maq_schedule *s, const struct maq_task *t)
{
    if ((t->kind == MAQ_TASK_F || t->kind == MAQ_TASK_FB) && t->position + 1u < s->n_positions &&
        stage_of(s, t->position + 1u, t->direction) != t->stage)
        return t->position + 1u;
    uint32_t v = t->kind == MAQ_TASK_FB ? t->b_position : t->position;
    uint32_t d = t->kind == MAQ_TASK_FB ? t->b_direction : t->direction;
    bool gradient = (t->kind == MAQ_TASK_B || t->kind == MAQ_TASK_FB) && v > 0;
    return gradient && stage_of(s, v - 1, d) != t->stage ? v : 0;
}

/* Predecessor i of task t as a row of the hop table and a task; falls back on `instead` when there is none. */
static uint32_t remote(uint16_t *hop, const struct maq_task *t, int i, uint32_t position, uint32_t instead)
{
    *hop = 0;
    if (t->pred[i] == MAQ_NO_TASK || !t->hop[i])
        return instead; /* what is on the same stage has run earlier */
    *hop = (uint16_t)position;
    return t->pred[i];
}

static void pack(struct linker *l, uint32_t id)
{
    const struct maq_task *t = &l->tasks[id];
    struct maq_task_hot *h = &l->hot[id];
    const struct maq_schedule *s = l->s;
    bool is_f = t->kind == MAQ_TASK_F || t->kind == MAQ_TASK_FB;

    *h = (struct maq_task_hot){0};
    h->previous = t->previous;
    h->pred =
        is_f ? remote(&h->hop, t, 0, t->position, t->previous) : remote(&h->hop, t, 1, t->position + 1u, t->previous);
    if (t->previous == MAQ_NO_TASK)
        h->previous = h->pred;
    else
        h->stall = (uint16_t)sends(l, &l->tasks[t->previous]);
    h->dur = (uint16_t)((is_f ? MAQ_TASK_F : t->kind) * s->n_positions + t->position);
    h->pair = t->kind == MAQ_TASK_FB;
    h->first = t->kind == MAQ_TASK_F && t->microbatch == (t->direction ? s->microbatches / 2 : 0);
    h->whole = s->split_backward && t->kind == MAQ_TASK_B && !t->split;
    if (!l->pair)
        return;
    struct maq_task_pair *p = &l->pair[id];
    p->pred = h->pred;
    p->hop = h->hop;
    p->b_position = t->b_position;
    if (h->pair)
        p->pred = remote(&p->hop, t, 1, t->b_position + 1u, t->previous);
}

static void emit(struct linker *l, uint32_t stage, const struct maq_order_step *st, const uint32_t pred[2])
{
    uint32_t id = l->s->n_tasks++;
    struct maq_task *t = &l->tasks[id];
    t->kind = st->kind;
    t->split = st->split;
    t->stage = (uint16_t)stage;
    t->position = st->position;
    t->b_position = st->b_position;
    t->microbatch = st->microbatch;
    t->b_microbatch = st->b_microbatch;
    t->direction = (uint8_t)direction_of(l->s, st->microbatch);
    t->b_direction = (uint8_t)direction_of(l->s, st->b_microbatch);
    t->previous = l->last[stage];
    for (int i = 0; i < 2; i++) {
        t->pred[i] = pred[i];
        t->hop[i] = pred[i] != MAQ_NO_TASK && l->tasks[pred[i]].stage != stage;
    }
    if (t->previous == MAQ_NO_TASK)
        l->stage_first[stage] = id;
    else
        l->next_on_stage[t->previous] = id;
    l->next_on_stage[id] = MAQ_NO_TASK;
    l->last[stage] = id;

    if (st->kind == MAQ_TASK_F || st->kind == MAQ_TASK_FB)
        *slot(l, l->f, st->position, st->microbatch) = id;
    if (st->kind == MAQ_TASK_B)
        *slot(l, l->b, st->position, st->microbatch) = id;
    if (st->kind == MAQ_TASK_FB)
        *slot(l, l->b, st->b_position, st->b_microbatch) = id;
    pack(l, id);
}

/* Tasks are in the order in which their stage runs them. */
static void mark_last(struct linker *l)
{
    uint32_t *last = l->last_grad, slots = 2 * l->s->n_positions;
    for (uint32_t id = 0; id < l->s->n_tasks; id++) {
        uint32_t slot = completes(l->s, &l->tasks[id]);
        if (slot != MAQ_NO_TASK)
            last[slot] = id + 1;
    }
    for (uint32_t slot = 0; slot < slots; slot++)
        if (last[slot] > 0)
            l->hot[last[slot] - 1].last = 1;
}

static void run_rounds(struct linker *l)
{
    struct maq_schedule *s = l->s;
    while (s->n_tasks < l->o->n) {
        uint32_t round = s->n_tasks;
        for (uint32_t stage = 0; stage < s->stages; stage++) {
            uint32_t pred[2], k = l->next[stage];
            if (k == l->o->first[stage + 1] || !find_preds(pred, l, &l->o->steps[k], round))
                continue;
            emit(l, stage, &l->o->steps[k], pred);
            l->next[stage]++;
        }
        MAQ_ASSERT(s->n_tasks > round);
        if (round == 0)
            s->n_sources = s->n_tasks;
    }
}

/* The result's arrays, which maq_schedule_build() has allocated and nobody else has seen yet. */
static struct linker linker_of(struct maq_schedule *s, const struct maq_orders *o, const struct maq__schedule_arrays *a)
{
    return (struct linker){.s = s,
                           .o = o,
                           .tasks = a->tasks,
                           .next_on_stage = a->next_on_stage,
                           .stage_first = a->stage_first,
                           .hot = a->hot,
                           .pair = a->pair};
}

enum maq_status maq__schedule_link(struct maq_schedule *out, const struct maq_orders *o,
                                   const struct maq__schedule_arrays *arrays, struct maq_arena *scratch)
{
    struct linker l = linker_of(out, o, arrays);
    size_t cells = (size_t)out->n_positions * out->microbatches;
    l.f = MAQ_ARENA_RAW(scratch, uint32_t, cells);
    l.b = MAQ_ARENA_RAW(scratch, uint32_t, cells);
    l.next = MAQ_ARENA_NEW(scratch, uint32_t, out->stages);
    l.last_grad = MAQ_ARENA_NEW(scratch, uint32_t, 2 * (size_t)out->n_positions);
    l.last = arrays->stage_last;
    for (int backward = 0; backward < 2; backward++)
        l.sends[backward] = MAQ_ARENA_NEW(scratch, uint16_t, 2 * (size_t)out->n_positions);
    if (!l.f || !l.b || !l.next || !l.last_grad || !l.sends[0] || !l.sends[1])
        return MAQ_NO_MEMORY;
    memset(l.f, 0xff, cells * sizeof *l.f); /* MAQ_NO_TASK */
    memset(l.b, 0xff, cells * sizeof *l.b);
    for (uint32_t i = 0; i < 2 * out->n_positions; i++)
        for (int backward = 0; backward < 2; backward++)
            l.sends[backward][i] =
                (uint16_t)position_sends(out, i % out->n_positions, i / out->n_positions, backward != 0);
    for (uint32_t s = 0; s < out->stages; s++) {
        l.next[s] = o->first[s];
        l.last[s] = MAQ_NO_TASK;
    }
    run_rounds(&l);
    mark_last(&l);
    out->tasks = l.tasks;
    out->next_on_stage = l.next_on_stage;
    out->stage_first = l.stage_first;
    out->stage_last = l.last;
    out->hot = l.hot;
    out->pair = l.pair;
    return MAQ_OK;
}
