/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alternatives.c - the best plan with one axis changed, for every value of the space: shows why neighbouring plans lose.
 *
 * The other axes stay as they are, so a value that the rest does not allow is impossible, even where the space has a plan
 * with it. Another number of stages needs another layout: the best one of the space is taken.
 */
#include "planner/uniform/alternatives.h"

#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "plan/keys.h"

static enum maq_status grow(struct maq_search_alternatives *out)
{
    struct maq_alternatives_owner *o = out->owner;
    uint32_t size = o->size > 0 ? 2 * o->size : 64;
    struct maq_search_alternative *at = MAQ_ARENA_NEW(&o->arena, struct maq_search_alternative, size);
    struct maq_plan *plans = MAQ_ARENA_NEW(&o->arena, struct maq_plan, size);
    bool *laid_out = MAQ_ARENA_NEW(&o->arena, bool, size);
    if (!at || !plans || !laid_out)
        return MAQ_NO_MEMORY;
    if (out->n > 0) {
        memcpy(at, out->at, out->n * sizeof *at);
        memcpy(plans, o->plans, out->n * sizeof *plans);
        memcpy(laid_out, o->laid_out, out->n * sizeof *laid_out);
    }
    out->at = at;
    o->plans = plans;
    o->laid_out = laid_out;
    o->size = size;
    return MAQ_OK;
}

enum maq_status maq_alternative_add(struct maq_search_alternatives *out, const struct maq_search_alternative *what,
                                    const struct maq_plan *plan, bool laid_out)
{
    struct maq_alternatives_owner *o = out->owner;
    if (out->n == o->size)
        MAQ_TRY(grow(out));
    struct maq_search_alternative *a = &out->at[out->n];
    *a = *what;
    a->from = maq_arena_strdup(&o->arena, maq_str_of(what->from));
    a->to = maq_arena_strdup(&o->arena, maq_str_of(what->to));
    if (!a->from || !a->to)
        return MAQ_NO_MEMORY;
    o->laid_out[out->n] = laid_out;
    o->plans[out->n++] = *plan;
    return MAQ_OK;
}

/* The short form of a key, or itself. */
static const char *short_name(struct maq_alternatives_owner *o, const char *key)
{
    const struct maq_field *field = maq_fields_find(maq_plan_fields, maq_str_of(key));
    struct maq_str name;
    if (!field->aliases)
        return key;
    maq_str_split(maq_str_of(field->aliases), '|', &name);
    const char *copy = maq_arena_strdup(&o->arena, name);
    return copy ? copy : key;
}

/* Index of the best plan's value on an axis; the number of values where the axis does not have it. */
static uint32_t index_of(const struct maq_search_space *space, enum maq_axis axis, const struct maq_plan *plan)
{
    const struct maq_axis_values *values = &space->axis[axis];
    uint32_t i = 0;
    while (i < values->n && !maq_space_holds(plan, space, axis, values->at[i]))
        i++;
    return i;
}

static bool changes_stages(enum maq_axis axis)
{
    return axis == MAQ_AXIS_PP || axis == MAQ_AXIS_VP || axis == MAQ_AXIS_SCHEDULE;
}

/* Adjusts what a change of the axis implies: schedule and virtual stages, what follows from TP. */
static void mend(struct maq_plan *plan, enum maq_axis axis)
{
    if (changes_stages(axis))
        plan->recompute_stages = (struct maq_str){0}; /* of other stages: now all layers of each */
    if (axis == MAQ_AXIS_VP || axis == MAQ_AXIS_PP) {
        if (plan->pp == 1)
            plan->vp = 1;
        plan->schedule = plan->vp > 1 ? MAQ_SCHEDULE_INTERLEAVED : MAQ_SCHEDULE_1F1B;
    }
    if (axis == MAQ_AXIS_SCHEDULE)
        plan->vp = maq_schedule_is_v(plan->schedule)     ? 2
                   : maq_schedule_rounds(plan->schedule) ? (plan->vp > 1 ? plan->vp : 2)
                                                         : 1;
    if (axis == MAQ_AXIS_RECOMPUTE && plan->recompute_method == MAQ_RECOMPUTE_BLOCK)
        plan->recompute_num_layers = 0;
}

static bool compared(enum maq_axis axis, const struct maq_axis_values *values)
{
    bool derived = axis == MAQ_AXIS_LAYOUT || axis == MAQ_AXIS_REPLICAS || axis == MAQ_AXIS_CP_COMM ||
                   axis == MAQ_AXIS_ETP || axis == MAQ_AXIS_ORDER;
    return !derived && !values->fixed;
}

