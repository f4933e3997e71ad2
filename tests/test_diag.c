/* SPDX-License-Identifier: Apache-2.0 */
/* test_diag.c - diagnostics: places, exact text, windows, hostile text, limits, running out of memory. */
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
#include "failing_alloc.h"
#include "maquette/diag.h"

static const struct maq_span nowhere = {0, 0, 0};

static void expect_text(const struct maq_diag *diag, const char *expected)
{
    char *text = maq_diag_format(diag, 0, false);
    assert_non_null(text);
    assert_string_equal(text, expected);
    free(text);
}

/* One error at [off, off+len) of `source`. */
static void expect_one(const char *source, size_t n, uint32_t off, uint32_t len, const char *expected)
{
    struct maq_diag *diag = maq_diag_new();
    uint32_t file = maq_diag_add_source(diag, "f.yaml", source, n);
    assert_int_equal(file, 1);
    maq_diag_add(diag, MAQ_ERROR, 1021, (struct maq_span){file, off, len}, NULL, "bad");
    expect_text(diag, expected);
    maq_diag_free(diag);
}

static void test_statuses(void **state)
{
    (void)state;
    assert_string_equal(maq_status_text(MAQ_OK), "done");
    assert_string_equal(maq_status_text(MAQ_NO_MEMORY), "out of memory");
    assert_int_equal(maq_status_exit_code(MAQ_NO_MEMORY), 5);
    assert_int_equal(maq_status_exit_code(MAQ_BAD_INPUT), 3);
    assert_int_equal(maq_status_exit_code(MAQ_BUG), 70);
    assert_int_equal(maq_status_exit_code((enum maq_status)99), 70);
    assert_non_null(maq_status_text((enum maq_status)99));
}

static void test_target_format(void **state)
{
    static const char source[] = "a: 1\nb: 2\nc:\nd:\ne:\nf:\n  device:\n    bandwith: 3.35TB/s\n";
    struct maq_diag *diag = maq_diag_new();
    (void)state;
    uint32_t file = maq_diag_add_source(diag, "cluster.yaml", source, strlen(source));
    uint32_t off = (uint32_t)(strstr(source, "bandwith") - source);
    maq_diag_add(diag, MAQ_ERROR, 1021, (struct maq_span){file, off, 8}, "did you mean 'bandwidth'?",
                 "unknown key '%s' in %s", "bandwith", "device");
    expect_text(diag, "cluster.yaml:8:5: error[MAQ1021]: unknown key 'bandwith' in device\n"
                      "  8 |     bandwith: 3.35TB/s\n"
                      "    |     ^~~~~~~~\n"
                      "hint: did you mean 'bandwidth'?\n");
    maq_diag_free(diag);
}

static void test_notes_and_several_items(void **state)
{
    static const char source[] = "tp: 1\npp: 2\ntp: 3\n";
    struct maq_diag *diag = maq_diag_new();
    (void)state;
    uint32_t file = maq_diag_add_source(diag, "p.yaml", source, strlen(source));
    maq_diag_add(diag, MAQ_ERROR, 1002, (struct maq_span){file, 12, 2}, "keep one", "twice");
    maq_diag_add(diag, MAQ_NOTE, 1002, (struct maq_span){file, 0, 2}, NULL, "first here");
    assert_int_equal(maq_diag_fail(MAQ_IO, diag, 1030, nowhere, NULL, "cannot read '%s'", "x"), MAQ_IO);
    maq_diag_add(diag, MAQ_WARNING, 1300, nowhere, NULL, "odd");
    assert_int_equal(maq_diag_count(diag), 4);
    assert_int_equal(maq_diag_errors(diag), 2);
    assert_string_equal(maq_diag_at(diag, 2)->msg.ptr, "cannot read 'x'");
    assert_null(maq_diag_at(diag, 4));
    expect_text(diag, "p.yaml:3:1: error[MAQ1002]: twice\n"
                      "  3 | tp: 3\n"
                      "    | ^~\n"
                      "p.yaml:1:1: note: first here\n"
                      "  1 | tp: 1\n"
                      "    | ^~\n"
                      "hint: keep one\n"
                      "\n"
                      "error[MAQ1030]: cannot read 'x'\n"
                      "\n"
                      "warning[MAQ1300]: odd\n");
    char *two = maq_diag_format(diag, 1, false);
    assert_string_equal(strstr(two, "hint"), "hint: keep one\n\nand 2 more\n");
    free(two);
    maq_diag_free(diag);
}

