/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_blocks.c - degrees that cut through a block of weights with a scale, which engines refuse; and what their CUDA graphs take of the memory.
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
#include "serve/codes.h"
#include "serve/engine/deployment.h"
#include "serve_jobs.h"

/* NULL: it is served; else what the hint has in it. */
static void expect_blocks(const char *model, int tp, struct maq_serve_options o, const char *hint)
{
    char plan[32];
    snprintf(plan, sizeof plan, ", tp: %d", tp);
    struct maq_loaded_job *job = load(model, "h200:8 x 4, rail 400G", plan, 32);
    struct maq_diag *diag = maq_diag_new();
    enum maq_status status = maq_blocks_check(maq_job_get(job), &o, diag);
    const struct maq_str got = maq_diag_count(diag) > 0 ? maq_diag_at(diag, 0)->hint : (struct maq_str){0};
    if (status != (hint ? MAQ_BAD_INPUT : MAQ_OK) || (hint && !maq_str_is(got, hint)))
        fail_msg("%s, %s %s, tp %d, ep %d: status %d, hint '%.*s', expected '%s'", model, maq_engine_name(o.engine),
                 o.version ? o.version : "", tp, o.ep, (int)status, (int)got.len, got.ptr ? got.ptr : "",
                 hint ? hint : "");
    if (hint)
        assert_int_equal(maq_diag_at(diag, 0)->code, MAQ_CODE_SERVE_RANKS);
    maq_diag_free(diag);
    maq_job_free(job);
}

static struct maq_serve_options blocks(enum maq_engine engine, const char *version, int ep)
{
    return (struct maq_serve_options){.engine = engine,
                                      .version = version,
                                      .weights = MAQ_WEIGHTS_FP8_BLOCK,
                                      .expert_weights = MAQ_WEIGHTS_FP8_BLOCK,
                                      .ep = ep};
}

static void test_experts(void **state)
{
    (void)state;
    /* 1,536 / 8 = 192: 64 divides it, 128 does not */
    expect_blocks("qwen3-235b-a22b", 4, blocks(MAQ_ENGINE_SGLANG, NULL, 1), NULL);
    expect_blocks("qwen3-235b-a22b", 8, blocks(MAQ_ENGINE_SGLANG, NULL, 1), "--ep 8, or --tp 4");
    expect_blocks("qwen3-235b-a22b", 8, blocks(MAQ_ENGINE_SGLANG, NULL, 2), NULL);
    expect_blocks("qwen3-235b-a22b", 8, blocks(MAQ_ENGINE_SGLANG, NULL, 8), NULL);
    expect_blocks("qwen3-235b-a22b", 8, blocks(MAQ_ENGINE_VLLM, "0.18.0", 1), "--ep 8, or --tp 4");
    expect_blocks("qwen3-235b-a22b", 8, blocks(MAQ_ENGINE_VLLM, NULL, 1), NULL);
    /* 768 / 32 = 24 and 768 / 16 = 48 have nothing of 32 and more in common with 128, 768 / 8 = 96 has */
    expect_blocks("qwen3-30b-a3b", 32, blocks(MAQ_ENGINE_VLLM, NULL, 1), "--ep 32, or --tp 8");
    expect_blocks("qwen3-30b-a3b", 32, blocks(MAQ_ENGINE_VLLM, NULL, 32), NULL);
    expect_blocks("qwen3-235b-a22b", 8, blocks(MAQ_ENGINE_TRTLLM, NULL, 1), NULL);
    struct maq_serve_options o = blocks(MAQ_ENGINE_SGLANG, NULL, 1);
    o.as_it_ran = true;
    expect_blocks("qwen3-235b-a22b", 8, o, NULL);
    o = blocks(MAQ_ENGINE_SGLANG, NULL, 1);
    o.expert_weights = o.weights = MAQ_WEIGHTS_FP8;
    expect_blocks("qwen3-235b-a22b", 8, o, NULL);
    /* two batches that share experts: as many ranks cut them */
    o = blocks(MAQ_ENGINE_SGLANG, NULL, 1);
    o.dp = 2;
    expect_blocks("qwen3-235b-a22b", 4, o, "--ep 8, or --tp 2");
}

