/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placement.h - where the replicas of a fleet stand: on which clusters, from which GPU on.
 *
 * Without roles each member has a cluster of its own, which its replicas fill one behind another, or stands behind the one before it. With roles members stand on one cluster, one behind another,
 * until one begins a cluster of its own; a replica that fits into a node does not straddle two. Spread (enum maq_fleet_placement), those that fit into a node are each on the
 * one with fewest GPUs taken, and larger ones on whole nodes behind what is taken.
 */
#ifndef MAQ_SERVE_FLEET_PLACEMENT_H
#define MAQ_SERVE_FLEET_PLACEMENT_H

#include "maquette/serve_fleet.h"

/* Where a replica stands: its ranks are [dp][pp][tp] from `first` on. */
struct maq_replica_placement {
    const struct maq_cluster *cluster;
    uint32_t cluster_id; /* equal ones are one cluster */
    uint32_t first, size;
    int32_t tp, pp;
};

bool maq_fleet_has_roles(const struct maq_fleet *fleet);
/*
 * places[all replicas of the fleet], in the order of engines: of members, with roles those that compute prompts in front. *small: a cluster that is too small, and how
 * many GPUs are needed of it; else NULL. MAQ_NO_MEMORY.
 */
enum maq_status maq_fleet_place(const struct maq_fleet *fleet, struct maq_replica_placement *places,
                                const struct maq_cluster **small, uint64_t *needed);
/* The member of each replica, in the same order. */
void maq_fleet_members_of(const struct maq_fleet *fleet, uint32_t *member);
/* What loading its weights takes each replica that starts, in the same order. */
void maq_fleet_load_times(const struct maq_fleet *fleet, double *load_s);

#endif
