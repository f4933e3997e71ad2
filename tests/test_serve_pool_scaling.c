/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_pool_scaling.c - replicas of prefill and decode that come and leave: when one that is asked for takes requests, until when one that leaves is
 * held, and to whom its requests go are closed forms; a schedule or a rule that changes nothing is none, to the bit; a rule is the schedule that came of it; every
 * request ends exactly once whatever comes, leaves and fails when.
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
#include "maquette/fleet_outages.h"
#include "pool_jobs.h"
#include "serve/codes.h"

#define MOST 300
#define EVENTS 200

static struct maq_autoscaling_rule rule(const char *text)
{
    struct maq_autoscaling_rule r;
    assert_int_equal(maq_autoscaling_rule_read(&r, text, "test", NULL), MAQ_OK);
    return r;
}

/* A schedule as events. */
static struct maq_outages schedule(const struct setting *s, const struct maq_replica_count *counts, uint32_t n,
                                   double start_s, double load_s)
{
    const struct maq_fleet_member members[] = {{.job = maq_job_get(s->job),
                                                .options = &s->d,
                                                .replicas = s->n_decode,
                                                .role = MAQ_ROLE_DECODE,
                                                .load_s = load_s},
                                               {.job = maq_job_get(s->job),
                                                .options = &s->p,
                                                .replicas = s->n_prefill,
                                                .role = MAQ_ROLE_PREFILL,
                                                .load_s = load_s}};
    const struct maq_fleet fleet = {.members = members, .n_members = 2};
    const struct maq_outage_spec spec = {.counts = counts, .n_counts = n, .start_s = start_s, .span_s = 1e6};
    struct maq_outages o;
    assert_int_equal(maq_outages_draw(&o, &fleet, &spec, NULL), MAQ_OK);
    return o;
}

static void expect_equal(const struct maq_serve_result *a, const struct maq_serve_result *b)
{
    assert_memory_equal(a->served, b->served, a->n_requests * sizeof *a->served);
    assert_memory_equal(a->pools->handed, b->pools->handed, a->n_requests * sizeof *a->pools->handed);
    assert_memory_equal(&a->itl_s, &b->itl_s, sizeof a->itl_s);
}

/* ---- by hand ---- */

/* Prefill is asked for at 10 s, takes 20 s to start and 5 s for its weights: what waited begins then, and takes what it takes alone. */
static void test_prefill_starts(void **state)
{
    (void)state;
    const struct maq_request one = {.prompt = 6000, .output = 20};
    const struct maq_requests q = {.at = &one, .n = 1};
    const struct maq_replica_count counts[] = {{0, 1, 0}, {10, 1, 1}};
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct setting s = one_each((enum maq_engine)e);
        struct maq_outages o = schedule(&s, counts, 2, 20, 5);
        struct maq_serve_result *alone = run(&s, NULL, 0, &q), *r = run(&s, o.events, o.n, &q);
        expect_close(r->served[0].first_s - 35, alone->served[0].first_s, 1e-9, "first token");
        expect_close(r->served[0].last_s - 35, alone->served[0].last_s, 1e-9, "last token");
        expect_close(r->availability.nobody_s, 35, 1e-12, "time without prefill");
        expect_close(r->availability.prefill_replicas, 1 - 35 / r->duration_s, 1e-9, "replicas of prefill");
        assert_int_equal(r->served[0].retries + r->availability.failures, 0);
        maq_serve_free(alone);
        maq_serve_free(r);
        maq_outages_free(&o);
        maq_job_free(s.job);
    }
}

