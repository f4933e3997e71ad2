/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - maq_search(): the best plans of a job, exactly, by branch and bound.
 *
 * Branches (branches.h) are taken in the order of their bounds, in rounds whose size does not depend on the number of threads; a
 * round works with the limits that the rounds before it found, and its plans are merged in the order of the branches. So the result
 * and every count are the same on any number of threads. When the next branch's bound is not under the limit, the search is over.
 *
 * The plans reported differ in their degrees (TP, CP, PP, EP, expert-TP, and with them DP): of each combination the best. The
 * limit for a combination that is not among them yet is the last of them, for one that is, its own.
 *
 * The first branches of a large space are those that save no memory and do not fit, so that it would take long until a limit is
 * known. Therefore a small part of the space is searched first (maq_space_narrow()); its plans are limits for the whole: a plan
 * that takes longer than the best one of its degrees, or than the last of the best, is never reported.
 */
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/check.h"
#include "base/str.h"
#include "plan/job_build.h"
#include "planner/codes.h"
#include "planner/space/decided_axes.h"
#include "planner/uniform/leaves.h"
#include "planner/uniform/search.h"
#include "train/sweep.h"

#define MOST_THREADS 64
#define FIRST_ROUND 4
#define LARGEST_ROUND 256

struct worker {
    pthread_t thread;
    struct maq_train_sweep *sweep;
    struct maq_arena scratch, keep;
    struct search *search;
    enum maq_status status;
};

/* What a branch of the running round gave. */
struct find {
    struct maq_search_plan best, frugal;
    struct maq_refused refused;
    struct maq_search_counts counts;
    struct maq_pareto front;
};

struct search {
    const struct maq_loaded_job *open;
    struct maq_job job; /* with the devices and memory that the options leave */
    const struct maq_search_opts *opts;
    struct maq_arena arena; /* space, branches, plans' strings */
    struct maq_search_space space;
    struct maq_pipelines pipelines;
    struct maq_search_branches branches;
    struct maq_search_branch **order; /* by bound */
    struct worker workers[MOST_THREADS];
    uint32_t n_workers;
    /* the running round: branches order[from .. to) */
    bool bounding, trying; /* trying: in the small part */
    bool gave_up;          /* stopped before the whole space was bounded: only plans of the small part are known */
    uint32_t from, to, taken;
    pthread_mutex_t lock;
    struct find finds[LARGEST_ROUND];
    /* so far */
    uint32_t top, n_best, n_first;
    struct maq_search_plan *best;  /* [top], sorted */
    struct maq_search_plan *first; /* [n_first] the best of the small part, sorted */
    struct maq_search_plan frugal;
    struct maq_refused refused;
    struct maq_pareto front;
    struct maq_search_counts counts, small; /* small: of the small part */
    double limit_s;                         /* plans that take no less are of no interest; 0 = none */
};

/* ---- the best so far ---- */

static bool same_degrees(const struct maq_plan *a, const struct maq_plan *b)
{
    return a->tp == b->tp && a->cp == b->cp && a->pp == b->pp && a->ep == b->ep && a->etp == b->etp;
}

/* The step that a plan with these degrees has to beat to be among the `top` best, of which n are known. */
static double limit_among(const struct maq_search_plan *best, uint32_t n, uint32_t top, const struct maq_plan *plan)
{
    for (uint32_t i = 0; i < n; i++)
        if (same_degrees(&best[i].plan, plan))
            return best[i].step_s;
    return n < top ? HUGE_VAL : best[n - 1].step_s;
}

/*
 * The limit at present. Plans of the small part have to be found again in the whole space, so the limit is no less than
 * theirs.
 */
static double limit_for(const struct search *s, const struct maq_plan *plan)
{
    double now = limit_among(s->best, s->n_best, s->top, plan);
    now = s->limit_s > 0 ? fmin(now, s->limit_s) : now;
    return s->n_first == 0 ? now : fmin(now, nextafter(limit_among(s->first, s->n_first, s->top, plan), HUGE_VAL));
}

