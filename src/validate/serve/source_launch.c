/* SPDX-License-Identifier: Apache-2.0 */
/*
 * source_launch.c - how a source started its engines, where that is public and its table does not say.
 *
 * InferenceMAX (now InferenceX): benchmarks/ of SemiAnalysisAI/InferenceX, read from its history up to commit 843c6254. A script holds from the
 * day on which it was changed to the next entry of the same runs; a row has the day on which it was measured. Only what the engine is told
 * is here, nothing that came out of a run. Scripts for other GPUs and for DeepSeek are not: of their rows nobody says whether they draft.
 *
 * NVIDIA's runs of Qwen3.5 were started by InferenceX's scripts: 49 of the 62 are rows of InferenceX in the same table, to the digit, and containers,
 * degrees, loads and lengths of all are those of its configuration (nvidia-master.yaml, qwen3.5-*-sglang, March 2026).
 *
 * NVIDIA's overview of TensorRT-LLM's throughput: the commands that each release's page gives for its tables (perf-overview.md of NVIDIA/TensorRT-LLM, releases 1.0 and 1.3).
 */
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "validate/phrase.h"
#include "validate/serve/inference.h"

#define EACH_AS_LOADED (-1) /* max_num_seqs: as many as are under way */
#define TWO_PROMPTS (-2)    /* max_num_batched_tokens: twice the nominal prompt */
#define ONE_PROMPT (-3)     /* those under way, a prompt and SPARE_TOKENS; of SGLang max_prefill_tokens */
#define SPARE_TOKENS 1500
#define RECV_INTERVAL 10 /* SGLang's scheduler_recv_interval, and that of 16 requests under way and more */
#define RECV_INTERVAL_LOADED 30
#define LOADED_FROM 16
#define WAIT_ITERATIONS 20 /* batch_wait_timeout_iters, batch_wait_max_tokens_ratio */
#define WAIT_SHARE 0.9

struct launch {
    const char *framework, *version, *model, *gpu, *precision; /* phrases (phrase.h); NULL = any */
    const char *from;                                          /* year-month-day; NULL = the first */
    bool kv_fp8, experts_over_all; /* a cache in 8 bits; experts spread over all ranks, whatever the table says */
    bool attention_dp;         /* the degree that the table calls tp: attention of each rank for requests of its own */
    bool dynamo;               /* in front of the engine */
    bool in_turn;              /* TensorRT-LLM: disable_overlap_scheduler */
    bool async_scheduling;     /* vLLM: async-scheduling */
    bool attention_dp_balance; /* TensorRT-LLM: attention_dp_config with enable_balance */
    bool mixed;                /* SGLang: decodes go along with a prefill */
    bool recv_interval;        /* SGLang: new requests are looked for after RECV_INTERVAL decodes */
    bool batch_waits; /* TensorRT-LLM: for a fuller batch, with 1,024 tokens in and out on fewer than eight GPUs */
    int32_t seqs, tokens, block_size; /* max_num_seqs, max_num_batched_tokens; 0 = the engine's default */
    int32_t prefill_tokens;           /* SGLang: max_prefill_tokens */
    int32_t graph_tokens;             /* max-cudagraph-capture-size; 0 = the engine's default */
    enum maq_moe_backend moe_backend; /* VLLM_MXFP4_USE_MARLIN and its like */
    double utilization,
        free_share; /* gpu_memory_utilization, SGLang's mem_fraction_static; free_gpu_memory_fraction; 0 = the engine's default */
};

#define LLAMA "*Llama-3.1-70B*"
#define GPT_OSS "*gpt-oss*"
#define MINIMAX "*MiniMax-M2.5*"
#define QWEN35 "*Qwen3.5-397B*"
#define HOPPER "*H100*|*H200*"
#define INFERENCE_MAX "*InferenceMAX*|*InferenceX*"

