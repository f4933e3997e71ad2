/* chain_costs.c - stage tables from the cost chain: see chain_costs.h for the equations. */
#include "compose/chain_costs.h"

#include <math.h>

#include "base/check.h"
#include "base/str.h"
#include "compose/codes.h"
#include "plan/job_build.h"
#include "train/atoms.h"
#include "train/lower.h"
#include "train/predict.h"

#define PARTS 16                /* of a bucket, at which the reduction is priced */
#define UPDATE_PARAMS (1 << 26) /* at which the optimizer is priced: far above what a launch takes */

struct maq_chain_layers {
    struct maq_job resolved; /* for what states take */
    double context_bytes, hop_bytes;
    /* [atoms + 1], sums over the atoms before */
    double *time_s, *params, *flight_bytes, *excess_bytes, *sync_bytes;
    const double *update_s; /* [atoms] zeros: the optimizer goes by parameters, with the reduction */
};

/* Seconds to reduce and update a stage's parameters under one option and number of replicas. */
struct curve {
    double bucket_bytes, part_s[PARTS + 1], update_s_per_byte;
};

struct table_costs {
    const struct maq_chain_costs *chain;
    struct curve curves[MAQ_STAGE_OPTIONS];
};

static enum maq_status no_memory(struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_SEARCH_LIMIT, (struct maq_span){0}, NULL,
                         "out of memory for the search");
}

/* ---- pools ---- */

static double op_s(const struct maq_chain_costs *c, const struct maq_chain_pool *pool, enum maq_op_kind kind,
                   unsigned flags, double read, double write)
{
    struct maq_op op = maq_op_make(kind, MAQ_FP32, flags, UPDATE_PARAMS, (int64_t)read, (int64_t)write, 0, 0, 0);
    return maq_cost_op(&c->chain, &op, &pool->group.device).seconds / UPDATE_PARAMS;
}

/* The operators of the end of a step (train/blueprint.c), per parameter. */
static void price_update(struct maq_chain_pool *pool, const struct maq_chain_costs *c, const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    double g = maq_dtype_bytes((enum maq_dtype)p->grad_dtype), m = maq_dtype_bytes((enum maq_dtype)p->optimizer_dtype),
           store = maq_dtype_bytes((enum maq_dtype)job->store_dtype);
    double master = p->pure_low_precision || job->store_dtype == MAQ_FP32 ? 0 : 4;
    unsigned flags = job->framework.optimizer == MAQ_OPTIMIZER_FOREACH ? MAQ_OP_UNFUSED : 0;
    pool->update_s =
        op_s(c, pool, MAQ_OP_ELEMENTWISE, 0, g, 0) + op_s(c, pool, MAQ_OP_ELEMENTWISE, 0, g, g) +
        op_s(c, pool, MAQ_OP_OPTIMIZER, flags, g + (master > 0 ? master : store) + 2 * m, 2 * m + master + store);
    pool->zero_s = op_s(c, pool, MAQ_OP_ELEMENTWISE, 0, 0, g);
}

/* TP degrees inside a node. */
static void list_tp(struct maq_chain_pool *pool, const struct maq_chain_space *space)
{
    for (uint32_t d = 1; d <= pool->per_node && pool->n_tp < MAQ_CHAIN_VALUES; d++) {
        bool wanted = space->n_tp == 0;
        for (uint32_t i = 0; i < space->n_tp; i++)
            wanted = wanted || space->tp[i] == d;
        if (wanted && pool->per_node % d == 0)
            pool->tp[pool->n_tp++] = d;
    }
}

static void take_pool(struct maq_chain_costs *c, const struct maq_chain_space *space, uint32_t g)
{
    struct maq_chain_pool *pool = &c->pools[g];
    *pool = (struct maq_chain_pool){.cluster = space->job.cluster, .group = space->job.cluster.groups[g]};
    pool->group.first_rank = 0;
    pool->count = (uint32_t)(pool->group.nodes * pool->group.devices_per_node);
    pool->per_node = (uint32_t)pool->group.devices_per_node;
    pool->capacity_bytes = pool->group.device.mem_bytes;
    pool->cluster.n_groups = 1;
    pool->cluster.groups = &pool->group;
    pool->cluster.devices = pool->count;
    list_tp(pool, space);
}

/* ---- atoms ---- */

