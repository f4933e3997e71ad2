/* SPDX-License-Identifier: Apache-2.0 */
/*
 * counted_bound.c - a relaxed program that counts devices.
 *
 * Prices (priced_bound.c) allow fractions of a device: two stages that need 3 of 4 devices each are half a stage too
 * many, and a price that is fair for one and a half of them does not rule out the second. Where devices come in few
 * units this program counts them instead. A state is a back part of a pipeline: a number of stages that cover the
 * atoms from `atom` on, and the units of each kind that they use (a unit is the greatest common divisor of the
 * devices of all options of the kind). A state knows the hop group of its front stage (hop_groups.h), so that hops
 * are those between the actual neighbours. Its cost is the sum of t_i over its stages, without what the front stage
 * sends backward; every stage is within the box and fits into the memory of its position. States grow towards the
 * front, level by level, and a state is dropped
 *
 *   - when its cost and the priced cost to go (`rest` of priced_bound.c, for the devices that are left) reach the value that
 *     refutes the box, or the value of a finished state;
 *   - when another state with the same front atom and group, no more stages and no more devices of any kind costs no more, and its
 *     front stage can take every hop backward that the other's can.
 *
 * Where a step may wait (stage_table.h) a state knows its waits so far, at the box's least bottleneck: they are part
 * of the value of a finished state and of every bound, and a state is compared only with states of as many stages
 * whose waits are no longer.
 *
 * The relaxation that remains is that bottleneck, synchronization and update may lie anywhere inside the box.
 */
#include "planner/compose/counted_bound.h"

#include <math.h>
#include <string.h>

#include "planner/compose/cost_to_go.h"
#include "planner/compose/predecessors.h"

#define STATES (1u << 18) /* of one program */
#define CHUNK 1024u
#define ROUNDING 1e-9 /* relative: sums in another order must not drop a state */

struct state { /* the members that comparisons read come first */
    double cost;
    double over; /* by which the front stage would exceed the bottleneck with its slowest hop backward; 0: by nothing */
    uint64_t used;         /* packed units */
    struct state *sibling; /* the next of its atom and group, which is older */
    uint16_t level;
    uint8_t group, last;  /* last: the group of the last stage, where a step may wait */
    double bound;         /* cost plus the priced cost to go */
    struct maq_tail tail; /* of a step that waits */
    double priced;        /* cost plus the price of the devices */
    double front;         /* t of the front stage, without what it sends backward */
    uint32_t code;        /* used, as a number */
    uint16_t atom, option;
    const struct state *from;
};

struct maq_counted_bound {
    const struct maq_layer_ranges *layer_ranges;
    struct maq_units units;
    struct maq_cost_to_go *left; /* NULL: not needed yet, or too large */
    bool filled;                 /* for the box */
    bool waits;                  /* a step may wait (stage_table.h) */
    struct maq_hop_groups groups;
    struct maq_predecessors predecessors;
    struct state **bucket; /* [atoms * groups] */
    struct state **chunks; /* states, for the next program too */
    struct maq_arena *arena;
    uint32_t n;          /* states */
    uint64_t work, most; /* stages tried and states compared */
    uint32_t beam;       /* states of a level, atom and group; 0: all */
    bool no_memory;
    double paid; /* the price of all devices */
};

bool maq_counted_bound_new(struct maq_counted_bound **out, const struct maq_layer_ranges *layer_ranges,
                           struct maq_arena *arena)
{
    const struct maq_stage_table *t = layer_ranges->table;
    struct maq_counted_bound *c = MAQ_ARENA_NEW(arena, struct maq_counted_bound, 1);
    *out = NULL;
    if (!c)
        return false;
    c->layer_ranges = layer_ranges;
    c->waits = maq_may_wait(t);
    c->arena = arena;
    if (!maq_units_init(&c->units, layer_ranges))
        return true;
    if (!maq_hop_groups_init(&c->groups, layer_ranges, arena) ||
        !maq_predecessors_init(&c->predecessors, layer_ranges, &c->units, &c->groups, arena))
        return false;
    c->bucket = MAQ_ARENA_NEW(arena, struct state *, (size_t)t->n_atoms * c->groups.n);
    c->chunks = MAQ_ARENA_NEW(arena, struct state *, STATES / CHUNK);
    if (!c->bucket || !c->chunks)
        return false;
    *out = c;
    return true;
}

