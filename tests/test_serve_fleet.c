/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_fleet.c - replicas behind a router.
 *
 * A replica to which all goes has the outcome of one engine, to the bit. Every request goes to one replica and ends once. A router that counts
 * takes what its rule says, which is worked out again from when requests came and ended. The capacity of one server with constant
 * service is 1 / service.
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
#include "failing_alloc.h"
#include "fleet_jobs.h"
#include "maquette/serve_fleet.h"
#include "serve/codes.h"
#include "serve/engine/deployment.h"
#include "serve_jobs.h"

#define MOST 200

/* ---- one replica ---- */

/* Of two replicas one serves all, since all requests are of one session: as if it were alone. */
static void test_all_to_one(void **state)
{
    (void)state;
    static struct maq_request list[80];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    for (uint64_t seed = 1; seed <= 24; seed++) {
        uint64_t draws = seed;
        struct maq_serve_options o = draw_options(&draws, seed % 2 ? MAQ_ENGINE_VLLM : MAQ_ENGINE_SGLANG);
        const struct maq_requests q = draw_requests(list, draw(&draws, 1, 80), &draws);
        for (uint32_t i = 0; i < q.n; i++)
            list[i].session = 7;
        o.one_by_one = draw(&draws, 0, 2) == 0;
        o.front_end = MAQ_FRONT_END_NONE; /* who waits for an API server that writes waits for a share of the clients */
        const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &o, .replicas = 2};
        const struct maq_fleet fleet = {.members = &member, .n_members = 1, .router = MAQ_ROUTER_SESSION};
        struct maq_serve_result *a = serve(job, &o, &q), *b = serve_fleet(&fleet, &q);
        uint32_t at = b->served[0].replica;
        for (uint32_t i = 0; i < q.n; i++) {
            assert_int_equal(b->served[i].replica, at);
            b->served[i].replica = 0;
        }
        assert_memory_equal(a->served, b->served, q.n * sizeof *a->served);
        assert_memory_equal(&a->e2el_s, &b->e2el_s, sizeof a->e2el_s);
        assert_memory_equal(&a->itl_s, &b->itl_s, sizeof a->itl_s);
        assert_memory_equal(a->part_s, b->part_s, sizeof a->part_s);
        assert_int_equal(a->iterations, b->iterations);
        assert_int_equal(b->replicas[at].requests, q.n);
        assert_int_equal(b->replicas[1 - at].requests, 0);
        maq_serve_free(a);
        maq_serve_free(b);
    }
    maq_job_free(job);
}

/* ---- many ---- */

struct outcome {
    struct maq_serve_result *r;
    double respond_s; /* from an engine's note of a token to its client's */
};

static struct outcome serve_many(const struct maq_loaded_job *job, struct maq_serve_options *o, enum maq_router router,
                                 uint32_t replicas, const struct maq_requests *q)
{
    struct maq_deployment d;
    const struct maq_fleet_member member = {.job = maq_job_get(job), .options = o, .replicas = replicas};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1, .router = router, .seed = 5};
    struct outcome out = {.r = serve_fleet(&fleet, q)};
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), o, NULL), MAQ_OK);
    out.respond_s = d.host.respond_s / maq_device_host_speed(d.device);
    maq_deployment_fini(&d);
    return out;
}

static void expect_conserved(const struct maq_serve_result *r, const struct maq_requests *q)
{
    uint32_t requests = 0;
    double tokens = 0;
    assert_int_equal(r->finished, q->n);
    for (uint32_t i = 0; i < r->n_replicas; i++) {
        requests += r->replicas[i].requests;
        tokens += r->replicas[i].output_tokens;
    }
    assert_int_equal(requests, q->n);
    expect_close(tokens, r->output_tokens_per_s * r->duration_s, 1e-9, "tokens");
    for (uint32_t i = 0; i < q->n; i++) {
        assert_true(r->served[i].replica < r->n_replicas);
        assert_true(r->served[i].arrival_s <= r->served[i].scheduled_s);
        assert_true(r->served[i].scheduled_s < r->served[i].first_s && r->served[i].first_s <= r->served[i].last_s);
    }
}

