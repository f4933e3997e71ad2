/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_fleet_outages.c - when replicas are there: how often nodes fail and for how long are the means of their laws, replicas of a node fail
 * together, spare nodes shorten outages, a schedule is followed; ages, lemons, bursts, losses together and what a cause takes are closed forms; and what is
 * promised of a day with failures holds on other days, of a fleet and of pools.
 */
#include <math.h>
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
    const struct maq_replica_count counts[] = {{0, 2, 0}, {100, 4, 0}, {150, 3, 0}, {1000, 1, 0}};
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
        uint32_t prefill, then; /* replicas that compute prompts for others; of them, those of the second row */
    } cases[] = {{"time_s,replicas\n0,2\n60,4\n", NULL, 0, MAQ_ALL_REPLICAS},
                 {"time_s,replicas\n0,2\n60,4\n", NULL, 3, MAQ_ALL_REPLICAS},
                 {"time_s,replicas,prefill_replicas\n0,2,3\n60,4,1\n", NULL, 3, 1},
                 {"time_s,replicas,prefill_replicas\n0,2,3\n60,4,4\n", "4 replicas are to be there, of 3", 3, 0},
                 {"time_s,replicas,prefill_replicas\n0,2,3\n", "no replicas compute prompts for others", 0, 0},
                 {"time_s,replicas\n5,2\n", "not the beginning", 0, 0},
                 {"time_s,replicas\n0,2\n60,4\n30,1\n", "before the row above it", 0, 0},
                 {"time_s,replicas\n0,9\n", "9 replicas are to be there, of 4", 0, 0},
                 {"time_s,replicas\n", "of no time", 0, 0},
                 {"time,replicas\n0,2\n", "time_s", 0, 0}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char path[] = "/tmp/maquette-schedule-XXXXXX";
        struct maq_replica_count *counts;
        uint32_t n;
        int fd = mkstemp(path);
        assert_true(fd >= 0 && write(fd, cases[i].text, strlen(cases[i].text)) == (ssize_t)strlen(cases[i].text));
        close(fd);
        struct maq_diag *diag = maq_diag_new();
        enum maq_status status = maq_replica_counts_read(&counts, &n, path, 4, cases[i].prefill, diag);
        assert_int_equal(status, cases[i].says ? MAQ_BAD_INPUT : MAQ_OK);
        char *said = maq_diag_format(diag, 0, false);
        if (cases[i].says && !strstr(said, cases[i].says))
            fail_msg("%s: %s", cases[i].text, said);
        if (!cases[i].says)
            assert_true(n == 2 && counts[1].at_s == 60 && counts[1].replicas == 4 &&
                        counts[1].prefill_replicas == cases[i].then);
        free(said);
        free(counts);
        maq_diag_free(diag);
        unlink(path);
    }
}

/* ---- laws that differ between nodes and times ---- */

#define NODES 64

/* When each of 64 replicas, a node each, fails, in days: how often at all, in [at][0, count[at]). */
static void failures_of_nodes(const char *what, uint64_t seed, double days, uint32_t count[NODES], double first[NODES])
{
    struct setting s;
    begin(&s, 8, NODES, what);
    s.spec.seed = seed;
    s.spec.span_s = days * DAY;
    s.spec.start_s = 0;
    struct maq_outages o;
    assert_int_equal(maq_outages_draw(&o, &s.fleet, &s.spec, NULL), MAQ_OK);
    for (uint32_t k = 0; k < NODES; k++) {
        count[k] = 0;
        first[k] = (double)INFINITY;
    }
    for (uint32_t i = 0; i < o.n; i++)
        if (o.events[i].kind == MAQ_FLEET_FAILS) {
            uint32_t k = o.events[i].replica;
            first[k] = count[k]++ == 0 ? o.events[i].at_s / DAY : first[k];
        }
    maq_outages_free(&o);
    end(&s);
}

#define AT_ONCE "detection=1s,requeue=0s,repair=1s,spread=0"

/*
 * A quarter of the nodes fails ten times as often as the others: as many failures in the mean, and counts of nodes that vary more than Poisson's, var / mean =
 * 1 + mean (E w^2 / (E w)^2 - 1) with w = 1 or 10. Without lemons it is 1.
 */
