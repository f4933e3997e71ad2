/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair_bound.h - lower bounds of every pipeline that runs a slice on an island, from the parallelizer's profiles alone.
 *
 * A slice q on island i takes at least s(q, i) = 1 / samples_per_s seconds of the whole island per sample, and at best
 * an island is busy all the time. With shares y_i >= 0 that add up to 1 (dual prices of the islands), a pipeline that
 * runs slice q on island i has, per sample of a wave,
 *
 *   bottleneck >= A = y_i s(q, i) + cheapest rows of slices that cover the rest, slice r at min_j y_j s(r, j)
 *   fill       >= F = s(q, i)     + cheapest rows that cover the rest, slice r at min_j s(r, j)
 *
 * so that T >= samples ((waves - 1) A + F). A is the largest value over several y, which are raised where a row loads
 * an island more than the others. A class counts with the least bound over its places in the model. This is the
 * imbalance rule as a bound: a slice too large for its island has a large A. (Too small a slice is not ruled out: the
 * island can serve other layer ranges, or be used in part.)
 */
#ifndef MAQ_PLANNER_EXTERNAL_PAIR_BOUND_H
#define MAQ_PLANNER_EXTERNAL_PAIR_BOUND_H

#include "base/arena.h"

struct maq_pair_bounds {
    double root_bottleneck, root_fill; /* of any pipeline */
    const double *bottleneck, *fill;   /* [class * n_islands + island] */
};

struct maq_pair_profile {
    uint32_t n_atoms, n_classes, n_islands;
    const uint32_t *class_of; /* [first * n_atoms + end - 1] */
    const double *seconds;    /* [class * n_islands + island]: s(q, i); HUGE_VAL: cannot be there */
};

/* false when out of memory. */
bool maq_pair_bounds_init(struct maq_pair_bounds *out, const struct maq_pair_profile *profile, struct maq_arena *arena);

#endif
