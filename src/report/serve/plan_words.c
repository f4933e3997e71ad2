/* SPDX-License-Identifier: Apache-2.0 */
/* plan_words.c - candidates, and what became of them, in words. */
#include "report/serve/plan_words.h"

#include <stdlib.h>

#include "base/alloc.h"
#include "base/text.h"
#include "base/units.h"

/* Whether an axis has more than one value among the candidates. */
static bool varies(const struct maq_serve_search_result *r, enum maq_serve_axis axis)
{
    for (uint32_t i = 1; i < r->n; i++)
        if (r->candidates[i].job && r->candidates[0].job && r->candidates[i].at[axis] != r->candidates[0].at[axis])
            return true;
    return false;
}

void maq_words_cut(struct maq_buf *b, const struct maq_serve_candidate *c)
{
    maq_buf_addf(b, "tp%d", c->at[MAQ_SERVE_AXIS_TP]);
    if (c->at[MAQ_SERVE_AXIS_PP] > 1)
        maq_buf_addf(b, " pp%d", c->at[MAQ_SERVE_AXIS_PP]);
    if (c->options.dp > 1)
        maq_buf_addf(b, " dp%d", c->options.dp);
    if (c->options.afd.ffn_ranks > 0)
        maq_buf_addf(b, " ffn%d", c->options.afd.ffn_ranks);
    if (c->options.ep > 1)
        maq_buf_addf(b, " ep%d", c->options.ep);
    if (c->options.afd.micro_batches > 0)
        maq_buf_addf(b, " mb%d", c->options.afd.micro_batches);
}

static bool has_several_groups(const struct maq_serve_search_result *r)
{
    return r->n > 0 && r->candidates[r->n - 1].group > 0;
}

void maq_words_candidate(struct maq_buf *b, const struct maq_serve_search_result *r,
                         const struct maq_serve_candidate *c)
{
    const struct maq_serve_options *o = &c->options;
    maq_words_cut(b, c);
    if (c->job && has_several_groups(r))
        maq_buf_addf(b, " on %s", c->job->cluster.groups[0].device.name);
    if (varies(r, MAQ_SERVE_AXIS_ENGINE))
        maq_buf_addf(b, ", %s", maq_engine_name(o->engine));
    if (varies(r, MAQ_SERVE_AXIS_WEIGHTS))
        maq_buf_addf(b, ", %s", maq_weights_name(o->weights));
    if (varies(r, MAQ_SERVE_AXIS_KV))
        maq_buf_addf(b, ", KV cache %s", o->kv_fp8 ? "fp8" : "16 bits");
    if (c->own_limits)
        return;
    if (o->max_num_seqs > 0)
        maq_buf_addf(b, ", %d requests", o->max_num_seqs);
    if (o->max_num_batched_tokens > 0)
        maq_buf_addf(b, ", %d tokens", o->max_num_batched_tokens);
}

void maq_words_slo(struct maq_buf *b, const struct maq_slo *slo)
{
    for (uint32_t i = 0; i < slo->n; i++) {
        char time[64];
        maq_buf_addf(b, "%s%s_%s %s %s", i > 0 ? ", " : "", maq_slo_metric_name(slo->at[i].metric),
                     maq_slo_statistic_name(slo->at[i].statistic), slo->at[i].limit.inclusive ? "<=" : "<",
                     maq_quantity_format(time, slo->at[i].limit.most_s, MAQ_DIM_TIME));
    }
}

/* The bounds that were missed, by how much. */
static void add_missed(struct maq_buf *b, const struct maq_serve_candidate *c)
{
    const struct maq_slo_outcome *o = &c->missed;
    bool first = true;
    for (uint32_t i = 0; i < o->slo.n; i++) {
        if (o->met[i])
            continue;
        maq_buf_addf(b, "%s%s_%s", first ? "misses " : " and ", maq_slo_metric_name(o->slo.at[i].metric),
                     maq_slo_statistic_name(o->slo.at[i].statistic));
        first = false;
    }
    if (first)
        maq_buf_adds(b, c->missed_overloaded ? "requests come faster than they are served" : "misses a bound");
}

