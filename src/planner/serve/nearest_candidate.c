/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nearest_candidate.c - where nothing holds the bounds: what comes nearest, and whether the bound that it misses is within the interval of what
 * is predicted.
 *
 * Latencies are those of the run in which a candidate missed, or by the closed form those of a request that is alone.
 */
#include <math.h>

#include "planner/serve/searching.h"

static struct maq_serve_nearest with_interval(const struct maq_serve_candidate *c, double output,
                                              struct maq_slo_bound bound, double value_s)
{
    struct maq_serve_nearest m = {.bound = bound, .value_s = value_s};
    double behind = c->token_s * (output - 1), first = c->first_s / (c->first_s + behind), low[2], high[2];
    maq_serve_interval(&low[0], &high[0], MAQ_SERVE_TTFT);
    maq_serve_interval(&low[1], &high[1], MAQ_SERVE_TPOT);
    double share = bound.metric == MAQ_SLO_TTFT   ? 1
                   : bound.metric == MAQ_SLO_E2EL ? first
                                                  : 0; /* of it, the first token's */
    m.low_s = value_s * (share * low[0] + (1 - share) * low[1]);
    m.high_s = value_s * (share * high[0] + (1 - share) * high[1]);
    return m;
}

/* The bound that is missed by most. */
static struct maq_serve_nearest miss_of(const struct maq_serve_candidate *c, const struct maq_slo *slo, double output)
{
    struct maq_serve_nearest most = {0};
    double times = 0;
    for (uint32_t i = 0; i < slo->n; i++) {
        const double alone[MAQ_SLO_METRIC_COUNT] = {[MAQ_SLO_TTFT] = c->first_s,
                                                    [MAQ_SLO_TPOT] = c->token_s,
                                                    [MAQ_SLO_E2EL] = c->first_s + c->token_s * (output - 1)};
        double value_s = c->missed.slo.n > 0 ? c->missed.value_s[i] : alone[slo->at[i].metric];
        if (!(value_s / slo->at[i].limit.most_s > times))
            continue;
        times = value_s / slo->at[i].limit.most_s;
        most = with_interval(c, output, slo->at[i], value_s);
    }
    return most;
}

void maq_serve_find_nearest(struct maq_serve_searching *s)
{
    struct maq_serve_nearest *near = &s->out->nearest;
    double least = (double)INFINITY;
    for (uint32_t i = 0; i < s->out->n; i++) {
        const struct maq_serve_candidate *c = &s->out->candidates[i];
        if (c->verdict != MAQ_SERVE_VERDICT_SLOW && c->verdict != MAQ_SERVE_VERDICT_MISSED)
            continue;
        struct maq_serve_nearest m = miss_of(c, s->opts->slo, s->asked.load.output);
        double times = m.value_s / m.bound.limit.most_s;
        bool own = c->own_limits && !s->out->candidates[near->candidate].own_limits; /* of equal ones */
        if (m.value_s <= 0 || times > least || (times >= least && !own))
            continue;
        least = times;
        *near = m;
        near->candidate = i;
    }
}
