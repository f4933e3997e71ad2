/* SPDX-License-Identifier: Apache-2.0 */
/*
 * stage_costs.c - stage tables from the cost chain: strategies of each pool costed once for each wave, in parallel
 * and remembered, dominated ones dropped, and hops between all classes of options priced. stage_costs.h has the
 * equations.
 */
#include "planner/stages/stage_costs.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "planner/stages/codes.h"
#include "planner/stages/strategies.h"
#include "planner/stages/virtual_stages.h"

struct table_costs {
    const struct maq_chain_column *columns[MAQ_STAGE_OPTIONS];
};

/* ---- pools ---- */

static enum maq_status take_pool(struct maq_chain_costs *c, uint32_t g, struct maq_diag *diag)
{
    const struct maq_pool *at = &c->groups.at[g];
    struct maq_chain_pool *pool = &c->pools[g];
    *pool = (struct maq_chain_pool){.at = at, .capacity_bytes = at->group.device.mem_bytes};
    c->most_replicas = at->count > c->most_replicas ? at->count : c->most_replicas;
    return maq_strategies_list(pool, c->space, g, &c->memo->pools[g].arena) ? MAQ_OK
                                                                            : maq_no_memory(diag, "the search");
}

static enum maq_status open_memo(struct maq_chain_costs *c, struct maq_diag *diag)
{
    struct maq_chain_memo *memo = maq__calloc(sizeof *memo);
    if (!memo)
        return maq_no_memory(diag, "the search");
    pthread_mutex_init(&memo->lock, NULL); /* of the default kind: never fails */
    for (uint32_t g = 0; g < MAQ_STAGE_KINDS; g++) {
        pthread_mutex_init(&memo->pools[g].lock, NULL);
        maq_arena_init(&memo->pools[g].arena, 0);
    }
    c->memo = memo;
    return MAQ_OK;
}

static void close_memo(struct maq_chain_costs *c)
{
    if (!c->memo)
        return;
    for (uint32_t g = 0; g < MAQ_STAGE_KINDS; g++) {
        pthread_mutex_destroy(&c->memo->pools[g].lock);
        maq_arena_fini(&c->memo->pools[g].arena);
    }
    pthread_mutex_destroy(&c->memo->lock);
    free(c->memo);
    c->memo = NULL;
}

static enum maq_status open_costs(struct maq_chain_costs *c, struct maq_diag *diag)
{
    const struct maq_job *job = &c->space->job;
    MAQ_TRY(open_memo(c, diag));
    MAQ_TRY(maq_pools_open(&c->groups, job, diag));
    for (uint32_t g = 0; g < c->n_pools; g++)
        MAQ_TRY(take_pool(c, g, diag));
    c->atoms = maq_chain_atoms_of(&job->model);
    c->norm_s = maq_pools_norm_s(&c->groups);
    for (uint32_t g = 0; g < c->n_pools; g++) {
        struct maq_chain_pool_memo *memo = &c->memo->pools[g];
        const size_t waves = (size_t)c->space->n_mbs * (c->most_replicas + 1);
        if (!(memo->offers = MAQ_ARENA_NEW(&memo->arena, const struct maq_chain_offer *, waves)))
            return maq_no_memory(diag, "the search");
    }
    return MAQ_OK;
}

enum maq_status maq_chain_costs_init(struct maq_chain_costs *c, const struct maq_chain_space *space,
                                     struct maq_diag *diag)
{
    const struct maq_job *job = &space->job;
    *c = (struct maq_chain_costs){.space = space, .n_pools = job->cluster.n_groups, .pools_used = UINT32_MAX};
    enum maq_status status = MAQ_OK;
    if (c->n_pools > MAQ_STAGE_KINDS || job->model.num_layers + 3 > MAQ_STAGE_ATOMS)
        status = maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_SEARCH_LIMIT, (struct maq_span){0}, NULL,
                               "%u node groups and %u layers: a composition has at most %u and %u", c->n_pools,
                               job->model.num_layers, MAQ_STAGE_KINDS, MAQ_STAGE_ATOMS - 3);
    if (status == MAQ_OK)
        status = open_costs(c, diag);
    if (status != MAQ_OK)
        maq_chain_costs_fini(c);
    return status;
}

