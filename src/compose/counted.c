/*
 * counted.c - relaxed programs that count devices.
 *
 * Prices (priced.c) take devices by the fraction: two stages that need 3 of 4 devices each are half a stage
 * too many at a fair price. Where there are few units of devices the program can count them instead. A state is a
 * back part of a pipeline: so many stages, which cover the atoms from `atom` on and use so many units of each kind; a
 * unit is what divides the devices of all options of the kind. It knows the group of its front stage's option
 * (options with the same hops are a group), so that hops are those between the neighbours that there are. Its cost is
 * the sum of t_i over the stages, without what the front stage sends backward; each is within the box and its
 * position's memory. States grow to the front, level by level, and are dropped
 *
 *   - when what they cost and what prices say of the rest (`rest` of priced.c, for the devices that are left) reach the value that
 *     refutes the box, or that of a finished state;
 *   - when another with the same front atom and group, no more stages and no more devices of any kind costs no more, and its front stage can
 *     take whatever hop backward the other's can.
 *
 * Where a step may wait (stage_table.h) a state knows what it waits for so far, at the box's least bottleneck: it is part of what a
 * finished state is worth and of every bound, and a state is compared with those of as many stages that wait for no more.
 *
 * What is left of the relaxation: the bottleneck, the synchronization and the update inside the box's limits.
 */
#include "compose/counted.h"

#include <math.h>
#include <string.h>

#include "compose/left.h"
#include "compose/units.h"

#define STATES (1u << 18) /* of one program */
#define CHUNK 1024u
#define GROUPS 24u
#define ROUNDING 1e-9 /* relative: sums in another order must not drop a state */

struct state { /* in front what comparing states reads */
    double cost;
    double over; /* by which the front stage would exceed the bottleneck with its slowest hop backward; 0: by nothing */
    uint64_t used;    /* packed units */
    uint32_t sibling; /* next of its atom and group, + 1 */
    uint16_t level;
    uint8_t group, last;  /* last: the group of the last stage, where a step may wait */
    double bound;         /* with what prices say of the rest */
    struct maq_tail tail; /* of a step that waits */
    double priced;        /* cost with what the devices cost */
    double front;         /* t of the front stage, without what it sends backward */
    uint32_t code;        /* used, as a number */
    uint32_t from;
    uint16_t atom, option;
};

/* A stage that may be put in front of a state: the cheapest option of its group, kind and number of devices. */
struct step {
    double cost, priced, front;
    double least; /* of what it sends backward */
    uint64_t used;
    uint32_t code;
    uint16_t first, option;
    uint8_t group;
};

/* What a step and the rest in front of it come to, summed in another order than a bound is. */
struct reach {
    double least;
    uint32_t group;
};

struct maq_counted {
    const struct maq_arcs *arcs;
    struct maq_units units;
    struct maq_left *left;            /* NULL: not needed yet, or too large */
    bool filled;                      /* for the box */
    bool waits;                       /* a step may wait (stage_table.h) */
    uint16_t like[MAQ_STAGE_OPTIONS]; /* the first option of the same group, kind and number of devices */
    uint32_t n_first;
    uint16_t first[MAQ_STAGE_OPTIONS], all[MAQ_STAGE_OPTIONS]; /* those that are one; every option */
    uint32_t n_groups;
    uint8_t group[MAQ_STAGE_OPTIONS];
    bool leads[MAQ_STAGE_OPTIONS]; /* whose hops are to be looked at: one of each group where all of it hop alike */
    double *forward;               /* [option * groups + group][atoms]: to the best of a group */
    double *backward;       /* [group * groups + group][atoms]: from the best of a group to the best of another */
    double *backward_most;  /* [group][atoms] */
    double *backward_least; /* [group][atoms] */
    /* [group][groups + 1] from the last stage's to the first one's and back; behind those: the least. NULL: no rounds */
    double *back;
    uint32_t *bucket; /* [atoms * groups]: states + 1 */
    struct state **chunks;
    struct maq_arena *arena;
    uint32_t n;
    uint64_t work, most; /* stages tried and states compared */
    uint32_t beam;       /* states of a level, atom and group; 0: all */
    bool no_memory;
    struct step *steps; /* [atoms * options] */
    uint32_t n_steps;
    struct reach *reach; /* [atoms * options]: of each step */
    double priced[MAQ_STAGE_OPTIONS], paid;
};

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

