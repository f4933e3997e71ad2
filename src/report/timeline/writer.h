/* SPDX-License-Identifier: Apache-2.0 */
/*
 * writer.h - timelines for a trace viewer, with no knowledge of what they show.
 *
 * A trace has processes; a process has threads (rows of slices) and counters. A slice is a named interval on a thread;
 * slices of one thread nest like calls. A flow is an arrow from one slice to another. Times are integer nanoseconds >= 0.
 *
 *   maq_trace_open(&w, maq_trace_format_of(path), path, diag);
 *   uint32_t rank = maq_trace_process(w, 0, "rank 0", 0);
 *   uint32_t stream = maq_trace_thread(w, rank, 1, "compute", 0);
 *   maq_trace_slice(w, stream, &(struct maq_trace_slice){.start_ns = 0, .dur_ns = 500, .name = "gemm"});
 *   status = maq_trace_close(w, diag);
 *
 * The writer streams: what it keeps does not grow with the number of events. Calls in between do not report; the first
 * fault is kept, everything after it is dropped, and maq_trace_close() tells. One writer, one thread.
 * The same calls give the same bytes.
 */
#ifndef MAQ_REPORT_TIMELINE_WRITER_H
#define MAQ_REPORT_TIMELINE_WRITER_H

#include <stdio.h>

#include "base/str.h"
#include "maquette/diag.h"

enum maq_trace_format {
    MAQ_TRACE_PERFETTO, /* protobuf TrackEvent: any size; ui.perfetto.dev, trace_processor */
    MAQ_TRACE_CHROME,   /* JSON object format: small traces; chrome://tracing, Perfetto, speedscope */
};

/* By the name's end: .json and .json.gz are Chrome's, everything else is Perfetto's. */
enum maq_trace_format maq_trace_format_of(const char *path);

struct maq_trace_writer;

/* Creates or truncates a file; a name that ends in .gz is compressed. *out is owned: maq_trace_close(). */
enum maq_status maq_trace_open(struct maq_trace_writer **out, enum maq_trace_format format, const char *path,
                               struct maq_diag *diag);
/* Writes to an open stream, which is flushed but not closed. */
enum maq_status maq_trace_open_stream(struct maq_trace_writer **out, enum maq_trace_format format, FILE *stream,
                                      bool gzip, struct maq_diag *diag);
/* Appends to a buffer of the caller, up to its maximum. */
enum maq_status maq_trace_open_memory(struct maq_trace_writer **out, enum maq_trace_format format, struct maq_buf *buf,
                                      bool gzip, struct maq_diag *diag);

/*
 * Rows. The value returned is a handle for the calls below (UINT32_MAX after a fault). Rows with a smaller `order` are shown
 * higher; ids are what the viewer prints and must be unique: processes in the trace, threads in their process.
 */
uint32_t maq_trace_process(struct maq_trace_writer *w, uint32_t id, const char *name, int32_t order);
uint32_t maq_trace_thread(struct maq_trace_writer *w, uint32_t process, uint32_t id, const char *name, int32_t order);
/* unit: "bytes", "W", "tokens", ...; never NULL. */
uint32_t maq_trace_counter_track(struct maq_trace_writer *w, uint32_t process, const char *name, const char *unit);

enum maq_trace_arg_type { MAQ_TRACE_ARG_INT, MAQ_TRACE_ARG_DOUBLE, MAQ_TRACE_ARG_STR };

struct maq_trace_arg {
    const char *key;
    enum maq_trace_arg_type type;
    union {
        int64_t i;
        double d;
        const char *s;
    } u;
};
#define MAQ_TRACE_INT(key_, value) ((struct maq_trace_arg){(key_), MAQ_TRACE_ARG_INT, {.i = (value)}})
#define MAQ_TRACE_DOUBLE(key_, value) ((struct maq_trace_arg){(key_), MAQ_TRACE_ARG_DOUBLE, {.d = (value)}})
#define MAQ_TRACE_STR(key_, value) ((struct maq_trace_arg){(key_), MAQ_TRACE_ARG_STR, {.s = (value)}})

/*
 * name and category are best few and repeated (they are written once); what differs from slice to slice goes into args.
 * A flow id (> 0, free choice) stands once in the flows_out of the slice it starts at and once in the flows_in of the slice it
 * ends at; the latter must not end before the former starts. Both may be given in any order.
 */
struct maq_trace_slice {
    int64_t start_ns, dur_ns;
    const char *name;
    const char *category; /* NULL: none */
    const struct maq_trace_arg *args;
    const uint64_t *flows_out, *flows_in;
    uint32_t n_args, n_flows_out, n_flows_in;
};

/* Slices of one thread come in order of their start, the outer before the inner, and either nest or do not touch. */
void maq_trace_slice(struct maq_trace_writer *w, uint32_t thread, const struct maq_trace_slice *slice);

/* The counter has `value` from t_ns on. Values of one counter come in order of time. */
void maq_trace_counter(struct maq_trace_writer *w, uint32_t counter, int64_t t_ns, double value);

/* MAQ_OK, or the first fault so far: a long writer may stop early. */
enum maq_status maq_trace_status(const struct maq_trace_writer *w);

/* Ends the trace and frees the writer (also after a fault). MAQ_IO when not every byte could be written. w may be NULL. */
enum maq_status maq_trace_close(struct maq_trace_writer *w, struct maq_diag *diag);

#endif