static void test_lemons(void **state)
{
    (void)state;
    const double days = 100, mean = 2, share = 0.25, times = 10, w = 1 + share * (times - 1),
                 w2 = 1 + share * (times * times - 1);
    for (int lemons = 0; lemons < 2; lemons++) {
        double sum = 0, squares = 0, n = 0;
        for (uint64_t seed = 1; seed <= 12; seed++) {
            uint32_t count[NODES];
            double first[NODES];
            failures_of_nodes(lemons ? "rate=0.02/node/day," AT_ONCE ",lemons={share: 0.25, times: 10, strikes: 0}"
                                     : "rate=0.02/node/day," AT_ONCE,
                              seed, days, count, first);
            for (uint32_t k = 0; k < NODES; k++, n++) {
                sum += count[k];
                squares += (double)count[k] * count[k];
            }
        }
        double got = sum / n, ratio = (squares / n - got * got) / got,
               want = 1 + (lemons ? mean * (w2 / w / w - 1) : 0);
        expect_close(got, mean, 0.08, "failures of a node");
        expect_close(ratio, want, lemons ? 0.15 : 0.1, "their variance over it");
    }
}

/* The share of nodes that have failed by a time t, of an age a: 1 - exp(((a / eta)^k - ((t + a) / eta)^k), eta = mean / Gamma(1 + 1 / k); with k = 1/2 mean / 2. */
static void test_ages(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        double age;
    } cases[] = {{"rate=0.02/node/day,shape=0.5," AT_ONCE, 0}, {"rate=0.02/node/day,shape=0.5,age=100d," AT_ONCE, 100}};
    for (size_t c = 0; c < MAQ_COUNT(cases); c++) {
        double failed = 0, n = 0, t = 20, eta = 25, age = cases[c].age,
               want = 1 - exp(sqrt(age / eta) - sqrt((t + age) / eta));
        for (uint64_t seed = 1; seed <= 12; seed++) {
            uint32_t count[NODES];
            double first[NODES];
            failures_of_nodes(cases[c].what, seed, 100, count, first);
            for (uint32_t k = 0; k < NODES; k++, n++)
                failed += first[k] < t;
        }
        assert_true(fabs(failed / n - want) < 4 * sqrt(want * (1 - want) / n));
    }
}

/* In bursts all nodes fail more often: the fleet's failures of a day vary more than Poisson's, and in the long run there are as many. */
static void test_bursts(void **state)
{
    (void)state;
    enum { DAYS = 200 };
    double ratio[2];
    for (int bursts = 0; bursts < 2; bursts++) {
        double sum = 0, squares = 0, n = 0;
        for (uint64_t seed = 1; seed <= 10; seed++) {
            struct setting s;
            begin(&s, 8, NODES,
                  bursts ? "rate=0.05/node/day," AT_ONCE ",bursts={times: 20, every: 20d, lasts: 1d}"
                         : "rate=0.05/node/day," AT_ONCE);
            s.spec.seed = seed;
            s.spec.span_s = DAYS * DAY;
            struct maq_outages o;
            uint32_t of_day[DAYS] = {0};
            assert_int_equal(maq_outages_draw(&o, &s.fleet, &s.spec, NULL), MAQ_OK);
            for (uint32_t i = 0; i < o.n; i++)
                if (o.events[i].kind == MAQ_FLEET_FAILS)
                    of_day[(uint32_t)(o.events[i].at_s / DAY)]++;
            for (uint32_t i = 0; i < DAYS; i++, n++) {
                sum += of_day[i];
                squares += (double)of_day[i] * of_day[i];
            }
            maq_outages_free(&o);
            end(&s);
        }
        double mean = sum / n;
        ratio[bursts] = (squares / n - mean * mean) / mean;
        expect_close(mean, 0.05 * NODES, bursts ? 0.2 : 0.05, "failures of a day");
    }
    expect_close(ratio[0], 1, 0.1, "variance over mean");
    assert_true(ratio[1] > 5);
}

