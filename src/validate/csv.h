/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.h - a table in comma-separated values, as RFC 4180 writes it.
 *
 * The first record names the columns. A field in double quotes may hold commas, line ends and doubled quotes; a record ends with LF or
 * CRLF; a byte-order mark and empty lines are skipped. Fields point into the text where nothing had to be unquoted and into the arena
 * otherwise: both must outlive the table. Every field knows its place.
 */
#ifndef MAQ_VALIDATE_CSV_H
#define MAQ_VALIDATE_CSV_H

#include "base/arena.h"
#include "maquette/diag.h"

#define MAQ_CSV_MAX_BYTES ((size_t)64 << 20)
#define MAQ_CSV_MAX_COLUMNS 1024u
#define MAQ_CSV_MAX_ROWS 1000000u
#define MAQ_CSV_MAX_FIELDS ((size_t)16 << 20)

struct maq_csv_field {
    struct maq_str text;
    uint32_t off, len; /* in the source, quotes included */
};

struct maq_csv {
    uint32_t file; /* diagnostic source */
    uint32_t n_columns, n_rows;
    struct maq_csv_field *names;  /* [n_columns] */
    struct maq_csv_field *fields; /* [n_rows * n_columns] */
};

/* Reads text (borrowed). Records of another width are left out and counted (base/mended.h). */
enum maq_status maq_csv_parse(struct maq_csv *out, const char *name, struct maq_str text, struct maq_arena *arena,
                              struct maq_diag *diag);

/* Index of a column, UINT32_MAX when there is none. Names are compared as they are. */
uint32_t maq_csv_column(const struct maq_csv *csv, const char *name);

/* A column that a reader knows. */
struct maq_csv_wanted {
    const char *name;
    bool needed;
    const char *also; /* other names, "a|b", where there is none of the first; NULL = none */
};

/* at[i]: index of wanted[i], UINT32_MAX when there is none; each one that is needed and missing is an error. */
enum maq_status maq_csv_bind(uint32_t *at, const struct maq_csv *csv, const struct maq_csv_wanted *wanted, size_t n,
                             struct maq_diag *diag);

/* Field of a record; an empty one for column UINT32_MAX. */
struct maq_str maq_csv_get(const struct maq_csv *csv, uint32_t row, uint32_t column);
struct maq_span maq_csv_span(const struct maq_csv *csv, uint32_t row, uint32_t column);

#endif
