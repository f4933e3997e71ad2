/* SPDX-License-Identifier: Apache-2.0 */
/*
 * risk.h - how sure a duration is: what varies, learnt from records; what it does to a step.
 *
 *   maq_risk_fit()      the law of a series of step times, with the confidence of each of its quantiles
 *   maq_risk_replay()   a recorded job run again: what it would take without stragglers, and which they are
 *   maq_risk_step()     the distribution of a job's step time, and what drives it
 *   maq_risk_graph()    the same of any graph with times
 *
 * A quantile has an interval of its own, from order statistics: no law is assumed for it (David and Nagaraja, "Order statistics",
 * 7.1). NaN stands for a bound that the sample is too small to give.
 */
#ifndef MAQUETTE_RISK_H
#define MAQUETTE_RISK_H

#include "maquette/graph.h"
#include "maquette/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is said of a distribution. */
enum maq_risk_figure { MAQ_RISK_P50, MAQ_RISK_P95, MAQ_RISK_P99, MAQ_RISK_MEAN, MAQ_RISK_FIGURE_COUNT };
MAQ_API const char *maq_risk_figure_name(enum maq_risk_figure figure); /* "p50", ..., "mean" */

/* --- learning from a series --------------------------------------------------------------------------------------- */

struct maq_risk_estimate {
    double predicted, low, high; /* 95 % confidence interval of the figure */
    double next_low,
        next_high;   /* where the figure of as many steps again lies, if the record drifts as it did; NaN: too short */
    double observed; /* in the part that was held out; NaN without one */
    double error;    /* predicted / observed - 1; NaN likewise */
};

/* A law that was tried: shift + Y (docs/risk.md). */
struct maq_risk_law {
    const char *name; /* "lognormal", "mixture of two", ... */
    double shift, scale, shape;
    double distance; /* Kolmogorov and Smirnov's, from the body of the series */
    bool accepted;   /* distance at most maq_risk_series.floor */
};
#define MAQ_RISK_LAWS 12

/* A series of step times, as it was understood. Times in seconds. */
struct maq_risk_series {
    const char *name;           /* of the file */
    bool traced;                /* steps that a profiler's trace marks */
    uint32_t n, fitted, judged; /* steps: all, used to learn, held out */
    uint32_t warm_up;           /* of the fitted ones: at the start, left out */
    double effective;           /* independent recent steps that the fitted ones are worth */
    uint32_t spikes, clumps;    /* steps above 1.5 x the median, and groups of neighbours among them */
    double spike_rate;          /* per step */
    double spike_mean_s;        /* mean duration of such a step; NaN without one */
    double slow_share,
        slow_ratio;     /* a second mode of the body: share of steps, its median over that of the others; 0 = none */
    double mode_cv;     /* of the body around its modes; cv where there is one */
    double drift;       /* ln of the median of the last quarter over that of the first one, after warm-up */
    double correlation; /* of neighbours, of the body */
    double cv;          /* of the body: standard deviation over mean */
    uint32_t stretch,
        held_stretch; /* steps in a row above the predicted p99, the most: of those fitted, of those held out */
    uint32_t n_laws;
    struct maq_risk_law laws[MAQ_RISK_LAWS]; /* in order of distance */
    double floor;                            /* distance above which no law is accepted */
    bool pooled; /* none was: the recorded values themselves are the law. Otherwise laws[0] is */
    struct maq_risk_estimate figure[MAQ_RISK_FIGURE_COUNT];
    double
        guarantee_s; /* with 95 % confidence at most 5 % of steps exceed it; NaN when the series is too short to say */
};

