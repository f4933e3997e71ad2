/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_tiers.c - keys and values behind the GPU's blocks: what a tier holds and forgets, and what that does to requests.
 *
 *   - LRU against a list of all uses that is gone through anew for each eviction
 *   - nothing is lost or twice there: after every iteration of random schedules, and at their end nothing is under way
 *   - a host that holds everything and costs nothing: each block of a shared beginning is computed once, which is counted without the engine
 *   - slower links make no request earlier, where requests come one at a time; nothing is loaded where there is no room for a chunk's use
 *   - iterations at once have the outcome of one by one, to the bit
 *   - replicas of a fleet find in a pool what another has computed
 *
 * maq-test: long
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
#include "effort.h"
#include "maquette/serve_fleet.h"
#include "serve/sched/vllm.h"
#include "serve_blocks.h"
#include "tier_jobs.h"

/* ---- LRU against a list ---- */

#define KEYS 60u
#define CAPACITY 17u
#define USERS 6u

/* The brute force: the time of the last use of each key, 0 = it is not there; who is being written or read cannot go. */
struct brute {
    uint64_t used[KEYS + 1], now;
    int pinned[KEYS + 1];
};

static uint32_t brute_count(const struct brute *b, bool open)
{
    uint32_t n = 0;
    for (uint32_t k = 1; k <= KEYS; k++)
        n += b->used[k] > 0 && (!open || b->pinned[k] == 0);
    return n;
}

/* Makes room for one by forgetting the one that was used longest ago; false: all that there are cannot go. */
static bool brute_put(struct brute *b, uint32_t key)
{
    if (brute_count(b, false) == CAPACITY) {
        uint32_t oldest = 0;
        for (uint32_t k = 1; k <= KEYS; k++)
            if (b->used[k] > 0 && b->pinned[k] == 0 && (oldest == 0 || b->used[k] < b->used[oldest]))
                oldest = k;
        if (oldest == 0)
            return false;
        b->used[oldest] = 0;
    }
    b->used[key] = ++b->now;
    b->pinned[key] = 1; /* it is being written */
    return true;
}

static void test_lru_is_the_longest_unused(void **state)
{
    (void)state;
    struct maq_tier t;
    struct brute b = {.now = 0};
    uint64_t draws = 5, evicted = 0;
    bool written[KEYS + 1] = {false};
    assert_int_equal(maq_tier_init(&t, CAPACITY, MAQ_TIER_LRU), MAQ_OK);
    for (uint32_t i = 0; i < 20000; i++) {
        uint32_t key = draw(&draws, 1, KEYS);
        bool there = b.used[key] > 0;
        assert_int_equal(maq_tier_find(&t, key) != MAQ_TIER_NONE, there);
        switch (draw(&draws, 0, 3)) {
        case 0:
            if (!there) {
                assert_int_equal(maq_tier_put(&t, key), brute_put(&b, key));
                written[key] = false;
            }
            break;
        case 1:
            if (there && !written[key]) {
                maq_tier_written(&t, key);
                written[key] = true;
                b.pinned[key] = 0;
            }
            break;
        case 2:
            maq_tier_use(&t, key);
            if (there)
                b.used[key] = ++b.now;
            break;
        default:
            if (there && written[key] && b.pinned[key] > 0) {
                maq_tier_unpin(&t, key);
                b.pinned[key]--;
            } else if (there && written[key]) {
                maq_tier_pin(&t, key);
                b.pinned[key]++;
            }
        }
        assert_int_equal(t.n, brute_count(&b, false));
        assert_int_equal(t.evictable, brute_count(&b, true));
        for (uint32_t k = 1; k <= KEYS; k++)
            assert_int_equal(maq_tier_find(&t, k) != MAQ_TIER_NONE, b.used[k] > 0);
    }
    evicted = t.evicted;
    assert_true(evicted > 1000);
    maq_tier_fini(&t);
}

/* ---- conservation ---- */

/* Chunks that can be evicted, are read, are written are all there are; no more than there is room for; each where its key says. */
static void expect_tier(const struct maq_tier *t)
{
    int64_t open = 0, writing = 0, all = 0;
    for (uint32_t bucket = 0; bucket <= t->mask; bucket++)
        for (uint32_t c = t->table[bucket]; c != MAQ_TIER_NONE; c = t->at[c].bucket) {
            if (t->at[c].list == MAQ_TIER_GHOST1 || t->at[c].list == MAQ_TIER_GHOST2)
                continue;
            assert_int_equal(maq_tier_find(t, t->at[c].key), c);
            all++;
            open += t->at[c].refs == 0;
            writing += t->at[c].refs < 0;
        }
    assert_int_equal(all, t->n);
    assert_int_equal(open, t->evictable);
    assert_int_equal(writing, t->writing);
    assert_true(t->n <= t->capacity);
    assert_true(t->policy == MAQ_TIER_ARC || t->n_heap == (uint32_t)t->evictable);
}

