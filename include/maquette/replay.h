/* SPDX-License-Identifier: Apache-2.0 */
/*
 * replay.h - the time line of a captured job: when every rank runs each of its operations, on the recorded hardware or
 * another, with stragglers, slow links and failures as edits.
 *
 * A rank is a host, streams and events; its clocks move by maxima and sums of the durations in the trace:
 *
 *     launch       start = max(stream, host)           stream = start + ns
 *     wait event   stream = max(stream, event)         sync: host = max(host, stream or event)
 *     collective   all members: end = (latest arrival) + (longest ns that a member gave)
 *     message      up to 4 MiB: sender ends at its arrival + ns, receiver at max(both arrivals) + ns
 *                  larger: both end at max(both arrivals) + ns
 *     group        its parts arrive when its kernel starts, and it ends when the last part does; collectives of one
 *                  communicator follow each other, messages are side by side
 *
 * All times are whole nanoseconds; the result does not depend on the order in which ranks are evaluated.
 */
#ifndef MAQUETTE_REPLAY_H
#define MAQUETTE_REPLAY_H

#include "maquette/capture.h"
#include "maquette/job.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An edit: a difference from the capture. */
enum maq_edit_kind {
    MAQ_EDIT_SLOW, /* kernels and copies of `ranks` take `factor` times as long */
    MAQ_EDIT_LINK, /* collectives and messages that leave the node take `factor` times as long for `ranks` */
    MAQ_EDIT_FAIL  /* `ranks` stop at the beginning of step `from`, or at at_ns */
};
struct maq_edit {
    enum maq_edit_kind kind;
    uint32_t first, count, stride; /* ranks first, first + stride, ...; count of them */
    double factor;
    uint32_t from, to; /* steps [from, to); to = UINT32_MAX: to the end */
    int64_t at_ns;     /* FAIL: virtual time; negative = by its step */
};

/*
 * --slow rank:17=1.3x, node:3=1.2x, rank:17=1.3x@step:2..5, link:rail3=0.5x, link:rank17=0.5x, link:node2=0.5x (of its
 * speed); --fail rank:17=step:3, node:2=1.5s. Words of `maquette risk --slow` where both have them.
 */
MAQ_API enum maq_status maq_edit_slow(struct maq_edit *out, const char *text, const struct maq_capture *capture,
                                      struct maq_diag *diag);
MAQ_API enum maq_status maq_edit_fail(struct maq_edit *out, const char *text, const struct maq_capture *capture,
                                      struct maq_diag *diag);

/* A span of a watched rank: record `record` of its class's program, on `stream` (UINT32_MAX: the host). */
struct maq_replay_span {
    uint32_t rank, record, stream;
    int64_t start_ns, end_ns;
    int64_t waited_ns; /* collectives and messages: the wait for other members, at its beginning */
    int64_t peers_ns;  /* arrival of the last member that is not watched; INT64_MIN = there is none */
    const char *name;  /* of the operator, or "all-reduce", "copy", "wait", ... */
    const char *kind;  /* "kernel", "communication", "memory" or "host" */
    uint64_t bytes;    /* of communication and copies, as the record has them */
};
typedef void maq_replay_watch(const struct maq_replay_span *span, void *user);

struct maq_replay_opts {
    uint32_t size; /* set by MAQ_REPLAY_OPTS_INIT */
    uint32_t n_edits;
    const struct maq_edit *edit;
    /* Other hardware; NULL = durations as they were recorded. Recorded durations of operators are scaled by the
     * ratio of the cost chain's times on both devices, where the capture names its own; communication is costed
     * anew. */
    const struct maq_cluster *cluster;
    const struct maq_costs *costs;
    /* The same as values of a job, `cluster...` and `cost...`; where `cluster` is NULL. */
    const struct maq_override *overrides;
    size_t n_overrides;
    const char *kernels; /* CSV of measured kernel times: name,ns or name,grid,ns; NULL = none */
    int64_t timeout_ns;  /* of collectives, where a rank fails; 0 = ten minutes, as PyTorch has it */
    bool every_rank;     /* also replay ranks that cannot differ from others: the result is the same (for tests) */
    uint64_t shuffle;    /* another order of evaluation: the result is the same (for tests) */
    const uint32_t *watch_rank; /* [n_watch] ranks whose spans are reported, in program order of each rank */
    uint32_t n_watch;
    maq_replay_watch *watch;
    void *user;
};
#define MAQ_REPLAY_OPTS_INIT                                                                                           \
    {                                                                                                                  \
        .size = sizeof(struct maq_replay_opts)                                                                         \
    }

/*
 * Where a rank's time goes, on the stream that computes most: compute, and waits for data transfer, for peers that have not
 * arrived, and for the host to launch. They add up to the rank's end.
 */
struct maq_replay_share {
    int64_t compute_ns, communication_ns, peers_ns, host_ns;
};

struct maq_replay_class {
    const char *name;
    uint32_t n_ranks;
    uint32_t last_rank; /* the rank that ends last */
    struct maq_replay_share mean;
    int64_t first_end_ns, last_end_ns;
    uint64_t peak_bytes;
    double records; /* of one rank */
};

struct maq_replay {
    int64_t makespan_ns;
    uint32_t world, n_known; /* ranks, and those whose program is known */
    uint32_t n_steps;
    bool steps_marked;          /* by the program; false: found as the period of its records */
    const int64_t *step_end_ns; /* [n_steps] the last rank's host is done with it */
    uint32_t n_classes;
    const struct maq_replay_class *class_of_ranks;
    const int64_t *end_ns;                /* [world] of each rank; 0 = unknown */
    const struct maq_replay_share *share; /* [world] */
    uint64_t records, meetings;           /* replayed */
    uint64_t memory_bytes;                /* that the replay took */
    /* FAIL: the job ends when the first waiting rank's collective times out. */
    bool failed;
    uint32_t failed_rank, reporting_rank, n_waiting;
    int64_t failed_ns, reported_ns;
    void *owner;
};

/* *out is owned by the caller. A deadlock is an error that names the ranks that wait for each other. */
MAQ_API enum maq_status maq_capture_replay(struct maq_replay **out, const struct maq_capture *capture,
                                           const struct maq_replay_opts *opts, struct maq_diag *diag);
MAQ_API void maq_replay_free(struct maq_replay *replay);

#ifdef __cplusplus
}
#endif
#endif
