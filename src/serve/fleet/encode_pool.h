/* SPDX-License-Identifier: Apache-2.0 */
/*
 * encode_pool.h - a pool that encodes images, in front of the routers of a fleet.
 *
 *   request --images, each to the next server in turn--> [ FIFO ] --a pass over those that wait--> port --embeddings--> all are there: its router
 *
 * As vLLM's proxy for encode, prefill and decode sends each image to the next encode server (online_serving/disaggregated_encoder/disagg_epd_proxy.py of its examples at 7e4cd77). A server passes
 * the images that wait together, in their order, up to an iteration's tokens. Embeddings of a server share its port (serve/transfer/network.h); where they arrive
 * nothing is in their way. A request that is tried again has its embeddings.
 */
#ifndef MAQ_SERVE_FLEET_ENCODE_POOL_H
#define MAQ_SERVE_FLEET_ENCODE_POOL_H

#include "serve/engine/vision_tower.h"
#include "serve/fleet/run.h"
#include "serve/transfer/network.h"

struct maq_encode_image {
    uint32_t request;
    int64_t tokens;
    double at_s;
};

struct maq_encode_server {
    struct maq_encode_image *images; /* [first, n): those in the pass under way, `passing` of them, in front */
    uint32_t first, n, size, passing;
    double ends_s; /* of the pass; infinity: there is none */
    double busy_s;
};

struct maq_fleet_encode {
    struct maq_tower tower;
    const struct maq_deployment *d; /* whose tower it is */
    struct maq_arena arena;
    struct maq_encode_server *servers; /* [n] */
    uint32_t n, turn;
    struct maq_network network; /* a port of each server, and one that is open */
    double latency_s;
    uint32_t *left;    /* [requests] images whose embeddings have not come */
    double *flow_from; /* [requests] when the last of its transfers began */
    bool failed;
    double next_s; /* when something happens next; infinity: nothing does */
    struct maq_encoded seen;
};

/* Whether a fleet may have one, and room for it: before and after its deployments are begun. */
enum maq_status maq_encode_check(const struct maq_fleet_run *r, struct maq_diag *diag);
enum maq_status maq_encode_begin(struct maq_fleet_run *r);
void maq_encode_end(struct maq_fleet_encode *p);
/* A request has come; false: it has no images, and goes to its router. */
bool maq_encode_send(struct maq_fleet_run *r, uint32_t request, double at_s);
/* Whether it has not gone to its router yet. */
static inline bool maq_encode_has(const struct maq_fleet_run *r, uint32_t request)
{
    return r->encode && r->encode->left[request] > 0;
}
/* What is next. False: out of memory. */
bool maq_encode_step(struct maq_fleet_run *r);
void maq_encode_fill(const struct maq_fleet_run *r, struct maq_serve_result *out);

#endif
