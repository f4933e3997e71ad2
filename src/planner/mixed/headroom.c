/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headroom.c - how full the fullest stage of a plan over several node groups is. planner/uniform/headroom.c has the reasoning.
 */
#include "maquette/planner_mixed.h"
#include "maquette/train.h"

struct maq_mixed_search_headroom maq_mixed_search_headroom(const struct maq_mixed_search_result *result, uint32_t plan,
                                                           const struct maq_loaded_job *open)
{
    const struct maq_cluster *cluster = &maq_job_get(open)->cluster;
    const struct maq_mixed_search_plan *p = &result->plans[plan];
    struct maq_mixed_search_headroom h = {.device_bytes = 1, .fit_probability = 1};
    for (uint32_t i = 0; i < p->n_stages; i++) {
        double needed = p->stages[i].memory_bytes, device = cluster->groups[p->stages[i].island].device.mem_bytes;
        double probability = maq_train_fit_probability(needed, device - result->reserve_bytes);
        if (needed / device > h.needed_bytes / h.device_bytes) {
            h.stage = i;
            h.needed_bytes = needed;
            h.device_bytes = device;
        }
        h.fit_probability = probability < h.fit_probability ? probability : h.fit_probability;
    }
    return h;
}
