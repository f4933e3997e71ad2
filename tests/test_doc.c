/* SPDX-License-Identifier: Apache-2.0 */
/* test_doc.c - documents: trees, exact spans, every refusal with its text, --set, running out of memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "failing_alloc.h"
#include "spec/doc.h"

static struct maq_diag *diag;
static struct maq_doc doc;
static struct maq_str source; /* of the last parse(), as registered */

static int setup(void **state)
{
    (void)state;
    diag = maq_diag_new();
    memset(&doc, 0, sizeof(doc));
    return diag ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    maq_doc_fini(&doc);
    maq_diag_free(diag);
    return 0;
}

static enum maq_status parse_bytes(const char *text, size_t len)
{
    maq_doc_fini(&doc);
    maq_diag_free(diag);
    diag = maq_diag_new();
    source = (struct maq_str){text, len};
    return maq_doc_parse(&doc, "t.yaml", source, MAQ_ORIGIN_DOCUMENT, diag);
}

static enum maq_status parse(const char *text)
{
    return parse_bytes(text, strlen(text));
}

/* What the diagnostics say, all of it. */
static void expect_diag(const char *expected)
{
    char *text = maq_diag_format(diag, 0, false);
    assert_string_equal(text, expected);
    free(text);
}

static void expect_span(struct maq_span at, const char *expected)
{
    assert_true(at.off <= source.len && at.len <= source.len - at.off);
    if (!maq_str_is((struct maq_str){source.ptr + at.off, at.len}, expected))
        fail_msg("span is '%.*s', not '%s'", (int)at.len, source.ptr + at.off, expected);
}

static struct maq_node *at_path(const char *path)
{
    struct maq_str rest = maq_str_of(path), segment;
    struct maq_node *node = doc.root;
    while (rest.ptr && node) {
        rest = maq_str_split(rest, '.', &segment);
        int64_t index;
        struct maq_node *child = node->first;
        if (node->kind == MAQ_NODE_SEQ && maq_str_to_i64(&index, segment))
            while (child && index--)
                child = child->next;
        else
            while (child && !maq_str_eq(child->key, segment))
                child = child->next;
        node = child;
    }
    return node;
}

static void expect_text(const char *path, const char *expected)
{
    struct maq_node *node = at_path(path);
    if (!node)
        fail_msg("nothing at %s", path);
    assert_int_equal(node->kind, MAQ_NODE_SCALAR);
    if (!maq_str_is(node->text, expected))
        fail_msg("%s is '%.*s', not '%s'", path, (int)node->text.len, node->text.ptr, expected);
}

/* --- trees ------------------------------------------------------------------------------------------------ */

static void test_yaml_tree(void **state)
{
    (void)state;
    assert_int_equal(parse("name: big  # comment\n"
                           "groups:\n"
                           "  - nodes: 4\n"
                           "    rail: no\n"
                           "  - {nodes: 8, rail: 'yes'}\n"
                           "note: |\n"
                           "  two\n"
                           "  lines\n"
                           "\n"
                           "empty:\n"),
                     MAQ_OK);
    assert_int_equal(doc.root->kind, MAQ_NODE_MAP);
    assert_int_equal(doc.root->count, 4);
    expect_text("name", "big");
    expect_text("groups.0.nodes", "4");
    expect_text("groups.0.rail", "no"); /* text, not false: the schema decides */
    expect_text("groups.1.rail", "yes");
    assert_true(at_path("groups.1.rail")->quoted);
    assert_false(at_path("groups.0.rail")->quoted);
    expect_text("note", "two\nlines\n");
    assert_true(maq_node_is_null(at_path("empty")));
    assert_int_equal(at_path("groups")->count, 2);
    assert_int_equal(at_path("name")->origin, MAQ_ORIGIN_DOCUMENT);

    expect_span(at_path("name")->key_at, "name");
    expect_span(at_path("name")->at, "big");
    expect_span(at_path("groups")->at, "- nodes: 4\n    rail: no\n  - {nodes: 8, rail: 'yes'}");
    expect_span(at_path("groups.0")->at, "nodes: 4\n    rail: no");
    expect_span(at_path("groups.1")->at, "{nodes: 8, rail: 'yes'}");
    expect_span(at_path("groups.1.rail")->at, "'yes'");
    expect_span(at_path("note")->at, "|\n  two\n  lines");
    assert_int_equal(at_path("empty")->at.len, 0);
}

static void test_json(void **state)
{
    (void)state;
    assert_int_equal(
        parse("{\n\t\"a\":1,\"b\" : [1.5e3, true, null, NaN],\n\t\"c\": \"x\\/\\u00e9\\n\", \"d\":{},\"e\":[]}"),
        MAQ_OK);
    expect_text("a", "1");
    expect_text("b.0", "1.5e3");
    expect_text("b.3", "NaN");
    assert_true(maq_node_is_null(at_path("b.2")));
    expect_text("c", "x/\xC3\xA9\n");
    assert_int_equal(at_path("d")->kind, MAQ_NODE_MAP);
    assert_int_equal(at_path("e")->kind, MAQ_NODE_SEQ);
    expect_span(at_path("b")->at, "[1.5e3, true, null, NaN]");
    expect_span(at_path("c")->key_at, "\"c\"");
}

