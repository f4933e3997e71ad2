/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelines.c - chooses several pipelines of different make-up by an unbounded knapsack; pipelines.h has the model.
 *
 * Candidates are the thousands of good chains that the relaxed programs of priced_bound.c find on their way. In a time theta, a
 * chain of bottleneck t and fill f does floor((theta - f) / t) + 1 micro batches; which chains do the most micro batches on the
 * devices available is an unbounded knapsack over the devices of all kinds, solved exactly. theta is bisected. Chains are limited
 * by the synchronization of their largest stage, and several such limits are tried; the synchronization of a plan is worked out for
 * the chains that were chosen.
 */
#include "planner/compose/pipelines.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "planner/compose/enumerate.h"

#define STATES (1u << 20) /* of the knapsack */
#define USES 512u         /* distinct numbers of devices of each kind (uses) in one knapsack */
#define LIMITS 20u        /* of the synchronization, tried */
#define HALVINGS 14u

struct column { /* a chain */
    uint64_t hash;
    double bottleneck, fill, sync;
    uint32_t used[MAQ_STAGE_KINDS];
    uint32_t samples, n_stages;
    uint16_t *first, *option; /* [n_stages] */
};

struct maq_chain_stock {
    const struct maq_stage_table *table;
    struct maq_arena *arena;
    struct column *at;
    uint32_t n, room;
    uint32_t *slots; /* [2 * room]: open addressing by hash; 0 = free */
    bool no_memory;
};

struct knapsack {
    const struct column *choice[USES]; /* the best of each use of devices */
    uint32_t done[USES];               /* samples that it does within theta */
    uint32_t step[USES];               /* states by which it advances */
    uint32_t n;
    uint32_t *most;  /* [states]: samples done with no more than these devices */
    uint16_t *taken; /* [states]: a choice; USES + g: one device of kind g is left over */
    uint32_t states;
    uint32_t stride[MAQ_STAGE_KINDS];
};

/* ---- costs ---- */

static double chain_time(const struct maq_chain *c)
{
    return c->micro_batches > 0 ? (c->micro_batches - 1) * c->bottleneck_s + c->fill_s : 0;
}

/* The stage of a chain that holds an atom. */
static const struct maq_stage *stage_of(const struct maq_chain *c, uint32_t atom)
{
    const struct maq_stage *s = c->stages;
    while (s->end <= atom)
        s++;
    return s;
}

/* Seconds to reduce atoms [first, end), which no chain cuts, over all chains. */
static double piece_sync(const struct maq_chain_set *p, const struct maq_stage_table *t, uint32_t first, uint32_t end)
{
    struct maq_stage_part parts[MAQ_CHAIN_KINDS * MAQ_STAGE_PARTS];
    uint32_t n = 0, ranks = 0;
    double bytes = 0;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        const struct maq_stage *s = stage_of(&p->kinds[k], first);
        for (uint32_t i = 0; i < s->n_parts; i++) {
            const struct maq_stage_option *o = &t->options[s->parts[i].option];
            double b = o->sync_bytes[end] - o->sync_bytes[first];
            bytes = b > bytes ? b : bytes;
            parts[n] = (struct maq_stage_part){s->parts[i].option, s->parts[i].replicas * p->kinds[k].count};
            ranks += parts[n++].replicas;
        }
    }
    return t->sync_s(t, parts, n, bytes, ranks);
}

static bool is_cut(const struct maq_chain_set *p, uint32_t atom)
{
    for (uint32_t k = 0; k < p->n_kinds; k++)
        if (stage_of(&p->kinds[k], atom)->first == atom)
            return true;
    return false;
}

static double stage_sync(const struct maq_chain_set *p, const struct maq_stage_table *t, const struct maq_stage *s)
{
    double seconds = 0;
    for (uint32_t first = s->first, end; first < s->end; first = end) {
        for (end = first + 1; end < s->end && !is_cut(p, end); end++)
            ;
        seconds += piece_sync(p, t, first, end);
    }
    return seconds;
}