#define MAQ_RISK_KERNEL_QUANTILES 32
/* What runs of an operation vary by, in a record of kernels. */
struct maq_risk_kernel {
    const char *name;              /* as a variation calls it: "gemm", "all_reduce tp"; "other" has no name there */
    uint64_t runs;                 /* recorded */
    uint32_t pools;                /* kernels and shapes, each compared with its own median */
    double share;                  /* of the time of all kernels */
    bool measured;                 /* false: no pool has enough runs, and nothing below is known */
    double cv;                     /* of the runs up to 1.5 medians */
    double slow_share, slow_ratio; /* of the others, and their mean over the median; 0 and 1 without one */
    double waiting_share;          /* of a collective's runs, those that waited for others, left out */
    const char *law;               /* nearest to the body; "pool": none is near enough; "-": not known */
    uint32_t n_quantiles;          /* 0: not known */
    double quantile[MAQ_RISK_KERNEL_QUANTILES]; /* of that law, over the median, at (i + 1/2) / n */
    double distance, floor; /* Kolmogorov and Smirnov's, and the one above which no law is accepted */
};
struct maq_risk_record {
    const char *name;     /* of the file */
    bool measured;        /* by `maquette profile`; otherwise a profiler's trace */
    uint32_t steps;       /* that the trace marks */
    double step_median_s; /* NaN without one */
    uint32_t n_kernels;
    struct maq_risk_kernel *kernel; /* most time first */
};

struct maq_risk_fit {
    uint32_t n;
    struct maq_risk_series *series; /* [n], one per table, and per trace that marks enough steps */
    uint32_t n_records;
    struct maq_risk_record *record; /* one per trace and file of measured kernels */
    void *owner;                    /* internal */
};

struct maq_risk_fit_opts {
    uint32_t size;      /* set by MAQ_RISK_FIT_OPTS_INIT */
    double holdout;     /* share of the series, from its end, to judge on; 0 = none */
    const char *column; /* the column with times; NULL = found by its name */
};
#define MAQ_RISK_FIT_OPTS_INIT                                                                                         \
    {                                                                                                                  \
        .size = sizeof(struct maq_risk_fit_opts)                                                                       \
    }

/*
 * Learns from CSV files (plain or gzip) with a column of step times: iteration_time_s, step_time_ms, ...; the unit is the end of the
 * name. From the JSON of PyTorch's profiler (plain or gzip): its steps, and what its kernels vary by. From the file of `maquette
 * profile`: what its kernels vary by. *out is owned by the caller (maq_risk_fit_free).
 */
MAQ_API enum maq_status maq_risk_fit(struct maq_risk_fit **out, const char *const *paths, uint32_t n_paths,
                                     const struct maq_risk_fit_opts *opts, struct maq_diag *diag);
MAQ_API void maq_risk_fit_free(struct maq_risk_fit *fit);
/* What was learnt as a document that `variation` of maq_risk_step_opts may name, NUL-terminated; *out is owned by the caller (free). */
MAQ_API enum maq_status maq_risk_fit_variation(char **out, const struct maq_risk_fit *fit, struct maq_diag *diag);

/* --- a recorded job -------------------------------------------------------------------------------------------------- */

/* What a part of the job costs by itself: the mean step when only its operations last as recorded and all others are ideal, over
 * the ideal step. */
struct maq_risk_part {
    uint32_t dp_rank, stage; /* what it is a part by; of a worker both */
    double slowdown;
};
struct maq_risk_operation {
    const char *name; /* "forward-compute"; "forward-pp-comm" for sending and receiving of activations */
    double slowdown;
    uint64_t count;
    double mean_s, median_s;
};

/*
 * An ideal operation lasts what its kind does over the whole record: the mean for computation, the median for communication. So work
 * that is spread unevenly over stages counts as slowdown too.
 */
struct maq_risk_replayed {
    uint32_t n_steps, dp, pp;
    double recorded_s;        /* mean time from the first start to the last end of a step */
    double step_mean_s;       /* replayed, with the delays of launches that were recorded */
    double no_launch_delay_s; /* replayed, with everything launched in time */
    double ideal_s;
    double slowdown;         /* no_launch_delay_s / ideal_s */
    double worker_share;     /* of no_launch_delay_s - ideal_s: gone when the slowest 3 % of workers are ideal */
    double last_stage_share; /* gone when the last stage is */
    const double *step_s;    /* [n_steps] replayed; their mean is step_mean_s */
    const uint32_t *step;    /* [n_steps] numbers as recorded */
    const struct maq_risk_part *stage;          /* [pp] slowest first, as all lists here */
    const struct maq_risk_part *dp_rank;        /* [dp] */
    const struct maq_risk_part *worker;         /* [dp * pp] */
    const struct maq_risk_operation *operation; /* [n_operations] */
    uint32_t n_operations;
    bool workers_estimated; /* too many to replay each: the lesser of its rank's and its stage's slowdown */
    void *owner;            /* internal */
};

