/* SPDX-License-Identifier: Apache-2.0 */
/* request_stream.c - the requests of a search: how many they are, of one replica and of a fleet, and those of its answer. */
#include <math.h>

#include "base/check.h"
#include "planner/codes.h"
#include "planner/serve/searching.h"
#include "serve/request/set.h"

/* Requests come for so many times as long as one stays: in a shorter run most find the fleet emptier than it will be, and that it cannot keep up
 * shows late. Those that miss their bounds by much do so in the first of them. */
#define STAYS 20.0
#define FIRST_STAYS 5.0
#define LEAST_REQUESTS 1000u
#define LEAST_FIRST 250u
#define BY_MUCH 1.1
#define MOST_REQUESTS 20000u
#define ALL_REQUESTS 100000.0 /* of all replicas together */

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

enum maq_status maq_serve_ask_stream(struct maq_serve_searching *s, struct maq_diag *diag)
{
    struct maq_request_set *few = NULL;
    if (!s->opts->requests)
        MAQ_TRY(draw(&few, s->opts, LEAST_REQUESTS, 1, diag));
    bool ok = maq_serve_ask(&s->asked, few ? maq_requests_get(few) : s->opts->requests, s->opts->slo);
    maq_requests_free(few);
    return ok ? MAQ_OK : maq_no_memory(diag, "requests");
}

enum maq_status maq_serve_stream(struct maq_serve_searching *s, struct maq_diag *diag)
{
    struct maq_serve_owner *owner = s->out->owner;
    s->stream = s->opts->requests;
    if (!s->stream) {
        MAQ_TRY(draw(&owner->drawn, s->opts, how_many(s), s->opts->rate > 0 ? s->opts->rate : 1, diag));
        s->stream = maq_requests_get(owner->drawn);
    }
    if (s->stream->n < 2)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_VALUE, (struct maq_span){0}, "--num-requests 1000",
                             "one request has no rate");
    s->out->n_requests = s->stream->n;
    s->first = first_of(s, s->stream->n);
    s->lenient = *s->opts->slo;
    for (uint32_t i = 0; i < s->lenient.n && s->first < s->stream->n; i++)
        s->lenient.at[i].limit.most_s *= BY_MUCH;
    return MAQ_OK;
}

void maq_serve_shorten(struct maq_serve_searching *s, struct maq_requests *fewer)
{
    if (!s->opts->requests && s->opts->spec->n == 0 && enough(s) < fewer->n)
        fewer->n = enough(s);
    s->first = first_of(s, fewer->n);
    s->stream = fewer;
}

void maq_serve_count_stream(struct maq_serve_search_result *r, const struct maq_serve_search_opts *opts)
{
    double n = r->n_requests;
    for (uint32_t i = 0; i < r->n_fleet && opts->rate <= 0; i++)
        n = i == 0 ? n * r->fleet[i].replicas : n + (double)r->n_requests * r->fleet[i].replicas;
    r->n_all = (uint32_t)fmin(n, fmax(ALL_REQUESTS, r->n_requests));
}

enum maq_status maq_serve_search_requests(struct maq_request_set **out, const struct maq_serve_search_result *r,
                                          const struct maq_serve_search_opts *opts, struct maq_diag *diag)
{
    struct maq_request_set *set, *drawn = NULL;
    if (!opts->requests)
        MAQ_TRY(draw(&drawn, opts, r->n_all, 1, diag));
    const struct maq_requests *q = drawn ? maq_requests_get(drawn) : opts->requests;
    MAQ_ASSERT(q);
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
    uint32_t unit = q->prefix_unit;
    maq_requests_free(drawn);
    if (!ok) {
        maq_requests_free(set);
        return maq_no_memory(diag, "requests");
    }
    maq_request_set_close(set);
    set->requests.prefix_unit = unit;
    *out = set;
    return MAQ_OK;
}
