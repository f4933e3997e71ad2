/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_search.c - the homogeneous search: bounds leave nothing out. maq-test: threads
 *
 * The search against the search that scores every plan of its space; test_search_brute_force.c has a third way to the same answer.
 * maq-test: long
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "search_jobs.h"
#include "searched.h"

static uint64_t accounted(const struct maq_search_counts *c)
{
    return c->bounded + c->impossible + c->unfit + c->scored;
}

/* A job with every plan scored, once for all tests. */
static const struct searched *exhaustive(size_t i)
{
    static struct searched all[MAQ_COUNT(jobs)];
    const struct maq_search_opts opts = {
        .top = 8, .threads = 1, .full = jobs[i].full, .pareto_memory = true, .exhaustive = true};
    if (!all[i].result)
        all[i] = search(jobs[i].text, &opts);
    return &all[i];
}

static void test_bounds_leave_nothing_out(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i += EVERY) {
        struct maq_search_opts opts = {.top = 8, .threads = 1, .full = jobs[i].full};
        struct searched a = search(jobs[i].text, &opts), b = *exhaustive(i);
        expect_same(a.result, b.result, jobs[i].name);
        if (accounted(&a.result->counts) != a.result->counts.considered)
            fail_msg("%s: %llu plans of %llu are accounted for", jobs[i].name,
                     (unsigned long long)accounted(&a.result->counts), (unsigned long long)a.result->counts.considered);
        print_message("# %s: %llu plans, %llu scored; exhaustively %llu\n", jobs[i].name,
                      (unsigned long long)a.result->counts.considered, (unsigned long long)a.result->counts.scored,
                      (unsigned long long)b.result->counts.scored);
        assert_true(a.result->n_plans > 0 && a.result->complete);
        assert_true(a.result->counts.scored <= b.result->counts.scored);
        assert_true(a.result->bound_s == a.result->plans[0].step_s);
        done(&a);
    }
}

/*
 * A best plan of 24 GB that is full as predicted. Asked to fit in nine of ten runs, the best plan is another one, and the first is what the
 * memory buys that is left free.
 */
static void test_headroom(void **unused)
{
    struct maq_search_opts opts = MAQ_SEARCH_OPTS_INIT;
    struct maq_search_headroom h;
    struct maq_diag *diag = maq_diag_new();
    struct searched full = search(jobs[1].text, &opts);
    const struct maq_search_plan *most = &full.result->plans[0];
    (void)unused;
    double device = maq_job_get(full.job)->cluster.groups[0].device.mem_bytes;
    assert_int_equal(maq_search_find_headroom(&h, full.job, full.result, &opts, diag), MAQ_OK);
    assert_true(h.min_fit_probability == 0 && h.bytes == 0 && !h.searched);
    assert_true(h.fit_probability == maq_train_fit_probability(most->needed_bytes, device) && h.fit_probability < 0.9);

    opts.min_fit_probability = 0.9;
    struct searched roomy = search(jobs[1].text, &opts);
    const struct maq_search_plan *own = &roomy.result->plans[0];
    assert_true(own->step_s > most->step_s && maq_train_fit_probability(own->needed_bytes, device) >= 0.9 - 1e-12);
    assert_int_equal(maq_search_find_headroom(&h, roomy.job, roomy.result, &opts, diag), MAQ_OK);
    assert_true(h.searched && h.without.step_s == most->step_s && h.without.needed_bytes == most->needed_bytes);
    assert_true(h.fit_probability >= 0.9 - 1e-12 && h.without_probability < 0.9);
    assert_true(fabs((device - h.bytes) * maq_train_memory_quantile(0.9) / device - 1) < 1e-12);

    static const volatile sig_atomic_t now = 1; /* a search that is stopped says nothing */
    struct searched again = search(jobs[1].text, &opts);
    opts.stop = &now;
    assert_int_equal(maq_search_find_headroom(&h, again.job, again.result, &opts, diag), MAQ_OK);
    assert_true(h.fit_probability >= 0.9 - 1e-12 && !h.searched && h.without.step_s == 0);
    done(&again);
    done(&roomy);
    done(&full);
    maq_diag_free(diag);
}

/* The quantile and the probability undo each other, and no plan gains by being asked for more. */
static void test_fit_probability(void **unused)
{
    (void)unused;
    for (int i = 0; i <= 100; i++) {
        double p = i / 100.0, q = maq_train_memory_quantile(p);
        assert_true(fabs(maq_train_fit_probability(1e9, q * 1e9) - p) < 1e-9);
        assert_true(i == 0 || q > maq_train_memory_quantile((i - 1) / 100.0));
    }
    assert_true(maq_train_fit_probability(0, 1) == 1 && maq_train_fit_probability(1e9, 0) == 0);
}

