/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet.c - replicas in one time.
 *
 * Engines know nothing of each other: between two requests each goes on by itself. Before a request is sent, all have to have done what
 * its router sees of them, which is who has ended. So one that only decodes is left where it is until the first of its requests may
 * end, or one is sent to it; then it does at once what it would have done since. Where clients keep a concurrency, the end of a request
 * sends another, and nobody may go past the next event of anybody else. There, where engines share ways or fail, and where a rule looks at
 * what they hold, none is left behind; nor where a run may be given up, in which what all have done by then is reported.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "serve/codes.h"
#include "serve/engine/run.h"
#include "serve/fleet/encode_pool.h"
#include "serve/fleet/placement.h"
#include "serve/fleet/pools.h"

/* ---- who is next ---- */

static bool before(const struct maq_fleet_run *r, uint32_t a, uint32_t b)
{
    return r->next_s[a] < r->next_s[b] || (a < b && r->next_s[a] <= r->next_s[b]);
}

static void swap(struct maq_fleet_run *r, uint32_t i, uint32_t j)
{
    uint32_t a = r->heap[i], b = r->heap[j];
    r->heap[i] = b;
    r->heap[j] = a;
    r->place[a] = j;
    r->place[b] = i;
}

static void settle(struct maq_fleet_run *r, uint32_t i)
{
    for (uint32_t child; (child = 2 * i + 1) < r->n; i = child) {
        if (child + 1 < r->n && before(r, r->heap[child + 1], r->heap[child]))
            child++;
        if (!before(r, r->heap[child], r->heap[i]))
            return;
        swap(r, i, child);
    }
}

static double next_seen_s(const struct maq_fleet_run *r, uint32_t replica)
{
    struct maq_serve_engine *e = &r->engines[replica];
    double next = maq_engine_next_s(e);
    return r->leaves_behind ? fmax(next, maq_engine_quiet_until_s(e)) : next;
}

/* Does what it has not done yet of what happens before at_s. */
static void catch_up(struct maq_serve_engine *e, double at_s)
{
    while (maq_engine_next_s(e) < at_s && maq_engine_step(e, at_s))
        ;
}

void maq_fleet_settle(struct maq_fleet_run *r)
{
    settle(r, 0);
}

void maq_fleet_brought_forward(struct maq_fleet_run *r, uint32_t replica)
{
    r->next_s[replica] = maq_engine_next_s(&r->engines[replica]);
    for (uint32_t i = r->place[replica]; i > 0 && before(r, r->heap[i], r->heap[(i - 1) / 2]); i = (i - 1) / 2)
        swap(r, i, (i - 1) / 2);
}

void maq_fleet_changed(struct maq_fleet_run *r, uint32_t replica)
{
    maq_fleet_brought_forward(r, replica);
    settle(r, r->place[replica]);
}

/* When anybody but the first would do something. */
static double second_s(const struct maq_fleet_run *r)
{
    double s = (double)INFINITY;
    for (uint32_t i = 1; i < 3 && i < r->n; i++)
        s = fmin(s, r->next_s[r->heap[i]]);
    return s;
}

/* ---- the loop ---- */

/* Replicas are not there all the time. */
static bool changes(const struct maq_fleet *f)
{
    return f->n_events > 0 || f->scaling || f->prefill_scaling;
}

/* The next request is sent; false: out of memory. */
static bool send(struct maq_fleet_run *r)
{
    uint32_t request = maq_clients_send(&r->clients);
    if (maq_encode_send(r, request, r->clients.served[request].arrival_s))
        return !r->encode->failed;
    if (r->held)
        return maq_fleet_route(r, request, r->clients.served[request].arrival_s);
    uint32_t to = maq_routing_choose(&r->routing, request);
    if (r->leaves_behind)
        catch_up(&r->engines[to], r->clients.served[request].arrival_s);
    maq_engine_send(&r->engines[to], request);
    maq_fleet_brought_forward(r, to);
    return !maq_engine_failed(&r->engines[to]) && !r->routing.failed;
}