void maq_chain_costs_fini(struct maq_chain_costs *c)
{
    maq_pools_close(&c->groups);
    close_memo(c);
}

enum maq_status maq_chain_costs_check(const struct maq_chain_costs *c, struct maq_diag *diag)
{
    if (c->memo->most_options <= MAQ_STAGE_OPTIONS)
        return MAQ_OK;
    return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_SEARCH_LIMIT, (struct maq_span){0},
                         "narrow it: --tp, --space tp=2,4,8 or --space recompute=none,full",
                         "%u ways to run a stage on %u node groups; a composition chooses from at most %u",
                         c->memo->most_options, c->n_pools, MAQ_STAGE_OPTIONS);
}

/* ---- ids ---- */

#define STRATEGY_BITS 24

struct maq_stage_strategy maq_stage_strategy_of(const struct maq_chain_costs *c, uint32_t id)
{
    return c->pools[id >> STRATEGY_BITS].strategies[id & ((1u << STRATEGY_BITS) - 1)];
}

/* ---- offers ---- */

static uint32_t waves_of(const struct maq_chain_costs *c, const struct maq_chain_wave *wave)
{
    uint32_t samples = c->space->mbs[wave->mbs] * wave->replicas, gbs = (uint32_t)c->space->job.workload.gbs;
    return (gbs + samples - 1) / samples;
}

/* All-reduce of the gradients of a tied table between two stages, in the pool's own network. */
static double tied_s(const struct maq_chain_costs *c, uint32_t g, double bytes, uint32_t devices)
{
    const struct maq_pool *pool = &c->groups.at[g];
    struct maq_coll tied = {.kind = MAQ_COLL_ALL_REDUCE, .bytes = bytes};
    bool inside = pool->group.nodes == 1 && devices < pool->count;
    if (bytes == 0)
        return 0;
    tied.sharers = (uint16_t)(devices < pool->per_node ? devices : pool->per_node);
    tied.at = (struct maq_placement){.size = 2, .per_domain = 1, .domains = 2, .per_node = 1};
    if (inside)
        tied.at = maq_cluster_place(&pool->cluster, 0, 2, devices);
    return maq_cost_coll(&c->groups.chain, &tied, &pool->cluster).seconds;
}

/* *out = NULL where the strategy is impossible on the pool, or no atom fits into memory. */
static enum maq_status cost_strategy(const struct maq_chain_column **out, const struct maq_chain_costs *c,
                                     const struct maq_chain_wave *wave, uint32_t pool, uint32_t strategy)
{
    const struct maq_stage_strategy *is = &c->pools[pool].strategies[strategy];
    struct maq_plan plan = maq_strategy_plan(c->space, is, c->space->mbs[wave->mbs]);
    struct maq_range_costs range_costs;
    struct maq_chain_column *column = MAQ_ARENA_NEW(&c->memo->pools[pool].arena, struct maq_chain_column, 1);
    *out = NULL;
    if (!column)
        return MAQ_NO_MEMORY;
    enum maq_status status =
        maq_range_costs_begin(&range_costs, c->groups.at[pool].sweep, &plan,
                              &(struct maq_range_stage){wave->replicas, waves_of(c, wave), 0, false}, NULL);
    if (status == MAQ_BAD_INPUT || status == MAQ_LIMIT)
        return MAQ_OK;
    MAQ_TRY(status);
    column->option = (struct maq_stage_option){.id = pool << STRATEGY_BITS | strategy,
                                               .kind = pool,
                                               .devices = is->tp * is->cp,
                                               .samples = c->space->mbs[wave->mbs]};
    const struct maq_chain_around around = {c->pools[pool].capacity_bytes, c->norm_s,
                                            tied_s(c, pool, range_costs.tied_bytes, is->tp * is->cp * wave->replicas),
                                            is->sharding == MAQ_SHARDING_PARAMS};
    status = maq_chain_column_fill(column, &range_costs, &around, &c->memo->pools[pool].arena);
    maq_range_costs_end(&range_costs);
    if (status == MAQ_OK)
        *out = column;
    return status == MAQ_LIMIT ? MAQ_OK : status;
}

