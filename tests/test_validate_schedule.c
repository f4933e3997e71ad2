/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_validate_schedule.c - the scheduler against recordings of a real one.
 *
 * The recordings of tests/data/serving_schedules are small ones of vLLM 0.33.0 that cover what knobs ask for: hybrid groups, drafts,
 * asynchronous iterations, requests given up, priorities, no caching, whole prompts; those of serving_schedules_sglang are of SGLang 0.5.23. Every step is equal; and a recording in which one
 * number is changed differs at that step. Longer ones are read where MAQ_SHARED has them.
 *
 * maq-test: long
 */
#include <glob.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "effort.h"
#include "failing_alloc.h"
#include "maquette/validate_serve.h"
#include "random_draws.h"
#include "temp.h"
#include "validate/codes.h"

#define RECORDINGS 46u
#define SGLANG_RECORDINGS 30u

/* ---- files ---- */

static bool list(glob_t *out, const char *root, const char *folder)
{
    char pattern[4096];
    snprintf(pattern, sizeof pattern, "%s/%s/*.jsonl.gz", root ? root : "/nonexistent", folder);
    return glob(pattern, 0, NULL, out) == 0;
}

static void list_of(glob_t *out, const char *folder)
{
    const char *root = getenv("MAQ_SOURCE_ROOT");
    assert_true(list(out, root ? root : "..", folder));
}

static void list_small(glob_t *out)
{
    list_of(out, "tests/data/serving_schedules");
}

/* A recording as lines; free() the result. */
static char *unpacked(const char *path)
{
    char *text = malloc((size_t)4 << 20);
    gzFile file = gzopen(path, "rb");
    assert_true(file && text);
    int n = gzread(file, text, (4u << 20) - 1);
    assert_true(n > 0);
    text[n] = '\0';
    gzclose(file);
    return text;
}