/* Requests at replica `k` when request `i` is sent, of those that were sent before it. */
static uint32_t outstanding(const struct outcome *o, uint32_t i, uint32_t k)
{
    const struct maq_served *s = o->r->served;
    uint32_t n = 0;
    for (uint32_t j = 0; j < i; j++)
        n += s[j].replica == k && s[j].last_s - o->respond_s >= s[i].arrival_s;
    return n;
}

static void expect_least(const struct outcome *o, const struct maq_requests *q)
{
    for (uint32_t i = 0; i < q->n; i++) {
        uint32_t own = outstanding(o, i, o->r->served[i].replica);
        for (uint32_t k = 0; k < o->r->n_replicas; k++) {
            uint32_t other = outstanding(o, i, k);
            if (other < own || (other == own && k < o->r->served[i].replica))
                fail_msg("request %u went to replica %u, which has %u, and not to %u, which has %u", i,
                         o->r->served[i].replica, own, k, other);
        }
    }
}

static void test_routers(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    for (uint64_t seed = 1; seed <= 28; seed++) {
        uint64_t draws = seed;
        struct maq_serve_options o = draw_options(&draws, seed % 3 ? MAQ_ENGINE_VLLM : MAQ_ENGINE_SGLANG);
        enum maq_router router = (enum maq_router)(seed % MAQ_ROUTER_COUNT);
        if (router == MAQ_ROUTER_LEAST_REQUESTS)
            o.front_end = MAQ_FRONT_END_NONE; /* nobody writes: when a request ends can be told */
        uint32_t replicas = draw(&draws, 2, 5);
        const struct maq_requests q = draw_requests(list, MOST / 2 + draw(&draws, 0, MOST / 2), &draws);
        for (uint32_t i = 0; i < q.n; i++)
            list[i].session = 1 + next_random(&draws) % 9;
        struct outcome a = serve_many(job, &o, router, replicas, &q), c = serve_many(job, &o, router, replicas, &q);
        o.one_by_one = true;
        struct outcome b = serve_many(job, &o, router, replicas, &q);
        expect_conserved(a.r, &q);
        for (uint32_t i = 0; i < q.n; i++)
            assert_int_equal(a.r->served[i].replica, b.r->served[i].replica);
        expect_same(a.r, b.r, 1e-9);
        assert_memory_equal(a.r->served, c.r->served, q.n * sizeof *a.r->served);
        if (router == MAQ_ROUTER_LEAST_REQUESTS)
            expect_least(&b, &q);
        for (uint32_t i = 0; i < q.n; i++) {
            if (router == MAQ_ROUTER_ROUND_ROBIN)
                assert_int_equal(a.r->served[i].replica, i % replicas);
            for (uint32_t j = 0; router == MAQ_ROUTER_SESSION && j < i; j++)
                assert_true(list[i].session != list[j].session || a.r->served[i].replica == a.r->served[j].replica);
        }
        maq_serve_free(a.r);
        maq_serve_free(b.r);
        maq_serve_free(c.r);
    }
    maq_job_free(job);
}

/* Looking before sending shortens the queue; equal prefixes are found where they were sent. */
static void test_what_routers_are_for(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    static uint64_t names[MOST][6];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_serve_options o = {.max_num_seqs = 2, .blocks = 4000};
    uint64_t draws = 11;
    for (uint32_t i = 0; i < MOST; i++) {
        uint64_t family = next_random(&draws) % 12;
        for (uint32_t k = 0; k < 6; k++)
            names[i][k] = k < 5 ? family * 10 + k : i + 1000;
        list[i] = (struct maq_request){.arrival_s = i * 0.1,
                                       .prompt = 6 * 512 + 10,
                                       .output = draw(&draws, 1, 200),
                                       .n_prefix = 6,
                                       .prefix = names[i]};
    }
    const struct maq_requests q = {.at = list, .n = MOST, .prefix_unit = 512};
    struct outcome any = serve_many(job, &o, MAQ_ROUTER_RANDOM, 4, &q),
                   two = serve_many(job, &o, MAQ_ROUTER_POWER_OF_TWO, 4, &q),
                   least = serve_many(job, &o, MAQ_ROUTER_LEAST_REQUESTS, 4, &q),
                   prefix = serve_many(job, &o, MAQ_ROUTER_PREFIX, 4, &q);
    assert_true(two.r->queue_s.mean < 0.7 * any.r->queue_s.mean);
    assert_true(least.r->queue_s.mean < two.r->queue_s.mean);
    assert_true(prefix.r->prefix_hit_rate > 1.2 * least.r->prefix_hit_rate);
    maq_serve_free(any.r);
    maq_serve_free(two.r);
    maq_serve_free(least.r);
    maq_serve_free(prefix.r);
    maq_job_free(job);
}

