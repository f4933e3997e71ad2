/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_hicache.c - copies in host memory of SGLang's tree of prefixes: what they hold, when they are over, and what waits for them. That it is decided
 * as SGLang does is the business of test_validate_schedule.c.
 *
 *   - nothing is lost or twice there: after every iteration of random schedules, whose copies end by chance
 *   - a host that holds everything and costs nothing: each beginning is computed once, which is counted without the engine
 *   - an iteration beside a load lasts as long as its closed form says; an eviction that waits for its copy, as long as the copy
 *   - how much of it there is, in each of the words in which it is asked for
 *   - iterations at once have the outcome of one by one, to the bit
 *
 * maq-test: long
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "serve/sched/sglang.h"
#include "tier_jobs.h"

/* ---- conservation ---- */

static void count_node(const struct maq_radix_tree *t, uint32_t node, int64_t *gpu, int64_t *host)
{
    const struct maq_radix_node *n = &t->at[node];
    int64_t tokens = n->end - n->begin;
    *gpu += n->on_gpu ? tokens : 0;
    *host += n->on_host ? tokens : 0;
    assert_true(node == MAQ_RADIX_ROOT || n->on_gpu || n->on_host);
    for (uint32_t c = n->child; c != MAQ_RADIX_NONE; c = t->at[c].next) {
        assert_true(n->on_gpu || !t->at[c].on_gpu); /* what is on the GPU goes before what is not */
        count_node(t, c, gpu, host);
    }
}

static void expect_conserved(const struct maq_sglang *s)
{
    int64_t gpu = 0, host = 0, beyond = 0;
    count_node(&s->tree, MAQ_RADIX_ROOT, &gpu, &host);
    for (uint32_t i = 0; i < s->n_slots; i++)
        if (s->at[i].status != MAQ_SGLANG_FREE && s->at[i].held > 0)
            beyond += maq_sglang_pages(s, s->at[i].held) - s->at[i].tree_owns;
    assert_int_equal(gpu, s->tree.tokens);
    assert_int_equal(gpu + beyond + s->available, s->knobs.tokens);
    assert_int_equal(host, s->tree.host->capacity - s->tree.host->available);
    assert_true(s->tree.host->available >= 0);
}

struct counted {
    int64_t loaded, written, written_back, given_up;
};

/* Tokens of copies under way and over, by chance the first ones. */
static void end_copies(struct maq_sglang *s, uint64_t *draws, uint32_t patience, struct counted *c)
{
    struct maq_radix_host *h = s->tree.host;
    while (h->writes.n_together > 0 && draw(draws, 0, patience) == 0) {
        c->written += h->writes.together[0].tokens;
        maq_radix_host_written(&s->tree);
    }
    while (h->loads.n_together > 0 && draw(draws, 0, patience) == 0) {
        c->loaded += h->loads.together[0].tokens;
        maq_radix_host_loaded(&s->tree);
    }
}

#define MOST_REQUESTS 60u

