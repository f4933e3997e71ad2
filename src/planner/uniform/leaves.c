/* SPDX-License-Identifier: Apache-2.0 */
/*
 * leaves.c - explores the plans of a branch under bounds of time and memory; leaves.h has the order of the axes.
 *
 * Loops follow the bounds: a pipeline is bounded by the time of its atoms (branches.h), a sharding by what a rank holds at
 * least,
 *
 *   memory >= states of the parameters of the fullest stage + least activations of the microbatches it holds at once
 *
 * and the plans under it by the one that saves no memory.
 */
#include "planner/uniform/leaves.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/schedule/schedule.h"
#include "planner/uniform/leaf_bounds.h"
#include "planner/uniform/stage_recompute.h"

/* ---- the values under a pipeline ---- */

static int32_t value_of(const struct maq_search_space *space, enum maq_axis axis, uint32_t i)
{
    return space->axis[axis].at[i];
}

/* Plans that a list of recomputations stands for, with virtual stages of so many layers. */
static uint64_t recompute_count(const struct maq_search_space *space, const struct maq_pipeline *pipeline)
{
    uint64_t n = 0;
    for (uint32_t i = 0; i < space->axis[MAQ_AXIS_RECOMPUTE].n; i++)
        n += value_of(space, MAQ_AXIS_RECOMPUTE, i) == MAQ_RECOMPUTE_VALUE_BLOCK ? (uint64_t)pipeline->most_layers : 1;
    return n;
}

static uint64_t saving_count(const struct maq_search_space *space, const struct maq_pipeline *pipeline)
{
    return recompute_count(space, pipeline) * space->axis[MAQ_AXIS_OFFLOAD].n * space->axis[MAQ_AXIS_HOST_OPTIM].n;
}

/*
 * Copies of the sharded state, or 0 where the combination repeats another one: nothing is sharded, or one domain holds all
 * ranks.
 */
static int32_t replicas_of(const struct maq_search_space *space, const struct maq_job *job, const struct maq_plan *plan,
                           int sharding, uint32_t i)
{
    const struct maq_axis_values *axis = &space->axis[MAQ_AXIS_REPLICAS];
    int32_t ranks = (int32_t)(job->cluster.devices / ((int64_t)plan->tp * plan->pp)), copies = 0;
    for (uint32_t k = i + 1; k-- > 0;) { /* this one, then each before it */
        int32_t v = axis->at[k], near = job->cluster.groups[0].domain_devices / plan->tp;
        v = v == MAQ_VALUE_AS_WRITTEN   ? space->base.num_optimizer_instances
            : v == MAQ_VALUE_PER_DOMAIN ? (near > 0 ? ranks / near : 1)
                                        : v;
        if (k == i)
            copies = v;
        else if (v == copies)
            return 0;
    }
    bool sense = sharding != MAQ_SHARDING_NONE && copies > 1 && copies < ranks && ranks % copies == 0;
    return i == 0 || sense ? copies : 0;
}

static int sharding_of(const struct maq_search_space *space, uint32_t i)
{
    int32_t value = value_of(space, MAQ_AXIS_SHARDING, i);
    return value == MAQ_VALUE_AS_WRITTEN ? space->base.sharding : value;
}

/* A sharding, by its values on the axes SHARDING and REPLICAS. */
struct way {
    uint32_t sharding, replicas;
    int32_t copies;
    int is; /* enum maq_sharding */
};

