/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fleet_outages.c - when replicas are there: how often nodes fail and for how long are the means of their laws, replicas of a node fail
 * together, spare nodes shorten outages, a schedule is followed; and what is promised of a day with failures holds on other days.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "effort.h"
#include "maquette/fleet_outages.h"
#include "maquette/slo.h"
#include "serve_jobs.h"

#define DAY 86400.0

struct setting {
    struct maq_loaded_job *job;
    struct maq_serve_options options;
    struct maq_fleet_member member;
    struct maq_fleet fleet;
    struct maq_loaded_failures *failures;
    struct maq_outage_spec spec;
};

static void begin(struct setting *s, int tp, uint32_t replicas, const char *failures)
{
    char plan[32];
    snprintf(plan, sizeof plan, ", tp: %d", tp);
    *s = (struct setting){.job = load("llama-3.1-8b", "h100-sxm:8 x 64, rail 400G", plan, 512)};
    s->member = (struct maq_fleet_member){.job = maq_job_get(s->job), .options = &s->options, .replicas = replicas};
    s->fleet = (struct maq_fleet){.members = &s->member, .n_members = 1, .router = MAQ_ROUTER_LEAST_REQUESTS};
    assert_int_equal(maq_failures_load(&s->failures, failures, NULL), MAQ_OK);
    s->spec = (struct maq_outage_spec){.failures = maq_failures_get(s->failures), .start_s = 120, .span_s = 100 * DAY};
}

static void end(struct setting *s)
{
    maq_failures_free(s->failures);
    maq_job_free(s->job);
}

/* Events of each replica come in threes, in order, and those of all are in the order of time. */
static void expect_in_order(const struct maq_outages *o, uint32_t replicas)
{
    enum maq_fleet_event_kind expected[512];
    for (uint32_t k = 0; k < replicas; k++)
        expected[k] = MAQ_FLEET_FAILS;
    for (uint32_t i = 0; i < o->n; i++) {
        const struct maq_fleet_event *e = &o->events[i];
        assert_true(i == 0 || o->events[i - 1].at_s <= e->at_s);
        assert_true(e->replica < replicas);
        assert_int_equal(e->kind, expected[e->replica]);
        expected[e->replica] = e->kind == MAQ_FLEET_BACK ? MAQ_FLEET_FAILS : e->kind + 1;
    }
    for (uint32_t k = 0; k < replicas; k++)
        assert_int_equal(expected[k], MAQ_FLEET_FAILS);
}

/* 32 nodes with a replica each, 0.02 failures of a node and day that all lose it, repair of 12 hours and nothing else: each node is up for 50
 * days and down for half a day and the start in turn. */
static void test_laws(void **state)
{
    (void)state;
    struct setting s;
    begin(&s, 8, 32, "aegis-a100,rate=0.02/node/day,detection=60s,requeue=0s,repair=12h,spread=0");
    double down = 0, known = 0;
    uint32_t failures = 0;
    for (s.spec.seed = 1; s.spec.seed <= 10; s.spec.seed++) {
        struct maq_outages o;
        assert_int_equal(maq_outages_draw(&o, &s.fleet, &s.spec, NULL), MAQ_OK);
        expect_in_order(&o, 32);
        for (uint32_t i = 0; i < o.n; i++) {
            failures += o.events[i].kind == MAQ_FLEET_FAILS;
            known += o.events[i].kind == MAQ_FLEET_LOST ? o.events[i].at_s : 0;
            known -= o.events[i].kind == MAQ_FLEET_FAILS ? o.events[i].at_s : 0;
            down += o.events[i].kind == MAQ_FLEET_BACK ? o.events[i].at_s : 0;
            down -= o.events[i].kind == MAQ_FLEET_FAILS ? o.events[i].at_s : 0;
        }
        maq_outages_free(&o);
    }
    /* a node's cycle is 50 days and 0.5 + 180 s: of 320 nodes for 100 days so many; sd of the count is its root at most */
    double cycle = 50 + 0.5 + 180 / DAY, expected = 10 * 32 * 100 / cycle;
    assert_true(fabs(failures - expected) < 4 * sqrt(expected));
    expect_close(known / failures, 60, 1e-6, "until it is known");
    expect_close(down / failures, 60 + 12 * 3600 + 120, 0.02,
                 "an outage"); /* a node that is back earlier is taken by who waits */
    end(&s);
}

/* Four replicas of a node: those that a lost node takes fail at once; a spare one makes the outage short. */
static void test_nodes_and_spares(void **state)
{
    (void)state;
    double down[2] = {0};
    for (uint32_t spares = 0; spares < 2; spares++) {
        struct setting s;
        begin(&s, 2, 64, "aegis-a100,rate=0.02/node/day,detection=60s,requeue=30s,repair=12h,spread=0");
        s.spec.seed = 7;
        s.spec.spare_nodes = spares * 4;
        struct maq_outages o;
        assert_int_equal(maq_outages_draw(&o, &s.fleet, &s.spec, NULL), MAQ_OK);
        expect_in_order(&o, 64);
        uint32_t failures = 0;
        for (uint32_t i = 0; i < o.n; i++)
            if (o.events[i].kind == MAQ_FLEET_FAILS) {
                failures++;
                if (o.events[i].replica % 4 == 0) /* the others of the node come with it */
                    for (uint32_t k = 1; k < 4; k++) {
                        assert_int_equal(o.events[i + k].replica, o.events[i].replica + k);
                        assert_true(o.events[i + k].at_s == o.events[i].at_s);
                    }
            } else if (o.events[i].kind == MAQ_FLEET_BACK)
                down[spares] += o.events[i].at_s;
            else
                down[spares] -= o.events[i].at_s;
        down[spares] /= failures;
        maq_outages_free(&o);
        end(&s);
    }
    assert_true(down[0] > 11 * 3600 && down[1] < 2 * 150);
}

