/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vllm_decide.c - one iteration: tokens to those that run, then to those that wait. See vllm.h for the rules; the names of budgets are
 * the engine's.
 */
#include "base/alloc.h"
#include "serve/sched/vllm.h"

/* An iteration while it is decided. */
struct deciding {
    struct maq_vllm *s;
    struct maq_iteration *it;
    int64_t token_budget, input_budget, image_budget;
    int32_t long_prefill; /* tokens of one request at most; 0 = no such bound */
    uint32_t ran;         /* requests that ran already and were given something */
    bool partial_runs;    /* one of those that run is in the middle of its prompt */
};

/* Tokens of images that begin in what a request is given. */
static int64_t images_of(const struct maq_vllm_request *r, const struct maq_scheduled *w)
{
    return maq_images_begun(&r->images, w->computed, w->tokens) * r->images.tokens;
}

/* Of `n` tokens behind `computed` ones those in front of an image for which the budget is too small; of a whole budget one image may have more. */
static int64_t before_images(const struct deciding *d, const struct maq_vllm_request *r, int64_t computed, int64_t n)
{
    int64_t budget = d->image_budget, all = d->s->knobs.image_budget;
    if (all == 0 || r->images.n == 0 || n <= 0)
        return n;
    return maq_images_within(&r->images, computed, n,
                             budget == all && budget < r->images.tokens ? r->images.tokens : budget);
}

static bool push_scheduled(struct deciding *d, const struct maq_scheduled *w)
{
    if (!maq_iteration_add(d->it, w)) {
        d->s->base.failed = true;
        return false;
    }
    d->token_budget -= w->tokens;
    d->input_budget -= w->tokens + d->s->knobs.draft_slots;
    d->image_budget -= images_of(&d->s->at[w->slot], w);
    d->s->at[w->slot].given = w->tokens;
    return true;
}

