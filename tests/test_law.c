/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_law.c - special functions and laws. Reference values are from 40-digit arithmetic (mpmath), except where a closed form
 * is spelt out.
 */
#include "base/stat/law.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/stat/special_functions.h"
#include "effort.h"

static void close_to(double got, double want, double relative, const char *what)
{
    if (!(fabs(got - want) <= relative * fabs(want)))
        fail_msg("%s: %.17g, not %.17g", what, got, want);
}

static void test_incomplete_gamma(void **state)
{
    static const double at[][4] = {
        {0.5, 0.1, 0.34527915398142298, 0.65472084601857702},
        {4.0, 1.0, 0.018988156876153809, 0.98101184312384619},
        {4.0, 20.0, 0.99999679628021952, 3.2037197804769984e-6},
        {400.0, 350.0, 0.0047206978123401262, 0.99527930218765987},
        {400.0, 520.0, 0.99999998137476728, 1.8625232716785703e-8},
        {20000.0, 19500.0, 0.00018327005188799396, 0.99981672994811201},
        {20000.0, 20700.0, 0.99999950972376501, 4.9027623499057308e-7},
        {1000000.0, 1003000.0, 0.99863825935378241, 0.0013617406462175915},
        {0.05, 1.0e-5, 0.57764621820569651, 0.42235378179430349},
    };
    for (size_t i = 0; i < sizeof at / sizeof *at; i++) {
        close_to(maq_gamma_p(at[i][0], at[i][1]), at[i][2], 1e-12, "P");
        close_to(maq_gamma_q(at[i][0], at[i][1]), at[i][3], 1e-12, "Q");
    }
    assert_true(maq_gamma_p(3, 0) == 0 && maq_gamma_q(3, 0) == 1 && maq_gamma_q(3, INFINITY) == 0);
    close_to(maq_digamma(0.3), -3.5025242222001331, 1e-13, "digamma");
    close_to(maq_digamma(1), -0.57721566490153286, 1e-13, "digamma");
    close_to(maq_digamma(30), 3.3844381326855249, 1e-14, "digamma");
    close_to(maq_trigamma(0.3), 12.245364546107731, 1e-13, "trigamma");
    close_to(maq_trigamma(2.5), 0.49035775610023486, 1e-13, "trigamma");
    close_to(maq_log1p_less(1e-5), -4.9999666669166647e-11, 1e-15, "ln(1 + x) - x");
    close_to(maq_log1p_less(-0.29), -0.052490308946775947, 1e-15, "ln(1 + x) - x");
}

static void test_normal(void **state)
{
    static const double tail[][2] = {{0.1, 0.46017216272297102},   {1, 0.15865525393145705},
                                     {3, 0.0013498980316300945},   {5, 2.8665157187919391e-7},
                                     {8, 6.2209605742717841e-16},  {20, 2.7536241186062337e-89},
                                     {37, 5.7255712225245768e-300}};
    for (size_t i = 0; i < sizeof tail / sizeof *tail; i++) {
        close_to(maq_normal_cdf(-tail[i][0]), tail[i][1], 1e-13, "normal tail");
        close_to(maq_normal_quantile(tail[i][1]), -tail[i][0], 1e-14, "normal quantile");
    }
    assert_true(maq_normal_quantile(0.5) == 0 && isinf(maq_normal_quantile(0)) && isinf(maq_normal_quantile(1)));
}

static const double pool_values[] = {1, 2, 2, 5, 9};
static const double weights[] = {0.25, 0.75};