static struct state *new_state(struct maq_counted_bound *c)
{
    if (c->n == STATES || c->work > c->most)
        return NULL;
    struct state **chunk = &c->chunks[c->n / CHUNK];
    if (!*chunk)
        *chunk = MAQ_ARENA_RAW(c->arena, struct state, CHUNK);
    c->no_memory = !*chunk;
    return *chunk ? &(*chunk)[c->n++ % CHUNK] : NULL;
}

/* Whether state a, which costs no more than b, dominates it. */
static inline bool replaces(const struct maq_counted_bound *c, const struct state *a, const struct state *b)
{
    if ((((b->used | MAQ_UNITS_TOP) - a->used) & MAQ_UNITS_TOP) != MAQ_UNITS_TOP || a->over > b->over ||
        (a->level == 1) != (b->level == 1))
        return false;
    return !c->waits || (a->tail.chain_s <= b->tail.chain_s && a->tail.slowest_s <= b->tail.slowest_s &&
                         a->last == b->last && a->level == b->level);
}

/* Adds a state unless another dominates it. false when the limit on states is reached. */
static bool put(struct maq_counted_bound *c, const struct state *s)
{
    struct state **head = &c->bucket[(size_t)s->atom * c->groups.n + s->group], **worst = NULL;
    const uint32_t oldest = c->waits ? s->level : 0; /* least level of a state that may dominate it */
    uint32_t kept = 0;
    for (struct state **at = head; *at && (*at)->level >= oldest; c->work++) {
        const struct state *other = *at;
        if (other->cost <= s->cost && replaces(c, other, s))
            return true;
        if (other->level == s->level) {
            if (other->cost >= s->cost && replaces(c, s, other)) {
                *at = other->sibling;
                continue;
            }
            if (c->beam > 0 && (kept++ == 0 || other->bound > (*worst)->bound))
                worst = at;
        }
        at = &(*at)->sibling;
    }
    if (c->beam > 0 && kept >= c->beam) {
        if ((*worst)->bound <= s->bound)
            return true;
        *worst = (*worst)->sibling;
    }
    struct state *place = new_state(c);
    if (!place)
        return false;
    *place = *s;
    place->sibling = *head;
    *head = place;
    return true;
}

struct run {
    struct maq_counted_bound *c;
    const struct maq_bottleneck_box *box;
    const double *rest;
    uint32_t behind;
    double limit; /* states whose bound reaches it are dropped */
    double sends; /* how often a front stage's pace has its hop backward */
    struct state last;
};

/* What a state grown by one stage adds to the waits of a step. */
struct more {
    struct maq_tail tail;
    double back_s;
    uint8_t last;
    bool alone;
};

/* A sum of t_i with what the step waits at the box's least bottleneck. */
static double with_waits(const struct run *r, const struct more *m, double fill_s)
{
    if (!r->c->waits)
        return fill_s;
    return fill_s +
           maq_waits(r->c->layer_ranges->table, fill_s + m->back_s, m->tail.slowest_s, r->box->bottleneck_lo, m->alone);
}

/* The hop from the last stage to the first is known once the first stage is. */
static struct more more_of(const struct run *r, const struct state *back, const struct maq_predecessor *s, double sent)
{
    const struct maq_counted_bound *c = r->c;
    const struct maq_stage_table *t = c->layer_ranges->table;
    struct more m = {.last = back->last, .alone = r->behind == 0 && s->first == 0};
    if (!c->waits)
        return m;
    double compute = maq_layer_range_compute(t, s->option, s->first, back->atom);
    m.last = r->behind == 0 ? c->groups.of[s->option] : back->last;
    m.tail =
        r->behind == 0 ? maq_tail_of(t, s->option, compute) : maq_tail_grow(t, back->tail, r->behind, compute, sent);
    if (c->groups.back)
        m.back_s =
            c->groups.back[(size_t)m.last * (c->groups.n + 1) + (s->first > 0 ? c->groups.n : c->groups.of[s->option])];
    return m;
}

