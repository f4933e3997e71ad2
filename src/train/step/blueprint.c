/* SPDX-License-Identifier: Apache-2.0 */
/*
 * blueprint.c - assembles a blueprint: sets of blocks for each kind of device, programs of the virtual stages with
 * their buckets and pass times, transfers between positions, and the end of the step. See blueprint.h.
 */
#include "train/step/blueprint.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "lower/local.h"
#include "plan/job_build.h"
#include "train/cache.h"
#include "train/memory/cuda_graphs.h"
#include "train/memory/stage_memory.h"
#include "train/step/ddp.h"
#include "train/step/dp_comm.h"
#include "train/step/dp_interference.h"
#include "train/step/host.h"
#include "train/step/merged_pass.h"
#include "train/step/optimizer.h"

static bool splits(const struct maq_blueprint *bp)
{
    return bp->schedule->split_backward;
}

/* ---- blocks ---- */

static enum maq_status add_block(struct maq_blueprint *bp, const struct maq_layer *layer, enum maq_block_use use,
                                 uint32_t *id)
{
    if (bp->n_blocks == MAQ_MAX_BLOCKS)
        return MAQ_LIMIT;
    *id = bp->n_blocks;
    return maq_cache_block(&bp->blocks[bp->n_blocks++], bp, layer, use);
}

void maq_blueprint_select(struct maq_blueprint *bp, uint32_t stage)
{
    const struct maq_stage_place *place = &bp->job->stages[stage];
    maq_items_select(bp->items, place->group);
    maq_lower_select(&bp->lower, place->groups);
}

/*
 * Whether the last stage has a copy of the embedding's table, because its head is tied to it or multi-token prediction reads it
 * (megatron/core/models/gpt/gpt_model.py: `pre_process or mtp_process`; common/language_module: setup_embeddings_and_output_layer()).
 */
static bool has_second_table(const struct maq_blueprint *bp)
{
    const struct maq_job *job = bp->job;
    return job->model.output_apart.n_modules > 0 && job->plan.pp > 1 && !job->plan.vocab_parallel_pipeline &&
           !maq_schedule_is_v(bp->schedule->kind); /* both ends on one device */
}

static enum maq_status add_set(struct maq_blueprint *bp, uint32_t stage)
{
    const struct maq_job *job = bp->job;
    const struct maq_stage_place *place = &job->stages[stage];
    if (bp->n_sets == MAQ_MAX_SETS)
        return MAQ_LIMIT;
    struct maq_block_set *set = &bp->sets[bp->n_sets++];
    uint32_t id, kinds = job->model.n_kinds;
    set->group = place->group;
    set->groups = place->groups;
    maq_blueprint_select(bp, stage);
    set->layers = bp->n_blocks;
    for (uint32_t k = 0; k < kinds; k++)
        MAQ_TRY(add_block(bp, &job->model.kinds[k], MAQ_BLOCK_LAYER, &id));
    set->offloaded = bp->n_blocks;
    for (uint32_t k = 0; k < kinds && job->plan.offload_layers > 0; k++)
        MAQ_TRY(add_block(bp, &job->model.kinds[k], MAQ_BLOCK_OFFLOADED, &id));
    MAQ_TRY(add_block(bp, &job->model.embedding, MAQ_BLOCK_ENDS, &set->embedding));
    MAQ_TRY(add_block(bp, &job->model.output, MAQ_BLOCK_ENDS, &set->output));
    set->output_apart = set->output;
    if (has_second_table(bp))
        MAQ_TRY(add_block(bp, &job->model.output_apart, MAQ_BLOCK_ENDS, &set->output_apart));
    return job->model.mtp_layers > 0 ? add_block(bp, &job->model.mtp, MAQ_BLOCK_LAYER, &set->mtp) : MAQ_OK;
}

/* Stages alike share a set: one for a uniform cluster. */
static enum maq_status write_sets(struct maq_blueprint *bp)
{
    uint32_t pp = (uint32_t)bp->job->plan.pp;
    bp->stage_set = MAQ_ARENA_NEW(bp->arena, uint16_t, pp);
    if (!bp->stage_set)
        return MAQ_NO_MEMORY;
    for (uint32_t s = 0; s < pp; s++) {
        const struct maq_stage_place *place = &bp->job->stages[s];
        uint32_t k = 0;
        while (k < bp->n_sets &&
               !(bp->sets[k].group == place->group &&
                 (bp->sets[k].groups == place->groups ||
                  memcmp(bp->sets[k].groups, place->groups, MAQ_GROUP_COUNT * sizeof *place->groups) == 0)))
            k++;
        if (k == bp->n_sets)
            MAQ_TRY(add_set(bp, s));
        bp->stage_set[s] = (uint16_t)k;
    }
    return MAQ_OK;
}

