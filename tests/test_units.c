/* SPDX-License-Identifier: Apache-2.0 */
/* test_units.c - quantities: every unit, every refusal with its reason, exactness, human forms. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "base/units.h"

static void expect(const char *text, enum maq_dim dim, double value)
{
    const char *why = "";
    double got = -1;
    if (!maq_quantity_parse(&got, maq_str_of(text), dim, &why))
        fail_msg("'%s' refused: %s", text, why);
    if (got < value || got > value)
        fail_msg("'%s' is %.17g, not %.17g", text, got, value);
}

static void refuse(const char *text, enum maq_dim dim, const char *reason)
{
    const char *why = "";
    double got = 77;
    if (maq_quantity_parse(&got, maq_str_of(text), dim, &why))
        fail_msg("'%s' accepted as %g", text, got);
    assert_string_equal(why, reason);
    assert_true(got >= 77 && got <= 77);
}

static void test_accepted(void **state)
{
    (void)state;
    expect("80GB", MAQ_DIM_BYTES, 80e9);
    expect("80 GiB", MAQ_DIM_BYTES, 85899345920.0);
    expect(" 1.5 KiB ", MAQ_DIM_BYTES, 1536);
    expect("0 B", MAQ_DIM_BYTES, 0);
    expect("3.35 TB/s", MAQ_DIM_RATE, 3.35e12); /* the nearest double: 3.35 * 1e12 is another one on some inputs */
    expect("400 Gb/s", MAQ_DIM_RATE, 5e10);
    expect("400Gbps", MAQ_DIM_RATE, 5e10);
    expect("1 GiB/s", MAQ_DIM_RATE, 1073741824.0);
    expect("2.5us", MAQ_DIM_TIME, 2.5e-6);
    expect("2.5 \xC2\xB5s", MAQ_DIM_TIME, 2.5e-6);
    expect("7 ns", MAQ_DIM_TIME, 7e-9);
    expect("3 min", MAQ_DIM_TIME, 180);
    expect("2 d", MAQ_DIM_TIME, 172800);
    expect("989.4 TFLOP/s", MAQ_DIM_FLOPS, 989.4e12);
    expect("989.4TFLOPS", MAQ_DIM_FLOPS, 989.4e12);
    expect("5 EFLOP/s", MAQ_DIM_FLOPS, 5e18);
    expect("5EFLOP/s", MAQ_DIM_FLOPS, 5e18); /* this E is no exponent */
    expect("5e2 GFLOP/s", MAQ_DIM_FLOPS, 5e11);
    expect("1.98 GHz", MAQ_DIM_FREQ, 1.98e9);
    expect("700 W", MAQ_DIM_POWER, 700);
    expect("1.2 MW", MAQ_DIM_POWER, 1.2e6);
    expect("15T", MAQ_DIM_COUNT, 15e12);
    expect("1_024", MAQ_DIM_COUNT, 1024);
    expect("4K", MAQ_DIM_COUNT, 4000);
    expect("1e12", MAQ_DIM_COUNT, 1e12);
    expect("2.49 USD/h", MAQ_DIM_MONEY, 2.49);
    expect("-3", MAQ_DIM_NONE, -3);
    expect("0.3 us", MAQ_DIM_TIME, 3e-7); /* 0.3 * 1e-6 in doubles is 3.0000000000000004e-7 or 3e-7 by luck */
}

static void test_refused(void **state)
{
    (void)state;
    refuse("400", MAQ_DIM_RATE, "no unit");
    refuse("80", MAQ_DIM_BYTES, "no unit");
    refuse("", MAQ_DIM_BYTES, "no value");
    refuse("GB", MAQ_DIM_BYTES, "no number");
    refuse("80 Gb", MAQ_DIM_BYTES, "a unit of bits (b) where bytes (B) are expected");
    refuse("80 Gib", MAQ_DIM_BYTES, "a unit of bits (b) where bytes (B) are expected");
    refuse("400 GB", MAQ_DIM_RATE, "a size where a rate (per second) is expected");
    refuse("400 W", MAQ_DIM_RATE, "a unit of another kind");
    refuse("80 gb", MAQ_DIM_BYTES, "a unit in the wrong case (capitals matter)");
    refuse("80 bananas", MAQ_DIM_BYTES, "unknown unit");
    refuse("80 GB/s/s", MAQ_DIM_RATE, "unknown unit");
    refuse("1,000 GB", MAQ_DIM_BYTES, "a malformed number");
    refuse("1.2.3 GB", MAQ_DIM_BYTES, "a malformed number");
    refuse("007 GB", MAQ_DIM_BYTES, "no number");
    refuse("-5 GB", MAQ_DIM_BYTES, "a negative number");
    refuse("1e400 GB", MAQ_DIM_BYTES, "a number too large or too small to hold");
    refuse("1e308 PiB", MAQ_DIM_BYTES, "a number too large or too small to hold");
    refuse("3 GB", MAQ_DIM_NONE, "a unit where a plain number is expected");
    refuse("3 X", MAQ_DIM_COUNT, "unknown unit");
    refuse("1e99 ms ms", MAQ_DIM_TIME, "unknown unit");
}