/* Whether another column dominates column i; of two equal columns the first one stays. */
static bool is_useless(const struct maq_chain_column *const *columns, uint32_t n, uint32_t i, uint32_t n_atoms)
{
    for (uint32_t k = 0; k < n; k++)
        if (k != i && columns[k] && maq_chain_column_useless(columns[i], columns[k], n_atoms))
            return true;
    return false;
}

static uint32_t drop_useless(const struct maq_chain_column **columns, uint32_t n, uint32_t n_atoms)
{
    uint32_t kept = 0;
    for (uint32_t i = n; i-- > 0;)
        if (is_useless(columns, n, i, n_atoms))
            columns[i] = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (columns[i])
            columns[kept++] = columns[i];
    return kept;
}

/* Costs every strategy of a pool. NULL when out of memory. */
static struct maq_chain_offer *make_offer(const struct maq_chain_costs *c, const struct maq_chain_wave *wave,
                                          uint32_t g)
{
    const struct maq_chain_pool *pool = &c->pools[g];
    struct maq_arena *arena = &c->memo->pools[g].arena;
    struct maq_chain_offer *offer = MAQ_ARENA_NEW(arena, struct maq_chain_offer, 1);
    const struct maq_chain_column **columns = MAQ_ARENA_NEW(arena, const struct maq_chain_column *, pool->n_strategies);
    uint32_t costed = 0;
    if (!offer || !columns)
        return NULL;
    offer->columns = columns;
    for (uint32_t strategy = 0; strategy < pool->n_strategies; strategy++) {
        const struct maq_stage_strategy *is = &pool->strategies[strategy];
        if ((uint64_t)is->tp * is->cp * wave->replicas > pool->at->count ||
            !maq_strategy_differs(c->space, is, wave->replicas))
            continue;
        if (cost_strategy(&columns[offer->n], c, wave, g, strategy) != MAQ_OK)
            return NULL;
        offer->n += columns[offer->n] != NULL;
        costed++;
    }
    if (!c->keep_useless)
        offer->n = drop_useless(columns, offer->n, c->atoms.n);
    pthread_mutex_lock(&c->memo->lock);
    c->memo->strategies += costed;
    pthread_mutex_unlock(&c->memo->lock);
    return offer;
}

/* The offer of a pool for a wave, costed when it is first asked for. NULL when out of memory. */
static const struct maq_chain_offer *offer_of(const struct maq_chain_costs *c, const struct maq_chain_wave *wave,
                                              uint32_t g)
{
    struct maq_chain_pool_memo *memo = &c->memo->pools[g];
    pthread_mutex_lock(&memo->lock);
    const struct maq_chain_offer **slot = &memo->offers[(size_t)wave->mbs * (c->most_replicas + 1) + wave->replicas];
    const struct maq_chain_offer *offer = *slot = *slot ? *slot : make_offer(c, wave, g);
    pthread_mutex_unlock(&memo->lock);
    return offer;
}

static void count_table(const struct maq_chain_costs *c, uint32_t options)
{
    struct maq_chain_memo *memo = c->memo;
    pthread_mutex_lock(&memo->lock);
    memo->most_options = options > memo->most_options ? options : memo->most_options;
    memo->tables++;
    if (c->watch.report)
        c->watch.report(c->watch.user, memo->tables, memo->strategies);
    pthread_mutex_unlock(&memo->lock);
}

