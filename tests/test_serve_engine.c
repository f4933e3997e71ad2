/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_engine.c - a deployment from its requests to its latencies, against what can be said of it by hand.
 *
 * One request alone takes the sum of its passes. With room for one at a time an engine is a queue with one server: each wait follows
 * from the one before it (Lindley 1952), its mean from the first two moments of the service (Pollaczek 1930, Khinchin 1932; with constant service
 * rho / (2 mu (1 - rho)), with exponential service rho / (mu (1 - rho))). Iterations that are done at once have the same outcome as one by
 * one. Bytes of the cache are closed forms.
 *
 * maq-test: long
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "effort.h"
#include "failing_alloc.h"
#include "maquette/report_serve.h"
#include "maquette/serve.h"
#include "random_draws.h"
#include "serve/codes.h"
#include "serve/engine/batch.h"
#include "serve_jobs.h"

/* ---- one request alone ---- */

/* A pass by hand, with the host's part of it. */
static double pass_s(struct maq_deployment *d, int64_t queries, int64_t context, bool samples)
{
    const struct maq_pass_chunk chunk = {queries, context};
    struct maq_pass_batch b = {.tokens = queries, .sampled = samples, .queries = 1};
    struct maq_pass_parts parts;
    double sum = maq_batch_host_s(d, 1);
    if (queries > 1) {
        b.chunks = &chunk;
        b.n_chunks = 1;
    } else {
        b.decodes = 1;
        for (uint32_t w = 0; w < d->passes.n_windows; w++)
            b.decode_keys[w] =
                d->passes.windows[w] > 0 && context + 1 > d->passes.windows[w] ? d->passes.windows[w] : context + 1;
    }
    b.padded = maq_batch_launch(d, queries, b.n_chunks, 1).padded;
    for (uint32_t s = 0; s < d->passes.n_stages; s++)
        sum += maq_batch_stage_s(d, s, &b, maq_batch_launch_mode(d, &b), &parts) +
               (s > 0 ? maq_batch_transfer_s(d, queries) : 0);
    return sum;
}

/* The API server's loop and its thread, each of which does one thing after another: until when they are busy. */
struct front {
    double loop_s, thread_s;
};

/* When a request that is sent at `at` reaches the scheduler, where no tokens of others are written. */
static double reaches(const struct maq_deployment *d, double at, int64_t prompt, struct front *f)
{
    const struct maq_host_profile *h = &d->host;
    double speed = maq_device_host_speed(d->device), n = (double)prompt,
           there = at + (h->arrive_s + h->arrive_token_s * n) / speed;
    f->loop_s = fmax(there, f->loop_s) + (h->enter_s + h->enter_token_s * n) / speed;
    f->thread_s = fmax(f->loop_s, f->thread_s) + h->tokenize_s * n / speed;
    return f->thread_s;
}

static void one_request(const char *model, const char *cluster, const char *plan, int devices, int64_t prompt,
                        int64_t output, const struct maq_serve_options *o)
{
    struct maq_loaded_job *job = load(model, cluster, plan, devices);
    struct maq_deployment d;
    const struct maq_request request = {.arrival_s = 3, .prompt = prompt, .output = output};
    const struct maq_requests requests = {.at = &request, .n = 1};
    struct maq_serve_result *r = serve(job, o, &requests);
    struct maq_serve_batch batch;
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), o, NULL), MAQ_OK);
    struct front front = {0};
    double first = 0, all, way = reaches(&d, 3, prompt, &front) - 3;
    double client = way + (d.host.respond_s + d.host.stream_s) / maq_device_host_speed(d.device);
    int64_t most = d.options.max_num_batched_tokens, passes = 0;
    for (int64_t done = 0; done < prompt; done += most, passes++)
        first += pass_s(&d, prompt - done < most ? prompt - done : most, done, prompt - done <= most);
    all = first;
    for (int64_t k = 1; k < output; k++, passes++)
        all += pass_s(&d, 1, prompt + k - 1, true);
    assert_int_equal(r->finished, 1);
    assert_int_equal(r->iterations, passes);
    expect_close(r->served[0].first_s - 3, first + client, 1e-9, "TTFT");
    expect_close(r->served[0].last_s - 3, all + client, 1e-9, "E2EL");
    expect_close(r->duration_s, all + client, 1e-9, "duration");
    expect_close(r->ttft_s.mean, first + client, 1e-9, "mean TTFT");
    expect_close(r->ttft_s.p99, first + client, 2e-3, "p99 TTFT"); /* bins are a fifth of a percent wide */
    if (output > 1) {
        expect_close(r->tpot_s.mean, (all - first) / (double)(output - 1), 1e-9, "TPOT");
        expect_close(r->itl_s.mean, (all - first) / (double)(output - 1), 1e-9, "ITL");
    }
    expect_close(r->output_tokens_per_s, (double)output / (all + client), 1e-9, "tokens out");
    expect_close(r->input_tokens_per_s, (double)prompt / (all + client), 1e-9, "tokens in");
    if (d.passes.n_stages == 1) /* where time goes is all of the time; the first iteration has no device that waits */
        expect_close(r->busy_s, all - maq_batch_host_s(&d, 1), 1e-9, "sum of the parts");
    /* a batch of one is the same */
    assert_int_equal(maq_serve_static(&batch, maq_job_get(job), o, 1, prompt, output, NULL), MAQ_OK);
    expect_close(batch.prefill_s, first, 1e-9, "prefill of a batch");
    if (output > 1)
        expect_close(batch.decode_s, all - first, 1e-9, "tokens of a batch");
    maq_deployment_fini(&d);
    maq_serve_free(r);
    maq_job_free(job);
}

