/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_train_closed.c - closed forms that a training step must meet exactly: activations, model states, FLOP,
 * bytes on the wire, degenerate plans, bubbles.
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
#include "maquette/train.h"
#include "train/cache.h"
#include "train/predict.h"
#include "train/step/blueprint.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

static void assert_close(double got, double want, double rtol, const char *what)
{
    if (fabs(got - want) > rtol * fabs(want))
        fail_msg("%s: got %.12g, want %.12g", what, got, want);
}

static struct maq_loaded_job *parse(const char *text)
{
    struct maq_loaded_job *box = NULL;
    struct maq_diag *diag = maq_diag_new();
    enum maq_status status = maq_job_parse(&box, "test", (struct maq_str){text, strlen(text)}, NULL, 0, diag);
    if (status != MAQ_OK) {
        char *why = maq_diag_format(diag, 0, false);
        fail_msg("%s", why);
    }
    maq_diag_free(diag);
    return box;
}

/* A classic GPT of one layer shape, trained with dropout, FP16, unfused attention: the setting of Korthikanti
 * et al. */
static struct maq_loaded_job *gpt(int tp, bool sp, const char *recompute, int mbs)
{
    char text[1024];
    snprintf(
        text, sizeof text,
        "model: {model_type: megatron, num_layers: 48, hidden_size: 6144, num_attention_heads: 64, ffn_hidden_size: "
        "24576, vocab_size: 51200,\n"
        "  max_position_embeddings: 2048, attention_dropout: 0.1, hidden_dropout: 0.1}\n"
        "cluster: 'a100-80gb:8 x 1'\n"
        "plan: {tp: %d, sp: %s, mbs: %d, recompute: %s, precision: fp16, attention_backend: unfused, zero: no_shard}\n"
        "workload: {seq: 2048, gbs: %d}\n",
        tp, sp ? "true" : "false", mbs, recompute, mbs * 8 / tp);
    return parse(text);
}

static double layer_bytes(const struct maq_job *job, bool redo)
{
    struct maq_cache cache;
    struct maq_lower lower;
    struct maq_block block = {.layer = &job->model.kinds[0]};
    assert_int_equal(maq_cache_init(&cache, job, NULL), MAQ_OK);
    maq_lower_init(&lower, job, &cache.items, &cache.arena);
    maq_block_memory(&block, &lower);
    maq_cache_fini(&cache);
    return block.act_bytes[redo];
}

/* "Reducing Activation Recomputation in Large Transformer Models" (arXiv 2205.05198), equations 1, 2 and 4,
 * section 5 and table 2. */
static void test_activations(void **unused)
{
    (void)unused;
    const double s = 2048, h = 6144, a = 64;
    for (int b = 1; b <= 4; b *= 2) {
        double sbh = s * b * h, quadratic = 5 * a * s / h;
        const struct {
            int t;
            bool sp;
            const char *recompute;
            bool redo;
            double per_sbh;
        } cases[] = {
            {1, false, "none", false, 34 + quadratic},
            {8, true, "none", false, (34 + quadratic) / 8},
            {8, false, "none", false, 10 + 24.0 / 8 + quadratic / 8},
            {8, true, "selective", true, 34.0 / 8},
            {8, false, "selective", true, 10 + 24.0 / 8},
            {8, true, "full", true, 2.0 / 8},
            {8, false, "full", true, 2},
        };
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct maq_loaded_job *box = gpt(cases[i].t, cases[i].sp, cases[i].recompute, b);
            assert_close(layer_bytes(maq_job_get(box), cases[i].redo), sbh * cases[i].per_sbh, 1e-12,
                         cases[i].recompute);
            maq_job_free(box);
        }
    }
    /* its figure 1, 22B model on 8 GPUs, micro batch 4: 59.25 GiB without anything, 9.5625 GiB with sequence
     * parallelism and selective recomputation */
    struct maq_loaded_job *none = gpt(8, false, "none", 4), *both = gpt(8, true, "selective", 4);
    assert_close(48 * layer_bytes(maq_job_get(none), false) / GIB, 59.25, 1e-12, "22B, none");
    assert_close(48 * layer_bytes(maq_job_get(both), true) / GIB, 9.5625, 1e-12,
                 "22B, sequence parallel and selective");
    maq_job_free(none);
    maq_job_free(both);
}

