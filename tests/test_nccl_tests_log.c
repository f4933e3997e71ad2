/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_nccl_tests_log.c - logs of nccl-tests: the same as the table that says the same, under any launcher, with dirt in them.
 *
 * Logs are written here in the form of version 2.19.6; the figures are invented.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/validate.h"
#include "spec/foreign_file.h"
#include "validate/collectives/nccl_tests_log.h"

/* How a log is written: by whom, and how old. */
struct form {
    const char *before; /* what a launcher writes in front of each line */
    bool old;           /* no version, no name of the test, no Group, short bus addresses */
};

static const struct form forms[] = {{"", false}, {"[1,0]<stdout>:", false}, {"0: ", false}, {"", true}};

static void write_head(struct maq_buf *b, const struct form *f, const char *program, uint32_t nodes, uint32_t per_node,
                       const char *gpu)
{
    if (f->old) {
        maq_buf_addf(b, "+ mpirun -np %u ./build/%s -b 8 -e 8G -f 2\n", nodes * per_node, program);
    } else {
        maq_buf_addf(b, "%s# nccl-tests version 2.19.6 nccl-headers=22807 nccl-library=22807\n", f->before);
        maq_buf_addf(b, "%s# Collective test starting: %s\n", f->before, program);
    }
    maq_buf_addf(b, "%s# nThread 1 nGpus 1 minBytes 8 maxBytes 8589934592 step: 2(factor) warmup iters: 1 iters: 20\n",
                 f->before);
    maq_buf_addf(b, "%s#\n%s# Using devices\n", f->before, f->before);
    for (uint32_t r = 0; r < nodes * per_node; r++)
        if (f->old)
            maq_buf_addf(b, "%s#   Rank %2u Pid %6u on     node%u device %2u [0x%02x] %s\n", f->before, r, 900 + r,
                         r / per_node, r % per_node, r % per_node, gpu);
        else
            maq_buf_addf(b, "%s#  Rank %2u Group  0 Pid %6u on     node%u device %2u [0000:%02x:00] %s\n", f->before, r,
                         900 + r, r / per_node, r % per_node, r % per_node, gpu);
    maq_buf_addf(b, "%s#\n%s#                                            out-of-place               in-place\n",
                 f->before, f->before);
    maq_buf_addf(
        b,
        "%s#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw"
        "   busbw #wrong\n",
        f->before);
    maq_buf_addf(b, "%s#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n", f->before);
}

static void write_row(struct maq_buf *b, const struct form *f, uint64_t bytes, uint64_t count, const char *redop,
                      double us)
{
    maq_buf_addf(
        b, "%s%12llu  %12llu     float  %6s      -1  %7.2f    1.00    1.00      0  %7.2f    1.00    1.00    N/A\n",
        f->before, (unsigned long long)bytes, (unsigned long long)count, redop, us, us + 1);
}

static void write_tail(struct maq_buf *b, const struct form *f)
{
    maq_buf_addf(b, "%s# Out of bounds values : 0 OK\n%s# Avg bus bandwidth    : 41.9 \n%s#\n", f->before, f->before,
                 f->before);
}

