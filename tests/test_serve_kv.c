/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_kv.c - the block pool against a plain list, the KV cache against what its groups ask for.
 *
 * The pool's plain model is an array of free blocks in their order and, for each key, the blocks that got it, first ones first. Of the
 * cache random requests begin, go on, give way and end under all kinds of groups; after each operation blocks are conserved, a request
 * has all that its next token looks at and nothing that it no longer needs, and a prefix that was found is the longest one that brute
 * force finds among the keys of the pool.
 */
#include "effort.h"
#include "serve/kv/content.h"
#include "serve_blocks.h"

#include <stdio.h>

#include "base/check.h"
#include "failing_alloc.h"
#include "random_draws.h"

/* ---- the pool ---- */

#define MOST_BLOCKS 40u
#define KEYS 7u /* of which the first stands for MAQ_KV_OWN */

struct plain_pool {
    uint32_t n, n_free, free[MOST_BLOCKS]; /* front first */
    uint32_t refs[MOST_BLOCKS];
    uint64_t key[MOST_BLOCKS];
    uint32_t marked[KEYS + 1][MOST_BLOCKS], n_marked[KEYS + 1];
};

static void take_from(uint32_t *list, uint32_t *n, uint32_t value)
{
    uint32_t i = 0;
    while (i < *n && list[i] != value)
        i++;
    assert_true(i < *n);
    memmove(&list[i], &list[i + 1], (*n - i - 1) * sizeof *list);
    (*n)--;
}

static uint32_t plain_take(struct plain_pool *p)
{
    uint32_t b = p->free[0];
    take_from(p->free, &p->n_free, b);
    if (p->key[b] > MAQ_KV_OWN)
        take_from(p->marked[p->key[b]], &p->n_marked[p->key[b]], b);
    p->key[b] = 0;
    p->refs[b] = 1;
    return b;
}

/* Blocks without a key to the front, as they are given, those with one to the end. */
static void plain_release(struct plain_pool *p, const uint32_t *blocks, uint32_t n)
{
    uint32_t front = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t b = blocks[i];
        if (b == MAQ_KV_NO_BLOCK || --p->refs[b] > 0)
            continue;
        if (p->key[b]) {
            p->free[p->n_free++] = b;
            continue;
        }
        memmove(&p->free[front + 1], &p->free[front], (p->n_free - front) * sizeof *p->free);
        p->free[front++] = b;
        p->n_free++;
    }
}

static void expect_equal(const struct maq_block_pool *pool, const struct plain_pool *p)
{
    uint32_t b = behind(pool, pool->n);
    expect_ring(pool);
    assert_int_equal(pool->n_free, p->n_free);
    for (uint32_t i = 0; i < p->n_free; i++, b = behind(pool, b))
        assert_int_equal(b, p->free[i]);
    for (uint64_t key = MAQ_KV_OWN + 1; key <= KEYS; key++)
        assert_int_equal(maq_block_pool_find(pool, key), p->n_marked[key] ? p->marked[key][0] : MAQ_KV_NO_BLOCK);
    for (uint32_t i = 1; i < p->n; i++) {
        assert_int_equal(pool->at[i].refs, p->refs[i]);
        assert_true(pool->at[i].key == p->key[i]);
    }
}

static void random_release(struct maq_block_pool *pool, struct plain_pool *p, uint64_t *draws)
{
    uint32_t list[MOST_BLOCKS], n = 0;
    for (uint32_t b = 1; b < p->n; b++)
        if (p->refs[b] > 0 && draw(draws, 0, 2) == 0)
            list[n++] = b;
    for (uint32_t i = n; i > 1; i--) { /* in any order */
        uint32_t k = draw(draws, 0, i - 1), b = list[i - 1];
        list[i - 1] = list[k];
        list[k] = b;
    }
    if (n > 0 && draw(draws, 0, 3) == 0)
        list[draw(draws, 0, n - 1)] = MAQ_KV_NO_BLOCK; /* passed over; that block stays held */
    plain_release(p, list, n);
    maq_block_pool_release(pool, list, n);
}

