/* SPDX-License-Identifier: Apache-2.0 */
/* offset_calculator.c - reads an OffsetCalculator out of an argument, and finds elements by it. */
#include "shim/cuda/arithmetic/offset_calculator.h"

#include <stddef.h>
#include <string.h>

enum { WORD = 4, DIVISOR = 3 * WORD, SIZES = WORD, STRIDES = SIZES + DIVISOR * VG_DIMENSIONS_MOST };

uint32_t vg_word_at(const char *arg, uint32_t i)
{
    uint32_t x;
    memcpy(&x, arg + (size_t)WORD * i, sizeof x);
    return x;
}

uint32_t vg_offsets_bytes(uint32_t tensors)
{
    return (STRIDES + WORD * VG_DIMENSIONS_MOST * tensors + 7) / 8 * 8;
}

bool vg_offsets_read(struct vg_offsets *o, const char *arg, uint32_t bytes, uint32_t tensors, uint64_t elements)
{
    uint64_t n = 1;
    if (tensors == 0 || tensors > VG_TENSORS_MOST || bytes < vg_offsets_bytes(tensors))
        return false;
    o->dimensions = vg_word_at(arg, 0);
    if (o->dimensions > VG_DIMENSIONS_MOST)
        return false;
    for (uint32_t d = 0; d < o->dimensions && n <= elements; d++) {
        memcpy(&o->size[d], arg + SIZES + (size_t)DIVISOR * d, sizeof *o->size);
        memcpy(o->stride[d], arg + STRIDES + (size_t)WORD * tensors * d, (size_t)WORD * tensors);
        n *= o->size[d];
    }
    return n == elements && n > 0;
}

uint64_t vg_offsets_extent(const struct vg_offsets *o, uint32_t tensor, unsigned width)
{
    uint64_t bytes = width;
    for (uint32_t d = 0; d < o->dimensions; d++)
        bytes += (uint64_t)(o->size[d] - 1) * o->stride[d][tensor];
    return bytes;
}

uint64_t vg_offsets_of(const struct vg_offsets *o, uint32_t tensor, uint32_t i)
{
    uint64_t bytes = 0;
    for (uint32_t d = 0; d < o->dimensions; d++) {
        bytes += (uint64_t)(i % o->size[d]) * o->stride[d][tensor];
        i /= o->size[d];
    }
    return bytes;
}
