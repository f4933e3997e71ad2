/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_cache.h - the KV cache of one engine: which blocks each request holds, in each group of layers.
 *
 * Layers that keep the same tokens form a group, and each group has a table of blocks for every request:
 *
 *   FULL     all tokens
 *   WINDOW   the last `window` tokens; blocks that left it are given back as the request goes on
 *   CHUNK    the tokens of the current chunk of `window` tokens (Llama 4)
 *   STATE    one block, whatever the length, with the state of a recurrent layer
 *
 * All groups take their blocks from one pool. Tables may have different block sizes; a prefix that is found counts only as far as all
 * groups have it, in steps of the largest common block (`step`), and at most to the last token but one, since the last has to be
 * computed to sample from it.
 *
 * As long as nobody could find another's block, or its own again, which block is whose makes no difference: a cache of one group of kind
 * FULL that `counts` only counts them, until a request comes whose beginning others may have, or one is preempted (number()).
 *
 * The rules are those of vLLM 0.33.0 (v1/core/kv_cache_manager.py, kv_cache_coordinator.py, single_type_kv_cache_manager.py).
 */
#ifndef MAQ_SERVE_KV_KV_CACHE_H
#define MAQ_SERVE_KV_KV_CACHE_H

#include "serve/kv/block_pool.h"
#include "serve/kv/content.h"

#define MAQ_KV_MOST_GROUPS 32u

enum maq_kv_kind { MAQ_KV_FULL, MAQ_KV_WINDOW, MAQ_KV_CHUNK, MAQ_KV_STATE };

struct maq_kv_group {
    uint8_t kind;       /* enum maq_kv_kind */
    int32_t block_size; /* tokens of a block */
    int64_t window;     /* tokens of the window or chunk */
    int32_t spare;      /* STATE: further blocks of a request, for states behind draft tokens */
};

struct maq_kv_cache;
struct maq_kv_request;

struct maq_kv_options {
    const struct maq_kv_group *groups; /* copied */
    uint32_t n_groups, blocks;
    bool caching;    /* prefixes are kept and found */
    bool drops_last; /* the last block of a prefix that is found is computed again (EAGLE, MTP) */
    int32_t
        hash_ahead; /* tokens behind a block that its hash covers: what a drafter keeps of its last token is made of them, too. 0 = none */
    bool hash_all;     /* of all full blocks there are hashes, also of those that nobody could look for in this cache */
    int64_t max_len;   /* tokens of a request at most */
    int64_t in_flight; /* tokens of steps that run at once, at most */
    double watermark;  /* share of the blocks that stay free when a request is taken in */
    bool counts;       /* blocks have no numbers as long as they need none; who has the cache sets `each` then */
};

/* Blocks of one request in one group; the numbers of those that it no longer needs are MAQ_KV_NO_BLOCK. */
struct maq_kv_table {
    uint32_t *block;
    uint32_t n, size;
    int32_t cached; /* blocks from the beginning that were offered to the prefix cache; -1: none ever was */
};

/* What the cache knows of a request. Zeroed before its first use; buffers stay with it until maq_kv_request_fini(). */
struct maq_kv_request {
    struct maq_content content;
    struct maq_kv_table *table; /* [n_groups] */
    uint64_t *hashes; /* of its beginning, in steps of hash_block tokens, as far as somebody could look for it */
    uint32_t n_hashes, hash_size;
    uint32_t n_shared; /* hashes that others can have as well */
    bool comes_back;   /* it can look for its own blocks */
};

/* Blocks of a prefix that was found, in each group; valid until the next search. */
struct maq_kv_hit {
    uint32_t *block;
    uint32_t n, size;
};

struct maq_kv_cache {
    struct maq_block_pool pool;
    struct maq_kv_group group[MAQ_KV_MOST_GROUPS];
    int64_t cap[MAQ_KV_MOST_GROUPS]; /* blocks that one request can hold at a time; 0 = no such bound */
    uint32_t n_groups;
    uint8_t order[MAQ_KV_MOST_GROUPS],
        alike[MAQ_KV_MOST_GROUPS]; /* searched together: groups of equal rules, FULL first */
    uint32_t n_kinds;
    bool caching, drops_last;
    bool forgets; /* some group does not keep all tokens */
    bool hash_all;
    int32_t hash_ahead;
    int32_t hash_block, step; /* greatest and least common size of the groups' blocks */
    int64_t max_len;
    uint32_t watermark; /* blocks */
    struct maq_kv_hit hit[MAQ_KV_MOST_GROUPS];
    uint32_t *scratch; /* blocks on their way back to the pool */
    uint32_t scratch_size;
    bool counted; /* blocks have no numbers: tables say how many there are */
    void (*each)(void *user, void (*visit)(struct maq_kv_cache *cache, struct maq_kv_request *request));
    void *user;  /* each: visits all requests that may hold blocks */
    bool failed; /* out of memory: what was done is not to be relied on; look once after each step */
};

