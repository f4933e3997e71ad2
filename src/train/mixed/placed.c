/* SPDX-License-Identifier: Apache-2.0 */
/*
 * placed.c - maq_mixed_place(): devices and costs of a mixed plan on the node groups of a job, by the cost chain.
 *
 * A stage costs what the same virtual stage costs in a prediction of a job of its own (train/mixed/range_costs.h): its passes
 * with the host's gaps and the collectives inside, its exposed reduction, its update, its memory. Replica r of every stage makes
 * a *column*, a pipeline of its own with its share of the micro batches; equal columns are simulated once (placed_step.c).
 *
 * Devices of a node group are taken in the order of pipelines, stages and replicas, each replica the first free slots that it
 * fits into (train/mixed/device_slots.h). A transfer between stages depends on its bytes and on their devices; between node
 * groups it goes over the slower of both networks, or over the link between them.
 *
 * Gradients of a layer are summed over all replicas that hold it. On one node group that is the reduction of the stage. Where
 * replicas lie on several, a ring of R ranks crosses the slowest border of them all, and every rank sends 2 (R - 1) / R of its
 * gradients over it, all TP and CP ranks of a replica at once; it is fully exposed.
 */
#include "train/mixed/placed.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "plan/mixed/codes.h"
#include "plan/mixed/mixed_plan.h"
#include "train/atoms.h"

struct placed_owner {
    struct maq_mixed_placed result; /* first: a pointer to it is one to the owner */
    struct maq_arena arena;
};

/* ---- node groups ---- */

static enum maq_status open_slots(struct maq_placing *p)
{
    p->slots = MAQ_ARENA_NEW(p->arena, struct maq_device_slots, p->pools.n);
    for (uint32_t i = 0; p->slots && i < p->pools.n; i++)
        if (!maq_device_slots_open(&p->slots[i], &p->pools.at[i], p->arena))
            p->slots = NULL;
    return p->slots ? MAQ_OK : maq_no_memory(p->diag, "the plan");
}

/* A replica's group is a node group's name or its number; where it has none, the first of the device. */
static bool find_pool(uint32_t *out, const struct maq_placing *p, const struct maq_mixed_replica *r)
{
    for (uint32_t g = 0; g < p->pools.n; g++) {
        const struct maq_node_group *group = &p->job->cluster.groups[g];
        char number[16];
        snprintf(number, sizeof number, "%u", g);
        bool named = !r->group || maq_str_is(maq_str_of(r->group), number) ||
                     (group->name && maq_str_is(maq_str_of(r->group), group->name));
        *out = g;
        if (named && maq_str_is(maq_str_of(group->device.name), r->members[0].device))
            return true;
    }
    return false;
}

/* ---- columns ---- */

static uint32_t devices_of(const struct maq_mixed_replica *r)
{
    return r->tp * r->cp;
}

static enum maq_status slot_stage(struct maq_placing *p, struct maq_placed_column *columns, uint32_t pipeline,
                                  uint32_t stage)
{
    const struct maq_mixed_stage *s = &p->plan->pipelines[pipeline].stages[stage];
    for (uint32_t j = 0; j < s->n_replicas; j++) {
        struct maq_placed_slot *slot = &columns[j].slots[stage];
        *slot = (struct maq_placed_slot){.plan = s, .replica = &s->replicas[j]};
        if (!find_pool(&slot->pool, p, slot->replica))
            return maq__placed_cannot(p->diag, "devices and groups go by the job's names",
                                      "the cluster has no such node group");
    }
    return MAQ_OK;
}

