/* SPDX-License-Identifier: Apache-2.0 */
/*
 * virtual_stages.c - searches the tables of chunked waves with the composer, simulates the best compositions of each
 * number of virtual stages, and improves the fastest by local search. See virtual_stages.h.
 */
#include "planner/mixed/virtual_stages.h"

#include <math.h>

#include "base/check.h"
#include "plan/mixed/mixed_plan.h"
#include "planner/mixed/local_search.h"
#include "planner/stages/virtual_stages.h"
#include "train/mixed/placed.h"

#define MAY_LOSE 1.05 /* ratio of closed forms up to which a composition may still be faster when simulated */
#define PLAYED 3u     /* compositions that are simulated, of each number of virtual stages, from the best tables */

/* ---- waves ---- */

static uint32_t waves_of(const struct maq_mixed_run *run, const struct maq_chain_wave *w)
{
    uint32_t samples = run->space.mbs[w->mbs] * w->replicas, gbs = (uint32_t)run->space.job.workload.gbs;
    return (gbs + samples - 1) / samples;
}

/* The most stages for which there are devices and layers. */
static uint32_t most_stages(const struct maq_mixed_run *run, const struct maq_chain_wave *w, uint32_t chunks)
{
    uint32_t most = maq_chain_chunked_atoms(run->costs.atoms, chunks), stages = 0;
    for (uint32_t g = 0; g < run->costs.n_pools; g++)
        stages += run->costs.pools[g].at->count / w->replicas;
    return stages < most ? stages : most;
}

/*
 * Group sizes that divide the micro batches, up to the first that is no less than the number of stages. With `out` NULL
 * they are only counted.
 */
static uint32_t list_groups(struct maq_chain_wave *out, const struct maq_mixed_run *run, const struct maq_chain_wave *w,
                            uint32_t chunks)
{
    uint32_t waves = waves_of(run, w), most = most_stages(run, w, chunks), n = 0;
    for (uint32_t group = 2, last = 1; group <= waves && last < most && most > 1; group++) {
        if (waves % group != 0)
            continue;
        if (out)
            out[n] = (struct maq_chain_wave){w->mbs, w->replicas, chunks, group, false};
        last = group;
        n++;
    }
    return n;
}

enum maq_status maq_mixed_virtual_list(struct maq_mixed_run *run, struct maq_diag *diag)
{
    const struct maq_chain_space *space = &run->space;
    uint32_t n = 0;
    bool plain = false;
    for (uint32_t i = 0; i < space->n_chunks; i++) {
        plain = plain || space->chunks[i] == 1;
        for (uint32_t w = 0; space->chunks[i] > 1 && w < run->n_waves; w++)
            n += list_groups(NULL, run, &run->waves[w], space->chunks[i]);
    }
    if (!(run->chunked = MAQ_ARENA_NEW(&run->arena, struct maq_chain_wave, n > 0 ? n : 1)))
        return maq_no_memory(diag, "the search");
    for (uint32_t i = 0; i < space->n_chunks; i++)
        for (uint32_t w = 0; space->chunks[i] > 1 && w < run->n_waves; w++)
            run->n_folded += list_groups(&run->chunked[run->n_folded], run, &run->waves[w], space->chunks[i]);
    run->n_waves = plain ? run->n_waves : 0;
    return MAQ_OK;
}

/* The tables of one number of virtual stages. */
struct chunked {
    struct maq_mixed_run *run;
    uint32_t first, n;
    bool heaviest, any; /* any: something was found */
    struct maq_mixed_virtual_known *known;
};

static bool build(struct maq_stage_table *out, const void *ctx, uint32_t i, struct maq_arena *arena)
{
    const struct chunked *f = ctx;
    struct maq_chain_wave wave = f->run->chunked[f->first + i];
    wave.heaviest = f->heaviest;
    return maq_chain_costs_table(out, &f->run->costs, &wave, arena);
}

/* ---- plans ---- */