static void test_carets(void **state)
{
    (void)state;
    /* tabs stay, in the source line and under it */
    expect_one("\tk:\tvalue", 9, 4, 5, "f.yaml:1:5: error[MAQ1021]: bad\n  1 | \tk:\tvalue\n    | \t  \t^~~~~\n");
    /* the end of the text, of a line, and of an empty text */
    expect_one("a: [1", 5, 5, 0, "f.yaml:1:6: error[MAQ1021]: bad\n  1 | a: [1\n    |      ^\n");
    expect_one("ab\ncd\n", 6, 2, 1, "f.yaml:1:3: error[MAQ1021]: bad\n  1 | ab\n    |   ^\n");
    expect_one("", 0, 0, 0, "f.yaml:1:1: error[MAQ1021]: bad\n  1 | \n    | ^\n");
    expect_one("ab\n", 3, 3, 0, "f.yaml:2:1: error[MAQ1021]: bad\n  2 | \n    | ^\n");
    /* beyond the end: no crash, the end is shown */
    expect_one("ab", 2, 100, 100, "f.yaml:1:3: error[MAQ1021]: bad\n  1 | ab\n    |   ^\n");
    /* a span over lines is underlined on its first */
    expect_one("a: [1,\n 2]\n", 11, 3, 7, "f.yaml:1:4: error[MAQ1021]: bad\n  1 | a: [1,\n    |    ^~~\n");
    /* a zero-length span has a caret as well */
    expect_one("abc", 3, 1, 0, "f.yaml:1:2: error[MAQ1021]: bad\n  1 | abc\n    |  ^\n");
}

static void test_characters(void **state)
{
    (void)state;
    /* columns count characters: e-acute is two bytes */
    expect_one("\xC3\xA9: x", 5, 4, 1, "f.yaml:1:4: error[MAQ1021]: bad\n  1 | \xC3\xA9: x\n    |    ^\n");
    /* a wide character takes two cells: before the caret, and under it */
    expect_one("\xE6\xBC\xA2: x", 6, 5, 1, "f.yaml:1:4: error[MAQ1021]: bad\n  1 | \xE6\xBC\xA2: x\n    |     ^\n");
    expect_one("\xE6\xBC\xA2: x", 6, 0, 3, "f.yaml:1:1: error[MAQ1021]: bad\n  1 | \xE6\xBC\xA2: x\n    | ^~\n");
    /* a combining accent takes none */
    expect_one("e\xCC\x81: x", 6, 5, 1, "f.yaml:1:5: error[MAQ1021]: bad\n  1 | e\xCC\x81: x\n    |    ^\n");
    /* controls, bidi overrides and broken bytes become visible, and the caret allows for their width */
    expect_one("a\x1b[1mb", 6, 5, 1, "f.yaml:1:6: error[MAQ1021]: bad\n  1 | a\\x1b[1mb\n    |         ^\n");
    expect_one("a\0b", 3, 1, 1, "f.yaml:1:2: error[MAQ1021]: bad\n  1 | a\\x00b\n    |  ^~~~\n");
    expect_one("\xE2\x80\xAEx", 4, 3, 1, "f.yaml:1:2: error[MAQ1021]: bad\n  1 | \\u202ex\n    |       ^\n");
    expect_one("\xE9x", 2, 1, 1, "f.yaml:1:2: error[MAQ1021]: bad\n  1 | \\xe9x\n    |     ^\n");
}

