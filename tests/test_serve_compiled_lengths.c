/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_compiled_lengths.c - kernels that SGLang before 0.5.16 compiles for every number of tokens of a prefill.
 *
 * layers/attention/fla/l2norm.py of SGLang 0.5.9: the rows that the norm in front of a delta rule goes over are a constant of its kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/serve.h"
#include "serve_jobs.h"

#define N 6
#define QWEN "qwen3-next-80b-a3b"

/* Seconds that prefills of these lengths, one after the other, wait for the compiler. */
static double compile_s(const struct maq_loaded_job *job, struct maq_serve_options o, const int64_t prompts[N])
{
    struct maq_request list[N];
    for (uint32_t i = 0; i < N; i++)
        list[i] = (struct maq_request){.arrival_s = 30.0 * i, .prompt = prompts[i], .output = 4};
    const struct maq_requests q = {.at = list, .n = N};
    o.engine = MAQ_ENGINE_SGLANG;
    o.no_prefix_caching = true;
    struct maq_serve_result *r = serve(job, &o, &q);
    assert_int_equal(r->finished, N);
    double s = r->part_s[MAQ_SERVE_COMPILE];
    maq_serve_free(r);
    return s;
}

static const int64_t unlike[N] = {100, 101, 102, 103, 104, 105}, alike[N] = {100, 100, 100, 100, 100, 100},
                     again[N] = {100, 101, 100, 101, 102, 100};

/* Once for each number of tokens, and as long each time. */
static void test_once_for_each_number(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load(QWEN, "h200:8", ", tp: 8", 8);
    const struct maq_serve_options o = {.version = "0.5.9"};
    double one = compile_s(job, o, alike);
    assert_true(one > 0.02 && one < 1);
    expect_close(compile_s(job, o, unlike), 6 * one, 1e-9, "six numbers");
    expect_close(compile_s(job, o, again), 3 * one, 1e-9, "three numbers");
    maq_job_free(job);
}

/* Not by later releases, other engines' kind of models, an engine that has served before, and where prefills are pieces of CUDA graphs. */
static void test_who_compiles(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load(QWEN, "h200:8", ", tp: 8", 8),
                          *plain = load("qwen3-30b-a3b", "h200:8", ", tp: 8", 8);
    static const struct {
        const char *version;
        bool eager, warm, compiles;
    } cases[] = {{"0.5.9", false, false, true}, {"0.5.9", false, true, false},  {"0.5.10", false, false, false},
                 {"0.5.15", true, false, true}, {"0.5.16", true, false, false}, {"0.5.23", false, false, false}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        const struct maq_serve_options o = {
            .version = cases[i].version, .enforce_eager = cases[i].eager, .warm = cases[i].warm};
        assert_true((compile_s(job, o, unlike) > 0) == cases[i].compiles);
        assert_true(compile_s(plain, o, unlike) <= 0);
    }
    maq_job_free(job);
    maq_job_free(plain);
}

/* The time is the prefill's: its first token comes so much later, and a second one of its length does not. */
static void test_the_first_token_waits(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load(QWEN, "h200:8", ", tp: 8", 8);
    struct maq_request list[] = {{.prompt = 777, .output = 3}, {.arrival_s = 20, .prompt = 777, .output = 3}};
    const struct maq_requests q = {.at = list, .n = 2};
    struct maq_serve_options o = {.engine = MAQ_ENGINE_SGLANG, .version = "0.5.9", .no_prefix_caching = true};
    struct maq_serve_result *cold = serve(job, &o, &q);
    o.warm = true;
    struct maq_serve_result *warm = serve(job, &o, &q);
    double waits = cold->part_s[MAQ_SERVE_COMPILE];
    assert_true(waits > 0);
    expect_close(cold->served[0].first_s - warm->served[0].first_s, waits, 1e-9, "the first");
    expect_close(cold->served[1].first_s, warm->served[1].first_s, 1e-12, "the second");
    maq_serve_free(cold);
    maq_serve_free(warm);
    maq_job_free(job);
}

/* One by one, and as many iterations at once as there are. */
static void test_at_once(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load(QWEN, "h200:8", ", tp: 8", 8);
    for (uint64_t seed = 1; seed <= 12; seed++) {
        uint64_t draws = seed;
        struct maq_request list[24];
        const struct maq_requests q = draw_requests(list, 24, &draws);
        const struct maq_serve_options o = {
            .engine = MAQ_ENGINE_SGLANG, .version = "0.5.9", .max_num_seqs = draw(&draws, 0, 1) ? 0 : 8};
        maq_serve_free(serve_both_ways(NULL, job, o, &q, 0));
    }
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_once_for_each_number),
        cmocka_unit_test(test_who_compiles),
        cmocka_unit_test(test_the_first_token_waits),
        cmocka_unit_test(test_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
