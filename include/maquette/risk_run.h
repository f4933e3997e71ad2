/* SPDX-License-Identifier: Apache-2.0 */
/*
 * risk_run.h - when a training run will be done, and where its time goes: failures, checkpoints, spares.
 *
 * A run is simulated from its first start to its last save, failure by failure, some ten thousand times. Every nanosecond of the wall
 * clock is in exactly one bucket. Between failures nothing is random but the step time of the whole run, so that a failure costs
 * some hundred nanoseconds to simulate and thousands of steps cost nothing.
 *
 * After a failure, with the times of struct maq_failures: it is detected; nodes that were lost leave for repair and are replaced by spares,
 * or waited for; the programs are queued, started, and read the last checkpoint that counts. What follows depends on `recovery`:
 *
 *   restart   the job goes on with all its nodes, or waits until it has them
 *   elastic   without a spare it goes on with fewer data-parallel replicas, and takes them back in when nodes return
 *   replica   the other replicas go on after `reconfigure_s`; the one that failed joins them again when it has a node, has started
 *             and has read a peer's state. Only when fewer than `min_replicas` are left it is a restart
 *
 * Random numbers are addressed by replica and failure (base/stat/rng.h of the library): the same seed gives the same bytes on any number of
 * threads, and two runs that differ in one option see the same failures.
 */
#ifndef MAQUETTE_RISK_RUN_H
#define MAQUETTE_RISK_RUN_H

#include "maquette/checkpoint.h"
#include "maquette/failures.h"
#include "maquette/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Where time goes, beside the category that ml-goodput-measurement gives it. */
/* clang-format off: one row, one line */
/*    id           name                          category                                what                                        */
#define MAQ_RUN_BUCKET_LIST(X)                                                                                         \
    X(PRODUCTIVE, "productive", "goodput", "steps that the run keeps")                                                 \
    X(STARTUP, "startup", "program_startup", "the first start")                                                        \
    X(DETECTION, "detection", "infrastructure_recovery", "until a failure is noticed")                                 \
    X(NODE_WAIT, "waiting_for_node", "infrastructure_recovery", "no spare left: until a node is back")                 \
    X(REQUEUE, "requeue", "infrastructure_recovery", "until the programs start again")                                 \
    X(RESTART, "restart", "program_startup", "starting after a failure")                                               \
    X(RESTORE, "checkpoint_restore", "checkpoint_restore", "reading a checkpoint")                                     \
    X(SAVE, "checkpoint_save", "checkpoint_save", "saving, as far as the job stands still")                            \
    X(WASTED, "wasted_progress", "wasted_progress_from_disruption", "steps done twice")                                \
    X(EVALUATION, "evaluation", "custom", "evaluations")                                                               \
    X(SLICE_DOWN, "slice_down", "elastic_slice_down", "going on with fewer replicas")                                  \
    X(RECONFIGURE, "reconfigure", "elastic_reinitialization", "taking a replica out")                                  \
    X(SCALE_UP, "scale_up", "elastic_scale_up", "taking a replica back in")
/* clang-format on */

enum maq_run_bucket {
#define MAQ_RUN_BUCKET_ENUM(id, name, category, what) MAQ_RUN_##id,
    MAQ_RUN_BUCKET_LIST(MAQ_RUN_BUCKET_ENUM)
#undef MAQ_RUN_BUCKET_ENUM
        MAQ_RUN_BUCKET_COUNT
};
struct maq_run_bucket_info {
    const char *name, *category, *what;
};
MAQ_API struct maq_run_bucket_info maq_run_bucket_info(enum maq_run_bucket bucket);

enum maq_run_recovery { MAQ_RECOVERY_RESTART, MAQ_RECOVERY_ELASTIC, MAQ_RECOVERY_REPLICA, MAQ_RECOVERY_COUNT };
MAQ_API const char *maq_run_recovery_name(enum maq_run_recovery recovery); /* "restart", "elastic", "replica" */

