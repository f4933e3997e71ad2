/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pattern.c - compares patterns of communicators with each other, and with the positions that ranks recorded. See
 * pattern.h.
 */
#include "capture/infer/pattern.h"

#include <string.h>

bool maq_pattern_same(const struct maq_pattern *a, const struct maq_pattern *b)
{
    return a->size == b->size && a->n_levels == b->n_levels && memcmp(a->n, b->n, sizeof a->n) == 0 &&
           memcmp(a->stride, b->stride, sizeof a->stride) == 0;
}

uint32_t maq_pattern_nth(const struct maq_capture *capture, const struct maq_rank_class *c, uint32_t ordinal)
{
    uint32_t nth = 0;
    for (uint32_t i = 0; i < ordinal; i++)
        nth += capture->comm[c->comm[i]].size == capture->comm[c->comm[ordinal]].size;
    return nth;
}

/* Whether the pattern agrees with every rank that ran. */
bool maq_pattern_holds(const struct maq_pattern *p, const struct maq_capture *capture, const struct maq_rank_class *c,
                       uint32_t ordinal)
{
    for (uint32_t i = 0; i < c->n_ranks; i++) {
        size_t at = (size_t)i * c->n_comms + ordinal;
        const struct maq_captured_comm *comm = &capture->comm[c->comm[at]];
        uint32_t base, position;
        if (comm->size != p->size || !maq_pattern_at(p, c->rank[i], capture->world, &base, &position) ||
            position != c->position[at])
            return false;
        for (uint32_t k = 0; k < comm->size; k++)
            if (comm->member[k] != UINT32_MAX && comm->member[k] != maq_pattern_member(p, base, k))
                return false;
    }
    return true;
}