/* libyaml refuses surrogate pairs; JSON writers make them. */
static void test_json_surrogates(void **state)
{
    (void)state;
    assert_int_equal(
        parse("{\"a\": \"x\\ud83d\\ude00y\", \"b\": \"\\uD83D\\uDE00\\ud83d\", \"c\": \"\\\\ud83d\\ude00\", \"d\": 7}"),
        MAQ_OK);
    expect_text("a", "x\xF0\x9F\x98\x80y");
    expect_text("b", "\xF0\x9F\x98\x80\xEF\xBF\xBD"); /* a lone half is U+FFFD */
    expect_text("c", "\\ud83d\xEF\xBF\xBD");          /* the first is an escaped backslash */
    expect_span(at_path("a")->at, "\"x\\ud83d\\ude00y\"");
    expect_span(at_path("b")->at, "\"\\uD83D\\uDE00\\ud83d\"");
    expect_span(at_path("d")->key_at, "\"d\"");
    expect_span(at_path("d")->at, "7");
    /* escaped quotes, single quotes and comments do not confuse it */
    assert_int_equal(parse("{a: 'x\"', # it's \"\n b: \"\\\"\\ud83d\\ude00\", c: '\\ud83d\\ude00'}"), MAQ_OK);
    expect_text("b", "\"\xF0\x9F\x98\x80");
    expect_text("c", "\\ud83d\\ude00"); /* single quotes have no escapes */
    /* positions of faults after a replacement are those of the original */
    assert_int_equal(parse("{\"a\": \"\\ud83d\\ude00\", \"a\": 1}"), MAQ_BAD_INPUT);
    expect_diag("t.yaml:1:23: error[MAQ1002]: the key 'a' is given twice\n"
                "  1 | {\"a\": \"\\ud83d\\ude00\", \"a\": 1}\n"
                "    |                       ^~~\n"
                "t.yaml:1:2: note: first given here\n"
                "  1 | {\"a\": \"\\ud83d\\ude00\", \"a\": 1}\n"
                "    |  ^~~\n"
                "hint: keep one of the two\n");
}

static void test_characters(void **state)
{
    (void)state;
    /* libyaml counts characters: spans after non-ASCII text are still byte-exact */
    assert_int_equal(parse("gr\xC3\xB6\xC3\x9F"
                           "e: \xE6\xBC\xA2\xF0\x9F\x98\x80\nx: y\nz: [\xC3\xA9, b]\n"),
                     MAQ_OK);
    expect_span(at_path("gr\xC3\xB6\xC3\x9F"
                        "e")
                    ->at,
                "\xE6\xBC\xA2\xF0\x9F\x98\x80");
    expect_span(at_path("x")->key_at, "x");
    expect_span(at_path("x")->at, "y");
    expect_span(at_path("z.1")->at, "b");
    expect_span(at_path("z")->at, "[\xC3\xA9, b]");
    /* a byte order mark is no part of the text; \r\n ends lines */
    assert_int_equal(parse("\xEF\xBB\xBF"
                           "a: 1\r\nb: x y\r\nc: 2\r\n"),
                     MAQ_OK);
    source.ptr += 3;
    source.len -= 3;
    expect_text("b", "x y");
    expect_span(at_path("a")->key_at, "a");
    expect_span(at_path("b")->at, "x y");
    expect_span(at_path("c")->at, "2");
}

static void test_empty(void **state)
{
    static const char *const texts[] = {"", "\n\n", "# only a comment\n", "---\n", "---\n...\n", "\xEF\xBB\xBF"};
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(texts); i++) {
        assert_int_equal(parse(texts[i]), MAQ_OK);
        assert_null(doc.root);
        assert_int_equal(maq_doc_check_unused(&doc, diag), MAQ_OK);
    }
    assert_int_equal(parse("just text"), MAQ_OK);
    assert_true(maq_str_is(doc.root->text, "just text"));
    expect_span(doc.root->at, "just text");
    assert_int_equal(parse("''"), MAQ_OK); /* a quoted empty text is a value */
    assert_non_null(doc.root);
}

static void test_nulls_and_get(void **state)
{
    (void)state;
    assert_int_equal(parse("a: ~\nb: null\nc: 'null'\nd: NULL\ne: nUll\nf: !!str null\ng: 1\n"), MAQ_OK);
    assert_null(maq_node_get(doc.root, "a"));
    assert_null(maq_node_get(doc.root, "b"));
    assert_non_null(maq_node_get(doc.root, "c"));
    assert_null(maq_node_get(doc.root, "d"));
    assert_non_null(maq_node_get(doc.root, "e"));
    assert_non_null(maq_node_get(doc.root, "f"));
    assert_null(maq_node_get(doc.root, "missing"));
    assert_null(maq_node_get(NULL, "a"));
    assert_null(maq_node_get(at_path("g"), "a")); /* not a map */
    assert_true(at_path("a")->used);
    assert_non_null(maq_node_peek(doc.root, "g"));
    assert_false(at_path("g")->used);
    assert_true(maq_node_is_null(NULL));
}

