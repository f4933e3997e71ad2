/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_slo.c - bounds on latencies: how they are written, and who keeps them.
 *
 * Every name is read; each fault has its code and its place. Goodput is counted by hand on a few requests, after the client that
 * defines it, and on a run it is between none and all, and grows with the bound.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "failing_alloc.h"
#include "maquette/serve.h"
#include "serve/codes.h"

static bool same(double a, double b)
{
    return !(a < b) && !(a > b);
}

/* ---- as they are written ---- */

static void test_every_name(void **state)
{
    (void)state;
    char text[64];
    for (int m = 0; m < MAQ_SLO_METRIC_COUNT; m++)
        for (int s = 0; s < MAQ_SLO_STATISTIC_COUNT; s++) {
            struct maq_slo slo;
            snprintf(text, sizeof text, "%s_%s < 25 ms", maq_slo_metric_name((enum maq_slo_metric)m),
                     maq_slo_statistic_name((enum maq_slo_statistic)s));
            assert_int_equal(maq_slo_read(&slo, text, NULL), MAQ_OK);
            assert_int_equal(slo.n, 1);
            assert_int_equal(slo.at[0].metric, m);
            assert_int_equal(slo.at[0].statistic, s);
            assert_true(same(slo.at[0].limit.most_s, 0.025) && !slo.at[0].limit.inclusive);
        }
    assert_string_equal(maq_slo_metric_name(MAQ_SLO_METRIC_COUNT), "unknown");
    assert_string_equal(maq_slo_statistic_name(MAQ_SLO_STATISTIC_COUNT), "unknown");
}

static void test_lists(void **state)
{
    (void)state;
    struct maq_slo slo;
    assert_int_equal(maq_slo_read(&slo, " TTFT_p95<=1.5s,tpot_mean <800us , itl_p99<= 40 ms", NULL), MAQ_OK);
    assert_int_equal(slo.n, 3);
    assert_true(slo.at[0].metric == MAQ_SLO_TTFT && slo.at[1].metric == MAQ_SLO_TPOT &&
                slo.at[2].metric == MAQ_SLO_ITL);
    assert_true(slo.at[0].limit.inclusive && !slo.at[1].limit.inclusive && slo.at[2].limit.inclusive);
    assert_true(same(slo.at[0].limit.most_s, 1.5) && same(slo.at[1].limit.most_s, 800e-6) &&
                same(slo.at[2].limit.most_s, 0.04));
}

/* The text behind "--slo ", where the fault is in it (from 1), and what the hint has. */
static const struct {
    const char *text;
    unsigned code, column;
    const char *hint;
} faults[] = {
    {"", MAQ_CODE_SLO_FORM, 1, "ttft_p95<500ms"},
    {"  ", MAQ_CODE_SLO_FORM, 1, "ttft_p95<500ms"},
    {"ttft_p95<500ms,", MAQ_CODE_SLO_FORM, 22, "ttft_p95<500ms"},
    {",ttft_p95<500ms", MAQ_CODE_SLO_FORM, 7, "ttft_p95<500ms"},
    {"ttft_p95", MAQ_CODE_SLO_FORM, 7, "ttft_p95<500ms"},
    {"ttft_p95=500ms", MAQ_CODE_SLO_FORM, 7, "ttft_p95<500ms"},
    {"ttft:500", MAQ_CODE_SLO_FORM, 7, "ttft_p95<500ms"},
    {"ttft_p95>500ms", MAQ_CODE_SLO_FORM, 7, "ttft_p95<500ms"},
    {"ttft_p95<<500ms", MAQ_CODE_SLO_FORM, 16, "ttft_p95<500ms"},
    {"ttft_p95<0ms", MAQ_CODE_SLO_FORM, 16, ""},
    {"ttft_p95<500", MAQ_CODE_BAD_QUANTITY, 16, "500ms"},
    {"ttft_p95<", MAQ_CODE_BAD_QUANTITY, 16, "500ms"},
    {"ttft_p95<500mb", MAQ_CODE_BAD_QUANTITY, 16, "500ms"},
    {"ttft_p95<-5ms", MAQ_CODE_BAD_QUANTITY, 16, "500ms"},
    {"tpot_p95<9ms, tfft_p95<500ms", MAQ_CODE_SLO_METRIC, 21, "'ttft_p95'"},
    {"p95_ttft<500ms", MAQ_CODE_SLO_METRIC, 7, "'ttft_p95'"},
    {"e2e_p99<5s", MAQ_CODE_SLO_METRIC, 7, "'e2el_p99'"},
    {"ttft<5s", MAQ_CODE_SLO_METRIC, 7, "ttft_p95"},
    {"throughput<5s", MAQ_CODE_SLO_METRIC, 7, "e2el"},
    {"<5s", MAQ_CODE_SLO_METRIC, 7, "e2el"},
    {"ttft_p95<1s,tpot_p95<1s,ttft_p95<2s", MAQ_CODE_SLO_TWICE, 31, "one"},
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(faults); i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_slo slo;
        assert_int_equal(maq_slo_read(&slo, faults[i].text, diag), MAQ_BAD_INPUT);
        assert_int_equal(slo.n, 0);
        assert_int_equal(maq_diag_count(diag), 1);
        const struct maq_diag_item *item = maq_diag_at(diag, 0);
        struct maq_place place = maq_diag_place(diag, item->at);
        if (item->code != faults[i].code || place.column != faults[i].column || place.line != 1 ||
            strcmp(place.name, "--slo") != 0)
            fail_msg("'%s': MAQ%u at %u, expected MAQ%u at %u", faults[i].text, item->code, place.column,
                     faults[i].code, faults[i].column);
        if (faults[i].hint[0] && (item->hint.len == 0 || !strstr(item->hint.ptr, faults[i].hint)))
            fail_msg("'%s': the hint is '%.*s'", faults[i].text, (int)item->hint.len, item->hint.ptr);
        maq_diag_free(diag);
    }
}

