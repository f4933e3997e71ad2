/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kernel_law.c - the law of a kernel's body (lognormal or tabled quantiles), and its standard deviation with slow
 * runs. See variation.h.
 */
#include <math.h>

#include "risk/step/variation.h"

struct maq_law maq_kernel_law_body(const struct maq_kernel_law *law)
{
    if (law->n_quantiles > 0)
        return maq_law_pool(law->quantile, law->n_quantiles);
    return law->cv > 0 ? maq_law_lognormal(1, maq_lognormal_sigma(law->cv)) : maq_law_constant(1);
}

double maq_kernel_law_sd(const struct maq_kernel_law *law)
{
    struct maq_law body = maq_kernel_law_body(law);
    double m = maq_law_mean(&body), q = law->slow_share, r = law->slow_ratio, mean = m * (1 - q + q * r),
           square = (maq_law_variance(&body) + m * m) * (1 - q + q * r * r);
    return sqrt(fmax(square - mean * mean, 0));
}
