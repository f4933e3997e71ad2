/* SPDX-License-Identifier: Apache-2.0 */
/* test_measured.c - the file of measured kernels, and the first link of the cost chain. maq-test: threads */
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#include "base/alloc.h"
#include "cost/codes.h"
#include "cost/measured/op_key.h"
#include "cost/measured/store.h"
#include "hopper.h"
#include "maquette/train.h"
#include "temp.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static int make_folder(void **state)
{
    return make_temp_folder("measured");
}

static int drop_folder(void **state)
{
    static const char *const names[] = {"a.db",     "new.db",     "race.db",  "text.db", "foreign.db",
                                        "later.db", "damaged.db", "empty.db", "row.db",  "job.db",
                                        "any.db",   "broken.db",  "order.db", "reps.db"};
    return drop_temp_folder(names, COUNT(names));
}

static struct maq_kernel_row gemm(int64_t m, int64_t n, int64_t k, enum maq_dtype dtype, double seconds)
{
    return (struct maq_kernel_row){.at = {"h100-sxm", "NVIDIA H100 80GB HBM3", "550", "12.8", "12.8", "9.8", ""},
                                   .op = {.kind = MAQ_OP_GEMM, .dtype = (uint8_t)dtype, .d = {m, n, k}},
                                   .kernel = "cublasLt",
                                   .times = {100, seconds, 0.9 * seconds, 1.1 * seconds, 0.05 * seconds, NULL},
                                   .created = "2026-01-01T00:00:00Z"};
}

static void write_rows(const char *file, const struct maq_kernel_row *rows, size_t n)
{
    struct maq_kernel_store *store;
    assert_int_equal(maq_kernel_store_open(&store, file, NULL), MAQ_OK);
    assert_int_equal(maq_kernel_store_put_all(store, rows, n, NULL), MAQ_OK);
    maq_kernel_store_close(store);
}

static uint32_t count_rows(const char *file)
{
    struct maq_arena arena;
    struct maq_kernel_rows rows;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_kernel_rows_read(&rows, file, &arena, NULL), MAQ_OK);
    maq_arena_fini(&arena);
    return rows.n;
}

/* --- keys ------------------------------------------------------------------------------------------------------ */

static void test_flags_as_words(void **state)
{
    char text[MAQ_OP_FLAGS_SIZE];
    for (int kind = 1; kind < MAQ_OP_KIND_COUNT; kind++)
        for (unsigned flags = 0; flags < 256; flags++) {
            struct maq_op op = {.kind = (uint16_t)kind, .flags = (uint8_t)flags};
            uint8_t back = 0;
            maq_op_flags_text(text, &op);
            assert_true(maq_op_flags_parse(&back, (enum maq_op_kind)kind, maq_str_of(text)));
            assert_int_equal(back, flags);
        }
    struct maq_op attention = {.kind = MAQ_OP_ATTENTION, .flags = MAQ_OP_FLASH2 | MAQ_OP_CAUSAL};
    assert_string_equal(maq_op_flags_text(text, &attention), "flash2+causal");
    uint8_t none;
    assert_false(maq_op_flags_parse(&none, MAQ_OP_GEMM, maq_str_of("flash2")));
    assert_false(maq_op_flags_parse(&none, MAQ_OP_GEMM, maq_str_of("bias+")));
}

/* A value that may be written in two ways has one key, and the same work. */
static void test_one_spelling(void **state)
{
    const struct maq_op pairs[][2] = {
        {{.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {64, 64, 64, 1}},
         {.kind = MAQ_OP_GEMM, .dtype = MAQ_BF16, .d = {64, 64, 64, 0}}},
        {{.kind = MAQ_OP_GROUPED_GEMM, .dtype = MAQ_BF16, .d = {64, 32, 16, 8, 64}},
         {.kind = MAQ_OP_GROUPED_GEMM, .dtype = MAQ_BF16, .d = {64, 32, 16, 8, 0}}},
        {{.kind = MAQ_OP_SSM_SCAN, .dtype = MAQ_BF16, .d = {4096, 32, 64, 8, 128, 128}},
         {.kind = MAQ_OP_SSM_SCAN, .dtype = MAQ_BF16, .d = {4096, 32, 64, 8, 128, 0}}},
        {{.kind = MAQ_OP_DELTA_RULE, .dtype = MAQ_BF16, .d = {4096, 32, 64, 8, 128, 64}},
         {.kind = MAQ_OP_DELTA_RULE, .dtype = MAQ_BF16, .d = {4096, 32, 64, 8, 128, 0}}},
        {{.kind = MAQ_OP_QUANTIZE, .dtype = MAQ_FP8, .d = {64, 64, 1}},
         {.kind = MAQ_OP_QUANTIZE, .dtype = MAQ_FP8, .d = {64, 64, 0}}},
    };
    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct maq_op a = maq_op_canonical(&pairs[i][0]), b = maq_op_canonical(&pairs[i][1]);
        assert_memory_equal(&a, &b, sizeof a);
        struct maq_work x = maq_op_work(&pairs[i][0]), y = maq_op_work(&pairs[i][1]);
        assert_true(x.matrix_flop == y.matrix_flop && x.vector_flop == y.vector_flop && x.bytes == y.bytes);
    }
}

