/* SPDX-License-Identifier: Apache-2.0 */
/* availability_draws.c - for which share of a time as many replicas are there as are needed, in draws of what fails; nothing is served. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/threads.h"
#include "maquette/fleet_availability.h"
#include "serve/fleet/placement.h"

struct drawing {
    const struct maq_fleet *fleet;
    const uint32_t *needed;
    const struct maq_outage_spec *spec;
    uint32_t *member; /* [all replicas] */
    double *shares;   /* [n_draws] */
};

/* Events are in the order of time; an outage of a replica begins when it fails, known or not. False: out of memory. */
static bool draw(double *share, const struct drawing *d, uint32_t number)
{
    struct maq_outage_spec spec = *d->spec;
    struct maq_outages outages;
    uint32_t short_of = 0, *there = maq__calloc((d->fleet->n_members + 1u) * sizeof *there);
    double good = 0, since = 0;
    spec.seed += number;
    if (!there || maq_outages_draw(&outages, d->fleet, &spec, NULL) != MAQ_OK) {
        free(there);
        return false;
    }
    for (uint32_t m = 0; m < d->fleet->n_members; m++)
        there[m] = d->fleet->members[m].replicas;
    for (uint32_t i = 0; i < outages.n && outages.events[i].at_s < spec.span_s; i++) {
        const struct maq_fleet_event *e = &outages.events[i];
        uint32_t m = d->member[e->replica];
        if (e->kind != MAQ_FLEET_FAILS && e->kind != MAQ_FLEET_BACK)
            continue;
        good += short_of == 0 ? e->at_s - since : 0;
        since = e->at_s;
        short_of -= there[m] < d->needed[m];
        there[m] = e->kind == MAQ_FLEET_FAILS ? there[m] - 1 : there[m] + 1;
        short_of += there[m] < d->needed[m];
    }
    good += short_of == 0 ? spec.span_s - since : 0;
    *share = good / spec.span_s;
    maq_outages_free(&outages);
    free(there);
    return true;
}

static bool work(void *user, uint32_t number, struct maq_arena *scratch)
{
    const struct drawing *d = user;
    (void)scratch;
    return draw(&d->shares[number], d, number);
}

enum maq_status maq_availability_draw(struct maq_availability_draws *out, const struct maq_fleet *fleet,
                                      const uint32_t *needed, const struct maq_outage_spec *spec, uint32_t n_draws,
                                      struct maq_diag *diag)
{
    MAQ_ASSERT(n_draws > 0 && spec->span_s > 0);
    uint32_t all = 0;
    for (uint32_t m = 0; m < fleet->n_members; m++)
        all += fleet->members[m].replicas;
    struct drawing d = {fleet, needed, spec, maq__calloc((all + 1u) * sizeof *d.member),
                        maq__calloc(n_draws * sizeof *d.shares)};
    bool ok = d.shares && d.member;
    if (ok)
        maq_fleet_members_of(fleet, d.member);
    ok = ok && maq_parallel_run(work, &d, 0, n_draws, 0);
    *out = (struct maq_availability_draws){
        .low = 1, .high = 0, .n_draws = n_draws, .confidence = (n_draws - 1.0) / (n_draws + 1.0)};
    for (uint32_t i = 0; ok && i < n_draws; i++) {
        out->mean += d.shares[i] / n_draws;
        out->low = fmin(out->low, d.shares[i]);
        out->high = fmax(out->high, d.shares[i]);
    }
    free(d.member);
    free(d.shares);
    return ok ? MAQ_OK : maq_no_memory(diag, "failures");
}