/* A loss of several nodes takes those of a group of four, at once. */
static void test_together(void **state)
{
    (void)state;
    struct setting s;
    begin(&s, 8, 10, "rate=0.02/node/day," AT_ONCE ",together={share: 1, nodes: 4}");
    struct maq_outages o;
    s.spec.seed = 5;
    assert_int_equal(maq_outages_draw(&o, &s.fleet, &s.spec, NULL), MAQ_OK);
    assert_true(o.n > 0);
    for (uint32_t i = 0; i < o.n; i++) {
        const struct maq_fleet_event *e = &o.events[i];
        uint32_t first = e->replica / 4 * 4, with = 0;
        for (uint32_t j = 0; e->kind == MAQ_FLEET_FAILS && j < o.n; j++)
            with += o.events[j].kind == MAQ_FLEET_FAILS && o.events[j].at_s == e->at_s &&
                    o.events[j].replica / 4 * 4 == first;
        if (e->kind == MAQ_FLEET_FAILS)
            assert_int_equal(with, first == 8 ? 2 : 4); /* ten nodes: the last group is smaller */
    }
    maq_outages_free(&o);
    end(&s);
}

static uint32_t fails_at_once(int tp, uint32_t replicas, const char *what, uint32_t *n)
{
    struct setting s;
    struct maq_outages o;
    uint32_t most = 0;
    begin(&s, tp, replicas, what);
    s.spec.seed = 11;
    s.spec.span_s = 1000 * DAY;
    assert_int_equal(maq_outages_draw(&o, &s.fleet, &s.spec, NULL), MAQ_OK);
    *n = 0;
    for (uint32_t i = 0; i < o.n; i++) {
        uint32_t with = 0;
        for (uint32_t j = 0; j < o.n && o.events[i].kind == MAQ_FLEET_FAILS; j++)
            with += o.events[j].kind == MAQ_FLEET_FAILS && o.events[j].at_s == o.events[i].at_s;
        most = with > most ? with : most;
        *n += o.events[i].kind == MAQ_FLEET_FAILS;
    }
    maq_outages_free(&o);
    end(&s);
    return most;
}

/*
 * Four replicas of a node of eight GPUs: a GPU takes one of them, the node all, a link nobody, since none needs the network; of one over two nodes a link takes
 * it. A GPU is in one replica, so that each fails an eighth as often for each of its GPUs.
 */
static void test_what_a_cause_takes(void **state)
{
    (void)state;
#define CAUSE(takes) "rate=0.02/node/day," AT_ONCE ",causes=[{name: it, share: 1, takes: " takes "}]"
    uint32_t gpu, node, link, two;
    assert_int_equal(fails_at_once(2, 4, CAUSE("gpu"), &gpu), 1);
    assert_int_equal(fails_at_once(2, 4, CAUSE("node"), &node), 4);
    assert_int_equal(fails_at_once(2, 4, CAUSE("link"), &link), 0);
    assert_int_equal(fails_at_once(16, 1, CAUSE("link"), &two), 1);
    assert_int_equal(node % 4, 0);
    assert_int_equal(link, 0);
    assert_true(gpu > 5 && two > 20);
    uint32_t half;
    (void)fails_at_once(2, 2, CAUSE("gpu"), &half); /* of a node of which half the GPUs are idle */
    assert_true(half < gpu);
}

/* Pools on one cluster share the node where they meet; between nodes they need their links. */
/* One that decodes and two of prefill, of half a node each. */
static void begin_pools(struct setting *s, struct maq_fleet_member members[2], const char *failures)
{
    begin(s, 4, 1, failures);
    members[0] = members[1] = s->member;
    members[0].role = MAQ_ROLE_DECODE;
    members[1].role = MAQ_ROLE_PREFILL;
    members[1].replicas = 2;
    s->fleet.members = members;
    s->fleet.n_members = 2;
    s->spec.span_s = 1000 * DAY;
}

static void test_pools_share_a_node(void **state)
{
    (void)state;
    struct setting s;
    struct maq_fleet_member members[2];
    struct maq_outages o;
    uint32_t first[3] = {0};
    begin_pools(&s, members, CAUSE("node"));
    assert_int_equal(maq_outages_draw(&o, &s.fleet, &s.spec, NULL), MAQ_OK);
    for (uint32_t i = 0; i < o.n; i++)
        if (o.events[i].kind == MAQ_FLEET_FAILS) {
            first[o.events[i].replica]++;
            if (o.events[i].replica == 0) /* of prefill: on the first node, behind the one that decodes */
                assert_true(o.events[i + 1].replica == 2 && o.events[i + 1].at_s == o.events[i].at_s);
        }
    assert_true(first[0] > 5 && first[0] == first[2] && first[1] > 5);
    maq_outages_free(&o);
    end(&s);
    begin_pools(&s, members, CAUSE("link"));
    assert_int_equal(maq_outages_draw(&o, &s.fleet, &s.spec, NULL), MAQ_OK);
    uint32_t by_link = o.n;
    maq_outages_free(&o);
    end(&s);
    assert_true(by_link > 15);
}

