/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_risk_fit.c - laws by maximum likelihood, order statistics, and the law of recorded step times.
 *
 * Series are drawn from known laws and have to give them back; the recorded ones lie in MAQ_SHARED.
 *
 * maq-test: long
 */
#include "maquette/risk.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/stat/law_fit.h"
#include "base/stat/order_statistics.h"
#include "effort.h"
#include "risk/fit/series.h"
#include "temp.h"

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* n draws of a law, ascending, with equal weights. */
static struct maq_sample draw(const struct maq_law *law, uint32_t n, uint32_t entity, struct maq_arena *arena)
{
    double *value = MAQ_ARENA_NEW(arena, double, n), *weight = MAQ_ARENA_NEW(arena, double, n);
    struct maq_rng r = maq_rng_of(7, MAQ_RNG_TEST, entity);
    for (uint32_t i = 0; i < n; i++) {
        value[i] = maq_law_sample(law, &r);
        weight[i] = 1.0 / n;
    }
    qsort(value, n, sizeof *value, by_value);
    return (struct maq_sample){n, value, weight};
}

static const struct maq_fitted_law *find(const struct maq_fitted_law *laws, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(laws[i].name, name) == 0)
            return &laws[i];
    fail_msg("no %s", name);
    return NULL;
}

/* 20,000 draws give the parameters back: within four standard errors, from the Fisher information of each law. */
static void test_parameters(void **state)
{
    enum { N = 20000 };
    struct maq_arena arena;
    struct maq_fitted_law laws[MAQ_FITTED_LAWS];
    maq_arena_init(&arena, 0);
    struct maq_law law = maq_law_lognormal(3, 0.02);
    struct maq_sample s = draw(&law, N, 0, &arena);
    uint32_t n = maq_fit_laws(laws, &s, &arena);
    const struct maq_fitted_law *f = find(laws, n, "lognormal");
    assert_true(fabs(log(f->law.scale / 3)) < 4 * 0.02 / sqrt(N));
    assert_true(fabs(f->law.shape / 0.02 - 1) < 4 / sqrt(2.0 * N));
    law = maq_law_gamma(5, 0.4);
    s = draw(&law, N, 1, &arena);
    n = maq_fit_laws(laws, &s, &arena);
    f = find(laws, n, "gamma");
    assert_true(fabs(f->law.shape / 5 - 1) < 4 * sqrt(2.0 / N));
    assert_true(fabs(f->law.shape * f->law.scale / 2 - 1) < 4 / sqrt(5.0 * N));
    assert_true(f->distance < 1.95 / sqrt(N));
    law = maq_law_weibull(1.5, 2);
    s = draw(&law, N, 2, &arena);
    n = maq_fit_laws(laws, &s, &arena);
    f = find(laws, n, "weibull");
    assert_true(fabs(f->law.shape / 1.5 - 1) < 4 * 0.78 / sqrt(N));
    assert_true(fabs(f->law.scale / 2 - 1) < 4 * 1.053 / 1.5 / sqrt(N));
    maq_arena_fini(&arena);
}

/* The law that a sample comes from is at the least distance, or close to what is: within the floor. */
static void test_choice(void **state)
{
    enum { N = 4000 };
    struct maq_arena arena;
    struct maq_fitted_law laws[MAQ_FITTED_LAWS];
    struct maq_law part[] = {maq_law_lognormal(1, 0.01), maq_law_lognormal(1.4, 0.01)};
    double weight[] = {0.9, 0.1};
    struct maq_law truth[] = {maq_law_gamma(2, 1), maq_law_weibull(0.8, 3), maq_law_lognormal(0.05, 0.6),
                              maq_law_exponential(0.2), maq_law_mixture(part, weight, 2)};
    const char *names[] = {"gamma", "weibull", "lognormal shifted", "exponential shifted", "mixture of two"};
    truth[2].shift = truth[3].shift = 5;
    maq_arena_init(&arena, 0);
    for (uint32_t i = 0; i < 5; i++) {
        struct maq_sample s = draw(&truth[i], N, 10 + i, &arena);
        uint32_t n = maq_fit_laws(laws, &s, &arena);
        const struct maq_fitted_law *f = find(laws, n, names[i]);
        if (f->distance > 1.22 / sqrt(N)) /* the 10 % point of a law that is known */
            fail_msg("%s: distance %.4f", names[i], f->distance);
        for (uint32_t k = 1; k < n; k++)
            assert_true(laws[k].distance >= laws[k - 1].distance);
    }
    struct maq_sample one = {1, (double[]){2}, (double[]){1}};
    assert_int_equal(maq_fit_laws(laws, &one, &arena), 0);
    maq_arena_fini(&arena);
}

