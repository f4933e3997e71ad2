/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strategies.c - lists the strategies of a node group by nested loops over the axes of a space, without combinations
 * that contradict themselves.
 *
 * TP stays inside a node. Where neither the document nor a list sets an axis: TP and TP x CP divide a node or are a
 * multiple of it; a rank of CP has at least 256 tokens in two equal chunks (as in planner/space/default_values.c),
 * and sequences are cut from 16,384 tokens on, where the activations of a layer outgrow its weights; EP divides the
 * experts and fits into the pool. See strategies.h.
 */
#include "planner/stages/strategies.h"

#include "base/check.h"
#include "base/str.h"
#include "plan/job_build.h"

#define LEAST_TOKENS 256
#define LONG_TOKENS 16384

struct lister {
    struct maq_chain_pool *pool;
    const struct maq_chain_space *space;
    int32_t experts; /* routed ones of a layer; 0: none */
    uint32_t room;   /* size of the list; 0: strategies are only counted */
};

static bool listed(const uint32_t *values, uint32_t n, uint32_t value)
{
    for (uint32_t i = 0; i < n; i++)
        if (values[i] == value)
            return true;
    return n == 0;
}

static bool takes_tp(const struct lister *l, uint32_t tp)
{
    return l->pool->at->per_node % tp == 0 && listed(l->space->tp, l->space->n_tp, tp);
}

static bool takes_cp(const struct lister *l, uint32_t tp, uint32_t cp)
{
    int64_t seq = l->space->job.workload.seq;
    uint32_t devices = tp * cp;
    if (cp == 1 || l->space->n_cp > 0)
        return devices <= l->pool->at->count && listed(l->space->cp, l->space->n_cp, cp);
    return devices <= l->pool->at->count &&
           (l->pool->at->per_node % devices == 0 || devices % l->pool->at->per_node == 0) && seq >= LONG_TOKENS &&
           seq % (2 * cp) == 0 && seq / cp >= LEAST_TOKENS;
}

static bool takes_ep(const struct lister *l, uint32_t ep, uint32_t etp)
{
    if (l->experts == 0)
        return ep == 1 && listed(l->space->ep, l->space->n_ep, ep);
    return (uint32_t)l->experts % ep == 0 && ep * etp <= l->pool->at->count && listed(l->space->ep, l->space->n_ep, ep);
}

/*
 * Whether a strategy contradicts itself: what is recomputed leaves nothing to offload, and its expert all-to-all
 * nothing to overlap with.
 */
static bool conflicts(const struct maq_chain_space *s, const struct maq_stage_strategy *strategy)
{
    const char *remedy;
    const struct maq_plan plan = maq_strategy_plan(s, strategy, 1);
    return maq_offload_conflict(&plan, &remedy) || maq_overlap_ep_conflict(&plan, &remedy) ||
           maq_graphs_conflict(&plan, &remedy);
}

/* Shards without copies where nothing is sharded; copies that do not divide the ranks are refused where a stage is costed. */
static void add_places(struct lister *l, struct maq_stage_strategy strategy)
{
    const struct maq_chain_space *s = l->space;
    for (uint32_t k = 0; k < (strategy.sharding == MAQ_SHARDING_NONE ? 1 : s->n_copies); k++)
        for (uint32_t a = 0; a < s->n_offload; a++) {
            strategy.copies = strategy.sharding == MAQ_SHARDING_NONE ? 1 : s->copies[k];
            strategy.offload = a;
            if (conflicts(s, &strategy))
                continue;
            if (l->room > 0)
                l->pool->strategies[l->pool->n_strategies] = strategy;
            l->pool->n_strategies++;
        }
}

static void add(struct lister *l, struct maq_stage_strategy strategy)
{
    const struct maq_chain_space *s = l->space;
    for (uint32_t redo = 0; redo < s->n_redo; redo++)
        for (uint32_t z = 0; z < s->n_zero; z++)
            for (uint32_t h = 0; h < s->n_host; h++) {
                strategy.redo = redo;
                strategy.sharding = s->zero[z];
                strategy.host = s->host[h];
                add_places(l, strategy);
            }
}

