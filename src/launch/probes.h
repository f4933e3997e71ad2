/* SPDX-License-Identifier: Apache-2.0 */
/*
 * probes.h - probes: slices of a capture. A slice is a rank that is run alone, with the contributions of the others
 * as recorded so far. Finished slices are files of the work folder, so that a capture that was killed continues with
 * them.
 *
 *   job                    what is captured: a line, compared when a capture continues
 *   p1-r17.trace .log      trace and output of rank 17 in pass 1
 *   p1-r17.inputs           its look-ups in the contributions of others (input_record.h); where these would have equal results in
 *                          another pass, the slice is not run again
 *   p1-r17.done            what it set in the store, its exit status, its time; written last
 *   p1.peers               contributions that the slices of pass 1 read
 */
#ifndef MAQ_LAUNCH_PROBES_H
#define MAQ_LAUNCH_PROBES_H

#include "launch/contributions.h"
#include "launch/workspace.h"

struct maq_probe {
    uint32_t rank;
    const char *why;
    bool ran; /* at least once; the members below are of its last run */
    uint32_t pass;
    int32_t status;
    uint64_t hash; /* of its trace */
    uint64_t said; /* hash of its contributions to exchanges and to the store */
    bool changed, resumed;
    bool news; /* by the last gathering, it contributes something new */
    double wall_s;
    const char *trace, *log, *inputs;
    bool invented_at_once;         /* keys were made up for it in the first pass, where the store does so at once */
    struct maq_contributions keys; /* what it set in the store */
};

struct maq_probes {
    struct maq_workspace *workspace;
    const char *folder;    /* the work folder */
    struct maq_probe **at; /* in the order of choice */
    uint32_t n, size;
    uint32_t pass;     /* the pass that runs next */
    bool every_pass;   /* no slice is left out */
    bool failed_again; /* slices that failed are run again, even with equal inputs */
    struct maq_launch_slice *log;
    uint32_t n_log, log_size;
    struct maq_contributions said; /* contributions of the last run of each slice; settled */
    uint32_t done;                 /* slices run or resumed */
};

/* Makes the work folder, or opens an existing one: MAQ_USAGE when it is of another capture. One that failed is emptied. */
enum maq_status maq_probes_open(struct maq_probes *s, struct maq_workspace *workspace, const char *folder,
                                struct maq_diag *diag);
void maq_probes_close(struct maq_probes *s);
/* The program failed: what is in the work folder stays to be read, until another capture opens it. */
void maq_probes_failed(struct maq_probes *s);
/*
 * Adds a rank to probe, and returns its slice, which may exist already; NULL when out of memory. `why` is static or lives in the
 * workspace.
 */
struct maq_probe *maq_probes_choose(struct maq_probes *s, uint32_t rank, const char *why);
/*
 * Gathers the contributions of all slices, and marks the slices with new ones; the caller settles the table after adding its own
 * entries.
 */
enum maq_status maq_probes_gather(struct maq_probes *s, struct maq_diag *diag);
/*
 * Runs n slices as one pass: each reads what was gathered last. A program that fails is no error: its slice has the
 * status.
 */
enum maq_status maq_probes_run(struct maq_probes *s, struct maq_probe *const *which, uint32_t n, const char *phase,
                               struct maq_diag *diag);

#endif
