/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_pool_failures.c - replicas of prefill and decode that fail: every request ends exactly once whatever fails when; one request through an outage of
 * either side, a transfer that is cut, and how long prefill keeps a prompt that nobody reads are closed forms.
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
#include "effort.h"
#include "failing_alloc.h"
#include "maquette/serve_fleet.h"
#include "pool_jobs.h"
#include "serve/codes.h"

#define MOST 60
#define REPLICAS 6

/* ---- by hand ---- */

/* Prefill fails in the middle of the one prompt: that begins anew when prefill is back, and takes what it takes alone. */
static void test_prefill_fails(void **state)
{
    (void)state;
    const struct maq_request one = {.prompt = 6000, .output = 20};
    const struct maq_requests q = {.at = &one, .n = 1};
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct setting s = one_each((enum maq_engine)e);
        struct maq_fleet_event events[3];
        struct maq_serve_result *alone = run(&s, NULL, 0, &q);
        outage(events, 0, (alone->served[0].scheduled_s + alone->pools->handed[0].computed_s) / 2, 3, 50);
        struct maq_serve_result *r = run(&s, events, 3, &q);
        expect_close(r->served[0].first_s - 50, alone->served[0].first_s, 1e-9, "first token behind the outage");
        expect_close(r->served[0].last_s - 50, alone->served[0].last_s, 1e-9, "last token behind it");
        assert_int_equal(r->served[0].retries, 1);
        assert_int_equal(r->availability.failures, 1);
        assert_int_equal(r->availability.retried, 1);
        expect_close(r->availability.nobody_s, 50 - 3, 1e-12, "time without prefill");
        expect_close(r->availability.prefill_replicas, 1 - 47 / r->duration_s, 1e-12, "replicas that compute prompts");
        expect_close(r->availability.replicas, 2 - 47 / r->duration_s, 1e-12, "replicas");
        maq_serve_free(alone);
        maq_serve_free(r);
        maq_job_free(s.job);
    }
}

/* Decode fails while keys and values are on their way to it: half of them were sent for nothing, and all begins anew. */
static void test_transfer_is_cut(void **state)
{
    (void)state;
    const struct maq_request one = {.prompt = 4096, .output = 20};
    const struct maq_requests q = {.at = &one, .n = 1};
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct setting s = one_each((enum maq_engine)e);
        struct maq_fleet_event events[3];
        s.handover = (struct maq_handover){.bps = 1e9, .latency_s = 1e-9};
        struct maq_serve_result *alone = run(&s, NULL, 0, &q);
        const struct maq_handed *h = &alone->pools->handed[0];
        double middle = (h->begins_s + h->ends_s) / 2, back = 200;
        assert_true(middle > h->computed_s); /* the transfer is long, or the case says nothing */
        outage(events, 1, middle, middle + 1, back);
        struct maq_serve_result *r = run(&s, events, 3, &q);
        assert_int_equal(r->pools->cut, 1);
        expect_close(r->pools->cut_bytes, alone->pools->bytes / 2, 1e-6, "bytes that are lost");
        expect_close(r->pools->bytes, alone->pools->bytes, 1e-12, "bytes that are not");
        expect_close(r->pools->bps, 1e9, 1e-9, "bandwidth");
        assert_int_equal(r->served[0].retries, 1);
        /* vLLM's prefill finds the prompt in its cache, and so do the others but for what decode waits for */
        assert_true(r->served[0].first_s > (e == MAQ_ENGINE_VLLM ? middle + 1 : back));
        assert_true(r->served[0].last_s > back && r->served[0].last_s < back + alone->served[0].last_s + 1);
        maq_serve_free(alone);
        maq_serve_free(r);
        maq_job_free(s.job);
    }
}

/*
 * Prefill has room for one prompt, and of two replicas that decode one fails with a prompt on its way to it. Prefill keeps that for as long as its engine
 * does, and only then has room for it again.
 */
static void test_how_long_prefill_keeps_a_prompt(void **state)
{
    (void)state;
    const struct maq_request one = {.prompt = 4096, .output = 20};
    const struct maq_requests q = {.at = &one, .n = 1};
    static const double after_fails[] = {[MAQ_ENGINE_VLLM] = 20, [MAQ_ENGINE_TRTLLM] = 0},
                        after_computed[] = {[MAQ_ENGINE_VLLM] = 30, [MAQ_ENGINE_TRTLLM] = 60};
    for (int late = 0; late < 2; late++)
        for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
            struct setting s = one_each((enum maq_engine)e);
            struct maq_fleet_event events[3];
            s.n_decode = 2;
            s.p.block_size = s.d.block_size = 16;
            s.p.blocks = 4096 / 16 + 40;
            s.p.no_prefix_caching = true;
            s.handover = (struct maq_handover){.bps = late ? 1e7 : 1e8, .latency_s = 1e-9}; /* 54 s, or 5.4 */
            struct maq_serve_result *alone = run(&s, NULL, 0, &q);
            const struct maq_handed *h = &alone->pools->handed[0];
            double fails = late ? 45 : 3, lost = fails + 2;
            outage(events, alone->served[0].replica, fails, lost, 1000);
            struct maq_serve_result *r = run(&s, events, 3, &q);
            double until =
                       e == MAQ_ENGINE_SGLANG ? lost : fmax(fails + after_fails[e], h->computed_s + after_computed[e]),
                   begun = r->served[0].scheduled_s;
            if (fabs(begun - until) > 0.5)
                fail_msg("%s: begins at %g s, room from %g s on", maq_engine_name((enum maq_engine)e), begun, until);
            assert_true(begun >= until);
            assert_true(r->served[0].replica != alone->served[0].replica);
            maq_serve_free(alone);
            maq_serve_free(r);
            maq_job_free(s.job);
        }
}