/* Grows a state by one stage in front, unless its bound drops it. false when the limit on states is reached. */
static bool take_front(struct run *r, const struct state *back, const struct maq_predecessor *s, double sent,
                       double bound)
{
    struct maq_counted_bound *c = r->c;
    const struct maq_stage_table *t = c->layer_ranges->table;
    const struct more more = more_of(r, back, s, sent);
    uint32_t code = back->code + s->code;
    if (c->filled) {
        double own_s = c->units.coarse > 1 ? back->priced + s->priced - c->paid : back->cost + s->cost;
        bound = fmax(bound, own_s + sent + s->least +
                                maq_cost_to_go_of(c->left, r->behind + 1, s->first, c->units.codes - 1 - code));
    }
    bound = with_waits(r, &more, bound);
    if (bound >= r->limit || with_waits(r, &more, back->cost + s->cost + sent + s->least) >= r->limit)
        return true;
    struct state new = {.cost = back->cost + sent + s->cost,
                        .priced = back->priced + sent + s->priced,
                        .bound = bound,
                        .front = s->front,
                        .tail = more.tail,
                        .used = back->used + s->used,
                        .code = code,
                        .from = back,
                        .atom = s->first,
                        .group = s->group,
                        .last = more.last,
                        .level = (uint16_t)(r->behind + 1),
                        .option = s->option};
    if (new.atom == 0) {
        r->last = new;
        r->limit = with_waits(r, &more, new.cost);
        return true;
    }
    double over = new.front + r->sends * c->groups.backward_most[(size_t)s->group * t->n_atoms + s->first] -
                  r->box->bottleneck_hi;
    new.over = over > 0 ? over : 0;
    return put(c, &new);
}

/* The priced cost to go in front of the stage that is being added, by atom. */
static const double *rest_of(const struct run *r)
{
    uint32_t rows = r->c->layer_ranges->rows, row = r->behind + 1 < rows ? r->behind + 1 : rows;
    return r->rest + (size_t)row * (r->c->layer_ranges->table->n_atoms + 1);
}

/* Grows a state by every stage that may be put in front of it. */
static bool grow(struct run *r, const struct state *back)
{
    struct maq_counted_bound *c = r->c;
    const struct maq_stage_table *t = c->layer_ranges->table;
    const double *rest = rest_of(r);
    double weight = r->behind > 0 ? maq_backward_weight(t, r->behind - 1, false) : 0;
    double sent[MAQ_HOP_GROUPS] = {0},
           most[MAQ_HOP_GROUPS] = {0}; /* most: beyond it a bound reaches the limit, however it is rounded */
    for (uint32_t g = 0; g < c->groups.n; g++) {
        if (r->behind > 0)
            sent[g] = weight * c->groups.backward[((size_t)back->group * c->groups.n + g) * t->n_atoms + back->atom];
        most[g] = r->limit + c->paid - back->priced - sent[g];
        most[g] += ROUNDING * (fabs(r->limit) + c->paid + fabs(back->priced) + sent[g]);
    }
    c->work += c->predecessors.n;
    for (uint32_t i = 0; i < c->predecessors.n; i++) {
        const struct maq_predecessor *s = &c->predecessors.at[i];
        if (c->predecessors.reach[i].least > most[c->predecessors.reach[i].group])
            continue;
        if (((c->units.room - back->used - s->used) & MAQ_UNITS_TOP) != MAQ_UNITS_TOP)
            continue;
        double bound = back->priced + sent[s->group] + s->priced + s->least + rest[s->first] - c->paid;
        double holds = maq_end_sends_s(t, sent[s->group], r->behind == 1 && s->first == 0);
        if (bound >= r->limit || back->front + holds > r->box->bottleneck_hi ||
            back->cost + s->cost + sent[s->group] + s->least >= r->limit)
            continue;
        if (!take_front(r, back, s, sent[s->group], bound))
            return false;
    }
    return true;
}

/*
 * The states of a level with the same front atom and group. *layer_ranges: the ranges that end at the atom are listed
 * already.
 */
static bool grow_bucket(struct run *r, uint32_t atom, uint32_t group, bool *layer_ranges)
{
    struct maq_counted_bound *c = r->c;
    const struct state *s = c->bucket[(size_t)atom * c->groups.n + group];
    bool predecessors = false;
    for (; s && s->level >= r->behind; s = s->sibling) {
        if (s->level > r->behind) /* of the next level */
            continue;
        if (!*layer_ranges)
            maq_predecessors_list_ranges(&c->predecessors, r->box, r->behind, atom, false);
        if (!predecessors)
            maq_predecessors_list(&c->predecessors, r->box, rest_of(r), r->behind, atom, group);
        *layer_ranges = predecessors = true;
        if (!grow(r, s))
            return false;
    }
    return true;
}

