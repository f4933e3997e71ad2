/* SPDX-License-Identifier: Apache-2.0 */
/*
 * narrow.c - a small part of a space in which good plans are found soon.
 *
 * Its best plans are only a cutoff for the search of the whole space, which stays exact; so the choice affects the time of the
 * search alone: the plain schedules, one rank order, nothing or one module or the first N layers recomputed, no optimizer on the
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
