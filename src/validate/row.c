/* row.c - see row.h. */
#include "validate/row.h"

#include <math.h>

#include "base/str.h"
#include "base/text.h"
#include "validate/codes.h"

static const struct {
    const char *name;
    bool needed;
} columns[MAQ_COLUMN_COUNT] = {
#define MAQ_COLUMN_ROW(name, needed) [MAQ_COLUMN_##name] = {#name, needed},
    MAQ_COLUMN_LIST(MAQ_COLUMN_ROW)
#undef MAQ_COLUMN_ROW
};

#define MAX_INT 1000000000 /* no count of a training run is near it */

const char *maq_column_name(enum maq_column column)
{
    return columns[column].name;
}

enum maq_status maq_table_bind(struct maq_table *table, struct maq_diag *diag)
{
    enum maq_status status = MAQ_OK;
    struct maq_span header = {table->csv.file, table->csv.names[0].off, table->csv.names[0].len};
    for (int c = 0; c < MAQ_COLUMN_COUNT; c++) {
        table->at[c] = maq_csv_column(&table->csv, columns[c].name);
        if (columns[c].needed && table->at[c] == UINT32_MAX)
            status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_CSV_COLUMN, header,
                                   "docs/validate.md lists the columns; cells may be empty",
                                   "the table has no column '%s'", columns[c].name);
    }
    return status;
}

struct maq_str maq_row_text(const struct maq_table_row *row, enum maq_column column)
{
    return maq_csv_get(&row->table->csv, row->row, row->table->at[column]);
}

int64_t maq_row_int(struct maq_table_row *row, enum maq_column column, int64_t empty)
{
    struct maq_str text = maq_row_text(row, column);
    int64_t value;
    double real;
    if (text.len == 0)
        return empty;
    if (!maq_str_to_i64(&value, text)) { /* spreadsheets write 8.0 */
        if (!maq_str_to_double(&real, text) || !(fabs(real) <= MAX_INT) || real != floor(real))
            goto bad;
        value = (int64_t)real;
    }
    if (value >= 0 && value <= MAX_INT)
        return value;
bad:
    if (row->bad < 0)
        row->bad = (int)column;
    return empty;
}

double maq_row_double(struct maq_table_row *row, enum maq_column column, double empty)
{
    struct maq_str text = maq_row_text(row, column);
    double value;
    if (text.len == 0)
        return empty;
    if (maq_str_to_double(&value, text) && isfinite(value) && value >= 0)
        return value;
    if (row->bad < 0)
        row->bad = (int)column;
    return empty;
}
