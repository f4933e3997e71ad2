/* SPDX-License-Identifier: Apache-2.0 */
/* node_failures.c - failures of a cluster's nodes in the order in which they begin, since spare nodes go to whom needs one first. */
#include "risk/fleet/node_failures.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/stat/special_functions.h"
#include "risk/run/failure_clock.h"
#include "serve/fleet/placement.h"

#define NS 1e9

struct node {
    struct maq_run_clock clock;
    struct maq_rng when, what;
    double away_until_s;
    bool lemon;
};

/* A node that nobody has: spare, or in repair. */
struct idle_node {
    double ready_s;
    bool lemon;
};

/* A cluster, as far as replicas stand on it. */
struct site {
    uint32_t id, per_node, n;
    struct maq_run_model model; /* of one of its nodes */
    struct node *nodes;         /* [n] */
    struct idle_node *idle;     /* [n_idle] */
    uint32_t n_idle, idle_size;
};

struct drawing {
    const struct maq_outage_spec *spec;
    const struct maq_replica_placement *stands; /* [n] of replicas */
    uint32_t n;
    bool *needs_network;     /* [n] */
    double *back_s, *load_s; /* [n] until when each is out; what its weights take when it starts */
    struct maq_replica_outages *out;
};

/* What one failure is, beside its node. */
struct blow {
    const struct maq_failure_cause *cause; /* NULL: the node is lost to something */
    double fails_s, known_s, which;
    struct maq_rng *rng;
};

static double delay(const struct maq_delay *d, struct maq_rng *rng)
{
    double u = maq_rng_next(rng);
    if (!(d->median_s > 0))
        return 0;
    double sigma = d->mean_s > d->median_s ? sqrt(2 * log(d->mean_s / d->median_s)) : 0;
    return d->median_s * exp(sigma * maq_normal_quantile(u));
}

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

/* ---- who is out ---- */

static bool is_on(const struct drawing *d, const struct site *at, uint32_t k, uint64_t first, uint64_t last)
{
    const struct maq_replica_placement *s = &d->stands[k];
    return s->cluster_id == at->id && s->first <= last && (uint64_t)s->first + s->size > first;
}

/* Those that a failure takes, each until it has started from there_s on; false: out of memory. */
static bool take_out(struct drawing *d, struct site *at, uint32_t node, const struct blow *b, double there_s)
{
    enum maq_failure_reach takes = b->cause ? b->cause->takes : MAQ_FAILURE_NODE;
    uint64_t first = (uint64_t)node * at->per_node, last = first + at->per_node - 1;
    if (takes == MAQ_FAILURE_GPU)
        first = last = first + (uint32_t)(b->which * at->per_node);
    for (uint32_t k = 0; k < d->n; k++) {
        struct maq_replica_outages *out = d->out;
        if (!is_on(d, at, k, first, last) || (takes == MAQ_FAILURE_LINK && !d->needs_network[k]) ||
            (takes != MAQ_FAILURE_NODE && b->fails_s < d->back_s[k]))
            continue;
        if (!maq__grow((void **)&out->list, &out->size, out->n, sizeof *out->list))
            return false;
        double back_s = there_s + d->spec->start_s + d->load_s[k];
        out->list[out->n++] = (struct maq_replica_outage){k, b->fails_s, b->known_s, back_s};
        d->back_s[k] = fmax(d->back_s[k], back_s);
        at->nodes[node].away_until_s =
            takes == MAQ_FAILURE_NODE ? fmax(at->nodes[node].away_until_s, back_s) : at->nodes[node].away_until_s;
    }
    return true;
}

/* ---- nodes that are lost ---- */

/* The node that is ready first is taken, and the one that is lost comes behind it. When it is there; infinity: out of memory. */
static double take_node(struct site *at, double asked_s, struct idle_node lost, bool *lemon)
{
    uint32_t first = 0;
    if (!maq__grow((void **)&at->idle, &at->idle_size, at->n_idle, sizeof *at->idle))
        return (double)INFINITY;
    at->idle[at->n_idle++] = lost;
    for (uint32_t i = 1; i < at->n_idle; i++)
        first = at->idle[i].ready_s < at->idle[first].ready_s ? i : first;
    const struct idle_node taken = at->idle[first];
    at->idle[first] = at->idle[--at->n_idle];
    *lemon = taken.lemon;
    return fmax(asked_s, taken.ready_s);
}

