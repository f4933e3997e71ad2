/* SPDX-License-Identifier: Apache-2.0 */
/*
 * concatenation.c - tensors that the host knows, one behind the other: a mask that grows by a token, positions, lengths of several batches.
 *
 * PyTorch's kernels are CatArrayBatchedCopy and its variants (aten/src/ATen/native/cuda/Shape.cu), with the element's size, the number of dimensions
 * and of tensors that there is room for in their names. Their arguments are the output, the inputs, how the output lies (4 sizes, 4 strides), the dimension,
 * and its stride, in elements. The inputs are lists of room for all: pointers, where each begins along the dimension, its size there, elements, whether it is
 * contiguous; and how those lie that are not. A block's y says which. The vectorized variant counts in units of 16 bytes, and its last argument
 * is how many elements lie behind each other below the dimension.
 */
#include "shim/cuda/arithmetic/kernel_kinds.h"

#include <stdlib.h>
#include <string.h>

enum { DIMENSIONS = 4, OUTPUT = 0, INPUTS, SHAPE, DIMENSION, STRIDE, PARAMETERS };

struct concatenation {
    uint32_t element, dimensions, room; /* by the name */
    uint32_t unit, per_unit;            /* bytes that move together, elements in them */
    uint32_t size[DIMENSIONS], stride[DIMENSIONS], along, behind;
    char *out;
    uint32_t n;
};

/* The number behind a part of the name, *name moves behind it; 0: there is none. */
static uint32_t number(const char **name, const char *part)
{
    const char *at = strstr(*name, part);
    if (at == NULL)
        return 0;
    char *end;
    unsigned long x = strtoul(at + strlen(part), &end, 10);
    *name = end;
    return x <= 4096 ? (uint32_t)x : 0;
}

static bool read_name(struct concatenation *c, const char *name)
{
    const char *at = strstr(name, "CatArrayBatchedCopy");
    if (strncmp(name, "_ZN2at6native", 13) != 0 || at == NULL)
        return false;
    const bool vectorized = strncmp(at + strlen("CatArrayBatchedCopy"), "_vectorized", 11) == 0;
    c->element = number(&at, "OpaqueTypeILj");
    c->dimensions = number(&at, "EEjLi");
    c->room = number(&at, "ELi");
    (void)number(&at, "ELi"); /* how many of the inputs need not be contiguous */
    c->unit = vectorized ? number(&at, "ELi") : c->element;
    c->per_unit = vectorized ? number(&at, "ELi") : 1;
    return c->element > 0 && c->dimensions > 0 && c->dimensions <= DIMENSIONS && c->room > 0 && c->unit > 0 &&
           c->per_unit > 0;
}

/* The lists begin where those before end: pointers, and of each input three words and a byte. */
static bool read_arguments(struct concatenation *c, const struct vg_launch *l)
{
    const struct vg_code *code = &l->kernel->code;
    if (!read_name(c, l->kernel->name) || code->n_params != PARAMETERS || code->param[OUTPUT].bytes != 8 ||
        code->param[INPUTS].bytes < c->room * 21 || code->param[SHAPE].bytes != 8 * DIMENSIONS ||
        code->param[DIMENSION].bytes != 4 || code->param[STRIDE].bytes != 4 || l->grid.y > c->room)
        return false;
    memcpy(&c->out, l->args[OUTPUT], sizeof c->out);
    memcpy(c->size, l->args[SHAPE], sizeof c->size);
    memcpy(c->stride, (const char *)l->args[SHAPE] + sizeof c->size, sizeof c->stride);
    memcpy(&c->along, l->args[DIMENSION], sizeof c->along);
    memcpy(&c->behind, l->args[STRIDE], sizeof c->behind);
    c->n = l->grid.y;
    return c->out != NULL && c->along < c->dimensions;
}

/* Units from the first of the output to behind the last. */
static uint64_t units(const struct concatenation *c)
{
    uint64_t n = 1;
    for (uint32_t d = 0; d < c->dimensions; d++) {
        if (c->size[d] == 0)
            return 0;
        n += (uint64_t)(c->size[d] - 1) * c->stride[d];
    }
    return n;
}

