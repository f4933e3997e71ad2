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
    bool met;
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
        struct maq_slo_outcome outcome;
        maq_slo_judge(&outcome, d->slo, r, d->requests);
        at->share = d->requests->n > 0 ? (double)outcome.good / d->requests->n : 1;
        at->met = outcome.all_met;
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

static void summarize(struct maq_attainment *out, const struct draw *draws, uint32_t n)
{
    *out =
        (struct maq_attainment){.first = draws[0].share, .low = draws[0].share, .high = draws[0].share, .n_draws = n};
    for (uint32_t i = 0; i < n; i++) {
        out->low = fmin(out->low, draws[i].share);
        out->high = fmax(out->high, draws[i].share);
        out->met += draws[i].met;
    }
    out->confidence = (n - 1.0) / (n + 1.0);
}

enum maq_status maq_fleet_attainment(struct maq_attainment *out, struct maq_serve_result **first,
                                     const struct maq_fleet *fleet, const struct maq_requests *requests,
                                     const struct maq_outage_spec *spec, uint32_t n_draws, const struct maq_slo *slo,
                                     struct maq_diag *diag)
{
    MAQ_ASSERT(n_draws > 0);
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
            summarize(out, draws, n_draws);
    } else {
        maq_serve_free(draws[0].result);
    }
    free(draws);
    return status;
}
