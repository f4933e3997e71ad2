/* SPDX-License-Identifier: Apache-2.0 */
/* nvrtc.h - the results of NVRTC that the zero-GPU device answers with ("NVRTC", NVIDIA, CUDA 13.0). */
#ifndef MAQ_SHIM_ABI_NVRTC_H
#define MAQ_SHIM_ABI_NVRTC_H

enum abi_nvrtc_result {
    ABI_NVRTC_SUCCESS = 0,
    ABI_NVRTC_OUT_OF_MEMORY = 1,
    ABI_NVRTC_INVALID_INPUT = 3,
    ABI_NVRTC_INVALID_PROGRAM = 4,
    ABI_NVRTC_COMPILATION = 6,
    ABI_NVRTC_NO_LOWERED_NAMES_BEFORE_COMPILATION = 9,
    ABI_NVRTC_NAME_EXPRESSION_NOT_VALID = 10
};

#endif
