/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_serve_command.c - command lines of serving engines as deployments.
 *
 * Each option that sets something is set, in every form that its parser takes; what is passed over, what is said and what is refused are
 * told apart; faults have their places. Shares of memory in other engines' words are closed forms of the deployment that comes out.
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

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "failing_alloc.h"
#include "maquette/serve_command.h"
#include "serve/codes.h"
#include "temp.h"

#define MOST_WORDS 32

/* A line cut at blanks, which lives as long as the words are looked at. */
struct line {
    char text[512];
    const char *words[MOST_WORDS];
    size_t n;
};

static void cut(struct line *l, const char *text)
{
    snprintf(l->text, sizeof l->text, "%s", text);
    l->n = 0;
    for (char *at = l->text; *at;) {
        l->words[l->n++] = at;
        at += strcspn(at, " ");
        if (*at)
            *at++ = '\0';
        assert_true(l->n < MOST_WORDS);
    }
}

static struct maq_serve_command *taken(struct line *l, const char *text)
{
    struct maq_serve_command *c = NULL;
    struct maq_diag *diag = maq_diag_new();
    cut(l, text);
    if (maq_serve_command_read(&c, l->words, l->n, diag) != MAQ_OK)
        fail_msg("%s\n%s", text, maq_diag_format(diag, 0, false));
    maq_diag_free(diag);
    return c;
}

static const char * override(const struct maq_serve_command *c, const char *path)
{
    for (size_t i = 0; i < c->n_overrides; i++)
        if (strcmp(c->overrides[i].path, path) == 0)
            return c->overrides[i].value;
    return NULL;
}

static void expect_override(const struct maq_serve_command *c, const char *path, const char *value)
{
    const char *got = override(c, path);
    if (!got || strcmp(got, value) != 0)
        fail_msg("%s is %s and not %s", path, got ? got : "missing", value);
}

/* ---- the program ---- */

static const struct {
    const char *line;
    enum maq_engine engine;
} programs[] = {
    {"vllm serve m", MAQ_ENGINE_VLLM},
    {"/opt/venv/bin/vllm serve --enforce-eager m", MAQ_ENGINE_VLLM},
    {"CUDA_VISIBLE_DEVICES=0,1 VLLM_USE_V1=1 uv run vllm serve --model m", MAQ_ENGINE_VLLM},
    {"python -m vllm.entrypoints.openai.api_server --model m", MAQ_ENGINE_VLLM},
    {"python3 -u -m vllm.entrypoints.openai.api_server --model=m", MAQ_ENGINE_VLLM},
    {"python vllm/entrypoints/openai/api_server.py --model m", MAQ_ENGINE_VLLM},
    {"python -m sglang.launch_server --model-path m", MAQ_ENGINE_SGLANG},
    {"python3 -m sglang.launch_server --model m", MAQ_ENGINE_SGLANG},
    {"sglang serve --model-path m", MAQ_ENGINE_SGLANG},
    {"trtllm-serve m", MAQ_ENGINE_TRTLLM},
    {"mpirun -n 8 trtllm-serve serve m", MAQ_ENGINE_TRTLLM},
};

static void test_programs(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(programs); i++) {
        struct line l;
        struct maq_serve_command *c = taken(&l, programs[i].line);
        assert_int_equal(c->options.engine, programs[i].engine);
        expect_override(c, "model", "m");
        assert_int_equal(c->n_overrides, 1);
        maq_serve_command_free(c);
    }
}

/* ---- what is set ---- */

static void test_vllm(void **state)
{
    (void)state;
    struct line l;
    struct maq_serve_command *c =
        taken(&l, "vllm serve m -tp 4 --pipeline_parallel_size=2 --max-num-seqs 128 --max-num-batched-tokens 8K "
                  "--max-model-len 32k --block-size 32 --gpu-memory-utilization 0.95 --num-gpu-blocks-override 1000 "
                  "--long-prefill-token-threshold 512 --no-enable-prefix-caching --scheduling-policy priority "
                  "--kv-cache-dtype fp8_e4m3 -ep --max-cudagraph-capture-size 2048");
    const struct maq_serve_options *o = &c->options;
    expect_override(c, "plan.tensor_model_parallel_size", "4");
    expect_override(c, "plan.pipeline_model_parallel_size", "2");
    assert_int_equal(o->max_num_seqs, 128);
    assert_int_equal(o->max_num_batched_tokens, 8192);
    assert_int_equal(o->max_model_len, 32000);
    assert_int_equal(o->block_size, 32);
    assert_int_equal(o->blocks, 1000);
    assert_int_equal(o->graph_tokens, 2048);
    assert_int_equal(o->long_prefill_token_threshold, 512);
    assert_true(fabs(o->gpu_memory_utilization - 0.95) < 1e-12);
    assert_true(o->no_prefix_caching && o->by_priority && o->kv_fp8 && c->expert_parallel && !o->no_chunked_prefill);
    assert_true(!c->weights_said && !o->enforce_eager && o->async_scheduling == MAQ_AUTO);
    maq_serve_command_free(c);

    c = taken(&l, "vllm serve m --max-cudagraph-capture-size 0");
    assert_int_equal(c->options.graph_tokens, -1);
    maq_serve_command_free(c);

    c = taken(&l, "vllm serve m --disable-chunked-prefill --enforce-eager --no-async-scheduling --max-model-len auto");
    assert_true(c->options.no_chunked_prefill && c->options.enforce_eager && c->options.max_model_len == 0);
    assert_int_equal(c->options.async_scheduling, MAQ_OFF);
    maq_serve_command_free(c);

    c = taken(&l, "vllm serve m --async-scheduling -O0 --max-model-len -1 --tensor-parallel 8 --enable-expert-parallel "
                  "--no-enable-expert-parallel -tp 2"); /* cut short; of two the last */
    assert_true(c->options.enforce_eager && c->options.async_scheduling == MAQ_ON && !c->expert_parallel);
    expect_override(c, "plan.tensor_model_parallel_size", "2");
    maq_serve_command_free(c);
}

