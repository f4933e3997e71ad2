/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet.c - a fleet of the best candidates of the node groups.
 *
 * As much as can be carried, or more than can be: each group is full of its best, and they carry the sum, or what less a run of all of them
 * holds, since a router does not deal as evenly as each had it alone. A rate: the cheapest of the groups that carries it
 * alone, or of several together. Mixtures are tried in the order of their cost, if the rates of their replicas promise enough; of each
 * group only its best candidate takes part, so that a mixture is not proven to be the cheapest one.
 */
#include "planner/serve/fleet.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "planner/serve/spare_replicas.h"

#define MOST_GROUPS 3u /* in a mixture */
#define MOST_TRIES 48u
#define PROMISE 0.95 /* of the rate: together replicas even out what comes to each of them */

/* A replica of a group's best candidate. */
struct unit {
    uint32_t candidate, room;
    double rate, cost; /* requests a second; US dollars an hour, or GPUs where a price is not known */
};

struct mixture {
    uint32_t replicas[MOST_GROUPS]; /* that hold the bounds */
    uint32_t all[MOST_GROUPS];      /* with the spare ones */
    double cost, rate;
};

struct composing {
    struct maq_serve_searching *s;
    struct unit units[MOST_GROUPS];
    uint32_t n;
    struct mixture *list;
    uint32_t n_list, size;
    double below; /* cost of what is known */
};

static double usd_of(const struct maq_serve_candidate *c)
{
    return c->job->cluster.groups[0].device.usd_per_hour * c->gpus;
}

/* ---- the fleet ---- */

bool maq_serve_set_fleet(struct maq_serve_search_result *r, const struct maq_serve_part_of_fleet *parts, uint32_t n)
{
    free(r->fleet);
    r->n_fleet = 0;
    r->gpus = 0;
    r->usd_per_hour = 0;
    r->fleet = maq__calloc(n * sizeof *r->fleet);
    bool priced = true;
    for (uint32_t i = 0; r->fleet && i < n; i++) {
        const struct maq_serve_candidate *c = &r->candidates[parts[i].candidate];
        r->fleet[r->n_fleet++] = parts[i];
        r->gpus += parts[i].replicas * c->gpus;
        r->usd_per_hour += parts[i].replicas * usd_of(c);
        priced = priced && usd_of(c) > 0;
    }
    r->usd_per_hour = priced ? r->usd_per_hour : 0;
    return r->fleet != NULL;
}

/* ---- mixtures ---- */

static bool add(struct composing *c, const uint32_t replicas[MOST_GROUPS])
{
    struct mixture m = {.cost = 0};
    uint32_t parts = 0;
    for (uint32_t g = 0; g < c->n; g++) {
        m.replicas[g] = replicas[g];
        m.rate += replicas[g] * c->units[g].rate;
        m.cost += replicas[g] * c->units[g].cost;
        parts += replicas[g] > 0;
    }
    if (parts < 2 || m.cost >= c->below || m.rate < c->s->rate * PROMISE)
        return true;
    m.cost = 0;
    for (uint32_t g = 0; g < c->n; g++) {
        const struct maq_serve_candidate *found = &c->s->out->candidates[c->units[g].candidate];
        if (replicas[g] > 0 && maq_serve_with_spares(&m.all[g], c->s, found, replicas[g],
                                                     (struct maq_serve_together){.parts = parts}) != MAQ_OK)
            return false;
        if (replicas[g] > 0 && m.all[g] == 0)
            return true;
        m.cost += m.all[g] * c->units[g].cost;
    }
    if (m.cost >= c->below)
        return true;
    if (!maq__grow((void **)&c->list, &c->size, c->n_list, sizeof *c->list))
        return false;
    c->list[c->n_list++] = m;
    return true;
}

