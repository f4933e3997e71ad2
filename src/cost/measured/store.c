/* SPDX-License-Identifier: Apache-2.0 */
/*
 * store.c - the tables of measured kernels: opening, creating, writing. Reading is in store_read.c.
 *
 * A file is opened in three steps, each of which may refuse: SQLite's own look at it (damaged, not a database), the
 * application_id (another program's database), the user_version (another form). Tables are created under the write
 * lock, after a second look, so that two programs that start on an empty file at once both find it in order. So are the columns
 * that form 1 did not have.
 */
#include "cost/measured/store.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "cost/codes.h"
#include "cost/measured/op_key.h"
#include "cost/measured/store_internal.h"
#include "spec/foreign_file.h"

#define WAIT_MS 60000 /* for another program's transaction, which takes milliseconds */

static const char *const mode_names[] = {[MAQ_KERNEL_BURST] = "burst", [MAQ_KERNEL_SUSTAINED] = "sustained"};

const char *maq_kernel_mode_name(enum maq_kernel_mode mode)
{
    return (unsigned)mode < MAQ_KERNEL_MODE_COUNT ? mode_names[mode] : "unknown";
}

bool maq_kernel_same(const struct maq_kernel_row *a, const struct maq_kernel_row *b)
{
    if (a->is_coll != b->is_coll || a->mode != b->mode || a->warm != b->warm)
        return false;
    return a->is_coll ? memcmp(&a->coll, &b->coll, sizeof a->coll) == 0 : memcmp(&a->op, &b->op, sizeof a->op) == 0;
}

const char *maq_kernel_fault(const struct maq_kernel_row *row)
{
    const struct maq_kernel_times *t = &row->times;
    if (t->n == 0)
        return "it has no repetitions";
    if (!(t->median_s > 0) || !(t->median_s < MAQ_KERNEL_LONGEST_S))
        return "its median is no time";
    if (!(t->min_s >= 0) || !(t->min_s <= t->median_s) || !(t->p90_s >= t->median_s) ||
        !(t->p90_s < MAQ_KERNEL_LONGEST_S))
        return "its minimum, median and 90th percentile are out of order";
    if (!(t->stddev_s >= 0) || !(t->stddev_s < MAQ_KERNEL_LONGEST_S))
        return "its standard deviation is none";
    for (uint32_t i = 0; t->repetition && i < t->n; i++)
        if (!(t->repetition[i] >= 0) || !(t->repetition[i] < MAQ_KERNEL_LONGEST_S))
            return "one of its repetitions is no time";
    if (row->is_coll && (row->coll.at.size < 2 || !(row->coll.bytes > 0)))
        return "a collective has at least two ranks and one byte";
    if (row->is_coll && !maq_coll_is_local(&row->coll))
        return "it leaves the scale-up domain: between nodes the network counts, which the file does not describe";
    for (int i = 0; !row->is_coll && i < 6; i++)
        if (row->op.d[i] < 0)
            return "a dimension is negative";
    return NULL;
}

/* --- failures ------------------------------------------------------------------------------------------------- */

enum maq_status maq__store_fail(sqlite3 *db, int rc, const char *path, struct maq_diag *diag)
{
    const struct maq_span nowhere = {0};
    const char *why = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    switch (rc & 0xff) {
    case SQLITE_NOMEM:
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_KERNELS_NO_MEMORY, nowhere, NULL,
                             "out of memory for the measured kernels of %s", path);
    case SQLITE_NOTADB:
        MAQ_TRY(maq_foreign_refuse(maq_foreign_file(path), path, "a file of measured kernels", nowhere, diag));
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_KERNELS_FORM, nowhere,
                             "such files are written by `maquette profile`", "%s is no file of measured kernels: %s",
                             path, why);
    case SQLITE_CORRUPT:
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_KERNELS_DAMAGED, nowhere,
                             "sqlite3's command .recover saves what can be read; nothing was written into the file",
                             "%s is damaged: %s", path, why);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_KERNELS_BUSY, nowhere, "is another program stuck in it?",
                             "%s is locked by another program since %d s", path, WAIT_MS / 1000);
    default:
        return maq_diag_fail(MAQ_IO, diag, MAQ_CODE_KERNELS_OPEN, nowhere,
                             "`maquette profile` and `maquette profile import` write such files", "%s: %s", path, why);
    }
}

