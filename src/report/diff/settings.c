/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - what was asked for, leaf by leaf: those that differ between two reports.
 *
 * Maps are compared by their keys and lists by their places. Two scalars are the same when their texts are, or the numbers that they
 * write: versions of the program may write 1 and 1.0. What was asked for is a tree with names in it (`cluster.groups.0.device.name`);
 * where a name differs, what stands beside and below it is another thing's, and is marked as following from it.
 */
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"
#include "report/diff/diff.h"

#define PATH_MAX_BYTES 160 /* reports have no longer ones; what is longer is left out */
#define KEYS_MAX 4096      /* of a map: each is looked for among those of the other */

struct walk {
    struct maq_diff_reader *r;
    const char *section; /* NULL: the first word of the path */
    const char *const
        *less; /* leaves of these names are no settings, nor what ends in a unit; NULL: all are. Ended by NULL */
};

static bool is_same(const struct maq_node *a, const struct maq_node *b)
{
    double x, y;
    return maq_str_eq(a->text, b->text) ||
           (!a->quoted && !b->quoted && maq_str_to_double(&x, a->text) && maq_str_to_double(&y, b->text) && x == y);
}

static enum maq_status grow(struct maq_diff *d, struct maq_diag *diag)
{
    uint32_t size = d->settings_size ? d->settings_size * 2 : 32;
    struct maq_diff_setting *grown = MAQ_ARENA_NEW(&d->arena, struct maq_diff_setting, size);
    if (!grown)
        return maq_no_memory(diag, "a comparison");
    if (d->n_settings > 0)
        memcpy(grown, d->settings, d->n_settings * sizeof *grown);
    d->settings = grown;
    d->settings_size = size;
    return MAQ_OK;
}

static void add(struct walk *w, const char *path, const struct maq_node *a, const struct maq_node *b, bool aside)
{
    struct maq_diff *d = w->r->diff;
    struct maq_str section = maq_str_of(w->section), key = maq_str_of(path), first;
    if (!w->section) {
        struct maq_str rest = maq_str_split(key, '.', &first);
        section = rest.len > 0 ? first : MAQ_STR("job");
        key = rest.len > 0 ? rest : key;
    }
    if (d->n_settings == d->settings_size)
        w->r->status = maq_worse(w->r->status, grow(d, w->r->diag));
    struct maq_diff_setting s = {maq_arena_strdup(&d->arena, section), maq_arena_strdup(&d->arena, key), {a, b}, aside};
    if (w->r->status == MAQ_OK && s.section && s.key)
        d->settings[d->n_settings++] = s;
    else
        w->r->status = maq_worse(w->r->status, MAQ_NO_MEMORY);
}

/* The child of that key, null or not. */
static struct maq_node *child_of(const struct maq_node *map, struct maq_str key)
{
    struct maq_node *child = map->first;
    while (child && !maq_str_eq(child->key, key))
        child = child->next;
    return child;
}

/* Whether two maps are of two things: each has a name, and they are not the same. */
static bool are_others(const struct maq_node *a, const struct maq_node *b)
{
    const struct maq_node *x = maq_node_peek(a, "name"), *y = maq_node_peek(b, "name");
    return x && y && x->kind == MAQ_NODE_SCALAR && y->kind == MAQ_NODE_SCALAR && !maq_str_eq(x->text, y->text);
}

/* What the program answers lies beside what it was given: "step_time_s", "memory_bytes", and those that are named. */
static bool is_answer(const struct walk *w, struct maq_str key)
{
    static const char *const units[] = {"_s", "_bytes"};
    for (size_t i = 0; w->less && i < MAQ_COUNT(units); i++) {
        size_t n = strlen(units[i]);
        if (key.len > n && memcmp(key.ptr + key.len - n, units[i], n) == 0)
            return true;
    }
    for (size_t i = 0; w->less && w->less[i]; i++)
        if (maq_str_is(key, w->less[i]))
            return true;
    return false;
}

static void compare(struct walk *w, const char *path, struct maq_node *a, struct maq_node *b, bool aside);

/* A member of a map or an item of a list, `key` in the one at `path`. */
static void compare_below(struct walk *w, const char *path, struct maq_str key, struct maq_node *a, struct maq_node *b,
                          bool aside)
{
    char all[PATH_MAX_BYTES];
    if (is_answer(w, key))
        return;
    int n = maq__snprintf(all, sizeof all, "%s%s%.*s", path, *path ? "." : "", (int)key.len, key.ptr);
    if (n > 0 && (size_t)n < sizeof all)
        compare(w, all, a, b, aside);
}