/* Whether a router does not look at loads. */
static bool is_blind(enum maq_router router)
{
    return router == MAQ_ROUTER_ROUND_ROBIN || router == MAQ_ROUTER_RANDOM || router == MAQ_ROUTER_SESSION;
}

/* One that does not look at loads has decided before anything happens: then no replica has to wait for others. */
static bool send_all(struct maq_fleet_run *r)
{
    bool blind = is_blind(r->fleet->router), ok = true;
    while (ok && blind && !r->held && r->requests->concurrency == 0 &&
           maq_clients_next_s(&r->clients) < (double)INFINITY)
        ok = send(r);
    return ok;
}

/* Whoever waits for a way that others use, too, may have to wait longer now, or less long. */
static void look_at_ways(struct maq_fleet_run *r)
{
    for (uint32_t k = 0; r->ways && k < r->n; k++)
        if (r->engines[k].in_flight == 0 && r->engines[k].asked)
            maq_fleet_changed(r, k);
}

/* Whether no replica has anything to do with another once all requests are sent. */
static bool stand_alone(const struct maq_fleet_run *r)
{
    return is_blind(r->fleet->router) && r->requests->concurrency == 0 && !r->ways && !r->held && !r->encode &&
           r->routing.max_requests == 0 && !r->clients.hope.slo && !changes(r->fleet) &&
           !r->deployments[0].options.one_by_one;
}

/* One replica after the other, each to its end: what it needs stays in the processor's cache. */
static enum maq_status each_alone(struct maq_fleet_run *r)
{
    for (uint32_t k = 0; k < r->n; k++) {
        struct maq_serve_engine *e = &r->engines[k];
        while (maq_clients_go_on(&r->clients) && !maq_engine_failed(e) && maq_engine_step(e, (double)INFINITY))
            ;
        if (maq_engine_failed(e) || r->clients.failed)
            return MAQ_NO_MEMORY;
    }
    return maq_clients_go_on(&r->clients) ? MAQ_LIMIT : MAQ_OK;
}

static enum maq_status loop(struct maq_fleet_run *r)
{
    struct maq_clients *c = &r->clients;
    bool limited = r->routing.max_requests > 0;
    r->leaves_behind =
        c->requests->concurrency == 0 && !r->ways && !r->held && !c->hope.slo && !is_blind(r->fleet->router);
    if (!send_all(r))
        return MAQ_NO_MEMORY;
    if (stand_alone(r))
        return each_alone(r);
    while (maq_clients_go_on(c)) {
        double send_s = maq_clients_next_s(c), event_s = maq_fleet_next_event_s(r), outer_s = fmin(send_s, event_s);
        uint32_t first = r->heap[0];
        struct maq_serve_engine *e = &r->engines[first];
        bool failed = c->failed;
        if (event_s < (double)INFINITY && event_s <= fmin(r->next_s[first], send_s)) {
            MAQ_TRY(maq_fleet_event(r));
        } else if (r->next_s[first] < send_s) {
            double until_s = r->requests->concurrency > 0 || r->ways || limited ? fmin(outer_s, second_s(r)) : outer_s;
            if (until_s <= r->next_s[first]) /* two at the same time: one after the other */
                until_s = nextafter(r->next_s[first], (double)INFINITY);
            maq_engine_step(e, until_s);
            r->next_s[first] = next_seen_s(r, first);
            failed |= maq_engine_failed(e);
            settle(r, 0);
            look_at_ways(r);
            failed |= limited && !maq_fleet_admit(r, e->now_s);
        } else if (send_s < (double)INFINITY) {
            failed |= !send(r);
        } else {
            return MAQ_LIMIT; /* those that wait do so for ever */
        }
        if (failed)
            return MAQ_NO_MEMORY;
    }
    return MAQ_OK;
}

/* ---- what came of it ---- */

