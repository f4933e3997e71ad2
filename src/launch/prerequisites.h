/* SPDX-License-Identifier: Apache-2.0 */
/*
 * prerequisites.h - ranks that run before the one that was asked for, because its program reads what they say.
 *
 * A rank that runs alone reads objects that others broadcast, scatter or send, and dies of a guess: Lightning's log folder, DeepSpeed's
 * checks, the plan of a distributed checkpoint. So the device ends the program where it reads such bytes (shim/nccl/tainted_read.c); the rank that
 * was to say them is run, in the same way; and then the program runs again, from its beginning, with what was said. Ranks that wait for each
 * other are a cycle: who is waited for runs with guesses, and once more when what it looked up has changed since.
 *
 * What was said is kept in a file, so that the next run of the same command is at once. The file's name follows from the command line, the
 * machine, the working directory, and the size and time of every file that the command line names. Where one of these ranks failed, nothing is
 * kept: what it would have said later is not known, and the reason may be one that the name does not show, such as a package that was missing.
 *
 * Two kinds of program need all ranks at once, which is the caller's to do (`together`). A rank that finds another one by sockets or memory that they
 * share, and not through the libraries that are stood in for, waits for ever, and is ended. And of a gather the first member alone is
 * asked, the others are taken to say what it says: a rank that has read such bytes and fails may have needed what each of them says, as
 * the plan of a distributed checkpoint does, which every rank fills with its own shards.
 */
#ifndef MAQ_LAUNCH_PREREQUISITES_H
#define MAQ_LAUNCH_PREREQUISITES_H

#include "launch/contributions.h"
#include "launch/workspace.h"

struct maq_prerequisite_rank {
    uint32_t rank;
    bool done;    /* it was to say more, and would say the same if it ran again */
    bool stopped; /* it was ended where it read what a rank was to say that waits for it */
    int32_t
        status; /* its program's exit status; 128 + number of a signal; 0 where it read guesses, of which it may have died */
};

/* Why all ranks have to run at once, and none of them alone again. */
enum maq_together {
    MAQ_TOGETHER_NOT,
    MAQ_TOGETHER_STALLED, /* ranks wait for each other by means of their own (stall.h) */
    MAQ_TOGETHER_SUPPOSED /* one failed that had read what others were taken to say */
};

struct maq_prerequisites {
    struct maq_workspace *workspace;
    const char *kept;                  /* the file; NULL = none is kept */
    struct maq_contributions said;     /* settled: from the file, and by ranks that ran */
    struct maq_prerequisite_rank *ran; /* ranks that ran here, but for the one that was asked for */
    uint32_t n_ran, runs;              /* runs: of programs, the asked one's included */
    uint32_t from_file;                /* ranks whose words are from the file */
    /* Of gathers of objects several members are asked, since with the first alone a rank failed: samples_for. */
    bool samples;
    uint32_t samples_for;
    bool
        groups; /* the rank that was asked for failed in a job that is too large to be run whole, and had split groups off as they were guessed */
    enum maq_together together; /* of the last program, or from the file */
    uint32_t together_for;      /* the rank that waited or failed; MAQ_REC_NONE: the file says so */
    struct maq_live live;
    struct maq_store store;
    uint64_t store_requests; /* of the last program */
    uint32_t invented;
    bool gloo;
};

/* Reads the file, if it is there. `folder` keeps such files; NULL: the user's cache; "none": nothing is kept. */
enum maq_status maq_prerequisites_open(struct maq_prerequisites *f, struct maq_workspace *workspace, const char *folder,
                                       struct maq_diag *diag);
void maq_prerequisites_close(struct maq_prerequisites *f);
/*
 * Runs `rank`, its trace in `trace`, and before it who it waits for. f->live has its last run, which ended by itself or was ended: the
 * caller takes the result of it, unless `together` says that it has none. What others said is kept.
 */
enum maq_status maq_prerequisites_run(struct maq_prerequisites *f, uint32_t rank, const char *trace,
                                      struct maq_diag *diag);
/* Keeps that all ranks have to run at once: the next call begins there. */
void maq_prerequisites_keep_together(const struct maq_prerequisites *f);

#endif
