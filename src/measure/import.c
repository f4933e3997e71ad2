/* SPDX-License-Identifier: Apache-2.0 */
/*
 * import.c - measurements from elsewhere into a file: a CSV table whose columns are those of the file
 * (docs/profile.md).
 *
 * Needed: device, kind, median_s; dtype for operators, bytes and ranks for collectives. What else is missing is empty:
 * a dimension 0, mode burst, cache cold, n 1, minimum and 90th percentile the median, deviation 0.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "cost/measured/op_key.h"
#include "measure/codes.h"
#include "measure/plan.h"
#include "report/json_util.h"
#include "report/page.h"
#include "spec/doc_internal.h"
#include "validate/csv.h"

struct table {
    struct maq_csv csv;
    struct maq_arena *arena;
    struct maq_diag *diag;
    enum maq_status status;
    uint32_t row;
    bool row_fault; /* something is wrong with this row already */
};

static struct maq_str cell(const struct table *t, const char *column)
{
    return maq_csv_get(&t->csv, t->row, maq_csv_column(&t->csv, column));
}

static void fault(struct table *t, const char *column, const char *what)
{
    char show[MAQ_SHOW_SIZE];
    t->row_fault = true;
    t->status = maq_diag_fail(MAQ_BAD_INPUT, t->diag, MAQ_CODE_PROFILE_TABLE,
                              maq_csv_span(&t->csv, t->row, maq_csv_column(&t->csv, column)),
                              "docs/profile.md lists the columns", "'%s' in column %s is not %s",
                              maq_str_show(show, cell(t, column)), column, what);
}

static const char *text_of(struct table *t, const char *column, const char *otherwise)
{
    struct maq_str s = cell(t, column);
    const char *copy = s.len > 0 ? maq_arena_strdup(t->arena, s) : otherwise;
    if (!copy)
        t->status = MAQ_NO_MEMORY;
    return copy ? copy : "";
}

static double real_of(struct table *t, const char *column, double otherwise)
{
    double x = otherwise;
    struct maq_str s = cell(t, column);
    if (s.len > 0 && !maq_str_to_double(&x, s))
        fault(t, column, "a number");
    return x;
}

static int64_t int_of(struct table *t, const char *column, int64_t otherwise, int64_t max)
{
    int64_t x = otherwise;
    struct maq_str s = cell(t, column);
    if (s.len > 0 && (!maq_str_to_i64(&x, s) || x < 0 || x > max)) {
        fault(t, column, "a whole number in its range");
        return otherwise;
    }
    return x;
}

static void read_op(struct table *t, struct maq_kernel_row *row, enum maq_op_kind kind)
{
    enum maq_dtype dtype = MAQ_FP32;
    row->op.kind = (uint16_t)kind;
    if (!maq_dtype_find(&dtype, cell(t, "dtype")))
        fault(t, "dtype", "an element type");
    row->op.dtype = (uint8_t)dtype;
    if (!maq_op_flags_parse(&row->op.flags, kind, cell(t, "flags")))
        fault(t, "flags", "words joined by '+', or empty");
    row->op.queries = (uint32_t)int_of(t, "queries", 0, UINT32_MAX);
    for (int i = 0; i < 6; i++) {
        char name[8];
        maq__snprintf(name, sizeof name, "d%d", i);
        row->op.d[i] = int_of(t, name, 0, INT64_MAX);
    }
    row->op = maq_op_canonical(&row->op);
}

static void read_coll(struct table *t, struct maq_kernel_row *row, enum maq_coll_kind kind)
{
    row->is_coll = true;
    row->coll.kind = (uint16_t)kind;
    row->coll.bytes = real_of(t, "bytes", 0);
    row->coll.at.size = (uint32_t)int_of(t, "ranks", 0, UINT32_MAX);
    row->coll.at.per_node = (uint32_t)int_of(t, "per_node", row->coll.at.size, UINT32_MAX);
    row->coll = maq_coll_canonical(&row->coll);
}

static void read_conditions(struct table *t, struct maq_kernel_row *row)
{
    struct maq_str mode = cell(t, "mode"), cache = cell(t, "cache");
    row->mode = maq_str_is(mode, "sustained") ? MAQ_KERNEL_SUSTAINED : MAQ_KERNEL_BURST;
    if (mode.len > 0 && !maq_str_is(mode, maq_kernel_mode_name((enum maq_kernel_mode)row->mode)))
        fault(t, "mode", "burst or sustained");
    row->warm = maq_str_is(cache, "warm");
    if (cache.len > 0 && !row->warm && !maq_str_is(cache, "cold"))
        fault(t, "cache", "cold or warm");
    row->state = (struct maq_kernel_state){real_of(t, "sm_clock_hz", 0), real_of(t, "memory_clock_hz", 0),
                                           real_of(t, "power_w", 0), real_of(t, "temperature_c", 0)};
}

