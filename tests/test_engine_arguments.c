/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_engine_arguments.c - a deployment in the words of its engine, read back as that deployment.
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
#include "maquette/serve_command.h"
#include "report/serve/engine_arguments.h"
#include "serve_jobs.h"

#define CASES 600

static int32_t some(uint64_t *draws, int32_t n)
{
    return draw(draws, 0, 1) ? 0 : n;
}

/* What a planner may set, and what its user may have told. */
static struct maq_serve_options options_by_chance(uint64_t *draws, enum maq_engine engine)
{
    static const enum maq_serve_exchange exchanges[] = {MAQ_EXCHANGE_AUTO, MAQ_EXCHANGE_GATHER,
                                                        MAQ_EXCHANGE_DEEPEP_NORMAL, MAQ_EXCHANGE_DEEPEP_LOW_LATENCY,
                                                        MAQ_EXCHANGE_ONE_SIDED};
    struct maq_serve_options o = {.engine = engine,
                                  .dp = 1 << draw(draws, 0, 3),
                                  .ep = 1,
                                  .max_num_seqs = some(draws, (int32_t)draw(draws, 1, 2000)),
                                  .max_num_batched_tokens = some(draws, (int32_t)draw(draws, 64, 20000)),
                                  .max_model_len = some(draws, (int32_t)draw(draws, 64, 100000))};
    if (engine == MAQ_ENGINE_TRTLLM) {
        o.dp = 1; /* of its ranks of attention the command line says nothing */
        o.chunked_prefill = draw(draws, 0, 1);
        o.free_memory_share = draw(draws, 0, 1) ? 0.85 : 0;
        return o;
    }
    if (draw(draws, 0, 2) == 0)
        o.weights = o.expert_weights = MAQ_WEIGHTS_FP8;
    o.kv_fp8 = draw(draws, 0, 1);
    o.no_prefix_caching = draw(draws, 0, 1);
    o.enforce_eager = draw(draws, 0, 1);
    o.block_size = some(draws, 32);
    o.async_scheduling = draw(draws, 0, 1) ? MAQ_OFF : MAQ_AUTO;
    static const enum maq_draft_method methods[] = {MAQ_DRAFT_NONE, MAQ_DRAFT_NGRAM, MAQ_DRAFT_EAGLE3, MAQ_DRAFT_MTP};
    o.speculation.method = methods[draw(draws, 0, MAQ_COUNT(methods) - 1)];
    o.speculation.tokens = o.speculation.method == MAQ_DRAFT_NONE ? 0 : (int32_t)draw(draws, 1, 5);
    o.lora.enabled = draw(draws, 0, 2) == 0;
    o.lora.max_loras = o.lora.enabled ? some(draws, 4) : 0;
    o.lora.max_lora_rank = o.lora.enabled ? some(draws, 64) : 0;
    if (engine == MAQ_ENGINE_SGLANG) {
        o.static_memory_share = draw(draws, 0, 1) ? 0.82 : 0;
        return o;
    }
    o.exchange = o.dp > 1 ? exchanges[draw(draws, 0, MAQ_COUNT(exchanges) - 1)] : MAQ_EXCHANGE_AUTO;
    o.gpu_memory_utilization = draw(draws, 0, 1) ? 0.93 : 0;
    o.long_prefill_token_threshold = some(draws, 512);
    o.by_priority = draw(draws, 0, 1);
    o.blocks = some(draws, 5000);
    return o;
}

static uint32_t words_of(const char **words, const struct maq_engine_arguments *a, const char *model)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < 4 && a->program[i]; i++)
        words[n++] = a->program[i];
    if (a->model)
        words[n++] = a->model;
    words[n++] = model;
    for (uint32_t i = 0; i < a->n; i++) {
        words[n++] = a->at[i].flag;
        if (a->at[i].value[0])
            words[n++] = a->at[i].value;
    }
    return n;
}

/* Of several, the last one holds. */
static int32_t degree(const struct maq_serve_command *c, const char *path)
{
    int32_t n = 1;
    for (size_t i = 0; i < c->n_overrides; i++)
        if (strcmp(c->overrides[i].path, path) == 0)
            n = (int32_t)strtol(c->overrides[i].value, NULL, 10);
    return n;
}

