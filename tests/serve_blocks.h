/* SPDX-License-Identifier: Apache-2.0 */
/* serve_blocks.h - what holds of the blocks of a KV cache at any time: each is free, or held by as many as say so. */
#ifndef MAQ_TESTS_SERVE_BLOCKS_H
#define MAQ_TESTS_SERVE_BLOCKS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "serve/kv/kv_cache.h"

/* What is behind a block, or behind the head, in the queue: those that were never handed out stand in it as the first of them. */
static inline uint32_t behind(const struct maq_block_pool *pool, uint32_t block)
{
    if (block < pool->fresh || block == pool->n)
        return pool->at[block].next;
    return block + 1 < pool->n ? block + 1 : pool->at[pool->fresh].next;
}

/* The queue is one ring in both directions, with all blocks that nobody holds and no others; block 0 is nowhere. */
static inline void expect_ring(const struct maq_block_pool *pool)
{
    uint32_t n = 0, before = pool->n;
    for (uint32_t b = behind(pool, pool->n); b != pool->n; b = behind(pool, b)) {
        assert_true(b > 0 && b < pool->n);
        assert_int_equal(pool->at[b].refs, 0);
        if (b <= pool->fresh) {
            assert_int_equal(pool->at[b].prev, before);
            before = b;
        }
        assert_true(++n < pool->n);
    }
    assert_int_equal(pool->at[pool->n].prev, before);
    assert_int_equal(n, pool->n_free);
    for (uint32_t b = 1; b < pool->n; b++)
        n += pool->at[b].refs > 0;
    assert_int_equal(n, pool->n - 1);
}

/* Free and held blocks are all blocks, and a block is held as often as it stands in the tables of `requests`; NULL: no request. */
static inline void expect_conserved(const struct maq_kv_cache *c, const struct maq_kv_request *const *requests,
                                    size_t n)
{
    uint32_t *held = calloc(c->pool.n, sizeof *held);
    assert_non_null(held);
    for (size_t i = 0; i < n; i++)
        for (uint32_t g = 0; requests[i] && requests[i]->table && g < c->n_groups; g++)
            for (uint32_t k = 0; k < requests[i]->table[g].n; k++)
                held[requests[i]->table[g].block[k]]++;
    for (uint32_t b = 1; b < c->pool.n; b++)
        if (held[b] != c->pool.at[b].refs)
            fail_msg("block %u is held by %u, and %u say so", b, c->pool.at[b].refs, held[b]);
    free(held);
    expect_ring(&c->pool);
}

#endif
