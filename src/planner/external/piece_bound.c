/* SPDX-License-Identifier: Apache-2.0 */
/*
 * piece_bound.c - cheapest rows of pieces by dynamic programs over (atom, stages behind), for several vectors of
 * prices of each set of islands. Made when a set is first asked for. See piece_bound.h for the bounds.
 */
#include "planner/external/piece_bound.h"

#include <math.h>
#include <string.h>

#define ROUNDS 10u

/* Costs of the cheapest rows under several price vectors, [atoms + 1][positions] each. */
struct family {
    uint32_t n;
    double price[MAQ_PIECE_PRICES][MAQ_PIECE_ISLANDS];
    double *cost[MAQ_PIECE_PRICES];
};

struct maq_piece_relaxed {
    struct family devices, fill, work;
};

/* Prices that a row pays: of a second, of a device, of a device-second. */
struct tariff {
    double second;
    double device[MAQ_PIECE_ISLANDS], device_second[MAQ_PIECE_ISLANDS];
};

/* Scratch arrays of one relaxed row. */
struct row {
    double *cheapest;               /* [kinds][positions] of a slice */
    const struct maq_piece **by;    /* likewise */
    double *cost;                   /* [atoms + 1][positions] */
    const struct maq_piece **piece; /* likewise: the last piece of the cheapest row, NULL where there is none */
    uint32_t *from;
};

static size_t at(const struct maq_piece_bounds *b, uint32_t atom, uint32_t k)
{
    return (size_t)atom * (b->most_behind + 1) + (k < b->most_behind ? k : b->most_behind);
}

bool maq_piece_is_slow(const struct maq_piece_bounds *b, const struct maq_piece *p)
{
    return fmax(fmax(p->first_s, p->last_s), p->slowest_s) > b->slowest_s;
}

/* What a piece costs in a row. Hops to its neighbours at their cheapest. */
static double piece_cost(const struct maq_piece_table *t, const struct maq_piece *p, uint32_t first, uint32_t end,
                         const struct tariff *f)
{
    double before = first > 0 ? t->least_hop[p->first_hop] : 0,
           after = end < t->n_atoms ? t->least_hop[p->last_hop] : 0;
    return f->second * (p->sum_s + before + after) + f->device[p->island] * p->devices +
           f->device_second[p->island] * (p->work_s + before * p->first_devices + after * p->last_devices);
}

/* The cheapest piece of a kind of slices on the islands of a set, for each position. */
static void cheapest_pieces(const struct maq_piece_bounds *b, struct row *r, uint32_t kind, uint32_t set,
                            const struct tariff *tariff)
{
    const struct maq_piece_kind *is = &b->kinds[kind];
    double *cheapest = &r->cheapest[(size_t)kind * (b->most_behind + 1)];
    const struct maq_piece **by = &r->by[(size_t)kind * (b->most_behind + 1)];
    for (uint32_t k = 0; k <= b->most_behind; k++) {
        cheapest[k] = HUGE_VAL;
        by[k] = NULL;
    }
    for (uint32_t i = 0; i < is->n; i++) {
        const struct maq_piece *p = is->pieces[i];
        if (!(set >> p->island & 1))
            continue;
        uint32_t k = p->most_behind < b->most_behind ? p->most_behind : b->most_behind;
        double cost = piece_cost(b->table, p, is->first, is->end, tariff);
        if (cost < cheapest[k]) {
            cheapest[k] = cost;
            by[k] = p;
        }
    }
    for (uint32_t k = b->most_behind; k-- > 0;)
        if (cheapest[k + 1] < cheapest[k]) {
            cheapest[k] = cheapest[k + 1];
            by[k] = by[k + 1];
        }
}

/*
 * Relaxes one row. A piece counts as one stage for those in front of it, also where it has several: that never makes a
 * row dearer.
 */