/* What is pinned is so by as many transfers as read it, and what is written by one. */
static void expect_moves(const struct maq_offload *o)
{
    uint64_t reads = 0, writes = 0;
    int64_t refs = 0;
    for (uint32_t j = 0; j < o->n_jobs; j++) {
        const struct maq_offload_job *job = &o->jobs[j];
        bool from_host = job->move == MAQ_MOVE_LOAD || job->move == MAQ_MOVE_CASCADE;
        reads += job->live && from_host ? job->n : 0;
        writes += job->live && !from_host ? job->n : 0;
    }
    for (uint32_t bucket = 0; bucket <= o->host.mask; bucket++)
        for (uint32_t c = o->host.table[bucket]; c != MAQ_TIER_NONE; c = o->host.at[c].bucket)
            if (o->host.at[c].list != MAQ_TIER_GHOST1 && o->host.at[c].list != MAQ_TIER_GHOST2)
                refs += o->host.at[c].refs > 0 ? o->host.at[c].refs : 0;
    assert_int_equal(refs, reads);
    assert_int_equal(o->host.writing, writes);
}

#define MOST_REQUESTS 40u

struct schedule {
    struct maq_vllm s;
    struct maq_iteration at[2];
    uint32_t under_way[4096], n; /* transfers */
    uint64_t loads, flushes, cascades, promotions;
};

static void expect_all(struct schedule *x)
{
    struct maq_vllm *s = &x->s;
    const struct maq_kv_request *held[2 * MOST_REQUESTS + 8];
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_slots; i++)
        held[n++] = s->at[i].status == MAQ_VLLM_FREE ? NULL : &s->at[i].kv;
    for (uint32_t i = 0; i < s->n_deferred; i++)
        held[n++] = &s->deferred[i].kv;
    expect_conserved(&s->kv, held, n);
    expect_ring(&s->kv.pool);
    expect_tier(&s->offload->host);
    expect_tier(&s->offload->ssd);
    expect_moves(s->offload);
}

/* Transfers that began are under way; those that are over by chance, or because an iteration waits for them. */
static void take_begun(struct schedule *x)
{
    struct maq_offload *o = x->s.offload;
    for (uint32_t i = 0; i < o->n_begun; i++) {
        const struct maq_offload_job *job = &o->jobs[o->begun[i]];
        x->loads += job->move == MAQ_MOVE_LOAD;
        x->cascades += job->move == MAQ_MOVE_CASCADE;
        x->promotions += job->move == MAQ_MOVE_PROMOTE;
        assert_true(x->n < MAQ_COUNT(x->under_way));
        x->under_way[x->n++] = o->begun[i];
    }
    o->n_begun = 0;
}

static void move(struct schedule *x, uint64_t *draws, uint32_t patience)
{
    uint32_t kept = 0, n = x->n;
    for (uint32_t i = 0; i < n; i++) {
        bool awaited = x->s.offload->jobs[x->under_way[i]].awaited == x->s.offload->step;
        x->flushes += awaited;
        if (awaited || draw(draws, 0, patience) == 0)
            maq_vllm_moved(&x->s, x->under_way[i]);
        else
            x->under_way[kept++] = x->under_way[i];
    }
    x->n = kept;
    take_begun(x);
}

