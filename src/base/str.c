/* SPDX-License-Identifier: Apache-2.0 */
/*
 * str.c - slices of text (comparison, trimming, splitting), edit distance with a limit, and growing buffers. See
 * str.h.
 */
#include "base/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/text.h"

#define DISTANCE_MAX 64 /* longer strings are no typing errors of each other */

struct maq_str maq_str_of(const char *cstr)
{
    return (struct maq_str){cstr, cstr ? strlen(cstr) : 0};
}

bool maq_str_eq(struct maq_str a, struct maq_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool maq_str_is(struct maq_str a, const char *cstr)
{
    return maq_str_eq(a, maq_str_of(cstr));
}

char maq_char_lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool maq_str_same(struct maq_str a, struct maq_str b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (maq_char_lower(a.ptr[i]) != maq_char_lower(b.ptr[i]))
            return false;
    return true;
}

bool maq_str_ieq(struct maq_str a, const char *cstr)
{
    return maq_str_same(a, maq_str_of(cstr));
}

bool maq_str_starts(struct maq_str s, const char *prefix)
{
    size_t n = strlen(prefix);
    return s.len >= n && (n == 0 || memcmp(s.ptr, prefix, n) == 0);
}

bool maq_str_has(struct maq_str s, const char *part)
{
    size_t n = strlen(part);
    for (size_t i = 0; i + n <= s.len; i++)
        if (maq_str_ieq((struct maq_str){s.ptr + i, n}, part))
            return true;
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

struct maq_str maq_str_trim(struct maq_str s)
{
    while (s.len && is_blank(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

struct maq_str maq_str_split(struct maq_str s, char sep, struct maq_str *head)
{
    const char *at = s.len ? memchr(s.ptr, sep, s.len) : NULL;
    if (!at) {
        *head = s;
        return (struct maq_str){NULL, 0};
    }
    *head = (struct maq_str){s.ptr, (size_t)(at - s.ptr)};
    return (struct maq_str){at + 1, s.len - head->len - 1};
}

bool maq_str_among(struct maq_str s, const char *words)
{
    struct maq_str rest = maq_str_of(words), word;
    while (rest.ptr && rest.len > 0) {
        rest = maq_str_split(rest, '|', &word);
        if (maq_str_eq(word, s))
            return true;
    }
    return false;
}

static uint32_t min_u32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* Optimal string alignment: insertions, deletions, substitutions and swaps of neighbours, each costing 1. */
uint32_t maq_str_distance(struct maq_str a, struct maq_str b, uint32_t limit)
{
    uint32_t rows[3][DISTANCE_MAX + 1];
    size_t gap = a.len > b.len ? a.len - b.len : b.len - a.len;
    if (gap >= limit || a.len > DISTANCE_MAX || b.len > DISTANCE_MAX)
        return maq_str_eq(a, b) ? 0 : limit;
    for (size_t j = 0; j <= b.len; j++)
        rows[0][j] = (uint32_t)j;
    for (size_t i = 1; i <= a.len; i++) {
        uint32_t *now = rows[i % 3], *up = rows[(i + 2) % 3], *up2 = rows[(i + 1) % 3];
        now[0] = (uint32_t)i;
        for (size_t j = 1; j <= b.len; j++) {
            bool same = a.ptr[i - 1] == b.ptr[j - 1];
            uint32_t best = min_u32(up[j] + 1, now[j - 1] + 1);
            best = min_u32(best, up[j - 1] + (same ? 0 : 1));
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1])
                best = min_u32(best, up2[j - 2] + 1);
            now[j] = best;
        }
    }
    return min_u32(rows[a.len % 3][b.len], limit);
}

void maq_buf_init(struct maq_buf *b, size_t max_bytes)
{
    *b = (struct maq_buf){.max = max_bytes};
}

void maq_buf_fini(struct maq_buf *b)
{
    free(b->ptr);
    *b = (struct maq_buf){.max = b->max};
}

char *maq_buf_take(struct maq_buf *b)
{
    if (!b->failed)
        return b->ptr;
    maq_buf_fini(b);
    return NULL;
}

/* Room for n more bytes and the NUL. */
static bool buf_reserve(struct maq_buf *b, size_t n)
{
    if (b->failed)
        return false;
    if (n > b->max || b->len > b->max - n || b->len + n == SIZE_MAX) {
        b->failed = true;
        return false;
    }
    size_t need = b->len + n + 1;
    if (need <= b->size)
        return true;
    size_t size = b->size < 64 ? 64 : b->size;
    while (size < need)
        size = size > SIZE_MAX / 2 ? need : size * 2;
    char *grown = maq__realloc(b->ptr, size);
    if (!grown) {
        b->failed = true;
        return false;
    }
    b->ptr = grown;
    b->size = size;
    return true;
}

void maq_buf_add(struct maq_buf *b, const void *bytes, size_t n)
{
    if (!buf_reserve(b, n))
        return;
    if (n)
        memcpy(b->ptr + b->len, bytes, n);
    b->len += n;
    b->ptr[b->len] = '\0';
}

void maq_buf_addc(struct maq_buf *b, char c)
{
    maq_buf_add(b, &c, 1);
}

void maq_buf_adds(struct maq_buf *b, const char *cstr)
{
    maq_buf_add(b, cstr, strlen(cstr));
}

void maq_buf_addf(struct maq_buf *b, const char *fmt, ...)
{
    va_list args, again;
    va_start(args, fmt);
    va_copy(again, args);
    int len = maq__vsnprintf(NULL, 0, fmt, args);
    if (len < 0)
        b->failed = true;
    if (len >= 0 && buf_reserve(b, (size_t)len)) {
        maq__vsnprintf(b->ptr + b->len, (size_t)len + 1, fmt, again);
        b->len += (size_t)len;
    }
    va_end(again);
    va_end(args);
}
