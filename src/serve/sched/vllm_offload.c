/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vllm_offload.c - requests whose prefixes lie in tiers behind the GPU's blocks, and what goes there.
 *
 * vLLM 0.33.0, v1/core/sched/scheduler.py: what schedule() asks a connector, and in which order; _update_waiting_for_remote_kv().
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "serve/sched/vllm.h"

enum maq_status maq_vllm_set_tiers(struct maq_vllm *s, const struct maq_offload_options *options)
{
    s->offload = maq__malloc(sizeof *s->offload);
    if (!s->offload)
        return MAQ_NO_MEMORY;
    s->kv.hash_all = true;
    return maq_offload_init(s->offload, options, s->kv.pool.n, s->kv.group[0].block_size, s->kv.caching);
}

void maq_vllm_offload_fini(struct maq_vllm *s)
{
    if (s->offload)
        maq_offload_fini(s->offload);
    free(s->offload);
    s->offload = NULL;
}

bool maq_vllm_offload_add(struct maq_vllm *s, uint32_t slot)
{
    if (!s->offload)
        return true;
    s->at[slot].user = maq_offload_begin(s->offload, s->at[slot].rank.order + 1, slot);
    return s->at[slot].user != MAQ_OFFLOAD_NOBODY;
}

/* What is known of a request now: of the tokens that have come. */
static struct maq_offload_view view_of(struct maq_vllm *s, struct maq_vllm_request *r)
{
    if (!maq_kv_hash_up_to(&s->kv, &r->kv, r->tokens))
        s->base.failed = true;
    return (struct maq_offload_view){.hashes = r->kv.hashes,
                                     .n_hashes = r->kv.n_hashes,
                                     .blocks = r->kv.table[0].block,
                                     .n_blocks = r->kv.table[0].n};
}

int64_t maq_vllm_offload_look(struct maq_vllm *s, struct maq_vllm_request *r, int64_t found)
{
    const struct maq_offload_view view = view_of(s, r);
    r->shown = 0;
    return maq_offload_look(s->offload, r->user, &view, found, r->tokens);
}

/* Blocks that it has got since they were last looked at. */
static void show_blocks(struct maq_vllm *s, struct maq_vllm_request *r)
{
    const struct maq_kv_table *t = &r->kv.table[0];
    for (; r->shown < t->n; r->shown++)
        maq_offload_taken(s->offload, t->block[r->shown]);
}

bool maq_vllm_offload_load(struct maq_vllm *s, struct maq_iteration *it, struct maq_waiting first, int64_t found,
                           int64_t tokens)
{
    struct maq_vllm_request *r = &s->at[first.slot];
    if (!maq_vllm_take_aside(s, first, found, tokens))
        return false;
    show_blocks(s, r);
    r->shown = 0; /* once more when it runs */
    maq_offload_load(s->offload, r->user, tokens);
    r->computed = found + tokens;
    s->base.failed |= !maq_iteration_load(it, first.slot, tokens);
    return !s->base.failed;
}

void maq_vllm_offload_begin(struct maq_vllm *s)
{
    if (s->offload)
        maq_offload_open(s->offload);
}

void maq_vllm_offload_decided(struct maq_vllm *s, const struct maq_iteration *it)
{
    if (!s->offload)
        return;
    for (uint32_t i = 0; i < it->n; i++)
        show_blocks(s, &s->at[it->scheduled[i].slot]);
    for (uint32_t i = 0; i < it->n; i++) {
        struct maq_vllm_request *r = &s->at[it->scheduled[i].slot];
        int64_t computed = r->computed + it->scheduled[i].tokens;
        computed = computed < r->tokens ? computed : r->tokens;
        if (s->offload->options.prompt_only && computed > r->prompt)
            computed = r->prompt;
        if (computed < maq_offload_next_tokens(s->offload, r->user, r->prompt))
            continue;
        const struct maq_offload_view view = view_of(s, r);
        maq_offload_store(s->offload, r->user, &view, computed);
    }
    maq_offload_close(s->offload, it->n > 0);
    s->base.failed |= s->offload->failed;
}

void maq_vllm_offload_preempted(struct maq_vllm *s, uint32_t slot)
{
    if (s->offload)
        maq_offload_preempt(s->offload, s->at[slot].user);
}

void maq_vllm_offload_ended(struct maq_vllm *s, uint32_t slot, int64_t computed)
{
    struct maq_vllm_request *r = &s->at[slot];
    if (!s->offload)
        return;
    computed = s->offload->options.prompt_only && computed > r->prompt ? r->prompt : computed;
    const struct maq_offload_view view = view_of(s, r);
    maq_offload_finish(s->offload, r->user, &view, computed);
}

/* In the i-th iteration, from 1 on, a request has offered what it knew before: its tokens and i - 1. */
int64_t maq_vllm_offload_quiet(const struct maq_vllm *s)
{
    int64_t most = INT64_MAX;
    if (!s->offload)
        return most;
    if (s->offload->n_ended > 0 || s->offload->fenced > 0)
        return 0;
    for (uint32_t i = 0; i < s->n_running; i++) {
        const struct maq_vllm_request *r = &s->at[s->running[i]];
        int64_t next = maq_offload_next_tokens(s->offload, r->user, r->prompt);
        if (next != MAQ_OFFLOAD_NEVER && next - r->tokens < most)
            most = next - r->tokens > 0 ? next - r->tokens : 0;
    }
    return most;
}

void maq_vllm_moved(struct maq_vllm *s, uint32_t job)
{
    uint32_t slot = maq_offload_done(s->offload, job);
    if (slot != MAQ_OFFLOAD_NOBODY)
        maq_vllm_arrived(s, slot);
    s->base.failed |= s->offload->failed;
}
