/* SPDX-License-Identifier: Apache-2.0 */
/* test_cost_carry.c - times carried over from the device of a table to one that has none: what scales with what. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cost/analytical/analytical.h"
#include "cost/fitted/other_device.h"

#define CLOSE 1e-9

/* A made-up Hopper device: round figures, a cache of 64 MB. */
static struct maq_device device_named(const char *name)
{
    struct maq_device d = {.name = name,
                           .arch = MAQ_ARCH_HOPPER,
                           .vector_flops = 5e13,
                           .mem_bps = 4e12,
                           .l2_bytes = 64e6,
                           .l2_bps = 8e12,
                           .sms = 128,
                           .clock_hz = 2e9,
                           .host_bps = 64e9};
    d.peak_flops[MAQ_BF16] = 1e15;
    d.peak_flops[MAQ_FP8] = 2e15;
    d.sustained_flops[MAQ_BF16] = 8e14;
    return d;
}

static struct maq_op gemm(enum maq_dtype dtype, uint8_t flags, int64_t m, int64_t n, int64_t k)
{
    return (struct maq_op){.kind = MAQ_OP_GEMM, .dtype = (uint8_t)dtype, .flags = flags, .d = {m, n, k}};
}

static double carried(double t, const struct maq_op *op, enum maq_library library, const struct maq_device *from,
                      const struct maq_device *to)
{
    struct maq_fit_point there, here;
    assert_true(maq__fit_point(&there, op, from) && maq__fit_point(&here, op, to));
    return maq__other_device_s(t, op, library, &(struct maq_other_device){from, &there},
                               &(struct maq_other_device){to, &here});
}

static void assert_near(double a, double b, double off)
{
    assert_true(fabs(a / b - 1.0) <= off);
}

static void test_to_a_twin_nothing_changes(void **state)
{
    (void)state;
    struct maq_device a = device_named("a"), b = device_named("b");
    for (int64_t m = 1; m <= 1 << 16; m *= 4)
        for (int64_t n = 64; n <= 1 << 16; n *= 4)
            for (int library = MAQ_LIBRARY_TRTLLM; library < MAQ_LIBRARY_COUNT; library++) {
                struct maq_op op = gemm(MAQ_BF16, 0, m, n, 4096);
                for (double t = 1e-6; t < 1.0; t *= 10.0)
                    assert_near(carried(t, &op, (enum maq_library)library, &a, &b), t, CLOSE);
            }
}

/* A large product takes what arithmetic takes, a thin one what memory takes, an empty one what the clock makes of it. */
static void test_each_part_by_its_own(void **state)
{
    (void)state;
    struct maq_device a = device_named("a"), math = a, memory = a, clock = a;
    math.name = "math";
    math.peak_flops[MAQ_BF16] *= 0.5;
    math.sustained_flops[MAQ_BF16] *= 0.5;
    memory.name = "memory";
    memory.mem_bps *= 0.5;
    clock.name = "clock";
    clock.clock_hz *= 0.5;
    const struct maq_op large = gemm(MAQ_BF16, 0, 16384, 16384, 16384), thin = gemm(MAQ_BF16, 0, 1, 32768, 32768),
                        small = gemm(MAQ_BF16, 0, 1, 64, 64);
    assert_near(carried(12e-3, &large, MAQ_LIBRARY_VLLM, &a, &math), 24e-3, 1e-3);
    assert_near(carried(12e-3, &large, MAQ_LIBRARY_VLLM, &a, &memory), 12e-3, 1e-3);
    assert_near(carried(600e-6, &thin, MAQ_LIBRARY_VLLM, &a, &memory), 1200e-6, 1e-3);
    assert_near(carried(600e-6, &thin, MAQ_LIBRARY_VLLM, &a, &math), 600e-6, 1e-3);
    assert_near(carried(3e-6, &small, MAQ_LIBRARY_VLLM, &a, &clock), 6e-6, 0.02);
    assert_near(carried(3e-6, &small, MAQ_LIBRARY_VLLM, &a, &memory), 3e-6, 0.02);
    /* what a kernel loses grows with what bounds it, up to a limit; the rest does not */
    double lost = carried(2000e-6, &thin, MAQ_LIBRARY_VLLM, &a, &memory);
    assert_true(lost > 2000e-6 + 500e-6 && lost < 2.0 * 2000e-6);
}

/* What a datasheet promises and the power limit does not give is no arithmetic. */
static void test_rates_that_are_held_count(void **state)
{
    (void)state;
    struct maq_device a = device_named("a"), b = a;
    const struct maq_op large = gemm(MAQ_BF16, 0, 16384, 16384, 16384);
    b.name = "b";
    b.peak_flops[MAQ_BF16] *= 2.0; /* and no more of it than before */
    assert_near(carried(12e-3, &large, MAQ_LIBRARY_TRTLLM, &a, &b), 12e-3, 1e-3);
}

