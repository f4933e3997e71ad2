/* stats.c - summaries of small samples: see stats.h. */
#include "base/stats.h"

#include <math.h>
#include <stdlib.h>

double maq_sum(const double *x, size_t n)
{
    double sum = 0, lost = 0;
    for (size_t i = 0; i < n; i++) {
        double term = x[i] - lost;
        double next = sum + term;
        lost = (next - sum) - term;
        if (!isfinite(next))
            lost = 0; /* inf - inf would turn an infinite sum into NaN */
        sum = next;
    }
    return sum;
}

double maq_mean(const double *x, size_t n)
{
    return n ? maq_sum(x, n) / (double)n : (double)NAN;
}

/* Ascending, NaN last: a total order, as qsort needs. */
static int by_value(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

double maq_quantile(double *x, size_t n, double q)
{
    if (n == 0 || isnan(q))
        return (double)NAN;
    qsort(x, n, sizeof(*x), by_value);
    if (isnan(x[n - 1]))
        return (double)NAN;
    double at = (q < 0 ? 0 : q > 1 ? 1 : q) * (double)(n - 1);
    size_t below = (size_t)at;
    double part = at - (double)below;
    if (below + 1 >= n || part <= 0)
        return x[below];
    return x[below] + part * (x[below + 1] - x[below]);
}
