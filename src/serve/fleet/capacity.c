/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity.c - the most traffic under which bounds hold.
 *
 * One stream of requests after another (rate_trial.h): all at once first, which says how fast the fleet is at the most, then halves of
 * that rate until the bounds hold, then between. What the first stream found is where the others begin.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/threads.h"
#include "serve/fleet/rate_trial.h"

#define DEFAULT_TOLERANCE 0.001

struct streams {
    struct maq_rate_trial of[MAQ_CAPACITY_DRAWS];
    double guess; /* the capacity for another stream; 0 = nobody knows */
};

/* The capacity for one stream, from what all at once have told. */
static bool search(void *user, uint32_t draw, struct maq_arena *scratch)
{
    struct streams *s = user;
    struct maq_rate_trial *t = &s->of[draw];
    (void)scratch;
    if (t->fits && !isinf(t->low))
        (void)maq_rate_narrow(t, s->guess > 0 ? s->guess : t->served_per_s,
                              s->guess > 0); /* t->status has what failed */
    return true;
}

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void summarize(struct maq_capacity *c)
{
    uint32_t n = c->n_draws;
    qsort(c->of_draw, n, sizeof *c->of_draw, ascending);
    c->rate = n % 2 ? c->of_draw[n / 2] : (c->of_draw[n / 2 - 1] + c->of_draw[n / 2]) / 2;
    c->low = c->of_draw[0];
    c->high = c->of_draw[n - 1];
    c->confidence = 1 - exp2(1 - (double)n);
}

/* The first run of each stream is alone, for what is wrong with it to be said once and in order. */
static enum maq_status begin(struct maq_rate_trial *t, struct maq_diag *diag)
{
    MAQ_TRY(maq_rate_trial_begin(t, diag));
    return maq_rate_try(t, (double)INFINITY, diag) ? MAQ_OK : t->status;
}

enum maq_status maq_fleet_capacity(struct maq_capacity *out, const struct maq_fleet *fleet,
                                   const struct maq_requests *const *draws, uint32_t n_draws, const struct maq_slo *slo,
                                   double tolerance, struct maq_diag *diag)
{
    struct streams streams = {.guess = 0};
    enum maq_status status = MAQ_OK;
    MAQ_ASSERT(n_draws > 0 && n_draws <= MAQ_CAPACITY_DRAWS);
    *out = (struct maq_capacity){.n_draws = n_draws, .fits = true};
    for (uint32_t i = 0; i < n_draws && status == MAQ_OK; i++) {
        streams.of[i] = (struct maq_rate_trial){
            .fleet = fleet, .slo = slo, .draw = draws[i], .tolerance = tolerance > 0 ? tolerance : DEFAULT_TOLERANCE};
        status = begin(&streams.of[i], diag);
    }
    if (status == MAQ_OK)
        search(&streams, 0, NULL);
    streams.guess = isinf(streams.of[0].low) ? 0 : streams.of[0].low;
    if (status == MAQ_OK && n_draws > 1 && !maq_parallel_run(search, &streams, 1, n_draws - 1, 0))
        status = maq_no_memory(diag, "a search");
    for (uint32_t i = 0; i < n_draws; i++) {
        struct maq_rate_trial *t = &streams.of[i];
        status = status == MAQ_OK ? t->status : status;
        out->of_draw[i] = t->low;
        out->runs += t->runs;
        out->fits = out->fits && t->fits;
        maq_rate_trial_end(t);
    }
    out->e2el_s = streams.of[0].e2el_s;
    summarize(out);
    return status;
}