static void group_options(struct maq_counted *c)
{
    const struct maq_stage_table *t = c->arcs->table;
    c->n_groups = 0;
    for (uint32_t o = 0; o < t->n_options; o++) {
        uint32_t like = 0;
        while (like < o && !(t->options[like].kind == t->options[o].kind && same_hops(t, like, o)))
            like++;
        if (like == o && c->n_groups == GROUPS)
            break;
        c->leads[o] = like == o;
        c->group[o] = like < o ? c->group[like] : (uint8_t)c->n_groups++;
        if (o + 1 == t->n_options)
            return;
    }
    c->n_groups = t->n_kinds; /* too many: those of a kind are taken for the best of them */
    for (uint32_t o = 0; o < t->n_options; o++) {
        c->group[o] = (uint8_t)t->options[o].kind;
        c->leads[o] = true;
    }
}

static bool fill_hops(struct maq_counted *c, struct maq_arena *arena)
{
    const struct maq_stage_table *t = c->arcs->table;
    uint32_t n = t->n_atoms, groups = c->n_groups;
    c->forward = MAQ_ARENA_RAW(arena, double, (size_t)t->n_options *groups *n);
    c->backward = MAQ_ARENA_RAW(arena, double, (size_t)groups *groups *n);
    c->backward_most = MAQ_ARENA_RAW(arena, double, (size_t)groups *n);
    c->backward_least = MAQ_ARENA_RAW(arena, double, (size_t)groups *n);
    if (!c->forward || !c->backward || !c->backward_most || !c->backward_least)
        return false;
    for (size_t i = 0; i < (size_t)t->n_options * groups * n; i++)
        c->forward[i] = HUGE_VAL;
    for (size_t i = 0; i < (size_t)groups * groups * n; i++)
        c->backward[i] = HUGE_VAL;
    for (uint32_t from = 0; from < t->n_options; from++)
        for (uint32_t to = 0; to < t->n_options; to++) {
            size_t pair = ((size_t)from * t->n_options + to) * n;
            if (c->leads[to])
                maq_lower(&c->forward[((size_t)from * groups + c->group[to]) * n], &t->forward_s[pair], n);
            if (c->leads[to] && c->leads[from])
                maq_lower(&c->backward[((size_t)c->group[from] * groups + c->group[to]) * n], &t->backward_s[pair], n);
        }
    for (uint32_t g = 0; g < groups; g++)
        for (uint32_t a = 0; a < n; a++) {
            double most = 0, least = HUGE_VAL;
            for (uint32_t to = 0; to < groups; to++) {
                most = fmax(most, c->backward[((size_t)g * groups + to) * n + a]);
                least = fmin(least, c->backward[((size_t)g * groups + to) * n + a]);
            }
            c->backward_most[(size_t)g * n + a] = most;
            c->backward_least[(size_t)g * n + a] = least;
        }
    return true;
}

/* Waves that come back, by groups. */
static bool fill_back(struct maq_counted *c, struct maq_arena *arena)
{
    const struct maq_stage_table *t = c->arcs->table;
    size_t row = c->n_groups + 1;
    if (t->rounds == 0)
        return true;
    if (!(c->back = MAQ_ARENA_RAW(arena, double, c->n_groups *row)))
        return false;
    for (size_t i = 0; i < c->n_groups * row; i++)
        c->back[i] = HUGE_VAL;
    for (uint32_t last = 0; last < t->n_options; last++)
        for (uint32_t first = 0; first < t->n_options; first++) {
            double s = maq_back_s(t, last, first), *at = &c->back[c->group[last] * row];
            at[c->group[first]] = fmin(at[c->group[first]], s);
            at[c->n_groups] = fmin(at[c->n_groups], s);
        }
    return true;
}