static void test_line_ends(void **state)
{
    (void)state;
    expect_one("a\r\nb\r\n", 6, 3, 1, "f.yaml:2:1: error[MAQ1021]: bad\n  2 | b\n    | ^\n");
    expect_one("a\rb\r", 4, 2, 1, "f.yaml:2:1: error[MAQ1021]: bad\n  2 | b\n    | ^\n");
    expect_one("a\n\rb", 4, 3, 1, "f.yaml:3:1: error[MAQ1021]: bad\n  3 | b\n    | ^\n");
}

/* Places in a long text, against a plain count from the start. */
static void test_expert_spread(void **state)
{
    const size_t n = 50000;
    char *text = malloc(n);
    struct maq_diag *diag = maq_diag_new();
    uint32_t seed = 12345, line = 1, column = 1;
    (void)state;
    for (size_t i = 0; i < n; i++) {
        seed = seed * 1664525 + 1013904223;
        uint32_t pick = seed >> 24;
        text[i] = (char)(pick == 0 ? '\n' : pick == 1 ? '\r' : 'a');
        if (pick > 200 && i + 2 < n) {
            memcpy(text + i, "\xE2\x82\xAC", 3);
            i += 2;
        }
    }
    uint32_t file = maq_diag_add_source(diag, "long", text, n);
    for (size_t i = 0; i < n;) {
        struct maq_place place = maq_diag_place(diag, (struct maq_span){file, (uint32_t)i, 1});
        assert_int_equal(place.line, line);
        assert_int_equal(place.column, column);
        assert_string_equal(place.name, "long");
        column++;
        if (text[i] == '\n' || (text[i] == '\r' && !(i + 1 < n && text[i + 1] == '\n'))) {
            line++;
            column = 1;
        }
        size_t step = text[i] == '\xE2' ? 3 : 1;
        for (size_t k = 1; k < step; k++) /* inside a character: its own column */
            assert_int_equal(maq_diag_place(diag, (struct maq_span){file, (uint32_t)(i + k), 1}).column, place.column);
        i += step;
    }
    assert_true(line > 100);
    assert_int_equal(maq_diag_place(diag, nowhere).line, 0);
    assert_string_equal(maq_diag_place(diag, (struct maq_span){99, 0, 0}).name, "");
    maq_diag_free(diag);
    free(text);
}

static void test_long_line(void **state)
{
    char line[1001];
    (void)state;
    for (size_t i = 0; i < 1000; i++)
        line[i] = (char)('0' + i % 10);
    line[1000] = '\0';
    char expected[600];
    /* 40 characters before the place, 120 in all */
    snprintf(expected, sizeof(expected), "f.yaml:1:501: error[MAQ1021]: bad\n  1 | ...%.120s...\n    | %43s^~~~~\n",
             line + 460, "");
    expect_one(line, 1000, 500, 5, expected);
    snprintf(expected, sizeof(expected), "f.yaml:1:11: error[MAQ1021]: bad\n  1 | %.120s...\n    | %10s^\n", line, "");
    expect_one(line, 1000, 10, 1, expected);
    snprintf(expected, sizeof(expected), "f.yaml:1:1001: error[MAQ1021]: bad\n  1 | ...%.120s\n    | %123s^\n",
             line + 880, "");
    expect_one(line, 1000, 1000, 0, expected);
    /* a span longer than the window stops with it */
    char run[200];
    memset(run, '~', sizeof(run));
    snprintf(expected, sizeof(expected), "f.yaml:1:1: error[MAQ1021]: bad\n  1 | %.120s...\n    | ^%.119s\n", line,
             run);
    expect_one(line, 1000, 0, 1000, expected);
}

static void test_hostile_message(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    (void)state;
    maq_diag_add(diag, MAQ_ERROR, 1000, nowhere, "one\ntwo", "%s", "a\x1b[31m\nb");
    expect_text(diag, "error[MAQ1000]: a\\x1b[31m\\nb\nhint: one\n      two\n");
    maq_diag_free(diag);

    char *huge = malloc(100001);
    memset(huge, 'x', 100000);
    huge[100000] = '\0';
    diag = maq_diag_new();
    maq_diag_add(diag, MAQ_ERROR, 1000, nowhere, NULL, "%s", huge);
    assert_int_equal(maq_diag_at(diag, 0)->msg.len, 16384);
    maq_diag_free(diag);
    free(huge);
}

