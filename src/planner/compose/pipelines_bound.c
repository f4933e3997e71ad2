/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelines_bound.c - lower bound of plans of several pipelines, by column generation over single pipelines.
 *
 * A plan is a set of chains over one micro batch (pipelines.h). Chain c takes u_cg devices of kind g, synchronizes for s_c seconds
 * at least, and does m_c >= 1 micro batches (one that does none can be left out). With M micro batches in the step, n_g devices and
 * N chains, N0 <= N <= N1, a step T less its update is
 *
 *   T >= (m_c - 1) t_c + f_c + s_c  for all c,      sum_c m_c >= M,      sum_c u_cg <= n_g
 *
 * Proof. Let y_g >= 0 be the dual price of a device of kind g, in micro batches, and z, of either sign, that of a chain by itself,
 * such that sum_g y_g n_g + max(z N0, z N1) = M. The worths w_c = y . u_c + z of all chains add up to M at most, and the chains do
 * M at least, so there is one that does no less than it is worth, m_c >= w_c. That one says
 *
 *   T >= f_c + (max(w_c, 1) - 1) t_c + s_c  >=  the least that any column says  = V(y, z)
 *
 * So every (y, z) gives a bound, however unevenly the batch is shared out, however many chains there are of a kind, wherever they
 * are cut; the best of them is that of column generation (Dantzig-Wolfe), whose coupling rows are the devices of each kind and the
 * number of chains. What it leaves open is that m_c and the number of chains of a kind are whole numbers. V is a minimum of
 * functions that are linear in (y, z) where w_c >= 1; it is raised by steps along the slope of the column that attains it. Steps go
 * through the shares v_g = y_g n_g / M >= 0; z is what they leave of the batch.
 *
 * Pricing. A box is a range [t0, t1] of the bottleneck times [s0, s1] of the synchronization. A column in it bounds T by f_c + (w_c
 * - 1) t0 + s0 at least (less than f_c + s0 where w_c < 1), so that no column of the box bounds it by less than
 *
 *   min over cuts with t_i <= t1 and s_i <= s1 of  sum_i (t_i + t0 y . devices_i)  +  (z - 1) t0 + s0
 *
 * which is the priced program of priced_bound.c. The box with the least value is halved until the path of its program attains that
 * value.
 *
 * Synchronization. A stage's gradients go in pieces, between cuts that may be those of other chains, over its own r
 * replicas and one of each of the other chains at least. Neither a rank nor a member nor bytes make a piece cheaper
 * (stage_table.h), so a stage needs no less than the cheapest way to cut its layer range into pieces, each over N0 - 1 +
 * r ranks of its own option alone; s_c is the most of its stages.
 *
 * Ranges [N0, N1] are cut in two, the one with the least bound first. Where devices come in few units, the bound is then raised by
 * counting devices, chains, micro batches, and the one synchronization that ends the step (pipelines_count.h). The relaxations that
 * remain are the synchronization of pieces, and hops, which are those to the nearest neighbour.
 */
#include "planner/compose/pipelines_bound.h"

#include <string.h>

#include "base/check.h"
#include "planner/compose/pipelines_count.h"
#include "planner/compose/priced_bound.h"

#define STEPS 60       /* subgradient steps that raise V */
#define STUCK 12u      /* of them without much of a gain */
#define ROUNDING 1e-12 /* relative, of sums in another order */
#define EDGE 1e-9      /* of shares: as good as 1 */
#define CELLS 200u     /* of bottleneck and synchronization */
#define CLOSE 2e-4     /* a box is done when its path is that close to its bound, relative to the cutoff */
#define FEW_RANGES 6u  /* ranges that columns examine before devices are counted */
#define WIDE 1.4       /* a range to begin with, where devices are counted */
#define FINE 5e-4      /* relative precision of a bound that is found by counting */
#define ROUNDS 8u      /* of bisecting it */

struct range { /* of the number of chains */
    uint32_t least_n, most_n;
    double share[MAQ_STAGE_KINDS]; /* share of the batch that all devices of a kind are worth */
    double bound_s;
};

struct bounding {
    const struct maq_stage_table *table;
    const struct maq_chain_bound_options *options;
    struct maq_layer_ranges layer_ranges; /* with the synchronization of pieces, for `ranks` chains */
    struct maq_priced_bound *priced;
    struct maq_chain_count *count; /* NULL: too many devices */
    double least_bottleneck, update_s, batches;
    uint32_t ranks;
    uint64_t programs;
};

