/* SPDX-License-Identifier: Apache-2.0 */
/*
 * address_counts.c - whole numbers that came, and how often: addresses of a block, or of an instruction in many blocks.
 */
#include "shim/ptx/instruction.h"

#include <stdlib.h>
#include <string.h>

#include "shim/record.h"

enum { SEEN_FIRST = 4096, SEEN_MOST = 1 << 22 };

static struct vg_ptx_seen_number *place_of(const struct vg_ptx_seen *s, uint64_t key, uint32_t who)
{
    uint32_t at = (uint32_t)maq_rec_mix(key, who) & (s->room - 1);
    while (s->at[at].key != 0 && (s->at[at].key != key || s->at[at].who != who))
        at = (at + 1) & (s->room - 1);
    return &s->at[at];
}

static bool widen(struct vg_ptx_seen *s)
{
    struct vg_ptx_seen wider = {.n = s->n, .room = s->room ? 2 * s->room : SEEN_FIRST};
    wider.at = wider.room <= SEEN_MOST ? calloc(wider.room, sizeof *wider.at) : NULL;
    if (wider.at == NULL)
        return false;
    for (uint32_t i = 0; i < s->room; i++)
        if (s->at[i].key != 0)
            *place_of(&wider, s->at[i].key, s->at[i].who) = s->at[i];
    free(s->at);
    *s = wider;
    return true;
}

bool vg_ptx_seen(struct vg_ptx_seen *s, uint64_t number, uint32_t who, bool *first)
{
    if (2 * s->n >= s->room && !widen(s))
        return false;
    struct vg_ptx_seen_number *at = place_of(s, number, who);
    *first = at->key == 0;
    s->n += *first;
    at->key = number;
    at->who = who;
    at->times++;
    return true;
}

void vg_ptx_seen_clear(struct vg_ptx_seen *s)
{
    if (s->n > 0)
        memset(s->at, 0, s->room * sizeof *s->at);
    s->n = 0;
}

void vg_ptx_seen_free(struct vg_ptx_seen *s)
{
    free(s->at);
    *s = (struct vg_ptx_seen){.at = NULL};
}