static void test_sglang(void **state)
{
    (void)state;
    struct line l;
    struct maq_serve_command *c =
        taken(&l, "python -m sglang.launch_server --model-path m --tp 8 --pp-size 2 --ep 4 --max-running-requests 64 "
                  "--chunked-prefill-size 4096 --context-length 16384 --page-size 16 --max-total-tokens 160000 "
                  "--mem-fraction-static 0.85 --disable-radix-cache --disable-cuda-graph --disable-overlap-schedule "
                  "--kv-cache-dtype fp8_e5m2");
    const struct maq_serve_options *o = &c->options;
    expect_override(c, "plan.tensor_model_parallel_size", "8");
    expect_override(c, "plan.pipeline_model_parallel_size", "2");
    assert_true(o->ep == 4 && o->max_num_seqs == 64 && o->max_num_batched_tokens == 4096 && o->max_model_len == 16384);
    assert_true(o->block_size == 16 && o->blocks == 10000 && fabs(o->static_memory_share - 0.85) < 1e-12);
    assert_true(o->no_prefix_caching && o->enforce_eager && o->async_scheduling == MAQ_OFF && o->kv_fp8);
    maq_serve_command_free(c);

    c = taken(&l, "python -m sglang.launch_server --model-path m --chunked-prefill-size -1 --max-total-tokens 5000");
    assert_true(c->options.no_chunked_prefill && c->options.max_num_batched_tokens == 0 && c->options.blocks == 5000);
    maq_serve_command_free(c);

    c = taken(
        &l, "python -m sglang.launch_server --model-path m --schedule-policy dfs-weight --radix-eviction-policy lfu "
            "--schedule-conservativeness 0.3 --max-prefill-tokens 8000 --prefill-max-requests 7 --cuda-graph-max-bs 96 "
            "--enable-mixed-chunk");
    const struct maq_sglang_options *g = &c->options.sglang;
    assert_true(g->policy == MAQ_SGLANG_DFS_WEIGHT && g->eviction == MAQ_RADIX_LFU && g->mixed_chunk);
    assert_true(fabs(g->conservativeness - 0.3) < 1e-12 && g->max_prefill_tokens == 8000 &&
                g->prefill_max_requests == 7 && g->graph_max_requests == 96 && g->prefill_graph_tokens == 0);
    maq_serve_command_free(c);

    c = taken(&l, "python -m sglang.launch_server --model-path m --scheduler-recv-interval 30 --moe-runner-backend "
                  "triton_kernel");
    assert_true(c->options.sglang.recv_interval == 30 && c->options.moe_backend == MAQ_MOE_BACKEND_TRITON);
    maq_serve_command_free(c);
    c = taken(&l, "vllm serve m --moe-backend marlin");
    assert_int_equal(c->options.moe_backend, MAQ_MOE_BACKEND_MARLIN);
    maq_serve_command_free(c);

    c = taken(&l, "python -m sglang.launch_server --model-path m --piecewise-cuda-graph-max-tokens 1024");
    assert_int_equal(c->options.sglang.prefill_graph_tokens, 1024);
    maq_serve_command_free(c);
    c = taken(&l, "python -m sglang.launch_server --model-path m --disable-piecewise-cuda-graph");
    assert_int_equal(c->options.sglang.prefill_graph_tokens, -1);
    maq_serve_command_free(c);
}

static void test_adapters(void **state)
{
    (void)state;
    struct line l;
    struct maq_serve_command *c =
        taken(&l, "vllm serve m --enable-lora --max-loras 4 --max-lora-rank 64 --max-cpu-loras 9 "
                  "--lora-modules a=/a b=/b --port 8000");
    const struct maq_lora_options *o = &c->options.lora;
    assert_true(o->enabled && o->max_loras == 4 && o->max_lora_rank == 64 && o->max_cpu_loras == 9);
    maq_serve_command_free(c);
    c = taken(&l, "vllm serve m --max-loras 4 --no-enable-lora");
    assert_false(c->options.lora.enabled);
    maq_serve_command_free(c);
    c = taken(&l, "python -m sglang.launch_server --model-path m --lora-paths a=/a b=/b --max-loras-per-batch 3");
    assert_true(c->options.lora.enabled && c->options.lora.max_loras == 3);
    maq_serve_command_free(c);
}

/* Attention and FFN on GPUs of their own, by vLLM's plugin: two micro-batches with --enable-dbo, which says nothing of it alone. */
static void test_sides(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int32_t ffn, micro_batches, dp;
        const char *said; /* in the warning; NULL: there is none */
    } cases[] = {
        {"vllm serve m -tp 2 -dp 2 --enable-dbo --additional-config "
         "{\"afd\":{\"role\":\"attention\",\"num_attention_ranks\":4,\"num_ffn_ranks\":2,\"port\":6239}}",
         2, 2, 2, NULL},
        {"vllm serve m --additional-config {\"afd\":{\"afd_connector\":\"P2pNcclAFDConnector\"}}", 1, 1, 0, NULL},
        {"vllm serve m --additional-config {\"afd\":{\"num_ffn_ranks\":3,\"compute_gate_on_attention\":true}}", 3, 1, 0,
         ".afd.compute_gate_on_attention"},
        {"vllm serve m --additional-config {\"other\":{}}", 0, 0, 0, ".other"},
        {"vllm serve m --enable-dbo", 0, 0, 0, "--enable-dbo"},
        {"vllm serve m --enable-dbo --no-enable-dbo", 0, 0, 0, NULL},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct line l;
        struct maq_serve_command *c = NULL;
        struct maq_diag *diag = maq_diag_new();
        cut(&l, cases[i].line);
        assert_int_equal(maq_serve_command_read(&c, l.words, l.n, diag), MAQ_OK);
        assert_int_equal(c->options.afd.ffn_ranks, cases[i].ffn);
        assert_int_equal(c->options.afd.micro_batches, cases[i].micro_batches);
        assert_int_equal(c->dp, cases[i].dp);
        char *text = maq_diag_format(diag, 0, false);
        if (cases[i].said ? !strstr(text, cases[i].said) : maq_diag_count(diag) > 0)
            fail_msg("%s\n%s", cases[i].line, text);
        free(text);
        maq_serve_command_free(c);
        maq_diag_free(diag);
    }
}

