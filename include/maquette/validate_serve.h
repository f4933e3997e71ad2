/* SPDX-License-Identifier: Apache-2.0 */
/*
 * validate_serve.h - serving, held against what engines did.
 *
 * A recording of a scheduler (JSON, one object a line) says what requests came and what a real engine decided, iteration by iteration.
 * maq_validate_schedule() lets maquette's scheduler decide the same and compares: tokens given to each request, blocks that are free,
 * requests that run and wait, who was preempted, who finished, and how much of a prompt was found in the prefix cache.
 * docs/validate-serve.md has the format.
 */
#ifndef MAQUETTE_VALIDATE_SERVE_H
#define MAQUETTE_VALIDATE_SERVE_H

#include "maquette/validate.h"

#ifdef __cplusplus
extern "C" {
#endif

struct maq_validate_schedule_row {
    const char *file;
    const char *engine, *version; /* that was recorded */
    uint32_t requests, steps, equal_steps;
    int64_t first_difference; /* number of the first step that differs; -1: none does */
    const char *difference;   /* what differs there; NULL: nothing */
};

struct maq_validate_schedule {
    uint32_t n;
    struct maq_validate_schedule_row *rows; /* [n], as the files were given */
    uint32_t equal;                         /* recordings that are equal in every step */
    void *owner;                            /* internal */
};

/*
 * Replays recordings; .gz is unpacked. *out is owned by the caller (maq_validate_schedule_free). A recording that cannot be read, or
 * whose engine or knobs maquette does not have, is an error: nothing is compared then.
 */
MAQ_API enum maq_status maq_validate_schedule(struct maq_validate_schedule **out, const char *const *paths, size_t n,
                                              struct maq_diag *diag);
MAQ_API void maq_validate_schedule_free(struct maq_validate_schedule *result);

/* The result as text, and as a document (schema maquette.validate.schedule/1); owned by the caller (free()), NULL: out of memory. */
MAQ_API char *maq_validate_schedule_text(const struct maq_validate_schedule *result);
MAQ_API char *maq_validate_schedule_json(const struct maq_validate_schedule *result);

/* ---- measured runs ---- */

enum maq_validate_serve_metric {
    MAQ_VALIDATE_SERVE_TPOT, /* seconds */
    MAQ_VALIDATE_SERVE_TTFT,
    MAQ_VALIDATE_SERVE_THROUGHPUT, /* tokens a second */
    MAQ_VALIDATE_SERVE_METRICS
};
MAQ_API const char *maq_validate_serve_metric_name(enum maq_validate_serve_metric metric);

struct maq_validate_serve_row {
    const char *id, *source, *framework, *version, *model, *device, *kind, *precision;
    bool complete; /* it says the engine's version and the precision */
    int32_t tp, pp, ep, dp;
    double isl, osl, load;
    enum maq_validate_serve_metric metric;
    double measured, predicted, error; /* predicted / measured - 1 */
};

struct maq_validate_serve_group {
    const char *kind;
    enum maq_validate_serve_metric metric;
    bool complete;
    struct maq_validate_stat stat;
    double
        inside; /* share of rows inside the stated 80 % interval; latencies of kind serving and serving_saturated, else NAN */
};

#define MAQ_VALIDATE_SERVE_REASONS 32u

struct maq_validate_serve {
    uint32_t n, n_table; /* comparisons; rows of the table that were asked for */
    struct maq_validate_serve_row *rows;
    uint32_t n_groups;
    struct maq_validate_serve_group *groups;
    uint32_t n_left_out;
    struct {
        const char *why;
        uint32_t rows;
    } left_out[MAQ_VALIDATE_SERVE_REASONS];
    void *owner; /* internal */
};

/* Predicts every row of a table of measured serving runs. *out is owned by the caller (maq_validate_serve_free). */
MAQ_API enum maq_status maq_validate_serve(struct maq_validate_serve **out, const char *path,
                                           const struct maq_validate_opts *opts, struct maq_diag *diag);
MAQ_API void maq_validate_serve_free(struct maq_validate_serve *result);
/* Text, with the `worst` worst comparisons; a document (schema maquette.validate.serve/1). Owned by the caller (free()). */
MAQ_API char *maq_validate_serve_text(const struct maq_validate_serve *result, uint32_t worst);
MAQ_API char *maq_validate_serve_json(const struct maq_validate_serve *result);

/* ---- choosing ---- */

/*
 * Whether the best of several deployments is chosen by what is predicted of them. A group is the measured runs of one model, GPU,
 * engine, precision and lengths, with at least two deployments (degrees of parallelism), at any load. Throughput of a run is
 * generated tokens per second and GPU, by Little's law load x osl / (TTFT + (osl - 1) TPOT) / GPUs.
 *
 * A case is a group and a target: TPOT at most a quartile of the group's measured ones, with TTFT below 2 s or without, as long as
 * some measured run holds it. Chosen is the run of the highest predicted throughput among those predicted to hold it; where none is, the
 * one predicted to miss it by least, if the low ends of its 80 % intervals hold it. It is judged by its measurement.
 */
struct maq_validate_choice_group {
    const char *model, *device, *framework, *precision;
    double isl, osl;
    uint32_t runs, deployments, cases, none, nearest, violates;
    double regret_sum;
    uint64_t pairs, discordant;
};

struct maq_validate_choice {
    uint32_t n_groups;
    struct maq_validate_choice_group *groups;
    uint32_t cases;
    uint32_t none;     /* of them: no run holds the target within the interval of what is predicted */
    uint32_t nearest;  /* only within it: chosen is the run that comes nearest */
    uint32_t violates; /* the chosen one breaks the target by more than 5 % */
    double
        regret_mean; /* of the other cases: share of the best throughput that holds the target, given away; NAN: none */
    uint64_t pairs,
        discordant; /* of runs of a group, of different deployments: those that are ranked the other way round */
    double tau;     /* Kendall's, over those pairs; NAN: there is none */
};

/* *out is owned by the caller (free()); its texts are the rows'. Rows of other kinds than serving, and without a load, do not count. */
MAQ_API enum maq_status maq_validate_choice(struct maq_validate_choice **out, const struct maq_validate_serve *rows,
                                            struct maq_diag *diag);
/* Text; a document (schema maquette.validate.choice/1). Owned by the caller (free()). */
MAQ_API char *maq_validate_choice_text(const struct maq_validate_choice *result);
MAQ_API char *maq_validate_choice_json(const struct maq_validate_choice *result);

/* ---- recorded runs ---- */

struct maq_validate_serve_log_figures {
    double tpot_mean_s, ttft_mean_s, tokens_per_s; /* throughput: generated tokens, first arrival to last token */
};

struct maq_validate_serve_log_row {
    const char *folder, *model, *device, *version;
    const char *left_out; /* why; NULL = it was compared */
    uint32_t requests;
    struct maq_validate_serve_log_figures measured, predicted;
    double ks; /* of the end-to-end latencies: the largest difference between the two distributions, 0 to 1 */
};

struct maq_validate_serve_log {
    uint32_t n;
    struct maq_validate_serve_log_row *rows;
    void *owner; /* internal */
};

/* Every recorded run in a folder and those below it. *out is owned by the caller (maq_validate_serve_log_free). */
MAQ_API enum maq_status maq_validate_serve_log(struct maq_validate_serve_log **out, const char *path,
                                               struct maq_diag *diag);
MAQ_API void maq_validate_serve_log_free(struct maq_validate_serve_log *result);
/* Text, and a document (schema maquette.validate.serve-log/1). Owned by the caller (free()). */
MAQ_API char *maq_validate_serve_log_text(const struct maq_validate_serve_log *result);
MAQ_API char *maq_validate_serve_log_json(const struct maq_validate_serve_log *result);

#ifdef __cplusplus
}
#endif
#endif