/* Lists virtual stages in their order in the model; times of a stage are those of one chunk. */
static void take_stages(struct maq_mixed_search_plan *out, struct maq_mixed_search_stage *stages,
                        const struct maq_mixed_run *run, const struct maq_composition *c,
                        const struct maq_stage_table *t)
{
    const uint32_t own = c->n_stages;
    MAQ_ASSERT(own > 0);
    for (uint32_t k = 0; k < out->n_stages; k++) {
        uint32_t i = k % own;
        struct maq_mixed_search_stage *s = &stages[k];
        struct maq_chain_chunk chunk = {c->stages[i].first, c->stages[i].end};
        if (out->chunks > 1)
            chunk = maq_chain_chunk_of(run->costs.atoms, out->chunks, k / own, chunk.first, chunk.end);
        maq_mixed_run_stage(s, run, &c->stages[i], t);
        s->first_layer = chunk.first;
        s->layers = chunk.end - chunk.first;
        s->on_devices_of = k < own ? -1 : (int32_t)i;
        const struct maq_mixed_search_stage *slow = &stages[out->bottleneck];
        bool two = c->n_stages == 2;
        if (maq_stage_pace(t, s->compute_s, maq_end_sends_s(t, s->hop_s, two)) >
            maq_stage_pace(t, slow->compute_s, maq_end_sends_s(t, slow->hop_s, two)))
            out->bottleneck = k;
    }
}

/* A pipeline of one stage has no virtual stages: its rounds follow each other on the same devices. */
bool maq_mixed_virtual_plan(struct maq_mixed_search_plan *out, struct maq_mixed_run *run,
                            const struct maq_chain_wave *wave, struct maq_composition *c)
{
    uint32_t chunks = c->n_stages > 1 ? wave->chunks : 1, n = c->n_stages * chunks;
    struct maq_mixed_search_stage *stages = MAQ_ARENA_NEW(&run->arena, struct maq_mixed_search_stage, n);
    const struct maq_chain_wave plain = {.mbs = wave->mbs, .replicas = wave->replicas};
    struct maq_stage_table t;
    if (chunks == 1) {
        wave = &plain;
        c->stages[0].end = run->costs.atoms.n;
    }
    if (!stages || !maq_chain_costs_table(&t, &run->costs, wave, &run->arena))
        return false;
    bool is_composition = maq_composition_cost(c, &t); /* it may come from a table of the heaviest chunks */
    MAQ_ASSERT(is_composition);
    *out = (struct maq_mixed_search_plan){.micro_batch = run->space.mbs[wave->mbs],
                                          .replicas = wave->replicas,
                                          .microbatches = waves_of(run, wave),
                                          .composed_s = c->step_s,
                                          .bottleneck_s = c->bottleneck_s,
                                          .fill_s = c->fill_s,
                                          .wait_s = c->wait_s,
                                          .sync_s = c->sync_s,
                                          .chunks = chunks,
                                          .n_pipelines = 1,
                                          .group = chunks > 1 ? wave->group : 0,
                                          .n_stages = n,
                                          .stages = stages};
    take_stages(out, stages, run, c, &t);
    return true;
}

enum maq_status maq_mixed_virtual_simulate(bool *fits, struct maq_mixed_search_plan *plan, struct maq_mixed_run *run,
                                           struct maq_diag *diag)
{
    struct maq_mixed_plan mixed;
    struct maq_mixed_placed *placed;
    if (!maq_mixed_result_plan(&mixed, run, plan, &run->arena))
        return maq_no_memory(diag, "the search");
    MAQ_TRY(maq__mixed_place_on(&placed, &mixed, &run->space.job, diag));
    plan->step_s = placed->step_s;
    *fits = placed->fits;
    maq_mixed_placed_free(placed);
    return MAQ_OK;
}

/* ---- searches ---- */

/* Simulates the composition found, and inserts it where it fits. */
static enum maq_status take(const struct chunked *f, const struct maq_compose_found *found,
                            const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    struct maq_mixed_virtual_known *known = f->known;
    struct maq_composition *composition = MAQ_ARENA_NEW(&f->run->arena, struct maq_composition, 1);
    struct maq_mixed_search_plan plan;
    bool fits = false;
    if (!composition)
        return maq_no_memory(diag, "the search");
    *composition = found->composition;
    const struct maq_chain_wave *wave = &f->run->chunked[f->first + found->table];
    if (!maq_mixed_virtual_plan(&plan, f->run, wave, composition))
        return maq_no_memory(diag, "the search");
    MAQ_TRY(maq_mixed_virtual_simulate(&fits, &plan, f->run, diag));
    known->composed_s = known->composed_s > 0 ? fmin(known->composed_s, plan.composed_s) : plan.composed_s;
    if (fits && known->insert)
        maq_mixed_run_insert(f->run, opts, &plan);
    if (fits && (known->step_s == 0 || plan.step_s < known->step_s)) {
        known->step_s = plan.step_s;
        known->plan = plan;
        known->found = true;
        known->composition = composition;
        known->wave = wave;
    }
    return MAQ_OK;
}

/* ---- near the best ---- */

struct near_best {
    struct maq_mixed_run *run;
    const struct maq_chain_wave *wave;
    struct maq_diag *diag;
};