/* When a place that a failure has taken a node from has one again. */
static double replace(struct drawing *d, struct site *at, uint32_t node, const struct blow *b, double requeue_s)
{
    const struct maq_failures *f = d->spec->failures;
    struct node *n = &at->nodes[node];
    double repair = delay(b->cause && b->cause->own_repair ? &b->cause->repair : &f->repair, b->rng);
    bool stays = n->lemon && !(f->lemon_strikes > 0 && maq_rng_next(b->rng) * f->lemon_strikes < 1);
    return take_node(at, b->known_s + requeue_s, (struct idle_node){b->known_s + repair, stays}, &n->lemon);
}

/* A failure's nodes: its own, or its group's. */
static bool strike(struct drawing *d, struct site *at, uint32_t node, const struct blow *b)
{
    const struct maq_failures *f = d->spec->failures;
    bool loses = !b->cause || b->cause->loses_node;
    uint32_t first = node, n = 1, group = (uint32_t)fmax(1, floor(f->together_nodes + 0.5));
    double requeue = delay(&f->requeue, b->rng);
    if (loses && f->together_share > 0 && maq_rng_next(b->rng) < f->together_share) {
        first = node / group * group;
        n = at->n - first < group ? at->n - first : group;
    }
    for (uint32_t i = first; i < first + n; i++) {
        if (i != node && b->fails_s < at->nodes[i].away_until_s)
            continue;
        double there = loses ? replace(d, at, i, b, requeue) : b->known_s;
        if (isinf(there) || !take_out(d, at, i, b, there))
            return false;
    }
    return true;
}

/* ---- a node ---- */

static void draw_next(struct node *n, const struct maq_failures *f)
{
    n->clock.now = n->clock.next;
    if (f->shape < 1 || f->shape > 1)
        maq_run_clock_renew(&n->clock, maq_rng_next(&n->when));
    maq_run_clock_draw(&n->clock, n->lemon, maq_rng_next(&n->when));
}

/* Its next failure, if it is there then; the one behind it is drawn. False: out of memory. */
static bool fail(struct drawing *d, struct site *at, uint32_t node)
{
    const struct maq_failures *f = d->spec->failures;
    struct node *n = &at->nodes[node];
    struct blow b = {.fails_s = n->clock.next / NS, .rng = &n->what};
    bool ok = true;
    if (b.fails_s >= n->away_until_s) {
        b.cause = cause_of(f, maq_rng_next(b.rng));
        b.which = maq_rng_next(b.rng);
        b.known_s = b.fails_s + delay(b.cause && b.cause->own_detection ? &b.cause->detection : &f->detection, b.rng);
        ok = strike(d, at, node, &b);
    }
    draw_next(n, f);
    return ok && !n->clock.renewed.failed;
}

/* ---- a cluster ---- */

static bool begin_site(const struct drawing *d, struct site *at)
{
    const struct maq_failures *f = d->spec->failures;
    uint64_t seed = d->spec->seed;
    at->model = (struct maq_run_model){.failures = f, .seed = seed, .nodes = 1};
    at->model.rate = at->model.node_rate = f->rate * at->per_node / NS;
    at->nodes = maq__calloc(at->n * sizeof *at->nodes);
    for (uint32_t i = 0; i < d->spec->spare_nodes; i++) {
        if (!maq__grow((void **)&at->idle, &at->idle_size, at->n_idle, sizeof *at->idle))
            return false;
        double u = maq_rng_at(seed, MAQ_RNG_STATIC, at->id << 20 | i, 2);
        at->idle[at->n_idle++] = (struct idle_node){0, u < f->lemon_share};
    }
    for (uint32_t i = 0; at->nodes && i < at->n; i++) {
        struct node *n = &at->nodes[i];
        uint32_t key = at->id << 20 | i;
        n->lemon = maq_rng_at(seed, MAQ_RNG_STATIC, key, 1) < f->lemon_share;
        n->when = maq_rng_of(seed, MAQ_RNG_FAILURE, key);
        n->what = maq_rng_of(seed, MAQ_RNG_REPAIR, key);
        maq_run_clock_init(&n->clock, &at->model, 0);
        maq_run_clock_draw(&n->clock, n->lemon, maq_rng_next(&n->when));
    }
    return at->nodes != NULL;
}

