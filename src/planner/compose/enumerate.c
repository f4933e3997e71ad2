/* SPDX-License-Identifier: Apache-2.0 */
/*
 * enumerate.c - branch and bound over boxes of bottleneck and synchronization: all compositions of a table below a
 * cutoff.
 *
 * A composition in the box [b0, b1] x [s0, s1] takes at least (waves - 1) b0 + s0 + update + L, where L is the least
 * sum of t_i that the relaxed programs prove for the box: that of priced_bound.c, which prices devices, and where
 * devices come in few units that of counted_bound.c, whose path uses no more of them than there are. The box with the
 * least bound is examined first and is
 *
 *   refuted   when its bound reaches the cutoff, which follows the best composition found;
 *   shaved    L holds for the whole box, so what lies above (waves - 1) b + s = cutoff - update - L is refuted as well;
 *   halved    between its lower limit and the place of its program's path, so that the upper half has the same path and only the
 *             lower one is solved anew; (where a step may wait both are: waits are those at a box's least bottleneck)
 *   cut       when there is a path, with bottleneck b and synchronization s, and halving would gain less than the grain: below b,
 *             and below s. What is left, above both, is no better than the path, but for the update and for waits.
 *
 * Without a path a box that is smaller than the grain is not split: it is kept for the search over labels.
 */
#include "planner/compose/enumerate.h"

#include <math.h>
#include <string.h>

#include "planner/compose/counted_bound.h"
#include "planner/compose/device_units.h"
#include "planner/compose/priced_bound.h"

#define BELOW (1 - 1e-12) /* of a limit: strictly less than it. Compositions this close to a path count as no better */
/* limit on the work of a counting program: about what filling the cost-to-go table takes, ... */
#define WORK (1u << 18)
#define LEFT_WORK (1u << 21) /* with that table, ... */
#define FINER 0.125          /* of the grain: for boxes without a path where devices are counted */
#define FINE_WORK (1u << 25) /* in a box as wide as the grain */

struct cover {
    const struct maq_layer_ranges *layer_ranges;
    struct maq_priced_bound *priced;
    bool countable;                    /* false: devices are only priced */
    struct maq_counted_bound *counted; /* NULL: nothing was counted yet */
    const struct maq_bottleneck_box_options *options;
    struct maq_composition *best, path;
    struct maq_boxes open, *kept;
    double cutoff;
    uint64_t looked;
    double countable_s; /* boxes of this width are worth a try */
    struct maq_arena *arena;
};

static bool push(struct maq_boxes *boxes, const struct maq_bottleneck_box *box, struct maq_arena *arena)
{
    if (boxes->n == boxes->room) {
        uint32_t room = boxes->room > 0 ? 2 * boxes->room : 32;
        struct maq_bottleneck_box *more = MAQ_ARENA_NEW(arena, struct maq_bottleneck_box, room);
        if (!more)
            return false;
        if (boxes->n > 0)
            memcpy(more, boxes->at, boxes->n * sizeof *more);
        boxes->at = more;
        boxes->room = room;
    }
    boxes->at[boxes->n++] = *box;
    return true;
}

static struct maq_bottleneck_box pop(struct maq_boxes *open)
{
    uint32_t next = 0;
    for (uint32_t i = 1; i < open->n; i++)
        next = open->at[i].bound_s < open->at[next].bound_s ? i : next;
    struct maq_bottleneck_box box = open->at[next];
    open->at[next] = open->at[--open->n];
    return box;
}

static double floor_of(const struct cover *v, const struct maq_bottleneck_box *box)
{
    return (v->layer_ranges->table->waves - 1) * box->bottleneck_lo + box->sync_lo + v->layer_ranges->update_s;
}

static void set_least(const struct cover *v, struct maq_bottleneck_box *box, double least)
{
    box->least_s = least;
    box->bound_s = floor_of(v, box) + fmax(least, box->bottleneck_lo);
}

/* By how many seconds the bound of a box may fall for every second that its least bottleneck rises: waits get shorter. */
static double fall(const struct cover *v)
{
    const struct maq_stage_table *t = v->layer_ranges->table;
    return maq_may_wait(t) ? t->seldom_waves * (t->rounds + 1.0) + (double)t->rounds * t->between : 0;
}

/* Lower bound of the part of a box from this bottleneck on. */
static double least_from(const struct cover *v, const struct maq_bottleneck_box *box, double bottleneck)
{
    return fmax(box->least_s - fall(v) * (bottleneck - box->bottleneck_lo), 0);
}

