/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.c - a hash table with open addressing, at most half full. Byte strings are copied into the arena. See
 * intern.h.
 */
#include "capture/intern.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "shim/record.h"

void maq_intern_init(struct maq_intern *t, struct maq_arena *arena)
{
    *t = (struct maq_intern){.arena = arena};
}

/* Slot of the key, or the empty one where it would go. */
static uint32_t slot_of(const struct maq_intern *t, uint64_t hash, const void *bytes, size_t len)
{
    uint32_t at = (uint32_t)hash & (t->slots - 1);
    for (; t->slot[at] != 0; at = (at + 1) & (t->slots - 1)) {
        const struct maq_intern_key *k = &t->key[t->slot[at] - 1];
        if (k->hash == hash && k->len == len && (len == 0 || memcmp(k->bytes, bytes, len) == 0))
            break;
    }
    return at;
}

static bool grow(struct maq_intern *t)
{
    uint32_t slots = t->slots ? 2 * t->slots : 64, room = slots / 2;
    uint32_t *slot = MAQ_ARENA_NEW(t->arena, uint32_t, slots);
    struct maq_intern_key *key = MAQ_ARENA_NEW(t->arena, struct maq_intern_key, room);
    if (!slot || !key || slots > UINT32_MAX / 4)
        return false;
    if (t->n > 0)
        memcpy(key, t->key, t->n * sizeof *key);
    t->slot = slot;
    t->key = key;
    t->slots = slots;
    t->room = room;
    for (uint32_t i = 0; i < t->n; i++) {
        uint32_t at = (uint32_t)key[i].hash & (slots - 1);
        while (slot[at] != 0)
            at = (at + 1) & (slots - 1);
        slot[at] = i + 1;
    }
    return true;
}

uint32_t maq_intern_put(struct maq_intern *t, const void *bytes, size_t len, bool *added)
{
    uint64_t hash = maq_rec_hash(bytes, len, 1);
    if (added)
        *added = false;
    if (t->n == t->room && !grow(t))
        return UINT32_MAX;
    uint32_t at = slot_of(t, hash, bytes, len);
    if (t->slot[at] != 0)
        return t->slot[at] - 1;
    char *copy = maq_arena_alloc(t->arena, len + 1, 8);
    if (!copy)
        return UINT32_MAX;
    if (len > 0)
        memcpy(copy, bytes, len);
    t->key[t->n] = (struct maq_intern_key){hash, len, copy};
    t->slot[at] = ++t->n;
    if (added)
        *added = true;
    return t->n - 1;
}

uint32_t maq_intern_find(const struct maq_intern *t, const void *bytes, size_t len)
{
    if (t->n == 0)
        return UINT32_MAX;
    uint32_t at = slot_of(t, maq_rec_hash(bytes, len, 1), bytes, len);
    return t->slot[at] != 0 ? t->slot[at] - 1 : UINT32_MAX;
}

uint64_t *maq_intern_map_at(struct maq_intern_map *map, struct maq_arena *arena, const void *key, size_t len)
{
    bool added;
    if (!map->key.arena)
        maq_intern_init(&map->key, arena);
    uint32_t at = maq_intern_put(&map->key, key, len, &added);
    if (at == UINT32_MAX || !maq__grow((void **)&map->value, &map->value_size, at, sizeof *map->value))
        return NULL;
    if (added)
        map->value[at] = 0;
    return &map->value[at];
}

void maq_intern_map_fini(struct maq_intern_map *map)
{
    free(map->value);
    *map = (struct maq_intern_map){0};
}
