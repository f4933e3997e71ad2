/* SPDX-License-Identifier: Apache-2.0 */
/* doc.c - loads and parses documents, looks up nodes, and reports keys that were never read. See doc.h. */
#include "spec/doc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "spec/cannot_read.h"
#include "spec/doc_internal.h"
#include "spec/foreign_file.h"

#define ARENA_CAP ((size_t)1 << 30)

static enum maq_status too_large(struct maq_diag *diag, const char *name)
{
    return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_FILE_TOO_LARGE, (struct maq_span){0}, NULL,
                         "'%s' is larger than the limit of %zu MiB for a document", name, MAQ_DOC_BYTES_MAX >> 20);
}

static bool is_toml(const char *name)
{
    size_t n = strlen(name);
    return n > 5 && strcmp(name + n - 5, ".toml") == 0;
}

static void doc_init(struct maq_doc *out)
{
    *out = (struct maq_doc){0};
    maq_arena_init(&out->arena, ARENA_CAP);
}

void maq__doc_say_again(const struct maq_doc_again *again, struct maq_diag *diag)
{
    char show[MAQ_SHOW_SIZE];
    maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_DUPLICATE_KEY, again->at, "keep one of the two",
                 "the key '%s' is given twice", maq_str_show(show, again->key));
    maq_diag_add(diag, MAQ_NOTE, MAQ_CODE_DUPLICATE_KEY, again->first, NULL, "first given here");
}

enum maq_status maq_doc_refuse_again(const struct maq_doc *doc, struct maq_diag *diag)
{
    for (const struct maq_doc_again *a = doc->again; a; a = a->next)
        maq__doc_say_again(a, diag);
    return doc->again ? MAQ_BAD_INPUT : MAQ_OK;
}

void maq_doc_note_again(const struct maq_doc *doc, const char *who, struct maq_diag *diag)
{
    char show[MAQ_SHOW_SIZE];
    for (const struct maq_doc_again *a = doc->again; a; a = a->next)
        maq_diag_add(diag, MAQ_NOTE, MAQ_CODE_DUPLICATE_KEY, a->at, NULL,
                     "the key '%s' is given twice: this one counts, which is the one that %s takes",
                     maq_str_show(show, a->key), who);
}

static enum maq_status parse(struct maq_doc *out, const char *name, struct maq_str text, enum maq_origin origin,
                             bool any, struct maq_diag *diag)
{
    doc_init(out);
    if (text.len > MAQ_DOC_BYTES_MAX)
        return too_large(diag, name);
    if (maq_str_starts(text, "\xEF\xBB\xBF")) { /* byte order mark: no part of the text, nor of its columns */
        text.ptr += 3;
        text.len -= 3;
    }
    if (diag) {
        out->file = maq_diag_add_source(diag, name, text.ptr, text.len);
        if (!out->file)
            return maq_no_memory(diag, NULL);
    }
    struct maq_doc_text prepared;
    enum maq_status status = maq__doc_text_init(&prepared, text, out->file, 0, diag);
    if (status == MAQ_OK && is_toml(name))
        status = maq__doc_build_toml(&out->root, &out->arena, &prepared, origin, diag);
    else if (status == MAQ_OK)
        status = maq__doc_build(&out->root, &out->arena, &prepared, origin, 0, any ? &out->again : NULL, diag);
    maq__doc_text_fini(&prepared);
    /* "---" alone is an empty document too */
    if (out->root && out->root->kind == MAQ_NODE_SCALAR && !out->root->quoted && !out->root->text.len)
        out->root = NULL;
    if (status != MAQ_OK) /* nobody will ask whose document it is */
        (void)maq_doc_refuse_again(out, diag);
    return status;
}

enum maq_status maq_doc_parse(struct maq_doc *out, const char *name, struct maq_str text, enum maq_origin origin,
                              struct maq_diag *diag)
{
    return parse(out, name, text, origin, false, diag);
}

enum maq_status maq_doc_parse_any(struct maq_doc *out, const char *name, struct maq_str text, enum maq_origin origin,
                                  struct maq_diag *diag)
{
    return parse(out, name, text, origin, true, diag);
}

/* Reads all of f into text; an error leaves the reason in errno. */
static enum maq_status read_all(struct maq_buf *text, FILE *f)
{
    char chunk[16384];
    for (size_t n = 1; n;) {
        n = fread(chunk, 1, sizeof(chunk), f);
        maq_buf_add(text, chunk, n);
        if (ferror(f))
            return MAQ_IO;
        if (text->failed)
            return text->len + n > text->max ? MAQ_LIMIT : MAQ_NO_MEMORY;
    }
    return MAQ_OK;
}

#define WANTED "a document: YAML, JSON or TOML"

const char *maq__doc_name(const char *path)
{
    return strcmp(path, "-") == 0 ? "stdin" : path;
}

