/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_attention_dp_balance.c - TensorRT-LLM's ranks of attention that wait for each other (attention_dp_config, enable_balance), by hand and by chance.
 *
 * Two ranks; each request goes to the one with fewer. What is compared is the number of the iteration in which a prompt is computed.
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
#include "effort.h"
#include "maquette/serve.h"
#include "serve_jobs.h"

static struct seen_prefills balanced(const struct maq_loaded_job *job, struct maq_attention_dp_balance balance,
                                     const struct maq_requests *q)
{
    return serve_seen(
        job,
        (struct maq_serve_options){
            .engine = MAQ_ENGINE_TRTLLM, .async_scheduling = MAQ_OFF, .dp = 2, .attention_dp_balance = balance},
        q);
}

/* Both ranks decode; a prompt that comes alone waits until the timeout, which counts iterations without prompts from the last one on. */
static void test_one_waits_for_the_timeout(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("gpt-oss-20b", "h100-sxm:8", "", 8);
    struct maq_request list[] = {
        {.prompt = 50, .output = 900}, {.prompt = 50, .output = 900}, {.arrival_s = 0.5, .prompt = 50, .output = 10}};
    const struct maq_requests q = {.at = list, .n = 3};
    const struct seen_prefills plain = balanced(job, (struct maq_attention_dp_balance){.enabled = false}, &q);
    assert_true(plain.n == 2 && plain.at[0] == 0 && plain.prompts[0] == 2);
    static const int32_t timeouts[] = {50, 7, 200};
    for (size_t i = 0; i < MAQ_COUNT(timeouts); i++) {
        const struct maq_attention_dp_balance balance = {
            .enabled = true, .timeout_iterations = i == 0 ? 0 : timeouts[i]}; /* the default */
        const struct seen_prefills seen = balanced(job, balance, &q);
        assert_true(seen.n == 2 && seen.at[0] == 0);
        assert_int_equal(seen.at[1] % (uint64_t)timeouts[i], 0);
        assert_true(seen.at[1] >= plain.at[1] && seen.at[1] < plain.at[1] + (uint64_t)timeouts[i]);
    }
    maq_job_free(job);
}

/* Two that come together, one for each rank, wait for more to come. */
static void test_all_wait_for_more(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("gpt-oss-20b", "h100-sxm:8", "", 8);
    struct maq_request list[] = {{.prompt = 50, .output = 900},
                                 {.prompt = 50, .output = 900},
                                 {.arrival_s = 0.5, .prompt = 50, .output = 10},
                                 {.arrival_s = 0.5, .prompt = 50, .output = 10}};
    const struct maq_requests q = {.at = list, .n = 4};
    const struct maq_attention_dp_balance none = {.enabled = false},
                                          at_once = {.enabled = true,
                                                     .timeout_iterations = 1000,
                                                     .batching_iterations = -1},
                                          usual = {.enabled = true, .timeout_iterations = 1000},
                                          longer = {
                                              .enabled = true, .timeout_iterations = 1000, .batching_iterations = 33};
    uint64_t plain = balanced(job, none, &q).at[1];
    const struct seen_prefills together = balanced(job, usual, &q);
    assert_int_equal(together.n, 2);
    assert_int_equal(together.prompts[1], 2);
    assert_int_equal(balanced(job, at_once, &q).at[1], plain);
    assert_int_equal(together.at[1], plain + 10);
    assert_int_equal(balanced(job, longer, &q).at[1], plain + 33);
    maq_job_free(job);
}

/* Nobody decodes on the other rank: nobody waits. */
static void test_nobody_waits_for_nobody(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("gpt-oss-20b", "h100-sxm:8", "", 8);
    struct maq_request list[] = {{.prompt = 50, .output = 400}, {.arrival_s = 0.3, .prompt = 50, .output = 10}};
    const struct maq_requests q = {.at = list, .n = 2};
    const struct maq_attention_dp_balance balance = {.enabled = true, .timeout_iterations = 1000};
    assert_int_equal(balanced(job, balance, &q).at[1],
                     balanced(job, (struct maq_attention_dp_balance){.enabled = false}, &q).at[1]);
    maq_job_free(job);
}

/* Iterations that are done at once count as those that are not. */
static void test_at_once_is_one_by_one(void **state)
{
    (void)state;
    static struct maq_request list[60];
    struct maq_loaded_job *job = load("gpt-oss-20b", "h100-sxm:8", "", 8);
    for (uint64_t seed = 1; seed <= EFFORT(10, 30, 300); seed++) {
        uint64_t draws = seed;
        struct maq_serve_options o = draw_options(&draws, MAQ_ENGINE_TRTLLM);
        o.dp = 2;
        o.max_num_batched_tokens = 8192;
        o.attention_dp_balance =
            (struct maq_attention_dp_balance){.enabled = true,
                                              .timeout_iterations = (int32_t)draw(&draws, 0, 80),
                                              .batching_iterations = (int32_t)draw(&draws, 0, 20) - 1};
        const struct maq_requests q = draw_requests(list, draw(&draws, 1, 60), &draws);
        struct maq_serve_result *a = serve_both_ways(NULL, job, o, &q, 1e-9);
        maq_serve_free(a);
    }
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_waits_for_the_timeout),
        cmocka_unit_test(test_all_wait_for_more),
        cmocka_unit_test(test_nobody_waits_for_nobody),
        cmocka_unit_test(test_at_once_is_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
