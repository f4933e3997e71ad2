/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sglang_decide.c - the next iteration: a prefill, or else a token of all that run (scheduler.py, get_next_batch_to_run, update_running_batch;
 * schedule_batch.py, retract_decode), and many of the latter at once.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "serve/sched/sglang.h"

#define RETRACT_STEPS 20 /* SGLANG_RETRACT_DECODE_STEPS */

static void put(struct maq_sglang *s, struct maq_iteration *it, const struct maq_scheduled *w)
{
    if (!maq_iteration_add(it, w))
        s->base.failed = true;
    it->tokens += w->tokens;
    s->at[w->slot].flying += w->samples;
}

/* ---- what was decided last ---- */

/* A prompt that was cut goes to the tree as far as it is; a prefill's others run from now on. */
static void merge_last(struct maq_sglang *s, struct maq_sglang_lane *l)
{
    uint32_t left = 0;
    if (s->chunked != MAQ_NO_SLOT && s->at[s->chunked].end > s->at[s->chunked].prefix) {
        struct maq_sglang_request *r = &s->at[s->chunked];
        maq_sglang_keep(s, r, r->end);
        r->prefix = r->end;
    }
    if (!l->last_prefill)
        return;
    bool ran = l->n_running > 0;
    for (uint32_t i = 0; i < l->n_last; i++) {
        if (l->last[i] == s->chunked || l->last[i] == l->last_chunked || s->knobs.part == MAQ_PART_PREFILL) {
            left++;
            continue;
        }
        if (!maq_slots_push(&l->running, &l->n_running, &l->running_size, l->last[i]))
            s->base.failed = true;
    }
    if (left > 0 || (!ran && l->n_running > 0))
        l->full = false;
    l->n_last = 0;
    l->last_prefill = false;
}

/* ---- decoding ---- */

int64_t maq_sglang_held_next(const struct maq_sglang *s, const struct maq_sglang_request *r)
{
    if (s->knobs.verified == 0)
        return r->held + 1;
    int64_t wanted = maq_sglang_pages(s, r->committed + s->knobs.reserve);
    return wanted > r->held ? wanted : r->held;
}

static int64_t new_slots(const struct maq_sglang *s, const struct maq_sglang_request *r)
{
    return maq_sglang_pages(s, maq_sglang_held_next(s, r)) - maq_sglang_pages(s, r->held);
}

static int64_t all_new_slots(const struct maq_sglang *s, const uint32_t *slots, uint32_t n)
{
    int64_t tokens = 0;
    for (uint32_t i = 0; i < n; i++)
        tokens += new_slots(s, &s->at[slots[i]]);
    return tokens;
}

bool maq_sglang_has_room(struct maq_sglang *s, const uint32_t *slots, uint32_t n)
{
    int64_t tokens = all_new_slots(s, slots, n);
    maq_sglang_evict(s, tokens);
    return s->available >= tokens;
}

/* Those that are sure to end with what is under way are left out; how many. They stand in *slots behind the others. */
static uint32_t leave_ending(struct maq_sglang *s, struct maq_sglang_lane *l)
{
    uint32_t kept = 0, before = l->n_running;
    for (uint32_t i = 0; i < before; i++) {
        const struct maq_sglang_request *r = &s->at[l->running[i]];
        if (!(s->knobs.overlap && r->flying > 0 && r->sampled + 1 >= r->limit))
            l->running[kept++] = l->running[i];
    }
    l->n_running = kept;
    return before - kept;
}

static void decode_one(struct maq_sglang *s, struct maq_iteration *it, uint32_t slot, bool drafts)
{
    struct maq_sglang_request *r = &s->at[slot];
    const struct maq_scheduled w = {.slot = slot,
                                    .tokens = drafts ? s->knobs.verified : 1,
                                    .drafts = drafts ? s->knobs.drafts : 0,
                                    .computed = s->knobs.verified > 0 ? r->committed : r->held,
                                    .order = r->order,
                                    .hit = -1,
                                    .samples = true};
    s->available -= new_slots(s, r);
    r->held = maq_sglang_held_next(s, r);
    put(s, it, &w);
}

