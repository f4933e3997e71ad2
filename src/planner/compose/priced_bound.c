/* SPDX-License-Identifier: Apache-2.0 */
/*
 * priced_bound.c - lower bounds of the compositions of a box by Lagrangian relaxation of the devices.
 *
 * In a box the bottleneck lies in [b0, b1] and the synchronization in [s0, s1]. Every composition in it takes at least
 *
 *   (waves - 1) b0 + s0 + update + min sum_i t_i        (b0 <= max_i t_i <= b1)
 *
 * over the cuts of the atoms into stages that stay below b1 and s1, fit the memory of their position, and use no more devices than
 * there are. The last condition is relaxed (Lagrange): with prices y_g >= 0, in seconds per device of kind g,
 *
 *   L(y) = min over cuts of  sum_i (t_i + y . devices_i)  -  y . available    <=    min sum_i t_i
 *
 * and the minimum is a dynamic program over (stages behind, atoms left), `rest` below. Hops are those to the nearest neighbour, and
 * a stage is run by one option: a stage that mixes options is as slow as its slowest, takes a weighted mean of their devices, and
 * its synchronization is no less than that of each, so it costs no less than the cheapest of them. Prices are raised by subgradient
 * steps (used minus available), with Polyak's length towards the value that would refute the box.
 *
 *   rest[k][l] = least of sum (t_i + y . devices_i) over stages that cover the first l atoms with k stages behind them
 *
 * (for the whole pipeline, plus what the step waits for waves that come back to the first stage, which grows with the sum:
 * stage_table.h)
 *
 * serves the search over labels as well: it bounds what the front of a pipeline still costs. Positions from MAQ_REST_ROWS on are
 * taken for that one, which fits whatever fits behind it.
 */
#include "planner/compose/priced_bound.h"

#include <math.h>
#include <string.h>

#define STEPS 24
#define LOOK_STEPS 8 /* where a composition is wanted and no bound */

/*
 * The cheapest options of a layer range in the middle of a pipeline, by cost; the first that fits a position is the
 * cheapest there.
 */
#define CHOICES 4

struct choice {
    double cost;
    uint16_t option, deepest;
};

/* The options that may run each layer range in the middle of a pipeline inside a box; independent of prices. */
struct within {
    double hi, sync_hi; /* the box's; below 0: no box yet */
    uint32_t box;       /* number of the box */
    uint32_t *listed;   /* [first * (atoms + 1) + end]: box whose options are listed */
    uint16_t *fits;     /* options by maq_layer_range_index(), the first n of a layer range */
    uint16_t *n;        /* [first * (atoms + 1) + end] */
    uint32_t *farthest; /* [atoms + 1]: maq_farthest_starts() */
};

struct maq_priced_bound {
    const struct maq_layer_ranges *layer_ranges;
    double *rest;  /* [(rows + 1) * (atoms + 1)] */
    uint16_t *cut; /* the same: where the stage that ends here begins */
    uint16_t *option;
    struct choice
        *choices;     /* [atoms * (atoms + 1) * (CHOICES + 1)]: lists, closed by one without cost that fits anywhere */
    uint32_t program; /* number of the program */
    uint32_t
        *chosen; /* [first * (atoms + 1) + end]: program whose prices the list is for; most lists are never asked for */
    struct within within;
    double used[MAQ_STAGE_KINDS]; /* of the path found */
    struct asked {                /* of the last program */
        double price[MAQ_STAGE_KINDS], lo, hi, sync_hi, wanted;
    } asked;
};

/* Cost of a layer range on an option with hops of the given weight; HUGE_VAL when it is not in the box. */
static double range_cost(const struct maq_priced_bound *p, const struct maq_bottleneck_box *box, const double *priced,
                         uint32_t o, uint32_t first, uint32_t end, double forward, double backward)
{
    const struct maq_layer_ranges *a = p->layer_ranges;
    const struct maq_stage_table *t = a->table;
    if (a->sync_s[maq_layer_range_index(t, o, first, end)] > box->sync_hi)
        return HUGE_VAL;
    double compute = maq_layer_range_compute(t, o, first, end),
           hops = forward * a->forward_s[o * t->n_atoms + end - 1] + backward * a->backward_s[o * t->n_atoms + first];
    return maq_stage_pace(t, compute, hops) > box->bottleneck_hi ? HUGE_VAL : compute + hops + priced[o];
}

