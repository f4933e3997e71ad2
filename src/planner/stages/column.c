/* SPDX-License-Identifier: Apache-2.0 */
/*
 * column.c - fills a column from costs of layer ranges: prefix sums of time, states and activations, knots of the
 * synchronization, and the comparison by which a dominated column is dropped. column.h has the decomposition.
 */
#include "planner/stages/column.h"

#include <math.h>

#include "base/check.h"

static double pass_s(const struct maq_range_cost *c)
{
    return c->forward_s + c->backward_s;
}

/* ---- sums over atoms ---- */

struct sums {
    double *time_s, *fixed, *flight, *sync, *update;
};

static bool new_sums(struct sums *s, uint32_t n, struct maq_arena *arena)
{
    s->time_s = MAQ_ARENA_NEW(arena, double, (size_t)n + 1);
    s->fixed = MAQ_ARENA_NEW(arena, double, (size_t)n + 1);
    s->flight = MAQ_ARENA_NEW(arena, double, (size_t)n + 1);
    s->sync = MAQ_ARENA_NEW(arena, double, (size_t)n + 1);
    s->update = MAQ_ARENA_NEW(arena, double, n);
    return s->time_s && s->fixed && s->flight && s->sync && s->update;
}

/* Time of the stages at the front, P(i). */
static enum maq_status front_times(double *time_s, const struct maq_range_costs *s)
{
    for (uint32_t i = 1; i <= s->n_atoms; i++) {
        struct maq_range_cost c;
        MAQ_TRY(maq_range_costs_of(&c, s, 0, i, false));
        time_s[i] = fmax(time_s[i - 1], pass_s(&c));
    }
    return MAQ_OK;
}

/* c of column.h: the time of a stage in the middle beyond P(end) - P(first). */
static enum maq_status extra_of(double *extra_s, const double *time_s, const struct maq_range_costs *s)
{
    uint32_t first = s->n_atoms / 4 > 0 ? s->n_atoms / 4 : 1,
             end = 3 * s->n_atoms / 4 > first ? 3 * s->n_atoms / 4 : first + 1;
    struct maq_range_cost c;
    MAQ_TRY(maq_range_costs_of(&c, s, first, end, false));
    *extra_s = fmax(pass_s(&c) - (time_s[end] - time_s[first]), 0);
    return MAQ_OK;
}

static enum maq_status working_of(double *most, const struct maq_range_costs *s, uint32_t first, uint32_t end)
{
    struct maq_range_cost c;
    MAQ_TRY(maq_range_costs_of(&c, s, first, end, false));
    *most = fmax(*most, c.working_bytes);
    return MAQ_OK;
}

/*
 * Working sets of atoms inside of a stage. With ZeRO-3 an atom's working set also holds the parameters gathered for the atoms in
 * front of it and the gradients being reduced of the one behind it: no layer range has a larger one than the range that begins with
 * the first layer. The embedding counts with the most of all ranges that begin with it, the output with the rest.
 */
static enum maq_status add_neighbours(double *working, const struct maq_range_costs *s)
{
    uint32_t last = s->n_atoms - 1;
    double layers = 0, all = 0;
    for (uint32_t i = 1; i < last; i++) {
        MAQ_TRY(working_of(&working[i], s, 1, i + 1));
        MAQ_TRY(working_of(&working[0], s, 0, i + 1));
        layers = fmax(layers, working[i]);
    }
    MAQ_TRY(working_of(&working[last], s, 1, s->n_atoms));
    MAQ_TRY(working_of(&all, s, 0, s->n_atoms));
    working[last] = fmax(working[last], all - fmax(working[0] - layers, 0));
    return MAQ_OK;
}

/*
 * Memory atom by atom: states and activations add up. Every stage counts the working set of the heaviest layer, and the ends what
 * theirs exceeds it by.
 */
static enum maq_status add_memory(struct sums *to, double *context, const struct maq_range_costs *s, bool gathered,
                                  struct maq_arena *arena)
{
    uint32_t n = s->n_atoms;
    double most = 0, *working = MAQ_ARENA_NEW(arena, double, n);
    if (!working)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++) {
        struct maq_range_cost c;
        MAQ_TRY(maq_range_costs_of(&c, s, i, i + 1, false));
        working[i] = c.working_bytes;
        to->fixed[i + 1] = to->fixed[i] + c.states_bytes + fmax(c.ending_bytes + c.matrix_bytes - c.act_bytes, 0);
        to->flight[i + 1] = to->flight[i] + c.act_bytes;
        to->sync[i + 1] = to->sync[i] + c.params * s->grad_bytes;
    }
    if (gathered)
        MAQ_TRY(add_neighbours(working, s));
    for (uint32_t i = 1; i + 1 < n; i++)
        most = fmax(most, working[i]);
    double excess = 0;
    for (uint32_t i = 0; i < n; i++) {
        excess += fmax(working[i] - most, 0);
        to->fixed[i + 1] += excess;
    }
    *context = s->context_bytes + most;
    return MAQ_OK;
}

static bool some_atom_fits(const struct sums *s, double context, double capacity, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (context + (s->fixed[i + 1] - s->fixed[i]) + (s->flight[i + 1] - s->flight[i]) <= capacity)
            return true;
    return false;
}

/* ---- synchronization ---- */

