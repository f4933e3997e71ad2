/* SPDX-License-Identifier: Apache-2.0 */
/* cell.c - values of a kernel table by column: from the row, or the table's constants. See table.h. */
#include "base/str.h"
#include "validate/kernels/table.h"

struct maq_str maq_kernel_text(const struct maq_kernel_line *row, enum maq_kernel_column column)
{
    const struct maq_kernel_table *t = row->table;
    return t->at[column] != UINT32_MAX ? maq_csv_get(&t->csv, row->row, t->at[column]) : t->constants[column];
}

int64_t maq_kernel_int_or(struct maq_kernel_line *row, enum maq_kernel_column column, int64_t missing)
{
    struct maq_str text = maq_kernel_text(row, column);
    int64_t value = 0;
    if (text.len == 0)
        return missing;
    if (!maq_str_to_i64(&value, text) || value < 0 || value > (int64_t)1 << 40)
        row->bad = true;
    return row->bad ? 0 : value;
}

int64_t maq_kernel_int(struct maq_kernel_line *row, enum maq_kernel_column column)
{
    row->bad |= maq_kernel_text(row, column).len == 0;
    return maq_kernel_int_or(row, column, 0);
}