static bool fill_members(const struct maq_fleet_run *r, struct maq_serve_result *out)
{
    out->members = maq__calloc(r->fleet->n_members * sizeof *out->members);
    out->n_members = out->members ? r->fleet->n_members : 0;
    for (uint32_t m = 0; m < out->n_members; m++) {
        const struct maq_deployment *d = &r->deployments[m];
        out->members[m] = (struct maq_served_member){.job = d->job,
                                                     .options = d->options,
                                                     .replicas = r->fleet->members[m].replicas,
                                                     .devices = maq_deployment_devices(d),
                                                     .kv_tokens = d->kv_tokens};
    }
    return out->members != NULL;
}

/* They are the result's from here on. */
static void take_counts(struct maq_replica_count **counts, uint32_t *n, struct maq_autoscaling *s)
{
    *counts = s->changes;
    *n = s->n_changes;
    s->changes = NULL;
}

static enum maq_status fill(struct maq_fleet_run *r, struct maq_serve_result *out)
{
    struct maq_served_replica *list = maq__calloc(r->n * sizeof *list);
    double *prompts = maq__calloc(r->n * sizeof *prompts);
    out->replicas = list;
    if (!list || !prompts || !fill_members(r, out)) {
        free(prompts);
        return MAQ_NO_MEMORY;
    }
    maq_clients_fill(&r->clients, out);
    out->n_replicas = r->n;
    out->router = maq_router_name(r->fleet->router);
    out->n_devices = 0;
    for (uint32_t i = 0; i < r->requests->n; i++) {
        if (out->served[i].refused)
            continue;
        struct maq_served_replica *to = &list[out->served[i].replica];
        to->requests++;
        to->output_tokens += (double)r->requests->at[i].output;
        to->prefix_hit_rate += (double)out->served[i].cached;
        prompts[out->served[i].replica] += (double)r->requests->at[i].prompt;
    }
    if (r->pools)
        maq_pools_count(r, list, prompts);
    for (uint32_t k = 0; k < r->n; k++) {
        const struct maq_serve_engine *e = &r->engines[k];
        list[k].member = r->member_of[k];
        list[k].role = (enum maq_role)e->role;
        list[k].busy_share = out->duration_s > 0 ? e->times.s[MAQ_STAGE_ALL] / out->duration_s : 0;
        list[k].kv_peak = e->kv_peak;
        list[k].kv_mean = e->now_s > 0 ? e->kv_area_s / e->now_s : 0;
        list[k].prefix_hit_rate /= prompts[k] > 0 ? prompts[k] : 1;
        out->n_devices += maq_deployment_devices(e->d);
    }
    free(prompts);
    maq_fleet_count_availability(r, r->clients.last_s);
    out->availability = r->seen;
    out->availability.replicas /= out->duration_s > 0 ? out->duration_s : 1;
    out->availability.prefill_replicas /= out->duration_s > 0 ? out->duration_s : 1;
    out->availability.usd_per_hour /= out->duration_s > 0 ? out->duration_s : 1;
    out->availability.gpus /= out->duration_s > 0 ? out->duration_s : 1;
    maq_fleet_fill_admission(r, out);
    take_counts(&out->availability.counts, &out->availability.n_counts, &r->scaling[MAQ_SCALED_DECODE]);
    take_counts(&out->availability.prefill_counts, &out->availability.n_prefill_counts,
                &r->scaling[MAQ_SCALED_PREFILL]);
    if (r->pools)
        return maq_pools_fill(r, out);
    maq_engine_fill(r->engines, r->n, out);
    return MAQ_OK;
}

/* ---- begin and end ---- */

/* `before`: GPUs of its cluster that members before it have. */
static enum maq_status check_devices(const struct maq_fleet_member *m, const struct maq_deployment *d, uint64_t before,
                                     struct maq_diag *diag)
{
    uint64_t each = maq_deployment_devices(d), all = each * m->replicas;
    if (before + all <= m->job->cluster.devices)
        return MAQ_OK;
    if (before > 0)
        return maq_diag_fail(
            MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_RANKS, (struct maq_span){0}, "a larger cluster, or one for each member",
            "%u replicas of %llu GPUs each stand behind %llu GPUs of other members, and the cluster "
            "has %u",
            m->replicas, (unsigned long long)each, (unsigned long long)before, m->job->cluster.devices);
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_RANKS, (struct maq_span){0},
                         "a larger --cluster, or fewer --replicas",
                         "%u replicas of %llu GPUs each have %llu, the cluster %u", m->replicas,
                         (unsigned long long)each, (unsigned long long)all, m->job->cluster.devices);
}

