/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device.c - what a program may ask about its devices.
 *
 * Figures come from the run card; what the card does not have is the same on all devices of a compute capability (CUDA C++
 * Programming Guide, technical specifications per compute capability, 13.0) or a number that programs only print.
 */
#include "shim/cuda/cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_GRID = 2147483647, DRIVER_13 = 13000, DRIVER_12 = 12080, MAX_PITCH = 2147483647 };

/* Shared memory and residency per compute capability. */
static const struct generation {
    uint32_t capability;
    int shared_per_sm, shared_optin, threads_per_sm, blocks_per_sm;
} generations[] = {
    {70, 96 << 10, 96 << 10, 2048, 32},   {75, 64 << 10, 64 << 10, 1024, 16},    {80, 164 << 10, 163 << 10, 2048, 32},
    {86, 100 << 10, 99 << 10, 1536, 16},  {87, 164 << 10, 163 << 10, 1536, 16},  {89, 100 << 10, 99 << 10, 1536, 24},
    {90, 228 << 10, 227 << 10, 2048, 32}, {100, 228 << 10, 227 << 10, 2048, 32}, {103, 228 << 10, 227 << 10, 2048, 32},
    {120, 100 << 10, 99 << 10, 1536, 24},
};

static const struct generation *generation(void)
{
    const struct generation *found = &generations[0];
    for (size_t i = 0; i < sizeof generations / sizeof *generations; i++)
        if (generations[i].capability <= vg_card()->capability)
            found = &generations[i];
    return found;
}

static int pci_bus(int device)
{
    return 0x10 + device;
}

int vg_attribute(int *value, int attribute, int device)
{
    const struct vg_card *card = vg_card();
    const struct generation *g = generation();
    const int values[][2] = {
        {VG_ATTR_THREADS_PER_BLOCK, 1024},
        {VG_ATTR_BLOCK_X, 1024},
        {VG_ATTR_BLOCK_Y, 1024},
        {VG_ATTR_BLOCK_Z, 64},
        {VG_ATTR_GRID_X, MAX_GRID},
        {VG_ATTR_GRID_Y, 65535},
        {VG_ATTR_GRID_Z, 65535},
        {VG_ATTR_SHARED_PER_BLOCK, 48 << 10},
        {VG_ATTR_CONSTANT, 64 << 10},
        {VG_ATTR_WARP, 32},
        {VG_ATTR_PITCH, MAX_PITCH},
        {VG_ATTR_REGISTERS_PER_BLOCK, 65536},
        {VG_ATTR_CLOCK_KHZ, (int)card->clock_khz},
        {VG_ATTR_TEXTURE_ALIGNMENT, 512},
        {VG_ATTR_OVERLAP, 1},
        {VG_ATTR_SMS, (int)card->sms},
        {VG_ATTR_MAP_HOST, 1},
        {VG_ATTR_CONCURRENT_KERNELS, 1},
        {VG_ATTR_ECC, 1},
        {VG_ATTR_PCI_BUS, pci_bus(device)},
        {VG_ATTR_MEMORY_KHZ, (int)card->memory_khz},
        {VG_ATTR_BUS_BITS, (int)card->bus_bits},
        {VG_ATTR_L2, (int)card->l2_bytes},
        {VG_ATTR_THREADS_PER_SM, g->threads_per_sm},
        {VG_ATTR_COPY_ENGINES, 3},
        {VG_ATTR_UNIFIED, 1},
        {VG_ATTR_TEXTURE_PITCH, 32},
        {VG_ATTR_MAJOR, (int)card->capability / 10},
        {VG_ATTR_MINOR, (int)card->capability % 10},
        {VG_ATTR_PRIORITIES, 1},
        {VG_ATTR_L1_GLOBAL, 1},
        {VG_ATTR_L1_LOCAL, 1},
        {VG_ATTR_SHARED_PER_SM, g->shared_per_sm},
        {VG_ATTR_REGISTERS_PER_SM, 65536},
        {VG_ATTR_MANAGED, 1},
        {VG_ATTR_SINGLE_TO_DOUBLE, 2},
        {VG_ATTR_CONCURRENT_MANAGED, 1},
        {VG_ATTR_PREEMPTION, 1},
        {VG_ATTR_REGISTERED_HOST_POINTER, 1},
        {VG_ATTR_COOPERATIVE, 1},
        {VG_ATTR_SHARED_OPTIN, g->shared_optin},
        {VG_ATTR_HOST_REGISTER, 1},
        {VG_ATTR_VMM, 1},
        {VG_ATTR_VMM_FD_HANDLES, 1},
        {VG_ATTR_BLOCKS_PER_SM, g->blocks_per_sm},
        {VG_ATTR_L2_PERSISTING, (int)(card->l2_bytes / 8 * 5)},
        {VG_ATTR_POLICY_WINDOW, 128 << 20},
        {VG_ATTR_SHARED_RESERVED, 1024},
        {VG_ATTR_POOLS, 1},
        {VG_ATTR_POOL_HANDLES, 1},
        {VG_ATTR_CLUSTERS, card->capability >= 90},
        {VG_ATTR_IPC_EVENTS, 1},
    };
    *value = 0;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (values[i][0] == attribute)
            *value = values[i][1];
    if (device < 0 || (unsigned)device >= vg_device_count())
        return VG_INVALID_DEVICE;
    return attribute > 0 && attribute < 1000 ? VG_OK : VG_INVALID_VALUE;
}

