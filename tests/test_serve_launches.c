/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_launches.c - which passes are CUDA graphs, by engine and release, and what a host takes that launches the others.
 *
 * Sizes are read off the engines (graph_sizes.c). A pass takes what its kernels take or what launching them does, whichever is longer.
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

static void expect_launch(const struct maq_serve_options *o, int64_t tokens, uint32_t prompts,
                          enum maq_launch_mode mode, int64_t padded)
{
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:1", "", 1);
    struct maq_deployment d;
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), o, NULL), MAQ_OK);
    struct maq_batch_launch l = maq_batch_launch(&d, tokens, prompts, 1);
    if (l.mode != mode || l.padded != padded)
        fail_msg("%s %s, %lld tokens, %u prompts: mode %d padded to %lld", maq_engine_name(o->engine),
                 o->version ? o->version : "", (long long)tokens, prompts, (int)l.mode, (long long)l.padded);
    maq_deployment_fini(&d);
    maq_job_free(job);
}

static void test_modes(void **state)
{
    (void)state;
    struct maq_serve_options vllm = {.engine = MAQ_ENGINE_VLLM, .max_num_seqs = 256}, few = vllm, eager = vllm,
                             none = vllm, sglang = {.engine = MAQ_ENGINE_SGLANG}, older = sglang, off = sglang,
                             small = sglang, drafts = sglang, trtllm = {.engine = MAQ_ENGINE_TRTLLM};
    few.max_num_seqs = 16;
    none.graph_tokens = -1;
    eager.enforce_eager = true;
    older.version = "0.5.9";
    off.sglang.prefill_graph_tokens = -1;
    small.sglang.prefill_graph_tokens = 512;
    drafts.version = "0.5.10";
    struct maq_serve_options first = vllm, graphs = vllm, pieces = vllm;
    first.version = "0.2.5";
    graphs.version = "0.7.3";
    pieces.version = "0.10.2";
    drafts.speculation = (struct maq_speculation){.method = MAQ_DRAFT_NGRAM, .tokens = 3};
    expect_launch(&vllm, 100, 0, MAQ_LAUNCH_MODE_GRAPH, 104);
    expect_launch(&vllm, 400, 1, MAQ_LAUNCH_MODE_PIECES, 400);
    expect_launch(&vllm, 513, 1, MAQ_LAUNCH_MODE_COMPILED, 513);
    expect_launch(&few, 33, 1, MAQ_LAUNCH_MODE_COMPILED, 33); /* up to twice max_num_seqs */
    expect_launch(&eager, 1, 0, MAQ_LAUNCH_MODE_EAGER, 1);
    expect_launch(&none, 1, 0, MAQ_LAUNCH_MODE_COMPILED, 1);
    expect_launch(&first, 1, 0, MAQ_LAUNCH_MODE_EAGER, 1);
    expect_launch(&graphs, 100, 0, MAQ_LAUNCH_MODE_GRAPH, 104);
    expect_launch(&graphs, 257, 0, MAQ_LAUNCH_MODE_EAGER, 257);
    expect_launch(&graphs, 100, 1, MAQ_LAUNCH_MODE_EAGER, 100);
    expect_launch(&pieces, 100, 0, MAQ_LAUNCH_MODE_PIECES, 104);
    expect_launch(&pieces, 513, 0, MAQ_LAUNCH_MODE_COMPILED, 513);
    expect_launch(&sglang, 100, 0, MAQ_LAUNCH_MODE_GRAPH, 104);
    expect_launch(&sglang, 1000, 1, MAQ_LAUNCH_MODE_PIECES, 1024);
    expect_launch(&sglang, 8192, 2, MAQ_LAUNCH_MODE_PIECES, 8192);
    expect_launch(&small, 513, 1, MAQ_LAUNCH_MODE_EAGER, 513);
    expect_launch(&off, 1000, 1, MAQ_LAUNCH_MODE_EAGER, 1000);
    expect_launch(&older, 1000, 1, MAQ_LAUNCH_MODE_EAGER, 1000);
    expect_launch(&drafts, 1000, 1, MAQ_LAUNCH_MODE_EAGER, 1000);
    expect_launch(&trtllm, 100, 0, MAQ_LAUNCH_MODE_GRAPH, 104);
    expect_launch(&trtllm, 100, 1, MAQ_LAUNCH_MODE_EAGER, 100);
}

/* Before 0.11 decodes are in pieces too, and one is a graph and the two kernels of an attention. */
static void test_pieces(void **state)
{
    (void)state;
    struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM, .version = "0.10.2"};
    struct maq_host_profile h = maq_host_profile_of(&o);
    expect_close(h.piece_s, h.graph_s + 2 * h.eager_s, 1e-12, "0.10.2");
    o.version = "0.11.0";
    expect_close(maq_host_profile_of(&o).piece_s, 280e-6, 1e-12, "0.11.0, measured");
}

