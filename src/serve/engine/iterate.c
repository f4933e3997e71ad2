/* SPDX-License-Identifier: Apache-2.0 */
/* iterate.c - one iteration: its times on the stages, the tokens that come out of it, who ends with it. */
#include "serve/engine/engine.h"

#include "base/alloc.h"
#include "serve/draft/acceptance.h"
#include "serve/kv/radix_host.h"
#include "serve/kv/swap.h"

struct maq_scheduler_load maq_engine_load(const struct maq_serve_engine *e)
{
    struct maq_scheduler_load sum = e->ranks[0].sched->ops->load(e->ranks[0].sched);
    for (uint32_t r = 1; r < e->n_ranks; r++) {
        struct maq_scheduler_load more = e->ranks[r].sched->ops->load(e->ranks[r].sched);
        sum.running += more.running;
        sum.waiting += more.waiting;
        sum.aside += more.aside;
        sum.used += more.used;
        sum.all += more.all;
    }
    return sum;
}

/* Chunks that a rank's tiers hold. */
static void count_rank(double held[MAQ_TIER_COUNT], const struct maq_engine_rank *rank,
                       const struct maq_deployment_tiers *tiers)
{
    if (tiers->copies) {
        const struct maq_radix_host *h = rank->sched->ops->copies(rank->sched)->host;
        held[MAQ_TIER_HOST] += (double)(h->capacity - h->available) / tiers->chunk_tokens;
        return;
    }
    if (tiers->swaps) {
        held[MAQ_TIER_HOST] += (double)rank->sched->ops->swap(rank->sched)->used;
        return;
    }
    const struct maq_offload *o = rank->sched->ops->offload(rank->sched);
    held[MAQ_TIER_HOST] += (double)o->host.n;
    held[MAQ_TIER_SSD] += (double)o->ssd.n;
}

static void count_tiers(struct maq_serve_engine *e, double dt_s)
{
    struct maq_tiers_seen *seen = &e->tiers_seen;
    double held[MAQ_TIER_COUNT] = {0};
    if (!e->d->tiers.any)
        return;
    for (uint32_t r = 0; r < e->n_ranks; r++)
        count_rank(held, &e->ranks[r], &e->d->tiers);
    held[MAQ_TIER_REMOTE] = e->ways && e->replica == 0 ? (double)e->ways->pool.n : 0;
    for (int i = MAQ_TIER_HOST; i < MAQ_TIER_COUNT; i++) {
        seen->area[i] += held[i] * dt_s;
        seen->peak[i] = held[i] > seen->peak[i] ? held[i] : seen->peak[i];
    }
}

void maq_engine_count_kv(struct maq_serve_engine *e, struct maq_scheduler_load load)
{
    double share = load.all > 0 ? (double)load.used / (double)load.all : 0;
    count_tiers(e, e->now_s - e->kv_since_s);
    e->kv_area_s += share * (e->now_s - e->kv_since_s);
    e->kv_since_s = e->now_s;
    e->kv_peak = share > e->kv_peak ? share : e->kv_peak;
}

struct maq_engine_shape maq_engine_shape_of(struct maq_serve_engine *e)
{
    const struct maq_deployment *d = e->d;
    struct maq_engine_shape c = {0};
    uint32_t most = 0;
    int64_t most_tokens = 0;
    maq_batch_pad(d, e->batches);
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        const struct maq_pass_batch *b = &e->batches[r];
        uint32_t n = (uint32_t)b->decodes + b->n_chunks;
        c.requests += n;
        most = n > most ? n : most;
        c.prompts += b->n_chunks;
        c.tokens += b->tokens;
        most_tokens = b->tokens > most_tokens ? b->tokens : most_tokens;
    }
    c.mode = maq_batch_launch_mode(d, e->batches);
    c.host_s = maq_batch_host_s(d, most);
    c.transfer_s = d->passes.n_stages > 1 ? maq_batch_transfer_s(d, most_tokens) : 0;
    return c;
}

static void show(const struct maq_serve_engine *e, const struct maq_engine_shape *c, struct maq_scheduler_load load,
                 double decided_s)
{
    const struct maq_serve_options *o = &e->d->options;
    if (o->watch)
        o->watch(&(struct maq_serve_iteration){.number = e->iterations,
                                               .requests = c->requests,
                                               .prompts = c->prompts,
                                               .tokens = c->tokens,
                                               .running = load.running,
                                               .waiting = load.waiting,
                                               .used_blocks = (double)load.used,
                                               .decided_s = decided_s,
                                               .n_stages = e->d->passes.n_stages,
                                               .starts_s = e->stage_start_s,
                                               .ends_s = e->stage_free_s},
                 o->watch_user);
}

