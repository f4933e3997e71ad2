/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_search_answer.c - what a search says beside its plans: what would help, the plan as a document, one axis varied, how far it is, and
 * what it has when it is stopped.
 *
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

/* ---- what would help ---- */

/* What would help a job of which nothing fits. */
static struct searched search_remedies(struct maq_search_remedies *r, const char *text,
                                       const struct maq_search_opts *opts)
{
    struct searched s = search(text, opts);
    assert_int_equal(s.result->n_plans, 0);
    assert_int_equal(maq_search_find_remedies(r, s.job, opts, NULL), MAQ_OK);
    assert_true(r->memory_bytes > 0);
    return s;
}

/* Of what can be left on the host, inputs of experts are more than layers and the optimizer alone. */
static void test_remedy_of_the_host(void **unused)
{
    (void)unused;
    const char text[] =
        "{model: qwen3-30b-a3b, cluster: {device: {base: a100-40gb, host_devices: 1}}, workload: {seq: 8192, gbs: 64},"
        " plan: {recompute: none, mbs: 1, overlap_ep: false}, search: {vp: 1, order: tp-cp-ep-dp-pp, layout: E0L0}}";
    const char *lists[] = {"cpu_offloading_num_layers=0,4,16,64", "optimizer_offload_fraction=0,1"};
    struct maq_search_opts opts = {.threads = 1}, coarse = {.threads = 1, .lists = lists, .n_lists = MAQ_COUNT(lists)};
    struct maq_search_remedies r;
    struct searched s = search_remedies(&r, text, &opts), c = search(text, &coarse);
    assert_true(r.offload && r.with_offload.offload_modules != 0);
    assert_true(c.result->n_plans > 0 && r.with_offload_s < 0.98 * c.result->plans[0].step_s);
    maq_search_remedies_free(&r);
    done(&s);
    done(&c);
}

/* Memory that is asked for is enough, and a gibibyte less is not; the same for nodes. */
static void test_remedies(void **unused)
{
    (void)unused;
    const char text[] = "{model: llama-3.1-8b, cluster: 'v100-16gb:4', workload: {seq: 4096, gbs: 8},"
                        " search: {cp: 1, vp: 1, mbs: 1, order: tp-cp-ep-dp-pp, layout: E0L0}}";
    struct maq_search_opts opts = {.threads = 1};
    struct maq_search_remedies r;
    struct searched s = search_remedies(&r, text, &opts);
    assert_true(r.nodes >= 2);
    const double gib = 1024.0 * 1024 * 1024;
    for (int less = 0; less < 2; less++) {
        struct maq_search_opts with = {.threads = 1, .memory_bytes = r.memory_bytes - less * gib};
        struct searched t = search(text, &with);
        assert_int_equal(t.result->n_plans > 0, !less);
        assert_true(less || t.result->plans[0].step_s == r.with_memory_s);
        done(&t);
        with = (struct maq_search_opts){.threads = 1, .more_nodes = r.nodes / (uint32_t)(1 + less)};
        t = search(text, &with);
        assert_int_equal(t.result->n_plans > 0, !less);
        done(&t);
    }
    maq_search_remedies_free(&r);
    done(&s);
}

/* A job that keeps its number of replicas goes together with no other number of nodes: more memory helps it, nodes do not. */
static void test_remedies_of_kept_replicas(void **unused)
{
    (void)unused;
    const char text[] = "{model: llama-3.1-8b, cluster: 'v100-16gb:4', workload: {seq: 4096, gbs: 8},"
                        " plan: {tp: 1, pp: 1, dp: 4, order: tp-cp-ep-dp-pp}, search: {cp: 1, vp: 1, mbs: 1}}";
    struct maq_search_opts opts = {.threads = 1};
    struct maq_search_remedies r;
    struct searched s = search_remedies(&r, text, &opts);
    assert_int_equal(r.nodes, 0);
    maq_search_remedies_free(&r);
    done(&s);
}

