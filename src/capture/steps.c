/* SPDX-License-Identifier: Apache-2.0 */
/*
 * steps.c - the steps of a class's program, from its marks or from the period of its work.
 *
 * A step is the repetition that covers most: n steps of length L are n L records, and what repeats inside of one (layers, micro
 * batches) is broken off where the step ends, so it covers less. A period P covers the longest run of r[i] = r[i + P], and what it
 * repeats:
 *
 *     covered(P) = run + P    where the run is as long as the period;  2 run  where it is not, at least half of it
 *
 * The shortest P counts of which no other covers a quarter more: 2 L covers what L does. Two steps of which the first has some
 * work of its own, such as memory that an optimizer sets once, have a run shorter than P.
 *
 * Candidates are the distances between a window of records and its last occurrence. Each is voted for by as many windows, times its
 * length: levels of the repetition then weigh alike, and the CANDIDATES heaviest are tried.
 *
 * Only launches, collectives and messages count: when memory is asked for and events are looked at changes from step to step. What
 * cannot be told: whether one step of m micro batches, with nothing beside it, is m steps; and steps of which every tenth does
 * something else are found as tens. Marks (NVTX) say it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "capture/build.h"
#include "capture/steps.h"
#include "shim/record.h"

#define WINDOW 8u /* records; fewer in a short program */
#define LEAST 4u  /* windows in a program */
#define CANDIDATES 32u

struct candidate {
    uint32_t period;
    uint64_t weight;
};

struct voting {
    const uint64_t *shape;
    uint32_t n, window;
    uint32_t *votes; /* [n] for each distance */
    uint32_t *last;  /* [mask + 1] 1 + where a window was last, by its hash; 0 = nowhere */
    uint32_t mask;
};

static uint64_t window_hash(const struct voting *v, uint32_t i)
{
    uint64_t h = v->window;
    for (uint32_t k = 0; k < v->window; k++)
        h = maq_rec_mix(h, v->shape[i + k]);
    return h;
}

static void vote(struct voting *v)
{
    for (uint32_t i = 0; i + v->window <= v->n; i++) {
        uint32_t at = (uint32_t)window_hash(v, i) & v->mask;
        while (v->last[at] > 0 && memcmp(v->shape + v->last[at] - 1, v->shape + i, v->window * sizeof *v->shape) != 0)
            at = (at + 1) & v->mask;
        if (v->last[at] > 0)
            v->votes[i - (v->last[at] - 1)]++;
        v->last[at] = i + 1;
    }
}

/* The heaviest, and then by period. */
static uint32_t choose(struct candidate *best, const struct voting *v)
{
    uint32_t n = 0;
    for (uint32_t p = 1; p < v->n; p++) {
        struct candidate c = {p, (uint64_t)v->votes[p] * p};
        uint32_t i;
        if (c.weight == 0 || (n == CANDIDATES && best[n - 1].weight >= c.weight))
            continue;
        for (i = n < CANDIDATES ? n++ : n - 1; i > 0 && best[i - 1].weight < c.weight; i--)
            best[i] = best[i - 1];
        best[i] = c;
    }
    return n;
}

static int by_period(const void *left, const void *right)
{
    const struct candidate *a = left, *b = right;
    return a->period < b->period ? -1 : a->period > b->period;
}

/* The longest run of i with shape[i] == shape[i + period]. */
static uint32_t longest_run(const struct voting *v, uint32_t period, uint32_t *first)
{
    uint32_t best = 0, run = 0;
    for (uint32_t i = 0; i + period < v->n; i++) {
        run = v->shape[i] == v->shape[i + period] ? run + 1 : 0;
        if (run > best) {
            best = run;
            *first = i + 1 - run;
        }
    }
    return best;
}

static uint32_t find_period(struct voting *v, uint32_t *first, uint32_t *count)
{
    struct candidate candidate[CANDIDATES];
    uint64_t most = 0;
    uint32_t best = 0;
    vote(v);
    uint32_t n = choose(candidate, v);
    if (n > 1)
        qsort(candidate, n, sizeof *candidate, by_period);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t p = candidate[i].period, begin = 0, run = longest_run(v, p, &begin);
        uint64_t covered = run >= p ? (uint64_t)run + p : 2 * (uint64_t)run;
        if (2 * (uint64_t)run < p || covered <= most + most / 4)
            continue;
        best = p;
        most = covered;
        *first = begin;
        *count = (uint32_t)(((uint64_t)run + p + p / 2) / p);
    }
    return best;
}

