/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_tier_waits.c - requests that wait for chunks from behind host memory, which has room for all of them, or not.
 *
 *   - what is there at each look up, as vLLM 0.33.0's own classes have it; who never has all stops having some brought
 *   - runs that would never end say so; with more host memory they end
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "maquette/serve_fleet.h"
#include "serve/codes.h"
#include "serve/kv/offload.h"
#include "serve_jobs.h"

/* ---- what is there at each look up ---- */

#define ROOM 47u
#define BLOCK 16
#define MOST 96u
#define LOOKS 6u

struct text {
    uint64_t hashes[MOST];
    uint32_t blocks[MOST], n, user;
};

static struct maq_offload_view view_of(const struct text *t)
{
    return (struct maq_offload_view){.hashes = t->hashes, .n_hashes = t->n, .blocks = t->blocks, .n_blocks = t->n};
}

static void come(struct maq_offload *o, struct text *t, uint64_t id, uint64_t first_hash, uint32_t n)
{
    t->n = n;
    for (uint32_t i = 0; i < n; i++) {
        t->hashes[i] = first_hash + i;
        t->blocks[i] = i;
    }
    t->user = maq_offload_begin(o, id, (uint32_t)id);
}

/* All that has begun is over, and what follows from it. */
static void move_all(struct maq_offload *o)
{
    for (uint32_t i = 0; i < o->n_begun; i++)
        (void)maq_offload_done(o, o->begun[i]);
    o->n_begun = 0;
}

static void compute(struct maq_offload *o, const struct text *t, uint32_t chunks)
{
    const struct maq_offload_view view = view_of(t);
    maq_offload_open(o);
    maq_offload_store(o, t->user, &view, (int64_t)chunks * BLOCK);
    maq_offload_close(o, true);
    move_all(o);
}

static void finish(struct maq_offload *o, const struct text *t)
{
    const struct maq_offload_view view = view_of(t);
    maq_offload_finish(o, t->user, &view, (int64_t)t->n * BLOCK);
    maq_offload_open(o);
    maq_offload_close(o, false);
    move_all(o);
}

static uint32_t ready(const struct maq_offload *o, const struct text *t, uint32_t n)
{
    uint32_t found = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = maq_tier_find(&o->host, t->hashes[i]);
        found += c != MAQ_TIER_NONE && maq_tier_is_ready(&o->host, c);
    }
    return found;
}

struct look_case {
    enum maq_tier_policy policy;
    uint32_t chunks, others; /* of the text; requests of ten chunks each that end before it is looked up */
    bool before; /* the request computed all of it, and one chunk more, before those others; then it lost its blocks */
    uint32_t ready[LOOKS]; /* chunks in host memory after each look up, before what it has brought is there */
    uint32_t looks;        /* that it takes; 0: it never has all */
};

/* The text was computed and has ended; the others push out some of it, and a request of the same text is looked up. */
static void expect_looks(const struct look_case *c)
{
    struct maq_offload o;
    static struct text first, again, other;
    const struct maq_offload_options options = {
        .chunks = {[MAQ_TIER_HOST] = ROOM, [MAQ_TIER_SSD] = 10000}, .policy = c->policy, .chunk_blocks = 1};
    assert_int_equal(maq_offload_init(&o, &options, MOST, BLOCK, true), MAQ_OK);
    come(&o, &first, 1, 1, c->chunks);
    for (uint32_t i = 0; i < c->chunks; i += 8)
        compute(&o, &first, i + 8);
    finish(&o, &first);
    come(&o, &again, 2, 1, c->chunks);
    if (c->before) {
        again.hashes[again.n++] = 1000000;
        compute(&o, &again, again.n);
    }
    for (uint32_t i = 0; i < c->others; i++) {
        come(&o, &other, 3 + i, 1000 + 10 * i, 10);
        compute(&o, &other, 10);
        finish(&o, &other);
    }
    const struct maq_offload_view view = view_of(&again);
    int64_t found = MAQ_OFFLOAD_LATER, tokens = (int64_t)c->chunks * BLOCK;
    for (uint32_t look = 0; look < 1000 && found == MAQ_OFFLOAD_LATER; look++) {
        maq_offload_open(&o);
        found = maq_offload_look(&o, again.user, &view, 0, tokens);
        if (look < LOOKS)
            assert_int_equal(ready(&o, &again, c->chunks), c->ready[look]);
        maq_offload_close(&o, false);
        assert_true(look < 999 || o.n_begun == 0); /* vLLM brings them for ever */
        move_all(&o);
        assert_true(found == MAQ_OFFLOAD_LATER || look + 1 == c->looks);
    }
    assert_int_equal(found, c->looks > 0 ? tokens : MAQ_OFFLOAD_LATER);
    assert_int_equal(o.in_vain, c->looks == 0);
    if (o.in_vain) { /* until something else happens */
        assert_int_equal(o.in_vain_user, again.user);
        come(&o, &other, 99, 5000, 10);
        assert_int_equal(maq_offload_look(&o, again.user, &view, 0, tokens), MAQ_OFFLOAD_LATER);
        assert_true(o.n_begun > 0);
    }
    maq_offload_fini(&o);
}

