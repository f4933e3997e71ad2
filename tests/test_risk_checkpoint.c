/* SPDX-License-Identifier: Apache-2.0 */
/* test_risk_checkpoint.c - closed forms of checkpoint and restart against published values, definitions and each other. */
#include "maquette/checkpoint.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MINUTE 60.0
#define DAY 86400.0

static void assert_near(double got, double want, double tolerance)
{
    if (!(fabs(got - want) <= tolerance))
        fail_msg("%.12g, not %.12g within %g", got, want, tolerance);
}

/* Reference values in minutes, to the digits printed. */
static void test_optimal_interval(void **state)
{
    assert_near(maq_checkpoint_optimal(185.7 * MINUTE, 0.1 * MINUTE) / MINUTE, 6.027776, 1e-6);
    assert_near(maq_checkpoint_optimal(185.7 * MINUTE, 1 * MINUTE) / MINUTE, 18.610920, 1e-6);
    assert_true(isinf(maq_checkpoint_optimal((double)INFINITY, 60)));
    assert_true(maq_checkpoint_optimal(1000, 0) == 0);
}

/* Lambert's equation W e^W = -e^(-y-1) holds for W = tau / mtbf - 1, over ten decades. */
static void test_optimal_interval_solves_lambert(void **state)
{
    for (double y = 1e-9; y < 10; y *= 3) {
        double w = maq_checkpoint_optimal(1, y) - 1;
        assert_true(w > -1 && w <= 0);
        assert_near(w * exp(w + y + 1), -1, 1e-9);
    }
}

/* No interval nearby is better; Daly's series is as close as it is said to be, Young's costs what it is said to cost. */
static void test_optimal_interval_is_least(void **state)
{
    for (double y = 1e-4; y < 2; y *= 3) {
        struct maq_checkpointing c = {1, maq_checkpoint_optimal(1, y), y, 0, 0.3, MAQ_CLOCK_PAUSED};
        double best = maq_checkpoint_run(&c, 1000).mean_s, at = c.interval_s;
        for (int i = 1; i < 20; i++) {
            c.interval_s = at * (1 + 0.01 * i);
            assert_true(maq_checkpoint_run(&c, 1000).mean_s > best);
            c.interval_s = at / (1 + 0.01 * i);
            assert_true(maq_checkpoint_run(&c, 1000).mean_s > best);
        }
    }
    assert_near(maq_checkpoint_optimal_daly(1, 0.027) / maq_checkpoint_optimal(1, 0.027), 1, 6e-5);
    assert_near(maq_checkpoint_optimal_daly(1, 0.28) / maq_checkpoint_optimal(1, 0.28), 1, 3e-3);
    assert_near(maq_checkpoint_optimal_daly(1, 0.74) / maq_checkpoint_optimal(1, 0.74), 1, 0.012);
    struct maq_checkpointing young = {20, maq_checkpoint_optimal_young(20, 1), 1, 0, 0, MAQ_CLOCK_PAUSED},
                             exact = young;
    exact.interval_s = maq_checkpoint_optimal(20, 1);
    double cost = maq_checkpoint_run(&exact, 1e6).useful - maq_checkpoint_run(&young, 1e6).useful;
    assert_near(cost, 0.001, 0.0005);
}

/* The reference job: a failure in 185.5 minutes, saves of 6 s every 15 minutes, recoveries of 10, 54 days of work. */
static void test_reference_job(void **state)
{
    struct maq_checkpointing c = {185.5 * MINUTE, 15 * MINUTE, 0.1 * MINUTE, 0, 10 * MINUTE, MAQ_CLOCK_PAUSED};
    struct maq_checkpoint_run r = maq_checkpoint_run(&c, 54 * DAY);
    assert_near(r.mean_s / DAY, 59.686805, 1e-6);
    assert_near(r.sd_s / DAY, 0.272107, 1e-6);
    assert_near(r.failures, 439.637, 5e-4);
    assert_near(r.useful, 0.904723, 1e-6);
}

