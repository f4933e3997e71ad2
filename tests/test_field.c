/* SPDX-License-Identifier: Apache-2.0 */
/* test_field.c - sections read by table: values, defaults, every fault with its text, origins, formatting. */
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
#include "spec/field.h"

struct thing {
    int32_t tp;
    int64_t tokens;
    double ratio, memory, bandwidth, auto_time;
    bool fast;
    struct maq_str name;
    int mode;
    struct maq_node *extra;
    int32_t layers;
};

static const char *const modes[] = {"none", "selective", "full", NULL};

static const struct maq_field fields[] = {
    MAQ_FIELD_I32(struct thing, tp, "tp", .aliases = "tensor_parallel|tensor-model-parallel-size", .def = "1", .min = 1,
                  .max = 64, .doc = "tensor-parallel size"),
    MAQ_FIELD_I64(struct thing, tokens, "tokens", .min = 1),
    MAQ_FIELD_DOUBLE(struct thing, ratio, "ratio", .def = "0.5", .max = 1),
    MAQ_FIELD_QTY(struct thing, memory, "memory", MAQ_DIM_BYTES, .required = true, .min = 1e9, .doc = "device memory"),
    MAQ_FIELD_QTY(struct thing, bandwidth, "bandwidth", MAQ_DIM_RATE, .def = "400 Gb/s"),
    MAQ_FIELD_QTY(struct thing, auto_time, "latency", MAQ_DIM_TIME, .def = "auto"),
    MAQ_FIELD_BOOL(struct thing, fast, "fast", .def = "true"),
    MAQ_FIELD_STR(struct thing, name, "name", .def = "unnamed"),
    MAQ_FIELD_ENUM(struct thing, mode, "recompute", modes, .def = "selective"),
    MAQ_FIELD_NODE(struct thing, extra, "extra"),
    MAQ_FIELD_I32(struct thing, layers, "layers", .def = "auto", .min = 1),
    MAQ_FIELD_END};
enum { ROWS = 11 };

static struct maq_diag *diag;
static struct maq_doc doc;
static struct maq_arena arena;
static struct thing thing;
static uint8_t origins[ROWS];

static int setup(void **state)
{
    (void)state;
    diag = maq_diag_new();
    memset(&doc, 0, sizeof(doc));
    memset(&thing, 0, sizeof(thing));
    maq_arena_init(&arena, 0);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    maq_doc_fini(&doc);
    maq_arena_fini(&arena);
    maq_diag_free(diag);
    return 0;
}

static enum maq_status read_text(const char *text)
{
    maq_doc_fini(&doc);
    assert_int_equal(maq_doc_parse(&doc, "t.yaml", maq_str_of(text), MAQ_ORIGIN_DOCUMENT, diag), MAQ_OK);
    return maq_fields_read(&thing, fields, doc.root, origins, &arena, diag);
}

static void expect_diag(const char *expected)
{
    char *text = maq_diag_format(diag, 0, false);
    assert_string_equal(text, expected);
    free(text);
}

#define assert_exactly(a, b) assert_true((a) >= (b) && (a) <= (b))

static void test_defaults_and_values(void **state)
{
    (void)state;
    thing.tokens = 99;
    assert_int_equal(read_text("memory: 80 GiB\n"), MAQ_OK);
    assert_int_equal(thing.tp, 1);
    assert_int_equal(thing.tokens, 99); /* no default: left as it was */
    assert_exactly(thing.ratio, 0.5);
    assert_exactly(thing.memory, 85899345920.0);
    assert_exactly(thing.bandwidth, 5e10);
    assert_exactly(thing.auto_time, 0);
    assert_true(thing.fast);
    assert_true(maq_str_is(thing.name, "unnamed"));
    assert_int_equal(thing.mode, 1);
    assert_null(thing.extra);
    assert_int_equal(origins[0], MAQ_ORIGIN_DEFAULT);
    assert_int_equal(origins[3], MAQ_ORIGIN_DOCUMENT);

    assert_int_equal(read_text("tensor-model-parallel-size: 8\ntokens: 9000000000\nratio: 1\nmemory: 1GB\n"
                               "bandwidth: 1 TB/s\nlatency: 2 us\nfast: no\nname: x y\nrecompute: FULL\n"
                               "extra: [1, 2]\nlayers: 126\n"),
                     MAQ_OK);
    assert_int_equal(thing.tp, 8);
    assert_true(thing.tokens == 9000000000);
    assert_exactly(thing.ratio, 1);
    assert_exactly(thing.auto_time, 2e-6);
    assert_false(thing.fast);
    assert_true(maq_str_is(thing.name, "x y"));
    assert_int_equal(thing.mode, 2);
    assert_int_equal(thing.extra->count, 2);
    assert_int_equal(thing.layers, 126);
    assert_int_equal(origins[0], MAQ_ORIGIN_DOCUMENT);
    maq_node_use_all(thing.extra);
    assert_int_equal(maq_doc_check_unused(&doc, diag), MAQ_OK); /* everything was read */
    maq_doc_fini(&doc);
    assert_true(maq_str_is(thing.name, "x y")); /* in `arena`, not in the document */
    assert_int_equal(maq_diag_count(diag), 0);
}

