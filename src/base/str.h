/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.h - slices and growing text.
 *
 * A struct maq_buf grows up to a mandatory maximum; after the first failure (memory or maximum) it ignores
 * further appends and `failed` stays set, so that a writer checks once, at the end.
 */
#ifndef MAQ_BASE_STR_H
#define MAQ_BASE_STR_H

#include "maquette/diag.h"

#define MAQ_STR(literal) ((struct maq_str){(literal), sizeof(literal) - 1})

struct maq_str maq_str_of(const char *cstr); /* NULL gives the empty slice */
bool maq_str_eq(struct maq_str a, struct maq_str b);
bool maq_str_is(struct maq_str a, const char *cstr);
char maq_char_lower(char c);                           /* of ASCII's letters, whatever the locale */
bool maq_str_same(struct maq_str a, struct maq_str b); /* ASCII case-insensitive */
bool maq_str_ieq(struct maq_str a, const char *cstr);  /* the same */
bool maq_str_starts(struct maq_str s, const char *prefix);
bool maq_str_has(struct maq_str s, const char *part); /* anywhere in it; ASCII case-insensitive */
struct maq_str maq_str_trim(struct maq_str s);

/* Splits at the first `sep`: *head gets what is before it, the rest (after it) is returned; without `sep` the whole
 * goes to *head and the rest is empty with ptr = NULL. */
struct maq_str maq_str_split(struct maq_str s, char sep, struct maq_str *head);
/* Whether it is one of the words "a|b|c", letters as they are. */
bool maq_str_among(struct maq_str s, const char *words);

/* Damerau-Levenshtein distance of two short strings, capped at `limit` (returned when larger). For "did you mean". */
uint32_t maq_str_distance(struct maq_str a, struct maq_str b, uint32_t limit);

/* Whole-string number parsers, locale-independent: false when s is not exactly such a number (or does not fit).
 * The float parser takes what JSON takes, and a leading '+', digit separators '_' and nothing else. */
bool maq_str_to_i64(int64_t *out, struct maq_str s);
/* Up to 16 hexadecimal digits and nothing else: no sign, no 0x. */
bool maq_str_hex_to_u64(uint64_t *out, struct maq_str s);
bool maq_str_to_double(double *out, struct maq_str s);

struct maq_buf {
    char *ptr; /* NUL-terminated when not NULL */
    size_t len, size, max;
    bool failed;
};

void maq_buf_init(struct maq_buf *b, size_t max_bytes);
void maq_buf_fini(struct maq_buf *b);
/* The text, owned by the caller from now on (free()); NULL when an append failed, and the buffer is freed. */
char *maq_buf_take(struct maq_buf *b);
void maq_buf_add(struct maq_buf *b, const void *bytes, size_t n);
void maq_buf_addc(struct maq_buf *b, char c);
void maq_buf_adds(struct maq_buf *b, const char *cstr);
void maq_buf_addf(struct maq_buf *b, const char *fmt, ...) MAQ_PRINTF(2, 3);

#endif
