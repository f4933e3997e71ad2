/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cache.c - hash tables of blocks and schedule skeletons by the parts of a plan that they depend on.
 *
 * A block's key is everything its lowering reads: the degrees, the switches of the plan that reach inside a
 * layer, and the placements of the groups that communicate there. Keys are zero-padded values compared byte
 * for byte.
 */
#include "train/cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/hash.h"
#include "plan/job_build.h"

struct block_key {
    const struct maq_layer *layer;
    double capacity, imbalance;
    struct maq_placement groups[7];
    int32_t tp, cp, ep, etp, mbs, cp_a2a, lora_rank, vocab_cut;
    uint32_t recompute_parts, offload_modules, lora_sites;
    int32_t flex_sms;
    uint8_t sp, cp_comm, recompute, precision, dispatcher, overlap_ep, overlap_tp, attention, graphs, fused, wgrad,
        grad_dtype;
    uint8_t use, split, merged, late, shared_overlap, loss_fusion, softmax_fusion, softmax_fp32, op_fuser, graph_scope,
        fp8_output, fp8_attention, dora, pads_experts;
    uint32_t galore_sites;
    int32_t galore_rank;
    uint16_t node_group;
};

struct maq_cached_block {
    struct block_key key;
    struct maq_block block;
};

struct maq_block_slot {
    uint64_t hash; /* compared first: blocks are cold memory */
    struct maq_cached_block *block;
};

enum maq_status maq_costs_of_job(struct maq_costs *out, struct maq_measured **measured, const struct maq_job *job,
                                 struct maq_diag *diag)
{
    bool asked = job->cost_provider == MAQ_PROVIDER_NONE || job->cost_provider == MAQ_PROVIDER_MEASURED;
    *measured = NULL;
    if (job->measured && asked)
        MAQ_TRY(maq_measured_open(measured, job->measured, diag));
    *out = (struct maq_costs){.best = (enum maq_provider)job->cost_provider, .measured = *measured};
    return MAQ_OK;
}

/*
 * The cost chain is owned together with the items that it priced. Every entry point (a prediction, a graph, a sweep of
 * any number of plans) has one cache, so each opens the file once, and a result never mixes two states of it.
 */
static enum maq_status init(struct maq_cache *cache, const struct maq_job *job, struct maq_schedules *skeletons,
                            struct maq_diag *diag)
{
    *cache = (struct maq_cache){.skeletons = skeletons};
    maq_arena_init(&cache->arena, 0);
    if (!skeletons)
        return maq_no_memory(diag, "a cache of schedules");
    enum maq_status status = maq_costs_of_job(&cache->costs, &cache->measured, job, diag);
    maq_items_init(&cache->items, &job->cluster, &cache->costs, &cache->arena);
    return status;
}

enum maq_status maq_cache_init(struct maq_cache *cache, const struct maq_job *job, struct maq_diag *diag)
{
    return init(cache, job, maq_schedules_new(), diag);
}

enum maq_status maq_cache_init_beside(struct maq_cache *cache, const struct maq_job *job, const struct maq_cache *other,
                                      struct maq_diag *diag)
{
    return init(cache, job, maq_schedules_share(other->skeletons), diag);
}

static void give_schedules(struct maq_cache *cache)
{
    while (cache->n_schedules > 0)
        maq_schedules_give(cache->skeletons, cache->schedules[--cache->n_schedules]);
}

void maq_cache_fini(struct maq_cache *cache)
{
    give_schedules(cache);
    maq_schedules_free(cache->skeletons);
    free(cache->blocks);
    free(cache->schedules);
    free(cache->finish);
    maq_arena_fini(&cache->arena);
    maq_measured_close(cache->measured);
    *cache = (struct maq_cache){0};
}

void maq_cache_forget(struct maq_cache *cache)
{
    const struct maq_slowdown *slowdown = cache->items.slowdown;
    maq_arena_fini(&cache->arena);
    memset(cache->blocks, 0, cache->block_slots * sizeof *cache->blocks);
    cache->n_blocks = 0;
    give_schedules(cache);
    maq_items_init(&cache->items, cache->items.cluster, cache->items.costs, &cache->arena);
    cache->items.slowdown = slowdown;
}

double *maq_cache_finish(struct maq_cache *cache, size_t n)
{
    if (n > cache->finish_size) {
        double *p = realloc(cache->finish, n * sizeof *p);
        if (!p)
            return NULL;
        cache->finish = p;
        cache->finish_size = n;
    }
    return cache->finish;
}

_Static_assert(sizeof(struct block_key) % 8 == 0, "hashed by words");

