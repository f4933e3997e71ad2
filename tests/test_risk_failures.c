/* SPDX-License-Identifier: Apache-2.0 */
/* test_risk_failures.c - failures as they are written: catalogue, files, flags, and what is wrong with them. */
#include "maquette/failures.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "risk/codes.h"
#include "spec/catalogue.h"

#define DAY 86400.0

static struct maq_loaded_failures *load(const char *what)
{
    struct maq_loaded_failures *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_failures_load(&box, what, diag) != MAQ_OK)
        fail_msg("%s: %s", what, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return box;
}

static void assert_near(double got, double want, double rtol)
{
    if (!(fabs(got - want) <= rtol * fabs(want)))
        fail_msg("%.12g, not %.12g", got, want);
}

/* Per 1,000 nodes of eight devices and day. */
static double per_thousand(const struct maq_failures *f)
{
    return f->rate * 8 * DAY * 1000;
}

/*
 * Every entry loads, says where it comes from, and (TPU machines, the analyst's extremes and a rented cloud aside)
 * lies where fleets lie.
 */
static void test_catalogue(void **state)
{
    const struct maq_catalogue_entry *e;
    int inside = 0, all = 0;
    for (size_t i = 0; (e = maq_catalogue_at("variability/failures", i)) != NULL; i++) {
        struct maq_loaded_failures *box = load(e->name);
        const struct maq_failures *f = maq_failures_get(box);
        double sum = 0;
        assert_string_equal(f->name, e->name);
        assert_true(strlen(f->title) > 0 && strlen(f->source) > 0);
        for (uint32_t c = 0; c < f->n_causes; c++)
            sum += f->causes[c].share;
        assert_near(sum, 1, 1e-12);
        all++;
        inside += per_thousand(f) >= 2 && per_thousand(f) <= 8;
        maq_failures_free(box);
    }
    assert_true(all >= 12 && inside >= all - 4);
}

/* Table 5 of the Llama 3 paper: 419 unexpected interruptions on 2,048 nodes in 54 days, 148 of them faulty GPUs. */
static void test_llama3(void **state)
{
    struct maq_loaded_failures *box = load("llama-3");
    const struct maq_failures *f = maq_failures_get(box);
    double counted = 0;
    assert_near(f->rate * 16384 * 54 * DAY, 419, 1e-3);
    assert_string_equal(f->causes[0].name, "faulty GPU");
    assert_near(f->causes[0].share, 148.0 / 419, 1e-12);
    for (uint32_t c = 0; c < f->n_causes; c++) {
        assert_near(f->causes[c].share * 419, round(f->causes[c].share * 419), 1e-9);
        counted += f->causes[c].loses_node ? 0 : f->causes[c].share * 419;
    }
    assert_near(counted, 54 + 7 + 2, 1e-9); /* programs that start again on the same nodes */
    maq_failures_free(box);
}

/* Repair laws of single causes; a figure of the user's own laid over them is of all causes. */
static void test_repair_of_causes(void **state)
{
    struct maq_loaded_failures *box =
        load("llama3,causes=[{name: a, share: 1, repair: {mean: 66 h, sd: 43.7 h}}, {name: b, share: 1}]");
    const struct maq_failures *f = maq_failures_get(box);
    assert_true(f->n_causes == 2 && f->causes[0].own_repair && !f->causes[1].own_repair);
    assert_true(fabs(f->causes[0].repair.mean_s / 3600 - 66) < 0.05);
    double square = f->causes[0].repair.mean_s / f->causes[0].repair.median_s; /* lognormal: sqrt(1 + cv^2) */
    assert_true(fabs(66 * sqrt(square * square - 1) - 43.7) < 0.2);
    maq_failures_free(box);
    box = load("llama3,repair=2d");
    f = maq_failures_get(box);
    for (uint32_t i = 0; i < f->n_causes; i++)
        assert_false(f->causes[i].own_repair);
    assert_true(f->n_causes == 18 && f->repair.mean_s == 2 * DAY);
    maq_failures_free(box);
    box = load("llama3,repair=2d,causes=[{name: a, share: 1, repair: 3 h}, {name: b, share: 1}]");
    f = maq_failures_get(box);
    assert_true(f->n_causes == 2 && f->causes[0].own_repair && f->causes[0].repair.mean_s == 3 * 3600);
    maq_failures_free(box);
}

