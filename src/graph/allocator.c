/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocator.c - the free blocks, in bins of treaps: the best fit is found, split, and joined with its neighbours when it is free again.
 *
 * Blocks of a segment are a list in address order. The free ones of a pool (a stream's small or large ones) are in bins of similar size,
 * sixteen to a doubling, so that the best fit is in the first bin that has any. A bin is a treap: a search tree in order of size and
 * address, which is a heap in the priorities of its nodes as well; these are scrambled numbers, so that its depth is logarithmic
 * whatever the order of frees (Seidel and Aragon, "Randomized Search Trees", Algorithmica 16, 1996).
 */
#include "graph/allocator.h"

#include <stdlib.h>

#define MIB (UINT64_C(1) << 20)
#define ROUND UINT64_C(512)       /* kMinBlockSize */
#define SMALL_LIMIT MIB           /* kSmallSize */
#define SMALL_SEGMENT (2 * MIB)   /* kSmallBuffer */
#define MEDIUM_LIMIT (10 * MIB)   /* kMinLargeAlloc */
#define MEDIUM_SEGMENT (20 * MIB) /* kLargeBuffer */
#define LARGE_ROUND (2 * MIB)     /* kRoundLarge */

#define POOLS (2 * MAQ_ALLOCATOR_STREAMS)
#define BINS_PER_DOUBLING 16
#define BINS (48 * BINS_PER_DOUBLING)
#define WORDS (BINS / 64)

struct block {
    uint64_t size, asked, address;
    uint32_t left, right;   /* neighbours in the segment; 0 = none */
    uint32_t lower, higher; /* of the tree; `lower` is also the list of unused entries */
    uint32_t pool, bin;     /* `bin` of a free one */
    bool free, retired;
};

struct maq_allocator {
    struct maq_allocator_options options;
    struct block *at; /* handle = index; 0 unused */
    uint32_t n, size, unused;
    uint32_t root[POOLS][BINS];    /* free blocks */
    uint64_t filled[POOLS][WORDS]; /* bins that hold one */
    uint32_t last[POOLS];          /* of an expandable segment, the block before what is not mapped yet */
    uint64_t next_segment;         /* its address */
    uint64_t allocated, reserved, waste, peak_allocated, peak_reserved, peak_waste;
};

/* Whole bytes; what no device could hold is as good as MOST. */
#define MOST (UINT64_C(1) << 52)

static uint64_t whole(double bytes)
{
    int64_t down = bytes < (double)MOST ? (int64_t)bytes : (int64_t)MOST;
    return (uint64_t)down + ((double)down < bytes ? 1 : 0);
}

static uint64_t up(uint64_t bytes, uint64_t to)
{
    return (bytes + to - 1) / to * to;
}

double maq_allocator_round(double bytes)
{
    return bytes <= 0 ? 0 : (double)up(whole(bytes), ROUND);
}

static bool is_small(uint32_t pool)
{
    return pool % 2 == 1;
}

static uint32_t pool_of(uint32_t stream, uint64_t size)
{
    return 2 * stream + (size <= SMALL_LIMIT ? 1 : 0);
}

/* round_size() of the original. */
static uint64_t round_size(const struct maq_allocator_options *o, double asked)
{
    uint64_t bytes = asked > 1 ? whole(asked) : 1, steps = o->roundup_power2_divisions;
    if (steps == 0 || bytes <= ROUND * steps)
        return up(bytes, ROUND);
    return up(bytes, (UINT64_C(1) << (63 - __builtin_clzll(bytes))) / steps);
}

struct maq_allocator *maq_allocator_new(const struct maq_allocator_options *options)
{
    struct maq_allocator *a = calloc(1, sizeof *a);
    if (a && options)
        a->options = *options;
    return a;
}

void maq_allocator_free(struct maq_allocator *a)
{
    if (a)
        free(a->at);
    free(a);
}

static uint32_t new_entry(struct maq_allocator *a)
{
    if (a->unused) {
        uint32_t id = a->unused;
        a->unused = a->at[id].lower;
        return id;
    }
    if (a->n + 1 >= a->size) {
        uint32_t size = a->size ? a->size * 2 : 256;
        struct block *at = realloc(a->at, size * sizeof *at);
        if (!at)
            return 0;
        a->at = at;
        a->size = size;
        if (a->n == 0)
            a->at[0] = (struct block){0};
    }
    return ++a->n;
}

static void drop_entry(struct maq_allocator *a, uint32_t id)
{
    a->at[id] = (struct block){.lower = a->unused};
    a->unused = id;
}

/* ---- free blocks, by size and address ---- */

/* A bijection: no two nodes are alike. Knuth, "The Art of Computer Programming" 3, 6.4, multiplicative hashing. */
static uint32_t priority(uint32_t id)
{
    return id * UINT32_C(2654435769);
}

static bool before(const struct block *b, uint64_t size, uint64_t address)
{
    return b->size < size || (b->size == size && b->address < address);
}

/* Monotone in the size. */
static uint32_t bin_of(uint64_t size)
{
    uint64_t units = size / ROUND * BINS_PER_DOUBLING; /* a bin of their own for fewer than sixteen */
    uint32_t doublings = 63 - (uint32_t)__builtin_clzll(units | BINS_PER_DOUBLING) - 4;
    uint32_t bin = doublings * BINS_PER_DOUBLING + ((uint32_t)(units >> doublings) & (BINS_PER_DOUBLING - 1));
    return bin < BINS ? bin : BINS - 1;
}

/* The first filled bin from `bin` on; BINS: none. */
static uint32_t next_bin(const struct maq_allocator *a, uint32_t pool, uint32_t bin)
{
    uint64_t rest = bin < BINS ? a->filled[pool][bin / 64] >> bin % 64 << bin % 64 : 0;
    uint32_t word = bin / 64;
    while (rest == 0 && ++word < WORDS)
        rest = a->filled[pool][word];
    return rest ? word * 64 + (uint32_t)__builtin_ctzll(rest) : BINS;
}

static void link_free(struct maq_allocator *a, uint32_t id)
{
    struct block *b = &a->at[id];
    uint32_t bin = b->bin = bin_of(b->size), *place = &a->root[b->pool][bin];
    while (*place && priority(*place) > priority(id))
        place = before(&a->at[*place], b->size, b->address) ? &a->at[*place].higher : &a->at[*place].lower;
    uint32_t rest = *place, *lower = &b->lower, *higher = &b->higher;
    *place = id;
    while (rest) /* what was here is parted into what is before the new one and what is behind it */
        if (before(&a->at[rest], b->size, b->address)) {
            *lower = rest;
            lower = &a->at[rest].higher;
            rest = *lower;
        } else {
            *higher = rest;
            higher = &a->at[rest].lower;
            rest = *higher;
        }
    *lower = *higher = 0;
    a->filled[b->pool][bin / 64] |= UINT64_C(1) << bin % 64;
    b->free = true;
}

static void unlink_free(struct maq_allocator *a, uint32_t id)
{
    struct block *b = &a->at[id];
    uint32_t bin = b->bin, *root = &a->root[b->pool][bin], *place = root, lower = b->lower, higher = b->higher;
    while (*place != id)
        place = before(&a->at[*place], b->size, b->address) ? &a->at[*place].higher : &a->at[*place].lower;
    while (lower && higher) /* the two parts become one */
        if (priority(lower) > priority(higher)) {
            *place = lower;
            place = &a->at[lower].higher;
            lower = *place;
        } else {
            *place = higher;
            place = &a->at[higher].lower;
            higher = *place;
        }
    *place = lower ? lower : higher;
    if (*root == 0)
        a->filled[b->pool][bin / 64] &= ~(UINT64_C(1) << bin % 64);
    b->free = false;
}

/* The first block of a bin that is not before this size and address; 0: none. */
static uint32_t first_of_bin(const struct maq_allocator *a, uint32_t root, uint64_t size, uint64_t address)
{
    uint32_t best = 0;
    while (root)
        if (before(&a->at[root], size, address))
            root = a->at[root].higher;
        else {
            best = root;
            root = a->at[root].lower;
        }
    return best;
}

static uint32_t first_from(const struct maq_allocator *a, uint32_t pool, uint64_t size, uint64_t address)
{
    uint32_t best = 0;
    for (uint32_t bin = next_bin(a, pool, bin_of(size)); bin < BINS && best == 0; bin = next_bin(a, pool, bin + 1))
        best = first_of_bin(a, a->root[pool][bin], size, address);
    return best;
}

/* ---- segments ---- */

/* get_free_block() of the original: an oversize block is for requests of nearly its size, and the last of an expandable segment, which
 * could be any size, for those that no other fits. */
static uint32_t find_free(const struct maq_allocator *a, uint32_t pool, uint64_t size)
{
    uint64_t most = whole(a->options.max_split_size);
    uint32_t id = first_from(a, pool, size, 0);
    if (id != 0 && id == a->last[pool]) {
        uint32_t other = first_from(a, pool, a->at[id].size, a->at[id].address + 1);
        id = other ? other : id;
    }
    if (id == 0 || most == 0)
        return id;
    uint64_t found = a->at[id].size;
    bool wrong = size < most ? found >= most : found >= size + MEDIUM_SEGMENT;
    return wrong ? 0 : id;
}

static void reserve(struct maq_allocator *a, uint64_t bytes)
{
    a->reserved += bytes;
    if (a->reserved > a->peak_reserved)
        a->peak_reserved = a->reserved;
}

static uint32_t new_block(struct maq_allocator *a, uint32_t pool, uint64_t size, uint64_t address, uint32_t left)
{
    uint32_t id = new_entry(a);
    if (id == 0)
        return 0;
    a->at[id] = (struct block){.size = size, .address = address, .pool = pool, .left = left};
    if (left)
        a->at[left].right = id;
    link_free(a, id);
    return id;
}

static uint32_t new_segment(struct maq_allocator *a, uint32_t pool, uint64_t size)
{
    uint64_t bytes = is_small(pool) ? SMALL_SEGMENT : size < MEDIUM_LIMIT ? MEDIUM_SEGMENT : up(size, LARGE_ROUND);
    uint32_t id = new_block(a, pool, bytes, a->next_segment, 0);
    if (id == 0)
        return 0;
    a->next_segment += bytes;
    reserve(a, bytes);
    return id;
}

/* Maps as much behind the last block as is missing; what is mapped and free joins. Addresses are compared inside a pool alone: each
 * expandable segment begins at 0. */
static uint32_t grow_segment(struct maq_allocator *a, uint32_t pool, uint64_t size)
{
    uint32_t last = a->last[pool];
    const struct block tail = last ? a->at[last] : (struct block){.size = 0};
    uint64_t end = tail.address + tail.size, there = tail.free ? tail.size : 0;
    uint64_t bytes = up(size - there, is_small(pool) ? SMALL_SEGMENT : MEDIUM_SEGMENT);
    reserve(a, bytes);
    if (there > 0) {
        unlink_free(a, last);
        a->at[last].size += bytes;
        link_free(a, last);
        return last;
    }
    return a->last[pool] = new_block(a, pool, bytes, end, last);
}

/* should_split() of the original. */
static bool splits(const struct maq_allocator *a, uint32_t pool, uint64_t size, uint64_t rest)
{
    if (is_small(pool) || a->options.expandable_segments)
        return rest >= ROUND;
    return rest > SMALL_LIMIT && (a->options.max_split_size <= 0 || size < whole(a->options.max_split_size));
}

static bool split(struct maq_allocator *a, uint32_t id, uint64_t size)
{
    uint32_t pool = a->at[id].pool, right = a->at[id].right;
    uint64_t rest = a->at[id].size - size;
    if (!splits(a, pool, size, rest))
        return true;
    a->at[id].size = size;
    uint32_t tail = new_block(a, pool, rest, a->at[id].address + size, id);
    if (tail == 0)
        return false;
    a->at[tail].right = right;
    if (right)
        a->at[right].left = tail;
    if (a->last[pool] == id)
        a->last[pool] = tail;
    return true;
}

uint32_t maq_allocator_alloc(struct maq_allocator *a, uint32_t stream, double bytes)
{
    uint64_t size = round_size(&a->options, bytes);
    uint32_t pool = pool_of(stream % MAQ_ALLOCATOR_STREAMS, size), id = find_free(a, pool, size);
    if (id == 0)
        id = a->options.expandable_segments ? grow_segment(a, pool, size) : new_segment(a, pool, size);
    if (id == 0)
        return 0;
    unlink_free(a, id); /* before its size changes: the tree is by size */
    if (!split(a, id, size))
        return 0;
    a->at[id].asked = size;
    a->allocated += a->at[id].size;
    a->waste += a->at[id].size - size;
    if (a->allocated > a->peak_allocated) {
        a->peak_allocated = a->allocated;
        a->peak_waste = a->waste;
    }
    return id;
}

/* Takes the block behind another, neither of them in the tree, into it. */
static void join(struct maq_allocator *a, uint32_t id, uint32_t behind)
{
    uint32_t right = a->at[behind].right, pool = a->at[id].pool;
    a->at[id].size += a->at[behind].size;
    a->at[id].right = right;
    if (right)
        a->at[right].left = id;
    if (a->last[pool] == behind)
        a->last[pool] = id;
    drop_entry(a, behind);
}

void maq_allocator_retire(struct maq_allocator *a, uint32_t block)
{
    struct block *b = &a->at[block];
    a->allocated -= b->size;
    a->waste -= b->size - b->asked;
    b->retired = true;
}

void maq_allocator_release(struct maq_allocator *a, uint32_t block)
{
    uint32_t left = a->at[block].left, right = a->at[block].right;
    if (!a->at[block].retired)
        maq_allocator_retire(a, block);
    a->at[block].retired = false;
    if (right && a->at[right].free) {
        unlink_free(a, right);
        join(a, block, right);
    }
    if (left && a->at[left].free) {
        unlink_free(a, left);
        join(a, left, block);
        block = left;
    }
    link_free(a, block);
}

double maq_allocator_address(const struct maq_allocator *a, uint32_t block)
{
    return (double)a->at[block].address;
}

struct maq_allocator_stats maq_allocator_stats(const struct maq_allocator *a)
{
    return (struct maq_allocator_stats){(double)a->allocated,     (double)a->reserved, (double)a->peak_allocated,
                                        (double)a->peak_reserved, (double)a->waste,    (double)a->peak_waste};
}

void maq_allocator_reset_peaks(struct maq_allocator *a)
{
    a->peak_allocated = a->allocated;
    a->peak_waste = a->waste;
    a->peak_reserved = a->reserved;
}
