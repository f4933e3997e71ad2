/*
 * driver.c - the documented functions of libcuda.so.1 that programs and Triton call directly. They share streams, events,
 * memory and kernels with the runtime, as in CUDA. A context is a device: its handle is that of the device's primary one.
 */
#include "shim/core/memory.h"
#include "shim/cuda/cuda.h"

#include <stdio.h>
#include <string.h>

/* Calls of the runtime with the same arguments and numbers. */
int cudaGetDeviceCount(int *);
int cudaDriverGetVersion(int *);
int cudaDeviceGetPCIBusId(char *, int, int);
int cudaDeviceGetByPCIBusId(int *, const char *);
int cudaDeviceCanAccessPeer(int *, int, int);
int cudaDeviceGetStreamPriorityRange(int *, int *);
int cudaDeviceGetLimit(size_t *, int);
int cudaDeviceSetLimit(int, size_t);
int cudaDeviceSynchronize(void);
int cudaLaunchHostFunc(void *, void (*)(void *), void *);
int cudaMalloc(void **, size_t);
int cudaMallocManaged(void **, size_t, unsigned);
int cudaMallocHost(void **, size_t);
int cudaMallocAsync(void **, size_t, void *);
int cudaFree(void *);
int cudaFreeAsync(void *, void *);
int cudaMemGetInfo(size_t *, size_t *);
int cudaHostRegister(void *, size_t, unsigned);
int cudaHostUnregister(void *);
int cudaStreamCreateWithPriority(void **, unsigned, int);
int cudaStreamDestroy(void *);
int cudaStreamSynchronize(void *);
int cudaStreamQuery(void *);
int cudaStreamWaitEvent(void *, void *, unsigned);
int cudaStreamGetPriority(void *, int *);
int cudaStreamGetFlags(void *, unsigned *);
int cudaStreamGetId(void *, unsigned long long *);
int cudaEventCreateWithFlags(void **, unsigned);
int cudaEventDestroy(void *);
int cudaEventRecordWithFlags(void *, void *, unsigned);
int cudaEventQuery(void *);
int cudaEventSynchronize(void *);
int cudaEventElapsedTime(float *, void *, void *);
int cudaIpcGetMemHandle(struct vg_ipc *, void *);

static void *at(uint64_t p)
{
    return (void *)(uintptr_t)p; // NOLINT(performance-no-int-to-ptr)
}

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

static void *context(int device)
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
    *ctx = there(device) ? context(device) : NULL;
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
    *ctx = bound || vg_drives() ? context((int)vg_device()) : NULL;
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
        *ctx = context((int)vg_device());
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
    return cudaFree(at(p));
}

VG_EXPORT int cuMemFreeHost(void *p)
{
    return cudaFree(p);
}

VG_EXPORT int cuMemFreeAsync(uint64_t p, void *stream)
{
    return cudaFreeAsync(at(p), stream);
}

VG_EXPORT int cuMemGetAddressRange_v2(uint64_t *base, size_t *bytes, uint64_t p)
{
    struct vg_alloc a;
    if (!vg_mem_find(at(p), &a))
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
    return cudaIpcGetMemHandle(out, at(p));
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
    if (!vg_mem_find(at(p), &a))
        return VG_INVALID_VALUE;
    bool device = a.kind == MAQ_REC_DEVICE || a.kind == MAQ_REC_POOL, managed = a.kind == MAQ_REC_MANAGED;
    int number = 0, bytes = sizeof(int);
    uint64_t word = 0;
    switch (attribute) {
    case P_CONTEXT:
        word = (uintptr_t)context(vg_mem_device(at(p)));
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
        number = vg_mem_device(at(p));
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
    return vg_copy(at(to), at(from), n, VG_COPY_DEFAULT, NULL, true);
}

VG_EXPORT int cuMemcpyAsync(uint64_t to, uint64_t from, size_t n, void *stream)
{
    return vg_copy(at(to), at(from), n, VG_COPY_DEFAULT, stream, false);
}

VG_EXPORT int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t n)
{
    return vg_copy(at(to), from, n, VG_COPY_H2D, NULL, true);
}

VG_EXPORT int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t n, void *stream)
{
    return vg_copy(at(to), from, n, VG_COPY_H2D, stream, false);
}

VG_EXPORT int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t n)
{
    return vg_copy(to, at(from), n, VG_COPY_D2H, NULL, true);
}

VG_EXPORT int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t n, void *stream)
{
    return vg_copy(to, at(from), n, VG_COPY_D2H, stream, false);
}

VG_EXPORT int cuMemcpyDtoD_v2(uint64_t to, uint64_t from, size_t n)
{
    return vg_copy(at(to), at(from), n, VG_COPY_D2D, NULL, true);
}

