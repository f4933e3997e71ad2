/* SPDX-License-Identifier: Apache-2.0 */
/*
 * intern.h - interning: equal byte strings get one number, counted from 0; and a map from byte strings to values. Keys
 * live in an arena.
 */
#ifndef MAQ_CAPTURE_INTERN_H
#define MAQ_CAPTURE_INTERN_H

#include "base/arena.h"

struct maq_intern {
    struct maq_arena *arena;
    uint32_t n, room, slots;
    uint32_t *slot; /* number + 1 */
    struct maq_intern_key {
        uint64_t hash;
        size_t len;
        const void *bytes;
    } * key; /* [n] */
};

void maq_intern_init(struct maq_intern *t, struct maq_arena *arena);
/*
 * UINT32_MAX when out of memory; the bytes are copied, aligned to 8 and with a zero behind them. *added (may be NULL)
 * says whether it is new.
 */
uint32_t maq_intern_put(struct maq_intern *t, const void *bytes, size_t len, bool *added);
/* UINT32_MAX: not there. */
uint32_t maq_intern_find(const struct maq_intern *t, const void *bytes, size_t len);

/* A map from keys to values, which are 0 at first. */
struct maq_intern_map {
    struct maq_intern key;
    uint64_t *value;
    uint32_t value_size;
};
/*
 * The value of a key, added where it is new. Valid until the next call; NULL when out of memory. The arena of the first
 * call holds the keys.
 */
uint64_t *maq_intern_map_at(struct maq_intern_map *map, struct maq_arena *arena, const void *key, size_t len);
void maq_intern_map_fini(struct maq_intern_map *map);

#endif
