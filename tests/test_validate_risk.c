/* SPDX-License-Identifier: Apache-2.0 */
/* test_validate_risk.c - published observations: all inside of their bands, with and without the recordings. maq-test: long */
#include "maquette/validate.h"

#include <jansson.h>
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

#include "effort.h"

static struct maq_validate_risk *validate(const char *folder)
{
    struct maq_validate_risk *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_validate_risk(&r, folder, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return r;
}

static void assert_none_fails(const struct maq_validate_risk *r)
{
    char *text = maq_validate_risk_text(r);
    if (r->n[MAQ_RISK_FAIL] > 0)
        fail_msg("%s", text);
    assert_int_equal(r->n[MAQ_RISK_PASS] + r->n[MAQ_RISK_FAIL] + r->n[MAQ_RISK_SKIP], r->n_rows);
    free(text);
}

/* A second half may have a regime that the first never shows (O9): such rows are outside their band, by no more than this. */
static void assert_only_late_regimes_fail(const struct maq_validate_risk *r)
{
    char *text = maq_validate_risk_text(r);
    for (uint32_t i = 0; i < r->n_rows; i++) {
        const struct maq_validate_risk_row *w = &r->rows[i];
        bool late = strcmp(w->id, "O9") == 0 && fabs(w->predicted / w->observed - 1) < 0.06;
        if (w->verdict == MAQ_RISK_FAIL && !late)
            fail_msg("%s", text);
    }
    assert_true(r->n[MAQ_RISK_FAIL] <= 4);
    free(text);
}

static const struct maq_validate_risk_row *row(const struct maq_validate_risk *r, const char *id)
{
    for (uint32_t i = 0; i < r->n_rows; i++)
        if (strcmp(r->rows[i].id, id) == 0)
            return &r->rows[i];
    fail_msg("no row %s", id);
    return NULL;
}

static void test_without_recordings(void **state)
{
    char folder[] = "/tmp/maquette-test-validate-XXXXXX";
    assert_non_null(mkdtemp(folder));
    struct maq_validate_risk *r = validate(folder), *none = NULL;
    rmdir(folder);
    assert_int_equal(maq_validate_risk(&none, folder, NULL), MAQ_IO); /* it is gone */
    assert_null(none);
    assert_none_fails(r);
    assert_true(r->n[MAQ_RISK_SKIP] >= 2 && r->n[MAQ_RISK_PASS] >= 15);
    assert_int_equal(row(r, "O10")->verdict, MAQ_RISK_SKIP);
    assert_true(fabs(row(r, "O1")->predicted - 1.803) < 1e-3);
    assert_int_equal(row(r, "O8")->verdict, MAQ_RISK_SKIP);
    static const char *const there[] = {"O7", "O11", "O13", "O15", "O16"};
    for (size_t i = 0; i < sizeof there / sizeof *there; i++)
        assert_int_equal(row(r, there[i])->verdict, MAQ_RISK_PASS);
    char *json = maq_validate_risk_json(r);
    json_t *d = json_loads(json, JSON_REJECT_DUPLICATES, NULL);
    assert_string_equal(json_string_value(json_object_get(d, "schema")), "maquette.validate.risk/1");
    assert_int_equal(json_array_size(json_object_get(d, "rows")), r->n_rows);
    json_decref(d);
    free(json);
    maq_validate_risk_free(r);
}

static void test_with_recordings(void **state)
{
    NOT_UNDER_A_SANITIZER();
    const char *shared = getenv("MAQ_SHARED");
    char folder[4096];
    if (!shared) {
        print_message("MAQ_SHARED is not set: no recordings\n");
        skip();
    }
    snprintf(folder, sizeof folder, "%s/data/variability", shared);
    struct maq_validate_risk *r = validate(folder);
    assert_only_late_regimes_fail(r);
    assert_true(row(r, "O10")->verdict == MAQ_RISK_PASS);
    assert_true(row(r, "O6")->verdict == MAQ_RISK_PASS);
    assert_true(row(r, "O8")->verdict == MAQ_RISK_PASS);
    assert_true(row(r, "start")->verdict == MAQ_RISK_PASS);
    maq_validate_risk_free(r);
}

/* A table whose rest is known: x = block + run + rest, with rests +d and -d in turn: two runs, and one that is shorter. */
static void test_variation_by_hand(void **state)
{
    NOT_UNDER_A_SANITIZER();
    char folder[] = "/tmp/maq-risk-XXXXXX", path[256];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/startup", folder);
    assert_int_equal(mkdir(path, 0700), 0);
    snprintf(path, sizeof path, "%s/startup/mlperf_blocks.csv.gz", folder); /* plain text is read as well */
    FILE *f = fopen(path, "w");
    fprintf(f, "bench,system,run,block_idx,block_seconds\n");
    for (int run = 0; run < 3; run++)
        for (int b = 0; b < (run < 2 ? 20 : 19); b++)
            fprintf(f, "gpt3,one,%d,%d,%.6f\n", run, b, 10 + (b == 0 ? 3 : 0) + 0.01 * run + (run + b) % 2 * 0.2);
    fclose(f);
    struct maq_validate_risk *r = validate(folder);
    const struct maq_validate_risk_row *v = row(r, "O10");
    /* Rests of +-0.1 around place and run, as the runs alternate: 40 of them, with 1 x 19 degrees of freedom. */
    double mean = 10.105 + 3.0 / 20, rest = sqrt(40 * 0.1 * 0.1 / 19 / 20) / mean;
    assert_true(fabs(v->predicted / (100 * rest) - 1) < 1e-6);
    assert_true(fabs(v->observed / (100 * 0.01 / sqrt(2) / mean) - 1) < 1e-6);
    maq_validate_risk_free(r);
    unlink(path);
    snprintf(path, sizeof path, "%s/startup", folder);
    rmdir(path);
    rmdir(folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_without_recordings),
        cmocka_unit_test(test_with_recordings),
        cmocka_unit_test(test_variation_by_hand),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
