/* SPDX-License-Identifier: Apache-2.0 */
/*
 * outages.c - outages of nodes are drawn in the order in which they begin, since spare nodes go to whom needs one first; those of a replica
 * that overlap are one.
 */
#include "maquette/fleet_outages.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/stat/rng.h"
#include "base/stat/special_functions.h"

struct outage {
    uint32_t replica;
    double fails_s, known_s, back_s;
};

/* The nodes that a member stands on. */
struct nodes {
    uint32_t first_replica, replicas, devices_each, per_node, n;
    double *next_s; /* [n] when each fails next */
    struct maq_rng *when, *what;
    double *ready_s; /* [n_ready] spare nodes, and those in repair: when each can be taken */
    uint32_t n_ready, ready_size;
};

struct drawing {
    const struct maq_outage_spec *spec;
    double rate; /* of a device, per second, of this fleet */
    struct outage *list;
    uint32_t n, size;
};

static double delay(const struct maq_delay *d, struct maq_rng *rng)
{
    double u = maq_rng_next(rng);
    if (!(d->median_s > 0))
        return 0;
    double sigma = d->mean_s > d->median_s ? sqrt(2 * log(d->mean_s / d->median_s)) : 0;
    return d->median_s * exp(sigma * maq_normal_quantile(u));
}

/* ---- a node ---- */

static const struct maq_failure_cause *cause_of(const struct maq_failures *f, double u)
{
    uint32_t i = 0;
    for (double sum = 0; i + 1 < f->n_causes; i++) {
        sum += f->causes[i].share;
        if (u < sum)
            break;
    }
    return f->n_causes > 0 ? &f->causes[i] : NULL;
}

/* The node that is ready first is taken, and the one that is lost comes behind it. When it is there; INFINITY: out of memory. */
static double take_node(struct nodes *at, double asked_s, double repaired_s)
{
    uint32_t first = 0;
    if (!maq__grow((void **)&at->ready_s, &at->ready_size, at->n_ready, sizeof *at->ready_s))
        return (double)INFINITY;
    at->ready_s[at->n_ready++] = repaired_s;
    for (uint32_t i = 1; i < at->n_ready; i++)
        first = at->ready_s[i] < at->ready_s[first] ? i : first;
    double ready = at->ready_s[first];
    at->ready_s[first] = at->ready_s[--at->n_ready];
    return fmax(asked_s, ready);
}

static bool add(struct drawing *d, uint32_t replica, double fails_s, double known_s, double back_s)
{
    if (!maq__grow((void **)&d->list, &d->size, d->n, sizeof *d->list))
        return false;
    d->list[d->n++] = (struct outage){replica, fails_s, known_s, back_s};
    return true;
}

/* Replicas [*first, *last] have a device on a node. */
static void on_node(const struct nodes *at, uint32_t node, uint32_t *first, uint32_t *last)
{
    uint64_t from = (uint64_t)node * at->per_node, to = from + at->per_node - 1;
    *first = (uint32_t)(from / at->devices_each);
    *last = (uint32_t)(to / at->devices_each);
    *last = *last < at->replicas ? *last : at->replicas - 1;
}

/* One failure of a node; its next one is drawn. False: out of memory. */
static bool fail(struct drawing *d, struct nodes *at, uint32_t node)
{
    const struct maq_failures *f = d->spec->failures;
    struct maq_rng *rng = &at->what[node];
    double fails = at->next_s[node], u = maq_rng_next(rng), which = maq_rng_next(rng);
    const struct maq_failure_cause *cause = cause_of(f, u);
    bool loses = !cause || cause->loses_node;
    double known = fails + delay(cause && cause->own_detection ? &cause->detection : &f->detection, rng),
           repair = delay(cause && cause->own_repair ? &cause->repair : &f->repair, rng),
           requeue = delay(&f->requeue, rng);
    double there = loses ? take_node(at, known + requeue, known + repair) : known, back = there + d->spec->start_s;
    uint32_t first, last;
    on_node(at, node, &first, &last);
    if (!loses)
        first = last = first + (uint32_t)(which * (last - first + 1));
    for (uint32_t k = first; k <= last && isfinite(back); k++)
        if (!add(d, at->first_replica + k, fails, known, back))
            return false;
    at->next_s[node] = back - log(maq_rng_next(&at->when[node])) / (d->rate * at->per_node);
    return isfinite(back) != 0;
}

/* ---- a member ---- */