/* The options of one layer range. */
static void list_within(struct maq_priced_bound *p, const struct maq_bottleneck_box *box, uint32_t first, uint32_t end)
{
    const struct maq_layer_ranges *a = p->layer_ranges;
    const struct maq_stage_table *t = a->table;
    const size_t layer_range = maq_layer_range_index(t, 0, first, end);
    uint16_t *list = p->within.fits + layer_range;
    uint32_t n = 0;
    for (uint32_t o = 0; o < t->n_options; o++) {
        if (a->through_s[layer_range + o] == HUGE_VAL || a->sync_s[layer_range + o] > box->sync_hi)
            continue;
        double compute = maq_layer_range_compute(t, o, first, end),
               hops = a->forward_s[o * t->n_atoms + end - 1] + a->backward_s[o * t->n_atoms + first];
        if (maq_stage_pace(t, compute, hops) <= box->bottleneck_hi)
            list[n++] = (uint16_t)o;
    }
    p->within.n[(size_t)first * (t->n_atoms + 1) + end] = (uint16_t)n;
}

/* Begins a program of a box. Programs of one box differ in prices alone, so the options within it are listed once. */
static void begin(struct maq_priced_bound *p, const struct maq_bottleneck_box *box)
{
    struct within *w = &p->within;
    p->program++;
    if (w->hi == box->bottleneck_hi && w->sync_hi == box->sync_hi)
        return;
    maq_farthest_starts(w->farthest, p->layer_ranges->table, box->bottleneck_hi);
    w->box++;
    w->hi = box->bottleneck_hi;
    w->sync_hi = box->sync_hi;
}

/* Keeps the options of a range that are cheaper than every option which fits deeper in the pipeline. */
static void choose(struct maq_priced_bound *p, const double *priced, uint32_t first, uint32_t end)
{
    const size_t range = (size_t)first * (p->layer_ranges->table->n_atoms + 1) + end;
    const size_t layer_range = maq_layer_range_index(p->layer_ranges->table, 0, first, end);
    struct choice *list = &p->choices[range * (CHOICES + 1)];
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->within.n[range]; i++) {
        const uint16_t o = p->within.fits[layer_range + i];
        const double cost = p->layer_ranges->through_s[layer_range + o] + priced[o];
        uint32_t at = 0, deepest = p->layer_ranges->deepest[layer_range + o];
        while (at < n && list[at].cost <= cost)
            at++;
        if (at > 0 && list[at - 1].deepest >= deepest)
            continue;
        uint32_t tail = at;
        while (tail < n && list[tail].deepest <= deepest)
            tail++;
        if (tail == at &&
            /* the list is full: two are merged into one that is better than either, which keeps the bound valid */
            n == CHOICES) {
            if (at == n)
                list[n - 1].deepest = (uint16_t)deepest;
            else
                list[at].cost = cost;
            continue;
        }
        memmove(&list[at + 1], &list[tail], (n - tail) * sizeof *list);
        list[at] = (struct choice){cost, o, (uint16_t)deepest};
        n += 1 - (tail - at);
    }
    list[n] = (struct choice){HUGE_VAL, 0, UINT16_MAX};
}

/* The list of a range in the middle of a pipeline, at the prices of this program. */
static const struct choice *choices_of(struct maq_priced_bound *p, const struct maq_bottleneck_box *box,
                                       const double *priced, uint32_t first, uint32_t end)
{
    const size_t range = (size_t)first * (p->layer_ranges->table->n_atoms + 1) + end;
    if (p->chosen[range] != p->program) {
        if (p->within.listed[range] != p->within.box)
            list_within(p, box, first, end);
        choose(p, priced, first, end);
        p->within.listed[range] = p->within.box;
        p->chosen[range] = p->program;
    }
    return &p->choices[range * (CHOICES + 1)];
}

/* The stage at either end of a pipeline, whose hops have weights of their own. */
static double end_stage(struct maq_priced_bound *p, const struct maq_bottleneck_box *box, const double *priced,
                        uint32_t behind, uint32_t first, uint32_t end, uint16_t *option)
{
    const struct maq_stage_table *t = p->layer_ranges->table;
    double forward = maq_forward_weight(t, behind, first == 0), backward = maq_backward_weight(t, behind, first == 0);
    double best = HUGE_VAL;
    for (uint32_t o = 0; o < t->n_options; o++) {
        if (p->layer_ranges->deepest[maq_layer_range_index(t, o, first, end)] <= behind)
            continue;
        double cost = range_cost(p, box, priced, o, first, end, forward, backward);
        if (cost < best) {
            best = cost;
            *option = (uint16_t)o;
        }
    }
    return best;
}

