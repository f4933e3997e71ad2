/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_diff_search.c - two searches side by side: plans over several node groups, deployments. Documents are written here, so that every
 * number is known; stages are compared by their number where both plans have as many, parts of a fleet by their role.
 */
#include <stdlib.h>

#include "base/check.h"
#include "diff_case.h"

static const struct maq_diff_setting *setting(const struct maq_diff *d, const char *section, const char *key)
{
    for (uint32_t i = 0; i < d->n_settings; i++)
        if (strcmp(d->settings[i].section, section) == 0 && strcmp(d->settings[i].key, key) == 0)
            return &d->settings[i];
    return NULL;
}

static void says(const struct maq_diff *d, const char *section, const char *key, const char *before, const char *after)
{
    const struct maq_diff_setting *s = setting(d, section, key);
    if (!s)
        fail_msg("%s %s does not differ", section, key);
    assert_true(before ? maq_str_is(s->of[MAQ_DIFF_BEFORE]->text, before) : !s->of[MAQ_DIFF_BEFORE]);
    assert_true(after ? maq_str_is(s->of[MAQ_DIFF_AFTER]->text, after) : !s->of[MAQ_DIFF_AFTER]);
}

/* All three forms of it are written. */
static void writes(const struct maq_diff *d)
{
    char *text;
    assert_int_equal(maq_report_diff_text(&text, d, NULL, NULL), MAQ_OK);
    free(text);
    assert_int_equal(maq_report_diff_json(&text, d, NULL, NULL), MAQ_OK);
    free(text);
    assert_int_equal(maq_report_diff_html(&text, d, NULL, NULL), MAQ_OK);
    free(text);
}

/* ---- plans over several node groups ------------------------------------------------------------------------------- */

#define JOB "\"job\": {\"workload\": {\"global_batch_size\": 8, \"seq_length\": 100}}"
#define ISLANDS(used_a, used_b)                                                                                        \
    "\"islands\": [{\"device\": \"fast\", \"used\": " used_a "}, {\"device\": \"slow\", \"used\": " used_b "}]"
#define STAGE(island, layers, tp, compute, memory)                                                                     \
    "{\"island\": " island ", \"layers\": " layers ", \"tensor_model_parallel_size\": " tp ", \"compute_s\": " compute \
    ", \"memory_bytes\": " memory ", \"in_flight\": 3}"
#define PLAN(step, composed, bottleneck, fill, sync, more, stages)                                                     \
    "\"fits\": true, \"step_time_s\": " step ", \"lower_bound_s\": " composed ", \"headroom\": {\"fit_probability\": " \
    "0.9, \"stage\": 1}, \"plans\": [{\"step_time_s\": " step ", \"composed_s\": " composed                            \
    ", \"bottleneck_s\": " bottleneck ", \"bottleneck_stage\": 0, \"fill_s\": " fill                                   \
    ", \"wait_s\": 0, \"sync_s\": " sync ", " more ", \"stages\": [" stages "]}]"
#define MIXED(plan, islands)                                                                                           \
    "{\"schema\": \"maquette.plan.mixed/1\", \"planner\": \"all\", " JOB ", " islands ", " plan "}"

static const char composed[] = MIXED(PLAN("10", "11", "1", "2", "3", "\"micro_batch_size\": 1",
                                          STAGE("0", "3", "1", "1", "100") ", " STAGE("1", "1", "2", "0.5", "300")),
                                     ISLANDS("4", "2"));

static void test_stages(void **state)
{
    (void)state;
    static const char other[] = MIXED(PLAN("8", "7", "1", "1", "2", "\"micro_batch_size\": 2",
                                           STAGE("0", "2", "1", "0.75", "100") ", " STAGE("0", "2", "4", "0.5", "200")),
                                      ISLANDS("4", "0"));
    struct maq_diff *d = diff_of(composed, other);
    says(d, "plan", "micro_batch_size", "1", "2");
    says(d, "stage 0", "layers", "3", "2");
    says(d, "stage 1", "device", "slow", "fast");
    says(d, "stage 1", "tensor_model_parallel_size", "2", "4");
    assert_int_equal(d->n_settings, 5); /* and the layers of stage 1: no answer of the program is among them */
    near(row(d, "step", "pace_s").of[0], 11 - 5, 0); /* the closed form without what it says of the rest */
    near(row(d, "step", "pace_s").of[1], 7 - 3, 0);
    near(row(d, "step", "rest").of[0], -1, 1e-15); /* simulated, it is faster */
    near(row(d, "step", "rest").of[1], 1, 1e-15);
    near(maq_diff_sum(table(d, "step")).of[0], 10, 1e-15);
    near(maq_diff_sum(table(d, "step")).of[1], 8, 1e-15);
    near(maq_diff_change(row(d, "gpus", "group_1")), -2, 0);
    near(maq_diff_change(figure(d, "gpus")->value), -2, 0);
    near(maq_diff_change(row(d, "stage_time", "stage_0")), -0.25, 0);
    near(maq_diff_change(figure(d, "memory_bytes")->value), -100, 0);
    near(figure(d, "tokens_per_s")->value.of[0], 80, 0);
    near(figure(d, "tokens_per_s")->value.of[1], 100, 0);
    writes(d);
    maq_diff_free(d);
}

