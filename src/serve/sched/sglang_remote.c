/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sglang_remote.c - SGLang's servers of one kind: who gets slots for keys and values that another computes, and when it runs; what a prefill server
 * keeps until they are there.
 *
 * SGLang 0.5.23, disaggregation/decode.py: DecodePreallocQueue (pop_preallocated, _allocatable_token_budgets, _required_admission_tokens,
 * resume_retracted_reqs), process_decode_queue, _get_new_prebuilt_batch; prefill.py: process_disagg_prefill_inflight_queue. In tokens:
 *
 *   needs      max(pages of the prompt + reserved, prompt + min(limit, 4096) - r)         r: tokens that retracting all that run would give back
 *   may take   available - max(reserved * (those here), max over those that run of prompt + min(limit, 4096) - r)
 */
#include <stdlib.h>

#include "base/bug.h"
#include "serve/sched/sglang.h"

#define MOST_EXPECTED 4096 /* SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION */

static int64_t at_most(const struct maq_sglang_request *r)
{
    return r->prompt + (r->limit < MOST_EXPECTED ? r->limit : MOST_EXPECTED);
}

static int64_t reserved(const struct maq_sglang *s, const struct maq_sglang_lane *l)
{
    return (int64_t)s->knobs.reserved * (l->n_running + s->n_loading + s->n_ready);
}

static bool has_row(const struct maq_sglang *s)
{
    return s->rows < (uint32_t)(s->knobs.max_running + s->knobs.spare_rows);
}

static void hold(struct maq_sglang *s, struct maq_sglang_request *r, int64_t tokens)
{
    s->available -= maq_sglang_pages(s, tokens);
    s->rows++;
    r->held = r->end = r->prefix = tokens;
}

static bool push_ready(struct maq_sglang *s, uint32_t slot)
{
    if (maq_slots_push(&s->ready, &s->n_ready, &s->ready_size, slot))
        return true;
    s->base.failed = true;
    return false;
}

/* ---- who is retracted ---- */

void maq_sglang_set_aside(struct maq_sglang *s, uint32_t slot)
{
    s->at[slot].status = MAQ_SGLANG_WAITING;
    if (!maq_slots_push(&s->retracted, &s->n_retracted, &s->retracted_size, slot))
        s->base.failed = true;
}

/* Of its last token there are no keys and values yet. */
static void resume(struct maq_sglang *s, const struct maq_sglang_lane *l)
{
    uint32_t done = 0;
    for (; done < s->n_retracted; done++) {
        struct maq_sglang_request *r = &s->at[s->retracted[done]];
        int64_t tokens = r->prompt + r->sampled - 1;
        if (!has_row(s) || maq_sglang_pages(s, tokens) + s->knobs.reserved > s->available - reserved(s, l))
            break;
        hold(s, r, tokens);
        r->retracted = false;
        if (!push_ready(s, s->retracted[done]))
            return;
    }
    for (uint32_t i = done; done > 0 && i < s->n_retracted; i++)
        s->retracted[i - done] = s->retracted[i];
    s->n_retracted -= done;
}

/* ---- who gets slots ---- */

struct among_running {
    int64_t retractable, most; /* tokens of all; that one of them may come to have */
};

static struct among_running look(const struct maq_sglang *s, const struct maq_sglang_lane *l)
{
    struct among_running a = {0};
    for (uint32_t i = 0; i < l->n_running; i++) {
        const struct maq_sglang_request *r = &s->at[l->running[i]];
        a.retractable += r->prompt + r->sampled;
        a.most = at_most(r) > a.most ? at_most(r) : a.most;
    }
    return a;
}

static void preallocate(struct maq_sglang *s, const struct maq_sglang_lane *l, struct maq_iteration *it)
{
    const struct among_running a = look(s, l);
    int64_t one = l->n_running > 0 ? a.most - a.retractable : 0;
    uint32_t done = 0;
    if (s->knobs.by_priority)
        maq_sglang_sort(s);
    for (; done < s->n_waiting && has_row(s); done++) {
        struct maq_sglang_request *r = &s->at[s->waiting[done]];
        int64_t pages = maq_sglang_pages(s, r->prompt), spare = reserved(s, l), needs = pages + s->knobs.reserved;
        needs = at_most(r) - a.retractable > needs ? at_most(r) - a.retractable : needs;
        if (needs > s->available - (spare > one ? spare : one))
            break;
        hold(s, r, r->prompt);
        r->status = MAQ_SGLANG_LOADING;
        s->n_loading++;
        if (!maq_iteration_load(it, s->waiting[done], 0))
            s->base.failed = true;
    }
    for (uint32_t i = done; done > 0 && i < s->n_waiting; i++)
        s->waiting[i - done] = s->waiting[i];
    s->n_waiting -= done;
}

/* ---- who runs ---- */

static void run(struct maq_sglang *s, struct maq_sglang_lane *l, struct maq_iteration *it)
{
    uint32_t done = 0, most = (uint32_t)(s->knobs.max_running / s->knobs.lanes);
    for (; done < s->n_ready && l->n_running < (most > 1 ? most : 1); done++) {
        uint32_t slot = s->ready[done];
        struct maq_sglang_request *r = &s->at[slot];
        bool first = r->sampled == 0;
        r->sampled += first;
        r->status = MAQ_SGLANG_TAKEN;
        bool ended = r->sampled >= r->output;
        if (first && !maq_iteration_show(it, slot, ended))
            s->base.failed = true;
        if (ended) {
            maq_sglang_release(s, r, false);
            maq_sglang_free_request(s, slot);
        } else if (!maq_slots_push(&l->running, &l->n_running, &l->running_size, slot)) {
            s->base.failed = true;
        }
    }
    for (uint32_t i = done; done > 0 && i < s->n_ready; i++)
        s->ready[i - done] = s->ready[i];
    s->n_ready -= done;
}

void maq_sglang_decide_remote(struct maq_sglang *s, struct maq_sglang_lane *l, struct maq_iteration *it)
{
    resume(s, l);
    if (s->n_retracted == 0)
        preallocate(s, l, it);
    run(s, l, it);
    if (l->n_running > 0)
        maq_sglang_decode(s, l, it);
}

/* ---- the operations ---- */

void maq_sglang_arrived(struct maq_scheduler *base, uint32_t slot)
{
    struct maq_sglang *s = (struct maq_sglang *)base;
    MAQ_ASSERT(s->at[slot].status == MAQ_SGLANG_LOADING);
    s->n_loading--;
    s->at[slot].status = MAQ_SGLANG_WAITING;
    (void)push_ready(s, slot);
}

void maq_sglang_done(struct maq_scheduler *base, uint32_t slot)
{
    struct maq_sglang *s = (struct maq_sglang *)base;
    MAQ_ASSERT(s->at[slot].status == MAQ_SGLANG_HELD);
    maq_sglang_release(s, &s->at[slot], true);
    maq_sglang_free_request(s, slot);
}

int64_t maq_sglang_cached(struct maq_scheduler *base, const struct maq_content *content, int64_t prompt)
{
    struct maq_sglang *s = (struct maq_sglang *)base;
    uint32_t node;
    return s->knobs.caching ? maq_radix_match(&s->tree, content, prompt - 1, &node) : 0;
}
