/* SPDX-License-Identifier: Apache-2.0 */
/* cublaslt.h - what cuBLASLt's descriptors hold. They lie inside what the program set aside (abi/cublas.h). */
#ifndef MAQ_SHIM_MATH_CUBLASLT_H
#define MAQ_SHIM_MATH_CUBLASLT_H

#include "shim/abi/cublas.h"
#include "shim/math/attributes.h"
#include "shim/math/operator.h"

struct lt_layout {
    uint64_t rows, cols;
    int64_t ld, stride, plane;
    int32_t type, order, batch;
    uint32_t batch_mode;
};

struct lt_desc {
    int32_t compute, scale_type, pointer_mode, trans_a, trans_b, trans_c, fill_mode, sm_count;
    uint32_t epilogue;
    int32_t aux_type, bias_type;
    int8_t fast_accum;
    int32_t scale_mode[4]; /* of A, B, C, D */
    uint64_t scale[4];
    uint64_t bias, aux, amax_d, aux_scale, aux_amax;
    int64_t bias_stride, aux_ld, aux_stride, alpha_stride;
};

struct lt_preference {
    uint64_t max_workspace;
    uint32_t search_mode, reduction_mask, alignment[4];
    float max_waves;
};

struct lt_transform {
    int32_t scale_type, pointer_mode, trans_a, trans_b;
};

_Static_assert(sizeof(struct lt_layout) <= ABI_LT_LAYOUT_BYTES, "a layout fits");
_Static_assert(sizeof(struct lt_desc) <= ABI_LT_DESC_BYTES, "a descriptor fits");
_Static_assert(sizeof(struct lt_preference) <= ABI_LT_LAYOUT_BYTES, "a preference fits");

#endif
