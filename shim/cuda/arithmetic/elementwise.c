/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elementwise.c - element-wise functions of numbers that the host knows: fills, copies to another type, comparisons, logic, sums and products.
 *
 * Where tensors lie is in elementwise_layout.h. The function holds the numbers that are no tensors:
 *
 *     FillFunctor<T>                   T value
 *     AUnaryFunctor<..>, BUnaryFunctor the function of two, and the first operand of it, or the second
 *     CompareEqFunctor<T>              int: equal, not equal (BinaryFunctor and the two above are of it)
 *     CompareFunctor<T>                int: >=, >, <=, <                compare_scalar_kernel<T>: the same, and the second operand
 *     arange()                         long: the first, the step
 *     CUDAFunctor_add<T>               alpha: self + alpha * other      CUDAFunctorOnSelf_add<T>: other, alpha; ..OnOther_add<T>: self, alpha
 *
 * (FillKernel.cu, Loops.cuh, CompareEQKernel.cu, CompareKernels.cu, torchgen/dest/ufunc.py).
 *
 * Of `a | b` the operand that nobody knows counts as zeros, as which it would be read: `finished = at_its_limit | ended` is over where the host knows
 * the limit, whatever the tokens are. What is combined by `&` is known where both are.
 */
#include "shim/cuda/arithmetic/elementwise_layout.h"
#include "shim/cuda/arithmetic/scalar_type.h"

#include <stdlib.h>
#include <string.h>

/* --- what is no tensor ---------------------------------------------------------------------------------------------------- */

/* A number of a function: i where its type is whole, else d. */
struct value {
    int64_t i;
    double d;
};

/* What one launch of a function is of. */
struct call {
    const struct vg_function *f;
    struct vg_layout y;
    enum vg_scalar_type in[3], out; /* in memory */
    struct value constant, alpha;
    int32_t word; /* which comparison */
};

static struct value load(const void *from, enum vg_scalar_type type)
{
    if (vg_scalar_is_real(type))
        return (struct value){.d = vg_scalar_load_real(from, type)};
    return (struct value){.i = vg_whole_load(from, type)};
}

/* A number at or behind `at` of the function, where one of its type may lie; *at moves behind it. false: it is not that long. */
static bool take(struct value *x, const struct vg_layout *y, uint32_t *at, enum vg_scalar_type type)
{
    const uint32_t bytes = vg_scalar_bytes(type), from = (*at + bytes - 1) / bytes * bytes;
    if (from + bytes > y->function_bytes)
        return false;
    *x = load(y->function + from, type);
    *at = from + bytes;
    return true;
}

/* In what the function computes: single precision for types that are shorter. */
static enum vg_scalar_type wide(enum vg_scalar_type type)
{
    return type == VG_SCALAR_F16 || type == VG_SCALAR_BF16 ? VG_SCALAR_F32 : type;
}

static bool read_function(struct call *c)
{
    const struct vg_function *f = c->f;
    const bool compares = f->what == VG_COMPARE_EQUAL || f->what == VG_COMPARE;
    const enum vg_scalar_type type = f->what == VG_FILL ? f->out : compares ? f->in[0] : wide(f->in[0]);
    /* a function that holds nothing takes a byte, before the number of AUnaryFunctor or BUnaryFunctor */
    uint32_t at = !compares && f->constant != VG_NO_CONSTANT && f->what != VG_WEIGHTED_SUM ? 1 : 0;
    struct value word = {0};
    if (f->what == VG_RANGE)
        return take(&c->constant, &c->y, &at, VG_SCALAR_I64) && take(&c->alpha, &c->y, &at, VG_SCALAR_I64);
    bool ok = !compares || take(&word, &c->y, &at, VG_SCALAR_I32);
    c->word = (int32_t)word.i;
    if (f->what == VG_FILL || f->constant != VG_NO_CONSTANT)
        ok = ok && take(&c->constant, &c->y, &at, type);
    return ok && (f->what != VG_WEIGHTED_SUM || take(&c->alpha, &c->y, &at, type));
}

/* Types in memory, as the kernel reads and writes them. */
static bool read_types(struct call *c, const struct vg_launch *l)
{
    const struct vg_code *code = &l->kernel->code;
    memcpy(c->in, c->f->in, sizeof c->in);
    c->out = c->f->out;
    if (c->f->form != VG_CONTIGUOUS_CAST)
        return true;
    if (code->n_params <= VG_PARAMETER_STORE || code->param[VG_PARAMETER_LOAD].bytes < c->f->operands ||
        code->param[VG_PARAMETER_STORE].bytes < 1)
        return false;
    const unsigned char *load = l->args[VG_PARAMETER_LOAD], *store = l->args[VG_PARAMETER_STORE];
    c->out = vg_scalar_numbered(store[0]);
    bool ok = c->out != VG_SCALAR_NONE;
    for (unsigned i = 0; i < c->f->operands && ok; i++) {
        c->in[i] = vg_scalar_numbered(load[i]);
        ok = c->in[i] != VG_SCALAR_NONE;
    }
    return ok;
}