/* ---- programs ---- */

/* Whether layer i of a virtual stage is recomputed. */
static bool is_redone(const struct maq_plan *p, const struct maq_virtual_stage *v, int32_t i)
{
    if (p->recompute == MAQ_RECOMPUTE_NONE)
        return false;
    if (v->redone_given)
        return i < v->redone_layers;
    if (p->recompute == MAQ_RECOMPUTE_FULL && p->recompute_method == MAQ_RECOMPUTE_BLOCK && p->recompute_num_layers > 0)
        return i < p->recompute_num_layers;
    return true;
}

static void add_entry(struct maq_blueprint *bp, struct maq_program *pr, uint32_t block, bool redo, uint32_t layer)
{
    const struct maq_plan *p = &bp->job->plan;
    const struct maq_block *b = bp->blocks[block];
    pr->entries[pr->n_entries++] = (struct maq_entry){.block = (uint16_t)block, .redo = redo, .layer = (uint16_t)layer};
    pr->dense_params += b->dense_params;
    pr->expert_params += b->expert_params;
    pr->adapter_params += b->adapter_params;
    pr->dense_matrices += b->dense_matrices;
    pr->expert_matrices += b->expert_matrices;
    pr->dense_narrow += b->dense_narrow;
    pr->expert_narrow += b->expert_narrow;
    pr->dense_paged += b->dense_paged;
    pr->expert_paged += b->expert_paged;
    pr->adapter_paged += b->adapter_paged;
    pr->low_rank.matrices += b->low_rank.matrices;
    pr->low_rank.moments += b->low_rank.moments;
    pr->low_rank.projections += b->low_rank.projections;
    pr->largest = fmax(pr->largest, b->largest);
    pr->plain_forward_ns += b->forward[redo]->dur_ns;
    pr->plain_backward_ns += b->backward[redo]->dur_ns;
    if (b->weight)
        pr->plain_weight_ns += b->weight->dur_ns;
    pr->experts_under_ns += b->forward[redo]->experts_under_ns + b->backward[redo]->experts_under_ns;
    int32_t group = redo ? maq_layers_per_checkpoint(p) : 1;
    pr->act_bytes += b->act_bytes[redo] / group;
}

/*
 * Adds what makes passes longer than their segments and collectives: interference of communication with compute, then
 * the host.
 */
static void add_gaps(struct maq_blueprint *bp, struct maq_program *pr, bool reduces)
{
    double waits = pr->forward_ns + pr->backward_ns + pr->weight_ns -
                   (pr->plain_forward_ns + pr->plain_backward_ns + pr->plain_weight_ns);
    maq_dp_interference_passes(bp, pr, reduces);
    pr->forward_ns += pr->forward_drag_ns;
    pr->backward_ns += pr->backward_drag_ns + pr->exchange_wait_ns;
    pr->weight_ns += pr->weight_drag_ns;
    maq_host_gaps(bp, pr, reduces);
    pr->forward_ns += pr->forward_gap_ns;
    pr->backward_ns += pr->backward_gap_ns;
    pr->weight_ns += pr->weight_gap_ns;
    /* in each pass; else only reductions behind the last ones meet the host's gap */
    if (bp->gather_every_pass || reduces)
        pr->wait_ns = (pr->wait_ns + waits) * (bp->job->microbatches + bp->job->plan.pp);
}

static void time_passes(struct maq_blueprint *bp, struct maq_program *pr, bool reduces)
{
    const bool split = splits(bp);
    pr->copies_ns = maq_sync_copies_ns(bp, pr, reduces);
    pr->forward_ns = maq_sync_forward_ns(bp, pr);
    pr->backward_ns = maq_sync_backward_ns(bp, pr, split ? MAQ_HALF_INPUT : MAQ_HALF_WHOLE, reduces);
    pr->weight_ns = split ? maq_sync_backward_ns(bp, pr, MAQ_HALF_WEIGHT, reduces) : 0;
    add_gaps(bp, pr, reduces);
}

