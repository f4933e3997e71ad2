/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sglang_admit.c - a prefill: who is in it, and how much of each (schedule_policy.py, PrefillAdder; mem_cache/prefill_budget.py).
 *
 * Sums are doubles in the engine's order, since what those that run may yet sample is not whole.
 */
#include <stdlib.h>

#include "base/alloc.h"
#include "serve/sched/sglang.h"

/* SGLANG_CLIP_MAX_NEW_TOKENS_ESTIMATION, IGNORE_EOS_RESERVE_TOKENS */
#define MOST_EXPECTED 4096
#define RESERVED 1
/* UnifiedRadixCache.load_back_threshold */
#define LEAST_LOADED 10

enum verdict { GO_ON, NO_ROOM, ENOUGH };

/* A request as the last bytes of an empty cache see it: what it will sample, what it holds. */
struct state {
    double left;
    int64_t holds;
};

struct adding {
    struct maq_sglang *s;
    const struct maq_sglang_lane *lane;
    struct maq_iteration *it;
    double taken, taken_now; /* of the cache: promised; by prompts of this batch */
    int64_t input_left, chunk_left;
    struct state *states;
    uint32_t n_states, states_size;
    bool counted, cut;
};

static double room(const struct adding *a)
{
    return (double)(a->s->available + maq_radix_evictable(&a->s->tree)) - a->taken;
}

static double room_now(const struct adding *a)
{
    return (double)(a->s->available + maq_radix_evictable(&a->s->tree)) - a->taken_now;
}

static int64_t clipped(int64_t tokens)
{
    return tokens < MOST_EXPECTED ? tokens : MOST_EXPECTED;
}

static int64_t known(const struct maq_sglang_request *r)
{
    return r->prompt + r->sampled;
}

static double ratio_of(const struct maq_sglang *s, const struct maq_sglang_request *r)
{
    return r->stops_known ? 1.0 : s->ratio;
}

double maq_sglang_expected(const struct maq_sglang *s, const struct maq_sglang_request *r)
{
    return (double)clipped(r->limit - r->sampled) * ratio_of(s, r);
}

static enum verdict verdict(const struct adding *a)
{
    if (room(a) <= 0 || room_now(a) <= 0)
        return NO_ROOM;
    if (a->input_left <= 0 || (a->s->knobs.chunk > 0 && a->chunk_left <= 0))
        return ENOUGH;
    return GO_ON;
}

/* A request is in the batch with the tokens up to `end`. */
static void commit(struct adding *a, uint32_t slot, int64_t end, int64_t expected)
{
    struct maq_sglang *s = a->s;
    struct maq_sglang_request *r = &s->at[slot];
    int64_t pages = maq_sglang_pages(s, end - r->prefix), now = pages + s->knobs.page;
    r->end = end;
    a->taken += (double)(now + expected);
    a->taken_now += (double)now;
    a->input_left -= pages;
    a->chunk_left -= pages;
    if (!maq_slots_push(&s->taken, &s->n_taken, &s->taken_size, slot))
        s->base.failed = true;
}

/* The next piece of the prompt that was cut. */
static void go_on_with(struct adding *a, uint32_t slot)
{
    struct maq_sglang_request *r = &a->s->at[slot];
    r->filled = known(r);
    int64_t left = known(r) - r->prefix, most = (int64_t)room(a);
    most = a->chunk_left < most ? a->chunk_left : most;
    most = most > 0 ? most : a->chunk_left; /* it has to go on, or nothing ever becomes free */
    a->cut = left > most;
    commit(a, slot, r->prefix + (a->cut ? most : left), a->cut ? 0 : clipped(r->limit));
}

/* ---- without a tree, for those of which it is known when they stop ---- */