/*
 * What drafts follows on the last stage. Under vLLM's asynchronous scheduling tokens are on their way to clients before it is done
 * (v1/worker/gpu/model_runner.py, sample_tokens); otherwise the next iteration is decided when drafts are known.
 */
static double draft(struct maq_serve_engine *e, double at, enum maq_launch_mode mode)
{
    struct maq_deployment *d = e->d;
    uint32_t last = d->passes.n_stages - 1;
    if (d->options.speculation.method == MAQ_DRAFT_NONE)
        return at;
    struct maq_pass_parts work = {0};
    double runs = maq_draft_s(d, e->drafts, mode, &work);
    e->times.s[MAQ_STAGE_MATRIX] += work.matrix_ns * 1e-9;
    e->times.s[MAQ_STAGE_MEMORY] += work.memory_ns * 1e-9;
    bool early = d->host.async && d->options.engine == MAQ_ENGINE_VLLM;
    e->stage_free_s[last] += runs;
    e->times.s[MAQ_SERVE_DRAFT] += runs;
    e->speculated.draft_s += runs;
    e->times.s[MAQ_STAGE_ALL] += last == 0 ? runs : 0;
    return early ? at : at + runs;
}

static void count_adapters(struct maq_serve_engine *e)
{
    if (!e->d->options.lora.enabled)
        return;
    for (uint32_t r = 0; r < e->n_ranks; r++)
        e->adapters_seen.active += (uint64_t)e->batches[r].adapters;
    e->adapters_seen.copy_s += e->adapter_copy_s;
    e->adapters_seen.read_s += e->adapter_read_s;
    e->adapter_copy_s = e->adapter_read_s = 0;
}

void maq_engine_start(struct maq_serve_engine *e, const struct maq_engine_shape *c, struct maq_scheduler_load load)
{
    struct maq_deployment *d = e->d;
    double ready = e->now_s + (c->host_s + e->adapter_read_s), at = ready > e->known_s ? ready : e->known_s,
           idle_from = e->stage_free_s[0];
    if (e->iterations > 0 &&
        ready > idle_from) /* the device waits for the host, as long as there was something to do */
        e->times.s[MAQ_SERVE_HOST] += ready - (idle_from > e->now_s ? idle_from : e->now_s);
    e->load.waited_s = 0;
    if (e->hold_s > at) { /* blocks that it was given are still read */
        double starts = at > idle_from ? at : idle_from;
        double held_s = e->hold_s > starts ? e->hold_s - starts : 0;
        e->tiers_seen.stalled_s += held_s;
        e->load.waited_s = d->tiers.swaps ? held_s : 0;
        ready = at = e->hold_s;
    }
    e->hold_s = 0;
    for (uint32_t s = 0; s < d->passes.n_stages; s++) {
        double free = e->stage_free_s[s];
        const struct maq_stage_times *times = maq_iteration_times_of(d, s, e->batches, c->mode);
        double busy = e->times.s[MAQ_STAGE_ALL], compile_s = maq_compile_s(e, s),
               runs = times->s[MAQ_STAGE_ALL] + e->adapter_copy_s + compile_s + (s == 0 ? e->encode_s : 0);
        e->stage_start_s[s] = at > free ? at : free;
        at = maq_copies_layers_s(e, s, e->stage_start_s[s], runs);
        e->stage_free_s[s] = at;
        at += s + 1 < d->passes.n_stages ? c->transfer_s : 0;
        maq_stage_times_add(&e->times, times);
        if (d->afd)
            maq_afd_times_add(&e->times.afd, &times->afd);
        e->times.s[MAQ_STAGE_ALL] = s == 0 ? busy + runs : busy;
        e->times.s[MAQ_SERVE_LORA] += e->adapter_copy_s;
        e->times.s[MAQ_SERVE_COMPILE] += compile_s;
    }
    e->times.s[MAQ_SERVE_ENCODER] += e->encode_s;
    e->encode_s = 0;
    e->compiles = false;
    e->load.from_s = e->load.until_s = 0;
    e->ends_s[(e->first + e->in_flight) % e->most_in_flight] = draft(e, at, c->mode);
    e->in_flight++;
    count_adapters(e);
    show(e, c, load, e->now_s);
    e->now_s = ready;
    e->iterations++;
    e->batch_requests += c->requests;
    e->batch_tokens += (uint64_t)c->tokens;
}