/* Stages are not held against each other where one plan has more, and a uniform plan has no parts of the closed form. */
static void test_other_stages(void **state)
{
    (void)state;
    static const char uniform[] = MIXED(PLAN("9", "9", "0", "0", "0", "\"uniform\": true, \"plan\": {\"zero\": \"os\"}",
                                             STAGE("0", "4", "1", "1", "100")),
                                        ISLANDS("4", "2"));
    struct maq_diff *d = diff_of(composed, uniform);
    assert_null(table(d, "stage_time"));
    assert_null(setting(d, "stage 0", "layers"));
    assert_null(setting(d, "plan", "zero")); /* one of them has no such plan */
    near(maq_diff_change(figure(d, "stages")->value), -1, 0);
    assert_false(row(d, "step", "pace_s").has[MAQ_DIFF_AFTER]);
    near(row(d, "step", "rest").of[MAQ_DIFF_AFTER], 9, 0);
    writes(d);
    maq_diff_free(d);
}

static void test_nothing_fits(void **state)
{
    (void)state;
    static const char none[] = MIXED("\"fits\": false, \"plans\": []", ISLANDS("0", "0"));
    struct maq_diff *d = diff_of(composed, none);
    assert_null(d->verdict[MAQ_DIFF_BEFORE]);
    assert_string_equal(d->verdict[MAQ_DIFF_AFTER], "no plan fits");
    writes(d);
    maq_diff_free(d);
    d = diff_of(none, none);
    assert_true(maq_diff_is_same(d));
    writes(d);
    maq_diff_free(d);
}

/* ---- deployments ---------------------------------------------------------------------------------------------------- */

#define FLEET(parts, gpus, ttft)                                                                                       \
    "\"carries\": true, \"candidates\": [], \"counts\": {\"does not fit\": 2}, \"best\": {\"fleet\": [" parts          \
    "], \"gpus\": " gpus ", \"requests_per_s\": 5, \"ttft_mean_s\": " ttft "}"
#define DEPLOYMENTS(slo, what) "{\"schema\": \"maquette.serve.plan/1\", \"model\": \"m\", \"slo\": " slo ", " what "}"
#define PART(role, replicas, tp)                                                                                       \
    "{\"replicas\": " replicas ", \"candidate\": 9, \"role\": \"" role "\", \"tp\": " tp "}"

static void test_fleets(void **state)
{
    (void)state;
    static const char one[] = DEPLOYMENTS("\"ttft_p95 < 1 s\"", FLEET(PART("both", "4", "2"), "8", "0.5"));
    static const char pools[] =
        DEPLOYMENTS("null", FLEET(PART("decode", "2", "2") ", " PART("prefill", "1", "1"), "5", "0.25"));
    struct maq_diff *d = diff_of(one, pools);
    says(d, "bounds", "", "ttft_p95 < 1 s", NULL);
    says(d, "fleet", "tp", "2", NULL);
    says(d, "decode", "replicas", NULL, "2");
    says(d, "prefill", "tp", NULL, "1");
    assert_null(setting(d, "decode", "candidate")); /* a place in a list is no setting */
    near(row(d, "counts", "does not fit").of[MAQ_DIFF_AFTER], 2, 0);
    near(maq_diff_change(figure(d, "gpus")->value), -3, 0);
    near(maq_diff_change(figure(d, "ttft_mean_s")->value), -0.25, 0);
    writes(d);
    maq_diff_free(d);
    static const char more[] =
        DEPLOYMENTS("null", FLEET(PART("decode", "3", "2") ", " PART("prefill", "1", "1"), "7", "0.25"));
    d = diff_of(pools, more);
    says(d, "decode", "replicas", "2", "3");
    assert_int_equal(d->n_settings, 1);
    maq_diff_free(d);
}

static void test_no_fleet(void **state)
{
    (void)state;
    static const char one[] = DEPLOYMENTS("null", FLEET(PART("both", "1", "1"), "1", "1"));
    static const char none[] = DEPLOYMENTS("null", "\"carries\": false, \"best\": null, \"candidates\": []");
    struct maq_diff *d = diff_of(one, none);
    assert_string_equal(d->verdict[MAQ_DIFF_AFTER], "no deployment holds the bounds");
    assert_null(d->verdict[MAQ_DIFF_BEFORE]);
    writes(d);
    maq_diff_free(d);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stages), cmocka_unit_test(test_other_stages), cmocka_unit_test(test_nothing_fits),
        cmocka_unit_test(test_fleets), cmocka_unit_test(test_no_fleet),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
