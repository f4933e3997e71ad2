/* SPDX-License-Identifier: Apache-2.0 */
/*
 * availability.c - replicas that come, leave and fail while the fleet serves.
 *
 * A replica takes requests while it is wanted and has not failed. One that is not wanted ends what it has; of one that has failed all is
 * lost when its router knows of it, and sent again. What nobody takes waits at the router. Who is wanted a list of events says, or a rule
 * that looks at the load (autoscaling_run.c).
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "serve/fleet/encode_pool.h"
#include "serve/fleet/pools.h"

static double next_listed_s(const struct maq_fleet_run *r)
{
    return r->next_event < r->fleet->n_events ? r->fleet->events[r->next_event].at_s : (double)INFINITY;
}

double maq_fleet_next_event_s(const struct maq_fleet_run *r)
{
    double listed = fmin(next_listed_s(r), r->pools ? r->pools->next_lease_s : (double)INFINITY);
    listed = fmin(listed, r->encode ? r->encode->next_s : (double)INFINITY);
    return r->comes_s ? fmin(listed, maq_fleet_next_scaling_s(r, next_listed_s(r))) : listed;
}

bool maq_fleet_route(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    if (r->pools)
        return maq_pools_route(r, request, at_s);
    if (r->n_held > 0 || !maq_routing_takes(&r->routing)) {
        maq_fleet_hold(r, request, at_s);
        return true;
    }
    return maq_fleet_send(r, request, at_s);
}

bool maq_fleet_send(struct maq_fleet_run *r, uint32_t request, double at_s)
{
    uint32_t to = maq_routing_choose(&r->routing, request);
    struct maq_serve_engine *e = &r->engines[to];
    r->clients.served[request].replica = to;
    maq_engine_send_at(e, request, at_s, at_s);
    maq_fleet_brought_forward(r, to);
    return !e->failed && !r->routing.failed;
}

/* ---- what is counted ---- */

static double usd_per_hour_of(const struct maq_fleet_run *r, uint32_t replica)
{
    return r->engines[replica].d->job->cluster.groups[0].device.usd_per_hour;
}

static bool all_have_prices(const struct maq_fleet_run *r)
{
    for (uint32_t k = 0; k < r->n; k++)
        if (!(usd_per_hour_of(r, k) > 0))
            return false;
    return true;
}

static double gpus_of(const struct maq_fleet_run *r, uint32_t replica)
{
    return maq_deployment_devices(r->engines[replica].d);
}

/* A request may be of a replica that computes prompts before it is sent there, and after its prompt is computed. */
static bool has_nothing(const struct maq_fleet_run *r, uint32_t replica)
{
    const struct maq_serve_engine *e = &r->engines[replica];
    bool kept =
        r->pools && replica < r->pools->n_prefill && (r->pools->kept[replica] > 0 || e->notices_first < e->notices_end);
    return e->outstanding == 0 && !kept;
}

/* None takes requests, of one of the pools where there are two. */
static bool has_nobody(const struct maq_fleet_run *r)
{
    uint32_t prefill = r->pools ? r->pools->n_prefill : 0, decode_away = r->n_away - r->n_prefill_away;
    return decode_away == r->n - prefill || (prefill > 0 && r->n_prefill_away == prefill);
}

void maq_fleet_count_availability(struct maq_fleet_run *r, double until_s)
{
    double time = until_s - r->since_s;
    if (!r->away || time <= 0)
        return;
    bool priced = all_have_prices(r);
    for (uint32_t k = 0; k < r->n; k++) {
        const struct maq_serve_engine *e = &r->engines[k];
        bool ended = r->unwanted[k] && has_nothing(r, k);
        double gpus = (ended ? fmax(0, e->now_s - r->since_s) : time) * gpus_of(r, k);
        r->seen.gpus += gpus;
        r->seen.usd_per_hour += priced ? gpus * usd_per_hour_of(r, k) : 0;
    }
    r->seen.replicas += time * (r->n - r->n_away);
    r->seen.prefill_replicas += r->pools ? time * (r->pools->n_prefill - r->n_prefill_away) : 0;
    r->seen.nobody_s += has_nobody(r) ? time : 0;
    r->since_s = until_s;
}

/* ---- what happens ---- */

void maq_fleet_settle_state(struct maq_fleet_run *r, uint32_t k)
{
    bool away = r->unwanted[k] || r->failed[k];
    r->n_away += away - r->away[k];
    r->n_prefill_away += r->pools && k < r->pools->n_prefill ? away - r->away[k] : 0;
    r->away[k] = away;
}

static enum maq_status empty(struct maq_fleet_run *r, uint32_t k, double at_s)
{
    uint32_t prefill = r->pools ? r->pools->n_prefill : 0;
    MAQ_TRY(maq_engine_restart(&r->engines[k], at_s));
    if (k < prefill)
        maq_routing_forget(&r->pools->prefill, k);
    else
        maq_routing_forget(&r->routing, k - prefill);
    return MAQ_OK;
}

