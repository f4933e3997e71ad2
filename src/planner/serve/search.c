/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - all candidates, in the order of what the closed form promises, a few at a time against the best so far.
 *
 * A round is of as many whatever the number of threads, and all of a round are held against the same best: so the result does not depend
 * on who is done first.
 */
#include "planner/serve/search.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/threads.h"
#include "planner/codes.h"
#include "serve/request/set.h"

#define ROUND 4u
#define FIRST_ROUND 2u /* those that have nothing to be compared with take longer */
/* Requests come for so many times as long as one stays: in a shorter run most find the fleet emptier than it will be, and that it cannot keep up
 * shows late. Those that miss their bounds by much do so in the first of them. */
#define STAYS 20.0
#define FIRST_STAYS 5.0
#define LEAST_REQUESTS 1000u
#define LEAST_FIRST 250u
#define BY_MUCH 1.1
#define MOST_REQUESTS 20000u
#define ALL_REQUESTS 100000.0 /* of all replicas together */

const char *maq_serve_verdict_name(enum maq_serve_verdict verdict)
{
    static const char *const names[MAQ_SERVE_VERDICT_COUNT] = {
#define NAME(id, name, what) [MAQ_SERVE_VERDICT_##id] = name,
        MAQ_SERVE_VERDICT_LIST(NAME)
#undef NAME
    };
    return (unsigned)verdict < MAQ_SERVE_VERDICT_COUNT ? names[verdict] : "unknown";
}

/* ---- which first ---- */

/* Of the node group all together, by a closed form of one replica: requests a second, or with a rate fewer GPUs, which is more. */
static double promise(const struct maq_serve_searching *s, const struct maq_serve_candidate *c, double per_s)
{
    uint32_t room = maq_serve_group_devices(c) / c->gpus;
    if (s->rate <= 0)
        return per_s * room;
    double replicas = ceil(s->rate / per_s);
    return replicas <= room ? -replicas * c->gpus : -(double)INFINITY;
}

/* Whether a candidate cannot be as good as the best so far. */
static bool bounded(const struct maq_serve_searching *s, const struct maq_serve_candidate *c)
{
    double at_most = promise(s, c, c->most_per_s * MAQ_SERVE_SEARCH_MARGIN);
    if (s->opts->exhaustive)
        return false;
    if (s->best == UINT32_MAX)
        return isinf(at_most);
    return s->rate > 0 ? -at_most > s->best_gpus : at_most < s->best_carried;
}

struct place {
    double likely;
    uint32_t candidate;
};

static int by_promise(const void *x, const void *y)
{
    const struct place *a = x, *b = y;
    if (a->likely < b->likely || a->likely > b->likely)
        return a->likely < b->likely ? 1 : -1;
    return (a->candidate > b->candidate) - (a->candidate < b->candidate);
}

/* Those of a group that can be at all, in *n places. NULL: out of memory. */
static struct place *order(uint32_t *n, const struct maq_serve_searching *s, uint32_t group)
{
    struct place *places = maq__calloc((s->out->n + 1) * sizeof *places);
    *n = 0;
    for (uint32_t i = 0; places && i < s->out->n; i++) {
        const struct maq_serve_candidate *c = &s->out->candidates[i];
        if (c->group != group || c->verdict != MAQ_SERVE_VERDICT_OPEN)
            continue;
        double likely = promise(s, c, c->likely_per_s);
        /* of equal promises the one with less work on its way to it */
        places[(*n)++] = (struct place){isinf(likely) ? -1e18 / c->likely_per_s : likely, i};
    }
    if (places)
        qsort(places, *n, sizeof *places, by_promise);
    return places;
}

/* ---- rounds ---- */

struct round {
    const struct maq_serve_searching *s;
    uint32_t candidates[ROUND];
    enum maq_status status[ROUND];
};

static bool look(void *user, uint32_t i, struct maq_arena *scratch)
{
    struct round *r = user;
    (void)scratch;
    r->status[i] = maq_serve_look_into(r->s, &r->s->out->candidates[r->candidates[i]]);
    return r->status[i] != MAQ_NO_MEMORY;
}

