/* SPDX-License-Identifier: Apache-2.0 */
/* test_run_report.c - the report of a run: dates, text and JSON from one result, options from a prediction, memory that runs out. */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "maquette/maquette.h"
#include "predict.h"
#include "report/risk/date.h"

static void test_dates(void **state)
{
    static const struct {
        const char *text;
        int64_t day;
    } known[] = {
        {"1970-01-01", 0}, {"2000-02-29", 11016}, {"2000-03-01", 11017}, {"2027-01-31", 20849}, {"1969-12-31", -1}};
    char buf[16];
    int64_t day;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        assert_string_equal(maq_date_text(buf, known[i].day), known[i].text);
        assert_true(maq_date_read(&day, known[i].text) && day == known[i].day);
    }
    for (int64_t d = -400000; d < 400000; d += 37)
        assert_true(maq_date_read(&day, maq_date_text(buf, d)) && day == d);
    static const char *const none[] = {
        "2027-02-29", "2027-13-01", "2027-00-10", "27-01-01", "2027/01/01", "2027-01-0x", ""};
    for (size_t i = 0; i < sizeof none / sizeof none[0]; i++)
        assert_false(maq_date_read(&day, none[i]));
}

/* A job, its failures and its run. */
struct rig {
    struct prediction p;
    struct maq_loaded_failures *failures;
    struct maq_report_run report;
    struct maq_run_opts opts;
    struct maq_run_result *run;
};

static void rig_open(struct rig *rig)
{
    struct maq_diag *diag = maq_diag_new();
    *rig = (struct rig){.opts = MAQ_RUN_OPTS_INIT};
    rig->p = predict_text(
        "{model: llama-3.1-8b, cluster: 'h100-sxm:8 x 16, rail 400G', plan: {tp: 2}, workload: {gbs: 512}}");
    assert_int_equal(maq_failures_load(&rig->failures, "llama3", diag), MAQ_OK);
    maq_run_opts_of_train(&rig->opts, rig->p.result, 1e12, 0);
    rig->opts.failures = maq_failures_get(rig->failures);
    rig->opts.replicas = 200;
    rig->opts.threads = 1;
    assert_int_equal(maq_run_simulate(&rig->run, &rig->opts, diag), MAQ_OK);
    rig->report = (struct maq_report_run){.job = maq_job_get(rig->p.job),
                                          .train = rig->p.result,
                                          .failures = rig->opts.failures,
                                          .tokens = 1e12,
                                          .run = rig->run};
    maq_diag_free(diag);
}

static void rig_close(struct rig *rig)
{
    maq_run_result_free(rig->run);
    maq_failures_free(rig->failures);
    drop(&rig->p);
}

static void test_options_of_a_prediction(void **state)
{
    struct rig rig;
    rig_open(&rig);
    const struct maq_run_opts *o = &rig.opts;
    assert_true(o->step_s == rig.p.result->step_s && o->devices == 128 && o->devices_per_node == 8);
    assert_int_equal(o->dp_replicas, 64);
    assert_true(o->steps == ceil(1e12 / (512.0 * (double)maq_job_get(rig.p.job)->workload.seq)));
    /* 14 bytes for each of 8.03 billion parameters, at 1 GB/s from each of 16 nodes. */
    assert_true(fabs(o->levels[0].persist_s / (14 * 8.03e9 / 16e9) - 1) < 1e-3);
    struct maq_run_opts fast = MAQ_RUN_OPTS_INIT;
    maq_run_opts_of_train(&fast, rig.p.result, 1e12, 64e9);
    assert_true(fabs(fast.levels[0].restore_s / o->levels[0].restore_s - 0.25) < 1e-12);
    rig_close(&rig);
}

static double number(const json_t *d, const char *key)
{
    const json_t *v = json_object_get(d, key);
    if (!json_is_number(v))
        fail_msg("'%s' is no number", key);
    return json_number_value(v);
}

