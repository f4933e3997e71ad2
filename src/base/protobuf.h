/* SPDX-License-Identifier: Apache-2.0 */
/*
 * protobuf.h - the protobuf wire format, as far as writers and readers of traces need it.
 *
 * A message is a row of fields; a field is a key (number << 3 | wire type), as varint, and a value: varint (type 0), 8 bytes
 * little-endian (type 1), or a length and that many bytes (type 2: strings, nested messages). A nested message is built in a buffer
 * of its own first, because its length comes before it. Reference: protobuf.dev, "Encoding".
 */
#ifndef MAQ_BASE_PROTOBUF_H
#define MAQ_BASE_PROTOBUF_H

#include <string.h>

#include "base/str.h"

enum { MAQ_PB_VARINT = 0, MAQ_PB_FIXED64 = 1, MAQ_PB_BYTES = 2, MAQ_PB_FIXED32 = 5 };

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

/* --- reading: a slice is used up from its front ------------------------------------------------------------------------- */

static inline bool maq_pb_get_varint(uint64_t *out, struct maq_str *s)
{
    uint64_t v = 0;
    for (unsigned shift = 0; shift < 64 && s->len > 0; shift += 7) {
        unsigned char c = (unsigned char)*s->ptr++;
        s->len--;
        v |= (uint64_t)(c & 0x7f) << shift;
        if (c < 0x80) {
            *out = v;
            return true;
        }
    }
    return false;
}

/* A field: its value is `v` (varint, or the bits of a fixed one) or `bytes`. */
struct maq_pb_field {
    uint32_t number, type;
    uint64_t v;
    struct maq_str bytes;
};

/* The next field; false at the end, and with s->ptr = NULL when what is left is no field. */
static inline bool maq_pb_get(struct maq_pb_field *f, struct maq_str *s)
{
    uint64_t key, n;
    *f = (struct maq_pb_field){0};
    if (s->len == 0)
        return false;
    bool ok = maq_pb_get_varint(&key, s) && key >> 3 > 0 && key >> 3 < UINT32_MAX;
    f->number = ok ? (uint32_t)(key >> 3) : 0;
    f->type = ok ? (uint32_t)(key & 7) : 7;
    if (f->type == MAQ_PB_VARINT)
        ok = maq_pb_get_varint(&f->v, s);
    else if (f->type == MAQ_PB_BYTES) {
        ok = maq_pb_get_varint(&n, s) && n <= s->len;
        f->bytes = (struct maq_str){s->ptr, ok ? (size_t)n : 0};
        s->ptr += f->bytes.len;
        s->len -= f->bytes.len;
    } else if (f->type == MAQ_PB_FIXED64 || f->type == MAQ_PB_FIXED32) {
        n = f->type == MAQ_PB_FIXED64 ? 8 : 4;
        ok = s->len >= n;
        for (unsigned i = 0; ok && i < n; i++)
            f->v |= (uint64_t)(unsigned char)s->ptr[i] << (8 * i);
        s->ptr += ok ? n : 0;
        s->len -= ok ? n : 0;
    } else
        ok = false;
    if (!ok)
        s->ptr = NULL;
    return ok;
}

/* A nested message that was built in `inner`. */
static inline void maq_pb_message(struct maq_buf *b, uint32_t field, const struct maq_buf *inner)
{
    maq_pb_bytes(b, field, inner->ptr, inner->len);
}

#endif