/* Lists the shardings of a branch in `out`, where it is not NULL; returns how many. Where there is nobody to share with all are one. */
static uint32_t list_strategies(struct way *out, const struct maq_search_space *space, const struct maq_job *job,
                                const struct maq_plan *plan)
{
    bool moot = maq_sharding_is_moot(plan, &job->model, job->cluster.devices / plan->pp);
    uint32_t n = 0, n_shardings = moot ? 1 : space->axis[MAQ_AXIS_SHARDING].n;
    for (uint32_t s = 0; s < n_shardings; s++)
        for (uint32_t r = 0; r < space->axis[MAQ_AXIS_REPLICAS].n; r++) {
            int is = sharding_of(space, s);
            if (moot &&
                !(plan->update == MAQ_UPDATE_MUON && is > MAQ_SHARDING_OPTIM)) /* that is refused as it is written */
                is = MAQ_SHARDING_NONE;
            int32_t copies = replicas_of(space, job, plan, is, r);
            if (copies > 0 && out)
                out[n] = (struct way){s, r, copies, is};
            n += copies > 0;
        }
    return n;
}

uint64_t maq_leaves_count(const struct maq_search_space *space, const struct maq_pipelines *pipelines,
                          const struct maq_job *job, const struct maq_plan *plan)
{
    const struct maq_pipeline_list *list = maq_pipelines_of(pipelines, plan->pp);
    uint64_t shardings = list_strategies(NULL, space, job, plan), total = 0;
    for (uint32_t i = 0; i < list->n; i++)
        total += shardings * saving_count(space, &list->at[i]);
    return total;
}

/* ---- looking at plans ---- */

#define BATCH 64

struct explorer {
    struct maq_leaf_search *s;
    struct maq_leaf_bounds bounds;
    struct maq_plan base; /* of the branch, then with pipeline and sharding */
    struct maq_state_bound states;
    double sync_bound_s; /* no plan under this pipeline and sharding is faster */
    double tail_s;       /* lower bound of what follows its passes */
    bool *settled;       /* [of OFFLOAD] */
    struct way *ways;    /* [n_strategies] of the branch */
    uint32_t n_strategies;
    uint64_t group_left; /* plans under this pipeline and sharding that are not counted yet */
    struct maq_plan plans[BATCH];
    struct maq_train_quick quick[BATCH];
    uint32_t held;
};

static double limit_of(const struct maq_leaf_search *s)
{
    return s->best.step_s > 0 && s->best.step_s < s->limit_s ? s->best.step_s : s->limit_s;
}

/* Whether a plan that takes at least step_s and bytes can be dropped. */
static bool useless(const struct explorer *e, double step_s, double bytes)
{
    const struct maq_leaf_search *s = e->s;
    if (s->exhaustive)
        return false;
    if (bytes > e->bounds.branch.capacity_bytes)
        return true;
    if (step_s < limit_of(s))
        return false;
    return !s->front || maq_pareto_beats(s->front, step_s, bytes) || maq_pareto_beats(s->found, step_s, bytes);
}

void maq_refused_keep(struct maq_refused *kept, const struct maq_refused *other)
{
    if (other->by > kept->by)
        *kept = *other;
}

static enum maq_status note(struct explorer *e, const struct maq_plan *plan, const struct maq_train_quick *q)
{
    struct maq_leaf_search *s = e->s;
    struct maq_search_plan found = {*plan, q->step_s, q->needed_bytes};
    e->group_left--;
    if (!q->possible) {
        s->counts.impossible++;
        maq_refused_keep(&s->refused, &(struct maq_refused){*plan, MAQ_REFUSED_PLAN});
        return MAQ_OK;
    }
    if (!q->fits) {
        s->counts.unfit++;
        if (s->frugal.needed_bytes == 0 || q->needed_bytes < s->frugal.needed_bytes)
            s->frugal = found;
        return MAQ_OK;
    }
    s->counts.scored++;
    if (q->step_s < limit_of(s))
        s->best = found;
    return s->front ? maq_pareto_add(s->found, &found) : MAQ_OK;
}

/* Evaluates the batch of plans collected so far. */
static enum maq_status look(struct explorer *e)
{
    uint32_t n = e->held;
    e->held = 0;
    MAQ_TRY(maq_train_sweep_eval_fitting(e->s->sweep, e->quick, e->plans, n));
    for (uint32_t i = 0; i < n; i++)
        MAQ_TRY(note(e, &e->plans[i], &e->quick[i]));
    return MAQ_OK;
}

