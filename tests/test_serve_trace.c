/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_trace.c - the timeline of a deployment, read back as Chrome JSON with jansson, against the run that it is of.
 *
 * Every iteration is on every stage, none overlaps another there, and together they compute each token once; a request's row is its times;
 * counters stay within limits and end at nothing. Iterations done at once are drawn as one by one, to the byte; who watches changes
 * nothing. Long runs are cut, and say so.
 */
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/maquette.h"
#include "report/timeline/codes.h"

#define STAGES_MOST 8

/* ---- runs ---- */

static void scratch_name(char buf[64], const char *end)
{
    snprintf(buf, 64, "/tmp/maq-serve-trace-%ld%s", (long)getpid(), end);
}

static struct maq_loaded_job *load(const char *model, const char *plan)
{
    char text[256];
    struct maq_loaded_job *job = NULL;
    snprintf(text, sizeof text,
             "{model: %s, cluster: 'h100-sxm:8', plan: {micro_batch_size: 1%s}, workload: {global_batch_size: 8}}",
             model, plan);
    assert_int_equal(maq_job_parse(&job, "test", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
    return job;
}

struct rig {
    struct maq_loaded_job *job;
    struct maq_request_set *set;
    struct maq_serve_result *r;
    struct maq_diag *diag;
    const struct maq_requests *q;
};

static void run(struct rig *rig, const char *plan, const struct maq_serve_options *o,
                const struct maq_request_spec *spec, const char *path)
{
    *rig = (struct rig){.job = load("llama-3.1-8b", plan), .diag = maq_diag_new()};
    assert_int_equal(maq_requests_generate(&rig->set, spec, NULL), MAQ_OK);
    rig->q = maq_requests_get(rig->set);
    assert_int_equal(maq_trace_serve(path, &rig->r, maq_job_get(rig->job), o, rig->q, rig->diag), MAQ_OK);
}

static void end(struct rig *rig)
{
    maq_serve_free(rig->r);
    maq_requests_free(rig->set);
    maq_job_free(rig->job);
    maq_diag_free(rig->diag);
}

static char *slurp(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    char *bytes = malloc(64 << 20);
    assert_true(f && bytes);
    *n = fread(bytes, 1, 64 << 20, f);
    fclose(f);
    unlink(path);
    return bytes;
}

/* ---- read back ---- */

static const char *text_of(const json_t *event, const char *key)
{
    const char *text = json_string_value(json_object_get(event, key));
    return text ? text : "";
}

static int64_t integer(const json_t *event, const char *key)
{
    return json_integer_value(json_object_get(event, key));
}

static double micros(const json_t *event, const char *key)
{
    return json_number_value(json_object_get(event, key));
}

static int64_t argument(const json_t *event, const char *key)
{
    return integer(json_object_get(event, "args"), key);
}

/* One request's slice against its times, in microseconds to the nanosecond. */
static void check_request(const json_t *event, const struct rig *rig)
{
    const struct maq_served *s = &rig->r->served[integer(event, "tid") - 1];
    const struct maq_request *sent = &rig->q->at[integer(event, "tid") - 1];
    const char *name = text_of(event, "name");
    double from = s->arrival_s, to = s->scheduled_s;
    if (strcmp(name, "prefill") == 0) {
        from = s->scheduled_s;
        to = s->first_s;
        assert_int_equal(argument(event, "prompt"), sent->prompt);
        assert_int_equal(argument(event, "cached"), s->cached);
    } else if (strcmp(name, "decode") == 0) {
        from = s->first_s;
        to = s->last_s;
        assert_int_equal(argument(event, "output"), sent->output);
        assert_int_equal(argument(event, "preemptions"), s->preemptions);
    } else {
        assert_string_equal(name, "queued");
    }
    assert_true(fabs(micros(event, "ts") - from * 1e6) < 2e-3);
    assert_true(fabs(micros(event, "ts") + micros(event, "dur") - to * 1e6) < 2e-3);
}

struct seen {
    uint64_t iterations[STAGES_MOST], requests;
    double until[STAGES_MOST];
    int64_t tokens;
    double counter[3], most[3]; /* KV cache, running, waiting */
};

static void check_iteration(const json_t *event, struct seen *seen)
{
    int64_t stage = integer(event, "tid") - 1, prompts = argument(event, "prompts"),
            requests = argument(event, "requests");
    assert_true(stage >= 0 && stage < STAGES_MOST);
    assert_int_equal(argument(event, "iteration"), seen->iterations[stage]++);
    assert_true(micros(event, "ts") >= seen->until[stage] - 2e-3 && micros(event, "dur") > 0);
    seen->until[stage] = micros(event, "ts") + micros(event, "dur");
    seen->tokens += stage == 0 ? argument(event, "tokens") : 0;
    assert_true(requests >= 1 && prompts <= requests && argument(event, "tokens") >= requests);
    assert_string_equal(text_of(event, "name"), prompts == 0 ? "decode" : prompts == requests ? "prefill" : "mixed");
}

static void check_counter(const json_t *event, struct seen *seen)
{
    static const char *const names[] = {"KV cache", "running", "waiting"};
    for (int i = 0; i < 3; i++) {
        if (strcmp(text_of(event, "name"), names[i]) != 0)
            continue;
        seen->counter[i] =
            json_number_value(json_object_get(json_object_get(event, "args"), i ? "requests" : "blocks"));
        seen->most[i] = seen->counter[i] > seen->most[i] ? seen->counter[i] : seen->most[i];
    }
}

static void check(struct rig *rig, const char *path, uint32_t stages)
{
    struct seen seen = {0};
    json_t *trace = json_load_file(path, 0, NULL), *event;
    size_t i;
    int64_t tokens = 0;
    assert_non_null(trace);
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event)
    {
        if (strcmp(text_of(event, "cat"), "iteration") == 0)
            check_iteration(event, &seen);
        else if (strcmp(text_of(event, "cat"), "request") == 0)
            check_request(event, rig);
        else if (strcmp(text_of(event, "ph"), "C") == 0)
            check_counter(event, &seen);
        seen.requests +=
            strcmp(text_of(event, "cat"), "request") == 0 && strcmp(text_of(event, "name"), "prefill") == 0;
    }
    for (uint32_t s = 0; s < STAGES_MOST; s++)
        assert_int_equal(seen.iterations[s], s < stages ? rig->r->iterations : 0);
    for (uint32_t k = 0; k < rig->q->n; k++)
        tokens += rig->q->at[k].prompt + rig->q->at[k].output - 1 - rig->r->served[k].cached;
    assert_int_equal(seen.requests, rig->q->n);
    assert_int_equal(rig->r->preemptions, 0);
    assert_int_equal(seen.tokens, tokens);
    assert_true(seen.most[0] > 0 && seen.most[0] <= (double)rig->r->blocks);
    assert_true(seen.most[1] > 0 && seen.most[1] <= rig->r->options.max_num_seqs);
    for (int c = 0; c < 3; c++)
        assert_true(seen.counter[c] < 0.5);
    json_decref(trace);
    unlink(path);
}

static void test_read_back(void **state)
{
    (void)state;
    static const struct {
        const char *plan;
        uint32_t stages;
        struct maq_serve_options o;
    } rows[] = {
        {"", 1, {0}},
        {"", 1, {.async_scheduling = MAQ_ON, .max_num_seqs = 4}},
        {", pp: 2", 2, {0}},
        {", tp: 2, pp: 4", 4, {.max_num_batched_tokens = 512, .no_prefix_caching = true, .async_scheduling = MAQ_OFF}},
    };
    const struct maq_request_spec spec = {
        .rate = 30, .n = 60, .prompt = 700, .output = 40, .spread = 0.7, .shared_prefix = 128, .seed = 2};
    char path[64];
    scratch_name(path, ".json");
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        struct rig rig;
        run(&rig, rows[i].plan, &rows[i].o, &spec, path);
        assert_int_equal(maq_diag_count(rig.diag), 0);
        check(&rig, path, rows[i].stages);
        end(&rig);
    }
}

