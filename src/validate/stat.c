/* SPDX-License-Identifier: Apache-2.0 */
/* stat.c - statistics of a set of errors: median, 90th percentile, bias and mean. See stat.h. */
#include "validate/stat.h"

#include <math.h>

#include "base/stat/summary.h"

static struct maq_validate_stat no_stat(void)
{
    double nan_value = (double)NAN;
    return (struct maq_validate_stat){
        .median = nan_value, .mean = nan_value, .p90 = nan_value, .bias = nan_value, .median_signed = nan_value};
}

struct maq_validate_stat maq__validate_stat(double *errors, uint32_t n)
{
    struct maq_validate_stat s = no_stat();
    s.n = n;
    if (n == 0)
        return s;
    s.median_signed = maq_quantile(errors, n, 0.5);
    s.bias = maq_mean(errors, n);
    for (uint32_t i = 0; i < n; i++)
        errors[i] = fabs(errors[i]);
    s.median = maq_quantile(errors, n, 0.5);
    s.p90 = maq_quantile(errors, n, 0.9);
    s.mean = maq_mean(errors, n);
    return s;
}
