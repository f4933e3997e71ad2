/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - what happens to an engine, one event after another: requests arrive, iterations are decided, run and end. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "serve/codes.h"
#include "serve/engine/engine.h"
#include "serve/engine/run.h"

bool maq_engine_failed(const struct maq_serve_engine *e)
{
    bool failed = e->failed || e->clients->failed;
    for (uint32_t r = 0; r < e->n_ranks; r++)
        failed = failed || e->ranks[r].sched->failed || e->ranks[r].batch.failed;
    return failed;
}

/* ---- requests ---- */

/* Room behind the last; those that have entered leave theirs when they are half of it. */
static bool grow_inbox(struct maq_serve_engine *e)
{
    uint32_t n = e->inbox_end - e->inbox_first;
    if (e->inbox_end < e->inbox_size)
        return true;
    if (e->inbox_first > n) {
        for (uint32_t i = 0; i < n; i++)
            e->inbox[i] = e->inbox[e->inbox_first + i];
        e->inbox_first = 0;
        e->inbox_end = n;
        return true;
    }
    return maq__grow((void **)&e->inbox, &e->inbox_size, e->inbox_end, sizeof *e->inbox);
}

/*
 * Where a request follows the end of another, the API server is still writing what the others have of that iteration: half of it in the mean, of all
 * that its share of the clients can have running. Of requests that come by themselves it is not known by then what runs when they do: nothing.
 */
static double writing_s(const struct maq_serve_engine *e)
{
    const struct maq_clients *c = e->clients;
    double most = (double)e->d->options.max_num_seqs * e->n_ranks,
           own_clients = (double)c->requests->concurrency / (c->servers > 0 ? c->servers : 1);
    return e->role == MAQ_ROLE_PREFILL ? 0 : e->stream_s * fmin(own_clients, most) / 2;
}

void maq_engine_send(struct maq_serve_engine *e, uint32_t request)
{
    double at_s = e->clients->served[request].arrival_s;
    e->clients->served[request].replica = e->replica;
    maq_engine_send_at(e, request, at_s, at_s);
}

void maq_engine_send_at(struct maq_serve_engine *e, uint32_t request, double at_s, double ready_s)
{
    const struct maq_request *r = &e->clients->requests->at[request];
    const struct maq_host_profile *h = &e->d->host;
    double speed = maq_device_host_speed(e->d->device), tokens = (double)r->prompt;
    double there = at_s + (h->arrive_s + h->arrive_token_s * tokens) / speed + writing_s(e);
    e->looped_s = fmax(there, e->looped_s) + (h->enter_s + h->enter_token_s * tokens) / speed;
    e->entered_s = fmax(fmax(e->looped_s, e->entered_s) + h->tokenize_s * tokens / speed, ready_s);
    if (!grow_inbox(e)) {
        e->failed = true;
        return;
    }
    e->inbox[e->inbox_end++] = (struct maq_engine_arrival){request, e->entered_s};
    e->outstanding++;
    e->outstanding_tokens += r->prompt + (e->role == MAQ_ROLE_PREFILL ? 0 : r->output);
}

void maq_engine_ended(struct maq_serve_engine *e, uint32_t request)
{
    const struct maq_request *r = &e->clients->requests->at[request];
    e->outstanding--;
    e->outstanding_tokens -= r->prompt + (e->role == MAQ_ROLE_PREFILL ? 0 : r->output);
    if (e->role != MAQ_ROLE_PREFILL)
        maq_clients_finish(e->clients, request);
}

uint64_t maq_engine_order(const struct maq_serve_engine *e, uint32_t request)
{
    return (uint64_t)e->clients->served[request].retries << 32 | request;
}

static double next_request(const struct maq_serve_engine *e)
{
    return e->inbox_first < e->inbox_end ? e->inbox[e->inbox_first].enters_s : (double)INFINITY;
}

