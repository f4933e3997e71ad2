/* SPDX-License-Identifier: Apache-2.0 */
/* The shell of HTML reports: what a user wrote is never markup, and the page is made of what it was given. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "report/html/html.h"

static char *text_of(const char *text, size_t n)
{
    struct maq_html h;
    maq_buf_init(&h.out, 1 << 20);
    maq_html_put(&h, "");
    maq_html_text(&h, (struct maq_str){text, n});
    return maq_buf_take(&h.out);
}

static void expect(const char *text, const char *wanted)
{
    char *got = text_of(text, strlen(text));
    assert_string_equal(got ? got : "", wanted);
    free(got);
}

static void test_escaping(void **state)
{
    (void)state;
    expect("a < b & c > \"d\" 'e'", "a &lt; b &amp; c &gt; &quot;d&quot; &#39;e&#39;");
    expect("</script><script>", "&lt;/script&gt;&lt;script&gt;");
    expect("&amp;", "&amp;amp;");
    expect("one\ntwo\tthree", "one\ntwo\tthree");
    expect("\x01\x1b[31mred\x7f", "[31mred");                     /* no control characters */
    expect("a\u202Eb\u2066c", "abc");                             /* nothing that turns the direction of text */
    expect("caf\u00e9 \u6a21\u578b", "caf\u00e9 \u6a21\u578b");   /* other letters stay */
    expect("bad \xff\xc0\xaf end", "bad \uFFFD\uFFFD\uFFFD end"); /* what is no UTF-8 is shown as such */
}

static char *page(const char *title, const char *json)
{
    struct maq_html h;
    struct maq_buf more;
    char *out = NULL;
    maq_buf_init(&more, 1 << 10);
    maq_buf_adds(&more, "{\"a\":\"<\"}");
    maq_html_begin(&h, "test", title);
    maq_html_cards(&h);
    maq_html_card(&h, "<label>", "<value>", "<note>");
    maq_html_end_cards(&h);
    maq_html_section(&h, "one", "<One>");
    maq_html_note(&h, "%s", "<note>");
    maq_html_end_section(&h);
    assert_int_equal(maq_html_finish(&out, &h, strdup(json), &more, NULL), MAQ_OK);
    maq_buf_fini(&more);
    return out;
}

static void test_page(void **state)
{
    (void)state;
    char *a = page("<i>title</i>", "{\"x\": \"</script><b>\"}"), *b = page("<i>title</i>", "{\"x\": \"</script><b>\"}");
    assert_string_equal(a, b);
    assert_null(strstr(a, "<i>"));
    assert_null(strstr(a, "<b>"));
    assert_null(strstr(a, "<label>"));
    assert_null(strstr(a, "<note>"));
    assert_non_null(strstr(a, "{\"x\": \"\\u003c/script>\\u003cb>\"}"));
    assert_non_null(strstr(a, "{\"a\":\"\\u003c\"}"));
    assert_non_null(strstr(a, "script-src 'sha256-"));
    assert_non_null(strstr(a, "default-src 'none'"));
    free(a);
    free(b);
}

/* Without a document there is no page. */
static void test_out_of_memory(void **state)
{
    (void)state;
    struct maq_html h;
    char *out = NULL;
    struct maq_diag *diag = maq_diag_new();
    maq_html_begin(&h, "test", "title");
    assert_int_equal(maq_html_finish(&out, &h, NULL, NULL, diag), MAQ_NO_MEMORY);
    assert_null(out);
    maq_diag_free(diag);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_escaping),
        cmocka_unit_test(test_page),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
