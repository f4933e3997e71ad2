/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fleet_availability.c - how many replicas are there: binomial laws and machine repair by hand, the closed form against
 * years of draws, how many replicas are needed.
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
#include "failing_alloc.h"
#include "maquette/fleet_availability.h"
#include "serve_jobs.h"

#define HOUR 3600.0
#define YEAR (365.25 * 24 * HOUR)

static struct maq_loaded_failures *law(const char *what)
{
    struct maq_loaded_failures *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_failures_load(&box, what, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return box;
}

static struct maq_availability of(const struct maq_availability_spec *s, uint32_t n, uint32_t needed)
{
    struct maq_availability a;
    assert_int_equal(maq_availability_of(&a, s, n, needed), MAQ_OK);
    return a;
}

static double at_least(uint32_t n, uint32_t k, double up)
{
    double sum = 0;
    for (uint32_t i = k; i <= n; i++)
        sum += exp(lgamma(n + 1.0) - lgamma(i + 1.0) - lgamma(n - i + 1.0)) * pow(up, i) * pow(1 - up, n - i);
    return sum;
}

/* ---- by hand ---- */

/* A node is a replica, and fails every 100 hours for an hour: a binomial law. */
static void test_nodes_are_binomial(void **state)
{
    (void)state;
    struct maq_loaded_failures *box = law("rate=0.24/node/day,repair=1h,detection=0s,requeue=0s");
    const struct maq_availability_spec s = {
        .failures = maq_failures_get(box), .gpus = 8, .gpus_per_node = 8, .start_s = 0};
    double up = 100.0 / 101;
    for (uint32_t n = 1; n <= 60; n += n < 6 ? 1 : 17)
        for (uint32_t k = 1; k <= n; k += 1 + n / 5)
            expect_close(of(&s, n, k).share, at_least(n, k, up), 1e-9, "share of the time");
    struct maq_availability a = of(&s, 5, 5);
    expect_close(a.replicas, 5 * up, 1e-9, "replicas");
    expect_close(a.one, up, 1e-9, "of one");
    expect_close(a.out_every_s, 101 * HOUR, 1e-9, "every");
    expect_close(a.out_s, HOUR, 1e-9, "out");
    maq_failures_free(box);
}

/* Eight replicas on a node go together: all of them, or none. */
static void test_a_node_takes_all(void **state)
{
    (void)state;
    struct maq_loaded_failures *box = law("rate=0.24/node/day,repair=1h,detection=0s,requeue=0s");
    const struct maq_availability_spec s = {
        .failures = maq_failures_get(box), .gpus = 1, .gpus_per_node = 8, .start_s = 0};
    double up = 100.0 / 101;
    for (uint32_t k = 1; k <= 24; k++)
        expect_close(of(&s, 24, k).share, at_least(3, (k + 7) / 8, up), 1e-9, "share of the time");
    /* twenty: the last node has four of them, and either it or another one is out */
    expect_close(of(&s, 20, 13).share, pow(up, 3) + pow(up, 2) * (1 - up) + 0, 1e-9, "four may be out");
    maq_failures_free(box);
}

/* One spare node, one replica: of the two-node repair chain states 0, 1, 2 in repair. */
static void test_a_spare_node(void **state)
{
    (void)state;
    struct maq_loaded_failures *box = law("rate=2.4/node/day,repair=5h,detection=0s,requeue=0s");
    const struct maq_availability_spec s = {
        .failures = maq_failures_get(box), .gpus = 8, .gpus_per_node = 8, .spare_nodes = 1};
    double a = 0.1 * 5; /* lambda / mu */
    expect_close(of(&s, 1, 1).share, (1 + a) / (1 + a + a * a / 2), 1e-9, "one of two nodes");
    maq_failures_free(box);
}

/* A replica over two nodes needs both. */
static void test_over_two_nodes(void **state)
{
    (void)state;
    struct maq_loaded_failures *box = law("rate=0.24/node/day,repair=1h,detection=0s,requeue=0s");
    const struct maq_availability_spec s = {.failures = maq_failures_get(box), .gpus = 16, .gpus_per_node = 8};
    double up = 100.0 / 101;
    for (uint32_t n = 1; n <= 9; n++)
        expect_close(of(&s, n, 1 + n / 2).share, at_least(n, 1 + n / 2, up * up), 1e-9, "share of the time");
    maq_failures_free(box);
}

/* Replicas by node: the first ones have one more. The share of the time with at least k of them, over all sets of nodes that are out. */
static double by_nodes(uint32_t n, uint32_t nodes, uint32_t k, double up)
{
    double sum = 0;
    for (uint32_t out = 0; out < 1u << nodes; out++) {
        uint32_t there = 0;
        double p = 1;
        for (uint32_t i = 0; i < nodes; i++) {
            bool is_out = out >> i & 1;
            there += is_out ? 0 : n / nodes + (i < n % nodes);
            p *= is_out ? 1 - up : up;
        }
        sum += there >= k ? p : 0;
    }
    return sum;
}

/* Eight nodes, replicas of a GPU: packed on the first ones or spread over all. The mean is the same, how many are out at once is not. */
static void test_spread(void **state)
{
    (void)state;
    struct maq_loaded_failures *box = law("rate=0.24/node/day,repair=1h,detection=0s,requeue=0s");
    struct maq_availability_spec s = {.failures = maq_failures_get(box), .gpus = 1, .gpus_per_node = 8};
    double up = 100.0 / 101;
    for (uint32_t n = 1; n <= 30; n += n < 12 ? 1 : 6) {
        struct maq_availability packed = of(&s, n, n);
        s.spread_nodes = 8;
        for (uint32_t k = 1; k <= n; k++)
            expect_close(of(&s, n, k).share, by_nodes(n, n < 8 ? n : 8, k, up), 1e-9, "spread");
        struct maq_availability spread = of(&s, n, n);
        expect_close(spread.replicas, packed.replicas, 1e-9, "in the mean");
        if (n > 1)
            assert_true(spread.share < packed.share && of(&s, n, 1).share > packed.share);
        s.spread_nodes = 0;
    }
    expect_close(1 - of(&s, 8, 1).share, 1 - up, 1e-9, "all on one");
    s.gpus = 16; /* of several nodes each: as it was */
    struct maq_availability whole = of(&s, 4, 3);
    s.spread_nodes = 8;
    expect_close(of(&s, 4, 3).share, whole.share, 1e-12, "over two nodes");
    maq_failures_free(box);
}

/* Nodes fail at the same times wherever replicas stand: the first replica is on the first node in either case. */
static void test_common_numbers(void **state)
{
    (void)state;
    struct maq_loaded_failures *box = law("llama3,rate=0.5/node/day,repair=2h");
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8 x 4", ", tp: 2", 16);
    const struct maq_serve_options o = {0};
    const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &o, .replicas = 4};
    struct maq_fleet fleet = {.members = &member, .n_members = 1};
    const struct maq_outage_spec spec = {.failures = maq_failures_get(box), .span_s = YEAR, .seed = 3};
    struct maq_outages at[2];
    uint32_t nodes[4] = {0};
    for (int i = 0; i < 2; i++) {
        fleet.placement = i ? MAQ_PLACEMENT_SPREAD : MAQ_PLACEMENT_PACK;
        assert_int_equal(maq_outages_draw(&at[i], &fleet, &spec, NULL), MAQ_OK);
    }
    for (uint32_t a = 0, b = 0;; a++, b++) {
        while (a < at[0].n && at[0].events[a].replica != 0)
            a++;
        while (b < at[1].n && at[1].events[b].replica != 0)
            b++;
        assert_true((a < at[0].n) == (b < at[1].n));
        if (a == at[0].n)
            break;
        assert_true(at[0].events[a].kind == at[1].events[b].kind &&
                    fabs(at[0].events[a].at_s - at[1].events[b].at_s) < 1e-9);
    }
    for (uint32_t i = 0; i < at[1].n; i++)
        nodes[at[1].events[i].replica]++;
    for (int k = 0; k < 4; k++)
        assert_true(nodes[k] > 0);
    for (uint32_t i = 1; i < at[1].n; i++) /* nobody fails with another one */
        assert_true(at[1].events[i].kind != MAQ_FLEET_FAILS || at[1].events[i - 1].kind != MAQ_FLEET_FAILS ||
                    at[1].events[i].at_s > at[1].events[i - 1].at_s);
    maq_outages_free(&at[0]);
    maq_outages_free(&at[1]);
    maq_job_free(job);
    maq_failures_free(box);
}

