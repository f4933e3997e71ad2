/* SPDX-License-Identifier: Apache-2.0 */
/*
 * block_pool.h - the paged blocks of a KV cache: which are free, in what order they are handed out again, and which hold a prefix
 * that a later request can use.
 *
 * A block is a number; block 0 is never handed out and stands for "no block" in a request's table. Free blocks lie in one queue. New
 * blocks come from its front, and what they held is forgotten then and not before: a free block keeps its key and can be taken out
 * of the queue again by a request with the same prefix. Blocks that hold a key are put back at the end of the queue, so that the one
 * unused for longest goes first; blocks without are put back at the front.
 *
 * Two blocks may have the same key, since requests that compute the same prefix side by side each have their own; the one that got it
 * first is found.
 *
 * Most blocks hold what nobody but their own request could ask for. They count as blocks with a key, and get one when that request is to
 * come back (maq_kv_preempt()): the table has those alone that can be found.
 *
 * Blocks that were never handed out stand in the queue as one: the first of them, whose place the next one takes. A pool costs no more
 * than what is used of it, and a fleet has one for each replica.
 *
 * The rules are those of vLLM 0.33.0 (v1/core/block_pool.py); `maquette validate schedule` holds them to it.
 */
#ifndef MAQ_SERVE_KV_BLOCK_POOL_H
#define MAQ_SERVE_KV_BLOCK_POOL_H

#include "maquette/diag.h"

#define MAQ_KV_NO_BLOCK 0u
#define MAQ_KV_OWN 1u /* in place of a key: nobody looks for it */

struct maq_kv_block {
    uint64_t key;        /* of the prefix that ends with this block, or MAQ_KV_OWN; 0 = none */
    uint32_t prev, next; /* in the queue of free blocks */
    uint32_t refs;       /* requests that hold it */
    uint32_t same, last; /* next block with the same key; of a first block: the last of them */
};

/* A key that some block has: the first of those blocks. */
struct maq_kv_place {
    uint32_t tag;   /* the key's lower half, by which most others are told apart without a look at the block */
    uint32_t block; /* 0 = the place is free */
};

struct maq_block_pool {
    struct maq_kv_block *at;    /* [n + 1]; the last one is the head of the queue */
    uint32_t n, n_free;         /* all blocks, block 0 counted; those in the queue */
    uint32_t fresh;             /* neither it nor any behind it was ever handed out */
    struct maq_kv_place *table; /* [mask + 1], each key at the first free place from key & mask on */
    uint32_t mask;
    bool caching;
    void (*leaves)(
        void *user,
        uint64_t key); /* a key that no block has any more, since its last one was handed out; NULL: nobody asks */
    void *user;
};

/* n >= 1 blocks, all free but block 0. */
enum maq_status maq_block_pool_init(struct maq_block_pool *pool, uint32_t n, bool caching);
void maq_block_pool_fini(struct maq_block_pool *pool);

/* The block at the front of the queue, held once; there must be one. */
uint32_t maq_block_pool_take(struct maq_block_pool *pool);
/* Held by one more; a free one leaves the queue. It was handed out before. Block 0 is passed over. */
void maq_block_pool_hold(struct maq_block_pool *pool, uint32_t block);
/*
 * Held by one less, each of n blocks, of which those that nobody holds any more go back to the queue: the first one given is the
 * first to be handed out again. Block 0 is passed over. The list is overwritten.
 */
void maq_block_pool_release(struct maq_block_pool *pool, uint32_t *blocks, uint32_t n);

/* Free blocks that are handed out before one with a key is. */
uint32_t maq_block_pool_plain(const struct maq_block_pool *pool);

/* The first of the blocks with a key; MAQ_KV_NO_BLOCK when there is none. */
uint32_t maq_block_pool_find(const struct maq_block_pool *pool, uint64_t key);
/* A key will be looked for or given soon: its place in the table is brought near, and half as soon the block that stands there. */
static inline void maq_block_pool_expect(const struct maq_block_pool *pool, uint64_t soon, uint64_t sooner)
{
    const struct maq_kv_place *there = &pool->table[sooner & pool->mask];
    __builtin_prefetch(&pool->table[soon & pool->mask]);
    if (there->tag == (uint32_t)sooner)
        __builtin_prefetch(&pool->at[there->block]);
}
/* Gives a block, which has none or MAQ_KV_OWN, a key (over MAQ_KV_OWN). */
void maq_block_pool_mark(struct maq_block_pool *pool, uint32_t block, uint64_t key);
/* A block, which has no key, holds what only its request could ask for. */
void maq_block_pool_mark_own(struct maq_block_pool *pool, uint32_t block);

#endif