/* Those that were sent there go to others, in the order in which they came first. */
static enum maq_status send_again(struct maq_fleet_run *r, uint32_t k, double at_s)
{
    struct maq_clients *c = &r->clients;
    if (r->pools)
        return maq_pools_lost(r, k, at_s) ? MAQ_OK : MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < c->sent; i++) {
        if (r->ended[i] || c->served[i].replica != k)
            continue;
        bool waits = maq_encode_has(r, i); /* it never was there: its images are encoded, or it is at the router */
        for (uint32_t h = 0; h < r->n_held && !waits; h++)
            waits = maq_fleet_held(r, h) == i;
        if (waits)
            continue;
        r->seen.retried += c->served[i].retries == 0;
        maq_clients_retry(c, i, at_s);
        if (!maq_fleet_route(r, i, at_s))
            return MAQ_NO_MEMORY;
    }
    return MAQ_OK;
}

/* Those that wait at the router: of pools each may wait again, for the other one. */
static enum maq_status send_held(struct maq_fleet_run *r, double at_s)
{
    if (!r->pools)
        return maq_fleet_admit(r, at_s) ? MAQ_OK : MAQ_NO_MEMORY;
    for (uint32_t n = r->n_held; n > 0; n--)
        if (!maq_fleet_route(r, maq_fleet_take_held(r).request, at_s))
            return MAQ_NO_MEMORY;
    return MAQ_OK;
}

enum maq_status maq_fleet_apply(struct maq_fleet_run *r, const struct maq_fleet_event *event)
{
    uint32_t k = event->replica;
    struct maq_serve_engine *e = &r->engines[k];
    bool was_away = r->away[k];
    enum maq_status status = MAQ_OK;
    switch (event->kind) {
    case MAQ_FLEET_COMES:
    case MAQ_FLEET_LEAVES:
        r->unwanted[k] = event->kind == MAQ_FLEET_LEAVES;
        break;
    case MAQ_FLEET_FAILS: /* its router sends there until it knows */
        if (e->stopped || (r->unwanted[k] && has_nothing(r, k)))
            return MAQ_OK;
        e->stopped = true;
        r->seen.failures++;
        if (r->pools)
            maq_pools_failed(r, k, event->at_s);
        maq_fleet_changed(r, k);
        return MAQ_OK;
    case MAQ_FLEET_LOST:
        if (!e->stopped)
            return MAQ_OK;
        r->failed[k] = true;
        maq_fleet_settle_state(r, k);
        status = empty(r, k, event->at_s);
        e->stopped = true;
        maq_fleet_changed(r, k);
        status = status == MAQ_OK ? send_again(r, k, event->at_s) : status;
        return status == MAQ_OK && r->pools ? send_held(r, event->at_s) : status; /* prompts that waited are lost */
    case MAQ_FLEET_BACK:
        if (!r->failed[k])
            return MAQ_OK;
        r->failed[k] = false;
        e->stopped = false;
        break;
    case MAQ_FLEET_EVENT_COUNT:
        MAQ_ASSERT(false);
    }
    maq_fleet_settle_state(r, k);
    if (was_away && !r->away[k] && has_nothing(r, k))
        status = empty(r, k, event->at_s);
    maq_fleet_changed(r, k);
    return status == MAQ_OK ? send_held(r, event->at_s) : status;
}

/* ---- whatever is next ---- */

enum maq_status maq_fleet_event(struct maq_fleet_run *r)
{
    double at_s = maq_fleet_next_event_s(r);
    maq_fleet_count_availability(r, at_s);
    if (next_listed_s(r) <= at_s)
        return maq_fleet_apply(r, &r->fleet->events[r->next_event++]);
    if (r->pools && r->pools->next_lease_s <= at_s)
        return maq_pools_end_lease(r) ? MAQ_OK : MAQ_NO_MEMORY;
    if (r->encode && r->encode->next_s <= at_s)
        return maq_encode_step(r) ? MAQ_OK : MAQ_NO_MEMORY;
    return maq_fleet_scale(r);
}

/* ---- begin and end ---- */

enum maq_status maq_fleet_begin_events(struct maq_fleet_run *r)
{
    uint32_t n = r->requests->n ? r->requests->n : 1;
    bool scaled = r->fleet->scaling || r->fleet->prefill_scaling;
    if (r->fleet->n_events == 0 && !scaled)
        return MAQ_OK;
    r->unwanted = maq__calloc(r->n * sizeof *r->unwanted);
    r->failed = maq__calloc(r->n * sizeof *r->failed);
    r->away = maq__calloc(r->n * sizeof *r->away);
    r->ended = maq__calloc(n * sizeof *r->ended);
    if (!r->unwanted || !r->failed || !r->away || !r->ended)
        return MAQ_NO_MEMORY;
    r->clients.ended = r->ended;
    r->routing.away = r->away + (r->pools ? r->pools->n_prefill : 0);
    if (r->pools)
        r->pools->prefill.away = r->away;
    r->since_s = r->clients.first_s;
    if (scaled)
        MAQ_TRY(maq_fleet_begin_scaling(r));
    while (maq_fleet_next_event_s(r) <= r->clients.first_s)
        MAQ_TRY(maq_fleet_event(r));
    r->seen = (struct maq_serve_availability){.known = true};
    return MAQ_OK;
}

void maq_fleet_end_events(struct maq_fleet_run *r)
{
    free(r->unwanted);
    free(r->failed);
    free(r->away);
    free(r->ended);
    free(r->comes_s);
    for (int i = 0; i < MAQ_SCALED_COUNT; i++)
        maq_autoscaling_fini(&r->scaling[i]);
}
