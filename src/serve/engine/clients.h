/* SPDX-License-Identifier: Apache-2.0 */
/*
 * clients.h - those who send requests and take their tokens, and what they have seen of them.
 *
 * Requests are sent at their arrival times; or, where a concurrency is kept, each at the end of another. To which engine a request goes is the
 * caller's to say, who asks when the next one is sent.
 */
#ifndef MAQ_SERVE_ENGINE_CLIENTS_H
#define MAQ_SERVE_ENGINE_CLIENTS_H

#include "serve/engine/latency.h"
#include "serve/slo/early_stop.h"

struct maq_clients {
    const struct maq_requests *requests;
    struct maq_served *served; /* [requests->n], the caller's */
    uint32_t sent, finished, refused;
    uint32_t servers; /* engines that share them; 0 = one */
    double *due_s;    /* [n_due], a heap: when further ones are sent, where a concurrency is kept */
    uint32_t n_due, due_size;
    bool failed;            /* out of memory */
    double first_s, last_s; /* the first arrival; the last token */
    uint64_t cached;        /* tokens of prompts */
    struct maq_latency itl, ttft, tpot, e2el, queue;
    struct maq_slo_hope hope;
    bool *ended;                       /* [requests->n], the caller's: whose last token they have; NULL: nobody asks */
    const volatile sig_atomic_t *stop; /* the caller's: not 0: a run is to end; NULL = never */
};

/* Whether a run goes on: some have not had their last token, it may still be well, and nobody asks for an end. */
static inline bool maq_clients_go_on(const struct maq_clients *c)
{
    return c->finished + c->refused < c->requests->n && !c->hope.lost && !(c->stop && *c->stop);
}
/* Whether one that does not go on was asked to end before its time. */
static inline bool maq_clients_stopped(const struct maq_clients *c)
{
    return c->finished + c->refused < c->requests->n && !c->hope.lost && c->stop && *c->stop;
}

/* To be ended even on failure, which is false: out of memory. */
bool maq_clients_init(struct maq_clients *c, const struct maq_requests *requests, struct maq_served *served);
void maq_clients_fini(struct maq_clients *c);

/* When the next request is sent, as far as is known by now; infinity: none is. */
double maq_clients_next_s(const struct maq_clients *c);
/* It is sent. Its number. */
uint32_t maq_clients_send(struct maq_clients *c);
/* It has to begin anew, at at_s: what they have seen of it does not count. */
void maq_clients_retry(struct maq_clients *c, uint32_t request, double at_s);
/* A request is refused: they will have nothing of it. */
void maq_clients_refuse(struct maq_clients *c, uint32_t request);
/* A request has had its last token, of which served[request] has the times. */
void maq_clients_finish(struct maq_clients *c, uint32_t request);
/* Whether so many waited when the last one came that requests come faster than they are served. */
bool maq_clients_overloaded(const struct maq_serve_result *r);
/* What they have seen, in *out. */
void maq_clients_fill(const struct maq_clients *c, struct maq_serve_result *out);

#endif
