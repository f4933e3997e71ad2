/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_availability.c - replicas that come, leave and fail: nothing is lost and nothing is served twice, whatever happens; one request
 * through an outage, and what is counted of it, are closed forms.
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

#include "base/alloc.h"
#include "base/check.h"
#include "failing_alloc.h"
#include "fleet_jobs.h"
#include "maquette/serve_fleet.h"
#include "serve/codes.h"
#include "serve_jobs.h"

#define MOST 120
#define REPLICAS 3

struct setting {
    struct maq_loaded_job *job;
    struct maq_serve_options options;
    struct maq_fleet_member member;
    struct maq_fleet fleet;
};

static void begin(struct setting *s, uint32_t replicas)
{
    *s = (struct setting){.job = load("llama-3.1-8b", "h100-sxm:8", "", 8)};
    s->member = (struct maq_fleet_member){.job = maq_job_get(s->job), .options = &s->options, .replicas = replicas};
    s->fleet = (struct maq_fleet){.members = &s->member, .n_members = 1, .router = MAQ_ROUTER_LEAST_REQUESTS};
}

static struct maq_serve_result *run(struct setting *s, const struct maq_fleet_event *events, uint32_t n,
                                    const struct maq_requests *q)
{
    struct maq_serve_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    s->fleet.events = events;
    s->fleet.n_events = n;
    if (maq_fleet_run(&r, &s->fleet, q, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

static struct maq_requests steady(struct maq_request *list, uint32_t n, double gap_s, int64_t output)
{
    for (uint32_t i = 0; i < n; i++)
        list[i] = (struct maq_request){.arrival_s = i * gap_s, .prompt = 400, .output = output};
    return (struct maq_requests){.at = list, .n = n};
}

/* Events that change nothing: the outcome of a fleet without any. */
static void test_nothing_happens(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    const struct maq_fleet_event events[] = {
        {0, 0, MAQ_FLEET_COMES}, {1.5, 1, MAQ_FLEET_COMES}, {2, 2, MAQ_FLEET_BACK}};
    struct setting s;
    begin(&s, REPLICAS);
    const struct maq_requests q = steady(list, MOST, 0.03, 60);
    for (int router = 0; router < MAQ_ROUTER_COUNT; router++) {
        s.fleet.router = (enum maq_router)router;
        struct maq_serve_result *a = run(&s, NULL, 0, &q), *b = run(&s, events, MAQ_COUNT(events), &q);
        assert_memory_equal(a->served, b->served, MOST * sizeof *a->served);
        assert_int_equal(a->iterations, b->iterations);
        assert_true(!a->availability.known && b->availability.known);
        assert_int_equal(b->availability.failures + b->availability.retried, 0);
        expect_close(b->availability.replicas, REPLICAS, 1e-12, "replicas");
        expect_close(b->availability.gpus, REPLICAS, 1e-12, "GPUs");
        maq_serve_free(a);
        maq_serve_free(b);
    }
    maq_job_free(s.job);
}

/*
 * A request whose only replica fails begins anew when that is back: its first token is as long behind that as it would be behind its arrival,
 * less what the way to the engine takes. One that is sent while nobody is there waits for as long.
 */
static void test_one_through_an_outage(void **state)
{
    (void)state;
    struct setting s;
    begin(&s, 1);
    const double fails = 0.2, lost = 5, back = 100;
    const struct maq_fleet_event events[] = {
        {fails, 0, MAQ_FLEET_FAILS}, {lost, 0, MAQ_FLEET_LOST}, {back, 0, MAQ_FLEET_BACK}};
    const struct maq_request one = {.prompt = 400, .output = 500};
    const struct maq_request three[] = {{.prompt = 400, .output = 500},
                                        {.arrival_s = 1, .prompt = 400, .output = 500},
                                        {.arrival_s = 50, .prompt = 400, .output = 500}};
    struct maq_serve_result *alone = run(&s, NULL, 0, &(struct maq_requests){.at = &one, .n = 1}),
                            *r = run(&s, events, 3, &(struct maq_requests){.at = &one, .n = 1});
    assert_true(alone->served[0].first_s < fails && alone->served[0].last_s > fails); /* or the case says nothing */
    expect_close(r->served[0].first_s - back, alone->served[0].first_s, 1e-9, "first token behind the outage");
    expect_close(r->served[0].last_s - back, alone->served[0].last_s, 1e-9, "last token behind it");
    assert_int_equal(r->served[0].retries, 1);
    assert_int_equal(r->availability.failures, 1);
    assert_int_equal(r->availability.retried, 1);
    expect_close(r->availability.nobody_s, back - lost, 1e-12, "time with nobody");
    expect_close(r->availability.replicas, 1 - (back - lost) / r->duration_s, 1e-12, "replicas");
    maq_serve_free(r);
    r = run(&s, events, 3, &(struct maq_requests){.at = three, .n = 3});
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(r->served[i].first_s > back && r->served[i].arrival_s == three[i].arrival_s);
        assert_int_equal(r->served[i].retries, i < 2); /* the second was sent to it before its router knew */
    }
    assert_int_equal(r->finished, 3);
    maq_serve_free(r);
    maq_serve_free(alone);
    maq_job_free(s.job);
}

/* One that leaves ends what it has, takes nothing more, and is paid for until then; one that comes back is empty. */
static void test_leaving(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    struct setting s;
    begin(&s, 2);
    const struct maq_requests q = steady(list, MOST, 0.1, 200);
    const double leaves = 3.05, comes = 8.05;
    const struct maq_fleet_event events[] = {{leaves, 1, MAQ_FLEET_LEAVES}, {comes, 1, MAQ_FLEET_COMES}};
    struct maq_serve_result *r = run(&s, events, 2, &q);
    double last = 0, served = 0;
    for (uint32_t i = 0; i < q.n; i++) {
        const struct maq_served *at = &r->served[i];
        assert_int_equal(at->retries, 0);
        if (at->replica == 1 && at->arrival_s < leaves)
            last = at->last_s > last ? at->last_s : last;
        assert_true(at->replica == 0 || at->arrival_s < leaves || at->arrival_s > comes);
        served += at->replica == 1 && at->arrival_s > comes;
    }
    assert_true(last > leaves && last < comes && served > 5);
    expect_close(r->availability.replicas, 2 - (comes - leaves) / r->duration_s, 1e-12, "replicas");
    expect_close(r->availability.gpus, 2 - (comes - last) / r->duration_s, 1e-3, "GPUs");
    maq_serve_free(r);
    maq_job_free(s.job);
}

static uint32_t draw_events(struct maq_fleet_event *events, double until_s, uint64_t *draws)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < REPLICAS; k++) {
        double at = draw(draws, 0, 2) == 0 ? 0 : uniform(draws, 0, until_s / 2);
        for (uint32_t i = draw(draws, 0, 2); i > 0; i--) {
            if (draw(draws, 0, 1) == 0) {
                double known = at + uniform(draws, 0, 1), back = known + uniform(draws, 0, until_s / 3);
                events[n++] = (struct maq_fleet_event){at, k, MAQ_FLEET_FAILS};
                events[n++] = (struct maq_fleet_event){known, k, MAQ_FLEET_LOST};
                events[n++] = (struct maq_fleet_event){back, k, MAQ_FLEET_BACK};
                at = back;
            } else {
                double comes = at + uniform(draws, 0, until_s / 3);
                events[n++] = (struct maq_fleet_event){at, k, MAQ_FLEET_LEAVES};
                events[n++] = (struct maq_fleet_event){comes, k, MAQ_FLEET_COMES};
                at = comes;
            }
            at += uniform(draws, 0, until_s / 4);
        }
    }
    sort_events(events, n);
    return n;
}

