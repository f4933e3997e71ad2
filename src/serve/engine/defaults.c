/* SPDX-License-Identifier: Apache-2.0 */
/*
 * defaults.c - what an engine takes when it is not told.
 *
 * vLLM (0.33.0: engine/arg_utils.py, config/cache.py, config/vllm.py): by the memory of the GPU and by how it is used,
 *
 *                              max_num_batched_tokens            max_num_seqs
 *                              library      API server
 *     160 GiB and more         16,384       16,384               1,024
 *     70 GiB and more, no A100 16,384        8,192               1,024
 *     others                    8,192        2,048                 256
 *
 * and 0.92 of the memory (config/cache.py); 0.9 before graphs were taken off, which its log dates to 0.21.0.
 *
 * SGLang (0.5.23: arg_groups/memory_hook.py, arg_groups/cuda_graph_hook.py, arg_groups/fields/schedule.py): 2,048 requests at most, prefill batches of
 * 16,384 tokens at most, 512 tokens reserved for each request of a server that decodes alone, and by the memory of the GPU
 *
 *                    chunked_prefill_size    requests of a CUDA graph, tp < 4 / tp >= 4
 *     below 20 GiB    2,048                    8 /   8
 *     below 35 GiB    4,096                   48 / 160
 *     below 60 GiB    4,096                   32 / 160
 *     below 160 GiB   8,192                  256 / 512
 *     others         16,384                  512 / 512
 *
 * With attention data parallelism requests and chunk are divided by its ranks, and 3 MiB are taken off for each of its ranks and each request of the
 * largest graph, 4.5 where that has more than 300. Weights and cache have what is left of the GPU (mem_fraction_static, to three digits) when 512 MiB, 1.5 MiB for each token of a chunk (2,048 at
 * least), GPUs / 8 GiB and the graphs are taken off, which together are at least 10 GiB on more than 60 GiB. Graphs: 2 MiB for each request of the largest,
 * 8 MiB for each size of a prefill or 1.5 GiB with latent attention. With speculative decoding 48 requests at most, where nothing is said.
 *
 * TensorRT-LLM has max_batch_size 2,048 and max_num_tokens 8,192, computes prompts whole, and its cache has 0.9 of the memory that weights and
 * activations leave (llmapi/llm_args.py).
 */
#include <string.h>

#include "base/check.h"
#include "base/units.h"
#include "serve/engine/deployment.h"

#define GPT_OSS_GRAPH_TOKENS 1024

static void vllm_limits(struct maq_serve_options *o, const struct maq_model *model, const struct maq_device *device)
{
    bool a100 = strstr(device->name, "a100") != NULL, huge = device->mem_bytes >= 160 * MAQ_GIB,
         large = device->mem_bytes >= 70 * MAQ_GIB && !a100;
    int32_t tokens = huge ? 16384 : large ? (o->offline ? 16384 : 8192) : o->offline ? 8192 : 2048;
    if (o->max_num_batched_tokens == 0)
        o->max_num_batched_tokens = tokens;
    if (o->max_num_seqs == 0)
        o->max_num_seqs = huge || large ? 1024 : 256;
    bool gpt_oss = model->type && strcmp(model->type, "gpt_oss") == 0;
    if (o->graph_tokens == 0 && gpt_oss && maq_engine_release(o->version) >= MAQ_RELEASE(0, 10, 1))
        o->graph_tokens = GPT_OSS_GRAPH_TOKENS;
}

static void other_limits(struct maq_serve_options *o)
{
    if (o->max_num_batched_tokens == 0)
        o->max_num_batched_tokens = 8192;
    if (o->max_num_seqs == 0)
        o->max_num_seqs = 2048;
}

/* ---- SGLang ---- */

/* arg_groups/speculative_hook.py, _handle_eagle_family and _handle_ngram. */
#define SGLANG_DRAFTING_REQUESTS 48

static bool has_latent_attention(const struct maq_job *job)
{
    return job->model.n_kinds > 0 && strcmp(job->model.kinds[0].mixer, "mla") == 0;
}

