/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece_search.c - labels over atoms in boxes of the bottleneck: extension, dominance, and best-first choice of
 * boxes. See piece_search.h.
 */
#include "planner/external/piece_search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "planner/external/piece_bound.h"

#define NONE UINT32_MAX
/* sums of the same terms in another order: a bound must not drop a row that equals the best */
#define SLACK (1 + 1e-12)

struct label {
    double bound_s;
    double first_s, done_s, sum_s,
        sync_s; /* of the first stage; slowest of the others, and no less than any pipeline's */
    const struct maq_piece *piece;
    uint32_t atom, behind; /* first atom; stages */
    uint32_t after, next;  /* the label that it extends; the next one of its atom */
    uint32_t left[MAQ_PIECE_ISLANDS];
};

struct run {
    const struct maq_piece_table *table;
    const struct maq_piece_search_opts *opts;
    struct maq_piece_search_result *out;
    struct maq_arena *arena;
    struct maq_piece_bounds bounds; /* of the box at hand */
    double cutoff_s;
    double fill_s;            /* sum t of any pipeline is no less */
    double pace_s, slowest_s; /* of the box: max t counts as this at least, and is not more than that */
    double missed_s;          /* least bound of the labels of the box that were left over */
    struct label *labels;
    uint32_t n, size;
    uint32_t *heads; /* [n_atoms]: labels of an atom */
    uint32_t *order; /* labels of the atom at hand */
    uint32_t order_size;
    bool failed;
};

/* ---- whole pipelines ---- */

static void take_row(struct maq_piece_line *p, const struct run *r, const struct label *l)
{
    p->n = 0;
    for (;; l = &r->labels[l->after]) {
        p->first[p->n] = l->atom;
        p->pieces[p->n++] = l->piece;
        if (l->after == NONE)
            return;
    }
}

/* A total order of rows of the same step. */
static bool is_before(const struct maq_piece_line *a, const struct maq_piece_line *b)
{
    if (a->n != b->n)
        return a->n < b->n;
    for (uint32_t i = 0; i < a->n; i++) {
        const struct maq_piece *p = a->pieces[i], *q = b->pieces[i];
        if (a->first[i] != b->first[i])
            return a->first[i] < b->first[i];
        if (p->island != q->island)
            return p->island < q->island;
        if (p->devices != q->devices)
            return p->devices < q->devices;
        if (p->sum_s != q->sum_s)
            return p->sum_s < q->sum_s;
    }
    return false;
}

static void finish(struct run *r, const struct label *l)
{
    struct maq_piece_line row = {.n = 0};
    take_row(&row, r, l);
    if (!maq_piece_line_cost(&row, r->table) || row.step_s > r->cutoff_s * SLACK)
        return;
    struct maq_piece_line *best = &r->out->best;
    if (best->n == 0 || row.step_s < best->step_s || (row.step_s == best->step_s && is_before(&row, best)))
        *best = row;
    r->cutoff_s = fmin(r->cutoff_s, best->step_s);
}

/* ---- labels ---- */

static double bound_of(struct run *r, const struct label *l)
{
    const struct maq_piece_table *t = r->table;
    double hop = l->atom > 0 ? t->least_hop[l->piece->first_hop] : 0;
    struct maq_piece_bound front = maq_piece_bounds_front(&r->bounds, l->atom, l->behind, l->left);
    double pace = fmax(fmax(l->done_s, l->first_s + hop), front.bottleneck_s);
    if (pace > r->slowest_s * SLACK)
        return HUGE_VAL;
    return (t->waves - 1) * pace + l->sum_s + hop + front.fill_s + fmax(l->sync_s, r->bounds.sync_s[l->atom]);
}

/* `piece` in front of `after` (NULL: the end of the model); false when it cannot be there. */
static bool extend(struct label *out, const struct run *r, const struct label *after, uint32_t first,
                   const struct maq_piece *piece)
{
    const struct maq_piece_table *t = r->table;
    uint32_t behind = after ? after->behind : 0, stages = piece->plan->n_stages;
    const uint32_t *left = after ? after->left : t->available;
    double hop = after ? t->hop_s[piece->last_hop * t->n_hops + after->piece->first_hop] : 0;
    if (piece->devices > left[piece->island] || behind > piece->most_behind)
        return false;
    *out = (struct label){.piece = piece, .atom = first, .behind = behind + stages, .next = NONE};
    memcpy(out->left, left, sizeof out->left);
    out->left[piece->island] -= piece->devices;
    out->after = after ? (uint32_t)(after - r->labels) : NONE;
    out->done_s = fmax(after ? fmax(after->done_s, after->first_s + hop) : r->pace_s, piece->slowest_s);
    out->first_s = piece->first_s;
    if (stages == 1)
        out->first_s += hop;
    else
        out->done_s = fmax(out->done_s, piece->last_s + hop);
    out->sum_s = (after ? after->sum_s : 0) + piece->sum_s + 2 * hop;
    out->sync_s = fmax(after ? after->sync_s : 0, piece->sync_s);
    return true;
}

