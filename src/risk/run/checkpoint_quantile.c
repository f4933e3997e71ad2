/* SPDX-License-Identifier: Apache-2.0 */
/*
 * checkpoint_quantile.c - quantiles of the wall clock of a run, from the transform of its segments.
 *
 * A segment of length L under failures of rate lambda, each followed by a recovery with transform r(s), has
 *
 *   phi(s) = (lambda + s) e^(-(lambda + s) L) / ((lambda + s) - lambda r(s) (1 - e^(-(lambda + s) L)))
 *
 * with r(s) = e^(-s R) for `paused`, and phi of length R without a recovery for `restarted`. Segments are independent, so the
 * excess of n of them over n L has the transform (phi(s) e^(s L))^n; taking the certain part away leaves a function that is
 * smooth on the scale of its own spread. Its distribution function is found from the transform over s by the Fourier-series
 * method (Abate, Whitt, "Numerical inversion of Laplace transforms of probability distributions", ORSA J. Computing 1995), here
 * summed until the terms are gone or, failing that, by Euler's averaging of the last partial sums.
 */
#include <complex.h>
#include <math.h>

#include "maquette/checkpoint.h"

typedef double _Complex transform_value;

#define ROUND 18.4      /* e^-18.4 = 1e-8: error of the method */
#define MOST_TERMS 4000 /* a run with a thousand failures needs some hundred */
#define EULER 12

/* phi(s) e^(s L) of a segment; `after` = r(s). */
static transform_value excess(double rate, double length, transform_value s, transform_value after)
{
    transform_value u = rate + s, gone = cexp(-u * length);
    return u * exp(-rate * length) / (u - rate * after * (1 - gone));
}

struct inversion {
    double rate, length, recover, segments;
    bool restarted;
};

/* Transform of the distribution function. */
static transform_value transform(const struct inversion *v, transform_value s)
{
    transform_value after = cexp(-s * v->recover);
    if (v->restarted)
        after *= excess(v->rate, v->recover, s, 1);
    return cexp(v->segments * clog(excess(v->rate, v->length, s, after))) / s;
}

/* A point of the line that the series runs along. */
static transform_value line(double t, int k)
{
    return ROUND / (2 * t) + k * M_PI / t * (transform_value)I;
}

/* P(excess <= t), t > 0. */
static double probability(const struct inversion *v, double t)
{
    double sum = creal(transform(v, ROUND / (2 * t))) / 2, partial[EULER + 1], scale = exp(ROUND / 2) / t;
    int small = 0, k = 1;
    for (; k <= MOST_TERMS && small < 8; k++) {
        double term = creal(transform(v, line(t, k)));
        sum += k % 2 ? -term : term;
        small = fabs(term) * scale < 1e-13 ? small + 1 : 0;
    }
    if (small >= 8)
        return sum * scale;
    for (int j = 0; j <= EULER; j++, k++) { /* mean of the partial sums, binomial weights */
        double term = creal(transform(v, line(t, k)));
        sum += k % 2 ? -term : term;
        partial[j] = sum;
    }
    for (int left = EULER; left > 0; left--)
        for (int j = 0; j < left; j++)
            partial[j] = (partial[j] + partial[j + 1]) / 2;
    return partial[0] * scale;
}

double maq_checkpoint_quantile(const struct maq_checkpointing *c, double work_s, double q)
{
    if (c->clock == MAQ_CLOCK_QUEUED || c->persist_s > 0 || !(q > 0 && q < 1))
        return (double)NAN;
    struct maq_checkpoint_run run = maq_checkpoint_run(c, work_s);
    double length = c->interval_s + c->save_s, least = run.segments * length;
    if (isinf(c->mtbf_s) || !(run.mean_s > least))
        return run.mean_s;
    struct inversion v = {1 / c->mtbf_s, length, c->recover_s, run.segments, c->clock == MAQ_CLOCK_RESTARTED};
    if (exp(-v.rate * least) >= q) /* not one failure */
        return least;
    double low = 0, high = run.mean_s - least + 2 * run.sd_s;
    while (probability(&v, high) < q && high < 1e6 * run.mean_s) {
        low = high;
        high *= 1.5;
    }
    for (int i = 0; i < 60 && high - low > 1e-12 * high; i++) {
        double middle = (low + high) / 2;
        if (probability(&v, middle) < q)
            low = middle;
        else
            high = middle;
    }
    return least + (low + high) / 2;
}