/* Decode does: where it is told of a request when its prompt is computed, that waits in prefill until then; else all begins then. */
static void test_decode_starts(void **state)
{
    (void)state;
    const struct maq_request one = {.prompt = 6000, .output = 20};
    const struct maq_requests q = {.at = &one, .n = 1};
    const struct maq_replica_count counts[] = {{0, 0, MAQ_ALL_REPLICAS}, {10, 1, MAQ_ALL_REPLICAS}};
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct setting s = one_each((enum maq_engine)e);
        struct maq_outages o = schedule(&s, counts, 2, 20, 5);
        struct maq_serve_result *alone = run(&s, NULL, 0, &q), *r = run(&s, o.events, o.n, &q);
        const struct maq_handed *h = &alone->pools->handed[0], *x = &r->pools->handed[0];
        double since = e == MAQ_ENGINE_SGLANG ? 0 : h->computed_s;
        expect_close(x->reserved_s - 35, h->reserved_s - since, 1e-9, "room");
        expect_close(x->computed_s - (e == MAQ_ENGINE_SGLANG ? 35 : 0), h->computed_s, 1e-9, "prompt");
        expect_close(r->served[0].last_s - 35, alone->served[0].last_s - since, 1e-9, "last token");
        maq_serve_free(alone);
        maq_serve_free(r);
        maq_outages_free(&o);
        maq_job_free(s.job);
    }
}

/*
 * One of two replicas of prefill leaves while it computes the first of two prompts: that goes on as if nothing had happened, and the GPUs are held until its keys and
 * values have been read, long after. The other one gets what it would have had.
 */
static void test_prefill_drains(void **state)
{
    (void)state;
    const struct maq_request list[] = {{.prompt = 6000, .output = 20},
                                       {.arrival_s = 1, .prompt = 500, .output = 20},
                                       {.arrival_s = 1.5, .prompt = 500, .output = 4000}};
    const struct maq_requests q = {.at = list, .n = 3};
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct setting s = one_each((enum maq_engine)e);
        s.n_prefill = 2;
        s.handover = (struct maq_handover){.bps = 2e8, .latency_s = 1e-9};
        struct maq_serve_result *all = run(&s, NULL, 0, &q);
        const struct maq_handed *h = all->pools->handed;
        double middle = (all->served[0].scheduled_s + h[0].computed_s) / 2;
        const struct maq_fleet_event leaves = {middle, 0, MAQ_FLEET_LEAVES};
        assert_true(h[0].replica == 0 && h[2].replica == 0 && h[0].ends_s > h[0].computed_s + 1);
        struct maq_serve_result *r = run(&s, &leaves, 1, &q);
        assert_memory_equal(&r->served[0], &all->served[0], sizeof *all->served);
        assert_memory_equal(&r->pools->handed[0], &h[0], sizeof *h);
        assert_true(r->pools->handed[1].replica == 1 && r->pools->handed[2].replica == 1);
        double gpus = 2 + (h[0].ends_s - r->served[0].arrival_s) / r->duration_s;
        expect_close(r->availability.gpus, gpus, 1e-9, "GPUs that are held");
        expect_close(r->availability.prefill_replicas, 1 + middle / r->duration_s, 1e-9, "replicas of prefill");
        maq_serve_free(all);
        maq_serve_free(r);
        maq_job_free(s.job);
    }
}

/* One of two that decode leaves while a request decodes there: it ends there as it would have, and the next one goes to the other. */
static void test_decode_drains(void **state)
{
    (void)state;
    const struct maq_request list[] = {{.prompt = 600, .output = 300},
                                       {.arrival_s = 9, .prompt = 600, .output = 20},
                                       {.arrival_s = 10, .prompt = 600, .output = 20}};
    const struct maq_requests q = {.at = list, .n = 3};
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct setting s = one_each((enum maq_engine)e);
        s.n_decode = 2;
        struct maq_serve_result *all = run(&s, NULL, 0, &q);
        const struct maq_served *a = all->served;
        const struct maq_fleet_event leaves = {(a[0].first_s + a[0].last_s) / 2, 1, MAQ_FLEET_LEAVES};
        assert_true(a[0].replica == 1 && a[1].replica == 2 && a[2].replica == 1);
        struct maq_serve_result *r = run(&s, &leaves, 1, &q);
        assert_memory_equal(&r->served[0], &a[0], sizeof *a);
        assert_true(r->served[1].replica == 2 && r->served[2].replica == 2);
        /* it has its last token before its client does */
        double gpus = 2 + a[0].last_s / r->duration_s;
        assert_true(r->availability.gpus <= gpus && r->availability.gpus > gpus - 0.1 / r->duration_s);
        maq_serve_free(all);
        maq_serve_free(r);
        maq_job_free(s.job);
    }
}

