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

struct maq__entry_kind {
    const char *section;   /* of the catalogue: "devices" */
    const char *noun;      /* "device" */
    uint16_t unknown_code; /* of a name that the catalogue lacks */
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

/* *out becomes a copy of s in `arena`; stays as it is when s is empty. */
enum maq_status maq__entry_keep(const char **out, struct maq_str s, struct maq_arena *arena, struct maq_diag *diag);

#endif