/* --- the file -------------------------------------------------------------------------------------------------- */

static void test_round_trip(void **state)
{
    char p[128];
    struct maq_kernel_row rows[3] = {gemm(512, 1024, 2048, MAQ_BF16, 1e-5), gemm(512, 1024, 2048, MAQ_FP8, 2e-5),
                                     gemm(512, 1024, 2048, MAQ_BF16, 3e-5)};
    rows[0].op.flags = MAQ_OP_ACCUMULATE | MAQ_OP_BIAS;
    rows[0].state = (struct maq_kernel_state){1.98e9, 2.6e9, 512.5, 61};
    rows[1].mode = MAQ_KERNEL_SUSTAINED;
    rows[1].warm = true;
    rows[2] = (struct maq_kernel_row){.at = rows[0].at,
                                      .is_coll = true,
                                      .coll = {.kind = MAQ_COLL_ALL_GATHER,
                                               .bytes = 1 << 20,
                                               .at = {.size = 8, .per_domain = 8, .domains = 1, .per_node = 8}},
                                      .kernel = "nccl",
                                      .times = {10, 1e-4, 9e-5, 2e-4, 1e-5, NULL},
                                      .created = "2026-01-02T00:00:00Z"};
    write_rows(temp_path(p, "a.db"), rows, 3);
    struct maq_arena arena;
    struct maq_kernel_rows back;
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_kernel_rows_read(&back, p, &arena, NULL), MAQ_OK);
    assert_int_equal(back.n, 3);
    for (uint32_t i = 0; i < 3; i++) { /* sorted by type: bf16 before fp8; collectives last */
        assert_true(maq_kernel_same(&back.at[i], &rows[i]));
        const struct maq_kernel_times *t = &back.at[i].times, *u = &rows[i].times;
        const struct maq_kernel_state *a = &back.at[i].state, *b = &rows[i].state;
        assert_true(t->n == u->n && t->median_s == u->median_s && t->min_s == u->min_s && t->p90_s == u->p90_s &&
                    t->stddev_s == u->stddev_s);
        assert_true(a->sm_hz == b->sm_hz && a->memory_hz == b->memory_hz && a->power_w == b->power_w &&
                    a->celsius == b->celsius);
        assert_string_equal(back.at[i].at.gpu, rows[i].at.gpu);
        assert_string_equal(back.at[i].kernel, rows[i].kernel);
        assert_string_equal(back.at[i].created, rows[i].created);
    }
    maq_arena_fini(&arena);
}

/* The same key and machine again gives way; another driver is another row. */
static void test_again_replaces(void **state)
{
    char p[128];
    struct maq_kernel_row row = gemm(64, 64, 64, MAQ_BF16, 1e-5);
    write_rows(temp_path(p, "new.db"), &row, 1);
    row.times.median_s = 1.05e-5;
    write_rows(p, &row, 1);
    assert_int_equal(count_rows(p), 1);
    row.at.driver = "570";
    write_rows(p, &row, 1);
    assert_int_equal(count_rows(p), 2);
}