/* Takes devices for the replicas of a stage; equal replicas in a row are taken together. */
static enum maq_status take_stage(struct maq_placing *p, struct maq_placed_column *columns, uint32_t n, uint32_t stage,
                                  bool backwards)
{
    uint32_t *first = MAQ_ARENA_NEW(p->arena, uint32_t, n);
    if (!first)
        return maq_no_memory(p->diag, "the plan");
    for (uint32_t j = 0, end; j < n; j = end) {
        const struct maq_placed_slot *slot = &columns[j].slots[stage];
        for (end = j; end < n && columns[end].slots[stage].pool == slot->pool &&
                      devices_of(columns[end].slots[stage].replica) == devices_of(slot->replica);)
            end++;
        maq_device_slots_take_stage(&p->slots[slot->pool], devices_of(slot->replica), end - j, first);
        for (uint32_t i = j; i < end; i++) {
            columns[i].slots[stage].taken[backwards] = first[i - j];
            if (first[i - j] == UINT32_MAX)
                return maq__placed_cannot(p->diag, NULL, "it takes more devices than a node group has");
        }
    }
    return MAQ_OK;
}

/* Takes devices for the replicas of a pipeline's stages; virtual stages share those of their stage. */
static enum maq_status take_pipeline(struct maq_placing *p, struct maq_placed_column *columns, uint32_t n,
                                     bool backwards)
{
    MAQ_ASSERT(columns->devices > 0); /* the first stage has devices of its own */
    for (uint32_t k = 0; k < columns->devices; k++)
        MAQ_TRY(take_stage(p, columns, n, backwards ? columns->devices - 1 - k : k, backwards));
    for (uint32_t i = columns->devices; i < columns->n; i++)
        for (uint32_t j = 0; j < n; j++)
            columns[j].slots[i].taken[backwards] = columns[j].slots[i % columns->devices].taken[backwards];
    return MAQ_OK;
}

static enum maq_status take_devices(struct maq_placing *p, bool backwards)
{
    MAQ_TRY(open_slots(p));
    for (uint32_t k = 0; k < p->plan->n_pipelines; k++) {
        uint32_t pipeline = backwards ? p->plan->n_pipelines - 1 - k : k, first = 0;
        for (uint32_t i = 0; i < pipeline; i++)
            first += p->plan->pipelines[i].stages[0].n_replicas;
        MAQ_TRY(take_pipeline(p, &p->columns[first], p->plan->pipelines[pipeline].stages[0].n_replicas, backwards));
    }
    return MAQ_OK;
}

static enum maq_status slot_pipeline(struct maq_placing *p, uint32_t pipeline)
{
    const struct maq_mixed_pipeline *line = &p->plan->pipelines[pipeline];
    struct maq_placed_column *columns = &p->columns[p->n_columns];
    uint32_t own = 0;
    for (uint32_t i = 0; i < line->n_stages; i++)
        own += line->stages[i].on_devices_of < 0;
    for (uint32_t j = 0; j < line->stages[0].n_replicas; j++) {
        columns[j] =
            (struct maq_placed_column){.pipeline = pipeline,
                                       .column = j,
                                       .alike = 1,
                                       .n = line->n_stages,
                                       .devices = own,
                                       .microbatches = maq_mixed_replica_microbatches(p->plan, pipeline, 0, j),
                                       .slots = MAQ_ARENA_NEW(p->arena, struct maq_placed_slot, line->n_stages)};
        if (!columns[j].slots)
            return maq_no_memory(p->diag, "the plan");
    }
    for (uint32_t i = 0; i < line->n_stages; i++)
        MAQ_TRY(slot_stage(p, columns, pipeline, i));
    p->n_columns += line->stages[0].n_replicas;
    return MAQ_OK;
}

static const struct maq_placed_slot *slot_with(const struct maq_placed_column *c, uint32_t layer)
{
    uint32_t i = 0;
    while (layer >= c->slots[i].plan->first_layer + c->slots[i].plan->layers)
        i++;
    return &c->slots[i];
}

/* Of the replicas on a slot's pool that hold its first layer, those in the domain of the first device that they take. */
static uint32_t count_together(const struct maq_placing *p, const struct maq_placed_slot *slot, bool backwards)
{
    uint32_t room = p->slots[slot->pool].room, lowest = UINT32_MAX, n = 0;
    for (uint32_t i = 0; i < p->n_columns; i++) {
        const struct maq_placed_slot *other = slot_with(&p->columns[i], slot->plan->first_layer);
        if (other->pool == slot->pool && other->taken[backwards] / room < lowest)
            lowest = other->taken[backwards] / room;
    }
    for (uint32_t i = 0; i < p->n_columns; i++) {
        const struct maq_placed_slot *other = slot_with(&p->columns[i], slot->plan->first_layer);
        n += other->pool == slot->pool && other->taken[backwards] / room == lowest;
    }
    return n;
}

