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

#include "maquette/serve.h"
#include "serve/kv/content.h"

#define MAQ_RADIX_ROOT 0u
#define MAQ_RADIX_NONE UINT32_MAX

struct maq_radix_node {
    struct maq_content content;
    int64_t begin, end; /* tokens of the content */
    uint64_t key;       /* of its first page and its parent */
    uint32_t parent, bucket;
    uint32_t child, last_child, prev, next; /* children in the order in which they came */
    uint32_t locks;
    uint32_t heap;  /* its place among leaves that can be evicted, from 1 on; 0 = not there */
    uint32_t below; /* children that are on the GPU */
    bool on_gpu, on_host;
    uint8_t leaf;        /* enum maq_radix_leaf: whose place `heap` is */
    uint32_t host_locks; /* its copy on the host stays */
    uint32_t writing;    /* 1 + the node whose copy to the host, that is under way, has this one too; 0 = none */
    uint32_t loading;    /* 1 + the node with which it is loaded; 0 = it is not */
    uint32_t twin[2];    /* before and behind it among those that are on both */
    bool aside;          /* it is a leaf that could not be evicted now */
    bool twinned;        /* it is among them, perhaps not any more with right */
    int64_t used, came, hits, priority;
};

/* Leaves of the GPU, and of the host alone. */
enum maq_radix_leaf { MAQ_RADIX_GPU_LEAF, MAQ_RADIX_HOST_LEAF, MAQ_RADIX_LEAVES };

struct maq_radix_heap {
    uint32_t *at; /* the next one first */
    uint32_t n, size;
};

struct maq_radix_host;

struct maq_radix_tree {
    struct maq_radix_node *at; /* [n] */
    uint32_t n, size, free;    /* free: first of the nodes that are none, linked by `next` */
    uint32_t *table;           /* [mask + 1] nodes by key */
    uint32_t mask, entries;
    struct maq_radix_heap leaves[MAQ_RADIX_LEAVES]; /* that can be evicted */
    struct maq_radix_host *host;                    /* NULL: nothing is kept there */
    int64_t clock, tokens, locked;                  /* on the GPU: of all nodes; of those that are locked */
    int32_t page;
    int32_t pairs;    /* 1: of pairs, set behind init; else 0 */
    uint8_t eviction; /* enum maq_radix_eviction */
    bool failed;      /* out of memory */
};

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

/* A node and all above it. */
void maq_radix_lock(struct maq_radix_tree *t, uint32_t node);
void maq_radix_unlock(struct maq_radix_tree *t, uint32_t node);

/* Evicts the next leaf: its tokens that become free on the GPU; 0 = there is none. */
int64_t maq_radix_evict(struct maq_radix_tree *t);
/* Tokens that could be evicted. */
int64_t maq_radix_evictable(const struct maq_radix_tree *t);

/* ---- within the tree ---- */

/* After anything about a node has changed that decides whether and when it is evicted. */
void maq_radix_settle(struct maq_radix_tree *t, uint32_t node);
/* A node that nobody locks and that has no children is not there any more. */
void maq_radix_remove(struct maq_radix_tree *t, uint32_t node);
/* It comes to the GPU or leaves it; its tokens. */
int64_t maq_radix_put_on_gpu(struct maq_radix_tree *t, uint32_t node, bool there);

/* Tokens that two contents have in common, at most `most`. */
int64_t maq_content_common(const struct maq_content *a, const struct maq_content *b, int64_t most);
/* What `tokens` tokens from token `first` on are, whatever is before them. */
uint64_t maq_content_page(const struct maq_content *content, int64_t first, int32_t tokens);

#endif
