/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_pyramid.c - models whose layers differ in width and number of tokens: what they are made of, what they compute, what a pipeline
 * sends between them, and that the fast path, the graph and the engines still mean the same. Closed forms by hand.
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

#include "maquette/planner.h"
#include "maquette/train.h"

/* Three tokens of 64 features in the first level, 48 of 16 in the last; the level between has no layers. */
#define LEVELS                                                                                                         \
    "{num_layers: 2, tokens: 12, hidden_size: 64, num_attention_heads: 4}, "                                           \
    "{num_layers: 0, tokens: 48, hidden_size: 64, num_attention_heads: 4}, "                                           \
    "{num_layers: 3, tokens: 192, window_tokens: 16, hidden_size: 16, num_attention_heads: 2}"
#define MODEL(levels) "model: {model_type: pyramid, input_features: 10, output_features: 3, levels: [" levels "]}\n"

static struct maq_loaded_job *load(const char *model, const char *cluster, const char *plan, const char *rest)
{
    char text[4096];
    struct maq_loaded_job *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    snprintf(text, sizeof text, "%scluster: '%s'\nplan: {%s}\n%s", model, cluster, plan, rest);
    if (maq_job_parse(&box, "job", (struct maq_str){text, strlen(text)}, NULL, 0, diag) != MAQ_OK)
        fail_msg("%s%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return box;
}

/* Of a layer: two norms, qkv, proj, fc1, fc2 with biases, and a table of position differences for each head. */
static int64_t layer_params(int64_t h, int64_t heads, int64_t side)
{
    return 2 * 2 * h + (3 * h * h + 3 * h) + (h * h + h) + (4 * h * h + 4 * h) + (4 * h * h + h) +
           heads * (2 * side - 1) * (2 * side - 1);
}

static void test_what_it_is(void **state)
{
    (void)state;
    struct maq_loaded_job *box = load(MODEL(LEVELS), "a100-80gb:1", "", "workload: {gbs: 1}\n");
    const struct maq_job *job = maq_job_get(box);
    const struct maq_model *m = &job->model;
    int64_t wide = layer_params(64, 4, 4), narrow = layer_params(16, 2, 4); /* 12 tokens lie in a square of 4 x 4 */
    assert_true(m->pyramid);
    assert_int_equal(m->num_layers, 5);
    assert_int_equal(m->n_kinds, 3); /* the layer that enters the last level makes its tokens */
    assert_int_equal(job->workload.seq, 12);
    assert_int_equal(m->embedding.params, 10 * 12 * 64 + 12 * 64 + 12 * 64);
    assert_int_equal(m->output.params, 16 * 3 + 3);
    assert_int_equal(m->params, m->embedding.params + m->output.params + 2 * wide + 3 * narrow + 48 * 64 + 192 * 16);
    assert_int_equal(maq_layer_tokens(&m->kinds[m->kind_of[1]], 12), 12);
    assert_int_equal(maq_layer_tokens(&m->kinds[m->kind_of[4]], 24), 384);
    assert_int_equal(maq_layer_tokens(&m->embedding, 12), 1);
    assert_true(maq_model_border(m, 1, 12) == 12 * 64);
    assert_true(maq_model_border(m, 2, 12) == 192 * 16);
    /* per sequence: linears and, of each query, all keys of its window; the tokens of the sequence are those of the first level */
    double linears = 2 * 12 * (12. * 64 * 64) + 3 * 192 * (12. * 16 * 16) + 10 * 12 * 64 + 192 * 16 * 3;
    double scores = 2 * 12 * (2. * 12 * 64) + 3 * 192 * (2. * 16 * 16);
    double flop = 3 * 2 * (linears + scores);
    assert_true(fabs(maq_model_flop_per_token(m, 12, true) * 12 / flop - 1) < 1e-12);
    maq_job_free(box);
}

/* A seq_length of twice the first level's tokens holds two samples, which do not see each other. */
static void test_packs_samples(void **state)
{
    (void)state;
    struct maq_loaded_job *box = load(MODEL(LEVELS), "a100-80gb:1", "", "workload: {gbs: 1, seq: 24}\n");
    const struct maq_model *m = &maq_job_get(box)->model;
    double once = maq_model_flop_per_token(m, 12, true), twice = maq_model_flop_per_token(m, 24, true);
    assert_true(once > 0 && twice == once); /* of a token */
    maq_job_free(box);
}

static double step_of(const char *model, const char *cluster, const char *plan, const char *rest)
{
    struct maq_loaded_job *box = load(model, cluster, plan, rest);
    struct maq_train_result *r = NULL;
    struct maq_train_graph g;
    double full = 0, dynamic = 0;
    const struct maq_interference none = {1, 1};
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
    assert_int_equal(maq_train_graph(&g, maq_job_get(box), NULL), MAQ_OK);
    double *at = malloc(sizeof *at * (g.graph.n_nodes + 1));
    maq_engine_static(&full, at, &g.graph, 1, g.dur_ns);
    assert_int_equal(maq_engine_dynamic(&dynamic, at, &g.graph, g.dur_ns, &none, NULL), MAQ_OK);
    if (fabs(r->step_s / (full * 1e-9) - 1) > 1e-3 || full != dynamic)
        fail_msg("fast path %.9f s, engines %.9f and %.9f s: %s, %s", r->step_s, full * 1e-9, dynamic * 1e-9, plan,
                 rest);
    double step = r->step_s;
    free(at);
    maq_train_graph_free(&g);
    maq_train_result_free(r);
    maq_job_free(box);
    return step;
}

#define BIG                                                                                                            \
    "{num_layers: 4, tokens: 64, hidden_size: 1024, num_attention_heads: 8}, "                                         \
    "{num_layers: 4, tokens: 16384, window_tokens: 256, hidden_size: 64, num_attention_heads: 8}"

static void test_paths_agree(void **state)
{
    (void)state;
    static const char *const plans[] = {
        "",
        "pp: 4, mbs: 2",
        "pp: 2, tp: 2, attention_backend: unfused",
        "pp: 2, vp: 2, recompute: full",
        "tp: 4, attention_backend: unfused, fused_kernels: false",
        "pp: 4, layout: '3,3,1,1', zero: optim",
        "pp: 4, schedule: zb-h1, zero: optim, recompute: selective",
        "zero: optim_grads_params",
    };
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        step_of(MODEL(BIG), "v100-16gb:4 x 2", plans[i],
                "workload: {gbs: 32}\nframework: {base: megatron-deepspeed, pass_synchronizes: true}\n");
        step_of(MODEL(BIG), "a100-80gb:4 x 2, rail 100G", plans[i], "workload: {gbs: 32, seq: 128}\n");
    }
}

