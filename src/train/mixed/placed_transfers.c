/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placed_transfers.c - transfers between the device slots of a placed plan, and how many devices of a node send at
 * the same time. See placed.h.
 */
#include "train/mixed/placed.h"

/* Stages of the column that lie on a node group, those on devices of their own. */
static uint32_t stages_on(const struct maq_placed_column *c, uint32_t pool)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < c->devices; i++)
        n += c->slots[i].pool == pool;
    return n;
}

uint32_t maq__placed_sharers(const struct maq_placing *p, const struct maq_placed_column *c,
                             const struct maq_placed_slot *s)
{
    return maq_pool_sharers(&p->pools.at[s->pool], s->devices, stages_on(c, s->pool));
}

double maq__placed_hop_s(const struct maq_placing *p, const struct maq_placed_column *c, uint32_t from, uint32_t to,
                         double bytes)
{
    const struct maq_placed_slot *a = &c->slots[from], *b = &c->slots[to];
    if (a->pool != b->pool)
        return maq_pools_between_s(&p->pools, a->pool, b->pool, bytes,
                                   a->devices < b->devices ? a->devices : b->devices);
    if (a->first_device == b->first_device)
        return 0;
    return maq_pools_inside_s(&p->pools, a->pool, a->first_device, b->first_device, bytes,
                              maq__placed_sharers(p, c, a));
}