/* Sizes of a prefill for which there is a graph (cuda_graph_hook.py, generate_prefill_cuda_graph_batch_sizes). */
static double prefill_sizes(double most)
{
    static const double steps[][2] = {{32, 4}, {256, 16}, {512, 32}, {1024, 64}, {4096, 256}, {1e9, 512}};
    double at = 0, n = 0;
    for (size_t i = 0; i < MAQ_COUNT(steps) && at < most; i++) {
        double end = steps[i][0] < most ? steps[i][0] : most;
        n += (end - at) / steps[i][1];
        at = end;
    }
    return n;
}

/* mem_fraction_static, which the engine has to three digits. */
static double static_share(const struct maq_serve_options *o, const struct maq_job *job, double memory)
{
    const double mib = 1024.0 * 1024, gpus = (double)job->plan.tp * job->plan.pp * o->dp;
    double chunk = o->no_chunked_prefill ? o->sglang.max_prefill_tokens : o->max_num_batched_tokens,
           reserved = 512 + (chunk > 2048 ? chunk : 2048) * 1.5 + gpus / 8 * 1024;
    if (o->dp > 1)
        reserved += o->sglang.graph_max_requests * o->dp * (o->sglang.graph_max_requests > 300 ? 4.5 : 3);
    if (!o->enforce_eager) {
        reserved += o->sglang.graph_max_requests * 2.0;
        reserved += has_latent_attention(job) ? 1.5 * 1024 : prefill_sizes(chunk) * 8;
    }
    if (memory > 60 * MAQ_GIB && reserved < 10 * 1024)
        reserved = 10 * 1024;
    double share = (double)(int64_t)((memory - reserved * mib) / memory * 1000 + 0.5) / 1000;
    return share > 0.01 ? share : 0.01;
}

/*
 * Prefills as CUDA graphs between their attentions, up to a chunk: since 0.5.10, and there (server_args.py, _handle_piecewise_cuda_graph) up to
 * 2,048 tokens with latent attention, and not with stages, drafts, ranks of attention, an exchange of experts, adapters or copies in host memory. In 0.5.23
 * (arg_groups/cuda_graph_hook.py, memory_hook.py) up to 8,192 with latent attention, and not with stages. Releases between are taken as the older one.
 */
static void complete_prefill_graphs(struct maq_serve_options *o, const struct maq_job *job)
{
    bool newest = maq_engine_release(o->version) >= MAQ_RELEASE(0, 5, 23), latent = has_latent_attention(job),
         without =
             job->plan.pp > 1 || (!newest && (o->speculation.method != MAQ_DRAFT_NONE || o->dp > 1 || o->lora.enabled ||
                                              o->exchange != MAQ_EXCHANGE_AUTO || maq_tier_options_any(&o->tiers)));
    int32_t most = newest ? 8192 : 2048;
    if (o->sglang.prefill_graph_tokens != 0)
        return;
    o->sglang.prefill_graph_tokens = latent && o->max_num_batched_tokens > most ? most : o->max_num_batched_tokens;
    if (without || maq_engine_release(o->version) < MAQ_RELEASE(0, 5, 10))
        o->sglang.prefill_graph_tokens = -1;
}

static void sglang_limits(struct maq_serve_options *o, const struct maq_job *job, const struct maq_device *device)
{
    static const struct {
        double below;
        int32_t chunk, graph, graph_tp4;
    } classes[] = {{20 * MAQ_GIB, 2048, 8, 8},
                   {35 * MAQ_GIB, 4096, 48, 160},
                   {60 * MAQ_GIB, 4096, 32, 160},
                   {160 * MAQ_GIB, 8192, 256, 512},
                   {1e300, 16384, 512, 512}};
    size_t c = 0;
    while (device->mem_bytes >= classes[c].below)
        c++;
    o->max_num_seqs = o->max_num_seqs > o->dp ? o->max_num_seqs / o->dp : o->max_num_seqs;
    o->max_num_batched_tokens = (o->max_num_batched_tokens > 0 ? o->max_num_batched_tokens : classes[c].chunk) / o->dp;
    if (o->sglang.graph_max_requests == 0) {
        o->sglang.graph_max_requests = job->plan.tp * o->dp < 4 ? classes[c].graph : classes[c].graph_tp4;
        if (o->max_num_seqs > 0 && o->max_num_seqs < o->sglang.graph_max_requests)
            o->sglang.graph_max_requests = o->max_num_seqs;
    }
    if (o->max_num_seqs == 0) {
        o->max_num_seqs = o->speculation.method == MAQ_DRAFT_NONE ? 2048 : SGLANG_DRAFTING_REQUESTS;
        o->sglang.requests_by_default = true;
    }
    /* server_args.py of 0.5.9 and 0.5.12, _handle_mamba_radix_cache() */
    if (o->async_scheduling == MAQ_AUTO && !o->no_prefix_caching && o->speculation.method == MAQ_DRAFT_NONE &&
        maq_engine_release(o->version) < MAQ_SGLANG_STATES_OVERLAP && maq_serve_keeps_states(&job->model))
        o->async_scheduling = MAQ_OFF;
    if (o->sglang.max_prefill_tokens == 0)
        o->sglang.max_prefill_tokens = 16384;
    complete_prefill_graphs(o, job);
    if (o->sglang.conservativeness <= 0)
        o->sglang.conservativeness = 1;
    if (o->sglang.reserved_decode_tokens <= 0)
        o->sglang.reserved_decode_tokens = 512;
    if (o->gpu_memory_utilization <= 0 && o->static_memory_share <= 0 && o->free_memory_share <= 0)
        o->static_memory_share = static_share(o, job, device->mem_bytes);
}

