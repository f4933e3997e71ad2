/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_validate_plans.c - executed plans against predictions: files, folders and archives, rows left out, groups; and how far off the
 * predictions of the published plans are, which are read when MAQ_SHARED names the folder that they lie in.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>
#include <jansson.h>
#include <zlib.h>

#include "maquette/validate.h"
#include "temp.h"
#include "validate/codes.h"

static char folder[] = "/tmp/maq-plans-XXXXXX";
static char path[4200];

static const char *at(const char *name)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    write_text(at(name), text);
}

#define EXECUTED(real, reduce, memory, dp, places)                                                                     \
    "{\"zone\": \"z\", \"mbs\": 1, \"gbs\": 8, \"real\": " real ", \"red_grads\": " reduce ", \"max_mem\": " memory    \
    ", \"N\": 1, \"pipeline_list\": [{\"num_stages\": 1, \"layers_per_stage\": [[0, 1]], \"dp\": [" dp                 \
    "], \"tmp_per_stage\": [[" places "]]}]}"
#define GPU "[[[\"gpu-a\", 4, \"z\"]], 1]"

static const char *const folders[] = {"p", "x", "x/one", "x/one/N1", "x/one/N2", "x/two"};
static const struct {
    const char *name, *text;
} files[] = {
    {"p/layer_profiles.json", "{\"toy\": {\"gpu-a\": {\"1\": {\"1\": {\"0\": [1, 2, 0], \"1\": [1, 2, 0]}}}}}"},
    {"p/model_memory.json",
     "{\"toy\": {\"1\": {\"0\": {\"params_floats\": 1, \"act_mem_floats\": 1, \"act_output_floats\": 1, "
     "\"act_input_floats\": 1},"
     "\"1\": {\"params_floats\": 1, \"act_mem_floats\": 1, \"act_output_floats\": 1, \"act_input_floats\": 1}}}}"},
    {"p/basic_cluster_config.json", "{\"gpu-a\": {\"gpus_per_node\": 4, \"mem_per_gpu\": 4e9}, \"zone\": \"z\"}"},
    {"p/intra_node_bandwidths.json", "{}"},
    {"p/multizone_bandwidths_het.json",
     "{\"z\": {\"gpu-a\": {\"1\": {\"z\": {\"gpu-a\": {\"1\": [[0, 0, 1], 1e9]}}}}}}"},
    {"x/one/N1/plan_config_a.json", EXECUTED("48", "0.01", "2000000000", "1", GPU)},
    {"x/one/N2/plan_config_b.json", EXECUTED("20", "0.02", "1000000000", "2", GPU ", " GPU)},
    {"x/two/plan_config_c.json", EXECUTED("7", "7", "1000000000", "1", GPU)},
    {"x/two/plan_config_d.json", EXECUTED("20", "0.02", "1000000000", "1", GPU)},
    {"x/two/plan_config_e.json", EXECUTED("40", "0", "0", "1", GPU)},
};

static int make_files(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(folder));
    for (size_t i = 0; i < sizeof folders / sizeof folders[0]; i++)
        mkdir(at(folders[i]), 0700);
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        write_file(files[i].name, files[i].text);
    return 0;
}

static int remove_files(void **state)
{
    (void)state;
    unlink(at("x.tar.gz"));
    for (size_t i = 0; i < sizeof files / sizeof files[0]; i++)
        unlink(at(files[i].name));
    for (size_t i = sizeof folders / sizeof folders[0]; i-- > 0;)
        rmdir(at(folders[i]));
    return rmdir(folder);
}

static enum maq_status run(struct maq_validate_plans **out, const char *plans, struct maq_diag *diag)
{
    struct maq_validate_plans_opts opts = MAQ_VALIDATE_PLANS_OPTS_INIT;
    char profile[4200], what[4200];
    snprintf(profile, sizeof profile, "%s/p", folder);
    snprintf(what, sizeof what, "%s/%s", folder, plans);
    opts.profile = profile;
    return maq_validate_plans(out, what, &opts, diag);
}

