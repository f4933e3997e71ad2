/*
 * intern.h - equal byte strings get one number, counted from 0. Memory is the arena's.
 */
#ifndef MAQ_EMULATE_INTERN_H
#define MAQ_EMULATE_INTERN_H

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
/* UINT32_MAX when out of memory; the bytes are copied, aligned to 8 and with a zero behind them. *added (may be NULL) says whether it is new. */
uint32_t maq_intern_put(struct maq_intern *t, const void *bytes, size_t len, bool *added);
/* UINT32_MAX: not there. */
uint32_t maq_intern_find(const struct maq_intern *t, const void *bytes, size_t len);

#endif