static void one_pool(uint64_t seed)
{
    uint64_t draws = seed;
    struct maq_block_pool pool;
    struct plain_pool p = {.n = draw(&draws, 1, MOST_BLOCKS)};
    assert_int_equal(maq_block_pool_init(&pool, p.n, true), MAQ_OK);
    for (uint32_t b = 1; b < p.n; b++)
        p.free[p.n_free++] = b;
    for (int i = 0; i < 600; i++) {
        uint32_t b = draw(&draws, 0, p.n - 1);
        uint64_t key = draw(&draws, 1, KEYS);
        switch (draw(&draws, 0, 4)) {
        case 0:
        case 1:
            if (p.n_free > 0)
                assert_int_equal(maq_block_pool_take(&pool), plain_take(&p));
            break;
        case 2: /* by whoever finds it: it has been handed out before */
            b %= pool.fresh;
            maq_block_pool_hold(&pool, b);
            if (b != MAQ_KV_NO_BLOCK && p.refs[b]++ == 0)
                take_from(p.free, &p.n_free, b);
            break;
        case 3:
            if (b == MAQ_KV_NO_BLOCK || p.refs[b] == 0 || p.key[b] > MAQ_KV_OWN || (p.key[b] && key == MAQ_KV_OWN))
                break;
            p.key[b] = key;
            if (key == MAQ_KV_OWN) {
                maq_block_pool_mark_own(&pool, b);
                break;
            }
            maq_block_pool_mark(&pool, b, key);
            p.marked[key][p.n_marked[key]++] = b;
            break;
        default:
            random_release(&pool, &p, &draws);
        }
        expect_equal(&pool, &p);
    }
    maq_block_pool_fini(&pool);
}

static void test_pool_against_a_list(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 150; seed++)
        one_pool(seed);
}

/* Three blocks by hand: what held a prefix is reused last, and is found until then. */
static void test_pool_by_hand(void **state)
{
    (void)state;
    struct maq_block_pool pool;
    assert_int_equal(maq_block_pool_init(&pool, 4, true), MAQ_OK);
    uint32_t a = maq_block_pool_take(&pool), b = maq_block_pool_take(&pool), c = maq_block_pool_take(&pool);
    assert_true(a == 1 && b == 2 && c == 3 && pool.n_free == 0);
    maq_block_pool_mark(&pool, a, 77);
    maq_block_pool_mark(&pool, b, 77); /* computed side by side: the first one is found */
    assert_int_equal(maq_block_pool_find(&pool, 77), a);
    maq_block_pool_release(&pool, (uint32_t[]){c, b, a}, 3);
    assert_int_equal(maq_block_pool_take(&pool), c);
    assert_int_equal(maq_block_pool_find(&pool, 77), a);
    maq_block_pool_hold(&pool, a); /* found: no longer free */
    assert_int_equal(maq_block_pool_take(&pool), b);
    assert_int_equal(maq_block_pool_find(&pool, 77), a);
    assert_int_equal(pool.n_free, 0);
    maq_block_pool_release(&pool, (uint32_t[]){a}, 1);
    assert_int_equal(maq_block_pool_take(&pool), a);
    assert_int_equal(maq_block_pool_find(&pool, 77), MAQ_KV_NO_BLOCK);
    maq_block_pool_fini(&pool);
}

/* ---- contents ---- */

