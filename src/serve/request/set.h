/* SPDX-License-Identifier: Apache-2.0 */
/* set.h - a set of requests while it is filled. */
#ifndef MAQ_SERVE_REQUEST_SET_H
#define MAQ_SERVE_REQUEST_SET_H

#include "base/arena.h"
#include "base/stat/rng.h"
#include "maquette/serve.h"

struct maq_request_set {
    struct maq_requests requests;
    struct maq_request *at; /* owned */
    uint32_t n, size;
    struct maq_arena arena; /* prefixes */
};

struct maq_request_set *maq_request_set_new(void);
/* NULL when out of memory. */
struct maq_request *maq_request_set_add(struct maq_request_set *set);
/* Sorts by nothing: fills `requests` from what was added. */
void maq_request_set_close(struct maq_request_set *set);

/* When requests come that are drawn, one after another, the first at 0. arrivals.c */
struct maq_arrivals {
    struct maq_rng gaps;
    double rate, shape; /* requests a second, 0 = all at once; of the gamma distribution of the gaps, 1 = Poisson */
    double next_s;
};
/* burstiness 0 = 1. */
struct maq_arrivals maq_arrivals_of(double rate, double burstiness, uint64_t seed);
double maq_arrivals_next(struct maq_arrivals *a);

#endif
