/* SPDX-License-Identifier: Apache-2.0 */
/*
 * traced_job.h - a captured job from traces of other tools: the structs that every reader fills in, and their conversion to a
 * capture.
 *
 * A reader adds, rank by rank, operators, texts, communicators and records as shim/record.h has them, with ids of operators
 * and texts that count over the job. Of SEND and RECV and of rooted collectives `arg` is a rank in the communicator, absolute.
 * maq_import_finish() then
 *
 *   - finds the duration of a collective without waiting. A traced kernel lasts from its own rank's arrival to the common end,
 *     so that duration is the least over the traced members, that of the rank that came last;
 *   - gives every rank that was traced a class of its own, with its own durations;
 *   - puts ranks that were not traced with the nearest one that was, where they have its position in every communicator with
 *     messages. A communicator whose members a, a + t, a + 2 t, ... tile the world (a mod (t n) < t for n members) carries over
 *     to the tile of the other rank; one that does not leaves ranks outside of it unknown. Where the members are unknown,
 *     consecutive ranks are taken to be together.
 */
#ifndef MAQ_CAPTURE_IMPORT_TRACED_JOB_H
#define MAQ_CAPTURE_IMPORT_TRACED_JOB_H

#include "capture/intern.h"
#include "maquette/capture.h"
#include "shim/record.h"

#define MAQ_IMPORT_WORLD (UINT32_C(1) << 20) /* ranks at most */

struct maq_import_comm {
    const char *name; /* NULL = none */
    uint32_t size;
    const uint32_t *member; /* [size]; NULL = unknown */
    const uint32_t *source; /* what it was copied from: the same list again needs no comparing */
    uint32_t position;      /* of this rank in it; UINT32_MAX = it is no member */
    bool messages;          /* SEND or RECV run on it */
};

struct maq_import_rank {
    const char *path;
    uint32_t rank, n_streams, n_events;
    uint32_t n_records, record_size;
    struct maq_rec *record;
    uint32_t n_comms, comm_size;
    struct maq_import_comm *comm;
};

struct maq_import_job {
    struct maq_arena *arena; /* becomes the capture's */
    struct maq_diag *diag;
    uint32_t world, per_node; /* 0 = unknown */
    const char *device;       /* name in the catalogue; NULL = unknown */
    bool device_said;         /* a trace names one */
    struct maq_intern op, text;
    uint32_t n_ranks, rank_size;
    struct maq_import_rank *rank;
    struct maq_rec spare; /* written to when there is no memory for a record */
    uint32_t n_everyone;
    uint32_t *everyone;
    bool failed; /* out of memory somewhere: checked once, at the end */
};

/* NO_MEMORY leaves nothing behind. */
enum maq_status maq_import_begin(struct maq_import_job *job, struct maq_diag *diag);
void maq_import_drop(struct maq_import_job *job);

/* The rank that a reader fills next; its place may move when another is added. NULL when out of memory. */
struct maq_import_rank *maq_import_add_rank(struct maq_import_job *job, const char *path, uint32_t rank);
/* The device of the job, as a driver or a profiler calls it (NULL = not said). One that the catalogue lacks is said to be so, once. */
void maq_import_device(struct maq_import_job *job, const char *name);
/* Ids; 0 when out of memory. */
uint32_t maq_import_op(struct maq_import_job *job, const struct maq_rec_op *what, struct maq_str name);
uint32_t maq_import_text(struct maq_import_job *job, struct maq_str text);
/* Ordinal of the communicator with this name and these members, added when it is new. member NULL: not known. */
uint32_t maq_import_comm(struct maq_import_job *job, struct maq_import_rank *rank, struct maq_str name,
                         const uint32_t *member, uint32_t size);
/* [n] 0, 1, 2, ...; NULL when out of memory. */
const uint32_t *maq_import_everyone(struct maq_import_job *job, uint32_t n);
/* A zeroed record at the end, `host_ns` of host time after the one before (a HOST record of its own where that is too long); never
 * NULL: a spare one when out of memory. */
struct maq_rec *maq_import_record(struct maq_import_job *job, struct maq_import_rank *rank, enum maq_rec_kind kind,
                                  int64_t host_ns);

/* Gives matched collectives and messages of the traced ranks the least duration that any member saw. collective_times.c */
bool maq_import_collective_times(struct maq_import_job *job, uint32_t *const *comm_id);

/* *out is owned by the caller: maq_capture_free(). The job is dropped in any case. */
enum maq_status maq_import_finish(struct maq_capture **out, struct maq_import_job *job);

#endif
