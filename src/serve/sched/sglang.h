/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sglang.h - the scheduler of SGLang: prompts before tokens, a prefix cache that is a radix tree.
 *
 * Every iteration is one of two kinds, and a prefill goes first:
 *
 *   prefill   of those that wait, in the order of the policy, as long as each finds room for its prompt and for what all that run may yet
 *             sample, under two budgets of tokens (max_prefill_tokens, chunked_prefill_size). The last one may be cut; it goes on first in
 *             the next prefill, and there is at most one such at a time. Who does not fit stops the others, and nobody is tried again until somebody
 *             that runs has ended (`full`)
 *   decode    a token of all that run. If the cache lacks room, those with the least output (of equals the longest prompts) are retracted, until it
 *             does not: what they have beyond the tree is given back, they wait at the end, and are computed again with what they sampled
 *
 * With mixed chunks a prefill takes the decodes along. What those that run may yet sample is limit - sampled (4,096 at most) times new_token_ratio, or
 * all of it for those of which the engine knows that they stop there and not before; the ratio falls with each decode, is
 * estimated anew at a retraction, and starts over when there is nobody.
 *
 * With overlap an iteration is decided before the one before it has ended: who is sure to end with that is left out, others are computed once too often,
 * and what a retracted request has under way is lost.
 *
 * With speculative decoding an iteration of decodes verifies `verified` tokens of each that runs, and the cache holds `reserve` slots behind what is known to be
 * computed of it, so much that the next iteration can be decided before this one ended (mem_cache/allocation_sizing.py). Decodes that go along
 * with a prefill sample a token.
 *
 * Pipeline stages have a batch of their own each (`lanes`), without overlap, which is less than scheduler_pp_mixin.py does.
 *
 * A server of one kind alone (struct maq_sglang_knobs, part), with disaggregation/prefill.py and decode.py:
 *
 *   PREFILL   prefills alone. Who is done leaves the batch and keeps what it has until release(); then it goes to the tree
 *   DECODE    no prefills, no tree. Those that wait get slots for their prompts in their order, while these and reserved_decode_tokens fit beside as many
 *             for each that is here, and what those that run may sample at the most fits, too. When its keys and values are there a request
 *             runs, as long as max_running lasts. Who is retracted keeps what it has on the host, and returns before anybody gets slots; the
 *             copies to the host and back are not counted
 *
 * With LoRA adapters (`max_loras`) those that run and those of a prefill have at most so many different ones, none counted as one. Who would make it one
 * more keeps its place, and others overtake it (scheduler.py, can_schedule_lora_req()).
 *
 * With copies in host memory (HiCache; radix_host.h) a request whose beginning goes on there gets room for it as it is taken in, and what it computes is behind
 * that: its prefill is launched at once, and each layer waits for its part. Less than 10 tokens are computed again, and so is what finds no room.
 *
 * By priority (`preempts`) one for which there is no row takes the place of those that run and are `preempts_by` behind it, the last ones first and of equals those that
 * entered last, if what they may yet sample is as much as it lacks. They are retracted, and wait again as if they came. Whether it finds room itself
 * is another matter.
 *
 * The rules are those of SGLang 0.5.23 (managers/scheduler.py, schedule_batch.py, schedule_policy.py, mem_cache/prefill_budget.py, mem_cache/allocation.py,
 * managers/scheduler_components/). Not here: draining and overlapped loading of adapters, storage behind host memory, sliding-window pools; of disaggregation optimistic
 * prefills and a tree on the side of decode.
 */
#ifndef MAQ_SERVE_SCHED_SGLANG_H
#define MAQ_SERVE_SCHED_SGLANG_H

#include "serve/kv/radix_host.h"
#include "serve/kv/radix_tree.h"
#include "serve/sched/adapter_set.h"
#include "serve/sched/scheduler.h"

