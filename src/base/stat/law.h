/* SPDX-License-Identifier: Apache-2.0 */
/*
 * law.h - laws of durations (and of other positive quantities): what a draw may be, and how likely.
 *
 * A law is a plain value. A draw is shift + Y, where Y follows the kind:
 *
 *   kind         Y                                                   scale          shape
 *   constant     0
 *   normal       normal with mean 0                                  sd
 *   lognormal    exp(normal), > 0                                    median of Y    sd of ln Y
 *   gamma        Gamma(shape), density y^(k-1) e^(-y/scale), > 0     scale          k
 *   weibull      survival exp(-(y / scale)^k), > 0                   scale          k
 *   exponential  survival exp(-y / scale), > 0                       mean of Y
 *   pool         one of n given values, equally likely or with shares of their own
 *   mixture      of part i with probability weight i
 *
 * With shift = 0 these are the usual two-parameter laws (a normal's mean is its shift); with a shift the three-parameter ones.
 * Each side of a law has functions of its own, so that probabilities down to 1e-300 keep their digits: the quantile of the
 * slowest of 65,536 needs them.
 */
#ifndef MAQ_BASE_STAT_LAW_H
#define MAQ_BASE_STAT_LAW_H

#include <stdbool.h>
#include <stdint.h>

#include "base/stat/rng.h"

/*    id           name */
#define MAQ_LAW_LIST(X)                                                                                                \
    X(CONSTANT, "constant")                                                                                            \
    X(NORMAL, "normal")                                                                                                \
    X(LOGNORMAL, "lognormal")                                                                                          \
    X(GAMMA, "gamma")                                                                                                  \
    X(WEIBULL, "weibull")                                                                                              \
    X(EXPONENTIAL, "exponential")                                                                                      \
    X(POOL, "pool")                                                                                                    \
    X(MIXTURE, "mixture")

enum maq_law_kind {
#define MAQ_LAW_ENUM(id, name) MAQ_LAW_##id,
    MAQ_LAW_LIST(MAQ_LAW_ENUM)
#undef MAQ_LAW_ENUM
        MAQ_LAW_COUNT
};

struct maq_law {
    enum maq_law_kind kind;
    double shift, scale, shape;
    uint32_t n;          /* of values or parts */
    const double *value; /* pool: [n] ascending, borrowed */
    const double *below; /* pool: [n] share of values up to and with this one, the last is 1; NULL = equally likely */
    const struct maq_law *part; /* mixture: [n], borrowed */
    const double *weight;       /* mixture: [n], > 0, adding up to 1; borrowed */
};

const char *maq_law_name(enum maq_law_kind kind);

static inline struct maq_law maq_law_constant(double value)
{
    return (struct maq_law){.kind = MAQ_LAW_CONSTANT, .shift = value};
}
static inline struct maq_law maq_law_normal(double mean, double sd)
{
    return (struct maq_law){.kind = MAQ_LAW_NORMAL, .shift = mean, .scale = sd};
}
static inline struct maq_law maq_law_lognormal(double median, double sigma)
{
    return (struct maq_law){.kind = MAQ_LAW_LOGNORMAL, .scale = median, .shape = sigma};
}
static inline struct maq_law maq_law_gamma(double shape, double scale)
{
    return (struct maq_law){.kind = MAQ_LAW_GAMMA, .scale = scale, .shape = shape};
}
static inline struct maq_law maq_law_weibull(double shape, double scale)
{
    return (struct maq_law){.kind = MAQ_LAW_WEIBULL, .scale = scale, .shape = shape};
}
static inline struct maq_law maq_law_exponential(double mean)
{
    return (struct maq_law){.kind = MAQ_LAW_EXPONENTIAL, .scale = mean};
}
static inline struct maq_law maq_law_pool(const double *ascending, uint32_t n)
{
    return (struct maq_law){.kind = MAQ_LAW_POOL, .value = ascending, .n = n};
}
static inline struct maq_law maq_law_mixture(const struct maq_law *part, const double *weight, uint32_t n)
{
    return (struct maq_law){.kind = MAQ_LAW_MIXTURE, .part = part, .weight = weight, .n = n};
}
/* Lognormals by what people measure: median and mean (mean >= median > 0), or mean and coefficient of variation. */
struct maq_law maq_law_lognormal_of_median_mean(double median, double mean);
struct maq_law maq_law_lognormal_of_mean_cv(double mean, double cv);
/* The deviation of the logarithm of a lognormal value, by its coefficient of variation. */
double maq_lognormal_sigma(double cv);

/* Whether the parameters make a law: finite, scales and shapes > 0, values ascending, weights > 0 that add up to 1. */
bool maq_law_valid(const struct maq_law *law);

/* Probability of a draw <= x, and of one > x. */
double maq_law_cdf(const struct maq_law *law, double x);
double maq_law_sf(const struct maq_law *law, double x);
/* Density; NaN for laws with single values that have probability (constant, pool, and mixtures of them). */
double maq_law_pdf(const struct maq_law *law, double x);
/* The least x with cdf(x) >= p, and the least x with sf(x) <= q; 0 <= p, q <= 1. The second keeps its digits for tiny q. */
double maq_law_quantile(const struct maq_law *law, double p);
double maq_law_upper(const struct maq_law *law, double q);
double maq_law_mean(const struct maq_law *law);
double maq_law_variance(const struct maq_law *law);

/* A draw, by inversion: one number of r, and one more for each mixture on the way. */
double maq_law_sample(const struct maq_law *law, struct maq_rng *r);

#endif
