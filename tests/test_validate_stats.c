/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_validate_stats.c - what `validate train` says about errors, over rows whose errors are known: totals, the
 * constant-utilisation rival, sweeps and their order. Rows are made here; nothing is simulated.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "validate/stat.h"
#include "validate/train/run.h"

#define ASSERT_NEAR(a, b, margin)                                                                                      \
    do {                                                                                                               \
        if (!(fabs((a) - (b)) <= (margin)))                                                                            \
            fail_msg("%s is %.17g, not %.17g", #a, (double)(a), (double)(b));                                          \
    } while (0)

#define TIME MAQ_VALIDATE_TIME
#define MEMORY MAQ_VALIDATE_MEMORY
#define ALL MAQ_VALIDATE_ALL

/* A row that measured `measured` seconds and is predicted to take `predicted`. */
static struct maq_validate_row row(const char *source, const char *model, const char *device, double measured,
                                   double predicted)
{
    struct maq_validate_row r = {.id = "",
                                 .source = source,
                                 .framework = "F 1.0",
                                 .model = model,
                                 .gpu = device,
                                 .completeness = "full",
                                 .why = "",
                                 .job = "",
                                 .devices = 8,
                                 .simulated = true,
                                 .tokens = 1000,
                                 .hardware_flop = 8e12,
                                 .peak_flops = 1e12};
    for (int by = 0; by < MAQ_VALIDATE_BY_COUNT; by++)
        r.label[by] = "";
    r.label[MAQ_VALIDATE_BY_SOURCE] = source;
    r.label[MAQ_VALIDATE_BY_DEVICE] = device;
    r.label[MAQ_VALIDATE_BY_SIZE] = "1-64";
    r.points[TIME] =
        (struct maq_validate_point){.measured = measured, .predicted = predicted, .error = predicted / measured - 1};
    r.points[MEMORY].skip = MAQ_VALIDATE_SKIP_NOT_MEASURED;
    return r;
}

/* Free with maq_validate_free; the rows are borrowed. */
static const struct maq_validate_result *summarize(const struct maq_validate_row *rows, uint32_t n)
{
    struct maq_validate_owner *owner = calloc(1, sizeof *owner);
    struct maq_diag *diag = maq_diag_new();
    maq_arena_init(&owner->arena, 0);
    owner->result.table = "t";
    owner->result.rows = rows;
    owner->result.n_rows = n;
    assert_int_equal(maq__validate_summarize(owner, diag), MAQ_OK);
    maq_diag_free(diag);
    return &owner->result;
}

static void test_statistics(void **state)
{
    double e[] = {0.1, -0.3, 0.2, -0.2};
    struct maq_validate_stat s = maq__validate_stat(e, 4);
    assert_int_equal(s.n, 4);
    ASSERT_NEAR(s.median, 0.2, 1e-12);
    ASSERT_NEAR(s.mean, 0.2, 1e-12);
    ASSERT_NEAR(s.p90, 0.27, 1e-12);
    ASSERT_NEAR(s.bias, -0.05, 1e-12);
    ASSERT_NEAR(s.median_signed, -0.05, 1e-12);
    s = maq__validate_stat(e, 0);
    assert_true(isnan(s.median) && isnan(s.bias) && s.n == 0);
}

/* 100 rows of one source and one of another, errors known: totals by hand. */
static void test_totals(void **state)
{
    struct maq_validate_row rows[101];
    for (int i = 0; i < 101; i++)
        rows[i] = row(i < 100 ? "many" : "one", "m", i % 2 ? "odd" : "even", 1, i < 100 ? 1 - (i + 1) / 1000.0 : 1.5);
    const struct maq_validate_result *r = summarize(rows, 101);
    assert_int_equal(r->by[MAQ_VALIDATE_BY_SOURCE].n, 2);
    assert_int_equal(r->by[MAQ_VALIDATE_BY_PRECISION].n, 0); /* no row has that label */
    ASSERT_NEAR(r->total.stats[TIME][ALL].median, 0.051, 1e-12);
    /* half of the weight lies on the hundred: the median is the largest of them, the mean is half way */
    ASSERT_NEAR(r->weighted[TIME][ALL].median, 0.1, 1e-12);
    ASSERT_NEAR(r->weighted[TIME][ALL].p90, 0.5, 1e-12);
    ASSERT_NEAR(r->weighted[TIME][ALL].mean, (0.0505 + 0.5) / 2, 1e-12);
    ASSERT_NEAR(r->weighted[TIME][ALL].bias, (-0.0505 + 0.5) / 2, 1e-12);
    assert_int_equal(r->weighted[TIME][ALL].sources, 2);
    assert_int_equal(r->total.capped[TIME][ALL].n, MAQ_VALIDATE_CAP + 1);
    assert_int_equal(r->by[MAQ_VALIDATE_BY_SIZE].groups[0].stats[TIME][ALL].n, 101);
    assert_int_equal(r->by[MAQ_VALIDATE_BY_SIZE].groups[0].capped[TIME][ALL].n, MAQ_VALIDATE_CAP + 1);
    assert_int_equal(r->total.skipped[MEMORY][MAQ_VALIDATE_SKIP_NOT_MEASURED], 101);
    assert_true(isnan(r->total.stats[MEMORY][ALL].median));
    maq_validate_free((struct maq_validate_result *)r);
}

/* The capped rows are spread over the whole table: rows 0, 3, 5, 8, ... of 100, as many of the first half as of the second. */
static void test_cap_is_even(void **state)
{
    struct maq_validate_row rows[100];
    for (int i = 0; i < 100; i++)
        rows[i] = row("s", "m", i < 50 ? "first" : "second", 1, 1);
    const struct maq_validate_result *r = summarize(rows, 100);
    const struct maq_validate_grouping *g = &r->by[MAQ_VALIDATE_BY_DEVICE];
    assert_int_equal(g->n, 2);
    for (uint32_t i = 0; i < g->n; i++)
        assert_int_equal(g->groups[i].capped[TIME][ALL].n, MAQ_VALIDATE_CAP / 2);
    maq_validate_free((struct maq_validate_result *)r);
}

/* Names with numbers come in the order of the numbers. */
static void test_order_of_groups(void **state)
{
    static const char *const sizes[] = {"513+", "65-512", "1-64"};
    struct maq_validate_row rows[3];
    for (int i = 0; i < 3; i++) {
        rows[i] = row("s", "m", "d", 1, 1);
        rows[i].label[MAQ_VALIDATE_BY_SIZE] = sizes[i];
    }
    const struct maq_validate_result *r = summarize(rows, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(r->by[MAQ_VALIDATE_BY_SIZE].groups[i].name, sizes[2 - i]);
    maq_validate_free((struct maq_validate_result *)r);
}

static void test_framework_names(void **state)
{
    static const char *const names[][2] = {{"NeMo 24.07 docs (2024-08-14)", "NeMo"},
                                           {"torchtitan (FSDP2)", "torchtitan"},
                                           {"MLPerf Training v5.1 llama31_8b (X 25.04)", "MLPerf Training"},
                                           {"Megatron-LM fork; method redis", "Megatron-LM fork"},
                                           {"InternEvo v0.2.1dev2023", "InternEvo"},
                                           {"vLLM and v8", "vLLM and"},
                                           {"", ""}};
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        struct maq_validate_row r = {.source = "", .gpu = "", .framework = names[i][0]};
        assert_true(maq__validate_label_text(&r, &arena));
        assert_string_equal(r.label[MAQ_VALIDATE_BY_FRAMEWORK], names[i][1]);
    }
    maq_arena_fini(&arena);
}

/* ---- the rival ---- */

static double mean_error(const double *u, uint32_t n, double constant)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += fabs(u[i] / constant - 1);
    return sum / n;
}

