/*
 * probes.h - slices of a capture: a rank, run alone, with what the others have been seen to say. Finished ones are files of the
 * work folder, so that a capture that was killed goes on with them.
 *
 *     job                    what is captured: a line, compared when a capture goes on
 *     p1-r17.trace .log      trace and output of rank 17 in pass 1
 *     p1-r17.given           what it looked up in what the others said; where another pass would answer it the same, it is not run again
 *     p1-r17.done            what it set in the store, its exit status, its time; written last
 *     p1.peers               contributions as the slices of pass 1 get them
 */
#ifndef MAQ_LAUNCH_PROBES_H
#define MAQ_LAUNCH_PROBES_H

#include "launch/contributions.h"
#include "launch/workspace.h"

struct maq_probe {
    uint32_t rank;
    const char *why;
    bool ran; /* once at least; what follows is of its last run */
    uint32_t pass;
    int32_t status;
    uint64_t hash; /* of its trace */
    uint64_t said; /* hash of what it puts into exchanges and sets in the store */
    bool changed, resumed;
    bool news; /* as gathered last, it says something that it did not say before */
    double wall_s;
    const char *trace, *log, *given;
    bool invented_at_once;         /* it ran in the first pass, where the store waits for nobody */
    struct maq_contributions keys; /* what it set in the store */
};

struct maq_probes {
    struct maq_workspace *room;
    const char *folder;    /* the work folder */
    struct maq_probe **at; /* in the order of choice */
    uint32_t n, size;
    uint32_t pass;     /* that runs next */
    bool every_pass;   /* nothing is left out */
    bool failed_again; /* those that failed are run again, whatever they would be told */
    struct maq_launch_slice *log;
    uint32_t n_log, log_size;
    struct maq_contributions said; /* by the last run of each; settled */
    uint32_t done;                 /* slices run or resumed */
};

/* Makes the work folder, or finds it: MAQ_USAGE when it is of another capture. */
enum maq_status maq_probes_open(struct maq_probes *s, struct maq_workspace *room, const char *folder,
                                struct maq_diag *diag);
void maq_probes_close(struct maq_probes *s);
/* A rank to be probed; NULL when out of memory, the slice that is there when it has been chosen. `why` is static or the room's. */
struct maq_probe *maq_probes_choose(struct maq_probes *s, uint32_t rank, const char *why);
/* Takes in what all have said by now, and marks whose it is news of; the table is for the caller to settle, with what it adds. */
enum maq_status maq_probes_gather(struct maq_probes *s, struct maq_diag *diag);
/* Runs the n slices as one pass: each gets what was gathered last. Where a program fails, its status says so. */
enum maq_status maq_probes_run(struct maq_probes *s, struct maq_probe *const *which, uint32_t n, const char *phase,
                               struct maq_diag *diag);

#endif
