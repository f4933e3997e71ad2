/* SPDX-License-Identifier: Apache-2.0 */
/* test_json_stream.c - JSON as a stream: the same values from bytes, a file and a compressed file, and every way to end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/json_stream.h"

/* What was called, as text. */
struct heard {
    char text[512];
    size_t n, most; /* values before it says stop; 0 = never */
    size_t values;
};

static int say(struct heard *h, char kind, const char *s, size_t n)
{
    h->n += (size_t)snprintf(h->text + h->n, sizeof h->text - h->n, "%c%.*s ", kind, (int)(n < 20 ? n : 20), s);
    return ++h->values != h->most;
}

static int on_null(void *h)
{
    return say(h, '0', "", 0);
}

static int on_boolean(void *h, int value)
{
    return say(h, '?', value ? "true" : "false", value ? 4 : 5);
}

static int on_number(void *h, const char *s, size_t n)
{
    return say(h, '#', s, n);
}

static int on_string(void *h, const unsigned char *s, size_t n)
{
    return say(h, '"', (const char *)s, n);
}

static int on_key(void *h, const unsigned char *s, size_t n)
{
    return say(h, ':', (const char *)s, n);
}

static int on_map(void *h)
{
    return say(h, '{', "", 0);
}

static int on_map_end(void *h)
{
    return say(h, '}', "", 0);
}

static int on_array(void *h)
{
    return say(h, '[', "", 0);
}

static int on_array_end(void *h)
{
    return say(h, ']', "", 0);
}

static const yajl_callbacks all = {.yajl_null = on_null,
                                   .yajl_boolean = on_boolean,
                                   .yajl_number = on_number,
                                   .yajl_string = on_string,
                                   .yajl_start_map = on_map,
                                   .yajl_map_key = on_key,
                                   .yajl_end_map = on_map_end,
                                   .yajl_start_array = on_array,
                                   .yajl_end_array = on_array_end};

static const char document[] = "{\"a\": [1, -2.5e3, \"x\\ny\"], \"b\": {\"c\": null, \"d\": true}, \"e\": false}";
static const char values[] = "{ :a [ #1 #-2.5e3 \"x\ny ] :b { :c 0 :d ?true } :e ?false } ";

static char path[64];

