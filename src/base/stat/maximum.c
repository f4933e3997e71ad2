/* SPDX-License-Identifier: Apache-2.0 */
/*
 * maximum.c - the slowest of n: see maximum.h.
 *
 * Moments: with c = the median of the maximum, E[(M - c)] = int over x > c of P(M > x) - int over x < c of P(M <= x), and the second
 * moment likewise with 2 |x - c|. Each side is cut into panels that follow the quantiles, 16-point Gauss-Legendre in each.
 */
#include "base/stat/maximum.h"

#include <math.h>

#include "base/stat/special_functions.h"

/* ln P(max <= x), from the side of the law that keeps its digits. */
static double log_cdf(const struct maq_law *law, double n, double x)
{
    double sf = maq_law_sf(law, x);
    return n * (sf < 0.5 ? log1p(-sf) : log(maq_law_cdf(law, x)));
}

double maq_expected_maximum(uint32_t n)
{
    return n > 1 ? maq_normal_quantile((n - 0.375) / (n + 0.25)) : 0.0;
}

double maq_max_cdf(const struct maq_law *law, double n, double x)
{
    return exp(log_cdf(law, n, x));
}

double maq_max_sf(const struct maq_law *law, double n, double x)
{
    return -expm1(log_cdf(law, n, x));
}

double maq_max_quantile(const struct maq_law *law, double n, double p)
{
    double each = log(p) / n;
    return each < -0.69 ? maq_law_quantile(law, exp(each)) : maq_law_upper(law, -expm1(each));
}

/* P(M > x) above the centre, P(M <= x) below it. */
static double side(const struct maq_law *law, double n, double x, bool above)
{
    double l = log_cdf(law, n, x);
    return above ? -expm1(l) : exp(l);
}

/* Gauss and Legendre's 16 points on (-1, 1): one half, they are symmetric (Abramowitz and Stegun, table 25.4). */
static const double node[8] = {0.095012509837637440185, 0.281603550779258913230, 0.458016777657227386342,
                               0.617876244402643748447, 0.755404408355003033895, 0.865631202387831743880,
                               0.944575023073232576078, 0.989400934991649932596};
static const double weight[8] = {0.189450610455068496285, 0.182603415044923588867, 0.169156519395002538189,
                                 0.149595988816576732081, 0.124628971255533872052, 0.095158511682492784810,
                                 0.062253523938647892863, 0.027152459411754094852};

/* Adds the integrals of side() and of 2 |x - c| side() over a panel. */
static void add_panel(double *first, double *second, const struct maq_law *law, double n, double c, double a, double b)
{
    bool above = a >= c;
    for (int i = 0; i < 16; i++) {
        double x = 0.5 * (a + b) + 0.5 * (b - a) * (i < 8 ? node[i] : -node[i - 8]);
        double w = 0.5 * (b - a) * weight[i % 8], f = side(law, n, x, above);
        *first += (above ? w : -w) * f;
        *second += 2 * w * fabs(x - c) * f;
    }
}

void maq_max_moments(double *mean, double *variance, const struct maq_law *law, double n)
{
    /* Panels end at these probabilities of their side. */
    static const double cuts[] = {0.5,  0.4,  0.3,  0.2,  0.1,   0.05,  0.02,  0.01,  1e-3, 1e-4,
                                  1e-5, 1e-6, 1e-8, 1e-9, 1e-10, 1e-12, 1e-14, 1e-16, 1e-18};
    double c = maq_max_quantile(law, n, 0.5), first = 0, second = 0;
    for (int above = 0; above < 2; above++) {
        double from = c;
        for (unsigned i = 1; i < sizeof cuts / sizeof *cuts; i++) {
            double to = above ? maq_law_upper(law, -expm1(log1p(-cuts[i]) / n)) : maq_max_quantile(law, n, cuts[i]);
            if (above)
                add_panel(&first, &second, law, n, c, from, to);
            else
                add_panel(&first, &second, law, n, c, to, from - fabs(from) * 1e-300);
            from = to;
        }
    }
    *mean = c + first;
    *variance = second - first * first;
}
