/* SPDX-License-Identifier: Apache-2.0 */
/* iterate.c - one iteration: its times on the stages, the tokens that come out of it, who ends with it. */
#include "serve/engine/engine.h"

void maq_engine_count_kv(struct maq_serve_engine *e, struct maq_scheduler_load load)
{
    double share = load.all > 0 ? (double)load.used / (double)load.all : 0;
    e->kv_area_s += share * (e->now_s - e->kv_since_s);
    e->kv_since_s = e->now_s;
    e->out->kv_peak = share > e->out->kv_peak ? share : e->out->kv_peak;
}

static void show(const struct maq_serve_engine *e, const struct maq_pass_batch *b, uint32_t requests,
                 struct maq_scheduler_load load, double decided_s)
{
    const struct maq_serve_options *o = &e->d->options;
    if (o->watch)
        o->watch(&(struct maq_serve_iteration){.number = e->out->iterations,
                                               .requests = requests,
                                               .prompts = b->n_chunks,
                                               .tokens = b->tokens,
                                               .running = load.running,
                                               .waiting = load.waiting,
                                               .used_blocks = (double)load.used,
                                               .decided_s = decided_s,
                                               .n_stages = e->d->passes.n_stages,
                                               .starts_s = e->stage_start_s,
                                               .ends_s = e->stage_free_s},
                 o->watch_user);
}

void maq_engine_start(struct maq_serve_engine *e, const struct maq_pass_batch *b, uint32_t requests,
                      struct maq_scheduler_load load)
{
    struct maq_deployment *d = e->d;
    struct maq_serve_result *out = e->out;
    struct maq_pass_parts parts;
    double ready = e->now_s + maq_batch_host_s(d, requests), at = ready, transfer = 0, idle_from = e->stage_free_s[0];
    if (d->passes.n_stages > 1)
        transfer = maq_batch_transfer_s(d, b->tokens);
    if (out->iterations > 0 &&
        ready > idle_from) /* the device waits for the host, as long as there was something to do */
        out->part_s[MAQ_SERVE_HOST] += ready - (idle_from > e->now_s ? idle_from : e->now_s);
    for (uint32_t s = 0; s < d->passes.n_stages; s++) {
        double free = e->stage_free_s[s], runs = maq_batch_stage_s(d, s, b, &parts);
        e->stage_start_s[s] = at > free ? at : free;
        at = e->stage_start_s[s] + runs;
        e->stage_free_s[s] = at;
        at += s + 1 < d->passes.n_stages ? transfer : 0;
        for (int i = 0; i < MAQ_SERVE_PART_COUNT; i++)
            out->part_s[i] += parts.ns[i] * 1e-9;
    }
    e->ends_s[(e->first + e->in_flight) % e->most_in_flight] = at;
    e->in_flight++;
    show(e, b, requests, load, e->now_s);
    e->now_s = ready;
    out->iterations++;
    e->batch_requests += requests;
    e->batch_tokens += (uint64_t)b->tokens;
}

double maq_engine_end(struct maq_serve_engine *e)
{
    double end = e->ends_s[e->first];
    e->now_s = end > e->now_s ? end : e->now_s;
    e->first = (e->first + 1) % e->most_in_flight;
    e->in_flight--;
    return end;
}

void maq_engine_launch(struct maq_serve_engine *e, struct maq_iteration *it)
{
    struct maq_serve_result *out = e->out;
    maq_batch_of(&e->batch, e->d, it);
    maq_engine_start(e, &e->batch.batch, it->n, e->sched->ops->load(e->sched));
    out->preemptions += it->n_preempted;
    for (uint32_t i = 0; i < it->n_preempted; i++)
        out->served[e->slots[it->preempted[i]].request].preemptions++;
    for (uint32_t i = 0; i < it->n; i++) {
        struct maq_engine_slot *r = &e->slots[it->scheduled[i].slot];
        if (r->seen)
            continue;
        r->seen = true;
        out->served[r->request].scheduled_s = e->now_s;
        out->served[r->request].cached = it->scheduled[i].hit > 0 ? it->scheduled[i].hit : 0;
        e->cached += (uint64_t)out->served[r->request].cached;
    }
}

static void token(struct maq_serve_engine *e, struct maq_engine_slot *r, double at)
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

static void finish(struct maq_serve_engine *e, uint32_t slot)
{
    const struct maq_engine_slot *r = &e->slots[slot];
    const struct maq_served *s = &e->out->served[r->request];
    int64_t tokens = e->requests->at[r->request].output;
    maq_latency_add(&e->ttft, s->first_s - s->arrival_s);
    maq_latency_add(&e->e2el, s->last_s - s->arrival_s);
    maq_latency_add(&e->queue, s->scheduled_s - s->arrival_s);
    if (tokens > 1)
        maq_latency_add(&e->tpot, (s->last_s - s->first_s) / (double)(tokens - 1));
    e->out->finished++;
    if (e->requests->concurrency > 0 && e->sent < e->requests->n)
        maq_engine_send(e, s->last_s);
    e->out->duration_s = s->last_s > e->out->duration_s ? s->last_s : e->out->duration_s;
}

void maq_engine_retire(struct maq_serve_engine *e)
{
    struct maq_iteration *it = &e->it[e->first];
    double client = maq_engine_end(e) + e->respond_s;
    e->sched->ops->end(e->sched, it, NULL);
    for (uint32_t i = 0; i < it->n; i++)
        if (it->scheduled[i].came > 0)
            token(e, &e->slots[it->scheduled[i].slot], client);
    for (uint32_t i = 0; i < it->n_finished; i++)
        finish(e, it->finished[i]);
    maq_engine_count_kv(e, e->sched->ops->load(e->sched));
}
