/* SPDX-License-Identifier: Apache-2.0 */
/*
 * scheduler.h - what an engine asks of a scheduler, whichever it is: which tokens of which requests the next iteration computes.
 *
 *   request --add()--> [ waits ] --decide()--> [ an iteration under way ] --end()--> tokens for clients, requests that ended
 *                          ^                             |
 *                          +------- preempted -----------+
 *
 * A scheduler owns its requests from add() until they end, the order in which they wait and run, and the KV cache. The engine owns time, clients,
 * passes and what they cost, and latencies. It calls
 *
 *   add()       when a request has reached the engine; the slot is the request's until an iteration in which it ended has ended
 *   decide()    when it could launch another iteration. Nobody in it: there is nothing to do until one ends or somebody comes
 *   end()       in the order of decide(), with up to `most_in_flight` iterations decided and not ended
 *   load()      to show who runs, who waits, how much of the cache is in use
 *   steady_decodes()   before decide(): may many iterations be done at once, in which only decode lengths grow? skip() then does them
 *
 * Where prompts and tokens are computed by different engines, a request is a part of one here:
 *
 *   PREFILL     ends with its first token, and what it holds of the cache stays until release()
 *   DECODE      add() --decide(): it->loads--> [ has room; its keys and values are on the way ] --arrived()--> goes on as one that waits
 *
 * Where keys and values go to tiers behind the GPU's blocks, offload() has the transfers that began with decide() or moved(), and those that an iteration waits
 * for; the engine moves their bytes and calls moved() when it has seen that one is over.
 *
 * Where a tree of prefixes has copies in host memory, copies() has those under way: begun by decide() or end(), and over when the engine says so before
 * the next decide().
 *
 * it->loads and it->shown are to be looked at after decide() even where nobody is in the iteration.
 *
 * A new policy is a struct that begins with `struct maq_scheduler`, a table of operations (`static const struct maq_scheduler_ops`), a constructor, and its
 * case in src/serve/engine/choose_scheduler.c. Policies that there are: vllm.h, and trtllm.h, which is vllm.h with another rule of admission.
 */
#ifndef MAQ_SERVE_SCHED_SCHEDULER_H
#define MAQ_SERVE_SCHED_SCHEDULER_H

#include "maquette/diag.h"
#include "serve/kv/content.h"
#include "serve/sched/image_tokens.h"

#define MAQ_NO_SLOT UINT32_MAX

struct maq_offload;
struct maq_radix_tree;
struct maq_swap;

enum maq_request_part { MAQ_PART_WHOLE, MAQ_PART_PREFILL, MAQ_PART_DECODE };

/* A request that comes. */
struct maq_scheduler_request {
    int64_t prompt, output; /* tokens; output: that it samples, at least 1 */
    int64_t
        limit; /* tokens that it may sample at most, as far as the engine knows; 0 = output, of which it then knows */
    int32_t priority;
    double arrival;
    uint64_t order;             /* tells it from all others */
    struct maq_content content; /* its names stay where they are as long as the scheduler lives */
    uint8_t part;               /* enum maq_request_part */
    struct maq_image_run images;
    bool first_known; /* of a DECODE: its first token comes with its keys and values */
};

/* A DECODE that has got room for its keys and values, of which it found `found` tokens; one that loads `found` tokens from a tier. */
struct maq_load {
    uint32_t slot;
    int64_t found;
};

/* A DECODE whose first token was known and is shown to its client now. */
struct maq_shown {
    uint32_t slot;
    bool ended; /* it was its last one, too: the slot is free */
};

/* What an iteration does for a request. */
struct maq_scheduled {
    uint32_t slot;
    int32_t tokens, drafts; /* that it computes; how many of them are drafts */
    int64_t computed;       /* before it */
    uint64_t order;         /* of the request: the slot may have another one when the iteration ends */
    int64_t hit;            /* tokens that were found cached when it was taken in; -1: it ran already */
    int64_t loaded;         /* of them, those that are loaded from host memory for this iteration */
    bool samples;           /* its known tokens are computed to their end */
    bool prefill;           /* of its prompt, or again what was lost, where the scheduler tells that from decoding */
    bool last;              /* it is sure to have sampled its last token with this: nobody verifies drafts behind it */
    int32_t came;           /* tokens that reached its client when the iteration ended; 0 also where they were lost */
};

struct maq_iteration {
    struct maq_scheduled *scheduled; /* [n] */
    uint32_t n, size;
    uint32_t *preempted; /* slots */
    uint32_t n_preempted, preempted_size;
    uint32_t *finished; /* slots that became free when it ended */
    uint32_t n_finished, finished_size;
    struct maq_load *loads;
    uint32_t n_loads, loads_size;
    struct maq_shown *shown;
    uint32_t n_shown, shown_size;
    int64_t tokens;
};
void maq_iteration_fini(struct maq_iteration *it);
/* Nobody is in it any more; what it holds stays for the next use. */
void maq_iteration_clear(struct maq_iteration *it);
/* False when out of memory. */
bool maq_iteration_add(struct maq_iteration *it, const struct maq_scheduled *s);
bool maq_iteration_load(struct maq_iteration *it, uint32_t slot, int64_t found);
bool maq_iteration_show(struct maq_iteration *it, uint32_t slot, bool ended);
/* One more to a list of slots, which grows; false when out of memory. */
bool maq_slots_push(uint32_t **list, uint32_t *n, uint32_t *size, uint32_t value);