/* A job of two stages on nodes of the pool's kind, as many devices as the whole cluster has: a step waits for its slowest device. */
static void pool_job(struct maq_job *job, struct maq_node_group *group, const struct maq_chain_costs *c, uint32_t g)
{
    const struct maq_chain_pool *pool = &c->pools[g];
    uint32_t nodes = (c->space->job.cluster.devices + pool->per_node - 1) / pool->per_node;
    *job = c->space->job;
    *group = pool->group;
    group->nodes = (int32_t)(nodes + nodes % 2);
    job->cluster = pool->cluster;
    job->cluster.groups = group;
    job->cluster.devices = (uint32_t)group->nodes * pool->per_node;
}

static struct maq_plan plan_of(const struct maq_job *job, uint32_t tp, uint32_t mbs, const struct maq_chain_redo *redo)
{
    struct maq_plan p = job->plan;
    p.tp = (int32_t)tp;
    p.mbs = (int32_t)mbs;
    p.cp = p.ep = p.vp = 1;
    p.pp = job->model.num_layers > 1 ? 2 : 1;
    p.schedule = MAQ_SCHEDULE_1F1B;
    p.layout = MAQ_STR("balanced"); /* any number of layers */
    p.sharding = MAQ_SHARDING_NONE;
    p.num_optimizer_instances = 1;
    p.recompute = redo->recompute;
    p.recompute_parts = redo->parts;
    p.recompute_method = MAQ_RECOMPUTE_UNIFORM;
    p.recompute_num_layers = 0;
    return p;
}

/* Bytes of one transfer between two stages, the mean of both directions: train/blueprint.c. */
static double hop_bytes(const struct maq_job *job)
{
    const struct maq_plan *p = &job->plan;
    double store = maq_dtype_bytes((enum maq_dtype)job->store_dtype), seq = (double)job->workload.seq;
    bool sp = p->sequence_parallel == MAQ_ON;
    double whole = p->mbs * seq / (sp ? p->tp : 1) * (double)job->model.hidden * store,
           share = p->scatter_gather_p2p && !sp ? whole / p->tp : whole,
           mask = job->framework.p2p_sends_mask ? seq * seq * store : 0;
    return (share + mask + (job->framework.p2p_whole_gradients ? whole : share)) / 2;
}

/* Working set of the heaviest layer: what is neither the first nor the last atom. */
static double layer_transient(const struct maq_atoms *atoms, bool redone)
{
    double most = 0;
    for (uint32_t i = 1; i + 1 < atoms->n; i++)
        most = fmax(most, redone ? atoms->at[i].redone_transient_bytes : atoms->at[i].transient_bytes);
    return most;
}

static bool sum_up(struct maq_chain_layers *l, const struct maq_atoms *atoms, bool redone, double grad_bytes,
                   struct maq_arena *arena)
{
    double **rows[] = {&l->time_s, &l->params, &l->flight_bytes, &l->excess_bytes, &l->sync_bytes};
    double *update = MAQ_ARENA_NEW(arena, double, atoms->n), most = layer_transient(atoms, redone);
    for (size_t r = 0; r < MAQ_COUNT(rows); r++)
        if (!(*rows[r] = MAQ_ARENA_NEW(arena, double, (size_t)atoms->n + 1)))
            return false;
    for (uint32_t i = 0; i < atoms->n; i++) {
        const struct maq_atom *a = &atoms->at[i];
        double ns = redone ? a->redone_forward_ns + a->redone_backward_ns : a->forward_ns + a->backward_ns,
               working = redone ? a->redone_transient_bytes : a->transient_bytes,
               held = a->dense_params + a->expert_params;
        l->time_s[i + 1] = l->time_s[i] + ns * 1e-9;
        l->params[i + 1] = l->params[i] + held;
        l->sync_bytes[i + 1] = l->sync_bytes[i] + held * grad_bytes;
        l->flight_bytes[i + 1] = l->flight_bytes[i] + (redone ? a->redone_act_bytes : a->act_bytes);
        l->excess_bytes[i + 1] = l->excess_bytes[i] + fmax(working - most, 0);
    }
    l->context_bytes += most;
    l->update_s = update;
    return update != NULL;
}

