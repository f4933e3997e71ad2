/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - maq_compose(): turns a problem given by names into stage tables, and the compositions found into a result with names.
 *
 * Cases. A step of M waves needs waves of at least global batch / M samples. More replicas for the same M only add to the
 * synchronization, so of all numbers of replicas only the least for each M is a case.
 */
#include "planner/measured/search.h"

#include <math.h>
#include <stdlib.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "maquette/planner_measured.h"
#include "plan/mixed/codes.h"

#define MAX_SPLIT 4u

static const char *const class_names[] = {
#define CLASS_NAME(name, text) text,
    MAQ_COMPOSE_CLASS_LIST(CLASS_NAME)
#undef CLASS_NAME
};

const char *maq_compose_class_name(enum maq_compose_class of)
{
    return of < MAQ_COMPOSE_CLASS_COUNT ? class_names[of] : "?";
}

/* ---- the problem ---- */

static enum maq_status take_pool(struct maq_compose_run *run, const struct maq_compose_pool *pool, uint32_t i,
                                 struct maq_diag *diag)
{
    const struct maq_profile_dir *p = run->profile;
    struct maq_profile_pool *out = &run->costs.pools[i];
    const struct maq_span nowhere = {0};
    MAQ_TRY(maq_profile_dir_want_device(&out->device, p, maq_str_of(pool->device), nowhere, diag));
    out->zone = maq_profile_dir_default_zone(p);
    if (pool->zone)
        MAQ_TRY(maq_profile_dir_want_zone(&out->zone, p, maq_str_of(pool->zone), nowhere, diag));
    if (out->zone == MAQ_PROFILE_DIR_NONE)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PROFILE_NAME, nowhere, "name the zone of each pool",
                             "the profile does not say which zone is meant where none is named");
    const struct maq_profile_dir_device *device = maq_profile_dir_device(p, out->device);
    out->count = pool->count;
    out->per_node = pool->max_tp > 0 ? pool->max_tp : device->per_node;
    out->capacity_bytes = pool->capacity_bytes > 0 ? pool->capacity_bytes : device->capacity_bytes;
    run->device[i] = device->name;
    run->zone[i] = maq_profile_dir_zone(p, out->zone);
    if (out->count == 0 || out->count > UINT16_MAX || out->per_node == 0 || !(out->capacity_bytes > 0))
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PROFILE_NAME, nowhere,
                             "1 to 65535 devices; devices of a node and memory from the profile or from the pool",
                             "pool %u (%s) has %u devices, %u in a node", i, device->name, out->count, out->per_node);
    return MAQ_OK;
}

static enum maq_status take_problem(struct maq_compose_run *run, const struct maq_compose_problem *problem,
                                    struct maq_diag *diag)
{
    const struct maq_span nowhere = {0};
    if (problem->n_pools == 0 || problem->n_pools > MAQ_STAGE_KINDS || problem->of >= MAQ_COMPOSE_CLASS_COUNT)
        return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_PROFILE_NAME, nowhere, NULL,
                             "%u pools of devices: there can be 1 to %u", problem->n_pools, MAQ_STAGE_KINDS);
    MAQ_TRY(maq_profile_dir_load(&run->profile, problem->folder, diag));
    struct maq_profile_costs *costs = &run->costs;
    costs->profile = run->profile;
    MAQ_TRY(maq_profile_dir_want_model(&costs->model, run->profile, maq_str_of(problem->model), nowhere, diag));
    run->model = maq_profile_dir_model(run->profile, costs->model)->name;
    costs->global_batch = problem->global_batch;
    if (costs->global_batch == 0)
        costs->global_batch = maq_profile_dir_training(run->profile, costs->model)->global_batch;
    if (costs->global_batch == 0 || costs->global_batch > 1u << 20)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_PROFILE_NAME, nowhere, "1 to 1048576 sequences",
                             "no global batch for model '%s'", run->model);
    if (maq_profile_dir_model(run->profile, costs->model)->layers > MAQ_STAGE_ATOMS)
        return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_PROFILE_NAME, nowhere, NULL, "more than %u layers",
                             MAQ_STAGE_ATOMS);
    costs->n_pools = problem->n_pools;
    for (uint32_t i = 0; i < problem->n_pools; i++)
        MAQ_TRY(take_pool(run, &problem->pools[i], i, diag));
    return maq_profile_costs_init(costs, diag);
}

/* ---- cases ---- */

static uint32_t rounded_up(uint32_t a, uint32_t b)
{
    return (a + b - 1) / b;
}

static enum maq_status list_cases(struct maq_compose_run *run, struct maq_diag *diag)
{
    const struct maq_profile_costs *c = &run->costs;
    uint32_t devices = 0, room = 0;
    for (uint32_t g = 0; g < c->n_pools; g++)
        devices += c->pools[g].count;
    room = c->n_micro_batches * (devices < c->global_batch ? devices : c->global_batch);
    run->cases = MAQ_ARENA_NEW(&run->arena, struct maq_compose_case, room);
    run->replicas = MAQ_ARENA_NEW(&run->arena, uint32_t, room);
    if (!run->cases || !run->replicas)
        return maq_no_memory(diag, "the search");
    for (uint32_t i = 0; i < c->n_micro_batches; i++) {
        uint32_t b = c->micro_batches[i], waves = 0;
        for (uint32_t n = 1; b <= c->global_batch && n <= devices && n * b < c->global_batch + b; n++) {
            if (rounded_up(c->global_batch, n * b) == waves)
                continue;
            waves = rounded_up(c->global_batch, n * b);
            run->replicas[run->n_cases] = n;
            run->cases[run->n_cases++] = (struct maq_compose_case){b, n};
        }
    }
    return MAQ_OK;
}

