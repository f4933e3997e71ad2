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
 * CUDA graphs for 1, 2, 4, multiples of 8 below 256, then of 16 up to min(2 max_num_seqs, 512) tokens; 1,024 on data-centre Blackwell.
 *
 * The other engines' limits are theirs as far as they differ: SGLang runs up to what its cache holds and cuts prompts into pieces of
 * 8,192 tokens (server_args.py); TensorRT-LLM has max_batch_size 2,048 and max_num_tokens 8,192, computes prompts whole, and its cache has 0.9
 * of the memory that weights and activations leave (llmapi/llm_args.py).
 */
#include <string.h>

#include "base/check.h"
#include "base/units.h"
#include "serve/engine/deployment.h"

static void vllm_limits(struct maq_serve_options *o, const struct maq_device *device)
{
    bool a100 = strstr(device->name, "a100") != NULL, huge = device->mem_bytes >= 160 * MAQ_GIB,
         large = device->mem_bytes >= 70 * MAQ_GIB && !a100;
    int32_t tokens = huge ? 16384 : large ? (o->offline ? 16384 : 8192) : o->offline ? 8192 : 2048;
    if (o->max_num_batched_tokens == 0)
        o->max_num_batched_tokens = tokens;
    if (o->max_num_seqs == 0)
        o->max_num_seqs = huge || large ? 1024 : 256;
}

static void other_limits(struct maq_serve_options *o)
{
    if (o->max_num_batched_tokens == 0)
        o->max_num_batched_tokens = 8192;
    if (o->max_num_seqs == 0)
        o->max_num_seqs = 2048;
}

void maq_serve_complete(struct maq_serve_options *o, const struct maq_serve_options *given, const struct maq_job *job)
{
    const struct maq_device *device = &job->cluster.groups[job->stages[0].group].device;
    *o = *given;
    if (o->engine == MAQ_ENGINE_VLLM)
        vllm_limits(o, device);
    else
        other_limits(o);
    if (o->block_size == 0)
        o->block_size = o->engine == MAQ_ENGINE_TRTLLM ? 32 : o->engine == MAQ_ENGINE_SGLANG ? 1 : 16;
    if (o->engine == MAQ_ENGINE_TRTLLM && o->gpu_memory_utilization <= 0 && o->free_memory_share <= 0)
        o->free_memory_share = 0.9;
    if (o->gpu_memory_utilization <= 0)
        o->gpu_memory_utilization = 0.9;
    if (o->max_model_len == 0)
        o->max_model_len = job->model.max_seq > 0 ? job->model.max_seq : 8192;
    if (o->ep == 0)
        o->ep = 1;
    if (o->engine == MAQ_ENGINE_TRTLLM && !o->chunked_prefill)
        o->no_chunked_prefill = true;
    if (o->engine != MAQ_ENGINE_TRTLLM && o->no_chunked_prefill && o->max_num_batched_tokens < o->max_model_len)
        o->max_num_batched_tokens = (int32_t)(o->max_model_len < INT32_MAX ? o->max_model_len : INT32_MAX);
}

int64_t maq_serve_graph_size(const struct maq_serve_options *o, int64_t tokens)
{
    int64_t most = 2 * (int64_t)o->max_num_seqs < 512 ? 2 * (int64_t)o->max_num_seqs : 512, size;
    if (o->enforce_eager || tokens > most)
        return 0;
    if (tokens <= 2)
        return tokens;
    if (tokens <= 4)
        return 4;
    size = tokens < 256 ? (tokens + 7) / 8 * 8 : (tokens + 15) / 16 * 16;
    return size < most ? size : most;
}
