/* SPDX-License-Identifier: Apache-2.0 */
/*
 * settings.c - calls that set or read what changes nothing here: attributes of streams and graph nodes, shared-memory banks
 * (CUDA 12), attributes of managed ranges, and older names of the same calls.
 */
#include "shim/cuda/cuda.h"

#include <string.h>

enum { ATTRIBUTE_BYTES = sizeof(((struct vg_launch_attribute *)0)->value) };

VG_EXPORT int cudaStreamGetAttribute(void *stream, int attribute, void *value)
{
    (void)attribute;
    memset(value, 0, ATTRIBUTE_BYTES);
    return vg_result(vg_stream_of(stream) != NULL ? VG_OK : VG_INVALID_HANDLE);
}

VG_EXPORT int cudaGraphKernelNodeSetAttribute(void *node, int attribute, const void *value)
{
    (void)node, (void)attribute, (void)value;
    return VG_OK;
}

VG_EXPORT int cudaGraphKernelNodeGetAttribute(void *node, int attribute, void *value)
{
    (void)node, (void)attribute;
    memset(value, 0, ATTRIBUTE_BYTES);
    return VG_OK;
}

VG_EXPORT int cudaGraphKernelNodeCopyAttributes(void *to, void *from)
{
    (void)to, (void)from;
    return VG_OK;
}

VG_EXPORT int cudaDeviceSetGraphMemAttribute(int device, int attribute, void *value)
{
    (void)device, (void)attribute, (void)value;
    return VG_OK;
}

VG_EXPORT int cudaMemRangeGetAttribute(void *out, size_t bytes, int attribute, const void *p, size_t n)
{
    struct vg_alloc a;
    (void)attribute, (void)n;
    memset(out, 0, bytes);
    return vg_result(vg_mem_find(p, &a) && a.kind == MAQ_REC_MANAGED ? VG_OK : VG_INVALID_VALUE);
}

VG_EXPORT int cudaFuncSetSharedMemConfig(const void *function, int config)
{
    (void)config;
    return vg_result(vg_kernel_of((void *)function) != NULL ? VG_OK : VG_INVALID_DEVICE_FUNCTION);
}

VG_EXPORT int cudaDeviceSetSharedMemConfig(int config)
{
    (void)config;
    return VG_OK;
}

VG_EXPORT int cudaDeviceGetSharedMemConfig(int *config)
{
    *config = 1; /* banks of four bytes */
    return VG_OK;
}

int cudaDeviceSynchronize(void);

VG_EXPORT int cudaThreadSynchronize(void)
{
    return cudaDeviceSynchronize();
}

VG_EXPORT int cudaThreadExit(void)
{
    return cudaDeviceSynchronize();
}