static double next_notice(const struct maq_serve_engine *e)
{
    return e->notices_first < e->notices_end ? e->notices[e->notices_first].at_s : (double)INFINITY;
}

double maq_engine_next_arrival(const struct maq_serve_engine *e)
{
    double request = next_request(e), notice = next_notice(e);
    return notice < request ? notice : request;
}

/*
 * New requests are received before each iteration, but under SGLang's --scheduler-recv-interval, which counts the iterations of decodes since
 * they were (managers/scheduler_recv_skipper.py of 0.5.9): who has nothing to do, and who has launched a prefill, receives at once.
 */
static bool skips_receiving(const struct maq_serve_engine *e)
{
    bool idle = e->in_flight == 0 && e->asked;
    return e->recv_skips > 0 && !idle;
}

static double next_received(const struct maq_serve_engine *e)
{
    return skips_receiving(e) ? next_notice(e) : maq_engine_next_arrival(e);
}

void maq_engine_count_launches(struct maq_serve_engine *e, int64_t n, bool prompts)
{
    int64_t interval = e->d->options.sglang.recv_interval;
    if (interval <= 1)
        return;
    int64_t since = (e->recv_skips > 0 ? interval - e->recv_skips : 0) + n;
    e->recv_skips = prompts || since % interval == 0 ? 0 : interval - since % interval;
}

static void admit(struct maq_serve_engine *e)
{
    if (next_notice(e) <= next_request(e) || skips_receiving(e)) {
        maq_engine_take_notice(e);
        return;
    }
    const struct maq_requests *q = e->clients->requests;
    MAQ_ASSERT(e->inbox && e->inbox_first < e->inbox_end);
    const uint32_t request = e->inbox[e->inbox_first++].request;
    const struct maq_request *r = &q->at[request];
    bool prefill = e->role == MAQ_ROLE_PREFILL;
    const struct maq_scheduler_request new = {.prompt = r->prompt,
                                              .output = prefill ? 1 : r->output,
                                              .limit = prefill ? 1 : r->max_tokens,
                                              .part = prefill                           ? MAQ_PART_PREFILL
                                                      : maq_engine_computes(e, request) ? MAQ_PART_WHOLE
                                                                                        : MAQ_PART_DECODE,
                                              .images = maq_deployment_images(e->d, q, r),
                                              .first_known = e->first_known && !maq_engine_computes(e, request),
                                              .priority = r->priority,
                                              .arrival = e->clients->served[request].arrival_s,
                                              .order = maq_engine_order(e, request),
                                              .content = {r->prefix, r->n_prefix, q->prefix_unit, request, r->adapter}};
    struct maq_engine_rank *rank = &e->ranks[maq_engine_choose_rank(e)];
    uint32_t slot = rank->sched->ops->add(rank->sched, &new);
    e->asked = false;
    if (slot == MAQ_NO_SLOT) {
        e->failed = true;
        return;
    }
    if (slot >= rank->slots_size) {
        uint32_t size = slot * 2 + 64;
        struct maq_engine_slot *p = maq__realloc(rank->slots, size * sizeof *p);
        if (!p) {
            e->failed = true;
            return;
        }
        for (uint32_t i = rank->slots_size; i < size; i++)
            p[i].here = false;
        rank->slots = p;
        rank->slots_size = size;
    }
    rank->slots[slot] = (struct maq_engine_slot){.request = request, .here = true, .waits_since_s = -1};
}

/* ---- events ---- */

static void count_preempted(struct maq_serve_engine *e, const struct maq_engine_rank *rank,
                            const struct maq_iteration *it)
{
    e->preemptions += it->n_preempted;
    for (uint32_t i = 0; i < it->n_preempted; i++)
        e->clients->served[rank->slots[it->preempted[i]].request].preemptions++;
}

/* Somebody lost its place, or ended with the token that it came with: others may find room that they did not find in the same decision. */
static bool gave_back(const struct maq_iteration *it)
{
    for (uint32_t i = 0; i < it->n_shown; i++)
        if (it->shown[i].ended)
            return true;
    return it->n_preempted > 0;
}

