/* SPDX-License-Identifier: Apache-2.0 */
/* vllm.c - requests come, iterations end, requests go; deciding an iteration is in vllm_decide.c. */
#include "serve/sched/vllm.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"

static void each_request(void *user, void (*visit)(struct maq_kv_cache *cache, struct maq_kv_request *request))
{
    struct maq_vllm *s = user;
    for (uint32_t i = 0; i < s->n_slots; i++)
        visit(&s->kv, &s->at[i].kv);
    for (uint32_t i = 0; i < s->n_deferred; i++)
        visit(&s->kv, &s->deferred[i].kv);
}

enum maq_status maq_vllm_init(struct maq_vllm *s, const struct maq_vllm_knobs *knobs, const struct maq_kv_options *kv)
{
    *s = (struct maq_vllm){
        .base.ops = &maq_vllm_ops, .knobs = *knobs, .waiting = {.by_priority = knobs->priority || knobs->by_arrival}};
    MAQ_TRY(maq_kv_init(&s->kv, kv));
    s->kv.each = each_request;
    s->kv.user = s;
    return MAQ_OK;
}

void maq_vllm_fini(struct maq_vllm *s)
{
    for (uint32_t i = 0; i < s->n_slots; i++)
        maq_kv_request_fini(&s->kv, &s->at[i].kv);
    maq_kv_request_fini(&s->kv, &s->probe);
    free(s->at);
    free(s->free_slots);
    free(s->running);
    free(s->skipped);
    free(s->loading);
    for (uint32_t i = 0; i < s->n_deferred; i++)
        maq_kv_request_fini(&s->kv, &s->deferred[i].kv);
    free(s->deferred);
    maq_adapter_set_fini(&s->adapters);
    maq_vllm_offload_fini(s);
    maq_vllm_swap_fini(s);
    maq_queue_fini(&s->waiting);
    maq_kv_fini(&s->kv);
    *s = (struct maq_vllm){0};
}

enum maq_status maq_vllm_new(struct maq_scheduler **out, const struct maq_vllm_knobs *knobs,
                             const struct maq_kv_options *kv)
{
    struct maq_vllm *s = maq__malloc(sizeof *s);
    if (!s)
        return MAQ_NO_MEMORY;
    *out = &s->base;
    return maq_vllm_init(s, knobs, kv);
}

/* ---- coming and going ---- */

static uint32_t new_slot(struct maq_vllm *s)
{
    if (s->n_free_slots > 0)
        return s->free_slots[--s->n_free_slots];
    if (!maq__grow((void **)&s->at, &s->slots_size, s->n_slots, sizeof *s->at))
        return MAQ_NO_SLOT;
    s->at[s->n_slots] = (struct maq_vllm_request){0};
    return s->n_slots++;
}

uint32_t maq_vllm_add(struct maq_vllm *s, const struct maq_scheduler_request *new)
{
    uint32_t slot = new_slot(s);
    struct maq_vllm_request *r = slot == MAQ_NO_SLOT ? NULL : &s->at[slot];
    if (!r || !maq_kv_request_begin(&s->kv, &r->kv, &new->content)) {
        s->base.failed = true;
        return MAQ_NO_SLOT;
    }
    *r = (struct maq_vllm_request){.prompt = new->prompt,
                                   .most = new->output,
                                   .tokens = new->prompt,
                                   .status = MAQ_VLLM_WAITING,
                                   .kv = r->kv,
                                   .part = new->part,
                                   .images = new->images,
                                   .first_known = new->first_known};
    r->rank = (struct maq_waiting){s->knobs.by_arrival ? 0 : new->priority, slot, new->arrival, new->order};
    if (!maq_vllm_offload_add(s, slot) || !maq_queue_push(&s->waiting, r->rank))
        s->base.failed = true;
    return slot;
}

/* What a request holds is given back when all iterations that have been decided have ended. */
static void defer_release(struct maq_vllm *s, struct maq_vllm_request *r)
{
    if (!maq__grow((void **)&s->deferred, &s->deferred_size, s->n_deferred, sizeof *s->deferred)) {
        s->base.failed = true;
        return;
    }
    s->deferred[s->n_deferred++] = (struct maq_vllm_deferred){s->launched, r->kv};
    r->kv = (struct maq_kv_request){0};
}

static void release_deferred(struct maq_vllm *s)
{
    uint32_t n = 0;
    while (n < s->n_deferred && s->deferred[n].until <= s->over) {
        maq_kv_release(&s->kv, &s->deferred[n].kv);
        maq_kv_request_fini(&s->kv, &s->deferred[n++].kv);
    }
    for (uint32_t i = n; n > 0 && i < s->n_deferred; i++)
        s->deferred[i - n] = s->deferred[i];
    s->n_deferred -= n;
}

