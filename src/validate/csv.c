/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csv.c - one pass over the bytes: fields into a growing list, a check of the width at the end of each record.
 *
 * A record of another width, or with a quote that is none, is what a launcher or a crash left in a table: it is left out and counted
 * (base/mended.h). A quote that is never closed ends with its line, so that it does not take the rest of the table with it.
 *
 * The number of fields is bounded by the number of commas and line ends plus one, which is counted first: the arena gets one request.
 */
#include "validate/csv.h"

#include <string.h>

#include "base/check.h"
#include "base/mended.h"
#include "base/str.h"
#include "base/text.h"
#include "validate/codes.h"

struct csv_reader {
    const char *s;
    size_t n, at;
    struct maq_arena *arena;
    struct maq_diag *diag;
    uint32_t file;
    struct maq_csv_field *fields;
    size_t n_fields, max_fields;
    const char *fault; /* of the record that is read; NULL: it has none */
    size_t fault_at;
    bool failed; /* out of memory */
    struct maq_mending mended;
};

static struct maq_span span_at(const struct csv_reader *r, size_t off, size_t len)
{
    return (struct maq_span){r->file, (uint32_t)off, (uint32_t)len};
}

/* At most one field more than there are separators, and a separator inside quotes only makes this too large. */
static size_t count_separators(struct maq_str text)
{
    size_t n = 1;
    for (size_t i = 0; i < text.len; i++)
        n += text.ptr[i] == ',' || text.ptr[i] == '\n';
    return n;
}

static bool at_field_end(const struct csv_reader *r)
{
    if (r->at >= r->n || r->s[r->at] == ',' || r->s[r->at] == '\n')
        return true;
    return r->s[r->at] == '\r' && (r->at + 1 >= r->n || r->s[r->at + 1] == '\n');
}

/* The text between quotes, doubled ones made single; copies only when there are any. */
static struct maq_str unquote(struct csv_reader *r, struct maq_str raw)
{
    if (!memchr(raw.ptr, '"', raw.len))
        return raw;
    char *copy = MAQ_ARENA_NEW(r->arena, char, raw.len + 1);
    size_t n = 0;
    if (!copy) {
        r->failed = true;
        return MAQ_STR("");
    }
    for (size_t i = 0; i < raw.len; i++) {
        copy[n++] = raw.ptr[i];
        if (raw.ptr[i] == '"' && i + 1 < raw.len && raw.ptr[i + 1] == '"')
            i++;
    }
    return (struct maq_str){copy, n};
}

/* A field whose quotes are none: it, and its record, end with the line that it begins in. */
static void end_with_line(struct csv_reader *r, struct maq_csv_field *f, size_t open, const char *fault, size_t at)
{
    r->fault = fault;
    r->fault_at = at;
    for (r->at = open; r->at < r->n && r->s[r->at] != '\n';)
        r->at++;
    *f = (struct maq_csv_field){{r->s + open, r->at - open}, (uint32_t)open, (uint32_t)(r->at - open)};
}

static void read_quoted(struct csv_reader *r, struct maq_csv_field *f)
{
    size_t open = r->at++, from = r->at;
    while (r->at < r->n) {
        if (r->s[r->at] != '"') {
            r->at++;
        } else if (r->at + 1 < r->n && r->s[r->at + 1] == '"') {
            r->at += 2;
        } else {
            break;
        }
    }
    if (r->at >= r->n) {
        end_with_line(r, f, open, "this quote is never closed", open);
        return;
    }
    struct maq_str raw = {r->s + from, r->at - from};
    r->at++;
    *f = (struct maq_csv_field){unquote(r, raw), (uint32_t)open, (uint32_t)(r->at - open)};
    if (!at_field_end(r))
        end_with_line(r, f, open, "text after the closing quote of a field", r->at);
}

static void read_field(struct csv_reader *r, struct maq_csv_field *f)
{
    if (r->at < r->n && r->s[r->at] == '"') {
        read_quoted(r, f);
        return;
    }
    size_t from = r->at;
    while (!at_field_end(r))
        r->at++;
    *f = (struct maq_csv_field){{r->s + from, r->at - from}, (uint32_t)from, (uint32_t)(r->at - from)};
}

