/*
 * build.h - from the traces of ranks to a captured job.
 *
 * capture.owner is a struct maq_arena of its own, from malloc(): whoever makes a capture gives it one, maq_capture_free()
 * gives both back.
 */
#ifndef MAQ_CAPTURE_BUILD_H
#define MAQ_CAPTURE_BUILD_H

#include "capture/trace/rank_trace.h"

/*
 * The job of these ranks and no others: class_of says UINT32_MAX of ranks that have no trace. `traces` in ascending
 * order of rank, of one world; everything is copied. *out is owned by the caller.
 */
enum maq_status maq_capture_build(struct maq_capture **out, const struct maq_rank_trace *traces, uint32_t n,
                                  struct maq_diag *diag);
/* The same from files. */
enum maq_status maq_capture_of_ranks(struct maq_capture **out, const char *const *paths, uint32_t n,
                                     struct maq_diag *diag);

/* An empty capture with its arena; NULL when out of memory. */
struct maq_capture *maq_capture_new(void);

/*
 * One rank's records as the class of that rank has them: ids of operators and texts replaced by op[] and text[],
 * peers relative, the messages of a group in the order of (communicator, kind, peer), frees that follow each other in
 * that of their blocks, without waits by polling that a wait for the device covers. `out` has room for trace->n_records; returns how many
 * there are.
 */
uint32_t maq_capture_normalise(struct maq_rec *out, const struct maq_rank_trace *trace, const uint32_t *op,
                               const uint32_t *text);

/* Gives events the numbers that event_numbers.c describes. false: out of memory. */
bool maq_capture_rename_events(struct maq_rec *record, uint32_t n, struct maq_arena *scratch);

/*
 * The shape of a program: equal for ranks that do the same. Counts, of every record: kind, flags, stream, event,
 * communicator, collective with its type, operation and size, relative peer, root, kind of memory and of mark. Of an
 * operator all that it is; of a kernel of the program's own neither grid nor reach, which may hang on data. Not: times,
 * sizes of allocations and of copies, offsets, values, payloads. op[]: the shape of each operator of the job.
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
