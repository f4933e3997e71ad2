/* SPDX-License-Identifier: Apache-2.0 */
/*
 * front.c - throughput against latency: tokens a second that a GPU generates, and that a user sees.
 *
 * No rate and no bound takes part. All candidates with their engine's own limits at 1, 2, 4, ... requests in an iteration are placed by the
 * closed form; those that no other beats in both are simulated, with so many requests under way at all times.
 */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/threads.h"
#include "planner/serve/searching.h"

#define TIMES 10u /* requests of a simulation for each that is under way */
#define LEAST_REQUESTS 20u
#define MOST_REQUESTS 4096u

struct points {
    struct maq_serve_front_point *at;
    uint32_t n, size;
};

static bool add_points(struct points *p, const struct maq_serve_search_result *r, uint32_t candidate,
                       struct maq_deployment *d, const struct maq_steady_load *load, struct maq_pass_batch *ranks)
{
    for (uint32_t batch = 1; batch < MOST_REQUESTS; batch *= 2) {
        struct maq_steady s;
        maq_steady_at(&s, d, load, batch, ranks);
        if (!s.held)
            return true;
        if (!maq__grow((void **)&p->at, &p->size, p->n, sizeof *p->at))
            return false;
        p->at[p->n++] = (struct maq_serve_front_point){.candidate = candidate,
                                                       .concurrency = s.concurrent,
                                                       .tokens_per_s_per_gpu = s.likely_per_s * load->output /
                                                                               r->candidates[candidate].gpus,
                                                       .tokens_per_s_per_user = 1 / s.likely_s};
    }
    return true;
}

/* The fastest for a user first; of equal ones, that with more of the other. */
static int by_user(const void *x, const void *y)
{
    const struct maq_serve_front_point *a = x, *b = y;
    if (a->tokens_per_s_per_user < b->tokens_per_s_per_user || a->tokens_per_s_per_user > b->tokens_per_s_per_user)
        return a->tokens_per_s_per_user < b->tokens_per_s_per_user ? 1 : -1;
    if (a->tokens_per_s_per_gpu < b->tokens_per_s_per_gpu || a->tokens_per_s_per_gpu > b->tokens_per_s_per_gpu)
        return a->tokens_per_s_per_gpu < b->tokens_per_s_per_gpu ? 1 : -1;
    if (a->candidate != b->candidate)
        return a->candidate < b->candidate ? -1 : 1;
    return (a->concurrency > b->concurrency) - (a->concurrency < b->concurrency);
}

static void keep_unbeaten(struct points *p)
{
    double most = 0;
    uint32_t n = 0;
    if (p->n > 0)
        qsort(p->at, p->n, sizeof *p->at, by_user);
    for (uint32_t i = 0; i < p->n; i++)
        if (p->at[i].tokens_per_s_per_gpu > most) {
            most = p->at[i].tokens_per_s_per_gpu;
            p->at[n++] = p->at[i];
        }
    p->n = n;
}

/* ---- simulated ---- */

struct simulation {
    const struct maq_serve_search_result *result;
    const struct maq_serve_search_opts *opts;
    struct points *points;
};

static enum maq_status run_with(struct maq_serve_front_point *p, const struct maq_serve_candidate *c,
                                const struct maq_requests *requests)
{
    struct maq_serve_result *r;
    MAQ_ASSERT(requests);
    struct maq_requests q = *requests;
    q.concurrency = p->concurrency;
    q.n = q.n < TIMES * p->concurrency ? q.n : TIMES * p->concurrency;
    MAQ_TRY(maq_serve_run(&r, c->job, &c->options, &q, NULL));
    p->tokens_per_s_per_gpu = r->output_tokens_per_s / c->gpus;
    p->tokens_per_s_per_user = r->tpot_s.mean > 0 ? 1 / r->tpot_s.mean : 0;
    p->ttft_s = r->ttft_s.mean;
    maq_serve_free(r);
    return MAQ_OK;
}

static bool simulate(void *user, uint32_t i, struct maq_arena *scratch)
{
    const struct simulation *s = user;
    struct maq_serve_front_point *p = &s->points->at[i];
    const struct maq_serve_candidate *c = &s->result->candidates[p->candidate];
    struct maq_request_set *drawn = NULL;
    struct maq_request_spec spec = *s->opts->spec;
    (void)scratch;
    spec.rate = 0;
    spec.n = TIMES * p->concurrency < LEAST_REQUESTS ? LEAST_REQUESTS : TIMES * p->concurrency;
    spec.n = spec.n < MOST_REQUESTS ? spec.n : MOST_REQUESTS;
    enum maq_status status = s->opts->requests ? MAQ_OK : maq_requests_generate(&drawn, &spec, NULL);
    if (status == MAQ_OK)
        status = run_with(p, c, drawn ? maq_requests_get(drawn) : s->opts->requests);
    if (status != MAQ_OK) /* requests that it cannot serve: no point of it */
        p->tokens_per_s_per_gpu = 0;
    maq_requests_free(drawn);
    return status != MAQ_NO_MEMORY;
}

/* ---- all ---- */

static enum maq_status list_points(struct points *p, const struct maq_serve_search_result *r,
                                   const struct maq_steady_load *load, struct maq_arena *scratch)
{
    enum maq_status status = MAQ_OK;
    for (uint32_t i = 0; i < r->n && status == MAQ_OK; i++) {
        const struct maq_serve_candidate *c = &r->candidates[i];
        struct maq_deployment d;
        if (!c->own_limits || c->verdict == MAQ_SERVE_VERDICT_IMPOSSIBLE || c->verdict == MAQ_SERVE_VERDICT_UNFIT)
            continue;
        status = maq_serve_passes(&d, c, 1, NULL);
        struct maq_pass_batch *ranks = MAQ_ARENA_NEW(scratch, struct maq_pass_batch, (size_t)(c->options.dp + 1));
        if (status == MAQ_OK && (!ranks || !add_points(p, r, i, &d, load, ranks)))
            status = MAQ_NO_MEMORY;
        maq_deployment_fini(&d);
    }
    return status;
}

enum maq_status maq_serve_front(struct maq_serve_search_result *r, const struct maq_serve_search_opts *opts,
                                struct maq_diag *diag)
{
    struct points p = {0};
    struct maq_serve_asked asked;
    const struct maq_serve_owner *owner = r->owner;
    struct simulation s = {r, opts, &p};
    struct maq_arena scratch;
    const struct maq_requests *q = opts->requests ? opts->requests : maq_requests_get(owner->drawn);
    maq_arena_init(&scratch, 0);
    enum maq_status status = maq_serve_ask(&asked, q, opts->slo) ? MAQ_OK : MAQ_NO_MEMORY;
    if (status == MAQ_OK)
        status = list_points(&p, r, &asked.load, &scratch);
    maq_arena_fini(&scratch);
    keep_unbeaten(&p);
    if (status == MAQ_OK && !maq_parallel_run(simulate, &s, 0, p.n, opts->threads))
        status = MAQ_NO_MEMORY;
    keep_unbeaten(&p);
    if (status != MAQ_OK) {
        free(p.at);
        return maq_no_memory(diag, "a front");
    }
    free(r->front);
    r->front = p.at;
    r->n_front = p.n;
    return MAQ_OK;
}
