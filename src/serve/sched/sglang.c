/* SPDX-License-Identifier: Apache-2.0 */
/* sglang.c - requests come, hold slots of the cache, give them back; iterations end. Deciding is in sglang_decide.c and sglang_admit.c. */
#include "serve/sched/sglang.h"

#include <stdlib.h>

#include "base/alloc.h"

/* SGLANG_INIT_NEW_TOKEN_RATIO, SGLANG_MIN_NEW_TOKEN_RATIO_FACTOR, SGLANG_NEW_TOKEN_RATIO_DECAY_STEPS (environ.py). */
#define FIRST_RATIO 0.7
#define LEAST_RATIO 0.14
#define RATIO_STEPS 600

/* ---- slots of the cache ---- */

void maq_sglang_evict(struct maq_sglang *s, int64_t tokens)
{
    while (s->available < tokens) {
        int64_t n = maq_radix_evict(&s->tree);
        if (n == 0)
            break;
        s->available += n;
    }
    maq_radix_host_evicted(&s->tree);
}

void maq_sglang_keep(struct maq_sglang *s, struct maq_sglang_request *r, int64_t tokens)
{
    int64_t page = s->knobs.page, whole = (tokens - s->tree.pairs) / page * page,
            prompt = (r->prompt - s->tree.pairs) / page * page;
    const struct maq_radix_insert all = {whole, r->priority, r->inserted}, front = {prompt, r->priority + 1, prompt};
    uint32_t node, unused;
    if (!s->knobs.caching || tokens <= 0)
        return;
    int64_t there = maq_radix_insert(&s->tree, &r->content, &all, &node);
    r->inserted = r->inserted > whole ? r->inserted : whole;
    if (prompt > 0 && prompt < whole) /* so that what was generated can be evicted without the prompt */
        (void)maq_radix_insert(&s->tree, &r->content, &front, &unused);
    s->available += there - r->tree_owns; /* what others computed meanwhile, twice */
    if (r->lock != MAQ_RADIX_NONE)
        maq_radix_unlock(&s->tree, r->lock);
    maq_radix_lock(&s->tree, node);
    r->lock = r->node = node;
    r->tree_owns = whole;
}

void maq_sglang_release(struct maq_sglang *s, struct maq_sglang_request *r, bool keep)
{
    if (r->held == 0)
        return;
    int64_t known = r->prompt + r->sampled;
    int64_t computed = s->knobs.verified > 0 ? r->committed : r->held;
    if (keep)
        maq_sglang_keep(s, r, computed < known ? computed : known);
    s->available += maq_sglang_pages(s, r->held) - r->tree_owns;
    if (r->lock != MAQ_RADIX_NONE)
        maq_radix_unlock(&s->tree, r->lock);
    r->lock = MAQ_RADIX_NONE;
    r->held = r->committed = r->tree_owns = 0;
    s->rows--;
}

void maq_sglang_look_up(struct maq_sglang *s, struct maq_sglang_request *r, int64_t most)
{
    int64_t known = r->prompt + r->sampled;
    r->node = MAQ_RADIX_ROOT;
    r->loaded = 0;
    int64_t found = s->knobs.caching ? maq_radix_match(&s->tree, &r->content, most, &r->node) : 0;
    r->found = r->node;
    while (!s->tree.at[r->node].on_gpu)
        r->node = s->tree.at[r->node].parent;
    r->prefix = r->node == r->found ? found : s->tree.at[r->node].end;
    r->on_host = found - r->prefix;
    r->tree_owns = r->prefix;
    r->matched = found < known - 1 ? found : known - 1;
}

int64_t maq_sglang_room(int64_t prompt, int64_t output, int32_t page)
{
    return (prompt + page - 1) / page * page + output + page + 1;
}

int64_t maq_sglang_reserve(const struct maq_sglang_tree_of_drafts *t)
{
    int64_t page = t->page, fills = (int64_t)t->steps * t->branches;
    if (t->verified == 0)
        return 0;
    if (page > 1 && t->branches > 1 && t->has_cache)
        fills = (page - 1 + t->steps + page - 1) / page * page * t->branches;
    return 2 * (fills > t->verified ? fills : t->verified);
}

/* ---- coming and going ---- */

bool maq_sglang_wait(struct maq_sglang *s, uint32_t slot)
{
    s->at[slot].status = MAQ_SGLANG_WAITING;
    s->at[slot].entered = s->entries++;
    if (maq_slots_push(&s->waiting, &s->n_waiting, &s->waiting_size, slot))
        return true;
    s->base.failed = true;
    return false;
}

static struct maq_sglang *of(struct maq_scheduler *s)
{
    return (struct maq_sglang *)s;
}

static uint32_t new_slot(struct maq_sglang *s)
{
    if (s->n_free_slots > 0)
        return s->free_slots[--s->n_free_slots];
    if (!maq__grow((void **)&s->at, &s->slots_size, s->n_slots, sizeof *s->at))
        return MAQ_NO_SLOT;
    return s->n_slots++;
}