/* Shaves off the part that the cutoff refutes. false when nothing is left of the box. */
static bool shave(struct cover *v, struct maq_bottleneck_box *box)
{
    v->cutoff = fmin(v->cutoff, v->best->step_s);
    double spare = v->cutoff - box->bound_s, rise = v->layer_ranges->table->waves - 1 - fall(v);
    if (rise > 0)
        box->bottleneck_hi = fmin(box->bottleneck_hi, box->bottleneck_lo + spare / rise);
    box->sync_hi = fmin(box->sync_hi, box->sync_lo + spare);
    return spare > 0;
}

/*
 * The least sum of t_i with devices counted, first without the cost-to-go table, then with it; 0 when the limit on work was
 * reached.
 */
static bool count(struct cover *v, struct maq_bottleneck_box *box, double wanted, double *counted)
{
    uint32_t waves = v->layer_ranges->table->waves, beam = v->options->beam;
    double width = fmax((waves - 1) * (box->bottleneck_hi - box->bottleneck_lo), box->sync_hi - box->sync_lo);
    bool fine = width <= v->options->grain_s;
    const struct maq_count_options plain = {WORK, beam, false}, left = {fine ? FINE_WORK : LEFT_WORK, 0, true};
    const double *rest = maq_priced_bound_rest(v->priced, box, 0, wanted);
    *counted = 0;
    v->kept->programs++;
    if (beam == 0 && !fine && width > v->countable_s)
        return true;
    if (!v->counted && !maq_counted_bound_new(&v->counted, v->layer_ranges, v->arena))
        return false;
    if (!maq_counted_bound_solve(counted, box, &v->path, v->counted, rest, wanted, &plain))
        return false;
    if (*counted == 0 && beam == 0 && !maq_counted_bound_solve(counted, box, &v->path, v->counted, rest, wanted, &left))
        return false;
    v->kept->programs++;
    v->countable_s = *counted > 0 ? fmax(v->countable_s, 2 * width) : 0.5 * width;
    box->found = v->path.n_stages > 0;
    if (box->found)
        maq_composition_offer(v->best, &v->path, v->layer_ranges->table, v->options);
    return true;
}

/* Solves the relaxed programs of a box: its bound, and the place of the path in it. */
static bool solve(struct cover *v, struct maq_bottleneck_box *box)
{
    double wanted = v->cutoff - floor_of(v, box), counted = 0;
    double least = maq_priced_bound_raise(v->priced, box, v->best, wanted, v->options, &v->kept->programs);
    v->looked++;
    box->found = false;
    if (least < wanted && v->countable && !count(v, box, wanted, &counted))
        return false;
    set_least(v, box, fmax(least, counted));
    return true;
}

static bool solve_and_push(struct cover *v, struct maq_bottleneck_box *box)
{
    if (!shave(v, box))
        return true;
    return solve(v, box) && (!shave(v, box) || push(&v->open, box, v->arena));
}

/* A box that is split no further. */
static bool keep(struct cover *v, struct maq_bottleneck_box *box)
{
    for (uint32_t d = 0; d < MAQ_BOX_DUALS; d++) {
        size_t n = (size_t)(v->layer_ranges->rows + 1) * (v->layer_ranges->table->n_atoms + 1);
        double *copy = MAQ_ARENA_NEW(v->arena, double, n);
        if (!copy)
            return false;
        memcpy(copy, maq_priced_bound_rest(v->priced, box, d, v->cutoff - floor_of(v, box)), n * sizeof *copy);
        box->rest[d] = copy;
    }
    return push(v->kept, box, v->arena);
}

/* Below the path's bottleneck, below its synchronization, and above both. */
static bool cut(struct cover *v, const struct maq_bottleneck_box *box)
{
    struct maq_bottleneck_box left = *box, low = *box, above = *box;
    left.bottleneck_hi = box->bottleneck_at * BELOW;
    low.bottleneck_lo = above.bottleneck_lo = box->bottleneck_at;
    low.sync_hi = box->sync_at * BELOW;
    above.sync_lo = box->sync_at;
    set_least(v, &low, least_from(v, box, low.bottleneck_lo));
    set_least(v, &above, least_from(v, box, above.bottleneck_lo));
    if (left.bottleneck_hi >= left.bottleneck_lo && !solve_and_push(v, &left))
        return false;
    if (low.sync_hi >= low.sync_lo && !solve_and_push(v, &low))
        return false;
    if (maq_may_wait(v->layer_ranges->table) && above.bound_s < v->cutoff * BELOW)
        return solve_and_push(v, &above);
    return above.bound_s >= v->cutoff * BELOW || !shave(v, &above) || keep(v, &above);
}

