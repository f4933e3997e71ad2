/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rank_trace.h - the trace of one rank (shim/record.h), read record by record or whole.
 */
#ifndef MAQ_CAPTURE_TRACE_RANK_TRACE_H
#define MAQ_CAPTURE_TRACE_RANK_TRACE_H

#include <stdio.h>

#include "base/arena.h"
#include "maquette/capture.h"
#include "shim/record.h"

/* --- record by record -------------------------------------------------------------------------------------------------- */

/*
 * A trace being read. Every record returned is complete and of a known kind, its ids refer to things that were defined or
 * used before, in order, and its payload is inside the file. One thread.
 */
struct maq_trace_reader {
    FILE *file;
    const char *path; /* borrowed */
    struct maq_rec_head head;
    uint64_t at, size;   /* offset of the next record; of the file */
    uint64_t payload_at; /* of the record that came last */
    uint32_t n_ops, n_texts, n_comms, n_events, n_allocs, n_streams;
    uint32_t *comm_size; /* [n_comms] */
    uint32_t comm_room;
    bool truncated, ended;
    unsigned char *payload;
    uint64_t payload_room;
};

enum maq_status maq_trace_open_rank(struct maq_trace_reader *r, const char *path, struct maq_diag *diag);
/*
 * The next record; *payload points at its rec->bytes bytes until the next call, NULL where it has none (or `payload`
 * is NULL: it is skipped). *more = false at the end of the trace: after END, or where a killed program left off, which
 * is a warning.
 */
enum maq_status maq_trace_next(struct maq_trace_reader *r, bool *more, struct maq_rec *rec, const void **payload,
                               struct maq_diag *diag);
void maq_trace_close_rank(struct maq_trace_reader *r);
bool maq_rec_has_payload(unsigned kind);

/* --- whole ------------------------------------------------------------------------------------------------------------- */

struct maq_trace_op {
    struct maq_rec_op what;
    const char *name; /* ends with NUL */
};

struct maq_trace_comm {
    struct maq_rec_comm head;
    const uint32_t *member; /* [head.n_members] */
};

/* Everything of a rank but its exchanges' and reads' payloads. Ids are the rank's own. Importers of other formats fill
 * the same struct. */
struct maq_rank_trace {
    const char *path; /* for messages */
    uint32_t world, rank, per_node;
    uint64_t program;
    uint32_t n_ops, n_texts, n_comms, n_records;
    const struct maq_trace_op *op;
    const char *const *text;
    const struct maq_trace_comm *comm;
    const struct maq_rec *record; /* no DEF_*; peers and roots are ranks in the communicator */
};

/* Reads a whole trace. Lives in `arena`. */
enum maq_status maq_rank_trace_read(struct maq_rank_trace *out, const char *path, struct maq_arena *arena,
                                    struct maq_diag *diag);

#endif