static void keep(struct search *s, const struct maq_search_plan *plan)
{
    uint32_t at = 0;
    if (plan->step_s <= 0 || plan->step_s >= limit_for(s, &plan->plan))
        return;
    while (at < s->n_best && !same_degrees(&s->best[at].plan, &plan->plan))
        at++;
    if (at == s->n_best && s->n_best < s->top)
        s->n_best++;
    if (at == s->n_best)
        at--;
    for (; at > 0 && s->best[at - 1].step_s > plan->step_s; at--)
        s->best[at] = s->best[at - 1];
    s->best[at] = *plan;
}

static void add_counts(struct maq_search_counts *to, const struct maq_search_counts *c)
{
    to->bounded += c->bounded;
    to->impossible += c->impossible;
    to->unfit += c->unfit;
    to->scored += c->scored;
}

/* ---- rounds ---- */

static void explore(struct worker *w, uint32_t i)
{
    struct search *s = w->search;
    struct find *find = &s->finds[i - s->from];
    struct maq_search_branch *branch = s->order[i];
    struct maq_plan plan;
    maq_branch_plan(&plan, &s->space, branch);
    struct maq_leaf_search leaves = {.space = &s->space,
                                     .pipelines = &s->pipelines,
                                     .job = &s->job,
                                     .sweep = w->sweep,
                                     .scratch = &w->scratch,
                                     .keep = &w->keep,
                                     .exhaustive = s->opts->exhaustive,
                                     .limit_s = limit_for(s, &plan),
                                     .front = s->opts->pareto_memory ? &s->front : NULL,
                                     .found = &find->front};
    maq_pareto_clear(&find->front);
    w->status = maq_leaves_explore(&leaves, branch);
    find->best = leaves.best;
    find->frugal = leaves.frugal;
    find->refused = leaves.refused;
    find->counts = leaves.counts;
}

static bool stopped(const struct search *s)
{
    return s->opts->stop && *s->opts->stop;
}

/* Whether the search was stopped before the whole space is listed and bounded, which can take a minute: the small part never is. */
static bool gives_up(const struct search *s)
{
    return !s->trying && stopped(s);
}

/* From the thread of the caller alone. */
static void tell(const struct search *s, enum maq_search_phase phase, uint32_t done)
{
    if (!s->opts->progress)
        return;
    struct maq_search_progress at = {.counts = s->counts, .branches_done = done, .phase = phase, .first = s->trying};
    at.counts.branches = s->branches.n;
    at.best_s = phase == MAQ_SEARCH_EXPLORES && s->n_best > 0 ? s->best[0].step_s : 0;
    if (phase == MAQ_SEARCH_EXPLORES)
        at.bound_s = done < s->branches.n ? s->order[done]->bound_s : at.best_s;
    s->opts->progress(s->opts->context, &at);
}

static void *work(void *context)
{
    struct worker *w = context;
    struct search *s = w->search;
    while (w->status == MAQ_OK) {
        bool ends = s->bounding ? gives_up(s) : stopped(s);
        pthread_mutex_lock(&s->lock);
        uint32_t i = s->taken < s->to && !ends ? s->taken++ : s->to;
        pthread_mutex_unlock(&s->lock);
        if (i == s->to)
            break;
        if (s->bounding)
            w->status = maq_branch_bound(&s->branches.at[i], &s->space, &s->job, w->sweep, &w->scratch);
        else
            explore(w, i);
        if (w == &s->workers[0])
            tell(s, s->bounding ? MAQ_SEARCH_BOUNDS : MAQ_SEARCH_EXPLORES, i + 1);
    }
    return NULL;
}

/* Branches [from, to) over all threads; this one is the first of them. */
static enum maq_status run_round(struct search *s, uint32_t from, uint32_t to)
{
    uint32_t started = 1;
    s->from = s->taken = from;
    s->to = to;
    while (started < s->n_workers && started < to - from &&
           pthread_create(&s->workers[started].thread, NULL, work, &s->workers[started]) == 0)
        started++;
    work(&s->workers[0]);
    for (uint32_t i = 1; i < started; i++)
        pthread_join(s->workers[i].thread, NULL);
    for (uint32_t i = 0; i < started; i++)
        MAQ_TRY(s->workers[i].status);
    return MAQ_OK;
}

