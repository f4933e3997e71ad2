/*
 * steps.h - the stages that may be put in front of a back part of a pipeline, where devices are counted.
 *
 * Options of the same hops and the same number of devices of a kind are one class: over a stretch, a step takes the cheapest of each class
 * that is in the box and fits its position. Which those are does not depend on who is behind, so they are listed once for an end
 * (`stretches`) and again, with what they send, for each group behind it (`at`).
 */
#ifndef MAQ_COMPOSE_STEPS_H
#define MAQ_COMPOSE_STEPS_H

#include "compose/box.h"
#include "compose/groups.h"
#include "compose/units.h"

struct maq_stretch {
    double s; /* without hops */
    uint16_t first, option;
};

/* A stage over [first, end): its cost and its part in the pace are without what it sends backward. */
struct maq_step {
    double cost, priced, front; /* front: what it is in the pace */
    double least;               /* of what it sends backward */
    uint64_t used;              /* packed units */
    uint32_t code;              /* the same, as a number */
    uint16_t first, option;
    uint8_t group;
};

/* What a step and the rest in front of it come to: beside the steps, for it is most of what is read of them. */
struct maq_reach {
    double least;
    uint32_t group;
};

struct maq_steps {
    const struct maq_arcs *arcs;
    const struct maq_units *units;
    const struct maq_groups *groups;
    uint32_t n_classes;
    uint16_t class_of[MAQ_STAGE_OPTIONS], itself[MAQ_STAGE_OPTIONS];
    struct maq_stretch *stretches; /* [atoms * options] */
    uint32_t n_stretches;
    struct maq_step *at; /* [atoms * options] */
    struct maq_reach *reach;
    uint32_t n;
    double priced[MAQ_STAGE_OPTIONS]; /* what the devices of an option cost: set by who lists */
};

/* Everything lives in the arena; the rest is borrowed. false when out of memory. */
bool maq_steps_init(struct maq_steps *steps, const struct maq_arcs *arcs, const struct maq_units *units,
                    const struct maq_groups *groups, struct maq_arena *arena);

/* The stretches that end at an atom with so many stages behind. `each`: no option is taken for another of its class. */
void maq_steps_list_stretches(struct maq_steps *steps, const struct maq_box *box, uint32_t behind, uint32_t end,
                              bool each);

/* Those as steps in front of a stage of a group. `rest`: [atoms + 1], of what is in front of them (priced.c). */
void maq_steps_list(struct maq_steps *steps, const struct maq_box *box, const double *rest, uint32_t behind,
                    uint32_t end, uint32_t to);

#endif
