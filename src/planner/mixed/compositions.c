/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compositions.c - an open job becomes stage tables (planner/stages/stage_costs.h), and the compositions found
 * (planner/compose/search.h) become a result.
 *
 * Waves. A step of M waves needs waves of at least global batch / M samples. More replicas for the same M only add to
 * the synchronization, so of all numbers of replicas only the least for each M is considered. (With ZeRO-1 more
 * shards take less memory: a plan that fits only with one more replica for the same M is missed.)
 *
 * Effort. The best composition is searched for exactly, up to a number of labels and boxes for each wave; what is not
 * settled by then is bounded, and the result says so. Few labels are tried first, and more where they leave more than
 * some percent open: with experts there are hundreds of strategies of a stage, which few labels do not settle.
 */
#include "planner/mixed/compositions.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "planner/compose/layer_ranges.h"
#include "planner/mixed/data_parallel.h"
#include "planner/mixed/local_search.h"
#include "planner/mixed/space.h"
#include "planner/mixed/uniform.h"
#include "planner/mixed/virtual_stages.h"
#include "planner/space/space.h"

#define LABELS_OF_TWO (1u << 16) /* labels with two node groups; with more groups a label costs more */
#define LABELS_OF_MORE (1u << 14)
#define PLAIN_MAY_LOSE 1.05 /* by the closed form */
#define GOOD_GAP 0.03       /* gap that the search with few labels may leave */

static enum maq_status list_waves(struct maq_mixed_run *run, struct maq_diag *diag)
{
    uint32_t most = 0, gbs = (uint32_t)run->space.job.workload.gbs;
    for (uint32_t g = 0; g < run->costs.n_pools; g++)
        most = run->costs.pools[g].at->count > most ? run->costs.pools[g].at->count : most;
    most = most < gbs ? most : gbs;
    run->waves = MAQ_ARENA_NEW(&run->arena, struct maq_chain_wave, (size_t)run->space.n_mbs * most);
    if (!run->waves)
        return maq_no_memory(diag, "the search");
    for (uint32_t b = 0; b < run->space.n_mbs; b++) {
        uint32_t samples = run->space.mbs[b], last = 0;
        for (uint32_t n = 1; n <= most && samples * n < gbs + samples; n++) {
            uint32_t waves = (gbs + samples * n - 1) / (samples * n);
            if (waves != last)
                run->waves[run->n_waves++] = (struct maq_chain_wave){.mbs = b, .replicas = n};
            last = waves;
        }
    }
    return maq_mixed_virtual_list(run, diag);
}

/* ---- searches ---- */

static enum maq_status compose(struct maq_compose_tables_result *found, struct maq_mixed_run *run,
                               const struct maq_mixed_search_opts *opts, uint32_t top, uint32_t pools,
                               struct maq_diag *diag)
{
    const struct maq_stage_source source = {run->n_waves, maq_mixed_run_table, run};
    struct maq_compose_limits options = maq_mixed_run_limits(opts);
    options.top = top;
    run->costs.pools_used = pools;
    enum maq_status status = maq_compose_search(found, &source, &options, &run->arena);
    bool open = found->n > 0 && found->found[0].composition.step_s > found->bound_s * (1 + GOOD_GAP);
    options.labels = run->costs.n_pools > 2 ? LABELS_OF_MORE : LABELS_OF_TWO;
    if (status == MAQ_OK && open && !maq_chain_costs_stopped(&run->costs))
        status = maq_compose_search(found, &source, &options, &run->arena);
    run->costs.pools_used = UINT32_MAX;
    return status == MAQ_OK ? maq_chain_costs_check(&run->costs, diag) : maq_no_memory(diag, "the search");
}

/* Of one wave. */
struct simulated_wave {
    const struct maq_chain_costs *costs;
    const struct maq_chain_wave *wave;
    struct maq_stage_table table;
};

static enum maq_status simulate(struct maq_chain_simulated *out, void *context, const struct maq_composition *c)
{
    const struct simulated_wave *p = context;
    return maq_chain_costs_simulate(out, p->costs, p->wave, c, &p->table);
}

/*
 * A composition as a plan, after local search. A planner that takes all devices for the slowest cannot know what is
 * faster when simulated, so its composition stays as it is.
 */
