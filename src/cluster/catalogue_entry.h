/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalogue_entry.h - where a device or a fabric may be written: a catalogue name, a file, or a map, over a chain of `base`.
 *
 * The kind says what differs: the section of the catalogue, the noun of the messages, and how a map is read. The value
 * is the caller's, filled with what holds where nothing is written; the map of a base is laid over it, then the map that
 * names the base. After an error the value is half read: load into a copy.
 */
#ifndef MAQ_CLUSTER_CATALOGUE_ENTRY_H
#define MAQ_CLUSTER_CATALOGUE_ENTRY_H

#include "cluster/cluster_internal.h"
#include "spec/field.h"

struct maq__entry_kind {
    const char *section;   /* of the catalogue: "devices" */
    const char *noun;      /* "device" */
    uint16_t unknown_code; /* of a name that the catalogue lacks */
    const char *slips;     /* other names that people have for entries, as struct maq_field has them; NULL = none */
    /* Lays what a map writes over *value; the base is there already. */
    enum maq_status (*lay)(void *value, struct maq_node *map, struct maq_arena *arena, struct maq_diag *diag);
};

struct maq__entry {
    const struct maq__entry_kind *kind;
    void *value;
    const char **name; /* in *value: until a map says otherwise, that of the catalogue's entry or of the file */
};

enum maq_status maq__entry_load(struct maq__entry e, struct maq_node *node, struct maq_arena *arena,
                                struct maq_diag *diag);
/* By catalogue name; `at` is where the name stands. */
enum maq_status maq__entry_by_name(struct maq__entry e, struct maq_str name, struct maq_span at,
                                   struct maq_arena *arena, struct maq_diag *diag);

/* What every kind says of itself: a member of what its map is read into, and the rows of the table that reads it. */
struct maq__entry_head {
    struct maq_str name, title, source;
    struct maq_node *base, *aliases, *unverified;
};
#define MAQ_ENTRY_HEAD(T, head_, base_doc, title_doc, source_doc)                                                      \
    MAQ_FIELD_NODE(T, head_.base, "base", .doc = base_doc),                                                            \
        MAQ_FIELD_STR(T, head_.name, "name", .doc = "name in reports"),                                                \
        MAQ_FIELD_NODE(T, head_.aliases, "aliases", .doc = "other names in the catalogue"),                            \
        MAQ_FIELD_STR(T, head_.title, "title", .doc = title_doc),                                                      \
        MAQ_FIELD_STR(T, head_.source, "source", .doc = source_doc),                                                   \
        MAQ_FIELD_NODE(T, head_.unverified, "unverified", .doc = "keys of figures that were not read there")

/* Reads a map by such a table; its head is in *target. Keys that the table lacks are faults. */
enum maq_status maq__entry_read(void *target, const struct maq__entry_head *head, const struct maq_field *fields,
                                const char *noun, struct maq_node *map, struct maq_arena *arena, struct maq_diag *diag);

/* What a map says of itself and its base did not: copies in `arena`. */
enum maq_status maq__entry_keep_head(const char **name, const char **title, const char **source,
                                     const struct maq__entry_head *head, struct maq_arena *arena,
                                     struct maq_diag *diag);

/* A map inside of it, laid over what *target holds; NULL is fine. `fault` and its code: of what is no map. */
enum maq_status maq__entry_section(void *target, const struct maq_field *fields, struct maq_node *map, const char *what,
                                   uint16_t code, const char *fault, struct maq_arena *arena, struct maq_diag *diag);

/* *out becomes a copy of s in `arena`; stays as it is when s is empty. */
enum maq_status maq__entry_keep(const char **out, struct maq_str s, struct maq_arena *arena, struct maq_diag *diag);

#endif