static void test_names(void **state)
{
    (void)state;
    for (int dim = 0; dim < MAQ_DIM_TOTAL; dim++) {
        assert_non_null(maq_dim_name((enum maq_dim)dim));
        assert_non_null(maq_dim_units((enum maq_dim)dim));
    }
    assert_string_equal(maq_dim_name(MAQ_DIM_RATE), "a data rate");
}

static void test_exact_form(void **state)
{
    static const struct {
        double value;
        enum maq_dim dim;
        const char *text;
    } cases[] = {
        {80e9, MAQ_DIM_BYTES, "80 GB"},
        {85899345920.0, MAQ_DIM_BYTES, "80 GiB"},
        {3.35e12, MAQ_DIM_RATE, "3.35 TB/s"},
        {5e10, MAQ_DIM_RATE, "50 GB/s"},
        {989.4e12, MAQ_DIM_FLOPS, "989.4 TFLOP/s"},
        {2.5e-6, MAQ_DIM_TIME, "2.5 us"},
        {0, MAQ_DIM_BYTES, "0 B"},
        {700, MAQ_DIM_POWER, "700 W"},
        {15e12, MAQ_DIM_COUNT, "15 T"},
        {2.49, MAQ_DIM_MONEY, "2.49 USD/h"},
    };
    char buf[64];
    uint64_t bits = 0x13198A2E03707344u;
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++)
        assert_string_equal(maq_quantity_format(buf, cases[i].value, cases[i].dim), cases[i].text);
    for (int i = 0; i < 3000; i++) { /* whatever the value, the text reads back to it */
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        double value = ldexp((double)(bits >> 11), (int)(bits & 127) - 90);
        enum maq_dim dim = (enum maq_dim)(MAQ_DIM_BYTES + i % (MAQ_DIM_TOTAL - MAQ_DIM_BYTES));
        expect(maq_quantity_format(buf, value, dim), dim, value);
    }
}

static void test_human_forms(void **state)
{
    char buf[32];
    (void)state;
    assert_string_equal(maq_format_bytes(buf, 0), "0 B");
    assert_string_equal(maq_format_bytes(buf, 512), "512 B");
    assert_string_equal(maq_format_bytes(buf, 1024), "1.00 KiB");
    assert_string_equal(maq_format_bytes(buf, 96.4 * 1073741824), "96.4 GiB");
    assert_string_equal(maq_format_bytes(buf, 1023.2 * 1048576), "1023 MiB");
    assert_string_equal(maq_format_bytes(buf, 1023.9 * 1048576), "1.00 GiB");
    assert_string_equal(maq_format_bytes(buf, -2048), "-2.00 KiB");
    assert_string_equal(maq_format_time(buf, 0), "0 s");
    assert_string_equal(maq_format_time(buf, 12.34e-3), "12.3 ms");
    assert_string_equal(maq_format_time(buf, 999.7e-6), "1.00 ms");
    assert_string_equal(maq_format_time(buf, 9.996e-3), "10.0 ms");
    assert_string_equal(maq_format_time(buf, 4e-10), "0.40 ns");
    assert_string_equal(maq_format_time(buf, 90), "90.0 s");
    assert_string_equal(maq_format_time(buf, 300), "5.00 min");
    assert_string_equal(maq_format_time(buf, 3 * 3600), "3.00 h");
    assert_string_equal(maq_format_time(buf, 54 * 86400.0), "54.0 d");
    assert_string_equal(maq_format_rate(buf, 3.35e12), "3.35 TB/s");
    assert_string_equal(maq_format_rate(buf, 5e10), "50.0 GB/s");
    assert_string_equal(maq_format_flops(buf, 989.4e12), "989 TFLOP/s");
    assert_string_equal(maq_format_flops(buf, 6.75e18), "6.75 EFLOP/s");
    assert_string_equal(maq_format_count(buf, 405.9e9), "405.9 B");
    assert_string_equal(maq_format_count(buf, 8.03e9), "8.030 B");
    assert_string_equal(maq_format_count(buf, 16384), "16,384");
    assert_string_equal(maq_format_count(buf, 7), "7");
    assert_string_equal(maq_format_count(buf, 999999), "999,999");
    assert_string_equal(maq_format_count(buf, 1e6), "1.000 M");
    assert_string_equal(maq_format_count(buf, -1234), "-1,234");
    assert_string_equal(maq_format_bytes(buf, (double)INFINITY), "infinite");
    assert_string_equal(maq_format_time(buf, (double)NAN), "unknown");
    /* nothing overflows the buffer, whatever the magnitude */
    for (double x = 1e-320; isfinite(x); x = x * 9.99 + 1e-320) {
        maq_format_bytes(buf, -x);
        maq_format_time(buf, -x);
        maq_format_rate(buf, -x);
        maq_format_flops(buf, -x);
        maq_format_count(buf, -x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_accepted),   cmocka_unit_test(test_refused),     cmocka_unit_test(test_names),
        cmocka_unit_test(test_exact_form), cmocka_unit_test(test_human_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