static void test_text_and_json(void **state)
{
    struct rig rig;
    char *text = NULL, *json = NULL;
    struct maq_diag *diag = maq_diag_new();
    rig_open(&rig);
    assert_int_equal(maq_report_run_text(&text, &rig.report, NULL, diag), MAQ_OK);
    assert_int_equal(maq_report_run_json(&json, &rig.report, NULL, diag), MAQ_OK);
    json_t *d = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    const json_t *bucket, *cause;
    size_t i;
    double sum = 0, share = 0, hours = 0, interruptions = 0;
    assert_string_equal(json_string_value(json_object_get(d, "schema")), "maquette.risk.run/2");
    json_array_foreach(json_object_get(d, "buckets"), i, bucket)
    {
        sum += number(bucket, "time_s");
        share += number(bucket, "share");
        hours += number(bucket, "gpu_hours");
    }
    json_array_foreach(json_object_get(d, "causes"), i, cause) interruptions += number(cause, "interruptions");
    assert_true(fabs(sum / number(d, "mean_s") - 1) < 1e-9 && fabs(share - 1) < 1e-9);
    assert_true(fabs(hours / number(d, "gpu_hours") - 1) < 1e-9);
    assert_true(fabs(interruptions / number(d, "interruptions") - 1) < 1e-9);
    double last = 0;
    static const char *const names[] = {"p5", "p50", "p95", "p99"};
    for (i = 0; i < 4; i++) {
        const json_t *q = json_object_get(json_object_get(d, "done_after"), names[i]);
        assert_true(number(q, "low_s") <= number(q, "value_s"));
        if (i == 3) /* the slowest of 200 is below the 99th percentile in 13 % of cases: no bound */
            assert_true(json_is_null(json_object_get(q, "high_s")));
        else
            assert_true(number(q, "value_s") <= number(q, "high_s"));
        assert_true(number(q, "value_s") >= last);
        last = number(q, "value_s");
    }
    assert_true(number(d, "bound_s") > number(json_object_get(json_object_get(d, "done_after"), "p95"), "value_s"));
    assert_non_null(strstr(text, "with 95 % confidence at most 5 % of runs take longer than "));
    assert_non_null(strstr(text, " to -")); /* the bound that there is none of */
    assert_non_null(strstr(text, "\nWhere the time goes\n"));
    assert_non_null(strstr(text, "faulty GPU"));
    assert_non_null(strstr(text, "95 % interval"));
    json_decref(d);
    free(text);
    free(json);
    maq_diag_free(diag);
    rig_close(&rig);
}

static size_t allocations_left;

static bool gate(size_t bytes)
{
    if (allocations_left == 0)
        return false;
    allocations_left--;
    return true;
}

/* The n-th allocation fails, for every n until all goes well: a status, no crash, no leak. */
static void test_out_of_memory(void **state)
{
    struct rig rig;
    bool done = false;
    rig_open(&rig);
    rig.opts.replicas = 20;
    for (size_t n = 0; !done; n++) {
        struct maq_loaded_failures *failures = NULL;
        struct maq_run_result *run = NULL;
        struct maq_run_variants *variants = NULL;
        char *text = NULL, *json = NULL;
        allocations_left = n;
        maq__set_alloc_gate(gate);
        enum maq_status status = maq_failures_load(&failures, "llama3,repair={median: 1 h, mean: 2 h}", NULL);
        if (status == MAQ_OK)
            status = maq_run_simulate(&run, &rig.opts, NULL);
        if (status == MAQ_OK)
            status = maq_run_what_if(&variants, &rig.opts, MAQ_WHAT_REPLICAS, NULL);
        if (status == MAQ_OK)
            status = maq_report_run_text(&text, &rig.report, NULL, NULL);
        if (status == MAQ_OK)
            status = maq_report_run_json(&json, &rig.report, NULL, NULL);
        maq__set_alloc_gate(NULL);
        if (status != MAQ_OK && status != MAQ_NO_MEMORY)
            fail_msg("allocation %zu: %s", n, maq_status_text(status));
        done = status == MAQ_OK;
        maq_failures_free(failures);
        maq_run_result_free(run);
        maq_run_variants_free(variants);
        free(text);
        free(json);
        assert_true(n < 5000);
    }
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dates),
        cmocka_unit_test(test_options_of_a_prediction),
        cmocka_unit_test(test_text_and_json),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