/* One file, which can be read. */
static struct maq_validate_schedule *compare(const char *path)
{
    struct maq_validate_schedule *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_validate_schedule(&r, &path, 1, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    assert_int_equal(r->n, 1);
    maq_diag_free(diag);
    return r;
}

static struct maq_validate_schedule *compare_text(const char *text)
{
    char path[] = "/tmp/maq-schedule-XXXXXX";
    struct maq_validate_schedule *r = compare(temp_text(path, text));
    unlink(path);
    return r;
}

static void expect_all_equal(const glob_t *files, const char *engine)
{
    struct maq_validate_schedule *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    if (maq_validate_schedule(&r, (const char *const *)files->gl_pathv, files->gl_pathc, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    assert_int_equal(r->n, files->gl_pathc);
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_validate_schedule_row *row = &r->rows[i];
        if (row->first_difference >= 0)
            print_message("%s: step %lld: %s\n", row->file, (long long)row->first_difference, row->difference);
        assert_string_equal(row->file, files->gl_pathv[i]);
        assert_string_equal(row->engine, engine);
        assert_true(row->steps > 0 && row->requests > 0);
        assert_int_equal(row->equal_steps, row->steps);
        assert_null(row->difference);
    }
    assert_int_equal(r->equal, r->n);
    maq_validate_schedule_free(r);
    maq_diag_free(diag);
}

/* ---- equal in every step ---- */

/* Which of the things that knobs can ask for a recording has. */
enum has {
    CHUNKED,
    WHOLE,
    UNCACHED,
    PRIORITY,
    ASYNC,
    SPEC,
    EAGLE,
    HYBRID,
    CHUNKS,
    SIZES,
    ABORT,
    PREEMPT,
    MARK,
    PREFILL,
    DECODE,
    ARRIVED,
    SENT,
    DEFERS,
    HAS_COUNT
};

static void look_at(bool has[HAS_COUNT], const char *text)
{
    static const struct {
        enum has what;
        const char *word;
    } words[] = {{CHUNKED, "\"chunked\": 1"},
                 {WHOLE, "\"chunked\": 0"},
                 {UNCACHED, "\"caching\": 0"},
                 {PRIORITY, "\"priority\", "},
                 {ASYNC, "\"async\": 1"},
                 {SPEC, "\"spec_tokens\": "},
                 {EAGLE, "\"eagle\": 1"},
                 {HYBRID, "\"kind\": \"window\""},
                 {CHUNKS, "\"kind\": \"chunk\""},
                 {ABORT, "\"aborted\": [\""},
                 {PREEMPT, "\"preempted\": [\""},
                 {MARK, "\"watermark\": 0.02"},
                 {PREFILL, "\"part\": 1"},
                 {DECODE, "\"part\": 2"},
                 {ARRIVED, "\"arrived\": [\""},
                 {SENT, "\"sent\": [\""},
                 {DEFERS, "\"defer_block_free\": 1"}};
    for (size_t i = 0; i < MAQ_COUNT(words); i++)
        has[words[i].what] |= strstr(text, words[i].word) != NULL;
    json_t *header = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
    const json_t *groups = json_object_get(json_object_get(header, "knobs"), "groups");
    for (size_t i = 1; i < json_array_size(groups); i++)
        has[SIZES] |= json_integer_value(json_object_get(json_array_get(groups, 0), "block_size")) !=
                      json_integer_value(json_object_get(json_array_get(groups, i), "block_size"));
    json_decref(header);
}

static void test_small_recordings(void **state)
{
    (void)state;
    glob_t files;
    bool has[HAS_COUNT] = {false};
    list_small(&files);
    assert_int_equal(files.gl_pathc, RECORDINGS);
    expect_all_equal(&files, "vllm");
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *text = unpacked(files.gl_pathv[i]);
        look_at(has, text);
        free(text);
    }
    for (int i = 0; i < HAS_COUNT; i++) /* so that a file that goes is missed */
        if (!has[i])
            fail_msg("no recording has thing %d", i);
    globfree(&files);
}

static void test_shared_recordings(void **state)
{
    (void)state;
    glob_t files;
    if (!list(&files, getenv("MAQ_SHARED"), "data/serving_schedules")) {
        print_message("no data/serving_schedules in MAQ_SHARED\n");
        skip();
    }
    expect_all_equal(&files, "vllm");
    globfree(&files);
}

/* ---- one number changed ---- */

enum change { FREE, RUNNING, WAITING, TOKENS, WHO, PREEMPTED, FINISHED, HITS, CHANGES };
static const char *const said[CHANGES] = {"free ",
                                          "requests running",
                                          "requests waiting",
                                          "tokens of a request",
                                          "tokens of a request",
                                          "requests preempted",
                                          "requests finished",
                                          "requests taken in"};

static void add_to(json_t *map, const char *key, int64_t more)
{
    json_object_set_new(map, key, json_integer(json_integer_value(json_object_get(map, key)) + more));
}

/* Changes what a step says; false where it says no such thing. */
static bool change(json_t *step, enum change what, bool async)
{
    json_t *scheduled = json_object_get(step, "scheduled");
    void *first = json_object_iter(scheduled);
    switch (what) {
    case FREE:
        add_to(step, "free", 1);
        return true;
    case RUNNING:
        add_to(step, "running", -1);
        return true;
    case WAITING:
        add_to(step, "waiting", 1);
        return true;
    case TOKENS:
        if (!first)
            return false;
        add_to(scheduled, json_object_iter_key(first), 1);
        return true;
    case WHO:
        if (!first)
            return false;
        json_object_set(scheduled, "nobody", json_object_iter_value(first));
        json_object_del(scheduled, json_object_iter_key(first));
        return true;
    case PREEMPTED:
        json_array_append_new(json_object_get(step, "preempted"), json_string("nobody"));
        return true;
    case FINISHED:
        json_array_append_new(json_object_get(step, "finished"), json_string("nobody"));
        return !async || json_integer_value(json_object_get(step, "step")) > 0; /* the first ends in the next step */
    case HITS:
        json_object_set_new(json_object_get(step, "hits"), "nobody", json_integer(0));
        return true;
    case CHANGES:
        break;
    }
    return false;
}

/* The recording with step `number` (as they are counted) changed; NULL where it says no such thing. */
static char *changed(const char *text, uint32_t number, enum change what, int64_t *step)
{
    char *out = malloc(strlen(text) + 4096), *to = out;
    uint32_t n = 0;
    bool done = false;
    while (*text) {
        size_t length = strcspn(text, "\n");
        bool is_step = strncmp(text, "{\"step\"", 7) == 0;
        if (is_step && n++ == number) {
            json_t *map = json_loadb(text, length, 0, NULL);
            assert_non_null(map);
            *step = json_integer_value(json_object_get(map, "step"));
            done = change(map, what, number == 0);
            char *line = json_dumps(map, 0);
            to += sprintf(to, "%s\n", line);
            free(line);
            json_decref(map);
        } else {
            to += sprintf(to, "%.*s\n", (int)length, text);
        }
        text += length + (text[length] == '\n');
    }
    if (done)
        return out;
    free(out);
    return NULL;
}

static void expect_found(const char *text, uint32_t number, enum change what)
{
    int64_t step;
    char *other = changed(text, number, what, &step);
    if (!other)
        return;
    struct maq_validate_schedule *r = compare_text(other);
    assert_int_equal(r->rows[0].first_difference, step);
    assert_int_equal(r->rows[0].equal_steps, r->rows[0].steps - 1);
    assert_int_equal(r->equal, 0);
    assert_true(strncmp(r->rows[0].difference, said[what], strlen(said[what])) == 0);
    maq_validate_schedule_free(r);
    free(other);
}

static void change_all(const glob_t *files)
{
    uint64_t draws = 1;
    for (size_t i = 0; i < files->gl_pathc; i++) {
        char *text = unpacked(files->gl_pathv[i]);
        struct maq_validate_schedule *r = compare(files->gl_pathv[i]);
        for (int what = 0; what < CHANGES; what++) {
            expect_found(text, draw(&draws, 0, r->rows[0].steps - 1), (enum change)what);
            expect_found(text, r->rows[0].steps - 1, (enum change)what);
        }
        maq_validate_schedule_free(r);
        free(text);
    }
}

static void test_a_changed_number_is_found(void **state)
{
    NOT_UNDER_A_SANITIZER();
    (void)state;
    glob_t files;
    list_small(&files);
    change_all(&files);
    globfree(&files);
}

/* ---- SGLang's ---- */

static void test_sglang_recordings(void **state)
{
    (void)state;
    static const char *const words[] = {"\"policy\":\"fcfs\"",
                                        "\"policy\":\"lpm\"",
                                        "\"policy\":\"dfs-weight\"",
                                        "\"policy\":\"lof\"",
                                        "\"overlap\":1",
                                        "\"overlap\":0",
                                        "\"mixed\":1",
                                        "\"priority\":1,",
                                        "\"caching\":0",
                                        "\"chunked_prefill_size\":0",
                                        "\"page_size\":1,",
                                        "\"page_size\":16",
                                        "\"eviction\":\"lfu\"",
                                        "\"eviction\":\"fifo\"",
                                        "\"spec_topk\":4",
                                        "\"spec_topk\":1",
                                        "\"spec_pairs\":1",
                                        "\"max_loras\":",
                                        "\"write_policy\":\"write_back\"",
                                        "\"write_policy\":\"write_through\"",
                                        "\"write_policy\":\"write_through_selective\"",
                                        "\"preemption\":1",
                                        "\"preempted\":[\""};
    bool has[MAQ_COUNT(words)] = {false};
    glob_t files;
    list_of(&files, "tests/data/serving_schedules_sglang");
    assert_int_equal(files.gl_pathc, SGLANG_RECORDINGS);
    expect_all_equal(&files, "sglang");
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *text = unpacked(files.gl_pathv[i]);
        for (size_t k = 0; k < MAQ_COUNT(words); k++)
            has[k] |= strstr(text, words[k]) != NULL;
        free(text);
    }
    for (size_t k = 0; k < MAQ_COUNT(words); k++)
        if (!has[k])
            fail_msg("no recording has %s", words[k]);
    if (!SANITIZED)
        change_all(&files);
    globfree(&files);
}

