/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.c - bins of a geometric scale from 0.1 us on: bin i holds times from START * STEP^i; and their sum, each cut to a multiple of 2^-60 s.
 */
#include "serve/engine/latency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

#define START_S 1e-7
#define LOG_STEP 0.002
#define UNITS 0x1p20
#define PARTS (INT64_C(1) << 40)
#define KNOWN 2048u /* a thousandth of a time each, over two powers of two */

bool maq_latency_init(struct maq_latency *l)
{
    *l = (struct maq_latency){.bins = maq__calloc(MAQ_LATENCY_BINS * sizeof *l->bins),
                              .known = maq__calloc(KNOWN * sizeof *l->known)};
    if (l->bins && l->known)
        return true;
    maq_latency_fini(l);
    return false;
}

void maq_latency_fini(struct maq_latency *l)
{
    free(l->bins);
    free(l->known);
    *l = (struct maq_latency){0};
}

void maq_latency_add(struct maq_latency *l, double seconds)
{
    maq_latency_add_n(l, seconds, 1);
}

static uint32_t bin_of(const struct maq_latency *l, double seconds)
{
    uint64_t bits;
    memcpy(&bits, &seconds, sizeof bits);
    struct maq_latency_known *k = &l->known[bits >> 42 & (KNOWN - 1)];
    if (seconds >= k->from && seconds <= k->to)
        return k->bin;
    double i = seconds > START_S ? log(seconds / START_S) / LOG_STEP : 0;
    uint32_t bin = i < MAQ_LATENCY_BINS - 1 ? (uint32_t)i : MAQ_LATENCY_BINS - 1;
    bool wider = k->to > 0 && bin == k->bin;
    *k = (struct maq_latency_known){wider ? fmin(k->from, seconds) : seconds, wider ? fmax(k->to, seconds) : seconds,
                                    bin};
    return bin;
}

void maq_latency_add_n(struct maq_latency *l, double seconds, uint64_t n)
{
    l->bins[bin_of(l, seconds)] += n;
    l->n += n;
    int64_t whole = (int64_t)(seconds * UNITS), rest = (int64_t)((seconds * UNITS - (double)whole) * (double)PARTS);
    l->sum_parts += rest * (int64_t)n; /* a batch has less than 2^20 requests */
    l->sum_units += whole * (int64_t)n + l->sum_parts / PARTS;
    l->sum_parts %= PARTS;
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