/* Of several that match the last one holds. */
static const struct launch inference_max[] = {
    {.framework = "vllm",
     .model = LLAMA,
     .gpu = HOPPER,
     .kv_fp8 = true,
     .async_scheduling = true,
     .seqs = EACH_AS_LOADED,
     .tokens = 8192,
     .utilization = 0.9},
    {.framework = "vllm",
     .model = LLAMA,
     .gpu = "*B200*",
     .kv_fp8 = true,
     .async_scheduling = true,
     .seqs = 512,
     .tokens = 8192,
     .utilization = 0.9},
    {.framework = "trtllm", .model = LLAMA, .kv_fp8 = true, .batch_waits = true, .tokens = 16384},

    {.framework = "vllm",
     .model = GPT_OSS,
     .async_scheduling = true,
     .gpu = HOPPER,
     .seqs = EACH_AS_LOADED,
     .tokens = 8192,
     .graph_tokens = 2048,
     .utilization = 0.9},
    {.framework = "vllm",
     .model = GPT_OSS,
     .async_scheduling = true,
     .gpu = HOPPER,
     .from = "2026-01-02",
     .seqs = EACH_AS_LOADED,
     .tokens = 8192,
     .graph_tokens = 2048,
     .moe_backend = MAQ_MOE_BACKEND_MARLIN,
     .utilization = 0.9},
    {.framework = "vllm",
     .model = GPT_OSS,
     .async_scheduling = true,
     .gpu = "*B200*",
     .seqs = 512,
     .tokens = 8192,
     .graph_tokens = 2048,
     .moe_backend = MAQ_MOE_BACKEND_FLASHINFER_AFP8,
     .utilization = 0.9},
    {.framework = "vllm",
     .model = GPT_OSS,
     .async_scheduling = true,
     .gpu = "*B200*",
     .from = "2025-12-05",
     .kv_fp8 = true,
     .seqs = 512,
     .tokens = 8192,
     .graph_tokens = 2048,
     .moe_backend = MAQ_MOE_BACKEND_FLASHINFER_AFP8,
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
     .attention_dp_balance = true,
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
     .moe_backend = MAQ_MOE_BACKEND_TRITON,
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

    {.framework = "sglang",
     .model = QWEN35,
     .gpu = "*B200*",
     .recv_interval = true,
     .seqs = 128,
     .tokens = 32768,
     .prefill_tokens = 32768,
     .utilization = 0.82},
    {.framework = "sglang",
     .model = QWEN35,
     .gpu = "*B200*",
     .precision = "fp8|fp4",
     .kv_fp8 = true,
     .recv_interval = true,
     .seqs = 128,
     .tokens = 32768,
     .prefill_tokens = 32768,
     .utilization = 0.82},
    {.framework = "sglang",
     .model = QWEN35,
     .gpu = "*H200*",
     .kv_fp8 = true,
     .seqs = 128,
     .tokens = 16384,
     .utilization = 0.8},
};

#define OVERVIEW "NVIDIA TensorRT-LLM perf-overview*"
#define MOE "*Qwen3-30B*|*Qwen3-235B*|*Llama 4*|*DeepSeek*|*GPT-OSS*"

/* The TensorRT engine of 0.17 has neither; its page has no command for experts. The share of memory is that of "many cases". */
static const struct launch perf_overview[] = {
    {.framework = "trtllm", .free_share = 0.95},
    {.framework = "trtllm",
     .version = "1.*",
     .model = MOE,
     .attention_dp = true,
     .experts_over_all = true,
     .free_share = 0.95},
    {.framework = "trtllm",
     .version = "1.3*",
     .model = "*GPT-OSS*",
     .gpu = "*B200*",
     .kv_fp8 = true,
     .attention_dp = true,
     .experts_over_all = true,
     .free_share = 0.95},
    {.framework = "trtllm",
     .version = "1.3*",
     .model = "*DeepSeek*",
     .kv_fp8 = true,
     .attention_dp = true,
     .experts_over_all = true,
     .free_share = 0.95},
};

/*
 * NVIDIA's runs: as aiconfigurator starts engines for benchmarks (rule_plugin/ of ai-dynamo/aiconfigurator 095f58a, vLLM and SGLang since December
 * 2025; TensorRT-LLM's share of memory is that of its templates). SGLang's runs of before are not by it. When TensorRT-LLM was at 1.0.0rc3 (efcae124,
 * August 2025) its template had the overlap scheduler off, and caches were in 8 bits where weights are; 64 requests of 4,096 and 512 tokens at once on
 * one H100 would have no room in a cache of 16.
 */
static const struct launch aiconfigurator[] = {
    {.framework = "trtllm", .dynamo = true, .seqs = EACH_AS_LOADED, .tokens = ONE_PROMPT, .free_share = 0.8},
    {.framework = "trtllm",
     .version = "1.0*",
     .dynamo = true,
     .in_turn = true,
     .seqs = EACH_AS_LOADED,
     .tokens = ONE_PROMPT,
     .free_share = 0.8},
    {.framework = "trtllm",
     .version = "1.0*",
     .precision = "*fp8*",
     .kv_fp8 = true,
     .dynamo = true,
     .in_turn = true,
     .seqs = EACH_AS_LOADED,
     .tokens = ONE_PROMPT,
     .free_share = 0.8},
    {.framework = "vllm", .dynamo = true, .tokens = ONE_PROMPT},
    {.framework = "sglang", .dynamo = true},
    {.framework = "sglang",
     .version = "0.5.6*|0.5.8*|0.5.9*|nightly*",
     .dynamo = true,
     .mixed = true,
     .tokens = ONE_PROMPT},
};

static const struct source {
    const char *name; /* a phrase */
    const struct launch *launches;
    size_t n;
} sources[] = {
    {"InferenceMAX*", inference_max, MAQ_COUNT(inference_max)},
    {OVERVIEW, perf_overview, MAQ_COUNT(perf_overview)},
    {"NVIDIA gap-analysis*", aiconfigurator, MAQ_COUNT(aiconfigurator)},
};

/* Rows of a source that were made by another's scripts. */
static const struct {
    const char *source, *model; /* phrases */
    const char *as;
} reruns[] = {
    {"NVIDIA gap-analysis*", QWEN35, "InferenceMAX/InferenceX"},
};

/*
 * Runs whose script drafts: of Qwen3.5 in 8 bits on B200 only qwen3.5-fp8-b200-sglang-mtp (35d4bb367 of InferenceX, 2026-03-20: EAGLE, three steps,
 * four tokens) has experts cut over four ranks, and its container. How many drafts were accepted nobody says.
 */
static const struct {
    const char *source, *framework, *model, *gpu, *precision; /* phrases */
    int32_t tp, ep;
} drafting[] = {
    {"NVIDIA gap-analysis*", "sglang", QWEN35, "*B200*", "fp8", 4, 1},
};

bool maq_inference_drafts(const struct maq_inference_row *r)
{
    for (size_t i = 0; i < MAQ_COUNT(drafting); i++)
        if (maq__phrase_in(r->source, drafting[i].source, NULL) &&
            maq_str_starts(r->framework, drafting[i].framework) && maq__phrase_in(r->model, drafting[i].model, NULL) &&
            maq__phrase_in(r->gpu, drafting[i].gpu, NULL) &&
            maq__phrase_in(r->precision, drafting[i].precision, NULL) && r->tp == drafting[i].tp &&
            r->ep == drafting[i].ep)
            return true;
    return false;
}

struct maq_str maq_inference_source(const struct maq_inference_row *r)
{
    for (size_t i = 0; i < MAQ_COUNT(reruns); i++)
        if (maq__phrase_in(r->source, reruns[i].source, NULL) && maq__phrase_in(r->model, reruns[i].model, NULL))
            return maq_str_of(reruns[i].as);
    return r->source;
}

/*
 * Releases that a source does not say. A nightly build is taken to be the release that came after it (days of release: PyPI): SGLang's of February 16
 * 2026 0.5.9 of the 23rd, a vLLM of that month 0.16.0 of the 26th. Splitwise's prototype is from before November 2023 (arXiv 2311.18677), when 0.2.2 was vLLM's newest, LLM-Inference-Bench's
 * runs from before November 2024 (arXiv 2411.00136), 0.6.3. InferenceMAX's first rows have a day, and its workflows a container (70b-tmpl.yml, gptoss-tmpl.yml, later
 * configs/nvidia-master.yaml): vLLM 0.10.2, which on B200 was told to decode in whole graphs (FULL_DECODE_ONLY), as 0.11 does by itself and stands for.
 */
static const struct unsaid_release {
    const char *source, *framework, *said, *model, *gpu; /* phrases, NULL = nothing is said; any */
    const char *until;                                   /* the first day on which it was another; NULL = ever */
    const char *version;
} unsaid_releases[] = {
    {"Splitwise*", "vllm*", NULL, NULL, NULL, NULL, "0.2.2"},
    {"LLM-Inference-Bench*", "vllm*", NULL, NULL, NULL, NULL, "0.6.3"},
    {"NVIDIA gap-analysis*", "sglang", "nightly-dev", NULL, NULL, NULL, "0.5.9"},
    {"SemiAnalysisAI*", "vllm*", "nightly-2026-02", NULL, NULL, NULL, "0.16.0"},
    {INFERENCE_MAX, "vllm", NULL, LLAMA "|" GPT_OSS, HOPPER, "2025-11-03", "0.10.2"},
    {INFERENCE_MAX, "vllm", NULL, LLAMA "|" GPT_OSS, "*B200*", "2025-11-03", "0.11.0"},
    {INFERENCE_MAX, "vllm", NULL, GPT_OSS, NULL, "2025-12-08", "0.11.2"},
    {INFERENCE_MAX, "trtllm", NULL, LLAMA, NULL, "2025-11-03", "1.1.0rc2.post2"},
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
    return maq_str_starts(r->framework, l->framework) && (!l->model || maq__phrase_in(r->model, l->model, NULL)) &&
           (!l->version || maq__phrase_in(r->version, l->version, NULL)) &&
           (!l->gpu || maq__phrase_in(r->gpu, l->gpu, NULL)) &&
           (!l->precision || maq__phrase_in(r->precision, l->precision, NULL)) &&
           is_at_least(day_of(r->notes), l->from);
}

/* The one that the row says where nothing else is known. */
static const char *release_of(const struct maq_inference_row *r, const char *said)
{
    for (size_t i = 0; i < MAQ_COUNT(unsaid_releases); i++) {
        const struct unsaid_release *u = &unsaid_releases[i];
        bool unsaid = u->said ? maq__phrase_in(r->version, u->said, NULL) : said == NULL;
        if (unsaid && maq__phrase_in(r->source, u->source, NULL) && maq__phrase_in(r->framework, u->framework, NULL) &&
            (!u->model || maq__phrase_in(r->model, u->model, NULL)) &&
            (!u->gpu || maq__phrase_in(r->gpu, u->gpu, NULL)) &&
            (!u->until || !is_at_least(day_of(r->notes), u->until)))
            return u->version;
    }
    return said;
}

/* NULL: nothing is known. */
static const struct launch *launch_of(const struct maq_inference_row *r)
{
    const struct launch *found = NULL;
    for (size_t s = 0; s < MAQ_COUNT(sources); s++)
        for (size_t i = 0; i < sources[s].n && maq__phrase_in(maq_inference_source(r), sources[s].name, NULL); i++)
            if (is_of(&sources[s].launches[i], r))
                found = &sources[s].launches[i];
    return found;
}

/* Requests of NVIDIA's overview, by their lengths: the pages of 1.0 and 1.3 have a table each. */
static const struct {
    int32_t prompt, output, n;
} overview_requests[] = {
    {128, 128, 30000},  {128, 2048, 3000},  {128, 4096, 1500},  {500, 2000, 3000},   {1000, 1000, 3000},
    {1000, 2000, 1500}, {2048, 128, 3000},  {2048, 2048, 1500}, {5000, 500, 1500},   {20000, 2000, 1000},
    {1024, 1024, 3000}, {8192, 1024, 1500}, {1024, 8192, 1500}, {32768, 1024, 1000}, {1024, 32768, 1000},
};

uint32_t maq_inference_requests(const struct maq_inference_row *r)
{
    for (size_t i = 0; i < MAQ_COUNT(overview_requests); i++)
        if (maq__phrase_in(r->source, OVERVIEW, NULL) && overview_requests[i].prompt == (int32_t)r->isl &&
            overview_requests[i].output == (int32_t)r->osl)
            return (uint32_t)overview_requests[i].n;
    return 0;
}

struct maq_inference_row maq_inference_as_started(const struct maq_inference_row *row)
{
    struct maq_inference_row r = *row;
    const struct launch *l = launch_of(row);
    if (l && l->attention_dp && r.dp == 1) {
        r.dp = r.tp;
        r.tp = 1;
    }
    if (l && l->experts_over_all)
        r.ep = r.tp * r.dp;
    return r;
}

void maq_inference_launch(struct maq_serve_options *o, const struct maq_inference_row *r)
{
    const struct launch *l = launch_of(r);
    o->version = release_of(r, o->version);
    if (!l)
        return;
    o->kv_fp8 |= r->kv_precision.len == 0 && l->kv_fp8;
    o->max_num_seqs = l->seqs == EACH_AS_LOADED ? (int32_t)r->load : l->seqs;
    o->max_num_batched_tokens = l->tokens == TWO_PROMPTS  ? (int32_t)(2 * r->isl)
                                : l->tokens == ONE_PROMPT ? (int32_t)(r->load + r->isl) + SPARE_TOKENS
                                                          : l->tokens;
    if (l->tokens == ONE_PROMPT && o->engine == MAQ_ENGINE_SGLANG) {
        o->max_num_batched_tokens = 0;
        o->sglang.max_prefill_tokens = (int32_t)r->isl + SPARE_TOKENS;
    }
    if (l->prefill_tokens > 0)
        o->sglang.max_prefill_tokens = l->prefill_tokens;
    if (l->recv_interval)
        o->sglang.recv_interval = r->load >= LOADED_FROM ? RECV_INTERVAL_LOADED : RECV_INTERVAL;
    o->attention_dp_balance.enabled = l->attention_dp_balance;
    o->sglang.mixed_chunk = l->mixed;
    o->async_scheduling = l->in_turn ? MAQ_OFF : l->async_scheduling ? MAQ_ON : MAQ_AUTO;
    o->front_end = l->dynamo ? MAQ_FRONT_END_DYNAMO : MAQ_FRONT_END_OWN;
    o->block_size = l->block_size;
    o->graph_tokens = l->graph_tokens;
    o->moe_backend = l->moe_backend;
    *(o->engine == MAQ_ENGINE_SGLANG ? &o->static_memory_share : &o->gpu_memory_utilization) = l->utilization;
    o->free_memory_share = l->free_share;
    if (l->batch_waits && r->isl == 1024 && r->osl == 1024 && r->tp < 8) {
        o->batch_wait_iterations = WAIT_ITERATIONS;
        o->batch_wait_share = WAIT_SHARE;
    }
}