/* Whether elements of the output lie in their order and without gaps. */
static bool is_dense(const struct vg_offsets *o, unsigned width)
{
    uint64_t next = width;
    for (uint32_t d = 0; d < o->dimensions; d++) {
        if (o->size[d] != 1 && o->stride[d][0] != next)
            return false;
        next *= o->size[d];
    }
    return true;
}

static bool read_call(struct call *c, struct vg_arithmetic *a, const struct vg_launch *l)
{
    unsigned width[VG_TENSORS_MOST] = {0};
    struct vg_layout *y = &c->y;
    if (c->f->form == VG_STRIDED_CAST || !vg_layout_count(y, l) || y->n > VG_NUMBERS_MOST || !read_types(c, l))
        return false;
    y->tensors = c->f->operands + 1u;
    width[0] = vg_scalar_bytes(c->out);
    for (uint32_t t = 1; t < y->tensors; t++)
        width[t] = vg_scalar_bytes(c->in[t - 1]);
    if (!(vg_is_strided(c->f) ? vg_layout_strided(y, l) : vg_layout_contiguous(y, l, width)) || !read_function(c) ||
        !is_dense(&y->offsets, width[0]))
        return false;
    *a = (struct vg_arithmetic){.out = y->at[0], .out_bytes = vg_offsets_extent(&y->offsets, 0, width[0])};
    for (uint32_t t = 1; t < y->tensors; t++) {
        a->in[t - 1] = (struct vg_operand){y->at[t], vg_offsets_extent(&y->offsets, t, width[t])};
        if (y->at[t] == NULL)
            return false;
    }
    return true;
}

/* --- the numbers ---------------------------------------------------------------------------------------------------------- */

static bool compared(const struct call *c, bool equal, bool less)
{
    if (c->f->what == VG_COMPARE_EQUAL)
        return equal != (c->word != 0);
    switch (c->word) {
    case 0:
        return !less;
    case 1:
        return !less && !equal;
    case 2:
        return less || equal;
    default:
        return less;
    }
}

static int64_t of_whole(const struct call *c, int64_t x, int64_t y)
{
    switch (c->f->what) {
    case VG_NOT:
        return !x;
    case VG_AND:
        return x & y;
    case VG_OR:
        return x | y;
    case VG_XOR:
        return x ^ y;
    case VG_BOTH:
        return x && y;
    case VG_EITHER:
        return x || y;
    case VG_PRODUCT:
        return (int64_t)((uint64_t)x * (uint64_t)y); /* wraps, as there */
    case VG_WEIGHTED_SUM:
        return (int64_t)((uint64_t)x + (uint64_t)c->alpha.i * (uint64_t)y);
    case VG_COMPARE_EQUAL:
    case VG_COMPARE:
        return compared(c, x == y, x < y);
    default:
        return x;
    }
}

/* Comparisons and logic give a truth value in i, the rest a number in d. */
static struct value of_real(const struct call *c, double x, double y)
{
    switch (c->f->what) {
    case VG_NOT:
        return (struct value){.i = x == 0};
    case VG_BOTH:
        return (struct value){.i = x != 0 && y != 0};
    case VG_EITHER:
        return (struct value){.i = x != 0 || y != 0};
    case VG_PRODUCT:
        return (struct value){.d = x * y};
    case VG_WEIGHTED_SUM:
        return (struct value){.d = x + c->alpha.d * y};
    case VG_COMPARE_EQUAL:
    case VG_COMPARE: /* nothing is less than, or equal to, what is not a number */
        return (struct value){.i = x == x && y == y ? compared(c, x == y, x < y)
                                                    : c->f->what == VG_COMPARE_EQUAL && c->word != 0};
    default:
        return (struct value){.d = x};
    }
}

static struct value result(const struct call *c, struct value x, struct value y)
{
    if (vg_scalar_is_real(c->f->in[0]))
        return of_real(c, x.d, y.d);
    return (struct value){.i = of_whole(c, x.i, y.i)};
}

/* From one type to another: towards zero where that is whole, and wrapped; rounded where it is not. */
static struct value cast(struct value x, enum vg_scalar_type from, enum vg_scalar_type to)
{
    unsigned char bytes[sizeof(int64_t)];
    if (vg_scalar_is_real(to)) {
        vg_scalar_store_real(bytes, vg_scalar_is_real(from) ? x.d : (double)x.i, to);
        return load(bytes, to);
    }
    if (vg_scalar_is_real(from) && to == VG_SCALAR_BOOL)
        x.i = x.d != 0;
    else if (vg_scalar_is_real(from))
        x.i = x.d > -9e18 && x.d < 9e18 ? (int64_t)x.d : INT64_MIN;
    vg_whole_store(bytes, x.i, to);
    return load(bytes, to);
}

