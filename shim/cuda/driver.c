/* SPDX-License-Identifier: Apache-2.0 */
/*
 * driver.c - the documented functions of libcuda.so.1 that programs and Triton call directly: devices, contexts, launches. They share
 * streams, events, memory and kernels with the runtime, as in CUDA. A context is a device: its handle is that of the device's primary
 * one. Memory and copies are in driver_memory.c, streams and events in driver_stream.c.
 */
#include <stdio.h>
#include <string.h>

#include "shim/cuda/runtime.h"

/* --- devices and contexts ----------------------------------------------------------------------------------------------------- */

static bool there(int device)
{
    return device >= 0 && (unsigned)device < vg_device_count();
}

VG_EXPORT int cuInit(unsigned flags)
{
    (void)flags;
    return vg_device_count() > 0 ? VG_OK : VG_NO_DEVICE;
}

VG_EXPORT int cuDriverGetVersion(int *version)
{
    return cudaDriverGetVersion(version);
}

VG_EXPORT int cuDeviceGet(int *device, int ordinal)
{
    *device = ordinal;
    return there(ordinal) ? VG_OK : VG_INVALID_DEVICE;
}

VG_EXPORT int cuDeviceGetCount(int *count)
{
    *count = (int)vg_device_count();
    return VG_OK;
}

VG_EXPORT int cuDeviceGetName(char *name, int n, int device)
{
    snprintf(name, (size_t)n, "%s", vg_card()->device);
    return there(device) ? VG_OK : VG_INVALID_DEVICE;
}

VG_EXPORT int cuDeviceGetUuid_v2(struct vg_uuid *uuid, int device)
{
    vg_device_uuid(uuid->bytes, device);
    return there(device) ? VG_OK : VG_INVALID_DEVICE;
}

VG_EXPORT int cuDeviceGetUuid(struct vg_uuid *uuid, int device)
{
    return cuDeviceGetUuid_v2(uuid, device);
}

VG_EXPORT int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    *bytes = vg_card()->memory_bytes;
    return there(device) ? VG_OK : VG_INVALID_DEVICE;
}

VG_EXPORT int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    return vg_attribute(value, attribute, device);
}

VG_EXPORT int cuDeviceComputeCapability(int *major, int *minor, int device)
{
    vg_attribute(major, VG_ATTR_MAJOR, device);
    return vg_attribute(minor, VG_ATTR_MINOR, device);
}

VG_EXPORT int cuDeviceGetPCIBusId(char *text, int n, int device)
{
    return cudaDeviceGetPCIBusId(text, n, device);
}

VG_EXPORT int cuDeviceGetByPCIBusId(int *device, const char *text)
{
    return cudaDeviceGetByPCIBusId(device, text);
}

VG_EXPORT int cuDeviceCanAccessPeer(int *can, int device, int peer)
{
    return cudaDeviceCanAccessPeer(can, device, peer);
}

VG_EXPORT int cuDeviceGetP2PAttribute(int *value, int attribute, int from, int to)
{
    *value = attribute == 2 || attribute == 3;
    return there(from) && there(to) ? VG_OK : VG_INVALID_DEVICE;
}

/* Handles of primary contexts: addresses of these. */
static char contexts[VG_DEVICES];
static _Thread_local bool bound;

void *vg_context(int device)
{
    return &contexts[device % VG_DEVICES];
}

/* -1: none of ours. */
static int device_of(const void *ctx)
{
    for (int i = 0; i < VG_DEVICES; i++)
        if (ctx == &contexts[i])
            return i;
    return -1;
}

VG_EXPORT int cuDevicePrimaryCtxRetain(void **ctx, int device)
{
    *ctx = there(device) ? vg_context(device) : NULL;
    return there(device) ? VG_OK : VG_INVALID_DEVICE;
}

VG_EXPORT int cuDevicePrimaryCtxRelease_v2(int device)
{
    return there(device) ? VG_OK : VG_INVALID_DEVICE;
}

VG_EXPORT int cuDevicePrimaryCtxSetFlags_v2(int device, unsigned flags)
{
    (void)flags;
    return there(device) ? VG_OK : VG_INVALID_DEVICE;
}

/* Active once something was done on the device; that is once this process drives one. */
VG_EXPORT int cuDevicePrimaryCtxGetState(int device, unsigned *flags, int *active)
{
    *flags = 0;
    *active = vg_now() > 0;
    return there(device) ? VG_OK : VG_INVALID_DEVICE;
}

VG_EXPORT int cuCtxGetCurrent(void **ctx)
{
    *ctx = bound || vg_drives() ? vg_context((int)vg_device()) : NULL;
    return VG_OK;
}

