/* SPDX-License-Identifier: Apache-2.0 */
/* test_str.c - slices, edit distance, numbers as text, UTF-8, growing buffers, small statistics. */
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/stat/summary.h"
#include "base/str.h"
#include "base/text.h"
#include "maquette/range.h"

/* cmocka 1.1.5 compares floats only. */
#define assert_exactly(a, b) assert_true((a) >= (b) && (a) <= (b))

static void test_planner_external(void **state)
{
    struct maq_str head, rest;
    (void)state;
    assert_true(maq_str_eq(maq_str_of(NULL), MAQ_STR("")));
    assert_true(maq_str_is(MAQ_STR("abc"), "abc"));
    assert_false(maq_str_is(MAQ_STR("abc"), "abcd"));
    assert_false(maq_str_is(MAQ_STR("a\0b"), "a"));
    assert_true(maq_str_ieq(MAQ_STR("H100-SXM"), "h100-sxm"));
    assert_false(maq_str_ieq(MAQ_STR("["), "{")); /* differ by the case bit, and are no letters */
    assert_true(maq_str_starts(MAQ_STR("abc"), "ab"));
    assert_true(maq_str_starts(MAQ_STR("abc"), ""));
    assert_false(maq_str_starts(MAQ_STR("ab"), "abc"));
    assert_true(maq_str_has(MAQ_STR("abc"), "abc") && maq_str_has(MAQ_STR("abc"), "BC") &&
                maq_str_has(MAQ_STR("ABC"), "b"));
    assert_true(maq_str_has(MAQ_STR(""), "") && maq_str_has(MAQ_STR("aab"), "ab"));
    assert_false(maq_str_has(MAQ_STR("ab"), "abc") || maq_str_has(MAQ_STR("abc"), "ac") ||
                 maq_str_has(MAQ_STR(""), "a"));
    assert_true(maq_str_is(maq_str_trim(MAQ_STR(" \t a b\r\n")), "a b"));
    assert_int_equal(maq_str_trim(MAQ_STR("  ")).len, 0);

    rest = maq_str_split(MAQ_STR("a=b=c"), '=', &head);
    assert_true(maq_str_is(head, "a"));
    assert_true(maq_str_is(rest, "b=c"));
    rest = maq_str_split(MAQ_STR("a="), '=', &head);
    assert_true(maq_str_is(head, "a"));
    assert_int_equal(rest.len, 0);
    assert_non_null(rest.ptr); /* "a=" has an empty rest, "a" has none */
    rest = maq_str_split(MAQ_STR("a"), '=', &head);
    assert_true(maq_str_is(head, "a"));
    assert_null(rest.ptr);
}

static void test_distance(void **state)
{
    static const struct {
        const char *a, *b;
        uint32_t distance;
    } cases[] = {
        {"", "", 0},
        {"a", "", 1},
        {"", "abc", 3},
        {"bandwith", "bandwidth", 1},
        {"ab", "ba", 1},
        {"kitten", "sitting", 3},
        {"memroy", "memory", 1},
        {"abcd", "badc", 2},
        {"same", "same", 0},
        {"tp", "pp", 1},
        {"ca", "abc", 3},
    };
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_str a = maq_str_of(cases[i].a), b = maq_str_of(cases[i].b);
        assert_int_equal(maq_str_distance(a, b, 10), cases[i].distance);
        assert_int_equal(maq_str_distance(b, a, 10), cases[i].distance);
    }
    assert_int_equal(maq_str_distance(MAQ_STR("kitten"), MAQ_STR("sitting"), 2), 2); /* capped */
    char x[200], y[200];
    memset(x, 'x', sizeof(x));
    memset(y, 'x', sizeof(y));
    assert_int_equal(maq_str_distance((struct maq_str){x, 200}, (struct maq_str){y, 200}, 5), 0);
    y[100] = 'y';
    assert_int_equal(maq_str_distance((struct maq_str){x, 200}, (struct maq_str){y, 200}, 5), 5);
}

static void test_integers(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"-0", 0},
        {"+7", 7},
        {"16_384", 16384},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    static const char *const bad[] = {"",
                                      "+",
                                      "-",
                                      "--1",
                                      "01",
                                      "1.0",
                                      "1e3",
                                      "0x10",
                                      "1_",
                                      "_1",
                                      "1__0",
                                      " 1",
                                      "1 ",
                                      "1k",
                                      "\xD9\xA1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999999"};
    int64_t value = 77;
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(good); i++) {
        assert_true(maq_str_to_i64(&value, maq_str_of(good[i].text)));
        assert_true(value == good[i].value);
    }
    value = 77;
    for (size_t i = 0; i < MAQ_COUNT(bad); i++)
        assert_false(maq_str_to_i64(&value, maq_str_of(bad[i])));
    assert_int_equal(value, 77); /* untouched on failure */
}