/* Binomial sums against the definition; the textbook ranks of n = 1,000, p = 0.95; what the interval covers. */
static void test_order_statistics(void **state)
{
    double sum = 0, choose = 1;
    for (int64_t k = 0; k <= 30; k++) {
        sum += choose * pow(0.3, (double)k) * pow(0.7, 30.0 - (double)k);
        assert_true(fabs(maq_binomial_cdf(k, 30, 0.3) - sum) < 1e-12);
        choose *= (30.0 - (double)k) / ((double)k + 1);
    }
    assert_int_equal(maq_order_upper(1000, 0.95, 0.95), 962);
    assert_int_equal(maq_order_upper(58, 0.95, 0.95), 0); /* 0.95^59 < 0.05 <= 0.95^58 */
    assert_int_equal(maq_order_upper(59, 0.95, 0.95), 59);
    assert_int_equal(maq_order_lower(59, 0.05, 0.95), 1);
    assert_int_equal(maq_order_lower(58, 0.05, 0.95), 0);
    enum { TRIALS = 4000, N = 200 };
    uint32_t k = maq_order_upper(N, 0.9, 0.95), good = 0;
    for (uint32_t t = 0; t < TRIALS; t++) {
        double u[N];
        for (uint32_t i = 0; i < N; i++)
            u[i] = maq_rng_at(3, MAQ_RNG_TEST, t, i);
        qsort(u, N, sizeof *u, by_value);
        good += u[k - 1] >= 0.9;
    }
    double exact = maq_binomial_cdf((int64_t)k - 1, N, 0.9);
    assert_true(exact >= 0.95 && fabs(good - TRIALS * exact) < 4 * sqrt(TRIALS * exact * (1 - exact)));
}

/* --- files --------------------------------------------------------------------------------------------------------- */

static char path_of_file[] = "/tmp/maquette-test-risk-fit-XXXXXX";

static const char *write_recorded(const char *text)
{
    strcpy(path_of_file, "/tmp/maquette-test-risk-fit-XXXXXX");
    return temp_text(path_of_file, text);
}

static struct maq_risk_fit *fit(const char *file, double holdout, struct maq_diag *diag)
{
    struct maq_risk_fit_opts opts = MAQ_RISK_FIT_OPTS_INIT;
    struct maq_risk_fit *out = NULL;
    opts.holdout = holdout;
    enum maq_status status = maq_risk_fit(&out, &file, 1, &opts, diag);
    assert_true((status == MAQ_OK) == (out != NULL));
    return out;
}