static uint32_t add(struct maq_scheduler *base, const struct maq_scheduler_request *new)
{
    struct maq_sglang *s = of(base);
    uint32_t slot = new_slot(s);
    if (slot == MAQ_NO_SLOT) {
        base->failed = true;
        return MAQ_NO_SLOT;
    }
    struct maq_sglang_request *r = &s->at[slot];
    int64_t most = s->knobs.tokens - maq_sglang_pages(s, new->prompt) - s->knobs.page - 1;
    *r = (struct maq_sglang_request){.prompt = new->prompt,
                                     .output = new->output,
                                     .limit = new->limit > new->output ? new->limit : new->output,
                                     .stops_known = new->limit <= new->output,
                                     .node = MAQ_RADIX_ROOT,
                                     .lock = MAQ_RADIX_NONE,
                                     .order = new->order,
                                     .priority = new->priority,
                                     .content = new->content};
    if (r->limit > most && !r->stops_known) /* Scheduler.init_req_max_new_tokens */
        r->limit = most > r->output ? most : r->output;
    return maq_sglang_wait(s, slot) ? slot : MAQ_NO_SLOT;
}

static bool take_out(uint32_t *list, uint32_t *n, uint32_t slot)
{
    uint32_t kept = 0, before = *n;
    for (uint32_t i = 0; i < before; i++)
        if (list[i] != slot)
            list[kept++] = list[i];
    *n = kept;
    return kept < before;
}

void maq_sglang_free_request(struct maq_sglang *s, uint32_t slot)
{
    s->at[slot].status = MAQ_SGLANG_FREE;
    s->at[slot].order = UINT64_MAX;
    if (!maq_slots_push(&s->free_slots, &s->n_free_slots, &s->free_size, slot))
        s->base.failed = true;
}

static void give_up(struct maq_scheduler *base, uint32_t slot)
{
    struct maq_sglang *s = of(base);
    (void)take_out(s->waiting, &s->n_waiting, slot);
    (void)take_out(s->ready, &s->n_ready, slot);
    (void)take_out(s->retracted, &s->n_retracted, slot);
    s->n_loading -= s->at[slot].status == MAQ_SGLANG_LOADING;
    for (int32_t i = 0; i < s->knobs.lanes; i++) {
        struct maq_sglang_lane *l = &s->lanes[i];
        if (take_out(l->running, &l->n_running, slot) || take_out(l->last, &l->n_last, slot))
            l->full = false;
        l->last_chunked = l->last_chunked == slot ? MAQ_NO_SLOT : l->last_chunked;
    }
    s->chunked = s->chunked == slot ? MAQ_NO_SLOT : s->chunked;
    maq_sglang_release(s, &s->at[slot], false);
    maq_sglang_free_request(s, slot);
}

/* ---- the end of an iteration ---- */

/* Those that ended leave the lists in one pass; who left makes room for others. */
static void remove_ended(const struct maq_sglang *s, uint32_t *list, uint32_t *n, bool *full)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++)
        if (s->at[list[i]].status != MAQ_SGLANG_FREE && s->at[list[i]].status != MAQ_SGLANG_HELD)
            list[kept++] = list[i];
    *full = *full && kept == *n;
    *n = kept;
}

/* Its tokens; whether it ended. A prefill that goes on offers what it has to the tree. */
static bool end_scheduled(struct maq_sglang *s, struct maq_scheduled *w, int32_t sampled)
{
    struct maq_sglang_request *r = &s->at[w->slot];
    r->flying -= w->samples;
    if (!w->samples || r->retracted || sampled <= 0)
        return false;
    int64_t left = r->output - r->sampled;
    w->came = (int32_t)(sampled < left ? sampled : left);
    r->sampled += w->came;
    if (s->knobs.part == MAQ_PART_PREFILL) {
        maq_sglang_keep(s, r, r->end);
        return true;
    }
    if (!w->prefill && (w->drafts > 0 || r->sampled < r->output)) /* the last token beside a prefill is not counted */
        r->committed += sampled;
    if (r->sampled >= r->output) {
        maq_sglang_release(s, r, true);
        return true;
    }
    if (w->prefill) {
        maq_sglang_keep(s, r, r->end);
        r->prefix = r->end;
    }
    return false;
}

