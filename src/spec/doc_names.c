/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc_names.c - the names of a document that is being parsed: keys of its maps, by the map's serial number, and anchors.
 *
 * One open-addressed table, never more than half full, which doubles: finding a duplicate among a million keys of one map stays linear.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "spec/doc_internal.h"

static uint64_t hash_name(uint32_t scope, struct maq_str name)
{
    uint64_t h = 0xCBF29CE484222325u ^ ((uint64_t)scope * 0x9E3779B97F4A7C15u);
    for (size_t i = 0; i < name.len; i++)
        h = (h ^ (unsigned char)name.ptr[i]) * 0x100000001B3u; /* FNV-1a */
    h ^= h >> 32;
    return h * 0x9E3779B97F4A7C15u;
}

static struct maq__doc_name_entry *slot_of(struct maq__doc_name_entry *table, size_t size, uint32_t scope,
                                           uint64_t hash, struct maq_str name)
{
    size_t i = (size_t)(hash >> 20) & (size - 1);
    while (table[i].name.ptr && !(table[i].hash == hash && table[i].scope == scope && maq_str_eq(table[i].name, name)))
        i = (i + 1) & (size - 1);
    return &table[i];
}

static bool grow(struct maq__doc_names *names)
{
    size_t size = names->size ? names->size * 2 : 64;
    struct maq__doc_name_entry *table = maq__calloc(size * sizeof(*table));
    if (!table)
        return false;
    for (size_t i = 0; i < names->size; i++) {
        const struct maq__doc_name_entry *old = &names->table[i];
        if (old->name.ptr)
            *slot_of(table, size, old->scope, old->hash, old->name) = *old;
    }
    free(names->table);
    names->table = table;
    names->size = size;
    return true;
}

struct maq__doc_name_entry *maq__doc_names_intern(struct maq__doc_names *names, uint32_t scope, struct maq_str name,
                                                  bool *is_new)
{
    if (names->used * 2 >= names->size && !grow(names))
        return NULL;
    uint64_t hash = hash_name(scope, name);
    struct maq__doc_name_entry *e = slot_of(names->table, names->size, scope, hash, name);
    *is_new = !e->name.ptr;
    if (*is_new) {
        *e = (struct maq__doc_name_entry){.name = name, .hash = hash, .scope = scope};
        names->used++;
    }
    return e;
}

const struct maq__doc_name_entry *maq__doc_names_find(const struct maq__doc_names *names, uint32_t scope,
                                                      struct maq_str name)
{
    const struct maq__doc_name_entry *e =
        names->table ? slot_of(names->table, names->size, scope, hash_name(scope, name), name) : NULL;
    return e && e->name.ptr ? e : NULL;
}