/* Beside a prefill nobody drafts. What is evicted is what the allocator asks for, a page more for each where pages have several tokens. */
static void decode_all(struct maq_sglang *s, struct maq_sglang_lane *l, struct maq_iteration *it, bool alone)
{
    int64_t wanted = (int64_t)l->n_running * s->knobs.page;
    if (s->knobs.verified > 0) {
        int64_t slots = 0; /* what is left of a page counts too */
        for (uint32_t i = 0; i < l->n_running; i++)
            slots += maq_sglang_held_next(s, &s->at[l->running[i]]) - s->at[l->running[i]].held;
        wanted = slots == 0 ? 0 : s->knobs.page > 1 ? wanted + slots : slots;
    }
    maq_sglang_evict(s, wanted);
    for (uint32_t i = 0; i < l->n_running; i++)
        decode_one(s, it, l->running[i], alone && s->knobs.verified > 0);
}

/* ---- retraction ---- */

struct keeping {
    int64_t sampled, prompt;
    uint32_t place, slot;
};

/* Those first that are kept: with the longest output, of equals the shortest prompt, of equals the first. */
static int by_worth(const void *a, const void *b)
{
    const struct keeping *x = a, *y = b;
    if (x->sampled != y->sampled)
        return x->sampled > y->sampled ? -1 : 1;
    if (x->prompt != y->prompt)
        return x->prompt < y->prompt ? -1 : 1;
    return x->place < y->place ? -1 : x->place > y->place;
}

static bool sort_running(struct maq_sglang *s, struct maq_sglang_lane *l)
{
    struct keeping *list = maq__malloc(l->n_running * sizeof *list);
    if (!list) {
        s->base.failed = true;
        return false;
    }
    for (uint32_t i = 0; i < l->n_running; i++) {
        const struct maq_sglang_request *r = &s->at[l->running[i]];
        list[i] = (struct keeping){r->sampled, r->prompt, i, l->running[i]};
    }
    qsort(list, l->n_running, sizeof *list, by_worth);
    for (uint32_t i = 0; i < l->n_running; i++)
        l->running[i] = list[i].slot;
    free(list);
    return true;
}

void maq_sglang_take_back(struct maq_sglang *s, uint32_t slot, uint32_t others, struct maq_iteration *it)
{
    struct maq_sglang_request *r = &s->at[slot];
    maq_sglang_release(s, r, false);
    maq_sglang_evict(s, (int64_t)others * RETRACT_STEPS);
    r->prefix = r->inserted = r->matched = 0;
    r->node = MAQ_RADIX_ROOT;
    r->retracted = true;
    r->preemptions++;
    if (!maq_slots_push(&it->preempted, &it->n_preempted, &it->preempted_size, slot))
        s->base.failed = true;
}

static void retract_one(struct maq_sglang *s, struct maq_sglang_lane *l, struct maq_iteration *it)
{
    uint32_t slot = l->running[--l->n_running];
    maq_sglang_take_back(s, slot, l->n_running, it);
}

/* At least one, and until the others have room. The last one stays, where the engine would give it up. */
static void retract(struct maq_sglang *s, struct maq_sglang_lane *l, struct maq_iteration *it)
{
    int64_t sampled = 0, limits = 0;
    uint32_t first = it->n_preempted;
    if (!sort_running(s, l))
        return;
    do {
        if (l->n_running == 1)
            break;
        retract_one(s, l, it);
    } while (!maq_sglang_has_room(s, l->running, l->n_running));
    if (!maq_sglang_has_room(s, l->running, l->n_running)) /* the rest of a prompt holds too much: it waits, too */
        retract_one(s, l, it);
    for (uint32_t i = 0; i < l->n_running; i++) {
        sampled += s->at[l->running[i]].sampled;
        limits += s->at[l->running[i]].limit;
    }
    double ratio = (double)(sampled + (int64_t)RETRACT_STEPS * l->n_running) / (double)(limits + 1);
    s->ratio = ratio < 1 ? ratio : 1;
    for (uint32_t i = first; i < it->n_preempted; i++)
        if (s->knobs.part == MAQ_PART_DECODE)
            maq_sglang_set_aside(s, it->preempted[i]);
        else
            (void)maq_sglang_wait(s, it->preempted[i]);
}