double maq_engine_end(struct maq_serve_engine *e)
{
    double end = e->ends_s[e->first];
    e->now_s = end > e->now_s ? end : e->now_s;
    e->first = (e->first + 1) % e->most_in_flight;
    e->in_flight--;
    return end;
}

/* Who decodes begins with the token of the iteration before. */
static void wait_for_tokens(struct maq_serve_engine *e, const struct maq_engine_rank *rank,
                            const struct maq_iteration *it)
{
    for (uint32_t i = 0; i < it->n; i++) {
        double known = rank->slots[it->scheduled[i].slot].known_s;
        e->known_s = known > e->known_s ? known : e->known_s;
    }
}

/* Where what was found of a prompt was, when it is first taken in: what the GPU had is all else. */
static void count_hits(struct maq_serve_engine *e, const struct maq_engine_slot *r, struct maq_served *s)
{
    struct maq_tiers_seen *seen = &e->tiers_seen;
    s->loaded = 0;
    if (!e->d->tiers.any)
        return;
    for (int i = MAQ_TIER_COUNT; i-- > MAQ_TIER_HOST;) {
        int64_t left = s->cached - s->loaded,
                n = r->loaded[i] < left ? r->loaded[i] : left; /* its last token is computed again */
        seen->tokens[i] += n;
        s->loaded += n;
    }
    seen->tokens[MAQ_TIER_GPU] += s->cached - s->loaded;
    if (r->waits_since_s < 0)
        return;
    s->load_s = s->scheduled_s - r->waits_since_s;
    seen->wait_s += s->load_s;
    seen->loaded++;
}

/* What is loaded beside the iteration, whose layers wait for it. */
static void count_loaded(struct maq_serve_engine *e, struct maq_engine_slot *r, struct maq_served *s, int64_t tokens)
{
    if (tokens == 0)
        return;
    r->loaded[MAQ_TIER_HOST] = tokens;
    s->load_s = e->load.waited_s;
    e->tiers_seen.wait_s += s->load_s;
    e->tiers_seen.loaded++;
}

static void launch_rank(struct maq_serve_engine *e, struct maq_engine_rank *rank, const struct maq_iteration *it,
                        double ends_s)
{
    for (uint32_t i = 0; i < it->n; i++) {
        struct maq_engine_slot *r = &rank->slots[it->scheduled[i].slot];
        r->known_s = it->scheduled[i].samples ? ends_s : r->known_s;
        if (r->seen)
            continue;
        r->seen = true;
        if (!maq_engine_computes(e, r->request))
            continue;
        struct maq_served *s = &e->clients->served[r->request];
        s->scheduled_s = e->now_s;
        s->cached = it->scheduled[i].hit > 0 ? it->scheduled[i].hit : 0;
        count_loaded(e, r, s, it->scheduled[i].loaded);
        count_hits(e, r, s);
    }
}

void maq_engine_launch(struct maq_serve_engine *e)
{
    uint32_t place = (e->first + e->in_flight) % e->most_in_flight;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        maq_batch_of(&e->ranks[r].batch, e->d, &e->ranks[r].it[place]);
        e->batches[r] = e->ranks[r].batch.batch;
        e->drafts[r] = e->ranks[r].batch.draft;
    }
    maq_adapters_launch(e, place);
    maq_images_launch(e, place);
    maq_compiles_launch(e);
    bool pipeline = e->d->passes.n_stages > 1 && e->d->host.async; /* on one stage iterations follow each other */
    for (uint32_t r = 0; pipeline && r < e->n_ranks; r++)
        wait_for_tokens(e, &e->ranks[r], &e->ranks[r].it[place]);
    double decided_s = e->now_s;
    const struct maq_engine_shape shape = maq_engine_shape_of(e);
    maq_engine_start(e, &shape, maq_engine_load(e));
    maq_engine_count_launches(e, 1, shape.prompts > 0);
    maq_tiers_launched(e, place, decided_s);
    e->known_s = 0;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        launch_rank(e, &e->ranks[r], &e->ranks[r].it[place], e->ends_s[place]);
        if (e->role == MAQ_ROLE_PREFILL)
            maq_engine_note_launched(e, r, &e->ranks[r].it[place]);
    }
}

/* Tokens of an iteration reach a client together: one gap for all of them. */
static void token(struct maq_serve_engine *e, struct maq_engine_slot *r, double at, struct maq_latency_run *gaps)
{
    struct maq_served *s = &e->clients->served[r->request];
    if (!r->sampled) {
        s->first_s = at;
        r->sampled = true;
    } else {
        maq_latency_run_add(gaps, at - r->last_s); /* most are as long as the one before */
    }
    r->last_s = at;
    s->last_s = at;
}