/* Asks each rank's scheduler once; *room: somebody gave back what it had. False: none of them has anything to do. */
static bool ask(struct maq_serve_engine *e, bool *room)
{
    bool any = false;
    *room = false;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        struct maq_engine_rank *rank = &e->ranks[r];
        struct maq_iteration *it = &rank->it[(e->first + e->in_flight) % e->most_in_flight];
        rank->sched->ops->decide(rank->sched, it);
        count_preempted(e, rank, it);
        if (e->role == MAQ_ROLE_DECODE)
            maq_engine_note_decided(e, r, it);
        any = any || it->n > 0;
        *room = *room || gave_back(it);
    }
    return any;
}

/*
 * Asks the schedulers for another iteration; false: none of them has anything to do. An engine asks its scheduler as long as it has
 * requests; here it is asked again only
 * where that can make a difference. While an iteration is under way that is when it has ended.
 */
static bool decide(struct maq_serve_engine *e)
{
    bool any, room;
    if (e->in_flight == 0) /* until now the cache was as it is */
        maq_engine_count_kv(e, maq_engine_load(e));
    maq_tiers_ask(e);
    maq_attention_dp_hold(e);
    do
        any = ask(e, &room);
    while (!any && room && e->in_flight == 0);
    e->asked = !any;
    e->hold_s = maq_tiers_decided(e);
    if (!any) /* stores go on without an iteration, and what is under way sees what is over */
        maq_tiers_launched(e, e->in_flight > 0 ? (e->first + e->in_flight - 1) % e->most_in_flight : MAQ_TIERS_NONE,
                           e->now_s);
    return any;
}

bool maq_engine_step(struct maq_serve_engine *e, double until_s)
{
    if (e->now_s >= until_s || e->stopped)
        return false;
    while (next_received(e) <= e->now_s) {
        admit(e);
        if (maq_engine_failed(e))
            return false;
    }
    if (!e->d->options.one_by_one && maq_engine_fast_forward(e, until_s))
        return true;
    if (!e->asked && e->in_flight < e->most_in_flight && decide(e)) {
        maq_engine_launch(e);
        return true;
    }
    if (e->in_flight > 0) {
        if (e->ends_s[e->first] >= until_s)
            return false;
        maq_engine_retire(e);
        e->asked = false;
        return true;
    }
    if (maq_tiers_idle(e)) {
        e->asked = false;
        return true;
    }
    double next = fmin(maq_engine_next_arrival(e), maq_tiers_next_s(e));
    if (next >= until_s)
        return false;
    e->now_s = next > e->now_s ? next : e->now_s;
    return true;
}

double maq_engine_next_s(const struct maq_serve_engine *e)
{
    double next = next_received(e);
    if (e->stopped)
        return (double)INFINITY;
    if (next <= e->now_s || (!e->asked && e->in_flight < e->most_in_flight))
        return e->now_s;
    if (e->in_flight == 0)
        return fmax(fmin(next, maq_tiers_next_s((struct maq_serve_engine *)(uintptr_t)e)), e->now_s);
    return e->ends_s[e->first] > e->now_s ? e->ends_s[e->first] : e->now_s;
}

/* ---- begin and end ---- */

