/* SPDX-License-Identifier: Apache-2.0 */
/*
 * predecessors.h - the predecessors of a stage in the dynamic program that counts devices: the stages that may be put
 * in front of a back part of a pipeline.
 *
 * Options with equal hops and the same number of devices of a kind are one class. Over a layer range only the
 * cheapest option of each class that is in the box and fits its position counts. Which those are does not depend on
 * the stage behind, so they are listed once for each end of a range (`listed`), and again, with what they send, for
 * each hop group behind it (`at`).
 */
#ifndef MAQ_PLANNER_COMPOSE_PREDECESSORS_H
#define MAQ_PLANNER_COMPOSE_PREDECESSORS_H

#include "planner/compose/bottleneck_box.h"
#include "planner/compose/device_units.h"
#include "planner/compose/hop_groups.h"

struct maq_predecessor_range { /* an option over [first, end) */
    double s;                  /* without hops */
    uint16_t first, option;
};

/*
 * A stage over [first, end). Its cost and front are without what it sends backward, which depends on the stage that
 * comes before it.
 */
struct maq_predecessor {
    double cost, priced; /* priced: cost plus the price of its devices */
    double front;        /* the part of its pace that adds to the backward hop: maq_stage_front() */
    double least;        /* the least that its backward hop takes */
    uint64_t used;       /* packed units */
    uint32_t code;       /* the same, as a number */
    uint16_t first, option;
    uint8_t group;
};

/*
 * Priced cost of a predecessor plus the cost to go in front of it; in an array of its own, since most predecessors are
 * dropped for this number alone.
 */
struct maq_predecessor_reach {
    double least;
    uint32_t group;
};

struct maq_predecessors {
    const struct maq_layer_ranges *layer_ranges;
    const struct maq_units *units;
    const struct maq_hop_groups *groups;
    uint32_t n_classes;
    uint16_t class_of[MAQ_STAGE_OPTIONS], itself[MAQ_STAGE_OPTIONS];
    struct maq_predecessor_range *listed; /* [atoms * options] */
    uint32_t n_listed;
    struct maq_predecessor *at; /* [atoms * options] */
    struct maq_predecessor_reach *reach;
    uint32_t n;
    double priced[MAQ_STAGE_OPTIONS]; /* price of the devices of each option, set by the caller before it lists */
};

/* Everything lives in the arena; the rest is borrowed. false when out of memory. */
bool maq_predecessors_init(struct maq_predecessors *predecessors, const struct maq_layer_ranges *layer_ranges,
                           const struct maq_units *units, const struct maq_hop_groups *groups, struct maq_arena *arena);

/* Lists the ranges that end at an atom with so many stages behind. `each`: every option, not the cheapest of each class. */
void maq_predecessors_list_ranges(struct maq_predecessors *predecessors, const struct maq_bottleneck_box *box,
                                  uint32_t behind, uint32_t end, bool each);

/*
 * Lists, of these ranges, the predecessors of a stage of hop group `to`. `rest` [atoms + 1]: the priced cost to go in
 * front of each atom (priced_bound.c).
 */
void maq_predecessors_list(struct maq_predecessors *predecessors, const struct maq_bottleneck_box *box,
                           const double *rest, uint32_t behind, uint32_t end, uint32_t to);

#endif
