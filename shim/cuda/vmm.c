/* SPDX-License-Identifier: Apache-2.0 */
/*
 * vmm.c - virtual memory management of the driver: address ranges, physical memory, and mappings between them. What
 * PyTorch's expandable segments are made of.
 *
 * Physical memory is charged to the device when it is created and given back when it is released and mapped nowhere. It is
 * an allocation of the trace from its creation on, and what is mapped lies in the table of allocations under its id.
 */
#include "shim/core/memory.h"
#include "shim/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { HANDLE_MAGIC = 0x76706879 };
struct physical {
    uint32_t magic, id;
    uint64_t bytes;
    unsigned device, refs; /* the handle's, and one per mapping */
    struct properties {    /* CUmemAllocationProp */
        int type, handle_types;
        struct vg_location where;
        void *windows;
        unsigned char flags[8];
    } properties;
};

static struct mapping {
    uint64_t at, bytes;
    struct physical *of;
} * mappings;
static size_t n_mappings, room;

static struct physical *physical_of(uint64_t handle)
{
    struct physical *p = (struct physical *)(uintptr_t)handle; // NOLINT(performance-no-int-to-ptr)
    return p != NULL && p->magic == HANDLE_MAGIC ? p : NULL;
}

static uint64_t whole_pages(uint64_t bytes)
{
    return (bytes + VG_PAGE_BYTES - 1) & ~(uint64_t)(VG_PAGE_BYTES - 1);
}

VG_EXPORT int cuMemGetAllocationGranularity(size_t *bytes, const struct properties *p, int option)
{
    (void)p, (void)option;
    *bytes = VG_PAGE_BYTES;
    return VG_OK;
}

VG_EXPORT int cuMemAddressReserve(uint64_t *at, size_t bytes, size_t alignment, uint64_t wish, unsigned long long flags)
{
    (void)wish, (void)flags;
    vg_call();
    if (bytes == 0 || bytes % VG_PAGE_BYTES != 0 || alignment > VG_PAGE_BYTES)
        return VG_INVALID_VALUE;
    *at = (uintptr_t)vg_mem_space(bytes, false);
    return *at != 0 ? VG_OK : VG_OUT_OF_MEMORY;
}

VG_EXPORT int cuMemAddressFree(uint64_t at, size_t bytes)
{
    vg_call();
    return munmap((void *)(uintptr_t)at, bytes) == 0 ? VG_OK : VG_INVALID_VALUE; // NOLINT(performance-no-int-to-ptr)
}

VG_EXPORT int cuMemCreate(uint64_t *handle, size_t bytes, const struct properties *properties, unsigned long long flags)
{
    (void)flags;
    vg_drive();
    vg_call();
    if (bytes == 0 || bytes % VG_PAGE_BYTES != 0)
        return VG_INVALID_VALUE;
    struct physical *p = calloc(1, sizeof *p);
    if (p == NULL)
        return VG_OUT_OF_MEMORY;
    unsigned device = properties->where.type == 1 ? (unsigned)properties->where.id : vg_device();
    vg_lock();
    bool ok = vg_mem_charge(device, whole_pages(bytes), bytes);
    *p = (struct physical){.magic = HANDLE_MAGIC,
                           .id = ok ? vg_mem_new_id() : MAQ_REC_NONE,
                           .bytes = bytes,
                           .device = device,
                           .refs = 1,
                           .properties = *properties};
    vg_mem_tell(MAQ_REC_ALLOC, p->id, MAQ_REC_DEVICE, bytes, ok ? 0 : MAQ_REC_FAILED, NULL);
    vg_unlock();
    if (!ok)
        free(p);
    *handle = ok ? (uintptr_t)p : 0;
    return ok ? VG_OK : VG_OUT_OF_MEMORY;
}

static void let_go(struct physical *p)
{
    if (--p->refs > 0)
        return;
    vg_mem_discharge(p->device, whole_pages(p->bytes), p->bytes);
    vg_mem_tell(MAQ_REC_FREE, p->id, MAQ_REC_DEVICE, 0, 0, NULL);
    p->magic = 0;
    free(p);
}