static void test_doubles(void **state)
{
    static const struct {
        const char *text;
        double value;
    } good[] = {
        {"0", 0},
        {"1", 1},
        {"-1.5", -1.5},
        {"+2.5e-3", 0.0025},
        {"1_000.5", 1000.5},
        {"1E5", 1e5},
        {"0.1", 0.1},
        {"3.35e12", 3.35e12},
        {"1.7976931348623157e308", 1.7976931348623157e308},
        {"4.9e-324", 4.9e-324},
        {"0e999999999999", 0},
        {"9007199254740993", 9007199254740992.0}, /* halfway: to even */
        {"9007199254740993.00000000000000000000000001", 9007199254740994.0},
    };
    static const char *const bad[] = {"",
                                      ".5",
                                      "5.",
                                      "inf",
                                      "nan",
                                      "NaN",
                                      "Infinity",
                                      "0x1p3",
                                      "1e",
                                      "1e+",
                                      "1,5",
                                      "007",
                                      "1 ",
                                      " 1",
                                      "1..2",
                                      "-",
                                      "+",
                                      "1e5.0",
                                      "1._5",
                                      "1e400",
                                      "-1e400",
                                      "1e-400",
                                      "1e99999999999999999999"};
    (void)state;
    double value = 77;
    for (size_t i = 0; i < MAQ_COUNT(good); i++) {
        assert_true(maq_str_to_double(&value, maq_str_of(good[i].text)));
        assert_exactly(value, good[i].value);
    }
    value = 77;
    for (size_t i = 0; i < MAQ_COUNT(bad); i++)
        assert_false(maq_str_to_double(&value, maq_str_of(bad[i])));
    assert_exactly(value, 77);

    char digits[800];
    memset(digits, '9', sizeof(digits));
    assert_false(maq_str_to_double(&value, (struct maq_str){digits, 800})); /* 1e800 */
    digits[1] = '.';
    assert_true(maq_str_to_double(&value, (struct maq_str){digits, 800}));
    assert_exactly(value, 10);
}

/* A program with a German locale reads and writes the same numbers. Runs where such a locale is installed. */
static void test_no_locale(void **state)
{
    double value;
    char buf[32];
    struct maq_buf b;
    (void)state;
    char *before = strdup(setlocale(LC_ALL, NULL));
    const char *names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "C"};
    for (size_t i = 0; i < MAQ_COUNT(names); i++)
        if (setlocale(LC_ALL, names[i]))
            break;
    assert_true(maq_str_to_double(&value, MAQ_STR("1.5")));
    assert_exactly(value, 1.5);
    maq_buf_init(&b, 100);
    maq_buf_addf(&b, "%.1f", 2.5);
    assert_string_equal(b.ptr, "2.5");
    maq_buf_fini(&b);
    assert_string_equal(maq_format_double(buf, 0.25), "0.25");
    setlocale(LC_ALL, before);
    free(before);
}

static void test_shortest_double(void **state)
{
    char buf[32];
    uint64_t bits = 0x243F6A8885A308D3u;
    (void)state;
    assert_string_equal(maq_format_double(buf, 0), "0");
    assert_string_equal(maq_format_double(buf, 0.1), "0.1");
    assert_string_equal(maq_format_double(buf, 1.0 / 3), "0.3333333333333333");
    assert_string_equal(maq_format_double(buf, 5e-324), "5e-324");
    for (int i = 0; i < 2000; i++) {
        double x, back;
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&x, &bits, sizeof(x));
        if (!isfinite(x))
            continue;
        assert_true(maq_str_to_double(&back, maq_str_of(maq_format_double(buf, x))));
        assert_exactly(back, x);
    }
}

static void test_utf8(void **state)
{
    static const struct {
        const char *bytes;
        size_t n, len;
        uint32_t cp;
    } cases[] = {
        {"a", 1, 1, 'a'},
        {"\xC3\xA9", 2, 2, 0xE9},
        {"\xE2\x82\xAC", 3, 3, 0x20AC},
        {"\xF0\x9F\x98\x80", 4, 4, 0x1F600},
        {"\xF4\x8F\xBF\xBF", 4, 4, 0x10FFFF},
        {"\xC3", 1, 1, MAQ_UTF8_BAD},             /* cut */
        {"\xE2\x82", 2, 1, MAQ_UTF8_BAD},         /* cut */
        {"\x80", 1, 1, MAQ_UTF8_BAD},             /* continuation alone */
        {"\xC0\x80", 2, 1, MAQ_UTF8_BAD},         /* overlong NUL */
        {"\xE0\x80\x80", 3, 1, MAQ_UTF8_BAD},     /* overlong */
        {"\xED\xA0\x80", 3, 1, MAQ_UTF8_BAD},     /* surrogate */
        {"\xF4\x90\x80\x80", 4, 1, MAQ_UTF8_BAD}, /* beyond Unicode */
        {"\xF8\x88\x80\x80", 4, 1, MAQ_UTF8_BAD},
        {"\xFF", 1, 1, MAQ_UTF8_BAD},
        {"\xC3\x28", 2, 1, MAQ_UTF8_BAD},
    };
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        uint32_t cp;
        char out[4];
        assert_int_equal(maq_utf8_next(&cp, cases[i].bytes, cases[i].n), cases[i].len);
        assert_int_equal(cp, cases[i].cp);
        if (cp != MAQ_UTF8_BAD) {
            assert_int_equal(maq_utf8_put(out, cp), cases[i].len);
            assert_memory_equal(out, cases[i].bytes, cases[i].len);
        }
    }
}