bool maq_counted_new(struct maq_counted **out, const struct maq_arcs *arcs, struct maq_arena *arena)
{
    const struct maq_stage_table *t = arcs->table;
    struct maq_counted *c = MAQ_ARENA_NEW(arena, struct maq_counted, 1);
    *out = NULL;
    if (!c)
        return false;
    c->arcs = arcs;
    c->waits = maq_may_wait(t);
    c->arena = arena;
    if (!maq_units_init(&c->units, arcs))
        return true;
    group_options(c);
    for (uint32_t o = 0; o < t->n_options; o++)
        while (c->units.used[c->like[o]] != c->units.used[o] || c->group[c->like[o]] != c->group[o])
            c->like[o]++;
    for (uint32_t o = 0; o < t->n_options; o++) {
        c->all[o] = (uint16_t)o;
        if (c->like[o] == o)
            c->first[c->n_first++] = (uint16_t)o;
    }
    c->bucket = MAQ_ARENA_NEW(arena, uint32_t, (size_t)t->n_atoms * c->n_groups);
    c->chunks = MAQ_ARENA_NEW(arena, struct state *, STATES / CHUNK);
    c->steps = MAQ_ARENA_RAW(arena, struct step, (size_t)t->n_atoms * t->n_options);
    c->reach = MAQ_ARENA_RAW(arena, struct reach, (size_t)t->n_atoms * t->n_options);
    if (!c->bucket || !c->chunks || !c->steps || !c->reach || !fill_hops(c, arena) || !fill_back(c, arena))
        return false;
    *out = c;
    return true;
}

/* Options that may run a stage that ends at an atom: fewer of them the longer it gets. */
struct able {
    uint32_t n;
    uint16_t option[MAQ_STAGE_OPTIONS];
    double hop[MAQ_STAGE_OPTIONS],
        until[MAQ_STAGE_OPTIONS]; /* of each option: what it sends forward; its sum up to the end */
};

static void all_able(struct able *able, const struct maq_counted *c, uint32_t end, uint32_t to)
{
    const struct maq_stage_table *t = c->arcs->table;
    able->n = t->n_options;
    for (uint32_t o = 0; o < t->n_options; o++) {
        able->option[o] = (uint16_t)o;
        able->hop[o] = c->forward[((size_t)o * c->n_groups + to) * t->n_atoms + end - 1];
        able->until[o] = t->options[o].time_s[end];
    }
}

/* The cheapest options of a stretch, by the first that is like them; those that are too slow or do not fit leave `able`. */
struct cheapest {
    double cost[MAQ_STAGE_OPTIONS], front[MAQ_STAGE_OPTIONS];
    uint16_t option[MAQ_STAGE_OPTIONS];
};

static void find_cheapest(struct cheapest *out, struct able *able, const struct maq_counted *c,
                          const struct maq_box *box, uint32_t behind, uint32_t first, uint32_t end, bool each)
{
    const struct maq_arcs *a = c->arcs;
    const struct maq_stage_table *t = a->table;
    double forward = maq_forward_weight(t, behind, first == 0), backward = maq_backward_weight(t, behind, first == 0);
    double hop_pace = maq_hop_pace(t);
    const size_t arc = maq_arc(t, 0, first, end);
    uint32_t kept = 0;
    for (uint32_t o = 0; o < t->n_options; o++)
        out->cost[o] = HUGE_VAL;
    for (uint32_t i = 0; i < able->n; i++) {
        const uint32_t o = able->option[i];
        double s = able->until[o] - t->options[o].time_s[first] + t->options[o].each_s;
        if (s > box->bottleneck_hi || a->deepest[arc + o] <= behind)
            continue;
        able->option[kept++] = (uint16_t)o;
        if (a->sync_s[arc + o] > box->sync_hi)
            continue;
        double pace = s;
        const uint32_t like = each ? o : c->like[o];
        if (forward > 0) {
            s += forward * able->hop[o];
            pace += hop_pace * forward * able->hop[o];
        }
        if (s >= out->cost[like] ||
            pace + hop_pace * backward * c->backward_least[(size_t)c->group[o] * t->n_atoms + first] >
                box->bottleneck_hi)
            continue;
        out->cost[like] = s;
        out->front[like] = pace;
        out->option[like] = (uint16_t)o;
    }
    able->n = kept;
}

