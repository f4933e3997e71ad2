/* SPDX-License-Identifier: Apache-2.0 */
/*
 * units.c - quantities with their unit: see units.h.
 *
 * One table says what every unit is worth: mul * 10^exp10 base units. The power of ten is added to the exponent of the
 * number before it is read, so that "3.35 TB/s" is the double nearest to 3.35e12 and not 3.35 (already rounded) times
 * 1e12. Powers of two and the division of bits by eight are exact anyway.
 */
#include "base/units.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"

struct unit {
    enum maq_dim dim;
    const char *name;
    int exp10;
    double mul;
};

#define KI 1024.0
#define BIT 0.125

/* The first spelling of a value is the one maq_quantity_format() may choose. */
static const struct unit units[] = {
    {MAQ_DIM_BYTES, "B", 0, 1},
    {MAQ_DIM_BYTES, "KB", 3, 1},
    {MAQ_DIM_BYTES, "kB", 3, 1},
    {MAQ_DIM_BYTES, "MB", 6, 1},
    {MAQ_DIM_BYTES, "GB", 9, 1},
    {MAQ_DIM_BYTES, "TB", 12, 1},
    {MAQ_DIM_BYTES, "PB", 15, 1},
    {MAQ_DIM_BYTES, "KiB", 0, KI},
    {MAQ_DIM_BYTES, "MiB", 0, KI *KI},
    {MAQ_DIM_BYTES, "GiB", 0, KI *KI *KI},
    {MAQ_DIM_BYTES, "TiB", 0, KI *KI *KI *KI},
    {MAQ_DIM_BYTES, "PiB", 0, KI *KI *KI *KI *KI},

    {MAQ_DIM_RATE, "B/s", 0, 1},
    {MAQ_DIM_RATE, "KB/s", 3, 1},
    {MAQ_DIM_RATE, "kB/s", 3, 1},
    {MAQ_DIM_RATE, "MB/s", 6, 1},
    {MAQ_DIM_RATE, "GB/s", 9, 1},
    {MAQ_DIM_RATE, "TB/s", 12, 1},
    {MAQ_DIM_RATE, "PB/s", 15, 1},
    {MAQ_DIM_RATE, "KiB/s", 0, KI},
    {MAQ_DIM_RATE, "MiB/s", 0, KI *KI},
    {MAQ_DIM_RATE, "GiB/s", 0, KI *KI *KI},
    {MAQ_DIM_RATE, "TiB/s", 0, KI *KI *KI *KI},
    {MAQ_DIM_RATE, "PiB/s", 0, KI *KI *KI *KI *KI},
    {MAQ_DIM_RATE, "b/s", 0, BIT},
    {MAQ_DIM_RATE, "Kb/s", 3, BIT},
    {MAQ_DIM_RATE, "kb/s", 3, BIT},
    {MAQ_DIM_RATE, "Mb/s", 6, BIT},
    {MAQ_DIM_RATE, "Gb/s", 9, BIT},
    {MAQ_DIM_RATE, "Tb/s", 12, BIT},
    {MAQ_DIM_RATE, "bps", 0, BIT},
    {MAQ_DIM_RATE, "Kbps", 3, BIT},
    {MAQ_DIM_RATE, "kbps", 3, BIT},
    {MAQ_DIM_RATE, "Mbps", 6, BIT},
    {MAQ_DIM_RATE, "Gbps", 9, BIT},
    {MAQ_DIM_RATE, "Tbps", 12, BIT},

    {MAQ_DIM_TIME, "s", 0, 1},
    {MAQ_DIM_TIME, "ms", -3, 1},
    {MAQ_DIM_TIME, "us", -6, 1},
    {MAQ_DIM_TIME, "\xC2\xB5s", -6, 1}, /* U+00B5 micro sign */
    {MAQ_DIM_TIME, "\xCE\xBCs", -6, 1}, /* U+03BC Greek mu */
    {MAQ_DIM_TIME, "ns", -9, 1},
    {MAQ_DIM_TIME, "min", 0, 60},
    {MAQ_DIM_TIME, "h", 0, 3600},
    {MAQ_DIM_TIME, "d", 0, 86400},

    {MAQ_DIM_FLOPS, "FLOP/s", 0, 1},
    {MAQ_DIM_FLOPS, "KFLOP/s", 3, 1},
    {MAQ_DIM_FLOPS, "MFLOP/s", 6, 1},
    {MAQ_DIM_FLOPS, "GFLOP/s", 9, 1},
    {MAQ_DIM_FLOPS, "TFLOP/s", 12, 1},
    {MAQ_DIM_FLOPS, "PFLOP/s", 15, 1},
    {MAQ_DIM_FLOPS, "EFLOP/s", 18, 1},
    {MAQ_DIM_FLOPS, "FLOPS", 0, 1},
    {MAQ_DIM_FLOPS, "KFLOPS", 3, 1},
    {MAQ_DIM_FLOPS, "MFLOPS", 6, 1},
    {MAQ_DIM_FLOPS, "GFLOPS", 9, 1},
    {MAQ_DIM_FLOPS, "TFLOPS", 12, 1},
    {MAQ_DIM_FLOPS, "PFLOPS", 15, 1},
    {MAQ_DIM_FLOPS, "EFLOPS", 18, 1},

    {MAQ_DIM_FREQ, "Hz", 0, 1},
    {MAQ_DIM_FREQ, "kHz", 3, 1},
    {MAQ_DIM_FREQ, "MHz", 6, 1},
    {MAQ_DIM_FREQ, "GHz", 9, 1},

    {MAQ_DIM_POWER, "W", 0, 1},
    {MAQ_DIM_POWER, "kW", 3, 1},
    {MAQ_DIM_POWER, "MW", 6, 1},

    {MAQ_DIM_COUNT, "", 0, 1},
    {MAQ_DIM_COUNT, "K", 3, 1},
    {MAQ_DIM_COUNT, "k", 3, 1},
    {MAQ_DIM_COUNT, "M", 6, 1},
    {MAQ_DIM_COUNT, "B", 9, 1},
    {MAQ_DIM_COUNT, "T", 12, 1},

    {MAQ_DIM_MONEY, "USD/h", 0, 1},
};