/* "ZeRO" (arXiv 1910.02054), figure 1: 16 bytes per parameter, shared out stage by stage over N = 64. */
static void test_model_states(void **unused)
{
    (void)unused;
    static const struct {
        const char *zero;
        double weights, gradients, optimizer; /* bytes per parameter */
    } cases[] = {
        {"no_shard", 2, 2, 12},
        {"optim", 2, 2, 12 / 64.0},
        {"optim_grads", 2, 2 / 64.0, 12 / 64.0},
        {"optim_grads_params", 4 / 64.0, 2 / 64.0,
         8 / 64.0}, /* the master weight is the parameter: 2 bytes fewer than the paper's 16/N */
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: llama-2-7b\ncluster: 'h100-sxm:8 x 8, rail 400G'\nplan: {zero: %s, main_grads_dtype: bf16, "
                 "grad_reduce_dtype: bf16}\nworkload: {seq: 4096, gbs: 64}\n",
                 cases[i].zero);
        struct maq_loaded_job *box = parse(text);
        struct maq_train_result *r;
        assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
        double p = 6738415616.0;
        assert_close(r->stages[0].params, p, 1e-12, "parameters");
        assert_close(r->stages[0].bytes[MAQ_MEM_WEIGHTS], p * cases[i].weights, 1e-12, cases[i].zero);
        assert_close(r->stages[0].bytes[MAQ_MEM_GRADIENTS], p * cases[i].gradients, 1e-12, cases[i].zero);
        assert_close(r->stages[0].bytes[MAQ_MEM_OPTIMIZER], p * cases[i].optimizer, 1e-12, cases[i].zero);
        maq_train_result_free(r);
        maq_job_free(box);
    }
}

/* Megatron's formula, 72 b s l h^2 (1 + s / 6h + V / 12 l h) with full attention for a GPT (arXiv 2104.04473,
 * without recomputation); and halved scores when causal. */
static void test_flop(void **unused)
{
    (void)unused;
    struct maq_loaded_job *box = gpt(8, true, "none", 1);
    const struct maq_job *job = maq_job_get(box);
    double s = 2048, l = 48, h = 6144, v = 51200;
    double full = 72 * l * h * h * (1 + s / (6 * h) + v / (12 * l * h));
    double scores = 12 * l * h * s;
    assert_close(maq_model_flop_per_token(&job->model, 2048, false), full, 1e-12, "full attention");
    assert_close(maq_model_flop_per_token(&job->model, 2048, true), full - scores / 2 * (1 - 1 / s), 1e-12,
                 "causal attention");
    maq_job_free(box);
}

/* What runs is what the model says: executed matrix FLOP = model FLOP without recomputation; 4/3 of the
 * layers with full recomputation. */
static void test_executed_flop(void **unused)
{
    (void)unused;
    static const char *const plans[] = {"{tp: 1}", "{tp: 4, pp: 2}", "{tp: 2, cp: 2, pp: 2, vp: 2}",
                                        "{zero: optim_grads_params, mbs: 2}"};
    for (size_t i = 0; i < 4; i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: {base: llama-3-8b, num_hidden_layers: 8}\ncluster: 'h100-sxm:8 x 1'\nplan: %s\nworkload: "
                 "{seq: 4096, gbs: 32}\n",
                 plans[i]);
        struct maq_loaded_job *box = parse(text);
        struct maq_train_result *r;
        assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
        /* flash attention's backward pass computes the scores again: 5 products for 4, by design not in the
         * model's FLOP */
        assert_true(r->hardware_flop >= r->model_flop * 0.999 && r->hardware_flop < r->model_flop * 1.06);
        maq_train_result_free(r);
        maq_job_free(box);
    }
}

/* One GPU, one stage: no communication at all, and the step is the sum of its operators. */
static void test_single_gpu(void **unused)
{
    (void)unused;
    struct maq_loaded_job *box = parse("model: {base: llama-3-8b, num_hidden_layers: 2}\ncluster: 'h100-sxm:1 x 1'\n"
                                       "plan: {zero: no_shard, cuda_graphs: true}\nworkload: {seq: 4096, gbs: 4}\n");
    struct maq_train_result *r;
    struct maq_train_graph g;
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
    for (int b = MAQ_BUCKET_TP; b <= MAQ_BUCKET_BUBBLE; b++)
        assert_true(r->bucket_s[b] == 0);
    assert_int_equal(maq_train_graph(&g, maq_job_get(box), NULL), MAQ_OK);
    double sum = 0;
    for (uint32_t v = 0; v < g.graph.n_nodes; v++)
        sum += g.dur_ns[g.graph.item[v]];
    assert_close(r->step_s, sum * 1e-9, 1e-12, "sum of operators");
    maq_train_graph_free(&g);
    maq_train_result_free(r);
    maq_job_free(box);
}

