/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device_slots.h - placement: which devices of a pool the replicas of a stage take, its device slots.
 *
 * The TP and CP groups of a replica should lie in one scale-up domain: a replica takes the first domain with enough
 * free devices, behind those that are taken. A replica larger than a domain takes the first empty domains in a row,
 * in one node where they fit into one. Where there are no such domains it takes free devices domain by domain, and is
 * priced as if it lay on equally many devices in a row.
 *
 * The replicas of a stage exchange gradients and expert tokens: a stage is placed as if it were one replica where it
 * fits so, otherwise each half of it is placed by itself.
 *
 * Replicas whose sizes are powers of two, and domains of such a size, always fit while devices are left: of two
 * domains with fewer free devices than the smallest remaining replica, the first would have been filled before the
 * second was begun.
 */
#ifndef MAQ_TRAIN_MIXED_DEVICE_SLOTS_H
#define MAQ_TRAIN_MIXED_DEVICE_SLOTS_H

#include "base/arena.h"
#include "train/mixed/device_pools.h"

struct maq_device_slots {
    uint32_t count, per_node, room; /* devices */
    uint32_t n_rooms, left;
    uint16_t *taken; /* [n_rooms] from the front */
};

/* All devices are free. `taken` lives in the arena. false when out of memory. */
bool maq_device_slots_open(struct maq_device_slots *out, const struct maq_pool *pool, struct maq_arena *arena);

/* Takes the devices of a replica. Returns the first one; UINT32_MAX when not enough are left. */
uint32_t maq_device_slots_take(struct maq_device_slots *slots, uint32_t devices);

/* Takes the devices of all replicas of a stage; first[replicas]: the first device of each. */
void maq_device_slots_take_stage(struct maq_device_slots *slots, uint32_t devices, uint32_t replicas, uint32_t *first);

/*
 * The first device of a stage's process groups, for struct maq_range_stage: that of its first replica. Replicas that are not
 * contiguous count from the front of their group, so that none is priced as lying in two domains that lies in one.
 */
uint32_t maq_device_slots_first(uint32_t first, uint32_t devices, uint32_t replicas);

#endif