static void test_aliases(void **state)
{
    (void)state;
    assert_int_equal(parse("base: &b {x: 1, y: [2, 3]}\ncopy: *b\nlist: [*b, &n 7, *n]\n"), MAQ_OK);
    expect_text("copy.x", "1");
    expect_text("copy.y.1", "3");
    expect_text("list.0.y.0", "2");
    expect_text("list.2", "7");
    assert_ptr_not_equal(at_path("copy"), at_path("base"));
    assert_null(at_path("list.0")->key.ptr); /* `base` stays behind: an entry of a list has no key */
    assert_true(maq_str_is(at_path("list.0.x")->key, "x"));
    expect_span(at_path("copy")->key_at, "copy");
    expect_span(at_path("copy.x")->at, "1");
    at_path("copy.x")->used = true; /* copies are apart */
    assert_false(at_path("base.x")->used);
    /* a later anchor of the same name replaces the earlier one */
    assert_int_equal(parse("[&a 1, *a, &a 2, *a]"), MAQ_OK);
    expect_text("1", "1");
    expect_text("3", "2");
    assert_int_equal(parse("a: *no\nb: 1\n"), MAQ_BAD_INPUT);
    expect_diag("t.yaml:1:4: error[MAQ1001]: the alias '*no' has no anchor '&no' before it\n"
                "  1 | a: *no\n"
                "    |    ^~~\n"
                "hint: a text that begins with '*' needs quotes\n");
    expect_text("b", "1"); /* the rest is there */
    assert_int_equal(parse("a: &x [1, *x]\n"), MAQ_BAD_INPUT);
    expect_diag("t.yaml:1:11: error[MAQ1001]: the alias '*x' stands inside its own value\n"
                "  1 | a: &x [1, *x]\n"
                "    |           ^~\n");
}

/* --- refusals --------------------------------------------------------------------------------------------- */

static void test_duplicates_all_at_once(void **state)
{
    (void)state;
    assert_int_equal(parse("tp: 1\npp: 2\ntp: 3\nsub:\n  x: 1\n  x: 2\n  tp: 1\npp: 4\n"), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 3);
    expect_text("tp", "1"); /* the first one stays, so that readers can look for more faults */
    assert_int_equal(doc.root->count, 3);
    char *text = maq_diag_format(diag, 0, false);
    assert_non_null(strstr(text, "t.yaml:3:1: error[MAQ1002]: the key 'tp' is given twice\n"));
    assert_non_null(strstr(text, "t.yaml:6:3: error[MAQ1002]: the key 'x' is given twice\n"));
    assert_non_null(strstr(text, "t.yaml:5:3: note: first given here\n"));
    assert_non_null(strstr(text, "t.yaml:8:1: error[MAQ1002]: the key 'pp' is given twice\n"));
    free(text);
    /* a quoted key is the same key */
    assert_int_equal(parse("a: 1\n\"\\x61\": 2\n"), MAQ_BAD_INPUT);
}

static void expect_code(uint16_t code, const char *message)
{
    assert_true(maq_diag_count(diag) > 0);
    assert_int_equal(maq_diag_at(diag, 0)->code, code);
    assert_string_equal(maq_diag_at(diag, 0)->msg.ptr, message);
}

static void test_syntax(void **state)
{
    (void)state;
    assert_int_equal(parse("a: 1\nb: [1, 2\nc: 3\n"), MAQ_BAD_INPUT);
    assert_null(doc.root);
    expect_diag(
        "t.yaml:3:2: error[MAQ1001]: not valid YAML: did not find expected ',' or ']' while parsing a flow sequence\n"
        "  3 | c: 3\n"
        "    |  ^\n"
        "t.yaml:2:4: note: which began here\n"
        "  2 | b: [1, 2\n"
        "    |    ^\n"
        "hint: a comma or a closing bracket is missing before this place\n");
    assert_int_equal(parse("a:\n\tb: 1\n"), MAQ_BAD_INPUT);
    expect_diag(
        "t.yaml:2:1: error[MAQ1001]: not valid YAML: found character that cannot start any token while scanning for "
        "the next token\n"
        "  2 | \tb: 1\n"
        "    | ^\n"
        "hint: indent with spaces: YAML does not take tabs here\n");
    assert_int_equal(parse("a: b: c\n"), MAQ_BAD_INPUT);
    expect_diag("t.yaml:1:5: error[MAQ1001]: not valid YAML: mapping values are not allowed in this context\n"
                "  1 | a: b: c\n"
                "    |     ^\n"
                "hint: a text that contains ': ' needs quotes; otherwise check the indentation\n");
    assert_int_equal(parse("a: \"x\n"), MAQ_BAD_INPUT);
    assert_int_equal(parse("{\xC3\xA9: 1, \xC3\xA9\xC3\xA9: }}"), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_place(diag, maq_diag_at(diag, 0)->at).column, 13);
    assert_int_equal(parse("%YAML 3.0\n---\na: 1\n"), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_at(diag, 0)->code, 1001);

    assert_int_equal(parse("a: !weird 1\nb: !!int 2\n"), MAQ_BAD_INPUT);
    expect_code(1001, "the tag '!weird' means nothing here");
    expect_text("b", "2");
    assert_int_equal(parse("? [a, b]\n: 1\nc: 2\n"), MAQ_BAD_INPUT);
    expect_code(1001, "a key must be a plain text, not a list");
    expect_text("c", "2");
    assert_int_equal(doc.root->count, 1);
    assert_int_equal(parse("a: &x 1\n*x : 2\n"), MAQ_BAD_INPUT);
    expect_code(1001, "a key must be a plain text, not an alias");
    assert_int_equal(parse("a: &x {b: 1}\nc:\n  <<: *x\n  d: 1\n"), MAQ_BAD_INPUT);
    expect_code(1001, "merge keys ('<<') are not supported");
    assert_int_equal(at_path("c")->count, 1);
    assert_int_equal(parse("a: \"x\\0y\"\n"), MAQ_BAD_INPUT);
    expect_code(1001, "a text must not contain the character U+0000");
}

