/* stats.h - summaries of small samples, in a fixed summation order. */
#ifndef MAQ_BASE_STATS_H
#define MAQ_BASE_STATS_H

#include <stddef.h>

/* Sum with Kahan compensation, in index order. */
double maq_sum(const double *x, size_t n);
double maq_mean(const double *x, size_t n); /* NaN for n = 0 */

/* Quantile q in [0,1] with linear interpolation between order statistics (numpy's default). Sorts x in place;
 * NaN for n = 0. */
double maq_quantile(double *x, size_t n, double q);

#endif
