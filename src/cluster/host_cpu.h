/* SPDX-License-Identifier: Apache-2.0 */
/*
 * host_cpu.h - the CPU of a device, where its description leaves it out.
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

/* The core that usually stands beside devices of this generation, and the usual clock of the core. Idempotent. */
void maq__host_cpu_complete(struct maq_device *device);

#endif