static void fill_key(struct block_key *k, const struct maq_blueprint *bp, const struct maq_layer *layer,
                     enum maq_block_use use)
{
    static const enum maq_group_kind used[7] = {MAQ_GROUP_TP, MAQ_GROUP_CP,  MAQ_GROUP_CP_INNER, MAQ_GROUP_CP_OUTER,
                                                MAQ_GROUP_EP, MAQ_GROUP_ETP, MAQ_GROUP_PP};
    const struct maq_plan *p = &bp->job->plan;
    memset(k, 0, sizeof *k);
    k->layer = layer;
    k->capacity = p->capacity_factor;
    k->pads_experts = maq_plan_knows_expert_rows(p);
    k->imbalance = p->imbalance;
    for (int i = 0; i < 7; i++) /* stages exchange inside a layer only where they share the vocabulary */
        if (used[i] != MAQ_GROUP_PP || p->vocab_parallel_pipeline)
            memcpy(&k->groups[i], &bp->lower.groups[used[i]], sizeof k->groups[i]);
    k->tp = p->tp;
    k->cp = p->cp;
    k->ep = p->ep;
    k->etp = p->etp;
    k->mbs = p->mbs;
    k->cp_a2a = p->cp_a2a;
    k->lora_rank = p->lora_rank;
    k->lora_sites = p->lora_sites;
    k->vocab_cut = (int32_t)bp->lower.vocab_cut;
    k->recompute_parts = p->recompute_parts;
    k->offload_modules = p->offload_modules;
    k->flex_sms = p->flex_sms;
    k->graph_scope = use == MAQ_BLOCK_ENDS || p->cuda_graphs ? 0 : (uint8_t)p->graph_scope;
    k->sp = (uint8_t)p->sequence_parallel;
    k->cp_comm = (uint8_t)p->cp_comm;
    k->recompute = (uint8_t)(p->recompute | p->selective_ac << 4);
    k->precision = (uint8_t)(p->precision | p->base_quantization << 4);
    k->fp8_output = p->fp8_output;
    k->fp8_attention = p->fp8_attention;
    k->dora = p->use_dora;
    k->galore_rank = p->galore_rank;
    k->galore_sites = p->galore_sites;
    k->dispatcher = (uint8_t)p->dispatcher;
    k->overlap_ep = (uint8_t)p->overlap_ep;
    k->merged = maq_plan_merges_passes(p);
    k->late = k->merged && p->delay_wgrad;
    k->overlap_tp = (uint8_t)p->overlap_tp;
    k->attention = (uint8_t)bp->lower.attention;
    k->graphs = p->cuda_graphs;
    k->shared_overlap = p->overlap_shared_experts && layer->moe;
    k->fused = p->fused_kernels;
    k->loss_fusion = (uint8_t)((p->loss_fusion ? 1 : 0) | p->loss_function << 1);
    k->softmax_fusion = p->softmax_fusion;
    k->softmax_fp32 = p->softmax_fp32;
    k->op_fuser = p->op_fuser;
    k->wgrad = p->weight_grad_fusion;
    k->grad_dtype = (uint8_t)p->grad_dtype;
    k->node_group = bp->items->group;
    k->use = (uint8_t)use;
    k->split = bp->schedule->split_backward;
}

static bool grow_blocks(struct maq_cache *c)
{
    uint32_t slots = c->block_slots ? c->block_slots * 2 : 64;
    struct maq_block_slot *table = calloc(slots, sizeof *table);
    if (!table)
        return false;
    for (uint32_t i = 0; i < c->block_slots; i++) {
        if (!c->blocks[i].block)
            continue;
        uint32_t at = (uint32_t)c->blocks[i].hash & (slots - 1);
        while (table[at].block)
            at = (at + 1) & (slots - 1);
        table[at] = c->blocks[i];
    }
    free(c->blocks);
    c->blocks = table;
    c->block_slots = slots;
    return true;
}

enum maq_status maq_cache_block(const struct maq_block **out, struct maq_blueprint *bp, const struct maq_layer *layer,
                                enum maq_block_use use)
{
    struct maq_cache *c = bp->cache;
    struct block_key key;
    fill_key(&key, bp, layer, use);
    if (c->n_blocks * 2 >= c->block_slots && !grow_blocks(c))
        return MAQ_NO_MEMORY;
    uint64_t hash = maq_hash_words(&key, sizeof key);
    uint32_t at = (uint32_t)hash & (c->block_slots - 1);
    for (struct maq_block_slot *s; (s = &c->blocks[at])->block; at = (at + 1) & (c->block_slots - 1))
        if (s->hash == hash && memcmp(&s->block->key, &key, sizeof key) == 0) {
            *out = &s->block->block;
            return MAQ_OK;
        }
    struct maq_cached_block *b = MAQ_ARENA_NEW(&c->arena, struct maq_cached_block, 1);
    if (!b)
        return MAQ_NO_MEMORY;
    b->key = key;
    MAQ_TRY(maq_block_lower(&b->block, &bp->lower, layer, use, bp->schedule->split_backward));
    c->blocks[at] = (struct maq_block_slot){hash, b};
    c->n_blocks++;
    *out = &b->block;
    return MAQ_OK;
}

static bool keep_schedule(struct maq_cache *c, const struct maq_shared_schedule *schedule)
{
    if (c->n_schedules == c->schedule_slots) {
        uint32_t slots = c->schedule_slots ? c->schedule_slots * 2 : 16;
        void *p = realloc(c->schedules, slots * sizeof(struct maq_shared_schedule *));
        if (!p)
            return false;
        c->schedules = p;
        c->schedule_slots = slots;
    }
    c->schedules[c->n_schedules++] = schedule;
    return true;
}

enum maq_status maq_cache_schedule(struct maq_blueprint *bp, struct maq_diag *diag)
{
    struct maq_cache *c = bp->cache;
    const struct maq_plan *p = &bp->job->plan;
    const struct maq_schedule_spec spec = {.kind = p->schedule,
                                           .stages = (uint32_t)p->pp,
                                           .chunks = maq_schedule_chunks(p->schedule, (uint32_t)p->vp),
                                           .microbatches = (uint32_t)bp->job->microbatches,
                                           .group = (uint32_t)p->microbatch_group,
                                           .limit = (uint32_t)p->zb_limit};
    const struct maq_shared_schedule *found = NULL;
    for (uint32_t i = c->n_schedules; i-- > 0 && !found;) /* the latest first: plans come in families */
        if (memcmp(&c->schedules[i]->spec, &spec, sizeof spec) == 0)
            found = c->schedules[i];
    if (!found) {
        MAQ_TRY(maq_schedules_take(&found, c->skeletons, &spec, diag));
        if (!keep_schedule(c, found)) {
            maq_schedules_give(c->skeletons, found);
            return MAQ_NO_MEMORY;
        }
    }
    bp->schedule = &found->schedule;
    return MAQ_OK;
}