static void run_schedule(struct schedule *x, uint64_t seed)
{
    static const uint64_t names[] = {7, 8, 9, 10, 11, 12};
    uint64_t draws = seed;
    const struct maq_kv_group group = {.kind = MAQ_KV_FULL, .block_size = 16};
    const struct maq_kv_options kv = {.groups = &group,
                                      .n_groups = 1,
                                      .blocks = draw(&draws, 40, 90),
                                      .caching = draw(&draws, 0, 4) > 0,
                                      .max_len = 600,
                                      .in_flight = 256};
    const struct maq_vllm_knobs knobs = {.max_num_seqs = (int32_t)draw(&draws, 2, 12),
                                         .max_num_batched_tokens = 128,
                                         .max_model_len = 600,
                                         .chunked_prefill = true,
                                         .reserve_full_isl = draw(&draws, 0, 1) > 0};
    const struct maq_offload_options o = {
        .chunks = {[MAQ_TIER_HOST] = draw(&draws, 4, 200), [MAQ_TIER_SSD] = draw(&draws, 0, 2) * 150},
        .policy = draw(&draws, 0, 1) ? MAQ_TIER_LRU : MAQ_TIER_ARC,
        .chunk_blocks = 1 << draw(&draws, 0, 2),
        .prompt_only = draw(&draws, 0, 3) == 0};
    uint32_t patience = draw(&draws, 0, 6), came = 0, ended = 0, steps = 0;
    assert_int_equal(maq_vllm_init(&x->s, &knobs, &kv), MAQ_OK);
    assert_int_equal(maq_vllm_set_tiers(&x->s, &o), MAQ_OK);
    while (ended < MOST_REQUESTS || x->n > 0 || x->s.offload->n_ended > 0) {
        if (came < MOST_REQUESTS && draw(&draws, 0, 3) == 0) {
            uint32_t prefix = draw(&draws, 0, 5), own = draw(&draws, 1, 120);
            const struct maq_scheduler_request q = {
                .prompt = 48 * prefix + own,
                .output = draw(&draws, 1, 60),
                .arrival = came,
                .order = came,
                .content = {.prefix = names + draw(&draws, 0, 1), .n_prefix = prefix, .unit = 48, .own = came}};
            assert_int_not_equal(maq_vllm_add(&x->s, &q), MAQ_NO_SLOT);
            came++;
        }
        struct maq_iteration *it = &x->at[0];
        maq_vllm_decide(&x->s, it);
        take_begun(x);
        expect_all(x);
        move(x, &draws, patience);
        maq_vllm_end(&x->s, it, NULL);
        ended += it->n_finished;
        expect_all(x);
        assert_false(x->s.base.failed);
        if (++steps > 100000)
            fail_msg("seed %llu does not end", (unsigned long long)seed);
    }
    assert_int_equal(x->s.offload->under_way, 0);
    assert_int_equal(x->s.kv.pool.n_free, x->s.kv.pool.n - 1);
    for (uint32_t u = 0; u < x->s.offload->n_users; u++)
        assert_false(x->s.offload->users[u].used);
    maq_iteration_fini(&x->at[0]);
    maq_vllm_fini(&x->s);
}

static void test_nothing_is_lost(void **state)
{
    (void)state;
    static struct schedule x;
    uint64_t loads = 0, flushes = 0, cascades = 0, promotions = 0;
    for (uint64_t seed = 1; seed <= EFFORT(20, 60, 600); seed++) {
        x = (struct schedule){.n = 0};
        run_schedule(&x, seed);
        loads += x.loads;
        flushes += x.flushes;
        cascades += x.cascades;
        promotions += x.promotions;
    }
    print_message("%llu loads, %llu waits for stores, %llu to and %llu from a drive\n", (unsigned long long)loads,
                  (unsigned long long)flushes, (unsigned long long)cascades, (unsigned long long)promotions);
    assert_true(loads > 50 && flushes > 20 && cascades > 100 && promotions > 20);
}

/* ---- a host that holds everything and costs nothing ---- */

static void test_everything_is_computed_once(void **state)
{
    (void)state;
    static struct maq_request list[120];
    static uint64_t names[120][8];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    uint64_t draws = 3;
    const struct maq_requests q = shared_requests(list, names, 120, &draws);
    struct maq_serve_options o = {.blocks = 48}; /* a request or two */
    o.tiers.bytes[MAQ_TIER_HOST] = 1e13;
    o.tiers.host_bps = (double)INFINITY;
    struct maq_serve_result *all = serve(job, &o, &q);
    int64_t found = 0;
    for (uint32_t i = 0; i < q.n; i++) {
        assert_int_equal(all->served[i].cached, seen_before(&q, i));
        found += all->served[i].cached;
    }
    int64_t counted = all->tiers.of[MAQ_TIER_GPU].tokens + all->tiers.of[MAQ_TIER_HOST].tokens;
    assert_int_equal(found, counted);
    assert_true(all->tiers.of[MAQ_TIER_HOST].tokens > counted / 4);
    assert_true(all->tiers.of[MAQ_TIER_HOST].evicted == 0);
    /* behind a little host memory a drive of the same kind: what the GPU and the host have lost is there */
    o.tiers.bytes[MAQ_TIER_HOST] = 64 * 16 * 131072.0;
    o.tiers.bytes[MAQ_TIER_SSD] = 1e13;
    o.tiers.ssd_read_bps = o.tiers.ssd_write_bps = 1e15;
    struct maq_serve_result *drive = serve(job, &o, &q);
    for (uint32_t i = 0; i < q.n; i++)
        assert_int_equal(drive->served[i].cached, seen_before(&q, i));
    assert_true(drive->tiers.of[MAQ_TIER_SSD].tokens > 0);
    maq_serve_free(drive);
    /* without any of it less is found; with a link of 1 GB/s as much as with a free one, and nobody is served before */
    o.tiers = (struct maq_tier_options){.policy = MAQ_TIER_LRU};
    struct maq_serve_result *none = serve(job, &o, &q);
    assert_false(none->tiers.known);
    assert_true(none->prefix_hit_rate < all->prefix_hit_rate);
    o.tiers.bytes[MAQ_TIER_HOST] = 1e13;
    o.tiers.host_bps = 1e9;
    struct maq_serve_result *slow = serve(job, &o, &q);
    expect_slower(slow, all);
    assert_true(slow->tiers.wait_s > all->tiers.wait_s);
    maq_serve_free(slow);
    maq_serve_free(none);
    maq_serve_free(all);
    maq_job_free(job);
}