/* Which failures a checkpoint survives. */
enum maq_run_survives {
    MAQ_SURVIVES_PROCESS, /* kept in the memory of its node: programs that start again there */
    MAQ_SURVIVES_NODE,    /* and on a peer: the loss of one node */
    MAQ_SURVIVES_ALL,     /* on shared storage */
};

/* A level of checkpoints; the first has every = 1, the last must survive everything. */
struct maq_run_level {
    uint32_t every;   /* of the saves of the level below */
    double save_s;    /* the job stands still */
    double persist_s; /* behind it, until the checkpoint counts */
    double restore_s;
    enum maq_run_survives survives;
};

#define MAQ_RUN_LEVELS 4

struct maq_run_opts {
    uint32_t size; /* set by MAQ_RUN_OPTS_INIT */
    /* what is run */
    double step_s;     /* of all replicas together */
    double steps;      /* a whole number */
    double step_sigma; /* sd of ln(step time) of a whole run: what is not known of it */
    double step_noise; /* sd of one step over its mean, independent from step to step */
    uint32_t devices, devices_per_node;
    uint32_t dp_replicas, min_replicas;  /* of the data parallelism; 0 = 1 */
    const struct maq_failures *failures; /* borrowed; NULL: nothing fails */
    enum maq_failure_clock clock;
    /* checkpoints */
    double interval_s; /* work between saves; 0 = the best one for the mean rate; INFINITY = none */
    uint32_t n_levels; /* 0 = none */
    struct maq_run_level levels[MAQ_RUN_LEVELS];
    double evaluate_every_s, evaluate_s; /* work between evaluations, and how long one takes; 0 = none */
    /* what is there when it fails */
    uint32_t spares;       /* nodes */
    uint32_t shared_nodes; /* nodes of other jobs that take from the same spares */
    enum maq_run_recovery recovery;
    double reconfigure_s, rejoin_s; /* elastic, replica: all stand still for so long */
    /* the simulation */
    uint32_t replicas; /* 0 = 10,000 */
    uint64_t seed;
    uint32_t threads; /* 0 = one per core; the result does not depend on it */
    double
        give_up; /* times the ideal length with start and last save, at which a run is given up; 0 = MAQ_RUN_GIVE_UP */
    double promise_s, promise_share; /* a date to keep in so many of the cases; 0 = none */
};
#define MAQ_RUN_GIVE_UP 10.0
#define MAQ_RUN_OPTS_INIT                                                                                              \
    {                                                                                                                  \
        .size = sizeof(struct maq_run_opts), .dp_replicas = 1, .min_replicas = 1, .reconfigure_s = 60, .rejoin_s = 10, \
        .seed = 1                                                                                                      \
    }

/*
 * What a prediction says of a run of so many tokens: step time, steps, devices, replicas; and one level of checkpoints on shared
 * storage that keeps up with `storage_bps` (0: MAQ_RUN_STORAGE_BPS for every node), saved behind the job. The rest of *opts stays.
 */
MAQ_API void maq_run_opts_of_train(struct maq_run_opts *opts, const struct maq_train_result *train, double tokens,
                                   double storage_bps);

/* Bytes per parameter of a checkpoint: weights in 16 bits; master weights and two moments of Adam in 32. */
#define MAQ_RUN_BYTES_PER_PARAMETER 14.0
/* Published: BLOOM 2.3 TB in 40 s on 48 nodes (1.2 GB/s each), Llama 3's store 2 TB/s sustained for 2,048 (1.0). */
#define MAQ_RUN_STORAGE_BPS 1e9
/* What an asynchronous save stops the job for. Published: below 0.5 s (DCP, 8B), below 1 s (Nemotron), 6.3 s (IBM), 30 s (Ling-1T). */
#define MAQ_RUN_SAVE_S 2.0