/* Segments of 50 and 20 minutes of a job that fails often: published means of the two conventions. */
static void test_conventions(void **state)
{
    struct maq_checkpointing c = {18, 1e-6, 0, 0, 10, MAQ_CLOCK_QUEUED};
    assert_near(maq_checkpoint_run(&c, 1).useful, 0.4444, 1e-4);
    c.clock = MAQ_CLOCK_PAUSED;
    assert_near(maq_checkpoint_run(&c, 1).useful, 0.6429, 1e-4);
    c.clock = MAQ_CLOCK_RESTARTED;
    assert_near(maq_checkpoint_run(&c, 1).useful, 0.5738, 1e-4);
    /* Daly's whole formula. */
    struct maq_checkpointing d = {40, 5, 1, 0, 7, MAQ_CLOCK_RESTARTED};
    assert_near(maq_checkpoint_run(&d, 500).mean_s, 100 * 40 * exp(7 / 40.0) * expm1(6 / 40.0), 1e-6);
    /* More failures than there is time for. */
    struct maq_checkpointing hopeless = {5, 1, 0, 0, 10, MAQ_CLOCK_QUEUED};
    assert_true(isinf(maq_checkpoint_run(&hopeless, 1).mean_s));
    /* No failures at all: work and saves, nothing else. */
    struct maq_checkpointing never = {(double)INFINITY, 10, 1, 0, 10, MAQ_CLOCK_PAUSED};
    assert_near(maq_checkpoint_run(&never, 100).mean_s, 110, 1e-12);
    assert_true(maq_checkpoint_run(&never, 100).sd_s == 0);
}

/* The three agree while losses are small. */
static void test_conventions_agree_in_the_limit(void **state)
{
    double mean[MAQ_CLOCK_COUNT];
    for (int k = 0; k < MAQ_CLOCK_COUNT; k++) {
        struct maq_checkpointing c = {1e6, 10, 0.1, 0, 5, (enum maq_failure_clock)k};
        mean[k] = maq_checkpoint_run(&c, 1e6).mean_s;
    }
    assert_near(mean[0] / mean[1], 1, 1e-9);
    assert_near(mean[2] / mean[1], 1, 1e-6);
}

/* The deviation of the limit for late saves becomes the exact one when saves count at once. */
static void test_late_saves(void **state)
{
    for (int k = 0; k < 2; k++) {
        struct maq_checkpointing c = {100, 20, 1, 0, 10, (enum maq_failure_clock)k};
        struct maq_checkpoint_run exact = maq_checkpoint_run(&c, 5000);
        c.persist_s = 1e-9;
        struct maq_checkpoint_run late = maq_checkpoint_run(&c, 5000);
        assert_near(late.mean_s / exact.mean_s, 1, 1e-9);
        assert_near(late.sd_s / exact.sd_s, 1, 1e-6);
        c.persist_s = 10;
        late = maq_checkpoint_run(&c, 5000);
        assert_near(late.mean_s / exact.mean_s, exp(0.1), 1e-12);
        assert_true(late.sd_s > exact.sd_s);
    }
}

/* Quantiles: against a normal law where there are many failures, and a jump at the certain part where there are few. */
static void test_quantiles(void **state)
{
    struct maq_checkpointing c = {185.5 * MINUTE, 15 * MINUTE, 0.1 * MINUTE, 0, 10 * MINUTE, MAQ_CLOCK_PAUSED};
    struct maq_checkpoint_run r = maq_checkpoint_run(&c, 54 * DAY);
    double p50 = maq_checkpoint_quantile(&c, 54 * DAY, 0.5), p95 = maq_checkpoint_quantile(&c, 54 * DAY, 0.95);
    assert_near((p50 - r.mean_s) / r.sd_s, 0, 0.03);
    assert_near((p95 - r.mean_s) / r.sd_s, 1.6449, 0.03);
    assert_true(p95 > r.mean_s + 1.6449 * r.sd_s); /* skewed to the right */
    struct maq_checkpointing rare = {1000, 10, 0, 0, 5, MAQ_CLOCK_PAUSED};
    assert_near(maq_checkpoint_quantile(&rare, 100, 0.9), 100, 1e-9); /* e^-0.1 of runs see no failure */
    assert_true(maq_checkpoint_quantile(&rare, 100, 0.95) > 105);
    assert_true(isnan(maq_checkpoint_quantile(&rare, 100, 1)));
}

