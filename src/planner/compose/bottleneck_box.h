/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bottleneck_box.h - a box of branch and bound over compositions: a range of the bottleneck (the slowest stage) times
 * a range of the synchronization.
 *
 * Inside a box, (waves - 1) bottleneck_lo + sync_lo + update plus the least sum of the stages' times is a lower bound
 * of the step (stage_table.h has the formula of the step). The least sum is the optimum of a relaxed program, which
 * prices devices (priced_bound.h) or counts them (counted_bound.h). enumerate.h splits boxes.
 */
#ifndef MAQ_PLANNER_COMPOSE_BOTTLENECK_BOX_H
#define MAQ_PLANNER_COMPOSE_BOTTLENECK_BOX_H

#include "planner/compose/layer_ranges.h"

#define MAQ_BOX_DUALS 2 /* price vectors of a box: its best prices, and no prices */

struct maq_bottleneck_box {
    double bottleneck_lo, bottleneck_hi, sync_lo, sync_hi;
    double least_s; /* proven lower bound of sum t_i plus the waits of a step */
    double bound_s;
    bool found; /* the optimum of the relaxed program uses no more devices than there are; its place in the box: */
    double bottleneck_at, sync_at;
    double price[MAQ_BOX_DUALS][MAQ_STAGE_KINDS]; /* seconds per device */
    const double *rest[MAQ_BOX_DUALS];            /* [(rows + 1) * (atoms + 1)]: see priced_bound.c */
};

/* Called with the optimal path of every relaxed program, front stage first. The path may use more devices than there are. */
typedef void maq_path_hook(void *user, const struct maq_composition *path);

struct maq_bottleneck_box_options {
    double cutoff_s;     /* compositions at or above it are of no interest */
    double grain_s;      /* boxes are split until their width adds less than this to the step */
    uint32_t most;       /* boxes examined at most; the others keep the bound that they have */
    uint32_t beam;       /* beam width of the counting program: good compositions without a bound; 0: exact */
    maq_path_hook *hook; /* may be NULL */
    void *user;
};

#endif
