/* SPDX-License-Identifier: Apache-2.0 */
/*
 * function.c - what a program may ask about a kernel: attributes, and how many blocks of it an SM holds.
 *
 * Occupancy is the CUDA C++ Programming Guide's rule: warps, registers (in units of 256 per warp), shared memory (plus
 * 1 KiB per block that the system takes) and blocks of an SM, whichever ends first.
 */
#include "shim/cuda/cuda.h"

#include <string.h>

enum { WARP = 32, REGISTER_UNIT = 256, SHARED_STATIC_MOST = 49152 };

static const struct vg_kernel *prepared(void *handle)
{
    const struct vg_kernel *kernel = vg_kernel_of(handle);
    if (kernel != NULL)
        vg_kernel_prepare(kernel);
    return kernel;
}

static int device_attribute(int attribute)
{
    int value = 0;
    vg_attribute(&value, attribute, 0);
    return value;
}

static int max_threads(const struct vg_kernel *kernel)
{
    return kernel->code.max_threads > 0 ? (int)kernel->code.max_threads : 1024;
}

/* Without its code a kernel is taken to need 32 registers, a number at which registers limit nothing. */
static int registers(const struct vg_kernel *kernel)
{
    return kernel->code.registers > 0 ? (int)kernel->code.registers : 32;
}

VG_EXPORT int cudaFuncGetAttributes(struct vg_func_attributes *out, const void *function)
{
    const struct vg_kernel *kernel = prepared((void *)function);
    if (kernel == NULL)
        return vg_result(VG_INVALID_DEVICE_FUNCTION);
    memset(out, 0, sizeof *out);
    out->shared_bytes = kernel->code.shared_bytes;
    out->max_threads = max_threads(kernel);
    out->registers = registers(kernel);
    out->ptx_version = out->binary_version = (int)vg_card()->capability;
    out->max_dynamic_shared = kernel->max_dynamic_shared > 0 ? kernel->max_dynamic_shared
                                                             : SHARED_STATIC_MOST - (int)kernel->code.shared_bytes;
    out->carveout = kernel->carveout;
    out->non_portable_cluster = kernel->non_portable_cluster;
    return VG_OK;
}

enum { SHARED = 1, NUM_REGS = 4, PTX = 5, BINARY = 6, MAX_DYNAMIC = 8, CARVEOUT = 9, NON_PORTABLE = 14, LAST = 15 };

static int set(struct vg_kernel *kernel, int attribute, int value)
{
    if (kernel == NULL)
        return VG_INVALID_DEVICE_FUNCTION;
    if (attribute == MAX_DYNAMIC) {
        if (value < 0 || value + (int)kernel->code.shared_bytes > device_attribute(VG_ATTR_SHARED_OPTIN))
            return VG_INVALID_VALUE;
        kernel->max_dynamic_shared = value;
    } else if (attribute == CARVEOUT) {
        kernel->carveout = value;
    } else if (attribute == NON_PORTABLE) {
        kernel->non_portable_cluster = value;
    }
    return attribute >= MAX_DYNAMIC && attribute <= LAST ? VG_OK : VG_INVALID_VALUE;
}

VG_EXPORT int cudaFuncSetAttribute(const void *function, int attribute, int value)
{
    return vg_result(set(vg_kernel_of((void *)function), attribute, value));
}

VG_EXPORT int cudaKernelSetAttributeForDevice(void *kernel, int attribute, int value, int device)
{
    (void)device;
    return vg_result(set(vg_kernel_of(kernel), attribute, value));
}

VG_EXPORT int cuFuncSetAttribute(void *function, int attribute, int value)
{
    return set(vg_kernel_of(function), attribute, value);
}

VG_EXPORT int cuKernelSetAttribute(int attribute, int value, void *kernel, int device)
{
    (void)device;
    return set(vg_kernel_of(kernel), attribute, value);
}