static void test_what_cannot_be(void **state)
{
    char p[128];
    struct maq_kernel_store *store;
    struct maq_kernel_row good = gemm(64, 64, 64, MAQ_BF16, 1e-5), bad[7];
    for (size_t i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    bad[0].times.n = 0;
    bad[1].times.median_s = NAN;
    bad[2].times.median_s = -1;
    bad[3].times.p90_s = INFINITY;
    bad[4].times.min_s = 1;
    bad[5].op.d[2] = -64;
    bad[6].is_coll = true;
    bad[6].coll = (struct maq_coll){
        .kind = MAQ_COLL_ALL_REDUCE, .bytes = 1024, .at = {.size = 16, .per_domain = 8, .domains = 2, .per_node = 8}};
    assert_int_equal(maq_kernel_store_open(&store, temp_path(p, "empty.db"), NULL), MAQ_OK);
    for (size_t i = 0; i < COUNT(bad); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_kernel_row pair[2] = {good, bad[i]};
        assert_int_equal(maq_kernel_store_put_all(store, pair, 2, diag), MAQ_BAD_INPUT);
        assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_KERNELS_ROW);
        maq_diag_free(diag);
    }
    maq_kernel_store_close(store);
    assert_int_equal(count_rows(p), 0); /* all or none */
}

static void run_sql(const char *file, const char *sql)
{
    sqlite3 *db;
    assert_int_equal(sqlite3_open(file, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static void put_bytes(const char *file, const char *text, size_t n)
{
    FILE *f = fopen(file, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, n, f), n);
    fclose(f);
}

static size_t get_bytes(char *buf, size_t size, const char *file)
{
    FILE *f = fopen(file, "rb");
    assert_non_null(f);
    size_t n = fread(buf, 1, size, f);
    fclose(f);
    return n;
}

/* Neither reading nor writing accepts the file, and its bytes stay as they are. */
static void refuses(const char *file, enum maq_status status, unsigned code)
{
    static char before[1 << 18], after[1 << 18];
    size_t n = get_bytes(before, sizeof before, file);
    struct maq_kernel_store *store;
    struct maq_measured *measured;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_kernel_store_open(&store, file, diag), status);
    assert_int_equal(maq_measured_open(&measured, file, diag), status);
    assert_int_equal(maq_diag_count(diag), 2);
    for (size_t i = 0; i < 2; i++) {
        struct maq_str msg = maq_diag_at(diag, i)->msg;
        assert_int_equal(maq_diag_at(diag, i)->code, code);
        assert_non_null(memmem(msg.ptr, msg.len, file, strlen(file)));
    }
    maq_diag_free(diag);
    assert_int_equal(get_bytes(after, sizeof after, file), n);
    assert_memory_equal(before, after, n);
}

/* Repetitions come back to the bit; a file of form 1 is read, and becomes one of form 2 when it is written to. */
static void test_kept_repetitions(void **state)
{
    char p[128];
    double times[100];
    struct maq_arena arena;
    struct maq_kernel_rows rows;
    struct maq_kernel_row row = gemm(64, 64, 64, MAQ_BF16, 1e-5), other = gemm(64, 64, 128, MAQ_BF16, 2e-5);
    for (int i = 0; i < 100; i++)
        times[i] = 1e-5 * (1 + 0.1 / (1 + (i * 37) % 100));
    row.times.repetition = times;
    maq_arena_init(&arena, 0);
    write_rows(temp_path(p, "reps.db"), &row, 1);
    assert_int_equal(maq_kernel_repetitions_read(&rows, p, &arena, NULL), MAQ_OK);
    assert_memory_equal(rows.at[0].times.repetition, times, sizeof times);
    assert_int_equal(maq_kernel_rows_read(&rows, p, &arena, NULL), MAQ_OK);
    assert_null(rows.at[0].times.repetition);
    times[7] = NAN; /* no time */
    struct maq_kernel_store *store;
    assert_int_equal(maq_kernel_store_open(&store, p, NULL), MAQ_OK);
    assert_int_equal(maq_kernel_store_put(store, &row, NULL), MAQ_BAD_INPUT);
    maq_kernel_store_close(store);
    run_sql(p, "UPDATE operator SET repetitions = x'0011223344556677'");
    assert_int_equal(maq_kernel_repetitions_read(&rows, p, &arena, NULL), MAQ_BAD_INPUT);
    assert_int_equal(maq_kernel_rows_read(&rows, p, &arena, NULL), MAQ_OK); /* which does not look at them */

    run_sql(p, "ALTER TABLE operator DROP COLUMN repetitions; ALTER TABLE collective DROP COLUMN repetitions;"
               "PRAGMA user_version = 1");
    assert_int_equal(maq_kernel_repetitions_read(&rows, p, &arena, NULL), MAQ_OK);
    assert_true(rows.n == 1 && !rows.at[0].times.repetition);
    times[7] = 1e-5;
    other.times.repetition = times;
    write_rows(p, &other, 1);
    assert_int_equal(maq_kernel_repetitions_read(&rows, p, &arena, NULL), MAQ_OK);
    assert_true(rows.n == 2 && !rows.at[0].times.repetition);
    assert_memory_equal(rows.at[1].times.repetition, times, sizeof times);
    maq_arena_fini(&arena);
}

static void test_files_that_are_not_ours(void **state)
{
    char p[128];
    static char bytes[1 << 18];
    put_bytes(temp_path(p, "text.db"),
              "median_s\n1e-5\nand more than the hundred bytes of a header, so that it is read: "
              "...................................",
              114);
    refuses(p, MAQ_BAD_INPUT, MAQ_CODE_KERNELS_FORM);
    run_sql(temp_path(p, "foreign.db"), "CREATE TABLE pets (name TEXT); INSERT INTO pets VALUES ('Rex')");
    refuses(p, MAQ_BAD_INPUT, MAQ_CODE_KERNELS_FORM);
    struct maq_kernel_row row = gemm(64, 64, 64, MAQ_BF16, 1e-5);
    write_rows(temp_path(p, "later.db"), &row, 1);
    run_sql(p, "PRAGMA user_version = 3");
    refuses(p, MAQ_BAD_INPUT, MAQ_CODE_KERNELS_FORM);
    write_rows(temp_path(p, "damaged.db"), &row, 1);
    size_t n = get_bytes(bytes, sizeof bytes, p);
    assert_true(n > 8192);
    memset(bytes + 4096, 0x5a, n - 4096);
    put_bytes(p, bytes, n);
    refuses(p, MAQ_BAD_INPUT, MAQ_CODE_KERNELS_DAMAGED);
    struct maq_diag *diag = maq_diag_new();
    struct maq_measured *measured;
    assert_int_equal(maq_measured_open(&measured, temp_path(p, "nowhere.db"), diag), MAQ_IO);
    assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_KERNELS_OPEN);
    maq_diag_free(diag);
    assert_int_not_equal(access(p, F_OK), 0); /* asking does not create it */
}

