/* SPDX-License-Identifier: Apache-2.0 */
/*
 * branches.c - enumerates the combinations of branch axes, drops repetitions, and bounds each branch by the work of
 * one microbatch (the equation of branches.h).
 */
#include "planner/uniform/branches.h"

#include <string.h>

#include "base/check.h"
#include "base/str.h"

void maq_branch_plan(struct maq_plan *out, const struct maq_search_space *space, const struct maq_search_branch *branch)
{
    *out = space->base;
    for (int a = 0; a < MAQ_AXIS_BRANCHES; a++)
        maq_space_apply(out, space, (enum maq_axis)a, branch->value[a]);
    if (space->axis[MAQ_AXIS_SCHEDULE].at[0] != MAQ_VALUE_AS_WRITTEN)
        out->schedule = MAQ_SCHEDULE_1F1B;
    if (space->axis[MAQ_AXIS_VP].at[0] != MAQ_VALUE_AS_WRITTEN)
        out->vp = 1;
    if (space->axis[MAQ_AXIS_LAYOUT].at[0] != MAQ_VALUE_AS_WRITTEN)
        out->layout = MAQ_STR("balanced");
    out->sharding = MAQ_SHARDING_NONE;
    out->num_optimizer_instances = 1;
    out->recompute = MAQ_RECOMPUTE_NONE;
    out->recompute_parts = 0;
    out->offload_layers = 0;
    out->optimizer_offload = 0;
}

int32_t maq_branch_microbatches(const struct maq_job *job, const struct maq_plan *plan)
{
    int64_t dp = job->cluster.devices / ((int64_t)plan->tp * plan->cp * plan->pp);
    return (int32_t)(job->workload.gbs / (dp * plan->mbs));
}

/* ---- which branches there are ---- */

static int32_t etp_of(const struct maq_plan *p)
{
    return p->etp > 0 ? p->etp : p->ep > 1 ? 1 : p->tp;
}

static bool degrees_fit(const struct maq_plan *p, const struct maq_job *job)
{
    int64_t model = (int64_t)p->tp * p->cp * p->pp, devices = job->cluster.devices;
    if (devices % model != 0 || (p->dp > 0 && p->dp != devices / model))
        return false;
    int64_t stage = devices / p->pp, per_step = devices / model * p->mbs;
    return job->workload.gbs % per_step == 0 && stage % ((int64_t)etp_of(p) * p->ep) == 0;
}

static int32_t degree_of(const struct maq_plan *p, const struct maq_job *job, struct maq_str dim)
{
    return maq_str_is(dim, "tp")   ? p->tp
           : maq_str_is(dim, "cp") ? p->cp
           : maq_str_is(dim, "pp") ? p->pp
           : maq_str_is(dim, "ep") ? p->ep
                                   : (int32_t)(job->cluster.devices / ((int64_t)p->tp * p->cp * p->pp));
}

/* Whether two orders number the ranks alike: they do when they agree on the dimensions that are larger than one. */
static bool same_order(const struct maq_plan *p, const struct maq_job *job, struct maq_str a, struct maq_str b)
{
    struct maq_str x, y;
    do {
        do
            a = maq_str_split(a, '-', &x);
        while (a.ptr && degree_of(p, job, x) == 1);
        do
            b = maq_str_split(b, '-', &y);
        while (b.ptr && degree_of(p, job, y) == 1);
        if (!maq_str_eq(x, y) && (degree_of(p, job, x) > 1 || degree_of(p, job, y) > 1))
            return false;
    } while (a.ptr && b.ptr);
    return true;
}

/*
 * Whether shared experts have no exchange to run under: of the experts' ranks, or of their TP ranks; DeepEP's kernels and another
 * microbatch's compute leave no room beside (Megatron Core allowed its all-to-all alone until 2026, transformer_config.py).
 */
static bool no_exchange(const struct maq_plan *p, bool moe)
{
    return !moe || p->dispatcher != MAQ_DISPATCHER_ALLTOALL || (p->overlap_ep == MAQ_ON && p->ep > 1) ||
           (p->ep == 1 && etp_of(p) == 1);
}

/* Values that say the same as an earlier one of their axis under this plan, or that it cannot have. */
static bool repeats(const struct maq_search_space *space, const struct maq_job *job, const struct maq_plan *p,
                    const uint32_t *at, bool moe)
{
    if (p->cp == 1 && at[MAQ_AXIS_CP_COMM] > 0)
        return true;
    if (p->tp == 1 && (at[MAQ_AXIS_SP] > 0 || at[MAQ_AXIS_OVERLAP_TP] > 0))
        return true;
    if (p->tp > job->cluster.groups[0].domain_devices && at[MAQ_AXIS_OVERLAP_TP] > 0) /* as far as NVLink reaches */
        return true;
    if (!moe && (at[MAQ_AXIS_DISPATCHER] > 0 || at[MAQ_AXIS_OVERLAP_EP] > 0))
        return true;
    if (p->ep == 1 && (at[MAQ_AXIS_OVERLAP_EP] > 0 || at[MAQ_AXIS_DISPATCHER] > 0))
        return true;
    if (at[MAQ_AXIS_SHARED] > 0 && no_exchange(p, moe))
        return true;
    if (at[MAQ_AXIS_DELAY_WGRAD] > 0 && (!moe || p->ep == 1))
        return true;
    const struct maq_axis_values *etp = &space->axis[MAQ_AXIS_ETP];
    for (uint32_t i = 0; i < at[MAQ_AXIS_ETP]; i++)
        if (!moe || (etp->at[i] == MAQ_VALUE_LIKE_TP ? p->tp : etp->at[i]) == p->etp)
            return true;
    for (uint32_t i = 0; i < at[MAQ_AXIS_ORDER]; i++)
        if (same_order(p, job, space->orders[space->axis[MAQ_AXIS_ORDER].at[i]], p->rank_order))
            return true;
    return false;
}

