/* SPDX-License-Identifier: Apache-2.0 */
/*
 * attention_dp_balance.h - ranks of attention that wait for each other before prompts begin, so that none of them computes a prompt while the others wait
 * for it in the experts (TensorRT-LLM, attention_dp_config with enable_balance).
 *
 * Before each iteration (_balance_adp_context_requests() of tensorrt_llm/_torch/pyexecutor/scheduler):
 *
 *   every rank has a prompt and room for one   prompts begin; while all decode, after `batching` such iterations
 *   else                                       none begins, until `timeout` iterations were without, or a rank has nobody that decodes
 *
 * The second count goes on where nobody waits at all. A rank has a prompt when somebody waits there, whether or not its cache has room.
 */
#ifndef MAQ_SERVE_ENGINE_ATTENTION_DP_BALANCE_H
#define MAQ_SERVE_ENGINE_ATTENTION_DP_BALANCE_H

#include <stdint.h>

struct maq_serve_engine;

struct maq_attention_dp_waits {
    int32_t waited, batched; /* iterations */
};

/* Before the schedulers are asked for an iteration: whether they may begin a prompt in it. */
void maq_attention_dp_hold(struct maq_serve_engine *e);
/* n iterations in which nobody waited were done at once. */
void maq_attention_dp_skip(struct maq_serve_engine *e, int64_t n);

#endif