static void test_color(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    (void)state;
    uint32_t file = maq_diag_add_source(diag, "f", "ab", 2);
    maq_diag_add(diag, MAQ_ERROR, 1021, (struct maq_span){file, 1, 1}, "h", "bad");
    char *text = maq_diag_format(diag, 0, true);
    assert_string_equal(text, "\x1b[1mf:1:2:\x1b[0m \x1b[1;31merror[MAQ1021]\x1b[0m: bad\n  1 | ab\n"
                              "    |  \x1b[1;32m^\x1b[0m\n\x1b[1mhint:\x1b[0m h\n");
    free(text);
    maq_diag_free(diag);
}

static void test_many(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    (void)state;
    for (int i = 0; i < 10007; i++)
        maq_diag_add(diag, MAQ_ERROR, 1000, nowhere, NULL, "fault %d", i);
    assert_int_equal(maq_diag_count(diag), 10000); /* kept */
    assert_int_equal(maq_diag_errors(diag), 10007);
    char *text = maq_diag_format(diag, 0, false);
    assert_non_null(strstr(text, "fault 19\n"));
    assert_null(strstr(text, "fault 20\n"));
    assert_string_equal(strstr(text, "\nand "), "\nand 9987 more\n");
    free(text);
    maq_diag_free(diag);
}

static void test_empty_and_null(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    (void)state;
    expect_text(diag, "");
    expect_text(NULL, "");
    maq_diag_add(NULL, MAQ_ERROR, 1, nowhere, NULL, "dropped");
    assert_int_equal(maq_diag_errors(NULL), 0);
    assert_int_equal(maq_diag_add_source(NULL, "x", "", 0), 0);
    maq_diag_free(NULL);
    maq_diag_free(diag);
}

/* Whichever allocation fails, nothing leaks (ASan) and the error is counted once a diag exists. */
static void test_out_of_memory(void **state)
{
    (void)state;
    bool whole = false;
    for (fail_at = 1; !whole; fail_at++) {
        assert_true(fail_at < 100);
        asked = 0;
        maq__set_alloc_gate(fail_nth);
        struct maq_diag *diag = maq_diag_new();
        if (diag) {
            uint32_t file = maq_diag_add_source(diag, "f", "text", 4);
            maq_diag_add(diag, MAQ_ERROR, 1000, (struct maq_span){file, 0, 1}, "hint", "fault");
            assert_int_equal(maq_diag_errors(diag), 1);
            free(maq_diag_format(diag, 0, false));
        }
        maq__set_alloc_gate(NULL);
        whole = asked < fail_at;
        maq_diag_free(diag);
    }
    assert_true(fail_at > 4);
}

static jmp_buf after_bug;
static const char *bug_text;

static void note_bug(const char *what, const char *file, int line)
{
    assert_true(line > 0 && strstr(file, "test_diag.c") != NULL);
    bug_text = what;
    longjmp(after_bug, 1);
}

static void test_bug_hook(void **state)
{
    (void)state;
    maq_set_bug_hook(note_bug);
    int one = 1;
    if (setjmp(after_bug) == 0) {
        MAQ_ASSERT(one == 1);
        MAQ_ASSERT(one == 2);
        fail_msg("the assertion did not fire");
    }
    maq_set_bug_hook(NULL);
    assert_string_equal(bug_text, "one == 2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_statuses),
        cmocka_unit_test(test_target_format),
        cmocka_unit_test(test_notes_and_several_items),
        cmocka_unit_test(test_carets),
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_line_ends),
        cmocka_unit_test(test_expert_spread),
        cmocka_unit_test(test_long_line),
        cmocka_unit_test(test_hostile_message),
        cmocka_unit_test(test_color),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_empty_and_null),
        cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_bug_hook),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