static const struct {
    const char *name, *units;
} dims[MAQ_DIM_TOTAL] = {
    [MAQ_DIM_NONE] = {"a plain number", "no unit"},
    [MAQ_DIM_BYTES] = {"bytes", "B, KB, MB, GB, TB, PB, KiB, MiB, GiB, TiB, PiB"},
    [MAQ_DIM_RATE] = {"a data rate", "bytes: B/s, KB/s, MB/s, GB/s, TB/s, GiB/s; bits: Mb/s, Gb/s, Tb/s"},
    [MAQ_DIM_TIME] = {"a time", "ns, us, ms, s, min, h, d"},
    [MAQ_DIM_FLOPS] = {"an arithmetic rate", "GFLOP/s, TFLOP/s, PFLOP/s, EFLOP/s"},
    [MAQ_DIM_FREQ] = {"a frequency", "Hz, kHz, MHz, GHz"},
    [MAQ_DIM_POWER] = {"a power", "W, kW, MW"},
    [MAQ_DIM_COUNT] = {"a count", "none, or K, M, B, T for thousand, million, billion, trillion"},
    [MAQ_DIM_MONEY] = {"a price", "USD/h"},
};

const char *maq_dim_name(enum maq_dim dim)
{
    return dims[dim].name;
}

const char *maq_dim_units(enum maq_dim dim)
{
    return dims[dim].units;
}

static const struct unit *find_unit(enum maq_dim dim, struct maq_str name)
{
    for (size_t i = 0; i < MAQ_COUNT(units); i++)
        if (units[i].dim == dim && maq_str_is(name, units[i].name))
            return &units[i];
    return NULL;
}

/* Why a unit is not one of `dim`, in a way that helps the person who wrote it. */
static const char *wrong_unit(enum maq_dim dim, struct maq_str name)
{
    static const char *const bits[] = {"b",    "Kb",   "kb",   "Mb",  "Gb",   "Tb",  "Kbit",
                                       "Mbit", "Gbit", "Tbit", "bit", "bits", "Gib", "Mib"};
    if (name.len == 0)
        return "no unit";
    if (dim == MAQ_DIM_NONE)
        return "a unit where a plain number is expected";
    if (dim == MAQ_DIM_BYTES)
        for (size_t i = 0; i < MAQ_COUNT(bits); i++)
            if (maq_str_is(name, bits[i]))
                return "a unit of bits (b) where bytes (B) are expected";
    if (dim == MAQ_DIM_RATE && find_unit(MAQ_DIM_BYTES, name))
        return "a size where a rate (per second) is expected";
    for (int other = MAQ_DIM_BYTES; other < MAQ_DIM_TOTAL; other++)
        if (other != MAQ_DIM_COUNT && find_unit((enum maq_dim)other, name))
            return "a unit of another kind";
    for (size_t i = 0; i < MAQ_COUNT(units); i++)
        if (units[i].dim == dim && maq_str_ieq(name, units[i].name))
            return "a unit in the wrong case (capitals matter)";
    return "unknown unit";
}

