/* SPDX-License-Identifier: Apache-2.0 */
/*
 * catalogue.h - the documents compiled into the program: data/<section>/<name>.yaml.
 *
 * A build step embeds every file under data/models, data/devices, data/fabrics, data/frameworks, data/variability and
 * data/variability/failures; names are unique inside a
 * section and an entry may list `aliases:`. Lookups ignore case.
 */
#ifndef MAQ_SPEC_CATALOGUE_H
#define MAQ_SPEC_CATALOGUE_H

#include "maquette/diag.h"

struct maq_catalogue_entry {
    const char *section; /* "models", "devices", "fabrics", "frameworks", "variability", "variability/failures" */
    const char *name;    /* file name without .yaml */
    const char *aliases; /* "a|b" or "" */
    const char *text;
    size_t len;
};

/* Entry by name or alias; NULL when there is none. */
const struct maq_catalogue_entry *maq_catalogue_find(const char *section, struct maq_str name);
/* The nearest name for a hint, or NULL when nothing is near. */
const char *maq_catalogue_nearest(const char *section, struct maq_str name);
/* Entries of a section in name order: i from 0 until NULL. */
const struct maq_catalogue_entry *maq_catalogue_at(const char *section, size_t i);

#endif