enum maq_status maq_kv_init(struct maq_kv_cache *cache, const struct maq_kv_options *options);
void maq_kv_fini(struct maq_kv_cache *cache);

/* Makes `request` empty, with this content; false when out of memory. */
bool maq_kv_request_begin(struct maq_kv_cache *cache, struct maq_kv_request *request,
                          const struct maq_content *content);
void maq_kv_request_fini(const struct maq_kv_cache *cache, struct maq_kv_request *request);

/* Hashes of the full blocks of its first `tokens` tokens, in request->hashes; false when out of memory. With hash_all only. */
bool maq_kv_hash_up_to(struct maq_kv_cache *cache, struct maq_kv_request *request, int64_t tokens);

/* Tokens of the longest prefix of a request of `tokens` known tokens that is cached, at most `most`; its blocks in cache->hit. */
int64_t maq_kv_find(struct maq_kv_cache *cache, struct maq_kv_request *request, int64_t tokens, int64_t most);

struct maq_kv_need {
    int64_t tokens;    /* known: of the prompt, and sampled */
    int64_t computed;  /* before this step, what was found (`found`) not counted */
    int64_t found;     /* tokens of the prefix in cache->hit; 0 = cache->hit is not looked at */
    int64_t added;     /* in this step, drafts counted */
    int64_t ahead;     /* slots beyond, for a draft model */
    int64_t in_flight; /* of `computed`: tokens of steps whose end has not been seen */
    bool whole_fits;   /* only if all known tokens would find room */
    bool keeps_free;   /* and the watermark stays free */
    int64_t spared;    /* and, of what is added, so many blocks that others are sure to ask for */
    bool
        filled_later; /* what is added is offered to the prefix cache when it is there, by maq_kv_keep(), and not now */
};
/* Gives a request the blocks that it needs for a step, or returns false and changes nothing but what it gives back. */
bool maq_kv_allocate(struct maq_kv_cache *cache, struct maq_kv_request *request, const struct maq_kv_need *need);

/* Blocks of the only group until the request has n; false when out of memory. There must be enough. */
bool maq_kv_extend(struct maq_kv_cache *cache, struct maq_kv_request *request, int64_t n);

/* Offers the first `computed` of `tokens` known tokens to the prefix cache: what is full of them. */
void maq_kv_keep(struct maq_kv_cache *cache, struct maq_kv_request *request, int64_t computed, int64_t tokens);

/* Blocks that a request holds. */
int64_t maq_kv_held(const struct maq_kv_cache *cache, const struct maq_kv_request *request);

/* Gives back what nobody looks at any more when `computed` tokens are computed. */
void maq_kv_trim(struct maq_kv_cache *cache, struct maq_kv_request *request, int64_t computed);

/* Gives all blocks of a request back, the last ones to be reused first. */
void maq_kv_release(struct maq_kv_cache *cache, struct maq_kv_request *request);
/* The same of a request of `tokens` known tokens that comes back later: what it offered to the prefix cache can be found by it. */
void maq_kv_preempt(struct maq_kv_cache *cache, struct maq_kv_request *request, int64_t tokens);

/* ---- kv_rules.c: what distinguishes the kinds of groups ---- */

/* Tokens from the beginning that nobody looks at when `computed` are computed. */
int64_t maq_kv_skipped(const struct maq_kv_group *group, int64_t computed);
/* Blocks that one request can hold at a time; 0 = no such bound. */
int64_t maq_kv_cap(const struct maq_kv_group *group, int64_t in_flight, int64_t max_len);
/*
 * The longest cached prefix of at most `most` tokens in the groups that are like `first`, into cache->hit; drop: its last block is taken
 * off again. Tokens.
 */
int64_t maq_kv_find_alike(struct maq_kv_cache *cache, const struct maq_kv_request *request, uint32_t first,
                          int64_t most, bool drop);
/* Whether a full block of a group can ever end up in a prefix that is found: block `i` of the request. */
bool maq_kv_reachable(const struct maq_kv_cache *cache, const struct maq_kv_group *group, int64_t i);
/* The key of a prefix in a group. */
uint64_t maq_kv_key(uint64_t hash, uint32_t group);
/* Block i of a group is about to be looked at: the table of keys is larger than a processor's cache. */
void maq_kv_expect(const struct maq_kv_cache *cache, const struct maq_kv_request *request, uint32_t group, int64_t i,
                   int64_t hashes_per_block);

#endif
