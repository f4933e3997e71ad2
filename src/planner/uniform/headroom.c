/* SPDX-License-Identifier: Apache-2.0 */
/*
 * headroom.c - memory that a search leaves free for a peak above its prediction, and what it would buy.
 *
 * Memory is predicted with an error (train/uncertainty.c). A plan that needs all of a device as predicted fits in about half of the
 * runs; of M bytes, one that needs no more than M / q(p), q the quantile of measured over predicted peaks, fits in a share p of
 * them. What that costs is the step of the best plan that may need all M: the search goes on with it.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "planner/space/space.h"
#include "planner/uniform/search.h"

static double smallest_device(const struct maq_cluster *cluster)
{
    double least = cluster->groups[0].device.mem_bytes;
    for (uint32_t g = 1; g < cluster->n_groups; g++)
        least = fmin(least, cluster->groups[g].device.mem_bytes);
    return least;
}

enum maq_status maq_search_find_headroom(struct maq_search_headroom *out, const struct maq_loaded_job *open,
                                         struct maq_search_result *result, const struct maq_search_opts *opts,
                                         struct maq_diag *diag)
{
    struct maq_search_memory memory;
    *out = (struct maq_search_headroom){.bytes = 0};
    MAQ_ASSERT(result->n_plans > 0);
    MAQ_TRY(maq_search_memory(&memory, open, opts, diag));
    double device = smallest_device(&maq_job_get(open)->cluster), left = device - memory.reserve_bytes;
    out->min_fit_probability = memory.min_fit_probability;
    out->fit_probability = maq_train_fit_probability(result->plans[0].needed_bytes, left);
    out->bytes = left - maq_search_usable(&memory, device);
    if (out->bytes <= 0)
        return MAQ_OK;
    if (result->complete)
        MAQ_TRY(maq_search_with_memory(&out->without, &out->searched, result, opts,
                                       left / maq_search_usable(&memory, device)));
    if (out->searched && out->without.step_s > 0)
        out->without_probability = maq_train_fit_probability(out->without.needed_bytes, left);
    else
        out->without = (struct maq_search_plan){.step_s = 0}; /* a stopped search proves nothing */
    return MAQ_OK;
}
