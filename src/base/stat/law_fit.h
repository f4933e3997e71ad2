/* SPDX-License-Identifier: Apache-2.0 */
/*
 * law_fit.h - the laws that a weighted sample may follow, by maximum likelihood, and how far each is from it.
 */
#ifndef MAQ_BASE_STAT_LAW_FIT_H
#define MAQ_BASE_STAT_LAW_FIT_H

#include "base/arena.h"
#include "base/stat/law.h"

/* A sample: values > 0 ascending, with weights > 0 that add up to 1. */
struct maq_sample {
    uint32_t n;
    const double *value, *weight;
};

struct maq_fitted_law {
    const char *name; /* static */
    struct maq_law law;
    double
        distance; /* Kolmogorov and Smirnov's: the largest gap between the law's and the sample's distribution function */
};

#define MAQ_FITTED_LAWS 12

/* Fits every law that can be to out[], ascending by distance (equal ones in the order of the list in law_fit.c); returns how many.
 * Mixtures live in `arena`. 0: the sample is a single value, or memory is short. */
uint32_t maq_fit_laws(struct maq_fitted_law out[MAQ_FITTED_LAWS], const struct maq_sample *s, struct maq_arena *arena);

/* Otsu's threshold of ln x: how many values are below the cut that leaves the least variance inside the two parts (Otsu, "A threshold
 * selection method from gray-level histograms", 1979). */
uint32_t maq_otsu_cut(const struct maq_sample *s);

double maq_sample_distance(const struct maq_sample *s, const struct maq_law *law);

#endif