static struct maq_validate_coll_result *compare(const char *text, const struct maq_validate_opts *opts)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_validate_coll_result *r = NULL;
    if (maq_validate_collectives_text(&r, "t", maq_str_of(text), opts, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

static void assert_same(const struct maq_validate_coll_row *a, const struct maq_validate_coll_row *b)
{
    assert_string_equal(a->why, b->why);
    assert_string_equal(a->collective, b->collective);
    assert_string_equal(a->gpu, b->gpu);
    assert_true(a->devices == b->devices && a->devices_per_node == b->devices_per_node && a->bytes == b->bytes);
    assert_true(a->measured_s == b->measured_s && a->predicted_s == b->predicted_s && a->far == b->far);
}

/* Two tests in one log, the first on a node and the second on two. */
static void test_same_as_table(void **state)
{
    (void)state;
    struct maq_validate_coll_result *table = compare("source,gpu,num_gpus,gpus_per_node,collective,size_bytes,time_us\n"
                                                     "t,NVIDIA H100 80GB HBM3,8,8,all_reduce,8,13.67\n"
                                                     "t,NVIDIA H100 80GB HBM3,8,8,all_reduce,1048576,25.40\n"
                                                     "t,NVIDIA H100 80GB HBM3,16,8,all_gather,1073741824,2790.00\n",
                                                     NULL);
    for (size_t i = 0; i < MAQ_COUNT(forms); i++) {
        const struct form *f = &forms[i];
        struct maq_buf b;
        maq_buf_init(&b, 1u << 20);
        maq_buf_addf(&b, "Warning: Permanently added 'node1' to the list of known hosts.\n");
        write_head(&b, f, "all_reduce_perf", 1, 8, "NVIDIA H100 80GB HBM3");
        write_row(&b, f, 8, 2, "sum", 13.67);
        maq_buf_addf(&b, "node1:900:915 [0] NCCL INFO Channel 00/24 : 0 1 2 3\n");
        write_row(&b, f, 1048576, 262144, "sum", 25.4);
        write_tail(&b, f);
        write_head(&b, f, "all_gather_perf", 2, 8, "NVIDIA H100 80GB HBM3");
        write_row(&b, f, 1073741824, 16777216, "none", 2790);
        write_tail(&b, f);
        assert_true(!b.failed && maq_nccl_tests_log_is((struct maq_str){b.ptr, b.len}));
        struct maq_validate_coll_result *log = compare(b.ptr, NULL);
        assert_int_equal(log->n_rows, table->n_rows);
        for (uint32_t r = 0; r < log->n_rows; r++) {
            assert_string_equal(log->rows[r].why, "");
            assert_same(&log->rows[r], &table->rows[r]);
            assert_true(log->rows[r].line > (r > 0 ? log->rows[r - 1].line : 15));
        }
        maq_validate_coll_free(log);
        maq_buf_fini(&b);
    }
    maq_validate_coll_free(table);
}

/* What is no row is passed over; what was one is left out, counted, and an error of --strict. */
static void test_dirt(void **state)
{
    (void)state;
    struct maq_buf b;
    struct maq_validate_coll_result *r = NULL;
    maq_buf_init(&b, 1u << 20);
    write_head(&b, &forms[0], "all_reduce_perf", 1, 8, "NVIDIA H100 80GB HBM3");
    write_row(&b, &forms[0], 1048576, 262144, "sum", 25.4);
    write_row(&b, &forms[0], 2097152, 524288, "sum", 35.4);
    maq_buf_addf(&b, "     4194304       1048576     float     sum      -1    5\n"); /* breaks off */
    maq_buf_addf(
        &b,
        "     8388608       2097153     float     sum      -1    77.1  1.0  1.0  0\n"); /* a size of other elements */
    maq_buf_addf(&b, "    16777216       4194304     float     sum      -1    nanx  1.0  1.0  0\n");
    maq_buf_addf(
        &b, "    33554432       8388608     float     sum      -1       0  0.0  0.0  0\n"); /* a row, without a time */
    write_row(&b, &forms[0], 67108864, 16777216, "sum", 355.5);
    for (int strict = 0; strict < 2; strict++) {
        struct maq_diag *diag = maq_diag_new();
        maq_diag_set_strict(diag, strict);
        enum maq_status status = maq_validate_collectives_text(&r, "a.log", (struct maq_str){b.ptr, b.len}, NULL, diag);
        char *said = maq_diag_format(diag, 0, false);
        if (strict) {
            assert_int_equal(status, MAQ_BAD_INPUT);
            assert_non_null(strstr(said, "a row that breaks off"));
        } else {
            assert_int_equal(status, MAQ_OK);
            assert_int_equal(r->n_rows, 4);
            assert_string_equal(r->rows[2].why, "not measured");
            assert_non_null(strstr(said, "3 lines left out"));
            maq_validate_coll_free(r);
        }
        free(said);
        maq_diag_free(diag);
    }
    maq_buf_fini(&b);
}

/* One row of a log, whose head is changed by `edit`; what is not compared says why. */
static const char *why_of(const char *text, const struct maq_validate_opts *opts)
{
    static char why[128];
    struct maq_validate_coll_result *r = compare(text, opts);
    assert_int_equal(r->n_rows, 1);
    snprintf(why, sizeof why, "%s", r->rows[0].why);
    maq_validate_coll_free(r);
    return why;
}

#define COLUMNS "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
#define ROW "1048576 262144 float sum -1 25.40 1 1 0 26 1 1 0\n"
#define RANK(n, host, gpu) "#  Rank " #n " Group 0 Pid 1 on " host " device " #n " [0000:07:00] " gpu "\n"

static void test_what_is_missing(void **state)
{
    (void)state;
    const char *h100 = RANK(0, "a", "NVIDIA H100 80GB HBM3") RANK(1, "a", "NVIDIA H100 80GB HBM3");
    char text[2048];
    snprintf(text, sizeof text, "%s" COLUMNS ROW, h100);
    assert_string_equal(why_of(text, NULL), "collective missing or unknown");
    struct maq_validate_opts opts = MAQ_VALIDATE_OPTS_INIT;
    opts.collective = "all_reduce";
    assert_string_equal(why_of(text, &opts), "");
    opts.collective = NULL;
    snprintf(text, sizeof text, "# Collective test starting: hypercube_perf\n%s" COLUMNS ROW, h100);
    assert_string_equal(why_of(text, NULL), "collective missing or unknown");
    assert_string_equal(why_of("all_reduce_perf\n" COLUMNS ROW, NULL), "device missing or unknown");
    opts.cluster = "h100-sxm:8";
    assert_string_equal(why_of("all_reduce_perf\n" COLUMNS ROW, &opts), "number of devices missing");
    snprintf(text, sizeof text, "all_reduce_perf\n%sa:1:2 [0] NCCL INFO Using network Socket\n" COLUMNS ROW, h100);
    assert_string_equal(why_of(text, NULL), ""); /* inside a node nothing goes through them */
    snprintf(text, sizeof text,
             "all_reduce_perf\n" RANK(0, "a", "NVIDIA H200")
                 RANK(1, "b", "NVIDIA H200") "a:1:2 [0] NCCL INFO Using network Socket\n" COLUMNS ROW);
    assert_non_null(strstr(why_of(text, NULL), "TCP sockets"));
    assert_string_equal(
        why_of("all_reduce_perf\n" RANK(0, "a", "NVIDIA H200") RANK(1, "b", "NVIDIA A10") COLUMNS ROW, NULL),
        "device missing or unknown");
    assert_string_equal(
        why_of("all_reduce_perf\n" RANK(
                   0, "a", "NVIDIA H200") "#  Rank 1 Group 1 Pid 1 on a device 1 [0] NVIDIA H200\n" COLUMNS ROW,
               NULL),
        "several groups ran at once");
}

/* The machine that is given counts; ranks that do not fill its nodes are spread over them. */
static void test_given_machine(void **state)
{
    (void)state;
    const char *text = "alltoall_perf\n" RANK(0, "a", "NVIDIA H100 80GB HBM3") RANK(1, "b", "NVIDIA H100 80GB HBM3")
        COLUMNS "1073741824 134217728 float none -1 25400 1 1 0 26 1 1 0\n";
    struct maq_validate_opts opts = MAQ_VALIDATE_OPTS_INIT;
    double times[2];
    static const char *const machines[] = {"h100-sxm:8 x 2, nics 8 x 400G", "h100-sxm:8 x 2, nics 8 x 100G"};
    for (int i = 0; i < 2; i++) {
        opts.cluster = machines[i];
        struct maq_validate_coll_result *r = compare(text, &opts);
        assert_string_equal(r->rows[0].why, "");
        assert_true(r->rows[0].far);
        times[i] = r->rows[0].predicted_s;
        maq_validate_coll_free(r);
    }
    assert_true(times[0] < times[1]);
    opts.cluster = "h100-sxm:2"; /* one node, where the log has two */
    assert_string_equal(why_of(text, &opts), "more devices or nodes than the machine has");
    struct maq_diag *diag = maq_diag_new();
    struct maq_validate_coll_result *r = NULL;
    opts.cluster = "h1000:8";
    assert_int_equal(maq_validate_collectives_text(&r, "t", maq_str_of(text), &opts, diag), MAQ_BAD_INPUT);
    assert_true(maq_diag_count(diag) > 0);
    maq_diag_free(diag);
}

/* A log that ends anywhere, or of which any byte is another, is read or refused. */
static void test_any_end(void **state)
{
    (void)state;
    struct maq_buf b;
    maq_buf_init(&b, 1u << 20);
    write_head(&b, &forms[0], "all_reduce_perf", 1, 2, "NVIDIA H100 80GB HBM3");
    write_row(&b, &forms[0], 8, 2, "sum", 13.67);
    write_row(&b, &forms[0], 16, 4, "sum", 13.67);
    for (size_t i = 0; i < 2 * b.len; i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_arena arena;
        struct maq_csv csv = {0};
        char *copy = malloc(b.len); /* of this size, so that a reader which goes on is found */
        size_t len = i < b.len ? i : b.len;
        assert_non_null(copy);
        memcpy(copy, b.ptr, len);
        if (i >= b.len)
            copy[i - b.len] = (char)(i * 2654435761u >> 24);
        maq_arena_init(&arena, 0);
        (void)maq_nccl_tests_log_read(&csv, "t", (struct maq_str){copy, len}, NULL, &arena, diag);
        assert_true(csv.n_rows <= 3);
        maq_arena_fini(&arena);
        maq_diag_free(diag);
        free(copy);
    }
    maq_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_table), cmocka_unit_test(test_dirt),    cmocka_unit_test(test_what_is_missing),
        cmocka_unit_test(test_given_machine), cmocka_unit_test(test_any_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