int maq__store_exec(sqlite3 *db, const char *sql)
{
    return sqlite3_exec(db, sql, NULL, NULL, NULL);
}

/* --- opening -------------------------------------------------------------------------------------------------- */

#define STRING(x) STRING_(x)
#define STRING_(x) #x

static const char schema[] =
    "CREATE TABLE machine ("
    " id INTEGER PRIMARY KEY, device TEXT NOT NULL, gpu TEXT NOT NULL, driver TEXT NOT NULL, cuda TEXT NOT NULL,"
    " cublas TEXT NOT NULL, cudnn TEXT NOT NULL, nccl TEXT NOT NULL,"
    " UNIQUE (device, gpu, driver, cuda, cublas, cudnn, nccl)) STRICT;"
    "CREATE TABLE operator ("
    " machine INTEGER NOT NULL REFERENCES machine, kind TEXT NOT NULL, dtype TEXT NOT NULL, flags TEXT NOT NULL,"
    " queries INTEGER NOT NULL, d0 INTEGER NOT NULL, d1 INTEGER NOT NULL, d2 INTEGER NOT NULL, d3 INTEGER NOT NULL,"
    " d4 INTEGER NOT NULL, d5 INTEGER NOT NULL, mode TEXT NOT NULL, cache TEXT NOT NULL, kernel TEXT NOT NULL,"
    " n INTEGER NOT NULL, median_s REAL NOT NULL, min_s REAL NOT NULL, p90_s REAL NOT NULL, stddev_s REAL NOT NULL,"
    " sm_clock_hz REAL, memory_clock_hz REAL, power_w REAL, temperature_c REAL, created TEXT NOT NULL,"
    " repetitions BLOB,"
    " PRIMARY KEY (machine, kind, dtype, flags, queries, d0, d1, d2, d3, d4, d5, mode, cache)) STRICT, WITHOUT ROWID;"
    "CREATE TABLE collective ("
    " machine INTEGER NOT NULL REFERENCES machine, kind TEXT NOT NULL, bytes REAL NOT NULL, ranks INTEGER NOT NULL,"
    " per_node INTEGER NOT NULL, mode TEXT NOT NULL, cache TEXT NOT NULL,"
    " kernel TEXT NOT NULL, n INTEGER NOT NULL, median_s REAL NOT NULL, min_s REAL NOT NULL, p90_s REAL NOT NULL,"
    " stddev_s REAL NOT NULL, sm_clock_hz REAL, memory_clock_hz REAL, power_w REAL, temperature_c REAL,"
    " created TEXT NOT NULL, repetitions BLOB,"
    " PRIMARY KEY (machine, kind, bytes, ranks, per_node, mode, cache)) STRICT, WITHOUT ROWID;"
    "PRAGMA application_id = " STRING(MAQ_STORE_APPLICATION) "; PRAGMA user_version = " STRING(MAQ_STORE_FORM) ";";

static const char from_form_1[] = "ALTER TABLE operator ADD COLUMN repetitions BLOB;"
                                  "ALTER TABLE collective ADD COLUMN repetitions BLOB;"
                                  "PRAGMA user_version = " STRING(MAQ_STORE_FORM) ";";

/* A number that a pragma or a count gives. */
static int number(sqlite3 *db, const char *sql, int64_t *out)
{
    sqlite3_stmt *s;
    int rc = sqlite3_prepare_v2(db, sql, -1, &s, NULL);
    if (rc != SQLITE_OK)
        return rc;
    rc = sqlite3_step(s);
    *out = rc == SQLITE_ROW ? sqlite3_column_int64(s, 0) : 0;
    sqlite3_finalize(s);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Whose file it is. *found = 0: nobody's, there is nothing in it. */
static enum maq_status check_form(sqlite3 *db, int *found, const char *path, struct maq_diag *diag)
{
    const struct maq_span nowhere = {0};
    int64_t application, form, tables;
    int rc = number(db, "PRAGMA application_id", &application);
    rc = rc == SQLITE_OK ? number(db, "PRAGMA user_version", &form) : rc;
    rc = rc == SQLITE_OK ? number(db, "SELECT count(*) FROM sqlite_schema", &tables) : rc;
    if (rc != SQLITE_OK)
        return maq__store_fail(db, rc, path, diag);
    *found = 0;
    if (application == 0 && form == 0 && tables == 0)
        return MAQ_OK;
    if (application != MAQ_STORE_APPLICATION)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_KERNELS_FORM, nowhere, "name a file of its own",
                             "%s is another program's database", path);
    if (form < 1 || form > MAQ_STORE_FORM)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_KERNELS_FORM, nowhere,
                             form > MAQ_STORE_FORM ? "use that version, or another file"
                                                   : "measure into a new file with this version",
                             "%s has form %lld of measured kernels; this version of maquette reads forms 1 to %d", path,
                             (long long)form, MAQ_STORE_FORM);
    *found = (int)form;
    return MAQ_OK;
}