/* ---- synchronization ---- */

/* For one option, the cheapest cut of each layer range into pieces. Ranges that fit nowhere are in no column. */
static void cut_pieces(struct bounding *b, uint32_t option)
{
    const struct maq_stage_table *t = b->table;
    const double *bytes = t->options[option].sync_bytes;
    struct maq_stage_part part = {option, maq_replicas(t, option) + b->ranks - 1};
    for (uint32_t first = t->n_atoms; first-- > 0;)
        for (uint32_t end = first + 1; end <= t->n_atoms; end++) {
            size_t layer_range = maq_layer_range_index(t, option, first, end);
            if (b->layer_ranges.deepest[layer_range] == 0)
                break;
            double least = t->sync_s(t, &part, 1, bytes[end] - bytes[first], part.replicas);
            for (uint32_t cut = first + 1; cut < end; cut++)
                least = fmin(least, b->layer_ranges.sync_s[maq_layer_range_index(t, option, first, cut)] +
                                        b->layer_ranges.sync_s[maq_layer_range_index(t, option, cut, end)]);
            b->layer_ranges.sync_s[layer_range] = least;
        }
}

static void set_ranks(struct bounding *b, uint32_t chains)
{
    if (b->ranks == chains)
        return;
    b->ranks = chains;
    for (uint32_t o = 0; o < b->table->n_options; o++)
        cut_pieces(b, o);
    maq_priced_bound_forget(b->priced); /* the first box of every value is the same */
}

/* ---- pricing ---- */

struct cell { /* of bottleneck and synchronization */
    double least_t, most_t, least_sync, most_sync;
    double least;      /* lower bound of its columns */
    double by_t, by_s; /* by how much its path is above that, for its bottleneck and for its synchronization */
};

struct worth { /* micro batches */
    double device[MAQ_STAGE_KINDS], chain;
};

static double worth_of(const struct maq_priced_path *c, const struct worth *w, uint32_t kinds)
{
    double all = w->chain;
    for (uint32_t g = 0; g < kinds; g++)
        all += w->device[g] * c->used[g];
    return all;
}

struct pricing {
    const struct worth *worth;
    double target, enough; /* a value above `target` or below `enough` need not be exact */
    double seen;           /* the least value of a column so far */
    struct maq_priced_path column;
};

static void price(struct bounding *b, struct pricing *p, struct cell *c)
{
    struct maq_bottleneck_box box = {.bottleneck_hi = c->most_t, .sync_hi = c->most_sync};
    struct maq_priced_path path;
    double off = (p->worth->chain - 1) * c->least_t + c->least_sync;
    for (uint32_t g = 0; g < b->table->n_kinds; g++)
        box.price[0][g] = c->least_t * p->worth->device[g];
    double least = maq_priced_bound_least(b->priced, &path, &box, p->target - off);
    b->programs++;
    c->least = fmax(c->least, fmin(least + off, p->target));
    if (path.n_stages == 0)
        return;
    double more = fmax(worth_of(&path, p->worth, b->table->n_kinds), 1) - 1;
    double said = path.fill_s + more * path.bottleneck_s + path.sync_s;
    c->by_t = more * (path.bottleneck_s - c->least_t);
    c->by_s = path.sync_s - c->least_sync;
    if (said < p->seen) {
        p->seen = said;
        p->column = path;
    }
}

static void halve(struct cell *low, struct cell *high)
{
    *high = *low;
    if (low->by_t > low->by_s)
        low->most_t = high->least_t = sqrt(low->least_t * low->most_t);
    else
        low->most_sync = high->least_sync = 0.5 * (low->least_sync + low->most_sync);
}

/* V from below, or the target if that is less, with a column that nearly attains it, or one whose value is below `enough`. */
static double value(struct bounding *b, struct pricing *p)
{
    struct cell at[CELLS + 1] = {{.least_t = b->least_bottleneck, .most_t = p->target, .most_sync = p->target}};
    uint32_t n = 1, least = 0;
    p->seen = HUGE_VAL;
    p->column.n_stages = 0;
    if (!(b->least_bottleneck < p->target))
        return p->target;
    price(b, p, &at[0]);
    while (n < CELLS && at[least].least < p->target && at[least].least + CLOSE * p->target < p->seen &&
           p->seen > p->enough) {
        halve(&at[least], &at[n]);
        price(b, p, &at[least]);
        price(b, p, &at[n++]);
        for (uint32_t i = least = 0; i < n; i++)
            if (at[i].least < at[least].least)
                least = i;
    }
    return at[least].least;
}

