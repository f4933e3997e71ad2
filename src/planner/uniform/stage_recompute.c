/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_recompute.c - the least number of recomputed layers of every stage, by bisection in all stages at once: each trial
 * plan takes the midpoint of every stage.
 *
 * More recomputed layers never need more memory, and a stage's memory depends on its own number alone; so log2(layers) plans
 * find the least number of every stage.
 */
#include "planner/uniform/stage_recompute.h"

#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "train/atoms.h"

#define DIGITS 6 /* of a number of layers, and its comma */

struct counts {
    int32_t low[MAQ_MAX_STAGES], high[MAQ_MAX_STAGES];
    bool fits[MAQ_MAX_STAGES];
    char text[MAQ_MAX_STAGES * DIGITS];
};

static void list_plan(struct maq_plan *out, const struct maq_plan *plan, char *text, const int32_t *layers)
{
    size_t at = 0;
    for (int32_t s = 0; s < plan->pp; s++)
        at += (size_t)snprintf(text + at, DIGITS + 1, "%s%d", s > 0 ? "," : "", layers[s]);
    *out = *plan;
    out->recompute = MAQ_RECOMPUTE_FULL;
    out->recompute_method = MAQ_RECOMPUTE_BLOCK;
    out->recompute_num_layers = 0;
    out->recompute_parts = 0;
    out->recompute_stages = (struct maq_str){text, at};
}

/* Whether every stage fits with these numbers, and which do. */
static enum maq_status try_counts(struct counts *c, bool *all, const struct maq_plan *plan, const int32_t *layers,
                                  struct maq_train_sweep *sweep)
{
    struct maq_plan with;
    list_plan(&with, plan, c->text, layers);
    MAQ_TRY(maq_train_sweep_stages_fit(c->fits, (uint32_t)plan->pp, sweep, &with));
    *all = true;
    for (int32_t s = 0; s < plan->pp; s++)
        *all &= c->fits[s];
    return MAQ_OK;
}

static enum maq_status bisect(struct counts *c, const struct maq_plan *plan, struct maq_train_sweep *sweep)
{
    for (bool more = true; more;) {
        int32_t middle[MAQ_MAX_STAGES];
        bool all;
        more = false;
        for (int32_t s = 0; s < plan->pp; s++)
            middle[s] = c->low[s] + (c->high[s] - c->low[s]) / 2;
        MAQ_TRY(try_counts(c, &all, plan, middle, sweep));
        for (int32_t s = 0; s < plan->pp; s++) {
            if (c->low[s] == c->high[s])
                continue;
            if (c->fits[s])
                c->high[s] = middle[s];
            else
                c->low[s] = middle[s] + 1;
            more |= c->low[s] < c->high[s];
        }
    }
    return MAQ_OK;
}

enum maq_status maq_least_of_stages(struct maq_plan *out, bool *differ, const struct maq_plan *plan, int32_t most,
                                    struct maq_train_sweep *sweep, struct maq_arena *keep)
{
    struct counts c = {.low = {0}};
    *differ = false;
    if (plan->pp < 2 || plan->pp > MAQ_MAX_STAGES)
        return MAQ_OK;
    for (int32_t s = 0; s < plan->pp; s++)
        c.high[s] = most;
    bool all;
    MAQ_TRY(try_counts(&c, &all, plan, c.high, sweep));
    if (!all)
        return MAQ_OK;
    MAQ_TRY(bisect(&c, plan, sweep));
    for (int32_t s = 1; s < plan->pp; s++)
        *differ |= c.low[s] != c.low[0];
    if (!*differ)
        return MAQ_OK;
    list_plan(out, plan, c.text, c.low);
    char *text = maq_arena_strdup(keep, out->recompute_stages);
    if (!text)
        return MAQ_NO_MEMORY;
    out->recompute_stages.ptr = text;
    return MAQ_OK;
}
