/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv_table.c - reads a table line by line with zlib (plain files too), and cuts records at commas outside of quotes.
 * See csv_table.h.
 */
#include "risk/csv_table.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"
#include "risk/codes.h"
#include "spec/cannot_read.h"
#include "spec/foreign_file.h"

static const struct maq_span nowhere;

/* One line without its end into rows->line; *more = false at the end of the file. */
static enum maq_status read_line(bool *more, struct maq_csv_table *rows)
{
    *more = gzgets(rows->file, rows->line, (int)MAQ_ROWS_LINE) != NULL;
    if (!*more) {
        int fault;
        const char *what = gzerror(rows->file, &fault);
        what = fault == Z_ERRNO ? strerror(errno) : what;
        if (fault == Z_OK || fault == Z_STREAM_END)
            return MAQ_OK;
        if (rows->before && rows->number > 0 && fault == Z_BUF_ERROR)
            return maq_mend(&rows->mended, MAQ_MEND_END, rows->number, MAQ_CODE_CANNOT_READ, "%s: after line %llu: %s",
                            rows->path, (unsigned long long)rows->number, what);
        if (rows->number == 0)
            return maq_diag_fail(MAQ_IO, rows->diag, MAQ_CODE_CANNOT_READ, nowhere, NULL, "%s: %s", rows->path, what);
        return maq_diag_fail(MAQ_IO, rows->diag, MAQ_CODE_CANNOT_READ, nowhere, NULL, "%s: after line %llu: %s",
                             rows->path, (unsigned long long)rows->number, what);
    }
    rows->number++;
    size_t n = strlen(rows->line);
    if (n + 1 >= MAQ_ROWS_LINE)
        return maq_diag_fail(MAQ_LIMIT, rows->diag, MAQ_CODE_RISK_LIMIT, nowhere, NULL,
                             "%s:%llu: a line of more than %u bytes", rows->path, (unsigned long long)rows->number,
                             MAQ_ROWS_LINE - 2);
    while (n > 0 && (rows->line[n - 1] == '\n' || rows->line[n - 1] == '\r'))
        rows->line[--n] = '\0';
    return MAQ_OK;
}

/* Cuts a line at its commas; returns how many fields there are, MAQ_ROWS_FIELDS + 1 when too many. */
static uint32_t split(struct maq_str *field, const char *line)
{
    uint32_t n = 0;
    const char *c = line;
    for (;;) {
        while (*c == ' ' || *c == '\t')
            c++;
        bool quoted = *c == '"';
        const char *from = quoted ? ++c : c, *to;
        while (*c && (quoted ? *c != '"' : *c != ','))
            c++;
        to = c;
        while (*c && *c != ',')
            c++;
        if (n == MAQ_ROWS_FIELDS)
            return n + 1;
        struct maq_str text = {from, (size_t)(to - from)};
        field[n++] = quoted ? text : maq_str_trim(text);
        if (!*c++)
            return n;
    }
}

static enum maq_status read_names(struct maq_csv_table *rows)
{
    static const char mark[] = "\xef\xbb\xbf";
    bool more;
    do {
        MAQ_TRY(read_line(&more, rows));
    } while (more && rows->line[0] == '\0');
    if (!more)
        return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_TABLE, nowhere,
                             "the first line of a table names its columns: step,iteration_time_s",
                             "%s: the file is empty", rows->path);
    char *names = rows->line;
    rows->line = rows->names;
    rows->names = names;
    rows->n_columns = split(rows->name, names + (strncmp(names, mark, 3) == 0 ? 3 : 0));
    if (rows->n_columns > MAQ_ROWS_FIELDS)
        return maq_diag_fail(MAQ_LIMIT, rows->diag, MAQ_CODE_RISK_LIMIT, nowhere, NULL, "%s: more than %u columns",
                             rows->path, MAQ_ROWS_FIELDS);
    return MAQ_OK;
}

enum maq_status maq_rows_open(struct maq_csv_table *rows, const char *path, struct maq_diag *diag)
{
    *rows = (struct maq_csv_table){.path = path, .diag = diag};
    rows->line = maq__malloc(MAQ_ROWS_LINE);
    rows->names = maq__malloc(MAQ_ROWS_LINE);
    if (!rows->line || !rows->names)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, nowhere, NULL, "out of memory for %s", path);
    MAQ_TRY(maq_file_expected(path, MAQ_WANT_TABLE, diag));
    MAQ_TRY(maq_foreign_refuse(maq_foreign_file(path), path, "a table", nowhere, diag));
    errno = 0;
    rows->file = gzopen(path, "rb");
    if (!rows->file)
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_CANNOT_READ, nowhere, NULL, "%s: %s", path,
                             errno ? strerror(errno) : "out of memory");
    return read_names(rows);
}

