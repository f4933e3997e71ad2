/* SPDX-License-Identifier: Apache-2.0 */
/* input.c - reads a table's file or standard input whole, plain or packed by gzip, and marks the rows that pass all filters. */
#include "validate/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "spec/cannot_read.h"
#include "spec/doc_internal.h"
#include "spec/foreign_file.h"
#include "validate/codes.h"

/* ---- filters ---- */

static bool passes(struct maq_str cell, const char *value)
{
    struct maq_str want = maq_str_of(value);
    bool prefix = want.len > 0 && want.ptr[want.len - 1] == '*';
    want.len -= prefix;
    return prefix ? cell.len >= want.len && memcmp(cell.ptr, want.ptr, want.len) == 0 : maq_str_eq(cell, want);
}

static enum maq_status no_column(const struct maq_csv *csv, struct maq_str name, struct maq_diag *diag)
{
    char show[MAQ_SHOW_SIZE], hint[MAQ_SHOW_SIZE + 64] = "a filter is COLUMN=VALUE, or COLUMN=PREFIX*";
    struct maq_nearest near;
    maq__nearest_init(&near, name);
    for (uint32_t i = 0; i < csv->n_columns; i++)
        maq__nearest_try(&near, csv->names[i].text);
    if (near.best)
        maq__snprintf(hint, sizeof hint, "did you mean '%s'?",
                      maq_str_show(show, (struct maq_str){near.best, near.best_len}));
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CSV_FILTER, (struct maq_span){0}, hint,
                         "the table has no column '%s' to filter by", maq_str_show(show, name));
}

enum maq_status maq__validate_filter(bool *keep, const struct maq_csv *csv, const struct maq_validate_opts *opts,
                                     struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    for (uint32_t i = 0; i < csv->n_rows; i++)
        keep[i] = true;
    for (size_t f = 0; f < opts->n_where; f++) {
        uint32_t column = maq_csv_column(csv, opts->where[f].column);
        if (column == UINT32_MAX) {
            status = no_column(csv, maq_str_of(opts->where[f].column), diag);
            continue;
        }
        for (uint32_t i = 0; i < csv->n_rows; i++)
            keep[i] &= passes(maq_csv_get(csv, i, column), opts->where[f].value);
    }
    return status;
}

struct maq_validate_opts maq__validate_opts(const struct maq_validate_opts *given)
{
    struct maq_validate_opts opts = MAQ_VALIDATE_OPTS_INIT;
    if (given)
        memcpy(&opts, given, given->size > 0 && given->size < sizeof opts ? given->size : sizeof opts);
    return opts;
}

/* ---- files ---- */

enum maq_status maq__validate_bytes(char **text, size_t *len, const char *path, struct maq_diag *diag)
{
    bool std_in = strcmp(path, "-") == 0;
    FILE *f = std_in ? stdin : fopen(path, "rb");
    size_t size = 0, n = 0;
    char *buf = NULL;
    enum maq_status status = MAQ_OK;
    if (!f)
        return maq_cannot_read(diag, path, MAQ_WANT_TABLE, errno);
    while (status == MAQ_OK) {
        if (n == size) {
            char *more = size > MAQ_CSV_MAX_BYTES ? NULL : maq__realloc(buf, size = size ? 2 * size : 65536);
            if (!more) {
                status = size > MAQ_CSV_MAX_BYTES ? MAQ_LIMIT : MAQ_NO_MEMORY;
                break;
            }
            buf = more;
        }
        size_t got = fread(buf + n, 1, size - n, f);
        n += got;
        if (got == 0)
            break;
    }
    int read_error = ferror(f) ? errno : 0;
    if (!std_in)
        fclose(f);
    if (status == MAQ_OK && read_error)
        status = maq_cannot_read(diag, path, MAQ_WANT_TABLE, read_error);
    else if (status == MAQ_LIMIT)
        maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_FILE_TOO_LARGE, (struct maq_span){0}, NULL,
                     "%s: over the limit of 64 MiB", path);
    else if (status == MAQ_NO_MEMORY)
        maq_diag_add(diag, MAQ_ERROR, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL, "no memory for %s", path);
    if (status != MAQ_OK) {
        free(buf);
        return status;
    }
    *text = buf;
    *len = n;
    return MAQ_OK;
}

enum maq_status maq__validate_read(char **text, size_t *len, const char *path, struct maq_diag *diag)
{
    MAQ_TRY(maq__validate_bytes(text, len, path, diag));
    enum maq_status status = maq_foreign_refuse(maq_foreign_bytes((struct maq_str){*text, *len}), path, "a table",
                                                (struct maq_span){0}, diag);
    if (status != MAQ_OK) {
        free(*text);
        *text = NULL;
    }
    return status;
}

static enum maq_status unreadable(const char *path, const char *why, struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_CANNOT_READ, (struct maq_span){0}, NULL, "%s: %s", path, why);
}

enum maq_status maq__validate_unpack(struct maq_str *out, const char *path, struct maq_arena *arena,
                                     struct maq_diag *diag)
{
    size_t size = (size_t)1 << 20, used = 0;
    MAQ_TRY(maq_file_expected(path, "what was recorded, as docs/validate.md has it", diag));
    gzFile file = gzopen(path, "rb");
    char *text = MAQ_ARENA_NEW(arena, char, size);
    if (!file)
        return unreadable(path, "cannot be opened", diag);
    gzbuffer(file, 1 << 17);
    while (text) {
        int got = gzread(file, text + used, (unsigned)(size - used));
        if (got <= 0) {
            int code = Z_OK;
            gzerror(file, &code);
            bool bad = got < 0 || (code != Z_OK && code != Z_STREAM_END);
            gzclose(file);
            *out = (struct maq_str){text, used};
            return bad ? unreadable(path, "damaged, or not complete", diag) : MAQ_OK;
        }
        used += (size_t)got;
        if (used < size)
            continue;
        char *more = size < MAQ_CSV_MAX_BYTES ? MAQ_ARENA_NEW(arena, char, size * 2) : NULL;
        if (more)
            memcpy(more, text, used);
        text = more;
        size *= 2;
    }
    gzclose(file);
    return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_CSV_SIZE, (struct maq_span){0}, NULL, "%s: larger than %zu MiB",
                         path, MAQ_CSV_MAX_BYTES >> 20);
}