static void run_schedule(uint64_t seed, struct counted *counted)
{
    static const uint64_t names[3][6] = {{1, 2, 3, 4, 5, 6}, {1, 2, 9, 9, 9, 9}, {7, 7, 7, 7, 7, 7}};
    uint64_t draws = seed;
    const int32_t page = draw(&draws, 0, 1) ? 1 : 8;
    const struct maq_sglang_knobs knobs = {.tokens = (int64_t)draw(&draws, 90, 200) * 8,
                                           .host_tokens = (int64_t)draw(&draws, 10, 400) * 8,
                                           .page = page,
                                           .max_running = (int32_t)draw(&draws, 2, 10),
                                           .max_prefill = 512,
                                           .chunk = draw(&draws, 0, 1) ? 128 : 0,
                                           .conservativeness = draw(&draws, 0, 1) ? 1 : 0.1,
                                           .eviction = (uint8_t)draw(&draws, 0, MAQ_RADIX_EVICTIONS - 1),
                                           .policy = (uint8_t)draw(&draws, 0, MAQ_SGLANG_POLICIES - 1),
                                           .hicache = (uint8_t)draw(&draws, 0, MAQ_HICACHE_POLICIES - 1),
                                           .caching = true};
    uint32_t patience = draw(&draws, 0, 6), came = 0, ended = 0, steps = 0;
    struct maq_iteration it = {0};
    struct maq_scheduler *base;
    int64_t loads = 0;
    assert_int_equal(maq_sglang_new(&base, &knobs), MAQ_OK);
    struct maq_sglang *s = (struct maq_sglang *)base;
    while (ended < MOST_REQUESTS) {
        if (came < MOST_REQUESTS && draw(&draws, 0, 3) == 0) {
            uint32_t prefix = draw(&draws, 0, 6), own = draw(&draws, 1, 100);
            const struct maq_scheduler_request q = {
                .prompt = 48 * prefix + own,
                .output = draw(&draws, 1, 60),
                .order = came,
                .content = {.prefix = names[draw(&draws, 0, 2)], .n_prefix = prefix, .unit = 48, .own = came}};
            assert_int_not_equal(base->ops->add(base, &q), MAQ_NO_SLOT);
            came++;
        }
        end_copies(s, &draws, patience, counted);
        base->ops->decide(base, &it);
        for (uint32_t i = 0; i < it.n; i++)
            loads += it.scheduled[i].loaded;
        expect_conserved(s);
        if (it.n > 0)
            base->ops->end(base, &it, NULL);
        ended += it.n > 0 ? it.n_finished : 0;
        expect_conserved(s);
        assert_false(base->failed);
        if (++steps > 100000)
            fail_msg("seed %llu does not end", (unsigned long long)seed);
    }
    maq_radix_host_begin_writes(&s->tree);
    end_copies(s, &draws, 0, counted);
    assert_int_equal(s->tree.host->writes.n + s->tree.host->loads.n, 0);
    assert_int_equal(s->tree.locked, 0);
    counted->written_back += s->tree.host->written_back;
    counted->given_up += s->tree.host->given_up;
    assert_true(loads >= 0);
    maq_iteration_fini(&it);
    base->ops->fini(base);
}

static void test_nothing_is_lost(void **state)
{
    (void)state;
    struct counted c = {0};
    for (uint64_t seed = 1; seed <= 90; seed++)
        run_schedule(seed, &c);
    print_message("tokens: %lld written, %lld written as they were evicted, %lld loaded, %lld given up\n",
                  (long long)c.written, (long long)c.written_back, (long long)c.loaded, (long long)c.given_up);
    assert_true(c.loaded > 10000 && c.written > 100000 && c.written_back > 10000 && c.given_up > 50000);
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
    for (int policy = 0; policy < MAQ_HICACHE_POLICIES; policy++) {
        struct maq_serve_options o = {.engine = MAQ_ENGINE_SGLANG, .blocks = 760}; /* a request or two */
        o.tiers.bytes[MAQ_TIER_HOST] = 1e13;
        o.tiers.host_bps = (double)INFINITY;
        o.tiers.write_policy = (uint8_t)policy;
        struct maq_serve_result *all = serve(job, &o, &q);
        int64_t found = 0;
        for (uint32_t i = 0; i < q.n; i++) {
            if (policy == MAQ_HICACHE_WRITE_THROUGH_SELECTIVE) /* what the GPU lost before it came twice is not there */
                assert_true(all->served[i].cached <= seen_before(&q, i));
            else
                assert_int_equal(all->served[i].cached, seen_before(&q, i));
            found += all->served[i].cached;
        }
        assert_int_equal(found, all->tiers.of[MAQ_TIER_GPU].tokens + all->tiers.of[MAQ_TIER_HOST].tokens);
        assert_true(policy == MAQ_HICACHE_WRITE_THROUGH_SELECTIVE || all->tiers.of[MAQ_TIER_HOST].tokens > found / 4);
        assert_true(all->tiers.of[MAQ_TIER_HOST].evicted == 0);
        /* a link of 1 GB/s finds as much, and nobody is served before */
        o.tiers.host_bps = 1e9;
        struct maq_serve_result *slow = serve(job, &o, &q);
        expect_slower(slow, all);
        assert_true(slow->tiers.wait_s > all->tiers.wait_s || all->tiers.loaded == 0);
        maq_serve_free(slow);
        maq_serve_free(all);
    }
    maq_job_free(job);
}

/* ---- what waits, and how long ---- */

#define TEXT 2048u
#define TOKEN_BYTES 131072.0 /* of llama-3.1-8b: 32 layers of 8 heads of keys and values, 128 elements each, 2 bytes */

