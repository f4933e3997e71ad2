/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_recurrent.c - the kernels that engines launch for a layer with a state: how many, what they read and write, what the host has of them.
 *
 * The numbers of kernels are counted in the engines' sources (src/serve/pass/recurrent.c says where), by release and generation of GPU.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/check.h"
#include "serve/engine/batch.h"
#include "serve_jobs.h"

enum { TOKENS = 2000, SEQUENCES = 8 };

/* A layer with a state of a deployment on one GPU. */
struct fixture {
    struct maq_loaded_job *job;
    struct maq_arena arena;
    struct maq_passes passes;
    const struct maq_layer *layer;
    const struct maq_module *rule;
};

static void open_fixture(struct fixture *f, const char *model, const char *cluster, enum maq_engine engine,
                         const char *version, enum maq_weights weights)
{
    const struct maq_serve_options o = {
        .engine = engine, .version = version, .weights = weights, .expert_weights = weights};
    f->job = load(model, cluster, "", 1);
    maq_arena_init(&f->arena, 0);
    assert_int_equal(maq_passes_init(&f->passes, maq_job_get(f->job), &o, 2 * TOKENS, &f->arena), MAQ_OK);
    f->layer = NULL;
    const struct maq_pass_stage *s = &f->passes.stages[0];
    for (uint32_t k = 0; k < s->n_layers && !f->layer; k++)
        for (uint32_t i = 0; i < s->layers[k].layer->n_modules; i++)
            if (maq_pass_is_scan(&s->layers[k].layer->modules[i]) &&
                s->layers[k].layer->modules[i].kind != MAQ_MODULE_CONV1D) {
                f->layer = s->layers[k].layer;
                f->rule = &f->layer->modules[i];
            }
    assert_non_null(f->layer);
}

static void close_fixture(struct fixture *f)
{
    maq_arena_fini(&f->arena);
    maq_job_free(f->job);
}

static struct maq_pass_parts mixer_of(const struct fixture *f, bool prompts)
{
    const struct maq_pass_chunk chunks[2] = {{TOKENS / 2, 0}, {TOKENS / 2, 0}};
    struct maq_pass_batch b = {.tokens = TOKENS, .padded = TOKENS, .queries = 1, .chunks = chunks, .n_chunks = 2};
    if (!prompts)
        b = (struct maq_pass_batch){.tokens = SEQUENCES, .padded = SEQUENCES, .queries = 1, .decodes = SEQUENCES};
    struct maq_pass_parts parts = {0};
    maq_pass_mixer(&f->passes, f->layer, 1, &b, MAQ_MIXER_WHOLE, &parts);
    return parts;
}

static void test_kernels(void **state)
{
    static const struct {
        const char *model, *cluster;
        enum maq_engine engine;
        const char *version;
        int prompts, decodes, between;
    } cases[] = {
        {"qwen3.5-9b", "h100-sxm:1", MAQ_ENGINE_VLLM, NULL, 12, 4, 8},
        {"qwen3.5-9b", "a100-80gb:1", MAQ_ENGINE_VLLM, NULL, 15, 4, 11},
        {"qwen3.5-9b", "h100-sxm:1", MAQ_ENGINE_SGLANG, "0.5.9", 14, 2, 12},
        {"qwen3.5-9b", "h100-sxm:1", MAQ_ENGINE_SGLANG, "0.5.10", 14, 3, 11},
        {"qwen3.5-9b", "h100-sxm:1", MAQ_ENGINE_SGLANG, "0.5.14", 12, 3, 9},
        {"qwen3.5-9b", "h100-sxm:1", MAQ_ENGINE_SGLANG, "0.5.23", 11, 2, 9},
        {"qwen3.5-397b-a17b", "h100-sxm:1", MAQ_ENGINE_SGLANG, "0.5.23", 13, 2, 11}, /* 12,288 channels: three copies */
        {"nemotron-h-8b", "h100-sxm:1", MAQ_ENGINE_VLLM, NULL, 6, 2, 4},
    };
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct fixture f;
        open_fixture(&f, cases[i].model, cases[i].cluster, cases[i].engine, cases[i].version, MAQ_WEIGHTS_BF16);
        struct maq_pass_parts prompts = mixer_of(&f, true), decodes = mixer_of(&f, false);
        if ((int)prompts.kernels != cases[i].prompts || (int)decodes.kernels != cases[i].decodes ||
            (int)prompts.between != cases[i].between || decodes.between > 2)
            fail_msg("%s, %s %s on %s: %g kernels of prompts, %g of decodes, %g and %g between graphs", cases[i].model,
                     maq_engine_name(cases[i].engine), cases[i].version ? cases[i].version : "", cases[i].cluster,
                     prompts.kernels, decodes.kernels, prompts.between, decodes.between);
        close_fixture(&f);
    }
}

