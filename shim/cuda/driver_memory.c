/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver_memory.c - memory and copies of libcuda.so.1: the runtime's, with addresses as numbers.
 */
#include <string.h>

#include "shim/core/memory.h"
#include "shim/cuda/runtime.h"

/* --- memory ---------------------------------------------------------------------------------------------------------------------- */

VG_EXPORT int cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    return cudaMemGetInfo(free_bytes, total);
}

VG_EXPORT int cuMemAlloc_v2(uint64_t *p, size_t bytes)
{
    return bytes > 0 ? cudaMalloc((void **)p, bytes) : VG_INVALID_VALUE;
}

VG_EXPORT int cuMemAllocManaged(uint64_t *p, size_t bytes, unsigned flags)
{
    return cudaMallocManaged((void **)p, bytes, flags);
}

VG_EXPORT int cuMemAllocHost_v2(void **p, size_t bytes)
{
    return cudaMallocHost(p, bytes);
}

VG_EXPORT int cuMemHostAlloc(void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    return cudaMallocHost(p, bytes);
}

VG_EXPORT int cuMemAllocAsync(uint64_t *p, size_t bytes, void *stream)
{
    return cudaMallocAsync((void **)p, bytes, stream);
}

VG_EXPORT int cuMemFree_v2(uint64_t p)
{
    return cudaFree(vg_at(p));
}

VG_EXPORT int cuMemFreeHost(void *p)
{
    return cudaFree(p);
}

VG_EXPORT int cuMemFreeAsync(uint64_t p, void *stream)
{
    return cudaFreeAsync(vg_at(p), stream);
}

VG_EXPORT int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t p)
{
    struct vg_alloc a;
    if (!vg_mem_find(vg_at(p), &a))
        return VG_NOT_FOUND;
    if (base != NULL)
        *base = a.base;
    if (bytes != NULL)
        *bytes = a.bytes;
    return VG_OK;
}

VG_EXPORT int cuMemHostRegister_v2(void *p, size_t bytes, unsigned flags)
{
    return cudaHostRegister(p, bytes, flags);
}

VG_EXPORT int cuMemHostUnregister(void *p)
{
    return cudaHostUnregister(p);
}

VG_EXPORT int cuMemHostGetDevicePointer_v2(uint64_t *device, void *host, unsigned flags)
{
    (void)flags;
    *device = (uintptr_t)host;
    return VG_OK;
}

VG_EXPORT int cuIpcGetMemHandle(struct vg_ipc *out, uint64_t p)
{
    return cudaIpcGetMemHandle(out, vg_at(p));
}

enum {
    P_CONTEXT = 1,
    P_TYPE,
    P_DEVICE,
    P_HOST,
    P_BUFFER_ID = 7,
    P_MANAGED,
    P_ORDINAL,
    P_IPC,
    P_BASE,
    P_SIZE,
    P_MAPPED
};

VG_EXPORT int cuPointerGetAttribute(void *out, int attribute, uint64_t p)
{
    struct vg_alloc a;
    if (!vg_mem_find(vg_at(p), &a))
        return VG_INVALID_VALUE;
    bool device = a.kind == MAQ_REC_DEVICE || a.kind == MAQ_REC_POOL, managed = a.kind == MAQ_REC_MANAGED;
    int number = 0, bytes = sizeof(int);
    uint64_t word = 0;
    switch (attribute) {
    case P_CONTEXT:
        word = (uintptr_t)vg_context(vg_mem_device(vg_at(p)));
        bytes = 8;
        break;
    case P_TYPE:
        number = device || managed ? 2 : 1;
        break;
    case P_DEVICE:
        word = p;
        bytes = 8;
        break;
    case P_HOST:
        word = device ? 0 : p;
        bytes = 8;
        break;
    case P_BUFFER_ID:
        word = a.id;
        bytes = 8;
        break;
    case P_MANAGED:
        number = managed;
        break;
    case P_ORDINAL:
        number = vg_mem_device(vg_at(p));
        break;
    case P_IPC:
        number = device;
        break;
    case P_BASE:
        word = a.base;
        bytes = 8;
        break;
    case P_SIZE:
        word = a.bytes;
        bytes = 8;
        break;
    case P_MAPPED:
        number = 1;
        break;
    default:
        break;
    }
    memcpy(out, bytes == 8 ? (void *)&word : (void *)&number, (size_t)bytes);
    return VG_OK;
}

VG_EXPORT int cuPointerGetAttributes(unsigned n, int *attributes, void **out, uint64_t p)
{
    for (unsigned i = 0; i < n; i++)
        if (cuPointerGetAttribute(out[i], attributes[i], p) != VG_OK)
            memset(out[i], 0, sizeof(int));
    return VG_OK;
}

VG_EXPORT int cuPointerSetAttribute(const void *value, int attribute, uint64_t p)
{
    (void)value, (void)attribute, (void)p;
    return VG_OK;
}

/* --- copies ---------------------------------------------------------------------------------------------------------------------- */

VG_EXPORT int cuMemcpy(uint64_t to, uint64_t from, size_t n)
{
    return vg_copy(vg_at(to), vg_at(from), n, VG_COPY_DEFAULT, NULL, true);
}

VG_EXPORT int cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, void *stream)
{
    return vg_copy(vg_at(to), vg_at(from), n, VG_COPY_DEFAULT, stream, false);
}

VG_EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n)
{
    return vg_copy(vg_at(to), from, n, VG_COPY_H2D, NULL, true);
}

VG_EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *stream)
{
    return vg_copy(vg_at(to), from, n, VG_COPY_H2D, stream, false);
}

VG_EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n)
{
    return vg_copy(to, vg_at(from), n, VG_COPY_D2H, NULL, true);
}

VG_EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *stream)
{
    return vg_copy(to, vg_at(from), n, VG_COPY_D2H, stream, false);
}

VG_EXPORT int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t n)
{
    return vg_copy(vg_at(to), vg_at(from), n, VG_COPY_D2D, NULL, true);
}

VG_EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *stream)
{
    return vg_copy(vg_at(to), vg_at(from), n, VG_COPY_D2D, stream, false);
}

VG_EXPORT int cuMemcpyPeerAsync(uint64_t to, void *to_ctx, uint64_t from, void *from_ctx, size_t n, void *stream)
{
    (void)to_ctx, (void)from_ctx;
    return vg_copy(vg_at(to), vg_at(from), n, VG_COPY_DEFAULT, stream, false);
}

VG_EXPORT int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t n)
{
    return vg_set(vg_at(to), value, 1, n, NULL, true);
}

VG_EXPORT int cuMemsetD16_v2(uint64_t to, unsigned short value, size_t n)
{
    return vg_set(vg_at(to), value, 2, n, NULL, true);
}

VG_EXPORT int cuMemsetD32_v2(uint64_t to, unsigned value, size_t n)
{
    return vg_set(vg_at(to), value, 4, n, NULL, true);
}

VG_EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void *stream)
{
    return vg_set(vg_at(to), value, 1, n, stream, false);
}

VG_EXPORT int cuMemsetD16Async(uint64_t to, unsigned short value, size_t n, void *stream)
{
    return vg_set(vg_at(to), value, 2, n, stream, false);
}

VG_EXPORT int cuMemsetD32Async(uint64_t to, unsigned value, size_t n, void *stream)
{
    return vg_set(vg_at(to), value, 4, n, stream, false);
}