static void test_linears(void **state)
{
    (void)state;
    /* 9,728 / 8 = 1,216 inputs of the down projection; gate and up have as many outputs each */
    expect_blocks("qwen3-4b", 4, blocks(MAQ_ENGINE_VLLM, NULL, 1), NULL);
    expect_blocks("qwen3-4b", 8, blocks(MAQ_ENGINE_VLLM, NULL, 1), "--tp 4");
    expect_blocks("qwen3-4b", 8, blocks(MAQ_ENGINE_SGLANG, NULL, 1), "--tp 4");
    expect_blocks("qwen3-8b", 8, blocks(MAQ_ENGINE_SGLANG, NULL, 1), NULL);
    /* 8 heads of keys on 16 ranks are whole on two each */
    expect_blocks("qwen3-8b", 16, blocks(MAQ_ENGINE_SGLANG, NULL, 1), NULL);
    /* 18,432 / 32 = 576 of the first, dense layers */
    expect_blocks("deepseek-v3", 16, blocks(MAQ_ENGINE_SGLANG, NULL, 16), NULL);
    expect_blocks("deepseek-v3", 32, blocks(MAQ_ENGINE_SGLANG, NULL, 32), "--tp 16");
    expect_blocks("qwen3-4b", 8, (struct maq_serve_options){.engine = MAQ_ENGINE_SGLANG}, NULL); /* 16 bits */
}

/* A deployment says it before anything is simulated. */
static void test_deployment(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("qwen3-4b", "h100-sxm:8", ", tp: 8", 8);
    struct maq_serve_options o = blocks(MAQ_ENGINE_VLLM, NULL, 1);
    struct maq_diag *diag = maq_diag_new();
    struct maq_deployment d;
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), &o, diag), MAQ_BAD_INPUT);
    assert_true(maq_str_starts(maq_diag_at(diag, 0)->msg, "linear_fc2 of qwen3-4b has 1216 inputs on each of 8 ranks"));
    maq_deployment_fini(&d);
    maq_diag_free(diag);
    maq_job_free(job);
}

static double graphs_of(struct maq_serve_options o)
{
    struct maq_loaded_job *job = load("llama-3.1-8b", "h100-sxm:1", "", 1);
    struct maq_deployment d;
    assert_int_equal(maq_deployment_init(&d, maq_job_get(job), &o, NULL), MAQ_OK);
    double bytes = d.memory[MAQ_SERVE_MEM_GRAPHS];
    maq_deployment_fini(&d);
    maq_job_free(job);
    return bytes;
}

static void test_graphs(void **state)
{
    (void)state;
    struct maq_serve_options o = {.engine = MAQ_ENGINE_VLLM, .max_num_seqs = 1024, .max_num_batched_tokens = 8192};
    /* 51 sizes to 512 tokens. 36 KiB for each kernel of a decode, and for those between the attentions; the pool and 32 parts of the results of
     * FlashAttention-3, in 32 bits with a sum for each head, are of 512 tokens */
    double wide = graphs_of(o), layer = 32 * 36.0 * 1024, splits = 32 * 32 * 129 * 4.0,
           pool = 512.0 * (4096 * 4 + 57344 * 2.0 + splits);
    assert_true(wide > 51 * layer * (8 + 6) + 512 * splits && wide < 51 * layer * (12 + 10) + pool);
    struct maq_serve_options few = o, eager = o, older = o, none = o, sglang = o;
    few.max_num_seqs = 16; /* 1, 2, 4, 8, 16 of decodes, and 24 and 32 of others; the pool is of 32 tokens */
    assert_true(graphs_of(few) > 7.0 / 51 * 0.7 * (wide - pool) && graphs_of(few) < 7.0 / 51 * wide);
    eager.enforce_eager = true;
    older.version = "0.20.0";
    none.graph_tokens = -1;
    sglang.engine = MAQ_ENGINE_SGLANG;
    assert_true(graphs_of(eager) == 0 && graphs_of(older) == 0 && graphs_of(none) == 0 && graphs_of(sglang) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_experts), cmocka_unit_test(test_linears),
                                       cmocka_unit_test(test_deployment), cmocka_unit_test(test_graphs)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