/* Whatever happens, each request ends once, on a replica that is there, and both ways of stepping agree. */
static void test_conserved(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    struct maq_fleet_event events[REPLICAS * 6];
    uint32_t failures = 0, retried = 0, waited = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t draws = seed * 31;
        struct setting s;
        begin(&s, REPLICAS);
        s.options = draw_options(&draws, seed % 3 == 0 ? MAQ_ENGINE_SGLANG : MAQ_ENGINE_VLLM);
        s.fleet.router = (enum maq_router)draw(&draws, 0, MAQ_ROUTER_COUNT - 1);
        const struct maq_requests q = draw_requests(list, draw(&draws, 10, MOST), &draws);
        struct maq_serve_result *plain = run(&s, NULL, 0, &q);
        uint32_t n = draw_events(events, plain->duration_s, &draws), tried = 0;
        struct maq_serve_result *a = run(&s, events, n, &q), *b = run(&s, events, n, &q);
        assert_int_equal(a->finished, q.n);
        assert_memory_equal(a->served, b->served, q.n * sizeof *a->served);
        for (uint32_t i = 0; i < q.n; i++) {
            const struct maq_served *at = &a->served[i];
            assert_true(at->replica < REPLICAS && at->arrival_s <= at->scheduled_s && at->scheduled_s < at->first_s &&
                        at->first_s <= at->last_s);
            tried += at->retries > 0;
        }
        assert_int_equal(a->availability.retried, tried);
        assert_true(a->availability.replicas <= REPLICAS && a->availability.gpus <= REPLICAS * (1 + 1e-9));
        failures += a->availability.failures;
        retried += tried;
        waited += a->availability.nobody_s > 0;
        maq_serve_free(plain);
        maq_serve_free(a);
        maq_serve_free(b);
        maq_job_free(s.job);
    }
    print_message("%u failures, %u requests again, %u times nobody was there\n", failures, retried, waited);
    assert_true(failures > 20 && retried > 50 && waited > 2);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    static struct maq_request list[20];
    struct setting s;
    begin(&s, 2);
    const struct maq_requests q = steady(list, 20, 0.05, 40);
    const struct maq_fleet_event events[] = {
        {0.3, 0, MAQ_FLEET_FAILS}, {0.4, 0, MAQ_FLEET_LOST}, {2, 0, MAQ_FLEET_BACK}};
    s.fleet.events = events;
    s.fleet.n_events = 3;
    uint32_t failed = 0;
    for (uint32_t after = 1; after < 400; after += 7) {
        struct maq_serve_result *r = NULL;
        asked = 0;
        fail_at = after;
        maq__set_alloc_gate(fail_nth);
        enum maq_status status = maq_fleet_run(&r, &s.fleet, &q, NULL);
        maq__set_alloc_gate(NULL);
        assert_true(status == MAQ_OK || status == MAQ_NO_MEMORY);
        failed += status != MAQ_OK;
        if (status == MAQ_OK)
            maq_serve_free(r);
    }
    assert_true(failed > 10);
    maq_job_free(s.job);
}

