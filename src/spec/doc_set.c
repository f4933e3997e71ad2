/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc_set.c - values from the command line laid over a document.
 *
 *   --set plan.tp=4                maps on the way are made where there are none
 *   --set cluster.groups.0.nodes=8 entries of a list by number, from 0
 *   --set name="a, b"              quotes, [ ] and { } are read as YAML flow; anything else is taken as it stands, so that
 *                                  no character of a shell argument means something unexpected
 *   --set plan.tp=null             takes a value away
 *   --set model.num_hidden_layers=2   where the model is a name: what has a name and can be a map is {base: NAME} from there on,
 *                                  whichever of the two is said first
 *
 * What the user typed becomes a diagnostic source of its own, named after the flag.
 */
#include <string.h>

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "spec/doc_internal.h"

/* One assignment: slices of `source`, which is the text registered for messages. */
struct assignment {
    struct maq_doc *doc;
    struct maq_diag *diag;
    struct maq_str source, path, value;
    uint32_t file;
    bool path_is_flag; /* the path is not in the source: the flag's own name stands for it */
    size_t flag_len;
};

static struct maq_span part_span(const struct assignment *a, struct maq_str part)
{
    if (a->path_is_flag && !(part.ptr >= a->source.ptr && part.ptr <= a->source.ptr + a->source.len))
        return (struct maq_span){a->file, 0, (uint32_t)a->flag_len};
    return (struct maq_span){a->file, (uint32_t)(part.ptr - a->source.ptr), (uint32_t)part.len};
}

static enum maq_status new_value(struct maq_node **out, const struct assignment *a, enum maq_node_kind kind,
                                 struct maq_span at)
{
    struct maq_node *node = MAQ_ARENA_NEW(&a->doc->arena, struct maq_node, 1);
    if (!node)
        return maq_no_memory(a->diag, NULL);
    node->kind = kind;
    node->origin = MAQ_ORIGIN_FLAG;
    node->at = at;
    *out = node;
    return MAQ_OK;
}

static enum maq_status parse_value(struct maq_node **out, const struct assignment *a, uint32_t depth)
{
    struct maq_str value = maq_str_trim(a->value);
    struct maq_span at = part_span(a, value);
    struct maq_doc_text text;
    if (!value.len)
        return maq_diag_fail(MAQ_BAD_INPUT, a->diag, MAQ_CODE_BAD_SET, at, "write null to take a value away",
                             "there is no value");
    enum maq_status status = maq__doc_text_init(&text, value, a->file, at.off, a->diag);
    *out = NULL;
    if (status == MAQ_OK && strchr("[{\"'", value.ptr[0])) {
        status = maq__doc_build(out, &a->doc->arena, &text, MAQ_ORIGIN_FLAG, depth, NULL, a->diag);
        MAQ_ASSERT(*out || status != MAQ_OK);
    } else if (status == MAQ_OK) {
        status = new_value(out, a, MAQ_NODE_SCALAR, at);
        char *copy = status == MAQ_OK ? maq_arena_strdup(&a->doc->arena, value) : NULL;
        if (copy)
            (*out)->text = (struct maq_str){copy, value.len};
        else if (status == MAQ_OK)
            status = maq_no_memory(a->diag, NULL);
    }
    maq__doc_text_fini(&text);
    return status;
}

/* Every segment must have a name; counts them. */
static enum maq_status check_path(uint32_t *count, const struct assignment *a)
{
    struct maq_str rest = a->path, segment;
    for (*count = 0; rest.ptr; ++*count) {
        rest = maq_str_split(rest, '.', &segment);
        if (!segment.len)
            return maq_diag_fail(MAQ_BAD_INPUT, a->diag, MAQ_CODE_BAD_SET, part_span(a, segment),
                                 "write it as section.key=value", "there is an empty name in the path");
    }
    if (*count >= MAQ_DOC_DEPTH_MAX)
        return maq_diag_fail(MAQ_LIMIT, a->diag, MAQ_CODE_TOO_DEEP, part_span(a, a->path), NULL,
                             "nested more than %u levels deep", MAQ_DOC_DEPTH_MAX);
    return MAQ_OK;
}

