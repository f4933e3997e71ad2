/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_autoscaling.c - how many replicas a rule wants: closed forms of a step up and down, a plain reading of its equations over random loads;
 * a fleet that follows it, against the same fleet with the numbers that came of it as a schedule; rules that do not read so.
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
#include "base/stat/rng.h"
#include "fleet_jobs.h"
#include "maquette/fleet_outages.h"
#include "serve/codes.h"
#include "serve/fleet/autoscaling.h"
#include "serve_jobs.h"

static struct maq_autoscaling_rule rule(const char *text)
{
    struct maq_autoscaling_rule r;
    struct maq_diag *diag = maq_diag_new();
    if (maq_autoscaling_rule_read(&r, text, "--autoscale", diag) != MAQ_OK)
        fail_msg("%s: %s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

/* ---- as it is written ---- */

static void test_rules(void **state)
{
    (void)state;
    struct maq_autoscaling_rule r = rule("requests=8");
    assert_true(r.metric == MAQ_AUTOSCALING_REQUESTS && r.target == 8 && r.least == 1 && r.first == 0 &&
                r.every_s == 15 && r.down_after_s == 300 && r.tolerance == 0.1 && r.up_count == 4 && r.up_factor == 2 &&
                r.up_period_s == 15);
    r = rule("least=2, kv=0.7,first=3,every=1min,down_after=10min,tolerance=0,up_count=1,up_factor=1.5,up_period=2min");
    assert_true(r.metric == MAQ_AUTOSCALING_KV && r.target == 0.7 && r.least == 2 && r.first == 3 && r.every_s == 60 &&
                r.down_after_s == 600 && r.tolerance == 0 && r.up_count == 1 && r.up_factor == 1.5 &&
                r.up_period_s == 120);
    static const struct {
        const char *text, *says;
    } bad[] = {{"least=2", "says no load"},        {"requests=8,kv=0.7", "is about one load"},
               {"requests=0", "requests"},         {"kv=2", "kv"},
               {"requests=8,every=soon", "every"}, {"requests=8,leats=2", "least"},
               {"requests=8,least=2=3", "least"},  {"requests=8}", "--autoscale"}};
    for (size_t i = 0; i < MAQ_COUNT(bad); i++) {
        struct maq_diag *diag = maq_diag_new();
        assert_int_equal(maq_autoscaling_rule_read(&r, bad[i].text, "--autoscale", diag), MAQ_BAD_INPUT);
        char *text = maq_diag_format(diag, 0, false);
        if (!strstr(text, bad[i].says))
            fail_msg("%s: not '%s' in:\n%s", bad[i].text, bad[i].says, text);
        free(text);
        maq_diag_free(diag);
    }
}

/* ---- decisions ---- */

static uint32_t look(struct maq_autoscaling *s, double load)
{
    assert_int_equal(maq_autoscaling_look(s, load), MAQ_OK);
    return s->wanted;
}

/* Up as fast as is allowed: 4 more, then twice as many; down only when less was asked for all through the window. */
static void test_a_step(void **state)
{
    (void)state;
    const struct maq_autoscaling_rule r = rule("requests=8");
    struct maq_autoscaling s;
    assert_int_equal(maq_autoscaling_init(&s, &r, 100, 7), MAQ_OK);
    assert_true(s.wanted == 1 && s.next_s == 22);
    assert_int_equal(look(&s, 8.7), 1); /* within the tolerance */
    assert_int_equal(look(&s, 8.9), 2);
    static const uint32_t up[] = {6, 12, 24, 48, 75, 75};
    for (size_t i = 0; i < MAQ_COUNT(up); i++)
        assert_int_equal(look(&s, 600), up[i]);
    for (int i = 1; i < 300 / 15; i++) /* those of 285 s ago still count, those of 300 s do not */
        assert_int_equal(look(&s, 0), 75);
    assert_int_equal(look(&s, 0), 1);
    assert_int_equal(s.changes[s.n_changes - 1].replicas, 1);
    assert_true(s.changes[s.n_changes - 1].at_s == 7 + 15 * (8 + 20));
    maq_autoscaling_fini(&s);
}

/* The equations of the header, over all that was. */
static uint32_t plainly(const struct maq_autoscaling_rule *r, uint32_t all, double now, double load, uint32_t there,
                        const struct maq_autoscaling_look *past, uint32_t n)
{
    double ratio = load / (r->target * there);
    uint32_t asked = fabs(ratio - 1) <= r->tolerance ? there : (uint32_t)ceil(load / r->target), added = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (past[i].at_s > now - r->up_period_s)
            added += past[i].added;
    }
    if (asked < there)
        for (uint32_t i = 0; i < n; i++)
            if (past[i].at_s > now - r->down_after_s && past[i].asked > asked)
                asked = past[i].asked;
    double base = there > added ? there - added : 0,
           most = fmax(fmax(base + r->up_count, ceil(base * r->up_factor)), there);
    if (asked > there && asked > most)
        asked = (uint32_t)most;
    return asked < r->least ? r->least : asked > all ? all : asked;
}

static void test_random_loads(void **state)
{
    (void)state;
    struct maq_rng rng = maq_rng_of(20261128, MAQ_RNG_TEST, 0);
    for (int trial = 0; trial < 200; trial++) {
        struct maq_autoscaling_rule r = rule("requests=8");
        r.every_s = 1 + 40 * maq_rng_next(&rng);
        r.down_after_s = 400 * maq_rng_next(&rng);
        r.up_period_s = 60 * maq_rng_next(&rng) + 1;
        r.up_count = (uint32_t)(4 * maq_rng_next(&rng));
        r.up_factor = 1 + 2 * maq_rng_next(&rng);
        r.least = 1 + (uint32_t)(3 * maq_rng_next(&rng));
        const uint32_t all = r.least + (uint32_t)(30 * maq_rng_next(&rng));
        struct maq_autoscaling s;
        struct maq_autoscaling_look past[200];
        assert_int_equal(maq_autoscaling_init(&s, &r, all, 0), MAQ_OK);
        double load = 0;
        for (uint32_t n = 0; n < MAQ_COUNT(past); n++) {
            double now = s.next_s;
            load = maq_rng_next(&rng) < 0.2 ? 400 * maq_rng_next(&rng) * maq_rng_next(&rng) : load;
            uint32_t there = s.wanted, expected = plainly(&r, all, now, load, there, past, n), got = look(&s, load);
            if (got != expected)
                fail_msg("trial %d, look %u: %u are wanted, not %u", trial, n, got, expected);
            double ratio = load / (r.target * there);
            past[n] = (struct maq_autoscaling_look){
                now, fabs(ratio - 1) <= r.tolerance ? there : (uint32_t)ceil(load / r.target),
                got > there ? got - there : 0};
        }
        maq_autoscaling_fini(&s);
    }
}

/* ---- a fleet ---- */

#define MOST 400
#define REPLICAS 4

/* A burst, a lull, another burst. */
static struct maq_requests bursts(struct maq_request *list)
{
    double at = 3;
    for (uint32_t i = 0; i < MOST; i++) {
        at += i == MOST / 2 ? 600 : i % (MOST / 2) < MOST / 8 ? 1 : 0.05;
        list[i] = (struct maq_request){.arrival_s = at, .prompt = 2000, .output = 300};
    }
    return (struct maq_requests){.at = list, .n = MOST};
}

/* What a rule wants, written as a schedule, is the same run: it comes and leaves at the same times, whatever the load is. */
static void test_as_a_schedule(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    static const char *const rules[] = {"requests=4", "waiting=1,every=5s,down_after=30s",
                                        "kv=0.002,every=2s,least=2,down_after=6s", "requests=4,first=3,down_after=0s",
                                        "requests=2,every=1s,down_after=5s,up_count=1,up_factor=1,up_period=1s"};
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_serve_options options = {0};
    const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &options, .replicas = REPLICAS};
    const struct maq_requests q = bursts(list);
    uint32_t changed = 0;
    for (size_t i = 0; i < MAQ_COUNT(rules); i++) {
        struct maq_autoscaling_rule r = rule(rules[i]);
        struct maq_fleet fleet = {
            .members = &member, .n_members = 1, .router = MAQ_ROUTER_LEAST_REQUESTS, .scaling = &r};
        struct maq_outages events;
        r.start_s = i % 2 == 0 ? 20 : 0;
        struct maq_serve_result *a = serve_fleet(&fleet, &q);
        assert_int_equal(a->finished, MOST);
        assert_true(a->availability.n_counts > 0 && a->availability.counts[0].at_s == a->served[0].arrival_s);
        changed += a->availability.n_counts - 1;
        a->availability.counts[0].at_s = 0;
        const struct maq_outage_spec spec = {.counts = a->availability.counts,
                                             .n_counts = a->availability.n_counts,
                                             .start_s = r.start_s,
                                             .span_s = 1e6};
        struct maq_fleet same = {.members = &member, .n_members = 1, .router = MAQ_ROUTER_LEAST_REQUESTS};
        assert_int_equal(maq_outages_draw(&events, &same, &spec, NULL), MAQ_OK);
        same.events = events.events;
        same.n_events = events.n;
        struct maq_serve_result *b = serve_fleet(&same, &q);
        assert_memory_equal(a->served, b->served, MOST * sizeof *a->served);
        expect_close(b->availability.replicas, a->availability.replicas, 1e-9, "replicas");
        expect_close(b->availability.gpus, a->availability.gpus, 1e-9, "GPUs");
        maq_outages_free(&events);
        maq_serve_free(a);
        maq_serve_free(b);
    }
    assert_true(changed > 12); /* or the cases say nothing */
    maq_job_free(job);
}

/* A rule that wants all of them all the time: a fleet without one. */
static void test_all_of_them(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_serve_options options = {0};
    const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &options, .replicas = REPLICAS};
    const struct maq_requests q = bursts(list);
    struct maq_autoscaling_rule r = rule("requests=4,least=4");
    struct maq_fleet fleet = {.members = &member, .n_members = 1, .router = MAQ_ROUTER_LEAST_TOKENS};
    struct maq_serve_result *a = serve_fleet(&fleet, &q);
    fleet.scaling = &r;
    struct maq_serve_result *b = serve_fleet(&fleet, &q);
    assert_memory_equal(a->served, b->served, MOST * sizeof *a->served);
    assert_true(b->availability.known && b->availability.n_counts == 1 && b->availability.nobody_s == 0);
    expect_close(b->availability.replicas, REPLICAS, 1e-12, "replicas");
    maq_serve_free(a);
    maq_serve_free(b);
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules),         cmocka_unit_test(test_a_step),      cmocka_unit_test(test_random_loads),
        cmocka_unit_test(test_as_a_schedule), cmocka_unit_test(test_all_of_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