static void test_row_of_an_unknown_kind(void **state)
{
    char p[128];
    struct maq_kernel_row row = gemm(64, 64, 64, MAQ_BF16, 1e-5);
    static const char *const spoils[] = {"kind = 'origami'", "kind = 'gemm', dtype = 'bf15'",
                                         "dtype = 'bf16', flags = 'x'", "flags = '', median_s = 9e99",
                                         "median_s = 1e-5, cache = 'tepid'"};
    write_rows(temp_path(p, "row.db"), &row, 1);
    for (size_t i = 0; i < COUNT(spoils); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_measured *measured;
        char sql[128];
        snprintf(sql, sizeof sql, "UPDATE operator SET %s", spoils[i]);
        run_sql(p, sql);
        assert_int_equal(maq_measured_open(&measured, p, diag), MAQ_BAD_INPUT);
        assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_KERNELS_ROW);
        maq_diag_free(diag);
    }
}

/* Whatever bytes a file has: an answer or a diagnostic. */
static void test_any_damage(void **state)
{
    char p[128], q[128];
    static char sound[1 << 18], bytes[1 << 18];
    struct maq_kernel_row rows[40];
    uint64_t random = 12345;
    uint32_t refused = 0;
    for (int i = 0; i < 40; i++)
        rows[i] = gemm(64 + i, 64, 64, MAQ_BF16, 1e-5);
    write_rows(temp_path(p, "any.db"), rows, 40);
    size_t n = get_bytes(sound, sizeof sound, p);
    temp_path(q, "broken.db");
    for (int round = 0; round < 400; round++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_measured *m = NULL;
        size_t len = n;
        memcpy(bytes, sound, n);
        for (int flips = 0; flips < 1 + round % 16; flips++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            bytes[(random >> 33) % n] = (char)(random >> 20);
        }
        if (round % 10 == 9)
            len = (size_t)((random >> 33) % n);
        put_bytes(q, bytes, len);
        enum maq_status status = maq_measured_open(&m, q, diag);
        assert_int_equal(status == MAQ_OK, maq_diag_errors(diag) == 0);
        refused += status != MAQ_OK;
        if (status == MAQ_OK)
            maq_measured_close(m);
        maq_diag_free(diag);
    }
    assert_in_range(refused, 50, 399);
}

