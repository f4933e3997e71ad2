/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elementwise_layout.h - how the tensors of an element-wise kernel of PyTorch lie, by its arguments. There are three kernels
 * (elementwise_kernel_name.h), and the output comes first wherever tensors are listed:
 *
 *     contiguous          how many elements, the function, pointers
 *     the same, cast      and how they lie (twice); types in memory of the operands, and of the output, a c10::ScalarType each in a byte
 *     strided             how many elements, and in one structure: OffsetCalculator, pointers, the function
 */
#ifndef MAQ_SHIM_ELEMENTWISE_LAYOUT_H
#define MAQ_SHIM_ELEMENTWISE_LAYOUT_H

#include "shim/cuda/arithmetic/elementwise_kernel_name.h"
#include "shim/cuda/arithmetic/kernel_kinds.h"
#include "shim/cuda/arithmetic/offset_calculator.h"

/* Which argument is what. */
enum { VG_PARAMETER_N, VG_PARAMETER_FUNCTION, VG_PARAMETER_POINTERS, VG_PARAMETER_LOAD = 5, VG_PARAMETER_STORE };

/* The output is tensor 0. */
struct vg_layout {
    int32_t n;
    uint32_t tensors;
    struct vg_offsets offsets;
    char *at[VG_TENSORS_MOST];
    const char *function; /* and how many bytes it has */
    uint32_t function_bytes;
};

bool vg_is_strided(const struct vg_function *f);
/* How many elements; then where tensors are, of y->tensors, which the caller sets. `width`: of an element of each. */
bool vg_layout_count(struct vg_layout *y, const struct vg_launch *launch);
bool vg_layout_strided(struct vg_layout *y, const struct vg_launch *launch);
bool vg_layout_contiguous(struct vg_layout *y, const struct vg_launch *launch, const unsigned *width);

#endif