/* The front is that of all plans. */
static void test_pareto(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i += EVERY) {
        struct maq_search_opts opts = {.top = 8, .threads = 1, .full = jobs[i].full, .pareto_memory = true};
        struct searched a = search(jobs[i].text, &opts), b = *exhaustive(i);
        expect_same(a.result, b.result, jobs[i].name);
        if (a.result->n_pareto != b.result->n_pareto)
            fail_msg("%s: %u plans on the front, exhaustively %u", jobs[i].name, a.result->n_pareto,
                     b.result->n_pareto);
        assert_true(a.result->n_pareto > (i < 2 ? 2 : 0));
        for (uint32_t k = 0; k < a.result->n_pareto; k++) {
            const struct maq_search_plan *x = &a.result->pareto[k], *y = &b.result->pareto[k];
            assert_true(x->step_s == y->step_s && x->needed_bytes == y->needed_bytes);
            assert_true(k == 0 || (x->step_s > x[-1].step_s && x->needed_bytes < x[-1].needed_bytes));
        }
        assert_true(a.result->pareto[0].step_s == a.result->plans[0].step_s);
        done(&a);
    }
}

static void test_threads(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i += EVERY) {
        struct maq_search_opts one = {.threads = 1, .full = jobs[i].full}, four = {.threads = 4, .full = jobs[i].full};
        struct searched a = search(jobs[i].text, &one), b = search(jobs[i].text, &four);
        expect_same(a.result, b.result, jobs[i].name);
        assert_memory_equal(&a.result->counts, &b.result->counts, sizeof a.result->counts);
        for (uint32_t k = 0; k < a.result->n_plans; k++)
            assert_true(a.result->plans[k].needed_bytes == b.result->plans[k].needed_bytes);
        done(&a);
        done(&b);
    }
}