static const struct maq_law *every_law(size_t *n)
{
    static struct maq_law parts[2], laws[10];
    parts[0] = maq_law_exponential(2);
    parts[1] = maq_law_normal(7, 0.5);
    laws[0] = maq_law_normal(3, 2);
    laws[1] = maq_law_lognormal(2, 0.3);
    laws[2] = maq_law_gamma(0.4, 3);
    laws[3] = maq_law_gamma(20000, 1e-4);
    laws[4] = maq_law_weibull(0.7, 2);
    laws[5] = maq_law_weibull(40, 2);
    laws[6] = maq_law_exponential(5);
    laws[7] = maq_law_lognormal(0.02, 1.5);
    laws[7].shift = 11;
    laws[8] = maq_law_gamma(3, 0.1);
    laws[8].shift = -4;
    laws[9] = maq_law_mixture(parts, weights, 2);
    laws[9].shift = 1;
    *n = 10;
    return laws;
}

/* Quantile and probability are each other's inverse on both sides, down to where doubles end. */
static void test_inverse(void **state)
{
    static const double p[] = {1e-12, 1e-6, 0.01, 0.3, 0.5, 0.8, 0.99};
    size_t n;
    const struct maq_law *laws = every_law(&n);
    for (size_t i = 0; i < n; i++) {
        assert_true(maq_law_valid(&laws[i]));
        for (size_t k = 0; k < sizeof p / sizeof *p; k++) {
            double x = maq_law_quantile(&laws[i], p[k]), y = maq_law_upper(&laws[i], p[k]);
            /* what the rounding of x alone does to the probability, plus the functions' own error */
            double room = 1e-11 + 4e-16 * fabs(x) * maq_law_pdf(&laws[i], x) / p[k];
            if (p[k] > 1e-9 || laws[i].shift == 0)
                close_to(maq_law_cdf(&laws[i], x), p[k], room, maq_law_name(laws[i].kind));
            room = 1e-11 + 4e-16 * fabs(y) * maq_law_pdf(&laws[i], y) / p[k];
            close_to(maq_law_sf(&laws[i], y), p[k], room, maq_law_name(laws[i].kind));
            close_to(maq_law_cdf(&laws[i], x) + maq_law_sf(&laws[i], x), 1, 1e-12, "both sides");
        }
    }
    struct maq_law deep = maq_law_gamma(4, 1); /* sf(700) = e^-700 (1 + 700 + 700^2/2 + 700^3/6) */
    double far = exp(-700) * (1 + 700 + 700 * 350.0 + 700 * 350.0 * 700 / 3);
    close_to(maq_law_sf(&deep, 700), far, 1e-11, "far tail");
    close_to(maq_law_upper(&deep, far), 700, 1e-13, "far quantile");
}

/* Mean and variance of a law against integrals of its quantile: midpoints of slices of probability, and for the density
 * against the slope of the distribution. */
static void test_moments(void **state)
{
    size_t n;
    const struct maq_law *laws = every_law(&n);
    for (size_t i = 0; i < n; i++) {
        double mean = maq_law_mean(&laws[i]), sum = 0, square = 0;
        int slices = laws[i].shape > 1000 ? 10000 : 200000; /* a gamma quantile at large shapes takes its time */
        for (int k = 0; k < slices; k++) {
            double x = maq_law_quantile(&laws[i], (k + 0.5) / slices) - mean;
            sum += x / slices;
            square += x * x / slices;
        }
        double variance = maq_law_variance(&laws[i]);
        bool heavy = laws[i].kind == MAQ_LAW_LOGNORMAL && laws[i].shape > 1; /* slices cut its tail off */
        if (fabs(sum) > (heavy ? 2e-4 : 2e-5) * sqrt(variance))
            fail_msg("%s %zu: mean %.9g off by %.3g", maq_law_name(laws[i].kind), i, mean, sum);
        close_to(square, variance, heavy ? 0.05 : 5e-3, "variance");
        double x = maq_law_quantile(&laws[i], 0.4), h = 1e-5 * sqrt(variance);
        close_to(maq_law_pdf(&laws[i], x), (maq_law_cdf(&laws[i], x + h) - maq_law_cdf(&laws[i], x - h)) / (2 * h),
                 1e-4, "density");
    }
    struct maq_law w = maq_law_weibull(0.7, 1);
    close_to(maq_law_mean(&w), 1.2658235060572833, 1e-13, "Weibull mean");
    close_to(maq_law_variance(&w), 3.4268355536531531, 1e-12, "Weibull variance");
}