static void test_contents(void **state)
{
    (void)state;
    static const uint64_t names[] = {5, 6, 7}, others[] = {5, 9, 7};
    const struct maq_content a = {names, 3, 16, 1, 0}, b = {names, 3, 16, 2, 0}, c = {others, 3, 16, 1, 0};
    uint64_t first = maq_content_hash(&a, 0, 0, 16), second = maq_content_hash(&a, first, 16, 16);
    assert_true(first == maq_content_hash(&b, 0, 0, 16) && first == maq_content_hash(&c, 0, 0, 16));
    assert_true(second == maq_content_hash(&b, first, 16, 16));
    assert_true(second != maq_content_hash(&c, first, 16, 16));
    assert_true(second != maq_content_hash(&a, second, 16, 16)); /* equal tokens behind another beginning */
    /* half a run; two of them are not a whole one, which is another size of block */
    assert_true(maq_content_hash(&a, 0, 0, 8) == maq_content_hash(&b, 0, 0, 8));
    assert_true(maq_content_hash(&a, 0, 0, 8) != maq_content_hash(&a, 0, 8, 8));
    /* several runs; and what is not named is a request's own, as is a block that is named in part */
    assert_true(maq_content_hash(&a, 0, 0, 48) == maq_content_hash(&b, 0, 0, 48));
    assert_true(maq_content_hash(&a, 0, 0, 48) != maq_content_hash(&c, 0, 0, 48));
    assert_true(maq_content_hash(&a, second, 48, 16) != maq_content_hash(&b, second, 48, 16));
    assert_true(maq_content_hash(&a, 0, 0, 64) != maq_content_hash(&b, 0, 0, 64));
    assert_true(maq_content_hash(&a, 0, 0, 64) == maq_content_hash(&a, 0, 0, 64));
    const struct maq_content none = {NULL, 0, 0, 3, 0};
    assert_true(maq_content_hash(&none, 0, 0, 16) != 0);
    /* with an adapter: equal to those with the same one, and to nobody else, from the first block on */
    const struct maq_content with = {names, 3, 16, 2, 4}, same = {names, 3, 16, 7, 4}, other = {names, 3, 16, 7, 5};
    uint64_t adapted = maq_content_hash(&with, 0, 0, 16);
    assert_true(adapted == maq_content_hash(&same, 0, 0, 16) && adapted != first);
    assert_true(adapted != maq_content_hash(&other, 0, 0, 16));
    assert_true(maq_content_hash(&with, adapted, 16, 16) == maq_content_hash(&same, adapted, 16, 16));
    assert_true(maq_content_hash(&with, adapted, 16, 16) != second);
    assert_int_equal(maq_content_common(&with, &same, 48), 48);
    assert_int_equal(maq_content_common(&with, &other, 48), 0);
}

/* ---- what groups let go, and hold at most ---- */

static void test_skipped_and_caps(void **state)
{
    (void)state;
    const struct maq_kv_group full = {MAQ_KV_FULL, 4, 0, 0}, window = {MAQ_KV_WINDOW, 4, 8, 0},
                              chunk = {MAQ_KV_CHUNK, 4, 8, 0}, recurrent = {MAQ_KV_STATE, 4, 0, 0};
    static const int64_t at[] = {0, 1, 7, 8, 9, 16, 17};
    static const int64_t windows[] = {0, 0, 0, 1, 2, 9, 10}, chunks[] = {0, 0, 0, 8, 8, 16, 16},
                         states[] = {0, 0, 6, 7, 8, 15, 16};
    for (size_t i = 0; i < MAQ_COUNT(at); i++) {
        assert_int_equal(maq_kv_skipped(&full, at[i]), 0);
        assert_int_equal(maq_kv_skipped(&window, at[i]), windows[i]); /* the next token and 7 before it */
        assert_int_equal(maq_kv_skipped(&chunk, at[i]), chunks[i]);
        assert_int_equal(maq_kv_skipped(&recurrent, at[i]), states[i]);
    }
    /* 7 tokens behind 10 new ones are 17: 5 blocks, and one more as they need not begin with a block */
    assert_int_equal(maq_kv_cap(&window, 10, 1000), 6);
    assert_int_equal(maq_kv_cap(&chunk, 10, 1000), 5); /* 18 tokens that begin with a block */
    assert_int_equal(maq_kv_cap(&window, 10, 12), 4);  /* no request is longer than 12 */
    assert_int_equal(maq_kv_cap(&full, 10, 1000), 0);
    assert_int_equal(maq_kv_cap(&recurrent, 10, 1000), 0);
}

/* ---- the cache under random requests ---- */

#define RIDERS 12u
#define MOST_LEN 400

struct rider {
    bool there, runs;
    int64_t tokens, computed, end;
    uint64_t names[64];
    struct maq_kv_request kv;
};

struct case_of_kv {
    uint64_t draws;
    struct maq_kv_options options;
    struct maq_kv_group groups[4];
    struct maq_kv_cache cache;
    struct rider rider[RIDERS];
    uint64_t own;
    int64_t most_added;
    uint32_t found_any, refused;
    bool all_come_back; /* every block has a key as soon as it is full */
    uint64_t seen;
};

