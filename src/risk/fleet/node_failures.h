/* SPDX-License-Identifier: Apache-2.0 */
/*
 * node_failures.h - which replicas of a fleet are out from when to when, by the laws of `maquette risk`.
 *
 * A node has the failure clock of a run (risk/run/failure_clock.h) with one node in it: its times are those of an exponential process with lemons and bursts, or of
 * Weibull from the age that nodes have. How well the rate is known, and when there are bursts, is one draw for the whole fleet, so that nodes fail more often
 * together. A failure that would strike a node while it is away is none, as there.
 *
 *   gpu    the replica that has that GPU        link   those that need the network: over several nodes, or with the other pool on another node
 *   node   all that have a GPU there; with `together` those of its group: nodes 0 to n - 1, n to 2 n - 1, ..., as a switch or a power feed has them
 *
 * A cause that loses the node asks for another one, which is the spare one or the one in repair that is ready first; after a GPU or a link its place is the same.
 */
#ifndef MAQ_RISK_FLEET_NODE_FAILURES_H
#define MAQ_RISK_FLEET_NODE_FAILURES_H

#include "maquette/fleet_outages.h"

struct maq_replica_outage {
    uint32_t replica;
    double fails_s, known_s, back_s;
};

struct maq_replica_outages {
    struct maq_replica_outage *list; /* [n], the caller's to free */
    uint32_t n, size;
};

/* Failures that begin before spec->span_s, in no order; those of a replica may overlap. False: out of memory. */
bool maq_fleet_draw_failures(struct maq_replica_outages *out, const struct maq_fleet *fleet,
                             const struct maq_outage_spec *spec);

#endif