/* Where the host works ahead, tokens of a request are as far apart as a pass takes, and no closer. */
static void tokens_apart(const char *model, const char *cluster, const char *plan, int devices,
                         const struct maq_serve_options *o)
{
    struct maq_loaded_job *job = load(model, cluster, plan, devices);
    struct maq_deployment d;
    const struct maq_request request = {.prompt = 200, .output = 40};
    const struct maq_requests requests = {.at = &request, .n = 1};
    struct maq_serve_result *r = serve(job, o, &requests);
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), o, NULL), MAQ_OK);
    double least = 0, most = 0;
    for (int64_t k = 1; k < 40; k++) {
        most += pass_s(&d, 1, 200 + k - 1, true);
        least += pass_s(&d, 1, 200 + k - 1, true) - maq_batch_host_s(&d, 1);
    }
    double took = r->served[0].last_s - r->served[0].first_s;
    assert_true(took > least * (1 - 1e-9) && took < most * (1 + 1e-9));
    maq_deployment_fini(&d);
    maq_serve_free(r);
    maq_job_free(job);
}

static void test_one_request_alone(void **state)
{
    (void)state;
    const struct maq_serve_options plain = {.async_scheduling = MAQ_OFF},
                                   pieces = {.async_scheduling = MAQ_OFF, .max_num_batched_tokens = 512},
                                   eager = {.async_scheduling = MAQ_OFF, .enforce_eager = true},
                                   one = {.async_scheduling = MAQ_OFF, .one_by_one = true};
    one_request("llama-3.1-8b", "h100-sxm:8", "", 8, 2000, 100, &plain);
    one_request("llama-3.1-8b", "h100-sxm:8", "", 8, 2000, 100, &one);
    one_request("llama-3.1-8b", "h100-sxm:8", "", 8, 100, 1, &plain); /* a prompt that a CUDA graph holds */
    one_request("llama-3.1-8b", "h100-sxm:8", "", 8, 1, 300, &plain);
    one_request("llama-3.1-8b", "h100-sxm:8", "", 8, 2000, 10, &pieces);
    one_request("llama-3.1-8b", "h100-sxm:8", "", 8, 1025, 3, &pieces); /* the last piece is one token */
    one_request("llama-3.1-8b", "h100-sxm:8", "", 8, 300, 40, &eager);
    one_request("llama-3.1-8b", "h100-sxm:8", ", tp: 4", 8, 700, 30, &plain);
    one_request("llama-3.1-8b", "h100-sxm:8", ", pp: 2", 8, 700, 30, &plain);
    one_request("gpt-oss-20b", "h100-sxm:8", "", 8, 700, 60, &plain); /* windows of 128 */
    const struct maq_serve_options on = {.async_scheduling = MAQ_ON}, trtllm = {.engine = MAQ_ENGINE_TRTLLM};
    one_request("llama-3.1-8b", "h100-sxm:8", ", pp: 4", 8, 700, 30, &trtllm); /* a token waits for the one before it */
    tokens_apart("llama-3.1-8b", "h100-sxm:8", ", pp: 4", 8, &on);
}

/* As many iterations are under way as there are stages: equal prompts that fill one each leave the last stage one after another, the
 * time of the slowest stage apart. */
static void test_long_pipeline(void **state)
{
    (void)state;
    enum { REQUESTS = 120, PROMPT = 64 };
    struct maq_loaded_job *job = load("llama-3.1-405b", "h100-sxm:6 x 21", ", pp: 126", 1);
    const struct maq_serve_options o = {.async_scheduling = MAQ_OFF,
                                        .max_num_batched_tokens = PROMPT,
                                        .max_num_seqs = 2 * REQUESTS,
                                        .front_end = MAQ_FRONT_END_DYNAMO};
    struct maq_request at[REQUESTS];
    for (int i = 0; i < REQUESTS; i++)
        at[i] = (struct maq_request){.prompt = PROMPT, .output = 2};
    const struct maq_requests q = {.at = at, .n = REQUESTS};
    struct maq_serve_result *r = serve(job, &o, &q);
    double apart = r->served[1].first_s - r->served[0].first_s;
    assert_true(apart > 0);
    for (int i = 2; i < REQUESTS; i++)
        expect_close(r->served[i].first_s - r->served[i - 1].first_s, apart, 1e-6, "time between first tokens");
    maq_serve_free(r);
    maq_job_free(job);
}