/* At a bottleneck or a synchronization: the upper part has the same program as the whole, if its path is there. */
static bool halve(struct cover *v, const struct maq_bottleneck_box *box, bool by_bottleneck)
{
    struct maq_bottleneck_box low = *box, high = *box;
    if (by_bottleneck)
        low.bottleneck_hi = high.bottleneck_lo =
            0.5 * (box->bottleneck_lo + (box->found ? box->bottleneck_at : box->bottleneck_hi));
    else
        low.sync_hi = high.sync_lo = 0.5 * (box->sync_lo + (box->found ? box->sync_at : box->sync_hi));
    set_least(v, &high, least_from(v, box, high.bottleneck_lo));
    if (box->found && !maq_may_wait(v->layer_ranges->table) ? shave(v, &high) && !push(&v->open, &high, v->arena)
                                                            : !solve_and_push(v, &high))
        return false;
    return solve_and_push(v, &low);
}

static bool look(struct cover *v, struct maq_bottleneck_box *box)
{
    if (!shave(v, box))
        return true;
    double bottleneck = box->found ? box->bottleneck_at : box->bottleneck_hi;
    double sync = box->found ? box->sync_at : box->sync_hi;
    double wide = (v->layer_ranges->table->waves - 1) * (bottleneck - box->bottleneck_lo), deep = sync - box->sync_lo;
    if (v->looked >= v->options->most)
        return keep(v, box);
    double grain = v->options->grain_s * (v->countable && !box->found ? FINER : 1);
    if (wide > grain || deep > grain)
        return halve(v, box, wide >= deep);
    return box->found ? cut(v, box) : keep(v, box);
}

/* Order of boxes: the most promising first. */
static void sort_boxes(struct maq_boxes *b)
{
    for (uint32_t i = 1; i < b->n; i++)
        for (uint32_t j = i; j > 0 && b->at[j].bound_s < b->at[j - 1].bound_s; j--) {
            struct maq_bottleneck_box swap = b->at[j];
            b->at[j] = b->at[j - 1];
            b->at[j - 1] = swap;
        }
}

/* sum >= bottleneck but for what wraps, so waves * bottleneck and sync alone stay below the cutoff. */
static struct maq_bottleneck_box whole_box(const struct cover *v)
{
    const struct maq_stage_table *t = v->layer_ranges->table;
    double least_paces = t->waves - 1 + 1 / (1 + t->wraps);
    struct maq_bottleneck_box whole = {.bottleneck_lo = maq_wave_bound(t),
                                       .bottleneck_hi = (v->cutoff - v->layer_ranges->update_s) / least_paces,
                                       .sync_hi = v->cutoff - v->layer_ranges->update_s};
    set_least(v, &whole, 0);
    return whole;
}

bool maq_boxes_refute(bool *refuted, const struct maq_layer_ranges *layer_ranges, double cutoff_s,
                      struct maq_arena *arena)
{
    const struct maq_bottleneck_box_options options = {.cutoff_s = cutoff_s, .beam = 1};
    struct cover v = {.layer_ranges = layer_ranges, .options = &options, .cutoff = cutoff_s};
    struct maq_composition *best = MAQ_ARENA_NEW(arena, struct maq_composition, 1);
    uint64_t programs = 0;
    if (!best || !maq_priced_bound_new(&v.priced, layer_ranges, arena))
        return false;
    best->step_s = HUGE_VAL;
    struct maq_bottleneck_box whole = whole_box(&v);
    double wanted = cutoff_s - floor_of(&v, &whole);
    *refuted = maq_priced_bound_raise(v.priced, &whole, best, wanted, &options, &programs) >= wanted;
    return true;
}

bool maq_boxes_cover(struct maq_boxes *boxes, struct maq_composition *best, const struct maq_layer_ranges *layer_ranges,
                     const struct maq_bottleneck_box_options *options, struct maq_arena *arena)
{
    struct cover *v = MAQ_ARENA_NEW(arena, struct cover, 1);
    if (!v)
        return false;
    *v = (struct cover){.layer_ranges = layer_ranges,
                        .options = options,
                        .best = best,
                        .kept = boxes,
                        .cutoff = options->cutoff_s,
                        .countable_s = HUGE_VAL,
                        .arena = arena};
    *boxes = (struct maq_boxes){.bound_s = v->cutoff};
    if (!maq_priced_bound_new(&v->priced, layer_ranges, arena))
        return false;
    v->countable = maq_countable(layer_ranges);
    struct maq_bottleneck_box whole = whole_box(v);
    if (!solve_and_push(v, &whole))
        return false;
    boxes->counted = v->countable;
    while (v->open.n > 0) {
        struct maq_bottleneck_box box = pop(&v->open);
        if (!look(v, &box))
            return false;
    }
    sort_boxes(boxes);
    v->cutoff = fmin(v->cutoff, best->step_s);
    boxes->bound_s = boxes->n > 0 ? fmin(boxes->at[0].bound_s, v->cutoff) : v->cutoff;
    return true;
}
