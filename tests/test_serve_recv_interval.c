/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_recv_interval.c - SGLang's --scheduler-recv-interval: how many iterations of decodes pass before a new request is looked at.
 *
 * managers/scheduler_recv_skipper.py of SGLang 0.5.9 counts the iterations behind the last look, one for a decode, and looks when there are as many
 * as the interval; behind a prefill, and where nothing runs, it looks at once.
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

static struct seen_prefills every(const struct maq_loaded_job *job, int32_t interval, int overlap,
                                  const struct maq_requests *q)
{
    return serve_seen(job,
                      (struct maq_serve_options){.engine = MAQ_ENGINE_SGLANG,
                                                 .async_scheduling = overlap,
                                                 .sglang = {.recv_interval = interval}},
                      q);
}

/* One runs alone; the second comes while it decodes, and waits for a multiple of the interval behind the first prefill. */
static void test_waits_for_the_interval(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_request list[] = {{.prompt = 100, .output = 400}, {.arrival_s = 0.5, .prompt = 100, .output = 10}};
    const struct maq_requests q = {.at = list, .n = 2};
    uint64_t at_once = every(job, 0, MAQ_AUTO, &q).at[1];
    assert_true(every(job, 1, MAQ_AUTO, &q).at[1] == at_once);
    static const int32_t intervals[] = {7, 30, 50};
    for (size_t i = 0; i < MAQ_COUNT(intervals); i++) {
        uint64_t n = (uint64_t)intervals[i];
        const struct seen_prefills seen = every(job, intervals[i], MAQ_AUTO, &q);
        assert_int_equal(seen.n, 2);
        assert_int_equal(seen.at[0], 0);
        assert_int_equal((seen.at[1] - 1) % n, 0);
        assert_true(seen.at[1] >= at_once && seen.at[1] < at_once + n);
    }
    maq_job_free(job);
}

/* Behind a prefill it is looked at once, here before the next iteration is decided; and so it is where nothing runs. */
static void test_looks_at_once(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_request list[] = {{.prompt = 8000, .output = 300},
                                 {.arrival_s = 0.01, .prompt = 100, .output = 10}, /* while the first is computed */
                                 {.arrival_s = 30, .prompt = 100, .output = 10}};  /* when both have ended */
    const struct maq_requests q = {.at = list, .n = 3};
    const struct seen_prefills seen = every(job, 1000, MAQ_OFF, &q), plain = every(job, 1, MAQ_OFF, &q);
    assert_int_equal(seen.n, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(seen.at[i], plain.at[i]);
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_for_the_interval),
        cmocka_unit_test(test_looks_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
