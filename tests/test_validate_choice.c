/* SPDX-License-Identifier: Apache-2.0 */
/* test_validate_choice.c - a deployment chosen by prediction, on tables small enough to be judged by hand. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "maquette/validate_serve.h"

/* A run of 100 tokens out with a first token in 0.1 s, measured, and its TPOT as measured and predicted. */
struct given {
    int32_t tp;
    double load, measured_s, predicted_s;
};

#define MOST 8
static struct maq_validate_serve_row rows[2 * MOST];
static char names[MOST][8];

static struct maq_validate_serve table(const struct given *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        snprintf(names[i], sizeof names[i], "r%u", i);
        for (int first = 0; first < 2; first++)
            rows[2 * i + (uint32_t)first] =
                (struct maq_validate_serve_row){.id = names[i],
                                                .source = "test",
                                                .framework = "vllm",
                                                .version = "",
                                                .model = "m",
                                                .device = "d",
                                                .kind = "serving",
                                                .precision = "fp8",
                                                .tp = g[i].tp,
                                                .pp = 1,
                                                .ep = 1,
                                                .isl = 100,
                                                .osl = 100,
                                                .load = g[i].load,
                                                .metric = first ? MAQ_VALIDATE_SERVE_TTFT : MAQ_VALIDATE_SERVE_TPOT,
                                                .measured = first ? 0.1 : g[i].measured_s,
                                                .predicted = first ? 0.1 : g[i].predicted_s};
    }
    return (struct maq_validate_serve){.n = 2 * n, .rows = rows};
}

static struct maq_validate_choice *choose(const struct given *g, uint32_t n)
{
    struct maq_validate_choice *r = NULL;
    struct maq_validate_serve t = table(g, n);
    assert_int_equal(maq_validate_choice(&r, &t, NULL), MAQ_OK);
    return r;
}

static double rate(double load, double tpot_s, int tp)
{
    return load * 100 / (0.1 + 99 * tpot_s) / tp;
}

/* What is predicted exactly is chosen rightly, at every quartile, with a first token in time and without. */
static void test_exact(void **state)
{
    (void)state;
    const struct given g[] = {{1, 8, 0.02, 0.02}, {1, 16, 0.03, 0.03}, {2, 16, 0.015, 0.015}, {2, 64, 0.025, 0.025}};
    struct maq_validate_choice *r = choose(g, MAQ_COUNT(g));
    assert_int_equal(r->n_groups, 1);
    assert_int_equal(r->groups[0].deployments, 2);
    assert_int_equal(r->cases, 6);
    assert_int_equal(r->none + r->violates, 0);
    assert_true(r->regret_mean == 0 && r->tau == 1);
    assert_int_equal(r->pairs, 4); /* of runs of the same deployment none counts */
    free(r);
}

/* One deployment is no choice; neither are runs of other kinds, or without a load. */
static void test_no_choice(void **state)
{
    (void)state;
    const struct given g[] = {{1, 8, 0.02, 0.02}, {1, 16, 0.03, 0.03}, {2, 0, 0.015, 0.015}};
    struct maq_validate_choice *r = choose(g, MAQ_COUNT(g));
    assert_int_equal(r->n_groups, 0);
    assert_true(isnan(r->tau) && isnan(r->regret_mean));
    char *text = maq_validate_choice_text(r), *json = maq_validate_choice_json(r);
    assert_non_null(strstr(json, "\"cases\": 0"));
    assert_null(strstr(text, "tau"));
    free(text);
    free(json);
    free(r);
}

/* Two deployments, the better one believed to be slow: never found at its own target, given away at the wider one. */
static void test_wrong(void **state)
{
    (void)state;
    const struct given g[] = {{1, 8, 0.020, 0.030}, {2, 8, 0.025, 0.0215}};
    struct maq_validate_choice *r = choose(g, MAQ_COUNT(g));
    /* quartiles of two runs: twice the lower, and the lower again, since the middle is rounded down */
    assert_int_equal(r->cases, 6);
    assert_int_equal(r->none, 0);     /* 0.0215 s is predicted of the fastest, 0.020 is asked: */
    assert_int_equal(r->nearest, 6);  /* 0.0196 at the low end: the one that comes nearest is taken, */
    assert_int_equal(r->violates, 6); /* and takes 0.025 */
    assert_true(r->tau == 1);         /* slow or not, it has the higher rate for each of its GPUs */
    free(r);
    const struct given far[] = {{1, 8, 0.020, 0.030}, {2, 8, 0.025, 0.024}};
    r = choose(far, MAQ_COUNT(far));
    assert_int_equal(r->none, 6); /* 0.0214 at the low end */
    assert_int_equal(r->nearest + r->violates, 0);
    free(r);
    const struct given near[] = {{1, 8, 0.020, 0.021}, {2, 8, 0.025, 0.030}};
    r = choose(near, MAQ_COUNT(near));
    assert_int_equal(r->nearest, 6);
    assert_int_equal(r->none + r->violates, 0);
    assert_true(r->regret_mean == 0);
    free(r);
    const struct given three[] = {{1, 8, 0.020, 0.030}, {2, 8, 0.025, 0.022}, {4, 8, 0.026, 0.018}};
    r = choose(three, MAQ_COUNT(three)); /* targets 0.020, 0.025, 0.025 */
    assert_int_equal(r->cases, 6);
    assert_int_equal(r->none, 0);
    assert_int_equal(r->violates, 2); /* tp 4 is chosen for 0.020 and takes 0.026 */
    double lost = 1 - rate(8, 0.025, 2) / rate(8, 0.020, 1);
    assert_true(fabs(r->regret_mean - lost) < 1e-12);
    free(r);
}

/* Another order of the table changes nothing, whichever it is. */
static void test_order(void **state)
{
    (void)state;
    const struct given g[] = {{1, 8, 0.02, 0.019}, {2, 16, 0.015, 0.014}, {1, 16, 0.03, 0.02}, {2, 64, 0.025, 0.03}},
                       h[] = {g[3], g[1], g[0], g[2]};
    struct maq_validate_choice *a = choose(g, MAQ_COUNT(g)), *b = choose(h, MAQ_COUNT(h));
    assert_true(a->violates > 0 && a->regret_mean >= 0);
    assert_true(a->cases == b->cases && a->none == b->none && a->violates == b->violates &&
                a->discordant == b->discordant && a->regret_mean == b->regret_mean);
    free(a);
    free(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_no_choice),
        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