/* Intervals are factors on the mean; a request's whole time is its first token and the others, both off at once. */
static void test_intervals(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_request at[] = {{.prompt = 1000, .output = 50}, {.arrival_s = 0.1, .prompt = 300, .output = 80}};
    const struct maq_requests q = {.at = at, .n = 2};
    const struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM};
    struct maq_serve_result *r = serve(job, &o, &q);
    double t[2], p[2];
    maq_serve_interval(&t[0], &t[1], MAQ_SERVE_TTFT);
    maq_serve_interval(&p[0], &p[1], MAQ_SERVE_TPOT);
    assert_true(t[0] < p[0] && p[0] < 1 && 1 < p[1] && p[1] < t[1]);
    assert_true(r->ttft_s.low == t[0] * r->ttft_s.mean && r->ttft_s.high == t[1] * r->ttft_s.mean);
    assert_true(r->queue_s.high == t[1] * r->queue_s.mean && r->itl_s.low == p[0] * r->itl_s.mean);
    assert_true(r->tpot_s.low == p[0] * r->tpot_s.mean && r->tpot_s.high == p[1] * r->tpot_s.mean);
    expect_close(r->e2el_s.low, t[0] * r->ttft_s.mean + p[0] * (r->e2el_s.mean - r->ttft_s.mean), 1e-12, "E2EL");
    expect_close(r->e2el_s.high, t[1] * r->ttft_s.mean + p[1] * (r->e2el_s.mean - r->ttft_s.mean), 1e-12, "E2EL");
    maq_serve_free(r);
    maq_job_free(job);
}

/* Between two requests that come long after each other the cache holds nothing, and the mean over time says so. */
static void test_idle_cache(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_request at[] = {{.prompt = 1000, .output = 50}, {.arrival_s = 1000, .prompt = 1000, .output = 50}};
    const struct maq_requests q = {.at = at, .n = 2};
    for (int k = 0; k < 2; k++) {
        const struct maq_serve_options o = {.blocks = 200, .one_by_one = k == 1};
        struct maq_serve_result *r = serve(job, &o, &q);
        double busy = r->served[0].last_s - r->served[0].arrival_s + r->served[1].last_s - r->served[1].arrival_s;
        assert_true(r->kv_peak > 0.3);
        assert_true(r->kv_mean > 0 && r->kv_mean <= r->kv_peak * busy / 1000);
        maq_serve_free(r);
    }
    maq_job_free(job);
}

/* ---- one server ---- */

/* Service by tokens out of a request that is alone in the engine. */
static double *service_times(const struct maq_loaded_job *job, const struct maq_serve_options *o, int64_t prompt,
                             int64_t most)
{
    struct maq_deployment d;
    double *s = calloc((size_t)most + 1, sizeof *s);
    assert_non_null(s);
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), o, NULL), MAQ_OK);
    s[1] = pass_s(&d, prompt, 0, true);
    for (int64_t k = 2; k <= most; k++)
        s[k] = s[k - 1] + pass_s(&d, 1, prompt + k - 2, true);
    maq_deployment_fini(&d);
    return s;
}

/* Starts of requests one after another, each by the one before; returns the mean of what they wait beyond their way in. */
static double expect_lindley(const struct maq_serve_result *r, const struct maq_requests *q, const double *service_s,
                             const struct maq_deployment *d)
{
    struct front front = {0};
    double ends = 0, sum = 0;
    for (uint32_t i = 0; i < q->n; i++) {
        struct front alone = {0};
        double at = q->at[i].arrival_s, starts = reaches(d, at, q->at[i].prompt, &front);
        starts = starts > ends ? starts : ends;
        ends = starts + service_s[q->at[i].output];
        double got = r->served[i].scheduled_s - maq_batch_host_s(d, 1);
        if (fabs(got - starts) > 1e-6)
            fail_msg("request %u starts at %.9f, not at %.9f", i, got, starts);
        sum += starts - reaches(d, at, q->at[i].prompt, &alone);
    }
    return sum / q->n;
}

