/* SPDX-License-Identifier: Apache-2.0 */
/* run.c - the event loop: requests arrive, iterations are decided, run and end. */
#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "serve/engine/engine.h"
#include "serve/engine/run.h"
#include "serve/engine/uncertainty.h"

static bool engine_failed(const struct maq_serve_engine *e)
{
    return e->sched->failed || e->batch.failed;
}

/* ---- requests ---- */

void maq_engine_send(struct maq_serve_engine *e, double at_s)
{
    const struct maq_request *r = &e->requests->at[e->sent];
    const struct maq_host_profile *h = &e->d->host;
    double speed = maq_device_host_speed(e->d->device),
           there = at_s + (h->arrive_s + h->arrive_token_s * (double)r->prompt) / speed,
           begins = e->entered_s > there ? e->entered_s : there;
    e->entered_s = begins + h->enter_s / speed;
    e->out->served[e->sent] =
        (struct maq_served){.arrival_s = at_s, .scheduled_s = e->entered_s, .first_s = -1, .last_s = -1};
    e->sent++;
}

/* Until it is scheduled, scheduled_s of a request is when it reaches the scheduler. */
double maq_engine_next_arrival(struct maq_serve_engine *e)
{
    if (e->requests->concurrency == 0 && e->next == e->sent && e->sent < e->requests->n)
        maq_engine_send(e, e->requests->at[e->sent].arrival_s);
    return e->next < e->sent ? e->out->served[e->next].scheduled_s : (double)INFINITY;
}

static bool admit(struct maq_serve_engine *e)
{
    const struct maq_request *r = &e->requests->at[e->next];
    const struct maq_scheduler_request new = {.prompt = r->prompt,
                                              .output = r->output,
                                              .limit = r->max_tokens,
                                              .priority = r->priority,
                                              .arrival = e->out->served[e->next].arrival_s,
                                              .order = e->next,
                                              .content = {r->prefix, r->n_prefix, e->requests->prefix_unit, e->next}};
    uint32_t slot = e->sched->ops->add(e->sched, &new);
    if (slot == MAQ_NO_SLOT)
        return false;
    if (slot >= e->slots_size) {
        uint32_t size = slot * 2 + 64;
        struct maq_engine_slot *p = maq__realloc(e->slots, size * sizeof *p);
        if (!p) {
            e->sched->failed = true;
            return false;
        }
        e->slots = p;
        e->slots_size = size;
    }
    e->slots[slot] = (struct maq_engine_slot){.request = e->next++};
    return true;
}

static enum maq_status loop(struct maq_serve_engine *e)
{
    while (e->out->finished < e->requests->n) {
        while (maq_engine_next_arrival(e) <= e->now_s && admit(e))
            ;
        if (engine_failed(e))
            return MAQ_NO_MEMORY;
        if (!e->d->options.one_by_one && maq_engine_fast_forward(e))
            continue;
        if (e->in_flight < e->most_in_flight) {
            struct maq_iteration *it = &e->it[(e->first + e->in_flight) % e->most_in_flight];
            e->sched->ops->decide(e->sched, it);
            if (it->n > 0) {
                maq_engine_launch(e, it);
                continue;
            }
        }
        if (e->in_flight > 0)
            maq_engine_retire(e);
        else if (maq_engine_next_arrival(e) < (double)INFINITY)
            e->now_s = maq_engine_next_arrival(e);
        else
            return engine_failed(e) ? MAQ_NO_MEMORY : MAQ_LIMIT; /* those that wait never fit */
    }
    return engine_failed(e) ? MAQ_NO_MEMORY : MAQ_OK;
}

/* ---- the whole ---- */

/* With one server, requests that come a tenth faster than they are served leave a tenth of them waiting when the last one arrives. */
#define OVERLOADED_SHARE 0.1
#define OVERLOADED_LEAST 16

