/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_pool.c - the queue is a ring through the blocks themselves, the table of keys a chained hash through their first blocks: all
 * operations are of constant time but the search among blocks of one key, of which there are as many as requests computed it at once.
 */
#include "serve/kv/block_pool.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"

enum maq_status maq_block_pool_init(struct maq_block_pool *pool, uint32_t n, bool caching)
{
    uint32_t buckets = 64;
    while (caching && buckets < n && buckets < (1u << 30))
        buckets *= 2;
    *pool = (struct maq_block_pool){.n = n, .n_free = n - 1, .mask = buckets - 1, .caching = caching};
    pool->at = maq__calloc(((size_t)n + 1) * sizeof *pool->at);
    pool->table = maq__calloc(buckets * sizeof *pool->table);
    if (!pool->at || !pool->table) {
        maq_block_pool_fini(pool);
        return MAQ_NO_MEMORY;
    }
    for (uint32_t i = 1; i <= n; i++) { /* 1 .. n - 1, then the head of the ring */
        pool->at[i].prev = i == 1 ? n : i - 1;
        pool->at[i].next = i == n ? (n > 1 ? 1 : n) : i + 1;
    }
    return MAQ_OK;
}

void maq_block_pool_fini(struct maq_block_pool *pool)
{
    free(pool->at);
    free(pool->table);
    *pool = (struct maq_block_pool){0};
}

/* ---- the queue ---- */

static void unlink_block(struct maq_block_pool *pool, uint32_t block)
{
    struct maq_kv_block *b = &pool->at[block];
    pool->at[b->prev].next = b->next;
    pool->at[b->next].prev = b->prev;
    pool->n_free--;
}

static void link_behind(struct maq_block_pool *pool, uint32_t block, uint32_t before)
{
    struct maq_kv_block *b = &pool->at[block];
    b->prev = before;
    b->next = pool->at[before].next;
    pool->at[b->next].prev = block;
    pool->at[before].next = block;
    pool->n_free++;
}

/* ---- keys ---- */

/* Where the table, or the block before it in a bucket, names the first block of a key. */
static uint32_t *place_of(struct maq_block_pool *pool, uint64_t key)
{
    uint32_t *at = &pool->table[key & pool->mask];
    while (*at != MAQ_KV_NO_BLOCK && pool->at[*at].key != key)
        at = &pool->at[*at].bucket;
    return at;
}

uint32_t maq_block_pool_find(const struct maq_block_pool *pool, uint64_t key)
{
    uint32_t block = pool->table[key & pool->mask];
    while (block != MAQ_KV_NO_BLOCK && pool->at[block].key != key)
        block = pool->at[block].bucket;
    return block;
}

void maq_block_pool_mark(struct maq_block_pool *pool, uint32_t block, uint64_t key)
{
    struct maq_kv_block *b = &pool->at[block];
    MAQ_ASSERT(b->key <= MAQ_KV_OWN && key > MAQ_KV_OWN);
    uint32_t *at = place_of(pool, key);
    b->key = key;
    b->same = MAQ_KV_NO_BLOCK;
    if (*at == MAQ_KV_NO_BLOCK) {
        b->bucket = MAQ_KV_NO_BLOCK;
        b->last = block;
        *at = block;
        return;
    }
    struct maq_kv_block *first = &pool->at[*at];
    pool->at[first->last].same = block;
    first->last = block;
}

void maq_block_pool_mark_own(struct maq_block_pool *pool, uint32_t block)
{
    MAQ_ASSERT(pool->at[block].key == 0);
    pool->at[block].key = MAQ_KV_OWN;
}

static void forget(struct maq_block_pool *pool, uint32_t block)
{
    struct maq_kv_block *b = &pool->at[block];
    if (b->key <= MAQ_KV_OWN) {
        b->key = 0;
        return;
    }
    uint32_t *at = place_of(pool, b->key);
    if (*at == block) {
        if (b->same != MAQ_KV_NO_BLOCK) { /* the next one with that key is the first now */
            pool->at[b->same].bucket = b->bucket;
            pool->at[b->same].last = b->last;
            *at = b->same;
        } else {
            *at = b->bucket;
        }
    } else {
        struct maq_kv_block *first = &pool->at[*at];
        uint32_t before = *at;
        while (pool->at[before].same != block)
            before = pool->at[before].same;
        pool->at[before].same = b->same;
        if (first->last == block)
            first->last = before;
    }
    b->key = 0;
}

/* ---- handing out and taking back ---- */

uint32_t maq_block_pool_take(struct maq_block_pool *pool)
{
    uint32_t block = pool->at[pool->n].next;
    MAQ_ASSERT(pool->n_free > 0 && block != pool->n);
    unlink_block(pool, block);
    const struct maq_kv_block *next = &pool->at[pool->at[block].next]; /* it is likely to be taken next */
    __builtin_prefetch(&pool->table[next->key & pool->mask]);
    __builtin_prefetch(&pool->at[next->next]);
    forget(pool, block);
    pool->at[block].refs = 1;
    return block;
}

void maq_block_pool_hold(struct maq_block_pool *pool, uint32_t block)
{
    if (block == MAQ_KV_NO_BLOCK)
        return;
    if (pool->at[block].refs++ == 0)
        unlink_block(pool, block);
}

void maq_block_pool_release(struct maq_block_pool *pool, uint32_t *blocks, uint32_t n)
{
    uint32_t front = pool->n, n_last = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (blocks[i] == MAQ_KV_NO_BLOCK || --pool->at[blocks[i]].refs > 0)
            continue;
        if (pool->at[blocks[i]].key != 0) {
            blocks[n_last++] = blocks[i];
            continue;
        }
        link_behind(pool, blocks[i], front);
        front = blocks[i];
    }
    for (uint32_t i = 0; i < n_last; i++)
        link_behind(pool, blocks[i], pool->at[pool->n].prev);
}
