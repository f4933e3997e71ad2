/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_operator_rules.c - which operator a kernel is: attention over sequences by adding up every query, layouts of the kernels that
 * are known, and that what cannot be read stays a kernel.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/cuda/operator_rules.h"
#include "shim/cuda/oracle.h"
#include "shim_card.h"

int cudaMalloc(void **p, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);

enum { PARAMS = 16, SEQUENCES = 9, BEGINS = 0, USED = 4096 };
static char *memory; /* 64 KiB of the device */

struct argument {
    const void *value;
    uint32_t bytes;
};

/* The record that a launch of 7 x 1 x 1 blocks makes. */
static struct maq_rec_op launch(const char *name, const struct argument *argument, unsigned n)
{
    struct vg_param param[PARAMS];
    void *args[PARAMS];
    for (unsigned k = 0; k < n; k++) {
        param[k] = (struct vg_param){64 * k, argument[k].bytes};
        args[k] = (void *)(uintptr_t)argument[k].value;
    }
    struct vg_kernel kernel = {.magic = VG_KERNEL_MAGIC, .name = (char *)(uintptr_t)name};
    kernel.code = (struct vg_code){.n_params = n, .param = param, .found = true};
    struct vg_launch l = {.kernel = &kernel, .grid = {7, 1, 1}, .block = {32, 1, 1}, .args = args};
    struct maq_rec_op op = {.kind = MAQ_REC_KERNEL, .type = MAQ_REC_TYPE_OTHER};
    vg_lock();
    vg_operator_rules_apply(&op, &l);
    vg_unlock();
    return op;
}

/* A kernel whose arguments are all numbers of four bytes, or of eight where `wide` has a bit. */
static struct maq_rec_op launch_numbers(const char *name, const int64_t *number, unsigned n, unsigned wide)
{
    struct argument argument[PARAMS];
    for (unsigned k = 0; k < n; k++)
        argument[k] = (struct argument){&number[k], wide & 1u << k ? 8 : 4};
    return launch(name, argument, n);
}

static void put32(char *at, int32_t x)
{
    memcpy(at, &x, sizeof x);
}

static void put_pointer(char *at, const char *p)
{
    const uint64_t word = (uint64_t)(uintptr_t)p;
    memcpy(at, &word, sizeof word);
}

/* Sequences of so many queries at the end of so many keys, in memory of the device. */
static void give_sequences(const int32_t *queries, const int32_t *keys)
{
    int32_t begin[SEQUENCES + 1] = {0};
    for (unsigned i = 0; i < SEQUENCES; i++)
        begin[i + 1] = begin[i] + queries[i];
    assert_int_equal(cudaMemcpy(memory + BEGINS, begin, sizeof begin, VG_COPY_H2D), VG_OK);
    assert_int_equal(cudaMemcpy(memory + USED, keys, SEQUENCES * sizeof *keys, VG_COPY_H2D), VG_OK);
}

/* struct Flash_fwd_params: 32 heads of 128, 8 of keys. */
static struct maq_rec_op flash2(const char *name, bool varlen, int32_t left, int32_t right)
{
    static char a[464];
    memset(a, 0, sizeof a);
    put32(a + 96, 32);
    put32(a + 100, 8);
    put32(a + 176, SEQUENCES);
    put32(a + 180, 24); /* seqlen_q, seqlen_k */
    put32(a + 184, 40);
    put32(a + 192, 128);
    put_pointer(a + 224, varlen ? memory + BEGINS : NULL);
    put_pointer(a + 248, varlen ? memory + USED : NULL);
    put32(a + 388, left);
    put32(a + 392, right);
    return launch(name, (struct argument[]){{a, sizeof a}}, 1);
}

#define FLASH2                                                                                                         \
    "_ZN5flash16flash_fwd_kernelINS_23Flash_fwd_kernel_traitsILi128ELi128ELi64EN7cutlass10bfloat16_tEEEEvNS_16Flash_"  \
    "fwd_paramsE"

