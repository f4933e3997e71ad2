/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_jit_kernel.c - kernels whose PTX lies in a cache beside their binaries: which text is whose, what the record says, what is kept from
 * launch to launch, and which memory is still known.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/cuda/jit_kernel.h"
#include "shim_card.h"

int cudaMalloc(void **p, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);

enum { H2D = 1, BLOCKS = 4, MMA_FLOP = 2 * 16 * 8 * 16 };

/* As many products as a word says, then a number that is written. */
static const char products[] =
    ".version 9.0\n.target sm_90a\n.visible .entry loop(\n .param .u64 loop_param_0,\n .param .u64 loop_param_1,\n"
    " .param .u32 loop_param_2\n)\n{\n"
    "ld.param.b64 %rd1, [loop_param_0];\n ld.param.b64 %rd2, [loop_param_1];\n ld.param.b32 %r9, [loop_param_2];\n"
    "ld.global.b32 {%r1}, [%rd1];\n mov.b32 %r3, 0;\n"
    "$L__BB0_1:\n mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%r30,%r31},{%r4},{%r5},{%r30};\n"
    "add.s32 %r3, %r3, 1;\n setp.lt.s32 %p1, %r3, %r1;\n @%p1 bra $L__BB0_1;\n"
    "mov.u32 %r6, %ctaid.x;\n mul.wide.u32 %rd3, %r6, 4;\n add.s64 %rd4, %rd2, %rd3;\n"
    "st.global.b32 [%rd4], {%r30};\n ret;\n}\n";
/* The same name, and it does nothing. */
static const char nothing[] =
    ".visible .entry loop(\n .param .u64 loop_param_0,\n .param .u64 loop_param_1,\n .param .u32 loop_param_2\n)\n"
    "{\nld.param.b64 %rd1, [loop_param_0];\n st.global.b32 [%rd1], 1;\n ret;\n}\n";

static unsigned char binary[2][96];
static void *lengths, *output;

static void write_file(const char *folder, const char *name, const void *data, size_t bytes)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", shim_path(folder), name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(data, 1, bytes, f), bytes);
    fclose(f);
}

static void remove_files(void)
{
    static const char *const folder[] = {"HASHA", "HASHB"}, *const name[] = {"loop.cubin", "loop.ptx"};
    char path[256];
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "%s/%s", shim_path(folder[i]), name[k]);
            unlink(path);
        }
        rmdir(shim_path(folder[i]));
    }
}

static int set_up(void **state)
{
    (void)state;
    shim_card("");
    for (unsigned i = 0; i < 2; i++)
        memset(binary[i], (int)(17 + i), sizeof binary[i]);
    assert_int_equal(mkdir(shim_path("HASHA"), 0700), 0);
    assert_int_equal(mkdir(shim_path("HASHB"), 0700), 0);
    write_file("HASHA", "loop.cubin", binary[0], sizeof binary[0]);
    write_file("HASHA", "loop.ptx", nothing, strlen(nothing));
    write_file("HASHB", "loop.cubin", binary[1], sizeof binary[1]);
    write_file("HASHB", "loop.ptx", products, strlen(products));
    setenv("TRITON_CACHE_DIR", shim_folder, 1);
    assert_int_equal(cudaMalloc(&lengths, 4096), 0);
    assert_int_equal(cudaMalloc(&output, 4096), 0);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    remove_files();
    shim_done();
    return 0;
}

static struct vg_image image[2];
static struct vg_param parameters[] = {{0, 8}, {8, 8}, {16, 4}};

/* Kernels are never freed. */
static struct vg_kernel *kernel_of(unsigned which)
{
    static struct vg_kernel all[16];
    static unsigned n;
    image[which] = (struct vg_image){.data = binary[which], .bytes = sizeof binary[which], .read = true};
    assert_true(n < sizeof all / sizeof *all);
    all[n] = (struct vg_kernel){.magic = VG_KERNEL_MAGIC,
                                .name = (char *)(uintptr_t) "loop",
                                .image = &image[which],
                                .jit = vg_jit_new(),
                                .code = {.n_params = 3, .param = parameters, .found = true}};
    return &all[n++];
}

/* The record of a launch that counts the length at `from`. */
static struct maq_rec_op launch(const struct vg_kernel *kernel, void *from, int32_t number)
{
    void *args[] = {&from, &output, &number};
    const struct vg_launch l = {.kernel = kernel, .grid = {BLOCKS, 1, 1}, .block = {32, 1, 1}, .args = args};
    struct maq_rec_op op = {.kind = MAQ_REC_KERNEL, .type = MAQ_REC_TYPE_OTHER};
    vg_lock();
    const struct vg_jit_work *work = vg_jit_look(&l);
    vg_jit_writes(work, &l);
    vg_jit_apply(&op, work);
    vg_unlock();
    return op;
}

static void say(void *at, int32_t length)
{
    assert_int_equal(cudaMemcpy(at, &length, sizeof length, H2D), 0);
}