static void relax(const struct maq_piece_bounds *b, struct row *r, uint32_t set, const struct tariff *tariff)
{
    uint32_t n = b->table->n_atoms;
    for (uint32_t kind = 0; kind < b->n_kinds; kind++)
        cheapest_pieces(b, r, kind, set, tariff);
    for (uint32_t end = 0; end <= n; end++)
        for (uint32_t k = 0; k <= b->most_behind; k++)
            r->cost[at(b, end, k)] = end == 0 ? 0 : HUGE_VAL;
    for (uint32_t end = 1; end <= n; end++)
        for (uint32_t first = 0; first < end; first++) {
            size_t kind = (size_t)b->kind_of[(size_t)first * n + end - 1] * (b->most_behind + 1);
            for (uint32_t k = 0; k <= b->most_behind && r->by[kind + k]; k++) {
                double cost = r->cheapest[kind + k] + r->cost[at(b, first, k + 1)];
                size_t to = at(b, end, k);
                if (cost < r->cost[to]) {
                    r->cost[to] = cost;
                    r->piece[to] = r->by[kind + k];
                    r->from[to] = first;
                }
            }
        }
}

/* What the cheapest row takes of each island, by a tariff. */
static void row_loads(double *load, const struct maq_piece_bounds *b, const struct row *r, const struct tariff *of)
{
    for (uint32_t atom = b->table->n_atoms, k = 0; atom > 0; k++) {
        const struct maq_piece *p = r->piece[at(b, atom, k)];
        uint32_t first = r->from[at(b, atom, k)];
        load[p->island] += piece_cost(b->table, p, first, atom, of);
        atom = first;
    }
}

/* Prices of a device, or of a device-second: those of all devices of the set add up to 1. */
static void scale_prices(double *price, const struct maq_piece_table *t)
{
    double total = 0;
    for (uint32_t i = 0; i < t->n_islands; i++)
        total += price[i] * t->available[i];
    for (uint32_t i = 0; i < t->n_islands && total > 0; i++)
        price[i] /= total;
}

/* Multiplies the prices of islands that a row takes more of than of the others, for their devices. */
static void raise_prices(double *price, const double *load, const struct maq_piece_table *t, uint32_t set, double step)
{
    double mean = 0, devices = 0;
    for (uint32_t i = 0; i < t->n_islands; i++)
        if (set >> i & 1) {
            mean += load[i];
            devices += t->available[i];
        }
    mean /= devices;
    for (uint32_t i = 0; i < t->n_islands; i++)
        price[i] *= set >> i & 1 && mean > 0 ? exp(step * fmax(-2, fmin(2, load[i] / t->available[i] / mean - 1))) : 1;
    scale_prices(price, t);
}

/* Prices at which each atom costs as much on every island that can hold it. */
static void first_prices(double *price, struct maq_piece_bounds *b, struct row *r, uint32_t set,
                         const struct tariff *of)
{
    const struct maq_piece_table *t = b->table;
    for (uint32_t i = 0; i < t->n_islands; i++) {
        double alone = 0;
        uint32_t atoms = 0;
        for (uint32_t a = 0; set >> i & 1 && a < t->n_atoms; a++) {
            uint32_t kind = b->kind_of[(size_t)a * t->n_atoms + a];
            cheapest_pieces(b, r, kind, 1u << i, of);
            double least = r->cheapest[(size_t)kind * (b->most_behind + 1)];
            atoms += isfinite(least);
            alone += isfinite(least) ? least : 0;
        }
        price[i] = set >> i & 1 ? (alone > 0 ? atoms / alone : 1) : 0;
    }
    scale_prices(price, t);
}

static bool init_row(struct row *r, const struct maq_piece_bounds *b)
{
    size_t n = (size_t)(b->table->n_atoms + 1) * (b->most_behind + 1);
    size_t kinds = (size_t)b->n_kinds * (b->most_behind + 1);
    r->cheapest = MAQ_ARENA_NEW(b->arena, double, kinds);
    r->by = MAQ_ARENA_NEW(b->arena, const struct maq_piece *, kinds);
    r->cost = MAQ_ARENA_NEW(b->arena, double, n);
    r->piece = MAQ_ARENA_NEW(b->arena, const struct maq_piece *, n);
    r->from = MAQ_ARENA_NEW(b->arena, uint32_t, n);
    return r->cheapest && r->by && r->cost && r->piece && r->from;
}

/* Copies the costs of a row of pieces, so that later prices do not overwrite them. */
static bool keep(double **out, const struct maq_piece_bounds *b, const struct row *r)
{
    size_t n = (size_t)(b->table->n_atoms + 1) * (b->most_behind + 1);
    *out = MAQ_ARENA_NEW(b->arena, double, n);
    if (*out)
        memcpy(*out, r->cost, n * sizeof(double));
    return *out != NULL;
}

