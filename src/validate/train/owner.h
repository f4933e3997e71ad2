/* SPDX-License-Identifier: Apache-2.0 */
/*
 * owner.h - the result of a validation while it is made: what owns its memory, and which rows count in its totals.
 */
#ifndef MAQ_VALIDATE_TRAIN_OWNER_H
#define MAQ_VALIDATE_TRAIN_OWNER_H

#include "base/arena.h"
#include "maquette/validate.h"

#define MAQ_VALIDATE_MAX_THREADS 64

/* A result and all it points to. `result` comes first: a pointer to it is one to the owner. */
struct maq_validate_owner {
    struct maq_validate_result result;
    struct maq_arena arena;                             /* text, table, rows, groups */
    struct maq_arena workers[MAQ_VALIDATE_MAX_THREADS]; /* what the rows of a worker point to */
    uint32_t n_workers;
    uint8_t *capped; /* [n_rows] bit sets of metrics and parts: maq__validate_is_capped() */
};

/* The bit of `owner->capped` for a metric and part: whether a row is among those that count in totals of at most so many rows of a
 * source. */
static inline uint8_t maq__validate_cap_bit(int metric, int part)
{
    return (uint8_t)(1u << (metric * MAQ_VALIDATE_PART_COUNT + part));
}

static inline bool maq__validate_is_capped(const struct maq_validate_owner *owner, uint32_t row, int metric, int part)
{
    return owner->capped[row] & maq__validate_cap_bit(metric, part);
}

#endif
