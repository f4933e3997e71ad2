/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cublas.h - the binary interface of cuBLAS and cuBLASLt, as far as the zero-GPU device answers it.
 *
 * Values and sizes are facts of the documented interface ("cuBLAS", NVIDIA, CUDA 13.0 and 12.8, chapters 2 and 3;
 * library_types.h for element types); tests/victims/abi_math.c holds them against the toolkit's headers where there is
 * one. Enumerations are passed as int. cuBLAS 12 and 13 agree in everything here.
 */
#ifndef MAQ_SHIM_ABI_CUBLAS_H
#define MAQ_SHIM_ABI_CUBLAS_H

#include <stddef.h>
#include <stdint.h>

/* Element types (cudaDataType). Complex and integer types of less use have no name here. */
enum abi_data_type {
    ABI_R_32F = 0,
    ABI_R_64F = 1,
    ABI_R_16F = 2,
    ABI_R_8I = 3,
    ABI_C_32F = 4,
    ABI_C_64F = 5,
    ABI_C_16F = 6,
    ABI_C_8I = 7,
    ABI_R_8U = 8,
    ABI_C_8U = 9,
    ABI_R_32I = 10,
    ABI_C_32I = 11,
    ABI_R_32U = 12,
    ABI_C_32U = 13,
    ABI_R_16BF = 14,
    ABI_C_16BF = 15,
    ABI_R_4I = 16,
    ABI_R_4U = 18,
    ABI_R_16I = 20,
    ABI_R_16U = 22,
    ABI_R_64I = 24,
    ABI_C_64I = 25,
    ABI_R_64U = 26,
    ABI_C_64U = 27,
    ABI_R_8F_E4M3 = 28,
    ABI_R_8F_E5M2 = 29,
    ABI_R_8F_UE8M0 = 30,
    ABI_R_6F_E2M3 = 31,
    ABI_R_6F_E3M2 = 32,
    ABI_R_4F_E2M1 = 33
};

enum abi_cublas_status {
    ABI_CUBLAS_SUCCESS = 0,
    ABI_CUBLAS_NOT_INITIALIZED = 1,
    ABI_CUBLAS_ALLOC_FAILED = 3,
    ABI_CUBLAS_INVALID_VALUE = 7,
    ABI_CUBLAS_ARCH_MISMATCH = 8,
    ABI_CUBLAS_MAPPING_ERROR = 11,
    ABI_CUBLAS_EXECUTION_FAILED = 13,
    ABI_CUBLAS_INTERNAL_ERROR = 14,
    ABI_CUBLAS_NOT_SUPPORTED = 15,
    ABI_CUBLAS_LICENSE_ERROR = 16
};

enum abi_cublas_pointer_mode { ABI_POINTERS_OF_HOST = 0, ABI_POINTERS_OF_DEVICE = 1 };

/* cublasMath_t: the low bits are one of these, flags stand above. */
enum abi_cublas_math { ABI_MATH_DEFAULT = 0, ABI_MATH_TENSOR_OP = 1, ABI_MATH_PEDANTIC = 2, ABI_MATH_TF32 = 3 };

enum abi_cublas_compute {
    ABI_COMPUTE_16F = 64,
    ABI_COMPUTE_16F_PEDANTIC = 65,
    ABI_COMPUTE_32F = 68,
    ABI_COMPUTE_32F_PEDANTIC = 69,
    ABI_COMPUTE_64F = 70,
    ABI_COMPUTE_64F_PEDANTIC = 71,
    ABI_COMPUTE_32I = 72,
    ABI_COMPUTE_32I_PEDANTIC = 73,
    ABI_COMPUTE_32F_FAST_16F = 74,
    ABI_COMPUTE_32F_FAST_16BF = 75,
    ABI_COMPUTE_32F_FAST_TF32 = 77
};

/* --- cuBLASLt --------------------------------------------------------------------------------------------------------- */

/* Descriptors that a program may keep on its stack; what is in them is the library's. The least that a release of CUDA 12
 * or 13 has set aside (a layout has grown in 13.2, a descriptor in 12.6), and enough for any of them. */
#define ABI_LT_LAYOUT_BYTES (8u * 8) /* a preference and a transformation as well */
#define ABI_LT_DESC_BYTES (23u * 8)
#define ABI_LT_MOST_BYTES (64u * 8)

struct abi_lt_algo {
    uint64_t data[8];
};
struct abi_lt_heuristic {
    struct abi_lt_algo algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
};

enum abi_lt_layout_attribute {
    ABI_LT_LAYOUT_TYPE = 0,
    ABI_LT_LAYOUT_ORDER = 1,
    ABI_LT_LAYOUT_ROWS = 2,
    ABI_LT_LAYOUT_COLS = 3,
    ABI_LT_LAYOUT_LD = 4,
    ABI_LT_LAYOUT_BATCH = 5,
    ABI_LT_LAYOUT_STRIDE = 6,
    ABI_LT_LAYOUT_PLANE = 7,
    ABI_LT_LAYOUT_BATCH_MODE = 8
};

enum abi_lt_desc_attribute {
    ABI_LT_COMPUTE_TYPE = 0,
    ABI_LT_SCALE_TYPE = 1,
    ABI_LT_POINTER_MODE = 2,
    ABI_LT_TRANS_A = 3,
    ABI_LT_TRANS_B = 4,
    ABI_LT_TRANS_C = 5,
    ABI_LT_FILL_MODE = 6,
    ABI_LT_EPILOGUE = 7,
    ABI_LT_BIAS = 8,
    ABI_LT_BIAS_STRIDE = 10,
    ABI_LT_AUX = 11,
    ABI_LT_AUX_LD = 12,
    ABI_LT_AUX_STRIDE = 13,
    ABI_LT_ALPHA_STRIDE = 14,
    ABI_LT_SM_COUNT = 15,
    ABI_LT_A_SCALE = 17,
    ABI_LT_B_SCALE = 18,
    ABI_LT_C_SCALE = 19,
    ABI_LT_D_SCALE = 20,
    ABI_LT_AMAX_D = 21,
    ABI_LT_AUX_TYPE = 22,
    ABI_LT_AUX_SCALE = 23,
    ABI_LT_AUX_AMAX = 24,
    ABI_LT_FAST_ACCUM = 25,
    ABI_LT_BIAS_TYPE = 26,
    ABI_LT_A_SCALE_MODE = 31,
    ABI_LT_B_SCALE_MODE = 32,
    ABI_LT_C_SCALE_MODE = 33,
    ABI_LT_D_SCALE_MODE = 34
};

/* cublasLtEpilogue_t is a set of these. */
enum abi_lt_epilogue {
    ABI_LT_DEFAULT = 1,
    ABI_LT_RELU = 2,
    ABI_LT_ADDS_BIAS = 4,
    ABI_LT_DRELU = 8,
    ABI_LT_BGRAD = 16,
    ABI_LT_GELU = 32,
    ABI_LT_DGELU = 64,
    ABI_LT_USES_AUX = 128,
    ABI_LT_BGRAD_A = 256,
    ABI_LT_BGRAD_B = 512
};

enum abi_lt_pointer_mode { ABI_LT_ALPHA_DEVICE_BETA_ZERO = 3, ABI_LT_ALPHA_DEVICE_BETA_HOST = 4 };
enum abi_lt_preference_attribute { ABI_LT_MAX_WORKSPACE = 1 };
enum abi_lt_order { ABI_LT_ORDER_COL = 0, ABI_LT_ORDER_ROW = 1 };

#endif
