/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_launch.c - how a source started its engines and what its clients asked for, where that is public and its table does not say.
 *
 * InferenceMAX (now InferenceX): benchmarks/ of SemiAnalysisAI/InferenceX, read from its history up to commit 843c6254. A script holds from the
 * day on which it was changed to the next entry of the same runs; a row has the day on which it was measured. Only what the engine is told
 * is here, nothing that came out of a run. Scripts for other GPUs, for DeepSeek and for Qwen3.5 are not: of their rows nobody says whether
 * they draft.
 */
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "validate/phrase.h"
#include "validate/serve/inference.h"

#define EACH_AS_LOADED (-1) /* max_num_seqs: as many as are under way */
#define TWO_PROMPTS (-2)    /* max_num_batched_tokens: twice the nominal prompt */
#define WAIT_ITERATIONS 20  /* batch_wait_timeout_iters, batch_wait_max_tokens_ratio */
#define WAIT_SHARE 0.9

struct launch {
    const char *framework, *model, *gpu, *precision; /* phrases (phrase.h); NULL = any */
    const char *from;                                /* year-month-day; NULL = the first */
    bool kv_fp8, experts_over_all; /* a cache in 8 bits; experts spread over all ranks, whatever the table says */
    bool waits; /* TensorRT-LLM: for a fuller batch, with 1,024 tokens in and out on fewer than eight GPUs */
    int32_t seqs, tokens, block_size; /* max_num_seqs, max_num_batched_tokens; 0 = the engine's default */
    double utilization, free_share;   /* gpu_memory_utilization; free_gpu_memory_fraction; 0 = the engine's default */
};

#define LLAMA "*Llama-3.1-70B*"
#define GPT_OSS "*gpt-oss*"
#define MINIMAX "*MiniMax-M2.5*"
#define HOPPER "*H100*|*H200*"

/* Of several that match the last one holds. */
static const struct launch inference_max[] = {
    {.framework = "vllm",
     .model = LLAMA,
     .gpu = HOPPER,
     .kv_fp8 = true,
     .seqs = EACH_AS_LOADED,
     .tokens = 8192,
     .utilization = 0.9},
    {.framework = "vllm",
     .model = LLAMA,
     .gpu = "*B200*",
     .kv_fp8 = true,
     .seqs = 512,
     .tokens = 8192,
     .utilization = 0.9},
    {.framework = "trtllm", .model = LLAMA, .kv_fp8 = true, .waits = true, .tokens = 16384},

    {.framework = "vllm", .model = GPT_OSS, .gpu = HOPPER, .seqs = EACH_AS_LOADED, .tokens = 8192, .utilization = 0.9},
    {.framework = "vllm", .model = GPT_OSS, .gpu = "*B200*", .seqs = 512, .tokens = 8192, .utilization = 0.9},
    {.framework = "vllm",
     .model = GPT_OSS,
     .gpu = "*B200*",
     .from = "2025-12-05",
     .kv_fp8 = true,
     .seqs = 512,
     .tokens = 8192,
     .utilization = 0.9},
    {.framework = "trtllm",
     .model = GPT_OSS,
     .gpu = "*H200*",
     .experts_over_all = true,
     .seqs = EACH_AS_LOADED,
     .tokens = 20000,
     .free_share = 0.85},
    {.framework = "trtllm",
     .model = GPT_OSS,
     .gpu = "*H200*",
     .from = "2025-11-03",
     .seqs = EACH_AS_LOADED,
     .tokens = 20000,
     .free_share = 0.85},
    {.framework = "trtllm",
     .model = GPT_OSS,
     .gpu = "*B200*",
     .kv_fp8 = true,
     .seqs = 512,
     .tokens = 20000,
     .free_share = 0.85},

    {.framework = "vllm", .model = MINIMAX, .gpu = "*H200*", .utilization = 0.95},
    {.framework = "vllm",
     .model = MINIMAX,
     .gpu = "*H200*",
     .from = "2026-03-13",
     .experts_over_all = true,
     .utilization = 0.95},
    {.framework = "vllm",
     .model = MINIMAX,
     .gpu = "*H200*",
     .from = "2026-05-26",
     .kv_fp8 = true,
     .seqs = 512,
     .tokens = 32768,
     .utilization = 0.95},
    {.framework = "vllm", .model = MINIMAX, .gpu = "*H100*", .seqs = 256, .utilization = 0.9},
    {.framework = "vllm",
     .model = MINIMAX,
     .gpu = "*B200*",
     .precision = "fp8",
     .experts_over_all = true,
     .block_size = 32,
     .utilization = 0.95},
    {.framework = "vllm",
     .model = MINIMAX,
     .gpu = "*B200*",
     .precision = "fp8",
     .from = "2026-04-03",
     .kv_fp8 = true,
     .tokens = TWO_PROMPTS,
     .block_size = 32,
     .utilization = 0.9},
    {.framework = "vllm",
     .model = MINIMAX,
     .gpu = "*B200*",
     .precision = "fp4",
     .kv_fp8 = true,
     .tokens = TWO_PROMPTS,
     .utilization = 0.9},
};

