/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_tensor_lists.c - kernels that say in a structure how much they go over: lists of tensors, by every layout, against structures declared as
 * their sources declare them, and reductions.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "shim/cuda/operator_rules.h"
#include "shim_card.h"

enum { CHUNK = 65536, PARAMS = 4 };

#define LISTS(name, depth, tensors, blocks, number, index, word, last)                                                 \
    struct name {                                                                                                      \
        const void *address[depth][tensors];                                                                           \
        number numbers[tensors];                                                                                       \
        word index block_to_tensor[blocks];                                                                            \
        int32_t block_to_chunk[blocks];                                                                                \
        last                                                                                                           \
    }
#define NO_WORD
#define SCALARS(tensors) double scalar[tensors];
#define FIRST int32_t first_tensor;

LISTS(cuda12_of_2, 2, 64, 320, int64_t, unsigned char, NO_WORD, FIRST);
LISTS(cuda13_of_3, 3, 336, 2240, int64_t, uint16_t, NO_WORD, FIRST);
LISTS(scalars_of_1, 1, 96, 320, int64_t, unsigned char, SCALARS(96), );
LISTS(steps_of_4, 4, 252, 2240, int64_t, uint16_t, SCALARS(252), FIRST);
LISTS(apex_of_4, 4, 36, 320, int32_t, unsigned char, NO_WORD, FIRST);

static struct maq_rec_op launch(const char *name, const void *const *argument, const uint32_t *bytes, unsigned n,
                                uint32_t blocks)
{
    struct vg_param param[PARAMS] = {{0, 0}};
    void *args[PARAMS];
    for (unsigned i = 0; i < n; i++) {
        param[i].bytes = bytes[i];
        args[i] = (void *)(uintptr_t)argument[i];
    }
    struct vg_kernel kernel = {.magic = VG_KERNEL_MAGIC, .name = (char *)(uintptr_t)name};
    kernel.code = (struct vg_code){.n_params = n, .param = param, .found = true};
    const struct vg_launch l = {.kernel = &kernel, .grid = {blocks, 1, 1}, .block = {32, 16, 1}, .args = args};
    struct maq_rec_op op = {.kind = MAQ_REC_KERNEL, .type = MAQ_REC_TYPE_OTHER};
    vg_lock();
    vg_tensor_lists_apply(&op, &l);
    vg_pytorch_apply(&op, &l);
    vg_unlock();
    return op;
}

static void expect(struct maq_rec_op op, int64_t numbers, int64_t read, int64_t written)
{
    assert_int_equal(op.kind, MAQ_REC_WORK);
    assert_int_equal(op.d[0], 0);
    assert_int_equal(op.d[1], numbers * read);
    assert_int_equal(op.d[2], numbers * written);
}

/* Two tensors, of 100,000 and 70 numbers: three chunks. */
#define FILL(t)                                                                                                        \
    do {                                                                                                               \
        (t)->numbers[0] = 100000;                                                                                      \
        (t)->numbers[1] = 70;                                                                                          \
        (t)->block_to_chunk[1] = 1;                                                                                    \
        (t)->block_to_tensor[2] = 1;                                                                                   \
    } while (0)
#define ONE(name, text, read, written)                                                                                 \
    do {                                                                                                               \
        static struct name lists;                                                                                      \
        const void *argument[] = {&lists};                                                                             \
        const uint32_t bytes[] = {sizeof lists};                                                                       \
        FILL(&lists);                                                                                                  \
        expect(launch(text, argument, bytes, 1, 3), 100070, read, written);                                            \
        expect(launch(text, argument, bytes, 1, 1), CHUNK, read, written);                                             \
    } while (0)

static void test_lists_of_tensors(void **state)
{
    (void)state;
    ONE(cuda12_of_2,
        "25multi_tensor_apply_kernelINS1_18TensorListMetadataILi2EEENS1_21BinaryOpScalarFunctorIfLi2ELi1ELi1EEE", 4, 4);
    ONE(cuda12_of_2,
        "25multi_tensor_apply_kernelINS1_18TensorListMetadataILi2EEENS1_13UnaryOpFunctorIN3c108BFloat16ELi2ELi1ELi1EEE",
        2, 2);
    ONE(cuda13_of_3,
        "25multi_tensor_apply_kernelINS1_18TensorListMetadataILi3EEENS1_24PointwiseOpScalarFunctorIfLi3ELi3ELi0EEE", 12,
        4);
    ONE(scalars_of_1,
        "25multi_tensor_apply_kernelINS1_28TensorListScalarListMetadataIdLi1EEENS1_"
        "25BinaryOpScalarListFunctorIdLi1ELi1ELi0EEE",
        4, 4);
    ONE(steps_of_4,
        "25multi_tensor_apply_kernelINS1_32FusedOptimizerTensorListMetadataILi4EEENS1_20FusedAdamMathFunctorIfLi4ELNS0_"
        "9ADAM_MODEE1E",
        16, 12);
}

