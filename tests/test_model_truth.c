/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_truth.c - parameters of small models of every family against the transformers library: tests/data/model_truth.txt has what it
 * counts (tools/model-truth/run.py wrote it), a model on a line. Sizes are random, keys are left out, embeddings tied and not.
 *
 * A model is met to the last parameter, or refused where the table says so; never anything else.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "maquette/model.h"
#include "model/load.h"

enum { FAMILIES_AT_LEAST = 130, LINE = 4096 };

/* Parameters, or -1 where the model is refused. */
static int64_t count(const char *family, const char *keys)
{
    char text[LINE];
    struct maq_doc doc;
    struct maq_arena arena;
    struct maq_model m = {0};
    struct maq_diag *diag = maq_diag_new();
    snprintf(text, sizeof text, "{model_type: %s%s%s", family, strcmp(keys, "{}") == 0 ? "" : ", ", keys + 1);
    maq_arena_init(&arena, 0);
    bool ok = maq_doc_parse(&doc, "model", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, diag) == MAQ_OK &&
              maq_model_load(&m, doc.root, &arena, diag) == MAQ_OK;
    int64_t params = ok ? m.params : -1;
    maq_doc_fini(&doc);
    maq_arena_fini(&arena);
    maq_diag_free(diag);
    return params;
}

static void met(char *line)
{
    char *rest = line;
    const char *family = strsep(&rest, "\t"), *keys = strsep(&rest, "\t"), *parameters = strsep(&rest, "\t"),
               *buffers = strsep(&rest, "\t\n");
    assert_non_null(buffers);
    bool may_refuse = rest && rest[0] == '-';
    int64_t counted = 0, kept = 0, got = count(family, keys);
    assert_true(maq_str_to_i64(&counted, maq_str_of(parameters)) && maq_str_to_i64(&kept, maq_str_of(buffers)));
    int64_t truth = counted + kept;
    if (got != truth && !(got == -1 && may_refuse))
        fail_msg("%s %s\nhas %lld parameters, the library says %lld", family, keys, (long long)got, (long long)truth);
}

static FILE *table(void)
{
    char path[1024];
    const char *root = getenv("MAQ_SOURCE_ROOT");
    snprintf(path, sizeof path, "%s/tests/data/model_truth.txt", root ? root : ".");
    return fopen(path, "r");
}

static void test_counts(void **state)
{
    FILE *f = table();
    char line[LINE], last[64] = "";
    int families = 0;
    (void)state;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        assert_non_null(strchr(line, '\n'));
        if (line[0] == '#')
            continue;
        size_t n = strcspn(line, "\t");
        if (n < sizeof last && (strncmp(line, last, n) != 0 || last[n] != '\0')) {
            memcpy(last, line, n);
            last[n] = '\0';
            families++;
        }
        met(line);
    }
    fclose(f);
    assert_true(families >= FAMILIES_AT_LEAST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_counts)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
