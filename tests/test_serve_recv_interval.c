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

/* Which iterations have a prompt in them. */
struct seen {
    uint64_t prefills[16], n;
};

static void look(const struct maq_serve_iteration *it, void *user)
{
    struct seen *seen = user;
    if (it->prompts > 0 && seen->n < MAQ_COUNT(seen->prefills))
        seen->prefills[seen->n++] = it->number;
}

static struct seen serve_seen(const struct maq_loaded_job *job, int32_t interval, int overlap,
                              const struct maq_requests *q)
{
    struct seen seen = {0};
    struct maq_serve_options o = {.engine = MAQ_ENGINE_SGLANG,
                                  .front_end = MAQ_FRONT_END_NONE,
                                  .async_scheduling = overlap,
                                  .sglang = {.recv_interval = interval},
                                  .watch = look,
                                  .watch_user = &seen};
    struct maq_serve_result *r = serve(job, &o, q);
    assert_int_equal(r->finished, q->n);
    maq_serve_free(r);
    return seen;
}

/* One runs alone; the second comes while it decodes, and waits for a multiple of the interval behind the first prefill. */
static void test_waits_for_the_interval(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_request list[] = {{.prompt = 100, .output = 400}, {.arrival_s = 0.5, .prompt = 100, .output = 10}};
    const struct maq_requests q = {.at = list, .n = 2};
    uint64_t at_once = serve_seen(job, 0, MAQ_AUTO, &q).prefills[1];
    assert_true(serve_seen(job, 1, MAQ_AUTO, &q).prefills[1] == at_once);
    static const int32_t intervals[] = {7, 30, 50};
    for (size_t i = 0; i < MAQ_COUNT(intervals); i++) {
        uint64_t n = (uint64_t)intervals[i];
        const struct seen seen = serve_seen(job, intervals[i], MAQ_AUTO, &q);
        assert_int_equal(seen.n, 2);
        assert_int_equal(seen.prefills[0], 0);
        assert_int_equal((seen.prefills[1] - 1) % n, 0);
        assert_true(seen.prefills[1] >= at_once && seen.prefills[1] < at_once + n);
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
    const struct seen seen = serve_seen(job, 1000, MAQ_OFF, &q), plain = serve_seen(job, 1, MAQ_OFF, &q);
    assert_int_equal(seen.n, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(seen.prefills[i], plain.prefills[i]);
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
