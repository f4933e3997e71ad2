/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipelines_search.c - several pipelines of different make-up, over all micro batches and numbers of chains.
 *
 * Each table (a micro batch, and a number of chains N that sizes the all-reduce rings) gives a stock of chains, from which a
 * knapsack chooses (pipelines.c). Tables whose relaxed programs refute the cutoff for N equal chains get no stock.
 *
 * Bound: that of pipelines_bound.c, for each micro batch. A table gets no stock when its bound by work alone is not below the
 * best plan.
 */
#include "planner/compose/pipelines_search.h"

#include <math.h>
#include <string.h>

#include "base/threads.h"
#include "planner/compose/pipelines_bound.h"

struct chain_job {
    struct maq_chain_set *best; /* of the batch: taken over before the next one */
    double bound_s;
    uint64_t programs, knapsacks;
    bool bounded;
};

struct chain_run {
    const struct maq_chain_source *source;
    struct chain_job *jobs;
    struct maq_chain_set *found; /* [MAQ_BATCH] */
    double cutoff, enough_s;
};

#define ROOM 4096u /* chains of a table */
#define RANGES 24u /* of the number of chains, that a bound looks at */
#define AIM 0.025  /* of a gap: what counting devices looks for */
#define SLACK 1.05 /* cutoff of a second, wider stock: chains that are slow alone may be part of a fast plan */

static bool work(void *user, uint32_t index, struct maq_arena *arena)
{
    struct chain_run *run = user;
    struct chain_job *job = &run->jobs[index];
    const struct maq_stage_source *tables = &run->source->tables;
    struct maq_stage_table table;
    struct maq_layer_ranges layer_ranges;
    job->best = &run->found[index % MAQ_BATCH];
    job->best->step_s = run->cutoff;
    job->best->n_kinds = 0;
    if (!tables->build(&table, tables->ctx, index, arena))
        return false;
    double samples = (double)run->source->global_batch / table.wave_samples;
    job->bound_s = table.n_options > 0 ? samples * maq_wave_bound(&table) : HUGE_VAL;
    job->bounded = job->bound_s >= run->cutoff;
    if (job->bounded)
        return true;
    if (!maq_layer_ranges_init(&layer_ranges, &table, arena))
        return false;
    for (uint32_t turn = 0; turn < 2; turn++) {
        struct maq_chain_stock *pool = maq_chain_stock_new(&table, ROOM, arena);
        double cutoff = run->cutoff * (turn == 0 ? 1 : SLACK);
        if (!pool ||
            !maq_chain_stock_collect(pool, &layer_ranges, run->source->chains[index], cutoff, &job->programs, arena) ||
            !maq_chain_set_choose(job->best, pool, run->source->global_batch, &job->knapsacks, arena))
            return false;
    }
    return true;
}

/* The bound of one micro batch, whose table is that of a single chain, by so many ranges of the number of chains. */
static bool bound_batch(struct chain_run *run, uint32_t index, uint32_t ranges, struct maq_arena *arena)
{
    struct chain_job *job = &run->jobs[index];
    const struct maq_stage_source *tables = &run->source->tables;
    const struct maq_chain_bound_options options = {run->source->global_batch, run->cutoff, ranges, ranges > 1,
                                                    fmin(run->enough_s, run->cutoff)};
    struct maq_stage_table table;
    return tables->build(&table, tables->ctx, index, arena) &&
           maq_chain_bound(&job->bound_s, &job->programs, &table, &options, arena);
}

static bool look(void *user, uint32_t index, struct maq_arena *arena)
{
    struct chain_run *run = user;
    return run->source->chains[index] > 1 || bound_batch(run, index, 1, arena);
}

/* The least bound of all micro batches. Each is looked at, and then, from the least on, raised to what the ones before it leave. */
static bool bound(double *bound_s, struct chain_run *run, uint32_t threads)
{
    uint32_t n = run->source->tables.n;
    run->enough_s = run->cutoff / (1 + AIM);
    for (uint32_t i = 0; i < n; i++)
        run->jobs[i] = (struct chain_job){.bound_s = run->cutoff};
    for (uint32_t from = 0; from < n; from += MAQ_BATCH)
        if (!maq_parallel_run(look, run, from, n - from < MAQ_BATCH ? n - from : MAQ_BATCH, threads))
            return false;
    for (;;) {
        uint32_t least = 0;
        for (uint32_t i = 1; i < n; i++)
            if (run->jobs[i].bound_s < run->jobs[least].bound_s)
                least = i;
        if (n == 0 || run->jobs[least].bound_s >= run->cutoff)
            break;
        struct maq_arena scratch;
        maq_arena_init(&scratch, 0);
        bool done = bound_batch(run, least, RANGES, &scratch);
        maq_arena_fini(&scratch);
        if (!done)
            return false;
        run->cutoff = fmin(run->cutoff, run->jobs[least].bound_s);
        run->jobs[least].bound_s = HUGE_VAL;
    }
    *bound_s = run->cutoff;
    return true;
}

enum maq_status maq_chains_search(struct maq_chain_result *out, const struct maq_chain_source *source, double cutoff_s,
                                  uint32_t threads, struct maq_arena *arena)
{
    uint32_t n = source->tables.n;
    struct chain_run run = {.source = source,
                            .jobs = MAQ_ARENA_NEW(arena, struct chain_job, n),
                            .found = MAQ_ARENA_NEW(arena, struct maq_chain_set, MAQ_BATCH),
                            .cutoff = cutoff_s};
    if (!run.jobs || !run.found)
        return MAQ_NO_MEMORY;
    memset(out, 0, sizeof *out);
    out->best.step_s = cutoff_s;
    out->bound_s = cutoff_s;
    out->tables = n;
    for (uint32_t from = 0; from < n; from += MAQ_BATCH) {
        uint32_t size = n - from < MAQ_BATCH ? n - from : MAQ_BATCH;
        if (!maq_parallel_run(work, &run, from, size, threads))
            return MAQ_NO_MEMORY;
        for (uint32_t i = from; i < from + size; i++) {
            const struct chain_job *job = &run.jobs[i];
            out->programs += job->programs;
            out->knapsacks += job->knapsacks;
            out->tables_bounded += job->bounded;
            if (job->best->n_kinds > 0 && job->best->step_s < out->best.step_s) {
                out->best = *job->best;
                out->table = i;
            }
        }
        run.cutoff = out->best.step_s;
    }
    if (!bound(&out->bound_s, &run, threads))
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < n; i++)
        out->programs += run.jobs[i].programs;
    return MAQ_OK;
}