void vg_device_uuid(unsigned char uuid[16], int device)
{
    const struct vg_card *card = vg_card();
    uint64_t node = card->rank / card->per_node;
    uint64_t words[2] = {maq_rec_mix(node, (uint64_t)device), maq_rec_mix((uint64_t)device, ~node)};
    memcpy(uuid, words, sizeof words);
}

static size_t attribute_of(int attribute)
{
    int value;
    vg_attribute(&value, attribute, 0);
    return (size_t)value;
}

static int properties_13(struct vg_prop_13 *p, int device)
{
    const struct {
        int *to, attribute;
    } ints[] = {
        {&p->registers_per_block, VG_ATTR_REGISTERS_PER_BLOCK},
        {&p->warp, VG_ATTR_WARP},
        {&p->threads_per_block, VG_ATTR_THREADS_PER_BLOCK},
        {&p->block[0], VG_ATTR_BLOCK_X},
        {&p->block[1], VG_ATTR_BLOCK_Y},
        {&p->block[2], VG_ATTR_BLOCK_Z},
        {&p->grid[0], VG_ATTR_GRID_X},
        {&p->grid[1], VG_ATTR_GRID_Y},
        {&p->grid[2], VG_ATTR_GRID_Z},
        {&p->major, VG_ATTR_MAJOR},
        {&p->minor, VG_ATTR_MINOR},
        {&p->sms, VG_ATTR_SMS},
        {&p->map_host, VG_ATTR_MAP_HOST},
        {&p->concurrent_kernels, VG_ATTR_CONCURRENT_KERNELS},
        {&p->ecc, VG_ATTR_ECC},
        {&p->pci_bus, VG_ATTR_PCI_BUS},
        {&p->copy_engines, VG_ATTR_COPY_ENGINES},
        {&p->unified, VG_ATTR_UNIFIED},
        {&p->bus_bits, VG_ATTR_BUS_BITS},
        {&p->l2, VG_ATTR_L2},
        {&p->l2_persisting, VG_ATTR_L2_PERSISTING},
        {&p->threads_per_sm, VG_ATTR_THREADS_PER_SM},
        {&p->priorities, VG_ATTR_PRIORITIES},
        {&p->l1_global, VG_ATTR_L1_GLOBAL},
        {&p->l1_local, VG_ATTR_L1_LOCAL},
        {&p->registers_per_sm, VG_ATTR_REGISTERS_PER_SM},
        {&p->managed, VG_ATTR_MANAGED},
        {&p->concurrent_managed, VG_ATTR_CONCURRENT_MANAGED},
        {&p->preemption, VG_ATTR_PREEMPTION},
        {&p->registered_host_pointer, VG_ATTR_REGISTERED_HOST_POINTER},
        {&p->cooperative, VG_ATTR_COOPERATIVE},
        {&p->blocks_per_sm, VG_ATTR_BLOCKS_PER_SM},
        {&p->policy_window, VG_ATTR_POLICY_WINDOW},
        {&p->host_register, VG_ATTR_HOST_REGISTER},
        {&p->pools, VG_ATTR_POOLS},
        {&p->ipc_events, VG_ATTR_IPC_EVENTS},
        {&p->clusters, VG_ATTR_CLUSTERS},
    };
    if (device < 0 || (unsigned)device >= vg_device_count())
        return VG_INVALID_DEVICE;
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        vg_attribute(ints[i].to, ints[i].attribute, device);
    snprintf(p->name, sizeof p->name, "%s", vg_card()->device);
    vg_device_uuid(p->uuid, device);
    p->memory = vg_card()->memory_bytes;
    p->shared_per_block = attribute_of(VG_ATTR_SHARED_PER_BLOCK);
    p->pitch = attribute_of(VG_ATTR_PITCH);
    p->constant = attribute_of(VG_ATTR_CONSTANT);
    p->texture_alignment = p->surface_alignment = attribute_of(VG_ATTR_TEXTURE_ALIGNMENT);
    p->texture_pitch = attribute_of(VG_ATTR_TEXTURE_PITCH);
    p->shared_per_sm = attribute_of(VG_ATTR_SHARED_PER_SM);
    p->shared_optin = attribute_of(VG_ATTR_SHARED_OPTIN);
    p->shared_reserved = attribute_of(VG_ATTR_SHARED_RESERVED);
    p->pool_handles = (unsigned)attribute_of(VG_ATTR_POOL_HANDLES);
    return VG_OK;
}

