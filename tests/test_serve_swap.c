/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_swap.c - blocks that TensorRT-LLM's cache moves to host memory and back.
 *
 *   - the queue of places against a list that is gone through anew each time
 *   - a host that holds everything and costs nothing: each block of a beginning is computed once, which is counted without the engine
 *   - an iteration starts when what it moves has moved, in closed form; a narrower link finds as much and serves nobody before
 *   - how many places there are, of bytes of each GPU and of all
 *   - iterations at once have the outcome of one by one, to the bit
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "serve/kv/swap.h"
#include "tier_jobs.h"

/* ---- the queue against a list ---- */

#define KEYS 40u
#define PLACES 13u

/* What stands in each place, the front first; 0 = it is empty. */
struct brute {
    uint64_t at[PLACES];
    uint64_t lost;
};

static int brute_find(const struct brute *b, uint64_t key)
{
    for (uint32_t i = 0; i < PLACES; i++)
        if (b->at[i] == key)
            return (int)i;
    return -1;
}

/* The place at i goes to the end, with `key` in it. */
static void brute_last(struct brute *b, uint32_t i, uint64_t key)
{
    for (; i + 1 < PLACES; i++)
        b->at[i] = b->at[i + 1];
    b->at[PLACES - 1] = key;
}

static void test_queue_against_a_list(void **state)
{
    (void)state;
    struct maq_block_pool pool = {.n = 0};
    struct maq_swap s;
    struct brute b = {.lost = 0};
    uint64_t draws = 11, hashes[KEYS], keys[KEYS];
    assert_int_equal(maq_swap_init(&s, PLACES, &pool), MAQ_OK);
    for (uint32_t i = 0; i < KEYS; i++) {
        hashes[i] = next_random(&draws);
        keys[i] = maq_kv_key(hashes[i], 0);
    }
    for (uint32_t step = 0; step < 20000; step++) {
        if (draw(&draws, 0, 2) > 0) {
            uint64_t key = keys[draw(&draws, 0, KEYS - 1)];
            if (brute_find(&b, key) < 0) {
                b.lost += b.at[0] != 0;
                brute_last(&b, 0, key);
            }
            pool.leaves(pool.user, key);
        } else { /* a request whose beginning is a run of keys, block by block */
            uint32_t from = draw(&draws, 0, KEYS - 1), n = 0;
            const struct maq_kv_request r = {.hashes = hashes, .n_hashes = KEYS};
            while (from + n < KEYS && brute_find(&b, keys[from + n]) >= 0)
                n++;
            assert_int_equal(maq_swap_claim(&s, &r, from, (int64_t)KEYS * 16, 16), n);
            if (draw(&draws, 0, 1)) {
                maq_swap_back(&s);
                for (uint32_t i = 0; i < n; i++)
                    brute_last(&b, (uint32_t)brute_find(&b, keys[from + i]), 0);
            } else {
                maq_swap_leave(&s);
            }
        }
        int64_t used = 0;
        for (uint32_t i = 0; i < PLACES; i++)
            used += b.at[i] != 0;
        assert_int_equal(s.used, used);
        assert_int_equal(s.lost, b.lost);
        assert_false(s.failed);
    }
    assert_true(s.lost > 1000 && s.back > 1000 && s.refused == 0);
    maq_swap_fini(&s);
}

/* ---- a host that holds everything and costs nothing ---- */

#define BLOCK 32

static void test_everything_is_computed_once(void **state)
{
    (void)state;
    static struct maq_request list[120];
    static uint64_t names[120][8];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    uint64_t draws = 3;
    const struct maq_requests q = shared_requests(list, names, 120, &draws);
    struct maq_serve_options o = {.engine = MAQ_ENGINE_TRTLLM, .blocks = 24}; /* a request or two */
    o.tiers.bytes[MAQ_TIER_HOST] = 1e13;
    o.tiers.host_bps = (double)INFINITY;
    struct maq_serve_result *all = serve(job, &o, &q);
    int64_t found = 0;
    for (uint32_t i = 0; i < q.n; i++) {
        assert_int_equal(all->served[i].cached, seen_before(&q, i));
        found += all->served[i].cached;
    }
    assert_int_equal(found, all->tiers.of[MAQ_TIER_GPU].tokens + all->tiers.of[MAQ_TIER_HOST].tokens);
    assert_true(all->tiers.of[MAQ_TIER_HOST].tokens > found / 4);
    assert_true(all->tiers.of[MAQ_TIER_HOST].evicted == 0 && all->tiers.refused == 0);
    assert_true(all->tiers.stalled_s == 0);
    o.tiers.host_bps = 1e9;
    struct maq_serve_result *slow = serve(job, &o, &q);
    expect_slower(slow, all);
    assert_true(slow->tiers.wait_s > 0 && slow->tiers.stalled_s > 0);
    maq_serve_free(slow);
    /* a host of few places finds less, and loses some */
    o.tiers.bytes[MAQ_TIER_HOST] = 10 * BLOCK * 131072.0;
    struct maq_serve_result *few = serve(job, &o, &q);
    assert_true(few->prefix_hit_rate < all->prefix_hit_rate && few->tiers.of[MAQ_TIER_HOST].evicted > 0);
    maq_serve_free(few);
    maq_serve_free(all);
    maq_job_free(job);
}

/* ---- what an iteration waits for ---- */

#define TEXT 2048u
#define BLOCK_BYTES                                                                                                    \
    (BLOCK * 131072.0) /* of llama-3.1-8b: 32 layers of 8 heads of keys and values, 128 elements each, 2 bytes */