/* A warm-up of 40 slow steps, a body of CV 1 %, a spike every 100 steps, in milliseconds. */
static void test_series(void **state)
{
    enum { N = 2000 };
    char *text = malloc(N * 32), *at = text;
    struct maq_law body = maq_law_lognormal(200, 0.01);
    struct maq_rng r = maq_rng_of(1, MAQ_RNG_TEST, 77);
    at += snprintf(at, 32, "step,\"step time (ms)\",loss\n");
    for (int i = 0; i < N; i++) {
        double t = maq_law_sample(&body, &r) * (i < 40 ? 1.5 : 1) + (i % 100 == 70 ? 1000 : 0);
        at += snprintf(at, 32, "%d,%.6f,2.0\n", i, t);
    }
    struct maq_diag *diag = maq_diag_new();
    struct maq_risk_fit *f = fit(write_recorded(text), 0.5, diag);
    assert_non_null(f);
    const struct maq_risk_series *s = f->series;
    assert_int_equal(s->n, N);
    assert_int_equal(s->fitted, N / 2);
    assert_int_equal(s->judged, N / 2);
    assert_in_range(s->warm_up, 40, 60);
    assert_int_equal(s->spikes, 10); /* at 70, 170, ... 970 of the fitted half */
    assert_int_equal(s->clumps, 10);
    assert_true(fabs(s->spike_mean_s - 1.2) < 0.01);
    assert_true(fabs(s->cv - 0.01) < 0.001);
    assert_false(s->pooled);
    for (int k = 0; k < MAQ_RISK_FIGURE_COUNT; k++)
        assert_true(k == MAQ_RISK_P99 || fabs(s->figure[k].error) < 0.01); /* p99 lies where the spikes begin */
    assert_true(s->figure[MAQ_RISK_P95].low <= s->figure[MAQ_RISK_P95].predicted);
    assert_true(s->figure[MAQ_RISK_P95].predicted <= s->figure[MAQ_RISK_P95].high);
    assert_true(s->guarantee_s >= s->figure[MAQ_RISK_P95].predicted && s->guarantee_s < 0.21);
    maq_risk_fit_free(f);
    maq_diag_free(diag);
    unlink(path_of_file);
    free(text);
}

/* A regime that the fitted half does not have is seen as one long stretch; where both halves are of one law there is none. */
static void test_stretch(void **state)
{
    enum { N = 800, LATE = 37 };
    for (int late = 0; late <= LATE; late += LATE) {
        char *text = malloc(N * 32), *at = text;
        struct maq_rng r = maq_rng_of(1, MAQ_RNG_TEST, 79);
        struct maq_law body = maq_law_lognormal(2, 0.01);
        at += snprintf(at, 32, "time_s\n");
        for (int i = 0; i < N; i++)
            at += snprintf(at, 32, "%.6f\n", maq_law_sample(&body, &r) * (i >= 500 && i < 500 + late ? 1.08 : 1));
        struct maq_diag *diag = maq_diag_new();
        struct maq_risk_fit *f = fit(write_recorded(text), 0.5, diag);
        assert_non_null(f);
        assert_in_range(f->series->stretch, 0, 2);
        if (late > 0)
            assert_int_equal(f->series->held_stretch, LATE);
        else
            assert_in_range(f->series->held_stretch, 0, 2);
        maq_risk_fit_free(f);
        maq_diag_free(diag);
        unlink(path_of_file);
        free(text);
    }
}

/* What as many steps again show: 95 % of the time inside where steps are independent; with drift far more often than in the interval of the
 * figure itself. */
static void test_next(void **state)
{
    NOT_UNDER_A_SANITIZER();
    enum { N = 400, TRIALS = 300 };
    uint32_t inside[2] = {0}, plain = 0;
    for (int drifts = 0; drifts < 2; drifts++)
        for (uint32_t t = 0; t < TRIALS; t++) {
            char *text = malloc(N * 32), *at = text;
            struct maq_rng r = maq_rng_of(3, MAQ_RNG_TEST, 1000 + t);
            struct maq_law body = maq_law_lognormal(2, 0.02), walk = maq_law_normal(0, 0.001);
            double level = 0;
            at += snprintf(at, 32, "time_s\n");
            for (int i = 0; i < N; i++) {
                level += drifts ? maq_law_sample(&walk, &r) : 0;
                at += snprintf(at, 32, "%.7f\n", maq_law_sample(&body, &r) * exp(level));
            }
            struct maq_diag *diag = maq_diag_new();
            struct maq_risk_fit *f = fit(write_recorded(text), 0.5, diag);
            assert_non_null(f);
            const struct maq_risk_estimate *e = &f->series->figure[MAQ_RISK_MEAN];
            inside[drifts] += e->next_low <= e->observed && e->observed <= e->next_high;
            plain += drifts && e->low <= e->observed && e->observed <= e->high;
            maq_risk_fit_free(f);
            maq_diag_free(diag);
            unlink(path_of_file);
            free(text);
        }
    print_message("# inside: %u of %u, with drift %u (%u)\n", inside[0], (unsigned)TRIALS, inside[1], plain);
    assert_true(inside[0] >
                0.95 * TRIALS - 4 * sqrt(TRIALS * 0.95 * 0.05) - 0.03 * TRIALS); /* steps that came late weigh more */
    assert_true(inside[1] > plain + 0.15 * TRIALS);
}

