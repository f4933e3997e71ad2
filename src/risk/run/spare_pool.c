/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spare_pool.c - an event simulation of repairs and of other jobs' losses, with a binary heap of repair ends. See
 * spare_pool.h.
 */
#include "risk/run/spare_pool.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/stat/special_functions.h"

/* --- heap --- */

void maq_heap_push(struct maq_heap *h, int64_t value)
{
    if (h->n == h->size) {
        size_t size = h->size ? 2 * h->size : 64;
        int64_t *grown = maq__realloc(h->at, size * sizeof *grown);
        if (!grown) {
            h->failed = true;
            return;
        }
        h->at = grown;
        h->size = size;
    }
    size_t i = h->n++;
    for (; i > 0 && h->at[(i - 1) / 2] > value; i = (i - 1) / 2)
        h->at[i] = h->at[(i - 1) / 2];
    h->at[i] = value;
}

int64_t maq_heap_pop(struct maq_heap *h)
{
    int64_t top = h->at[0], last = h->at[--h->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        child += child + 1 < h->n && h->at[child + 1] < h->at[child];
        if (h->at[child] >= last)
            break;
        h->at[i] = h->at[child];
    }
    h->at[i] = last;
    return top;
}

void maq_heap_free(struct maq_heap *h)
{
    free(h->at);
    *h = (struct maq_heap){0};
}

/* --- nodes --- */

void maq_spare_pool_lose(struct maq_spare_pool *p, int64_t back, bool lemon)
{
    maq_heap_push(&p->repairs, 2 * back + lemon);
}

/* Another job loses a node: it takes a spare or waits. */
static void other_fails(struct maq_spare_pool *p)
{
    double u = p->n_repairs > 1 ? maq_rng_next(&p->rng) : 0;
    uint32_t cause = 0;
    while (cause + 1 < p->n_repairs && u >= p->repair[cause].upto)
        cause++;
    double length =
        p->repair[cause].median_ns * exp(p->repair[cause].sigma * maq_normal_quantile(maq_rng_next(&p->rng)));
    maq_spare_pool_lose(p, p->other_next + llround(fmin(length, 1e18)), false);
    p->other_next += 1 + llround(fmin(-log(maq_rng_next(&p->rng)) / p->other_rate, 1e18));
    if (p->free > 0) {
        p->free--;
        p->lemons -= p->lemons > p->free;
    } else {
        p->others++;
    }
}

/* A node is free: those who asked before the job, then the job, then the others. True when the job gets it. */
static bool hand_out(struct maq_spare_pool *p, bool lemon, bool wanted)
{
    if (p->others > 0 && (p->ahead > 0 || !wanted)) {
        p->others--;
        p->ahead -= p->ahead > 0;
        return false;
    }
    if (wanted)
        return true;
    p->free++;
    p->lemons += lemon;
    return false;
}

/* The next thing that happens in the pool up to `until`, or INT64_MAX. */
static int64_t next_event(const struct maq_spare_pool *p, int64_t until, bool *repair)
{
    int64_t back = p->repairs.n > 0 ? p->repairs.at[0] / 2 : INT64_MAX;
    int64_t lost = p->other_rate > 0 ? p->other_next : INT64_MAX;
    *repair = back <= lost;
    int64_t at = *repair ? back : lost;
    return at <= until ? at : INT64_MAX;
}

static void catch_up(struct maq_spare_pool *p, int64_t now)
{
    bool repair;
    while (next_event(p, now, &repair) != INT64_MAX)
        if (repair)
            hand_out(p, maq_heap_pop(&p->repairs) % 2, false);
        else
            other_fails(p);
}

int64_t maq_spare_pool_take(struct maq_spare_pool *p, int64_t now, int64_t until, int64_t *need, int64_t *lemons,
                            double u)
{
    bool repair;
    int64_t at = now;
    if (!p->waiting)
        catch_up(p, now);
    for (; *need > 0 && p->free > 0; --*need, p->free--) {
        bool lemon = u * (double)p->free < (double)p->lemons;
        *lemons += lemon;
        p->lemons -= lemon;
    }
    if (*need > 0 && !p->waiting) {
        p->waiting = true;
        p->ahead = p->others;
    }
    while (*need > 0) {
        int64_t event = next_event(p, until, &repair);
        if (event == INT64_MAX)
            return until;
        if (!repair) {
            other_fails(p);
            continue;
        }
        bool lemon = maq_heap_pop(&p->repairs) % 2;
        if (hand_out(p, lemon, true)) {
            --*need;
            *lemons += lemon;
            at = event > now ? event : now;
        }
    }
    p->waiting = false;
    p->ahead = 0;
    return at;
}
