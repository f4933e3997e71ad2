/* SPDX-License-Identifier: Apache-2.0 */
/*
 * serve_planner.h - the best deployment of a model for requests and bounds on their latencies: what `maquette serve plan` finds.
 *
 *   open job (model, cluster)  +  what the engine is told  +  requests, bounds   --maq_serve_search()-->   candidates, the best of them
 *
 * Two questions. With a rate: the fleet of the least cost that carries it. Without: the deployment whose replicas on all devices carry
 * the most. A candidate is a replica: degrees, types, limits of the engine. It carries a rate when one simulated run (maq_fleet_run())
 * holds all bounds and is not overloaded.
 *
 * The answer is that of simulating every candidate, as far as two statements are true. One: no deployment carries more than its closed form
 * (src/serve/engine/steady.h), with MAQ_SERVE_SEARCH_MARGIN to spare; candidates that would have to are left out, unless `exhaustive`.
 * Two: who misses a bound at one rate misses it at any higher one, and with fewer replicas; so a candidate is asked once whether it would
 * be better than the best so far, and looked into only if it is. To MAQ_SERVE_SEARCH_TOLERANCE of the rate.
 *
 * The same input gives the same result, whatever the number of threads.
 */
#ifndef MAQUETTE_SERVE_PLANNER_H
#define MAQUETTE_SERVE_PLANNER_H

#include <signal.h>

#include "maquette/serve_fleet.h"

