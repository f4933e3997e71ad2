/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diff.c - two reports side by side: parts add up to the change, a report does not differ from itself, turned around every change
 * has the other sign; closed forms of documents that are written here; what cannot be compared is refused at its place.
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

#include "base/check.h"
#include "base/codes.h"
#include "base/str.h"
#include "diff_case.h"
#include "maquette/maquette.h"
#include "report/codes.h"
#include "report/diff/diff.h"
#include "report/diff/diff_parts.h"

/* ---- helpers ---------------------------------------------------------------------------------------------------- */

/* The report of a job as `maquette train --json` has it; free(). */
static char *report_of(const char *yaml)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_loaded_job *box;
    struct maq_train_result *r;
    char *json;
    if (maq_job_parse(&box, "job", maq_str_of(yaml), NULL, 0, diag) != MAQ_OK) {
        char *text = maq_diag_format(diag, 0, false);
        fail_msg("%s\n%s", yaml, text);
    }
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), diag), MAQ_OK);
    assert_int_equal(maq_report_train_json(&json, r, NULL, diag), MAQ_OK);
    maq_train_result_free(r);
    maq_job_free(box);
    maq_diag_free(diag);
    return json;
}

static bool has_row(const struct maq_diff_table *t, const char *key)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (strcmp(t->rows[i].key, key) == 0)
            return true;
    return false;
}

/* ---- predictions -------------------------------------------------------------------------------------------------- */

/* Plans of which every two are compared: each kind of category is in one of them at least. */
static const char *const jobs[] = {
    "model: llama-3.1-8b\ncluster: h100-sxm:8\nplan: {tp: 2}\nworkload: {gbs: 64, seq: 4096}\n",
    "model: llama-3.1-8b\ncluster: h100-sxm:8\nplan: {tp: 2, pp: 2, vp: 4, recompute: full}\nworkload: {gbs: 64, seq: "
    "4096}\n",
    "model: llama-3.1-8b\ncluster: h100-sxm:8\nplan: {zero: 3, cp: 2}\nworkload: {gbs: 32, seq: 8192}\n",
    "model: qwen3-30b-a3b\ncluster: \"b200:8 x 2, rail 400G\"\nplan: {ep: 8, pp: 2}\nworkload: {gbs: 64, seq: 4096}\n",
    "model: gpt2\ncluster: a100-80gb:1\nworkload: {gbs: 8, seq: 1024}\n",
    "model: llama-3.1-8b\ncluster: h100-sxm:8\nplan: {tp: 2, optimizer_offload_fraction: 1, lora_rank: 16}\nworkload: "
    "{gbs: 64, seq: 4096}\n",
    "model: llama-3.1-8b\ncluster: h100-sxm:8\nplan: {tp: 4, cpu_offloading_num_layers: 8, precision: "
    "fp8-current}\nworkload: {gbs: 64, seq: 4096}\n",
};

static char *reports[MAQ_COUNT(jobs)];

static int make_reports(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++)
        reports[i] = report_of(jobs[i]);
    return 0;
}

static int free_reports(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++)
        free(reports[i]);
    return 0;
}

static void adds_up(const struct maq_diff_table *t)
{
    double change = 0, sum[MAQ_DIFF_SIDES] = {0};
    for (uint32_t i = 0; i < t->n; i++) {
        change += maq_diff_change(t->rows[i].value);
        for (int s = 0; s < MAQ_DIFF_SIDES; s++)
            sum[s] += t->rows[i].value.of[s];
    }
    for (int s = 0; s < MAQ_DIFF_SIDES; s++)
        near(sum[s], t->whole.value.of[s], 1e-9);
    if (!(fabs(change - maq_diff_change(t->whole.value)) <= 1e-9 * fabs(t->whole.value.of[0])))
        fail_msg("%s: parts change by %.15g, the whole by %.15g", t->key, change, maq_diff_change(t->whole.value));
}

