/* SPDX-License-Identifier: Apache-2.0 */
/* check.h - a victim ends with the call that failed. */
#ifndef MAQ_TESTS_VICTIMS_CHECK_H
#define MAQ_TESTS_VICTIMS_CHECK_H

#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define OK(call)                                                                                                       \
    do {                                                                                                               \
        cudaError_t e = (call);                                                                                        \
        if (e != cudaSuccess) {                                                                                        \
            fprintf(stderr, "line %d: %s: %s\n", __LINE__, #call, cudaGetErrorString(e));                              \
            exit(1);                                                                                                   \
        }                                                                                                              \
    } while (0)

#endif
