/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve_kept.c - what engines keep of what was asked before is what asking again says, to the bit: times of iterations, bins of latencies. */
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
#include "serve/engine/batch.h"
#include "serve/engine/latency.h"
#include "serve_jobs.h"

struct scene {
    const char *model, *cluster, *plan;
    int devices;
};

static const struct scene scenes[] = {{"llama-3.1-8b", "h100-sxm:1", "", 1},
                                      {"llama-3.1-70b", "h100-sxm:8", ", tp: 4, pp: 2", 8},
                                      {"gpt-oss-20b", "h100-sxm:1", "", 1}};

static double expect_kept(struct maq_deployment *d, uint32_t stage, const struct maq_pass_batch *b)
{
    struct maq_pass_parts asked;
    enum maq_launch_mode mode = maq_batch_launch_mode(d, b);
    const struct maq_stage_times *kept = maq_iteration_times_of(d, stage, b, mode);
    expect_close(kept->s[MAQ_STAGE_ALL], maq_batch_stage_s(d, stage, b, mode, &asked), 0, "seconds");
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        expect_close(kept->s[i], asked.ns[i] * 1e-9, 0, "a part");
    expect_close(kept->s[MAQ_STAGE_MATRIX], asked.matrix_ns * 1e-9, 0, "products");
    expect_close(kept->s[MAQ_STAGE_MEMORY], asked.memory_ns * 1e-9, 0, "traffic");
    return kept->s[MAQ_STAGE_ALL];
}

static double of_decodes(struct maq_deployment *d, uint32_t stage, uint32_t decodes, int64_t keys)
{
    struct maq_pass_batch b = maq_batch_decodes(d, decodes);
    for (uint32_t w = 0; w < d->passes.n_windows; w++)
        b.decode_keys[w] = decodes * maq_pass_keys(&d->passes, w, keys);
    return expect_kept(d, stage, &b);
}

static double of_prompt(struct maq_deployment *d, uint32_t stage, int64_t queries, int64_t context, bool samples)
{
    const struct maq_pass_chunk chunk = {queries, context};
    const struct maq_pass_batch b = {.tokens = queries,
                                     .padded = maq_batch_launch(d, queries, 1, 1).padded,
                                     .sampled = samples,
                                     .queries = 1,
                                     .chunks = &chunk,
                                     .n_chunks = 1};
    return expect_kept(d, stage, &b);
}

static void test_times_of_iterations(void **state)
{
    (void)state;
    uint64_t draws = 9;
    for (size_t i = 0; i < MAQ_COUNT(scenes); i++) {
        struct maq_loaded_job *job = load(scenes[i].model, scenes[i].cluster, scenes[i].plan, scenes[i].devices);
        const struct maq_serve_options o = {0};
        struct maq_deployment d;
        double least = (double)INFINITY, most = 0;
        assert_int_equal(maq_deployment_init(&d, maq_job_get(job), &o, NULL), MAQ_OK);
        assert_true(maq_iteration_times_init(&d, 100) &&
                    d.n_iteration_times == 128); /* few, so that they take each other's place */
        for (uint32_t k = 0; k < 4000; k++) {
            uint32_t stage = draw(&draws, 0, d.passes.n_stages - 1);
            double s = draw(&draws, 0, 2) ? of_decodes(&d, stage, draw(&draws, 0, 3) ? 1 : draw(&draws, 2, 40),
                                                       draw(&draws, 1, draw(&draws, 0, 1) ? 300 : 30000))
                                          : of_prompt(&d, stage, draw(&draws, 1, 3) * 100, draw(&draws, 0, 3) * 50,
                                                      draw(&draws, 0, 1));
            least = fmin(least, s);
            most = fmax(most, s);
        }
        assert_true(most > least * 1.1); /* keys matter */
        maq_deployment_fini(&d);
        maq_job_free(job);
    }
}

/* Where a bin begins is the logarithm's to say, to rounding; a run of times is those times one by one. */
static void test_bins_of_latencies(void **state)
{
    (void)state;
    uint64_t draws = 4;
    struct maq_latency one, run;
    assert_true(maq_latency_init(&one) && maq_latency_init(&run));
    uint64_t beside = 0;
    for (uint32_t k = 0; k < 60000; k++) {
        double s = draw(&draws, 0, 20) ? exp2(uniform(&draws, -27, 13)) : 0;
        uint64_t tokens = draw(&draws, 1, 300);
        struct maq_latency_run r = maq_latency_run_of(&run, tokens);
        for (uint32_t i = draw(&draws, 1, 20); i > 0; i--, s *= 1 + uniform(&draws, -0.0003, 0.0004)) {
            double at = s > 1e-7 ? log(s / 1e-7) / 0.002 : 0;
            uint32_t bin = at < MAQ_LATENCY_BINS - 1 ? (uint32_t)at : MAQ_LATENCY_BINS - 1;
            uint64_t before = one.bins[bin];
            maq_latency_add_n(&one, s, tokens);
            if (one.bins[bin] != before + tokens) { /* the one beside it, where it is at its edge */
                assert_true(fabs(at - round(at)) < 1e-9);
                beside++;
            }
            maq_latency_run_add(&r, s);
        }
        maq_latency_run_end(&r);
    }
    assert_true(beside < 10);
    assert_memory_equal(one.bins, run.bins, MAQ_LATENCY_BINS * sizeof *one.bins);
    assert_true(one.n == run.n && one.sum_units == run.sum_units && one.sum_parts == run.sum_parts);
    maq_latency_fini(&one);
    maq_latency_fini(&run);
}

static void look(const struct maq_serve_iteration *it, void *user)
{
    uint64_t *n = user;
    (void)it;
    ++*n;
}

/* Whoever watches sees every iteration, and what comes of them is the same to the bit as where they are done at once. */
static void test_watched(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:1", "", 1);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        const struct maq_request_spec spec = {
            .rate = seed % 2 ? 0.5 : 12, .n = 60, .prompt = 700, .output = 120, .spread = 0.5, .seed = seed};
        struct maq_request_set *set = NULL;
        uint64_t n = 0;
        struct maq_serve_options o = {.async_scheduling = seed % 3 ? MAQ_ON : MAQ_OFF}, watched = o;
        watched.watch = look;
        watched.watch_user = &n;
        assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
        struct maq_serve_result *a = serve(job, &o, maq_requests_get(set)),
                                *b = serve(job, &watched, maq_requests_get(set));
        assert_true(n == b->iterations && a->iterations == b->iterations);
        assert_memory_equal(a->served, b->served, spec.n * sizeof *a->served);
        assert_memory_equal(a->part_s, b->part_s, sizeof a->part_s);
        assert_memory_equal(&a->itl_s, &b->itl_s, sizeof a->itl_s);
        assert_true(a->kv_mean == b->kv_mean && a->kv_peak == b->kv_peak && a->matrix_share == b->matrix_share &&
                    a->memory_share == b->memory_share && a->mean_batch == b->mean_batch);
        maq_serve_free(a);
        maq_serve_free(b);
        maq_requests_free(set);
    }
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_times_of_iterations),
                                       cmocka_unit_test(test_bins_of_latencies), cmocka_unit_test(test_watched)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
