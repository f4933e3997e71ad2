/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_arithmetic.c - numbers that the host knows are computed by PyTorch's element-wise kernels, concatenations, running sums and
 * counts; what these kernels do not write stays known; and nothing else is computed.
 *
 * Names are those of PyTorch 2.15, arguments are laid out as the files of shim/cuda/arithmetic describe them.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "shim/cuda/cuda.h"
#include "shim_card.h"

int cudaMalloc(void **p, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);

#define VECTOR(n) "_ZN2at6native29vectorized_elementwise_kernelILi" #n "E"
#define TENSORS(n) "St5arrayIPcLm" #n "EELb0EEEviT0_T1_"
#define EQUAL "NS0_51_GLOBAL__N__68c48bfe_18_CompareEQKernel_cu_d8008c9616CompareEqFunctor"
#define STRIDED "_ZN2at6native18elementwise_kernelILi128ELi4EZNS0_22gpu_kernel_impl_nocastI"
#define STRIDED_END "EEvRNS_18TensorIteratorBaseERKT_EUliE_EEviT1_"

enum { ARGUMENTS_MOST = 11, BYTES = 4096 };
static char *memory; /* of the device */

/* A launch whose arguments are put in one after the other. */
struct call {
    struct vg_param param[ARGUMENTS_MOST];
    void *args[ARGUMENTS_MOST];
    char bytes[ARGUMENTS_MOST][BYTES];
    struct vg_kernel kernel;
    struct vg_launch launch;
};

static struct call call;

static void begin(const char *name)
{
    memset(&call, 0xa5, sizeof call); /* what a stack holds */
    call.kernel = (struct vg_kernel){.magic = VG_KERNEL_MAGIC, .name = (char *)(uintptr_t)name};
    call.kernel.code = (struct vg_code){.param = call.param, .found = true};
    call.launch =
        (struct vg_launch){.kernel = &call.kernel, .grid = {1, 1, 1}, .block = {128, 1, 1}, .args = call.args};
}

static void put(const void *bytes, uint32_t n)
{
    const uint32_t i = call.kernel.code.n_params++;
    assert_true(i < ARGUMENTS_MOST && n <= BYTES);
    call.param[i] = (struct vg_param){0, n};
    call.args[i] = memcpy(call.bytes[i], bytes, n);
}

static void put_word(int32_t x)
{
    put(&x, sizeof x);
}

static void put_pointers(const void *a, const void *b, const void *c, const void *d)
{
    const void *at[] = {a, b, c, d};
    uint32_t n = 0;
    while (n < 4 && at[n])
        n++;
    put(at, n * (uint32_t)sizeof *at);
}

static void launch(void)
{
    vg_lock();
    (void)vg_launch_record(&call.launch);
    vg_unlock();
}

static void know(const void *at, const void *bytes, size_t n)
{
    assert_int_equal(cudaMemcpy((void *)(uintptr_t)at, bytes, n, VG_COPY_H2D), VG_OK);
}

static void forget(const void *at, size_t n)
{
    vg_mem_written(at, n);
}

#define KNOW(at, ...) know(at, (__VA_ARGS__), sizeof(__VA_ARGS__))

static void is(const void *at, const void *want, size_t n)
{
    char got[256];
    assert_true(vg_mem_true(at, n));
    assert_int_equal(cudaMemcpy(got, at, n, VG_COPY_D2H), VG_OK);
    assert_memory_equal(got, want, n);
}

#define IS(at, ...) is(at, (__VA_ARGS__), sizeof(__VA_ARGS__))

static void contiguous(const char *name, int32_t n, const void *function, uint32_t bytes)
{
    begin(name);
    put_word(n);
    put(function, bytes);
}

static void test_fill_and_range(void **state)
{
    contiguous(VECTOR(2) "NS0_11FillFunctorIlEE" TENSORS(1), 3, &(int64_t){-7}, 8);
    put_pointers(memory, NULL, NULL, NULL);
    launch();
    IS(memory, (int64_t[]){-7, -7, -7});
    contiguous(
        "_ZN50_GLOBAL__N__2fa45684_17_RangeFactories_cu_38772b0829elementwise_kernel_with_indexIiZZZN2at6native15"
        "arange_cuda_outERKN3c106ScalarES6_S6_RNS1_6TensorEENKUlvE_clEvENKUlvE2_clEvEUllE_EEvT_T0_PN15function_"
        "traitsISD_E11result_typeE",
        4, (int64_t[]){5, 3}, 16);
    put_pointers(memory, NULL, NULL, NULL);
    launch();
    IS(memory, (int64_t[]){5, 8, 11, 14});
    (void)state;
}