/* What fails when nothing is there any more changes nothing, to the bit. */
static void test_nothing_is_lost(void **state)
{
    (void)state;
    static struct maq_request list[20];
    struct setting s = one_each(MAQ_ENGINE_VLLM);
    for (uint32_t i = 0; i < 20; i++)
        list[i] = (struct maq_request){.arrival_s = i * 0.1, .prompt = 900, .output = 30};
    const struct maq_requests q = {.at = list, .n = 20};
    struct maq_fleet_event events[3];
    outage(events, 1, 500, 600, 700);
    struct maq_serve_result *a = run(&s, NULL, 0, &q), *b = run(&s, events, 3, &q);
    assert_memory_equal(a->served, b->served, 20 * sizeof *a->served);
    assert_memory_equal(&a->itl_s, &b->itl_s, sizeof a->itl_s);
    assert_memory_equal(a->pools->handed, b->pools->handed, 20 * sizeof *a->pools->handed);
    assert_int_equal(b->availability.failures + b->availability.retried + b->pools->cut, 0);
    maq_serve_free(a);
    maq_serve_free(b);
    maq_job_free(s.job);
}

/* ---- by chance ---- */

static uint32_t draw_failures(struct maq_fleet_event *events, uint32_t replicas, double until_s, uint64_t *draws)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < replicas; k++) {
        double at = draw(draws, 0, 3) == 0 ? 0 : uniform(draws, 0, until_s);
        for (uint32_t i = draw(draws, 0, 3); i > 0; i--, n += 3) {
            double known = at + uniform(draws, 0, 1), back = known + uniform(draws, 0, until_s / 2);
            outage(events + n, k, at, known, back);
            at = back + uniform(draws, 0, until_s / 3);
        }
    }
    sort_events(events, n);
    return n;
}

/* No token comes from a replica that has failed: who had its last token there had it before. */
static void expect_nobody_dead(const struct maq_serve_result *r, const struct maq_fleet_event *events, uint32_t n)
{
    const double slack = 0.1; /* from the last iteration to the client */
    for (uint32_t i = 0; i < n; i += 1)
        for (uint32_t k = 0; events[i].kind == MAQ_FLEET_FAILS && k < r->n_requests; k++) {
            double back = events[i].at_s;
            for (uint32_t j = i + 1; j < n && back <= events[i].at_s; j++)
                if (events[j].replica == events[i].replica && events[j].kind == MAQ_FLEET_BACK)
                    back = events[j].at_s;
            const struct maq_served *s = &r->served[k];
            if (s->replica == events[i].replica)
                assert_false(s->last_s > events[i].at_s + slack && s->first_s < events[i].at_s && s->last_s < back);
        }
}

static void test_every_request_ends_once(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    struct maq_fleet_event events[REPLICAS * 9];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    uint32_t retried = 0, cut = 0, again = 0;
    for (uint64_t seed = 1; seed <= EFFORT(40, 150, 3000); seed++) {
        uint64_t draws = seed;
        struct setting s = draw_setting(job, &draws);
        struct maq_requests q = draw_requests(list, draw(&draws, 1, MOST), &draws);
        for (uint32_t i = 0; i < q.n; i++)
            list[i].output = 1 + list[i].output % 400;
        uint32_t n = draw_failures(events, s.n_prefill + s.n_decode, uniform(&draws, 0.5, 12), &draws);
        struct maq_serve_result *a = run(&s, events, n, &q), *b = run(&s, events, n, &q);
        expect_conserved(a, &s, &q);
        expect_nobody_dead(a, events, n);
        assert_memory_equal(a->served, b->served, q.n * sizeof *a->served);
        assert_memory_equal(&a->itl_s, &b->itl_s, sizeof a->itl_s);
        retried += a->availability.retried;
        cut += a->pools->cut;
        for (uint32_t i = 0; i < q.n; i++)
            again += a->served[i].retries > 1;
        maq_serve_free(a);
        maq_serve_free(b);
    }
    print_message("%u requests tried again, %u of them more than once, %u transfers cut\n", retried, again, cut);
    assert_true(retried > 100 && again > 10 && cut > 5); /* they have been met */
    maq_job_free(job);
}

/* ---- failing allocations ---- */

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct maq_request list[12];
    struct maq_fleet_event events[6];
    for (uint32_t i = 0; i < 12; i++)
        list[i] = (struct maq_request){.arrival_s = 0.01 * i, .prompt = 100, .output = 40};
    const struct maq_requests q = {.at = list, .n = 12};
    struct setting s = {.job = load("gpt2", "h100-sxm:8", "", 8), .n_prefill = 1, .n_decode = 2};
    s.handover.bps = 1e8;
    outage(events, 1, 0.06, 0.07, 0.5);
    outage(events + 3, 0, 0.08, 0.2, 0.6);
    struct failing f = {0};
    while (next_failing(&f)) {
        struct maq_serve_result *r = NULL;
        enum maq_status status = try_run(&r, &s, events, 6, &q, NULL);
        expect_failing(&f, status, r);
        assert_true(f.nth > 0 || r->availability.retried > 0);
        maq_serve_free(r);
    }
    maq_job_free(s.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefill_fails),
        cmocka_unit_test(test_transfer_is_cut),
        cmocka_unit_test(test_how_long_prefill_keeps_a_prompt),
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_every_request_ends_once),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