static enum maq_status put(struct explorer *e, const struct maq_plan *plan)
{
    e->plans[e->held++] = *plan;
    return e->held == BATCH ? look(e) : MAQ_OK;
}

/* Whether plans with this bound, sharded as e->base, can be dropped for their time alone. */
static bool slow(const struct explorer *e, const struct maq_pipeline_bound *bound)
{
    return useless(e, fmax(bound->step_s, e->sync_bound_s) + e->tail_s, 0);
}

/* The same for time and memory. */
static bool floored(const struct explorer *e, const struct maq_pipeline_bound *bound)
{
    return slow(e, bound) || useless(e, fmax(bound->step_s, e->sync_bound_s) + e->tail_s,
                                     maq_memory_bound(&e->bounds.branch, bound, &e->states));
}

/* ---- full recomputation of the first N layers of each virtual stage ---- */

static void block_plan(struct maq_plan *out, const struct maq_plan *plan, int32_t layers)
{
    *out = *plan;
    out->recompute = MAQ_RECOMPUTE_FULL;
    out->recompute_method = MAQ_RECOMPUTE_BLOCK;
    out->recompute_num_layers = layers;
    out->recompute_parts = 0;
    out->recompute_stages = (struct maq_str){0};
}

/* Every number of layers that is of use: more of them need no more memory, but for the nodes of a graph that holds all passes. */
static enum maq_status every_block(struct explorer *e, const struct maq_plan *plan, uint32_t recompute,
                                   uint32_t offload)
{
    for (int32_t layers = 1; layers <= e->bounds.pipeline->most_layers; layers++) {
        struct maq_plan block;
        if (floored(e, maq_leaf_block_bound(&e->bounds, recompute, offload, layers)))
            continue;
        block_plan(&block, plan, layers);
        MAQ_TRY(put(e, &block));
    }
    return MAQ_OK;
}

static bool may_fit(const struct explorer *e, const struct maq_pipeline_bound *bound)
{
    return maq_memory_bound(&e->bounds.branch, bound, &e->states) <= e->bounds.branch.capacity_bytes;
}

/* The least number that fits: more layers never need more memory, so it is found by bisection, first on the bound. */
static enum maq_status least_block(struct explorer *e, const struct maq_plan *plan, uint32_t recompute,
                                   uint32_t offload)
{
    int32_t low = 1, high = e->bounds.pipeline->most_layers;
    struct maq_plan block;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        if (may_fit(e, maq_leaf_block_bound(&e->bounds, recompute, offload, mid)))
            high = mid;
        else
            low = mid + 1;
    }
    if (slow(e, maq_leaf_block_bound(&e->bounds, recompute, offload, low)))
        return MAQ_OK;
    high = e->bounds.pipeline->most_layers;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        struct maq_train_quick quick;
        block_plan(&block, plan, mid);
        MAQ_TRY(maq_train_sweep_memory(e->s->sweep, &quick, &block, 1));
        if (quick.possible && quick.fits)
            high = mid;
        else
            low = mid + 1;
    }
    block_plan(&block, plan, low);
    return put(e, &block);
}

/* In each stage the least number that fits there. */
static enum maq_status least_of_stages(struct explorer *e, const struct maq_plan *plan)
{
    struct maq_plan stages;
    bool differ;
    MAQ_TRY(maq_least_of_stages(&stages, &differ, plan, e->bounds.pipeline->most_layers, e->s->sweep, e->s->keep));
    return differ ? put(e, &stages) : MAQ_OK;
}

/* ---- savings of memory ---- */

/* Which plans with one share of the optimizer and one number of layers on the host may still be of use. */
struct choice {
    const struct maq_plan *plan;
    uint32_t offload;
    bool all;    /* of BLOCK every number of layers, not the least that fits */
    bool beaten; /* without recomputation it fits or is too slow, and hides no work: try only what shortens a pass */
};