bool vg_concatenation_writes(struct vg_output *place, const struct vg_launch *l)
{
    struct concatenation c = {.n = 0};
    if (!read_arguments(&c, l))
        return false;
    *place = (struct vg_output){c.out, units(&c) * c.unit};
    return true;
}

struct input {
    const char *at;
    uint32_t from, size, elements; /* from, size: along the dimension */
    bool contiguous;
};

static struct input input_of(const struct concatenation *c, const struct vg_launch *l, uint32_t i)
{
    const char *list = l->args[INPUTS], *words = list + (size_t)8 * c->room;
    struct input in = {.contiguous = words[(size_t)12 * c->room + i] == 1};
    memcpy(&in.at, list + (size_t)8 * i, sizeof in.at);
    memcpy(&in.from, words + (size_t)4 * i, sizeof in.from);
    memcpy(&in.size, words + (size_t)4 * (c->room + i), sizeof in.size);
    memcpy(&in.elements, words + (size_t)4 * (2 * c->room + i), sizeof in.elements);
    return in;
}

bool vg_concatenation_moves(uint64_t *read, uint64_t *written, const struct vg_launch *l)
{
    struct concatenation c = {.n = 0};
    if (!read_arguments(&c, l))
        return false;
    *read = 0;
    for (uint32_t i = 0; i < c.n; i++)
        *read += (uint64_t)input_of(&c, l, i).elements * c.element;
    *written = *read;
    return true;
}

/* Where unit i of an input lies in the output, in units, from where the input begins. */
static uint64_t index_of(const struct concatenation *c, uint32_t size_along, uint32_t i)
{
    uint64_t at = 0;
    for (uint32_t d = c->dimensions - 1; d >= 1; d--) {
        const uint32_t size = d == c->along ? size_along : c->size[d];
        at += (uint64_t)(i % size) * c->stride[d];
        i /= size;
    }
    return at + (uint64_t)i * c->stride[0];
}

/* Copies one input into the value; false: it reaches beyond the output. */
static bool place(struct vg_arithmetic *a, const struct concatenation *c, const struct input *in)
{
    const bool vectorized = c->per_unit > 1 || c->unit != c->element;
    const uint32_t size = vectorized ? in->size * c->behind / c->per_unit : in->size;
    const uint64_t from = vectorized ? (uint64_t)in->from * c->behind / c->per_unit : (uint64_t)in->from * c->behind;
    for (uint32_t i = 0; size > 0 && i < in->elements / c->per_unit; i++) {
        const uint64_t to = (from + index_of(c, size, i)) * c->unit;
        if (to + c->unit > a->out_bytes)
            return false;
        memcpy(a->value + to, in->at + (size_t)i * c->unit, c->unit);
    }
    return size > 0;
}

bool vg_concatenates(struct vg_arithmetic *a, const struct vg_launch *l)
{
    struct concatenation c = {.n = 0};
    uint64_t elements = 0;
    if (!read_arguments(&c, l) || c.n > VG_OPERANDS_MOST || units(&c) * c.per_unit > VG_NUMBERS_MOST)
        return false;
    *a = (struct vg_arithmetic){.out = c.out, .out_bytes = units(&c) * c.unit};
    for (uint32_t i = 0; i < c.n; i++) {
        const struct input in = input_of(&c, l, i);
        if (!in.contiguous || in.at == NULL || in.elements == 0 || in.elements > VG_NUMBERS_MOST)
            return false;
        a->in[i] = (struct vg_operand){in.at, (uint64_t)in.elements * c.element};
        elements += in.elements;
    }
    if (elements * c.element != a->out_bytes || !vg_arithmetic_in_place(a, l) || vg_arithmetic_known(a) < c.n ||
        (a->value = malloc(a->out_bytes)) == NULL)
        return false;
    bool all = true;
    for (uint32_t i = 0; i < c.n && all; i++) {
        const struct input in = input_of(&c, l, i);
        all = place(a, &c, &in);
    }
    if (!all)
        free(a->value);
    return all;
}