/* Replicas that are spread do not straddle nodes: fewer may have room than the GPUs are enough for. */
static enum maq_status check_spread(const struct maq_fleet_run *r, struct maq_diag *diag)
{
    const struct maq_cluster *small = NULL;
    uint64_t needed = 0;
    if (r->fleet->placement != MAQ_PLACEMENT_SPREAD)
        return MAQ_OK;
    struct maq_replica_placement *places = maq__calloc(r->n * sizeof *places);
    enum maq_status status = places ? maq_fleet_place(r->fleet, places, &small, &needed) : MAQ_NO_MEMORY;
    free(places);
    if (status != MAQ_OK || !small)
        return status;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_RANKS, (struct maq_span){0},
                         "--placement pack, a larger --cluster, or fewer --replicas",
                         "replicas that are spread need %llu GPUs, whole nodes of some, the cluster has %u",
                         (unsigned long long)needed, small->devices);
}

/* A pool has chunks of one size, and what members keep in it is of one model: those of one job. */
static enum maq_status check_tiers(const struct maq_fleet_run *r, bool roles, struct maq_diag *diag)
{
    const struct maq_deployment *first = &r->deployments[0];
    for (uint32_t m = 0; m < r->fleet->n_members; m++) {
        const struct maq_deployment *d = &r->deployments[m];
        MAQ_TRY(maq_deployment_check_host(d, r->fleet->members[m].replicas, diag));
        if (r->fleet->placement == MAQ_PLACEMENT_SPREAD && d->tiers.any)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_TIERS, (struct maq_span){0}, "--placement pack",
                                 "tiers behind the caches of replicas that are spread over nodes are not modelled");
        if (roles && d->tiers.any)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_TIERS, (struct maq_span){0}, "without pools",
                                 "tiers behind the caches of prefill and decode pools are not modelled");
        if (d->tiers.chunks[MAQ_TIER_REMOTE] > 0 &&
            (d->tiers.chunks[MAQ_TIER_REMOTE] != first->tiers.chunks[MAQ_TIER_REMOTE] ||
             d->tiers.chunk_bytes != first->tiers.chunk_bytes))
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_TIERS, (struct maq_span){0}, NULL,
                                 "replicas that share a pool cut keys and values alike: chunks of %.0f and of %.0f "
                                 "bytes",
                                 first->tiers.chunk_bytes, d->tiers.chunk_bytes);
    }
    return MAQ_OK;
}

static enum maq_status check_admission(const struct maq_fleet_run *r, bool roles, struct maq_diag *diag)
{
    const struct maq_admission *a = &r->fleet->admission;
    const char *what =
        a->bounded && a->max_requests == 0 ? "requests that wait at the router are limited, and replicas take all"
        : a->max_requests > 0 && roles
            ? "a limit on the requests of a replica of prefill and decode pools is not modelled"
        : a->bounded && r->requests->concurrency > 0
            ? "requests that a router refuses, and a concurrency that is kept: the next one would be sent at once"
            : NULL;
    if (!what)
        return MAQ_OK;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_ADMISSION, (struct maq_span){0},
                         "replicas that do both, a limit on them, requests that come over a time", "%s", what);
}