static const char *write_bytes(const void *bytes, size_t n, bool compressed)
{
    strcpy(path, "/tmp/maquette-test-json-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    gzFile file = compressed ? gzdopen(fd, "wb") : NULL;
    if (file) {
        assert_int_equal(gzwrite(file, bytes, (unsigned)n), (int)n);
        assert_int_equal(gzclose(file), Z_OK);
    } else {
        assert_int_equal(write(fd, bytes, n), (ssize_t)n);
        close(fd);
    }
    return path;
}

static void test_values(void **state)
{
    (void)state;
    struct maq_json_stream s;
    for (int way = 0; way < 3; way++) {
        struct heard h = {0};
        if (way == 0)
            assert_int_equal(maq_json_stream_bytes(&s, document, sizeof document - 1, &all, &h), MAQ_JSON_WHOLE);
        else
            assert_int_equal(maq_json_stream_file(&s, write_bytes(document, sizeof document - 1, way == 2), &all, &h),
                             MAQ_JSON_WHOLE);
        assert_string_equal(h.text, values);
        assert_int_equal(s.at, sizeof document - 1);
        if (way > 0)
            unlink(path);
    }
    const yajl_callbacks numbers = {.yajl_number = on_number}; /* what nobody asks for is passed over */
    struct heard h = {0};
    assert_int_equal(maq_json_stream_bytes(&s, document, sizeof document - 1, &numbers, &h), MAQ_JSON_WHOLE);
    assert_string_equal(h.text, "#1 #-2.5e3 ");
}

static void test_ends(void **state)
{
    static const struct {
        const char *text;
        enum maq_json_end end;
        uint64_t at;
    } cases[] = {{"[1, 2]", MAQ_JSON_WHOLE, 6},      {" [1, 2] \n", MAQ_JSON_WHOLE, 9}, {"", MAQ_JSON_CUT_OFF, 0},
                 {"[1, 2", MAQ_JSON_CUT_OFF, 5},     {"{\"a", MAQ_JSON_CUT_OFF, 3},     {"[1, ]", MAQ_JSON_FAULTY, 5},
                 {"[1, 2] [3]", MAQ_JSON_FAULTY, 8}, {"[1, x]", MAQ_JSON_FAULTY, 5}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct maq_json_stream s;
        struct heard h = {0};
        maq_json_stream_bytes(&s, cases[i].text, strlen(cases[i].text), &all, &h);
        if (s.end != cases[i].end || s.at != cases[i].at)
            fail_msg("'%s' ends as %d at %llu: %s", cases[i].text, (int)s.end, (unsigned long long)s.at, s.why);
        assert_int_equal(s.why[0] != '\0', s.end == MAQ_JSON_FAULTY);
    }
    struct maq_json_stream s;
    struct heard h = {.most = 4};
    assert_int_equal(maq_json_stream_bytes(&s, document, sizeof document - 1, &all, &h), MAQ_JSON_STOPPED);
    assert_string_equal(h.text, "{ :a [ #1 ");
    assert_int_equal(maq_json_stream_file(&s, "/nonexistent/x.json", &all, &h), MAQ_JSON_NOT_OPENED);
}

/* A compressed file whose bytes are not what they were, and one that was cut. */
static void test_damaged(void **state)
{
    enum { N = 40000 };
    char *text = malloc(N + 1), *bytes = malloc(N);
    struct maq_json_stream s;
    struct heard h = {.n = sizeof h.text - 1};
    const yajl_callbacks nothing = {0};
    (void)state;
    memset(text, '7', N);
    text[0] = '[';
    for (int i = 3; i < N - 1; i += 3 + i % 5)
        text[i] = ',';
    text[N - 2] = '7';
    text[N - 1] = ']';
    FILE *f = fopen(write_bytes(text, N, true), "rb");
    size_t n = fread(bytes, 1, N, f);
    fclose(f);
    unlink(path);
    bytes[n / 2] = (char)(bytes[n / 2] ^ 0x5a);
    bytes[n / 2 + 1] = (char)(bytes[n / 2 + 1] ^ 0x5a);
    enum maq_json_end end = maq_json_stream_file(&s, write_bytes(bytes, n, false), &nothing, &h);
    assert_true(end == MAQ_JSON_UNREADABLE || end == MAQ_JSON_FAULTY);
    unlink(path);
    assert_int_equal(maq_json_stream_file(&s, write_bytes(bytes, n / 3, false), &nothing, &h), MAQ_JSON_CUT_OFF);
    unlink(path);
    free(text);
    free(bytes);
}

/* A text that does not end is given up; as many bytes of values are not. */
static void test_endless(void **state)
{
    size_t n = (size_t)MAQ_JSON_LONGEST_TEXT + (1 << 20);
    char *text = malloc(n);
    struct maq_json_stream s;
    const yajl_callbacks nothing = {0};
    (void)state;
    assert_non_null(text);
    memset(text, 'x', n);
    memcpy(text, "[1, \"", 5);
    assert_int_equal(maq_json_stream_bytes(&s, text, n, &nothing, NULL), MAQ_JSON_ENDLESS);
    assert_in_range(s.at, MAQ_JSON_LONGEST_TEXT, n);
    memcpy(text, "[\"xxx", 5);
    for (size_t i = 1 << 20; i < n; i += 1 << 20)
        memcpy(text + i, "\",\"", 3);
    memcpy(text + n - 2, "\"]", 2);
    assert_int_equal(maq_json_stream_bytes(&s, text, n, &nothing, NULL), MAQ_JSON_WHOLE);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_endless),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
