/* SPDX-License-Identifier: Apache-2.0 */
/*
 * json_stream.h - JSON of any length as a stream of values: yajl's callbacks over a file, plain or gzip, or over bytes.
 *
 * It does what yajl leaves to its caller. A text is held until its end, however long it is, and yajl does not look
 * whether there was memory for it: here a text that does not end within MAQ_JSON_LONGEST_TEXT bytes is a fault. And a
 * fault has a place, the number of bytes before it.
 *
 * Nothing is said to the user: what a fault means, and its code, is the caller's to say.
 */
#ifndef MAQ_BASE_JSON_STREAM_H
#define MAQ_BASE_JSON_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <yajl/yajl_parse.h>

#define MAQ_JSON_LONGEST_TEXT (UINT32_C(64) << 20)

enum maq_json_end {
    MAQ_JSON_WHOLE,      /* one value, to its end */
    MAQ_JSON_STOPPED,    /* a callback returned 0 */
    MAQ_JSON_FAULTY,     /* no JSON from byte `at` on: `why` */
    MAQ_JSON_CUT_OFF,    /* the value has no end */
    MAQ_JSON_ENDLESS,    /* a text that begins before byte `at` does not end */
    MAQ_JSON_NOT_OPENED, /* there is no such file, or it may not be read */
    MAQ_JSON_UNREADABLE, /* reading failed, or the compression is damaged */
    MAQ_JSON_NO_MEMORY,
};

struct maq_json_stream {
    enum maq_json_end end;
    uint64_t at;   /* bytes before the fault, as they are when they are not compressed */
    char why[160]; /* of MAQ_JSON_FAULTY: as it may be shown; otherwise "" */
};

/* Calls back for every value with `user`; numbers come as text where yajl_number is set. Texts are not checked for UTF-8. */
enum maq_json_end maq_json_stream_file(struct maq_json_stream *out, const char *path, const yajl_callbacks *callbacks,
                                       void *user);
enum maq_json_end maq_json_stream_bytes(struct maq_json_stream *out, const void *bytes, size_t n,
                                        const yajl_callbacks *callbacks, void *user);

#endif
