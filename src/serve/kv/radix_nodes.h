/* SPDX-License-Identifier: Apache-2.0 */
/*
 * radix_nodes.h - the nodes of a radix tree, who of them is on the GPU, on the host or on both, and which leaves go first.
 *
 *   radix_tree.h   looks beginnings up and adds them
 *   radix_host.h   copies nodes to host memory and back
 *   this           is what both stand on; it knows neither
 */
#ifndef MAQ_SERVE_KV_RADIX_NODES_H
#define MAQ_SERVE_KV_RADIX_NODES_H

#include "maquette/serve.h"
#include "serve/kv/content.h"

#define MAQ_RADIX_ROOT 0u
#define MAQ_RADIX_NONE UINT32_MAX
#define MAQ_RADIX_TICK ((int64_t)1 << 20) /* of the clock, for a use: more than a path has nodes */

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

/* Without a node but the root. */
enum maq_status maq_radix_nodes_init(struct maq_radix_tree *t, int32_t page, enum maq_radix_eviction eviction);
void maq_radix_nodes_fini(struct maq_radix_tree *t);

/* The child of a node that begins with a page of a content; MAQ_RADIX_NONE. */
uint32_t maq_radix_child(const struct maq_radix_tree *t, uint32_t parent, const struct maq_content *content,
                         int64_t first);
/* A new child of a node, on the GPU; MAQ_RADIX_NONE when out of memory. */
uint32_t maq_radix_add(struct maq_radix_tree *t, uint32_t parent, const struct maq_content *content, int64_t begin,
                       int64_t end);
/* A node is cut at a token: the new one, in front of it; itself when out of memory. */
uint32_t maq_radix_split(struct maq_radix_tree *t, uint32_t node, int64_t at);

/* A node and all above it. */
void maq_radix_lock(struct maq_radix_tree *t, uint32_t node);
void maq_radix_unlock(struct maq_radix_tree *t, uint32_t node);

/* Tokens that could be evicted. */
int64_t maq_radix_evictable(const struct maq_radix_tree *t);

/* After anything about a node has changed that decides whether and when it is evicted. */
void maq_radix_settle(struct maq_radix_tree *t, uint32_t node);
/* A node that nobody locks and that has no children is not there any more. */
void maq_radix_remove(struct maq_radix_tree *t, uint32_t node);
/* It comes to the GPU or leaves it; its tokens. */
int64_t maq_radix_put_on_gpu(struct maq_radix_tree *t, uint32_t node, bool there);

#endif
