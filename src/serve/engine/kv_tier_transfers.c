/* SPDX-License-Identifier: Apache-2.0 */
/* kv_tier_transfers.c - transfers begin, are over, and are seen to be. */
#include "serve/engine/kv_tier_transfers.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "serve/engine/engine.h"
#include "serve/kv/radix_host.h"
#include "serve/kv/swap.h"
#include "serve/sched/vllm.h"

/* ---- ways that are shared ---- */

bool maq_tier_ways_needed(const struct maq_deployment *d)
{
    return d->tiers.any && (d->tiers.chunks[MAQ_TIER_SSD] > 0 || d->tiers.chunks[MAQ_TIER_REMOTE] > 0);
}

bool maq_tier_ways_init(struct maq_tier_ways *w, const struct maq_deployment *d, uint32_t nodes, uint32_t replicas)
{
    const struct maq_tier_options *o = &d->options.tiers;
    *w = (struct maq_tier_ways){.nodes = nodes, .replicas = replicas, .has_pool = d->tiers.chunks[MAQ_TIER_REMOTE] > 0};
    enum maq_status pool = maq_tier_init(&w->pool, d->tiers.chunks[MAQ_TIER_REMOTE], MAQ_TIER_LRU);
    if (!maq_network_init(&w->net, MAQ_WAYS_BEFORE_NODES + 2 * (nodes + replicas)) || pool != MAQ_OK)
        return false;
    if (o->remote_bps > 0)
        w->net.ports[MAQ_WAY_POOL_READ].bps = w->net.ports[MAQ_WAY_POOL_WRITE].bps = o->remote_bps;
    return true;
}

void maq_tier_ways_fini(struct maq_tier_ways *w)
{
    maq_network_fini(&w->net);
    maq_tier_fini(&w->pool);
    free(w->at);
    free(w->free);
}

/* The ports of an engine: drives of its nodes, of which there are as many as the ones that it stands on, and its own network. */
static void stand(struct maq_serve_engine *e, uint32_t first)
{
    const struct maq_tier_options *o = &e->d->options.tiers;
    struct maq_tier_ways *w = e->ways;
    uint32_t node = first / e->d->tiers.devices_per_node;
    e->drive_port = MAQ_WAYS_BEFORE_NODES + 2 * (node < w->nodes ? node : w->nodes - 1);
    e->network_port = MAQ_WAYS_BEFORE_NODES + 2 * (w->nodes + e->replica);
    for (uint32_t i = 0; i < 2; i++) { /* what reads, what writes */
        double drives_bps = (i == 0 ? o->ssd_read_bps : o->ssd_write_bps) * e->d->tiers.nodes;
        if (drives_bps > 0)
            w->net.ports[e->drive_port + i].bps = drives_bps;
        if (e->d->tiers.network_bps > 0)
            w->net.ports[e->network_port + i].bps = e->d->tiers.network_bps;
    }
}

/* All events until now have happened; a transfer that is over by then says when. */
static void advance(struct maq_tier_ways *w, double now_s)
{
    uint32_t user;
    while (w && w->net.next_s <= now_s)
        if (maq_network_step(&w->net, &user))
            w->at[user].done_s = w->net.now_s;
}

