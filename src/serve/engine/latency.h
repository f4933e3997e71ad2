/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.h - quantiles and the mean of many times without keeping each: counts in bins a fifth of a percent wide, and a sum in whole numbers, so
 * that it is the same in whichever order they come.
 */
#ifndef MAQ_SERVE_ENGINE_LATENCY_H
#define MAQ_SERVE_ENGINE_LATENCY_H

#include "maquette/serve.h"

#define MAQ_LATENCY_BINS 12000u

/* Times that were found to be of one bin, and so all between them. */
struct maq_latency_known {
    double from, to;
    uint32_t bin;
};

struct maq_latency {
    uint64_t *bins; /* [MAQ_LATENCY_BINS] */
    uint64_t n;
    int64_t sum_units, sum_parts;    /* of 2^-20 s, and of 2^-60 s: less than one of those */
    struct maq_latency_known *known; /* by the leading bits of a time: those of many requests are alike */
};

bool maq_latency_init(struct maq_latency *l); /* false: no memory, and nothing is held */
void maq_latency_fini(struct maq_latency *l);
void maq_latency_add(struct maq_latency *l, double seconds);
void maq_latency_add_n(struct maq_latency *l, double seconds, uint64_t n);
struct maq_serve_quantiles maq_latency_quantiles(const struct maq_latency *l);

#endif
