/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nvml.c - NVML over the zero-GPU device: the functions that programs call to find devices, memory, clocks and limits.
 *
 * Devices are those of the runtime, in its order, with its bus ids and UUIDs. What only a physical device has (power
 * drawn, temperature, fan, utilisation) reads as zero; clocks and the power limit are those of the card. No NVLink is
 * active: what looks for one here wants to write into a peer's memory, and peers are virtual. What is not answered here
 * is not exported, as in a driver that is older than the program.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/abi/nvml.h"
#include "shim/math/operator.h"

/* Of cuda/. */
int cudaGetDeviceCount(int *n);
int cudaDeviceGetPCIBusId(char *text, int bytes, int device);
int cudaDriverGetVersion(int *version);
int cuDeviceGetUuid_v2(unsigned char *uuid, int device);

enum { MAX_DEVICES = 64 };

/* A handle is the address of one of these. */
static char handles[MAX_DEVICES];

static int device_count(void)
{
    int n = 0;
    if (cudaGetDeviceCount(&n) != 0 || n < 0)
        return 0;
    return n < MAX_DEVICES ? n : MAX_DEVICES;
}

static int index_of(const void *device)
{
    const uintptr_t at = (uintptr_t)device - (uintptr_t)handles;
    return at < (uintptr_t)device_count() ? (int)at : -1;
}