enum maq_status maq_rows_open_recorded(struct maq_csv_table *rows, const char *path, struct maq_diag *diag)
{
    MAQ_TRY(maq_rows_open(rows, path, diag));
    rows->before = maq__malloc(MAQ_ROWS_LINE);
    if (!rows->before)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, nowhere, NULL, "out of memory for %s", path);
    rows->before[0] = '\0';
    maq_mending_begin(&rows->mended, path, "line", "rows", diag);
    return MAQ_OK;
}

void maq_rows_close(struct maq_csv_table *rows)
{
    free(rows->before);
    if (rows->file)
        (void)gzclose_r(rows->file);
    free(rows->line);
    free(rows->names);
    *rows = (struct maq_csv_table){0};
}

uint32_t maq_rows_column(const struct maq_csv_table *rows, const char *name)
{
    for (uint32_t i = 0; i < rows->n_columns; i++)
        if (maq_str_ieq(rows->name[i], name))
            return i;
    return MAQ_NO_COLUMN;
}

enum maq_status maq_rows_need(uint32_t *column, const struct maq_csv_table *rows, const char *name)
{
    *column = maq_rows_column(rows, name);
    if (*column == MAQ_NO_COLUMN)
        return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_TABLE, nowhere,
                             "the first line of a table names its columns", "%s: there is no column '%s'", rows->path,
                             name);
    return MAQ_OK;
}

/* Whether the record may be read; MAQ_NO: it is left out, of a recorded table. */
static enum maq_status check_record(struct maq_csv_table *rows, uint32_t n)
{
    static const char width[] = "%s:%llu: %s%u values where the first line names %u columns";
    const char *more = n > MAQ_ROWS_FIELDS ? "more than " : "";
    uint32_t shown = n > MAQ_ROWS_FIELDS ? MAQ_ROWS_FIELDS : n;
    unsigned long long number = rows->number;
    enum maq_status mended = MAQ_NO;
    if (n != rows->n_columns && !rows->before)
        return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_ROW, nowhere, NULL, width, rows->path, number,
                             more, shown, rows->n_columns);
    if (n != rows->n_columns)
        mended = maq_mend(&rows->mended, MAQ_MEND_LINE, rows->number, MAQ_CODE_RISK_ROW, width, rows->path, number,
                          more, shown, rows->n_columns);
    else if (rows->before && n > 1 && strcmp(rows->before, rows->line) == 0) /* of one column: two equal values */
        mended = maq_mend(&rows->mended, MAQ_MEND_REPEATED, rows->number, MAQ_CODE_RISK_ROW,
                          "%s:%llu: the row before once more", rows->path, number);
    else
        return MAQ_OK;
    return mended == MAQ_OK ? MAQ_NO : mended;
}

enum maq_status maq_rows_next(bool *more, struct maq_csv_table *rows)
{
    enum maq_status status;
    do {
        do {
            MAQ_TRY(read_line(more, rows));
        } while (*more && rows->line[0] == '\0');
        if (!*more)
            return MAQ_OK;
        status = check_record(rows, split(rows->field, rows->line));
    } while (status == MAQ_NO);
    if (status == MAQ_OK && rows->before)
        memcpy(rows->before, rows->line, strlen(rows->line) + 1);
    return status;
}

/* MAQ_NO: of a recorded table, whose record is left out. */
static enum maq_status wrong(struct maq_csv_table *rows, uint32_t column, const char *what)
{
    static const char fault[] = "%s:%llu: %s is '%s', not %s";
    char value[MAQ_SHOW_SIZE], name[MAQ_SHOW_SIZE];
    unsigned long long number = rows->number;
    maq_str_show(name, rows->name[column]);
    maq_str_show(value, rows->field[column]);
    if (!rows->before)
        return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_ROW, nowhere, NULL, fault, rows->path, number,
                             name, value, what);
    enum maq_status mended = maq_mend(&rows->mended, MAQ_MEND_VALUE, rows->number, MAQ_CODE_RISK_ROW, fault, rows->path,
                                      number, name, value, what);
    return mended == MAQ_OK ? MAQ_NO : mended;
}

enum maq_status maq_rows_real(double *out, struct maq_csv_table *rows, uint32_t column)
{
    double value;
    if (!maq_str_to_double(&value, rows->field[column]) || !isfinite(value))
        return wrong(rows, column, "a number");
    *out = value;
    return MAQ_OK;
}

enum maq_status maq_rows_whole(uint32_t *out, struct maq_csv_table *rows, uint32_t column, uint32_t most)
{
    double value;
    if (!maq_str_to_double(&value, rows->field[column]) || !(value >= 0 && value <= most) || floor(value) != value)
        return wrong(rows, column, "a whole number that can be here");
    *out = (uint32_t)value;
    return MAQ_OK;
}
