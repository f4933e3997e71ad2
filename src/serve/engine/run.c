/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.c - the event loop: requests arrive, iterations are decided, run and end.
 *
 * Up to `most_flying` iterations are under way at once: one, or one more where the next is prepared while one runs, or one for each
 * stage of a pipeline. An iteration starts on a stage when its host is ready, when it has left the stage before, and when the one
 * before it has left this stage. Its tokens are known when it has left the last.
 */
#include <stdlib.h>

#include "base/check.h"
#include "serve/engine/batch.h"
#include "serve/engine/latency.h"
#include "serve/engine/run.h"

#define MOST_FLYING 72u

/* What the engine knows of the request in a slot. */
struct riding {
    uint32_t request;
    bool seen, sampled;
    double last_s; /* its last token */
};

struct engine {
    struct maq_deployment *d;
    struct maq_vllm sched;
    const struct maq_requests *requests;
    struct maq_serve_result *out;
    struct maq_iteration it[MOST_FLYING];
    double ends_s[MOST_FLYING];
    uint32_t first, flying, most_flying; /* ring */
    double now_s, *stage_free_s;
    uint32_t next, arrived; /* request to come; under way */
    struct riding *riding;
    uint32_t riding_size;
    struct maq_batch_writer batch;
    struct maq_latency itl, ttft, tpot, e2el, queue;
    double kv_area_s, kv_since_s, first_arrival_s;
    uint64_t batch_requests, batch_tokens, cached;
};

static bool engine_failed(const struct engine *e)
{
    return e->sched.failed || e->batch.failed;
}

/* ---- requests ---- */

static bool admit(struct engine *e, double arrival_s)
{
    const struct maq_request *r = &e->requests->at[e->next];
    const struct maq_vllm_new new = {.prompt = r->prompt,
                                     .output = r->output,
                                     .priority = r->priority,
                                     .arrival = arrival_s,
                                     .order = e->next,
                                     .content = {r->prefix, r->n_prefix, e->requests->prefix_unit, e->next}};
    uint32_t slot = maq_vllm_add(&e->sched, &new);
    if (slot == MAQ_NO_SLOT)
        return false;
    if (slot >= e->riding_size) {
        uint32_t size = slot * 2 + 64;
        struct riding *p = realloc(e->riding, size * sizeof *p);
        if (!p)
            return false;
        e->riding = p;
        e->riding_size = size;
    }
    e->riding[slot] = (struct riding){.request = e->next};
    e->out->served[e->next] =
        (struct maq_served){.arrival_s = arrival_s, .scheduled_s = -1, .first_s = -1, .last_s = -1};
    e->next++;
    e->arrived++;
    return true;
}

static bool admit_all(struct engine *e)
{
    const struct maq_requests *q = e->requests;
    bool ok = true;
    if (q->concurrency > 0)
        while (ok && e->next < q->n && e->arrived < q->concurrency)
            ok = admit(e, e->now_s);
    else
        while (ok && e->next < q->n && q->at[e->next].arrival_s <= e->now_s)
            ok = admit(e, q->at[e->next].arrival_s);
    return ok;
}

/* ---- iterations ---- */

static void count_kv(struct engine *e)
{
    double all = (double)e->sched.kv.pool.n - 1, used = all - e->sched.kv.pool.n_free, share = all > 0 ? used / all : 0;
    e->kv_area_s += share * (e->now_s - e->kv_since_s);
    e->kv_since_s = e->now_s;
    e->out->kv_peak = share > e->out->kv_peak ? share : e->out->kv_peak;
}