static bool is_better(const struct maq_serve_searching *s, const struct maq_serve_candidate *c)
{
    if (c->rate <= 0 || s->best == UINT32_MAX)
        return c->rate > 0;
    if (s->rate <= 0)
        return c->rate > s->best_carried;
    double gpus = (double)c->replicas * c->gpus;
    return gpus < s->best_gpus || (gpus <= s->best_gpus && c->slack < s->best_slack);
}

static enum maq_status finish(struct maq_serve_searching *s, const struct round *r, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct maq_serve_candidate *c = &s->out->candidates[r->candidates[i]];
        if (r->status[i] == MAQ_NO_MEMORY)
            return r->status[i];
        if (r->status[i] != MAQ_OK && c->rate <= 0) { /* a request that it can never serve */
            c->verdict = MAQ_SERVE_VERDICT_UNFIT;
            continue;
        }
        s->out->runs += c->runs;
        if (!is_better(s, c))
            continue;
        s->best = r->candidates[i];
        s->best_carried = c->rate;
        s->best_gpus = (double)c->replicas * c->gpus;
        s->best_slack = c->slack;
    }
    return MAQ_OK;
}

enum maq_status maq_serve_search_group(struct maq_serve_searching *s, uint32_t group)
{
    uint32_t n, done = 0;
    struct place *places = order(&n, s, group);
    enum maq_status status = places ? MAQ_OK : MAQ_NO_MEMORY;
    s->best = UINT32_MAX;
    while (status == MAQ_OK && done < n) {
        struct round r = {.s = s};
        uint32_t k = 0;
        if (s->opts->stop && *s->opts->stop) {
            s->out->complete = false;
            break;
        }
        for (; done < n && k < (s->best == UINT32_MAX ? FIRST_ROUND : ROUND); done++) {
            struct maq_serve_candidate *c = &s->out->candidates[places[done].candidate];
            if (bounded(s, c))
                c->verdict = MAQ_SERVE_VERDICT_BOUNDED;
            else
                r.candidates[k++] = places[done].candidate;
        }
        if (!maq_parallel_run(look, &r, 0, k, s->opts->threads))
            status = MAQ_NO_MEMORY;
        if (status == MAQ_OK)
            status = finish(s, &r, k);
        if (s->opts->progress)
            s->opts->progress(s->opts->context, done, n);
    }
    free(places);
    if (s->best != UINT32_MAX)
        s->out->candidates[s->best].verdict = MAQ_SERVE_VERDICT_BEST;
    return status;
}

/* ---- requests ---- */

/* So many that they come for STAYS times as long as one stays with the candidate that promises most. */
static uint32_t enough(const struct maq_serve_searching *s)
{
    double most = 0, best = -1;
    for (uint32_t i = 0; i < s->out->n; i++) {
        const struct maq_serve_candidate *c = &s->out->candidates[i];
        double per_gpu = c->likely_per_s / (c->gpus > 0 ? c->gpus : 1);
        if (c->verdict != MAQ_SERVE_VERDICT_OPEN || per_gpu <= best)
            continue;
        best = per_gpu;
        most = (s->rate > 0 ? s->rate : c->likely_per_s) * c->stay_s;
    }
    return (uint32_t)fmin(fmax(STAYS * most, LEAST_REQUESTS), MOST_REQUESTS);
}

static uint32_t how_many(const struct maq_serve_searching *s)
{
    const struct maq_request_spec *spec = s->opts->spec;
    if (spec->n > 0)
        return spec->n;
    if (spec->duration_s > 0 && s->opts->rate > 0)
        return (uint32_t)fmax(2, fmin(spec->duration_s * s->opts->rate, 1e8));
    return enough(s);
}

/* Of a file the first are not like all. */
static uint32_t first_of(const struct maq_serve_searching *s, uint32_t n)
{
    double first = fmax(n * FIRST_STAYS / STAYS, LEAST_FIRST);
    return s->opts->requests || first > n ? n : (uint32_t)first;
}