static void add_knot(struct maq_chain_column *c, double bytes, double s)
{
    uint32_t at = c->n_knots;
    while (at > 0 && c->knot_bytes[at - 1] > bytes)
        at--;
    for (uint32_t i = c->n_knots; i > at; i--) {
        c->knot_bytes[i] = c->knot_bytes[i - 1];
        c->knot_s[i] = c->knot_s[i - 1];
    }
    c->knot_bytes[at] = bytes;
    c->knot_s[at] = s;
    c->n_knots++;
}

static enum maq_status knot(struct maq_chain_column *out, const struct maq_range_costs *s, uint32_t first, uint32_t end,
                            double more_s)
{
    struct maq_range_cost c;
    MAQ_TRY(maq_range_costs_of(&c, s, first, end, true));
    add_knot(out, c.params * s->grad_bytes,
             c.late_s + c.exposed_s + c.update_s + c.gather_s + c.exchange_s * s->unpaired +
                 fmax(c.ready_s - c.forward_s, 0) + more_s);
    return MAQ_OK;
}

static enum maq_status add_knots(struct maq_chain_column *out, const struct maq_range_costs *s,
                                 const struct maq_chain_around *around)
{
    uint32_t layers = s->n_atoms > 2 ? s->n_atoms - 2 : 0;
    for (uint32_t k = 1, step = 1; k <= layers && out->n_knots + 2 < MAQ_CHAIN_KNOTS; k += step) {
        MAQ_TRY(knot(out, s, 1, 1 + k, around->norm_s));
        if (k >= 4 && (k & (k - 1)) == 0) /* 1 2 3 4 6 8 12 16 24 32 ... */
            step = k / 2;
    }
    MAQ_TRY(knot(out, s, 0, s->n_atoms, around->norm_s));
    for (uint32_t i = 1; i < out->n_knots; i++)
        out->knot_s[i] = fmax(out->knot_s[i], out->knot_s[i - 1]);
    return MAQ_OK;
}

double maq_chain_column_sync_s(const struct maq_chain_column *c, double bytes)
{
    uint32_t i = 0;
    while (i < c->n_knots && c->knot_bytes[i] < bytes)
        i++;
    if (i == c->n_knots) /* rounding of the whole model's sum */
        return c->knot_s[i - 1];
    double from = i > 0 ? c->knot_bytes[i - 1] : 0, low = i > 0 ? c->knot_s[i - 1] : 0, width = c->knot_bytes[i] - from;
    return width > 0 ? low + (c->knot_s[i] - low) * (bytes - from) / width : c->knot_s[i];
}

/* ---- columns ---- */

enum maq_status maq_chain_column_fill(struct maq_chain_column *out, const struct maq_range_costs *s,
                                      const struct maq_chain_around *around, struct maq_arena *arena)
{
    struct sums sums;
    double extra = 0;
    if (!new_sums(&sums, s->n_atoms, arena))
        return MAQ_NO_MEMORY;
    MAQ_TRY(add_memory(&sums, &out->option.context_bytes, s, around->gathered, arena));
    if (!some_atom_fits(&sums, out->option.context_bytes, around->capacity_bytes, s->n_atoms))
        return MAQ_LIMIT;
    MAQ_TRY(front_times(sums.time_s, s));
    MAQ_TRY(extra_of(&extra, sums.time_s, s));
    MAQ_TRY(add_knots(out, s, around));
    out->extra_s = extra / 2;
    for (uint32_t i = 1; i <= s->n_atoms; i++)
        sums.time_s[i] = fmax(sums.time_s[i] - out->extra_s, sums.time_s[i - 1]);
    out->hop_bytes = s->hop_bytes;
    out->option.time_s = sums.time_s;
    out->option.fixed_bytes = sums.fixed;
    out->option.flight_bytes = sums.flight;
    out->option.sync_bytes = sums.sync;
    out->option.update_s = sums.update; /* 0: the optimizer is part of the synchronization */
    out->option.tied_s = around->tied_s;
    return MAQ_OK;
}

static bool no_less(const double *a, const double *than, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i + 1] - a[i] < than[i + 1] - than[i])
            return false;
    return true;
}

bool maq_chain_column_useless(const struct maq_chain_column *a, const struct maq_chain_column *other, uint32_t n)
{
    const struct maq_stage_option *p = &a->option, *q = &other->option;
    if (p->kind != q->kind || p->devices != q->devices || p->context_bytes < q->context_bytes ||
        a->hop_bytes < other->hop_bytes || a->extra_s < other->extra_s || !no_less(p->time_s, q->time_s, n) ||
        !no_less(p->flight_bytes, q->flight_bytes, n) || !no_less(p->fixed_bytes, q->fixed_bytes, n) ||
        !no_less(p->sync_bytes, q->sync_bytes, n) || p->tied_s < q->tied_s)
        return false;
    /* piecewise linear: one is below the other where it is at all knots of both */
    for (uint32_t i = 0; i < a->n_knots; i++)
        if (a->knot_s[i] < maq_chain_column_sync_s(other, a->knot_bytes[i]))
            return false;
    for (uint32_t i = 0; i < other->n_knots; i++)
        if (maq_chain_column_sync_s(a, other->knot_bytes[i]) < other->knot_s[i])
            return false;
    return true;
}
