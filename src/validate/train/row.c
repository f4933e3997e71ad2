/* SPDX-License-Identifier: Apache-2.0 */
/*
 * row.c - finds the columns of a table of measurements by name and alias, and reads cells as text and numbers. See
 * row.h.
 */
#include "validate/train/row.h"

#include <math.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "validate/codes.h"

static const struct maq_csv_wanted columns[MAQ_COLUMN_COUNT] = {
#define MAQ_COLUMN_ROW(name, needed, also) [MAQ_COLUMN_##name] = {#name, needed, also},
    MAQ_COLUMN_LIST(MAQ_COLUMN_ROW)
#undef MAQ_COLUMN_ROW
};

#define MAX_INT 1000000000 /* no count of a training run is near it */

const char *maq_column_name(enum maq_column column)
{
    return columns[column].name;
}

/* Columns that nothing is read from: what somebody calls mbs in his own way would else be guessed, and nobody told. */
static void note_unread(const struct maq_row_table *table, struct maq_diag *diag)
{
    static const char *const remarks[] = {"url", "mfu", "hfu", "reported_other"}; /* of nothing that is predicted */
    const struct maq_csv *csv = &table->csv;
    struct maq_buf words;
    uint32_t n = 0;
    maq_buf_init(&words, 1 << 10);
    for (uint32_t c = 0; c < csv->n_columns; c++) {
        struct maq_str name = maq_str_trim(csv->names[c].text);
        bool read = name.len == 0;
        for (size_t i = 0; i < MAQ_COLUMN_COUNT && !read; i++)
            read = table->at[i] == c;
        for (size_t i = 0; i < MAQ_COUNT(remarks) && !read; i++)
            read = maq_str_ieq(name, remarks[i]);
        if (!read && n++ < 8)
            maq_buf_addf(&words, "%s%.*s", n > 1 ? ", " : "", (int)(name.len < 64 ? name.len : 64), name.ptr);
    }
    if (n > 8)
        maq_buf_addf(&words, " and %u more", n - 8);
    if (n > 0)
        maq_diag_add(diag, MAQ_NOTE, MAQ_CODE_CSV_UNREAD, (struct maq_span){csv->file, csv->names[0].off, 1},
                     "docs/validate.md lists the columns that are", "not read: %s", words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

enum maq_status maq_row_table_bind(struct maq_row_table *table, struct maq_diag *diag)
{
    static const enum maq_column measured[] = {MAQ_COLUMN_derived_iter_time_s, MAQ_COLUMN_iter_time_s,
                                               MAQ_COLUMN_tokens_per_s_per_gpu, MAQ_COLUMN_derived_tokens_per_s_per_gpu,
                                               MAQ_COLUMN_peak_mem_gb};
    enum maq_status status = maq_csv_bind(table->at, &table->csv, columns, MAQ_COLUMN_COUNT, diag);
    note_unread(table, diag);
    for (size_t i = 0; i < MAQ_COUNT(measured); i++)
        if (table->at[measured[i]] != UINT32_MAX)
            return status;
    return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CSV_COLUMN,
                         (struct maq_span){table->csv.file, table->csv.names[0].off, table->csv.names[0].len},
                         "one of derived_iter_time_s, iter_time_s, tokens_per_s_per_gpu and peak_mem_gb is needed",
                         "the table has no column of a measurement");
}

struct maq_str maq_row_text(const struct maq_table_row *row, enum maq_column column)
{
    return maq_csv_get(&row->table->csv, row->row, row->table->at[column]);
}

bool maq_row_says_nothing(struct maq_str text)
{
    static const char *const words[] = {"",
                                        "-",
                                        "--",
                                        "\xE2\x80\x93" /* en dash */,
                                        "\xE2\x80\x94" /* em dash */,
                                        "?",
                                        "n/a",
                                        "na",
                                        "nan",
                                        "nil",
                                        "null",
                                        "unknown",
                                        "unstated",
                                        "not stated",
                                        "not specified",
                                        "not given",
                                        "tbd"};
    for (size_t i = 0; i < MAQ_COUNT(words); i++)
        if (maq_str_ieq(text, words[i]))
            return true;
    return false;
}

/* "16,384": a comma before every three digits, and digits alone in front of the first. */
static bool with_commas(int64_t *value, struct maq_str text)
{
    int64_t sum = 0;
    size_t group = 0;
    bool comma = false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == ',' && group >= 1 && group <= 3 && (!comma || group == 3)) {
            comma = true;
            group = 0;
        } else if (c >= '0' && c <= '9' && sum <= MAX_INT) {
            sum = sum * 10 + (c - '0');
            group++;
        } else {
            return false;
        }
    }
    *value = sum;
    return comma && group == 3;
}

/* A count as tables have it: spreadsheets write 8.0, people 16,384. */
static bool read_count(int64_t *value, struct maq_str text)
{
    double real;
    if (maq_str_to_i64(value, text) || with_commas(value, text))
        return true;
    if (!maq_str_to_double(&real, text) || !(fabs(real) <= MAX_INT) || real != floor(real))
        return false;
    *value = (int64_t)real;
    return true;
}

int64_t maq_row_int(struct maq_table_row *row, enum maq_column column, int64_t empty)
{
    struct maq_str text = maq_row_text(row, column);
    int64_t value, thousands = 1;
    if (maq_row_says_nothing(text) || maq_str_ieq(text, "none"))
        return empty;
    /* a length of "8k" or "128K" tokens is a power of two */
    if (column == MAQ_COLUMN_seq_len && maq_char_lower(text.ptr[text.len - 1]) == 'k') {
        thousands = 1024;
        text.len--;
    }
    if (read_count(&value, text) && value >= 0 && value <= MAX_INT / thousands)
        return value * thousands;
    if (row->bad < 0)
        row->bad = (int)column;
    return empty;
}

double maq_row_double(struct maq_table_row *row, enum maq_column column, double empty)
{
    struct maq_str text = maq_row_text(row, column);
    double value;
    if (maq_row_says_nothing(text))
        return empty;
    if (maq_str_to_double(&value, text) && isfinite(value) && value >= 0)
        return value;
    if (row->bad < 0)
        row->bad = (int)column;
    return empty;
}