/* One record; *first is the index of its first field. False at the end of the text. Empty lines are passed over. */
static bool read_record(struct csv_reader *r, size_t *first)
{
    while (r->at < r->n && (r->s[r->at] == '\n' || r->s[r->at] == '\r'))
        r->at++;
    if (r->at >= r->n)
        return false;
    *first = r->n_fields;
    r->fault = NULL;
    for (;;) {
        MAQ_ASSERT(r->n_fields < r->max_fields);
        read_field(r, &r->fields[r->n_fields++]);
        if (r->at >= r->n || r->s[r->at] != ',')
            break;
        r->at++;
    }
    return true;
}

static enum maq_status check_header(const struct csv_reader *r, uint32_t n)
{
    enum maq_status status = MAQ_OK;
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < i; j++)
            if (maq_str_eq(r->fields[i].text, r->fields[j].text)) {
                status = maq_diag_fail(
                    MAQ_BAD_INPUT, r->diag, MAQ_CODE_CSV_HEADER, span_at(r, r->fields[i].off, r->fields[i].len), NULL,
                    "column '%.*s' is given twice", (int)(r->fields[i].text.len < 60 ? r->fields[i].text.len : 60),
                    r->fields[i].text.ptr);
                break;
            }
    return status;
}

/* A record that is left out. */
static enum maq_status leave_out(struct csv_reader *r, size_t first, size_t width)
{
    const struct maq_csv_field *f = &r->fields[first];
    size_t got = r->n_fields - first;
    struct maq_span at = r->fault ? span_at(r, r->fault_at, 1) : span_at(r, f->off, f->len);
    uint64_t line = r->diag ? maq_diag_place(r->diag, at).line : 0;
    r->n_fields = first;
    if (r->fault)
        return maq_mend_at(&r->mended, MAQ_MEND_LINE, line, MAQ_CODE_CSV_QUOTE, at, "%s", r->fault);
    return maq_mend_at(&r->mended, MAQ_MEND_LINE, line, MAQ_CODE_CSV_WIDTH, at,
                       "this record has %zu fields, the table %zu columns", got, width);
}

static enum maq_status read_rows(struct maq_csv *out, struct csv_reader *r, size_t width)
{
    size_t first;
    uint32_t rows = 0;
    while (read_record(r, &first)) {
        if (r->fault || r->n_fields - first != width)
            MAQ_TRY(leave_out(r, first, width));
        else if (++rows > MAQ_CSV_MAX_ROWS)
            return maq_diag_fail(MAQ_LIMIT, r->diag, MAQ_CODE_CSV_SIZE, span_at(r, r->fields[first].off, 1), NULL,
                                 "more than %u records", MAQ_CSV_MAX_ROWS);
    }
    if (r->failed)
        return maq_no_memory(r->diag, "the table");
    *out = (struct maq_csv){r->file, (uint32_t)width, rows, r->fields, r->fields + width};
    return maq_mending_end(&r->mended, rows);
}

enum maq_status maq_csv_parse(struct maq_csv *out, const char *name, struct maq_str text, struct maq_arena *arena,
                              struct maq_diag *diag)
{
    struct csv_reader r = {.s = text.ptr, .n = text.len, .arena = arena, .diag = diag};
    size_t first;
    if (text.len > MAQ_CSV_MAX_BYTES)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_CSV_SIZE, (struct maq_span){0}, NULL,
                             "%s: over the limit of 64 MiB", name);
    r.file = maq_diag_add_source(diag, name, text.ptr, text.len);
    if (text.len >= 3 && memcmp(text.ptr, "\xEF\xBB\xBF", 3) == 0)
        r.at = 3;
    r.max_fields = count_separators(text);
    if (r.max_fields > MAQ_CSV_MAX_FIELDS)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_CSV_SIZE, (struct maq_span){0}, NULL, "%s: more than %zu fields",
                             name, MAQ_CSV_MAX_FIELDS);
    r.fields = MAQ_ARENA_NEW(arena, struct maq_csv_field, r.max_fields);
    if (!r.fields)
        return maq_no_memory(diag, "the table");
    if (!read_record(&r, &first))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CSV_HEADER, span_at(&r, 0, 0),
                             "the first line names the columns, separated by commas", "the table is empty");
    if (r.fault)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CSV_QUOTE, span_at(&r, r.fault_at, 1),
                             "a quote inside a field is written twice", "%s", r.fault);
    maq_mending_begin(&r.mended, name, "line", "rows", diag);
    size_t width = r.n_fields;
    if (width > MAQ_CSV_MAX_COLUMNS)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_CSV_SIZE, span_at(&r, 0, 1), NULL, "more than %u columns",
                             MAQ_CSV_MAX_COLUMNS);
    MAQ_TRY(check_header(&r, (uint32_t)width));
    return read_rows(out, &r, width);
}