struct maq_sglang_knobs {
    int64_t tokens;           /* of the cache */
    int64_t host_tokens;      /* of its copies in host memory; 0 = there are none */
    int32_t page;             /* tokens that it gives at once */
    int32_t max_running;      /* requests */
    int32_t max_prefill;      /* tokens of a prefill batch */
    bool max_prefill_is_hard; /* who has more than is left of them waits where prompts are cut, too (before 0.5.13) */
    int32_t chunk;            /* of them, prompts cut; 0 = prompts are computed whole */
    int32_t max_requests;     /* of a prefill batch; 0 = no such bound */
    int32_t lanes;            /* pipeline stages; 0 = 1 */
    int32_t max_loras;        /* different adapters of a batch, none as one of them; 0 = no such bound */
    double conservativeness;
    uint8_t policy, eviction; /* enum maq_sglang_policy, enum maq_radix_eviction */
    uint8_t hicache;          /* enum maq_hicache_policy: of host memory */
    uint8_t part;             /* enum maq_request_part: of all its requests */
    int32_t reserved,
        spare_rows; /* DECODE: tokens for each request that is here; rows for those whose keys and values come */
    int32_t verified,
        drafts;      /* tokens of a request in a decode, and drafts behind each other among them; 0 = one token */
    int64_t reserve; /* slots behind what is computed, for a decode */
    bool pairs;      /* the prefix cache is a tree of pairs of tokens */
    bool caching, overlap, mixed;
    bool by_priority, low_first; /* before the policy, by priority: the highest first, or the lowest */
    bool preempts;               /* by_priority: who waits takes the place of those that run */
    int32_t preempts_by;         /* and is so much before each of them, at least */
};

enum maq_sglang_status { MAQ_SGLANG_FREE, MAQ_SGLANG_WAITING, MAQ_SGLANG_TAKEN, MAQ_SGLANG_LOADING, MAQ_SGLANG_HELD };

struct maq_sglang_request {
    int64_t prompt, output, limit;
    int64_t sampled;   /* that the scheduler knows of */
    int64_t prefix;    /* computed before its prefill */
    int64_t end;       /* of its prefill */
    int64_t held;      /* tokens for which it has slots; 0 = none */
    int64_t committed; /* of them, those that are known to be computed and to stay: with speculative decoding */
    int64_t tree_owns; /* of them, those of the tree */
    int64_t inserted;  /* in the tree by it */
    int64_t loaded;    /* of its prefix, with this prefill from the host */
    int64_t on_host;   /* tokens behind its prefix that are on the host alone */
    int64_t matched;   /* of it that the tree was found to hold, while it waits */
    uint64_t entered, order;
    uint32_t node, lock; /* where its prefix ends in the tree; what it locked, MAQ_RADIX_NONE = nothing */
    uint32_t found;      /* where what is on the host ends */
    uint32_t flying;     /* iterations under way that sample for it */
    uint32_t preemptions;
    int32_t priority;
    uint8_t status;
    int64_t filled;   /* tokens of it that were known when it was last looked at to be taken in */
    bool leaves;      /* it gives way to another */
    bool stops_known; /* it samples `limit` tokens and the engine knows */
    bool retracted;   /* what it has under way is lost */
    bool seen;        /* it was in an iteration */
    struct maq_content content;
};

/* A batch that runs, and the last one decided. */
struct maq_sglang_lane {
    uint32_t *running, n_running, running_size;
    uint32_t *last, n_last, last_size; /* of a prefill */
    uint32_t last_chunked;
    uint32_t flying; /* iterations under way */
    bool last_prefill, full, idle;
};

struct maq_sglang {
    struct maq_scheduler base;
    struct maq_sglang_knobs knobs;
    struct maq_radix_tree tree;
    struct maq_sglang_request *at; /* slots */
    uint32_t n_slots, slots_size, *free_slots, n_free_slots, free_size;
    uint32_t *waiting, n_waiting, waiting_size;
    uint32_t *taken, n_taken, taken_size; /* of a prefill that is decided */
    void *sorting;                        /* [sorting_size] of those that wait */
    uint32_t sorting_size;
    struct maq_sglang_lane *lanes;
    uint32_t *ready, n_ready, ready_size;             /* DECODE: their keys and values are there */
    uint32_t *retracted, n_retracted, retracted_size; /* they are on the host */
    uint32_t n_loading;                               /* they are on the way */
    uint32_t lane, *flights, n_flights, flights_size; /* whose turn it is; of iterations under way, the oldest first */
    uint32_t chunked;                                 /* slot whose prompt was cut; MAQ_NO_SLOT */
    uint32_t rows;                                    /* requests that hold slots of the cache */
    int64_t available;                                /* tokens that nobody holds, nor the tree */
    double ratio, ratio_first, ratio_least, ratio_step;
    uint64_t entries, refreshes, draws;
    struct maq_adapter_set adapters; /* of the prefill that is decided, and of those that run */
};

