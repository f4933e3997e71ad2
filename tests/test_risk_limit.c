/* SPDX-License-Identifier: Apache-2.0 */
/* test_risk_limit.c - the guarantee of a step: how often it holds, how few values give one, and that it is no looser than it must be. */
#include "effort.h"
#include "risk/step/tolerance_limit.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/stat/maximum.h"
#include "base/stat/rng.h"
#include "base/stat/special_functions.h"

static void test_mean(void **state)
{
    assert_true(maq_limit_mean(MAQ_RISK_BOUND_LEAST) >= 0 && maq_limit_mean(MAQ_RISK_BOUND_LEAST - 1) < 0);
    static const uint32_t n[] = {60, 200, 5000, 1000000};
    for (size_t i = 0; i < MAQ_COUNT(n); i++) {
        double m = maq_limit_mean(n[i]);
        double distance = m * log(m / 0.05) + (1 - m) * log((1 - m) / 0.95);
        assert_true(m > 0 && m < 0.05 && fabs(distance * n[i] - log(20)) < 1e-6);
    }
}

static const struct maq_variation nothing = {.gpu_outlier_ratio = 1, .congested_ratio = 1, .spike_ratio = 1};

static void draw(double *end, const struct maq_law *law, uint32_t n, uint64_t seed)
{
    for (uint32_t i = 0; i < n; i++)
        end[i] = maq_law_upper(law, maq_rng_at(seed, MAQ_RNG_TEST, i, 0));
}

/*
 * The slowest of R replicas and noise that all share. The limit is above the true 95th percentile in 95 % of samples or more, whatever the
 * law: a lognormal one, one with a tail that has no variance, and two values of which the slow one is in just 5.2 % of the steps.
 */
static void test_holds(void **state)
{
    enum { DRAWS = 2400, TIMES = SANITIZED ? 60 : 400, R = 12 };
    static const double two_values[] = {1e9, 2e9};
    double below[] = {exp(log(1 - 0.052) / R), 1};
    struct maq_law pool = maq_law_pool(two_values, 2);
    pool.below = below;
    const struct maq_law laws[] = {maq_law_lognormal(1e9, 0.02), maq_law_weibull(0.3, 1e7), pool};
    static const double step_cv[] = {0.01, 0, 0};
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (size_t l = 0; l < MAQ_COUNT(laws); l++) {
        double end[DRAWS], *ends = end, count = R, worst = 0;
        struct maq_variation v = nothing;
        v.step_cv = step_cv[l];
        struct maq_limit_regime regime = {.share = 1, .end_ns = &ends};
        struct maq_limit_job job = {
            .v = &v, .regime = &regime, .n_regimes = 1, .n_kinds = 1, .count = &count, .draws = DRAWS};
        double low = laws[l].kind == MAQ_LAW_WEIBULL ? 0 : 0.9e9, high = 1e13; /* the true p95 */
        for (int i = 0; i < 200; i++) {
            double x = 0.5 * (low + high), p = 0, sigma = sqrt(log1p(v.step_cv * v.step_cv));
            enum { POINTS = 400 };
            for (int k = 0; k < POINTS; k++)
                p += maq_max_cdf(&laws[l], R, x / exp(sigma * maq_normal_quantile((k + 0.5) / POINTS))) / POINTS;
            *(p < 0.95 ? &low : &high) = x;
        }
        uint32_t held = 0;
        for (uint32_t t = 0; t < TIMES; t++) {
            struct maq_arena_mark mark = maq_arena_mark(&arena);
            struct maq_step_limit limit;
            job.seed = t + 1;
            draw(end, &laws[l], DRAWS, t + 1);
            assert_true(maq_step_limit(&limit, &job, &arena));
            held += limit.limit_ns >= high * (1 - 1e-6);
            assert_int_equal(limit.values, DRAWS / R);
            worst = fmax(worst, limit.limit_ns);
            maq_arena_reset(&arena, mark);
        }
        print_message("# law %zu: held in %u of %d\n", l, held, TIMES);
        assert_true(held >= TIMES * 0.95 - 2 * sqrt(TIMES * 0.95 * 0.05));
        if (l == 0) /* no looser than the 99.5th percentile of the slowest with all the noise there is */
            assert_true(worst < 1.04 * maq_max_quantile(&laws[l], R, 0.995));
    }
    maq_arena_fini(&arena);
}

/* So many draws as it says give a limit, one less none. */
static void test_draws(void **state)
{
    enum { DRAWS = 59 * 64 };
    static double end[DRAWS];
    double *ends = end, count[] = {60, 4};
    double *kinds[] = {ends, ends};
    struct maq_law law = maq_law_lognormal(1e9, 0.02);
    struct maq_limit_regime regime = {.share = 1, .end_ns = kinds};
    struct maq_limit_job job = {.v = &nothing, .regime = &regime, .n_regimes = 1, .n_kinds = 2, .count = count};
    struct maq_step_limit limit;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    draw(end, &law, DRAWS, 1);
    assert_true(maq_step_limit_draws(&job, MAQ_RISK_BOUND_LEAST) == DRAWS);
    job.draws = DRAWS;
    assert_true(maq_step_limit(&limit, &job, &arena) && !isnan(limit.limit_ns) && limit.values == 59);
    job.draws--;
    assert_true(maq_step_limit(&limit, &job, &arena) && isnan(limit.limit_ns) && limit.values == 58);
    maq_arena_fini(&arena);
}

/* Regimes, kinds and GPUs that are slow for a while: with nothing else the limit is a time of one of them. */
static void test_parts(void **state)
{
    enum { DRAWS = 4000 };
    static double usual[DRAWS], slow[DRAWS], late[DRAWS];
    for (int i = 0; i < DRAWS; i++) {
        usual[i] = 1e9;
        slow[i] = 1.2e9;
        late[i] = 2e9;
    }
    double *calm[] = {usual, slow}, *congested[] = {late, late};
    struct maq_limit_regime regime[] = {{0.99, 5e6, calm}, {0.01, 5e6, congested}};
    double count[] = {9, 1};
    struct maq_limit_job job = {.v = &nothing,
                                .regime = regime,
                                .n_regimes = 2,
                                .n_kinds = 1,
                                .count = count,
                                .end_ns = 1e6,
                                .seed = 3,
                                .draws = DRAWS};
    struct maq_step_limit limit;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    assert_true(maq_step_limit(&limit, &job, &arena));
    assert_true(limit.limit_ns == 1.006e9 && limit.values == DRAWS / 9); /* 1 % of the steps are congested */
    job.n_kinds = 2;
    assert_true(maq_step_limit(&limit, &job, &arena));
    assert_true(limit.limit_ns == 1.206e9 && limit.values == DRAWS / 10);
    job.n_kinds = 1;
    static const double expected[] = {0.005, 3, 1e6};
    for (int i = 0; i < 3; i++) { /* more than there are replicas: all of them */
        job.expected = expected[i];
        assert_true(maq_step_limit(&limit, &job, &arena));
        assert_true(limit.limit_ns == (i > 0 ? 1.206e9 : 1.006e9));
    }
    regime[0].share = 0.9;
    regime[1].share = 0.1;
    assert_true(maq_step_limit(&limit, &job, &arena) && limit.limit_ns == 2.006e9);
    maq_arena_fini(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean),
        cmocka_unit_test(test_holds),
        cmocka_unit_test(test_draws),
        cmocka_unit_test(test_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