static bool draw_member(struct drawing *d, struct nodes *at, uint32_t number)
{
    at->next_s = maq__calloc(at->n * sizeof *at->next_s);
    at->when = maq__calloc(at->n * sizeof *at->when);
    at->what = maq__calloc(at->n * sizeof *at->what);
    bool ok = at->next_s && at->when && at->what;
    for (uint32_t i = 0; ok && i < d->spec->spare_nodes; i++) {
        ok = maq__grow((void **)&at->ready_s, &at->ready_size, at->n_ready, sizeof *at->ready_s);
        if (ok)
            at->ready_s[at->n_ready++] = 0;
    }
    for (uint32_t i = 0; ok && i < at->n; i++) {
        at->when[i] = maq_rng_of(d->spec->seed, MAQ_RNG_FAILURE, number << 20 | i);
        at->what[i] = maq_rng_of(d->spec->seed, MAQ_RNG_REPAIR, number << 20 | i);
        at->next_s[i] = -log(maq_rng_next(&at->when[i])) / (d->rate * at->per_node);
    }
    while (ok) {
        uint32_t next = 0;
        for (uint32_t i = 1; i < at->n; i++)
            next = at->next_s[i] < at->next_s[next] ? i : next;
        if (!(at->next_s[next] < d->spec->span_s))
            break;
        ok = fail(d, at, next);
    }
    free(at->next_s);
    free(at->when);
    free(at->what);
    free(at->ready_s);
    return ok;
}

static bool draw_failures(struct drawing *d, const struct maq_fleet *fleet)
{
    const struct maq_failures *f = d->spec->failures;
    uint32_t before = 0;
    if (!f || !(f->rate > 0))
        return true;
    d->rate = f->rate;
    if (f->spread > 0)
        d->rate *= exp(f->spread * maq_normal_quantile(maq_rng_at(d->spec->seed, MAQ_RNG_STATIC, 0, 0)));
    for (uint32_t m = 0; m < fleet->n_members; m++) {
        const struct maq_fleet_member *member = &fleet->members[m];
        const struct maq_plan *plan = &member->job->plan;
        int32_t dp = member->options->dp > 1 ? member->options->dp : 1;
        struct nodes at = {.first_replica = before,
                           .replicas = member->replicas,
                           .devices_each = (uint32_t)(plan->tp * plan->pp * dp),
                           .per_node = member->job->cluster.groups[0].devices_per_node};
        at.per_node = at.per_node > 0 ? at.per_node : 1;
        at.n = (uint32_t)(((uint64_t)at.replicas * at.devices_each + at.per_node - 1) / at.per_node);
        if (!draw_member(d, &at, m))
            return false;
        before += member->replicas;
    }
    return true;
}

/* ---- events ---- */

static int by_replica(const void *x, const void *y)
{
    const struct outage *a = x, *b = y;
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
static bool add_outages(struct maq_outages *out, uint32_t *size, struct drawing *d)
{
    if (d->n > 0)
        qsort(d->list, d->n, sizeof *d->list, by_replica);
    for (uint32_t i = 0; i < d->n;) {
        struct outage o = d->list[i++];
        for (; i < d->n && d->list[i].replica == o.replica && d->list[i].fails_s <= o.back_s; i++)
            o.back_s = fmax(o.back_s, d->list[i].back_s);
        if (!event(out, size, o.fails_s, o.replica, MAQ_FLEET_FAILS) ||
            !event(out, size, o.known_s, o.replica, MAQ_FLEET_LOST) ||
            !event(out, size, o.back_s, o.replica, MAQ_FLEET_BACK))
            return false;
    }
    return true;
}

/* Those that are asked for come when they have started, if they are still wanted then. */
static bool add_counts(struct maq_outages *out, uint32_t *size, const struct maq_outage_spec *spec, uint32_t all)
{
    uint32_t there = all;
    for (uint32_t i = 0; i < spec->n_counts; i++) {
        const struct maq_replica_count *c = &spec->counts[i];
        uint32_t wanted = c->replicas < all ? c->replicas : all;
        double comes = c->at_s + (c->at_s > 0 ? spec->start_s : 0);
        for (uint32_t k = there; k < wanted; k++) {
            bool gone = false; /* before it has come */
            for (uint32_t j = i + 1; j < spec->n_counts && spec->counts[j].at_s <= comes; j++)
                gone = gone || spec->counts[j].replicas <= k;
            if (!gone && !event(out, size, comes, k, MAQ_FLEET_COMES))
                return false;
        }
        for (uint32_t k = wanted; k < there; k++)
            if (!event(out, size, c->at_s, k, MAQ_FLEET_LEAVES))
                return false;
        there = wanted;
    }
    return true;
}

enum maq_status maq_outages_draw(struct maq_outages *out, const struct maq_fleet *fleet,
                                 const struct maq_outage_spec *spec, struct maq_diag *diag)
{
    struct drawing d = {.spec = spec};
    uint32_t all = 0, size = 0;
    *out = (struct maq_outages){0};
    for (uint32_t m = 0; m < fleet->n_members; m++)
        all += fleet->members[m].replicas;
    bool ok = draw_failures(&d, fleet) && add_outages(out, &size, &d) && add_counts(out, &size, spec, all);
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
