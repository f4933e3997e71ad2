/*
 * compose_bound.c - what no composition of a table can be below.
 *
 * Let a box say that the bottleneck lies in [b0, b1] and the synchronization in [s0, s1]. Every composition in it is at least
 *
 *   (waves - 1) b0 + s0 + update + min sum_i t_i        (b0 <= max_i t_i <= b1)
 *
 * over the ways to cut the atoms into stages that stay below b1 and s1, fit their position's memory, and use no more devices than
 * there are. The last of these is priced instead of asked for (Lagrange): with y_g >= 0 seconds per device of kind g,
 *
 *   L(y) = min over cuts of  sum_i (t_i + y . devices_i)  -  y . available    <=    min sum_i t_i
 *
 * and the minimum is a dynamic program over (stages behind, atoms left), `rest` below. Hops are those to the best neighbour, a whole
 * stage is of one option: a stage that mixes options is as slow as its slowest, takes a weighted mean of their devices, and its
 * synchronization is no less than that of each, so it costs no less than the best of them. Prices are raised by subgradient steps
 * (used minus available), with Polyak's length towards the value that would refute the box.
 *
 *   rest[k][l] = least of sum (t_i + y . devices_i) over stages that cover the first l atoms with k stages behind them
 *
 * serves the search over labels as well: it bounds what the front of a pipeline still costs. Positions from MAQ_REST_ROWS on are taken
 * for that one, which fits whatever fits behind it.
 */
#include <math.h>
#include <string.h>

#include "compose/compose_internal.h"

#define STEPS 24

/* The best options of a stretch in the middle of a pipeline, by depth: the first of them that fits is the cheapest. */
#define CHOICES 4

struct choice {
    double cost;
    uint16_t option, deepest;
};

struct program {
    const struct maq_arcs *arcs;
    double *rest;  /* [(rows + 1) * (atoms + 1)] */
    uint16_t *cut; /* the same: where the stage that ends here begins */
    uint16_t *option;
    struct choice
        *choices; /* [atoms * (atoms + 1) * (CHOICES + 1)]: lists, closed by one without cost that fits anywhere */
    uint32_t *farthest;           /* [atoms + 1]: where the longest stretch that ends here begins */
    double used[MAQ_STAGE_KINDS]; /* of the path found */
};

/* Cost of a stretch on an option with hops of the given weight; HUGE_VAL when it is not in the box. */
static double stretch_cost(const struct program *p, const struct maq_box *box, const double *priced, uint32_t o,
                           uint32_t first, uint32_t end, double forward, double backward)
{
    const struct maq_arcs *a = p->arcs;
    const struct maq_stage_table *t = a->table;
    double s = maq_arc_compute(t, o, first, end) + forward * a->forward_s[o * t->n_atoms + end - 1] +
               backward * a->backward_s[o * t->n_atoms + first];
    if (s > box->bottleneck_hi || a->sync_s[maq_arc(t, o, first, end)] > box->sync_hi)
        return HUGE_VAL;
    return s + priced[o];
}

/* Keeps the options that are cheaper than all that fit deeper. */
static void choose(struct program *p, const struct maq_box *box, const double *priced, uint32_t first, uint32_t end)
{
    const struct maq_stage_table *t = p->arcs->table;
    struct choice *list = &p->choices[((size_t)first * (t->n_atoms + 1) + end) * (CHOICES + 1)];
    const size_t arc = maq_arc(t, 0, first, end);
    uint32_t n = 0;
    for (uint32_t o = 0; o < t->n_options; o++) {
        if (p->arcs->through_s[arc + o] > box->bottleneck_hi || p->arcs->sync_s[arc + o] > box->sync_hi)
            continue;
        double cost = p->arcs->through_s[arc + o] + priced[o];
        uint32_t at = 0, deepest = p->arcs->deepest[arc + o];
        while (at < n && list[at].cost <= cost)
            at++;
        if (at > 0 && list[at - 1].deepest >= deepest)
            continue;
        uint32_t tail = at;
        while (tail < n && list[tail].deepest <= deepest)
            tail++;
        if (tail == at &&
            n == CHOICES) { /* no room: two pretend to be one that is better than either, which stays a bound */
            if (at == n)
                list[n - 1].deepest = (uint16_t)deepest;
            else
                list[at].cost = cost;
            continue;
        }
        memmove(&list[at + 1], &list[tail], (n - tail) * sizeof *list);
        list[at] = (struct choice){cost, (uint16_t)o, (uint16_t)deepest};
        n += 1 - (tail - at);
    }
    list[n] = (struct choice){HUGE_VAL, 0, UINT16_MAX};
}

