/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fuzz_doc.c - any bytes at all as a document, and what a reader does with one.
 *
 * The first line may hold an assignment for --set ("path=value"); the rest is the document. Besides crashes, this looks
 * for broken promises: spans that leave their source, trees deeper than the limit, a failure without a diagnostic.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "spec/field.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct target {
    int32_t i;
    int64_t j;
    double d, bytes, rate, time;
    bool b;
    struct maq_str s;
    int e;
    struct maq_node *n;
};

static const char *const words[] = {"none", "selective", "full", NULL};

static const struct maq_field fields[] = {
    MAQ_FIELD_I32(struct target, i, "i", .aliases = "tp|int", .def = "1", .min = 1, .max = 1000, .doc = "a number"),
    MAQ_FIELD_I64(struct target, j, "j"),
    MAQ_FIELD_DOUBLE(struct target, d, "d", .required = true),
    MAQ_FIELD_QTY(struct target, bytes, "bytes", MAQ_DIM_BYTES, .min = 1),
    MAQ_FIELD_QTY(struct target, rate, "rate", MAQ_DIM_RATE, .def = "auto"),
    MAQ_FIELD_QTY(struct target, time, "time", MAQ_DIM_TIME),
    MAQ_FIELD_BOOL(struct target, b, "b"),
    MAQ_FIELD_STR(struct target, s, "s"),
    MAQ_FIELD_ENUM(struct target, e, "e", words, .def = "none"),
    MAQ_FIELD_NODE(struct target, n, "n"),
    MAQ_FIELD_END};

static void require(bool holds)
{
    if (!holds)
        abort();
}

static void check_tree(const struct maq_node *node, const struct maq_diag *diag, int depth)
{
    uint32_t count = 0;
    require(depth <= 65);
    require(maq_diag_place(diag, node->at).line > 0);
    for (const struct maq_node *child = node->first; child; child = child->next, count++) {
        require(node->kind != MAQ_NODE_SCALAR);
        require((node->kind == MAQ_NODE_MAP) == (child->key.ptr != NULL));
        check_tree(child, diag, depth + 1);
    }
    require(count == node->count);
}

/* Spans lie inside the text, values inside their parents; copies made for aliases lie elsewhere in it. */
static void check_spans(const struct maq_node *node, size_t len)
{
    require(node->at.off <= len && node->at.len <= len - node->at.off);
    require(node->key_at.off <= len && node->key_at.len <= len - node->key_at.off);
    for (const struct maq_node *child = node->first; child; child = child->next)
        check_spans(child, len);
}

static void read_everything(struct maq_doc *doc, struct maq_diag *diag)
{
    static const char *const also[] = {"base", NULL};
    struct target target = {0};
    struct maq_arena arena;
    uint8_t origins[16];
    char buf[64];
    maq_arena_init(&arena, 0);
    size_t errors = maq_diag_errors(diag);
    enum maq_status status = maq_fields_read(&target, fields, doc->root, origins, &arena, diag);
    require((status == MAQ_OK) == (maq_diag_errors(diag) == errors));
    for (size_t i = 0; fields[i].type != MAQ_TYPE_END; i++)
        require(strlen(maq_field_format(buf, &fields[i], &target)) < 64);
    maq_fields_check_keys(fields, also, doc->root, "test", diag);
    maq_doc_check_unused(doc, diag);
    maq_arena_fini(&arena);
}

/* Keys given twice and merge keys are followed there: what is refused otherwise may be a tree. */
static void read_another_tools(struct maq_str text)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_doc doc;
    enum maq_status status = maq_doc_parse_any(&doc, "fuzz", text, MAQ_ORIGIN_DOCUMENT, diag);
    require((status == MAQ_OK) == (maq_diag_errors(diag) == 0));
    if (doc.root)
        check_tree(doc.root, diag, 1);
    maq_doc_note_again(&doc, "it", diag);
    maq_doc_fini(&doc);
    maq_diag_free(diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct maq_str text = {(const char *)data, size}, line = {NULL, 0};
    if (size && memchr(data, '=', size < 100 ? size : 100)) {
        struct maq_str rest = maq_str_split(text, '\n', &line);
        if (rest.ptr && memchr(line.ptr, '=', line.len))
            text = rest;
        else
            line = (struct maq_str){NULL, 0};
    }
    struct maq_diag *diag = maq_diag_new();
    struct maq_doc doc;
    enum maq_status status = maq_doc_parse(&doc, "fuzz", text, MAQ_ORIGIN_DOCUMENT, diag);
    require((status == MAQ_OK) == (maq_diag_errors(diag) == 0));
    require(status == MAQ_OK || status == MAQ_BAD_INPUT || status == MAQ_LIMIT);
    if (doc.root)
        check_spans(doc.root, text.len);
    if (line.len) {
        char *copy = strndup(line.ptr, line.len);
        size_t errors = maq_diag_errors(diag);
        status = maq_doc_set(&doc, copy, diag);
        require((status == MAQ_OK) == (maq_diag_errors(diag) == errors));
        free(copy);
    }
    if (doc.root) {
        check_tree(doc.root, diag, 1);
        read_everything(&doc, diag);
    }
    free(maq_diag_format(diag, 0, size % 2 == 1));
    maq_doc_fini(&doc);
    maq_diag_free(diag);
    read_another_tools(text);
    return 0;
}
