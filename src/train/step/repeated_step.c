/* SPDX-License-Identifier: Apache-2.0 */
/* repeated_step.c - ends of steps that follow each other, until they repeat. See repeated_step.h. */
#include "train/step/repeated_step.h"

#include <math.h>

#define SAME_NS 1e-3 /* durations are whole nanoseconds */

bool maq_repeated_step_begin(struct maq_repeated_step *r, uint32_t stages, struct maq_arena *arena)
{
    *r = (struct maq_repeated_step){.stages = stages, .most = MAQ_REPEATED_STEPS + 4 * stages};
    r->at = MAQ_ARENA_NEW(arena, double, (size_t)r->most *stages);
    return r->at != NULL;
}

/* Least and largest difference of the last step's ends to those of the one `cycle` before. */
static void spread(double *least, double *most, const struct maq_repeated_step *r, uint32_t cycle)
{
    const double *last = r->at + (size_t)(r->n - 1) * r->stages, *earlier = last - (size_t)cycle * r->stages;
    *least = HUGE_VAL;
    *most = -HUGE_VAL;
    for (uint32_t s = 0; s < r->stages; s++) {
        *least = fmin(*least, last[s] - earlier[s]);
        *most = fmax(*most, last[s] - earlier[s]);
    }
}

bool maq_repeated_step_ends(double *period, struct maq_repeated_step *r, const double *ends)
{
    double least, most;
    for (uint32_t s = 0; s < r->stages; s++)
        r->at[(size_t)r->n * r->stages + s] = r->start + ends[s];
    r->n++;
    for (uint32_t cycle = 1; cycle < r->n && cycle <= r->stages; cycle++) {
        spread(&least, &most, r, cycle);
        if (most - least > SAME_NS)
            continue;
        *period = most / cycle;
        return true;
    }
    if (r->n < r->most)
        return false;
    spread(&least, &most, r, 1);
    *period = most;
    return true;
}

void maq_repeated_step_next(double *begins, struct maq_repeated_step *r)
{
    const double *last = r->at + (size_t)(r->n - 1) * r->stages;
    r->start = HUGE_VAL;
    for (uint32_t s = 0; s < r->stages; s++)
        r->start = fmin(r->start, last[s]);
    for (uint32_t s = 0; s < r->stages; s++)
        begins[s] = last[s] - r->start;
}
