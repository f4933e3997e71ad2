/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph_sizes.c - the sizes for which an engine has CUDA graphs, to which batches are padded.
 *
 * vLLM (0.33.0, config/vllm.py, _set_cudagraph_sizes): 1, 2, 4, multiples of 8 below 256, then of 16 up to max_cudagraph_capture_size: by default
 * min(2 max_num_seqs q, 512) tokens, q for each request that decodes, one, and its drafts; 1,024 for gpt-oss from 0.10.1 on
 * (model_executor/models/config.py). Graphs for batches in which all decode have a multiple of q tokens: those sizes rounded up, and q times as
 * many requests as in the same list (v1/worker/gpu/cudagraph_utils.py). Its first engine, before 0.8: of decodes alone, one token each, 1, 2, 4 and
 * multiples of 8 to 256 (worker/model_runner.py, _BATCH_SIZES_TO_CAPTURE); before 0.2.6 there are none.
 *
 * SGLang (0.5.23, arg_groups/cuda_graph_hook.py): requests that decode, q tokens each: 1, 2, 4, 8, 12, multiples of 8 to 256, of 16 below 512, of 32
 * from there on; with speculative decoding all to 8, of 2 to 32, of 4 to 64, of 8 to 256, of 16 from there on.
 *
 * TensorRT-LLM has graphs of decodes alone; those of prefills (torch_compile_config) are off unless asked for.
 */
#include "base/check.h"
#include "serve/engine/deployment.h"

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static int64_t rounded(int64_t n, int64_t step)
{
    return (n + step - 1) / step * step;
}

static int64_t vllm_listed(int64_t n)
{
    if (n <= 2)
        return n;
    if (n <= 4)
        return 4;
    return rounded(n, n < 256 ? 8 : 16);
}

static int64_t vllm_size(const struct maq_serve_options *o, int64_t tokens, int64_t queries)
{
    int32_t release = maq_engine_release(o->version);
    if (release < MAQ_VLLM_COMPILED)
        return release >= MAQ_VLLM_GRAPHS && tokens <= least(o->max_num_seqs, 256) ? vllm_listed(tokens) : 0;
    int64_t verified = o->speculation.method != MAQ_DRAFT_NONE && queries > 0 ? o->speculation.verified : 1,
            most = o->graph_tokens != 0 ? least(o->graph_tokens, o->max_num_batched_tokens)
                                        : least(2 * (int64_t)o->max_num_seqs * verified, 512);
    if (tokens > most)
        return 0;
    if (queries <= 1)
        return least(vllm_listed(tokens), most);
    int64_t stepped = rounded(vllm_listed(tokens > queries ? tokens - queries + 1 : 1), queries),
            counted = vllm_listed(tokens / queries) * queries, size = least(stepped, counted);
    return size <= most ? size : 0;
}

/* The next number of requests behind `n`, of steps {up to, step}. */
static int64_t stepped(const int64_t (*steps)[2], size_t count, int64_t n)
{
    size_t i = 0;
    while (i + 1 < count && n > steps[i][0])
        i++;
    return rounded(n, steps[i][1]);
}

static int64_t sglang_size(const struct maq_serve_options *o, int64_t tokens, int64_t queries)
{
    static const int64_t plain[][2] = {{2, 1}, {16, 4}, {256, 8}, {512, 16}, {INT64_MAX, 32}},
                         drafting[][2] = {{8, 1}, {32, 2}, {64, 4}, {256, 8}, {INT64_MAX, 16}};
    int64_t each = queries > 1 ? queries : 1, requests = rounded(tokens, each) / each,
            most = o->sglang.graph_max_requests;
    if (requests > most)
        return 0;
    int64_t size = o->speculation.method == MAQ_DRAFT_NONE ? stepped(plain, MAQ_COUNT(plain), requests)
                                                           : stepped(drafting, MAQ_COUNT(drafting), requests);
    return least(size, most) * each;
}

int64_t maq_serve_graph_size(const struct maq_serve_options *o, int64_t tokens, int64_t queries)
{
    if (o->enforce_eager)
        return 0;
    return o->engine == MAQ_ENGINE_SGLANG ? sglang_size(o, tokens, queries) : vllm_size(o, tokens, queries);
}

/*
 * Prefills. vLLM's sizes hold them too. SGLang's, tokens of all prompts together: 0.5.10, _generate_piecewise_cuda_graph_tokens, and 0.5.23,
 * generate_prefill_cuda_graph_batch_sizes.
 */
int64_t maq_serve_prefill_graph_size(const struct maq_serve_options *o, int64_t tokens)
{
    if (o->enforce_eager || o->engine == MAQ_ENGINE_TRTLLM)
        return 0;
    if (o->engine == MAQ_ENGINE_VLLM)
        return maq_engine_release(o->version) < MAQ_VLLM_COMPILED ? 0 : vllm_size(o, tokens, 1);
    static const int64_t steps[][2] = {{32, 4}, {256, 16}, {512, 32}, {1024, 64}, {4096, 256}, {INT64_MAX, 512}};
    int64_t size = stepped(steps, MAQ_COUNT(steps), tokens);
    return size <= o->sglang.prefill_graph_tokens ? size : 0;
}
