/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pools.c - a pool that computes prompts and one that decodes, against the best fleet whose replicas do both.
 *
 * Every deployment with its engine's own limits may be either side. What a replica of it carries there has a closed form: prompts back to
 * back, and the largest batch that decodes within the bound on TPOT. Two deployments and so many replicas of each carry the lesser of the
 * two sums. Those that could be better than the best so far are simulated, in the order of that: with a rate by their cost, of each two the
 * fewest replicas and up to SPARE more on either side; else by what they carry, of each two the splits of the devices next to the even one.
 * At most MOST_TRIES of them, so that here the best is the best of those that were tried.
 *
 * A few at a time say with the first requests about how much they carry, side by side; those that may be better then serve all requests,
 * one after another, the most promising first: of the others most are found to be no better in one run that ends early.
 *
 * Where replicas fail each pool has spare ones, so that as many as are simulated are there in both at once; they cost as the others do.
 *
 * Of the best two, other limits of the engine are tried then, of one side at a time: tokens of an iteration where prompts are computed,
 * requests in one where tokens are; without a rate with as many replicas, with one with a replica less of either side.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/threads.h"
#include "planner/serve/fleet.h"
#include "planner/serve/pools.h"
#include "planner/serve/spare_replicas.h"

#define MOST_TRIES 24u
#define ROUND 4u
#define SPARE 2u
#define NEXT_STEP 1.03
#define MOST_REQUESTS 20000.0

static const struct maq_serve_together both = {.parts = 2, .pools = true};

struct split {
    uint32_t prefill, decode;         /* candidates */
    uint32_t n_prefill, n_decode;     /* replicas that hold the bounds */
    uint32_t all_prefill, all_decode; /* with the spare ones */
    double promise;                   /* requests a second; with a rate the cost, negative */
    double likely;  /* what the first requests say that it carries, within wider bounds; 0 = no more than the best */
    double carried; /* by all requests; 0 = it misses a bound where it would be better */
    uint32_t runs;
    enum maq_status status;
};

struct pooling {
    struct maq_serve_searching *s;
    const struct maq_requests *stream;
    uint32_t first; /* of its requests */
    struct split *at;
    uint32_t n, size;
    double carried, cost; /* of the best so far */
    bool priced, tried;   /* tried: a round is over */
    struct split *round;
};

static double cost_of(const struct pooling *p, const struct maq_serve_candidate *c)
{
    return p->priced ? c->job->cluster.groups[0].device.usd_per_hour * c->gpus : c->gpus;
}

/* ---- which ---- */

/* Whether engines of these hand requests over: what else they refuse, a run says. */
static bool go_together(const struct maq_serve_candidate *a, const struct maq_serve_candidate *b)
{
    for (int axis = MAQ_SERVE_AXIS_ENGINE; axis < MAQ_SERVE_AXIS_SEQS; axis++)
        if (a->at[axis] != b->at[axis])
            return false;
    int32_t x = a->at[MAQ_SERVE_AXIS_TP], y = b->at[MAQ_SERVE_AXIS_TP];
    return a->prefill_per_s > 0 && b->decode_per_s > 0 && (x % y == 0 || y % x == 0);
}

static bool has_room(const struct maq_serve_candidate *a, uint32_t n, const struct maq_serve_candidate *b, uint32_t k)
{
    uint64_t x = (uint64_t)n * a->gpus, y = (uint64_t)k * b->gpus, devices = maq_serve_group_devices(a);
    if (a->group == b->group)
        return x + y <= devices;
    return x <= devices && y <= maq_serve_group_devices(b);
}

/* Whether it could be better than the best so far by its closed form; its promise. */
static bool is_promising(const struct pooling *p, struct split *at)
{
    const struct maq_serve_candidate *a = &p->s->out->candidates[at->prefill], *b = &p->s->out->candidates[at->decode];
    double carries = fmin(at->n_prefill * a->prefill_per_s, at->n_decode * b->decode_per_s) * MAQ_SERVE_SEARCH_MARGIN,
           cost = at->all_prefill * cost_of(p, a) + at->all_decode * cost_of(p, b);
    at->promise = p->s->rate > 0 ? -cost : carries;
    if (at->n_prefill == 0 || at->n_decode == 0 || !has_room(a, at->all_prefill, b, at->all_decode))
        return false;
    return p->s->rate > 0 ? carries >= p->s->rate && cost < p->cost : carries > p->carried;
}