static void add_experts(struct lister *l, struct maq_stage_strategy strategy)
{
    const struct maq_chain_space *s = l->space;
    uint32_t most = l->experts > 0 ? l->pool->at->count : 1;
    for (strategy.ep = 1; strategy.ep <= most; strategy.ep++)
        for (uint32_t e = 0; e < (l->experts > 0 ? s->n_etp : 1); e++) {
            strategy.etp = l->experts > 0 && s->etp[e] > 0 ? s->etp[e] : strategy.tp;
            bool seen = false;
            for (uint32_t k = 0; k < e; k++)
                seen = seen || (s->etp[k] > 0 ? s->etp[k] : strategy.tp) == strategy.etp;
            if (!seen && takes_ep(l, strategy.ep, strategy.etp))
                add(l, strategy);
        }
}

static void list(struct lister *l, uint32_t id)
{
    const struct maq_chain_space *s = l->space;
    struct maq_stage_strategy strategy = {.pool = id};
    l->pool->n_strategies = 0;
    for (strategy.tp = 1; strategy.tp <= l->pool->at->per_node; strategy.tp++)
        for (strategy.cp = 1; takes_tp(l, strategy.tp) && strategy.cp * strategy.tp <= l->pool->at->count;
             strategy.cp++)
            for (uint32_t k = 0; takes_cp(l, strategy.tp, strategy.cp) && k < (strategy.cp > 1 ? s->n_cp_comm : 1);
                 k++) {
                strategy.cp_comm = s->cp_comm[k];
                add_experts(l, strategy);
            }
}

bool maq_strategies_list(struct maq_chain_pool *pool, const struct maq_chain_space *space, uint32_t id,
                         struct maq_arena *arena)
{
    const struct maq_module *router = maq_model_find_module(&space->job.model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT);
    struct lister l = {pool, space, router ? router->u.moe.experts : 0, 0};
    list(&l, id);
    l.room = pool->n_strategies;
    pool->strategies = MAQ_ARENA_NEW(arena, struct maq_stage_strategy, pool->n_strategies);
    if (pool->strategies && l.room > 0)
        list(&l, id);
    return pool->strategies;
}

uint32_t maq_strategies_offload(struct maq_chain_space *space, struct maq_chain_offload offload)
{
    for (uint32_t i = 0; i < space->n_offload; i++)
        if (space->offload[i].layers == offload.layers && space->offload[i].modules == offload.modules)
            return i;
    if (space->n_offload < MAQ_CHAIN_VALUES)
        space->offload[space->n_offload++] = offload;
    return space->n_offload - 1;
}

struct maq_plan maq_strategy_plan(const struct maq_chain_space *space, const struct maq_stage_strategy *strategy,
                                  uint32_t mbs)
{
    struct maq_plan p = space->job.plan;
    p.tp = (int32_t)strategy->tp;
    p.cp = (int32_t)strategy->cp;
    p.cp_comm = strategy->cp_comm;
    p.ep = (int32_t)strategy->ep;
    p.etp = (int32_t)strategy->etp;
    p.mbs = (int32_t)mbs;
    p.vp = 1;
    p.schedule = MAQ_SCHEDULE_1F1B;
    p.sharding = strategy->sharding;
    p.optimizer_offload = strategy->host;
    p.num_optimizer_instances = (int32_t)strategy->copies;
    p.offload_layers = space->offload[strategy->offload].layers ? (int32_t)space->job.model.num_layers : 0;
    p.offload_modules = space->offload[strategy->offload].modules;
    p.offload_inputs = p.offload_modules != 0;
    p.recompute = space->redo[strategy->redo].recompute;
    p.recompute_parts = space->redo[strategy->redo].parts;
    p.recompute_method = MAQ_RECOMPUTE_UNIFORM;
    p.recompute_num_layers = 0;
    return p;
}

bool maq_strategy_differs(const struct maq_chain_space *space, const struct maq_stage_strategy *strategy,
                          uint32_t replicas)
{
    return replicas * strategy->cp > 1 || strategy->sharding == space->zero[0];
}