/* The table of a case; `ctx` is a struct maq_compose_run. */
static bool table_of(struct maq_stage_table *out, const void *ctx, uint32_t i, struct maq_arena *arena)
{
    const struct maq_compose_run *run = ctx;
    const struct maq_profile_wave wave = {run->cases[i].micro_batch, run->cases[i].replicas, run->max_parts,
                                          run->max_split, run->chains};
    return maq_profile_costs_table(out, &run->costs, &wave, arena);
}

/* ---- searches ---- */

static void count_compositions(struct maq_compose_counts *out, const struct maq_compose_tables_counts *c)
{
    *out = (struct maq_compose_counts){.considered = c->considered,
                                       .bounded = c->bounded,
                                       .dominated = c->dominated,
                                       .evaluated = c->finished,
                                       .cases = c->tables,
                                       .cases_bounded = c->tables_bounded,
                                       .programs = c->programs};
}

static enum maq_status search_compositions(struct maq_compose_run *run, struct maq_compose_tables_result *found,
                                           const struct maq_compose_problem *problem, enum maq_compose_class of,
                                           struct maq_diag *diag)
{
    const struct maq_stage_source source = {run->n_cases, table_of, run};
    struct maq_compose_limits options = MAQ_COMPOSE_LIMITS_INIT;
    struct maq_compose_result *r = &run->result;
    options.threads = problem->threads;
    options.top = problem->top;
    run->max_parts = of == MAQ_COMPOSE_MIXED ? 2 : 1;
    run->max_split = of >= MAQ_COMPOSE_DEGREES ? MAX_SPLIT : 1;
    run->chains = false;
    if (maq_compose_search(found, &source, &options, &run->arena) != MAQ_OK)
        return maq_no_memory(diag, "the search");
    count_compositions(&r->counts, &found->counts);
    r->bound_s = found->n > 0 ? found->bound_s : HUGE_VAL;
    r->exact = found->exact;
    return MAQ_OK;
}

/* Several pipelines, if they are better than the best of the compositions, which are pipelines too. */
static enum maq_status search_chains(struct maq_compose_run *run, struct maq_chain_result *chains, double cutoff_s,
                                     const struct maq_compose_problem *problem, struct maq_diag *diag)
{
    const struct maq_chain_source source = {{run->n_cases, table_of, run}, run->replicas, run->costs.global_batch};
    struct maq_compose_result *r = &run->result;
    run->chains = true;
    if (maq_chains_search(chains, &source, cutoff_s, problem->threads, &run->arena) != MAQ_OK)
        return maq_no_memory(diag, "the search");
    r->counts.programs += chains->programs;
    r->counts.knapsacks += chains->knapsacks;
    r->counts.cases += chains->tables;
    r->counts.cases_bounded += chains->tables_bounded;
    r->bound_s = fmin(cutoff_s, chains->bound_s);
    r->exact = r->bound_s >= chains->best.step_s;
    return MAQ_OK;
}

static enum maq_status search(struct maq_compose_run *run, const struct maq_compose_problem *problem,
                              struct maq_diag *diag)
{
    struct maq_compose_result *r = &run->result;
    struct maq_compose_tables_result found;
    struct maq_stage_table table;
    struct maq_chain_result *chains = MAQ_ARENA_NEW(&run->arena, struct maq_chain_result, 1);
    uint32_t top = problem->top > 0 ? problem->top : 1;
    struct maq_compose_plan *plans = MAQ_ARENA_NEW(&run->arena, struct maq_compose_plan, top + 1);
    if (!chains || !plans)
        return maq_no_memory(diag, "the search");
    r->of = problem->of;
    MAQ_TRY(list_cases(run, diag));
    MAQ_TRY(search_compositions(run, &found, problem, problem->of, diag));
    if (problem->of == MAQ_COMPOSE_PIPELINES && found.n > 0) {
        MAQ_TRY(search_chains(run, chains, found.found[0].composition.step_s, problem, diag));
        if (chains->best.n_kinds > 0 && (!table_of(&table, run, chains->table, &run->arena) ||
                                         !maq_compose_take_pipelines(&plans[r->n_plans++], run, chains, &table)))
            return maq_no_memory(diag, "the search");
    }
    run->chains = false;
    for (uint32_t i = 0; i < found.n && r->n_plans < top; i++)
        if (!table_of(&table, run, found.found[i].table, &run->arena) ||
            !maq_compose_take_composition(&plans[r->n_plans++], run, &found.found[i], &table))
            return maq_no_memory(diag, "the search");
    r->plans = plans;
    r->gap = r->n_plans > 0 ? plans[0].step_s / r->bound_s - 1 : 0;
    return MAQ_OK;
}

enum maq_status maq_compose(struct maq_compose_result **out, const struct maq_compose_problem *problem,
                            struct maq_diag *diag)
{
    struct maq_compose_run *run = maq__calloc(sizeof *run);
    if (!run)
        return maq_no_memory(diag, "the search");
    maq_arena_init(&run->arena, 0);
    run->result.owner = run;
    enum maq_status status = take_problem(run, problem, diag);
    if (status == MAQ_OK)
        status = search(run, problem, diag);
    if (status != MAQ_OK) {
        maq_compose_result_free(&run->result);
        return status;
    }
    *out = &run->result;
    return MAQ_OK;
}

void maq_compose_result_free(struct maq_compose_result *result)
{
    if (!result)
        return;
    struct maq_compose_run *run = result->owner;
    maq_profile_dir_free(run->profile);
    maq_arena_fini(&run->arena);
    free(run);
}
