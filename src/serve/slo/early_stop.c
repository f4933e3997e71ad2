/* SPDX-License-Identifier: Apache-2.0 */
/* early_stop.c - counts what is over its limit. */
#include "serve/slo/early_stop.h"

#define BIN 1.003 /* a bin is a fifth of a percent wide */

/* Requests that are over when the figure of a statistic is, at least. */
static double enough(enum maq_slo_statistic statistic, uint32_t n)
{
    static const double quantile[MAQ_SLO_STATISTIC_COUNT] = {
        [MAQ_SLO_P50] = 0.5, [MAQ_SLO_P90] = 0.9, [MAQ_SLO_P95] = 0.95, [MAQ_SLO_P99] = 0.99};
    return n - (double)(uint64_t)(quantile[statistic] * (n - 1.0));
}

void maq_slo_hope_add(struct maq_slo_hope *hope, const struct maq_served *s, int64_t tokens)
{
    double tpot = tokens > 1 ? (s->last_s - s->first_s) / (double)(tokens - 1) : 0;
    for (uint32_t i = 0; hope->slo && i < hope->slo->n; i++) {
        const struct maq_slo_bound *b = &hope->slo->at[i];
        double of[MAQ_SLO_METRIC_COUNT] = {[MAQ_SLO_TTFT] = s->first_s - s->arrival_s,
                                           [MAQ_SLO_TPOT] = tpot,
                                           [MAQ_SLO_E2EL] = s->last_s - s->arrival_s}; /* ITL: no figure of a request */
        double value = of[b->metric], limit = b->limit.most_s * BIN;
        hope->over[i] += value > limit;
        hope->sum_s[i] += value;
        if (b->statistic == MAQ_SLO_MEAN ? hope->sum_s[i] > limit * hope->n
                                         : hope->over[i] >= enough(b->statistic, hope->n))
            hope->lost = true;
    }
}
