/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kv_tier_transfers.h - when bytes between the tiers of an engine's cache have moved, and what that delays.
 *
 *   GPU <==> host      each GPU over its own link, each direction by itself, one transfer after another in the order in which they began. A load begins
 *                      when what was launched before it has left the GPU; a store when the iteration that computes what it stores has. (vLLM 0.33.0,
 *                      v1/kv_offload/cpu/gpu_worker.py: a stream for each direction, which waits for the one that computes;
 *                      distributed/kv_transfer/kv_connector/v1/offloading/worker.py: stores are submitted at the beginning of the next step)
 *   host <==> SSD, pool  shared, as a fluid (serve/transfer/network.h): the drives of a node by the replicas there, the pool and the network of each replica
 *
 * Copies of SGLang's tree of prefixes have rules of their own: host_copies.h, to which all of this leads where an engine has those.
 *
 * That a transfer is over is seen when an iteration is launched after that, and known when it ends; where none is under way and there is nothing to
 * launch, at once. An iteration that is given blocks which a store still reads waits for it.
 */
#ifndef MAQ_SERVE_ENGINE_KV_TIER_TRANSFERS_H
#define MAQ_SERVE_ENGINE_KV_TIER_TRANSFERS_H

#include "serve/kv/offload.h"
#include "serve/transfer/network.h"

struct maq_serve_engine;
struct maq_deployment;

/* A transfer of one rank. */
struct maq_moving {
    uint32_t job;
    double done_s;     /* infinity: it is not known yet */
    uint32_t seen_by;  /* the place of the iteration that has seen that it is over, + 1; 0 = none has */
    uint32_t transfer; /* in the shared ways; MAQ_NO_FLOW: over the link of the GPUs */
};

/* Of one rank: what is under way, in the order in which it began. */
struct maq_rank_tiers {
    struct maq_moving *moving;
    uint32_t n, size;
    double load_free_s, store_free_s; /* the links of its GPUs */
};

/* A transfer over a way that others use, too. */
struct maq_shared_move {
    double done_s; /* infinity: it is under way */
    uint32_t flow;
    bool live;
};

/* Drives, networks and the pool of all engines that share any of them. */
struct maq_tier_ways {
    struct maq_network net;
    struct maq_shared_move *at;
    uint32_t n, size, *free, n_free, free_size;
    struct maq_tier pool;
    uint32_t nodes, replicas;
    bool has_pool, failed;
};

/* Ports: 0 is without a limit; behind it the pool's two, two of each node's drives, two of each replica's network. */
enum { MAQ_WAY_OPEN, MAQ_WAY_POOL_READ, MAQ_WAY_POOL_WRITE, MAQ_WAYS_BEFORE_NODES };

/* What an engine counted; of transfers bytes over all links. */
struct maq_tiers_seen {
    int64_t tokens[MAQ_TIER_COUNT]; /* of prompts when they were first taken in, by where they were found */
    double read_bytes[MAQ_TIER_COUNT], written_bytes[MAQ_TIER_COUNT];
    double load_busy_s, store_busy_s;                  /* of a GPU's link, all ranks together */
    double area[MAQ_TIER_COUNT], peak[MAQ_TIER_COUNT]; /* chunks times seconds; chunks, of all ranks together */
    double wait_s, stalled_s;
    uint32_t loaded;
};

/* Whether engines of a deployment move anything over ways that others use, too. */
bool maq_tier_ways_needed(const struct maq_deployment *d);
/* The pool that a deployment is told of, and room for `nodes` nodes and `replicas` replicas; false: out of memory. To be ended even then. */
bool maq_tier_ways_init(struct maq_tier_ways *w, const struct maq_deployment *d, uint32_t nodes, uint32_t replicas);
void maq_tier_ways_fini(struct maq_tier_ways *w);

/* Gives an engine its tiers, where its deployment has any, before any request comes; it is a replica that stands on GPUs from `first` on. `ways`: NULL
 * where they are not needed. To be ended even on failure. */
enum maq_status maq_tiers_begin(struct maq_serve_engine *e, struct maq_tier_ways *ways, uint32_t first);
void maq_tiers_fini(struct maq_serve_engine *e);
/* What `n` engines counted together, in out->tiers. */
struct maq_serve_result;
void maq_tiers_fill(const struct maq_serve_engine *engines, uint32_t n, struct maq_serve_result *out);

/* Schedulers are about to decide. */
void maq_tiers_ask(struct maq_serve_engine *e);
/* Schedulers have decided: what has begun moves, but for stores, which begin behind what is launched. The time when an iteration may start. */
double maq_tiers_decided(struct maq_serve_engine *e);
/* An iteration has been launched in a place of the ring: it has seen what was over when it was decided. Or none was: MAQ_TIERS_NONE. */
#define MAQ_TIERS_NONE UINT32_MAX
void maq_tiers_launched(struct maq_serve_engine *e, uint32_t place, double decided_s);
/* The iteration of a place has ended. */
void maq_tiers_ended(struct maq_serve_engine *e, uint32_t place);
/* Nothing is under way and nobody could be launched: what is over now is known at once. False: nothing was. */
bool maq_tiers_idle(struct maq_serve_engine *e);
/* When something may be over next; infinity: nothing is under way. */
double maq_tiers_next_s(struct maq_serve_engine *e);
/* Something is over, and an iteration under way has seen it. */
bool maq_tiers_pending(const struct maq_serve_engine *e);
/* A request that waits for ever for chunks which host memory loses again (serve/kv/offload.h); false: none does. */
struct maq_tiers_in_vain {
    uint32_t request; /* among all, from 0 on */
    uint32_t chunks;  /* of what is known of it, and of them in host memory those that can be at most */
    int64_t room;
};
bool maq_tiers_find_in_vain(const struct maq_serve_engine *e, struct maq_tiers_in_vain *out);

#endif
