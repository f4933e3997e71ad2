/* SPDX-License-Identifier: Apache-2.0 */
/*
 * integer_arithmetic.c - what whole numbers become: PTX ISA, "Integer Arithmetic Instructions", "Comparison and Selection", "Logic and Shift",
 * "Data Movement and Conversion". Inputs and outputs are bits without a sign; a signed instruction reads them with one.
 */
#include "shim/ptx/instruction.h"

static uint64_t cut_to(uint64_t x, unsigned bits)
{
    return bits >= 64 ? x : x & (((uint64_t)1 << bits) - 1);
}

static int64_t signed_of(uint64_t x, unsigned bits)
{
    if (bits >= 64)
        return (int64_t)x;
    const uint64_t sign = (uint64_t)1 << (bits - 1);
    return (int64_t)((cut_to(x, bits) ^ sign) - sign);
}

static uint64_t multiply(const struct vg_ptx_instruction *i, uint64_t a, uint64_t b)
{
    if (i->how == VG_PTX_LOW || (i->how == VG_PTX_WIDE && i->bits < 64)) {
        if (i->is_signed)
            return (uint64_t)signed_of(a, i->bits) * (uint64_t)signed_of(b, i->bits);
        return cut_to(a, i->bits) * cut_to(b, i->bits);
    }
    if (i->bits < 64) {
        if (i->is_signed)
            return (uint64_t)((signed_of(a, i->bits) * signed_of(b, i->bits)) >> i->bits);
        return cut_to(a, i->bits) * cut_to(b, i->bits) >> i->bits;
    }
    /* the upper half of 128 bits, by halves; a signed factor that is negative was counted 2^64 too large */
    const uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
    const uint64_t middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (uint32_t)middle;
    uint64_t high = a1 * b1 + (middle >> 32) + (other >> 32);
    if (i->is_signed)
        high -= ((int64_t)a < 0 ? b : 0) + ((int64_t)b < 0 ? a : 0);
    return high;
}

static bool divide(uint64_t *out, const struct vg_ptx_instruction *i, uint64_t a, uint64_t b)
{
    const bool rest = i->op == VG_PTX_REM;
    if (cut_to(b, i->bits) == 0)
        return false;
    if (i->is_signed) {
        const int64_t x = signed_of(a, i->bits), y = signed_of(b, i->bits);
        if (y == -1) /* which the host's division traps at for the least number */
            *out = rest ? 0 : 0 - (uint64_t)x;
        else
            *out = (uint64_t)(rest ? x % y : x / y);
        return true;
    }
    const uint64_t x = cut_to(a, i->bits), y = cut_to(b, i->bits);
    *out = rest ? x % y : x / y;
    return true;
}

static bool compare(const struct vg_ptx_instruction *i, uint64_t a, uint64_t b)
{
    const int64_t x = signed_of(a, i->bits), y = signed_of(b, i->bits);
    const uint64_t u = cut_to(a, i->bits), v = cut_to(b, i->bits);
    const bool less = i->is_signed ? x < y : u < v, equal = u == v;
    switch ((enum vg_ptx_compare)i->how) {
    case VG_PTX_EQ:
        return equal;
    case VG_PTX_NE:
        return !equal;
    case VG_PTX_LT:
        return less;
    case VG_PTX_LE:
        return less || equal;
    case VG_PTX_GT:
        return !less && !equal;
    case VG_PTX_GE:
        return !less;
    }
    return false;
}

static bool combined(const struct vg_ptx_instruction *i, bool x, uint64_t with)
{
    switch ((enum vg_ptx_combine)i->combine) {
    case VG_PTX_WITH_AND:
        return x && with;
    case VG_PTX_WITH_OR:
        return x || with;
    case VG_PTX_WITH_XOR:
        return x != (with != 0);
    case VG_PTX_ALONE:
        break;
    }
    return x;
}

static uint64_t shift_right(const struct vg_ptx_instruction *i, uint64_t a, uint64_t by)
{
    if (i->is_signed)
        return (uint64_t)(signed_of(a, i->bits) >> (by < i->bits ? by : i->bits - 1u));
    return by < i->bits ? cut_to(a, i->bits) >> by : 0;
}

