/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headroom.c - the reserve of memory for a peak above its prediction, and the best plan that leaves it.
 *
 * Memory is predicted with an error (train/uncertainty.c). A plan that needs all of a device fits in half of the
 * runs; with M bytes a device and h the upper end of the 80 % interval over the prediction, one that needs no more
 * than M / h fits in nine of ten. So M (1 - 1 / h) is what a search has to leave free.
 */
#include <math.h>

#include "base/check.h"
#include "base/units.h"
#include "maquette/planner.h"

#define TENTHS (MAQ_GIB / 10) /* bytes; reserves are multiples of it */

double maq_search_headroom_reserve(double device_bytes, double needed_bytes)
{
    double low, high;
    maq_train_memory_interval(&low, &high);
    return needed_bytes * high > device_bytes ? ceil(device_bytes * (1 - 1 / high) / TENTHS) * TENTHS : 0;
}

enum maq_status maq_search_find_headroom(struct maq_search_headroom *out, const struct maq_loaded_job *open,
                                         const struct maq_search_result *result, const struct maq_search_opts *opts,
                                         bool search, struct maq_diag *diag)
{
    const struct maq_cluster *cluster = &maq_job_get(open)->cluster;
    struct maq_search_opts roomy = *opts;
    double low;
    *out = (struct maq_search_headroom){.memory_high = 0};
    maq_train_memory_interval(&low, &out->memory_high);
    MAQ_ASSERT(result->n_plans > 0);
    for (uint32_t g = 0; g < cluster->n_groups; g++)
        out->reserve_bytes = fmax(out->reserve_bytes, maq_search_headroom_reserve(cluster->groups[g].device.mem_bytes,
                                                                                  result->plans[0].needed_bytes));
    roomy.reserve_bytes = out->reserve_bytes;
    roomy.top = 1;
    roomy.pareto_memory = false;
    if (out->reserve_bytes <= 0 || !search)
        return MAQ_OK;
    MAQ_TRY(maq_search(&out->search, open, &roomy, diag));
    if (!out->search->complete) /* a stopped search proves neither the best plan nor that none fits */
        maq_search_headroom_free(out);
    return MAQ_OK;
}

void maq_search_headroom_free(struct maq_search_headroom *room)
{
    maq_search_result_free(room->search);
    room->search = NULL;
}