static void test_all_faults_are_said(void **state)
{
    (void)state;
    struct maq_diag *diag = maq_diag_new();
    struct maq_slo slo;
    assert_int_equal(maq_slo_read(&slo, "tfft_p95<500,tpot_p95,,itl_p99<5", diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_count(diag), 5);
    maq_diag_free(diag);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct maq_slo slo;
    asked = fail_at = 0;
    maq__set_alloc_gate(fail_nth);
    for (fail_at = 1; fail_at < 20; fail_at++) {
        asked = 0;
        enum maq_status status = maq_slo_read(&slo, "ttft_p95<500ms", NULL);
        assert_true(status == MAQ_OK || status == MAQ_NO_MEMORY);
        if (asked < fail_at)
            break;
        assert_int_equal(status, MAQ_NO_MEMORY);
    }
    maq__set_alloc_gate(NULL);
    assert_true(fail_at > 1 && fail_at < 20);
}

/* ---- who keeps them ---- */

static struct maq_slo read_slo(const char *text)
{
    struct maq_slo slo;
    assert_int_equal(maq_slo_read(&slo, text, NULL), MAQ_OK);
    return slo;
}

/*      arrives  first   last   tokens      TTFT    TPOT    E2EL
 *      0        0.5     1.5    11          0.5     0.1     1.5
 *      1        1.25    3.25   21          0.25    0.1     2.25
 *      2        4       4      1           2       none    2
 *      3        3.25    4.75   2           0.25    1.5     1.75
 */
static struct maq_served served[] = {{0, 0, 0.5, 1.5, 0, 0, 0, 0, 0, 0, 0},
                                     {1, 1, 1.25, 3.25, 0, 0, 0, 0, 0, 0, 0},
                                     {2, 2, 4, 4, 0, 0, 0, 0, 0, 0, 0},
                                     {3, 3, 3.25, 4.75, 0, 0, 0, 0, 0, 0, 0}};
static const struct maq_request sent[] = {
    {.prompt = 1, .output = 11}, {.prompt = 1, .output = 21}, {.prompt = 1, .output = 1}, {.prompt = 1, .output = 2}};

static struct maq_slo_outcome judge(const char *text)
{
    const struct maq_requests requests = {.at = sent, .n = 4};
    const struct maq_serve_result r = {.served = served,
                                       .n_requests = 4,
                                       .duration_s = 4.75,
                                       .ttft_s = {.mean = 0.75, .p50 = 0.25, .p90 = 2, .p95 = 2, .p99 = 2},
                                       .tpot_s = {.mean = 0.5, .p50 = 0.1, .p90 = 1.5, .p95 = 1.5, .p99 = 1.5},
                                       .e2el_s = {.mean = 1.875, .p50 = 1.75, .p90 = 2.25, .p95 = 2.25, .p99 = 2.25},
                                       .itl_s = {.mean = 0.2, .p50 = 0.1, .p90 = 0.3, .p95 = 0.4, .p99 = 0.5}};
    const struct maq_slo slo = read_slo(text);
    struct maq_slo_outcome o;
    maq_slo_judge(&o, &slo, &r, &requests);
    return o;
}

static void test_figures(void **state)
{
    (void)state;
    struct maq_slo_outcome o =
        judge("ttft_mean<1s, tpot_p50<=100ms, tpot_p90<1.5s, e2el_p99<=2.25s, itl_p95<1s, itl_p99<400ms");
    static const double values[] = {0.75, 0.1, 1.5, 2.25, 0.4, 0.5};
    static const bool met[] = {true, true, false, true, true, false};
    for (size_t i = 0; i < MAQ_COUNT(values); i++) {
        assert_true(same(o.value_s[i], values[i]));
        assert_int_equal(o.met[i], met[i]);
    }
    assert_false(o.all_met);
    assert_true(judge("ttft_mean<1s, e2el_p99<=2.25s").all_met);
    assert_true(judge("ttft_p50<=250ms").all_met);
    assert_false(judge("ttft_p50<250ms").all_met);
}

static void test_goodput(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t good;
    } rows[] = {
        {"ttft_p95<300ms", 2},
        {"ttft_p95<250ms", 0},
        {"ttft_p95<=250ms", 2},
        {"ttft_mean<300ms", 2}, /* of whatever statistic the bound is */
        {"ttft_p95<1s, tpot_p95<200ms", 2},
        {"tpot_p95<200ms", 3}, /* who has one token passes */
        {"e2el_p99<2s", 2},
        {"e2el_p99<=2s, ttft_p50<=250ms", 1},
        {"ttft_p50<300ms, ttft_p99<1s", 3}, /* the widest of a metric */
        {"ttft_p50<=250ms, ttft_p99<250ms", 2},
        {"ttft_p99<250ms, ttft_p50<=250ms", 2},
        {"ttft_p95<300ms, itl_p99<1us", 2}, /* gaps do not enter */
    };
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        struct maq_slo_outcome o = judge(rows[i].text);
        assert_true(o.of_requests);
        if (o.good != rows[i].good || !same(o.goodput_per_s, rows[i].good / 4.75))
            fail_msg("%s: %u", rows[i].text, o.good);
    }
    struct maq_slo_outcome none = judge("itl_p99<1us");
    assert_true(!none.of_requests && none.good == 0);
}

