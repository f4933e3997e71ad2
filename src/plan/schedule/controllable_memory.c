/* SPDX-License-Identifier: Apache-2.0 */
/*
 * controllable_memory.c - V-Min and V-Half: two chunks per stage in a V, as ZB-V has them, held for less time.
 *
 * Source: Qi, Wan, Amar, Lin, "Pipeline Parallelism with Controllable Memory", arXiv 2405.15362, and the authors' program,
 * sail-sg/zero-bubble-pipeline-parallelism 39f2c186, megatron/core/pipeline_parallel/zerobubble/scheduler/zbv_greedy.py, whose steps are followed:
 * the orders are its orders.
 *
 * A microbatch is a building block that repeats every 6 ticks: F of both chunks, B of both, W where a stage is idle. With F = B = W = 1, on stage s of p
 *
 *             F of chunk 0   F of chunk 1   B of chunk 1       B of chunk 0
 *   V-Min     s              2p-1-s         2p+i+s             4p+i-1-s         i = 2 where 3 divides p, else 0
 *   V-Half    2s             3p-2-s         3p+i-1+2s          6p+i-2-s         i = 3 where 2 divides p, else 0
 *
 * i keeps two tasks of a stage from falling on one tick. A stage holds a chunk from its F to its W, so that it holds about (sum of the lifetimes)/6:
 * 4p/6 of 2p chunks of 1F1B's first stage are its third, 6p/6 its half. The lifetimes of the two chunks add up to the same on every stage.
 *
 * The first and the last block leave gaps, which two passes close: every task of the warm-up and of the end moves to the earliest free tick that its inputs
 * and the peak of memory allow; then the same at the end alone, W taken out and put in anew. After each, tasks move up in their order.
 *
 * Between warm-up and end the order repeats, so it is made for some 2p microbatches and the rest are repetitions of one period.
 */
#include <string.h>

#include "base/check.h"
#include "plan/schedule/build.h"

#define PERIOD 6

/* Tasks of a stage: forwards of chunk 0 and 1, backwards of chunk 1 and 0, then W of chunk 1 and 0, or of both in one row. */
enum row { F0, F1, B1, B0, W1, W0, ROWS, NONE = ROWS };

struct blocks {
    uint32_t p, m, ticks;
    int32_t *time;         /* [(s * ROWS + row) * m + i] */
    uint32_t *count;       /* [s * ROWS + row]: tasks in a row; W of both chunks have 2m */
    uint8_t *at;           /* [s * ticks + t]: the row that has this tick, or NONE */
    uint32_t *next;        /* [s * ROWS + row]: of a walk over all tasks */
    int32_t *free_at;      /* [s]: while tasks move up */
    uint16_t *live, *owed; /* [s * ticks + t]: behind tick t, chunks that are held, and B without their W */
};

static int32_t *row_of(const struct blocks *g, uint32_t s, enum row row)
{
    return &g->time[((size_t)s * ROWS + row) * 2 * g->m];
}

static void lay_blocks(struct blocks *g, bool half)
{
    const int32_t p = (int32_t)g->p, gap = half ? (p % 2 == 0 ? 3 : 0) : (p % 3 == 0 ? 2 : 0);
    for (int32_t s = 0; s < p; s++) {
        const int32_t starts[] = {half ? 2 * s : s, half ? 3 * p - 2 - s : 2 * p - 1 - s,
                                  half ? 3 * p + gap - 1 + 2 * s : 2 * p + gap + s,
                                  half ? 6 * p + gap - 2 - s : 4 * p + gap - 1 - s};
        for (uint32_t row = F0; row <= B0; row++) {
            g->count[(uint32_t)s * ROWS + row] = g->m;
            for (uint32_t i = 0; i < g->m; i++)
                row_of(g, (uint32_t)s, (enum row)row)[i] = starts[row] + PERIOD * (int32_t)i;
        }
    }
}

/* The table of ticks anew from the times of the rows. */
static void lay_ticks(struct blocks *g)
{
    memset(g->at, NONE, (size_t)g->p * g->ticks);
    for (uint32_t s = 0; s < g->p; s++)
        for (uint32_t row = 0; row < ROWS; row++)
            for (uint32_t i = 0; i < g->count[s * ROWS + row]; i++)
                g->at[(size_t)s * g->ticks + (uint32_t)row_of(g, s, (enum row)row)[i]] = (uint8_t)row;
}