void maq_vllm_free_request(struct maq_vllm *s, uint32_t slot)
{
    struct maq_vllm_request *r = &s->at[slot];
    if (s->admission && r->status != MAQ_VLLM_WAITING && r->status != MAQ_VLLM_PREEMPTED)
        s->admission->left(s, r);
    if (s->knobs.defers_frees && r->in_flight > 0)
        defer_release(s, r);
    else
        maq_kv_release(&s->kv, &r->kv);
    r->status = MAQ_VLLM_FREE;
    r->rank.order = UINT64_MAX;
    if (!maq_slots_push(&s->free_slots, &s->n_free_slots, &s->free_size, slot))
        s->base.failed = true;
}

static void take_out(uint32_t *list, uint32_t *n, uint32_t slot)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++)
        if (list[i] != slot)
            list[kept++] = list[i];
    *n = kept;
}

void maq_vllm_abort(struct maq_vllm *s, uint32_t slot)
{
    uint8_t status = s->at[slot].status;
    take_out(s->running, &s->n_running, slot);
    take_out(s->loading, &s->n_loading, slot);
    s->n_loaded -= status == MAQ_VLLM_LOADED;
    if (status == MAQ_VLLM_WAITING || status == MAQ_VLLM_PREEMPTED)
        maq_queue_remove(&s->waiting, slot);
    maq_vllm_offload_ended(s, slot, s->at[slot].computed);
    maq_vllm_free_request(s, slot);
}

/* ---- the end of an iteration ---- */

/* The tokens of a request that its model does not know yet grow by those that were sampled, until it has enough: *came of them. */
static bool append(struct maq_vllm *s, struct maq_vllm_request *r, int32_t sampled, bool stale, int32_t *came)
{
    bool stops = false;
    int32_t n = 0;
    while (n < sampled && !stops) {
        n++;
        r->tokens++;
        stops = r->tokens >= s->knobs.max_model_len || r->tokens - r->prompt >= r->most;
    }
    if (stops && !stale)
        r->computed -= sampled - n;
    if (!stale && r->placeholders > 0)
        r->placeholders -= sampled;
    *came = n;
    return stops;
}

static bool end_scheduled(struct maq_vllm *s, struct maq_scheduled *w, int32_t sampled)
{
    struct maq_vllm_request *r = &s->at[w->slot];
    bool stale = r->stale > 0, runs = r->status == MAQ_VLLM_RUNNING;
    r->in_flight -= w->tokens;
    if (stale)
        r->stale -= w->tokens;
    if (stale &&
        r->part == MAQ_PART_PREFILL) { /* it was preempted, and there is nothing to hand over: it is computed again */
        w->came = 0;
        return false;
    }
    if (sampled == 0)
        return false;
    if (w->drafts > 0 && !stale) {
        int32_t rejected = w->drafts - (sampled - 1);
        r->computed -= r->computed > 0 ? rejected : 0;
        r->placeholders -= r->placeholders > 0 ? rejected : 0;
    }
    bool awaited = r->placeholders > 0, stops = append(s, r, sampled, stale, &w->came);
    if (!stale && runs && (awaited || s->knobs.spec_tokens > 0))
        maq_kv_keep(&s->kv, &r->kv, r->computed - r->in_flight, r->tokens);
    return stops;
}

/* Those that finished leave the list of those that run in one pass. */
static void remove_finished(struct maq_vllm *s, const struct maq_iteration *it)
{
    uint32_t kept = 0;
    if (it->n_finished == 0)
        return;
    for (uint32_t i = 0; i < s->n_running; i++)
        if (s->at[s->running[i]].status == MAQ_VLLM_RUNNING)
            s->running[kept++] = s->running[i];
    s->n_running = kept;
}

void maq_vllm_end(struct maq_vllm *s, struct maq_iteration *it, const int32_t *sampled)
{
    it->n_finished = 0;
    s->over += it->n > 0;
    release_deferred(s);
    for (uint32_t i = 0; i < it->n; i++) {
        struct maq_scheduled *w = &it->scheduled[i];
        w->came = 0;
        if (s->at[w->slot].rank.order != w->order) /* it was given up meanwhile */
            continue;
        if (!end_scheduled(s, w, sampled ? sampled[i] : w->samples))
            continue;
        if (s->at[w->slot].status != MAQ_VLLM_RUNNING)
            maq_queue_remove(&s->waiting, w->slot);
        struct maq_vllm_request *r = &s->at[w->slot];
        if (r->part == MAQ_PART_PREFILL && r->status == MAQ_VLLM_RUNNING) {
            r->status = MAQ_VLLM_HELD;
            maq_kv_trim(&s->kv, &r->kv, r->computed - r->in_flight);
        } else {
            /* the slot of its last token was never computed */
            maq_vllm_offload_ended(s, w->slot, r->tokens - 1 > r->prompt ? r->tokens - 1 : r->prompt);
            maq_vllm_free_request(s, w->slot);
        }
        if (!maq_slots_push(&it->finished, &it->n_finished, &it->finished_size, w->slot))
            s->base.failed = true;
    }
    remove_finished(s, it);
    s->base.failed |= s->kv.failed;
}

void maq_vllm_propose(struct maq_vllm *s, uint32_t slot, int32_t drafts)
{
    struct maq_vllm_request *r = &s->at[slot];
    if (r->status != MAQ_VLLM_FREE)
        r->drafts = r->partial ? 0 : drafts;
}