/* What queries see, one after another. */
static void test_every_query(void **state)
{
    static const int32_t windows[] = {0, 1, 5, 30, 1000};
    srand(5);
    for (unsigned turn = 0; turn < 60; turn++) {
        int32_t q[SEQUENCES], k[SEQUENCES], window = windows[turn % 5];
        const bool causal = window > 0 || turn % 3 > 0;
        double n = 0, squares = 0, seen = 0, decodes = 0, decoded = 0;
        bool cut = false;
        for (unsigned i = 0; i < SEQUENCES; i++) {
            q[i] = rand() % 3 == 0 ? 1 : rand() % 50;
            k[i] = q[i] + rand() % 60 * (rand() % 2);
            double sum = 0;
            for (int32_t j = 1; j <= q[i]; j++) {
                int32_t sees = causal ? k[i] - q[i] + j : k[i];
                sum += window > 0 && sees > window ? window : sees;
            }
            cut = cut || (window > 0 && q[i] > 0 && k[i] > window);
            *(q[i] == 1 ? &decodes : &n) += q[i];
            *(q[i] == 1 ? &decoded : &seen) += sum;
            squares += q[i] > 1 ? (double)q[i] * q[i] : 0;
        }
        give_sequences(q, k);
        struct maq_rec_op op = flash2(FLASH2, true, window - 1, causal ? 0 : -1);
        assert_int_equal(op.kind, MAQ_REC_SEQUENCES);
        assert_int_equal(op.type, MAQ_REC_BF16);
        assert_int_equal(op.d[0], (int64_t)n);
        assert_int_equal(op.d[1], n > 0 ? (int64_t)(seen / n + 0.5) : 0);
        assert_int_equal(op.d[2], n > 0 ? (int64_t)(squares / n + 0.5) : 0);
        assert_int_equal(op.d[3], (int64_t)decodes);
        assert_int_equal(op.d[4], decodes > 0 ? (int64_t)(decoded / decodes + 0.5) : 0);
        assert_int_equal(op.d[5], MAQ_REC_HEADS(32, 8, 128, 128));
        assert_int_equal(op.flags, (causal ? MAQ_REC_CAUSAL : 0u) | MAQ_REC_FLASH2 | (cut ? MAQ_REC_WINDOW : 0u));
    }
    (void)state;
}

static void test_equal_lengths(void **state)
{
    static const char back[] = "_ZN13pytorch_flash44flash_bwd_dq_dk_dv_loop_seqk_parallel_kernelI7cutlass6half_tEv";
    struct maq_rec_op op = flash2(FLASH2, false, -1, 0);
    assert_int_equal(op.kind, MAQ_REC_SEQUENCES);
    assert_int_equal(op.d[0], 24 * SEQUENCES);
    assert_int_equal(op.d[1], 29); /* 16 before them, and 12.5 in the mean of their own */
    assert_int_equal(op.d[2], 24);
    op = flash2(back, false, -1, -1);
    assert_int_equal(op.kind, MAQ_REC_SEQUENCES_BWD);
    assert_int_equal(op.type, MAQ_REC_F16);
    assert_int_equal(op.d[1], 40);
    assert_int_equal(op.flags, MAQ_REC_FLASH2);
    (void)state;
}

/* Decoding with the heads that share keys as queries: eight heads of keys, four queries each, are 32 heads with one. */
static void test_swapped(void **state)
{
    static const char name[] =
        "_ZN5flash24flash_fwd_splitkv_kernelI23Flash_fwd_kernel_traitsIN7cutlass10bfloat16_tEEEvNS_16Flash_fwd_paramsE";
    static const unsigned bytes[2] = {464, 472}, flag[2] = {457, 465};
    static char a[472];
    put32(a + 96, 8);
    put32(a + 100, 8);
    put32(a + 176, 3);
    put32(a + 180, 4);
    put32(a + 184, 40);
    put32(a + 192, 128);
    put32(a + 388, -1);
    put32(a + 392, -1);
    for (unsigned i = 0; i < 2; i++) {
        const struct argument argument = {a, bytes[i]};
        assert_int_equal(launch(name, &argument, 1).d[0], 12);
        a[flag[i]] = 1;
        const int64_t want[6] = {0, 0, 0, 3, 40, MAQ_REC_HEADS(32, 8, 128, 128)};
        assert_memory_equal(launch(name, &argument, 1).d, want, sizeof want);
        a[flag[i]] = 0;
    }
    (void)state;
}

