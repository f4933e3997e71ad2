/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_cpu.h - the CPU of a device, where its description leaves it out, and what the devices of a node share of their host.
 */
#ifndef MAQ_CLUSTER_HOST_CPU_H
#define MAQ_CLUSTER_HOST_CPU_H

#include "base/arena.h"
#include "maquette/cluster.h"

/* NULL-terminated, for tables of fields: the names of enum maq_host_cpu. */
extern const char *const maq__host_cpu_names[];
/* "haswell, broadwell, ..." in the arena, for hints. */
const char *maq__host_cpu_list(struct maq_arena *arena);

#define MAQ_MIN_CLOCK_HZ 1e8
#define MAQ_MAX_CLOCK_HZ 1e11

/* Peak bandwidth of the memory of a usual node's host with this core: its channels, of two sockets; of Grace, of one CPU. */
double maq__host_mem_bps(enum maq_host_cpu cpu);
/* What the devices of a node share of its host, each one's part: host_copy_bps and host_stream_bps. `per_node`: how many there are. */
void maq__host_share(struct maq_device *device, int32_t per_node);

/* The core that usually stands beside devices of this generation, and the usual clock of the core. Idempotent. */
void maq__host_cpu_complete(struct maq_device *device);

#endif