/* *out = NULL where the combination cannot be. */
static enum maq_status cost_layers(const struct maq_chain_layers **out, struct maq_chain_costs *c,
                                   struct maq_train_sweep *sweep, const struct maq_job *job,
                                   const struct maq_plan *plan, struct maq_arena *arena)
{
    const struct maq_job_places nowhere = {0};
    struct maq_atoms atoms;
    struct maq_chain_layers *l = MAQ_ARENA_NEW(arena, struct maq_chain_layers, 1);
    if (!l)
        return MAQ_NO_MEMORY;
    enum maq_status status = maq_train_sweep_atoms(&atoms, sweep, plan, arena);
    if (status == MAQ_BAD_INPUT || status == MAQ_LIMIT)
        return MAQ_OK;
    MAQ_TRY(status);
    l->resolved = *job;
    l->resolved.plan = *plan;
    l->resolved.workload.gbs = (int32_t)job->cluster.devices / plan->tp * plan->mbs;
    MAQ_TRY(maq_job_resolve(&l->resolved, &nowhere, NULL));
    MAQ_TRY(maq_job_place_groups(&l->resolved, &nowhere, arena, NULL));
    l->context_bytes = maq_fixed_bytes(&l->resolved);
    l->hop_bytes = hop_bytes(&l->resolved);
    c->n_atoms = atoms.n;
    c->grad_bytes = maq_dtype_bytes((enum maq_dtype)l->resolved.plan.grad_reduce_dtype);
    c->weight_bytes = maq_dtype_bytes((enum maq_dtype)l->resolved.store_dtype);
    if (!sum_up(l, &atoms, plan->recompute != MAQ_RECOMPUTE_NONE, c->grad_bytes, arena))
        return MAQ_NO_MEMORY;
    *out = l;
    return MAQ_OK;
}

static size_t layers_at(const struct maq_chain_costs *c, uint32_t pool, uint32_t tp, uint32_t mbs, uint32_t redo)
{
    return ((size_t)(pool * MAQ_CHAIN_VALUES + tp) * c->space->n_mbs + mbs) * c->space->n_redo + redo;
}

/* All combinations on one pool, from one sweep. */
static enum maq_status cost_pool(struct maq_chain_costs *c, uint32_t g, struct maq_train_sweep *sweep,
                                 const struct maq_job *job, struct maq_arena *arena)
{
    const struct maq_chain_space *space = c->space;
    struct maq_chain_pool *pool = &c->pools[g];
    for (uint32_t t = 0; t < pool->n_tp; t++)
        for (uint32_t b = 0; b < space->n_mbs; b++)
            for (uint32_t r = 0; r < space->n_redo; r++) {
                struct maq_plan plan = plan_of(job, pool->tp[t], space->mbs[b], &space->redo[r]);
                const struct maq_chain_layers **l = &c->layers[layers_at(c, g, t, b, r)];
                MAQ_TRY(cost_layers(l, c, sweep, job, &plan, arena));
                if (*l && pool->update_s == 0)
                    price_update(pool, c, &(*l)->resolved);
            }
    return MAQ_OK;
}

/* One way of recomputing is of no use beside another that keeps no more of any atom and is no slower. */
static bool no_better(const struct maq_chain_layers *l, const struct maq_chain_layers *than, uint32_t n)
{
    if (!l || !than || than->context_bytes > l->context_bytes)
        return false;
    for (uint32_t i = 0; i < n; i++)
        if (than->time_s[i + 1] - than->time_s[i] > l->time_s[i + 1] - l->time_s[i] ||
            than->flight_bytes[i + 1] - than->flight_bytes[i] > l->flight_bytes[i + 1] - l->flight_bytes[i] ||
            than->excess_bytes[i + 1] - than->excess_bytes[i] > l->excess_bytes[i + 1] - l->excess_bytes[i])
            return false;
    return true;
}

static void drop_useless(struct maq_chain_costs *c, uint32_t g)
{
    for (uint32_t t = 0; t < c->pools[g].n_tp; t++)
        for (uint32_t b = 0; b < c->space->n_mbs; b++)
            for (uint32_t r = 1; r < c->space->n_redo; r++)
                for (uint32_t other = 0; other < r; other++)
                    if (no_better(c->layers[layers_at(c, g, t, b, r)], c->layers[layers_at(c, g, t, b, other)],
                                  c->n_atoms))
                        c->layers[layers_at(c, g, t, b, r)] = NULL;
}

/* Options of the fullest table: of two replicas, or of one. */
static uint32_t most_options(const struct maq_chain_costs *c)
{
    uint32_t most = 0;
    for (uint32_t b = 0; b < c->space->n_mbs; b++)
        for (uint32_t replicas = 1; replicas <= 2; replicas++) {
            uint32_t n = 0;
            for (uint32_t g = 0; g < c->n_pools; g++)
                for (uint32_t t = 0; t < c->pools[g].n_tp && c->pools[g].tp[t] * replicas <= c->pools[g].count; t++)
                    for (uint32_t r = 0; r < c->space->n_redo; r++)
                        n += c->layers[layers_at(c, g, t, b, r)] ? (replicas > 1 ? c->space->n_zero : 1) : 0;
            most = n > most ? n : most;
        }
    return most;
}