/* A scheduler that was asked for something else decides something else: knobs are not passed over. */
static void test_a_changed_knob_is_found(void **state)
{
    (void)state;
    static const struct {
        const char *knob;
        int64_t factor;
    } knobs[] = {{"max_num_seqs", 1}, {"max_num_batched_tokens", 16}, {"blocks", 3}};
    glob_t files;
    uint32_t found[MAQ_COUNT(knobs)] = {0};
    list_small(&files);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *text = unpacked(files.gl_pathv[i]), *rest = strchr(text, '\n'), *other = malloc(strlen(text) + 4096);
        json_t *header = json_loads(text, JSON_DISABLE_EOF_CHECK, NULL);
        for (size_t k = 0; k < MAQ_COUNT(knobs); k++) {
            json_t *copy = json_deep_copy(header), *map = json_object_get(copy, "knobs");
            int64_t now = json_integer_value(json_object_get(map, knobs[k].knob));
            json_object_set_new(map, knobs[k].knob, json_integer(knobs[k].factor == 1 ? 1 : now / knobs[k].factor + 1));
            char *line = json_dumps(copy, 0);
            sprintf(other, "%s%s", line, rest);
            struct maq_validate_schedule *r = compare_text(other);
            found[k] += r->rows[0].first_difference >= 0;
            maq_validate_schedule_free(r);
            free(line);
            json_decref(copy);
        }
        json_decref(header);
        free(other);
        free(text);
    }
    for (size_t k = 0; k < MAQ_COUNT(knobs); k++)
        assert_true(found[k] > RECORDINGS / 2);
    globfree(&files);
}

