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
    uint32_t flow;             /* MAQ_NO_FLOW: not yet, or not any more */
    bool assigned;             /* it has a prefill replica */
    bool prefilling, decoding; /* it was sent to either */
    bool computed, reserved, launched;
    bool over;              /* all of it has come */
    int64_t found;          /* tokens that decode has */
    double sent_s;          /* by its router */
    double from_s, until_s; /* layers of its last iteration come */
    double size;            /* bytes through the busiest port */
    struct maq_cut_bytes bytes;
};

/* A computed prompt that nobody reads: prefill keeps it until then. */
struct maq_lease {
    double until_s;
    uint32_t prefill, rank, slot;
    uint32_t request; /* decode has no room for it yet, and it begins anew then; MAQ_NO_REQUEST: nobody will read it */
};
#define MAQ_NO_REQUEST UINT32_MAX

struct maq_fleet_pools {
    enum maq_kv_transfer mode; /* never AUTO */
    uint32_t n_prefill;        /* engines [0, n_prefill) compute prompts, the others decode */
    struct maq_routing prefill;
    struct maq_network network;
    struct maq_cut *cuts;                 /* [members] [members] */
    struct maq_replica_placement *places; /* [engines] */
    uint32_t *ports;                      /* [engines] first of its ports: a rank, to it or from it, a distance */
    struct maq_handed *handed;            /* [requests]; the result's in the end */
    struct maq_handing *handing;
    double bps; /* sum over transfers of what each had alone */
    /* [n_prefill] requests that are of a replica: their prompts are not computed; not all of their keys and values have been read */
    uint32_t *uncomputed, *kept;
    uint32_t n_begun;
    struct maq_lease *leases; /* [n_leases]; pools_leases.c */
    uint32_t n_leases, leases_size, n_given_up;
    double next_lease_s; /* the first of them ends; infinity: there is none */
    /* where replicas fail; pools_failures.c */
    double *failed_s; /* [engines] when each failed last */
    uint32_t n_cut;
    double cut_bytes;
};

static inline uint32_t maq_pools_port(const struct maq_fleet_pools *p, uint32_t engine, uint32_t rank, bool sends,
                                      enum maq_distance distance)
{
    return p->ports[engine] + (rank * 2 + sends) * (uint32_t)MAQ_DISTANCES + (uint32_t)distance;
}

/* Whether pools can hand over to each other, once deployments are begun. pools_check.c */
enum maq_status maq_pools_check(struct maq_fleet_run *r, struct maq_diag *diag);
enum maq_kv_transfer maq_pools_mode(const struct maq_fleet *fleet);
/* Once engines are begun. */
enum maq_status maq_pools_begin(struct maq_fleet_run *r, uint32_t n_prefill, struct maq_diag *diag);
void maq_pools_end(struct maq_fleet_pools *p);
/* MAQ_LIMIT: some requests never find room. pools.c */
enum maq_status maq_pools_loop(struct maq_fleet_run *r);
/* A request that was sent, or is sent again, goes on, or waits for somebody who takes it. False: out of memory. pools.c */
bool maq_pools_route(struct maq_fleet_run *r, uint32_t request, double at_s);
/* A replica has failed; its router knows, and it is empty. pools_failures.c */
void maq_pools_failed(struct maq_fleet_run *r, uint32_t replica, double at_s);
bool maq_pools_lost(struct maq_fleet_run *r, uint32_t replica, double at_s);
/* A request that has not ended has nothing anywhere any more, and counts as tried again: to be sent to its router. pools_failures.c */
void maq_pools_begin_anew(struct maq_fleet_run *r, uint32_t request, double at_s);

/* ---- pools_leases.c ---- */

/* A prompt is computed and decode has no room for it yet; it has some now, or needs none any more. False: out of memory. */
bool maq_pools_expect(struct maq_fleet_run *r, uint32_t request, double at_s);
void maq_pools_expect_no_more(struct maq_fleet_pools *p, uint32_t request);
/* Decode has failed: nobody will read a computed prompt. False: out of memory. */
bool maq_pools_keep(struct maq_fleet_run *r, uint32_t request, double at_s);
/* Of a replica that is empty now. */
void maq_pools_forget_leases(struct maq_fleet_pools *p, uint32_t prefill);
/* The first of them ends: prefill gives the prompt back. False: out of memory. */
bool maq_pools_end_lease(struct maq_fleet_run *r);

/* ---- pools_fill.c ---- */

/* What prefill replicas have done, in the list; all of the result that is about pools. */
void maq_pools_count(const struct maq_fleet_run *r, struct maq_served_replica *list, double *prompts);
enum maq_status maq_pools_fill(struct maq_fleet_run *r, struct maq_serve_result *out);

#endif
