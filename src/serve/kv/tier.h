/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier.h - a store of keys and values behind the GPU's blocks: host memory, an SSD, a pool that replicas share.
 *
 * It holds chunks, each one or several blocks of the GPU's cache, under the hash of the prefix that ends with them. What is in it and who goes
 * first is all that is decided here; when bytes move, and over what, is not.
 *
 *   offer() --> [ being written ] --written()--> [ ready ] --pin()--> [ being read ] --unpin()--> [ ready ] --> evicted for another
 *
 * Only what is ready and not being read can be evicted. Which goes first:
 *
 *   LRU   by the request that had it last. All chunks of a request have its place in that order while it is under way, and a new place when it
 *         has ended; within a request the tail goes before the head, since a prefix is of use only from its beginning
 *   ARC   chunks that one request had (T1) and that several had (T2), each by use, and the keys of what was evicted from either (B1, B2):
 *         one that comes again and is among B1 (B2) makes T1's share of the chunks grow (shrink)
 *
 * The rules are those of vLLM 0.33.0 (v1/kv_offload/cpu/manager.py, cpu/policies/lru.py and arc.py); ARC is Megiddo and Modha, FAST 2003.
 */
#ifndef MAQ_SERVE_KV_TIER_H
#define MAQ_SERVE_KV_TIER_H

#include "maquette/serve_kv_tiers.h"

#define MAQ_TIER_NONE UINT32_MAX

/* The lists of ARC; LRU knows none of them. GHOSTs are keys of what was evicted. */
enum maq_tier_list { MAQ_TIER_T1, MAQ_TIER_T2, MAQ_TIER_GHOST1, MAQ_TIER_GHOST2, MAQ_TIER_LISTS };

/* The order in which LRU evicts: the least first. */
struct maq_tier_rank {
    uint64_t of; /* a request's, or its own */
    int64_t place;
};

struct maq_tier_chunk {
    uint64_t key;
    struct maq_tier_rank rank;
    uint64_t user;         /* the request that had it brought here from the tier `origin` */
    int32_t refs;          /* readers; -1: it is being written */
    uint32_t bucket, heap; /* the next of its bucket; its place in the heap from 1 on, 0 = not there */
    uint32_t prev, next;   /* in its list */
    uint32_t offer;        /* the last offer that it was in: such a one is not evicted for it */
    uint8_t list, origin;  /* enum maq_tier_list; enum maq_tier_kind */
    bool loading;          /* is on its way to the GPU */
};

struct maq_tier {
    struct maq_tier_chunk *at; /* [n_slots] */
    uint32_t n_slots, slots_size, free;
    uint32_t *table, mask; /* first chunks by key */
    uint32_t *heap, n_heap, heap_size;
    uint32_t head[MAQ_TIER_LISTS], tail[MAQ_TIER_LISTS], length[MAQ_TIER_LISTS]; /* the least recent at the head */
    int64_t capacity, n;                                                         /* chunks; that are there */
    int64_t evictable, writing;
    double share;       /* ARC: chunks that T1 is to have */
    uint64_t last_rank; /* that was given */
    uint32_t entries, offers;
    uint64_t evicted; /* counted */
    uint8_t policy;   /* enum maq_tier_policy */
    bool failed;      /* out of memory */
};

/* capacity: chunks. To be ended even on failure. */
enum maq_status maq_tier_init(struct maq_tier *tier, int64_t capacity, enum maq_tier_policy policy);
void maq_tier_fini(struct maq_tier *tier);

/*
 * What a tier remembers of a request: which of its chunks it has seen, and what became of them. `keys` are those of all its chunks from its
 * beginning on; a chunk is called by its number there.
 */
enum { MAQ_TIER_SEEN = 1, MAQ_TIER_INSERTED = 2, MAQ_TIER_REUSED = 4, MAQ_TIER_MISSED = 8 };
struct maq_tier_user {
    uint64_t id;
    const uint64_t *keys;
    uint8_t *marks; /* [keys] */
    uint64_t rank;  /* 0 = it has none yet */
};

/* The chunk with a key, ready or not; MAQ_TIER_NONE. */
uint32_t maq_tier_find(const struct maq_tier *tier, uint64_t key);
static inline bool maq_tier_is_ready(const struct maq_tier *tier, uint32_t chunk)
{
    return tier->at[chunk].refs >= 0;
}

/*
 * Chunks `which` ([n], ascending) of a request are offered: those that are not there find room, at the expense of others, and are being written
 * then. taken: those, in their order; it may be `which` itself. False: there is no room for all of them, and none is taken.
 */
bool maq_tier_offer(struct maq_tier *tier, struct maq_tier_user *user, const uint32_t *which, uint32_t n,
                    uint32_t *taken, uint32_t *n_taken);
void maq_tier_written(struct maq_tier *tier, uint64_t key);
/* It never will be: it is not there. */
void maq_tier_forget(struct maq_tier *tier, uint64_t key);

/* Read for a request, whose use it is; read for another tier, which is nobody's use. */
void maq_tier_pin_for(struct maq_tier *tier, struct maq_tier_user *user, uint32_t which);
void maq_tier_pin(struct maq_tier *tier, uint64_t key);
void maq_tier_unpin(struct maq_tier *tier, uint64_t key);

/* A request has ended: what it had, of `n` chunks, was used now. */
void maq_tier_user_ended(struct maq_tier *tier, const struct maq_tier_user *user, uint32_t n);

/* A tier of no requests: a key is offered by itself, false: there is no room; was used now. */
bool maq_tier_put(struct maq_tier *tier, uint64_t key);
void maq_tier_use(struct maq_tier *tier, uint64_t key);

/* ---- tier_order.c: who goes first ---- */

void maq_tier_order_insert(struct maq_tier *tier, uint32_t chunk, struct maq_tier_rank rank);
/* It can be evicted from now on, or cannot. */
void maq_tier_order_open(struct maq_tier *tier, uint32_t chunk);
void maq_tier_order_close(struct maq_tier *tier, uint32_t chunk);
void maq_tier_order_rank(struct maq_tier *tier, uint32_t chunk, struct maq_tier_rank rank);
/* Makes room of n chunks that are not in the offer of now; false: there are not so many, and nothing is changed. */
bool maq_tier_order_evict(struct maq_tier *tier, uint32_t n);
/* ARC: a key comes that is not there; a request has ended with a chunk that it brought (or had found there). */
void maq_tier_order_missed(struct maq_tier *tier, uint64_t key);
void maq_tier_order_ended(struct maq_tier *tier, uint32_t chunk, bool brought, bool reused);

/* ---- tier.c, for tier_order.c ---- */

uint32_t maq_tier_any(const struct maq_tier *tier, uint64_t key); /* a ghost, too */
void maq_tier_drop(struct maq_tier *tier, uint32_t chunk);

#endif
