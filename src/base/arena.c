/* SPDX-License-Identifier: Apache-2.0 */
/*
 * arena.c - memory by lifetime: see arena.h.
 *
 * Blocks form one list from the oldest to the newest. `arena->block` is the one in use; what lies after it was given
 * back by a reset and waits to be used again, so that a loop of mark, work, reset stops asking the heap after its first
 * turn. A request that does not fit moves on to the next block, which costs the tail of the current one: an untouched tail
 * is address space, not memory.
 *
 * What is handed out is cleared then, unless it was asked for raw. Blocks come from malloc: calloc would clear all of a block
 * that the heap used before, of which little may be asked for.
 *
 * Under AddressSanitizer free space is poisoned and every allocation is followed by a red zone.
 */
#include "base/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/alloc.h"
#include "base/bug.h"
#include "base/text.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MAQ_ASAN 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define MAQ_ASAN 1
#endif
#ifdef MAQ_ASAN
#include <sanitizer/asan_interface.h>
#define POISON(p, n) __asan_poison_memory_region((p), (n))
#define UNPOISON(p, n) __asan_unpoison_memory_region((p), (n))
#define RED_ZONE ((size_t)16)
#else
#define POISON(p, n) ((void)0)
#define UNPOISON(p, n) ((void)0)
#define RED_ZONE ((size_t)0)
#endif

#define BLOCK_MIN ((size_t)64 << 10)
#define BLOCK_MAX ((size_t)4 << 20)
#define BLOCK_ALIGN ((size_t)64)
#define HUGE_PAGE ((size_t)2 << 20)

struct maq_arena_block {
    struct maq_arena_block *older, *newer;
    char *data;  /* aligned to BLOCK_ALIGN, inside this same allocation */
    size_t size; /* bytes at data */
    size_t used; /* of them handed out */
};

void maq_arena_init(struct maq_arena *a, size_t cap_bytes)
{
    *a = (struct maq_arena){.cap = cap_bytes};
}

void maq_arena_fini(struct maq_arena *a)
{
    struct maq_arena_block *b = a->block;
    while (b && b->newer)
        b = b->newer;
    while (b) {
        struct maq_arena_block *older = b->older;
        UNPOISON(b->data, b->size);
        free(b);
        b = older;
    }
    a->block = NULL;
    a->used = 0;
}

/*
 * One long request, which is going to be written, is asked to lie in huge pages: the first touch of each small one is a fault, which costs
 * more than its bytes. A huge page is cleared whole, so what ends inside of one, and blocks that many requests share, stay in small ones.
 */
static char *block_memory(size_t bytes, bool one_request)
{
    if (bytes < HUGE_PAGE || !one_request)
        return maq__malloc(bytes);
    size_t end = bytes & ~(HUGE_PAGE - 1);
    char *p = maq__aligned_alloc(HUGE_PAGE, end < bytes ? end + HUGE_PAGE : end);
    if (p)
        (void)madvise(p, end, MADV_HUGEPAGE); /* a wish */
    return p;
}

static struct maq_arena_block *block_new(size_t size, bool one_request)
{
    struct maq_arena_block *b;
    if (size > SIZE_MAX / 2)
        return NULL;
    char *raw = block_memory(sizeof(*b) + BLOCK_ALIGN + size, one_request);
    if (!raw)
        return NULL;
    b = (struct maq_arena_block *)(void *)raw;
    *b = (struct maq_arena_block){.size = size};
    uintptr_t body = (uintptr_t)raw + sizeof(*b);
    b->data = raw + sizeof(*b) + (-body & (BLOCK_ALIGN - 1));
    POISON(b->data, b->size);
    return b;
}

/* Puts b behind the current block and makes it current. */
static void block_enter(struct maq_arena *a, struct maq_arena_block *b)
{
    b->older = a->block;
    b->newer = a->block ? a->block->newer : NULL;
    if (b->newer)
        b->newer->older = b;
    if (a->block)
        a->block->newer = b;
    a->block = b;
}

