/* SPDX-License-Identifier: Apache-2.0 */
/*
 * workspace.h - the workspace of a command that runs ranks: the machine that is emulated, a private folder, the event
 * loop, the price server; and a live rank in it.
 */
#ifndef MAQ_LAUNCH_WORKSPACE_H
#define MAQ_LAUNCH_WORKSPACE_H

#include "launch/price_server.h"
#include "launch/private_folder.h"
#include "launch/program.h"
#include "launch/run_card.h"
#include "launch/stall.h"
#include "launch/store/store.h"
#include "spec/doc.h"

#define MAQ_LAUNCH_ALL_MAX 256u       /* ranks at once: each is a process of its own */
#define MAQ_LAUNCH_FOR_FAILED_MAX 64u /* ranks of a job that are all run for one that failed */

struct maq_workspace {
    const struct maq_launch_opts *opts;
    struct maq_arena arena;
    struct maq_cluster cluster;
    struct maq_costs costs;
    struct maq_measured *measured;
    struct maq_replay_kernels *kernels;
    struct maq_pricer pricer;
    uint32_t world, per_node;
    double memory_bytes; /* of a device; 0 = its own */
    const char *folder;  /* private; NULL: none */
    struct maq_folder_guard guard;
    const char *program;        /* its file */
    const char *trace, *values; /* absolute; NULL = none */
    const char *nccl_memory;    /* "rule", or an absolute path; NULL = not counted */
    /* hash of the command line and of the machine, by which slices of different captures are told apart */
    uint64_t identity;
    bool device; /* the zero-GPU device stands in for CUDA's libraries */
    struct maq_libraries libraries;
    struct maq_fork_server *forks; /* what ranks are forked from, where that can be; NULL = each starts by itself */
    struct maq_loop loop;
    struct maq_price_server asks;
    double began_s;
    double ended_wall_s; /* of programs that ended, added up */
    uint32_t n_ended;
};

/* Opens everything that the first program needs. *workspace is to be closed (maq_workspace_close()) in any case. */
enum maq_status maq_workspace_open(struct maq_workspace *workspace, const struct maq_launch_opts *opts,
                                   struct maq_diag *diag);
void maq_workspace_close(struct maq_workspace *workspace);
/* Seconds since it was opened. */
double maq_workspace_age(const struct maq_workspace *workspace);

/* An absolute path, valid in any working directory; NULL stays NULL. */
enum maq_status maq_workspace_absolute(const char **out, const char *path, struct maq_arena *arena);

/* Options of a live rank. */
struct maq_live_opts {
    uint32_t rank;
    struct maq_store *store;
    const char *trace;                 /* file of its trace */
    const char *peers, *meet, *output; /* NULL = none; output: the program's own streams */
    const char *waits;                 /* of peers, on a real GPU; NULL = none */
    const char *inputs;                /* file for its input record (input_record.h); NULL = none */
    bool samples;                      /* of a gather of objects several members, and not the first alone */
    bool stops;                        /* it ends where it reads what another rank was to say (prerequisites.h) */
    double stall_s;                    /* where it has done nothing for so long it is `stalled`; 0 = nobody looks */
    bool stall_ends;                   /* and is ended */
};

struct maq_live {
    struct maq_workspace *workspace;
    struct maq_live_opts opts;
    struct maq_price_server_port port;
    struct maq_child program;
    struct maq_child_end end;
    double began_s, ended_s;
    bool runs, lost;  /* lost: its keeper was killed, or the fork server ended */
    bool forked;      /* by the fork server */
    bool late;        /* it did not end in time */
    bool stalled;     /* it waits for somebody, and not for maquette (stall.h) */
    bool peer_failed; /* it was ended since another one of those that run at once had failed */
    struct maq_stall stall;
    double told_s; /* time at which it was asked to end; 0 = never */
};

enum maq_status maq_live_start(struct maq_live *live, struct maq_workspace *workspace, const struct maq_live_opts *opts,
                               struct maq_diag *diag);
/* Ends what runs and closes what is open. */
void maq_live_end(struct maq_live *live);
/* Of a rank that ended; 128 + number of a signal. */
int32_t maq_live_exit_status(const struct maq_live *live);
/* Of ranks that run at once the one that failed first and by itself; NULL: none did. */
const struct maq_live *maq_live_failed_first(struct maq_live *const *live, uint32_t n);
/* The result of a rank: exit status, host figures, and the sums of its trace. */
enum maq_status maq_live_result(struct maq_launch_rank *out, struct maq_live *live, struct maq_diag *diag);

/*
 * Serves `n` ranks until `all` of them, or any, have ended. A rank that is out of time is asked to end, and killed after a grace
 * period: it is `late`. Where all are waited for and one of several fails, the others get 10 seconds to end by themselves and are ended then, as
 * torchrun does: what they wait for does not come. When `opts.stop` is set all ranks are ended so, and the status is MAQ_LIMIT. `at` is reported as progress.
 */
enum maq_status maq_workspace_serve(struct maq_workspace *workspace, struct maq_live *const *live, uint32_t n, bool all,
                                    const struct maq_launch_progress *at, struct maq_diag *diag);

#endif
