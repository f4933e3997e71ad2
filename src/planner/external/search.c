/* SPDX-License-Identifier: Apache-2.0 */
/*
 * search.c - maq_slices_search(): waves, rounds of calling the parallelizer and composing its answers, the proof.
 *
 * Waves. A step of M waves needs waves of at least global batch / M samples; of all numbers of replicas of a micro batch only the
 * least for each M is considered. A parallelizer that is not built in is asked for 1, 2, 4, ... replicas. Where the job allows one
 * micro batch, all stages use it; otherwise each stage takes any that makes up the wave.
 *
 * Rounds. The parallelizer is asked for the pairs of slice and island that, by their profiles, can be part of a step up to a limit,
 * and the answers are composed with few labels. The limit grows until there is a pipeline below it: no pair that was not asked for
 * can be part of a faster one. Then the waves that are not refuted are composed once more, in full or up to a number of labels; the
 * labels that were not extended bound the optimum.
 */
#include "planner/external/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "planner/external/codes.h"

#define FIRST_LIMIT 0.1 /* over the lower bound of all pipelines by their profiles */
#define GROWTH 1.5      /* of that excess */
#define LAST_LIMIT 100
#define LOOK_WIDTH 24u /* labels of an atom in the rounds */
#define LOOK_ROOM 1.1  /* a pipeline found just over the limit saves a round */

/*
 * Passes over the waves that are not refuted, each with more labels than the one before: a better plan of one wave
 * refutes others.
 */
static const struct maq_piece_search_opts passes[] = {
    {.width = 800, .most = 100000, .boxes = 40, .extensions = 2000000},
    {.width = 800, .most = 100000, .boxes = 60, .extensions = 6000000},
};

/* ---- waves ---- */

static void add_wave(struct maq_slices_run *run, uint32_t samples, uint32_t waves, uint32_t micro_batch)
{
    for (uint32_t i = 0; i < run->n_waves; i++)
        if (run->waves[i].wave_samples == samples)
            return;
    run->waves[run->n_waves++] = (struct maq_slices_wave){waves, samples, micro_batch};
}

static enum maq_status list_waves(struct maq_slices_run *run, bool builtin, struct maq_diag *diag)
{
    const struct maq_chain_space *space = &run->chain.space;
    uint32_t most = 0, gbs = (uint32_t)space->job.workload.gbs;
    for (uint32_t g = 0; g < run->chain.n_islands; g++)
        most = run->chain.costs.pools[g].at->count > most ? run->chain.costs.pools[g].at->count : most;
    most = most < gbs ? most : gbs;
    run->waves = MAQ_ARENA_NEW(&run->arena, struct maq_slices_wave, (size_t)space->n_mbs * most);
    if (!run->waves)
        return maq_no_memory(diag, "the search");
    for (uint32_t b = 0; b < space->n_mbs; b++) {
        uint32_t samples = space->mbs[b], last = 0;
        for (uint32_t n = 1; n <= most && samples * n < gbs + samples; n = builtin ? n + 1 : 2 * n) {
            uint32_t waves = (gbs + samples * n - 1) / (samples * n);
            if (waves != last)
                add_wave(run, samples * n, waves, space->n_mbs == 1 ? samples : 0);
            last = waves;
        }
    }
    run->kept = MAQ_ARENA_NEW(&run->arena, struct maq_slices_kept, run->n_waves);
    run->order = MAQ_ARENA_NEW(&run->arena, struct maq_slices_kept *, run->n_waves);
    return run->kept && run->order ? MAQ_OK : maq_no_memory(diag, "the search");
}

static int by_root(const void *pa, const void *pb)
{
    const struct maq_slices_kept *a = *(struct maq_slices_kept *const *)pa, *b = *(struct maq_slices_kept *const *)pb;
    if (a->root_s != b->root_s)
        return a->root_s < b->root_s ? -1 : 1;
    return (a->wave > b->wave) - (a->wave < b->wave);
}

static double step_of(const struct maq_slices_kept *k)
{
    return k->row.n > 0 ? k->row.step_s : HUGE_VAL;
}

static int by_step(const void *pa, const void *pb)
{
    const struct maq_slices_kept *a = *(struct maq_slices_kept *const *)pa, *b = *(struct maq_slices_kept *const *)pb;
    if (step_of(a) != step_of(b))
        return step_of(a) < step_of(b) ? -1 : 1;
    if (a->root_s != b->root_s)
        return a->root_s < b->root_s ? -1 : 1;
    return (a->wave > b->wave) - (a->wave < b->wave);
}

static void order_waves(struct maq_slices_run *run)
{
    for (uint32_t i = 0; i < run->n_waves; i++) {
        run->kept[i] = (struct maq_slices_kept){.wave = i, .root_s = maq_enumeration_root_s(&run->enumeration, i)};
        run->kept[i].bound_s = run->kept[i].root_s;
        run->order[i] = &run->kept[i];
    }
    qsort(run->order, run->n_waves, sizeof *run->order, by_root);
}