/* A text, one that drives it from the GPU, and the first again with `own` more tokens; two tokens out each. */
static struct prefills come_back(struct maq_loaded_job *job, double bps, enum maq_hicache_policy policy, uint32_t own,
                                 struct maq_serve_result **out)
{
    static const uint64_t names[2][TEXT / UNIT] = {{[0] = 1}, {[0] = 2}};
    const struct maq_request list[3] = {
        {.arrival_s = 0, .prompt = TEXT + 1, .output = 2, .n_prefix = TEXT / UNIT, .prefix = names[0]},
        {.arrival_s = 50, .prompt = TEXT + 1, .output = 2, .n_prefix = TEXT / UNIT, .prefix = names[1]},
        {.arrival_s = 100, .prompt = TEXT + own, .output = 2, .n_prefix = TEXT / UNIT, .prefix = names[0]}};
    const struct maq_requests q = {.at = list, .n = 3, .prefix_unit = UNIT};
    struct prefills p = {.n = 0};
    struct maq_serve_options o = {
        .engine = MAQ_ENGINE_SGLANG, .blocks = TEXT + 600, .watch = note_prefill, .watch_user = &p};
    o.tiers.bytes[MAQ_TIER_HOST] = 1e10;
    o.tiers.host_bps = bps;
    o.tiers.write_policy = (uint8_t)policy;
    *out = serve(job, &o, &q);
    assert_int_equal(p.n, 3);
    assert_int_equal((*out)->served[2].cached, TEXT);
    assert_int_equal((*out)->served[2].loaded, TEXT);
    return p;
}

static void test_layers_wait_for_their_part(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    static const double rates[] = {1e9, 1e10, 3e10, 1e11, 1e13};
    static const uint32_t own[] = {20, 500};
    uint32_t by_load = 0, by_work = 0;
    for (size_t k = 0; k < MAQ_COUNT(own); k++) {
        struct maq_serve_result *r;
        struct prefills free_link = come_back(job, (double)INFINITY, MAQ_HICACHE_WRITE_THROUGH, own[k], &r);
        double runs_s = free_link.at[2].ends_s - free_link.at[2].starts_s;
        assert_true(r->served[2].load_s == 0);
        maq_serve_free(r);
        for (size_t i = 0; i < MAQ_COUNT(rates); i++) {
            struct prefills p = come_back(job, rates[i], MAQ_HICACHE_WRITE_THROUGH, own[k], &r);
            double takes_s = TEXT * TOKEN_BYTES / rates[i], from_s = p.at[2].decided_s, layers = 32,
                   alone_s = p.at[2].starts_s + runs_s,
                   want_s = fmax(alone_s, fmax(from_s + takes_s / layers + runs_s, from_s + takes_s + runs_s / layers));
            expect_close(p.at[2].ends_s - p.at[2].starts_s, want_s - p.at[2].starts_s, 1e-9, "beside a load");
            expect_close(r->served[2].load_s, want_s - alone_s, 1e-6, "what it waits");
            expect_close(r->tiers.of[MAQ_TIER_HOST].read_bytes, TEXT * TOKEN_BYTES, 1e-12, "bytes read");
            by_load += takes_s > runs_s;
            by_work += takes_s < runs_s;
            maq_serve_free(r);
        }
    }
    assert_true(by_load > 0 && by_work > 0);
    maq_job_free(job);
}

/* The second text drives the first from the GPU: its prefill is decided when that is copied. */
static void test_an_eviction_waits_for_its_copy(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_serve_result *free_of, *slow_of;
    struct prefills at_once = come_back(job, (double)INFINITY, MAQ_HICACHE_WRITE_BACK, 20, &free_of),
                    slow = come_back(job, 1e9, MAQ_HICACHE_WRITE_BACK, 20, &slow_of);
    double later_s = slow.at[1].starts_s - at_once.at[1].starts_s,
           all_s = slow_of->tiers.of[MAQ_TIER_HOST].written_bytes / 1e9;
    assert_true(free_of->tiers.stalled_s == 0);
    assert_true(slow_of->tiers.of[MAQ_TIER_HOST].written_bytes >= 2 * TEXT * TOKEN_BYTES); /* both texts, in turn */
    expect_close(slow_of->tiers.stalled_s, all_s, 1e-9, "copies that are waited for");
    assert_true(later_s > 0.4 * all_s && later_s < all_s);
    maq_serve_free(free_of);
    maq_serve_free(slow_of);
    maq_job_free(job);
}

/* ---- how much there is ---- */