/* CUDA graphs, by an object or a member of it: what vLLM does anyway is not told. */
static void test_compilation(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int32_t graph_tokens;
        const char *said; /* in the warning; NULL: there is none */
    } cases[] = {
        {"vllm serve m --compilation-config {\"cudagraph_mode\":\"NONE\"}", -1, NULL},
        {"vllm serve m -cc.cudagraph_mode=NONE", -1, NULL},
        {"vllm serve m -cc.cudagraph_mode=NONE -cc.max_cudagraph_capture_size=64", -1, NULL},
        {"vllm serve m --compilation-config {\"cudagraph_mode\":\"FULL_AND_PIECEWISE\",\"mode\":3}", 0, NULL},
        {"vllm serve m --compilation-config {\"cudagraph_capture_sizes\":[1,64,8]}", 64, NULL},
        {"vllm serve m --compilation-config.max_cudagraph_capture_size 256", 256, NULL},
        {"vllm serve m --compilation-config {\"cudagraph_mode\":\"FULL\",\"pass_config\":{}}", 0, ".pass_config"},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct line l;
        struct maq_serve_command *c = NULL;
        struct maq_diag *diag = maq_diag_new();
        cut(&l, cases[i].line);
        assert_int_equal(maq_serve_command_read(&c, l.words, l.n, diag), MAQ_OK);
        assert_int_equal(c->options.graph_tokens, cases[i].graph_tokens);
        char *text = maq_diag_format(diag, 0, false);
        if (cases[i].said ? !strstr(text, cases[i].said) : maq_diag_count(diag) > 0)
            fail_msg("%s\n%s", cases[i].line, text);
        free(text);
        maq_serve_command_free(c);
        maq_diag_free(diag);
    }
}

static void test_trtllm(void **state)
{
    (void)state;
    struct line l;
    struct maq_serve_command *c =
        taken(&l, "trtllm-serve m --tp_size 4 --pp_size 2 --ep_size 2 --max_batch_size 256 --max_num_tokens 4096 "
                  "--max_seq_len 8192 --kv_cache_free_gpu_memory_fraction 0.8 --host 0.0.0.0 --trust_remote_code");
    const struct maq_serve_options *o = &c->options;
    expect_override(c, "plan.tensor_model_parallel_size", "4");
    expect_override(c, "plan.pipeline_model_parallel_size", "2");
    assert_true(o->ep == 2 && o->max_num_seqs == 256 && o->max_num_batched_tokens == 4096 && o->max_model_len == 8192);
    assert_true(fabs(o->free_memory_share - 0.8) < 1e-12);
    maq_serve_command_free(c);
}

/* Speculative decoding in the words of each engine. */
static void test_drafts(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        enum maq_draft_method method;
        int32_t tokens, branches, verified;
        const char *drafter, *acceptance;
    } rows[] = {
        {"vllm serve m --speculative-config {\"method\":\"eagle3\",\"model\":\"x/e\",\"num_speculative_tokens\":3}",
         MAQ_DRAFT_EAGLE3, 3, 0, 0, "x/e", NULL},
        {"vllm serve m -sc {\"model\":\"yuhuili/EAGLE-LLaMA3-Instruct-8B\",\"num_speculative_tokens\":2}",
         MAQ_DRAFT_EAGLE, 2, 0, 0, "yuhuili/EAGLE-LLaMA3-Instruct-8B", NULL},
        {"vllm serve m --spec-model yuhuili/EAGLE3-LLaMA3.1-Instruct-8B --spec-tokens 4", MAQ_DRAFT_EAGLE3, 4, 0, 0,
         "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", NULL},
        {"vllm serve m --speculative-model x/tiny --num-speculative-tokens 5", MAQ_DRAFT_MODEL, 5, 0, 0, "x/tiny",
         NULL},
        {"vllm serve m --speculative-model [ngram] --num-speculative-tokens 5", MAQ_DRAFT_NGRAM, 5, 0, 0, NULL, NULL},
        {"vllm serve m --speculative-config.method deepseek_mtp --speculative-config.num_speculative_tokens 1",
         MAQ_DRAFT_MTP, 1, 0, 0, NULL, NULL},
        {"vllm serve m -sc "
         "{\"method\":\"ngram\",\"num_speculative_tokens\":2,\"synthetic_acceptance_rates\":[0.5,0.25]}",
         MAQ_DRAFT_NGRAM, 2, 0, 0, NULL, "0.5,0.25"},
        {"python -m sglang.launch_server --model m --speculative-algorithm EAGLE3 --speculative-draft-model-path x/e "
         "--speculative-num-steps 5 --speculative-eagle-topk 4 --speculative-num-draft-tokens 8",
         MAQ_DRAFT_EAGLE3, 5, 4, 8, "x/e", NULL},
        {"python -m sglang.launch_server --model m --speculative-algorithm EAGLE --speculative-num-steps 3 "
         "--speculative-eagle-topk 1 --speculative-num-draft-tokens 9",
         MAQ_DRAFT_MTP, 3, 1, 0, NULL, NULL},
        {"python -m sglang.launch_server --model m --speculative-algorithm STANDALONE --speculative-draft-model x/t "
         "--speculative-num-steps 3",
         MAQ_DRAFT_MODEL, 3, 0, 0, "x/t", NULL},
        {"python -m sglang.launch_server --model m --speculative-algorithm NGRAM", MAQ_DRAFT_NGRAM, 11, 0, 12, NULL,
         NULL},
        {"vllm serve m -sc {\"method\":\"suffix\",\"num_speculative_tokens\":2}", MAQ_DRAFT_NONE, 0, 0, 0, NULL, NULL},
    };
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        struct line l;
        struct maq_serve_command *c = taken(&l, rows[i].line);
        const struct maq_speculation *s = &c->options.speculation;
        const char *drafter = c->drafter ? c->drafter : "", *acceptance = c->acceptance ? c->acceptance : "";
        if (s->method != rows[i].method || s->tokens != rows[i].tokens || s->branches != rows[i].branches ||
            s->verified != rows[i].verified || (c->speculates != NULL) != (s->method != MAQ_DRAFT_NONE) ||
            strcmp(drafter, rows[i].drafter ? rows[i].drafter : "") != 0 ||
            strcmp(acceptance, rows[i].acceptance ? rows[i].acceptance : "") != 0)
            fail_msg("%s: %s %d %d %d '%s' '%s'", rows[i].line, maq_draft_method_name(s->method), s->tokens,
                     s->branches, s->verified, drafter, acceptance);
        maq_serve_command_free(c);
    }
}

