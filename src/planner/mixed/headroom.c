/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headroom.c - headroom of a plan over several node groups: the reserve that would let its fullest stage peak at the
 * upper end of memory's 80 % interval. planner/uniform/headroom.c has the reasoning.
 */
#include <math.h>

#include "maquette/planner.h"
#include "maquette/planner_mixed.h"

struct maq_mixed_search_headroom maq_mixed_search_headroom(const struct maq_mixed_search_plan *plan,
                                                           const struct maq_loaded_job *open)
{
    const struct maq_cluster *cluster = &maq_job_get(open)->cluster;
    struct maq_mixed_search_headroom room = {.device_bytes = 1};
    double low;
    maq_train_memory_interval(&low, &room.memory_high);
    for (uint32_t i = 0; i < plan->n_stages; i++) {
        double needed = plan->stages[i].memory_bytes, device = cluster->groups[plan->stages[i].island].device.mem_bytes;
        room.reserve_bytes = fmax(room.reserve_bytes, maq_search_headroom_reserve(device, needed));
        if (needed / device > room.needed_bytes / room.device_bytes) {
            room.stage = i;
            room.needed_bytes = needed;
            room.device_bytes = device;
        }
    }
    return room;
}
