/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unverified.c - takes an entry's names over those of its base, looks each up in what the entry writes, and offers the nearest one for a name that is
 * not there.
 */
#include "spec/unverified.h"

#include "base/check.h"
#include "base/codes.h"
#include "base/text.h"
#include "spec/doc_internal.h"

#define NAMES_MAX_BYTES 4096

bool maq_unverified_next(struct maq_str *rest, struct maq_str *name)
{
    if (!rest->ptr || rest->len == 0)
        return false;
    *rest = maq_str_split(*rest, ',', name);
    *name = maq_str_trim(*name);
    return name->len > 0;
}

static const struct maq_node *child(const struct maq_node *map, struct maq_str key)
{
    for (const struct maq_node *c = map && map->kind == MAQ_NODE_MAP ? map->first : NULL; c; c = c->next)
        if (maq_str_eq(c->key, key) && !maq_node_is_null(c))
            return c;
    return NULL;
}

/* The value that a name means: `key`, or `section.key`. */
static const struct maq_node *find(const struct maq_node *map, struct maq_str name)
{
    const struct maq_node *found = child(map, name);
    struct maq_str section;
    if (found)
        return found;
    struct maq_str key = maq_str_split(name, '.', &section);
    return key.len > 0 ? child(child(map, section), key) : NULL;
}

static void try_names(struct maq_nearest *near, const struct maq_node *map, struct maq_arena *arena)
{
    for (const struct maq_node *c = map && map->kind == MAQ_NODE_MAP ? map->first : NULL; c; c = c->next) {
        maq__nearest_try(near, c->key);
        for (const struct maq_node *k = c->kind == MAQ_NODE_MAP ? c->first : NULL; k; k = k->next) {
            const char *name =
                maq_arena_printf(arena, "%.*s.%.*s", (int)c->key.len, c->key.ptr, (int)k->key.len, k->key.ptr);
            maq__nearest_try(near, maq_str_of(name));
        }
    }
}

static enum maq_status unknown(const struct maq_node *item, const struct maq_node *map, const struct maq_node *also,
                               const char *what, struct maq_arena *arena, struct maq_diag *diag)
{
    char show[MAQ_SHOW_SIZE];
    struct maq_nearest near;
    maq__nearest_init(&near, item->text);
    try_names(&near, map, arena);
    try_names(&near, also, arena);
    const char *hint = near.best ? maq_arena_printf(arena, "did you mean '%s'?", near.best)
                                 : "names are keys that the entry itself writes; of a section: peak.fp4";
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_UNKNOWN_KEY, item->at, hint,
                         "`unverified` names '%s', which this %s does not give", maq_str_show(show, item->text), what);
}

static void add(struct maq_buf *names, struct maq_str name)
{
    maq_buf_addf(names, "%s%.*s", names->len > 0 ? ", " : "", (int)name.len, name.ptr);
}

/* The entry's own list. Its faults are all reported. */
static enum maq_status read_list(struct maq_buf *names, struct maq_node *map, const struct maq_node *also,
                                 const char *what, struct maq_arena *arena, struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    struct maq_node *list = maq_node_get(map, "unverified");
    if (!list)
        return MAQ_OK;
    maq_node_use_all(list);
    if (list->kind != MAQ_NODE_SEQ)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_WRONG_TYPE, list->at,
                             "for instance unverified: [power, peak.fp4]", "`unverified` must be a list of keys");
    for (const struct maq_node *item = list->first; item; item = item->next) {
        if (item->kind != MAQ_NODE_SCALAR)
            status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_WRONG_TYPE, item->at, NULL,
                                   "`unverified` must be a list of keys");
        else if (find(map, item->text) || find(also, item->text))
            add(names, item->text);
        else
            status = unknown(item, map, also, what, arena, diag);
    }
    return status;
}

enum maq_status maq_unverified_read(const char **names, struct maq_node *map, const struct maq_node *also,
                                    const char *what, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_str rest = maq_str_of(*names), name;
    struct maq_buf kept;
    maq_buf_init(&kept, NAMES_MAX_BYTES);
    while (maq_unverified_next(&rest, &name))
        if (!find(map, name) && !find(also, name))
            add(&kept, name);
    enum maq_status status = read_list(&kept, map, also, what, arena, diag);
    const char *copy =
        kept.len > 0 && !kept.failed ? maq_arena_strdup(arena, (struct maq_str){kept.ptr, kept.len}) : NULL;
    bool lost = kept.failed || (kept.len > 0 && !copy);
    maq_buf_fini(&kept);
    MAQ_TRY(status);
    if (lost)
        return maq_no_memory(diag, NULL);
    *names = copy;
    return MAQ_OK;
}
