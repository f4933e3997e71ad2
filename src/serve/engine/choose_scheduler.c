/* SPDX-License-Identifier: Apache-2.0 */
/* choose_scheduler.c - which scheduler an engine has, and what it is told. */
#include "serve/engine/engine.h"
#include "serve/sched/sglang.h"
#include "serve/sched/trtllm.h"
#include "serve/sched/vllm.h"

static struct maq_vllm_knobs vllm_knobs(const struct maq_deployment *d)
{
    const struct maq_serve_options *o = &d->options;
    return (struct maq_vllm_knobs){.max_num_seqs = o->max_num_seqs,
                                   .max_num_batched_tokens = o->max_num_batched_tokens,
                                   .max_model_len = o->max_model_len,
                                   .long_prefill_token_threshold = o->long_prefill_token_threshold,
                                   .chunked_prefill = !o->no_chunked_prefill,
                                   .priority = o->by_priority,
                                   .async = d->host.async,
                                   .reserve_full_isl = true};
}

static struct maq_sglang_knobs sglang_knobs(const struct maq_deployment *d)
{
    const struct maq_serve_options *o = &d->options;
    const struct maq_sglang_options *g = &o->sglang;
    int64_t half = d->kv_tokens / 2, running = o->max_num_seqs < half ? o->max_num_seqs : half;
    int32_t page = o->block_size, chunk = o->max_num_batched_tokens / page * page;
    return (struct maq_sglang_knobs){.tokens = d->kv_tokens,
                                     .page = page,
                                     .max_running = running > 1 ? (int32_t)running : 1,
                                     .max_prefill = g->max_prefill_tokens,
                                     .chunk = o->no_chunked_prefill ? 0
                                              : chunk > page        ? chunk
                                                                    : page,
                                     .max_requests = g->prefill_max_requests,
                                     .lanes = (int32_t)d->passes.n_stages,
                                     .conservativeness = g->conservativeness,
                                     .policy = g->policy,
                                     .eviction = g->eviction,
                                     .caching = !o->no_prefix_caching,
                                     .overlap = d->host.async,
                                     .mixed = g->mixed_chunk,
                                     .by_priority = o->by_priority,
                                     .low_first = true};
}

/* A model of states alone has no tokens that a tree could keep: vLLM's blocks of states decide for it. */
static bool keeps_tokens(const struct maq_deployment *d)
{
    for (uint32_t g = 0; g < d->n_groups; g++)
        if (d->groups[g].kind != MAQ_KV_STATE)
            return true;
    return false;
}

/*
 * vLLM's front end scores an engine by the requests that it runs and four times those that wait, and takes the first with the least
 * (v1/engine/core_client.py, DPLBAsyncMPClient); TensorRT-LLM the one with the fewest (_torch/pyexecutor, _balance_requests_across_ranks); SGLang's
 * controller goes round (managers/data_parallel_controller.py).
 */
uint32_t maq_engine_choose_rank(struct maq_serve_engine *e)
{
    uint32_t best = 0, least = UINT32_MAX;
    if (e->n_ranks == 1)
        return 0;
    if (e->d->options.engine == MAQ_ENGINE_SGLANG)
        return e->next_rank++ % e->n_ranks;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        struct maq_scheduler_load load = e->ranks[r].sched->ops->load(e->ranks[r].sched);
        uint32_t score = (e->d->options.engine == MAQ_ENGINE_VLLM ? 4 : 1) * load.waiting + load.running;
        if (score < least) {
            least = score;
            best = r;
        }
    }
    return best;
}

enum maq_status maq_engine_scheduler(struct maq_scheduler **out, const struct maq_deployment *d,
                                     uint32_t most_in_flight)
{
    const struct maq_serve_options *o = &d->options;
    const struct maq_vllm_knobs knobs = vllm_knobs(d);
    const struct maq_kv_options kv = {.groups = d->groups,
                                      .n_groups = d->n_groups,
                                      .blocks = (uint32_t)d->blocks,
                                      .caching = !o->no_prefix_caching,
                                      .max_len = o->max_model_len,
                                      .in_flight = (int64_t)o->max_num_batched_tokens * most_in_flight};
    if (o->engine == MAQ_ENGINE_SGLANG && keeps_tokens(d)) {
        const struct maq_sglang_knobs sglang = sglang_knobs(d);
        return maq_sglang_new(out, &sglang);
    }
    return o->engine == MAQ_ENGINE_TRTLLM ? maq_trtllm_new(out, &knobs, &kv) : maq_vllm_new(out, &knobs, &kv);
}