/* FlashAttention-3, and memory of which nothing is known. */
static void test_flash3(void **state)
{
    static const char name[] =
        "_ZN7cutlass13device_kernelIN5flash20enable_sm90_or_laterINS1_16FlashAttnFwdSm90I10bfloat16_tEEEEvNT_6ParamsE";
    static const int32_t q[SEQUENCES] = {1, 1, 1, 1, 1, 1, 1, 1, 10}, k[SEQUENCES] = {5, 5, 5, 5, 9, 9, 9, 9, 30};
    static char a[2688], elsewhere[64];
    give_sequences(q, k);
    put32(a + 12, 64);
    put32(a + 16, 12);
    put32(a + 1884, 29); /* the longest, less one: no window */
    put32(a + 2492, SEQUENCES);
    put32(a + 2496, 3);
    put_pointer(a + 1904, memory + BEGINS);
    put_pointer(a + 2536, memory + BEGINS);
    put_pointer(a + 1936, memory + USED);
    struct argument argument = {a, sizeof a};
    struct maq_rec_op op = launch(name, &argument, 1);
    assert_int_equal(op.kind, MAQ_REC_SEQUENCES);
    const int64_t want[6] = {10, 26, 10, 8, 7, MAQ_REC_HEADS(12, 4, 64, 64)};
    assert_memory_equal(op.d, want, sizeof want);
    assert_int_equal(op.flags, MAQ_REC_CAUSAL);
    put_pointer(a + 1936, elsewhere);
    assert_int_equal(launch(name, &argument, 1).kind, MAQ_REC_KERNEL);
    put_pointer(a + 1936, memory + USED);
    argument.bytes = 2624; /* another build: nobody knows where things are */
    assert_int_equal(launch(name, &argument, 1).kind, MAQ_REC_KERNEL);
    (void)state;
}

/* Latent attention: absorbed, keys of 64 + 512 features for all heads and values of 512; and expanded, 192 and 128. */
static void test_flash3_latent(void **state)
{
    static const char name[] =
        "_ZN7cutlass13device_kernelIN5flash20enable_sm90_or_laterINS1_16FlashAttnFwdSm90I10bfloat16_tEEEEvNT_6ParamsE";
    static const int32_t q[SEQUENCES] = {1, 1, 1, 1, 1, 1, 1, 1, 10}, k[SEQUENCES] = {5, 5, 5, 5, 9, 9, 9, 9, 30};
    static char absorbed[2944], expanded[2560];
    int32_t begins[SEQUENCES + 1] = {0};
    give_sequences(q, k);
    put32(absorbed + 12, 64);
    put32(absorbed + 16, 16);
    put32(absorbed + 312, 512);
    put32(absorbed + 2748, SEQUENCES);
    put32(absorbed + 2752, 16);
    put_pointer(absorbed + 2152, memory + BEGINS);
    put_pointer(absorbed + 2792, memory + BEGINS);
    put_pointer(absorbed + 2184, memory + USED);
    const struct argument latent = {absorbed, sizeof absorbed}, whole = {expanded, sizeof expanded};
    struct maq_rec_op op = launch(name, &latent, 1);
    assert_int_equal(op.kind, MAQ_REC_SEQUENCES);
    assert_memory_equal(op.d, ((const int64_t[]){10, 26, 10, 8, 7, MAQ_REC_HEADS(16, 1, 576, 512)}), sizeof op.d);
    for (int i = 0; i < SEQUENCES; i++)
        begins[i + 1] = begins[i] + k[i];
    assert_int_equal(cudaMemcpy(memory + 2 * USED, begins, sizeof begins, VG_COPY_H2D), VG_OK);
    put32(expanded + 12, 192);
    put32(expanded + 16, 16);
    put32(expanded + 2060, 128);
    put32(expanded + 2452, SEQUENCES);
    put32(expanded + 2456, 1);
    put_pointer(expanded + 1904, memory + BEGINS);
    put_pointer(expanded + 2496, memory + BEGINS);
    put_pointer(expanded + 1912, memory + 2 * USED);
    op = launch(name, &whole, 1);
    assert_int_equal(op.kind, MAQ_REC_SEQUENCES);
    assert_memory_equal(op.d, ((const int64_t[]){10, 26, 10, 8, 7, MAQ_REC_HEADS(16, 16, 192, 128)}), sizeof op.d);
    (void)state;
}