/* Ring collectives move n-1 of n parts: reduce-scatter and all-gather of a step's gradients and parameters
 * carry exactly their bytes. */
static void test_bytes_on_the_wire(void **unused)
{
    (void)unused;
    struct maq_loaded_job *box = parse("model: llama-2-7b\ncluster: 'h100-sxm:8 x 4, rail 400G'\nplan: {zero: "
                                       "optim}\nworkload: {seq: 4096, gbs: 32}\n");
    const struct maq_job *job = maq_job_get(box);
    struct maq_cache cache;
    struct maq_arena arena;
    struct maq_blueprint bp;
    assert_int_equal(maq_cache_init(&cache, job, NULL), MAQ_OK);
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_blueprint_build(&bp, job, &cache, &arena, NULL), MAQ_OK);
    double reduced = 0, gathered = 0;
    const struct maq_program *p = bp.programs[0];
    for (uint32_t b = 0; b < p->n_buckets; b++) {
        reduced += cache.items.at[p->buckets[b].reduce[0]].coll.bytes;
        gathered += cache.items.at[p->buckets[b].gather[0]].coll.bytes;
    }
    assert_close(reduced, 4 * 6738415616.0, 1e-12, "gradients, FP32");
    assert_close(gathered, 2 * 6738415616.0, 1e-12, "parameters, BF16");
    assert_true(p->buckets[0].first == 0 && p->buckets[p->n_buckets - 1].last == p->n_entries - 1);
    for (uint32_t b = 1; b < p->n_buckets; b++)
        assert_true(p->buckets[b].first == p->buckets[b - 1].last + 1);
    maq_arena_fini(&arena);
    maq_cache_fini(&cache);
    maq_job_free(box);
}

/* With tp_comm_overlap a rank adds up the pieces that a reduction brings: TP of them, of its share of the sequence. */
static void test_sums_of_pieces(void **unused)
{
    (void)unused;
    for (int overlap = 0; overlap < 2; overlap++) {
        struct maq_loaded_job *box =
            parse(overlap ? "model: llama-2-7b\ncluster: 'h100-sxm:8'\nplan: {tp: 8, mbs: 1, tp_comm_overlap: true}\n"
                            "workload: {seq: 4096, gbs: 4}\n"
                          : "model: llama-2-7b\ncluster: 'h100-sxm:8'\nplan: {tp: 8, mbs: 1, tp_comm_overlap: false}\n"
                            "workload: {seq: 4096, gbs: 4}\n");
        struct maq_cache cache;
        struct maq_arena arena;
        struct maq_blueprint bp;
        unsigned sums = 0;
        assert_int_equal(maq_cache_init(&cache, maq_job_get(box), NULL), MAQ_OK);
        maq_arena_init(&arena, 0);
        assert_int_equal(maq_blueprint_build(&bp, maq_job_get(box), &cache, &arena, NULL), MAQ_OK);
        for (uint32_t i = 1; i < cache.items.n; i++) {
            const struct maq_item *it = &cache.items.at[i];
            sums += !it->is_coll && it->op.kind == MAQ_OP_ELEMENTWISE && it->op.d[0] == 4096 / 8 * 4096 &&
                    it->op.d[1] == 8 * 2 && it->op.d[2] == 2;
        }
        assert_int_equal(sums, overlap); /* equal operators are one item */
        maq_arena_fini(&arena);
        maq_cache_fini(&cache);
        maq_job_free(box);
    }
}

/* FSDP over 32 devices, one sequence each in a pass. */
static double step_of(const char *plan, unsigned passes)
{
    char text[512];
    snprintf(text, sizeof text,
             "model: llama-2-7b\ncluster: 'h100-sxm:8 x 4, rail 100G'\nplan: {zero: 3, mbs: 1, recompute: full, %s}\n"
             "workload: {seq: 1024, gbs: %u}\n",
             plan, 32 * passes);
    struct maq_loaded_job *box = parse(text);
    struct maq_train_result *r;
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
    double step = r->step_s;
    maq_train_result_free(r);
    maq_job_free(box);
    return step;
}

