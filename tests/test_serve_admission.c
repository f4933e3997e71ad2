/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_admission.c - limits of a router: requests through a replica that takes one at a time are a queue by hand; a limit that is never met is none; every
 * request ends or is refused, once, and no replica has more than it may, whatever comes, leaves and fails; refused requests are within no bound.
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
#include "effort.h"
#include "failing_alloc.h"
#include "fleet_jobs.h"
#include "maquette/serve_fleet.h"
#include "serve/codes.h"
#include "serve_jobs.h"

#define MOST 120
#define REPLICAS 4

/* ---- by hand ---- */

/* One replica takes one request at a time: the k-th of n that come together begins when the one before it has ended, and takes what it takes alone. */
static void test_one_at_a_time(void **state)
{
    (void)state;
    const struct maq_request equal = {.prompt = 700, .output = 30};
    struct maq_request list[8];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        const struct maq_serve_options options = {.engine = (enum maq_engine)e, .no_prefix_caching = true};
        const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &options, .replicas = 1};
        struct maq_fleet fleet = {.members = &member, .n_members = 1, .admission = {.max_requests = 1}};
        struct maq_requests q = {.at = &equal, .n = 1};
        struct maq_serve_result *alone = serve_fleet(&fleet, &q);
        for (uint32_t i = 0; i < 8; i++)
            list[i] = equal;
        q = (struct maq_requests){.at = list, .n = 8};
        struct maq_serve_result *r = serve_fleet(&fleet, &q);
        double takes = r->served[1].scheduled_s - r->served[0].scheduled_s;
        for (uint32_t i = 0; i < 8; i++) {
            expect_close(r->served[i].scheduled_s - r->served[0].scheduled_s + 1, i * takes + 1, 1e-9, "its turn");
            expect_close(r->served[i].last_s - r->served[i].scheduled_s,
                         alone->served[0].last_s - alone->served[0].scheduled_s, 1e-9, "its time");
            assert_true(r->served[i].arrival_s <= 0); /* the wait is in its TTFT */
        }
        assert_true(takes > alone->served[0].last_s - alone->served[0].scheduled_s - 0.1);
        assert_int_equal(r->admission.waited, 7);
        assert_int_equal(r->admission.most_waiting, 7);
        assert_int_equal(r->admission.refused, 0);
        /* the k-th is let in k - 1 times that after the second, and that one when the first has its last token, which is on its way for a moment */
        double second = r->admission.wait_s - 3 * takes;
        assert_true(second <= r->served[0].last_s && second > r->served[0].last_s - 0.1);
        maq_serve_free(alone);
        maq_serve_free(r);

        fleet.admission.bounded = true; /* of the seven that have to wait two may */
        fleet.admission.max_waiting = 2;
        r = serve_fleet(&fleet, &q);
        assert_int_equal(r->finished, 3);
        assert_int_equal(r->admission.refused, 5);
        for (uint32_t i = 0; i < 8; i++)
            assert_int_equal(r->served[i].refused, i > 2);
        expect_close(r->input_tokens_per_s, 3 * 700 / r->duration_s, 1e-12, "tokens in");
        maq_serve_free(r);
    }
    maq_job_free(job);
}

/* Refused requests are within no bound, whatever the figures of the others are. */
static void test_bounds(void **state)
{
    (void)state;
    struct maq_request list[40];
    struct maq_loaded_job *job = load("gpt2", "h100-sxm:8", "", 8);
    const struct maq_serve_options options = {0};
    const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &options, .replicas = 1};
    const struct maq_fleet fleet = {
        .members = &member, .n_members = 1, .admission = {.max_requests = 36, .bounded = true}};
    for (uint32_t i = 0; i < 40; i++)
        list[i] = (struct maq_request){.prompt = 50, .output = 5};
    const struct maq_requests q = {.at = list, .n = 40};
    struct maq_serve_result *r = serve_fleet(&fleet, &q);
    assert_int_equal(r->admission.refused, 4); /* a tenth */
    static const struct {
        const char *text;
        bool met;
    } cases[] = {{"ttft_p50<10s", true}, {"ttft_p90<10s", true},   {"ttft_p95<10s", false}, {"e2el_p99<10s", false},
                 {"tpot_p90<10s", true}, {"ttft_mean<10s", false}, {"itl_p99<10s", true},   {"ttft_p90<1us", false}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_slo slo;
        struct maq_slo_outcome o;
        assert_int_equal(maq_slo_read(&slo, cases[i].text, NULL), MAQ_OK);
        maq_slo_judge(&o, &slo, r, &q);
        if (o.met[0] != cases[i].met)
            fail_msg("%s: met %d", cases[i].text, o.met[0]);
        if (cases[i].met && o.of_requests)
            assert_int_equal(o.good, 36);
    }
    maq_serve_free(r);
    maq_job_free(job);
}

