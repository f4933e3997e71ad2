/* SPDX-License-Identifier: Apache-2.0 */
/*
 * network.h - transfers that share ports, as a fluid: what each has sent by when.
 *
 * A transfer takes bytes through two ports, one that sends and one that receives; where it needs one of them less than the other, by a share of its bytes. The rates of
 * all that have something to send are max-min fair: they grow together until a port is full or a transfer has all that it can use, those that this
 * concerns stay there, and the others grow on (Bertsekas and Gallager, Data Networks, 6.5.2). Rates change when a transfer begins,
 * has sent what there is, or gets more. Times of events are exact to rounding, and their order is that of times, of equal ones that in which transfers began.
 *
 *   begin() --> [ open ] --give(), grow(), in any number--> --close()--> ... --step()--> done, when all that it was given is sent
 *                  +---------------- cancel(), at any time ----------------+
 */
#ifndef MAQ_SERVE_TRANSFER_NETWORK_H
#define MAQ_SERVE_TRANSFER_NETWORK_H

#include <stdbool.h>
#include <stdint.h>

#define MAQ_NO_FLOW UINT32_MAX

struct maq_flow {
    uint32_t port[2];
    double share[2]; /* bytes through the port for one of the transfer, at most 1 */
    double most_bps; /* whatever the ports have */
    double begins_s; /* nothing is sent before */
    double given, sent;
    double grow_bps, grow_from_s, grow_until_s; /* beside `given`, of which it becomes a part when the growth is over */
    double bps, next_s;                         /* of now; when something about it changes if nothing else does */
    uint32_t user;
    bool closed;
    bool empties;      /* next_s is when all that there is has been sent */
    bool fixed, stuck; /* in one division of the ports */
};

struct maq_port {
    double bps, left, wanted; /* capacity; in one division of it: what is left, shares of those that want more */
};

struct maq_network {
    struct maq_port *ports; /* [n_ports], the caller sets bps */
    uint32_t n_ports;
    struct maq_flow *at; /* slots */
    uint32_t n_slots, slots_size;
    uint32_t *order, n, order_size; /* those that live, in the order in which they began */
    uint32_t *free, n_free, free_size;
    double now_s, next_s;
    bool failed; /* out of memory */
};

/* False: out of memory. To be ended even then. Ports have no limit until the caller sets one. */
bool maq_network_init(struct maq_network *n, uint32_t n_ports);
void maq_network_fini(struct maq_network *n);

struct maq_flow_begin {
    uint32_t port[2];
    double share[2], most_bps;
    double begins_s; /* not before now */
    uint32_t user;   /* the caller's */
};
/* All calls name the time, which never goes back, nor past next_s. MAQ_NO_FLOW when out of memory. */
uint32_t maq_network_begin(struct maq_network *n, double now_s, const struct maq_flow_begin *what);
void maq_network_give(struct maq_network *n, double now_s, uint32_t flow, double bytes);
/* So much more a second over a time, which may have begun; once for a transfer. */
void maq_network_grow(struct maq_network *n, double now_s, uint32_t flow, double bps, double from_s, double until_s);
void maq_network_close(struct maq_network *n, double now_s, uint32_t flow);
/* It is no more, and what it had of its ports is others'. Bytes that it has sent. */
double maq_network_cancel(struct maq_network *n, double now_s, uint32_t flow);
/* Bytes that a transfer was given, of a growth those that it has by now. */
double maq_network_given(const struct maq_network *n, double now_s, uint32_t flow);

/* When something happens next; infinity: nothing does. step(): it has; true: a transfer is done, and *user is its. */
bool maq_network_step(struct maq_network *n, uint32_t *user);

#endif
