/* SPDX-License-Identifier: Apache-2.0 */
/*
 * validate.h - predictions against published measurements.
 *
 * A table in CSV has one measured run per row: model dimensions, cluster, plan and workload in columns of their own, further
 * facts in prose (docs/validate.md lists the columns and how prose is read). Each row becomes a job, which is simulated; the
 * prediction is compared with what was measured. Rules are about words, frameworks and versions, never about one row or source.
 */
#ifndef MAQUETTE_VALIDATE_H
#define MAQUETTE_VALIDATE_H

#include "maquette/train.h"

#ifdef __cplusplus
extern "C" {
#endif

enum maq_validate_metric {
    MAQ_VALIDATE_TIME, /* derived_iter_time_s against step_s */
    MAQ_VALIDATE_MEMORY, /* peak_mem_gb against the stage with most: allocated, reserved or total bytes, as the row says */
    MAQ_VALIDATE_METRIC_COUNT
};
MAQ_API const char *maq_validate_metric_name(enum maq_validate_metric metric); /* "time", "memory" */

/*               name         text                                                                  */
#define MAQ_VALIDATE_SKIP_LIST(X)                                                                                      \
    X(NONE, "used")                                                                                                    \
    X(FILTERED, "filtered out")                                                                                        \
    X(PARTIAL, "completeness is partial")                                                                              \
    X(FLAGGED, "flagged by the table's own checks (qa_flag)")                                                          \
    X(NOT_MEASURED, "not measured")                                                                                    \
    X(NOT_TRAINING, "not pre-training")                                                                                \
    X(UNREADABLE, "a number that cannot be read")                                                                      \
    X(NO_MODEL, "model dimensions missing")                                                                            \
    X(NO_DEVICE, "device missing or unknown")                                                                          \
    X(NO_MAPPING, "parallel mapping missing")                                                                          \
    X(NO_BATCH, "sequence length or batch missing")                                                                    \
    X(REFUSED, "refused by maquette")                                                                                  \
    X(FAILED, "simulation failed")

enum maq_validate_skip {
#define MAQ_VALIDATE_SKIP_ENUM(name, text) MAQ_VALIDATE_SKIP_##name,
    MAQ_VALIDATE_SKIP_LIST(MAQ_VALIDATE_SKIP_ENUM)
#undef MAQ_VALIDATE_SKIP_ENUM
        MAQ_VALIDATE_SKIP_COUNT
};
MAQ_API const char *maq_validate_skip_text(enum maq_validate_skip skip);

enum maq_validate_memory { MAQ_VALIDATE_ALLOCATED, MAQ_VALIDATE_RESERVED, MAQ_VALIDATE_TOTAL };

/* One comparison. error = predicted / measured - 1. */
struct maq_validate_point {
    enum maq_validate_skip skip; /* NONE: the other members hold */
    double measured, predicted, error;
};

/*
 * What rows are told apart by; `key` is the name in JSON.
 *          key                 title
 */
#define MAQ_VALIDATE_BY_LIST(X)                                                                                        \
    X(SOURCE, "sources", "by source")                                                                                  \
    X(SIZE, "sizes", "by number of devices")                                                                           \
    X(DEVICE, "devices", "by device")                                                                                  \
    X(TP, "tensor_parallel", "by tensor parallelism")                                                                  \
    X(PRECISION, "precisions", "by precision")                                                                         \
    X(FRAMEWORK, "frameworks", "by framework")                                                                         \
    X(KIND, "kinds", "by kind of model")

enum maq_validate_by {
#define MAQ_VALIDATE_BY_ENUM(name, key, title) MAQ_VALIDATE_BY_##name,
    MAQ_VALIDATE_BY_LIST(MAQ_VALIDATE_BY_ENUM)
#undef MAQ_VALIDATE_BY_ENUM
        MAQ_VALIDATE_BY_COUNT
};
MAQ_API const char *maq_validate_by_key(enum maq_validate_by by);
MAQ_API const char *maq_validate_by_title(enum maq_validate_by by);

/* One row of the table, in its order. All pointers live as long as the result. */
struct maq_validate_row {
    const char *id, *source, *framework, *model, *gpu, *completeness;
    uint32_t line; /* in the file, 1-based */
    uint32_t devices;
    const char *label[MAQ_VALIDATE_BY_COUNT]; /* the group it is in; "" = in none */
    struct maq_validate_point points[MAQ_VALIDATE_METRIC_COUNT];
    const char *why; /* further words on a skip (first diagnostic of a refused job); "" = none */
    const char *job; /* the job as a document; "" when it could not be written */
    uint32_t n_assumed;
    const char *const *assumed;            /* what had to be guessed */
    bool simulated;                        /* the rest holds */
    bool fits;                             /* in memory, as predicted */
    double tokens, hardware_flop;          /* per step, whole job */
    double peak_flops;                     /* FLOP/s of one device in the recipe's matrix type */
    double passes;                         /* layers of the fullest stage times microbatches */
    double bucket_share[MAQ_BUCKET_COUNT]; /* of the predicted step */
    double low[MAQ_VALIDATE_METRIC_COUNT], high[MAQ_VALIDATE_METRIC_COUNT]; /* 80 % interval of the prediction */
    double regime[MAQ_TRAIN_REGIME_COUNT];
    double mem_bytes[MAQ_MEM_COUNT]; /* of the stage with most */
    enum maq_validate_memory mem_kind;
};

/* Keep rows whose column is the value, or starts with it when the value ends in '*'. Several filters: all must hold. */
struct maq_validate_filter {
    const char *column, *value;
};

struct maq_validate_opts {
    uint32_t size;    /* set by MAQ_VALIDATE_OPTS_INIT */
    uint32_t threads; /* 0 = one per core; the result does not depend on it */
    const struct maq_validate_filter *where;
    size_t n_where;
    const char *cluster; /* collectives: the machine that ran, one-line form or a document; NULL = what each row says */
    const char *collective; /* collectives: of a log of nccl-tests that does not say which test ran; NULL = unknown */
};
#define MAQ_VALIDATE_OPTS_INIT                                                                                         \
    {                                                                                                                  \
        .size = sizeof(struct maq_validate_opts)                                                                       \
    }

/* Absolute errors and signed mean over n comparisons; NaN when n = 0. */
struct maq_validate_stat {
    uint32_t n, sources;
    double median, mean, p90; /* of |error| */
    double bias;              /* mean of error */
    double median_signed;
};

enum maq_validate_part { MAQ_VALIDATE_ALL, MAQ_VALIDATE_FULL, MAQ_VALIDATE_NEAR, MAQ_VALIDATE_PART_COUNT };

/* Where measurements lie relative to the stated 80 % interval. */
struct maq_validate_coverage {
    uint32_t below, inside, above;
};

#define MAQ_VALIDATE_CAP 40 /* rows per source in `capped` */

/* Rows that have something in common: a source, a device, a size. */
struct maq_validate_group {
    const char *name;
    uint32_t rows;                                                                      /* after the filters */
    struct maq_validate_stat stats[MAQ_VALIDATE_METRIC_COUNT][MAQ_VALIDATE_PART_COUNT]; /* every row alike */
    struct maq_validate_stat capped[MAQ_VALIDATE_METRIC_COUNT]
                                   [MAQ_VALIDATE_PART_COUNT]; /* those among the capped rows */
    uint32_t skipped[MAQ_VALIDATE_METRIC_COUNT][MAQ_VALIDATE_SKIP_COUNT];
    struct maq_validate_coverage coverage[MAQ_VALIDATE_METRIC_COUNT], capped_coverage[MAQ_VALIDATE_METRIC_COUNT];
};

struct maq_validate_grouping {
    uint32_t n;
    const struct maq_validate_group *groups; /* by name, numbers in it by value */
};

/*
 * The rival that needs no simulator: step = hardware FLOP / (devices * peak * u) with one utilisation u per device, the one
 * with the least mean absolute error over the capped rows; once fitted on all of them, once leaving out every row of the model
 * that is predicted (where nothing is left of the device: over all devices; NaN where nothing is left at all).
 */
struct maq_validate_rival {
    const char *name;            /* device or source; "total" */
    uint32_t n;                  /* capped rows with a measured time */
    double utilisation;          /* of a device, fitted on all its rows; NaN in the lines of sources and the total */
    double own_mean, own_median; /* of maquette's |error| */
    double fitted_mean, fitted_median;
    double left_out_mean, left_out_median;
};
struct maq_validate_baseline {
    struct maq_validate_rival total;
    uint32_t n_devices, n_sources;
    const struct maq_validate_rival *devices, *sources;
};

/* Plans compared with one another: rows of one source and framework, with one model, device and number of devices. Ranked by
 * tokens per second. */
struct maq_validate_sweep {
    const char *source, *model, *device;
    uint32_t devices, rows;
    double tau;    /* Kendall's tau-b of predicted and measured order; NaN when one side is constant */
    double regret; /* measured time per token of the plan predicted to be best over that of the best, minus 1 */
};
struct maq_validate_ranking { /* of the sweeps of a source, or all */
    const char *name;
    uint32_t sweeps, rows; /* sweeps with a tau */
    double mean_tau, least_tau, mean_regret;
};
#define MAQ_VALIDATE_SWEEP_ROWS 4 /* fewer are no sweep */

struct maq_validate_result {
    const char *table; /* name of the file */
    uint32_t n_rows;   /* in the table */
    const struct maq_validate_row *rows;
    struct maq_validate_grouping by[MAQ_VALIDATE_BY_COUNT];
    struct maq_validate_group total; /* its `capped`: at most MAQ_VALIDATE_CAP rows of a source, evenly spaced */
    struct maq_validate_stat weighted[MAQ_VALIDATE_METRIC_COUNT][MAQ_VALIDATE_PART_COUNT]; /* every source alike */
    struct maq_validate_baseline baseline;
    uint32_t n_sweeps, n_rankings;
    const struct maq_validate_sweep *sweeps;     /* by source, model, device, devices */
    const struct maq_validate_ranking *rankings; /* by source */
    struct maq_validate_ranking ranking;         /* every sweep alike */
};

/* Reads and compares; *out is owned by the caller. opts may be NULL. The second form takes the text; name is for messages. */
MAQ_API enum maq_status maq_validate_train(struct maq_validate_result **out, const char *path,
                                           const struct maq_validate_opts *opts, struct maq_diag *diag);
MAQ_API enum maq_status maq_validate_train_text(struct maq_validate_result **out, const char *name, struct maq_str text,
                                                const struct maq_validate_opts *opts, struct maq_diag *diag);
MAQ_API void maq_validate_free(struct maq_validate_result *result);

/* Text for people with the `worst` rows of each metric (0 = none), JSON, and a log-log plot of a metric. Owned by the caller
 * (free()); NULL when out of memory. */
MAQ_API char *maq_validate_text(const struct maq_validate_result *result, uint32_t worst);
MAQ_API char *maq_validate_json(const struct maq_validate_result *result);
MAQ_API char *maq_validate_svg(const struct maq_validate_result *result, enum maq_validate_metric metric);

/* ---- collectives ---- */

/* One measured collective of the table, in its order. Pointers live as long as the result. */
struct maq_validate_coll_row {
    const char *source, *gpu, *collective;
    uint32_t line; /* in the file, 1-based */
    uint32_t devices, devices_per_node;
    double bytes; /* nccl-tests' size */
    bool filtered;
    const char *why; /* why the row is not compared; "" = it is, and the rest holds */
    bool far;        /* the group spans several scale-up domains */
    double measured_s, predicted_s, error;
    double stated_error; /* one standard deviation, as the prediction carries it */
    const char *how;     /* algorithm and protocol of the prediction: "ring LL128" */
    const char *largest; /* what most of it is: "start", "hops", "scale-up link", "network" */
};

/* Rows that have something in common: `by` is "total", "source", "device", "devices", "collective" or "size"; `distance` is "all",
 * "near" (inside a scale-up domain) or "far". Totals come once more with at most MAQ_VALIDATE_CAP rows of a source: "capped". */
struct maq_validate_coll_group {
    const char *by, *name, *distance;
    struct maq_validate_stat stat;
};

struct maq_validate_coll_skip {
    const char *why;
    uint32_t rows;
};

struct maq_validate_coll_result {
    const char *table;
    uint32_t n_rows, n_kept; /* in the table, after the filters */
    const struct maq_validate_coll_row *rows;
    uint32_t n_groups, n_skips;
    const struct maq_validate_coll_group *groups;
    const struct maq_validate_coll_skip *skips;
};

/* As above, for a table of nccl-tests results. opts->threads is not used: a row takes a microsecond. */
MAQ_API enum maq_status maq_validate_collectives(struct maq_validate_coll_result **out, const char *path,
                                                 const struct maq_validate_opts *opts, struct maq_diag *diag);
MAQ_API enum maq_status maq_validate_collectives_text(struct maq_validate_coll_result **out, const char *name,
                                                      struct maq_str text, const struct maq_validate_opts *opts,
                                                      struct maq_diag *diag);
MAQ_API void maq_validate_coll_free(struct maq_validate_coll_result *result);
MAQ_API char *maq_validate_coll_text(const struct maq_validate_coll_result *result, uint32_t worst);
MAQ_API char *maq_validate_coll_json(const struct maq_validate_coll_result *result);
MAQ_API char *maq_validate_coll_svg(const struct maq_validate_coll_result *result);

/* --- kernels: tables of measured operators, in aiconfigurator's layout (docs/validate.md) --- */

struct maq_validate_kernels_opts {
    uint32_t size;                           /* set by MAQ_VALIDATE_KERNELS_OPTS_INIT */
    uint32_t threads;                        /* 0 = one per core; the result does not depend on it */
    const struct maq_validate_filter *where; /* columns: op, device, library, table, kernel, dtype */
    size_t n_where;
    enum maq_provider best; /* the best provider that may answer; NONE = any */
    bool leave_device_out;  /* fitted tables of a device do not answer for it */
    uint32_t worst;         /* rows to keep */
};
#define MAQ_VALIDATE_KERNELS_OPTS_INIT                                                                                 \
    {                                                                                                                  \
        .size = sizeof(struct maq_validate_kernels_opts)                                                               \
    }

/* Files that have something in common. NULL members: files of every kind. */
struct maq_kernel_group {
    const char *op; /* "gemm", "attention", "mla", "moe", ... */
    const char *device, *library, *table, *version;
    uint32_t rows, skipped;
    double median_ape, p90_ape, mean_ape, bias; /* of |predicted / measured - 1|; bias: mean with sign */
    double inside;                              /* share of rows inside the stated 80 % interval */
    double fitted;                              /* share of rows that the fitted or the measured provider answered */
};

struct maq_kernel_worst {
    const char *file, *kernel;
    uint32_t line;
    bool is_coll;
    struct maq_op op;
    struct maq_coll coll; /* when is_coll */
    enum maq_provider provider;
    double measured_s, predicted_s, error;
    const char *why; /* the largest part of the prediction */
};

/* A row of the plot: a thin, even choice of all. */
struct maq_kernel_point {
    uint32_t group; /* of by_op */
    float measured_s, predicted_s;
};

struct maq_validate_kernels {
    const char *path;
    uint32_t n_files, n_other; /* tables read; files that are none */
    uint64_t n_rows;
    uint32_t n_by_op, n_by_op_device, n_by_table;
    const struct maq_kernel_group *by_op, *by_op_device, *by_table;
    uint64_t skipped[8]; /* by reason */
    uint32_t n_worst, n_points;
    const struct maq_kernel_worst *worst; /* farthest off first */
    const struct maq_kernel_point *points;
};

/* A file or a folder; *out is owned by the caller. opts may be NULL. */
MAQ_API enum maq_status maq_validate_kernels(struct maq_validate_kernels **out, const char *path,
                                             const struct maq_validate_kernels_opts *opts, struct maq_diag *diag);
MAQ_API void maq_validate_kernels_free(struct maq_validate_kernels *result);
/* Why rows of skipped[i] were left out; NULL beyond the last. */
MAQ_API const char *maq_validate_kernels_skip(size_t i);
/* Owned by the caller (free()); NULL when out of memory. */
MAQ_API char *maq_validate_kernels_text(const struct maq_validate_kernels *result);
MAQ_API char *maq_validate_kernels_json(const struct maq_validate_kernels *result);
MAQ_API char *maq_validate_kernels_svg(const struct maq_validate_kernels *result);

/*
 * --- plans: executed plans on GPUs of several kinds, predicted from a foreign profile (docs/plan-form.md,
 * docs/validate-plans.md) ---
 */

enum maq_plan_judge {
    MAQ_PLAN_JUDGE_OURS,   /* maquette's own prediction */
    MAQ_PLAN_JUDGE_SAILOR, /* the published rule of Sailor's simulator */
    MAQ_PLAN_JUDGE_COUNT
};
MAQ_API const char *maq_plan_judge_name(enum maq_plan_judge judge); /* "ours", "sailor" */

struct maq_validate_plans_opts {
    uint32_t size;       /* set by MAQ_VALIDATE_PLANS_OPTS_INIT */
    const char *profile; /* folder of the profile */
    enum maq_plan_judge judge;
};
#define MAQ_VALIDATE_PLANS_OPTS_INIT                                                                                   \
    {                                                                                                                  \
        .size = sizeof(struct maq_validate_plans_opts)                                                                 \
    }

enum maq_plan_metric { MAQ_PLAN_TIME, MAQ_PLAN_MEMORY, MAQ_PLAN_METRIC_COUNT };

struct maq_plan_point {
    double measured, predicted; /* s, bytes */
    double error;               /* predicted / measured - 1; NaN when not measured */
};

/* An executed plan. Pointers live as long as the result. */
struct maq_plan_row {
    const char *file, *group;                      /* group: its folder, without that of the number of nodes */
    const char *why;                               /* why it is not compared; "" = it is, and the rest holds */
    uint32_t devices, pipelines, stages, replicas; /* stages and replicas: the most of a pipeline, of a stage */
    uint32_t micro_batch, global_batch;
    struct maq_plan_point points[MAQ_PLAN_METRIC_COUNT];
    double measured_reduce_s, pipeline_s, reduce_s,
        update_s; /* parts of the prediction, and what was measured of one */
};

struct maq_plan_group {
    const char *name; /* the last one is "total" */
    struct maq_validate_stat stat[MAQ_PLAN_METRIC_COUNT];
};

struct maq_validate_plans {
    const char *path, *profile;
    enum maq_plan_judge judge;
    uint32_t n_rows, n_compared, n_groups;
    const struct maq_plan_row *rows; /* by file name */
    const struct maq_plan_group *groups;
};

/* A plan, a folder of plans, or a .tar or .tar.gz of them; *out is owned by the caller. */
MAQ_API enum maq_status maq_validate_plans(struct maq_validate_plans **out, const char *path,
                                           const struct maq_validate_plans_opts *opts, struct maq_diag *diag);
MAQ_API void maq_validate_plans_free(struct maq_validate_plans *result);
/* With the `worst` rows of each metric (0 = none). Owned by the caller (free()); NULL when out of memory. */
MAQ_API char *maq_validate_plans_text(const struct maq_validate_plans *result, uint32_t worst);
MAQ_API char *maq_validate_plans_json(const struct maq_validate_plans *result);
/* --- ranking: measured plans of one job, and how they are ranked (docs/validate-plans.md) --- */

#define MAQ_VALIDATE_PLAN_MOST 1048576 /* the largest degree, microbatch and number of layers */

struct maq_validate_plan_ranking_opts {
    uint32_t size;          /* set by MAQ_VALIDATE_PLAN_RANKING_OPTS_INIT */
    const char *job;        /* file of the job that the plans are laid over */
    uint32_t layers_before; /* entries of layer_partition in front of the first layer of the model */
    const struct maq_validate_filter *where;
    size_t n_where;
    const char
        *layers_at; /* in place of layers_before: which entries are the layers, "3-14,41-52"; NULL: all behind those */
};
#define MAQ_VALIDATE_PLAN_RANKING_OPTS_INIT                                                                            \
    {                                                                                                                  \
        .size = sizeof(struct maq_validate_plan_ranking_opts)                                                          \
    }

/* One row of the table, in its order. Pointers live as long as the result. */
struct maq_validate_plan {
    uint32_t line; /* in the file, 1-based */
    int32_t tp, dp, pp, mbs;
    const char *layout; /* layers per stage, "13,11"; "" = as the job says */
    bool filtered;
    const char *why; /* why the row is not compared; "" = it is, and the rest holds */
    double measured_s, predicted_s, error;
    double rival_s; /* column predicted_s; NaN = none */
    bool fits;      /* predicted to fit in memory */
};

/* How well one prediction of all plans orders them. NaN where it cannot be said. */
struct maq_validate_order {
    uint32_t rows;
    double tau, rho; /* Kendall's tau-b, Spearman's rho, of step times */
    double regret;   /* measured step of the plan predicted to be best, over the best measured one, less 1 */
    struct maq_validate_stat error;
};

struct maq_validate_plan_ranking {
    const char *table, *job;
    uint32_t n_rows, n_kept; /* in the table, after the filters */
    const struct maq_validate_plan *rows;
    struct maq_validate_order own, rival;
    uint32_t n_too_large; /* compared plans that are predicted not to fit */
};

/* The plans of a table in CSV; *out is owned by the caller. */
MAQ_API enum maq_status maq_validate_plan_ranking(struct maq_validate_plan_ranking **out, const char *path,
                                                  const struct maq_validate_plan_ranking_opts *opts,
                                                  struct maq_diag *diag);
MAQ_API enum maq_status maq_validate_plan_ranking_text(struct maq_validate_plan_ranking **out, const char *name,
                                                       struct maq_str text,
                                                       const struct maq_validate_plan_ranking_opts *opts,
                                                       struct maq_diag *diag);
MAQ_API void maq_validate_plan_ranking_free(struct maq_validate_plan_ranking *result);
/* Owned by the caller (free()); NULL when out of memory. */
MAQ_API char *maq_validate_plan_ranking_report(const struct maq_validate_plan_ranking *result, uint32_t worst);
MAQ_API char *maq_validate_plan_ranking_json(const struct maq_validate_plan_ranking *result);

/* --- risk: published observations of failures, goodput, start-up and variation, each with the band that is accepted --- */

enum maq_risk_verdict { MAQ_RISK_PASS, MAQ_RISK_FAIL, MAQ_RISK_SKIP, MAQ_RISK_VERDICT_COUNT };
MAQ_API const char *maq_risk_verdict_name(enum maq_risk_verdict verdict); /* "PASS", "FAIL", "SKIP" */

struct maq_validate_risk_row {
    const char *id; /* of the observation: "O3" */
    const char *what, *unit, *source;
    double observed;  /* NaN: a bound alone was published */
    double low, high; /* the band, limits included; infinite: open */
    double predicted; /* NaN when skipped */
    enum maq_risk_verdict verdict;
    const char *why; /* of a skip; "" = none */
};

struct maq_validate_risk {
    const char *folder;
    uint32_t n_rows, n[MAQ_RISK_VERDICT_COUNT];
    const struct maq_validate_risk_row *rows;
};

/* Predicts every observation; those that need recorded data read it from `folder` (docs/validate.md has the layout), and are
 * skipped where a file is not there. *out is owned by the caller. */
MAQ_API enum maq_status maq_validate_risk(struct maq_validate_risk **out, const char *folder, struct maq_diag *diag);
MAQ_API void maq_validate_risk_free(struct maq_validate_risk *result);
/* Owned by the caller (free()); NULL when out of memory. */
MAQ_API char *maq_validate_risk_text(const struct maq_validate_risk *result);
MAQ_API char *maq_validate_risk_json(const struct maq_validate_risk *result);

/*
 * A validation as one HTML file that needs no network and carries the document: what is compared ("train"), its report and its document
 * (taken, free()) and a plot as SVG or NULL. *out is owned by the caller. MAQ_NO_MEMORY where a text is NULL.
 */
MAQ_API enum maq_status maq_validate_html(char **out, const char *what, const char *text, char *document,
                                          const char *svg, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