static bool grow_level(struct run *r, const struct state *root)
{
    struct maq_counted_bound *c = r->c;
    uint32_t atoms = c->layer_ranges->table->n_atoms;
    r->sends = maq_end_sends_s(c->layer_ranges->table, maq_backward_weight(c->layer_ranges->table, r->behind, false),
                               r->behind == 0);
    if (r->behind == 0) {
        maq_predecessors_list_ranges(&c->predecessors, r->box, 0, atoms, c->waits);
        maq_predecessors_list(&c->predecessors, r->box, rest_of(r), 0, atoms, 0);
        return grow(r, root);
    }
    for (uint32_t atom = atoms; atom-- > 1;) {
        bool layer_ranges = false;
        for (uint32_t g = 0; g < c->groups.n; g++)
            if (!grow_bucket(r, atom, g, &layer_ranges))
                return false;
    }
    return true;
}

static double sent_by(const struct maq_counted_bound *c, const struct state *back, const struct state *front)
{
    double weight = maq_backward_weight(c->layer_ranges->table, back->level - 1u, false);
    return weight *
           c->groups.backward[((size_t)back->group * c->groups.n + front->group) * c->layer_ranges->table->n_atoms +
                              back->atom];
}

/* Reads the best path back, with its bottleneck and synchronization. */
static void read_back(struct maq_composition *path, struct maq_bottleneck_box *box, const struct run *r)
{
    const struct maq_counted_bound *c = r->c;
    const struct maq_stage_table *t = c->layer_ranges->table;
    const struct state *s = &r->last;
    double sent = 0;
    box->bottleneck_at = box->sync_at = 0;
    for (const struct state *behind = s->from; behind; behind = s->from) { /* the first state has no stages */
        path->stages[path->n_stages++] = (struct maq_stage){
            .first = s->atom, .end = behind->atom, .n_parts = 1, .parts = {{s->option, maq_replicas(t, s->option)}}};
        double compute = maq_layer_range_compute(t, s->option, s->atom, behind->atom);
        box->bottleneck_at = fmax(box->bottleneck_at, fmax(compute, s->front + sent));
        box->sync_at =
            fmax(box->sync_at, c->layer_ranges->sync_s[maq_layer_range_index(t, s->option, s->atom, behind->atom)]);
        if (behind->atom < t->n_atoms)
            sent = maq_end_sends_s(t, sent_by(c, behind, s), s->atom == 0 && behind->level == 1);
        s = behind;
    }
}

/* Fills the cost-to-go table; *least is its bound of the whole pipeline. */
static bool fill_left(double *least, struct maq_counted_bound *c, const struct maq_bottleneck_box *box)
{
    static const double nothing[MAQ_STAGE_OPTIONS];
    bool coarse = c->units.coarse > 1;
    if (!c->left && !maq_cost_to_go_new(&c->left, c->layer_ranges, &c->units, c->arena))
        return false;
    maq_cost_to_go_fill(c->left, box, coarse ? c->predecessors.priced : nothing);
    c->filled = true;
    *least =
        maq_cost_to_go_of(c->left, 0, c->layer_ranges->table->n_atoms, c->units.codes - 1) - (coarse ? c->paid : 0);
    return true;
}

bool maq_counted_bound_solve(double *least, struct maq_bottleneck_box *box, struct maq_composition *path,
                             struct maq_counted_bound *c, const double *rest, double wanted,
                             const struct maq_count_options *options)
{
    const struct maq_stage_table *t = c->layer_ranges->table;
    struct run r = {.c = c, .box = box, .rest = rest, .limit = wanted};
    bool fits = true;
    path->n_stages = 0;
    c->paid = 0;
    for (uint32_t g = 0; g < t->n_kinds; g++)
        c->paid += box->price[0][g] * t->available[g];
    for (uint32_t o = 0; o < t->n_options; o++)
        c->predecessors.priced[o] = box->price[0][t->options[o].kind] * c->layer_ranges->devices[o];
    memset(c->bucket, 0, (size_t)t->n_atoms * c->groups.n * sizeof *c->bucket);
    c->n = 0;
    c->work = 0;
    c->most = options->beam > 0 ? UINT64_MAX : options->work;
    c->beam = options->beam;
    c->filled = false;
    double known = 0;
    if (options->left && !fill_left(&known, c, box))
        return false;
    if (known >= wanted) {
        *least = wanted;
        return true;
    }
    struct state *root = new_state(c);
    if (!root)
        return false;
    *root = (struct state){.atom = (uint16_t)t->n_atoms};
    for (uint32_t before = 0; fits && before < c->n && r.behind < c->layer_ranges->depth; r.behind++) {
        before = c->n;
        fits = grow_level(&r, root);
    }
    if (fits && r.limit < wanted)
        read_back(path, box, &r);
    *least = fits ? r.limit : fmax(known, 0);
    return !c->no_memory;
}