/* How many replicas hold its first layer, and where. */
static void count_replicas(const struct maq_placing *p, struct maq_placed_column *of, uint32_t stage)
{
    struct maq_placed_slot *slot = &of->slots[stage];
    for (uint32_t i = 0; i < p->n_columns; i++) {
        const struct maq_placed_slot *other = slot_with(&p->columns[i], slot->plan->first_layer);
        slot->replicas += other->pool == slot->pool;
        slot->elsewhere += other->pool != slot->pool;
        if (other->pool == slot->pool && p->columns[i].pipeline == of->pipeline)
            slot->devices += devices_of(slot->replica);
    }
    for (int backwards = 0; backwards < 2; backwards++)
        slot->together[backwards] = count_together(p, slot, backwards);
}

static bool same_slot(const struct maq_placed_slot *a, const struct maq_placed_slot *b)
{
    const struct maq_mixed_replica *x = a->replica, *y = b->replica;
    return a->pool == b->pool && x->tp == y->tp && x->cp == y->cp && x->ep == y->ep && x->etp == y->etp &&
           x->cp_comm == y->cp_comm && x->sequence_parallel == y->sequence_parallel;
}

/* Merges equal columns of a pipeline. */
static void merge_columns(struct maq_placing *p)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->n_columns; i++) {
        struct maq_placed_column *c = &p->columns[i], *found = NULL;
        for (uint32_t k = 0; k < n && !found; k++) {
            struct maq_placed_column *o = &p->columns[k];
            bool alike = o->pipeline == c->pipeline && o->microbatches == c->microbatches;
            for (uint32_t s = 0; alike && s < c->n; s++)
                alike = same_slot(&c->slots[s], &o->slots[s]);
            found = alike ? o : NULL;
        }
        if (found)
            found->alike++;
        else
            p->columns[n++] = *c;
    }
    p->n_columns = n;
}

/* ---- costs ---- */

static struct maq_plan plan_of(const struct maq_placing *p, const struct maq_placed_column *c,
                               const struct maq_placed_slot *slot)
{
    const struct maq_mixed_stage *s = slot->plan;
    const struct maq_mixed_replica *r = slot->replica;
    struct maq_plan plan = p->job->plan;
    bool some = s->recompute == MAQ_RECOMPUTE_FULL && s->recompute_layers > 0 && s->recompute_layers < s->layers;
    plan.tp = (int32_t)r->tp;
    plan.cp = (int32_t)r->cp;
    plan.cp_comm = r->cp_comm;
    plan.ep = (int32_t)r->ep;
    plan.etp = r->etp > 0 ? (int32_t)r->etp : (int32_t)r->tp;
    plan.mbs = (int32_t)p->plan->micro_batch;
    plan.sequence_parallel = r->tp > 1 && r->sequence_parallel ? MAQ_ON : MAQ_OFF;
    plan.overlap_ep = maq__placed_overlap_ep(p);
    if (c->n > c->devices && plan.overlap_p2p == MAQ_AUTO) /* as Megatron-LM's interleaved schedule */
        plan.overlap_p2p = MAQ_ON;
    plan.sharding = s->sharding;
    plan.optimizer_offload = s->optimizer_offload;
    plan.num_optimizer_instances = s->optimizer_instances > 1 ? (int32_t)s->optimizer_instances : 1;
    plan.offload_layers = (int32_t)s->offload_layers;
    plan.offload_modules = s->offload_modules;
    plan.offload_inputs = s->offload_modules != 0;
    plan.recompute = s->recompute;
    plan.recompute_parts = s->recompute == MAQ_RECOMPUTE_SELECTIVE ? s->recompute_parts : 0;
    plan.recompute_method = some ? MAQ_RECOMPUTE_BLOCK : MAQ_RECOMPUTE_UNIFORM;
    plan.recompute_num_layers = some ? (int32_t)s->recompute_layers : 0;
    return plan;
}

