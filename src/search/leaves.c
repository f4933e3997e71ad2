/*
 * leaves.c - goes through the plans of a cell, see leaves.h.
 *
 * The order of the loops is the order of the bounds: a pipeline is bounded from the atoms (cells.h), a way to shard by what a
 * rank holds at least,
 *
 *   memory >= states of the parameters of the fullest stage + least activations of the microbatches it holds at once
 *
 * and the plans under it by the one that saves no memory.
 */
#include "search/leaves.h"

#include <math.h>
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "plan/schedule.h"
#include "search/floors.h"
#include "train/predict.h"

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
 * Copies of the sharded state, or 0 where the combination says what another one says: nothing is sharded, or all ranks of a
 * domain are all there are.
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

/* Ways to shard. */
static uint64_t sharding_count(const struct maq_search_space *space, const struct maq_job *job,
                               const struct maq_plan *plan)
{
    uint64_t n = 0;
    for (uint32_t s = 0; s < space->axis[MAQ_AXIS_SHARDING].n; s++)
        for (uint32_t r = 0; r < space->axis[MAQ_AXIS_REPLICAS].n; r++)
            n += replicas_of(space, job, plan, sharding_of(space, s), r) > 0;
    return n;
}

uint64_t maq_leaves_count(const struct maq_search_space *space, const struct maq_pipelines *pipelines,
                          const struct maq_job *job, const struct maq_plan *plan)
{
    const struct maq_pipeline_list *list = maq_pipelines_of(pipelines, plan->pp);
    uint64_t shardings = sharding_count(space, job, plan), total = 0;
    for (uint32_t i = 0; i < list->n; i++)
        total += shardings * saving_count(space, &list->at[i]);
    return total;
}

/* ---- looking at plans ---- */

#define BATCH 64

struct explorer {
    struct maq_leaf_search *s;
    struct maq_cell_floors floors;
    const struct maq_pipeline *pipeline;
    struct maq_plan base; /* of the cell, then with pipeline and sharding */
    double pipeline_floor_s, memory_floor;
    uint64_t group_left; /* plans under this pipeline and sharding that are not counted yet */
    struct maq_plan plans[BATCH];
    struct maq_train_quick quick[BATCH];
};

static double limit_of(const struct maq_leaf_search *s)
{
    return s->best.step_s > 0 && s->best.step_s < s->limit_s ? s->best.step_s : s->limit_s;
}

/* Whether a plan that takes at least step_s and bytes cannot be of use. */
static bool useless(const struct maq_leaf_search *s, double step_s, double bytes)
{
    if (s->exhaustive || step_s < limit_of(s))
        return false;
    return !s->front || maq_pareto_beats(s->front, step_s, bytes) || maq_pareto_beats(s->found, step_s, bytes);
}