/* As it is written, otherwise without regard to case and to blanks around it. */
uint32_t maq_csv_column(const struct maq_csv *csv, const char *name)
{
    for (uint32_t i = 0; i < csv->n_columns; i++)
        if (maq_str_is(csv->names[i].text, name))
            return i;
    for (uint32_t i = 0; i < csv->n_columns; i++)
        if (maq_str_ieq(maq_str_trim(csv->names[i].text), name))
            return i;
    return UINT32_MAX;
}

static uint32_t column_of(const struct maq_csv *csv, const struct maq_csv_wanted *wanted)
{
    uint32_t at = maq_csv_column(csv, wanted->name);
    char name[64];
    for (const char *also = wanted->also; at == UINT32_MAX && also && *also;) {
        size_t n = strcspn(also, "|");
        maq__snprintf(name, sizeof name, "%.*s", (int)n, also);
        at = maq_csv_column(csv, name);
        also += n + (also[n] == '|');
    }
    return at;
}

/* Why a table seems to have none of its columns: it is one of tabs or semicolons, or of two bytes per letter. */
static const char *hint_of(const struct maq_csv *csv)
{
    struct maq_str first = csv->names[0].text;
    if (memchr(first.ptr, '\0', first.len) ||
        (first.len >= 2 && (memcmp(first.ptr, "\xFF\xFE", 2) == 0 || memcmp(first.ptr, "\xFE\xFF", 2) == 0)))
        return "this is UTF-16: save the table as UTF-8";
    if (first.len >= 2 && memcmp(first.ptr, "\x1F\x8B", 2) == 0)
        return "this is compressed by gzip: unpack it first";
    if (csv->n_columns == 1 && memchr(first.ptr, ';', first.len))
        return "fields are separated by commas, here by semicolons";
    if (csv->n_columns == 1 && memchr(first.ptr, '\t', first.len))
        return "fields are separated by commas, here by tabs";
    return "docs/validate.md lists the columns; cells may be empty";
}

enum maq_status maq_csv_bind(uint32_t *at, const struct maq_csv *csv, const struct maq_csv_wanted *wanted, size_t n,
                             struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    struct maq_span header = {csv->file, csv->names[0].off, csv->names[0].len};
    for (size_t i = 0; i < n; i++) {
        at[i] = column_of(csv, &wanted[i]);
        if (wanted[i].needed && at[i] == UINT32_MAX)
            status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CSV_COLUMN, header, hint_of(csv),
                                   "the table has no column '%s'", wanted[i].name);
    }
    return status;
}

struct maq_str maq_csv_get(const struct maq_csv *csv, uint32_t row, uint32_t column)
{
    if (column == UINT32_MAX)
        return MAQ_STR("");
    return maq_str_trim(csv->fields[(size_t)row * csv->n_columns + column].text);
}

struct maq_span maq_csv_span(const struct maq_csv *csv, uint32_t row, uint32_t column)
{
    const struct maq_csv_field *f = &csv->fields[(size_t)row * csv->n_columns + (column == UINT32_MAX ? 0 : column)];
    return (struct maq_span){csv->file, f->off, f->len};
}
