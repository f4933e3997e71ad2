/* SPDX-License-Identifier: Apache-2.0 */
/*
 * step.c - maq_risk_step(): the distribution of a job's step time, its tolerance limit, its sources of variation, and
 * where a slow GPU costs most. question.h has how a single question is answered.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "maquette/risk.h"
#include "risk/step/drivers.h"

#define DRAWS 10000u
#define MOST_TASKS 4e9 /* sampled tasks at the most */

/* Each source alone and each source removed, with fewer draws and the same numbers. */
static enum maq_status ask_sources(struct maq_risk_step *out, struct maq_step_question *w,
                                   const struct maq_variation *v)
{
    uint32_t all = (1u << MAQ_SOURCE_COUNT) - 1;
    struct maq_step_answer none, whole, one, rest;
    struct maq_step_question few = *w;
    few.draws = w->draws / 5 > MAQ_STEP_ASK_LEAST_DRAWS ? w->draws / 5 : MAQ_STEP_ASK_LEAST_DRAWS;
    struct maq_variation nothing = maq_variation_only(v, 0);
    MAQ_TRY(maq_step_question(&none, &few, &nothing));
    MAQ_TRY(maq_step_question(&whole, &few, v));
    for (uint32_t s = 0; s < MAQ_SOURCE_COUNT; s++) {
        if (!maq_variation_has(v, (enum maq_source)s))
            continue;
        struct maq_variation alone = maq_variation_only(v, 1u << s), removed = maq_variation_only(v, all & ~(1u << s));
        MAQ_TRY(maq_step_question(&one, &few, &alone));
        MAQ_TRY(maq_step_question(&rest, &few, &removed));
        out->source[out->n_sources++] =
            (struct maq_risk_source){maq_source_name((enum maq_source)s), maq_source_text((enum maq_source)s),
                                     maq_step_answer_over(&one, &none), maq_step_answer_over(&whole, &rest)};
    }
    maq_step_answer_rank(out->source, out->n_sources);
    return MAQ_OK;
}

/* Adds a replica that is slow in one stage to the given ones. */
static bool slow_in_stage(struct maq_slow *out, const struct maq_slow *given, uint32_t stage, uint32_t stages,
                          double factor, struct maq_arena *arena)
{
    *out = (struct maq_slow){.n = given->n + 1,
                             .kind = MAQ_ARENA_NEW(arena, struct maq_slow_kind, (size_t)given->n + 1),
                             .communication = given->communication};
    double *own = MAQ_ARENA_NEW(arena, double, stages);
    if (!out->kind || !own)
        return false;
    const struct maq_slow_kind *rest = &given->kind[given->n - 1];
    for (uint32_t s = 0; s < stages; s++)
        own[s] = rest->stage[s] * (s == stage ? factor : 1);
    out->kind[0] = (struct maq_slow_kind){1, own};
    memcpy(out->kind + 1, given->kind, given->n * sizeof *given->kind);
    out->kind[given->n].count -= 1;
    return true;
}

/* The step with a slow GPU in each stage in turn, with fewer draws and the same numbers. */
static enum maq_status ask_places(struct maq_risk_step *out, struct maq_step_question *w, const struct maq_variation *v,
                                  double factor)
{
    struct maq_step_answer answer;
    struct maq_step_question few = *w;
    few.draws = w->draws / 5 > MAQ_STEP_ASK_LEAST_DRAWS ? w->draws / 5 : MAQ_STEP_ASK_LEAST_DRAWS;
    out->place_factor = factor;
    out->place = maq__calloc(out->stages * sizeof *out->place);
    if (!out->place)
        return MAQ_NO_MEMORY;
    for (uint32_t s = 0; s < out->stages; s++) {
        struct maq_arena_mark mark = maq_arena_mark(w->arena);
        struct maq_slow slow;
        if (!slow_in_stage(&slow, w->slow, s, out->stages, factor, w->arena))
            return MAQ_NO_MEMORY;
        few.slow = &slow;
        MAQ_TRY(maq_step_question(&answer, &few, v));
        out->place[s] = (struct maq_risk_place){maq_step_answer_quantile(&answer, MAQ_STEP_ASK_P50),
                                                maq_step_answer_quantile(&answer, MAQ_STEP_ASK_P95)};
        maq_arena_reset(w->arena, mark);
    }
    return MAQ_OK;
}

