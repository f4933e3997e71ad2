/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pareto.c - the front as an array sorted by time, along which memory falls; binary search, insertion, and removal of
 * beaten plans. See pareto.h.
 */
#include "planner/uniform/pareto.h"

#include <stdlib.h>
#include <string.h>

/* The first plan that takes longer than step_s. */
static uint32_t upper(const struct maq_pareto *f, double step_s)
{
    uint32_t low = 0, high = f->n;
    while (low < high) {
        uint32_t mid = low + (high - low) / 2;
        if (f->at[mid].step_s > step_s)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

bool maq_pareto_beats(const struct maq_pareto *f, double step_s, double bytes)
{
    uint32_t i = upper(f, step_s); /* the slowest that is as fast needs the least memory of those */
    return i > 0 && f->at[i - 1].needed_bytes <= bytes;
}

enum maq_status maq_pareto_add(struct maq_pareto *f, const struct maq_search_plan *plan)
{
    if (maq_pareto_beats(f, plan->step_s, plan->needed_bytes))
        return MAQ_OK;
    if (f->n == f->size) {
        uint32_t size = f->size > 0 ? 2 * f->size : 64;
        struct maq_search_plan *grown = realloc(f->at, size * sizeof *grown);
        if (!grown)
            return MAQ_NO_MEMORY;
        f->at = grown;
        f->size = size;
    }
    uint32_t from = upper(f, plan->step_s), to;
    if (from > 0 && f->at[from - 1].step_s == plan->step_s) /* as fast with more memory */
        from--;
    for (to = from; to < f->n && f->at[to].needed_bytes >= plan->needed_bytes; to++)
        ;
    memmove(&f->at[from + 1], &f->at[to], (f->n - to) * sizeof *f->at);
    f->at[from] = *plan;
    f->n = f->n - (to - from) + 1;
    return MAQ_OK;
}

void maq_pareto_clear(struct maq_pareto *f)
{
    f->n = 0;
}

void maq_pareto_fini(struct maq_pareto *f)
{
    free(f->at);
    *f = (struct maq_pareto){0};
}
