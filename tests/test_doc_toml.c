/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_doc_toml.c - TOML as a document: what each form becomes, with its place, and faults with theirs. Written out in a short form:
 * {key=value,...}, [value,...], a quoted string in quotes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "spec/doc.h"

static void add(struct maq_buf *b, const struct maq_node *n)
{
    bool map = n->kind == MAQ_NODE_MAP;
    if (n->kind == MAQ_NODE_SCALAR) {
        maq_buf_addf(b, n->quoted ? "\"%.*s\"" : "%.*s", (int)n->text.len, n->text.ptr);
        return;
    }
    maq_buf_addc(b, map ? '{' : '[');
    for (const struct maq_node *c = n->first; c; c = c->next) {
        if (c != n->first)
            maq_buf_addc(b, ',');
        if (map)
            maq_buf_addf(b, "%.*s=", (int)c->key.len, c->key.ptr);
        add(b, c);
    }
    maq_buf_addc(b, map ? '}' : ']');
}

static void test_forms(void **state)
{
    static const struct {
        const char *text, *want;
    } cases[] = {
        {"", "{}"},
        {"# only a comment", "{}"},
        {"a = 1\nb = 2.5e3 # behind\n", "{a=1,b=2.5e3}"},
        {"a = 30_000\nt = true\nd = 1979-05-27 07:32:00Z\n", "{a=30_000,t=true,d=1979-05-27 07:32:00Z}"},
        {"[a]\nx = 1\n[b.c]\ny = 2\n", "{a={x=1},b={c={y=2}}}"},
        {"[b.c]\ny = 2\n[b]\nx = 1\n", "{b={c={y=2},x=1}}"},
        {"a.b.c = 1\na.d = 2\n", "{a={b={c=1},d=2}}"},
        {"\"quoted key\".'other' = 1\n", "{quoted key={other=1}}"},
        {"[[s]]\nx = 1\n[[s]]\nx = 2\n[s.t]\ny = 3\n", "{s=[{x=1},{x=2,t={y=3}}]}"},
        {"a = [1, 2,\n  3, # c\n]\nb = []\n", "{a=[1,2,3],b=[]}"},
        {"a = {x = 1, y.z = [\"p\"]}\n", "{a={x=1,y={z=[\"p\"]}}}"},
        {"a = \"t\\tq\\\"\\u00e9\"\nb = 'C:\\n'\n", "{a=\"t\tq\"\xc3\xa9\",b=\"C:\\n\"}"},
        {"a = \"\"\"\nx\\\n   y\"\"\"\nb = '''p'q'''\n", "{a=\"xy\",b=\"p'q\"}"},
        {"a = \"\"\r\nb = 1\r\n", "{a=\"\",b=1}"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct maq_doc doc;
        struct maq_buf b;
        maq_buf_init(&b, 4096);
        enum maq_status status = maq_doc_parse(&doc, "x.toml", maq_str_of(cases[i].text), MAQ_ORIGIN_DOCUMENT, NULL);
        assert_int_equal(status, MAQ_OK);
        add(&b, doc.root);
        assert_string_equal(b.ptr, cases[i].want);
        maq_buf_fini(&b);
        maq_doc_fini(&doc);
    }
}

static void test_places(void **state)
{
    struct maq_diag *diag = maq_diag_new();
    struct maq_doc doc;
    (void)state;
    assert_int_equal(
        maq_doc_parse(&doc, "x.toml", maq_str_of("# c\n[a]\n  key = \"v\" # d\n"), MAQ_ORIGIN_DOCUMENT, diag), MAQ_OK);
    const struct maq_node *n = maq_node_peek(maq_node_peek(doc.root, "a"), "key");
    struct maq_place key = maq_diag_place(diag, n->key_at), value = maq_diag_place(diag, n->at);
    assert_int_equal(key.line, 3);
    assert_int_equal(key.column, 3);
    assert_int_equal(value.column, 9);
    assert_int_equal(n->at.len, 3);
    assert_false(maq_node_peek(doc.root, "a")->used); /* nobody has read it */
    maq_doc_fini(&doc);
    maq_diag_free(diag);
}

/* All faults of a document, each at its line; what is right is there all the same. */
static void test_faults(void **state)
{
    static const struct {
        const char *text, *says;
        uint32_t line;
    } cases[] = {
        {"a = 1\na = 2\n", "'a' is given twice", 2},
        {"[t]\n[t]\n", "'t' is given twice", 2},
        {"a = 1\n[a]\n", "'a' is given twice", 2},
        {"a = {x = 1}\n[a.b]\n", "'a' is given twice", 2},
        {"a = [1]\n[[a]]\n", "'a' is given twice", 2},
        {"a = word here\n", "this is no value of TOML", 1},
        {"a = $x\n", "this is no value of TOML", 1},
        {"a =\n", "there is no value", 1},
        {"= 1\n", "there is no key", 1},
        {"a 1\n", "there is no '='", 1},
        {"a = 1 b = 2\n", "this is no value of TOML", 1},
        {"a = \"x\" b\n", "there is more behind the value", 1},
        {"a = \"x\n", "the string does not end", 1},
        {"a = \"\\q\"\n", "unknown escape", 1},
        {"a = \"\\ud800\"\n", "unknown escape", 1},
        {"a = [1, 2\n", "neither ',' nor ']'", 2},
        {"[a\nb = 1\n", "there is no ']'", 1},
        {"a = {x = 1\n", "neither ',' nor '}'", 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct maq_diag *diag = maq_diag_new();
        struct maq_doc doc;
        char said[256];
        assert_int_equal(maq_doc_parse(&doc, "x.toml", maq_str_of(cases[i].text), MAQ_ORIGIN_DOCUMENT, diag),
                         MAQ_BAD_INPUT);
        assert_true(maq_diag_count(diag) > 0);
        snprintf(said, sizeof said, "%.*s", (int)maq_diag_at(diag, 0)->msg.len, maq_diag_at(diag, 0)->msg.ptr);
        if (!strstr(said, cases[i].says) || maq_diag_place(diag, maq_diag_at(diag, 0)->at).line != cases[i].line)
            fail_msg("%s: %s at line %u", cases[i].text, said, maq_diag_place(diag, maq_diag_at(diag, 0)->at).line);
        maq_doc_fini(&doc);
        maq_diag_free(diag);
    }
    struct maq_diag *diag = maq_diag_new();
    struct maq_doc doc;
    assert_int_equal(maq_doc_parse(&doc, "x.toml", maq_str_of("a = ?\nb = 2\nc = !\n"), MAQ_ORIGIN_DOCUMENT, diag),
                     MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 2);
    assert_non_null(maq_node_peek(doc.root, "b"));
    maq_doc_fini(&doc);
    maq_diag_free(diag);
}

/* Depth and size have limits, and no byte of the text makes it read past its end. */
static void test_limits(void **state)
{
    static const char whole[] = "[a.\"b\"]\nx = [1, {y = 'z', w = \"\"\"t\\u0041\"\"\"}] # c\n[[s]]\nd.e = 1.5\n";
    struct maq_doc doc;
    char deep[512] = "a = ";
    (void)state;
    for (size_t n = 0; n < sizeof whole; n++) {
        (void)maq_doc_parse(&doc, "x.toml", (struct maq_str){whole, n}, MAQ_ORIGIN_DOCUMENT, NULL);
        maq_doc_fini(&doc);
    }
    memset(deep + 4, '[', 200);
    assert_int_equal(maq_doc_parse(&doc, "x.toml", maq_str_of(deep), MAQ_ORIGIN_DOCUMENT, NULL), MAQ_BAD_INPUT);
    maq_doc_fini(&doc);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