/* ---- by chance ---- */

static struct maq_requests arrivals(struct maq_request *list, uint64_t *draws)
{
    struct maq_requests q = draw_requests(list, draw(draws, 1, MOST), draws);
    for (uint32_t i = 0; i < q.n; i++) {
        list[i].output = 1 + list[i].output % 200;
        list[i].session = draw(draws, 0, 5);
    }
    return q;
}

/* A limit that nobody meets is none. */
static void test_never_met(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    for (uint64_t seed = 1; seed <= EFFORT(20, 60, 1000); seed++) {
        uint64_t draws = seed;
        struct maq_serve_options options = draw_options(&draws, (enum maq_engine)draw(&draws, 0, MAQ_ENGINE_COUNT - 1));
        options.blocks = options.blocks > 0 ? options.blocks * 8 : 0;
        options.no_chunked_prefill = false;
        if (options.engine == MAQ_ENGINE_TRTLLM) /* whole prompts */
            options.max_num_batched_tokens = 4096;
        options.one_by_one = true; /* how many iterations are done at once depends on who may come */
        const struct maq_fleet_member member = {
            .job = maq_job_get(job), .options = &options, .replicas = draw(&draws, 1, REPLICAS)};
        struct maq_fleet fleet = {.members = &member,
                                  .n_members = 1,
                                  .router = (enum maq_router)draw(&draws, 0, MAQ_ROUTER_COUNT - 1),
                                  .seed = seed};
        const struct maq_requests q = arrivals(list, &draws);
        struct maq_serve_result *a = serve_fleet(&fleet, &q);
        fleet.admission = (struct maq_admission){.max_requests = MOST, .bounded = q.concurrency == 0};
        struct maq_serve_result *b = serve_fleet(&fleet, &q);
        assert_memory_equal(a->served, b->served, q.n * sizeof *a->served);
        assert_memory_equal(&a->itl_s, &b->itl_s, sizeof a->itl_s);
        assert_int_equal(b->admission.waited + b->admission.refused, 0);
        maq_serve_free(a);
        maq_serve_free(b);
    }
    maq_job_free(job);
}

static uint32_t draw_events(struct maq_fleet_event *events, uint32_t replicas, uint64_t *draws)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < replicas; k++) {
        double at = uniform(draws, 0, 6);
        if (draw(draws, 0, 1)) {
            outage(events + n, k, at, at + uniform(draws, 0, 1), at + uniform(draws, 1, 4));
            n += 3;
        } else if (draw(draws, 0, 1)) {
            events[n++] = (struct maq_fleet_event){at, k, MAQ_FLEET_LEAVES};
            events[n++] = (struct maq_fleet_event){at + uniform(draws, 0, 3), k, MAQ_FLEET_COMES};
        }
    }
    sort_events(events, n);
    return n;
}

/* Requests that a replica computes at a time: from when one is first computed to its last token. A response is on its way for a moment. */
static void expect_limit(const struct maq_serve_result *r, uint32_t limit)
{
    for (uint32_t i = 0; i < r->n_requests; i++) {
        uint32_t there = 0;
        for (uint32_t j = 0; j < r->n_requests; j++)
            there += !r->served[j].refused && r->served[j].replica == r->served[i].replica &&
                     r->served[j].scheduled_s <= r->served[i].scheduled_s &&
                     r->served[j].last_s > r->served[i].scheduled_s + 0.1;
        assert_true(r->served[i].refused || there <= limit);
    }
}

