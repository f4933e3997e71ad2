/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fleet_outages.h - when the replicas of a fleet are there: by a schedule of how many there are to be, and by the laws of failures.
 *
 * Nodes fail each by itself, at the rate of failures.h for all of their devices. A cause that loses the node takes all replicas with it that
 * have a device there; any other stops one of them, which starts again where it is. Of a failure:
 *
 *   fails --detection--> lost --requeue--> [ a node: a spare one, or the first that comes back from repair ] --start--> back
 *
 * A replica over several nodes is back when all of them are. Not looked at here are a rate that changes with the age of a node, between
 * nodes or in bursts (shape, lemons, bursts): the mean rate holds; and the restart of a training job.
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
    uint32_t n_counts; /* in the order of time, the first at or before 0; 0 = all are to be there all the time */
    double start_s; /* from a replica that is asked for, or whose nodes are there again, to one that takes requests */
    uint32_t spare_nodes; /* that stand by, of each member */
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

/*
 * Reads a schedule: a table with a line of names, `time_s` and `replicas`, in the order of time from 0 on. *out is owned by the caller
 * (free()); `most`: replicas that there are.
 */
MAQ_API enum maq_status maq_replica_counts_read(struct maq_replica_count **out, uint32_t *n, const char *path,
                                                uint32_t most, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