/* ---- synchronization and hops ---- */

static double sync_s(const struct maq_stage_table *t, const struct maq_stage_part *parts, uint32_t n_parts,
                     double bytes, uint32_t ranks)
{
    const struct table_costs *costs = t->costs;
    double slowest = 0;
    (void)ranks; /* a stage has one kind of replicas, in the number that the table fixes */
    for (uint32_t i = 0; i < n_parts; i++)
        slowest = fmax(slowest, maq_chain_column_sync_s(costs->columns[parts[i].option], bytes));
    return slowest;
}

double maq_chain_hop_s(const struct maq_chain_costs *c, uint32_t from, uint32_t to, double bytes, uint32_t senders,
                       bool inside)
{
    return from == to ? maq_pools_side_s(&c->groups, from, bytes, senders, inside)
                      : maq_pools_between_s(&c->groups, from, to, bytes, senders);
}

static double pair_s(const struct maq_chain_costs *c, const struct maq_chain_wave *wave,
                     const struct maq_chain_column *from, const struct maq_chain_column *to)
{
    const struct maq_pool *pool = &c->groups.at[from->option.kind];
    bool inside = from->option.kind == to->option.kind && pool->group.nodes == 1 && pool->count > 1;
    uint32_t fewest = from->option.devices < to->option.devices ? from->option.devices : to->option.devices;
    return maq_chain_hop_s(c, from->option.kind, to->option.kind, fmax(from->hop_bytes, to->hop_bytes),
                           wave->replicas * fewest, inside) +
           from->extra_s;
}

/*
 * Whether two strategies of a pool have equal hops: they send as many bytes from as many devices, with the same added
 * time.
 */
static bool hop_alike(const struct maq_chain_column *a, const struct maq_chain_column *b)
{
    return a->option.kind == b->option.kind && a->option.devices == b->option.devices && a->hop_bytes == b->hop_bytes &&
           a->extra_s == b->extra_s;
}

static bool fill_hops(struct maq_stage_table *t, struct maq_stage_option *options, const struct maq_chain_costs *c,
                      const struct maq_chain_wave *wave, struct maq_arena *arena)
{
    const struct table_costs *costs = t->costs;
    const struct maq_chain_column **classes = MAQ_ARENA_RAW(arena, const struct maq_chain_column *, t->n_options);
    for (uint32_t o = 0; classes && o < t->n_options; o++) {
        uint32_t k = 0;
        while (k < t->n_hop_classes && !hop_alike(classes[k], costs->columns[o]))
            k++;
        options[o].hop_class = k;
        if (k == t->n_hop_classes)
            classes[t->n_hop_classes++] = costs->columns[o];
    }
    double *seconds = MAQ_ARENA_RAW(arena, double, (size_t)t->n_hop_classes * t->n_hop_classes * t->n_atoms);
    if (!seconds || !classes)
        return false;
    for (uint32_t i = 0; i < t->n_hop_classes; i++)
        for (uint32_t j = 0; j < t->n_hop_classes; j++) {
            double s = pair_s(c, wave, classes[i], classes[j]);
            for (uint32_t a = 0; a < t->n_atoms; a++)
                seconds[((size_t)i * t->n_hop_classes + j) * t->n_atoms + a] = s;
        }
    t->forward_s = t->backward_s = seconds; /* the mean of both directions */
    return true;
}

/* ---- tables ---- */

bool maq_chain_costs_stopped(const struct maq_chain_costs *c)
{
    return c->watch.stop && *c->watch.stop;
}

static bool is_wanted(const struct maq_chain_costs *c, const struct maq_stage_option *o)
{
    struct maq_stage_strategy is = maq_stage_strategy_of(c, o->id);
    bool plain = is.sharding == MAQ_SHARDING_NONE && c->space->redo[is.redo].recompute == MAQ_RECOMPUTE_NONE;
    return (c->pools_used >> o->kind & 1) && (plain || !c->plain);
}

