/* SPDX-License-Identifier: Apache-2.0 */
/* starvation.c - what requests wait for that wait when nothing is left that could happen. */
#include "serve/codes.h"
#include "serve/engine/engine.h"
#include "serve/engine/run.h"

/*
 * One that was preempted has to compute what it has sampled beside its prompt, at once where nothing is cut: with more tokens than an iteration has its scheduler stops in front
 * of it for ever (vLLM 0.33.0, v1/core/sched/scheduler.py: no chunked prefill, num_new_tokens > token_budget). vLLM itself refuses a max_model_len above max_num_batched_tokens
 * then (config/scheduler.py), so that it does not come to this; engines without that check do. That the cache holds every request alone has been seen to before.
 */
static const struct maq_engine_slot *too_long(const struct maq_serve_engine *e)
{
    const struct maq_serve_options *o = &e->d->options;
    for (uint32_t r = 0; o->no_chunked_prefill && o->engine != MAQ_ENGINE_SGLANG && r < e->n_ranks; r++)
        for (uint32_t i = 0; i < e->ranks[r].slots_size; i++) {
            const struct maq_engine_slot *s = &e->ranks[r].slots[i];
            const struct maq_request *q = s->here ? &e->clients->requests->at[s->request] : NULL;
            if (q && e->clients->served[s->request].preemptions > 0 &&
                q->prompt + q->output > o->max_num_batched_tokens)
                return s;
        }
    return NULL;
}

enum maq_status maq_engine_starved(const struct maq_serve_engine *engines, uint32_t n, struct maq_diag *diag)
{
    struct maq_tiers_in_vain vain;
    const struct maq_engine_slot *slot;
    for (uint32_t k = 0; k < n; k++)
        if ((slot = too_long(&engines[k])) != NULL)
            return maq_diag_fail(
                MAQ_NO, diag, MAQ_CODE_SERVE_WHOLE, (struct maq_span){0},
                "--max-num-batched-tokens of all tokens of a request, chunked prefill, or more room in the cache",
                "request %u was preempted: what it has sampled is computed again with its prompt, at once, which is "
                "more than the %d tokens of an iteration. It is never taken in again, and what is behind it waits for "
                "ever",
                slot->request + 1, engines[k].d->options.max_num_batched_tokens);
    for (uint32_t k = 0; k < n; k++)
        if (maq_tiers_find_in_vain(&engines[k], &vain))
            return maq_diag_fail(
                MAQ_NO, diag, MAQ_CODE_SERVE_IN_VAIN, (struct maq_span){0},
                "a larger --kv-offloading-size, or no drive and no pool behind it",
                "request %u waits for ever for its beginning, of %u chunks, some of which are in a drive or "
                "pool: vLLM brings them into host memory, which holds %lld, and those that it has brought "
                "push each other out before all are there",
                vain.request + 1, vain.chunks, (long long)vain.room);
    return maq_diag_fail(MAQ_NO, diag, MAQ_CODE_REQUEST_BLOCKS, (struct maq_span){0}, NULL,
                         "requests wait that never find room in the cache");
}
