/* SPDX-License-Identifier: Apache-2.0 */
/* scheduler.c - lists that all schedulers fill. */
#include "serve/sched/scheduler.h"

#include <stdlib.h>

#include "base/alloc.h"

bool maq_slots_push(uint32_t **list, uint32_t *n, uint32_t *size, uint32_t value)
{
    if (!maq__grow((void **)list, size, *n, sizeof **list))
        return false;
    (*list)[(*n)++] = value;
    return true;
}

bool maq_iteration_add(struct maq_iteration *it, const struct maq_scheduled *s)
{
    if (!maq__grow((void **)&it->scheduled, &it->size, it->n, sizeof *it->scheduled))
        return false;
    it->scheduled[it->n++] = *s;
    return true;
}

bool maq_iteration_load(struct maq_iteration *it, uint32_t slot, int64_t found)
{
    if (!maq__grow((void **)&it->loads, &it->loads_size, it->n_loads, sizeof *it->loads))
        return false;
    it->loads[it->n_loads++] = (struct maq_load){slot, found};
    return true;
}

bool maq_iteration_show(struct maq_iteration *it, uint32_t slot, bool ended)
{
    if (!maq__grow((void **)&it->shown, &it->shown_size, it->n_shown, sizeof *it->shown))
        return false;
    it->shown[it->n_shown++] = (struct maq_shown){slot, ended};
    return true;
}

void maq_iteration_clear(struct maq_iteration *it)
{
    it->n = it->n_preempted = it->n_finished = it->n_loads = it->n_shown = 0;
    it->tokens = 0;
}

void maq_iteration_fini(struct maq_iteration *it)
{
    free(it->scheduled);
    free(it->preempted);
    free(it->finished);
    free(it->loads);
    free(it->shown);
    *it = (struct maq_iteration){0};
}
