/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vllm.h - the scheduler of vLLM V1: which tokens of which requests an iteration computes.
 *
 * There is no prefill and no decode. A request has `computed` tokens and `tokens` known ones (its prompt, what it sampled, drafts);
 * each iteration hands out at most max_num_batched_tokens tokens to close the gap:
 *
 *   1. to requests that run, in their order. If blocks lack, the last one (or the least urgent one) is preempted: its blocks go back, it
 *      waits at the front, and will be computed again from its beginning, or from what is left of it in the prefix cache;
 *   2. if nobody was preempted, to requests that wait, in theirs, while max_num_seqs lasts and the whole prompt would find room. Who
 *      does not fit stops the others.
 *
 * With async scheduling an iteration is decided before the outcome of the last one is known; a request then has placeholders for what
 * that one will sample, and what a preempted request still has in flight arrives late.
 *
 * A request whose prompt another engine computes (scheduler.h, DECODE) takes the blocks of its whole prompt, behind what it finds cached, when its turn
 * comes among those that wait, and no tokens of an iteration. Then it stands aside (WAITING_FOR_REMOTE_KVS) until its keys and values are there, and goes
 * before all others that wait: with the last token of its prompt, which is computed again, or with its first token where that is known. Preempted,
 * it is computed here from its beginning. One whose prompt alone is computed here (PREFILL) leaves those that run when it ends, and its blocks stay.
 *
 * With tiers behind the GPU's blocks (serve/kv/offload.h) a request whose turn comes is looked up there, too, behind what it found in the GPU. What it can
 * load it gets blocks for, and stands aside until it is there, as one whose prompt another engine computes; then it goes on with the rest of its prompt,
 * at least its last token. One that has to be asked again keeps its place and others overtake it. vllm_offload.c
 *
 * With LoRA adapters (`max_loras`) those that run have at most so many different ones. Who waits and would make it one more keeps its place, and others overtake
 * it; those that run already always go on.
 *
 * Held against vLLM 0.33.0 (v1/core/sched/scheduler.py, async_scheduler.py) step by step: `maquette validate schedule`.
 */
#ifndef MAQ_SERVE_SCHED_VLLM_H
#define MAQ_SERVE_SCHED_VLLM_H

#include "serve/kv/kv_cache.h"
#include "serve/kv/offload.h"
#include "serve/kv/swap.h"
#include "serve/sched/adapter_set.h"
#include "serve/sched/queue.h"
#include "serve/sched/scheduler.h"

struct maq_vllm_knobs {
    int32_t max_num_seqs, max_num_batched_tokens;
    int64_t max_model_len;
    int32_t long_prefill_token_threshold; /* 0 = none */
    bool adaptive_long_prefill;           /* the threshold is at least a fair share of the tokens */
    bool chunked_prefill, priority, async, reserve_full_isl;
    /* blocks that an iteration under way writes cannot be given to a load: nobody who is in one is preempted, and who ends while in a later one gives
     * back what it holds when that has ended */
    bool defers_frees;
    /* those that wait, in the order in which they came first: who was preempted has no front of its own */
    bool by_arrival;
    int32_t spec_tokens;      /* drafts of a request in an iteration */
    int32_t lookahead_tokens; /* slots beyond, for a draft model that has a cache of its own */
    int32_t draft_slots;      /* of the batch, for each request */
    int64_t image_budget;     /* tokens of images that begin in an iteration, or one image; 0 = no such bound */
    int32_t max_loras;        /* different adapters of those that run; 0 = no such bound */
    int32_t
        stagger; /* async: so many iterations on, one that decodes may again: the stages of a pipeline; 0 and 1: the next */
};

enum maq_vllm_status {
    MAQ_VLLM_FREE,
    MAQ_VLLM_WAITING,
    MAQ_VLLM_RUNNING,
    MAQ_VLLM_PREEMPTED,
    MAQ_VLLM_LOADING, /* its keys and values are on the way */
    MAQ_VLLM_LOADED,  /* they are there */
    MAQ_VLLM_HELD     /* it has ended, and others read its blocks */
};

