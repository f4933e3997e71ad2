/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture.h - a captured job: the operations of every rank of a real program.
 *
 *   maq_capture_read()     from the traces of ranks (`maquette run`, `maquette capture`), from a .mqt file, from a
 *                          PyTorch-profiler or a Chakra trace
 *   maq_capture_check()    whether collectives and messages match on all members
 *   maq_capture_replay()   a time line of all ranks, with stragglers, slow links and other hardware as edits
 *   maq_capture_graph()    as an execution graph like any other: one class of nodes per class of ranks
 *
 * Ranks that do the same are one class: the same operators, streams, collectives and sizes in the same order. The ranks
 * that they communicate with are stored for each rank. A class's program is a list of records as the trace has them
 * (shim/record.h), with ids of operators and texts that count over the whole job.
 *
 * Times are in ns, sizes in bytes.
 */
#ifndef MAQUETTE_CAPTURE_H
#define MAQUETTE_CAPTURE_H

#include "maquette/graph.h"
#include "maquette/job.h"

#ifdef __cplusplus
extern "C" {
#endif

struct maq_rec;    /* shim/record.h */
struct maq_rec_op; /* shim/record.h */

/* A distinct operator of the job. */
struct maq_captured_op {
    const char *name;
    const struct maq_rec_op *what;
    double recorded_ns; /* mean recorded duration of its launches; 0 = unknown */
    uint64_t launches;  /* over all classes, each counted once */
};

/* A communicator of the job. */
struct maq_captured_comm {
    uint64_t lineage;
    uint32_t size;
    const uint32_t *member; /* [size] global ranks in order of their rank in it; UINT32_MAX = unknown */
    const char *name;       /* of its process group in the program; NULL = unknown */
};

/* The duration of a record of one rank, where it differs from that in the class's program. */
struct maq_rank_delta {
    uint32_t rank, record;
    uint32_t host_ns;
    uint64_t ns;
};

/* A class of ranks that do the same. */
struct maq_rank_class {
    uint64_t signature;
    uint32_t n_records;
    const struct maq_rec
        *record; /* [n_records] no DEF_*; peers of SEND and RECV are relative: (peer - own rank) mod size
                                     of the communicator; roots are ranks in it, the same on all members */
    uint32_t n_streams, n_events, n_comms;
    uint32_t n_ranks;
    const uint32_t *rank;     /* [n_ranks] ascending */
    const uint32_t *comm;     /* [n_ranks * n_comms] of the job, for each rank's communicators in order of first use */
    const uint32_t *position; /* [n_ranks * n_comms] rank in it */
    uint64_t peak_bytes;      /* of device memory, as the program allocated it */
    bool probed;              /* a rank of it ran; otherwise it is inferred (docs/emulation.md) */
    const char *name;         /* "pp 3, tp 0..7" once axes are known; otherwise "class 2" */
    uint32_t n_deltas;
    const struct maq_rank_delta *delta; /* [n_deltas] by rank, then record: of ranks that ran and are not the first */
};

struct maq_capture {
    uint32_t world, per_node;
    const char *device; /* catalogue name of the device that ran or was emulated; NULL = unknown */
    uint32_t n_ops;
    const struct maq_captured_op *op;
    uint32_t n_texts;
    const char *const *text;
    uint32_t n_comms;
    const struct maq_captured_comm *comm;
    uint32_t n_classes;
    const struct maq_rank_class *class_of_ranks;
    const uint32_t *class_of; /* [world]; UINT32_MAX = a rank of which nothing is known */
    void *owner;              /* internal */
};

/*
 * Reads any of: a .mqt file; rank traces (several paths, or a folder of them); PyTorch-profiler JSON; Chakra ET. The
 * content says which. Any input gives a capture or a diagnostic. Owned by the caller: maq_capture_free().
 */
MAQ_API enum maq_status maq_capture_read(struct maq_capture **out, const char *const *paths, uint32_t n_paths,
                                         struct maq_diag *diag);
/* What comm_size is of in a Chakra trace, for reduce-scatter, scatter and all-to-all (docs/imports.md). */
enum maq_chakra_comm_size {
    MAQ_CHAKRA_SIZE_BY_WRITER, /* by who wrote the file: its metadata says it, or maquette wrote it (count), or others (input) */
    MAQ_CHAKRA_SIZE_INPUT, /* of all that a rank puts in: the schema's converter, ASTRA-sim */
    MAQ_CHAKRA_SIZE_COUNT  /* of a rank's part, as NCCL counts */
};
struct maq_capture_read_opts {
    enum maq_chakra_comm_size comm_size;
};
#define MAQ_CAPTURE_READ_OPTS_INIT                                                                                     \
    {                                                                                                                  \
        MAQ_CHAKRA_SIZE_BY_WRITER                                                                                      \
    }
/* The same, with what the files do not say; opts NULL: nothing. */
MAQ_API enum maq_status maq_capture_read_with(struct maq_capture **out, const char *const *paths, uint32_t n_paths,
                                              const struct maq_capture_read_opts *opts, struct maq_diag *diag);
/* Whether the content of a file is one of these. */
MAQ_API bool maq_capture_probe(const char *path);
/* Writes a .mqt file, as a temporary file that is then renamed. The same capture gives the same bytes. */
MAQ_API enum maq_status maq_capture_write(const struct maq_capture *capture, const char *path, struct maq_diag *diag);
MAQ_API void maq_capture_free(struct maq_capture *capture);

/* Whether collectives and messages match on all members: the same kind, size, type, operation and root. A fault is
 * reported with both sites. MAQ_NO when some do not match. */
MAQ_API enum maq_status maq_capture_check(const struct maq_capture *capture, struct maq_diag *diag);

/*
 * Infers the ranks that did not run, from the positions of those that ran in their communicators. MAQ_NO: probe[0 .. *n)
 * are ranks that have to run before this can be decided, at least one, and the capture is unchanged. *n is the size of
 * probe[] on entry.
 */
MAQ_API enum maq_status maq_capture_infer(struct maq_capture *capture, uint32_t *probe, uint32_t *n,
                                          struct maq_diag *diag);

/* What a capture holds, in numbers. */
struct maq_capture_axis {
    uint32_t size, count; /* ranks in each, how many of them */
    uint32_t stride;      /* between members; 0 = no progression */
    double collectives;   /* of one rank, over its run */
    double messages, bytes;
};
struct maq_capture_stats {
    uint64_t records;             /* of all ranks */
    const uint64_t *of_kind;      /* [n_kinds] */
    const char *const *kind_name; /* [n_kinds] */
    uint32_t n_kinds, n_axes, n_known;
    const struct maq_capture_axis *axis;
    uint32_t n_top;
    const struct maq_capture_top {
        const char *name;
        uint64_t launches; /* over all ranks */
        double total_ns;   /* over all ranks */
        double mean_ns;
    } * top;               /* [n_top] operators by time */
    double compute_ns;     /* over all ranks */
    const uint32_t *steps; /* [n_classes] */
    void *owner;
};
MAQ_API enum maq_status maq_capture_stats(struct maq_capture_stats **out, const struct maq_capture *capture,
                                          struct maq_diag *diag);
MAQ_API void maq_capture_stats_free(struct maq_capture_stats *stats);

#ifdef __cplusplus
}
#endif
#endif