/* SQLite notices damage only where it reads: look at every page once. */
static enum maq_status check_sound(sqlite3 *db, const char *path, struct maq_diag *diag)
{
    sqlite3_stmt *s;
    int rc = sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &s, NULL);
    if (rc != SQLITE_OK)
        return maq__store_fail(db, rc, path, diag);
    rc = sqlite3_step(s);
    const char *found = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(s, 0) : NULL;
    enum maq_status status = MAQ_OK;
    if (rc != SQLITE_ROW)
        status = maq__store_fail(db, rc, path, diag);
    else if (!found || strcmp(found, "ok") != 0)
        status = maq__store_fail(NULL, SQLITE_CORRUPT, path, diag);
    sqlite3_finalize(s);
    return status;
}

enum maq_status maq__store_connect(sqlite3 **out, int *form, const char *path, int flags, struct maq_diag *diag)
{
    char *plain = sqlite3_mprintf("%s%s", path[0] == ':' ? "./" : "", path); /* ":memory:" is a file like any other */
    sqlite3 *db = NULL;
    int rc = plain && *path ? sqlite3_open_v2(plain, &db, flags | SQLITE_OPEN_NOMUTEX, NULL) : SQLITE_CANTOPEN;
    sqlite3_free(plain);
    enum maq_status status = MAQ_OK;
    if (rc != SQLITE_OK) {
        status = maq__store_fail(db, rc, *path ? path : "a file without a name", diag);
    } else {
        sqlite3_busy_timeout(db, WAIT_MS);
        rc = maq__store_exec(db, "BEGIN"); /* one state of the file, while another program may be creating its tables */
        status = rc == SQLITE_OK ? check_form(db, form, path, diag) : maq__store_fail(db, rc, path, diag);
        (void)maq__store_exec(db, "END");
        if (status == MAQ_OK && *form > 0)
            status = check_sound(db, path, diag);
    }
    if (status != MAQ_OK) {
        sqlite3_close(db);
        return status;
    }
    *out = db;
    return MAQ_OK;
}

/* The tables of this form, from nothing or from an earlier one. */
static enum maq_status bring_up(sqlite3 *db, const char *path, struct maq_diag *diag)
{
    int form = 0;
    int rc = maq__store_exec(db, "BEGIN IMMEDIATE");
    if (rc != SQLITE_OK)
        return maq__store_fail(db, rc, path, diag);
    enum maq_status status = check_form(db, &form, path, diag); /* another program may have been faster */
    if (status == MAQ_OK && form < MAQ_STORE_FORM &&
        (rc = maq__store_exec(db, form == 0 ? schema : from_form_1)) != SQLITE_OK)
        status = maq__store_fail(db, rc, path, diag);
    if (status == MAQ_OK && (rc = maq__store_exec(db, "COMMIT")) != SQLITE_OK)
        status = maq__store_fail(db, rc, path, diag);
    if (status != MAQ_OK)
        (void)maq__store_exec(db, "ROLLBACK");
    return status;
}

/* --- writing -------------------------------------------------------------------------------------------------- */

struct maq_kernel_store {
    sqlite3 *db;
    char *path;
    sqlite3_stmt *add_machine, *find_machine, *put_op, *put_coll;
};

static const char add_machine[] =
    "INSERT OR IGNORE INTO machine (device, gpu, driver, cuda, cublas, cudnn, nccl) VALUES (?, ?, ?, ?, ?, ?, ?)";
static const char find_machine[] = "SELECT id FROM machine WHERE device = ? AND gpu = ? AND driver = ? AND cuda = ?"
                                   " AND cublas = ? AND cudnn = ? AND nccl = ?";
