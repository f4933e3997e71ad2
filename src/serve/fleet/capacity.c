/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity.c - the most traffic under which bounds hold.
 *
 * Whether they hold is asked of one stream of requests at one scale of its time after another: all at once first, which says how fast
 * the fleet is at the most, then halves of that rate until they hold, then between. More traffic does not always mean longer latencies
 * (batches form otherwise), so that what is found is a rate at which they hold and next to one at which they do not.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/threads.h"
#include "maquette/serve_fleet.h"

#define DEFAULT_TOLERANCE 0.001
#define NEAR_STEP 1.03
#define MOST_STEPS 40 /* halvings and doublings */

struct trial {
    const struct maq_fleet *fleet;
    const struct maq_slo *slo;
    const struct maq_requests *draw;
    struct maq_request *scaled; /* [draw->n] */
    double own_rate;            /* of the draw as it is */
    double tolerance;
    double guess; /* where it is looked for first: the capacity of another draw; 0 = nobody knows */
    /* what is known */
    double low, high;       /* at low the bounds hold, or it is 0; at high they do not, or it is infinity */
    double served_per_s;    /* with all at once */
    double e2el_s;          /* in the mean, at low */
    enum maq_status status; /* of its last run */
    uint32_t runs;
    bool fits;
};

/* Whether the bounds hold at `rate`, infinity: all at once; what is known then says so. False after a failure, which t->status is. */
static bool try_rate(struct trial *t, double rate, struct maq_diag *diag)
{
    struct maq_requests q = *t->draw;
    struct maq_serve_result *r;
    struct maq_slo_outcome o;
    for (uint32_t i = 0; i < q.n; i++) {
        t->scaled[i] = t->draw->at[i];
        t->scaled[i].arrival_s = (t->draw->at[i].arrival_s - t->draw->at[0].arrival_s) * (t->own_rate / rate);
    }
    q.at = t->scaled;
    t->status = maq_fleet_run(&r, t->fleet, &q, diag);
    if (t->status != MAQ_OK)
        return false;
    maq_slo_judge(&o, t->slo, r, &q);
    bool held = o.all_met && (t->slo->n > 0 || (!r->overloaded && !isinf(rate)));
    t->runs++;
    t->fits = r->fits;
    t->served_per_s = isinf(rate) ? r->requests_per_s : t->served_per_s;
    t->e2el_s = held ? r->e2el_s.mean : t->e2el_s;
    *(held ? &t->low : &t->high) = rate;
    maq_serve_free(r);
    return true;
}

/* The capacity for one draw, from what all at once have told. */
static bool search(void *user, uint32_t draw, struct maq_arena *scratch)
{
    struct trial *t = &((struct trial *)user)[draw];
    (void)scratch;
    double step = t->guess > 0 ? NEAR_STEP : 2;
    if (!t->fits || isinf(t->low))
        return true;
    if (!try_rate(t, t->guess > 0 ? t->guess : t->served_per_s, NULL))
        return true;
    for (int i = 0; i < MOST_STEPS && (isinf(t->high) || t->low <= 0); i++) {
        if (!try_rate(t, t->low > 0 ? t->low * step : t->high / step, NULL))
            return true;
        step = step * step < 2 ? step * step : 2;
    }
    while (t->low > 0 && !isinf(t->high) && t->high > t->low * (1 + t->tolerance))
        if (!try_rate(t, sqrt(t->low * t->high), NULL))
            return true;
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
    c->unbounded = isinf(c->rate) != 0;
}

/* The first run of each draw is alone, for what is wrong with it to be said once and in order. */
static enum maq_status begin(struct trial *t, const struct maq_requests *draw, struct maq_diag *diag)
{
    double span = draw->at[draw->n - 1].arrival_s - draw->at[0].arrival_s;
    t->draw = draw;
    t->own_rate = span > 0 ? (draw->n - 1) / span : 1;
    t->high = (double)INFINITY;
    t->scaled = maq__calloc(draw->n * sizeof *t->scaled);
    if (!t->scaled)
        return maq_no_memory(diag, "requests");
    return try_rate(t, (double)INFINITY, diag) ? MAQ_OK : t->status;
}

enum maq_status maq_fleet_capacity(struct maq_capacity *out, const struct maq_fleet *fleet,
                                   const struct maq_requests *const *draws, uint32_t n_draws, const struct maq_slo *slo,
                                   double tolerance, struct maq_diag *diag)
{
    struct trial trials[MAQ_CAPACITY_DRAWS] = {0};
    enum maq_status status = MAQ_OK;
    MAQ_ASSERT(n_draws > 0 && n_draws <= MAQ_CAPACITY_DRAWS);
    *out = (struct maq_capacity){.n_draws = n_draws, .fits = true};
    for (uint32_t i = 0; i < n_draws && status == MAQ_OK; i++) {
        trials[i] =
            (struct trial){.fleet = fleet, .slo = slo, .tolerance = tolerance > 0 ? tolerance : DEFAULT_TOLERANCE};
        status = begin(&trials[i], draws[i], diag);
    }
    if (status == MAQ_OK)
        search(trials, 0, NULL);
    for (uint32_t i = 1; i < n_draws; i++)
        trials[i].guess = isinf(trials[0].low) ? 0 : trials[0].low;
    if (status == MAQ_OK && n_draws > 1 && !maq_parallel_run(search, trials, 1, n_draws - 1, 0))
        status = maq_no_memory(diag, "a search");
    for (uint32_t i = 0; i < n_draws; i++) {
        status = status == MAQ_OK ? trials[i].status : status;
        out->of_draw[i] = trials[i].low;
        out->runs += trials[i].runs;
        out->fits = out->fits && trials[i].fits;
        free(trials[i].scaled);
    }
    out->e2el_s = trials[0].e2el_s;
    summarize(out);
    return status;
}
