/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h - the options of `maquette risk JOB --tokens N`: when a run will be done.
 *
 * The command's table has a row for each entry of the list below, one after the other; it hands over the values from the first on.
 */
#ifndef MAQ_CLI_RISK_RUN_H
#define MAQ_CLI_RISK_RUN_H

#include "cli/cli.h"

extern const char *const cli_run_recoveries[], *const cli_run_clocks[], *const cli_run_whats[];

/* clang-format off: one row, one line */
/*    id          name                  kind       value         words               what */
#define CLI_RUN_OPTION_LIST(X)                                                                                         \
    X(TOKENS, "--tokens", CLI_VALUE, "N", NULL, "run: tokens to train on, \"15T\": when will it be done?")             \
    X(FAILURES, "--failures", CLI_VALUE, "NAME|FILE|KEY=V,...", NULL,                                                  \
      "run: what fails (fleets): maquette show failures; llama3,shape=0.8; rate=3.8e-3/node/day,repair=2d")            \
    X(CHECKPOINT, "--checkpoint", CLI_VALUE, "auto|none|TIME", NULL,                                                   \
      "run: work between checkpoints (auto: the best interval)")                                                       \
    X(SAVE, "--checkpoint-save", CLI_VALUE, "TIME", NULL, "run: how long a save stops the job (2 s)")                  \
    X(PERSIST, "--checkpoint-persist", CLI_VALUE, "TIME", NULL,                                                        \
      "run: behind the job, until it counts (14 bytes per parameter over --storage)")                                  \
    X(RESTORE, "--checkpoint-restore", CLI_VALUE, "TIME", NULL, "run: how long reading one takes (likewise)")          \
    X(STORAGE, "--storage", CLI_VALUE, "RATE", NULL,                                                                   \
      "run: what the store takes from all nodes together (1 GB/s per node)")                                           \
    X(LEVELS, "--checkpoint-levels", CLI_VALUE, "LEVEL,...", NULL,                                                     \
      "run: what a checkpoint survives, every so many of the level below, stops, restore, persist: "                   \
      "process/1:1s:5s,node/4:3s:10s:20s,all/6:10s:2min:5min")                                                         \
    X(SPARES, "--spares", CLI_VALUE, "N", NULL, "run: spare nodes (0)")                                                \
    X(SHARED, "--spares-shared-by", CLI_VALUE, "N", NULL,                                                              \
      "run: nodes of other jobs that take from the same spares (0)")                                                   \
    X(RECOVERY, "--recovery", CLI_VALUE, "restart|elastic|replica", cli_run_recoveries,                                \
      "run: the whole job starts again (default); goes on with fewer replicas without a spare; only the replica that " \
      "failed leaves")                                                                                                 \
    X(RECONFIGURE, "--reconfigure", CLI_VALUE, "TIME", NULL, "run: elastic, replica: how long all stand still (60 s)") \
    X(LEAST, "--min-replicas", CLI_VALUE, "N", NULL, "run: data-parallel replicas that the job needs to go on (1)")    \
    X(EVALUATE, "--evaluate", CLI_VALUE, "TIME/TIME", NULL, "run: evaluations, how long and how often: 30s/2h (none)") \
    X(CLOCK, "--failure-clock", CLI_VALUE, "restarted|paused|queued", cli_run_clocks,                                  \
      "run: what a failure during a recovery does: begins it anew (default); cannot come; waits its turn")             \
    X(STEP_TIME, "--step-time", CLI_VALUE, "TIME", NULL, "run: the step time, where it is known (predicted)")          \
    X(STEP_SIGMA, "--step-sigma", CLI_VALUE, "X", NULL,                                                                \
      "run: standard deviation of the logarithm of a whole run's step time (0)")                                       \
    X(STEP_ERROR, "--step-error", CLI_FLAG, NULL, NULL,                                                                \
      "run: as --step-sigma, the error that predictions of step times have")                                           \
    X(REPLICAS, "--replicas", CLI_VALUE, "N", NULL, "run: runs to simulate (10,000)")                                  \
    X(PROMISE, "--promise", CLI_VALUE, "TIME@SHARE", NULL,                                                             \
      "run: how sure is that date, and how many spares keep it: 60d@95%")                                              \
    X(START, "--start", CLI_VALUE, "DATE", NULL, "run: the first day, 2027-01-31: the answer has dates")               \
    X(RUN_WHAT, "--what-if", CLI_VALUE, "WHAT", cli_run_whats,                                                         \
      "kernels, dimensions, stages: which of them drive p95; placement: a GPU 1.2 times as slow in each stage; run: "  \
      "checkpoint, spares, dp-replicas: other intervals, numbers of spares, ways to recover, on the same failures")    \
    X(THREADS, "--threads", CLI_VALUE, "N", NULL, "run: threads (one per core); the result does not depend on it")
/* clang-format on */

enum cli_run_option {
#define CLI_RUN_OPTION_ENUM(id, name, kind, value, words, doc) CLI_RUN_##id,
    CLI_RUN_OPTION_LIST(CLI_RUN_OPTION_ENUM)
#undef CLI_RUN_OPTION_ENUM
        CLI_RUN_OPTION_COUNT
};

/* What the command hands over. */
struct cli_risk_run {
    const struct maq_job *job;
    const struct maq_loaded_job *loaded; /* whose job that is */
    const char *const *values;           /* [CLI_RUN_OPTION_COUNT] */
    uint32_t seed;
    bool json;
    const char *file;              /* to write to; NULL = standard output */
    const char *html;              /* a page as well; NULL = none */
    double step_mean_s, step_sd_s; /* of the step's distribution; 0 = the predicted step time */
};
/* Simulates the run and writes the report. */
enum maq_status cli_risk_run(struct cli *cli, const struct cli_risk_run *run);

#endif
