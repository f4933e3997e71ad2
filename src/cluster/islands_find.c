/* SPDX-License-Identifier: Apache-2.0 */
/*
 * islands_find.c - clusters measured nodes into islands, by the rules R1 to R3 of maquette/islands.h.
 *
 *   1. Classes. Nodes of one device and count, sorted by compute, are cut where one is faster than the slowest of its class by more
 *      than the tolerance; the same by memory, then by bandwidth inside a node (R2).
 *   2. Inside a class, every node begins alone, and the two islands whose slowest link is fastest are joined (complete linkage), as
 *      long as R1 and R3 hold for the result: few islands, for each is work for a planner.
 *
 * Ties go to the nodes that come first, so the result depends on nothing but the input.
 */
#include "cluster/islands_find.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct finder {
    const struct maq_measured_node *nodes;
    const double *link_bps;
    const struct maq_island_tolerance *tolerance;
    uint32_t n;
    uint32_t *class_of;
    uint32_t *island_of; /* the first node of a node's island */
    double *linkage;     /* [n * n] between islands, at their first nodes; < 0: they may not be joined */
};

/* ---- classes ---- */

enum figure { COMPUTE, MEMORY, BANDWIDTH, FIGURES };

static double figure_of(const struct maq_measured_node *node, enum figure f)
{
    return f == COMPUTE ? node->flops : f == MEMORY ? node->mem_bytes : node->bps;
}

static double tolerated(const struct maq_island_tolerance *t, enum figure f)
{
    return f == COMPUTE ? t->compute : f == MEMORY ? t->memory : t->bandwidth;
}

struct sorted {
    uint32_t class_of, node;
    double value;
};

static int by_class_and_value(const void *a, const void *b)
{
    const struct sorted *x = a, *y = b;
    if (x->class_of != y->class_of)
        return x->class_of < y->class_of ? -1 : 1;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return x->node < y->node ? -1 : x->node > y->node;
}

/* Classes of nodes with the same device and count. */
static void classify(struct finder *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        uint32_t k = 0;
        while (k < i &&
               (f->nodes[k].devices != f->nodes[i].devices || strcmp(f->nodes[k].device, f->nodes[i].device) != 0))
            k++;
        f->class_of[i] = k;
    }
}

/* Cuts classes where a figure spreads too far. */
static void split(struct finder *f, enum figure figure, struct sorted *list)
{
    double first = 0;
    uint32_t name = 0;
    for (uint32_t i = 0; i < f->n; i++)
        list[i] = (struct sorted){f->class_of[i], i, figure_of(&f->nodes[i], figure)};
    qsort(list, f->n, sizeof *list, by_class_and_value);
    for (uint32_t i = 0; i < f->n; i++) {
        bool same = i > 0 && list[i].class_of == list[i - 1].class_of &&
                    list[i].value <= first * (1 + tolerated(f->tolerance, figure));
        if (!same) {
            first = list[i].value;
            name = i;
        }
        f->class_of[list[i].node] = name;
    }
}

/* ---- joining ---- */

/* Whether islands a and b make one: R1 and R3 of the nodes of both. */
static bool may_join(const struct finder *f, uint32_t a, uint32_t b)
{
    double slowest = HUGE_VAL, fastest = 0, leaving = 0, inside = HUGE_VAL;
    for (uint32_t i = 0; i < f->n; i++) {
        bool in = f->island_of[i] == a || f->island_of[i] == b;
        if (!in)
            continue;
        inside = fmin(inside, f->nodes[i].bps);
        for (uint32_t k = 0; k < f->n; k++) {
            double bps = f->link_bps[(size_t)i * f->n + k];
            bool both = f->island_of[k] == a || f->island_of[k] == b;
            if (i == k)
                continue;
            if (both) {
                slowest = fmin(slowest, bps);
                fastest = fmax(fastest, bps);
            } else {
                leaving = fmax(leaving, bps);
            }
        }
    }
    return inside >= fastest && slowest * (1 + f->tolerance->network) >= fmax(leaving, fastest);
}

static void join(struct finder *f, uint32_t a, uint32_t b)
{
    for (uint32_t i = 0; i < f->n; i++)
        if (f->island_of[i] == b)
            f->island_of[i] = a;
    for (uint32_t k = 0; k < f->n; k++) {
        double *ak = &f->linkage[(size_t)a * f->n + k], *ka = &f->linkage[(size_t)k * f->n + a];
        double bk = f->linkage[(size_t)b * f->n + k];
        *ak = *ka = fmin(fabs(*ak), fabs(bk)); /* what could not be joined may be now */
    }
}

static bool stands(const struct finder *f, uint32_t island)
{
    return f->island_of[island] == island;
}

/* The two islands of a class with the fastest slowest link that have not been refused; false when there are none. */
static bool nearest(const struct finder *f, uint32_t *a, uint32_t *b)
{
    double best = 0;
    for (uint32_t i = 0; i < f->n; i++)
        for (uint32_t k = i + 1; stands(f, i) && k < f->n; k++) {
            double linkage = f->linkage[(size_t)i * f->n + k];
            if (stands(f, k) && f->class_of[i] == f->class_of[k] && linkage > best) {
                best = linkage;
                *a = i;
                *b = k;
            }
        }
    return best > 0;
}

static uint32_t number(const struct finder *f, uint32_t *island_of)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        island_of[i] = stands(f, i) ? n++ : island_of[f->island_of[i]]; /* the first node comes first */
    return n;
}

uint32_t maq_islands_find(uint32_t *island_of, const struct maq_measured_node *nodes, uint32_t n,
                          const double *link_bps, const struct maq_island_tolerance *tolerance,
                          struct maq_arena *scratch)
{
    struct finder f = {.nodes = nodes, .link_bps = link_bps, .tolerance = tolerance, .n = n};
    struct sorted *list = MAQ_ARENA_NEW(scratch, struct sorted, n);
    f.class_of = MAQ_ARENA_NEW(scratch, uint32_t, n);
    f.island_of = MAQ_ARENA_NEW(scratch, uint32_t, n);
    f.linkage = MAQ_ARENA_NEW(scratch, double, (size_t)n *n);
    if (!list || !f.class_of || !f.island_of || !f.linkage)
        return 0;
    classify(&f);
    for (int figure = 0; figure < FIGURES; figure++)
        split(&f, (enum figure)figure, list);
    for (uint32_t i = 0; i < n; i++)
        f.island_of[i] = i;
    memcpy(f.linkage, link_bps, (size_t)n * n * sizeof *f.linkage);
    for (uint32_t a = 0, b = 0; nearest(&f, &a, &b);) {
        if (may_join(&f, a, b))
            join(&f, a, b);
        else
            f.linkage[(size_t)a * n + b] = f.linkage[(size_t)b * n + a] = -f.linkage[(size_t)a * n + b];
    }
    return number(&f, island_of);
}
