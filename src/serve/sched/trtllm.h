/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trtllm.h - the scheduler of TensorRT-LLM, as far as it is there: vLLM's (vllm.h) with the rules of who is taken in that TensorRT-LLM has.
 *
 *   GUARANTEED_NO_EVICT   the default: who is taken in finds room to its end, whatever it samples, so that nobody is preempted
 *   MAX_UTILIZATION       who is taken in finds room for what is known of it now. Before each iteration all are gone through in the order in which they
 *                         came, those that run and those that wait: for whom there is no room for the next step, the last one of those behind
 *                         it that have begun is paused, and it is tried again; with nobody left to pause the rest waits. Who is paused gives
 *                         all its blocks back, keeps its place in that order, and is computed again with what it sampled
 *
 * With `wait_iterations` prompts that could begin are kept back, while others decode, for a batch of at least `wait_tokens` tokens, the decodes
 * counted; at most for so many iterations (_waiting_requests() of tensorrt_llm/_torch/pyexecutor/py_executor.py: batch_wait_timeout_iters,
 * batch_wait_max_tokens_ratio). Prefixes that are cached count as if they were not.
 *
 * Host memory behind the blocks (kv_cache_config: host_cache_size) is swap.h's: a request whose beginning goes on there is taken in with it.
 *
 * (NVIDIA/TensorRT-LLM, commit 02a10fe, cpp/tensorrt_llm/batch_manager/capacityScheduler.cpp.) What the other one of its two schedulers decides, which
 * pieces of prompts an iteration takes, is that of chunked_prefill. Blocks that a beginning shares with others count as if it did not; a
 * request that could use what another one computes just now is not held back for it.
 */
#ifndef MAQ_SERVE_SCHED_TRTLLM_H
#define MAQ_SERVE_SCHED_TRTLLM_H

#include "serve/sched/vllm.h"

enum maq_trtllm_capacity { MAQ_TRTLLM_NO_EVICT, MAQ_TRTLLM_MAX_UTILIZATION };

struct maq_trtllm_rules {
    enum maq_trtllm_capacity capacity;
    int32_t wait_iterations; /* 0 = nobody is kept back */
    double wait_tokens;
};

enum maq_status maq_trtllm_new(struct maq_scheduler **out, const struct maq_vllm_knobs *knobs,
                               const struct maq_kv_options *kv, const struct maq_trtllm_rules *rules);

#endif