static void test_constant_service(void **state)
{
    (void)state;
    static const double loads[] = {0.3, 0.6, 0.8, 2};
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {
        .async_scheduling = MAQ_OFF, .max_num_seqs = 1, .front_end = MAQ_FRONT_END_DYNAMO};
    double *service = service_times(job, &o, 800, 1);
    struct maq_deployment d;
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), &o, NULL), MAQ_OK);
    assert_true(service[1] > d.host.enter_s / maq_device_host_speed(d.device));
    for (size_t i = 0; i < MAQ_COUNT(loads); i++) {
        struct maq_request_set *set = NULL;
        const struct maq_request_spec spec = {
            .rate = loads[i] / service[1], .n = SANITIZED ? 12000 : 60000, .prompt = 800, .output = 1};
        assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
        struct maq_serve_result *r = serve(job, &o, maq_requests_get(set));
        /* two servers behind each other, both of constant time, make wait as the slower one alone (Friedman 1965) */
        double mean = expect_lindley(r, maq_requests_get(set), service, &d);
        struct front front = {0};
        if (loads[i] < 1)
            expect_close(mean, loads[i] * service[1] / (2 * (1 - loads[i])), SANITIZED ? 0.1 : 0.05,
                         "mean wait of M/D/1");
        else /* of a queue that grows, what is served while the others come is its rate's share */
            expect_close(r->waiting, (1 - 1 / loads[i]) * spec.n, 0.02, "requests that wait when the last one arrives");
        assert_true(r->overloaded == (loads[i] > 1));
        expect_close(r->queue_s.mean - maq_batch_host_s(&d, 1) - reaches(&d, 0, 800, &front), mean, 1e-6,
                     "mean time in the queue");
        assert_int_equal(r->iterations, spec.n);
        maq_serve_free(r);
        maq_requests_free(set);
    }
    maq_deployment_fini(&d);
    free(service);
    maq_job_free(job);
}

/* Tokens out are drawn from a geometric distribution: service is nearly exponential. */
static void test_exponential_service(void **state)
{
    (void)state;
    enum { N = 30000, MEAN = 60, MOST = 1200 };
    const double load_of = 0.7;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {
        .async_scheduling = MAQ_OFF, .max_num_seqs = 1, .front_end = MAQ_FRONT_END_DYNAMO};
    double *service = service_times(job, &o, 16, MOST), first = 0, second = 0, at = 0;
    struct maq_request *list = calloc(N, sizeof *list);
    struct maq_deployment d;
    uint64_t draws = 11;
    assert_non_null(list);
    for (int i = 0; i < N; i++) {
        int64_t n = 1 + (int64_t)(log(uniform(&draws, 1e-12, 1)) / log(1 - 1.0 / MEAN));
        list[i] = (struct maq_request){.prompt = 16, .output = n < MOST ? n : MOST};
        first += service[list[i].output] / N;
        second += service[list[i].output] * service[list[i].output] / N;
    }
    double rate = load_of / first;
    for (int i = 0; i < N; i++) {
        list[i].arrival_s = at;
        at -= log(uniform(&draws, 1e-12, 1)) / rate;
    }
    const struct maq_requests q = {.at = list, .n = N};
    struct maq_serve_result *r = serve(job, &o, &q);
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), &o, NULL), MAQ_OK);
    double mean = expect_lindley(r, &q, service, &d);
    expect_close(mean, rate * second / (2 * (1 - load_of)), 0.06, "mean wait by Pollaczek and Khinchin");
    expect_close(mean, load_of * first / (1 - load_of), 0.10, "mean wait of M/M/1");
    maq_deployment_fini(&d);
    maq_serve_free(r);
    free(list);
    free(service);
    maq_job_free(job);
}

/* ---- a closed loop ---- */

static void test_concurrency_is_held(void **state)
{
    (void)state;
    static const uint32_t many[] = {1, 7, 32};
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    for (size_t i = 0; i < MAQ_COUNT(many); i++)
        for (int async = 0; async < 2; async++) {
            const struct maq_request_spec spec = {
                .concurrency = many[i], .n = 300, .prompt = 500, .output = 60, .spread = 0.8};
            const struct maq_serve_options o = {.async_scheduling = async ? MAQ_ON : MAQ_OFF};
            struct maq_request_set *set = NULL;
            assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
            struct maq_serve_result *r = serve(job, &o, maq_requests_get(set));
            for (uint32_t k = 0; k < 300 - many[i];
                 k++) { /* whenever one comes, so many are there, until none is left to come */
                uint32_t there = 0;
                double now = r->served[k].arrival_s;
                for (uint32_t n = 0; n < 300; n++)
                    there += r->served[n].arrival_s <= now && r->served[n].last_s > now + 1e-9;
                assert_int_equal(there, many[i]);
                assert_true(k < many[i] ? now <= 0 : now > 0);
            }
            assert_int_equal(r->finished, 300);
            maq_serve_free(r);
            maq_requests_free(set);
        }
    maq_job_free(job);
}

/* ---- at once, and one by one; the same bytes ---- */

