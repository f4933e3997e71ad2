/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.h - the binary interface of NVIDIA's management library, as far as the zero-GPU device answers it.
 *
 * Facts of the documented interface ("NVML API Reference Guide", NVIDIA, r580): values of enumerations and layouts of
 * structures. Its header is part of no toolkit wheel; tests/test-programs/nvml.py reads them through NVIDIA's own binding.
 */
#ifndef MAQ_SHIM_ABI_NVML_H
#define MAQ_SHIM_ABI_NVML_H

#include <stdint.h>

enum abi_nvml_return {
    ABI_NVML_SUCCESS = 0,
    ABI_NVML_UNINITIALIZED = 1,
    ABI_NVML_INVALID_ARGUMENT = 2,
    ABI_NVML_NOT_SUPPORTED = 3,
    ABI_NVML_NO_PERMISSION = 4,
    ABI_NVML_NOT_FOUND = 6,
    ABI_NVML_INSUFFICIENT_SIZE = 7,
    ABI_NVML_DRIVER_NOT_LOADED = 9,
    ABI_NVML_FUNCTION_NOT_FOUND = 13,
    ABI_NVML_UNKNOWN = 999
};

struct abi_nvml_memory {
    uint64_t total, free, used;
};

struct abi_nvml_memory_v2 {
    uint32_t version;
    uint64_t total, reserved, free, used;
};

struct abi_nvml_pci {
    char legacy_bus_id[16];
    uint32_t domain, bus, device, device_id, subsystem_id;
    char bus_id[32];
};

struct abi_nvml_utilization {
    uint32_t gpu, memory;
};

/* Of nvmlDeviceGet...RunningProcesses_v2 and _v3; the first version ends after the memory. */
struct abi_nvml_process {
    uint32_t pid;
    uint64_t used_memory;
    uint32_t gpu_instance, compute_instance;
};
struct abi_nvml_process_v1 {
    uint32_t pid;
    uint64_t used_memory;
};

struct abi_nvml_sample {
    uint64_t time_us;
    uint64_t value; /* a union; NVML says of what in valueType */
};

enum abi_nvml_clock { ABI_NVML_CLOCK_GRAPHICS, ABI_NVML_CLOCK_SM, ABI_NVML_CLOCK_MEMORY, ABI_NVML_CLOCK_VIDEO };
enum { ABI_NVML_VALUE_UINT = 1 };
enum { ABI_NVML_TOPOLOGY_INTERNAL = 0, ABI_NVML_TOPOLOGY_SYSTEM = 50 };
enum { ABI_NVML_NVLINK_REMOTE_UNKNOWN = 255 };

#endif