/* struct Params of CUTLASS 3's GemmUniversal: the mode, then m, n, k and how many. */
static void test_cutlass_8_bits(void **state)
{
    static const char name[] =
        "_ZN7cutlass13device_kernelIN4vllm24cutlass_3x_gemm_sm90_fp8INS_12float_e4m3_tENS_10bfloat16_tE";
    static int32_t a[96] = {0, 300, 1024, 4096, 2};
    static const int64_t want[4] = {1024, 300, 4096, 2};
    const struct argument argument = {a, sizeof a};
    struct maq_rec_op op = launch(name, &argument, 1);
    assert_int_equal(op.kind, MAQ_REC_GEMM);
    assert_int_equal(op.type, MAQ_REC_F8E4M3);
    assert_memory_equal(op.d, want, sizeof want);
    a[0] = 2; /* an array of problems: their shapes are elsewhere */
    assert_int_equal(launch(name, &argument, 1).kind, MAQ_REC_KERNEL);
    memcpy(a, (int32_t[]){1024, 16, 4096, 1}, 4 * sizeof *a); /* no mode, and rows and columns exchanged */
    op = launch(
        "_ZN7cutlass13device_kernelIN4vllm24cutlass_3x_gemm_sm90_fp8INS_12float_e4m3_tENS_10bfloat16_tENS_4gemm"
        "36KernelTmaWarpSpecializedFP8FastAccumENS_8epilogue18TmaWarpSpecializedELb1EE10GemmKernelEEEvNT_6ParamsE",
        &argument, 1);
    assert_int_equal(op.kind, MAQ_REC_GEMM);
    assert_memory_equal(op.d, ((const int64_t[]){1024, 16, 4096, 1}), sizeof want);
    (void)state;
}

/* Sizes that are compiled in are numbers of the kernel's name, and those that are not are arguments. */
static void test_deep_gemm(void **state)
{
#define HOPPER "_ZN9deep_gemm23sm90_fp8_gemm_1d2d_implILN4cute4UMMA5MajorE0ELj0E"
#define TILES "Lj256ELj128ELj128ELj128ELj128ELj128ELj3ELj128ELj256ELj2ELb1ELj132EEEv"
#define EXCHANGED "_ZN9deep_gemm22fp8_gemm_kernel_swapABILj6144ELj4096ELj128ELj16ELj128E"
    static const int64_t number[9] = {1, 2, 300, 28672, 512};
    static const struct {
        const char *name;
        enum maq_rec_op_kind kind;
        int64_t d[3];
    } cases[] = {
        {HOPPER "Lj6144ELj4096ELj1E" TILES, MAQ_REC_GEMM, {6144, 300, 4096}},
        {HOPPER "Lj0ELj0ELj1E" TILES, MAQ_REC_GEMM, {28672, 300, 512}},
        {HOPPER "Lj6144ELj4096ELj8E" TILES, MAQ_REC_KERNEL, {0}}, /* of eight groups */
        {HOPPER "Lj6144E", MAQ_REC_KERNEL, {0}},
    };
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct maq_rec_op op = launch_numbers(cases[c].name, number, 9, 3);
        assert_int_equal(op.kind, cases[c].kind);
        assert_memory_equal(op.d, cases[c].d, sizeof cases[c].d);
        assert_true(op.kind == MAQ_REC_KERNEL || (op.type == MAQ_REC_F8E4M3 && op.flags == MAQ_REC_BLOCKS));
    }
    const int64_t pointer = 1, input[2] = {9, 2}; /* rows of the input, and a pointer behind them */
    const struct argument argument[7] = {{&pointer, 8}, {&pointer, 8}, {input, 16},  {&pointer, 8},
                                         {&pointer, 8}, {&pointer, 8}, {&pointer, 8}};
    struct maq_rec_op op = launch(EXCHANGED "Lj1ELj8ELj128ELj128ELj1ENS_21NormalSchedulerSwapABI", argument, 7);
    assert_int_equal(op.kind, MAQ_REC_GEMM);
    assert_memory_equal(op.d, ((const int64_t[]){6144, 9, 4096}), 3 * sizeof(int64_t));
    (void)state;
}