VG_EXPORT int cuCtxSetCurrent(void *ctx)
{
    bound = ctx != NULL;
    return ctx == NULL || vg_device_set(device_of(ctx)) ? VG_OK : VG_INVALID_CONTEXT;
}

static _Thread_local int pushed[32];
static _Thread_local unsigned n_pushed;

VG_EXPORT int cuCtxPushCurrent_v2(void *ctx)
{
    if (n_pushed == 32)
        return VG_INVALID_VALUE;
    pushed[n_pushed++] = (int)vg_device();
    return cuCtxSetCurrent(ctx);
}

VG_EXPORT int cuCtxPopCurrent_v2(void **ctx)
{
    if (n_pushed == 0)
        return VG_INVALID_CONTEXT;
    if (ctx != NULL)
        *ctx = vg_context((int)vg_device());
    vg_device_set(pushed[--n_pushed]);
    return VG_OK;
}

VG_EXPORT int cuCtxGetDevice(int *device)
{
    *device = (int)vg_device();
    return VG_OK;
}

VG_EXPORT int cuCtxSynchronize(void)
{
    return cudaDeviceSynchronize();
}

VG_EXPORT int cuCtxGetLimit(size_t *value, int limit)
{
    return cudaDeviceGetLimit(value, limit);
}

VG_EXPORT int cuCtxSetLimit(int limit, size_t value)
{
    return cudaDeviceSetLimit(limit, value);
}

VG_EXPORT int cuCtxGetFlags(unsigned *flags)
{
    *flags = 0;
    return VG_OK;
}

VG_EXPORT int cuCtxGetApiVersion(void *ctx, unsigned *version)
{
    (void)ctx;
    *version = 3020;
    return VG_OK;
}

VG_EXPORT int cuCtxGetId(void *ctx, unsigned long long *id)
{
    *id = (unsigned long long)(ctx != NULL ? device_of(ctx) : (int)vg_device()) + 1;
    return VG_OK;
}

VG_EXPORT int cuCtxGetStreamPriorityRange(int *lowest, int *highest)
{
    return cudaDeviceGetStreamPriorityRange(lowest, highest);
}

/* --- launches ------------------------------------------------------------------------------------------------------------------ */

/* `extra` passes all arguments in one piece: 1 = its address follows, 2 = the address of its size, 0 = end. */
static void take_extra(struct vg_launch *l, void **extra)
{
    for (; extra != NULL && extra[0] != NULL; extra += 2) {
        if ((uintptr_t)extra[0] == 1)
            l->packed = extra[1];
        else if ((uintptr_t)extra[0] == 2)
            l->packed_bytes = *(size_t *)extra[1];
    }
}

static int launch(void *function, struct vg_dim3 grid, struct vg_dim3 block, unsigned shared, void *stream, void **args,
                  void **extra)
{
    struct vg_launch l = {
        .kernel = vg_kernel_of(function), .grid = grid, .block = block, .shared = shared, .args = args};
    take_extra(&l, extra);
    return l.kernel != NULL ? vg_launch(&l, stream) : VG_INVALID_HANDLE;
}

VG_EXPORT int cuLaunchKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                             unsigned bz, unsigned shared, void *stream, void **args, void **extra)
{
    return launch(function, (struct vg_dim3){gx, gy, gz}, (struct vg_dim3){bx, by, bz}, shared, stream, args, extra);
}

VG_EXPORT int cuLaunchCooperativeKernel(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                        unsigned bz, unsigned shared, void *stream, void **args)
{
    return launch(function, (struct vg_dim3){gx, gy, gz}, (struct vg_dim3){bx, by, bz}, shared, stream, args, NULL);
}

VG_EXPORT int cuLaunchKernelEx(const struct vg_driver_config *c, void *function, void **args, void **extra)
{
    return launch(function, c->grid, c->block, c->shared, c->stream, args, extra);
}

VG_EXPORT int cuLaunchHostFunc(void *stream, void (*function)(void *), void *data)
{
    return cudaLaunchHostFunc(stream, function, data);
}

/* A tensor map is 128 bytes that only kernels read. */
enum { TENSOR_MAP_BYTES = 128 };

VG_EXPORT int cuTensorMapEncodeTiled(void *map, int type, uint32_t rank, void *address)
{
    (void)type, (void)rank;
    memset(map, 0, TENSOR_MAP_BYTES);
    memcpy(map, &address, sizeof address); /* so that a launch is seen to reach the tensor */
    return VG_OK;
}

VG_EXPORT int cuTensorMapEncodeIm2col(void *map, int type, uint32_t rank, void *address)
{
    return cuTensorMapEncodeTiled(map, type, rank, address);
}

VG_EXPORT int cuTensorMapReplaceAddress(void *map, void *address)
{
    memcpy(map, &address, sizeof address);
    return VG_OK;
}
