/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast_forward.c - iterations in which only decode lengths grow, done at once.
 *
 * The scheduler says whether the next ones are (scheduler.h, struct maq_steady_decodes); nobody may come meanwhile, and what is under way has to be such an
 * iteration already. Their times still differ, since keys grow, and each takes of the cache: where there is not enough, it stops before.
 */
#include <math.h>

#include "serve/engine/engine.h"

/* What is under way of a rank is one token of each of those that decode. */
static bool same_in_flight(const struct maq_serve_engine *e, const struct maq_engine_rank *rank)
{
    const struct maq_steady_decodes *s = &rank->steady_decodes;
    for (uint32_t f = 0; f < e->in_flight; f++) {
        const struct maq_iteration *it = &rank->it[(e->first + f) % e->most_in_flight];
        if (it->n != s->n || it->tokens != it->n || it->n_preempted > 0)
            return false;
        for (uint32_t i = 0; i < it->n; i++)
            if (!it->scheduled[i].samples || it->scheduled[i].slot != s->slots[i])
                return false;
    }
    return true;
}

/* Whether all ranks only decode; one that has nobody goes along. */
static bool all_steady(struct maq_serve_engine *e)
{
    bool any = false;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        struct maq_engine_rank *rank = &e->ranks[r];
        if (!rank->sched->ops->steady_decodes(rank->sched, &rank->steady_decodes) || !same_in_flight(e, rank))
            return false;
        any = any || rank->steady_decodes.n > 0;
    }
    return any;
}

/* Sums of keys at each window for one more token of each. */
static void count_keys(struct maq_pass_batch *b, const struct maq_serve_engine *e, const struct maq_engine_rank *rank,
                       int64_t step)
{
    const struct maq_passes *p = &e->d->passes;
    const struct maq_steady_decodes *s = &rank->steady_decodes;
    for (uint32_t w = 0; w < p->n_windows; w++) {
        if (step > 0 && p->windows[w] == 0) {
            b->decode_keys[w] += b->decodes;
            continue;
        }
        b->decode_keys[w] = 0;
        for (uint32_t i = 0; i < s->n; i++)
            b->decode_keys[w] += maq_pass_keys(p, w, rank->sched->ops->computed(rank->sched, s->slots[i]) + step + 1);
    }
}

/* Whether every rank finds room for a further step, and has somebody who does not end with it; then it is taken. */
static bool take_step(struct maq_serve_engine *e, int64_t step, struct maq_scheduler_load *load)
{
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        const struct maq_steady_decodes *s = &e->ranks[r].steady_decodes;
        if (step >= s->most || s->taken[s->phase] > s->free)
            return false;
    }
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        struct maq_steady_decodes *s = &e->ranks[r].steady_decodes;
        s->free -= s->taken[s->phase];
        load->used += s->taken[s->phase];
        s->phase = s->phase + 1 < s->period ? s->phase + 1 : 0;
        count_keys(&e->batches[r], e, &e->ranks[r], step);
    }
    return true;
}

/* Tokens of an iteration that ends: of all that run, each as long after its last as all others. */
static void tokens_of_rank(struct maq_serve_engine *e, struct maq_engine_rank *rank, double client_s, double last_s)
{
    const struct maq_steady_decodes *s = &rank->steady_decodes;
    if (last_s >= 0) {
        maq_latency_add_n(&e->clients->itl, client_s - last_s, s->n);
        return;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        struct maq_engine_slot *r = &rank->slots[s->slots[i]];
        if (!r->sampled)
            e->clients->served[r->request].first_s = client_s;
        else
            maq_latency_add(&e->clients->itl, client_s - r->last_s);
        r->sampled = true;
    }
}

/* The schedulers learn of `steps` iterations, and the requests when their last token came. */
static void catch_up(struct maq_serve_engine *e, uint32_t first, int64_t steps, double last_s)
{
    if (e->in_flight > 0) /* what is under way stands for the last of them, in its place of the ring */
        e->ends_s[first] = e->ends_s[e->first];
    e->first = first;
    e->asked = false;
    for (uint32_t k = 0; k < e->n_ranks; k++) {
        struct maq_engine_rank *rank = &e->ranks[k];
        const struct maq_steady_decodes *s = &rank->steady_decodes;
        for (uint32_t i = 0; i < s->n; i++) {
            struct maq_engine_slot *r = &rank->slots[s->slots[i]];
            r->last_s = e->clients->served[r->request].last_s = last_s;
        }
        if (s->n > 0)
            rank->sched->ops->skip(rank->sched, s, steps);
    }
}