static bool take_plan(struct maq_mixed_search_plan *out, struct maq_mixed_run *run, struct maq_compose_found *found)
{
    struct maq_composition *c = &found->composition;
    const struct maq_chain_wave *wave = &run->waves[found->table];
    struct simulated_wave p = {.costs = run->blind ? &run->real : &run->costs, .wave = wave};
    struct maq_chain_simulated simulated;
    struct maq_mixed_search_stage *stages = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_stage, c->n_stages);
    if (!stages || !maq_mixed_run_table(&p.table, run, found->table, &run->arena) ||
        simulate(&simulated, &p, c) != MAQ_OK)
        return false;
    const struct maq_mixed_local_search near = {&p.table, simulate, &p};
    if (!run->blind && maq_mixed_local_search(c, &simulated, &near, &run->arena) != MAQ_OK)
        return false;
    *out = (struct maq_mixed_search_plan){.micro_batch = run->space.mbs[wave->mbs],
                                          .replicas = wave->replicas,
                                          .microbatches = p.table.waves,
                                          .step_s = simulated.step_s,
                                          .composed_s = c->step_s,
                                          .bottleneck_s = c->bottleneck_s,
                                          .fill_s = c->fill_s,
                                          .wait_s = c->wait_s,
                                          .sync_s = c->sync_s,
                                          .chunks = 1,
                                          .n_pipelines = 1,
                                          .n_stages = c->n_stages,
                                          .stages = stages};
    for (uint32_t i = 0; i < c->n_stages; i++) {
        maq_mixed_run_stage(&stages[i], run, &c->stages[i], &p.table);
        if (stages[i].compute_s + stages[i].hop_s > stages[out->bottleneck].compute_s + stages[out->bottleneck].hop_s)
            out->bottleneck = i;
    }
    return true;
}

/* The bound of a search that was stopped: the least bound by work alone over its waves. */
static bool work_bound(double *bound_s, struct maq_mixed_run *run)
{
    const volatile sig_atomic_t *stop = run->costs.watch.stop;
    *bound_s = HUGE_VAL;
    run->costs.watch.stop = NULL;
    for (uint32_t w = 0; w < run->n_waves + run->n_folded; w++) {
        struct maq_stage_table t;
        struct maq_arena_mark mark = maq_arena_mark(&run->arena);
        const struct maq_chain_wave *wave = w < run->n_waves ? &run->waves[w] : &run->chunked[w - run->n_waves];
        if (!maq_chain_costs_table(&t, &run->costs, wave, &run->arena))
            return false;
        if (t.n_options > 0)
            *bound_s = fmin(*bound_s, maq_work_bound(&t));
        maq_arena_reset(&run->arena, mark);
    }
    run->costs.watch.stop = stop;
    return true;
}

static enum maq_status search_together(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                                       struct maq_diag *diag)
{
    struct maq_mixed_search_result *r = &run->result;
    struct maq_compose_tables_result found;
    uint32_t top = opts->top > 0 ? opts->top : 1;
    if (!(run->plans = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_plan, top)))
        return maq_no_memory(diag, "the search");
    MAQ_TRY(compose(&found, run, opts, top, UINT32_MAX, diag));
    r->bound_s = found.n > 0 ? found.bound_s : 0;
    r->composed_s = found.n > 0 ? found.found[0].composition.step_s : 0;
    for (uint32_t i = 0; i < found.n; i++) {
        struct maq_mixed_search_plan plan;
        if (!take_plan(&plan, run, &found.found[i]))
            return maq_no_memory(diag, "the search");
        maq_mixed_run_insert(run, opts, &plan);
    }
    r->plans = run->plans;
    r->counts = (struct maq_mixed_search_counts){.waves = found.counts.tables,
                                                 .waves_bounded = found.counts.tables_bounded,
                                                 .programs = found.counts.programs,
                                                 .considered = found.counts.considered,
                                                 .bounded = found.counts.bounded,
                                                 .dominated = found.counts.dominated,
                                                 .evaluated = found.counts.finished};
    return MAQ_OK;
}

static enum maq_status settle_bound(struct maq_mixed_run *run, struct maq_diag *diag)
{
    struct maq_mixed_search_result *r = &run->result;
    r->complete = !maq_chain_costs_stopped(&run->costs);
    return r->complete || work_bound(&r->bound_s, run) ? MAQ_OK : maq_no_memory(diag, "the search");
}

/* With virtual stages. */
static enum maq_status search_virtual(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                                      struct maq_diag *diag)
{
    struct maq_mixed_search_result *r = &run->result;
    struct maq_mixed_virtual_known known = {.step_s = r->n_plans > 0 ? run->plans[0].step_s : 0,
                                            .composed_s = r->composed_s,
                                            .bound_s = r->bound_s,
                                            .insert = true};
    MAQ_TRY(maq_mixed_virtual_search(&known, run, opts, diag));
    r->composed_s = known.composed_s;
    r->bound_s = known.bound_s;
    return MAQ_OK;
}

