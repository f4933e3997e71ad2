/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trace.h - timelines for a trace viewer (ui.perfetto.dev, chrome://tracing).
 *
 * The name of the file says what is written: `.json` is Chrome's JSON (small traces), anything else Perfetto's
 * protobuf; `.gz` behind either compresses it. The same input gives the same bytes.
 */
#ifndef MAQUETTE_TRACE_H
#define MAQUETTE_TRACE_H

#include "maquette/post_training.h"
#include "maquette/replay.h"
#include "maquette/serve.h"
#include "maquette/train.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * A training step: one process per rank class, one thread per stream, an arrow per pipeline transfer, a counter of
 * live activations per stage. finish_ns is what an engine made of the graph. memory may be NULL: no counters then.
 * docs/trace.md describes the rows.
 */
MAQ_API enum maq_status maq_trace_train(const char *path, const struct maq_train_graph *graph, const double *finish_ns,
                                        const struct maq_train_memory *memory, struct maq_diag *diag);

/*
 * A captured job, replayed: one process for each of `ranks` (NULL: the first of every class), one thread per stream and one for
 * where the host waits. opts as for maq_capture_replay(); *out as of it.
 */
MAQ_API enum maq_status maq_trace_replay(const char *path, struct maq_replay **out, const struct maq_capture *capture,
                                         const struct maq_replay_opts *opts, const uint32_t *ranks, uint32_t n_ranks,
                                         struct maq_diag *diag);

/*
 * A deployment while it serves: as maq_serve_run(), and what happened as a timeline: the engine with its iterations on each pipeline stage
 * and what it holds, and each request's way through it. Long runs are drawn from their beginning; a note says what is left out.
 * A deployment that does not fit has no timeline: nothing is written.
 */
MAQ_API enum maq_status maq_trace_serve(const char *path, struct maq_serve_result **out, const struct maq_job *job,
                                        const struct maq_serve_options *options, const struct maq_requests *requests,
                                        struct maq_diag *diag);

/*
 * A job of post-training: one generation and the optimizer steps that it is for, the parts one behind another with the passes of training inside,
 * and until when each engine is busy.
 */
MAQ_API enum maq_status maq_trace_post_training(const char *path, const struct maq_post_training_result *result,
                                                struct maq_diag *diag);

/*
 * Any graph with times, a captured job's for instance: one process per class, one thread per stream, the host's work included
 * where the graph has it.
 */
MAQ_API enum maq_status maq_trace_graph(const char *path, const struct maq_timed_graph *timed, const double *finish_ns,
                                        struct maq_diag *diag);

#ifdef __cplusplus
}
#endif
#endif