/* Micro batches that a chain does in time. */
static uint32_t does(double bottleneck, double fill, double time)
{
    return time >= fill * (1 - 1e-12) ? (uint32_t)((time - fill) / bottleneck + 1e-9) + 1 : 0;
}

/* Shares the batch: the least time in which all chains together do it. */
static bool share(struct maq_chain_set *p, uint32_t wanted)
{
    double low = 0, high = 0;
    for (uint32_t k = 0; k < p->n_kinds; k++)
        high = fmax(high, p->kinds[k].fill_s + wanted * p->kinds[k].bottleneck_s);
    for (uint32_t turn = 0; turn < 60; turn++) {
        double middle = 0.5 * (low + high);
        uint64_t done = 0;
        for (uint32_t k = 0; k < p->n_kinds; k++) {
            const struct maq_chain *c = &p->kinds[k];
            done += (uint64_t)c->count * c->samples * does(c->bottleneck_s, c->fill_s, middle);
        }
        if (done >= wanted)
            high = middle;
        else
            low = middle;
    }
    uint64_t done = 0;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        struct maq_chain *c = &p->kinds[k];
        c->micro_batches = does(c->bottleneck_s, c->fill_s, high);
        done += (uint64_t)c->count * c->samples * c->micro_batches;
    }
    return done >= wanted;
}

/* Times and memory of one chain, without what it synchronizes. */
static bool cost_chain(struct maq_chain *c, const struct maq_stage_table *table)
{
    struct maq_stage_table own = *table;
    struct maq_composition alone = {.n_stages = c->n_stages};
    own.wave_samples = c->samples;
    memcpy(alone.stages, c->stages, c->n_stages * sizeof *c->stages);
    if (c->samples == 0 || !maq_composition_time(&alone, &own))
        return false;
    memcpy(c->stages, alone.stages, c->n_stages * sizeof *c->stages);
    c->bottleneck_s = alone.bottleneck_s;
    c->fill_s = alone.fill_s;
    return true;
}

bool maq_chain_set_cost(struct maq_chain_set *p, const struct maq_stage_table *table, uint32_t global_batch)
{
    uint32_t used[MAQ_STAGE_KINDS] = {0};
    p->run_s = p->sync_s = p->update_s = 0;
    p->n_chains = 0;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        if (!cost_chain(&p->kinds[k], table))
            return false;
        p->n_chains += p->kinds[k].count;
        for (uint32_t i = 0; i < p->kinds[k].n_stages; i++) {
            const struct maq_stage *s = &p->kinds[k].stages[i];
            for (uint32_t j = 0; j < s->n_parts; j++) {
                const struct maq_stage_option *o = &table->options[s->parts[j].option];
                used[o->kind] += o->devices * s->parts[j].replicas * p->kinds[k].count;
                if (used[o->kind] > table->available[o->kind])
                    return false;
            }
        }
    }
    if (p->n_chains == 0 || !share(p, global_batch))
        return false;
    for (uint32_t k = 0; k < p->n_kinds; k++) {
        struct maq_chain *c = &p->kinds[k];
        p->run_s = fmax(p->run_s, chain_time(c));
        for (uint32_t i = 0; i < c->n_stages; i++) {
            c->stages[i].sync_s = stage_sync(p, table, &c->stages[i]);
            p->sync_s = fmax(p->sync_s, c->stages[i].sync_s);
            p->update_s = fmax(p->update_s, c->stages[i].update_s);
        }
    }
    p->step_s = p->run_s + p->sync_s + p->update_s;
    return true;
}

/* ---- candidates ---- */

struct maq_chain_stock *maq_chain_stock_new(const struct maq_stage_table *table, uint32_t room, struct maq_arena *arena)
{
    struct maq_chain_stock *p = MAQ_ARENA_NEW(arena, struct maq_chain_stock, 1);
    if (!p)
        return NULL;
    *p = (struct maq_chain_stock){.table = table,
                                  .arena = arena,
                                  .at = MAQ_ARENA_NEW(arena, struct column, room),
                                  .room = room,
                                  .slots = MAQ_ARENA_NEW(arena, uint32_t, 2 * (size_t)room)};
    return p->at && p->slots ? p : NULL;
}

