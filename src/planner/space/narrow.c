/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow.c - a small part of a space in which good plans are found soon, and a smaller one.
 *
 * The best plans of the small part are only a cutoff for the search of the whole space, which stays exact; so the choice affects the
 * time of the search alone: the plain schedules, one rank order, nothing or one module or the first N layers recomputed, no optimizer on the
 * host, little offloaded.
 */
#include "planner/space/space.h"

#include <string.h>

/* How many of the first values are kept; 0: all. */
static const uint32_t kept[MAQ_AXIS_COUNT] = {
    [MAQ_AXIS_MBS] = 4,    [MAQ_AXIS_SP] = 1,      [MAQ_AXIS_ORDER] = 1,      [MAQ_AXIS_SCHEDULE] = 2,
    [MAQ_AXIS_LAYOUT] = 4, [MAQ_AXIS_OFFLOAD] = 2, [MAQ_AXIS_HOST_OPTIM] = 1,
};

static bool plain_recompute(int32_t value)
{
    int32_t parts = value & (MAQ_RECOMPUTE_VALUE_PARTS - 1);
    if (value == MAQ_VALUE_AS_WRITTEN || value <= 0)
        return value != MAQ_RECOMPUTE_VALUE_STAGES;
    return value >= MAQ_RECOMPUTE_VALUE_PARTS ? (parts & (parts - 1)) == 0 : value == MAQ_RECOMPUTE_VALUE_UNIFORM + 1;
}

enum maq_status maq_space_narrow(struct maq_search_space *out, const struct maq_search_space *whole,
                                 struct maq_arena *arena)
{
    *out = *whole;
    for (int a = 0; a < MAQ_AXIS_COUNT; a++) {
        struct maq_axis_values *values = &out->axis[a];
        if (values->n > kept[a] && kept[a] > 0)
            values->n = kept[a];
    }
    const struct maq_axis_values *all = &whole->axis[MAQ_AXIS_RECOMPUTE];
    struct maq_axis_values *some = &out->axis[MAQ_AXIS_RECOMPUTE];
    some->n = 0;
    some->at = MAQ_ARENA_NEW(arena, int32_t, all->n);
    if (!some->at)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < all->n; i++)
        if (plain_recompute(all->at[i]))
            some->at[some->n++] = all->at[i];
    if (some->n == 0) /* a list of the user's */
        *some = *all;
    return MAQ_OK;
}

/* ---- the smaller one: for advice in milliseconds. What is in it decides how good the advice is, and nothing else ---- */

#define QUICK_TOKENS 8192 /* of a sequence on a rank: fewer are not worth context parallelism */

static bool power_of_two(int32_t value)
{
    return value > 0 && (value & (value - 1)) == 0;
}

static bool quick(enum maq_axis axis, int32_t value, const struct maq_job *job)
{
    bool moe = maq_model_find_module(&job->model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT) != NULL;
    switch (axis) {
    case MAQ_AXIS_TP:
        return power_of_two(value) && value <= job->cluster.groups[0].domain_devices;
    case MAQ_AXIS_CP:
        return power_of_two(value) && (value == 1 || job->workload.seq / value >= QUICK_TOKENS);
    case MAQ_AXIS_PP:
        return power_of_two(value) && value <= 16;
    case MAQ_AXIS_EP:
        return power_of_two(value);
    case MAQ_AXIS_VP:
        return value == 1 || value == 2 || (value == 4 && !moe);
    case MAQ_AXIS_MBS:
        return value <= (moe ? 1 : 2); /* an expert's part of one is what is left to the axis EP */
    case MAQ_AXIS_RECOMPUTE:
        return value == MAQ_RECOMPUTE_VALUE_NONE || value == MAQ_RECOMPUTE_VALUE_BLOCK ||
               value == MAQ_RECOMPUTE_VALUE_UNIFORM + 1;
    case MAQ_AXIS_LAYOUT: /* even, and with the output as a layer */
        return value == 0 || value == 1;
    case MAQ_AXIS_SHARDING:
    case MAQ_AXIS_SCHEDULE:
        return true;
    case MAQ_AXIS_PRECISION:
    case MAQ_AXIS_CP_COMM:
    case MAQ_AXIS_ETP:
    case MAQ_AXIS_SP:
    case MAQ_AXIS_ORDER:
    case MAQ_AXIS_INPUTS:
    case MAQ_AXIS_DISPATCHER:
    case MAQ_AXIS_OVERLAP_EP:
    case MAQ_AXIS_SHARED:
    case MAQ_AXIS_DELAY_WGRAD:
    case MAQ_AXIS_OVERLAP_TP:
    case MAQ_AXIS_GRAPHS:
    case MAQ_AXIS_REPLICAS:
    case MAQ_AXIS_OFFLOAD:
    case MAQ_AXIS_HOST_OPTIM:
    case MAQ_AXIS_COUNT:
        break;
    }
    return false; /* the first value */
}

void maq_space_quick(struct maq_search_space *space, const struct maq_job *job)
{
    for (int a = 0; a < MAQ_AXIS_COUNT; a++) {
        struct maq_axis_values *values = &space->axis[a];
        uint32_t n = 0;
        if (values->fixed) /* by a list in the job */
            continue;
        for (uint32_t i = 0; i < values->n; i++)
            if (quick((enum maq_axis)a, values->at[i], job))
                values->at[n++] = values->at[i];
        values->n = n > 0 ? n : 1;
    }
}