/* Where decode might compute a prompt itself it is chosen at once, and told when the prompt is computed: one that leaves between is told of nothing. */
static void test_chosen_and_gone(void **state)
{
    (void)state;
    const struct maq_request one = {.prompt = 6000, .output = 20};
    const struct maq_requests q = {.at = &one, .n = 1};
    struct setting s = one_each(MAQ_ENGINE_VLLM);
    s.n_decode = 2;
    s.handover.max_local_prefill = 100;
    struct maq_serve_result *alone = run(&s, NULL, 0, &q);
    const struct maq_fleet_event leaves = {alone->pools->handed[0].computed_s / 2, 1, MAQ_FLEET_LEAVES};
    struct maq_serve_result *r = run(&s, &leaves, 1, &q);
    assert_true(alone->served[0].replica == 1 && r->served[0].replica == 2);
    expect_close(r->served[0].last_s, alone->served[0].last_s, 1e-9, "last token");
    expect_close(r->availability.gpus, 2 + leaves.at_s / r->duration_s, 1e-9, "it had nothing");
    maq_serve_free(alone);
    maq_serve_free(r);
    maq_job_free(s.job);
}

/* ---- schedules and rules ---- */

/* A burst, a lull, another burst. */
static struct maq_requests bursts(struct maq_request *list)
{
    double at = 3;
    for (uint32_t i = 0; i < MOST; i++) {
        at += i == MOST / 2 ? 200 : i % (MOST / 2) < MOST / 8 ? 1 : 0.03;
        list[i] = (struct maq_request){.arrival_s = at, .prompt = 3000, .output = 150};
    }
    return (struct maq_requests){.at = list, .n = MOST};
}

static struct setting several(enum maq_engine engine)
{
    struct setting s = one_each(engine);
    s.n_prefill = 3;
    s.n_decode = 3;
    s.router = MAQ_ROUTER_LEAST_REQUESTS;
    return s;
}

/* All of them all the time, by a rule, or by events that take nobody away. */
static void test_nothing_changes(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    const struct maq_requests q = bursts(list);
    const struct maq_autoscaling_rule all = rule("requests=1,least=3");
    const struct maq_fleet_event events[] = {{0, 0, MAQ_FLEET_LEAVES}, {0, 4, MAQ_FLEET_LEAVES},
                                             {0, 0, MAQ_FLEET_COMES},  {0, 4, MAQ_FLEET_COMES},
                                             {50, 1, MAQ_FLEET_COMES}, {50, 5, MAQ_FLEET_COMES}};
    for (int e = 0; e < MAQ_ENGINE_COUNT; e++) {
        struct setting s = several((enum maq_engine)e);
        struct maq_serve_result *a = run(&s, NULL, 0, &q), *b = run(&s, events, MAQ_COUNT(events), &q);
        s.decode_rule = s.prefill_rule = &all;
        struct maq_serve_result *c = run(&s, NULL, 0, &q);
        expect_equal(a, b);
        expect_equal(a, c);
        assert_true(c->availability.n_counts == 1 && c->availability.n_prefill_counts == 1);
        expect_close(c->availability.replicas, 6, 1e-12, "replicas");
        expect_close(c->availability.prefill_replicas, 3, 1e-12, "replicas of prefill");
        maq_serve_free(a);
        maq_serve_free(b);
        maq_serve_free(c);
        maq_job_free(s.job);
    }
}

/* What two rules wanted, in one list. */
static uint32_t merge(struct maq_replica_count *out, const struct maq_serve_availability *a)
{
    uint32_t n = 0, i = 0, j = 0;
    while (i < a->n_counts || j < a->n_prefill_counts) {
        double at = i < a->n_counts ? a->counts[i].at_s : FREE;
        at = j < a->n_prefill_counts ? fmin(at, a->prefill_counts[j].at_s) : at;
        out[n] = n > 0 ? out[n - 1]
                       : (struct maq_replica_count){.prefill_replicas = MAQ_ALL_REPLICAS, .replicas = MAQ_ALL_REPLICAS};
        out[n].at_s = n > 0 ? at : 0;
        if (i < a->n_counts && a->counts[i].at_s <= at)
            out[n].replicas = a->counts[i++].replicas;
        if (j < a->n_prefill_counts && a->prefill_counts[j].at_s <= at)
            out[n].prefill_replicas = a->prefill_counts[j++].replicas;
        assert_true(++n < EVENTS);
    }
    return n;
}