static void test_parts_add_up(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++)
        for (size_t k = 0; k < MAQ_COUNT(jobs); k++) {
            struct maq_diff *d = diff_of(reports[i], reports[k]);
            assert_non_null(table(d, "step"));
            assert_non_null(table(d, "compute"));
            assert_non_null(table(d, "memory"));
            for (uint32_t t = 0; t < d->n_tables; t++) {
                assert_true(d->tables[t].adds_up);
                adds_up(&d->tables[t]);
            }
            assert_false(has_row(table(d, "step"), "rest")); /* a prediction's own categories are all there is */
            assert_false(has_row(table(d, "memory"), "rest"));
            assert_false(has_row(table(d, "compute"), "rest")); /* and so are its kinds of operators */
            near(table(d, "step")->whole.value.of[1], figure(d, "step_time_s")->value.of[1], 0);
            maq_diff_free(d);
        }
}

static void test_same(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++) {
        struct maq_diff *d = diff_of(reports[i], reports[i]);
        assert_true(maq_diff_is_same(d));
        assert_int_equal(d->n_settings, 0);
        for (uint32_t f = 0; f < d->n_figures; f++)
            assert_true(maq_diff_change(d->figures[f].value) == 0);
        char *text;
        assert_int_equal(maq_report_diff_text(&text, d, NULL, NULL), MAQ_OK);
        assert_non_null(strstr(text, "Nothing differs."));
        assert_null(strstr(text, "comes from")); /* and no table */
        free(text);
        maq_diff_free(d);
    }
}

/* Every change has the other sign, and intervals of the ratio become those of its inverse. */
static void test_turned_around(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i++)
        for (size_t k = 0; k < i; k++) {
            struct maq_diff *a = diff_of(reports[i], reports[k]), *b = diff_of(reports[k], reports[i]);
            assert_int_equal(a->n_settings, b->n_settings);
            assert_int_equal(a->n_figures, b->n_figures);
            assert_int_equal(a->n_tables, b->n_tables);
            for (uint32_t f = 0; f < a->n_figures; f++) {
                double low, high, low2, high2;
                const struct maq_diff_figure *x = &a->figures[f], *y = &b->figures[f];
                assert_true(maq_diff_change(x->value) == -maq_diff_change(y->value));
                assert_int_equal(maq_diff_change_interval(&low, &high, x), maq_diff_change_interval(&low2, &high2, y));
                if (!maq_diff_change_interval(&low, &high, x) || !maq_diff_change_interval(&low2, &high2, y))
                    continue;
                near((1 + low) * (1 + high2), 1, 1e-12);
                near((1 + high) * (1 + low2), 1, 1e-12);
            }
            for (uint32_t t = 0; t < a->n_tables; t++)
                for (uint32_t r = 0; r < a->tables[t].n; r++) {
                    const struct maq_diff_row *x = &a->tables[t].rows[r];
                    assert_true(maq_diff_change(x->value) == -maq_diff_change(row(b, a->tables[t].key, x->key)));
                }
            maq_diff_free(a);
            maq_diff_free(b);
        }
}

/* What the plan says is a setting; what another GPU is made of follows from its name. */
static void test_settings(void **state)
{
    (void)state;
    struct maq_diff *d = diff_of(reports[0], reports[1]);
    bool tp = false, pp = false;
    for (uint32_t i = 0; i < d->n_settings; i++) {
        const struct maq_diff_setting *s = &d->settings[i];
        tp |= strcmp(s->key, "tensor_model_parallel_size") == 0;
        if (strcmp(s->key, "pipeline_model_parallel_size") != 0)
            continue;
        pp = true;
        assert_string_equal(s->section, "plan");
        assert_true(maq_str_is(s->of[MAQ_DIFF_BEFORE]->text, "1"));
        assert_true(maq_str_is(s->of[MAQ_DIFF_AFTER]->text, "2"));
        assert_false(s->aside);
    }
    assert_true(pp);
    assert_false(tp); /* 2 in both */
    maq_diff_free(d);
    d = diff_of(reports[0], reports[4]);
    bool named = false, followed = false;
    for (uint32_t i = 0; i < d->n_settings; i++) {
        const struct maq_diff_setting *s = &d->settings[i];
        named |= strcmp(s->section, "cluster") == 0 && strcmp(s->key, "groups.0.device.name") == 0;
        followed |= strcmp(s->key, "groups.0.device.memory_bytes_per_s") == 0 && s->aside;
        assert_true(strcmp(s->section, "job") != 0 || strcmp(s->key, "name") != 0); /* a title is no setting */
    }
    assert_true(named && followed);
    maq_diff_free(d);
}

