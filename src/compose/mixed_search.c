/*
 * mixed_search.c - the public call: an open job becomes stage tables (chain_costs.h), what the composer finds (compose_search.h) becomes
 * a result.
 *
 * Waves. A step of M waves needs waves of at least global batch / M samples. More replicas for the same M only add to the
 * synchronization, so of all numbers of replicas only those are looked at that are the least for their M. (With ZeRO-1 more shards take
 * less memory: a plan that fits with one more replica of the same M alone is left out.)
 *
 * How far. The best composition is looked for exactly, up to a number of labels and boxes for each wave; what was not settled by then
 * is bounded, and the result says so. More of both close few of the gaps that are left: four node groups of up to eight devices stay open
 * with four times as many.
 */
#include "compose/mixed_search.h"

#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "compose/codes.h"
#include "compose/compose_search.h"
#include "compose/mixed_space.h"

#define MOST_LABELS (1u << 14)
#define MOST_BOXES 60u
#define BEAM 40u /* of the first pass: a dozen leave a plan 4 % slower on the 20 devices of examples/tangram/c3.yaml */

static enum maq_status no_memory(struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_SEARCH_LIMIT, (struct maq_span){0}, NULL,
                         "out of memory for the search");
}

bool maq_mixed_run_table(struct maq_stage_table *out, const void *ctx, uint32_t i, struct maq_arena *arena)
{
    const struct maq_mixed_run *run = ctx;
    return maq_chain_costs_table(out, &run->costs, &run->waves[i], arena);
}

static enum maq_status list_waves(struct maq_mixed_run *run, struct maq_diag *diag)
{
    uint32_t most = 0, gbs = (uint32_t)run->space.job.workload.gbs;
    for (uint32_t g = 0; g < run->costs.n_pools; g++)
        most = run->costs.pools[g].count > most ? run->costs.pools[g].count : most;
    most = most < gbs ? most : gbs;
    run->waves = MAQ_ARENA_NEW(&run->arena, struct maq_chain_wave, (size_t)run->space.n_mbs * most);
    if (!run->waves)
        return no_memory(diag);
    for (uint32_t b = 0; b < run->space.n_mbs; b++) {
        uint32_t samples = run->space.mbs[b], last = 0;
        for (uint32_t n = 1; n <= most && samples * n < gbs + samples; n++) {
            uint32_t waves = (gbs + samples * n - 1) / (samples * n);
            if (waves != last)
                run->waves[run->n_waves++] = (struct maq_chain_wave){b, n};
            last = waves;
        }
    }
    return MAQ_OK;
}

/* ---- searches ---- */

static enum maq_status compose(struct maq_compose_tables_result *found, struct maq_mixed_run *run,
                               const struct maq_mixed_search_opts *opts, uint32_t top, uint32_t pools,
                               struct maq_diag *diag)
{
    const struct maq_stage_source source = {run->n_waves, maq_mixed_run_table, run};
    struct maq_compose_limits options = MAQ_COMPOSE_LIMITS_INIT;
    options.threads = opts->threads;
    options.top = top;
    options.labels = MOST_LABELS;
    options.boxes = MOST_BOXES;
    options.beam = BEAM;
    run->costs.pools_used = pools;
    enum maq_status status = maq_compose_search(found, &source, &options, &run->arena);
    run->costs.pools_used = UINT32_MAX;
    return status == MAQ_OK ? maq_chain_costs_check(&run->costs, diag) : no_memory(diag);
}

static void take_stage(struct maq_mixed_search_stage *out, const struct maq_mixed_run *run, const struct maq_stage *s,
                       const struct maq_stage_table *t)
{
    const struct maq_stage_option *o = &t->options[s->parts[0].option];
    struct maq_chain_option is = maq_chain_option_of(&run->costs, o->id);
    const struct maq_chain_redo *redo = &run->space.redo[is.redo];
    double capacity = t->capacity_bytes[o->kind];
    *out = (struct maq_mixed_search_stage){.first_layer = s->first,
                                           .layers = s->end - s->first,
                                           .island = is.pool,
                                           .tp = is.tp,
                                           .cp = is.cp,
                                           .ep = is.ep,
                                           .etp = is.etp,
                                           .cp_comm = is.cp_comm,
                                           .optimizer_offload = is.host,
                                           .replicas = s->parts[0].replicas,
                                           .devices = o->devices * s->parts[0].replicas,
                                           .recompute = redo->recompute,
                                           .recompute_parts = redo->parts,
                                           .sharding = is.sharding,
                                           .compute_s = s->compute_s,
                                           .hop_s = s->hop_s,
                                           .sync_s = s->sync_s,
                                           .memory_bytes = s->memory_share * capacity,
                                           .capacity_bytes = capacity,
                                           .in_flight = s->in_flight};
}