static void test_encoding(void **state)
{
    (void)state;
    assert_int_equal(parse("a: 1\nb: caf\xE9\n"), MAQ_BAD_INPUT);
    expect_diag("t.yaml:2:7: error[MAQ1006]: byte 0xE9 is not valid UTF-8\n"
                "  2 | b: caf\\xe9\n"
                "    |       ^~~~\n"
                "hint: save the file as UTF-8\n");
    assert_int_equal(parse_bytes("\xFF\xFE"
                                 "a\0",
                                 4),
                     MAQ_BAD_INPUT);
    expect_code(1006, "the text is UTF-16, not UTF-8");
    assert_int_equal(parse_bytes("a: \0", 4), MAQ_BAD_INPUT);
    expect_code(1001, "the character U+0000 is not allowed here");
    assert_int_equal(maq_diag_at(diag, 0)->at.off, 3);
    assert_int_equal(parse("a: \x1b[1m"), MAQ_BAD_INPUT);
    expect_code(1001, "the character U+001B is not allowed here");
    assert_int_equal(parse("\xEF\xBB\xBF\xEF\xBB\xBF"), MAQ_BAD_INPUT);
}

static void test_several_documents(void **state)
{
    (void)state;
    assert_int_equal(parse("a: 1\n---\nb: 2\n"), MAQ_BAD_INPUT);
    expect_diag("t.yaml:2:1: error[MAQ1005]: a second document begins here\n"
                "  2 | ---\n"
                "    | ^~~\n"
                "hint: write one document per file\n");
    assert_null(doc.root);
    assert_int_equal(parse("---\na: 1\n...\n"), MAQ_OK);
}

static void test_limits(void **state)
{
    enum { deep = 200000 };
    (void)state;
    char *text = malloc(deep + 100);
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    assert_int_equal(parse_bytes(text, 128), MAQ_OK);
    memset(text, '[', deep);
    assert_int_equal(parse_bytes(text, 65), MAQ_LIMIT); /* before its syntax is known to be wrong */
    expect_code(1003, "nested more than 64 levels deep");
    assert_int_equal(maq_diag_at(diag, 0)->at.off, 64);
    assert_int_equal(parse_bytes(text, deep), MAQ_LIMIT);
    free(text);

    /* 9 levels of 10 aliases: a billion laughs */
    char bomb[2000] = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n";
    for (int i = 1; i < 10; i++) {
        char line[120];
        snprintf(line, sizeof(line), "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i, i,
                 i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
        strcat(bomb, line);
    }
    assert_int_equal(parse(bomb), MAQ_LIMIT);
    expect_code(1004, "more than 1000000 values in one document (expanded aliases count)");
    assert_null(doc.root);

    /* depth through aliases: 40 levels in an alias under 30 */
    char nested[400] = "a: &a ", *p = nested + strlen(nested);
    memset(p, '[', 40);
    memset(p + 40, ']', 40);
    strcpy(p + 80, "\nb: ");
    p += strlen(p);
    memset(p, '[', 30);
    strcpy(p + 30, "*a");
    memset(p + 32, ']', 30);
    assert_int_equal(parse(nested), MAQ_LIMIT);
    expect_code(1003, "nested more than 64 levels deep through aliases");

    /* many keys in one map take linear time (a quadratic check takes minutes here) */
    size_t n = 0, size = (size_t)16 << 20;
    text = malloc(size);
    for (int i = 0; i < 300000; i++)
        n += (size_t)snprintf(text + n, size - n, "key%d: 1\n", i);
    assert_int_equal(parse_bytes(text, n), MAQ_OK);
    assert_int_equal(doc.root->count, 300000);
    free(text);

    /* a document that is all faults ends early */
    char *dup = malloc(20000);
    for (int i = 0; i < 4000; i++)
        memcpy(dup + (size_t)i * 5, "a: 1\n", 5);
    assert_int_equal(parse_bytes(dup, 20000), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 1000);
    free(dup);
}

/* --- files ------------------------------------------------------------------------------------------------ */

static void test_load(void **state)
{
    char path[] = "/tmp/maquette-test-XXXXXX";
    (void)state;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "a: 1\n", 5), 5);
    assert_int_equal(maq_doc_load(&doc, path, MAQ_ORIGIN_CATALOGUE, diag), MAQ_OK);
    expect_text("a", "1");
    assert_int_equal(at_path("a")->origin, MAQ_ORIGIN_CATALOGUE);
    assert_string_equal(maq_diag_place(diag, at_path("a")->at).name, path);
    maq_doc_fini(&doc);
    assert_int_equal(ftruncate(fd, ((off_t)64 << 20) + 1), 0);
    assert_int_equal(maq_doc_load(&doc, path, MAQ_ORIGIN_DOCUMENT, diag), MAQ_LIMIT);
    assert_int_equal(maq_diag_at(diag, 0)->code, 1031);
    close(fd);
    unlink(path);

    maq_diag_free(diag);
    diag = maq_diag_new();
    assert_int_equal(maq_doc_load(&doc, "/no/such/file", MAQ_ORIGIN_DOCUMENT, diag), MAQ_IO);
    assert_int_equal(maq_doc_load(&doc, "/tmp", MAQ_ORIGIN_DOCUMENT, diag), MAQ_IO);
    expect_diag("error[MAQ1030]: cannot read '/no/such/file': No such file or directory\n"
                "hint: there is no folder '/no/such'\n"
                "\n"
                "error[MAQ1030]: cannot read '/tmp': Is a directory\n"
                "hint: that is a folder: give a document: YAML, JSON or TOML\n");
    maq_doc_fini(&doc);
}