/* ---- closed forms --------------------------------------------------------------------------------------------------- */

#define TRAIN(step, low, high, parts)                                                                                  \
    "{\"schema\": \"maquette.train/1\", \"job\": {}, \"step_time_s\": " step ", \"step_time_low_s\": " low             \
    ", \"step_time_high_s\": " high ", \"breakdown\": {" parts "}}"

static void test_interval(void **state)
{
    (void)state;
    double low, high;
    /* 10 (8 to 12.5) to 8 (known): the ratio is 0.8, and the first may be off by 1.25 either way */
    struct maq_diff *d = diff_of(TRAIN("10", "8", "12.5", ""), TRAIN("8", "8", "8", ""));
    assert_true(maq_diff_change_interval(&low, &high, figure(d, "step_time_s")));
    near(low, 0.64 - 1, 1e-12);
    near(1 + high, 1, 1e-12);
    maq_diff_free(d);
    /* sides that face each other: 3 and 4 hundredths of ln make 5 */
    char before[256], after[256];
    (void)snprintf(before, sizeof before, TRAIN("1", "%.17g", "%.17g", ""), exp(-0.5), exp(0.03));
    (void)snprintf(after, sizeof after, TRAIN("1", "%.17g", "%.17g", ""), exp(-0.04), exp(1.2));
    d = diff_of(before, after);
    assert_true(maq_diff_change_interval(&low, &high, figure(d, "step_time_s")));
    near(log1p(low), -0.05, 1e-9);
    near(log1p(high), 1.3, 1e-9); /* 5, 12, 13 */
    maq_diff_free(d);
    /* one report without its interval: none of the change */
    d = diff_of(TRAIN("10", "null", "12", ""), TRAIN("8", "7", "9", ""));
    assert_false(maq_diff_change_interval(&low, &high, figure(d, "step_time_s")));
    maq_diff_free(d);
}

/* What the parts leave is a row, and the largest change comes first. */
static void test_rest(void **state)
{
    (void)state;
    struct maq_diff *d = diff_of(TRAIN("10", "9", "11", "\"forward_s\": 6, \"bubble_s\": 4"),
                                 TRAIN("8", "7", "9", "\"forward_s\": 5.5, \"bubble_s\": 1, \"new_s\": 0.5"));
    const struct maq_diff_table *t = table(d, "step");
    assert_int_equal(t->n, 4);
    assert_string_equal(t->rows[0].key, "bubble_s");
    near(maq_diff_change(row(d, "step", "bubble_s")), -3, 0);
    near(maq_diff_change(row(d, "step", "rest")), 1, 0);
    near(maq_diff_change(row(d, "step", "new_s")), 0.5, 0);
    assert_false(row(d, "step", "new_s").has[MAQ_DIFF_BEFORE]);
    adds_up(t);
    maq_diff_free(d);
}