/* So many of the last group as are needed beside those of the others, and more: what replicas carry together is not quite their sum. */
static bool list_all(struct composing *c, uint32_t replicas[MOST_GROUPS], uint32_t g, double carried)
{
    const struct unit *u = &c->units[g];
    if (g + 1 == c->n) {
        double needed = fmax(0, ceil((c->s->rate * PROMISE - carried) / u->rate));
        for (uint32_t more = 0;; more = more < 2 ? more + 1 : 2 * more) {
            replicas[g] = (uint32_t)fmin(needed + more, u->room);
            if (!add(c, replicas))
                return false;
            if (needed + more >= u->room)
                return true;
        }
    }
    for (replicas[g] = 0; replicas[g] <= u->room; replicas[g]++)
        if (!list_all(c, replicas, g + 1, carried + replicas[g] * u->rate))
            return false;
    return true;
}

static int by_cost(const void *x, const void *y)
{
    const struct mixture *a = x, *b = y;
    if (a->cost < b->cost || a->cost > b->cost)
        return a->cost < b->cost ? -1 : 1;
    if (a->rate < b->rate || a->rate > b->rate)
        return a->rate > b->rate ? -1 : 1;
    for (uint32_t g = 0; g < MOST_GROUPS; g++)
        if (a->replicas[g] != b->replicas[g])
            return a->replicas[g] < b->replicas[g] ? -1 : 1;
    return 0;
}

static enum maq_status try_mixture(bool *held, struct composing *c, const struct mixture *m)
{
    struct maq_serve_part_of_fleet parts[MOST_GROUPS];
    struct maq_fleet_member members[MOST_GROUPS];
    struct maq_rate_trial t;
    uint32_t n = 0;
    for (uint32_t g = 0; g < c->n; g++) {
        const struct maq_serve_candidate *found = &c->s->out->candidates[c->units[g].candidate];
        if (m->replicas[g] == 0)
            continue;
        parts[n] = (struct maq_serve_part_of_fleet){
            .candidate = c->units[g].candidate, .replicas = m->all[g], .needed = m->replicas[g]};
        members[n++] = (struct maq_fleet_member){.job = found->job,
                                                 .options = &found->options,
                                                 .replicas = m->replicas[g],
                                                 .weight = maq_serve_weight(found)};
    }
    MAQ_TRY(maq_serve_holds(&t, c->s, members, n, c->s->rate, true));
    c->s->out->runs += t.runs;
    *held = t.low > 0;
    return !*held || maq_serve_set_fleet(c->s->out, parts, n) ? MAQ_OK : MAQ_NO_MEMORY;
}

static enum maq_status mix(struct composing *c)
{
    uint32_t replicas[MOST_GROUPS] = {0};
    enum maq_status status = list_all(c, replicas, 0, 0) ? MAQ_OK : MAQ_NO_MEMORY;
    if (c->n_list > 0)
        qsort(c->list, c->n_list, sizeof *c->list, by_cost);
    bool held = false;
    for (uint32_t i = 0, tries = 0; status == MAQ_OK && !held && i < c->n_list && tries < MOST_TRIES; i++) {
        if (i > 0 && by_cost(&c->list[i - 1], &c->list[i]) == 0)
            continue;
        tries++;
        status = try_mixture(&held, c, &c->list[i]);
    }
    free(c->list);
    return status;
}

/* ---- all ---- */

static enum maq_status fill_all(struct maq_serve_searching *s, const uint32_t *bests, uint32_t n)
{
    struct maq_serve_part_of_fleet parts[64];
    uint32_t k = 0;
    s->out->rate = 0;
    for (uint32_t g = 0; g < n && k < MAQ_COUNT(parts); g++) {
        if (bests[g] == UINT32_MAX)
            continue;
        const struct maq_serve_candidate *c = &s->out->candidates[bests[g]];
        parts[k++] =
            (struct maq_serve_part_of_fleet){.candidate = bests[g], .replicas = c->with_spares, .needed = c->replicas};
        s->out->rate += c->rate;
    }
    s->out->carries = k > 0 && s->rate <= 0;
    return k == 0 || maq_serve_set_fleet(s->out, parts, k) ? MAQ_OK : MAQ_NO_MEMORY;
}