static void at_once_is_one_by_one(enum maq_engine engine, uint64_t seeds)
{
    static struct maq_request list[80];
    struct maq_loaded_job *jobs[] = {
        load("llama-3.1-8b", "h100-sxm:8", "", 8), load("llama-3.1-8b", "h100-sxm:8", ", tp: 2", 8),
        load("gpt-oss-20b", "h100-sxm:8", "", 8), load("llama-3.1-8b", "h100-sxm:8", ", pp: 2", 8)};
    uint64_t preemptions = 0;
    double cached = 0;
    for (uint64_t seed = 1; seed <= seeds; seed++) {
        uint64_t draws = seed;
        struct maq_serve_options o = draw_options(&draws, engine);
        const struct maq_requests q = draw_requests(list, draw(&draws, 1, 80), &draws);
        const struct maq_loaded_job *job = jobs[draw(&draws, 0, MAQ_COUNT(jobs) - 1)];
        for (uint32_t i = 0; engine == MAQ_ENGINE_SGLANG && i < q.n; i++)
            list[i].max_tokens = i % 3 ? list[i].output + 1 + i % 50 : 0;
        o.sglang.recv_interval = engine == MAQ_ENGINE_SGLANG && seed % 4 == 0 ? (int32_t)(seed % 37) : 0;
        struct maq_serve_result *a = serve_both_ways(NULL, job, o, &q, 1e-9), *c = serve(job, &o, &q);
        assert_memory_equal(a->served, c->served, q.n * sizeof *a->served);
        preemptions += a->preemptions;
        cached += a->prefix_hit_rate;
        maq_serve_free(a);
        maq_serve_free(c);
    }
    print_message("%llu preemptions, %.2f of prompts cached\n", (unsigned long long)preemptions,
                  cached / (double)seeds);
    assert_true(preemptions > 3 && cached > 0.1 * (double)seeds);
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++)
        maq_job_free(jobs[i]);
}

static void test_at_once_is_one_by_one(void **state)
{
    (void)state;
    at_once_is_one_by_one(MAQ_ENGINE_VLLM, 80);
}

static void test_at_once_is_one_by_one_sglang(void **state)
{
    (void)state;
    at_once_is_one_by_one(MAQ_ENGINE_SGLANG, 30);
}

static void test_same_bytes(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", ", tp: 2", 8);
    const struct maq_request_spec spec = {.rate = 30, .n = 400, .prompt = 700, .output = 90, .spread = 0.5, .seed = 3};
    const struct maq_serve_options o = {.async_scheduling = MAQ_ON};
    struct maq_request_set *set = NULL;
    char *text[2];
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    for (int i = 0; i < 2; i++) {
        struct maq_serve_result *r = serve(job, &o, maq_requests_get(set));
        assert_int_equal(maq_report_serve_json(&text[i], r, NULL, NULL), MAQ_OK);
        maq_serve_free(r);
    }
    assert_string_equal(text[0], text[1]);
    free(text[0]);
    free(text[1]);
    maq_requests_free(set);
    maq_job_free(job);
}

/* ---- prefixes ---- */

/* The 512 tokens that all have in common are computed once, where the first request is done before the others come. */
static void test_shared_prefix(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_request_spec spec = {
        .rate = 0.01, .burstiness = 1e6, .n = 10, .prompt = 700, .output = 5, .shared_prefix = 512};
    struct maq_request_set *set = NULL;
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    for (int caching = 0; caching < 2; caching++) {
        const struct maq_serve_options o = {.no_prefix_caching = caching == 0};
        struct maq_serve_result *r = serve(job, &o, maq_requests_get(set));
        for (uint32_t i = 0; i < 10; i++)
            assert_int_equal(r->served[i].cached, caching && i > 0 ? 512 : 0);
        expect_close(r->prefix_hit_rate + 1, 1 + (caching ? 9 * 512.0 / 7000 : 0), 1e-12, "hit rate");
        if (caching)
            assert_true(r->served[1].first_s - r->served[1].arrival_s < r->served[0].first_s - r->served[0].arrival_s);
        maq_serve_free(r);
    }
    maq_requests_free(set);
    maq_job_free(job);
}

/* Whole prompts that come again: all that vLLM finds of them is all blocks but the one of the token whose answer is asked for. */
static void test_distinct_prompts(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_request_spec spec = {
        .rate = 0.01, .burstiness = 1e6, .n = 60, .prompt = 704, .output = 5, .distinct = 4};
    struct maq_request_set *set = NULL;
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    const struct maq_requests *q = maq_requests_get(set);
    struct maq_serve_result *r = serve(job, &(struct maq_serve_options){0}, q);
    bool seen[5] = {false};
    for (uint32_t i = 0; i < q->n; i++) {
        uint64_t k = (q->at[i].prefix[0] - 1) / (704 / 16 + 1);
        assert_true(k < 4);
        assert_int_equal(r->served[i].cached, seen[k] ? 688 : 0);
        seen[k] = true;
    }
    maq_serve_free(r);
    maq_requests_free(set);
    maq_job_free(job);
}

/* Of a closed loop the first 10 all end before the next 6 are sent, which are all there is room for, at once; then each at the end of another. */
static void test_warmup(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_request_spec spec = {
        .concurrency = 6, .n = 30, .warmup = 10, .prompt = 300, .output = 20, .spread = 0.5};
    struct maq_request_set *set = NULL;
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    struct maq_serve_result *r = serve(job, &(struct maq_serve_options){0}, maq_requests_get(set));
    double warm_s = 0;
    for (uint32_t i = 0; i < 10; i++)
        warm_s = fmax(warm_s, r->served[i].last_s);
    for (uint32_t i = 0; i < 30; i++) {
        assert_true(r->served[i].arrival_s >= (i < 10 ? 0 : warm_s));
        if (i >= 10 && i < 16)
            expect_close(r->served[i].arrival_s, warm_s, 1e-12, "all at once");
        if (i >= 16)
            assert_true(r->served[i].arrival_s > warm_s);
    }
    assert_int_equal(r->finished, 30);
    maq_serve_free(r);
    maq_requests_free(set);
    maq_job_free(job);
}