static uint32_t *find(struct maq_chain_stock *p, uint64_t hash)
{
    uint32_t slot = (uint32_t)(hash % (2 * p->room));
    while (p->slots[slot] > 0 && p->at[p->slots[slot] - 1].hash != hash)
        slot = (slot + 1) % (2 * p->room);
    return &p->slots[slot];
}

/* State of collecting the paths of a table. `to_pool`: the table's options as numbers of the stock. */
struct collector {
    struct maq_chain_stock *pool;
    const struct maq_stage_table *table;
    uint32_t chains, to_pool[MAQ_STAGE_OPTIONS];
    struct maq_composition path;
};

static uint64_t hash_of(const struct collector *col, const struct maq_composition *c)
{
    uint64_t h = 0xcbf29ce484222325u ^ (col->table->wave_samples / col->chains);
    for (uint32_t i = 0; i < c->n_stages; i++) {
        h = (h ^ c->stages[i].first) * 0x100000001b3u;
        h = (h ^ (col->to_pool[c->stages[i].parts[0].option] + 1024u)) * 0x100000001b3u;
    }
    return h | 1;
}

/* A path of the relaxed program; a wave's devices are those of all chains together. */
static void collect(void *user, const struct maq_composition *path)
{
    struct collector *col = user;
    struct maq_chain_stock *p = col->pool;
    uint64_t hash = hash_of(col, path);
    uint32_t *slot = find(p, hash);
    if (*slot > 0 || p->n == p->room)
        return;
    col->path = *path;
    struct maq_composition *c = &col->path;
    if (!maq_composition_time(c, col->table))
        return;
    struct column *column = &p->at[p->n];
    *column = (struct column){.hash = hash,
                              .bottleneck = c->bottleneck_s,
                              .fill = c->fill_s,
                              .sync = c->sync_s,
                              .samples = col->table->wave_samples / col->chains,
                              .n_stages = c->n_stages,
                              .first = MAQ_ARENA_NEW(p->arena, uint16_t, c->n_stages),
                              .option = MAQ_ARENA_NEW(p->arena, uint16_t, c->n_stages)};
    if (!column->first || !column->option) {
        p->no_memory = true;
        return;
    }
    for (uint32_t i = 0; i < c->n_stages; i++) {
        const struct maq_stage_option *o = &col->table->options[c->stages[i].parts[0].option];
        column->first[i] = (uint16_t)c->stages[i].first;
        column->option[i] = (uint16_t)col->to_pool[c->stages[i].parts[0].option];
        column->used[o->kind] += o->devices * c->stages[i].parts[0].replicas / col->chains;
    }
    *slot = ++p->n;
}

/* Chains that differ from one of the stock in one cut, moved by an atom, or in the option of one stage. */
static void add_neighbours(struct collector *col, struct maq_composition *c, const struct column *column)
{
    const struct maq_stage_table *t = col->table;
    c->n_stages = column->n_stages;
    for (uint32_t i = 0; i < c->n_stages; i++) {
        uint32_t option = 0;
        while (col->to_pool[option] != column->option[i])
            option++;
        c->stages[i] = (struct maq_stage){.first = column->first[i],
                                          .end = i + 1 < c->n_stages ? column->first[i + 1] : t->n_atoms,
                                          .n_parts = 1,
                                          .parts = {{option, maq_replicas(t, option)}}};
    }
    for (uint32_t i = 0; i + 1 < c->n_stages; i++)
        for (uint32_t side = 0; side < 2; side++) {
            uint32_t was = c->stages[i].end;
            c->stages[i].end = c->stages[i + 1].first = side == 0 ? was - 1 : was + 1;
            collect(col, c);
            c->stages[i].end = c->stages[i + 1].first = was;
        }
    for (uint32_t i = 0; i < c->n_stages; i++) {
        const struct maq_stage_part was = c->stages[i].parts[0];
        for (uint32_t o = 0; o < t->n_options; o++) {
            c->stages[i].parts[0] = (struct maq_stage_part){o, maq_replicas(t, o)};
            collect(col, c);
        }
        c->stages[i].parts[0] = was;
    }
}