struct maq_vllm_request {
    int64_t prompt, most; /* tokens of the prompt; that it samples at most */
    int64_t tokens, computed;
    int32_t in_flight;    /* tokens of iterations that have not ended */
    int32_t stale;        /* of them, those from before a preemption */
    int32_t placeholders; /* tokens that iterations in flight will sample, drafts counted */
    int32_t drafts;       /* proposed for the next iteration */
    int32_t given;        /* tokens of the iteration that is being decided; 0 = none */
    uint64_t eligible;    /* it decodes again in that iteration at the earliest */
    uint8_t status;       /* enum maq_vllm_status */
    uint8_t part;         /* enum maq_request_part; WHOLE as soon as what is not computed here is there */
    bool first_known;
    bool partial; /* its last iteration did not reach the end of its known tokens */
    uint32_t preemptions;
    struct maq_image_run images;
    struct maq_waiting rank; /* priority, slot, arrival, order */
    uint32_t user;           /* of the tiers, where there are any */
    uint32_t shown;          /* blocks that the tiers know to be its own */
    struct maq_kv_request kv;
};

/* Blocks of a request that has ended, while iterations may write them: until that one has ended. */
struct maq_vllm_deferred {
    uint64_t until;
    struct maq_kv_request kv;
};

struct maq_vllm;

/* Another engine's rule of who is taken in, and who gives way, beside those above. All of them or none, but for the first two. */
struct maq_vllm_admission {
    /* Before an iteration is decided: may preempt (maq_vllm_give_way()), which keeps nobody out then. */
    void (*before)(struct maq_vllm *s, struct maq_iteration *it);
    /* Whether nobody begins in this iteration, when those that run have what they get of it; NULL = somebody may. */
    bool (*keeps_back)(struct maq_vllm *s, const struct maq_iteration *it);
    bool (*admits)(const struct maq_vllm *s, const struct maq_vllm_request *r);
    void (*taken_in)(struct maq_vllm *s, const struct maq_vllm_request *r);
    void (*left)(struct maq_vllm *s, const struct maq_vllm_request *r); /* it ended, was preempted or given up */
};

struct maq_vllm {
    struct maq_scheduler base;
    struct maq_vllm_knobs knobs;
    const struct maq_vllm_admission *admission; /* NULL = vLLM's own rules and no other */
    struct maq_kv_cache kv;
    struct maq_vllm_request *at; /* slots */
    uint32_t n_slots, slots_size, *free_slots, n_free_slots, free_size;
    uint32_t *running, n_running, running_size;
    struct maq_queue waiting;
    struct maq_waiting *skipped; /* in one pass over those that wait */
    uint32_t n_skipped, skipped_size;
    bool holds;    /* nobody begins: ranks wait for each other */
    uint64_t step; /* iterations that were asked for */
    uint32_t *loading, n_loading, loading_size,
        n_loaded; /* who stands aside, in the order of their turns; those that may go on */
    struct maq_kv_request probe;
    struct maq_vllm_deferred *deferred; /* [n_deferred], in the order in which they ended */
    uint32_t n_deferred, deferred_size;
    struct maq_adapter_set adapters; /* of those that run, while an iteration is decided */
    uint64_t launched, over;         /* iterations with somebody in them: decided; ended */
    struct maq_offload *offload;     /* tiers behind the GPU's blocks; NULL: there are none */
    struct maq_swap *swap;           /* TensorRT-LLM's; NULL: there is none */
};

enum maq_status maq_vllm_init(struct maq_vllm *s, const struct maq_vllm_knobs *knobs, const struct maq_kv_options *kv);
void maq_vllm_fini(struct maq_vllm *s);
/* The same on the heap, for an engine: ended by its operations. */
enum maq_status maq_vllm_new(struct maq_scheduler **out, const struct maq_vllm_knobs *knobs,
                             const struct maq_kv_options *kv);

/* A request that waits from now on; its slot is its own until it finishes. MAQ_NO_SLOT when out of memory. */
uint32_t maq_vllm_add(struct maq_vllm *s, const struct maq_scheduler_request *request);
/* It is given up. */
void maq_vllm_abort(struct maq_vllm *s, uint32_t slot);

/* Decides the next iteration; it->n may be 0. */
void maq_vllm_decide(struct maq_vllm *s, struct maq_iteration *it);
/*
 * An iteration has ended, in the order in which they were decided: sampled[i] tokens came out for it->scheduled[i], accepted drafts and one
 * more; NULL: one where `samples`. Fills it->finished.
 */
