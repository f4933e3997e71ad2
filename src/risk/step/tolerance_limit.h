/* SPDX-License-Identifier: Apache-2.0 */
/*
 * tolerance_limit.h - a distribution-free tolerance limit: a time that at most 5 % of steps exceed, with 95 % confidence.
 *
 * The figures of a step are of a law made from its draws: interpolated, continued beyond the highest of them, raised to the number
 * of replicas. The limit uses none of these assumptions. J independent values of the slowest of R replicas are put together from J
 * R independent draws. Factors that everything shares are not sampled, so given a value M_j the step exceeds x with a known
 * probability g_j(x), and
 *
 *   P(mean of g_j(x) <= m) <= exp(-J KL(m || p)),  KL(m || p) = m ln(m / p) + (1 - m) ln((1 - m) / (1 - p)),  p = E g_j(x) > m
 *
 * for any independent variables in [0, 1] (Hoeffding, "Probability inequalities for sums of bounded random variables", 1963,
 * theorem 1). So the x at which the mean is the m with KL(m || 0.05) = ln 20 / J is exceeded by at most 5 % of steps, with 95 %
 * confidence; 59 values are the fewest for which there is an m.
 */
#ifndef MAQ_RISK_STEP_TOLERANCE_LIMIT_H
#define MAQ_RISK_STEP_TOLERANCE_LIMIT_H

#include "risk/step/job_law.h"

/* A regime of communication, or another part of the steps. */
struct maq_limit_regime {
    double share;          /* of the steps */
    double norm_ns;        /* after the slowest replica */
    double *const *end_ns; /* [kinds][draws] independent from draw to draw */
};

struct maq_limit_job {
    const struct maq_variation *v;
    const struct maq_limit_regime *regime;
    uint32_t n_regimes, n_kinds;
    const double *count; /* [kinds] replicas of each in a step, the last of the given ones all the others */
    double expected;     /* > 0: one kind more, of episodes: so many on average, by Poisson's law, instead of others */
    double end_ns;       /* after norm_ns, in every regime */
    uint64_t seed;
    uint32_t draws;
};

struct maq_step_limit {
    double limit_ns; /* NaN: too few values for one */
    uint32_t values; /* of the slowest replica, put together; 0: the law is known, and its 95th percentile is it */
};

/* Draws that give `values` of them. */
double maq_step_limit_draws(const struct maq_limit_job *job, uint32_t values);

/* false: out of memory. In `arena`. */
bool maq_step_limit(struct maq_step_limit *out, const struct maq_limit_job *job, struct maq_arena *arena);

/* The last part alone, of independent values; slowest: [regimes][n] ns, which it sorts. NaN: n is too small. */
bool maq_step_limit_of(double *limit_ns, double *const *slowest, uint32_t n, const struct maq_limit_job *job,
                       struct maq_arena *arena);

/* The mean m of n values in [0, 1] with KL(m || 0.05) = ln 20 / n; negative: n is too small. */
double maq_limit_mean(uint32_t n);

#endif
