/*
 * trace_proto.h - the protobuf wire format, as far as a writer needs it.
 *
 * A message is a row of fields; a field is a key (number << 3 | wire type), as varint, and a value: varint (type 0), 8 bytes
 * little-endian (type 1), or a length and that many bytes (type 2: strings, nested messages). A nested message is built in a buffer
 * of its own first, because its length comes before it. Reference: protobuf.dev, "Encoding".
 */
#ifndef MAQ_TRACE_TRACE_PROTO_H
#define MAQ_TRACE_TRACE_PROTO_H

#include <string.h>

#include "base/str.h"

enum { MAQ_PB_VARINT = 0, MAQ_PB_FIXED64 = 1, MAQ_PB_BYTES = 2 };

static inline void maq_pb_varint(struct maq_buf *b, uint64_t v)
{
    unsigned char bytes[10];
    size_t n = 0;
    while (v >= 0x80) {
        bytes[n++] = (unsigned char)(v | 0x80);
        v >>= 7;
    }
    bytes[n++] = (unsigned char)v;
    maq_buf_add(b, bytes, n);
}

static inline void maq_pb_uint(struct maq_buf *b, uint32_t field, uint64_t v)
{
    maq_pb_varint(b, (uint64_t)field << 3 | MAQ_PB_VARINT);
    maq_pb_varint(b, v);
}

/* int32, int64 and enums: negative numbers take ten bytes. */
static inline void maq_pb_int(struct maq_buf *b, uint32_t field, int64_t v)
{
    maq_pb_uint(b, field, (uint64_t)v);
}

static inline void maq_pb_fixed64(struct maq_buf *b, uint32_t field, uint64_t v)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)(v >> (8 * i));
    maq_pb_varint(b, (uint64_t)field << 3 | MAQ_PB_FIXED64);
    maq_buf_add(b, bytes, sizeof bytes);
}

static inline void maq_pb_double(struct maq_buf *b, uint32_t field, double v)
{
    uint64_t bits;
    memcpy(&bits, &v, sizeof bits);
    maq_pb_fixed64(b, field, bits);
}

static inline void maq_pb_bytes(struct maq_buf *b, uint32_t field, const void *bytes, size_t n)
{
    maq_pb_varint(b, (uint64_t)field << 3 | MAQ_PB_BYTES);
    maq_pb_varint(b, n);
    maq_buf_add(b, bytes, n);
}

/* A nested message that was built in `inner`. */
static inline void maq_pb_message(struct maq_buf *b, uint32_t field, const struct maq_buf *inner)
{
    maq_pb_bytes(b, field, inner->ptr, inner->len);
}

#endif
