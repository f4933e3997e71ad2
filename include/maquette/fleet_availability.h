/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_availability.h - how many of a fleet's replicas are there in the long run, when its GPUs, nodes and links fail, and how many it
 * takes so that as many as are needed are there for a share of the time.
 *
 * The closed form is the stationary law of what fleet_outages.h draws, of replicas that are alike and stand one after another:
 *
 *   nodes     of N places and S spare nodes R are in repair: a birth-death process, R -> R + 1 at lambda (N - max(0, R - S)), R -> R - 1
 *             at R / repair. It depends on repair through its mean alone (an infinite server whose arrivals depend on how many are in
 *             it). max(0, R - S) places wait for a node, any of them
 *   place     that has a node: its failures take its replicas for detection, requeue, start and weights; with rate lambda and s seconds
 *             for lambda s / (1 + lambda s) of the time
 *   replica   failures of its GPUs, and of its links where it is over several nodes, in the same way; links of a node that replicas of a
 *             pool are on, which hand over to others, take its place
 *
 * Places and replicas fail independently of each other, at the mean rate of the law: lemons, ages, bursts and how well the rate is known
 * have no place in it, several nodes at once count in the rate alone. maq_availability_draw() has them, by drawing years.
 */
#ifndef MAQUETTE_FLEET_AVAILABILITY_H
#define MAQUETTE_FLEET_AVAILABILITY_H

#include "maquette/fleet_outages.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Replicas that are alike, and what fails. */
struct maq_availability_spec {
    const struct maq_failures *failures;
    uint32_t gpus;          /* of a replica, >= 1 */
    uint32_t gpus_per_node; /* >= 1 */
    uint32_t spare_nodes;
    /* Spread over so many nodes (MAQ_PLACEMENT_SPREAD), where they are of less than one; 0 = one stands behind another. */
    uint32_t spread_nodes;
    bool network; /* of a pool: without the links of its node it can neither hand requests over nor take them */
    double start_s,
        load_s; /* from a node that is there to a replica that takes requests: start-up, and weights beside it */
};

/* What is known of n replicas of which `needed` have to be there. */
struct maq_availability {
    double share;              /* of the time in which that many are there, or more */
    double carried;            /* of the needed replicas that are there, in the mean: min(1, there / needed) */
    double replicas;           /* there in the mean */
    double one;                /* share of the time in which a given replica is there, the mean over all */
    double out_every_s, out_s; /* of a replica: mean time between outages, mean length of one; infinity and 0: none */
};

/* In *out; 1 <= needed <= n. MAQ_NO_MEMORY. */
MAQ_API enum maq_status maq_availability_of(struct maq_availability *out, const struct maq_availability_spec *spec,
                                            uint32_t n, uint32_t needed);

/* The fewest replicas, needed <= *n <= most, of which `needed` are there for `share` of the time; *n = 0: no number. MAQ_NO_MEMORY. */
MAQ_API enum maq_status maq_availability_needs(uint32_t *n, const struct maq_availability_spec *spec, uint32_t needed,
                                               uint32_t most, double share);

/* The same of draws: the share of `span_s` in which of each member at least needed[member] replicas are there, by the laws in full. */
struct maq_availability_draws {
    double mean, low, high; /* over the draws: a further one is within low and high with probability `confidence` */
    double confidence;
    uint32_t n_draws;
};
MAQ_API enum maq_status maq_availability_draw(struct maq_availability_draws *out, const struct maq_fleet *fleet,
                                              const uint32_t *needed, const struct maq_outage_spec *spec,
                                              uint32_t n_draws, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
