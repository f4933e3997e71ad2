/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elementwise.c - element-wise functions of whole numbers that the host knows: fills, copies to another type, comparisons, logic, sums and products.
 *
 * Arguments of PyTorch's three kernels (elementwise_name.h), with the output first wherever tensors are listed:
 *
 *     contiguous          how many elements, the function, pointers
 *     the same, cast      and how they lie (twice); types in memory of the operands, and of the output, a c10::ScalarType each in a byte
 *     strided             how many elements, and in one structure: OffsetCalculator, pointers, the function
 *
 * OffsetCalculator is a number of dimensions, the size of each as a divisor of three words, the fastest first, and the stride in bytes of each tensor
 * for each, with room for 25 (aten/src/ATen/cuda/detail/OffsetCalculator.cuh). The function holds the numbers that are no tensors:
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
#include "shim/cuda/elementwise_name.h"

#include <stdlib.h>
#include <string.h>

enum { PARAMETER_N, PARAMETER_FUNCTION, PARAMETER_POINTERS, PARAMETER_LOAD = 5, PARAMETER_STORE };
enum { DIMENSIONS = 25, TENSORS_MOST = 8 };

/* --- where tensors lie ---------------------------------------------------------------------------------------------------- */

/* The output is tensor 0. */
struct layout {
    int32_t n;
    uint32_t tensors, dimensions;
    uint32_t size[DIMENSIONS], stride[DIMENSIONS][TENSORS_MOST]; /* bytes */
    char *at[TENSORS_MOST];
    const char *function; /* and how many bytes it has */
    uint32_t function_bytes;
};

/* Where pointers begin in the structure of a strided kernel of so many tensors. */
static uint32_t pointers_at(uint32_t tensors)
{
    return (4 + DIMENSIONS * 12 + DIMENSIONS * 4 * tensors + 7) / 8 * 8;
}

/* Of a kernel whose function is not known: what the structure has room for, with a function that is not large. */
static uint32_t tensors_of(uint32_t bytes)
{
    uint32_t tensors = 0;
    while (tensors < TENSORS_MOST && pointers_at(tensors + 1) + 8 * (tensors + 1) < bytes)
        tensors++;
    return tensors;
}

static bool read_strided(struct layout *y, const struct vg_launch *l)
{
    const char *arg = l->args[PARAMETER_FUNCTION];
    const uint32_t bytes = l->kernel->code.param[PARAMETER_FUNCTION].bytes, pointers = pointers_at(y->tensors);
    uint64_t elements = 1;
    if (y->tensors == 0 || pointers + 8 * y->tensors >= bytes)
        return false;
    memcpy(&y->dimensions, arg, sizeof y->dimensions);
    if (y->dimensions > DIMENSIONS)
        return false;
    for (uint32_t d = 0; d < y->dimensions && elements <= INT32_MAX; d++) {
        memcpy(&y->size[d], arg + 4 + (size_t)12 * d, sizeof *y->size);
        memcpy(y->stride[d], arg + 4 + DIMENSIONS * 12 + (size_t)4 * y->tensors * d, 4 * (size_t)y->tensors);
        elements *= y->size[d];
    }
    memcpy(y->at, arg + pointers, sizeof *y->at * y->tensors);
    y->function = arg + pointers + 8 * y->tensors;
    y->function_bytes = bytes - pointers - 8 * y->tensors;
    return elements == (uint64_t)y->n;
}

/* `width`: of an element of each tensor. */
static bool read_contiguous(struct layout *y, const struct vg_launch *l, const unsigned *width)
{
    const struct vg_code *code = &l->kernel->code;
    if (code->n_params <= PARAMETER_POINTERS || code->param[PARAMETER_POINTERS].bytes != 8 * y->tensors)
        return false;
    memcpy(y->at, l->args[PARAMETER_POINTERS], sizeof *y->at * y->tensors);
    y->dimensions = 1;
    y->size[0] = (uint32_t)y->n;
    for (uint32_t t = 0; t < y->tensors; t++)
        y->stride[0][t] = width[t];
    y->function = l->args[PARAMETER_FUNCTION];
    y->function_bytes = code->param[PARAMETER_FUNCTION].bytes;
    return true;
}

