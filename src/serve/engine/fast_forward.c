/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast_forward.c - iterations in which only decode lengths grow, done at once.
 *
 * The scheduler says whether the next ones are (scheduler.h, struct maq_stretch); nobody may come meanwhile, and what is under way has to be such an
 * iteration already. Their times still differ, since keys grow, and each takes of the cache: where there is not enough, it stops before.
 */
#include "serve/engine/engine.h"

/* What is under way is one token of each of those that decode. */
static bool same_in_flight(const struct maq_serve_engine *e, const struct maq_stretch *s)
{
    for (uint32_t f = 0; f < e->in_flight; f++) {
        const struct maq_iteration *it = &e->it[(e->first + f) % e->most_in_flight];
        if (it->n != s->n || it->tokens != it->n || it->n_preempted > 0)
            return false;
        for (uint32_t i = 0; i < it->n; i++)
            if (!it->scheduled[i].samples || it->scheduled[i].slot != s->slots[i])
                return false;
    }
    return true;
}

/* Sums of keys at each window for one more token of each. */
static void count_keys(struct maq_pass_batch *b, const struct maq_serve_engine *e, const struct maq_stretch *s,
                       int64_t step)
{
    const struct maq_passes *p = &e->d->passes;
    for (uint32_t w = 0; w < p->n_windows; w++) {
        if (step > 0 && p->windows[w] == 0) {
            b->decode_keys[w] += b->decodes;
            continue;
        }
        b->decode_keys[w] = 0;
        for (uint32_t i = 0; i < s->n; i++)
            b->decode_keys[w] += maq_pass_keys(p, w, e->sched->ops->computed(e->sched, s->slots[i]) + step + 1);
    }
}

/* Tokens of an iteration that ends: of all that run, each as long after its last as all others. */
static void tokens_of_all(struct maq_serve_engine *e, const struct maq_stretch *s, double client_s, double *last_s)
{
    if (*last_s >= 0) {
        maq_latency_add_n(&e->itl, client_s - *last_s, s->n);
    } else {
        for (uint32_t i = 0; i < s->n; i++) {
            struct maq_engine_slot *r = &e->slots[s->slots[i]];
            if (!r->sampled)
                e->out->served[r->request].first_s = client_s;
            else
                maq_latency_add(&e->itl, client_s - r->last_s);
            r->sampled = true;
        }
    }
    *last_s = client_s;
}

bool maq_engine_fast_forward(struct maq_serve_engine *e)
{
    struct maq_stretch s;
    const uint32_t first = e->first;
    if (e->d->passes.n_stages > 1 || e->in_flight + 1 != e->most_in_flight || !e->sched->ops->stretch(e->sched, &s) ||
        !same_in_flight(e, &s))
        return false;
    double last_s = -1, until = maq_engine_next_arrival(e);
    struct maq_scheduler_load load = e->sched->ops->load(e->sched);
    struct maq_pass_batch b = maq_batch_decodes(e->d, s.n);
    int64_t step = 0, free = s.free;
    for (; step < s.most && e->now_s < until && s.taken[step % s.period] <= free; step++) {
        free -= s.taken[step % s.period];
        load.used += s.taken[step % s.period];
        count_keys(&b, e, &s, step);
        maq_engine_start(e, &b, s.n, load);
        tokens_of_all(e, &s, maq_engine_end(e) + e->respond_s, &last_s);
        maq_engine_count_kv(e, load);
    }
    if (step == 0)
        return false;
    if (e->in_flight > 0) /* what is under way stands for the last of them, in its place of the ring */
        e->ends_s[first] = e->ends_s[e->first];
    e->first = first;
    for (uint32_t i = 0; i < s.n; i++) {
        struct maq_engine_slot *r = &e->slots[s.slots[i]];
        r->last_s = e->out->served[r->request].last_s = last_s;
    }
    e->sched->ops->skip(e->sched, &s, step);
    return true;
}
