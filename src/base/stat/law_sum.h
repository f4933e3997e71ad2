/* SPDX-License-Identifier: Apache-2.0 */
/*
 * law_sum.h - the law of a sum of independent values, on a grid.
 *
 * A part's law is put on cells of width h, a value split between its two neighbours: that keeps the mean and adds less than h^2 / 4 to the
 * variance. The transform of the sum is the product of those of the parts, each to the power of how often it occurs:
 *
 *   f = transform of the masses of a part,   masses of the sum = inverse transform of prod f_k^(n_k)
 *
 * One transform for each part and one back (fast Fourier transform of n = 2^k cells: Cooley and Tukey 1965). Probabilities below about
 * 1e-15 are rounding, and are left out; what of a sum lies outside of its n cells comes in again at their other end, so the caller gives it
 * enough of them.
 */
#ifndef MAQ_BASE_STAT_LAW_SUM_H
#define MAQ_BASE_STAT_LAW_SUM_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/stat/law.h"

/* Mass of cell i, at (first + i) h. */
struct maq_grid {
    int64_t first;
    uint32_t n;
    double h, *mass;
};

struct maq_law_sum {
    uint32_t n;
    double h;
    int64_t offset;                      /* of cell 0, in cells */
    double *re, *im, *part_re, *part_im; /* [n] of the sum so far, of a part */
    double *turn_re, *turn_im;           /* [n / 2] roots of unity */
};

#define MAQ_SUM_MOST 65536u   /* cells */
#define MAQ_SUM_OUTSIDE 1e-18 /* probability of a part that is left out at either end */

/* Of nothing: 0. At least `cells` of them, of width h. false: too many, or out of memory. Everything in `arena`. */
bool maq_law_sum_init(struct maq_law_sum *s, double h, double cells, struct maq_arena *arena);
/* `count` independent values of the slowest of `group` of a law. false: wider than the sum may be. */
bool maq_law_sum_add(struct maq_law_sum *s, const struct maq_law *law, double group, uint32_t count);
/* `count` independent values of a grid's law times a lognormal factor of their own, with median 1. false: wider than the sum may be. */
bool maq_law_sum_add_grid(struct maq_law_sum *s, const struct maq_grid *part, double sigma, uint32_t count);
/* How many of `count` independent chances of `share` come up, times `value`, >= 0. */
void maq_law_sum_add_chances(struct maq_law_sum *s, double value, double share, uint32_t count);
/* The cells from the one that `low` is in. false: out of memory. */
bool maq_law_sum_finish(struct maq_grid *out, struct maq_law_sum *s, double low, struct maq_arena *arena);

/* Quantiles at (i + 1/2) / n, ascending; linear inside of a cell. */
void maq_grid_quantiles(double *out, uint32_t n, const struct maq_grid *g);

#endif
