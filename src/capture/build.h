/* SPDX-License-Identifier: Apache-2.0 */
/*
 * build.h - builds a captured job from the traces of ranks.
 *
 * capture.owner is a struct maq_arena from malloc(), made together with the capture; maq_capture_free() frees both.
 */
#ifndef MAQ_CAPTURE_BUILD_H
#define MAQ_CAPTURE_BUILD_H

#include "capture/trace/rank_trace.h"

/*
 * The job with these ranks alone: class_of is UINT32_MAX for ranks without a trace. `traces` are in ascending order of
 * rank, of one world; everything is copied. *out is owned by the caller.
 */
enum maq_status maq_capture_build(struct maq_capture **out, const struct maq_rank_trace *traces, uint32_t n,
                                  struct maq_diag *diag);
/* The same from files. */
enum maq_status maq_capture_of_ranks(struct maq_capture **out, const char *const *paths, uint32_t n,
                                     struct maq_diag *diag);

/* An empty capture with its arena; NULL when out of memory. */
struct maq_capture *maq_capture_new(void);

/*
 * Normalises one rank's records to the form that its class has: ids of operators and texts replaced by op[] and text[], peers
 * relative, the messages of a group in the order of (communicator, kind, peer), exchanges before the allocations between them, consecutive
 * frees in the order of their blocks, and
 * without polling waits that a wait for the device covers. `out` has space for trace->n_records; returns how many there are.
 */
uint32_t maq_capture_normalise(struct maq_rec *out, const struct maq_rank_trace *trace, const uint32_t *op,
                               const uint32_t *text);

/* Gives events the numbers that event_numbers.c describes. false: out of memory. */
bool maq_capture_rename_events(struct maq_rec *record, uint32_t n, struct maq_arena *scratch);

/*
 * The signature of a program: equal for ranks that do the same. It covers, of every record: kind, flags, stream, event,
 * communicator, collective with its type, operation and size, relative peer, root, kind of memory and of mark; all of
 * an operator, but of a kernel of the program's own neither grid nor reach, which may depend on data. It does not cover
 * times, sizes of allocations and of copies, offsets, values, payloads. op[]: the shape of each operator of the job.
 */
uint64_t maq_capture_signature(const struct maq_rec *record, uint32_t n, const uint64_t *op);
uint64_t maq_capture_op_shape(const struct maq_captured_op *op);

/* Peak of device memory that a program allocates. */
uint64_t maq_capture_peak(const struct maq_rec *record, uint32_t n, struct maq_arena *scratch);

/* "all-reduce", ...: enum maq_rec_coll; "collective" for anything else. */
const char *maq_rec_coll_word(unsigned coll);

/* Fills streams, events, communicators of the class from its records. */
void maq_capture_count(struct maq_rank_class *c);

#endif
