/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vllm_remote.c - requests whose prompts other engines compute, and prompts that are computed for other engines.
 *
 * vLLM 0.33.0, v1/core/sched/scheduler.py: the asynchronous load of a connector in schedule(), _inflight_prefill_reserved_blocks(),
 * _update_waiting_for_remote_kv(), _connector_finished() and _update_from_kv_xfer_finished().
 */
#include "base/bug.h"
#include "serve/sched/vllm.h"

static int64_t ceil_blocks(int64_t tokens, int64_t block)
{
    return (tokens + block - 1) / block;
}

/* Blocks that a request asks for yet, for all that is known of it and a first decode with drafts. */
static int64_t asks_yet(const struct maq_vllm *s, const struct maq_vllm_request *r, int64_t drafting)
{
    int64_t sum = 0;
    for (uint32_t g = 0; g < s->kv.n_groups; g++) {
        int64_t all = ceil_blocks(r->tokens + drafting, s->kv.group[g].block_size), held = r->kv.table[g].n;
        all = s->kv.cap[g] > 0 && s->kv.cap[g] < all ? s->kv.cap[g] : all;
        sum += all > held ? all - held : 0;
    }
    return sum;
}

/* A load holds its own for long and cannot be preempted, so it does not take what they will need. */
int64_t maq_vllm_promised(const struct maq_vllm *s)
{
    const struct maq_vllm_knobs *k = &s->knobs;
    int64_t sum = 0, drafting = k->spec_tokens > 0 ? 1 + k->spec_tokens + k->lookahead_tokens : 0;
    for (uint32_t g = 0; g < s->kv.n_groups; g++)
        sum += s->kv.group[g].kind == MAQ_KV_STATE ? 0 : ceil_blocks(drafting, s->kv.group[g].block_size);
    for (uint32_t i = 0; i < s->n_running; i++) {
        const struct maq_vllm_request *r = &s->at[s->running[i]];
        bool partial = r->partial || (r->given > 0 && r->computed + r->given < r->tokens);
        sum += partial ? asks_yet(s, r, drafting) : 0;
    }
    for (uint32_t i = 0; i < s->n_loading; i++)
        sum += asks_yet(s, &s->at[s->loading[i]], drafting);
    return sum;
}

/* Behind all others, or where its priority says. */
static bool stand_aside(struct maq_vllm *s, uint32_t slot)
{
    if (!maq_slots_push(&s->loading, &s->n_loading, &s->loading_size, slot))
        return false;
    uint32_t i = s->n_loading - 1;
    for (; s->knobs.priority && i > 0 && maq_waiting_before(&s->at[slot].rank, &s->at[s->loading[i - 1]].rank); i--)
        s->loading[i] = s->loading[i - 1];
    s->loading[i] = slot;
    return true;
}

bool maq_vllm_take_aside(struct maq_vllm *s, struct maq_waiting first, int64_t found, int64_t added)
{
    struct maq_vllm_request *r = &s->at[first.slot];
    const struct maq_kv_need need = {.tokens = r->tokens,
                                     .found = found,
                                     .added = added,
                                     .whole_fits = s->knobs.reserve_full_isl,
                                     .keeps_free = s->n_running > 0,
                                     .spared = maq_vllm_promised(s),
                                     .filled_later = true};
    if ((s->admission && !s->admission->admits(s, r)) || !maq_kv_allocate(&s->kv, &r->kv, &need))
        return false;
    if (s->admission)
        s->admission->taken_in(s, r);
    maq_queue_pop(&s->waiting);
    r->status = MAQ_VLLM_LOADING;
    s->base.failed |= !stand_aside(s, first.slot);
    return true;
}

bool maq_vllm_reserve(struct maq_vllm *s, struct maq_iteration *it, struct maq_waiting first)
{
    struct maq_vllm_request *r = &s->at[first.slot];
    int64_t found = maq_kv_find(&s->kv, &r->kv, r->tokens, r->tokens - 1);
    if (!maq_vllm_take_aside(s, first, found, r->tokens - found))
        return false;
    s->base.failed |= !maq_iteration_load(it, first.slot, found);
    return !s->base.failed;
}

void maq_vllm_arrived(struct maq_vllm *s, uint32_t slot)
{
    struct maq_vllm_request *r = &s->at[slot];
    MAQ_ASSERT(r->status == MAQ_VLLM_LOADING);
    r->status = MAQ_VLLM_LOADED;
    s->n_loaded++;
}

void maq_vllm_release(struct maq_vllm *s, uint32_t slot)
{
    MAQ_ASSERT(s->at[slot].status == MAQ_VLLM_HELD);
    maq_vllm_free_request(s, slot);
}

int64_t maq_vllm_cached(struct maq_vllm *s, const struct maq_content *content, int64_t prompt)
{
    if (!maq_kv_request_begin(&s->kv, &s->probe, content)) {
        s->base.failed = true;
        return 0;
    }
    return maq_kv_find(&s->kv, &s->probe, prompt, prompt - 1);
}