/* Truth values: what one of two operands decides, and what both have to. */
static void test_logic(void **state)
{
    static const char *const either = VECTOR(8) "NS0_13BinaryFunctorIbbbNS0_16BitwiseOrFunctorIbEEEE" TENSORS(3),
                             *const both = VECTOR(8) "NS0_13BinaryFunctorIbbbNS0_17BitwiseAndFunctorIbEEEE" TENSORS(3);
    char *a = memory, *b = memory + 512, *out = memory + 1024;
    for (int known = 0; known < 4; known++)
        for (int k = 0; k < 2; k++) {
            KNOW(a, (bool[]){false, true, false});
            KNOW(b, (bool[]){false, false, true});
            if (!(known & 1))
                forget(a, 3);
            if (!(known & 2))
                forget(b, 3);
            contiguous(k ? both : either, 3, &(char){0}, 1);
            put_pointers(out, a, b, NULL);
            launch();
            assert_int_equal(vg_mem_true(out, 3), k ? known == 3 : known != 0);
            if (k == 0 && known == 1)
                IS(out, (bool[]){false, true, false}); /* what nobody knows counts as zeros */
            if (known == 3)
                is(out, k ? (bool[]){false, false, false} : (bool[]){false, true, true}, 3);
        }
    KNOW(a, (bool[]){true, false});
    contiguous(VECTOR(8) "ZNS0_23bitwise_not_kernel_cudaERNS_18TensorIteratorBaseEEUlbE_" TENSORS(2), 2, &(char){0}, 1);
    put_pointers(out, a, NULL, NULL);
    launch();
    IS(out, (bool[]){false, true});
    (void)state;
}

static void test_numbers(void **state)
{
    char *a = memory, *b = memory + 512, *c = memory + 1024, *out = memory + 1536;
    KNOW(a, (int32_t[]){1, 2, 3});
    contiguous(VECTOR(8) "NS0_13AUnaryFunctorIiib" EQUAL "IiEEEE" TENSORS(2), 3, (int32_t[]){1, 2}, 8);
    put_pointers(out, a, NULL, NULL);
    launch();
    IS(out, (bool[]){true, false, true}); /* the word is 1: not equal */
    contiguous(
        VECTOR(8) "ZNS0_21compare_scalar_kernelIiEEvRNS_18TensorIteratorBaseENS0_50_GLOBAL__N__30bf7ff7_17_Compare"
                  "Kernels_cu_8f1b29aa6OpTypeET_EUliE_" TENSORS(2),
        3, (int32_t[]){3, 2}, 8);
    put_pointers(out, a, NULL, NULL);
    launch();
    IS(out, (bool[]){true, false, false}); /* 3: less */
    KNOW(b, (int64_t[]){4, -5});
    contiguous(VECTOR(2) "NS0_22CUDAFunctorOnOther_addIlEE" TENSORS(2), 2, (int64_t[]){1, -1}, 16);
    put_pointers(out, b, NULL, NULL);
    launch();
    IS(out, (int64_t[]){-3, 6}); /* 1 - x */
    contiguous(VECTOR(2) "NS0_13AUnaryFunctorIlllNS0_15binary_internal10MulFunctorIlEEEE" TENSORS(2), 2,
               (int64_t[]){0, 3}, 16);
    put_pointers(out, b, NULL, NULL);
    launch();
    IS(out, (int64_t[]){12, -15});
    KNOW(c, (bool[]){true, false});
    contiguous(VECTOR(2) "ZZZNS0_49_GLOBAL__N__037c6ad9_16_TensorCompare_cu_71e06f4e17where_kernel_implERNS_14Tensor"
                         "IteratorEENKUlvE_clEvENKUlvE2_clEvEUlbmmE_" TENSORS(4),
               2, &(char){0}, 1);
    KNOW(a, (int64_t[]){70, 71});
    put_pointers(out, c, a, b);
    launch();
    IS(out, (int64_t[]){70, -5});
    contiguous(VECTOR(2) "ZNS0_27converting_copy_kernel_cudaIblEEvRNS_18TensorIteratorBaseEEUlbE_" TENSORS(2), 2,
               &(char){0}, 1);
    put_pointers(out, c, NULL, NULL);
    launch();
    IS(out, (int64_t[]){1, 0});
    (void)state;
}

#define CAST_AND                                                                                                       \
    "_ZN2at6native27unrolled_elementwise_kernelINS0_13BinaryFunctorIlllNS0_"                                           \
    "17BitwiseAndFunctorIlEEEESt5arrayIPcLm3EELi"                                                                      \
    "4E23TrivialOffsetCalculatorILi2EjES9_ILi1EjENS0_6memory12LoadWithCastILi2EEENSC_13StoreWithCastILi1EEEEEviT_T0_"  \
    "T2_"                                                                                                              \
    "T3_T4_T5_"

