/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - UTF-8 decoding and encoding, printing and reading numbers in the "C" locale, and cutting user text for
 * messages. See text.h.
 */
#include "base/text.h"

#include <locale.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t maq_utf8_next(uint32_t *cp, const char *s, size_t n)
{
    static const uint32_t smallest[5] = {0, 0, 0x80, 0x800, 0x10000};
    const unsigned char *u = (const unsigned char *)s;
    uint32_t c = u[0];
    if (c < 0x80) {
        *cp = c;
        return 1;
    }
    size_t len = c >= 0xF0 && c < 0xF8 ? 4 : c >= 0xE0 ? 3 : c >= 0xC0 ? 2 : 0;
    *cp = MAQ_UTF8_BAD;
    if (!len || c >= 0xF8 || len > n)
        return 1;
    c &= 0x7Fu >> len;
    for (size_t i = 1; i < len; i++) {
        if ((u[i] & 0xC0) != 0x80)
            return 1;
        c = c << 6 | (u[i] & 0x3Fu);
    }
    if (c < smallest[len] || c > 0x10FFFF || (c >= 0xD800 && c <= 0xDFFF))
        return 1;
    *cp = c;
    return len;
}

size_t maq_utf8_put(char out[4], uint32_t cp)
{
    if (cp < 0x80) {
        out[0] = (char)cp;
        return 1;
    }
    size_t len = cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
    for (size_t i = len - 1; i > 0; i--) {
        out[i] = (char)(0x80u | (cp & 0x3Fu));
        cp >>= 6;
    }
    out[0] = (char)((0xF00u >> len & 0xFFu) | cp);
    return len;
}

static locale_t c_locale(void)
{
    static _Atomic(locale_t) cached;
    locale_t have = atomic_load(&cached);
    if (have)
        return have;
    locale_t fresh = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (fresh && !atomic_compare_exchange_strong(&cached, &have, fresh)) {
        freelocale(fresh);
        return have;
    }
    return fresh;
}

int maq__vsnprintf(char *buf, size_t size, const char *fmt, va_list args)
{
    locale_t c = c_locale();
    locale_t before = c ? uselocale(c) : (locale_t)0;
    int len = vsnprintf(buf, size, fmt, args);
    if (before)
        uselocale(before);
    return len;
}

int maq__snprintf(char *buf, size_t size, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    int len = maq__vsnprintf(buf, size, fmt, args);
    va_end(args);
    return len;
}

double maq__strtod(const char *s, char **end)
{
    locale_t c = c_locale();
    return c ? strtod_l(s, end, c) : strtod(s, end);
}

const char *maq_str_show(char buf[MAQ_SHOW_SIZE], struct maq_str s)
{
    const size_t most = 60;
    size_t len = 0;
    while (len < s.len) {
        uint32_t cp;
        size_t step = maq_utf8_next(&cp, s.ptr + len, s.len - len);
        if (len + step > most)
            break;
        len += step;
    }
    if (len)
        memcpy(buf, s.ptr, len);
    memcpy(buf + len, len < s.len ? "..." : "", len < s.len ? 4 : 1);
    return buf;
}