/*
 * The stages that may end at an atom with so many behind them: of each group and number of devices the cheapest that fits. `to`: the group
 * of the stage behind; `rest`: of what is in front of them.
 */
static void list_steps(struct maq_counted *c, const struct maq_box *box, const double *rest, uint32_t behind,
                       uint32_t end, uint32_t to)
{
    const struct maq_stage_table *t = c->arcs->table;
    const bool each = behind == 0 && c->waits; /* nobody is taken for another */
    const uint16_t *kept = each ? c->all : c->first;
    const uint32_t n_kept = each ? t->n_options : c->n_first;
    struct able able;
    struct cheapest by;
    all_able(&able, c, end, to);
    c->n_steps = 0;
    for (uint32_t first = end; first-- > 0 && able.n > 0;) {
        double backward = maq_backward_weight(t, behind, first == 0);
        find_cheapest(&by, &able, c, box, behind, first, end, each);
        for (uint32_t i = 0; i < n_kept; i++) {
            const uint16_t o = kept[i];
            if (!(by.cost[o] < HUGE_VAL))
                continue;
            struct step *s = &c->steps[c->n_steps];
            *s = (struct step){.cost = by.cost[o],
                               .priced = by.cost[o] + c->priced[o],
                               .front = by.front[o],
                               .least = backward * c->backward_least[(size_t)c->group[o] * t->n_atoms + first],
                               .used = c->units.used[o],
                               .code = c->units.code[o],
                               .first = (uint16_t)first,
                               .option = by.option[o],
                               .group = c->group[o]};
            c->reach[c->n_steps++] = (struct reach){s->priced + s->least + rest[first], s->group};
        }
    }
}

static struct state *state_at(const struct maq_counted *c, uint32_t i)
{
    return &c->chunks[i / CHUNK][i % CHUNK];
}

static struct state *new_state(struct maq_counted *c)
{
    if (c->n == STATES || c->work > c->most)
        return NULL;
    struct state **chunk = &c->chunks[c->n / CHUNK];
    if (!*chunk)
        *chunk = MAQ_ARENA_RAW(c->arena, struct state, CHUNK);
    c->no_memory = !*chunk;
    return *chunk ? &(*chunk)[c->n++ % CHUNK] : NULL;
}

static bool dominates(const struct maq_counted *c, const struct state *a, const struct state *b)
{
    if (a->cost > b->cost || a->over > b->over ||
        (((b->used | MAQ_UNITS_TOP) - a->used) & MAQ_UNITS_TOP) != MAQ_UNITS_TOP || (a->level == 1) != (b->level == 1))
        return false;
    return !c->waits || (a->tail.chain_s <= b->tail.chain_s && a->tail.slowest_s <= b->tail.slowest_s &&
                         a->last == b->last && a->level == b->level);
}

/* Takes a state out of its bucket. */
static void drop(struct maq_counted *c, uint32_t *at)
{
    *at = state_at(c, *at - 1)->sibling;
}

/* Puts a state where none is better. false when there is no more room. */
static bool put(struct maq_counted *c, const struct state *s)
{
    uint32_t *head = &c->bucket[(size_t)s->atom * c->n_groups + s->group], *worst = NULL, kept = 0;
    for (uint32_t *at = head; *at > 0; c->work++) {
        struct state *other = state_at(c, *at - 1);
        if (dominates(c, other, s))
            return true;
        if (other->level == s->level && dominates(c, s, other)) {
            drop(c, at);
            continue;
        }
        if (other->level == s->level && (kept++ == 0 || other->bound > state_at(c, *worst - 1)->bound))
            worst = at;
        at = &other->sibling;
    }
    if (c->beam > 0 && kept >= c->beam) {
        if (state_at(c, *worst - 1)->bound <= s->bound)
            return true;
        drop(c, worst);
    }
    struct state *place = new_state(c);
    if (!place)
        return false;
    *place = *s;
    place->sibling = *head;
    *head = c->n;
    return true;
}

struct run {
    struct maq_counted *c;
    const struct maq_box *box;
    const double *rest;
    uint32_t behind;
    double limit; /* states whose bound reaches it are dropped */
    double sends; /* how often a front stage's pace has its hop backward */
    struct state last;
};

