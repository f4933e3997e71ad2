/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_statistics.h - confidence of quantiles from order statistics: no law is assumed.
 *
 * Of n independent values, the number at or below the p-quantile is binomial(n, p). So the k-th smallest is at or above it with
 * probability P(Bin(n, p) <= k - 1) (David and Nagaraja, "Order statistics", 7.1).
 */
#ifndef MAQ_BASE_STAT_ORDER_STATISTICS_H
#define MAQ_BASE_STAT_ORDER_STATISTICS_H

#include <stdint.h>

/* P(Bin(n, p) <= k), 0 < p < 1. */
double maq_binomial_cdf(int64_t k, uint32_t n, double p);
/* The least k in 1..n with P(Bin(n, p) <= k - 1) >= confidence: the k-th smallest is an upper bound of the p-quantile. 0: n is
 * too small for one. */
uint32_t maq_order_upper(uint32_t n, double p, double confidence);
/* The largest k with P(Bin(n, p) >= k) >= confidence: the k-th smallest is a lower bound. 0: n is too small for one. */
uint32_t maq_order_lower(uint32_t n, double p, double confidence);

/* Of n ascending independent values, the bounds of their p-quantile that hold with a probability: above it, below it, and both. NaN
 * where n is too small for one. */
double maq_order_limit(const double *ascending, uint32_t n, double p, double confidence);
void maq_order_interval(double *low, double *high, const double *ascending, uint32_t n, double p, double confidence);

/*
 * The guarantee that reports offer: with 95 % confidence at most 5 % of what may come exceed it. It is the upper bound of the 95th
 * percentile (a tolerance limit: Wilks, "Determination of sample sizes for setting tolerance limits", 1941); 59 values are the fewest
 * that give one, 0.95^59 < 0.05.
 */
static inline double maq_order_guarantee(const double *ascending, uint32_t n)
{
    return maq_order_limit(ascending, n, 0.95, 0.95);
}

#endif
