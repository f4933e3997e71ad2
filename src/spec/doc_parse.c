/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc_parse.c - libyaml's events to a tree of nodes.
 *
 * libyaml checks neither duplicate keys nor depth nor size, and its document API is quadratic on nested brackets; so
 * the event API is used with our own stack of MAQ_DOC_DEPTH_MAX frames, a count of nodes (expanded aliases included)
 * and one hash table of (map, key) and of anchors (doc_names.c).
 *
 * Faults that leave the rest readable (a duplicate key, an unknown alias, a tag) are reported and parsing goes on; a
 * syntax error or a limit ends it. Of a document that may be another tool's, duplicate keys are kept beside the tree, which has the
 * last, and merge keys ('<<') are followed.
 *
 * libyaml's marks count characters. Events come in the order of the text, so a cursor (character, byte) that walks from
 * mark to mark converts them in linear time altogether.
 */
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "spec/doc_internal.h"

#define FAULTS_MAX 1000u /* after so many faults in one document reading on helps nobody */

struct frame {
    struct maq_node *node, *last;
    uint32_t scope;
    bool flow;     /* [...] or {...}: the end mark is exact */
    bool as_key;   /* a container where a key belongs: parsed, reported, dropped */
    bool have_key; /* a map between key and value */
    bool drop;     /* the value that follows belongs nowhere */
    bool
        merging; /* the value that follows is a map, or a list of maps, whose keys are this one's unless it has them itself */
    struct maq_node *merged;
    struct maq_str key;
    struct maq_span key_at;
    size_t end; /* byte behind the last thing inside */
};

struct builder {
    yaml_parser_t yaml;
    const struct maq_doc_text *text;
    struct maq_arena *arena;
    struct maq_diag *diag;
    enum maq_origin origin;
    uint32_t outer_depth;
    struct maq_doc_again **again; /* end of the list of keys given twice; NULL: they are errors */

    struct maq_node *root;
    uint32_t nodes, scopes, documents, faults, kept, depth;
    size_t cursor_char, cursor_byte;
    struct maq__doc_names names;
    struct frame frames[MAQ_DOC_DEPTH_MAX];
};

/* --- places ----------------------------------------------------------------------------------------------- */

static bool starts_char(char c)
{
    return ((unsigned char)c & 0xC0) != 0x80;
}

static size_t byte_of(struct builder *b, const yaml_mark_t *mark)
{
    const char *s = b->text->ptr;
    while (b->cursor_char < mark->index && b->cursor_byte < b->text->len) {
        do
            b->cursor_byte++;
        while (b->cursor_byte < b->text->len && !starts_char(s[b->cursor_byte]));
        b->cursor_char++;
    }
    while (b->cursor_char > mark->index && b->cursor_byte > 0) {
        do
            b->cursor_byte--;
        while (b->cursor_byte > 0 && !starts_char(s[b->cursor_byte]));
        b->cursor_char--;
    }
    return b->cursor_byte;
}

struct bytes {
    size_t first, end;
};

static struct bytes bytes_of(struct builder *b, const yaml_event_t *event)
{
    size_t first = byte_of(b, &event->start_mark);
    return (struct bytes){first, byte_of(b, &event->end_mark)};
}

static struct maq_span span_of(const struct builder *b, struct bytes at)
{
    return maq__doc_text_span(b->text, at.first, at.end);
}

/* --- faults ----------------------------------------------------------------------------------------------- */

/* Counts a fault that was just reported; parsing goes on until there are too many. */
static enum maq_status count_fault(struct builder *b)
{
    return ++b->faults < FAULTS_MAX ? MAQ_OK : MAQ_BAD_INPUT;
}

static enum maq_status no_memory(struct builder *b)
{
    return maq_no_memory(b->diag, NULL);
}