void maq_sglang_decode(struct maq_sglang *s, struct maq_sglang_lane *l, struct maq_iteration *it)
{
    uint32_t before = l->n_running, ending = leave_ending(s, l);
    if (l->n_running == 0) {
        l->full = false;
        return;
    }
    bool fits = maq_sglang_has_room(s, l->running, l->n_running);
    if (!fits && ending > 0) { /* what is under way gives back enough, perhaps */
        l->full = false;
        return;
    }
    if (fits)
        s->ratio = s->ratio - s->ratio_step > s->ratio_least ? s->ratio - s->ratio_step : s->ratio_least;
    else
        retract(s, l, it);
    l->full = l->full && l->n_running == before;
    decode_all(s, l, it, true);
}

/* ---- a prefill ---- */

static void prefill(struct maq_sglang *s, struct maq_sglang_lane *l, struct maq_iteration *it)
{
    l->n_last = 0;
    for (uint32_t i = 0; i < s->n_taken; i++) {
        uint32_t slot = s->taken[i];
        struct maq_sglang_request *r = &s->at[slot];
        const struct maq_scheduled w = {.slot = slot,
                                        .tokens = (int32_t)(r->end - r->prefix),
                                        .computed = r->prefix,
                                        .order = r->order,
                                        .hit = r->seen ? -1 : r->prefix,
                                        .loaded = r->loaded,
                                        .samples = slot != s->chunked,
                                        .prefill = true};
        r->seen = true;
        r->loaded = 0;
        r->retracted = false;
        r->committed = r->end;
        put(s, it, &w);
        if (!maq_slots_push(&l->last, &l->n_last, &l->last_size, slot))
            s->base.failed = true;
    }
    l->last_prefill = true;
    l->last_chunked = s->chunked;
    if (!s->knobs.mixed || s->knobs.chunk == 0 || l->n_running == 0)
        return;
    if (leave_ending(s, l) > 0)
        l->full = false;
    if (l->n_running == 0 || !maq_sglang_has_room(s, l->running, l->n_running))
        return;
    decode_all(s, l, it, false);
    for (uint32_t i = 0; i < l->n_running; i++)
        if (!maq_slots_push(&l->last, &l->n_last, &l->last_size, l->running[i]))
            s->base.failed = true;
    l->n_running = 0;
}

/* ---- the whole ---- */

static bool nobody_is_there(const struct maq_sglang *s)
{
    uint32_t n = s->n_waiting + s->n_loading + s->n_ready + s->n_retracted + s->n_flights + (s->chunked != MAQ_NO_SLOT);
    for (int32_t i = 0; i < s->knobs.lanes; i++)
        n += s->lanes[i].n_running + s->lanes[i].n_last;
    return n == 0;
}

static void decide_lane(struct maq_sglang *s, struct maq_sglang_lane *l, struct maq_iteration *it)
{
    bool was_idle = l->idle;
    l->full = l->full && s->knobs.part != MAQ_PART_PREFILL;
    merge_last(s, l);
    if (s->knobs.part == MAQ_PART_DECODE)
        maq_sglang_decide_remote(s, l, it);
    else if (maq_sglang_admit(s, l, it) > 0)
        prefill(s, l, it);
    else if (l->n_running > 0)
        maq_sglang_decode(s, l, it);
    l->idle = it->n == 0;
    if (l->idle && (was_idle || !s->knobs.overlap) && nobody_is_there(s))
        s->ratio = s->ratio_first;
}

