/* SPDX-License-Identifier: Apache-2.0 */
/* What is advised for a plan that does not fit: who follows it gets the plan that it describes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/str.h"
#include "base/units.h"
#include "maquette/planner.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define MOST_CHANGES 16

struct prediction {
    struct maq_loaded_job *job;
    struct maq_train_result *result;
};

static struct prediction predict(const char *text, const struct maq_override *changes, size_t n)
{
    struct prediction p;
    struct maq_diag *diag = maq_diag_new();
    if (maq_job_parse(&p.job, "test", maq_str_of(text), changes, n, diag) != MAQ_OK)
        fail_msg("%s: %s", text, maq_diag_format(diag, 4, false));
    assert_int_equal(maq_train_predict(&p.result, maq_job_get(p.job), diag), MAQ_OK);
    maq_diag_free(diag);
    return p;
}

static void drop(struct prediction *p)
{
    maq_train_result_free(p->result);
    maq_job_free(p->job);
}

/* The job with "--tp 8 --zero optim, without data_parallel_size" laid over it. */
static struct prediction follow(const char *text, char *words)
{
    struct maq_override changes[MOST_CHANGES];
    char paths[MOST_CHANGES][80], *without = strstr(words, ", without "), *rest;
    size_t n = 0;
    if (without)
        *without = '\0';
    for (char *key = strtok_r(words, " ", &rest); key; key = strtok_r(NULL, " ", &rest)) {
        assert_true(n < MOST_CHANGES && strncmp(key, "--", 2) == 0);
        snprintf(paths[n], sizeof paths[n], "plan.%s", key + 2);
        for (char *c = paths[n]; *c; c++)
            *c = *c == '-' ? '_' : *c;
        changes[n] = (struct maq_override){"--set", paths[n], strtok_r(NULL, " ", &rest)};
        n++;
    }
    for (char *key = without ? strtok_r(without + 10, ", ", &rest) : NULL; key; key = strtok_r(NULL, ", ", &rest)) {
        assert_true(n < MOST_CHANGES);
        snprintf(paths[n], sizeof paths[n], "plan.%s", key);
        changes[n] = (struct maq_override){"--set", paths[n], "null"};
        n++;
    }
    return predict(text, changes, n);
}

/* Jobs that do not fit, and whether a usual plan of them does. */
static const struct {
    const char *text;
    bool helps;
} jobs[] = {
    {"model: llama-3.1-8b, cluster: 'h100-sxm:8', workload: {gbs: 64}", true},
    {"model: llama-3.1-8b, cluster: 'h100-sxm:8', plan: {recompute: selective, recompute_modules: [core_attn], "
     "sharding: "
     "optim_grads_params, dp: 8}, workload: {seq: 65536, gbs: 8}",
     true},
    {"model: llama-3.1-8b, cluster: 'h100-sxm:1'", false},
    {"model: llama-3.1-70b, cluster: 'h100-sxm:8 x 2', plan: {tp: 4}, workload: {gbs: 64}", true},
    {"model: llama-3.1-70b, cluster: 'h100-sxm:8', plan: {tp: 8, sharding: no_shard}", false},
    {"model: llama-2-7b, cluster: 'a100-40gb:8', plan: {mbs: 8}, workload: {seq: 4096, gbs: 64}", true},
    {"model: llama-2-7b, cluster: 'rtx-4090:8', plan: {recompute: full, recompute_method: block, "
     "recompute_num_layers: 2, pp: 2, vp: 2}, workload: {seq: 4096, gbs: 64}",
     true},
    {"model: llama-3.1-8b, cluster: 'h100-sxm:8', workload: {seq: 10000000}", false},
    {"model: deepseek-v2-lite, cluster: 'a100-40gb:8', plan: {ep: 8}, workload: {seq: 4096, gbs: 64}", true},
    {"model: mixtral-8x7b, cluster: 'h100-sxm:8 x 4', plan: {ep: 8}, workload: {seq: 4096, gbs: 64}", true},
    {"model: qwen3-30b-a3b, cluster: 'h100-sxm:8', workload: {seq: 4096, gbs: 64}", true},
    {"model: deepseek-v3, cluster: 'h800-sxm:8 x 32', plan: {tp: 4, pp: 8, layout: '8,8,8,8,8,8,8,5', ep: 1, zero: 3}, "
     "workload: {seq: 4096, gbs: 1024}",
     true},
    {"model: opt-6.7b, cluster: 'v100-16gb:8', plan: {mbs: 4, attention_backend: unfused}, workload: {gbs: 64}", true},
};

