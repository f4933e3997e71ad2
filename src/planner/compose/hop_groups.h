/*
 * hop_groups.h - options of a kind with the same hops are a group.
 *
 * Whoever the neighbour is, each of them sends and receives in the same time: a program that knows the group of a stage knows its hops.
 * Where there would be more groups than MAQ_HOP_GROUPS, a kind is one, whose hops are the best of its options.
 */
#ifndef MAQ_PLANNER_COMPOSE_HOP_GROUPS_H
#define MAQ_PLANNER_COMPOSE_HOP_GROUPS_H

#include "planner/compose/layer_ranges.h"

#define MAQ_HOP_GROUPS 24u

struct maq_hop_groups {
    const struct maq_layer_ranges *layer_ranges;
    uint32_t n;
    uint8_t of[MAQ_STAGE_OPTIONS];
    bool leads[MAQ_STAGE_OPTIONS]; /* whose hops are to be looked at: one of those that hop alike */
    double *forward;               /* [option * n + group][atoms]: to the best of a group */
    double *backward;              /* [group * n + group][atoms]: from the best of a group to the best of another */
    double *backward_most;         /* [group][atoms]: to the worst of them */
    double *backward_least;        /* [group][atoms] */
    /* [group][n + 1] from the last stage's to the first one's and back; behind those: the least. NULL: no rounds */
    double *back;
};

/* Everything lives in the arena; `layer_ranges` is borrowed. false when out of memory. */
bool maq_hop_groups_init(struct maq_hop_groups *groups, const struct maq_layer_ranges *layer_ranges,
                         struct maq_arena *arena);

#endif
