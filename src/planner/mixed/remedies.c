/* SPDX-License-Identifier: Apache-2.0 */
/*
 * remedies.c - when nothing fits on several node groups: the least memory, nodes or techniques with which something fits.
 *
 * More memory on every device, or more nodes of one group, by doubling and then bisection to a gibibyte and to a node; and
 * techniques that a search does not try by default. Each trial only decides whether something fits (feasibility.h), with the
 * smallest micro batch and 1, 2, 4, ... replicas.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "planner/mixed/feasibility.h"
#include "planner/mixed/search_state.h"
#include "planner/mixed/space.h"
#include "planner/stages/codes.h"

#define MOST_BYTES (1024 * MAQ_GIB)
#define MOST_NODES 64u /* times the nodes of the group */
#define MOST_LISTS 64

/* Whether something fits on the cluster that the options make of the job's. */
static enum maq_status fits(bool *out, struct maq_mixed_run *run, struct maq_diag *diag)
{
    uint32_t mbs = 0;
    *out = false;
    MAQ_TRY(maq_chain_costs_init(&run->costs, &run->space, diag));
    for (uint32_t b = 1; b < run->space.n_mbs; b++)
        mbs = run->space.mbs[b] < run->space.mbs[mbs] ? b : mbs;
    for (uint32_t replicas = 1; replicas <= run->costs.most_replicas && !*out; replicas *= 2) {
        const struct maq_chain_wave wave = {.mbs = mbs, .replicas = replicas};
        struct maq_stage_table table;
        if (replicas * run->space.mbs[mbs] > (uint32_t)run->space.job.workload.gbs)
            break;
        if (!maq_chain_costs_table(&table, &run->costs, &wave, &run->arena) ||
            !maq_mixed_feasible(out, &table, &run->arena))
            return maq_no_memory(diag, "the search");
    }
    return MAQ_OK;
}

static enum maq_status try(bool *out, const struct maq_loaded_job *open, const struct maq_mixed_search_opts *opts,
                           struct maq_diag *diag)
{
    const struct maq_mixed_space_lists lists = maq_mixed_lists(opts);
    struct maq_mixed_run run = {.n_waves = 0};
    maq_arena_init(&run.arena, 0);
    enum maq_status status = maq_mixed_space_init(&run.space, open, &lists, &run.arena, diag);
    if (status == MAQ_OK)
        status = fits(out, &run, diag);
    maq_chain_costs_fini(&run.costs);
    maq_arena_fini(&run.arena);
    return status;
}

static bool stopped(const struct maq_mixed_search_opts *opts)
{
    return opts->stop && *opts->stop;
}

/* The least of 1 ... most of something that fits, if any does. */
struct dial {
    double most;
    void (*turn)(struct maq_mixed_search_opts *opts, double to);
};

static enum maq_status least(double *out, const struct dial *dial, const struct maq_loaded_job *open,
                             struct maq_mixed_search_opts opts, struct maq_diag *diag)
{
    double low = 0, high = 1;
    bool s = false;
    for (; high <= dial->most && !stopped(&opts); high *= 2) {
        dial->turn(&opts, high);
        MAQ_TRY(try(&s, open, &opts, diag));
        if (s)
            break;
        low = high;
    }
    if (!s)
        return MAQ_OK;
    *out = high;
    while (high - low > 1 && !stopped(&opts)) {
        double middle = floor((low + high) / 2);
        dial->turn(&opts, middle);
        MAQ_TRY(try(&s, open, &opts, diag));
        if (s)
            *out = high = middle;
        else
            low = middle;
    }
    return MAQ_OK;
}

static void turn_memory(struct maq_mixed_search_opts *opts, double to)
{
    opts->more_bytes = to * MAQ_GIB;
}

static void turn_nodes(struct maq_mixed_search_opts *opts, double to)
{
    opts->more_nodes = (uint32_t)to;
}

static enum maq_status with_techniques(bool *out, const struct maq_mixed_search_remedies *r,
                                       const struct maq_loaded_job *open, struct maq_mixed_search_opts opts,
                                       struct maq_diag *diag)
{
    const char *lists[MOST_LISTS + MAQ_COUNT(r->techniques)];
    for (size_t i = 0; i < opts.n_lists; i++)
        lists[i] = opts.lists[i];
    for (uint32_t i = 0; i < r->n_techniques; i++)
        lists[opts.n_lists++] = r->techniques[i];
    opts.lists = lists;
    return try(out, open, &opts, diag);
}

/* Drops the techniques without which it still fits. */
static enum maq_status drop_needless(struct maq_mixed_search_remedies *r, const struct maq_loaded_job *open,
                                     const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    for (uint32_t i = 0; i + 1 < r->n_techniques;) {
        struct maq_mixed_search_remedies without = *r;
        bool fits;
        without.n_techniques--;
        memmove(without.techniques[i], r->techniques[i + 1], (without.n_techniques - i) * sizeof *r->techniques);
        MAQ_TRY(with_techniques(&fits, &without, open, *opts, diag));
        if (fits)
            *r = without;
        else
            i++;
    }
    return MAQ_OK;
}