/* --- unused keys ------------------------------------------------------------------------------------------ */

static void test_unused(void **state)
{
    (void)state;
    assert_int_equal(parse("a: 1\nb: {c: 1, d: 2}\ne: [{f: 1}, 2]\ng: {h: 1}\n"), MAQ_OK);
    maq_node_get(doc.root, "a");
    maq_node_get(maq_node_get(doc.root, "b"), "c");
    maq_node_get(doc.root, "e");
    assert_int_equal(maq_doc_check_unused(&doc, diag), MAQ_BAD_INPUT);
    expect_diag("t.yaml:2:11: error[MAQ1028]: nothing reads the key 'd'\n"
                "  2 | b: {c: 1, d: 2}\n"
                "    |           ^\n"
                "hint: check its spelling and its section, or remove it\n"
                "\n"
                "t.yaml:3:6: error[MAQ1028]: nothing reads the key 'f'\n"
                "  3 | e: [{f: 1}, 2]\n"
                "    |      ^\n"
                "hint: check its spelling and its section, or remove it\n"
                "\n"
                "t.yaml:4:1: error[MAQ1028]: nothing reads the key 'g'\n"
                "  4 | g: {h: 1}\n"
                "    | ^\n"
                "hint: check its spelling and its section, or remove it\n");
    maq_node_use_all(doc.root);
    assert_int_equal(maq_doc_check_unused(&doc, diag), MAQ_OK);
}

/* --- typed reads ------------------------------------------------------------------------------------------ */

static void test_typed_reads(void **state)
{
    int64_t whole = 77;
    double number = 77;
    bool truth = true;
    (void)state;
    assert_int_equal(
        parse("i: 16_384\nd: 1e6\nt: On\nf: FALSE\nl: [5]\nk: 4k\nc: '16,384'\nx: 1e99\nbig: 99999999999999999999\n"
              "huge: 1e999\nword: maybe\nunit: 5 GB\n"),
        MAQ_OK);
    assert_true(maq_node_i64(&whole, at_path("i"), diag) && whole == 16384);
    assert_true(maq_node_i64(&whole, at_path("l.0"), diag) && whole == 5);
    assert_true(maq_node_double(&number, at_path("d"), diag) && number >= 1e6 && number <= 1e6);
    assert_true(maq_node_bool(&truth, at_path("f"), diag) && !truth);
    assert_true(maq_node_bool(&truth, at_path("t"), diag) && truth);
    assert_true(at_path("i")->used);
    assert_int_equal(maq_diag_count(diag), 0);
    whole = 77;
    assert_false(maq_node_i64(&whole, at_path("l"), diag));
    assert_false(maq_node_i64(&whole, at_path("d"), diag));
    assert_false(maq_node_i64(&whole, at_path("k"), diag));
    assert_false(maq_node_i64(&whole, at_path("c"), diag));
    assert_false(maq_node_i64(&whole, at_path("x"), diag));
    assert_false(maq_node_i64(&whole, at_path("big"), diag));
    assert_false(maq_node_double(&number, at_path("huge"), diag));
    assert_false(maq_node_double(&number, at_path("unit"), diag));
    assert_false(maq_node_bool(&truth, at_path("word"), diag));
    assert_int_equal(whole, 77);
    static const struct {
        uint16_t code;
        const char *msg, *hint;
    } expected[] = {
        {1020, "'l' must be a whole number, not a list", NULL},
        {1024, "'d' must be a whole number, not '1e6'", "write 1000000"},
        {1024, "'k' must be a whole number, not '4k'", "write it in full: 4096 (4 x 1024), or 4000"},
        {1024, "'c' must be a whole number, not '16,384'", "write 16384"},
        {1024, "'x' must be a whole number, not '1e99'", NULL},
        {1023, "'big' is 99999999999999999999, too large for a whole number", NULL},
        {1023, "'huge' is 1e999, too large or too small to hold", NULL},
        {1024, "'unit' must be a number, not '5 GB'", "this number takes no unit"},
        {1020, "'word' must be true or false, not 'maybe'", NULL},
    };
    assert_int_equal(maq_diag_count(diag), MAQ_COUNT(expected));
    for (size_t i = 0; i < MAQ_COUNT(expected); i++) {
        const struct maq_diag_item *item = maq_diag_at(diag, i);
        assert_int_equal(item->code, expected[i].code);
        assert_string_equal(item->msg.ptr, expected[i].msg);
        if (expected[i].hint)
            assert_string_equal(item->hint.ptr, expected[i].hint);
        else
            assert_int_equal(item->hint.len, 0);
    }
    /* an entry of a list has no name */
    assert_false(maq_node_bool(&truth, at_path("l.0"), diag));
    assert_string_equal(maq_diag_at(diag, 9)->msg.ptr, "the value must be true or false, not '5'");
}