static enum maq_status list_axis(struct maq_search_alternatives *out, enum maq_axis axis, const struct maq_plan *best)
{
    struct maq_alternatives_owner *o = out->owner;
    const struct maq_axis_values *values = &o->space.axis[axis];
    uint32_t own = index_of(&o->space, axis, best);
    char from[MAQ_SPACE_WORD], to[MAQ_SPACE_WORD];
    if (own == values->n)
        return MAQ_OK;
    const char *name = short_name(o, maq_axis_key(axis));
    maq_space_word(from, &o->space, axis, values->at[own]);
    for (uint32_t i = 0; i < values->n; i++) {
        struct maq_plan plan = *best;
        if (i == own || (axis == MAQ_AXIS_RECOMPUTE &&
                         (values->at[i] == MAQ_RECOMPUTE_VALUE_BLOCK || values->at[i] == MAQ_RECOMPUTE_VALUE_STAGES)))
            continue;
        struct maq_search_alternative what = {.key = maq_axis_key(axis), .name = name, .from = from, .to = to};
        what.neighbour = i + 1 == own || i == own + 1;
        maq_space_word(to, &o->space, axis, values->at[i]);
        maq_space_apply(&plan, &o->space, axis, values->at[i]);
        mend(&plan, axis);
        if (maq_space_holds(&plan, &o->space, axis, values->at[own])) /* virtual stages of no pipeline */
            continue;
        MAQ_TRY(maq_alternative_add(out, &what, &plan, !changes_stages(axis)));
    }
    return MAQ_OK;
}

static enum maq_status list(struct maq_search_alternatives *out, const struct maq_plan *best)
{
    const struct maq_alternatives_owner *o = out->owner;
    for (int a = 0; a < MAQ_AXIS_COUNT; a++)
        if (compared((enum maq_axis)a, &o->space.axis[a]))
            MAQ_TRY(list_axis(out, (enum maq_axis)a, best));
    return MAQ_OK;
}

/* ---- what they take ---- */

static bool better(const struct maq_train_quick *a, const struct maq_train_quick *b)
{
    if (a->possible != b->possible || a->fits != b->fits)
        return a->possible > b->possible || (a->possible == b->possible && a->fits);
    return a->possible && a->step_s < b->step_s;
}

/* The best over the layouts of the space, but where it is given. */
static enum maq_status evaluate_one(struct maq_train_quick *best, struct maq_alternatives_owner *o,
                                    struct maq_plan *plan, bool laid_out)
{
    *best = (struct maq_train_quick){0};
    if (laid_out)
        return maq_train_sweep_eval(o->sweep, best, plan, 1);
    const struct maq_pipeline_list *list = maq_pipelines_of(&o->pipelines, plan->pp);
    for (uint32_t i = 0; i < list->n; i++) {
        struct maq_train_quick q;
        const struct maq_pipeline *p = &list->at[i];
        if ((p->schedule != plan->schedule && p->schedule != MAQ_SCHEDULE_AUTO) || p->vp != plan->vp)
            continue;
        plan->layout = p->layout;
        MAQ_TRY(maq_train_sweep_eval(o->sweep, &q, plan, 1));
        if (better(&q, best))
            *best = q;
    }
    return MAQ_OK;
}

static enum maq_status evaluate(struct maq_search_alternatives *out)
{
    struct maq_alternatives_owner *o = out->owner;
    for (uint32_t i = 0; i < out->n; i++) {
        struct maq_train_quick q;
        MAQ_TRY(evaluate_one(&q, o, &o->plans[i], o->laid_out[i]));
        out->at[i].possible = q.possible;
        out->at[i].fits = q.fits;
        out->at[i].step_s = q.step_s;
        out->at[i].needed_bytes = q.needed_bytes;
    }
    return MAQ_OK;
}

enum maq_status maq_alternatives_evaluate(struct maq_search_alternatives *out, maq_alternatives_fn *lists,
                                          const struct maq_loaded_job *open, const struct maq_search_result *result,
                                          const struct maq_search_opts *opts, struct maq_diag *diag)
{
    struct maq_alternatives_owner *o = calloc(1, sizeof *o);
    *out = (struct maq_search_alternatives){.owner = o};
    if (!o)
        return MAQ_NO_MEMORY;
    maq_arena_init(&o->arena, 0);
    enum maq_status status = maq_search_job(&o->job, open, opts, &o->arena, diag);
    if (status == MAQ_OK) {
        maq_search_join(&o->job);
        status = maq_space_init(&o->space, open, &o->job, opts, &o->arena, diag);
    }
    if (status == MAQ_OK)
        status = maq_pipelines_list(&o->pipelines, &o->space, &o->job, &o->arena);
    if (status == MAQ_OK)
        status = maq_train_sweep_new(&o->sweep, &o->job, diag);
    if (status == MAQ_OK && result->n_plans > 0)
        status = lists(out, &result->plans[0].plan);
    if (status == MAQ_OK)
        status = evaluate(out);
    if (status != MAQ_OK)
        maq_search_alternatives_free(out);
    return status;
}

enum maq_status maq_search_alternatives(struct maq_search_alternatives *out, const struct maq_loaded_job *open,
                                        const struct maq_search_result *result, const struct maq_search_opts *opts,
                                        struct maq_diag *diag)
{
    return maq_alternatives_evaluate(out, list, open, result, opts, diag);
}

void maq_search_alternatives_free(struct maq_search_alternatives *a)
{
    struct maq_alternatives_owner *o = a->owner;
    if (o) {
        maq_train_sweep_free(o->sweep);
        maq_arena_fini(&o->arena);
        free(o);
    }
    *a = (struct maq_search_alternatives){0};
}