/* --- concurrency ------------------------------------------------------------------------------------------------ */

#define WRITERS 4
#define EACH 5
#define ROUNDS 5

static void *write_many(void *arg)
{
    char p[128];
    struct maq_kernel_store *store;
    int64_t writer = (int64_t)(intptr_t)arg; /* from 1; what comes back is NULL or the writer that failed */
    if (maq_kernel_store_open(&store, temp_path(p, "race.db"), NULL) != MAQ_OK)
        return arg;
    for (int64_t i = 0; i < EACH; i++) {
        struct maq_kernel_row row = gemm(64 * writer, 64 * (i + 1), 64, MAQ_BF16, 1e-5);
        if (maq_kernel_store_put(store, &row, NULL) != MAQ_OK)
            return arg;
    }
    maq_kernel_store_close(store);
    return NULL;
}

/* Writers that start together on a file that is not there yet lose nothing. */
static void test_writers_at_once(void **state)
{
    char p[128];
    pthread_t threads[WRITERS];
    temp_path(p, "race.db");
    for (int round = 0; round < ROUNDS; round++) {
        unlink(p);
        for (intptr_t i = 0; i < WRITERS; i++)
            assert_int_equal(pthread_create(&threads[i], NULL, write_many, (void *)(i + 1)), 0);
        for (int i = 0; i < WRITERS; i++) {
            void *failed;
            pthread_join(threads[i], &failed);
            assert_null(failed);
        }
        assert_int_equal(count_rows(p), WRITERS * EACH);
    }
}

/* --- the chain -------------------------------------------------------------------------------------------------- */

static void test_chain(void **state)
{
    char p[128];
    struct maq_kernel_row row = gemm(512, 1024, 2048, MAQ_BF16, 1e-5);
    struct maq_measured *m;
    write_rows(temp_path(p, "order.db"), &row, 1);
    assert_int_equal(maq_measured_open(&m, p, NULL), MAQ_OK);
    const struct maq_device h100 = hopper_named("h100-sxm"), h200 = hopper_named("h200");
    struct maq_costs chain = {.measured = m};
    struct maq_cost cost = maq_cost_op(&chain, &row.op, &h100);
    assert_int_equal(cost.provider, MAQ_PROVIDER_MEASURED);
    assert_true(cost.seconds == 1e-5);
    /* spread of the mean, another's repetition, and a burst's clocks */
    assert_float_equal(cost.error, sqrt(0.005 * 0.005 + 0.02 * 0.02 + 0.1 * 0.1), 1e-6);
    chain.burst = true;
    assert_float_equal(maq_cost_op(&chain, &row.op, &h100).error, sqrt(0.005 * 0.005 + 0.02 * 0.02), 1e-6);
    chain.burst = false;

    struct maq_op batch = row.op, other = row.op, bias = row.op, queries = row.op;
    batch.d[3] = 1; /* the same operator in another spelling */
    assert_int_equal(maq_cost_op(&chain, &batch, &h100).provider, MAQ_PROVIDER_MEASURED);
    other.dtype = MAQ_FP8;
    bias.flags = MAQ_OP_BIAS;
    queries.d[2] = 2049;
    const struct maq_op *misses[] = {&other, &bias, &queries};
    for (size_t i = 0; i < COUNT(misses); i++)
        assert_int_not_equal(maq_cost_op(&chain, misses[i], &h100).provider, MAQ_PROVIDER_MEASURED);
    assert_int_not_equal(maq_cost_op(&chain, &row.op, &h200).provider, MAQ_PROVIDER_MEASURED);
    chain.best = MAQ_PROVIDER_FITTED;
    assert_int_not_equal(maq_cost_op(&chain, &row.op, &h100).provider, MAQ_PROVIDER_MEASURED);
    chain.best = MAQ_PROVIDER_MEASURED;
    assert_int_equal(maq_cost_op(&chain, &row.op, &h100).provider, MAQ_PROVIDER_MEASURED);
    chain.kernel = "another"; /* of the same library */
    assert_int_not_equal(maq_cost_op(&chain, &row.op, &h100).provider, MAQ_PROVIDER_MEASURED);
    chain.kernel = NULL;
    chain.library = MAQ_LIBRARY_VLLM;
    assert_int_not_equal(maq_cost_op(&chain, &row.op, &h100).provider, MAQ_PROVIDER_MEASURED);
    assert_int_equal(maq_measured_count(m, "h100-sxm"), 1);
    assert_int_equal(maq_measured_count(m, "h200"), 0);
    assert_int_equal(maq_measured_count(m, NULL), 1);
    maq_measured_close(m);
}

