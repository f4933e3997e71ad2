/* SPDX-License-Identifier: Apache-2.0 */
/*
 * failures.h - what fails, how often, and how long it takes to go on.
 *
 *   title: Llama 3 405B on 16,384 H100
 *   source: arXiv 2407.21783, table 5
 *   rate: 3.79e-3/node/day                      # or /gpu/day, /node/week, ...; of nodes with `devices_per_node`
 *   causes:                                     # shares of the rate, in any unit
 *     - {name: faulty GPU, share: 148}
 *     - {name: software bug, share: 54, loses_node: false}
 *     - {name: NIC, share: 7, takes: link}
 *   detection: 1 min                            # a time, or {median: 222 s, mean: 2334 s}: lognormal
 *
 * The form is that of the catalogue (`maquette show failures`), of a user's file, and of a flag:
 * `--failures rate=3.8e-3/node/day,repair=2d`, `--failures llama3,shape=0.8`. A document with `base` changes what the base says.
 *
 * Rates are turned into failures per device and second, so that they carry over to nodes of another size.
 */
#ifndef MAQUETTE_FAILURES_H
#define MAQUETTE_FAILURES_H

#include "maquette/diag.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A duration: always the same (mean = median), or lognormal with sigma^2 = 2 ln(mean / median). */
struct maq_delay {
    double median_s, mean_s;
};

/*
 * What a cause takes with it where not all goes down together, as in a serving fleet: identifier, name, what it is. A training job stops whatever it is.
 */
/* clang-format off */
#define MAQ_FAILURE_REACH_LIST(X)                                                                                      \
    X(GPU,  "gpu",  "a GPU: whoever computes there")                                                                   \
    X(NODE, "node", "a node: all that computes on it")                                                                 \
    X(LINK, "link", "its way to other nodes: whoever needs that")
/* clang-format on */
enum maq_failure_reach {
#define MAQ_FAILURE_REACH_ENUM(id, name, what) MAQ_FAILURE_##id,
    MAQ_FAILURE_REACH_LIST(MAQ_FAILURE_REACH_ENUM)
#undef MAQ_FAILURE_REACH_ENUM
        MAQ_FAILURE_REACH_COUNT
};
MAQ_API const char *maq_failure_reach_name(enum maq_failure_reach reach);

struct maq_failure_cause {
    const char *name;
    double share;                   /* of all failures; they add up to 1 */
    bool loses_node;                /* the node leaves for repair; otherwise the same nodes start again */
    enum maq_failure_reach takes;   /* where it is not said: the node that is lost, else a GPU */
    bool own_detection, own_repair; /* has a time of its own */
    struct maq_delay detection, repair;
    struct maq_delay
        found_after; /* of computing, until wrong results are noticed: what was saved meanwhile is wrong too; 0 = at once */
};

struct maq_failures {
    const char *name, *title, *source;
    double rate;   /* per device and second, over causes, nodes and time */
    double spread; /* sd of ln rate between fleets: how well the rate is known. 0 = it is what it is */
    double shape,
        age_s; /* Weibull shape of the time between failures of a node (1 = exponential); how long nodes have run before */
    double lemon_share, lemon_times; /* this share of nodes fails so many times as often as the others */
    double lemon_strikes;            /* failures after which a lemon is replaced on average; 0 = never */
    double burst_times, burst_every_s,
        burst_lasts_s;     /* rate times so much, for periods of exponential length; 1 = none */
    double together_share; /* of the failures that lose a node: several at once ... */
    double together_nodes; /* ... so many */
    struct maq_delay detection, requeue, restart, repair; /* restart.median_s < 0: by the size of the job */
    uint32_t devices_per_node;                            /* of the statement of the rate */
    uint32_t n_causes;
    const struct maq_failure_cause *causes;
};

struct maq_loaded_failures; /* owns them */

/* `what`: a catalogue name, a file, "none", or name and key=value pairs after commas. *out is owned by the caller. */
MAQ_API enum maq_status maq_failures_load(struct maq_loaded_failures **out, const char *what, struct maq_diag *diag);
MAQ_API const struct maq_failures *maq_failures_get(const struct maq_loaded_failures *loaded); /* borrowed */
MAQ_API void maq_failures_free(struct maq_loaded_failures *loaded);

/* Quantities as documents and flags have them: "15T", "30 min", "200 GB/s". False where the text is none of the kind. */
enum maq_quantity { MAQ_QUANTITY_NUMBER, MAQ_QUANTITY_COUNT, MAQ_QUANTITY_TIME, MAQ_QUANTITY_RATE, MAQ_QUANTITY_BYTES };
MAQ_API bool maq_quantity_read(double *out, const char *text, enum maq_quantity kind);

/*
 * Seconds from the start of the programs to the first step on so many devices, after the fit of tools/fit-startup to published
 * runs (docs/risk-runs.md).
 */
MAQ_API double maq_startup_s(double devices);

#ifdef __cplusplus
}
#endif
#endif