/* Adapters have no slots of their own, and each file with some is decided otherwise. */
static void test_adapters_hold_requests_back(void **state)
{
    (void)state;
    glob_t files;
    uint32_t with = 0;
    list_small(&files);
    for (size_t i = 0; i < files.gl_pathc; i++) {
        char *text = unpacked(files.gl_pathv[i]), *knob = strstr(text, "\"max_loras\": ");
        if (knob) {
            with++;
            knob[strlen("\"max_loras\": ")] = '0'; /* one digit */
            struct maq_validate_schedule *r = compare_text(text);
            assert_true(r->rows[0].first_difference >= 0);
            maq_validate_schedule_free(r);
        }
        free(text);
    }
    assert_int_equal(with, 3);
    globfree(&files);
}

/* ---- files that are no recordings ---- */

#define KNOBS "\"knobs\": {\"blocks\": 100, \"max_model_len\": 1000}"
#define HEAD "{\"engine\": \"vllm\", \"version\": \"1\", " KNOBS "}\n"
#define ASKED "{\"request\": {\"id\": \"a\", \"arrive_step\": 0, \"prompt\": 5, \"output\": 2}}\n"
#define STEP "{\"step\": 0, \"scheduled\": {\"a\": 5}}\n"

static void expect_words(const struct maq_diag *diag, const char *words)
{
    const struct maq_str msg = maq_diag_at(diag, 0)->msg;
    if (!memmem(msg.ptr, msg.len, words, strlen(words)))
        fail_msg("'%s' is not in: %.*s", words, (int)msg.len, msg.ptr);
}

static void expect_bad(const char *text, enum maq_status status, int code, const char *words)
{
    char path[] = "/tmp/maq-schedule-XXXXXX";
    const char *name = temp_text(path, text);
    struct maq_validate_schedule *r = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_validate_schedule(&r, &name, 1, diag), status);
    assert_null(r);
    assert_int_equal(maq_diag_count(diag), 1);
    assert_int_equal(maq_diag_at(diag, 0)->code, code);
    expect_words(diag, words);
    maq_diag_free(diag);
    unlink(path);
}

