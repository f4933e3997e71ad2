/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fast_forward.c - iterations in which only decode lengths grow.
 *
 * The conditions: nobody waits and nobody comes, every running request decodes one token in every iteration, and in that which is under
 * way too. Then the next iterations have the same requests, none of which ends before `most` of them. Their times still differ, since
 * keys grow, and each takes blocks when its last one is full: where there are not enough, it stops before.
 *
 * What one by one does in between and nobody sees is left out: which of the free blocks a request takes, and when its full blocks are
 * offered to the prefix cache, which is looked up only when somebody comes.
 */
#include "base/bug.h"
#include "serve/engine/engine.h"

/* Iterations that all running requests have before one of them samples its last token. */
static int64_t before_end(const struct maq_vllm *s)
{
    int64_t most = INT64_MAX;
    for (uint32_t i = 0; i < s->n_running; i++) {
        const struct maq_vllm_request *r = &s->at[s->running[i]];
        int64_t left = r->most - (r->tokens - r->prompt) - r->placeholders;
        if (r->partial || r->stale > 0 || r->drafts > 0 || r->tokens + r->placeholders - r->computed != 1)
            return 0;
        most = left - 1 < most ? left - 1 : most;
    }
    return most;
}

/* What is under way is one token of each of those that run. */
static bool same_in_flight(const struct maq_serve_engine *e)
{
    for (uint32_t f = 0; f < e->in_flight; f++) {
        const struct maq_iteration *it = &e->it[(e->first + f) % e->most_in_flight];
        if (it->n != e->sched.n_running || it->tokens != it->n || it->n_preempted > 0)
            return false;
        for (uint32_t i = 0; i < it->n; i++)
            if (!it->scheduled[i].samples || it->scheduled[i].slot != e->sched.running[i])
                return false;
    }
    return true;
}

static bool may_fast_forward(const struct maq_serve_engine *e)
{
    const struct maq_vllm *s = &e->sched;
    if (s->waiting.n > 0 || s->n_running == 0 || e->d->passes.n_stages > 1 || e->in_flight + 1 != e->most_in_flight ||
        s->kv.n_groups != 1 || s->kv.group[0].kind != MAQ_KV_FULL ||
        s->n_running > (uint32_t)s->knobs.max_num_batched_tokens || s->knobs.spec_tokens > 0)
        return false;
    return same_in_flight(e);
}

/* Sums of keys at each window for one more token of each. */
static void count_keys(struct maq_pass_batch *b, const struct maq_serve_engine *e, int64_t step)
{
    const struct maq_passes *p = &e->d->passes;
    for (uint32_t w = 0; w < p->n_windows; w++) {
        if (step > 0 && p->windows[w] == 0) {
            b->decode_keys[w] += b->decodes;
            continue;
        }
        b->decode_keys[w] = 0;
        for (uint32_t i = 0; i < e->sched.n_running; i++)
            b->decode_keys[w] += maq_pass_keys(p, w, e->sched.at[e->sched.running[i]].computed + step + 1);
    }
}

/* Requests by how full their last block is: how many take a block in the iteration in which it is full. */
static void count_phases(uint32_t *phase, const struct maq_vllm *s, uint32_t block)
{
    MAQ_ASSERT(block > 0);
    for (uint32_t i = 0; i < block; i++)
        phase[i] = 0;
    for (uint32_t i = 0; i < s->n_running; i++) {
        const struct maq_vllm_request *r = &s->at[s->running[i]];
        int64_t held = (int64_t)r->kv.table[0].n * block,
                ahead = held - r->computed; /* iterations without a new block */
        phase[ahead % block]++;
    }
}

static bool take_blocks(struct maq_vllm *s, int64_t steps)
{
    int32_t block = s->kv.group[0].block_size;
    for (uint32_t i = 0; i < s->n_running; i++) {
        struct maq_vllm_request *r = &s->at[s->running[i]];
        r->computed += steps;
        r->tokens += steps;
        if (!maq_kv_extend(&s->kv, &r->kv, (r->computed + block - 1) / block))
            return false;
    }
    return true;
}

/* Tokens of an iteration that ends: of all that run, each as long after its last as all others. */
static void tokens_of_all(struct maq_serve_engine *e, double client_s, double *last_s)
{
    const struct maq_vllm *s = &e->sched;
    if (*last_s >= 0) {
        maq_latency_add_n(&e->itl, client_s - *last_s, s->n_running);
    } else {
        for (uint32_t i = 0; i < s->n_running; i++) {
            struct maq_engine_slot *r = &e->slots[s->running[i]];
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
    struct maq_vllm *s = &e->sched;
    int64_t most = may_fast_forward(e) ? before_end(s) : 0, step = 0;
    const uint32_t first = e->first;
    uint32_t block = most > 1 ? (uint32_t)s->kv.group[0].block_size : 1, phases[256], free = s->kv.pool.n_free;
    if (most < 2 || block > 256)
        return false;
    double last_s = -1, used = (double)s->kv.pool.n - 1 - free, until = maq_engine_next_arrival(e);
    struct maq_pass_batch b = maq_batch_decodes(e->d, s->n_running);
    count_phases(phases, s, block);
    for (; step < most && e->now_s < until && phases[step % block] <= free; step++) {
        free -= phases[step % block];
        used += phases[step % block];
        count_keys(&b, e, step);
        maq_engine_start(e, &b, s->n_running, used);
        tokens_of_all(e, maq_engine_end(e) + e->respond_s, &last_s);
        maq_engine_count_kv(e, used);
    }
    if (step == 0)
        return false;
    if (e->in_flight > 0) /* what is under way stands for the last of them, in its place of the ring */
        e->ends_s[first] = e->ends_s[e->first];
    e->first = first;
    for (uint32_t i = 0; i < s->n_running; i++) {
        struct maq_engine_slot *r = &e->slots[s->running[i]];
        r->last_s = e->out->served[r->request].last_s = last_s;
    }
    if (!take_blocks(s, step))
        s->failed = true;
    return true;
}