void maq_engine_fill(const struct maq_serve_engine *engines, uint32_t n, struct maq_serve_result *out)
{
    uint64_t requests = 0, tokens = 0;
    double kv = 0, gpus_s = 0;
    for (uint32_t r = 0; r < n; r++) {
        const struct maq_serve_engine *e = &engines[r];
        gpus_s += e->d->passes.n_stages; /* all ranks of a stage work alike */
        out->iterations += e->iterations;
        out->preemptions += e->preemptions;
        out->kv_peak = e->kv_peak > out->kv_peak ? e->kv_peak : out->kv_peak;
        kv += e->now_s > 0 ? e->kv_area_s / e->now_s : 0;
        requests += e->batch_requests;
        tokens += e->batch_tokens;
        out->speculated.verifications += e->speculated.verifications;
        out->speculated.drafted += e->speculated.drafted;
        out->speculated.accepted += e->speculated.accepted;
        out->speculated.draft_s += e->speculated.draft_s;
        for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
            out->part_s[i] += e->times.s[i];
        out->matrix_share += e->times.s[MAQ_STAGE_MATRIX];
        out->memory_share += e->times.s[MAQ_STAGE_MEMORY];
        maq_afd_times_add(&out->afd.times, &e->times.afd);
    }
    gpus_s *= out->duration_s;
    out->matrix_share = gpus_s > 0 ? out->matrix_share / gpus_s : 0;
    out->memory_share = gpus_s > 0 ? out->memory_share / gpus_s : 0;
    out->kv_mean = kv / n;
    maq_tiers_fill(engines, n, out);
    maq_adapters_fill(engines, n, out);
    maq_images_fill(engines, n, out);
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        out->busy_s += out->part_s[i];
    out->afd.hiding_micro_batches = maq_afd_hiding(&out->afd.times);
    if (out->iterations > 0) {
        out->mean_batch = (double)requests / (double)out->iterations;
        out->mean_tokens = (double)tokens / (double)out->iterations;
    }
}

enum maq_status maq_engine_init(struct maq_serve_engine *e, struct maq_deployment *d, struct maq_clients *clients,
                                enum maq_role role)
{
    uint32_t stages = d->passes.n_stages, ranks = (uint32_t)d->passes.dp;
    *e = (struct maq_serve_engine){.d = d, .clients = clients, .role = (uint8_t)role};
    double speed = maq_device_host_speed(d->device);
    e->respond_s = d->host.respond_s / speed;
    e->stream_s = d->host.stream_s / speed;
    e->most_in_flight = stages + d->host.async;
    e->stage_free_s = maq__calloc(stages * sizeof *e->stage_free_s);
    e->stage_start_s = maq__calloc(stages * sizeof *e->stage_start_s);
    e->ends_s = maq__calloc(e->most_in_flight * sizeof *e->ends_s);
    e->ranks = maq__calloc(ranks * sizeof *e->ranks);
    e->batches = maq__calloc(ranks * sizeof *e->batches);
    e->drafts = maq__calloc(ranks * sizeof *e->drafts);
    if (!e->stage_free_s || !e->stage_start_s || !e->ends_s || !e->ranks || !e->batches || !e->drafts ||
        !maq_iteration_times_init(d, clients->requests->n))
        return MAQ_NO_MEMORY;
    for (uint32_t r = 0; r < ranks; r++) {
        MAQ_TRY(maq_engine_scheduler(&e->ranks[r].sched, d, e->most_in_flight, role));
        e->ranks[r].it = maq__calloc(e->most_in_flight * sizeof *e->ranks[r].it);
        if (!e->ranks[r].it)
            return MAQ_NO_MEMORY;
        e->n_ranks = r + 1;
    }
    return MAQ_OK;
}

void maq_engine_fini(struct maq_serve_engine *e)
{
    maq_tiers_fini(e);
    for (uint32_t r = 0; e->ranks && r < (uint32_t)e->d->passes.dp; r++) {
        struct maq_engine_rank *rank = &e->ranks[r];
        for (uint32_t i = 0; rank->it && i < e->most_in_flight; i++)
            maq_iteration_fini(&rank->it[i]);
        free(rank->it);
        if (rank->sched)
            rank->sched->ops->fini(rank->sched);
        maq_batch_fini(&rank->batch);
        maq_adapters_fini(&rank->adapters);
        maq_compiled_lengths_fini(&rank->compiled);
        free(rank->slots);
        free(rank->verdicts);
    }
    free(e->ranks);
    free(e->batches);
    free(e->drafts);
    free(e->ends_s);
    free(e->stage_free_s);
    free(e->stage_start_s);
    free(e->inbox);
    free(e->notes);
    free(e->notices);
    free(e->image_chunks);
}

