/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelines_count.c - a bound of several pipelines by counting; pipelines_bound.c has the model.
 *
 * The bound by columns allows fractions of pipelines and of micro batches. Where devices come in few units (struct maq_units) both
 * can be counted. Let a plan synchronize for s at least s0 and at most s1, and let F(u, t1, s1) be the least fill of a chain that
 * uses no more than the units u, with every stage below t1 and synchronizing for no more than s1: the table of cost_to_go.c. A
 * chain with its bottleneck in [t0, t1] has to end by T - s0, so that it does
 *
 *   m(u) <= (T - s0 - max(F(u, t1, s1), t0)) / t0 + 1,   rounded down
 *
 * micro batches; the most over all [t0, t1] is what a chain can do with u. If no N chains that keep to the devices, a
 * knapsack, do the batch, no plan that synchronizes for s0 to s1 takes T or less.
 *
 * Sweep. s1 begins at T, where it limits nothing; s0 is the least value for which [s0, s1] is refuted; then s1 becomes that s0. The
 * sweep ends when s1 reaches 0, which refutes T, or when s1 no longer falls: then chains that synchronize for s1 do the batch in T
 * - s1.
 *
 * Tables. A limit s1 admits every stage that a smaller limit admits: a table that was solved for a larger s1 is below those of all
 * smaller ones. So tables are kept while s1 falls. Those that the knapsack's chains come from are solved again, and where they are
 * new, their range of the bottleneck is halved, until the chains do too little or nothing is left to do.
 */
#include "planner/compose/pipelines_count.h"

#include <string.h>

#include "planner/compose/cost_to_go.h"
#include "planner/compose/device_units.h"

#define CELLS 96u       /* ranges of the bottleneck */
#define FIRST_CELLS 12u /* to begin with */
#define MOST_CHAINS 40u /* counted one by one; more of them are taken for any number */
#define MOST_BATCHES 16384u
#define WORK 2e9      /* of all programs of a bound: atoms^2 times uses of devices in each */
#define CODES 400u    /* uses of devices in a table */
#define NARROW 1.0005 /* a range that is not halved */
#define FEW_TURNS 2u  /* of refining; more of them where s1 stays */
#define MOST_TURNS 12u
#define STRIDE 0.05 /* of a sweep, relative to T: s0 is looked for that far below s1 at a time */
#define EXACT 5e-4  /* how well s0 is found, and the least that s1 falls by */
#define TOP 0x8080808080808080u
#define FIELD 8u

struct range {
    double least_t, most_t, most_sync; /* as its table was solved */
    float *fill;                       /* [codes] */
};

struct choice { /* the most that a chain does with these units */
    uint64_t used;
    uint32_t code;
    uint16_t done, range;
};

struct maq_chain_count {
    const struct maq_layer_ranges *layer_ranges;
    struct maq_units units;
    struct maq_cost_to_go *left;
    double least_t, most_t; /* that `first` covers */
    struct range first[FIRST_CELLS], ranges[CELLS];
    uint32_t n_ranges;
    uint64_t *packed; /* [codes]: the units of each kind */
    uint16_t *done;   /* [codes]: of a chain */
    uint16_t *by;     /* [codes]: the range that says so */
    struct choice *choices;
    uint32_t n_choices;
    uint16_t *most;  /* [(chains + 1) * codes] */
    uint16_t *taken; /* [(chains + 1) * codes]: a choice + 1 */
    uint64_t programs;
};

bool maq_chain_count_new(struct maq_chain_count **out, const struct maq_layer_ranges *layer_ranges,
                         struct maq_arena *arena)
{
    struct maq_chain_count *c = MAQ_ARENA_NEW(arena, struct maq_chain_count, 1);
    *out = NULL;
    if (!c)
        return false;
    c->layer_ranges = layer_ranges;
    if (!maq_units_init(&c->units, layer_ranges) || c->units.codes > CODES || c->units.coarse > 1)
        return true;
    size_t codes = c->units.codes, all = (MOST_CHAINS + 1) * codes;
    float *fill = MAQ_ARENA_NEW(arena, float, (CELLS + FIRST_CELLS) * codes);
    c->packed = MAQ_ARENA_NEW(arena, uint64_t, codes);
    c->done = MAQ_ARENA_NEW(arena, uint16_t, codes);
    c->by = MAQ_ARENA_NEW(arena, uint16_t, codes);
    c->choices = MAQ_ARENA_NEW(arena, struct choice, codes);
    c->most = MAQ_ARENA_NEW(arena, uint16_t, all);
    c->taken = MAQ_ARENA_NEW(arena, uint16_t, all);
    if (!fill || !c->packed || !c->done || !c->by || !c->choices || !c->most || !c->taken ||
        !maq_cost_to_go_new(&c->left, layer_ranges, &c->units, arena))
        return false;
    c->least_t = HUGE_VAL;
    for (uint32_t i = 0; i < CELLS; i++)
        c->ranges[i].fill = fill + i * codes;
    for (uint32_t i = 0; i < FIRST_CELLS; i++)
        c->first[i].fill = fill + (CELLS + i) * codes;
    for (uint32_t u = 0; u < codes; u++)
        for (uint32_t g = 0; g < layer_ranges->table->n_kinds; g++)
            c->packed[u] |= (uint64_t)(u / c->units.stride[g] % c->units.radix[g]) << FIELD * g;
    *out = c;
    return true;
}