/* `unfinished & ~done`: numbers and truth values. */
static void test_casts(void **state)
{
    struct {
        char types[4];
        uint32_t bytes[2];
    } load = {{4, 11}, {8, 1}}, store = {{4}, {8}};
    KNOW(memory, (int64_t[]){1, 1, 6});
    KNOW(memory + 512, (bool[]){true, false, true});
    for (int other = 0; other < 2; other++) {
        load.types[1] = other ? 9 : 11; /* a complex number: not computed */
        contiguous(CAST_AND, 3, &(char){0}, 1);
        put_pointers(memory + 1024, memory, memory + 512, NULL);
        put(&(char){0}, 1);
        put(&(char){0}, 1);
        put(&load, sizeof load);
        put(&store, 8);
        launch();
        if (other)
            assert_false(vg_mem_true(memory + 1024, 24));
        else
            IS(memory + 1024, (int64_t[]){1, 0, 0});
    }
    (void)state;
}

/* The structure of a strided kernel of three tensors: a column of two against a row of three, which lies with a gap. */
static void put_strided(uint32_t row_stride, uint32_t fastest_of_output)
{
    struct {
        uint32_t dimensions, size[25][3], stride[25][3], pad;
        void *at[3];
        int32_t word;
    } s = {.dimensions = 2,
           .size = {{3}, {2}},
           .stride = {{fastest_of_output, 0, row_stride}, {3, 8, 0}},
           .at = {memory + 1024, memory, memory + 512}};
    put_word(6);
    put(&s, sizeof s);
}

static void test_strides(void **state)
{
    static const char *const name = STRIDED "NS0_13BinaryFunctorIllb" EQUAL "IlEEE" STRIDED_END;
    KNOW(memory, (int64_t[]){7, 9});
    KNOW(memory + 512, (int64_t[]){7, -1, 8, -1, 9, -1});
    begin(name);
    put_strided(16, 1);
    launch();
    IS(memory + 1024, (bool[]){true, false, false, false, false, true});
    forget(memory + 512 + 16, 1); /* one of the row */
    begin(name);
    put_strided(16, 1);
    launch();
    assert_false(vg_mem_true(memory + 1024, 6));
    KNOW(memory + 512, (int64_t[]){7, -1, 8, -1, 9, -1});
    begin(name);
    put_strided(16, 2); /* the output has gaps */
    launch();
    assert_false(vg_mem_true(memory + 1024, 6));
    (void)state;
}

/* Inputs of a concatenation, with room for 128: pointers, where each begins, its size there, elements, whether it is contiguous. */
struct inputs {
    const void *at[128];
    uint32_t from[128], size[128], elements[128];
    bool contiguous[128];
    uint32_t strides[8];
};

static void concatenate(const char *name, const struct inputs *in, const uint32_t *shape, int32_t along, int32_t last)
{
    begin(name);
    put_pointers(memory + 2048, NULL, NULL, NULL);
    put(in, sizeof *in);
    put(shape, 32);
    put_word(along);
    put_word(last);
    call.launch.grid.y = 2;
    launch();
}

#define CAT "_ZN2at6native40_GLOBAL__N__f1f992fe_8_Shape_cu_49f7391c"

static void test_concatenation(void **state)
{
    static const char *const aligned =
        CAT "35CatArrayBatchedCopy_alignedK_contigINS1_10OpaqueTypeILj8EEEjLi2ELi128ELi1ELi16EEEvPT_";
    static const char *const vectors =
        CAT "30CatArrayBatchedCopy_vectorizedINS1_10OpaqueTypeILj8EEEjLi1ELi128ELi1ELi16ELi2EEEvPc";
    struct inputs in = {
        .at = {memory, memory + 512}, .from = {0, 2}, .size = {2, 1}, .elements = {4, 2}, .contiguous = {true, true}};
    KNOW(memory, (int64_t[]){1, 2, 3, 4});
    KNOW(memory + 512, (int64_t[]){5, 6});
    concatenate(aligned, &in, (uint32_t[]){2, 3, 0, 0, 3, 1, 0, 0}, 1, 1);
    IS(memory + 2048, (int64_t[]){1, 2, 5, 3, 4, 6});
    in.from[1] = 4; /* now one behind the other: units of 16 bytes */
    in.size[0] = 4;
    in.size[1] = 2;
    concatenate(vectors, &in, (uint32_t[]){3, 0, 0, 0, 1, 0, 0, 0}, 0, 1);
    IS(memory + 2048, (int64_t[]){1, 2, 3, 4, 5, 6});
    in.contiguous[1] = false;
    concatenate(vectors, &in, (uint32_t[]){3, 0, 0, 0, 1, 0, 0, 0}, 0, 1);
    assert_false(vg_mem_true(memory + 2048, 48));
    in.contiguous[1] = true;
    in.from[1] = 1u << 20; /* beyond the output */
    concatenate(vectors, &in, (uint32_t[]){3, 0, 0, 0, 1, 0, 0, 0}, 0, 1);
    assert_false(vg_mem_true(memory + 2048, 48));
    (void)state;
}

