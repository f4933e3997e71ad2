/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_swaps.h - what blocks that move to host memory and back delay: TensorRT-LLM's secondary pool (serve/kv/swap.h).
 *
 * What an iteration moves begins when all that was launched before it has left the GPUs, and it waits for all of it: those out, whose blocks it is given,
 * and those back, whose prefixes it reads. Each GPU moves its part over its own link, both directions at once:
 *
 *   starts = max(when it is ready, free + max(out, back) * bytes of a block on the GPU with the most of it / rate)
 *
 * NVIDIA/TensorRT-LLM, commit 03d4aac, cpp/tensorrt_llm/batch_manager/kvCacheTransferManager.cpp: a stream for each direction, both of which wait for the one that
 * computes (syncWithBufferManager), which waits for both (syncTransfers).
 */
#ifndef MAQ_SERVE_ENGINE_HOST_SWAPS_H
#define MAQ_SERVE_ENGINE_HOST_SWAPS_H

#include <stdint.h>

struct maq_serve_engine;

/* Of one rank: blocks that its engine has seen move. */
struct maq_rank_swaps {
    int64_t out, back;
};

/* Schedulers have decided: when the iteration may start. */
double maq_swaps_decided(struct maq_serve_engine *e);

#endif