static void draw_case(struct case_of_kv *k, uint64_t seed)
{
    uint64_t *d = &k->draws;
    *k = (struct case_of_kv){.draws = seed * 7919};
    int32_t block = 4 << draw(d, 0, 2);
    uint32_t n = draw(d, 1, 4), full = draw(d, 0, n);
    bool chunks = draw(d, 0, 3) == 0;
    for (uint32_t g = 0; g < n; g++) {
        struct maq_kv_group *group = &k->groups[g];
        *group = (struct maq_kv_group){.kind = MAQ_KV_FULL, .block_size = block};
        if (g < full)
            continue;
        *group = chunks ? (struct maq_kv_group){MAQ_KV_CHUNK, block, block * (int64_t)draw(d, 1, 5), 0}
                        : (struct maq_kv_group){MAQ_KV_WINDOW, block << draw(d, 0, 1), draw(d, 2, 60), 0};
    }
    k->most_added = draw(d, 1, 100);
    k->options = (struct maq_kv_options){.groups = k->groups,
                                         .n_groups = n,
                                         .blocks = draw(d, 4, 60) * n + MOST_LEN / (uint32_t)block * n / 4,
                                         .caching = draw(d, 0, 4) > 0,
                                         .max_len = MOST_LEN,
                                         .in_flight = k->most_added,
                                         .watermark = draw(d, 0, 3) == 0 ? 0.05 : 0};
    assert_int_equal(maq_kv_init(&k->cache, &k->options), MAQ_OK);
}

static uint64_t key_at(const struct maq_kv_cache *c, const struct maq_kv_request *r, uint32_t g, int64_t block)
{
    uint64_t hash = 0;
    for (int64_t i = 0; i < (block + 1) * c->group[g].block_size / c->hash_block; i++)
        hash = maq_content_hash(&r->content, hash, i * c->hash_block, c->hash_block);
    return maq_kv_key(hash, g);
}

static bool is_cached(const struct maq_kv_cache *c, const struct maq_kv_request *r, uint32_t g, int64_t block)
{
    uint64_t key = key_at(c, r, g, block);
    for (uint32_t b = 1; b < c->pool.n; b++)
        if (c->pool.at[b].key == key)
            return true;
    return false;
}

/* Whether every group has what a request with `length` cached tokens would look at. */
static bool all_have(const struct maq_kv_cache *c, const struct maq_kv_request *r, int64_t length)
{
    for (uint32_t g = 0; g < c->n_groups; g++) {
        int64_t from = maq_kv_skipped(&c->group[g], length) / c->group[g].block_size,
                to = length / c->group[g].block_size;
        for (int64_t i = from; i < to; i++)
            if (!is_cached(c, r, g, i))
                return false;
    }
    return true;
}

static void expect_longest(struct case_of_kv *k, const struct rider *r, int64_t found)
{
    const struct maq_kv_cache *c = &k->cache;
    assert_true(found >= 0 && found <= r->tokens - 1); /* the last token is always computed */
    assert_int_equal(found % c->step, 0);
    k->found_any += found > 0;
    if (!c->caching) {
        assert_int_equal(found, 0);
        return;
    }
    int64_t longest = (r->tokens - 1) / c->step * c->step;
    while (longest > 0 && !all_have(c, &r->kv, longest))
        longest -= c->step;
    assert_int_equal(found, longest);
    for (uint32_t g = 0; g < c->n_groups; g++)
        for (int64_t i = maq_kv_skipped(&c->group[g], found) / c->group[g].block_size;
             i < found / c->group[g].block_size; i++)
            assert_true(c->pool.at[c->hit[g].block[i]].key == key_at(c, &r->kv, g, i));
}

/* A request that runs has all that its next token looks at, and nothing older than a block. */
static void expect_tables(const struct case_of_kv *k, const struct rider *r, int64_t before)
{
    const struct maq_kv_cache *c = &k->cache;
    for (uint32_t g = 0; g < c->n_groups; g++) {
        const struct maq_kv_table *t = &r->kv.table[g];
        int64_t size = c->group[g].block_size, first = maq_kv_skipped(&c->group[g], before) / size, held = 0;
        assert_true(t->n >= (r->computed + size - 1) / size);
        for (int64_t i = 0; i < t->n; i++) {
            assert_true((t->block[i] != MAQ_KV_NO_BLOCK) == (i >= first));
            held += t->block[i] != MAQ_KV_NO_BLOCK;
        }
        if (c->cap[g] > 0)
            assert_true(held <= c->cap[g]);
    }
}

