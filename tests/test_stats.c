/* SPDX-License-Identifier: Apache-2.0 */
/* test_stats.c - weighted quantiles and rank correlation, against the definitions spelt out. */
#include "base/stat/summary.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/alloc.h"

static uint32_t next_random(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static int sign(double x)
{
    return (x > 0) - (x < 0);
}

/* The definition, pair by pair. */
static double tau_of_pairs(const struct maq_pair *p, size_t n)
{
    double score = 0, untied_x = 0, untied_y = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++) {
            int x = sign(p[i].x - p[j].x), y = sign(p[i].y - p[j].y);
            score += x * y;
            untied_x += x != 0;
            untied_y += y != 0;
        }
    return score / sqrt(untied_x * untied_y);
}

/* Few distinct values make many ties, many make none. */
static void test_kendall_against_pairs(void **state)
{
    uint32_t seed = 7;
    struct maq_pair pairs[60];
    for (int round = 0; round < 400; round++) {
        size_t n = 2 + next_random(&seed) % 59;
        uint32_t values_x = 1 + next_random(&seed) % 40, values_y = 1 + next_random(&seed) % 40;
        for (size_t i = 0; i < n; i++)
            pairs[i] = (struct maq_pair){next_random(&seed) % values_x, next_random(&seed) % values_y};
        double want = tau_of_pairs(pairs, n), got = 9;
        assert_true(maq_kendall_tau(&got, pairs, n));
        if (isnan(want) != isnan(got) || fabs(want - got) > 1e-12)
            fail_msg("round %d, n %zu: %.17g, not %.17g", round, n, got, want);
    }
}

/* The correlation of mean ranks, each counted by hand. */
static double rho_of_pairs(const struct maq_pair *p, size_t n)
{
    double xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        double rx = 0, ry = 0; /* twice the rank, less n + 1 */
        for (size_t j = 0; j < n; j++) {
            rx += sign(p[i].x - p[j].x);
            ry += sign(p[i].y - p[j].y);
        }
        xy += rx * ry;
        xx += rx * rx;
        yy += ry * ry;
    }
    return xy / sqrt(xx * yy);
}

static void test_spearman(void **state)
{
    uint32_t seed = 11;
    struct maq_pair pairs[60], ranks[60];
    double tau, of_ranks;
    for (int round = 0; round < 400; round++) {
        size_t n = next_random(&seed) % 60;
        uint32_t values_x = 1 + next_random(&seed) % 40, values_y = 1 + next_random(&seed) % 40;
        for (size_t i = 0; i < n; i++)
            ranks[i] = pairs[i] = (struct maq_pair){next_random(&seed) % values_x, next_random(&seed) % values_y};
        double want = rho_of_pairs(pairs, n), got = 9;
        assert_true(maq_spearman_rho(&got, ranks, n));
        if (isnan(want) != isnan(got) || fabs(want - got) > 1e-12)
            fail_msg("round %d, n %zu: %.17g, not %.17g", round, n, got, want);
        assert_true(maq_kendall_tau(&tau, pairs, n) && maq_kendall_tau(&of_ranks, ranks, n));
        assert_true(tau == of_ranks || (isnan(tau) && isnan(of_ranks))); /* ranks have the order of the values */
    }
}

static void test_kendall_by_hand(void **state)
{
    struct maq_pair same[] = {{1, 10}, {2, 20}, {3, 30}}, reversed[] = {{1, 3}, {2, 2}, {3, 1}},
                    tie[] = {{1, 1}, {2, 1}, {3, 2}}, constant[] = {{1, 5}, {2, 5}};
    double tau;
    assert_true(maq_kendall_tau(&tau, same, 3) && tau == 1);
    assert_true(maq_kendall_tau(&tau, reversed, 3) && tau == -1);
    assert_true(maq_kendall_tau(&tau, tie, 3) && fabs(tau - 2 / sqrt(6.0)) < 1e-15);
    assert_true(maq_kendall_tau(&tau, constant, 2) && isnan(tau));
    assert_true(maq_kendall_tau(&tau, same, 1) && isnan(tau));
    assert_true(maq_kendall_tau(&tau, same, 0) && isnan(tau));
}

static bool refuse(size_t bytes)
{
    return bytes == 0;
}

static void test_kendall_without_memory(void **state)
{
    struct maq_pair pairs[] = {{1, 1}, {2, 2}};
    double tau = 9;
    maq__set_alloc_gate(refuse);
    bool ok = maq_kendall_tau(&tau, pairs, 2);
    maq__set_alloc_gate(NULL);
    assert_false(ok);
}

/* Smallest value with at least q of the weight at or below it, by trying every value. */
static double quantile_by_trying(const struct maq_weighted *w, size_t n, double q)
{
    double total = 0, best = INFINITY;
    for (size_t i = 0; i < n; i++)
        total += w[i].weight;
    for (size_t i = 0; i < n; i++) {
        double below = 0;
        for (size_t j = 0; j < n; j++)
            below += w[j].value <= w[i].value ? w[j].weight : 0;
        if (below >= q * total && w[i].value < best)
            best = w[i].value;
    }
    return best;
}

static void test_weighted_quantiles(void **state)
{
    uint32_t seed = 11;
    struct maq_weighted w[50];
    for (int round = 0; round < 400; round++) {
        size_t n = 1 + next_random(&seed) % 50;
        double q = next_random(&seed) % 65 / 64.0; /* weights are multiples of 1/8: sums are exact */
        for (size_t i = 0; i < n; i++)
            w[i] = (struct maq_weighted){next_random(&seed) % 100, (1 + next_random(&seed) % 16) / 8.0};
        assert_true(quantile_by_trying(w, n, q) == maq_weighted_quantile(w, n, q));
    }
    assert_true(isnan(maq_weighted_quantile(w, 0, 0.5)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kendall_against_pairs), cmocka_unit_test(test_spearman),
        cmocka_unit_test(test_kendall_by_hand),       cmocka_unit_test(test_kendall_without_memory),
        cmocka_unit_test(test_weighted_quantiles),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