static bool promising(struct explorer *e, const struct choice *c, uint32_t recompute)
{
    if (c->beaten && maq_leaf_recompute_adds(&e->bounds, recompute, c->offload))
        return false;
    return !floored(e, maq_leaf_bound(&e->bounds, recompute, c->offload));
}

static bool is_block(int32_t value)
{
    return value == MAQ_RECOMPUTE_VALUE_BLOCK || value == MAQ_RECOMPUTE_VALUE_STAGES;
}

/* Every recomputation but "nothing". */
static enum maq_status recomputations(struct explorer *e, const struct choice *c)
{
    const struct maq_search_space *space = e->s->space;
    for (uint32_t i = 0; i < space->axis[MAQ_AXIS_RECOMPUTE].n; i++) {
        int32_t value = value_of(space, MAQ_AXIS_RECOMPUTE, i);
        struct maq_plan p = *c->plan;
        if (value == MAQ_RECOMPUTE_VALUE_NONE || is_block(value) || !promising(e, c, i))
            continue;
        maq_space_apply(&p, space, MAQ_AXIS_RECOMPUTE, value);
        MAQ_TRY(put(e, &p));
    }
    MAQ_TRY(look(e));
    for (uint32_t i = 0; i < space->axis[MAQ_AXIS_RECOMPUTE].n; i++) {
        int32_t value = value_of(space, MAQ_AXIS_RECOMPUTE, i);
        if (!is_block(value) || !promising(e, c, i))
            continue;
        if (value == MAQ_RECOMPUTE_VALUE_STAGES) {
            MAQ_TRY(look(e));
            MAQ_TRY(least_of_stages(e, c->plan));
            continue;
        }
        bool every = c->all || c->plan->cuda_graphs || !maq_leaf_recompute_adds(&e->bounds, i, c->offload);
        MAQ_TRY(every ? every_block(e, c->plan, i, c->offload) : least_block(e, c->plan, i, c->offload));
    }
    return look(e);
}

/* The bound of all recomputations with this offloading. */
static const struct maq_pipeline_bound *common_bound(struct explorer *e, uint32_t offload)
{
    return maq_leaf_bound(&e->bounds, e->s->space->axis[MAQ_AXIS_RECOMPUTE].n, offload);
}

/* How many recomputations can be of use with this offloading, counted up to `most`. */
static uint32_t candidates(struct explorer *e, uint32_t offload, uint32_t most)
{
    uint32_t n = 0;
    if (floored(e, common_bound(e, offload)))
        return 0;
    for (uint32_t i = 0; i < e->s->space->axis[MAQ_AXIS_RECOMPUTE].n && n < most; i++)
        n += !floored(e, maq_leaf_bound(&e->bounds, i, offload));
    return n;
}

/* The same of this offloading and those up to `end`. */
static uint32_t candidates_from(struct explorer *e, uint32_t offload, uint32_t end, uint32_t most)
{
    uint32_t n = 0;
    for (uint32_t o = offload; o < end && n < most; o++)
        n += candidates(e, o, most - n);
    return n;
}

/* Values of OFFLOAD before the first that says what the one before it says: all layers of every virtual stage. */
static uint32_t distinct_offloads(const struct explorer *e)
{
    uint32_t n = e->s->space->axis[MAQ_AXIS_OFFLOAD].n, o = 1;
    while (o < n && (e->s->exhaustive || maq_leaf_offloaded(&e->bounds, o - 1) < e->bounds.pipeline->most_layers))
        o++;
    return o;
}

/* Whether anything under the pipeline can be of use with this share of the states. */
static bool any_of_use(struct explorer *e, const struct maq_plan *plan)
{
    e->states = maq_state_bound(&e->bounds.branch, plan);
    for (uint32_t o = distinct_offloads(e); o-- > 0;)
        if (candidates(e, o, 1) > 0)
            return true;
    return false;
}