/* What a setting takes is what predicting the winner's document with it says. */
static void check_settings(const struct searched *s, const char *document, const struct maq_search_opts *opts)
{
    struct maq_search_alternatives a;
    assert_int_equal(maq_search_settings(&a, s->job, s->result, opts, NULL), MAQ_OK);
    for (uint32_t k = 0; k < a.n; k++) {
        char path[128];
        struct maq_loaded_job *box;
        struct maq_train_result *r;
        snprintf(path, sizeof path, "plan.%s", a.at[k].key);
        const struct maq_override with = {"--set", path, a.at[k].to};
        enum maq_status status = maq_job_parse(&box, "set", maq_str_of(document), &with, 1, NULL);
        assert_int_equal(status == MAQ_OK, a.at[k].possible);
        if (status != MAQ_OK)
            continue;
        assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
        if (fabs(r->step_s / a.at[k].step_s - 1) > 1e-12)
            fail_msg("%s %s: %.9f s, predicted %.9f s", a.at[k].key, a.at[k].to, a.at[k].step_s, r->step_s);
        maq_train_result_free(r);
        maq_job_free(box);
    }
    maq_search_alternatives_free(&a);
}

/* The winner's document reads back as the winner, and its neighbours are what predicting them says. */
static void test_document(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < MAQ_COUNT(jobs); i += EVERY) {
        struct maq_search_opts opts = {.full = jobs[i].full};
        struct searched s = search(jobs[i].text, &opts);
        char *document = maq_job_write(s.job, &s.result->plans[0].plan);
        struct maq_loaded_job *box;
        struct maq_train_result *r;
        struct maq_diag *diag = maq_diag_new();
        if (maq_job_parse(&box, "written", maq_str_of(document), NULL, 0, diag) != MAQ_OK)
            fail_msg("%s\n%s", document, maq_diag_format(diag, 0, false));
        assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
        if (r->step_s != s.result->plans[0].step_s)
            fail_msg("%s: written %.9f s, found %.9f s\n%s", jobs[i].name, r->step_s, s.result->plans[0].step_s,
                     document);
        char *arguments = maq_job_megatron_arguments(maq_job_get(box));
        assert_non_null(strstr(arguments, "--tensor-model-parallel-size"));
        struct maq_search_alternatives a;
        assert_int_equal(maq_search_alternatives(&a, s.job, s.result, &opts, NULL), MAQ_OK);
        for (uint32_t k = 0; k < a.n; k++) {
            if (a.at[k].fits && a.at[k].step_s < s.result->plans[0].step_s)
                fail_msg("%s: %s %s takes %.9f s", jobs[i].name, a.at[k].key, a.at[k].to, a.at[k].step_s);
            if (strcmp(a.at[k].name, "vp") == 0)
                assert_true(s.result->plans[0].plan.pp > 1);
            if (strcmp(a.at[k].name, "overlap_ep") == 0)
                assert_int_equal(strcmp(a.at[k].from, "true") == 0, s.result->plans[0].plan.overlap_ep == MAQ_ON);
        }
        maq_search_alternatives_free(&a);
        check_settings(&s, document, &opts);
        free(arguments);
        free(document);
        maq_train_result_free(r);
        maq_job_free(box);
        maq_diag_free(diag);
        done(&s);
    }
}

static void stop_once_bounded(void *stop, const struct maq_search_progress *at)
{
    if (at->bound_s > 0)
        *(volatile sig_atomic_t *)stop = 1;
}

/* A search that is stopped says what it can be off by, once it knows; before, it ends at once and proves nothing. */
static void test_stop(void **unused)
{
    (void)unused;
    volatile sig_atomic_t stop = 0;
    struct maq_search_opts opts = {.stop = &stop, .progress = stop_once_bounded, .context = (void *)(uintptr_t)&stop};
    struct searched s = search(jobs[4].text, &opts);
    assert_false(s.result->complete);
    struct searched none = search(jobs[4].text, &opts);
    assert_false(none.result->complete);
    assert_true(none.result->n_plans == 0 && none.result->bound_s == 0 && none.result->counts.scored == 0);
    opts.stop = NULL;
    struct searched whole = search(jobs[4].text, &opts);
    assert_true(s.result->counts.scored < whole.result->counts.scored);
    assert_true(s.result->bound_s > 0 && s.result->bound_s <= whole.result->plans[0].step_s);
    done(&whole);
    done(&none);
    done(&s);
}

/* With --full a stop finds the small part's best at hand, or nothing, and proves nothing of a whole that was not bounded. */
static void test_stop_full(void **unused)
{
    (void)unused;
    static const volatile sig_atomic_t now = 1;
    struct maq_search_opts opts = {.stop = &now, .full = true};
    struct searched s = search(jobs[0].text, &opts);
    assert_false(s.result->complete);
    assert_true(s.result->bound_s == 0);
    done(&s);
}