static uint32_t begin_shared(struct maq_serve_engine *e, const struct maq_offload_job *job, double bytes)
{
    struct maq_tier_ways *w = e->ways;
    bool reads = job->move == MAQ_MOVE_PROMOTE, ssd = job->tier == MAQ_TIER_SSD;
    advance(w, e->now_s);
    uint32_t slot = w->n_free > 0 ? w->free[--w->n_free] : w->n, side = reads ? 0 : 1;
    if (slot == w->n && !maq__grow((void **)&w->at, &w->size, w->n, sizeof *w->at)) {
        w->failed = true;
        return MAQ_NO_FLOW;
    }
    w->n += slot == w->n;
    const struct maq_flow_begin b = {
        .port = {ssd ? e->drive_port + side : MAQ_WAY_POOL_READ + side, ssd ? MAQ_WAY_OPEN : e->network_port + side},
        .share = {1, 1},
        .most_bps = ssd ? e->d->tiers.ssd_most_bps : (double)INFINITY,
        .begins_s = e->now_s + (ssd ? 0 : e->d->tiers.pool_latency_s),
        .user = slot};
    uint32_t flow = maq_network_begin(&w->net, e->now_s, &b);
    w->at[slot] = (struct maq_shared_move){.done_s = (double)INFINITY, .flow = flow, .live = true};
    if (flow == MAQ_NO_FLOW) {
        w->failed = true;
        return MAQ_NO_FLOW;
    }
    maq_network_give(&w->net, e->now_s, flow, bytes);
    maq_network_close(&w->net, e->now_s, flow);
    return slot;
}

static void end_shared(struct maq_tier_ways *w, uint32_t transfer)
{
    w->at[transfer].live = false;
    if (!maq_slots_push(&w->free, &w->n_free, &w->free_size, transfer))
        w->failed = true;
}

/* Of an engine with tiers. */
static bool has_offload(const struct maq_serve_engine *e)
{
    return e->d->tiers.any && !e->d->tiers.copies && !e->d->tiers.swaps;
}

static struct maq_offload *offload_of(const struct maq_engine_rank *rank)
{
    struct maq_offload *o = rank->sched->ops->offload ? rank->sched->ops->offload(rank->sched) : NULL;
    MAQ_ASSERT(o);
    return o;
}

/* ---- one transfer ---- */

/* Bytes of a job through the busiest of what it goes through, and over all. */
struct job_bytes {
    double busiest, all;
};

static struct job_bytes bytes_of(const struct maq_serve_engine *e, const struct maq_offload_job *job)
{
    const struct maq_deployment_tiers *t = &e->d->tiers;
    if (job->move == MAQ_MOVE_LOAD)
        return (struct job_bytes){job->n * t->link_bytes, job->n * t->loaded_bytes};
    return (struct job_bytes){job->n * (job->move == MAQ_MOVE_STORE ? t->link_bytes : t->chunk_bytes),
                              job->n * t->chunk_bytes};
}

/* Who waits for a load or a promotion does so from the first of them on. */
static void note_wait(struct maq_serve_engine *e, struct maq_engine_rank *rank, const struct maq_offload *o,
                      const struct maq_offload_job *job)
{
    if (job->move != MAQ_MOVE_LOAD && job->move != MAQ_MOVE_PROMOTE)
        return;
    struct maq_engine_slot *slot = &rank->slots[o->users[job->user].owner];
    if (slot->waits_since_s < 0)
        slot->waits_since_s = e->now_s;
    for (int i = 0; i < MAQ_TIER_COUNT && job->move == MAQ_MOVE_LOAD; i++)
        slot->loaded[i] = job->tokens[i];
}

static void begin(struct maq_serve_engine *e, struct maq_engine_rank *rank, uint32_t job, double from_s)
{
    struct maq_rank_tiers *t = &rank->tiers;
    struct maq_offload *o = offload_of(rank);
    const struct maq_offload_job *j = &o->jobs[job];
    const struct job_bytes bytes = bytes_of(e, j);
    struct maq_moving m = {.job = job, .done_s = (double)INFINITY, .transfer = MAQ_NO_FLOW};
    struct maq_tiers_seen *seen = &e->tiers_seen;
    note_wait(e, rank, o, j);
    if (j->move == MAQ_MOVE_LOAD || j->move == MAQ_MOVE_STORE) {
        bool load = j->move == MAQ_MOVE_LOAD;
        double *free_s = load ? &t->load_free_s : &t->store_free_s, takes_s = bytes.busiest / e->d->tiers.link_bps;
        *free_s = (from_s > *free_s ? from_s : *free_s) + takes_s;
        *(load ? &seen->load_busy_s : &seen->store_busy_s) += takes_s;
        m.done_s = *free_s;
        *(load ? &seen->read_bytes[MAQ_TIER_HOST] : &seen->written_bytes[MAQ_TIER_HOST]) += bytes.all;
    } else {
        m.transfer = begin_shared(e, j, bytes.busiest);
        *(j->move == MAQ_MOVE_PROMOTE ? &seen->read_bytes[j->tier] : &seen->written_bytes[j->tier]) += bytes.all;
    }
    if (!maq__grow((void **)&t->moving, &t->size, t->n, sizeof *t->moving)) {
        e->failed = true;
        return;
    }
    t->moving[t->n++] = m;
}