/* TensorRT-LLM's file lies over its options; what it has and is not modelled is named by its keys. */
static void test_trtllm_config(void **state)
{
    (void)state;
    char path[] = "/tmp/maq-config-XXXXXX", line[200];
    struct line l;
    temp_text(path,
              "max_batch_size: 96\n"
              "enable_chunked_prefill: true\n"
              "disable_overlap_scheduler: true\n"
              "print_iter_log: true\n"
              "scheduler_config: {capacity_scheduler_policy: MAX_UTILIZATION}\n"
              "kv_cache_config:\n  free_gpu_memory_fraction: 0.7\n  enable_block_reuse: false\n  tokens_per_block: 64\n"
              "  dtype: fp8\n"
              "speculative_config: {decoding_type: Eagle3, max_draft_len: 4, speculative_model: x/head}\n");
    snprintf(line, sizeof line, "trtllm-serve m --max_batch_size 8 --extra_llm_api_options %s", path);
    struct maq_serve_command *c = taken(&l, line);
    const struct maq_serve_options *o = &c->options;
    assert_true(o->max_num_seqs == 96 && o->chunked_prefill && o->max_utilization && o->no_prefix_caching && o->kv_fp8);
    assert_true(o->block_size == 64 && fabs(o->free_memory_share - 0.7) < 1e-12 && o->async_scheduling == MAQ_OFF);
    assert_true(o->speculation.method == MAQ_DRAFT_EAGLE3 && o->speculation.tokens == 4);
    assert_string_equal(c->drafter, "x/head");
    maq_serve_command_free(c);
    write_text(path, "enable_attention_dp: true\n"
                     "attention_dp_config: {enable_balance: true, timeout_iters: 60, batching_wait_iters: 0}\n");
    snprintf(line, sizeof line, "trtllm-serve m --tp_size 4 --ep_size 2 --extra_llm_api_options %s", path);
    c = taken(&l, line);
    expect_override(c, "plan.tensor_model_parallel_size", "1");
    assert_true(c->options.dp == 4 && c->options.ep == 2 && c->options.attention_dp_balance.enabled);
    assert_true(c->options.attention_dp_balance.timeout_iterations == 60 &&
                c->options.attention_dp_balance.batching_iterations == -1);
    maq_serve_command_free(c);
    snprintf(line, sizeof line, "trtllm-serve m --max_batch_size 8 --extra_llm_api_options %s", path);
    static const struct {
        const char *text;
        unsigned code;
        const char *said;
    } files[] = {{"cuda_graph_config: {max_batch_size: 4}\n", MAQ_CODE_COMMAND_SAID, ": cuda_graph_config"},
                 {"scheduler_config: {capacity_scheduler_policy: STATIC_BATCH}\n", MAQ_CODE_COMMAND_SAID,
                  ": scheduler_config.capacity_scheduler_policy"},
                 {"attention_dp_config: {kind: fair}\n", MAQ_CODE_COMMAND_SAID, ": attention_dp_config.kind"},
                 {"max_batch_size: none\n", MAQ_CODE_COMMAND_VALUE, "max_batch_size"},
                 {"kv_cache_config: {tokens_per_block: x}\n", 0, "x"}};
    for (size_t i = 0; i < MAQ_COUNT(files); i++) {
        struct maq_diag *diag = maq_diag_new();
        write_text(path, files[i].text);
        cut(&l, line);
        c = NULL;
        if (maq_serve_command_read(&c, l.words, l.n, diag) == MAQ_OK)
            maq_serve_command_free(c);
        assert_int_equal(maq_diag_count(diag), 1);
        const struct maq_diag_item *item = maq_diag_at(diag, 0);
        assert_true(files[i].code == 0 || item->code == files[i].code);
        char *text = maq_diag_format(diag, 0, false);
        if (!strstr(text, files[i].said))
            fail_msg("%s", text);
        free(text);
        maq_diag_free(diag);
    }
    assert_int_equal(unlink(path), 0);
}

static void test_weights(void **state)
{
    (void)state;
    static const struct {
        const char *line, *model;
        bool said;
        enum maq_weights weights, experts;
    } rows[] = {
        {"vllm serve Qwen/Qwen3-32B", "Qwen/Qwen3-32B", false, MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_BF16},
        {"vllm serve Qwen/Qwen3-32B -q fp8", "Qwen/Qwen3-32B", true, MAQ_WEIGHTS_FP8, MAQ_WEIGHTS_FP8},
        {"vllm serve m --quantization=AWQ", "m", true, MAQ_WEIGHTS_INT4, MAQ_WEIGHTS_INT4},
        {"vllm serve m --quantization experts_int8", "m", true, MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_INT8},
        {"vllm serve m --quantization modelopt_fp4", "m", true, MAQ_WEIGHTS_NVFP4, MAQ_WEIGHTS_NVFP4},
        {"vllm serve RedHatAI/Llama-3.1-8B-Instruct-FP8", "Llama-3.1-8B-Instruct", true, MAQ_WEIGHTS_FP8,
         MAQ_WEIGHTS_FP8},
        {"vllm serve Qwen/Qwen3-32B-AWQ -q awq_marlin", "Qwen3-32B", true, MAQ_WEIGHTS_INT4, MAQ_WEIGHTS_INT4},
        {"vllm serve openai/gpt-oss-120b", "openai/gpt-oss-120b", true, MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_MXFP4},
        {"vllm serve deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1", true, MAQ_WEIGHTS_FP8_BLOCK,
         MAQ_WEIGHTS_FP8_BLOCK},
        {"vllm serve deepseek-ai/DeepSeek-R1-Distill-Llama-70B", "deepseek-ai/DeepSeek-R1-Distill-Llama-70B", false,
         MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_BF16},
        {"vllm serve /models/x-FP8", "/models/x-FP8", false, MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_BF16},
        {"vllm serve m --quantization compressed-tensors", "m", false, MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_BF16},
    };
    for (size_t i = 0; i < MAQ_COUNT(rows); i++) {
        struct line l;
        struct maq_serve_command *c = taken(&l, rows[i].line);
        expect_override(c, "model", rows[i].model);
        if (c->weights_said != rows[i].said || c->options.weights != rows[i].weights ||
            c->options.expert_weights != rows[i].experts)
            fail_msg("%s: %s, %s", rows[i].line, maq_weights_name(c->options.weights),
                     maq_weights_name(c->options.expert_weights));
        maq_serve_command_free(c);
    }
}