/* Shards of one rank are no shards: a plan without replicas is searched once, and is the one without sharding. */
static void test_nobody_to_share_with(void **unused)
{
    (void)unused;
    struct maq_search_opts opts = {.threads = 1, .top = 4};
    struct searched s[2];
    for (int k = 0; k < 2; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{model: llama-3.1-8b, cluster: 'rtx-4090:8', workload: {seq: 4096, gbs: 16}, search: {tp: [2, 4], "
                 "pp: [2, 4], "
                 "cp: 1, mbs: 1, vp: 1, recompute: full, hsdp_replicas: 1, zero: [%s]}}",
                 k == 0 ? "0" : "0, 1, 2, 3");
        s[k] = search(text, &opts);
        assert_true(s[k].result->n_plans > 0);
        for (uint32_t i = 0; i < s[k].result->n_plans; i++) {
            const struct maq_plan *p = &s[k].result->plans[i].plan;
            if (p->tp * p->pp == 8)
                assert_int_equal(p->sharding, MAQ_SHARDING_NONE);
        }
    }
    double plain = HUGE_VAL, shared = HUGE_VAL;
    for (uint32_t i = 0; i < s[0].result->n_plans; i++)
        if (s[0].result->plans[i].plan.tp == 2 && s[0].result->plans[i].plan.pp == 4)
            plain = s[0].result->plans[i].step_s;
    for (uint32_t i = 0; i < s[1].result->n_plans; i++)
        if (s[1].result->plans[i].plan.tp == 2 && s[1].result->plans[i].plan.pp == 4)
            shared = s[1].result->plans[i].step_s;
    assert_true(plain < HUGE_VAL && plain == shared);
    done(&s[0]);
    done(&s[1]);
    struct searched alone[2];
    for (int k = 0; k < 2; k++) {
        char text[512];
        snprintf(text, sizeof text,
                 "{model: llama-3.1-8b, cluster: 'rtx-4090:8', workload: {seq: 4096, gbs: 16}, search: {tp: 2, pp: 4, "
                 "cp: 1, mbs: "
                 "1, vp: 1, zero: [%s]}}",
                 k == 0 ? "0" : "0, 1, 2, 3");
        alone[k] = search(text, &opts);
    }
    assert_int_equal(alone[0].result->counts.considered, alone[1].result->counts.considered);
    done(&alone[0]);
    done(&alone[1]);
}

/* A plan that is set free leaves nothing behind. */
static void test_set_free(void **unused)
{
    (void)unused;
    const char text[] =
        "{model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'h100-sxm:4', workload: {seq: 4096, gbs: 16},"
        " plan: {tp: 2, pp: 2, dp: 1, decoder_first_pipeline_num_layers: 2, recompute: full, zero: no_shard}}";
    struct maq_search_opts open = {0}, set_free = {.free = true};
    struct searched a = search(jobs[0].text, &open), b = search(text, &set_free), c = search(text, &open);
    expect_same(a.result, b.result, "set free");
    assert_int_equal(c.result->n_plans, 1); /* degrees are what they are */
    assert_true(c.result->plans[0].step_s > a.result->plans[0].step_s);
    done(&a);
    done(&b);
    done(&c);
}

/* More virtual stages than layers: embedding and output have their own. */
static void test_ends_of_their_own(void **unused)
{
    (void)unused;
    const char text[] =
        "{model: {base: llama-3.1-8b, num_hidden_layers: 6}, cluster: 'h100-sxm:8', workload: {seq: 4096, "
        "gbs: 64}, plan: {tp: 1, cp: 1, pp: 4, vp: 2}}";
    struct maq_search_opts opts = {0};
    struct searched s = search(text, &opts);
    assert_true(s.result->n_plans == 1 && s.result->plans[0].plan.layout.len > 0);
    assert_true(s.result->plans[0].plan.layout.ptr[0] == '0');
    done(&s);
}

/* A value that is listed twice is looked at once. */
static void test_listed_twice(void **unused)
{
    (void)unused;
    const char text[] = "{model: gpt2, cluster: 'h100-sxm:8', workload: {seq: 1024, gbs: 64}}";
    static const char *const once[] = {"tp=1,2", "mbs=4"}, *const twice[] = {"tp=1,2,1,2", "mbs=4,4"};
    struct maq_search_opts opts = {.lists = once, .n_lists = 2}, again = {.lists = twice, .n_lists = 2};
    struct searched s = search(text, &opts), t = search(text, &again);
    assert_true(s.result->counts.considered == t.result->counts.considered);
    for (uint32_t i = 0; i < s.result->n_axes; i++)
        assert_string_equal(s.result->axes[i].values, t.result->axes[i].values);
    done(&s);
    done(&t);
}

/* What does not go with inputs of modules on the host is no plan; where nothing else is asked for, the reason is told. */
static void test_inputs_on_the_host(void **unused)
{
    (void)unused;
#define ON_HOST(model, modules, more)                                                                                  \
    "{model: " model ", cluster: 'h100-sxm:8', workload: {seq: 1024, gbs: 64}, plan: {"                                \
    "fine_grained_activation_offloading: true, offload_modules: [" modules "]" more "}, "                              \
    "search: {cp: 1, pp: 1, vp: 1, mbs: 1, hsdp_replicas: 1}}"
    static const struct {
        const char *job, *list, *says;
    } cases[] = {
        {ON_HOST("gpt2", "core_attn", ""), "recompute=full", "layers that are recomputed keep nothing"},
        {ON_HOST("gpt2", "core_attn", ""), "recompute=block", "layers that are recomputed keep nothing"},
        {ON_HOST("gpt2", "core_attn", ", recompute: full"), "tp=1", "layers that are recomputed keep nothing"},
        {ON_HOST("gpt2", "core_attn", ""), "offload_layers=2", "cpu_offloading_num_layers offloads whole layers"},
        {ON_HOST("gpt2", "core_attn", ", offload_layers: 2"), "tp=1", "offloads whole layers"},
        {ON_HOST("gpt2", "attn_proj", ""), "tp=1", "is core attention's output"},
        {ON_HOST("gpt2", "core_attn", ""), "offload_modules=attn_proj", "is core attention's output"},
        {ON_HOST("{base: mixtral-8x7b, num_hidden_layers: 4}", "moe_act", ""), "recompute=moe", "with moe recomputed"},
        {ON_HOST("gpt2", "core_attn", ""), "offload_modules=none,attn", "'attn' is no value of offload_modules"},
        {ON_HOST("{base: mixtral-8x7b, num_hidden_layers: 4}", "core_attn", ""), "recompute=moe", NULL},
        {ON_HOST("gpt2", "core_attn", ""), "recompute=none,core_attn,full,block", NULL},
        {ON_HOST("gpt2", "core_attn", ""), "offload_layers=0,2", NULL},
        {ON_HOST("gpt2", "core_attn", ""), "offload_modules=none,core_attn+attn_proj,attn_proj", NULL},
    };
#undef ON_HOST
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_search_opts opts = {.lists = &cases[i].list, .n_lists = 1};
        struct maq_diag *diag = maq_diag_new();
        struct maq_loaded_job *job;
        struct maq_search_result *r = NULL;
        assert_int_equal(maq_job_parse_open(&job, "test", maq_str_of(cases[i].job), NULL, 0, diag), MAQ_OK);
        enum maq_status status = maq_search(&r, job, &opts, diag);
        char *told = maq_diag_format(diag, 0, false);
        if (status != (cases[i].says ? MAQ_BAD_INPUT : MAQ_OK) || (cases[i].says && !strstr(told, cases[i].says)))
            fail_msg("%s with %s: %s", cases[i].job, cases[i].list, told);
        free(told);
        maq_search_result_free(r);
        maq_job_free(job);
        maq_diag_free(diag);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds_leave_nothing_out),
        cmocka_unit_test(test_headroom),
        cmocka_unit_test(test_fit_probability),
        cmocka_unit_test(test_pareto),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_nobody_to_share_with),
        cmocka_unit_test(test_set_free),
        cmocka_unit_test(test_ends_of_their_own),
        cmocka_unit_test(test_listed_twice),
        cmocka_unit_test(test_inputs_on_the_host),
    };
    ONLY_UNDER_TSAN("test_threads");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