/* ---- memory ---- */

static void expect_kv(const char *model, const char *cluster, const char *plan, int devices, bool fp8, double bytes)
{
    struct maq_loaded_job *job = load(model, cluster, plan, devices);
    const struct maq_serve_options o = {.kv_fp8 = fp8};
    struct maq_serve_result *r = NULL;
    assert_int_equal(maq_serve_plan(&r, maq_job_get(job), &o, NULL), MAQ_OK);
    if (fabs(r->kv_bytes_per_token - bytes) > 1e-6)
        fail_msg("%s {%s}: %.3f bytes for a token, not %.3f", model, plan, r->kv_bytes_per_token, bytes);
    maq_serve_free(r);
    maq_job_free(job);
}

static void test_bytes_per_token(void **state)
{
    (void)state;
    /* layers x heads x (keys and values) x bytes */
    expect_kv("gpt2", "h100-sxm:8", "", 8, false, 12.0 * 12 * 128 * 2);                 /* MHA */
    expect_kv("llama-2-7b", "h100-sxm:8", "", 8, false, 32.0 * 32 * 256 * 2);           /* MHA */
    expect_kv("llama-3.1-8b", "h100-sxm:8", "", 8, false, 32.0 * 8 * 256 * 2);          /* GQA */
    expect_kv("llama-3.1-8b", "h100-sxm:8", "", 8, true, 32.0 * 8 * 256);               /* fp8 */
    expect_kv("llama-3.1-8b", "h100-sxm:8", ", tp: 4", 8, false, 32.0 * 2 * 256 * 2);   /* heads are shared */
    expect_kv("llama-3.1-8b", "h100-sxm:8", ", tp: 8", 8, false, 32.0 * 256 * 2);       /* one is left */
    expect_kv("llama-3.1-8b", "h100-sxm:8 x 2", ", tp: 16", 16, false, 32.0 * 256 * 2); /* and copied */
    expect_kv("llama-3.1-8b", "h100-sxm:8", ", pp: 4", 8, false, 8.0 * 8 * 256 * 2);    /* of the fullest stage */
    expect_kv("deepseek-v3", "h200:8", ", tp: 8", 8, false, 61.0 * (512 + 64) * 2);     /* MLA, on every rank */
    expect_kv("deepseek-v3", "h200:8", ", tp: 8", 8, true, 61.0 * (512 + 64));
    expect_kv("gpt-oss-20b", "h100-sxm:8", "", 8, false, 24.0 * 8 * 128 * 2); /* half of the layers for 128 tokens */
}

/*
 * Blocks that vLLM 0.33.0 itself came to, the stock wheel on the zero-GPU device (docs/validate-serve.md): within
 * 1 %. The second is a Llama of 8.03 B parameters cut over two GPUs, the first the same on one.
 */
static void test_blocks_of_vllm(void **state)
{
    (void)state;
    static const struct {
        const char *tp;
        int64_t blocks;
    } cases[] = {{"", 28913}, {", tp: 2", 65342}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", cases[i].tp, 8);
        const struct maq_serve_options o = {
            .max_model_len = 8192, .max_num_batched_tokens = 8192, .enforce_eager = true};
        struct maq_serve_result *r = NULL;
        assert_int_equal(maq_serve_plan(&r, maq_job_get(job), &o, NULL), MAQ_OK);
        expect_close((double)r->blocks, (double)cases[i].blocks, 0.01, "blocks");
        maq_serve_free(r);
        maq_job_free(job);
    }
}