/* Weights of 16 MB: six copies do not fit into a cache of 64 MB, and they do into one of 160. */
static void test_loops_over_copies(void **state)
{
    (void)state;
    struct maq_device a = device_named("a"), b = a;
    const struct maq_op op = gemm(MAQ_BF16, 0, 1, 2048, 4096);
    b.name = "b";
    b.l2_bytes = 160e6;
    assert_near(carried(5e-6, &op, MAQ_LIBRARY_VLLM, &a, &b), 2.5e-6, 0.05);
    assert_near(carried(5e-6, &op, MAQ_LIBRARY_SGLANG, &a, &b), 2.5e-6, 0.05);
    const struct maq_op tiny = gemm(MAQ_BF16, 0, 1, 512, 512); /* in either */
    assert_near(carried(5e-6, &tiny, MAQ_LIBRARY_SGLANG, &a, &b), 5e-6, CLOSE);
}

/* vLLM's products in blocks are launched one by one: a slower host makes them slower, a slower clock does not. */
static void test_hosts(void **state)
{
    (void)state;
    struct maq_device a = device_named("a"), grace = a, clock = a;
    const struct maq_op op = gemm(MAQ_FP8, MAQ_OP_BLOCKS, 1, 512, 512);
    grace.name = "grace";
    grace.host_bps = 225e9;
    clock.name = "clock";
    clock.clock_hz *= 0.5;
    double host = maq_device_host_speed(&a) / maq_device_host_speed(&grace);
    assert_true(host > 1.1);
    assert_near(carried(200e-6, &op, MAQ_LIBRARY_VLLM, &a, &grace), 200e-6 * host, 0.01);
    assert_near(carried(200e-6, &op, MAQ_LIBRARY_VLLM, &a, &clock), 200e-6, CLOSE);
    assert_near(carried(5e-6, &op, MAQ_LIBRARY_TRTLLM, &a, &grace), 5e-6, CLOSE);
}

static void test_distance(void **state)
{
    (void)state;
    struct maq_device a = device_named("a"), near = a, other = a, amd = a;
    assert_true(isinf(maq__other_device_distance(&a, &a)));
    near.name = "near";
    near.mem_bps *= 0.7;
    other.name = "other";
    other.arch = MAQ_ARCH_ADA;
    amd.name = "amd";
    amd.arch = MAQ_ARCH_CDNA3;
    assert_true(maq__other_device_distance(&a, &near) > 0.3 && maq__other_device_distance(&a, &near) < MAQ_CARRY_FAR);
    assert_true(maq__other_device_distance(&a, &other) >= MAQ_CARRY_FAR); /* the same balance, and yet farther */
    assert_true(isfinite(maq__other_device_distance(&a, &other)) && isinf(maq__other_device_distance(&a, &amd)));
    assert_near(maq__other_device_distance(&near, &a), maq__other_device_distance(&a, &near), CLOSE);
}

/* More of anything is never slower, and no figure at all is no crash. */
static void test_monotone_and_finite(void **state)
{
    (void)state;
    struct maq_device a = device_named("a"), b = device_named("b"), none = {.name = "none", .arch = MAQ_ARCH_HOPPER};
    double last = 1e9;
    const struct maq_op op = gemm(MAQ_BF16, 0, 512, 4096, 4096);
    for (double more = 0.25; more < 5.0; more *= 1.1) {
        b.mem_bps = 4e12 * more;
        b.peak_flops[MAQ_BF16] = 1e15 * more;
        b.sustained_flops[MAQ_BF16] = 8e14 * more;
        b.clock_hz = 2e9 * more;
        b.l2_bytes = 64e6 * more;
        double t = carried(60e-6, &op, MAQ_LIBRARY_SGLANG, &a, &b);
        assert_true(t <= last * (1.0 + CLOSE));
        last = t;
    }
    assert_true(carried(60e-6, &op, MAQ_LIBRARY_SGLANG, &a, &none) > 0.0);
    assert_true(carried(60e-6, &op, MAQ_LIBRARY_SGLANG, &none, &a) > 0.0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_to_a_twin_nothing_changes),
        cmocka_unit_test(test_each_part_by_its_own),
        cmocka_unit_test(test_rates_that_are_held_count),
        cmocka_unit_test(test_loops_over_copies),
        cmocka_unit_test(test_hosts),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_monotone_and_finite),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