/* CUDA 12's struct has the same members and a few more. */
static int properties_12(struct vg_prop_12 *p, int device)
{
    struct vg_prop_13 all;
    int status = properties_13(&all, device);
    if (status != VG_OK)
        return status;
    memset(p, 0, sizeof *p);
#define COPY(type, name, array) memcpy(&p->name, &all.name, sizeof p->name);
    VG_DEVICE_PROP(COPY, VG_NO_MEMBER)
#undef COPY
    vg_attribute(&p->clock_khz, VG_ATTR_CLOCK_KHZ, device);
    vg_attribute(&p->memory_khz, VG_ATTR_MEMORY_KHZ, device);
    vg_attribute(&p->overlap, VG_ATTR_OVERLAP, device);
    vg_attribute(&p->single_to_double, VG_ATTR_SINGLE_TO_DOUBLE, device);
    p->cooperative_multi = 1;
    return VG_OK;
}

VG_EXPORT int cudaGetDeviceProperties(void *p, int device)
{
    vg_call();
    return vg_result(vg_cuda_major >= 13 ? properties_13(p, device) : properties_12(p, device));
}

/* The name that CUDA 12's headers give the call. */
VG_EXPORT int cudaGetDeviceProperties_v2(void *p, int device)
{
    vg_call();
    return vg_result(properties_12(p, device));
}

VG_EXPORT int cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    return vg_result(vg_attribute(value, attribute, device));
}

VG_EXPORT int cudaGetDeviceCount(int *count)
{
    *count = (int)vg_device_count();
    return vg_result(*count > 0 ? VG_OK : VG_NO_DEVICE);
}

VG_EXPORT int cudaSetDevice(int device)
{
    return vg_result(vg_device_set(device) ? VG_OK : VG_INVALID_DEVICE);
}

VG_EXPORT int cudaInitDevice(int device, unsigned flags, unsigned more)
{
    (void)flags, (void)more;
    return cudaSetDevice(device);
}

VG_EXPORT int cudaGetDevice(int *device)
{
    *device = (int)vg_device();
    return VG_OK;
}

VG_EXPORT int cudaChooseDevice(int *device, const void *wanted)
{
    (void)wanted;
    *device = 0;
    return VG_OK;
}

VG_EXPORT int cudaSetValidDevices(int *devices, int n)
{
    (void)devices, (void)n;
    return VG_OK;
}

static unsigned device_flags;

VG_EXPORT int cudaSetDeviceFlags(unsigned flags)
{
    device_flags = flags;
    return VG_OK;
}

VG_EXPORT int cudaGetDeviceFlags(unsigned *flags)
{
    *flags = device_flags;
    return VG_OK;
}

VG_EXPORT int cudaDriverGetVersion(int *version)
{
    *version = vg_cuda_major >= 13 ? DRIVER_13 : DRIVER_12;
    return VG_OK;
}

VG_EXPORT int cudaRuntimeGetVersion(int *version)
{
    return cudaDriverGetVersion(version);
}