static bool add(struct pooling *p, struct split at)
{
    if (!is_promising(p, &at))
        return true;
    if (!maq__grow((void **)&p->at, &p->size, p->n, sizeof *p->at))
        return false;
    p->at[p->n++] = at;
    return true;
}

/* So many that hold the bounds, and the spare ones that it takes. */
static bool add_needed(struct pooling *p, uint32_t prefill, uint32_t n, uint32_t decode, uint32_t k)
{
    struct split at = {
        .prefill = prefill, .decode = decode, .n_prefill = n, .n_decode = k, .all_prefill = n, .all_decode = k};
    const struct maq_serve_candidate *c = p->s->out->candidates;
    if (!is_promising(p, &at)) /* without any to spare */
        return true;
    if (maq_serve_with_spares(&at.all_prefill, p->s, &c[prefill], n, both) != MAQ_OK ||
        maq_serve_with_spares(&at.all_decode, p->s, &c[decode], k, both) != MAQ_OK)
        return false;
    return at.all_prefill == 0 || at.all_decode == 0 || add(p, at);
}

/* So many in all, of which those that are there hold the bounds. */
static bool add_counted(struct pooling *p, uint32_t prefill, uint32_t n, uint32_t decode, uint32_t k)
{
    struct split at = {.prefill = prefill, .decode = decode, .all_prefill = n, .all_decode = k};
    const struct maq_serve_candidate *c = p->s->out->candidates;
    return maq_serve_counted_on(&at.n_prefill, p->s, &c[prefill], n, both) == MAQ_OK &&
           maq_serve_counted_on(&at.n_decode, p->s, &c[decode], k, both) == MAQ_OK && add(p, at);
}

/* With a rate: as few as the closed form has, and some more. */
static bool add_fewest(struct pooling *p, uint32_t prefill, uint32_t decode)
{
    const struct maq_serve_candidate *a = &p->s->out->candidates[prefill], *b = &p->s->out->candidates[decode];
    double n = ceil(p->s->rate / (a->prefill_per_s * MAQ_SERVE_SEARCH_MARGIN)),
           k = ceil(p->s->rate / (b->decode_per_s * MAQ_SERVE_SEARCH_MARGIN));
    if (n > maq_serve_group_devices(a) || k > maq_serve_group_devices(b))
        return true;
    for (uint32_t i = 0; i <= SPARE; i++)
        for (uint32_t j = 0; j <= SPARE; j++)
            if (!add_needed(p, prefill, (uint32_t)n + i, decode, (uint32_t)k + j))
                return false;
    return true;
}

/* All devices, about as the closed form splits them. */
static bool add_splits(struct pooling *p, uint32_t prefill, uint32_t decode)
{
    const struct maq_serve_candidate *a = &p->s->out->candidates[prefill], *b = &p->s->out->candidates[decode];
    uint32_t devices = maq_serve_group_devices(a);
    if (a->group != b->group)
        return add_counted(p, prefill, devices / a->gpus, decode, maq_serve_group_devices(b) / b->gpus);
    double even = devices / (a->gpus + b->gpus * a->prefill_per_s / b->decode_per_s);
    for (int32_t i = -1; i <= 2; i++) {
        double n = floor(even) + i;
        if (n >= 1 && n * a->gpus < devices &&
            !add_counted(p, prefill, (uint32_t)n, decode, (devices - (uint32_t)n * a->gpus) / b->gpus))
            return false;
    }
    return true;
}

