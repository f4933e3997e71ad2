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
    uint32_t *f, *b;          /* [microbatch * n_positions + position]: the task that runs that F or B */
    uint32_t *next, *last;    /* [stage]: next step to run; task run last */
    const uint32_t **missing; /* [stage]: what it waits for, as find_preds() says; NULL: it was not looked up yet */
    uint16_t *stall;          /* [stage]: what the task run last sends, as maq_task_sends() */
    uint32_t *last_grad; /* [direction * n_positions + position]: the last task that completes gradients, from 1 on */
    uint16_t *sends[2];  /* [direction * n_positions + position]: what a forward pass, a backward pass there sends */
};

static uint32_t stage_of(const struct maq_schedule *s, uint32_t position, uint32_t direction)
{
    uint16_t stage, chunk;
    maq_schedule_locate(&stage, &chunk, s->kind, s->stages, position, direction);
    return stage;
}

static uint32_t *slot(const struct linker *l, uint32_t *table, uint32_t position, uint32_t microbatch)
{
    return &table[(size_t)microbatch * l->s->n_positions + position];
}

/* What a stage that cannot go on waits for: a cell of the table f or b. */
static const uint32_t *look_up(uint32_t *pred, uint32_t *cell, const uint32_t *missing, uint32_t limit)
{
    *pred = *cell;
    return missing || *cell < limit ? missing : cell;
}

/* The data predecessors of a step. NULL, or the cell of one that has not run before task `limit`. */
static const uint32_t *find_preds(uint32_t pred[2], const struct linker *l, const struct maq_order_step *st,
                                  uint32_t limit)
{
    uint32_t v = st->position, mb = st->microbatch, end = l->s->n_positions - 1;
    const uint32_t *missing = NULL;
    pred[0] = pred[1] = MAQ_NO_TASK;
    switch ((enum maq_task_kind)st->kind) {
    case MAQ_TASK_F:
    case MAQ_TASK_FB:
        if (v > 0)
            missing = look_up(&pred[0], slot(l, l->f, v - 1, mb), missing, limit);
        if (st->kind == MAQ_TASK_FB && st->b_position < end)
            missing = look_up(&pred[1], slot(l, l->b, st->b_position + 1u, st->b_microbatch), missing, limit);
        if (st->kind == MAQ_TASK_FB) /* on this stage, so it only has to come earlier */
            MAQ_ASSERT(missing || *slot(l, l->f, st->b_position, st->b_microbatch) != MAQ_NO_TASK);
        break;
    case MAQ_TASK_B:
        missing = look_up(&pred[0], slot(l, l->f, v, mb), missing, limit);
        if (v < end)
            missing = look_up(&pred[1], slot(l, l->b, v + 1, mb), missing, limit);
        break;
    case MAQ_TASK_W:
        missing = look_up(&pred[0], slot(l, l->b, v, mb), missing, limit);
        break;
    case MAQ_TASK_KIND_COUNT:
        MAQ_ASSERT(false);
    }
    return missing;
}

bool maq_task_is_last(const struct maq_schedule *s, uint32_t task)
{
    return s->hot[task].last;
}

/* The row [direction * n_positions + position] of a task, or of the B half of a pair. */
static uint32_t row_of(const struct maq_schedule *s, const struct maq_task *t)
{
    return t->direction * s->n_positions + t->position;
}

static uint32_t b_row_of(const struct maq_schedule *s, const struct maq_task *t)
{
    return t->kind == MAQ_TASK_FB ? t->b_direction * s->n_positions + t->b_position : row_of(s, t);
}