void maq_words_verdict(struct maq_buf *b, const struct maq_serve_candidate *c)
{
    char time[32];
    switch (c->verdict) {
    case MAQ_SERVE_VERDICT_IMPOSSIBLE:
        maq_buf_addf(b, "impossible: %s", c->why);
        break;
    case MAQ_SERVE_VERDICT_UNFIT:
        maq_buf_addf(b, "%.1f GiB and a request in %.1f GiB: does not fit", c->needed_bytes / MAQ_GIB,
                     c->device_bytes / MAQ_GIB);
        break;
    case MAQ_SERVE_VERDICT_SLOW:
        maq_buf_addf(b, "a request alone: first token after %s", maq_format_time(time, c->first_s));
        maq_buf_addf(b, ", then one every %s", maq_format_time(time, c->token_s));
        break;
    case MAQ_SERVE_VERDICT_BOUNDED:
        maq_buf_addf(b, "carries %.3g requests/s on %u GPU%s at the most", c->most_per_s, c->gpus,
                     c->gpus == 1 ? "" : "s");
        break;
    case MAQ_SERVE_VERDICT_MISSED:
        add_missed(b, c);
        maq_buf_addf(b, " at %.3g requests/s on %u GPU%s", c->missed_rate, c->missed_replicas * c->gpus,
                     c->missed_replicas * c->gpus == 1 ? "" : "s");
        break;
    case MAQ_SERVE_VERDICT_TIED:
        maq_buf_adds(b, "on as many GPUs no further from its bounds, by the first requests");
        break;
    case MAQ_SERVE_VERDICT_BEST:
        maq_buf_adds(b, "best");
        break;
    case MAQ_SERVE_VERDICT_OPEN:
    case MAQ_SERVE_VERDICT_BEATEN:
    case MAQ_SERVE_VERDICT_COUNT:
        break;
    }
}

/* ---- a line for each cut ---- */

static bool same_cut(const struct maq_serve_candidate *a, const struct maq_serve_candidate *b)
{
    for (int axis = 0; axis < MAQ_SERVE_AXIS_SEQS; axis++)
        if (a->at[axis] != b->at[axis])
            return false;
    return a->group == b->group;
}

/* How far it came: less is further. Requests a second of a GPU, or with a rate fewer GPUs. */
static int further(const struct maq_serve_candidate *a, const struct maq_serve_candidate *b)
{
    static const int rank[MAQ_SERVE_VERDICT_COUNT] = {
        [MAQ_SERVE_VERDICT_BEST] = 0,   [MAQ_SERVE_VERDICT_BEATEN] = 1,  [MAQ_SERVE_VERDICT_TIED] = 2,
        [MAQ_SERVE_VERDICT_MISSED] = 3, [MAQ_SERVE_VERDICT_BOUNDED] = 4, [MAQ_SERVE_VERDICT_OPEN] = 5,
        [MAQ_SERVE_VERDICT_SLOW] = 6,   [MAQ_SERVE_VERDICT_UNFIT] = 7,   [MAQ_SERVE_VERDICT_IMPOSSIBLE] = 8};
    if (rank[a->verdict] != rank[b->verdict])
        return rank[a->verdict] < rank[b->verdict] ? -1 : 1;
    double x = a->rate / (a->with_spares * a->gpus + 1e-9), y = b->rate / (b->with_spares * b->gpus + 1e-9);
    if (x < y || x > y)
        return x > y ? -1 : 1;
    x = a->most_per_s / a->gpus;
    y = b->most_per_s / b->gpus;
    return x > y ? -1 : x < y ? 1 : 0;
}

uint32_t *maq_serve_cuts(uint32_t *n, const struct maq_serve_search_result *r)
{
    uint32_t *list = maq__calloc((r->n + 1) * sizeof *list);
    *n = 0;
    for (uint32_t i = 0; list && i < r->n; i++) {
        uint32_t k = 0;
        while (k < *n && !same_cut(&r->candidates[list[k]], &r->candidates[i]))
            k++;
        if (k == *n)
            list[(*n)++] = i;
        else if (further(&r->candidates[i], &r->candidates[list[k]]) < 0)
            list[k] = i;
    }
    for (uint32_t i = 1; list && i < *n; i++) /* stable: of equal ones the first of the axes stays in front */
        for (uint32_t k = i; k > 0 && further(&r->candidates[list[k]], &r->candidates[list[k - 1]]) < 0; k--) {
            uint32_t other = list[k];
            list[k] = list[k - 1];
            list[k - 1] = other;
        }
    return list;
}
