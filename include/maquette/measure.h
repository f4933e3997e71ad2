/* SPDX-License-Identifier: Apache-2.0 */
/*
 * measure.h - measuring the operators of a job on the GPU at hand, for the first link of the cost chain.
 *
 * maq_profile_run() makes a plan (which operators, in which order, with what time and memory), leaves out what the file
 * has already and what the GPU cannot hold, measures the rest and writes each result as soon as it is there: whatever
 * ends the program, nothing measured is lost. A dry run stops after the plan and works on any machine.
 *
 * The GPU is driven by a module of its own (src/measure/cuda), which is looked for when something is to be measured, so
 * that neither the library nor the program depends on CUDA.
 */
#ifndef MAQUETTE_MEASURE_H
#define MAQUETTE_MEASURE_H

#include "maquette/job.h"
#include "maquette/report.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What is measured when there is no job: operators over ranges of sizes. */
enum maq_profile_grid { MAQ_PROFILE_NO_GRID, MAQ_PROFILE_QUICK, MAQ_PROFILE_STANDARD };

struct maq_profile_progress {
    const char *what;             /* the operator being measured */
    uint32_t done, total;         /* operators */
    double elapsed_s, estimate_s; /* of all that is to be measured */
};

struct maq_profile_opts {
    uint32_t size;    /* set by MAQ_PROFILE_OPTS_INIT */
    const char *path; /* of the file; created when there is none. NULL in a dry run: nothing is known to be there */
    const char
        *device; /* catalogue name of the GPU at hand; NULL = the job's, or the one that is called so by the driver */
    enum maq_profile_grid grid;
    bool again;          /* measure also what the file has */
    bool dry_run;        /* the plan alone */
    bool sustained;      /* run each kernel until the power limit has settled */
    bool warm;           /* leave the operands in the last-level cache between repetitions */
    double target_error; /* relative standard error of a mean to be reached; 0 = 0.5 % */
    double budget_s;     /* begin nothing after this time; 0 = no end */
    /* Called before every operator; false ends the run in good order. NULL = nobody asks. */
    bool (*progress)(void *user, const struct maq_profile_progress *progress);
    void *user;
};
#define MAQ_PROFILE_OPTS_INIT                                                                                          \
    {                                                                                                                  \
        .size = sizeof(struct maq_profile_opts)                                                                        \
    }

struct maq_profile; /* a plan, and what came of it */

/* job may be NULL when there is a grid; both together are measured. *out is owned by the caller (maq_profile_free). */
MAQ_API enum maq_status maq_profile_run(struct maq_profile **out, const struct maq_job *job,
                                        const struct maq_profile_opts *opts, struct maq_diag *diag);
MAQ_API void maq_profile_free(struct maq_profile *profile);
/* The plan and its outcome; schema "maquette.profile/1". */
MAQ_API enum maq_status maq_profile_text(char **out, const struct maq_profile *profile,
                                         const struct maq_report_opts *opts, struct maq_diag *diag);
MAQ_API enum maq_status maq_profile_json(char **out, const struct maq_profile *profile, struct maq_diag *diag);
/* As one HTML file that needs no network and carries the document; so the two below. */
MAQ_API enum maq_status maq_profile_html(char **out, const struct maq_profile *profile,
                                         const struct maq_report_opts *opts, struct maq_diag *diag);

/* What a file holds; schema "maquette.kernels/1". */
MAQ_API enum maq_status maq_profile_show_text(char **out, const char *path, const struct maq_report_opts *opts,
                                              struct maq_diag *diag);
MAQ_API enum maq_status maq_profile_show_json(char **out, const char *path, struct maq_diag *diag);
MAQ_API enum maq_status maq_profile_show_html(char **out, const char *path, const struct maq_report_opts *opts,
                                              struct maq_diag *diag);

/* Its measurements against the other providers, by kind of operator; schema "maquette.kernels.compare/1". */
MAQ_API enum maq_status maq_profile_compare_text(char **out, const char *path, const struct maq_report_opts *opts,
                                                 struct maq_diag *diag);
MAQ_API enum maq_status maq_profile_compare_json(char **out, const char *path, struct maq_diag *diag);
MAQ_API enum maq_status maq_profile_compare_html(char **out, const char *path, const struct maq_report_opts *opts,
                                                 struct maq_diag *diag);

/* Adds the rows of a CSV table, whose columns are those of docs/profile.md, all or none; *out says how many. Schema
 * "maquette.kernels.import/1". */
MAQ_API enum maq_status maq_profile_import_text(char **out, const char *path, const char *csv,
                                                const struct maq_report_opts *opts, struct maq_diag *diag);
MAQ_API enum maq_status maq_profile_import_json(char **out, const char *path, const char *csv, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
