/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tier_order.c - who goes first: a heap of what can be evicted for LRU, lists of chunks and of keys for ARC.
 *
 * ARC has chunks in T1 or T2 whether they can be evicted or not, and looks for the first that can. Its target, the chunks that T1 is to have, moves by the
 * relative lengths of the lists of what was evicted: +max(1, |B2| / |B1|) for a key among B1, -max(1, |B1| / |B2|) for one among B2.
 */
#include "base/alloc.h"
#include "base/bug.h"
#include "serve/kv/tier.h"

/* ---- the heap ---- */

static bool before(const struct maq_tier *t, uint32_t a, uint32_t b)
{
    const struct maq_tier_rank *x = &t->at[a].rank, *y = &t->at[b].rank;
    return x->of != y->of ? x->of < y->of : x->place < y->place;
}

static void put(struct maq_tier *t, uint32_t place, uint32_t chunk)
{
    t->heap[place] = chunk;
    t->at[chunk].heap = place + 1;
}

static void settle(struct maq_tier *t, uint32_t place, uint32_t chunk)
{
    while (place > 0 && before(t, chunk, t->heap[(place - 1) / 2])) {
        put(t, place, t->heap[(place - 1) / 2]);
        place = (place - 1) / 2;
    }
    for (;;) {
        uint32_t c = 2 * place + 1;
        if (c + 1 < t->n_heap && before(t, t->heap[c + 1], t->heap[c]))
            c++;
        if (c >= t->n_heap || !before(t, t->heap[c], chunk))
            break;
        put(t, place, t->heap[c]);
        place = c;
    }
    put(t, place, chunk);
}

static void leave_heap(struct maq_tier *t, uint32_t chunk)
{
    uint32_t place = t->at[chunk].heap, last = t->heap[t->n_heap - 1];
    MAQ_ASSERT(place > 0);
    t->at[chunk].heap = 0;
    t->n_heap--;
    if (last != chunk)
        settle(t, place - 1, last);
}

static void enter_heap(struct maq_tier *t, uint32_t chunk)
{
    if (!maq__grow((void **)&t->heap, &t->heap_size, t->n_heap, sizeof *t->heap)) {
        t->failed = true;
        return;
    }
    t->n_heap++;
    settle(t, t->n_heap - 1, chunk);
}

/* ---- the lists ---- */

static void leave_list(struct maq_tier *t, uint32_t chunk)
{
    struct maq_tier_chunk *c = &t->at[chunk];
    if (c->list == MAQ_TIER_LISTS)
        return;
    *(c->prev == MAQ_TIER_NONE ? &t->head[c->list] : &t->at[c->prev].next) = c->next;
    *(c->next == MAQ_TIER_NONE ? &t->tail[c->list] : &t->at[c->next].prev) = c->prev;
    t->length[c->list]--;
    c->list = MAQ_TIER_LISTS;
}

/* To the end of a list, where the most recent are. */
static void enter_list(struct maq_tier *t, uint32_t chunk, enum maq_tier_list list)
{
    struct maq_tier_chunk *c = &t->at[chunk];
    leave_list(t, chunk);
    c->list = (uint8_t)list;
    c->prev = t->tail[list];
    c->next = MAQ_TIER_NONE;
    *(c->prev == MAQ_TIER_NONE ? &t->head[list] : &t->at[c->prev].next) = chunk;
    t->tail[list] = chunk;
    t->length[list]++;
}

/* ---- both ---- */

void maq_tier_order_insert(struct maq_tier *t, uint32_t chunk, struct maq_tier_rank rank)
{
    t->at[chunk].rank = rank;
    if (t->policy == MAQ_TIER_ARC)
        enter_list(t, chunk, MAQ_TIER_T1);
}

void maq_tier_order_open(struct maq_tier *t, uint32_t chunk)
{
    if (t->policy == MAQ_TIER_LRU)
        enter_heap(t, chunk);
}

void maq_tier_order_close(struct maq_tier *t, uint32_t chunk)
{
    if (t->policy == MAQ_TIER_LRU)
        leave_heap(t, chunk);
}

void maq_tier_order_rank(struct maq_tier *t, uint32_t chunk, struct maq_tier_rank rank)
{
    t->at[chunk].rank = rank;
    if (t->at[chunk].heap > 0)
        settle(t, t->at[chunk].heap - 1, chunk);
}