/* The last backward pass where it alone reduces. No pass waits longer. */
static enum maq_status add_last(struct maq_blueprint *bp, struct maq_program *pr)
{
    struct maq_program *last = MAQ_ARENA_NEW(bp->arena, struct maq_program, 1);
    if (!last)
        return MAQ_NO_MEMORY;
    *last = *pr;
    time_passes(bp, last, true);
    pr->last = last;
    pr->wait_ns = last->wait_ns;
    return MAQ_OK;
}

enum maq_status maq_blueprint_program(struct maq_program *pr, struct maq_blueprint *bp,
                                      const struct maq_virtual_stage *v, bool embeds, bool outputs)
{
    const struct maq_job *job = bp->job;
    const struct maq_block_set *set = &bp->sets[bp->stage_set[v->stage]];
    maq_blueprint_select(bp, v->stage);
    pr->entries = MAQ_ARENA_NEW(bp->arena, struct maq_entry, (size_t)v->n_layers + 3 + 2 * job->model.mtp_layers);
    if (!pr->entries)
        return MAQ_NO_MEMORY;
    if (embeds)
        add_entry(bp, pr, set->embedding, false, UINT16_MAX);
    for (int32_t i = 0; i < v->n_layers; i++) {
        uint32_t layer = (uint32_t)(v->first_layer + i);
        uint32_t kind = job->model.kind_of[layer];
        bool offloaded = i < job->plan.offload_layers;
        add_entry(bp, pr, (offloaded ? set->offloaded : set->layers) + kind, is_redone(&job->plan, v, i), (uint32_t)i);
    }
    if (v->mtp)
        for (uint32_t i = 0; i < job->model.mtp_layers; i++) {
            add_entry(bp, pr, set->mtp, is_redone(&job->plan, v, v->n_layers), UINT16_MAX);
            add_entry(bp, pr, set->output, false, UINT16_MAX); /* each depth predicts with the shared head */
            pr->dense_params -= bp->blocks[set->output]->dense_params;
            pr->dense_matrices -= bp->blocks[set->output]->dense_matrices;
            pr->dense_narrow -= bp->blocks[set->output]->dense_narrow;
            pr->dense_paged -= bp->blocks[set->output]->dense_paged;
        }
    if (outputs)
        add_entry(bp, pr, embeds ? set->output : set->output_apart, false, UINT16_MAX);
    MAQ_TRY(maq_merge_passes(pr, bp));
    maq_program_transient(pr, bp);
    maq_program_graphs(pr, bp);
    MAQ_TRY(maq_blueprint_sync(bp, pr));
    time_passes(bp, pr, bp->sync_every_pass);
    return bp->sync_last_pass ? add_last(bp, pr) : MAQ_OK;
}

/* Same blocks in the same order. */
static bool holds_same(const struct maq_blueprint *bp, const struct maq_virtual_stage *a,
                       const struct maq_virtual_stage *b)
{
    if (a->n_layers != b->n_layers || a->mtp != b->mtp || bp->stage_set[a->stage] != bp->stage_set[b->stage] ||
        a->redone_layers != b->redone_layers)
        return false;
    return bp->job->model.n_kinds == 1 ||
           memcmp(&bp->job->model.kind_of[a->first_layer], &bp->job->model.kind_of[b->first_layer],
                  (size_t)a->n_layers * sizeof *bp->job->model.kind_of) == 0;
}

