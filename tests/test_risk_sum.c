/* SPDX-License-Identifier: Apache-2.0 */
/* test_risk_sum.c - sums of independent values: closed forms, the slowest of a group, chances, and what does not fit. */
#include "base/stat/law_sum.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/stat/maximum.h"
#include "base/stat/special_functions.h"

static struct maq_arena arena;

static void near(double got, double want, double room, const char *what)
{
    if (!(fabs(got - want) <= room))
        fail_msg("%s: %.12g, not %.12g within %g", what, got, want, room);
}

/* `count` values of a law on a grid of width h, from low to high. */
static struct maq_grid sum_of(const struct maq_law *law, double group, uint32_t count, double h, double low,
                              double high)
{
    struct maq_law_sum s;
    struct maq_grid g = {0};
    assert_true(maq_law_sum_init(&s, h, (high - low) / h, &arena) && maq_law_sum_add(&s, law, group, count));
    assert_true(maq_law_sum_finish(&g, &s, low, &arena));
    return g;
}

static void moments(double *mean, double *variance, const struct maq_grid *g)
{
    double sum = 0, square = 0;
    for (uint32_t i = 0; i < g->n; i++)
        sum += g->mass[i] * ((double)g->first + i) * g->h;
    for (uint32_t i = 0; i < g->n; i++)
        square += g->mass[i] * (((double)g->first + i) * g->h - sum) * (((double)g->first + i) * g->h - sum);
    *mean = sum;
    *variance = square;
}

/* The x that a share p of the sum is up to, linear in the cell. */
static double quantile(const struct maq_grid *g, double p)
{
    double below = 0;
    for (uint32_t i = 0; i < g->n; i++) {
        if (below + g->mass[i] >= p)
            return ((double)g->first + i + (p - below) / g->mass[i] - 0.5) * g->h;
        below += g->mass[i];
    }
    return NAN;
}

/* E4: 100 of Gamma(4, 1/4) are Gamma(400, 1/4). 30 exponentials are Erlang's law. Normal laws add up to one. */
static void test_closed_forms(void **state)
{
    static const struct {
        double share, value;
    } e4[] = {{0.5, 99.91667902}, {0.95, 108.36392526}, {0.99, 111.99803196}, {0.999, 116.16611504}};
    struct maq_law gamma = maq_law_gamma(4, 0.25), one = maq_law_exponential(1), normal = maq_law_normal(3, 0.1);
    struct maq_grid g = sum_of(&gamma, 1, 100, 0.002, 60, 140);
    for (size_t i = 0; i < MAQ_COUNT(e4); i++)
        near(quantile(&g, e4[i].share), e4[i].value, 1e-4, "sum of 100 gamma values");
    g = sum_of(&one, 1, 30, 0.002, 0, 110);
    struct maq_law erlang = maq_law_gamma(30, 1);
    for (int i = 1; i < 1000; i++)
        near(quantile(&g, i / 1000.0), maq_law_quantile(&erlang, i / 1000.0), 1e-4, "Erlang");
    g = sum_of(&normal, 1, 256, 0.1 / 16, 748, 808);
    near(quantile(&g, 0.5), 768, 1e-6, "median of 256 normal values");
    near(quantile(&g, 0.999), 768 + 1.6 * maq_normal_quantile(0.999), 2e-3, "p99.9 of 256 normal values");
    double rest = 0,
           at = 768 + 6 * 1.6 + 0.3 * g.h; /* six deviations: 1e-9, of which the rounding takes no digit that shows */
    for (uint32_t i = 0; i < g.n; i++)
        rest += ((double)g.first + i) * g.h > at ? g.mass[i] : 0;
    double last = ceil(at / g.h) * g.h - 0.5 * g.h; /* where the first of these cells begins */
    near(rest / maq_normal_cdf(-(last - 768) / (1.6 * sqrt(1 + 1.0 / 256 / 6))), 1, 1e-3, "the tail");
}

