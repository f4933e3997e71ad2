/* SPDX-License-Identifier: Apache-2.0 */
/* swap.c - places in one array, a queue through them, a chained hash of their keys. */
#include "serve/kv/swap.h"

#include <stdlib.h>

#include "base/alloc.h"

#define HEAD 0u /* also "none" in a bucket */

/* ---- the queue ---- */

static void unlink_place(struct maq_swap *s, uint32_t place)
{
    s->at[s->at[place].prev].next = s->at[place].next;
    s->at[s->at[place].next].prev = s->at[place].prev;
}

static void link_last(struct maq_swap *s, uint32_t place)
{
    s->at[place].prev = s->at[HEAD].prev;
    s->at[place].next = HEAD;
    s->at[s->at[place].prev].next = place;
    s->at[HEAD].prev = place;
}

/* ---- keys ---- */

static uint32_t find(const struct maq_swap *s, uint64_t key)
{
    uint32_t place = s->table[key & s->mask];
    while (place != HEAD && s->at[place].key != key)
        place = s->at[place].bucket;
    return place;
}

static void enter(struct maq_swap *s, uint32_t place, uint64_t key)
{
    s->at[place].key = key;
    s->at[place].bucket = s->table[key & s->mask];
    s->table[key & s->mask] = place;
    s->used++;
}

static void empty(struct maq_swap *s, uint32_t place)
{
    uint32_t *at = &s->table[s->at[place].key & s->mask];
    while (*at != place)
        at = &s->at[*at].bucket;
    *at = s->at[place].bucket;
    s->at[place].key = 0;
    s->used--;
}

static bool rehash(struct maq_swap *s, uint32_t mask)
{
    uint32_t *table = maq__calloc(((size_t)mask + 1) * sizeof *table);
    if (!table)
        return false;
    free(s->table);
    s->table = table;
    s->mask = mask;
    for (uint32_t i = 1; i < s->n; i++) {
        if (s->at[i].key == 0)
            continue;
        s->at[i].bucket = table[s->at[i].key & mask];
        table[s->at[i].key & mask] = i;
    }
    return true;
}

/* ---- moving ---- */

/* The place at the front: one that was never used, or that of the queue. HEAD: none. */
static uint32_t first_place(struct maq_swap *s)
{
    if (s->n > s->capacity) {
        uint32_t place = s->at[HEAD].next;
        if (place != HEAD)
            unlink_place(s, place);
        return place;
    }
    if (!maq__grow((void **)&s->at, &s->size, s->n, sizeof *s->at) || (s->n > s->mask && !rehash(s, s->mask * 2 + 1))) {
        s->failed = true;
        return HEAD;
    }
    s->at[s->n] = (struct maq_swap_place){0};
    return s->n++;
}

void maq_swap_out(struct maq_swap *s, uint64_t key)
{
    if (find(s, key) != HEAD) /* another request has computed it again */
        return;
    uint32_t place = first_place(s);
    if (place == HEAD) {
        s->refused++;
        return;
    }
    if (s->at[place].key != 0) {
        empty(s, place);
        s->lost++;
    }
    enter(s, place, key);
    link_last(s, place);
    s->out++;
}

static void leaves(void *user, uint64_t key)
{
    maq_swap_out(user, key);
}

uint32_t maq_swap_claim(struct maq_swap *s, const struct maq_kv_request *r, int64_t from, int64_t most, int32_t block)
{
    s->n_claimed = 0;
    for (int64_t i = from; (i + 1) * block <= most && i < r->n_hashes; i++) {
        uint32_t place = find(s, maq_kv_key(r->hashes[i], 0));
        if (place == HEAD)
            break;
        if (!maq__grow((void **)&s->claimed, &s->claimed_size, s->n_claimed, sizeof *s->claimed)) {
            s->failed = true;
            break;
        }
        unlink_place(s, place);
        s->claimed[s->n_claimed++] = place;
    }
    return s->n_claimed;
}

void maq_swap_back(struct maq_swap *s)
{
    for (uint32_t i = 0; i < s->n_claimed; i++) {
        empty(s, s->claimed[i]);
        link_last(s, s->claimed[i]);
    }
    s->back += s->n_claimed;
    s->n_claimed = 0;
}

/* Each knows where it was, once those that left the queue after it are there again. */
void maq_swap_leave(struct maq_swap *s)
{
    while (s->n_claimed > 0) {
        uint32_t place = s->claimed[--s->n_claimed];
        s->at[s->at[place].prev].next = place;
        s->at[s->at[place].next].prev = place;
    }
}

/* ---- construction ---- */

enum maq_status maq_swap_init(struct maq_swap *s, int64_t places, struct maq_block_pool *pool)
{
    *s = (struct maq_swap){.capacity = places, .n = 1};
    if (!maq__grow((void **)&s->at, &s->size, 0, sizeof *s->at) || !rehash(s, 255))
        return MAQ_NO_MEMORY;
    s->at[HEAD] = (struct maq_swap_place){.prev = HEAD, .next = HEAD};
    pool->leaves = leaves;
    pool->user = s;
    return MAQ_OK;
}

void maq_swap_fini(struct maq_swap *s)
{
    free(s->at);
    free(s->table);
    free(s->claimed);
    *s = (struct maq_swap){0};
}