/* ---- starting ---- */

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-9 * fabs(b);
}

/* From drives: all of the checkpoint through those of a node, then a rank's part over its link; from a peer that part through its port. */
static void test_loading(void **state)
{
    (void)state;
    struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM};
    struct maq_loaded_job *one = load("llama-3.1-8b", "h100-sxm:8", "", 8),
                          *cut = load("llama-3.1-8b", "h100-sxm:8", ", tensor_model_parallel_size: 8", 8);
    double whole, part, twice, peer, rate = 10e9;
    const struct maq_device *h100 = &maq_job_get(one)->cluster.groups[0].device;
    assert_int_equal(maq_serve_load_s(&whole, maq_job_get(one), &o, MAQ_WEIGHTS_FROM_DISK, rate, NULL), MAQ_OK);
    assert_int_equal(maq_serve_load_s(&part, maq_job_get(cut), &o, MAQ_WEIGHTS_FROM_DISK, rate, NULL), MAQ_OK);
    assert_int_equal(maq_serve_load_s(&twice, maq_job_get(one), &o, MAQ_WEIGHTS_FROM_DISK, 2 * rate, NULL), MAQ_OK);
    assert_int_equal(maq_serve_load_s(&peer, maq_job_get(one), &o, MAQ_WEIGHTS_FROM_PEER, rate, NULL), MAQ_OK);
    double bytes = (double)maq_job_get(one)->model.params * 2;
    double link = h100->host_copy_bps > 0 ? h100->host_copy_bps : h100->host_bps;
    assert_true(near(whole, bytes / rate + bytes / link));
    assert_true(near(whole - twice, bytes / (2 * rate)));
    assert_true(near(peer, bytes / rate));
    assert_true(part < whole && part > bytes / rate + bytes / 8 / link); /* norms are on every rank */
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_serve_load_s(&whole, maq_job_get(one), &o, MAQ_WEIGHTS_FROM_DISK, 0, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_SERVE_START);
    maq_diag_free(diag);
    maq_job_free(one);
    maq_job_free(cut);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_loading),
        cmocka_unit_test(test_nothing_happens),
        cmocka_unit_test(test_one_through_an_outage),
        cmocka_unit_test(test_leaving),
        cmocka_unit_test(test_conserved),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