/* Tried in this order: sharded states, the optimizer on the host, offloaded activations. */
static enum maq_status techniques(struct maq_mixed_search_remedies *out, const struct maq_loaded_job *open,
                                  const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    char layers[16];
    maq__snprintf(layers, sizeof layers, "0,%u", maq_job_get(open)->model.num_layers);
    const char *const rungs[][2] = {
        {"data_parallel_sharding_strategy", "no_shard,optim,optim_grads,optim_grads_params"},
        {"optimizer_offload_fraction", "0,1"},
        {"cpu_offloading_num_layers", layers}};
    bool fits = false;
    if (opts->n_lists > MOST_LISTS || opts->planner != MAQ_MIXED_PLANNER_ALL)
        return MAQ_OK;
    for (size_t i = 0; i < MAQ_COUNT(rungs) && !fits; i++) {
        if (maq_job_sets(open, rungs[i][0]))
            continue;
        maq__snprintf(out->techniques[out->n_techniques++], sizeof *out->techniques, "%s=%s", rungs[i][0], rungs[i][1]);
        MAQ_TRY(with_techniques(&fits, out, open, *opts, diag));
    }
    if (!fits)
        out->n_techniques = 0;
    return drop_needless(out, open, opts, diag);
}

/* The job on one of its node groups. */
static struct maq_job job_on(const struct maq_job *whole, struct maq_node_group *group)
{
    struct maq_job job = *whole;
    group->first_rank = 0;
    job.cluster.groups = group;
    job.cluster.n_groups = 1;
    job.cluster.n_links = 0;
    job.cluster.devices = (uint32_t)group->nodes * (uint32_t)group->devices_per_node;
    return job;
}

/* MAQ_OK where the group by itself can run what the job keeps, with the rest at its default. */
static enum maq_status check_group(const struct maq_job *whole, uint32_t g, const struct maq_loaded_job *written,
                                   struct maq_diag *diag)
{
    struct maq_node_group group = whole->cluster.groups[g];
    const struct maq_job job = job_on(whole, &group);
    struct maq_train_sweep *sweep = NULL;
    enum maq_status status = maq_train_sweep_new(&sweep, &job, diag);
    if (status == MAQ_OK)
        status = maq_train_sweep_check(sweep, &job.plan, written, diag);
    maq_train_sweep_free(sweep);
    return status;
}

/* The degrees that come first in the lists of a space; where there is no list, what the plan says. */
static void take_first(struct maq_plan *p, const struct maq_chain_space *s)
{
    p->tp = s->n_tp > 0 ? (int32_t)s->tp[0] : p->tp;
    p->cp = s->n_cp > 0 ? (int32_t)s->cp[0] : p->cp;
    p->ep = s->n_ep > 0 ? (int32_t)s->ep[0] : p->ep;
    p->mbs = s->n_mbs > 0 ? (int32_t)s->mbs[0] : p->mbs;
}

/*
 * Nothing helps: if no node group can run what the job fixes, or the first values of its lists, that is the reason to
 * report.
 */
static enum maq_status check_kept(const struct maq_loaded_job *open, const struct maq_mixed_search_opts *opts,
                                  struct maq_diag *diag)
{
    const struct maq_mixed_space_lists lists = {.lists = opts->lists, .n = opts->n_lists, .planner = opts->planner};
    struct maq_chain_space space;
    struct maq_arena arena;
    maq_arena_init(&arena, 0);
    enum maq_status status = maq_mixed_space_init(&space, open, &lists, &arena, diag);
    bool runs = false;
    if (status == MAQ_OK)
        take_first(&space.job.plan, &space);
    for (uint32_t g = 0; status == MAQ_OK && g < space.job.cluster.n_groups; g++)
        runs = runs || check_group(&space.job, g, open, NULL) == MAQ_OK;
    if (status == MAQ_OK && !runs)
        status = check_group(&space.job, 0, open, diag);
    maq_arena_fini(&arena);
    if (status == MAQ_OK)
        return MAQ_OK;
    const struct maq_job *job = maq_job_get(open);
    return maq_diag_fail(status, diag, MAQ_CODE_SEARCH_MIXED, (struct maq_span){0},
                         "look at what stands above, at what the job keeps fixed and at what is listed",
                         "no stage of %s goes together with what is asked for, on any of the %u node groups",
                         job->model.name, job->cluster.n_groups);
}

enum maq_status maq_mixed_search_find_remedies(struct maq_mixed_search_remedies *out, const struct maq_loaded_job *open,
                                               const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    struct maq_mixed_search_opts one = *opts;
    const struct dial memory = {MOST_BYTES / MAQ_GIB, turn_memory};
    double gibs = 0;
    *out = (struct maq_mixed_search_remedies){.n_islands = 0};
    one.as_predicted = true;
    MAQ_TRY(try(&out->as_predicted, open, &one, diag));
    one.as_predicted = opts->as_predicted;
    MAQ_TRY(techniques(out, open, &one, diag));
    MAQ_TRY(least(&gibs, &memory, open, one, diag));
    out->more_bytes = gibs * MAQ_GIB;
    bool helps = gibs > 0 || out->n_techniques > 0 || out->as_predicted;
    const struct maq_cluster *c = &maq_job_get(open)->cluster;
    for (uint32_t g = 0; g < c->n_groups && g < MAQ_COUNT(out->islands); g++) {
        const struct dial nodes = {MOST_NODES * (double)c->groups[g].nodes, turn_nodes};
        double more = 0;
        out->islands[g].device = c->groups[g].device.name;
        one.more_nodes_of = g;
        MAQ_TRY(least(&more, &nodes, open, one, diag));
        out->islands[g].more_nodes = (uint32_t)more;
        out->n_islands = g + 1;
        helps = helps || more > 0;
    }
    return helps || stopped(opts) ? MAQ_OK : check_kept(open, opts, diag);
}
