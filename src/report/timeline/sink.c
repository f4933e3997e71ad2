/* SPDX-License-Identifier: Apache-2.0 */
/* sink.c - a block buffer in front of a file, a stream or memory, with optional gzip. See sink.h. */
#include "report/timeline/sink.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "base/alloc.h"
#include "base/check.h"

#define BLOCK_BYTES ((size_t)64 * 1024)

/* windowBits 15, plus 16 for a gzip instead of a zlib header (zlib.h, deflateInit2). */
#define GZIP_WINDOW_BITS (15 + 16)
#define GZIP_LEVEL 6
#define GZIP_MEM_LEVEL 8

void maq_trace_sink_fail(struct maq_trace_sink *sink, enum maq_status status)
{
    if (sink->status == MAQ_OK)
        sink->status = status;
}

enum maq_status maq_trace_sink_init(struct maq_trace_sink *sink, FILE *stream, bool owned, struct maq_buf *buf,
                                    bool gzip)
{
    *sink = (struct maq_trace_sink){.stream = stream, .owned = owned, .buf = buf};
    sink->block = maq__malloc(BLOCK_BYTES);
    if (gzip) {
        sink->packed = maq__malloc(BLOCK_BYTES);
        sink->z = maq__calloc(sizeof *sink->z);
    }
    if (sink->block == NULL || (gzip && (sink->packed == NULL || sink->z == NULL)))
        goto no_memory;
    if (gzip &&
        deflateInit2(sink->z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW_BITS, GZIP_MEM_LEVEL, Z_DEFAULT_STRATEGY) != Z_OK)
        goto no_memory;
    return MAQ_OK;

no_memory:
    free(sink->block);
    free(sink->packed);
    free(sink->z);
    *sink = (struct maq_trace_sink){.status = MAQ_NO_MEMORY};
    return MAQ_NO_MEMORY;
}

/* Bytes to their destination. */
static void emit(struct maq_trace_sink *sink, const void *bytes, size_t n)
{
    if (sink->status != MAQ_OK || n == 0)
        return;
    if (sink->stream == NULL) {
        maq_buf_add(sink->buf, bytes, n);
        if (sink->buf->failed)
            maq_trace_sink_fail(sink, MAQ_LIMIT);
    } else if (fwrite(bytes, 1, n, sink->stream) != n) {
        sink->error = errno;
        maq_trace_sink_fail(sink, MAQ_IO);
    }
}

/* The gathered block, compressed where that is wanted; `last` ends the compressed stream. */
static void pass_on(struct maq_trace_sink *sink, bool last)
{
    if (sink->z == NULL) {
        emit(sink, sink->block, sink->len);
    } else if (sink->status == MAQ_OK) {
        sink->z->next_in = sink->block;
        sink->z->avail_in = (uInt)sink->len;
        int got;
        do {
            sink->z->next_out = sink->packed;
            sink->z->avail_out = (uInt)BLOCK_BYTES;
            got = deflate(sink->z, last ? Z_FINISH : Z_NO_FLUSH);
            MAQ_ASSERT(got != Z_STREAM_ERROR);
            emit(sink, sink->packed, BLOCK_BYTES - sink->z->avail_out);
        } while (sink->z->avail_out == 0 || (last && got != Z_STREAM_END));
    }
    sink->len = 0;
}

void maq_trace_sink_write(struct maq_trace_sink *sink, const void *bytes, size_t n)
{
    const unsigned char *from = bytes;
    while (n > 0 && sink->status == MAQ_OK) {
        size_t part = BLOCK_BYTES - sink->len < n ? BLOCK_BYTES - sink->len : n;
        memcpy(sink->block + sink->len, from, part);
        sink->len += part;
        from += part;
        n -= part;
        if (sink->len == BLOCK_BYTES)
            pass_on(sink, false);
    }
}

void maq_trace_sink_puts(struct maq_trace_sink *sink, const char *cstr)
{
    maq_trace_sink_write(sink, cstr, strlen(cstr));
}

enum maq_status maq_trace_sink_fini(struct maq_trace_sink *sink)
{
    if (sink->block != NULL && sink->status == MAQ_OK)
        pass_on(sink, true);
    if (sink->stream != NULL) {
        errno = 0;
        int bad = fflush(sink->stream) != 0;
        if (bad && sink->error == 0)
            sink->error = errno;
        errno = 0;
        if (sink->owned && fclose(sink->stream) != 0) {
            bad = 1;
            if (sink->error == 0)
                sink->error = errno;
        }
        if (bad)
            maq_trace_sink_fail(sink, MAQ_IO);
    }
    if (sink->z != NULL)
        (void)deflateEnd(sink->z); /* Z_DATA_ERROR after a failure: nothing to do about it */
    free(sink->block);
    free(sink->packed);
    free(sink->z);
    sink->block = sink->packed = NULL;
    sink->z = NULL;
    sink->stream = NULL;
    return sink->status;
}