static void assert_rows(const struct maq_validate_plans *r)
{
    assert_int_equal(r->n_rows, 5);
    assert_int_equal(r->n_compared, 3);
    assert_int_equal(r->n_groups, 3);
    assert_string_equal(r->groups[0].name, "one");
    assert_string_equal(r->groups[1].name, "two");
    assert_string_equal(r->groups[2].name, "total");
    /* eight micro batches of two layers of 3 s: 48 s measured, 48.0 predicted */
    assert_true(fabs(r->rows[0].points[MAQ_PLAN_TIME].error) < 1e-4);
    assert_true(fabs(r->rows[4].points[MAQ_PLAN_TIME].error - 0.2) < 1e-3);
    assert_true(isnan(r->rows[4].points[MAQ_PLAN_MEMORY].error));
    assert_int_equal(r->groups[2].stat[MAQ_PLAN_TIME].n, 3);
    assert_int_equal(r->groups[2].stat[MAQ_PLAN_MEMORY].n, 2);
    assert_string_equal(r->rows[2].why, "its step is all reduction");
    assert_non_null(strstr(r->rows[3].why, "repeats")); /* of the plan with two replicas */
    assert_string_equal(r->rows[1].why, "");
}

static void test_folder(void **state)
{
    (void)state;
    struct maq_validate_plans *r;
    assert_int_equal(run(&r, "x", NULL), MAQ_OK);
    assert_rows(r);
    char *text = maq_validate_plans_text(r, 2);
    assert_non_null(strstr(text, "5 plans, 3 compared"));
    assert_non_null(strstr(text, "worst memory"));
    free(text);
    text = maq_validate_plans_json(r);
    json_t *root = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    assert_non_null(root);
    assert_string_equal(json_string_value(json_object_get(root, "schema")), "maquette.validate.plans/1");
    assert_int_equal(json_array_size(json_object_get(root, "rows")), 5);
    json_decref(root);
    free(text);
    maq_validate_plans_free(r);
    assert_int_equal(run(&r, "x/one/N1/plan_config_a.json", NULL), MAQ_OK);
    assert_int_equal(r->n_compared, 1);
    maq_validate_plans_free(r);
}

/* A ustar archive of the plans, as tar writes it; `cut` leaves the end out. */
static void write_archive(size_t cut)
{
    gzFile out = gzopen(at("x.tar.gz"), "wb");
    assert_non_null(out);
    for (size_t i = 5; i < sizeof files / sizeof files[0]; i++) {
        char block[512] = {0};
        size_t n = strlen(files[i].text), keep = n > cut ? n - cut : 0;
        memcpy(block, files[i].name, strlen(files[i].name));
        snprintf(block + 124, 12, "%011o", (unsigned)n);
        block[156] = '0';
        memcpy(block + 257, "ustar", 6);
        gzwrite(out, block, sizeof block);
        gzwrite(out, files[i].text, (unsigned)keep);
        memset(block, 0, sizeof block);
        if (keep == n && n % 512 > 0)
            gzwrite(out, block, (unsigned)(512 - n % 512));
        if (keep < n)
            break;
    }
    gzclose(out);
}

static void test_archive(void **state)
{
    (void)state;
    struct maq_validate_plans *r;
    write_archive(0);
    assert_int_equal(run(&r, "x.tar.gz", NULL), MAQ_OK);
    assert_rows(r);
    maq_validate_plans_free(r);
}

static void expect(const char *plans, unsigned code, const char *words)
{
    struct maq_validate_plans *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_not_equal(run(&r, plans, diag), MAQ_OK);
    assert_null(r);
    if (maq_diag_at(diag, 0)->code != code || !strstr(maq_diag_at(diag, 0)->msg.ptr, words))
        fail_msg("%u: %s", maq_diag_at(diag, 0)->code, maq_diag_at(diag, 0)->msg.ptr);
    maq_diag_free(diag);
}