/* The best composition of the node groups that tables have now, if the closed form is below a limit; step_s 0: none. */
static enum maq_status best_below(struct maq_mixed_search_plan *out, struct maq_mixed_run *run, double limit_s,
                                  const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    const struct maq_stage_source source = {run->n_waves, maq_mixed_run_table, run};
    struct maq_compose_limits limits = maq_mixed_run_limits(opts);
    struct maq_compose_tables_result found;
    limits.cutoff_s = limit_s;
    *out = (struct maq_mixed_search_plan){.step_s = 0};
    bool done = maq_compose_search(&found, &source, &limits, &run->arena) == MAQ_OK &&
                (found.n == 0 || take_plan(out, run, &found.found[0]));
    return done ? MAQ_OK : maq_no_memory(diag, "the search");
}

/*
 * The best composition on one island alone. It is a composition of the class too: it enters the plans where it is faster when
 * simulated.
 */
static enum maq_status search_alone(struct maq_mixed_search_island *island, struct maq_mixed_run *run, uint32_t g,
                                    const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    struct maq_compose_tables_result found;
    struct maq_mixed_search_plan plan = {.step_s = 0};
    if (maq_chain_costs_stopped(&run->costs))
        return MAQ_OK;
    MAQ_TRY(compose(&found, run, opts, 1, 1u << g, diag));
    if (maq_chain_costs_stopped(&run->costs))
        return MAQ_OK;
    run->costs.pools_used = 1u << g;
    bool taken = found.n == 0 || take_plan(&plan, run, &found.found[0]);
    struct maq_mixed_virtual_known known = {
        .step_s = plan.step_s, .composed_s = plan.composed_s, .bound_s = found.n > 0 ? found.bound_s : 0};
    enum maq_status status =
        taken ? maq_mixed_virtual_search(&known, run, opts, diag) : maq_no_memory(diag, "the search");
    run->costs.pools_used = UINT32_MAX;
    MAQ_TRY(status);
    if (known.step_s == 0)
        return MAQ_OK;
    plan = known.found ? known.plan : plan;
    island->alone_s = plan.step_s;
    island->alone_composed_s = plan.composed_s;
    island->alone_bound_s = known.bound_s;
    if (run->result.n_plans == 0 || plan.step_s < run->plans[0].step_s)
        maq_mixed_run_insert(run, opts, &plan);
    return MAQ_OK;
}

/*
 * Deep pipelines of stages that recompute and shard nothing are simulated faster, relative to their closed form, than
 * others. Where the best of them is not far behind by the closed form, it may be ahead when simulated.
 */
static enum maq_status search_plain(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                                    struct maq_diag *diag)
{
    struct maq_mixed_search_result *r = &run->result;
    struct maq_mixed_search_plan plan;
    if (r->n_plans == 0 || opts->planner != MAQ_MIXED_PLANNER_ALL || maq_chain_costs_stopped(&run->costs))
        return MAQ_OK;
    run->costs.plain = true;
    enum maq_status status = best_below(&plan, run, r->composed_s * PLAIN_MAY_LOSE, opts, diag);
    run->costs.plain = false;
    if (status == MAQ_OK && plan.step_s > 0 && plan.step_s < run->plans[0].step_s)
        maq_mixed_run_insert(run, opts, &plan);
    return status;
}

/* A uniform plan takes every device. */
static void count_used(struct maq_mixed_search_island *islands, const struct maq_mixed_search_result *r)
{
    for (uint32_t g = 0; g < r->n_islands; g++)
        islands[g].used = r->n_plans > 0 && r->plans[0].uniform ? islands[g].nodes * islands[g].devices_per_node : 0;
    for (uint32_t i = 0; r->n_plans > 0 && !r->plans[0].uniform && i < r->plans[0].n_stages; i++)
        if (r->plans[0].stages[i].on_devices_of < 0)
            islands[r->plans[0].stages[i].island].used += r->plans[0].stages[i].devices;
}

/*
 * Node groups side by side (data_parallel.h). Where the search is stopped meanwhile, only the bound by work alone
 * holds.
 */
static enum maq_status search_shares(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                                     struct maq_diag *diag)
{
    struct maq_mixed_search_result *r = &run->result;
    MAQ_TRY(maq_mixed_data_parallel_search(run, run->islands, r->alone, opts, diag));
    return r->complete ? settle_bound(run, diag) : MAQ_OK;
}

static enum maq_status list_islands(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                                    struct maq_diag *diag)
{
    struct maq_mixed_search_result *r = &run->result;
    r->n_islands = run->costs.n_pools;
    r->islands = run->islands = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_island, r->n_islands);
    if (!run->islands)
        return maq_no_memory(diag, "the search");
    r->alone = !opts->together_only && !run->blind;
    for (uint32_t g = 0; g < r->n_islands; g++) {
        const struct maq_node_group *group = &run->space.job.cluster.groups[g];
        run->islands[g] = (struct maq_mixed_search_island){.device = group->device.name,
                                                           .nodes = (uint32_t)group->nodes,
                                                           .devices_per_node = (uint32_t)group->devices_per_node};
        if (r->alone)
            MAQ_TRY(search_alone(&run->islands[g], run, g, opts, diag));
    }
    return r->planner == MAQ_MIXED_PLANNER_ALL && !opts->one_pipeline ? search_shares(run, opts, diag) : MAQ_OK;
}