static enum maq_status cost_all(struct maq_chain_costs *c, struct maq_arena *arena, struct maq_diag *diag)
{
    for (uint32_t g = 0; g < c->n_pools; g++) {
        struct maq_job *job = MAQ_ARENA_NEW(arena, struct maq_job, 1);
        struct maq_node_group *group = MAQ_ARENA_NEW(arena, struct maq_node_group, 1);
        struct maq_train_sweep *sweep;
        if (!job || !group)
            return no_memory(diag);
        pool_job(job, group, c, g);
        MAQ_TRY(maq_train_sweep_new(&sweep, job, diag));
        enum maq_status status = cost_pool(c, g, sweep, job, arena);
        maq_train_sweep_free(sweep);
        MAQ_TRY(status);
        drop_useless(c, g);
    }
    uint32_t options = most_options(c);
    if (options > MAQ_STAGE_OPTIONS)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_SEARCH_LIMIT, (struct maq_span){0},
                             "narrow it: --tp, --space tp=2,4,8 or --space recompute=none,full",
                             "%u ways to run a stage on %u node groups; a composition chooses from at most %u", options,
                             c->n_pools, MAQ_STAGE_OPTIONS);
    return MAQ_OK;
}

enum maq_status maq_chain_costs_init(struct maq_chain_costs *c, const struct maq_chain_space *space,
                                     struct maq_arena *arena, struct maq_diag *diag)
{
    const struct maq_job *job = &space->job;
    bool asked = job->cost_provider == MAQ_PROVIDER_NONE || job->cost_provider == MAQ_PROVIDER_MEASURED;
    *c = (struct maq_chain_costs){.space = space, .n_pools = job->cluster.n_groups, .pools_used = UINT32_MAX};
    if (c->n_pools > MAQ_STAGE_KINDS || job->model.num_layers + 3 > MAQ_STAGE_ATOMS)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_SEARCH_LIMIT, (struct maq_span){0}, NULL,
                             "%u node groups and %u layers: a composition has at most %u and %u", c->n_pools,
                             job->model.num_layers, MAQ_STAGE_KINDS, MAQ_STAGE_ATOMS - 3);
    for (uint32_t g = 0; g < c->n_pools; g++)
        take_pool(c, space, g);
    c->chain.best = (enum maq_provider)job->cost_provider;
    if (job->measured && asked)
        MAQ_TRY(maq_measured_open(&c->measured, job->measured, diag));
    c->chain.measured = c->measured;
    c->layers = MAQ_ARENA_NEW(arena, const struct maq_chain_layers *, layers_at(c, c->n_pools, 0, 0, 0));
    enum maq_status status = c->layers ? cost_all(c, arena, diag) : no_memory(diag);
    if (status != MAQ_OK)
        maq_chain_costs_fini(c);
    return status;
}

void maq_chain_costs_fini(struct maq_chain_costs *costs)
{
    maq_measured_close(costs->measured);
    costs->measured = NULL;
}

/* ---- options ---- */

static uint32_t id_of(uint32_t pool, uint32_t tp, uint32_t redo, uint32_t zero)
{
    return pool << 24 | tp << 16 | redo << 8 | zero;
}

struct maq_chain_option maq_chain_option_of(const struct maq_chain_costs *costs, uint32_t id)
{
    uint32_t pool = id >> 24;
    return (struct maq_chain_option){pool, costs->pools[pool].tp[id >> 16 & 0xff], id >> 8 & 0xff,
                                     costs->space->zero[id & 0xff]};
}

static const struct maq_chain_layers *layers_of(const struct maq_chain_costs *c, uint32_t id, uint32_t mbs)
{
    return c->layers[layers_at(c, id >> 24, id >> 16 & 0xff, mbs, id >> 8 & 0xff)];
}