static const char *syntax_hint(const struct builder *b, const char *problem, size_t at)
{
    static const struct {
        const char *problem, *hint;
    } hints[] = {
        {"mapping values are not allowed", "a text that contains ': ' needs quotes; otherwise check the indentation"},
        {"did not find expected key", "check the indentation of this line and the one before it"},
        {"did not find expected '-' indicator", "check the indentation of this line and the one before it"},
        {"could not find expected ':'", "a key is followed by a colon, a space and its value"},
        {"did not find expected ','", "a comma or a closing bracket is missing before this place"},
        {"found unexpected end of stream", "a quote that was opened is never closed"},
        {"found unknown escape character",
         "in double quotes a backslash is written \\\\; single quotes take it as it is"},
        {"found undefined tag handle", "a text that begins with '!' needs quotes"},
    };
    char c = at < b->text->len ? b->text->ptr[at] : '\0';
    if (strstr(problem, "cannot start any token")) {
        if (c == '\t')
            return "indent with spaces: YAML does not take tabs here";
        return "a text that begins with this character needs quotes";
    }
    for (size_t i = 0; i < MAQ_COUNT(hints); i++)
        if (strstr(problem, hints[i].problem))
            return hints[i].hint;
    return NULL;
}

static enum maq_status syntax_error(struct builder *b)
{
    const yaml_parser_t *yaml = &b->yaml;
    if (yaml->error == YAML_MEMORY_ERROR)
        return no_memory(b);
    const char *problem = yaml->problem ? yaml->problem : "cannot be read";
    const char *context = yaml->context ? yaml->context : "";
    size_t at = byte_of(b, &yaml->problem_mark);
    size_t end = at;
    if (at < b->text->len && b->text->ptr[at] != '\n' && b->text->ptr[at] != '\r')
        for (end++; end < b->text->len && !starts_char(b->text->ptr[end]);)
            end++;
    maq_diag_add(b->diag, MAQ_ERROR, MAQ_CODE_SYNTAX, span_of(b, (struct bytes){at, end}), syntax_hint(b, problem, at),
                 "not valid YAML: %s%s%s", problem, *context ? " " : "", context);
    if (*context && yaml->context_mark.line != yaml->problem_mark.line) {
        size_t began = byte_of(b, &yaml->context_mark);
        maq_diag_add(b->diag, MAQ_NOTE, MAQ_CODE_SYNTAX, span_of(b, (struct bytes){began, began}), NULL,
                     "which began here");
    }
    return MAQ_BAD_INPUT;
}

/* --- nodes ------------------------------------------------------------------------------------------------ */

static enum maq_status new_node(struct maq_node **out, struct builder *b, enum maq_node_kind kind, struct maq_span at)
{
    if (++b->nodes > MAQ_DOC_NODES_MAX) {
        maq_diag_add(b->diag, MAQ_ERROR, MAQ_CODE_TOO_MANY_NODES, at, NULL,
                     "more than %u values in one document (expanded aliases count)", MAQ_DOC_NODES_MAX);
        return MAQ_LIMIT;
    }
    struct maq_node *node = MAQ_ARENA_NEW(b->arena, struct maq_node, 1);
    if (!node)
        return no_memory(b);
    node->kind = kind;
    node->origin = (uint8_t)b->origin;
    node->at = at;
    *out = node;
    return MAQ_OK;
}

static enum maq_status copy_text(struct maq_str *out, struct builder *b, const yaml_char_t *text, size_t len)
{
    char *copy = maq_arena_strdup(b->arena, (struct maq_str){(const char *)text, len});
    if (!copy)
        return no_memory(b);
    *out = (struct maq_str){copy, len};
    return MAQ_OK;
}

static enum maq_status set_anchor(struct builder *b, const yaml_char_t *anchor, struct maq_node *node)
{
    struct maq_str name;
    bool is_new;
    if (!anchor)
        return MAQ_OK;
    MAQ_TRY(copy_text(&name, b, anchor, strlen((const char *)anchor)));
    struct maq__doc_name_entry *e = maq__doc_names_intern(&b->names, 0, name, &is_new);
    if (!e)
        return no_memory(b);
    e->node = node; /* a later anchor of the same name replaces the earlier one, says YAML */
    return MAQ_OK;
}