static void choose_all(struct program *p, const struct maq_box *box, const double *priced)
{
    const struct maq_stage_table *t = p->arcs->table;
    for (uint32_t end = 1; end <= t->n_atoms; end++) {
        bool any = true;
        uint32_t first = end;
        while (any && first > 0) {
            any = false;
            first--;
            for (uint32_t o = 0; o < t->n_options && !any; o++)
                any = maq_arc_compute(t, o, first, end) <= box->bottleneck_hi;
            if (any)
                choose(p, box, priced, first, end);
        }
        p->farthest[end] = any ? 0 : first + 1;
    }
}

/* The stage at either end of a pipeline, whose hops have weights of their own. */
static double end_stage(struct program *p, const struct maq_box *box, const double *priced, uint32_t behind,
                        uint32_t first, uint32_t end, uint16_t *option)
{
    const struct maq_stage_table *t = p->arcs->table;
    double forward = maq_forward_weight(t, behind, first == 0), backward = maq_backward_weight(t, behind, first == 0);
    double best = HUGE_VAL;
    for (uint32_t o = 0; o < t->n_options; o++) {
        if (p->arcs->deepest[maq_arc(t, o, first, end)] <= behind)
            continue;
        double cost = stretch_cost(p, box, priced, o, first, end, forward, backward);
        if (cost < best) {
            best = cost;
            *option = (uint16_t)o;
        }
    }
    return best;
}

