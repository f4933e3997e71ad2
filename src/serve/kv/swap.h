/* SPDX-License-Identifier: Apache-2.0 */
/*
 * swap.h - blocks of a GPU's cache that are moved to host memory when they are handed out again, and back when a request has their prefix: the secondary
 * pool of TensorRT-LLM's cache.
 *
 *   [ GPU block with a prefix ] --handed out again: out()--> [ place on the host ] --claim(), back()--> [ GPU block of the request ]
 *
 * A prefix is in one place. Places lie in a queue: what comes takes the one at its front, and what was there is lost; it goes to the end, and so does a place that
 * has become empty. Places that were never used stand at the front.
 *
 * The rules are those of NVIDIA/TensorRT-LLM, commit 002ba6a, cpp/tensorrt_llm/batch_manager/kvCacheManager.cpp (getFreeBlock, onboardBlock) and
 * evictionPolicy.cpp, with the default priorities. There, what is behind a prefix that is lost is lost with it; here it is not found, and goes when its turn comes.
 */
#ifndef MAQ_SERVE_KV_SWAP_H
#define MAQ_SERVE_KV_SWAP_H

#include "serve/kv/kv_cache.h"

struct maq_swap_place {
    uint64_t key;                /* 0 = it is empty */
    uint32_t prev, next, bucket; /* in the queue; the next of its bucket */
};

struct maq_swap {
    struct maq_swap_place *at; /* [n]; the first one is the head of the queue, and no place */
    uint32_t n, size, *table, mask;
    uint32_t *claimed, n_claimed, claimed_size;
    int64_t capacity, used; /* places; that have a prefix */
    /* counted: blocks that moved, either way; that were lost for another, that found no place */
    int64_t out, back;
    uint64_t lost, refused;
    bool failed; /* out of memory */
};

/* To be ended even on failure. What `pool` hands out again comes here from now on. */
enum maq_status maq_swap_init(struct maq_swap *swap, int64_t places, struct maq_block_pool *pool);
void maq_swap_fini(struct maq_swap *swap);

/* A block with a key is handed out again. */
void maq_swap_out(struct maq_swap *swap, uint64_t key);
/* Blocks of a request from block `from` on that are here one after another, up to its first `most` tokens: they stay until the next of the two. */
uint32_t maq_swap_claim(struct maq_swap *swap, const struct maq_kv_request *request, int64_t from, int64_t most,
                        int32_t block);
/* They have moved to the GPU; or nothing has happened since. */
void maq_swap_back(struct maq_swap *swap);
void maq_swap_leave(struct maq_swap *swap);

#endif