VG_EXPORT int cuFuncGetAttribute(int *value, int attribute, void *function)
{
    struct vg_func_attributes a;
    if (cudaFuncGetAttributes(&a, function) != VG_OK)
        return VG_INVALID_HANDLE;
    const int values[] = {a.max_threads,
                          (int)a.shared_bytes,
                          (int)a.const_bytes,
                          (int)a.local_bytes,
                          a.registers,
                          a.ptx_version,
                          a.binary_version,
                          a.cache_mode_ca,
                          a.max_dynamic_shared,
                          a.carveout,
                          0,
                          0,
                          0,
                          0,
                          a.non_portable_cluster,
                          0};
    if (attribute < 0 || attribute > LAST)
        return VG_INVALID_VALUE;
    *value = values[attribute];
    return VG_OK;
}

VG_EXPORT int cuKernelGetAttribute(int *value, int attribute, void *kernel, int device)
{
    (void)device;
    return cuFuncGetAttribute(value, attribute, kernel);
}

VG_EXPORT int cudaFuncSetCacheConfig(const void *function, int config)
{
    (void)config;
    return vg_result(vg_kernel_of((void *)function) != NULL ? VG_OK : VG_INVALID_DEVICE_FUNCTION);
}

VG_EXPORT int cuFuncSetCacheConfig(void *function, int config)
{
    return cudaFuncSetCacheConfig(function, config);
}

VG_EXPORT int cudaFuncGetName(const char **name, const void *function)
{
    const struct vg_kernel *kernel = vg_kernel_of((void *)function);
    *name = kernel != NULL ? kernel->name : NULL;
    return vg_result(kernel != NULL ? VG_OK : VG_INVALID_DEVICE_FUNCTION);
}

VG_EXPORT int cuFuncGetName(const char **name, void *function)
{
    return cudaFuncGetName(name, function);
}

VG_EXPORT int cuKernelGetName(const char **name, void *kernel)
{
    return cudaFuncGetName(name, kernel);
}

VG_EXPORT int cuFuncGetParamInfo(void *function, size_t index, size_t *offset, size_t *bytes)
{
    const struct vg_kernel *kernel = prepared(function);
    if (kernel == NULL || index >= kernel->code.n_params)
        return VG_INVALID_VALUE;
    *offset = kernel->code.param[index].offset;
    if (bytes != NULL)
        *bytes = kernel->code.param[index].bytes;
    return VG_OK;
}

VG_EXPORT int cudaFuncGetParamInfo(const void *function, size_t index, size_t *offset, size_t *bytes)
{
    return vg_result(cuFuncGetParamInfo((void *)function, index, offset, bytes));
}

/* --- occupancy ------------------------------------------------------------------------------------------------------------ */

static int least(int a, int b)
{
    return a < b ? a : b;
}

static int blocks_per_sm(const struct vg_kernel *kernel, int threads, size_t dynamic)
{
    int warps = (threads + WARP - 1) / WARP;
    int per_warp = (registers(kernel) * WARP + REGISTER_UNIT - 1) / REGISTER_UNIT * REGISTER_UNIT;
    size_t shared = kernel->code.shared_bytes + dynamic + VG_RESERVED_SHARED;
    int by_threads = device_attribute(VG_ATTR_THREADS_PER_SM) / WARP / warps;
    int by_registers = device_attribute(VG_ATTR_REGISTERS_PER_SM) / (per_warp * warps);
    int by_shared = (int)((size_t)device_attribute(VG_ATTR_SHARED_PER_SM) / shared);
    return least(least(by_threads, by_registers), least(by_shared, device_attribute(VG_ATTR_BLOCKS_PER_SM)));
}

VG_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *function, int threads,
                                                                     size_t dynamic, unsigned flags)
{
    (void)flags;
    const struct vg_kernel *kernel = prepared((void *)function);
    if (kernel == NULL)
        return vg_result(VG_INVALID_DEVICE_FUNCTION);
    if (threads <= 0 || threads > max_threads(kernel))
        return vg_result(VG_INVALID_VALUE);
    *blocks = blocks_per_sm(kernel, threads, dynamic);
    return VG_OK;
}