static void take_w(struct blocks *g)
{
    for (uint32_t s = 0; s < g->p; s++)
        g->count[s * ROWS + W1] = g->count[s * ROWS + W0] = 0;
    lay_ticks(g);
}

/* W into the idle ticks behind their B, those of chunk 1 before those of chunk 0; all in one row unless they are told apart. */
static void put_w(struct blocks *g, bool apart)
{
    take_w(g);
    for (uint32_t s = 0; s < g->p; s++) {
        uint8_t *at = &g->at[(size_t)s * g->ticks];
        uint32_t owed[2] = {0, 0}, *n = &g->count[s * ROWS + W1];
        for (uint32_t t = 0; t < g->ticks; t++) {
            const uint32_t chunk = owed[0] > 0 ? 0 : 1;
            if (at[t] == B1 || at[t] == B0)
                owed[at[t] == B0 && apart]++;
            if (at[t] != NONE || owed[chunk] == 0)
                continue;
            owed[chunk]--;
            at[t] = (uint8_t)(W1 + chunk);
            row_of(g, s, (enum row)(W1 + chunk))[n[chunk]++] = (int32_t)t;
        }
    }
}

/* The next task of a walk that stands at tick t of stage s; NONE: the stage is idle there. */
static enum row task_at(const struct blocks *g, uint32_t s, uint32_t t)
{
    for (uint32_t row = 0; row < ROWS; row++) {
        const uint32_t i = g->next[s * ROWS + row];
        if (i < g->count[s * ROWS + row] && row_of(g, s, (enum row)row)[i] == (int32_t)t)
            return (enum row)row;
    }
    return NONE;
}

static int32_t later(int32_t a, int32_t b)
{
    return a > b ? a : b;
}

/* The last tick of what a task waits for, but for the order of its stage; -1: nothing. Rows are in the order that a microbatch has them. */
static int32_t inputs_at(const struct blocks *g, uint32_t s, enum row row, uint32_t i)
{
    int32_t t = i > 0 ? row_of(g, s, row)[i - 1] : -1;
    if (row >= W1)
        return t;
    if ((row == F0 || row == B1) && s > 0)
        t = later(t, row_of(g, s - 1, row)[i]);
    if ((row == F1 || row == B0) && s + 1 < g->p)
        t = later(t, row_of(g, s + 1, row)[i]);
    return row > F0 ? later(t, row_of(g, s, (enum row)(row - 1))[i]) : t;
}

/* ---- memory ---- */

struct held {
    uint16_t live, owed;
};

/* What a stage holds behind a tick. Without W in the table an idle tick is one, where a B is waiting for it. */
static struct held step_held(struct held h, enum row row, bool with_w)
{
    if (row == F0 || row == F1)
        h.live++;
    else if (row == B0 || row == B1)
        h.owed++;
    else if (with_w ? row == W1 || row == W0 : row == NONE && h.owed > 0) {
        h.live--;
        h.owed--;
    }
    return h;
}

static uint16_t measure(struct blocks *g, bool with_w)
{
    uint16_t most = 0;
    for (uint32_t s = 0; s < g->p; s++) {
        struct held h = {0, 0};
        for (uint32_t t = 0; t < g->ticks; t++) {
            const size_t k = (size_t)s * g->ticks + t;
            h = step_held(h, (enum row)g->at[k], with_w);
            g->live[k] = h.live;
            g->owed[k] = h.owed;
            most = h.live > most ? h.live : most;
        }
    }
    return most;
}

/* Goes over a stage from `from` on until it holds what it held before; whether it stays within `most`. keep: notes what it holds now. */
static bool go_over(struct blocks *g, uint32_t s, uint32_t from, uint32_t beyond, uint16_t most, bool with_w, bool keep)
{
    const size_t row = (size_t)s * g->ticks;
    struct held h = {from > 0 ? g->live[row + from - 1] : 0, from > 0 ? g->owed[row + from - 1] : 0};
    for (uint32_t t = from; t < g->ticks; t++) {
        h = step_held(h, (enum row)g->at[row + t], with_w);
        if (h.live > most)
            return false;
        if (t >= beyond && h.live == g->live[row + t] && h.owed == g->owed[row + t])
            return true;
        if (keep) {
            g->live[row + t] = h.live;
            g->owed[row + t] = h.owed;
        }
    }
    return true;
}

