/* SPDX-License-Identifier: Apache-2.0 */
/*
 * radix_host.h - copies in host memory of what a radix tree has: SGLang's HiCache.
 *
 *   [ on the GPU ] --keep()--> [ on both ] --evicted--> [ on the host ] --load()--> [ on both ]
 *
 * When a node is copied there is the policy's:
 *
 *   WRITE_THROUGH            when it is inserted for the first time, those above it first
 *   WRITE_THROUGH_SELECTIVE  when it is inserted for the second time
 *   WRITE_BACK               when it is evicted from the GPU, which waits for the copy. Where the host has no room it is lost, with all below it
 *
 * Host memory that is full gives up leaves that are there alone, in the order of the tree's eviction; with WRITE_BACK, before them, copies of what
 * is on the GPU, too: the first copied first, those of leaves of the GPU last, since these go next. Where that is not enough, nothing is copied.
 *
 * Copies that wait are begun together (begin_writes(), begin_loads()), and are over in their order (written(), loaded()). Until then a node that is copied cannot
 * be evicted from the GPU, and one that is loaded from neither.
 *
 * The rules are those of SGLang 0.5.23 (mem_cache/unified_radix_cache.py, mem_cache/unified_cache/unified_tree_core.py, components/full.py;
 * managers/cache_controller.py). Not here: --hicache-storage-backend, --hicache-host-memory-mode buffer_only, windows and states.
 */
#ifndef MAQ_SERVE_KV_RADIX_HOST_H
#define MAQ_SERVE_KV_RADIX_HOST_H

#include "serve/kv/radix_nodes.h"

/* A node that is copied, and where it began then: it may be split on the way. */
struct maq_radix_copy {
    uint32_t node;
    int64_t begin;
};

/* Copies that began together. */
struct maq_radix_together {
    uint32_t n;
    int64_t tokens;
};

/* Copies of one way: those under way, by what began together, then those that wait. */
struct maq_radix_copies {
    struct maq_radix_copy *at; /* [n] */
    uint32_t n, size, begun;
    int64_t waiting; /* tokens of those that wait */
    struct maq_radix_together *together;
    uint32_t n_together, together_size;
};

struct maq_radix_host {
    int64_t capacity, available; /* tokens */
    uint8_t policy;              /* enum maq_hicache_policy */
    struct maq_radix_copies writes, loads;
    uint32_t first_twin, last_twin;       /* nodes that are on both, in the order in which they came to be */
    uint32_t *aside, n_aside, aside_size; /* leaves that could not be evicted, until the others have been tried */
    /* counted: tokens that were copied as they were evicted, that the host gave up; copies for which it had no room */
    int64_t written_back, given_up;
    uint64_t refused;
};

/* Of a tree that is empty. */
enum maq_status maq_radix_host_init(struct maq_radix_tree *t, int64_t tokens, enum maq_hicache_policy policy);
void maq_radix_host_fini(struct maq_radix_tree *t);
bool maq_radix_host_writes_back(const struct maq_radix_tree *t);

/* Whether a copy waits to begin. */
bool maq_radix_host_waits(const struct maq_radix_tree *t);
/* What waits begins, together. */
void maq_radix_host_begin_writes(struct maq_radix_tree *t);
void maq_radix_host_begin_loads(struct maq_radix_tree *t);
/* Those that began together first are over. */
void maq_radix_host_written(struct maq_radix_tree *t);
void maq_radix_host_loaded(struct maq_radix_tree *t);

/* A node that is on the host alone, and those above it, are to be loaded; the GPU has room for them. */
void maq_radix_host_load(struct maq_radix_tree *t, uint32_t node);
/* Its copy on the host stays, whatever comes; not any more. */
void maq_radix_host_lock(struct maq_radix_tree *t, uint32_t node);
void maq_radix_host_unlock(struct maq_radix_tree *t, uint32_t node, int64_t begin);
/* Eviction from the GPU has come to its end: who could not be evicted is tried again with the next. */
void maq_radix_host_evicted(struct maq_radix_tree *t);

/* ---- for the tree; without a host they do nothing ---- */

/* A node on the GPU was inserted. */
void maq_radix_host_keep(struct maq_radix_tree *t, uint32_t node);
/* A node has a new one in front of it; it may be on both now. */
void maq_radix_host_twin(struct maq_radix_tree *t, uint32_t node);
/* Evicts a leaf of the GPU, or another if it has to stay: tokens that become free; 0 = none can go. */
int64_t maq_radix_host_evict(struct maq_radix_tree *t, uint32_t leaf);

#endif