static bool push(struct run *r, const struct label *l)
{
    if (r->n == r->size) {
        uint32_t size = r->size > 0 ? 2 * r->size : 1024;
        struct label *labels = maq__realloc(r->labels, size * sizeof *labels);
        if (!labels)
            return false;
        r->labels = labels;
        r->size = size;
    }
    r->labels[r->n] = *l;
    if (l->atom > 0) {
        r->labels[r->n].next = r->heads[l->atom];
        r->heads[l->atom] = r->n;
    }
    r->n++;
    return true;
}

static void offer(struct run *r, struct label *l)
{
    r->out->considered++;
    l->bound_s = bound_of(r, l);
    if (!(l->bound_s <= r->cutoff_s * SLACK)) {
        r->out->bounded++;
        return;
    }
    if (l->atom == 0)
        finish(r, l);
    else if (r->opts->most > 0 && r->n >= r->opts->most)
        r->missed_s = fmin(r->missed_s, l->bound_s);
    else
        r->failed = !push(r, l);
}

/* All pieces that end where the label begins (NONE: at the end of the model), the shortest slices first. */
static void extend_all(struct run *r, uint32_t id, uint32_t end)
{
    const struct maq_piece_bounds *b = &r->bounds;
    for (uint32_t first = end; first-- > 0 && !r->failed;) {
        const struct maq_piece_kind *kind = &b->kinds[b->kind_of[(size_t)first * r->table->n_atoms + end - 1]];
        for (uint32_t i = 0; i < kind->n && !r->failed; i++) {
            struct label l;
            if (extend(&l, r, id == NONE ? NULL : &r->labels[id], first, kind->pieces[i]))
                offer(r, &l);
        }
    }
}

/* ---- one atom ---- */

/* Whether every completion of label b is no faster than the same completion of a. A hop to a takes up to `over` longer, which
 * counts twice in the fill and may raise the bottleneck. */
static bool dominates(const struct run *r, const struct label *a, const struct label *b)
{
    const struct maq_piece_table *t = r->table;
    if (a->behind > b->behind || a->first_s > b->first_s || a->done_s > b->done_s || a->sync_s > b->sync_s)
        return false;
    double over = t->hop_over[(size_t)a->piece->first_hop * t->n_hops + b->piece->first_hop];
    if (a->sum_s + (over > 0 ? (t->waves + 1) * over : 0) > b->sum_s)
        return false;
    for (uint32_t i = 0; i < t->n_islands; i++)
        if (a->left[i] < b->left[i])
            return false;
    return true;
}

static int by_bound(const void *pa, const void *pb, void *user)
{
    uint32_t a = *(const uint32_t *)pa, b = *(const uint32_t *)pb;
    const struct label *labels = user;
    if (labels[a].bound_s != labels[b].bound_s)
        return labels[a].bound_s < labels[b].bound_s ? -1 : 1;
    return (a > b) - (a < b);
}

/* Labels of an atom in r->order, the most promising first. */
static uint32_t list_labels(struct run *r, uint32_t atom)
{
    uint32_t n = 0;
    for (uint32_t i = r->heads[atom]; i != NONE; i = r->labels[i].next)
        n++;
    if (n > r->order_size) {
        uint32_t *order = maq__realloc(r->order, n * sizeof *order);
        if (!order) {
            r->failed = true;
            return 0;
        }
        r->order = order;
        r->order_size = n;
    }
    n = 0;
    for (uint32_t i = r->heads[atom]; i != NONE; i = r->labels[i].next)
        r->order[n++] = i;
    if (n > 0)
        qsort_r(r->order, n, sizeof *r->order, by_bound, r->labels);
    return n;
}

static bool is_exhausted(const struct run *r)
{
    return r->opts->extensions > 0 && r->out->considered >= r->opts->extensions;
}

static void extend_atom(struct run *r, uint32_t atom)
{
    uint32_t n = list_labels(r, atom), kept = 0;
    for (uint32_t i = 0; i < n && !r->failed; i++) {
        const struct label *l = &r->labels[r->order[i]];
        uint32_t j = 0;
        if (!(l->bound_s <= r->cutoff_s * SLACK)) { /* the cutoff has come down since */
            r->out->bounded++;
            continue;
        }
        while (j < kept && !dominates(r, &r->labels[r->order[j]], l))
            j++;
        if (j < kept)
            r->out->dominated++;
        else if ((r->opts->width > 0 && kept == r->opts->width) || is_exhausted(r))
            r->missed_s = fmin(r->missed_s, l->bound_s);
        else
            r->order[kept++] = r->order[i];
    }
    for (uint32_t i = 0; i < kept && !r->failed; i++)
        extend_all(r, r->order[i], atom);
}

/* ---- boxes ---- */

/* Pipelines with a bottleneck in [from_s, to_s] are not below bound_s. */
struct box {
    double from_s, to_s, bound_s;
};