/* Drafts of a request in a decode. */
struct maq_sglang_tree_of_drafts {
    int32_t steps, branches, verified;
    bool has_cache; /* what drafts writes keys and values */
    int32_t page;
};
/*
 * Slots that a decode reserves behind what is computed: twice what it may fill, since it is decided before the one before it ended. That is all that is verified,
 * or what the steps of a tree fill, where each of its branches begins in a page of its own. 0: nobody drafts (mem_cache/allocation_sizing.py).
 */
int64_t maq_sglang_reserve(const struct maq_sglang_tree_of_drafts *tree);
enum maq_status maq_sglang_new(struct maq_scheduler **out, const struct maq_sglang_knobs *knobs);
/* Tokens that a request has to leave free in an empty cache, so that it is taken in. */
int64_t maq_sglang_room(int64_t prompt, int64_t output, int32_t page);

/* ---- within the scheduler ---- */

static inline int64_t maq_sglang_pages(const struct maq_sglang *s, int64_t tokens)
{
    return (tokens + s->knobs.page - 1) / s->knobs.page * s->knobs.page;
}
/* Evicts until so many tokens are available, or nothing is left to evict. */
void maq_sglang_evict(struct maq_sglang *s, int64_t tokens);
/* Offers what is computed of a request to the tree, which then owns it in whole pages. */
void maq_sglang_keep(struct maq_sglang *s, struct maq_sglang_request *r, int64_t tokens);
/* Gives back all that a request holds; keep: what is computed goes to the tree. */
void maq_sglang_release(struct maq_sglang *s, struct maq_sglang_request *r, bool keep);
bool maq_sglang_wait(struct maq_sglang *s, uint32_t slot);
/* Puts those that wait in the order of the policy. sglang_order.c */
void maq_sglang_sort(struct maq_sglang *s);
/* The prefix of a request in the tree, of at most `most` tokens. */
void maq_sglang_look_up(struct maq_sglang *s, struct maq_sglang_request *r, int64_t most);
/* A prefill into s->taken, with slots for all of it; its tokens, 0 = none. `cut`: the one whose prompt is cut. sglang_admit.c */
int64_t maq_sglang_admit(struct maq_sglang *s, struct maq_sglang_lane *lane, struct maq_iteration *it);
/* sglang_preempt.c: requests that run give way to one that waits and lacks so many tokens; *given: what they might have sampled. False: none does. */
bool maq_sglang_preempt(struct maq_sglang *s, struct maq_sglang_lane *lane, uint32_t slot, double lacks, double *given,
                        struct maq_iteration *it);
/* Tokens that one that runs may yet sample, as its scheduler expects. */
double maq_sglang_expected(const struct maq_sglang *s, const struct maq_sglang_request *r);
/* Those that gave way, from the `first` of the iteration's on, wait. */
void maq_sglang_requeue(struct maq_sglang *s, const struct maq_iteration *it, uint32_t first);
int64_t maq_sglang_urgency(const struct maq_sglang *s, const struct maq_sglang_request *r);
/* sglang_decide.c */
/* Tokens that have slots behind the next decode. */
int64_t maq_sglang_held_next(const struct maq_sglang *s, const struct maq_sglang_request *r);
void maq_sglang_decide(struct maq_scheduler *base, struct maq_iteration *it);
/* A token of all that run. */
void maq_sglang_decode(struct maq_sglang *s, struct maq_sglang_lane *l, struct maq_iteration *it);
/* sglang_remote.c: a DECODE server's next iteration; who is retracted there; operations of the scheduler. */
void maq_sglang_decide_remote(struct maq_sglang *s, struct maq_sglang_lane *l, struct maq_iteration *it);
void maq_sglang_set_aside(struct maq_sglang *s, uint32_t slot);
void maq_sglang_arrived(struct maq_scheduler *base, uint32_t slot);
void maq_sglang_done(struct maq_scheduler *base, uint32_t slot);
int64_t maq_sglang_cached(struct maq_scheduler *base, const struct maq_content *content, int64_t prompt);
void maq_sglang_free_request(struct maq_sglang *s, uint32_t slot);
/* One that ran gives back what it has; it is not in the batch any more, in which `others` stay. */
void maq_sglang_take_back(struct maq_sglang *s, uint32_t slot, uint32_t others, struct maq_iteration *it);
bool maq_sglang_has_room(struct maq_sglang *s, const uint32_t *slots, uint32_t n);
bool maq_sglang_steady_decodes(const struct maq_scheduler *base, struct maq_steady_decodes *out);
void maq_sglang_skip(struct maq_scheduler *base, const struct maq_steady_decodes *steady, int64_t steps);

#endif