/* Whether the next iterations are those of steady decodes, in each rank's `steady_decodes` and in the batches. */
static bool begin_steady_decodes(struct maq_serve_engine *e)
{
    if (e->d->passes.n_stages > 1 || e->in_flight + 1 != e->most_in_flight || maq_tiers_pending(e) || !all_steady(e))
        return false;
    for (uint32_t r = 0; r < e->n_ranks; r++)
        e->batches[r] = maq_batch_decodes(e->d, e->ranks[r].steady_decodes.n);
    return true;
}

/* Whether nothing but its decodes is in an iteration of an engine of one rank and one stage. */
static bool decodes_alone(const struct maq_serve_engine *e)
{
    const struct maq_deployment *d = e->d;
    return e->n_ranks == 1 && d->passes.n_stages == 1 && !d->tiers.any && !d->options.lora.enabled && !d->afd &&
           d->options.speculation.method == MAQ_DRAFT_NONE && !d->options.watch && e->hold_s <= 0 && e->encode_s <= 0 &&
           d->passes.n_windows == 1 && d->passes.windows[0] == 0 && maq_iteration_time_is_kept(d, e->batches);
}

/* What iterations change of an engine whose decodes are alone. */
struct counters {
    double now_s, free_s, kv_area_s, kv_since_s, kv_peak;
    struct maq_stage_times times;
};

static struct counters counters_of(const struct maq_serve_engine *e)
{
    return (struct counters){.now_s = e->now_s,
                             .free_s = e->stage_free_s[0],
                             .kv_area_s = e->kv_area_s,
                             .kv_since_s = e->kv_since_s,
                             .kv_peak = e->kv_peak,
                             .times = e->times};
}

static void put_back(struct maq_serve_engine *e, const struct counters *c, const struct maq_engine_shape *shape,
                     int64_t steps)
{
    e->now_s = c->now_s;
    e->stage_free_s[0] = c->free_s;
    e->kv_area_s = c->kv_area_s;
    e->kv_since_s = c->kv_since_s;
    e->kv_peak = c->kv_peak;
    e->times = c->times;
    e->iterations += (uint64_t)steps;
    e->batch_requests += (uint64_t)steps * shape->requests;
    e->batch_tokens += (uint64_t)(steps * shape->tokens);
}

/*
 * Steps behind the first of an engine whose decodes are alone: what maq_engine_start(), maq_engine_end() and maq_engine_count_kv() do, in
 * their order and to the bit, with what they change at hand. *client_s: when clients had the tokens of the last. How many there are then.
 */
