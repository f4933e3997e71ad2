/* SPDX-License-Identifier: Apache-2.0 */
/* trtllm.c - who is taken in and who is paused, by what the cache holds: to the end, or now. */
#include "serve/sched/trtllm.h"

#include "base/alloc.h"

struct trtllm {
    struct maq_vllm vllm; /* first: its operations are all that is different in none */
    int64_t promised;     /* NO_EVICT: blocks that those that run may come to hold */
    uint32_t admitted;    /* MAX_UTILIZATION: of those that wait, the first ones, that find room in this iteration */
    struct maq_trtllm_rules rules;
    int32_t waited; /* iterations for which prompts were kept back */
};

static struct trtllm *of(struct maq_vllm *s)
{
    return (struct trtllm *)s;
}

static int64_t blocks_of(const struct maq_vllm *s, uint32_t group, int64_t tokens)
{
    const struct maq_kv_group *g = &s->kv.group[group];
    int64_t n = (tokens + g->block_size - 1) / g->block_size;
    return s->kv.cap[group] > 0 && s->kv.cap[group] < n ? s->kv.cap[group] : n;
}

/* ---- to the end ---- */

/* Blocks of a request at its end, if it samples all it may. */
static int64_t whole_blocks(const struct maq_vllm *s, const struct maq_vllm_request *r)
{
    int64_t tokens = r->prompt + r->most, blocks = 0;
    if (tokens > s->knobs.max_model_len)
        tokens = s->knobs.max_model_len;
    for (uint32_t g = 0; g < s->kv.n_groups; g++)
        blocks += blocks_of(s, g, tokens);
    return blocks;
}

static bool admits(const struct maq_vllm *s, const struct maq_vllm_request *r)
{
    return ((const struct trtllm *)s)->promised + whole_blocks(s, r) < s->kv.pool.n; /* block 0 is nobody's */
}

static void taken_in(struct maq_vllm *s, const struct maq_vllm_request *r)
{
    of(s)->promised += whole_blocks(s, r);
}

static void left(struct maq_vllm *s, const struct maq_vllm_request *r)
{
    of(s)->promised -= whole_blocks(s, r);
}

/* ---- a fuller batch ---- */

/* Tokens of the prompts that could begin beside `running` ones, in what is left of an iteration; 0: none could. */
static int64_t ready_tokens(struct maq_vllm *s, uint32_t running, int64_t budget)
{
    const struct trtllm *t = of(s);
    bool ends = t->rules.capacity == MAQ_TRTLLM_NO_EVICT;
    int64_t tokens = 0, promised = t->promised;
    for (uint32_t n = 0; s->waiting.n > 0; n++) {
        struct maq_waiting w = maq_queue_peek(&s->waiting);
        const struct maq_vllm_request *r = &s->at[w.slot];
        promised += ends ? whole_blocks(s, r) : 0;
        if (running + n >= (uint32_t)s->knobs.max_num_seqs || (ends ? promised >= s->kv.pool.n : n >= t->admitted) ||
            (s->knobs.chunked_prefill ? tokens >= budget : tokens + r->tokens > budget))
            break;
        tokens += r->tokens;
        if (!maq__grow((void **)&s->skipped, &s->skipped_size, s->n_skipped, sizeof *s->skipped)) {
            s->base.failed = true;
            break;
        }
        s->skipped[s->n_skipped++] = maq_queue_pop(&s->waiting);
    }
    while (s->n_skipped > 0)
        if (!maq_queue_push_front(&s->waiting, s->skipped[--s->n_skipped]))
            s->base.failed = true;
    return tokens < budget ? tokens : budget;
}

static bool keeps_back(struct maq_vllm *s, const struct maq_iteration *it)
{
    struct trtllm *t = of(s);
    int64_t decoded = 0;
    if (t->rules.wait_iterations <= 0 || s->waiting.n == 0 || it->n == 0)
        return false;
    for (uint32_t i = 0; i < it->n; i++)
        decoded += it->scheduled[i].tokens;
    int64_t begin = ready_tokens(s, s->n_running, s->knobs.max_num_batched_tokens - decoded);
    if (begin == 0)
        return false;
    bool waits = t->waited < t->rules.wait_iterations && (double)(begin + decoded) < t->rules.wait_tokens;
    t->waited = waits ? t->waited + 1 : 0;
    return waits;
}

static const struct maq_vllm_admission no_evict = {
    .keeps_back = keeps_back, .admits = admits, .taken_in = taken_in, .left = left};

/* ---- now ---- */

/* Blocks that a request needs for its next step beyond those that it has: of a prompt for all of it. */
static int64_t needs(const struct maq_vllm *s, const struct maq_vllm_request *r)
{
    int64_t known = r->tokens + r->placeholders + r->drafts, blocks = 0;
    if (r->placeholders > 0 && r->computed + 2 - r->placeholders >= r->prompt + r->most)
        return 0; /* it ends with what is under way */
    for (uint32_t g = 0; g < s->kv.n_groups; g++) {
        int64_t more = blocks_of(s, g, known + s->knobs.lookahead_tokens) - r->kv.table[g].n;
        blocks += more > 0 ? more : 0;
    }
    return blocks;
}