/* The closed form is no worse than any constant on a fine grid. */
static void test_best_constant(void **state)
{
    uint32_t seed = 3;
    for (int round = 0; round < 200; round++) {
        double u[12];
        struct maq_weighted scratch[12];
        uint32_t n = 1 + (uint32_t)round % 12;
        for (uint32_t i = 0; i < n; i++) {
            seed = seed * 1664525u + 1013904223u;
            u[i] = 0.05 + (seed >> 8) % 900 / 1000.0;
        }
        double best = mean_error(u, n, maq__validate_fit_utilisation(u, scratch, n));
        for (double c = 0.04; c < 1; c += 0.0007)
            assert_true(best <= mean_error(u, n, c) + 1e-12);
    }
}

/* W / (N P) is 1 s: utilisation = 1 / measured seconds. */
static void test_baseline(void **state)
{
    const struct maq_validate_row rows[] = {
        row("s", "a", "d", 2, 2.2), row("s", "a", "d", 2, 2),   row("s", "b", "d", 4, 4),
        row("s", "b", "d", 4, 4),   row("s", "b", "d", 4, 4.4), row("t", "c", "e", 8, 8),
    };
    const struct maq_validate_result *r = summarize(rows, 6);
    const struct maq_validate_baseline *b = &r->baseline;
    assert_int_equal(b->total.n, 6);
    assert_int_equal(b->n_devices, 2);
    assert_int_equal(b->n_sources, 2);
    /* device d: 1/u = 2, 2, 4, 4, 4 with weights 1/2, 1/2, 1/4, 1/4, 1/4: half of 1.75 is reached at 2 */
    ASSERT_NEAR(b->devices[0].utilisation, 0.5, 1e-15);
    ASSERT_NEAR(b->devices[0].own_mean, 0.04, 1e-12);
    ASSERT_NEAR(b->devices[0].fitted_mean, 3 * 0.5 / 5, 1e-12); /* 2 s instead of 4 */
    /* without a: 1/4, so that a is predicted 4 s instead of 2; without b: 1/2 */
    ASSERT_NEAR(b->devices[0].left_out_mean, (2 * 1.0 + 3 * 0.5) / 5, 1e-12);
    /* the only model of device e: fitted exactly; left out, all devices serve, where the constant is 1/2 */
    ASSERT_NEAR(b->devices[1].fitted_mean, 0, 1e-12);
    ASSERT_NEAR(b->devices[1].left_out_mean, 0.75, 1e-12);
    assert_true(isnan(b->total.utilisation));
    ASSERT_NEAR(b->total.left_out_mean, (2 * 1.0 + 3 * 0.5 + 0.75) / 6, 1e-12);
    maq_validate_free((struct maq_validate_result *)r);
}