/* As a plan, in the arena. */
static enum maq_status plan_of(struct maq_mixed_search_plan *out, bool *fits, const struct near_best *n,
                               const struct maq_composition *c)
{
    struct maq_composition *copy = MAQ_ARENA_NEW(&n->run->arena, struct maq_composition, 1);
    if (!copy)
        return maq_no_memory(n->diag, "the search");
    *copy = *c;
    if (!maq_mixed_virtual_plan(out, n->run, n->wave, copy))
        return maq_no_memory(n->diag, "the search");
    return maq_mixed_virtual_simulate(fits, out, n->run, n->diag);
}

static enum maq_status simulate(struct maq_chain_simulated *out, void *context, const struct maq_composition *c)
{
    const struct near_best *n = context;
    struct maq_arena_mark mark = maq_arena_mark(&n->run->arena);
    struct maq_mixed_search_plan plan;
    MAQ_TRY(plan_of(&plan, &out->fits, n, c));
    out->step_s = plan.step_s;
    maq_arena_reset(&n->run->arena, mark);
    return MAQ_OK;
}

/* Local search around the best composition found. */
static enum maq_status settle(struct maq_mixed_virtual_known *known, struct maq_mixed_run *run,
                              const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    struct near_best n = {run, known->wave, diag};
    struct maq_stage_table t;
    struct maq_chain_simulated simulated = {known->step_s, true};
    bool fits;
    if (!known->found || known->composition->n_stages < 2 || run->blind)
        return MAQ_OK;
    if (!maq_chain_costs_table(&t, &run->costs, known->wave, &run->arena))
        return maq_no_memory(diag, "the search");
    const struct maq_mixed_local_search near = {&t, simulate, &n};
    MAQ_TRY(maq_mixed_local_search(known->composition, &simulated, &near, &run->arena));
    if (!(simulated.step_s < known->step_s))
        return MAQ_OK;
    known->step_s = simulated.step_s;
    MAQ_TRY(plan_of(&known->plan, &fits, &n, known->composition));
    if (known->insert)
        maq_mixed_run_insert(run, opts, &known->plan);
    return MAQ_OK;
}

/*
 * The cutoff of the closed form. A composition that is faster when simulated than the best so far is mostly below the best step
 * by the form that is too short (alike chunks); the cutoff is no lower than the proven bound, which would otherwise suffer. By
 * the form that is too long (`heaviest`) the composition may be a little above the best step.
 */
static double cutoff_of(const struct maq_mixed_virtual_known *known, bool heaviest)
{
    if (known->step_s == 0)
        return HUGE_VAL;
    return heaviest ? known->step_s * MAY_LOSE : fmax(known->step_s, known->bound_s);
}

static enum maq_status search(struct chunked *f, const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    const struct maq_stage_source source = {f->n, build, f};
    struct maq_mixed_virtual_known *known = f->known;
    struct maq_compose_limits limits = maq_mixed_run_limits(opts);
    struct maq_compose_tables_result found;
    limits.top = f->heaviest ? 1 : PLAYED;
    limits.cutoff_s = cutoff_of(known, f->heaviest);
    if (maq_compose_search(&found, &source, &limits, &f->run->arena) != MAQ_OK)
        return maq_no_memory(diag, "the search");
    MAQ_TRY(maq_chain_costs_check(&f->run->costs, diag));
    if (!f->heaviest && found.n > 0)
        known->bound_s = known->bound_s > 0 ? fmin(known->bound_s, found.bound_s) : found.bound_s;
    f->any = found.n > 0;
    for (uint32_t i = 0; i < found.n; i++)
        MAQ_TRY(take(f, &found.found[i], opts, diag));
    return MAQ_OK;
}

enum maq_status maq_mixed_virtual_search(struct maq_mixed_virtual_known *known, struct maq_mixed_run *run,
                                         const struct maq_mixed_search_opts *opts, struct maq_diag *diag)
{
    for (uint32_t first = 0, end; first < run->n_folded; first = end) {
        for (end = first; end < run->n_folded && run->chunked[end].chunks == run->chunked[first].chunks;)
            end++;
        struct chunked f = {.run = run, .first = first, .n = end - first, .known = known};
        if (!maq_chain_costs_stopped(&run->costs))
            MAQ_TRY(search(&f, opts, diag));
        f.heaviest = true;
        if (f.any && !maq_chain_costs_stopped(&run->costs))
            MAQ_TRY(search(&f, opts, diag));
    }
    return settle(known, run, opts, diag);
}