static void test_lists_whose_chunk_is_said(void **state)
{
    (void)state;
    static struct apex_of_4 lists;
    const int32_t chunk = 1000;
    const void *flag = NULL, *argument[] = {&chunk, &flag, &lists};
    const uint32_t bytes[] = {sizeof chunk, sizeof flag, sizeof lists};
    FILL(&lists);
    expect(launch("_Z25multi_tensor_apply_kernelI18TensorListMetadataILi4EE11AdamFunctorIfE", argument, bytes, 3, 3),
           2070, 16, 12);
}

static void test_lists_that_are_none(void **state)
{
    (void)state;
    static struct cuda12_of_2 lists;
    const void *argument[] = {&lists};
    uint32_t bytes[] = {sizeof lists};
    static const char name[] = "25multi_tensor_apply_kernelINS1_18TensorListMetadataILi2EEENS1_7FunctorIfEE";
    FILL(&lists);
    assert_int_equal(launch("another", argument, bytes, 1, 3).kind, MAQ_REC_KERNEL);
    lists.block_to_tensor[1] = 64; /* there is no such tensor */
    assert_int_equal(launch(name, argument, bytes, 1, 3).kind, MAQ_REC_KERNEL);
    lists.block_to_tensor[1] = 0;
    bytes[0] -= 8;
    assert_int_equal(launch(name, argument, bytes, 1, 3).kind, MAQ_REC_KERNEL);
}

/* at::native::ReduceOp behind an identity of four bytes: words of the configuration as reduction.c has them. */
static void test_reductions(void **state)
{
    (void)state;
    static uint32_t words[260];
    const void *argument[] = {words};
    const uint32_t bytes[] = {sizeof words};
    uint32_t *const c = words + 1;
    c[0] = 4;
    c[1] = 4096; /* inputs of each output */
    c[2] = 30;
    c[11] = 32;
    c[12] = 16;
    c[13] = 512;
    expect(launch("_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIN3c108BFloat16ENS0_14func_wrapper_"
                  "tIfEEEjfLi4ELi4EEEEEvT1_",
                  argument, bytes, 1, 7),
           30, 4096 * 2, 4);
    c[13] = 500;
    assert_int_equal(
        launch("_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOpIfNS0_14func_wrapper_tIfEEEjfLi4ELi4EEEEEvT1_",
               argument, bytes, 1, 7)
            .kind,
        MAQ_REC_KERNEL);
}

/* Element-wise kernels: types by the function's name, by the lambda's first argument, and where neither is there by the first type in the name. */
static void test_elementwise(void **state)
{
    (void)state;
    static const int32_t n = 3000;
    static const char function[8], *pointers[3];
    static const struct {
        const char *name;
        uint32_t tensors;
        int64_t read, written;
    } cases[] = {
        {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15CUDAFunctor_addIfEESt5arrayIPcLm3EELb0EEEviT0_T1_", 3,
         8, 4},
        {"_ZN2at6native29vectorized_elementwise_kernelILi4EZNS0_27converting_copy_kernel_cudaIN3c108BFloat16EfEEvRNS_"
         "18TensorIteratorBaseE"
         "EUlS4_E_St5arrayIPcLm2EELb0EEEviT0_T1_",
         2, 2, 4},
        {"_ZN2at6native29vectorized_elementwise_kernelILi4EZZZNS0_26GeluBackwardCUDAKernelImplERNS_"
         "18TensorIteratorBaseEENKUlvE_clEvENKUlvE_"
         "clEvEUlN3c108BFloat16ES7_E_St5arrayIPcLm3EELb0EEEviT0_T1_",
         3, 4, 2},
        {"_ZN2at6native29vectorized_elementwise_kernelILi4ENS0_15AnyOtherFunctorIfEESt5arrayIPcLm2EELb0EEEviT0_T1_", 2,
         4, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const void *argument[] = {&n, function, pointers};
        const uint32_t bytes[] = {sizeof n, sizeof function, 8 * cases[i].tensors};
        expect(launch(cases[i].name, argument, bytes, 3, 6), n, cases[i].read, cases[i].written);
    }
}

static int set_up(void **state)
{
    (void)state;
    shim_card("");
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    shim_done();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists_of_tensors),    cmocka_unit_test(test_lists_whose_chunk_is_said),
        cmocka_unit_test(test_lists_that_are_none), cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_elementwise),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