static void test_cumulative_sum_and_count(void **state)
{
    static const char *const count =
        "_ZN14at_cuda_detail3cub6detail6reduce28DeviceReduceSingleTileKernelINS2_10policy_hubIiyN4cuda3std3__"
        "44plusIvEEE10"
        "Policy1000EN6thrust38_V_300200_SM_750_800_860_900_1000_120018transform_iteratorIN2at6native43_GLOBAL__N__"
        "a7e516da_"
        "10_Nonzero_cu_cba1aaa09NonZeroOpIbEEPKbNSD_11use_defaultESM_EEPiyS9_iiNS7_8identityEEEvT0_T1_T2_T3_T4_T6_";
    KNOW(memory, (int64_t[]){1, 1, 1, 5, 0, 2});
    begin("_ZN2at6native32tensor_kernel_scan_innermost_dimIlSt4plusIlEEEvPT_PKS4_jjjS4_T0_");
    put_pointers(memory + 512, NULL, NULL, NULL);
    put_pointers(memory, NULL, NULL, NULL);
    put_word(2);
    put_word(3);
    launch();
    IS(memory + 512, (int64_t[]){1, 2, 3, 5, 5, 7});
    KNOW(memory, (bool[]){true, false, true, true});
    for (uint32_t known = 4; known > 2; known--) {
        begin(count);
        put((void *[]){memory, NULL}, 16);
        put_pointers(memory + 512, NULL, NULL, NULL);
        put(&(int64_t){4}, 8);
        forget(memory + known, 1);
        launch();
        if (known == 4)
            IS(memory + 512, (int32_t[]){3});
        else
            assert_false(vg_mem_true(memory + 512, 4));
    }
    (void)state;
}

/* Two by two elements, the same transposed, and where they are compared to. */
static void put_with_transposed(void)
{
    struct {
        uint32_t dimensions, size[25][3], stride[25][3], pad;
        void *at[3];
        int32_t word;
    } s = {.dimensions = 2, .size = {{2}, {2}}, .stride = {{1, 4, 8}, {2, 8, 4}}, .at = {memory + 512, memory, memory}};
    put_word(4);
    put(&s, sizeof s);
}

/* Of numbers that nobody knows none is infinite or not a number; of those that the host knows it is computed. */
static void test_ordinary(void **state)
{
    static const char *const nan_name = VECTOR(8) "NS0_13BinaryFunctorIffb" EQUAL "IfEEEE" TENSORS(3);
    static const char *const finite = VECTOR(8) "NS0_13AUnaryFunctorIffb" EQUAL "IfEEEE" TENSORS(2);
    struct {
        int32_t word;
        float x;
    } constant = {1, INFINITY};
    forget(memory, 64);
    contiguous(nan_name, 2, &(int32_t){1}, 4);
    put_pointers(memory + 512, memory, memory, NULL);
    launch();
    IS(memory + 512, (bool[]){false, false}); /* x != x */
    contiguous(finite, 2, &constant, 8);
    put_pointers(memory + 512, memory, NULL, NULL);
    launch();
    IS(memory + 512, (bool[]){true, true}); /* x != infinity */
    constant.x = 1;
    contiguous(finite, 2, &constant, 8);
    put_pointers(memory + 512, memory, NULL, NULL);
    launch();
    assert_false(vg_mem_true(memory + 512, 2));
    begin(STRIDED "NS0_13BinaryFunctorIffb" EQUAL "IfEEE" STRIDED_END);
    put_with_transposed();
    launch();
    assert_false(vg_mem_true(memory + 512, 4)); /* x == x.T */
    KNOW(memory, (float[]){NAN, 1});
    contiguous(nan_name, 2, &(int32_t){1}, 4);
    put_pointers(memory + 512, memory, memory, NULL);
    launch();
    IS(memory + 512, (bool[]){true, false});
    (void)state;
}

