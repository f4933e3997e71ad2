/* SPDX-License-Identifier: Apache-2.0 */
/*
 * radix_tree.h - the prefix cache of SGLang: a tree of runs of tokens, of which a request uses the path that equals its beginning.
 *
 * A node holds the tokens [begin, end) of some content, a whole number of pages. Children begin with different pages. Looking a beginning up splits the
 * node in which it ends. A request locks the path that it uses; leaves that nobody locks are what can be evicted, and then
 * their parents. Which goes first is the policy's:
 *
 *   LRU    the one unused for longest           MRU    the one used last
 *   FIFO   the one that came first              FILO   the one that came last
 *   LFU    the one inserted least often         SLRU   those inserted once before others, then as LRU
 *   PRIORITY  the least priority (of the requests that inserted it), then as LRU
 *
 * A tree of pairs has tokens with the one behind each: the keys and values of what drafts of a model's states (EAGLE) are made of both. Of a beginning that has n
 * tokens n - 1 are there or looked for, and a run is equal where the token behind it is, too.
 *
 * With a tier in host memory (radix_host.h) a node may be on the GPU, on the host, or on both. What is on the GPU goes before what is not, from the root on; a
 * leaf of the GPU is a node without a child that is there.
 *
 * The rules, and what counts as a use, are those of SGLang 0.5.23 (mem_cache/unified_cache/unified_tree_core.py, components/full.py,
 * mem_cache/evict_policy.py).
 */
#ifndef MAQ_SERVE_KV_RADIX_TREE_H
#define MAQ_SERVE_KV_RADIX_TREE_H

#include "serve/kv/radix_nodes.h"

enum maq_status maq_radix_init(struct maq_radix_tree *t, int32_t page, enum maq_radix_eviction eviction);
void maq_radix_fini(struct maq_radix_tree *t);

/* The longest beginning of `tokens` tokens that is there: its length, and the node that it ends with. */
int64_t maq_radix_match(struct maq_radix_tree *t, const struct maq_content *content, int64_t tokens, uint32_t *node);

struct maq_radix_insert {
    int64_t tokens; /* a whole number of pages */
    int64_t priority;
    int64_t inserted; /* of them by the same request before: they do not count again */
};
/* Adds a beginning; how much of it was on the GPU. *node: the one that it ends with. */
int64_t maq_radix_insert(struct maq_radix_tree *t, const struct maq_content *content,
                         const struct maq_radix_insert *what, uint32_t *node);

/* Evicts the next leaf: its tokens that become free on the GPU; 0 = there is none. */
int64_t maq_radix_evict(struct maq_radix_tree *t);

#endif