enum maq_status maq_engine_restart(struct maq_serve_engine *e, double at_s)
{
    const struct maq_serve_engine was = *e;
    maq_engine_fini(e);
    enum maq_status status = maq_engine_init(e, was.d, was.clients, (enum maq_role)was.role);
    e->times = was.times;
    e->kv_area_s = was.kv_area_s;
    e->kv_peak = was.kv_peak;
    e->iterations = was.iterations;
    e->preemptions = was.preemptions;
    e->batch_requests = was.batch_requests;
    e->batch_tokens = was.batch_tokens;
    e->speculated = was.speculated;
    e->tiers_seen = was.tiers_seen;
    e->adapters_seen = was.adapters_seen;
    e->encoded = was.encoded;
    e->replica = was.replica;
    e->handed = was.handed;
    e->first_known = was.first_known;
    if (status == MAQ_OK)
        status = maq_tiers_begin(e, was.ways, was.first_device);
    e->weight = was.weight;
    e->asked = true;
    e->now_s = e->kv_since_s = at_s;
    for (uint32_t s = 0; status == MAQ_OK && s < was.d->passes.n_stages; s++)
        e->stage_free_s[s] = at_s;
    return status;
}

/* ---- one engine alone ---- */

/* Nobody decides where a request goes, so it may be on its way before it is sent: all that have been by now, and the next one. */
static enum maq_status loop(struct maq_serve_engine *e, struct maq_clients *c)
{
    while (maq_clients_go_on(c)) {
        while (maq_clients_next_s(c) <= e->now_s || (maq_clients_next_s(c) < (double)INFINITY &&
                                                     (c->requests->concurrency > 0 || e->inbox_first == e->inbox_end)))
            maq_engine_send(e, maq_clients_send(c));
        bool moved = !maq_engine_failed(e) && maq_engine_step(e, (double)INFINITY);
        if (maq_engine_failed(e))
            return MAQ_NO_MEMORY;
        if (!moved && e->inbox_first == e->inbox_end)
            return MAQ_LIMIT; /* those that wait do so for ever */
    }
    return MAQ_OK;
}

enum maq_status maq_serve_engine_run(struct maq_serve_result *out, struct maq_deployment *d,
                                     const struct maq_requests *requests, struct maq_diag *diag)
{
    struct maq_clients clients;
    struct maq_serve_engine e;
    struct maq_tier_ways ways = {0};
    bool shares = maq_tier_ways_needed(d);
    out->served = maq__calloc((requests->n ? requests->n : 1u) * sizeof *out->served);
    bool ok = maq_clients_init(&clients, requests, out->served) && out->served;
    clients.stop = d->options.stop;
    enum maq_status status = maq_engine_init(&e, d, &clients, MAQ_ROLE_BOTH);
    if (!ok || (shares && !maq_tier_ways_init(&ways, d, 1, 1)))
        status = MAQ_NO_MEMORY;
    if (status == MAQ_OK)
        status = maq_tiers_begin(&e, shares ? &ways : NULL, 0);
    if (status == MAQ_OK)
        status = loop(&e, &clients);
    if (status == MAQ_LIMIT)
        status = maq_engine_starved(&e, 1, diag);
    if (status == MAQ_OK && maq_clients_stopped(&clients))
        status =
            maq_diag_fail(MAQ_NO, diag, MAQ_CODE_SERVE_STOPPED, (struct maq_span){0}, NULL, MAQ_SERVE_STOPPED_TEXT);
    if (status == MAQ_OK) {
        maq_clients_fill(&clients, out);
        maq_engine_fill(&e, 1, out);
    }
    maq_engine_fini(&e);
    maq_tier_ways_fini(&ways);
    maq_clients_fini(&clients);
    return status;
}
