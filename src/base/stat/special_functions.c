/* SPDX-License-Identifier: Apache-2.0 */
/*
 * special_functions.c - the special functions that laws need: see special_functions.h.
 *
 *   normal quantile    rational approximations of Wichura, "Algorithm AS 241", Applied Statistics 37 (1988): about 1e-16 relative
 *   incomplete gamma   P by its power series for x < a + 1, Q by its continued fraction (Lentz's method) otherwise; Abramowitz
 *                      and Stegun 6.5.29, 6.5.31. The factor in front of both is x^a e^-x / Gamma(a), which at large a is
 *                          sqrt(a / 2 pi) exp(a (ln(1 + u) - u) - s(a)),  u = (x - a) / a
 *                      with Stirling's remainder s(a): three large terms that cancel are never formed
 *   digamma, trigamma  recurrence up to 10, asymptotic series from there; Abramowitz and Stegun 6.3.18, 6.4.12
 */
#include "base/stat/special_functions.h"

#include <math.h>
#include <stddef.h>

#include "base/check.h"

#define PI 3.14159265358979323846

double maq_normal_cdf(double z)
{
    return 0.5 * erfc(-z * 0.70710678118654752440);
}

double maq_normal_pdf(double z)
{
    return exp(-0.5 * z * z) * 0.39894228040143267794;
}

/* Coefficients from the lowest power, numerator and denominator, of the three ranges of AS 241. */
static const double centre[2][8] = {
    {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
     4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3},
    {1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
     3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3}};
static const double shoulder[2][8] = {
    {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
     1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
    {1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
     1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9}};
static const double tail[2][8] = {
    {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
     2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
    {1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
     1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15}};

static double seventh(const double c[8], double r)
{
    return ((((((c[7] * r + c[6]) * r + c[5]) * r + c[4]) * r + c[3]) * r + c[2]) * r + c[1]) * r + c[0];
}

static double ratio(const double c[2][8], double r)
{
    return seventh(c[0], r) / seventh(c[1], r);
}

double maq_normal_quantile(double p)
{
    double q = p - 0.5;
    if (fabs(q) <= 0.425)
        return q * ratio(centre, 0.180625 - q * q);
    double side = q < 0 ? p : 1 - p;
    if (side <= 0)
        return q < 0 ? -(double)INFINITY : (double)INFINITY;
    double r = sqrt(-log(side)), z = r <= 5 ? ratio(shoulder, r - 1.6) : ratio(tail, r - 5);
    return copysign(z, q);
}

/* For |x| small the series -x^2 / 2 + x^3 / 3 - ..., in t = x / (2 + x): ln(1 + x) = 2 (t + t^3 / 3 + t^5 / 5 + ...), and
 * 2 t - x = -x t. */
double maq_log1p_less(double x)
{
    if (fabs(x) > 0.3)
        return log1p(x) - x;
    double t = x / (2 + x), square = t * t, power = t * square, sum = 0;
    for (int k = 3; fabs(power) > 1e-18 * fabs(t) && k < 60; k += 2) {
        sum += power / k;
        power *= square;
    }
    return 2 * sum - x * t;
}

/* ln Gamma(a) - ((a - 1/2) ln a - a + ln(2 pi) / 2), a >= 10: Stirling's series (Abramowitz and Stegun 6.1.41). */
static double stirling_rest(double a)
{
    double r = 1 / (a * a);
    return (1.0 / 12 - r * (1.0 / 360 - r * (1.0 / 1260 - r * (1.0 / 1680 - r * (1.0 / 1188 - r * 691.0 / 360360))))) /
           a;
}

double maq_gamma_kernel(double a, double x)
{
    if (x <= 0)
        return 0;
    if (a < 10)
        return exp(a * log(x) - x - maq_log_gamma(a));
    double u = (x - a) / a;
    return sqrt(a / (2 * PI)) * exp(a * maq_log1p_less(u) - stirling_rest(a));
}

static double p_by_series(double a, double x)
{
    double term = 1 / a, sum = term;
    for (double k = 1; term > sum * 1e-17 && k < 1e7; k++) {
        term *= x / (a + k);
        sum += term;
    }
    return sum * maq_gamma_kernel(a, x);
}

/* Q(a, x) = kernel / (x + 1 - a - 1 (1 - a) / (x + 3 - a - 2 (2 - a) / (x + 5 - a - ...))) */
static double q_by_fraction(double a, double x)
{
    const double tiny = 1e-300;
    double b = x + 1 - a, c = 1 / tiny, d = 1 / b, h = d;
    for (double k = 1; k < 1e7; k++) {
        double factor = -k * (k - a);
        b += 2;
        d = factor * d + b;
        d = 1 / (fabs(d) < tiny ? tiny : d);
        c = b + factor / c;
        c = fabs(c) < tiny ? tiny : c;
        h *= c * d;
        if (fabs(c * d - 1) < 1e-16)
            break;
    }
    return h * maq_gamma_kernel(a, x);
}

double maq_gamma_p(double a, double x)
{
    MAQ_ASSERT(a > 0);
    if (!(x > 0))
        return 0;
    if (!isfinite(x))
        return 1;
    return x < a + 1 ? p_by_series(a, x) : 1 - q_by_fraction(a, x);
}

double maq_gamma_q(double a, double x)
{
    MAQ_ASSERT(a > 0);
    if (!(x > 0))
        return 1;
    if (!isfinite(x))
        return 0;
    return x < a + 1 ? 1 - p_by_series(a, x) : q_by_fraction(a, x);
}

double maq_log_gamma(double x)
{
    int sign;
    return lgamma_r(x, &sign); /* lgamma() writes a global */
}

double maq_digamma(double x)
{
    double below = 0;
    for (; x < 10; x++)
        below += 1 / x;
    double r = 1 / (x * x);
    return log(x) - 0.5 / x - below -
           r * (1.0 / 12 - r * (1.0 / 120 - r * (1.0 / 252 - r * (1.0 / 240 - r * (1.0 / 132 - r * 691.0 / 32760)))));
}

double maq_trigamma(double x)
{
    double below = 0;
    for (; x < 10; x++)
        below += 1 / (x * x);
    double r = 1 / (x * x);
    return below + 1 / x + 0.5 * r +
           r * (1.0 / 6 - r * (1.0 / 30 - r * (1.0 / 42 - r * (1.0 / 30 - r * (5.0 / 66 - r * 691.0 / 2730))))) / x;
}

uint32_t maq_poisson_quantile(double mean, double p)
{
    if (!(mean > 0))
        return 0;
    /* From the mode, where the mass is largest, down as far as anything is left and then up: no term overflows or is lost. */
    double mode = floor(mean), top = exp(mode * log(mean) - mean - lgamma(mode + 1)), below = 0, term = top;
    double n = mode;
    for (double k = mode; k >= 1 && term > top * 1e-18; k--) {
        term *= k / mean;
        below += term;
    }
    if (below + top >= p) { /* the answer is at the mode or below it */
        double sum = below + top;
        term = top;
        while (n > 0 && sum - term >= p) {
            sum -= term;
            term *= n / mean;
            n--;
        }
        return (uint32_t)n;
    }
    term = top;
    for (double sum = below + top; sum < p && n < 4e9 && term > 0; sum += term) {
        n++;
        term *= mean / n;
    }
    return (uint32_t)n;
}