static enum maq_status merge(struct search *s)
{
    for (uint32_t i = s->from; i < s->to; i++) {
        struct find *find = &s->finds[i - s->from];
        keep(s, &find->best);
        add_counts(&s->counts, &find->counts);
        if (find->frugal.needed_bytes > 0 &&
            (s->frugal.needed_bytes == 0 || find->frugal.needed_bytes < s->frugal.needed_bytes))
            s->frugal = find->frugal;
        maq_refused_keep(&s->refused, &find->refused);
        for (uint32_t k = 0; k < find->front.n; k++)
            MAQ_TRY(maq_pareto_add(&s->front, &find->front.at[k]));
    }
    return MAQ_OK;
}

/* Whether a branch can still hold a plan that is reported. */
static bool worth(const struct search *s, const struct maq_search_branch *branch)
{
    struct maq_plan plan;
    if (s->opts->exhaustive || s->opts->pareto_memory)
        return true;
    maq_branch_plan(&plan, &s->space, branch);
    return branch->bound_s < limit_for(s, &plan);
}

/* Drops branches that can hold no such plan from the front of the queue; returns where the next round begins. */
static uint32_t skip(struct search *s, uint32_t at)
{
    while (at < s->branches.n && (s->order[at]->impossible || !worth(s, s->order[at]))) {
        uint64_t *count = s->order[at]->impossible ? &s->counts.impossible : &s->counts.bounded;
        *count += s->order[at]->plans;
        at++;
    }
    return at;
}

/* Every branch in turn. *reached: where a stopped search was. */
static enum maq_status explore_all(struct search *s, uint32_t *reached)
{
    uint32_t at = skip(s, 0), size = FIRST_ROUND;
    while (at < s->branches.n && !stopped(s)) {
        uint32_t to = at;
        while (to < s->branches.n && to - at < size && !s->order[to]->impossible && worth(s, s->order[to]))
            to++;
        MAQ_TRY(run_round(s, at, to));
        to = s->to = s->taken; /* less than it was where the round was stopped */
        MAQ_TRY(merge(s));
        at = skip(s, to);
        size = 2 * size < LARGEST_ROUND ? 2 * size : LARGEST_ROUND;
        tell(s, MAQ_SEARCH_EXPLORES, at);
    }
    *reached = at;
    return MAQ_OK;
}

static int by_bound(const void *a, const void *b)
{
    const struct maq_search_branch *x = *(struct maq_search_branch *const *)a,
                                   *y = *(struct maq_search_branch *const *)b;
    if (x->impossible != y->impossible)
        return x->impossible ? 1 : -1;
    if (x->bound_s != y->bound_s)
        return x->bound_s < y->bound_s ? -1 : 1;
    return x->number < y->number ? -1 : x->number > y->number;
}

/* No plan of the space is possible. `example` is one of them, for the reason to report; NULL: there is none, because of the
 * degree of DP that the job fixes. */
static enum maq_status refuse_empty(struct search *s, const struct maq_plan *example, struct maq_diag *diag)
{
    const struct maq_job *job = &s->job;
    bool says_why = example && maq_train_sweep_check(s->workers[0].sweep, example, s->open, diag) != MAQ_OK;
    struct maq_span at = {0};
    if (!example) {
        const struct maq_job_places places = maq_job_written(s->open);
        at = maq_place_of_plan(&places, "data_parallel_size");
    }
    return maq_diag_fail(
        MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_EMPTY, at,
        says_why ? "one of them is refused for what stands above, and none is not: look at what the job keeps fixed"
                 : "the product of the degrees must divide the devices, dp x micro batch the global batch, tp the "
                   "attention heads: look at what the job keeps fixed",
        "no plan goes together with %u devices, %d sequences per step and %s", job->cluster.devices, job->workload.gbs,
        job->model.name);
}

