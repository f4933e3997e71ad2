/* SPDX-License-Identifier: Apache-2.0 */
/* test_catalogue.c - lookups by name, alias and nearest candidate; and the invariants of what was compiled in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "spec/catalogue_data.h"
#include "spec/doc.h"

static const struct maq_catalogue_entry table[] = {
    {"devices", "a100-80gb", "a100|NVIDIA A100", "x: 1\n", 5},
    {"devices", "h100-pcie", "", "x: 2\n", 5},
    {"devices", "h100-sxm", "hgx-h100", "x: 3\n", 5},
    {"fabrics", "ib-ndr", "infiniband-ndr", "x: 4\n", 5},
    {"models", "a100", "", "x: 5\n", 5},
};
#define N MAQ_COUNT(table)

static void test_find(void **state)
{
    (void)state;
    assert_ptr_equal(maq__catalogue_find_in(table, N, "devices", MAQ_STR("h100-sxm")), &table[2]);
    assert_ptr_equal(maq__catalogue_find_in(table, N, "devices", MAQ_STR("H100-SXM")), &table[2]);
    assert_ptr_equal(maq__catalogue_find_in(table, N, "devices", MAQ_STR("nvidia a100")), &table[0]);
    assert_ptr_equal(maq__catalogue_find_in(table, N, "devices", MAQ_STR("a100")), &table[0]);
    assert_ptr_equal(maq__catalogue_find_in(table, N, "models", MAQ_STR("a100")), &table[4]);
    assert_null(maq__catalogue_find_in(table, N, "devices", MAQ_STR("ib-ndr")));
    assert_ptr_equal(maq__catalogue_find_in(table, N, "devices", MAQ_STR("NVIDIA H100 SXM")), &table[2]);
    assert_ptr_equal(maq__catalogue_find_in(table, N, "devices", MAQ_STR("Tesla h100_sxm")), &table[2]);
    assert_null(maq__catalogue_find_in(table, N, "devices", MAQ_STR("nvidia")));
    assert_null(maq__catalogue_find_in(table, N, "devices", MAQ_STR("nvidia ")));
    assert_null(maq__catalogue_find_in(table, N, "devices", MAQ_STR("h100 sxm5")));
    assert_null(maq__catalogue_find_in(table, N, "devices", MAQ_STR("a100|NVIDIA A100")));
    assert_null(maq__catalogue_find_in(table, N, "devices", MAQ_STR("hgx")));
    assert_null(maq__catalogue_find_in(table, N, "devices", MAQ_STR("")));
    assert_null(maq__catalogue_find_in(table, N, "nowhere", MAQ_STR("a100")));
}

static void test_nearest(void **state)
{
    (void)state;
    assert_string_equal(maq__catalogue_nearest_in(table, N, "devices", MAQ_STR("h100_smx")), "h100-sxm");
    assert_string_equal(maq__catalogue_nearest_in(table, N, "devices", MAQ_STR("H100-PCI")), "h100-pcie");
    assert_string_equal(maq__catalogue_nearest_in(table, N, "devices", MAQ_STR("h100")),
                        "h100-sxm"); /* begins it, and no shorter one does */
    assert_string_equal(maq__catalogue_nearest_in(table, N, "devices", MAQ_STR("hgx-h10")), "h100-sxm"); /* an alias */
    assert_string_equal(maq__catalogue_nearest_in(table, N, "fabrics", MAQ_STR("infini")),
                        "ib-ndr"); /* begins an alias */
    assert_null(maq__catalogue_nearest_in(table, N, "devices", MAQ_STR("banana")));
    assert_null(maq__catalogue_nearest_in(table, N, "devices", MAQ_STR("")));
    assert_null(maq__catalogue_nearest_in(table, 0, "devices", MAQ_STR("h100")));
}

/* Whatever data/ holds: sorted, findable by every name, NUL-terminated, and a document that parses. */
static void test_compiled_in(void **state)
{
    static const char *const sections[] = {"devices", "fabrics",     "frameworks",
                                           "models",  "variability", "variability/failures"};
    size_t total = 0;
    (void)state;
    for (size_t s = 0; s < MAQ_COUNT(sections); s++) {
        const struct maq_catalogue_entry *e, *before = NULL;
        for (size_t i = 0; (e = maq_catalogue_at(sections[s], i)) != NULL; i++, before = e, total++) {
            assert_string_equal(e->section, sections[s]);
            assert_true(!before || strcmp(before->name, e->name) < 0);
            assert_int_equal(strlen(e->text), e->len);
            assert_ptr_equal(maq_catalogue_find(e->section, maq_str_of(e->name)), e);
            struct maq_str rest = maq_str_of(e->aliases), alias;
            while (rest.ptr && e->aliases[0]) {
                rest = maq_str_split(rest, '|', &alias);
                assert_ptr_equal(maq_catalogue_find(e->section, alias), e);
            }
            struct maq_diag *diag = maq_diag_new();
            struct maq_doc doc;
            if (maq_doc_parse(&doc, e->name, (struct maq_str){e->text, e->len}, MAQ_ORIGIN_CATALOGUE, diag) != MAQ_OK)
                fail_msg("%s/%s: %s", e->section, e->name, maq_diag_at(diag, 0)->msg.ptr);
            maq_doc_fini(&doc);
            maq_diag_free(diag);
        }
    }
    assert_int_equal(total, maq__catalogue_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_compiled_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
