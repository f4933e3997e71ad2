/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvtx.h - the injection interface of NVTX 3 (NVIDIA Tools Extension, nvtxDetail/nvtxTypes.h and nvToolsExt.h of CUDA 13.0).
 *
 * NVTX is part of the program. At its first call it loads the library that NVTX_INJECTION64_PATH names and gives it tables of
 * its own pointers to functions, to be set.
 */
#ifndef MAQ_SHIM_ABI_NVTX_H
#define MAQ_SHIM_ABI_NVTX_H

#include <stddef.h>
#include <stdint.h>

enum { ABI_NVTX_TABLE_CALLBACKS = 1 };
enum { ABI_NVTX_MODULE_CORE = 1, ABI_NVTX_MODULE_CORE2 = 5 };
enum abi_nvtx_core {
    ABI_NVTX_MARK_EX = 1,
    ABI_NVTX_MARK_A = 2,
    ABI_NVTX_RANGE_START_EX = 4,
    ABI_NVTX_RANGE_START_A = 5,
    ABI_NVTX_RANGE_END = 7,
    ABI_NVTX_RANGE_PUSH_EX = 8,
    ABI_NVTX_RANGE_PUSH_A = 9,
    ABI_NVTX_RANGE_POP = 11
};
enum abi_nvtx_core2 { ABI_NVTX_DOMAIN_PUSH_EX = 4, ABI_NVTX_DOMAIN_POP = 5, ABI_NVTX_DOMAIN_STRING_A = 10 };
enum { ABI_NVTX_MESSAGE_ASCII = 1, ABI_NVTX_MESSAGE_REGISTERED = 3 };

typedef void (*abi_nvtx_function)(void);
struct abi_nvtx_callbacks {
    size_t bytes;
    /* Pointers to the program's pointers, and how many. */
    int (*table_of)(int module, abi_nvtx_function ***table, unsigned *n);
};
struct abi_nvtx_attributes {
    uint16_t version, bytes;
    uint32_t category;
    int32_t color_type;
    uint32_t color;
    int32_t payload_type, zero;
    uint64_t payload;
    int32_t message_type;
    const void *message;
};

#endif