/* Whether no recomputation makes a pass shorter where so much is offloaded; then offloading more is no use for it either. */
static bool every_recompute_adds(const struct explorer *e, uint32_t offload)
{
    for (uint32_t i = 0; i < e->s->space->axis[MAQ_AXIS_RECOMPUTE].n; i++)
        if (!maq_leaf_recompute_adds(&e->bounds, i, offload))
            return false;
    return true;
}

#define WORTH_A_PROBE 4 /* timing a plan that does not fit pays where it may save at least so many others */

struct verdict {
    bool dead;    /* plans that offload more are of no use */
    bool settled; /* those that offload as much, and more of the optimizer, neither */
};

/*
 * The plans that save memory with one share of the optimizer and one number of layers on the host. Still to be explored are the
 * values of OFFLOAD before `alive`, and `hosts` shares of the optimizer, this one included.
 *
 * Where passes wait for the host or for data-parallel communication, offloading and recomputing may make a plan faster: they hide
 * in the wait, and what follows begins earlier, by at most the wait.
 */
static enum maq_status savings(struct explorer *e, const struct maq_plan *plan, uint32_t offload, uint32_t alive,
                               uint32_t hosts, struct verdict *out)
{
    struct maq_leaf_search *s = e->s;
    uint32_t none = e->bounds.none;
    struct maq_plan nothing = *plan;
    struct choice choice = {.plan = &nothing, .offload = offload, .all = s->exhaustive || s->front};
    if (slow(e, common_bound(e, offload))) { /* offloading more is no faster */
        out->dead = !choice.all;
        return MAQ_OK;
    }
    if (none == s->space->axis[MAQ_AXIS_RECOMPUTE].n)
        return recomputations(e, &choice);
    struct maq_train_quick q;
    maq_space_apply(&nothing, s->space, MAQ_AXIS_RECOMPUTE, MAQ_RECOMPUTE_VALUE_NONE);
    if (!s->exhaustive && floored(e, maq_leaf_bound(&e->bounds, none, offload))) {
        uint32_t n = candidates_from(e, offload, alive, WORTH_A_PROBE);
        if ((uint64_t)n * hosts < WORTH_A_PROBE)
            return n > 0 ? recomputations(e, &choice) : MAQ_OK;
    }
    MAQ_TRY(maq_train_sweep_eval(s->sweep, &q, &nothing, 1));
    double limit = limit_of(s);
    MAQ_TRY(note(e, &nothing, &q));
    if (!q.possible)
        return MAQ_OK;
    bool on_device = maq_leaf_on_device(&e->bounds, offload),
         /* added work may hide in the wait and the plan be best */
        hides = q.wait_s > 0 && q.step_s - q.wait_s < limit_of(s),
         beaten = !choice.all && (q.fits || q.step_s >= limit);
    if (on_device)
        e->tail_s = q.tail_s;
    out->dead = beaten && !(hides && q.wait_s > MAQ_NEGLIGIBLE_GAIN * q.step_s) &&
                (on_device || (q.fits && every_recompute_adds(e, offload)));
    out->settled = !choice.all && q.fits;
    choice.beaten = beaten && !hides;
    choice.all |= hides;
    return choice.beaten && on_device ? MAQ_OK : recomputations(e, &choice);
}

/* All plans under a pipeline and a sharding. Values on both offloading axes ascend. */
static enum maq_status group(struct explorer *e)
{
    const struct maq_search_space *space = e->s->space;
    const struct maq_axis_values *hosts = &space->axis[MAQ_AXIS_HOST_OPTIM], *offloads = &space->axis[MAQ_AXIS_OFFLOAD];
    uint32_t alive = distinct_offloads(e); /* values of OFFLOAD that can still be of use */
    memset(e->settled, 0, offloads->n * sizeof *e->settled);
    for (uint32_t h = 0; h < hosts->n; h++) {
        struct maq_plan plan = e->base;
        maq_space_apply(&plan, space, MAQ_AXIS_HOST_OPTIM, hosts->at[h]);
        e->states = maq_state_bound(&e->bounds.branch, &plan);
        e->tail_s = 0; /* where the optimizer is counts */
        for (uint32_t o = 0; o < alive; o++) {
            struct verdict verdict = {0};
            if (e->settled[o])
                continue;
            maq_space_apply(&plan, space, MAQ_AXIS_OFFLOAD, offloads->at[o]);
            MAQ_TRY(savings(e, &plan, o, alive, hosts->n - h, &verdict));
            e->settled[o] = verdict.settled;
            alive = verdict.dead ? o : alive;
        }
    }
    e->s->counts.bounded += e->group_left;
    return e->bounds.status;
}