/* A text, one that drives it from the GPU, and the first again; a token out each, so that no block moves for a decode. */
static struct prefills come_back(struct maq_loaded_job *job, double bps, struct maq_serve_result **out)
{
    static const uint64_t names[2][TEXT / UNIT] = {{[0] = 1}, {[0] = 2}};
    const struct maq_request list[3] = {
        {.arrival_s = 0, .prompt = TEXT + 10, .output = 1, .n_prefix = TEXT / UNIT, .prefix = names[0]},
        {.arrival_s = 50, .prompt = TEXT + 10, .output = 1, .n_prefix = TEXT / UNIT, .prefix = names[1]},
        {.arrival_s = 100, .prompt = TEXT + 20, .output = 1, .n_prefix = TEXT / UNIT, .prefix = names[0]}};
    const struct maq_requests q = {.at = list, .n = 3, .prefix_unit = UNIT};
    struct prefills p = {.n = 0};
    struct maq_serve_options o = {
        .engine = MAQ_ENGINE_TRTLLM, .blocks = TEXT / BLOCK + 2, .watch = note_prefill, .watch_user = &p};
    o.tiers.bytes[MAQ_TIER_HOST] = 1e10;
    o.tiers.host_bps = bps;
    *out = serve(job, &o, &q);
    assert_int_equal(p.n, 3);
    return p;
}

static void test_iterations_wait_for_what_they_move(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    const double blocks = TEXT / BLOCK, rates[] = {1e9, 2e10, 1e13};
    struct maq_serve_result *r;
    const struct prefills none = come_back(job, (double)INFINITY, &r);
    assert_true(r->tiers.stalled_s == 0);
    assert_int_equal(r->served[2].cached, TEXT);
    assert_int_equal(r->served[2].loaded, TEXT);
    /* the second drives all of the first out; the third has it back, and drives the second out */
    expect_close(r->tiers.of[MAQ_TIER_HOST].written_bytes, 2 * blocks * BLOCK_BYTES, 1e-12, "moved out");
    expect_close(r->tiers.of[MAQ_TIER_HOST].read_bytes, blocks * BLOCK_BYTES, 1e-12, "moved back");
    maq_serve_free(r);
    for (size_t i = 0; i < MAQ_COUNT(rates); i++) {
        struct prefills p = come_back(job, rates[i], &r);
        for (uint32_t k = 1; k < 3; k++) { /* the GPU is free when they are decided */
            double ready_s = none.at[k].starts_s - none.at[k].decided_s, moves_s = blocks * BLOCK_BYTES / rates[i];
            expect_close(p.at[k].starts_s - p.at[k].decided_s, fmax(ready_s, moves_s), 1e-6, "start");
            expect_close(p.at[k].ends_s - p.at[k].starts_s, none.at[k].ends_s - none.at[k].starts_s, 1e-9, "run");
        }
        maq_serve_free(r);
    }
    maq_job_free(job);
}

/* ---- how many places ---- */

static void test_sizes(void **state)
{
    (void)state;
    const struct maq_request one = {.prompt = 10, .output = 1};
    const struct maq_requests q = {.at = &one, .n = 1, .prefix_unit = UNIT};
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", ", tp: 2", 8);
    for (int of_all = 0; of_all < 2; of_all++) {
        struct maq_serve_options o = {.engine = MAQ_ENGINE_TRTLLM, .blocks = 1000};
        *(of_all ? &o.tiers.bytes[MAQ_TIER_HOST] : &o.tiers.host_rank_bytes) = 1e9;
        struct maq_serve_result *r = serve(job, &o, &q);
        double each = of_all ? BLOCK_BYTES : BLOCK_BYTES / 2; /* a GPU has half of a block */
        expect_close(r->tiers.capacity_bytes[MAQ_TIER_HOST], floor(1e9 / each) * BLOCK_BYTES, 1e-12, "host memory");
        maq_serve_free(r);
    }
    maq_job_free(job);
}

/* ---- at once and one by one ---- */

static void test_at_once_is_one_by_one(void **state)
{
    (void)state;
    static struct maq_request list[60];
    static const double sizes[] = {5e7, 1e9, 1e10};
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    int64_t loaded = 0;
    double stalled = 0;
    for (uint64_t seed = 1; seed <= 100; seed++) {
        uint64_t draws = seed;
        struct maq_serve_options o = draw_options(&draws, MAQ_ENGINE_TRTLLM);
        const struct maq_requests q = draw_requests(list, draw(&draws, 1, 60), &draws);
        o.no_prefix_caching = false;
        o.blocks = o.blocks > 0 ? draw(&draws, 160, 300) : 0;
        o.block_size = BLOCK;
        o.chunked_prefill = true;
        o.max_utilization = seed % 2 == 1;
        o.tiers.bytes[MAQ_TIER_HOST] = sizes[draw(&draws, 0, 2)];
        o.tiers.host_bps = draw(&draws, 0, 1) ? 0 : 2e9;
        struct maq_serve_result *a = serve_both_ways(NULL, job, o, &q, 0);
        loaded += a->tiers.of[MAQ_TIER_HOST].tokens;
        stalled += a->tiers.stalled_s;
        maq_serve_free(a);
    }
    print_message("%lld tokens loaded, iterations waited %.3f s\n", (long long)loaded, stalled);
    assert_true(loaded > 3000 && stalled > 0.1);
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queue_against_a_list),
        cmocka_unit_test(test_everything_is_computed_once),
        cmocka_unit_test(test_iterations_wait_for_what_they_move),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_at_once_is_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
