/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier.c - chunks by key, what is offered and read. The table is a chained hash through the chunks; all operations are of constant time but those of the
 * heap in which LRU keeps what can be evicted, of which they are logarithmic.
 */
#include "serve/kv/tier.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/bug.h"

/* ---- the table ---- */

static bool rehash(struct maq_tier *t, uint32_t mask)
{
    uint32_t *table = maq__malloc(((size_t)mask + 1) * sizeof *table);
    if (!table) {
        t->failed = true;
        return false;
    }
    for (uint32_t i = 0; i <= mask; i++)
        table[i] = MAQ_TIER_NONE;
    for (uint32_t i = 0; t->table && i <= t->mask; i++)
        for (uint32_t c = t->table[i], next; c != MAQ_TIER_NONE; c = next) {
            next = t->at[c].bucket;
            t->at[c].bucket = table[t->at[c].key & mask];
            table[t->at[c].key & mask] = c;
        }
    free(t->table);
    t->table = table;
    t->mask = mask;
    return true;
}

uint32_t maq_tier_any(const struct maq_tier *t, uint64_t key)
{
    uint32_t c = t->table[key & t->mask];
    while (c != MAQ_TIER_NONE && t->at[c].key != key)
        c = t->at[c].bucket;
    return c;
}

static bool is_ghost(const struct maq_tier_chunk *c)
{
    return c->list == MAQ_TIER_GHOST1 || c->list == MAQ_TIER_GHOST2;
}

uint32_t maq_tier_find(const struct maq_tier *t, uint64_t key)
{
    uint32_t c = maq_tier_any(t, key);
    return c != MAQ_TIER_NONE && is_ghost(&t->at[c]) ? MAQ_TIER_NONE : c;
}

static uint32_t new_chunk(struct maq_tier *t, uint64_t key)
{
    uint32_t c = t->free;
    if (c != MAQ_TIER_NONE)
        t->free = t->at[c].next;
    else if (maq__grow((void **)&t->at, &t->slots_size, t->n_slots, sizeof *t->at))
        c = t->n_slots++;
    if (c == MAQ_TIER_NONE || (t->entries >= t->mask && !rehash(t, t->mask * 2 + 1))) {
        t->failed = true;
        return MAQ_TIER_NONE;
    }
    t->entries++;
    t->at[c] = (struct maq_tier_chunk){.key = key, .list = MAQ_TIER_LISTS, .bucket = t->table[key & t->mask]};
    t->table[key & t->mask] = c;
    return c;
}

void maq_tier_drop(struct maq_tier *t, uint32_t chunk)
{
    uint32_t *at = &t->table[t->at[chunk].key & t->mask];
    while (*at != chunk)
        at = &t->at[*at].bucket;
    *at = t->at[chunk].bucket;
    t->at[chunk].next = t->free;
    t->free = chunk;
    t->entries--;
}

/* ---- begin and end ---- */

enum maq_status maq_tier_init(struct maq_tier *t, int64_t capacity, enum maq_tier_policy policy)
{
    *t = (struct maq_tier){.free = MAQ_TIER_NONE, .capacity = capacity, .policy = (uint8_t)policy};
    for (int i = 0; i < MAQ_TIER_LISTS; i++)
        t->head[i] = t->tail[i] = MAQ_TIER_NONE;
    return rehash(t, 255) ? MAQ_OK : MAQ_NO_MEMORY;
}

void maq_tier_fini(struct maq_tier *t)
{
    free(t->at);
    free(t->table);
    free(t->heap);
    *t = (struct maq_tier){0};
}

/* ---- who had what ---- */

static struct maq_tier_rank rank_for(struct maq_tier *t, struct maq_tier_user *u, uint32_t which)
{
    if (u->rank == 0)
        u->rank = ++t->last_rank;
    return (struct maq_tier_rank){u->rank, -(int64_t)which - 1};
}

static bool ranks_before(struct maq_tier_rank a, struct maq_tier_rank b)
{
    return a.of != b.of ? a.of < b.of : a.place < b.place;
}

/* A request has come across a chunk, for the first time: it has its place in the order now, unless a later one. */
static void see(struct maq_tier *t, struct maq_tier_user *u, uint32_t which)
{
    if (u->marks[which] & MAQ_TIER_SEEN)
        return;
    u->marks[which] |= MAQ_TIER_SEEN;
    struct maq_tier_rank rank = rank_for(t, u, which);
    uint32_t c = maq_tier_find(t, u->keys[which]);
    if (c != MAQ_TIER_NONE && ranks_before(t->at[c].rank, rank))
        maq_tier_order_rank(t, c, rank);
}

static void reuse(struct maq_tier *t, struct maq_tier_user *u, uint32_t which)
{
    see(t, u, which);
    if (!(u->marks[which] & MAQ_TIER_INSERTED))
        u->marks[which] |= MAQ_TIER_REUSED;
}

void maq_tier_user_ended(struct maq_tier *t, const struct maq_tier_user *u, uint32_t n)
{
    for (uint32_t i = n; i-- > 0;) { /* the head is the last to go */
        uint32_t c = u->marks[i] & MAQ_TIER_SEEN ? maq_tier_find(t, u->keys[i]) : MAQ_TIER_NONE;
        if (c == MAQ_TIER_NONE)
            continue;
        maq_tier_order_rank(t, c, (struct maq_tier_rank){++t->last_rank, 0});
        maq_tier_order_ended(t, c, u->marks[i] & MAQ_TIER_INSERTED, u->marks[i] & MAQ_TIER_REUSED);
    }
}