/*
 * On a slow network reductions stick out, so one a step is less than four. Where backward passes gather again the last one gathers and
 * reduces, the others gather: each of them saves the same.
 */
static void test_reductions_of_a_step(void **unused)
{
    (void)unused;
    static const char each[] = "reduce_once_per_step: false", last[] = "reduce_once_per_step: true";
    double kept = step_of("reshard_after_forward: false", 4),
           once = step_of("reshard_after_forward: false, reduce_once_per_step: true", 4),
           all_once = step_of("gather_once_per_step: true", 4), saved = step_of(each, 2) - step_of(last, 2);
    assert_true(once < 0.9 * kept);
    assert_true(all_once < 0.9 * once);
    assert_close(step_of("gather_once_per_step: true, reduce_once_per_step: true", 4), all_once, 1e-15, "both");
    assert_true(saved > 0.1 * step_of(each, 1));
    assert_close(step_of(each, 1), step_of(last, 1), 1e-15, "one pass is the last");
    assert_close(step_of(each, 4) - step_of(last, 4), 3 * saved, 1e-9, "three of four");
    assert_true(step_of(last, 4) > once);
}

/*
 * HybridEP gathers the routing of all ranks, a byte for each token and expert. Rows go out and their gradients come back with four
 * bytes for each of the domain's experts, rows of 2,048 numbers in 16 bits; what experts return, and its gradient, without.
 */
static void test_hybrid_exchange(void **unused)
{
    (void)unused;
    for (int nodes = 1; nodes <= 2; nodes++) {
        char text[256];
        snprintf(text, sizeof text,
                 "model: qwen3-30b-a3b\ncluster: 'h100-sxm:8 x %d, rail 400G'\nplan: {ep: %d, mbs: 1, dispatcher: "
                 "hybridep}\n"
                 "workload: {seq: 4096, gbs: 16}\n",
                 nodes, 8 * nodes);
        struct maq_loaded_job *box = parse(text);
        struct maq_cache cache;
        struct maq_arena arena;
        struct maq_blueprint bp;
        double least[2] = {HUGE_VAL, HUGE_VAL}, most[2] = {0, 0}, far[2] = {0, 0}, routing = 4096 * 8.0 * nodes * 128;
        unsigned gathers = 0, scans = 0;
        assert_int_equal(maq_cache_init(&cache, maq_job_get(box), NULL), MAQ_OK);
        maq_arena_init(&arena, 0);
        assert_int_equal(maq_blueprint_build(&bp, maq_job_get(box), &cache, &arena, NULL), MAQ_OK);
        for (uint32_t i = 1; i < cache.items.n; i++) {
            const struct maq_item *it = &cache.items.at[i];
            gathers += it->is_coll && it->coll.kind == MAQ_COLL_ALL_GATHER && it->coll.bytes == routing;
            scans += !it->is_coll && it->op.kind == MAQ_OP_ELEMENTWISE && (double)it->op.d[0] == routing &&
                     it->op.d[1] == 1 && it->op.d[2] == 0;
            if (!it->is_coll || (it->coll.kind != MAQ_COLL_DISPATCH && it->coll.kind != MAQ_COLL_COMBINE))
                continue;
            int back = it->coll.kind == MAQ_COLL_COMBINE;
            least[back] = fmin(least[back], it->coll.bytes);
            most[back] = fmax(most[back], it->coll.bytes);
            far[back] = fmax(far[back], it->coll.far_bytes);
            assert_true(it->coll.rows == 4096);
            assert_true(it->coll.row_bytes >= 2 * 2048);
        }
        assert_int_equal(gathers, 1);
        assert_int_equal(scans, 1);
        for (int back = 0; back < 2; back++) {
            assert_close(most[back] / least[back], 1 + 4.0 * 128 / nodes / (2 * 2048), 1e-12, "with and without");
            assert_true((far[back] > 0) == (nodes > 1));
        }
        maq_arena_fini(&arena);
        maq_cache_fini(&cache);
        maq_job_free(box);
    }
}