/* --- --set ------------------------------------------------------------------------------------------------ */

static void test_set(void **state)
{
    (void)state;
    assert_int_equal(parse("plan:\n  tp: 2\n  pp: 1\ngroups:\n  - nodes: 1\n  - nodes: 2\nnothing: ~\n"), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "plan.tp=4", diag), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "model.layers.first=3", diag), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "groups.1.nodes=16", diag), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "nothing.here=x", diag), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "list=[1, {a: b}]", diag), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "text=a: b # no comment, *no alias", diag), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "quoted=\"x\\ty\"", diag), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "eq=a=b", diag), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "plan.pp=null", diag), MAQ_OK);
    expect_text("plan.tp", "4");
    expect_text("model.layers.first", "3");
    expect_text("groups.1.nodes", "16");
    expect_text("groups.0.nodes", "1");
    expect_text("nothing.here", "x");
    expect_text("list.1.a", "b");
    expect_text("text", "a: b # no comment, *no alias");
    expect_text("quoted", "x\ty");
    expect_text("eq", "a=b");
    assert_null(maq_node_get(at_path("plan"), "pp"));
    assert_int_equal(at_path("plan.tp")->origin, MAQ_ORIGIN_FLAG);
    assert_int_equal(at_path("list.1.a")->origin, MAQ_ORIGIN_FLAG);
    assert_int_equal(at_path("plan")->origin, MAQ_ORIGIN_DOCUMENT);
    assert_int_equal(at_path("model")->origin, MAQ_ORIGIN_FLAG);
    assert_int_equal(doc.root->count, 8);
    assert_int_equal(maq_diag_count(diag), 0);

    /* values and keys point into the assignment */
    source = MAQ_STR("plan.tp=4");
    expect_span(at_path("plan.tp")->at, "4");
    expect_span(at_path("plan.tp")->key_at, "tp");
    assert_string_equal(maq_diag_place(diag, at_path("plan.tp")->at).name, "--set");
    source = MAQ_STR("list=[1, {a: b}]");
    expect_span(at_path("list")->at, "[1, {a: b}]");
    expect_span(at_path("list.1.a")->at, "b");

    /* the last one wins */
    assert_int_equal(maq_doc_set(&doc, "plan.tp=8", diag), MAQ_OK);
    expect_text("plan.tp", "8");
    assert_int_equal(at_path("plan")->count, 2);
}

static void test_set_value(void **state)
{
    int64_t whole;
    (void)state;
    assert_int_equal(maq_doc_init_empty(&doc), MAQ_OK);
    assert_int_equal(maq_doc_set_value(&doc, "plan.tp", "four", "--tp", diag), MAQ_OK);
    assert_int_equal(maq_doc_set_value(&doc, "cluster", "h100-sxm:8 x 2, rail 400G", "--cluster", diag), MAQ_OK);
    expect_text("cluster", "h100-sxm:8 x 2, rail 400G");
    assert_false(maq_node_i64(&whole, at_path("plan.tp"), diag));
    assert_int_equal(maq_doc_check_unused(&doc, diag), MAQ_BAD_INPUT);
    expect_diag("--tp:1:6: error[MAQ1024]: 'tp' must be a whole number, not 'four'\n"
                "  1 | --tp four\n"
                "    |      ^~~~\n"
                "\n"
                "--tp:1:1: error[MAQ1028]: nothing reads the key 'plan'\n"
                "  1 | --tp four\n"
                "    | ^~~~\n"
                "hint: check its spelling and its section, or remove it\n"
                "\n"
                "--cluster:1:1: error[MAQ1028]: nothing reads the key 'cluster'\n"
                "  1 | --cluster h100-sxm:8 x 2, rail 400G\n"
                "    | ^~~~~~~~~\n"
                "hint: check its spelling and its section, or remove it\n");
}

/* What has a name is a map that starts from it as soon as a part of it is set, in whichever order. */
static void test_set_inside_a_name(void **state)
{
    (void)state;
    assert_int_equal(parse("model: llama\ncluster: {groups: [{device: h100}]}\n"), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "model.layers=3", diag), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "cluster.groups.0.device.memory=60 GiB", diag), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "framework.dropout=0", diag), MAQ_OK);
    expect_text("model.base", "llama");
    expect_text("model.layers", "3");
    expect_text("cluster.groups.0.device.base", "h100");
    expect_text("cluster.groups.0.device.memory", "60 GiB");
    assert_int_equal(maq_doc_set_value(&doc, "model", "qwen", "--model", diag), MAQ_OK);
    assert_int_equal(maq_doc_set_value(&doc, "framework", "jax", "--framework", diag), MAQ_OK);
    expect_text("model.base", "qwen");
    expect_text("model.layers", "3");
    expect_text("framework.base", "jax");
    expect_text("framework.dropout", "0");
    assert_int_equal(maq_doc_set(&doc, "model=null", diag), MAQ_OK); /* takes all of it away */
    assert_true(maq_node_is_null(at_path("model")));
}