/* ---- what is said, and what is not ---- */

static const struct {
    const char *line;
    unsigned code;    /* of the one finding; 0: none */
    const char *text; /* in its message */
} told[] = {
    {"vllm serve m --host 0.0.0.0 --port 8000 --api-key a b --served-model-name x y --chat-template t", 0, ""},
    {"vllm serve m --no-enable-log-requests --disable-log-stats --trust-remote-code --swap-space 4", 0, ""},
    {"vllm serve m --speculative-config {\"method\":\"ngram\"}", 0, ""},
    {"vllm serve m --speculative-config {\"method\":\"suffix\"}", MAQ_CODE_COMMAND_SAID,
     ": --speculative-config suffix"},
    {"vllm serve m --speculative-config {\"method\":\"eagle\",\"parallel_drafting\":true}", MAQ_CODE_COMMAND_SAID,
     ": --speculative-config.parallel_drafting"},
    {"vllm serve m --compilation-config.mode 0", MAQ_CODE_COMMAND_SAID, ": --compilation-config"},
    {"vllm serve m -cc.mode=0", MAQ_CODE_COMMAND_SAID, ": -cc"},
    {"vllm serve m --enable-eplb --cpu-offload-gb 4", MAQ_CODE_COMMAND_SAID, ": --enable-eplb, --cpu-offload-gb"},
    {"vllm serve m --no-enable-eplb --cpu-offload-gb 0 --attention-backend auto -O2 -O 3 -O=2", 0, ""},
    {"vllm serve m --scheduler-reserve-full-isl", 0, ""},
    {"vllm serve m --no-scheduler-reserve-full-isl", MAQ_CODE_COMMAND_SAID, ": --no-scheduler-reserve-full-isl"},
    {"vllm serve m --dtype float32", MAQ_CODE_COMMAND_SAID, ": --dtype float32"},
    {"vllm serve m --dtype bfloat16", 0, ""},
    {"vllm serve m --kv-cache-dtype nvfp4", MAQ_CODE_COMMAND_SAID, ": --kv-cache-dtype nvfp4"},
    {"vllm serve m -q compressed-tensors", MAQ_CODE_COMMAND_SAID, ": -q compressed-tensors"},
    {"vllm serve m -O1", MAQ_CODE_COMMAND_SAID, ": -O 1"},
    {"vllm serve m -dp 1", 0, ""},
    {"vllm serve m-FP8", MAQ_CODE_COMMAND_CHECKPOINT, "weights in fp8;"},
    {"vllm serve gpt-oss-20b", MAQ_CODE_COMMAND_CHECKPOINT, "routed experts in mxfp4"},
    {"python -m sglang.launch_server --model m --schedule-policy hrrn", MAQ_CODE_COMMAND_SAID,
     "--schedule-policy hrrn"},
    {"python -m sglang.launch_server --model m --schedule-policy lpm", 0, ""},
    {"python -m sglang.launch_server --model m --radix-eviction-policy tlru", MAQ_CODE_COMMAND_SAID,
     "--radix-eviction-policy tlru"},
    {"trtllm-serve m --config no-such-file.yaml", MAQ_CODE_COMMAND_SAID, ": --config no-such-file.yaml"},
    {"trtllm-serve m --backend pytorch --max_beam_width 1", 0, ""},
};

static void test_told(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(told); i++) {
        struct line l;
        struct maq_serve_command *c = NULL;
        struct maq_diag *diag = maq_diag_new();
        cut(&l, told[i].line);
        assert_int_equal(maq_serve_command_read(&c, l.words, l.n, diag), MAQ_OK);
        assert_int_equal(maq_diag_errors(diag), 0);
        if (maq_diag_count(diag) != (told[i].code > 0) ||
            (told[i].code > 0 &&
             (maq_diag_at(diag, 0)->code != told[i].code || !strstr(maq_diag_at(diag, 0)->msg.ptr, told[i].text))))
            fail_msg("%s\n%s", told[i].line, maq_diag_format(diag, 0, false));
        maq_serve_command_free(c);
        maq_diag_free(diag);
    }
}

