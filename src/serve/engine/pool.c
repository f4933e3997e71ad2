/* SPDX-License-Identifier: Apache-2.0 */
/* pool.c - what an engine of a pool says to the others, and is told: notes and notices. */
#include "base/alloc.h"
#include "base/bug.h"
#include "serve/engine/engine.h"

bool maq_engine_computes(const struct maq_serve_engine *e, uint32_t request)
{
    return e->role != MAQ_ROLE_DECODE || e->handed[request].local;
}

/* ---- notices ---- */

void maq_engine_notice(struct maq_serve_engine *e, double at_s, uint32_t rank, uint32_t slot)
{
    if (e->notices_first == e->notices_end)
        e->notices_first = e->notices_end = 0;
    if (!maq__grow((void **)&e->notices, &e->notices_size, e->notices_end, sizeof *e->notices)) {
        e->failed = true;
        return;
    }
    MAQ_ASSERT(e->notices_first == e->notices_end || e->notices[e->notices_end - 1].at_s <= at_s);
    e->notices[e->notices_end++] = (struct maq_engine_notice){at_s, rank, slot};
}

void maq_engine_take_notice(struct maq_serve_engine *e)
{
    const struct maq_engine_notice n = e->notices[e->notices_first++];
    struct maq_scheduler *s = e->ranks[n.rank].sched;
    e->asked = false;
    if (e->role == MAQ_ROLE_DECODE) {
        s->ops->arrived(s, n.slot);
        return;
    }
    maq_engine_count_kv(e, maq_engine_load(e)); /* it was held until now */
    s->ops->release(s, n.slot);
}

/* ---- notes ---- */

static void note(struct maq_serve_engine *e, const struct maq_engine_note *n)
{
    if (!maq__grow((void **)&e->notes, &e->notes_size, e->n_notes, sizeof *e->notes))
        e->failed = true;
    else
        e->notes[e->n_notes++] = *n;
}

void maq_engine_note_decided(struct maq_serve_engine *e, uint32_t rank, const struct maq_iteration *it)
{
    struct maq_engine_slot *slots = e->ranks[rank].slots;
    for (uint32_t i = 0; i < it->n_loads; i++)
        note(e, &(struct maq_engine_note){.kind = MAQ_NOTE_RESERVED,
                                          .request = slots[it->loads[i].slot].request,
                                          .rank = rank,
                                          .slot = it->loads[i].slot,
                                          .tokens = it->loads[i].found,
                                          .at_s = e->now_s});
    for (uint32_t i = 0; i < it->n_shown; i++) {
        struct maq_engine_slot *slot = &slots[it->shown[i].slot];
        struct maq_served *s = &e->clients->served[slot->request];
        slot->sampled = true;
        s->first_s = s->last_s = slot->last_s = e->now_s + e->respond_s;
        if (it->shown[i].ended) {
            slot->here = false;
            maq_engine_ended(e, slot->request);
        }
    }
}

void maq_engine_note_launched(struct maq_serve_engine *e, uint32_t rank, const struct maq_iteration *it)
{
    for (uint32_t i = 0; i < it->n; i++)
        if (it->scheduled[i].samples)
            note(e, &(struct maq_engine_note){.kind = MAQ_NOTE_LAST,
                                              .request = e->ranks[rank].slots[it->scheduled[i].slot].request,
                                              .rank = rank,
                                              .slot = it->scheduled[i].slot,
                                              .from_s = e->stage_start_s[0],
                                              .at_s = e->stage_free_s[e->d->passes.n_stages - 1]});
}

/* The host sees it when it is free again. Requests that were preempted meanwhile have lost what the iteration computed. */
void maq_engine_note_ended(struct maq_serve_engine *e, uint32_t rank, const struct maq_iteration *it)
{
    const struct maq_engine_rank *r = &e->ranks[rank];
    for (uint32_t i = 0; i < it->n; i++) {
        const struct maq_scheduled *w = &it->scheduled[i];
        struct maq_engine_note n = {.kind = w->samples ? MAQ_NOTE_COMPUTED : MAQ_NOTE_CHUNK,
                                    .request = r->slots[w->slot].request,
                                    .rank = rank,
                                    .slot = w->slot,
                                    .tokens = w->computed + w->tokens,
                                    .at_s = e->now_s};
        if (w->order == maq_engine_order(e, n.request) && (!w->samples || w->came > 0))
            note(e, &n);
    }
}

/* ---- what others ask ---- */

/* It has not reached the scheduler; false: it has. */
static bool leave_inbox(struct maq_serve_engine *e, uint32_t request)
{
    uint32_t i = e->inbox_first;
    while (i < e->inbox_end && e->inbox[i].request != request)
        i++;
    if (i == e->inbox_end)
        return false;
    for (; i + 1 < e->inbox_end; i++)
        e->inbox[i] = e->inbox[i + 1];
    e->inbox_end--;
    return true;
}

static void leave_scheduler(struct maq_serve_engine *e, uint32_t request)
{
    for (uint32_t k = 0; k < e->n_ranks; k++) {
        struct maq_engine_rank *rank = &e->ranks[k];
        for (uint32_t i = 0; i < rank->slots_size; i++)
            if (rank->slots[i].here && rank->slots[i].request == request) {
                rank->slots[i].here = false;
                rank->sched->ops->abort(rank->sched, i);
                return;
            }
    }
    MAQ_ASSERT(false);
}

void maq_engine_give_up(struct maq_serve_engine *e, uint32_t request, double at_s)
{
    const struct maq_request *r = &e->clients->requests->at[request];
    if (!leave_inbox(e, request)) {
        if (e->in_flight == 0 && e->now_s < at_s)
            e->now_s = at_s;
        maq_engine_count_kv(e, maq_engine_load(e)); /* it was held until now */
        leave_scheduler(e, request);
    }
    e->asked = false;
    e->outstanding--;
    e->outstanding_tokens -= r->prompt + (e->role == MAQ_ROLE_PREFILL ? 0 : r->output);
}

bool maq_engine_is_quiet(const struct maq_serve_engine *e)
{
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        const struct maq_scheduler_load load = e->ranks[r].sched->ops->load(e->ranks[r].sched);
        if (load.waiting > load.aside)
            return false;
    }
    return e->role == MAQ_ROLE_DECODE && e->inbox_first == e->inbox_end && e->notices_first == e->notices_end;
}

int64_t maq_engine_cached(struct maq_serve_engine *e, uint32_t request)
{
    const struct maq_requests *q = e->clients->requests;
    const struct maq_request *r = &q->at[request];
    const struct maq_content content = {r->prefix, r->n_prefix, q->prefix_unit, request, r->adapter};
    int64_t most = 0;
    for (uint32_t i = 0; i < e->n_ranks; i++) {
        int64_t n = e->ranks[i].sched->ops->cached(e->ranks[i].sched, &content, r->prompt);
        most = n > most ? n : most;
    }
    return most;
}
