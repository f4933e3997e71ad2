/* SPDX-License-Identifier: Apache-2.0 */
/*
 * reader.c - walks a framework's file by the table of its form, and looks up what several keys say together. See reader.h.
 */
#include "plan/framework_files/reader.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/text.h"

#define LONGEST_KEY 512
#define MOST_NAMES 4096 /* bytes of unknown keys that a warning names */

/* ---- values ---- */

/* A key may have dots of its own (MODEL_ARGS' names have none, command lines as YAML do): the longest name that is there counts. */
static const struct maq_node *descend(const struct maq_node *map, const char *key)
{
    for (const struct maq_node *n = map && map->kind == MAQ_NODE_MAP ? map->first : NULL; n; n = n->next) {
        if (strncmp(n->key.ptr, key, n->key.len) != 0)
            continue;
        if (key[n->key.len] == '\0')
            return n;
        const struct maq_node *below = key[n->key.len] == '.' ? descend(n, key + n->key.len + 1) : NULL;
        if (below)
            return below;
    }
    return NULL;
}

static bool is_auto(const struct maq_node *n)
{
    return n->kind == MAQ_NODE_SCALAR && maq_str_is(n->text, "auto");
}

const struct maq_node *maq_file_get(const struct maq_file_reader *r, const char *key)
{
    const struct maq_node *n = descend(r->root, key);
    return n && !maq_node_is_null(n) && !is_auto(n) ? n : NULL;
}

struct maq_str maq_file_text(const struct maq_file_reader *r, const char *key, const char *otherwise)
{
    const struct maq_node *n = maq_file_get(r, key);
    return n && n->kind == MAQ_NODE_SCALAR ? n->text : maq_str_of(otherwise);
}

bool maq_file_is(const struct maq_file_reader *r, const char *key, const char *text)
{
    return maq_str_ieq(maq_file_text(r, key, NULL), text);
}

/* A word of "a|b|c", letters of either case. */
static bool among(struct maq_str text, const char *words)
{
    struct maq_str rest = maq_str_of(words), word;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '|', &word);
        if (maq_str_same(word, text))
            return true;
    }
    return false;
}

bool maq_file_true(const struct maq_file_reader *r, const char *key, bool otherwise)
{
    struct maq_str text = maq_file_text(r, key, NULL);
    return text.ptr ? among(text, "true|yes|on|1") : otherwise;
}

int64_t maq_file_number(const struct maq_file_reader *r, const char *key, int64_t otherwise)
{
    struct maq_str text = maq_file_text(r, key, NULL);
    int64_t n;
    double d;
    if (maq_str_to_i64(&n, text))
        return n;
    bool whole = maq_str_to_double(&d, text) && d >= 0 && d < 1e15 && (double)(int64_t)d >= d;
    return whole ? (int64_t)d : otherwise;
}

bool maq_file_asks(const struct maq_node *node, const char *off)
{
    if (maq_node_is_null(node) || is_auto(node))
        return false;
    if (node->kind == MAQ_NODE_SCALAR)
        return !among(node->text, "false|no|off|none|0|0.0") && node->text.len > 0 && !among(node->text, off);
    const struct maq_node *enabled = maq_node_peek(node, "enabled");
    if (node->kind == MAQ_NODE_SEQ || enabled)
        return enabled ? maq_file_asks(enabled, NULL) : node->count > 0;
    bool maps = false;
    for (const struct maq_node *n = node->first; n; n = n->next) {
        maps |= n->kind == MAQ_NODE_MAP;
        if (n->kind == MAQ_NODE_MAP && maq_file_asks(n, off))
            return true;
    }
    return !maps && node->count > 0;
}

/* ---- faults ---- */

void maq_file_no_memory(struct maq_file_reader *r)
{
    r->status = maq_no_memory(r->diag, "a framework's file");
}

static struct maq_span place_of(const struct maq_file_reader *r, const struct maq_node *at)
{
    struct maq_span start = {r->root->at.file, r->root->at.off, 1};
    return at ? at->at : start;
}

void maq_file_fault(struct maq_file_reader *r, const struct maq_node *at, const char *hint, const char *fmt, ...)
{
    char text[512];
    va_list list;
    va_start(list, fmt);
    (void)vsnprintf(text, sizeof text, fmt, list);
    va_end(list);
    maq_diag_add(r->diag, MAQ_ERROR, MAQ_CODE_FILE_VALUE, place_of(r, at), hint, "%s", text);
    if (r->status == MAQ_OK)
        r->status = MAQ_BAD_INPUT;
}

/* ---- the walk ---- */

/* Matches exactly, or up to the star at the end. */
static bool matches(const char *pattern, const char *key)
{
    size_t n = strlen(pattern);
    return pattern[n - 1] == '*' ? strncmp(pattern, key, n - 1) == 0 : strcmp(pattern, key) == 0;
}

/* The row of a key by its own name, or the first with a star that it matches. */
static const struct maq_file_key *row_in(const struct maq_file_key *row, const char *key, bool star)
{
    while (row && row->key && !(star ? matches(row->key, key) : strcmp(row->key, key) == 0))
        row++;
    return row && row->key ? row : NULL;
}