/* ---- raising ---- */

/* What devices and chains are worth at shares of the batch. */
static struct worth worths(const struct bounding *b, const struct range *r, const double *share)
{
    const struct maq_stage_table *t = b->table;
    struct worth w = {.chain = 0};
    double left = 1;
    for (uint32_t g = 0; g < t->n_kinds; g++) {
        w.device[g] = t->available[g] > 0 ? share[g] * b->batches / t->available[g] : 0;
        left -= share[g];
    }
    w.chain = left * b->batches / (left > 0 ? r->most_n : r->least_n);
    return w;
}

/*
 * One step along the slope of a column; its length would reach the target if V were linear. What the devices are not worth the
 * chains are, 1 / N1 of it each, or 1 / N0 when it is negative: where that changes, all between is a slope, and the least is taken.
 */
static void step(const struct bounding *b, const struct range *r, double *share, const struct maq_priced_path *c,
                 double length)
{
    const struct maq_stage_table *t = b->table;
    double used[MAQ_STAGE_KINDS], slope[MAQ_STAGE_KINDS], norm = 0, mean = 0, sum = 0, next = 0;
    for (uint32_t g = 0; g < t->n_kinds; g++) {
        used[g] = t->available[g] > 0 ? c->used[g] / t->available[g] : 0;
        mean += used[g] / t->n_kinds;
        sum += share[g];
    }
    double low = 1.0 / r->most_n, high = 1.0 / r->least_n;
    double chain = sum < 1 - EDGE ? low : sum > 1 + EDGE ? high : fmin(fmax(mean, low), high);
    for (uint32_t g = 0; g < t->n_kinds; g++) {
        slope[g] = b->batches * c->bottleneck_s * (used[g] - chain);
        norm += slope[g] > 0 || share[g] > 0 ? slope[g] * slope[g] : 0;
    }
    for (uint32_t g = 0; g < t->n_kinds && norm > 0; g++) {
        share[g] = fmax(0, share[g] + length * slope[g] / norm);
        next += share[g];
    }
    if ((sum < 1 - EDGE && next > 1) || (sum > 1 + EDGE && next < 1)) /* stop where it changes */
        for (uint32_t g = 0; g < t->n_kinds && next > 0; g++)
            share[g] /= next;
}

/* Raises the bound of a range from its shares, until the range is refuted or steps gain little. */
static void raise_bound(struct bounding *b, struct range *r)
{
    double share[MAQ_STAGE_KINDS], highest = 0, damp = 1, cutoff = b->options->cutoff_s;
    uint32_t stuck = 0;
    memcpy(share, r->share, sizeof share);
    set_ranks(b, r->least_n);
    for (uint32_t turn = 0; turn < STEPS && stuck < STUCK; turn++) {
        const struct worth w = worths(b, r, share);
        struct pricing p = {.worth = &w, .target = cutoff - b->update_s, .enough = highest};
        double v = value(b, &p);
        if (v > highest) {
            stuck = v > highest + CLOSE * cutoff ? 0 : stuck + 1;
            highest = v;
            damp = fmin(1, 1.5 * damp);
            memcpy(r->share, share, sizeof share);
        } else {
            stuck++;
            damp *= 0.7;
        }
        if (v >= p.target || p.column.n_stages == 0)
            break;
        step(b, r, share, &p.column, damp * (p.target - v));
    }
    r->bound_s = fmax(r->bound_s, highest + b->update_s);
}

/* ---- ranges ---- */

static bool start(struct bounding *b, const struct maq_stage_table *table,
                  const struct maq_chain_bound_options *options, struct maq_arena *arena)
{
    *b = (struct bounding){.table = table,
                           .options = options,
                           .least_bottleneck = maq_wave_bound(table),
                           .batches = ceil((double)options->global_batch / table->wave_samples)};
    if (!maq_layer_ranges_init(&b->layer_ranges, table, arena) ||
        !maq_priced_bound_new(&b->priced, &b->layer_ranges, arena) ||
        (options->counts && !maq_chain_count_new(&b->count, &b->layer_ranges, arena)))
        return false;
    double first = HUGE_VAL; /* some stage begins the pipeline */
    for (uint32_t o = 0; o < table->n_options; o++)
        first = fmin(first, table->options[o].update_s[0]);
    b->update_s = fmax(b->layer_ranges.update_s, first);
    return true;
}

