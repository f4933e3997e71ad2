/* SPDX-License-Identifier: Apache-2.0 */
/*
 * data.c - reductions over element types, for collectives small enough to be carried out.
 *
 * Integers are reduced modulo 2^64 and cut to their width, as hardware does; an average is the sum divided and cut
 * towards zero. Floating-point elements are taken to double, reduced and rounded back after each step (to nearest, ties
 * to even), in the order of ranks: the same bytes on every member. Formats: IEEE 754 binary16, 32 and 64; bfloat16; E4M3
 * (no infinities, 0x7f is not a number) and E5M2 of the OCP 8-bit floating point specification 1.0.
 */
#include "shim/nccl/nccl.h"

#include <string.h>

/* --- formats ---------------------------------------------------------------------------------------------------------- */

struct format {
    uint8_t bytes, exponent, mantissa; /* bits; 0: an integer */
    bool is_signed, finite;            /* finite: no infinities */
};

static const struct format formats[VG_NCCL_TYPES] = {
    [MAQ_REC_I8] = {1, 0, 0, true, false},    [MAQ_REC_U8] = {1, 0, 0, false, false},
    [MAQ_REC_I32] = {4, 0, 0, true, false},   [MAQ_REC_U32] = {4, 0, 0, false, false},
    [MAQ_REC_I64] = {8, 0, 0, true, false},   [MAQ_REC_U64] = {8, 0, 0, false, false},
    [MAQ_REC_F16] = {2, 5, 10, true, false},  [MAQ_REC_F32] = {4, 8, 23, true, false},
    [MAQ_REC_F64] = {8, 11, 52, true, false}, [MAQ_REC_BF16] = {2, 8, 7, true, false},
    [MAQ_REC_F8E4M3] = {1, 4, 3, true, true}, [MAQ_REC_F8E5M2] = {1, 5, 2, true, false},
};

uint64_t vg_type_bytes(unsigned type)
{
    return type < VG_NCCL_TYPES ? formats[type].bytes : 0;
}

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static double power_of_two(int e)
{
    return double_of((uint64_t)(e + 1023) << 52); /* -1022 <= e <= 1023 */
}

/* A small format's bits as a double: exact. */
static double widen(uint64_t bits, const struct format *f)
{
    uint64_t sign = bits >> (f->exponent + f->mantissa) & 1;
    uint64_t fraction = bits & ((UINT64_C(1) << f->mantissa) - 1);
    int top = (1 << f->exponent) - 1, bias = top >> 1, e = (int)(bits >> f->mantissa) & top;
    double one = (double)(UINT64_C(1) << f->mantissa), x;
    bool odd = f->finite ? e == top && fraction + 1 == UINT64_C(1) << f->mantissa : e == top;
    if (odd)
        x = double_of(fraction ? UINT64_C(0x7ff8) << 48 : UINT64_C(0x7ff0) << 48);
    else if (e == 0)
        x = (double)fraction / one * power_of_two(1 - bias);
    else
        x = (1.0 + (double)fraction / one) * power_of_two(e - bias);
    return sign ? -x : x;
}

/* A double rounded to a small format. Adding and taking away a power of two of the right size rounds to nearest, ties to even. */
static uint64_t narrow(double x, const struct format *f)
{
    int top = (1 << f->exponent) - 1, bias = top >> 1;
    uint64_t sign = bits_of(x) >> 63 << (f->exponent + f->mantissa), all = (UINT64_C(1) << f->mantissa) - 1;
    uint64_t infinite = (uint64_t)top << f->mantissa,
             none = infinite | (f->finite ? all : UINT64_C(1) << (f->mantissa - 1));
    x = double_of(bits_of(x) << 1 >> 1);
    if (!(x <= double_of(UINT64_C(0x7ff0) << 48)))
        return sign | none;
    int e = (int)(bits_of(x) >> 52) - 1023;
    if (e > bias + 1)
        return sign | (f->finite ? none : infinite);
    e = e < 1 - bias ? 1 - bias : e;
    double rounder = power_of_two(e - f->mantissa + 52);
    volatile double up = x + rounder; /* in memory, so that no compiler folds it away */
    double units = (up - rounder) / power_of_two(e - f->mantissa);
    /* units of the last place: below 2^mantissa it is subnormal, and carries go into the exponent by themselves */
    uint64_t magnitude = (uint64_t)units + ((uint64_t)(e + bias - 1) << f->mantissa);
    uint64_t most = f->finite ? none - 1 : infinite - 1;
    return sign | (magnitude > most ? (f->finite ? none : infinite) : magnitude);
}

