/* SPDX-License-Identifier: Apache-2.0 */
/*
 * allocator_brute.h - PyTorch's caching allocator as its source has it, without any structure that makes it fast: a list of blocks, read
 * from end to end for each request. What src/graph/allocator.c is compared with.
 */
#ifndef MAQ_TESTS_ALLOCATOR_BRUTE_H
#define MAQ_TESTS_ALLOCATOR_BRUTE_H

#include <stdbool.h>
#include <stdint.h>

#include "graph/allocator.h"

enum { BRUTE_BLOCKS = 4096, BRUTE_MIB = 1 << 20 };

/* In address order inside a segment; `segment` 0 is an unused entry. */
struct brute_block {
    int64_t address, size;
    uint32_t segment, pool;
    bool taken;
};

struct brute {
    struct maq_allocator_options options;
    struct brute_block at[BRUTE_BLOCKS];
    uint32_t segments, n;
    int64_t mapped[2 * MAQ_ALLOCATOR_STREAMS]; /* of the expandable segment of a pool */
    int64_t next, reserved;
};

static int64_t brute_up(int64_t bytes, int64_t to)
{
    return (bytes + to - 1) / to * to;
}

static int64_t brute_round(const struct maq_allocator_options *o, int64_t bytes)
{
    if (o->roundup_power2_divisions == 0 || bytes <= 512 * (int64_t)o->roundup_power2_divisions)
        return bytes < 512 ? 512 : brute_up(bytes, 512);
    int64_t power = 1;
    while (2 * power <= bytes)
        power *= 2;
    return brute_up(bytes, power / o->roundup_power2_divisions);
}

/* Whether nothing is mapped behind it yet, in its segment that grows. */
static bool brute_is_last(const struct brute *b, uint32_t i)
{
    return b->options.expandable_segments && b->at[i].address + b->at[i].size == b->mapped[b->at[i].pool];
}

static bool brute_better(const struct brute *b, uint32_t i, uint32_t than)
{
    if (than == BRUTE_BLOCKS)
        return true;
    bool last = brute_is_last(b, i), other = brute_is_last(b, than);
    if (last != other)
        return other;
    if (b->at[i].size != b->at[than].size)
        return b->at[i].size < b->at[than].size;
    return b->at[i].address < b->at[than].address;
}

static uint32_t brute_put(struct brute *b, uint32_t segment, uint32_t pool, int64_t address, int64_t size)
{
    uint32_t i = 0;
    while (i < b->n && b->at[i].segment != 0)
        i++;
    b->n = i == b->n ? b->n + 1 : b->n;
    b->at[i] = (struct brute_block){address, size, segment, pool, false};
    return i;
}

static uint32_t brute_search(const struct brute *b, uint32_t pool, int64_t size)
{
    uint32_t best = BRUTE_BLOCKS;
    for (uint32_t i = 0; i < b->n; i++)
        if (b->at[i].segment && !b->at[i].taken && b->at[i].pool == pool && b->at[i].size >= size &&
            brute_better(b, i, best))
            best = i;
    int64_t most = (int64_t)b->options.max_split_size;
    if (best == BRUTE_BLOCKS || most == 0)
        return best;
    bool wrong = size < most ? b->at[best].size >= most : b->at[best].size >= size + 20 * BRUTE_MIB;
    return wrong ? BRUTE_BLOCKS : best;
}

static uint32_t brute_reserve(struct brute *b, uint32_t pool, int64_t size)
{
    int64_t step = pool % 2 ? 2 * BRUTE_MIB : 20 * BRUTE_MIB, bytes = step;
    if (!b->options.expandable_segments) {
        bytes = pool % 2 == 0 && size >= 10 * BRUTE_MIB ? brute_up(size, 2 * BRUTE_MIB) : step;
        b->reserved += bytes;
        b->next += bytes;
        return brute_put(b, ++b->segments, pool, b->next - bytes, bytes);
    }
    for (uint32_t i = 0; i < b->n; i++)
        if (b->at[i].segment && !b->at[i].taken && b->at[i].pool == pool && brute_is_last(b, i)) {
            bytes = brute_up(size - b->at[i].size, step);
            b->at[i].size += bytes;
            b->mapped[pool] += bytes;
            b->reserved += bytes;
            return i;
        }
    bytes = brute_up(size, step);
    b->mapped[pool] += bytes;
    b->reserved += bytes;
    return brute_put(b, pool + 1, pool, b->mapped[pool] - bytes, bytes);
}

static uint32_t brute_alloc(struct brute *b, uint32_t stream, int64_t bytes)
{
    int64_t size = brute_round(&b->options, bytes), most = (int64_t)b->options.max_split_size;
    uint32_t pool = 2 * stream + (size <= BRUTE_MIB), i = brute_search(b, pool, size);
    if (i == BRUTE_BLOCKS)
        i = brute_reserve(b, pool, size);
    int64_t rest = b->at[i].size - size;
    bool small = pool % 2 || b->options.expandable_segments, splits = small ? rest >= 512 : rest > BRUTE_MIB;
    b->at[i].taken = true;
    if (splits && (small || most == 0 || size < most)) {
        b->at[i].size = size;
        brute_put(b, b->at[i].segment, pool, b->at[i].address + size, rest);
    }
    return i;
}

static void brute_release(struct brute *b, uint32_t i)
{
    b->at[i].taken = false;
    for (bool joined = true; joined;) {
        joined = false;
        for (uint32_t k = 0; k < b->n; k++) {
            struct brute_block *o = &b->at[k], *me = &b->at[i];
            bool beside = o->address + o->size == me->address || me->address + me->size == o->address;
            if (k == i || !o->segment || o->taken || o->segment != me->segment || o->pool != me->pool || !beside)
                continue;
            me->address = o->address < me->address ? o->address : me->address;
            me->size += o->size;
            o->segment = 0;
            joined = true;
        }
    }
}

#endif
