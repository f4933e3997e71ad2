/* SPDX-License-Identifier: Apache-2.0 */
/* adapter_set.c - a list without repetitions. */
#include "serve/sched/adapter_set.h"

#include <stdlib.h>

#include "base/alloc.h"

void maq_adapter_set_fini(struct maq_adapter_set *set)
{
    free(set->at);
    *set = (struct maq_adapter_set){0};
}

bool maq_adapter_set_has(const struct maq_adapter_set *set, uint64_t adapter)
{
    for (uint32_t i = set->n; i-- > 0;) /* the last ones are asked for most */
        if (set->at[i] == adapter)
            return true;
    return false;
}

bool maq_adapter_set_add(struct maq_adapter_set *set, uint64_t adapter)
{
    if (maq_adapter_set_has(set, adapter))
        return true;
    if (!maq__grow((void **)&set->at, &set->size, set->n, sizeof *set->at))
        return false;
    set->at[set->n++] = adapter;
    return true;
}

bool maq_adapter_set_fits(const struct maq_adapter_set *set, uint64_t adapter, int32_t most)
{
    return (int64_t)set->n < most || maq_adapter_set_has(set, adapter);
}
