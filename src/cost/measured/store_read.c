/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store_read.c - all measurements of a file, checked, in an order that depends on nothing but what is in it.
 */
#include <string.h>

#include "base/check.h"
#include "cost/codes.h"
#include "cost/measured/op_key.h"
#include "cost/measured/store.h"
#include "cost/measured/store_internal.h"

#define MACHINE_COLUMNS "device, gpu, driver, cuda, cublas, cudnn, nccl, "
#define TIME_COLUMNS                                                                                                   \
    "mode, cache, kernel, n, median_s, min_s, p90_s, stddev_s, sm_clock_hz, memory_clock_hz, power_w, temperature_c, " \
    "created, "

/* `last`: the column of repetitions, or what stands for it. */
#define READ_OPS(last)                                                                                                 \
    "SELECT " MACHINE_COLUMNS TIME_COLUMNS last ", kind, dtype, flags, queries, d0, d1, d2, d3, d4, d5"                \
    " FROM operator JOIN machine ON machine.id = operator.machine ORDER BY device, kind, dtype,"                       \
    " flags, queries, d0, d1, d2, d3, d4, d5, mode, cache, created, machine.id"
#define READ_COLLS(last)                                                                                               \
    "SELECT " MACHINE_COLUMNS TIME_COLUMNS last ", kind, bytes, ranks, per_node"                                       \
    " FROM collective JOIN machine ON machine.id = collective.machine ORDER BY device, kind, bytes, ranks, per_node,"  \
    " mode, cache, created, machine.id"

static const char *const queries[2][2] = {/* [collectives][with repetitions] */
                                          {READ_OPS("NULL"), READ_OPS("repetitions")},
                                          {READ_COLLS("NULL"), READ_COLLS("repetitions")}};

/* A row being read, column by column from the left. */
struct reader {
    sqlite3_stmt *stmt;
    int at;
    struct maq_arena *arena;
    const char *fault; /* the first one */
    bool failed;       /* out of memory */
};

static struct maq_str take_word(struct reader *r)
{
    const char *text = (const char *)sqlite3_column_text(r->stmt, r->at);
    size_t n = (size_t)sqlite3_column_bytes(r->stmt, r->at++);
    return (struct maq_str){text ? text : "", text ? n : 0};
}

static const char *take_text(struct reader *r)
{
    const char *copy = maq_arena_strdup(r->arena, take_word(r));
    r->failed |= !copy;
    return copy ? copy : "";
}

static int64_t take_int(struct reader *r, int64_t min, int64_t max)
{
    int64_t value = sqlite3_column_int64(r->stmt, r->at++);
    if (value >= min && value <= max)
        return value;
    r->fault = r->fault ? r->fault : "a number is out of its range";
    return min;
}

static double take_real(struct reader *r)
{
    return sqlite3_column_double(r->stmt, r->at++);
}

/* Doubles, the least significant byte first; NULL where there are none. */
static const double *take_reals(struct reader *r, uint32_t n)
{
    const unsigned char *bytes = sqlite3_column_blob(r->stmt, r->at);
    size_t size = (size_t)sqlite3_column_bytes(r->stmt, r->at++);
    if (!bytes)
        return NULL;
    if (size != (size_t)n * 8) {
        r->fault = r->fault ? r->fault : "its repetitions are not as many as it says";
        return NULL;
    }
    double *value = MAQ_ARENA_NEW(r->arena, double, n);
    r->failed |= !value;
    for (size_t i = 0; value && i < n; i++) {
        uint64_t bits = 0;
        for (int k = 0; k < 8; k++)
            bits |= (uint64_t)bytes[8 * i + (size_t)k] << 8 * k;
        memcpy(&value[i], &bits, sizeof bits);
    }
    return value;
}

static void expect(struct reader *r, bool known, const char *fault)
{
    if (!known && !r->fault)
        r->fault = fault;
}

static void read_common(struct reader *r, struct maq_kernel_row *row)
{
    const char **const texts[] = {&row->at.device, &row->at.gpu,   &row->at.driver, &row->at.cuda,
                                  &row->at.cublas, &row->at.cudnn, &row->at.nccl};
    for (size_t i = 0; i < MAQ_COUNT(texts); i++)
        *texts[i] = take_text(r);
    struct maq_str mode = take_word(r);
    bool sustained = maq_str_is(mode, "sustained");
    expect(r, sustained || maq_str_is(mode, "burst"), "its mode is unknown");
    row->mode = sustained ? MAQ_KERNEL_SUSTAINED : MAQ_KERNEL_BURST;
    struct maq_str cache = take_word(r);
    row->warm = maq_str_is(cache, "warm");
    expect(r, row->warm || maq_str_is(cache, "cold"), "its cache is neither cold nor warm");
    row->kernel = take_text(r);
    row->times.n = (uint32_t)take_int(r, 1, UINT32_MAX);
    row->times.median_s = take_real(r);
    row->times.min_s = take_real(r);
    row->times.p90_s = take_real(r);
    row->times.stddev_s = take_real(r);
    row->state.sm_hz = take_real(r);
    row->state.memory_hz = take_real(r);
    row->state.power_w = take_real(r);
    row->state.celsius = take_real(r);
    row->created = take_text(r);
    row->times.repetition = take_reals(r, row->times.n);
}