static void test_serve(void **state)
{
    (void)state;
    static const char before[] =
        "{\"schema\": \"maquette.serve/1\", \"deployment\": {\"engine\": \"vllm\"}, \"memory\": {\"fits\": true, "
        "\"weights_bytes\": 10, \"kv_cache_bytes\": 30}, \"throughput\": {\"requests\": 4, \"requests_per_s\": 2, "
        "\"input_tokens_per_s\": 200, \"output_tokens_per_s\": 50}, \"latency\": {\"ttft_s\": {\"mean\": 1, \"p99\": "
        "3}}, "
        "\"iterations\": {\"count\": 5}, \"breakdown\": {\"gemm_s\": 10, \"host_s\": 5}}";
    static const char after[] =
        "{\"schema\": \"maquette.serve/1\", \"deployment\": {\"engine\": \"sglang\"}, \"memory\": {\"fits\": true, "
        "\"weights_bytes\": 5, \"kv_cache_bytes\": 35}, \"throughput\": {\"requests\": 4, \"requests_per_s\": 4, "
        "\"input_tokens_per_s\": 400, \"output_tokens_per_s\": 100}, \"latency\": {\"ttft_s\": {\"mean\": 0.5, "
        "\"p99\": "
        "2}}, \"iterations\": {\"count\": 10}, \"breakdown\": {\"gemm_s\": 12, \"host_s\": 1}}";
    struct maq_diff *d = diff_of(before, after);
    near(maq_diff_change(figure(d, "ttft_s")->value), -0.5, 0);
    near(maq_diff_change(row(d, "latency", "ttft_s.p99")), -1, 0);
    near(row(d, "iteration", "gemm_s").of[MAQ_DIFF_BEFORE], 2, 0); /* of one iteration */
    near(row(d, "iteration", "gemm_s").of[MAQ_DIFF_AFTER], 1.2, 1e-15);
    near(table(d, "iteration")->whole.value.of[MAQ_DIFF_AFTER], 1.3, 1e-15);
    near(figure(d, "input_tokens_per_request")->value.of[MAQ_DIFF_BEFORE], 100, 0);
    near(maq_diff_change(table(d, "memory")->whole.value), 0, 0);
    assert_int_equal(d->n_settings, 1);
    assert_string_equal(d->settings[0].section, "deployment");
    maq_diff_free(d);
}

static void test_replay(void **state)
{
    (void)state;
    static const char before[] =
        "{\"schema\": \"maquette.replay/1\", \"makespan_s\": 10, \"ranks\": 4, \"steps\": [{\"time_s\": 4}, "
        "{\"time_s\": "
        "6}], \"classes\": [{\"ranks\": 3, \"computing_s\": 8, \"waiting_for_peers_s\": 2}, {\"ranks\": 1, "
        "\"computing_s\": 4, \"waiting_for_peers_s\": 0}]}";
    static const char after[] = "{\"schema\": \"maquette.replay/1\", \"makespan_s\": 12, \"ranks\": 4, \"steps\": "
                                "[{\"time_s\": 12}], \"classes\": [{\"ranks\": 4, \"computing_s\": 12}]}";
    struct maq_diff *d = diff_of(before, after);
    near(row(d, "rank", "computing_s").of[MAQ_DIFF_BEFORE], 7, 0); /* (3 x 8 + 4) / 4 */
    near(row(d, "rank", "waiting_for_peers_s").of[MAQ_DIFF_BEFORE], 1.5, 0);
    near(row(d, "rank", "rest").of[MAQ_DIFF_BEFORE], 1.5, 1e-15); /* a rank that ended earlier */
    near(maq_diff_change(figure(d, "step_time_s")->value), 7, 0);
    adds_up(table(d, "rank"));
    maq_diff_free(d);
}

static void test_run(void **state)
{
    (void)state;
    double low, high;
    static const char before[] =
        "{\"schema\": \"maquette.risk.run/2\", \"job\": {}, \"tokens\": 5, \"failures\": \"llama3\", \"options\": "
        "{\"spares\": 0}, \"mean_s\": 100, \"mean_standard_error_s\": 0, \"interruptions\": 2, \"buckets\": "
        "[{\"bucket\": "
        "\"productive\", \"time_s\": 80}, {\"bucket\": \"lost_work\", \"time_s\": 20}], \"causes\": [{\"cause\": "
        "\"NIC\", "
        "\"interruptions\": 2}]}";
    static const char after[] =
        "{\"schema\": \"maquette.risk.run/2\", \"job\": {}, \"tokens\": 5, \"failures\": \"llama3\", \"options\": "
        "{\"spares\": 2}, \"mean_s\": 90, \"mean_standard_error_s\": 0, \"interruptions\": 3, \"buckets\": "
        "[{\"bucket\": "
        "\"lost_work\", \"time_s\": 9}, {\"bucket\": \"productive\", \"time_s\": 81}], \"causes\": [{\"cause\": "
        "\"GPU\", "
        "\"interruptions\": 1}, {\"cause\": \"NIC\", \"interruptions\": 2}]}";
    struct maq_diff *d = diff_of(before, after);
    near(maq_diff_change(row(d, "run", "lost_work")), -11, 0); /* by name, not by place */
    near(maq_diff_change(row(d, "run", "productive")), 1, 0);
    near(maq_diff_change(row(d, "causes", "GPU")), 1, 0);
    assert_true(maq_diff_change_interval(&low, &high, figure(d, "mean_s")));
    near(low, -0.1, 1e-12); /* without an error of sampling the interval is the change itself */
    near(high, -0.1, 1e-12);
    assert_int_equal(d->n_settings, 1);
    assert_string_equal(d->settings[0].key, "spares");
    maq_diff_free(d);
}

