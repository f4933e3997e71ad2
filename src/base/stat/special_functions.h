/* SPDX-License-Identifier: Apache-2.0 */
/*
 * special_functions.h - the special functions that laws of durations need, with their relative accuracy kept in both tails.
 *
 * Where a probability can be close to 0 or to 1 there are two functions, one for each side; the other side is never made by
 * subtraction from 1.
 */
#ifndef MAQ_BASE_STAT_SPECIAL_FUNCTIONS_H
#define MAQ_BASE_STAT_SPECIAL_FUNCTIONS_H

#include <stdint.h>

double maq_normal_cdf(double z); /* below z; maq_normal_cdf(-z) is the upper tail */
double maq_normal_pdf(double z);
/* z with maq_normal_cdf(z) = p, 0 < p < 1; -infinity at 0, infinity at 1. For an upper tail of q: -maq_normal_quantile(q). */
double maq_normal_quantile(double p);

/* Regularized incomplete gamma functions: P(a, x) = 1/Gamma(a) * integral of t^(a-1) e^-t over 0..x, and Q = 1 - P. a > 0, x >= 0. */
double maq_gamma_p(double a, double x);
double maq_gamma_q(double a, double x);
/* x^a e^-x / Gamma(a), without overflow or cancellation at large a. */
double maq_gamma_kernel(double a, double x);

/* ln Gamma(x), x > 0, and its derivatives. */
double maq_log_gamma(double x);
double maq_digamma(double x);
double maq_trigamma(double x);

/* The least n with P(N <= n) >= p, N of Poisson's law, 0 < p < 1. */
uint32_t maq_poisson_quantile(double mean, double p);

/* ln(1 + x) - x, accurate around 0. */
double maq_log1p_less(double x);

#endif