bool maq_quantity_parse(double *out, struct maq_str text, enum maq_dim dim, const char **why)
{
    static const struct unit plain = {MAQ_DIM_NONE, "", 0, 1};
    text = maq_str_trim(text);
    size_t digits = maq__number_prefix(text);
    if (!digits) {
        *why = text.len ? "no number" : "no value";
        return false;
    }
    struct maq_str number = {text.ptr, digits};
    struct maq_str name = maq_str_trim((struct maq_str){text.ptr + digits, text.len - digits});
    const struct unit *unit = dim == MAQ_DIM_NONE && !name.len ? &plain : find_unit(dim, name);
    if (!unit) {
        bool cut = name.len && strchr("._0123456789,", name.ptr[0]);
        *why = cut ? "a malformed number" : wrong_unit(dim, name);
        return false;
    }
    double value;
    if (!maq__number_scaled(&value, number, unit->exp10) || !isfinite(value * unit->mul)) {
        *why = "a number too large or too small to hold";
        return false;
    }
    if (dim != MAQ_DIM_NONE && value < 0) {
        *why = "a negative number";
        return false;
    }
    *out = value * unit->mul;
    return true;
}

/*
 * Every unit of the dimension is tried, and for each the fewest digits that read back exactly; the shortest text wins,
 * the earlier unit on a tie.
 */
const char *maq_quantity_format(char buf[64], double value, enum maq_dim dim)
{
    char plain[32];
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < MAQ_COUNT(units); i++) {
        const struct unit *u = &units[i];
        double scaled = value / u->mul;
        if (u->dim != dim || (i && units[i - 1].dim == dim && units[i - 1].exp10 == u->exp10 &&
                              !(units[i - 1].mul < u->mul || units[i - 1].mul > u->mul)))
            continue; /* another dimension, or another spelling of the unit before */
        for (int digits = 1; digits <= 17; digits++) {
            char text[64];
            const char *why;
            double back;
            double shifted = u->exp10 >= 0 ? scaled / pow(10, u->exp10) : scaled * pow(10, -u->exp10);
            maq__snprintf(text, sizeof(text), "%.*g%s%s", digits, shifted, *u->name ? " " : "", u->name);
            if (!maq_quantity_parse(&back, maq_str_of(text), dim, &why) || back < value || back > value)
                continue;
            bool long_winded = shifted < 1 || (shifted >= 1000 && dim != MAQ_DIM_COUNT);
            size_t cost = strlen(text) - strlen(u->name) + (strchr(text, 'e') ? 8 : 0) + (long_winded ? 4 : 0);
            if (cost < best) {
                best = cost;
                memcpy(buf, text, sizeof(text));
            }
            if (!strchr(text, 'e'))
                break; /* "8e+01" is exact too, but "80" comes with the next digit */
        }
    }
    if (best == SIZE_MAX)
        maq__snprintf(buf, 64, "%s", maq_format_double(plain, value));
    return buf;
}

/* --- human forms ------------------------------------------------------------------------------------------ */

struct scale {
    double at; /* one of this unit in base units */
    const char *name;
};

/* Three significant digits, without an exponent. */
static void put_three(char buf[32], double x, const char *unit)
{
    int decimals = x < 9.995 ? 2 : x < 99.95 ? 1 : 0;
    maq__snprintf(buf, 32, x < 1e9 ? "%.*f %s" : "%.*e %s", x < 1e9 ? decimals : 2, x, unit);
}

/*
 * The largest unit in which x is at least 1 after rounding; `scales` ascends. Each unit ends where its rounded form
 * would reach the next one: 999.7 us is "1.00 ms", not "1000 us".
 */
