/* SPDX-License-Identifier: Apache-2.0 */
/* intern.c - a hash table of strings with a budget of entries and bytes. See intern.h. */
#include "report/timeline/intern.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"

#define MAX_ENTRIES 65536u
#define MAX_STRING_BYTES 512u
#define MAX_TEXT_BYTES ((size_t)8 * 1024 * 1024)
#define FIRST_SIZE 256u

struct maq_trace_intern_slot {
    const char *ptr;
    uint32_t len, hash, id; /* id 0: free */
};

/* FNV-1a, 32 bits: offset basis and prime from the Fowler/Noll/Vo definition. */
static uint32_t hash_of(struct maq_str s)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < s.len; i++)
        h = (h ^ (unsigned char)s.ptr[i]) * 16777619u;
    return h;
}

void maq_trace_intern_init(struct maq_trace_intern *t)
{
    *t = (struct maq_trace_intern){0};
    maq_arena_init(&t->text, MAX_TEXT_BYTES);
}

void maq_trace_intern_fini(struct maq_trace_intern *t)
{
    free(t->slots);
    maq_arena_fini(&t->text);
    *t = (struct maq_trace_intern){0};
}

static bool grow(struct maq_trace_intern *t)
{
    uint32_t size = t->size ? t->size * 2 : FIRST_SIZE;
    struct maq_trace_intern_slot *slots = maq__calloc(size * sizeof *slots);
    if (slots == NULL)
        return false;
    for (uint32_t i = 0; i < t->size; i++) {
        if (t->slots[i].id == 0)
            continue;
        uint32_t at = t->slots[i].hash & (size - 1);
        while (slots[at].id != 0)
            at = (at + 1) & (size - 1);
        slots[at] = t->slots[i];
    }
    free(t->slots);
    t->slots = slots;
    t->size = size;
    return true;
}

uint32_t maq_trace_intern_get(struct maq_trace_intern *t, struct maq_str s, bool *fresh)
{
    *fresh = false;
    if (s.len > MAX_STRING_BYTES)
        return 0;
    if (t->count * 2 >= t->size && t->count < MAX_ENTRIES && !grow(t))
        return 0;
    uint32_t hash = hash_of(s), at = hash & (t->size - 1);
    for (; t->slots[at].id != 0; at = (at + 1) & (t->size - 1)) {
        const struct maq_trace_intern_slot *slot = &t->slots[at];
        if (slot->hash == hash && maq_str_eq((struct maq_str){slot->ptr, slot->len}, s))
            return slot->id;
    }
    if (t->count >= MAX_ENTRIES)
        return 0;
    const char *copy = maq_arena_strdup(&t->text, s);
    if (copy == NULL)
        return 0;
    t->slots[at] = (struct maq_trace_intern_slot){.ptr = copy, .len = (uint32_t)s.len, .hash = hash, .id = ++t->count};
    *fresh = true;
    return t->count;
}
