/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series_read.c - the column of step times of a table.
 *
 * The column is found by its name: one that speaks of a time and ends with its unit, iteration_time_s, step_time_ms,
 * "elapsed time per iteration (ms)". A name without a unit is refused. Rows that are none, or whose time is none, are left out and
 * counted (base/mended.h).
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "base/text.h"
#include "risk/codes.h"
#include "risk/csv_table.h"
#include "risk/fit/series.h"

#define MAX_STEPS 50000000u

/* Seconds of the unit at the end of a column's name; 0 when there is none. */
static double unit_of(struct maq_str name)
{
    static const struct {
        const char *word;
        double seconds;
    } units[] = {{"s", 1},     {"sec", 1},   {"seconds", 1}, {"ms", 1e-3},
                 {"us", 1e-6}, {"ns", 1e-9}, {"secs", 1},    {"milliseconds", 1e-3}};
    while (name.len > 0 && strchr(")] ", name.ptr[name.len - 1]))
        name.len--;
    size_t from = name.len;
    while (from > 0 && isalpha((unsigned char)name.ptr[from - 1]))
        from--;
    for (size_t i = 0; i < MAQ_COUNT(units) && from > 0; i++)
        if (maq_str_ieq((struct maq_str){name.ptr + from, name.len - from}, units[i].word))
            return units[i].seconds;
    return 0;
}

static enum maq_status find_column(uint32_t *column, double *unit, const struct maq_csv_table *rows, const char *wanted)
{
    uint32_t bare = MAQ_NO_COLUMN;
    char name[MAQ_SHOW_SIZE];
    *column = MAQ_NO_COLUMN;
    if (wanted)
        MAQ_TRY(maq_rows_need(column, rows, wanted));
    for (uint32_t i = 0; i < rows->n_columns && !wanted; i++) {
        struct maq_str s = rows->name[i];
        bool time = maq_str_has(s, "time") || maq_str_has(s, "dur") || maq_str_has(s, "elapsed");
        if (time && unit_of(s) > 0) {
            if (*column != MAQ_NO_COLUMN)
                return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_TABLE, (struct maq_span){0},
                                     "say which with --column NAME",
                                     "%s: more than one column of times: '%s' is another", rows->path,
                                     maq_str_show(name, s));
            *column = i;
        } else if (time) {
            bare = i;
        }
    }
    uint32_t at = *column != MAQ_NO_COLUMN ? *column : bare;
    *unit = at == MAQ_NO_COLUMN ? 0 : unit_of(rows->name[at]);
    if (*unit > 0)
        return MAQ_OK;
    if (at != MAQ_NO_COLUMN)
        return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_TABLE, (struct maq_span){0},
                             "end the name of the column with its unit: iteration_time_s, step_time_ms",
                             "%s: the column '%s' does not say its unit", rows->path,
                             maq_str_show(name, rows->name[at]));
    return maq_diag_fail(MAQ_BAD_INPUT, rows->diag, MAQ_CODE_RISK_TABLE, (struct maq_span){0},
                         "name it iteration_time_s or step_time_ms, or say which with --column NAME",
                         "%s: there is no column of step times", rows->path);
}

/* Files that are no tables, by how they begin or end. */
static enum maq_status refuse_others(const char *path, struct maq_diag *diag)
{
    static const char *const others[] = {".pftrace", ".nsys-rep", ".et"};
    size_t n = strlen(path);
    for (size_t i = 0; i < MAQ_COUNT(others); i++) {
        size_t k = strlen(others[i]);
        if (n > k && strcmp(path + n - k, others[i]) == 0)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_FILE, (struct maq_span){0},
                                 "write the duration of each step to a CSV: step,iteration_time_s",
                                 "%s: variation is learnt from tables of step times, traces of PyTorch's profiler "
                                 "(JSON) and files of maquette profile, not from %s files",
                                 path, others[i]);
    }
    return MAQ_OK;
}

/* The time of the current record, in the unit of its column. MAQ_NO: there is none, and the record is left out. */
static enum maq_status read_time(double *value, struct maq_csv_table *rows, uint32_t at)
{
    if (rows->field[at].len == 0)
        return MAQ_NO; /* a log may leave the time of a step out */
    MAQ_TRY(maq_rows_real(value, rows, at));
    if (*value > 0 && *value < 1e12)
        return MAQ_OK;
    MAQ_TRY(maq_mend(&rows->mended, MAQ_MEND_VALUE, rows->number, MAQ_CODE_RISK_ROW, "%s:%llu: a step of %g",
                     rows->path, (unsigned long long)rows->number, *value));
    return MAQ_NO;
}

static enum maq_status read_times(double **times, uint32_t *n, struct maq_csv_table *rows, const char *column,
                                  struct maq_arena *arena)
{
    uint32_t at, size = 0;
    double unit = 0, *held = NULL;
    bool more;
    enum maq_status status = find_column(&at, &unit, rows, column);
    *n = 0;
    while (status == MAQ_OK && (status = maq_rows_next(&more, rows)) == MAQ_OK && more) {
        double value = 0;
        status = read_time(&value, rows, at);
        if (status == MAQ_NO) {
            status = MAQ_OK;
            continue;
        }
        if (status == MAQ_OK && *n == size) {
            double *next = size < MAX_STEPS ? maq__realloc(held, ((size_t)size * 2 + 1024) * sizeof *next) : NULL;
            if (!next) {
                status = maq_diag_fail(size < MAX_STEPS ? MAQ_NO_MEMORY : MAQ_LIMIT, rows->diag, MAQ_CODE_RISK_LIMIT,
                                       (struct maq_span){0}, NULL, "%s: more steps than can be held", rows->path);
                break;
            }
            held = next;
            size = size * 2 + 1024;
        }
        if (status == MAQ_OK)
            held[(*n)++] = value * unit;
    }
    if (status == MAQ_OK)
        status = maq_mending_end(&rows->mended, *n);
    if (status == MAQ_OK) {
        *times = MAQ_ARENA_NEW(arena, double, *n + 1);
        if (!*times)
            status = maq_diag_fail(MAQ_NO_MEMORY, rows->diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL,
                                   "out of memory for %u steps", *n);
        for (uint32_t i = 0; *times && i < *n; i++)
            (*times)[i] = held[i];
    }
    free(held);
    return status;
}

enum maq_status maq_series_read(double **times, uint32_t *n, const char *path, const char *column,
                                struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_csv_table *rows = MAQ_ARENA_NEW(arena, struct maq_csv_table, 1);
    if (!rows)
        return maq_no_memory(diag, NULL);
    MAQ_TRY(refuse_others(path, diag));
    enum maq_status status = maq_rows_open_recorded(rows, path, diag);
    if (status == MAQ_OK)
        status = read_times(times, n, rows, column, arena);
    maq_rows_close(rows);
    return status;
}