static enum maq_status draw(struct maq_request_set **out, const struct maq_serve_search_opts *opts, uint32_t n,
                            double rate, struct maq_diag *diag)
{
    struct maq_request_spec spec = *opts->spec;
    spec.n = n;
    spec.rate = rate;
    spec.concurrency = 0;
    return maq_requests_generate(out, &spec, diag);
}

/* Lengths are known from a few requests; how many there are to be, only once that is. */
static enum maq_status ask(struct maq_serve_searching *s, struct maq_diag *diag)
{
    struct maq_request_set *few = NULL;
    if (!s->opts->requests)
        MAQ_TRY(draw(&few, s->opts, LEAST_REQUESTS, 1, diag));
    bool ok = maq_serve_ask(&s->asked, few ? maq_requests_get(few) : s->opts->requests, s->opts->slo);
    maq_requests_free(few);
    return ok ? MAQ_OK : maq_no_memory(diag, "requests");
}

static enum maq_status stream(struct maq_serve_searching *s, struct maq_diag *diag)
{
    struct maq_serve_owner *owner = s->out->owner;
    s->stream = s->opts->requests;
    if (!s->stream) {
        MAQ_TRY(draw(&owner->drawn, s->opts, how_many(s), s->opts->rate > 0 ? s->opts->rate : 1, diag));
        s->stream = maq_requests_get(owner->drawn);
    }
    s->out->n_requests = s->stream->n;
    s->first = first_of(s, s->stream->n);
    s->lenient = *s->opts->slo;
    for (uint32_t i = 0; i < s->lenient.n && s->first < s->stream->n; i++)
        s->lenient.at[i].limit.most_s *= BY_MUCH;
    return MAQ_OK;
}

/* ---- all ---- */

static enum maq_status check(const struct maq_serve_search_result *r, struct maq_diag *diag)
{
    const char *why = "the degrees (tp x pp x dp) do not go together with the devices of any node group";
    for (uint32_t i = 0; i < r->n; i++) {
        if (r->candidates[i].verdict != MAQ_SERVE_VERDICT_IMPOSSIBLE)
            return MAQ_OK;
        why = i == 0 ? r->candidates[i].why : why;
    }
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_EMPTY, (struct maq_span){0}, NULL,
                         "no deployment is possible: %s", why);
}

/* What a group carries at the most, where it does not carry the rate. */
static enum maq_status search_most(struct maq_serve_searching *s, uint32_t group)
{
    double rate = s->rate;
    for (uint32_t i = 0; i < s->out->n; i++) {
        struct maq_serve_candidate *c = &s->out->candidates[i];
        if (c->group == group && (c->verdict == MAQ_SERVE_VERDICT_BOUNDED || c->verdict == MAQ_SERVE_VERDICT_MISSED))
            c->verdict = MAQ_SERVE_VERDICT_OPEN;
    }
    struct maq_requests fewer = *s->stream;
    const struct maq_requests *all = s->stream;
    s->rate = 0;
    if (!s->opts->requests && s->opts->spec->n == 0 && enough(s) < fewer.n) /* one replica has its part of them */
        fewer.n = enough(s);
    uint32_t first = s->first;
    s->first = first_of(s, fewer.n);
    s->stream = &fewer;
    enum maq_status status = maq_serve_search_group(s, group);
    s->stream = all;
    s->first = first;
    s->rate = rate;
    return status;
}

static enum maq_status search_groups(struct maq_serve_searching *s, uint32_t *bests, uint32_t groups)
{
    for (uint32_t g = 0; g < groups; g++) {
        MAQ_TRY(maq_serve_search_group(s, g));
        if (s->best == UINT32_MAX && s->rate > 0)
            MAQ_TRY(search_most(s, g));
        bests[g] = s->best;
    }
    return maq_serve_compose(s, bests, groups);
}