static void expect_all(struct case_of_kv *k)
{
    const struct maq_kv_request *all[RIDERS];
    for (uint32_t i = 0; i < RIDERS; i++)
        all[i] = &k->rider[i].kv;
    assert_false(k->cache.failed);
    expect_conserved(&k->cache, all, RIDERS);
}

static void begin(struct case_of_kv *k, struct rider *r)
{
    uint32_t unit = (uint32_t)k->cache.hash_block, n = draw(&k->draws, 0, 20), tree = draw(&k->draws, 0, 2);
    for (uint32_t i = 0; i < n; i++)
        r->names[i] = tree * 100 + i;
    r->tokens = n * unit + draw(&k->draws, 1, 60);
    if (r->tokens > MOST_LEN - 40)
        r->tokens = MOST_LEN - 40;
    n = n * unit > r->tokens ? (uint32_t)r->tokens / unit : n;
    r->end = r->tokens + draw(&k->draws, 0, 40);
    r->computed = 0;
    r->there = true;
    r->runs = false;
    const struct maq_content content = {r->names, n, unit, ++k->own, 0};
    assert_true(maq_kv_request_begin(&k->cache, &r->kv, &content));
    r->kv.comes_back |= k->all_come_back;
}

static void take_in(struct case_of_kv *k, struct rider *r)
{
    int64_t found = maq_kv_find(&k->cache, &r->kv, r->tokens, r->tokens - 1), added = r->tokens - found;
    expect_longest(k, r, found);
    k->seen = k->seen * 31 + (uint64_t)found * 7 + k->cache.pool.n_free;
    added = added < k->most_added ? added : k->most_added;
    const struct maq_kv_need need = {.tokens = r->tokens,
                                     .found = found,
                                     .added = added,
                                     .whole_fits = draw(&k->draws, 0, 1),
                                     .keeps_free = draw(&k->draws, 0, 1)};
    uint32_t before = k->cache.pool.n_free;
    if (maq_kv_allocate(&k->cache, &r->kv, &need)) {
        r->runs = true;
        r->computed = found + added;
        expect_tables(k, r, found);
        if (need.keeps_free)
            assert_true(k->cache.pool.n_free >= k->cache.watermark);
        return;
    }
    k->refused++;
    assert_int_equal(k->cache.pool.n_free, before); /* nothing has changed */
    for (uint32_t g = 0; g < k->cache.n_groups; g++)
        assert_int_equal(r->kv.table[g].n, 0);
}

static void go_on(struct case_of_kv *k, struct rider *r)
{
    int64_t before = r->computed;
    if (r->computed >= r->end) {
        maq_kv_release(&k->cache, &r->kv);
        r->there = false;
        return;
    }
    if (r->computed == r->tokens)
        r->tokens++;
    int64_t added = r->tokens - r->computed < k->most_added ? r->tokens - r->computed : k->most_added;
    const struct maq_kv_need need = {.tokens = r->tokens, .computed = r->computed, .added = added};
    if (maq_kv_allocate(&k->cache, &r->kv, &need)) {
        r->computed += added;
        expect_tables(k, r, before);
        return;
    }
    k->refused++;
    maq_kv_preempt(&k->cache, &r->kv, r->tokens);
    r->runs = false;
    r->computed = 0;
}

static void end_case(struct case_of_kv *k)
{
    for (uint32_t i = 0; i < RIDERS; i++) {
        if (k->rider[i].kv.table)
            maq_kv_release(&k->cache, &k->rider[i].kv);
        maq_kv_request_fini(&k->cache, &k->rider[i].kv);
    }
    if (!k->cache.failed && k->cache.pool.n > 0)
        assert_int_equal(k->cache.pool.n_free, k->cache.pool.n - 1);
    maq_kv_fini(&k->cache);
}