/* Fills in one row: stages with `behind` behind them. */
static void relax_row(struct program *p, const struct maq_box *box, const double *priced, uint32_t behind)
{
    uint32_t n = p->arcs->table->n_atoms;
    uint32_t rows = p->arcs->rows;
    const double *next =
        p->rest + (size_t)(behind < rows ? behind + 1 : rows) * (n + 1); /* the last row follows itself */
    double *row = p->rest + (size_t)behind * (n + 1);
    row[0] = 0;
    for (uint32_t end = behind == 0 ? n : 1; end <= n - behind; end++) {
        size_t at = (size_t)behind * (n + 1) + end;
        double best = HUGE_VAL;
        uint32_t first = end;
        uint16_t option = 0;
        while (first-- > p->farthest[end]) {
            double cost;
            if (next[first] >= best)
                continue;
            if (behind == 0 || first == 0) {
                cost = end_stage(p, box, priced, behind, first, end, &option);
            } else {
                const struct choice *c = &p->choices[((size_t)first * (n + 1) + end) * (CHOICES + 1)];
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

/* All stages but the two at the ends take their least: so many may be worth less than `most`. */
static uint32_t depth_worth(const struct maq_arcs *a, const double *priced, double most)
{
    double least = HUGE_VAL;
    for (uint32_t o = 0; o < a->table->n_options; o++)
        least = fmin(least, a->least_s[o] + priced[o]);
    double stages = least > 0 && most > 0 ? 2 + most / least : most > 0 ? HUGE_VAL : 2;
    return stages < a->depth ? (uint32_t)stages : a->depth;
}

/* L(y) of a box, or what is no less than `wanted`; HUGE_VAL when no cut is possible. */
static double relax(struct program *p, const struct maq_box *box, const double *price, double wanted)
{
    const struct maq_arcs *a = p->arcs;
    const struct maq_stage_table *t = a->table;
    uint32_t n = t->n_atoms;
    double priced[MAQ_STAGE_OPTIONS], paid = 0;
    for (uint32_t o = 0; o < t->n_options; o++)
        priced[o] = price[t->options[o].kind] * a->devices[o];
    for (uint32_t g = 0; g < t->n_kinds; g++) {
        paid += price[g] * t->available[g];
        p->used[g] = 0;
    }
    uint32_t worth = depth_worth(a, priced, wanted + paid), rows = a->rows;
    bool deep = a->depth > rows && worth > rows; /* the last row stands for all positions behind it */
    for (uint32_t k = worth < rows ? worth : rows; k <= rows; k++) {
        double *row = p->rest + (size_t)k * (n + 1);
        row[0] = 0;
        for (uint32_t l = 1; l <= n; l++)
            row[l] = HUGE_VAL;
    }
    choose_all(p, box, priced);
    if (deep)
        relax_row(p, box, priced, rows);
    for (uint32_t behind = worth < rows ? worth : rows; behind-- > 0;)
        relax_row(p, box, priced, behind);
    if (p->rest[n] == HUGE_VAL)
        return HUGE_VAL;
    for (uint32_t l = n, k = 0; l > 0; k += k < rows) {
        uint32_t o = p->option[(size_t)k * (n + 1) + l];
        p->used[t->options[o].kind] += a->devices[o];
        l = p->cut[(size_t)k * (n + 1) + l];
    }
    return p->rest[n] - paid;
}

/* The path of the last program as a composition; better than the best if it keeps to the devices that there are. */
static void try_path(struct maq_composition *best, const struct program *p, const struct maq_box_options *options)
{
    const struct maq_stage_table *t = p->arcs->table;
    struct maq_composition c = {.n_stages = 0};
    bool within = true;
    for (uint32_t g = 0; g < t->n_kinds; g++)
        within = within && p->used[g] <= t->available[g];
    if (!within && !options->hook)
        return;
    for (uint32_t l = t->n_atoms, k = 0; l > 0; k += k < p->arcs->rows, c.n_stages++)
        l = p->cut[(size_t)k * (t->n_atoms + 1) + l];
    if (c.n_stages > p->arcs->depth)
        return;
    for (uint32_t l = t->n_atoms, k = 0; l > 0; k++) {
        uint32_t row = k < p->arcs->rows ? k : p->arcs->rows;
        size_t at = (size_t)row * (t->n_atoms + 1) + l;
        uint32_t option = p->option[at];
        c.stages[c.n_stages - 1 - k] = (struct maq_stage){
            .first = p->cut[at], .end = l, .n_parts = 1, .parts = {{option, maq_replicas(t, option)}}};
        l = p->cut[at];
    }
    if (options->hook)
        options->hook(options->user, &c);
    if (within && maq_composition_cost(&c, t) && c.step_s < options->cutoff_s && c.step_s < best->step_s)
        *best = c;
}

/* Raises the prices until the box is refuted (L >= wanted) or they stop paying. Returns the best L; prices in box->price[0]. */
static double raise_prices(struct program *p, struct maq_box *box, struct maq_composition *best, double wanted,
                           const struct maq_box_options *options, uint64_t *programs)
{
    const struct maq_stage_table *t = p->arcs->table;
    double y[MAQ_STAGE_KINDS], highest = -HUGE_VAL, damp = 1;
    uint32_t stuck = 0;
    memcpy(y, box->price[0], sizeof y);
    for (uint32_t step = 0; step < STEPS && highest < wanted; step++) {
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

static bool push(struct maq_boxes *boxes, const struct maq_box *box, struct maq_arena *arena)
{
    if (boxes->n == boxes->room) {
        uint32_t room = boxes->room > 0 ? 2 * boxes->room : 32;
        struct maq_box *more = MAQ_ARENA_NEW(arena, struct maq_box, room);
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

/* The next box: the lowest one first, which comes upon good compositions early; `best`: the one with the least bound, so that the bound
 * is as good as it can be when the boxes run out. */
static struct maq_box pop(struct maq_boxes *open, bool best)
{
    uint32_t next = open->n - 1;
    for (uint32_t i = 0; best && i < open->n; i++)
        next = open->at[i].bound_s < open->at[next].bound_s ? i : next;
    struct maq_box box = open->at[next];
    open->at[next] = open->at[--open->n];
    return box;
}

static double floor_of(const struct maq_arcs *a, const struct maq_box *box)
{
    return (a->table->waves - 1) * box->bottleneck_lo + box->sync_lo + a->update_s;
}

static bool keep_rest(struct maq_box *box, struct program *p, uint32_t dual, double wanted, struct maq_arena *arena)
{
    size_t n = (size_t)(p->arcs->rows + 1) * (p->arcs->table->n_atoms + 1);
    double *copy = MAQ_ARENA_NEW(arena, double, n);
    relax(p, box, box->price[dual], wanted);
    if (copy)
        memcpy(copy, p->rest, n * sizeof *copy);
    box->rest[dual] = copy;
    return copy;
}

/* Splits, keeps or drops a box that the programs did not refute. */
static bool settle(struct maq_boxes *open, struct maq_boxes *kept, struct maq_box *box, struct program *p,
                   double wanted, const struct maq_box_options *options, uint64_t *looked, struct maq_arena *arena)
{
    double wide = (p->arcs->table->waves - 1) * (box->bottleneck_hi - box->bottleneck_lo);
    double sync = box->sync_hi - box->sync_lo;
    if ((wide <= options->grain_s && sync <= options->grain_s) || *looked >= options->most) {
        for (uint32_t d = 0; d < MAQ_BOX_DUALS; d++)
            if (!keep_rest(box, p, d, wanted, arena))
                return false;
        return push(kept, box, arena);
    }
    struct maq_box low = *box, high = *box;
    if (wide >= sync)
        low.bottleneck_hi = high.bottleneck_lo = 0.5 * (box->bottleneck_lo + box->bottleneck_hi);
    else
        low.sync_hi = high.sync_lo = 0.5 * (box->sync_lo + box->sync_hi);
    return push(open, &high, arena) && push(open, &low, arena);
}

/* Order of boxes: the most promising first. */
static void sort_boxes(struct maq_boxes *b)
{
    for (uint32_t i = 1; i < b->n; i++)
        for (uint32_t j = i; j > 0 && b->at[j].bound_s < b->at[j - 1].bound_s; j--) {
            struct maq_box swap = b->at[j];
            b->at[j] = b->at[j - 1];
            b->at[j - 1] = swap;
        }
}

bool maq_boxes_cover(struct maq_boxes *boxes, struct maq_composition *best, const struct maq_arcs *arcs,
                     const struct maq_box_options *options, struct maq_arena *arena)
{
    const struct maq_stage_table *t = arcs->table;
    size_t cells = (size_t)(arcs->rows + 1) * (t->n_atoms + 1);
    struct program p = {.arcs = arcs,
                        .rest = MAQ_ARENA_NEW(arena, double, cells),
                        .cut = MAQ_ARENA_NEW(arena, uint16_t, cells),
                        .option = MAQ_ARENA_NEW(arena, uint16_t, cells),
                        .choices =
                            MAQ_ARENA_NEW(arena, struct choice, (size_t)t->n_atoms * (t->n_atoms + 1) * (CHOICES + 1)),
                        .farthest = MAQ_ARENA_NEW(arena, uint32_t, t->n_atoms + 1)};
    struct maq_boxes open = {.n = 0};
    uint64_t looked = 0;
    double cutoff = options->cutoff_s;
    *boxes = (struct maq_boxes){.bound_s = cutoff};
    /* sum >= bottleneck, so waves * bottleneck and sync alone stay below the cutoff */
    struct maq_box whole = {.bottleneck_hi = (cutoff - arcs->update_s) / t->waves, .sync_hi = cutoff - arcs->update_s};
    if (!p.rest || !p.cut || !p.option || !p.choices || !p.farthest || !push(&open, &whole, arena))
        return false;
    while (open.n > 0) {
        struct maq_box box = pop(&open, looked > options->most / 2);
        cutoff = best->step_s < cutoff ? best->step_s : cutoff;
        double highest_bottleneck = (cutoff - arcs->update_s - box.sync_lo) / t->waves;
        double highest_sync = cutoff - floor_of(arcs, &box) + box.sync_lo;
        box.bottleneck_hi = highest_bottleneck < box.bottleneck_hi ? highest_bottleneck : box.bottleneck_hi;
        box.sync_hi = highest_sync < box.sync_hi ? highest_sync : box.sync_hi;
        if (box.bottleneck_hi < box.bottleneck_lo || box.sync_hi < box.sync_lo)
            continue;
        looked++;
        double wanted = cutoff - floor_of(arcs, &box);
        double least = looked > options->most ? box.bound_s - floor_of(arcs, &box)
                                              : raise_prices(&p, &box, best, wanted, options, &boxes->programs);
        if (least >= wanted)
            continue;
        box.bound_s = floor_of(arcs, &box) + (least > 0 ? least : 0);
        if (!settle(&open, boxes, &box, &p, wanted, options, &looked, arena))
            return false;
    }
    sort_boxes(boxes);
    if (boxes->n > 0)
        boxes->bound_s = boxes->at[0].bound_s < cutoff ? boxes->at[0].bound_s : cutoff;
    else
        boxes->bound_s = cutoff;
    return true;
}
