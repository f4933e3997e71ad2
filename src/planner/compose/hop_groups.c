/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hop_groups.c - forms the groups by comparing rows of the hop tables, option by option, and fills tables of the hops
 * between groups as minima over their options. See hop_groups.h.
 */
#include "planner/compose/hop_groups.h"

#include <math.h>
#include <string.h>

/* Whether two options send and receive in the same time, with every neighbour. */
static bool same_hops(const struct maq_stage_table *t, uint32_t a, uint32_t b)
{
    const size_t x = t->options[a].hop_class, y = t->options[b].hop_class, n = t->n_hop_classes, row = n * t->n_atoms;
    for (uint32_t side = 0; side < 2 && x != y; side++) {
        const double *s = side == 0 ? t->forward_s : t->backward_s;
        if (memcmp(s + x * row, s + y * row, row * sizeof *s) != 0)
            return false;
        for (size_t from = 0; from < n; from++)
            if (memcmp(s + from * row + x * t->n_atoms, s + from * row + y * t->n_atoms, t->n_atoms * sizeof *s) != 0)
                return false;
    }
    return true;
}

/* The group's first option where `o` has the hops of an earlier option of its kind; `o` itself otherwise. */
static uint32_t like(const struct maq_hop_groups *g, uint32_t o)
{
    const struct maq_stage_table *t = g->layer_ranges->table;
    uint32_t i = 0;
    while (i < o && !(g->leads[i] && t->options[i].kind == t->options[o].kind && same_hops(t, i, o)))
        i++;
    return i;
}

static void group_options(struct maq_hop_groups *g)
{
    const struct maq_stage_table *t = g->layer_ranges->table;
    g->n = 0;
    for (uint32_t o = 0; o < t->n_options; o++) {
        const uint32_t first = like(g, o);
        if (first == o && g->n == MAQ_HOP_GROUPS)
            break;
        g->leads[o] = first == o;
        g->of[o] = first < o ? g->of[first] : (uint8_t)g->n++;
        if (o + 1 == t->n_options)
            return;
    }
    g->n = t->n_kinds; /* too many groups: one for each kind, with the least hops of its options */
    for (uint32_t o = 0; o < t->n_options; o++) {
        g->of[o] = (uint8_t)t->options[o].kind;
        g->leads[o] = like(g, o) == o;
    }
}

static bool fill_hops(struct maq_hop_groups *g, struct maq_arena *arena)
{
    const struct maq_stage_table *t = g->layer_ranges->table;
    uint32_t n = t->n_atoms, groups = g->n;
    g->forward = MAQ_ARENA_RAW(arena, double, (size_t)t->n_options *groups *n);
    g->backward = MAQ_ARENA_RAW(arena, double, (size_t)groups *groups *n);
    g->backward_most = MAQ_ARENA_RAW(arena, double, (size_t)groups *n);
    g->backward_least = MAQ_ARENA_RAW(arena, double, (size_t)groups *n);
    if (!g->forward || !g->backward || !g->backward_most || !g->backward_least)
        return false;
    for (size_t i = 0; i < (size_t)t->n_options * groups * n; i++)
        g->forward[i] = HUGE_VAL;
    for (size_t i = 0; i < (size_t)groups * groups * n; i++)
        g->backward[i] = HUGE_VAL;
    for (uint32_t from = 0; from < t->n_options; from++)
        for (uint32_t to = 0; to < t->n_options; to++) {
            if (!g->leads[to])
                continue;
            maq_lower(&g->forward[((size_t)from * groups + g->of[to]) * n], maq_hop_row(t, t->forward_s, from, to), n);
            if (g->leads[from])
                maq_lower(&g->backward[((size_t)g->of[from] * groups + g->of[to]) * n],
                          maq_hop_row(t, t->backward_s, from, to), n);
        }
    for (uint32_t from = 0; from < groups; from++)
        for (uint32_t a = 0; a < n; a++) {
            double most = 0, least = HUGE_VAL;
            for (uint32_t to = 0; to < groups; to++) {
                most = fmax(most, g->backward[((size_t)from * groups + to) * n + a]);
                least = fmin(least, g->backward[((size_t)from * groups + to) * n + a]);
            }
            g->backward_most[(size_t)from * n + a] = most;
            g->backward_least[(size_t)from * n + a] = least;
        }
    return true;
}

/* Hops from the last stage to the first and back, by groups. */
static bool fill_back(struct maq_hop_groups *g, struct maq_arena *arena)
{
    const struct maq_stage_table *t = g->layer_ranges->table;
    size_t row = g->n + 1;
    if (t->rounds == 0)
        return true;
    if (!(g->back = MAQ_ARENA_RAW(arena, double, g->n *row)))
        return false;
    for (size_t i = 0; i < g->n * row; i++)
        g->back[i] = HUGE_VAL;
    for (uint32_t last = 0; last < t->n_options; last++)
        for (uint32_t first = 0; first < t->n_options; first++) {
            double s = maq_back_s(t, last, first), *at = &g->back[g->of[last] * row];
            at[g->of[first]] = fmin(at[g->of[first]], s);
            at[g->n] = fmin(at[g->n], s);
        }
    return true;
}

bool maq_hop_groups_init(struct maq_hop_groups *g, const struct maq_layer_ranges *layer_ranges, struct maq_arena *arena)
{
    *g = (struct maq_hop_groups){.layer_ranges = layer_ranges};
    group_options(g);
    return fill_hops(g, arena) && fill_back(g, arena);
}