static enum maq_status bound_all(struct search *s)
{
    s->bounding = true;
    enum maq_status status = run_round(s, 0, s->branches.n);
    s->bounding = false;
    s->gave_up = s->taken < s->branches.n;
    tell(s, MAQ_SEARCH_BOUNDS, s->taken); /* others may have taken all of them */
    for (uint32_t i = 0; i < s->branches.n; i++) {
        s->order[i] = &s->branches.at[i];
        s->counts.considered += s->branches.at[i].plans;
    }
    if (s->branches.n > 0)
        qsort(s->order, s->branches.n, sizeof(struct maq_search_branch *), by_bound);
    s->counts.branches = s->branches.n;
    return status;
}

/* ---- a space ---- */

static enum maq_status list_branches(struct search *s)
{
    MAQ_TRY(maq_pipelines_list(&s->pipelines, &s->space, &s->job, &s->arena));
    MAQ_TRY(maq_branches_list(&s->branches, &s->space, &s->job, &s->arena));
    for (uint32_t i = 0; i < s->branches.n && !s->gave_up; i++) {
        struct maq_plan plan;
        s->gave_up = gives_up(s);
        maq_branch_plan(&plan, &s->space, &s->branches.at[i]);
        s->branches.at[i].plans = maq_leaves_count(&s->space, &s->pipelines, &s->job, &plan);
        tell(s, MAQ_SEARCH_LISTS, i + 1);
    }
    s->order = MAQ_ARENA_NEW(&s->arena, struct maq_search_branch *, s->branches.n);
    s->best = MAQ_ARENA_NEW(&s->arena, struct maq_search_plan, s->top);
    return s->order && s->best ? MAQ_OK : MAQ_NO_MEMORY;
}

/* The best plans of the space as it is. */
static enum maq_status search_space(struct search *s, uint32_t *reached)
{
    *reached = 0;
    MAQ_TRY(list_branches(s));
    if (!s->gave_up)
        MAQ_TRY(bound_all(s));
    return s->gave_up ? MAQ_OK : explore_all(s, reached);
}

/* The small part, if there is one: its best plans are what the whole has to beat. */
static enum maq_status search_first(struct search *s)
{
    struct maq_search_space whole = s->space;
    uint32_t reached;
    if (s->opts->exhaustive || s->opts->pareto_memory || !s->opts->full)
        return MAQ_OK;
    MAQ_TRY(maq_space_narrow(&s->space, &whole, &s->arena));
    s->trying = true;
    MAQ_TRY(search_space(s, &reached));
    s->trying = false;
    s->space = whole;
    s->first = s->best;
    s->n_first = s->n_best;
    s->n_best = 0;
    s->frugal = (struct maq_search_plan){0};
    s->small = s->counts;
    s->counts = (struct maq_search_counts){0};
    return MAQ_OK;
}

static enum maq_status search_whole(struct search *s, uint32_t *reached, struct maq_diag *diag)
{
    MAQ_TRY(search_space(s, reached));
    if (!s->gave_up && s->branches.n == 0) {
        /* then the diagnostic is about dp, with the other keys at their defaults */
        bool dp_kept = s->space.base.dp > 0;
        return refuse_empty(s, dp_kept ? NULL : &s->space.base, diag);
    }
    if (!s->gave_up && (s->order[0]->impossible || s->counts.considered == 0)) {
        struct maq_plan first;
        maq_branch_plan(&first, &s->space, s->order[0]);
        return refuse_empty(s, &first, diag);
    }
    s->counts = s->gave_up ? s->small : s->counts;
    uint32_t n = s->n_first;
    s->n_first = 0;
    /* left by a search that was stopped, or could gain less than MAQ_NEGLIGIBLE_GAIN */
    for (uint32_t i = 0; i < n; i++)
        keep(s, &s->first[i]);
    return MAQ_OK;
}

/* ---- beginning and end ---- */

static uint32_t thread_count(const struct maq_search_opts *opts)
{
    long n = opts->threads > 0 ? (long)opts->threads : sysconf(_SC_NPROCESSORS_ONLN);
    return n < 1 ? 1 : n > MOST_THREADS ? MOST_THREADS : (uint32_t)n;
}

