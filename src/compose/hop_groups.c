/* hop_groups.c - options that hop alike, and the hops between them: see hop_groups.h. */
#include "compose/hop_groups.h"

#include <math.h>
#include <string.h>

/* Options that send and receive in the same time, whoever the neighbour is. */
static bool same_hops(const struct maq_stage_table *t, uint32_t a, uint32_t b)
{
    for (uint32_t side = 0; side < 2; side++) {
        const double *s = side == 0 ? t->forward_s : t->backward_s;
        size_t row = (size_t)t->n_options * t->n_atoms;
        if (memcmp(s + a * row, s + b * row, row * sizeof *s) != 0)
            return false;
        for (uint32_t from = 0; from < t->n_options; from++)
            if (memcmp(s + from * row + (size_t)a * t->n_atoms, s + from * row + (size_t)b * t->n_atoms,
                       t->n_atoms * sizeof *s) != 0)
                return false;
    }
    return true;
}

static void group_options(struct maq_hop_groups *g)
{
    const struct maq_stage_table *t = g->arcs->table;
    g->n = 0;
    for (uint32_t o = 0; o < t->n_options; o++) {
        uint32_t like = 0;
        while (like < o && !(t->options[like].kind == t->options[o].kind && same_hops(t, like, o)))
            like++;
        if (like == o && g->n == MAQ_HOP_GROUPS)
            break;
        g->leads[o] = like == o;
        g->of[o] = like < o ? g->of[like] : (uint8_t)g->n++;
        if (o + 1 == t->n_options)
            return;
    }
    g->n = t->n_kinds; /* too many: those of a kind are taken for the best of them */
    for (uint32_t o = 0; o < t->n_options; o++) {
        g->of[o] = (uint8_t)t->options[o].kind;
        g->leads[o] = true;
    }
}

static bool fill_hops(struct maq_hop_groups *g, struct maq_arena *arena)
{
    const struct maq_stage_table *t = g->arcs->table;
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
            size_t pair = ((size_t)from * t->n_options + to) * n;
            if (g->leads[to])
                maq_lower(&g->forward[((size_t)from * groups + g->of[to]) * n], &t->forward_s[pair], n);
            if (g->leads[to] && g->leads[from])
                maq_lower(&g->backward[((size_t)g->of[from] * groups + g->of[to]) * n], &t->backward_s[pair], n);
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

/* Waves that come back, by groups. */
static bool fill_back(struct maq_hop_groups *g, struct maq_arena *arena)
{
    const struct maq_stage_table *t = g->arcs->table;
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

bool maq_hop_groups_init(struct maq_hop_groups *g, const struct maq_arcs *arcs, struct maq_arena *arena)
{
    *g = (struct maq_hop_groups){.arcs = arcs};
    group_options(g);
    return fill_hops(g, arena) && fill_back(g, arena);
}
