/* SPDX-License-Identifier: Apache-2.0 */
/*
 * memory.c - the runtime's calls for memory: allocation, pools, host memory, pointers, IPC.
 *
 * A pool gives memory back to the device as soon as it is freed, as one with the default release threshold of 0 does at the next
 * synchronisation. An IPC handle names an allocation of this process and opens to it; one of another process opens to
 * nothing.
 */
#include "shim/core/memory.h"
#include "shim/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

static int allocate(void **out, size_t bytes, enum maq_rec_mem kind, struct vg_stream *s)
{
    if (!vg_mem_beside(kind))
        vg_drive();
    vg_call();
    *out = NULL;
    if (bytes == 0)
        return VG_OK;
    *out = vg_mem_alloc(bytes, kind, s);
    return *out != NULL ? VG_OK : VG_OUT_OF_MEMORY;
}

/* cudaFree() waits for the device. */
static int release(void *p)
{
    int64_t end;
    struct vg_alloc a;
    vg_call();
    if (p == NULL)
        return VG_OK;
    if (!vg_mem_find(p, &a))
        return VG_INVALID_VALUE;
    if (vg_drives())
        vg_record((struct maq_rec){.kind = MAQ_REC_DEVICE_SYNC, .stream = MAQ_REC_HOST_STREAM}, NULL);
    vg_device_end(&end);
    vg_wait_until(end);
    return vg_mem_free(p, NULL) ? VG_OK : VG_INVALID_VALUE;
}

VG_EXPORT int cudaMalloc(void **p, size_t bytes)
{
    return vg_result(allocate(p, bytes, MAQ_REC_DEVICE, NULL));
}

VG_EXPORT int cudaMallocManaged(void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    return vg_result(allocate(p, bytes, MAQ_REC_MANAGED, NULL));
}

VG_EXPORT int cudaMallocHost(void **p, size_t bytes)
{
    return vg_result(allocate(p, bytes, MAQ_REC_PINNED, NULL));
}

VG_EXPORT int cudaHostAlloc(void **p, size_t bytes, unsigned flags)
{
    (void)flags;
    return vg_result(allocate(p, bytes, MAQ_REC_PINNED, NULL));
}

VG_EXPORT int cudaFree(void *p)
{
    return vg_result(release(p));
}

VG_EXPORT int cudaFreeHost(void *p)
{
    return vg_result(release(p));
}

VG_EXPORT int cudaMallocPitch(void **p, size_t *pitch, size_t width, size_t height)
{
    *pitch = (width + 511) & ~(size_t)511;
    return cudaMalloc(p, *pitch * height);
}

VG_EXPORT int cudaMalloc3D(struct vg_pitched *out, struct vg_extent extent)
{
    out->width = extent.x;
    out->height = extent.y;
    return cudaMallocPitch(&out->p, &out->pitch, extent.x, extent.y * extent.z);
}

VG_EXPORT int cudaMemGetInfo(size_t *free_bytes, size_t *total)
{
    uint64_t f, t;
    vg_call();
    vg_mem_info(&f, &t, NULL);
    *free_bytes = f;
    *total = t;
    return VG_OK;
}

/* --- memory of the program's own, made known to the device --------------------------------------------------------------- */

enum { REGISTERED_MOST = 4096 };
static struct {
    void *p;
    size_t bytes;
} registered[REGISTERED_MOST];
static unsigned n_registered;

static unsigned registered_at(const void *p)
{
    unsigned i = 0;
    while (i < n_registered && ((const char *)p < (char *)registered[i].p ||
                                (const char *)p >= (char *)registered[i].p + registered[i].bytes))
        i++;
    return i;
}

VG_EXPORT int cudaHostRegister(void *p, size_t bytes, unsigned flags)
{
    (void)flags;
    vg_call();
    vg_lock();
    int status = VG_OK;
    if (p == NULL || bytes == 0)
        status = VG_INVALID_VALUE;
    else if (registered_at(p) < n_registered)
        status = VG_ALREADY_REGISTERED;
    else if (n_registered == REGISTERED_MOST)
        status = VG_OUT_OF_MEMORY;
    if (status == VG_OK) {
        registered[n_registered].p = p;
        registered[n_registered++].bytes = bytes;
    }
    vg_unlock();
    return vg_result(status);
}

VG_EXPORT int cudaHostUnregister(void *p)
{
    vg_call();
    vg_lock();
    unsigned i = registered_at(p);
    bool there = i < n_registered;
    if (there)
        registered[i] = registered[--n_registered];
    vg_unlock();
    return vg_result(there ? VG_OK : VG_NOT_REGISTERED);
}

VG_EXPORT int cudaHostGetDevicePointer(void **device, void *host, unsigned flags)
{
    (void)flags;
    *device = host;
    return VG_OK;
}

VG_EXPORT int cudaHostGetFlags(unsigned *flags, void *host)
{
    struct vg_alloc a;
    *flags = 0;
    return vg_result(vg_mem_find(host, &a) || registered_at(host) < n_registered ? VG_OK : VG_INVALID_VALUE);
}