static void test_every_request_ends_or_is_refused(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    struct maq_fleet_event events[REPLICAS * 3];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    uint32_t refused = 0, waited = 0, retried = 0;
    for (uint64_t seed = 1; seed <= EFFORT(40, 150, 3000); seed++) {
        uint64_t draws = seed;
        const struct maq_serve_options options = {.engine = (enum maq_engine)draw(&draws, 0, MAQ_ENGINE_COUNT - 1)};
        const struct maq_fleet_member member = {
            .job = maq_job_get(job), .options = &options, .replicas = draw(&draws, 1, REPLICAS)};
        struct maq_fleet fleet = {
            .members = &member,
            .n_members = 1,
            .router = (enum maq_router)draw(&draws, 0, MAQ_ROUTER_COUNT - 1),
            .seed = seed,
            .admission = {.max_requests = draw(&draws, 1, 12), .max_waiting = draw(&draws, 0, 30)},
            .events = events};
        const struct maq_requests q = arrivals(list, &draws);
        fleet.admission.bounded = q.concurrency == 0 && draw(&draws, 0, 1);
        fleet.n_events = draw(&draws, 0, 1) ? draw_events(events, member.replicas, &draws) : 0;
        struct maq_serve_result *a = serve_fleet(&fleet, &q), *b = serve_fleet(&fleet, &q);
        uint32_t n = 0, of_replicas = 0;
        for (uint32_t i = 0; i < q.n; i++) {
            const struct maq_served *s = &a->served[i];
            n += s->refused;
            if (!s->refused)
                assert_true(s->arrival_s <= s->scheduled_s && s->scheduled_s < s->first_s && s->first_s <= s->last_s);
        }
        for (uint32_t k = 0; k < a->n_replicas; k++)
            of_replicas += a->replicas[k].requests;
        assert_int_equal(n, a->admission.refused);
        assert_int_equal(a->finished + n, q.n);
        assert_int_equal(of_replicas, a->finished);
        assert_true(!fleet.admission.bounded || a->admission.most_waiting <= fleet.admission.max_waiting);
        assert_true(fleet.admission.bounded || n == 0);
        if (fleet.n_events == 0) /* times of a try that was lost are not known any more */
            expect_limit(a, fleet.admission.max_requests);
        assert_memory_equal(a->served, b->served, q.n * sizeof *a->served);
        assert_memory_equal(&a->itl_s, &b->itl_s, sizeof a->itl_s);
        refused += n;
        waited += a->admission.waited;
        retried += a->availability.retried;
        maq_serve_free(a);
        maq_serve_free(b);
    }
    print_message("%u requests refused, %u waited, %u tried again\n", refused, waited, retried);
    assert_true(refused > 50 && waited > 300 && retried > 20); /* they have been met */
    maq_job_free(job);
}

/* ---- what is refused, and failing allocations ---- */

static void test_not_said_so(void **state)
{
    (void)state;
    const struct maq_request one = {.prompt = 100, .output = 10};
    struct maq_loaded_job *job = load("gpt2", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {0};
    const struct maq_fleet_member both[] = {{.job = maq_job_get(job), .options = &o, .replicas = 1}},
                                  pools[] = {
                                      {.job = maq_job_get(job), .options = &o, .replicas = 1, .role = MAQ_ROLE_PREFILL},
                                      {.job = maq_job_get(job), .options = &o, .replicas = 1, .role = MAQ_ROLE_DECODE}};
    const struct {
        struct maq_fleet fleet;
        uint32_t concurrency;
    } cases[] = {{{.members = both, .n_members = 1, .admission = {.max_requests = 1, .bounded = true}}, 1},
                 {{.members = pools, .n_members = 2, .admission = {.max_requests = 1}}, 0}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        const struct maq_requests q = {.at = &one, .n = 1, .concurrency = cases[i].concurrency};
        struct maq_serve_result *r = NULL;
        struct maq_diag *diag = maq_diag_new();
        assert_int_equal(maq_fleet_run(&r, &cases[i].fleet, &q, diag), MAQ_BAD_INPUT);
        assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_SERVE_ADMISSION);
        maq_diag_free(diag);
    }
    maq_job_free(job);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct maq_request list[12];
    for (uint32_t i = 0; i < 12; i++)
        list[i] = (struct maq_request){.arrival_s = 0.01 * i, .prompt = 100, .output = 40};
    const struct maq_requests q = {.at = list, .n = 12};
    struct maq_loaded_job *job = load("gpt2", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {0};
    const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &o, .replicas = 2};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1, .admission = {.max_requests = 1}};
    struct failing f = {0};
    while (next_failing(&f)) {
        struct maq_serve_result *r = NULL;
        enum maq_status status = maq_fleet_run(&r, &fleet, &q, NULL);
        expect_failing(&f, status, r);
        assert_true(f.nth > 0 || r->admission.waited > 0);
        maq_serve_free(r);
    }
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_at_a_time), cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_never_met),     cmocka_unit_test(test_every_request_ends_or_is_refused),
        cmocka_unit_test(test_not_said_so),   cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