static int by_promise(const void *x, const void *y)
{
    const struct split *a = x, *b = y;
    if (a->promise < b->promise || a->promise > b->promise)
        return a->promise < b->promise ? 1 : -1;
    const uint32_t u[] = {a->prefill, a->decode, a->n_prefill}, v[] = {b->prefill, b->decode, b->n_prefill};
    for (size_t i = 0; i < MAQ_COUNT(u); i++)
        if (u[i] != v[i])
            return u[i] < v[i] ? -1 : 1;
    return 0;
}

/* Of a cluster with several kinds of nodes, each kind is one side: what is left over of a kind would be a fleet of its own. */
static bool list(struct pooling *p, bool several)
{
    const struct maq_serve_search_result *r = p->s->out;
    for (uint32_t i = 0; i < r->n; i++)
        for (uint32_t k = 0; k < r->n; k++) {
            const struct maq_serve_candidate *a = &r->candidates[i], *b = &r->candidates[k];
            bool sides = !several || p->s->rate > 0 || a->group != b->group;
            if (!a->own_limits || !b->own_limits || !sides || !go_together(a, b))
                continue;
            if (!(p->s->rate > 0 ? add_fewest(p, i, k) : add_splits(p, i, k)))
                return false;
        }
    if (p->n > 0)
        qsort(p->at, p->n, sizeof *p->at, by_promise);
    return true;
}

/* Whether they differ in the limits of the engine alone. */
static bool same_cut(const struct maq_serve_candidate *a, const struct maq_serve_candidate *b)
{
    for (int axis = 0; axis < MAQ_SERVE_AXIS_SEQS; axis++)
        if (a->at[axis] != b->at[axis])
            return false;
    return a->group == b->group;
}

static bool add_with_limits(struct pooling *p, const struct split *best, uint32_t prefill, uint32_t decode)
{
    struct split same = *best;
    same.prefill = prefill;
    same.decode = decode;
    if (p->s->rate <= 0)
        return add(p, same);
    return add_needed(p, prefill, best->n_prefill - 1, decode, best->n_decode) &&
           add_needed(p, prefill, best->n_prefill, decode, best->n_decode - 1);
}

/* The best two with other limits of one side. */
static bool list_limits(struct pooling *p, const struct split *best, enum maq_role side)
{
    const struct maq_serve_search_result *r = p->s->out;
    const uint32_t mine = side == MAQ_ROLE_PREFILL ? best->prefill : best->decode;
    p->n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_serve_candidate *c = &r->candidates[i];
        double per_s = side == MAQ_ROLE_PREFILL ? c->prefill_per_s : c->decode_per_s;
        if (i == mine || !c->job || per_s <= 0 || !same_cut(c, &r->candidates[mine]))
            continue;
        if (!add_with_limits(p, best, side == MAQ_ROLE_PREFILL ? i : best->prefill,
                             side == MAQ_ROLE_PREFILL ? best->decode : i))
            return false;
    }
    if (p->n > 0)
        qsort(p->at, p->n, sizeof *p->at, by_promise);
    return true;
}

/* ---- simulated ---- */

/* Requests a second at which it would be better than the best so far; 0: there is none. */
static double to_beat(const struct pooling *p)
{
    return p->s->rate > 0 ? p->s->rate : p->carried * (1 + MAQ_SERVE_SEARCH_TOLERANCE);
}

struct pair {
    struct maq_fleet_member members[2];
    struct maq_fleet fleet;
    struct maq_requests few;
};

/* A trial of a split: of all requests, or of the first. To be begun. */
static struct maq_rate_trial trial_of(struct pair *room, const struct pooling *p, const struct split *at, bool all)
{
    const struct maq_serve_candidate *a = &p->s->out->candidates[at->prefill], *b = &p->s->out->candidates[at->decode];
    room->members[0] = (struct maq_fleet_member){
        .job = b->job, .options = &b->options, .replicas = at->n_decode, .role = MAQ_ROLE_DECODE};
    room->members[1] = (struct maq_fleet_member){.job = a->job,
                                                 .options = &a->options,
                                                 .replicas = at->n_prefill,
                                                 .role = MAQ_ROLE_PREFILL,
                                                 .own_cluster = a->group != b->group};
    room->fleet = (struct maq_fleet){
        .members = room->members, .n_members = 2, .router = p->s->opts->router, .prefill_router = p->s->opts->router};
    room->few = *p->stream;
    room->few.n = p->first;
    return (struct maq_rate_trial){.fleet = &room->fleet,
                                   .slo = all ? p->s->opts->slo : &p->s->lenient,
                                   .draw = all ? p->stream : &room->few,
                                   .least = to_beat(p),
                                   .tolerance = all ? MAQ_SERVE_SEARCH_TOLERANCE : NEXT_STEP - 1};
}