/* One more replica meets the same failures of the others, whatever the laws. */
static void test_common_failures(void **state)
{
    (void)state;
    static const char *const laws[] = {"rate=0.1/node/day," AT_ONCE, "rate=0.1/node/day,shape=0.6,age=10d," AT_ONCE,
                                       "rate=0.1/node/day," AT_ONCE
                                       ",lemons={share: 0.3, times: 8},bursts={times: 5, every: 10d, lasts: 1d}"};
    for (size_t c = 0; c < MAQ_COUNT(laws); c++) {
        struct maq_outages o[2];
        for (uint32_t more = 0; more < 2; more++) {
            struct setting s;
            begin(&s, 8, 3 + more, laws[c]);
            s.spec.seed = 21;
            assert_int_equal(maq_outages_draw(&o[more], &s.fleet, &s.spec, NULL), MAQ_OK);
            end(&s);
        }
        uint32_t k = 0;
        for (uint32_t i = 0; i < o[1].n; i++)
            if (o[1].events[i].replica < 3) {
                assert_true(o[1].events[i].at_s == o[0].events[k].at_s);
                assert_int_equal(o[1].events[i].replica, o[0].events[k].replica);
                assert_int_equal(o[1].events[i].kind, o[0].events[k++].kind);
            }
        assert_true(k == o[0].n && k > 30 && o[1].n > k);
        maq_outages_free(&o[0]);
        maq_outages_free(&o[1]);
    }
}

/* Two members that are alike on one cluster are one of as many replicas, to the bit, also in what fails. */
static void test_members_that_are_alike(void **state)
{
    (void)state;
    struct setting s;
    begin(&s, 2, 6, "rate=1000/node/day," AT_ONCE ",causes=[{name: a, share: 1},{name: b, share: 1, takes: gpu}]");
    const struct maq_request_spec requests = {.rate = 2, .n = 600, .prompt = 300, .output = 100, .seed = 3};
    struct maq_fleet_member members[2] = {s.member, s.member};
    struct maq_request_set *set = NULL;
    struct maq_serve_result *r[2];
    struct maq_outages o[2];
    members[0].replicas = 3; /* four of a node */
    members[1].replicas = 3;
    members[1].shares_cluster = true;
    s.spec.span_s = 300;
    s.spec.start_s = 5;
    s.spec.seed = 2;
    assert_int_equal(maq_requests_generate(&set, &requests, NULL), MAQ_OK);
    for (int i = 0; i < 2; i++) {
        if (i == 1) {
            s.fleet.members = members;
            s.fleet.n_members = 2;
        }
        assert_int_equal(maq_outages_draw(&o[i], &s.fleet, &s.spec, NULL), MAQ_OK);
        s.fleet.events = o[i].events;
        s.fleet.n_events = o[i].n;
        assert_int_equal(maq_fleet_run(&r[i], &s.fleet, maq_requests_get(set), NULL), MAQ_OK);
    }
    assert_true(o[0].n > 0);
    assert_int_equal(o[0].n, o[1].n);
    assert_memory_equal(r[0]->served, r[1]->served, requests.n * sizeof *r[0]->served);
    assert_memory_equal(&r[0]->itl_s, &r[1]->itl_s, sizeof r[0]->itl_s);
    assert_int_equal(r[0]->availability.retried, r[1]->availability.retried);
    assert_int_equal(r[1]->n_members, 2);
    assert_int_equal(r[1]->replicas[3].member, 1);
    for (int i = 0; i < 2; i++) {
        maq_serve_free(r[i]);
        maq_outages_free(&o[i]);
    }
    members[0].replicas = 255; /* of 512 GPUs */
    assert_int_equal(maq_fleet_run(&r[0], &s.fleet, maq_requests_get(set), NULL), MAQ_BAD_INPUT);
    maq_requests_free(set);
    end(&s);
}