static double done_s(const struct maq_serve_engine *e, const struct maq_moving *m)
{
    return m->transfer == MAQ_NO_FLOW ? m->done_s : e->ways->at[m->transfer].done_s;
}

/* ---- what begins ---- */

static double busy_until(const struct maq_serve_engine *e)
{
    double free_s = e->stage_free_s[e->d->passes.n_stages - 1];
    return free_s > e->now_s ? free_s : e->now_s;
}

static bool is_flushed(const struct maq_offload *o, uint32_t job)
{
    return o->jobs[job].awaited == o->step;
}

void maq_tiers_ask(struct maq_serve_engine *e)
{
    if (e->d->tiers.copies)
        (void)maq_copies_hear(e);
}

double maq_tiers_decided(struct maq_serve_engine *e)
{
    double hold_s = 0;
    if (e->d->tiers.swaps)
        return maq_swaps_decided(e);
    if (e->d->tiers.copies) {
        maq_copies_begun(e);
        return hold_s;
    }
    for (uint32_t r = 0; r < e->n_ranks && e->d->tiers.any; r++) {
        struct maq_engine_rank *rank = &e->ranks[r];
        struct maq_offload *o = offload_of(rank);
        uint32_t kept = 0;
        for (uint32_t i = 0; i < o->n_begun; i++) {
            uint32_t job = o->begun[i];
            if (o->jobs[job].move == MAQ_MOVE_STORE && !is_flushed(o, job))
                o->begun[kept++] = job;
            else
                begin(e, rank, job, busy_until(e));
        }
        o->n_begun = kept;
        for (uint32_t i = 0; i < rank->tiers.n && o->n_flush > 0; i++)
            if (is_flushed(o, rank->tiers.moving[i].job) && rank->tiers.moving[i].done_s > hold_s)
                hold_s = rank->tiers.moving[i].done_s;
    }
    return hold_s;
}

/* Stores of what was computed by now. */
static void begin_stores(struct maq_serve_engine *e, struct maq_engine_rank *rank)
{
    struct maq_offload *o = offload_of(rank);
    for (uint32_t i = 0; i < o->n_begun; i++)
        begin(e, rank, o->begun[i], busy_until(e));
    o->n_begun = 0;
}

void maq_tiers_launched(struct maq_serve_engine *e, uint32_t place, double decided_s)
{
    if (!has_offload(e))
        return;
    advance(e->ways, decided_s);
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        struct maq_rank_tiers *t = &e->ranks[r].tiers;
        for (uint32_t i = 0; i < t->n && place != MAQ_TIERS_NONE; i++)
            if (t->moving[i].seen_by == 0 && done_s(e, &t->moving[i]) <= decided_s)
                t->moving[i].seen_by = place + 1;
        begin_stores(e, &e->ranks[r]);
    }
}

/* ---- what is over ---- */