/* Of TieringOffloadingManager with CPUPrimaryTierOffloadingManager and ExampleSecondaryTierManager (vLLM 0.33.0), driven so. */
static void test_looks_are_those_of_vllm(void **state)
{
    (void)state;
    static const struct look_case cases[] = {
        {MAQ_TIER_LRU, 33, 4, false, {0, 26, 33}, 3},
        {MAQ_TIER_LRU, 33, 4, true, {0, 12, 12, 12, 12, 12}, 0}, /* its place is older than those of the others */
        {MAQ_TIER_LRU, 80, 0, false, {6, 0, 0, 0, 0, 0}, 0},     /* more than there is room for */
        {MAQ_TIER_ARC, 33, 4, false, {0, 26, 33}, 3},
        {MAQ_TIER_ARC, 33, 4, true, {0, 27, 33}, 3},
        {MAQ_TIER_ARC, 80, 0, false, {0, 14, 0, 14, 0, 14}, 0},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++)
        expect_looks(&cases[i]);
}

/* ---- runs ---- */

/* A run that hangs is ended by the alarm, which fails. */
static enum maq_status run(struct maq_serve_result **out, const struct maq_fleet_member *m,
                           const struct maq_requests *q, uint16_t *code)
{
    struct maq_diag *diag = maq_diag_new();
    const struct maq_fleet fleet = {.members = m, .n_members = 1, .router = MAQ_ROUTER_ROUND_ROBIN};
    *out = NULL;
    alarm(60);
    enum maq_status status = maq_fleet_run(out, &fleet, q, diag);
    alarm(0);
    *code = maq_diag_count(diag) > 0 ? maq_diag_at(diag, maq_diag_count(diag) - 1)->code : 0;
    maq_diag_free(diag);
    return status;
}

#define UNIT 256u
#define REPLICAS 2u

/* To each replica a text of 64 chunks, another that takes the GPU's blocks, and the first again: on a drive, behind host memory. */
static void expect_text_again(const struct maq_loaded_job *job, struct maq_serve_options o, uint32_t replicas,
                              bool ends)
{
    static const uint64_t names[2][4] = {{1, 2, 3, 4}, {5, 6, 7, 8}};
    struct maq_request list[3 * REPLICAS];
    const struct maq_requests q = {.at = list, .n = 3 * replicas, .prefix_unit = UNIT};
    const struct maq_fleet_member m = {.job = maq_job_get(job), .options = &o, .replicas = replicas};
    for (uint32_t i = 0; i < q.n; i++) {
        list[i] = (struct maq_request){.arrival_s = 10.0 * i, .prompt = 4 * UNIT + 10, .output = 4, .n_prefix = 4};
        list[i].prefix = names[i / replicas % 2];
    }
    struct maq_serve_result *r;
    uint16_t code;
    assert_int_equal(run(&r, &m, &q, &code), ends ? MAQ_OK : MAQ_NO);
    assert_int_equal(code, ends ? 0 : MAQ_CODE_SERVE_IN_VAIN);
    for (uint32_t i = 2 * replicas; ends && i < q.n; i++)
        assert_int_equal(r->served[i].cached, 4 * UNIT);
    maq_serve_free(r);
}

static void test_a_text_longer_than_host_memory(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:8", "", 8);
    struct maq_serve_options o = {.blocks = 80, .max_num_batched_tokens = UNIT};
    o.tiers.bytes[MAQ_TIER_SSD] = 1e13;
    o.tiers.ssd_read_bps = o.tiers.ssd_write_bps = 1e10;
    for (uint32_t i = 0; i < 8; i++) {
        bool ends = i & 1;
        o.tiers.policy = i & 2 ? MAQ_TIER_ARC : MAQ_TIER_LRU;
        o.tiers.bytes[MAQ_TIER_HOST] = (ends ? 64 : 40) * BLOCK * 131072.0; /* bytes of a token */
        expect_text_again(job, o, i & 4 ? REPLICAS : 1, ends);
    }
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_looks_are_those_of_vllm),
        cmocka_unit_test(test_a_text_longer_than_host_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