static enum maq_status begin(struct search *s, struct maq_diag *diag)
{
    MAQ_TRY(maq_search_job(&s->job, s->open, s->opts, &s->arena, diag));
    maq_search_join(&s->job);
    if (s->job.cluster.n_groups > 1)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_ONE_KIND, (struct maq_span){0},
                             "plan each kind of node by itself, or predict a plan over all of them with maquette train",
                             "the cluster has %u kinds of nodes; this search is for one", s->job.cluster.n_groups);
    MAQ_TRY(maq_space_init(&s->space, s->open, &s->job, s->opts, &s->arena, diag));
    if (s->space.base.post_validation) /* bounds of a search are those of a step alone */
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_SEARCH_AXIS,
                             maq_space_place_of(s->open, "enable_optimizer_post_validation"),
                             "leave it out, and predict the plan that is found with maquette train and it",
                             "enable_optimizer_post_validation: steps that overlap are predicted, and not searched");
    s->top = s->opts->top > 0 ? s->opts->top : 5;
    uint32_t n = thread_count(s->opts);
    for (; s->n_workers < n; s->n_workers++) {
        struct worker *w = &s->workers[s->n_workers];
        w->search = s;
        maq_arena_init(&w->scratch, 0);
        maq_arena_init(&w->keep, 0);
        MAQ_TRY(s->n_workers == 0 ? maq_train_sweep_new(&w->sweep, &s->job, diag)
                                  : maq_train_sweep_beside(&w->sweep, s->workers[0].sweep, NULL));
    }
    return MAQ_OK;
}

static void end(struct search *s)
{
    for (uint32_t i = 0; i < s->n_workers; i++) {
        maq_train_sweep_free(s->workers[i].sweep);
        maq_arena_fini(&s->workers[i].scratch);
        maq_arena_fini(&s->workers[i].keep);
    }
    for (uint32_t i = 0; i < LARGEST_ROUND; i++)
        maq_pareto_fini(&s->finds[i].front);
    maq_pareto_fini(&s->front);
    pthread_mutex_destroy(&s->lock);
    maq_arena_fini(&s->arena);
    free(s);
}

static enum maq_status list_axes(struct maq_search_result *r, struct search *s)
{
    r->axes = MAQ_ARENA_NEW(&s->arena, struct maq_search_axis, MAQ_AXIS_COUNT);
    if (!r->axes)
        return MAQ_NO_MEMORY;
    for (int a = 0; a < MAQ_AXIS_COUNT; a++) {
        const struct maq_axis_values *values = &s->space.axis[a];
        struct maq_buf text;
        char word[MAQ_SPACE_WORD];
        maq_buf_init(&text, 1 << 16);
        for (uint32_t i = 0; i < values->n; i++)
            maq_buf_addf(&text, "%s%s", i > 0 ? ", " : "",
                         maq_space_word(word, &s->space, (enum maq_axis)a, values->at[i]));
        char *copy = text.failed ? NULL : maq_arena_strdup(&s->arena, (struct maq_str){text.ptr, text.len});
        maq_buf_fini(&text);
        if (!copy)
            return MAQ_NO_MEMORY;
        r->axes[r->n_axes++] = (struct maq_search_axis){maq_axis_key((enum maq_axis)a), copy, values->fixed};
    }
    return MAQ_OK;
}

static bool may_offload(const struct maq_search_space *space)
{
    const struct maq_axis_values *axis = &space->axis[MAQ_AXIS_OFFLOAD];
    bool any = false;
    for (uint32_t i = 0; i < axis->n && axis->n > 1; i++)
        any |= axis->at[i] > 0;
    return any;
}

#define NO_LIMIT 1e18 /* bytes: no bound on memory leaves a plan out */

/*
 * A search that found no plan, not even one that does not fit: what the job fixes may contradict itself, and bounds on memory
 * dropped the plans before that showed. Then more memory does not help, and the reason reported is that of the first plan.
 */
