/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve_experts.c - whose kernels compute the experts, and what DeepGEMM's contiguous layout costs. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "cost/fitted/table.h"
#include "device_of.h"
#include "maquette/job.h"
#include "maquette/serve.h"
#include "serve/pass/pass.h"

#define MOST 4096

/* Passes through a model on its GPUs, and what they stand on. */
struct fixture {
    struct maq_loaded_job *job;
    struct maq_arena arena;
    struct maq_passes passes;
};

static struct maq_passes *set_up_of(struct fixture *f, const char *model, const char *cluster, int tp,
                                    const struct maq_serve_options *o)
{
    char text[512];
    struct maq_diag *diag = maq_diag_new();
    snprintf(text, sizeof text, "{model: %s, cluster: '%s', plan: {tp: %d, micro_batch_size: 1}, workload: {gbs: 8}}",
             model, cluster, tp);
    f->job = NULL;
    if (maq_job_parse(&f->job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    maq_arena_init(&f->arena, 0);
    assert_int_equal(maq_passes_init(&f->passes, maq_job_get(f->job), o, MOST, &f->arena), MAQ_OK);
    return &f->passes;
}

static struct maq_passes *set_up(struct fixture *f, const char *cluster, int tp, const struct maq_serve_options *o)
{
    return set_up_of(f, "qwen3-235b-a22b", cluster, tp, o);
}

static void tear_down(struct fixture *f)
{
    maq_arena_fini(&f->arena);
    maq_job_free(f->job);
}

static double experts_s(struct maq_passes *p, int64_t tokens)
{
    const struct maq_pass_batch b = {
        .tokens = tokens, .padded = tokens, .sampled = 1, .decodes = tokens, .queries = 1, .decode_keys = {tokens}};
    struct maq_pass_parts parts = {0};
    maq_pass_add(p, 0, &b, &parts);
    return parts.ns[MAQ_SERVE_EXPERTS] * 1e-9;
}

/* Read off the files of each release (docs/serving.md). */
static void test_kernels_of_a_release(void **state)
{
    (void)state;
    static const struct {
        enum maq_engine engine;
        const char *version, *cluster;
        enum maq_weights weights;
        int ep;
        enum maq_expert_kernels kernels;
        int64_t from;
    } cases[] = {
        {MAQ_ENGINE_VLLM, "0.19.0", "b200:8", MAQ_WEIGHTS_BF16, 8, MAQ_EXPERTS_TRITON, 0},
        {MAQ_ENGINE_VLLM, "0.20.0", "b200:8", MAQ_WEIGHTS_BF16, 8, MAQ_EXPERTS_LIBRARY, 0},
        {MAQ_ENGINE_VLLM, "0.24.0", "h100-sxm:8", MAQ_WEIGHTS_BF16, 8, MAQ_EXPERTS_TRITON, 0},
        {MAQ_ENGINE_VLLM, "0.14.0", "b200:8", MAQ_WEIGHTS_FP8, 8, MAQ_EXPERTS_TRITON, 0},
        {MAQ_ENGINE_VLLM, "0.15.0", "h100-sxm:8", MAQ_WEIGHTS_FP8, 8, MAQ_EXPERTS_LIBRARY, 0},
        {MAQ_ENGINE_VLLM, "0.10.2", "h100-sxm:8", MAQ_WEIGHTS_FP8_BLOCK, 8, MAQ_EXPERTS_TRITON, 0},
        {MAQ_ENGINE_VLLM, "0.11.0", "h100-sxm:8", MAQ_WEIGHTS_FP8_BLOCK, 8, MAQ_EXPERTS_CONTIGUOUS, 128},
        {MAQ_ENGINE_VLLM, "0.11.0", "b200:8", MAQ_WEIGHTS_FP8_BLOCK, 8, MAQ_EXPERTS_CONTIGUOUS, 0},
        {MAQ_ENGINE_VLLM, "0.11.1", "h100-sxm:8", MAQ_WEIGHTS_FP8_BLOCK, 8, MAQ_EXPERTS_CONTIGUOUS, 0},
        {MAQ_ENGINE_VLLM, "0.14.0", "h200:8", MAQ_WEIGHTS_FP8_BLOCK, 8, MAQ_EXPERTS_CONTIGUOUS, 0},
        {MAQ_ENGINE_VLLM, "0.14.0", "h200:8", MAQ_WEIGHTS_FP8_BLOCK, 1, MAQ_EXPERTS_TRITON, 0},
        {MAQ_ENGINE_VLLM, "0.15.1", "h200:8", MAQ_WEIGHTS_FP8_BLOCK, 1, MAQ_EXPERTS_LIBRARY, 0},
        {MAQ_ENGINE_VLLM, "0.17.0", "h200:8", MAQ_WEIGHTS_FP8_BLOCK, 1, MAQ_EXPERTS_TRITON, 0},
        {MAQ_ENGINE_VLLM, "0.17.0", "h200:8", MAQ_WEIGHTS_FP8_BLOCK, 8, MAQ_EXPERTS_LIBRARY, 0},
        {MAQ_ENGINE_VLLM, "0.17.0", "b200:8", MAQ_WEIGHTS_FP8_BLOCK, 1, MAQ_EXPERTS_LIBRARY, 0},
        {MAQ_ENGINE_VLLM, NULL, "b200:8", MAQ_WEIGHTS_NVFP4, 8, MAQ_EXPERTS_LIBRARY, 0},
        {MAQ_ENGINE_VLLM, NULL, "h200:8", MAQ_WEIGHTS_INT4, 1, MAQ_EXPERTS_MARLIN, 0},
        {MAQ_ENGINE_SGLANG, NULL, "h200:8", MAQ_WEIGHTS_INT4, 1, MAQ_EXPERTS_MARLIN, 0},
        {MAQ_ENGINE_SGLANG, NULL, "h200:8", MAQ_WEIGHTS_FP8_BLOCK, 8, MAQ_EXPERTS_TRITON, 0},
        {MAQ_ENGINE_SGLANG, NULL, "b200:8", MAQ_WEIGHTS_FP8_BLOCK, 8, MAQ_EXPERTS_LIBRARY, 0},
        {MAQ_ENGINE_TRTLLM, NULL, "h200:8", MAQ_WEIGHTS_FP8_BLOCK, 8, MAQ_EXPERTS_LIBRARY, 0},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        const struct maq_serve_options o = {.engine = cases[i].engine,
                                            .version = cases[i].version,
                                            .weights = cases[i].weights,
                                            .expert_weights = cases[i].weights,
                                            .ep = cases[i].ep};
        struct fixture f;
        const struct maq_passes *p = set_up(&f, cases[i].cluster, 8, &o);
        if (p->expert_kernels != cases[i].kernels || p->contiguous_from != cases[i].from)
            fail_msg("%s %s: kernels %d from %d", cases[i].version ? cases[i].version : "newest", cases[i].cluster,
                     (int)p->expert_kernels, (int)p->contiguous_from);
        tear_down(&f);
    }
}

/*
 * 16 tokens of 8 of 128 experts, on two ranks: 16,384 rows are computed, 82 experts are read, and neither hides the other. What stands around both
 * products goes over the rows as well.
 */
static void test_contiguous_products(void **state)
{
    (void)state;
    const struct maq_serve_options o = {
        .engine = MAQ_ENGINE_VLLM, .version = "0.12.0", .expert_weights = MAQ_WEIGHTS_FP8_BLOCK, .ep = 1};
    const int64_t widths[2][2] = {{1536, 4096}, {4096, 768}};
    struct fixture f;
    struct maq_passes *p = set_up_of(&f, "qwen3-235b-a22b", "h200:8", 2, &o);
    double products_s = 0, rows_s = 0, layer_s = experts_s(p, 16) / 94;
    assert_int_equal(p->expert_kernels, MAQ_EXPERTS_CONTIGUOUS);
    for (int i = 0; i < 2; i++) {
        const struct maq_op all = {.kind = MAQ_OP_GEMM,
                                   .dtype = MAQ_FP8,
                                   .flags = MAQ_OP_BLOCKS,
                                   .d = {16384, widths[i][0], widths[i][1], 1}},
                            read = {.kind = MAQ_OP_GROUPED_GEMM,
                                    .dtype = MAQ_FP8,
                                    .flags = MAQ_OP_BLOCKS,
                                    .d = {128, widths[i][0], widths[i][1], 82}};
        rows_s += maq_pass_seconds(p, &all);
        products_s += hypot(maq_pass_seconds(p, &all), maq_pass_seconds(p, &read));
    }
    assert_true(products_s > 1.25 * rows_s);
    assert_true(layer_s > products_s + 30e-6 && layer_s < products_s + 120e-6);
    tear_down(&f);
}

/* Adapters of LoRA have Triton's kernels, DeepEP's exchanges their own. */
static void test_kernels_by_option(void **state)
{
    (void)state;
    for (int exchange = 0; exchange < 2; exchange++) {
        struct maq_serve_options o = {
            .engine = MAQ_ENGINE_VLLM, .version = "0.12.0", .expert_weights = MAQ_WEIGHTS_FP8_BLOCK, .ep = 8};
        struct fixture f;
        if (exchange)
            o.exchange = MAQ_EXCHANGE_DEEPEP;
        else
            o.lora = (struct maq_lora_options){.enabled = true, .max_loras = 1, .max_lora_rank = 16};
        assert_int_equal(set_up(&f, "h100-sxm:8", 8, &o)->expert_kernels,
                         exchange ? MAQ_EXPERTS_LIBRARY : MAQ_EXPERTS_TRITON);
        tear_down(&f);
    }
}

/* Experts in MXFP4, by model, GPU and what is asked for: oracle/mxfp4.py of vLLM 0.33.0. */
static void test_kernels_in_mxfp4(void **state)
{
    (void)state;
    static const struct {
        enum maq_engine engine;
        const char *model, *cluster;
        enum maq_moe_backend backend;
        enum maq_expert_kernels kernels;
        enum maq_dtype inputs;
    } cases[] = {
        {MAQ_ENGINE_VLLM, "gpt-oss-120b", "h100-sxm:8", MAQ_MOE_BACKEND_AUTO, MAQ_EXPERTS_TRITON, MAQ_BF16},
        {MAQ_ENGINE_VLLM, "gpt-oss-120b", "b200:8", MAQ_MOE_BACKEND_AUTO, MAQ_EXPERTS_LIBRARY, MAQ_BF16},
        {MAQ_ENGINE_VLLM, "gpt-oss-120b", "a100-80gb:8", MAQ_MOE_BACKEND_AUTO, MAQ_EXPERTS_MARLIN, MAQ_BF16},
        {MAQ_ENGINE_VLLM, "qwen3-235b-a22b", "h100-sxm:8", MAQ_MOE_BACKEND_AUTO, MAQ_EXPERTS_MARLIN, MAQ_BF16},
        {MAQ_ENGINE_VLLM, "qwen3-235b-a22b", "b200:8", MAQ_MOE_BACKEND_AUTO, MAQ_EXPERTS_LIBRARY, MAQ_FP8},
        {MAQ_ENGINE_VLLM, "gpt-oss-120b", "b200:8", MAQ_MOE_BACKEND_FLASHINFER_AFP8, MAQ_EXPERTS_LIBRARY, MAQ_FP8},
        {MAQ_ENGINE_VLLM, "gpt-oss-120b", "b200:8", MAQ_MOE_BACKEND_MARLIN, MAQ_EXPERTS_MARLIN, MAQ_BF16},
        {MAQ_ENGINE_VLLM, "gpt-oss-120b", "h100-sxm:8", MAQ_MOE_BACKEND_MARLIN, MAQ_EXPERTS_MARLIN, MAQ_BF16},
        {MAQ_ENGINE_SGLANG, "gpt-oss-120b", "b200:8", MAQ_MOE_BACKEND_AUTO, MAQ_EXPERTS_LIBRARY, MAQ_FP8},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        const struct maq_serve_options o = {
            .engine = cases[i].engine, .expert_weights = MAQ_WEIGHTS_MXFP4, .moe_backend = cases[i].backend, .ep = 1};
        struct fixture f;
        const struct maq_passes *p = set_up_of(&f, cases[i].model, cases[i].cluster, 8, &o);
        if (p->expert_kernels != cases[i].kernels || p->experts.dtype != (int)cases[i].inputs)
            fail_msg("%s on %s: kernels %d, inputs %d", cases[i].model, cases[i].cluster, (int)p->expert_kernels,
                     (int)p->experts.dtype);
        tear_down(&f);
    }
}

/* Marlin's experts, whose weights are filled up to whole tiles, take longer than gpt-oss's own where there are many rows. */
static void test_marlin(void **state)
{
    (void)state;
    double s[2];
    for (int marlin = 0; marlin < 2; marlin++) {
        const struct maq_serve_options o = {.expert_weights = MAQ_WEIGHTS_MXFP4,
                                            .moe_backend = marlin ? MAQ_MOE_BACKEND_MARLIN : MAQ_MOE_BACKEND_AUTO,
                                            .ep = 1};
        struct fixture f;
        s[marlin] = experts_s(set_up_of(&f, "gpt-oss-120b", "h200:1", 1, &o), 2048);
        tear_down(&f);
    }
    assert_true(s[1] > 1.2 * s[0] && s[1] < 3 * s[0]);
}

/* 16 copies on 16 of 128 experts are where tables have 16 copies for 128 experts, and read as many; what other experts there are is the rank's. */
static void test_experts_without_a_row(void **state)
{
    (void)state;
    const struct maq_device device = device_of("h200");
    const struct maq_costs costs = {.library = MAQ_LIBRARY_VLLM};
    struct maq_op all = {
        .kind = MAQ_OP_EXPERTS, .dtype = MAQ_BF16, .flags = MAQ_OP_GATED, .d = {16, 4096, 1536, 128, 0, 8}};
    struct maq_op read = all;
    read.d[3] = 16;
    read.resident = 128;
    assert_true(maq_cost_op(&costs, &read, &device).seconds == maq_cost_op(&costs, &all, &device).seconds);
    struct maq_fit_point at, alone;
    assert_true(maq__fit_point(&at, &read, &device));
    read.resident = 0;
    assert_true(maq__fit_point(&alone, &read, &device));
    assert_true(at.x[1] == 7 && alone.x[1] == 4 && at.base_s == alone.base_s);
    read.resident = 128;
    read.d[0] = 64; /* some were chosen twice: less is read than of a batch that is dealt evenly */
    all.d[0] = 64;
    assert_true(maq_cost_op(&costs, &read, &device).seconds < maq_cost_op(&costs, &all, &device).seconds);
}

/* Tables of vLLM on Blackwell lack Triton's experts; SGLang's have them, and they take longer than FlashInfer's. */
static void test_triton_of_another_table(void **state)
{
    (void)state;
    const struct maq_device device = device_of("b200");
    const struct maq_op usual = {
        .kind = MAQ_OP_EXPERTS, .dtype = MAQ_BF16, .flags = MAQ_OP_GATED, .d = {512, 4096, 2048, 32, 0, 8}};
    struct maq_op triton = usual;
    struct maq_fit_point at;
    triton.flags |= MAQ_OP_TRITON_EXPERTS;
    assert_true(maq__fit_point(&at, &triton, &device));
    assert_null(maq__fit_find_named("b200", MAQ_LIBRARY_VLLM, &at.key, "triton"));
    const struct maq_fit_table *table = maq__fit_find_named("b200", MAQ_LIBRARY_SGLANG, &at.key, "triton");
    assert_non_null(table);
    const struct maq_costs vllm = {.library = MAQ_LIBRARY_VLLM},
                           named = {.library = MAQ_LIBRARY_SGLANG, .kernel = table->kernel};
    double s = maq_cost_op(&vllm, &triton, &device).seconds;
    assert_true(s == maq_cost_op(&named, &usual, &device).seconds);
    assert_true(s > 1.1 * maq_cost_op(&vllm, &usual, &device).seconds);
}

/*
 * The layout's rows hang on the experts of a rank as soon as there are few tokens: 8 tokens of 8 of 128 experts on 8 ranks are
 * 64 + 16 x 127 = 2,096 rows, in blocks 2,176, as many as 18 tokens have; with 19 tokens there is a block more.
 */
static void test_rows_of_the_layout(void **state)
{
    (void)state;
    const struct maq_serve_options o = {
        .engine = MAQ_ENGINE_VLLM, .version = "0.12.0", .expert_weights = MAQ_WEIGHTS_FP8_BLOCK, .ep = 8};
    struct fixture f;
    struct maq_passes *p = set_up(&f, "h100-sxm:8", 8, &o);
    const struct maq_op least[] = {
        {.kind = MAQ_OP_GEMM, .dtype = MAQ_FP8, .flags = MAQ_OP_BLOCKS, .d = {2176, 3072, 4096, 1}},
        {.kind = MAQ_OP_ACTIVATION, .dtype = MAQ_BF16, .flags = MAQ_OP_GATED, .d = {2176, 3072, 1536}},
        {.kind = MAQ_OP_QUANTIZE, .dtype = MAQ_FP8, .d = {2176, 1536, 1}},
        {.kind = MAQ_OP_GEMM, .dtype = MAQ_FP8, .flags = MAQ_OP_BLOCKS, .d = {2176, 4096, 1536, 1}}};
    double sum = 0;
    for (size_t i = 0; i < MAQ_COUNT(least); i++)
        sum += 94 * maq_pass_seconds(p, &least[i]);
    double few = experts_s(p, 8), last = few;
    assert_true(few > sum && few < 1.5 * sum); /* the router, and kernels that place rows and add them up */
    for (int64_t tokens = 16; tokens <= 1024; tokens *= 2) {
        double s = experts_s(p, tokens);
        assert_true(s >= last);
        last = s;
    }
    tear_down(&f);
}

/* Where DeepGEMM's kernels need a block of tokens, fewer tokens have Triton's, and reading the experts is all that they take. */
static void test_a_block_of_tokens(void **state)
{
    (void)state;
    struct maq_serve_options o = {
        .engine = MAQ_ENGINE_VLLM, .version = "0.11.0", .expert_weights = MAQ_WEIGHTS_FP8_BLOCK, .ep = 8};
    double s[3][2];
    static const char *const versions[] = {"0.10.2", "0.11.0", "0.11.1"};
    for (int v = 0; v < 3; v++) {
        struct fixture f;
        o.version = versions[v];
        struct maq_passes *p = set_up(&f, "h100-sxm:8", 8, &o);
        s[v][0] = experts_s(p, 127);
        s[v][1] = experts_s(p, 128);
        tear_down(&f);
    }
    assert_true(s[1][0] == s[0][0] && s[1][1] == s[2][1]);
    assert_true(s[0][0] < s[2][0]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels_of_a_release),
        cmocka_unit_test(test_kernels_in_mxfp4),
        cmocka_unit_test(test_marlin),
        cmocka_unit_test(test_experts_without_a_row),
        cmocka_unit_test(test_contiguous_products),
        cmocka_unit_test(test_kernels_by_option),
        cmocka_unit_test(test_triton_of_another_table),
        cmocka_unit_test(test_rows_of_the_layout),
        cmocka_unit_test(test_a_block_of_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