/* Replicas that are unlike each other: each serves with what it has. */
static void test_members(void **state)
{
    (void)state;
    struct maq_loaded_job *small = load("llama-3.1-8b", "l40s:8", "", 8),
                          *large = load("llama-3.1-8b", "h100-sxm:8", ", tp: 2", 8);
    const struct maq_request_spec spec = {.rate = 12, .n = 400, .prompt = 900, .output = 120, .seed = 2};
    struct maq_request_set *set;
    const struct maq_serve_options o = {0};
    const struct maq_fleet_member members[] = {{.job = maq_job_get(small), .options = &o, .replicas = 2},
                                               {.job = maq_job_get(large), .options = &o, .replicas = 1}};
    const struct maq_fleet fleet = {.members = members, .n_members = 2, .router = MAQ_ROUTER_LEAST_REQUESTS};
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    struct maq_serve_result *r = serve_fleet(&fleet, maq_requests_get(set));
    expect_conserved(r, maq_requests_get(set));
    assert_int_equal(r->n_devices, 2 + 2);
    assert_int_equal(r->replicas[0].member, 0);
    assert_int_equal(r->replicas[2].member, 1);
    assert_true(r->replicas[2].requests > 2 * r->replicas[0].requests);
    maq_serve_free(r);
    maq_requests_free(set);
    maq_job_free(small);
    maq_job_free(large);
}

static void test_larger_than_its_cluster(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", ", tp: 2", 8);
    const struct maq_request request = {.prompt = 10, .output = 2};
    const struct maq_requests q = {.at = &request, .n = 1};
    const struct maq_serve_options o = {0};
    struct maq_fleet_member member = {.job = maq_job_get(job), .options = &o, .replicas = 4};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1};
    struct maq_serve_result *r = serve_fleet(&fleet, &q);
    assert_int_equal(r->n_devices, 8);
    maq_serve_free(r);
    struct maq_diag *diag = maq_diag_new();
    member.replicas = 5;
    assert_int_equal(maq_fleet_run(&r, &fleet, &q, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_SERVE_RANKS);
    maq_diag_free(diag);
    maq_job_free(job);
}

/* ---- capacity ---- */

