/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_pool_room.c - pools whose caches have room for a prompt or two: whoever waits for whom, somebody goes on. A scheduler that
 * has only taken somebody's place away,
 * or ended somebody, is asked again; prompts that prefill and decode take up in different orders do not wait for each other for ever; a
 * prompt that a decode replica was found to have
 * in its cache is not left there to be computed at once when it is gone.
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

#include "pool_jobs.h"

#define BLOCK 16

/* One replica each, with a free transfer and caches of so many blocks beside the one that is nobody's. */
static struct setting with_blocks(enum maq_engine engine, int64_t prefill, int64_t decode)
{
    struct setting s = one_each(engine);
    s.p.block_size = s.d.block_size = BLOCK;
    s.p.blocks = prefill + 1;
    s.d.blocks = decode + 1;
    s.p.no_prefix_caching = s.d.no_prefix_caching = true;
    s.handover = (struct maq_handover){.bps = FREE, .latency_s = 1e-9};
    return s;
}

/*
 * One request runs at a time; three prompts of ten blocks share 32. The one that runs grows, the others have their keys and values and
 * wait. When no block is left it makes room
 * for itself: another one runs, and it is computed again behind both.
 */
static void test_the_only_one_that_runs_gives_way(void **state)
{
    (void)state;
    const struct maq_request list[] = {{.prompt = 10 * BLOCK - 1, .output = 60},
                                       {.arrival_s = 0.01, .prompt = 10 * BLOCK - 1, .output = 2},
                                       {.arrival_s = 0.02, .prompt = 10 * BLOCK - 1, .output = 2}};
    const struct maq_requests q = {.at = list, .n = 3};
    for (int async = 0; async < 2; async++) {
        struct setting s = with_blocks(MAQ_ENGINE_VLLM, 100, 32);
        s.d.max_num_seqs = 1;
        s.handover.bps = 1e8; /* decode has room for all of them before the first one runs */
        s.d.async_scheduling = async ? MAQ_ON : MAQ_OFF;
        struct maq_serve_result *r = run(&s, NULL, 0, &q);
        expect_conserved(r, &s, &q);
        assert_int_equal(r->served[0].preemptions, 1);
        assert_int_equal(r->preemptions, 1);
        assert_true(r->served[0].first_s < r->served[1].first_s && r->served[2].last_s < r->served[0].last_s);
        maq_serve_free(r);
        maq_job_free(s.job);
    }
}

/* SGLang's prefill samples the first token: a request of one ends as decode takes it in, and who waits for its slots has them then. */
static void test_ends_with_the_token_it_came_with(void **state)
{
    (void)state;
    const struct maq_request list[] = {{.prompt = 1600, .output = 1}, {.arrival_s = 0.01, .prompt = 1600, .output = 1}};
    const struct maq_requests q = {.at = list, .n = 2};
    struct setting s = with_blocks(MAQ_ENGINE_SGLANG, 210, 110);
    s.d.sglang.reserved_decode_tokens = 1;
    struct maq_serve_result *r = run(&s, NULL, 0, &q);
    expect_conserved(r, &s, &q);
    assert_true(r->pools->handed[1].reserved_s >= r->pools->handed[0].ends_s);
    maq_serve_free(r);
    maq_job_free(s.job);
}

/*
 * Either side has room for one prompt. While the first request decodes, the prompt of the second one is computed; the third one is more
 * urgent, so decode has room for it
 * next, and prefill has none, as it keeps the second prompt for decode. Prefill gives that up when its connector does, and its request
 * begins anew.
 */
