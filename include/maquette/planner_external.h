/* SPDX-License-Identifier: Apache-2.0 */
/*
 * planner_external.h - the best plan of a job over several node groups, composed of the plans that a parallelizer returns for each
 * of them.
 *
 * An open job (maq_job_load_open) has model, cluster and batch. The parallelizer (maquette/parallelizer.h) is asked for plans of
 * every slice of the model (neighbouring atoms) on every island; its answers are composed into one pipeline over all islands:
 *
 *     T = (waves - 1) max_i t_i  +  sum_i t_i  +  max_i sync_i  +  sum_i once_i          t_i = time of a stage + transfers that it sends
 *
 * with min(position from the end, waves) waves in flight (1F1B), and no more devices than an island has. An island may be left out,
 * be used in part, or serve several layer ranges of the pipeline; a slice may come as several stages.
 *
 * Pairs of slice and island are not asked for when
 *
 *   redundancy     a slice with the same signature was asked for
 *   infeasibility  the least memory of the slice is more than the island has
 *   imbalance      by the parallelizer's own profile no pipeline with this pair is faster than one that is known
 *   reuse          plans for a position still fit further from the end
 *
 * and none of these rules changes the plan: each follows from what the parallelizer promises. bound_s is a lower bound of every
 * composition of its answers.
 *
 * The same job, parallelizer and options give the same result, whatever the number of workers.
 */
#ifndef MAQUETTE_PLANNER_EXTERNAL_H
#define MAQUETTE_PLANNER_EXTERNAL_H

#include <signal.h>

#include "maquette/job.h"
#include "maquette/mixed_plan.h"
#include "maquette/parallelizer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct maq_slices_progress {
    uint32_t asked, to_ask; /* pairs of slice and island, of this round */
    double best_s;          /* 0: none yet */
};

struct maq_slices_opts {
    uint32_t size; /* set by MAQ_SLICES_OPTS_INIT */
    /* "builtin" (NULL as well): maquette's own; a shared object (its name ends with .so, or has .so. in it); or a program. */
    const char *parallelizer;
    const struct maq_parallelizer *functions; /* in place of a name; borrowed */
    uint32_t workers;                         /* states or processes; 0 = 1 */
    double timeout_s;                         /* of one answer of a program; 0 = 600 */
    uint32_t top;                             /* plans wanted, each of another wave; 0 = 1 */
    const char *const *lists;                 /* "tp=1,2,4", as struct maq_search_opts */
    size_t n_lists;
    bool ask_again, ask_infeasible, ask_unbalanced,
        ask_everywhere;                /* without redundancy, infeasibility, imbalance, reuse */
    const volatile sig_atomic_t *stop; /* nonzero: end with the best so far, else MAQ_LIMIT; NULL = none */
    void (*progress)(void *context, const struct maq_slices_progress *at); /* from the calling thread; NULL = none */
    void *context;
};
#define MAQ_SLICES_OPTS_INIT                                                                                           \
    {                                                                                                                  \
        .size = sizeof(struct maq_slices_opts)                                                                         \
    }

struct maq_slices_stage {
    uint32_t first_layer, layers; /* layer 0 is the embedding, the last one the output */
    uint32_t island, piece;       /* `piece`: which of the plan's pieces it belongs to */
    uint32_t devices, replicas;
    uint32_t cp, ep;                 /* 1 where it does not say */
    uint32_t tp, micro_batch;        /* 0: the parallelizer does not say */
    int recompute, sharding;         /* enum maq_recompute, enum maq_sharding; -1: it does not say */
    double compute_s, hop_s, sync_s; /* of a wave; what it sends; once per step */
    double once_s;                   /* once per step, when all stages have reduced */
    double memory_bytes, capacity_bytes;
    uint32_t in_flight; /* waves that it holds at most */
};

/* A piece: one plan of the parallelizer for a slice on an island. */
struct maq_slices_piece {
    uint32_t first_layer, layers, island, first_stage, n_stages;
    const char *text; /* the parallelizer's own; "" when it gave none */
};

struct maq_slices_plan {
    uint32_t waves, wave_samples;
    double step_s, bottleneck_s, fill_s, sync_s;
    uint32_t bottleneck; /* the slowest stage */
    uint32_t n_stages, n_pieces;
    const struct maq_slices_stage *stages;
    const struct maq_slices_piece *pieces;
};

struct maq_slices_island {
    const char *device;
    uint32_t nodes, devices_per_node;
    uint32_t used; /* devices that the best plan uses */
};

/* Calls of parallelize(): all = made + saved. */
struct maq_slices_calls {
    uint64_t all; /* slices x islands (and parts of them) x waves x positions */
    uint64_t made, redundancy, infeasibility, imbalance, reuse;
    uint64_t plans;    /* different ones that came back */
    uint64_t profiles; /* calls of profile() */
};

struct maq_slices_counts {
    uint64_t waves, waves_bounded;           /* in all; refuted by their bound alone */
    uint64_t considered, bounded, dominated; /* back parts of pipelines; refuted by a bound, by a better one */
};

struct maq_slices_result {
    uint32_t n_plans; /* the best first; 0: none fits */
    const struct maq_slices_plan *plans;
    double bound_s, gap;
    bool exact; /* plans[0] is the best composition of the parallelizer's plans */
    const char *parallelizer;
    uint32_t n_atoms, n_slices, n_distinct; /* slices, and those with different signatures */
    uint32_t n_layers, n_islands;
    const struct maq_slices_island *islands;
    struct maq_slices_calls calls;
    struct maq_slices_counts counts;
    void *owner; /* internal */
};

/* *out is owned by the caller (maq_slices_free) and borrows the job. No plan that fits is a result without plans. */
MAQ_API enum maq_status maq_slices_search(struct maq_slices_result **out, const struct maq_loaded_job *open,
                                          const struct maq_slices_opts *opts, struct maq_diag *diag);
MAQ_API void maq_slices_free(struct maq_slices_result *result);

/* A plan of the result as a mixed plan; *out is owned by the caller (maq_mixed_plan_free). MAQ_NO with the reason where the form
 * has no words for it: stages whose degrees the parallelizer does not say, or whose replicas take different micro batches. */
MAQ_API enum maq_status maq_slices_mixed_plan(struct maq_loaded_mixed_plan **out,
                                              const struct maq_slices_result *result, uint32_t plan,
                                              struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