static void read_op(struct reader *r, struct maq_kernel_row *row)
{
    enum maq_op_kind kind = MAQ_OP_NONE;
    enum maq_dtype dtype = MAQ_FP32;
    expect(r, maq_op_kind_find(&kind, take_word(r)) && kind != MAQ_OP_NONE, "its kind of operator is unknown");
    expect(r, maq_dtype_find(&dtype, take_word(r)), "its element type is unknown");
    row->op.kind = (uint16_t)kind;
    row->op.dtype = (uint8_t)dtype;
    expect(r, maq_op_flags_parse(&row->op.flags, kind, take_word(r)), "one of its flags is unknown");
    row->op.queries = (uint32_t)take_int(r, 0, UINT32_MAX);
    for (int i = 0; i < 6; i++)
        row->op.d[i] = take_int(r, 0, INT64_MAX);
    row->op = maq_op_canonical(&row->op);
}

static void read_coll(struct reader *r, struct maq_kernel_row *row)
{
    enum maq_coll_kind kind = MAQ_COLL_ALL_REDUCE;
    row->is_coll = true;
    expect(r, maq_coll_kind_find(&kind, take_word(r)), "its kind of collective is unknown");
    row->coll.kind = (uint16_t)kind;
    row->coll.bytes = take_real(r);
    row->coll.at.size = (uint32_t)take_int(r, 0, UINT32_MAX);
    row->coll.at.per_node = (uint32_t)take_int(r, 0, UINT32_MAX);
    row->coll = maq_coll_canonical(&row->coll);
}

static enum maq_status append(struct maq_kernel_rows *rows, uint32_t *size, const struct maq_kernel_row *row,
                              struct maq_arena *arena)
{
    if (rows->n == *size) {
        uint32_t grown = *size ? *size * 2 : 256;
        struct maq_kernel_row *at = MAQ_ARENA_NEW(arena, struct maq_kernel_row, grown);
        if (!at)
            return MAQ_NO_MEMORY;
        if (rows->n > 0)
            memcpy(at, rows->at, rows->n * sizeof *at);
        rows->at = at;
        *size = grown;
    }
    rows->at[rows->n++] = *row;
    return MAQ_OK;
}

static enum maq_status read_table(struct maq_kernel_rows *rows, uint32_t *size, sqlite3 *db, bool colls,
                                  bool repetitions, const char *path, struct maq_arena *arena, struct maq_diag *diag)
{
    sqlite3_stmt *stmt;
    enum maq_status status = MAQ_OK;
    int rc = sqlite3_prepare_v2(db, queries[colls][repetitions], -1, &stmt, NULL);
    if (rc != SQLITE_OK)
        return maq__store_fail(db, rc, path, diag);
    uint32_t number = 0;
    while (status == MAQ_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
        struct reader r = {.stmt = stmt, .arena = arena};
        struct maq_kernel_row row;
        memset(&row, 0, sizeof row);
        number++;
        read_common(&r, &row);
        (colls ? read_coll : read_op)(&r, &row);
        const char *fault = r.fault ? r.fault : maq_kernel_fault(&row);
        if (fault)
            status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_KERNELS_ROW, (struct maq_span){0},
                                   "take the row out, or measure into a new file", "%s: row %u of table '%s': %s", path,
                                   number, colls ? "collective" : "operator", fault);
        else if (r.failed || append(rows, size, &row, arena) != MAQ_OK)
            status = maq__store_fail(NULL, SQLITE_NOMEM, path, diag);
    }
    if (status == MAQ_OK && rc != SQLITE_DONE)
        status = maq__store_fail(db, rc, path, diag);
    sqlite3_finalize(stmt);
    return status;
}

static enum maq_status read_file(struct maq_kernel_rows *out, bool repetitions, const char *path,
                                 struct maq_arena *arena, struct maq_diag *diag)
{
    sqlite3 *db;
    int form = 0;
    uint32_t size = 0;
    struct maq_kernel_rows rows = {0};
    MAQ_TRY(maq__store_connect(&db, &form, path, SQLITE_OPEN_READONLY, diag));
    enum maq_status status = MAQ_OK;
    repetitions = repetitions && form > 1;
    if (form == 0)
        status = maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_KERNELS_FORM, (struct maq_span){0},
                               "such files are written by `maquette profile`",
                               "%s holds no measured kernels: it is empty", path);
    if (status == MAQ_OK)
        status = read_table(&rows, &size, db, false, repetitions, path, arena, diag);
    if (status == MAQ_OK)
        status = read_table(&rows, &size, db, true, repetitions, path, arena, diag);
    sqlite3_close(db);
    if (status == MAQ_OK)
        *out = rows;
    return status;
}

enum maq_status maq_kernel_rows_read(struct maq_kernel_rows *out, const char *path, struct maq_arena *arena,
                                     struct maq_diag *diag)
{
    return read_file(out, false, path, arena, diag);
}

enum maq_status maq_kernel_repetitions_read(struct maq_kernel_rows *out, const char *path, struct maq_arena *arena,
                                            struct maq_diag *diag)
{
    return read_file(out, true, path, arena, diag);
}