/* Weights of two members take them unlike times when they start. */
static void test_load_times(void **state)
{
    (void)state;
    struct setting s;
    begin(&s, 8, 2, "rate=1/node/day," AT_ONCE ",causes=[{name: hang, share: 1, loses_node: false}]");
    struct maq_fleet_member members[2] = {s.member, s.member};
    struct maq_outages o;
    members[0].load_s = 10;
    members[1].load_s = 50;
    members[1].replicas = 1;
    s.fleet.members = members;
    s.fleet.n_members = 2;
    s.spec.start_s = 100;
    const struct maq_replica_count counts[] = {{0, 1, 0}, {1000, 3, 0}};
    s.spec.counts = counts;
    s.spec.n_counts = 2;
    assert_int_equal(maq_outages_draw(&o, &s.fleet, &s.spec, NULL), MAQ_OK);
    double lost[3] = {0};
    uint32_t outages = 0;
    for (uint32_t i = 0; i < o.n; i++) {
        const struct maq_fleet_event *e = &o.events[i];
        double load = e->replica < 2 ? 10 : 50;
        if (e->kind == MAQ_FLEET_LOST)
            lost[e->replica] = e->at_s;
        if (e->kind == MAQ_FLEET_BACK && lost[e->replica] > 0) {
            expect_close(e->at_s - lost[e->replica], 100 + load, 1e-6, "from known to back");
            outages++;
        }
        if (e->kind == MAQ_FLEET_COMES)
            expect_close(e->at_s, 1000 + 100 + load, 1e-12, "asked for");
    }
    assert_true(outages > 100);
    maq_outages_free(&o);
    end(&s);
}

/* ---- what is promised ---- */

/* The share of requests within the bounds, of one draw of failures. */
static double share_of(struct setting *s, uint64_t seed, const struct maq_requests *q, const struct maq_slo *slo)
{
    struct maq_outages o;
    struct maq_serve_result *r;
    struct maq_slo_outcome outcome;
    s->spec.seed = seed;
    assert_int_equal(maq_outages_draw(&o, &s->fleet, &s->spec, NULL), MAQ_OK);
    s->fleet.events = o.events;
    s->fleet.n_events = o.n;
    assert_int_equal(maq_fleet_run(&r, &s->fleet, q, NULL), MAQ_OK);
    assert_int_equal(r->finished, q->n);
    maq_slo_judge(&outcome, slo, r, q);
    double share = (double)outcome.good / q->n;
    maq_serve_free(r);
    maq_outages_free(&o);
    return share;
}

/* The least and the most of n runs hold a further one in n - 1 of n + 1 cases: of 20 in nine of ten. */
static void expect_promised(struct setting *s, const struct maq_request_spec *requests)
{
    const uint32_t DRAWS = SANITIZED ? 4 : 20, OTHERS = DRAWS;
    struct maq_request_set *set = NULL;
    struct maq_slo slo;
    assert_int_equal(maq_requests_generate(&set, requests, NULL), MAQ_OK);
    assert_int_equal(maq_slo_read(&slo, "ttft_p95<1s", NULL), MAQ_OK);
    double least = 1, most = 0;
    uint32_t inside = 0;
    s->spec.span_s = DAY;
    for (uint32_t i = 0; i < DRAWS + OTHERS; i++) {
        double share = share_of(s, 100 + i, maq_requests_get(set), &slo);
        least = i < DRAWS && share < least ? share : least;
        most = i < DRAWS && share > most ? share : most;
        inside += i >= DRAWS && share >= least && share <= most;
    }
    print_message("%.4f to %.4f, %u of %u others inside\n", least, most, inside, OTHERS);
    assert_true(least < most &&
                (SANITIZED || inside >= OTHERS * 3 / 4)); /* 18 are expected, fewer than 15 once in 40 times */
    maq_requests_free(set);
}

static void test_what_is_promised_of_a_day(void **state)
{
    (void)state;
    struct setting s;
    begin(&s, 8, 3, "aegis-a100,rate=3/node/day,detection=30s,requeue=60s,repair=1h,spread=0");
    s.options.max_num_seqs = 64;
    expect_promised(&s, &(struct maq_request_spec){.rate = 0.04, .n = 3456, .prompt = 300, .output = 20, .seed = 3});
    end(&s);
}