/* In the first round how much, later whether it is more. */
static bool sound_out(void *user, uint32_t i, struct maq_arena *scratch)
{
    const struct pooling *p = user;
    struct split *at = &p->round[i];
    struct pair room;
    struct maq_rate_trial t = trial_of(&room, p, at, false);
    (void)scratch;
    at->status = maq_rate_trial_begin(&t, NULL);
    bool ok = at->status == MAQ_OK;
    if (ok && (p->s->rate > 0 || p->tried))
        ok = maq_rate_try(&t, t.least, NULL);
    else if (ok)
        ok = maq_rate_narrow(&t, at->promise / MAQ_SERVE_SEARCH_MARGIN, true);
    at->likely = t.low;
    at->runs = t.runs;
    at->status = ok || at->status != MAQ_OK ? at->status : t.status;
    maq_rate_trial_end(&t);
    return at->status != MAQ_NO_MEMORY;
}

static enum maq_status look_closer(const struct pooling *p, struct split *at)
{
    struct pair room;
    struct maq_rate_trial t = trial_of(&room, p, at, true);
    MAQ_TRY(maq_rate_trial_begin(&t, NULL));
    bool ok = p->s->rate > 0 ? maq_rate_try(&t, t.least, NULL) : maq_rate_narrow(&t, at->likely / NEXT_STEP, true);
    at->carried = t.low;
    at->runs += t.runs;
    at->status = ok ? MAQ_OK : t.status;
    maq_rate_trial_end(&t);
    return at->status;
}

static bool keep(struct pooling *p, const struct split *at)
{
    const struct maq_serve_part_of_fleet parts[] = {
        {.candidate = at->decode, .replicas = at->all_decode, .needed = at->n_decode, .role = MAQ_ROLE_DECODE},
        {.candidate = at->prefill, .replicas = at->all_prefill, .needed = at->n_prefill, .role = MAQ_ROLE_PREFILL}};
    const struct maq_serve_search_result *r = p->s->out;
    p->carried = at->carried;
    p->cost = at->all_prefill * cost_of(p, &r->candidates[at->prefill]) +
              at->all_decode * cost_of(p, &r->candidates[at->decode]);
    p->s->out->rate = p->s->rate > 0 ? p->s->rate : at->carried;
    p->s->out->carries = true;
    return maq_serve_set_fleet(p->s->out, parts, 2);
}

/* Of a round, the next to serve all requests: with a rate in the order of their cost, else the one that is likely to carry most. */
static struct split *most_likely(const struct pooling *p, uint32_t n)
{
    struct split *next = NULL;
    for (uint32_t i = 0; i < n; i++) {
        struct split *at = &p->round[i];
        bool better = at->likely > 0 && at->likely >= to_beat(p);
        if (better && (!next || (p->s->rate <= 0 && at->likely > next->likely)))
            next = at;
    }
    return next;
}

/* *found: with a rate, one that carries it. They come by their cost: it is the best. */
static enum maq_status settle_round(struct pooling *p, uint32_t n, bool *found)
{
    struct split *at;
    while (!*found && (at = most_likely(p, n)) != NULL) {
        enum maq_status status = look_closer(p, at);
        at->likely = 0;
        if (status == MAQ_NO_MEMORY)
            return status;
        if (at->carried <= 0)
            continue;
        *found = p->s->rate > 0;
        if (!keep(p, at))
            return MAQ_NO_MEMORY;
    }
    for (uint32_t i = 0; i < n; i++)
        p->s->out->runs += p->round[i].runs;
    p->s->out->pools_tried += n;
    return MAQ_OK;
}