/* ---- numbers as text -------------------------------------------------------------------------------------------------- */

static void test_values(void **state)
{
    (void)state;
    static const struct {
        double value;
        enum maq_diff_unit unit;
        double most;
        bool is_signed;
        const char *text;
    } cases[] = {
        {31.701056753, MAQ_DIFF_SECONDS, 34.35, false, "31.701 s"},
        {-2.65, MAQ_DIFF_SECONDS, 34.35, true, "-2.650 s"},
        {0.028, MAQ_DIFF_SECONDS, 34.35, false, "0.028 s"},
        {-2.1e-6, MAQ_DIFF_SECONDS, 34.35, true, "-2.1 us"}, /* would be 0 in the table's unit */
        {0, MAQ_DIFF_SECONDS, 34.35, false, "0 s"},
        {86400 * 70.5, MAQ_DIFF_SECONDS, 86400 * 70.5, false, "70.500 d"},
        {1.5 * 1073741824, MAQ_DIFF_BYTES, 1073741824 * 80.0, false, "1.500 GiB"},
        {0.4331, MAQ_DIFF_SHARE, 0.47, false, "43.31 %"},
        {0.0362, MAQ_DIFF_SHARE, 0.47, true, "+3.62 points"},
        {66154.4, MAQ_DIFF_PER_S, 66154.4, false, "66,154"},
        {5103.4, MAQ_DIFF_PER_S, 66154.4, true, "+5,103"},
        {35717, MAQ_DIFF_COUNT, 56731, false, "35,717"},
        {5.5996, MAQ_DIFF_COUNT, 5.5996, false, "5.5996"},
        {INFINITY, MAQ_DIFF_SECONDS, INFINITY, false, "not finite"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char buf[48];
        assert_string_equal(maq_diff_value(buf, cases[i].value, cases[i].unit, cases[i].most, cases[i].is_signed),
                            cases[i].text);
    }
}

/* A row of a table has the table's unit where three digits of it are seen, else its own. */
static void test_small_rows(void **state)
{
    (void)state;
    static const struct {
        double most, row;
        bool own;
    } cases[] = {
        {25.317, 4.448, false},   {25.317, 0.1, false},    {25.317, 0.0994, true}, {25.317, 0, true},
        {0.1566, 0.00122, false}, {0.1566, 0.00065, true}, {1e-9, 1e-9, false},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++)
        assert_true(maq_diff_most_of_row(MAQ_DIFF_SECONDS, cases[i].most, cases[i].row) ==
                    (cases[i].own ? cases[i].row : cases[i].most));
}

/* ---- what is refused ---------------------------------------------------------------------------------------------------- */

static void refuses(const char *before, const char *after, uint16_t code, uint32_t line, const char *message)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_diff *d = NULL;
    assert_int_equal(maq_diff_parse(&d, "a", maq_str_of(before), "b", maq_str_of(after), diag), MAQ_BAD_INPUT);
    assert_null(d);
    char *text = maq_diag_format(diag, 0, false);
    const struct maq_diag_item *item = maq_diag_at(diag, 0);
    if (item->code != code || maq_diag_place(diag, item->at).line != line || !strstr(text, message))
        fail_msg("code %u at line %u, not %u at %u:\n%s", item->code, maq_diag_place(diag, item->at).line, code, line,
                 text);
    free(text);
    maq_diag_free(diag);
}

