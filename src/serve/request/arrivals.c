/* SPDX-License-Identifier: Apache-2.0 */
/* arrivals.c - when requests come that are drawn: gaps of a gamma distribution, as benchmark clients draw them. */
#include <math.h>

#include "serve/request/set.h"

static double normal(struct maq_rng *r)
{
    double u = maq_rng_next(r), v = maq_rng_next(r); /* Box and Muller (1958) */
    return sqrt(-2 * log(u)) * cos(2 * acos(-1.0) * v);
}

/* A draw from the gamma distribution of shape k and mean 1: Marsaglia and Tsang (2000), for k < 1 with their power of a uniform. */
static double gamma_of_mean_one(struct maq_rng *r, double k)
{
    double shape = k < 1 ? k + 1 : k, d = shape - 1.0 / 3, c = 1 / sqrt(9 * d);
    for (;;) {
        double x = normal(r), v = 1 + c * x, u = maq_rng_next(r);
        v = v * v * v;
        if (v > 0 && log(u) < x * x / 2 + d - d * v + d * log(v))
            return d * v * (k < 1 ? pow(maq_rng_next(r), 1 / k) : 1) / k;
    }
}

struct maq_arrivals maq_arrivals_of(double rate, double burstiness, uint64_t seed)
{
    return (struct maq_arrivals){
        .gaps = maq_rng_of(seed, MAQ_RNG_REQUEST, 0), .rate = rate, .shape = burstiness > 0 ? burstiness : 1};
}

double maq_arrivals_next(struct maq_arrivals *a)
{
    const double at_s = a->next_s;
    if (a->rate > 0)
        a->next_s += gamma_of_mean_one(&a->gaps, a->shape) / a->rate;
    return at_s;
}