static enum maq_status list_entry(struct maq_node **out, const struct assignment *a, struct maq_node *list,
                                  struct maq_str segment)
{
    char label[MAQ_LABEL_SIZE], show[MAQ_SHOW_SIZE];
    int64_t index;
    if (!maq_str_to_i64(&index, segment) || index < 0 || index >= (int64_t)list->count)
        return maq_diag_fail(MAQ_BAD_INPUT, a->diag, MAQ_CODE_BAD_SET, part_span(a, segment),
                             "entries of a list are numbered from 0", "%s is a list of %u: there is no entry '%s'",
                             maq__node_label(label, list), (unsigned)list->count, maq_str_show(show, segment));
    *out = list->first;
    while (index--)
        *out = (*out)->next;
    return MAQ_OK;
}

/* The child of a map with this key, made as a null when there is none. */
static enum maq_status map_entry(struct maq_node **out, const struct assignment *a, struct maq_node *map,
                                 struct maq_str segment)
{
    struct maq_node **tail = &map->first;
    *out = maq__node_find(map, segment);
    if (*out)
        return MAQ_OK;
    MAQ_TRY(new_value(out, a, MAQ_NODE_SCALAR, part_span(a, segment)));
    char *key = maq_arena_strdup(&a->doc->arena, segment);
    if (!key)
        return maq_no_memory(a->diag, NULL);
    (*out)->key = (struct maq_str){key, segment.len};
    (*out)->key_at = part_span(a, segment);
    while (*tail)
        tail = &(*tail)->next;
    *tail = *out;
    map->count++;
    return MAQ_OK;
}

/* Keys whose value is a name, or a map that starts from one with `base`. */
static bool starts_from_a_name(struct maq_str key)
{
    static const char *const keys[] = {"model", "framework", "device", "fabric"};
    for (size_t i = 0; i < MAQ_COUNT(keys); i++)
        if (maq_str_is(key, keys[i]))
            return true;
    return false;
}

/* A scalar becomes {base: scalar}. */
static enum maq_status name_to_map(struct maq_node *node, const struct assignment *a, struct maq_str segment)
{
    struct maq_node *base;
    MAQ_TRY(new_value(&base, a, MAQ_NODE_SCALAR, node->at));
    base->text = node->text;
    base->quoted = node->quoted;
    base->origin = node->origin;
    base->key = MAQ_STR("base");
    base->key_at = node->at;
    node->kind = MAQ_NODE_MAP;
    node->quoted = false;
    node->text = (struct maq_str){NULL, 0};
    node->first = base;
    node->count = 1;
    node->origin = MAQ_ORIGIN_FLAG;
    node->at = part_span(a, segment);
    return MAQ_OK;
}

/* Makes sure that something can hang below `node`: a null becomes an empty map, another scalar is in the way. */
static enum maq_status open_node(struct maq_node *node, const struct assignment *a, struct maq_str segment)
{
    if (node->kind != MAQ_NODE_SCALAR)
        return MAQ_OK;
    if (!maq_node_is_null(node) && starts_from_a_name(node->key))
        return name_to_map(node, a, segment);
    if (!maq_node_is_null(node)) {
        char show[MAQ_SHOW_SIZE], label[MAQ_LABEL_SIZE];
        maq_str_show(show, node->text);
        return maq_diag_fail(MAQ_BAD_INPUT, a->diag, MAQ_CODE_BAD_SET, part_span(a, segment),
                             "set all of it, or write it as a map in the document",
                             "%s is the text '%s', so nothing can be set inside it", maq__node_label(label, node),
                             show);
    }
    node->kind = MAQ_NODE_MAP;
    node->quoted = false;
    node->text = (struct maq_str){NULL, 0};
    node->origin = MAQ_ORIGIN_FLAG;
    node->at = part_span(a, segment);
    return MAQ_OK;
}

static enum maq_status apply(const struct assignment *a)
{
    struct maq_str rest = a->path, segment;
    struct maq_node *value, *node = a->doc->root, *child = NULL;
    uint32_t depth;
    MAQ_TRY(check_path(&depth, a));
    MAQ_TRY(parse_value(&value, a, depth));
    if (!node) {
        MAQ_TRY(new_value(&node, a, MAQ_NODE_MAP, part_span(a, a->path)));
        a->doc->root = node;
    }
    MAQ_TRY(open_node(node, a, a->path));
    for (;;) {
        rest = maq_str_split(rest, '.', &segment);
        if (node->kind == MAQ_NODE_SEQ)
            MAQ_TRY(list_entry(&child, a, node, segment));
        else
            MAQ_TRY(map_entry(&child, a, node, segment));
        if (!rest.ptr)
            break;
        MAQ_TRY(open_node(child, a, segment));
        node = child;
    }
    /* `--set model.x=1 --model NAME`: the name is what the map starts from, instead of what is left of it */
    if (child->kind == MAQ_NODE_MAP && child->origin == MAQ_ORIGIN_FLAG && value->kind == MAQ_NODE_SCALAR &&
        !maq_node_is_null(value) && starts_from_a_name(child->key)) {
        struct maq_node *map = child, *base = maq__node_find(map, MAQ_STR("base"));
        if (!base) {
            MAQ_TRY(new_value(&base, a, MAQ_NODE_SCALAR, value->at));
            base->key = MAQ_STR("base");
            base->next = map->first;
            map->first = base;
            map->count++;
        }
        child = base;
    }
    child->kind = value->kind;
    child->quoted = value->quoted;
    child->used = false;
    child->origin = MAQ_ORIGIN_FLAG;
    child->at = value->at;
    if (child->key.ptr)
        child->key_at = part_span(a, segment);
    child->text = value->text;
    child->first = value->first;
    child->count = value->count;
    return MAQ_OK;
}