/* Triton's experts: how many there are is how often one's weights lie in the memory, 64 KiB here. */
static void test_experts(void **state)
{
    static const struct {
        unsigned n, wide;
        int64_t number[PARAMS];
        enum maq_rec_op_kind kind;
        enum maq_rec_type type;
        int64_t d[4];
    } cases[] = {
        /* 64 rows of 256 experts of 8 x 16 in 16 bits: 56.7 of them have some; with 2,048 nearly all, 8 each */
        {12, 0x7f, {0, 0, 0, 0, 0, 0, 0, 8, 16, 99, 64}, MAQ_REC_GROUPED_GEMM, MAQ_REC_BF16, {1, 8, 16, 57}},
        {12, 0x7f, {0, 0, 0, 0, 0, 0, 0, 8, 16, 99, 2048}, MAQ_REC_GROUPED_GEMM, MAQ_REC_BF16, {8, 8, 16, 256}},
        {12, 0x3f, {0, 0, 0, 0, 0, 0, 8, 16, 99, 64}, MAQ_REC_GROUPED_GEMM, MAQ_REC_BF16, {1, 8, 16, 57}},
        {14, 0x1ff, {0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 16, 99, 64}, MAQ_REC_GROUPED_GEMM, MAQ_REC_F8E4M3, {1, 16, 16, 57}},
        {14, 0xff, {0, 0, 0, 0, 0, 0, 0, 0, 16, 16, 99, 64}, MAQ_REC_GROUPED_GEMM, MAQ_REC_F8E4M3, {1, 16, 16, 57}},
        {12, 0x7f, {0, 0, 0, 0, 0, 0, 0, 8, 16, 99, 0}, MAQ_REC_KERNEL, MAQ_REC_TYPE_OTHER, {0}},
        {12, 0x7f, {0, 0, 0, 0, 0, 0, 0, 1 << 14, 1 << 14, 99, 64}, MAQ_REC_KERNEL, MAQ_REC_TYPE_OTHER, {0}},
    };
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct argument argument[PARAMS];
        for (unsigned k = 0; k < cases[c].n; k++)
            argument[k] = (struct argument){&cases[c].number[k], cases[c].wide & 1u << k ? 8 : 4};
        argument[1].value = &memory;
        struct maq_rec_op op = launch("fused_moe_kernel", argument, cases[c].n);
        if (op.kind != cases[c].kind || op.type != cases[c].type || memcmp(op.d, cases[c].d, sizeof cases[c].d) != 0)
            fail_msg("%u: kind %u, type %u, %lld %lld %lld %lld", c, op.kind, op.type, (long long)op.d[0],
                     (long long)op.d[1], (long long)op.d[2], (long long)op.d[3]);
    }
    (void)state;
}

/* PyTorch's memory-efficient attention, forward and backward: 500 queries and 700 keys of 64 features, values of 128; then causal. */
static void test_memory_efficient_attention(void **state)
{
    (void)state;
    static char forward[280], backward[480];
    const struct argument to = {forward, sizeof forward}, back = {backward, sizeof backward};
    static const char forwards[] =
        "_Z40fmha_cutlassF_f16_aligned_64x64_rf_sm80N22PyTorchMemEffAttention15AttentionKernelIN7cutlass6half_tE";
    static const char backwards[] =
        "_Z52fmha_cutlassB_f16_aligned_64x64N22PyTorchMemEffAttention23AttentionBackwardKernelIN7cutlass4arch4Sm80ENS1_"
        "6half_t";
    const int32_t sizes[] = {64, 128, 500, 700};
    memcpy(forward + 96, sizes, sizeof sizes);
    memcpy(backward + 144, sizes, sizeof sizes);
    put32(forward + 208, 1);  /* heads of queries that share one of keys */
    put32(backward + 160, 6); /* heads */
    put32(backward + 164, 2);
    struct maq_rec_op op = launch(forwards, &to, 1);
    assert_int_equal(op.kind, MAQ_REC_SEQUENCES);
    assert_int_equal(op.type, MAQ_REC_F16);
    assert_int_equal(op.flags, MAQ_REC_FLASH1 | MAQ_REC_FLASH2);
    assert_int_equal(op.d[0], 500);
    assert_int_equal(op.d[1], 700);
    assert_int_equal(op.d[5], MAQ_REC_HEADS(1, 1, 64, 128));
    op = launch(backwards, &back, 1);
    assert_int_equal(op.kind, MAQ_REC_SEQUENCES_BWD);
    assert_int_equal(op.d[5], MAQ_REC_HEADS(6, 3, 64, 128));
    forward[116] = 1;
    put32(forward + 108, 500);
    op = launch(forwards, &to, 1);
    assert_int_equal(op.flags, MAQ_REC_FLASH1 | MAQ_REC_FLASH2 | MAQ_REC_CAUSAL);
    assert_int_equal(op.d[1], 251);
}