/* ---- a run ---- */

static void test_of_a_run(void **state)
{
    (void)state;
    const char *job_text = "{model: llama-3.1-8b, cluster: 'h100-sxm:8', plan: {micro_batch_size: 1}, "
                           "workload: {global_batch_size: 8}}";
    const struct maq_request_spec spec = {.rate = 40, .n = 300, .prompt = 900, .output = 60, .spread = 0.8, .seed = 5};
    struct maq_loaded_job *job = NULL;
    struct maq_request_set *set = NULL;
    struct maq_serve_result *r = NULL;
    uint32_t before = 0;
    assert_int_equal(maq_job_parse(&job, "test", maq_str_of(job_text), NULL, 0, NULL), MAQ_OK);
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    assert_int_equal(maq_serve_run(&r, maq_job_get(job), &(struct maq_serve_options){0}, maq_requests_get(set), NULL),
                     MAQ_OK);
    for (int ms = 1; ms < 100000; ms *= 2) {
        char text[64];
        snprintf(text, sizeof text, "ttft_p95<%dms", ms);
        const struct maq_slo slo = read_slo(text);
        maq_slo_judge(&r->slo, &slo, r, maq_requests_get(set));
        assert_true(r->slo.good >= before && r->slo.good <= 300);
        /* at least 95 of 100 are within a bound that their p95 keeps; bins of a fifth of a percent lie between */
        if (r->ttft_s.p95 < ms * 1e-3 * 0.99)
            assert_true(r->slo.met[0] && r->slo.good >= 285);
        if (r->ttft_s.p95 > ms * 1e-3 * 1.01)
            assert_true(!r->slo.met[0] && r->slo.good <= 285);
        before = r->slo.good;
    }
    assert_int_equal(before, 300);
    assert_true(same(r->slo.goodput_per_s, r->requests_per_s));
    maq_serve_free(r);
    maq_requests_free(set);
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_name),      cmocka_unit_test(test_lists),
        cmocka_unit_test(test_faults),          cmocka_unit_test(test_all_faults_are_said),
        cmocka_unit_test(test_memory_runs_out), cmocka_unit_test(test_figures),
        cmocka_unit_test(test_goodput),         cmocka_unit_test(test_of_a_run),
    };
    return cmocka_run_group_tests_name("slo", tests, NULL, NULL);
}