/* Of several measurements the one made under the nearest conditions answers, and of equal ones the newest. */
static void test_nearest_conditions(void **state)
{
    char p[128];
    static const double seconds[5] = {1e-5, 2e-5, 3e-5, 4e-5, 5e-5};
    struct maq_kernel_row rows[5];
    for (int i = 0; i < 5; i++)
        rows[i] = gemm(512, 1024, 2048, MAQ_BF16, seconds[i]);
    rows[1].warm = true;                 /* burst warm */
    rows[2].mode = MAQ_KERNEL_SUSTAINED; /* sustained cold */
    rows[3].mode = MAQ_KERNEL_SUSTAINED; /* another driver's, newer */
    rows[3].at.driver = "570";
    rows[3].created = "2026-02-01T00:00:00Z";
    rows[4].at.driver = "570"; /* burst cold, newer */
    rows[4].created = "2026-02-01T00:00:00Z";
    struct maq_device d = hopper_named("h100-sxm");
    static const struct {
        size_t n;
        double step, loop;
    } cases[] = {{1, 1e-5, 1e-5}, {2, 1e-5, 2e-5}, {3, 3e-5, 2e-5}, {4, 4e-5, 2e-5}, {5, 4e-5, 2e-5}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct maq_measured *m;
        unlink(temp_path(p, "order.db"));
        write_rows(p, rows, cases[i].n);
        assert_int_equal(maq_measured_open(&m, p, NULL), MAQ_OK);
        struct maq_costs step = {.measured = m}, loop = {.measured = m, .burst = true};
        assert_true(maq_cost_op(&step, &rows[0].op, &d).seconds == cases[i].step);
        assert_true(maq_cost_op(&loop, &rows[0].op, &d).seconds == cases[i].loop);
        maq_measured_close(m);
    }
}

/* --- no memory --------------------------------------------------------------------------------------------------- */

static int64_t until_refusal; /* allocations that are still granted; < 0: all */

static bool gate(size_t bytes)
{
    return until_refusal < 0 || until_refusal-- > 0;
}

/* The n-th allocation fails, for every n: an error that is told, and nothing else. */
/* A burst of a matrix kernel is held back by the power limit in a step of training; a sustained time is one already. */
static void test_bursts_in_training(void **state)
{
    (void)state;
    char p[128];
    struct maq_kernel_row rows[] = {gemm(8192, 8192, 8192, MAQ_BF16, 1.5e-3), gemm(4096, 8192, 8192, MAQ_BF16, 0.8e-3)};
    rows[1].mode = MAQ_KERNEL_SUSTAINED;
    unlink(temp_path(p, "row.db"));
    write_rows(p, rows, 2);
    struct maq_measured *m;
    assert_int_equal(maq_measured_open(&m, p, NULL), MAQ_OK);
    struct maq_costs step = {.measured = m}, loop = {.measured = m, .burst = true};
    const struct maq_device h100 = hopper_named("h100-sxm");
    double factor = maq_cost_op(&step, &rows[0].op, &h100).seconds / 1.5e-3;
    assert_true(factor > 1.1 && factor < 1.5);
    assert_true(maq_cost_op(&loop, &rows[0].op, &h100).seconds == 1.5e-3);
    assert_true(maq_cost_op(&step, &rows[1].op, &h100).seconds == 0.8e-3);
    maq_measured_close(m);
}