static enum maq_status try_all(struct pooling *p)
{
    bool found = false;
    for (uint32_t i = 0; i < p->n && i < MOST_TRIES && !found; i += ROUND) {
        uint32_t n = p->n - i < ROUND ? p->n - i : ROUND;
        if (p->s->opts->stop && *p->s->opts->stop) {
            p->s->out->complete = false;
            return MAQ_OK;
        }
        p->round = &p->at[i];
        if (!maq_parallel_run(sound_out, p, 0, n, p->s->opts->threads))
            return MAQ_NO_MEMORY;
        p->tried = true;
        MAQ_TRY(settle_round(p, n, &found));
        while (p->s->rate <= 0 && i + n < p->n && p->at[i + n].promise <= p->carried) /* the others promise less */
            p->n--;
    }
    return MAQ_OK;
}

/* The result's fleet, if it is two pools. */
static bool best_of(struct split *out, const struct maq_serve_search_result *r)
{
    if (r->n_fleet != 2 || r->fleet[0].role != MAQ_ROLE_DECODE)
        return false;
    *out = (struct split){.prefill = r->fleet[1].candidate,
                          .decode = r->fleet[0].candidate,
                          .n_prefill = r->fleet[1].needed,
                          .n_decode = r->fleet[0].needed,
                          .all_prefill = r->fleet[1].replicas,
                          .all_decode = r->fleet[0].replicas};
    return true;
}

static enum maq_status try_limits(struct pooling *p)
{
    static const enum maq_role sides[] = {MAQ_ROLE_PREFILL, MAQ_ROLE_DECODE};
    struct split best;
    for (size_t i = 0; i < MAQ_COUNT(sides) && best_of(&best, p->s->out); i++) {
        if (!list_limits(p, &best, sides[i]))
            return MAQ_NO_MEMORY;
        p->s->out->pools += p->n;
        MAQ_TRY(try_all(p));
    }
    return MAQ_OK;
}

/* A stream for all devices, where one replica had its own. */
static enum maq_status stream_for_all(const struct maq_requests **out, struct maq_request_set **drawn,
                                      const struct maq_serve_searching *s)
{
    struct maq_request_spec spec = *s->opts->spec;
    *out = s->stream;
    if (s->rate > 0 || s->opts->requests)
        return MAQ_OK;
    s->out->n_all = (uint32_t)fmin(s->out->n_all, MOST_REQUESTS);
    spec.n = s->out->n_all;
    spec.rate = 1;
    spec.concurrency = 0;
    MAQ_TRY(maq_requests_generate(drawn, &spec, NULL));
    *out = maq_requests_get(*drawn);
    return MAQ_OK;
}

enum maq_status maq_serve_try_pools(struct maq_serve_searching *s, uint32_t groups)
{
    struct maq_serve_search_result *r = s->out;
    struct pooling p = {.s = s, .cost = (double)INFINITY, .priced = true};
    struct maq_request_set *drawn = NULL;
    for (uint32_t i = 0; i < r->n; i++)
        p.priced =
            p.priced && (!r->candidates[i].job || r->candidates[i].job->cluster.groups[0].device.usd_per_hour > 0);
    if (r->n_fleet > 0 && (s->rate <= 0 || r->carries)) {
        p.carried = r->rate;
        p.cost = p.priced ? r->usd_per_hour : r->gpus;
    }
    enum maq_status status = list(&p, groups > 1) ? MAQ_OK : MAQ_NO_MEMORY;
    r->pools = p.n;
    if (status == MAQ_OK && p.n > 0)
        status = stream_for_all(&p.stream, &drawn, s);
    if (status == MAQ_OK && p.n > 0) {
        p.first = p.stream->n == s->stream->n ? s->first : (uint32_t)((uint64_t)p.stream->n * s->first / s->stream->n);
        status = try_all(&p);
        if (status == MAQ_OK)
            status = try_limits(&p);
    }
    maq_requests_free(drawn);
    free(p.at);
    return status;
}
