/* SPDX-License-Identifier: Apache-2.0 */
/*
 * bound_sums.c - prefix sums over the atoms of a branch, for every recomputation and with layers offloaded or not,
 * made when they are first asked for. They are what bounds.c takes differences of. See bounds.h.
 */
#include <math.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/schedule/schedule.h"
#include "planner/uniform/bounds.h"
#include "train/memory/stage_memory.h"
#include "train/predict.h"

static bool sum_up(struct maq_bound_sums *out, const struct maq_atoms *atoms, double redone_share, bool redone,
                   struct maq_arena *arena)
{
    double **rows[] = {&out->forward_ns,         &out->backward_ns,   &out->redone_forward_ns,
                       &out->redone_backward_ns, &out->act_bytes,     &out->redone_act_bytes,
                       &out->dense_params,       &out->expert_params, &out->narrow_params};
    for (size_t r = 0; r < MAQ_COUNT(rows); r++)
        if (!(*rows[r] = MAQ_ARENA_NEW(arena, double, (size_t)atoms->n + 1)))
            return false;
    double *transient = MAQ_ARENA_NEW(arena, double, (size_t)atoms->n * 3);
    if (!transient)
        return false;
    double *most = transient + (size_t)atoms->n * 2;
    out->transient_bytes = transient;
    out->redone_transient_bytes = transient + atoms->n;
    out->most_act_bytes = most;
    out->hop_ns = atoms->hop_ns;
    out->adds = true;
    for (uint32_t i = 0; i < atoms->n; i++) {
        const struct maq_atom *a = &atoms->at[i];
        out->adds &= !redone || (a->redone_forward_ns >= a->forward_ns && a->redone_backward_ns >= a->backward_ns);
        out->forward_ns[i + 1] = out->forward_ns[i] + a->forward_ns;
        out->backward_ns[i + 1] = out->backward_ns[i] + a->backward_ns;
        out->redone_forward_ns[i + 1] =
            out->redone_forward_ns[i] + (redone ? a->redone_forward_ns : fmin(a->forward_ns, a->redone_forward_ns));
        out->redone_backward_ns[i + 1] =
            out->redone_backward_ns[i] + (redone ? a->redone_backward_ns : fmin(a->backward_ns, a->redone_backward_ns));
        out->act_bytes[i + 1] = out->act_bytes[i] + a->act_bytes;
        out->redone_act_bytes[i + 1] =
            out->redone_act_bytes[i] + fmin(a->act_bytes, a->redone_act_bytes) * redone_share;
        transient[i] = a->transient_bytes;
        transient[atoms->n + i] =
            redone ? a->redone_transient_bytes : fmin(a->transient_bytes, a->redone_transient_bytes);
        most[i] = a->most_act_bytes;
        out->dense_params[i + 1] = out->dense_params[i] + a->dense_params;
        out->expert_params[i + 1] = out->expert_params[i] + a->expert_params;
        out->narrow_params[i + 1] = out->narrow_params[i] + a->narrow_params;
    }
    return true;
}

static void lower(double *least, double a, double b)
{
    double lower = a < b ? a : b;
    *least = *least < lower ? *least : lower;
}

/* Lowers each atom's figures to the least of the recomputations so far, recomputed or not. */
static void keep_least(struct maq_atom *least, const struct maq_atoms *atoms, double redone_share, bool first)
{
    for (uint32_t i = 0; i < atoms->n; i++) {
        const struct maq_atom *a = &atoms->at[i];
        struct maq_atom *l = &least[i];
        if (first)
            *l = *a;
        lower(&l->redone_forward_ns, a->forward_ns, a->redone_forward_ns);
        lower(&l->redone_backward_ns, a->backward_ns, a->redone_backward_ns);
        lower(&l->redone_act_bytes, a->act_bytes, a->redone_act_bytes * redone_share);
        lower(&l->redone_transient_bytes, a->transient_bytes, a->redone_transient_bytes);
        l->most_act_bytes = fmax(l->most_act_bytes, a->most_act_bytes);
    }
}

#define ENDLESS_NS 1e30 /* longer than any step, and finite: ranges are differences of sums */

/* Atoms of a recomputation that is refused: their time is so long that a bound drops every plan with it. */
static void make_endless(struct maq_atoms *atoms)
{
    for (uint32_t i = 0; i < atoms->n; i++) {
        struct maq_atom *a = &atoms->at[i];
        a->forward_ns = a->backward_ns = a->redone_forward_ns = a->redone_backward_ns = ENDLESS_NS;
    }
}