static int text(char *out, unsigned bytes, const char *value)
{
    if (out == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    if (strlen(value) >= bytes)
        return ABI_NVML_INSUFFICIENT_SIZE;
    memcpy(out, value, strlen(value) + 1);
    return ABI_NVML_SUCCESS;
}

static int number(const void *device, unsigned *out, unsigned value)
{
    if (index_of(device) < 0 || out == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    *out = value;
    return ABI_NVML_SUCCESS;
}

/* --- the library ------------------------------------------------------------------------------------------------------ */

MATH_API(int, nvmlInit_v2, void)
{
    return ABI_NVML_SUCCESS;
}

MATH_API(int, nvmlInit, void)
{
    return ABI_NVML_SUCCESS;
}

MATH_API(int, nvmlInitWithFlags, unsigned flags)
{
    (void)flags;
    return ABI_NVML_SUCCESS;
}

MATH_API(int, nvmlShutdown, void)
{
    return ABI_NVML_SUCCESS;
}

MATH_API(const char *, nvmlErrorString, int result)
{
    static const struct {
        int result;
        const char *text;
    } words[] = {
        {ABI_NVML_SUCCESS, "Success"},
        {ABI_NVML_UNINITIALIZED, "Uninitialized"},
        {ABI_NVML_INVALID_ARGUMENT, "Invalid Argument"},
        {ABI_NVML_NOT_SUPPORTED, "Not Supported"},
        {ABI_NVML_NO_PERMISSION, "Insufficient Permissions"},
        {ABI_NVML_NOT_FOUND, "Not Found"},
        {ABI_NVML_INSUFFICIENT_SIZE, "Insufficient Size"},
        {ABI_NVML_DRIVER_NOT_LOADED, "Driver Not Loaded"},
        {ABI_NVML_FUNCTION_NOT_FOUND, "Function Not Found"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (words[i].result == result)
            return words[i].text;
    return "Unknown Error";
}

/* The driver that CUDA's release notes name as the first for a version of CUDA ("CUDA Toolkit and Corresponding Driver
 * Versions"): 580.65 for 13.0, 570.26 for 12.8. */
static const char *driver_version(void)
{
    int cuda = 0;
    cudaDriverGetVersion(&cuda);
    return cuda >= 13000 ? "580.65.06" : "570.26";
}

MATH_API(int, nvmlSystemGetDriverVersion, char *out, unsigned bytes)
{
    return text(out, bytes, driver_version());
}

MATH_API(int, nvmlSystemGetNVMLVersion, char *out, unsigned bytes)
{
    char version[32];
    int cuda = 0;
    cudaDriverGetVersion(&cuda);
    snprintf(version, sizeof version, "%d.%s", cuda / 1000, driver_version());
    return text(out, bytes, version);
}

MATH_API(int, nvmlSystemGetCudaDriverVersion, int *version)
{
    if (version == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    return cudaDriverGetVersion(version) == 0 ? ABI_NVML_SUCCESS : ABI_NVML_UNKNOWN;
}

MATH_API(int, nvmlSystemGetCudaDriverVersion_v2, int *version)
{
    return nvmlSystemGetCudaDriverVersion(version);
}

MATH_API(int, nvmlSystemGetProcessName, unsigned pid, char *out, unsigned bytes)
{
    (void)pid;
    return text(out, bytes, "");
}

/* --- which device ------------------------------------------------------------------------------------------------------ */

MATH_API(int, nvmlDeviceGetCount_v2, unsigned *n)
{
    if (n == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    *n = (unsigned)device_count();
    return ABI_NVML_SUCCESS;
}

MATH_API(int, nvmlDeviceGetCount, unsigned *n)
{
    return nvmlDeviceGetCount_v2(n);
}

MATH_API(int, nvmlDeviceGetHandleByIndex_v2, unsigned index, void **device)
{
    if (device == NULL || index >= (unsigned)device_count())
        return ABI_NVML_INVALID_ARGUMENT;
    *device = &handles[index];
    return ABI_NVML_SUCCESS;
}

MATH_API(int, nvmlDeviceGetHandleByIndex, unsigned index, void **device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

static bool bus_id(int index, unsigned *domain, unsigned *bus, unsigned *slot)
{
    char own[32];
    return cudaDeviceGetPCIBusId(own, sizeof own, index) == 0 && sscanf(own, "%x:%x:%x", domain, bus, slot) == 3;
}

/* Domains are written with four digits and with eight; both are the same device. */
MATH_API(int, nvmlDeviceGetHandleByPciBusId_v2, const char *wanted, void **device)
{
    unsigned w[3], d[3];
    if (wanted == NULL || device == NULL || sscanf(wanted, "%x:%x:%x", &w[0], &w[1], &w[2]) != 3)
        return ABI_NVML_INVALID_ARGUMENT;
    for (int i = 0; i < device_count(); i++)
        if (bus_id(i, &d[0], &d[1], &d[2]) && memcmp(w, d, sizeof w) == 0) {
            *device = &handles[i];
            return ABI_NVML_SUCCESS;
        }
    return ABI_NVML_NOT_FOUND;
}

MATH_API(int, nvmlDeviceGetHandleByPciBusId, const char *wanted, void **device)
{
    return nvmlDeviceGetHandleByPciBusId_v2(wanted, device);
}

/* "GPU-" and the 16 bytes in hexadecimal, in groups of 4, 2, 2, 2 and 6. */
static void uuid_text(int index, char out[48])
{
    unsigned char u[16] = {0};
    size_t used = 4;
    cuDeviceGetUuid_v2(u, index);
    memcpy(out, "GPU-", 5);
    for (unsigned i = 0; i < 16; i++)
        used +=
            (size_t)snprintf(out + used, 48 - used, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

MATH_API(int, nvmlDeviceGetUUID, void *device, char *out, unsigned bytes)
{
    char uuid[48];
    if (index_of(device) < 0)
        return ABI_NVML_INVALID_ARGUMENT;
    uuid_text(index_of(device), uuid);
    return text(out, bytes, uuid);
}

MATH_API(int, nvmlDeviceGetHandleByUUID, const char *wanted, void **device)
{
    char uuid[48];
    if (wanted == NULL || device == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    for (int i = 0; i < device_count(); i++) {
        uuid_text(i, uuid);
        if (strcmp(uuid, wanted) == 0) {
            *device = &handles[i];
            return ABI_NVML_SUCCESS;
        }
    }
    return ABI_NVML_NOT_FOUND;
}

MATH_API(int, nvmlDeviceGetIndex, void *device, unsigned *out)
{
    return number(device, out, (unsigned)index_of(device));
}

MATH_API(int, nvmlDeviceGetMinorNumber, void *device, unsigned *out)
{
    return number(device, out, (unsigned)index_of(device));
}

MATH_API(int, nvmlDeviceGetName, void *device, char *out, unsigned bytes)
{
    return index_of(device) < 0 ? ABI_NVML_INVALID_ARGUMENT : text(out, bytes, vg_card()->device);
}

MATH_API(int, nvmlDeviceGetPciInfo_v3, void *device, struct abi_nvml_pci *out)
{
    unsigned d[3];
    const int index = index_of(device);
    if (index < 0 || out == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    if (!bus_id(index, &d[0], &d[1], &d[2]))
        return ABI_NVML_UNKNOWN;
    memset(out, 0, sizeof *out);
    out->domain = d[0];
    out->bus = d[1];
    out->device = d[2];
    out->device_id = 0x10de; /* NVIDIA's vendor id in the low half; no product */
    snprintf(out->legacy_bus_id, sizeof out->legacy_bus_id, "%04X:%02X:%02X.0", d[0] & 0xffff, d[1] & 0xff,
             d[2] & 0xff);
    snprintf(out->bus_id, sizeof out->bus_id, "%08X:%02X:%02X.0", d[0], d[1] & 0xff, d[2] & 0xff);
    return ABI_NVML_SUCCESS;
}

MATH_API(int, nvmlDeviceGetPciInfo_v2, void *device, struct abi_nvml_pci *out)
{
    return nvmlDeviceGetPciInfo_v3(device, out);
}

MATH_API(int, nvmlDeviceGetCudaComputeCapability, void *device, int *major, int *minor)
{
    if (index_of(device) < 0 || major == NULL || minor == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    *major = (int)vg_card()->capability / 10;
    *minor = (int)vg_card()->capability % 10;
    return ABI_NVML_SUCCESS;
}

/* --- memory and who uses it --------------------------------------------------------------------------------------------- */

MATH_API(int, nvmlDeviceGetMemoryInfo, void *device, struct abi_nvml_memory *out)
{
    uint64_t peak;
    if (index_of(device) < 0 || out == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    vg_lock();
    vg_mem_info(&out->free, &out->total, &peak);
    vg_unlock();
    out->used = out->total - out->free;
    return ABI_NVML_SUCCESS;
}

MATH_API(int, nvmlDeviceGetMemoryInfo_v2, void *device, struct abi_nvml_memory_v2 *out)
{
    struct abi_nvml_memory m;
    const int status = out == NULL ? ABI_NVML_INVALID_ARGUMENT : nvmlDeviceGetMemoryInfo(device, &m);
    if (status == ABI_NVML_SUCCESS) {
        out->total = m.total;
        out->reserved = 0;
        out->free = m.free;
        out->used = m.used;
    }
    return status;
}

/* This process is the only one on its device. */
static int processes(const void *device, unsigned *n, void *out, bool has_instances)
{
    struct abi_nvml_memory m;
    const unsigned room = n != NULL ? *n : 0;
    if (n == NULL || index_of(device) < 0)
        return ABI_NVML_INVALID_ARGUMENT;
    *n = 1;
    if (room == 0 || out == NULL)
        return ABI_NVML_INSUFFICIENT_SIZE;
    nvmlDeviceGetMemoryInfo(&handles[index_of(device)], &m);
    if (has_instances)
        *(struct abi_nvml_process *)out = (struct abi_nvml_process){(uint32_t)getpid(), m.used, UINT32_MAX, UINT32_MAX};
    else
        *(struct abi_nvml_process_v1 *)out = (struct abi_nvml_process_v1){(uint32_t)getpid(), m.used};
    return ABI_NVML_SUCCESS;
}

static int nobody(const void *device, unsigned *n)
{
    return number(device, n, 0);
}

MATH_API(int, nvmlDeviceGetComputeRunningProcesses, void *device, unsigned *n, void *out)
{
    return processes(device, n, out, false);
}

MATH_API(int, nvmlDeviceGetComputeRunningProcesses_v2, void *device, unsigned *n, void *out)
{
    return processes(device, n, out, true);
}

MATH_API(int, nvmlDeviceGetComputeRunningProcesses_v3, void *device, unsigned *n, void *out)
{
    return processes(device, n, out, true);
}

MATH_API(int, nvmlDeviceGetGraphicsRunningProcesses_v3, void *device, unsigned *n, void *out)
{
    (void)out;
    return nobody(device, n);
}

/* --- clocks and power --------------------------------------------------------------------------------------------------- */

MATH_API(int, nvmlDeviceGetClockInfo, void *device, int domain, unsigned *mhz)
{
    const struct vg_card *c = vg_card();
    return number(device, mhz, (domain == ABI_NVML_CLOCK_MEMORY ? c->memory_khz : c->clock_khz) / 1000);
}

MATH_API(int, nvmlDeviceGetMaxClockInfo, void *device, int domain, unsigned *mhz)
{
    return nvmlDeviceGetClockInfo(device, domain, mhz);
}

MATH_API(int, nvmlDeviceGetApplicationsClock, void *device, int domain, unsigned *mhz)
{
    return nvmlDeviceGetClockInfo(device, domain, mhz);
}

MATH_API(int, nvmlDeviceGetPowerManagementLimit, void *device, unsigned *milliwatt)
{
    return number(device, milliwatt, 1000 * vg_card()->power_w);
}

MATH_API(int, nvmlDeviceGetEnforcedPowerLimit, void *device, unsigned *milliwatt)
{
    return nvmlDeviceGetPowerManagementLimit(device, milliwatt);
}

MATH_API(int, nvmlDeviceGetPowerManagementDefaultLimit, void *device, unsigned *milliwatt)
{
    return nvmlDeviceGetPowerManagementLimit(device, milliwatt);
}

MATH_API(int, nvmlDeviceGetMemoryBusWidth, void *device, unsigned *bits)
{
    return number(device, bits, vg_card()->bus_bits);
}

MATH_API(int, nvmlDeviceGetPowerUsage, void *device, unsigned *milliwatt)
{
    return number(device, milliwatt, 0);
}

MATH_API(int, nvmlDeviceGetFanSpeed, void *device, unsigned *percent)
{
    return number(device, percent, 0);
}

MATH_API(int, nvmlDeviceGetTemperature, void *device, int sensor, unsigned *celsius)
{
    (void)sensor;
    return number(device, celsius, 0);
}

MATH_API(int, nvmlDeviceGetTemperatureThreshold, void *device, int threshold, unsigned *celsius)
{
    (void)threshold;
    return number(device, celsius, 0);
}

/* A set of reasons for lower clocks, in both spellings of its name: none. */
MATH_API(int, nvmlDeviceGetCurrentClocksThrottleReasons, void *device, unsigned long long *reasons)
{
    if (index_of(device) < 0 || reasons == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    *reasons = 0;
    return ABI_NVML_SUCCESS;
}

MATH_API(int, nvmlDeviceGetCurrentClocksEventReasons, void *device, unsigned long long *reasons)
{
    return nvmlDeviceGetCurrentClocksThrottleReasons(device, reasons);
}

MATH_API(int, nvmlDeviceGetTotalEnergyConsumption, void *device, unsigned long long *millijoule)
{
    return nvmlDeviceGetCurrentClocksThrottleReasons(device, millijoule);
}

MATH_API(int, nvmlDeviceGetUtilizationRates, void *device, struct abi_nvml_utilization *out)
{
    if (index_of(device) < 0 || out == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    *out = (struct abi_nvml_utilization){0, 0};
    return ABI_NVML_SUCCESS;
}

/* One sample, of now. */
MATH_API(int, nvmlDeviceGetSamples, void *device, int kind, unsigned long long since, int *type, unsigned *n,
         struct abi_nvml_sample *out)
{
    (void)kind, (void)since;
    if (index_of(device) < 0 || type == NULL || n == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    *type = ABI_NVML_VALUE_UINT;
    if (out != NULL && *n == 0)
        return ABI_NVML_INSUFFICIENT_SIZE;
    *n = 1;
    if (out != NULL)
        *out = (struct abi_nvml_sample){(uint64_t)vg_now() / 1000, 0};
    return ABI_NVML_SUCCESS;
}

/* --- modes and neighbours ------------------------------------------------------------------------------------------------ */

MATH_API(int, nvmlDeviceGetPersistenceMode, void *device, unsigned *mode)
{
    return number(device, mode, 1);
}

MATH_API(int, nvmlDeviceGetComputeMode, void *device, unsigned *mode)
{
    return number(device, mode, 0);
}

MATH_API(int, nvmlDeviceGetMigMode, void *device, unsigned *current, unsigned *pending)
{
    const int status = number(device, current, 0);
    return status == ABI_NVML_SUCCESS ? number(device, pending, 0) : status;
}

MATH_API(int, nvmlDeviceGetNvLinkState, void *device, unsigned link, unsigned *active)
{
    (void)link;
    return number(device, active, 0);
}

MATH_API(int, nvmlDeviceGetNvLinkRemoteDeviceType, void *device, unsigned link, int *type)
{
    (void)link;
    if (index_of(device) < 0 || type == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    *type = ABI_NVML_NVLINK_REMOTE_UNKNOWN;
    return ABI_NVML_SUCCESS;
}

MATH_API(int, nvmlDeviceGetNvLinkRemotePciInfo_v2, void *device, unsigned link, struct abi_nvml_pci *out)
{
    (void)link, (void)out;
    return index_of(device) < 0 ? ABI_NVML_INVALID_ARGUMENT : ABI_NVML_NOT_SUPPORTED;
}

MATH_API(int, nvmlDeviceGetNvLinkVersion, void *device, unsigned link, unsigned *version)
{
    (void)link, (void)version;
    return index_of(device) < 0 ? ABI_NVML_INVALID_ARGUMENT : ABI_NVML_NOT_SUPPORTED;
}

MATH_API(int, nvmlDeviceGetNvLinkCapability, void *device, unsigned link, int capability, unsigned *out)
{
    (void)link, (void)capability;
    return number(device, out, 0);
}

MATH_API(int, nvmlDeviceGetGpuFabricInfoV, void *device, void *out)
{
    (void)out;
    return index_of(device) < 0 ? ABI_NVML_INVALID_ARGUMENT : ABI_NVML_NOT_SUPPORTED;
}

/* Peers on the node reach each other, as the runtime says of them. */
MATH_API(int, nvmlDeviceGetP2PStatus, void *one, void *other, int capability, int *status)
{
    (void)capability;
    if (index_of(one) < 0 || index_of(other) < 0 || status == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    *status = 0;
    return ABI_NVML_SUCCESS;
}

MATH_API(int, nvmlDeviceGetTopologyCommonAncestor, void *one, void *other, int *level)
{
    if (index_of(one) < 0 || index_of(other) < 0 || level == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    *level = one == other ? ABI_NVML_TOPOLOGY_INTERNAL : ABI_NVML_TOPOLOGY_SYSTEM;
    return ABI_NVML_SUCCESS;
}

/* Values by field: each says of itself that it is not there. */
MATH_API(int, nvmlDeviceGetFieldValues, void *device, int n, void *values)
{
    (void)n, (void)values;
    return index_of(device) < 0 ? ABI_NVML_INVALID_ARGUMENT : ABI_NVML_NOT_SUPPORTED;
}

/* Every CPU is as near as any other. */
MATH_API(int, nvmlDeviceGetCpuAffinity, void *device, unsigned words, unsigned long *set)
{
    if (index_of(device) < 0 || set == NULL)
        return ABI_NVML_INVALID_ARGUMENT;
    memset(set, 0xff, words * sizeof *set);
    return ABI_NVML_SUCCESS;
}
