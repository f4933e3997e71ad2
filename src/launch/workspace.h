/*
 * workspace.h - what the ranks of one command share: the machine that they believe to be on, a private folder, the loop that serves
 * them, the prices; and a rank that lives there.
 */
#ifndef MAQ_LAUNCH_WORKSPACE_H
#define MAQ_LAUNCH_WORKSPACE_H

#include "launch/price_server.h"
#include "launch/private_folder.h"
#include "launch/program.h"
#include "launch/run_card.h"
#include "launch/store/store.h"
#include "spec/doc.h"

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
    uint64_t identity; /* hash of the command line and of what it runs on: slices of other programs are not mixed */
    bool device;       /* the zero-GPU device stands in for CUDA's libraries */
    struct maq_libraries libraries;
    struct maq_loop loop;
    struct maq_price_server asks;
    double began_s;
};

/* Everything up to the first program. *room is to be closed in any case. */
enum maq_status maq_workspace_open(struct maq_workspace *room, const struct maq_launch_opts *opts,
                                   struct maq_diag *diag);
void maq_workspace_close(struct maq_workspace *room);
/* Seconds since it was opened. */
double maq_workspace_age(const struct maq_workspace *room);

/* A path that holds wherever a program goes; NULL stays NULL. */
enum maq_status maq_workspace_absolute(const char **out, const char *path, struct maq_arena *arena);

/* How a rank is to live. */
struct maq_live_opts {
    uint32_t rank;
    struct maq_store *store;
    const char *trace;                 /* file of its trace */
    const char *peers, *meet, *output; /* NULL = none; output: the program's own streams */
    const char *waits;                 /* of peers, on a real GPU; NULL = none */
    const char *given;                 /* what it looks up in `peers` is written there; NULL = not */
};

struct maq_live {
    struct maq_workspace *room;
    struct maq_live_opts opts;
    struct maq_price_server_port port;
    struct maq_child program;
    struct maq_child_end end;
    double began_s, ended_s;
    bool runs, lost; /* lost: its keeper was killed */
    bool late;       /* it did not end in time */
    double told_s;   /* when it was asked to end; 0 = not */
};

enum maq_status maq_live_start(struct maq_live *live, struct maq_workspace *room, const struct maq_live_opts *opts,
                               struct maq_diag *diag);
/* Ends what runs and closes what is open. */
void maq_live_end(struct maq_live *live);
/* What it was: exit status, host figures, and the sum of its trace. */
enum maq_status maq_live_result(struct maq_launch_rank *out, struct maq_live *live, struct maq_diag *diag);

/*
 * Serves `n` ranks until `all` of them, or any, have ended. A rank that is out of time is told, and after a grace ended: it is `late`.
 * Where `opts.stop` is set all are: MAQ_LIMIT, after all have ended. `at` is told as progress.
 */
enum maq_status maq_workspace_serve(struct maq_workspace *room, struct maq_live *const *live, uint32_t n, bool all,
                                    const struct maq_launch_progress *at, struct maq_diag *diag);

#endif
