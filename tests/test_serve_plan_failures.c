/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_plan_failures.c - the best deployment where replicas fail: what the search says is that of asking every deployment by itself,
 * and none that is drawn by chance carries more; with failures that never come it is the same as ever.
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
#include "maquette/fleet_availability.h"
#include "maquette/serve_planner.h"
#include "serve/fleet/rate_trial.h"
#include "serve_jobs.h"

struct asking {
    struct maq_loaded_job *open;
    struct maq_serve_options options;
    struct maq_request_spec spec;
    struct maq_slo slo;
    struct maq_serve_search_opts opts;
    struct maq_serve_reserve reserve;
    struct maq_loaded_failures *law;
    double availability, load_s;
    uint32_t spare_nodes;
};

static struct maq_availability_spec spec_of(const struct asking *a, const struct maq_serve_candidate *c)
{
    return (struct maq_availability_spec){.failures = maq_failures_get(a->law),
                                          .gpus = c->gpus,
                                          .gpus_per_node = (uint32_t)c->job->cluster.groups[0].devices_per_node,
                                          .spare_nodes = a->spare_nodes,
                                          .start_s = 120,
                                          .load_s = c->load_s};
}

static enum maq_status replicas(uint32_t *n, void *user, const struct maq_serve_candidate *c, uint32_t needed,
                                uint32_t most)
{
    const struct asking *a = user;
    const struct maq_availability_spec spec = spec_of(a, c);
    return maq_availability_needs(n, &spec, needed, most, a->availability);
}

static enum maq_status load_weights(double *out, void *user, const struct maq_serve_candidate *c, struct maq_diag *diag)
{
    const struct asking *a = user;
    (void)diag;
    *out = a->load_s / c->gpus;
    return MAQ_OK;
}

static const char *const limits[] = {"max-num-seqs=default,32", "max-num-batched-tokens=default,2048"};

