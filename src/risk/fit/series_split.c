/* SPDX-License-Identifier: Apache-2.0 */
/*
 * series_split.c - warm-up, spikes, body and modes of a series of step times.
 *
 *   warm-up   MSER (White, "An effective truncation heuristic for bias reduction in simulation output", Simulation 69, 1997): of the
 *             medians of batches of 5 steps, the cut d <= half of them that makes sum (x - mean)^2 / (n - d)^2 of the rest least: cutting
 *             on costs precision, not cutting costs bias. Medians, because one long step is no warm-up. At least the first step
 *   recency   runs drift: a step's weight falls by e per 0.3 of the series, so that what comes next is predicted from what came last
 *             without forgetting rare things at once. Chosen on splits of recorded series in thirds and quarters (docs/risk.md)
 *   spike     a step above 1.5 x the median: its own process, with a rate and sizes
 *   modes     Otsu's threshold on ln x; two modes when Ashman's D = sqrt(2) |m1 - m2| / sqrt(v1 + v2) of the halves (Ashman, Bird,
 *             Zepf, "Detecting bimodality in astronomical datasets", 1994) is above 4: cutting a normal law gives 2.7 and a uniform
 *             one 3.5, which are no modes. Each has at least 1 % of the steps
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/stat/summary.h"
#include "risk/fit/series.h"

static uint32_t find_warm_up(const double *times, uint32_t n, double *batch)
{
    enum { SIZE = 5, LEAST = 5 };
    uint32_t batches = n / SIZE, best_cut = 0;
    double sum = 0, square = 0, best = (double)INFINITY;
    if (batches < 2 * LEAST)
        return n > 1;
    for (uint32_t i = 0; i < batches; i++) {
        double five[SIZE];
        memcpy(five, times + (size_t)i * SIZE, sizeof five);
        batch[i] = maq_quantile(five, SIZE, 0.5);
    }
    double origin = batch[batches - 1]; /* squares of differences keep their digits */
    for (uint32_t left = 1; left <= batches; left++) {
        double off = batch[batches - left] - origin;
        sum += off;
        square += off * off;
        double mser = (square - sum * sum / left) / left / left;
        if (left >= LEAST && batches - left <= batches / 2 && mser <= best) {
            best = mser;
            best_cut = batches - left;
        }
    }
    return best_cut > 0 ? best_cut * SIZE : 1;
}

struct entry {
    double value, weight;
    uint32_t at;
};

static int by_value(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;
    if (a->value != b->value) /* NOLINT: a total order with the place */
        return a->value < b->value ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

/* Entries from..to as a sample. */
static bool make_sample(struct maq_sample *out, const struct entry *e, uint32_t n, struct maq_arena *arena)
{
    double *value = MAQ_ARENA_NEW(arena, double, n), *weight = MAQ_ARENA_NEW(arena, double, n), sum = 0;
    if (!value || !weight)
        return false;
    for (uint32_t i = 0; i < n; i++)
        sum += e[i].weight;
    for (uint32_t i = 0; i < n; i++) {
        value[i] = e[i].value;
        weight[i] = e[i].weight / sum;
    }
    *out = (struct maq_sample){n, value, weight};
    return true;
}

static double median_of(const struct entry *e, uint32_t n)
{
    double all = 0, below = 0;
    for (uint32_t i = 0; i < n; i++)
        all += e[i].weight;
    for (uint32_t i = 0; i < n; i++)
        if ((below += e[i].weight) >= 0.5 * all)
            return e[i].value;
    return e[n - 1].value;
}

static void count_spikes(struct maq_series_parts *out, const double *times, uint32_t n)
{
    double excess = 0, limit = MAQ_SERIES_SPIKE * out->median;
    for (uint32_t i = out->warm_up; i < n; i++) {
        if (times[i] <= limit)
            continue;
        out->spikes++;
        out->clumps += i == out->warm_up || times[i - 1] <= limit;
        excess += times[i] - out->median;
    }
    out->spike_excess = out->spikes > 0 ? excess / out->spikes : 0;
}

enum maq_status maq_series_split(struct maq_series_parts *out, const double *times, uint32_t n, struct maq_arena *arena)
{
    struct entry *e = MAQ_ARENA_NEW(arena, struct entry, n);
    double *batch = MAQ_ARENA_NEW(arena, double, n), sum = 0, square = 0;
    if (!e || !batch)
        return MAQ_NO_MEMORY;
    *out = (struct maq_series_parts){.warm_up = find_warm_up(times, n, batch)};
    uint32_t kept = n - out->warm_up, body = 0;
    for (uint32_t i = 0; i < kept; i++) {
        uint32_t at = out->warm_up + i;
        e[i] = (struct entry){times[at], exp(((double)at - n) / (MAQ_SERIES_MEMORY * n)), at};
        sum += e[i].weight;
        square += e[i].weight * e[i].weight;
    }
    out->effective = sum * sum / square;
    qsort(e, kept, sizeof *e, by_value);
    out->median = median_of(e, kept);
    count_spikes(out, times, n);
    while (body < kept && e[body].value <= MAQ_SERIES_SPIKE * out->median)
        body++;
    return make_sample(&out->all, e, kept, arena) && make_sample(&out->body, e, body, arena) ? MAQ_OK : MAQ_NO_MEMORY;
}

/* Mean and variance of ln x, and the median of x, of values from..to. */
static void half(double *share, double *mean, double *variance, double *median, const struct maq_sample *s,
                 uint32_t from, uint32_t to)
{
    double w = 0, sum = 0, square = 0, below = 0, origin = log(s->value[from]);
    for (uint32_t i = from; i < to; i++) {
        double x = log(s->value[i]) - origin;
        w += s->weight[i];
        sum += s->weight[i] * x;
        square += s->weight[i] * x * x;
    }
    *share = w;
    *mean = origin + sum / w;
    *variance = fmax(square / w - sum / w * (sum / w), 0);
    *median = s->value[to - 1];
    for (uint32_t i = from; i < to && below < 0.5 * w; i++) {
        below += s->weight[i];
        *median = s->value[i];
    }
}

struct maq_series_modes maq_series_modes(const struct maq_sample *s)
{
    double w[2], mean[2], variance[2], median[2];
    uint32_t cut = maq_otsu_cut(s);
    struct maq_series_modes one = {0};
    half(&w[0], &mean[0], &variance[0], &median[0], s, 0, s->n);
    one.cv = sqrt(expm1(variance[0]));
    if (s->n < 20 || cut == 0 || cut >= s->n)
        return one;
    half(&w[0], &mean[0], &variance[0], &median[0], s, 0, cut);
    half(&w[1], &mean[1], &variance[1], &median[1], s, cut, s->n);
    double apart = mean[1] - mean[0], spread = variance[0] + variance[1];
    if (w[0] < 0.01 || w[1] < 0.01 || !(2 * apart * apart > 16 * spread))
        return one;
    return (struct maq_series_modes){w[1], median[1] / median[0],
                                     sqrt(expm1((w[0] * variance[0] + w[1] * variance[1]) / (w[0] + w[1])))};
}
