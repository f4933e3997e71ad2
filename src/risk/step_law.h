/*
 * step_law.h - from the ends of single replicas to the step of a job.
 *
 * M, the end of the slowest replica, has the distribution function prod over kinds of replicas of F(x)^n, each F that of a sample. The
 * slowest of many needs F nearer to 1 than the sample is: above its highest sqrt(n) values, few enough to be of the slowest kind alone, a generalized Pareto tail is fitted by
 * probability-weighted moments (Hosking and Wallis, "Parameter and quantile estimation for the generalized Pareto
 * distribution", 1987).
 *
 *   step = C x S x (M + norm + update)
 *
 * C is the factor that all GPUs share, S that of a spike. M is held as equally likely values, S as a few weighted ones, C as it is: the
 * distribution function of the step is a sum of normal ones in ln t. Where C does not vary it is a sum of steps.
 */
#ifndef MAQ_RISK_STEP_LAW_H
#define MAQ_RISK_STEP_LAW_H

#include "base/arena.h"
#include "risk/step_model.h"

/* Ends of replicas of one kind, of which the job has `count`: a sample, or a table of the exact law. */
struct maq_end_law {
    double count;
    uint32_t n;
    const double *x;                       /* [n] ascending, ns */
    const double *sf;                      /* [n] of an exact law, P(end > x), descending; NULL: a sample */
    double threshold, share, scale, shape; /* the tail; share 0: none */
};

/* Takes a sorted sample; fits its tail. */
void maq_end_law_init(struct maq_end_law *out, const double *x, uint32_t n, double count);

/* The exact law, where nothing needs sampling: one stage in one node. false: it does. In `arena`. step_exact.c */
bool maq_step_exact(struct maq_end_law *out, const struct maq_step_model *m, const struct maq_variation *v,
                    double count, struct maq_arena *arena);

/* One value of the step but for C, with its probability. */
struct maq_step_atom {
    double value_ns, weight;
};

struct maq_step_law {
    uint32_t n;
    struct maq_step_atom *atom; /* ascending where sigma is 0 */
    double sigma;               /* of ln C */
};

/* Adds the atoms of one regime with probability `weight`: `points` values of M. norm_ns: of this regime. */
void maq_step_law_add(struct maq_step_law *law, const struct maq_end_law *kinds, uint32_t n_kinds, uint32_t points,
                      double weight, double norm_ns, double end_ns, const struct maq_variation *v);
/* How many atoms a regime adds. */
uint32_t maq_step_law_size(uint32_t points, const struct maq_variation *v);
void maq_step_law_finish(struct maq_step_law *law);

double maq_step_law_quantile(const struct maq_step_law *law, double p); /* ns */
double maq_step_law_mean(const struct maq_step_law *law);
double maq_step_law_sd(const struct maq_step_law *law);

#endif