static void test_blocks(void **state)
{
    (void)state;
    static const int32_t sizes[] = {0, 16, 32, 128};
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8),
                          *half = load("gpt-oss-20b", "h100-sxm:8", "", 8);
    for (size_t i = 0; i < MAQ_COUNT(sizes); i++)
        for (int share = 5; share <= 9; share++) {
            const struct maq_serve_options o = {.block_size = sizes[i], .gpu_memory_utilization = share / 10.0};
            struct maq_serve_result *r = NULL;
            double all = 0, block = 131072.0 * (sizes[i] ? sizes[i] : 16);
            assert_int_equal(maq_serve_plan(&r, maq_job_get(job), &o, NULL), MAQ_OK);
            for (int k = 0; k < MAQ_SERVE_MEM_COUNT; k++)
                all += k != MAQ_SERVE_MEM_CONTEXT ? r->memory[k] : 0; /* which is there before vLLM looks */
            assert_true(r->fits);
            assert_int_equal(r->n_devices, 1);
            expect_close(r->memory[MAQ_SERVE_MEM_KV], block * (double)r->blocks, 1e-12, "bytes of the cache");
            assert_int_equal(r->kv_tokens, (r->blocks - 1) * (sizes[i] ? sizes[i] : 16));
            /* as many as fit: one more would not */
            assert_true(all <= r->capacity_bytes * share / 10.0 && all + block > r->capacity_bytes * share / 10.0);
            assert_int_equal((int64_t)r->weights_bytes, 8030261248 * 2); /* 8.03 B parameters */
            maq_serve_free(r);
        }
    /* what is asked for */
    const struct maq_serve_options some = {.blocks = 1000};
    struct maq_serve_result *r = NULL;
    assert_int_equal(maq_serve_plan(&r, maq_job_get(job), &some, NULL), MAQ_OK);
    assert_true(r->blocks == 1000 && r->kv_tokens == 999 * 16);
    maq_serve_free(r);
    /* two groups of 12 layers share the blocks: a token takes one of each */
    assert_int_equal(maq_serve_plan(&r, maq_job_get(half), &some, NULL), MAQ_OK);
    assert_int_equal(r->kv_tokens, 999 / 2 * 16);
    expect_close(r->memory[MAQ_SERVE_MEM_KV], 1000.0 * 16 * 12 * 8 * 128 * 2, 1e-12,
                 "bytes of the cache of two groups");
    maq_serve_free(r);
    maq_job_free(job);
    maq_job_free(half);
}

/* A deployment that does not fit is a result. */
static void test_does_not_fit(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-405b", "h100-sxm:8", "", 8);
    const struct maq_request request = {.prompt = 5, .output = 5};
    const struct maq_requests q = {.at = &request, .n = 1};
    const struct maq_serve_options o = {0};
    struct maq_serve_result *r = serve(job, &o, &q);
    assert_false(r->fits);
    assert_true(r->finished == 0 && r->blocks == 0 && r->weights_bytes > r->capacity_bytes);
    maq_serve_free(r);
    maq_job_free(job);
}

/* ---- requests that cannot be served ---- */

static void test_refused(void **state)
{
    (void)state;
    static const struct {
        struct maq_request request[2];
        int code;
        enum maq_status status;
    } cases[] = {
        {{{.prompt = 5, .output = 5}, {.prompt = 0, .output = 5}}, MAQ_CODE_REQUEST_EMPTY, MAQ_BAD_INPUT},
        {{{.prompt = 5, .output = 5}, {.prompt = 5, .output = 0}}, MAQ_CODE_REQUEST_EMPTY, MAQ_BAD_INPUT},
        {{{.prompt = 5, .output = 5}, {.prompt = 996, .output = 5}}, MAQ_CODE_REQUEST_LONG, MAQ_BAD_INPUT},
        {{{.prompt = 5, .output = 5}, {.prompt = 700, .output = 5}}, MAQ_CODE_REQUEST_BLOCKS, MAQ_NO},
        {{{.arrival_s = 1, .prompt = 5, .output = 5}, {.prompt = 5, .output = 5}},
         MAQ_CODE_REQUEST_ORDER,
         MAQ_BAD_INPUT},
    };
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {.max_model_len = 1000, .blocks = 41};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_requests q = {.at = cases[i].request, .n = 2};
        struct maq_serve_result *r = NULL;
        struct maq_diag *diag = maq_diag_new();
        assert_int_equal(maq_serve_run(&r, maq_job_get(job), &o, &q, diag), cases[i].status);
        assert_null(r);
        assert_int_equal(maq_diag_at(diag, 0)->code, cases[i].code);
        maq_diag_free(diag);
        q.concurrency = 1; /* then nobody looks at arrivals */
        enum maq_status status = maq_serve_run(&r, maq_job_get(job), &o, &q, NULL);
        assert_int_equal(status, cases[i].code == MAQ_CODE_REQUEST_ORDER ? MAQ_OK : cases[i].status);
        maq_serve_free(r);
    }
    /* the largest that fit: 995 and 5 in a context of 1,000; 640 tokens in 40 blocks, alone */
    const struct maq_request longest = {.prompt = 995, .output = 5}, fullest = {.prompt = 635, .output = 5};
    const struct maq_serve_options more = {.max_model_len = 1000};
    struct maq_requests q = {.at = &longest, .n = 1};
    struct maq_serve_result *r = serve(job, &more, &q);
    assert_int_equal(r->finished, 1);
    maq_serve_free(r);
    q.at = &fullest;
    r = serve(job, &o, &q);
    assert_int_equal(r->finished, 1);
    maq_serve_free(r);
    maq_job_free(job);
}