static void test_the_text_of_the_same_binary(void **state)
{
    (void)state;
    struct vg_kernel *loop = kernel_of(1), *other = kernel_of(0), *unknown = kernel_of(0);
    unsigned char unlike[sizeof binary[0]] = {0};
    say(lengths, 5);
    const struct maq_rec_op op = launch(loop, lengths, 1), empty = launch(other, lengths, 1);
    assert_int_equal(op.kind, MAQ_REC_WORK);
    assert_int_equal(op.type, MAQ_REC_BF16);
    assert_int_equal(op.d[0], BLOCKS * 5 * MMA_FLOP);
    assert_int_equal(op.d[1], 4); /* all blocks ask for the same word */
    assert_int_equal(op.d[2], BLOCKS * 4);
    assert_int_equal(op.d[3], op.d[0] / 2 / (BLOCKS * 4 / 2));
    assert_int_equal(op.d[4], 0);
    assert_int_equal(empty.kind, MAQ_REC_WORK);
    assert_int_equal(empty.d[0], 0);
    unknown->image->data = unlike;
    assert_int_equal(launch(unknown, lengths, 1).kind, MAQ_REC_KERNEL);
}

/* A kernel may have a longer name than its function, after which the files are called. */
static void test_the_text_of_the_same_function(void **state)
{
    (void)state;
    struct vg_kernel *loop = kernel_of(1), *unlike = kernel_of(1);
    char text[sizeof products + 64];
    snprintf(text, sizeof text, "%.*s_NNT%s", (int)(strstr(products, "loop(") + 4 - products), products,
             strstr(products, "loop(") + 4);
    write_file("HASHB", "loop.ptx", text, strlen(text));
    say(lengths, 5);
    loop->name = (char *)(uintptr_t) "loop_NNT";
    unlike->name = (char *)(uintptr_t) "lop_NNT";
    assert_int_equal(launch(loop, lengths, 1).d[0], BLOCKS * 5 * MMA_FLOP);
    assert_int_equal(launch(unlike, lengths, 1).kind, MAQ_REC_KERNEL);
    write_file("HASHB", "loop.ptx", products, strlen(products));
}

static void test_what_memory_says_counts_each_time(void **state)
{
    (void)state;
    struct vg_kernel *loop = kernel_of(1);
    char *second = (char *)lengths + 1024;
    say(lengths, 3);
    say(second, 8);
    assert_int_equal(launch(loop, lengths, 1).d[0], BLOCKS * 3 * MMA_FLOP);
    assert_int_equal(launch(loop, second, 1).d[0], BLOCKS * 8 * MMA_FLOP);
    assert_int_equal(launch(loop, lengths, 1).d[0], BLOCKS * 3 * MMA_FLOP);
    say(lengths, 4);
    assert_int_equal(launch(loop, lengths, 1).d[0], BLOCKS * 4 * MMA_FLOP);
    vg_mem_written(lengths, 4); /* nobody knows it: the loop is left at once */
    assert_int_equal(launch(loop, lengths, 1).d[0], BLOCKS * MMA_FLOP);
    say(lengths, 6);
    assert_int_equal(launch(loop, lengths, 1).d[0], BLOCKS * 6 * MMA_FLOP);
    for (int32_t n = 1; n < 700; n++) { /* more than are kept */
        say(lengths, n);
        assert_int_equal(launch(loop, lengths, n).d[0], BLOCKS * n * MMA_FLOP);
    }
}

static void test_only_what_is_written_is_forgotten(void **state)
{
    (void)state;
    struct vg_kernel *loop = kernel_of(1);
    say(lengths, 2);
    say(output, 77);
    say((char *)output + 2048, 78);
    launch(loop, lengths, 9);
    assert_true(vg_mem_true(lengths, 4));
    assert_false(vg_mem_true(output, 4));
    assert_true(vg_mem_true((char *)output + 2048, 4));
}

/* Blocks whose outputs lie 512 bytes apart: what they write reaches farther than it is long. */
static void test_rows_that_lie_apart(void **state)
{
    (void)state;
    struct vg_kernel *loop = kernel_of(1);
    char text[sizeof products + 64], *at = text;
    const char *stride = strstr(products, "%r6, 4;");
    at += snprintf(at, sizeof text, "%.*s%%r6, 512;%s", (int)(stride - products), products, stride + strlen("%r6, 4;"));
    write_file("HASHB", "loop.ptx", text, (size_t)(at - text));
    say(lengths, 2);
    for (unsigned i = 0; i < BLOCKS; i++)
        say((char *)output + 512 * i, 77);
    assert_int_equal(launch(loop, lengths, 1).d[2], 4 * BLOCKS);
    for (unsigned i = 0; i < BLOCKS; i++)
        assert_false(vg_mem_true((char *)output + 512 * i, 4));
    write_file("HASHB", "loop.ptx", products, strlen(products));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_text_of_the_same_binary),
        cmocka_unit_test(test_the_text_of_the_same_function),
        cmocka_unit_test(test_what_memory_says_counts_each_time),
        cmocka_unit_test(test_only_what_is_written_is_forgotten),
        cmocka_unit_test(test_rows_that_lie_apart),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
