/* SPDX-License-Identifier: Apache-2.0 */
/* allocator.c - see allocator.h. Blocks of a segment are a list in address order; the best-fitting free block
 * is taken, as PyTorch does. */
#include "graph/allocator.h"

#include <math.h>
#include <stdlib.h>

#define KIB 1024.0
#define MIB (1024.0 * 1024.0)
#define ROUND 512.0
#define SMALL_LIMIT MIB
#define SMALL_SEGMENT (2 * MIB)
#define MEDIUM_LIMIT (10 * MIB)
#define MEDIUM_SEGMENT (20 * MIB)
#define LARGE_ROUND (2 * MIB)

struct block {
    double size, asked;
    uint32_t segment, left, right; /* neighbours in the segment; 0 = none */
    uint32_t next_free, prev_free; /* list of free blocks of its pool */
    bool free, small;
};

/* Free blocks are kept in bins of similar size, sixteen to a doubling: the best fit is in the first bin that has any fit. */
#define BINS_PER_DOUBLING 16
#define BINS (48 * BINS_PER_DOUBLING)
#define WORDS (BINS / 64)

struct maq_allocator {
    struct block *at;                     /* handle = index; 0 unused */
    uint32_t n, size, n_segments, unused; /* unused: list of free table entries through `right` */
    uint32_t first_free[2][BINS];         /* [small][bin of the size] */
    uint64_t filled[2][WORDS];            /* bins that hold a block */
    struct maq_allocator_stats stats;
};

static double up(double bytes, double to)
{
    return ceil(bytes / to) * to;
}

double maq_allocator_round(double bytes)
{
    return bytes <= 0 ? 0 : up(bytes, ROUND);
}