/* A deep copy for an alias; spans keep pointing at the text that the anchor marks. */
static enum maq_status copy_node(struct maq_node **out, struct builder *b, const struct maq_node *from, uint32_t depth,
                                 struct maq_span alias_at)
{
    struct maq_node *node;
    if (from->kind != MAQ_NODE_SCALAR && depth > MAQ_DOC_DEPTH_MAX) {
        maq_diag_add(b->diag, MAQ_ERROR, MAQ_CODE_TOO_DEEP, alias_at, NULL,
                     "nested more than %u levels deep through aliases", MAQ_DOC_DEPTH_MAX);
        return MAQ_LIMIT;
    }
    MAQ_TRY(new_node(&node, b, from->kind, alias_at));
    *node = *from;
    node->next = node->first = NULL;
    struct maq_node **tail = &node->first;
    for (const struct maq_node *child = from->first; child; child = child->next) {
        MAQ_TRY(copy_node(tail, b, child, depth + 1, alias_at));
        tail = &(*tail)->next;
    }
    *out = node;
    return MAQ_OK;
}

/* --- where a value goes ----------------------------------------------------------------------------------- */

static struct frame *top_frame(struct builder *b)
{
    return b->depth ? &b->frames[b->depth - 1] : NULL;
}

/* Where there must be one: between the start and the end of a container. */
static struct frame *open_frame(struct builder *b)
{
    MAQ_ASSERT(b->depth > 0);
    return &b->frames[b->depth - 1];
}

static bool key_expected(struct builder *b)
{
    const struct frame *f = top_frame(b);
    return f && f->node->kind == MAQ_NODE_MAP && !f->have_key;
}

/* The earlier value goes: what follows is the key's. */
static enum maq_status keep_last(struct builder *b, struct frame *f, const struct maq_doc_again *again)
{
    struct maq_node **at = &f->node->first, *before = NULL;
    struct maq_doc_again *kept = MAQ_ARENA_NEW(b->arena, struct maq_doc_again, 1);
    if (!kept)
        return no_memory(b);
    while (*at && !maq_str_eq((*at)->key, again->key)) {
        before = *at;
        at = &before->next;
    }
    if (*at) { /* not there where its value was an unknown alias */
        f->last = *at == f->last ? before : f->last;
        *at = (*at)->next;
        f->node->count--;
    }
    *kept = *again;
    *b->again = kept;
    b->again = &kept->next;
    return MAQ_OK;
}

static enum maq_status take_key(struct builder *b, struct maq_str key, struct maq_span at, bool plain)
{
    struct frame *f = open_frame(b);
    bool is_new;
    f->have_key = true;
    f->drop = false;
    f->key = key;
    f->key_at = at;
    f->merging = plain && maq_str_is(key, "<<");
    if (f->merging && b->again)
        return MAQ_OK;
    if (f->merging) {
        f->merging = false;
        f->drop = true;
        maq_diag_add(b->diag, MAQ_ERROR, MAQ_CODE_SYNTAX, at, "repeat the keys, or use an alias for the whole value",
                     "merge keys ('<<') are not supported");
        return count_fault(b);
    }
    struct maq__doc_name_entry *e = maq__doc_names_intern(&b->names, f->scope, key, &is_new);
    if (!e)
        return no_memory(b);
    if (is_new) {
        e->at = at;
        return MAQ_OK;
    }
    struct maq_doc_again again = {.key = key, .at = at, .first = e->at};
    if (b->again && b->kept++ < FAULTS_MAX)
        return keep_last(b, f, &again);
    f->drop = true;
    maq__doc_say_again(&again, b->diag);
    return count_fault(b);
}