static void test_constant(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_risk_fit *f = fit(write_recorded("time_s\n2\n2\n2\n2\n2\n2\n2\n2\n2\n2\n2\n2\n"), 0, diag);
    assert_non_null(f);
    assert_true(f->series->pooled && f->series->figure[MAQ_RISK_P99].predicted == 2);
    assert_true(fabs(f->series->figure[MAQ_RISK_MEAN].predicted - 2) < 1e-12 &&
                isnan(f->series->figure[MAQ_RISK_MEAN].observed));
    assert_true(isnan(f->series->guarantee_s)); /* 11 steps guarantee nothing */
    maq_risk_fit_free(f);
    unlink(path_of_file);
    char text[16 + 40 * 4] = "time_s\n"; /* 1.1 has no exact sum: neighbours are not correlated by rounding */
    for (int i = 0; i < 40; i++)
        strcat(text, "1.1\n");
    f = fit(write_recorded(text), 0, diag);
    assert_non_null(f);
    assert_true(f->series->correlation == 0 && f->series->effective > 10);
    assert_true(f->series->figure[MAQ_RISK_P50].low == 1.1 && f->series->figure[MAQ_RISK_P50].high == 1.1);
    maq_risk_fit_free(f);
    maq_diag_free(diag);
    unlink(path_of_file);
}

static void assert_says(const struct maq_diag *diag, size_t i, const char *words)
{
    const struct maq_diag_item *item = maq_diag_at(diag, i);
    if (!memmem(item->msg.ptr, item->msg.len, words, strlen(words)))
        fail_msg("no '%s' in: %.*s", words, (int)item->msg.len, item->msg.ptr);
}

static void test_faults(void **state)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"", "the file is empty"},
        {"step,loss\n1,2\n", "no column of step times"},
        {"step,time\n1,2\n", "does not say its unit"},
        {"step,time_s,other_time_ms\n1,2,3\n", "more than one column of times"},
        {"step,time_s\n1,2\n2\n", ":3: 1 values where the first line names 2 columns"},
        {"step,time_s\n1,2\n\n2,x\n", ":4: time_s is 'x', not a number"},
        {"step,time_s\n1,nan\n", ":2: time_s is 'nan', not a number"},
        {"step,time_s\n1,-3\n", ":2: a step of -3"},
        {"step,time_s\n1,3\n", "1 steps to learn from"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct maq_diag *diag = maq_diag_new();
        maq_diag_set_strict(diag, true);
        assert_null(fit(write_recorded(bad[i].text), 0, diag));
        assert_int_equal(maq_diag_count(diag), 1);
        const struct maq_diag_item *item = maq_diag_at(diag, 0);
        if (!memmem(item->msg.ptr, item->msg.len, bad[i].says, strlen(bad[i].says)))
            fail_msg("'%s' gives: %.*s", bad[i].text, (int)item->msg.len, item->msg.ptr);
        maq_diag_free(diag);
        unlink(path_of_file);
    }
    struct maq_diag *diag = maq_diag_new();
    assert_null(fit("kernels.db", 0, diag));
    assert_null(fit("/nonexistent/steps.csv", 0, diag));
    assert_int_equal(maq_diag_count(diag), 2);
    assert_null(fit("/tmp", 0, diag));
    const struct maq_diag_item *folder = maq_diag_at(diag, 2);
    assert_int_equal(folder->msg.len, strlen("cannot read '/tmp': Is a directory"));
    maq_diag_free(diag);
}