static int64_t decode_on(struct maq_serve_engine *e, const struct maq_engine_shape *shape, double until,
                         struct maq_scheduler_load *load, double *client_s)
{
    struct maq_deployment *d = e->d;
    struct maq_pass_batch *batch = &e->batches[0];
    struct maq_steady_decodes *s = &e->ranks[0].steady_decodes;
    const uint32_t ring = e->most_in_flight, period = s->period;
    const double written_s = e->respond_s + e->stream_s * s->n, host_s = shape->host_s, known_s = e->known_s,
                 all = load->all > 0 ? (double)load->all : HUGE_VAL;
    struct maq_latency_run gaps = maq_latency_run_of(&e->clients->itl, s->n);
    struct counters c = counters_of(e);
    uint32_t oldest = e->first, place = (e->first + e->in_flight) % ring, phase = s->phase;
    double client = *client_s, share = (double)load->used / all;
    int64_t step = 1, most = s->most, free = s->free;
    for (; c.now_s < until && step < most && s->taken[phase] <= free; step++) {
        if (s->taken[phase] > 0) {
            free -= s->taken[phase];
            load->used += s->taken[phase];
            share = (double)load->used / all;
        }
        phase = phase + 1 < period ? phase + 1 : 0;
        batch->decode_keys[0] += batch->decodes;
        const struct maq_iteration_time *kept = maq_iteration_time_place(d, 0, batch->decodes, batch->decode_keys[0]);
        const struct maq_stage_times *times = maq_iteration_time_is(kept, batch, batch->decode_keys, 1, shape->mode)
                                                  ? &kept->times
                                                  : maq_iteration_times_of(d, 0, batch, shape->mode);
        double ready = c.now_s + host_s, at = ready > known_s ? ready : known_s;
        if (ready > c.free_s)
            c.times.s[MAQ_SERVE_HOST] += ready - (c.free_s > c.now_s ? c.free_s : c.now_s);
        maq_stage_times_add(&c.times, times);
        c.free_s = (at > c.free_s ? at : c.free_s) + times->s[MAQ_STAGE_ALL];
        e->ends_s[place] = c.free_s;
        double end = e->ends_s[oldest], before = client;
        place = place + 1 < ring ? place + 1 : 0;
        oldest = oldest + 1 < ring ? oldest + 1 : 0;
        c.now_s = end > ready ? end : ready;
        client = end + written_s;
        maq_latency_run_add(&gaps, client - before);
        c.kv_area_s += share * (c.now_s - c.kv_since_s);
        c.kv_since_s = c.now_s;
        c.kv_peak = share > c.kv_peak ? share : c.kv_peak;
    }
    maq_latency_run_end(&gaps);
    s->phase = phase;
    s->free = free;
    e->first = oldest;
    *client_s = client;
    put_back(e, &c, shape, step - 1);
    return step;
}

bool maq_engine_fast_forward(struct maq_serve_engine *e, double until_s)
{
    const uint32_t first = e->first;
    if (!begin_steady_decodes(e))
        return false;
    double last_s = -1, next_s = maq_engine_next_arrival(e), until = next_s < until_s ? next_s : until_s,
           moved_s = maq_tiers_next_s(e); /* an iteration that is decided then or later would see it */
    until = moved_s < until ? moved_s : until;
    struct maq_scheduler_load load = maq_engine_load(e);
    const struct maq_engine_shape shape = maq_engine_shape_of(e);
    uint32_t requests = 0;
    for (uint32_t r = 0; r < e->n_ranks; r++)
        requests += e->ranks[r].steady_decodes.n;
    int64_t step = 0;
    for (; e->now_s < until && take_step(e, step, &load); step++) {
        if (step == 0)
            maq_adapters_steady_decodes(e);
        maq_engine_start(e, &shape, load);
        double client_s = maq_engine_written_s(e, maq_engine_end(e), requests);
        for (uint32_t r = 0; r < e->n_ranks; r++)
            tokens_of_rank(e, &e->ranks[r], client_s, last_s);
        last_s = client_s;
        maq_engine_count_kv(e, load);
        if (step == 0 && decodes_alone(e))
            step = decode_on(e, &shape, until, &load, &last_s) - 1;
    }
    if (step > 0) {
        maq_engine_count_launches(e, step, shape.prompts > 0);
        maq_attention_dp_skip(e, step);
        catch_up(e, first, step, last_s);
    }
    return step > 0;
}

/* Iterations that all ranks have before one of them has a request that ends, or that has to give way. */
static double sure_steps(const struct maq_serve_engine *e)
{
    double least = (double)INT32_MAX;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        const struct maq_steady_decodes *s = &e->ranks[r].steady_decodes;
        int64_t taken = 0;
        for (uint32_t i = 0; i < s->period; i++)
            taken += s->taken[i];
        int64_t room = taken > 0 ? s->free / taken * s->period : INT32_MAX, n = s->most < room ? s->most : room;
        least = (double)n < least ? (double)n : least;
    }
    return least;
}

double maq_engine_quiet_until_s(struct maq_serve_engine *e)
{
    if (maq_engine_next_arrival(e) < (double)INFINITY || e->d->options.one_by_one || !begin_steady_decodes(e))
        return e->now_s;
    maq_batch_pad(e->d, e->batches);
    return e->now_s + (sure_steps(e) - 1) * maq_batch_least_s(e->d, e->batches);
}