static bool draw_site(struct drawing *d, struct site *at)
{
    bool ok = begin_site(d, at);
    while (ok) {
        uint32_t next = 0;
        for (uint32_t i = 1; i < at->n; i++)
            next = at->nodes[i].clock.next < at->nodes[next].clock.next ? i : next;
        if (!(at->nodes[next].clock.next / NS < d->spec->span_s))
            break;
        ok = fail(d, at, next);
    }
    for (uint32_t i = 0; at->nodes && i < at->n; i++)
        maq_run_clock_fini(&at->nodes[i].clock);
    free(at->nodes);
    free(at->idle);
    return ok;
}

/* ---- the fleet ---- */

static uint32_t per_node_of(const struct maq_replica_placement *s)
{
    uint32_t n = (uint32_t)s->cluster->groups[0].devices_per_node;
    return n > 0 ? n : 1;
}

static bool same_node(const struct maq_replica_placement *a, const struct maq_replica_placement *b)
{
    uint32_t n = per_node_of(a);
    return a->cluster_id == b->cluster_id && a->first / n == b->first / n;
}

/* Over several nodes, or with somebody of the other pool on another node: replicas [0, n_prefill) compute prompts. */
static bool needs_network(const struct drawing *d, uint32_t k, uint32_t n_prefill)
{
    const struct maq_replica_placement *s = &d->stands[k];
    uint32_t n = per_node_of(s), from = k < n_prefill ? n_prefill : 0, to = k < n_prefill ? d->n : n_prefill;
    bool needs = s->first / n != (s->first + s->size - 1) / n;
    for (uint32_t i = from; i < to && !needs; i++)
        needs = !same_node(s, &d->stands[i]);
    return needs;
}

static bool draw_sites(struct drawing *d)
{
    uint32_t sites = 0;
    for (uint32_t k = 0; k < d->n; k++)
        sites = d->stands[k].cluster_id >= sites ? d->stands[k].cluster_id + 1 : sites;
    for (uint32_t id = 0; id < sites; id++) {
        struct site at = {.id = id};
        uint64_t devices = 0;
        for (uint32_t k = 0; k < d->n; k++) {
            const struct maq_replica_placement *s = &d->stands[k];
            if (s->cluster_id != id)
                continue;
            at.per_node = per_node_of(s);
            devices = (uint64_t)s->first + s->size > devices ? (uint64_t)s->first + s->size : devices;
        }
        at.n = devices > 0 ? (uint32_t)((devices + at.per_node - 1) / at.per_node) : 0;
        if (at.n > 0 && !draw_site(d, &at))
            return false;
    }
    return true;
}

bool maq_fleet_draw_failures(struct maq_replica_outages *out, const struct maq_fleet *fleet,
                             const struct maq_outage_spec *spec)
{
    struct drawing d = {.spec = spec, .out = out};
    uint32_t n_prefill = 0;
    uint64_t needed;
    const struct maq_cluster *small; /* is said by whoever runs the fleet */
    *out = (struct maq_replica_outages){0};
    if (!spec->failures || !(spec->failures->rate > 0))
        return true;
    for (uint32_t m = 0; m < fleet->n_members; m++) {
        d.n += fleet->members[m].replicas;
        n_prefill += fleet->members[m].role == MAQ_ROLE_PREFILL ? fleet->members[m].replicas : 0;
    }
    struct maq_replica_placement *stands = maq__calloc(d.n * sizeof *stands);
    d.needs_network = maq__calloc(d.n * sizeof *d.needs_network);
    d.back_s = maq__calloc(d.n * sizeof *d.back_s);
    d.load_s = maq__calloc(d.n * sizeof *d.load_s);
    bool ok =
        stands && d.needs_network && d.back_s && d.load_s && maq_fleet_place(fleet, stands, &small, &needed) == MAQ_OK;
    if (ok) {
        d.stands = stands;
        maq_fleet_load_times(fleet, d.load_s);
        for (uint32_t k = 0; k < d.n; k++)
            d.needs_network[k] = needs_network(&d, k, n_prefill);
        ok = draw_sites(&d);
    }
    free(stands);
    free(d.needs_network);
    free(d.back_s);
    free(d.load_s);
    return ok;
}
