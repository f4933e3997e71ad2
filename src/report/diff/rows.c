/* SPDX-License-Identifier: Apache-2.0 */
/* rows.c - rows of tables out of maps and lists of documents, whatever names are in them: another version may have others. */
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "report/diff/diff.h"

#define ROWS_MAX 1024 /* of a table; each is looked for in the other report */

/* Words that are written in capitals. */
static bool is_acronym(struct maq_str word)
{
    static const char *const words[] = {"tp", "cp", "ep", "pp", "dp", "kv", "gpu", "nccl"};
    for (size_t i = 0; i < MAQ_COUNT(words); i++)
        if (maq_str_is(word, words[i]))
            return true;
    return false;
}

const char *maq_diff_words(struct maq_arena *arena, struct maq_str key)
{
    char *text = maq_arena_strdup(arena, key);
    for (char *at = text; at && *at;) {
        size_t n = strcspn(at, "_");
        bool capitals = is_acronym((struct maq_str){at, n});
        for (size_t i = 0; capitals && i < n; i++)
            at[i] = (char)(at[i] - 'a' + 'A');
        at += n;
        if (*at)
            *at++ = ' ';
    }
    return text;
}

static bool ends_with(struct maq_str s, const char *suffix)
{
    size_t n = strlen(suffix);
    return s.len > n && memcmp(s.ptr + s.len - n, suffix, n) == 0;
}

static bool has_row(const struct maq_diff_table *t, struct maq_str key)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (maq_str_is(key, t->rows[i].key))
            return true;
    return false;
}

/* A row of that key, where there is none yet; `stem`: what its words are of. */
static void add(struct maq_diff_reader *r, struct maq_diff_table *t, struct maq_str key, struct maq_str stem,
                struct maq_diff_pair value)
{
    const char *copy = maq_arena_strdup(&r->diff->arena, key), *name = maq_diff_words(&r->diff->arena, stem);
    if (!copy || !name)
        r->status = maq_worse(r->status, maq_no_memory(r->diag, "a comparison"));
    else
        maq_diff_row(r, t, copy, name, value);
}

static bool is_full(struct maq_diff_reader *r, const struct maq_diff_table *t, const struct maq_node *at)
{
    if (t->n < ROWS_MAX)
        return false;
    r->status = maq_worse(r->status, maq_diag_fail(MAQ_LIMIT, r->diag, MAQ_CODE_TOO_MANY_NODES, at->at, NULL,
                                                   "more than %d rows in one table of a report", ROWS_MAX));
    return true;
}

void maq_diff_nodes(struct maq_node *out[MAQ_DIFF_SIDES], const struct maq_diff *diff, const char *path)
{
    for (int s = 0; s < MAQ_DIFF_SIDES; s++)
        out[s] = maq_diff_node(diff, (enum maq_diff_side)s, path);
}

static struct maq_node *member(const struct maq_node *map, struct maq_str key)
{
    struct maq_node *child = map && map->kind == MAQ_NODE_MAP ? map->first : NULL;
    while (child && !maq_str_eq(child->key, key))
        child = child->next;
    return child && maq_node_is_null(child) ? NULL : child;
}

/* The numbers of two nodes, either of which may be missing. */
static struct maq_diff_pair numbers(struct maq_diff_reader *r, struct maq_node *before, struct maq_node *after)
{
    struct maq_node *of[MAQ_DIFF_SIDES] = {before, after};
    return maq_diff_member(r, of, "");
}

void maq_diff_members(struct maq_diff_reader *r, struct maq_diff_table *t, struct maq_node *const map[MAQ_DIFF_SIDES],
                      const char *suffix)
{
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        if (!map[s] || map[s]->kind != MAQ_NODE_MAP)
            continue;
        for (struct maq_node *x = map[s]->first; x && !is_full(r, t, x); x = x->next) {
            struct maq_str stem = {x->key.ptr, x->key.len - strlen(suffix)};
            if (ends_with(x->key, suffix) && !has_row(t, x->key))
                add(r, t, x->key, stem, numbers(r, member(map[0], x->key), member(map[1], x->key)));
        }
    }
}

static struct maq_node *item(const struct maq_node *list, struct maq_str key, const char *name)
{
    for (struct maq_node *x = list && list->kind == MAQ_NODE_SEQ ? list->first : NULL; x; x = x->next) {
        const struct maq_node *of = x->kind == MAQ_NODE_MAP ? maq_node_peek(x, name) : NULL;
        if (of && of->kind == MAQ_NODE_SCALAR && maq_str_eq(of->text, key))
            return x;
    }
    return NULL;
}

void maq_diff_items(struct maq_diff_reader *r, struct maq_diff_table *t, struct maq_node *const list[MAQ_DIFF_SIDES],
                    const char *name, const char *value)
{
    for (int s = 0; s < MAQ_DIFF_SIDES; s++) {
        if (!list[s] || list[s]->kind != MAQ_NODE_SEQ)
            continue;
        for (struct maq_node *x = list[s]->first; x && !is_full(r, t, x); x = x->next) {
            const struct maq_node *of = x->kind == MAQ_NODE_MAP ? maq_node_peek(x, name) : NULL;
            if (!of || of->kind != MAQ_NODE_SCALAR || has_row(t, of->text))
                continue;
            struct maq_node *both[MAQ_DIFF_SIDES] = {item(list[0], of->text, name), item(list[1], of->text, name)};
            add(r, t, of->text, of->text, maq_diff_member(r, both, value));
        }
    }
}