static bool push_state(struct adding *a, const struct maq_sglang_request *r, bool in_order)
{
    double left = (double)r->limit * ratio_of(a->s, r) - (double)r->sampled;
    if (left <= 0)
        return true;
    if (!maq__grow((void **)&a->states, &a->states_size, a->n_states, sizeof *a->states))
        return false;
    uint32_t place = a->n_states;
    if (in_order && a->n_states > 0) { /* before the first that has as much left; before the last if none has */
        place = 0;
        while (place + 1 < a->n_states && left > a->states[place].left)
            place++;
    }
    for (uint32_t i = a->n_states++; i > place; i--)
        a->states[i] = a->states[i - 1];
    a->states[place] = (struct state){left, known(r)};
    return true;
}

static void sort_states(struct adding *a)
{
    for (uint32_t i = 1; i < a->n_states; i++) {
        struct state x = a->states[i];
        uint32_t place = i;
        for (; place > 0 && a->states[place - 1].left > x.left; place--)
            a->states[place] = a->states[place - 1];
        a->states[place] = x;
    }
}

/* Whether all can sample to their ends, one after another giving back what it holds. */
static bool lasts(struct adding *a, const struct maq_sglang_request *r, int64_t pages)
{
    struct maq_sglang *s = a->s;
    bool ok = push_state(a, r, a->counted);
    for (uint32_t i = 0; !a->counted && i < a->lane->n_running; i++)
        ok &= push_state(a, &s->at[a->lane->running[i]], false);
    for (uint32_t i = 0; !a->counted && i < s->n_taken; i++)
        ok &= push_state(a, &s->at[s->taken[i]], false);
    if (!a->counted)
        sort_states(a);
    a->counted = true;
    s->base.failed |= !ok;
    double free_now = room_now(a) - (double)pages, freed = 0;
    for (uint32_t i = 0; i < a->n_states; i++) {
        double n = a->n_states - i;
        if (free_now + freed - a->states[i].left * n <= RESERVED * n)
            return false;
        freed += (double)a->states[i].holds;
    }
    return true;
}

static enum verdict add_to_its_end(struct adding *a, uint32_t slot)
{
    const struct maq_sglang_request *r = &a->s->at[slot];
    int64_t n = known(r) - r->prefix, pages = maq_sglang_pages(a->s, n) + a->s->knobs.page;
    double least = room(a) < room_now(a) ? room(a) : room_now(a);
    if ((double)pages > least || !lasts(a, r, pages))
        return NO_ROOM;
    if (a->s->knobs.chunk == 0 || n <= a->chunk_left) {
        commit(a, slot, known(r), clipped(r->limit));
    } else {
        if (a->chunk_left <= 0)
            return ENOUGH;
        a->s->chunked = slot;
        commit(a, slot, r->prefix + a->chunk_left, 0);
    }
    return verdict(a);
}

/* ---- those that wait ---- */

/* How much of a prompt behind so many tokens is computed now. */
struct piece {
    int64_t end, expected;
    bool cut;
};

static enum verdict choose_piece(const struct adding *a, const struct maq_sglang_request *r, int64_t prefix,
                                 struct piece *out)
{
    const struct maq_sglang *s = a->s;
    int64_t left = r->limit - r->sampled, page = s->knobs.page, pages = maq_sglang_pages(s, known(r) - prefix);
    int64_t wanted =
        known(r) - r->prefix + clipped(left > 0 ? left : 0) + page; /* what is on the host needs slots, too */
    *out = (struct piece){.end = known(r), .expected = clipped(r->limit)};
    if ((double)wanted >= room(a))
        return NO_ROOM;
    if ((s->knobs.chunk == 0 || s->knobs.max_prefill_is_hard) && s->n_taken > 0 && pages >= a->input_left)
        return ENOUGH;
    if (s->knobs.chunk == 0 || pages <= a->chunk_left)
        return GO_ON;
    *out = (struct piece){.end = (prefix + a->chunk_left / page * page) / page * page, .cut = true};
    return out->end > prefix ? GO_ON : ENOUGH;
}