/* `ops` is a CSV (plain or gzip) of operations, `meta` a YAML document with dp_size, pp_size and vpp_size: docs/risk.md. *out is
 * owned by the caller (maq_risk_replayed_free). */
MAQ_API enum maq_status maq_risk_replay(struct maq_risk_replayed **out, const char *ops, const char *meta,
                                        struct maq_diag *diag);
MAQ_API void maq_risk_replayed_free(struct maq_risk_replayed *replayed);

/* --- a step ------------------------------------------------------------------------------------------------------------ */

struct maq_risk_quantile {
    double value_s, low_s, high_s; /* with the 95 % interval of what sampling leaves open */
};

/* The fewest steps from which a bound follows; each is of as many draws as the job has replicas. */
#define MAQ_RISK_BOUND_LEAST 59u

/* A source of variation: what it does to the 95th percentile. Not additive: the sources do not add up to the whole. */
struct maq_risk_source {
    const char *name, *text;
    struct maq_risk_quantile alone;   /* p95 when only it varies, less the step in which nothing does */
    struct maq_risk_quantile removed; /* p95, less that when all but it varies */
};
#define MAQ_RISK_SOURCES 16

/* Parts of a step that one can ask about: operations ("gemm", "all_reduce tp"), parallel dimensions, pipeline stages. */
enum maq_risk_parts { MAQ_RISK_KERNELS, MAQ_RISK_DIMENSIONS, MAQ_RISK_STAGES, MAQ_RISK_PARTS };
MAQ_API const char *maq_risk_parts_name(enum maq_risk_parts parts); /* "kernels", ... */

/* A part, and what its variation does to the 95th percentile. Not additive: the slowest decides. */
struct maq_risk_driver {
    char name[40];
    double share;                     /* of the step that its passes take, mean over stages; NaN: it is in none */
    struct maq_risk_quantile alone;   /* p95 when only it varies, less the step in which nothing does */
    struct maq_risk_quantile halved;  /* p95, less that when it keeps half of its variation */
    struct maq_risk_quantile removed; /* p95, less that when it does not vary */
};

/* A slow GPU in one of the stages: the step then. */
struct maq_risk_place {
    struct maq_risk_quantile p50, p95;
};

#define MAQ_RISK_CURVE 129u

struct maq_risk_step {
    const struct maq_job *job; /* borrowed */
    double base_s;             /* when nothing varies: maq_train_predict()'s step_s, bit for bit */
    struct maq_risk_quantile p5, figure[MAQ_RISK_FIGURE_COUNT];
    double sd_s;
    /* Of the distribution function, at even steps from what 0.2 % of steps do not exceed to what 99.5 % do not: times, and shares that do
     * not exceed them. All zero when not asked for. */
    double curve_s[MAQ_RISK_CURVE], curve_share[MAQ_RISK_CURVE];
    /* With 95 % confidence at most 5 % of steps exceed it, whatever their law, if base_s is right: the prediction's own error is not in it.
     * NaN: too few draws. */
    double bound_s;
    uint32_t bound_steps;   /* whole steps that it was counted from; 0 where the law is exact */
    double replicas;        /* pipelines that meet once a step */
    double lockstep;        /* devices of a stage that wait for each other in every layer */
    uint32_t stages, draws; /* sampled replicas, for each regime */
    bool exact;             /* nothing was sampled */
    double
        tail_share; /* of a replica's ends, above which its law is continued beyond the draws; 0 = that was not needed */
    uint32_t n_sources;
    struct maq_risk_source source[MAQ_RISK_SOURCES]; /* largest alone first; none when not asked for */
    struct maq_risk_driver
        *driver[MAQ_RISK_PARTS]; /* [n_drivers] largest alone first, stages in order; NULL when not asked for */
    uint32_t n_drivers[MAQ_RISK_PARTS];
    double place_factor;
    struct maq_risk_place *place; /* [stages] of one replica; NULL when not asked for */
};

