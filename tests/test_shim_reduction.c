/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_shim_reduction.c - reductions of whole numbers that the host knows are computed, and nothing else is.
 *
 * The argument of PyTorch's kernel is made here from the layout that reduction.c describes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "shim/cuda/cuda.h"
#include "shim_card.h"

#define NAME "_ZN2at6native13reduce_kernelILi512ELi1ENS0_8ReduceOp"
#define LONGS "Il"
#define LARGEST "NS0_14func_wrapper_tIlNS0_13MaxNanFunctorIlEEEEjlLi4ELi4EEEEEvT1_"
#define LEAST "NS0_14func_wrapper_tIlNS0_13MinNanFunctorIlEEEEjlLi4ELi4EEEEEvT1_"
#define SUM "NS0_14func_wrapper_tIlZNS0_11sum_functorIlllEclERNS_14TensorIteratorEEUlllE_EEjlLi4ELi4EEEEEvT1_"
#define FLOATS "IfNS0_14func_wrapper_tIfNS0_13MaxNanFunctorIfEEEEjfLi4ELi4EEEEEvT1_"
#define NARROW "IiNS0_14func_wrapper_tIiNS0_13MaxNanFunctorIiEEEEjiLi4ELi4EEEEEvT1_"

int cudaMalloc(void **p, size_t bytes);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaGetLastError(void);

enum { WORDS = 268, AT = 4, N = 5 };
struct call {
    uint32_t word[WORDS];
    struct vg_param param;
    struct vg_kernel kernel;
    void *args[1];
    struct vg_launch launch;
};
static const int64_t numbers[N] = {3, -9, 14, 2, 14};
static char *memory; /* 4 KiB of the device */

static void make(struct call *c, const char *name, uint32_t element, uint32_t n, const void *in, const void *out)
{
    memset(c, 0xa5, sizeof *c); /* what a stack holds */
    const void *place[3] = {in, out, NULL};
    uint32_t *w = c->word + AT;
    w[0] = element;
    w[1] = w[17] = n;
    w[2] = w[12] = w[16] = 1;
    w[11] = w[13] = 8;
    w[92] = element;
    memcpy(c->word + ((AT + 244) & ~1), place, sizeof place);
    c->param = (struct vg_param){0, sizeof c->word};
    c->kernel = (struct vg_kernel){.magic = VG_KERNEL_MAGIC, .name = (char *)(uintptr_t)name};
    c->kernel.code = (struct vg_code){.n_params = 1, .param = &c->param, .found = true};
    c->args[0] = c->word;
    c->launch = (struct vg_launch){.kernel = &c->kernel, .grid = {1, 1, 1}, .block = {8, 1, 1}, .args = c->args};
}

/* What the host reads at the output after the launch; -1: nothing was computed. */
static int64_t after(struct call *c, const char *out)
{
    int64_t got = 0;
    vg_lock();
    (void)vg_launch_record(&c->launch);
    vg_unlock();
    if (!vg_mem_true(out, 8))
        return -1;
    assert_int_equal(cudaMemcpy(&got, out, sizeof got, VG_COPY_D2H), VG_OK);
    return got;
}

static void know(void)
{
    assert_int_equal(cudaMemcpy(memory, numbers, sizeof numbers, VG_COPY_H2D), VG_OK);
}

static void test_values(void **state)
{
    static const struct {
        const char *name;
        int64_t want;
    } cases[] = {{NAME LONGS LARGEST, 14}, {NAME LONGS LEAST, -9}, {NAME LONGS SUM, 24}};
    struct call c;
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        know();
        make(&c, cases[i].name, 8, N, memory, memory + 512);
        assert_int_equal(after(&c, memory + 512), cases[i].want);
        assert_true(vg_mem_true(memory, sizeof numbers)); /* it has only read them */
    }
    (void)state;
}

static void test_narrow(void **state)
{
    struct call c;
    int32_t narrow[4] = {-7, -3, -4, -8}, got = 0;
    assert_int_equal(cudaMemcpy(memory, narrow, sizeof narrow, VG_COPY_H2D), VG_OK);
    make(&c, NAME NARROW, 4, 4, memory, memory + 512);
    vg_lock();
    (void)vg_launch_record(&c.launch);
    vg_unlock();
    assert_true(vg_mem_true(memory + 512, 4));
    assert_int_equal(cudaMemcpy(&got, memory + 512, 4, VG_COPY_D2H), VG_OK);
    assert_int_equal(got, -3);
    (void)state;
}