static void test_prompts_wait_for_each_other(void **state)
{
    (void)state;
    const struct maq_request list[] = {{.prompt = 1600, .output = 100, .priority = 2},
                                       {.arrival_s = 0.3, .prompt = 1600, .output = 10, .priority = 2},
                                       {.arrival_s = 0.6, .prompt = 1600, .output = 10, .priority = 1}};
    const struct maq_requests q = {.at = list, .n = 3};
    static const double keeps_s[] = {[MAQ_KV_TRANSFER_PUSH] = 480, [MAQ_KV_TRANSFER_LAYER] = 60};
    static const enum maq_kv_transfer modes[] = {MAQ_KV_TRANSFER_PUSH, MAQ_KV_TRANSFER_LAYER};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct setting s = with_blocks(MAQ_ENGINE_VLLM, 110, 110);
        s.p.by_priority = s.d.by_priority = true;
        s.handover.transfer = modes[i];
        struct maq_serve_result *r = run(&s, NULL, 0, &q);
        expect_conserved(r, &s, &q);
        assert_int_equal(r->served[0].retries + r->served[2].retries, 0);
        assert_int_equal(r->served[1].retries, 1);
        assert_int_equal(r->pools->given_up, 1);
        /* the second prompt was computed when it came; the third one begins when that is given up */
        double computed_s = 0.3 + r->pools->handed[0].computed_s, begins_s = computed_s + keeps_s[modes[i]];
        expect_close(r->served[2].scheduled_s, begins_s, 1e-4, "the urgent prompt begins");
        assert_true(r->served[1].first_s > r->served[2].last_s && r->served[1].first_s < begins_s + 2);
        maq_serve_free(r);
        maq_job_free(s.job);
    }
}

/* Nobody is given up who is only late: decode has room before prefill gives up, and all is as with more room in prefill. */
static void test_late_is_not_given_up(void **state)
{
    (void)state;
    const struct maq_request list[] = {{.prompt = 1600, .output = 4000},
                                       {.arrival_s = 0.3, .prompt = 1600, .output = 10}};
    const struct maq_requests q = {.at = list, .n = 2};
    struct setting s = with_blocks(MAQ_ENGINE_VLLM, 110, 360);
    s.d.max_num_seqs = 1;
    s.handover.transfer = MAQ_KV_TRANSFER_LAYER;
    struct maq_serve_result *r = run(&s, NULL, 0, &q);
    assert_int_equal(r->served[0].retries + r->served[1].retries, 0);
    assert_int_equal(r->pools->given_up, 0);
    assert_true(r->served[1].first_s > 20);
    s.p.blocks = 1000;
    struct maq_serve_result *more = run(&s, NULL, 0, &q);
    assert_memory_equal(r->served, more->served, q.n * sizeof *r->served);
    maq_serve_free(more);
    maq_serve_free(r);
    maq_job_free(s.job);
}

/*
 * TensorRT-LLM computes prompts whole. Decode has most of a long prompt in its cache when the request comes, and another one that came
 * with it takes the blocks before its turn:
 * what is not computed of it then is more than an iteration has. It goes to prefill.
 */
static void test_long_prompts_are_not_local(void **state)
{
    (void)state;
    static const uint64_t name = 7;
    const struct maq_request list[] = {{.prompt = 640, .output = 8, .prefix = &name, .n_prefix = 1},
                                       {.arrival_s = 5, .prompt = 200, .output = 800},
                                       {.arrival_s = 5, .prompt = 640, .output = 8, .prefix = &name, .n_prefix = 1}};
    const struct maq_requests q = {.at = list, .n = 3, .prefix_unit = 512};
    struct setting s = with_blocks(MAQ_ENGINE_TRTLLM, 200, 64);
    s.d.no_prefix_caching = false;
    s.d.max_num_batched_tokens = 256;
    s.handover.max_local_prefill = 256;
    struct maq_serve_result *r = run(&s, NULL, 0, &q);
    expect_conserved(r, &s, &q);
    assert_false(r->pools->handed[2].local);
    maq_serve_free(r);
    s.d.max_num_batched_tokens = 1024; /* all of it, if need be */
    r = run(&s, NULL, 0, &q);
    assert_true(r->pools->handed[2].local);
    maq_serve_free(r);
    maq_job_free(s.job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_only_one_that_runs_gives_way),
        cmocka_unit_test(test_ends_with_the_token_it_came_with),
        cmocka_unit_test(test_prompts_wait_for_each_other),
        cmocka_unit_test(test_late_is_not_given_up),
        cmocka_unit_test(test_long_prompts_are_not_local),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
