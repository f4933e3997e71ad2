/* SPDX-License-Identifier: Apache-2.0 */
/* test_serve_linear.c - products of an engine's layers: whose input is converted in front of them, routers whose weights have 32 bits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "base/check.h"
#include "base/str.h"
#include "maquette/job.h"
#include "maquette/serve.h"
#include "serve/pass/pass.h"

#define MOST 4096
#define LAYERS 32 /* of Llama 3.1 8B */

/* What a pass of some decodes is, of `model` on eight of `device`. */
struct subject {
    struct maq_loaded_job *job;
    struct maq_arena arena;
    struct maq_passes p;
};

static void set_up(struct subject *s, const char *model, const char *device, const struct maq_serve_options *o)
{
    char text[512];
    struct maq_diag *diag = maq_diag_new();
    snprintf(text, sizeof text, "{model: %s, cluster: '%s:8', plan: {tp: 1, micro_batch_size: 1}, workload: {gbs: 8}}",
             model, device);
    if (maq_job_parse(&s->job, "test", maq_str_of(text), NULL, 0, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    maq_arena_init(&s->arena, 0);
    assert_int_equal(maq_passes_init(&s->p, maq_job_get(s->job), o, MOST, &s->arena), MAQ_OK);
}

static void tear_down(struct subject *s)
{
    maq_arena_fini(&s->arena);
    maq_job_free(s->job);
}

static struct maq_pass_parts decodes(struct subject *s, int64_t tokens)
{
    const struct maq_pass_batch b = {
        .tokens = tokens, .padded = tokens, .sampled = tokens, .decodes = tokens, .queries = 1, .decode_keys = {64}};
    struct maq_pass_parts parts = {0};
    maq_pass_add(&s->p, 0, &b, &parts);
    return parts;
}

/* Kernels of a layer that weights of this type have and weights in 16 bits do not: conversions. */
static double conversions(enum maq_engine engine, const char *version, enum maq_weights weights, const char *device)
{
    double kernels[2];
    for (int narrow = 0; narrow < 2; narrow++) {
        enum maq_weights type = narrow ? weights : MAQ_WEIGHTS_BF16;
        const struct maq_serve_options o = {
            .engine = engine, .version = version, .weights = type, .expert_weights = type};
        struct subject s;
        set_up(&s, "llama-3.1-8b", device, &o);
        kernels[narrow] = decodes(&s, 16).kernels;
        tear_down(&s);
    }
    return (kernels[1] - kernels[0]) / LAYERS;
}

/* A layer of Llama has four products: q, k and v behind a norm, the attention's output, gate and up behind a norm, down behind an activation. */
static void test_who_converts(void **state)
{
    static const struct {
        enum maq_engine engine;
        const char *version;
        enum maq_weights weights;
        double conversions;
    } cases[] = {
        {MAQ_ENGINE_VLLM, "0.12.0", MAQ_WEIGHTS_FP8, 1},       {MAQ_ENGINE_VLLM, "0.9.2", MAQ_WEIGHTS_FP8, 4},
        {MAQ_ENGINE_VLLM, "0.19.0", MAQ_WEIGHTS_FP8_BLOCK, 4}, {MAQ_ENGINE_VLLM, "0.19.0", MAQ_WEIGHTS_NVFP4, 3},
        {MAQ_ENGINE_SGLANG, "0.5.9", MAQ_WEIGHTS_FP8, 4},      {MAQ_ENGINE_SGLANG, "0.5.9", MAQ_WEIGHTS_FP8_BLOCK, 4},
        {MAQ_ENGINE_TRTLLM, "1.2.0", MAQ_WEIGHTS_FP8, 0},      {MAQ_ENGINE_TRTLLM, "1.2.0", MAQ_WEIGHTS_FP8_BLOCK, 4},
        {MAQ_ENGINE_TRTLLM, "1.2.0", MAQ_WEIGHTS_NVFP4, 1},    {MAQ_ENGINE_VLLM, "0.12.0", MAQ_WEIGHTS_INT4, 0},
    };
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        double n = conversions(cases[i].engine, cases[i].version, cases[i].weights, "b200");
        if (n != cases[i].conversions)
            fail_msg("%s %s, %s: %g conversions", maq_engine_name(cases[i].engine), cases[i].version,
                     maq_weights_name(cases[i].weights), n);
    }
}

/* Kernels of a layer that a cache in 8 bits has and one in 16 does not: vLLM's conversion of the queries. */
static double query_conversions(enum maq_engine engine, const char *version, enum maq_weights weights,
                                const char *device)
{
    double kernels[2];
    for (int narrow = 0; narrow < 2; narrow++) {
        const struct maq_serve_options o = {
            .engine = engine, .version = version, .weights = weights, .expert_weights = weights, .kv_fp8 = narrow};
        struct subject s;
        set_up(&s, "llama-3.1-8b", device, &o);
        kernels[narrow] = decodes(&s, 16).kernels;
        tear_down(&s);
    }
    return (kernels[1] - kernels[0]) / LAYERS;
}

static void test_who_converts_queries(void **state)
{
    (void)state;
    assert_true(query_conversions(MAQ_ENGINE_VLLM, "0.10.2", MAQ_WEIGHTS_BF16, "h200") == 1);
    assert_true(query_conversions(MAQ_ENGINE_VLLM, "0.11.0", MAQ_WEIGHTS_FP8, "h200") == 0);
    assert_true(query_conversions(MAQ_ENGINE_VLLM, "0.11.0", MAQ_WEIGHTS_FP8, "b200") == 1);
    assert_true(query_conversions(MAQ_ENGINE_VLLM, "0.19.0", MAQ_WEIGHTS_FP8_BLOCK, "b200") == 1);
    assert_true(query_conversions(MAQ_ENGINE_SGLANG, "0.5.9", MAQ_WEIGHTS_FP8_BLOCK, "b200") == 0);
    assert_true(query_conversions(MAQ_ENGINE_TRTLLM, "1.2.0", MAQ_WEIGHTS_FP8, "b200") == 0);
}

/* Of the table's rows: on Blackwell SGLang's have its engine's load of the weights' scales in each product of blocks, and TensorRT-LLM's answer. */
static void test_scales_are_packed_once(void **state)
{
    const struct maq_serve_options o = {.engine = MAQ_ENGINE_SGLANG,
                                        .version = "0.5.9",
                                        .weights = MAQ_WEIGHTS_FP8_BLOCK,
                                        .expert_weights = MAQ_WEIGHTS_FP8_BLOCK};
    const struct maq_op op = {.kind = MAQ_OP_GEMM, .dtype = MAQ_FP8, .flags = MAQ_OP_BLOCKS, .d = {16, 4096, 4096, 1}};
    static const char *const devices[] = {"h200", "b200"};
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(devices); i++) {
        struct subject s;
        set_up(&s, "llama-3.1-8b", devices[i], &o);
        struct maq_costs sglang = s.p.costs, trtllm = s.p.costs;
        trtllm.library = MAQ_LIBRARY_TRTLLM;
        double own = maq_cost_op(&sglang, &op, s.p.device).seconds,
               other = maq_cost_op(&trtllm, &op, s.p.device).seconds;
        assert_true(maq_pass_seconds(&s.p, &op) == (i == 0 ? own : other));
        assert_true(i == 0 || own > other + 7e-6); /* four kernels */
        tear_down(&s);
    }
}

