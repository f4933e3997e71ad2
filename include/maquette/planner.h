/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner.h - the best plan of a job: what `maquette plan` finds.
 *
 * An open job (maq_job_load_open) has model, cluster and batch; the keys of the plan that it sets stay as they are, and the
 * search decides the rest. The result is exact: no plan of the space is faster and fits, except that a search that was stopped
 * says how far from the best it can be. It equals scoring every plan of the space with maq_train_predict(): plans are dropped
 * only when a lower bound shows that they cannot win (docs/plan-search.md).
 *
 * The same job and options give the same result, whatever the number of threads.
 */
#ifndef MAQUETTE_PLANNER_H
#define MAQUETTE_PLANNER_H

#include <signal.h>

#include "maquette/peers.h"
#include "maquette/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Progress of a search, counted in plans of the space. considered = bounded + impossible + unfit + scored once a search is
 * complete.
 */
struct maq_search_counts {
    uint64_t considered; /* all plans of the space */
    uint64_t bounded;    /* dropped by a lower bound of their time or memory */
    uint64_t impossible; /* refused: degrees, batch or schedule do not fit together */
    uint64_t unfit;      /* more memory than there is */
    uint64_t scored;     /* timed */
    uint32_t branches;   /* combinations of what reaches inside a layer; each is costed once */
};

/* What a search is at: its branches are listed, each gets a lower bound, and those that can win are gone through. */
enum maq_search_phase { MAQ_SEARCH_LISTS, MAQ_SEARCH_BOUNDS, MAQ_SEARCH_EXPLORES };
struct maq_search_progress {
    struct maq_search_counts counts;
    uint32_t branches_done;
    double best_s, bound_s; /* best step so far (0 = none), and the lower bound of all plans (0 = not known yet) */
    enum maq_search_phase phase;
    bool first; /* of the small part of a whole space, which is searched before it */
};

/* One `key=value,value` list: the values that an axis may take. */
struct maq_search_opts {
    uint32_t top;       /* how many plans to report, each with other degrees; 0 = 5 */
    bool pareto_memory; /* also every plan that no other beats in both time and memory */
    bool full;          /* every axis over all its values, not only what Megatron-LM runs */
    bool
        keep_switches; /* moe_token_dispatcher_type and tp_comm_overlap, which hide communication, stay as the job has them */
    bool free;         /* what the document says of the plan is searched too; flags and lists hold */
    bool quick;        /* nothing that is said of the plan is kept, and of each axis a few values that are often good */
    bool exhaustive;          /* score everything: the answer must not change (tests) */
    const char *const *lists; /* "tp=1,2,4"; short and long keys */
    size_t n_lists;
    uint32_t threads;     /* 0 = as many as there are processors */
    double reserve_bytes; /* of each device that a plan may not use; the job's own reserve where that is more */
    /*
     * A plan fits when it fits as predicted and, as far off as published peaks were from predicted ones, in this share of runs
     * (maq_train_fit_probability) of what the reserve leaves. The job's own value goes first; 0 = as predicted.
     */
    double min_fit_probability;
    bool as_predicted;                 /* fitting as predicted is enough, whatever is said of a probability */
    double memory_bytes;               /* what each device is taken to have; 0 = what it has */
    const volatile sig_atomic_t *stop; /* set by a signal handler: the best so far is the result; NULL = never */
    void (*progress)(void *context, const struct maq_search_progress *at); /* now and then; NULL = none */
    void *context;
    uint32_t more_nodes; /* times as many nodes in the first group; 0 = 1 */
    uint32_t only_group; /* 1 and up: that node group alone; 0 = the cluster */
};
/* What `maquette plan` asks for where nothing is said: that one run in ten at most runs out of memory. */
#define MAQ_SEARCH_FIT_PROBABILITY 0.9
#define MAQ_SEARCH_OPTS_INIT                                                                                           \
    {                                                                                                                  \
        0                                                                                                              \
    }

struct maq_search_plan {
    struct maq_plan plan; /* as a document would give it; strings live with the result */
    double step_s;
    double needed_bytes; /* of the worst stage at its peak: allocated, context and communicators */
};

struct maq_search_axis { /* what was searched, for reports */
    const char *key;
    const char *values; /* "1, 2, 4, 8" */
    bool fixed;
};

struct maq_search_result {
    struct maq_search_plan *plans; /* [n_plans], best first; of each combination of degrees the best one */
    uint32_t n_plans;
    struct maq_search_plan *pareto; /* [n_pareto], by step time; empty unless asked for */
    uint32_t n_pareto;
    struct maq_search_plan
        frugal; /* nothing fits: the plan that needs the least memory; possible = false: no plan at all */
    bool frugal_found;
    double bound_s; /* proven: no plan that fits is faster. Equals plans[0].step_s when the search is complete; 0 when
                       it was stopped before anything was proven of the whole space */
    bool complete;
    double
        unproven_share; /* of a step: offloading that could gain less was not searched; 0 where nothing may be offloaded */
    struct maq_search_counts counts;
    struct maq_search_axis *axes;
    uint32_t n_axes;
    void *owner; /* internal */
};

/* *out is owned by the caller (maq_search_result_free) and borrows the job. No plan that fits is a result without plans;
 * no plan that can be at all is MAQ_BAD_INPUT, with the reason of one of them. */
MAQ_API enum maq_status maq_search(struct maq_search_result **out, const struct maq_loaded_job *open,
                                   const struct maq_search_opts *opts, struct maq_diag *diag);