void maq_tier_order_missed(struct maq_tier *t, uint64_t key)
{
    uint32_t c = t->policy == MAQ_TIER_ARC ? maq_tier_any(t, key) : MAQ_TIER_NONE;
    if (c == MAQ_TIER_NONE)
        return;
    bool first = t->at[c].list == MAQ_TIER_GHOST1;
    double b1 = t->length[MAQ_TIER_GHOST1], b2 = t->length[MAQ_TIER_GHOST2], all = (double)t->capacity,
           delta = first ? b2 / b1 : b1 / b2;
    delta = delta > 1 ? delta : 1;
    t->share += first ? delta : -delta;
    t->share = t->share < 0 ? 0 : t->share > all ? all : t->share;
    enter_list(t, c, (enum maq_tier_list)t->at[c].list);
}

void maq_tier_order_ended(struct maq_tier *t, uint32_t chunk, bool brought, bool reused)
{
    if (t->policy == MAQ_TIER_ARC && (reused || brought))
        enter_list(t, chunk, reused ? MAQ_TIER_T2 : (enum maq_tier_list)t->at[chunk].list);
}

/* ---- eviction ---- */

static bool evict_lru(struct maq_tier *t, uint32_t n)
{
    uint32_t spared = MAQ_TIER_NONE, kept = 0, open = 0; /* of this offer: through their `next` */
    for (uint32_t i = 0; i < t->n_heap && open < n; i++)
        open += t->at[t->heap[i]].offer != t->offers;
    if (open < n)
        return false;
    while (kept < n) {
        uint32_t c = t->heap[0];
        leave_heap(t, c);
        if (t->at[c].offer == t->offers) {
            t->at[c].next = spared;
            spared = c;
            continue;
        }
        maq_tier_drop(t, c);
        kept++;
    }
    for (uint32_t c = spared, next; c != MAQ_TIER_NONE; c = next) {
        next = t->at[c].next;
        enter_heap(t, c);
    }
    return true;
}

/* The first of a list from *at on that can be evicted; *at is behind it then. */
static uint32_t next_open(const struct maq_tier *t, uint32_t *at)
{
    while (*at != MAQ_TIER_NONE) {
        uint32_t c = *at;
        *at = t->at[c].next;
        if (t->at[c].refs == 0 && t->at[c].offer != t->offers)
            return c;
    }
    return MAQ_TIER_NONE;
}

/* Which of the two lists each of the n comes from, in `from`, as far as it is looked at; false: there are not so many. */
static bool choose_arc(struct maq_tier *t, uint32_t n, uint32_t *chosen)
{
    uint32_t one = t->head[MAQ_TIER_T1], two = t->head[MAQ_TIER_T2], left = t->length[MAQ_TIER_T1];
    for (uint32_t i = 0; i < n; i++) {
        uint32_t c = left >= (uint32_t)t->share ? next_open(t, &one) : MAQ_TIER_NONE;
        bool first = c != MAQ_TIER_NONE;
        if (c == MAQ_TIER_NONE)
            c = next_open(t, &two);
        if (c == MAQ_TIER_NONE) {
            c = next_open(t, &one);
            first = c != MAQ_TIER_NONE;
        }
        if (c == MAQ_TIER_NONE)
            return false;
        left -= first;
        chosen[i] = c;
    }
    return true;
}

static void trim_ghosts(struct maq_tier *t, enum maq_tier_list list)
{
    while ((int64_t)t->length[list] > t->capacity) {
        uint32_t c = t->head[list];
        leave_list(t, c);
        maq_tier_drop(t, c);
    }
}

static bool evict_arc(struct maq_tier *t, uint32_t n)
{
    while (t->heap_size < n)
        if (!maq__grow((void **)&t->heap, &t->heap_size, t->heap_size, sizeof *t->heap)) {
            t->failed = true;
            return false;
        }
    if (!choose_arc(t, n, t->heap)) /* the heap is LRU's, so there is room for them there */
        return false;
    for (uint32_t i = 0; i < n; i++)
        enter_list(t, t->heap[i], t->at[t->heap[i]].list == MAQ_TIER_T1 ? MAQ_TIER_GHOST1 : MAQ_TIER_GHOST2);
    trim_ghosts(t, MAQ_TIER_GHOST1);
    trim_ghosts(t, MAQ_TIER_GHOST2);
    return true;
}

bool maq_tier_order_evict(struct maq_tier *t, uint32_t n)
{
    if (!(t->policy == MAQ_TIER_ARC ? evict_arc(t, n) : evict_lru(t, n)))
        return false;
    t->n -= n;
    t->evictable -= n;
    return true;
}