bool maq_chain_stock_collect(struct maq_chain_stock *pool, const struct maq_layer_ranges *layer_ranges, uint32_t chains,
                             double cutoff_s, uint64_t *programs, struct maq_arena *scratch)
{
    const struct maq_stage_table *t = layer_ranges->table;
    struct collector *col = MAQ_ARENA_NEW(scratch, struct collector, 1);
    struct maq_composition *c = MAQ_ARENA_NEW(scratch, struct maq_composition, 1);
    struct maq_boxes boxes;
    uint32_t from = pool->n;
    if (!col || !c)
        return false;
    *col = (struct collector){.pool = pool, .table = t, .chains = chains};
    for (uint32_t o = 0; o < t->n_options; o++) {
        while (col->to_pool[o] < pool->table->n_options && pool->table->options[col->to_pool[o]].id != t->options[o].id)
            col->to_pool[o]++;
        MAQ_ASSERT(col->to_pool[o] < pool->table->n_options);
    }
    c->step_s = HUGE_VAL;
    const struct maq_bottleneck_box_options options = {cutoff_s, 0.01 * cutoff_s, 200, 0, collect, col};
    if (!maq_boxes_cover(&boxes, c, layer_ranges, &options, scratch))
        return false;
    *programs += boxes.programs;
    if (boxes.n == 0) /* no plan of chains of this table is below the cutoff */
        return !pool->no_memory;
    for (uint32_t turn = 0; turn < 2; turn++)
        for (uint32_t to = pool->n; from < to && pool->n < pool->room; from++)
            add_neighbours(col, c, &pool->at[from]);
    return !pool->no_memory;
}

/* ---- knapsack ---- */

static void choose(struct knapsack *k, const struct maq_chain_stock *p, double theta, double sync)
{
    k->n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct column *c = &p->at[i];
        uint32_t state = 0, at = 0, done = c->samples * does(c->bottleneck, c->fill, theta);
        if (c->sync > sync || done == 0)
            continue;
        for (uint32_t g = 0; g < p->table->n_kinds; g++)
            state += c->used[g] * k->stride[g];
        while (at < k->n && k->step[at] != state)
            at++;
        if (at == USES ||
            (at < k->n && (k->done[at] > done || (k->done[at] == done && k->choice[at]->sync <= c->sync))))
            continue;
        k->choice[at] = c;
        k->done[at] = done;
        k->step[at] = state;
        k->n += at == k->n;
    }
}

static bool within(const struct knapsack *k, const struct maq_stage_table *t, const struct column *c, uint32_t state)
{
    for (uint32_t g = 0; g < t->n_kinds; g++)
        if (c->used[g] > state / k->stride[g] % (t->available[g] + 1))
            return false;
    return true;
}

static void fill_knapsack(struct knapsack *k, const struct maq_stage_table *t)
{
    k->most[0] = 0;
    k->taken[0] = UINT16_MAX;
    for (uint32_t s = 1; s < k->states; s++) {
        uint32_t most = 0;
        uint16_t taken = UINT16_MAX;
        for (uint32_t g = 0; g < t->n_kinds; g++)
            if (s / k->stride[g] % (t->available[g] + 1) > 0 &&
                (taken == UINT16_MAX || k->most[s - k->stride[g]] > most)) {
                most = k->most[s - k->stride[g]];
                taken = (uint16_t)(USES + g);
            }
        for (uint32_t i = 0; i < k->n; i++)
            if (k->step[i] <= s && k->most[s - k->step[i]] + k->done[i] > most && within(k, t, k->choice[i], s)) {
                most = k->most[s - k->step[i]] + k->done[i];
                taken = (uint16_t)i;
            }
        k->most[s] = most;
        k->taken[s] = taken;
    }
}

/* A chain of the stock as part of a plan. */
static void expand(struct maq_chain *chain, const struct maq_chain_stock *p, const struct column *column)
{
    const struct maq_stage_table *t = p->table;
    *chain = (struct maq_chain){.samples = column->samples, .n_stages = column->n_stages};
    for (uint32_t i = 0; i < column->n_stages; i++) {
        uint32_t option = column->option[i];
        chain->stages[i] = (struct maq_stage){.first = column->first[i],
                                              .end = i + 1 < column->n_stages ? column->first[i + 1] : t->n_atoms,
                                              .n_parts = 1,
                                              .parts = {{option, column->samples / t->options[option].samples}}};
    }
}