/* No stage may take longer where the step is to be within the cutoff. */
static double slowest_of(const struct run *r)
{
    uint32_t waves = r->table->waves;
    return isfinite(r->cutoff_s) && waves > 1 ? (r->cutoff_s * SLACK - r->fill_s) / (waves - 1) : HUGE_VAL;
}

/* Labels of one box; its bound is raised to what is proven of it. */
static void search_box(struct run *r, struct box *box)
{
    const struct maq_piece_table *t = r->table;
    struct maq_arena_mark mark = maq_arena_mark(r->arena);
    r->slowest_s = fmin(box->to_s, slowest_of(r));
    r->n = 0;
    r->missed_s = HUGE_VAL;
    for (uint32_t i = 0; i < t->n_atoms; i++)
        r->heads[i] = NONE;
    if (!maq_piece_bounds_init(&r->bounds, t, r->slowest_s, r->arena)) {
        r->failed = true;
        return;
    }
    struct maq_piece_bound floor = maq_piece_bounds_front(&r->bounds, t->n_atoms, 0, t->available);
    r->pace_s = fmax(box->from_s, floor.bottleneck_s);
    double root = (t->waves - 1) * r->pace_s + floor.fill_s + r->bounds.sync_s[t->n_atoms];
    if (root <= r->cutoff_s * SLACK) {
        extend_all(r, NONE, t->n_atoms);
        for (uint32_t atom = t->n_atoms; atom-- > 1 && !r->failed;)
            extend_atom(r, atom);
    }
    r->failed = r->failed || r->bounds.failed;
    if (isfinite(floor.bottleneck_s))
        box->from_s = fmin(r->pace_s, box->to_s);
    box->bound_s = fmax(box->bound_s, fmax(root, r->missed_s));
    maq_arena_reset(r->arena, mark);
}

/* The open box with the least bound; boxes that hold nothing within the cutoff are closed. */
static uint32_t next_box(const struct box *boxes, uint32_t n, double cutoff_s)
{
    uint32_t next = NONE;
    for (uint32_t i = 0; i < n; i++)
        if (isfinite(boxes[i].bound_s) && boxes[i].bound_s <= cutoff_s * SLACK &&
            (next == NONE || boxes[i].bound_s < boxes[next].bound_s))
            next = i;
    return next;
}

/* Lower bound of the fill of every pipeline, whatever its bottleneck. */
static bool find_fill(struct run *r)
{
    struct maq_arena_mark mark = maq_arena_mark(r->arena);
    if (isfinite(r->cutoff_s) && maq_piece_bounds_init(&r->bounds, r->table, HUGE_VAL, r->arena))
        r->fill_s = maq_piece_bounds_front(&r->bounds, r->table->n_atoms, 0, r->table->available).fill_s;
    else
        r->failed = isfinite(r->cutoff_s);
    r->failed = r->failed || r->bounds.failed;
    maq_arena_reset(r->arena, mark);
    return !r->failed;
}

static void search(struct run *r, struct box *boxes, uint32_t most)
{
    uint32_t n = 1, searched = 0, at;
    if (!find_fill(r))
        return;
    boxes[0] = (struct box){0, HUGE_VAL, 0};
    while (!r->failed && (at = next_box(boxes, n, r->cutoff_s)) != NONE && searched < most &&
           !(searched > 0 && is_exhausted(r))) {
        struct box *box = &boxes[at];
        search_box(r, box);
        searched++;
        if (r->missed_s == HUGE_VAL) { /* nothing was left over: what the box holds within the cutoff is found */
            box->bound_s = HUGE_VAL;
            continue;
        }
        double to = fmin(box->to_s, slowest_of(r));
        if (isfinite(to) && searched + 1 < most) {
            double middle = (box->from_s + to) / 2;
            boxes[n] = (struct box){middle, to, box->bound_s};
            boxes[n].bound_s = fmax(box->bound_s, (r->table->waves - 1) * middle);
            n++;
            box->to_s = middle;
        } else if (!isfinite(to)) {
            break; /* no plan is known: there is nothing to halve */
        }
    }
    double limit = r->out->best.n > 0 ? r->out->best.step_s : r->opts->cutoff_s;
    at = next_box(boxes, n, limit);
    r->out->complete = at == NONE;
    r->out->bound_s = at == NONE ? limit : fmin(limit, boxes[at].bound_s);
}

bool maq_piece_search(struct maq_piece_search_result *out, const struct maq_piece_table *table,
                      const struct maq_piece_search_opts *opts, struct maq_arena *arena)
{
    struct run r = {.table = table, .opts = opts, .out = out, .arena = arena, .cutoff_s = opts->cutoff_s};
    uint32_t most = opts->boxes > 0 ? opts->boxes : 1;
    struct box *boxes = MAQ_ARENA_NEW(arena, struct box, most);
    *out = (struct maq_piece_search_result){.bound_s = opts->cutoff_s};
    r.heads = MAQ_ARENA_NEW(arena, uint32_t, table->n_atoms);
    if (!r.heads || !boxes)
        return false;
    search(&r, boxes, most);
    free(r.labels);
    free(r.order);
    return !r.failed;
}
