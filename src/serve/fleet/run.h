/* SPDX-License-Identifier: Apache-2.0 */
/* run.h - a fleet while it serves: its engines in one time, and its router. */
#ifndef MAQ_SERVE_FLEET_RUN_H
#define MAQ_SERVE_FLEET_RUN_H

#include "serve/fleet/autoscaling.h"
#include "serve/fleet/router.h"

struct maq_fleet_encode;
struct maq_fleet_pools;

/* Replicas that are scaled together, and by which load: those that do both or decode, and those that compute prompts for others. */
enum maq_scaled { MAQ_SCALED_DECODE, MAQ_SCALED_PREFILL, MAQ_SCALED_COUNT };

/* A request that waits at the router. */
struct maq_held {
    uint32_t request;
    double since_s;
};

struct maq_fleet_run {
    const struct maq_fleet *fleet;
    const struct maq_requests *requests;
    struct maq_deployment *deployments; /* [n_members] */
    uint32_t n_deployments;             /* that are begun */
    struct maq_serve_engine *engines;   /* [n]; with roles those that compute prompts are in front */
    uint32_t n, n_engines;              /* n_engines: that are begun */
    uint32_t *member_of;                /* [n] */
    double *next_s;                     /* [n] when each would do something that a router sees, or before */
    bool leaves_behind;     /* an engine stays as it is until a request of it may have ended, or one is sent to it */
    uint32_t *heap, *place; /* [n] replicas, the one that is next in front; [replica] where it is in it */
    struct maq_clients clients;
    struct maq_routing routing;    /* of those that decode, where there are roles */
    struct maq_tier_ways *ways;    /* drives and the pool of tiers behind their caches; NULL: nothing of it is shared */
    struct maq_fleet_pools *pools; /* NULL: there are none */
    struct maq_fleet_encode *encode; /* NULL: members encode images themselves */
    /* where replicas come, leave and fail; availability.c */
    uint32_t next_event;
    bool *unwanted, *failed, *away; /* [n]; away: it is one of the two */
    bool *ended;                    /* [requests] */
    struct maq_held *held;          /* [held_size], from held_first on those that nobody takes; admission.c */
    uint32_t held_first, n_held, held_size;
    double since_s;                  /* what is counted until then */
    uint32_t n_away, n_prefill_away; /* the second: of those that compute prompts for others */
    struct maq_serve_availability seen;
    struct maq_autoscaling scaling[MAQ_SCALED_COUNT]; /* where a rule says how many are wanted; autoscaling_run.c */
    double *comes_s;      /* [n] when a replica that it asked for has started; infinity: it has not asked, or it has */
    double first_comes_s; /* of all */
    struct maq_serve_admission admission;
    bool *has_waited; /* [requests], where a router has a limit */
};

/* ---- availability.c ---- */

/* Room for it, and how things stand at the first arrival. */
enum maq_status maq_fleet_begin_events(struct maq_fleet_run *r);
void maq_fleet_end_events(struct maq_fleet_run *r);
/* When the next event is; infinity: there is none. */
double maq_fleet_next_event_s(const struct maq_fleet_run *r);
/* It happens: all engines have done what they do before it. */
enum maq_status maq_fleet_event(struct maq_fleet_run *r);
/* A request that was sent, or is sent again at at_s, goes to a replica, or waits for one. False: out of memory. */
bool maq_fleet_route(struct maq_fleet_run *r, uint32_t request, double at_s);
/* Something happens to a replica. */
enum maq_status maq_fleet_apply(struct maq_fleet_run *r, const struct maq_fleet_event *event);
/* Whether a replica is wanted, or has failed, has changed. */
void maq_fleet_settle_state(struct maq_fleet_run *r, uint32_t replica);
/* Somebody takes a request, and is sent it. */
bool maq_fleet_send(struct maq_fleet_run *r, uint32_t request, double at_s);
/* What was seen, until the last token. */
void maq_fleet_count_availability(struct maq_fleet_run *r, double until_s);

/* ---- admission.c ---- */

/* Room for those that wait, where any may. */
enum maq_status maq_fleet_begin_queue(struct maq_fleet_run *r);
/* Nobody takes a request that came, or came again, at at_s: it waits until somebody does. */
void maq_fleet_hold(struct maq_fleet_run *r, uint32_t request, double at_s);
/* The i-th that waits. */
static inline uint32_t maq_fleet_held(const struct maq_fleet_run *r, uint32_t i)
{
    return r->held[r->held_first + i].request;
}
/* The first that waits, and does not any more. */
struct maq_held maq_fleet_take_held(struct maq_fleet_run *r);
/* Without pools: those that wait go to who takes them, at at_s. False: out of memory. */
bool maq_fleet_admit(struct maq_fleet_run *r, double at_s);
void maq_fleet_fill_admission(const struct maq_fleet_run *r, struct maq_serve_result *out);

/* ---- autoscaling_run.c ---- */

/* Those that rules want from the first arrival on have started. */
enum maq_status maq_fleet_begin_scaling(struct maq_fleet_run *r);
/* When a rule looks or a replica that it asked for comes; infinity: neither. `listed_s`: when the next listed event is. */
double maq_fleet_next_scaling_s(const struct maq_fleet_run *r, double listed_s);
/* Whichever of these is next. */
enum maq_status maq_fleet_scale(struct maq_fleet_run *r);

/* ---- fleet.c ---- */

/* The first of the heap has done something. */
void maq_fleet_settle(struct maq_fleet_run *r);
/* Something was sent to a replica: that can only bring its next event forward. */
void maq_fleet_brought_forward(struct maq_fleet_run *r, uint32_t replica);
/* It is another one now: its next event may be at any time. */
void maq_fleet_changed(struct maq_fleet_run *r, uint32_t replica);

#endif