static const char *put_scaled(char buf[32], double x, const struct scale *scales, size_t n)
{
    char digits[32];
    const char *sign = x < 0 ? "-" : "";
    double size = fabs(x);
    if (!isfinite(x)) {
        maq__snprintf(buf, 32, "%s", isnan(x) ? "unknown" : x < 0 ? "-infinite" : "infinite");
        return buf;
    }
    size_t i = 0;
    while (i + 1 < n && size >= scales[i + 1].at * (1 - 0.0005))
        i++;
    put_three(digits, size / scales[i].at, scales[i].name);
    maq__snprintf(buf, 32, "%s%s", sign, digits);
    return buf;
}

const char *maq_format_bytes(char buf[32], double bytes)
{
    static const struct scale scales[] = {{1, "B"},
                                          {KI, "KiB"},
                                          {KI * KI, "MiB"},
                                          {KI * KI * KI, "GiB"},
                                          {KI * KI * KI * KI, "TiB"},
                                          {KI * KI * KI * KI * KI, "PiB"}};
    if (fabs(bytes) < 1000 && !(floor(bytes) < bytes)) {
        maq__snprintf(buf, 32, "%.0f B", bytes);
        return buf;
    }
    return put_scaled(buf, bytes, scales, MAQ_COUNT(scales));
}

const char *maq_format_time(char buf[32], double seconds)
{
    static const struct scale scales[] = {{1e-9, "ns"}, {1e-6, "us"}, {1e-3, "ms"}, {1, "s"},
                                          {120, "s"},   {7200, "s"},  {172800, "s"}};
    static const struct scale minutes = {60, "min"}, hours = {3600, "h"}, days = {86400, "d"};
    double size = fabs(seconds);
    if (!(size > 0 || size < 0) && !isnan(size)) {
        maq__snprintf(buf, 32, "0 s");
        return buf;
    }
    /* Minutes from two minutes on, hours from two hours, days from two days: "90 s" reads better than "1.5 min". */
    if (isfinite(size) && size >= 172800)
        return put_scaled(buf, seconds, &days, 1);
    if (isfinite(size) && size >= 7200)
        return put_scaled(buf, seconds, &hours, 1);
    if (isfinite(size) && size >= 120)
        return put_scaled(buf, seconds, &minutes, 1);
    return put_scaled(buf, seconds, scales, 4);
}

const char *maq_format_rate(char buf[32], double bytes_per_s)
{
    static const struct scale scales[] = {{1, "B/s"},    {1e3, "KB/s"},  {1e6, "MB/s"},
                                          {1e9, "GB/s"}, {1e12, "TB/s"}, {1e15, "PB/s"}};
    return put_scaled(buf, bytes_per_s, scales, MAQ_COUNT(scales));
}

const char *maq_format_flops(char buf[32], double flop_per_s)
{
    static const struct scale scales[] = {{1, "FLOP/s"},     {1e3, "KFLOP/s"},  {1e6, "MFLOP/s"}, {1e9, "GFLOP/s"},
                                          {1e12, "TFLOP/s"}, {1e15, "PFLOP/s"}, {1e18, "EFLOP/s"}};
    return put_scaled(buf, flop_per_s, scales, MAQ_COUNT(scales));
}

/* 16,384 as digits in groups of three; from a million on four significant digits and M, B, T. */
const char *maq_format_count(char buf[32], double count)
{
    static const struct scale scales[] = {{1e6, "M"}, {1e9, "B"}, {1e12, "T"}};
    double size = fabs(count);
    if (!isfinite(count))
        return put_scaled(buf, count, scales, 1);
    const char *sign = count < 0 ? "-" : "";
    if (size < 1e6 - 0.5) {
        if (floor(size) < size) {
            maq__snprintf(buf, 32, "%s%.*f", sign, size < 10 ? 3 : size < 100 ? 2 : 1, size);
            return buf;
        }
        unsigned whole = (unsigned)size;
        if (whole < 1000)
            maq__snprintf(buf, 32, "%s%u", whole ? sign : "", whole);
        else
            maq__snprintf(buf, 32, "%s%u,%03u", sign, whole / 1000, whole % 1000);
        return buf;
    }
    size_t i = 0;
    while (i + 1 < MAQ_COUNT(scales) && size >= scales[i + 1].at * (1 - 0.00005))
        i++;
    double x = size / scales[i].at;
    if (x < 1e6)
        maq__snprintf(buf, 32, "%s%.*f %s", sign,
                      x < 9.9995   ? 3
                      : x < 99.995 ? 2
                      : x < 999.95 ? 1
                                   : 0,
                      x, scales[i].name);
    else
        maq__snprintf(buf, 32, "%s%.3e", sign, size);
    return buf;
}
