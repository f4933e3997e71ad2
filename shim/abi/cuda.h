/* SPDX-License-Identifier: Apache-2.0 */
/*
 * abi/cuda.h - the part of CUDA's binary interface that the zero-GPU device speaks, in our own words: sizes, orders and
 * numbers as the CUDA C++ documentation of the runtime and driver API has them, so that nobody needs a toolkit. tests/
 * test_shim_abi.py compares it with the toolkit's headers where there are any.
 *
 * Handles are pointers: cudaStream_t and CUstream are `void *` here, and so are events, graphs, kernels and functions. Errors
 * are int; those that the runtime and the driver share have one number.
 */
#ifndef MAQ_SHIM_ABI_CUDA_H
#define MAQ_SHIM_ABI_CUDA_H

#include <stddef.h>
#include <stdint.h>

enum vg_cuda_error {
    VG_OK = 0,
    VG_INVALID_VALUE = 1,
    VG_OUT_OF_MEMORY = 2,
    VG_NOT_INITIALIZED = 3,
    VG_INVALID_CONFIGURATION = 9,
    VG_INVALID_SYMBOL = 13,
    VG_INVALID_DEVICE_FUNCTION = 98,
    VG_NO_DEVICE = 100,
    VG_INVALID_DEVICE = 101,
    VG_INVALID_IMAGE = 200,
    VG_INVALID_CONTEXT = 201,
    VG_FILE_NOT_FOUND = 301,
    VG_INVALID_HANDLE = 400,
    VG_NOT_FOUND = 500,
    VG_NOT_READY = 600,
    VG_PEER_ACCESS_ALREADY_ENABLED = 704,
    VG_PEER_ACCESS_NOT_ENABLED = 705,
    VG_ALREADY_REGISTERED = 712,
    VG_NOT_REGISTERED = 713,
    VG_LAUNCH_FAILURE = 719,
    VG_NOT_SUPPORTED = 801,
    VG_CAPTURE_UNSUPPORTED = 900,
    VG_CAPTURE_INVALIDATED = 901,
    VG_CAPTURE_UNMATCHED = 903,
    VG_CAPTURE_UNJOINED = 904,
    VG_CAPTURE_IMPLICIT = 906,
    VG_GRAPH_UPDATE_FAILURE = 910,
    VG_UNKNOWN = 999
};

struct vg_dim3 {
    uint32_t x, y, z;
};

enum vg_copy_kind { VG_COPY_H2H, VG_COPY_H2D, VG_COPY_D2H, VG_COPY_D2D, VG_COPY_DEFAULT };
enum vg_memory_type { VG_MEMORY_UNREGISTERED, VG_MEMORY_HOST, VG_MEMORY_DEVICE, VG_MEMORY_MANAGED };

struct vg_pointer_attributes { /* struct cudaPointerAttributes */
    int type, device;
    void *on_device, *on_host;
    long reserved[8]; /* since CUDA 13 */
};

struct vg_func_attributes { /* struct cudaFuncAttributes */
    size_t shared_bytes, const_bytes, local_bytes;
    int max_threads, registers, ptx_version, binary_version, cache_mode_ca, max_dynamic_shared, carveout;
    int cluster_must_be_set, cluster_width, cluster_height, cluster_depth, cluster_policy, non_portable_cluster;
    int reserved[16];
};

struct vg_location { /* struct cudaMemLocation, CUmemLocation */
    int type, id;
};
struct vg_access { /* struct cudaMemAccessDesc */
    struct vg_location location;
    int flags;
};

struct vg_launch_attribute { /* cudaLaunchAttribute, CUlaunchAttribute */
    int id;
    int pad;
    union {
        char bytes[64];
        struct vg_dim3 cluster;
        int number;
    } value;
};
enum { VG_ATTRIBUTE_COOPERATIVE = 2, VG_ATTRIBUTE_CLUSTER = 4 };
struct vg_launch_config { /* cudaLaunchConfig_t */
    struct vg_dim3 grid, block;
    size_t shared;
    void *stream;
    struct vg_launch_attribute *attributes;
    unsigned n_attributes;
};
struct vg_driver_config { /* CUlaunchConfig */
    struct vg_dim3 grid, block;
    unsigned shared;
    void *stream;
    struct vg_launch_attribute *attributes;
    unsigned n_attributes;
};