/* What rules want, written as a schedule, is the same run. Either pool follows its own load. */
static void test_as_a_schedule(void **state)
{
    (void)state;
    static struct maq_request list[MOST];
    static const char *const rules[][2] = {
        {"requests=4,every=5s,down_after=20s", "requests=2,every=5s,down_after=20s"},
        {"kv=0.002,every=2s,least=2,down_after=6s", "waiting=1,every=3s,down_after=30s"},
        {NULL, "kv=0.01,every=2s,down_after=10s"},
        {"waiting=1,every=1s,down_after=5s", NULL}};
    const struct maq_requests q = bursts(list);
    uint32_t decode = 0, prefill = 0;
    for (size_t i = 0; i < MAQ_COUNT(rules) * MAQ_ENGINE_COUNT; i++) {
        struct setting s = several((enum maq_engine)(i % MAQ_ENGINE_COUNT));
        const char *const *texts = rules[i / MAQ_ENGINE_COUNT];
        struct maq_autoscaling_rule of_decode, of_prefill;
        struct maq_replica_count counts[EVENTS];
        double start_s = i % 2 == 0 ? 7 : 0;
        if (texts[0])
            of_decode = rule(texts[0]);
        if (texts[1])
            of_prefill = rule(texts[1]);
        s.decode_rule = texts[0] ? &of_decode : NULL;
        s.prefill_rule = texts[1] ? &of_prefill : NULL;
        of_decode.start_s = of_prefill.start_s = start_s;
        struct maq_serve_result *a = run(&s, NULL, 0, &q);
        uint32_t n = merge(counts, &a->availability);
        decode += a->availability.n_counts;
        prefill += a->availability.n_prefill_counts;
        struct maq_outages o = schedule(&s, counts, n, start_s, 0);
        s.decode_rule = s.prefill_rule = NULL;
        struct maq_serve_result *b = run(&s, o.events, o.n, &q);
        assert_int_equal(a->finished, MOST);
        expect_equal(a, b);
        expect_close(b->availability.replicas, a->availability.replicas, 1e-9, "replicas");
        expect_close(b->availability.prefill_replicas, a->availability.prefill_replicas, 1e-9, "of prefill");
        expect_close(b->availability.gpus, a->availability.gpus, 1e-9, "GPUs");
        maq_outages_free(&o);
        maq_serve_free(a);
        maq_serve_free(b);
        maq_job_free(s.job);
    }
    print_message("%u changes of decode, %u of prefill\n", decode, prefill);
    assert_true(decode > 30 && prefill > 30); /* or the cases say nothing */
}

/* ---- by chance ---- */

/* Outages, and times that a replica is away between, each over in the end. */
static uint32_t draw_events(struct maq_fleet_event *events, uint32_t replicas, double until_s, bool leaves,
                            uint64_t *draws)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < replicas; k++) {
        double at = draw(draws, 0, 3) == 0 ? 0 : uniform(draws, 0, until_s);
        for (uint32_t i = draw(draws, 0, 2); i > 0; i--, n += 3) {
            double known = at + uniform(draws, 0, 1), back = known + uniform(draws, 0, until_s / 2);
            outage(events + n, k, at, known, back);
            at = back + uniform(draws, 0, until_s / 3);
        }
        at = uniform(draws, 0, until_s / 2);
        for (uint32_t i = leaves ? draw(draws, 0, 4) : 0; i > 0; i--, n += 2) {
            double comes = at + uniform(draws, 0, until_s / 3);
            events[n] = (struct maq_fleet_event){at, k, MAQ_FLEET_LEAVES};
            events[n + 1] = (struct maq_fleet_event){comes, k, MAQ_FLEET_COMES};
            at = comes + uniform(draws, 0, until_s / 4);
        }
    }
    sort_events(events, n);
    return n;
}