/* Different parts; each the slowest of a group: means add up exactly, variances but for what the grid adds. */
static void test_slowest(void **state)
{
    enum { GROUP = 8, A = 64, B = 3 };
    struct maq_law a = maq_law_lognormal(1, 0.02), b = maq_law_weibull(1.5, 4);
    double mean[2], variance[2], got, spread, h = 0.01;
    struct maq_law_sum s;
    struct maq_grid g = {0};
    maq_max_moments(&mean[0], &variance[0], &a, GROUP);
    maq_max_moments(&mean[1], &variance[1], &b, GROUP);
    double sum = A * mean[0] + B * mean[1], square = A * variance[0] + B * variance[1];
    assert_true(maq_law_sum_init(&s, h, 16000, &arena));
    assert_true(maq_law_sum_add(&s, &a, GROUP, A) && maq_law_sum_add(&s, &b, GROUP, B));
    assert_true(maq_law_sum_finish(&g, &s, sum - 60, &arena));
    moments(&got, &spread, &g);
    near(got, sum, 1e-4 * sum, "mean");
    assert_true(spread > square && spread < square + (A + B) * h * h / 4 * 1.1);
}

/* A body, and of n chances of q some that come up: the binomial mixture of the shifted body. */
static void test_chances(void **state)
{
    enum { N = 4096 };
    static const struct {
        double value, share;
        uint32_t n;
    } cases[] = {{0.5, 0.1, 1}, {0.037, 0.01, 40}, {0.01, 0.3, 200}, {2, 0.001, 3000}, {0, 0.5, 10}};
    static double table[N];
    for (size_t c = 0; c < MAQ_COUNT(cases); c++) {
        struct maq_law body = maq_law_lognormal(1, 0.05);
        double n = cases[c].n, q = cases[c].share, v = cases[c].value, most = fmin(n, n * q + 25 + 9 * sqrt(n * q));
        struct maq_law_sum s;
        struct maq_grid g = {0};
        assert_true(maq_law_sum_init(&s, (1.1 + v * most) / 16000, 16384, &arena) && maq_law_sum_add(&s, &body, 1, 1));
        maq_law_sum_add_chances(&s, v, q, cases[c].n);
        assert_true(maq_law_sum_finish(&g, &s, 0.5, &arena));
        maq_grid_quantiles(table, N, &g);
        for (uint32_t i = 0; i < N; i++) {
            double below = 0, p = exp(n * log1p(-q)), slack = s.h; /* within a cell of where it is */
            double low = 0;
            for (double k = 0; k <= most; k++) {
                below += p * maq_law_cdf(&body, table[i] + slack - k * v);
                low += p * maq_law_cdf(&body, table[i] - slack - k * v);
                p *= (n - k) / (k + 1) * q / (1 - q);
            }
            double want = (i + 0.5) / N;
            if (!(low < want + 1e-6 && below > want - 1e-6))
                fail_msg("case %zu, value %u: %.9g to %.9g, not %.9g", c, i, low, below, want);
            assert_true(i == 0 || table[i] >= table[i - 1]);
        }
    }
}

/* A sum needs its cells; a constant is one value; nothing is 0. */
static void test_edges(void **state)
{
    struct maq_law_sum s;
    struct maq_grid g = {0};
    struct maq_law wide = maq_law_normal(0, 1), constant = maq_law_constant(0.3);
    assert_false(maq_law_sum_init(&s, 1, MAQ_SUM_MOST + 1.0, &arena));
    assert_false(maq_law_sum_init(&s, 1, NAN, &arena));
    assert_true(maq_law_sum_init(&s, 0.01, 64, &arena) && !maq_law_sum_add(&s, &wide, 1, 2));
    assert_true(maq_law_sum_init(&s, 0.01, 64, &arena) && maq_law_sum_finish(&g, &s, -0.1, &arena));
    assert_true(g.n == 1 && g.first == 0 && g.mass[0] == 1);
    assert_true(maq_law_sum_init(&s, 0.01, 64, &arena) && maq_law_sum_add(&s, &constant, 3, 7));
    assert_true(maq_law_sum_finish(&g, &s, 1.9, &arena));
    double mean, variance;
    moments(&mean, &variance, &g);
    near(mean, 2.1, 7 * 0.01 / 16 + 1e-9, "seven constants");
    assert_true(variance <= 7 * 0.01 * 0.01 / 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_slowest),
        cmocka_unit_test(test_chances),
        cmocka_unit_test(test_edges),
    };
    maq_arena_init(&arena, 0);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    maq_arena_fini(&arena);
    return failed;
}
