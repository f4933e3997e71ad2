/* SPDX-License-Identifier: Apache-2.0 */
/*
 * elementwise_kernel_name.h - what an element-wise kernel of PyTorch does, by its name.
 *
 * There are three (aten/src/ATen/native/cuda/CUDALoops.cuh): vectorized_elementwise_kernel and unrolled_elementwise_kernel, of tensors that lie one
 * element behind the other, and elementwise_kernel, of others. The name has the function's; one without has that of the C++ function that it is in.
 */
#ifndef MAQ_SHIM_ELEMENTWISE_KERNEL_NAME_H
#define MAQ_SHIM_ELEMENTWISE_KERNEL_NAME_H

#include "shim/cuda/arithmetic/scalar_type.h"

enum vg_function_what {
    VG_NOTHING, /* nothing that is known */
    VG_FILL,
    VG_COPY,
    VG_NOT,
    VG_AND, /* of bits, as are the next two */
    VG_OR,
    VG_XOR,
    VG_BOTH, /* whether both are not zero */
    VG_EITHER,
    VG_WHERE,
    VG_PRODUCT,
    VG_WEIGHTED_SUM,
    VG_COMPARE_EQUAL, /* equal or not, by a word of the function */
    VG_COMPARE,       /* >= > <= <, by a word of the function */
    VG_RANGE          /* a first number and a step */
};
enum vg_function_form {
    VG_NO_FORM, /* another kernel */
    VG_CONTIGUOUS,
    VG_CONTIGUOUS_CAST, /* types in memory are others */
    VG_STRIDED,
    VG_STRIDED_CAST
};
struct vg_function {
    const char *name; /* of the kernel */
    enum vg_function_form form;
    enum vg_function_what what;
    enum vg_scalar_type in[3], out; /* of the function, not in memory */
    uint8_t operands;               /* tensors; the output is not one of them */
    uint8_t element;                /* bytes of one of the output, at most */
    enum { VG_NO_CONSTANT, VG_FIRST_IS, VG_SECOND_IS } constant;
};
/* Kept: names are never freed. With the lock held. */
const struct vg_function *vg_function_of(const char *name);

#endif