/* The same of two pools. */
static void test_what_is_promised_of_pools(void **state)
{
    (void)state;
    struct setting s;
    begin(&s, 8, 1, "aegis-a100,rate=3/node/day,detection=30s,requeue=60s,repair=1h,spread=0");
    s.options.max_num_seqs = 64;
    const struct maq_fleet_member members[] = {
        {.job = s.member.job, .options = &s.options, .replicas = 2, .role = MAQ_ROLE_DECODE},
        {.job = s.member.job, .options = &s.options, .replicas = 2, .role = MAQ_ROLE_PREFILL}};
    s.fleet.members = members;
    s.fleet.n_members = 2;
    s.fleet.prefill_router = MAQ_ROUTER_LEAST_REQUESTS;
    expect_promised(&s, &(struct maq_request_spec){.rate = 0.015, .n = 1296, .prompt = 300, .output = 20, .seed = 3});
    end(&s);
}

/* Of the same draws the figures are those of each run, and differences those of shares; with nothing else they are none. */
static void test_what_if(void **state)
{
    (void)state;
    enum { DRAWS = 6 };
    struct setting s;
    begin(&s, 8, 2, "aegis-a100,rate=60/node/day,detection=30s,requeue=60s,repair=10min,spread=0");
    const struct maq_request_spec spec = {.rate = 0.5, .n = 600, .prompt = 300, .output = 20, .seed = 3};
    struct maq_request_set *set = NULL;
    struct maq_slo slo;
    struct maq_attainment two, three;
    struct maq_serve_result *r;
    double share[2][DRAWS], low = 1, high = -1, sum = 0;
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    assert_int_equal(maq_slo_read(&slo, "ttft_p95<1s,e2el_mean<60s", NULL), MAQ_OK);
    const struct maq_requests *q = maq_requests_get(set);
    s.spec.span_s = 1200;
    for (uint32_t more = 0; more < 2; more++) {
        s.member.replicas = 2 + more;
        for (uint32_t i = 0; i < DRAWS; i++)
            share[more][i] = share_of(&s, 100 + i, q, &slo);
        s.fleet.events = NULL;
        s.fleet.n_events = 0;
        s.spec.seed = 100;
        assert_int_equal(maq_fleet_attainment(more ? &three : &two, &r, &s.fleet, q, &s.spec, DRAWS, &slo, NULL),
                         MAQ_OK);
        maq_serve_free(r);
    }
    for (uint32_t i = 0; i < DRAWS; i++) {
        assert_true(two.of_draw[i] == share[0][i] && three.of_draw[i] == share[1][i]);
        low = fmin(low, share[1][i] - share[0][i]);
        high = fmax(high, share[1][i] - share[0][i]);
        sum += share[1][i] - share[0][i];
    }
    const struct maq_what_if same = maq_what_if_of("same", &two, &two), other = maq_what_if_of("3", &two, &three);
    assert_true(same.low == 0 && same.high == 0 && same.mean == 0);
    assert_true(other.low == low && other.high == high && low < high);
    expect_close(other.mean, sum / DRAWS, 1e-12, "mean of differences");
    assert_int_equal(two.slo.n, 2);
    for (uint32_t b = 0; b < 2; b++)
        assert_true(two.bound_low_s[b] > 0 && two.bound_low_s[b] <= two.bound_high_s[b] && two.bound_met[b] <= DRAWS);
    assert_true(two.bound_low_s[1] < two.bound_high_s[1]); /* a mean differs from draw to draw */
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
        cmocka_unit_test(test_lemons),
        cmocka_unit_test(test_ages),
        cmocka_unit_test(test_bursts),
        cmocka_unit_test(test_together),
        cmocka_unit_test(test_what_a_cause_takes),
        cmocka_unit_test(test_pools_share_a_node),
        cmocka_unit_test(test_common_failures),
        cmocka_unit_test(test_members_that_are_alike),
        cmocka_unit_test(test_load_times),
        cmocka_unit_test(test_what_is_promised_of_a_day),
        cmocka_unit_test(test_what_is_promised_of_pools),
        cmocka_unit_test(test_what_if),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