/* A table of one model has nothing to learn from without it. */
static void test_baseline_of_one_model(void **state)
{
    const struct maq_validate_row rows[] = {row("s", "a", "d", 2, 2.2), row("s", "a", "d", 4, 4)};
    const struct maq_validate_result *r = summarize(rows, 2);
    assert_true(isnan(r->baseline.total.left_out_mean));
    ASSERT_NEAR(r->baseline.total.fitted_mean, 0.25, 1e-12); /* 2 s for both */
    maq_validate_free((struct maq_validate_result *)r);
}

/* ---- ranking ---- */

static void test_sweeps(void **state)
{
    struct maq_validate_row rows[14];
    for (int i = 0; i < 5; i++) /* same order, two of them twice as long and with twice the tokens */
        rows[i] = row("s", "a", "d", 1 + 0.1 * i, 10 + i);
    rows[1].tokens = rows[3].tokens = 2000;
    rows[1].points[TIME] = (struct maq_validate_point){.measured = 2.2, .predicted = 22};
    rows[3].points[TIME] = (struct maq_validate_point){.measured = 2.6, .predicted = 26};
    for (int i = 5; i < 9; i++) /* reversed: the choice costs 4 / 1 */
        rows[i] = row("s", "b", "d", i - 4, 9 - i);
    for (int i = 9; i < 13; i++) /* three rows on one count of devices, one on another: no sweep */
        rows[i] = row("t", "a", "d", 1, 1);
    rows[12].devices = 16;
    rows[13] = row("s", "a", "d", 9, 1); /* another release: not of the first sweep */
    rows[13].framework = "F 2.0";
    const struct maq_validate_result *r = summarize(rows, 14);
    assert_int_equal(r->n_sweeps, 2);
    assert_string_equal(r->sweeps[0].model, "a");
    assert_int_equal(r->sweeps[0].rows, 5);
    assert_true(r->sweeps[0].tau == 1 && r->sweeps[0].regret == 0);
    assert_true(r->sweeps[1].tau == -1 && r->sweeps[1].regret == 3);
    assert_int_equal(r->n_rankings, 1);
    assert_int_equal(r->ranking.rows, 9);
    ASSERT_NEAR(r->ranking.mean_tau, 0, 1e-15);
    ASSERT_NEAR(r->ranking.least_tau, -1, 1e-15);
    ASSERT_NEAR(r->ranking.mean_regret, 1.5, 1e-15);
    maq_validate_free((struct maq_validate_result *)r);
}