/* What was found, over all steps. */
static uint64_t run_case(uint64_t seed, bool all_come_back, uint32_t *found, uint32_t *refused)
{
    struct case_of_kv k;
    draw_case(&k, seed);
    k.all_come_back = all_come_back;
    for (int i = 0; i < 400; i++) {
        struct rider *r = &k.rider[draw(&k.draws, 0, RIDERS - 1)];
        if (!r->there)
            begin(&k, r);
        else if (!r->runs)
            take_in(&k, r);
        else
            go_on(&k, r);
        expect_all(&k);
    }
    *found += k.found_any;
    *refused += k.refused;
    uint64_t seen = k.seen;
    end_case(&k);
    return seen;
}

/* That blocks which only their request could ask for have no key until it comes back is seen by nobody. */
static void test_cache_under_random_requests(void **state)
{
    (void)state;
    uint32_t found = 0, refused = 0;
    for (uint64_t seed = 1; seed <= EFFORT(40, 120, 1200); seed++)
        assert_true(run_case(seed, false, &found, &refused) == run_case(seed, true, &found, &refused));
    assert_true(found > EFFORT(300, 1000, 10000) &&
                refused > EFFORT(300, 1000, 10000)); /* the cases are not idle ones */
}

/* ---- by hand ---- */

static struct maq_kv_cache small_cache(const struct maq_kv_group *groups, uint32_t n, uint32_t blocks, bool drops_last)
{
    struct maq_kv_cache c;
    const struct maq_kv_options o = {.groups = groups,
                                     .n_groups = n,
                                     .blocks = blocks,
                                     .caching = true,
                                     .drops_last = drops_last,
                                     .max_len = 1000,
                                     .in_flight = 100};
    assert_int_equal(maq_kv_init(&c, &o), MAQ_OK);
    return c;
}

static const uint64_t eight[] = {1, 2, 3, 4, 5, 6, 7, 8};

/* A request of 8 named blocks of 4 tokens and some of its own is computed whole. */
static void compute(struct maq_kv_cache *c, struct maq_kv_request *r, uint64_t own, int64_t tokens)
{
    const struct maq_content content = {eight, 8, 4, own, 0};
    assert_true(maq_kv_request_begin(c, r, &content));
    const struct maq_kv_need need = {.tokens = tokens, .added = tokens};
    assert_true(maq_kv_allocate(c, r, &need));
}

static void test_prefix_by_hand(void **state)
{
    (void)state;
    const struct maq_kv_group full = {MAQ_KV_FULL, 4, 0, 0};
    static const struct {
        bool drops_last;
        int64_t tokens, found;
    } cases[] = {{false, 40, 32}, {false, 33, 32}, {false, 32, 28}, /* a block less: the last token is computed */
                 {false, 31, 28}, {false, 4, 0},   {true, 40, 28},  {true, 32, 24}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_kv_cache c = small_cache(&full, 1, 100, cases[i].drops_last);
        struct maq_kv_request a = {0}, b = {0};
        const struct maq_content content = {eight, 8, 4, 2, 0};
        compute(&c, &a, 1, 50);
        assert_true(maq_kv_request_begin(&c, &b, &content));
        assert_int_equal(maq_kv_find(&c, &b, cases[i].tokens, cases[i].tokens - 1), cases[i].found);
        maq_kv_release(&c, &a);
        assert_int_equal(maq_kv_find(&c, &b, cases[i].tokens, cases[i].tokens - 1), cases[i].found);
        maq_kv_request_fini(&c, &a);
        maq_kv_request_fini(&c, &b);
        maq_kv_fini(&c);
    }
}

/* The end of a request is forgotten before its beginning. */
static void test_ends_go_first(void **state)
{
    (void)state;
    const struct maq_kv_group full = {MAQ_KV_FULL, 4, 0, 0};
    struct maq_kv_cache c = small_cache(&full, 1, 10, false); /* 9 blocks */
    struct maq_kv_request a = {0}, b = {0}, d = {0};
    compute(&c, &a, 1, 33); /* 9 of them, 8 with a key */
    maq_kv_release(&c, &a);
    const struct maq_content other = {NULL, 0, 0, 2, 0}, same = {eight, 8, 4, 3, 0};
    assert_true(maq_kv_request_begin(&c, &b, &other) && maq_kv_request_begin(&c, &d, &same));
    const struct maq_kv_need need = {.tokens = 10, .added = 10}; /* 3 blocks: the one without a key, 8 and 7 */
    assert_true(maq_kv_allocate(&c, &b, &need));
    assert_int_equal(maq_kv_find(&c, &d, 40, 39), 24);
    maq_kv_request_fini(&c, &a);
    maq_kv_request_fini(&c, &b);
    maq_kv_request_fini(&c, &d);
    maq_kv_fini(&c);
}