/* A state with a stage more, for what a step waits. */
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
           maq_waits(r->c->arcs->table, fill_s + m->back_s, m->tail.slowest_s, r->box->bottleneck_lo, m->alone);
}

/* Where the waves come back to is known at the front. */
static struct more more_of(const struct run *r, const struct state *back, const struct step *s, double sent)
{
    const struct maq_counted *c = r->c;
    const struct maq_stage_table *t = c->arcs->table;
    struct more m = {.last = back->last, .alone = r->behind == 0 && s->first == 0};
    if (!c->waits)
        return m;
    double compute = maq_arc_compute(t, s->option, s->first, back->atom);
    m.last = r->behind == 0 ? c->group[s->option] : back->last;
    m.tail =
        r->behind == 0 ? maq_tail_of(t, s->option, compute) : maq_tail_grow(t, back->tail, r->behind, compute, sent);
    if (c->back)
        m.back_s = c->back[(size_t)m.last * (c->n_groups + 1) + (s->first > 0 ? c->n_groups : c->group[s->option])];
    return m;
}

/* A state with a step in front that may be worth having. false when there is no more room. */
static bool take_step(struct run *r, uint32_t index, const struct state *back, const struct step *s, double sent,
                      double bound)
{
    struct maq_counted *c = r->c;
    const struct maq_stage_table *t = c->arcs->table;
    const struct more more = more_of(r, back, s, sent);
    uint32_t code = back->code + s->code;
    if (c->filled) {
        double own_s = c->units.coarse > 1 ? back->priced + s->priced - c->paid : back->cost + s->cost;
        bound = fmax(bound, own_s + sent + s->least +
                                maq_left_of(c->left, r->behind + 1, s->first, c->units.codes - 1 - code));
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
                        .from = index,
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
    double over =
        new.front + r->sends * c->backward_most[(size_t)s->group * t->n_atoms + s->first] - r->box->bottleneck_hi;
    new.over = over > 0 ? over : 0;
    return put(c, &new);
}

/* Of the stages in front of those that are being put in front. */
static const double *rest_of(const struct run *r)
{
    uint32_t rows = r->c->arcs->rows, row = r->behind + 1 < rows ? r->behind + 1 : rows;
    return r->rest + (size_t)row * (r->c->arcs->table->n_atoms + 1);
}

/* All stages in front of a state. */
static bool grow(struct run *r, uint32_t index)
{
    struct maq_counted *c = r->c;
    const struct maq_stage_table *t = c->arcs->table;
    const struct state back = *state_at(c, index);
    const double *rest = rest_of(r);
    double weight = r->behind > 0 ? maq_backward_weight(t, r->behind - 1, false) : 0, pace = maq_hop_pace(t);
    double sent[GROUPS] = {0},
           most[GROUPS] = {0}; /* most: beyond it a bound reaches the limit, however it is rounded */
    for (uint32_t g = 0; g < c->n_groups; g++) {
        if (r->behind > 0)
            sent[g] = weight * c->backward[((size_t)back.group * c->n_groups + g) * t->n_atoms + back.atom];
        most[g] = r->limit + c->paid - back.priced - sent[g];
        most[g] += ROUNDING * (fabs(r->limit) + c->paid + fabs(back.priced) + sent[g]);
    }
    c->work += c->n_steps;
    for (uint32_t i = 0; i < c->n_steps; i++) {
        const struct step *s = &c->steps[i];
        if (c->reach[i].least > most[c->reach[i].group])
            continue;
        if (((c->units.room - back.used - s->used) & MAQ_UNITS_TOP) != MAQ_UNITS_TOP)
            continue;
        double bound = back.priced + sent[s->group] + s->priced + s->least + rest[s->first] - c->paid;
        if (bound >= r->limit || back.front + pace * sent[s->group] > r->box->bottleneck_hi ||
            back.cost + s->cost + sent[s->group] + s->least >= r->limit)
            continue;
        if (!take_step(r, index, &back, s, sent[s->group], bound))
            return false;
    }
    return true;
}

static bool grow_level(struct run *r, uint32_t from, uint32_t to)
{
    struct maq_counted *c = r->c;
    uint32_t atoms = c->arcs->table->n_atoms;
    r->sends = maq_hop_pace(c->arcs->table) * maq_backward_weight(c->arcs->table, r->behind, false);
    if (r->behind == 0) {
        list_steps(c, r->box, rest_of(r), 0, atoms, 0);
        return grow(r, 0);
    }
    for (uint32_t atom = atoms; atom-- > 1;)
        for (uint32_t g = 0; g < c->n_groups; g++) {
            bool listed = false;
            for (uint32_t i = c->bucket[(size_t)atom * c->n_groups + g]; i > from; i = state_at(c, i - 1)->sibling) {
                if (i > to) /* of the next level */
                    continue;
                if (!listed)
                    list_steps(c, r->box, rest_of(r), r->behind, atom, g);
                listed = true;
                if (!grow(r, i - 1))
                    return false;
            }
        }
    return true;
}

static double sent_by(const struct maq_counted *c, const struct state *back, const struct state *front)
{
    double weight = maq_backward_weight(c->arcs->table, back->level - 1u, false);
    return weight *
           c->backward[((size_t)back->group * c->n_groups + front->group) * c->arcs->table->n_atoms + back->atom];
}

/* The best path, and its largest stage and synchronization. */
static void read_back(struct maq_composition *path, struct maq_box *box, const struct run *r)
{
    const struct maq_counted *c = r->c;
    const struct maq_stage_table *t = c->arcs->table;
    const struct state *s = &r->last;
    double sent = 0;
    box->bottleneck_at = box->sync_at = 0;
    while (s->atom < t->n_atoms) {
        const struct state *behind = state_at(c, s->from);
        path->stages[path->n_stages++] = (struct maq_stage){
            .first = s->atom, .end = behind->atom, .n_parts = 1, .parts = {{s->option, maq_replicas(t, s->option)}}};
        box->bottleneck_at = fmax(box->bottleneck_at, s->front + maq_hop_pace(t) * sent);
        box->sync_at = fmax(box->sync_at, c->arcs->sync_s[maq_arc(t, s->option, s->atom, behind->atom)]);
        if (behind->atom < t->n_atoms)
            sent = sent_by(c, behind, s);
        s = behind;
    }
}

/* The table of what is left: what it says of the whole pipeline. */
static bool fill_left(double *least, struct maq_counted *c, const struct maq_box *box)
{
    static const double nothing[MAQ_STAGE_OPTIONS];
    bool coarse = c->units.coarse > 1;
    if (!c->left && !maq_left_new(&c->left, c->arcs, &c->units, c->arena))
        return false;
    maq_left_fill(c->left, box, coarse ? c->priced : nothing);
    c->filled = true;
    *least = maq_left_of(c->left, 0, c->arcs->table->n_atoms, c->units.codes - 1) - (coarse ? c->paid : 0);
    return true;
}

bool maq_counted_solve(double *least, struct maq_box *box, struct maq_composition *path, struct maq_counted *c,
                       const double *rest, double wanted, const struct maq_count_options *options)
{
    const struct maq_stage_table *t = c->arcs->table;
    struct run r = {.c = c, .box = box, .rest = rest, .limit = wanted};
    bool fits = true;
    path->n_stages = 0;
    c->paid = 0;
    for (uint32_t g = 0; g < t->n_kinds; g++)
        c->paid += box->price[0][g] * t->available[g];
    for (uint32_t o = 0; o < t->n_options; o++)
        c->priced[o] = box->price[0][t->options[o].kind] * c->arcs->devices[o];
    memset(c->bucket, 0, (size_t)t->n_atoms * c->n_groups * sizeof *c->bucket);
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
    for (uint32_t from = 0, to = 1; fits && from < to && r.behind < c->arcs->depth; r.behind++) {
        fits = grow_level(&r, from, to);
        from = to;
        to = c->n;
    }
    if (fits && r.limit < wanted)
        read_back(path, box, &r);
    *least = fits ? r.limit : fmax(known, 0);
    return !c->no_memory;
}