static void test_auto_and_null(void **state)
{
    (void)state;
    assert_int_equal(read_text("memory: 2 GB\nlatency: auto\nlayers: auto\ntp: ~\nfast:\n"), MAQ_OK);
    assert_exactly(thing.auto_time, 0);
    assert_int_equal(thing.layers, 0); /* below .min, but auto is no number */
    assert_int_equal(thing.tp, 1);     /* null: the default */
    assert_true(thing.fast);
    assert_int_equal(read_text("memory: auto\n"), MAQ_BAD_INPUT); /* only where the table says so */
}

static void test_without_document(void **state)
{
    (void)state;
    assert_int_equal(maq_fields_read(&thing, fields, NULL, NULL, &arena, diag), MAQ_BAD_INPUT);
    expect_diag("error[MAQ1022]: the key 'memory' is missing\n"
                "hint: memory: device memory; bytes (B, KB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB)\n");
    assert_int_equal(thing.tp, 1);
    assert_true(maq_str_is(thing.name, "unnamed"));
}

/* Every fault in one run, with place, text and hint. */
static void test_all_faults_at_once(void **state)
{
    (void)state;
    assert_int_equal(read_text("tp: 0\ntokens: many\nratio: 1.5\nmemory: 80\nbandwidth: 400 GB\nlatency: {a: b}\n"
                               "fast: 1\nname: [x]\nrecompute: selectiv\nlayers: 3000000000\n"),
                     MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 10);
    expect_diag(
        "t.yaml:1:5: error[MAQ1023]: 'tp' is 0, must be between 1 and 64\n"
        "  1 | tp: 0\n"
        "    |     ^\n"
        "hint: tp: tensor-parallel size\n"
        "\n"
        "t.yaml:2:9: error[MAQ1024]: 'tokens' must be a whole number, not 'many'\n"
        "  2 | tokens: many\n"
        "    |         ^~~~\n"
        "\n"
        "t.yaml:3:8: error[MAQ1023]: 'ratio' is 1.5, must be between 0 and 1\n"
        "  3 | ratio: 1.5\n"
        "    |        ^~~\n"
        "\n"
        "t.yaml:4:9: error[MAQ1025]: 'memory' must be bytes, '80' has no unit\n"
        "  4 | memory: 80\n"
        "    |         ^~\n"
        "hint: write 80 GB or 80 GiB; units: B, KB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB\n"
        "\n"
        "t.yaml:5:12: error[MAQ1025]: 'bandwidth' must be a data rate, '400 GB' has a size where a rate (per second) "
        "is expected\n"
        "  5 | bandwidth: 400 GB\n"
        "    |            ^~~~~~\n"
        "hint: units: bytes: B/s, KB/s, MB/s, GB/s, TB/s, GiB/s; bits: Mb/s, Gb/s, Tb/s\n"
        "\n"
        "t.yaml:6:10: error[MAQ1020]: 'latency' must be a time, not a map\n"
        "  6 | latency: {a: b}\n"
        "    |          ^~~~~~\n"
        "\n"
        "t.yaml:7:7: error[MAQ1020]: 'fast' must be true or false, not '1'\n"
        "  7 | fast: 1\n"
        "    |       ^\n"
        "hint: write true\n"
        "\n"
        "t.yaml:8:7: error[MAQ1020]: 'name' must be a text, not a list\n"
        "  8 | name: [x]\n"
        "    |       ^~~\n"
        "\n"
        "t.yaml:9:12: error[MAQ1026]: unknown value 'selectiv' for 'recompute'\n"
        "  9 | recompute: selectiv\n"
        "    |            ^~~~~~~~\n"
        "hint: did you mean 'selective'? one of: none, selective, full\n"
        "\n"
        "t.yaml:10:9: error[MAQ1023]: 'layers' is 3000000000, must be at most 2147483647 in size\n"
        "  10 | layers: 3000000000\n"
        "     |         ^~~~~~~~~~\n");
}