static void test_capacity_of_one_server(void **state)
{
    (void)state;
    enum { N = 600 };
    static struct maq_request list[N];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {.max_num_seqs = 1, .async_scheduling = MAQ_OFF};
    for (uint32_t i = 0; i < N; i++)
        list[i] = (struct maq_request){.arrival_s = i, .prompt = 500, .output = 20};
    const struct maq_requests q = {.at = list, .n = N}, *draws[] = {&q};
    struct maq_serve_result *slow = serve(job, &o, &q);
    list[1].arrival_s = 0;
    const struct maq_requests pair = {.at = list, .n = 2};
    struct maq_serve_result *two = serve(job, &o, &pair);
    list[1].arrival_s = 1;
    double service = two->served[1].last_s - two->served[0].last_s;
    struct maq_slo slo = {.n = 1};
    slo.at[0] = (struct maq_slo_bound){MAQ_SLO_E2EL, MAQ_SLO_P99, {slow->e2el_s.p99 * 1.02, false}};
    const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &o, .replicas = 1};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1};
    struct maq_capacity c;
    assert_int_equal(maq_fleet_capacity(&c, &fleet, draws, 1, &slo, 1e-4, NULL), MAQ_OK);
    expect_close(c.rate, 1 / service, 1e-3, "capacity of a server");
    assert_true(c.runs > 5 && c.confidence <= 0);
    slo.at[0].limit.most_s = slow->e2el_s.mean * 0.5; /* shorter than a request alone */
    assert_int_equal(maq_fleet_capacity(&c, &fleet, draws, 1, &slo, 1e-3, NULL), MAQ_OK);
    assert_true(c.rate <= 0);
    slo.at[0].limit.most_s = 1e6;
    for (slo.n = 2; slo.n-- > 0;) { /* what is served as fast as it comes, whatever bounds allow, but for a twentieth */
        assert_int_equal(maq_fleet_capacity(&c, &fleet, draws, 1, &slo, 1e-3, NULL), MAQ_OK);
        assert_true(c.rate > 0.999 / service && c.rate < 1.06 / service);
    }
    maq_serve_free(slow);
    maq_serve_free(two);
    maq_job_free(job);
}

/* Twice the replicas carry twice the traffic, and the interval of several draws holds the one rate that all have in common. */
static void test_capacity_grows(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {.max_num_seqs = 8};
    struct maq_request_set *sets[5];
    const struct maq_requests *draws[5];
    for (uint64_t i = 0; i < 5; i++) {
        const struct maq_request_spec spec = {.rate = 1, .n = 400, .prompt = 500, .output = 30, .seed = i};
        assert_int_equal(maq_requests_generate(&sets[i], &spec, NULL), MAQ_OK);
        draws[i] = maq_requests_get(sets[i]);
    }
    struct maq_slo slo = {.n = 1};
    slo.at[0] = (struct maq_slo_bound){MAQ_SLO_TTFT, MAQ_SLO_P90, {0.2, false}};
    struct maq_capacity one, two;
    struct maq_fleet_member member = {.job = maq_job_get(job), .options = &o, .replicas = 1};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1, .router = MAQ_ROUTER_LEAST_REQUESTS};
    assert_int_equal(maq_fleet_capacity(&one, &fleet, draws, 5, &slo, 0.01, NULL), MAQ_OK);
    member.replicas = 2;
    assert_int_equal(maq_fleet_capacity(&two, &fleet, draws, 5, &slo, 0.01, NULL), MAQ_OK);
    assert_true(one.low <= one.rate && one.rate <= one.high && one.low < one.high);
    assert_true(two.rate > 1.9 * one.rate && two.rate < 2.6 * one.rate);
    expect_close(one.confidence, 1 - 1.0 / 16, 1e-12, "confidence");
    for (int i = 0; i < 5; i++)
        maq_requests_free(sets[i]);
    maq_job_free(job);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("gpt2", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {.max_num_batched_tokens = 64, .max_num_seqs = 8, .blocks = 60};
    struct maq_request list[20];
    static const uint64_t name = 3;
    for (uint32_t i = 0; i < 20; i++)
        list[i] = (struct maq_request){.prompt = 20, .output = 10, .n_prefix = 1, .prefix = &name};
    const struct maq_requests q = {.at = list, .n = 20, .prefix_unit = 16, .concurrency = 10};
    const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &o, .replicas = 3};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1, .router = MAQ_ROUTER_PREFIX};
    struct failing f = {0};
    while (next_failing(&f)) {
        struct maq_serve_result *r = NULL;
        enum maq_status status = maq_fleet_run(&r, &fleet, &q, NULL);
        expect_failing(&f, status, r);
        maq_serve_free(r);
    }
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_to_one),
        cmocka_unit_test(test_routers),
        cmocka_unit_test(test_what_routers_are_for),
        cmocka_unit_test(test_members),
        cmocka_unit_test(test_larger_than_its_cluster),
        cmocka_unit_test(test_capacity_of_one_server),
        cmocka_unit_test(test_capacity_grows),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