uint64_t maq_chain_count_affordable(const struct maq_chain_count *c)
{
    uint32_t n = c->layer_ranges->table->n_atoms;
    return (uint64_t)(WORK / ((double)n * n * c->units.codes));
}

/* ---- single chains ---- */

static void solve(struct maq_chain_count *c, struct range *r, double most_sync)
{
    static const double nothing[MAQ_STAGE_OPTIONS];
    r->most_sync = most_sync;
    const struct maq_bottleneck_box box = {.bottleneck_hi = r->most_t, .sync_hi = most_sync};
    maq_cost_to_go_fill(c->left, &box, nothing);
    for (uint32_t u = 0; u < c->units.codes; u++)
        r->fill[u] = (float)maq_cost_to_go_of(c->left, 0, c->layer_ranges->table->n_atoms, u);
    c->programs++;
}

static void set_done(struct maq_chain_count *c, double time, uint32_t batches)
{
    memset(c->done, 0, c->units.codes * sizeof *c->done);
    for (uint32_t i = 0; i < c->n_ranges; i++) {
        const struct range *r = &c->ranges[i];
        for (uint32_t u = 0; u < c->units.codes; u++) {
            double least = (double)r->fill[u], fill = least > r->least_t ? least : r->least_t;
            if (!(fill <= time * (1 + 1e-9)))
                continue;
            double most = (time - fill) / r->least_t + 1 + 1e-6;
            uint16_t done = (uint16_t)(most < batches ? most : batches);
            if (done > c->done[u]) {
                c->done[u] = done;
                c->by[u] = (uint16_t)i;
            }
        }
    }
}

/* Uses with which a chain does more than with a unit less of any kind. */
static void list_choices(struct maq_chain_count *c)
{
    const struct maq_units *units = &c->units;
    c->n_choices = 0;
    for (uint32_t u = 0; u < units->codes; u++) {
        bool worth = c->done[u] > 0;
        for (uint32_t g = 0; g < c->layer_ranges->table->n_kinds && worth; g++)
            worth = u / units->stride[g] % units->radix[g] == 0 || c->done[u - units->stride[g]] < c->done[u];
        if (worth)
            c->choices[c->n_choices++] = (struct choice){c->packed[u], u, c->done[u], c->by[u]};
    }
}

/* ---- all chains ---- */

/* One chain more: `into` from `from`, which are the same where any number of chains is allowed. */
static void add_chain(struct maq_chain_count *c, uint16_t *into, const uint16_t *from, uint16_t *taken,
                      uint32_t batches)
{
    for (uint32_t u = 0; u < c->units.codes; u++) {
        uint32_t most = from[u], best = 0;
        for (uint32_t i = 0; i < c->n_choices; i++) {
            const struct choice *choice = &c->choices[i];
            if (choice->code > u)
                break;
            if ((((c->packed[u] | TOP) - choice->used) & TOP) != TOP)
                continue;
            uint32_t done = from[u - choice->code] + choice->done;
            if (done > most) {
                most = done;
                best = i + 1;
            }
        }
        into[u] = (uint16_t)(most < batches ? most : batches);
        taken[u] = (uint16_t)best;
    }
}

