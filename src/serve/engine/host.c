/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host.c - what an engine's host does, by engine and release: for an iteration, and for a request on its way in and out.
 *
 * Times are those of the reference host (framework.h). Four kinds:
 *
 *   respond_s, stream_s, enter_s, enter_token_s, tokenize_s
 *                              the API server of vLLM 0.33.0 with requests of 20 and of 1,500 words and 1 to 64 at a time
 *                              (front_time.py in tools/vllm-truth): processor time of its loop and of its other threads. By the same
 *                              that of SGLang 0.5.23, whose loop makes tokens of text as well and whose tokens pass a process that
 *                              makes text of them (front_end.py in tools/sglang-truth). TensorRT-LLM's, which is Python behind
 *                              uvicorn, too, is taken to be as slow as vLLM's
 *   arrive_s                   2.6 ms of a client by the same measurement, and what loop and threads take for a request alone (5.7 and 1.1;
 *                              SGLang's 5.3 and 0.4) beyond what they take for one of 16 (3.9; 2.5); Dynamo's the client's alone
 *   request_s                  of one that decodes, from the decision to the bytes for the API server or the detokenizer. Measured for vLLM
 *                              0.33.0 (host_time.py, step_time.py in tools/vllm-truth) and SGLang 0.5.23 (host_time.py in
 *                              tools/sglang-truth), 14 us and 51 to 83 us on a Zen 3; what the worker process does besides, another
 *                              4 us, is not in it. Of vLLM's releases that wait for the worker, too, whole steps of 0.11.1 and of
 *                              0.2.6 (step_time.py): 12 and 41 us. A release in between has what the one before it has that was measured.
 *                              TensorRT-LLM's Python is taken to be as slow as vLLM's
 *   pass_s, piece_s, compiled_s, eager_s, experts_s
 *                              measured for vLLM 0.33.0 on the zero-GPU device (launch_time.py in tools/vllm-truth), Python of the other
 *                              engines taken to be as slow; eager_s of the older releases by step_time.py. Before 0.11 decodes are in pieces
 *                              as well, and a piece is taken to be a graph and an attention's kernels out of Python: with 0.33's 280 us a
 *                              layer Llama 70B would decode in 17 ms on eight H200, where it took 7.9
 *   library_experts_s          the same with FlashInfer's CUTLASS experts, whose compiled part was empty: 0.4 ms less
 *   compile_s                  SGLang 0.5.9's norm by Triton 3.5.1 for Hopper and Blackwell, 71 to 76 ms on a Zen 5 (compile_time.py in
 *                              tools/sglang-truth); most of it is the same for any small kernel
 *   all others                 assumed: round figures of the size that an iteration, a graph and a request take a Python process on
 *                              that host. Nothing of them was measured, and nothing was fitted
 *
 * docs/validate-serve.md has the errors.
 */
#include "base/str.h"
#include "serve/engine/deployment.h"

#define TOKEN_OF_TEXT_S 4.9e-6 /* to make a token of text, whoever does it */
#define ATTENTION_KERNELS 2.0  /* keys and values into the cache, attention */

struct maq_host_profile maq_host_profile_of(const struct maq_serve_options *o)
{
    struct maq_host_profile h = {.iteration_s = 1.0e-3,
                                 .request_s = 5e-6,
                                 .graph_s = 10e-6,
                                 .pass_s = 1.8e-3,
                                 .piece_s = 280e-6,
                                 .compiled_s = 28e-6,
                                 .eager_s = 48e-6,
                                 .experts_s = 1e-3,
                                 .library_experts_s = 0.6e-3,
                                 .compile_s = 150e-3,
                                 .respond_s = 1.4e-3,
                                 .stream_s = 0.24e-3,
                                 .arrive_s = 6.4e-3,
                                 .enter_s = 4.7e-3,
                                 .enter_token_s = 2.2e-6,
                                 .tokenize_s = TOKEN_OF_TEXT_S};
    int32_t release = maq_engine_release(o->version);
    switch (o->engine) {
    case MAQ_ENGINE_VLLM:
        h.request_s = release < MAQ_VLLM_COMPILED ? 49e-6 : release < MAQ_VLLM_ASYNC ? 15e-6 : 17e-6;
        h.eager_s = release < MAQ_VLLM_COMPILED ? 24e-6 : release < MAQ_VLLM_ASYNC ? 28e-6 : h.eager_s;
        if (release < MAQ_VLLM_WHOLE_GRAPHS)
            h.piece_s = h.graph_s + ATTENTION_KERNELS * h.eager_s;
        h.async = release >= MAQ_VLLM_ASYNC;
        h.async_pipeline =
            release >= MAQ_VLLM_SECOND_RUNNER; /* its second model runner; the first does not (config/vllm.py) */
        h.stream_s /= o->dp > 1 ? o->dp : 1;   /* as many API servers as ranks */
        break;
    case MAQ_ENGINE_SGLANG:
        h.request_s = 50e-6;
        h.async = true;
        h.respond_s = 2.4e-3;
        h.arrive_s = 7e-3;
        h.enter_s = 3e-3;
        h.enter_token_s = 5.6e-6;
        h.tokenize_s = 0;
        break;
    case MAQ_ENGINE_TRTLLM:
        h.request_s = 17e-6;
        h.async = true;
        break;
    case MAQ_ENGINE_COUNT:
        break;
    }
    /*
     * Dynamo is compiled code that makes tokens of several prompts at a time, in front of a worker in Python, whose loop has each token once more: of Dynamo
     * 0.8.1 in front of SGLang's tokenizer manager 0.55 ms an iteration and 31 to 36 us a stream, of its own alone 12 to 20 us, on a Zen 5
     * (dynamo_worker.py in tools/sglang-truth). The rest is the client's.
     */
    if (o->front_end == MAQ_FRONT_END_DYNAMO) {
        h.arrive_s = 3e-3;
        h.arrive_token_s = TOKEN_OF_TEXT_S;
        h.respond_s = 1.1e-3;
        h.stream_s = o->engine == MAQ_ENGINE_SGLANG ? 67e-6 : 40e-6;
        h.enter_s = 1e-3;
        h.enter_token_s = h.tokenize_s = 0;
    }
    if (o->front_end == MAQ_FRONT_END_NONE || o->offline)
        h.arrive_s = h.arrive_token_s = h.enter_s = h.enter_token_s = h.tokenize_s = h.respond_s = h.stream_s = 0;
    if (o->async_scheduling != MAQ_AUTO)
        h.async = o->async_scheduling == MAQ_ON;
    return h;
}