static enum maq_status add_source(struct assignment *a, const char *name)
{
    if (a->source.len > MAQ_DOC_BYTES_MAX)
        return maq_diag_fail(MAQ_LIMIT, a->diag, MAQ_CODE_FILE_TOO_LARGE, (struct maq_span){0}, NULL,
                             "the value of %s is too long", name);
    a->file = maq_diag_add_source(a->diag, name, a->source.ptr, a->source.len);
    return a->diag && !a->file ? maq_no_memory(a->diag, NULL) : MAQ_OK;
}

enum maq_status maq_doc_set(struct maq_doc *doc, const char *assignment, struct maq_diag *diag)
{
    struct assignment a = {.doc = doc, .diag = diag, .source = maq_str_of(assignment)};
    MAQ_TRY(add_source(&a, "--set"));
    a.value = maq_str_split(a.source, '=', &a.path);
    a.path = maq_str_trim(a.path);
    if (!a.value.ptr)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_BAD_SET, part_span(&a, a.source),
                             "write it as section.key=value, for example plan.tp=4", "there is no '=' in it");
    return apply(&a);
}

enum maq_status maq_doc_set_value(struct maq_doc *doc, const char *path, const char *value, const char *flag,
                                  struct maq_diag *diag)
{
    struct assignment a = {.doc = doc, .diag = diag, .path = maq_str_of(path), .path_is_flag = true};
    bool set = strcmp(flag, "--set") == 0; /* of several, the path says which */
    char *text = set ? maq_arena_printf(&doc->arena, "%s %s=%s", flag, path, value)
                     : maq_arena_printf(&doc->arena, "%s %s", flag, value);
    if (!text)
        return maq_no_memory(diag, NULL);
    a.source = maq_str_of(text);
    a.flag_len = strlen(flag) + (set ? 1 + strlen(path) : 0);
    a.value = (struct maq_str){text + a.flag_len + 1, a.source.len - a.flag_len - 1};
    MAQ_TRY(add_source(&a, flag));
    return apply(&a);
}

/* ---- pairs ---- */

/* Up to the first comma outside of brackets; the rest, or ptr = NULL. */
static struct maq_str split_item(struct maq_str s, struct maq_str *item)
{
    int depth = 0;
    for (size_t i = 0; i < s.len; i++) {
        depth += (s.ptr[i] == '{' || s.ptr[i] == '[') - (s.ptr[i] == '}' || s.ptr[i] == ']');
        if (s.ptr[i] == ',' && depth == 0) {
            *item = (struct maq_str){s.ptr, i};
            return (struct maq_str){s.ptr + i + 1, s.len - i - 1};
        }
    }
    *item = s;
    return (struct maq_str){NULL, 0};
}

char *maq_doc_of_pairs(const char *text, const char *first)
{
    struct maq_buf b;
    struct maq_str rest = maq_str_of(text), item;
    maq_buf_init(&b, 1 << 16);
    for (; rest.ptr; first = NULL) {
        rest = split_item(rest, &item);
        item = maq_str_trim(item);
        const char *equals = item.len > 0 ? memchr(item.ptr, '=', item.len) : NULL;
        size_t key = equals ? (size_t)(equals - item.ptr) : 0;
        if (equals)
            maq_buf_addf(&b, "%.*s: %.*s\n", (int)key, item.ptr, (int)(item.len - key - 1), equals + 1);
        else
            maq_buf_addf(&b, "%s: %.*s\n", first ? first : "''", (int)item.len, item.ptr);
    }
    return maq_buf_take(&b);
}
