/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_value_rules.c - whole numbers that steer a program: what a rule says is what the host reads, of kernels of its name and nothing else; and
 * a loop over what nobody says is told so.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "shim/cuda/oracle.h"
#include "shim/cuda/value_rules.h"
#include "shim_card.h"

int cudaMalloc(void **p, size_t bytes);
int cudaMallocHost(void **p, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);

enum { PARAMS = 8, ROWS = 3 };
static char *memory; /* 128 KiB of the device */
static int32_t *pinned;

/* A kernel with pointers, and one number behind them. */
static void launch(const char *name, void *const *pointer, unsigned n, unsigned blocks)
{
    static const int32_t number = 40;
    struct vg_param param[PARAMS];
    void *args[PARAMS];
    for (unsigned k = 0; k < n; k++) {
        param[k] = (struct vg_param){8 * k, 8};
        args[k] = (void *)(uintptr_t)&pointer[k];
    }
    param[n] = (struct vg_param){8 * n, 4};
    args[n] = (void *)(uintptr_t)&number;
    struct vg_kernel kernel = {.magic = VG_KERNEL_MAGIC, .name = (char *)(uintptr_t)name};
    kernel.code = (struct vg_code){.n_params = n + 1, .param = param, .found = true};
    struct vg_launch l = {.kernel = &kernel, .grid = {blocks, 1, 1}, .block = {32, 1, 1}, .args = args};
    vg_lock();
    (void)vg_launch_record(&l);
    vg_unlock();
}

static void give(void *to, const void *from, size_t bytes)
{
    assert_int_equal(cudaMemcpy(to, from, bytes, VG_COPY_H2D), VG_OK);
}

static int32_t read_i32(const void *from)
{
    int32_t got = -1;
    assert_int_equal(cudaMemcpy(&got, from, sizeof got, VG_COPY_D2H), VG_OK);
    return got;
}

static void rule(const char *line)
{
    const char *why = "";
    if (!vg_rule_take(line, &why))
        fail_msg("%s: %s", line, why);
}

/* One number that an expression gives, at the first row. */
static int32_t worth(const char *expression)
{
    static unsigned kernels;
    static char name[64][32]; /* a name is never freed */
    static const int32_t four[4] = {10, 20, 30, -7};
    static const int64_t wide[2] = {3, 1};
    char line[256];
    void *pointer[3] = {memory, memory + 4096, memory + 8192};
    (void)snprintf(name[kernels], sizeof name[0], "worth_%02u_kernel", kernels);
    (void)snprintf(line, sizeof line, "kernel %s 1 i32 a0[0] = %s", name[kernels], expression);
    rule(line);
    give(memory + 4096, four, sizeof four);
    give(memory + 8192, wide, sizeof wide);
    launch(name[kernels++], pointer, 3, 5);
    return read_i32(memory);
}

static void test_expressions(void **state)
{
    static const struct {
        const char *text;
        int32_t want;
    } cases[] = {
        {"1+2*3", 7},
        {"(1 + 2) * 3", 9},
        {"7-2-1", 4},
        {"-7/2", -3},
        {"-7 % 3", -1},
        {"9 / -1", -9},
        {"gx * 100 + gy", 501},
        {"a3", 40},
        {"a1.i32[2]", 30},
        {"a1.i32[a2.i64[0]]", -7},
        {"a1.i32[a2.i64[1]] - a1.i32[0]", 10},
        {"1 < 2 && 2 <= 2 && 3 > 2 && 2 >= 2", 1},
        {"1 == 2 || 1 != 1", 0},
        {"0 ? 1 : 2 ? 3 : 4", 3},
        {"a3 == 40 ? 5 : 1 / 0", 5}, /* what is not chosen is not looked at */
        {"0x10 + i", 16},
    };
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++)
        if (worth(cases[c].text) != cases[c].want)
            fail_msg("%s: not %d", cases[c].text, cases[c].want);
    (void)state;
}

/* What has no value leaves what is there: what the last expression above left in the same place. */
static void test_no_value(void **state)
{
    static const char *const cases[] = {"1 / 0", "1 % (a3 - 40)", "a1.i32[-1]", "a1.i32[1000000]", "a9", "a3.i32[0]"};
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++)
        assert_int_equal(worth(cases[c]), 16);
    (void)state;
}

static void test_refused(void **state)
{
    static const char deep[] = "kernel k 1 i32 a0[0] = "
                               "((((((((((((((((((((((((((((((((((((((((1))))))))))))))))))))))))))))))))))))))))";
    static const char *const cases[] = {
        "kernel",
        "kernel k 1",
        "kernel k 1 f32 a0[0] = 1",
        "kernel k/x 1 i32 a0[0] = 1",
        "kernel k/0 1 i32 a0[0] = 1",
        "kernel k 1 i32 a0 = 1",
        "kernel k 1 i32 b0[0] = 1",
        "kernel k 1 i32 a0[0 = 1",
        "kernel k 1 i32 a0[0]=1",
        "kernel k 1 i32 a0[0] = ",
        "kernel k 1 i32 a0[0] = 1 +",
        "kernel k 1 i32 a0[0] = 1 2",
        "kernel k 1 i32 a0[0] = (1",
        "kernel k 1 i32 a0[0] = 1 ? 2",
        "kernel k gq i32 a0[0] = 1",
        "kernel k 1 i32 a0[0] = a1.i16[0]",
        deep,
    };
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        const char *why = NULL;
        if (vg_rule_take(cases[c], &why) || why == NULL)
            fail_msg("taken: %s", cases[c]);
    }
    (void)state;
}

