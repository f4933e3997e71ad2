/* SPDX-License-Identifier: Apache-2.0 */
/*
 * feasibility.c - grows back parts of pipelines by their longest stages, with dominance, until one covers the model.
 * Speed is not looked at. See feasibility.h.
 */
#include "planner/mixed/feasibility.h"

#include <string.h>

#define MOST 256u /* back parts that are kept of each depth */

struct part {
    uint32_t atom; /* first atom of the part: atoms [0, atom) are left to cover */
    uint32_t used[MAQ_STAGE_KINDS];
};

static bool holds(const struct maq_stage_table *t, const struct maq_stage_option *o, uint32_t first, uint32_t end,
                  uint32_t waves)
{
    double bytes = o->context_bytes + (o->fixed_bytes[end] - o->fixed_bytes[first]) +
                   (o->flight_bytes[end] - o->flight_bytes[first]) * waves;
    return bytes / t->capacity_bytes[o->kind] <= 1;
}

/* Where the longest stage that ends here begins; `end` when none fits. */
static uint32_t farthest(const struct maq_stage_table *t, const struct maq_stage_option *o, uint32_t end,
                         uint32_t waves)
{
    uint32_t low = 0, high = end;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (holds(t, o, middle, end, waves))
            high = middle;
        else
            low = middle + 1;
    }
    return high;
}

static bool as_good(const struct part *a, const struct part *b, uint32_t n_kinds)
{
    bool good = a->atom <= b->atom;
    for (uint32_t g = 0; g < n_kinds && good; g++)
        good = a->used[g] <= b->used[g];
    return good;
}

static void keep(struct part *parts, uint32_t *n, const struct part *p, uint32_t n_kinds)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < *n; i++)
        if (as_good(&parts[i], p, n_kinds))
            return;
    for (uint32_t i = 0; i < *n; i++)
        if (!as_good(p, &parts[i], n_kinds))
            parts[kept++] = parts[i];
    *n = kept;
    if (*n < MOST)
        parts[(*n)++] = *p;
}

/* One stage more in front of a part. */
static void grow(struct part *next, uint32_t *n, const struct maq_stage_table *t, const struct part *from,
                 uint32_t waves)
{
    for (uint32_t o = 0; o < t->n_options; o++) {
        const struct maq_stage_option *option = &t->options[o];
        struct part p = *from;
        uint32_t replicas = (t->wave_samples + option->samples - 1) / option->samples;
        p.used[option->kind] += option->devices * replicas;
        if (p.used[option->kind] > t->available[option->kind])
            continue;
        p.atom = farthest(t, option, from->atom, waves);
        if (p.atom < from->atom)
            keep(next, n, &p, t->n_kinds);
    }
}

bool maq_mixed_feasible(bool *fits, const struct maq_stage_table *t, struct maq_arena *arena)
{
    struct part *now = MAQ_ARENA_NEW(arena, struct part, MOST), *next = MAQ_ARENA_NEW(arena, struct part, MOST);
    uint32_t n = 1, most = t->max_stages > 0 ? t->max_stages : MAQ_STAGE_DEPTH;
    *fits = false;
    if (!now || !next)
        return false;
    now[0] = (struct part){.atom = t->n_atoms};
    for (uint32_t depth = 1; depth <= most && n > 0 && !*fits; depth++) {
        uint32_t waves = maq_waves_held(t, depth), grown = 0;
        for (uint32_t i = 0; i < n; i++)
            grow(next, &grown, t, &now[i], waves);
        for (uint32_t i = 0; i < grown; i++)
            *fits = *fits || next[i].atom == 0;
        struct part *swap = now;
        now = next;
        next = swap;
        n = grown;
    }
    return true;
}