struct vg_kernel_node { /* struct cudaKernelNodeParams */
    void *function;
    struct vg_dim3 grid, block;
    unsigned shared;
    void **args, **extra;
};
struct vg_memset_node { /* struct cudaMemsetParams */
    void *to;
    size_t pitch;
    unsigned value, element;
    size_t width, height;
};
struct vg_host_node { /* struct cudaHostNodeParams */
    void (*function)(void *);
    void *data;
};
struct vg_pitched { /* struct cudaPitchedPtr */
    void *p;
    size_t pitch, width, height;
};
struct vg_extent { /* struct cudaExtent, struct cudaPos */
    size_t x, y, z;
};
struct vg_copy_3d { /* struct cudaMemcpy3DParms */
    void *from_array;
    struct vg_extent from_at;
    struct vg_pitched from;
    void *to_array;
    struct vg_extent to_at;
    struct vg_pitched to;
    struct vg_extent extent;
    int kind;
};
struct vg_copy_2d { /* CUDA_MEMCPY2D */
    size_t from_x, from_y;
    int from_type;
    const void *from_host;
    uint64_t from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_type;
    void *to_host;
    uint64_t to_device;
    void *to_array;
    size_t to_pitch, width, height;
};
struct vg_instantiate { /* cudaGraphInstantiateParams */
    unsigned long long flags;
    void *upload, *error_node;
    int result;
};
struct vg_update_result { /* cudaGraphExecUpdateResultInfo */
    int result;
    void *node, *from;
};
struct vg_ipc { /* cudaIpcMemHandle_t, cudaIpcEventHandle_t */
    char reserved[64];
};
struct vg_uuid {
    unsigned char bytes[16];
};

/* struct cudaDeviceProp. CUDA 13 took out what V12() has; the rest keeps its order. X(type, member, array). */
#define VG_DEVICE_PROP(X, V12)                                                                                         \
    X(char, name, [256])                                                                                               \
    X(unsigned char, uuid, [16])                                                                                       \
    X(char, luid, [8])                                                                                                 \
    X(unsigned, luid_nodes, )                                                                                          \
    X(size_t, memory, )                                                                                                \
    X(size_t, shared_per_block, )                                                                                      \
    X(int, registers_per_block, )                                                                                      \
    X(int, warp, )                                                                                                     \
    X(size_t, pitch, )                                                                                                 \
    X(int, threads_per_block, )                                                                                        \
    X(int, block, [3])                                                                                                 \
    X(int, grid, [3])                                                                                                  \
    V12(int, clock_khz, )                                                                                              \
    X(size_t, constant, )                                                                                              \
    X(int, major, )                                                                                                    \
    X(int, minor, )                                                                                                    \
    X(size_t, texture_alignment, )                                                                                     \
    X(size_t, texture_pitch, )                                                                                         \
    V12(int, overlap, )                                                                                                \
    X(int, sms, )                                                                                                      \
    V12(int, timeout, )                                                                                                \
    X(int, integrated, )                                                                                               \
    X(int, map_host, )                                                                                                 \
    V12(int, compute_mode, )                                                                                           \
    X(int, texture_1d, )                                                                                               \
    X(int, texture_1d_mipmap, )                                                                                        \
    V12(int, texture_1d_linear, )                                                                                      \
    X(int, textures, [23])                                                                                             \
    X(int, surfaces, [14])                                                                                             \
    X(size_t, surface_alignment, )                                                                                     \
    X(int, concurrent_kernels, )                                                                                       \
    X(int, ecc, )                                                                                                      \
    X(int, pci_bus, )                                                                                                  \
    X(int, pci_device, )                                                                                               \
    X(int, pci_domain, )                                                                                               \
    X(int, tcc, )                                                                                                      \
    X(int, copy_engines, )                                                                                             \
    X(int, unified, )                                                                                                  \
    V12(int, memory_khz, )                                                                                             \
    X(int, bus_bits, )                                                                                                 \
    X(int, l2, )                                                                                                       \
    X(int, l2_persisting, )                                                                                            \
    X(int, threads_per_sm, )                                                                                           \
    X(int, priorities, )                                                                                               \
    X(int, l1_global, )                                                                                                \
    X(int, l1_local, )                                                                                                 \
    X(size_t, shared_per_sm, )                                                                                         \
    X(int, registers_per_sm, )                                                                                         \
    X(int, managed, )                                                                                                  \
    X(int, multi_gpu_board, )                                                                                          \
    X(int, multi_gpu_group, )                                                                                          \
    X(int, host_atomics, )                                                                                             \
    V12(int, single_to_double, )                                                                                       \
    X(int, pageable, )                                                                                                 \
    X(int, concurrent_managed, )                                                                                       \
    X(int, preemption, )                                                                                               \
    X(int, registered_host_pointer, )                                                                                  \
    X(int, cooperative, )                                                                                              \
    V12(int, cooperative_multi, )                                                                                      \
    X(size_t, shared_optin, )                                                                                          \
    X(int, pageable_tables, )                                                                                          \
    X(int, direct_managed, )                                                                                           \
    X(int, blocks_per_sm, )                                                                                            \
    X(int, policy_window, )                                                                                            \
    X(size_t, shared_reserved, )                                                                                       \
    X(int, host_register, )                                                                                            \
    X(int, sparse, )                                                                                                   \
    X(int, host_register_readonly, )                                                                                   \
    X(int, timeline_semaphores, )                                                                                      \
    X(int, pools, )                                                                                                    \
    X(int, rdma, )                                                                                                     \
    X(unsigned, rdma_flush, )                                                                                          \
    X(int, rdma_ordering, )                                                                                            \
    X(unsigned, pool_handles, )                                                                                        \
    X(int, deferred_mapping, )                                                                                         \
    X(int, ipc_events, )                                                                                               \
    X(int, clusters, )                                                                                                 \
    X(int, unified_functions, )