#ifdef __cplusplus
extern "C" {
#endif

#define MAQ_SERVE_SEARCH_MARGIN 1.1
#define MAQ_SERVE_SEARCH_TOLERANCE 0.01

/* What a candidate is one value each of: identifier, name, what it is. */
/* clang-format off */
#define MAQ_SERVE_AXIS_LIST(X)                                                                                         \
    X(TP,      "tp",                     "tensor parallelism: powers of two and divisors of a scale-up domain")        \
    X(PP,      "pp",                     "pipeline parallelism: powers of two")                                        \
    X(DP,      "dp",                     "attention data parallelism, where there are experts: powers of two")         \
    X(EP,      "ep",                     "ranks that the experts are spread over: 1, or all of tp x dp")               \
    X(AFD,     "afd-ffn-ranks",          "GPUs of FFN beside those of attention (0: none), which ep is of: what is told")  \
    X(MICRO,   "afd-micro-batches",      "with them: what is told, or 2")                                              \
    X(ENGINE,  "engine",                 "vllm, sglang, trtllm: the one that is told")                                 \
    X(WEIGHTS, "weights",                "type of the weights, experts' too: the one that is told")                    \
    X(KV,      "kv-cache-dtype",         "auto, fp8: the one that is told")                                            \
    X(SEQS,    "max-num-seqs",           "the engine's default, and powers of two below it from 8 on")                 \
    X(TOKENS,  "max-num-batched-tokens", "the engine's default, and powers of two from 2,048 to 16,384")
/* clang-format on */
enum maq_serve_axis {
#define MAQ_SERVE_AXIS_ENUM(id, name, what) MAQ_SERVE_AXIS_##id,
    MAQ_SERVE_AXIS_LIST(MAQ_SERVE_AXIS_ENUM)
#undef MAQ_SERVE_AXIS_ENUM
        MAQ_SERVE_AXIS_COUNT
};
MAQ_API const char *maq_serve_axis_name(enum maq_serve_axis axis);

struct maq_serve_candidate;

/* What a part of a fleet is beside others: so many parts have to be there at once; as pools they hand requests over. */
struct maq_serve_together {
    uint32_t parts;
    bool pools;
};

/*
 * Replicas fail: how many it takes so that as many as hold the bounds are there. The search knows nothing else of failures. What it finds
 * is the least cost with them, as far as replicas() does not fall with `needed`, and as above. It is called from several threads, load()
 * from one.
 */
struct maq_serve_reserve {
    /* The fewest, needed <= *n <= most; *n = 0: no number of them does. */
    enum maq_status (*replicas)(uint32_t *n, void *user, const struct maq_serve_candidate *c, uint32_t needed,
                                uint32_t most, struct maq_serve_together with);
    /* What a replica's weights take when it starts (load_s of a candidate). */
    enum maq_status (*load)(double *out, void *user, const struct maq_serve_candidate *c, struct maq_diag *diag);
    void *user;
};

struct maq_serve_search_opts {
    const struct maq_serve_options *options; /* what the engine is told; what is 0 there may be chosen */
    const char *const *lists;                /* "tp=2,4": values of an axis, in place of what is told and of its own */
    size_t n_lists;
    const struct maq_request_spec
        *spec; /* requests; their rate is not looked at. n = 0 and no duration: as many as it takes */
    const struct maq_requests *requests; /* instead: these, with their arrival times; NULL = drawn */
    double rate;                         /* requests a second that have to be carried; 0 = as many as can be */
    const struct maq_slo *slo;           /* n = 0: that the fleet is not overloaded */
    enum maq_router router;
    const struct maq_serve_reserve *reserve; /* NULL: nothing fails */
    bool exhaustive;                         /* everything is simulated that fits in memory (tests) */
    bool no_pools;                           /* prompts are computed where tokens are */
    uint32_t threads;
    const volatile sig_atomic_t *stop; /* set by a signal handler: the best so far is the result; NULL = never */
    void (*progress)(void *context, uint32_t done, uint32_t all);
    void *context;
};

/* What is known of a candidate in the end: identifier, name, what it is. */
/* clang-format off */
#define MAQ_SERVE_VERDICT_LIST(X)                                                                                      \
    X(OPEN,       "open",         "the search was stopped before it was looked at")                                    \
    X(IMPOSSIBLE, "impossible",   "degrees do not go together with the model or the cluster")                          \
    X(UNFIT,      "does not fit", "weights, activations and a request need more memory than there is")                 \
    X(SLOW,       "too slow",     "a request that is alone misses a bound")                                            \
    X(BOUNDED,    "bounded",      "by its closed form it carries less than the best, or costs more")                   \
    X(MISSED,     "missed",       "misses a bound where it would be better than the best")                             \
    X(TIED,       "tied",         "as many GPUs as the best, and no further from its bounds by the first requests")    \
    X(BEATEN,     "beaten",       "carries its requests, and is not the best")                                         \
    X(BEST,       "best",         "of its node group")
/* clang-format on */
enum maq_serve_verdict {
#define MAQ_SERVE_VERDICT_ENUM(id, name, what) MAQ_SERVE_VERDICT_##id,
    MAQ_SERVE_VERDICT_LIST(MAQ_SERVE_VERDICT_ENUM)
#undef MAQ_SERVE_VERDICT_ENUM
        MAQ_SERVE_VERDICT_COUNT
};
MAQ_API const char *maq_serve_verdict_name(enum maq_serve_verdict verdict);

struct maq_serve_candidate {
    enum maq_serve_verdict verdict;
    int32_t at[MAQ_SERVE_AXIS_COUNT];  /* its values; of SEQS and TOKENS 0 is the engine's default */
    bool own_limits;                   /* SEQS and TOKENS are what is told, or the engine's own */
    bool own_seqs, own_tokens;         /* one of them */
    uint32_t group;                    /* of the cluster */
    uint32_t gpus;                     /* of a replica */
    const struct maq_job *job;         /* of a replica: its node group, its degrees; NULL where they are impossible */
    struct maq_serve_options options;  /* what its engine is told */
    const char *why;                   /* IMPOSSIBLE: not; NULL */
    double needed_bytes, device_bytes; /* UNFIT: without a cache, and what the engine may have */
    /* closed form */
    double first_s, token_s; /* TTFT and TPOT of a request that is alone */
    double most_per_s;       /* requests a second that a replica cannot carry more of */
    double likely_per_s;     /* with whole prompts */
    double stay_s;           /* how long a request stays then */
    double prefill_per_s;    /* that compute nothing but prompts; with own_seqs */
    double decode_per_s;     /* that compute none; with own_tokens */
    double load_s;           /* with a reserve: what its weights take when it starts */
    /* replicas in all, 0 = no room: with a rate those that are likely, and the least; of a full node group those that are there */
    uint32_t likely_replicas, least_replicas, counted_on;
    /* simulated, if `runs` > 0 */
    uint32_t runs,
        replicas; /* replicas: with a rate those that it needs, else those that the node group has room for, or that are there of them */
    uint32_t with_spares;          /* as many in all, so that `replicas` are there */
    double rate;                   /* requests a second that `replicas` carry; 0 = it is not known */
    double ttft_s, tpot_s, e2el_s; /* means at that rate */
    double slack;                  /* of the bound that is nearest to being missed: 1 = just met */
    double first_slack;            /* the same of the first requests, with a rate */
    struct maq_slo_outcome missed; /* MISSED: the bounds where it was asked */
    double missed_rate;            /* requests a second then */
    uint32_t missed_replicas;      /* of so many replicas */
    bool missed_overloaded;
};

/* A part of the fleet that is best: so many replicas of a candidate. */
struct maq_serve_part_of_fleet {
    uint32_t candidate, replicas;
    uint32_t needed;    /* of them, those that hold the bounds: fewer where replicas fail */
    enum maq_role role; /* PREFILL and DECODE: two pools (serve_fleet.h) */
};

/* Throughput against latency: a candidate with its engine's own limits under so many requests at a time. */
struct maq_serve_front_point {
    uint32_t candidate, concurrency;
    double tokens_per_s_per_gpu, tokens_per_s_per_user, ttft_s; /* simulated */
};

/* Where nothing holds the bounds: what comes nearest, and the bound that it misses by most. */
struct maq_serve_nearest {
    double value_s;       /* of a request that is alone, or simulated; 0: there is none */
    double low_s, high_s; /* 80 % interval of it: the bound may be held where low_s is within it */
    struct maq_slo_bound bound;
    uint32_t candidate;
};

struct maq_serve_search_result {
    struct maq_serve_candidate *candidates; /* [n] in the order of the axes */
    uint32_t n;
    uint32_t counts[MAQ_SERVE_VERDICT_COUNT];
    /* [n_fleet] the best; where nothing carries the rate that was asked, what carries the most; n_fleet = 0: nothing holds the bounds */
    struct maq_serve_part_of_fleet *fleet;
    uint32_t n_fleet;
    struct maq_serve_nearest nearest; /* with n_fleet = 0, once the search is complete */
    bool carries;                     /* the rate that was asked; without one, any */
    double rate;                      /* requests a second that it carries: the asked one, or the sum over its parts */
    double usd_per_hour;              /* 0 = a price is not known */
    uint32_t gpus;
    uint32_t pools,
        pools_tried;     /* pairs of pools that could be better by their closed form, and those that were simulated */
    uint32_t n_requests; /* of a simulated stream */
    uint32_t n_all;      /* of one for the whole fleet */
    uint32_t runs;
    bool complete;                       /* it was not stopped */
    struct maq_serve_front_point *front; /* [n_front], the fastest for one user first; maq_serve_front() */
    uint32_t n_front;
    void *owner; /* internal */
};

/* *out is owned by the caller (maq_serve_search_free) and borrows the job and what the options point to. That nothing holds is a result. */
MAQ_API enum maq_status maq_serve_search(struct maq_serve_search_result **out, const struct maq_loaded_job *open,
                                         const struct maq_serve_search_opts *opts, struct maq_diag *diag);
MAQ_API void maq_serve_search_free(struct maq_serve_search_result *result);

/* The fleet of a result that has one. What it points to is the result's and `members`, room for [n_fleet]. */
MAQ_API struct maq_fleet maq_serve_search_fleet(const struct maq_serve_search_result *result,
                                                const struct maq_serve_search_opts *opts,
                                                struct maq_fleet_member *members);
/* The search's requests at the rate of its fleet, owned by the caller (maq_requests_free); prefixes are those of the result. */
MAQ_API enum maq_status maq_serve_search_requests(struct maq_request_set **out,
                                                  const struct maq_serve_search_result *result,
                                                  const struct maq_serve_search_opts *opts, struct maq_diag *diag);

/*
 * Fills the front: of all candidates with the engine's own limits at all concurrencies, those that none beats in tokens a second and GPU
 * and in tokens a second and user by the closed form; each then simulated.
 */
MAQ_API enum maq_status maq_serve_front(struct maq_serve_search_result *result,
                                        const struct maq_serve_search_opts *opts, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