double vg_real_load(const void *at, unsigned type)
{
    const struct format *f = &formats[type];
    uint64_t bits = 0;
    if (type == MAQ_REC_F32) {
        float x;
        memcpy(&x, at, sizeof x);
        return (double)x;
    }
    memcpy(&bits, at, f->bytes);
    return type == MAQ_REC_F64 ? double_of(bits) : widen(bits, f);
}

void vg_real_store(void *at, double x, unsigned type)
{
    const struct format *f = &formats[type];
    if (type == MAQ_REC_F32) {
        float y = (float)x;
        memcpy(at, &y, sizeof y);
        return;
    }
    uint64_t bits = type == MAQ_REC_F64 ? bits_of(x) : narrow(x, f);
    memcpy(at, &bits, f->bytes);
}

/* Sign-extended to 64 bits. */
static uint64_t load_integer(const void *at, unsigned type)
{
    const struct format *f = &formats[type];
    uint64_t bits = 0;
    memcpy(&bits, at, f->bytes);
    unsigned shift = 64 - 8u * f->bytes;
    return f->is_signed && shift ? (uint64_t)((int64_t)(bits << shift) >> shift) : bits;
}

static void store_integer(void *at, uint64_t x, unsigned type)
{
    memcpy(at, &x, formats[type].bytes); /* little-endian */
}

static bool is_integer(unsigned type)
{
    return formats[type].exponent == 0;
}

/* --- reductions ------------------------------------------------------------------------------------------------------- */

static uint64_t both_integers(uint64_t a, uint64_t b, bool is_signed, unsigned op)
{
    bool less = is_signed ? (int64_t)a < (int64_t)b : a < b;
    switch (op) {
    case VG_NCCL_PROD:
        return a * b;
    case VG_NCCL_MAX:
        return less ? b : a;
    case VG_NCCL_MIN:
        return less ? a : b;
    default:
        return a + b;
    }
}

static double both_reals(double a, double b, unsigned op)
{
    switch (op) {
    case VG_NCCL_PROD:
        return a * b;
    case VG_NCCL_MAX:
        return a < b ? b : a;
    case VG_NCCL_MIN:
        return b < a ? b : a;
    default:
        return a + b;
    }
}

void vg_reduce(void *acc, const void *x, uint64_t count, unsigned type, unsigned op)
{
    uint64_t width = formats[type].bytes;
    for (uint64_t i = 0; i < count; i++) {
        char *to = (char *)acc + i * width;
        const char *from = (const char *)x + i * width;
        if (is_integer(type))
            store_integer(
                to, both_integers(load_integer(to, type), load_integer(from, type), formats[type].is_signed, op), type);
        else
            vg_real_store(to, both_reals(vg_real_load(to, type), vg_real_load(from, type), op), type);
    }
}

static uint64_t integer_power(uint64_t x, uint64_t times)
{
    uint64_t y = 1;
    for (; times; times >>= 1, x *= x)
        y *= times & 1 ? x : 1;
    return y;
}

static double real_power(double x, uint64_t times)
{
    double y = 1;
    for (; times; times >>= 1, x *= x)
        y *= times & 1 ? x : 1;
    return y;
}

void vg_repeat(void *acc, const void *x, uint64_t count, unsigned type, unsigned op, uint64_t times)
{
    uint64_t width = formats[type].bytes;
    memmove(acc, x, count * width);
    if (op == VG_NCCL_MAX || op == VG_NCCL_MIN || times < 2)
        return;
    for (uint64_t i = 0; i < count; i++) {
        char *to = (char *)acc + i * width;
        if (is_integer(type)) {
            uint64_t v = load_integer(to, type);
            store_integer(to, op == VG_NCCL_PROD ? integer_power(v, times) : v * times, type);
        } else {
            double v = vg_real_load(to, type);
            vg_real_store(to, op == VG_NCCL_PROD ? real_power(v, times) : v * (double)times, type);
        }
    }
}

void vg_reduced(void *acc, uint64_t count, unsigned type, unsigned op, uint64_t n)
{
    if (op != VG_NCCL_AVG || n < 2)
        return;
    for (uint64_t i = 0; i < count; i++) {
        char *to = (char *)acc + i * formats[type].bytes;
        uint64_t v = is_integer(type) ? load_integer(to, type) : 0;
        if (!is_integer(type))
            vg_real_store(to, vg_real_load(to, type) / (double)n, type);
        else
            store_integer(to, formats[type].is_signed ? (uint64_t)((int64_t)v / (int64_t)n) : v / n, type);
    }
}
