/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hop_groups.h - options of a stage grouped by what they send and receive.
 *
 * Options of one kind of device whose hops take the same time to and from every neighbour are one group, so that a
 * program that knows the group of a stage knows its hops exactly. Where there would be more groups than
 * MAQ_HOP_GROUPS, each kind is one group, whose hops are the shortest of its options: a lower bound.
 */
#ifndef MAQ_PLANNER_COMPOSE_HOP_GROUPS_H
#define MAQ_PLANNER_COMPOSE_HOP_GROUPS_H

#include "planner/compose/layer_ranges.h"

#define MAQ_HOP_GROUPS 24u

struct maq_hop_groups {
    const struct maq_layer_ranges *layer_ranges;
    uint32_t n;
    uint8_t of[MAQ_STAGE_OPTIONS];
    bool leads[MAQ_STAGE_OPTIONS]; /* the first option of those with equal hops, whose hops stand for all of them */
    double *forward;               /* [option * n + group][atoms]: s, to the nearest option of a group */
    double *backward;              /* [group * n + group][atoms]: s, the least between two groups */
    double *backward_most;         /* [group][atoms]: to the farthest group */
    double *backward_least;        /* [group][atoms] */
    /*
     * [group][n + 1]: s, from the last stage's group to the first stage's and back; entry n is the least of them. NULL:
     * no rounds of virtual stages
     */
    double *back;
};

/* Everything lives in the arena; `layer_ranges` is borrowed. false when out of memory. */
bool maq_hop_groups_init(struct maq_hop_groups *groups, const struct maq_layer_ranges *layer_ranges,
                         struct maq_arena *arena);

#endif