static const char put_op[] =
    "INSERT OR REPLACE INTO operator (machine, kind, dtype, flags, queries, d0, d1, d2, d3, d4, d5, mode, cache,"
    " kernel, n, median_s, min_s, p90_s, stddev_s, sm_clock_hz, memory_clock_hz, power_w, temperature_c, created,"
    " repetitions) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";
static const char put_coll[] =
    "INSERT OR REPLACE INTO collective (machine, kind, bytes, ranks, per_node, mode, cache, kernel, n, median_s, min_s,"
    " p90_s, stddev_s, sm_clock_hz, memory_clock_hz, power_w, temperature_c, created, repetitions)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)";

enum maq_status maq_kernel_store_open(struct maq_kernel_store **out, const char *path, struct maq_diag *diag)
{
    struct maq_kernel_store *s = calloc(1, sizeof *s);
    int form = 0;
    if (!s || !(s->path = strdup(path))) {
        free(s);
        return maq__store_fail(NULL, SQLITE_NOMEM, path, diag);
    }
    enum maq_status status = maq__store_connect(&s->db, &form, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, diag);
    if (status == MAQ_OK && form < MAQ_STORE_FORM)
        status = bring_up(s->db, path, diag);
    if (status == MAQ_OK) {
        int rc = sqlite3_prepare_v2(s->db, add_machine, -1, &s->add_machine, NULL);
        rc = rc == SQLITE_OK ? sqlite3_prepare_v2(s->db, find_machine, -1, &s->find_machine, NULL) : rc;
        rc = rc == SQLITE_OK ? sqlite3_prepare_v2(s->db, put_op, -1, &s->put_op, NULL) : rc;
        rc = rc == SQLITE_OK ? sqlite3_prepare_v2(s->db, put_coll, -1, &s->put_coll, NULL) : rc;
        if (rc != SQLITE_OK)
            status = maq__store_fail(s->db, rc, path, diag);
    }
    if (status != MAQ_OK) {
        maq_kernel_store_close(s);
        return status;
    }
    *out = s;
    return MAQ_OK;
}

void maq_kernel_store_close(struct maq_kernel_store *store)
{
    if (!store)
        return;
    sqlite3_finalize(store->add_machine);
    sqlite3_finalize(store->find_machine);
    sqlite3_finalize(store->put_op);
    sqlite3_finalize(store->put_coll);
    sqlite3_close(store->db);
    free(store->path);
    free(store);
}

/* Values bound from the left; the first failure is kept. */
struct binding {
    sqlite3_stmt *stmt;
    int at, rc;
};

static void bind_text(struct binding *b, const char *text)
{
    if (b->rc == SQLITE_OK)
        b->rc = sqlite3_bind_text(b->stmt, ++b->at, text ? text : "", -1, SQLITE_TRANSIENT);
}

static void bind_int(struct binding *b, int64_t value)
{
    if (b->rc == SQLITE_OK)
        b->rc = sqlite3_bind_int64(b->stmt, ++b->at, value);
}

static void bind_real(struct binding *b, double value)
{
    if (b->rc == SQLITE_OK)
        b->rc = sqlite3_bind_double(b->stmt, ++b->at, value);
}

static void bind_known(struct binding *b, double value) /* 0 = not known */
{
    if (value > 0)
        bind_real(b, value);
    else if (b->rc == SQLITE_OK)
        b->rc = sqlite3_bind_null(b->stmt, ++b->at);
}

/* Doubles, the least significant byte first; NULL where there are none. */
static void bind_reals(struct binding *b, const double *value, uint32_t n)
{
    b->at++;
    if (b->rc != SQLITE_OK || !value) /* what is not bound is NULL */
        return;
    unsigned char *bytes = malloc((size_t)n * 8);
    if (!bytes) {
        b->rc = SQLITE_NOMEM;
        return;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &value[i], sizeof bits);
        for (int k = 0; k < 8; k++)
            bytes[8 * i + (size_t)k] = (unsigned char)(bits >> 8 * k);
    }
    b->rc = sqlite3_bind_blob64(b->stmt, b->at, bytes, (sqlite3_uint64)n * 8, free);
}