struct maq_allocator *maq_allocator_new(void)
{
    return calloc(1, sizeof(struct maq_allocator));
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
        a->unused = a->at[id].right;
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

/* Monotone in the size. */
static uint32_t bin_of(double size)
{
    uint64_t units = (uint64_t)(size / ROUND) * BINS_PER_DOUBLING; /* a bin of their own for fewer than sixteen */
    uint32_t doublings = 63 - (uint32_t)__builtin_clzll(units | BINS_PER_DOUBLING) - 4;
    uint32_t bin = doublings * BINS_PER_DOUBLING + ((uint32_t)(units >> doublings) & (BINS_PER_DOUBLING - 1));
    return bin < BINS ? bin : BINS - 1;
}

/* The first filled bin from `bin` on; BINS: none. */
static uint32_t next_bin(const struct maq_allocator *a, bool small, uint32_t bin)
{
    uint64_t rest = bin < BINS ? a->filled[small][bin / 64] >> bin % 64 << bin % 64 : 0;
    uint32_t word = bin / 64;
    while (rest == 0 && ++word < WORDS)
        rest = a->filled[small][word];
    return rest ? word * 64 + (uint32_t)__builtin_ctzll(rest) : BINS;
}

static void link_free(struct maq_allocator *a, uint32_t id)
{
    uint32_t bin = bin_of(a->at[id].size), *first = &a->first_free[a->at[id].small][bin];
    a->at[id].free = true;
    a->at[id].prev_free = 0;
    a->at[id].next_free = *first;
    if (*first)
        a->at[*first].prev_free = id;
    *first = id;
    a->filled[a->at[id].small][bin / 64] |= (uint64_t)1 << bin % 64;
}

static void unlink_free(struct maq_allocator *a, uint32_t id)
{
    struct block *b = &a->at[id];
    if (b->prev_free)
        a->at[b->prev_free].next_free = b->next_free;
    else {
        uint32_t bin = bin_of(b->size);
        a->first_free[b->small][bin] = b->next_free;
        if (!b->next_free)
            a->filled[b->small][bin / 64] &= ~((uint64_t)1 << bin % 64);
    }
    if (b->next_free)
        a->at[b->next_free].prev_free = b->prev_free;
    b->free = false;
    b->next_free = b->prev_free = 0;
}

/* Smallest free block of the pool that holds `size`; of the oldest segment on ties. */
static uint32_t best_fit(const struct maq_allocator *a, double size, bool small)
{
    uint32_t best = 0;
    for (uint32_t bin = next_bin(a, small, bin_of(size)); bin < BINS && best == 0; bin = next_bin(a, small, bin + 1))
        for (uint32_t i = a->first_free[small][bin]; i; i = a->at[i].next_free) {
            const struct block *b = &a->at[i];
            if (b->size < size)
                continue;
            bool tie = best != 0 && b->size == a->at[best].size && b->segment < a->at[best].segment;
            if (best == 0 || b->size < a->at[best].size || tie)
                best = i;
        }
    return best;
}

static uint32_t new_segment(struct maq_allocator *a, double size, bool small)
{
    double bytes = small ? SMALL_SEGMENT : size < MEDIUM_LIMIT ? MEDIUM_SEGMENT : up(size, LARGE_ROUND);
    uint32_t id = new_entry(a);
    if (id == 0)
        return 0;
    a->at[id] = (struct block){.size = bytes, .segment = ++a->n_segments, .small = small};
    link_free(a, id);
    a->stats.reserved += bytes;
    if (a->stats.reserved > a->stats.peak_reserved)
        a->stats.peak_reserved = a->stats.reserved;
    return id;
}

static bool split(struct maq_allocator *a, uint32_t id, double size)
{
    double rest = a->at[id].size - size;
    if (rest < ROUND || (!a->at[id].small && rest <= SMALL_LIMIT))
        return true;
    uint32_t tail = new_entry(a);
    if (tail == 0)
        return false;
    struct block *b = &a->at[id];
    a->at[tail] = (struct block){.size = rest, .segment = b->segment, .left = id, .right = b->right, .small = b->small};
    link_free(a, tail);
    if (b->right)
        a->at[b->right].left = tail;
    b->right = tail;
    b->size = size;
    return true;
}

uint32_t maq_allocator_alloc(struct maq_allocator *a, double bytes)
{
    double size = maq_allocator_round(bytes > 0 ? bytes : 1);
    bool small = size <= SMALL_LIMIT;
    uint32_t id = best_fit(a, size, small);
    if (id == 0)
        id = new_segment(a, size, small);
    if (id == 0)
        return 0;
    unlink_free(a, id); /* before its size changes: bins are by size */
    if (!split(a, id, size))
        return 0;
    a->at[id].asked = size;
    a->stats.allocated += a->at[id].size;
    a->stats.waste += a->at[id].size - size;
    if (a->stats.allocated > a->stats.peak_allocated) {
        a->stats.peak_allocated = a->stats.allocated;
        a->stats.peak_waste = a->stats.waste;
    }
    return id;
}

/* Joins a free block with its free right neighbour. */
static void join_right(struct maq_allocator *a, uint32_t id)
{
    uint32_t r = a->at[id].right;
    if (r == 0 || !a->at[r].free || !a->at[id].free)
        return;
    unlink_free(a, r);
    unlink_free(a, id);
    a->at[id].size += a->at[r].size;
    link_free(a, id);
    a->at[id].right = a->at[r].right;
    if (a->at[r].right)
        a->at[a->at[r].right].left = id;
    a->at[r] = (struct block){.right = a->unused};
    a->unused = r;
}

void maq_allocator_release(struct maq_allocator *a, uint32_t block)
{
    a->stats.allocated -= a->at[block].size;
    a->stats.waste -= a->at[block].size - a->at[block].asked;
    link_free(a, block);
    join_right(a, block);
    if (a->at[block].left)
        join_right(a, a->at[block].left);
}

struct maq_allocator_stats maq_allocator_stats(const struct maq_allocator *a)
{
    return a->stats;
}