static void test_no_recordings(void **state)
{
    (void)state;
    static const struct {
        const char *text, *words;
    } cases[] = {
        {"", "not a recording"},
        {HEAD ASKED, "not a recording"}, /* no steps */
        {ASKED STEP, "not a recording"}, /* no header */
        {"hello\n", ":1: not a JSON object"},
        {HEAD "[1]\n", ":2: "},
        {HEAD ASKED "{\"step\": 0,\n", "step 0 is not a JSON object"},
        {HEAD ASKED "{\"step\": 0, 1}\n", "step 0 is not a JSON object"},
        {"{\"engine\": \"trtllm\", " KNOBS "}\n", ":1: the scheduler of an engine"},
        {"{\"engine\": \"sglang\", \"knobs\": {\"tokens\": 99, \"blocks\": 9}}\n", "'blocks'"},
        {"{\"engine\": \"sglang\", \"knobs\": {\"tokens\": 0}}\n", "'tokens'"},
        {"{\"engine\": \"sglang\", \"knobs\": {}}\n", "no tokens"},
        {"{\"engine\": \"sglang\", \"knobs\": {\"tokens\": 99, \"policy\": \"lifo\"}}\n", "a policy"},
        {"{\"engine\": \"sglang\", \"knobs\": {\"tokens\": 99, \"eviction\": \"never\"}}\n", "an eviction"},
        {"{\"engine\": 1, " KNOBS "}\n", ":1: the scheduler of an engine"},
        {"{\"engine\": \"vllm\"}\n", "without knobs"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": 9, \"speed\": 1}}\n", "'speed'"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": 9, \"policy\": \"lifo\"}}\n", "a policy"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": 1}}\n", "'blocks'"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": -1}}\n", "'blocks'"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": 99999999999}}\n", "'blocks'"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": 9, \"block_size\": 0}}\n", "'block_size'"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": 9, \"max_num_seqs\": 0}}\n", "'max_num_seqs'"},
        {"{\"engine\": \"vllm\", \"knobs\": {}}\n", "no blocks"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": \"many\"}}\n", "'blocks'"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": 9, \"groups\": [{\"kind\": \"full\", \"block_size\": "
         "1048575}, "
         "{\"kind\": \"full\", \"block_size\": 1048573}]}}\n",
         "least common multiple"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": 9, \"groups\": []}}\n", "no groups"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": 9, \"groups\": [{}]}}\n", "a group of layers"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": 9, \"groups\": [{\"kind\": \"wide\"}]}}\n",
         "a group of layers"},
        {"{\"engine\": \"vllm\", \"knobs\": {\"blocks\": 9, \"groups\": [{\"kind\": \"window\"}]}}\n",
         "a group of layers"},
        {HEAD "{\"request\": {\"id\": \"a\", \"prompt\": 5}}\n" STEP, ":2: a request"},
        {HEAD "{\"request\": {\"id\": 1, \"prompt\": 5, \"output\": 2}}\n" STEP, ":2: a request"},
        {HEAD "{\"request\": {\"id\": \"a\", \"prompt\": 0, \"output\": 2}}\n" STEP, ":2: a request"},
        {HEAD "{\"request\": {\"id\": \"a\", \"prompt\": 5, \"output\": 2, \"arrive_step\": -1}}\n" STEP,
         ":2: a request"},
        {HEAD "{\"request\": {\"id\": \"a\", \"prompt\": 4000000000000, \"output\": 2}}\n" STEP, ":2: a request"},
        {HEAD "{\"request\": {\"id\": \"a\", \"prompt\": 1001, \"output\": 2}}\n" STEP, "longer than max_model_len"},
        {HEAD ASKED ASKED STEP, "two requests"},
        {HEAD "{\"other\": 1}\n", ":2: neither"},
        {HEAD HEAD ASKED STEP, ":2: a second header"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++)
        expect_bad(cases[i].text, MAQ_BAD_INPUT, MAQ_CODE_RECORDING, cases[i].words);
}

/* A damaged file is not a shorter recording. */
static void test_truncated(void **state)
{
    (void)state;
    glob_t files;
    list_small(&files);
    char path[] = "/tmp/maq-schedule-XXXXXX", bytes[4096];
    const char *name = path;
    struct maq_validate_schedule *r = NULL;
    FILE *f = fopen(files.gl_pathv[0], "rb");
    assert_non_null(f);
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    temp_file(path, bytes, n / 2);
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_validate_schedule(&r, &name, 1, diag), MAQ_IO);
    expect_words(diag, "not complete");
    unlink(path);
    name = "/nonexistent/recording.jsonl";
    assert_int_equal(maq_validate_schedule(&r, &name, 1, diag), MAQ_IO);
    assert_null(r);
    maq_diag_free(diag);
    globfree(&files);
}

