/* SPDX-License-Identifier: Apache-2.0 */
/* attention_dp_balance.c - ranks of attention that wait for each other. */
#include "serve/engine/engine.h"

#define TIMEOUT 50 /* attention_dp_config: timeout_iters, batching_wait_iters */
#define BATCHING 10

static bool is_balanced(const struct maq_serve_engine *e)
{
    const struct maq_serve_options *o = &e->d->options;
    return o->engine == MAQ_ENGINE_TRTLLM && o->attention_dp_balance.enabled && e->n_ranks > 1;
}

static int32_t timeout_of(const struct maq_serve_engine *e)
{
    int32_t n = e->d->options.attention_dp_balance.timeout_iterations;
    return n > 0 ? n : TIMEOUT;
}

static int32_t batching_of(const struct maq_serve_engine *e)
{
    int32_t n = e->d->options.attention_dp_balance.batching_iterations;
    return n > 0 ? n : n < 0 ? 0 : BATCHING;
}

/* Whether nobody begins; counts the iteration. */
static bool holds(struct maq_serve_engine *e, bool all_may_begin, bool all_decode)
{
    struct maq_attention_dp_waits *w = &e->dp_waits;
    if (all_may_begin) {
        w->waited = 0;
        bool waits = all_decode && w->batched < batching_of(e);
        if (all_decode)
            w->batched = waits ? w->batched + 1 : 0;
        return waits;
    }
    bool over = ++w->waited >= timeout_of(e) || !all_decode;
    if (over)
        w->waited = 0;
    return !over;
}

void maq_attention_dp_hold(struct maq_serve_engine *e)
{
    if (!is_balanced(e))
        return;
    bool all_may_begin = true, all_decode = true;
    for (uint32_t r = 0; r < e->n_ranks; r++) {
        struct maq_scheduler_load load = e->ranks[r].sched->ops->load(e->ranks[r].sched);
        all_may_begin &= load.waiting > 0 && load.running < (uint32_t)e->d->options.max_num_seqs;
        all_decode &= load.running > 0;
    }
    bool held = holds(e, all_may_begin, all_decode);
    for (uint32_t r = 0; r < e->n_ranks; r++)
        if (e->ranks[r].sched->ops->hold)
            e->ranks[r].sched->ops->hold(e->ranks[r].sched, held);
}

void maq_attention_dp_skip(struct maq_serve_engine *e, int64_t n)
{
    if (is_balanced(e))
        e->dp_waits.waited = (int32_t)((e->dp_waits.waited + n) % timeout_of(e));
}