/*
 * The last stage with `front_s` in front of it, where a step may wait: the sum of both, plus the wait for waves that come back to
 * the first stage, at the box's least bottleneck and without the price of devices. The wait for the output in the last stage is not
 * known here.
 */
static double last_stage(struct maq_priced_bound *p, const struct maq_bottleneck_box *box, const double *priced,
                         double paid, uint32_t first, double front_s, uint16_t *option)
{
    const struct maq_stage_table *t = p->layer_ranges->table;
    double backward = maq_backward_weight(t, 0, first == 0), best = HUGE_VAL;
    for (uint32_t o = 0; o < t->n_options; o++) {
        if (p->layer_ranges->deepest[maq_layer_range_index(t, o, first, t->n_atoms)] == 0)
            continue;
        double cost = range_cost(p, box, priced, o, first, t->n_atoms, 0, backward) + front_s;
        if (cost == HUGE_VAL)
            continue;
        cost += maq_waits(t, cost - paid + p->layer_ranges->back_s[o], 0, box->bottleneck_lo, first == 0);
        if (cost < best) {
            best = cost;
            *option = (uint16_t)o;
        }
    }
    return best;
}

/* Fills in one row: stages with `behind` behind them. */
static void relax_row(struct maq_priced_bound *p, const struct maq_bottleneck_box *box, const double *priced,
                      double paid, uint32_t behind)
{
    uint32_t n = p->layer_ranges->table->n_atoms;
    uint32_t rows = p->layer_ranges->rows;
    const double *next =
        p->rest + (size_t)(behind < rows ? behind + 1 : rows) * (n + 1); /* the last row follows itself */
    double *row = p->rest + (size_t)behind * (n + 1);
    row[0] = 0;
    for (uint32_t end = behind == 0 ? n : 1; end <= n - behind; end++) {
        size_t at = (size_t)behind * (n + 1) + end;
        double best = HUGE_VAL;
        uint32_t first = end;
        uint16_t option = 0;
        while (first-- > p->within.farthest[end]) {
            double cost;
            if (next[first] >= best)
                continue;
            if (behind == 0 && maq_may_wait(p->layer_ranges->table)) {
                cost = last_stage(p, box, priced, paid, first, next[first], &option);
                cost -= cost < HUGE_VAL ? next[first] : 0;
            } else if (behind == 0 || first == 0) {
                cost = end_stage(p, box, priced, behind, first, end, &option);
            } else {
                const struct choice *c = choices_of(p, box, priced, first, end);
                while (c->deepest <= behind)
                    c++;
                cost = c->cost;
                option = c->option;
            }
            cost += next[first];
            if (cost < best) {
                best = cost;
                p->cut[at] = (uint16_t)first;
                p->option[at] = option;
            }
        }
        row[end] = best;
    }
}

/* The most stages whose sum, with all stages but the two ends at their least, is below `most`. */
static uint32_t depth_worth(const struct maq_layer_ranges *a, const double *priced, double most)
{
    double least = HUGE_VAL;
    for (uint32_t o = 0; o < a->table->n_options; o++)
        least = fmin(least, a->least_s[o] + priced[o]);
    double stages = least > 0 && most > 0 ? 2 + most / least : most > 0 ? HUGE_VAL : 2;
    return stages < a->depth ? (uint32_t)stages : a->depth;
}