/* The next combination of the axes of a branch, the last axis fastest; false after the last. */
static bool next(uint32_t at[MAQ_AXIS_BRANCHES], const struct maq_search_space *space)
{
    for (int a = MAQ_AXIS_BRANCHES - 1; a >= 0; a--) {
        if (++at[a] < space->axis[a].n)
            return true;
        at[a] = 0;
    }
    return false;
}

/* Fills a branch with the combination; false where it repeats another or does not fit. */
static bool fill(struct maq_search_branch *out, const struct maq_search_space *space, const struct maq_job *job,
                 const uint32_t at[MAQ_AXIS_BRANCHES], bool moe)
{
    struct maq_plan plan = space->base;
    *out = (struct maq_search_branch){0};
    for (int a = 0; a < MAQ_AXIS_BRANCHES; a++) {
        out->value[a] = space->axis[a].at[at[a]];
        maq_space_apply(&plan, space, (enum maq_axis)a, out->value[a]);
    }
    return degrees_fit(&plan, job) && !repeats(space, job, &plan, at, moe);
}

enum maq_status maq_branches_list(struct maq_search_branches *out, const struct maq_search_space *space,
                                  const struct maq_job *job, struct maq_arena *arena)
{
    bool moe = maq_model_find_module(&job->model, MAQ_MODULE_ROUTER, MAQ_PART_COUNT) != NULL;
    *out = (struct maq_search_branches){0};
    for (int pass = 0; pass < 2; pass++) { /* counts, then writes */
        uint32_t at[MAQ_AXIS_BRANCHES] = {0}, n = 0;
        do {
            struct maq_search_branch branch;
            if (!fill(&branch, space, job, at, moe))
                continue;
            branch.number = n;
            if (pass == 1)
                out->at[n] = branch;
            n++;
        } while (next(at, space));
        if (pass == 0) {
            out->n = n;
            out->at = MAQ_ARENA_NEW(arena, struct maq_search_branch, n);
            if (!out->at)
                return MAQ_NO_MEMORY;
        }
    }
    return MAQ_OK;
}

/* ---- bounds ---- */

static double work_ns(const struct maq_atoms *atoms)
{
    double sum = 0;
    for (uint32_t i = 0; i < atoms->n; i++)
        sum += atoms->at[i].forward_ns + atoms->at[i].backward_ns;
    return sum;
}

/* Work of a microbatch under the schedules of the space that have such passes. */
static enum maq_status least_work(double *ns, const struct maq_search_space *space, struct maq_plan plan,
                                  struct maq_train_sweep *sweep, struct maq_arena *scratch, enum maq_passes passes)
{
    const struct maq_axis_values *schedules = &space->axis[MAQ_AXIS_SCHEDULE];
    struct maq_atoms atoms;
    bool any = false;
    for (uint32_t i = 0; i < schedules->n; i++) {
        int32_t v = schedules->at[i] == MAQ_VALUE_AS_WRITTEN ? space->base.schedule : schedules->at[i];
        any |= maq_passes_of(v) == passes;
    }
    if (!any)
        return MAQ_OK;
    maq_plan_passes(&plan, passes);
    MAQ_TRY(maq_train_sweep_atoms(&atoms, sweep, &plan, scratch));
    double work = work_ns(&atoms);
    *ns = *ns < 0 || work < *ns ? work : *ns;
    return MAQ_OK;
}

/*
 * Whether the modules' inputs can be offloaded in this way. Offloading gives no bound: passes may wait for it, and less where more
 * is recomputed.
 */
static enum maq_status check_inputs(const struct maq_plan *plan, struct maq_train_sweep *sweep,
                                    struct maq_arena *scratch)
{
    struct maq_atoms atoms;
    return plan->offload_modules == 0 ? MAQ_OK : maq_train_sweep_atoms(&atoms, sweep, plan, scratch);
}

enum maq_status maq_branch_bound(struct maq_search_branch *branch, const struct maq_search_space *space,
                                 const struct maq_job *job, struct maq_train_sweep *sweep, struct maq_arena *scratch)
{
    struct maq_plan plan;
    struct maq_arena_mark mark = maq_arena_mark(scratch);
    double ns = -1;
    maq_branch_plan(&plan, space, branch);
    plan.schedule = MAQ_SCHEDULE_1F1B;
    plan.vp = 1;
    enum maq_status status = check_inputs(&plan, sweep, scratch);
    maq_space_apply(&plan, space, MAQ_AXIS_INPUTS, 0);
    /* no pass is longer for its graphs: with all of it in one, branches that differ in theirs alone lower the same layers */
    plan.cuda_graphs |= space->axis[MAQ_AXIS_GRAPHS].n > 1;
    for (int passes = 0; passes < MAQ_PASSES_COUNT && status == MAQ_OK; passes++)
        status = least_work(&ns, space, plan, sweep, scratch, (enum maq_passes)passes);
    maq_arena_reset(scratch, mark);
    branch->impossible = status == MAQ_BAD_INPUT || status == MAQ_LIMIT;
    branch->bound_s = branch->impossible ? 0 : ns * maq_branch_microbatches(job, &plan) / plan.pp * 1e-9;
    return branch->impossible ? MAQ_OK : status;
}