VG_EXPORT int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t n, void *stream)
{
    return vg_copy(at(to), at(from), n, VG_COPY_D2D, stream, false);
}

VG_EXPORT int cuMemcpyPeerAsync(uint64_t to, void *to_ctx, uint64_t from, void *from_ctx, size_t n, void *stream)
{
    (void)to_ctx, (void)from_ctx;
    return vg_copy(at(to), at(from), n, VG_COPY_DEFAULT, stream, false);
}

VG_EXPORT int cuMemsetD8_v2(uint64_t to, unsigned char value, size_t n)
{
    return vg_set(at(to), value, 1, n, NULL, true);
}

VG_EXPORT int cuMemsetD16_v2(uint64_t to, unsigned short value, size_t n)
{
    return vg_set(at(to), value, 2, n, NULL, true);
}

VG_EXPORT int cuMemsetD32_v2(uint64_t to, unsigned value, size_t n)
{
    return vg_set(at(to), value, 4, n, NULL, true);
}

VG_EXPORT int cuMemsetD8Async(uint64_t to, unsigned char value, size_t n, void *stream)
{
    return vg_set(at(to), value, 1, n, stream, false);
}

VG_EXPORT int cuMemsetD16Async(uint64_t to, unsigned short value, size_t n, void *stream)
{
    return vg_set(at(to), value, 2, n, stream, false);
}

VG_EXPORT int cuMemsetD32Async(uint64_t to, unsigned value, size_t n, void *stream)
{
    return vg_set(at(to), value, 4, n, stream, false);
}

/* --- streams and events -------------------------------------------------------------------------------------------------------- */

VG_EXPORT int cuStreamCreate(void **stream, unsigned flags)
{
    return cudaStreamCreateWithPriority(stream, flags, 0);
}

VG_EXPORT int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
    return cudaStreamCreateWithPriority(stream, flags, priority);
}

VG_EXPORT int cuStreamDestroy_v2(void *stream)
{
    return cudaStreamDestroy(stream);
}

VG_EXPORT int cuStreamSynchronize(void *stream)
{
    return cudaStreamSynchronize(stream);
}

VG_EXPORT int cuStreamQuery(void *stream)
{
    return cudaStreamQuery(stream);
}

VG_EXPORT int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
    return cudaStreamWaitEvent(stream, event, flags);
}

VG_EXPORT int cuStreamGetPriority(void *stream, int *priority)
{
    return cudaStreamGetPriority(stream, priority);
}

VG_EXPORT int cuStreamGetFlags(void *stream, unsigned *flags)
{
    return cudaStreamGetFlags(stream, flags);
}

VG_EXPORT int cuStreamGetId(void *stream, unsigned long long *id)
{
    return cudaStreamGetId(stream, id);
}

VG_EXPORT int cuStreamGetCtx(void *stream, void **ctx)
{
    struct vg_stream *s = vg_stream_of(stream);
    *ctx = s != NULL ? context((int)s->device) : NULL;
    return s != NULL ? VG_OK : VG_INVALID_HANDLE;
}

static int write_value(void *stream, uint64_t to, const void *value, unsigned bytes)
{
    struct vg_stream *s = vg_stream_of(stream);
    if (s == NULL)
        return VG_INVALID_HANDLE;
    vg_call();
    vg_enqueue(s, vg_set_record(bytes));
    if (vg_mem_touch(at(to), bytes)) {
        memcpy(at(to), value, bytes);
        vg_mem_told(at(to), bytes);
    }
    return VG_OK;
}

VG_EXPORT int cuStreamWriteValue32_v2(void *stream, uint64_t to, uint32_t value, unsigned flags)
{
    (void)flags;
    return write_value(stream, to, &value, sizeof value);
}

VG_EXPORT int cuStreamWriteValue64_v2(void *stream, uint64_t to, uint64_t value, unsigned flags)
{
    (void)flags;
    return write_value(stream, to, &value, sizeof value);
}

VG_EXPORT int cuEventCreate(void **event, unsigned flags)
{
    return cudaEventCreateWithFlags(event, flags);
}

VG_EXPORT int cuEventDestroy_v2(void *event)
{
    return cudaEventDestroy(event);
}

VG_EXPORT int cuEventRecord(void *event, void *stream)
{
    return cudaEventRecordWithFlags(event, stream, 0);
}

VG_EXPORT int cuEventQuery(void *event)
{
    return cudaEventQuery(event);
}

VG_EXPORT int cuEventSynchronize(void *event)
{
    return cudaEventSynchronize(event);
}

VG_EXPORT int cuEventElapsedTime(float *ms, void *from, void *to)
{
    return cudaEventElapsedTime(ms, from, to);
}

VG_EXPORT int cuEventElapsedTime_v2(float *ms, void *from, void *to)
{
    return cudaEventElapsedTime(ms, from, to);
}
