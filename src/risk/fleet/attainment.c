/* SPDX-License-Identifier: Apache-2.0 */
/* attainment.c - the same requests through several draws of what fails, side by side. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/threads.h"
#include "maquette/fleet_outages.h"

struct draw {
    struct maq_serve_result *result; /* of the first one */
    double share;
    struct maq_slo_outcome outcome;
    enum maq_status status;
};

struct drawing {
    const struct maq_fleet *fleet;
    const struct maq_requests *requests;
    const struct maq_outage_spec *spec;
    const struct maq_slo *slo;
    struct draw *draws;
    struct maq_diag *diag; /* of the first draw alone */
};

static void run(const struct drawing *d, uint32_t number, struct maq_diag *diag)
{
    struct draw *at = &d->draws[number];
    struct maq_outage_spec spec = *d->spec;
    struct maq_fleet fleet = *d->fleet;
    struct maq_outages outages;
    struct maq_serve_result *r = NULL;
    spec.seed += number;
    at->status = maq_outages_draw(&outages, &fleet, &spec, diag);
    if (at->status != MAQ_OK)
        return;
    fleet.events = outages.events;
    fleet.n_events = outages.n;
    at->status = maq_fleet_run(&r, &fleet, d->requests, diag);
    maq_outages_free(&outages);
    if (at->status != MAQ_OK)
        return;
    if (d->slo->n > 0 && r->fits) {
        maq_slo_judge(&at->outcome, d->slo, r, d->requests);
        at->share = d->requests->n > 0 ? (double)at->outcome.good / d->requests->n : 1;
    }
    if (number == 0)
        at->result = r;
    else
        maq_serve_free(r);
}

static bool work(void *user, uint32_t number, struct maq_arena *scratch)
{
    const struct drawing *d = user;
    (void)scratch;
    run(d, number, NULL);
    return d->draws[number].status != MAQ_NO_MEMORY;
}

static void summarize_bound(struct maq_attainment *out, uint32_t b, const struct draw *draws, uint32_t n)
{
    out->bound_low_s[b] = out->bound_high_s[b] = draws[0].outcome.value_s[b];
    for (uint32_t i = 0; i < n; i++) {
        out->bound_low_s[b] = fmin(out->bound_low_s[b], draws[i].outcome.value_s[b]);
        out->bound_high_s[b] = fmax(out->bound_high_s[b], draws[i].outcome.value_s[b]);
        out->bound_met[b] += draws[i].outcome.met[b];
    }
}

static void summarize(struct maq_attainment *out, const struct maq_slo *slo, const struct draw *draws, uint32_t n)
{
    *out = (struct maq_attainment){
        .first = draws[0].share, .low = draws[0].share, .high = draws[0].share, .n_draws = n, .slo = *slo};
    for (uint32_t i = 0; i < n; i++) {
        out->of_draw[i] = draws[i].share;
        out->low = fmin(out->low, draws[i].share);
        out->high = fmax(out->high, draws[i].share);
        out->met += draws[i].outcome.all_met;
    }
    for (uint32_t b = 0; b < slo->n; b++)
        summarize_bound(out, b, draws, n);
    out->confidence = (n - 1.0) / (n + 1.0);
}

struct maq_what_if maq_what_if_of(const char *what, const struct maq_attainment *asked,
                                  const struct maq_attainment *other)
{
    struct maq_what_if w = {.what = what, .attainment = *other};
    MAQ_ASSERT(asked->n_draws == other->n_draws && asked->n_draws > 0);
    w.low = w.high = other->of_draw[0] - asked->of_draw[0];
    for (uint32_t i = 0; i < asked->n_draws; i++) {
        double more = other->of_draw[i] - asked->of_draw[i];
        w.mean += more / asked->n_draws;
        w.low = fmin(w.low, more);
        w.high = fmax(w.high, more);
    }
    return w;
}

enum maq_status maq_fleet_attainment(struct maq_attainment *out, struct maq_serve_result **first,
                                     const struct maq_fleet *fleet, const struct maq_requests *requests,
                                     const struct maq_outage_spec *spec, uint32_t n_draws, const struct maq_slo *slo,
                                     struct maq_diag *diag)
{
    MAQ_ASSERT(n_draws > 0 && n_draws <= MAQ_ATTAINMENT_DRAWS);
    struct draw *draws = maq__calloc(n_draws * sizeof *draws);
    if (!draws)
        return maq_no_memory(diag, "failures");
    struct drawing d = {fleet, requests, spec, slo, draws, diag};
    run(&d, 0, diag); /* what is wrong is said once */
    enum maq_status status = draws[0].status;
    if (status == MAQ_OK && n_draws > 1 && draws[0].result->fits && !maq_parallel_run(work, &d, 1, n_draws - 1, 0))
        status = maq_no_memory(diag, "failures");
    for (uint32_t i = 1; i < n_draws && status == MAQ_OK; i++)
        status = draws[i].status;
    if (status == MAQ_OK) {
        *first = draws[0].result;
        if (out)
            summarize(out, slo, draws, n_draws);
    } else {
        maq_serve_free(draws[0].result);
    }
    free(draws);
    return status;
}