void maq_vllm_end(struct maq_vllm *s, struct maq_iteration *it, const int32_t *sampled);
/* Drafts that were proposed for a request after its last iteration; without async scheduling. */
void maq_vllm_propose(struct maq_vllm *s, uint32_t slot, int32_t drafts);

/* The keys and values of a request that stands aside are there; those of one that has ended are not needed any more. vllm_remote.c */
void maq_vllm_arrived(struct maq_vllm *s, uint32_t slot);
void maq_vllm_release(struct maq_vllm *s, uint32_t slot);
int64_t maq_vllm_cached(struct maq_vllm *s, const struct maq_content *content, int64_t prompt);

/* Tiers, before any request comes. vllm_offload.c */
enum maq_status maq_vllm_set_tiers(struct maq_vllm *s, const struct maq_offload_options *options);
void maq_vllm_moved(struct maq_vllm *s, uint32_t job);

/* ---- within the scheduler ---- */

/* Host memory as TensorRT-LLM has it, of so many blocks, before any request comes; only one group of layers, that keeps all tokens. vllm_swap.c */
enum maq_status maq_vllm_set_swap(struct maq_vllm *s, int64_t places);
void maq_vllm_swap_fini(struct maq_vllm *s);
/* Tokens of a request behind the `found` that the GPU has, which would be moved back with it; whether it was taken in, which is handed on. */
int64_t maq_vllm_swap_claim(struct maq_vllm *s, const struct maq_vllm_request *r, int64_t found);
bool maq_vllm_swap_end(struct maq_vllm *s, bool moved);

/* Of vllm_offload.c; all but look() do nothing without tiers. */
void maq_vllm_offload_fini(struct maq_vllm *s);
bool maq_vllm_offload_add(struct maq_vllm *s, uint32_t slot);
/* Tokens of a request that wait in a tier behind `found` that the GPU has; MAQ_OFFLOAD_LATER. */
int64_t maq_vllm_offload_look(struct maq_vllm *s, struct maq_vllm_request *r, int64_t found);
/* The first of those that wait gets blocks for what it can load and stands aside; false: there are none. */
bool maq_vllm_offload_load(struct maq_vllm *s, struct maq_iteration *it, struct maq_waiting first, int64_t found,
                           int64_t tokens);
void maq_vllm_offload_begin(struct maq_vllm *s);
/* An iteration is decided, and none of it counted as computed yet. */
void maq_vllm_offload_decided(struct maq_vllm *s, const struct maq_iteration *it);
void maq_vllm_offload_preempted(struct maq_vllm *s, uint32_t slot);
/* It is about to be freed, with so many tokens computed. */
void maq_vllm_offload_ended(struct maq_vllm *s, uint32_t slot, int64_t computed);
/* Iterations of steady decodes before somebody has something to store; 0: now. */
int64_t maq_vllm_offload_quiet(const struct maq_vllm *s);

/* Blocks that those in the middle of their prompts are sure to ask for. vllm_remote.c */
int64_t maq_vllm_promised(const struct maq_vllm *s);
/* The first of those that wait gets blocks for `added` tokens behind those that are `found`, which come from elsewhere, and stands aside behind
 * all others; false: there are none. vllm_remote.c */
bool maq_vllm_take_aside(struct maq_vllm *s, struct maq_waiting first, int64_t found, int64_t added);

/* The first of those that wait gets blocks for its whole prompt and stands aside; false: there are none. vllm_remote.c */
bool maq_vllm_reserve(struct maq_vllm *s, struct maq_iteration *it, struct maq_waiting first);

/* Preempts the request at a place of the list of those that run; it is listed in it->preempted. vllm_decide.c */
void maq_vllm_give_way(struct maq_vllm *s, struct maq_iteration *it, uint32_t place);
/* Ends a request: gives back its blocks and its slot. */
void maq_vllm_free_request(struct maq_vllm *s, uint32_t slot);
/* Operations of struct maq_scheduler. vllm_fast_forward.c */
extern const struct maq_scheduler_ops maq_vllm_ops;

#endif
