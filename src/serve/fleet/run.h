/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - a fleet while it serves: its engines in one time, and its router. */
#ifndef MAQ_SERVE_FLEET_RUN_H
#define MAQ_SERVE_FLEET_RUN_H

#include "serve/fleet/router.h"

struct maq_fleet_pools;

struct maq_fleet_run {
    const struct maq_fleet *fleet;
    const struct maq_requests *requests;
    struct maq_deployment *deployments; /* [n_members] */
    uint32_t n_deployments;             /* that are begun */
    struct maq_serve_engine *engines;   /* [n]; with roles those that compute prompts are in front */
    uint32_t n, n_engines;              /* n_engines: that are begun */
    uint32_t *member_of;                /* [n] */
    double *next_s;                     /* [n] when each would do something */
    uint32_t *heap, *place;             /* [n] replicas, the one that is next in front; [replica] where it is in it */
    struct maq_clients clients;
    struct maq_routing routing;    /* of those that decode, where there are roles */
    struct maq_fleet_pools *pools; /* NULL: there are none */
};

/* The first of the heap has done something. */
void maq_fleet_settle(struct maq_fleet_run *r);
/* Something was sent to a replica: that can only bring its next event forward. */
void maq_fleet_brought_forward(struct maq_fleet_run *r, uint32_t replica);

#endif