/* Runs to the end; *id gets the first column of a row. The statement is ready for the next use. */
static int finish(struct binding *b, int64_t *id)
{
    int rc = b->rc;
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(b->stmt);
        if (rc == SQLITE_ROW && id)
            *id = sqlite3_column_int64(b->stmt, 0);
    }
    (void)sqlite3_reset(b->stmt);
    (void)sqlite3_clear_bindings(b->stmt);
    return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

static int machine_id(struct maq_kernel_store *s, const struct maq_kernel_machine *at, int64_t *id)
{
    sqlite3_stmt *const order[] = {s->add_machine, s->find_machine};
    int rc = SQLITE_OK;
    for (size_t i = 0; i < MAQ_COUNT(order) && rc == SQLITE_OK; i++) {
        struct binding b = {order[i], 0, SQLITE_OK};
        const char *const texts[] = {at->device, at->gpu, at->driver, at->cuda, at->cublas, at->cudnn, at->nccl};
        for (size_t t = 0; t < MAQ_COUNT(texts); t++)
            bind_text(&b, texts[t]);
        rc = finish(&b, id);
    }
    return rc;
}

static void bind_key(struct binding *b, const struct maq_kernel_row *row)
{
    char flags[MAQ_OP_FLAGS_SIZE];
    if (row->is_coll) {
        const struct maq_coll c = maq_coll_canonical(&row->coll);
        bind_text(b, maq_coll_kind_name((enum maq_coll_kind)c.kind));
        bind_real(b, c.bytes);
        bind_int(b, c.at.size);
        bind_int(b, c.at.per_node);
        return;
    }
    const struct maq_op op = maq_op_canonical(&row->op);
    bind_text(b, maq_op_kind_name((enum maq_op_kind)op.kind));
    bind_text(b, maq_dtype_name((enum maq_dtype)op.dtype));
    bind_text(b, maq_op_flags_text(flags, &op));
    bind_int(b, op.queries);
    for (int i = 0; i < 6; i++)
        bind_int(b, op.d[i]);
}

static int put(struct maq_kernel_store *s, const struct maq_kernel_row *row)
{
    int64_t machine = 0;
    int rc = machine_id(s, &row->at, &machine);
    struct binding b = {row->is_coll ? s->put_coll : s->put_op, 0, rc};
    bind_int(&b, machine);
    bind_key(&b, row);
    bind_text(&b, maq_kernel_mode_name((enum maq_kernel_mode)row->mode));
    bind_text(&b, row->warm ? "warm" : "cold");
    bind_text(&b, row->kernel);
    bind_int(&b, row->times.n);
    bind_real(&b, row->times.median_s);
    bind_real(&b, row->times.min_s);
    bind_real(&b, row->times.p90_s);
    bind_real(&b, row->times.stddev_s);
    bind_known(&b, row->state.sm_hz);
    bind_known(&b, row->state.memory_hz);
    bind_known(&b, row->state.power_w);
    bind_known(&b, row->state.celsius);
    bind_text(&b, row->created);
    bind_reals(&b, row->times.repetition, row->times.n);
    return finish(&b, NULL);
}

enum maq_status maq_kernel_store_put_all(struct maq_kernel_store *store, const struct maq_kernel_row *rows, size_t n,
                                         struct maq_diag *diag)
{
    for (size_t i = 0; i < n; i++) {
        const char *fault = maq_kernel_fault(&rows[i]);
        if (fault)
            return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_KERNELS_ROW, (struct maq_span){0}, NULL,
                                 "a measurement is not written to %s: %s", store->path, fault);
    }
    int rc = maq__store_exec(store->db, "BEGIN IMMEDIATE");
    if (rc != SQLITE_OK)
        return maq__store_fail(store->db, rc, store->path, diag);
    for (size_t i = 0; i < n && rc == SQLITE_OK; i++)
        rc = put(store, &rows[i]);
    rc = rc == SQLITE_OK ? maq__store_exec(store->db, "COMMIT") : rc;
    if (rc == SQLITE_OK)
        return MAQ_OK;
    enum maq_status status = maq__store_fail(store->db, rc, store->path, diag);
    (void)maq__store_exec(store->db, "ROLLBACK");
    return status;
}

enum maq_status maq_kernel_store_put(struct maq_kernel_store *store, const struct maq_kernel_row *row,
                                     struct maq_diag *diag)
{
    return maq_kernel_store_put_all(store, row, 1, diag);
}
