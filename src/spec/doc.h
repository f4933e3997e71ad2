/* SPDX-License-Identifier: Apache-2.0 */
/*
 * doc.h - a document: YAML, JSON or TOML text as a tree of nodes that know their place.
 *
 * The parser runs on libyaml's events (JSON is read by the same code). It refuses duplicate keys of our own documents, depth over
 * 64, more than a million nodes, aliases and anchors' expansion beyond that, and more than one document; all
 * faults it can find are reported at once. Scalars stay text: their type is decided by the schema that reads
 * them (field.h), so that YAML 1.1's implicit types never happen.
 *
 * Every node counts whether somebody read it; maq_doc_check_unused() turns what nobody read into errors.
 */
#ifndef MAQ_SPEC_DOC_H
#define MAQ_SPEC_DOC_H

#include "base/arena.h"
#include "maquette/diag.h"

enum maq_node_kind { MAQ_NODE_SCALAR, MAQ_NODE_MAP, MAQ_NODE_SEQ };

struct maq_node {
    enum maq_node_kind kind;
    bool quoted;            /* scalar in quotes: never null */
    bool used;              /* somebody read it */
    uint8_t origin;         /* enum maq_origin: which layer of the configuration wrote it */
    struct maq_span at;     /* of the value */
    struct maq_span key_at; /* of the key, when the parent is a map */
    struct maq_str key;     /* when the parent is a map */
    struct maq_str text;    /* scalar: unescaped text */
    struct maq_node *first; /* children of a map or sequence, in document order */
    struct maq_node *next;  /* sibling */
    uint32_t count;         /* number of children */
};

/* Where a value came from, weakest first; --explain prints it. */
enum maq_origin {
    MAQ_ORIGIN_DEFAULT,
    MAQ_ORIGIN_CATALOGUE,
    MAQ_ORIGIN_FRAMEWORK,
    MAQ_ORIGIN_FILE, /* a configuration file of the framework */
    MAQ_ORIGIN_DOCUMENT,
    MAQ_ORIGIN_FLAG
};

/* A key that a map has twice; the tree has the last value. */
struct maq_doc_again {
    struct maq_str key;
    struct maq_span at, first;
    struct maq_doc_again *next;
};

struct maq_doc {
    struct maq_arena arena;      /* document lifetime: nodes and their text */
    struct maq_node *root;       /* NULL only for an empty document */
    uint32_t file;               /* diagnostic source */
    struct maq_doc_again *again; /* of documents that may be another tool's, in the order of the text */
};

/* Parses text (copied; name is for messages, and one that ends in ".toml" says that the text is TOML). *out is initialised even on failure: call maq_doc_fini(). */
enum maq_status maq_doc_parse(struct maq_doc *out, const char *name, struct maq_str text, enum maq_origin origin,
                              struct maq_diag *diag);
/* Reads a file of at most 64 MiB; "-" is standard input. */
enum maq_status maq_doc_load(struct maq_doc *out, const char *path, enum maq_origin origin, struct maq_diag *diag);
void maq_doc_fini(struct maq_doc *doc);

/*
 * The same of a document that may be another tool's, whose loader may take the last of two keys (PyYAML does): they are kept in `again`.
 * Who knows whose it is says what that means, an error or a note. Merge keys ('<<') are followed.
 */
enum maq_status maq_doc_parse_any(struct maq_doc *out, const char *name, struct maq_str text, enum maq_origin origin,
                                  struct maq_diag *diag);
enum maq_status maq_doc_load_any(struct maq_doc *out, const char *path, enum maq_origin origin, struct maq_diag *diag);
/* MAQ_BAD_INPUT where there are any, each an error. */
enum maq_status maq_doc_refuse_again(const struct maq_doc *doc, struct maq_diag *diag);
/* Notes that `who` takes the last. */
void maq_doc_note_again(const struct maq_doc *doc, const char *who, struct maq_diag *diag);

/* An empty map as root, for jobs described by flags alone. */
enum maq_status maq_doc_init_empty(struct maq_doc *out);

/* Child of a map by key, marked used; NULL when absent or when map is NULL. null/~ scalars count as absent. */
struct maq_node *maq_node_get(struct maq_node *map, const char *key);
/* Same, without marking. */
struct maq_node *maq_node_peek(const struct maq_node *map, const char *key);
bool maq_node_is_null(const struct maq_node *node);
void maq_node_use_all(struct maq_node *node); /* marks the whole subtree */

/*
 * Overlays `path=value` ("plan.tp=4", "model.num_hidden_layers=2"; value is parsed as a YAML flow value) with
 * origin FLAG; maps on the way are created. The text of the assignment is its own diagnostic source, named "
 * --set".
 */
enum maq_status maq_doc_set(struct maq_doc *doc, const char *assignment, struct maq_diag *diag);
/* The same with the path and value apart and the name of the flag ("--tp") for messages. */
enum maq_status maq_doc_set_value(struct maq_doc *doc, const char *path, const char *value, const char *flag,
                                  struct maq_diag *diag);

/*
 * Pairs as flags have them, "llama3,rate=4e-3/node/day,lemons={share: 0.01}", as the text of a document, a line for each; commas inside of
 * brackets part nothing. A first word without '=' is the value of the key `first`, any other one of an unknown key. Ends with free(); NULL: out
 * of memory.
 */
char *maq_doc_of_pairs(const char *text, const char *first);

/* One error per key nobody read. Call after all readers ran. */
enum maq_status maq_doc_check_unused(const struct maq_doc *doc, struct maq_diag *diag);

/* Typed reads of a scalar, for readers without a field table: they report and return false when it is not one. */
bool maq_node_i64(int64_t *out, struct maq_node *node, struct maq_diag *diag);
bool maq_node_double(double *out, struct maq_node *node, struct maq_diag *diag);
bool maq_node_bool(bool *out, struct maq_node *node, struct maq_diag *diag); /* true/false yes/no on/off */

#endif