enum maq_status maq__doc_read(struct maq_buf *text, const char *path, struct maq_diag *diag)
{
    const char *name = maq__doc_name(path);
    bool is_stdin = name != path;
    FILE *f = is_stdin ? stdin : fopen(path, "rbe");
    maq_buf_init(text, MAQ_DOC_BYTES_MAX);
    if (!f)
        return maq_cannot_read(diag, name, WANTED, errno);
    errno = 0;
    enum maq_status status = read_all(text, f);
    int error = errno;
    if (!is_stdin)
        fclose(f);
    if (status == MAQ_IO)
        maq_cannot_read(diag, name, WANTED, error);
    else if (status == MAQ_LIMIT)
        too_large(diag, name);
    else if (status != MAQ_OK)
        maq_no_memory(diag, NULL);
    return status;
}

/* What was read is another tool's file; one that is compressed is looked into again. */
static const struct maq_foreign *foreign(const struct maq_buf *text, const char *path)
{
    struct maq_str head = {text->ptr ? text->ptr : "", text->len};
    bool compressed = head.len >= 2 && memcmp(head.ptr, "\x1f\x8b", 2) == 0;
    return compressed ? maq_foreign_file(path) : maq_foreign_bytes(head);
}

static enum maq_status load(struct maq_doc *out, const char *path, enum maq_origin origin, bool any,
                            struct maq_diag *diag)
{
    struct maq_buf text;
    doc_init(out);
    enum maq_status status = maq__doc_read(&text, path, diag);
    if (status == MAQ_OK && origin == MAQ_ORIGIN_DOCUMENT)
        status = maq_foreign_refuse(foreign(&text, path), maq__doc_name(path), "a document of maquette",
                                    (struct maq_span){0}, diag);
    if (status == MAQ_OK)
        status =
            parse(out, maq__doc_name(path), (struct maq_str){text.ptr ? text.ptr : "", text.len}, origin, any, diag);
    maq_buf_fini(&text);
    return status;
}

enum maq_status maq_doc_load(struct maq_doc *out, const char *path, enum maq_origin origin, struct maq_diag *diag)
{
    return load(out, path, origin, false, diag);
}

enum maq_status maq_doc_load_any(struct maq_doc *out, const char *path, enum maq_origin origin, struct maq_diag *diag)
{
    return load(out, path, origin, true, diag);
}

void maq_doc_fini(struct maq_doc *doc)
{
    maq_arena_fini(&doc->arena);
    doc->root = NULL;
}

enum maq_status maq_doc_init_empty(struct maq_doc *out)
{
    doc_init(out);
    out->root = MAQ_ARENA_NEW(&out->arena, struct maq_node, 1);
    if (!out->root)
        return MAQ_NO_MEMORY;
    out->root->kind = MAQ_NODE_MAP;
    out->root->origin = MAQ_ORIGIN_DEFAULT;
    return MAQ_OK;
}

bool maq_node_is_null(const struct maq_node *node)
{
    static const char *const nulls[] = {"", "~", "null", "Null", "NULL"};
    if (!node)
        return true;
    if (node->kind != MAQ_NODE_SCALAR || node->quoted)
        return false;
    for (size_t i = 0; i < MAQ_COUNT(nulls); i++)
        if (maq_str_is(node->text, nulls[i]))
            return true;
    return false;
}

struct maq_node *maq__node_find(const struct maq_node *map, struct maq_str key)
{
    if (!map || map->kind != MAQ_NODE_MAP)
        return NULL;
    for (struct maq_node *child = map->first; child; child = child->next)
        if (maq_str_eq(child->key, key))
            return child;
    return NULL;
}

struct maq_node *maq_node_get(struct maq_node *map, const char *key)
{
    struct maq_node *child = maq__node_find(map, maq_str_of(key));
    if (!child)
        return NULL;
    map->used = true;
    child->used = true;
    return maq_node_is_null(child) ? NULL : child;
}

struct maq_node *maq_node_peek(const struct maq_node *map, const char *key)
{
    struct maq_node *child = maq__node_find(map, maq_str_of(key));
    return maq_node_is_null(child) ? NULL : child;
}

/* Depth is bounded by MAQ_DOC_DEPTH_MAX, so recursion is safe here and below. */
void maq_node_use_all(struct maq_node *node)
{
    if (!node)
        return;
    node->used = true;
    for (struct maq_node *child = node->first; child; child = child->next)
        maq_node_use_all(child);
}

static size_t report_unused(const struct maq_node *node, struct maq_diag *diag)
{
    size_t found = 0;
    for (const struct maq_node *child = node->first; child; child = child->next) {
        if (node->kind == MAQ_NODE_MAP && !child->used) {
            char show[MAQ_SHOW_SIZE];
            maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_UNUSED_KEY, child->key_at,
                         "check its spelling and its section, or remove it", "nothing reads the key '%s'",
                         maq_str_show(show, child->key));
            found++;
        } else {
            found += report_unused(child, diag);
        }
    }
    return found;
}

enum maq_status maq_doc_check_unused(const struct maq_doc *doc, struct maq_diag *diag)
{
    return doc->root && report_unused(doc->root, diag) ? MAQ_BAD_INPUT : MAQ_OK;
}