static void expect_same_options(const struct maq_serve_options *a, const struct maq_serve_options *b)
{
    assert_int_equal(a->engine, b->engine);
    assert_int_equal(a->weights, b->weights);
    assert_int_equal(a->expert_weights, b->expert_weights);
    assert_int_equal(a->kv_fp8, b->kv_fp8);
    assert_int_equal(a->exchange, b->exchange);
    assert_int_equal(a->max_num_seqs, b->max_num_seqs);
    assert_int_equal(a->max_num_batched_tokens, b->max_num_batched_tokens);
    assert_int_equal(a->max_model_len, b->max_model_len);
    assert_int_equal(a->speculation.method, b->speculation.method);
    assert_int_equal(a->speculation.tokens, b->speculation.tokens);
    assert_int_equal(a->lora.enabled, b->lora.enabled);
    assert_int_equal(a->lora.max_loras, b->lora.max_loras);
    assert_int_equal(a->lora.max_lora_rank, b->lora.max_lora_rank);
    assert_int_equal(a->block_size, b->block_size);
    assert_int_equal(a->blocks, b->blocks);
    assert_int_equal(a->long_prefill_token_threshold, b->long_prefill_token_threshold);
    assert_int_equal(a->no_prefix_caching, b->no_prefix_caching);
    assert_int_equal(a->no_chunked_prefill, b->no_chunked_prefill);
    assert_int_equal(a->chunked_prefill, b->chunked_prefill);
    assert_int_equal(a->enforce_eager, b->enforce_eager);
    assert_int_equal(a->by_priority, b->by_priority);
    assert_int_equal(a->async_scheduling, b->async_scheduling);
    assert_true(a->gpu_memory_utilization == b->gpu_memory_utilization);
    assert_true(a->static_memory_share == b->static_memory_share);
    assert_true(a->free_memory_share == b->free_memory_share);
}

static void test_read_back(void **state)
{
    (void)state;
    struct maq_loaded_job *job = load("qwen3-30b-a3b", "h100-sxm:8", "", 8);
    for (uint64_t seed = 1; seed <= CASES; seed++) {
        uint64_t draws = seed;
        struct maq_job own = *maq_job_get(job);
        struct maq_serve_options o = options_by_chance(&draws, (enum maq_engine)(seed % MAQ_ENGINE_COUNT));
        own.plan.tp = 1 << draw(&draws, 0, 3);
        own.plan.pp = 1 << draw(&draws, 0, 1);
        bool experts = draw(&draws, 0, 1) && own.plan.tp * o.dp > 1;
        o.ep = experts ? own.plan.tp * o.dp : 1;
        struct maq_engine_arguments a;
        const char *words[2 * MAQ_ENGINE_ARGUMENTS_MOST + 8];
        struct maq_serve_command *c = NULL;
        struct maq_diag *diag = maq_diag_new();
        maq_engine_arguments(&a, &own, &o);
        uint32_t n = words_of(words, &a, own.model.name);
        if (maq_serve_command_read(&c, words, n, diag) != MAQ_OK || maq_diag_count(diag) > 0)
            fail_msg("%s", maq_diag_format(diag, 0, false));
        assert_false(a.other_checkpoint);
        expect_same_options(&o, &c->options);
        assert_int_equal(degree(c, "plan.tensor_model_parallel_size"), own.plan.tp);
        assert_int_equal(degree(c, "plan.pipeline_model_parallel_size"), own.plan.pp);
        int32_t dp = o.engine == MAQ_ENGINE_VLLM ? c->dp : c->options.dp;
        assert_int_equal(dp > 1 ? dp : 1, o.dp);
        if (o.engine == MAQ_ENGINE_VLLM)
            assert_int_equal(c->expert_parallel, experts);
        else
            assert_int_equal(c->options.ep > 1 ? c->options.ep : 1, o.ep);
        maq_serve_command_free(c);
        maq_diag_free(diag);
    }
    maq_job_free(job);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_read_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
