/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_layouts.c - how many layers virtual stages get: sums and ends, the shortest longest stage against dynamic programming, and the
 * search's choice against every way to cut a model.
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

#include "base/str.h"
#include "effort.h"
#include "maquette/planner.h"
#include "planner/space/layer_layouts.h"

#define MOST 512

static struct maq_loaded_job *job_of(const char *text)
{
    struct maq_loaded_job *box;
    struct maq_diag *diag = maq_diag_new();
    if (maq_job_parse(&box, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return box;
}

static int32_t sum_of(const int32_t *layers, uint32_t n)
{
    int32_t sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += layers[i];
    return sum;
}

/* ---- ends ---- */

static void test_ends(void **unused)
{
    (void)unused;
    static const struct {
        uint32_t n;
        int32_t first, last, layers[8];
    } cases[] = {
        {4, 0, 0, {8, 8, 8, 8}},     {4, 1, 1, {7, 9, 9, 7}},
        {4, 0, 3, {9, 9, 9, 5}},     {4, 0, 8, {10, 10, 10, 2}},
        {4, 0, 10, {10, 11, 11, 0}}, {4, 0, 63, {11, 11, 10, 0}}, /* more than its share: none */
        {4, 2, 12, {9, 12, 11, 0}},                               /* the others share, the first with its own */
        {2, 0, 20, {26, 6}},         {1, 1, 5, {32}},
    };
    struct maq_loaded_job *box = job_of("{model: llama-3.1-8b, cluster: 'h100-sxm:8', workload: {gbs: 64, seq: 4096}}");
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int32_t layers[8], value = cases[i].first * MAQ_LAYOUT_END + cases[i].last;
        assert_true(maq_layout_layers(layers, cases[i].n, maq_job_get(box), value, &arena));
        for (uint32_t k = 0; k < cases[i].n; k++)
            if (layers[k] != cases[i].layers[k])
                fail_msg("case %zu: stage %u has %d layers, not %d", i, k, layers[k], cases[i].layers[k]);
    }
    int32_t layers[64];
    for (uint32_t n = 1; n <= 40; n++)
        for (int32_t value = 0; value < 3 * MAQ_LAYOUT_END; value++) {
            bool possible = maq_layout_layers(layers, n, maq_job_get(box), value, &arena);
            assert_true(possible || n > 31); /* no stage in the middle is empty */
            if (!possible)
                continue;
            assert_int_equal(sum_of(layers, n), 32);
            for (uint32_t k = 0; k < n; k++)
                assert_true(layers[k] > 0 || k == 0 || k == n - 1);
        }
    maq_arena_fini(&arena);
    maq_job_free(box);
}

/* ---- by work ---- */

static double works[MOST + 1], output;

static void read_works(const struct maq_job *job)
{
    const struct maq_model *m = &job->model;
    int64_t seq = job->workload.seq;
    double head = maq_layer_flop_per_token(&m->output, seq, true), sum = 0;
    output = head + (m->mtp_layers > 0 ? m->mtp_layers * (maq_layer_flop_per_token(&m->mtp, seq, true) + head) : 0);
    for (uint32_t i = 0; i < m->num_layers; i++)
        sum += works[i] = maq_layer_flop_per_token(&m->kinds[m->kind_of[i]], seq, true);
    double all = 3 * (sum + output + maq_layer_flop_per_token(&m->embedding, seq, true));
    assert_true(fabs(all / maq_model_flop_per_token(m, seq, true) - 1) < 1e-12);
    assert_true(fabs(maq_layout_output(job) - output * m->num_layers / sum) < 1e-9);
}

/* The least work of the longest of n stages: each has a layer, but the last, which has the output. */
static double least_longest(uint32_t layers, uint32_t n)
{
    static double best[MOST + 1], next[MOST + 1];
    for (uint32_t first = 0; first <= layers; first++) {
        best[first] = output;
        for (uint32_t i = first; i < layers; i++)
            best[first] += works[i];
    }
    for (uint32_t stage = 1; stage < n; stage++) {
        for (uint32_t first = 0; first <= layers; first++) {
            double work = 0;
            next[first] = INFINITY;
            for (uint32_t end = first + 1; end <= layers; end++) {
                work += works[end - 1];
                next[first] = fmin(next[first], fmax(work, best[end]));
            }
        }
        memcpy(best, next, sizeof best);
    }
    return best[0];
}

static void test_by_work(void **unused)
{
    (void)unused;
    static const char *const models[] = {"deepseek-v3", "nemotron-h-56b", "llama-4-maverick", "gemma-3-1b", "gpt2"};
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        char text[256];
        int32_t layers[MOST];
        snprintf(text, sizeof text, "{model: %s, cluster: 'h100-sxm:8', workload: {gbs: 64, seq: 4096}}", models[i]);
        struct maq_loaded_job *box = job_of(text);
        const struct maq_job *job = maq_job_get(box);
        uint32_t total = job->model.num_layers;
        read_works(job);
        for (uint32_t n = 1; n <= total + 1; n++) {
            assert_true(maq_layout_layers(layers, n, job, MAQ_LAYOUT_BY_WORK, &arena));
            assert_int_equal(sum_of(layers, n), (int32_t)total);
            double longest = 0;
            for (uint32_t k = 0, at = 0; k < n; k++) {
                double work = k == n - 1 ? output : 0;
                assert_true(layers[k] > 0 || k == n - 1);
                for (int32_t l = 0; l < layers[k]; l++)
                    work += works[at++];
                longest = fmax(longest, work);
            }
            double least = least_longest(total, n);
            if (longest > least * (1 + 1e-5))
                fail_msg("%s in %u stages: the longest is %g of the least", models[i], n, longest / least);
        }
        assert_false(maq_layout_layers(layers, total + 2, job, MAQ_LAYOUT_BY_WORK, &arena));
        maq_job_free(box);
    }
    maq_arena_fini(&arena);
}

