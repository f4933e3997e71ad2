/* SPDX-License-Identifier: Apache-2.0 */
/* summary.h - summaries of small samples, in a fixed summation order. */
#ifndef MAQ_BASE_STAT_SUMMARY_H
#define MAQ_BASE_STAT_SUMMARY_H

#include <stdbool.h>
#include <stddef.h>

/* Sum with Kahan compensation, in index order. */
double maq_sum(const double *x, size_t n);
double maq_mean(const double *x, size_t n); /* NaN for n = 0 */

/* Quantile q in [0,1] with linear interpolation between order statistics (numpy's default). Sorts x in place;
 * NaN for n = 0. */
double maq_quantile(double *x, size_t n, double q);

/* The smallest value with at least q of the weight at or below it. Sorts w by value; NaN for n = 0. Weights are > 0. */
struct maq_weighted {
    double value, weight;
};
double maq_weighted_quantile(struct maq_weighted *w, size_t n, double q);

/*
 * Kendall's tau-b, how alike two orders are: (C - D) / sqrt((P - Tx) (P - Ty)) over the P = n (n - 1) / 2 pairs, with C in the
 * same order on both sides, D in opposite order, Tx and Ty tied on one side (Kendall, "Rank correlation methods"). 1 = the same
 * order, 0 = none, -1 = reversed; NaN when a side is constant. Takes n log n steps; sorts the pairs. false when out of memory.
 */
struct maq_pair {
    double x, y;
};
bool maq_kendall_tau(double *tau, struct maq_pair *pairs, size_t n);

/* Spearman's rho: the correlation of the ranks, equal values at their mean rank. Replaces the values by their ranks; otherwise as above. */
bool maq_spearman_rho(double *rho, struct maq_pair *pairs, size_t n);

#endif