/* ---- all ---- */

static void complete_speculation(struct maq_speculation *s)
{
    if (s->method == MAQ_DRAFT_NONE)
        return;
    s->branches = s->branches > 1 ? s->branches : 1;
    s->verified = s->verified > 0 ? s->verified : s->tokens + 1;
}

/* vLLM's (config/lora.py); SGLang's number of slots is another, and its host keeps all (server_args.py). */
static void complete_lora(struct maq_lora_options *l, enum maq_engine engine)
{
    if (!l->enabled)
        return;
    if (l->max_loras == 0)
        l->max_loras = engine == MAQ_ENGINE_SGLANG ? 8 : 1;
    if (l->max_lora_rank == 0)
        l->max_lora_rank = 16;
    if (l->max_cpu_loras == 0)
        l->max_cpu_loras = engine == MAQ_ENGINE_SGLANG ? INT32_MAX : l->max_loras;
}

void maq_serve_complete(struct maq_serve_options *o, const struct maq_serve_options *given, const struct maq_job *job)
{
    const struct maq_device *device = &job->cluster.groups[job->stages[0].group].device;
    *o = *given;
    o->dp = o->dp > 1 ? o->dp : 1;
    o->ep = o->ep > 1 ? o->ep : 1;
    complete_speculation(&o->speculation);
    complete_lora(&o->lora, o->engine);
    if (o->afd.ffn_ranks > 0 && o->afd.micro_batches == 0)
        o->afd.micro_batches = 2; /* vLLM's plugin has exactly two (afd-plugin, README.md) */
    if (o->engine == MAQ_ENGINE_VLLM)
        vllm_limits(o, &job->model, device);
    else if (o->engine == MAQ_ENGINE_SGLANG)
        sglang_limits(o, job, device);
    else
        other_limits(o);
    if (o->block_size == 0)
        o->block_size = o->engine == MAQ_ENGINE_TRTLLM ? 32 : o->engine == MAQ_ENGINE_SGLANG ? 1 : 16;
    if (o->engine == MAQ_ENGINE_TRTLLM && o->gpu_memory_utilization <= 0 && o->free_memory_share <= 0)
        o->free_memory_share = 0.9;
    if (o->gpu_memory_utilization <= 0)
        o->gpu_memory_utilization =
            o->engine == MAQ_ENGINE_VLLM && maq_engine_release(o->version) >= MAQ_RELEASE(0, 21, 0) ? 0.92 : 0.9;
    if (o->max_model_len == 0)
        o->max_model_len = job->model.max_seq > 0 ? job->model.max_seq : 8192;
    if (o->engine == MAQ_ENGINE_TRTLLM && !o->chunked_prefill)
        o->no_chunked_prefill = true;
    if (o->engine != MAQ_ENGINE_TRTLLM && o->no_chunked_prefill && o->max_num_batched_tokens < o->max_model_len)
        o->max_num_batched_tokens = (int32_t)(o->max_model_len < INT32_MAX ? o->max_model_len : INT32_MAX);
}
