/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.c - bins of a geometric scale from 0.1 us on: bin i holds times from START * e^(i LOG_STEP) to the next; and their sum.
 */
#include "serve/engine/latency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define START_S 1e-7
#define LOG_STEP 0.002
#define UNITS 0x1p20
#define PARTS (UINT64_C(1) << 30) /* of a unit */
#define SEEN 2048u                /* a thousandth of a time each, over two powers of two */

bool maq_latency_init(struct maq_latency *l)
{
    *l = (struct maq_latency){.bins = maq__calloc(MAQ_LATENCY_BINS * sizeof *l->bins),
                              .edges = maq__calloc((MAQ_LATENCY_BINS + 1) * sizeof *l->edges),
                              .seen = maq__calloc(SEEN * sizeof *l->seen)};
    if (l->bins && l->edges && l->seen)
        return true;
    maq_latency_fini(l);
    return false;
}

void maq_latency_fini(struct maq_latency *l)
{
    free(l->bins);
    free(l->edges);
    free(l->seen);
    *l = (struct maq_latency){0};
}

void maq_latency_add(struct maq_latency *l, double seconds)
{
    maq_latency_add_n(l, seconds, 1);
}

/* The first bin has all that is shorter, the last all that is longer. */
static double edge(const struct maq_latency *l, uint32_t bin)
{
    if (l->edges[bin] <= 0)
        l->edges[bin] = bin == 0 ? -HUGE_VAL : bin == MAQ_LATENCY_BINS ? HUGE_VAL : START_S * exp(bin * LOG_STEP);
    return l->edges[bin];
}

static uint32_t bin_of(const struct maq_latency *l, double seconds)
{
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    uint16_t *seen = &l->seen[bits >> 42 & (SEEN - 1)];
    uint32_t bin = *seen;
    if (seconds >= edge(l, bin) && seconds < edge(l, bin + 1))
        return bin;
    double i = seconds > START_S ? log(seconds / START_S) / LOG_STEP : 0;
    bin = i < MAQ_LATENCY_BINS - 1 ? (uint32_t)i : MAQ_LATENCY_BINS - 1;
    while (bin > 0 && seconds < edge(l, bin)) /* rounding */
        bin--;
    while (bin + 1 < MAQ_LATENCY_BINS && seconds >= edge(l, bin + 1))
        bin++;
    *seen = (uint16_t)bin;
    return bin;
}

/* Times of a bin, `parts` of 2^-50 s together, of which each is that of so many tokens (less than 2^30). */
static void put(struct maq_latency *l, uint32_t bin, uint64_t parts, uint64_t times, uint64_t tokens)
{
    l->bins[bin] += times * tokens;
    l->n += times * tokens;
    l->sum_parts += parts % PARTS * tokens;
    l->sum_units += parts / PARTS * tokens + l->sum_parts / PARTS;
    l->sum_parts %= PARTS;
}

void maq_latency_add_n(struct maq_latency *l, double seconds, uint64_t n)
{
    double rest = seconds;
    if (seconds >= MAQ_LATENCY_MOST_S) {
        double whole = floor(seconds * UNITS);
        l->sum_units += (uint64_t)whole * n;
        rest = (seconds * UNITS - whole) / UNITS;
    }
    put(l, bin_of(l, seconds), (uint64_t)(int64_t)(rest * MAQ_LATENCY_PARTS), 1, n);
}

void maq_latency_run_end(struct maq_latency_run *r)
{
    if (r->n > 0)
        put(r->of, r->bin, r->parts, r->n, r->tokens);
    r->n = r->parts = 0;
}

void maq_latency_run_change(struct maq_latency_run *r, double seconds)
{
    maq_latency_run_end(r);
    maq_latency_add_n(r->of, seconds, r->tokens);
    r->bin = bin_of(r->of, seconds);
    r->from = fmax(edge(r->of, r->bin), 0);
    r->to = fmin(edge(r->of, r->bin + 1), MAQ_LATENCY_MOST_S);
}

static double sum_s(const struct maq_latency *l)
{
    return ((double)l->sum_units + (double)l->sum_parts / (double)PARTS) / UNITS;
}

static double quantile(const struct maq_latency *l, double q)
{
    uint64_t rank = (uint64_t)(q * (double)(l->n - 1)), seen = 0;
    for (uint32_t i = 0; i < MAQ_LATENCY_BINS; i++) {
        seen += l->bins[i];
        if (seen > rank)
            return START_S * exp(((double)i + 0.5) * LOG_STEP);
    }
    return 0;
}

struct maq_serve_quantiles maq_latency_quantiles(const struct maq_latency *l)
{
    if (l->n == 0)
        return (struct maq_serve_quantiles){0};
    return (struct maq_serve_quantiles){.mean = sum_s(l) / (double)l->n,
                                        .p50 = quantile(l, 0.5),
                                        .p90 = quantile(l, 0.9),
                                        .p95 = quantile(l, 0.95),
                                        .p99 = quantile(l, 0.99)};
}
