/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vllm_fast_forward.c - steady decodes under vLLM: iterations in which only decode lengths grow, done at once. Last: the table of operations.
 *
 * The conditions: nobody waits, and every running request decodes one token in every iteration. Then the next iterations have the same
 * requests, none of which ends before `most` of them; each takes blocks when its last one is full. What one by one does in between and nobody sees is
 * left out: which of the free blocks a request takes, and that its full blocks are offered to the prefix cache one by one.
 */
#include <stdlib.h>

#include "base/bug.h"
#include "serve/sched/vllm.h"

static struct maq_vllm *of(struct maq_scheduler *s)
{
    return (struct maq_vllm *)s;
}

static const struct maq_vllm *const_of(const struct maq_scheduler *s)
{
    return (const struct maq_vllm *)s;
}

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

static void hold(struct maq_scheduler *base, bool holds)
{
    of(base)->holds = holds;
}

static bool steady_decodes(const struct maq_scheduler *base, struct maq_steady_decodes *out)
{
    const struct maq_vllm *s = const_of(base);
    int64_t quiet = maq_vllm_offload_quiet(s);
    if (s->waiting.n == 0 && s->n_running == 0 && s->n_loaded == 0 && quiet > 0) {
        *out = maq_steady_decodes_of_nobody();
        return true;
    }
    if (s->waiting.n > 0 || s->n_loaded > 0 || s->n_running == 0 || s->kv.n_groups != 1 ||
        s->kv.group[0].kind != MAQ_KV_FULL || s->kv.group[0].block_size > (int32_t)MAQ_STEADY_DECODES_PERIOD ||
        s->n_running > (uint32_t)s->knobs.max_num_batched_tokens || s->knobs.spec_tokens > 0)
        return false;
    out->most = before_end(s);
    out->most = quiet < out->most ? quiet : out->most;
    if (out->most < 2)
        return false;
    out->slots = s->running;
    out->n = s->n_running;
    out->free = s->swap ? maq_block_pool_plain(&s->kv.pool)
                        : s->kv.pool.n_free; /* one that waits for a move is done by itself */
    out->period = (uint32_t)s->kv.group[0].block_size;
    out->phase = 0;
    count_phases(out->taken, s, out->period);
    return true;
}

static void skip(struct maq_scheduler *base, const struct maq_steady_decodes *steady, int64_t steps)
{
    struct maq_vllm *s = of(base);
    int32_t block = s->kv.group[0].block_size;
    for (uint32_t i = 0; i < steady->n; i++) {
        struct maq_vllm_request *r = &s->at[steady->slots[i]];
        r->computed += steps;
        r->tokens += steps;
        if (!maq_kv_extend(&s->kv, &r->kv, (r->computed + block - 1) / block)) {
            s->base.failed = true;
            return;
        }
        /* the last of the iterations offered what it computed, as far as it was known then */
        int64_t known = r->tokens - 1;
        maq_kv_keep(&s->kv, &r->kv, r->computed < known ? r->computed : known, known);
    }
}

/* ---- the operations ---- */

static void fini(struct maq_scheduler *s)
{
    maq_vllm_fini(of(s));
    free(s);
}

static uint32_t add(struct maq_scheduler *s, const struct maq_scheduler_request *request)
{
    return maq_vllm_add(of(s), request);
}

static void give_up(struct maq_scheduler *s, uint32_t slot)
{
    maq_vllm_abort(of(s), slot);
}

static void decide(struct maq_scheduler *s, struct maq_iteration *it)
{
    maq_vllm_decide(of(s), it);
}

static void end(struct maq_scheduler *s, struct maq_iteration *it, const int32_t *sampled)
{
    maq_vllm_end(of(s), it, sampled);
}

static void propose(struct maq_scheduler *s, uint32_t slot, int32_t drafts)
{
    if (!of(s)->knobs.async)
        maq_vllm_propose(of(s), slot, drafts);
}

static struct maq_scheduler_load load(const struct maq_scheduler *base)
{
    const struct maq_vllm *s = const_of(base);
    return (struct maq_scheduler_load){.running = s->n_running,
                                       .waiting = s->waiting.n + s->n_loading,
                                       .aside = s->n_loading,
                                       .used = (int64_t)s->kv.pool.n - 1 - s->kv.pool.n_free,
                                       .all = (int64_t)s->kv.pool.n - 1,
                                       .kept = -1};
}

static void arrived(struct maq_scheduler *s, uint32_t slot)
{
    maq_vllm_arrived(of(s), slot);
}

static void release(struct maq_scheduler *s, uint32_t slot)
{
    maq_vllm_release(of(s), slot);
}

static int64_t cached(struct maq_scheduler *s, const struct maq_content *content, int64_t prompt)
{
    return maq_vllm_cached(of(s), content, prompt);
}

static struct maq_swap *swap(struct maq_scheduler *s)
{
    return of(s)->swap;
}

static struct maq_offload *offload(struct maq_scheduler *s)
{
    return of(s)->offload;
}

static void moved(struct maq_scheduler *s, uint32_t job)
{
    maq_vllm_moved(of(s), job);
}

static int64_t computed(const struct maq_scheduler *s, uint32_t slot)
{
    return const_of(s)->at[slot].computed;
}

const struct maq_scheduler_ops maq_vllm_ops = {.name = "vllm",
                                               .fini = fini,
                                               .add = add,
                                               .abort = give_up,
                                               .decide = decide,
                                               .hold = hold,
                                               .end = end,
                                               .propose = propose,
                                               .load = load,
                                               .arrived = arrived,
                                               .release = release,
                                               .cached = cached,
                                               .computed = computed,
                                               .offload = offload,
                                               .swap = swap,
                                               .moved = moved,
                                               .steady_decodes = steady_decodes,
                                               .skip = skip};