/* What is on the host of a request comes to the GPU, which its prefix then is; false: it has no room, or that is not worth it. */
static bool load_back(struct maq_sglang *s, struct maq_sglang_request *r)
{
    struct maq_radix_tree *t = &s->tree;
    int64_t begin = t->at[r->found].begin;
    maq_radix_lock(t, r->found); /* what it needs cannot make room for it, here or there */
    maq_radix_host_lock(t, r->found);
    bool loads = r->on_host >= LEAST_LOADED;
    if (loads) {
        maq_sglang_evict(s, r->on_host);
        loads = s->available >= r->on_host;
    }
    if (loads)
        maq_radix_host_load(t, r->found);
    maq_radix_unlock(t, r->found);
    maq_radix_host_unlock(t, r->found, begin);
    if (!loads)
        return false;
    s->available -= r->on_host;
    r->prefix += r->on_host;
    r->loaded = r->on_host;
    r->tree_owns = r->prefix;
    r->node = r->found;
    return true;
}

static enum verdict add_one(struct adding *a, uint32_t slot)
{
    struct maq_sglang *s = a->s;
    struct maq_sglang_request *r = &s->at[slot];
    struct piece p;
    if (s->knobs.max_requests > 0 && s->n_taken >= (uint32_t)s->knobs.max_requests)
        return ENOUGH;
    if (r->stops_known && !s->knobs.caching)
        return add_to_its_end(a, slot);
    uint32_t node = r->node;
    maq_radix_lock(&s->tree, node); /* what it uses cannot make room for it */
    enum verdict v = choose_piece(a, r, r->prefix + r->on_host, &p);
    if (v == GO_ON && r->on_host > 0 && !load_back(s, r))
        v = choose_piece(a, r, r->prefix, &p);
    if (v == GO_ON) {
        maq_radix_lock(&s->tree, r->node);
        r->lock = r->node;
        if (p.cut)
            s->chunked = slot;
        commit(a, slot, p.end, p.expected);
    }
    maq_radix_unlock(&s->tree, node);
    return v == GO_ON ? verdict(a) : v;
}

static uint32_t allocatable(const struct maq_sglang *s, const struct maq_sglang_lane *lane, uint32_t held)
{
    int64_t most = s->knobs.max_running / s->knobs.lanes, running = (most > 1 ? most : 1) - (int64_t)lane->n_running,
            rows = (int64_t)s->knobs.max_running - s->rows + held, n = running < rows ? running : rows;
    return n > 0 ? (uint32_t)n : 0;
}

static void use_adapter(struct maq_sglang *s, uint32_t slot)
{
    if (s->knobs.max_loras > 0 && !maq_adapter_set_add(&s->adapters, s->at[slot].content.adapter))
        s->base.failed = true;
}

/* Those of all that run, and of the prompt that goes on. */
static void list_adapters(struct maq_sglang *s, const struct maq_sglang_lane *lane)
{
    s->adapters.n = 0;
    for (uint32_t i = 0; i < lane->n_running; i++)
        use_adapter(s, lane->running[i]);
    for (uint32_t i = 0; i < s->n_taken; i++)
        use_adapter(s, s->taken[i]);
}

/* Others give way to it. */
static bool takes_a_place(struct adding *a, struct maq_sglang_lane *lane, uint32_t slot)
{
    const struct maq_sglang_request *r = &a->s->at[slot];
    double given = 0, lacks = (double)(r->filled - r->prefix + clipped(r->limit)) - room(a);
    if (!a->s->knobs.preempts || !maq_sglang_preempt(a->s, lane, slot, lacks, &given, a->it))
        return false;
    a->taken -= given;
    return true;
}

static void add_waiting(struct adding *a, struct maq_sglang_lane *lane, uint32_t held)
{
    struct maq_sglang *s = a->s;
    list_adapters(s, lane);
    for (uint32_t i = 0; i < s->n_waiting && verdict(a) != ENOUGH; i++) {
        struct maq_sglang_request *r = &s->at[s->waiting[i]];
        if (s->knobs.max_loras > 0 && !maq_adapter_set_fits(&s->adapters, r->content.adapter, s->knobs.max_loras))
            continue;
        if (s->n_taken >= allocatable(s, lane, held))
            lane->full = true;
        if (lane->full && !takes_a_place(a, lane, s->waiting[i]))
            return;
        r->filled = known(r);
        maq_sglang_look_up(s, r, known(r) - 1);
        enum verdict v = add_one(a, s->waiting[i]);
        use_adapter(s, s->waiting[i]);
        if (v == NO_ROOM)
            lane->full = s->n_taken > 0 || lane->n_running > 0;
        if (v != GO_ON)
            return;
    }
}