/* A window of 8 in blocks of 4 beside full attention: 32 tokens are found as long as the window's last two blocks are there. */
static void test_window_beside_full(void **state)
{
    (void)state;
    const struct maq_kv_group groups[] = {{MAQ_KV_FULL, 4, 0, 0}, {MAQ_KV_WINDOW, 4, 8, 0}};
    struct maq_kv_cache c = small_cache(groups, 2, 40, false);
    struct maq_kv_request a = {0}, b = {0};
    const struct maq_content same = {eight, 8, 4, 2, 0};
    compute(&c, &a, 1, 33);
    assert_int_equal(c.pool.n_free, 39 - 9 - 9); /* all at once, so that none has left the window yet */
    const struct maq_kv_need next = {.tokens = 34, .computed = 33, .added = 1};
    assert_true(maq_kv_allocate(&c, &a, &next));
    assert_int_equal(c.pool.n_free, 39 - 9 - 3); /* tokens 26 to 33 are in blocks 6, 7 and 8 */
    assert_true(maq_kv_request_begin(&c, &b, &same));
    assert_int_equal(maq_kv_find(&c, &b, 40, 39), 32);
    const struct maq_kv_need taken = {.tokens = 40, .found = 32, .added = 8};
    assert_true(maq_kv_allocate(&c, &b, &taken));
    for (uint32_t i = 0; i < 8; i++) {
        assert_int_equal(b.table[0].block[i], a.table[0].block[i]);
        assert_true((b.table[1].block[i] != MAQ_KV_NO_BLOCK) == (i >= 6));
    }
    const struct maq_kv_request *both[] = {&a, &b};
    expect_conserved(&c, both, 2);
    maq_kv_release(&c, &a);
    maq_kv_release(&c, &b);
    assert_int_equal(c.pool.n_free, 39);
    maq_kv_request_fini(&c, &a);
    maq_kv_request_fini(&c, &b);
    maq_kv_fini(&c);
}

/* Blocks of 8 beside a window of 4 in blocks of 4: only each second of them can be the end of a prefix, and that one is kept. */
static void test_blocks_of_two_sizes(void **state)
{
    (void)state;
    const struct maq_kv_group groups[] = {{MAQ_KV_FULL, 8, 0, 0}, {MAQ_KV_WINDOW, 4, 4, 0}};
    static const struct {
        int64_t tokens, found;
    } cases[] = {{40, 32}, {33, 32}, {32, 24}, {25, 24}, {24, 16}, {9, 8}, {8, 0}};
    struct maq_kv_cache c = small_cache(groups, 2, 40, false);
    struct maq_kv_request a = {0}, b = {0};
    const struct maq_content same = {eight, 8, 4, 2, 0};
    assert_true(c.step == 8 && c.hash_block == 4);
    compute(&c, &a, 1, 33);
    for (uint32_t i = 0; i < 8; i++)
        assert_true((c.pool.at[a.table[1].block[i]].key != 0) == (i % 2 == 1));
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        assert_true(maq_kv_request_begin(&c, &b, &same));
        assert_int_equal(maq_kv_find(&c, &b, cases[i].tokens, cases[i].tokens - 1), cases[i].found);
    }
    maq_kv_request_fini(&c, &a);
    maq_kv_request_fini(&c, &b);
    maq_kv_fini(&c);
}

/* A state is one block whatever the length, with those to spare. */
static void test_states(void **state)
{
    (void)state;
    const struct maq_kv_group recurrent = {MAQ_KV_STATE, 4, 0, 0};
    struct maq_kv_cache c = small_cache(&recurrent, 1, 40, false);
    struct maq_kv_request a = {0};
    compute(&c, &a, 1, 8);
    for (int64_t n = 8; n < 100; n++) {
        const struct maq_kv_need next = {.tokens = n + 1, .computed = n, .added = 1};
        assert_true(maq_kv_allocate(&c, &a, &next));
        assert_true(c.pool.n_free >= 39 - 2); /* the state, and the one that it becomes */
    }
    maq_kv_release(&c, &a);
    assert_int_equal(c.pool.n_free, 39);
    maq_kv_request_fini(&c, &a);
    maq_kv_fini(&c);
}