MAQ_API void maq_search_result_free(struct maq_search_result *result);

/* The best plan with one axis changed. */
struct maq_search_alternative {
    const char *key, *name; /* of the plan, and its short form: "tp" */
    const char *from, *to;  /* words; live with the alternatives */
    bool neighbour;         /* next to the best plan's value on the axis */
    bool possible, fits;
    double step_s, needed_bytes;
};
struct maq_search_alternatives {
    struct maq_search_alternative *at; /* [n], in the order of the axes; of each the values in order */
    uint32_t n;
    void *owner; /* internal */
};
/* Every other value of every axis under the best plan of a result that has one. *out is owned by the caller
 * (maq_search_alternatives_free). */
MAQ_API enum maq_status maq_search_alternatives(struct maq_search_alternatives *out, const struct maq_loaded_job *open,
                                                const struct maq_search_result *result,
                                                const struct maq_search_opts *opts, struct maq_diag *diag);
/* The same for settings that are no axis: they compute the same and may hide communication or save memory (token dispatcher,
 * overlaps, fused loss, CUDA graphs). A search keeps them as the job has them. */
MAQ_API enum maq_status maq_search_settings(struct maq_search_alternatives *out, const struct maq_loaded_job *open,
                                            const struct maq_search_result *result, const struct maq_search_opts *opts,
                                            struct maq_diag *diag);
MAQ_API void maq_search_alternatives_free(struct maq_search_alternatives *alternatives);

/*
 * Of a plan that does not fit: what takes most of the memory of its worst stage, and the fastest plan that fits in nine of ten
 * runs among few (maq_search_opts.quick), as the settings to give. "" for a plan that fits. `job` is the complete job of
 * the result. It takes milliseconds.
 */
#define MAQ_ADVICE_BYTES 512
MAQ_API const char *maq_search_advice(char buf[MAQ_ADVICE_BYTES], const struct maq_loaded_job *job,
                                      const struct maq_train_result *result);

/* Headroom that a search leaves for a peak of memory above its prediction, and what it costs. */
struct maq_search_headroom {
    double min_fit_probability; /* that a plan had to have; 0: it had to fit as predicted */
    double fit_probability;     /* of the best plan, in what the reserve leaves */
    double bytes;               /* of the smallest device that no plan may need as predicted; without the reserve */
    bool searched;              /* whether a faster plan without headroom was looked for, and the search not stopped */
    struct maq_search_plan without; /* that plan; step_s = 0: there is none. Its strings live with the result */
    double without_probability;     /* of its fitting */
};
/* For a result that has a best plan, once: the search of a complete one goes on with all memory. */
MAQ_API enum maq_status maq_search_find_headroom(struct maq_search_headroom *out, const struct maq_loaded_job *open,
                                                 struct maq_search_result *result, const struct maq_search_opts *opts,
                                                 struct maq_diag *diag);

/* Nothing fits: the least memory, nodes or offloading that would change that, or less certainty, each by itself. */
struct maq_search_remedies {
    double memory_bytes;         /* of each device, to a gibibyte; 0 = none up to 64 times as much */
    uint32_t nodes;              /* of the first node group, doubled; 0 = none up to 64 times as many */
    bool offload;                /* activations and optimizer on the host */
    double fit_probability;      /* of a plan that fits as predicted and too seldom; 0 = there is none */
    struct maq_plan with_memory; /* the plans that then fit best */
    struct maq_plan with_nodes;
    struct maq_plan with_offload;
    struct maq_plan with_risk;
    double with_memory_s, with_nodes_s, with_offload_s, with_risk_s; /* their steps */
    void *owner;                                                     /* internal */
};
MAQ_API enum maq_status maq_search_find_remedies(struct maq_search_remedies *out, const struct maq_loaded_job *open,
                                                 const struct maq_search_opts *opts, struct maq_diag *diag);
MAQ_API void maq_search_remedies_free(struct maq_search_remedies *remedies);

/* The best plan of the job with another model, workload, or number or kind of devices. */
struct maq_search_variant {
    const char *model, *gpu; /* names; live with `open` */
    uint32_t seq, gbs, gpus;
    bool searched;               /* false: the search was stopped before */
    struct maq_loaded_job *open, /* the varied job */
        *job;                    /* with its best plan; job and train are NULL where nothing fits */
    struct maq_train_result *train;
    double tokens_per_s, days, gpu_hours, usd; /* the last three for 10^12 tokens; usd = 0 without a price */
    bool pareto; /* no other is as soon done and as cheap (in money where all have a price, else in GPU-hours) */
};
struct maq_search_variants {
    struct maq_search_variant *at; /* [n], in the order of model, seq, gbs, gpu, gpus; the last changes fastest */
    uint32_t n;
    void *owner; /* internal */
};
/* Whether the job has a section `search: {vary: ...}`. */
MAQ_API bool maq_search_varies(const struct maq_loaded_job *open);
/* Every combination of that section: `gpus`, `seq`, `gbs` ("256..4096:x2", "64, 128"), `gpu`, `model` (names). With peers (NULL:
 * alone) each process searches its share, and process 0 has all; the others have their own. *out is owned by the caller
 * (maq_search_variants_free). */
MAQ_API enum maq_status maq_search_vary(struct maq_search_variants *out, const struct maq_loaded_job *open,
                                        const struct maq_search_opts *opts, struct maq_peers *peers,
                                        struct maq_diag *diag);
MAQ_API void maq_search_variants_free(struct maq_search_variants *variants);

#ifdef __cplusplus
}
#endif
#endif