/* ---- pipelines of a branch ---- */

static enum maq_status sharded(struct explorer *e, const struct way *way)
{
    struct maq_leaf_search *s = e->s;
    const struct maq_axis_values *hosts = &s->space->axis[MAQ_AXIS_HOST_OPTIM];
    e->base.sharding = way->is;
    e->base.num_optimizer_instances = way->copies;
    e->group_left = saving_count(s->space, e->bounds.pipeline);
    e->sync_bound_s = e->tail_s = 0;
    if (s->exhaustive)
        return group(e);
    struct maq_plan least = e->base; /* most of the optimizer on the host */
    maq_space_apply(&least, s->space, MAQ_AXIS_HOST_OPTIM, hosts->at[hosts->n - 1]);
    MAQ_TRY(maq_leaf_sync_bound(&e->sync_bound_s, &e->bounds, &least, way->sharding, way->replicas,
                                s->front ? HUGE_VAL : limit_of(s)));
    if (!useless(e, e->sync_bound_s, 0) && any_of_use(e, &least))
        return group(e);
    s->counts.bounded += e->group_left;
    return e->bounds.status;
}

/*
 * Whether the plan overlaps the expert all-to-all with another microbatch in a pipeline whose schedule has no such
 * pairs of passes.
 */
static bool lacks_partners(const struct maq_plan *plan)
{
    return plan->overlap_ep == MAQ_ON && plan->ep > 1 && plan->schedule != MAQ_SCHEDULE_AUTO &&
           !maq_plan_pairs_passes(plan);
}

/* Whether the schedule overlaps them anyway (DualPipe): then another branch has the same plans. */
static bool runs_so_anyway(const struct maq_search_space *space, const struct maq_plan *plan)
{
    struct maq_plan first = space->base;
    maq_space_apply(&first, space, MAQ_AXIS_OVERLAP_EP, value_of(space, MAQ_AXIS_OVERLAP_EP, 0));
    return maq_passes_of(plan->schedule) == MAQ_PASSES_PAIRED && plan->overlap_ep == MAQ_ON &&
           first.overlap_ep == MAQ_AUTO;
}

static enum maq_status pipeline(struct explorer *e, const struct maq_search_branch *branch, double bound_s)
{
    struct maq_leaf_search *s = e->s;
    const struct maq_pipeline *p = e->bounds.pipeline;
    e->base = s->space->base;
    for (int a = 0; a < MAQ_AXIS_BRANCHES; a++)
        maq_space_apply(&e->base, s->space, (enum maq_axis)a, branch->value[a]);
    e->base.schedule = p->schedule;
    e->base.vp = p->vp;
    e->base.layout = p->layout;
    uint64_t plans = e->n_strategies * saving_count(s->space, p);
    if (maq_schedule_refuse(NULL, p->schedule, (uint32_t)e->base.pp, (uint32_t)p->vp, e->bounds.branch.microbatches,
                            (uint32_t)e->base.microbatch_group)) {
        s->counts.impossible += plans;
        maq_refused_keep(&s->refused, &(struct maq_refused){e->base, MAQ_REFUSED_SCHEDULE});
    } else if (lacks_partners(&e->base)) {
        s->counts.impossible += plans;
        maq_refused_keep(&s->refused, &(struct maq_refused){e->base, MAQ_REFUSED_PLAN});
    } else if (useless(e, bound_s, 0) || runs_so_anyway(s->space, &e->base))
        s->counts.bounded += plans;
    else
        for (uint32_t i = 0; i < e->n_strategies; i++)
            MAQ_TRY(sharded(e, &e->ways[i]));
    return MAQ_OK;
}

