/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece_table.c - the step of a row of pieces by the formulas of piece_table.h, written down once, and the figures of
 * a piece that follow from its stages.
 */
#include "planner/external/piece_table.h"

#include <math.h>

#include "base/check.h"

/* The most stages that may follow a stage so that it fits into memory; UINT32_MAX: any number; false: it fits at no position. */
static bool most_behind(uint32_t *out, const struct maq_parallelizer_stage *s, uint32_t waves, double capacity)
{
    double left = capacity - s->static_bytes;
    if (!(left >= s->flight_bytes))
        return false;
    /* as the check of maq_piece_line_cost() rounds: static + flight x n <= capacity */
    double n = s->flight_bytes > 0 ? floor(left / s->flight_bytes) : waves;
    while (n > 1 && s->static_bytes + s->flight_bytes * n > capacity)
        n--;
    while (n < waves && s->static_bytes + s->flight_bytes * (n + 1) <= capacity)
        n++;
    *out = n >= waves ? UINT32_MAX : (uint32_t)n - 1;
    return s->static_bytes + s->flight_bytes <= capacity;
}

bool maq_piece_fill(struct maq_piece *piece, const struct maq_parallelizer_plan *plan, uint32_t island,
                    const uint32_t *hops, const struct maq_piece_table *table, double capacity_bytes)
{
    uint32_t n = plan->n_stages;
    *piece = (struct maq_piece){.plan = plan,
                                .island = island,
                                .most_behind = UINT32_MAX,
                                .first_devices = plan->stages[0].devices,
                                .last_devices = plan->stages[n - 1].devices,
                                .first_hop = hops[0],
                                .last_hop = hops[n - 1]};
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_parallelizer_stage *s = &plan->stages[i];
        uint32_t behind, inside = n - 1 - i;
        double t = s->time_s + (i > 0 ? table->hop_s[hops[i] * table->n_hops + hops[i - 1]] : 0) +
                   (inside > 0 ? table->hop_s[hops[i] * table->n_hops + hops[i + 1]] : 0);
        if (!most_behind(&behind, s, table->waves, capacity_bytes) || behind < inside)
            return false;
        behind = behind == UINT32_MAX ? behind : behind - inside;
        piece->most_behind = behind < piece->most_behind ? behind : piece->most_behind;
        piece->devices += s->devices;
        piece->sum_s += t + s->once_s;
        piece->work_s += t * s->devices;
        piece->sync_s = fmax(piece->sync_s, s->sync_s);
        if (i == 0)
            piece->first_s = t;
        if (inside == 0)
            piece->last_s = t;
        if (i > 0 && inside > 0)
            piece->slowest_s = fmax(piece->slowest_s, t);
    }
    return true;
}

#define MOST_COMPARED 96u /* the cube of it is what comparing takes */

static bool compare_hops(struct maq_piece_table *table, struct maq_arena *arena)
{
    uint32_t n = table->n_hops;
    double *over = MAQ_ARENA_NEW(arena, double, (size_t)n *n);
    for (uint32_t a = 0; over && a < n; a++)
        for (uint32_t b = 0; b < n; b++) {
            double most = a == b || n <= MOST_COMPARED ? 0 : HUGE_VAL;
            for (uint32_t c = 0; a != b && n <= MOST_COMPARED && c < n; c++)
                most = fmax(most, table->hop_s[(size_t)c * n + a] - table->hop_s[(size_t)c * n + b]);
            over[(size_t)a * n + b] = most;
        }
    table->hop_over = over;
    return over != NULL;
}

bool maq_piece_table_hops(struct maq_piece_table *table, struct maq_arena *arena)
{
    double *least = MAQ_ARENA_NEW(arena, double, table->n_hops);
    for (uint32_t i = 0; least && i < table->n_hops; i++) {
        least[i] = HUGE_VAL;
        for (uint32_t j = 0; j < table->n_hops; j++)
            least[i] = fmin(least[i], table->hop_s[(size_t)i * table->n_hops + j]);
    }
    table->least_hop = least;
    return least != NULL && compare_hops(table, arena);
}

/* Adds a piece's stages with the hops to its neighbours. */
static void add_piece(struct maq_piece_line *p, const struct maq_piece *q, double before, double after)
{
    double first = q->first_s + before + (q->plan->n_stages == 1 ? after : 0), last = q->last_s + after;
    p->bottleneck_s = fmax(p->bottleneck_s, fmax(q->slowest_s, q->plan->n_stages == 1 ? first : fmax(first, last)));
    p->fill_s += q->sum_s + before + after;
    p->sync_s = fmax(p->sync_s, q->sync_s);
}

bool maq_piece_line_cost(struct maq_piece_line *p, const struct maq_piece_table *table)
{
    uint32_t used[MAQ_PIECE_ISLANDS] = {0}, behind = 0, end = table->n_atoms;
    p->bottleneck_s = p->fill_s = p->sync_s = 0;
    for (uint32_t i = p->n; i-- > 0;) {
        const struct maq_piece *q = p->pieces[i];
        double before = i > 0 ? table->hop_s[q->first_hop * table->n_hops + p->pieces[i - 1]->last_hop] : 0;
        double after = i + 1 < p->n ? table->hop_s[q->last_hop * table->n_hops + p->pieces[i + 1]->first_hop] : 0;
        uint32_t atoms = 0;
        for (uint32_t s = 0; s < q->plan->n_stages; s++)
            atoms += q->plan->stages[s].atoms;
        used[q->island] += q->devices;
        if (p->first[i] + atoms != end || behind > q->most_behind || used[q->island] > table->available[q->island])
            return false;
        add_piece(p, q, before, after);
        behind += q->plan->n_stages;
        end = p->first[i];
    }
    p->step_s = (table->waves - 1) * p->bottleneck_s + p->fill_s + p->sync_s;
    return p->n > 0 && end == 0;
}