static double experts_s(const char *type, enum maq_engine engine, const char *version, const char *device,
                        int64_t tokens)
{
    const struct maq_serve_options o = {.engine = engine, .version = version};
    struct subject s;
    set_up(&s, "minimax-m2", device, &o);
    assert_string_equal(s.p.job->model.type, "minimax_m2");
    struct maq_job job = *s.p.job;
    job.model.type = type;
    s.p.job = &job;
    double ns = decodes(&s, tokens).ns[MAQ_SERVE_EXPERTS];
    tear_down(&s);
    return ns * 1e-9;
}

/* Of MiniMax's 62 layers, on top of the product in 16 bits; `kernels` says who has some of its own. */
static double wide_s(enum maq_engine engine, const char *version, const char *device, int64_t tokens)
{
    double alike = experts_s("mixtral", engine, version, device, tokens);
    return (experts_s("minimax_m2", engine, version, device, tokens) - alike) / 62;
}

static void test_routers_in_32_bits(void **state)
{
    (void)state;
    /* 2 x 4,096 x 256 x 3,072 FLOP at 67 TFLOP/s are 96 us, and no kernel reaches all of it */
    double h200 = wide_s(MAQ_ENGINE_VLLM, "0.19.0", "h200", 4096), last = 0;
    assert_true(h200 > 90e-6 && h200 < 150e-6);
    for (int64_t tokens = 64; tokens <= 4096; tokens *= 2) {
        double s = wide_s(MAQ_ENGINE_VLLM, "0.19.0", "h200", tokens);
        assert_true(s > last);
        last = s;
    }
    assert_true(wide_s(MAQ_ENGINE_SGLANG, "0.5.9", "h200", 4096) > h200); /* the conversion is a kernel */
    assert_true(wide_s(MAQ_ENGINE_VLLM, "0.24.0", "h200", 32) == 0);      /* its own kernel */
    assert_true(wide_s(MAQ_ENGINE_VLLM, "0.24.0", "h200", 64) > 0);
    double three = wide_s(MAQ_ENGINE_VLLM, "0.30.0", "b200", 4096);
    assert_true(three > 0 && three < 0.3 * wide_s(MAQ_ENGINE_VLLM, "0.19.0", "b200", 4096));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_converts),
        cmocka_unit_test(test_who_converts_queries),
        cmocka_unit_test(test_scales_are_packed_once),
        cmocka_unit_test(test_routers_in_32_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
