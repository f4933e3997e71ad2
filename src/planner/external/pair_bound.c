/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pair_bound.c - the bounds by dynamic programs over atoms: for each vector of shares the cheapest rows of slices in
 * front of and behind every slice, and a few rounds in which shares are raised. See pair_bound.h.
 */
#include "planner/external/pair_bound.h"

#include <math.h>

#include "planner/external/piece_table.h"

#define ROUNDS 12u

struct rows {
    const struct maq_pair_profile *p;
    double *front, *back;    /* [n_atoms + 1]: of the atoms before, of those from there on */
    uint32_t *from, *island; /* [n_atoms + 1]: the last slice of the cheapest row of the atoms before */
};

static const double *seconds_of(const struct maq_pair_profile *p, uint32_t first, uint32_t end)
{
    return &p->seconds[(size_t)p->class_of[(size_t)first * p->n_atoms + end - 1] * p->n_islands];
}

/* The cheapest island of a slice: min y_j s(j), or min s(j) without shares. */
static double cheapest(const struct maq_pair_profile *p, uint32_t first, uint32_t end, const double *y,
                       uint32_t *island)
{
    const double *s = seconds_of(p, first, end);
    double least = HUGE_VAL;
    *island = 0;
    for (uint32_t j = 0; j < p->n_islands; j++) {
        double cost = isfinite(s[j]) ? (y ? y[j] : 1) * s[j] : HUGE_VAL;
        if (cost < least) {
            least = cost;
            *island = j;
        }
    }
    return least;
}

static void cover(struct rows *r, const double *y)
{
    uint32_t n = r->p->n_atoms, island;
    for (uint32_t a = 0; a <= n; a++) {
        r->front[a] = a == 0 ? 0 : HUGE_VAL;
        r->back[a] = a == n ? 0 : HUGE_VAL;
    }
    for (uint32_t end = 1; end <= n; end++)
        for (uint32_t first = 0; first < end; first++) {
            double cost = r->front[first] + cheapest(r->p, first, end, y, &island);
            if (cost < r->front[end]) {
                r->front[end] = cost;
                r->from[end] = first;
                r->island[end] = island;
            }
        }
    for (uint32_t first = n; first-- > 0;)
        for (uint32_t end = first + 1; end <= n; end++)
            r->back[first] = fmin(r->back[first], cheapest(r->p, first, end, y, &island) + r->back[end]);
}

/* Raises the shares of islands that the cheapest row loads more than the others. */
static void raise_shares(double *y, const struct rows *r, double step)
{
    const struct maq_pair_profile *p = r->p;
    double load[MAQ_PIECE_ISLANDS] = {0}, mean = 0, total = 0;
    for (uint32_t end = p->n_atoms; end > 0; end = r->from[end])
        load[r->island[end]] += seconds_of(p, r->from[end], end)[r->island[end]];
    for (uint32_t j = 0; j < p->n_islands; j++)
        mean += load[j] / p->n_islands;
    for (uint32_t j = 0; j < p->n_islands; j++) {
        y[j] *= mean > 0 ? exp(step * fmax(-2, fmin(2, load[j] / mean - 1))) : 1;
        total += y[j];
    }
    for (uint32_t j = 0; j < p->n_islands; j++)
        y[j] /= total;
}

/* The bound of every pair under one y (NULL: of the fill), raised to it in `best` [first][end][island]. */
static void raise_bounds(double *best, const struct rows *r, const double *y)
{
    const struct maq_pair_profile *p = r->p;
    for (uint32_t first = 0; first < p->n_atoms; first++)
        for (uint32_t end = first + 1; end <= p->n_atoms; end++)
            for (uint32_t j = 0; j < p->n_islands; j++) {
                double s = seconds_of(p, first, end)[j],
                       *to = &best[((size_t)first * p->n_atoms + end - 1) * p->n_islands + j];
                double cost = isfinite(s) ? r->front[first] + (y ? y[j] : 1) * s + r->back[end] : HUGE_VAL;
                *to = fmax(*to, cost);
            }
}

/* The least bound over all places of a class. */
static bool by_class(const double **out, const double *places, const struct maq_pair_profile *p,
                     struct maq_arena *arena)
{
    size_t n = (size_t)p->n_classes * p->n_islands;
    double *least = MAQ_ARENA_NEW(arena, double, n);
    for (size_t i = 0; least && i < n; i++)
        least[i] = HUGE_VAL;
    for (uint32_t first = 0; least && first < p->n_atoms; first++)
        for (uint32_t end = first + 1; end <= p->n_atoms; end++) {
            size_t place = (size_t)first * p->n_atoms + end - 1;
            for (uint32_t j = 0; j < p->n_islands; j++) {
                double *to = &least[(size_t)p->class_of[place] * p->n_islands + j];
                *to = fmin(*to, places[place * p->n_islands + j]);
            }
        }
    *out = least;
    return least != NULL;
}

bool maq_pair_bounds_init(struct maq_pair_bounds *out, const struct maq_pair_profile *p, struct maq_arena *arena)
{
    size_t n = (size_t)p->n_atoms + 1, places = (size_t)p->n_atoms * p->n_atoms * p->n_islands;
    struct rows r = {p, MAQ_ARENA_NEW(arena, double, n), MAQ_ARENA_NEW(arena, double, n),
                     MAQ_ARENA_NEW(arena, uint32_t, n), MAQ_ARENA_NEW(arena, uint32_t, n)};
    double *fill = MAQ_ARENA_NEW(arena, double, places), *bottleneck = MAQ_ARENA_NEW(arena, double, places);
    double y[MAQ_PIECE_ISLANDS] = {0};
    *out = (struct maq_pair_bounds){0};
    if (!r.front || !r.back || !r.from || !r.island || !fill || !bottleneck)
        return false;
    cover(&r, NULL);
    out->root_fill = r.front[p->n_atoms];
    raise_bounds(fill, &r, NULL);
    for (uint32_t j = 0; j < p->n_islands; j++)
        y[j] = 1.0 / p->n_islands;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        cover(&r, y);
        out->root_bottleneck = fmax(out->root_bottleneck, r.front[p->n_atoms]);
        raise_bounds(bottleneck, &r, y);
        if (!isfinite(r.front[p->n_atoms]))
            break;
        raise_shares(y, &r, 1.0 / (1 + round));
    }
    return by_class(&out->fill, fill, p, arena) && by_class(&out->bottleneck, bottleneck, p, arena);
}