/* What is reported is the first member, of those that decode where there are such, or one that does not fit. */
static enum maq_status begin_deployments(struct maq_fleet_run *r, struct maq_serve_result *out, struct maq_diag *diag)
{
    const struct maq_fleet *f = r->fleet;
    bool roles = maq_fleet_has_roles(f), shown = false;
    uint64_t before = 0;
    r->deployments = maq__calloc(f->n_members * sizeof *r->deployments);
    if (!r->deployments)
        return MAQ_NO_MEMORY;
    for (uint32_t m = 0; m < f->n_members; m++) {
        struct maq_deployment *d = &r->deployments[m];
        r->n_deployments = m + 1;
        MAQ_TRY(maq_deployment_init(d, f->members[m].job, f->members[m].options, diag));
        MAQ_TRY(maq_afd_check_replica(d, f->members[m].role, diag));
        before = f->members[m].shares_cluster ? before : 0;
        if (!roles)
            MAQ_TRY(check_devices(&f->members[m], d, before, diag));
        before += (uint64_t)maq_deployment_devices(d) * f->members[m].replicas;
        r->n += f->members[m].replicas;
        bool first = !shown && f->members[m].role != MAQ_ROLE_PREFILL;
        shown |= first;
        if (first || !d->fits)
            maq_deployment_fill(out, d);
        if (!d->fits)
            return MAQ_OK;
    }
    MAQ_TRY(check_spread(r, diag));
    MAQ_TRY(check_admission(r, roles, diag));
    if (!roles && f->prefill_scaling)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SERVE_POOLS, (struct maq_span){0}, "pools",
                             "a rule for the replicas that compute prompts for others: none do");
    MAQ_TRY(maq_encode_check(r, diag));
    MAQ_TRY(check_tiers(r, roles, diag));
    if (roles)
        MAQ_TRY(maq_pools_check(r, diag));
    for (uint32_t m = 0; m < f->n_members; m++)
        MAQ_TRY(maq_deployment_check(&r->deployments[m], r->requests, f->members[m].role, diag));
    return MAQ_OK;
}

/* Drives, and the pool: nodes are filled one after another. */
static bool begin_ways(struct maq_fleet_run *r)
{
    const struct maq_deployment *d = &r->deployments[0];
    uint32_t devices = 0, each = d->tiers.devices_per_node > 0 ? d->tiers.devices_per_node : 1;
    bool needed = false;
    for (uint32_t m = 0; m < r->fleet->n_members; m++) {
        needed |= maq_tier_ways_needed(&r->deployments[m]);
        devices += maq_deployment_devices(&r->deployments[m]) * r->fleet->members[m].replicas;
    }
    if (!needed)
        return true;
    r->ways = maq__calloc(sizeof *r->ways);
    return r->ways && maq_tier_ways_init(r->ways, d, (devices + each - 1) / each, r->n);
}

/* The replicas of a role, behind those that are begun. */
static enum maq_status begin_role(struct maq_fleet_run *r, enum maq_role role)
{
    uint32_t first_device = 0;
    for (uint32_t m = 0; m < r->fleet->n_members; m++)
        for (uint32_t i = 0; i < r->fleet->members[m].replicas && r->fleet->members[m].role == role; i++) {
            uint32_t k = r->n_engines++;
            MAQ_TRY(maq_engine_init(&r->engines[k], &r->deployments[m], &r->clients, role));
            r->engines[k].replica = k;
            MAQ_TRY(maq_tiers_begin(&r->engines[k], r->ways, first_device));
            first_device += maq_deployment_devices(&r->deployments[m]);
            r->engines[k].weight = r->fleet->members[m].weight > 0 ? r->fleet->members[m].weight : 1;
            r->engines[k].asked = true; /* there is nothing to do before a request is sent */
            r->member_of[k] = m;
            r->next_s[k] = maq_engine_next_s(&r->engines[k]);
            r->heap[k] = r->place[k] = k;
        }
    return MAQ_OK;
}

