/* SPDX-License-Identifier: Apache-2.0 */
/* cupti.h - the results of CUPTI that the zero-GPU device answers with ("CUPTI API", NVIDIA, CUDA 13.0). */
#ifndef MAQ_SHIM_ABI_CUPTI_H
#define MAQ_SHIM_ABI_CUPTI_H

enum abi_cupti_result {
    ABI_CUPTI_SUCCESS = 0,
    ABI_CUPTI_INVALID_PARAMETER = 1,
    ABI_CUPTI_MAX_LIMIT_REACHED = 12,
    ABI_CUPTI_QUEUE_EMPTY = 18,
    ABI_CUPTI_NOT_SUPPORTED = 27
};
enum { ABI_CUPTI_VERSION_13 = 130001, ABI_CUPTI_VERSION_12 = 26 }; /* CUPTI_API_VERSION: CUDA 13.0.1; CUDA 12.8 */

#endif