static void launch(struct engine *e, struct maq_iteration *it)
{
    struct maq_deployment *d = e->d;
    struct maq_serve_result *out = e->out;
    struct maq_pass_parts parts;
    maq_batch_of(&e->batch, d, it);
    double ready = e->now_s + maq_batch_host_s(d, it->n), at = ready, transfer = 0;
    if (d->passes.n_stages > 1)
        transfer = maq_batch_transfer_s(d, it->tokens);
    for (uint32_t s = 0; s < d->passes.n_stages; s++) {
        double free = e->stage_free_s[s], runs = maq_batch_stage_s(d, s, &e->batch.batch, &parts);
        if (s == 0 && free > 0 && ready > free && free >= e->now_s - ready + free)
            out->part_s[MAQ_SERVE_HOST] += ready - (free > e->now_s ? free : e->now_s);
        at = (at > free ? at : free) + runs;
        e->stage_free_s[s] = at;
        at += s + 1 < d->passes.n_stages ? transfer : 0;
        for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
            out->part_s[i] += parts.ns[i] * 1e-9;
    }
    e->ends_s[(e->first + e->flying) % MOST_FLYING] = at;
    e->flying++;
    e->now_s = ready;
    out->iterations++;
    out->preemptions += it->n_preempted;
    e->batch_requests += it->n;
    e->batch_tokens += (uint64_t)it->tokens;
    for (uint32_t i = 0; i < it->n_preempted; i++)
        out->served[e->riding[it->preempted[i]].request].preemptions++;
    for (uint32_t i = 0; i < it->n; i++) {
        struct riding *r = &e->riding[it->scheduled[i].slot];
        if (r->seen)
            continue;
        r->seen = true;
        out->served[r->request].scheduled_s = ready;
        out->served[r->request].cached = it->scheduled[i].hit > 0 ? it->scheduled[i].hit : 0;
        e->cached += (uint64_t)out->served[r->request].cached;
    }
}

static void token(struct engine *e, struct riding *r, double at)
{
    struct maq_served *s = &e->out->served[r->request];
    if (!r->sampled) {
        s->first_s = at;
        r->sampled = true;
    } else {
        maq_latency_add(&e->itl, at - r->last_s);
    }
    r->last_s = at;
    s->last_s = at;
}

static void finish(struct engine *e, uint32_t slot)
{
    const struct riding *r = &e->riding[slot];
    const struct maq_served *s = &e->out->served[r->request];
    int64_t tokens = e->requests->at[r->request].output;
    maq_latency_add(&e->ttft, s->first_s - s->arrival_s);
    maq_latency_add(&e->e2el, s->last_s - s->arrival_s);
    maq_latency_add(&e->queue, s->scheduled_s - s->arrival_s);
    if (tokens > 1)
        maq_latency_add(&e->tpot, (s->last_s - s->first_s) / (double)(tokens - 1));
    e->out->finished++;
    e->arrived--;
    e->out->duration_s = s->last_s > e->out->duration_s ? s->last_s : e->out->duration_s;
}

/* The oldest iteration under way has left the last stage. */
static void land(struct engine *e)
{
    struct maq_iteration *it = &e->it[e->first];
    double end = e->ends_s[e->first], client = end + e->d->host.respond_s / maq_device_host_speed(e->d->device);
    e->now_s = end > e->now_s ? end : e->now_s;
    for (uint32_t i = 0; i < it->n; i++)
        if (it->scheduled[i].samples && e->sched.at[it->scheduled[i].slot].rank.order == it->scheduled[i].order)
            token(e, &e->riding[it->scheduled[i].slot], client);
    maq_vllm_end(&e->sched, it, NULL);
    for (uint32_t i = 0; i < it->n_finished; i++)
        finish(e, it->finished[i]);
    e->first = (e->first + 1) % MOST_FLYING;
    e->flying--;
    count_kv(e);
}

static enum maq_status loop(struct engine *e)
{
    while (e->out->finished < e->requests->n) {
        if (!admit_all(e) || engine_failed(e))
            return MAQ_NO_MEMORY;
        if (e->flying < e->most_flying) {
            struct maq_iteration *it = &e->it[(e->first + e->flying) % MOST_FLYING];
            maq_vllm_decide(&e->sched, it);
            if (it->n > 0) {
                launch(e, it);
                continue;
            }
        }
        if (e->flying > 0)
            land(e);
        else if (e->requests->concurrency == 0 && e->next < e->requests->n)
            e->now_s = e->requests->at[e->next].arrival_s > e->now_s ? e->requests->at[e->next].arrival_s : e->now_s;
        else
            return MAQ_LIMIT; /* those that wait never fit */
    }
    return MAQ_OK;
}

/* ---- the whole ---- */

