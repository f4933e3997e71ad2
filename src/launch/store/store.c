/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - the keys of the rendezvous store: a hash table with values, counters and queues, and the rules by which
 * entries of absent ranks are given, counted or invented. See store.h.
 */
#include "launch/store/store.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/text.h"
#include "launch/store/gloo.h"
#include "shim/link.h"

#define KEYS_MAX (1u << 22)
#define COUNTED_MAX 24u /* characters of a number */

struct maq_store_item {
    struct maq_store_item *next;
    char *value;
    size_t n;
};

/* ---- keys ---- */

static uint32_t slot_of(const struct maq_store *s, struct maq_str key)
{
    uint32_t mask = s->size * 2 - 1, at = (uint32_t)maq_rec_hash(key.ptr, key.len, 0) & mask;
    while (s->table[at] != 0 && !maq_str_eq(s->keys[s->table[at] - 1].key, key))
        at = (at + 1) & mask;
    return at;
}

struct maq_store_key *maq_store_find(struct maq_store *s, struct maq_str key)
{
    uint32_t index = s->size > 0 ? s->table[slot_of(s, key)] : 0;
    return index > 0 ? &s->keys[index - 1] : NULL;
}

static bool grow(struct maq_store *s)
{
    uint32_t size = s->size ? s->size * 2 : 64;
    struct maq_store_key *keys = size <= KEYS_MAX ? maq__realloc(s->keys, size * sizeof *keys) : NULL;
    uint32_t *table = keys ? maq__calloc(size * 2 * sizeof *table) : NULL;
    if (keys)
        s->keys = keys;
    if (!table)
        return false;
    free(s->table);
    s->table = table;
    s->size = size;
    for (uint32_t i = 0; i < s->n; i++)
        s->table[slot_of(s, s->keys[i].key)] = i + 1;
    return true;
}

struct maq_store_key *maq_store_at(struct maq_store *s, struct maq_str key)
{
    struct maq_store_key *k = maq_store_find(s, key);
    char *name;
    if (k)
        return k;
    if ((s->n == s->size && !grow(s)) || !s->keys || !(name = maq__malloc(key.len + 1))) {
        s->failed = true;
        return NULL;
    }
    if (key.len > 0)
        memcpy(name, key.ptr, key.len);
    struct maq_str copy = {name, key.len};
    s->table[slot_of(s, copy)] = s->n + 1;
    s->keys[s->n] = (struct maq_store_key){.key = copy};
    return &s->keys[s->n++];
}

static bool put(struct maq_store *s, struct maq_store_key *k, const void *value, size_t n)
{
    char *copy = maq__malloc(n + 1);
    if (!copy) {
        s->failed = true;
        return false;
    }
    if (n > 0)
        memcpy(copy, value, n);
    free(k->value);
    k->value = copy;
    k->n = n;
    k->there = true;
    k->absent = false;
    s->changed = true;
    return true;
}

/*
 * The key is that of an absent rank of gloo, in a group of `ranks` (0: unknown). Its value has a number for every rank, and every rank
 * reads those of all others: of 8,192 ranks 512 MiB. So it is made when it is read. false: it is no such key.
 */
static bool put_absent(struct maq_store *s, struct maq_store_key *k, uint32_t ranks)
{
    uint32_t rank;
    if (!maq_gloo_rank_of(&rank, k->key) || (ranks > 0 && rank >= ranks))
        return false;
    k->ranks = ranks;
    k->absent = k->there = true;
    s->gloo = s->changed = true;
    return true;
}

struct maq_str maq_store_value(struct maq_store *s, const struct maq_store_key *k)
{
    size_t n = 0;
    if (!k->absent)
        return (struct maq_str){k->value, k->n};
    free(s->made);
    s->made = maq_gloo_absent(&n, k->key, k->ranks);
    s->failed = s->failed || !s->made;
    return (struct maq_str){s->made ? s->made : "", n};
}

void maq_store_give(struct maq_store *s, struct maq_str key, const void *value, size_t n)
{
    struct maq_store_key *k = maq_store_at(s, key);
    uint32_t ranks;
    if (k && !k->there)
        k->given =
            (maq_gloo_ranks(&ranks, (struct maq_str){value, n}) && put_absent(s, k, ranks)) || put(s, k, value, n);
    if (k && k->given)
        k->given_hash = maq_input_hash(value, n, true);
}

void maq_store_expect(struct maq_store *s, struct maq_str key)
{
    struct maq_store_key *k = maq_store_at(s, key);
    if (k)
        k->comes = true;
}

bool maq_store_lives(const struct maq_store *s, uint32_t rank)
{
    for (uint32_t i = 0; s->live_rank && i < s->live; i++)
        if (s->live_rank[i] == rank)
            return true;
    return false;
}

void maq_store_name(struct maq_store *s, struct maq_str key)
{
    struct maq_store_key *k = maq_store_at(s, key);
    if (k)
        k->asked = true;
}

void maq_store_set(struct maq_store *s, struct maq_str key, const void *value, size_t n)
{
    struct maq_store_key *k = maq_store_at(s, key);
    if (k && put(s, k, value, n))
        k->set = true;
}

void maq_store_append(struct maq_store *s, struct maq_str key, const void *value, size_t n)
{
    struct maq_store_key *k = maq_store_at(s, key);
    struct maq_buf whole;
    if (!k)
        return;
    maq_buf_init(&whole, SIZE_MAX / 2);
    if (k->there) {
        struct maq_str has = maq_store_value(s, k);
        maq_buf_add(&whole, has.ptr, has.len);
    }
    maq_buf_add(&whole, value, n);
    if (whole.failed)
        s->failed = true;
    else if (put(s, k, whole.ptr, whole.len))
        k->set = true;
    maq_buf_fini(&whole);
}

