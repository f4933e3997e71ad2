/* SPDX-License-Identifier: Apache-2.0 */
/* test_rng.c - keyed random numbers: the published answer, addresses, range, independence of what is drawn beside. */
#include "base/stat/rng.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Philox4x32-10 of a zero key and a zero counter: the first vector of Random123's kat_vectors. */
static void test_known_answer(void **state)
{
    uint32_t w[4];
    maq_rng_block(w, 0, 0, 0, 0);
    assert_int_equal(w[0], 0x6627e8d5u);
    assert_int_equal(w[1], 0xe169c58du);
    assert_int_equal(w[2], 0xbc57ac4cu);
    assert_int_equal(w[3], 0x9b00dbd8u);
    maq_rng_block(w, UINT64_MAX, UINT32_MAX, UINT32_MAX, UINT64_MAX); /* and the second: all ones */
    assert_int_equal(w[0], 0x408f276du);
    assert_int_equal(w[1], 0x41c83b0eu);
    assert_int_equal(w[2], 0xa20bc7c6u);
    assert_int_equal(w[3], 0x6d5451fdu);
    maq_rng_block(w, 0x299f31d0a4093822u, 0x03707344u, 0x13198a2eu,
                  0x85a308d3243f6a88u); /* and the third: digits of pi */
    assert_int_equal(w[0], 0xd16cfe09u);
    assert_int_equal(w[1], 0x94fdccebu);
    assert_int_equal(w[2], 0x5001e420u);
    assert_int_equal(w[3], 0x24126ea1u);
}

static void test_range(void **state)
{
    assert_true(maq_rng_unit(0, 0) > 0);
    assert_true(maq_rng_unit(UINT32_MAX, UINT32_MAX) < 1);
    assert_true(1 - maq_rng_unit(UINT32_MAX, UINT32_MAX) == maq_rng_unit(0, 0));
}

/* A sequence is the numbers at draws 0, 1, 2, ...; another entity in between changes nothing. */
static void test_addresses(void **state)
{
    struct maq_rng a = maq_rng_of(11, MAQ_RNG_TEST, 3), b = maq_rng_of(11, MAQ_RNG_TEST, 4);
    for (uint64_t i = 0; i < 1000; i++) {
        assert_true(maq_rng_next(&a) == maq_rng_at(11, MAQ_RNG_TEST, 3, i));
        if (i % 3 == 0)
            assert_true(maq_rng_next(&b) == maq_rng_at(11, MAQ_RNG_TEST, 4, i / 3));
    }
    assert_true(maq_rng_at(11, MAQ_RNG_TEST, 3, 5) != maq_rng_at(12, MAQ_RNG_TEST, 3, 5));
    assert_true(maq_rng_at(11, MAQ_RNG_TEST, 3, 5) != maq_rng_at(11, MAQ_RNG_STEP, 3, 5));
}

/* Mean 1/2, variance 1/12, no correlation with the next draw nor with the neighbouring entity: |z| < 4. */
static void test_moments(void **state)
{
    enum { N = 200000 };
    double sum = 0, square = 0, next = 0, beside = 0;
    struct maq_rng r = maq_rng_of(1, MAQ_RNG_TEST, 0);
    double before = maq_rng_at(1, MAQ_RNG_TEST, 9, 0) - 0.5;
    for (uint64_t i = 0; i < N; i++) {
        double u = maq_rng_next(&r) - 0.5;
        sum += u;
        square += u * u;
        next += u * before;
        beside += u * (maq_rng_at(1, MAQ_RNG_TEST, 1, i) - 0.5);
        before = u;
    }
    assert_true(fabs(sum / sqrt(N / 12.0)) < 4);
    assert_true(fabs((square - N / 12.0) / sqrt(N / 180.0)) < 4);
    assert_true(fabs(next / sqrt(N / 144.0)) < 4);
    assert_true(fabs(beside / sqrt(N / 144.0)) < 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_answer),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_addresses),
        cmocka_unit_test(test_moments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