static const struct {
    const char *line;
    unsigned code, column;
    const char *hint;
} faults[] = {
    {"", MAQ_CODE_COMMAND_ENGINE, 0, "vllm serve"},
    {"python train.py --x 1", MAQ_CODE_COMMAND_ENGINE, 0, "trtllm-serve"},
    {"vllm bench m", MAQ_CODE_COMMAND_ENGINE, 0, ""},
    {"vllm serve m --tensor-paralel-size 4", MAQ_CODE_COMMAND_OPTION, 14, "'--tensor-parallel-size'"},
    {"vllm serve m --max-num-sequences=4", MAQ_CODE_COMMAND_OPTION, 14, "'--max-num-seqs'"},
    {"vllm serve m --no-enable-prefix-cachin", 0, 0, ""}, /* a beginning is enough */
    {"vllm serve m --data-parallel 4 --x", MAQ_CODE_COMMAND_OPTION, 14, "'--data-parallel-"}, /* of several */
    {"vllm serve m --qqqqqqqqqq", MAQ_CODE_COMMAND_OPTION, 14, ""},
    {"vllm serve m -tq 4", MAQ_CODE_COMMAND_OPTION, 14, "'-tp'"},
    {"vllm serve m n", MAQ_CODE_COMMAND_OPTION, 14, ""},
    {"vllm serve m --port", MAQ_CODE_COMMAND_VALUE, 14, ""},
    {"vllm serve m --compilation-config [1]", MAQ_CODE_COMMAND_VALUE, 35, "FULL_AND_PIECEWISE"},
    {"vllm serve m --compilation-config {\"cudagraph_capture_sizes\":[]}", MAQ_CODE_COMMAND_VALUE, 35, "512"},
    {"vllm serve m --port --host x", MAQ_CODE_COMMAND_VALUE, 14, ""},
    {"vllm serve m --enforce-eager=1", MAQ_CODE_COMMAND_VALUE, 14, ""},
    {"vllm serve m --max-num-seqs 0", MAQ_CODE_COMMAND_VALUE, 29, ""},
    {"vllm serve m --max-num-seqs=4.5", MAQ_CODE_COMMAND_VALUE, 14, ""},
    {"vllm serve m --max-model-len 4.5K", MAQ_CODE_COMMAND_VALUE, 30, ""},
    {"vllm serve m --gpu-memory-utilization 90", MAQ_CODE_COMMAND_VALUE, 39, ""},
    {"vllm serve m --quantization fb8", MAQ_CODE_COMMAND_VALUE, 29, "'fp8'"},
    {"vllm serve m --dtype int8", MAQ_CODE_COMMAND_VALUE, 22, "bfloat16"},
    {"vllm serve m -tp x", MAQ_CODE_COMMAND_VALUE, 18, ""},
    {"vllm serve m --speculative-config ngram", MAQ_CODE_COMMAND_VALUE, 35, "eagle3"},
    {"vllm serve m --additional-config x", MAQ_CODE_COMMAND_VALUE, 34, "num_ffn_ranks"},
    {"vllm serve m --additional-config {\"afd\":{\"num_ffn_ranks\":0}}", MAQ_CODE_COMMAND_VALUE, 34, "num_ffn_ranks"},
    {"vllm serve m --additional-config {\"afd\":{\"role\":\"ffn\"}}", MAQ_CODE_COMMAND_VALUE, 34, "attention"},
    {"vllm serve m -tp 2 --additional-config {\"afd\":{\"num_attention_ranks\":4}}", MAQ_CODE_COMMAND_VALUE, 0,
     "times"},
    {"vllm serve m --spec-tokens 0", MAQ_CODE_COMMAND_VALUE, 28, ""},
    {"python -m sglang.launch_server m", MAQ_CODE_COMMAND_OPTION, 32, ""},
    {"python -m sglang.launch_server --model m --schedule-policy lfo", MAQ_CODE_COMMAND_VALUE, 60, "lof"},
    {"python -m sglang.launch_server --model m --radix-eviction-policy x", MAQ_CODE_COMMAND_VALUE, 66, "lru"},
    {"python -m sglang.launch_server --model m --schedule-conservativeness 0", MAQ_CODE_COMMAND_VALUE, 70, ""},
    {"python -m sglang.launch_server --model m --max-num-seqs 4", MAQ_CODE_COMMAND_OPTION, 42, ""},
    {"trtllm-serve m --max_batchsize 4", MAQ_CODE_COMMAND_OPTION, 16, "'--max_batch_size'"},
    {"trtllm-serve m --max_batch 4", MAQ_CODE_COMMAND_OPTION, 16, "'--max_batch_size'"}, /* click takes no beginnings */
};

static void test_faults(void **state)
{
    (void)state;
    for (size_t i = 0; i < MAQ_COUNT(faults); i++) {
        struct line l;
        struct maq_serve_command *c = NULL;
        struct maq_diag *diag = maq_diag_new();
        cut(&l, faults[i].line);
        enum maq_status status = maq_serve_command_read(&c, l.words, l.n, diag);
        if (faults[i].code == 0) {
            assert_int_equal(status, MAQ_OK);
            maq_serve_command_free(c);
            maq_diag_free(diag);
            continue;
        }
        assert_int_equal(status, MAQ_BAD_INPUT);
        const struct maq_diag_item *item = maq_diag_at(diag, 0);
        struct maq_place place = maq_diag_place(diag, item->at);
        if (item->code != faults[i].code || place.column != faults[i].column ||
            (faults[i].hint[0] && (item->hint.len == 0 || !strstr(item->hint.ptr, faults[i].hint))))
            fail_msg("%s\n%s", faults[i].line, maq_diag_format(diag, 0, false));
        maq_diag_free(diag);
    }
}

static void test_names(void **state)
{
    (void)state;
    assert_true(maq_serve_command_knows(MAQ_ENGINE_VLLM, "tensor-parallel-size"));
    assert_true(maq_serve_command_knows(MAQ_ENGINE_VLLM, "tensor_parallel_size"));
    assert_true(maq_serve_command_knows(MAQ_ENGINE_VLLM, "disable-prefix-caching"));
    assert_true(maq_serve_command_knows(MAQ_ENGINE_SGLANG, "mem-fraction-static"));
    assert_true(maq_serve_command_knows(MAQ_ENGINE_TRTLLM, "max_batch_size"));
    assert_false(maq_serve_command_knows(MAQ_ENGINE_VLLM, "mem-fraction-static"));
    assert_false(maq_serve_command_knows(MAQ_ENGINE_SGLANG, "max-num-seqs"));
    assert_false(maq_serve_command_knows(MAQ_ENGINE_VLLM, "tensor-parallel"));
}

