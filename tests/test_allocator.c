/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_allocator.c - the caching allocator model: rounding, pools, splitting, joining; and the binned search against a plain one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph/allocator.h"

#define KIB 1024.0
#define MIB (1024.0 * 1024.0)

static double reserved(const struct maq_allocator *a)
{
    return maq_allocator_stats(a).reserved;
}

static void test_segments(void **unused)
{
    (void)unused;
    static const struct {
        double bytes, allocated, reserved;
    } cases[] = {
        {1, 512, 2 * MIB},
        {513, 1024, 2 * MIB},
        {MIB, MIB, 2 * MIB},
        {MIB + 1, MIB + 512, 20 * MIB},
        /* what remains of a 20 MiB segment is split off when it is over 1 MiB */
        {9.9 * MIB, 10381312, 20 * MIB},
        {10 * MIB, 10 * MIB, 10 * MIB},
        {11 * MIB, 11 * MIB, 12 * MIB}, /* 1 MiB remains: not split */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct maq_allocator *a = maq_allocator_new();
        uint32_t block = maq_allocator_alloc(a, cases[i].bytes);
        assert_int_not_equal(block, 0);
        assert_true(reserved(a) == cases[i].reserved);
        double held = cases[i].bytes == 11 * MIB ? 12 * MIB : cases[i].allocated;
        assert_true(maq_allocator_stats(a).allocated == held);
        maq_allocator_release(a, block);
        assert_true(maq_allocator_stats(a).allocated == 0);
        assert_true(reserved(a) == cases[i].reserved); /* nothing goes back */
        maq_allocator_free(a);
    }
}

static void test_reuse_and_join(void **unused)
{
    (void)unused;
    struct maq_allocator *a = maq_allocator_new();
    uint32_t x = maq_allocator_alloc(a, 6 * MIB), y = maq_allocator_alloc(a, 6 * MIB),
             z = maq_allocator_alloc(a, 6 * MIB);
    assert_true(reserved(a) == 20 * MIB); /* three in one segment */
    maq_allocator_release(a, x);
    maq_allocator_release(a, z);
    uint32_t large = maq_allocator_alloc(a, 9 * MIB);
    assert_true(reserved(a) == 40 * MIB); /* the holes are 6 and 8 MiB: fragmented */
    maq_allocator_release(a, y);          /* joins with both neighbours */
    uint32_t whole = maq_allocator_alloc(a, 20 * MIB);
    assert_true(reserved(a) == 40 * MIB);
    maq_allocator_release(a, large);
    maq_allocator_release(a, whole);
    assert_true(maq_allocator_stats(a).peak_allocated == 29 * MIB);
    maq_allocator_free(a);
}

/* A repeating program settles: what later rounds add to the first one's segments is bounded; never less is reserved than used. */
static void test_steady_state(void **unused)
{
    (void)unused;
    struct maq_allocator *a = maq_allocator_new();
    uint32_t held[200];
    uint64_t state = 7;
    double after[6];
    for (int round = 0; round < 6; round++) {
        state = 7;
        for (int i = 0; i < 200; i++) {
            state = state * 6364136223846793005u + 1442695040888963407u;
            held[i] = maq_allocator_alloc(a, (double)(state >> 40) * 4);
            struct maq_allocator_stats s = maq_allocator_stats(a);
            assert_true(s.allocated <= s.reserved && s.peak_reserved >= s.reserved && s.peak_allocated >= s.allocated);
        }
        for (int i = 200; i-- > 0;)
            maq_allocator_release(a, held[i]);
        after[round] = reserved(a);
    }
    assert_true(after[5] == after[4] && after[5] <= 1.25 * after[0]);
    maq_allocator_free(a);
}

/* A block of 12 MiB is not split for 11.5: the half counts as allocated, until it is free again. */
static void test_waste(void **unused)
{
    (void)unused;
    struct maq_allocator *a = maq_allocator_new();
    uint32_t b = maq_allocator_alloc(a, 11.5 * MIB);
    struct maq_allocator_stats s = maq_allocator_stats(a);
    assert_true(s.allocated == 12 * MIB && s.waste == 0.5 * MIB && s.peak_waste == 0.5 * MIB);
    maq_allocator_release(a, b);
    s = maq_allocator_stats(a);
    assert_true(s.waste == 0 && s.peak_waste == 0.5 * MIB);
    maq_allocator_free(a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_waste), cmocka_unit_test(test_segments),
                                       cmocka_unit_test(test_reuse_and_join), cmocka_unit_test(test_steady_state)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