static void test_range_in_units(void **state)
{
    (void)state;
    assert_int_equal(read_text("memory: 10 MB\n"), MAQ_BAD_INPUT);
    assert_string_equal(maq_diag_at(diag, 0)->msg.ptr, "'memory' is 10 MB, must be at least 1 GB");
}

static void test_two_spellings(void **state)
{
    (void)state;
    assert_int_equal(read_text("memory: 2 GB\ntensor_parallel: 2\ntp: 4\n"), MAQ_BAD_INPUT);
    expect_diag("t.yaml:2:1: error[MAQ1002]: 'tensor_parallel' and 'tp' are the same setting\n"
                "  2 | tensor_parallel: 2\n"
                "    | ^~~~~~~~~~~~~~~\n"
                "t.yaml:3:1: note: first given here\n"
                "  3 | tp: 4\n"
                "    | ^~\n"
                "hint: keep one of the two\n");
}

static void test_not_a_map(void **state)
{
    (void)state;
    assert_int_equal(read_text("[1]"), MAQ_BAD_INPUT);
    expect_diag("t.yaml:1:1: error[MAQ1020]: the value must be a map, not a list\n"
                "  1 | [1]\n"
                "    | ^~~\n");
}

static void test_missing_has_a_place(void **state)
{
    (void)state;
    assert_int_equal(maq_doc_parse(&doc, "t.yaml", MAQ_STR("device:\n  tp: 2\n"), MAQ_ORIGIN_DOCUMENT, diag), MAQ_OK);
    assert_int_equal(maq_fields_read(&thing, fields, maq_node_get(doc.root, "device"), NULL, &arena, diag),
                     MAQ_BAD_INPUT);
    expect_diag("t.yaml:1:1: error[MAQ1022]: the key 'memory' is missing in 'device'\n"
                "  1 | device:\n"
                "    | ^~~~~~\n"
                "hint: memory: device memory; bytes (B, KB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB)\n");
}