/* The sum of 100 Gamma(4, 0.25) is Gamma(400, 0.25). */
static void test_gamma_sum(void **state)
{
    struct maq_law sum = maq_law_gamma(400, 0.25);
    close_to(maq_law_quantile(&sum, 0.5), 99.916679023616098, 1e-13, "p50");
    close_to(maq_law_quantile(&sum, 0.95), 108.36392526367242, 1e-13, "p95");
    close_to(maq_law_quantile(&sum, 0.99), 111.99803195718954, 1e-13, "p99");
    close_to(maq_law_upper(&sum, 0.001), 116.16611504330597, 1e-13, "p99.9");
}

static void test_pool(void **state)
{
    struct maq_law pool = maq_law_pool(pool_values, 5), c = maq_law_constant(4);
    assert_true(maq_law_valid(&pool) && maq_law_valid(&c));
    assert_true(maq_law_cdf(&pool, 0.9) == 0 && maq_law_cdf(&pool, 2) == 0.6);
    close_to(maq_law_sf(&pool, 5), 0.2, 1e-15, "survival");
    assert_true(maq_law_quantile(&pool, 0) == 1 && maq_law_quantile(&pool, 0.2) == 1 &&
                maq_law_quantile(&pool, 0.21) == 2);
    assert_true(maq_law_quantile(&pool, 0.6) == 2 && maq_law_quantile(&pool, 0.61) == 5 &&
                maq_law_quantile(&pool, 1) == 9);
    assert_true(maq_law_upper(&pool, 0.2) == 5 && maq_law_upper(&pool, 0.1) == 9 && maq_law_upper(&pool, 0) == 9);
    close_to(maq_law_mean(&pool), 3.8, 1e-15, "mean");
    close_to(maq_law_variance(&pool), 8.56, 1e-15, "variance");
    assert_true(isnan(maq_law_pdf(&pool, 2)));
    static const double below[] = {0.5, 0.6, 0.7, 0.9, 1};
    struct maq_law uneven = pool;
    uneven.below = below;
    assert_true(maq_law_valid(&uneven) && maq_law_cdf(&uneven, 2) == 0.7 && maq_law_quantile(&uneven, 0.5) == 1);
    assert_true(maq_law_quantile(&uneven, 0.71) == 5 && maq_law_upper(&uneven, 0.05) == 9);
    close_to(maq_law_mean(&uneven), 2.8, 1e-15, "mean"); /* 0.5 * 1 + 0.2 * 2 + 0.2 * 5 + 0.1 * 9 */
    close_to(maq_law_variance(&uneven), 6.56, 1e-14, "variance");
    assert_true(maq_law_cdf(&c, 3.9) == 0 && maq_law_cdf(&c, 4) == 1 && maq_law_sf(&c, 4) == 0);
    assert_true(maq_law_quantile(&c, 0.3) == 4 && maq_law_variance(&c) == 0);
}

/* Draws follow the law: Kolmogorov's distance of 20,000 below the 0.1 % point of its distribution, 1.95 / sqrt(n). */
static void test_sample(void **state)
{
    enum { N = 20000, BINS = 100 };
    size_t n;
    const struct maq_law *laws = every_law(&n);
    for (size_t i = 0; i < n; i++) {
        double edge[BINS], below[BINS] = {0};
        for (int b = 0; b < BINS; b++)
            edge[b] = maq_law_quantile(&laws[i], (b + 0.5) / BINS);
        struct maq_rng r = maq_rng_of(5, MAQ_RNG_TEST, (uint32_t)i);
        for (int k = 0; k < N; k++) {
            double x = maq_law_sample(&laws[i], &r);
            for (int b = BINS - 1; b >= 0 && x <= edge[b]; b--)
                below[b]++;
        }
        for (int b = 0; b < BINS; b++)
            assert_true(fabs(below[b] / N - (b + 0.5) / BINS) < 1.95 / sqrt(N));
    }
}