static struct maq_autoscaling_rule draw_rule(uint64_t *draws)
{
    static const char *const rules[] = {"requests=3,every=0.3s,down_after=1s", "waiting=1,every=0.5s,down_after=0s",
                                        "kv=0.2,every=0.2s,down_after=0.5s", "requests=1,every=1s,down_after=0s"};
    struct maq_autoscaling_rule r = rule(rules[draw(draws, 0, 3)]);
    r.start_s = draw(draws, 0, 1) ? uniform(draws, 0, 2) : 0;
    return r;
}

static void test_every_request_ends_once(void **state)
{
    (void)state;
    static struct maq_request list[60];
    struct maq_fleet_event events[EVENTS];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    uint32_t retried = 0, changes = 0, cut = 0;
    for (uint64_t seed = 1; seed <= EFFORT(40, 150, 3000); seed++) {
        uint64_t draws = seed;
        struct setting s = draw_setting(job, &draws);
        struct maq_requests q = draw_requests(list, draw(&draws, 1, 60), &draws);
        struct maq_autoscaling_rule rules[2] = {draw_rule(&draws), draw_rule(&draws)};
        uint32_t which = draw(&draws, 0, 3); /* of the two pools a rule scales; else events do both */
        for (uint32_t i = 0; i < q.n; i++)
            list[i].output = 1 + list[i].output % 400;
        s.decode_rule = which & 1 ? &rules[0] : NULL;
        s.prefill_rule = which & 2 ? &rules[1] : NULL;
        uint32_t n = draw_events(events, s.n_prefill + s.n_decode, uniform(&draws, 0.5, 12), which == 0, &draws);
        struct maq_serve_result *a = run(&s, events, n, &q), *b = run(&s, events, n, &q);
        expect_conserved(a, &s, &q);
        expect_equal(a, b);
        retried += a->availability.retried;
        cut += a->pools->cut;
        changes += a->availability.n_counts + a->availability.n_prefill_counts;
        maq_serve_free(a);
        maq_serve_free(b);
    }
    print_message("%u requests tried again, %u transfers cut, %u changes by rules\n", retried, cut, changes);
    assert_true(retried > 50 && cut > 3 && changes > 50); /* they have been met */
    maq_job_free(job);
}

/* ---- what is refused, and failing allocations ---- */

static void test_refused(void **state)
{
    (void)state;
    const struct maq_request one = {.prompt = 100, .output = 10};
    const struct maq_requests q = {.at = &one, .n = 1};
    struct maq_loaded_job *job = load("gpt2", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {0};
    const struct maq_autoscaling_rule r = rule("requests=1");
    const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &o, .replicas = 2};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1, .prefill_scaling = &r};
    struct maq_serve_result *out = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_fleet_run(&out, &fleet, &q, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_SERVE_POOLS);
    maq_diag_free(diag);
    maq_job_free(job);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct maq_request list[12];
    struct maq_fleet_event events[3];
    for (uint32_t i = 0; i < 12; i++)
        list[i] = (struct maq_request){.arrival_s = 0.1 * i, .prompt = 100, .output = 40};
    const struct maq_requests q = {.at = list, .n = 12};
    const struct maq_autoscaling_rule r = rule("requests=1,every=0.1s,down_after=0s");
    struct setting s = {.job = load("gpt2", "h100-sxm:8", "", 8), .n_prefill = 2, .n_decode = 2};
    s.handover.bps = 1e8;
    s.decode_rule = s.prefill_rule = &r;
    outage(events, 2, 0.16, 0.2, 0.5);
    struct failing f = {0};
    while (next_failing(&f)) {
        struct maq_serve_result *out = NULL;
        enum maq_status status = try_run(&out, &s, events, 3, &q, NULL);
        expect_failing(&f, status, out);
        maq_serve_free(out);
    }
    maq_job_free(s.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_prefill_starts),  cmocka_unit_test(test_decode_starts),
        cmocka_unit_test(test_prefill_drains),  cmocka_unit_test(test_decode_drains),
        cmocka_unit_test(test_chosen_and_gone), cmocka_unit_test(test_nothing_changes),
        cmocka_unit_test(test_as_a_schedule),   cmocka_unit_test(test_every_request_ends_once),
        cmocka_unit_test(test_refused),         cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