/* A list, map or alias stands where a key belongs. */
static enum maq_status refuse_key(struct builder *b, struct maq_span at, const char *what)
{
    struct frame *f = open_frame(b);
    f->have_key = f->drop = true;
    maq_diag_add(b->diag, MAQ_ERROR, MAQ_CODE_SYNTAX, at, NULL, "a key must be a plain text, not %s", what);
    return count_fault(b);
}

static void append(struct frame *f, struct maq_node *node)
{
    if (f->last)
        f->last->next = node;
    else
        f->node->first = node;
    f->last = node;
    f->node->count++;
}

/* Hangs a value into its parent. */
static void place(struct builder *b, struct maq_node *node)
{
    struct frame *f = top_frame(b);
    if (!f) {
        b->root = node;
        return;
    }
    bool keep = f->node->kind == MAQ_NODE_SEQ || !f->drop;
    if (f->node->kind == MAQ_NODE_MAP) {
        node->key = f->key;
        node->key_at = f->key_at;
        f->have_key = f->drop = false;
        if (f->merging) {
            struct maq_node **end = &f->merged;
            while (*end)
                end = &(*end)->next;
            *end = node;
            f->merging = false;
            return;
        }
    }
    if (keep)
        append(f, node);
}

/* YAML's merge keys: what a map has itself wins over what is merged into it, and the first of two merged ones over the second. */
static enum maq_status merge(struct builder *b, struct frame *f, struct maq_node *from)
{
    struct maq_node *next;
    if (from->kind == MAQ_NODE_SCALAR) {
        maq_diag_add(b->diag, MAQ_ERROR, MAQ_CODE_SYNTAX, from->at, NULL, "'<<' takes a map, or a list of maps");
        return count_fault(b);
    }
    for (struct maq_node *n = from->first; n; n = next) {
        bool is_new = true;
        next = n->next;
        if (from->kind == MAQ_NODE_SEQ) {
            MAQ_TRY(merge(b, f, n));
            continue;
        }
        if (!maq__doc_names_intern(&b->names, f->scope, n->key, &is_new))
            return no_memory(b);
        n->next = NULL;
        if (is_new)
            append(f, n);
    }
    return MAQ_OK;
}

static enum maq_status merge_all(struct builder *b, struct frame *f)
{
    for (struct maq_node *n = f->merged, *next; n; n = next) {
        next = n->next;
        MAQ_TRY(merge(b, f, n));
    }
    return MAQ_OK;
}

/* A value that cannot be had (unknown alias): the parent goes on without it. */
static void place_nothing(struct builder *b)
{
    struct frame *f = top_frame(b);
    if (f)
        f->have_key = f->drop = f->merging = false;
}

static void extend(struct builder *b, size_t end)
{
    struct frame *f = top_frame(b);
    if (f && f->end < end)
        f->end = end;
}

/* --- events ----------------------------------------------------------------------------------------------- */

/* YAML's own type tags say nothing that the schema does not know better; any other tag would be ignored silently. */
static enum maq_status check_tag(struct builder *b, const yaml_char_t *tag, struct maq_span at, bool *is_text)
{
    static const char *const known[] = {"str", "int", "float", "bool", "null", "map", "seq"};
    static const char prefix[] = "tag:yaml.org,2002:";
    const char *name = (const char *)tag;
    if (!tag)
        return MAQ_OK;
    if (strcmp(name, "!") == 0) {
        *is_text = true;
        return MAQ_OK;
    }
    if (strncmp(name, prefix, sizeof(prefix) - 1) == 0) {
        for (size_t i = 0; i < MAQ_COUNT(known); i++) {
            if (strcmp(name + sizeof(prefix) - 1, known[i]) == 0) {
                *is_text |= i == 0;
                return MAQ_OK;
            }
        }
    }
    char show[MAQ_SHOW_SIZE];
    maq_diag_add(b->diag, MAQ_ERROR, MAQ_CODE_SYNTAX, at, "a text that begins with '!' needs quotes",
                 "the tag '%s' means nothing here", maq_str_show(show, maq_str_of(name)));
    return count_fault(b);
}