static bool is_strided(const struct vg_function *f)
{
    return f->form == VG_STRIDED || f->form == VG_STRIDED_CAST;
}

static bool read_count(struct layout *y, const struct vg_launch *l)
{
    const struct vg_code *code = &l->kernel->code;
    if (code->n_params <= PARAMETER_FUNCTION || code->param[PARAMETER_N].bytes != sizeof y->n)
        return false;
    memcpy(&y->n, l->args[PARAMETER_N], sizeof y->n);
    return y->n > 0;
}

/* Bytes from the first element of a tensor to the end of its last. */
static uint64_t extent(const struct layout *y, uint32_t tensor, unsigned width)
{
    uint64_t bytes = width;
    for (uint32_t d = 0; d < y->dimensions; d++)
        bytes += (uint64_t)(y->size[d] - 1) * y->stride[d][tensor];
    return bytes;
}

static uint64_t offset(const struct layout *y, uint32_t tensor, uint32_t i)
{
    uint64_t bytes = 0;
    for (uint32_t d = 0; d < y->dimensions; d++) {
        bytes += (uint64_t)(i % y->size[d]) * y->stride[d][tensor];
        i /= y->size[d];
    }
    return bytes;
}

/* Bytes of an element of the output: StoreWithCast has its type and then its size, a word. */
static unsigned element_of(const struct vg_function *f, const struct vg_launch *l)
{
    const struct vg_code *code = &l->kernel->code;
    uint32_t bytes = f->element;
    if (f->form == VG_CONTIGUOUS_CAST && code->n_params > PARAMETER_STORE && code->param[PARAMETER_STORE].bytes >= 8)
        memcpy(&bytes, (const char *)l->args[PARAMETER_STORE] + 4, sizeof bytes);
    return bytes > 0 && bytes < f->element ? bytes : f->element;
}

bool vg_elementwise_writes(struct vg_place *place, const struct vg_launch *l)
{
    const struct vg_function *f = vg_function_of(l->kernel->name);
    const struct vg_code *code = &l->kernel->code;
    const unsigned width[TENSORS_MOST] = {element_of(f, l)}; /* of the others nothing is asked */
    struct layout y = {.n = 0};
    if (f->form == VG_NO_FORM || !read_count(&y, l))
        return false;
    if (is_strided(f))
        y.tensors = tensors_of(code->param[PARAMETER_FUNCTION].bytes);
    else if (code->n_params > PARAMETER_POINTERS && code->param[PARAMETER_POINTERS].bytes <= 8 * TENSORS_MOST)
        y.tensors = code->param[PARAMETER_POINTERS].bytes / 8;
    if (y.tensors == 0 || !(is_strided(f) ? read_strided(&y, l) : read_contiguous(&y, l, width)))
        return false;
    unsigned element = width[0]; /* and no more than from one to the next */
    for (uint32_t d = 0; d < y.dimensions; d++)
        element = y.size[d] > 1 && y.stride[d][0] > 0 && y.stride[d][0] < element ? y.stride[d][0] : element;
    *place = (struct vg_place){y.at[0], extent(&y, 0, element)};
    return y.at[0] != NULL;
}

/* --- what is no tensor ---------------------------------------------------------------------------------------------------- */

/* What one launch of a function is of. */
struct call {
    const struct vg_function *f;
    struct layout y;
    enum vg_whole in[3], out; /* in memory */
    int64_t constant, alpha;
    int32_t word; /* which comparison */
};

/* A number at or behind `at` of the function, where one of its type may lie; *at moves behind it. false: it is not that long. */
static bool take(int64_t *x, const struct layout *y, uint32_t *at, enum vg_whole type)
{
    const uint32_t bytes = vg_whole_bytes(type), from = (*at + bytes - 1) / bytes * bytes;
    if (from + bytes > y->function_bytes)
        return false;
    *x = vg_whole_load(y->function + from, type);
    *at = from + bytes;
    return true;
}