static void test_flags(void **state)
{
    struct maq_loaded_failures *box = load("rate=3.8e-3/node/day,repair=2d,detection={median: 222 s, mean: 2334 s}");
    const struct maq_failures *f = maq_failures_get(box);
    assert_near(f->rate, 3.8e-3 / 8 / DAY, 1e-12);
    assert_true(f->repair.median_s == 2 * DAY && f->repair.mean_s == 2 * DAY);
    assert_true(f->detection.median_s == 222 && f->detection.mean_s == 2334);
    maq_failures_free(box);
    box = load("llama3,shape=0.8,age=30d,devices_per_node=4");
    f = maq_failures_get(box);
    assert_true(f->shape == 0.8 && f->age_s == 30 * DAY && f->n_causes == 18);
    assert_near(f->rate * 16384 * 54 * DAY, 419, 1e-3); /* the rate was of nodes of eight */
    maq_failures_free(box);
    box = load("rate=1e-3/gpu/week");
    assert_near(maq_failures_get(box)->rate, 1e-3 / (7 * DAY), 1e-12);
    maq_failures_free(box);
    box = load("rate=0.01/node/h,devices_per_node=4,requeue={mean: 60 s, sd: 60 s}");
    f = maq_failures_get(box);
    assert_near(f->rate, 0.01 / 4 / 3600, 1e-12);
    assert_near(2 * log(f->requeue.mean_s / f->requeue.median_s), log(2), 1e-12); /* sigma^2 = ln(1 + cv^2) */
    maq_failures_free(box);
    box = load("none");
    assert_true(maq_failures_get(box)->rate == 0);
    maq_failures_free(box);
}

static void refuse(const char *what, int code)
{
    struct maq_loaded_failures *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_not_equal(maq_failures_load(&box, what, diag), MAQ_OK);
    assert_null(box);
    assert_true(maq_diag_count(diag) >= 1);
    if (maq_diag_at(diag, 0)->code != code)
        fail_msg("%s: %s", what, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
}

static void test_faults(void **state)
{
    refuse("lama3", MAQ_CODE_UNKNOWN_FAILURES);
    refuse("rate=3.8e-3", MAQ_CODE_FAILURES_RATE);
    refuse("rate=3.8e-3/node/fortnight", MAQ_CODE_FAILURES_RATE);
    refuse("rate=3.8e-3/rack/day", MAQ_CODE_FAILURES_RATE);
    refuse("rate=-1/node/day", MAQ_CODE_FAILURES_RATE);
    refuse("llama3,repair=soon", MAQ_CODE_FAILURES_FORM);
    refuse("llama3,repair={median: 10 s, mean: 5 s}", MAQ_CODE_FAILURES_FORM);
    refuse("llama3,causes=[]", MAQ_CODE_FAILURES_FORM);
    refuse("llama3,age=30d", MAQ_CODE_FAILURES_CONTRADICT);
    refuse("llama3,bursts={times: 5}", MAQ_CODE_FAILURES_CONTRADICT);
    refuse("llama3,shape=0.5,lemons={share: 0.1, times: 5}", MAQ_CODE_FAILURES_CONTRADICT);
}

/* The sizes that were measured (MLPerf v3.1, GPT-3 on H100, published to the second); growing and smooth beyond. */
static void test_startup(void **state)
{
    static const double seen[][2] = {{512, 169}, {768, 169}, {4096, 188}, {6144, 229}, {8192, 291}};
    for (int i = 0; i < 5; i++)
        assert_near(maq_startup_s(seen[i][0]), seen[i][1], 0.02);
    double last = 0;
    for (double n = 1; n < 3e5; n *= 1.1) {
        assert_true(maq_startup_s(n) > last);
        last = maq_startup_s(n);
    }
    assert_near(maq_startup_s(8193) - maq_startup_s(8192), maq_startup_s(100001) - maq_startup_s(100000), 1e-3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_catalogue), cmocka_unit_test(test_llama3), cmocka_unit_test(test_repair_of_causes),
        cmocka_unit_test(test_flags),     cmocka_unit_test(test_faults), cmocka_unit_test(test_startup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