/* A quantile of simulated values with its 95 % interval, from order statistics: it holds for every law. NaN: too few for a bound. */
struct maq_run_quantile {
    double q, value, low, high;
};
#define MAQ_RUN_QUANTILES 4 /* p5, p50, p95, p99 */

#define MAQ_RUN_CURVE 201u

struct maq_run_cause {
    const char *name;
    double count;  /* mean per run */
    double lost_s; /* mean wall clock that went into its failures: detection to restart, and steps done twice */
};

struct maq_run_result {
    struct maq_run_opts opts; /* as simulated: interval and counts filled in */
    double ideal_s;           /* steps x step time */
    double nodes;
    double mtbf_s;                          /* of the whole job at the mean rate; INFINITY = never */
    double startup_s;                       /* mean of the first start */
    double interval_s, optimal_interval_s;  /* INFINITY = none */
    double wall_s, wall_sd_s, wall_error_s; /* mean, standard deviation, standard error of the mean */
    struct maq_run_quantile wall[MAQ_RUN_QUANTILES];
    double wall_curve_s[MAQ_RUN_CURVE]; /* quantiles at even steps, from the shortest run to the longest */
    /* With 95 % confidence at most 5 % of runs take longer, if their step times are drawn right: the error of a predicted step is in it where
     * opts.step_sigma is (--step-error). NaN: below 59 runs, too few to say, or so many given up that there is none. */
    double bound_s;
    double bucket_s[MAQ_RUN_BUCKET_COUNT]; /* means; they add up to wall_s */
    double goodput;                        /* productive over wall clock, of the means */
    struct maq_run_quantile goodputs[MAQ_RUN_QUANTILES];
    double ettr;                  /* productive and evaluating over wall clock */
    double failures, failures_sd; /* interruptions per run */
    double mttf_s;                /* wall clock between them; INFINITY = none */
    double nodes_lost;            /* per run */
    double gpu_hours;             /* of the devices of the job; spares not counted */
    uint32_t n_causes;
    const struct maq_run_cause *causes;
    uint32_t endless;                              /* replicas given up */
    double promise_met, promise_low, promise_high; /* share of runs within promise_s, and its 95 % interval */
    bool has_closed;                               /* a closed form applies: restart, exponential, spares enough */
    struct maq_checkpoint_run closed;              /* without the first start */
};

/* *out is owned by the caller (maq_run_result_free). */
MAQ_API enum maq_status maq_run_simulate(struct maq_run_result **out, const struct maq_run_opts *opts,
                                         struct maq_diag *diag);
/* From this wall clock on runs were given up: a quantile that reaches it is a lower bound. */
MAQ_API double maq_run_late_s(const struct maq_run_result *result);
MAQ_API void maq_run_result_free(struct maq_run_result *result);

/*
 * The same run with one thing changed at a time, on the same failures: intervals around the best one, numbers of spares, ways to
 * recover. Names are those of --what-if. Where `give_up` and `replicas` are 0, variants
 * are 2,000 runs each, given up at three times their ideal length.
 */
enum maq_run_what { MAQ_WHAT_CHECKPOINT, MAQ_WHAT_SPARES, MAQ_WHAT_REPLICAS, MAQ_WHAT_COUNT };
MAQ_API const char *maq_run_what_name(enum maq_run_what what); /* "checkpoint", "spares", "dp-replicas" */

struct maq_run_variants {
    enum maq_run_what what;
    uint32_t n, best;                /* the one with the least p95 */
    struct maq_run_result **results; /* [n] owned */
};
MAQ_API enum maq_status maq_run_what_if(struct maq_run_variants **out, const struct maq_run_opts *opts,
                                        enum maq_run_what what, struct maq_diag *diag);
MAQ_API void maq_run_variants_free(struct maq_run_variants *variants);

/* The least number of spares with which the promise of `opts` holds; UINT32_MAX when no number does. */
MAQ_API enum maq_status maq_run_least_spares(uint32_t *spares, const struct maq_run_opts *opts, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