/* ---- who watches changes nothing ---- */

static void test_same_bytes(void **state)
{
    (void)state;
    const struct maq_request_spec spec = {.rate = 6, .n = 40, .prompt = 600, .output = 150, .spread = 0.5, .seed = 9};
    char path[64], *bytes[2];
    size_t n[2];
    scratch_name(path, ".pftrace");
    for (int i = 0; i < 2; i++) {
        const struct maq_serve_options o = {.async_scheduling = MAQ_ON, .one_by_one = i == 1};
        struct rig rig;
        struct maq_serve_result *alone;
        char *text[2];
        run(&rig, "", &o, &spec, path);
        bytes[i] = slurp(path, &n[i]);
        assert_int_equal(maq_serve_run(&alone, maq_job_get(rig.job), &o, rig.q, NULL), MAQ_OK);
        assert_true(!rig.r->options.watch && !rig.r->options.watch_user);
        assert_int_equal(maq_report_serve_json(&text[0], rig.r, NULL, NULL), MAQ_OK);
        assert_int_equal(maq_report_serve_json(&text[1], alone, NULL, NULL), MAQ_OK);
        assert_string_equal(text[0], text[1]);
        free(text[0]);
        free(text[1]);
        maq_serve_free(alone);
        end(&rig);
    }
    assert_int_equal(n[0], n[1]);
    assert_memory_equal(bytes[0], bytes[1], n[0]);
    free(bytes[0]);
    free(bytes[1]);
}

