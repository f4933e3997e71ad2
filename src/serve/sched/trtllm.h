/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trtllm.h - the scheduler of TensorRT-LLM, as far as it is there: vLLM's (vllm.h) with the rule of admission that TensorRT-LLM has by default.
 *
 * GUARANTEED_NO_EVICT (capacityScheduler.cpp): who is taken in finds room to its end, whatever it samples, so that nobody is preempted. What the other
 * one of its two schedulers decides, which pieces of prompts an iteration takes, is that of chunked_prefill. MAX_UTILIZATION, which takes in whom the cache
 * holds now and pauses those for whom it does not later, is not there: it would be another admission, and vLLM's preemption.
 */
#ifndef MAQ_SERVE_SCHED_TRTLLM_H
#define MAQ_SERVE_SCHED_TRTLLM_H

#include "serve/sched/vllm.h"

enum maq_status maq_trtllm_new(struct maq_scheduler **out, const struct maq_vllm_knobs *knobs,
                               const struct maq_kv_options *kv);

#endif
