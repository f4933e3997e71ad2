/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_ptx.c - what launches do by their PTX: whole numbers as the ISA has them, sums of products and bytes in closed form, and texts that are
 * broken.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/ptx/instruction.h"
#include "shim/record.h"

enum { PARAMS = 8, TEXT = 1 << 14 };
#define HEAD ".version 9.0\n.target sm_90a\n.address_size 64\n.visible .entry "

/* --- whole numbers ---------------------------------------------------------------------------------------------------------- */

/* The result of one instruction on three registers. */
static uint64_t one(const char *instruction, uint64_t a, uint64_t b, uint64_t c)
{
    char text[512];
    snprintf(text, sizeof text, HEAD "k()\n{\n.reg .b64 %%r<9>;\n%s;\nret;\n}\n", instruction);
    struct vg_ptx *code = vg_ptx_read(text, strlen(text), "k");
    const uint64_t in[VG_PTX_INPUTS] = {a, b, c, 0};
    uint64_t out = 0;
    assert_non_null(code);
    assert_int_equal(code->n, 2);
    assert_true(vg_ptx_compute(&out, &code->at[0], in));
    vg_ptx_free(code);
    return out;
}

static void test_whole_numbers(void **state)
{
    (void)state;
    const uint64_t minus = (uint64_t)-7;
    static const struct {
        const char *text;
        uint64_t a, b, c, is;
    } cases[] = {
        {"add.s32 %r0, %r1, %r2", UINT32_MAX, 2, 0, 1},
        {"sub.s64 %r0, %r1, %r2", 3, 5, 0, (uint64_t)-2},
        {"mul.lo.s32 %r0, %r1, %r2", 0x10001, 0x10001, 0, 0x20001},
        {"mul.wide.s32 %r0, %r1, %r2", (uint32_t)-3, 5, 0, (uint64_t)-15},
        {"mul.wide.u32 %r0, %r1, %r2", (uint32_t)-3, 5, 0, 5 * (uint64_t)(uint32_t)-3},
        {"mul.hi.s32 %r0, %r1, %r2", (uint32_t)-1, 3, 0, UINT32_MAX},
        {"mul.hi.u32 %r0, %r1, %r2", (uint32_t)-1, 3, 0, 2},
        {"mul.hi.u64 %r0, %r1, %r2", UINT64_MAX, UINT64_MAX, 0, UINT64_MAX - 1},
        {"mul.hi.s64 %r0, %r1, %r2", UINT64_MAX, 5, 0, UINT64_MAX},
        {"mad.lo.s32 %r0, %r1, %r2, %r3", 7, 6, 5, 47},
        {"mad.wide.s32 %r0, %r1, %r2, %r3", (uint32_t)-2, 4, 100, 92},
        {"div.s32 %r0, %r1, %r2", (uint32_t)-7, 2, 0, (uint32_t)-3},
        {"div.s32 %r0, %r1, %r2", 0x80000000u, (uint32_t)-1, 0, 0x80000000u},
        {"rem.s32 %r0, %r1, %r2", (uint32_t)-7, 2, 0, UINT32_MAX},
        {"div.u64 %r0, %r1, %r2", UINT64_MAX, 16, 0, UINT64_MAX / 16},
        {"min.s32 %r0, %r1, %r2", (uint32_t)-7, 2, 0, (uint32_t)-7},
        {"min.u32 %r0, %r1, %r2", (uint32_t)-7, 2, 0, 2},
        {"max.s64 %r0, %r1, %r2", (uint64_t)-7, 2, 0, 2},
        {"and.b32 %r0, %r1, %r2", 12, 10, 0, 8},
        {"xor.b32 %r0, %r1, %r2", 12, 10, 0, 6},
        {"not.b16 %r0, %r1", 1, 0, 0, 0xfffe},
        {"neg.s32 %r0, %r1", 7, 0, 0, (uint32_t)-7},
        {"abs.s32 %r0, %r1", (uint32_t)-7, 0, 0, 7},
        {"shl.b32 %r0, %r1, %r2", 3, 31, 0, 0x80000000u},
        {"shl.b32 %r0, %r1, %r2", 3, 40, 0, 0},
        {"shr.s32 %r0, %r1, %r2", (uint32_t)-7, 1, 0, (uint32_t)-4},
        {"shr.s32 %r0, %r1, %r2", (uint32_t)-7, 99, 0, UINT32_MAX},
        {"shr.u32 %r0, %r1, %r2", (uint32_t)-7, 1, 0, 0x7ffffffc},
        {"bfe.u32 %r0, %r1, %r2, %r3", 0xabcd, 4, 8, 0xbc},
        {"bfe.s32 %r0, %r1, %r2, %r3", 0xabcd, 8, 8, 0xffffffabu},
        {"bfe.s32 %r0, %r1, %r2, %r3", 1u << 23, 23, 1, UINT32_MAX},
        {"popc.b32 %r0, %r1", 0xf0f, 0, 0, 8},
        {"clz.b32 %r0, %r1", 0xf0f, 0, 0, 20},
        {"cvt.s64.s32 %r0, %r1", (uint32_t)-7, 0, 0, (uint64_t)-7},
        {"cvt.u64.u32 %r0, %r1", (uint32_t)-7, 0, 0, (uint32_t)-7},
        {"cvt.u32.u64 %r0, %r1", 0x1234567890, 0, 0, 0x34567890},
        {"cvt.s32.s8 %r0, %r1", 0xff, 0, 0, UINT32_MAX},
        {"setp.lt.s32 %r0, %r1, %r2", (uint32_t)-7, 2, 0, 1},
        {"setp.lt.u32 %r0, %r1, %r2", (uint32_t)-7, 2, 0, 0},
        {"setp.ge.and.s32 %r0, %r1, %r2, %r3", 2, 2, 0, 0},
        {"setp.ge.or.s32 %r0, %r1, %r2, %r3", 1, 2, 1, 1},
        {"selp.b32 %r0, %r1, %r2, %r3", 5, 6, 1, 5},
        {"selp.f32 %r0, %r1, %r2, %r3", 5, 6, 0, 6},
        {"mov.pred %r0, %r1", (uint64_t)-1, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const uint64_t got = one(cases[i].text, cases[i].a, cases[i].b, cases[i].c);
        if (got != cases[i].is)
            fail_msg("%s: %llx, not %llx", cases[i].text, (unsigned long long)got, (unsigned long long)cases[i].is);
    }
    assert_int_equal(one("shr.s64 %r0, %r1, %r2", minus, 1, 0), (uint64_t)-4);
}

/* --- launches --------------------------------------------------------------------------------------------------------------- */

/* Memory of the device: words from 0x9000 on. */
static uint32_t words[16];

static bool word(void *user, uint64_t address, uint32_t bytes, uint64_t *out)
{
    (void)user;
    if (bytes != 4 || address < 0x9000 || address - 0x9000 >= sizeof words)
        return false;
    *out = words[(address - 0x9000) / 4];
    return true;
}

static struct vg_ptx_work work(const char *text, const uint64_t *argument, uint32_t gx, uint32_t gy, uint32_t threads)
{
    struct vg_ptx *code = vg_ptx_read(text, strlen(text), "k");
    struct vg_ptx_work out;
    const void *param[PARAMS];
    uint32_t bytes[PARAMS];
    assert_non_null(code);
    assert_true(vg_ptx_params(code) <= PARAMS);
    for (uint32_t i = 0; i < vg_ptx_params(code); i++) {
        param[i] = &argument[i];
        bytes[i] = sizeof *argument;
    }
    const struct vg_ptx_launch launch = {
        .grid = {gx, gy, 1}, .block = {threads, 1, 1}, .param = param, .param_bytes = bytes, .word = word};
    assert_true(vg_ptx_work(&out, code, &launch));
    vg_ptx_free(code);
    return out;
}

/* Four numbers of a thread, n of them in all: thread t of block b has the numbers from 4 (128 b + t) on. */
#define INDEX                                                                                                          \
    "ld.param.b64 %rd1, [k_param_0];\n ld.param.b64 %rd2, [k_param_1];\n ld.param.b32 %r1, [k_param_2];\n"             \
    "mov.u32 %r2, %ctaid.x;\n mov.u32 %r3, %tid.x;\n shl.b32 %r4, %r2, 9;\n shl.b32 %r5, %r3, 2;\n"                    \
    "or.b32 %r6, %r4, %r5;\n setp.lt.s32 %p1, %r6, %r1;\n mul.wide.s32 %rd3, %r6, 4;\n"
#define PARAMS_OF_COPY                                                                                                 \
    "k(\n .param .u64 .ptr .global .align 1 k_param_0,\n .param .u64 .ptr .global .align 1 k_param_1,\n"               \
    " .param .u32 k_param_2\n)\n.reqntid 128\n{\n.reg .pred %p<9>;\n"

static void test_copies_each_number_once(void **state)
{
    (void)state;
    static const char text[] = HEAD PARAMS_OF_COPY INDEX
        " add.s64 %rd4, %rd1, %rd3; // where it reads\n"
        "// begin inline asm\n mov.u32 %r7, 0x0;\n @%p1 ld.global.v4.b32 { %r7, %r8, %r9, %r10 }, [ %rd4 + 0 ];\n"
        "// end inline asm\n add.s64 %rd5, %rd2, %rd3;\n"
        "@%p1 st.global.v4.b32 [ %rd5 + 0 ], { %r7, %r8, %r9, %r10 };\n ret;\n}\n";
    for (uint32_t blocks = 1; blocks < 300; blocks = 2 * blocks + 1) {
        const uint64_t n = (uint64_t)512 * blocks, argument[] = {1 << 20, 1 << 30, n};
        const struct vg_ptx_work w = work(text, argument, blocks, 1, 128);
        assert_true(w.read == 4.0 * (double)n && w.written == 4.0 * (double)n && w.flop == 0 && !w.steered);
        assert_int_equal(w.type, MAQ_REC_TYPE_OTHER);
    }
    const uint64_t argument[] = {1 << 20, 1 << 30, 512 + 256}; /* half of the second block's warps have nothing to do */
    assert_true(work(text, argument, 2, 1, 128).read == 4.0 * 768);
}

/* Every block reads the same row beside its own, in steps of 512 numbers. */
static void test_what_blocks_share_is_read_once(void **state)
{
    (void)state;
    static const char text[] = HEAD PARAMS_OF_COPY
        "ld.param.b64 %rd1, [k_param_0];\n ld.param.b64 %rd2, [k_param_1];\n ld.param.b32 %r1, [k_param_2];\n"
        "mov.u32 %r2, %ctaid.x;\n mov.u32 %r3, %tid.x;\n shl.b32 %r4, %r3, 2;\n mul.lo.s32 %r5, %r2, %r1;\n"
        "$L__BB0_1:\n add.s32 %r6, %r5, %r4;\n mad.wide.s32 %rd3, %r6, 4, %rd1;\n mad.wide.s32 %rd4, %r4, 4, %rd2;\n"
        "ld.global.v4.b32 {%r7, %r8, %r9, %r10}, [%rd3];\n ld.global.v4.b32 {%r11, %r12, %r13, %r14}, [%rd4];\n"
        "add.s32 %r4, %r4, 512;\n setp.lt.s32 %p1, %r4, %r1;\n @%p1 bra $L__BB0_1;\n"
        "setp.eq.s32 %p2, %r3, 0;\n mad.wide.s32 %rd5, %r2, 4, %rd1;\n @%p2 st.global.b32 [%rd5+16777216], {%r7};\n "
        "ret;\n}\n";
    const uint64_t argument[] = {1 << 20, 1 << 30, 4096};
    for (uint32_t rows = 2; rows <= 20000; rows *= 10) {
        const struct vg_ptx_work w = work(text, argument, rows, 1, 128);
        assert_true(w.read == 4.0 * 4096 * (rows + 1.0)); /* the row of all, once */
        assert_true(w.written == 4.0 * rows);
    }
}

/* A product of 64 x 64 tiles: of 128 threads each warp does a quarter, 16 deep at a time. */
static void product_text(char text[TEXT], const char *product)
{
    snprintf(
        text, TEXT,
        HEAD
        "k(\n .param .u64 k_param_0,\n .param .u64 k_param_1,\n .param .u64 k_param_2,\n .param .u32 k_param_3\n)\n{\n"
        "ld.param.b64 %%rd1, [k_param_0];\n ld.param.b64 %%rd2, [k_param_1];\n ld.param.b64 %%rd3, [k_param_2];\n"
        "ld.param.b32 %%r1, [k_param_3];\n mov.u32 %%r2, %%ctaid.x;\n mov.u32 %%r3, %%ctaid.y;\n mov.u32 %%r4, "
        "%%tid.x;\n"
        "mov.b32 %%r5, 0;\n"
        "/* a tile of each matrix, 64 x 16 numbers of 16 bits: 16 bytes a thread */\n"
        "$L__BB0_1:\n mul.lo.s32 %%r6, %%r2, %%r1;\n shl.b32 %%r6, %%r6, 6;\n shl.b32 %%r7, %%r5, 6;\n shl.b32 %%r8, "
        "%%r4, 3;\n"
        "add.s32 %%r6, %%r6, %%r7;\n add.s32 %%r6, %%r6, %%r8;\n mad.wide.s32 %%rd4, %%r6, 2, %%rd1;\n"
        "mul.lo.s32 %%r9, %%r3, %%r1;\n shl.b32 %%r9, %%r9, 6;\n add.s32 %%r9, %%r9, %%r7;\n add.s32 %%r9, %%r9, "
        "%%r8;\n"
        "mad.wide.s32 %%rd5, %%r9, 2, %%rd2;\n mov.b32 %%r20, 16;\n"
        "cp.async.cg.shared.global [ %%r10 + 0 ], [ %%rd4 + 0 ], 0x10, %%r20;\n"
        "cp.async.cg.shared.global [ %%r11 + 0 ], [ %%rd5 + 0 ], 0x10, %%r20;\n cp.async.wait_group 0;\n bar.sync 0;\n"
        "%s\n"
        "add.s32 %%r5, %%r5, 16;\n setp.lt.s32 %%p1, %%r5, %%r1;\n @%%p1 bra $L__BB0_1;\n"
        "/* 32 numbers of the output each */\n mov.u32 %%r12, %%nctaid.x;\n mad.lo.s32 %%r13, %%r3, %%r12, %%r2;\n"
        "shl.b32 %%r13, %%r13, 12;\n shl.b32 %%r14, %%r4, 5;\n add.s32 %%r13, %%r13, %%r14;\n"
        "mad.wide.s32 %%rd6, %%r13, 2, %%rd3;\n st.global.v8.b64 [%%rd6], {%%r30, %%r31, %%r32, %%r33, %%r34, %%r35, "
        "%%r36, %%r37};\n ret;\n}\n",
        product);
}

static void test_products_by_each_instruction(void **state)
{
    (void)state;
    static const char warps[] =
        "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 { %r30, %r31, %r32, %r33 }, { %r40, %r41, %r42, %r43 }, "
        "{ %r44, %r45 }, { %r30, %r31, %r32, %r33 };\n";
    static const char group[] =
        "wgmma.mma_async.sync.aligned.m64n64k16.f32.e4m3.e4m3 {%r30,%r31}, %rd7, %rd8, 1, 1, 1;";
    /* rows 64, columns 64, in the descriptor; one thread starts it */
    static const char tensor[] = "setp.eq.s32 %p2, %r4, 0;\n mov.b32 %r50, 68157440;\n"
                                 "@%p2 tcgen05.mma.cta_group::1.kind::f16 [ %r60 + 0 ], %rd7, %rd8, %r50, %p3;";
    char text[TEXT], eight[2048] = "";
    for (unsigned i = 0; i < 8; i++)
        strcat(eight, warps);
    static const struct {
        int which;
        enum maq_rec_type type;
    } kinds[] = {{0, MAQ_REC_BF16}, {1, MAQ_REC_F8E4M3}, {2, MAQ_REC_BF16}};
    const uint64_t argument[] = {1ull << 32, 1ull << 33, 1ull << 34, 512};
    for (unsigned k = 0; k < 3; k++) {
        product_text(text, kinds[k].which == 0 ? eight : kinds[k].which == 1 ? group : tensor);
        for (uint32_t side = 2; side <= 64; side *= 2) {
            const struct vg_ptx_work w = work(text, argument, side, side / 2, 128);
            const double m = 64.0 * side, n = 32.0 * side, depth = 512;
            assert_true(w.flop == 2 * m * n * depth);
            assert_int_equal(w.type, kinds[k].type);
            assert_true(w.written == 2 * m * n);
            const double once = 2 * depth * (m + n);
            assert_true(side * side / 2 <= 1024 ? w.read == once : w.read > 0.8 * once && w.read < 1.25 * once);
        }
    }
}

/* A loop as long as a word in memory says; where nobody knows it, half of what it can be. */
static void test_lengths_in_memory(void **state)
{
    (void)state;
    static const char text[] = HEAD
        "k(\n .param .u64 k_param_0,\n .param .u64 k_param_1\n)\n{\n ld.param.b64 %rd1, [k_param_0];\n"
        "ld.global.b32 { %r1 }, [ %rd1 + 8 ];\n min.s32 %r2, %r1, 64;\n mov.b32 %r3, 0;\n"
        "$L__BB0_1:\n mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r30,%r31,%r32,%r33},{%r4},{%r5},{%r30};\n"
        "add.s32 %r3, %r3, 1;\n setp.lt.s32 %p1, %r3, %r2;\n @%p1 bra $L__BB0_1;\n ret;\n}\n";
    uint64_t argument[] = {0x9000, 0};
    words[2] = 11;
    struct vg_ptx_work w = work(text, argument, 3, 1, 32);
    assert_true(w.steered && w.flop == 3.0 * 11 * 4096);
    words[2] = 100;
    assert_true(work(text, argument, 3, 1, 32).flop == 3.0 * 64 * 4096);
    argument[0] = 0x8000; /* nobody knows */
    w = work(text, argument, 3, 1, 32);
    assert_true(!w.steered && w.flop == 3.0 * 32 * 4096);
}

/* An assertion on data, a wait for data, and a loop until some data come: the walk goes on, and ends. */
static void test_branches_on_data(void **state)
{
    (void)state;
    static const char text[] = HEAD
        "k(\n .param .u64 k_param_0\n)\n{\n ld.param.b64 %rd1, [k_param_0];\n ld.global.b32 %r1, [%rd1];\n setp.lt.s32 "
        "%p1, %r1, 7;\n"
        "@%p1 bra $L__BB0_2;\n { // callseq 0\n .param .b64 param0;\n st.param.b64 [param0], 1;\n call.uni "
        "__assertfail, (param0);\n }\n trap;\n"
        "$L__BB0_2:\n { .reg .pred complete;\n waitLoop:\n mbarrier.try_wait.parity.shared.b64 complete, [%r2], 0;\n"
        "@!complete bra.uni waitLoop;\n }\n"
        "$L__BB0_3:\n atom.global.gpu.acquire.cas.b32 %r3, [%rd1 + 4], 0, 1;\n setp.ne.s32 %p2, %r3, 0;\n @%p2 bra "
        "$L__BB0_4;\n bra $L__BB0_3;\n"
        "$L__BB0_4:\n st.global.b32 [%rd1 + 8], 1;\n ret;\n}\n";
    const uint64_t argument[] = {0x8000};
    const struct vg_ptx_work w = work(text, argument, 1, 1, 1);
    assert_true(w.written == 4 + 4 && w.read == 4 + 4);
}

/* A loop in which inline assembly waits, twice, at labels of one name. */
static void test_labels_of_a_scope(void **state)
{
    (void)state;
    static const char wait[] =
        "{\n .reg .pred done;\n waitLoop:\n mbarrier.try_wait.parity.shared.b64 done, [%r2], 0;\n"
        " @!done bra.uni waitLoop;\n }\n";
    char text[TEXT];
    snprintf(text, sizeof text,
             HEAD "k()\n{\n mov.b32 %%r3, 0;\n$L__BB0_1:\n %s mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                  "{%%r30},{%%r4},{%%r5},{%%r30};\n"
                  "%s add.s32 %%r3, %%r3, 1;\n setp.lt.s32 %%p1, %%r3, 64;\n @%%p1 bra $L__BB0_1;\n %s ret;\n}\n",
             wait, wait, wait);
    assert_true(work(text, NULL, 1, 1, 32).flop == 64.0 * 4096);
}

/* --- texts that are broken -------------------------------------------------------------------------------------------------- */

static void test_anything_is_read(void **state)
{
    (void)state;
    char good[TEXT], text[TEXT];
    product_text(good, "wgmma.mma_async.sync.aligned.m64n64k16.f32.e4m3.e4m3 {%r30,%r31}, %rd7, %rd8, 1, 1, 1;");
    const size_t n = strlen(good);
    const uint64_t argument[PARAMS] = {1ull << 32, 1ull << 33, 1ull << 34, 64};
    const void *param[PARAMS] = {&argument[0], &argument[1], &argument[2], &argument[3]};
    const uint32_t bytes[PARAMS] = {8, 8, 8, 8};
    const struct vg_ptx_launch launch = {.grid = {2, 2, 1}, .block = {128, 1, 1}, .param = param, .param_bytes = bytes};
    assert_null(vg_ptx_read("", 0, "k"));
    assert_null(vg_ptx_read(good, n, "another"));
    for (uint64_t round = 0; round < 1500; round++) {
        memcpy(text, good, n);
        for (uint64_t i = 0; i < 1 + round % 7; i++)
            text[maq_rec_mix(round, 2 * i) % n] = (char)(maq_rec_mix(round, 2 * i + 1) % (round % 2 ? 128 : 256));
        const size_t length = round % 3 ? n : maq_rec_mix(round, 99) % n;
        struct vg_ptx *code = vg_ptx_read(text, length, "k");
        struct vg_ptx_work w;
        if (code != NULL && vg_ptx_params(code) <= 4)
            vg_ptx_work(&w, code, &launch);
        vg_ptx_free(code);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_numbers),
        cmocka_unit_test(test_copies_each_number_once),
        cmocka_unit_test(test_what_blocks_share_is_read_once),
        cmocka_unit_test(test_products_by_each_instruction),
        cmocka_unit_test(test_lengths_in_memory),
        cmocka_unit_test(test_branches_on_data),
        cmocka_unit_test(test_labels_of_a_scope),
        cmocka_unit_test(test_anything_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