struct maq_scheduler_load {
    uint32_t running, waiting, aside; /* aside: of those that wait, DECODEs that have got room */
    int64_t used, all; /* of the KV cache, in what it is cut into; what is only kept for later requests is not in use */
    int64_t kept;      /* for later requests alone; -1 = not told */
};

#define MAQ_STEADY_DECODES_PERIOD 256u

/* Iterations that differ in nothing but lengths: all of `slots` decode a token in each, in this order. */
struct maq_steady_decodes {
    const uint32_t *slots; /* [n], the scheduler's */
    uint32_t n;
    int64_t most;                              /* before one of them samples its last token */
    int64_t free;                              /* of the cache, that may be taken before somebody has to give way */
    uint32_t period;                           /* iteration i takes taken[i % period] of it */
    uint32_t taken[MAQ_STEADY_DECODES_PERIOD]; /* [period] */
    uint32_t phase;                            /* of the next iteration; 0 in the beginning */
};

/* Of a scheduler without requests. */
static inline struct maq_steady_decodes maq_steady_decodes_of_nobody(void)
{
    return (struct maq_steady_decodes){.most = INT64_MAX, .period = 1};
}

struct maq_scheduler;

struct maq_scheduler_ops {
    const char *name;
    void (*fini)(struct maq_scheduler *s);
    /* A request that waits from now on. MAQ_NO_SLOT when out of memory. */
    uint32_t (*add)(struct maq_scheduler *s, const struct maq_scheduler_request *request);
    /* It is given up. */
    void (*abort)(struct maq_scheduler *s, uint32_t slot);
    /* Decides the next iteration; it->n may be 0. */
    void (*decide)(struct maq_scheduler *s, struct maq_iteration *it);
    /* Whether no prompt begins in the iterations that are decided from now on. NULL: it does not keep any back. */
    void (*hold)(struct maq_scheduler *s, bool holds);
    /* sampled[i] tokens came out for it->scheduled[i]; NULL: one where `samples`. Fills it->finished and what `came`. */
    void (*end)(struct maq_scheduler *s, struct maq_iteration *it, const int32_t *sampled);
    /* Drafts were proposed for the request in a slot behind its last iteration. NULL: it counts on as many as its knobs say. */
    void (*propose)(struct maq_scheduler *s, uint32_t slot, int32_t drafts);
    struct maq_scheduler_load (*load)(const struct maq_scheduler *s);
    /* A DECODE that was in it->loads: its keys and values are there. */
    void (*arrived)(struct maq_scheduler *s, uint32_t slot);
    /* A PREFILL that has ended: what it holds is not needed any more, and its slot is free. */
    void (*release)(struct maq_scheduler *s, uint32_t slot);
    /* Tokens of a prompt that are in the cache, of a request that has not come. */
    int64_t (*cached)(struct maq_scheduler *s, const struct maq_content *content, int64_t prompt);
    /* Tokens of a request that are computed, or are in iterations under way. */
    int64_t (*computed)(const struct maq_scheduler *s, uint32_t slot);
    /* What it keeps in tiers behind the GPU's blocks, and the transfers that it began (serve/kv/offload.h); NULL: nothing, or it has none. */
    struct maq_offload *(*offload)(struct maq_scheduler *s);
    /* A transfer is over. */
    void (*moved)(struct maq_scheduler *s, uint32_t job);
    /* What it copies to host memory and back beside its iterations (serve/kv/radix_host.h); NULL: nothing. */
    struct maq_radix_tree *(*copies)(struct maq_scheduler *s);
    /* What it moves to host memory and back before an iteration (serve/kv/swap.h); NULL: nothing, or it has none. */
    struct maq_swap *(*swap)(struct maq_scheduler *s);
    /* False: the next iteration has to be decided. What is under way is the engine's to look at. With n = 0: nobody is there, and to
     * decide any number of iterations would change nothing. */
    bool (*steady_decodes)(const struct maq_scheduler *s, struct maq_steady_decodes *out);
    /* Does `steps` iterations of steady decodes. What of it nobody sees is left out: which part of the cache each takes. */
    void (*skip)(struct maq_scheduler *s, const struct maq_steady_decodes *steady, int64_t steps);
};

/* The beginning of every scheduler. */
struct maq_scheduler {
    const struct maq_scheduler_ops *ops;
    bool failed; /* out of memory: what was decided is not to be relied on; look once after each iteration */
};

#endif