/* One segment with at most one failure likely: P(T <= L + R + x) by hand for x < R: success, or one failure before x. */
static void test_quantile_of_one_segment(void **state)
{
    struct maq_checkpointing c = {100, 30, 0, 0, 40, MAQ_CLOCK_PAUSED};
    double p = exp(-0.3), x = 12, below = p + p * -expm1(-x / 100);
    assert_near(maq_checkpoint_quantile(&c, 30, below), 30 + 40 + x, 0.01);
}

static void test_ettr_formula(void **state)
{
    double rate = 6.5e-3 * 2000 / DAY;
    struct maq_checkpointing c = {1 / rate, 60 * MINUTE, 0, 0, 5 * MINUTE, MAQ_CLOCK_RESTARTED};
    assert_near(maq_checkpoint_ettr(&c, 0), 0.684, 5e-4);
    c.interval_s = 5 * MINUTE;
    assert_near(maq_checkpoint_ettr(&c, 0), 0.932, 5e-4);
    assert_near(maq_checkpoint_run(&c, DAY).useful, 0.935, 1e-3);
    c.mtbf_s = DAY / (2.34e-3 * 12500);
    c.interval_s = c.recover_s = 2 * MINUTE;
    assert_near(maq_checkpoint_ettr(&c, 0), 0.939, 5e-4);
    assert_near(maq_checkpoint_run(&c, DAY).useful, 0.941, 5e-4);
}

static void test_levels(void **state)
{
    double mtbf[2] = {3600, 36000}, save[2] = {2, 60}, interval[2];
    double share = maq_checkpoint_levels(interval, mtbf, save, 2);
    assert_near(interval[0], 120, 1e-9);
    assert_near(interval[1], sqrt(2 * 60 * 36000.0), 1e-9);
    assert_near(share, sqrt(4 / 3600.0) + sqrt(120 / 36000.0), 1e-12);
    /* One level is Young's rule; silent errors alone lose a whole interval instead of half of one. */
    assert_near(maq_checkpoint_levels(interval, mtbf, save, 1), 2 * save[0] / maq_checkpoint_optimal_young(3600, 2),
                1e-12);
    assert_near(maq_checkpoint_verified((double)INFINITY, 3600, 2, 0), maq_checkpoint_optimal_young(3600, 2) / sqrt(2),
                1e-9);
    assert_near(maq_checkpoint_verified(3600, (double)INFINITY, 2, 0), maq_checkpoint_optimal_young(3600, 2), 1e-9);
}

static void test_spares(void **state)
{
    assert_int_equal(maq_spares_quantile(7.76 / DAY, DAY, 0.99), 15);
    assert_int_equal(maq_spares_quantile(7.76 / DAY, DAY, 0.999), 18);
    assert_int_equal(maq_spares_quantile(7.76 / DAY, 3 * DAY, 0.99), 35);
    assert_int_equal(maq_spares_quantile(7.76 / DAY, 3 * DAY, 0.999), 40);
    assert_int_equal(maq_spares_quantile(0, DAY, 0.999), 0);
    /* The definition: the least n with P(N <= n) >= q. */
    for (double mean = 0.1; mean < 300; mean *= 2.3)
        for (double q = 0.001; q < 1; q += 0.0713) {
            double term = exp(-mean), sum = term;
            uint32_t n = 0;
            while (sum < q) {
                term *= mean / ++n;
                sum += term;
            }
            assert_int_equal(maq_spares_quantile(mean, 1, q), n);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_optimal_interval),
        cmocka_unit_test(test_optimal_interval_solves_lambert),
        cmocka_unit_test(test_optimal_interval_is_least),
        cmocka_unit_test(test_reference_job),
        cmocka_unit_test(test_conventions),
        cmocka_unit_test(test_conventions_agree_in_the_limit),
        cmocka_unit_test(test_late_saves),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_quantile_of_one_segment),
        cmocka_unit_test(test_ettr_formula),
        cmocka_unit_test(test_levels),
        cmocka_unit_test(test_spares),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
