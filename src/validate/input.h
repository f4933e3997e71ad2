/* SPDX-License-Identifier: Apache-2.0 */
/*
 * input.h - the table that is validated against: its bytes, and the rows of it that are asked for.
 */
#ifndef MAQ_VALIDATE_INPUT_H
#define MAQ_VALIDATE_INPUT_H

#include "maquette/validate.h"
#include "validate/csv.h"

/* The bytes of a file, or of standard input for "-"; *text is owned by the caller (free()). */
enum maq_status maq__validate_bytes(char **text, size_t *len, const char *path, struct maq_diag *diag);
/* The same of a table: another tool's file is refused by name. */
enum maq_status maq__validate_read(char **text, size_t *len, const char *path, struct maq_diag *diag);

/* All of a file, unpacked where it is compressed (gzip), in the arena; at most MAQ_CSV_MAX_BYTES. */
enum maq_status maq__validate_unpack(struct maq_str *out, const char *path, struct maq_arena *arena,
                                     struct maq_diag *diag);

/* keep[i]: whether record i passes all filters. A filter on a column that is not there is an error. */
enum maq_status maq__validate_filter(bool *keep, const struct maq_csv *csv, const struct maq_validate_opts *opts,
                                     struct maq_diag *diag);

/* What the caller gave, over the defaults; a caller built with an older header gives less. */
struct maq_validate_opts maq__validate_opts(const struct maq_validate_opts *given);

#endif
