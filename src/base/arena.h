/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.h - memory by lifetime.
 *
 * An arena hands out zeroed memory from growing blocks (64 KiB doubling to 4 MiB; a larger request gets a block
 * of its own) and frees all of it at once. Lifetimes have names in this house: document (one loaded file), job
 * (frozen model, cluster, plan, graph), run (one evaluation), scratch (marked and reset).
 *
 * A cap turns a hostile input into a NULL instead of a killed process. Not thread-safe: one arena, one thread.
 */
#ifndef MAQ_BASE_ARENA_H
#define MAQ_BASE_ARENA_H

#include "maquette/diag.h"

struct maq_arena_block;

struct maq_arena {
    struct maq_arena_block *block; /* current, linked to the earlier ones */
    size_t used;                   /* bytes handed out in total, for budgets in tests */
    size_t cap;                    /* 0 = none */
};

struct maq_arena_mark {
    struct maq_arena_block *block;
    size_t block_used, used;
};

void maq_arena_init(struct maq_arena *a, size_t cap_bytes);
void maq_arena_fini(struct maq_arena *a); /* frees everything; the arena is empty and usable again */

/* `size` zeroed bytes aligned to `align` (a power of two <= 64); NULL when out of memory or over the cap. */
void *maq_arena_alloc(struct maq_arena *a, size_t size, size_t align);

/* n zeroed objects of type T (n may be 0: still a valid pointer); NULL on overflow or out of memory. */
#define MAQ_ARENA_NEW(a, T, n) ((T *)maq_arena_array((a), (n), sizeof(T), _Alignof(T)))
void *maq_arena_array(struct maq_arena *a, size_t n, size_t size, size_t align);

/* The same but not zeroed, for what is large and written before it is read. */
#define MAQ_ARENA_RAW(a, T, n) ((T *)maq_arena_raw((a), (n), sizeof(T), _Alignof(T)))
void *maq_arena_raw(struct maq_arena *a, size_t n, size_t size, size_t align);

/* NUL-terminated copies; NULL when out of memory. */
char *maq_arena_strdup(struct maq_arena *a, struct maq_str s);
char *maq_arena_printf(struct maq_arena *a, const char *fmt, ...) MAQ_PRINTF(2, 3);

/* Everything allocated after the mark is given back by the reset (blocks are kept for reuse or freed). */
struct maq_arena_mark maq_arena_mark(const struct maq_arena *a);
void maq_arena_reset(struct maq_arena *a, struct maq_arena_mark mark);

#endif