/* Every chain does at least one micro batch on at least one device; a chain that does none can be left out. */
static uint32_t most_chains(const struct bounding *b)
{
    double most = 0;
    for (uint32_t g = 0; g < b->table->n_kinds; g++)
        most += b->table->available[g];
    return (uint32_t)fmax(1, fmin(most, b->batches));
}

static void split(struct bounding *b, struct range *low, struct range *high)
{
    *high = *low;
    low->most_n = (uint32_t)sqrt((double)high->least_n * high->most_n);
    high->least_n = low->most_n + 1;
    raise_bound(b, low);
    raise_bound(b, high);
}

/* By columns: cuts the range with the least bound, again and again. Returns the number of ranges. */
static uint32_t by_columns(struct bounding *b, struct range *at)
{
    uint32_t n = 1, least = 0;
    uint32_t most = b->count && b->options->ranges > FEW_RANGES ? FEW_RANGES : b->options->ranges;
    while (n < most && at[least].bound_s < b->options->cutoff_s && at[least].least_n < at[least].most_n) {
        split(b, &at[least], &at[n++]);
        for (uint32_t i = least = 0; i < n; i++)
            if (at[i].bound_s < at[least].bound_s)
                least = i;
    }
    return n;
}

/* The least bound of the ranges that hold a number of chains between these. */
static double least_bound(const struct range *at, uint32_t n, uint32_t least_n, uint32_t most_n)
{
    double least = HUGE_VAL;
    for (uint32_t i = 0; i < n; i++)
        if (at[i].least_n <= most_n && at[i].most_n >= least_n)
            least = fmin(least, at[i].bound_s);
    return least;
}

/* ---- counting ---- */

static bool refuted(struct bounding *b, const struct range *r, double bound_s, uint64_t most)
{
    const struct maq_chain_count_query query = {.most_chains = r->most_n,
                                                .batches = (uint32_t)b->batches,
                                                .least_t = b->least_bottleneck,
                                                .programs = most > b->programs ? most - b->programs : 0};
    set_ranks(b, r->least_n);
    return maq_chain_count_refutes(b->count, &query, bound_s - b->update_s, &b->programs);
}

/* The bound of a range that is not refuted at `high`: steps down that double, then halves of the last. */
static double bound_below(struct bounding *b, const struct range *r, double known, double high, uint64_t most)
{
    double step = FINE * high, low = high - step;
    while (low > known && !refuted(b, r, low, most)) {
        high = low;
        step *= 2;
        low = high - step;
    }
    low = fmax(low, known);
    for (uint32_t round = 0; round < ROUNDS && high - low > FINE * high; round++) {
        double middle = 0.5 * (low + high);
        if (refuted(b, r, middle, most))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* By counting, from the bounds of columns: each range in turn is refuted at the least bound of those before it, or lowers it. */
static double by_counting(struct bounding *b, const struct range *at, uint32_t n, uint32_t most_n)
{
    double least = b->options->enough_s;
    uint64_t most = b->programs + maq_chain_count_affordable(b->count);
    struct range r = {.most_n = 0};
    while (r.most_n < most_n) {
        r.least_n = r.most_n + 1;
        r.most_n = (uint32_t)fmin(floor(r.least_n * WIDE), most_n);
        double known = least_bound(at, n, r.least_n, r.most_n);
        if (known < least && !refuted(b, &r, least, most))
            least = bound_below(b, &r, known, least, most);
    }
    return least;
}

bool maq_chain_bound(double *bound_s, uint64_t *programs, const struct maq_stage_table *table,
                     const struct maq_chain_bound_options *options, struct maq_arena *arena)
{
    struct bounding b;
    struct range *at = MAQ_ARENA_NEW(arena, struct range, options->ranges);
    *bound_s = options->cutoff_s;
    if (!at)
        return false;
    if (table->n_options == 0)
        return true;
    if (!start(&b, table, options, arena))
        return false;
    uint32_t most_n = most_chains(&b);
    at[0] = (struct range){.least_n = 1, .most_n = most_n};
    for (uint32_t g = 0; g < table->n_kinds; g++)
        at[0].share[g] = 1.0 / table->n_kinds;
    raise_bound(&b, &at[0]);
    uint32_t n = by_columns(&b, at);
    double bound = least_bound(at, n, 1, most_n);
    if (b.count && bound < options->enough_s)
        bound = by_counting(&b, at, n, most_n);
    *bound_s = fmin(bound * (1 - ROUNDING), options->cutoff_s);
    *programs += b.programs;
    return true;
}