/* A prompt of so many tokens, as one pass on an H100, of so many layers of experts. */
static void expect_pass(enum maq_engine engine, const char *model, int64_t tokens, uint32_t experts, bool by_host)
{
    struct maq_loaded_job *job = load(model, "h100-sxm:1", "", 1);
    struct maq_deployment d;
    const struct maq_serve_options o = {.engine = engine, .max_num_batched_tokens = 8192};
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), &o, NULL), MAQ_OK);
    const struct maq_pass_chunk chunk = {tokens, 0};
    const struct maq_pass_batch b = {
        .chunks = &chunk, .n_chunks = 1, .tokens = tokens, .padded = tokens, .sampled = 1, .queries = 1};
    const struct maq_host_profile *h = &d.host;
    struct maq_pass_parts parts;
    double s = maq_batch_stage_s(&d, 0, &b, MAQ_LAUNCH_MODE_EAGER, &parts), device = 0,
           layer = engine == MAQ_ENGINE_SGLANG ? h->experts_s : h->library_experts_s,
           host = (h->pass_s + parts.kernels * h->eager_s + experts * layer) / maq_device_host_speed(d.device);
    assert_true(parts.kernels >= d.passes.stages[0].depth * 8.0);
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        device += i == MAQ_SERVE_LAUNCH ? 0 : parts.ns[i] * 1e-9;
    assert_true(by_host == (host > device));
    expect_close(s, by_host ? host : device, 1e-12, "the longer");
    expect_close(parts.ns[MAQ_SERVE_LAUNCH] * 1e-9, by_host ? host - device : 0, 1e-9, "what the device waits");
    maq_deployment_fini(&d);
    maq_job_free(job);
}

static void test_passes(void **state)
{
    (void)state;
    expect_pass(MAQ_ENGINE_TRTLLM, "llama-3.1-8b", 64, 0, true);
    expect_pass(MAQ_ENGINE_TRTLLM, "llama-3.1-8b", 8192, 0, false);
    expect_pass(MAQ_ENGINE_TRTLLM, "qwen3-30b-a3b", 64, 48, true);
    expect_pass(MAQ_ENGINE_TRTLLM, "qwen3-30b-a3b", 8192, 48, false);
    expect_pass(MAQ_ENGINE_SGLANG, "qwen3-30b-a3b", 64, 48, true);
}

/* What a layer of experts takes Python hangs on who computes them. */
static void test_experts(void **state)
{
    (void)state;
    for (int i = 0; i < 4; i++) {
        struct maq_loaded_job *job = load("qwen3-235b-a22b", i == 3 ? "b200:8" : "h200:8", ", tp: 8", 8);
        const struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM,
                                            .version = i == 2 ? "0.12.0" : "0.18.0",
                                            .weights = MAQ_WEIGHTS_FP8_BLOCK,
                                            .expert_weights = MAQ_WEIGHTS_FP8_BLOCK,
                                            .ep = i == 1 ? 1 : 8,
                                            .as_it_ran = true};
        struct maq_deployment d;
        assert_int_equal(maq_deployment_init(&d, maq_job_get(job), &o, NULL), MAQ_OK);
        const struct maq_host_profile *h = &d.host;
        double layer = i == 0   ? h->library_experts_s
                       : i == 3 ? 0
                                : h->experts_s; /* FlashInfer; Triton; DeepGEMM; one call */
        double want = (h->pass_s + 1000 * h->compiled_s + 94 * layer) / maq_device_host_speed(d.device);
        expect_close(
            maq_launch_s(&d, MAQ_LAUNCH_MODE_COMPILED, &d.passes, 0, &(struct maq_pass_parts){.kernels = 1000}), want,
            1e-12, "a compiled pass");
        maq_deployment_fini(&d);
        maq_job_free(job);
    }
}

/* Of gpt-oss, whose kernels in MXFP4 Python calls on Hopper, and which has graphs of more tokens; a number that is given goes before. */
static void test_gpt_oss(void **state)
{
    static const struct {
        const char *version, *cluster;
        int32_t given;
        int64_t largest; /* prompt that is a graph */
        bool by_python;
    } cases[] = {{"0.18.0", "h200:1", 0, 1024, true},
                 {"0.18.0", "b200:1", 0, 1024, false},
                 {"0.10.0", "h200:1", 0, 512, true},
                 {"0.18.0", "h200:1", 2048, 2048, true},
                 {"0.18.0", "h200:1", 9000, 8192, true}};
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_loaded_job *job = load("gpt-oss-120b", cases[i].cluster, "", 1);
        const struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM,
                                            .version = cases[i].version,
                                            .graph_tokens = cases[i].given,
                                            .max_num_batched_tokens = 8192,
                                            .expert_weights = MAQ_WEIGHTS_MXFP4};
        struct maq_deployment d;
        assert_int_equal(maq_deployment_init(&d, maq_job_get(job), &o, NULL), MAQ_OK);
        assert_int_equal(maq_batch_launch(&d, cases[i].largest, 1, 1).mode, MAQ_LAUNCH_MODE_PIECES);
        assert_int_equal(maq_batch_launch(&d, cases[i].largest + 1, 1, 1).mode, MAQ_LAUNCH_MODE_COMPILED);
        const struct maq_host_profile *h = &d.host;
        double want = (h->pass_s + 36 * (cases[i].by_python ? h->experts_s : 0)) / maq_device_host_speed(d.device);
        expect_close(maq_launch_s(&d, MAQ_LAUNCH_MODE_COMPILED, &d.passes, 0, &(struct maq_pass_parts){0}), want, 1e-12,
                     "a compiled pass");
        maq_deployment_fini(&d);
        maq_job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_modes), cmocka_unit_test(test_pieces),
                                       cmocka_unit_test(test_passes), cmocka_unit_test(test_experts),
                                       cmocka_unit_test(test_gpt_oss)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