/* Only if the whole prompt would find room; a watermark that stays free. */
static void test_admission(void **state)
{
    (void)state;
    const struct maq_kv_group groups[] = {{MAQ_KV_FULL, 4, 0, 0}, {MAQ_KV_WINDOW, 4, 8, 0}};
    const struct maq_content content = {NULL, 0, 0, 1, 0};
    struct maq_kv_need need = {.tokens = 40, .added = 4};
    for (int whole = 0; whole < 2; whole++)
        for (uint32_t blocks = 3; blocks < 30; blocks++) {
            const struct maq_kv_options o = {
                .groups = groups, .n_groups = 2, .blocks = blocks, .max_len = 1000, .in_flight = 4, .watermark = 0.1};
            struct maq_kv_cache c;
            struct maq_kv_request r = {0};
            assert_int_equal(maq_kv_init(&c, &o), MAQ_OK);
            assert_int_equal(c.cap[1], 4); /* 7 tokens and 4 new ones, 3 blocks, and one */
            assert_true(maq_kv_request_begin(&c, &r, &content));
            need.whole_fits = whole;
            need.keeps_free = true;
            /* 10 blocks of full attention and 4 of the window; 1 and 1 for what is computed now */
            assert_true(maq_kv_allocate(&c, &r, &need) == (blocks - 1 >= (whole ? 14u : 2u) + blocks / 10));
            maq_kv_request_fini(&c, &r);
            maq_kv_fini(&c);
        }
}

/* ---- memory ---- */

static void few_steps(bool *failed)
{
    const struct maq_kv_group groups[] = {{MAQ_KV_FULL, 4, 0, 0}, {MAQ_KV_WINDOW, 4, 8, 0}};
    const struct maq_kv_options o = {.groups = groups, .n_groups = 2, .blocks = 900, .caching = true, .max_len = 4000};
    struct maq_kv_cache c;
    struct maq_kv_request r[3];
    memset(r, 0, sizeof r);
    if (maq_kv_init(&c, &o) != MAQ_OK) {
        *failed = true;
        return;
    }
    for (uint64_t i = 0; i < 3 && !*failed; i++) {
        const struct maq_content content = {eight, 8, 4, i, 0};
        *failed |= !maq_kv_request_begin(&c, &r[i], &content);
        int64_t found = *failed ? 0 : maq_kv_find(&c, &r[i], 300, 299);
        const struct maq_kv_need need = {.tokens = 300, .found = found, .added = 300 - found};
        *failed |= *failed || !maq_kv_allocate(&c, &r[i], &need) || c.failed;
        const struct maq_kv_need next = {.tokens = 301, .computed = 300, .added = 1};
        *failed |= *failed || !maq_kv_allocate(&c, &r[i], &next) || c.failed;
    }
    for (int i = 0; i < 3; i++) {
        if (r[i].table)
            maq_kv_release(&c, &r[i]);
        *failed |= c.failed;
        maq_kv_request_fini(&c, &r[i]);
    }
    maq_kv_fini(&c);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct failing f = {0};
    while (next_failing(&f)) {
        bool failed = false;
        few_steps(&failed);
        if (failed != (f.nth > 0))
            fail_msg("allocation %zu of %zu failed, and nobody says so", f.nth, f.all);
    }
    assert_true(f.all > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pool_against_a_list),
        cmocka_unit_test(test_pool_by_hand),
        cmocka_unit_test(test_contents),
        cmocka_unit_test(test_skipped_and_caps),
        cmocka_unit_test(test_cache_under_random_requests),
        cmocka_unit_test(test_prefix_by_hand),
        cmocka_unit_test(test_ends_go_first),
        cmocka_unit_test(test_window_beside_full),
        cmocka_unit_test(test_blocks_of_two_sizes),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_admission),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("KV cache", tests, NULL, NULL);
}