static void test_faults(void **state)
{
    (void)state;
    struct maq_validate_plans *r = NULL;
    expect("nowhere", 1030, "nowhere");
    write_archive(100);
    expect("x.tar.gz", MAQ_CODE_PLAN_FILES, "ends in the middle");
    write_file("x.tar.gz", "");
    expect("x.tar.gz", MAQ_CODE_PLAN_FILES, "holds no plan");
    write_file("x.tar.gz", "{}");
    expect("x.tar.gz", MAQ_CODE_PLAN_FILES, "is no archive");
    expect("p/basic_cluster_config.json", 1022, "micro_batch_size");
    assert_int_equal(maq_validate_plans(&r, folder, NULL, NULL), MAQ_USAGE);
}

/* ---- the published plans ---- */

static struct maq_validate_plans *published(enum maq_plan_judge judge)
{
    const char *shared = getenv("MAQ_SHARED");
    char profile[4096], plans[4200];
    struct maq_validate_plans_opts opts = MAQ_VALIDATE_PLANS_OPTS_INIT;
    struct maq_validate_plans *r = NULL;
    snprintf(profile, sizeof profile, "%s/data/planners/sailor", shared ? shared : "");
    snprintf(plans, sizeof plans, "%s/validation_measured.tar.gz", profile);
    if (!shared || access(plans, R_OK) != 0) {
        print_message("no published plans: set MAQ_SHARED to the folder that has data/planners/sailor\n");
        skip();
    }
    opts.profile = profile;
    opts.judge = judge;
    assert_int_equal(maq_validate_plans(&r, plans, &opts, NULL), MAQ_OK);
    assert_int_equal(r->n_rows, 36);
    assert_int_equal(r->n_compared, 34);
    return r;
}

static const struct maq_plan_group *group(const struct maq_validate_plans *r, const char *name)
{
    for (uint32_t i = 0; i < r->n_groups; i++)
        if (strcmp(r->groups[i].name, name) == 0)
            return &r->groups[i];
    fail_msg("no group %s", name);
    return NULL;
}

static void test_published_plans(void **state)
{
    (void)state;
    struct maq_validate_plans *r = published(MAQ_PLAN_JUDGE_OURS);
    const struct maq_validate_stat *total = group(r, "total")->stat;
    assert_int_equal(total[MAQ_PLAN_TIME].n, 34);
    assert_true(total[MAQ_PLAN_TIME].median <= 0.05);
    assert_true(total[MAQ_PLAN_MEMORY].median <= 0.06);
    assert_true(group(r, "clariden/GPT-NEO")->stat[MAQ_PLAN_TIME].median <= 0.05);
    assert_true(group(r, "mit")->stat[MAQ_PLAN_TIME].median <= 0.05);
    assert_true(group(r, "clariden/OPT-350")->stat[MAQ_PLAN_MEMORY].median <= 0.06);
    assert_true(group(r, "clariden/GPT-NEO")->stat[MAQ_PLAN_MEMORY].median <= 0.06);
    maq_validate_plans_free(r);
}

/* Sailor's simulator on its own plans: 6.0 % of the time of OPT-350 and 5.9 % of its memory in the mean, as its authors' code gives. */
static void test_sailor_on_its_plans(void **state)
{
    (void)state;
    struct maq_validate_plans *r = published(MAQ_PLAN_JUDGE_SAILOR);
    const struct maq_validate_stat *opt = group(r, "clariden/OPT-350")->stat;
    assert_int_equal(opt[MAQ_PLAN_TIME].n, 15);
    assert_true(fabs(opt[MAQ_PLAN_TIME].median - 0.060) < 0.0005);
    assert_true(fabs(opt[MAQ_PLAN_MEMORY].mean - 0.059) < 0.0005);
    maq_validate_plans_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folder),
        cmocka_unit_test(test_archive),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_published_plans),
        cmocka_unit_test(test_sailor_on_its_plans),
    };
    return cmocka_run_group_tests_name("executed plans", tests, make_files, remove_files);
}