static enum maq_status begin_engines(struct maq_fleet_run *r, struct maq_serve_result *out, struct maq_diag *diag)
{
    out->served = maq__calloc((r->requests->n ? r->requests->n : 1u) * sizeof *out->served);
    r->engines = maq__calloc(r->n * sizeof *r->engines);
    r->member_of = maq__calloc(r->n * sizeof *r->member_of);
    r->next_s = maq__calloc(r->n * sizeof *r->next_s);
    r->heap = maq__calloc(r->n * sizeof *r->heap);
    r->place = maq__calloc(r->n * sizeof *r->place);
    if (!out->served || !r->engines || !r->member_of || !r->next_s || !r->heap || !r->place ||
        !maq_clients_init(&r->clients, r->requests, out->served))
        return MAQ_NO_MEMORY;
    r->clients.stop = r->fleet->members[0].options->stop;
    if (!begin_ways(r))
        return MAQ_NO_MEMORY;
    MAQ_TRY(begin_role(r, MAQ_ROLE_BOTH));
    MAQ_TRY(begin_role(r, MAQ_ROLE_PREFILL));
    uint32_t first =
        r->n_engines < r->n ? r->n_engines : 0; /* that a request is routed to when its tokens are asked for */
    MAQ_TRY(begin_role(r, MAQ_ROLE_DECODE));
    r->clients.servers = r->n - first;
    if (!maq_routing_init(&r->routing, r->fleet->router, maq_rng_of(r->fleet->seed, MAQ_RNG_ROUTER, 0),
                          r->engines + first, r->n - first, r->requests))
        return MAQ_NO_MEMORY;
    if (first > 0)
        MAQ_TRY(maq_pools_begin(r, first, diag));
    MAQ_TRY(maq_encode_begin(r));
    MAQ_TRY(maq_fleet_begin_queue(r));
    return maq_fleet_begin_events(r);
}

static void end(struct maq_fleet_run *r)
{
    for (uint32_t i = 0; i < r->n_engines; i++)
        maq_engine_fini(&r->engines[i]);
    if (r->ways)
        maq_tier_ways_fini(r->ways);
    free(r->ways);
    for (uint32_t m = 0; m < r->n_deployments; m++)
        maq_deployment_fini(&r->deployments[m]);
    maq_clients_fini(&r->clients);
    maq_routing_fini(&r->routing);
    maq_pools_end(r->pools);
    maq_encode_end(r->encode);
    maq_fleet_end_events(r);
    free(r->held);
    free(r->has_waited);
    free(r->engines);
    free(r->member_of);
    free(r->deployments);
    free(r->next_s);
    free(r->heap);
    free(r->place);
}

enum maq_status maq_fleet_run(struct maq_serve_result **out, const struct maq_fleet *fleet,
                              const struct maq_requests *requests, struct maq_diag *diag)
{
    if (fleet->n_members == 1 && fleet->members[0].replicas == 1 && !maq_fleet_has_roles(fleet) && !changes(fleet) &&
        fleet->admission.max_requests == 0 && fleet->encode_replicas == 0)
        return maq_serve_run(out, fleet->members[0].job, fleet->members[0].options, requests, diag);
    struct maq_fleet_run r = {.fleet = fleet, .requests = requests};
    struct maq_serve_result *result = maq__calloc(sizeof *result);
    enum maq_status status = result ? begin_deployments(&r, result, diag) : MAQ_NO_MEMORY;
    if (status == MAQ_OK && result->fits) {
        status = begin_engines(&r, result, diag);
        if (status == MAQ_OK)
            status = r.pools ? maq_pools_loop(&r) : loop(&r);
        if (status == MAQ_LIMIT)
            status = maq_engine_starved(r.engines, r.n_engines, diag);
        if (status == MAQ_OK && maq_clients_stopped(&r.clients))
            status =
                maq_diag_fail(MAQ_NO, diag, MAQ_CODE_SERVE_STOPPED, (struct maq_span){0}, NULL, MAQ_SERVE_STOPPED_TEXT);
        if (status == MAQ_OK)
            status = fill(&r, result);
        if (status == MAQ_OK)
            maq_encode_fill(&r, result);
    }
    end(&r);
    if (status == MAQ_NO_MEMORY)
        status = maq_no_memory(diag, "a fleet");
    if (status != MAQ_OK) {
        maq_serve_free(result);
        return status;
    }
    *out = result;
    return MAQ_OK;
}
