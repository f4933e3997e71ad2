/* SPDX-License-Identifier: Apache-2.0 */
/*
 * unverified.h - which figures of a catalogue entry nobody has read at their source.
 *
 *   unverified: [power, peak.fp4]
 *
 * names keys that the entry writes, those of a section behind a dot. As a value it is the names in a line, "power, peak.fp4"; NULL =
 * none.
 */
#ifndef MAQ_SPEC_UNVERIFIED_H
#define MAQ_SPEC_UNVERIFIED_H

#include "spec/doc.h"

/*
 * The map of an entry over its base: *names are the base's. What `map` or `also` (NULL: none) writes itself is no longer among them; what
 * the list of `map` names is. A name must be a key of one of the two; `what` is the noun of the message ("device"). The result lives
 * in `arena`.
 */
enum maq_status maq_unverified_read(const char **names, struct maq_node *map, const struct maq_node *also,
                                    const char *what, struct maq_arena *arena, struct maq_diag *diag);

/* Takes the first of them off: for (rest = maq_str_of(names); maq_unverified_next(&rest, &name);). */
bool maq_unverified_next(struct maq_str *rest, struct maq_str *name);

#endif