static enum maq_status write_programs(struct maq_blueprint *bp)
{
    const struct maq_job *job = bp->job;
    bool spread = job->plan.vocab_parallel_pipeline;
    struct seen {
        const struct maq_virtual_stage *v;
        bool embeds, outputs;
        const struct maq_program *program;
    } seen[16];
    uint32_t n_seen = 0;
    bp->programs = MAQ_ARENA_NEW(bp->arena, const struct maq_program *, job->n_virtual);
    if (!bp->programs)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < job->n_virtual; i++) {
        const struct maq_virtual_stage *v = &job->virtual_stages[i];
        /* with the vocabulary spread over the pipeline, every stage's first chunk does its part of embedding
         * and output */
        bool embeds = spread ? v->chunk == 0 : v->embedding, outputs = spread ? v->chunk == 0 : v->output;
        for (uint32_t k = n_seen; k-- > 0 && !bp->programs[i];)
            if (seen[k].embeds == embeds && seen[k].outputs == outputs && holds_same(bp, seen[k].v, v))
                bp->programs[i] = seen[k].program;
        if (bp->programs[i])
            continue;
        struct maq_program *pr = MAQ_ARENA_NEW(bp->arena, struct maq_program, 1);
        if (!pr)
            return MAQ_NO_MEMORY;
        MAQ_TRY(maq_blueprint_program(pr, bp, v, embeds, outputs));
        bp->programs[i] = pr;
        if (n_seen < sizeof seen / sizeof seen[0])
            seen[n_seen++] = (struct seen){v, embeds, outputs, pr};
    }
    return MAQ_OK;
}

/* ---- end of the step ---- */

/* Placement of two stages, by their first ranks. (The job around a layer range has only two stages: train/mixed/range_costs.c.) */
static struct maq_placement between_stages(const struct maq_blueprint *bp, uint32_t a, uint32_t b)
{
    const struct maq_job *job = bp->job;
    uint32_t first = job->stages[a].first_rank, second = job->stages[b].first_rank;
    if (job->plan.pp == 2 && job->cluster.n_groups == 1)
        return job->groups[MAQ_GROUP_PP];
    return maq_cluster_place(&job->cluster, first < second ? first : second, 2,
                             first < second ? second - first : first - second);
}

/* All-reduce of the gradients of the two tables, of the first stage and the last. */
static void write_tied(struct maq_blueprint *bp)
{
    const struct maq_job *job = bp->job;
    if (!has_second_table(bp) || job->plan.lora_rank > 0)
        return;
    double bytes = (double)job->model.vocab * (double)job->model.hidden / job->plan.tp *
                   maq_dtype_bytes((enum maq_dtype)job->plan.grad_dtype);
    struct maq_coll tied = maq_coll_make(&bp->lower, MAQ_COLL_ALL_REDUCE, MAQ_GROUP_PP, bytes);
    tied.at = between_stages(bp, 0, (uint32_t)job->plan.pp - 1);
    bp->tied_item = maq_items_coll(bp->items, &tied, MAQ_STREAM_DP);
}

/*
 * With overlap_moe_expert_parallel_comm a forward pass hides the exchange of a backward pass of another microbatch, and the other
 * way round (combined_1f1b.py of Megatron-LM). The first forward pass and the last backward pass of a step have no such partner,
 * nor have the passes that fill and drain a pipeline: on the longest path as many as fill it once. DualPipe has partners for them.
 */
double maq_hidden_exchange_ns(const struct maq_blueprint *bp, const struct maq_program *program)
{
    return maq_plan_merges_passes(&bp->job->plan) ? program->experts_under_ns : 0;
}

static double unpaired_ns(const struct maq_blueprint *bp, uint32_t stage)
{
    uint16_t at[MAQ_MAX_STAGES];
    double hidden = 0;
    uint32_t n = maq_schedule_positions(bp->schedule, stage, at);
    for (uint32_t c = 0; c < n; c++)
        hidden += maq_hidden_exchange_ns(bp, bp->programs[at[c]]);
    return nearbyint(hidden * maq_schedule_unpaired(bp->schedule->stages, bp->schedule->microbatches));
}