/* `length` bits of a from `from` on; signed: the highest of them, or a's own, fills the rest. */
static uint64_t extract(const struct vg_ptx_instruction *i, uint64_t a, unsigned from, unsigned length)
{
    if (length == 0)
        return 0;
    const unsigned last = i->bits - 1u, top = from + length - 1 < last ? from + length - 1 : last;
    const uint64_t whole = cut_to(a, i->bits), x = from <= last ? cut_to(whole >> from, length) : 0;
    const bool negative = i->is_signed && (whole >> top & 1);
    return negative ? x | ~cut_to(UINT64_MAX, top >= from ? top - from + 1 : 0) : x;
}

static uint64_t count(const struct vg_ptx_instruction *i, uint64_t a)
{
    const uint64_t x = cut_to(a, i->bits);
    uint64_t ones = 0, zeros = i->bits;
    for (unsigned k = 0; k < i->bits; k++) {
        ones += x >> k & 1;
        zeros = x >> k & 1 ? i->bits - 1u - k : zeros;
    }
    return i->op == VG_PTX_POPC ? ones : zeros;
}

static uint64_t extreme(const struct vg_ptx_instruction *i, uint64_t a, uint64_t b)
{
    const bool less =
        i->is_signed ? signed_of(a, i->bits) < signed_of(b, i->bits) : cut_to(a, i->bits) < cut_to(b, i->bits);
    return less == (i->op == VG_PTX_MIN) ? a : b;
}

bool vg_ptx_compute(uint64_t *out, const struct vg_ptx_instruction *i, const uint64_t in[VG_PTX_INPUTS])
{
    const uint64_t a = in[0], b = in[1], c = in[2];
    unsigned bits = i->bits;
    bool defined = true;
    uint64_t x = 0;
    switch ((enum vg_ptx_op)i->op) {
    case VG_PTX_MOV:
        x = a;
        break;
    case VG_PTX_ADD:
        x = a + b;
        break;
    case VG_PTX_SUB:
        x = a - b;
        break;
    case VG_PTX_MUL:
    case VG_PTX_MAD:
        bits = i->how == VG_PTX_WIDE ? 2 * bits : bits;
        x = multiply(i, a, b) + (i->op == VG_PTX_MAD ? c : 0);
        break;
    case VG_PTX_DIV:
    case VG_PTX_REM:
        defined = divide(&x, i, a, b);
        break;
    case VG_PTX_MIN:
    case VG_PTX_MAX:
        x = extreme(i, a, b);
        break;
    case VG_PTX_AND:
        x = a & b;
        break;
    case VG_PTX_OR:
        x = a | b;
        break;
    case VG_PTX_XOR:
        x = a ^ b;
        break;
    case VG_PTX_NOT:
        x = ~a;
        break;
    case VG_PTX_NEG:
        x = 0 - a;
        break;
    case VG_PTX_ABS:
        x = signed_of(a, bits) < 0 ? 0 - a : a;
        break;
    case VG_PTX_SHL:
        x = cut_to(b, 32) < bits ? a << cut_to(b, 32) : 0;
        break;
    case VG_PTX_SHR:
        x = shift_right(i, a, cut_to(b, 32));
        break;
    case VG_PTX_BFE:
        x = extract(i, a, b & 255, c & 255);
        break;
    case VG_PTX_POPC:
    case VG_PTX_CLZ:
        x = count(i, a);
        break;
    case VG_PTX_CVT:
        bits = i->to_bits;
        x = i->is_signed ? (uint64_t)signed_of(a, i->bits) : cut_to(a, i->bits);
        break;
    case VG_PTX_SETP:
        bits = 1;
        x = combined(i, compare(i, a, b), c);
        break;
    case VG_PTX_SELP:
        x = c ? a : b;
        break;
    default:
        return false;
    }
    *out = cut_to(x, bits);
    return defined;
}
