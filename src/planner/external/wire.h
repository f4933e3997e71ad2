/*
 * wire.h - requests and answers of a parallelizer as lines of JSON: docs/parallelizer.md is the form.
 *
 * Members of an answer are read strictly: one that is missing, of another type, or not of the form is a fault with its name. Members at the
 * top of an answer that are not of the form are left alone.
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
/* position NULL: profile. */
char *maq_wire_pair(int64_t id, const struct maq_parallelizer_slice *slice,
                    const struct maq_parallelizer_island *island, const struct maq_parallelizer_position *position);

/* ---- answers: MAQ_BAD_INPUT with `why` (MAQ_PARALLELIZER_WHY bytes) where they are not of the form ---- */

/* The object of a line with the id that was asked for; *failed: it says `error`, and `why` is that. *out is owned by the caller. */
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