static void test_counts(void **state)
{
    (void)state;
    struct setting s;
    begin(&s, 8, 4, "none");
    /* up to 4 at 100 s, of which one is not wanted any more before it has started; then 1 */
    const struct maq_replica_count counts[] = {{0, 2}, {100, 4}, {150, 3}, {1000, 1}};
    static const struct maq_fleet_event want[] = {{0, 2, MAQ_FLEET_LEAVES},    {0, 3, MAQ_FLEET_LEAVES},
                                                  {150, 3, MAQ_FLEET_LEAVES},  {220, 2, MAQ_FLEET_COMES},
                                                  {1000, 1, MAQ_FLEET_LEAVES}, {1000, 2, MAQ_FLEET_LEAVES}};
    struct maq_outages o;
    s.spec.counts = counts;
    s.spec.n_counts = MAQ_COUNT(counts);
    assert_int_equal(maq_outages_draw(&o, &s.fleet, &s.spec, NULL), MAQ_OK);
    assert_int_equal(o.n, MAQ_COUNT(want));
    for (uint32_t i = 0; i < o.n; i++)
        assert_true(o.events[i].at_s == want[i].at_s && o.events[i].replica == want[i].replica &&
                    o.events[i].kind == want[i].kind);
    maq_outages_free(&o);
    end(&s);
}

static void test_schedules(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {{"time_s,replicas\n0,2\n60,4\n", NULL},
                 {"time_s,replicas\n5,2\n", "not the beginning"},
                 {"time_s,replicas\n0,2\n60,4\n30,1\n", "before the row above it"},
                 {"time_s,replicas\n0,9\n", "9 replicas are to be there, of 4"},
                 {"time_s,replicas\n", "of no time"},
                 {"time,replicas\n0,2\n", "time_s"}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char path[] = "/tmp/maquette-schedule-XXXXXX";
        struct maq_replica_count *counts;
        uint32_t n;
        int fd = mkstemp(path);
        assert_true(fd >= 0 && write(fd, cases[i].text, strlen(cases[i].text)) == (ssize_t)strlen(cases[i].text));
        close(fd);
        struct maq_diag *diag = maq_diag_new();
        enum maq_status status = maq_replica_counts_read(&counts, &n, path, 4, diag);
        assert_int_equal(status, cases[i].says ? MAQ_BAD_INPUT : MAQ_OK);
        char *said = maq_diag_format(diag, 0, false);
        if (cases[i].says && !strstr(said, cases[i].says))
            fail_msg("%s: %s", cases[i].text, said);
        if (!cases[i].says)
            assert_true(n == 2 && counts[1].at_s == 60 && counts[1].replicas == 4);
        free(said);
        free(counts);
        maq_diag_free(diag);
        unlink(path);
    }
}

/* The least and the most of n runs hold a further one in n - 1 of n + 1 cases: of 20 in nine of ten. */
static void test_what_is_promised_of_a_day(void **state)
{
    (void)state;
    const uint32_t DRAWS = SANITIZED ? 4 : 20, OTHERS = DRAWS;
    struct setting s;
    begin(&s, 8, 3, "aegis-a100,rate=3/node/day,detection=30s,requeue=60s,repair=1h,spread=0");
    s.options.max_num_seqs = 64;
    const struct maq_request_spec requests = {.rate = 0.06, .n = 5184, .prompt = 300, .output = 20, .seed = 3};
    struct maq_request_set *set = NULL;
    struct maq_slo slo;
    assert_int_equal(maq_requests_generate(&set, &requests, NULL), MAQ_OK);
    assert_int_equal(maq_slo_read(&slo, "ttft_p95<1s", NULL), MAQ_OK);
    double least = 1, most = 0;
    uint32_t inside = 0;
    s.spec.span_s = DAY;
    for (uint32_t i = 0; i < DRAWS + OTHERS; i++) {
        struct maq_outages o;
        struct maq_serve_result *r;
        struct maq_slo_outcome outcome;
        s.spec.seed = 100 + i;
        assert_int_equal(maq_outages_draw(&o, &s.fleet, &s.spec, NULL), MAQ_OK);
        s.fleet.events = o.events;
        s.fleet.n_events = o.n;
        assert_int_equal(maq_fleet_run(&r, &s.fleet, maq_requests_get(set), NULL), MAQ_OK);
        assert_int_equal(r->finished, requests.n);
        maq_slo_judge(&outcome, &slo, r, maq_requests_get(set));
        double share = (double)outcome.good / requests.n;
        if (i < DRAWS) {
            least = share < least ? share : least;
            most = share > most ? share : most;
        } else {
            inside += share >= least && share <= most;
        }
        maq_serve_free(r);
        maq_outages_free(&o);
    }
    print_message("%.4f to %.4f, %u of %u others inside\n", least, most, inside, OTHERS);
    assert_true(least < most &&
                (SANITIZED || inside >= OTHERS * 3 / 4)); /* 18 are expected, fewer than 15 once in 40 times */
    maq_requests_free(set);
    end(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_laws),
        cmocka_unit_test(test_nodes_and_spares),
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_schedules),
        cmocka_unit_test(test_what_is_promised_of_a_day),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
