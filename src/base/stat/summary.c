/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.c - sums, means, quantiles, and rank correlations (Kendall's tau by counting inversions in a merge sort,
 * Spearman's rho) of small samples. See summary.h.
 */
#include "base/stat/summary.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/alloc.h"

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

static int by_weighted_value(const void *pa, const void *pb)
{
    return by_value(&((const struct maq_weighted *)pa)->value, &((const struct maq_weighted *)pb)->value);
}

double maq_weighted_quantile(struct maq_weighted *w, size_t n, double q)
{
    double total = 0, sum = 0;
    if (n == 0)
        return (double)NAN;
    qsort(w, n, sizeof *w, by_weighted_value);
    for (size_t i = 0; i < n; i++)
        total += w[i].weight;
    for (size_t i = 0; i < n; i++) {
        sum += w[i].weight;
        if (sum >= q * total * (1 - 1e-12)) /* the sum of n shares of 1/n may miss q by rounding */
            return w[i].value;
    }
    return w[n - 1].value;
}

/* ---- rank correlation ---- */

static int by_x_then_y(const void *pa, const void *pb)
{
    const struct maq_pair *a = pa, *b = pb;
    int x = by_value(&a->x, &b->x);
    return x != 0 ? x : by_value(&a->y, &b->y);
}

/* Sorts n values by merging; returns how many pairs stood in descending order. `spare` has room for n. */
static uint64_t count_inversions(double *y, double *spare, size_t n)
{
    uint64_t inversions = 0;
    for (size_t width = 1; width < n; width *= 2) {
        for (size_t from = 0; from < n; from += 2 * width) {
            size_t middle = from + width < n ? from + width : n, to = middle + width < n ? middle + width : n;
            for (size_t i = from, j = middle, k = from; k < to; k++) {
                bool left = j == to || (i < middle && y[i] <= y[j]);
                inversions += left ? 0 : middle - i;
                spare[k] = left ? y[i++] : y[j++];
            }
        }
        for (size_t i = 0; i < n; i++)
            y[i] = spare[i];
    }
    return inversions;
}

/* Pairs within runs of equal neighbours. */
static uint64_t tied(const double *sorted, size_t n)
{
    uint64_t pairs = 0, run = 0;
    for (size_t i = 1; i < n; i++) {
        run = sorted[i] == sorted[i - 1] ? run + 1 : 0;
        pairs += run;
    }
    return pairs;
}

/* Knight, "A computer method for calculating Kendall's tau with ungrouped data", J. Am. Stat. Assoc. 61 (1966): sorted by x,
 * the discordant pairs are the inversions of y. */
bool maq_kendall_tau(double *tau, struct maq_pair *pairs, size_t n)
{
    double *side = maq__malloc((2 * n + 1) * sizeof *side);
    if (!side)
        return false;
    uint64_t all = n > 0 ? (uint64_t)n * (n - 1) / 2 : 0, both = 0, run = 0;
    qsort(pairs, n, sizeof *pairs, by_x_then_y);
    for (size_t i = 1; i < n; i++) {
        run = by_x_then_y(&pairs[i - 1], &pairs[i]) == 0 ? run + 1 : 0;
        both += run;
    }
    for (size_t i = 0; i < n; i++)
        side[i] = pairs[i].x;
    uint64_t tied_x = tied(side, n);
    for (size_t i = 0; i < n; i++)
        side[i] = pairs[i].y;
    uint64_t discordant = count_inversions(side, side + n, n), tied_y = tied(side, n);
    double concordant = (double)(all - tied_x - tied_y + both - discordant);
    double scale = sqrt((double)(all - tied_x) * (double)(all - tied_y));
    *tau = scale > 0 ? (concordant - (double)discordant) / scale : (double)NAN;
    free(side);
    return true;
}

/* Ranks of sorted values from 1, equal ones at their mean: rank[i] belongs to at[i]. */
static void rank_sorted(const struct maq_pair *at, double *rank, size_t n)
{
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && at[end].x == at[i].x;)
            end++;
        for (size_t k = i; k < end; k++)
            rank[k] = 0.5 * (double)(i + 1 + end);
    }
}

static void swap_sides(struct maq_pair *pairs, size_t n)
{
    for (size_t i = 0; i < n; i++)
        pairs[i] = (struct maq_pair){pairs[i].y, pairs[i].x};
}

bool maq_spearman_rho(double *rho, struct maq_pair *pairs, size_t n)
{
    double *rank = maq__malloc((n + 1) * sizeof *rank), middle = 0.5 * (double)(n + 1), xy = 0, xx = 0, yy = 0;
    if (!rank)
        return false;
    for (int side = 0; side < 2; side++) { /* values become ranks, x first; the sides are back in place at the end */
        qsort(pairs, n, sizeof *pairs, by_x_then_y);
        rank_sorted(pairs, rank, n);
        for (size_t i = 0; i < n; i++)
            pairs[i].x = rank[i];
        swap_sides(pairs, n);
    }
    for (size_t i = 0; i < n; i++) {
        double x = pairs[i].x - middle, y = pairs[i].y - middle;
        xy += x * y;
        xx += x * x;
        yy += y * y;
    }
    *rho = xx > 0 && yy > 0 ? xy / sqrt(xx * yy) : (double)NAN;
    free(rank);
    return true;
}