static bool completes_gradients(const struct maq_schedule *s, const struct maq_task *t)
{
    bool whole = t->kind == MAQ_TASK_B && !(s->split_backward && t->split);
    return t->kind == MAQ_TASK_FB || t->kind == MAQ_TASK_W || whole;
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
    uint32_t ahead = 0;
    if (t->kind == MAQ_TASK_F || t->kind == MAQ_TASK_FB)
        ahead = l->sends[0][row_of(l->s, t)];
    if (ahead > 0 || t->kind == MAQ_TASK_F || t->kind == MAQ_TASK_W)
        return ahead;
    return l->sends[1][b_row_of(l->s, t)];
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

static void pack(struct linker *l, uint32_t id, uint32_t stall)
{
    const struct maq_task *t = &l->tasks[id];
    struct maq_task_hot *h = &l->hot[id];
    const struct maq_schedule *s = l->s;
    bool is_f = t->kind == MAQ_TASK_F || t->kind == MAQ_TASK_FB;

    uint16_t hop;
    uint32_t pred =
        is_f ? remote(&hop, t, 0, t->position, t->previous) : remote(&hop, t, 1, t->position + 1u, t->previous);
    bool first_of_stage = t->previous == MAQ_NO_TASK;
    *h = (struct maq_task_hot){.previous = first_of_stage ? pred : t->previous,
                               .pred = pred,
                               .dur = (uint16_t)((is_f ? MAQ_TASK_F : t->kind) * s->n_positions + t->position),
                               .hop = hop,
                               .stall = (uint16_t)(first_of_stage ? 0 : stall),
                               .whole = s->split_backward && t->kind == MAQ_TASK_B && !t->split,
                               .pair = t->kind == MAQ_TASK_FB,
                               .first =
                                   t->kind == MAQ_TASK_F && t->microbatch == (t->direction ? s->microbatches / 2 : 0)};
    if (!l->pair)
        return;
    struct maq_task_pair *p = &l->pair[id];
    p->pred = h->pred;
    p->hop = h->hop;
    p->b_position = t->b_position;
    if (h->pair)
        p->pred = remote(&p->hop, t, 1, t->b_position + 1u, t->previous);
}

/* A predecessor ran on another stage where the border between the two positions is one of stages: its own F, its own B are here. */
static void mark_hops(const struct linker *l, struct maq_task *t)
{
    bool is_f = t->kind == MAQ_TASK_F || t->kind == MAQ_TASK_FB;
    t->hop[0] = is_f && t->pred[0] != MAQ_NO_TASK && l->sends[1][row_of(l->s, t)] > 0;
    t->hop[1] = t->pred[1] != MAQ_NO_TASK && l->sends[0][b_row_of(l->s, t)] > 0;
}

static void emit(struct linker *l, uint32_t stage, const struct maq_order_step *st, const uint32_t pred[2])
{
    uint32_t id = l->s->n_tasks++;
    struct maq_task *t = &l->tasks[id];
    *t = (struct maq_task){.kind = st->kind,
                           .split = st->split,
                           .stage = (uint16_t)stage,
                           .position = st->position,
                           .b_position = st->b_position,
                           .microbatch = st->microbatch,
                           .b_microbatch = st->b_microbatch,
                           .direction = (uint8_t)maq__direction_of(l->s->kind, l->s->microbatches, st->microbatch),
                           .b_direction = (uint8_t)maq__direction_of(l->s->kind, l->s->microbatches, st->b_microbatch),
                           .previous = l->last[stage],
                           .pred = {pred[0], pred[1]}};
    mark_hops(l, t);
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
    if (completes_gradients(l->s, t))
        l->last_grad[b_row_of(l->s, t)] = id + 1;
    pack(l, id, l->stall[stage]);
    l->stall[stage] = (uint16_t)sends(l, t);
}

/* The last task that completes each position's gradients, listed by stage in the order in which the stage runs them. */
static void list_last(struct linker *l, uint32_t *first, uint32_t *list)
{
    const struct maq_schedule *s = l->s;
    for (uint32_t row = 0; row < 2 * s->n_positions; row++)
        if (l->last_grad[row] > 0) {
            l->hot[l->last_grad[row] - 1].last = 1;
            first[l->tasks[l->last_grad[row] - 1].stage + 1]++;
        }
    for (uint32_t stage = 0; stage < s->stages; stage++)
        first[stage + 1] += first[stage];
    memcpy(l->next, first, s->stages * sizeof *first);
    for (uint32_t row = 0; row < 2 * s->n_positions; row++) {
        if (l->last_grad[row] == 0)
            continue;
        uint32_t id = l->last_grad[row] - 1, stage = l->tasks[id].stage, at = l->next[stage]++;
        for (; at > first[stage] && list[at - 1] > id; at--)
            list[at] = list[at - 1];
        list[at] = id;
    }
}

static void run_rounds(struct linker *l)
{
    struct maq_schedule *s = l->s;
    while (s->n_tasks < l->o->n) {
        uint32_t round = s->n_tasks;
        for (uint32_t stage = 0; stage < s->stages; stage++) {
            uint32_t pred[2], k = l->next[stage];
            if (k == l->o->first[stage + 1] || (l->missing[stage] && *l->missing[stage] >= round))
                continue;
            l->missing[stage] = find_preds(pred, l, &l->o->steps[k], round);
            if (l->missing[stage])
                continue;
            emit(l, stage, &l->o->steps[k], pred);
            l->next[stage]++;
        }
        MAQ_ASSERT(s->n_tasks > round);
        if (round == 0)
            s->n_sources = s->n_tasks;
    }
}

static bool allocate(struct linker *l, struct maq_arena *scratch)
{
    uint32_t rows = 2 * l->s->n_positions, stages = l->s->stages;
    size_t cells = (size_t)l->s->n_positions * l->s->microbatches;
    l->f = MAQ_ARENA_RAW(scratch, uint32_t, cells);
    l->b = MAQ_ARENA_RAW(scratch, uint32_t, cells);
    l->next = MAQ_ARENA_NEW(scratch, uint32_t, stages);
    l->missing = MAQ_ARENA_NEW(scratch, const uint32_t *, stages);
    l->stall = MAQ_ARENA_NEW(scratch, uint16_t, stages);
    l->last_grad = MAQ_ARENA_NEW(scratch, uint32_t, rows);
    l->sends[0] = MAQ_ARENA_NEW(scratch, uint16_t, rows);
    l->sends[1] = MAQ_ARENA_NEW(scratch, uint16_t, rows);
    if (!l->f || !l->b || !l->next || !l->missing || !l->stall || !l->last_grad || !l->sends[0] || !l->sends[1])
        return false;
    memset(l->f, 0xff, cells * sizeof *l->f); /* MAQ_NO_TASK */
    memset(l->b, 0xff, cells * sizeof *l->b);
    return true;
}

enum maq_status maq__schedule_link(struct maq_schedule *out, const struct maq_orders *o,
                                   const struct maq__schedule_arrays *a, struct maq_arena *scratch)
{
    struct linker l = {.s = out,
                       .o = o,
                       .tasks = a->tasks,
                       .next_on_stage = a->next_on_stage,
                       .stage_first = a->stage_first,
                       .last = a->stage_last,
                       .hot = a->hot,
                       .pair = a->pair};
    uint32_t n = out->n_positions;
    if (!allocate(&l, scratch))
        return MAQ_NO_MEMORY;
    for (uint32_t row = 0; row < 2 * n; row++)
        for (int backward = 0; backward < 2; backward++)
            l.sends[backward][row] = (uint16_t)position_sends(out, row % n, row / n, backward != 0);
    for (uint32_t s = 0; s < out->stages; s++) {
        l.next[s] = o->first[s];
        l.last[s] = MAQ_NO_TASK;
    }
    run_rounds(&l);
    list_last(&l, a->grads_first, a->grads);
    out->tasks = l.tasks;
    out->next_on_stage = l.next_on_stage;
    out->stage_first = l.stage_first;
    out->stage_last = l.last;
    out->hot = l.hot;
    out->pair = l.pair;
    out->grads = a->grads;
    out->grads_first = a->grads_first;
    return MAQ_OK;
}