static void test_recipes(void **state)
{
    struct maq_law l = maq_law_lognormal_of_median_mean(222, 2334);
    close_to(l.shape, 2.169, 1e-3, "sigma"); /* the restart times of OLMo Hybrid: median 222 s, mean 2,334 s */
    close_to(maq_law_mean(&l), 2334, 1e-13, "mean");
    l = maq_law_lognormal_of_mean_cv(1, 0.02);
    close_to(maq_law_mean(&l), 1, 1e-15, "mean");
    close_to(maq_law_variance(&l), 0.0004, 1e-12, "variance");
}

static void test_invalid(void **state)
{
    struct maq_law bad[] = {maq_law_normal(0, 0),     maq_law_normal(NAN, 1),       maq_law_lognormal(1, -1),
                            maq_law_gamma(0, 1),      maq_law_weibull(INFINITY, 1), maq_law_exponential(-1),
                            maq_law_pool(weights, 0), maq_law_mixture(bad, NULL, 0)};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_false(maq_law_valid(&bad[i]));
    double descending[] = {2, 1}, heavy[] = {0.5, 0.6};
    struct maq_law pool = maq_law_pool(descending, 2), parts[] = {maq_law_normal(0, 1), maq_law_normal(1, 1)},
                   mixture = maq_law_mixture(parts, heavy, 2);
    assert_false(maq_law_valid(&pool));
    assert_false(maq_law_valid(&mixture));
}

/*
 * One server at a load of 0.8, arrivals of an exponential law with mean 1.25, service with mean 1: the mean wait in the queue is
 * rho (1 + cv^2) / (2 (1 - rho)) (Pollaczek and Khinchine): 4 with exponential service, 2 with constant, 10 with a lognormal one of
 * cv^2 = 4. Lindley's recursion; the error is that of the means of 100 batches.
 */
static void test_queue(void **state)
{
    NOT_UNDER_A_SANITIZER(); /* its laws are drawn from in test_sample */
    enum { BATCHES = 100, SIZE = 200000 };
    const struct maq_law arrival = maq_law_exponential(1.25),
                         service[] = {maq_law_exponential(1), maq_law_constant(1), maq_law_lognormal_of_mean_cv(1, 2)};
    static const double want[] = {4, 2, 10};
    for (uint32_t i = 0; i < 3; i++) {
        struct maq_rng r = maq_rng_of(5, MAQ_RNG_TEST, i);
        double wait = 0, mean = 0, square = 0;
        for (int n = 0; n < SIZE; n++) /* from empty to what is usual */
            wait = fmax(0, wait + maq_law_sample(&service[i], &r) - maq_law_sample(&arrival, &r));
        for (int b = 0; b < BATCHES; b++) {
            double sum = 0;
            for (int n = 0; n < SIZE / 4; n++) {
                sum += wait;
                wait = fmax(0, wait + maq_law_sample(&service[i], &r) - maq_law_sample(&arrival, &r));
            }
            mean += sum / (SIZE / 4) / BATCHES;
            square += sum / (SIZE / 4) * sum / (SIZE / 4) / BATCHES;
        }
        double error = sqrt((square - mean * mean) / (BATCHES - 1));
        if (fabs(mean - want[i]) > 4 * error || error > 0.05 * want[i])
            fail_msg("queue %u: %.4g +- %.2g, not %g", i, mean, error, want[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_incomplete_gamma), cmocka_unit_test(test_normal),
        cmocka_unit_test(test_inverse),          cmocka_unit_test(test_moments),
        cmocka_unit_test(test_gamma_sum),        cmocka_unit_test(test_pool),
        cmocka_unit_test(test_sample),           cmocka_unit_test(test_recipes),
        cmocka_unit_test(test_invalid),          cmocka_unit_test(test_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
