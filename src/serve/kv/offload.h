/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offload.h - the tiers behind the blocks of one GPU cache, and what is on its way between them.
 *
 *   GPU --STORE--> host --CASCADE--> SSD, pool       as soon as a chunk is computed; as soon as it is in host memory
 *   GPU <--LOAD--- host <--PROMOTE-- SSD, pool       for a request that waits
 *
 * Every transfer is a job: it begins when it is made, what it writes cannot be read and what it reads cannot be evicted until maq_offload_done(). Who
 * makes a scheduler's decisions asks in this order:
 *
 *   begin()                             a request comes
 *   look()     its turn comes among those that wait: tokens that it could load; or that it has to be asked again
 *   load()     it has blocks for them
 *   store()    in each iteration that it is in: what is computed by its end is offered
 *   finish()   it has ended; the rest of it is offered with the next iteration, which is what close() does
 *
 * Blocks that a store reads and that belong to no request any more, because it ended or was preempted, may be given to another before the store has read
 * them: the iteration then has to wait for it (`flush`).
 *
 * What is brought into host memory for a request that waits makes room there at the expense of what goes first, which may be what was
 * brought for it, or for another that waits, before: the request has kept the place in LRU's order that it had when it was first looked
 * up, and those that ended since are behind it; or its beginning has more chunks than host memory. Then it is asked again for ever, and the
 * same chunks come and go, in vLLM too. Here it is seen by how often chunks were brought while nothing else happened to this engine, and
 * nothing is brought any more until something does (`in_vain`).
 *
 * The rules are those of vLLM 0.33.0's OffloadingConnector (distributed/kv_transfer/kv_connector/v1/offloading/scheduler.py) and of its tiers
 * (v1/kv_offload/tiering/manager.py), for one group of layers that keep all tokens. Theirs have no bound; with one, the chunk stored or promoted
 * longest ago goes.
 */
#ifndef MAQ_SERVE_KV_OFFLOAD_H
#define MAQ_SERVE_KV_OFFLOAD_H

#include "serve/kv/kv_cache.h"
#include "serve/kv/tier.h"

#define MAQ_OFFLOAD_NOBODY UINT32_MAX
#define MAQ_OFFLOAD_LATER (-1)

/* Where tiers are, how large, and what is stored in them. */
struct maq_offload_options {
    int64_t chunks[MAQ_TIER_COUNT]; /* that each tier holds; 0 = there is none. Of REMOTE nothing is looked at */
    struct maq_tier *remote;        /* a pool, whoever else uses it; NULL: there is none */
    enum maq_tier_policy policy;    /* of host memory */
    int32_t chunk_blocks;
    bool prompt_only;
};

enum maq_move { MAQ_MOVE_STORE, MAQ_MOVE_LOAD, MAQ_MOVE_CASCADE, MAQ_MOVE_PROMOTE };
struct maq_offload_job {
    uint64_t *keys; /* [n] chunks */
    uint32_t n, size;
    uint32_t user; /* whose, of STORE and LOAD */
    uint8_t move;  /* enum maq_move */
    uint8_t tier;  /* enum maq_tier_kind: of CASCADE and PROMOTE, the one that is not the host */
    bool live, fenced;
    int64_t tokens[MAQ_TIER_COUNT];          /* of a LOAD, by where they came from; of GPU none */
    uint32_t awaited;                        /* the last iteration that waits for it */
    uint32_t *blocks, n_blocks, blocks_size; /* of the GPU, that a STORE reads */
};

struct maq_offload_user {
    struct maq_tier_user host; /* what host memory remembers of it */
    uint64_t *keys;            /* [n_keys] of its chunks */
    uint8_t *marks;
    uint32_t n_keys, size;
    uint32_t stored;                         /* chunks from the beginning that need not be offered again */
    uint32_t jobs;                           /* STOREs and LOADs that are not over */
    int64_t local;                           /* tokens that the GPU had when it was looked up */
    int64_t kept;                            /* tokens, when it ended */
    uint32_t *blocks, n_blocks, blocks_size; /* of the GPU, when it ended */
    uint32_t owner;                          /* the caller's */
    bool used, ended, closed;                /* closed: all has been offered */
};

