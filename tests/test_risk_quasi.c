/* SPDX-License-Identifier: Apache-2.0 */
/* test_risk_quasi.c - points that fill the unit cube evenly: intervals, squares, scramblings, sums. */
#include "base/stat/sobol.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/stat/rng.h"
#include "base/stat/special_functions.h"

/* Of 2^k points in a row from a multiple of 2^k each of 2^k intervals has one, in every dimension. */
static void test_intervals(void **state)
{
    static const uint32_t from[] = {0, 1024, 7 * 1024};
    struct maq_sobol q;
    maq_sobol_init(&q, MAQ_QUASI_DIMENSIONS, 3, 1);
    for (uint32_t d = 0; d < MAQ_QUASI_DIMENSIONS; d++)
        for (int f = 0; f < 3; f++) {
            bool seen[1024] = {0};
            for (uint32_t i = 0; i < 1024; i++) {
                double u = maq_sobol_at(&q, from[f] + i, d);
                assert_true(u > 0 && u < 1 && !seen[(int)(u * 1024)]);
                seen[(int)(u * 1024)] = true;
            }
        }
}

/* The first two dimensions are a net: of 2^10 points each box of 2^-a by 2^-(10 - a) has one. */
static void test_boxes(void **state)
{
    struct maq_sobol q;
    maq_sobol_init(&q, MAQ_QUASI_DIMENSIONS, 5, 0);
    for (int a = 0; a <= 10; a++) {
        bool seen[1024] = {0};
        for (uint32_t i = 0; i < 1024; i++) {
            int x = (int)(maq_sobol_at(&q, i, 0) * (1 << a)), y = (int)(maq_sobol_at(&q, i, 1) * (1 << (10 - a)));
            assert_false(seen[x << (10 - a) | y]);
            seen[x << (10 - a) | y] = true;
        }
    }
    /* Of 4,096 points each of 16 x 16 squares of any two dimensions has 16; five pairs of 496, of the later ones, have twice as many in half
     * of the squares. */
    uint32_t uneven = 0;
    for (uint32_t d = 0; d < MAQ_QUASI_DIMENSIONS; d++)
        for (uint32_t e = 0; e < d; e++) {
            uint32_t in[256] = {0}, off = 0;
            for (uint32_t i = 0; i < 4096; i++)
                in[(int)(maq_sobol_at(&q, i, d) * 16) * 16 + (int)(maq_sobol_at(&q, i, e) * 16)]++;
            for (int k = 0; k < 256; k++)
                off += in[k] != 16;
            assert_true(off == 0 || (d > 18 && off == 256));
            uneven += off > 0;
        }
    assert_int_equal(uneven, 5);
}

/* One point is uniform over scramblings, two of one scrambling do not repeat another's, and a smooth sum has far less error. */
static void test_scramblings(void **state)
{
    enum { TIMES = 400, POINTS = 256 };
    struct maq_sobol q;
    double first = 0, square = 0, product = 0, plain = 0;
    for (uint32_t t = 0; t < TIMES; t++) {
        double sum = 0, random = 0;
        maq_sobol_init(&q, 4, 11 + t / 10, t % 10);
        double u = maq_sobol_at(&q, 77, 2);
        first += u;
        product += (u - 0.5) * (maq_sobol_at(&q, 77, 3) - 0.5);
        for (uint32_t i = 0; i < POINTS; i++) {
            double z = 0, r = 0;
            for (uint32_t d = 0; d < 4; d++) {
                z += maq_normal_quantile(maq_sobol_at(&q, i, d));
                r += maq_normal_quantile(maq_rng_at(t, MAQ_RNG_TEST, i, d));
            }
            sum += exp(0.1 * z) / POINTS;
            random += exp(0.1 * r) / POINTS;
        }
        square += (sum - exp(0.02)) * (sum - exp(0.02)) / TIMES;
        plain += (random - exp(0.02)) * (random - exp(0.02)) / TIMES;
    }
    assert_true(fabs(first / TIMES - 0.5) < 4 * sqrt(1.0 / 12 / TIMES));
    assert_true(fabs(product / TIMES) < 4 / 12.0 / sqrt(TIMES));
    print_message("# rms error: %.2g, of random points %.2g\n", sqrt(square), sqrt(plain));
    assert_true(sqrt(square) < 0.1 * sqrt(plain));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_intervals),
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_scramblings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