/* The same rows among good ones are left out and counted, and change nothing; more of them than good ones are no table. */
static void test_dirt(void **state)
{
    char clean[8192], dirty[8192], *c = clean, *d = dirty;
    c += sprintf(c, "step,time_s\n");
    d += sprintf(d, "step,time_s\n");
    for (int i = 0; i < 200; i++) {
        c += sprintf(c, "%d,%.3f\n", i, 2 + 0.01 * (i * 37 % 50));
        d += sprintf(d, "%d,%.3f\n", i, 2 + 0.01 * (i * 37 % 50));
        if (i == 9)
            d +=
                sprintf(d, "%d,%.3f\n[rank3] NCCL WARN timeout, retrying, 3\n10,-26.94\n", i, 2 + 0.01 * (i * 37 % 50));
        if (i == 50)
            d += sprintf(d, "step,time_s\n51,0\n51,nan\n");
    }
    strcpy(d, "199"); /* cut off in the middle of a row */
    struct maq_diag *diag = maq_diag_new();
    struct maq_risk_fit *f = fit(write_recorded(clean), 0, diag), *g = NULL;
    unlink(path_of_file);
    assert_non_null(f);
    assert_int_equal(maq_diag_count(diag), 0);
    g = fit(write_recorded(dirty), 0, diag);
    assert_non_null(g);
    assert_int_equal(maq_diag_count(diag), 1);
    assert_int_equal(maq_diag_at(diag, 0)->severity, MAQ_WARNING);
    assert_says(diag, 0,
                "200 rows: 2 lines left out that are none of the table (the first at line 13), "
                "4 rows left out with a value that cannot be (the first at line 14), 1 repetition left out (line 12)");
    for (int k = 0; k < MAQ_RISK_FIGURE_COUNT; k++)
        assert_true(f->series->figure[k].predicted == g->series->figure[k].predicted);
    maq_risk_fit_free(f);
    maq_risk_fit_free(g);
    maq_diag_free(diag);
    unlink(path_of_file);
}

/*
 * The seven recorded series: half learnt, half predicted. p95 within 3 % on all but one, whose second half has a regime of a
 * fifth of the run, 6 % slower, that the first half does not have; the mean within 1.2 % on all but the same.
 */
static void test_recorded(void **state)
{
    static const char *const names[] = {
        "gpt_gpt3_15b_8t_release_dev_dgx_h100",
        "gpt_gpt3_weekly_mcore_tp2_pp2_current_scaling_native_fp8_tp_pp_sp_tp_overlap_dev_dgx_h100",
        "gpt_gpt3_weekly_mcore_tp4_cp2_current_scaling_native_fp8_tp_sp_cp_tp_overlap_dev_dgx_h100",
        "mixtral_deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release_dev_dgx_h100",
        "mixtral_deepseekv3_proxy_flex_tp1pp4emp16etp1cp1_release_sm_dev_dgx_h100",
        "mixtral_mixtral_8x7b_alltoall_tp2pp4ep4_release_dev_dgx_h100",
        "t5_t5_release_dev_dgx_h100"};
    const char *shared = getenv("MAQ_SHARED");
    if (!shared)
        skip();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char file[512];
        struct maq_diag *diag = maq_diag_new();
        snprintf(file, sizeof file, "%s/data/variability/step_times/%s.csv", shared, names[i]);
        struct maq_risk_fit *f = fit(file, 0.5, diag);
        assert_non_null(f);
        const struct maq_risk_estimate *e = f->series->figure;
        print_message("# %.40s p50 %+.2f p95 %+.2f p99 %+.2f mean %+.2f %%\n", names[i], 100 * e[0].error,
                      100 * e[1].error, 100 * e[2].error, 100 * e[3].error);
        assert_true(i > 0 ? f->series->held_stretch <= 2 : f->series->held_stretch > 80);
        if (i > 0) {
            assert_true(fabs(e[MAQ_RISK_P95].error) < 0.03);
            assert_true(fabs(e[MAQ_RISK_MEAN].error) < 0.012);
        }
        maq_risk_fit_free(f);
        maq_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters), cmocka_unit_test(test_choice),  cmocka_unit_test(test_order_statistics),
        cmocka_unit_test(test_series),     cmocka_unit_test(test_stretch), cmocka_unit_test(test_next),
        cmocka_unit_test(test_constant),   cmocka_unit_test(test_faults),  cmocka_unit_test(test_dirt),
        cmocka_unit_test(test_recorded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