/* How often a rank transposes so many 8-bit numbers in a step, and gathers them over its TP group. */
static void count_narrow(double *transposes, double *gathers, const char *text, int64_t numbers)
{
    struct maq_loaded_job *box = parse(text);
    struct maq_cache cache;
    struct maq_arena arena;
    struct maq_blueprint bp;
    *transposes = *gathers = 0;
    assert_int_equal(maq_cache_init(&cache, maq_job_get(box), NULL), MAQ_OK);
    maq_arena_init(&arena, 0);
    assert_int_equal(maq_blueprint_build(&bp, maq_job_get(box), &cache, &arena, NULL), MAQ_OK);
    double *times = MAQ_ARENA_NEW(&arena, double, cache.items.n);
    maq_stage_count_items(times, NULL, &bp, 0);
    for (uint32_t i = 1; i < cache.items.n; i++) {
        const struct maq_item *it = &cache.items.at[i];
        if (it->is_coll)
            *gathers += it->coll.kind == MAQ_COLL_ALL_GATHER && it->stream == MAQ_STREAM_TP &&
                                fabs(it->coll.bytes - (double)numbers) < 0.5
                            ? times[i]
                            : 0;
        else if (it->op.kind == MAQ_OP_ELEMENTWISE && it->op.d[1] == 1 && it->op.d[2] == 1)
            *transposes += it->op.d[0] == numbers ? times[i] : 0;
    }
    maq_arena_fini(&arena);
    maq_cache_fini(&cache);
    maq_job_free(box);
}

/*
 * 8-bit operands of weight gradients. One scale per tensor, before Blackwell: what a norm quantized is transposed (in front of qkv and fc1),
 * and with sequence parallelism what was gathered, the gradients behind proj and fc2 as well. Gathers carry 8 bits: forward in front of qkv
 * and fc1, backward their input again, and the gradients of proj and fc2. With scales of blocks both orders travel: 16 bits backward.
 */
static void test_narrow_operands(void **unused)
{
    (void)unused;
    enum { LAYERS = 3, MICROBATCHES = 2, TOKENS = 4096, HIDDEN = 4096 };
    static const struct {
        const char *cluster, *plan;
        int tp, transposes, gathers; /* of a layer and microbatch */
    } cases[] = {{"h100-sxm:1", "precision: fp8-delayed", 1, 2, 0},
                 {"b200:1", "precision: fp8-delayed", 1, 0, 0},
                 {"h100-sxm:1", "precision: fp8-blockwise", 1, 0, 0},
                 {"h100-sxm:2", "precision: fp8-delayed, tp: 2, sp: true", 2, 4, 6},
                 {"b200:2", "precision: fp8-delayed, tp: 2, sp: true", 2, 0, 6}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[512];
        double transposes, gathers;
        snprintf(text, sizeof text,
                 "{model: {base: llama-2-7b, num_hidden_layers: %d}, cluster: '%s', workload: {seq: %d, gbs: %d},"
                 " framework: megatron-lm, plan: {mbs: 1, zero: no_shard, %s}}",
                 LAYERS, cases[i].cluster, TOKENS, MICROBATCHES, cases[i].plan);
        count_narrow(&transposes, &gathers, text, (int64_t)TOKENS * HIDDEN);
        assert_close(transposes + 1, LAYERS * MICROBATCHES * cases[i].transposes + 1, 1e-12, cases[i].plan);
        assert_close(gathers + 1, LAYERS * MICROBATCHES * cases[i].gathers + 1, 1e-12, cases[i].plan);
    }
}

/* With MTP the last stage holds its depth and two output blocks beside fewer layers; one that cannot hold any gets none. */
static void test_balanced_layouts(void **unused)
{
    (void)unused;
    static const struct {
        const char *model;
        int layers, pp, first, last;
    } cases[] = {
        {"deepseek-v3", 61, 16, 4, 1},  {"deepseek-v3", 61, 4, 16, 13}, {"deepseek-v3", 61, 32, 2, 0},
        {"deepseek-v3", 61, 1, 61, 61}, {"llama-3-8b", 30, 4, 7, 7},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        char text[512];
        snprintf(text, sizeof text,
                 "model: {base: %s, num_hidden_layers: %d}\ncluster: 'gb200:4 x 64, domain 72'\n"
                 "plan: {layout: balanced, pp: %d}\nworkload: {seq: 4096, gbs: 2048}\n",
                 cases[i].model, cases[i].layers, cases[i].pp);
        struct maq_loaded_job *box = parse(text);
        const struct maq_job *job = maq_job_get(box);
        int32_t sum = 0;
        assert_int_equal(job->n_virtual, cases[i].pp);
        for (uint32_t v = 0; v < job->n_virtual; v++)
            sum += job->virtual_stages[v].n_layers;
        assert_int_equal(sum, cases[i].layers);
        assert_int_equal(job->virtual_stages[0].n_layers, cases[i].first);
        assert_int_equal(job->virtual_stages[job->n_virtual - 1].n_layers, cases[i].last);
        maq_job_free(box);
    }
}

