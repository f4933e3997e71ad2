/* SPDX-License-Identifier: Apache-2.0 */
/*
 * order_statistics.c - the binomial distribution function by its logarithms, and ranks found by bisection on it. See
 * order_statistics.h.
 */
#include "base/stat/order_statistics.h"

#include <math.h>

#include "base/stat/special_functions.h"

/* ln of C(n, k) p^k (1 - p)^(n - k). */
static double log_binomial(double k, double n, double p)
{
    return maq_log_gamma(n + 1) - maq_log_gamma(k + 1) - maq_log_gamma(n - k + 1) + k * log(p) + (n - k) * log1p(-p);
}

double maq_binomial_cdf(int64_t k, uint32_t n, double p)
{
    if (k < 0)
        return 0;
    if (k >= (int64_t)n)
        return 1;
    double sum = 0, term = exp(log_binomial((double)k, n, p)), odds = (1 - p) / p;
    double mode = p * n;
    if ((double)k <= mode) { /* terms fall away downwards */
        for (int64_t i = k; i >= 0 && term > sum * 1e-18; i--) {
            sum += term;
            term *= (double)i / (double)(n - i + 1) * odds;
        }
        return sum;
    }
    term = exp(log_binomial((double)k + 1, n, p));
    for (int64_t i = k + 1; i <= (int64_t)n && term > sum * 1e-18; i++) {
        sum += term;
        term *= (double)(n - i) / (double)(i + 1) / odds;
    }
    return 1 - sum;
}

uint32_t maq_order_upper(uint32_t n, double p, double confidence)
{
    uint32_t low = 1, high = n;
    if (n == 0 || maq_binomial_cdf((int64_t)n - 1, n, p) < confidence)
        return 0;
    while (low < high) {
        uint32_t k = low + (high - low) / 2;
        if (maq_binomial_cdf((int64_t)k - 1, n, p) >= confidence)
            high = k;
        else
            low = k + 1;
    }
    return high;
}

uint32_t maq_order_lower(uint32_t n, double p, double confidence)
{
    uint32_t low = 0, high = n; /* P(Bin >= k) falls with k */
    while (low < high) {
        uint32_t k = low + (high - low + 1) / 2;
        if (1 - maq_binomial_cdf((int64_t)k - 1, n, p) >= confidence)
            low = k;
        else
            high = k - 1;
    }
    return low;
}

double maq_order_limit(const double *ascending, uint32_t n, double p, double confidence)
{
    uint32_t k = maq_order_upper(n, p, confidence);
    return k > 0 ? ascending[k - 1] : (double)NAN;
}

void maq_order_interval(double *low, double *high, const double *ascending, uint32_t n, double p, double confidence)
{
    double both = 0.5 * (1 + confidence);
    uint32_t k = maq_order_lower(n, p, both);
    *low = k > 0 ? ascending[k - 1] : (double)NAN;
    *high = maq_order_limit(ascending, n, p, both);
}