VG_EXPORT int cudaPointerGetAttributes(struct vg_pointer_attributes *out, const void *p)
{
    struct vg_alloc a;
    memset(out, 0, vg_cuda_major >= 13 ? sizeof *out : offsetof(struct vg_pointer_attributes, reserved));
    out->device = (int)vg_device();
    if (vg_mem_find(p, &a)) {
        bool host = a.kind == MAQ_REC_PINNED, managed = a.kind == MAQ_REC_MANAGED;
        out->type = host ? VG_MEMORY_HOST : managed ? VG_MEMORY_MANAGED : VG_MEMORY_DEVICE;
        out->device = vg_mem_device(p);
        out->on_device = (void *)p;
        out->on_host = host || managed ? (void *)p : NULL;
    } else if (registered_at(p) < n_registered) {
        out->type = VG_MEMORY_HOST;
        out->on_device = out->on_host = (void *)p;
    } else {
        out->device = -2; /* as the runtime says of what it does not know */
        out->on_host = (void *)p;
    }
    return VG_OK;
}

/* --- hints: taken note of by nobody ----------------------------------------------------------------------------------------- */

VG_EXPORT int cudaMemAdvise(const void *p, size_t bytes, int advice, struct vg_location where)
{
    struct vg_alloc a;
    (void)bytes, (void)advice, (void)where; /* CUDA 12 passes a device in the same register */
    vg_call();
    return vg_result(vg_mem_find(p, &a) && a.kind == MAQ_REC_MANAGED ? VG_OK : VG_INVALID_VALUE);
}

VG_EXPORT int cudaMemAdvise_v2(const void *p, size_t bytes, int advice, struct vg_location where)
{
    return cudaMemAdvise(p, bytes, advice, where);
}

VG_EXPORT int cudaMemPrefetchAsync(const void *p, size_t bytes, struct vg_location where, unsigned flags, void *stream)
{
    struct vg_alloc a;
    (void)bytes, (void)where, (void)flags, (void)stream;
    vg_call();
    return vg_result(vg_mem_find(p, &a) ? VG_OK : VG_INVALID_VALUE);
}

VG_EXPORT int cudaMemPrefetchAsync_v2(const void *p, size_t bytes, struct vg_location where, unsigned flags,
                                      void *stream)
{
    return cudaMemPrefetchAsync(p, bytes, where, flags, stream);
}

VG_EXPORT int cudaStreamAttachMemAsync(void *stream, void *p, size_t bytes, unsigned flags)
{
    (void)stream, (void)p, (void)bytes, (void)flags;
    return VG_OK;
}

/* --- pools -------------------------------------------------------------------------------------------------------------------- */

enum { POOL_MAGIC = 0x706f6f6c, POOL_RELEASE = 4, POOL_RESERVED = 5, POOL_USED = 7, POOL_LAST = 8 };
struct pool {
    uint32_t magic;
    int device;
    uint64_t attribute[POOL_LAST + 1];
};
static struct pool default_pool[VG_DEVICES];
static struct pool *current_pool[VG_DEVICES];

static struct pool *pool_of(int device)
{
    struct pool *p = &default_pool[device % VG_DEVICES];
    if (p->magic == 0)
        *p = (struct pool){.magic = POOL_MAGIC, .device = device, .attribute = {0, 1, 1, 1}};
    return p;
}

VG_EXPORT int cudaDeviceGetDefaultMemPool(void **pool, int device)
{
    if (device < 0 || (unsigned)device >= vg_device_count())
        return vg_result(VG_INVALID_DEVICE);
    *pool = pool_of(device);
    return VG_OK;
}

VG_EXPORT int cudaDeviceGetMemPool(void **pool, int device)
{
    int status = cudaDeviceGetDefaultMemPool(pool, device);
    if (status == VG_OK && current_pool[device % VG_DEVICES] != NULL)
        *pool = current_pool[device % VG_DEVICES];
    return status;
}

VG_EXPORT int cudaDeviceSetMemPool(int device, void *pool)
{
    if (device < 0 || (unsigned)device >= vg_device_count())
        return vg_result(VG_INVALID_DEVICE);
    current_pool[device % VG_DEVICES] = pool;
    return VG_OK;
}

VG_EXPORT int cudaMemPoolCreate(void **out, const void *properties)
{
    (void)properties;
    struct pool *pool = malloc(sizeof *pool);
    if (pool == NULL)
        return vg_result(VG_OUT_OF_MEMORY);
    *pool = *pool_of((int)vg_device());
    *out = pool;
    return VG_OK;
}

VG_EXPORT int cudaMemPoolDestroy(void *pool)
{
    if (((struct pool *)pool)->magic != POOL_MAGIC)
        return vg_result(VG_INVALID_VALUE);
    for (int i = 0; i < VG_DEVICES; i++) {
        if (current_pool[i] == pool)
            current_pool[i] = NULL;
        if (pool == &default_pool[i])
            return VG_OK;
    }
    free(pool);
    return VG_OK;
}