static enum maq_status write_step_end(struct maq_blueprint *bp)
{
    const struct maq_job *job = bp->job;
    uint32_t pp = (uint32_t)job->plan.pp;
    bp->optimizer = MAQ_ARENA_NEW(bp->arena, const struct maq_segment *, pp);
    bp->lost_ns = MAQ_ARENA_NEW(bp->arena, double, pp);
    bp->unpaired_ns = MAQ_ARENA_NEW(bp->arena, double, pp);
    if (!bp->optimizer || !bp->lost_ns || !bp->unpaired_ns)
        return MAQ_NO_MEMORY;
    struct maq_owned_params last = {.dense = -1};
    for (uint32_t s = 0; s < pp; s++) {
        const struct maq_program *programs[MAQ_MAX_STAGES];
        const uint32_t n = maq_stage_programs(programs, bp, s);
        struct maq_owned_params held = maq_owned_by(programs, n);
        if (s == 0 || bp->stage_set[s] != bp->stage_set[s - 1])
            maq_blueprint_select(bp, s);
        bool same = s > 0 && !job->plan.paged_optimizer && bp->stage_set[s] == bp->stage_set[s - 1] &&
                    memcmp(&held, &last, sizeof held) == 0;
        bp->optimizer[s] =
            same ? bp->optimizer[s - 1] : maq_blueprint_optimizer(bp, programs, n, maq_stage_migrated_bytes(bp, s));
        bp->lost_ns[s] = same ? bp->lost_ns[s - 1] : maq_dp_interference_step_ns(bp, s);
        bp->unpaired_ns[s] = unpaired_ns(bp, s);
        last = held;
    }
    maq_blueprint_select(bp, 0);
    struct maq_coll norm = {.kind = MAQ_COLL_ALL_REDUCE, .sharers = 1, .bytes = 4};
    norm.at = maq_cluster_place(&job->cluster, 0, job->cluster.devices, 1);
    if (job->plan.post_validation && pp > 1) { /* (optimizer.py: calc_local_grad_norm(), send_pre_step()) */
        struct maq_coll told = maq_coll_make(&bp->lower, MAQ_COLL_SEND_RECV, MAQ_GROUP_PP, 8);
        norm.at = maq_cluster_place(&job->cluster, 0, job->cluster.devices / pp, 1);
        told.at = between_stages(bp, 0, 1);
        bp->told_item = maq_items_coll(bp->items, &told, MAQ_STREAM_PP);
    }
    bp->norm_item = maq_items_coll(bp->items, &norm, MAQ_STREAM_DP);
    write_tied(bp);
    return bp->lower.failed || bp->items->failed ? MAQ_NO_MEMORY : MAQ_OK;
}

/*
 * Bytes of one transfer behind layer `before`, the mean of both directions. Ranks of a TP group that hold the same send a share
 * each, which the receivers gather inside the domain (Megatron-LM and DeepSpeed); that gathering, some percent of the transfer it
 * replaces, is not counted.
 */
double maq_blueprint_hop_bytes(const struct maq_blueprint *bp, uint32_t before)
{
    const struct maq_job *job = bp->job;
    const struct maq_framework *f = &job->framework;
    const struct maq_plan *p = &job->plan;
    bool scatters = p->scatter_gather_p2p && p->sequence_parallel != MAQ_ON;
    double cut = p->sequence_parallel == MAQ_ON ? (double)p->cp * p->tp : p->cp;
    double whole = p->mbs * maq_model_border(&job->model, before, job->workload.seq) / cut * bp->lower.store_bytes;
    double share = scatters ? whole / p->tp : whole, seq = (double)job->workload.seq;
    double mask = f->p2p_sends_mask ? seq * seq * bp->lower.store_bytes : 0;
    return (share + mask + (f->p2p_whole_gradients ? whole : share)) / 2;
}

/*
 * Whether all neighbouring stages are placed alike: none share a node or a domain, or all share a domain, with one kind of link
 * between them.
 */
static bool hops_alike(const struct maq_blueprint *bp)
{
    const struct maq_placement *at = &bp->job->groups[MAQ_GROUP_PP];
    bool apart = at->per_domain == 1 && at->per_node == 1;
    return bp->job->cluster.n_groups == 1 && (apart || at->domains == 1);
}

/*
 * The transfer behind a layer between two stages; the number of pipelines that send at the same time is the same for
 * all of them.
 */
static uint32_t hop_between(struct maq_blueprint *bp, uint32_t a, uint32_t b, uint32_t before)
{
    struct maq_coll hop =
        maq_coll_make(&bp->lower, MAQ_COLL_SEND_RECV, MAQ_GROUP_PP, maq_blueprint_hop_bytes(bp, before));
    if (hops_alike(bp)) {
        bool inside = hop.at.domains == 1;
        hop.at.size = 2;
        hop.at.domains = inside ? 1 : 2;
        hop.at.per_domain = hop.at.per_node = inside ? 2 : 1;
    } else {
        hop.at = between_stages(bp, a, b);
    }
    return maq_items_coll(bp->items, &hop, MAQ_STREAM_PP);
}

static double item_ns(const struct maq_blueprint *bp, uint32_t item)
{
    return item ? bp->items->at[item].dur_ns : 0;
}