/* Counters are kept as decimal text, which a GET of them sees. */
int64_t maq_store_add(struct maq_store *s, struct maq_str key, int64_t by)
{
    struct maq_store_key *k = maq_store_at(s, key);
    char text[COUNTED_MAX];
    int64_t has = 0;
    if (!k)
        return 0;
    if (k->there && !maq_str_to_i64(&has, maq_store_value(s, k)))
        has = 0;
    if (by != 0 && !k->counted) {
        has = (int64_t)((uint64_t)has + (uint64_t)by * (s->world - s->live));
        k->counted = true;
    }
    has = (int64_t)((uint64_t)has + (uint64_t)by);
    k->added = (int64_t)((uint64_t)k->added + (uint64_t)by);
    int n = maq__snprintf(text, sizeof text, "%lld", (long long)has);
    put(s, k, text, (size_t)n);
    return has;
}

bool maq_store_delete(struct maq_store *s, struct maq_str key)
{
    struct maq_store_key *k = maq_store_find(s, key);
    bool was = k && k->there;
    if (was)
        k->there = false;
    return was;
}

struct maq_str maq_store_compare_set(struct maq_store *s, struct maq_str key, struct maq_str expected,
                                     struct maq_str desired)
{
    struct maq_store_key *k = maq_store_at(s, key);
    if (!k)
        return expected;
    if (!k->there && expected.len > 0)
        return expected; /* as the original answers */
    if ((!k->there || maq_str_eq(maq_store_value(s, k), expected)) && put(s, k, desired.ptr, desired.len))
        k->set = true;
    return maq_store_value(s, k);
}

bool maq_store_has(struct maq_store *s, struct maq_str key)
{
    const struct maq_store_key *k = maq_store_find(s, key);
    return k && (k->there || k->queue);
}

/* Whether a key of the same group of gloo is set, and the ranks of that group. */
static bool has_sibling(uint32_t *ranks, const struct maq_store *s, struct maq_str key)
{
    const struct maq_str group = maq_gloo_group(key);
    for (uint32_t i = group.ptr ? s->n : 0; i > 0; i--) { /* those made up last are likely of the same group */
        const struct maq_store_key *k = &s->keys[i - 1];
        if (!k->there || !maq_str_eq(group, maq_gloo_group(k->key)))
            continue;
        *ranks = k->ranks;
        if (k->absent || maq_gloo_ranks(ranks, (struct maq_str){k->value, k->n}))
            return true;
    }
    return false;
}

bool maq_store_nobody_comes(struct maq_store *s, struct maq_str key, bool late)
{
    const struct maq_store_key *k = maq_store_find(s, key);
    uint32_t rank, ranks;
    if (s->live == s->world || (k && k->comes))
        return false;
    if (!has_sibling(&ranks, s, key))
        return late;
    return !maq_gloo_rank_of(&rank, key) || ranks != s->world || !maq_store_lives(s, rank);
}

void maq_store_invent(struct maq_store *s, struct maq_str key)
{
    struct maq_store_key *k = maq_store_at(s, key);
    uint64_t value[MAQ_STORE_INVENTED / 8];
    uint32_t ranks;
    if (k && !k->there && has_sibling(&ranks, s, key) && put_absent(s, k, ranks)) {
        k->invented = true;
        s->invented++;
        return;
    }
    for (uint64_t i = 0; i < MAQ_COUNT(value); i++)
        value[i] = maq_rec_hash(key.ptr, key.len, i + 1);
    memcpy(value, MAQ_MADE_UP_MAGIC, sizeof *value);
    if (k && !k->there && put(s, k, value, sizeof value)) {
        k->invented = true;
        s->invented++;
    }
}

uint64_t maq_store_count(const struct maq_store *s)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        n += s->keys[i].there;
    return n;
}

/* ---- queues ---- */

void maq_store_push(struct maq_store *s, struct maq_str key, const void *value, size_t n)
{
    struct maq_store_key *k = maq_store_at(s, key);
    struct maq_store_item *item = k ? maq__calloc(sizeof *item) : NULL, **at;
    if (!item || !(item->value = maq__malloc(n + 1))) {
        free(item);
        s->failed = true;
        return;
    }
    if (n > 0)
        memcpy(item->value, value, n);
    item->n = n;
    for (at = &k->queue; *at;)
        at = &(*at)->next;
    *at = item;
    k->queued++;
    s->changed = true;
}

char *maq_store_pop(struct maq_store *s, struct maq_str key, size_t *n)
{
    struct maq_store_key *k = maq_store_find(s, key);
    struct maq_store_item *item = k ? k->queue : NULL;
    if (!item)
        return NULL;
    char *value = item->value;
    *n = item->n;
    k->queue = item->next;
    k->queued--;
    free(item);
    return value;
}

void maq_store_clear(struct maq_store *s)
{
    for (uint32_t i = 0; i < s->n; i++) {
        struct maq_store_key *k = &s->keys[i];
        size_t n;
        for (char *value; (value = maq_store_pop(s, k->key, &n));)
            free(value);
        free(k->value);
        free((void *)(uintptr_t)k->key.ptr);
    }
    free(s->keys);
    free(s->table);
    free(s->made);
    s->keys = NULL;
    s->table = NULL;
    s->made = NULL;
    s->n = s->size = 0;
}