static void test_nothing_fails(void **state)
{
    (void)state;
    struct maq_loaded_failures *box = law("none");
    const struct maq_availability_spec s = {.failures = maq_failures_get(box), .gpus = 2, .gpus_per_node = 8};
    struct maq_availability a = of(&s, 9, 9);
    expect_close(a.share, 1, 1e-12, "share");
    expect_close(a.carried, 1, 1e-12, "carried");
    assert_true(isinf(a.out_every_s));
    maq_failures_free(box);
}

/* ---- against draws ---- */

struct scene {
    const char *law;
    int tp;
    uint32_t n, needed, spare_nodes;
    double start_s, tolerance;
    bool spread;
};

/* Where failures of GPUs lose nodes and there are spare ones, draws let a place that waits for one lose another: the closed form counts it as one that waits. */
static const struct scene scenes[] = {
    {"llama3,rate=0.5/node/day", 1, 20, 14, 0, 300, 0.06, false},
    {"llama3,rate=0.5/node/day,repair=2h", 2, 12, 11, 0, 300, 0.02, false},
    {"llama3,rate=0.3/node/day,repair=6h", 8, 6, 5, 1, 600, 0.3, false},
    {"llama3,rate=0.1/node/day,repair=6h", 8, 6, 5, 1, 600, 0.25, false},
    {"llama3,rate=0.2/node/day,repair=3h", 16, 3, 2, 0, 1200, 0.1, false},
    {"rate=0.5/node/day,repair=4h,requeue=1h", 4, 9, 8, 2, 60, 0.1, false},
    {"imbue,rate=0.4/node/day,repair=5h", 16, 4, 3, 2, 100, 0.1, false},
    {"llama3,rate=0.5/node/day", 1, 20, 14, 0, 300, 0.06, true},
    {"llama3,rate=0.5/node/day,repair=2h", 2, 12, 9, 0, 300, 0.06, true},
    {"rate=0.5/node/day,repair=4h,requeue=1h", 4, 9, 8, 2, 60, 0.1, true},
};

