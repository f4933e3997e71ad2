/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_pool.c - the queue is a ring through the blocks themselves, the table of keys one of open addresses that has half of each key:
 * that a key is not there, which is what most searches find, is seen in a line of memory, without a look at any block. All operations
 * are of constant time but the search among blocks of one key, of which there are as many as requests computed it at once.
 */
#include "serve/kv/block_pool.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"

/* ---- the queue ---- */

static void unlink_block(struct maq_block_pool *pool, uint32_t block)
{
    struct maq_kv_block *b = &pool->at[block];
    pool->at[b->prev].next = b->next;
    pool->at[b->next].prev = b->prev;
}

static void link_behind(struct maq_block_pool *pool, uint32_t block, uint32_t before)
{
    struct maq_kv_block *b = &pool->at[block];
    b->prev = before;
    b->next = pool->at[before].next;
    pool->at[b->next].prev = block;
    pool->at[before].next = block;
}

/* ---- begin and end ---- */

enum maq_status maq_block_pool_init(struct maq_block_pool *pool, uint32_t n, bool caching)
{
    uint32_t places = 64, least = caching ? n + n / 2 : 0; /* at most two thirds are taken */
    while (places < least && places < (1u << 30))
        places *= 2;
    *pool = (struct maq_block_pool){.n = n, .n_free = n - 1, .fresh = 1, .mask = places - 1, .caching = caching};
    pool->at = maq__calloc(((size_t)n + 1) * sizeof *pool->at);
    pool->table = maq__calloc(places * sizeof *pool->table);
    if (!pool->at || !pool->table) {
        maq_block_pool_fini(pool);
        return MAQ_NO_MEMORY;
    }
    pool->at[n].prev = pool->at[n].next = n;
    if (pool->fresh < n)
        link_behind(pool, pool->fresh, n);
    return MAQ_OK;
}

void maq_block_pool_fini(struct maq_block_pool *pool)
{
    free(pool->at);
    free(pool->table);
    *pool = (struct maq_block_pool){0};
}

/* ---- keys ---- */

/* Where the table names the first block of a key, or would. */
static uint32_t place_of(const struct maq_block_pool *pool, uint64_t key)
{
    uint32_t i = (uint32_t)key & pool->mask;
    while (pool->table[i].block != MAQ_KV_NO_BLOCK &&
           (pool->table[i].tag != (uint32_t)key || pool->at[pool->table[i].block].key != key))
        i = (i + 1) & pool->mask;
    return i;
}

uint32_t maq_block_pool_find(const struct maq_block_pool *pool, uint64_t key)
{
    return pool->table[place_of(pool, key)].block;
}

/* Nobody has the key of this place any more. Whatever was put behind it because of it moves up. */
static void free_place(struct maq_block_pool *pool, uint32_t hole)
{
    const uint32_t mask = pool->mask;
    struct maq_kv_place *t = pool->table;
    for (uint32_t i = (hole + 1) & mask; t[i].block != MAQ_KV_NO_BLOCK; i = (i + 1) & mask) {
        if (((i - t[i].tag) & mask) < ((i - hole) & mask)) /* it would stand before where searches for it begin */
            continue;
        t[hole] = t[i];
        hole = i;
    }
    t[hole] = (struct maq_kv_place){0};
}

void maq_block_pool_mark(struct maq_block_pool *pool, uint32_t block, uint64_t key)
{
    struct maq_kv_block *b = &pool->at[block];
    MAQ_ASSERT(b->key <= MAQ_KV_OWN && key > MAQ_KV_OWN);
    struct maq_kv_place *place = &pool->table[place_of(pool, key)];
    b->key = key;
    b->same = MAQ_KV_NO_BLOCK;
    if (place->block == MAQ_KV_NO_BLOCK) {
        b->last = block;
        *place = (struct maq_kv_place){(uint32_t)key, block};
        return;
    }
    struct maq_kv_block *first = &pool->at[place->block];
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
    uint32_t i = place_of(pool, b->key), first = pool->table[i].block;
    if (first != block) {
        uint32_t before = first;
        while (pool->at[before].same != block)
            before = pool->at[before].same;
        pool->at[before].same = b->same;
        if (pool->at[first].last == block)
            pool->at[first].last = before;
    } else if (b->same != MAQ_KV_NO_BLOCK) { /* the next one with that key is the first now */
        pool->at[b->same].last = b->last;
        pool->table[i].block = b->same;
    } else {
        free_place(pool, i);
    }
    b->key = 0;
}

/* ---- handing out and taking back ---- */

uint32_t maq_block_pool_take(struct maq_block_pool *pool)
{
    uint32_t block = pool->at[pool->n].next;
    MAQ_ASSERT(pool->n_free > 0 && block != pool->n);
    unlink_block(pool, block);
    pool->n_free--;
    if (block == pool->fresh && ++pool->fresh < pool->n)
        link_behind(pool, pool->fresh, pool->n);
    const struct maq_kv_block *next = &pool->at[pool->at[pool->n].next]; /* it is likely to be taken next */
    __builtin_prefetch(&pool->table[next->key & pool->mask]);
    __builtin_prefetch(&pool->at[next->next]);
    uint64_t key = pool->at[block].key;
    forget(pool, block);
    pool->at[block].refs = 1;
    if (pool->leaves && key > MAQ_KV_OWN && maq_block_pool_find(pool, key) == MAQ_KV_NO_BLOCK)
        pool->leaves(pool->user, key);
    return block;
}

uint32_t maq_block_pool_plain(const struct maq_block_pool *pool)
{
    uint32_t n = 0;
    for (uint32_t b = pool->at[pool->n].next; b != pool->n && pool->at[b].key == 0; b = pool->at[b].next)
        n += b == pool->fresh ? pool->n - pool->fresh : 1;
    return n;
}

void maq_block_pool_hold(struct maq_block_pool *pool, uint32_t block)
{
    if (block == MAQ_KV_NO_BLOCK)
        return;
    MAQ_ASSERT(block < pool->fresh);
    if (pool->at[block].refs++ == 0) {
        unlink_block(pool, block);
        pool->n_free--;
    }
}

void maq_block_pool_release(struct maq_block_pool *pool, uint32_t *blocks, uint32_t n)
{
    uint32_t front = pool->n, n_last = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (blocks[i] == MAQ_KV_NO_BLOCK || --pool->at[blocks[i]].refs > 0)
            continue;
        pool->n_free++;
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