static bool conflicts(const struct maq_plan *plan)
{
    const char *remedy;
    return maq_offload_conflict(plan, &remedy) || maq_overlap_ep_conflict(plan, &remedy) ||
           maq_graphs_conflict(plan, &remedy);
}

/*
 * Sums of one recomputation. Several layers per checkpoint keep one input for all of them. What the document says may be of
 * some layers only: then its time is bounded by the less of nothing and everything recomputed, its memory by everything.
 */
static enum maq_status prepare(struct maq_branch_bounds *f, struct maq_bound_sums *out, struct maq_plan plan,
                               uint32_t recompute, struct maq_atom *least)
{
    struct maq_atoms atoms;
    const struct maq_plan *base = &f->space->base;
    int32_t value = f->space->axis[MAQ_AXIS_RECOMPUTE].at[recompute];
    bool written = value == MAQ_VALUE_AS_WRITTEN;
    if (written) {
        plan.recompute = base->recompute;
        plan.recompute_method = base->recompute_method;
        plan.recompute_num_layers = base->recompute_num_layers;
        plan.recompute_parts = base->recompute_parts;
        plan.recompute_stages = base->recompute_stages;
    }
    maq_space_apply(&plan, f->space, MAQ_AXIS_RECOMPUTE,
                    value == MAQ_RECOMPUTE_VALUE_BLOCK || value == MAQ_RECOMPUTE_VALUE_STAGES
                        ? MAQ_RECOMPUTE_VALUE_UNIFORM + 1
                        : value);
    double layers =
        plan.recompute == MAQ_RECOMPUTE_FULL && plan.recompute_num_layers > 1 ? plan.recompute_num_layers : 1;
    bool never = conflicts(&plan);
    if (never) {
        maq_space_apply(&plan, f->space, MAQ_AXIS_INPUTS, 0);
        plan.overlap_ep = MAQ_OFF;
        plan.delay_wgrad = false;
        plan.graph_scope = 0;
    }
    MAQ_TRY(maq_train_sweep_atoms(&atoms, f->sweep, &plan, f->arena));
    if (never)
        make_endless(&atoms);
    keep_least(least, &atoms, 1 / layers, recompute == 0);
    return sum_up(out, &atoms, 1 / layers, !written, f->arena) ? MAQ_OK : MAQ_NO_MEMORY;
}

/* The branch's plan with such passes. */
static struct maq_plan plan_of(const struct maq_branch_bounds *f, enum maq_passes passes)
{
    struct maq_plan plan = f->plain;
    maq_plan_passes(&plan, passes);
    return plan;
}

/* Sums of every recomputation, and of the least over all of them. */
static enum maq_status prepare_all(struct maq_branch_bounds *f, enum maq_passes passes, bool away)
{
    uint32_t n = f->space->axis[MAQ_AXIS_RECOMPUTE].n;
    struct maq_plan plan = plan_of(f, passes);
    struct maq_atom *least = MAQ_ARENA_NEW(f->arena, struct maq_atom, f->n_atoms);
    struct maq_bound_sums *sums = MAQ_ARENA_NEW(f->arena, struct maq_bound_sums, (size_t)n + 1);
    if (!least || !sums)
        return MAQ_NO_MEMORY;
    plan.offload_layers = away;
    maq_space_apply(&plan, f->space, MAQ_AXIS_INPUTS, (int32_t)f->inputs);
    for (uint32_t r = 0; r < n; r++)
        MAQ_TRY(prepare(f, &sums[r], plan, r, least));
    const struct maq_atoms all = {.at = least, .n = f->n_atoms, .hop_ns = sums[0].hop_ns};
    f->sums[passes][away] = sums;
    return sum_up(&sums[n], &all, 1, true, f->arena) ? MAQ_OK : MAQ_NO_MEMORY;
}

enum maq_status maq_branch_bounds_need(struct maq_branch_bounds *f, enum maq_passes passes, bool away)
{
    return f->sums[passes][away] ? MAQ_OK : prepare_all(f, passes, away);
}

const struct maq_bound_sums *maq_bound_sums_of(const struct maq_branch_bounds *f, const struct maq_bound_query *q,
                                               bool away)
{
    enum maq_passes passes = maq_passes_of(q->pipeline->schedule);
    if (q->recompute == MAQ_BOUND_PLAIN)
        return &f->plain_sums[passes];
    return &f->sums[passes][away][q->recompute];
}

