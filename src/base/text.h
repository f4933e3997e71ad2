/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.h - characters: UTF-8, printing without a locale, and user text inside messages.
 *
 * A program that embeds the library may have called setlocale(); numbers in our reports must not grow a decimal comma
 * for it. Everything that prints or reads a number goes through the "C" locale here.
 */
#ifndef MAQ_BASE_TEXT_H
#define MAQ_BASE_TEXT_H

#include "maquette/diag.h"

#define MAQ_UTF8_BAD UINT32_MAX

/* Decodes the character at s[0]; returns its length in bytes (1-4). Malformed, overlong, surrogate: *cp = MAQ_UTF8_BAD
 * and length 1. n must be > 0. */
size_t maq_utf8_next(uint32_t *cp, const char *s, size_t n);
/* Writes cp as 1-4 bytes; returns how many. cp must be a Unicode scalar value. */
size_t maq_utf8_put(char out[4], uint32_t cp);

/* vsnprintf and strtod in the "C" locale whatever the program's locale is. */
int maq__vsnprintf(char *buf, size_t size, const char *fmt, va_list args) MAQ_PRINTF(3, 0);
int maq__snprintf(char *buf, size_t size, const char *fmt, ...) MAQ_PRINTF(3, 4);
double maq__strtod(const char *s, char **end);

/* User text for a message: at most about 60 bytes of it, cut between characters, "..." when cut. Returns buf. */
#define MAQ_SHOW_SIZE 72
const char *maq_str_show(char buf[MAQ_SHOW_SIZE], struct maq_str s);

/* Length in bytes of the JSON-like number at the start of s ('_' between digits allowed); 0 when there is none. */
size_t maq__number_prefix(struct maq_str s);
/* That number times ten to the `exp10`, correctly rounded; false when it does not fit a double. */
bool maq__number_scaled(double *out, struct maq_str s, int exp10);
/* The shortest decimal form that reads back as x (finite). Returns buf. */
const char *maq_format_double(char buf[32], double x);

#endif