/* With replicas that share a stream, as many for each of them as one had alone. */
static void count_all(struct maq_serve_search_result *r, const struct maq_serve_search_opts *opts)
{
    double n = r->n_requests;
    for (uint32_t i = 0; i < r->n_fleet && opts->rate <= 0; i++)
        n = i == 0 ? n * r->fleet[i].replicas : n + (double)r->n_requests * r->fleet[i].replicas;
    r->n_all = (uint32_t)fmin(n, fmax(ALL_REQUESTS, r->n_requests));
}

static enum maq_status search(struct maq_serve_searching *s, const struct maq_loaded_job *open, struct maq_diag *diag)
{
    struct maq_serve_owner *owner = s->out->owner;
    uint32_t groups = maq_job_get(open)->cluster.n_groups;
    uint32_t *bests = MAQ_ARENA_NEW(&owner->arena, uint32_t, groups);
    if (!bests)
        return maq_no_memory(diag, "a search");
    MAQ_TRY(maq_serve_list(s->out, open, s->opts, &owner->arena, diag));
    MAQ_TRY(ask(s, diag));
    MAQ_TRY(maq_serve_bound(s->out->candidates, s->out->n, &s->asked, s->opts->threads, diag));
    MAQ_TRY(check(s->out, diag));
    MAQ_TRY(stream(s, diag));
    s->out->complete = true;
    enum maq_status status = search_groups(s, bests, groups);
    count_all(s->out, s->opts);
    if (status == MAQ_OK && !s->opts->no_pools && s->asked.load.output > 2)
        status = maq_serve_try_pools(s, groups);
    if (status != MAQ_OK)
        return maq_no_memory(diag, "a search");
    for (uint32_t i = 0; i < s->out->n; i++)
        s->out->counts[s->out->candidates[i].verdict]++;
    return MAQ_OK;
}

enum maq_status maq_serve_search(struct maq_serve_search_result **out, const struct maq_loaded_job *open,
                                 const struct maq_serve_search_opts *opts, struct maq_diag *diag)
{
    struct maq_serve_search_result *r = maq__calloc(sizeof *r);
    struct maq_serve_owner *owner = maq__calloc(sizeof *owner);
    struct maq_serve_searching s = {.out = r, .opts = opts, .rate = opts->rate};
    if (!r || !owner) {
        free(r);
        free(owner);
        return maq_no_memory(diag, "a search");
    }
    maq_arena_init(&owner->arena, 0);
    r->owner = owner;
    enum maq_status status = search(&s, open, diag);
    if (status != MAQ_OK) {
        maq_serve_search_free(r);
        return status;
    }
    *out = r;
    return MAQ_OK;
}

void maq_serve_search_free(struct maq_serve_search_result *r)
{
    if (!r)
        return;
    struct maq_serve_owner *owner = r->owner;
    maq_requests_free(owner->drawn);
    maq_arena_fini(&owner->arena);
    free(owner);
    free(r->candidates);
    free(r->fleet);
    free(r->front);
    free(r);
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

enum maq_status maq_serve_search_requests(struct maq_request_set **out, const struct maq_serve_search_result *r,
                                          const struct maq_serve_search_opts *opts, struct maq_diag *diag)
{
    struct maq_request_set *set, *drawn = NULL;
    if (!opts->requests)
        MAQ_TRY(draw(&drawn, opts, r->n_all, 1, diag));
    const struct maq_requests *q = drawn ? maq_requests_get(drawn) : opts->requests;
    double span = q->at[q->n - 1].arrival_s - q->at[0].arrival_s, faster = r->rate * span / (q->n - 1.0);
    bool ok = (set = maq_request_set_new()) != NULL;
    for (uint32_t i = 0; ok && i < q->n; i++) {
        struct maq_request *at = maq_request_set_add(set);
        ok = at != NULL;
        if (!at)
            break;
        *at = q->at[i];
        at->arrival_s = (q->at[i].arrival_s - q->at[0].arrival_s) / (faster > 0 ? faster : 1);
    }
    maq_requests_free(drawn);
    if (!ok) {
        maq_requests_free(set);
        return maq_no_memory(diag, "requests");
    }
    maq_request_set_close(set);
    set->requests.prefix_unit = q->prefix_unit;
    *out = set;
    return MAQ_OK;
}