/*
 * Where the groups of a slot's stage begin, whose replicas are priced as lying one behind the other. Where those of several
 * pipelines are in several domains, the row begins so that the first domain has as many of them as it does have.
 */
static uint32_t first_of(const struct maq_placing *p, const struct maq_placed_slot *slot)
{
    uint32_t each = devices_of(slot->replica), room = p->slots[slot->pool].room,
             near = slot->together[slot->backwards] * each;
    bool spread = p->plan->n_pipelines > 1 && slot->together[slot->backwards] < slot->replicas && near <= room;
    return spread ? room - near : maq_device_slots_first(slot->first_device, each, slot->replicas);
}

/* The update of a device with all its stages, by the costs of the first of them. */
static enum maq_status cost_update(struct maq_placed_slot *slot, const struct maq_range_costs *range_costs,
                                   const struct maq_placed_column *c, uint32_t device)
{
    struct maq_atom_range ranges[MAQ_MAX_STAGES];
    uint32_t n = 0;
    for (uint32_t k = device; k < c->n; k += c->devices) {
        const struct maq_mixed_stage *s = c->slots[k].plan;
        ranges[n++] = (struct maq_atom_range){s->first_layer, s->first_layer + s->layers};
    }
    return maq_range_costs_update(&slot->cost.update_s, range_costs, ranges, n);
}

/* Behind the reason. */
static enum maq_status cannot_run(const struct maq_placing *p, const struct maq_mixed_stage *s)
{
    char why[96];
    snprintf(why, sizeof why, "a stage with layers %u to %u cannot be run so on its node group", s->first_layer,
             s->first_layer + s->layers - 1);
    return maq__placed_cannot(p->diag, NULL, why);
}

static enum maq_status cost_slot(struct maq_placing *p, const struct maq_placed_column *c, uint32_t stage)
{
    struct maq_placed_slot *slot = &c->slots[stage];
    const struct maq_mixed_stage *s = slot->plan;
    struct maq_range_costs range_costs;
    struct maq_plan plan = plan_of(p, c, slot);
    uint32_t first = first_of(p, slot);
    const struct maq_range_stage at = {slot->replicas, c->microbatches, first, c->n == 1};
    enum maq_status status = maq_range_costs_begin(&range_costs, p->pools.at[slot->pool].sweep, &plan, &at, p->diag);
    if (status == MAQ_BAD_INPUT || status == MAQ_LIMIT)
        return cannot_run(p, s);
    MAQ_TRY(status);
    status = maq_range_costs_of(&slot->cost, &range_costs, s->first_layer, s->first_layer + s->layers, false);
    if (status == MAQ_OK && stage < c->devices)
        status = cost_update(slot, &range_costs, c, stage);
    slot->context_bytes = range_costs.context_bytes;
    slot->hop_bytes = range_costs.hop_bytes;
    slot->tied_bytes = range_costs.tied_bytes;
    slot->grad_bytes = range_costs.grad_bytes;
    slot->stalls = range_costs.stalls;
    slot->reduces_beside = range_costs.reduces_beside;
    maq_range_costs_end(&range_costs);
    return status;
}

/* ---- links ---- */

static void reduce_across(const struct maq_placing *p, struct maq_placed_slot *slot)
{
    double ranks = slot->replicas + slot->elsewhere, bytes = slot->cost.params * slot->grad_bytes;
    for (uint32_t i = 0; slot->elsewhere > 0 && i < p->n_columns; i++) {
        const struct maq_placed_slot *other = slot_with(&p->columns[i], slot->plan->first_layer);
        if (other->pool != slot->pool)
            slot->across_s =
                fmax(slot->across_s, maq_pools_between_s(&p->pools, slot->pool, other->pool,
                                                         2 * (ranks - 1) / ranks * bytes, devices_of(slot->replica)));
    }
}