enum maq_status maq_serve_compose(struct maq_serve_searching *s, const uint32_t *bests, uint32_t n)
{
    struct composing c = {.s = s, .below = (double)INFINITY};
    bool priced = true;
    if (s->rate <= 0)
        return fill_all(s, bests, n);
    s->out->rate = s->rate;
    for (uint32_t g = 0; g < n; g++)
        priced = priced && (bests[g] == UINT32_MAX || usd_of(&s->out->candidates[bests[g]]) > 0);
    for (uint32_t g = 0; g < n; g++) {
        const struct maq_serve_candidate *found = &s->out->candidates[bests[g] == UINT32_MAX ? 0 : bests[g]];
        if (bests[g] == UINT32_MAX)
            continue;
        double each = priced ? usd_of(found) : found->gpus, cost = each * found->with_spares;
        if (found->rate >= s->rate && cost < c.below) {
            const struct maq_serve_part_of_fleet part = {
                .candidate = bests[g], .replicas = found->with_spares, .needed = found->replicas};
            c.below = cost;
            if (!maq_serve_set_fleet(s->out, &part, 1))
                return MAQ_NO_MEMORY;
        }
        if (c.n < MOST_GROUPS)
            c.units[c.n++] = (struct unit){bests[g], maq_serve_group_devices(found) / found->gpus,
                                           found->rate / found->replicas, each};
    }
    if (c.n > 1)
        MAQ_TRY(mix(&c));
    s->out->carries = s->out->n_fleet > 0;
    return s->out->carries ? MAQ_OK : fill_all(s, bests, n);
}

/* ---- as a whole ---- */

#define FEWER 1.03

/* What all carry in one stream, if not the sum. */
static enum maq_status confirm(struct maq_serve_search_result *r, const struct maq_fleet *fleet,
                               const struct maq_serve_search_opts *opts)
{
    struct maq_request_set *set;
    MAQ_TRY(maq_serve_search_requests(&set, r, opts, NULL));
    struct maq_rate_trial t = {
        .fleet = fleet, .slo = opts->slo, .draw = maq_requests_get(set), .tolerance = MAQ_SERVE_SEARCH_TOLERANCE};
    enum maq_status status = maq_rate_trial_begin(&t, NULL);
    if (status == MAQ_OK) {
        if (maq_rate_try(&t, r->rate, NULL) && t.low <= 0)
            (void)maq_rate_narrow(&t, r->rate / FEWER, true);
        status = t.status;
    }
    r->runs += t.runs;
    r->rate = t.low;
    r->carries = r->carries && t.low > 0;
    maq_rate_trial_end(&t);
    maq_requests_free(set);
    return status;
}

enum maq_status maq_serve_confirm(struct maq_serve_search_result *r, const struct maq_serve_search_opts *opts)
{
    struct maq_fleet_member *members = maq__calloc((r->n_fleet + 1) * sizeof *members);
    uint32_t replicas = 0;
    if (!members)
        return MAQ_NO_MEMORY;
    const struct maq_fleet fleet = maq_serve_search_fleet(r, opts, members);
    for (uint32_t i = 0; i < r->n_fleet; i++) {
        replicas += r->fleet[i].role == MAQ_ROLE_BOTH ? r->fleet[i].needed : 0;
        members[i].replicas = r->fleet[i].needed;
    }
    bool sum = replicas > 1 && r->rate > 0 && !(opts->rate > 0 && r->carries);
    enum maq_status status = sum ? confirm(r, &fleet, opts) : MAQ_OK;
    free(members);
    return status;
}

struct maq_fleet maq_serve_search_fleet(const struct maq_serve_search_result *r,
                                        const struct maq_serve_search_opts *opts, struct maq_fleet_member *members)
{
    uint32_t group = r->n_fleet > 0 ? r->candidates[r->fleet[0].candidate].group : 0;
    for (uint32_t i = 0; i < r->n_fleet; i++) {
        const struct maq_serve_part_of_fleet *part = &r->fleet[i];
        const struct maq_serve_candidate *c = &r->candidates[part->candidate];
        bool pool = part->role != MAQ_ROLE_BOTH;
        members[i] = (struct maq_fleet_member){.job = c->job,
                                               .options = &c->options,
                                               .replicas = part->replicas,
                                               .weight = pool ? 0 : maq_serve_weight(c),
                                               .role = part->role,
                                               .own_cluster = pool && i > 0 && c->group != group};
    }
    return (struct maq_fleet){
        .members = members, .n_members = r->n_fleet, .router = opts->router, .prefill_router = opts->router};
}