static enum maq_status on_scalar(struct builder *b, const yaml_event_t *event)
{
    struct bytes at = bytes_of(b, event);
    const yaml_scalar_style_t style = event->data.scalar.style;
    if (style == YAML_LITERAL_SCALAR_STYLE || style == YAML_FOLDED_SCALAR_STYLE)
        while (at.end > at.first && strchr(" \t\r\n", b->text->ptr[at.end - 1]))
            at.end--;
    struct maq_span span = span_of(b, at);
    bool is_text = style != YAML_PLAIN_SCALAR_STYLE;
    struct maq_str text;
    struct maq_node *node;

    extend(b, at.end);
    MAQ_TRY(check_tag(b, event->data.scalar.tag, span, &is_text));
    MAQ_TRY(copy_text(&text, b, event->data.scalar.value, event->data.scalar.length));
    if (text.len && memchr(text.ptr, '\0', text.len)) {
        maq_diag_add(b->diag, MAQ_ERROR, MAQ_CODE_SYNTAX, span, NULL, "a text must not contain the character U+0000");
        MAQ_TRY(count_fault(b));
    }
    bool is_key = key_expected(b);
    if (!is_key || event->data.scalar.anchor) {
        MAQ_TRY(new_node(&node, b, MAQ_NODE_SCALAR, span));
        node->text = text;
        node->quoted = is_text;
        MAQ_TRY(set_anchor(b, event->data.scalar.anchor, node));
        if (!is_key)
            place(b, node);
    }
    return is_key ? take_key(b, text, span, !is_text) : MAQ_OK;
}

static enum maq_status on_alias(struct builder *b, const yaml_event_t *event)
{
    struct bytes at = bytes_of(b, event);
    struct maq_span span = span_of(b, at);
    const char *name = (const char *)event->data.alias.anchor;
    struct maq_node *copy;
    char show[MAQ_SHOW_SIZE];

    extend(b, at.end);
    if (key_expected(b))
        return refuse_key(b, span, "an alias");
    const struct maq__doc_name_entry *e = maq__doc_names_find(&b->names, 0, maq_str_of(name));
    if (!e || !e->node) {
        place_nothing(b);
        maq_diag_add(b->diag, MAQ_ERROR, MAQ_CODE_SYNTAX, span, "a text that begins with '*' needs quotes",
                     "the alias '*%s' has no anchor '&%s' before it", maq_str_show(show, maq_str_of(name)), show);
        return count_fault(b);
    }
    for (uint32_t i = 0; i < b->depth; i++) {
        if (b->frames[i].node == e->node) {
            place_nothing(b);
            maq_diag_add(b->diag, MAQ_ERROR, MAQ_CODE_SYNTAX, span, NULL, "the alias '*%s' stands inside its own value",
                         maq_str_show(show, maq_str_of(name)));
            return count_fault(b);
        }
    }
    MAQ_TRY(copy_node(&copy, b, e->node, b->outer_depth + b->depth + 1, span));
    copy->key = (struct maq_str){NULL, 0}; /* the original's; the copy gets that of its own place, if any */
    copy->key_at = (struct maq_span){0};
    place(b, copy);
    return MAQ_OK;
}

static enum maq_status on_start(struct builder *b, const yaml_event_t *event, enum maq_node_kind kind)
{
    struct bytes at = bytes_of(b, event);
    bool is_map = kind == MAQ_NODE_MAP, is_text = false; /* a container cannot be text: only checked */
    const yaml_char_t *tag = is_map ? event->data.mapping_start.tag : event->data.sequence_start.tag;
    const yaml_char_t *anchor = is_map ? event->data.mapping_start.anchor : event->data.sequence_start.anchor;
    bool as_key = key_expected(b);
    struct maq_node *node;