/* Those that `place` has seen, or all that are over where it is MAQ_TIERS_NONE. */
static bool hear(struct maq_serve_engine *e, struct maq_engine_rank *rank, uint32_t place)
{
    struct maq_rank_tiers *t = &rank->tiers;
    uint32_t kept = 0, n = t->n;
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_moving m = t->moving[i];
        bool over = place == MAQ_TIERS_NONE ? done_s(e, &m) <= e->now_s : m.seen_by == place + 1;
        if (!over) {
            t->moving[kept++] = m;
            continue;
        }
        if (m.transfer != MAQ_NO_FLOW)
            end_shared(e->ways, m.transfer);
        rank->sched->ops->moved(rank->sched, m.job);
    }
    t->n = kept;
    begin_stores(e, rank); /* what has come to host memory goes on */
    e->failed |= e->ways && (e->ways->failed || e->ways->net.failed);
    return kept < n;
}

void maq_tiers_ended(struct maq_serve_engine *e, uint32_t place)
{
    if (e->d->tiers.copies)
        maq_copies_begun(e);
    for (uint32_t r = 0; r < e->n_ranks && has_offload(e); r++)
        hear(e, &e->ranks[r], place);
}

bool maq_tiers_idle(struct maq_serve_engine *e)
{
    bool any = false;
    if (!has_offload(e))
        return e->d->tiers.copies && maq_copies_hear(e);
    advance(e->ways, e->now_s);
    for (uint32_t r = 0; r < e->n_ranks; r++)
        any |= hear(e, &e->ranks[r], MAQ_TIERS_NONE);
    return any;
}

double maq_tiers_next_s(struct maq_serve_engine *e)
{
    double next = (double)INFINITY;
    if (e->d->tiers.copies)
        return maq_copies_next_s(e);
    for (uint32_t r = 0; r < e->n_ranks && has_offload(e); r++)
        for (uint32_t i = 0; i < e->ranks[r].tiers.n; i++) {
            double s = done_s(e, &e->ranks[r].tiers.moving[i]);
            s = isinf(s) ? e->ways->net.next_s : s;
            next = s < next ? s : next;
        }
    return next;
}

bool maq_tiers_pending(const struct maq_serve_engine *e)
{
    for (uint32_t r = 0; r < e->n_ranks && e->d->tiers.any; r++)
        for (uint32_t i = 0; i < e->ranks[r].tiers.n; i++)
            if (e->ranks[r].tiers.moving[i].seen_by > 0)
                return true;
    return false;
}

bool maq_tiers_find_in_vain(const struct maq_serve_engine *e, struct maq_tiers_in_vain *out)
{
    for (uint32_t r = 0; r < e->n_ranks && has_offload(e); r++) {
        const struct maq_offload *o = offload_of(&e->ranks[r]);
        if (!o->in_vain)
            continue;
        const struct maq_offload_user *u = &o->users[o->in_vain_user];
        *out = (struct maq_tiers_in_vain){e->ranks[r].slots[u->owner].request, u->n_keys, o->host.capacity};
        return true;
    }
    return false;
}

/* ---- begin and end ---- */

enum maq_status maq_tiers_begin(struct maq_serve_engine *e, struct maq_tier_ways *ways, uint32_t first)
{
    const struct maq_deployment_tiers *t = &e->d->tiers;
    if (t->swaps)
        for (uint32_t r = 0; r < e->n_ranks; r++)
            MAQ_TRY(maq_vllm_set_swap((struct maq_vllm *)e->ranks[r].sched, t->chunks[MAQ_TIER_HOST]));
    if (!has_offload(e)) /* of copies the scheduler has all */
        return MAQ_OK;
    e->ways = ways;
    e->first_device = first;
    if (ways)
        stand(e, first);
    const struct maq_offload_options o = {
        .chunks = {[MAQ_TIER_HOST] = t->chunks[MAQ_TIER_HOST], [MAQ_TIER_SSD] = t->chunks[MAQ_TIER_SSD]},
        .remote = ways && ways->has_pool ? &ways->pool : NULL,
        .policy = e->d->options.tiers.policy,
        .chunk_blocks = e->d->options.tiers.chunk_blocks,
        .prompt_only = e->d->options.tiers.prompt_only};
    for (uint32_t r = 0; r < e->n_ranks; r++)
        MAQ_TRY(maq_vllm_set_tiers((struct maq_vllm *)e->ranks[r].sched, &o));
    return MAQ_OK;
}