/* `x == x.int()`, of numbers that the host knows. */
static void test_real(void **state)
{
    static const char *const to_int =
        "_ZN2at6native27unrolled_elementwise_kernelIZZZNS0_23direct_copy_kernel_cudaERNS_18TensorIteratorBaseEENKUlvE1_"
        "clEvENKUlvE1_clEvEUliE_St5arrayIPcLm2EELi4E23TrivialOffsetCalculatorILi1EjESB_NS0_"
        "6memory12LoadWithCastILi1EEENSC_"
        "13StoreWithCastILi1EEEEEviT_T0_T2_T3_T4_T5_";
    static const char *const equal =
        "_ZN2at6native27unrolled_elementwise_kernelINS0_13BinaryFunctorIffb" EQUAL "IfEEEESt5arrayIPcLm3EELi4E23Trivial"
        "OffsetCalculatorILi2EjES9_ILi1EjENS0_6memory12LoadWithCastILi2EEENSC_13StoreWithCastILi1EEEEEviT_T0_T2_T3_T4_"
        "T5_";
    struct {
        char types[4];
        uint32_t bytes[2];
    } one = {{6}, {4}}, two = {{6, 3}, {4, 4}}, whole = {{3}, {4}}, truth = {{11}, {1}};
    KNOW(memory, (float[]){7, 2.5F, -3});
    contiguous(to_int, 3, &(char){0}, 1);
    put_pointers(memory + 512, memory, NULL, NULL);
    put(&(char){0}, 1);
    put(&(char){0}, 1);
    put(&one, 8);
    put(&whole, 8);
    launch();
    IS(memory + 512, (int32_t[]){7, 2, -3});
    contiguous(equal, 3, &(int32_t){0}, 4);
    put_pointers(memory + 1024, memory, memory + 512, NULL);
    put(&(char){0}, 1);
    put(&(char){0}, 1);
    put(&two, sizeof two);
    put(&truth, 8);
    launch();
    IS(memory + 1024, (bool[]){true, false, true});
    contiguous(VECTOR(8) "NS0_13AUnaryFunctorIN3c108BFloat16ES4_S4_NS0_15binary_internal10MulFunctorIfEEEE" TENSORS(2),
               2, (float[]){0, 0.1F}, 8);
    KNOW(memory, (uint16_t[]){0x4000, 0x3f80}); /* 2, 1 */
    put_pointers(memory + 512, memory, NULL, NULL);
    launch();
    IS(memory + 512, (uint16_t[]){0x3e4d, 0x3dcd});
    (void)state;
}

/* A kernel whose place is known leaves alone what lies behind it; any other may have written there. */
static void test_places(void **state)
{
    char *next = memory + 512;
    KNOW(next, (int64_t[]){42});
    contiguous(VECTOR(4) "NS0_13BinaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEE" TENSORS(3), 128, &(char){0},
               1);
    put_pointers(memory, next, next, NULL); /* 512 bytes; it reads the next ones */
    launch();
    IS(next, (int64_t[]){42});
    contiguous(VECTOR(4) "NS0_13BinaryFunctorIfffNS0_15binary_internal10MulFunctorIfEEEE" TENSORS(3), 129, &(char){0},
               1);
    put_pointers(memory, memory + 1024, memory + 1024, NULL);
    launch();
    assert_false(vg_mem_true(next, 8));
    KNOW(next, (int64_t[]){42});
    begin("somebodys_kernel");
    put_pointers(memory, NULL, NULL, NULL);
    launch();
    assert_false(vg_mem_true(next, 8));
    KNOW(next, (int64_t[]){42});
    begin("_ZN43_GLOBAL__N__f71e7945_10_SoftMax_cu_9f978f6320softmax_warp_forwardIfffLi9ELb0ELb0ELi32EEEvPT0_PKT_"
          "iiiPKbib");
    put_pointers(memory, NULL, NULL, NULL);
    put_pointers(next, NULL, NULL, NULL);
    for (unsigned i = 0; i < 3; i++)
        put_word((int32_t[]){4, 32, 32}[i]);
    launch();
    IS(next, (int64_t[]){42});
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fill_and_range),
        cmocka_unit_test(test_logic),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_casts),
        cmocka_unit_test(test_strides),
        cmocka_unit_test(test_concatenation),
        cmocka_unit_test(test_cumulative_sum_and_count),
        cmocka_unit_test(test_ordinary),
        cmocka_unit_test(test_real),
        cmocka_unit_test(test_places),
    };
    shim_card("memory 67108864\n");
    if (cudaMalloc((void **)&memory, 4096) != VG_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shim_done();
    return failed;
}