static void test_show(void **state)
{
    char buf[MAQ_SHOW_SIZE], text[200];
    (void)state;
    assert_string_equal(maq_str_show(buf, MAQ_STR("short")), "short");
    assert_string_equal(maq_str_show(buf, (struct maq_str){NULL, 0}), "");
    memset(text, 'x', sizeof(text));
    memcpy(text + 59, "\xE2\x82\xAC", 3); /* would be cut in the middle */
    maq_str_show(buf, (struct maq_str){text, 200});
    assert_int_equal(strlen(buf), 62);
    assert_string_equal(buf + 58, "x...");
}

static bool refuse_all(size_t bytes)
{
    (void)bytes;
    return false;
}

static void test_buf(void **state)
{
    struct maq_buf b;
    (void)state;
    maq_buf_init(&b, 10);
    maq_buf_adds(&b, "12345");
    maq_buf_addc(&b, '6');
    maq_buf_addf(&b, "%d", 7890);
    assert_string_equal(b.ptr, "1234567890");
    assert_false(b.failed);
    maq_buf_addc(&b, 'x'); /* over the maximum */
    assert_true(b.failed);
    maq_buf_adds(&b, "");
    assert_string_equal(b.ptr, "1234567890");
    maq_buf_fini(&b);

    maq_buf_init(&b, 1 << 20);
    maq__set_alloc_gate(refuse_all);
    maq_buf_adds(&b, "x");
    maq__set_alloc_gate(NULL);
    assert_true(b.failed);
    maq_buf_adds(&b, "y"); /* stays failed, so that no text has a hole in the middle */
    assert_int_equal(b.len, 0);
    maq_buf_fini(&b);
}

static void test_stats(void **state)
{
    double x[] = {3, 1, 2, 4}, tiny[1001];
    (void)state;
    tiny[0] = 1e16;
    for (int i = 1; i < 1001; i++)
        tiny[i] = 1;
    assert_exactly(maq_sum(tiny, 1001), 1e16 + 1000); /* a plain sum gives 1e16 */
    assert_exactly(maq_mean(x, 4), 2.5);
    assert_true(isnan(maq_mean(x, 0)));
    assert_true(isnan(maq_quantile(x, 0, 0.5)));
    assert_exactly(maq_quantile(x, 4, 0), 1);
    assert_exactly(maq_quantile(x, 4, 1), 4);
    assert_exactly(maq_quantile(x, 4, 0.5), 2.5);
    assert_exactly(maq_quantile(x, 4, 0.25), 1.75); /* numpy.quantile([1,2,3,4], .25) */
    double with_inf[] = {1, (double)INFINITY};
    assert_true(isinf(maq_sum(with_inf, 2)));
}

static void test_ranges(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        uint32_t n;
        double first, last;
    } good[] = {{"7", 1, 7, 7},
                {"0.25", 1, 0.25, 0.25},
                {"1..8:x2", 4, 1, 8},
                {"1..9:x2", 4, 1, 8},
                {"8..8:x2", 1, 8, 8},
                {"2..10:+4", 3, 2, 10},
                {"0.1..0.5:+0.1", 5, 0.1, 0.5},
                {"1..2:x1.25", 4, 1, 1.953125},
                {"0.5..4:x2", 4, 0.5, 4},
                {"1..64:+1", 64, 1, 64}};
    static const char *const bad[] = {"",        "x",       "1..8",    "1..8:",    "1..8:x1",
                                      "1..8:+0", "8..1:x2", "0..8:x2", "-1..8:+1", "1..65:+1",
                                      "1..:x2",  "..8:x2",  "1..8:2",  "1..8:x2x", "a..b:x2"};
    double out[64];
    for (size_t i = 0; i < MAQ_COUNT(good); i++) {
        uint32_t n = maq_range_read(out, 64, good[i].text);
        if (n != good[i].n || fabs(out[0] - good[i].first) > 1e-12 || fabs(out[n - 1] - good[i].last) > 1e-12)
            fail_msg("%s: %u numbers", good[i].text, n);
    }
    for (size_t i = 0; i < MAQ_COUNT(bad); i++)
        if (maq_range_read(out, 64, bad[i]) != 0)
            fail_msg("%s is read", bad[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planner_external),
        cmocka_unit_test(test_distance),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_no_locale),
        cmocka_unit_test(test_shortest_double),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_show),
        cmocka_unit_test(test_buf),
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_ranges),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