/* Whether the row that was just relaxed is kept in round `round`: the very first one and the last ones, near the best prices. */
static bool add_row(struct family *f, const struct maq_piece_bounds *b, const struct row *r, const double *price,
                    uint32_t round)
{
    if (round > 0 && round + MAQ_PIECE_PRICES - 1 < ROUNDS && isfinite(r->cost[at(b, b->table->n_atoms, 0)]))
        return true;
    memcpy(f->price[f->n], price, sizeof f->price[f->n]);
    return keep(&f->cost[f->n++], b, r);
}

/* Rows that pay for one thing alone: devices, or device-seconds. */
static bool make_ratios(struct family *f, struct maq_piece_bounds *b, struct row *r, uint32_t set, bool seconds)
{
    struct tariff ones = {.second = 0}, tariff = {.second = 0};
    double price[MAQ_PIECE_ISLANDS] = {0};
    for (uint32_t i = 0; i < MAQ_PIECE_ISLANDS; i++)
        *(seconds ? &ones.device_second[i] : &ones.device[i]) = 1;
    first_prices(price, b, r, set, &ones);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        double load[MAQ_PIECE_ISLANDS] = {0};
        memcpy(seconds ? tariff.device_second : tariff.device, price, sizeof price);
        relax(b, r, set, &tariff);
        if (!add_row(f, b, r, price, round))
            return false;
        /* this set cannot hold the model: no row to adjust prices by */
        if (!isfinite(r->cost[at(b, b->table->n_atoms, 0)]))
            break;
        row_loads(load, b, r, &ones);
        raise_prices(price, load, b->table, set, 1.0 / (1 + round));
    }
    return true;
}

/* Rows that pay for time, and for devices at prices that rise where a row takes more than there are. */
static bool make_fill(struct family *f, struct maq_piece_bounds *b, struct row *r, uint32_t set)
{
    struct tariff ones = {.second = 0}, tariff = {.second = 1};
    double unit = 0;
    for (uint32_t i = 0; i < MAQ_PIECE_ISLANDS; i++)
        ones.device[i] = 1;
    for (uint32_t round = 0; round < ROUNDS; round++) {
        double load[MAQ_PIECE_ISLANDS] = {0}, whole;
        relax(b, r, set, &tariff);
        if (!add_row(f, b, r, tariff.device, round))
            return false;
        whole = r->cost[at(b, b->table->n_atoms, 0)];
        if (!isfinite(whole))
            break;
        row_loads(load, b, r, &ones);
        unit = round == 0 ? whole : unit;
        for (uint32_t i = 0; i < b->table->n_islands; i++)
            if (set >> i & 1) {
                double has = b->table->available[i];
                tariff.device[i] = fmax(0, tariff.device[i] + unit / (1 + round) * fmin(2, load[i] / has - 1) / has);
            }
    }
    return true;
}

static const struct maq_piece_relaxed *make_set(struct maq_piece_bounds *b, uint32_t set)
{
    struct maq_piece_relaxed *s = MAQ_ARENA_NEW(b->arena, struct maq_piece_relaxed, 1);
    struct row r;
    if (!s || !init_row(&r, b) || !make_ratios(&s->devices, b, &r, set, false) || !make_fill(&s->fill, b, &r, set) ||
        !make_ratios(&s->work, b, &r, set, true))
        return NULL;
    return s;
}

static double total(const double *price, const uint32_t *left, uint32_t n)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        sum += price[i] * left[i];
    return sum;
}

struct maq_piece_bound maq_piece_bounds_front(struct maq_piece_bounds *b, uint32_t a, uint32_t k, const uint32_t *left)
{
    const struct maq_piece_table *t = b->table;
    struct maq_piece_bound floor = {0, 0};
    uint32_t set = 0;
    if (a == 0)
        return floor;
    for (uint32_t i = 0; i < t->n_islands; i++)
        set |= left[i] > 0 ? 1u << i : 0;
    if (set == 0)
        return (struct maq_piece_bound){HUGE_VAL, HUGE_VAL};
    if (!b->sets[set] && !(b->sets[set] = make_set(b, set))) {
        b->failed = true;
        return floor;
    }
    const struct maq_piece_relaxed *s = b->sets[set];
    size_t place = at(b, a, k);
    for (uint32_t l = 0; l < s->devices.n; l++)
        if (s->devices.cost[l][place] > total(s->devices.price[l], left, t->n_islands) * (1 + 1e-9))
            return (struct maq_piece_bound){HUGE_VAL, HUGE_VAL};
    for (uint32_t l = 0; l < s->fill.n; l++)
        floor.fill_s = fmax(floor.fill_s, s->fill.cost[l][place] - total(s->fill.price[l], left, t->n_islands));
    for (uint32_t l = 0; l < s->work.n; l++)
        floor.bottleneck_s =
            fmax(floor.bottleneck_s, s->work.cost[l][place] / total(s->work.price[l], left, t->n_islands));
    return floor;
}

