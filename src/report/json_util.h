/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_util.h - JSON documents that come out whole or not at all: the first failure is kept and told at the end.
 *
 * Numbers are written with 12 significant digits, so that the same result gives the same bytes; a number that is not
 * finite is null, a text that is not UTF-8 is null. Members keep the order in which they were added.
 */
#ifndef MAQ_REPORT_JSON_UTIL_H
#define MAQ_REPORT_JSON_UTIL_H

#include <jansson.h>

#include "maquette/diag.h"

/* An object or list inside a document; passed by value. */
struct maq_json {
    json_t *at;
    struct maq_json_document *document;
};

struct maq_json_document {
    struct maq_json root;
    bool failed;
};

/* An object with `schema` and `maquette`: {version, commit, compiler}. */
void maq_json_begin(struct maq_json_document *document, const char *schema);
/* Frees the document; *out is indented text with a line break at the end, owned by the caller (free()). */
enum maq_status maq_json_finish(char **out, struct maq_json_document *document, struct maq_diag *diag);
/* The same, NULL where it failed. */
char *maq_json_take(struct maq_json_document *document);

/* New members of an object. */
void maq_json_text(struct maq_json map, const char *key, const char *value); /* NULL: null */
void maq_json_slice(struct maq_json map, const char *key, struct maq_str value);
void maq_json_real(struct maq_json map, const char *key, double value);
void maq_json_int(struct maq_json map, const char *key, int64_t value);
void maq_json_count(struct maq_json map, const char *key,
                    double value); /* whole number in a double: integer where it fits */
void maq_json_bool(struct maq_json map, const char *key, bool value);
void maq_json_null(struct maq_json map, const char *key);
void maq_json_positive(struct maq_json map, const char *key, double value); /* what is not above zero: null */
/* Several of them in a row: MAQ_JSON_REALS(map, {"low_s", low}, {"high_s", high}). */
struct maq_json_figure {
    const char *key;
    double value;
};
struct maq_json_number {
    const char *key;
    int64_t value;
};
void maq_json_reals(struct maq_json map, const struct maq_json_figure *figures); /* the last one has no key */
void maq_json_ints(struct maq_json map, const struct maq_json_number *numbers);
#define MAQ_JSON_REALS(map, ...) maq_json_reals(map, (const struct maq_json_figure[]){__VA_ARGS__, {NULL, 0}})
#define MAQ_JSON_INTS(map, ...) maq_json_ints(map, (const struct maq_json_number[]){__VA_ARGS__, {NULL, 0}})
struct maq_json maq_json_map(struct maq_json map, const char *key);
struct maq_json maq_json_list(struct maq_json map, const char *key);
/* At the end of a list. */
struct maq_json maq_json_item(struct maq_json list);
void maq_json_word(struct maq_json list, const char *text);

#endif
