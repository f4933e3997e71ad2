/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wire.h - requests to a parallelizer and its answers as lines of JSON, in the form of docs/parallelizer.md.
 *
 * The members of an answer are read strictly: one that is missing, of another type, or malformed is a fault that
 * names it. Unknown members at the top level of an answer are ignored.
 */
#ifndef MAQ_PLANNER_EXTERNAL_WIRE_H
#define MAQ_PLANNER_EXTERNAL_WIRE_H

#include <jansson.h>

#include "base/arena.h"
#include "maquette/parallelizer.h"

/* ---- requests: text with a line break, owned by the caller (free()); NULL when out of memory ---- */
char *maq_wire_open(int64_t id, const struct maq_parallelizer_model *model);
char *maq_wire_slice_model(int64_t id);
char *maq_wire_concatenate(int64_t id, const struct maq_parallelizer_slice *front,
                           const struct maq_parallelizer_slice *back);
/* position NULL: a request for profile(), otherwise for parallelize(). */
char *maq_wire_pair(int64_t id, const struct maq_parallelizer_slice *slice,
                    const struct maq_parallelizer_island *island, const struct maq_parallelizer_position *position);

/* ---- answers: MAQ_BAD_INPUT with `why` (MAQ_PARALLELIZER_WHY bytes) where they are not of the form ---- */

/*
 * The object of a line that answers request `id`. *failed: the program reports an `error`, whose text is in `why`. *out is owned by
 * the caller (json_decref()).
 */
enum maq_status maq_wire_answer(json_t **out, bool *failed, const char *line, int64_t id, char *why);

struct maq_wire_hello {
    int64_t version;
    const char *name; /* borrowed from the answer */
    bool front, concatenates;
};
enum maq_status maq_wire_read_hello(struct maq_wire_hello *out, json_t *answer, char *why);
enum maq_status maq_wire_read_atoms(const struct maq_parallelizer_atom **out, uint32_t *n, json_t *answer,
                                    struct maq_arena *arena, char *why);
enum maq_status maq_wire_read_signature(char *out, json_t *answer, char *why);
enum maq_status maq_wire_read_profile(struct maq_parallelizer_profile *out, json_t *answer, char *why);
enum maq_status maq_wire_read_plans(const struct maq_parallelizer_plan **out, uint32_t *n, json_t *answer,
                                    struct maq_arena *arena, char *why);

#endif