static void test_years_of_draws(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(scenes); i++) {
        const struct scene *x = &scenes[i];
        char plan[32];
        snprintf(plan, sizeof plan, ", tp: %d", x->tp);
        struct maq_loaded_failures *box = law(x->law);
        struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8 x 8", plan, 64 / x->tp);
        const struct maq_serve_options o = {0};
        const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &o, .replicas = x->n};
        const struct maq_fleet fleet = {
            .members = &member, .n_members = 1, .placement = x->spread ? MAQ_PLACEMENT_SPREAD : MAQ_PLACEMENT_PACK};
        const struct maq_outage_spec spec = {.failures = maq_failures_get(box),
                                             .start_s = x->start_s,
                                             .spare_nodes = x->spare_nodes,
                                             .span_s = 40 * YEAR,
                                             .seed = 5};
        const struct maq_availability_spec s = {.failures = maq_failures_get(box),
                                                .gpus = (uint32_t)x->tp,
                                                .gpus_per_node = 8,
                                                .spare_nodes = x->spare_nodes,
                                                .spread_nodes = x->spread ? 8 : 0,
                                                .start_s = x->start_s};
        struct maq_availability_draws t;
        assert_int_equal(maq_availability_draw(&t, &fleet, &x->needed, &spec, 6, NULL), MAQ_OK);
        struct maq_availability a = of(&s, x->n, x->needed);
        print_message("%s tp%d%s: %.5f, drawn %.5f (%.5f to %.5f)\n", x->law, x->tp, x->spread ? " spread" : "",
                      a.share, t.mean, t.low, t.high);
        assert_true(t.low <= t.mean && t.mean <= t.high && t.high < 1);
        expect_close(1 - t.mean, 1 - a.share, x->tolerance, x->law);
        maq_job_free(job);
        maq_failures_free(box);
    }
}

/* ---- how many ---- */

static void test_needs(void **state)
{
    (void)state;
    struct maq_loaded_failures *box = law("llama3,rate=0.1/node/day");
    for (uint32_t gpus = 1; gpus <= 16; gpus *= 2) {
        struct maq_availability_spec s = {
            .failures = maq_failures_get(box), .gpus = gpus, .gpus_per_node = 8, .start_s = 120};
        uint32_t before = 0;
        for (uint32_t k = 1; k <= 24; k++) {
            uint32_t n, none;
            assert_int_equal(maq_availability_needs(&n, &s, k, 200, 0.99), MAQ_OK);
            assert_true(n >= k && n >= before); /* who holds more holds less */
            assert_true(of(&s, n, k).share >= 0.99 && (n == k || of(&s, n - 1, k).share < 0.99));
            assert_true(of(&s, n, k).carried >= of(&s, n, k).share);
            if (n > k) {
                assert_int_equal(maq_availability_needs(&none, &s, k, n - 1, 0.99), MAQ_OK);
                assert_int_equal(none, 0);
            }
            before = n;
        }
    }
    maq_failures_free(box);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct maq_loaded_failures *box = law("llama3,rate=1/node/day");
    for (uint32_t gpus = 4; gpus <= 16; gpus *= 4) {
        const struct maq_availability_spec s = {
            .failures = maq_failures_get(box), .gpus = gpus, .gpus_per_node = 8, .spare_nodes = 1};
        struct maq_availability a;
        struct failing f = {0};
        while (next_failing(&f))
            assert_int_equal(maq_availability_of(&a, &s, 5, 4), f.nth > 0 ? MAQ_NO_MEMORY : MAQ_OK);
    }
    maq_failures_free(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nodes_are_binomial),
        cmocka_unit_test(test_a_node_takes_all),
        cmocka_unit_test(test_a_spare_node),
        cmocka_unit_test(test_over_two_nodes),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_common_numbers),
        cmocka_unit_test(test_nothing_fails),
        cmocka_unit_test(test_years_of_draws),
        cmocka_unit_test(test_needs),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
