/* SPDX-License-Identifier: Apache-2.0 */
/*
 * member_pattern.c - who is in a communicator of which this rank knows the size and its own place: where others of that size lie.
 *
 * maquette knows from the ranks that ran along which strides communicators lie (struct maq_pattern of link.h), and by
 * the size and how many of it a process had before, which is which. What a pattern says is taken for prices and for
 * device memory, which hang on the nodes that members are on; in the trace only those are listed who have spoken
 * themselves.
 */
#include "shim/nccl/nccl.h"

#include <string.h>

enum { NUMBERS = 256 }; /* of patterns at one place of the file */

/* The file comes from another process: what is no pattern is none. */
static bool is_sound(const struct maq_pattern *p, uint32_t n)
{
    uint64_t size = 1;
    bool sound = p->size == n && p->n_levels <= MAQ_PATTERN_LEVELS;
    for (uint32_t j = 0; sound && j < p->n_levels; j++) {
        sound = p->n[j] > 0 && p->stride[j] > 0;
        size *= p->n[j];
        sound = sound && size <= n;
    }
    return sound && size == n;
}

static bool agrees(const struct maq_pattern *p, const uint32_t *members, const unsigned char *have, uint32_t n,
                   uint32_t me, uint32_t *base)
{
    uint32_t position;
    if (!is_sound(p, n) || !maq_pattern_at(p, vg_card()->rank, vg_card()->world, base, &position) || position != me)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (have[i] && members[i] != maq_pattern_member(p, *base, i))
            return false;
    return true;
}

bool vg_all_ranks(uint32_t *members, const unsigned char *have, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (have[i] && members[i] != i)
            return false;
    for (uint32_t i = 0; i < n; i++)
        members[i] = i;
    return true;
}

bool vg_member_pattern(uint32_t *members, const unsigned char *have, uint32_t n, uint32_t me, uint32_t nth)
{
    struct maq_pattern p, found = {0};
    uint32_t base, first = 0, n_found = 0;
    for (uint32_t i = 0; i < NUMBERS; i++) {
        uint64_t bytes = 0;
        const void *at = vg_contribution_of(MAQ_PEERS_PATTERNS, n, nth << 8 | i, &bytes);
        if (!at)
            break;
        if (bytes != sizeof p)
            continue;
        memcpy(&p, at, sizeof p);
        if (!agrees(&p, members, have, n, me, &base))
            continue;
        if (n_found++ == 0) {
            found = p;
            first = base;
        }
    }
    for (uint32_t i = 0; i < n && n_found == 1; i++)
        members[i] = maq_pattern_member(&found, first, i);
    return n_found == 1;
}
