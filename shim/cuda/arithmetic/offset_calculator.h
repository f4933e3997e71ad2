/* SPDX-License-Identifier: Apache-2.0 */
/*
 * offset_calculator.h - how the tensors of a kernel of PyTorch lie that need not be contiguous (aten/src/ATen/cuda/detail/OffsetCalculator.cuh).
 *
 * In an argument OffsetCalculator is a number of dimensions, the size of each as a divisor of three words, the fastest first, and for each dimension the stride
 * of each tensor in bytes, with room for 25. What follows it is aligned to eight bytes where it is a pointer.
 */
#ifndef MAQ_SHIM_OFFSET_CALCULATOR_H
#define MAQ_SHIM_OFFSET_CALCULATOR_H

#include <stdbool.h>
#include <stdint.h>

enum { VG_DIMENSIONS_MOST = 25, VG_TENSORS_MOST = 8 };
struct vg_offsets {
    uint32_t dimensions;
    uint32_t size[VG_DIMENSIONS_MOST], stride[VG_DIMENSIONS_MOST][VG_TENSORS_MOST]; /* strides in bytes */
};

/* Bytes of it for so many tensors, up to a pointer behind it. */
uint32_t vg_offsets_bytes(uint32_t tensors);
/* Reads it from the beginning of an argument. false: it is none of `elements` elements. */
bool vg_offsets_read(struct vg_offsets *o, const char *arg, uint32_t bytes, uint32_t tensors, uint64_t elements);
/* Bytes from the first element of a tensor to the end of its last, whose elements have `width`. */
uint64_t vg_offsets_extent(const struct vg_offsets *o, uint32_t tensor, unsigned width);
/* Where element i of a tensor lies. */
uint64_t vg_offsets_of(const struct vg_offsets *o, uint32_t tensor, uint32_t i);
/* The i-th word of four bytes of an argument. */
uint32_t vg_word_at(const char *arg, uint32_t i);

#endif