static void spoil_word(struct call *c, unsigned word, uint32_t value)
{
    c->word[AT + word] = value;
}

/* One thing is different: then the launch is a kernel like others, whose output nobody knows. */
static void test_others(void **state)
{
    struct call c;
    static const struct {
        unsigned word;
        uint32_t value;
    } spoilt[] = {{0, 4}, {1, 0}, {1, 4}, {2, 2}, {11, 16}, {12, 2}, {13, 64}, {16, 2}, {17, 4}, {92, 16}};
    for (unsigned i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
        know();
        make(&c, NAME LONGS LARGEST, 8, N, memory, memory + 512);
        spoil_word(&c, spoilt[i].word, spoilt[i].value);
        assert_int_equal(after(&c, memory + 512), -1);
    }
    know();
    make(&c, NAME FLOATS, 4, N, memory, memory + 512);
    assert_int_equal(after(&c, memory + 512), -1);
    know();
    make(&c, NAME LONGS LARGEST, 8, N, memory, &c); /* writes to no device */
    assert_int_equal(after(&c, memory + 512), -1);
    know();
    make(&c, NAME LONGS LARGEST, 8, N + 1, memory, memory + 512); /* one number more than is known */
    assert_int_equal(after(&c, memory + 512), -1);
    know();
    make(&c, NAME LONGS LARGEST, 8, N, memory, memory + 512);
    c.launch.later = true; /* in a graph */
    assert_int_equal(after(&c, memory + 512), -1);
    c.launch.later = false;
    c.param.bytes = 240 * 4; /* an argument that is too short for the layout */
    know();
    assert_int_equal(after(&c, memory + 512), -1);
    (void)state;
}

#define ADD_NUMBER                                                                                                     \
    "_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_21CUDAFunctorOnSelf_addIlEESt5arrayIPcLm2EELb0EEEviT0_T1_"
#define ADD_TWO                                                                                                        \
    "_ZN2at6native29vectorized_elementwise_kernelILi2ENS0_15CUDAFunctor_addIlEESt5arrayIPcLm3EELb0EEEviT0_T1_"

/* A sum of one element: function and pointers as the kernel is given them. */
static int64_t sum_after(const char *name, const int64_t *function, unsigned words, void *const *place, unsigned places,
                         int32_t elements)
{
    struct call c;
    struct vg_param param[3] = {{0, 4}, {8, words * 8}, {8 + words * 8, places * 8}};
    void *args[3] = {&elements, (void *)(uintptr_t)function, (void *)(uintptr_t)place};
    make(&c, name, 8, 1, memory, memory);
    c.kernel.code.n_params = 3;
    c.kernel.code.param = param;
    c.launch.args = args;
    return after(&c, place[0]);
}

static void test_sums(void **state)
{
    static const int64_t plus[2] = {100, 3}, alpha[1] = {-2};
    void *place[3] = {memory + 512, memory + 8, memory + 16};
    know();
    assert_int_equal(sum_after(ADD_NUMBER, plus, 2, place, 2, 1), -9 + 3 * 100);
    assert_true(vg_mem_true(memory, sizeof numbers)); /* it has only read them */
    assert_int_equal(sum_after(ADD_TWO, alpha, 1, place, 3, 1), -9 - 2 * 14);
    assert_true(vg_mem_true(memory, sizeof numbers));
    assert_int_equal(sum_after(ADD_NUMBER, plus, 2, place, 2, 2), -9 + 3 * 100); /* of two elements the first */
    know();
    assert_int_equal(sum_after(ADD_NUMBER, plus, 1, place, 2, 1), -1); /* another function */
    know();
    place[1] = memory + 2048; /* nobody knows what is there */
    assert_int_equal(sum_after(ADD_NUMBER, plus, 2, place, 2, 1), -1);
    know();
    place[1] = memory;
    place[2] = memory + 2048;
    assert_int_equal(sum_after(ADD_TWO, alpha, 1, place, 3, 1), -1);
    (void)state;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_values), cmocka_unit_test(test_sums),
                                       cmocka_unit_test(test_narrow), cmocka_unit_test(test_others)};
    shim_card("memory 67108864\n");
    if (cudaMalloc((void **)&memory, 4096) != VG_OK)
        return 1;
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    shim_done();
    return failed;
}