/* Repeats of one plan have no order: the sweep is listed without a tau and does not count. */
static void test_constant_prediction(void **state)
{
    const struct maq_validate_row rows[] = {row("s", "a", "d", 1, 1), row("s", "a", "d", 1.1, 1),
                                            row("s", "a", "d", 1.2, 1), row("s", "a", "d", 1.3, 1)};
    const struct maq_validate_result *r = summarize(rows, 4);
    assert_int_equal(r->n_sweeps, 1);
    assert_true(isnan(r->sweeps[0].tau));
    assert_int_equal(r->ranking.sweeps, 0);
    assert_int_equal(r->n_rankings, 0);
    char *json = maq_validate_json(r), *text = maq_validate_text(r, 3);
    json_t *root = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_null(strstr(text, "ranking of plans"));
    json_decref(root);
    free(json);
    free(text);
    maq_validate_free((struct maq_validate_result *)r);
}

/* ---- intervals ---- */

/* Ten rows measured at 1 to 10 s, stated 2.5 to 8.5 s, ends included: two below, six inside, two above. */
static void test_coverage(void **state)
{
    struct maq_validate_row rows[10];
    for (int i = 0; i < 10; i++) {
        rows[i] = row("s", "m", "d", i + 1, 5);
        rows[i].low[TIME] = i == 2 ? 3 : 2.5;
        rows[i].high[TIME] = i == 7 ? 8 : 8.5;
    }
    rows[9].points[TIME].skip = MAQ_VALIDATE_SKIP_FLAGGED; /* not compared */
    const struct maq_validate_result *r = summarize(rows, 10);
    assert_int_equal(r->total.coverage[TIME].below, 2);
    assert_int_equal(r->total.coverage[TIME].inside, 6);
    assert_int_equal(r->total.coverage[TIME].above, 1);
    assert_memory_equal(r->total.capped_coverage, r->total.coverage, sizeof r->total.coverage);
    assert_int_equal(r->total.coverage[MEMORY].inside + r->total.coverage[MEMORY].below, 0);
    char *text = maq_validate_text(r, 0);
    assert_non_null(strstr(text, "every row alike                 9     66.7     22.2     11.1"));
    free(text);
    maq_validate_free((struct maq_validate_result *)r);
}

/* ---- the worst rows ---- */

static void test_explanation(void **state)
{
    struct maq_validate_row rows[] = {row("s", "a", "d", 3, 2)};
    rows[0].bucket_share[MAQ_BUCKET_BACKWARD] = 0.5;
    rows[0].bucket_share[MAQ_BUCKET_TP] = 0.25;
    rows[0].bucket_share[MAQ_BUCKET_FORWARD] = 0.25;
    rows[0].passes = 100;
    const struct maq_validate_result *r = summarize(rows, 1);
    char *text = maq_validate_text(r, 1);
    /* 1 s missing of backward 1 s, forward 0.5 s */
    assert_non_null(strstr(text, "1.00 s missing (10.0 ms per layer and microbatch)"));
    assert_non_null(strstr(text, "backward would have to be 2.00 times as long"));
    assert_non_null(strstr(text, "forward 3.00"));
    free(text);
    rows[0].points[TIME].measured = 0.8; /* 1.2 s too much: no bucket alone is that long */
    rows[0].points[TIME].error = 1.5;
    text = maq_validate_text(r, 1);
    assert_non_null(strstr(text, "1.20 s too much (12.0 ms per layer and microbatch): more than any part"));
    free(text);
    maq_validate_free((struct maq_validate_result *)r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statistics),      cmocka_unit_test(test_totals),
        cmocka_unit_test(test_cap_is_even),     cmocka_unit_test(test_order_of_groups),
        cmocka_unit_test(test_framework_names), cmocka_unit_test(test_best_constant),
        cmocka_unit_test(test_baseline),        cmocka_unit_test(test_baseline_of_one_model),
        cmocka_unit_test(test_sweeps),          cmocka_unit_test(test_constant_prediction),
        cmocka_unit_test(test_explanation),     cmocka_unit_test(test_coverage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
