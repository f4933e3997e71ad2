/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalogue_entry.c - loads an entry by name, from a file or from a map over its chain of bases, and makes the hints
 * for unknown names. See catalogue_entry.h.
 */
#include "cluster/catalogue_entry.h"

#include "base/text.h"
#include "spec/catalogue.h"

#define MAX_BASE_DEPTH 8
#define NAMES_MAX_BYTES 8192

enum maq_status maq__entry_keep(const char **out, struct maq_str s, struct maq_arena *arena, struct maq_diag *diag)
{
    if (s.len == 0)
        return MAQ_OK;
    const char *copy = maq_arena_strdup(arena, s);
    if (!copy)
        return maq_no_memory(diag, NULL);
    *out = copy;
    return MAQ_OK;
}

enum maq_status maq__entry_read(void *target, const struct maq__entry_head *head, const struct maq_field *fields,
                                const char *noun, struct maq_node *map, struct maq_arena *arena, struct maq_diag *diag)
{
    enum maq_status status = maq_fields_read_map(target, fields, map, noun, arena, diag);
    if (head->aliases)
        maq_node_use_all(head->aliases);
    return status;
}

enum maq_status maq__entry_keep_head(const char **name, const char **title, const char **source,
                                     const struct maq__entry_head *head, struct maq_arena *arena, struct maq_diag *diag)
{
    MAQ_TRY(maq__entry_keep(name, head->name, arena, diag));
    MAQ_TRY(maq__entry_keep(title, head->title, arena, diag));
    return maq__entry_keep(source, head->source, arena, diag);
}

enum maq_status maq__entry_section(void *target, const struct maq_field *fields, struct maq_node *map, const char *what,
                                   uint16_t code, const char *fault, struct maq_arena *arena, struct maq_diag *diag)
{
    if (!map)
        return MAQ_OK;
    if (map->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, code, map->at, NULL, "%s", fault);
    return maq_fields_read_map(target, fields, map, what, arena, diag);
}

/* ---- names of the catalogue ---- */

const char *maq__catalogue_names(const char *section, struct maq_arena *arena)
{
    struct maq_buf b;
    maq_buf_init(&b, NAMES_MAX_BYTES);
    const struct maq_catalogue_entry *e;
    for (size_t i = 0; (e = maq_catalogue_at(section, i)) != NULL; i++)
        maq_buf_addf(&b, "%s%s", i > 0 ? ", " : "", e->name);
    const char *names = b.ptr && !b.failed ? maq_arena_strdup(arena, (struct maq_str){b.ptr, b.len}) : NULL;
    maq_buf_fini(&b);
    return names ? names : "";
}

const char *maq__catalogue_hint(const char *section, struct maq_str name, struct maq_arena *arena)
{
    const char *near = maq_catalogue_nearest(section, name);
    return near ? maq_arena_printf(arena, "did you mean '%s'?", near)
                : maq_arena_printf(arena, "known %s: %s", section, maq__catalogue_names(section, arena));
}

static bool ends_with(struct maq_str s, const char *tail)
{
    struct maq_str t = maq_str_of(tail);
    return s.len > t.len && maq_str_ieq((struct maq_str){s.ptr + s.len - t.len, t.len}, tail);
}

bool maq__is_document_path(struct maq_str text)
{
    return ends_with(text, ".yaml") || ends_with(text, ".yml") || ends_with(text, ".json");
}

/* ---- loading ---- */

static enum maq_status load_any(struct maq__entry e, struct maq_node *node, int depth, struct maq_arena *arena,
                                struct maq_diag *diag);

static enum maq_status load_map(struct maq__entry e, struct maq_node *map, int depth, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    struct maq_node *base = maq_node_get(map, "base");
    if (base)
        MAQ_TRY(load_any(e, base, depth + 1, arena, diag));
    return e.kind->lay(e.value, map, arena, diag);
}

static enum maq_status load_document(struct maq__entry e, struct maq_doc *doc, struct maq_span at, int depth,
                                     struct maq_arena *arena, struct maq_diag *diag)
{
    if (!doc->root || doc->root->kind != MAQ_NODE_MAP)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, doc->root ? doc->root->at : at, NULL,
                             "a %s file must hold a map", e.kind->noun);
    return load_map(e, doc->root, depth, arena, diag);
}

static enum maq_status load_catalogue(struct maq__entry e, struct maq_str name, struct maq_span at, int depth,
                                      struct maq_arena *arena, struct maq_diag *diag)
{
    const struct maq_catalogue_entry *entry = maq_catalogue_find(e.kind->section, name);
    if (!entry) {
        char show[MAQ_SHOW_SIZE];
        struct maq_str slip = maq_field_slip(e.kind->slips, name);
        const char *hint = slip.len ? maq_arena_printf(arena, "did you mean '%.*s'?", (int)slip.len, slip.ptr)
                                    : maq__catalogue_hint(e.kind->section, name, arena);
        return maq_diag_fail(MAQ_BAD_INPUT, diag, e.kind->unknown_code, at, hint, "unknown %s '%s'", e.kind->noun,
                             maq_str_show(show, name));
    }
    struct maq_doc doc;
    enum maq_status status =
        maq_doc_parse(&doc, entry->name, (struct maq_str){entry->text, entry->len}, MAQ_ORIGIN_CATALOGUE, diag);
    if (status == MAQ_OK)
        status = load_document(e, &doc, at, depth, arena, diag);
    maq_doc_fini(&doc);
    *e.name = entry->name; /* not that of a base */
    return status;
}

static enum maq_status load_file(struct maq__entry e, struct maq_str path, struct maq_span at, int depth,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    MAQ_TRY(maq__entry_keep(e.name, path, arena, diag));
    struct maq_doc doc;
    enum maq_status status = maq_doc_load(&doc, *e.name, MAQ_ORIGIN_DOCUMENT, diag);
    if (status == MAQ_OK)
        status = load_document(e, &doc, at, depth, arena, diag);
    maq_doc_fini(&doc);
    return status;
}

static enum maq_status load_any(struct maq__entry e, struct maq_node *node, int depth, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    node->used = true;
    if (depth > MAX_BASE_DEPTH)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_BASE_DEPTH, node->at, "`base` may not lead back to itself",
                             "more than %d %ss in a chain of `base`", MAX_BASE_DEPTH, e.kind->noun);
    if (node->kind == MAQ_NODE_SEQ)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CLUSTER_FORM, node->at, NULL,
                             "a %s is a catalogue name, a file, or a map, not a list", e.kind->noun);
    if (node->kind == MAQ_NODE_MAP)
        return load_map(e, node, depth, arena, diag);
    if (maq__is_document_path(node->text))
        return load_file(e, node->text, node->at, depth, arena, diag);
    return load_catalogue(e, node->text, node->at, depth, arena, diag);
}

enum maq_status maq__entry_load(struct maq__entry e, struct maq_node *node, struct maq_arena *arena,
                                struct maq_diag *diag)
{
    return load_any(e, node, 0, arena, diag);
}

enum maq_status maq__entry_by_name(struct maq__entry e, struct maq_str name, struct maq_span at,
                                   struct maq_arena *arena, struct maq_diag *diag)
{
    return load_catalogue(e, name, at, 0, arena, diag);
}