/* L(y) of a box, or what is no less than `wanted`; HUGE_VAL when no cut is possible. */
static double relax(struct maq_priced_bound *p, const struct maq_bottleneck_box *box, const double *price,
                    double wanted)
{
    const struct maq_layer_ranges *a = p->layer_ranges;
    const struct maq_stage_table *t = a->table;
    uint32_t n = t->n_atoms;
    double priced[MAQ_STAGE_OPTIONS] = {0}, paid = 0;
    for (uint32_t o = 0; o < t->n_options; o++)
        priced[o] = price[t->options[o].kind] * a->devices[o];
    for (uint32_t g = 0; g < t->n_kinds; g++) {
        paid += price[g] * t->available[g];
        p->used[g] = 0;
    }
    p->asked =
        (struct asked){.lo = box->bottleneck_lo, .hi = box->bottleneck_hi, .sync_hi = box->sync_hi, .wanted = wanted};
    memcpy(p->asked.price, price, sizeof p->asked.price);
    uint32_t worth = depth_worth(a, priced, wanted + paid), rows = a->rows;
    bool deep = a->depth > rows && worth > rows; /* the last row stands for all positions behind it */
    for (uint32_t k = worth < rows ? worth : rows; k <= rows; k++) {
        double *row = p->rest + (size_t)k * (n + 1);
        row[0] = 0;
        for (uint32_t l = 1; l <= n; l++)
            row[l] = HUGE_VAL;
    }
    begin(p, box);
    if (deep)
        relax_row(p, box, priced, paid, rows);
    for (uint32_t behind = worth < rows ? worth : rows; behind-- > 0;)
        relax_row(p, box, priced, paid, behind);
    if (p->rest[n] == HUGE_VAL)
        return HUGE_VAL;
    for (uint32_t l = n, k = 0; l > 0; k += k < rows) {
        uint32_t o = p->option[(size_t)k * (n + 1) + l];
        p->used[t->options[o].kind] += a->devices[o];
        l = p->cut[(size_t)k * (n + 1) + l];
    }
    return p->rest[n] - paid;
}

void maq_composition_offer(struct maq_composition *best, struct maq_composition *c, const struct maq_stage_table *t,
                           const struct maq_bottleneck_box_options *options)
{
    if (options->hook)
        options->hook(options->user, c);
    if (maq_composition_cost(c, t) && c->step_s < options->cutoff_s && c->step_s < best->step_s)
        *best = *c;
}

/* The path of the last program as a composition. */
static void try_path(struct maq_composition *best, const struct maq_priced_bound *p,
                     const struct maq_bottleneck_box_options *options)
{
    const struct maq_stage_table *t = p->layer_ranges->table;
    struct maq_composition c = {.n_stages = 0};
    bool within = true;
    for (uint32_t g = 0; g < t->n_kinds; g++)
        within = within && p->used[g] <= t->available[g];
    if (!within && !options->hook)
        return;
    for (uint32_t l = t->n_atoms, k = 0; l > 0; k += k < p->layer_ranges->rows, c.n_stages++)
        l = p->cut[(size_t)k * (t->n_atoms + 1) + l];
    if (c.n_stages > p->layer_ranges->depth)
        return;
    for (uint32_t l = t->n_atoms, k = 0; l > 0; k++) {
        uint32_t row = k < p->layer_ranges->rows ? k : p->layer_ranges->rows;
        size_t at = (size_t)row * (t->n_atoms + 1) + l;
        uint32_t option = p->option[at];
        c.stages[c.n_stages - 1 - k] = (struct maq_stage){
            .first = p->cut[at], .end = l, .n_parts = 1, .parts = {{option, maq_replicas(t, option)}}};
        l = p->cut[at];
    }
    maq_composition_offer(best, &c, t, options);
}

double maq_priced_bound_raise(struct maq_priced_bound *p, struct maq_bottleneck_box *box, struct maq_composition *best,
                              double wanted, const struct maq_bottleneck_box_options *options, uint64_t *programs)
{
    const struct maq_stage_table *t = p->layer_ranges->table;
    double y[MAQ_STAGE_KINDS], highest = -HUGE_VAL, damp = 1;
    uint32_t stuck = 0;
    memcpy(y, box->price[0], sizeof y);
    for (uint32_t step = 0; step < (options->beam > 0 ? LOOK_STEPS : STEPS) && highest < wanted; step++) {
        double value = relax(p, box, y, wanted), norm = 0;
        ++*programs;
        if (value == HUGE_VAL)
            return value;
        try_path(best, p, options);
        if (value > highest) {
            stuck = value > highest + 1e-3 * fabs(wanted - highest) ? 0 : stuck + 1;
            highest = value;
            memcpy(box->price[0], y, sizeof y);
        } else {
            stuck++;
            damp *= 0.7;
        }
        if (stuck >= 6)
            break;
        for (uint32_t g = 0; g < t->n_kinds; g++) {
            double over = t->available[g] > 0 ? p->used[g] / t->available[g] - 1 : 0;
            norm += over > 0 || y[g] > 0 ? over * over : 0;
        }
        if (norm == 0)
            break;
        for (uint32_t g = 0; g < t->n_kinds; g++) {
            double n = t->available[g] > 0 ? t->available[g] : 1, over = p->used[g] / n - 1;
            double next = y[g] * n + damp * 1.2 * (wanted - value) * over / norm;
            y[g] = next > 0 ? next / n : 0;
        }
    }
    return highest;
}

