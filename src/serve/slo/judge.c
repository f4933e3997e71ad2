/* SPDX-License-Identifier: Apache-2.0 */
/*
 * judge.c - bounds on latencies against what became of requests: each figure, and each request.
 *
 *   goodput = requests within the bounds / (first arrival to last token)
 *
 * Figures are of those that were served. A request that was refused is within no bound: where there are such, a bound on a percentile holds if that share of all
 * requests is within it, and one on a mean does not.
 */
#include "base/bug.h"
#include "maquette/serve.h"

static double figure(const struct maq_serve_result *r, const struct maq_slo_bound *b)
{
    const struct maq_serve_quantiles *of[MAQ_SLO_METRIC_COUNT] = {[MAQ_SLO_TTFT] = &r->ttft_s,
                                                                  [MAQ_SLO_TPOT] = &r->tpot_s,
                                                                  [MAQ_SLO_E2EL] = &r->e2el_s,
                                                                  [MAQ_SLO_ITL] = &r->itl_s};
    const struct maq_serve_quantiles *q = of[b->metric];
    const double by[MAQ_SLO_STATISTIC_COUNT] = {[MAQ_SLO_MEAN] = q->mean,
                                                [MAQ_SLO_P50] = q->p50,
                                                [MAQ_SLO_P90] = q->p90,
                                                [MAQ_SLO_P95] = q->p95,
                                                [MAQ_SLO_P99] = q->p99};
    return by[b->statistic];
}

static double of_request(enum maq_slo_metric metric, const struct maq_served *s, int64_t tokens)
{
    const double own[MAQ_SLO_REQUEST_METRICS] = {[MAQ_SLO_TTFT] = s->first_s - s->arrival_s,
                                                 [MAQ_SLO_TPOT] =
                                                     tokens > 1 ? (s->last_s - s->first_s) / (double)(tokens - 1) : 0,
                                                 [MAQ_SLO_E2EL] = s->last_s - s->arrival_s};
    return own[metric];
}

static bool within(double seconds, struct maq_slo_limit limit)
{
    return seconds < limit.most_s || (limit.inclusive && seconds <= limit.most_s);
}

/* Where some were refused, they are within no bound: so many of all have to be as the statistic says. */
static bool enough(const struct maq_slo_bound *b, const struct maq_serve_result *r, const struct maq_requests *requests)
{
    static const double share[MAQ_SLO_STATISTIC_COUNT] = {
        [MAQ_SLO_MEAN] = 1, [MAQ_SLO_P50] = 0.5, [MAQ_SLO_P90] = 0.9, [MAQ_SLO_P95] = 0.95, [MAQ_SLO_P99] = 0.99};
    uint32_t n = 0;
    if (r->admission.refused == 0 || b->metric >= MAQ_SLO_REQUEST_METRICS)
        return true;
    for (uint32_t i = 0; i < r->n_requests; i++)
        n += !r->served[i].refused && within(of_request(b->metric, &r->served[i], requests->at[i].output), b->limit);
    return n >= share[b->statistic] * r->n_requests;
}

static void widen(struct maq_slo_outcome *o, const struct maq_slo_bound *b)
{
    if (b->metric >= MAQ_SLO_REQUEST_METRICS)
        return;
    struct maq_slo_limit *limit = &o->request[b->metric];
    if (!o->limited[b->metric] || b->limit.most_s > limit->most_s)
        *limit = b->limit;
    else if (b->limit.most_s >= limit->most_s)
        limit->inclusive |= b->limit.inclusive;
    o->limited[b->metric] = o->of_requests = true;
}

static bool good(const struct maq_slo_outcome *o, const struct maq_served *s, int64_t tokens)
{
    for (int m = 0; m < MAQ_SLO_REQUEST_METRICS; m++)
        if (o->limited[m] && !within(of_request((enum maq_slo_metric)m, s, tokens), o->request[m]))
            return false;
    return !s->refused;
}

void maq_slo_judge(struct maq_slo_outcome *out, const struct maq_slo *slo, const struct maq_serve_result *result,
                   const struct maq_requests *requests)
{
    struct maq_slo_outcome o = {.slo = *slo, .all_met = true};
    MAQ_ASSERT(slo->n <= MAQ_SLO_MOST);
    for (uint32_t i = 0; i < slo->n; i++) {
        o.value_s[i] = figure(result, &slo->at[i]);
        o.met[i] = within(o.value_s[i], slo->at[i].limit) && enough(&slo->at[i], result, requests);
        o.all_met &= o.met[i];
        widen(&o, &slo->at[i]);
    }
    for (uint32_t i = 0; o.of_requests && i < result->n_requests; i++)
        o.good += good(&o, &result->served[i], requests->at[i].output);
    if (o.of_requests && result->duration_s > 0)
        o.goodput_per_s = o.good / result->duration_s;
    *out = o;
}
