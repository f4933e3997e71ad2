/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_power.c - watts of a GPU while it serves: the traffic and the products of a run against what they have to be, the law of power.c, its bounds,
 * and what raises it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "maquette/serve_fleet.h"
#include "serve/engine/power_fit.h"
#include "serve_jobs.h"

static struct maq_serve_result *run(const struct maq_loaded_job *job, struct maq_serve_options o, uint32_t concurrency)
{
    struct maq_request at[64];
    for (int i = 0; i < 64; i++)
        at[i] = (struct maq_request){.prompt = 200, .output = 100};
    const struct maq_requests q = {.at = at, .n = 64, .concurrency = concurrency};
    return serve(job, &o, &q);
}

static const struct maq_device *device_of(const struct maq_loaded_job *job)
{
    return &maq_job_get(job)->cluster.groups[0].device;
}

/* All weights but the embedding are read in each iteration; products are 2 FLOP for each of them and each token. */
static void test_work_of_a_run(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_device *d = device_of(job);
    struct maq_serve_result *r = run(job, (struct maq_serve_options){0}, 1);
    const struct maq_model *m = &maq_job_get(job)->model;
    double layers = (double)(m->params - m->embedding.params - m->output.params), head = (double)m->output.params;
    double bytes = r->memory_share * r->duration_s * d->mem_bps, least = (double)r->iterations * 2 * (layers + head);
    assert_true(bytes > least && bytes < 1.2 * least);
    double tokens = r->mean_tokens * (double)r->iterations;
    double flop = r->matrix_share * r->duration_s * d->peak_flops[MAQ_BF16],
           products = 2 * (tokens * layers + (double)r->iterations * head);
    assert_true(flop > products && flop < 1.15 * products);
    maq_serve_free(r);
    maq_job_free(job);
}

static void test_the_law(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", ", tp: 2", 8);
    double before = 0, tdp = device_of(job)->tdp_w;
    for (uint32_t concurrency = 1; concurrency <= 64; concurrency *= 8) {
        struct maq_serve_result *r = run(job, (struct maq_serve_options){0}, concurrency);
        struct maq_serve_power p;
        assert_true(maq_serve_power(&p, r));
        double share = MAQ_POWER_BASE + MAQ_POWER_MEMORY * p.memory_share + MAQ_POWER_MATRIX * p.matrix_share;
        expect_close(p.watts, tdp * fmin(1, share), 1e-12, "watts");
        expect_close(p.joules_per_output_token, 2 * p.watts / r->output_tokens_per_s, 1e-12, "joules");
        expect_close(p.joules_per_token, 2 * p.watts / r->total_tokens_per_s, 1e-12, "joules");
        assert_true(p.memory_share > 0 && p.memory_share < 1 && p.matrix_share > 0 && p.matrix_share < 1);
        assert_true(p.low_watts < p.watts && p.watts <= p.high_watts && p.high_watts <= tdp);
        assert_true(p.watts / r->output_tokens_per_s < before || before <= 0); /* more at once: less for each token */
        before = p.watts / r->output_tokens_per_s;
        maq_serve_free(r);
    }
    maq_job_free(job);
}

/* Stages and ranks each have their part of the work; drafts add to it. */
static void test_shares_of_a_gpu(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8),
                          *stages = load("llama-3.1-8b", "h100-sxm:8", ", pp: 2", 8);
    struct maq_serve_result *one = run(job, (struct maq_serve_options){0}, 1),
                            *two = run(stages, (struct maq_serve_options){0}, 1);
    double first = one->memory_share * one->duration_s, second = two->memory_share * two->duration_s;
    assert_true(second > 0.45 * first && second < 0.55 * first);
    struct maq_serve_options o = {.speculation = {.method = MAQ_DRAFT_EAGLE, .tokens = 2}};
    struct maq_serve_result *drafted = run(job, o, 1); /* none is accepted: as many iterations, each with more */
    assert_true(drafted->memory_share * drafted->duration_s > 1.02 * first);
    assert_true(drafted->matrix_share * drafted->duration_s >
                1.5 * one->matrix_share * one->duration_s); /* 200 + 3 x 100 tokens */
    maq_serve_free(one);
    maq_serve_free(two);
    maq_serve_free(drafted);
    maq_job_free(job);
    maq_job_free(stages);
}

/* Three replicas that serve three times as much are as busy as one. */
static void test_replicas(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const struct maq_serve_options o = {0};
    struct maq_request at[96];
    struct maq_serve_result *r[2];
    for (int i = 0; i < 96; i++)
        at[i] = (struct maq_request){.prompt = 200, .output = 100};
    for (uint32_t i = 0; i < 2; i++) {
        const struct maq_fleet_member member = {.job = maq_job_get(job), .options = &o, .replicas = i == 0 ? 1 : 3};
        const struct maq_fleet fleet = {.members = &member, .n_members = 1};
        const struct maq_requests q = {.at = at, .n = i == 0 ? 32 : 96};
        assert_int_equal(maq_fleet_run(&r[i], &fleet, &q, NULL), MAQ_OK);
    }
    expect_close(r[1]->memory_share, r[0]->memory_share, 0.05, "memory");
    expect_close(r[1]->matrix_share, r[0]->matrix_share, 0.05, "matrix units");
    maq_serve_free(r[0]);
    maq_serve_free(r[1]);
    maq_job_free(job);
}

static void test_nothing_served(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-405b", "h100-sxm:8", "", 8);
    struct maq_serve_options o = {0};
    struct maq_serve_result *r = NULL;
    struct maq_serve_power p;
    assert_int_equal(maq_serve_plan(&r, maq_job_get(job), &o, NULL), MAQ_OK);
    assert_false(maq_serve_power(&p, r));
    maq_serve_free(r);
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_work_of_a_run),   cmocka_unit_test(test_the_law),
        cmocka_unit_test(test_shares_of_a_gpu), cmocka_unit_test(test_replicas),
        cmocka_unit_test(test_nothing_served),
    };
    return cmocka_run_group_tests_name("power of a deployment", tests, NULL, NULL);
}
