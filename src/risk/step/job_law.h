/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_law.h - the law of a job's step, from the law of the ends of single replicas.
 *
 * M, the end of the slowest replica, has the distribution function prod over kinds of replicas of F(x)^n, each F that of a sample,
 * or known. The slowest of many needs F nearer to 1 than an even sample is; draws are weighted, with more of them from slow
 * replicas (sample.c). Above the highest 16 draws F is continued as an exponential law with their mean excess.
 *
 * Of replicas that are slow for a while there are N by Poisson's law with mean L. Each stands for one of the usual
 * kind, whose F it replaces:
 * E[(F_slow / F)^N] = exp(-L (1 - F_slow / F)).
 *
 *   step = C x S x D x (M + norm + update)
 *
 * C is the factor that all GPUs share, S that of a spike or of the second mode, D that of the hour, which no spike
 * needs. M is held as equally likely values, S as a few weighted ones, C as it is: the distribution function of the
 * step is a sum of normal ones in ln t. Where C does not vary it is a sum of steps.
 */
#ifndef MAQ_RISK_STEP_JOB_LAW_H
#define MAQ_RISK_STEP_JOB_LAW_H

#include "base/arena.h"
#include "risk/step/model.h"

/* A drawn end and how many draws of an even sample it stands for. */
struct maq_end_draw {
    double x_ns, weight;
};

/* Ends of replicas of one kind, of which the job has `count`: P(end > x) as a table, linear in its logarithm between points. */
struct maq_end_law {
    double count;
    double expected; /* > 0: so many on average, by Poisson's law, instead of as many replicas of the kind before */
    uint32_t n;
    const double *x, *sf;                  /* [n] ascending, ns; descending */
    double threshold, tail_sf, tail_scale; /* above the threshold an exponential law; tail_sf 0: none */
};

/* Of draws, which it sorts. false: out of memory. */
bool maq_end_law_init(struct maq_end_law *out, struct maq_end_draw *draws, uint32_t n, double count,
                      struct maq_arena *arena);

/* One value of the step but for C, with its probability. */
struct maq_step_atom {
    double value_ns, weight, log; /* log: of the value, set by maq_step_law_finish() */
};

struct maq_step_law {
    uint32_t n;
    struct maq_step_atom *atom; /* ascending where sigma is 0 */
    double sigma;               /* of ln C */
};

/* Adds the atoms of one regime with probability `weight`: `points` values of M. norm_ns: of this regime. */
void maq_step_law_add(struct maq_step_law *law, const struct maq_end_law *kinds, uint32_t n_kinds, uint32_t points,
                      double weight, double norm_ns, double end_ns, const struct maq_variation *v);
/* Those of one value of M + norm + update. */
void maq_step_law_put(struct maq_step_law *law, double x_ns, double weight, const struct maq_variation *v);
/* How many atoms a regime adds. */
uint32_t maq_step_law_size(uint32_t points, const struct maq_variation *v);
void maq_step_law_finish(struct maq_step_law *law);

double maq_step_law_quantile(const struct maq_step_law *law, double p); /* ns */
double maq_step_law_cdf(const struct maq_step_law *law, double t_ns);
double maq_step_law_mean(const struct maq_step_law *law);
double maq_step_law_sd(const struct maq_step_law *law);

#endif