static void end(struct maq_scheduler *base, struct maq_iteration *it, const int32_t *sampled)
{
    struct maq_sglang *s = of(base);
    struct maq_sglang_lane *lane = NULL;
    it->n_finished = 0;
    if (s->n_flights > 0 && it->n > 0) {
        lane = &s->lanes[s->flights[0]];
        lane->flying--;
        s->n_flights--;
        for (uint32_t i = 0; i < s->n_flights; i++)
            s->flights[i] = s->flights[i + 1];
    }
    for (uint32_t i = 0; i < it->n; i++) {
        struct maq_scheduled *w = &it->scheduled[i];
        w->came = 0;
        if (s->at[w->slot].order != w->order) /* it ended before this, or was given up */
            continue;
        if (!end_scheduled(s, w, sampled ? sampled[i] : w->samples))
            continue;
        if (s->knobs.part == MAQ_PART_PREFILL)
            s->at[w->slot].status = MAQ_SGLANG_HELD;
        else
            maq_sglang_free_request(s, w->slot);
        if (!maq_slots_push(&it->finished, &it->n_finished, &it->finished_size, w->slot))
            base->failed = true;
    }
    if (lane && it->n_finished > 0) {
        remove_ended(s, lane->running, &lane->n_running, &lane->full);
        remove_ended(s, lane->last, &lane->n_last, &lane->full);
    }
    if (it->n > 0)
        maq_radix_host_begin_writes(&s->tree);
    base->failed |= s->tree.failed;
}

/* ---- construction and the operations ---- */

static void fini(struct maq_scheduler *base)
{
    struct maq_sglang *s = of(base);
    for (int32_t i = 0; s->lanes && i < s->knobs.lanes; i++) {
        free(s->lanes[i].running);
        free(s->lanes[i].last);
    }
    free(s->lanes);
    free(s->at);
    free(s->free_slots);
    free(s->waiting);
    free(s->taken);
    free(s->sorting);
    free(s->ready);
    free(s->retracted);
    free(s->flights);
    maq_adapter_set_fini(&s->adapters);
    maq_radix_fini(&s->tree);
    free(s);
}

static struct maq_scheduler_load load(const struct maq_scheduler *base)
{
    const struct maq_sglang *s = (const struct maq_sglang *)base;
    uint32_t aside = s->n_loading + s->n_ready + s->n_retracted;
    struct maq_scheduler_load l = {.waiting = s->n_waiting + aside,
                                   .aside = aside,
                                   .all = s->knobs.tokens,
                                   .kept = maq_radix_evictable(&s->tree),
                                   .used = s->knobs.tokens - s->available - maq_radix_evictable(&s->tree)};
    for (int32_t i = 0; i < s->knobs.lanes; i++)
        l.running += s->lanes[i].n_running;
    return l;
}

static int64_t computed(const struct maq_scheduler *base, uint32_t slot)
{
    return ((const struct maq_sglang *)base)->at[slot].held;
}

static struct maq_radix_tree *copies(struct maq_scheduler *base)
{
    return of(base)->tree.host ? &of(base)->tree : NULL;
}

static const struct maq_scheduler_ops sglang_ops = {.name = "sglang",
                                                    .fini = fini,
                                                    .add = add,
                                                    .abort = give_up,
                                                    .decide = maq_sglang_decide,
                                                    .end = end,
                                                    .load = load,
                                                    .arrived = maq_sglang_arrived,
                                                    .release = maq_sglang_done,
                                                    .cached = maq_sglang_cached,
                                                    .computed = computed,
                                                    .copies = copies,
                                                    .steady_decodes = maq_sglang_steady_decodes,
                                                    .skip = maq_sglang_skip};

enum maq_status maq_sglang_new(struct maq_scheduler **out, const struct maq_sglang_knobs *knobs)
{
    struct maq_sglang *s = maq__calloc(sizeof *s);
    if (!s)
        return MAQ_NO_MEMORY;
    *out = &s->base;
    s->base.ops = &sglang_ops;
    s->knobs = *knobs;
    s->knobs.lanes = knobs->lanes > 1 ? knobs->lanes : 1;
    s->knobs.overlap = knobs->overlap && s->knobs.lanes == 1;
    s->chunked = MAQ_NO_SLOT;
    s->available = knobs->tokens;
    double first = FIRST_RATIO * knobs->conservativeness;
    s->ratio = s->ratio_first = first < 1 ? first : 1;
    s->ratio_least = s->ratio_first * LEAST_RATIO < 1 ? s->ratio_first * LEAST_RATIO : 1;
    s->ratio_step = (s->ratio_first - s->ratio_least) / RATIO_STEPS;
    s->lanes = maq__calloc((size_t)s->knobs.lanes * sizeof *s->lanes);
    for (int32_t i = 0; s->lanes && i < s->knobs.lanes; i++)
        s->lanes[i].last_chunked = MAQ_NO_SLOT;
    enum maq_status status = maq_radix_init(&s->tree, knobs->page, (enum maq_radix_eviction)knobs->eviction);
    s->tree.pairs = knobs->pairs;
    if (status == MAQ_OK && knobs->host_tokens > 0)
        status = maq_radix_host_init(&s->tree, knobs->host_tokens, (enum maq_hicache_policy)knobs->hicache);
    return s->lanes ? status : MAQ_NO_MEMORY;
}
