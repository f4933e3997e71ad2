/* SPDX-License-Identifier: Apache-2.0 */
/*
 * benchmark_client.c - what the client of a source sent, where that is public and its table does not say.
 *
 * InferenceMAX: ten requests for each that is under way, lengths from 0.8 to 1 of the nominal ones (benchmark_serving.py of its benchmarks/).
 *
 * NVIDIA's runs: those of aiconfigurator's own tools (ai-dynamo/aiconfigurator 095f58a and its history), which call AIPerf with a deviation of 0
 * for both lengths. `aiconfigurator eval` (until March 2026) sends ten for each that is under way, and has twelve prompts for each. The scripts that its
 * generator writes (since February 2026; 2c warm-up requests, then 50c) leave AIPerf's 100 prompts, of which each request has one drawn (aiperf
 * db4f6397, dataset_manager.py), and vLLM's prefix cache on. Which of the two made a row is not said: rows of vLLM in 8 bits are taken to be the scripts', since
 * their prompts were computed in less time than the GPUs' peak allows; of the other engines those that are younger than `eval`.
 *
 * AIPerf cuts its prompts out of one book (its assets/shakespeare.txt), InferenceMAX's client draws tokens evenly. Experts are then as unlike in how often
 * they are chosen as the makers of aiconfigurator have them where they time kernels: a coefficient of variation of about 1 (docs/validate-serve.md).
 *
 * ML.ENERGY's client asks for a temperature of 0.8 and a top_p of 0.95 (ml-energy/benchmark c1d6557, mlenergy/benchmark/llm/benchmark.py). NVIDIA's says
 * nothing, and vLLM and SGLang then sample as the model's generation_config.json has it: Llama 3.1 and Qwen3 at 0.6, with a top_p of 0.9 and 0.95.
 *
 * Of all others lengths are drawn evenly from 0.9 to 1.1 times the nominal ones; all are equal and sent at once where the most throughput was measured
 * (perf-overview.md); saturated ones are of a chat.
 */
#include <string.h>

#include "base/check.h"
#include "validate/phrase.h"
#include "validate/serve/inference.h"

#define NVIDIA "NVIDIA gap-analysis*"
#define AIPERF_PROMPTS 100
#define SCRIPT_WAVES 50
#define SCRIPT_WARMUP 2
#define ONE_TEXT 1.0 /* expert_skew of tokens of one book */

static const struct habit {
    const char *source, *framework, *version, *precision, *kind; /* phrases; NULL = any */
    struct maq_inference_client client;
} habits[] = {
    {.client = {.mean = 1, .spread = 0.1, .waves = 10}},
    {.kind = "serving_saturated", .client = {.mean = 1, .spread = 0.9, .waves = 10}},
    {.kind = "offline_max_throughput", .client = {.mean = 1, .waves = 10}},
    {.source = "*InferenceMAX*|*InferenceX*", .client = {.mean = 0.9, .spread = 1.0 / 9, .waves = 10}},
    {.source = "ML.ENERGY*",
     .framework = "vllm*",
     .client = {.mean = 1, .spread = 0.9, .waves = 10, .temperature = 0.8, .top_p = 0.95}},
    {.source = NVIDIA, .client = {.mean = 1, .waves = 10, .expert_skew = ONE_TEXT}},
    {.source = NVIDIA,
     .framework = "trtllm",
     .version = "1.3*",
     .client = {.mean = 1, .waves = SCRIPT_WAVES, .expert_skew = ONE_TEXT}},
    {.source = NVIDIA,
     .framework = "vllm*|sglang*",
     .client = {.mean = 1, .waves = 10, .temperature = 0.6, .top_p = 0.95, .expert_skew = ONE_TEXT}},
    {.source = NVIDIA,
     .framework = "vllm",
     .precision = "fp8",
     .client = {.mean = 1,
                .waves = SCRIPT_WAVES,
                .warmup_waves = SCRIPT_WARMUP,
                .prompts = AIPERF_PROMPTS,
                .temperature = 0.6,
                .top_p = 0.95,
                .expert_skew = ONE_TEXT}},
};

static bool is_of(const struct habit *h, const struct maq_inference_row *r)
{
    return (!h->source || maq__phrase_in(maq_inference_source(r), h->source, NULL)) &&
           (!h->framework || maq__phrase_in(r->framework, h->framework, NULL)) &&
           (!h->version || maq__phrase_in(r->version, h->version, NULL)) &&
           (!h->precision || maq__phrase_in(r->precision, h->precision, NULL)) &&
           (!h->kind || strcmp(r->kind, h->kind) == 0);
}

struct maq_inference_client maq_inference_client_of(const struct maq_inference_row *r)
{
    struct maq_inference_client found = habits[0].client; /* the last one that holds */
    for (size_t i = 1; i < MAQ_COUNT(habits); i++)
        if (is_of(&habits[i], r))
            found = habits[i].client;
    return found;
}