/* ---- a plan ---- */

/* Simulates the plan with devices taken from the front of the pipelines, or from their back. */
static enum maq_status play(struct maq_mixed_placed *out, struct placed_owner *o, struct maq_placing *p, bool backwards)
{
    struct maq_mixed_placed_stage *list = MAQ_ARENA_NEW(&o->arena, struct maq_mixed_placed_stage, out->n_stages);
    if (!list)
        return maq_no_memory(p->diag, "the plan");
    for (uint32_t i = 0; i < p->n_columns; i++)
        for (uint32_t s = 0; s < p->columns[i].n; s++) {
            struct maq_placed_slot *slot = &p->columns[i].slots[s];
            slot->backwards = backwards;
            slot->first_device = slot->taken[backwards];
            slot->across_s = 0;
            MAQ_TRY(cost_slot(p, &p->columns[i], s));
        }
    for (uint32_t i = 0; i < p->n_columns; i++)
        for (uint32_t s = 0; s < p->columns[i].n; s++)
            reduce_across(p, &p->columns[i].slots[s]);
    out->stages = list;
    return maq__placed_simulate(out, list, p);
}

static enum maq_status place(struct placed_owner *o, struct maq_placing *p)
{
    uint32_t columns = 0, stages = 0;
    MAQ_TRY(maq__placed_check(p));
    for (uint32_t i = 0; i < p->plan->n_pipelines; i++)
        columns += p->plan->pipelines[i].stages[0].n_replicas;
    p->columns = MAQ_ARENA_NEW(p->arena, struct maq_placed_column, columns);
    if (!p->columns)
        return maq_no_memory(p->diag, "the plan");
    MAQ_TRY(maq_pools_open(&p->pools, p->job, p->diag));
    for (uint32_t i = 0; i < p->plan->n_pipelines; i++)
        MAQ_TRY(slot_pipeline(p, i));
    MAQ_TRY(take_devices(p, false));
    MAQ_TRY(take_devices(p, true));
    for (uint32_t i = 0; i < p->n_columns; i++)
        for (uint32_t s = 0; s < p->columns[i].n; s++)
            count_replicas(p, &p->columns[i], s);
    merge_columns(p);
    for (uint32_t i = 0; i < p->n_columns; i++)
        stages += p->columns[i].n;
    struct maq_mixed_placed other = {.n_stages = stages};
    o->result.n_stages = stages;
    MAQ_TRY(play(&o->result, o, p, false));
    MAQ_TRY(play(&other, o, p, true));
    if (other.step_s < o->result.step_s)
        o->result = other;
    return MAQ_OK;
}

enum maq_status maq_mixed_place(struct maq_mixed_placed **out, const struct maq_mixed_plan *plan,
                                const struct maq_loaded_job *open, struct maq_diag *diag)
{
    return maq__mixed_place_on(out, plan, maq_job_get(open), diag);
}

enum maq_status maq__mixed_place_on(struct maq_mixed_placed **out, const struct maq_mixed_plan *plan,
                                    const struct maq_job *job, struct maq_diag *diag)
{
    struct placed_owner *o = maq__calloc(sizeof *o);
    struct maq_arena scratch;
    if (!o)
        return maq_no_memory(diag, "the plan");
    maq_arena_init(&o->arena, 0);
    maq_arena_init(&scratch, 0);
    struct maq_placing p = {
        .plan = plan, .job = job, .n_atoms = maq_atoms_of_model(&job->model), .arena = &scratch, .diag = diag};
    enum maq_status status = place(o, &p);
    maq_pools_close(&p.pools);
    maq_arena_fini(&scratch);
    if (status == MAQ_OK)
        *out = &o->result;
    else
        maq_mixed_placed_free(&o->result);
    return status;
}

void maq_mixed_placed_free(struct maq_mixed_placed *placed)
{
    struct placed_owner *o = (struct placed_owner *)placed;
    if (!o)
        return;
    maq_arena_fini(&o->arena);
    free(o);
}
