/*
 * device_slots.h - which devices of a pool a stage's replicas take.
 *
 * A replica's TP and CP groups want to lie in one room, which is a scale-up domain: it takes the first room that has as many devices left,
 * behind those that are taken. One that is larger than a room takes the first empty ones in a row, of one node where they fit into one.
 * Where there are none such it takes what is left, room by room, and is priced as if it lay on as many devices in a row.
 *
 * The replicas of a stage exchange gradients, and what experts are sent: a stage is placed as if it were one replica where there is a place
 * for it, else half of it is, and the other half.
 *
 * Replicas of sizes that are powers of two, and rooms of such a size, always find their room while devices are left: two rooms with less
 * room than the smallest replica that is left would have been filled by it one after the other.
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

/* false when out of memory. */
bool maq_device_slots_open(struct maq_device_slots *out, const struct maq_pool *pool, struct maq_arena *arena);

/* The first device of a replica of so many; UINT32_MAX when there are not as many left. */
uint32_t maq_device_slots_take(struct maq_device_slots *slots, uint32_t devices);

/* Of each of a stage's replicas of so many. */
void maq_device_slots_take_stage(struct maq_device_slots *slots, uint32_t devices, uint32_t replicas, uint32_t *first);

/*
 * Where the groups of a stage begin, for struct maq_range_stage: the first device of its first replica. Replicas that do not lie one behind
 * the other count from the front of their group, so that none is taken to lie in two rooms that does not.
 */
uint32_t maq_device_slots_first(uint32_t first, uint32_t devices, uint32_t replicas);

#endif