static void test_no_memory(void **state)
{
    char p[128];
    struct maq_kernel_row rows[300];
    struct maq_measured *m;
    enum maq_status status = MAQ_NO_MEMORY;
    uint32_t refused = 0;
    for (int i = 0; i < 300; i++)
        rows[i] = gemm(64 + i, 64, 64, MAQ_BF16, 1e-5);
    write_rows(temp_path(p, "any.db"), rows, 300);
    for (int64_t n = 0; status == MAQ_NO_MEMORY; n++) {
        struct maq_diag *diag = maq_diag_new();
        until_refusal = n;
        maq__set_alloc_gate(gate);
        status = maq_measured_open(&m, p, diag);
        maq__set_alloc_gate(NULL);
        assert_true(status == MAQ_OK || status == MAQ_NO_MEMORY);
        refused += status == MAQ_NO_MEMORY;
        maq_diag_free(diag);
    }
    assert_true(refused > 2);
    maq_measured_close(m);
}

/* --- a job ------------------------------------------------------------------------------------------------------ */

static struct maq_loaded_job *job_with(const char *file, const char *provider, const char *device)
{
    char cluster[64];
    struct maq_loaded_job *box;
    snprintf(cluster, sizeof cluster, "%s:8", device);
    const struct maq_override o[] = {{"--model", "model", "llama-3.1-8b"},
                                     {"--cluster", "cluster", cluster},
                                     {"--tp", "plan.tp", "2"},
                                     {"--measured", "cost.measured", file},
                                     {"--cost", "cost.provider", provider}};
    assert_int_equal(maq_job_load(&box, NULL, o, COUNT(o), NULL), MAQ_OK);
    return box;
}

static struct maq_train_measured ask(const char *file, const char *provider, const char *device, double *share)
{
    struct maq_loaded_job *box = job_with(file, provider, device);
    struct maq_train_result *r;
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
    struct maq_train_measured m = r->measured;
    *share = r->provider_share[MAQ_PROVIDER_MEASURED];
    maq_train_result_free(r);
    maq_job_free(box);
    return m;
}

static void test_job(void **state)
{
    char p[128];
    double share;
    struct maq_kernel_row row = gemm(8192, 14336, 4096, MAQ_BF16, 1e-3);
    row.op = (struct maq_op){.kind = MAQ_OP_OPTIMIZER, .dtype = MAQ_FP32, .d = {1, 1, 1}};
    write_rows(temp_path(p, "job.db"), &row, 1);
    struct maq_train_measured m = ask(p, "measured", "h100-sxm", &share);
    assert_true(m.asked && m.held == 1 && m.others == 0 && m.hits == 0 && m.items > 10);
    assert_true(share == 0);
    m = ask(p, "measured", "h200", &share);
    assert_true(m.asked && m.held == 0 && m.others == 1 && m.hits == 0);
    m = ask(p, "analytical", "h100-sxm", &share);
    assert_true(!m.asked && m.held == 0 && share == 0);
    for (int provider = MAQ_PROVIDER_ANALYTICAL; provider < MAQ_PROVIDER_COUNT;
         provider++) { /* plan's words, cost's numbers */
        struct maq_loaded_job *box = job_with(p, maq_provider_name((enum maq_provider)provider), "h100-sxm");
        assert_int_equal(maq_job_get(box)->cost_provider, provider);
        maq_job_free(box);
    }
    struct maq_loaded_job *box = job_with("/tmp/no-such-folder/k.db", "measured", "h100-sxm");
    struct maq_train_result *r;
    struct maq_train_graph graph;
    struct maq_train_sweep *sweep;
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_IO);
    assert_int_equal(maq_train_graph(&graph, maq_job_get(box), NULL), MAQ_IO);
    assert_int_equal(maq_train_sweep_new(&sweep, maq_job_get(box), NULL), MAQ_IO);
    maq_job_free(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flags_as_words),
        cmocka_unit_test(test_one_spelling),
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_again_replaces),
        cmocka_unit_test(test_what_cannot_be),
        cmocka_unit_test(test_kept_repetitions),
        cmocka_unit_test(test_files_that_are_not_ours),
        cmocka_unit_test(test_row_of_an_unknown_kind),
        cmocka_unit_test(test_any_damage),
        cmocka_unit_test(test_writers_at_once),
        cmocka_unit_test(test_chain),
        cmocka_unit_test(test_nearest_conditions),
        cmocka_unit_test(test_bursts_in_training),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_job),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
