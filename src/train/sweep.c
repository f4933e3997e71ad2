/*
 * sweep.c - many plans of one job, see maq_train_sweep_eval.
 *
 * Plans are completed like a document's, without diagnostics; those that share a schedule skeleton are
 * evaluated together, up to LANES at a time. Plans are taken in windows, so that memory stays bounded;
 * results do not depend on the grouping.
 */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "plan/job_build.h"
#include "train/predict.h"

#define LANES 8
#define WINDOW 32 /* their blueprints stay in the second-level cache */

struct candidate {
    struct maq_job job;
    struct maq_blueprint bp;
    uint32_t index; /* into the caller's plans */
    bool done;
};

struct maq_train_sweep {
    struct maq_job job; /* template: model, cluster, workload */
    struct maq_cache cache;
    struct maq_arena scratch;
    struct candidate *window; /* [WINDOW] */
};

enum maq_status maq_train_sweep_new(struct maq_train_sweep **out, const struct maq_job *job, struct maq_diag *diag)
{
    struct maq_train_sweep *s = calloc(1, sizeof *s);
    if (!s || !(s->window = calloc(WINDOW, sizeof *s->window))) {
        free(s);
        return MAQ_NO_MEMORY;
    }
    s->job = *job;
    maq_arena_init(&s->scratch, 0);
    enum maq_status status = maq_cache_init(&s->cache, &s->job, diag);
    if (status != MAQ_OK) {
        maq_train_sweep_free(s);
        return status;
    }
    *out = s;
    return MAQ_OK;
}

void maq_train_sweep_free(struct maq_train_sweep *sweep)
{
    if (!sweep)
        return;
    maq_cache_fini(&sweep->cache);
    maq_arena_fini(&sweep->scratch);
    free(sweep->window);
    free(sweep);
}

/* Completes a plan and builds its blueprint; MAQ_BAD_INPUT when it cannot be. */
static enum maq_status prepare(struct maq_train_sweep *s, struct candidate *c, const struct maq_plan *plan,
                               uint32_t index)
{
    const struct maq_job_places nowhere = {0};
    c->job = s->job;
    c->job.plan = *plan;
    c->index = index;
    c->done = false;
    MAQ_TRY(maq_job_resolve(&c->job, &nowhere, NULL));
    MAQ_TRY(maq_job_split_layers(&c->job, &nowhere, &s->scratch, NULL));
    MAQ_TRY(maq_job_place_groups(&c->job, &nowhere, &s->scratch, NULL));
    return maq_blueprint_build(&c->bp, &c->job, &s->cache, &s->scratch, NULL);
}

static void fill(struct maq_train_quick *out, const struct maq_blueprint *bp, const struct maq_step_times *times)
{
    *out = (struct maq_train_quick){.possible = true, .fits = true, .step_s = times->step * 1e-9};
    for (uint32_t st = 0; st < bp->schedule->stages; st++) {
        struct maq_stage_result stage;
        maq_stage_memory(&stage, bp, st);
        out->needed_bytes = stage.total_bytes > out->needed_bytes ? stage.total_bytes : out->needed_bytes;
        out->fits = out->fits && maq_stage_fits(&stage);
    }
}

/* Evaluates the first undone candidate together with others of its schedule. */
static enum maq_status eval_family(struct maq_train_sweep *s, struct maq_train_quick *out, uint32_t first, uint32_t n)
{
    const struct maq_blueprint *bps[LANES];
    uint32_t at[LANES], K = 0;
    for (uint32_t i = first; i < n && K < LANES; i++) {
        if (s->window[i].done || s->window[i].bp.schedule != s->window[first].bp.schedule)
            continue;
        bps[K] = &s->window[i].bp;
        at[K++] = i;
    }
    struct maq_step_times times[LANES];
    struct maq_arena_mark mark = maq_arena_mark(&s->scratch);
    MAQ_TRY(maq_step_times(times, bps, K, &s->scratch));
    for (uint32_t k = 0; k < K; k++) {
        fill(&out[s->window[at[k]].index], bps[k], &times[k]);
        s->window[at[k]].done = true;
    }
    maq_arena_reset(&s->scratch, mark);
    return MAQ_OK;
}

enum maq_status maq_train_sweep_eval(struct maq_train_sweep *sweep, struct maq_train_quick *out,
                                     const struct maq_plan *plans, size_t n)
{
    for (size_t from = 0; from < n; from += WINDOW) {
        struct maq_arena_mark mark = maq_arena_mark(&sweep->scratch);
        uint32_t held = 0;
        for (size_t i = from; i < n && i < from + WINDOW; i++) {
            enum maq_status status = prepare(sweep, &sweep->window[held], &plans[i], (uint32_t)i);
            out[i] = (struct maq_train_quick){0};
            if (status == MAQ_OK)
                held++;
            else if (status != MAQ_BAD_INPUT)
                return status;
        }
        for (uint32_t i = 0; i < held; i++)
            if (!sweep->window[i].done)
                MAQ_TRY(eval_family(sweep, out, i, held));
        maq_arena_reset(&sweep->scratch, mark);
    }
    return MAQ_OK;
}