static void test_small_kernels(void **state)
{
    static const struct {
        const char *name;
        unsigned n, wide;
        int64_t number[PARAMS];
        enum maq_rec_op_kind kind;
        enum maq_rec_type type;
        int64_t d[3];
    } cases[] = {
        {"_ZN4vllm15rms_norm_kernelIN3c108BFloat16ELi8ELi2ELb1EEEvPT_PKS3_lllllS6_lfii",
         12,
         0x1ff,
         {1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 300, 4096},
         MAQ_REC_NORM,
         MAQ_REC_BF16,
         {300, 4096}},
        {"_ZN4vllm25fused_add_rms_norm_kernelIN3c104HalfELi8ELb1EEEv",
         8,
         0x8f,
         {1, 2, 3, 4, 0, 300, 4096, 8},
         MAQ_REC_ELEMENTWISE,
         MAQ_REC_F16,
         {300 * 4096, 4, 4}},
        {"_ZN4vllm23rotary_embedding_kernelIN3c108BFloat16ES2_Lb1EEEv",
         13,
         0x8ef,
         {1, 2, 3, 4, 128, 9, 9, 9, 32, 8, 128},
         MAQ_REC_ROPE,
         MAQ_REC_BF16,
         {7, 5120}},
        {"_ZN4vllm18act_and_mul_kernelIN3c108BFloat16E14__nv_bfloat162",
         6,
         3,
         {1, 2, 14336},
         MAQ_REC_GATED_ACTIVATION,
         MAQ_REC_BF16,
         {7, 14336}},
        {"_ZN4vllm30reshape_and_cache_flash_kernelI13__nv_bfloat16S1_LNS_18",
         16,
         0x63ff,
         {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 8, 128, 16},
         MAQ_REC_ELEMENTWISE,
         MAQ_REC_BF16,
         {2 * 7 * 1024, 2, 2}},
        {"_ZN10flashinfer4norm13RMSNormKernelILj8E13__nv_bfloat16EEvPT0_S4_S4_jjjff",
         8,
         7,
         {1, 2, 3, 4096, 4096, 4096},
         MAQ_REC_NORM,
         MAQ_REC_BF16,
         {7, 4096}},
        {"_ZN10flashinfer4norm21FusedAddRMSNormKernelILj8E13__nv_bfloat16EEvPT0_S4_S4_jjjff",
         8,
         7,
         {1, 2, 3, 4096, 4096, 4096},
         MAQ_REC_ELEMENTWISE,
         MAQ_REC_BF16,
         {7 * 4096, 4, 4}},
        {"_ZN2at6native24vectorized_gather_kernelILi16ElEEvPcS2_PT0_illllb",
         9,
         0xf7,
         {1, 2, 3, 300, 8192, 128256},
         MAQ_REC_EMBEDDING,
         MAQ_REC_F32,
         {300, 2048, 128256}},
        {"_ZN7cutlass13device_kernelIN5flash19FlashAttnFwdCombineIN4cute5tupleI",
         1,
         0,
         {0},
         MAQ_REC_PART,
         MAQ_REC_F32,
         {0}},
        {"_Z42per_token_group_quant_8bit_register_kernelIN3c108BFloat16ENS0_13Float8_e4m3fnELb1ELb1ELi128EEvPKT_"
         "PvPflfffii",
         9,
         0xf,
         {1, 2, 3, 300 * 32, 0, 0, 0, 32, 300},
         MAQ_REC_QUANTIZE,
         MAQ_REC_F8E4M3,
         {300, 4096}},
        {"_Z42per_token_group_quant_8bit_register_kernelIN3c108BFloat16ENS0_13Float8_e4m3fnELb0ELb0ELi128EEvPKT_"
         "PvPflfffii",
         9,
         0xf,
         {1, 2, 3, 300 * 32}, /* scales in rows: groups are all that is said */
         MAQ_REC_QUANTIZE,
         MAQ_REC_F8E4M3,
         {300 * 32, 128}},
        {"_ZN12tensorrt_llm7kernels19fp8_blockscale_gemm18scale_1x128_kernelI13__nv_bfloat1613__nv_fp8_e4m3fEEv",
         5,
         7,
         {1, 2, 3, 14336, 8},
         MAQ_REC_QUANTIZE,
         MAQ_REC_F8E4M3,
         {8, 14336}},
        {"_ZN4vllm49dynamic_per_token_scaled_fp8_quant_kernel_stridedIN3c108BFloat16ENS1_13Float8_e4m3fnEEEv",
         7,
         0x6f,
         {1, 2, 3, 4, 4096, 4096, 4096},
         MAQ_REC_QUANTIZE,
         MAQ_REC_F8E4M3,
         {7, 4096}},
        {"mine_norm_kernel_bfloat16", 2, 0, {40, 50}, MAQ_REC_NORM, MAQ_REC_BF16, {40, 100}}, /* of the user's file */
        {"mine_norm_kernel_bfloat16", 2, 0, {40, -50}, MAQ_REC_KERNEL, MAQ_REC_TYPE_OTHER, {0}},
        {"mine_norm_kernel_bfloat16", 2, 0, {0, 50}, MAQ_REC_KERNEL, MAQ_REC_TYPE_OTHER, {0}},
        {"_ZN4vllm15rms_norm_kernelIN3c108BFloat16E", 11, 0, {0}, MAQ_REC_KERNEL, MAQ_REC_TYPE_OTHER, {0}},
        {"_ZN4vllm31rms_norm_per_block_quant_kernelI", 12, 0, {0}, MAQ_REC_KERNEL, MAQ_REC_TYPE_OTHER, {0}},
    };
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        struct maq_rec_op op = launch_numbers(cases[c].name, cases[c].number, cases[c].n, cases[c].wide);
        if (op.kind != cases[c].kind || op.type != cases[c].type || memcmp(op.d, cases[c].d, sizeof cases[c].d) != 0)
            fail_msg("%s: kind %u, type %u, %lld %lld %lld", cases[c].name, op.kind, op.type, (long long)op.d[0],
                     (long long)op.d[1], (long long)op.d[2]);
    }
    (void)state;
}