struct maq_risk_step_opts {
    uint32_t size;         /* set by MAQ_RISK_STEP_OPTS_INIT */
    uint32_t draws;        /* 0 = 10,000, fewer for very long schedules */
    uint32_t threads;      /* 0 = one per core; results do not depend on it */
    uint64_t seed;         /* 0 = 1 */
    const char *variation; /* name in the catalogue or path of a document; NULL = "default" */
    const char *const *
        slow; /* "node:17=1.2x", "rank:4095=1.1x", "stage:3=1.1x", "link:rail3=0.5x": times as long; of a link as fast */
    uint32_t n_slow;
    bool sampled;    /* sample also where the exact law is known: to compare */
    bool no_sources; /* leaves out what drives it, which takes most of the time */
    uint32_t parts;  /* asks which parts drive it: bits 1 << MAQ_RISK_KERNELS, ... */
    bool curve;      /* asks for the distribution function */
    double place;    /* asks where a GPU does least harm that takes so many times as long: 1.2; 0 = not asked */
};
#define MAQ_RISK_STEP_OPTS_INIT                                                                                        \
    {                                                                                                                  \
        .size = sizeof(struct maq_risk_step_opts)                                                                      \
    }

/* *out is owned by the caller (maq_risk_step_free). */
MAQ_API enum maq_status maq_risk_step(struct maq_risk_step **out, const struct maq_job *job,
                                      const struct maq_risk_step_opts *opts, struct maq_diag *diag);
MAQ_API void maq_risk_step_free(struct maq_risk_step *step);

/* --- a graph --------------------------------------------------------------------------------------------------------- */

/* An operator on the longest path. */
struct maq_risk_longest {
    const char *name; /* the graph's */
    double seconds;
    uint32_t count;
};
#define MAQ_RISK_DRIVERS 12

/* How long a graph with times takes, a captured job's for instance. Times are of all of it. */
struct maq_risk_graph {
    double base_s; /* when nothing varies */
    struct maq_risk_quantile p5, figure[MAQ_RISK_FIGURE_COUNT];
    double sd_s;
    double guarantee_s; /* with 95 % confidence at most 5 % of the times exceed it, whatever their law */
    uint32_t draws;
    uint32_t n_sources;
    struct maq_risk_source source[MAQ_RISK_SOURCES]; /* largest alone first; none when not asked for */
    uint32_t n_drivers;
    struct maq_risk_longest driver[MAQ_RISK_DRIVERS];            /* longest first */
    double curve_s[MAQ_RISK_CURVE], curve_share[MAQ_RISK_CURVE]; /* as in struct maq_risk_step */
};

/* Ranks of a class that are slow as long as the job runs. */
struct maq_risk_slow_class {
    uint32_t class_id, ranks; /* ranks: how many of it run kernels slowly */
    double kernels;           /* times as long */
    double communication;     /* times as long, what leaves their nodes and the class takes part in */
};

struct maq_risk_graph_opts {
    uint32_t size;         /* set by MAQ_RISK_GRAPH_OPTS_INIT */
    uint32_t draws;        /* 0 = 2,000, fewer for large graphs; otherwise at least 2 */
    uint64_t seed;         /* 0 = 1 */
    const char *variation; /* name in the catalogue or path of a document; NULL = "default" */
    const struct maq_risk_slow_class *slow;
    uint32_t n_slow;
    bool no_sources;
    bool curve; /* asks for the distribution function */
};
#define MAQ_RISK_GRAPH_OPTS_INIT                                                                                       \
    {                                                                                                                  \
        .size = sizeof(struct maq_risk_graph_opts)                                                                     \
    }

/* *out is a plain value; names in it are the graph's. */
MAQ_API enum maq_status maq_risk_graph(struct maq_risk_graph *out, const struct maq_timed_graph *timed,
                                       const struct maq_risk_graph_opts *opts, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