/* One microbatch through two stages of a node each, behind the fourth layer (64 x 1,024 values) or the fifth (16,384 x 64): the transfers
 * differ by the bytes between, at the rate of the link, once forward and once backward. */
static void test_transfers(void **state)
{
    (void)state;
    const char rest[] = "workload: {gbs: 1}\nframework: {p2p_synchronizes: false, step_synchronizes: false, host: "
                        "{forward: 0s, backward: 0s, "
                        "kernel: 0s, collective: 0s, p2p: 0s, pass: 0s, step: 0s}}\n";
    const char cluster[] = "a100-80gb:1 x 2, rail 1G", before[] = "pp: 2, mbs: 1, layout: '4,4'",
               behind[] = "pp: 2, mbs: 1, layout: '5,3'";
    double a = step_of(MODEL(BIG), cluster, before, rest), b = step_of(MODEL(BIG), cluster, behind, rest);
    double slower = 2 * (16384. * 64 - 64. * 1024) * 2 / (1e9 / 8);
    if (!(b - a > slower * 0.9 && b - a < slower * 1.3))
        fail_msg("%.6f s and %.6f s: %.6f s more, where the bytes take %.6f s", a, b, b - a, slower);
}

/* TP that narrows heads leaves all scores on every rank; TP that shares heads cuts them. */
static void test_narrow_heads(void **state)
{
    (void)state;
    const char plan[] = "tp: 4, attention_backend: unfused",
               free_host[] = "host: {forward: 0s, backward: 0s, kernel: 0s, collective: 0s, skew: 0s}";
    char shares[256], narrows[256];
    snprintf(shares, sizeof shares, "workload: {gbs: 8}\nframework: {%s}\n", free_host);
    snprintf(narrows, sizeof narrows, "workload: {gbs: 8}\nframework: {tp_narrows_heads: true, %s}\n", free_host);
    double cut = step_of(MODEL(BIG), "v100-16gb:4", plan, shares),
           whole = step_of(MODEL(BIG), "v100-16gb:4", plan, narrows),
           alone = step_of(MODEL(BIG), "v100-16gb:1", "attention_backend: unfused", shares);
    /* four times the scores; no less work in attention than one device alone has */
    if (!(whole > 1.5 * cut && whole > 0.6 * alone))
        fail_msg("%.6f s with heads cut, %.6f s with heads whole, %.6f s on one device", cut, whole, alone);
}