/* What stands between "try" and the bracket makes a plan that fits, of the step and the memory that stand in it. */
static void test_followed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(jobs); i++) {
        char text[512], advice[MAQ_ADVICE_BYTES], said[96], step[32], size[32], *try, *end;
        snprintf(text, sizeof text, "{%s}", jobs[i].text);
        struct prediction before = predict(text, NULL, 0);
        assert_false(before.result->fits);
        maq_search_advice(advice, before.job, before.result);
        print_message("%s\n", advice);
        try = strstr(advice, "; try ");
        assert_int_equal(try != NULL, jobs[i].helps);
        assert_non_null(strstr(advice, "maquette plan"));
        if (try) {
            assert_non_null(end = strstr(try, " ("));
            *end = '\0';
            struct prediction after = follow(text, try + 6);
            const struct maq_train_result *r = after.result;
            double needs = 0;
            for (uint32_t s = 0; s < r->n_stages; s++)
                needs = needs > r->stages[s].needed_bytes ? needs : r->stages[s].needed_bytes;
            assert_true(r->fits);
            snprintf(said, sizeof said, "(%s a step, %s, fits in %.0f of 100 runs)", maq_format_time(step, r->step_s),
                     maq_format_bytes(size, needs), 100 * r->fit_probability);
            assert_memory_equal(end + 1, said, strlen(said));
            drop(&after);
        }
        drop(&before);
    }
}

/*
 * Advice comes in milliseconds because few plans are looked at, however large the batch and so the schedules of each: 15,360 sequences
 * are 1,920 microbatches in 32 virtual stages.
 */
static void test_few_plans(void **state)
{
    static const char *const batches[] = {"1024", "15360"};
    (void)state;
    for (size_t i = 0; i < COUNT(batches); i++) {
        char text[512];
        struct maq_loaded_job *open;
        struct maq_search_result *r;
        const struct maq_search_opts opts = {.top = 1,
                                             .threads = 1,
                                             .quick = true,
                                             .keep_switches = true,
                                             .min_fit_probability = MAQ_SEARCH_FIT_PROBABILITY};
        snprintf(text, sizeof text,
                 "{model: deepseek-v3, cluster: 'h800-sxm:8 x 32, rail 400G', workload: {seq: 4096, gbs: %s}}",
                 batches[i]);
        assert_int_equal(maq_job_parse_open(&open, "test", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
        assert_int_equal(maq_search(&r, open, &opts, NULL), MAQ_OK);
        print_message("# gbs %s: %llu plans timed, %llu do not fit\n", batches[i], (unsigned long long)r->counts.scored,
                      (unsigned long long)r->counts.unfit);
        assert_true(r->n_plans == 1 && r->counts.scored + r->counts.unfit <= 100);
        maq_search_result_free(r);
        maq_job_free(open);
    }
}

/* A plan that fits needs none. */
static void test_none(void **state)
{
    char advice[MAQ_ADVICE_BYTES];
    (void)state;
    struct prediction p = predict("{model: gpt2, cluster: 'h100-sxm:8'}", NULL, 0);
    assert_true(p.result->fits);
    assert_string_equal(maq_search_advice(advice, p.job, p.result), "");
    drop(&p);
}

/* A complete job that is opened again is the open job of the same text: the searches find the same. */
static void test_reopened(void **state)
{
    static const char text[] =
        "{model: llama-3.1-8b, cluster: 'h100-sxm:8', plan: {tp: 2, recompute: selective, recompute_modules: "
        "[core_attn]}, workload: {gbs: 64}}";
    struct maq_loaded_job *open, *again;
    struct maq_search_result *a, *b;
    const struct maq_search_opts opts = {.top = 3};
    (void)state;
    struct prediction p = predict(text, NULL, 0);
    assert_int_equal(maq_job_parse_open(&open, "test", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
    assert_int_equal(maq_job_reopen(&again, p.job, NULL), MAQ_OK);
    assert_int_equal(maq_search(&a, open, &opts, NULL), MAQ_OK);
    assert_int_equal(maq_search(&b, again, &opts, NULL), MAQ_OK);
    assert_true(a->n_plans == b->n_plans && a->counts.considered == b->counts.considered && a->n_plans > 1);
    for (uint32_t i = 0; i < a->n_plans; i++)
        assert_true(a->plans[i].step_s == b->plans[i].step_s && a->plans[i].needed_bytes == b->plans[i].needed_bytes);
    maq_search_result_free(a);
    maq_search_result_free(b);
    maq_job_free(again);
    maq_job_free(open);
    drop(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_followed),
        cmocka_unit_test(test_few_plans),
        cmocka_unit_test(test_none),
        cmocka_unit_test(test_reopened),
    };
    return cmocka_run_group_tests_name("advice", tests, NULL, NULL);
}
