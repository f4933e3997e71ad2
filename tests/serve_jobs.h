/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_jobs.h - what tests of serving have in common: deployments, runs of them, requests and options by chance, equal outcomes. To be included after
 * cmocka's header.
 */
#ifndef MAQ_TESTS_SERVE_JOBS_H
#define MAQ_TESTS_SERVE_JOBS_H

#include <math.h>

#include "base/str.h"
#include "maquette/serve.h"
#include "random_draws.h"

static inline struct maq_loaded_job *load(const char *model, const char *cluster, const char *plan, int devices)
{
    char text[512];
    struct maq_loaded_job *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    snprintf(text, sizeof text,
             "{model: %s, cluster: '%s', plan: {micro_batch_size: 1%s}, workload: {global_batch_size: %d}}", model,
             cluster, plan, devices);
    if (maq_job_parse(&box, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return box;
}

static inline struct maq_serve_result *serve(const struct maq_loaded_job *job, const struct maq_serve_options *o,
                                             const struct maq_requests *q)
{
    struct maq_serve_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_serve_run(&r, maq_job_get(job), o, q, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

/* Iterations with prompts in them, by their numbers, and how many; maq_serve_options.watch = see_prefills, .watch_user = one of these. */
struct seen_prefills {
    uint64_t at[32];
    uint32_t prompts[32], n;
};

static inline void see_prefills(const struct maq_serve_iteration *it, void *user)
{
    struct seen_prefills *seen = user;
    if (it->prompts > 0 && seen->n < sizeof seen->at / sizeof *seen->at) {
        seen->prompts[seen->n] = it->prompts;
        seen->at[seen->n++] = it->number;
    }
}

/* The same of a run without a front end, in which all requests end. */
static inline struct seen_prefills serve_seen(const struct maq_loaded_job *job, struct maq_serve_options o,
                                              const struct maq_requests *q)
{
    struct seen_prefills seen = {.n = 0};
    o.front_end = MAQ_FRONT_END_NONE;
    o.watch = see_prefills;
    o.watch_user = &seen;
    struct maq_serve_result *r = serve(job, &o, q);
    assert_int_equal(r->finished, q->n);
    maq_serve_free(r);
    return seen;
}

static inline void expect_close(double got, double want, double tolerance, const char *what)
{
    if (!(fabs(got - want) <= tolerance * fabs(want)))
        fail_msg("%s: got %.12g, want %.12g", what, got, want);
}

/* ---- by chance ---- */

static inline struct maq_requests draw_requests(struct maq_request *list, uint32_t n, uint64_t *draws)
{
    static const uint64_t names[] = {3, 1, 4, 1, 5, 9, 2, 6};
    double at = 0, gap = draw(draws, 0, 1) ? 0.01 : uniform(draws, 0, 0.3);
    uint32_t most_in = draw(draws, 0, 1) ? 100 : draw(draws, 2, 3000), most_out = draw(draws, 1, 1500);
    for (uint32_t i = 0; i < n; i++) {
        list[i] = (struct maq_request){.arrival_s = at,
                                       .prompt = draw(draws, 1, most_in),
                                       .output = draw(draws, 1, most_out),
                                       .priority = (int32_t)draw(draws, 0, 2)};
        list[i].prefix = names + draw(draws, 0, 1);
        uint32_t whole = (uint32_t)list[i].prompt / 256, named = draw(draws, 0, 7);
        list[i].n_prefix = named < whole ? named : whole;
        at += draw(draws, 0, 3) ? uniform(draws, 0, 2) * gap : 0;
    }
    return (struct maq_requests){
        .at = list, .n = n, .prefix_unit = 256, .concurrency = draw(draws, 0, 2) ? 0 : draw(draws, 1, 20)};
}

static inline void expect_same(const struct maq_serve_result *a, const struct maq_serve_result *b, double tolerance)
{
    assert_int_equal(a->n_requests, b->n_requests);
    for (uint32_t i = 0; i < a->n_requests; i++) {
        const struct maq_served *x = &a->served[i], *y = &b->served[i];
        if (fabs(x->last_s - y->last_s) > tolerance || fabs(x->first_s - y->first_s) > tolerance ||
            fabs(x->scheduled_s - y->scheduled_s) > tolerance || fabs(x->arrival_s - y->arrival_s) > tolerance)
            fail_msg("request %u: %.9f %.9f %.9f and %.9f %.9f %.9f", i, x->scheduled_s, x->first_s, x->last_s,
                     y->scheduled_s, y->first_s, y->last_s);
        assert_int_equal(x->cached, y->cached);
        assert_int_equal(x->preemptions, y->preemptions);
    }
    assert_int_equal(a->iterations, b->iterations);
    assert_int_equal(a->preemptions, b->preemptions);
    expect_close(a->busy_s, b->busy_s, 1e-9, "busy");
    expect_close(a->mean_batch, b->mean_batch, 1e-9, "requests of an iteration");
    expect_close(a->kv_mean, b->kv_mean, 1e-6, "mean share of blocks");
    expect_close(a->kv_peak, b->kv_peak, 1e-9, "largest share of blocks");
    expect_close(a->itl_s.mean, b->itl_s.mean, 1e-9, "ITL");
    expect_close(a->itl_s.p95, b->itl_s.p95, 1e-9, "p95 of ITL");
    expect_close(a->ttft_s.p50, b->ttft_s.p50, 1e-9, "p50 of TTFT");
}

/*
 * Iterations at once have the outcome of one by one, within `tolerance`, in which all requests end; 0: to the bit. The first of the two, and the other
 * where it is asked for.
 */
static inline struct maq_serve_result *serve_both_ways(struct maq_serve_result **one_by_one,
                                                       const struct maq_loaded_job *job, struct maq_serve_options o,
                                                       const struct maq_requests *q, double tolerance)
{
    struct maq_serve_result *a = serve(job, &o, q);
    o.one_by_one = true;
    struct maq_serve_result *b = serve(job, &o, q);
    assert_int_equal(a->finished, q->n);
    expect_same(a, b, tolerance);
    if (tolerance <= 0) {
        assert_memory_equal(a->served, b->served, q->n * sizeof *a->served);
        assert_memory_equal(&a->tiers, &b->tiers, sizeof a->tiers);
    }
    if (one_by_one)
        *one_by_one = b;
    else
        maq_serve_free(b);
    return a;
}

/* Options by chance; `engine` has what only it is told, too. */
static inline struct maq_serve_options draw_options(uint64_t *draws, enum maq_engine engine)
{
    struct maq_serve_options o = {
        .engine = engine,
        .async_scheduling = draw(draws, 0, 1) ? MAQ_ON : MAQ_OFF,
        .max_num_seqs = (int32_t)draw(draws, 1, 40),
        .max_num_batched_tokens = (int32_t)draw(draws, 64, 4096),
        .max_model_len = 8192,
        .block_size = (int32_t)draw(draws, 0, 1) * 32,
        .blocks = draw(draws, 0, 2) ? draw(draws, 600, 900) : 0,
        .no_prefix_caching = draw(draws, 0, 2) == 0,
        .by_priority = draw(draws, 0, 2) == 0,
    };
    if (engine == MAQ_ENGINE_SGLANG) {
        if (o.block_size == 0 && o.blocks > 0)
            o.blocks *= 8; /* pages of a token */
        o.by_priority &= draw(draws, 0, 1) == 0;
        o.sglang = (struct maq_sglang_options){.policy = (uint8_t)draw(draws, 0, MAQ_SGLANG_POLICIES - 1),
                                               .eviction = (uint8_t)draw(draws, 0, MAQ_RADIX_EVICTIONS - 1),
                                               .mixed_chunk = draw(draws, 0, 2) == 0,
                                               .conservativeness = draw(draws, 0, 1) ? 1 : 0.1};
        o.sglang.high_first = o.sglang.policy % 2 == 1;
        o.sglang.preempts_by = o.sglang.eviction % 2; /* those of 0 to 2 do, or are too near to each other */
        if (o.sglang.mixed_chunk && o.max_num_batched_tokens < 256)
            o.max_num_batched_tokens = 256;
    }
    return o;
}

#endif
