/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pools.h - two pools of replicas and the network between them, while they serve.
 *
 *   client --> prefill engine --notes--> here --begin(), give()--> network --done--> notices --> both engines
 *                                         |                                                        ^
 *                                         +--send--> decode engine --notes (it has room)-----------+
 *
 * Engines know nothing of each other. What one has done is taken from its notes at once, in the order of time, and nobody goes past the next event
 * of anybody whom it may concern: those that decode, while nobody waits there, concern nobody and run ahead to the next
 * event of the others.
 */
#ifndef MAQ_SERVE_FLEET_POOLS_H
#define MAQ_SERVE_FLEET_POOLS_H

#include "serve/fleet/handover.h"
#include "serve/fleet/run.h"
#include "serve/transfer/network.h"

/* A request on its way through two engines, besides what its struct maq_handed has. */
struct maq_handing {
    uint32_t prefill, prefill_rank, prefill_slot; /* engine, and where it is there */
    uint32_t decode, decode_rank, decode_slot;
    uint32_t flow; /* MAQ_NO_FLOW: not yet, or not any more */
    bool computed, reserved, launched;
    int64_t found;          /* tokens that decode has */
    double from_s, until_s; /* layers of its last iteration come */
    double size;            /* bytes through the busiest port */
    struct maq_cut_bytes bytes;
};

struct maq_fleet_pools {
    enum maq_kv_transfer mode; /* never AUTO */
    uint32_t n_prefill;        /* engines [0, n_prefill) compute prompts, the others decode */
    struct maq_routing prefill;
    struct maq_network network;
    struct maq_cut *cuts;      /* [members] [members] */
    struct maq_stand *places;  /* [engines] */
    uint32_t *ports;           /* [engines] first of its ports: a rank, to it or from it, a distance */
    struct maq_handed *handed; /* [requests]; the result's in the end */
    struct maq_handing *handing;
    double bps; /* sum over transfers of what each had alone */
    uint32_t n_begun;
};

static inline uint32_t maq_pools_port(const struct maq_fleet_pools *p, uint32_t engine, uint32_t rank, bool sends,
                                      enum maq_distance distance)
{
    return p->ports[engine] + (rank * 2 + sends) * (uint32_t)MAQ_DISTANCES + (uint32_t)distance;
}

bool maq_fleet_has_roles(const struct maq_fleet *fleet);
/* Whether pools can hand over to each other, once deployments are begun. pools_check.c */
enum maq_status maq_pools_check(struct maq_fleet_run *r, struct maq_diag *diag);
/* Where replicas stand: places[r->n] in the order of engines. A cluster that is too small, and how many GPUs are needed of it; else NULL. */
const struct maq_cluster *maq_pools_place(const struct maq_fleet_run *r, struct maq_stand *places, uint64_t *needed);
enum maq_kv_transfer maq_pools_mode(const struct maq_fleet *fleet);
/* Once engines are begun. */
enum maq_status maq_pools_begin(struct maq_fleet_run *r, uint32_t n_prefill, struct maq_diag *diag);
void maq_pools_end(struct maq_fleet_pools *p);
/* MAQ_LIMIT: some requests never find room. pools.c */
enum maq_status maq_pools_loop(struct maq_fleet_run *r);
/* What prefill replicas have done, in the list; all of the result that is about pools. pools_fill.c */
void maq_pools_count(const struct maq_fleet_run *r, struct maq_served_replica *list, double *prompts);
enum maq_status maq_pools_fill(struct maq_fleet_run *r, struct maq_serve_result *out);

#endif