static void fill(struct engine *e)
{
    struct maq_serve_result *out = e->out;
    double in = 0, output = 0;
    for (uint32_t i = 0; i < e->requests->n; i++) {
        in += (double)e->requests->at[i].prompt;
        output += (double)e->requests->at[i].output;
    }
    out->n_requests = e->requests->n;
    out->duration_s -= e->first_arrival_s;
    double t = out->duration_s > 0 ? out->duration_s : 1;
    out->requests_per_s = out->finished / t;
    out->input_tokens_per_s = in / t;
    out->output_tokens_per_s = output / t;
    out->total_tokens_per_s = (in + output) / t;
    out->ttft_s = maq_latency_quantiles(&e->ttft);
    out->tpot_s = maq_latency_quantiles(&e->tpot);
    out->itl_s = maq_latency_quantiles(&e->itl);
    out->e2el_s = maq_latency_quantiles(&e->e2el);
    out->queue_s = maq_latency_quantiles(&e->queue);
    out->prefix_hit_rate = in > 0 ? (double)e->cached / in : 0;
    out->kv_mean = e->now_s > 0 ? e->kv_area_s / e->now_s : 0;
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        out->busy_s += out->part_s[i];
    if (out->iterations > 0) {
        out->mean_batch = (double)e->batch_requests / (double)out->iterations;
        out->mean_tokens = (double)e->batch_tokens / (double)out->iterations;
    }
}

static enum maq_status begin(struct engine *e)
{
    const struct maq_serve_options *o = &e->d->options;
    const struct maq_vllm_knobs knobs = {.max_num_seqs = o->max_num_seqs,
                                         .max_num_batched_tokens = o->max_num_batched_tokens,
                                         .max_model_len = o->max_model_len,
                                         .long_prefill_token_threshold = o->long_prefill_token_threshold,
                                         .chunked_prefill = !o->no_chunked_prefill,
                                         .priority = o->by_priority,
                                         .async = e->d->host.async,
                                         .reserve_full_isl = true};
    uint32_t stages = e->d->passes.n_stages;
    e->most_flying = e->d->host.async && stages == 1 ? 2 : stages;
    const struct maq_kv_options kv = {.groups = e->d->groups,
                                      .n_groups = e->d->n_groups,
                                      .blocks = (uint32_t)e->d->blocks,
                                      .caching = !o->no_prefix_caching,
                                      .max_len = o->max_model_len,
                                      .in_flight = (int64_t)o->max_num_batched_tokens * e->most_flying};
    MAQ_TRY(maq_vllm_init(&e->sched, &knobs, &kv));
    e->stage_free_s = calloc(stages, sizeof *e->stage_free_s);
    bool ok = e->stage_free_s && maq_latency_init(&e->itl) && maq_latency_init(&e->ttft) &&
              maq_latency_init(&e->tpot) && maq_latency_init(&e->e2el) && maq_latency_init(&e->queue);
    return ok ? MAQ_OK : MAQ_NO_MEMORY;
}

static void end(struct engine *e)
{
    for (uint32_t i = 0; i < MOST_FLYING; i++)
        maq_iteration_fini(&e->it[i]);
    maq_vllm_fini(&e->sched);
    maq_batch_fini(&e->batch);
    free(e->riding);
    free(e->stage_free_s);
    maq_latency_fini(&e->itl);
    maq_latency_fini(&e->ttft);
    maq_latency_fini(&e->tpot);
    maq_latency_fini(&e->e2el);
    maq_latency_fini(&e->queue);
}

enum maq_status maq_serve_engine_run(struct maq_serve_result *out, struct maq_deployment *d,
                               const struct maq_requests *requests)
{
    struct engine *e = calloc(1, sizeof *e);
    enum maq_status status = e ? MAQ_OK : MAQ_NO_MEMORY;
    out->served = calloc(requests->n ? requests->n : 1, sizeof *out->served);
    if (!e || !out->served) {
        free(e);
        return MAQ_NO_MEMORY;
    }
    *e = (struct engine){.d = d, .requests = requests, .out = out};
    e->first_arrival_s = requests->n > 0 && requests->concurrency == 0 ? requests->at[0].arrival_s : 0;
    status = begin(e);
    if (status == MAQ_OK)
        status = loop(e);
    if (status == MAQ_OK)
        fill(e);
    end(e);
    free(e);
    return status;
}