VG_EXPORT int cudaDeviceGetPCIBusId(char *text, int n, int device)
{
    if (device < 0 || (unsigned)device >= vg_device_count() || n < 13)
        return vg_result(VG_INVALID_VALUE);
    snprintf(text, (size_t)n, "0000:%02X:00.0", (unsigned)pci_bus(device));
    return VG_OK;
}

VG_EXPORT int cudaDeviceGetByPCIBusId(int *device, const char *text)
{
    char own[16];
    for (unsigned i = 0; i < vg_device_count(); i++)
        if (cudaDeviceGetPCIBusId(own, sizeof own, (int)i) == VG_OK &&
            (strcmp(own, text) == 0 || strcmp(own + 5, text) == 0)) {
            *device = (int)i;
            return VG_OK;
        }
    return vg_result(VG_INVALID_DEVICE);
}

VG_EXPORT int cudaDeviceGetStreamPriorityRange(int *lowest, int *highest)
{
    if (lowest != NULL)
        *lowest = 0;
    if (highest != NULL)
        *highest = -5; /* of every device since Volta */
    return VG_OK;
}

VG_EXPORT int cudaDeviceCanAccessPeer(int *can, int device, int peer)
{
    bool both = device >= 0 && peer >= 0 && (unsigned)device < vg_device_count() && (unsigned)peer < vg_device_count();
    *can = both && device != peer;
    return vg_result(both ? VG_OK : VG_INVALID_DEVICE);
}

static unsigned char peers_of[VG_DEVICES][VG_DEVICES];

VG_EXPORT int cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    (void)flags;
    if (peer < 0 || (unsigned)peer >= vg_device_count() || (unsigned)peer == vg_device())
        return vg_result(VG_INVALID_DEVICE);
    if (peers_of[vg_device()][peer]++ > 0)
        return vg_result(VG_PEER_ACCESS_ALREADY_ENABLED);
    return VG_OK;
}

VG_EXPORT int cudaDeviceDisablePeerAccess(int peer)
{
    if (peer < 0 || (unsigned)peer >= vg_device_count() || peers_of[vg_device()][peer] == 0)
        return vg_result(VG_PEER_ACCESS_NOT_ENABLED);
    peers_of[vg_device()][peer] = 0;
    return VG_OK;
}

VG_EXPORT int cudaDeviceGetP2PAttribute(int *value, int attribute, int from, int to)
{
    (void)from, (void)to;
    *value = attribute == 2 || attribute == 3; /* access, atomics */
    return VG_OK;
}

/* Stack, printf buffer, heap and so on: what was set is what is read; defaults of the CUDA C++ Programming Guide. */
static size_t limits[7] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};

VG_EXPORT int cudaDeviceSetLimit(int limit, size_t value)
{
    if (limit < 0 || limit > 6)
        return vg_result(VG_INVALID_VALUE);
    limits[limit] = value;
    return VG_OK;
}

VG_EXPORT int cudaDeviceGetLimit(size_t *value, int limit)
{
    if (limit < 0 || limit > 6)
        return vg_result(VG_INVALID_VALUE);
    *value = limits[limit];
    return VG_OK;
}

VG_EXPORT int cudaDeviceGetCacheConfig(int *config)
{
    *config = 0;
    return VG_OK;
}

VG_EXPORT int cudaDeviceSetCacheConfig(int config)
{
    (void)config;
    return VG_OK;
}

VG_EXPORT int cudaCtxResetPersistingL2Cache(void)
{
    return VG_OK;
}

VG_EXPORT int cudaDeviceSynchronize(void)
{
    int64_t end;
    vg_call();
    vg_lock();
    if (vg_drives())
        vg_record((struct maq_rec){.kind = MAQ_REC_DEVICE_SYNC, .stream = MAQ_REC_HOST_STREAM}, NULL);
    vg_unlock();
    bool ok = vg_device_end(&end);
    vg_wait_until(end);
    return vg_result(ok ? VG_OK : VG_LAUNCH_FAILURE);
}

VG_EXPORT int cudaDeviceReset(void)
{
    return cudaDeviceSynchronize();
}

VG_EXPORT int cudaProfilerStart(void)
{
    return VG_OK;
}

VG_EXPORT int cudaProfilerStop(void)
{
    return VG_OK;
}