static bool read_function(struct call *c)
{
    const struct vg_function *f = c->f;
    const bool compares = f->what == VG_COMPARE_EQUAL || f->what == VG_COMPARE;
    const enum vg_whole type = f->what == VG_FILL ? f->out : f->in[0];
    /* a function that holds nothing takes a byte, before the number of AUnaryFunctor or BUnaryFunctor */
    uint32_t at = !compares && f->constant != VG_NO_CONSTANT && f->what != VG_WEIGHTED_SUM ? 1 : 0;
    int64_t word = 0;
    if (f->what == VG_RANGE)
        return take(&c->constant, &c->y, &at, VG_WHOLE_I64) && take(&c->alpha, &c->y, &at, VG_WHOLE_I64);
    bool ok = !compares || take(&word, &c->y, &at, VG_WHOLE_I32);
    c->word = (int32_t)word;
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
    if (code->n_params <= PARAMETER_STORE || code->param[PARAMETER_LOAD].bytes < c->f->operands ||
        code->param[PARAMETER_STORE].bytes < 1)
        return false;
    const unsigned char *load = l->args[PARAMETER_LOAD], *store = l->args[PARAMETER_STORE];
    c->out = vg_whole_scalar_type(store[0]);
    bool ok = c->out != VG_WHOLE_NONE;
    for (unsigned i = 0; i < c->f->operands && ok; i++) {
        c->in[i] = vg_whole_scalar_type(load[i]);
        ok = c->in[i] != VG_WHOLE_NONE;
    }
    return ok;
}

/* Whether elements of the output lie in their order and without gaps. */
static bool is_dense(const struct layout *y, unsigned width)
{
    uint64_t next = width;
    for (uint32_t d = 0; d < y->dimensions; d++) {
        if (y->size[d] != 1 && y->stride[d][0] != next)
            return false;
        next *= y->size[d];
    }
    return true;
}

static bool read_call(struct call *c, struct vg_arithmetic *a, const struct vg_launch *l)
{
    unsigned width[TENSORS_MOST];
    struct layout *y = &c->y;
    if (c->f->form == VG_STRIDED_CAST || !read_count(y, l) || y->n > VG_WHOLE_MOST || !read_types(c, l))
        return false;
    y->tensors = c->f->operands + 1u;
    width[0] = vg_whole_bytes(c->out);
    for (uint32_t t = 1; t < y->tensors; t++)
        width[t] = vg_whole_bytes(c->in[t - 1]);
    if (!(is_strided(c->f) ? read_strided(y, l) : read_contiguous(y, l, width)) || !read_function(c) ||
        !is_dense(y, width[0]))
        return false;
    *a = (struct vg_arithmetic){.out = y->at[0], .out_bytes = extent(y, 0, width[0])};
    for (uint32_t t = 1; t < y->tensors; t++) {
        a->in[t - 1] = (struct vg_operand){y->at[t], extent(y, t, width[t])};
        if (y->at[t] == NULL)
            return false;
    }
    return true;
}

/* --- the numbers ---------------------------------------------------------------------------------------------------------- */

static int64_t compared(const struct call *c, int64_t x, int64_t y)
{
    if (c->f->what == VG_COMPARE_EQUAL)
        return (x == y) != (c->word != 0);
    switch (c->word) {
    case 0:
        return x >= y;
    case 1:
        return x > y;
    case 2:
        return x <= y;
    default:
        return x < y;
    }
}

static int64_t result(const struct call *c, int64_t x, int64_t y)
{
    switch (c->f->what) {
    case VG_FILL:
        return c->constant;
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
        return (int64_t)((uint64_t)x + (uint64_t)c->alpha * (uint64_t)y);
    case VG_COMPARE_EQUAL:
    case VG_COMPARE:
        return compared(c, x, y);
    default:
        return x;
    }
}

/* x as a number of the type. */
static int64_t cut(int64_t x, enum vg_whole type)
{
    unsigned char bytes[sizeof x];
    vg_whole_store(bytes, x, type);
    return vg_whole_load(bytes, type);
}