static void store(void *to, struct value x, enum vg_scalar_type type)
{
    if (vg_scalar_is_real(type))
        vg_scalar_store_real(to, x.d, type);
    else
        vg_whole_store(to, x.i, type);
}

/* Element i of operand k as the function is given it; zero where nobody knows. */
static struct value operand(const struct call *c, const bool *known, unsigned k, uint32_t i)
{
    if (k >= c->f->operands || !known[k])
        return (struct value){0};
    return cast(load(c->y.at[k + 1] + vg_offsets_of(&c->y.offsets, k + 1, i), c->in[k]), c->in[k], c->f->in[k]);
}

/* Element i of what the function makes. */
static struct value element(const struct call *c, const bool *known, uint32_t i)
{
    const struct value x = operand(c, known, 0, i), y = operand(c, known, 1, i);
    switch (c->f->what) {
    case VG_FILL:
        return c->constant;
    case VG_WHERE:
        return x.i ? y : operand(c, known, 2, i);
    case VG_RANGE:
        return (struct value){.i = (int64_t)((uint64_t)c->constant.i + (uint64_t)c->alpha.i * i)};
    default:
        return c->f->constant == VG_FIRST_IS ? result(c, c->constant, x)
                                             : result(c, x, c->f->constant == VG_SECOND_IS ? c->constant : y);
    }
}

/* Of what type an element is before it becomes the function's result. */
static enum vg_scalar_type type_of_element(const struct vg_function *f)
{
    switch (f->what) {
    case VG_FILL:
        return f->out;
    case VG_RANGE:
        return VG_SCALAR_I64;
    case VG_NOT:
    case VG_BOTH:
    case VG_EITHER:
    case VG_COMPARE_EQUAL:
    case VG_COMPARE:
        return VG_SCALAR_I64;
    default:
        return wide(f->in[f->what == VG_WHERE]);
    }
}

static void compute(const struct call *c, struct vg_arithmetic *a)
{
    const unsigned width = vg_scalar_bytes(c->out);
    const enum vg_scalar_type type = type_of_element(c->f);
    bool known[3] = {false};
    for (unsigned k = 0; k < c->f->operands; k++)
        known[k] = vg_mem_true(a->in[k].at, a->in[k].bytes);
    for (uint32_t i = 0; i < (uint32_t)c->y.n; i++) {
        const struct value x = cast(element(c, known, i), type, c->f->out);
        store(a->value + (size_t)i * width, cast(x, c->f->out, c->out), c->out);
    }
}

/* --- floating point ------------------------------------------------------------------------------------------------------- */

/* Whether two tensors are one: from the same address, each element where the other has it. */
static bool is_one_tensor(const struct vg_layout *y, uint32_t one, uint32_t other)
{
    bool same = y->at[one] == y->at[other];
    for (uint32_t d = 0; d < y->offsets.dimensions && same; d++)
        same = y->offsets.size[d] == 1 || y->offsets.stride[d][one] == y->offsets.stride[d][other];
    return same;
}

/* isnan() compares a tensor with itself, isinf() and isfinite() with infinity. Numbers that nobody knows are taken to be neither. */
static bool is_ordinary(const struct call *c, struct vg_arithmetic *a)
{
    const bool itself = c->f->operands == 2 && is_one_tensor(&c->y, 1, 2);
    const bool infinite = c->f->operands == 1 && c->constant.d - c->constant.d != 0;
    if (c->f->what != VG_COMPARE_EQUAL || !vg_scalar_is_real(c->f->in[0]) || c->out != VG_SCALAR_BOOL ||
        (!itself && !infinite) || (a->value = malloc(a->out_bytes)) == NULL)
        return false;
    memset(a->value, itself == (c->word == 0), a->out_bytes); /* x == x, x != infinity */
    return true;
}

bool vg_elementwise(struct vg_arithmetic *a, const struct vg_launch *l)
{
    enum { REAL_MOST = 4096 }; /* weights are filled with numbers as well, and nobody decides by them */
    struct call c = {.f = vg_function_of(l->kernel->name)};
    if (c.f->what == VG_NOTHING || !read_call(&c, a, l) || !vg_arithmetic_in_place(a, l))
        return false;
    const unsigned known = vg_arithmetic_known(a);
    const bool one_does = (c.f->what == VG_OR || c.f->what == VG_EITHER) && c.f->operands == 2;
    if (known == 0 && c.f->operands > 0)
        return is_ordinary(&c, a);
    if (known < (one_does ? 1u : c.f->operands) || (vg_scalar_is_real(c.out) && c.y.n > REAL_MOST) ||
        (a->value = malloc(a->out_bytes)) == NULL)
        return false;
    compute(&c, a);
    return true;
}
