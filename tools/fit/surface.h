/* SPDX-License-Identifier: Apache-2.0 */
/*
 * surface.h - fits a piecewise multilinear surface to scattered points, and drops the knots it can do without.
 *
 * Minimizes, over the values S at the knots of a tensor grid,
 *
 *   sum_j w_j (S(x_j) - y_j)^2  +  smooth * sum over lines and knots of (second difference of S)^2
 *                               +  flat   * sum over lines and knots of (first difference of S)^2
 *
 * by conjugate gradients. The second difference is that of a knot against the line between its neighbours; both
 * penalties only decide where points are few; `smooth` is larger along the axes on which the surface bends less. w_j
 * are those of an iteration that turns squares into absolute values for points that lie far off (Huber), so that a
 * row measured wrongly does not bend its neighbourhood.
 */
#ifndef FIT_SURFACE_H
#define FIT_SURFACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIT_AXES 4
#define FIT_KNOTS 128

struct fit_points {
    size_t n;
    const double (*x)[FIT_AXES];
    const double *y;
    const bool *left_out; /* points that do not count; NULL = none */
};

struct fit_surface {
    unsigned n[FIT_AXES]; /* knots of each axis, at least 1 */
    double knots[FIT_AXES][FIT_KNOTS];
    double *values; /* [product of n], last axis fastest; owned */
    size_t size;
};

/* Knots at the distinct places of the points, at most most[a] of them on axis a, ends kept. */
void fit_place_knots(struct fit_surface *s, const struct fit_points *points, const unsigned most[FIT_AXES]);
/* False when out of memory. */
bool fit_solve(struct fit_surface *s, const struct fit_points *points);
/* Drops knots whose removal changes the surface by less than `tolerance` in the mean; values are to be solved again. */
void fit_thin(struct fit_surface *s, double tolerance);
double fit_at(const struct fit_surface *s, const double x[FIT_AXES]);
void fit_free(struct fit_surface *s);

#endif
