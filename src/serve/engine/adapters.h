/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adapters.h - which LoRA adapters an engine's GPUs and its host hold, and what an iteration waits for.
 *
 * Before an iteration each of its adapters is in a slot of the GPU. One that is not is copied there in place of the one unused for longest that this iteration
 * does not use; one that the host does not hold either is read first, in place of the host's oldest. Reading holds the host up, which prepares the iteration; copying
 * holds up the stages (vLLM 0.33.0, lora/worker_manager.py, LRUCacheWorkerLoRAManager; SGLang 0.5.23, lora/mem_pool.py, prepare_lora_batch()). All are read when
 * they are asked for first: none is there at the beginning.
 */
#ifndef MAQ_SERVE_ENGINE_ADAPTERS_H
#define MAQ_SERVE_ENGINE_ADAPTERS_H

#include "serve/sched/adapter_set.h"
#include "serve/sched/scheduler.h"

struct maq_serve_engine;
struct maq_serve_result;

/* Of one rank. */
struct maq_rank_adapters {
    struct maq_adapter_set batch;     /* of the iteration that is launched */
    struct maq_adapter_set gpu, host; /* the one unused for longest first */
};

/* What an engine counted. */
struct maq_adapters_seen {
    uint64_t copies, reads, active; /* active: different ones, all iterations together */
    double copy_s, read_s;
};

void maq_adapters_fini(struct maq_rank_adapters *a);
/* The iterations that all ranks have decided, in a place of the ring, are about to be launched: their batches get what they have of adapters. */
void maq_adapters_launch(struct maq_serve_engine *e, uint32_t place);
/* The same of iterations of steady decodes, and of further ones of it. */
void maq_adapters_steady_decodes(struct maq_serve_engine *e);
/* What `n` engines counted together, in out->lora. */
void maq_adapters_fill(const struct maq_serve_engine *engines, uint32_t n, struct maq_serve_result *out);

#endif
