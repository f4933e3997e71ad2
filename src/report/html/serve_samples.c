/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_samples.c - what happens over time in an engine, gathered while it runs. A window is so many iterations in a row; when there are no
 * more windows, each two become one, and from then on a window is twice as many. So a run of any length leaves between half as many windows
 * as there may be and all of them, and which iterations are in which depends on their number alone.
 */
#include "report/html/serve_samples.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"

enum maq_status maq_serve_samples_new(struct maq_serve_samples **out, struct maq_diag *diag)
{
    struct maq_serve_samples *s = maq__calloc(sizeof *s);
    if (!s)
        return maq_no_memory(diag, "samples of a run");
    s->stride = 1;
    *out = s;
    return MAQ_OK;
}

void maq_serve_samples_free(struct maq_serve_samples *samples)
{
    free(samples);
}

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static void merge(struct maq_serve_window *a, const struct maq_serve_window *b)
{
    a->to_s = b->to_s;
    a->n += b->n;
    a->most_running = larger(a->most_running, b->most_running);
    a->most_waiting = larger(a->most_waiting, b->most_waiting);
    a->most_blocks = b->most_blocks > a->most_blocks ? b->most_blocks : a->most_blocks;
    a->requests += b->requests;
    a->tokens += b->tokens;
    a->running += b->running;
    a->waiting += b->waiting;
    a->blocks += b->blocks;
}

static void halve(struct maq_serve_samples *s)
{
    for (uint32_t i = 0; i < s->n / 2; i++) {
        struct maq_serve_window both = s->at[2 * i];
        merge(&both, &s->at[2 * i + 1]);
        s->at[i] = both;
    }
    s->n /= 2;
    s->stride *= 2;
}

void maq_serve_samples_watch(const struct maq_serve_iteration *it, void *samples)
{
    struct maq_serve_samples *s = samples;
    const struct maq_serve_window one = {.from_s = it->decided_s,
                                         .to_s = it->decided_s,
                                         .n = 1,
                                         .most_running = it->running,
                                         .most_waiting = it->waiting,
                                         .requests = it->requests,
                                         .tokens = (double)it->tokens,
                                         .running = it->running,
                                         .waiting = it->waiting,
                                         .blocks = it->used_blocks,
                                         .most_blocks = it->used_blocks};
    if (s->n > 0 && s->at[s->n - 1].n < s->stride) {
        merge(&s->at[s->n - 1], &one);
        return;
    }
    if (s->n == MAQ_SERVE_WINDOWS)
        halve(s);
    s->at[s->n++] = one;
}
