/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capture_graph.h - a captured job as an execution graph like any other, and as files for other tools.
 *
 *   maq_capture_graph()          one class of nodes per class of ranks, with the host's work as nodes of their own
 *   maq_capture_write_chakra()   Chakra execution traces, one file per rank
 *
 * The graph is the quotient of the job by its classes: of the ranks of a class, one. A collective or a message is one node, after
 * the arrival of every class that takes part. That is exact when every communicator of a kind joins the same classes (all ranks
 * of a class then do the same at the same time); where it is not, a class waits for every class that any of its ranks waits for,
 * and `exact` is false.
 *
 * Durations are those of a class's program; differences of single ranks (maq_rank_delta) are used by the replay only.
 *
 * A collective begins when its last member arrives. A message of at most 4 MiB does not wait for its receiver (NCCL's buffers
 * hold it), a larger one needs both sides.
 */
#ifndef MAQUETTE_CAPTURE_GRAPH_H
#define MAQUETTE_CAPTURE_GRAPH_H

#include "maquette/capture.h"

#ifdef __cplusplus
extern "C" {
#endif

struct maq_captured_graph {
    struct maq_timed_graph timed;
    bool exact;
    uint32_t unmet;   /* collectives and messages with a member that never arrives; it is not waited for */
    uint32_t n_steps; /* marks of steps of the first class; tag.microbatch counts them */
    void *owner;      /* internal */
};

/* Filled on success and owned by the caller (maq_captured_graph_free). Nothing of the capture is kept. */
MAQ_API enum maq_status maq_capture_graph(struct maq_captured_graph *out, const struct maq_capture *capture,
                                          struct maq_diag *diag);
MAQ_API void maq_captured_graph_free(struct maq_captured_graph *graph);

/*
 * Writes `folder`/`prefix`.RANK.et, made when it does not exist: for the first rank of each class, or, with `every_rank`, for
 * all. Traces of one class differ in their communicators alone.
 */
MAQ_API enum maq_status maq_capture_write_chakra(const struct maq_capture *capture, const char *folder,
                                                 const char *prefix, bool every_rank, struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