/* What waits when the last request arrives; where all arrive at once that is no sign of anything. */
static void count_waiting(struct maq_serve_result *out)
{
    double first_s = (double)INFINITY, last_s = -(double)INFINITY;
    for (uint32_t i = 0; i < out->n_requests; i++) {
        first_s = fmin(first_s, out->served[i].arrival_s);
        last_s = fmax(last_s, out->served[i].arrival_s);
    }
    for (uint32_t i = 0; i < out->n_requests; i++)
        out->waiting += out->served[i].arrival_s < last_s && out->served[i].scheduled_s > last_s;
    out->overloaded =
        first_s < last_s && out->waiting >= OVERLOADED_LEAST && out->waiting > OVERLOADED_SHARE * out->n_requests;
}

static void fill(struct maq_serve_engine *e)
{
    struct maq_serve_result *out = e->out;
    double in = 0, output = 0;
    for (uint32_t i = 0; i < e->requests->n; i++) {
        in += (double)e->requests->at[i].prompt;
        output += (double)e->requests->at[i].output;
    }
    out->n_requests = e->requests->n;
    count_waiting(out);
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
    maq_serve_intervals(out);
    out->prefix_hit_rate = in > 0 ? (double)e->cached / in : 0;
    out->kv_mean = e->now_s > 0 ? e->kv_area_s / e->now_s : 0;
    for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
        out->busy_s += out->part_s[i];
    if (out->iterations > 0) {
        out->mean_batch = (double)e->batch_requests / (double)out->iterations;
        out->mean_tokens = (double)e->batch_tokens / (double)out->iterations;
    }
}

static enum maq_status begin(struct maq_serve_engine *e)
{
    uint32_t stages = e->d->passes.n_stages;
    e->respond_s = e->d->host.respond_s / maq_device_host_speed(e->d->device);
    e->most_in_flight = e->d->host.async && stages == 1 ? 2 : stages;
    MAQ_TRY(maq_engine_scheduler(&e->sched, e->d, e->most_in_flight));
    e->stage_free_s = maq__calloc(stages * sizeof *e->stage_free_s);
    e->stage_start_s = maq__calloc(stages * sizeof *e->stage_start_s);
    e->it = maq__calloc(e->most_in_flight * sizeof *e->it);
    e->ends_s = maq__calloc(e->most_in_flight * sizeof *e->ends_s);
    bool ok = e->stage_free_s && e->stage_start_s && e->it && e->ends_s && maq_latency_init(&e->itl) &&
              maq_latency_init(&e->ttft) && maq_latency_init(&e->tpot) && maq_latency_init(&e->e2el) &&
              maq_latency_init(&e->queue);
    return ok ? MAQ_OK : MAQ_NO_MEMORY;
}

static void end(struct maq_serve_engine *e)
{
    for (uint32_t i = 0; e->it && i < e->most_in_flight; i++)
        maq_iteration_fini(&e->it[i]);
    free(e->it);
    free(e->ends_s);
    if (e->sched)
        e->sched->ops->fini(e->sched);
    maq_batch_fini(&e->batch);
    free(e->slots);
    free(e->stage_free_s);
    free(e->stage_start_s);
    maq_latency_fini(&e->itl);
    maq_latency_fini(&e->ttft);
    maq_latency_fini(&e->tpot);
    maq_latency_fini(&e->e2el);
    maq_latency_fini(&e->queue);
}

enum maq_status maq_serve_engine_run(struct maq_serve_result *out, struct maq_deployment *d,
                                     const struct maq_requests *requests)
{
    struct maq_serve_engine *e = maq__calloc(sizeof *e);
    out->served = maq__calloc((requests->n ? requests->n : 1u) * sizeof *out->served);
    if (!e || !out->served) {
        free(e);
        return MAQ_NO_MEMORY;
    }
    *e = (struct maq_serve_engine){.d = d, .requests = requests, .out = out};
    e->first_arrival_s = requests->n > 0 && requests->concurrency == 0 ? requests->at[0].arrival_s : 0;
    enum maq_status status = begin(e);
    for (uint32_t i = 0; status == MAQ_OK && i < requests->concurrency && i < requests->n; i++)
        maq_engine_send(e, 0);
    if (status == MAQ_OK)
        status = loop(e);
    if (status == MAQ_OK)
        fill(e);
    end(e);
    free(e);
    return status;
}