/* The kernels of vLLM that count, with what their arguments mean there: rows of requests 2, 0 and 5, the last in the middle of its prompt. */
static void test_engine(void **state)
{
    static const int64_t request[ROWS] = {2, 0, 5};
    static const int32_t begin[ROWS + 1] = {0, 8, 9, 25}, computed[6] = {30, 0, 0, 0, 0, 16};
    static const int32_t want[2][ROWS] = {{8, 31, 32}, {9, 32, 48}};
    char *pos = memory + 16384, *lens = pos + 4096, *rows = lens + 4096, *begins = rows + 4096, *done = begins + 4096;
    char *sampled = done + 4096, *rejected = sampled + 4096, *other = rejected + 4096;
    void *length[5] = {pos, lens, rows, begins, done};
    void *count[6] = {sampled, rejected, lens, other, rows, pinned};
    give(rows, request, sizeof request);
    give(done, computed, sizeof computed);
    pinned[0] = 20, pinned[2] = 8, pinned[5] = 40; /* tokens to prefill, in memory of the host that the device sees */
    for (unsigned turn = 0; turn < 2; turn++) {
        int32_t step[ROWS + 1] = {0, 1, 2, 18};
        give(begins, turn == 0 ? begin : step, sizeof begin);
        launch("_prepare_pos_seq_lens_kernel", length, 5, ROWS + 1);
        launch("some_kernel_that_reads", length, 5, ROWS + 1); /* and may have written there, for all that is known */
        launch("_get_num_sampled_and_rejected_kernel", count, 6, ROWS);
        for (unsigned row = 0; row < ROWS; row++) {
            assert_int_equal(read_i32(lens + 4 * row), want[turn][row]);
            assert_int_equal(read_i32(sampled + 4 * row), want[turn][row] >= pinned[request[row]]);
            assert_int_equal(read_i32(rejected + 4 * row), 0);
        }
        void *update[3] = {rows, done, begins};
        launch("_post_update_num_computed_tokens_kernel", update, 3, ROWS);
        for (unsigned row = 0; row < ROWS; row++)
            assert_int_equal(read_i32(done + 4 * request[row]), want[turn][row]);
    }
    assert_int_equal(read_i32(other), 0); /* nobody has said it */
    (void)state;
}

/* The file of values has rules, too; what is wrong with one is said with its place. */
static void test_file(void **state)
{
    static const int32_t none = 0;
    char said[512] = "";
    void *pointer[1] = {memory + 512};
    int pipes[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(pipes), 0);
    dup2(pipes[1], STDERR_FILENO);
    vg_values_load();
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(pipes[1]);
    assert_true(read(pipes[0], said, sizeof said - 1) > 0);
    close(pipes[0]);
    assert_non_null(strstr(said, "values:2: this rule is passed over: the value is no expression"));
    assert_null(strstr(said, "values:3"));
    give(memory + 512, &none, sizeof none);
    launch("xx_of_the_file_kernel", pointer, 1, 2);
    assert_int_equal(read_i32(memory + 512), 40);
    assert_int_equal(read_i32(memory + 516), 41);
    launch("another_kernel", pointer, 1, 2);
    give(memory + 512, &none, sizeof none); /* the host's word goes before a rule's */
    assert_int_equal(read_i32(memory + 512), 0);
    (void)state;
}

static void test_loop(void **state)
{
    char said[1024] = "";
    int pipes[2], kept = dup(STDERR_FILENO);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(fcntl(pipes[0], F_SETFL, O_NONBLOCK), 0);
    dup2(pipes[1], STDERR_FILENO);
    for (unsigned turn = 0; turn < 1500; turn++) { /* another address each time, as an allocator may give */
        char *count = memory + 98304 + 512 * (turn % 7);
        void *pointer[1] = {count}, *apart[1] = {memory + 120000};
        launch("count_kernel", pointer, 1, 1);
        launch("apart_kernel", apart, 1, 1);
        if (read_i32(count) != 0)
            break;
        if (turn == 1000 && read(pipes[0], said, sizeof said - 1) > 0)
            break;
    }
    dup2(kept, STDERR_FILENO);
    close(kept);
    close(pipes[1]);
    assert_string_equal(said, "");
    assert_true(read(pipes[0], said, sizeof said - 1) > 0);
    close(pipes[0]);
    assert_non_null(strstr(said, "has read 4 bytes behind the kernel apart_kernel 1024 times"));
    assert_non_null(strstr(said, "a pointer to them had: count_kernel."));
    assert_null(strchr(strchr(said, '\n') + 1, '\n')); /* once */
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_file),     cmocka_unit_test(test_expressions),
                                       cmocka_unit_test(test_no_value), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_engine),   cmocka_unit_test(test_loop)};
    shim_card_of_values("# rules\nkernel k 1 i32 a0[0] = 1 +\nkernel of_the_file 2 i32 a0[i] = 40 + i # both\n");
    if (cudaMalloc((void **)&memory, 131072) != VG_OK || cudaMallocHost((void **)&pinned, 4096) != VG_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shim_done();
    return failed;
}