static enum maq_status note(struct explorer *e, const struct maq_plan *plan, const struct maq_train_quick *q)
{
    struct maq_leaf_search *s = e->s;
    struct maq_search_plan found = {*plan, q->step_s, q->needed_bytes};
    e->group_left--;
    if (!q->possible) {
        s->counts.impossible++;
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

static enum maq_status look(struct explorer *e, uint32_t n)
{
    MAQ_TRY(maq_train_sweep_eval_fitting(e->s->sweep, e->quick, e->plans, n));
    for (uint32_t i = 0; i < n; i++)
        MAQ_TRY(note(e, &e->plans[i], &e->quick[i]));
    return MAQ_OK;
}

static void block_plan(struct maq_plan *out, const struct maq_plan *plan, int32_t layers)
{
    *out = *plan;
    out->recompute = MAQ_RECOMPUTE_FULL;
    out->recompute_method = MAQ_RECOMPUTE_BLOCK;
    out->recompute_num_layers = layers;
    out->recompute_parts = 0;
}

/* Every number of recomputed layers. */
static enum maq_status every_block(struct explorer *e, const struct maq_plan *plan)
{
    for (int32_t n = 1; n <= e->pipeline->most_layers;) {
        uint32_t held = 0;
        for (; n <= e->pipeline->most_layers && held < BATCH; n++)
            block_plan(&e->plans[held++], plan, n);
        MAQ_TRY(look(e, held));
    }
    return MAQ_OK;
}

/* The least number of recomputed layers that fits, by bisection: more layers never need more memory. */
static enum maq_status least_block(struct explorer *e, const struct maq_plan *plan)
{
    int32_t low = 1, high = e->pipeline->most_layers;
    while (low < high) {
        int32_t mid = low + (high - low) / 2;
        struct maq_train_quick q;
        block_plan(&e->plans[0], plan, mid);
        MAQ_TRY(maq_train_sweep_memory(e->s->sweep, &q, e->plans, 1));
        if (q.possible && q.fits)
            high = mid;
        else
            low = mid + 1;
    }
    block_plan(&e->plans[0], plan, low);
    return look(e, 1);
}

/* Every recomputation but "nothing", which `plan` is. */
static enum maq_status recomputations(struct explorer *e, const struct maq_plan *plan, bool all)
{
    const struct maq_search_space *space = e->s->space;
    uint32_t held = 0;
    for (uint32_t i = 0; i < space->axis[MAQ_AXIS_RECOMPUTE].n; i++) {
        int32_t value = value_of(space, MAQ_AXIS_RECOMPUTE, i);
        if (value == MAQ_RECOMPUTE_VALUE_NONE || value == MAQ_RECOMPUTE_VALUE_BLOCK)
            continue;
        e->plans[held] = *plan;
        maq_space_apply(&e->plans[held++], space, MAQ_AXIS_RECOMPUTE, value);
        if (held == BATCH) {
            MAQ_TRY(look(e, held));
            held = 0;
        }
    }
    MAQ_TRY(look(e, held));
    for (uint32_t i = 0; i < space->axis[MAQ_AXIS_RECOMPUTE].n; i++)
        if (value_of(space, MAQ_AXIS_RECOMPUTE, i) == MAQ_RECOMPUTE_VALUE_BLOCK)
            MAQ_TRY(all ? every_block(e, plan) : least_block(e, plan));
    return MAQ_OK;
}

static bool chooses_nothing(const struct maq_search_space *space)
{
    for (uint32_t i = 0; i < space->axis[MAQ_AXIS_RECOMPUTE].n; i++)
        if (value_of(space, MAQ_AXIS_RECOMPUTE, i) == MAQ_RECOMPUTE_VALUE_NONE)
            return true;
    return false;
}

/* The plans that save memory in this way; *done when nothing after them can be better. */
static enum maq_status savings(struct explorer *e, const struct maq_plan *plan, bool plain, bool *done)
{
    struct maq_leaf_search *s = e->s;
    bool all = s->exhaustive || s->front;
    if (!chooses_nothing(s->space))
        return recomputations(e, plan, all);
    struct maq_plan nothing = *plan;
    struct maq_train_quick q;
    maq_space_apply(&nothing, s->space, MAQ_AXIS_RECOMPUTE, MAQ_RECOMPUTE_VALUE_NONE);
    MAQ_TRY(maq_train_sweep_eval(s->sweep, &q, &nothing, 1));
    MAQ_TRY(note(e, &nothing, &q));
    if (all)
        return !q.possible || useless(s, q.step_s, e->memory_floor) ? MAQ_OK : recomputations(e, &nothing, true);
    *done = q.possible && plain && (q.fits || q.step_s >= limit_of(s));
    if (!q.possible || q.fits || q.step_s >= limit_of(s))
        return MAQ_OK;
    return recomputations(e, &nothing, false);
}

/* All plans under a pipeline and a way to shard. */
static enum maq_status group(struct explorer *e)
{
    const struct maq_search_space *space = e->s->space;
    const struct maq_axis_values *hosts = &space->axis[MAQ_AXIS_HOST_OPTIM], *offloads = &space->axis[MAQ_AXIS_OFFLOAD];
    bool done = false;
    for (uint32_t h = 0; h < hosts->n && !done; h++)
        for (uint32_t o = 0; o < offloads->n && !done; o++) {
            struct maq_plan plan = e->base;
            maq_space_apply(&plan, space, MAQ_AXIS_HOST_OPTIM, hosts->at[h]);
            maq_space_apply(&plan, space, MAQ_AXIS_OFFLOAD, offloads->at[o]);
            bool plain = plan.optimizer_offload == 0 && plan.offload_layers == 0;
            MAQ_TRY(savings(e, &plan, plain, &done));
        }
    e->s->counts.bounded += e->group_left;
    return MAQ_OK;
}

static enum maq_status pipeline(struct explorer *e)
{
    struct maq_leaf_search *s = e->s;
    const struct maq_search_space *space = s->space;
    struct maq_plan cell_plan = e->base;
    for (uint32_t i = 0; i < space->axis[MAQ_AXIS_SHARDING].n; i++)
        for (uint32_t r = 0; r < space->axis[MAQ_AXIS_REPLICAS].n; r++) {
            e->base = cell_plan;
            maq_space_apply(&e->base, space, MAQ_AXIS_SHARDING, value_of(space, MAQ_AXIS_SHARDING, i));
            int32_t copies = replicas_of(space, s->job, &e->base, e->base.sharding, r);
            if (copies == 0)
                continue;
            e->base.num_optimizer_instances = copies;
            e->group_left = saving_count(space, e->pipeline);
            e->memory_floor = maq_memory_floor(&e->floors, e->pipeline, &e->base);
            if (!s->exhaustive && (e->memory_floor > e->floors.capacity_bytes ||
                                   useless(s, e->pipeline_floor_s, e->memory_floor)))
                s->counts.bounded += e->group_left;
            else
                MAQ_TRY(group(e));
        }
    e->base = cell_plan;
    return MAQ_OK;
}

enum maq_status maq_leaves_explore(struct maq_leaf_search *s, const struct maq_cell *cell)
{
    struct explorer e = {.s = s};
    struct maq_plan plain;
    maq_cell_plan(&plain, s->space, cell);
    struct maq_arena_mark mark = maq_arena_mark(s->scratch);
    s->best = s->frugal = (struct maq_search_plan){0};
    s->counts = (struct maq_search_counts){0};
    enum maq_status status = maq_cell_floors(&e.floors, s->space, s->job, &plain, s->sweep, s->scratch);
    const struct maq_pipeline_list *list = maq_pipelines_of(s->pipelines, plain.pp);
    for (uint32_t i = 0; i < list->n && status == MAQ_OK; i++) {
        const struct maq_pipeline *p = &list->at[i];
        uint64_t plans = sharding_count(s->space, s->job, &plain) * saving_count(s->space, p);
        e.pipeline = p;
        e.base = s->space->base;
        for (int a = 0; a < MAQ_AXIS_CELLS; a++)
            maq_space_apply(&e.base, s->space, (enum maq_axis)a, cell->value[a]);
        e.base.schedule = p->schedule;
        e.base.vp = p->vp;
        e.base.layout = p->layout;
        e.pipeline_floor_s = maq_pipeline_floor_s(&e.floors, p);
        if (maq_schedule_refuse(NULL, p->schedule, (uint32_t)plain.pp, (uint32_t)p->vp, e.floors.microbatches,
                                (uint32_t)e.base.microbatch_group))
            s->counts.impossible += plans;
        else if (!s->front && !s->exhaustive && e.pipeline_floor_s >= limit_of(s))
            s->counts.bounded += plans;
        else
            status = pipeline(&e);
    }
    maq_arena_reset(s->scratch, mark);
    return status;
}
