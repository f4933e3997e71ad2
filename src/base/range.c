/* SPDX-License-Identifier: Apache-2.0 */
/* range.c - "256", "256..4096:x2", "0.5..2:+0.5": the numbers that a range stands for. */
#include <string.h>

#include "base/str.h"
#include "maquette/range.h"

/* Of a step that is added in binary: the last number is still within a range that is a billionth longer. */
#define SLACK 1e-9

uint32_t maq_range_read(double *out, uint32_t most, const char *string)
{
    struct maq_str text = maq_str_of(string);
    double first, last, step;
    const char *dots = memmem(text.ptr, text.len, "..", 2);
    if (!dots)
        return most > 0 && maq_str_to_double(out, text) ? 1 : 0;
    struct maq_str rest = {dots + 2, text.len - (size_t)(dots - text.ptr) - 2}, end;
    rest = maq_str_split(rest, ':', &end);
    bool times = rest.len > 1 && rest.ptr[0] == 'x', plus = rest.len > 1 && rest.ptr[0] == '+';
    if (!maq_str_to_double(&first, (struct maq_str){text.ptr, (size_t)(dots - text.ptr)}) ||
        !maq_str_to_double(&last, end) || !(times || plus) ||
        !maq_str_to_double(&step, (struct maq_str){rest.ptr + 1, rest.len - 1}) || !(first > 0) || !(last >= first) ||
        !(times ? step > 1 : step > 0))
        return 0;
    uint32_t n = 0;
    for (double at = first; at <= last * (1 + SLACK); at = times ? at * step : first + n * step) {
        if (n == most)
            return 0;
        out[n++] = at;
    }
    return n;
}