static bool move(struct blocks *g, uint32_t s, uint32_t from, uint32_t to, uint16_t most, bool with_w)
{
    uint8_t *at = &g->at[(size_t)s * g->ticks], row = at[from];
    at[to] = row;
    at[from] = NONE;
    if (go_over(g, s, to, from, most, with_w, false))
        return go_over(g, s, to, from, most, with_w, true);
    at[from] = row;
    at[to] = NONE;
    return false;
}

/* The tick of the i-th B of a stage, whose W stands at `time`: behind it come those that are owed a W there. */
static int32_t b_of_w(const struct blocks *g, uint32_t s, int32_t time, uint32_t i)
{
    const size_t row = (size_t)s * g->ticks;
    uint32_t t = (uint32_t)time - 1, n = i + g->owed[row + t];
    for (;; t--)
        if (g->at[row + t] == B1 || g->at[row + t] == B0) {
            if (n == i + 1)
                return (int32_t)t;
            n--;
        }
}

/* ---- the passes ---- */

/* To the earliest free tick behind its inputs. */
static void move_up(struct blocks *g, uint32_t s, enum row row, uint32_t i, uint16_t most, bool with_w)
{
    int32_t *time = &row_of(g, s, row)[i], first = inputs_at(g, s, row, i);
    if (row >= W1)
        first = later(first, b_of_w(g, s, *time, i));
    for (int32_t t = first + 1; t < *time; t++)
        if (g->at[(size_t)s * g->ticks + (uint32_t)t] == NONE &&
            move(g, s, (uint32_t)*time, (uint32_t)t, most, with_w)) {
            *time = t;
            return;
        }
}

enum phase { WARM_UP, STEADY, END };

static void close_gaps(struct blocks *g, bool with_w)
{
    const uint16_t most = measure(g, with_w);
    enum phase phase = WARM_UP;
    memset(g->next, 0, (size_t)g->p * ROWS * sizeof *g->next);
    for (uint32_t t = 0; t < g->ticks; t++)
        for (uint32_t s = 0; s < g->p; s++) {
            const enum row row = task_at(g, s, t);
            if (row == NONE)
                continue;
            const uint32_t i = g->next[s * ROWS + row]++;
            if (row == B0 && s == 0 && phase == WARM_UP)
                phase = STEADY;
            if (phase == STEADY && row == F0 && i + 1 == g->m)
                phase = END;
            else if (phase == END || (phase == WARM_UP && with_w))
                move_up(g, s, row, i, most, with_w);
        }
}

/* Every task as soon as its inputs are there and the one before it on its stage has ended. The walk goes by the old times; behind it are new ones. */
static void squeeze(struct blocks *g)
{
    memset(g->next, 0, (size_t)g->p * ROWS * sizeof *g->next);
    memset(g->free_at, 0, g->p * sizeof *g->free_at);
    for (uint32_t t = 0; t < g->ticks; t++)
        for (uint32_t s = 0; s < g->p; s++) {
            const enum row row = task_at(g, s, t);
            if (row == NONE)
                continue;
            const uint32_t i = g->next[s * ROWS + row]++;
            const int32_t start = later(inputs_at(g, s, row, i) + 1, g->free_at[s]);
            row_of(g, s, row)[i] = start;
            g->free_at[s] = start + 1;
        }
    lay_ticks(g);
}

/* ---- orders ---- */

/* The order of a stage: rows, and which of their tasks. */
static uint32_t list_stage(const struct blocks *g, uint32_t s, uint8_t *rows, uint32_t *index)
{
    uint32_t n = 0, done[ROWS] = {0};
    for (uint32_t t = 0; t < g->ticks; t++) {
        const uint8_t row = g->at[(size_t)s * g->ticks + t];
        if (row == NONE)
            continue;
        rows[n] = row;
        index[n++] = done[row]++;
    }
    return n;
}