/*
 * What holds for all rows of a source. ML.ENERGY's client asks for a temperature of 0.8 and a top_p of 0.95 (ml-energy/benchmark c1d6557,
 * mlenergy/benchmark/llm/benchmark.py). That of NVIDIA's runs says nothing, and vLLM and SGLang then sample as the model's generation_config.json has it: the models
 * of its table, Llama 3.1 and Qwen3, with a top_p of 0.9 and 0.95. Splitwise's prototype is from before November 2023 (arXiv 2311.18677), when 0.2.2 was
 * vLLM's newest release, LLM-Inference-Bench's runs from before November 2024 (arXiv 2411.00136), 0.6.3.
 */
static const struct habit {
    const char *source, *framework, *version; /* phrases; version: where a row has none */
    double temperature, top_p;
} habits[] = {
    {"ML.ENERGY*", "vllm*", NULL, 0.8, 0.95},
    {"NVIDIA gap-analysis*", "vllm*", NULL, 0.6, 0.95},
    {"NVIDIA gap-analysis*", "sglang*", NULL, 0.6, 0.95},
    {"Splitwise*", "vllm*", "0.2.2", 0, 0},
    {"LLM-Inference-Bench*", "vllm*", "0.6.3", 0, 0},
};

/* "measured=2026-04-22" among the notes; where it is not said, the first. */
static struct maq_str day_of(struct maq_str notes)
{
    struct maq_str word;
    while (notes.ptr) {
        notes = maq_str_split(notes, ';', &word);
        word = maq_str_trim(word);
        if (maq_str_starts(word, "measured="))
            return (struct maq_str){word.ptr + 9, word.len - 9};
    }
    return maq_str_of("");
}

static bool is_at_least(struct maq_str day, const char *from)
{
    size_t n = from ? strlen(from) : 0;
    return n == 0 || (day.len >= n && strncmp(day.ptr, from, n) >= 0);
}

static bool is_of(const struct launch *l, const struct maq_inference_row *r)
{
    return maq_str_starts(r->framework, l->framework) && maq__phrase_in(r->model, l->model, NULL) &&
           (!l->gpu || maq__phrase_in(r->gpu, l->gpu, NULL)) &&
           (!l->precision || maq__phrase_in(r->precision, l->precision, NULL)) &&
           is_at_least(day_of(r->notes), l->from);
}

static void apply_habits(struct maq_serve_options *o, const struct maq_inference_row *r)
{
    for (size_t i = 0; i < MAQ_COUNT(habits); i++) {
        const struct habit *h = &habits[i];
        if (!maq__phrase_in(r->source, h->source, NULL) || !maq__phrase_in(r->framework, h->framework, NULL))
            continue;
        o->version = o->version ? o->version : h->version;
        o->temperature = h->temperature;
        o->top_p = h->top_p;
    }
}

void maq_inference_launch(struct maq_serve_options *o, const struct maq_inference_row *r)
{
    const struct launch *l = NULL;
    apply_habits(o, r);
    if (!maq__phrase_in(r->source, "InferenceMAX*", NULL))
        return;
    for (size_t i = 0; i < MAQ_COUNT(inference_max); i++)
        if (is_of(&inference_max[i], r))
            l = &inference_max[i];
    if (!l)
        return;
    o->kv_fp8 = r->kv_precision.len > 0 ? o->kv_fp8 : l->kv_fp8;
    o->ep = l->experts_over_all ? r->tp * r->dp : o->ep;
    o->max_num_seqs = l->seqs == EACH_AS_LOADED ? (int32_t)r->load : l->seqs;
    o->max_num_batched_tokens = l->tokens == TWO_PROMPTS ? (int32_t)(2 * r->isl) : l->tokens;
    o->block_size = l->block_size;
    o->gpu_memory_utilization = l->utilization;
    o->free_memory_share = l->free_share;
    if (l->waits && r->isl == 1024 && r->osl == 1024 && r->tp < 8) {
        o->batch_wait_iterations = WAIT_ITERATIONS;
        o->batch_wait_share = WAIT_SHARE;
    }
}