/* A sweep gives the same numbers as single predictions. */
static void test_sweep(void **unused)
{
    (void)unused;
    struct maq_loaded_job *box =
        parse("model: {base: llama-3-70b, num_hidden_layers: 16}\ncluster: 'h100-sxm:8 x 4, rail "
              "400G'\nplan: {layout: balanced}\nworkload: {seq: 4096, gbs: 64}\n");
    struct maq_train_sweep *sweep;
    struct maq_plan plans[64];
    struct maq_train_quick quick[64];
    char text[64][512];
    size_t n = 0;
    for (int tp = 1; tp <= 4; tp *= 2)
        for (int pp = 1; pp <= 4; pp *= 2)
            for (int zero = 0; zero < 4; zero++) {
                static const char *const names[] = {"no_shard", "optim", "optim_grads", "optim_grads_params"};
                snprintf(text[n], sizeof text[n],
                         "model: {base: llama-3-70b, num_hidden_layers: 16}\ncluster: 'h100-sxm:8 x 4, rail "
                         "400G'\nplan: {layout: balanced, tp: %d, pp: %d, zero: %s}\n"
                         "workload: {seq: 4096, gbs: 64}\n",
                         tp, pp, names[zero]);
                struct maq_loaded_job *one = parse(text[n]);
                plans[n++] = maq_job_get(one)->plan; /* resolved plans stay what they are */
                maq_job_free(one);
            }
    for (size_t i = 0; i < n; i++) /* strings of freed jobs */
        plans[i].layout = (struct maq_str){"balanced", 8}, plans[i].rank_order = (struct maq_str){"tp-cp-ep-dp-pp", 14},
        plans[i].lora_targets.len = 0;
    assert_int_equal(maq_train_sweep_new(&sweep, maq_job_get(box), NULL), MAQ_OK);
    assert_int_equal(maq_train_sweep_eval(sweep, quick, plans, n), MAQ_OK);
    for (size_t i = 0; i < n; i++) {
        struct maq_loaded_job *one = parse(text[i]);
        struct maq_train_result *r;
        assert_int_equal(maq_train_predict(&r, maq_job_get(one), NULL), MAQ_OK);
        assert_true(quick[i].possible && quick[i].step_s == r->step_s && quick[i].fits == r->fits);
        const struct maq_stage_result *worst = &r->stages[r->worst_stage];
        assert_close(quick[i].needed_bytes, worst->total_bytes - worst->bytes[MAQ_MEM_FRAGMENTATION], 1e-12, "memory");
        maq_train_result_free(r);
        maq_job_free(one);
    }
    maq_train_sweep_free(sweep);
    maq_job_free(box);
}

/* Equal operators of several modules are one row, under the name of the module that has most of them: not the embedding's. */
static void test_name_of_a_row(void **unused)
{
    (void)unused;
    struct maq_train_result *r = NULL;
    struct maq_loaded_job *box =
        parse("{model: llama-3.1-8b, cluster: 'h100-sxm:8', plan: {tp: 4, sp: true}, workload: {gbs: 8, seq: 4096}}");
    uint32_t gathers = 0;
    assert_int_equal(maq_train_predict(&r, maq_job_get(box), NULL), MAQ_OK);
    for (uint32_t i = 0; i < r->n_ops; i++)
        if (strncmp(r->ops[i].text, "all_gather", 10) == 0) {
            assert_string_equal(r->ops[i].where, "linear_qkv");
            assert_true(r->ops[i].count >
                        4 * 2 * 32); /* microbatches, passes, layers; the embedding has none of it alone */
            gathers++;
        }
    assert_int_equal(gathers, 1);
    maq_train_result_free(r);
    maq_job_free(box);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_model_states),
        cmocka_unit_test(test_flop),
        cmocka_unit_test(test_executed_flop),
        cmocka_unit_test(test_single_gpu),
        cmocka_unit_test(test_sums_of_pieces),
        cmocka_unit_test(test_hybrid_exchange),
        cmocka_unit_test(test_reductions_of_a_step),
        cmocka_unit_test(test_narrow_operands),
        cmocka_unit_test(test_bytes_on_the_wire),
        cmocka_unit_test(test_balanced_layouts),
        cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_name_of_a_row),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