/* The step that a pipeline has to beat to be among the best. */
static double to_beat(const struct maq_slices_run *run, uint32_t top)
{
    double best = -1;
    for (uint32_t n = 0; n < top; n++) { /* few are wanted */
        double next = HUGE_VAL;
        for (uint32_t i = 0; i < run->n_waves; i++)
            if (step_of(&run->kept[i]) > best && step_of(&run->kept[i]) < next)
                next = step_of(&run->kept[i]);
        best = next;
    }
    return best;
}

/* ---- rounds ---- */

static bool is_stopped(const struct maq_slices_run *run)
{
    return run->opts->stop && *run->opts->stop;
}

static bool keep(struct maq_slices_run *run, struct maq_slices_kept *kept, const struct maq_piece_line *row)
{
    struct maq_piece *pieces = MAQ_ARENA_NEW(&run->arena, struct maq_piece, row->n);
    if (!pieces)
        return false;
    kept->row = *row;
    for (uint32_t i = 0; i < row->n; i++) {
        pieces[i] = *row->pieces[i];
        kept->row.pieces[i] = &pieces[i];
    }
    return true;
}

/* Asks what a wave needs up to the limit and composes it. */
static enum maq_status compose(struct maq_slices_run *run, struct maq_slices_kept *kept, double limit_s,
                               const struct maq_piece_search_opts *search, bool prove, struct maq_diag *diag)
{
    struct maq_arena scratch;
    struct maq_piece_table table;
    struct maq_piece_search_result *found;
    MAQ_TRY(maq_enumeration_query(&run->enumeration, kept->wave, limit_s, diag));
    maq_arena_init(&scratch, 0);
    found = MAQ_ARENA_NEW(&scratch, struct maq_piece_search_result, 1);
    enum maq_status status = found ? maq_enumeration_table(&table, &run->enumeration, kept->wave, &scratch, diag)
                                   : maq_no_memory(diag, "the search");
    if (status == MAQ_OK && !maq_piece_search(found, &table, search, &scratch))
        status = maq_no_memory(diag, "the search");
    if (status == MAQ_OK) {
        struct maq_slices_counts *c = &run->result.counts;
        c->considered += found->considered;
        c->bounded += found->bounded;
        c->dominated += found->dominated;
        bool better = found->best.n > 0 && (found->best.step_s < step_of(kept) || (prove && found->complete));
        if (prove) {
            kept->bound_s = fmax(kept->bound_s, found->bound_s);
            kept->complete = found->complete;
        }
        if (better && !keep(run, kept, &found->best))
            status = maq_no_memory(diag, "the search");
        run->enumeration.best_s = isfinite(to_beat(run, 1)) ? to_beat(run, 1) : 0;
    }
    maq_arena_fini(&scratch);
    return status;
}

static enum maq_status look(struct maq_slices_run *run, uint32_t top, struct maq_diag *diag)
{
    double least = run->n_waves > 0 ? run->order[0]->root_s : HUGE_VAL, over = FIRST_LIMIT;
    bool all = run->opts->ask_unbalanced || !(least > 0) || !isfinite(least);
    for (;; over *= GROWTH) {
        double limit = all || over > LAST_LIMIT ? HUGE_VAL : least * (1 + over);
        for (uint32_t i = 0; i < run->n_waves && run->order[i]->root_s <= fmin(limit, to_beat(run, top)); i++) {
            double beat = to_beat(run, top);
            const struct maq_piece_search_opts search = {fmin(beat, limit * LOOK_ROOM), LOOK_WIDTH, 0, 1, 0};
            MAQ_TRY(compose(run, run->order[i], fmin(limit, beat), &search, false, diag));
        }
        if (to_beat(run, top) <= limit || limit == HUGE_VAL || is_stopped(run))
            return MAQ_OK;
    }
}

/* Waves that are open, once more. */
static enum maq_status prove(struct maq_slices_run *run, uint32_t top, const struct maq_piece_search_opts *pass,
                             struct maq_diag *diag)
{
    qsort(run->order, run->n_waves, sizeof *run->order, by_step); /* waves with a plan first: they lower the cutoff */
    for (uint32_t i = 0; i < run->n_waves && !is_stopped(run); i++) {
        struct maq_slices_kept *k = run->order[i];
        double beat = to_beat(run, top);
        struct maq_piece_search_opts search = *pass;
        search.cutoff_s = beat;
        if (!k->complete && k->bound_s <= beat)
            MAQ_TRY(compose(run, k, beat, &search, true, diag));
    }
    return MAQ_OK;
}

/* ---- the result ---- */

static enum maq_status list_islands(struct maq_slices_run *run, struct maq_diag *diag)
{
    uint32_t n = run->chain.n_islands;
    struct maq_slices_island *islands = MAQ_ARENA_NEW(&run->arena, struct maq_slices_island, n);
    if (!islands)
        return maq_no_memory(diag, "the search");
    for (uint32_t g = 0; g < n; g++) {
        const struct maq_parallelizer_island *is = &run->chain.islands[g];
        islands[g] = (struct maq_slices_island){is->device, is->nodes, is->devices_per_node, 0};
        for (uint32_t i = 0; run->result.n_plans > 0 && i < run->result.plans[0].n_stages; i++)
            if (run->result.plans[0].stages[i].island == g)
                islands[g].used += run->result.plans[0].stages[i].devices;
    }
    run->result.n_islands = n;
    run->result.islands = islands;
    return MAQ_OK;
}

