/* enumerate.h - all compositions of a table below a cutoff, in boxes. */
#ifndef MAQ_PLANNER_COMPOSE_ENUMERATE_H
#define MAQ_PLANNER_COMPOSE_ENUMERATE_H

#include "planner/compose/bottleneck_box.h"

struct maq_boxes {
    struct maq_bottleneck_box *at;
    uint32_t n, room;
    double bound_s;    /* of all compositions below the cutoff; the cutoff where there is no box */
    uint64_t programs; /* relaxed programs solved */
    bool counted;      /* devices were counted */
};

/*
 * Covers all compositions below the cutoff by boxes, dropping those that the relaxed programs refute. A composition that a program
 * comes upon and that is better than *best becomes *best (and the cutoff follows). false when out of memory.
 */
bool maq_boxes_cover(struct maq_boxes *boxes, struct maq_composition *best, const struct maq_layer_ranges *layer_ranges,
                     const struct maq_bottleneck_box_options *options, struct maq_arena *arena);

/* Whether prices alone show that no composition is below the cutoff. false when out of memory. */
bool maq_boxes_refute(bool *refuted, const struct maq_layer_ranges *layer_ranges, double cutoff_s,
                      struct maq_arena *arena);

#endif