/* What the model says to each draft of an iteration; NULL: nobody drafts. */
static const int32_t *verify(struct maq_serve_engine *e, struct maq_engine_rank *rank, const struct maq_iteration *it)
{
    const struct maq_speculation *s = &e->d->options.speculation;
    if (s->method == MAQ_DRAFT_NONE)
        return NULL;
    if (it->n > rank->verdicts_size) {
        int32_t *more = maq__realloc(rank->verdicts, it->size * sizeof *more);
        if (!more) {
            e->failed = true;
            return NULL;
        }
        rank->verdicts = more;
        rank->verdicts_size = it->size;
    }
    for (uint32_t i = 0; i < it->n; i++) {
        const struct maq_scheduled *w = &it->scheduled[i];
        const struct maq_engine_slot *r = &rank->slots[w->slot];
        int32_t drafts = w->drafts < s->tokens ? w->drafts : s->tokens;
        rank->verdicts[i] = w->samples ? 1 + maq_drafts_accepted(s, r->request, r->tokens, drafts) : 0;
    }
    return rank->verdicts;
}

/* Those that were lost on the way do not count. */
static void count_drafts(struct maq_serve_engine *e, const struct maq_scheduled *w, int32_t verdict)
{
    int32_t most = e->d->options.speculation.tokens;
    if (w->came <= 0 || w->drafts <= 0)
        return;
    e->speculated.verifications++;
    e->speculated.drafted += (uint64_t)(w->drafts < most ? w->drafts : most);
    e->speculated.accepted += (uint64_t)(verdict - 1);
}

double maq_engine_written_s(const struct maq_serve_engine *e, double end_s, uint32_t requests)
{
    return end_s + (e->respond_s + e->stream_s * requests);
}

static uint32_t requests_with_tokens(const struct maq_serve_engine *e, uint32_t place)
{
    uint32_t n = 0;
    for (uint32_t k = 0; k < e->n_ranks; k++) {
        const struct maq_iteration *it = &e->ranks[k].it[place];
        for (uint32_t i = 0; i < it->n; i++)
            n += it->scheduled[i].came > 0;
    }
    return n;
}

static void tokens_of(struct maq_serve_engine *e, struct maq_engine_rank *rank, const struct maq_iteration *it,
                      const int32_t *verdicts, double client)
{
    struct maq_latency_run gaps = maq_latency_run_of(&e->clients->itl, 1);
    for (uint32_t i = 0; i < it->n; i++) {
        const struct maq_scheduled *w = &it->scheduled[i];
        if (w->came <= 0)
            continue;
        token(e, &rank->slots[w->slot], client, &gaps);
        rank->slots[w->slot].tokens += w->came;
        if (verdicts)
            count_drafts(e, w, verdicts[i]);
    }
    maq_latency_run_end(&gaps);
}

void maq_engine_retire(struct maq_serve_engine *e)
{
    uint32_t place = e->first;
    double end_s = maq_engine_end(e);
    for (uint32_t k = 0; k < e->n_ranks; k++) {
        struct maq_engine_rank *rank = &e->ranks[k];
        struct maq_iteration *it = &rank->it[place];
        rank->sched->ops->end(rank->sched, it, verify(e, rank, it));
    }
    double client = maq_engine_written_s(e, end_s, requests_with_tokens(e, place));
    for (uint32_t k = 0; k < e->n_ranks; k++) {
        struct maq_engine_rank *rank = &e->ranks[k];
        struct maq_iteration *it = &rank->it[place];
        const int32_t *verdicts = e->d->options.speculation.method != MAQ_DRAFT_NONE ? rank->verdicts : NULL;
        if (e->role == MAQ_ROLE_PREFILL)
            maq_engine_note_ended(e, k, it);
        else
            tokens_of(e, rank, it, verdicts, client);
        for (uint32_t i = 0; verdicts && rank->sched->ops->propose && i < it->n; i++)
            if (verdicts[i] > 0 &&
                it->scheduled[i].order == maq_engine_order(e, rank->slots[it->scheduled[i].slot].request))
                rank->sched->ops->propose(rank->sched, it->scheduled[i].slot, e->d->options.speculation.tokens);
        for (uint32_t i = 0; i < it->n_finished; i++) {
            rank->slots[it->finished[i]].here = false;
            maq_engine_ended(e, rank->slots[it->finished[i]].request);
        }
    }
    maq_tiers_ended(e, place);
    maq_engine_count_kv(e, maq_engine_load(e));
}