/* Prefix maxima over atoms of the least synchronization of any piece that holds the atom. */
static void least_syncs(struct maq_piece_bounds *b)
{
    const struct maq_piece_table *t = b->table;
    for (uint32_t a = 0; a < t->n_atoms; a++) {
        double least = HUGE_VAL;
        for (uint32_t first = 0; first <= a; first++)
            for (uint32_t end = a + 1; end <= t->n_atoms; end++) {
                const struct maq_piece_kind *kind = &b->kinds[b->kind_of[(size_t)first * t->n_atoms + end - 1]];
                for (uint32_t i = 0; i < kind->n; i++)
                    least = fmin(least, kind->pieces[i]->sync_s);
            }
        b->sync_s[a + 1] = fmax(b->sync_s[a], least);
    }
}

/* A slice's kind among those of its length, which are from `from` on. */
static bool find_kind(struct maq_piece_bounds *b, uint32_t first, uint32_t end, uint32_t from)
{
    const struct maq_piece_table *t = b->table;
    const struct maq_piece_list *list = maq_piece_list_of(t, first, end);
    uint32_t *out = &b->kind_of[(size_t)first * t->n_atoms + end - 1];
    for (uint32_t k = from; k < b->n_kinds; k++) {
        const struct maq_piece_kind *other = &b->kinds[k];
        if (maq_piece_list_of(t, other->first, other->end)->at == list->at && (first == 0) == (other->first == 0) &&
            (end == t->n_atoms) == (other->end == t->n_atoms)) {
            *out = k;
            return true;
        }
    }
    struct maq_piece_kind *kind = &b->kinds[ *out = b->n_kinds++];
    *kind = (struct maq_piece_kind){first, end, 0, MAQ_ARENA_NEW(b->arena, const struct maq_piece *, list->n)};
    for (uint32_t i = 0; kind->pieces && i < list->n; i++)
        if (!maq_piece_is_slow(b, &list->at[i]))
            kind->pieces[kind->n++] = &list->at[i];
    return kind->pieces != NULL;
}

static bool find_kinds(struct maq_piece_bounds *b)
{
    uint32_t n = b->table->n_atoms;
    b->kind_of = MAQ_ARENA_NEW(b->arena, uint32_t, (size_t)n * n);
    b->kinds = MAQ_ARENA_NEW(b->arena, struct maq_piece_kind, (size_t)n * (n + 1) / 2);
    for (uint32_t length = 1; b->kind_of && b->kinds && length <= n; length++)
        for (uint32_t first = 0, from = b->n_kinds; first + length <= n; first++)
            if (!find_kind(b, first, first + length, from))
                return false;
    return b->kind_of && b->kinds;
}

static uint32_t count_positions(const struct maq_piece_table *t)
{
    uint32_t most = t->waves > 1 ? t->waves - 1 : 0, devices = 0;
    for (uint32_t i = 0; i < t->n_islands; i++)
        devices += t->available[i];
    most = most < devices ? most : devices;
    return most < t->n_atoms ? most : t->n_atoms;
}

bool maq_piece_bounds_init(struct maq_piece_bounds *b, const struct maq_piece_table *table, double slowest_s,
                           struct maq_arena *arena)
{
    *b = (struct maq_piece_bounds){.table = table,
                                   .arena = arena,
                                   .slowest_s = slowest_s,
                                   .most_behind = count_positions(table),
                                   .sets =
                                       MAQ_ARENA_NEW(arena, const struct maq_piece_relaxed *, 1u << table->n_islands),
                                   .sync_s = MAQ_ARENA_NEW(arena, double, (size_t)table->n_atoms + 1)};
    if (!b->sets || !b->sync_s || !find_kinds(b))
        return false;
    least_syncs(b);
    return true;
}
