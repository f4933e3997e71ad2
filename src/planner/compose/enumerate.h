/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enumerate.h - branch and bound over boxes of bottleneck and synchronization: all compositions of a table below a
 * cutoff, enumerated.
 *
 * What comes out are the boxes that no bound refuted. labels.h searches them exactly; their least bound is below
 * every composition of the table. enumerate.c has the rules by which a box is refuted, shaved, halved or cut.
 */
#ifndef MAQ_PLANNER_COMPOSE_ENUMERATE_H
#define MAQ_PLANNER_COMPOSE_ENUMERATE_H

#include "planner/compose/bottleneck_box.h"

struct maq_boxes {
    struct maq_bottleneck_box *at;
    uint32_t n, room;
    double bound_s;    /* lower bound of all compositions below the cutoff; the cutoff where no box is left */
    uint64_t programs; /* relaxed programs solved */
    bool counted;      /* some relaxed program counted devices */
};

/*
 * Boxes that together hold every composition below the cutoff, without those that the relaxed programs refute. A composition that
 * a program finds and that is better than *best becomes *best, and the cutoff is lowered to it. Boxes live in the arena. false
 * when out of memory.
 */
bool maq_boxes_cover(struct maq_boxes *boxes, struct maq_composition *best, const struct maq_layer_ranges *layer_ranges,
                     const struct maq_bottleneck_box_options *options, struct maq_arena *arena);

/* Whether priced programs alone prove that no composition is below the cutoff. false when out of memory. */
bool maq_boxes_refute(bool *refuted, const struct maq_layer_ranges *layer_ranges, double cutoff_s,
                      struct maq_arena *arena);

#endif