/* Where a period begins that is the one before it, a microbatch later; 0: nowhere. */
static uint32_t find_period(const uint8_t *rows, const uint32_t *index, uint32_t n, uint32_t microbatch)
{
    uint32_t k = 0;
    while (k < n && !(rows[k] == F0 && index[k] == microbatch))
        k++;
    for (uint32_t j = k; k >= PERIOD && j < k + PERIOD; j++)
        if (j >= n || rows[j] != rows[j - PERIOD] || index[j] != index[j - PERIOD] + 1)
            return 0;
    return k >= PERIOD && k + PERIOD <= n ? k : 0;
}

static void emit(struct maq_orders *o, uint32_t s, uint8_t row, uint32_t microbatch)
{
    const uint32_t position = row == F0 || row == B0 || row == W0 ? s : 2 * o->stages - 1 - s;
    if (row == B0 || row == B1)
        maq__order_add_split(o, position, microbatch);
    else
        maq__order_add(o, row <= F1 ? MAQ_TASK_F : MAQ_TASK_W, position, microbatch);
}

/* Writes all stages with `more` periods in the middle; false: some stage has no period there. */
static bool write_orders(struct maq_orders *o, const struct blocks *g, uint8_t *rows, uint32_t *index)
{
    const uint32_t more = o->microbatches - g->m;
    o->n = 0;
    for (uint32_t s = 0; s < g->p; s++) {
        const uint32_t n = list_stage(g, s, rows, index),
                       k = more > 0 ? find_period(rows, index, n, g->m - g->p / 2 - 4) : 0;
        if (more > 0 && k == 0)
            return false;
        o->first[s] = o->n;
        for (uint32_t j = 0; j < (more > 0 ? k + PERIOD : n); j++)
            emit(o, s, rows[j], index[j]);
        for (uint32_t r = 1; r <= more; r++)
            for (uint32_t j = k; j < k + PERIOD; j++)
                emit(o, s, rows[j], index[j] + r);
        for (uint32_t j = k + PERIOD; more > 0 && j < n; j++)
            emit(o, s, rows[j], index[j] + more);
    }
    o->first[g->p] = o->n;
    return true;
}

static enum maq_status make(struct blocks *g, uint32_t p, uint32_t m, bool half, struct maq_arena *scratch)
{
    *g = (struct blocks){.p = p, .m = m, .ticks = 8 * m + 6 * p + 16};
    const size_t cells = (size_t)p * g->ticks;
    g->time = MAQ_ARENA_RAW(scratch, int32_t, (size_t)p * ROWS * 2 * m);
    g->count = MAQ_ARENA_NEW(scratch, uint32_t, (size_t)p * ROWS);
    g->next = MAQ_ARENA_NEW(scratch, uint32_t, (size_t)p * ROWS);
    g->free_at = MAQ_ARENA_NEW(scratch, int32_t, p);
    g->at = MAQ_ARENA_RAW(scratch, uint8_t, cells);
    g->live = MAQ_ARENA_NEW(scratch, uint16_t, cells);
    g->owed = MAQ_ARENA_NEW(scratch, uint16_t, cells);
    if (!g->time || !g->count || !g->next || !g->free_at || !g->at || !g->live || !g->owed)
        return MAQ_NO_MEMORY;
    lay_blocks(g, half);
    put_w(g, false);
    close_gaps(g, true);
    squeeze(g);
    take_w(g);
    close_gaps(g, false);
    put_w(g, false);
    squeeze(g);
    put_w(g, true);
    return MAQ_OK;
}

enum maq_status maq__order_controllable(struct maq_orders *o, struct maq_arena *scratch)
{
    const uint32_t p = o->stages, m = o->microbatches, most = 2 * p + 8;
    const bool half = o->kind == MAQ_SCHEDULE_V_HALF;
    struct blocks g;
    uint8_t *rows = MAQ_ARENA_RAW(scratch, uint8_t, (size_t)ROWS * m);
    uint32_t *index = MAQ_ARENA_RAW(scratch, uint32_t, (size_t)ROWS * m);
    if (!rows || !index)
        return MAQ_NO_MEMORY;
    MAQ_TRY(make(&g, p, m < most ? m : most, half, scratch));
    const bool written = write_orders(o, &g, rows, index);
    MAQ_ASSERT(written); /* of up to MAQ_MAX_STAGES stages: tests/test_schedule.c */
    return MAQ_OK;
}