/* A map of the document is the document's: a name from the command line replaces it. */
static void test_set_name_over_map(void **state)
{
    (void)state;
    assert_int_equal(parse("model: {base: llama, layers: 3}\n"), MAQ_OK);
    assert_int_equal(maq_doc_set_value(&doc, "model", "qwen", "--model", diag), MAQ_OK);
    expect_text("model", "qwen");
}

static void test_set_refused(void **state)
{
    (void)state;
    assert_int_equal(parse("cluster: h100\nlist: [1, 2]\n"), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "cluster.nodes=3", diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_doc_set(&doc, "plan.tp", diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_doc_set(&doc, "=3", diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_doc_set(&doc, "plan..tp=3", diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_doc_set(&doc, "plan.tp= ", diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_doc_set(&doc, "list.2=3", diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_doc_set(&doc, "list.x=3", diag), MAQ_BAD_INPUT);
    expect_text("cluster", "h100");
    assert_int_equal(doc.root->count, 2); /* nothing was half done */
    expect_diag("--set:1:1: error[MAQ1027]: 'cluster' is the text 'h100', so nothing can be set inside it\n"
                "  1 | cluster.nodes=3\n"
                "    | ^~~~~~~\n"
                "hint: set all of it, or write it as a map in the document\n"
                "\n"
                "--set:1:1: error[MAQ1027]: there is no '=' in it\n"
                "  1 | plan.tp\n"
                "    | ^~~~~~~\n"
                "hint: write it as section.key=value, for example plan.tp=4\n"
                "\n"
                "--set:1:1: error[MAQ1027]: there is an empty name in the path\n"
                "  1 | =3\n"
                "    | ^\n"
                "hint: write it as section.key=value\n"
                "\n"
                "--set:1:6: error[MAQ1027]: there is an empty name in the path\n"
                "  1 | plan..tp=3\n"
                "    |      ^\n"
                "hint: write it as section.key=value\n"
                "\n"
                "--set:1:10: error[MAQ1027]: there is no value\n"
                "  1 | plan.tp= \n"
                "    |          ^\n"
                "hint: write null to take a value away\n"
                "\n"
                "--set:1:6: error[MAQ1027]: 'list' is a list of 2: there is no entry '2'\n"
                "  1 | list.2=3\n"
                "    |      ^\n"
                "hint: entries of a list are numbered from 0\n"
                "\n"
                "--set:1:6: error[MAQ1027]: 'list' is a list of 2: there is no entry 'x'\n"
                "  1 | list.x=3\n"
                "    |      ^\n"
                "hint: entries of a list are numbered from 0\n");
    assert_int_equal(maq_doc_set(&doc, "a=[1, 2", diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_doc_set(&doc, "a={x: 1, x: 2}", diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_doc_set(&doc, "a=\xE9", diag), MAQ_BAD_INPUT);
    assert_null(at_path("a"));
    /* depth counts the path and the value together */
    char deep[300] = "";
    for (int i = 0; i < 62; i++)
        strcat(deep, "a.");
    strcat(deep, "b=[[[1]]]");
    assert_int_equal(maq_doc_set(&doc, deep, diag), MAQ_LIMIT);
    /* a document that is one value cannot take keys; an empty one can */
    assert_int_equal(parse("just text"), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "a=1", diag), MAQ_BAD_INPUT);
    assert_int_equal(parse(""), MAQ_OK);
    assert_int_equal(maq_doc_set(&doc, "a=1", diag), MAQ_OK);
    expect_text("a", "1");
}

/* --- running out of memory -------------------------------------------------------------------------------- */

/* Fails the n-th allocation for every n until nothing fails. Leaks and stray reads are ASan's to see. */
static void test_out_of_memory(void **state)
{
    static const char text[] = "a: &x [1, 2, {b: c}]\nd: *x\ne: 'q'\n";
    static const char json[] = "{\"a\": \"\\ud83d\\ude00\", \"b\": [1, 2]}";
    (void)state;
    bool whole = false;
    for (fail_at = 1; !whole; fail_at++) {
        struct maq_doc one, two;
        assert_true(fail_at < 1000);
        struct maq_diag *own = maq_diag_new();
        asked = 0;
        maq__set_alloc_gate(fail_nth);
        enum maq_status s1 = maq_doc_parse(&one, "t", MAQ_STR(text), MAQ_ORIGIN_DOCUMENT, own);
        enum maq_status s2 = maq_doc_parse_any(&two, "t", MAQ_STR(json), MAQ_ORIGIN_DOCUMENT, own);
        enum maq_status s3 = MAQ_OK, s4 = MAQ_OK;
        if (s1 == MAQ_OK) {
            s3 = maq_doc_set(&one, "x.y={z: \"1\"}", own);
            s4 = maq_doc_set_value(&one, "x.w", "3", "--w", own);
        }
        maq__set_alloc_gate(NULL);
        whole = asked < fail_at;
        const enum maq_status all[] = {s1, s2, s3, s4};
        size_t failed = 0;
        for (size_t i = 0; i < MAQ_COUNT(all); i++) {
            assert_true(all[i] == MAQ_OK || all[i] == MAQ_NO_MEMORY);
            failed += all[i] == MAQ_NO_MEMORY;
        }
        assert_int_equal(failed > 0, !whole);
        assert_int_equal(maq_diag_errors(own), failed); /* each failure is said once */
        if (s1 != MAQ_OK)
            assert_null(one.root);
        maq_doc_fini(&one);
        maq_doc_fini(&two);
        maq_diag_free(own);
    }
    assert_true(fail_at > 10);
}

/* Of a document that may be another tool's the last of a key counts, and who knows whose it is says what that means. */
static void test_last_key_counts(void **state)
{
    static const char text[] = "a: 1\nb: {x: 1, y: 2, x: [3, 4], x: 5}\na: {c: 1}\nd: &n {a: 1}\ne: *n\n";
    (void)state;
    maq_doc_fini(&doc);
    assert_int_equal(maq_doc_parse_any(&doc, "t.yaml", MAQ_STR(text), MAQ_ORIGIN_DOCUMENT, diag), MAQ_OK);
    assert_int_equal(maq_diag_count(diag), 0);
    expect_text("b.x", "5");
    expect_text("b.y", "2");
    expect_text("a.c", "1");
    expect_text("e.a", "1");
    assert_int_equal(doc.root->count, 4);
    assert_int_equal(at_path("b")->count, 2);
    uint32_t again = 0;
    for (const struct maq_doc_again *a = doc.again; a; a = a->next)
        again++;
    assert_int_equal(again, 3);
    assert_int_equal(maq_diag_place(diag, doc.again->at).column, 17); /* the second x, */
    assert_int_equal(maq_diag_place(diag, doc.again->first).column, 5);
    maq_doc_note_again(&doc, "argparse", diag);
    assert_int_equal(maq_diag_count(diag), 3);
    assert_int_equal(maq_diag_errors(diag), 0);
    assert_int_equal(maq_doc_refuse_again(&doc, diag), MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), 3);
    /* nobody asks whose it is when it cannot be read: all faults are there at once */
    maq_doc_fini(&doc);
    const size_t before = maq_diag_errors(diag);
    assert_int_equal(maq_doc_parse_any(&doc, "t.yaml", MAQ_STR("a: 1\na: 2\nb: *no\n"), MAQ_ORIGIN_DOCUMENT, diag),
                     MAQ_BAD_INPUT);
    assert_int_equal(maq_diag_errors(diag), before + 2);
}

/* YAML's merge keys, of such documents alone: what a map has itself wins, then the first of those merged. */
static void test_merge_keys(void **state)
{
    static const char text[] = "base: &a {x: 1, y: 2, deep: {k: 1}}\nother: &b {y: 3, z: 4}\n"
                               "one:\n  <<: *a\n  x: 9\ntwo:\n  x: 9\n  <<: [*a, *b]\n  w: {<<: {v: 1}}\n";
    (void)state;
    maq_doc_fini(&doc);
    assert_int_equal(maq_doc_parse_any(&doc, "t.yaml", MAQ_STR(text), MAQ_ORIGIN_DOCUMENT, diag), MAQ_OK);
    assert_int_equal(maq_diag_count(diag), 0);
    assert_null(doc.again);
    expect_text("one.x", "9");
    expect_text("one.y", "2");
    expect_text("one.deep.k", "1");
    assert_int_equal(at_path("one")->count, 3);
    expect_text("two.x", "9");
    expect_text("two.y", "2");
    expect_text("two.z", "4");
    expect_text("two.w.v", "1");
    assert_int_equal(at_path("two")->count, 5);
    expect_text("base.x", "1"); /* the original keeps its own */
    maq_doc_fini(&doc);
    assert_int_equal(maq_doc_parse_any(&doc, "t.yaml", MAQ_STR("a: {<<: 1, b: 2}\n"), MAQ_ORIGIN_DOCUMENT, diag),
                     MAQ_BAD_INPUT);
    expect_code(1001, "'<<' takes a map, or a list of maps");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_yaml_tree),
        TEST(test_json),
        TEST(test_json_surrogates),
        TEST(test_characters),
        TEST(test_empty),
        TEST(test_nulls_and_get),
        TEST(test_aliases),
        TEST(test_duplicates_all_at_once),
        TEST(test_last_key_counts),
        TEST(test_merge_keys),
        TEST(test_syntax),
        TEST(test_encoding),
        TEST(test_several_documents),
        TEST(test_limits),
        TEST(test_load),
        TEST(test_unused),
        TEST(test_typed_reads),
        TEST(test_set),
        TEST(test_set_value),
        TEST(test_set_inside_a_name),
        TEST(test_set_name_over_map),
        TEST(test_set_refused),
        TEST(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