static void test_vary(void **unused)
{
    (void)unused;
    const char text[] =
        "{model: gpt2, cluster: {device: {base: a100-80gb, price: 2 USD/h}, devices_per_node: 8, nodes: 1},"
        " workload: {seq: 1024, gbs: 64}, search: {cp: 1, vary: {gpus: ['8..32:x2', 64]}}}";
    struct maq_search_variants v;
    struct maq_loaded_job *open;
    struct maq_diag *diag = maq_diag_new();
    struct maq_search_opts opts = {0};
    if (maq_job_parse_open(&open, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK ||
        maq_search_vary(&v, open, &opts, NULL, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    assert_int_equal(v.n, 4);
    for (uint32_t i = 0; i < v.n; i++) {
        assert_int_equal(v.at[i].gpus, 8 << i);
        assert_int_equal(maq_job_get(v.at[i].job)->cluster.devices, v.at[i].gpus);
        assert_true(fabs(v.at[i].usd - 2 * v.at[i].gpu_hours) <= 1e-9 * v.at[i].usd);
        assert_true(fabs(v.at[i].days * 24 * v.at[i].gpus - v.at[i].gpu_hours) <= 1e-9 * v.at[i].gpu_hours);
        assert_true(i == 0 || v.at[i].train->step_s <= v.at[i - 1].train->step_s); /* more devices are not slower */
    }
    maq_search_variants_free(&v);
    maq_job_free(open);
    maq_diag_free(diag);
}

/* The document says global_batch_size, what is varied gbs. */
static void test_vary_workload(void **unused)
{
    (void)unused;
    const char text[] = "{model: gpt2, cluster: 'a100-80gb:8', plan: {tp: 1, pp: 1}, workload: {seq_length: 512, "
                        "global_batch_size: 8}, search: {cp: 1, vary: {gbs: [16, 32]}}}";
    const struct maq_override set[] = {{"--seq", "workload.seq", "1024"}};
    struct maq_search_variants v;
    struct maq_loaded_job *open;
    struct maq_diag *diag = maq_diag_new();
    struct maq_search_opts opts = {0};
    if (maq_job_parse_open(&open, "test", maq_str_of(text), set, 1, diag) != MAQ_OK ||
        maq_search_vary(&v, open, &opts, NULL, diag) != MAQ_OK)
        fail_msg("%s", maq_diag_format(diag, 0, false));
    assert_int_equal(v.n, 2);
    for (uint32_t i = 0; i < v.n; i++) {
        assert_int_equal(maq_job_get(v.at[i].job)->workload.gbs, 16 << i);
        assert_int_equal(maq_job_get(v.at[i].job)->workload.seq, 1024);
    }
    maq_search_variants_free(&v);
    maq_job_free(open);
    maq_diag_free(diag);
}

struct heard {
    uint32_t calls[MAQ_SEARCH_EXPLORES + 1], wrong;
};

static void hear(void *context, const struct maq_search_progress *at)
{
    struct heard *h = context;
    h->calls[at->phase]++;
    h->wrong += at->branches_done > at->counts.branches || at->first;
    h->wrong += at->phase != MAQ_SEARCH_EXPLORES && (at->best_s > 0 || at->bound_s > 0);
}

/* Every part of a search gives a sign of life: listing its branches, bounding them, going through them. */
static void test_progress(void **unused)
{
    (void)unused;
    struct heard h = {{0}, 0};
    struct maq_search_opts opts = {.progress = hear, .context = &h};
    struct searched s = search(jobs[0].text, &opts);
    for (int phase = 0; phase <= MAQ_SEARCH_EXPLORES; phase++)
        assert_true(h.calls[phase] > 0);
    assert_int_equal(h.calls[MAQ_SEARCH_LISTS], s.result->counts.branches);
    assert_int_equal(h.wrong, 0);
    done(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_remedy_of_the_host),
        cmocka_unit_test(test_remedies),
        cmocka_unit_test(test_remedies_of_kept_replicas),
        cmocka_unit_test(test_document),
        cmocka_unit_test(test_stop),
        cmocka_unit_test(test_stop_full),
        cmocka_unit_test(test_vary),
        cmocka_unit_test(test_vary_workload),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