static bool fill_option(struct maq_stage_option *o, const struct maq_chain_costs *c, const struct maq_chain_wave *wave,
                        uint32_t id, struct maq_arena *arena)
{
    const struct maq_chain_layers *l = layers_of(c, id, wave->mbs);
    struct maq_chain_option is = maq_chain_option_of(c, id);
    struct maq_plan plan = l->resolved.plan;
    double *fixed = MAQ_ARENA_NEW(arena, double, (size_t)c->n_atoms + 1);
    if (!fixed)
        return false;
    plan.sharding = is.sharding;
    double state = maq_state_bytes(&l->resolved, &plan, 1, wave->replicas);
    for (uint32_t i = 0; i <= c->n_atoms; i++)
        fixed[i] = l->params[i] * state + l->excess_bytes[i];
    *o = (struct maq_stage_option){.id = id,
                                   .kind = is.pool,
                                   .devices = is.tp,
                                   .samples = c->space->mbs[wave->mbs],
                                   .context_bytes = l->context_bytes,
                                   .time_s = l->time_s,
                                   .fixed_bytes = fixed,
                                   .flight_bytes = l->flight_bytes,
                                   .sync_bytes = l->sync_bytes,
                                   .update_s = l->update_s};
    return true;
}

/* ---- synchronization ---- */

static double reduce_s(const struct maq_chain_costs *c, const struct maq_chain_option *is, double bytes,
                       uint32_t replicas)
{
    const struct maq_chain_pool *pool = &c->pools[is->pool];
    struct maq_coll coll = {.kind = MAQ_COLL_ALL_REDUCE, .bytes = bytes};
    if (replicas < 2)
        return 0;
    coll.at = maq_cluster_place(&pool->cluster, 0, replicas, is->tp);
    coll.sharers =
        (uint16_t)(coll.at.per_node > 0 && pool->per_node > coll.at.per_node ? pool->per_node / coll.at.per_node : 1);
    if (is->sharding == MAQ_SHARDING_NONE)
        return maq_cost_coll(&c->chain, &coll, &pool->cluster).seconds;
    coll.kind = MAQ_COLL_REDUCE_SCATTER;
    double s = maq_cost_coll(&c->chain, &coll, &pool->cluster).seconds;
    coll.kind = MAQ_COLL_ALL_GATHER;
    coll.bytes = bytes / c->grad_bytes * c->weight_bytes;
    return s + maq_cost_coll(&c->chain, &coll, &pool->cluster).seconds;
}

static void fill_curve(struct curve *out, const struct maq_chain_costs *c, const struct maq_chain_option *is,
                       uint32_t replicas)
{
    const struct maq_chain_pool *pool = &c->pools[is->pool];
    double shards = is->sharding == MAQ_SHARDING_NONE ? 1 : replicas;
    out->bucket_bytes = maq_sync_bucket_params(replicas) * c->grad_bytes;
    out->update_s_per_byte = (pool->update_s / shards + pool->zero_s) / c->grad_bytes;
    out->part_s[0] = 0;
    for (int i = 1; i <= PARTS; i++)
        out->part_s[i] = fmax(out->part_s[i - 1], reduce_s(c, is, out->bucket_bytes * i / PARTS, replicas));
}

static double sync_s(const struct maq_stage_table *t, const struct maq_stage_part *parts, uint32_t n_parts,
                     double bytes, uint32_t ranks)
{
    const struct table_costs *costs = t->costs;
    double slowest = 0;
    (void)ranks; /* one kind of replicas to a stage, of a number that the table fixes */
    for (uint32_t i = 0; i < n_parts; i++) {
        const struct curve *c = &costs->curves[parts[i].option];
        double full = floor(bytes / c->bucket_bytes), rest = (bytes / c->bucket_bytes - full) * PARTS,
               part = fmin(floor(rest), PARTS - 1);
        int at = (int)part;
        double s = full * c->part_s[PARTS] + c->part_s[at] + (rest - part) * (c->part_s[at + 1] - c->part_s[at]) +
                   bytes * c->update_s_per_byte;
        slowest = fmax(slowest, s);
    }
    return slowest;
}

/* ---- hops ---- */

/* What the pool of one side takes for the transfer. */
static double side_s(const struct maq_chain_costs *c, const struct maq_stage_option *o, uint32_t replicas, double bytes,
                     bool inside)
{
    const struct maq_chain_pool *pool = &c->pools[o->kind];
    uint32_t senders = replicas * o->devices < pool->per_node ? replicas * o->devices : pool->per_node;
    struct maq_coll hop = {.kind = MAQ_COLL_SEND_RECV, .sharers = (uint16_t)senders, .bytes = bytes};
    hop.at = (struct maq_placement){.size = 2, .per_domain = 1, .domains = 2, .per_node = inside ? 2 : 1};
    if (inside)
        hop.at = maq_cluster_place(&pool->cluster, 0, 2, o->devices < pool->count ? o->devices : 1);
    return maq_cost_coll(&c->chain, &hop, &pool->cluster).seconds;
}

