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

void maq_iteration_clear(struct maq_iteration *it)
{
    it->n = it->n_preempted = it->n_finished = 0;
    it->tokens = 0;
}

void maq_iteration_fini(struct maq_iteration *it)
{
    free(it->scheduled);
    free(it->preempted);
    free(it->finished);
    *it = (struct maq_iteration){0};
}
