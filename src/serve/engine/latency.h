/* SPDX-License-Identifier: Apache-2.0 */
/*
 * latency.h - quantiles and the mean of many times without keeping each: counts in bins a fifth of a percent wide, and a sum in whole numbers
 * (each time cut to a multiple of 2^-50 s), so that it is the same in whichever order they come.
 */
#ifndef MAQ_SERVE_ENGINE_LATENCY_H
#define MAQ_SERVE_ENGINE_LATENCY_H

#include "maquette/serve.h"

#define MAQ_LATENCY_BINS 12000u

struct maq_latency {
    uint64_t *bins; /* [MAQ_LATENCY_BINS] */
    double *edges;  /* [MAQ_LATENCY_BINS + 1] of bins: where each begins; 0 = not yet computed */
    uint16_t *seen; /* by the leading bits of a time, the bin of another with the same: most times are alike */
    uint64_t n;
    uint64_t sum_units, sum_parts; /* of 2^-20 s, and of 2^-50 s: less than one of those */
};

/* Times of which each is that of as many tokens, `tokens`: those of one bin are counted together. */
struct maq_latency_run {
    struct maq_latency *of;
    uint64_t tokens, n, parts; /* n: times that are not yet in `of`, of 2^-50 s together */
    double from, to;           /* of their bin */
    uint32_t bin;
};

bool maq_latency_init(struct maq_latency *l); /* false: no memory, and nothing is held */
void maq_latency_fini(struct maq_latency *l);
void maq_latency_add(struct maq_latency *l, double seconds);
void maq_latency_add_n(struct maq_latency *l, double seconds, uint64_t n);

#define MAQ_LATENCY_PARTS 0x1p50
#define MAQ_LATENCY_MOST_S 4096.0 /* of a time in a run: two of these still fit in `parts` */
/* To be ended, before anything else is put in `of`. */
static inline struct maq_latency_run maq_latency_run_of(struct maq_latency *of, uint64_t tokens)
{
    return (struct maq_latency_run){.of = of, .tokens = tokens};
}
void maq_latency_run_end(struct maq_latency_run *r);                    /* it may go on */
void maq_latency_run_change(struct maq_latency_run *r, double seconds); /* another bin */
static inline void maq_latency_run_add(struct maq_latency_run *r, double seconds)
{
    if (!(seconds >= r->from && seconds < r->to)) {
        maq_latency_run_change(r, seconds);
        return;
    }
    r->n++;
    r->parts += (uint64_t)(int64_t)(seconds * MAQ_LATENCY_PARTS);
    if (r->parts >= UINT64_C(1) << 62)
        maq_latency_run_end(r);
}

struct maq_serve_quantiles maq_latency_quantiles(const struct maq_latency *l);

#endif
