/* SPDX-License-Identifier: Apache-2.0 */
/*
 * values.c - numbers of a comparison as text. Those that are held against each other are written in one unit with as many decimals,
 * five digits for the largest, so that what stands in a table can be added up by eye; a row of which fewer than three digits would be seen
 * then, and a number that would be 0, have a unit of their own.
 */
#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/diff/diff_parts.h"
#include "report/words.h"

struct scale {
    double at, size; /* from `at` on in units of `size` */
    const char *name;
};

static const struct scale times[] = {{0, 1e-9, " ns"},  {1e-6, 1e-6, " us"}, {1e-3, 1e-3, " ms"},  {1, 1, " s"},
                                     {120, 60, " min"}, {7200, 3600, " h"},  {172800, 86400, " d"}};
static const struct scale sizes[] = {
    {0, 1, " B"}, {1024, 1024, " KiB"}, {1048576, 1048576, " MiB"}, {MAQ_GIB, MAQ_GIB, " GiB"}};
static const struct scale plain[] = {{0, 1, ""}};
static const struct scale shares[] = {{0, 0.01, " %"}};
static const struct scale points[] = {{0, 0.01, " points"}};
static const struct scale dollars[] = {{0, 1, " USD"}};

static const struct {
    const struct scale *scales;
    size_t n;
} units[MAQ_DIFF_UNIT_COUNT] = {
    [MAQ_DIFF_SECONDS] = {times, MAQ_COUNT(times)}, [MAQ_DIFF_BYTES] = {sizes, MAQ_COUNT(sizes)},
    [MAQ_DIFF_SHARE] = {shares, MAQ_COUNT(shares)}, [MAQ_DIFF_COUNT] = {plain, MAQ_COUNT(plain)},
    [MAQ_DIFF_PER_S] = {plain, MAQ_COUNT(plain)},   [MAQ_DIFF_USD] = {dollars, MAQ_COUNT(dollars)}};

static const struct scale *scale_of(enum maq_diff_unit unit, double most, bool is_signed)
{
    const struct scale *s = unit == MAQ_DIFF_SHARE && is_signed ? points : units[unit].scales;
    for (size_t i = 1; s != points && i < units[unit].n; i++)
        s = most >= units[unit].scales[i].at * (1 - 0.000005) ? &units[unit].scales[i] : s;
    return s;
}

/* For five digits of `most`; shares have two, whole numbers none. */
static int decimals_of(enum maq_diff_unit unit, double most)
{
    if (unit == MAQ_DIFF_SHARE)
        return 2;
    if (unit == MAQ_DIFF_COUNT && most == floor(most))
        return 0;
    return most < 9.99995 ? 4 : most < 99.9995 ? 3 : most < 999.995 ? 2 : most < 9999.95 ? 1 : 0;
}

double maq_diff_most_of_row(enum maq_diff_unit unit, double most, double row)
{
    const double size = scale_of(unit, most, false)->size;
    return row / size < 99.5 * pow(10, -decimals_of(unit, most / size)) ? row : most;
}

const char *maq_diff_value(char buf[48], double value, enum maq_diff_unit unit, double most, bool is_signed)
{
    char digits[40];
    const struct scale *s = scale_of(unit, most, is_signed);
    double x = fabs(value) / s->size;
    int decimals = decimals_of(unit, most / s->size);
    const char *sign = value < 0 ? "-" : is_signed && value > 0 ? "+" : "";
    if (!isfinite(value)) {
        maq__snprintf(buf, 48, "not finite");
        return buf;
    }
    if (value == 0) {
        maq__snprintf(buf, 48, "0%s", s->name);
        return buf;
    }
    if (x < 0.5 * pow(10, -decimals)) { /* which would be 0 */
        s = scale_of(unit, fabs(value), is_signed);
        maq__snprintf(buf, 48, "%s%.4g%s", sign, fabs(value) / s->size, s->name);
        return buf;
    }
    if (decimals == 0 && x < 1e15)
        maq__snprintf(buf, 48, "%s%s%s", sign, maq_words_integer(digits, llround(x)), s->name);
    else if (x < 1e15)
        maq__snprintf(buf, 48, "%s%.*f%s", sign, decimals, x, s->name);
    else
        maq__snprintf(buf, 48, "%s%.4g%s", sign, x, s->name);
    return buf;
}

const char *maq_diff_points(char buf[48], double share)
{
    double x = 100 * share;
    if (!isfinite(share))
        maq__snprintf(buf, 48, "not finite");
    else if (fabs(x) < 1e15)
        maq__snprintf(buf, 48, "%+.*f %%", fabs(x) >= 999.5 ? 0 : fabs(x) >= 9.995 ? 1 : 2, x);
    else
        maq__snprintf(buf, 48, "%+.4g %%", x);
    return buf;
}

const char *maq_diff_percent(char buf[48], double change)
{
    if (!(fabs(change) >= 10) || !isfinite(change))
        return maq_diff_points(buf, change);
    maq__snprintf(buf, 48, "x %.4g", 1 + change);
    return buf;
}