/* Whatever a step claims, the answer is a difference or an error. */
static void test_wild_steps(void **state)
{
    (void)state;
    static const char *const steps[] = {
        "{\"step\": 0}\n",
        "{\"step\": -7, \"scheduled\": []}\n",
        "{\"step\": 99999999, \"scheduled\": {\"a\": 5}, \"sampled\": {\"a\": 2000000000}}\n",
        "{\"step\": 0, \"scheduled\": {\"a\": 5}, \"sampled\": {\"a\": -1}, \"drafts\": {\"a\": 2000000000}}\n",
        "{\"step\": 0, \"scheduled\": {\"a\": 5}, \"sampled\": {\"b\": 1}, \"aborted\": [\"b\", 1]}\n",
        "{\"step\": 0, \"scheduled\": {\"a\": 5}, \"drafts\": {\"b\": 1}}\n",
        "{\"step\": 0, \"scheduled\": 1, \"free\": \"x\", \"hits\": 2, \"finished\": {}, \"preempted\": 1}\n",
        "{\"step\": 0, \"aborted\": [\"a\", \"a\"]}\n",
    };
    uint64_t draws = 7;
    for (int round = 0; round < 400; round++) {
        char text[8192];
        const char *kinds[] = {"", ", \"async\": 1", ", \"spec_tokens\": 3, \"eagle\": 1, \"lookahead_tokens\": 3",
                               ", \"async\": 1, \"spec_tokens\": 2"};
        int n = snprintf(text, sizeof text,
                         "{\"engine\": \"vllm\", \"knobs\": {\"blocks\": %u, \"max_model_len\": 64%s}}\n" ASKED,
                         draw(&draws, 2, 9), kinds[draw(&draws, 0, 3)]);
        for (uint32_t i = draw(&draws, 1, 12); i-- > 0;)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s", steps[draw(&draws, 0, MAQ_COUNT(steps) - 1)]);
        struct maq_validate_schedule *r = compare_text(text);
        assert_true(r->rows[0].first_difference != -1 && r->rows[0].difference);
        maq_validate_schedule_free(r);
    }
}

/* ---- the reports; memory ---- */

static void test_reports(void **state)
{
    (void)state;
    char path[] = "/tmp/maq-schedule-XXXXXX", want[256];
    const char *name = temp_text(path, HEAD ASKED STEP);
    struct maq_validate_schedule *r = compare(name);
    char *text = maq_validate_schedule_text(r), *json = maq_validate_schedule_json(r);
    snprintf(want, sizeof want,
             "  steps   equal  recording\n      1       0  %s (vllm 1, 1 requests)\n"
             "                 first difference: step 0, tokens found in the prefix cache: none recorded, 0 here\n"
             "0 of 1 recordings are equal in every step\n",
             name);
    assert_string_equal(text, want);
    json_t *map = json_loads(json, 0, NULL), *row = json_array_get(json_object_get(map, "rows"), 0);
    assert_string_equal(json_string_value(json_object_get(map, "schema")), "maquette.validate.schedule/1");
    assert_int_equal(json_integer_value(json_object_get(map, "recordings")), 1);
    assert_int_equal(json_integer_value(json_object_get(map, "equal")), 0);
    assert_int_equal(json_integer_value(json_object_get(row, "first_difference")), 0);
    assert_string_equal(json_string_value(json_object_get(row, "file")), name);
    json_decref(map);
    free(text);
    free(json);
    maq_validate_schedule_free(r);
    unlink(path);
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    glob_t files;
    list_small(&files);
    const char *name = files.gl_pathv[0];
    struct failing f = {0};
    while (next_failing(&f)) {
        struct maq_validate_schedule *r = NULL;
        enum maq_status status = maq_validate_schedule(&r, &name, 1, NULL);
        expect_failing(&f, f.nth > 0 && status == MAQ_LIMIT ? MAQ_NO_MEMORY : status, r);
        maq_validate_schedule_free(r);
    }
    assert_true(f.all > 5);
    globfree(&files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small_recordings),
        cmocka_unit_test(test_shared_recordings),
        cmocka_unit_test(test_a_changed_number_is_found),
        cmocka_unit_test(test_sglang_recordings),
        cmocka_unit_test(test_a_changed_knob_is_found),
        cmocka_unit_test(test_adapters_hold_requests_back),
        cmocka_unit_test(test_no_recordings),
        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_wild_steps),
        cmocka_unit_test(test_reports),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests_name("validate schedule", tests, NULL, NULL);
}