/* A job that reads a block of a user that has ended, and the next one of that block. */
struct maq_offload_fence {
    uint32_t job, next;
};

struct maq_offload {
    struct maq_offload_options options;
    int32_t chunk; /* tokens */
    bool caching;  /* what several requests wait for is loaded once */
    struct maq_tier host, ssd;
    struct maq_offload_user *users;
    uint32_t n_users, users_size, *free_users, n_free_users, free_users_size;
    struct maq_offload_job *jobs;
    uint32_t n_jobs, jobs_size, *free_jobs, n_free_jobs, free_jobs_size;
    uint32_t under_way, fenced;           /* jobs; those that read blocks of who has ended */
    uint32_t *ended, n_ended, ended_size; /* users whose rest is to be offered */
    uint32_t *begun, n_begun,
        begun_size; /* jobs in the order in which they began, for whoever moves bytes: who has seen them takes them out */
    uint32_t *flush, n_flush, flush_size; /* jobs that it waits for */
    uint32_t *which, *taken, which_size;  /* room for an offer */
    uint32_t *fence_of, *taken_at; /* [blocks] its first fence, 0 = none; the iteration that gave it to somebody */
    struct maq_offload_fence *fences;
    uint32_t n_fences, fences_size, free_fence;
    uint32_t step;
    uint32_t present;      /* users that have not ended */
    uint32_t brings_for;   /* the first of those for whom this iteration has something brought; MAQ_OFFLOAD_NOBODY */
    uint32_t rounds;       /* iterations that had something brought since anything else happened */
    bool in_vain;          /* too many: nothing is */
    uint32_t in_vain_user; /* for whom it was */
    /* counted */
    uint64_t refused; /* offers without room */
    bool failed;      /* out of memory */
};

/* blocks: of the GPU, each of block_size tokens. To be ended even on failure. */
enum maq_status maq_offload_init(struct maq_offload *o, const struct maq_offload_options *options, uint32_t blocks,
                                 int32_t block_size, bool caching);
void maq_offload_fini(struct maq_offload *o);

/* What is known of a request when something is asked: hashes of its full blocks, blocks of the GPU, both from its beginning. */
struct maq_offload_view {
    const uint64_t *hashes;
    const uint32_t *blocks;
    uint32_t n_hashes, n_blocks;
};

/* A request that comes; MAQ_OFFLOAD_NOBODY when out of memory. id: tells it from all others, not 0. */
uint32_t maq_offload_begin(struct maq_offload *o, uint64_t id, uint32_t owner);
/* Tokens behind the first `local` of `tokens` known ones that can be loaded now; MAQ_OFFLOAD_LATER: it has to be asked again. */
int64_t maq_offload_look(struct maq_offload *o, uint32_t user, const struct maq_offload_view *view, int64_t local,
                         int64_t tokens);
/* So many tokens, as look() said, are loaded. */
void maq_offload_load(struct maq_offload *o, uint32_t user, int64_t tokens);
/* The first `computed` tokens are computed when this iteration ends. */
void maq_offload_store(struct maq_offload *o, uint32_t user, const struct maq_offload_view *view, int64_t computed);
/* It has lost its blocks and comes back. */
void maq_offload_preempt(struct maq_offload *o, uint32_t user);
/* It has ended with `computed` tokens; the blocks are still its own. */
void maq_offload_finish(struct maq_offload *o, uint32_t user, const struct maq_offload_view *view, int64_t computed);
/* From how many computed tokens on there is something to offer of it. */
#define MAQ_OFFLOAD_NEVER INT64_MAX
int64_t maq_offload_next_tokens(const struct maq_offload *o, uint32_t user, int64_t prompt);
/* A block is given to somebody in this iteration. */
void maq_offload_taken(struct maq_offload *o, uint32_t block);
/* An iteration is decided from now on; it is, and computes something or does not: those that have ended offer what is left of them. */
void maq_offload_open(struct maq_offload *o);
void maq_offload_close(struct maq_offload *o, bool computes);

/* Its engine is gone, with what was under way: the pool is left as others may find it. */
void maq_offload_lost(struct maq_offload *o);

/* A job is over; the owner whose load it was, or MAQ_OFFLOAD_NOBODY. */
uint32_t maq_offload_done(struct maq_offload *o, uint32_t job);

#endif