static const struct maq_file_key *row_of(const struct maq_file_form *form, const char *key, bool star)
{
    const struct maq_file_key *own = row_in(form->keys, key, star);
    return own ? own : row_in(form->more, key, star);
}

/* Whether some row is of a key below this one. */
static bool rows_below(const struct maq_file_form *form, const char *key)
{
    size_t n = strlen(key);
    for (const struct maq_file_key *row = form->keys; row->key; row++)
        if (strncmp(row->key, key, n) == 0 && row->key[n] == '.' && row->key[n + 1] != '*')
            return true;
    return false;
}

/* What a text is called here; *known is false where no pair has it. */
static struct maq_str ours(const char *values, struct maq_str text, bool *known)
{
    struct maq_str rest = maq_str_of(values), pair, theirs;
    *known = true;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '|', &pair);
        struct maq_str own = maq_str_split(pair, '=', &theirs);
        if (maq_str_same(theirs, text))
            return own;
    }
    *known = false;
    return (struct maq_str){NULL, 0};
}

/* "a, b, c" of "a=1|b=2|c=3". */
static void add_theirs(struct maq_buf *out, const char *values)
{
    struct maq_str rest = maq_str_of(values), pair, theirs;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '|', &pair);
        maq_str_split(pair, '=', &theirs);
        maq_buf_addf(out, "%s%.*s", out->len ? ", " : "it takes ", (int)theirs.len, theirs.ptr);
    }
}

static void refuse_value(struct maq_file_reader *r, const struct maq_node *n, const char *key, const char *values)
{
    struct maq_buf hint;
    char show[MAQ_SHOW_SIZE];
    maq_buf_init(&hint, 4096);
    add_theirs(&hint, values);
    maq_file_fault(r, n, hint.failed ? NULL : hint.ptr, "%s: '%s' is nothing that is known here", key,
                   maq_str_show(show, n->text));
    maq_buf_fini(&hint);
}

static void set_by_row(struct maq_file_reader *r, const struct maq_node *n, const char *key,
                       const struct maq_file_key *row)
{
    bool known = true;
    struct maq_str value = n->text;
    if (maq_node_is_null(n) || is_auto(n))
        return;
    if (n->kind != MAQ_NODE_SCALAR) {
        maq_file_fault(r, n, NULL, "%s takes one value, not a %s", key, n->kind == MAQ_NODE_MAP ? "map" : "list");
        return;
    }
    if (row->values)
        value = ours(row->values, n->text, &known);
    if (!known)
        refuse_value(r, n, key, row->values);
    else if (value.len > 0)
        maq_file_set(r, n, row->to, maq_arena_strdup(&r->job->arena, value));
}

static void take(struct maq_file_reader *r, const struct maq_node *n, const char *key, const struct maq_file_key *row)
{
    if (row->take == MAQ_FILE_SETS)
        set_by_row(r, n, key, row);
    else if (row->take == MAQ_FILE_REFUSED && maq_file_asks(n, row->values))
        maq_file_fault(r, n, "turn it off to see the rest, or say what it does by maquette's own options",
                       "%s is not modelled: %s", key, row->why);
}

static void note_unknown(struct maq_file_reader *r, const struct maq_node *n, const char *key)
{
    if (r->unknown.len == 0)
        r->first_unknown = n->key_at;
    if (r->unknown.len < MOST_NAMES)
        maq_buf_addf(&r->unknown, "%s%s", r->unknown.len ? ", " : "", key);
}

static void walk(struct maq_file_reader *r, const struct maq_node *map, const char *before)
{
    for (const struct maq_node *n = map->first; n; n = n->next) {
        char key[LONGEST_KEY];
        maq__snprintf(key, sizeof key, "%s%s%.*s", before, *before ? "." : "",
                      (int)(n->key.len < 200 ? n->key.len : 200), n->key.ptr);
        const struct maq_file_key *row = row_of(r->form, key, false);
        const bool down = !row && n->kind == MAQ_NODE_MAP && rows_below(r->form, key);
        row = row || down ? row : row_of(r->form, key, true);
        if (down)
            walk(r, n, key);
        else if (row)
            take(r, n, key, row);
        else if (!maq_node_is_null(n) && !(r->form->knows && r->form->knows(key)))
            note_unknown(r, n, key);
    }
}

void maq_file_walk(struct maq_file_reader *r)
{
    maq_buf_init(&r->unknown, MOST_NAMES + LONGEST_KEY);
    if (r->form->conclude)
        r->form->conclude(r);
    walk(r, r->root, "");
    if (r->unknown.len > 0 && !r->unknown.failed)
        maq_diag_add(r->diag, MAQ_WARNING, MAQ_CODE_FILE_UNKNOWN, r->first_unknown, NULL,
                     "keys of %s that nothing here knows, taken to change nothing: %s", r->form->title, r->unknown.ptr);
    maq_buf_fini(&r->unknown);
}
