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
                                uint32_t most, struct maq_serve_together with)
{
    const struct asking *a = user;
    struct maq_availability_spec spec = spec_of(a, c);
    spec.network = with.pools;
    return maq_availability_needs(n, &spec, needed, most, 1 - (1 - a->availability) / with.parts);
}

static enum maq_status load_weights(double *out, void *user, const struct maq_serve_candidate *c, struct maq_diag *diag)
{
    const struct asking *a = user;
    (void)diag;
    *out = a->load_s / c->gpus;
    return MAQ_OK;
}

static const struct maq_serve_together by_itself = {.parts = 1};
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
                assert_int_equal(replicas(&all, &a, c, n, room, by_itself), MAQ_OK);
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
            assert_int_equal(replicas(&all, &a, c, there, room, by_itself), MAQ_OK);
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

/* ---- several parts ---- */

/* Of two parts that hold the bounds together each has as many to spare as its share of what may lack asks for, and years of failures say that as
 * many as are needed of both are there at once for the time that was asked. */
static void expect_two_parts(struct asking *a, const struct maq_serve_search_result *r, enum maq_role first,
                             enum maq_role second)
{
    struct maq_fleet_member members[2];
    struct maq_request_set *set;
    struct maq_serve_result *served;
    struct maq_slo_outcome outcome;
    struct maq_availability_draws draws;
    uint32_t needed[2], gpus = 0, spare = 0;
    assert_true(r->carries && r->n_fleet == 2);
    assert_int_equal(r->fleet[0].role, first);
    assert_int_equal(r->fleet[1].role, second);
    struct maq_fleet fleet = maq_serve_search_fleet(r, &a->opts, members);
    for (uint32_t i = 0; i < 2; i++) {
        const struct maq_serve_candidate *c = &r->candidates[r->fleet[i].candidate];
        uint32_t all;
        assert_int_equal(replicas(&all, a, c, r->fleet[i].needed, c->job->cluster.devices / c->gpus,
                                  (struct maq_serve_together){2, first != MAQ_ROLE_BOTH}),
                         MAQ_OK);
        assert_true(a->opts.rate > 0 ? r->fleet[i].replicas == all : r->fleet[i].replicas >= all);
        needed[i] = r->fleet[i].needed;
        gpus += r->fleet[i].replicas * c->gpus;
        spare += r->fleet[i].replicas - needed[i];
        members[i].load_s = c->load_s;
    }
    assert_int_equal(r->gpus, gpus);
    assert_true(spare > 0);
    const struct maq_outage_spec spec = {
        .failures = maq_failures_get(a->law), .start_s = 120, .span_s = 365.0 * 86400, .seed = 5};
    assert_int_equal(maq_availability_draw(&draws, &fleet, needed, &spec, 8, NULL), MAQ_OK);
    print_message("both there %.4f of the time, %u to spare\n", draws.mean, spare);
    assert_true(draws.mean > a->availability);
    for (uint32_t i = 0; i < 2; i++)
        members[i].replicas = needed[i];
    assert_int_equal(maq_serve_search_requests(&set, r, &a->opts, NULL), MAQ_OK);
    assert_int_equal(maq_fleet_run(&served, &fleet, maq_requests_get(set), NULL), MAQ_OK);
    maq_slo_judge(&outcome, &a->slo, served, maq_requests_get(set));
    assert_true(outcome.all_met);
    maq_serve_free(served);
    maq_requests_free(set);
}

static void test_pools(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    for (int most = 0; most < 2; most++) {
        struct asking a;
        begin(&a, "h100-sxm:4 x 4", "ttft_p95<1s, tpot_p95<9ms", most ? 0 : 30, "llama3,rate=0.3/node/day,repair=2h");
        a.spec.prompt = 3000;
        a.spec.output = 60;
        a.opts.no_pools = false;
        struct maq_serve_search_result *r = search(&a);
        expect_two_parts(&a, r, MAQ_ROLE_DECODE, MAQ_ROLE_PREFILL);
        assert_true(!most || r->gpus <= 16);
        a.opts.no_pools = true;
        struct maq_serve_search_result *whole = search(&a);
        assert_true(most ? r->rate > whole->rate : !whole->carries || r->gpus < whole->gpus);
        maq_serve_search_free(whole);
        maq_serve_search_free(r);
        end(&a);
    }
}

static void test_mixtures(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    struct asking a;
    begin(&a, "h100-sxm:1 x 4 + l40s:2 x 6", "ttft_p95<1s, tpot_p95<40ms", 0, "llama3,rate=0.5/node/day,repair=2h");
    static const char *const lists[] = {"tp=1", "pp=1", "max-num-seqs=default", "max-num-batched-tokens=default"};
    a.opts.lists = lists;
    a.opts.n_lists = MAQ_COUNT(lists);
    struct maq_serve_search_result *all = search(&a); /* of each kind as many as are there */
    double more = 0;
    for (uint32_t i = 0; i < all->n_fleet; i++)
        more = fmax(more, all->candidates[all->fleet[i].candidate].rate);
    a.opts.rate = more * 1.2;
    struct maq_serve_search_result *r = search(&a);
    expect_two_parts(&a, r, MAQ_ROLE_BOTH, MAQ_ROLE_BOTH);
    maq_serve_search_free(r);
    maq_serve_search_free(all);
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
        cmocka_unit_test(test_brute_force),   cmocka_unit_test(test_random_ones_are_not_better),
        cmocka_unit_test(test_pools),         cmocka_unit_test(test_mixtures),
        cmocka_unit_test(test_nothing_fails), cmocka_unit_test(test_no_room_for_spares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