/* It stays where it is: the search calls back. */
static void begin(struct asking *a, const char *cluster, const char *slo, double rate, const char *law)
{
    char text[256];
    struct maq_diag *diag = maq_diag_new();
    *a = (struct asking){.availability = 0.99};
    snprintf(text, sizeof text, "{model: llama-3.1-8b, cluster: '%s', workload: {global_batch_size: 1}}", cluster);
    if (maq_job_parse_open(&a->open, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_failures_load(&a->law, law, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    assert_int_equal(maq_slo_read(&a->slo, slo, NULL), MAQ_OK);
    a->spec = (struct maq_request_spec){.prompt = 500, .output = 40, .burstiness = 1, .n = 400};
    a->reserve = (struct maq_serve_reserve){.replicas = replicas, .load = load_weights, .user = a};
    a->opts = (struct maq_serve_search_opts){.options = &a->options,
                                             .lists = limits,
                                             .n_lists = MAQ_COUNT(limits),
                                             .spec = &a->spec,
                                             .slo = &a->slo,
                                             .rate = rate,
                                             .router = MAQ_ROUTER_LEAST_REQUESTS,
                                             .reserve = &a->reserve,
                                             .no_pools = true};
}

static void end(struct asking *a)
{
    maq_job_free(a->open);
    maq_failures_free(a->law);
}

static struct maq_serve_search_result *search(const struct asking *a)
{
    struct maq_serve_search_result *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_serve_search(&r, a->open, &a->opts, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

static bool holds(const struct asking *a, const struct maq_serve_candidate *c, uint32_t n, double rate)
{
    struct maq_request_set *set;
    struct maq_request_spec spec = a->spec;
    spec.rate = 1;
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    const struct maq_fleet_member member = {.job = c->job, .options = &c->options, .replicas = n};
    const struct maq_fleet fleet = {.members = &member, .n_members = 1, .router = a->opts.router};
    struct maq_rate_trial t = {
        .fleet = &fleet, .slo = a->opts.slo, .draw = maq_requests_get(set), .tolerance = MAQ_SERVE_SEARCH_TOLERANCE};
    assert_int_equal(maq_rate_trial_begin(&t, NULL), MAQ_OK);
    assert_true(maq_rate_try(&t, rate, NULL));
    maq_rate_trial_end(&t);
    maq_requests_free(set);
    return t.low > 0;
}

/* ---- a rate ---- */

struct scene {
    const char *cluster, *slo, *law;
    double rate, load_s;
    uint32_t spare_nodes;
};

static const struct scene scenes[] = {
    {"h100-sxm:8 x 3", "ttft_p95<500ms, tpot_p95<15ms", "llama3,rate=0.5/node/day,repair=6h", 130, 0, 0},
    {"h100-sxm:8 x 3", "ttft_p95<100ms, tpot_p95<8ms", "llama3,rate=0.2/node/day,repair=2d", 40, 900, 1},
    {"a100-sxm:4 x 4", "ttft_p95<1s, tpot_p95<20ms", "rate=1/node/day,repair=1h", 60, 600, 0},
};

/* The fewest GPUs of all, each deployment asked by itself: how many hold the bounds, and how many it takes that as many are there. */
static void test_brute_force(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(scenes); i++) {
        const struct scene *x = &scenes[i];
        struct asking a;
        begin(&a, x->cluster, x->slo, x->rate, x->law);
        a.load_s = x->load_s;
        a.spare_nodes = x->spare_nodes;
        struct maq_serve_search_result *r = search(&a);
        uint32_t fewest = UINT32_MAX, alone = UINT32_MAX;
        for (uint32_t k = 0; k < r->n; k++) {
            const struct maq_serve_candidate *c = &r->candidates[k];
            if (c->verdict == MAQ_SERVE_VERDICT_IMPOSSIBLE || c->verdict == MAQ_SERVE_VERDICT_UNFIT)
                continue;
            uint32_t room = 24 / c->gpus < 1 ? 1 : c->job->cluster.devices / c->gpus, n = 1, all = 0;
            while (n <= room && !holds(&a, c, n, x->rate))
                n++;
            if (n <= room)
                assert_int_equal(replicas(&all, &a, c, n, room), MAQ_OK);
            alone = n <= room && n * c->gpus < alone ? n * c->gpus : alone;
            fewest = all > 0 && all * c->gpus < fewest ? all * c->gpus : fewest;
        }
        print_message("%s: %u GPUs without failures, %u with\n", x->law, alone, fewest);
        assert_true(fewest > alone && fewest != UINT32_MAX); /* failures matter */
        assert_true(r->carries && r->n_fleet == 1);
        assert_int_equal(r->gpus, fewest);
        const struct maq_serve_candidate *best = &r->candidates[r->fleet[0].candidate];
        assert_true(holds(&a, best, r->fleet[0].needed, x->rate));
        assert_int_equal(r->fleet[0].replicas, best->with_spares);
        assert_int_equal(r->fleet[0].needed, best->replicas);
        maq_serve_search_free(r);
        end(&a);
    }
}

/* ---- as much as can be ---- */

/* Of a full cluster those count that are there: what they carry is more than of any that is drawn by chance. */
static void test_random_ones_are_not_better(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    uint64_t draws = 3;
    struct asking a;
    begin(&a, "h100-sxm:8 x 2", "ttft_p95<500ms, tpot_p95<10ms", 0, "llama3,rate=0.5/node/day,repair=6h");
    struct maq_serve_search_result *r = search(&a);
    assert_true(r->carries && r->n_fleet == 1);
    const struct maq_serve_candidate *best = &r->candidates[r->fleet[0].candidate];
    assert_true(r->fleet[0].needed < r->fleet[0].replicas && best->rate > 0);
    assert_int_equal(r->fleet[0].replicas * best->gpus, 16);
    for (uint32_t tried = 0; tried < EFFORT(10, 40, 200);) {
        const struct maq_serve_candidate *c = &r->candidates[draw(&draws, 0, r->n - 1)];
        if (c->verdict == MAQ_SERVE_VERDICT_IMPOSSIBLE || c->verdict == MAQ_SERVE_VERDICT_UNFIT)
            continue;
        tried++;
        uint32_t room = 16 / c->gpus, there = room, all;
        for (; there > 0; there--) {
            assert_int_equal(replicas(&all, &a, c, there, room), MAQ_OK);
            if (all > 0)
                break;
        }
        if (there > 0 && holds(&a, c, 1, best->rate / there * 1.03))
            fail_msg("tp%d pp%d (%s) carries more on %u that are there", c->job->plan.tp, c->job->plan.pp,
                     maq_serve_verdict_name(c->verdict), there);
    }
    maq_serve_search_free(r);
    end(&a);
}

/* ---- nothing fails ---- */

static void test_nothing_fails(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    for (double rate = 0; rate < 41; rate += 40) {
        struct asking a;
        begin(&a, "h100-sxm:4", "ttft_p95<500ms, tpot_p95<15ms", rate, "none");
        struct maq_serve_search_result *with = search(&a);
        a.opts.reserve = NULL;
        struct maq_serve_search_result *without = search(&a);
        assert_int_equal(with->runs, without->runs);
        assert_int_equal(with->gpus, without->gpus);
        expect_close(with->rate, without->rate, 0, "rate");
        assert_int_equal(with->fleet[0].candidate, without->fleet[0].candidate);
        assert_int_equal(with->fleet[0].replicas, without->fleet[0].needed);
        for (uint32_t i = 0; i < with->n; i++)
            assert_int_equal(with->candidates[i].verdict, without->candidates[i].verdict);
        maq_serve_search_free(with);
        maq_serve_search_free(without);
        end(&a);
    }
}

/* No deployment has room for its spares: none is said to carry the rate, and what carries the most is shown. */
static void test_no_room_for_spares(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    struct asking a;
    begin(&a, "h100-sxm:2", "ttft_p95<500ms, tpot_p95<15ms", 60, "llama3,rate=2/node/day,repair=1d");
    struct maq_serve_search_result *r = search(&a);
    assert_false(r->carries);
    assert_int_equal(r->n_fleet, 0); /* half of the time there is nobody */
    maq_serve_search_free(r);
    a.availability = 0.2;
    r = search(&a);
    assert_true(r->n_fleet == 1 && r->rate > 0);
    maq_serve_search_free(r);
    end(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_brute_force),
        cmocka_unit_test(test_random_ones_are_not_better),
        cmocka_unit_test(test_nothing_fails),
        cmocka_unit_test(test_no_room_for_spares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