/* ---- long runs ---- */

static void expect_note(const struct rig *rig, const char *text)
{
    assert_int_equal(maq_diag_count(rig->diag), 1);
    const struct maq_diag_item *item = maq_diag_at(rig->diag, 0);
    assert_int_equal(item->code, MAQ_CODE_TRACE_LEFT_OUT);
    assert_int_equal(item->severity, MAQ_NOTE);
    if (!strstr(item->msg.ptr, text))
        fail_msg("%s: no '%s'", item->msg.ptr, text);
}

static void test_long_runs(void **state)
{
    (void)state;
    char path[64];
    struct rig rig;
    size_t n;
    scratch_name(path, ".pftrace");
    run(&rig, "", &(struct maq_serve_options){0},
        &(struct maq_request_spec){.rate = 1000, .n = 1200, .prompt = 16, .output = 2}, path);
    expect_note(&rig, "and the first 1000 of 1200 requests");
    end(&rig);

    run(&rig, "", &(struct maq_serve_options){0},
        &(struct maq_request_spec){.concurrency = 1, .n = 110, .prompt = 16, .output = 2000}, path);
    char *bytes = slurp(path, &n);
    expect_note(&rig, "the first 200000 of 2");
    assert_true(n < (size_t)40 << 20);
    assert_non_null(memmem(bytes, n, "the first 200000 of 2", 21));
    free(bytes);
    end(&rig);
}

/* ---- no timeline ---- */

static void test_none(void **state)
{
    (void)state;
    const struct maq_request_spec spec = {.rate = 1, .n = 2, .prompt = 16, .output = 2};
    struct maq_loaded_job *large = load("llama-3.1-405b", ""), *small = load("llama-3.1-8b", "");
    struct maq_request_set *set = NULL;
    struct maq_serve_result *r = NULL;
    char path[64];
    scratch_name(path, ".json");
    assert_int_equal(maq_requests_generate(&set, &spec, NULL), MAQ_OK);
    const struct maq_requests *q = maq_requests_get(set);
    const struct maq_serve_options o = {0};
    assert_int_equal(maq_trace_serve(path, &r, maq_job_get(large), &o, q, NULL), MAQ_OK);
    assert_false(r->fits);
    maq_serve_free(r);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_equal(maq_trace_serve("/nowhere/at/all.json", &r, maq_job_get(small), &o, q, NULL), MAQ_IO);
    maq_requests_free(set);
    maq_job_free(large);
    maq_job_free(small);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_back),
        cmocka_unit_test(test_same_bytes),
        cmocka_unit_test(test_long_runs),
        cmocka_unit_test(test_none),
    };
    return cmocka_run_group_tests_name("serve_trace", tests, NULL, NULL);
}
