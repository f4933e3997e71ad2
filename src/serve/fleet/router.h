/* SPDX-License-Identifier: Apache-2.0 */
/*
 * router.h - to which replica a request goes.
 *
 * What is known of a replica is what was sent there: requests and tokens that have not ended, and prefixes. Those are kept here, as routers
 * do that hear nothing from the engines' caches: a chain of names that a request begins with has a mark for each replica that it was sent
 * to, for as long as it is there.
 *
 * The rule of MAQ_ROUTER_PREFIX and its three constants are those of SGLang's gateway (sgl-model-gateway, policy cache_aware): while the
 * fullest replica has 64 requests more than the emptiest, and half as many again, the emptiest is taken; else the one that was sent the
 * longest part of the prompt, if that is more than 0.3 of it; else the emptiest.
 */
#ifndef MAQ_SERVE_FLEET_ROUTER_H
#define MAQ_SERVE_FLEET_ROUTER_H

#include "base/stat/rng.h"
#include "maquette/serve_fleet.h"
#include "serve/engine/engine.h"

struct maq_prefix_marks {
    uint64_t *key;   /* [size], 0 = free */
    uint64_t *marks; /* [size][words]: a bit for each replica */
    uint32_t n, size, words;
    uint64_t *both; /* [words], room */
};

struct maq_routing {
    enum maq_router policy;
    const struct maq_serve_engine *engines; /* [n] */
    uint32_t n, next;
    double least; /* that the load of a replica can be: nobody has less than one that has nothing */
    const struct maq_requests *requests;
    struct maq_rng rng;
    struct maq_prefix_marks prefixes;
    const bool *away;      /* [n] those that take no requests; NULL: all take them */
    uint32_t max_requests; /* of a replica; 0: any number */
    bool failed;           /* out of memory */
};

/* False: out of memory. To be ended even then. */
bool maq_routing_init(struct maq_routing *r, enum maq_router policy, struct maq_rng rng,
                      const struct maq_serve_engine *engines, uint32_t n, const struct maq_requests *requests);
void maq_routing_fini(struct maq_routing *r);
/* Whether somebody takes requests, now. */
bool maq_routing_takes(const struct maq_routing *r);
/* The replica that a request is sent to, now: its place among the engines. Somebody takes it. */
uint32_t maq_routing_choose(struct maq_routing *r, uint32_t request);
/* A replica is empty again: no prefix was sent there. */
void maq_routing_forget(struct maq_routing *r, uint32_t replica);

#endif