/* Any fault of the row is reported; reading goes on, so that all faults of a table come at once. */
static void read_row(struct table *t, struct maq_kernel_row *row)
{
    enum maq_op_kind kind = MAQ_OP_NONE;
    enum maq_coll_kind coll = MAQ_COLL_ALL_REDUCE;
    memset(row, 0, sizeof *row);
    t->row_fault = false;
    row->at = (struct maq_kernel_machine){text_of(t, "device", ""), text_of(t, "gpu", ""),    text_of(t, "driver", ""),
                                          text_of(t, "cuda", ""),   text_of(t, "cublas", ""), text_of(t, "cudnn", ""),
                                          text_of(t, "nccl", "")};
    if (!*row->at.device)
        fault(t, "device", "the name of a GPU");
    if (maq_op_kind_find(&kind, cell(t, "kind")) && kind != MAQ_OP_NONE)
        read_op(t, row, kind);
    else if (maq_coll_kind_find(&coll, cell(t, "kind")))
        read_coll(t, row, coll);
    else
        fault(t, "kind", "a kind of operator or collective");
    read_conditions(t, row);
    row->kernel = text_of(t, "kernel", "imported");
    row->created = text_of(t, "created", "");
    row->times.median_s = real_of(t, "median_s", 0);
    row->times.n = (uint32_t)int_of(t, "n", 1, UINT32_MAX);
    row->times.min_s = real_of(t, "min_s", row->times.median_s);
    row->times.p90_s = real_of(t, "p90_s", row->times.median_s);
    row->times.stddev_s = real_of(t, "stddev_s", 0);
    const char *wrong = t->row_fault ? NULL : maq_kernel_fault(row);
    if (wrong)
        t->status = maq_diag_fail(MAQ_BAD_INPUT, t->diag, MAQ_CODE_PROFILE_TABLE, maq_csv_span(&t->csv, t->row, 0),
                                  NULL, "the measurement cannot be: %s", wrong);
}

static enum maq_status check_columns(const struct maq_csv *csv, struct maq_diag *diag)
{
    static const char *const needed[] = {"device", "kind", "median_s"};
    for (size_t i = 0; i < MAQ_COUNT(needed); i++)
        if (maq_csv_column(csv, needed[i]) == UINT32_MAX)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PROFILE_TABLE, (struct maq_span){csv->file, 0, 0},
                                 "docs/profile.md lists the columns", "the table has no column '%s'", needed[i]);
    return MAQ_OK;
}

static enum maq_status import(uint32_t *n, const char *path, struct table *t)
{
    struct maq_kernel_store *store;
    MAQ_TRY(check_columns(&t->csv, t->diag));
    struct maq_kernel_row *rows = MAQ_ARENA_NEW(t->arena, struct maq_kernel_row, t->csv.n_rows);
    if (!rows)
        return MAQ_NO_MEMORY;
    for (t->row = 0; t->row < t->csv.n_rows && t->status != MAQ_NO_MEMORY; t->row++)
        read_row(t, &rows[t->row]);
    MAQ_TRY(t->status);
    MAQ_TRY(maq_kernel_store_open(&store, path, t->diag));
    enum maq_status status = maq_kernel_store_put_all(store, rows, t->csv.n_rows, t->diag);
    maq_kernel_store_close(store);
    *n = t->csv.n_rows;
    return status;
}

static enum maq_status import_file(uint32_t *n, const char *path, const char *csv, struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_buf text;
    struct table t = {.arena = &arena, .diag = diag, .status = MAQ_OK};
    maq_arena_init(&arena, 0);
    enum maq_status status = maq__doc_read(&text, csv, diag);
    if (status == MAQ_OK)
        status = maq_csv_parse(&t.csv, maq__doc_name(csv), (struct maq_str){text.ptr ? text.ptr : "", text.len}, &arena,
                               diag);
    if (status == MAQ_OK)
        status = import(n, path, &t);
    if (status == MAQ_NO_MEMORY)
        (void)maq_diag_fail(status, diag, MAQ_CODE_PROFILE_NO_MEMORY, (struct maq_span){0}, NULL,
                            "out of memory for the measurements of %s", maq__doc_name(csv));
    maq_buf_fini(&text);
    maq_arena_fini(&arena);
    return status;
}

enum maq_status maq_profile_import_text(char **out, const char *path, const char *csv,
                                        const struct maq_report_opts *opts, struct maq_diag *diag)
{
    uint32_t n = 0;
    struct maq_page page;
    struct maq_arena arena;
    MAQ_TRY(import_file(&n, path, csv, diag));
    maq_arena_init(&arena, 0);
    maq_page_init(&page, opts);
    maq_page_putf(&page, MAQ_INK_PLAIN, "%u measurements from %s are in %s now\n", n, maq_text_clean(&arena, csv),
                  maq_text_clean(&arena, path));
    maq_arena_fini(&arena);
    return maq_page_finish(out, &page, diag);
}

enum maq_status maq_profile_import_json(char **out, const char *path, const char *csv, struct maq_diag *diag)
{
    uint32_t n = 0;
    struct maq_json_document document;
    MAQ_TRY(import_file(&n, path, csv, diag));
    maq_json_begin(&document, "maquette.kernels.import/1");
    maq_json_text(document.root, "table", csv);
    maq_json_text(document.root, "file", path);
    maq_json_int(document.root, "rows", n);
    return maq_json_finish(out, &document, diag);
}
