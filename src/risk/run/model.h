/* SPDX-License-Identifier: Apache-2.0 */
/*
 * model.h - the model of a run for the simulation: times in whole nanoseconds, rates per nanosecond, laws ready to draw from.
 * Read-only while threads simulate.
 */
#ifndef MAQ_RISK_RUN_MODEL_H
#define MAQ_RISK_RUN_MODEL_H

#include "base/arena.h"
#include "maquette/risk_run.h"
#include "risk/run/progress.h"
#include "risk/run/spare_pool.h"

/* A draw is median x e^(sigma z). */
struct maq_run_delay {
    double median_ns, sigma, mean_ns;
};

/* Which cause a number in (0, 1) means: a search that begins where a table of this size says. */
#define MAQ_RUN_CAUSE_GUIDE 256

struct maq_run_cause_model {
    double upto; /* sum of the shares up to it */
    bool loses_node;
    struct maq_run_delay detection, repair, found_after;
};

struct maq_run_model {
    const struct maq_failures *failures;
    struct maq_track track;
    double work_ns, noise; /* of the whole run; relative sd of its mean step */
    double sigma;          /* sd of ln(step time) */
    int64_t step_ns, restore_ns[MAQ_TRACK_LEVELS];
    int lowest[3];                                 /* level that survives a program, a node, several nodes */
    int64_t nodes, replicas, min_replicas, spares; /* replicas: at most one per node */
    double node_rate;                              /* failures of a node per ns, on average over lemons and bursts */
    double rate;                                   /* of the job */
    double loss_rate;                              /* failures of a node per ns that lose it */
    struct maq_run_delay requeue, restart, startup;
    uint32_t n_causes;
    const struct maq_run_cause_model *causes;
    uint32_t guide[MAQ_RUN_CAUSE_GUIDE];         /* the cause that u = i / MAQ_RUN_CAUSE_GUIDE means */
    const struct maq_spare_pool_repair *repairs; /* [n_repairs] of the causes that lose a node */
    uint32_t n_repairs;
    int64_t reconfigure_ns, rejoin_ns, most_ns; /* most_ns: a run that takes longer is given up */
    enum maq_run_recovery recovery;
    enum maq_failure_clock clock;
    uint64_t seed;
    double optimal_interval_s, interval_s;
    int64_t together_nodes;
    int64_t shared_nodes;
};

/* The outcome of one simulated run. */
struct maq_run_outcome {
    int64_t wall, bucket[MAQ_RUN_BUCKET_COUNT];
    uint32_t failures, lost;
    bool endless;
};
/* Per cause: number of failures and the time that they took. */
struct maq_run_tally {
    uint32_t count;
    int64_t lost;
};

/* The nearest whole nanosecond, away from zero on ties: llround() for 0 <= x < 9e18. */
static inline int64_t maq_run_ns(double x)
{
    int64_t below = (int64_t)x;
    return below + (x - (double)below >= 0.5);
}

/* Of a number in (0, 1). */
uint32_t maq_run_cause_of(const struct maq_run_model *m, double u);

/* Checks opts (faults go to diag) and fills the model; what it points to lives in `arena`. */
enum maq_status maq_run_model_build(struct maq_run_model *m, const struct maq_run_opts *opts, struct maq_arena *arena,
                                    struct maq_diag *diag);

/* One run from its start to its end; tally[n_causes]. False when out of memory. */
bool maq_run_replica(struct maq_run_outcome *out, struct maq_run_tally *tally, const struct maq_run_model *m,
                     uint32_t replica);

#endif