/* ---- offers ---- */

/* Chunks that are not there; what is there stays for this offer. */
static uint32_t list_new(struct maq_tier *t, struct maq_tier_user *u, const uint32_t *which, uint32_t n, uint32_t *out)
{
    uint32_t n_new = 0;
    t->offers++;
    for (uint32_t i = n; i-- > 0;) { /* as ARC learns of them */
        uint32_t w = which[i];
        if (maq_tier_find(t, u->keys[w]) == MAQ_TIER_NONE && !(u->marks[w] & MAQ_TIER_MISSED)) {
            maq_tier_order_missed(t, u->keys[w]);
            u->marks[w] |= MAQ_TIER_MISSED;
        }
    }
    for (uint32_t i = 0; i < n; i++) {
        uint32_t w = which[i], c = maq_tier_find(t, u->keys[w]);
        if (c == MAQ_TIER_NONE) {
            see(t, u, w);
            out[n_new++] = w;
            continue;
        }
        t->at[c].offer = t->offers;
        if (maq_tier_is_ready(t, c))
            reuse(t, u, w);
    }
    return n_new;
}

/* A chunk is being written from now on, which has room. */
static void insert(struct maq_tier *t, uint64_t key, struct maq_tier_rank rank)
{
    uint32_t c = maq_tier_any(t, key);
    if (c == MAQ_TIER_NONE)
        c = new_chunk(t, key);
    if (c == MAQ_TIER_NONE)
        return;
    t->at[c].refs = -1;
    t->at[c].offer = t->offers;
    t->at[c].origin = MAQ_TIER_HOST;
    t->at[c].user = 0;
    t->at[c].loading = false;
    maq_tier_order_insert(t, c, rank);
    t->n++;
    t->writing++;
}

static bool make_room(struct maq_tier *t, uint32_t n)
{
    int64_t over = t->n + n - t->capacity;
    if (over <= 0)
        return true;
    if (over > t->evictable || !maq_tier_order_evict(t, (uint32_t)over))
        return false;
    t->evicted += (uint64_t)over;
    return true;
}

bool maq_tier_offer(struct maq_tier *t, struct maq_tier_user *u, const uint32_t *which, uint32_t n, uint32_t *taken,
                    uint32_t *n_taken)
{
    uint32_t n_new = list_new(t, u, which, n, taken);
    *n_taken = 0;
    if (n_new > 0 && !make_room(t, n_new))
        return false;
    for (uint32_t i = 0; i < n_new; i++) {
        insert(t, u->keys[taken[i]], rank_for(t, u, taken[i]));
        u->marks[taken[i]] |= MAQ_TIER_INSERTED;
    }
    *n_taken = n_new;
    return true;
}

void maq_tier_written(struct maq_tier *t, uint64_t key)
{
    uint32_t c = maq_tier_find(t, key);
    if (c == MAQ_TIER_NONE || maq_tier_is_ready(t, c))
        return;
    t->at[c].refs = 0;
    t->writing--;
    t->evictable++;
    maq_tier_order_open(t, c);
}

/* LRU's alone: of the lists of ARC it would have to be taken out. */
void maq_tier_forget(struct maq_tier *t, uint64_t key)
{
    uint32_t c = maq_tier_find(t, key);
    MAQ_ASSERT(t->policy == MAQ_TIER_LRU && c != MAQ_TIER_NONE && !maq_tier_is_ready(t, c));
    maq_tier_drop(t, c);
    t->n--;
    t->writing--;
}

/* ---- readers ---- */

void maq_tier_pin(struct maq_tier *t, uint64_t key)
{
    uint32_t c = maq_tier_find(t, key);
    MAQ_ASSERT(c != MAQ_TIER_NONE && maq_tier_is_ready(t, c));
    if (t->at[c].refs++ > 0)
        return;
    t->evictable--;
    maq_tier_order_close(t, c);
}

void maq_tier_pin_for(struct maq_tier *t, struct maq_tier_user *u, uint32_t which)
{
    maq_tier_pin(t, u->keys[which]);
    reuse(t, u, which);
}

void maq_tier_unpin(struct maq_tier *t, uint64_t key)
{
    uint32_t c = maq_tier_find(t, key);
    MAQ_ASSERT(c != MAQ_TIER_NONE && t->at[c].refs > 0);
    if (--t->at[c].refs > 0)
        return;
    t->evictable++;
    maq_tier_order_open(t, c);
}

/* ---- of no requests ---- */

bool maq_tier_put(struct maq_tier *t, uint64_t key)
{
    t->offers++;
    if (!make_room(t, 1))
        return false;
    insert(t, key, (struct maq_tier_rank){++t->last_rank, 0});
    return true;
}

void maq_tier_use(struct maq_tier *t, uint64_t key)
{
    uint32_t c = maq_tier_find(t, key);
    if (c != MAQ_TIER_NONE)
        maq_tier_order_rank(t, c, (struct maq_tier_rank){++t->last_rank, 0});
}