static enum maq_status refuse_contradiction(struct search *s, struct maq_diag *diag)
{
    const struct maq_search_counts *c = &s->counts;
    if (s->n_best > 0 || c->unfit > 0 || c->scored > 0 || s->refused.by == MAQ_REFUSED_NONE || s->gave_up || stopped(s))
        return MAQ_OK;
    /* no bound on memory dropped a plan, so none is possible */
    if (c->bounded == 0 || s->opts->memory_bytes >= NO_LIMIT)
        return refuse_empty(s, &s->refused.plan, diag);
    struct maq_search_opts roomy = *s->opts;
    struct maq_search_result *r = NULL;
    roomy.memory_bytes = NO_LIMIT;
    roomy.pareto_memory = false;
    roomy.progress = NULL;
    MAQ_TRY(maq_search(&r, s->open, &roomy, diag));
    maq_search_result_free(r);
    return MAQ_OK;
}

/* The result lives in the search, which it owns. */
static enum maq_status finish(struct maq_search_result **out, struct search *s, uint32_t reached)
{
    struct maq_search_result *r = MAQ_ARENA_NEW(&s->arena, struct maq_search_result, 1);
    if (!r)
        return MAQ_NO_MEMORY;
    r->plans = s->best;
    r->n_plans = s->n_best;
    r->pareto = s->front.at;
    r->n_pareto = s->front.n;
    r->frugal = s->frugal;
    r->frugal_found = s->frugal.needed_bytes > 0;
    r->complete = reached >= s->branches.n && !s->gave_up;
    r->bound_s = s->n_best > 0 ? s->best[0].step_s : 0;
    if (s->gave_up)
        r->bound_s = 0;
    else if (!r->complete && (s->n_best == 0 || s->order[reached]->bound_s < r->bound_s))
        r->bound_s = s->order[reached]->bound_s;
    r->unproven_share = !s->opts->exhaustive && may_offload(&s->space) ? MAQ_NEGLIGIBLE_GAIN : 0;
    r->counts = s->counts;
    r->owner = s;
    MAQ_TRY(list_axes(r, s));
    *out = r;
    return MAQ_OK;
}

enum maq_status maq_search(struct maq_search_result **out, const struct maq_loaded_job *open,
                           const struct maq_search_opts *opts, struct maq_diag *diag)
{
    struct search *s = calloc(1, sizeof *s);
    uint32_t reached = 0;
    if (!s)
        return MAQ_NO_MEMORY;
    s->opts = opts;
    maq_arena_init(&s->arena, 0);
    pthread_mutex_init(&s->lock, NULL);
    s->open = open;
    enum maq_status status = begin(s, diag);
    if (status == MAQ_OK)
        status = search_first(s);
    if (status == MAQ_OK)
        status = search_whole(s, &reached, diag);
    if (status == MAQ_OK)
        status = refuse_contradiction(s, diag);
    if (status == MAQ_OK)
        status = finish(out, s, reached);
    if (status != MAQ_OK)
        end(s);
    return status;
}

enum maq_status maq_search_with_memory(struct maq_search_plan *out, bool *complete, struct maq_search_result *result,
                                       const struct maq_search_opts *opts, double more)
{
    struct search *s = result->owner;
    struct maq_search_opts one = *opts;
    struct maq_search_plan best = {.step_s = 0};
    uint32_t reached = 0;
    MAQ_ASSERT(result->complete && result->n_plans > 0);
    one.progress = NULL;
    one.pareto_memory = false;
    s->opts = &one;
    s->limit_s = result->plans[0].step_s;
    s->top = 1;
    s->best = &best;
    s->n_best = 0;
    for (uint32_t g = 0; g < s->job.cluster.n_groups; g++)
        s->job.cluster.groups[g].device.mem_bytes *= more;
    enum maq_status status = explore_all(s, &reached);
    *complete = reached >= s->branches.n;
    *out = s->n_best > 0 ? best : (struct maq_search_plan){.step_s = 0};
    s->opts = opts;
    s->best = result->plans;
    return status;
}

void maq_search_result_free(struct maq_search_result *result)
{
    if (result)
        end(result->owner);
}