static void test_refused(void **state)
{
    static const char *const cases[] = {
        "operator",
        "operator k",
        "operator k matmul",
        "operator k norm",
        "operator k norm rows=1",
        "operator k norm rows=1 columns",
        "operator k norm rows=1 columns=",
        "operator k norm rows=1 columns=2 depth=3",
        "operator k norm rows=1 columns=a0@.i32",
        "operator k norm rows=1 columns=a0@8",
        "operator k norm rows=1 columns=a0.i32",
        "operator k/x part",
        "operator k attention batch=1 heads=1 kv_heads=1 dim=1 queries=1",
        "operator k part if=gq",
    };
    for (unsigned c = 0; c < sizeof cases / sizeof *cases; c++) {
        const char *why = NULL;
        if (vg_operator_rule_take(cases[c], &why) || why == NULL)
            fail_msg("taken: %s", cases[c]);
    }
    for (unsigned i = 0; vg_operator_rules_known[i] != NULL; i++) {
        const char *why = "";
        if (!vg_operator_rule_take(vg_operator_rules_known[i], &why))
            fail_msg("%s: %s", vg_operator_rules_known[i], why);
    }
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_query),
                                       cmocka_unit_test(test_equal_lengths),
                                       cmocka_unit_test(test_swapped),
                                       cmocka_unit_test(test_flash3),
                                       cmocka_unit_test(test_flash3_latent),
                                       cmocka_unit_test(test_cutlass_8_bits),
                                       cmocka_unit_test(test_deep_gemm),
                                       cmocka_unit_test(test_experts),
                                       cmocka_unit_test(test_memory_efficient_attention),
                                       cmocka_unit_test(test_small_kernels),
                                       cmocka_unit_test(test_refused)};
    shim_card_of_values("operator mine_norm norm if=a0>0 rows=a0 columns=2*a1 # twice\n");
    if (cudaMalloc((void **)&memory, 65536) != VG_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shim_done();
    return failed;
}