static bool take_plan(struct maq_mixed_search_plan *out, struct maq_mixed_run *run,
                      const struct maq_compose_found *found)
{
    const struct maq_composition *c = &found->composition;
    struct maq_stage_table t;
    struct maq_chain_played played;
    struct maq_mixed_search_stage *stages = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_stage, c->n_stages);
    if (!stages || !maq_mixed_run_table(&t, run, found->table, &run->arena) ||
        maq_chain_costs_play(&played, &run->costs, &run->waves[found->table], c, &t) != MAQ_OK)
        return false;
    *out = (struct maq_mixed_search_plan){.micro_batch = run->space.mbs[run->waves[found->table].mbs],
                                          .replicas = run->waves[found->table].replicas,
                                          .microbatches = t.waves,
                                          .step_s = played.step_s,
                                          .composed_s = c->step_s,
                                          .bottleneck_s = c->bottleneck_s,
                                          .fill_s = c->fill_s,
                                          .sync_s = c->sync_s,
                                          .n_stages = c->n_stages,
                                          .stages = stages};
    for (uint32_t i = 0; i < c->n_stages; i++) {
        take_stage(&stages[i], run, &c->stages[i], &t);
        if (stages[i].compute_s + stages[i].hop_s > stages[out->bottleneck].compute_s + stages[out->bottleneck].hop_s)
            out->bottleneck = i;
    }
    return true;
}

static enum maq_status search_together(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                                       struct maq_diag *diag)
{
    struct maq_mixed_search_result *r = &run->result;
    struct maq_compose_tables_result found;
    uint32_t top = opts->top > 0 ? opts->top : 1;
    struct maq_mixed_search_plan *plans = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_plan, top);
    if (!plans)
        return no_memory(diag);
    MAQ_TRY(compose(&found, run, opts, top, UINT32_MAX, diag));
    for (uint32_t i = 0; i < found.n; i++)
        if (!take_plan(&plans[r->n_plans++], run, &found.found[i]))
            return no_memory(diag);
    r->plans = plans;
    r->exact = found.exact;
    r->bound_s = found.n > 0 ? found.bound_s : 0;
    r->gap = found.n > 0 ? plans[0].composed_s / r->bound_s - 1 : 0;
    r->counts = (struct maq_mixed_search_counts){.waves = found.counts.tables,
                                                 .waves_bounded = found.counts.tables_bounded,
                                                 .programs = found.counts.programs,
                                                 .considered = found.counts.considered,
                                                 .bounded = found.counts.bounded,
                                                 .dominated = found.counts.dominated,
                                                 .evaluated = found.counts.finished};
    return MAQ_OK;
}

static enum maq_status list_islands(struct maq_mixed_run *run, const struct maq_mixed_search_opts *opts,
                                    struct maq_diag *diag)
{
    struct maq_mixed_search_result *r = &run->result;
    uint32_t n = run->costs.n_pools;
    struct maq_mixed_search_island *islands = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_island, n);
    if (!islands)
        return no_memory(diag);
    for (uint32_t g = 0; g < n; g++) {
        const struct maq_node_group *group = &run->costs.pools[g].group;
        islands[g] = (struct maq_mixed_search_island){.device = group->device.name,
                                                      .nodes = (uint32_t)group->nodes,
                                                      .devices_per_node = (uint32_t)group->devices_per_node};
        for (uint32_t i = 0; r->n_plans > 0 && i < r->plans[0].n_stages; i++)
            islands[g].used += r->plans[0].stages[i].island == g ? r->plans[0].stages[i].devices : 0;
    }
    r->islands = islands;
    r->n_islands = n;
    for (uint32_t g = 0; g < n && !opts->together_only; g++) {
        struct maq_compose_tables_result found;
        struct maq_mixed_search_plan plan;
        MAQ_TRY(compose(&found, run, opts, 1, 1u << g, diag));
        if (found.n == 0)
            continue;
        run->costs.pools_used = 1u << g;
        if (!take_plan(&plan, run, &found.found[0]))
            return no_memory(diag);
        run->costs.pools_used = UINT32_MAX;
        islands[g].alone_s = plan.step_s;
        islands[g].alone_composed_s = plan.composed_s;
        islands[g].alone_bound_s = found.bound_s;
    }
    return MAQ_OK;
}

enum maq_status maq_mixed_search(struct maq_mixed_search_result **out, const struct maq_job_box *open,
                                 const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    const struct maq_mixed_space_lists lists = {opts->lists, opts->n_lists};
    struct maq_mixed_run *run = maq__calloc(sizeof *run);
    if (!run)
        return no_memory(diag);
    maq_arena_init(&run->arena, 0);
    run->result.owner = run;
    enum maq_status status = maq_mixed_space_init(&run->space, open, &lists, &run->arena, diag);
    if (status == MAQ_OK)
        status = maq_chain_costs_init(&run->costs, &run->space, diag);
    if (status == MAQ_OK)
        status = list_waves(run, diag);
    run->result.n_layers = run->costs.n_atoms;
    if (status == MAQ_OK)
        status = search_together(run, opts, diag);
    if (status == MAQ_OK)
        status = list_islands(run, opts, diag);
    if (status != MAQ_OK) {
        maq_mixed_search_free(&run->result);
        return status;
    }
    *out = &run->result;
    return MAQ_OK;
}

void maq_mixed_search_free(struct maq_mixed_search_result *result)
{
    if (!result)
        return;
    struct maq_mixed_run *run = result->owner;
    maq_chain_costs_fini(&run->costs);
    maq_arena_fini(&run->arena);
    free(run);
}
