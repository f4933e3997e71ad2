/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_outages.h - when the replicas of a fleet are there: by a schedule of how many there are to be, and by the laws of failures.
 *
 * Nodes fail by the laws of failures.h, at its rate for all of their devices: by themselves, from the age that they have, some more often than others, in bursts
 * that all of them have, several at once. A cause that takes a node takes all replicas that have a device there, one that takes a GPU the replica that has it, one
 * that takes a link those that need the network: over several nodes, or of a pool whose other is on another node. Of a failure:
 *
 *   fails --detection--> lost --requeue--> [ where the node is lost, another one: spare, or the first that comes back from repair ] --start--> back
 *
 * A replica over several nodes is back when all of them are. The restart of a training job is not looked at.
 */
#ifndef MAQUETTE_FLEET_OUTAGES_H
#define MAQUETTE_FLEET_OUTAGES_H

#include "maquette/failures.h"
#include "maquette/serve_fleet.h"
#include "maquette/slo.h"

#ifdef __cplusplus
extern "C" {
#endif

struct maq_outage_spec {
    const struct maq_failures *failures; /* NULL: nothing fails */
    const struct maq_replica_count *counts;
    uint32_t
        n_counts; /* in the order of time, the first at or before 0; 0 = all are to be there all the time; MAQ_ALL_REPLICAS of what a rule says */
    /* beside what its member's weights take (load_s): */
    double start_s; /* from a replica that is asked for, or whose nodes are there again, to one that takes requests */
    uint32_t spare_nodes; /* that stand by, of each cluster */
    double span_s;        /* nothing fails later */
    uint64_t seed;
};

/* Of one fleet. The events are those of struct maq_fleet; *out is owned by the caller (maq_outages_free). */
struct maq_outages {
    struct maq_fleet_event *events; /* [n] */
    uint32_t n;
};
MAQ_API enum maq_status maq_outages_draw(struct maq_outages *out, const struct maq_fleet *fleet,
                                         const struct maq_outage_spec *spec, struct maq_diag *diag);
MAQ_API void maq_outages_free(struct maq_outages *outages);

/*
 * The requests through `n_draws` draws of what fails, seeds from spec->seed on: one after another the same requests with other failures. *first
 * is the run of the first draw, owned by the caller (maq_serve_free); *out says what share of the requests is within the bounds on a
 * request's figures (`slo` has one at least where out is not NULL).
 */
MAQ_API enum maq_status maq_fleet_attainment(struct maq_attainment *out, struct maq_serve_result **first,
                                             const struct maq_fleet *fleet, const struct maq_requests *requests,
                                             const struct maq_outage_spec *spec, uint32_t n_draws,
                                             const struct maq_slo *slo, struct maq_diag *diag);

/* What another setting keeps, of the same requests and seeds in as many draws. */
MAQ_API struct maq_what_if maq_what_if_of(const char *what, const struct maq_attainment *asked,
                                          const struct maq_attainment *other);

/*
 * Reads a schedule: a table with a line of names, `time_s` and `replicas`, of pools `prefill_replicas`, too (without it all of them), in the order of time from 0 on.
 * *out is owned by the caller (free()); `most`: replicas that there are; `most_prefill`: of pools, those that compute prompts for others, beside them; 0: there are none.
 */
MAQ_API enum maq_status maq_replica_counts_read(struct maq_replica_count **out, uint32_t *n, const char *path,
                                                uint32_t most, uint32_t most_prefill, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