static bool too_many_keys(struct walk *w, const struct maq_node *map)
{
    if (map->count <= KEYS_MAX)
        return false;
    w->r->status = maq_worse(w->r->status, maq_diag_fail(MAQ_LIMIT, w->r->diag, MAQ_CODE_TOO_MANY_NODES, map->at, NULL,
                                                         "more than %d keys in one map of a report", KEYS_MAX));
    return true;
}

static void compare_maps(struct walk *w, const char *path, struct maq_node *a, struct maq_node *b, bool aside)
{
    bool whole = !*path && !w->section; /* a job, whose name is its title */
    bool others = !whole && are_others(a, b);
    if (too_many_keys(w, a) || too_many_keys(w, b))
        return;
    for (struct maq_node *x = a->first; x; x = x->next)
        if (!whole || !maq_str_is(x->key, "name"))
            compare_below(w, path, x->key, x, child_of(b, x->key), aside || (others && !maq_str_is(x->key, "name")));
    for (struct maq_node *y = b->first; y; y = y->next)
        if (!child_of(a, y->key) && (!whole || !maq_str_is(y->key, "name")))
            compare_below(w, path, y->key, NULL, y, aside || (others && !maq_str_is(y->key, "name")));
}

/* What an item is known by: its `key`, where both have one and it is the same, else its place. */
static struct maq_str label_of(char number[16], uint32_t i, const struct maq_node *x, const struct maq_node *y)
{
    const struct maq_node *a = x && x->kind == MAQ_NODE_MAP ? maq_node_peek(x, "key") : NULL;
    const struct maq_node *b = y && y->kind == MAQ_NODE_MAP ? maq_node_peek(y, "key") : NULL;
    if (a && b && a->kind == MAQ_NODE_SCALAR && b->kind == MAQ_NODE_SCALAR && maq_str_eq(a->text, b->text))
        return a->text;
    maq__snprintf(number, 16, "%u", i);
    return maq_str_of(number);
}

static void compare_lists(struct walk *w, const char *path, struct maq_node *a, struct maq_node *b, bool aside)
{
    char number[16];
    struct maq_node *x = a->first, *y = b->first;
    for (uint32_t i = 0; x || y; i++, x = x ? x->next : NULL, y = y ? y->next : NULL)
        compare_below(w, path, label_of(number, i, x, y), x, y, aside);
}

/* Recursion is as deep as a document may be (doc.h). */
static void compare(struct walk *w, const char *path, struct maq_node *a, struct maq_node *b, bool aside)
{
    a = a && maq_node_is_null(a) ? NULL : a;
    b = b && maq_node_is_null(b) ? NULL : b;
    if (w->r->status != MAQ_OK || (!a && !b))
        return;
    if (!a || !b || a->kind != b->kind)
        add(w, path, a, b, aside);
    else if (a->kind == MAQ_NODE_MAP)
        compare_maps(w, path, a, b, aside);
    else if (a->kind == MAQ_NODE_SEQ)
        compare_lists(w, path, a, b, aside);
    else if (!is_same(a, b))
        add(w, path, a, b, aside);
}

void maq_diff_settings(struct maq_diff_reader *r, const char *path, const char *section)
{
    struct walk w = {r, section, NULL};
    compare(&w, "", maq_diff_node(r->diff, MAQ_DIFF_BEFORE, path), maq_diff_node(r->diff, MAQ_DIFF_AFTER, path), false);
}

void maq_diff_settings_of(struct maq_diff_reader *r, struct maq_node *const of[MAQ_DIFF_SIDES], const char *section,
                          const char *const *less)
{
    struct walk w = {r, section, less};
    struct maq_node *a = of[MAQ_DIFF_BEFORE], *b = of[MAQ_DIFF_AFTER], *only = a ? a : b;
    if (a && b) {
        compare(&w, "", a, b, false);
    } else if (only && only->kind == MAQ_NODE_MAP && !too_many_keys(&w, only)) { /* every leaf is in one report alone */
        for (struct maq_node *x = only->first; x; x = x->next)
            compare_below(&w, "", x->key, a ? x : NULL, a ? NULL : x, false);
    }
}

void maq_diff_setting(struct maq_diff_reader *r, const char *section, const char *key,
                      struct maq_node *const of[MAQ_DIFF_SIDES])
{
    struct walk w = {r, section, NULL};
    compare(&w, key, of[MAQ_DIFF_BEFORE], of[MAQ_DIFF_AFTER], false);
}
