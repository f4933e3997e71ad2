/* SPDX-License-Identifier: Apache-2.0 */
/* policy.c - which scheduler an engine has, and what it is told. */
#include "serve/engine/engine.h"
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
    return o->engine == MAQ_ENGINE_TRTLLM ? maq_trtllm_new(out, &knobs, &kv) : maq_vllm_new(out, &knobs, &kv);
}