void maq_sglang_decide(struct maq_scheduler *base, struct maq_iteration *it)
{
    struct maq_sglang *s = (struct maq_sglang *)base;
    uint32_t most = s->knobs.overlap ? 2 : 1, lanes = (uint32_t)s->knobs.lanes;
    maq_iteration_clear(it);
    maq_radix_host_begin_writes(&s->tree);
    for (uint32_t i = 0; i < lanes && it->n == 0; i++) {
        uint32_t turn = (s->lane + i) % lanes;
        if (s->lanes[turn].flying >= most)
            continue;
        decide_lane(s, &s->lanes[turn], it);
        if (it->n == 0)
            continue;
        s->lane = (turn + 1) % lanes;
        s->lanes[turn].flying++;
        if (!maq_slots_push(&s->flights, &s->n_flights, &s->flights_size, turn))
            base->failed = true;
    }
    base->failed |= s->tree.failed;
}

/* ---- many iterations at once ---- */

/*
 * What iterations at once may take; < 0: there can be none. An eviction that waits for a copy, or finds its leaf held by one, is done by itself; an iteration of
 * decodes asks for a page for each that runs, whatever it takes.
 */
static int64_t free_in_steady_decodes(const struct maq_sglang *s, uint32_t running)
{
    const struct maq_radix_host *h = s->tree.host;
    if (!h || (h->policy != MAQ_HICACHE_WRITE_BACK && h->loads.n == 0))
        return s->available + maq_radix_evictable(&s->tree);
    return s->available - (int64_t)running * s->knobs.page;
}

/*
 * Nobody is tried while `full`, and nothing changes it but somebody's end. What is taken from the tree on the way is the same at once as one by one: the
 * next leaf is evicted when too little is left, whoever asks.
 */
bool maq_sglang_steady_decodes(const struct maq_scheduler *base, struct maq_steady_decodes *out)
{
    const struct maq_sglang *s = (const struct maq_sglang *)base;
    const struct maq_sglang_lane *l = &s->lanes[0];
    uint32_t page = (uint32_t)s->knobs.page;
    if (maq_radix_host_waits(&s->tree))
        return false;
    if (l->idle && s->ratio >= s->ratio_first && nobody_is_there(s)) {
        *out = maq_steady_decodes_of_nobody();
        return true;
    }
    if (s->knobs.verified > 0 || s->knobs.lanes > 1 || l->last_prefill || s->chunked != MAQ_NO_SLOT ||
        l->n_running == 0 ||
        (s->n_waiting > 0 && (!l->full || s->knobs.preempts || s->knobs.part == MAQ_PART_DECODE)) ||
        s->n_ready + s->n_retracted > 0 || page > MAQ_STEADY_DECODES_PERIOD)
        return false;
    *out = (struct maq_steady_decodes){.slots = l->running,
                                       .n = l->n_running,
                                       .most = INT64_MAX,
                                       .free = free_in_steady_decodes(s, l->n_running),
                                       .period = page};
    for (uint32_t i = 0; i < l->n_running; i++) {
        const struct maq_sglang_request *r = &s->at[l->running[i]];
        int64_t left = r->output - r->sampled - r->flying - 1;
        if (r->retracted)
            return false;
        out->most = left < out->most ? left : out->most;
        out->taken[(page - (uint32_t)(r->held % page)) % page] += page;
    }
    return out->most >= 2 && out->free >= 0;
}

void maq_sglang_skip(struct maq_scheduler *base, const struct maq_steady_decodes *steady, int64_t steps)
{
    struct maq_sglang *s = (struct maq_sglang *)base;
    int64_t page = s->knobs.page, before_last = 0, all = 0;
    for (uint32_t i = 0; i < steady->n; i++) {
        struct maq_sglang_request *r = &s->at[steady->slots[i]];
        int64_t pages = maq_sglang_pages(s, r->held), last = r->held + steps - 1;
        before_last += maq_sglang_pages(s, last) - pages;
        r->held += steps;
        r->sampled += steps;
        all += maq_sglang_pages(s, r->held) - pages;
    }
    maq_sglang_evict(s, before_last + (int64_t)steady->n * page);
    s->available -= all;
    for (int64_t i = 0; i < steps && s->ratio > s->ratio_least; i++)
        s->ratio = s->ratio - s->ratio_step > s->ratio_least ? s->ratio - s->ratio_step : s->ratio_least;
}