/* What each pass takes when nothing is saved. */
static enum maq_status prepare_plain(struct maq_branch_bounds *f, enum maq_passes passes)
{
    struct maq_atoms atoms;
    const struct maq_plan plan = plan_of(f, passes);
    if (f->plain_sums[passes].forward_ns)
        return MAQ_OK;
    MAQ_TRY(maq_train_sweep_atoms(&atoms, f->sweep, &plan, f->arena));
    f->n_atoms = atoms.n;
    f->plain_passes = passes;
    return sum_up(&f->plain_sums[passes], &atoms, 1, false, f->arena) ? MAQ_OK : MAQ_NO_MEMORY;
}

enum maq_status maq_branch_bounds(struct maq_branch_bounds *out, const struct maq_search_space *space,
                                  const struct maq_job *job, const struct maq_plan *plain,
                                  struct maq_train_sweep *sweep, struct maq_arena *arena)
{
    const struct maq_job_places nowhere = {.layers_only = true};
    const struct maq_axis_values *schedules = &space->axis[MAQ_AXIS_SCHEDULE];
    struct maq_plan plan = *plain;
    *out = (struct maq_branch_bounds){.space = space,
                                      .sweep = sweep,
                                      .arena = arena,
                                      .resolved = *job,
                                      .inputs = plain->offload_modules,
                                      .alike = job->model.n_kinds == 1};
    plan.schedule = MAQ_SCHEDULE_1F1B;
    plan.vp = 1;
    maq_space_apply(&plan, space, MAQ_AXIS_INPUTS, 0);
    out->plain = plan;
    out->resolved.plan = plan;
    MAQ_TRY(maq_job_resolve(&out->resolved, &nowhere, NULL));
    MAQ_TRY(maq_job_place_groups(&out->resolved, &nowhere, arena, NULL));
    out->fixed_bytes = maq_fixed_bytes(&out->resolved);
    out->held = MAQ_ARENA_NEW(arena, struct maq_position_bound, MAQ_MAX_STAGES);
    out->positions = MAQ_ARENA_NEW(arena, uint16_t, MAQ_MAX_STAGES);
    if (!out->held || !out->positions)
        return MAQ_NO_MEMORY;
    out->resolved.plan.microbatch_group = plain->microbatch_group;
    out->microbatches = (uint32_t)out->resolved.microbatches;
    for (uint32_t g = 0; g < job->cluster.n_groups; g++)
        out->capacity_bytes = fmax(out->capacity_bytes, job->cluster.groups[g].device.mem_bytes);
    for (uint32_t i = 0; i < schedules->n; i++)
        MAQ_TRY(prepare_plain(
            out, maq_passes_of(schedules->at[i] == MAQ_VALUE_AS_WRITTEN ? space->base.schedule : schedules->at[i])));
    return MAQ_OK;
}

enum maq_status maq_sync_bound(struct maq_sync_sums *out, const struct maq_branch_bounds *f,
                               const struct maq_plan *plan)
{
    struct maq_plan plain = f->plain;
    uint32_t n = f->n_atoms;
    struct maq_atom_sync *atoms = MAQ_ARENA_NEW(f->arena, struct maq_atom_sync, n);
    double *sums = MAQ_ARENA_NEW(f->arena, double, 3 * ((size_t)n + 1));
    if (!atoms || !sums)
        return MAQ_NO_MEMORY;
    *out = (struct maq_sync_sums){sums, sums + n + 1, sums + 2 * ((size_t)n + 1), 0};
    plain.sharding = plan->sharding;
    plain.num_optimizer_instances = plan->num_optimizer_instances;
    MAQ_TRY(maq_train_sweep_syncs(atoms, n, f->sweep, &plain));
    for (uint32_t i = 0; i < n; i++) {
        out->forward_gather_ns[i + 1] = out->forward_gather_ns[i] + atoms[i].forward_gather_ns;
        out->backward_gather_ns[i + 1] = out->backward_gather_ns[i] + atoms[i].backward_gather_ns;
        out->reduce_ns[i + 1] = out->reduce_ns[i] + atoms[i].reduce_ns;
    }
    out->total_ns = out->forward_gather_ns[n] + out->backward_gather_ns[n] + out->reduce_ns[n];
    return MAQ_OK;
}