const double *maq_priced_bound_rest(struct maq_priced_bound *p, const struct maq_bottleneck_box *box, uint32_t dual,
                                    double wanted)
{
    const struct asked *asked = &p->asked; /* usually it is still that of the last program */
    if (memcmp(asked->price, box->price[dual], sizeof asked->price) != 0 || asked->lo != box->bottleneck_lo ||
        asked->hi != box->bottleneck_hi || asked->sync_hi != box->sync_hi || asked->wanted != wanted)
        relax(p, box, box->price[dual], wanted);
    return p->rest;
}

/* A stage of the last path: its time alone. */
static double stage_time(const struct maq_priced_bound *p, uint32_t behind, uint32_t first, uint32_t end, uint32_t o)
{
    const struct maq_layer_ranges *a = p->layer_ranges;
    const struct maq_stage_table *t = a->table;
    return maq_layer_range_compute(t, o, first, end) +
           maq_forward_weight(t, behind, first == 0) * a->forward_s[o * t->n_atoms + end - 1] +
           maq_backward_weight(t, behind, first == 0) * a->backward_s[o * t->n_atoms + first];
}

double maq_priced_bound_least(struct maq_priced_bound *p, struct maq_priced_path *path,
                              const struct maq_bottleneck_box *box, double limit)
{
    const struct maq_stage_table *t = p->layer_ranges->table;
    double paid = 0;
    for (uint32_t g = 0; g < t->n_kinds; g++)
        paid += box->price[0][g] * t->available[g];
    double value = relax(p, box, box->price[0], limit - paid);
    *path = (struct maq_priced_path){.n_stages = 0};
    if (value == HUGE_VAL || value + paid >= limit)
        return limit;
    for (uint32_t l = t->n_atoms, k = 0; l > 0; path->n_stages++) {
        size_t at = (size_t)(k < p->layer_ranges->rows ? k : p->layer_ranges->rows) * (t->n_atoms + 1) + l;
        double s = stage_time(p, k++, p->cut[at], l, p->option[at]);
        path->fill_s += s;
        path->bottleneck_s = fmax(path->bottleneck_s, s);
        path->sync_s =
            fmax(path->sync_s, p->layer_ranges->sync_s[maq_layer_range_index(t, p->option[at], p->cut[at], l)]);
        l = p->cut[at];
    }
    memcpy(path->used, p->used, sizeof path->used);
    return value + paid;
}

void maq_priced_bound_forget(struct maq_priced_bound *p)
{
    p->within.hi = p->within.sync_hi = -1;
    p->asked.hi = -1;
}

bool maq_priced_bound_new(struct maq_priced_bound **out, const struct maq_layer_ranges *layer_ranges,
                          struct maq_arena *arena)
{
    struct maq_priced_bound *p = MAQ_ARENA_NEW(arena, struct maq_priced_bound, 1);
    size_t n = layer_ranges->table->n_atoms, cells = (layer_ranges->rows + 1) * (n + 1), ranges = n * (n + 1);
    if (!p)
        return false;
    *p = (struct maq_priced_bound){
        .layer_ranges = layer_ranges,
        .rest = MAQ_ARENA_NEW(arena, double, cells),
        .cut = MAQ_ARENA_NEW(arena, uint16_t, cells),
        .option = MAQ_ARENA_NEW(arena, uint16_t, cells),
        .choices = MAQ_ARENA_RAW(arena, struct choice, ranges * (CHOICES + 1)),
        .chosen = MAQ_ARENA_NEW(arena, uint32_t, ranges),
        .within = {.hi = -1,
                   .sync_hi = -1,
                   .listed = MAQ_ARENA_NEW(arena, uint32_t, ranges),
                   .fits = MAQ_ARENA_RAW(arena, uint16_t, ranges * layer_ranges->table->n_options),
                   .n = MAQ_ARENA_RAW(arena, uint16_t, ranges),
                   .farthest = MAQ_ARENA_NEW(arena, uint32_t, n + 1)}};
    *out = p;
    return p->rest && p->cut && p->option && p->choices && p->chosen && p->within.listed && p->within.fits &&
           p->within.n && p->within.farthest;
}