/* One batch is held to the same limits: iterations, the context, the cache. */
static void test_batch_refused(void **state)
{
    (void)state;
    static const struct {
        int64_t batch, prompt, output;
        int code;
        enum maq_status status;
    } cases[] = {
        {33, 5, 5, MAQ_CODE_REQUEST_LONG, MAQ_BAD_INPUT},
        {1 << 20, 5, 5, MAQ_CODE_REQUEST_LONG, MAQ_BAD_INPUT},
        {1, 996, 5, MAQ_CODE_REQUEST_LONG, MAQ_BAD_INPUT},
        {1, 700, 5, MAQ_CODE_REQUEST_BLOCKS, MAQ_NO},
        {21, 27, 5, MAQ_CODE_REQUEST_BLOCKS, MAQ_NO}, /* two blocks each, of 40 */
        {20, 27, 5, 0, MAQ_OK},
        {32, 11, 5, 0, MAQ_OK},
    };
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {.max_model_len = 1000, .blocks = 41, .max_num_seqs = 32};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_serve_batch b;
        struct maq_diag *diag = maq_diag_new();
        assert_int_equal(
            maq_serve_static(&b, maq_job_get(job), &o, cases[i].batch, cases[i].prompt, cases[i].output, diag),
            cases[i].status);
        assert_true(cases[i].status == MAQ_OK ? b.decode_s > 0 : maq_diag_at(diag, 0)->code == cases[i].code);
        maq_diag_free(diag);
    }
    maq_job_free(job);
}

/* ---- allocations ---- */

/*
 * Requests that outgrow a small cache: vLLM takes all in and preempts, TensorRT-LLM takes in whom the cache holds to the end, and never
 * preempts. As many tokens come out; a cache that holds them all makes no difference.
 */
static void test_guaranteed_no_evict(void **state)
{
    (void)state;
    enum { REQUESTS = 24, PROMPT = 200, OUTPUT = 600 };
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_request at[REQUESTS];
    for (int i = 0; i < REQUESTS; i++)
        at[i] = (struct maq_request){.prompt = PROMPT, .output = OUTPUT - i};
    const struct maq_requests q = {.at = at, .n = REQUESTS};
    for (int small = 0; small < 2; small++) {
        struct maq_serve_options o = {.block_size = 32, .blocks = small ? 8 * (PROMPT + OUTPUT) / 32 + 1 : 4000};
        struct maq_serve_result *vllm = serve(job, &o, &q);
        o.engine = MAQ_ENGINE_TRTLLM;
        struct maq_serve_result *trtllm = serve(job, &o, &q);
        assert_true(vllm->finished == REQUESTS && trtllm->finished == REQUESTS);
        assert_true((vllm->preemptions > 0) == small && trtllm->preemptions == 0);
        assert_true(small ? trtllm->mean_batch <= 8 : trtllm->mean_batch > 20);
        assert_true(trtllm->options.no_chunked_prefill && !vllm->options.no_chunked_prefill);
        maq_serve_free(vllm);
        maq_serve_free(trtllm);
    }
    maq_job_free(job);
}

/* TensorRT-LLM computes prompts whole unless it is told to cut them: a longer one than an iteration is refused. */
static void test_whole_prompts(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_request at[] = {{.prompt = 9000, .output = 5}};
    const struct maq_requests q = {.at = at, .n = 1};
    struct maq_serve_options o = {.engine = MAQ_ENGINE_TRTLLM};
    struct maq_serve_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_serve_run(&r, maq_job_get(job), &o, &q, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_REQUEST_LONG);
    maq_diag_free(diag);
    o.chunked_prefill = true;
    r = serve(job, &o, &q);
    assert_int_equal(r->iterations, 2 + 4);
    maq_serve_free(r);
    o.chunked_prefill = false;
    o.max_num_batched_tokens = 9000;
    r = serve(job, &o, &q);
    assert_int_equal(r->iterations, 1 + 4);
    maq_serve_free(r);
    maq_job_free(job);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("gpt2", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {.max_num_batched_tokens = 64, .max_num_seqs = 80, .blocks = 600};
    struct maq_request list[90];
    for (uint32_t i = 0; i < 90; i++)
        list[i] = (struct maq_request){.prompt = 5 + i % 7, .output = 40};
    const struct maq_requests q = {.at = list, .n = 90};
    struct failing f = {0};
    while (next_failing(&f)) {
        struct maq_serve_result *r = NULL;
        enum maq_status status = maq_serve_run(&r, maq_job_get(job), &o, &q, NULL);
        expect_failing(&f, status, r);
        maq_serve_free(r);
    }
    assert_true(f.all > 20);
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_request_alone),
        cmocka_unit_test(test_idle_cache),
        cmocka_unit_test(test_long_pipeline),
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_constant_service),
        cmocka_unit_test(test_exponential_service),
        cmocka_unit_test(test_concurrency_is_held),
        cmocka_unit_test(test_at_once_is_one_by_one),
        cmocka_unit_test(test_at_once_is_one_by_one_sglang),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_shared_prefix),
        cmocka_unit_test(test_distinct_prompts),
        cmocka_unit_test(test_warmup),
        cmocka_unit_test(test_bytes_per_token),
        cmocka_unit_test(test_blocks),
        cmocka_unit_test(test_blocks_of_vllm),
        cmocka_unit_test(test_does_not_fit),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_batch_refused),
        cmocka_unit_test(test_guaranteed_no_evict),
        cmocka_unit_test(test_whole_prompts),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("serving engine", tests, NULL, NULL);
}