static bool read_back(struct maq_chain_set *plan, const struct knapsack *k, const struct maq_chain_stock *p)
{
    uint32_t counts[USES] = {0};
    for (uint32_t s = k->states - 1; s > 0 && k->taken[s] != UINT16_MAX;) {
        uint32_t taken = k->taken[s];
        if (taken >= USES) {
            s -= k->stride[taken - USES];
        } else {
            counts[taken]++;
            s -= k->step[taken];
        }
    }
    plan->n_kinds = 0;
    for (uint32_t i = 0; i < k->n; i++) {
        if (counts[i] == 0)
            continue;
        if (plan->n_kinds == MAQ_CHAIN_KINDS)
            return false;
        expand(&plan->kinds[plan->n_kinds], p, k->choice[i]);
        plan->kinds[plan->n_kinds++].count = counts[i];
    }
    return true;
}

/* Bisects the least time in which some chains do the whole batch, under a limit on the synchronization of a chain. */
static void bisect(struct maq_chain_set *best, struct maq_chain_set *plan, struct knapsack *k,
                   const struct maq_chain_stock *p, double sync, double least_sync, uint32_t wanted,
                   uint64_t *knapsacks)
{
    double low = 0, high = best->step_s - least_sync;
    for (uint32_t turn = 0; turn < HALVINGS; turn++) {
        double theta = turn == 0 ? high : 0.5 * (low + high);
        choose(k, p, theta, sync);
        fill_knapsack(k, p->table);
        ++*knapsacks;
        if (k->most[k->states - 1] < wanted) {
            if (turn == 0)
                return;
            low = theta;
            continue;
        }
        high = theta;
        if (turn == 0)
            low = 0.8 * high;
        if (read_back(plan, k, p) && maq_chain_set_cost(plan, p->table, wanted) && plan->step_s < best->step_s)
            *best = *plan;
    }
}

static int ascending(const void *pa, const void *pb)
{
    const double *a = pa, *b = pb;
    return (*a > *b) - (*a < *b);
}

static bool init_knapsack(struct knapsack *k, const struct maq_stage_table *t, struct maq_arena *arena)
{
    uint64_t states = 1;
    for (uint32_t g = 0; g < t->n_kinds; g++) {
        k->stride[g] = (uint32_t)states;
        states *= t->available[g] + 1;
        if (states > STATES)
            return false;
    }
    k->states = (uint32_t)states;
    k->most = MAQ_ARENA_NEW(arena, uint32_t, k->states);
    k->taken = MAQ_ARENA_NEW(arena, uint16_t, k->states);
    return k->most && k->taken;
}

bool maq_chain_set_choose(struct maq_chain_set *best, const struct maq_chain_stock *pool, uint32_t global_batch,
                          uint64_t *knapsacks, struct maq_arena *scratch)
{
    struct knapsack *k = MAQ_ARENA_NEW(scratch, struct knapsack, 1);
    struct maq_chain_set *plan = MAQ_ARENA_NEW(scratch, struct maq_chain_set, 1);
    double *sync = MAQ_ARENA_NEW(scratch, double, pool->n), last = -1;
    if (!k || !plan || !sync)
        return false;
    if (pool->n == 0 || !init_knapsack(k, pool->table, scratch))
        return true; /* nothing to choose from, or too many kinds of devices for the knapsack */
    for (uint32_t i = 0; i < pool->n; i++)
        sync[i] = pool->at[i].sync;
    qsort(sync, pool->n, sizeof *sync, ascending);
    for (uint32_t i = 0; i < LIMITS; i++) {
        double limit = sync[(size_t)(pool->n - 1) * (i + 1) / LIMITS];
        if (limit > last && limit < best->step_s)
            bisect(best, plan, k, pool, limit, sync[0], global_batch, knapsacks);
        last = limit;
    }
    return true;
}
