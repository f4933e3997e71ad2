/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv_table.h - a table of comma-separated values, one record at a time: logs and traces of any length, plain or gzip.
 *
 * The first record names the columns. A field may stand in double quotes; a record is one line. Unlike the reader in
 * src/validate, which keeps a whole table with the place of every field, only the current record is kept; faults name the file
 * and the line.
 *
 * A table that a recorder wrote (maq_rows_open_recorded()) may have dirt in it (base/mended.h): lines that are no records, a record
 * that is there twice in a row, a compressed end that is missing.
 */
#ifndef MAQ_RISK_CSV_TABLE_H
#define MAQ_RISK_CSV_TABLE_H

#include <zlib.h>

#include "base/mended.h"
#include "maquette/diag.h"

#define MAQ_ROWS_LINE 65536u
#define MAQ_ROWS_FIELDS 256u
#define MAQ_NO_COLUMN UINT32_MAX

struct maq_csv_table {
    const char *path; /* borrowed */
    struct maq_diag *diag;
    gzFile file;
    char *line, *names;        /* [MAQ_ROWS_LINE] the current record; the first one */
    char *before;              /* [MAQ_ROWS_LINE] the record before, of a recorded table; NULL */
    struct maq_mending mended; /* of a recorded table */
    uint64_t number;           /* of the line, from 1 */
    uint32_t n_columns;
    struct maq_str name[MAQ_ROWS_FIELDS], field[MAQ_ROWS_FIELDS];
};

/* Opens `path` and reads the names of its columns. The struct is large: not for the stack. */
enum maq_status maq_rows_open(struct maq_csv_table *rows, const char *path, struct maq_diag *diag);
/* The same for what a recorder wrote: mended as it is read. The reader ends it with maq_mending_end(&rows->mended, ...). */
enum maq_status maq_rows_open_recorded(struct maq_csv_table *rows, const char *path, struct maq_diag *diag);
void maq_rows_close(struct maq_csv_table *rows); /* also one that did not open, or zeroed */

/* Index of a column, MAQ_NO_COLUMN when there is none; maq_rows_need() reports an error then. */
uint32_t maq_rows_column(const struct maq_csv_table *rows, const char *name);
enum maq_status maq_rows_need(uint32_t *column, const struct maq_csv_table *rows, const char *name);

/* The next record into rows->field; *more = false at the end. Empty lines are skipped. */
enum maq_status maq_rows_next(bool *more, struct maq_csv_table *rows);
/* A number of the current record: finite, or whole and from 0 to `most`. MAQ_NO: it is none, of a recorded table, and the record is
 * counted as left out. */
enum maq_status maq_rows_real(double *out, struct maq_csv_table *rows, uint32_t column);
enum maq_status maq_rows_whole(uint32_t *out, struct maq_csv_table *rows, uint32_t column, uint32_t most);

#endif
