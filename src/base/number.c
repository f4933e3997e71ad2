/* SPDX-License-Identifier: Apache-2.0 */
/*
 * number.c - numbers as text, exactly and in no locale.
 *
 * Grammar: [+-] (0 | digits without a leading zero) [. digits] [e [+-] digits], '_' between two digits. That is JSON's
 * number with two liberties; hexadecimal, octal, "inf", "nan", ".5" and "5." are not numbers here, so that a document
 * means the same to every reader.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"

#define NUMBER_MAX ((size_t)1024) /* longer than any double needs to be rounded correctly (767 digits) */

static bool is_digit(struct maq_str s, size_t i)
{
    return i < s.len && s.ptr[i] >= '0' && s.ptr[i] <= '9';
}

/* End of the run of digits and inner underscores at i; i itself when there is no digit. */
static size_t skip_digits(struct maq_str s, size_t i)
{
    if (!is_digit(s, i))
        return i;
    while (is_digit(s, i) || (i < s.len && s.ptr[i] == '_' && is_digit(s, i + 1)))
        i++;
    return i;
}

static size_t integer_prefix(struct maq_str s)
{
    size_t i = s.len && (s.ptr[0] == '-' || s.ptr[0] == '+') ? 1 : 0;
    size_t end = skip_digits(s, i);
    if (end == i || (end > i + 1 && s.ptr[i] == '0'))
        return 0;
    return end;
}

size_t maq__number_prefix(struct maq_str s)
{
    size_t i = integer_prefix(s);
    if (!i)
        return 0;
    if (i < s.len && s.ptr[i] == '.' && is_digit(s, i + 1))
        i = skip_digits(s, i + 1);
    if (i < s.len && (s.ptr[i] == 'e' || s.ptr[i] == 'E')) {
        size_t j = i + 1;
        if (j < s.len && (s.ptr[j] == '+' || s.ptr[j] == '-'))
            j++;
        if (is_digit(s, j)) /* otherwise the E belongs to what follows: "5 EFLOP/s" */
            i = skip_digits(s, j);
    }
    return i;
}

bool maq_str_to_i64(int64_t *out, struct maq_str s)
{
    if (!s.len || integer_prefix(s) != s.len)
        return false;
    bool negative = s.ptr[0] == '-';
    int64_t value = 0; /* counted downwards: the negative range is the larger one */
    for (size_t i = 0; i < s.len; i++) {
        if (!is_digit(s, i))
            continue;
        if (__builtin_mul_overflow(value, (int64_t)10, &value) ||
            __builtin_sub_overflow(value, (int64_t)(s.ptr[i] - '0'), &value))
            return false;
    }
    if (!negative && value == INT64_MIN)
        return false;
    *out = negative ? value : -value;
    return true;
}

bool maq_str_hex_to_u64(uint64_t *out, struct maq_str s)
{
    static const char digits[] = "0123456789abcdef";
    uint64_t value = 0;
    for (size_t i = 0; i < s.len; i++) {
        const char *at = s.ptr[i] ? strchr(digits, s.ptr[i] >= 'A' ? s.ptr[i] | 0x20 : s.ptr[i]) : NULL;
        if (!at)
            return false;
        value = value * 16 + (uint64_t)(at - digits);
    }
    *out = value;
    return s.len > 0 && s.len <= 16;
}

bool maq__number_scaled(double *out, struct maq_str s, int exp10)
{
    char buf[NUMBER_MAX + 32];
    size_t n = 0;
    int64_t exponent = 0;
    bool negative_exponent = false, in_exponent = false, nonzero = false;
    if (!s.len || s.len > NUMBER_MAX || maq__number_prefix(s) != s.len)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '_' || (in_exponent && c == '+'))
            continue;
        if (c == 'e' || c == 'E') {
            in_exponent = true;
        } else if (in_exponent && c == '-') {
            negative_exponent = true;
        } else if (in_exponent) {
            exponent = exponent < 1000000 ? exponent * 10 + (c - '0') : exponent;
        } else {
            nonzero |= c >= '1' && c <= '9';
            buf[n++] = c;
        }
    }
    exponent = (negative_exponent ? -exponent : exponent) + exp10;
    maq__snprintf(buf + n, sizeof(buf) - n, "e%d", (int)exponent);
    double value = maq__strtod(buf, NULL);
    if (!isfinite(value) || (nonzero && fpclassify(value) == FP_ZERO))
        return false;
    *out = value;
    return true;
}

bool maq_str_to_double(double *out, struct maq_str s)
{
    return maq__number_scaled(out, s, 0);
}

const char *maq_format_double(char buf[32], double x)
{
    for (int digits = 1; digits <= 17; digits++) {
        maq__snprintf(buf, 32, "%.*g", digits, x);
        if (!(maq__strtod(buf, NULL) < x || maq__strtod(buf, NULL) > x))
            break;
    }
    return buf;
}
