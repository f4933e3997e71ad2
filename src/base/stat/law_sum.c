/* SPDX-License-Identifier: Apache-2.0 */
/*
 * law_sum.c - the fast Fourier transform, masses of laws on the grid, products of transforms, and quantiles of the
 * sum. law_sum.h has the equations.
 */
#include "base/stat/law_sum.h"

#include <math.h>
#include <string.h>

#include "base/stat/maximum.h"

#define PI 3.14159265358979323846
#define NOISE 1e-16 /* masses that are rounding */
#define FINE 8      /* parts of a cell that a law's probability is split by */
#define FACTORS 513 /* of a lognormal factor, evenly over FACTORS_REACH deviations to either side */
#define FACTORS_REACH 8.0

bool maq_law_sum_init(struct maq_law_sum *s, double h, double cells, struct maq_arena *arena)
{
    uint32_t n = 64;
    if (!(cells <= MAQ_SUM_MOST))
        return false;
    while (n < cells)
        n *= 2;
    *s = (struct maq_law_sum){.n = n, .h = h};
    double **room[] = {&s->re, &s->im, &s->part_re, &s->part_im, &s->turn_re, &s->turn_im};
    for (size_t i = 0; i < sizeof room / sizeof *room; i++)
        if (!(*room[i] = MAQ_ARENA_NEW(arena, double, n)))
            return false;
    for (uint32_t k = 0; k < n; k++)
        s->re[k] = 1;
    for (uint32_t k = 0; k < n / 2; k++) {
        s->turn_re[k] = cos(2 * PI * k / n);
        s->turn_im[k] = -sin(2 * PI * k / n);
    }
    return true;
}

/* Places with their bits in reverse order. */
static void reverse(double *x, uint32_t n)
{
    for (uint32_t i = 1, k = 0; i < n; i++) {
        uint32_t bit = n / 2;
        for (; k & bit; bit /= 2)
            k ^= bit;
        k |= bit;
        if (i < k) {
            double keep = x[i];
            x[i] = x[k];
            x[k] = keep;
        }
    }
}

/* sum over i of x_i e^(-2 pi i k / n), in place. */
static void transform(double *re, double *im, const struct maq_law_sum *s)
{
    uint32_t n = s->n;
    reverse(re, n);
    reverse(im, n);
    for (uint32_t half = 1; half < n; half *= 2)
        for (uint32_t from = 0; from < n; from += 2 * half)
            for (uint32_t i = 0; i < half; i++) {
                uint32_t a = from + i, b = a + half;
                double c = s->turn_re[i * (n / 2 / half)], d = s->turn_im[i * (n / 2 / half)];
                double x = re[b] * c - im[b] * d, y = re[b] * d + im[b] * c;
                re[b] = re[a] - x;
                im[b] = im[a] - y;
                re[a] += x;
                im[a] += y;
            }
}

/* Multiplies the sum by f^count. */
static void multiply(double *re, double *im, double f_re, double f_im, uint32_t count)
{
    for (; count > 0; count /= 2) {
        if (count & 1u) {
            double keep = *re * f_re - *im * f_im;
            *im = *re * f_im + *im * f_re;
            *re = keep;
        }
        double square = f_re * f_re - f_im * f_im;
        f_im = 2 * f_re * f_im;
        f_re = square;
    }
}

static void add_part(struct maq_law_sum *s, uint32_t count)
{
    transform(s->part_re, s->part_im, s);
    for (uint32_t k = 0; k < s->n; k++)
        multiply(&s->re[k], &s->im[k], s->part_re[k], s->part_im[k], count);
}

/* Mass at x cells above the first, split between its neighbours. */
static void put(double *mass, double x, double m)
{
    double cell = floor(x), part = x - cell;
    mass[(uint32_t)cell] += m * (1 - part);
    mass[(uint32_t)cell + 1] += m * part;
}

bool maq_law_sum_add(struct maq_law_sum *s, const struct maq_law *law, double group, uint32_t count)
{
    double low = maq_max_quantile(law, group, MAQ_SUM_OUTSIDE), high = maq_law_upper(law, MAQ_SUM_OUTSIDE / group),
           h = s->h;
    double first = floor(low / h) - 1, cells = ceil(high / h) + 1 - first, sum = 0, before = 0;
    if (!(cells + 1 <= s->n))
        return false;
    memset(s->part_re, 0, s->n * sizeof *s->part_re);
    memset(s->part_im, 0, s->n * sizeof *s->part_im);
    for (uint32_t i = 0; i < (uint32_t)cells * FINE; i++) {
        double now = maq_max_cdf(law, group, (first + (i + 1.0) / FINE) * h);
        if (now > before)
            put(s->part_re, (i + 0.5) / FINE, now - before);
        sum += now - before;
        before = now;
    }
    for (uint32_t i = 0; i <= (uint32_t)cells; i++)
        s->part_re[i] /= sum;
    s->offset += (int64_t)first * count;
    add_part(s, count);
    return true;
}

