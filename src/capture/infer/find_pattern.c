/* SPDX-License-Identifier: Apache-2.0 */
/*
 * find_pattern.c - the pattern of a communicator: nested arithmetic progressions, read from its list of members, or
 * guessed (stride.c).
 */
#include "capture/infer/pattern.h"

/* Levels of a list of members; false when it is no product of progressions. */
static bool fit_members(struct maq_pattern *p, const uint32_t *member, uint32_t size)
{
    uint32_t block = 1;
    *p = (struct maq_pattern){.size = size};
    while (block < size) {
        uint32_t j = p->n_levels, n = 1;
        if (j == MAQ_PATTERN_LEVELS || size % block != 0 || member[block] <= member[0])
            return false;
        uint32_t stride = member[block] - member[0];
        while ((uint64_t)(n + 1) * block <= size && member[n * block] == member[0] + n * stride)
            n++;
        if (size % (n * block) != 0)
            return false;
        p->n[j] = n;
        p->stride[j] = stride;
        p->n_levels++;
        block *= n;
    }
    for (uint32_t i = 0; i < size; i++)
        if (maq_pattern_member(p, member[0], i) != member[i])
            return false;
    return true;
}

static bool told(const struct maq_captured_comm *c)
{
    for (uint32_t i = 0; i < c->size; i++)
        if (c->member[i] == UINT32_MAX)
            return false;
    return true;
}

static bool holds_somehow(struct maq_pattern *p, const struct maq_capture *capture, const struct maq_rank_class *c,
                          uint32_t ordinal)
{
    p->fixed = false;
    if (maq_pattern_holds(p, capture, c, ordinal))
        return true;
    p->fixed = true;
    p->position = c->position[ordinal];
    return maq_pattern_holds(p, capture, c, ordinal);
}

const char *maq_pattern_find(struct maq_pattern *out, const struct maq_capture *capture, const struct maq_rank_class *c,
                             uint32_t ordinal, const struct maq_patterns *like, uint32_t *probe)
{
    *probe = UINT32_MAX;
    for (uint32_t i = 0; i < c->n_ranks; i++) {
        const struct maq_captured_comm *m = &capture->comm[c->comm[(size_t)i * c->n_comms + ordinal]];
        if (!told(m))
            continue;
        if (!fit_members(out, m->member, m->size))
            return "its members are no product of progressions";
        return holds_somehow(out, capture, c, ordinal) ? NULL : "its members do not lie alike on all its ranks";
    }
    return maq_pattern_guess(out, capture, c, ordinal, like, probe);
}