/* vLLM fills the output and copies a and b; SGLang 0.5.23 does neither. All else of a decode is of the same bytes. */
static void test_bytes(void **state)
{
    (void)state;
    struct fixture vllm, sglang;
    open_fixture(&vllm, "qwen3.5-9b", "h100-sxm:1", MAQ_ENGINE_VLLM, NULL, MAQ_WEIGHTS_BF16);
    open_fixture(&sglang, "qwen3.5-9b", "h100-sxm:1", MAQ_ENGINE_SGLANG, "0.5.23", MAQ_WEIGHTS_BF16);
    const struct maq_ssm_geometry *g = &vllm.rule->u.ssm;
    double value = (double)g->heads * g->head_dim, key = (double)g->groups * g->state,
           bps = vllm.passes.device->mem_bps;
    struct maq_pass_parts a = mixer_of(&vllm, false), b = mixer_of(&sglang, false);
    expect_close((a.memory_ns - b.memory_ns) * 1e-9, SEQUENCES * (2 * value + 4 * 2 * g->heads) / bps, 1e-9, "a token");
    a = mixer_of(&vllm, true);
    b = mixer_of(&sglang, true);
    double ours = TOKENS * (2 * value + 4 * 2 * g->heads + 4 * (2 * key + value) + 4 * value) +
                  2 * (3 * 8 * value * g->state + 2),
           theirs = TOKENS * (6 * 2 * g->heads + 4 * (2 * key + value)) + 2 * 5;
    expect_close((a.memory_ns - b.memory_ns) * 1e-9, (ours - theirs) / bps, 1e-9, "a prompt");
    close_fixture(&vllm);
    close_fixture(&sglang);
}

/* q, k, v and z are one product; b and a another, in 16 bits where scales are of blocks; four before 0.5.10; the norm is in the gate. */
static void test_products(void **state)
{
    (void)state;
    static const struct {
        enum maq_engine engine;
        const char *version;
        enum maq_weights weights;
        int64_t tokens;
        unsigned n, beside;
    } cases[] = {{MAQ_ENGINE_VLLM, NULL, MAQ_WEIGHTS_FP8_BLOCK, 64, 2, 0},
                 {MAQ_ENGINE_SGLANG, "0.5.23", MAQ_WEIGHTS_BF16, 64, 2, 1},
                 {MAQ_ENGINE_SGLANG, "0.5.23", MAQ_WEIGHTS_BF16, TOKENS, 2, 0},
                 {MAQ_ENGINE_SGLANG, "0.5.9", MAQ_WEIGHTS_BF16, 64, 4, 0}};
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct fixture f;
        struct maq_pass_product parts[MAQ_PASS_PRODUCTS];
        open_fixture(&f, "qwen3.5-9b", "h100-sxm:1", cases[i].engine, cases[i].version, cases[i].weights);
        const struct maq_module *in = NULL;
        uint32_t gates = 0;
        for (uint32_t m = 0; m < f.layer->n_modules; m++) {
            const struct maq_module *at = &f.layer->modules[m];
            in = at->name && strcmp(at->name, "in_proj") == 0 ? at : in;
            gates += maq_pass_is_in_gate(f.layer, at);
        }
        assert_non_null(in);
        assert_int_equal(gates, 1);
        unsigned n = maq_pass_products(&f.passes, f.layer, in, cases[i].tokens, parts), beside = 0;
        int64_t out = 0;
        for (unsigned k = 0; k < n; k++) {
            out += parts[k].out;
            beside += parts[k].beside;
        }
        assert_int_equal(n, cases[i].n);
        assert_int_equal(beside, cases[i].beside);
        assert_int_equal(out, in->out);
        assert_int_equal(maq_pass_products(&f.passes, f.layer, f.rule, 64, parts), 0);
        close_fixture(&f);
    }
}

/* A pass in pieces takes the host as much longer as its recurrent layers launch more than an attention. */
static void test_pieces(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("qwen3.5-9b", "h100-sxm:1", "", 1);
    const struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM};
    struct maq_deployment d;
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), &o, NULL), MAQ_OK);
    const struct maq_pass_parts few = {.kernels = 100}, more = {.kernels = 100, .between = 50};
    double a = maq_launch_s(&d, MAQ_LAUNCH_MODE_PIECES, &d.passes, 0, &few),
           b = maq_launch_s(&d, MAQ_LAUNCH_MODE_PIECES, &d.passes, 0, &more);
    expect_close(b - a, 50 * d.host.eager_s / maq_device_host_speed(d.device), 1e-9, "between pieces");
    expect_close(maq_launch_s(&d, MAQ_LAUNCH_MODE_GRAPH, &d.passes, 0, &few),
                 maq_launch_s(&d, MAQ_LAUNCH_MODE_GRAPH, &d.passes, 0, &more), 0, "one graph");
    maq_deployment_fini(&d);
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kernels), cmocka_unit_test(test_bytes),
                                       cmocka_unit_test(test_products), cmocka_unit_test(test_pieces)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