static void test_refused(void **state)
{
    (void)state;
    static const char good[] = TRAIN("1", "1", "1", "");
    refuses("", good, MAQ_CODE_DIFF_NO_REPORT, 0, "no report of maquette");
    refuses("[1, 2]", good, MAQ_CODE_DIFF_NO_REPORT, 1, "no report of maquette");
    refuses("model: gpt2\n", good, MAQ_CODE_DIFF_NO_REPORT, 1, "a job is predicted first");
    refuses("{\"schema\": \"other/1\"}", good, MAQ_CODE_DIFF_NO_REPORT, 1, "no report of maquette");
    refuses("{\n\"schema\": \"maquette.train/9\"}", good, MAQ_CODE_DIFF_SCHEMA, 2, "another version of its form");
    refuses("{\n\"schema\": \"maquette.models/1\"}", good, MAQ_CODE_DIFF_SCHEMA, 2,
            "train, plan, serve, serve plan, risk and replay");
    refuses("{\n\"schema\": \"maquette.error/1\"}", good, MAQ_CODE_DIFF_SCHEMA, 2, "the command failed that wrote it");
    refuses("{\n\n\"schema\": \"maquette.replay/1\"}", good, MAQ_CODE_DIFF_COMMANDS, 1, "is of `maquette train`");
    refuses("{\"schema\": \"maquette.train/1\"}", good, MAQ_CODE_DIFF_SCHEMA, 1, "has no 'step_time_s'");
    refuses("{\"schema\": \"maquette.train/1\", \"job\": {},\n\"step_time_s\": \"fast\"}", good, MAQ_CODE_BAD_NUMBER, 2,
            "step_time_s");
    refuses("{\"schema\": \"maquette.train/1\", \"job\": {},\n\"step_time_s\": [1]}", good, MAQ_CODE_WRONG_TYPE, 2,
            "must be a number");
    refuses("{\"schema\": \"maquette.train/1\", \"schema\": 1}", good, MAQ_CODE_DUPLICATE_KEY, 1, "schema");
}

/* Every fault of both files is said at once. */
static void test_both(void **state)
{
    (void)state;
    struct maq_diag *diag = maq_diag_new();
    struct maq_diff *d = NULL;
    assert_int_equal(maq_diff_parse(&d, "a", maq_str_of("{}"), "b", maq_str_of("[]"), diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 2);
    maq_diag_free(diag);
}

/* Numbers that no report has: something is written, and nothing crashes. */
static void test_odd_numbers(void **state)
{
    (void)state;
    static const char *const steps[] = {"0", "-1", "1e308", "1e-300", "5e-324"};
    for (size_t i = 0; i < MAQ_COUNT(steps); i++)
        for (size_t k = 0; k < MAQ_COUNT(steps); k++) {
            char before[512], after[512], *text;
            (void)snprintf(before, sizeof before, TRAIN("%s", "%s", "%s", "\"forward_s\": %s, \"bubble_s\": %s"),
                           steps[i], steps[k], steps[i], steps[k], steps[i]);
            (void)snprintf(after, sizeof after, TRAIN("%s", "%s", "%s", "\"forward_s\": %s, \"bubble_s\": %s"),
                           steps[k], steps[k], steps[k], steps[i], steps[i]);
            struct maq_diff *d = diff_of(before, after);
            assert_int_equal(maq_report_diff_text(&text, d, NULL, NULL), MAQ_OK);
            free(text);
            assert_int_equal(maq_report_diff_json(&text, d, NULL, NULL), MAQ_OK);
            free(text);
            assert_int_equal(maq_report_diff_html(&text, d, NULL, NULL), MAQ_OK);
            free(text);
            maq_diff_free(d);
        }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_add_up), cmocka_unit_test(test_same),       cmocka_unit_test(test_turned_around),
        cmocka_unit_test(test_settings),     cmocka_unit_test(test_interval),   cmocka_unit_test(test_rest),
        cmocka_unit_test(test_serve),        cmocka_unit_test(test_replay),     cmocka_unit_test(test_run),
        cmocka_unit_test(test_values),       cmocka_unit_test(test_refused),    cmocka_unit_test(test_both),
        cmocka_unit_test(test_odd_numbers),  cmocka_unit_test(test_small_rows),
    };
    return cmocka_run_group_tests(tests, make_reports, free_reports);
}