/* Two GPUs of a node of which it is said how much memory it has. */
static struct maq_loaded_job *load_node(void)
{
    static const char text[] =
        "{model: llama-3.1-8b, cluster: {device: h100-sxm, nodes: 1, host_memory: 13 GiB}, plan: "
        "{micro_batch_size: 1, tp: 2}, workload: {global_batch_size: 8}}";
    struct maq_loaded_job *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_job_parse(&box, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return box;
}

static double capacity(struct maq_loaded_job *job, const struct maq_tier_options *t)
{
    const struct maq_request one = {.prompt = 10, .output = 1};
    const struct maq_requests q = {.at = &one, .n = 1, .prefix_unit = UNIT};
    struct maq_serve_options o = {.engine = MAQ_ENGINE_SGLANG, .blocks = 1000, .block_size = 32, .tiers = *t};
    struct maq_serve_result *r = serve(job, &o, &q);
    double bytes = r->tiers.known ? r->tiers.capacity_bytes[MAQ_TIER_HOST] : 0;
    maq_serve_free(r);
    return bytes;
}

static void test_sizes_are_sglangs(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", ", tp: 2", 8), *said = load_node();
    const double page = 32 * TOKEN_BYTES, gib = 1073741824.0, tokens = 999 * 32; /* a page is nobody's */
    /* GB of each GPU, which has half of a token: whole pages, and one more */
    expect_close(capacity(job, &(struct maq_tier_options){.host_rank_bytes = 1e9}),
                 page * (floor(floor(1e9 / (TOKEN_BYTES / 2)) / 32) + 1), 1e-12, "GB of each GPU");
    expect_close(capacity(job, &(struct maq_tier_options){.host_ratio = 1.5}), page * (floor(tokens * 1.5 / 32) + 1),
                 1e-12, "a ratio");
    expect_close(capacity(job, &(struct maq_tier_options){.host_share = 0.8}), page * (2 * 999 + 1), 1e-12,
                 "the default");
    expect_close(capacity(job, &(struct maq_tier_options){.bytes[MAQ_TIER_HOST] = 10.5 * page, .host_ratio = 2}),
                 page * 10, 1e-12, "bytes of all");
    /* of 13 GiB 3 are shared by two GPUs, 80 % of which, less 5 %, for half a token each */
    double ratio = 3 * gib / 2 * 0.8 * 0.95 / (tokens * TOKEN_BYTES / 2);
    assert_true(ratio < 2);
    expect_close(capacity(said, &(struct maq_tier_options){.host_share = 0.8}),
                 page * (floor(floor(tokens * ratio) / 32) + 1), 1e-12, "what the node has");
    assert_true(capacity(job, &(struct maq_tier_options){.host_share = 0}) == 0);
    maq_job_free(job);
    maq_job_free(said);
}

/* ---- at once and one by one ---- */

static void draw_tiers(struct maq_tier_options *t, uint64_t *draws)
{
    static const double ratios[] = {0.2, 1.2, 4};
    *t = (struct maq_tier_options){.write_policy = (uint8_t)draw(draws, 0, MAQ_HICACHE_POLICIES - 1)};
    t->host_ratio = ratios[draw(draws, 0, 2)];
    t->host_bps = draw(draws, 0, 1) ? 0 : draw(draws, 0, 1) ? 2e9 : 2e8;
}

static void test_at_once_is_one_by_one(void **state)
{
    (void)state;
    static struct maq_request list[60];
    struct maq_loaded_job *jobs[] = {load("llama-3.1-8b", "h100-sxm:8", "", 8),
                                     load("llama-3.1-8b", "h100-sxm:8", ", tp: 2", 8)};
    int64_t loaded = 0;
    double stalled = 0;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        uint64_t draws = seed;
        struct maq_serve_options o = draw_options(&draws, MAQ_ENGINE_SGLANG);
        o.no_prefix_caching = false;
        draw_tiers(&o.tiers, &draws);
        const struct maq_requests q = draw_requests(list, draw(&draws, 1, 60), &draws);
        struct maq_serve_result *a = serve_both_ways(NULL, jobs[seed % 2], o, &q, 0);
        loaded += a->tiers.of[MAQ_TIER_HOST].tokens;
        stalled += a->tiers.stalled_s;
        maq_serve_free(a);
    }
    print_message("%lld tokens loaded, %.3f s waited for evictions\n", (long long)loaded, stalled);
    assert_true(loaded > 5000 && stalled > 0.1);
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++)
        maq_job_free(jobs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_is_lost),
        cmocka_unit_test(test_everything_is_computed_once),
        cmocka_unit_test(test_layers_wait_for_their_part),
        cmocka_unit_test(test_an_eviction_waits_for_its_copy),
        cmocka_unit_test(test_sizes_are_sglangs),
        cmocka_unit_test(test_at_once_is_one_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
