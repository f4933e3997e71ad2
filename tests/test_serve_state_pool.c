/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_state_pool.c - SGLang's pool of states: how many there are, and how many requests may run.
 *
 * model_runner_kv_cache_mixin.py of SGLang 0.5.9, handle_max_mamba_cache() and init_memory_pool().
 */
#include <math.h>
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

/* Qwen3-Next on four ranks: 36 layers, of 8 value heads a state of 128 x 128 in 32 bits, and three columns of 2,048 channels in 16. */
#define STATE (36 * (8 * 128 * 128 * 4.0 + 3 * 2048 * 2.0))
#define TOKEN (12 * 2 * 256 * 2.0) /* 12 layers with one head of keys and one of values */

static struct maq_serve_result *run(const struct maq_serve_options *given)
{
    struct maq_loaded_job *job = load("qwen3-next-80b-a3b", "h100-sxm:8", ", tp: 4", 8);
    struct maq_request list[] = {{.prompt = 100, .output = 4}};
    const struct maq_requests q = {.at = list, .n = 1};
    struct maq_serve_options o = *given;
    o.engine = MAQ_ENGINE_SGLANG;
    struct maq_serve_result *r = serve(job, &o, &q);
    maq_job_free(job);
    assert_int_equal(r->finished, 1);
    return r;
}

/* What weights and all else leave is shared, 0.9 to 1, and of the states a third or a fifth may be of requests. */
static void test_shared_by_a_ratio(void **state)
{
    (void)state;
    static const struct {
        struct maq_serve_options o;
        int32_t each;
    } cases[] = {{{.version = "0.5.9"}, 3},
                 {{.version = "0.5.12"}, 3},
                 {{.version = "0.5.14"}, 5},
                 {{.version = "0.5.23"}, 5},
                 {{.version = "0.5.9", .no_prefix_caching = true}, 1}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_serve_result *r = run(&cases[i].o);
        double all = r->memory[MAQ_SERVE_MEM_KV], tokens = (double)r->blocks * TOKEN, states = all - tokens,
               n = states / STATE;
        assert_true(fabs(n - floor(n + 0.5)) < 1e-6);
        assert_true(states <= (all + TOKEN) * 0.9 / 1.9 && states + STATE > all * 0.9 / 1.9);
        double most = floor((n + 0.5) / cases[i].each);
        assert_int_equal(r->options.max_num_seqs, most < 2048 ? (int)most : 2048);
        maq_serve_free(r);
    }
}

/* Without a tree those that are said to run have a state each, and all else is for tokens. */
static void test_as_many_as_run(void **state)
{
    (void)state;
    double last = 0;
    for (int32_t n = 8; n <= 128; n *= 2) {
        struct maq_serve_result *r =
            run(&(struct maq_serve_options){.version = "0.5.9", .no_prefix_caching = true, .max_num_seqs = n});
        assert_int_equal(r->options.max_num_seqs, n);
        double states = r->memory[MAQ_SERVE_MEM_KV] - (double)r->blocks * TOKEN;
        expect_close(states, n * STATE, 1e-9, "states");
        assert_true(last <= 0 || (double)r->blocks < last);
        last = (double)r->blocks;
        maq_serve_free(r);
    }
}

/* A tree that keeps states ends iterations that are decided ahead, until 0.5.13; the first of a model without states does not. */
static void test_decided_ahead(void **state)
{
    (void)state;
    static const struct {
        struct maq_serve_options o;
        bool ahead;
    } cases[] = {{{.version = "0.5.9"}, false},
                 {{.version = "0.5.9", .async_scheduling = MAQ_ON}, true},
                 {{.version = "0.5.9", .no_prefix_caching = true}, true},
                 {{.version = "0.5.14"}, true}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_serve_result *r = run(&cases[i].o);
        assert_true((r->options.async_scheduling != MAQ_OFF) == cases[i].ahead);
        maq_serve_free(r);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shared_by_a_ratio),
        cmocka_unit_test(test_as_many_as_run),
        cmocka_unit_test(test_decided_ahead),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
