/*
 * replay_steps.c - where the steps of a class's program are: marks of the program, or the period of its records.
 *
 * The period is the distance P at which the longest run of records repeats: r[i] = r[i + P] in shape. Candidates are the
 * distances at which a window from the middle of the program occurs again.
 */
#include <string.h>

#include "base/check.h"
#include "emulate/replay_program.h"

#define WINDOW 16u /* records; fewer in a short program */
#define LEAST 4u
#define CANDIDATES 256u

/* The run of i with shape[i] == shape[i + period] that goes through `middle`. */
static uint32_t run_around(const uint64_t *shape, uint32_t n, uint32_t middle, uint32_t period, uint32_t *first)
{
    uint32_t low = middle, high = middle;
    while (low > 0 && shape[low - 1] == shape[low - 1 + period])
        low--;
    while (high + period < n && shape[high] == shape[high + period])
        high++;
    *first = low;
    return high - low;
}

uint32_t maq_records_period(const uint64_t *shape, uint32_t n, uint32_t *first, uint32_t *count)
{
    uint32_t best = 0, best_run = 0, tried = 0;
    if (n < 4 * LEAST)
        return 0;
    uint32_t middle = n / 3, window = n / 8 < LEAST ? LEAST : n / 8 < WINDOW ? n / 8 : WINDOW;
    for (uint32_t p = window; p < n / 2 && middle + p + window <= n && tried < CANDIDATES; p++) {
        uint32_t low;
        if (memcmp(shape + middle, shape + middle + p, window * sizeof *shape) != 0)
            continue;
        tried++;
        uint32_t run = run_around(shape, n, middle, p, &low);
        if (run >= p && run + p > best_run + best + best / 4) {
            best = p;
            best_run = run;
            *first = low;
        }
    }
    *count = best > 0 ? (best_run + best) / best : 0;
    return best;
}

static uint64_t shape_of(const struct maq_rec *r)
{
    uint64_t id = r->kind == MAQ_REC_ALLOC || r->kind == MAQ_REC_FREE || r->kind == MAQ_REC_READ ? 0 : r->id;
    return maq_rec_mix((uint64_t)r->kind << 48 | (uint64_t)r->stream << 32 | id,
                       r->kind == MAQ_REC_COLL ? r->bytes : 0);
}

enum maq_status maq_program_steps(const uint32_t **step_at, uint32_t *n, bool *marked, const struct maq_rank_class *c,
                                  struct maq_arena *arena)
{
    uint32_t marks = 0, first = 0, count = 0, k = 0;
    for (uint32_t i = 0; i < c->n_records; i++)
        marks += c->record[i].kind == MAQ_REC_MARK && c->record[i].arg == MAQ_REC_STEP;
    *marked = marks > 0;
    uint32_t *at = NULL;
    if (marks > 0) {
        at = MAQ_ARENA_NEW(arena, uint32_t, marks);
        for (uint32_t i = 0; at && i < c->n_records; i++)
            if (c->record[i].kind == MAQ_REC_MARK && c->record[i].arg == MAQ_REC_STEP)
                at[k++] = i;
    } else {
        struct maq_arena_mark mark = maq_arena_mark(arena);
        uint64_t *shape = MAQ_ARENA_NEW(arena, uint64_t, c->n_records);
        for (uint32_t i = 0; shape && i < c->n_records; i++)
            shape[i] = shape_of(&c->record[i]);
        uint32_t period = shape ? maq_records_period(shape, c->n_records, &first, &count) : 0;
        maq_arena_reset(arena, mark);
        at = MAQ_ARENA_NEW(arena, uint32_t, count);
        for (uint32_t i = 1; at && i <= count; i++)
            at[k++] = first + i * period;
    }
    *step_at = at;
    *n = k;
    return at ? MAQ_OK : MAQ_NO_MEMORY;
}