/* Element i of operand k as the function is given it; zero where nobody knows. */
static int64_t operand(const struct call *c, const bool *known, unsigned k, uint32_t i)
{
    if (k >= c->f->operands || !known[k])
        return 0;
    return cut(vg_whole_load(c->y.at[k + 1] + offset(&c->y, k + 1, i), c->in[k]), c->f->in[k]);
}

static void compute(const struct call *c, struct vg_arithmetic *a)
{
    const unsigned width = vg_whole_bytes(c->out);
    bool known[3] = {false};
    for (unsigned k = 0; k < c->f->operands; k++)
        known[k] = vg_mem_true(a->in[k].at, a->in[k].bytes);
    for (uint32_t i = 0; i < (uint32_t)c->y.n; i++) {
        int64_t x = operand(c, known, 0, i), y = operand(c, known, 1, i);
        if (c->f->what == VG_WHERE)
            x = x ? y : operand(c, known, 2, i);
        else if (c->f->what == VG_RANGE)
            x = (int64_t)((uint64_t)c->constant + (uint64_t)c->alpha * i);
        else if (c->f->constant == VG_FIRST_IS)
            x = result(c, c->constant, x);
        else
            x = result(c, x, c->f->constant == VG_SECOND_IS ? c->constant : y);
        vg_whole_store(a->value + (size_t)i * width, cut(x, c->f->out), c->out);
    }
}

/* --- floating point ------------------------------------------------------------------------------------------------------- */

/* Whether a function's constant is infinite: single precision for shorter types, too. */
static bool is_infinite(const struct layout *y, unsigned real)
{
    double x = 0;
    float narrow = 0;
    const uint32_t bytes = real == sizeof x ? sizeof x : sizeof narrow; /* behind the word, where one of it may lie */
    if (2 * bytes > y->function_bytes)
        return false;
    memcpy(bytes == sizeof x ? (void *)&x : (void *)&narrow, y->function + bytes, bytes);
    x = bytes == sizeof x ? x : (double)narrow;
    return x - x != 0 && x == x;
}

/* isnan() compares a tensor with itself, isinf() and isfinite() with infinity. Numbers that nobody knows are taken to be neither. */
static bool is_ordinary(struct vg_arithmetic *a, const struct vg_launch *l, const struct vg_function *f)
{
    const unsigned width[TENSORS_MOST] = {1, f->real, f->real};
    struct layout y = {.tensors = f->operands + 1u};
    int64_t word = 0;
    uint32_t at = 0;
    if (f->form == VG_CONTIGUOUS_CAST || f->form == VG_STRIDED_CAST || !read_count(&y, l) || y.n > VG_WHOLE_MOST ||
        !(is_strided(f) ? read_strided(&y, l) : read_contiguous(&y, l, width)) || !take(&word, &y, &at, VG_WHOLE_I32) ||
        !is_dense(&y, 1) || vg_mem_true(y.at[1], extent(&y, 1, f->real)))
        return false;
    const bool itself = f->operands == 2 && y.at[1] == y.at[2], infinite = f->operands == 1 && is_infinite(&y, f->real);
    *a = (struct vg_arithmetic){.out = y.at[0], .out_bytes = (uint64_t)y.n};
    if ((!itself && !infinite) || !vg_arithmetic_in_place(a, l) || (a->value = malloc(a->out_bytes)) == NULL)
        return false;
    memset(a->value, itself == (word == 0), a->out_bytes); /* x == x, x != infinity */
    return true;
}

bool vg_elementwise(struct vg_arithmetic *a, const struct vg_launch *l)
{
    struct call c = {.f = vg_function_of(l->kernel->name)};
    if (c.f->what == VG_COMPARE_REAL)
        return is_ordinary(a, l, c.f);
    if (c.f->what == VG_NOTHING || !read_call(&c, a, l) || !vg_arithmetic_in_place(a, l))
        return false;
    const bool one_does = (c.f->what == VG_OR || c.f->what == VG_EITHER) && c.f->operands == 2;
    if (vg_arithmetic_known(a) < (one_does ? 1u : c.f->operands) || (a->value = malloc(a->out_bytes)) == NULL)
        return false;
    compute(&c, a);
    return true;
}