VG_EXPORT int cudaMemPoolTrimTo(void *pool, size_t bytes)
{
    (void)pool, (void)bytes;
    return VG_OK;
}

/* The first three attributes are int, the others 64 bits. */
VG_EXPORT int cudaMemPoolSetAttribute(struct pool *pool, int attribute, const void *value)
{
    if (pool->magic != POOL_MAGIC || attribute < 1 || attribute > POOL_LAST)
        return vg_result(VG_INVALID_VALUE);
    memcpy(&pool->attribute[attribute], value, attribute < POOL_RELEASE ? sizeof(int) : sizeof(uint64_t));
    return VG_OK;
}

VG_EXPORT int cudaMemPoolGetAttribute(struct pool *pool, int attribute, void *value)
{
    if (pool->magic != POOL_MAGIC || attribute < 1 || attribute > POOL_LAST)
        return vg_result(VG_INVALID_VALUE);
    uint64_t in_use = vg_mem_in_pool((unsigned)pool->device);
    if (attribute >= POOL_RESERVED) {
        bool high = attribute == POOL_RESERVED + 1 || attribute == POOL_USED + 1;
        if (in_use > pool->attribute[attribute] || !high)
            pool->attribute[attribute] = in_use;
    }
    memcpy(value, &pool->attribute[attribute], attribute < POOL_RELEASE ? sizeof(int) : sizeof(uint64_t));
    return VG_OK;
}

VG_EXPORT int cudaMemPoolSetAccess(void *pool, const struct vg_access *access, size_t n)
{
    (void)pool, (void)access, (void)n;
    return VG_OK;
}

VG_EXPORT int cudaMemPoolGetAccess(int *flags, void *pool, struct vg_location *where)
{
    (void)pool, (void)where;
    *flags = 3; /* read and write */
    return VG_OK;
}

VG_EXPORT int cudaMallocAsync(void **p, size_t bytes, void *stream)
{
    struct vg_stream *s = vg_stream_of(stream);
    return vg_result(s != NULL ? allocate(p, bytes, MAQ_REC_POOL, s) : VG_INVALID_HANDLE);
}

VG_EXPORT int cudaMallocFromPoolAsync(void **p, size_t bytes, void *pool, void *stream)
{
    (void)pool;
    return cudaMallocAsync(p, bytes, stream);
}

VG_EXPORT int cudaFreeAsync(void *p, void *stream)
{
    struct vg_stream *s = vg_stream_of(stream);
    vg_call();
    if (s == NULL)
        return vg_result(VG_INVALID_HANDLE);
    return vg_result(p == NULL || vg_mem_free(p, s) ? VG_OK : VG_INVALID_VALUE);
}

/* --- IPC ------------------------------------------------------------------------------------------------------------------------ */

struct handle {
    uint64_t base, bytes;
    uint32_t rank;
};
_Static_assert(sizeof(struct handle) <= sizeof(struct vg_ipc), "fits into an IPC handle");

VG_EXPORT int cudaIpcGetMemHandle(struct vg_ipc *out, void *p)
{
    struct vg_alloc a;
    if (!vg_mem_find(p, &a))
        return vg_result(VG_INVALID_VALUE);
    struct handle h = {.base = a.base, .bytes = a.bytes, .rank = vg_card()->rank};
    memset(out, 0, sizeof *out);
    memcpy(out, &h, sizeof h);
    return VG_OK;
}

VG_EXPORT int cudaIpcOpenMemHandle(void **p, struct vg_ipc in, unsigned flags)
{
    (void)flags;
    struct handle h;
    memcpy(&h, &in, sizeof h);
    if (h.rank == vg_card()->rank) {
        *p = (void *)(uintptr_t)h.base; // NOLINT(performance-no-int-to-ptr)
        return VG_OK;
    }
    /* A peer's memory: an address that kernels may be given, not ours to count. */
    *p = vg_mem_space(h.bytes > 0 ? h.bytes : 1, false);
    return vg_result(*p != NULL ? VG_OK : VG_OUT_OF_MEMORY);
}

VG_EXPORT int cudaIpcCloseMemHandle(void *p)
{
    (void)p;
    return VG_OK;
}

VG_EXPORT int cudaIpcGetEventHandle(struct vg_ipc *out, void *event)
{
    memset(out, 0, sizeof *out);
    memcpy(out, &event, sizeof event);
    return vg_result(vg_event_of(event) != NULL ? VG_OK : VG_INVALID_HANDLE);
}

VG_EXPORT int cudaIpcOpenEventHandle(void **event, struct vg_ipc in)
{
    memcpy(event, &in, sizeof *event);
    if (vg_event_of(*event) == NULL)
        *event = vg_event_new(VG_EVENT_NO_TIMING | VG_EVENT_INTERPROCESS);
    return vg_result(*event != NULL ? VG_OK : VG_OUT_OF_MEMORY);
}