double maq_blueprint_port_ns(const struct maq_blueprint *bp, uint32_t position)
{
    const struct maq_item *hop = bp->hop_item ? &bp->items->at[bp->hop_item[position]] : NULL;
    return hop && !bp->stalls && hop->coll.at.domains > 1 ? hop->dur_ns : 0;
}

/*
 * Transfers between positions: over the scale-up link where both stages share a domain, over the network where they do not. Where a
 * stage runs pairs of passes in both directions (DualPipe), all count as the slowest of them.
 */
static enum maq_status write_hops(struct maq_blueprint *bp)
{
    const struct maq_schedule *s = bp->schedule;
    uint32_t n = s->n_positions;
    bp->stalls = bp->job->plan.pp > 1 && bp->job->plan.overlap_p2p != MAQ_ON;
    if (bp->job->plan.pp == 1)
        return MAQ_OK;
    double *ns = MAQ_ARENA_NEW(bp->arena, double, n);
    uint32_t *items = MAQ_ARENA_NEW(bp->arena, uint32_t, n), slowest = 0;
    if (!ns || !items)
        return MAQ_NO_MEMORY;
    bool alike = hops_alike(bp) && !bp->job->model.pyramid;
    for (uint32_t v = 1; v < n; v++) {
        const struct maq_virtual_stage *behind = &bp->job->virtual_stages[v];
        uint32_t before = behind->first_layer > 0 ? (uint32_t)behind->first_layer - 1 : 0;
        uint16_t a, b, chunk;
        maq_schedule_locate(&a, &chunk, s->kind, s->stages, v - 1, 0);
        maq_schedule_locate(&b, &chunk, s->kind, s->stages, v, 0);
        items[v] = alike && v > 1 ? items[1] : a == b ? 0 : hop_between(bp, a, b, before);
        slowest = item_ns(bp, items[v]) > item_ns(bp, slowest) ? items[v] : slowest;
    }
    for (uint32_t v = 1; v < n; v++) {
        items[v] = s->pair ? slowest : items[v];
        ns[v] = item_ns(bp, items[v]);
    }
    bp->hop_ns = ns;
    bp->hop_item = items;
    return MAQ_OK;
}

enum maq_status maq_blueprint_blocks(struct maq_blueprint *out, const struct maq_job *job, struct maq_cache *cache,
                                     struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_blueprint *bp = out;
    *bp = (struct maq_blueprint){.job = job, .cache = cache, .items = &cache->items, .arena = arena};
    const struct maq_plan *p = &job->plan;
    bool gathers = p->sharding == MAQ_SHARDING_PARAMS && !p->gather_once;
    bp->gather_every_pass = gathers;
    bp->gather_backward = gathers && p->reshard_after_forward;
    /* a single pass is each and the last; gradients on their way to the host leave no reduction for later */
    bool once = p->reduce_once && (bp->gather_backward ? job->microbatches > 1 : !maq_sync_downloads(p));
    bp->ddp = maq_ddp_reduces(job);
    bp->sync_last_pass = (once && bp->gather_backward) || (bp->ddp && maq_ddp_waits(job));
    bp->sync_every_pass = (gathers && !once) || p->sharding == MAQ_SHARDING_GRADS;
    bp->gather_first = !gathers && p->sharding != MAQ_SHARDING_NONE && p->overlap_param_gather == MAQ_ON;
    MAQ_TRY(maq_cache_schedule(bp, diag));
    maq_items_select(&cache->items, job->stages[0].group);
    maq_lower_init(&bp->lower, job, &cache->items, &cache->arena);
    MAQ_TRY(write_sets(bp));
    maq_blueprint_select(bp, 0);
    return write_hops(bp);
}

enum maq_status maq_blueprint_build(struct maq_blueprint *out, const struct maq_job *job, struct maq_cache *cache,
                                    struct maq_arena *arena, struct maq_diag *diag)
{
    MAQ_TRY(maq_blueprint_blocks(out, job, cache, arena, diag));
    MAQ_TRY(write_programs(out));
    MAQ_TRY(maq_blueprint_order(out, diag));
    maq_blueprint_select(out, 0);
    out->nccl_bytes = maq_communicator_bytes(job);
    return write_step_end(out);
}
