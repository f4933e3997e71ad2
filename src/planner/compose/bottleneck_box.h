/*
 * bottleneck_box.h - a box of bottleneck and synchronization: within it, the least sum of the stages' times bounds the step, and a relaxed program
 * finds it.
 */
#ifndef MAQ_PLANNER_COMPOSE_BOTTLENECK_BOX_H
#define MAQ_PLANNER_COMPOSE_BOTTLENECK_BOX_H

#include "planner/compose/layer_ranges.h"

#define MAQ_BOX_DUALS 2 /* relaxed programs of a box: with its best prices, with none */

struct maq_bottleneck_box {
    double bottleneck_lo, bottleneck_hi, sync_lo, sync_hi;
    double least_s; /* of sum t_i and what a step waits, proven */
    double bound_s;
    bool found; /* the program's path keeps to the devices; where it lies: */
    double bottleneck_at, sync_at;
    double price[MAQ_BOX_DUALS][MAQ_STAGE_KINDS]; /* seconds per device */
    const double *rest[MAQ_BOX_DUALS];            /* [(rows + 1) * (atoms + 1)]: see priced_bound.c */
};

/* Called with every path that a relaxed program comes upon, front stage first; it need not keep to the devices there are. */
typedef void maq_path_hook(void *user, const struct maq_composition *path);

struct maq_bottleneck_box_options {
    double cutoff_s;     /* only what is below it matters */
    double grain_s;      /* boxes are split until their width counts for less than this */
    uint32_t most;       /* boxes looked at; the rest are taken as they are */
    uint32_t beam;       /* states kept of those that count: for good compositions, without a bound; 0: all */
    maq_path_hook *hook; /* may be NULL */
    void *user;
};

#endif