/* Those that run, in the order in which they came; they nearly are. */
static void sort_running(struct maq_vllm *s)
{
    for (uint32_t i = 1; i < s->n_running; i++) {
        uint32_t slot = s->running[i], place = i;
        for (; place > 0 && maq_waiting_before(&s->at[slot].rank, &s->at[s->running[place - 1]].rank); place--)
            s->running[place] = s->running[place - 1];
        s->running[place] = slot;
    }
}

/* All in one order while they are gone through. */
struct going {
    struct maq_vllm *s;
    int64_t free;
    uint32_t next, end; /* of those that run: the next one, and behind the last one that was not paused */
    uint32_t scheduled;
    bool cut; /* somebody was paused: who came later than that one is not looked at */
    struct maq_waiting last;
};

/* The last of those that have begun is paused; false: nobody is left who could be. */
static bool pause_last(struct going *g)
{
    if (g->end <= g->next)
        return false;
    const struct maq_vllm_request *r = &g->s->at[g->s->running[--g->end]];
    g->free += maq_kv_held(&g->s->kv, &r->kv);
    g->cut = true;
    g->last = r->rank;
    return true;
}

/* A place among the adapters that the GPU has room for (PeftCacheManager), where it needs one. */
static bool finds_slot(const struct maq_vllm *s, uint64_t adapter)
{
    return s->knobs.max_loras == 0 || adapter == 0 || maq_adapter_set_fits(&s->adapters, adapter, s->knobs.max_loras);
}

static void take_slot(struct maq_vllm *s, uint64_t adapter)
{
    if (s->knobs.max_loras > 0 && adapter != 0 && !maq_adapter_set_add(&s->adapters, adapter))
        s->base.failed = true;
}

/* Room for one more; those behind it give way until there is some, which helps nobody whose adapter has no slot. False: it has to wait, and so have all
 * behind it. */
static bool finds_room(struct going *g, const struct maq_vllm_request *r, bool runs)
{
    uint64_t adapter = r->kv.content.adapter;
    while (g->scheduled >= (uint32_t)g->s->knobs.max_num_seqs || needs(g->s, r) > g->free || !finds_slot(g->s, adapter))
        if (!pause_last(g) || (runs && g->end <= g->next)) /* itself */
            return false;
    take_slot(g->s, adapter);
    g->free -= needs(g->s, r);
    g->scheduled++;
    return true;
}

/* Looks at those that wait and came before the next one that runs. False: nobody behind is looked at. */
static bool go_through_waiting(struct going *g)
{
    struct maq_vllm *s = g->s;
    while (s->waiting.n > 0) {
        struct maq_waiting w = maq_queue_peek(&s->waiting);
        if (g->next < g->end && maq_waiting_before(&s->at[s->running[g->next]].rank, &w))
            return true;
        if (g->cut && maq_waiting_before(&g->last, &w))
            return false;
        if (s->at[w.slot].stale == 0) { /* else what it sampled before it was paused has not arrived */
            if (!finds_room(g, &s->at[w.slot], false))
                return false;
            of(s)->admitted++;
        }
        if (!maq__grow((void **)&s->skipped, &s->skipped_size, s->n_skipped, sizeof *s->skipped)) {
            s->base.failed = true;
            return false;
        }
        s->skipped[s->n_skipped++] = maq_queue_pop(&s->waiting);
    }
    return true;
}

static void choose(struct maq_vllm *s, struct maq_iteration *it)
{
    struct going g = {.s = s, .free = s->kv.pool.n_free, .end = s->n_running};
    of(s)->admitted = 0;
    s->n_skipped = 0;
    s->adapters.n = 0;
    sort_running(s);
    bool goes_on = go_through_waiting(&g);
    while (goes_on && g.next < g.end) {
        goes_on = finds_room(&g, &s->at[s->running[g.next]], true);
        g.next += goes_on;
        goes_on = goes_on && go_through_waiting(&g);
    }
    while (s->n_skipped > 0)
        if (!maq_queue_push(&s->waiting, s->skipped[--s->n_skipped]))
            s->base.failed = true;
    while (s->n_running > g.end)
        maq_vllm_give_way(s, it, s->n_running - 1);
}

static bool is_admitted(const struct maq_vllm *s, const struct maq_vllm_request *r)
{
    (void)r;
    return ((const struct trtllm *)s)->admitted > 0;
}

static void takes_its_place(struct maq_vllm *s, const struct maq_vllm_request *r)
{
    (void)r;
    of(s)->admitted--;
}

static void goes(struct maq_vllm *s, const struct maq_vllm_request *r)
{
    (void)s;
    (void)r;
}

static const struct maq_vllm_admission max_utilization = {
    .before = choose, .keeps_back = keeps_back, .admits = is_admitted, .taken_in = takes_its_place, .left = goes};

/* ---- the scheduler ---- */

enum maq_status maq_trtllm_new(struct maq_scheduler **out, const struct maq_vllm_knobs *knobs,
                               const struct maq_kv_options *kv, const struct maq_trtllm_rules *rules)
{
    struct maq_vllm_knobs own = *knobs;
    struct trtllm *s = maq__calloc(sizeof *s);
    if (!s)
        return MAQ_NO_MEMORY;
    *out = &s->vllm.base;
    s->rules = *rules;
    own.by_arrival = rules->capacity == MAQ_TRTLLM_MAX_UTILIZATION;
    enum maq_status status = maq_vllm_init(&s->vllm, &own, kv);
    s->vllm.admission = rules->capacity == MAQ_TRTLLM_MAX_UTILIZATION ? &max_utilization : &no_evict;
    return status;
}
