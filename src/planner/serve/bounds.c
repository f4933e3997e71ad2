/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bounds.c - closed forms of candidates.
 *
 * Candidates that differ in the engine's limits alone have the same passes, which are costed once. Of the numbers of requests that may
 * decode in an iteration, the most throughput has the largest whose iteration is no longer than the bound on TPOT: it is found on a
 * geometric scale, and then between two of its marks.
 */
#include "planner/serve/bounds.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/threads.h"
#include "serve/kv/content.h"

#define SCALE 1.3
#define MOST_BATCH 8192u

/* ---- what is asked ---- */

static int by_hash(const void *x, const void *y)
{
    uint64_t a = *(const uint64_t *)x, b = *(const uint64_t *)y;
    return (a > b) - (a < b);
}

static int by_length(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

/* Tokens of prompts that a cache without an end would have, of all requests. */
static bool cached_tokens(double *out, const struct maq_requests *q)
{
    size_t n = 0, k = 0;
    for (uint32_t i = 0; i < q->n; i++)
        n += q->at[i].n_prefix;
    *out = 0;
    if (n == 0)
        return true;
    uint64_t *hashes = maq__calloc(n * sizeof *hashes);
    if (!hashes)
        return false;
    for (uint32_t i = 0; i < q->n; i++) {
        const struct maq_content c = {.prefix = q->at[i].prefix,
                                      .n_prefix = q->at[i].n_prefix,
                                      .unit = q->prefix_unit,
                                      .own = i + 1u,
                                      .adapter = q->at[i].adapter};
        uint64_t parent = 0;
        for (uint32_t u = 0; u < q->at[i].n_prefix; u++)
            hashes[k++] = parent = maq_content_hash(&c, parent, (int64_t)u * q->prefix_unit, (int32_t)q->prefix_unit);
    }
    qsort(hashes, n, sizeof *hashes, by_hash);
    for (size_t i = 1; i < n; i++)
        *out += hashes[i] == hashes[i - 1] ? q->prefix_unit : 0;
    free(hashes);
    return true;
}

static void read_bounds(struct maq_serve_asked *a, const struct maq_slo *slo)
{
    a->ttft_s = a->tpot_s = a->e2el_s = (double)INFINITY;
    for (uint32_t i = 0; i < slo->n; i++) {
        double most = slo->at[i].limit.most_s;
        double *of = slo->at[i].metric == MAQ_SLO_TTFT   ? &a->ttft_s
                     : slo->at[i].metric == MAQ_SLO_TPOT ? &a->tpot_s
                     : slo->at[i].metric == MAQ_SLO_E2EL ? &a->e2el_s
                                                         : NULL;
        if (of)
            *of = fmin(*of, most);
    }
}

bool maq_serve_ask(struct maq_serve_asked *out, const struct maq_requests *q, const struct maq_slo *slo)
{
    int64_t *prompts = maq__calloc(q->n * sizeof *prompts);
    double cached;
    *out = (struct maq_serve_asked){0};
    if (!prompts || !cached_tokens(&cached, q)) {
        free(prompts);
        return false;
    }
    for (uint32_t i = 0; i < q->n; i++) {
        prompts[i] = q->at[i].prompt;
        out->load.prompt += (double)q->at[i].prompt / q->n;
        out->load.output += (double)q->at[i].output / q->n;
    }
    qsort(prompts, q->n, sizeof *prompts, by_length);
    out->load.cached = fmin(cached / q->n, out->load.prompt - 1);
    uint32_t middle = q->n / 2;
    out->typical_prompt = fmin(out->load.prompt, (double)prompts[middle]);
    free(prompts);
    read_bounds(out, slo);
    return true;
}

/* ---- passes ---- */

uint32_t maq_serve_run_of_passes(const struct maq_serve_candidate *c, uint32_t n)
{
    uint32_t i = 1;
    for (; i < n && c[i].job == c[0].job; i++)
        for (int a = MAQ_SERVE_AXIS_DP; a < MAQ_SERVE_AXIS_SEQS; a++)
            if (c[i].at[a] != c[0].at[a])
                return i;
    return i;
}

enum maq_status maq_serve_passes(struct maq_deployment *out, const struct maq_serve_candidate *c, uint32_t n,
                                 struct maq_diag *diag)
{
    struct maq_serve_options o = c[0].options, own;
    for (uint32_t i = 0; i < n; i++) {
        maq_serve_complete(&own, &c[i].options, c[i].job);
        if (own.max_num_batched_tokens > o.max_num_batched_tokens)
            o.max_num_batched_tokens = own.max_num_batched_tokens;
    }
    return maq_deployment_init(out, c[0].job, &o, diag);
}

void maq_serve_same_passes(struct maq_deployment *out, const struct maq_deployment *d,
                           const struct maq_serve_candidate *c)
{
    *out = *d;
    maq_serve_complete(&out->options, &c->options, c->job);
    out->kv_bytes_per_token = 0;
    maq_deployment_memory(out);
}

/* ---- a candidate ---- */

struct limits {
    double tpot_s;
    bool decodes_alone;
    struct maq_steady best, likely; /* the most of each kind that is within it */
};

/* False: more of them are not within it either. */
static bool look(struct limits *l, struct maq_deployment *d, const struct maq_steady_load *load, uint32_t batch,
                 struct maq_pass_batch *ranks)
{
    struct maq_steady at;
    if (l->decodes_alone)
        maq_steady_decode_at(&at, d, load, batch, ranks);
    else
        maq_steady_at(&at, d, load, batch, ranks);
    if (!at.held || at.least_s > l->tpot_s)
        return false;
    if (at.most_per_s > l->best.most_per_s)
        l->best = at;
    if (at.likely_s <= l->tpot_s && at.likely_per_s > l->likely.likely_per_s)
        l->likely = at;
    return true;
}

static struct limits search(struct maq_deployment *d, const struct maq_steady_load *load, double tpot_s,
                            bool decodes_alone, struct maq_pass_batch *ranks)
{
    struct limits l = {.tpot_s = tpot_s, .decodes_alone = decodes_alone};
    uint32_t held = 0, missed = MOST_BATCH;
    for (uint32_t b = 1; b < MOST_BATCH; b = (uint32_t)(b * SCALE) + 1) {
        if (!look(&l, d, load, b, ranks)) {
            missed = b;
            break;
        }
        held = b;
    }
    while (missed - held > 1 + held / 64) {
        uint32_t between = held + (missed - held) / 2;
        if (look(&l, d, load, between, ranks))
            held = between;
        else
            missed = between;
    }
    return l;
}

static void bound(struct maq_serve_candidate *c, struct maq_deployment *d, const struct maq_serve_asked *a,
                  struct maq_pass_batch *ranks)
{
    struct maq_steady alone;
    struct maq_steady_load typical = a->load;
    typical.prompt = a->typical_prompt;
    typical.cached = fmin(a->load.cached, a->typical_prompt - 1);
    c->device_bytes = d->capacity_bytes * d->options.gpu_memory_utilization;
    for (int i = 0; i < MAQ_SERVE_MEM_KV; i++)
        c->needed_bytes += d->memory[i];
    double longest = a->load.prompt + a->load.output;
    if (!d->fits || (double)d->kv_tokens < longest) {
        c->verdict = MAQ_SERVE_VERDICT_UNFIT;
        return;
    }
    maq_steady_at(&alone, d, &a->load, 1, ranks);
    c->first_s = maq_steady_first_s(d, &typical, ranks);
    c->token_s = alone.least_s;
    double tpot_s = fmin(a->tpot_s, (a->e2el_s - c->first_s) / fmax(a->load.output - 1, 1));
    if (c->own_seqs && c->options.afd.ffn_ranks == 0) /* replicas that compute prompts alone have attention and FFN */
        c->prefill_per_s = c->first_s > a->ttft_s ? 0 : maq_steady_prefill_per_s(d, &a->load, ranks);
    if (c->own_tokens)
        c->decode_per_s = search(d, &a->load, tpot_s, true, ranks).best.most_per_s;
    struct limits l = search(d, &a->load, tpot_s, false, ranks);
    c->most_per_s = l.best.most_per_s;
    c->likely_per_s = l.likely.likely_per_s > 0 ? l.likely.likely_per_s : l.best.most_per_s / 2;
    c->stay_s = c->first_s + fmax(l.likely.likely_s, c->token_s) * a->load.output;
    if (c->first_s > a->ttft_s || c->most_per_s <= 0)
        c->verdict = MAQ_SERVE_VERDICT_SLOW;
}

struct work {
    struct maq_serve_candidate *candidates;
    const struct maq_serve_asked *asked;
    uint32_t *first; /* [runs + 1] */
};

static bool bound_run(void *user, uint32_t run, struct maq_arena *scratch)
{
    struct work *w = user;
    struct maq_serve_candidate *c = &w->candidates[w->first[run]];
    uint32_t n = w->first[run + 1] - w->first[run];
    struct maq_deployment d, mine;
    if (!c->job)
        return true;
    enum maq_status status = maq_serve_passes(&d, c, n, NULL);
    struct maq_pass_batch *ranks = MAQ_ARENA_NEW(scratch, struct maq_pass_batch, (size_t)(c->options.dp + 1));
    for (uint32_t i = 0; status == MAQ_OK && ranks && i < n; i++) {
        maq_serve_same_passes(&mine, &d, &c[i]);
        bound(&c[i], &mine, w->asked, ranks);
    }
    for (uint32_t i = 0; status == MAQ_BAD_INPUT && i < n; i++) {
        c[i].verdict = MAQ_SERVE_VERDICT_IMPOSSIBLE;
        c[i].why = "this engine does not serve it";
    }
    maq_deployment_fini(&d);
    return ranks && status != MAQ_NO_MEMORY;
}

enum maq_status maq_serve_bound(struct maq_serve_candidate *candidates, uint32_t n, const struct maq_serve_asked *asked,
                                uint32_t threads, struct maq_diag *diag)
{
    struct work w = {.candidates = candidates, .asked = asked};
    uint32_t runs = 0;
    w.first = maq__calloc(((size_t)n + 1) * sizeof *w.first);
    if (!w.first)
        return maq_no_memory(diag, "candidates");
    for (uint32_t i = 0; i < n; i += maq_serve_run_of_passes(&candidates[i], n - i))
        w.first[runs++] = i;
    w.first[runs] = n;
    bool ok = maq_parallel_run(bound_run, &w, 0, runs, threads);
    free(w.first);
    return ok ? MAQ_OK : maq_no_memory(diag, "candidates");
}
