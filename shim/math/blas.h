/* SPDX-License-Identifier: Apache-2.0 */
/* blas.h - a cuBLAS handle, and what the files of cuBLAS share. */
#ifndef MAQ_SHIM_MATH_BLAS_H
#define MAQ_SHIM_MATH_BLAS_H

#include "shim/abi/cublas.h"
#include "shim/math/operator.h"

struct blas {
    uint64_t magic;
    void *stream;
    void *workspace;
    size_t workspace_bytes;
    int pointer_mode, math_mode, atomics_mode, sm_target, emulation;
};
/* NULL when it is not a live handle. */
struct blas *blas_of(void *handle);

/* Whether a scalar adds nothing: zero where the host can see it; NULL; and what a device pointer refers to counts as not
 * zero, unless the memory behind it can be read. */
bool blas_is_zero(const void *scalar, size_t bytes, bool on_device);

/* What cuBLAS' own version counts: 13.0 is 130000. */
int blas_version(void);

#endif