/* The distribution itself, and the bound that holds whatever its law. */
static enum maq_status ask_whole(struct maq_risk_step *out, struct maq_step_question *w, const struct maq_variation *v,
                                 bool with_curve)
{
    struct maq_step_answer answer;
    struct maq_step_limit limit = {.limit_ns = (double)NAN};
    struct maq_step_curve curve = {{0}, {0}};
    struct maq_step_question asked = *w;
    asked.limit = &limit;
    asked.curve = with_curve ? &curve : NULL;
    MAQ_TRY(maq_step_question(&answer, &asked, v));
    asked.limit = NULL;
    asked.curve = NULL;
    for (uint32_t i = 0; i < MAQ_RISK_CURVE && with_curve; i++) {
        out->curve_s[i] = curve.x_ns[i] * 1e-9;
        out->curve_share[i] = curve.share[i];
    }
    *w = asked; /* with what was found about it */
    out->bound_s = limit.limit_ns * 1e-9;
    out->bound_steps = limit.values;
    out->p5 = maq_step_answer_quantile(&answer, MAQ_STEP_ASK_P5);
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++)
        out->figure[f] = maq_step_answer_quantile(&answer, (enum maq_step_question_figure)(f + 1));
    out->sd_s = answer.figure[MAQ_STEP_ASK_SD] * 1e-9;
    out->tail_share = w->tail;
    out->exact = w->exact;
    out->draws = w->exact ? 0 : w->draws;
    return MAQ_OK;
}

static enum maq_status run(struct maq_risk_step *out, const struct maq_job *job, const struct maq_risk_step_opts *opts,
                           struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_step_model m;
    struct maq_variation v;
    struct maq_slow slow;
    MAQ_TRY(maq_variation_load(&v, opts->variation, diag));
    MAQ_TRY(maq_step_model_build(&m, job, arena, diag));
    MAQ_TRY(maq_slow_read(&slow, opts->slow, opts->n_slow, job, &m, arena, diag));
    double most = MOST_TASKS / m.n_tasks;
    uint32_t draws = opts->draws > 0 ? opts->draws : DRAWS;
    if (opts->draws == 0 && draws > most)
        draws = most > MAQ_STEP_ASK_LEAST_DRAWS ? (uint32_t)most : MAQ_STEP_ASK_LEAST_DRAWS;
    struct maq_step_question w = {.m = &m,
                                  .slow = &slow,
                                  .seed = opts->seed > 0 ? opts->seed : 1,
                                  .draws = draws,
                                  .threads = opts->threads,
                                  .arena = arena,
                                  .sampled = opts->sampled};
    struct maq_signatures signatures;
    if (opts->parts != 0 || v.n_kernels > 0) {
        MAQ_TRY(maq_signatures_find(&signatures, job, &m, &v, arena, diag));
        w.signatures = v.n_kernels > 0 ? &signatures : NULL;
    }
    *out = (struct maq_risk_step){
        .job = job, .base_s = m.base_ns * 1e-9, .replicas = m.replicas, .lockstep = m.lockstep, .stages = m.stages};
    MAQ_TRY(ask_whole(out, &w, &v, opts->curve));
    if (opts->place > 0)
        MAQ_TRY(ask_places(out, &w, &v, opts->place));
    if (!opts->no_sources)
        MAQ_TRY(ask_sources(out, &w, &v));
    w.signatures = &signatures;
    for (int k = 0; k < MAQ_RISK_PARTS; k++)
        if (opts->parts & 1u << k)
            MAQ_TRY(maq_step_drivers_find(&out->driver[k], &out->n_drivers[k], (enum maq_risk_parts)k, &w, &v));
    return MAQ_OK;
}

enum maq_status maq_risk_step(struct maq_risk_step **out, const struct maq_job *job,
                              const struct maq_risk_step_opts *opts, struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_risk_step *step = maq__calloc(sizeof *step);
    maq_arena_init(&arena, (size_t)8 << 30);
    enum maq_status status = step ? run(step, job, opts, &arena, diag) : MAQ_NO_MEMORY;
    if (status == MAQ_NO_MEMORY && maq_diag_errors(diag) == 0)
        (void)maq_diag_fail(status, diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL,
                            "out of memory for the samples");
    maq_arena_fini(&arena);
    if (status != MAQ_OK) {
        maq_risk_step_free(step);
        return status;
    }
    *out = step;
    return MAQ_OK;
}

void maq_risk_step_free(struct maq_risk_step *step)
{
    if (!step)
        return;
    free(step->place);
    for (int k = 0; k < MAQ_RISK_PARTS; k++)
        free(step->driver[k]);
    free(step);
}
