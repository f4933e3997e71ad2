/* SPDX-License-Identifier: Apache-2.0 */
/*
 * backend.h - what a trace format is to the writer: one table of functions.
 *
 * The writer has checked arguments, order and nesting; a backend only encodes. It writes to the sink, which keeps the first
 * error, and owns nothing but its own state. Strings may hold any bytes; what is not UTF-8 is replaced.
 */
#ifndef MAQ_REPORT_TIMELINE_BACKEND_H
#define MAQ_REPORT_TIMELINE_BACKEND_H

#include "report/timeline/sink.h"
#include "report/timeline/writer.h"

struct maq_trace_row {
    uint32_t process; /* handle of the process it belongs to */
    uint32_t id;      /* the caller's number for it */
    uint32_t index;   /* handle of the row itself, counted per kind */
    int32_t order;
    const char *name, *unit; /* as long as the writer; unit: counters only */
    uint64_t track;          /* for the backend: its own number for the row */
};

struct maq_trace_backend {
    size_t state_size;
    void (*begin)(void *state, struct maq_trace_sink *sink);
    void (*process)(void *state, struct maq_trace_row *row);
    void (*thread)(void *state, struct maq_trace_row *row, const struct maq_trace_row *process);
    void (*counter_track)(void *state, struct maq_trace_row *row, const struct maq_trace_row *process);
    /* A slice, when it is given; and its end, once no later slice can lie inside it (NULL: not wanted). */
    void (*slice)(void *state, const struct maq_trace_row *thread, const struct maq_trace_row *process,
                  const struct maq_trace_slice *slice);
    void (*slice_end)(void *state, const struct maq_trace_row *thread, int64_t end_ns, const uint64_t *flows_in,
                      uint32_t n_flows_in);
    void (*counter)(void *state, const struct maq_trace_row *counter, const struct maq_trace_row *process, int64_t t_ns,
                    double value);
    void (*end)(void *state);  /* the last bytes of the trace */
    void (*fini)(void *state); /* frees; always called */
};

extern const struct maq_trace_backend maq__trace_perfetto, maq__trace_chrome;

#endif