VG_EXPORT int cuMemRelease(uint64_t handle)
{
    vg_call();
    vg_lock();
    struct physical *p = physical_of(handle);
    if (p != NULL)
        let_go(p);
    vg_unlock();
    return p != NULL ? VG_OK : VG_INVALID_VALUE;
}

VG_EXPORT int cuMemMap(uint64_t at, size_t bytes, size_t offset, uint64_t handle, unsigned long long flags)
{
    (void)flags;
    vg_call();
    vg_lock();
    struct physical *p = physical_of(handle);
    int status = p != NULL && offset <= p->bytes && bytes <= p->bytes - offset ? VG_OK : VG_INVALID_VALUE;
    if (status == VG_OK && n_mappings == room) {
        struct mapping *bigger = realloc(mappings, (room == 0 ? 64 : room * 2) * sizeof *mappings);
        status = bigger != NULL ? VG_OK : VG_OUT_OF_MEMORY;
        if (bigger != NULL) {
            mappings = bigger;
            room = room == 0 ? 64 : room * 2;
        }
    }
    if (status == VG_OK) {
        struct vg_mem mem = {
            .base = at, .bytes = bytes, .id = p->id, .kind = MAQ_REC_DEVICE, .device = (uint8_t)p->device};
        status = vg_mem_enter(&mem) ? VG_OK : VG_OUT_OF_MEMORY;
    }
    if (status == VG_OK) {
        mappings[n_mappings++] = (struct mapping){at, bytes, p};
        p->refs++;
    }
    vg_unlock();
    return status;
}

/* One call may take away several mappings that lie side by side. */
VG_EXPORT int cuMemUnmap(uint64_t at, size_t bytes)
{
    bool any = false;
    vg_call();
    vg_lock();
    for (size_t i = 0; i < n_mappings;) {
        struct mapping m = mappings[i];
        if (m.at < at || m.at + m.bytes > at + bytes) {
            i++;
            continue;
        }
        mappings[i] = mappings[--n_mappings];
        mprotect((void *)(uintptr_t)m.at, m.bytes, PROT_NONE); // NOLINT(performance-no-int-to-ptr)
        vg_mem_leave(m.at);
        let_go(m.of);
        any = true;
    }
    vg_unlock();
    return any ? VG_OK : VG_INVALID_VALUE;
}

VG_EXPORT int cuMemSetAccess(uint64_t at, size_t bytes, const struct vg_access *access, size_t n)
{
    (void)at, (void)bytes, (void)access, (void)n;
    vg_call();
    return VG_OK;
}

VG_EXPORT int cuMemGetAccess(unsigned long long *flags, const struct vg_location *where, uint64_t at)
{
    (void)where, (void)at;
    *flags = 3; /* read and write */
    return VG_OK;
}

VG_EXPORT int cuMemGetAllocationPropertiesFromHandle(struct properties *out, uint64_t handle)
{
    struct physical *p = physical_of(handle);
    if (p == NULL)
        return VG_INVALID_VALUE;
    *out = p->properties;
    return VG_OK;
}

VG_EXPORT int cuMemRetainAllocationHandle(uint64_t *handle, void *at)
{
    vg_lock();
    int status = VG_INVALID_VALUE;
    for (size_t i = 0; i < n_mappings; i++)
        if ((uintptr_t)at - mappings[i].at < mappings[i].bytes) {
            mappings[i].of->refs++;
            *handle = (uintptr_t)mappings[i].of;
            status = VG_OK;
        }
    vg_unlock();
    return status;
}

/* Memory of one process is not another's here. */
VG_EXPORT int cuMemExportToShareableHandle(void *out, uint64_t handle, int type, unsigned long long flags)
{
    (void)out, (void)handle, (void)type, (void)flags;
    return VG_NOT_SUPPORTED;
}

VG_EXPORT int cuMemImportFromShareableHandle(uint64_t *handle, void *from, int type)
{
    (void)from, (void)type;
    *handle = 0;
    return VG_NOT_SUPPORTED;
}