/* Bounds that leave plans out hold where layers differ: the search against its whole space, on both sides of a memory limit. */
static void test_search(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        MODEL(BIG) "cluster: 'v100-16gb:2 x 2'\nplan: {precision: fp16}\nworkload: {gbs: 16}\nsearch: {tp: [1, 2], "
                   "mbs: [1, 2, 4], vp: [1, 2]}\n",
        MODEL(BIG) "cluster: 'a100-40gb:4 x 2, rail 100G'\nworkload: {gbs: 64}\nsearch: {tp: [1, 2, 4], pp: [1, 2, 4], "
                   "mbs: [4, 8, 16], "
                   "reserve: 30 GiB, recompute_granularity: [none, core_attn, block, full]}\n",
    };
    for (size_t i = 0; i < sizeof jobs / sizeof jobs[0]; i++) {
        struct maq_loaded_job *job;
        struct maq_search_result *r[2];
        struct maq_diag *diag = maq_diag_new();
        if (maq_job_parse_open(&job, "job", (struct maq_str){jobs[i], strlen(jobs[i])}, NULL, 0, diag) != MAQ_OK)
            fail_msg("%s", maq_diag_format(diag, 0, false));
        for (int k = 0; k < 2; k++) {
            const struct maq_search_opts opts = {.top = 4, .threads = 1, .exhaustive = k == 1};
            if (maq_search(&r[k], job, &opts, diag) != MAQ_OK)
                fail_msg("%s", maq_diag_format(diag, 0, false));
        }
        assert_true(r[0]->n_plans > 1 && r[0]->n_plans == r[1]->n_plans && r[0]->counts.scored < r[1]->counts.scored);
        for (uint32_t k = 0; k < r[0]->n_plans; k++)
            assert_true(r[0]->plans[k].step_s == r[1]->plans[k].step_s);
        print_message("%llu plans timed of %llu that fit\n", (unsigned long long)r[0]->counts.scored,
                      (unsigned long long)r[1]->counts.scored);
        maq_search_result_free(r[0]);
        maq_search_result_free(r[1]);
        maq_job_free(job);
        maq_diag_free(diag);
    }
}

static void refuse(const char *text, uint16_t code, const char *words)
{
    struct maq_loaded_job *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    assert_int_equal(maq_job_parse(&box, "job", (struct maq_str){text, strlen(text)}, NULL, 0, diag), MAQ_BAD_INPUT);
    for (size_t i = 0; i < maq_diag_count(diag); i++) {
        const struct maq_diag_item *item = maq_diag_at(diag, i);
        if (item->code == code && memmem(item->msg.ptr, item->msg.len, words, strlen(words))) {
            maq_diag_free(diag);
            return;
        }
    }
    fail_msg("no %u '%s' for\n%s%s", (unsigned)code, words, text, maq_diag_format(diag, 0, false));
}

static void test_refusals(void **state)
{
    (void)state;
    const char *const one = "{num_layers: 1, tokens: 12, hidden_size: 64, num_attention_heads: 4}";
    char text[2048];
    refuse("model: {model_type: pyramid, input_features: 1, output_features: 1}\ncluster: 'a100-80gb:1'\n", 1103,
           "no levels");
    snprintf(text, sizeof text, "model: {model_type: pyramid, levels: [%s]}\ncluster: 'a100-80gb:1'\n", one);
    refuse(text, 1103, "no input_features");
    refuse("model: {model_type: pyramid, levels: 3}\ncluster: 'a100-80gb:1'\n", 1111, "a list of 1 to 64 maps");
    refuse(MODEL("{num_layers: 1, tokens: 12, hidden_size: 60, num_attention_heads: 8}") "cluster: 'a100-80gb:1'\n",
           1106, "60 is not a multiple of 8 heads");
    refuse(
        MODEL(
            "{num_layers: 1, tokens: 12, window_tokens: 5, hidden_size: 64, num_attention_heads: 8}") "cluster: "
                                                                                                      "'a100-80gb:1'\n",
        1119, "12 tokens are no whole number of windows of 5");
    refuse(MODEL("{num_layers: 0, tokens: 12, hidden_size: 64, num_attention_heads: 8}") "cluster: 'a100-80gb:1'\n",
           1111, "must have layers");
    refuse(
        MODEL(
            "{num_layers: 1, tokens: 12, window_tokes: 4, hidden_size: 64, num_attention_heads: 8}") "cluster: "
                                                                                                     "'a100-80gb:1'\n",
        1021, "window_tokes");
    refuse(
        MODEL("{num_layers: 1, tokens: 1, hidden_size: 64, num_attention_heads: 8}, {num_layers: 1, tokens: 900000000,"
              " hidden_size: 64, num_attention_heads: 8}") "cluster: 'a100-80gb:1'\nworkload: {seq: 1000000}\n",
        1303, "over the limit of 1.07e+09");
    refuse(MODEL(LEVELS) "cluster: 'a100-80gb:2'\nplan: {cp: 2}\n", 1300, "differ in their number of tokens");
    refuse(MODEL(LEVELS) "cluster: 'a100-80gb:2'\nplan: {tp: 2, sequence_parallel: true}\n", 1300,
           "sequence parallelism");
    refuse(MODEL(LEVELS) "cluster: 'a100-80gb:1'\nworkload: {seq: 100}\n", 1303,
           "the first level of pyramid has 12 tokens");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_it_is), cmocka_unit_test(test_packs_samples), cmocka_unit_test(test_paths_agree),
        cmocka_unit_test(test_transfers),  cmocka_unit_test(test_narrow_heads),  cmocka_unit_test(test_search),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
