/* SPDX-License-Identifier: Apache-2.0 */
/* catalogue_data.h - the table that tools/embed.py generates, and lookups in any such table (for tests). */
#ifndef MAQ_SPEC_CATALOGUE_DATA_H
#define MAQ_SPEC_CATALOGUE_DATA_H

#include "spec/catalogue.h"

/* Ordered by section, then name, both as bytes. */
extern const struct maq_catalogue_entry maq__catalogue[];
extern const size_t maq__catalogue_count;

const struct maq_catalogue_entry *maq__catalogue_find_in(const struct maq_catalogue_entry *entries, size_t n,
                                                         const char *section, struct maq_str name);
const char *maq__catalogue_nearest_in(const struct maq_catalogue_entry *entries, size_t n, const char *section,
                                      struct maq_str name);

#endif