#define VG_MEMBER(type, name, array) type name array;
#define VG_NO_MEMBER(type, name, array)

struct vg_prop_13 {
    VG_DEVICE_PROP(VG_MEMBER, VG_NO_MEMBER)
    int numa_config, numa_id, mps, host_numa;
    unsigned gpu_pci_device, gpu_pci_subsystem;
    int host_numa_ipc;
    int reserved[56];
};
struct vg_prop_12 {
    VG_DEVICE_PROP(VG_MEMBER, VG_MEMBER)
    int numa_config, numa_id; /* in early releases reserved, as all that follows */
    int reserved[61];
};
_Static_assert(sizeof(struct vg_prop_13) == 1008 && sizeof(struct vg_prop_12) == 1032, "struct cudaDeviceProp");

/* enum cudaDeviceAttr and CUdevice_attribute, which have the same numbers; those that the device answers with more than 0. */
enum vg_device_attribute {
    VG_ATTR_THREADS_PER_BLOCK = 1,
    VG_ATTR_BLOCK_X = 2,
    VG_ATTR_BLOCK_Y = 3,
    VG_ATTR_BLOCK_Z = 4,
    VG_ATTR_GRID_X = 5,
    VG_ATTR_GRID_Y = 6,
    VG_ATTR_GRID_Z = 7,
    VG_ATTR_SHARED_PER_BLOCK = 8,
    VG_ATTR_CONSTANT = 9,
    VG_ATTR_WARP = 10,
    VG_ATTR_PITCH = 11,
    VG_ATTR_REGISTERS_PER_BLOCK = 12,
    VG_ATTR_CLOCK_KHZ = 13,
    VG_ATTR_TEXTURE_ALIGNMENT = 14,
    VG_ATTR_OVERLAP = 15,
    VG_ATTR_SMS = 16,
    VG_ATTR_MAP_HOST = 19,
    VG_ATTR_CONCURRENT_KERNELS = 31,
    VG_ATTR_ECC = 32,
    VG_ATTR_PCI_BUS = 33,
    VG_ATTR_PCI_DEVICE = 34,
    VG_ATTR_MEMORY_KHZ = 36,
    VG_ATTR_BUS_BITS = 37,
    VG_ATTR_L2 = 38,
    VG_ATTR_THREADS_PER_SM = 39,
    VG_ATTR_COPY_ENGINES = 40,
    VG_ATTR_UNIFIED = 41,
    VG_ATTR_TEXTURE_PITCH = 51,
    VG_ATTR_MAJOR = 75,
    VG_ATTR_MINOR = 76,
    VG_ATTR_PRIORITIES = 78,
    VG_ATTR_L1_GLOBAL = 79,
    VG_ATTR_L1_LOCAL = 80,
    VG_ATTR_SHARED_PER_SM = 81,
    VG_ATTR_REGISTERS_PER_SM = 82,
    VG_ATTR_MANAGED = 83,
    VG_ATTR_SINGLE_TO_DOUBLE = 87,
    VG_ATTR_PAGEABLE = 88,
    VG_ATTR_CONCURRENT_MANAGED = 89,
    VG_ATTR_PREEMPTION = 90,
    VG_ATTR_REGISTERED_HOST_POINTER = 91,
    VG_ATTR_COOPERATIVE = 95,
    VG_ATTR_SHARED_OPTIN = 97,
    VG_ATTR_HOST_REGISTER = 99,
    VG_ATTR_VMM = 102,
    VG_ATTR_VMM_FD_HANDLES = 103,
    VG_ATTR_BLOCKS_PER_SM = 106,
    VG_ATTR_L2_PERSISTING = 108,
    VG_ATTR_POLICY_WINDOW = 109,
    VG_ATTR_SHARED_RESERVED = 111,
    VG_ATTR_POOLS = 115,
    VG_ATTR_POOL_HANDLES = 119,
    VG_ATTR_CLUSTERS = 120,
    VG_ATTR_IPC_EVENTS = 125,
    VG_ATTR_UNIFIED_FUNCTIONS = 129
};

#endif