static void test_memory_runs_out(void **state)
{
    (void)state;
    struct line l;
    cut(&l, "vllm serve x/m-FP8 -tp 4 --speculative-config {\"method\":\"ngram\"} -q awq");
    asked = fail_at = 0;
    maq__set_alloc_gate(fail_nth);
    for (fail_at = 1; fail_at < 100; fail_at++) {
        struct maq_serve_command *c = NULL;
        asked = 0;
        enum maq_status status = maq_serve_command_read(&c, l.words, l.n, NULL);
        assert_true(status == MAQ_OK || status == MAQ_NO_MEMORY);
        if (status == MAQ_OK)
            maq_serve_command_free(c);
        if (asked < fail_at)
            break;
    }
    maq__set_alloc_gate(NULL);
    assert_true(fail_at > 2 && fail_at < 100);
}

/* ---- shares of memory ---- */

static struct maq_serve_result *plan(const struct maq_serve_options *o)
{
    const char *text = "{model: llama-3.1-8b, cluster: 'h100-sxm:8', plan: {micro_batch_size: 1}, "
                       "workload: {global_batch_size: 8}}";
    struct maq_loaded_job *job = NULL;
    struct maq_serve_result *r = NULL;
    assert_int_equal(maq_job_parse(&job, "test", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
    assert_int_equal(maq_serve_plan(&r, maq_job_get(job), o, NULL), MAQ_OK);
    maq_job_free(job);
    return r;
}

static void test_shares(void **state)
{
    (void)state;
    static const double shares[] = {0.3, 0.5, 0.8, 0.9};
    for (size_t i = 0; i < MAQ_COUNT(shares); i++) {
        struct maq_serve_result *r = plan(&(struct maq_serve_options){.free_memory_share = shares[i]});
        double held = r->memory[MAQ_SERVE_MEM_WEIGHTS] + r->memory[MAQ_SERVE_MEM_ACTIVATIONS] +
                      r->memory[MAQ_SERVE_MEM_GRAPHS] + r->memory[MAQ_SERVE_MEM_CONTEXT],
               block = r->memory[MAQ_SERVE_MEM_KV] / (double)r->blocks, want = shares[i] * (r->capacity_bytes - held);
        assert_true(r->memory[MAQ_SERVE_MEM_KV] <= want * (1 + 1e-9) && r->memory[MAQ_SERVE_MEM_KV] > want - 2 * block);
        maq_serve_free(r);

        r = plan(&(struct maq_serve_options){.static_memory_share = shares[i]});
        double both = r->memory[MAQ_SERVE_MEM_WEIGHTS] + r->memory[MAQ_SERVE_MEM_KV];
        want = shares[i] * (r->capacity_bytes - r->memory[MAQ_SERVE_MEM_CONTEXT]);
        assert_true(both <= want * (1 + 1e-9) && both > want - 2 * block);
        maq_serve_free(r);
    }
    struct maq_serve_result *r = plan(&(struct maq_serve_options){.static_memory_share = 1}); /* more than there is */
    assert_true(r->options.gpu_memory_utilization <= 1 && r->fits);
    maq_serve_free(r);
}

/* ---- ranks that have requests of their own ---- */

#define SGLANG "python -m sglang.launch_server --model-path m "

static void test_ranks(void **state)
{
    (void)state;
    static const struct {
        const char *line;
        int32_t dp, replicas, shared; /* shared: options.dp */
        const char *tp;
        enum maq_serve_exchange exchange;
        bool spread;
    } cases[] = {
        {"vllm serve m -tp 2 -dp 4 -ep", 4, 0, 0, "2", MAQ_EXCHANGE_AUTO, true},
        {"vllm serve m -dp 8 --all2all-backend deepep_low_latency", 8, 0, 0, NULL, MAQ_EXCHANGE_DEEPEP_LOW_LATENCY,
         false},
        {SGLANG "--tp 8 --dp 2", 0, 2, 0, "8", MAQ_EXCHANGE_AUTO, false},
        {SGLANG "--tp 8 --dp 4 --enable-dp-attention", 0, 0, 4, "2", MAQ_EXCHANGE_AUTO, false},
        {SGLANG "--attn-dp-size 8 --tp 8 --dp 2", 0, 2, 8, "1", MAQ_EXCHANGE_AUTO, false},
        {SGLANG "--tp 8 --attn-dp-size 8 --moe-a2a-backend deepep", 0, 0, 8, "1", MAQ_EXCHANGE_DEEPEP, false},
        {SGLANG "--tp 8 --attn-dp-size 8 --deepep-mode normal --moe-a2a-backend deepep", 0, 0, 8, "1",
         MAQ_EXCHANGE_DEEPEP_NORMAL, false},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct line l;
        struct maq_serve_command *c = taken(&l, cases[i].line);
        assert_int_equal(c->dp, cases[i].dp);
        assert_int_equal(c->replicas, cases[i].replicas);
        assert_int_equal(c->options.dp, cases[i].shared);
        assert_int_equal(c->options.exchange, cases[i].exchange);
        assert_int_equal(c->expert_parallel, cases[i].spread);
        if (cases[i].tp)
            expect_override(c, "plan.tensor_model_parallel_size", cases[i].tp);
        maq_serve_command_free(c);
    }
    struct line l;
    struct maq_serve_command *c = NULL;
    cut(&l, SGLANG "--tp 8 --attn-dp-size 3");
    assert_int_equal(maq_serve_command_read(&c, l.words, l.n, NULL), MAQ_BAD_INPUT);
}

/* ---- names of checkpoints ---- */

static void test_checkpoint_names(void **state)
{
    (void)state;
    static const struct {
        const char *name, *model; /* model: NULL = the whole name */
        bool said;
        enum maq_weights weights, experts;
    } cases[] = {
        {"Qwen/Qwen3-32B-FP8", "Qwen3-32B", true, MAQ_WEIGHTS_FP8_BLOCK, MAQ_WEIGHTS_FP8_BLOCK},
        {"nvidia/Llama-3.1-8B-Instruct-FP8", "Llama-3.1-8B-Instruct", true, MAQ_WEIGHTS_FP8, MAQ_WEIGHTS_FP8},
        {"x-NVFP4", "x", true, MAQ_WEIGHTS_NVFP4, MAQ_WEIGHTS_NVFP4},
        {"deepseek-v3", NULL, true, MAQ_WEIGHTS_FP8_BLOCK, MAQ_WEIGHTS_FP8_BLOCK},
        {"openai/gpt-oss-120b", NULL, true, MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_MXFP4},
        {"llama-3.1-8b", NULL, false, MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_BF16},
        {"./models/x-FP8", NULL, false, MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_BF16},
        {"-FP8", NULL, false, MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_BF16},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_checkpoint_name n = {0};
        assert_int_equal(maq_checkpoint_name(&n, cases[i].name), cases[i].said);
        assert_int_equal(n.weights, cases[i].weights);
        assert_int_equal(n.expert_weights, cases[i].experts);
        assert_int_equal(n.model_len, cases[i].model ? strlen(cases[i].model) : 0);
        if (cases[i].model)
            assert_memory_equal(cases[i].name + n.model_at, cases[i].model, n.model_len);
    }
}

/* ---- quantization_config ---- */

#define DENSE "llama-3.1-8b"
#define SPARSE "qwen3-30b-a3b"

/* As the tools that make checkpoints write it. */
static void test_checkpoint_weights(void **state)
{
    (void)state;
    static const struct {
        const char *model, *config;
        bool said;
        enum maq_weights weights, experts;
    } cases[] = {
        {DENSE, "{quant_method: fp8, activation_scheme: dynamic}", true, MAQ_WEIGHTS_FP8, MAQ_WEIGHTS_FP8},
        {DENSE, "{quant_method: fp8, weight_block_size: [128, 128]}", true, MAQ_WEIGHTS_FP8_BLOCK,
         MAQ_WEIGHTS_FP8_BLOCK},
        {DENSE, "{quant_method: fbgemm_fp8, activation_scale_ub: 1200}", true, MAQ_WEIGHTS_FP8, MAQ_WEIGHTS_FP8},
        {DENSE,
         "{quant_method: compressed-tensors, config_groups: {group_0: {targets: [Linear], weights: {num_bits: 8, type: "
         "float, strategy: channel}}}}",
         true, MAQ_WEIGHTS_FP8, MAQ_WEIGHTS_FP8},
        {DENSE,
         "{quant_method: compressed-tensors, config_groups: {group_0: {weights: {num_bits: 8, type: float, strategy: "
         "block}}}}",
         true, MAQ_WEIGHTS_FP8_BLOCK, MAQ_WEIGHTS_FP8_BLOCK},
        {DENSE, "{quant_method: compressed-tensors, config_groups: {group_0: {weights: {num_bits: 8, type: int}}}}",
         true, MAQ_WEIGHTS_INT8, MAQ_WEIGHTS_INT8},
        {DENSE,
         "{quant_method: compressed-tensors, config_groups: {group_0: {weights: {num_bits: 4, type: float, group_size: "
         "16}}}, ignore: [lm_head]}",
         true, MAQ_WEIGHTS_NVFP4, MAQ_WEIGHTS_NVFP4},
        {SPARSE,
         "{quant_method: compressed-tensors, config_groups: {group_0: {weights: {num_bits: 4, type: int, group_size: "
         "32}}}, ignore: ['re:.*self_attn.*', lm_head]}",
         true, MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_INT4},
        {DENSE, "{quant_method: modelopt, quant_algo: FP8}", true, MAQ_WEIGHTS_FP8, MAQ_WEIGHTS_FP8},
        {DENSE, "{quant_method: modelopt, quantization: {quant_algo: NVFP4}}", true, MAQ_WEIGHTS_NVFP4,
         MAQ_WEIGHTS_NVFP4},
        {DENSE, "{quant_method: awq, bits: 4, group_size: 128}", true, MAQ_WEIGHTS_INT4, MAQ_WEIGHTS_INT4},
        {DENSE, "{quant_method: gptq, bits: 8}", true, MAQ_WEIGHTS_INT8, MAQ_WEIGHTS_INT8},
        {SPARSE, "{quant_method: mxfp4}", true, MAQ_WEIGHTS_BF16, MAQ_WEIGHTS_MXFP4},
        {DENSE, "{quant_method: bitsandbytes, load_in_4bit: true}", false, 0, 0},
        {DENSE, "{quant_method: gptq, bits: 3}", false, 0, 0},
        {DENSE, "{quant_method: compressed-tensors, config_groups: []}", false, 0, 0},
        {DENSE, "{quant_method: modelopt, quant_algo: [1, 2]}", false, 0, 0},
        {DENSE, "null", false, 0, 0},
    };
    for (size_t i = 0; i < MAQ_COUNT(cases); i++) {
        struct maq_loaded_job *job = NULL;
        struct maq_checkpoint_name n = {0};
        char text[512];
        snprintf(text, sizeof text,
                 "{model: {base: %s, quantization_config: %s}, cluster: h100-sxm:1, workload: {gbs: 1}}",
                 cases[i].model, cases[i].config);
        assert_int_equal(maq_job_parse(&job, "test", maq_str_of(text), NULL, 0, NULL), MAQ_OK);
        assert_int_equal(maq_checkpoint_weights(&n, &maq_job_get(job)->model), cases[i].said);
        assert_int_equal(n.weights, cases[i].weights);
        assert_int_equal(n.expert_weights, cases[i].experts);
        maq_job_free(job);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_checkpoint_weights),
        cmocka_unit_test(test_compilation),
        cmocka_unit_test(test_programs),
        cmocka_unit_test(test_vllm),
        cmocka_unit_test(test_sglang),
        cmocka_unit_test(test_adapters),
        cmocka_unit_test(test_sides),
        cmocka_unit_test(test_trtllm),
        cmocka_unit_test(test_drafts),
        cmocka_unit_test(test_trtllm_config),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_told),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_memory_runs_out),
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_checkpoint_names),
    };
    return cmocka_run_group_tests_name("command", tests, NULL, NULL);
}
