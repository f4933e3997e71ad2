/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.c - quantiles by order statistics, shares by Wilson's interval, buckets and causes as means over replicas.
 * See summary.h.
 */
#include "risk/run/summary.h"

#include <math.h>
#include <stdlib.h>

#include "base/stat/order_statistics.h"
#include "base/stat/summary.h"

#define NORMAL_97_5 1.959963984540054

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

double maq_run_late_s(const struct maq_run_result *result)
{
    return 0.9999 * result->opts.give_up * result->ideal_s;
}

struct maq_run_quantile maq_run_quantile_of(const double *x, uint32_t n, double q)
{
    double at = q * (n - 1);
    uint32_t i = (uint32_t)at;
    double part = at - i, next = i + 1 < n ? x[i + 1] : x[i];
    struct maq_run_quantile out = {.q = q, .value = x[i] + part * (next - x[i])};
    maq_order_interval(&out.low, &out.high, x, n, q, 0.95);
    return out;
}

void maq_run_share(double *low, double *high, uint32_t k, uint32_t n)
{
    double p = (double)k / n, z2 = NORMAL_97_5 * NORMAL_97_5, middle = (p + z2 / (2 * n)) / (1 + z2 / n);
    double half = NORMAL_97_5 / (1 + z2 / n) * sqrt(p * (1 - p) / n + z2 / (4.0 * n * n));
    *low = k == 0 ? 0 : middle - half;
    *high = k == n ? 1 : middle + half;
}

static void quantiles(struct maq_run_quantile out[MAQ_RUN_QUANTILES], double *x, uint32_t n)
{
    static const double q[MAQ_RUN_QUANTILES] = {0.05, 0.5, 0.95, 0.99};
    qsort(x, n, sizeof *x, ascending);
    for (int i = 0; i < MAQ_RUN_QUANTILES; i++)
        out[i] = maq_run_quantile_of(x, n, q[i]);
}

static double deviation(const double *x, uint32_t n, double mean, double *squares)
{
    for (uint32_t i = 0; i < n; i++)
        squares[i] = (x[i] - mean) * (x[i] - mean);
    return sqrt(maq_sum(squares, n) / (n - 1));
}

static void summarize_causes(struct maq_run_result *out, struct maq_run_cause *causes,
                             const struct maq_run_tally *tallies, uint32_t n)
{
    for (uint32_t c = 0; c < out->n_causes; c++) {
        double count = 0, lost = 0;
        for (uint32_t i = 0; i < n; i++) {
            count += tallies[(size_t)i * out->n_causes + c].count;
            lost += (double)tallies[(size_t)i * out->n_causes + c].lost * 1e-9;
        }
        causes[c].count = count / n;
        causes[c].lost_s = lost / n;
    }
}

void maq_run_summarize(struct maq_run_result *out, struct maq_run_cause *causes, const struct maq_run_outcome *outcomes,
                       const struct maq_run_tally *tallies, uint32_t n, double *scratch)
{
    double *x = scratch, *other = scratch + n, lost = 0;
    uint32_t met = 0;
    for (int b = 0; b < MAQ_RUN_BUCKET_COUNT; b++) {
        for (uint32_t i = 0; i < n; i++)
            x[i] = (double)outcomes[i].bucket[b] * 1e-9;
        out->bucket_s[b] = maq_mean(x, n);
    }
    for (uint32_t i = 0; i < n; i++) {
        x[i] = outcomes[i].failures;
        lost += outcomes[i].lost;
    }
    out->nodes_lost = lost / n;
    out->failures = maq_mean(x, n);
    out->failures_sd = deviation(x, n, out->failures, other);
    for (uint32_t i = 0; i < n; i++)
        x[i] = (double)outcomes[i].bucket[MAQ_RUN_PRODUCTIVE] / (double)outcomes[i].wall;
    quantiles(out->goodputs, x, n);
    for (uint32_t i = 0; i < n; i++) {
        x[i] = (double)outcomes[i].wall * 1e-9;
        met += x[i] <= out->opts.promise_s;
        out->endless += outcomes[i].endless;
    }
    out->wall_s = maq_mean(x, n);
    out->wall_sd_s = deviation(x, n, out->wall_s, other);
    out->wall_error_s = out->wall_sd_s / sqrt(n);
    quantiles(out->wall, x, n);
    for (uint32_t i = 0; i < MAQ_RUN_CURVE; i++)
        out->wall_curve_s[i] = x[(uint64_t)i * (n - 1) / (MAQ_RUN_CURVE - 1)];
    out->bound_s = maq_order_guarantee(x, n);
    if (out->bound_s >= maq_run_late_s(out)) /* of runs that were given up nothing is known but that they take longer */
        out->bound_s = (double)NAN;
    out->goodput = out->bucket_s[MAQ_RUN_PRODUCTIVE] / out->wall_s;
    out->ettr = (out->bucket_s[MAQ_RUN_PRODUCTIVE] + out->bucket_s[MAQ_RUN_EVALUATION]) / out->wall_s;
    out->mttf_s = out->failures > 0 ? out->wall_s / out->failures : (double)INFINITY;
    out->gpu_hours = out->wall_s / 3600 * out->opts.devices;
    out->promise_met = (double)met / n;
    maq_run_share(&out->promise_low, &out->promise_high, met, n);
    summarize_causes(out, causes, tallies, n);
}