/* ---- what a search makes of them ---- */

#define STAGES 4

static const struct {
    const char *name, *text;
} jobs[] = {
    {"a large vocabulary",
     "model: {base: gpt2, num_hidden_layers: 12}, cluster: 'a100-80gb:4', workload: {seq: 1024, gbs: 32}"},
    {"multi-token prediction", "model: {base: deepseek-v3, num_hidden_layers: 12, first_k_dense_replace: 2, "
                               "n_routed_experts: 4, n_group: 1, topk_group: 1, "
                               "num_experts_per_tok: 2}, cluster: 'b300:4', workload: {seq: 4096, gbs: 32}"},
    {"layers of two kinds", "model: {base: nemotron-h-8b, num_hidden_layers: 12, hybrid_override_pattern: "
                            "'M-M-M-*-M-*-'}, cluster: 'h100-sxm:4', workload: "
                            "{seq: 8192, gbs: 32}"},
};

static double step_of(const char *text, const int32_t *layers)
{
    char whole[1024];
    struct maq_train_result *r;
    snprintf(whole, sizeof whole, "{%s, plan: {pp: %d, mbs: 1, zero: optim, layout: '%d,%d,%d,%d'}}", text, STAGES,
             layers[0], layers[1], layers[2], layers[3]);
    struct maq_loaded_job *box = job_of(whole);
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
    double s = r->step_s;
    maq_train_result_free(r);
    maq_job_free(box);
    return s;
}

/* Of every way to cut 12 layers into four stages hardly one is faster than the best of the space. */
static void test_every_cut(void **unused)
{
    (void)unused;
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        double best = INFINITY;
        int32_t cut[STAGES];
        for (cut[0] = 0; cut[0] <= 12; cut[0] += SANITIZED ? 2 : 1)
            for (cut[1] = 1; cut[0] + cut[1] <= 12; cut[1] += SANITIZED ? 2 : 1)
                for (cut[2] = 1; cut[0] + cut[1] + cut[2] <= 12; cut[2]++) {
                    cut[3] = 12 - cut[0] - cut[1] - cut[2];
                    best = fmin(best, step_of(jobs[i].text, cut));
                }
        char text[1024];
        snprintf(text, sizeof text, "{%s, plan: {tp: 1, cp: 1, pp: %d, vp: 1, mbs: 1, zero: optim, recompute: none}}",
                 jobs[i].text, STAGES);
        struct maq_search_opts opts = {.memory_bytes = 1e15};
        struct maq_search_result *found;
        struct maq_loaded_job *box;
        assert_int_equal(maq_job_parse_open(&box, "test", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
        assert_int_equal(maq_search(&found, box, &opts, NULL), MAQ_OK);
        assert_true(found->n_plans > 0);
        print_message("# %s: %.2f %% over the best of every cut\n", jobs[i].name,
                      100 * (found->plans[0].step_s / best - 1));
        assert_true(found->plans[0].step_s < best * 1.02);
        maq_search_result_free(found);
        maq_job_free(box);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ends),
        cmocka_unit_test(test_by_work),
        cmocka_unit_test(test_every_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