/* What was under way of an engine that is gone moves to its end, and nobody hears of it. */
void maq_tiers_fini(struct maq_serve_engine *e)
{
    for (uint32_t r = 0; e->ranks && e->d->tiers.any && r < e->n_ranks; r++) {
        struct maq_scheduler *s = e->ranks[r].sched;
        struct maq_offload *o = s && s->ops->offload ? s->ops->offload(s) : NULL;
        if (o && e->ways)
            maq_offload_lost(o);
        free(e->ranks[r].tiers.moving);
        maq_rank_copies_fini(&e->ranks[r].copies);
    }
}

/* What a rank has given up. */
static void add_evicted(struct maq_tier_result *t, const struct maq_engine_rank *rank,
                        const struct maq_deployment_tiers *d)
{
    if (d->copies) {
        const struct maq_radix_host *h = rank->sched->ops->copies(rank->sched)->host;
        t->of[MAQ_TIER_HOST].evicted += (uint64_t)(h->given_up / d->chunk_tokens);
        t->refused += h->refused;
        return;
    }
    if (d->swaps) {
        const struct maq_swap *w = rank->sched->ops->swap(rank->sched);
        t->of[MAQ_TIER_HOST].evicted += w->lost;
        t->refused += w->refused;
        return;
    }
    const struct maq_offload *o = offload_of(rank);
    t->of[MAQ_TIER_HOST].evicted += o->host.evicted;
    t->of[MAQ_TIER_SSD].evicted += o->ssd.evicted;
    t->refused += o->refused;
}

void maq_tiers_fill(const struct maq_serve_engine *engines, uint32_t n, struct maq_serve_result *out)
{
    struct maq_tier_result *t = &out->tiers;
    double waited = 0;
    for (uint32_t k = 0; k < n; k++) {
        const struct maq_serve_engine *e = &engines[k];
        const struct maq_tiers_seen *seen = &e->tiers_seen;
        const struct maq_deployment_tiers *d = &e->d->tiers;
        if (!d->any)
            continue;
        t->known = true;
        t->chunk_bytes = d->chunk_bytes;
        for (int i = 0; i < MAQ_TIER_COUNT; i++) {
            struct maq_tier_count *c = &t->of[i];
            bool pool = i == MAQ_TIER_REMOTE;
            c->tokens += seen->tokens[i];
            c->read_bytes += seen->read_bytes[i];
            c->written_bytes += seen->written_bytes[i];
            c->peak_bytes += seen->peak[i] * d->chunk_bytes;
            c->mean_bytes += e->now_s > 0 ? seen->area[i] / e->now_s * d->chunk_bytes : 0;
            if (!pool || k == 0)
                t->capacity_bytes[i] += isinf(e->d->options.tiers.bytes[i])
                                            ? (double)INFINITY
                                            : (double)d->chunks[i] * d->chunk_bytes * (pool ? 1 : e->n_ranks);
        }
        t->loaded += seen->loaded;
        waited += seen->wait_s;
        t->stalled_s += seen->stalled_s;
        for (uint32_t r = 0; r < e->n_ranks; r++)
            add_evicted(t, &e->ranks[r], d);
        if (k == 0 && e->ways)
            t->of[MAQ_TIER_REMOTE].evicted = e->ways->pool.evicted;
    }
    t->wait_s = t->loaded > 0 ? waited / t->loaded : 0;
    const struct maq_requests *q = engines[0].clients->requests;
    for (uint32_t i = 0; t->known && i < q->n; i++)
        t->prompt_tokens += q->at[i].prompt;
}
