/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tolerance_limit.c - combines independent draws to values of the slowest replica, and finds the limit by bisection
 * on the mean probability. See tolerance_limit.h.
 */
#include "risk/step/tolerance_limit.h"

#include <math.h>
#include <stdlib.h>

#include "base/stat/rng.h"
#include "base/stat/special_functions.h"

#define EXCEED 0.05       /* share of the steps */
#define DOUBT 0.05        /* 1 - confidence */
#define ENTITY UINT32_MAX /* of numbers that belong to whole steps, not to a replica */
#define POINTS 256u

static int ascending(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    return (a > b) - (a < b);
}

struct builder {
    const struct maq_limit_job *job;
    double **slowest; /* [regimes][draws] */
    uint32_t at, n;   /* draws used; values put together */
};

/* Takes `count` replicas of a kind into value n. false: the draws are used up. */
static bool take(struct builder *b, uint32_t kind, double count)
{
    const struct maq_limit_job *j = b->job;
    while (count > 0) {
        if (b->at == j->draws)
            return false;
        uint32_t i = b->at++;
        for (uint32_t r = 0; r < j->n_regimes; r++)
            b->slowest[r][b->n] = fmax(b->slowest[r][b->n], j->regime[r].end_ns[kind][i]);
        count--;
    }
    return true;
}

static bool put_together(struct builder *b)
{
    const struct maq_limit_job *j = b->job;
    double others = j->count[j->n_kinds - 1],
           slow = maq_poisson_quantile(j->expected, maq_rng_at(j->seed, MAQ_RNG_REGIME, ENTITY, b->n));
    slow = fmin(slow, others);
    for (uint32_t k = 0; k < j->n_kinds; k++)
        if (!take(b, k, k + 1 < j->n_kinds ? j->count[k] : others - slow))
            return false;
    return take(b, j->n_kinds, slow);
}

double maq_limit_mean(uint32_t n)
{
    double low = 0, high = EXCEED, want = -log(DOUBT) / fmax(n, 1);
    if (-log1p(-EXCEED) < want)
        return -1;
    for (int i = 0; i < 60; i++) { /* KL falls from -ln(1 - p) to 0 */
        double m = 0.5 * (low + high);
        if (m * log(m / EXCEED) + (1 - m) * (log1p(-m) - log1p(-EXCEED)) >= want)
            low = m;
        else
            high = m;
    }
    return low;
}

bool maq_step_limit_of(double *limit_ns, double *const *slowest, uint32_t n, const struct maq_limit_job *j,
                       struct maq_arena *arena)
{
    double m = maq_limit_mean(n), sigma = maq_lognormal_sigma(j->v->step_cv);
    uint32_t each = (n + POINTS - 1) / POINTS;
    struct maq_step_law law = {.sigma = sigma};
    *limit_ns = (double)NAN;
    if (m < 0)
        return true;
    law.atom = MAQ_ARENA_NEW(arena, struct maq_step_atom, j->n_regimes * maq_step_law_size(POINTS, j->v));
    if (!law.atom)
        return false;
    for (uint32_t r = 0; r < j->n_regimes; r++) {
        qsort(slowest[r], n, sizeof **slowest, ascending);
        for (uint32_t from = 0; from < n; from += each) { /* some together, at the slowest of them */
            uint32_t upto = from + each < n ? from + each : n;
            maq_step_law_put(&law, slowest[r][upto - 1] + j->regime[r].norm_ns + j->end_ns,
                             j->regime[r].share * (upto - from) / n, j->v);
        }
    }
    maq_step_law_finish(&law);
    *limit_ns = maq_step_law_quantile(&law, 1 - m);
    return true;
}

double maq_step_limit_draws(const struct maq_limit_job *j, uint32_t values)
{
    double replicas = 0;
    for (uint32_t k = 0; k < j->n_kinds; k++)
        replicas += j->count[k];
    return values * replicas;
}

bool maq_step_limit(struct maq_step_limit *out, const struct maq_limit_job *j, struct maq_arena *arena)
{
    struct builder b = {.job = j};
    b.slowest = MAQ_ARENA_NEW(arena, double *, j->n_regimes);
    for (uint32_t r = 0; b.slowest && r < j->n_regimes; r++)
        if (!(b.slowest[r] = MAQ_ARENA_NEW(arena, double, j->draws)))
            return false;
    if (!b.slowest)
        return false;
    while (b.n < j->draws && put_together(&b))
        b.n++;
    *out = (struct maq_step_limit){.values = b.n};
    return maq_step_limit_of(&out->limit_ns, b.slowest, b.n, j, arena);
}