/* Ranges of the chains that do the batch; none when they cannot. */
static bool refuted(struct maq_chain_count *c, bool used[CELLS], uint32_t chains, uint32_t batches)
{
    uint32_t codes = c->units.codes, last = codes - 1, level = 0;
    bool any = chains > MOST_CHAINS;
    memset(c->most, 0, codes * sizeof *c->most);
    if (any) {
        add_chain(c, c->most, c->most, c->taken, batches);
    } else {
        while (level < chains && c->most[(size_t)level * codes + last] < batches) {
            size_t from = (size_t)level++ * codes, into = (size_t)level * codes;
            add_chain(c, c->most + into, c->most + from, c->taken + into, batches);
        }
    }
    if (c->most[(size_t)level * codes + last] < batches)
        return true;
    memset(used, 0, CELLS * sizeof *used);
    for (uint32_t u = last;;) {
        uint32_t taken = c->taken[(size_t)level * codes + u];
        if (taken > 0) {
            used[c->choices[taken - 1].range] = true;
            u -= c->choices[taken - 1].code;
        }
        if (any ? taken == 0 : level-- <= 1)
            return false;
    }
}

/* Solves the tables of the ranges in use again, or halves them. false when there is nothing left to do. */
static bool refine(struct maq_chain_count *c, const bool used[CELLS], double most_sync)
{
    uint32_t n = c->n_ranges;
    bool any = false;
    for (uint32_t i = 0; i < n; i++) {
        struct range *low = &c->ranges[i], *high = &c->ranges[c->n_ranges];
        if (!used[i])
            continue;
        if (low->most_sync > most_sync) {
            solve(c, low, most_sync);
        } else if (low->most_t > low->least_t * NARROW && c->n_ranges < CELLS) {
            high->most_t = low->most_t;
            high->most_sync = low->most_sync;
            low->most_t = high->least_t = sqrt(low->least_t * low->most_t);
            memcpy(high->fill, low->fill, c->units.codes * sizeof *high->fill);
            c->n_ranges++;
            solve(c, low, most_sync);
        } else {
            continue;
        }
        any = true;
    }
    return any;
}

/* Whether no chains that synchronize for `most_sync` at most do the batch in time, as so many turns of refining show. */
static bool refuted_at(struct maq_chain_count *c, const struct maq_chain_count_query *q, double time, double most_sync,
                       uint32_t turns)
{
    bool used[CELLS];
    do {
        set_done(c, time, q->batches);
        list_choices(c);
        if (refuted(c, used, q->most_chains, q->batches))
            return true;
    } while (turns-- > 0 && c->programs < q->programs && refine(c, used, most_sync));
    return false;
}

/* Ranges whose tables know no synchronization: the same for every query. */
static void first_ranges(struct maq_chain_count *c, double least_t, double most_t)
{
    double grow = pow(most_t / least_t, 1.0 / FIRST_CELLS), t = least_t;
    bool known = c->least_t <= least_t && c->most_t >= most_t;
    if (!known) {
        c->least_t = least_t;
        c->most_t = most_t;
    }
    for (uint32_t i = 0; i < FIRST_CELLS; i++, t *= grow) {
        struct range *r = &c->first[i];
        if (!known) {
            r->least_t = t;
            r->most_t = i + 1 < FIRST_CELLS ? t * grow : most_t;
            solve(c, r, HUGE_VAL);
        }
        float *fill = c->ranges[i].fill;
        memcpy(fill, r->fill, c->units.codes * sizeof *fill);
        c->ranges[i] = *r;
        c->ranges[i].fill = fill;
    }
    c->n_ranges = FIRST_CELLS;
}

/* The least s for which plans of this time that synchronize for s to `most_sync` are refuted. */
static double sweep(struct maq_chain_count *c, const struct maq_chain_count_query *q, double time, double most_sync,
                    uint32_t turns)
{
    double low = 0, high = most_sync;
    while (high - low > EXACT * time) {
        double middle = high - low > 2 * STRIDE * time ? high - STRIDE * time : 0.5 * (low + high);
        if (refuted_at(c, q, time - middle, most_sync, turns))
            high = middle;
        else
            low = middle;
    }
    return low <= 0 && refuted_at(c, q, time, most_sync, turns) ? 0 : high;
}

bool maq_chain_count_refutes(struct maq_chain_count *c, const struct maq_chain_count_query *q, double time,
                             uint64_t *programs)
{
    double most_sync = time;
    uint32_t turns = FEW_TURNS;
    if (!(time > q->least_t))
        return true;
    if (q->batches > MOST_BATCHES)
        return false;
    c->programs = 0;
    first_ranges(c, q->least_t, time);
    while (most_sync > 0) {
        double next = sweep(c, q, time, most_sync, turns);
        bool stays = next > most_sync - EXACT * time && next > 0;
        most_sync = next;
        if (stays && turns == MOST_TURNS)
            break;
        turns = stays ? MOST_TURNS : FEW_TURNS;
    }
    *programs += c->programs;
    return most_sync <= 0;
}
