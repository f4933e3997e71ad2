/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - all candidates, in the order of what the closed form promises, a few at a time against the best so far.
 *
 * A round is of as many whatever the number of threads, and all of a round are held against the same best: so the result does not depend
 * on who is done first.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/threads.h"
#include "planner/codes.h"
#include "planner/serve/fleet.h"
#include "planner/serve/pools.h"
#include "planner/serve/spare_replicas.h"

#define ROUND 4u
#define FIRST_ROUND 2u /* those that have nothing to be compared with take longer */
/* ---- which first ---- */

/* Of the node group all together, by a closed form of one replica: requests a second, or with a rate fewer GPUs, which is more. */
static double promise(const struct maq_serve_searching *s, const struct maq_serve_candidate *c, double per_s,
                      uint32_t replicas)
{
    if (s->rate <= 0)
        return c->counted_on > 0 ? per_s * c->counted_on : -(double)INFINITY;
    return replicas > 0 ? -(double)replicas * c->gpus : -(double)INFINITY;
}

/* Whether a candidate cannot be as good as the best so far. */
static bool bounded(const struct maq_serve_searching *s, const struct maq_serve_candidate *c)
{
    double at_most = promise(s, c, c->most_per_s * MAQ_SERVE_SEARCH_MARGIN, c->least_replicas);
    if (s->opts->exhaustive)
        return c->counted_on == 0;
    if (s->best == UINT32_MAX || isinf(at_most))
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
        double likely = promise(s, c, c->likely_per_s, c->likely_replicas);
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
    double gpus = (double)c->with_spares * c->gpus;
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
        s->best_gpus = (double)c->with_spares * c->gpus;
        s->best_slack = c->slack;
        s->best_first_slack = c->first_slack;
    }
    return MAQ_OK;
}

/* The best candidate of a node group; s->best and what goes with it. */
static enum maq_status search_group(struct maq_serve_searching *s, uint32_t group)
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
    uint32_t first = s->first;
    s->rate = 0;
    maq_serve_shorten(s, &fewer);
    enum maq_status status = search_group(s, group);
    s->stream = all;
    s->first = first;
    s->rate = rate;
    return status;
}

static enum maq_status search_groups(struct maq_serve_searching *s, uint32_t *bests, uint32_t groups)
{
    for (uint32_t g = 0; g < groups; g++) {
        MAQ_TRY(search_group(s, g));
        if (s->best == UINT32_MAX && s->rate > 0)
            MAQ_TRY(search_most(s, g));
        bests[g] = s->best;
    }
    return maq_serve_compose(s, bests, groups);
}

static enum maq_status search(struct maq_serve_searching *s, const struct maq_loaded_job *open, struct maq_diag *diag)
{
    struct maq_serve_owner *owner = s->out->owner;
    uint32_t groups = maq_job_get(open)->cluster.n_groups;
    uint32_t *bests = MAQ_ARENA_NEW(&owner->arena, uint32_t, groups);
    if (!bests)
        return maq_no_memory(diag, "a search");
    MAQ_TRY(maq_serve_list(s->out, open, s->opts, &owner->arena, diag));
    MAQ_TRY(maq_serve_ask_stream(s, diag));
    MAQ_TRY(maq_serve_bound(s->out->candidates, s->out->n, &s->asked, s->opts->threads, diag));
    MAQ_TRY(check(s->out, diag));
    MAQ_TRY(maq_serve_reserve_all(s, diag));
    MAQ_TRY(maq_serve_stream(s, diag));
    s->out->complete = true;
    enum maq_status status = search_groups(s, bests, groups);
    maq_serve_count_stream(s->out, s->opts);
    if (status == MAQ_OK && !s->opts->no_pools && s->asked.load.output > 2)
        status = maq_serve_try_pools(s, groups);
    if (status == MAQ_OK)
        status = maq_serve_confirm(s->out, s->opts);
    if (status != MAQ_OK)
        return maq_no_memory(diag, "a search");
    if (s->out->n_fleet == 0 && s->out->complete)
        maq_serve_find_nearest(s);
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