static enum maq_status summarize(struct maq_slices_run *run, uint32_t top, struct maq_diag *diag)
{
    struct maq_slices_result *r = &run->result;
    struct maq_slices_plan *plans = MAQ_ARENA_NEW(&run->arena, struct maq_slices_plan, top);
    qsort(run->order, run->n_waves, sizeof *run->order, by_step);
    double best = run->n_waves > 0 ? step_of(run->order[0]) : HUGE_VAL;
    if (!plans ||
        !(r->parallelizer = maq_arena_strdup(&run->arena, (struct maq_str){run->loaded.source.functions.name,
                                                                           strlen(run->loaded.source.functions.name)})))
        return maq_no_memory(diag, "the search");
    r->bound_s = best;
    for (uint32_t i = 0; i < run->n_waves; i++) {
        const struct maq_slices_kept *k = run->order[i];
        if (!k->complete)
            r->bound_s = fmin(r->bound_s, k->bound_s);
        r->counts.waves_bounded += !k->complete && k->bound_s >= best;
        if (i < top && isfinite(step_of(k)) && !maq_slices_take_plan(&plans[r->n_plans++], run, k))
            return maq_no_memory(diag, "the search");
    }
    r->plans = plans;
    r->exact = r->bound_s >= best;
    r->gap = r->n_plans > 0 && r->bound_s > 0 ? best / r->bound_s - 1 : 0;
    r->bound_s = r->n_plans > 0 ? r->bound_s : 0;
    r->n_atoms = run->enumeration.n_atoms;
    r->n_slices = r->n_atoms * (r->n_atoms + 1) / 2;
    r->n_distinct = run->enumeration.n_classes;
    r->n_layers = run->chain.model.n_layers;
    r->calls = maq_enumeration_count(&run->enumeration);
    r->counts.waves = run->n_waves;
    return list_islands(run, diag);
}

static enum maq_status stopped(struct maq_diag *diag)
{
    return maq_diag_fail(MAQ_LIMIT, diag, MAQ_CODE_SLICES_STOPPED, (struct maq_span){0}, NULL,
                         "the search was asked to stop before there was a plan");
}

static enum maq_status search(struct maq_slices_run *run, const struct maq_loaded_job *open,
                              const struct maq_slices_opts *opts, struct maq_diag *diag)
{
    bool builtin = !opts->functions && (!opts->parallelizer || strcmp(opts->parallelizer, "builtin") == 0);
    uint32_t top = opts->top > 0 ? opts->top : 1;
    MAQ_TRY(maq_slices_chain_init(&run->chain, open, opts->lists, opts->n_lists, &run->arena, diag));
    MAQ_TRY(maq_slices_load(&run->loaded, &run->chain, opts, &run->arena, diag));
    MAQ_TRY(list_waves(run, builtin, diag));
    enum maq_status status = maq_enumeration_init(&run->enumeration, &run->chain, &run->loaded.source, opts, run->waves,
                                                  run->n_waves, &run->arena, diag);
    if (status != MAQ_OK)
        return status == MAQ_LIMIT && is_stopped(run) && maq_diag_errors(diag) == 0 ? stopped(diag) : status;
    order_waves(run);
    status = look(run, top, diag);
    for (uint32_t i = 0; i < MAQ_COUNT(passes) && status == MAQ_OK; i++)
        status = prove(run, top, &passes[i], diag);
    if (is_stopped(run) && (status == MAQ_OK || status == MAQ_LIMIT))
        status = isfinite(to_beat(run, 1)) ? MAQ_OK : stopped(diag);
    return status == MAQ_OK ? summarize(run, top, diag) : status;
}

enum maq_status maq_slices_search(struct maq_slices_result **out, const struct maq_loaded_job *open,
                                  const struct maq_slices_opts *opts, struct maq_diag *diag)
{
    struct maq_slices_run *run = maq__calloc(sizeof *run);
    if (!run)
        return maq_no_memory(diag, "the search");
    maq_arena_init(&run->arena, 0);
    run->result.owner = run;
    run->opts = opts;
    enum maq_status status = search(run, open, opts, diag);
    maq_enumeration_fini(&run->enumeration);
    maq_slices_unload(&run->loaded);
    run->opts = NULL;
    if (status != MAQ_OK) {
        maq_slices_free(&run->result);
        return status;
    }
    *out = &run->result;
    return MAQ_OK;
}

void maq_slices_free(struct maq_slices_result *result)
{
    if (!result)
        return;
    struct maq_slices_run *run = result->owner;
    maq_slices_chain_fini(&run->chain);
    maq_arena_fini(&run->arena);
    free(run);
}
