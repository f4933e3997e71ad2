/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_cpu.c - how fast a thread of the CPU beside the devices is.
 *
 * What the host does per operator is one thread's work: Python, dispatcher, launch. Its speed is instructions per cycle times
 * clock, over the reference on which the host times of framework profiles were read, Zen 2 at 3.4 GHz (EPYC 7742 of a DGX A100).
 *
 * What a node's devices share of their host. Copies between host and device go over a device's own link, over the uplink of its PCIe switch,
 * and through the host's memory; an optimizer on the host runs at what that memory streams. Of n devices that do so at once each gets
 *
 *     copy = min(link, link / (devices of a switch), stream / n)     stream = STREAM x channels x rate of a channel     [bytes/s]
 *
 * A node's host is the same with fewer of its usual devices; a Grace or Vera comes with its devices, so that its memory goes by their number.
 *
 * Estimates, typed in from memory; docs/clusters.md has the work per cycle that they are made of. Clocks are the highest turbo of a
 * usual server part; what a provider states for its machines is written in a cluster.
 */
#include "cluster/host_cpu.h"

#include "base/check.h"

const char *const maq__host_cpu_names[] = {
    "usual", "haswell", "broadwell", "skylake", "cascade-lake", "ice-lake",    "sapphire-rapids",
    "zen",   "zen2",    "zen3",      "zen4",    "zen5",         "neoverse-v2", NULL};
_Static_assert(MAQ_COUNT(maq__host_cpu_names) == MAQ_HOST_CPU_COUNT + 1, "a name per core");

const char *maq_host_cpu_name(enum maq_host_cpu cpu)
{
    return (unsigned)cpu < MAQ_HOST_CPU_COUNT ? maq__host_cpu_names[cpu] : "unknown";
}

const char *maq__host_cpu_list(struct maq_arena *arena)
{
    const char *list = maq__host_cpu_names[1];
    for (int cpu = 2; cpu < MAQ_HOST_CPU_COUNT && list; cpu++)
        list = maq_arena_printf(arena, "%s, %s", list, maq__host_cpu_names[cpu]);
    return list;
}

#define STREAM                                                                                                         \
    0.8 /* estimate: what copies and updates reach of the peak of all channels; STREAM's triad reaches 75 to 85 % */
#define SOCKETS 2 /* of a node with an x86 host */

struct core {
    double clock_hz, speed; /* at that clock, over the reference */
    double socket_bps;      /* channels of memory of a socket, at the rate of its generation */
};

static const struct core cores[] = {
    [MAQ_HOST_CPU_HASWELL] = {3.6e9, 0.88, 4 * 17.1e9},      /* E5-2698 v3, DDR4-2133 */
    [MAQ_HOST_CPU_BROADWELL] = {3.6e9, 0.92, 4 * 19.2e9},    /* E5-2698 v4: DGX-1, DDR4-2400 */
    [MAQ_HOST_CPU_SKYLAKE] = {3.7e9, 1.0, 6 * 21.3e9},       /* Platinum 8168: DGX-2, DDR4-2666 */
    [MAQ_HOST_CPU_CASCADE_LAKE] = {3.9e9, 1.05, 6 * 23.5e9}, /* Platinum 8275CL: AWS P4d, DDR4-2933 */
    [MAQ_HOST_CPU_ICE_LAKE] = {3.5e9, 1.11, 8 * 25.6e9},     /* Platinum 8375C, DDR4-3200 */
    [MAQ_HOST_CPU_SAPPHIRE_RAPIDS] =
        {3.8e9, 1.4, 8 * 38.4e9}, /* Platinum 8480C: DGX H100; Emerald Rapids has its core, DDR5-4800 */
    [MAQ_HOST_CPU_ZEN] = {3.2e9, 0.82, 8 * 21.3e9},   /* EPYC 7601, DDR4-2666 */
    [MAQ_HOST_CPU_ZEN2] = {3.4e9, 1.0, 8 * 25.6e9},   /* EPYC 7742: DGX A100, DDR4-3200 */
    [MAQ_HOST_CPU_ZEN3] = {3.5e9, 1.22, 8 * 25.6e9},  /* EPYC 7763, DDR4-3200 */
    [MAQ_HOST_CPU_ZEN4] = {3.7e9, 1.46, 12 * 38.4e9}, /* EPYC 9654, DDR5-4800 */
    [MAQ_HOST_CPU_ZEN5] = {4.5e9, 2.05, 12 * 48e9},   /* EPYC 9655, DDR5-6000 */
    [MAQ_HOST_CPU_NEOVERSE_V2] = {3.1e9, 1.1, 512e9}, /* Grace, LPDDR5X */
};
_Static_assert(MAQ_COUNT(cores) == MAQ_HOST_CPU_COUNT, "a core per name");

#define C2C_BPS 200e9 /* a host link that is faster than any PCIe: NVLink-C2C, so Grace */

static enum maq_host_cpu usual_of(const struct maq_device *d)
{
    if (d->host_bps > C2C_BPS)
        return MAQ_HOST_CPU_NEOVERSE_V2;
    switch ((enum maq_device_arch)d->arch) {
    case MAQ_ARCH_VOLTA:
        return MAQ_HOST_CPU_BROADWELL;
    case MAQ_ARCH_TURING:
        return MAQ_HOST_CPU_SKYLAKE;
    case MAQ_ARCH_CDNA2:
        return MAQ_HOST_CPU_ZEN3;
    case MAQ_ARCH_HOPPER:
    case MAQ_ARCH_BLACKWELL:
    case MAQ_ARCH_ADA:
    case MAQ_ARCH_CDNA3:
    case MAQ_ARCH_CDNA4:
        return MAQ_HOST_CPU_SAPPHIRE_RAPIDS;
    case MAQ_ARCH_AMPERE:
    case MAQ_ARCH_OTHER:
    case MAQ_ARCH_COUNT:
        break;
    }
    return MAQ_HOST_CPU_ZEN2;
}

/* Devices that kernel tables were measured on come without a CPU: theirs is the usual one. */
static enum maq_host_cpu core_of(const struct maq_device *d)
{
    return d->host_cpu == MAQ_HOST_CPU_USUAL ? usual_of(d) : (enum maq_host_cpu)d->host_cpu;
}

void maq__host_cpu_complete(struct maq_device *d)
{
    d->host_cpu = core_of(d);
    if (!(d->host_clock_hz > 0))
        d->host_clock_hz = cores[d->host_cpu].clock_hz;
}

double maq_device_host_speed(const struct maq_device *d)
{
    const struct core *core = &cores[core_of(d)];
    return d->host_clock_hz > 0 ? core->speed * (d->host_clock_hz / core->clock_hz) : core->speed;
}

double maq__host_mem_bps(enum maq_host_cpu cpu)
{
    return cores[cpu].socket_bps * (cpu == MAQ_HOST_CPU_NEOVERSE_V2 ? 1 : SOCKETS);
}

void maq__host_share(struct maq_device *d, int32_t per_node)
{
    double n = per_node, usual = d->devices_per_node > 0 ? d->devices_per_node : n;
    double memory = d->host_mem_bps > 0 ? d->host_mem_bps : maq__host_mem_bps(core_of(d));
    if (d->host_bps > C2C_BPS)
        memory *= n / usual;
    double behind = d->host_devices > 1 ? d->host_devices : 1;
    double link = d->host_bps / (behind < n ? behind : n);
    d->host_stream_bps = STREAM * memory / n;
    d->host_copy_bps = link < d->host_stream_bps ? link : d->host_stream_bps;
}
