/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kineto.h - a trace of PyTorch's profiler in memory: the events that matter to a replay.
 *
 * Times are whole nanoseconds as the file has them (it writes microseconds with up to three decimals). Most events of a trace
 * are operators of the host that launch nothing by themselves; of these only the ones with sizes and the autograd engine's are
 * kept.
 */
#ifndef MAQ_CAPTURE_IMPORT_KINETO_KINETO_H
#define MAQ_CAPTURE_IMPORT_KINETO_KINETO_H

#include "capture/import/traced_job.h"

enum maq_kineto_kind {
    MAQ_KINETO_CALL, /* a call of the CUDA runtime or driver */
    MAQ_KINETO_KERNEL,
    MAQ_KINETO_MEMCPY,
    MAQ_KINETO_MEMSET,
    MAQ_KINETO_SYNC,   /* what a synchronising call waited for: newer traces */
    MAQ_KINETO_OP,     /* an operator of the host */
    MAQ_KINETO_SPAN,   /* an annotation of the program */
    MAQ_KINETO_IGNORED /* counted towards the span of the trace, at most */
};

/* Sizes of the first tensors that an operator was given. */
#define MAQ_KINETO_TENSORS 5
#define MAQ_KINETO_DIMS 6
struct maq_kineto_shape {
    uint8_t n_dims[MAQ_KINETO_TENSORS];
    int64_t dim[MAQ_KINETO_TENSORS][MAQ_KINETO_DIMS];
    const char *type; /* of the first tensor that has one; NULL */
};

/* The description of a communication kernel (its arguments in the trace). */
struct maq_kineto_coll {
    const char *name, *type;        /* "allreduce", "BFloat16" */
    const char *group, *group_desc; /* "3", "tp" */
    int64_t in, out, size;          /* elements, elements, ranks; -1 = not said */
    int64_t src, dst;               /* global ranks of a message; -1 */
    uint32_t n_members;             /* 0 = not said in full */
    const uint32_t *member;
};

struct maq_kineto_event {
    uint8_t kind; /* enum maq_kineto_kind */
    bool untimed; /* its duration is missing, or below zero */
    int64_t start, end;
    int64_t thread, stream, correlation; /* -1 = none */
    const char *name;
    union {
        struct {
            uint32_t grid[3], block[3], shared;
            const struct maq_kineto_coll *coll; /* NULL: it says nothing of a collective */
        } kernel;
        uint64_t bytes; /* memcpy, memset */
        struct {
            int64_t on_stream, record; /* stream that is waited for; correlation of the call that recorded the event */
        } sync;
        const struct maq_kineto_shape *shape; /* OP */
    } u;
};

struct maq_kineto_group {
    const char *name, *desc;
    uint32_t n_members;
    const uint32_t *member;
};

struct maq_kineto {
    const char *path;
    struct maq_arena *arena; /* of the texts and shapes: lives as long as this */
    struct maq_intern names;
    uint32_t n_events, event_size;
    struct maq_kineto_event *event;
    int64_t begin, end; /* of all that is timed, INT64_MAX and INT64_MIN when nothing is */
    int64_t rank, world;
    uint32_t n_groups, group_size;
    struct maq_kineto_group *group; /* process groups of the rank */
    const char *device;             /* as the driver calls it */
    uint32_t n_devices;             /* of the rank's node; 0 = not said */
};

/* Reads a file, plain or gzip. Fills *out in any case: maq_kineto_fini(). */
enum maq_status maq_kineto_read(struct maq_kineto *out, const char *path, struct maq_arena *arena,
                                struct maq_diag *diag);
/* The same from memory, for tests of hostile input. */
enum maq_status maq_kineto_parse(struct maq_kineto *out, const char *path, const void *bytes, size_t n,
                                 struct maq_arena *arena, struct maq_diag *diag);
void maq_kineto_fini(struct maq_kineto *k);

/* "1740461679479712.123" microseconds -> ns. false: no number, or out of range. */
bool maq_kineto_ns(int64_t *out, struct maq_str us);

/* --- what events are: kernels.c ----------------------------------------------------------------------------- */

/* The operator that a kernel is: its sizes from the host's operator above it, where there is one that says them. */
uint32_t maq_kineto_op(struct maq_import_job *job, const struct maq_kineto_event *kernel,
                       const struct maq_kineto_event *above);
/* Whether a kernel is one of NCCL's. */
bool maq_kineto_is_nccl(const struct maq_kineto_event *kernel);
/* What collective or message a kernel of NCCL's is; false: it cannot be told, and the kernel stays a kernel. */
struct maq_kineto_occurrence {
    enum maq_rec_kind kind; /* COLL, SEND, RECV */
    enum maq_rec_coll coll;
    enum maq_rec_type type;
    uint32_t comm; /* ordinal */
    uint32_t arg;  /* peer or root, or MAQ_REC_NONE */
    uint64_t bytes;
};
bool maq_kineto_occurrence(struct maq_kineto_occurrence *out, struct maq_import_job *job, struct maq_import_rank *rank,
                           const struct maq_kineto *k, const struct maq_kineto_event *kernel);

/* --- the time line of a rank: records.c ---------------------------------------------------------------------- */

/* Adds the records of a rank. */
enum maq_status maq_kineto_records(struct maq_import_job *job, struct maq_import_rank *rank, struct maq_kineto *k);

#endif
