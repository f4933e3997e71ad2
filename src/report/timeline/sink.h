/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sink.h - where the bytes of a trace go: a file, a stream or memory, compressed or not.
 *
 * Bytes are gathered in a block and handed on when it is full. The first failure is kept and later bytes are dropped, so that an
 * encoder need not look at every write. gzip output carries no time and no name: equal input, equal bytes.
 */
#ifndef MAQ_REPORT_TIMELINE_SINK_H
#define MAQ_REPORT_TIMELINE_SINK_H

#include <stdio.h>

#include "base/str.h"
#include "maquette/diag.h"

struct z_stream_s;

struct maq_trace_sink {
    FILE *stream;        /* NULL: memory */
    bool owned;          /* the sink closes the stream */
    struct maq_buf *buf; /* memory */
    struct z_stream_s *z;
    unsigned char *block, *packed; /* packed: compressed bytes on their way out */
    size_t len;
    enum maq_status status;
    int error; /* errno of the first failure, 0 = none known */
};

/* Exactly one of stream and buf. */
enum maq_status maq_trace_sink_init(struct maq_trace_sink *sink, FILE *stream, bool owned, struct maq_buf *buf,
                                    bool gzip);
void maq_trace_sink_write(struct maq_trace_sink *sink, const void *bytes, size_t n);
void maq_trace_sink_puts(struct maq_trace_sink *sink, const char *cstr);
void maq_trace_sink_fail(struct maq_trace_sink *sink, enum maq_status status);
/* Writes what is pending, ends the compressed stream, flushes or closes; returns the first failure. Frees the sink. */
enum maq_status maq_trace_sink_fini(struct maq_trace_sink *sink);

#endif