uint32_t maq_records_period(const uint64_t *shape, uint32_t n, uint32_t *first, uint32_t *count)
{
    struct voting v = {.shape = shape, .n = n, .window = n / 8 < WINDOW ? n / 8 : WINDOW};
    uint32_t period = 0;
    *first = *count = 0;
    if (v.window == 0 || n < LEAST * v.window || n > UINT32_MAX / 4)
        return 0;
    for (v.mask = 1; v.mask < 2 * n;)
        v.mask = 2 * v.mask + 1;
    v.votes = maq__calloc(n * sizeof *v.votes);
    v.last = maq__calloc(((size_t)v.mask + 1) * sizeof *v.last);
    if (v.votes && v.last)
        period = find_period(&v, first, count);
    free(v.votes);
    free(v.last);
    return period;
}

/* --- steps of a program --- */

static bool is_step(const struct maq_rec *r)
{
    return r->kind == MAQ_REC_MARK && r->arg == MAQ_REC_STEP;
}

static bool is_work(const struct maq_rec *r)
{
    return r->kind == MAQ_REC_LAUNCH || r->kind == MAQ_REC_COLL || r->kind == MAQ_REC_SEND || r->kind == MAQ_REC_RECV;
}

/* What a rank does there. Of a launch it is the shape of the operator: grids may hang on data, and reach on where memory lies. */
static uint64_t shape_of(const struct maq_rec *r, const uint64_t *op)
{
    bool launch = r->kind == MAQ_REC_LAUNCH;
    uint64_t h = maq_rec_mix((uint64_t)r->kind << 32 | r->stream, launch ? op[r->id] : r->id);
    return launch ? h : maq_rec_mix(h, r->bytes);
}

/* The records that are `what`; *n of them. NULL: out of memory. */
static uint32_t *list(uint32_t *n, const struct maq_rank_class *c, bool (*what)(const struct maq_rec *),
                      struct maq_arena *arena)
{
    uint32_t k = 0;
    for (uint32_t i = 0; i < c->n_records; i++)
        k += what(&c->record[i]);
    uint32_t *at = MAQ_ARENA_NEW(arena, uint32_t, k);
    *n = at ? k : 0;
    for (uint32_t i = 0, next = 0; at && next < k; i++)
        if (what(&c->record[i]))
            at[next++] = i;
    return at;
}

enum maq_status maq_capture_steps(const uint32_t **step_at, uint32_t *n, bool *marked,
                                  const struct maq_capture *capture, uint32_t class, struct maq_arena *arena)
{
    const struct maq_rank_class *c = &capture->class_of_ranks[class];
    uint32_t n_work, first, count = 0;
    *step_at = list(n, c, is_step, arena);
    *marked = *n > 0;
    if (!*step_at || *marked)
        return *step_at ? MAQ_OK : MAQ_NO_MEMORY;
    const uint32_t *work = list(&n_work, c, is_work, arena);
    uint64_t *shape = MAQ_ARENA_NEW(arena, uint64_t, n_work), *op = MAQ_ARENA_NEW(arena, uint64_t, capture->n_ops);
    if (!work || !shape || !op)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < capture->n_ops; i++)
        op[i] = maq_capture_op_shape(&capture->op[i]);
    for (uint32_t i = 0; i < n_work; i++)
        shape[i] = shape_of(&c->record[work[i]], op);
    uint64_t period = maq_records_period(shape, n_work, &first, &count);
    uint32_t *at = MAQ_ARENA_NEW(arena, uint32_t, count);
    for (uint32_t i = 0; at && i < count; i++) /* the last may go on to the end */
        at[i] = first + (i + 1) * period < n_work ? work[first + (i + 1) * period] : c->n_records - 1;
    *step_at = at;
    *n = at ? count : 0;
    return at ? MAQ_OK : MAQ_NO_MEMORY;
}