static void test_unknown_keys(void **state)
{
    static const char *const also[] = {"groups", "base", NULL};
    (void)state;
    assert_int_equal(read_text("memory: 2 GB\nbandwith: 1 TB/s\nbase: x\ntensorparallel: 3\nzzz: {a: 1}\n"), MAQ_OK);
    assert_int_equal(maq_fields_check_keys(fields, also, doc.root, "device", diag), MAQ_BAD_INPUT);
    expect_diag(
        "t.yaml:2:1: error[MAQ1021]: unknown key 'bandwith' in device\n"
        "  2 | bandwith: 1 TB/s\n"
        "    | ^~~~~~~~\n"
        "hint: did you mean 'bandwidth'? known keys: tp, tokens, ratio, memory, bandwidth, latency, fast, name, "
        "recompute, extra, layers, groups, base\n"
        "\n"
        "t.yaml:4:1: error[MAQ1021]: unknown key 'tensorparallel' in device\n"
        "  4 | tensorparallel: 3\n"
        "    | ^~~~~~~~~~~~~~\n"
        "hint: did you mean 'tensor_parallel'? known keys: tp, tokens, ratio, memory, bandwidth, latency, fast, "
        "name, recompute, extra, layers, groups, base\n"
        "\n"
        "t.yaml:5:1: error[MAQ1021]: unknown key 'zzz' in device\n"
        "  5 | zzz: {a: 1}\n"
        "    | ^~~\n"
        "hint: known keys: tp, tokens, ratio, memory, bandwidth, latency, fast, name, recompute, extra, layers, "
        "groups, base\n");
    /* said once: what was reported counts as read; `base` was not reported and nobody read it */
    assert_int_equal(maq_doc_check_unused(&doc, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 4);
    assert_string_equal(maq_diag_at(diag, 3)->msg.ptr, "nothing reads the key 'base'");
    assert_int_equal(maq_fields_check_keys(fields, also, doc.root, "device", diag), MAQ_OK);
    assert_int_equal(maq_fields_check_keys(fields, NULL, NULL, "device", diag), MAQ_OK);
}

static void test_many_unknown_keys(void **state)
{
    size_t n = 0, size = 1 << 20;
    char *text = malloc(size);
    (void)state;
    for (int i = 0; i < 20000; i++)
        n += (size_t)snprintf(text + n, size - n, "some_unknown_key_%d: 1\n", i);
    assert_int_equal(maq_doc_parse(&doc, "t", (struct maq_str){text, n}, MAQ_ORIGIN_DOCUMENT, diag), MAQ_OK);
    assert_int_equal(maq_fields_check_keys(fields, NULL, doc.root, "device", diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 1000);
    assert_int_equal(maq_doc_check_unused(&doc, diag), MAQ_OK); /* the others are not reported a second way */
    free(text);
}

static void test_find(void **state)
{
    (void)state;
    assert_int_equal(maq_fields_count(fields), ROWS);
    assert_ptr_equal(maq_fields_find(fields, MAQ_STR("tp")), &fields[0]);
    assert_ptr_equal(maq_fields_find(fields, MAQ_STR("tensor-model-parallel-size")), &fields[0]);
    assert_null(maq_fields_find(fields, MAQ_STR("tensor")));
    assert_null(maq_fields_find(fields, MAQ_STR("")));
}

static void expect_format(size_t row, const char *expected)
{
    char buf[64];
    assert_string_equal(maq_field_format(buf, &fields[row], &thing), expected);
}

/* A name in either case; its place only where the row says so, and only a place that there is. */
static void test_names(void **state)
{
    (void)state;
    struct maq_field named = *maq_fields_find(fields, MAQ_STR("recompute")), numbered = named;
    numbered.numbered = true;
    assert_int_equal(maq_field_name(&numbered, MAQ_STR("Selective")), 1);
    assert_int_equal(maq_field_name(&numbered, MAQ_STR("0")), 0);
    assert_int_equal(maq_field_name(&numbered, MAQ_STR("2")), 2);
    static const char *const none[] = {"3", "-1", "02", "", "sel"};
    for (size_t i = 0; i < MAQ_COUNT(none); i++)
        assert_int_equal(maq_field_name(&numbered, maq_str_of(none[i])), -1);
    assert_int_equal(maq_field_name(&named, MAQ_STR("0")), -1);
}

static void test_format(void **state)
{
    (void)state;
    thing = (struct thing){.tp = 8,
                           .tokens = -9000000000,
                           .ratio = 0.1,
                           .memory = 85899345920.0,
                           .bandwidth = 5e10,
                           .mode = 2,
                           .name = MAQ_STR("plain name")};
    expect_format(0, "8");
    expect_format(1, "-9000000000");
    expect_format(2, "0.1");
    expect_format(3, "80 GiB");
    expect_format(4, "50 GB/s");
    expect_format(5, "auto");
    expect_format(6, "false");
    expect_format(7, "plain name");
    expect_format(8, "full");
    expect_format(9, "(section)");
    expect_format(10, "auto");
    thing.mode = 3;
    expect_format(8, "unknown");
    thing.mode = -1;
    expect_format(8, "unknown");
    thing.auto_time = 2.5e-6;
    expect_format(5, "2.5 us");
    thing.name = MAQ_STR("a: b");
    expect_format(7, "'a: b'");
    thing.name = MAQ_STR("it's # here");
    expect_format(7, "'it''s # here'");
    thing.name = MAQ_STR("null"); /* would read back as no value */
    expect_format(7, "'null'");
    thing.name = MAQ_STR("");
    expect_format(7, "''");
    char buf[64], longest[300];
    memset(longest, 'x', sizeof(longest));
    thing.name = (struct maq_str){longest, sizeof(longest)};
    assert_int_equal(strlen(maq_field_format(buf, &fields[7], &thing)), 62); /* cut, and says so */
    assert_string_equal(buf + 58, "x...");
    thing.name = MAQ_STR("a\n\"b");
    expect_format(7, "\"a\\x0a\\\"b\"");
    thing.name = MAQ_STR("h100-sxm:8 x 2");
    expect_format(7, "h100-sxm:8 x 2");
    thing.memory = (double)INFINITY;
    expect_format(3, "infinite");
}

/* What is printed reads back as the same value. */
static void test_round_trip(void **state)
{
    char text[1200] = "", buf[64];
    (void)state;
    struct thing before = {.tp = 4,
                           .tokens = 123456789012345,
                           .ratio = 1.0 / 3,
                           .memory = 81559.0 * 1048576,
                           .bandwidth = 3.3512e12,
                           .auto_time = 1.25e-6,
                           .fast = false,
                           .name = MAQ_STR("it's: \"q\" #1"),
                           .mode = 0,
                           .layers = 61};
    for (size_t i = 0; i < ROWS; i++)
        if (fields[i].type != MAQ_TYPE_NODE)
            snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s: %s\n", fields[i].key,
                     maq_field_format(buf, &fields[i], &before));
    assert_int_equal(read_text(text), MAQ_OK);
    assert_int_equal(thing.tp, before.tp);
    assert_true(thing.tokens == before.tokens);
    assert_exactly(thing.ratio, before.ratio);
    assert_exactly(thing.memory, before.memory);
    assert_exactly(thing.bandwidth, before.bandwidth);
    assert_exactly(thing.auto_time, before.auto_time);
    assert_int_equal(thing.fast, before.fast);
    assert_true(maq_str_eq(thing.name, before.name));
    assert_int_equal(thing.mode, before.mode);
    assert_int_equal(thing.layers, before.layers);
}

static jmp_buf after_bug;

static void jump(const char *what, const char *file, int line)
{
    (void)what, (void)file, (void)line;
    longjmp(after_bug, 1);
}

static void test_bad_default_is_a_bug(void **state)
{
    static const struct maq_field wrong[] = {MAQ_FIELD_I32(struct thing, tp, "tp", .def = "one"), MAQ_FIELD_END};
    (void)state;
    maq_set_bug_hook(jump);
    if (setjmp(after_bug) == 0) {
        maq_fields_read(&thing, wrong, NULL, NULL, &arena, diag);
        fail_msg("a default that is no number passed");
    }
    maq_set_bug_hook(NULL);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    assert_int_equal(maq_doc_parse(&doc, "t", MAQ_STR("memory: 2 GB\nname: abc\nrecompute: ful\nbad: 1\n"),
                                   MAQ_ORIGIN_DOCUMENT, diag),
                     MAQ_OK);
    bool whole = false;
    for (fail_at = 1; !whole; fail_at++) {
        struct maq_arena own;
        assert_true(fail_at < 100);
        maq_arena_init(&own, 0);
        doc.root->first->next->next->next->used = false;
        asked = 0;
        maq__set_alloc_gate(fail_nth);
        enum maq_status s1 = maq_fields_read(&thing, fields, doc.root, NULL, &own, diag);
        enum maq_status s2 = maq_fields_check_keys(fields, NULL, doc.root, "x", diag);
        maq__set_alloc_gate(NULL);
        whole = asked < fail_at;
        assert_true(s1 == MAQ_BAD_INPUT || s1 == MAQ_NO_MEMORY);
        assert_int_equal(s2, MAQ_BAD_INPUT);
        maq_arena_fini(&own);
    }
    assert_true(fail_at > 4);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_defaults_and_values),
        TEST(test_auto_and_null),
        TEST(test_without_document),
        TEST(test_all_faults_at_once),
        TEST(test_range_in_units),
        TEST(test_two_spellings),
        TEST(test_not_a_map),
        TEST(test_missing_has_a_place),
        TEST(test_unknown_keys),
        TEST(test_many_unknown_keys),
        TEST(test_find),
        TEST(test_names),
        TEST(test_format),
        TEST(test_round_trip),
        TEST(test_bad_default_is_a_bug),
        TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