    if (b->outer_depth + b->depth >= MAQ_DOC_DEPTH_MAX)
        return maq_diag_fail(MAQ_LIMIT, b->diag, MAQ_CODE_TOO_DEEP, span_of(b, at), NULL,
                             "nested more than %u levels deep", MAQ_DOC_DEPTH_MAX);
    MAQ_TRY(check_tag(b, tag, span_of(b, at), &is_text));
    MAQ_TRY(new_node(&node, b, kind, span_of(b, at)));
    MAQ_TRY(set_anchor(b, anchor, node));
    if (as_key)
        MAQ_TRY(refuse_key(b, span_of(b, at), is_map ? "a map" : "a list"));
    else
        place(b, node);
    b->frames[b->depth++] = (struct frame){
        .node = node,
        .scope = ++b->scopes,
        .as_key = as_key,
        .end = at.end,
        .flow = is_map ? event->data.mapping_start.style == YAML_FLOW_MAPPING_STYLE
                       : event->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE,
    };
    return MAQ_OK;
}

static enum maq_status on_end(struct builder *b, const yaml_event_t *event)
{
    struct frame *f = open_frame(b);
    MAQ_TRY(merge_all(b, f));
    struct bytes at = bytes_of(b, event);
    struct maq_span end = maq__doc_text_span(b->text, 0, f->flow ? at.end : f->end);
    uint32_t stop = end.off + end.len;
    f->node->at.len = stop > f->node->at.off ? stop - f->node->at.off : 0;
    size_t byte = f->flow ? at.end : f->end;
    b->depth--;
    extend(b, byte);
    return MAQ_OK;
}

static enum maq_status on_event(struct builder *b, const yaml_event_t *event)
{
    switch ((int)event->type) {
    case YAML_DOCUMENT_START_EVENT:
        if (++b->documents > 1)
            return maq_diag_fail(MAQ_BAD_INPUT, b->diag, MAQ_CODE_SEVERAL_DOCUMENTS, span_of(b, bytes_of(b, event)),
                                 "write one document per file", "a second document begins here");
        return MAQ_OK;
    case YAML_SCALAR_EVENT:
        return on_scalar(b, event);
    case YAML_ALIAS_EVENT:
        return on_alias(b, event);
    case YAML_SEQUENCE_START_EVENT:
        return on_start(b, event, MAQ_NODE_SEQ);
    case YAML_MAPPING_START_EVENT:
        return on_start(b, event, MAQ_NODE_MAP);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return on_end(b, event);
    default:
        return MAQ_OK;
    }
}

static enum maq_status run(struct builder *b)
{
    for (bool done = false; !done;) {
        yaml_event_t event;
        if (!yaml_parser_parse(&b->yaml, &event))
            return syntax_error(b);
        enum maq_status status = on_event(b, &event);
        done = event.type == YAML_STREAM_END_EVENT;
        yaml_event_delete(&event);
        if (status != MAQ_OK)
            return status;
    }
    return MAQ_OK;
}

enum maq_status maq__doc_build(struct maq_node **root, struct maq_arena *arena, const struct maq_doc_text *text,
                               enum maq_origin origin, uint32_t depth, struct maq_doc_again **again,
                               struct maq_diag *diag)
{
    *root = NULL;
    struct builder *b = maq__calloc(sizeof(*b));
    if (!b)
        return maq_no_memory(diag, NULL);
    b->text = text;
    b->arena = arena;
    b->diag = diag;
    b->origin = origin;
    b->outer_depth = depth;
    b->again = again;
    if (!yaml_parser_initialize(&b->yaml)) {
        free(b);
        return maq_no_memory(diag, NULL);
    }
    yaml_parser_set_encoding(&b->yaml, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&b->yaml, (const yaml_char_t *)(text->len ? text->ptr : ""), text->len);

    enum maq_status status = run(b);
    if (status == MAQ_OK) {
        *root = b->root;
        status = b->faults ? MAQ_BAD_INPUT : MAQ_OK;
    }
    yaml_parser_delete(&b->yaml);
    free(b->names.table);
    free(b);
    return status;
}