void maq_mixed_settle(struct maq_mixed_run *run)
{
    struct maq_mixed_search_result *r = &run->result;
    bool gaps = r->n_plans > 0 && !run->blind;
    count_used(run->islands, r);
    r->alone = r->alone && !maq_chain_costs_stopped(&run->costs);
    r->bound_s = run->blind ? 0 : r->bound_s;
    r->gap = gaps ? r->plans[0].composed_s / r->bound_s - 1 : 0;
    r->search_gap = gaps ? r->composed_s / r->bound_s - 1 : 0;
    r->exact = r->complete && gaps && r->composed_s <= r->bound_s * (1 + 1e-12);
}

/* ---- runs ---- */

static void report(void *user, uint32_t tables, uint64_t strategies)
{
    const struct maq_mixed_search_opts *opts = user;
    const struct maq_mixed_search_progress at = {tables, strategies};
    opts->progress(opts->context, &at);
}

static enum maq_status open_costs(struct maq_mixed_run *run, struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    run->blind = opts->planner == MAQ_MIXED_PLANNER_ALPA;
    run->seen = run->space;
    if (run->blind && !maq_mixed_space_blind(&run->seen, &run->arena))
        return maq_no_memory(diag, "the search");
    MAQ_TRY(maq_chain_costs_init(&run->costs, &run->seen, diag));
    if (run->blind)
        MAQ_TRY(maq_chain_costs_init(&run->real, &run->space, diag));
    run->costs.watch = (struct maq_chain_watch){opts->stop, opts->progress ? report : NULL, opts};
    run->result.n_layers = run->costs.atoms.n;
    return list_waves(run, diag);
}

static enum maq_status note_memory(struct maq_mixed_run *run, const struct maq_loaded_job *open,
                                   const struct maq_mixed_search_opts *given, struct maq_diag *diag)
{
    const struct maq_search_opts opts = {.min_fit_probability = given->min_fit_probability,
                                         .as_predicted = given->as_predicted};
    MAQ_TRY(maq_search_memory(&run->memory, open, &opts, diag));
    run->result.reserve_bytes = run->memory.reserve_bytes;
    run->result.min_fit_probability = run->memory.min_fit_probability;
    return MAQ_OK;
}

enum maq_status maq_mixed_compositions(struct maq_mixed_search_result **out, const struct maq_loaded_job *open,
                                       const struct maq_mixed_search_opts *given, struct maq_diag *diag)
{
    struct maq_mixed_search_opts opts = *given;
    const struct maq_mixed_space_lists lists = maq_mixed_lists(&opts);
    struct maq_mixed_run *run = maq__calloc(sizeof *run);
    if (!run)
        return maq_no_memory(diag, "the search");
    maq_arena_init(&run->arena, 0);
    run->result.owner = run;
    run->result.planner = opts.planner;
    enum maq_status status = maq_mixed_space_init(&run->space, open, &lists, &run->arena, diag);
    if (status == MAQ_OK)
        status = note_memory(run, open, &opts, diag);
    if (status == MAQ_OK)
        status = open_costs(run, &opts, diag);
    bool uniform = opts.planner == MAQ_MIXED_PLANNER_UNIFORM;
    opts.together_only = opts.together_only || uniform;
    if (status == MAQ_OK)
        status = uniform ? maq_mixed_uniform(run, diag) : search_together(run, &opts, diag);
    if (status == MAQ_OK && !uniform)
        status = search_plain(run, &opts, diag);
    if (status == MAQ_OK && !uniform)
        status = search_virtual(run, &opts, diag);
    if (status == MAQ_OK && !uniform)
        status = settle_bound(run, diag);
    if (status == MAQ_OK)
        status = list_islands(run, &opts, diag);
    if (status != MAQ_OK) {
        maq_mixed_search_free(&run->result);
        return status;
    }
    /* the caller's progress hook is not valid after the call */
    run->costs.watch = (struct maq_chain_watch){.stop = opts.stop};
    maq_mixed_settle(run);
    *out = &run->result;
    return MAQ_OK;
}

void maq_mixed_search_free(struct maq_mixed_search_result *result)
{
    if (!result)
        return;
    struct maq_mixed_run *run = result->owner;
    maq_chain_costs_fini(&run->costs);
    maq_chain_costs_fini(&run->real);
    maq_arena_fini(&run->arena);
    free(run);
}