/* Takes back what a request was given in this iteration. */
static void withdraw(struct deciding *d, uint32_t slot)
{
    struct maq_iteration *it = d->it;
    uint32_t kept = 0;
    if (d->s->at[slot].given == 0)
        return;
    for (uint32_t i = 0; i < it->n; i++)
        if (it->scheduled[i].slot != slot)
            it->scheduled[kept++] = it->scheduled[i];
        else
            d->image_budget += images_of(&d->s->at[slot], &it->scheduled[i]);
    it->n = kept;
    d->token_budget += d->s->at[slot].given;
    d->input_budget += d->s->at[slot].given + d->s->knobs.draft_slots;
    d->s->at[slot].given = 0;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- those that run ---- */

/* Who makes room: the last one to come, or the least urgent one. Its place in the list. */
static uint32_t victim_of(const struct maq_vllm *s)
{
    uint32_t victim = s->n_running - 1;
    if (!s->knobs.priority)
        return victim;
    victim = 0;
    for (uint32_t i = 1; i < s->n_running; i++) { /* of equals the first one */
        const struct maq_waiting *a = &s->at[s->running[victim]].rank, *b = &s->at[s->running[i]].rank;
        if (b->priority > a->priority || (b->priority == a->priority && b->arrival > a->arrival))
            victim = i;
    }
    return victim;
}

void maq_vllm_give_way(struct maq_vllm *s, struct maq_iteration *it, uint32_t place)
{
    uint32_t slot = s->running[place];
    struct maq_vllm_request *r = &s->at[slot];
    for (uint32_t i = place + 1; i < s->n_running; i++)
        s->running[i - 1] = s->running[i];
    s->n_running--;
    maq_kv_preempt(&s->kv, &r->kv, r->tokens);
    maq_vllm_offload_preempted(s, slot);
    if (s->admission)
        s->admission->left(s, r);
    r->status = MAQ_VLLM_PREEMPTED;
    r->computed = 0;
    r->drafts = 0;
    r->stale = r->in_flight;
    r->placeholders = 0;
    r->preemptions++;
    if (!maq_queue_push_front(&s->waiting, r->rank) ||
        !maq_slots_push(&it->preempted, &it->n_preempted, &it->preempted_size, slot))
        s->base.failed = true;
}

static void preempt(struct deciding *d, uint32_t place)
{
    withdraw(d, d->s->running[place]);
    maq_vllm_give_way(d->s, d->it, place);
}

/* Tokens that a running request could be given. */
static int64_t wanted(const struct deciding *d, const struct maq_vllm_request *r)
{
    const struct maq_vllm_knobs *k = &d->s->knobs;
    if (r->placeholders > 0 && r->computed + 2 - r->placeholders >= r->prompt + r->most)
        return 0; /* it is sure to end with what is in flight */
    if (d->s->step < r->eligible)
        return 0;
    int64_t n = r->tokens + r->drafts + r->placeholders - r->computed;
    if (d->long_prefill > 0 && d->long_prefill < n)
        n = d->long_prefill;
    n = least(n, least(d->token_budget, d->input_budget - k->draft_slots));
    return before_images(d, r, r->computed, least(n, k->max_model_len - r->computed - 1));
}

/* Gives a running request its blocks, at the expense of others if need be. False: there are none for it. */
static bool make_room(struct deciding *d, uint32_t *place, int64_t tokens)
{
    struct maq_vllm *s = d->s;
    uint32_t slot = s->running[*place];
    struct maq_vllm_request *r = &s->at[slot];
    const struct maq_kv_need need = {.tokens = r->tokens,
                                     .computed = r->computed,
                                     .added = tokens,
                                     .ahead = s->knobs.lookahead_tokens,
                                     .in_flight = r->in_flight};
    while (!maq_kv_allocate(&s->kv, &r->kv, &need)) {
        uint32_t victim = victim_of(s), out = s->running[victim];
        if (s->kv.failed || (s->knobs.defers_frees && s->at[out].in_flight > 0))
            return false;
        if (victim < *place)
            (*place)--;
        preempt(d, victim);
        if (out == slot)
            return false;
    }
    return true;
}

static void decide_running(struct deciding *d)
{
    struct maq_vllm *s = d->s;
    uint32_t place = 0;
    while (place < s->n_running && d->token_budget > 0 && d->input_budget > s->knobs.draft_slots) {
        uint32_t slot = s->running[place];
        struct maq_vllm_request *r = &s->at[slot];
        int64_t n = wanted(d, r);
        if (n <= 0) {
            place++;
            continue;
        }
        if (!make_room(d, &place, n)) {
            if (s->knobs.priority && !s->kv.failed && r->status == MAQ_VLLM_PREEMPTED)
                continue; /* it gave way itself; others may still fit */
            return;
        }
        int64_t drafts = n + r->computed - r->tokens - r->placeholders;
        struct maq_scheduled w = {
            .slot = slot, .tokens = (int32_t)n, .computed = r->computed, .order = r->rank.order, .hit = -1};
        w.drafts = (int32_t)(drafts > 0 ? least(drafts, r->drafts) : 0);
        r->drafts = 0;
        d->partial_runs |= r->partial;
        if (!push_scheduled(d, &w))
            return;
        place++;
    }
}

/* ---- those that wait ---- */

static bool skip(struct maq_vllm *s, struct maq_waiting w)
{
    if (!maq__grow((void **)&s->skipped, &s->skipped_size, s->n_skipped, sizeof *s->skipped)) {
        s->base.failed = true;
        return false;
    }
    s->skipped[s->n_skipped++] = w;
    return true;
}

/* ---- adapters ---- */

static uint64_t adapter_of(const struct maq_vllm *s, uint32_t slot)
{
    return s->at[slot].kv.content.adapter;
}

static void use_adapter(struct maq_vllm *s, uint32_t slot)
{
    if (s->knobs.max_loras > 0 && adapter_of(s, slot) != 0 && !maq_adapter_set_add(&s->adapters, adapter_of(s, slot)))
        s->base.failed = true;
}

/* Those of all that run, also of those that are given nothing now. */
static void list_adapters(struct maq_vllm *s)
{
    s->adapters.n = 0;
    for (uint32_t i = 0; s->knobs.max_loras > 0 && i < s->n_running; i++)
        use_adapter(s, s->running[i]);
}

/* A slot for its adapter is there, or becomes one. */
static bool has_slot(const struct maq_vllm *s, uint32_t slot)
{
    uint64_t adapter = adapter_of(s, slot);
    return s->knobs.max_loras == 0 || adapter == 0 || maq_adapter_set_fits(&s->adapters, adapter, s->knobs.max_loras);
}

/* ---- one that is taken in ---- */

/*
 * Tokens for a request that is taken in behind `computed` cached ones; 0: the pass over those that wait ends. A request with a single
 * token to compute is filled up with drafts where all others have as many, so that the batch stays uniform.
 */
static int64_t first_tokens(const struct deciding *d, const struct maq_vllm_request *r, int64_t computed,
                            int32_t *drafts)
{
    const struct maq_vllm_knobs *k = &d->s->knobs;
    int64_t n = r->tokens - computed, budget = least(d->token_budget, d->input_budget - k->draft_slots),
            padded = 1 + (int64_t)k->spec_tokens;
    *drafts = 0;
    if (k->spec_tokens > 0 && n == 1 && !d->partial_runs && (d->ran > 0 || computed > 0) &&
        computed + padded + 1 <= k->max_model_len) {
        if (padded > budget)
            return 0;
        n = padded;
        *drafts = k->spec_tokens;
    }
    if (d->long_prefill > 0 && d->long_prefill < n)
        n = d->long_prefill;
    if (!k->chunked_prefill && n > budget)
        return 0;
    return before_images(d, r, computed, least(n, budget));
}

/* One that has loaded what a tier had of it goes on with the rest of its prompt; false: there is no room for it. */
static bool go_on(struct deciding *d, uint32_t slot)
{
    struct maq_vllm *s = d->s;
    struct maq_vllm_request *r = &s->at[slot];
    maq_kv_keep(&s->kv, &r->kv, r->computed, r->tokens); /* only now, when its turn has come */
    r->computed -= r->computed == r->tokens;             /* its last token is computed to sample from it */
    struct maq_scheduled w = {.slot = slot, .computed = r->computed, .order = r->rank.order, .hit = r->computed};
    int64_t n = first_tokens(d, r, r->computed, &w.drafts);
    const struct maq_kv_need need = {.tokens = r->tokens,
                                     .computed = r->computed,
                                     .added = n,
                                     .ahead = s->knobs.lookahead_tokens,
                                     .whole_fits = s->knobs.reserve_full_isl,
                                     .keeps_free = s->n_running > 0};
    if (n <= 0 || !maq_kv_allocate(&s->kv, &r->kv, &need))
        return false;
    r->status = MAQ_VLLM_RUNNING;
    w.tokens = (int32_t)n;
    use_adapter(s, slot);
    if (!maq_slots_push(&s->running, &s->n_running, &s->running_size, slot)) {
        s->base.failed = true;
        return false;
    }
    return push_scheduled(d, &w);
}

/* One that stood aside runs from now on, or has ended with the token that it came with; false: there is no room for it. */
static bool take_loaded(struct deciding *d, uint32_t slot)
{
    struct maq_vllm *s = d->s;
    struct maq_vllm_request *r = &s->at[slot];
    int64_t known = r->tokens + r->first_known;
    maq_kv_keep(&s->kv, &r->kv, r->tokens, r->tokens); /* only now, when its turn has come */
    if (r->first_known && r->most == 1) {
        maq_vllm_free_request(s, slot);
        return maq_iteration_show(d->it, slot, true);
    }
    struct maq_scheduled w = {.slot = slot, .computed = known - 1, .order = r->rank.order, .hit = -1};
    const struct maq_kv_need need = {.tokens = known,
                                     .computed = known - 1,
                                     .added = 1,
                                     .ahead = s->knobs.lookahead_tokens,
                                     .whole_fits = s->knobs.reserve_full_isl,
                                     .keeps_free = s->n_running > 0};
    if (!maq_kv_allocate(&s->kv, &r->kv, &need))
        return false;
    r->tokens = known;
    r->computed = known - 1;
    r->status = MAQ_VLLM_RUNNING;
    r->part = MAQ_PART_WHOLE;
    w.tokens = 1;
    use_adapter(s, slot);
    if (!maq_slots_push(&s->running, &s->n_running, &s->running_size, slot) ||
        (r->first_known && !maq_iteration_show(d->it, slot, false))) {
        s->base.failed = true;
        return false;
    }
    return push_scheduled(d, &w);
}

static bool has_budget(const struct deciding *d)
{
    const struct maq_vllm_knobs *k = &d->s->knobs;
    return d->token_budget > 0 && d->input_budget > k->draft_slots && d->s->n_running < (uint32_t)k->max_num_seqs;
}

/* Those that stood aside and may go on; false: one of them does not fit, and nobody overtakes it. */
static bool decide_loaded(struct deciding *d)
{
    struct maq_vllm *s = d->s;
    uint32_t kept = 0;
    bool fits = true;
    for (uint32_t i = 0; i < s->n_loading; i++) {
        uint32_t slot = s->loading[i];
        if (s->at[slot].status == MAQ_VLLM_LOADED && fits && has_budget(d) && has_slot(s, slot)) {
            fits = s->at[slot].part == MAQ_PART_DECODE ? take_loaded(d, slot) : go_on(d, slot);
            s->n_loaded -= fits;
            if (fits)
                continue;
        }
        s->loading[kept++] = slot;
    }
    s->n_loading = kept;
    return fits;
}

/* Takes the first of those that wait in, `found` tokens of which are there, `loaded` of these on the host; false: it cannot be, and nobody overtakes it. */
static bool take_in(struct deciding *d, struct maq_waiting first, int64_t found, int64_t loaded)
{
    struct maq_vllm *s = d->s;
    struct maq_vllm_request *r = &s->at[first.slot];
    struct maq_scheduled w = {
        .slot = first.slot, .computed = found, .order = first.order, .hit = found, .loaded = loaded};
    int64_t n = first_tokens(d, r, found, &w.drafts);
    const struct maq_kv_need need = {.tokens = r->tokens,
                                     .found = found,
                                     .added = n,
                                     .ahead = s->knobs.lookahead_tokens,
                                     .in_flight = r->in_flight,
                                     .whole_fits = s->knobs.reserve_full_isl,
                                     .keeps_free = s->n_running > 0};
    if (s->admission && !s->admission->admits(s, r))
        return false;
    if (n <= 0 || !maq_kv_allocate(&s->kv, &r->kv, &need))
        return false;
    if (s->admission)
        s->admission->taken_in(s, r);
    maq_queue_pop(&s->waiting);
    if (!maq_slots_push(&s->running, &s->n_running, &s->running_size, first.slot)) {
        s->base.failed = true;
        return false;
    }
    r->status = MAQ_VLLM_RUNNING;
    r->computed = found;
    w.tokens = (int32_t)n;
    use_adapter(s, first.slot);
    return push_scheduled(d, &w);
}

/* The turn of one that computes its prompt here: it is taken in, loads, or is passed over. False: nobody overtakes it. */
static bool look_and_take_in(struct deciding *d, struct maq_waiting first)
{
    struct maq_vllm *s = d->s;
    struct maq_vllm_request *r = &s->at[first.slot];
    int64_t found = maq_kv_find(&s->kv, &r->kv, r->tokens, r->tokens - 1),
            more = s->offload ? maq_vllm_offload_look(s, r, found) : 0;
    if (more == MAQ_OFFLOAD_LATER) {
        maq_queue_pop(&s->waiting);
        return skip(s, first);
    }
    if (more > 0)
        return maq_vllm_offload_load(s, d->it, first, found, more);
    int64_t back = maq_vllm_swap_claim(s, r, found);
    return maq_vllm_swap_end(s, take_in(d, first, found + back, back));
}

static void decide_waiting(struct deciding *d)
{
    struct maq_vllm *s = d->s;
    s->n_skipped = 0;
    list_adapters(s);
    if (s->n_loaded > 0 && !decide_loaded(d))
        return;
    while (s->waiting.n > 0 && has_budget(d)) {
        struct maq_waiting first = maq_queue_peek(&s->waiting);
        bool slot = has_slot(s, first.slot);
        if (!slot && s->admission && !s->admission->admits(s, &s->at[first.slot]))
            break; /* it lacks more than that */
        /* what it sampled before it was preempted has not arrived; all slots have other adapters */
        if (s->at[first.slot].stale > 0 || !slot) {
            maq_queue_pop(&s->waiting);
            if (!skip(s, first))
                break;
            continue;
        }
        bool taken =
            s->at[first.slot].part == MAQ_PART_DECODE ? maq_vllm_reserve(s, d->it, first) : look_and_take_in(d, first);
        if (!taken)
            break;
    }
    while (s->n_skipped > 0)
        if (!maq_queue_push_front(&s->waiting, s->skipped[--s->n_skipped]))
            s->base.failed = true;
}

/* ---- the whole ---- */

static void advance(struct maq_vllm *s, struct maq_scheduled *w)
{
    struct maq_vllm_request *r = &s->at[w->slot];
    w->last = r->tokens - r->prompt + 1 + (r->placeholders > 0) >= r->most; /* Scheduler._drafts_unused() */
    r->given = 0;
    r->computed += w->tokens;
    r->in_flight += w->tokens;
    r->partial = r->computed < r->tokens + r->placeholders;
    w->samples = !r->partial;
    if (s->knobs.async && !r->partial) {
        r->eligible = s->step + (s->knobs.stagger > 1 ? (uint64_t)s->knobs.stagger : 1);
        r->placeholders += 1 + w->drafts;
        r->drafts = s->knobs.spec_tokens;
    }
}

static void decide(struct maq_vllm *s, struct maq_iteration *it)
{
    const struct maq_vllm_knobs *k = &s->knobs;
    struct deciding d = {.s = s,
                         .it = it,
                         .token_budget = k->max_num_batched_tokens,
                         .input_budget = k->max_num_batched_tokens,
                         .image_budget = k->image_budget};
    uint32_t all = s->n_running + s->waiting.n + s->n_loading;
    d.long_prefill = all > 1 ? k->long_prefill_token_threshold : 0;
    if (d.long_prefill > 0 && k->adaptive_long_prefill && k->max_num_batched_tokens / (int32_t)all > d.long_prefill)
        d.long_prefill = k->max_num_batched_tokens / (int32_t)all;
    maq_iteration_clear(it);
    maq_vllm_offload_begin(s);
    if (s->admission && s->admission->before)
        s->admission->before(s, it);
    uint32_t gave_way = it->n_preempted;
    decide_running(&d);
    d.ran = it->n;
    if (it->n_preempted == gave_way && !s->holds &&
        !(s->admission && s->admission->keeps_back && s->admission->keeps_back(s, it)))
        decide_waiting(&d);
    maq_vllm_offload_decided(s, it);
    s->launched += it->n > 0;
    for (uint32_t i = 0; i < it->n; i++) {
        it->tokens += it->scheduled[i].tokens;
        advance(s, &it->scheduled[i]);
    }
    s->base.failed |= s->kv.failed;
}

/* Nobody may decode yet, and nothing is in flight to wait for: the engine asks until somebody may. */
static bool skip_steps(struct maq_vllm *s)
{
    uint64_t first = UINT64_MAX;
    for (uint32_t i = 0; s->knobs.stagger > 1 && i < s->n_running; i++) {
        const struct maq_vllm_request *r = &s->at[s->running[i]];
        if (r->in_flight > 0)
            return false;
        first = r->eligible < first ? r->eligible : first;
    }
    bool later = first != UINT64_MAX && first > s->step;
    s->step = later ? first : s->step;
    return later;
}

void maq_vllm_decide(struct maq_vllm *s, struct maq_iteration *it)
{
    s->step++;
    decide(s, it);
    if (it->n == 0 && skip_steps(s))
        decide(s, it);
}