/* A block with `need` free bytes at its start becomes current: a spare one if any is large enough. */
static bool arena_advance(struct maq_arena *a, size_t need)
{
    size_t largest = 0;
    for (struct maq_arena_block *b = a->block ? a->block->newer : NULL; b; b = b->newer) {
        if (b->size < need)
            continue;
        b->older->newer = b->newer;
        if (b->newer)
            b->newer->older = b->older;
        block_enter(a, b);
        return true;
    }
    if (a->block)
        largest = a->block->size < BLOCK_MAX / 2 ? a->block->size * 2 : BLOCK_MAX;
    size_t size = largest < BLOCK_MIN ? BLOCK_MIN : largest;
    struct maq_arena_block *fresh = size < need ? block_new(need, true) : block_new(size, false);
    if (fresh)
        block_enter(a, fresh);
    return fresh != NULL;
}

/* What it holds is not defined. */
static char *take(struct maq_arena *a, size_t size, size_t align)
{
    MAQ_ASSERT(align && (align & (align - 1)) == 0 && align <= BLOCK_ALIGN);
    size_t bytes = size ? size : 1;
    if (bytes > SIZE_MAX / 2 || (a->cap && (a->used > a->cap || bytes > a->cap - a->used)))
        return NULL;

    struct maq_arena_block *b = a->block;
    size_t at = b ? (b->used + align - 1) & ~(align - 1) : 0;
    if (!b || at > b->size || bytes + RED_ZONE > b->size - at) {
        if (!arena_advance(a, bytes + RED_ZONE))
            return NULL;
        b = a->block;
        at = 0;
    }
    char *p = b->data + at;
    UNPOISON(p, bytes);
    b->used = at + bytes + RED_ZONE;
    a->used += bytes;
    return p;
}

void *maq_arena_alloc(struct maq_arena *a, size_t size, size_t align)
{
    char *p = take(a, size, align);
    if (p)
        memset(p, 0, size);
    return p;
}

void *maq_arena_raw(struct maq_arena *a, size_t n, size_t size, size_t align)
{
    return size && n > SIZE_MAX / size ? NULL : take(a, n * size, align);
}

void *maq_arena_array(struct maq_arena *a, size_t n, size_t size, size_t align)
{
    if (size && n > SIZE_MAX / size)
        return NULL;
    return maq_arena_alloc(a, n * size, align);
}

char *maq_arena_strdup(struct maq_arena *a, struct maq_str s)
{
    if (s.len == SIZE_MAX)
        return NULL;
    char *p = maq_arena_alloc(a, s.len + 1, 1);
    if (p && s.len)
        memcpy(p, s.ptr, s.len);
    return p;
}

char *maq_arena_printf(struct maq_arena *a, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = maq__vsnprintf(NULL, 0, fmt, args);
    char *p = len < 0 ? NULL : maq_arena_alloc(a, (size_t)len + 1, 1);
    if (p)
        maq__vsnprintf(p, (size_t)len + 1, fmt, again);
    va_end(again);
    va_end(args);
    return p;
}

struct maq_arena_mark maq_arena_mark(const struct maq_arena *a)
{
    return (struct maq_arena_mark){a->block, a->block ? a->block->used : 0, a->used};
}

void maq_arena_reset(struct maq_arena *a, struct maq_arena_mark mark)
{
    struct maq_arena_block *b = a->block;
    while (b && b != mark.block) {
        POISON(b->data, b->size);
        b->used = 0;
        if (!b->older && !mark.block)
            break; /* marked when empty: the oldest block stays current */
        b = b->older;
    }
    if (b && b == mark.block) {
        MAQ_ASSERT(mark.block_used <= b->used);
        POISON(b->data + mark.block_used, b->size - mark.block_used);
        b->used = mark.block_used;
    }
    a->block = b;
    a->used = mark.used;
}
