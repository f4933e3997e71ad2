/* SPDX-License-Identifier: Apache-2.0 */
/* outages.c - what happens to replicas as events: outages of one that overlap are one, and those of a schedule beside them. */
#include "maquette/fleet_outages.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "risk/fleet/node_failures.h"
#include "serve/fleet/placement.h"

/* ---- events ---- */

static int by_replica(const void *x, const void *y)
{
    const struct maq_replica_outage *a = x, *b = y;
    if (a->replica != b->replica)
        return a->replica < b->replica ? -1 : 1;
    return (a->fails_s > b->fails_s) - (a->fails_s < b->fails_s);
}

static int by_time(const void *x, const void *y)
{
    const struct maq_fleet_event *a = x, *b = y;
    if (a->at_s < b->at_s || a->at_s > b->at_s)
        return a->at_s < b->at_s ? -1 : 1;
    if (a->replica != b->replica)
        return a->replica < b->replica ? -1 : 1;
    return (a->kind > b->kind) - (a->kind < b->kind);
}

static bool event(struct maq_outages *out, uint32_t *size, double at_s, uint32_t replica,
                  enum maq_fleet_event_kind kind)
{
    if (!maq__grow((void **)&out->events, size, out->n, sizeof *out->events))
        return false;
    out->events[out->n++] = (struct maq_fleet_event){at_s, replica, kind};
    return true;
}

/* Outages of a replica that overlap are one, which is over when all are. */
static bool add_outages(struct maq_outages *out, uint32_t *size, const struct maq_replica_outages *d)
{
    if (d->n > 0)
        qsort(d->list, d->n, sizeof *d->list, by_replica);
    for (uint32_t i = 0; i < d->n;) {
        struct maq_replica_outage o = d->list[i++];
        for (; i < d->n && d->list[i].replica == o.replica && d->list[i].fails_s <= o.back_s; i++)
            o.back_s = fmax(o.back_s, d->list[i].back_s);
        if (!event(out, size, o.fails_s, o.replica, MAQ_FLEET_FAILS) ||
            !event(out, size, o.known_s, o.replica, MAQ_FLEET_LOST) ||
            !event(out, size, o.back_s, o.replica, MAQ_FLEET_BACK))
            return false;
    }
    return true;
}

/* Replicas of which a schedule says how many are to be there. */
struct pool {
    bool prefill;
    uint32_t first, all; /* engines */
};

static uint32_t wanted_of(const struct maq_replica_count *c, const struct pool *p)
{
    uint32_t wanted = p->prefill ? c->prefill_replicas : c->replicas;
    return wanted < p->all ? wanted : p->all;
}

/* Those that are asked for come when they have started, if they are still wanted then. */
static bool add_counts(struct maq_outages *out, uint32_t *size, const struct maq_outage_spec *spec,
                       const double *load_s, const struct pool *p)
{
    uint32_t there = p->all;
    for (uint32_t i = 0; i < spec->n_counts; i++) {
        const struct maq_replica_count *c = &spec->counts[i];
        uint32_t wanted = wanted_of(c, p);
        for (uint32_t k = there; k < wanted; k++) {
            double comes = c->at_s + (c->at_s > 0 ? spec->start_s + load_s[p->first + k] : 0);
            bool gone = false; /* before it has come */
            for (uint32_t j = i + 1; j < spec->n_counts && spec->counts[j].at_s <= comes; j++)
                gone = gone || wanted_of(&spec->counts[j], p) <= k;
            if (!gone && !event(out, size, comes, p->first + k, MAQ_FLEET_COMES))
                return false;
        }
        for (uint32_t k = wanted; k < there; k++)
            if (!event(out, size, c->at_s, p->first + k, MAQ_FLEET_LEAVES))
                return false;
        there = wanted;
    }
    return true;
}

enum maq_status maq_outages_draw(struct maq_outages *out, const struct maq_fleet *fleet,
                                 const struct maq_outage_spec *spec, struct maq_diag *diag)
{
    struct maq_replica_outages d;
    uint32_t all = 0, prefill = 0, size = 0;
    *out = (struct maq_outages){0};
    for (uint32_t m = 0; m < fleet->n_members; m++) {
        all += fleet->members[m].replicas;
        prefill += fleet->members[m].role == MAQ_ROLE_PREFILL ? fleet->members[m].replicas : 0;
    }
    const struct pool pools[] = {{true, 0, prefill}, {false, prefill, all - prefill}};
    double *load_s = maq__calloc((all ? all : 1u) * sizeof *load_s);
    bool ok = load_s != NULL;
    if (ok)
        maq_fleet_load_times(fleet, load_s);
    ok = maq_fleet_draw_failures(&d, fleet, spec) && ok && add_outages(out, &size, &d) &&
         add_counts(out, &size, spec, load_s, &pools[0]) && add_counts(out, &size, spec, load_s, &pools[1]);
    free(load_s);
    free(d.list);
    if (!ok) {
        maq_outages_free(out);
        return maq_no_memory(diag, "failures");
    }
    if (out->n > 0)
        qsort(out->events, out->n, sizeof *out->events, by_time);
    return MAQ_OK;
}

void maq_outages_free(struct maq_outages *outages)
{
    free(outages->events);
    *outages = (struct maq_outages){0};
}