/* The trapezoidal rule over the factor's normal deviate: its moments come out to rounding. */
static uint32_t spread(double value[FACTORS], double weight[FACTORS], double sigma)
{
    double sum = 0;
    if (!(sigma > 0)) {
        value[0] = weight[0] = 1;
        return 1;
    }
    for (int i = 0; i < FACTORS; i++) {
        double z = FACTORS_REACH * (2.0 * i / (FACTORS - 1) - 1);
        value[i] = exp(sigma * z);
        weight[i] = exp(-0.5 * z * z);
        sum += weight[i];
    }
    for (int i = 0; i < FACTORS; i++)
        weight[i] /= sum;
    return FACTORS;
}

bool maq_law_sum_add_grid(struct maq_law_sum *s, const struct maq_grid *part, double sigma, uint32_t count)
{
    double value[FACTORS], weight[FACTORS];
    uint32_t n = spread(value, weight, sigma);
    double low = (double)part->first * part->h * value[0],
           high = (double)(part->first + part->n) * part->h * value[n - 1];
    double first = floor(low / s->h) - 1, cells = ceil(high / s->h) + 1 - first;
    if (!(cells + 1 <= s->n))
        return false;
    memset(s->part_re, 0, s->n * sizeof *s->part_re);
    memset(s->part_im, 0, s->n * sizeof *s->part_im);
    for (uint32_t k = 0; k < n; k++)
        for (uint32_t i = 0; i < part->n; i++)
            put(s->part_re, (double)(part->first + i) * part->h * value[k] / s->h - first, weight[k] * part->mass[i]);
    s->offset += (int64_t)first * count;
    add_part(s, count);
    return true;
}

void maq_law_sum_add_chances(struct maq_law_sum *s, double value, double share, uint32_t count)
{
    memset(s->part_re, 0, s->n * sizeof *s->part_re);
    memset(s->part_im, 0, s->n * sizeof *s->part_im);
    double cell = floor(value / s->h), part = value / s->h - cell;
    s->part_re[0] = 1 - share; /* more than n cells away is as many less: masses are modulo n */
    s->part_re[(uint32_t)fmod(cell, s->n)] += share * (1 - part);
    s->part_re[(uint32_t)fmod(cell + 1, s->n)] += share * part;
    add_part(s, count);
}

bool maq_law_sum_finish(struct maq_grid *out, struct maq_law_sum *s, double low, struct maq_arena *arena)
{
    uint32_t n = s->n, from = 0;
    double *mass = MAQ_ARENA_NEW(arena, double, n), sum = 0;
    int64_t first = (int64_t)floor(low / s->h), turned = (first - s->offset) % (int64_t)n;
    if (!mass)
        return false;
    for (uint32_t k = 0; k < n; k++) /* back: the transform of the conjugate */
        s->im[k] = -s->im[k];
    transform(s->re, s->im, s);
    for (uint32_t i = 0; i < n; i++) {
        double m = s->re[(uint32_t)((turned + (int64_t)n + i) % n)] / n;
        mass[i] = m > NOISE ? m : 0;
    }
    while (from + 1 < n && mass[from] <= 0)
        from++;
    while (n > from + 1 && mass[n - 1] <= 0)
        n--;
    for (uint32_t i = from; i < n; i++)
        sum += mass[i];
    for (uint32_t i = from; i < n; i++)
        mass[i] /= sum;
    *out = (struct maq_grid){first + from, n - from, s->h, mass + from};
    return true;
}

void maq_grid_quantiles(double *out, uint32_t n, const struct maq_grid *g)
{
    double below = 0, mass = g->mass[0];
    uint32_t cell = 0;
    for (uint32_t i = 0; i < n; i++) {
        double p = (i + 0.5) / n;
        while (below + mass < p && cell + 1 < g->n) {
            below += mass;
            mass = g->mass[++cell];
        }
        double part = mass > 0 ? fmin((p - below) / mass, 1) : 0.5; /* a cell's mass is spread around its middle */
        out[i] = ((double)g->first + cell + part - 0.5) * g->h;
    }
}
