/*
 * mixed_remedies.c - nothing fits on several node groups: the least of each kind of help that would change that.
 *
 * More memory on every device, or more nodes of one group, by doubling and then bisection to a gibibyte and to a node; techniques that are
 * looked at only where they are asked for. What is asked each time is only whether something fits (mixed_fits.h), with the smallest
 * micro batch and 1, 2, 4, ... replicas.
 */
#include <math.h>

#include "base/check.h"
#include "compose/codes.h"
#include "compose/mixed_fits.h"
#include "compose/mixed_search.h"
#include "compose/mixed_space.h"

#define GIB (1024.0 * 1024.0 * 1024.0)
#define MOST_BYTES (1024 * GIB)
#define MOST_NODES 64u /* times what there is */
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
            !maq_mixed_fits(out, &table, &run->arena))
            return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_SEARCH_LIMIT, (struct maq_span){0}, NULL,
                                 "out of memory for the search");
    }
    return MAQ_OK;
}

static enum maq_status try(bool *out, const struct maq_job_box *open, const struct maq_mixed_search_opts *opts,
                           struct maq_diag *diag)
{
    const struct maq_mixed_space_lists lists = {opts->lists,      opts->n_lists,    opts->planner,
                                                opts->more_bytes, opts->more_nodes, opts->more_nodes_of};
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

static enum maq_status least(double *out, const struct dial *dial, const struct maq_job_box *open,
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
    opts->more_bytes = to * GIB;
}

static void turn_nodes(struct maq_mixed_search_opts *opts, double to)
{
    opts->more_nodes = (uint32_t)to;
}

static enum maq_status techniques(struct maq_mixed_search_remedies *out, const struct maq_job_box *open,
                                  struct maq_mixed_search_opts opts, struct maq_diag *diag)
{
    const char *lists[MOST_LISTS + 2];
    if (opts.n_lists > MOST_LISTS || opts.planner != MAQ_MIXED_PLANNER_ALL)
        return MAQ_OK;
    for (size_t i = 0; i < opts.n_lists; i++)
        lists[i] = opts.lists[i];
    if (!maq_job_sets(open, "data_parallel_sharding_strategy"))
        lists[opts.n_lists++] = "data_parallel_sharding_strategy=no_shard,optim,optim_grads,optim_grads_params";
    if (!maq_job_sets(open, "optimizer_offload_fraction"))
        lists[opts.n_lists++] = "optimizer_offload_fraction=0,1";
    opts.lists = lists;
    return try(&out->techniques, open, &opts, diag);
}

enum maq_status maq_mixed_search_find_remedies(struct maq_mixed_search_remedies *out, const struct maq_job_box *open,
                                               const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    struct maq_mixed_search_opts one = *opts;
    const struct dial memory = {MOST_BYTES / GIB, turn_memory};
    double gibs = 0;
    *out = (struct maq_mixed_search_remedies){.n_islands = 0};
    MAQ_TRY(techniques(out, open, one, diag));
    MAQ_TRY(least(&gibs, &memory, open, one, diag));
    out->more_bytes = gibs * GIB;
    const struct maq_cluster *c = &maq_job_get(open)->cluster;
    for (uint32_t g = 0; g < c->n_groups && g < MAQ_COUNT(out->islands); g++) {
        const struct dial nodes = {MOST_NODES * (double)c->groups[g].nodes, turn_nodes};
        double more = 0;
        out->islands[g].device = c->groups[g].device.name;
        one.more_nodes_of = g;
        MAQ_TRY(least(&more, &nodes, open, one, diag));
        out->islands[g].more_nodes = (uint32_t)more;
        out->n_islands = g + 1;
    }
    return MAQ_OK;
}
