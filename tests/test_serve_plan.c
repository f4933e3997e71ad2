/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_plan.c - the best deployment.
 *
 * What the search says is held against simulating: no candidate carries more than its closed form, none that is drawn by chance beats the
 * winner, and the answer is that of simulating every candidate. A run that gives up would have missed its bounds.
 *
 * maq-test: long
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "effort.h"
#include "maquette/serve_planner.h"
#include "serve/fleet/rate_trial.h"
#include "serve_jobs.h"

#define SMALLER EFFORT(4u, 2u, 1u)

static struct maq_loaded_job *load_open(const char *model, const char *cluster, const char *plan)
{
    char text[512];
    struct maq_loaded_job *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    snprintf(text, sizeof text, "{model: %s, cluster: '%s', plan: {%s}, workload: {global_batch_size: 1}}", model,
             cluster, plan);
    if (maq_job_parse_open(&box, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return box;
}

static struct maq_serve_search_result *search(const struct maq_loaded_job *open,
                                              const struct maq_serve_search_opts *opts)
{
    struct maq_serve_search_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_serve_search(&r, open, opts, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

static struct maq_slo bounds(const char *text)
{
    struct maq_slo slo = {0};
    if (*text)
        assert_int_equal(maq_slo_read(&slo, text, NULL), MAQ_OK);
    return slo;
}

/* ---- the closed form ---- */

struct scene {
    const char *model, *cluster, *slo;
    int64_t prompt, output;
    double spread;
    enum maq_engine engine;
    enum maq_weights weights;
};

static const struct scene scenes[] = {
    {"llama-3.1-8b", "h100-sxm:8", "ttft_p95<500ms, tpot_p95<15ms", 500, 50, 0, MAQ_ENGINE_VLLM, MAQ_WEIGHTS_BF16},
    {"llama-3.1-8b", "a100-sxm:4", "tpot_mean<30ms, ttft_mean<1s", 300, 60, 0.8, MAQ_ENGINE_VLLM, MAQ_WEIGHTS_BF16},
    {"llama-3.1-70b", "h100-sxm:8", "ttft_p90<2s, tpot_p95<60ms", 1000, 40, 0, MAQ_ENGINE_VLLM, MAQ_WEIGHTS_FP8},
    {"llama-3.1-70b", "h200-sxm:8", "ttft_p95<2s", 700, 30, 0.5, MAQ_ENGINE_SGLANG, MAQ_WEIGHTS_FP8},
    {"qwen3-30b-a3b", "h100-sxm:4", "tpot_p95<40ms, ttft_mean<1s", 500, 50, 0.2, MAQ_ENGINE_VLLM, MAQ_WEIGHTS_BF16},
    {"llama-3.1-8b", "h100-sxm:2", "", 2000, 20, 0, MAQ_ENGINE_TRTLLM, MAQ_WEIGHTS_BF16},
};

struct setting {
    struct maq_loaded_job *open;
    struct maq_serve_options options;
    struct maq_request_spec spec;
    struct maq_slo slo;
    struct maq_serve_search_opts opts;
};

/* Few limits, for the time that it takes. */
static const char *const limits[] = {"max-num-seqs=default,32", "max-num-batched-tokens=default,2048"};

static void begin(struct setting *out, const struct scene *s)
{
    out->open = load_open(s->model, s->cluster, "");
    out->options = (struct maq_serve_options){.engine = s->engine, .weights = s->weights, .expert_weights = s->weights};
    out->spec = (struct maq_request_spec){
        .prompt = s->prompt, .output = s->output, .spread = s->spread, .burstiness = 1, .n = 500};
    out->slo = bounds(s->slo);
    out->opts = (struct maq_serve_search_opts){.options = &out->options,
                                               .lists = limits,
                                               .n_lists = MAQ_COUNT(limits),
                                               .spec = &out->spec,
                                               .slo = &out->slo,
                                               .router = MAQ_ROUTER_LEAST_REQUESTS,
                                               .no_pools = true};
}

/* Whether a replica holds the bounds at a rate, in the search's own stream. */
static bool holds(const struct maq_serve_candidate *c, uint32_t replicas, const struct maq_serve_search_opts *opts,
                  const struct maq_requests *q, double rate)
{
    const struct maq_fleet_member member = {.job = c->job, .options = &c->options, .replicas = replicas};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1, .router = opts->router};
    struct maq_rate_trial t = {.fleet = &fleet, .slo = opts->slo, .draw = q, .tolerance = 0.01};
    assert_int_equal(maq_rate_trial_begin(&t, NULL), MAQ_OK);
    assert_true(maq_rate_try(&t, rate, NULL));
    maq_rate_trial_end(&t);
    return t.low > 0;
}

/* The search's stream, at no rate of its own. Owned by the caller (maq_requests_free). */
static struct maq_request_set *stream_of(const struct maq_serve_search_opts *opts)
{
    struct maq_request_set *set;
    struct maq_request_spec spec = *opts->spec;
    spec.rate = 1;
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    return set;
}

static void test_nobody_carries_more(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    uint64_t draws = 5;
    for (size_t i = 0; i < MAQ_COUNT(scenes); i += 2) {
        struct setting s;
        begin(&s, &scenes[i]);
        struct maq_serve_search_result *r = search(s.open, &s.opts);
        struct maq_request_set *set = stream_of(&s.opts);
        for (uint32_t tried = 0; tried < 8 / SMALLER;) {
            const struct maq_serve_candidate *c = &r->candidates[draw(&draws, 0, r->n - 1)];
            if (c->most_per_s <= 0)
                continue;
            if (holds(c, 1, &s.opts, maq_requests_get(set), c->most_per_s * MAQ_SERVE_SEARCH_MARGIN))
                fail_msg("%s tp%d pp%d dp%d, %d requests, %d tokens: carries more than %g requests/s", scenes[i].model,
                         c->job->plan.tp, c->job->plan.pp, c->options.dp, c->options.max_num_seqs,
                         c->options.max_num_batched_tokens, c->most_per_s);
            tried++;
        }
        maq_requests_free(set);
        maq_serve_search_free(r);
        maq_job_free(s.open);
    }
}

/* ---- the winner ---- */

/* None of 201 that are drawn by chance carries more on all devices. */
static void test_random_ones_are_not_better(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    uint64_t draws = 11;
    for (size_t i = 1; i < MAQ_COUNT(scenes); i += 2) {
        struct setting s;
        begin(&s, &scenes[i]);
        struct maq_serve_search_result *r = search(s.open, &s.opts);
        struct maq_request_set *set = stream_of(&s.opts);
        assert_int_equal(r->n_fleet, 1);
        const struct maq_serve_candidate *best = &r->candidates[r->fleet[0].candidate];
        assert_int_equal(best->verdict, MAQ_SERVE_VERDICT_BEST);
        assert_true(holds(best, 1, &s.opts, maq_requests_get(set), best->rate / best->replicas));
        for (uint32_t tried = 0; tried < 67 / SMALLER;) {
            const struct maq_serve_candidate *c = &r->candidates[draw(&draws, 0, r->n - 1)];
            double room = c->job ? (double)(c->job->cluster.devices / c->gpus) : 0;
            if (c->verdict == MAQ_SERVE_VERDICT_IMPOSSIBLE || c->verdict == MAQ_SERVE_VERDICT_UNFIT)
                continue;
            tried++;
            if (holds(c, 1, &s.opts, maq_requests_get(set), best->rate / room * 1.03))
                fail_msg("%s tp%d pp%d, %d requests, %d tokens (%s) is better than tp%d pp%d", scenes[i].model,
                         c->job->plan.tp, c->job->plan.pp, c->options.max_num_seqs, c->options.max_num_batched_tokens,
                         maq_serve_verdict_name(c->verdict), best->job->plan.tp, best->job->plan.pp);
        }
        maq_requests_free(set);
        maq_serve_search_free(r);
        maq_job_free(s.open);
    }
}

/* Without a rate the fleet carries what all its replicas hold in one stream, which may be less than what each does alone. */
static void test_the_whole_fleet_holds(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    static const struct scene two = {"llama-3.1-8b",  "h100-sxm:2",    "ttft_p95<300ms", 500, 50, 0,
                                     MAQ_ENGINE_VLLM, MAQ_WEIGHTS_BF16};
    struct setting s;
    begin(&s, &two);
    s.spec.n = 3000;
    s.opts.n_lists = 0;
    struct maq_serve_search_result *r = search(s.open, &s.opts);
    assert_true(r->carries && r->n_fleet == 1 && r->fleet[0].replicas == 2);
    const struct maq_serve_candidate *best = &r->candidates[r->fleet[0].candidate];
    assert_true(r->rate > 0 && r->rate < best->rate * 0.99); /* or the case says nothing */
    struct maq_request_set *set = NULL;
    struct maq_fleet_member member;
    struct maq_serve_result *run = NULL;
    struct maq_slo_outcome outcome;
    assert_int_equal(maq_serve_search_requests(&set, r, &s.opts, NULL), MAQ_OK);
    const struct maq_fleet fleet = maq_serve_search_fleet(r, &s.opts, &member);
    assert_int_equal(maq_fleet_run(&run, &fleet, maq_requests_get(set), NULL), MAQ_OK);
    maq_slo_judge(&outcome, &s.slo, run, maq_requests_get(set));
    assert_true(outcome.all_met);
    maq_serve_free(run);
    maq_requests_free(set);
    maq_serve_search_free(r);
    maq_job_free(s.open);
}

/* Where nothing holds, what comes nearest is said: no candidate takes less of its worst bound, and the interval is that of predictions. */
static void test_nearest(void **state)
{
    (void)state;
    static const struct scene one = {"llama-3.1-8b",  "h100-sxm:4",    "ttft_p95<9s, tpot_p95<1ms", 500, 50, 0,
                                     MAQ_ENGINE_VLLM, MAQ_WEIGHTS_BF16};
    struct setting s;
    double fastest = 0;
    begin(&s, &one);
    for (int within = 0; within < 2; within++) {
        struct maq_serve_search_result *r = search(s.open, &s.opts);
        const struct maq_serve_nearest *m = &r->nearest;
        assert_int_equal(r->n_fleet, 0);
        fastest = HUGE_VAL;
        for (uint32_t i = 0; i < r->n; i++)
            if (r->candidates[i].verdict == MAQ_SERVE_VERDICT_SLOW)
                fastest = fmin(fastest, r->candidates[i].token_s);
        assert_int_equal(m->bound.metric, MAQ_SLO_TPOT);
        assert_true(m->value_s == fastest && r->candidates[m->candidate].token_s == fastest);
        double low, high;
        maq_serve_interval(&low, &high, MAQ_SERVE_TPOT);
        assert_true(fabs(m->low_s - low * fastest) < 1e-12 && fabs(m->high_s - high * fastest) < 1e-12);
        assert_int_equal(m->low_s <= m->bound.limit.most_s, within);
        maq_serve_search_free(r);
        s.slo.at[1].limit.most_s = fastest * 0.95;
    }
    s.slo.at[1].limit.most_s = fastest * 10;
    struct maq_serve_search_result *r = search(s.open, &s.opts);
    assert_true(r->n_fleet > 0 && r->nearest.value_s == 0);
    maq_serve_search_free(r);
    maq_job_free(s.open);
}

/* As few GPUs as do: the winner with one replica less does not, nor does any other on fewer GPUs. */
static void test_fewest(void **state)
{
    (void)state;
    uint64_t draws = 7;
    for (size_t i = 0; i < 1; i++) {
        struct setting s;
        begin(&s, &scenes[i]);
        struct maq_serve_search_result *all = search(s.open, &s.opts);
        s.opts.rate = 0.55 * all->rate;
        maq_serve_search_free(all);
        s.spec.n = 0; /* as many as it takes for so many replicas */
        struct maq_serve_search_result *r = search(s.open, &s.opts);
        s.spec.n = r->n_requests;
        struct maq_request_set *set = stream_of(&s.opts);
        const struct maq_requests *q = maq_requests_get(set);
        assert_int_equal(r->n_fleet, 1);
        const struct maq_serve_candidate *best = &r->candidates[r->fleet[0].candidate];
        uint32_t gpus = r->fleet[0].replicas * best->gpus;
        assert_int_equal(gpus, r->gpus);
        assert_true(holds(best, r->fleet[0].replicas, &s.opts, q, s.opts.rate));
        if (r->fleet[0].replicas > 1)
            assert_false(holds(best, r->fleet[0].replicas - 1, &s.opts, q, s.opts.rate));
        for (uint32_t k = 0; k < 10 / SMALLER; k++) {
            const struct maq_serve_candidate *c = &r->candidates[draw(&draws, 0, r->n - 1)];
            if (c->most_per_s > 0 && c->gpus < gpus && holds(c, (gpus - 1) / c->gpus, &s.opts, q, s.opts.rate))
                fail_msg("%u of tp%d pp%d, %d requests, %d tokens (%s: %g, %g requests/s) carry %g",
                         (gpus - 1) / c->gpus, c->job->plan.tp, c->job->plan.pp, c->options.max_num_seqs,
                         c->options.max_num_batched_tokens, maq_serve_verdict_name(c->verdict), c->most_per_s,
                         c->likely_per_s, s.opts.rate);
        }
        maq_requests_free(set);
        maq_serve_search_free(r);
        maq_job_free(s.open);
    }
}

static void expect_same_answer(const struct maq_serve_search_result *a, const struct maq_serve_search_result *b,
                               double tolerance)
{
    assert_int_equal(a->n, b->n);
    assert_int_equal(a->n_fleet, b->n_fleet);
    expect_close(a->rate, b->rate, tolerance, "rate");
    for (uint32_t i = 0; i < a->n && tolerance <= 0; i++) {
        const struct maq_serve_candidate *x = &a->candidates[i], *y = &b->candidates[i];
        assert_int_equal(x->verdict, y->verdict);
        assert_true(x->rate == y->rate && x->most_per_s == y->most_per_s && x->slack == y->slack);
    }
}

/* The same on any number of threads; and by simulating everything, to the tolerance of a rate. */
static void test_same_answer(void **state)
{
    (void)state;
    struct setting s;
    begin(&s, &scenes[0]);
    const char *const lists[] = {"tp=1,2,4", "pp=1,2", SANITIZED ? "max-num-seqs=16" : "max-num-seqs=default,64,16",
                                 "max-num-batched-tokens=default,2048"};
    s.opts.lists = lists;
    s.opts.n_lists = MAQ_COUNT(lists);
    s.opts.threads = 1;
    struct maq_serve_search_result *one = search(s.open, &s.opts);
    s.opts.threads = 5;
    struct maq_serve_search_result *five = search(s.open, &s.opts);
    s.opts.exhaustive = true;
    struct maq_serve_search_result *every = search(s.open, &s.opts);
    assert_int_equal(one->n, SANITIZED ? 12 : 36);
    expect_same_answer(one, five, 0);
    expect_same_answer(one, every, 2 * MAQ_SERVE_SEARCH_TOLERANCE);
    assert_int_equal(every->counts[MAQ_SERVE_VERDICT_BOUNDED], 0);
    assert_true(every->runs > one->runs);
    maq_serve_search_free(one);
    maq_serve_search_free(five);
    maq_serve_search_free(every);
    maq_job_free(s.open);
}

/* ---- node groups ---- */

/* A rate that neither group carries alone takes both; a small one the cheaper of them. */
static void test_two_kinds(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM};
    struct maq_request_spec spec = {.prompt = 500, .output = 25, .burstiness = 1};
    struct maq_slo slo = bounds("ttft_p95<1s, tpot_p95<40ms");
    struct maq_serve_search_opts opts = {.lists = limits,
                                         .n_lists = MAQ_COUNT(limits),
                                         .options = &o,
                                         .spec = &spec,
                                         .slo = &slo,
                                         .router = MAQ_ROUTER_LEAST_REQUESTS,
                                         .no_pools = true};
    struct maq_loaded_job *open = load_open("llama-3.1-8b", "h100-sxm:2 + l40s:4", "tp: 1, pp: 1");
    struct maq_serve_search_result *all = search(open, &opts);
    assert_int_equal(all->n_fleet, 2);
    assert_int_equal(all->gpus, 6);
    const struct maq_serve_candidate *a = &all->candidates[all->fleet[0].candidate],
                                     *b = &all->candidates[all->fleet[1].candidate];
    expect_close(all->rate, a->rate + b->rate, 1e-12, "sum of both");
    double more = a->rate > b->rate ? a->rate : b->rate;
    opts.rate = more + 0.4 * (all->rate - more);
    struct maq_serve_search_result *both = search(open, &opts);
    assert_int_equal(both->n_fleet, 2);
    assert_true(both->gpus < 6);
    opts.rate = 0.2 * b->rate / b->replicas;
    struct maq_serve_search_result *few = search(open, &opts);
    assert_int_equal(few->n_fleet, 1);
    assert_int_equal(few->gpus, 1);
    maq_serve_search_free(all);
    maq_serve_search_free(both);
    maq_serve_search_free(few);
    maq_job_free(open);
}

/* ---- pools ---- */

/* Where tokens have to come quickly and prompts are long, prompts of others delay them: two pools carry more, and a run of them says so. */
static void test_pools(void **state)
{
    (void)state;
    const struct scene scene = {"llama-3.1-8b",  "h100-sxm:4",    "ttft_p95<1s, tpot_p95<9ms", 3000, 60, 0,
                                MAQ_ENGINE_VLLM, MAQ_WEIGHTS_BF16};
    struct setting s;
    begin(&s, &scene);
    struct maq_serve_search_result *whole = search(s.open, &s.opts);
    s.opts.no_pools = false;
    struct maq_serve_search_result *r = search(s.open, &s.opts);
    assert_int_equal(whole->pools_tried, 0);
    assert_true(r->rate > whole->rate * (1 + MAQ_SERVE_SEARCH_TOLERANCE));
    assert_int_equal(r->n_fleet, 2);
    assert_int_equal(r->fleet[0].role, MAQ_ROLE_DECODE);
    assert_int_equal(r->fleet[1].role, MAQ_ROLE_PREFILL);
    assert_true(r->gpus <= 4);
    struct maq_fleet_member members[2];
    struct maq_fleet fleet = maq_serve_search_fleet(r, &s.opts, members);
    struct maq_request_set *set;
    struct maq_serve_result *served;
    struct maq_slo_outcome outcome;
    assert_int_equal(maq_serve_search_requests(&set, r, &s.opts, NULL), MAQ_OK);
    assert_int_equal(maq_fleet_run(&served, &fleet, maq_requests_get(set), NULL), MAQ_OK);
    maq_slo_judge(&outcome, s.opts.slo, served, maq_requests_get(set));
    assert_true(outcome.all_met);
    maq_serve_free(served);
    maq_requests_free(set);
    if (!SANITIZED) {
        s.opts.rate = (r->rate + whole->rate) / 2; /* more than any deployment carries as a whole */
        struct maq_serve_search_result *rate = search(s.open, &s.opts);
        assert_true(rate->carries);
        assert_int_equal(rate->fleet[1].role, MAQ_ROLE_PREFILL);
        maq_serve_search_free(rate);
    }
    maq_serve_search_free(whole);
    maq_serve_search_free(r);
    maq_job_free(s.open);
}

/* Limits of either side are tried: with the engine's own alone, no more is found. */
static void test_limits_of_pools(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    const struct scene scene = {"llama-3.1-8b",  "h100-sxm:8",    "ttft_p95<2s, tpot_p95<9ms", 4000, 60, 0,
                                MAQ_ENGINE_VLLM, MAQ_WEIGHTS_BF16};
    static const char *const lists[] = {"tp=1,2", "pp=1", "max-num-seqs=default,64,128,256",
                                        "max-num-batched-tokens=default,2048,4096"};
    static const char *const own[] = {"tp=1,2", "pp=1", "max-num-seqs=default", "max-num-batched-tokens=default"};
    struct setting s;
    begin(&s, &scene);
    s.opts.no_pools = false;
    s.opts.n_lists = MAQ_COUNT(lists);
    s.opts.lists = own;
    struct maq_serve_search_result *plain = search(s.open, &s.opts);
    s.opts.lists = lists;
    struct maq_serve_search_result *r = search(s.open, &s.opts);
    assert_int_equal(plain->n_fleet, 2);
    assert_int_equal(r->n_fleet, 2);
    assert_true(r->rate >= plain->rate);
    assert_true(r->pools_tried > plain->pools_tried);
    assert_int_equal(r->fleet[0].replicas, plain->fleet[0].replicas);
    assert_int_equal(r->fleet[1].replicas, plain->fleet[1].replicas);
    maq_serve_search_free(plain);
    maq_serve_search_free(r);
    maq_job_free(s.open);
}

/* With drafts the closed form has what is accepted in the mean: no candidate carries more, and all are simulated to the same answer. */
static void test_drafts(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    static const enum maq_engine engines[] = {MAQ_ENGINE_VLLM, MAQ_ENGINE_SGLANG};
    static const enum maq_draft_method methods[] = {MAQ_DRAFT_EAGLE3, MAQ_DRAFT_EAGLE};
    for (size_t e = 0; e < MAQ_COUNT(engines); e++) {
        const struct scene scene = {"llama-3.1-8b", "h100-sxm:2",    "ttft_p95<1s, tpot_p95<12ms", 500, 80, 0,
                                    engines[e],     MAQ_WEIGHTS_BF16};
        struct setting s;
        begin(&s, &scene);
        struct maq_serve_search_result *plain = search(s.open, &s.opts);
        s.options.speculation.method = methods[e];
        s.options.speculation.tokens = 3;
        assert_int_equal(maq_acceptance_read(&s.options.speculation, "0.8,0.6,0.4", NULL), MAQ_OK);
        struct maq_serve_search_result *r = search(s.open, &s.opts);
        s.opts.exhaustive = true;
        struct maq_serve_search_result *all = search(s.open, &s.opts);
        s.opts.exhaustive = false;
        struct maq_request_set *set = stream_of(&s.opts);
        for (uint32_t i = 0; i < r->n; i++) {
            const struct maq_serve_candidate *c = &r->candidates[i];
            if (c->most_per_s > 0)
                assert_false(holds(c, 1, &s.opts, maq_requests_get(set), c->most_per_s * MAQ_SERVE_SEARCH_MARGIN));
        }
        assert_int_equal(r->n_fleet, 1);
        assert_int_equal(all->fleet[0].candidate, r->fleet[0].candidate);
        assert_true(r->candidates[r->fleet[0].candidate].token_s <
                    plain->candidates[r->fleet[0].candidate].token_s / 2); /* 2.8 tokens of an iteration */
        maq_requests_free(set);
        maq_serve_search_free(plain);
        maq_serve_search_free(all);
        maq_serve_search_free(r);
        maq_job_free(s.open);
    }
}

/*
 * With attention and FFN on GPUs of their own the closed form has the same passes: no candidate carries more, and all are simulated to the same answer.
 * Without a list of its own the axis has what is told.
 */
static void test_sides(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    static const char *const lists[] = {"tp=1,2",
                                        "pp=1",
                                        "dp=1,2",
                                        "afd-ffn-ranks=0,1,2",
                                        "afd-micro-batches=1,2",
                                        "max-num-seqs=default,32",
                                        "max-num-batched-tokens=default"};
    const struct scene scene = {"qwen3-30b-a3b", "h100-sxm:4",    "ttft_p95<2s, tpot_p95<40ms", 2000, 60, 0,
                                MAQ_ENGINE_VLLM, MAQ_WEIGHTS_BF16};
    struct setting s;
    uint32_t seen = 0;
    begin(&s, &scene);
    s.opts.lists = lists;
    s.opts.n_lists = MAQ_COUNT(lists);
    struct maq_serve_search_result *r = search(s.open, &s.opts);
    s.opts.exhaustive = true;
    struct maq_serve_search_result *all = search(s.open, &s.opts);
    struct maq_request_set *set = stream_of(&s.opts);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_serve_candidate *c = &r->candidates[i];
        const struct maq_afd_options *afd = &c->options.afd;
        assert_int_equal(c->gpus, c->job->plan.tp * c->options.dp + afd->ffn_ranks);
        assert_true(afd->ffn_ranks > 0 ? afd->micro_batches == c->at[MAQ_SERVE_AXIS_MICRO] && c->prefill_per_s <= 0
                                       : afd->micro_batches == 0);
        if (afd->ffn_ranks == 0 || c->most_per_s <= 0 || i % SMALLER > 0)
            continue;
        seen++;
        if (holds(c, 1, &s.opts, maq_requests_get(set), c->most_per_s * MAQ_SERVE_SEARCH_MARGIN))
            fail_msg("tp%d dp%d ffn%d ep%d mb%d, %d requests: carries more than %g requests/s", c->job->plan.tp,
                     c->options.dp, afd->ffn_ranks, c->options.ep, afd->micro_batches, c->options.max_num_seqs,
                     c->most_per_s);
    }
    assert_true(seen > 10 / SMALLER);
    assert_int_equal(all->fleet[0].candidate, r->fleet[0].candidate);
    s.opts.n_lists = 3;
    s.options.afd.ffn_ranks = 2;
    struct maq_serve_search_result *told = search(s.open, &s.opts);
    for (uint32_t i = 0; i < told->n; i++)
        assert_int_equal(told->candidates[i].options.afd.ffn_ranks, 2);
    maq_requests_free(set);
    maq_serve_search_free(told);
    maq_serve_search_free(all);
    maq_serve_search_free(r);
    maq_job_free(s.open);
}

/* ---- degrees ---- */

/* Of a node of six GPUs three and six are tried, and are what a job with them is; heads that they do not divide are left out with a reason. */
static void test_degrees_of_six(void **state)
{
    (void)state;
    static const char *const models[] = {"gpt-3-175b", "llama-3.1-70b"};
    static const char *const few[] = {"pp=1", "max-num-seqs=default", "max-num-batched-tokens=default"};
    for (size_t m = 0; m < MAQ_COUNT(models); m++) {
        const struct scene scene = {models[m], "h200-sxm:6", "", 500, 20, 0, MAQ_ENGINE_VLLM, MAQ_WEIGHTS_FP8};
        struct setting s;
        uint32_t seen = 0;
        begin(&s, &scene);
        s.opts.lists = few;
        s.opts.n_lists = MAQ_COUNT(few);
        struct maq_serve_search_result *r = search(s.open, &s.opts);
        for (uint32_t i = 0; i < r->n; i++) {
            const struct maq_serve_candidate *c = &r->candidates[i];
            if (c->at[MAQ_SERVE_AXIS_TP] % 3 != 0)
                continue;
            seen++;
            assert_int_equal(c->verdict == MAQ_SERVE_VERDICT_IMPOSSIBLE, m == 1);
            if (m == 1)
                assert_non_null(strstr(c->why, "attention heads"));
            else
                assert_int_equal(c->gpus, c->at[MAQ_SERVE_AXIS_TP]);
        }
        assert_int_equal(seen, 2);
        maq_serve_search_free(r);
        maq_job_free(s.open);
    }
}

/* ---- what cannot be ---- */

static void expect_refused(const char *list, const char *word)
{
    struct setting s;
    begin(&s, &scenes[0]);
    struct maq_serve_search_result *r;
    struct maq_diag *diag = maq_diag_new();
    s.opts.lists = &list;
    s.opts.n_lists = 1;
    assert_int_equal(maq_serve_search(&r, s.open, &s.opts, diag), MAQ_BAD_INPUT);
    char *text = maq_diag_format(diag, 0, false);
    if (!strstr(text, word))
        fail_msg("%s", text);
    free(text);
    maq_diag_free(diag);
    maq_job_free(s.open);
}

static void test_refused(void **state)
{
    (void)state;
    expect_refused("tp=0", "'0' is no value of tp");
    expect_refused("tp=1,,2", "'' is no value of tp");
    expect_refused("weights=fp7", "'fp7' is no value of weights");
    expect_refused("mbs=1", "not searched along 'mbs'");
    expect_refused("afd-ffn-ranks=-1", "'-1' is no value of afd-ffn-ranks");
    expect_refused("tp=3", "no deployment is possible");
}

/* Bounds that nobody holds are an answer. */
static void test_nothing_holds(void **state)
{
    (void)state;
    struct setting s;
    begin(&s, &scenes[0]);
    s.slo = bounds("tpot_p95<1ms");
    struct maq_serve_search_result *r = search(s.open, &s.opts);
    assert_int_equal(r->n_fleet, 0);
    assert_int_equal(r->counts[MAQ_SERVE_VERDICT_BEST], 0);
    assert_true(r->counts[MAQ_SERVE_VERDICT_SLOW] > 0);
    maq_serve_search_free(r);
    maq_job_free(s.open);
}

/* ---- giving up ---- */

/* A run that ends before its end would have missed its bounds; one that does not is the same as without. */
static void test_hopeless(void **state)
{
    (void)state;
    static const char *const slos[] = {"ttft_p95<300ms", "tpot_mean<12ms, ttft_mean<400ms", "e2el_p50<2s",
                                       "tpot_p99<30ms, itl_p95<20ms"};
    static struct maq_request list[120];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    uint32_t ended = 0, went_on = 0;
    for (uint64_t seed = 1; seed <= 60 / SMALLER; seed++) {
        uint64_t draws = seed;
        const struct maq_serve_options o = draw_options(&draws, MAQ_ENGINE_VLLM);
        struct maq_requests q = draw_requests(list, 120, &draws);
        const struct maq_slo slo = bounds(slos[seed % MAQ_COUNT(slos)]);
        struct maq_slo_outcome outcome;
        struct maq_serve_result *whole = serve(job, &o, &q);
        maq_slo_judge(&outcome, &slo, whole, &q);
        q.give_up = &slo;
        struct maq_serve_result *r = serve(job, &o, &q);
        if (r->finished < r->n_requests) {
            assert_false(outcome.all_met);
            ended++;
        } else {
            expect_same(whole, r, 0);
            went_on++;
        }
        maq_serve_free(whole);
        maq_serve_free(r);
    }
    assert_true(ended > 5 / SMALLER && went_on > 5 / SMALLER);
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nobody_carries_more),
        cmocka_unit_test(test_random_ones_are_not_better),
        cmocka_unit_test(test_the_whole_fleet_holds),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_fewest),
        cmocka_unit_test(test_same_answer),
        cmocka_unit_test(test_two_kinds),
        cmocka_unit_test(test_pools),
        cmocka_unit_test(test_limits_of_pools),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_sides),
        cmocka_unit_test(test_degrees_of_six),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_nothing_holds),
        cmocka_unit_test(test_hopeless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
