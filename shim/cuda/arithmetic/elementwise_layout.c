/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elementwise_layout.c - how the tensors of an element-wise kernel lie, where it writes, and how many bytes it moves: whatever its function is.
 */
#include "shim/cuda/arithmetic/elementwise_layout.h"
#include "shim/cuda/launch_expression.h"

#include <string.h>

/* Of a kernel whose function is not known: what the structure has room for, with a function that is not large. */
static uint32_t tensors_of(uint32_t bytes)
{
    uint32_t tensors = 0;
    while (tensors < VG_TENSORS_MOST && vg_offsets_bytes(tensors + 1) + 8 * (tensors + 1) < bytes)
        tensors++;
    return tensors;
}

bool vg_layout_strided(struct vg_layout *y, const struct vg_launch *l)
{
    const char *arg = l->args[VG_PARAMETER_FUNCTION];
    const uint32_t bytes = l->kernel->code.param[VG_PARAMETER_FUNCTION].bytes;
    const uint32_t pointers = vg_offsets_bytes(y->tensors), function = pointers + 8 * y->tensors;
    if (function >= bytes || !vg_offsets_read(&y->offsets, arg, bytes, y->tensors, (uint64_t)y->n))
        return false;
    memcpy(y->at, arg + pointers, sizeof *y->at * y->tensors);
    y->function = arg + function;
    y->function_bytes = bytes - function;
    return true;
}

/* `width`: of an element of each tensor. */
bool vg_layout_contiguous(struct vg_layout *y, const struct vg_launch *l, const unsigned *width)
{
    const struct vg_code *code = &l->kernel->code;
    if (code->n_params <= VG_PARAMETER_POINTERS || code->param[VG_PARAMETER_POINTERS].bytes != 8 * y->tensors)
        return false;
    memcpy(y->at, l->args[VG_PARAMETER_POINTERS], sizeof *y->at * y->tensors);
    y->offsets.dimensions = 1;
    y->offsets.size[0] = (uint32_t)y->n;
    for (uint32_t t = 0; t < y->tensors; t++)
        y->offsets.stride[0][t] = width[t];
    y->function = l->args[VG_PARAMETER_FUNCTION];
    y->function_bytes = code->param[VG_PARAMETER_FUNCTION].bytes;
    return true;
}

bool vg_is_strided(const struct vg_function *f)
{
    return f->form == VG_STRIDED || f->form == VG_STRIDED_CAST;
}

bool vg_layout_count(struct vg_layout *y, const struct vg_launch *l)
{
    const struct vg_code *code = &l->kernel->code;
    if (code->n_params <= VG_PARAMETER_FUNCTION || code->param[VG_PARAMETER_N].bytes != sizeof y->n)
        return false;
    memcpy(&y->n, l->args[VG_PARAMETER_N], sizeof y->n);
    return y->n > 0;
}

/* Bytes of an element of the output: StoreWithCast has its type and then its size, a word. */
static unsigned element_of(const struct vg_function *f, const struct vg_launch *l)
{
    const struct vg_code *code = &l->kernel->code;
    uint32_t bytes = f->element;
    if (f->form == VG_CONTIGUOUS_CAST && code->n_params > VG_PARAMETER_STORE &&
        code->param[VG_PARAMETER_STORE].bytes >= 8)
        memcpy(&bytes, (const char *)l->args[VG_PARAMETER_STORE] + 4, sizeof bytes);
    return bytes > 0 && bytes < f->element ? bytes : f->element;
}

/* How the tensors of a kernel lie, whatever its function is. */
static bool read_layout(struct vg_layout *y, const struct vg_function *f, const struct vg_launch *l,
                        const unsigned *width)
{
    const struct vg_code *code = &l->kernel->code;
    if (f->form == VG_NO_FORM || !vg_layout_count(y, l))
        return false;
    if (vg_is_strided(f))
        y->tensors = tensors_of(code->param[VG_PARAMETER_FUNCTION].bytes);
    else if (code->n_params > VG_PARAMETER_POINTERS && code->param[VG_PARAMETER_POINTERS].bytes <= 8 * VG_TENSORS_MOST)
        y->tensors = code->param[VG_PARAMETER_POINTERS].bytes / 8;
    return y->tensors > 0 && (vg_is_strided(f) ? vg_layout_strided(y, l) : vg_layout_contiguous(y, l, width));
}

bool vg_elementwise_writes(struct vg_output *place, const struct vg_launch *l)
{
    const struct vg_function *f = vg_function_of(l->kernel->name);
    const unsigned width[VG_TENSORS_MOST] = {element_of(f, l)}; /* of the others nothing is asked */
    struct vg_layout y = {.n = 0};
    if (!read_layout(&y, f, l, width))
        return false;
    const struct vg_offsets *o = &y.offsets;
    unsigned element = width[0]; /* and no more than from one to the next */
    for (uint32_t d = 0; d < o->dimensions; d++)
        element = o->size[d] > 1 && o->stride[d][0] > 0 && o->stride[d][0] < element ? o->stride[d][0] : element;
    *place = (struct vg_output){y.at[0], vg_offsets_extent(o, 0, element)};
    return y.at[0] != NULL;
}

/* Bytes of an element of tensor t of `tensors`: as the name has it, or the arguments of a kernel that casts; else that which the name has first. */
static unsigned width_of(const struct vg_function *f, const struct vg_launch *l, uint32_t t, uint32_t tensors)
{
    const struct vg_code *code = &l->kernel->code;
    enum vg_scalar_type type = t == 0                                            ? f->out
                               : t <= f->operands && f->operands + 1u == tensors ? f->in[t - 1]
                                                                                 : f->in[0];
    if (f->form == VG_CONTIGUOUS_CAST && code->n_params > VG_PARAMETER_STORE &&
        code->param[VG_PARAMETER_LOAD].bytes >= t)
        type = vg_scalar_numbered(t == 0 ? *(const unsigned char *)l->args[VG_PARAMETER_STORE]
                                         : ((const unsigned char *)l->args[VG_PARAMETER_LOAD])[t - 1]);
    return type != VG_SCALAR_NONE ? vg_scalar_bytes(type) : vg_element_bytes(l->kernel->name);
}

/* What a tensor has in memory: elements along dimensions in which it is repeated are one. */
static uint64_t bytes_of(const struct vg_layout *y, uint32_t t, unsigned width)
{
    const struct vg_offsets *o = &y->offsets;
    uint64_t elements = 1;
    unsigned least = width; /* no element is wider than the way to the next */
    for (uint32_t d = 0; d < o->dimensions; d++) {
        const uint32_t stride = o->stride[d][t];
        elements *= stride > 0 ? o->size[d] : 1;
        least = stride > 0 && o->size[d] > 1 && stride < least ? stride : least;
    }
    return elements * least;
}

bool vg_elementwise_moves(uint64_t *read, uint64_t *written, const struct vg_launch *l)
{
    const struct vg_function *f = vg_function_of(l->kernel->name);
    unsigned width[VG_TENSORS_MOST];
    struct vg_layout y = {.n = 0};
    for (uint32_t t = 0; t < VG_TENSORS_MOST; t++)
        width[t] = 1; /* stands for any: the layout only has to be read */
    if (!read_layout(&y, f, l, width))
        return false;
    *read = *written = 0;
    for (uint32_t t = 0; t < y.tensors; t++) {
        const unsigned bytes = width_of(f, l, t, y.tensors);
        uint64_t *sum = t == 0 ? written : read;
        *sum += vg_is_strided(f) ? bytes_of(&y, t, bytes) : (uint64_t)y.n * bytes;
    }
    return true;
}