static void take_options(struct maq_stage_table *t, struct maq_stage_option *options, struct table_costs *costs,
                         const struct maq_chain_costs *c, const struct maq_chain_offer *offer)
{
    for (uint32_t i = 0; i < offer->n && t->n_options < MAQ_STAGE_OPTIONS; i++)
        if (is_wanted(c, &offer->columns[i]->option)) {
            options[t->n_options] = offer->columns[i]->option;
            costs->columns[t->n_options++] = offer->columns[i];
        }
}

/* Micro batches become chunks. false when out of memory. */
static bool fold(struct maq_stage_table *t, struct maq_stage_option *options, struct table_costs *costs,
                 const struct maq_chain_costs *c, const struct maq_chain_wave *wave, struct maq_arena *arena)
{
    if (wave->chunks == 0)
        return true;
    t->n_atoms = maq_chain_chunked_atoms(c->atoms, wave->chunks);
    maq_chain_chunk_waves(t, wave->chunks, wave->group);
    t->hops_beside = c->space->job.plan.overlap_p2p != MAQ_OFF;
    t->wraps = t->hops_beside ? (wave->chunks - 1.0) / wave->chunks : 0;
    const struct maq_chain_chunking how = {wave->chunks, wave->heaviest, t->hops_beside};
    for (uint32_t i = 0; i < t->n_options; i++) {
        if (!(costs->columns[i] = maq_chain_column_chunks(costs->columns[i], c->atoms, &how, arena)))
            return false;
        options[i] = costs->columns[i]->option;
    }
    return true;
}

bool maq_chain_costs_table(struct maq_stage_table *t, const struct maq_chain_costs *c,
                           const struct maq_chain_wave *wave, struct maq_arena *arena)
{
    struct table_costs *costs = MAQ_ARENA_NEW(arena, struct table_costs, 1);
    MAQ_ASSERT(wave->replicas > 0 && wave->replicas <= c->most_replicas && wave->mbs < c->space->n_mbs);
    const struct maq_chain_offer *offers[MAQ_STAGE_KINDS] = {NULL};
    uint32_t offered = 0;
    for (uint32_t g = 0; g < c->n_pools; g++) {
        if (!(offers[g] = offer_of(c, wave, g)))
            return false;
        offered += offers[g]->n;
    }
    count_table(c, offered);
    uint32_t most = offered < MAQ_STAGE_OPTIONS ? offered : MAQ_STAGE_OPTIONS;
    struct maq_stage_option *options = MAQ_ARENA_NEW(arena, struct maq_stage_option, most);
    if (!options || !costs)
        return false;
    *t = (struct maq_stage_table){.n_atoms = c->atoms.n,
                                  .n_kinds = c->n_pools,
                                  .waves = waves_of(c, wave),
                                  .wave_samples = c->space->mbs[wave->mbs] * wave->replicas,
                                  .max_parts = 1,
                                  .options = options,
                                  .hops = {.first_short = 1, .first_deep = 1, .last = 1, .short_depth = 1},
                                  .sync_s = sync_s,
                                  .costs = costs};
    t->max_in_flight = t->waves;
    for (uint32_t g = 0; g < c->n_pools; g++) {
        t->available[g] = c->pools[g].at->count;
        t->capacity_bytes[g] = c->pools[g].capacity_bytes;
    }
    for (uint32_t g = 0; g < c->n_pools; g++)
        take_options(t, options, costs, c, offers[g]);
    if (maq_chain_costs_stopped(c) && t->n_options > 1)
        t->n_options = 1;
    return fold(t, options, costs, c, wave, arena) && fill_hops(t, options, c, wave, arena);
}

struct maq_chain_sends maq_chain_costs_sends(const struct maq_stage_table *table, uint32_t option)
{
    const struct table_costs *costs = table->costs;
    return (struct maq_chain_sends){costs->columns[option]->hop_bytes, costs->columns[option]->extra_s};
}
