/* SPDX-License-Identifier: Apache-2.0 */
/* doc_internal.h - what the files of src/spec share: limits, prepared text, the parser's door, small helpers. */
#ifndef MAQ_SPEC_DOC_INTERNAL_H
#define MAQ_SPEC_DOC_INTERNAL_H

#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"
#include "spec/doc.h"

#define MAQ_DOC_DEPTH_MAX 64u
#define MAQ_DOC_NODES_MAX 1000000u
#define MAQ_DOC_BYTES_MAX ((size_t)64 << 20)

/* --- doc_text.c ------------------------------------------------------------------------------------------- */

/* Text as libyaml gets it, and the way back from its offsets to those of the source. */
struct maq_doc_text {
    const char *ptr;
    size_t len;
    char *owned;                /* ptr when the text had to be rewritten; freed by _fini */
    struct maq_text_edit *edit; /* ascending */
    size_t n_edits, edits_size;
    uint32_t file; /* diagnostic source ... */
    size_t base;   /* ... and where in it the text begins */
};

/* Checks that src is UTF-8 without control characters and rewrites JSON's surrogate escapes. *out is initialised even
 * on failure: call maq__doc_text_fini(). src is borrowed until then. */
enum maq_status maq__doc_text_init(struct maq_doc_text *out, struct maq_str src, uint32_t file, size_t base,
                                   struct maq_diag *diag);
void maq__doc_text_fini(struct maq_doc_text *text);
/* The span of bytes [first, end) of text->ptr in the diagnostic source. */
struct maq_span maq__doc_text_span(const struct maq_doc_text *text, size_t first, size_t end);

/* --- doc_names.c ------------------------------------------------------------------------------------------ */

struct maq__doc_name_entry {
    struct maq_str name;
    uint64_t hash;
    uint32_t scope;        /* serial number of the map; 0 for anchors; entry is free when name.ptr is NULL */
    struct maq_span at;    /* of a key */
    struct maq_node *node; /* of an anchor */
};

/* Keys of maps, and anchors. Zero is none; free(table) ends it. */
struct maq__doc_names {
    struct maq__doc_name_entry *table;
    size_t size, used;
};

/* The entry of a name, made when it is new (then node and at are empty); NULL when out of memory. */
struct maq__doc_name_entry *maq__doc_names_intern(struct maq__doc_names *names, uint32_t scope, struct maq_str name,
                                                  bool *is_new);
/* NULL: there is none. */
const struct maq__doc_name_entry *maq__doc_names_find(const struct maq__doc_names *names, uint32_t scope,
                                                      struct maq_str name);

/* --- doc_parse.c ------------------------------------------------------------------------------------------ */

/* Builds the tree in `arena`; `depth` containers stand around it already. After faults that leave a tree (duplicate
 * keys, unless `again` takes them) *root is set and MAQ_BAD_INPUT returned; after others *root is NULL. */
enum maq_status maq__doc_build(struct maq_node **root, struct maq_arena *arena, const struct maq_doc_text *text,
                               enum maq_origin origin, uint32_t depth, struct maq_doc_again **again,
                               struct maq_diag *diag);

/* --- doc_toml.c ------------------------------------------------------------------------------------------- */

/* The same of TOML. After faults *root has what could be read. */
enum maq_status maq__doc_build_toml(struct maq_node **root, struct maq_arena *arena, const struct maq_doc_text *text,
                                    enum maq_origin origin, struct maq_diag *diag);

/* --- doc.c ------------------------------------------------------------------------------------------------ */

/* All of a file of at most MAQ_DOC_BYTES_MAX into text, which is to be freed even on failure; "-" is standard input. */
enum maq_status maq__doc_read(struct maq_buf *text, const char *path, struct maq_diag *diag);
/* The error of a key that is given twice. */
void maq__doc_say_again(const struct maq_doc_again *again, struct maq_diag *diag);
/* What such a path is called in messages. */
const char *maq__doc_name(const char *path);

/* The child with this key, null or not; NULL when absent or when map is not a map. Marks nothing. */
struct maq_node *maq__node_find(const struct maq_node *map, struct maq_str key);

/* --- doc_value.c ------------------------------------------------------------------------------------------ */

/* "'tp'" for a node with a key, "the value" otherwise. Returns buf. */
#define MAQ_LABEL_SIZE (MAQ_SHOW_SIZE + 8)
const char *maq__node_label(char buf[MAQ_LABEL_SIZE], const struct maq_node *node);
/* Marks the node used and gives its text; reports "must be <what>, not a list" and returns false when it is no scalar.
 * */
bool maq__node_scalar(struct maq_str *out, struct maq_node *node, const char *what, struct maq_diag *diag);

/* The candidate nearest to a mistyped word: feed all candidates, then look at `best` (NULL: nothing is near). */
struct maq_nearest {
    struct maq_str word;
    const char *best;
    size_t best_len;
    uint32_t distance;
    bool begun; /* `best` begins with the word */
};
/* Equal words, case and the choice of '-' or '_' aside. */
bool maq__same_but_dashes(struct maq_str a, struct maq_str b);
void maq__nearest_init(struct maq_nearest *n, struct maq_str word);
void maq__nearest_try(struct maq_nearest *n, struct maq_str candidate);

#endif
