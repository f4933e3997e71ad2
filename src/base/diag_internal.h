/* SPDX-License-Identifier: Apache-2.0 */
/* diag_internal.h - what diag.c (collecting) and diag_format.c (printing) share. */
#ifndef MAQ_BASE_DIAG_INTERNAL_H
#define MAQ_BASE_DIAG_INTERNAL_H

#include "base/arena.h"
#include "maquette/diag.h"

#define MAQ_SOURCE_BLOCK ((size_t)4096)

/* A character of a source: its byte, its line and column (1-based, in characters), the first byte of its line. */
struct maq_checkpoint {
    uint32_t off, line, column, line_start;
};

struct maq_source {
    const char *name, *text;
    size_t len;
    struct maq_checkpoint *checkpoints; /* [len / MAQ_SOURCE_BLOCK + 1] */
};

struct maq_diag {
    struct maq_arena arena; /* texts, names, messages, items */
    struct maq_source *sources;
    size_t n_sources, sources_size;
    struct maq_diag_item **items; /* pointers, so that an item handed out stays where it is */
    size_t n_items, items_size;
    size_t errors;  /* dropped ones counted too */
    size_t dropped; /* findings beyond the maximum or without memory */
    bool strict;
};

/* NULL when `at` is nowhere. */
const struct maq_source *maq__diag_source(const struct maq_diag *diag, struct maq_span at);
/* The character that holds byte `off`, or the end of the text. */
struct maq_checkpoint maq__source_at(const struct maq_source *src, size_t off);

#endif
