/*
 * predecessors.h - the stages that may be put in front of a back part of a pipeline, where devices are counted.
 *
 * Options of the same hops and the same number of devices of a kind are one class: over a layer range the cheapest of each class counts
 * that is in the box and fits its position. Which those are does not depend on who is behind, so they are listed once for an end
 * (`listed`) and again, with what they send, for each group behind it (`at`).
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

/* A stage over [first, end): cost and front are without what it sends backward. */
struct maq_predecessor {
    double cost, priced; /* priced: with what its devices cost */
    double front;        /* of its pace: maq_stage_front */
    double least;        /* of what it sends backward */
    uint64_t used;       /* packed units */
    uint32_t code;       /* the same, as a number */
    uint16_t first, option;
    uint8_t group;
};

/* What one and the rest in front of it come to: beside them, for it is most of what is read of them. */
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
    double priced[MAQ_STAGE_OPTIONS]; /* what the devices of an option cost: set by who lists */
};

/* Everything lives in the arena; the rest is borrowed. false when out of memory. */
bool maq_predecessors_init(struct maq_predecessors *predecessors, const struct maq_layer_ranges *layer_ranges,
                           const struct maq_units *units, const struct maq_hop_groups *groups, struct maq_arena *arena);

/* The layer ranges that end at an atom with so many stages behind. `each`: no option is taken for another of its class. */
void maq_predecessors_list_ranges(struct maq_predecessors *predecessors, const struct maq_bottleneck_box *box,
                                  uint32_t behind, uint32_t end, bool each);

/* Those in front of a stage of a group. `rest`: [atoms + 1], of what is in front of them (priced_bound.c). */
void maq_predecessors_list(struct maq_predecessors *predecessors, const struct maq_bottleneck_box *box,
                           const double *rest, uint32_t behind, uint32_t end, uint32_t to);

#endif