VG_EXPORT int cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *function, int threads,
                                                            size_t dynamic)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic, 0);
}

VG_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, void *function, int threads, size_t dynamic)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic, 0);
}

VG_EXPORT int cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, void *function, int threads,
                                                                   size_t dynamic, unsigned flags)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, function, threads, dynamic, flags);
}

VG_EXPORT int cuOccupancyMaxPotentialBlockSize(int *grid, int *block, void *function, size_t (*dynamic_of)(int),
                                               size_t dynamic, int limit)
{
    const struct vg_kernel *kernel = prepared(function);
    int best = 0;
    if (kernel == NULL)
        return VG_INVALID_HANDLE;
    int most = limit > 0 ? least(limit, max_threads(kernel)) : max_threads(kernel);
    *grid = *block = 0;
    for (int threads = most / WARP * WARP; threads >= WARP; threads -= WARP) {
        int blocks = blocks_per_sm(kernel, threads, dynamic_of != NULL ? dynamic_of(threads) : dynamic);
        if (blocks * threads > best) {
            best = blocks * threads;
            *block = threads;
            *grid = blocks * device_attribute(VG_ATTR_SMS);
        }
    }
    return VG_OK;
}

VG_EXPORT int cudaOccupancyAvailableDynamicSMemPerBlock(size_t *bytes, const void *function, int blocks, int threads)
{
    (void)threads;
    const struct vg_kernel *kernel = prepared((void *)function);
    if (kernel == NULL || blocks <= 0)
        return vg_result(VG_INVALID_VALUE);
    size_t each = (size_t)(device_attribute(VG_ATTR_SHARED_PER_SM) / blocks);
    size_t taken = kernel->code.shared_bytes + VG_RESERVED_SHARED;
    *bytes = each > taken ? each - taken : 0;
    return VG_OK;
}

/* Blocks of a cluster share a GPC; how many of them a device's GPCs hold differs from chip to chip. This is the
 * upper bound that SMs give. */
static int clusters(int *n, void *function, struct vg_dim3 block, size_t dynamic, const struct vg_launch_attribute *a,
                    unsigned n_attributes)
{
    int size = 1, blocks = 0;
    for (unsigned i = 0; i < n_attributes; i++)
        if (a[i].id == VG_ATTRIBUTE_CLUSTER)
            size = (int)(a[i].value.cluster.x * a[i].value.cluster.y * a[i].value.cluster.z);
    int status = cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function,
                                                                        (int)(block.x * block.y * block.z), dynamic, 0);
    if (status == VG_OK)
        *n = blocks * device_attribute(VG_ATTR_SMS) / (size > 0 ? size : 1);
    return status;
}

VG_EXPORT int cudaOccupancyMaxActiveClusters(int *n, const void *function, const struct vg_launch_config *c)
{
    return clusters(n, (void *)function, c->block, c->shared, c->attributes, c->n_attributes);
}

VG_EXPORT int cuOccupancyMaxActiveClusters(int *n, void *function, const struct vg_driver_config *c)
{
    return clusters(n, function, c->block, c->shared, c->attributes, c->n_attributes);
}

/* 8 blocks is the portable size, 16 what Hopper takes when asked: CUDA C++ Programming Guide, thread block clusters. */
VG_EXPORT int cudaOccupancyMaxPotentialClusterSize(int *size, const void *function, const struct vg_launch_config *c)
{
    (void)c;
    const struct vg_kernel *kernel = vg_kernel_of((void *)function);
    *size = kernel != NULL && kernel->non_portable_cluster ? 16 : 8;
    return vg_result(kernel != NULL ? VG_OK : VG_INVALID_DEVICE_FUNCTION);
}

VG_EXPORT int cuOccupancyMaxPotentialClusterSize(int *size, void *function, const struct vg_driver_config *c)
{
    (void)c;
    return cudaOccupancyMaxPotentialClusterSize(size, function, NULL);
}