/* ---- slots of the cache for them ---- */

/* Slots for all that were taken in; those for which there are none (where the engine itself would stop) go on waiting. Their tokens. */
static int64_t give_slots(struct maq_sglang *s)
{
    int64_t tokens = 0, spare = s->knobs.page > 1 ? (int64_t)s->n_taken * s->knobs.page : 0, given = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_taken; i++)
        tokens += s->at[s->taken[i]].end - s->at[s->taken[i]].prefix;
    maq_sglang_evict(s, tokens + spare);
    for (; n < s->n_taken; n++) {
        struct maq_sglang_request *r = &s->at[s->taken[n]];
        int64_t pages = maq_sglang_pages(s, r->end) - maq_sglang_pages(s, r->prefix);
        if (pages > s->available)
            break;
        s->available -= pages;
        s->rows += r->held == 0;
        r->held = r->end;
        given += r->end - r->prefix;
    }
    for (uint32_t i = n; i < s->n_taken; i++) {
        struct maq_sglang_request *r = &s->at[s->taken[i]];
        if (r->held > 0) { /* the rest of a prompt: another time */
            r->end = r->prefix;
            s->chunked = s->taken[i];
            continue;
        }
        if (r->lock != MAQ_RADIX_NONE)
            maq_radix_unlock(&s->tree, r->lock);
        r->lock = MAQ_RADIX_NONE;
        if (s->chunked == s->taken[i])
            s->chunked = MAQ_NO_SLOT;
    }
    s->n_taken = n;
    return given;
}

static void leave_queue(struct maq_sglang *s)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < s->n_taken; i++)
        s->at[s->taken[i]].status = MAQ_SGLANG_TAKEN;
    for (uint32_t i = 0; i < s->n_waiting; i++)
        if (s->at[s->waiting[i]].status == MAQ_SGLANG_WAITING)
            s->waiting[kept++] = s->waiting[i];
    s->n_waiting = kept;
}

int64_t maq_sglang_admit(struct maq_sglang *s, struct maq_sglang_lane *lane, struct maq_iteration *it)
{
    uint32_t chunked = s->chunked, first = it->n_preempted;
    s->n_taken = 0;
    if (lane->n_running == 0 || s->knobs.preempts)
        lane->full = false;
    if ((lane->full || s->n_waiting == 0) && chunked == MAQ_NO_SLOT)
        return 0;
    if (allocatable(s, lane, 0) == 0 && chunked == MAQ_NO_SLOT && !s->knobs.preempts) {
        lane->full = true;
        return 0;
    }
    maq_sglang_sort(s);
    int64_t along = s->knobs.mixed && s->knobs.chunk > 0 ? lane->n_running : 0;
    struct adding a = {.s = s,
                       .lane = lane,
                       .it = it,
                       .input_left = s->knobs.max_prefill - along,
                       .chunk_left = s->knobs.chunk - along};
    double expected = 0;
    for (uint32_t i = 0; i < lane->n_running; i++)
        expected += maq_sglang_expected(s, &s->at[lane->running[i]]);
    a.taken = (double)along + expected;
    a.taken_now = (double)along;
    if (chunked != MAQ_NO_SLOT) {
        s->chunked = MAQ_NO_SLOT;
        go_on_with(&a, chunked);
        if (a.cut)
            s->chunked = chunked;
    }
    add_waiting(&a, lane, chunked != MAQ_NO_SLOT);
    free(a.states);
    maq_radix_host_begin_loads(&s->tree);
    int64_t tokens = give_slots(s);
    leave_queue(s);
    maq_sglang_requeue(s, it, first);
    return tokens;
}