struct turn {
    double bound_s;
    uint32_t pipeline;
};

static int by_bound(const void *a, const void *b)
{
    const struct turn *x = a, *y = b;
    if (x->bound_s != y->bound_s)
        return x->bound_s < y->bound_s ? -1 : 1;
    return x->pipeline < y->pipeline ? -1 : x->pipeline > y->pipeline;
}

/* The pipelines of a branch in the order of their bounds: fast plans found early drop more of the others. */
static enum maq_status all_pipelines(struct explorer *e, const struct maq_search_branch *branch,
                                     const struct maq_pipeline_list *list)
{
    struct turn *turns = MAQ_ARENA_NEW(e->s->scratch, struct turn, list->n);
    if (!turns)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < list->n; i++) {
        maq_leaf_bounds_select(&e->bounds, &list->at[i]);
        turns[i] = (struct turn){maq_leaf_time_bound(&e->bounds), i};
    }
    qsort(turns, list->n, sizeof *turns, by_bound);
    for (uint32_t i = 0; i < list->n; i++) {
        maq_leaf_bounds_select(&e->bounds, &list->at[turns[i].pipeline]);
        MAQ_TRY(pipeline(e, branch, turns[i].bound_s));
    }
    return MAQ_OK;
}

/* Whether the states of the mean stage alone exceed the memory, under any pipeline and any sharding. */
static bool overfull(const struct explorer *e, const struct maq_plan *plain)
{
    const struct maq_search_space *space = e->s->space;
    const struct maq_axis_values *hosts = &space->axis[MAQ_AXIS_HOST_OPTIM];
    for (uint32_t i = 0; i < space->axis[MAQ_AXIS_SHARDING].n; i++)
        for (uint32_t h = 0; h < hosts->n; h++) {
            struct maq_plan plan = *plain; /* one copy of what is sharded: the least */
            plan.sharding = sharding_of(space, i);
            plan.optimizer_offload = space->base.optimizer_offload;
            maq_space_apply(&plan, space, MAQ_AXIS_HOST_OPTIM, hosts->at[h]);
            if (maq_mean_state_bytes(&e->bounds.branch, &plan) <= e->bounds.branch.capacity_bytes)
                return false;
        }
    return true;
}

enum maq_status maq_leaves_explore(struct maq_leaf_search *s, const struct maq_search_branch *branch)
{
    struct explorer e = {.s = s};
    struct maq_plan plain;
    maq_branch_plan(&plain, s->space, branch);
    struct maq_arena_mark mark = maq_arena_mark(s->scratch);
    s->best = s->frugal = (struct maq_search_plan){0};
    s->counts = (struct maq_search_counts){0};
    enum maq_status status = maq_leaf_bounds_init(&e.bounds, s->space, s->job, &plain, s->sweep, s->scratch);
    e.settled = MAQ_ARENA_NEW(s->scratch, bool, s->space->axis[MAQ_AXIS_OFFLOAD].n);
    e.ways = MAQ_ARENA_NEW(s->scratch, struct way,
                           (size_t)s->space->axis[MAQ_AXIS_SHARDING].n * s->space->axis[MAQ_AXIS_REPLICAS].n);
    if (!e.settled || !e.ways)
        status = MAQ_NO_MEMORY;
    else
        e.n_strategies = list_strategies(e.ways, s->space, s->job, &plain);
    const struct maq_pipeline_list *list = maq_pipelines_of(s->pipelines, plain.pp);
    bool nothing = status == MAQ_OK && !s->exhaustive && overfull(&e, &plain);
    s->counts.bounded = nothing ? branch->plans : 0;
    if (status == MAQ_OK && !nothing)
        status = all_pipelines(&e, branch, list);
    maq_arena_reset(s->scratch, mark);
    return status;
}