static double hop_s(const struct maq_chain_costs *c, const struct maq_chain_wave *wave,
                    const struct maq_stage_option *from, const struct maq_stage_option *to)
{
    double there = layers_of(c, from->id, wave->mbs)->hop_bytes, here = layers_of(c, to->id, wave->mbs)->hop_bytes;
    bool inside = from->kind == to->kind && c->pools[from->kind].group.nodes == 1 && c->pools[from->kind].count > 1;
    return fmax(side_s(c, from, wave->replicas, there, inside), side_s(c, to, wave->replicas, here, inside));
}

static bool fill_hops(struct maq_stage_table *t, const struct maq_chain_costs *c, const struct maq_chain_wave *wave,
                      struct maq_arena *arena)
{
    double *seconds = MAQ_ARENA_NEW(arena, double, (size_t)t->n_options * t->n_options * t->n_atoms);
    if (!seconds)
        return false;
    for (uint32_t i = 0; i < t->n_options; i++)
        for (uint32_t j = 0; j < t->n_options; j++) {
            double s = hop_s(c, wave, &t->options[i], &t->options[j]);
            double *row = &seconds[((size_t)i * t->n_options + j) * t->n_atoms];
            for (uint32_t a = 0; a < t->n_atoms; a++)
                row[a] = s;
        }
    t->forward_s = t->backward_s = seconds; /* the mean of both directions: hop_bytes() */
    return true;
}

/* ---- tables ---- */

/* The ways to run a stage on one pool that has the devices for all replicas. */
static bool add_options(struct maq_stage_table *t, struct maq_stage_option *options, struct table_costs *costs,
                        const struct maq_chain_wave *wave, uint32_t g, struct maq_arena *arena)
{
    const struct maq_chain_costs *c = costs->chain;
    const struct maq_chain_pool *pool = &c->pools[g];
    uint32_t n_zero = wave->replicas > 1 ? c->space->n_zero : 1;
    for (uint32_t tp = 0; tp < pool->n_tp && (uint64_t)pool->tp[tp] * wave->replicas <= pool->count; tp++)
        for (uint32_t redo = 0; redo < c->space->n_redo; redo++)
            for (uint32_t z = 0; z < n_zero && c->layers[layers_at(c, g, tp, wave->mbs, redo)]; z++) {
                MAQ_ASSERT(t->n_options < MAQ_STAGE_OPTIONS);
                struct maq_stage_option *o = &options[t->n_options];
                if (!fill_option(o, c, wave, id_of(g, tp, redo, z), arena))
                    return false;
                struct maq_chain_option is = maq_chain_option_of(c, o->id);
                fill_curve(&costs->curves[t->n_options++], c, &is, wave->replicas);
            }
    return true;
}

bool maq_chain_costs_table(struct maq_stage_table *t, const struct maq_chain_costs *c,
                           const struct maq_chain_wave *wave, struct maq_arena *arena)
{
    struct maq_stage_option *options = MAQ_ARENA_NEW(arena, struct maq_stage_option, MAQ_STAGE_OPTIONS);
    struct table_costs *costs = MAQ_ARENA_NEW(arena, struct table_costs, 1);
    uint32_t samples = c->space->mbs[wave->mbs] * wave->replicas, gbs = (uint32_t)c->space->job.workload.gbs;
    if (!options || !costs)
        return false;
    costs->chain = c;
    *t = (struct maq_stage_table){.n_atoms = c->n_atoms,
                                  .n_kinds = c->n_pools,
                                  .waves = (gbs + samples - 1) / samples,
                                  .wave_samples = samples,
                                  .max_parts = 1,
                                  .options = options,
                                  .hops = {.first_short = 1, .first_deep = 1, .last = 1, .short_depth = 1},
                                  .sync_s = sync_s,
                                  .costs = costs};
    t->max_in_flight = t->waves;
    for (uint32_t g = 0; g < c->n_pools; g++) {
        t->available[g] = c->pools[g].count;
        t->capacity_bytes[g] = c->pools[g].capacity_bytes;
        if (c->pools_used >> g & 1 && !add_options(t, options, costs, wave, g, arena))
            return false;
    }
    return fill_hops(t, c, wave, arena);
}

double maq_chain_costs_hop_bytes(const struct maq_chain_costs *costs, uint32_t id, uint32_t mbs)
{
    return layers_of(costs, id, mbs)->hop_bytes;
}