/* ---- at once and one by one ---- */

static void draw_tiers(struct maq_tier_options *t, uint64_t *draws)
{
    static const double sizes[] = {1e8, 1e9, 1e10};
    *t = (struct maq_tier_options){.policy = draw(draws, 0, 1) ? MAQ_TIER_LRU : MAQ_TIER_ARC,
                                   .chunk_blocks = 1 << draw(draws, 0, 2),
                                   .prompt_only = draw(draws, 0, 2) == 0};
    t->bytes[MAQ_TIER_HOST] = sizes[draw(draws, 0, 2)];
    t->host_bps = draw(draws, 0, 1) ? 0 : 2e9;
    if (draw(draws, 0, 1))
        t->bytes[MAQ_TIER_SSD] = 1e11;
    t->ssd_read_bps = t->ssd_write_bps = draw(draws, 0, 1) ? 1e10 : 1e9;
    if (draw(draws, 0, 1))
        t->bytes[MAQ_TIER_REMOTE] = 1e11;
    t->remote_bps = 5e9;
}

static void test_at_once_is_one_by_one(void **state)
{
    (void)state;
    static struct maq_request list[60];
    struct maq_loaded_job *jobs[] = {load("llama-3.1-8b", "h100-sxm:8", "", 8),
                                     load("llama-3.1-8b", "h100-sxm:8", ", tp: 2", 8)};
    int64_t loaded = 0;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t draws = seed;
        struct maq_serve_options o = {.blocks = draw(&draws, 330, 900),
                                      .async_scheduling = draw(&draws, 0, 1) ? MAQ_ON : MAQ_OFF,
                                      .max_num_seqs = (int32_t)draw(&draws, 2, 64)};
        draw_tiers(&o.tiers, &draws);
        const struct maq_requests q = draw_requests(list, draw(&draws, 1, 60), &draws);
        struct maq_serve_result *a = serve_both_ways(NULL, jobs[seed % 2], o, &q, 0);
        for (int i = MAQ_TIER_HOST; i < MAQ_TIER_COUNT; i++)
            loaded += a->tiers.of[i].tokens;
        maq_serve_free(a);
    }
    print_message("%lld tokens loaded\n", (long long)loaded);
    assert_true(loaded > 5000);
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++)
        maq_job_free(jobs[i]);
}

/* ---- a pool ---- */

static void test_replicas_share_a_pool(void **state)
{
    (void)state;
    static const uint64_t names[] = {1, 2, 3, 4, 5, 6, 7, 8};
    static struct maq_request list[8];
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    for (uint32_t i = 0; i < MAQ_COUNT(list); i++)
        list[i] = (struct maq_request){
            .arrival_s = 5.0 * i, .prompt = 8 * 256 + 100, .output = 4, .n_prefix = 8, .prefix = names};
    const struct maq_requests q = {.at = list, .n = MAQ_COUNT(list), .prefix_unit = 256};
    struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM};
    o.tiers.bytes[MAQ_TIER_HOST] = 1e10;
    const struct maq_fleet_member m = {.job = maq_job_get(job), .options = &o, .replicas = 4};
    const struct maq_fleet fleet = {.members = &m, .n_members = 1, .router = MAQ_ROUTER_ROUND_ROBIN};
    int64_t found[2], each = 8 * 256;
    for (int pool = 0; pool < 2; pool++) {
        struct maq_serve_result *r = NULL;
        struct maq_diag *diag = maq_diag_new();
        o.tiers.bytes[MAQ_TIER_REMOTE] = pool ? 1e11 : 0;
        o.tiers.remote_bps = 1e10;
        if (maq_fleet_run(&r, &fleet, &q, diag) != MAQ_OK)
            fail_msg("%s", maq_diag_format(diag, 0, false));
        found[pool] = r->tiers.of[MAQ_TIER_REMOTE].tokens;
        /* each replica computes the beginning once; with a pool the first one alone does */
        for (uint32_t i = 0; i < q.n; i++)
            assert_int_equal(r->served[i].cached, i >= 4 || (pool && i > 0) ? each : 0);
        maq_serve_free(r);
        maq_diag_free(diag);
    }
    assert_int_equal(found[0], 0);
    assert_int_equal(found[1], 3 * each);
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lru_is_the_longest_unused),   cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_everything_is_computed_once), cmocka_unit_test(test_at_once_is_one_by_one),
        cmocka_unit_test(test_replicas_share_a_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
