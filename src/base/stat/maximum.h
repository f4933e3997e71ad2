/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maximum.h - the slowest of n: the largest of n independent draws of one law.
 *
 * P(max <= x) = F(x)^n. With n in the tens of thousands F is so near to 1 that it has to be taken from the other side: exp(n ln(1 - S(x))),
 * S the survival function; a quantile at p is the draw that 1 - p^(1/n) = -expm1(ln(p) / n) of the law exceed.
 */
#ifndef MAQ_BASE_STAT_MAXIMUM_H
#define MAQ_BASE_STAT_MAXIMUM_H

#include "base/stat/law.h"

/* Mean of the largest of n draws from the standard normal distribution (Blom 1958). */
double maq_expected_maximum(uint32_t n);

double maq_max_cdf(const struct maq_law *law, double n, double x);
double maq_max_sf(const struct maq_law *law, double n, double x);
double maq_max_quantile(const struct maq_law *law, double n, double p);
/* Mean and variance of a continuous law's largest of n, by integration of 1 - P(max <= x); relative error about 1e-10. */
void maq_max_moments(double *mean, double *variance, const struct maq_law *law, double n);

#endif
