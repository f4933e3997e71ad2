/* SPDX-License-Identifier: Apache-2.0 */
/*
 * question.c - draws or tables the ends of replicas for every regime and kind, combines them to the law of the step,
 * and computes the jackknife. See question.h.
 */
#include "risk/step/question.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "risk/step/exact.h"

#define POINTS 256u
#define PARTS MAQ_STEP_ASK_PARTS
#define LIMIT_VALUES 1000u /* more make the bound little tighter */

static const double levels[] = {0.05, 0.5, 0.95, 0.99};
enum { LEVELS = 4 };

/* Draws of a regime and kind, unsorted. */
struct draws {
    double share, congestion;
    const struct maq_step_focus *focus;
    double **of_kind, **weight_of; /* [kinds][draws] */
};

/* The norm's all-reduce in a regime. */
static double norm_ns(const struct maq_step_question *w, const struct draws *d)
{
    double varies = d->focus ? d->focus->norm : 1, comm = w->slow->communication;
    return w->m->norm_ns * (varies * (d->congestion * comm) + (1 - varies) * comm);
}

/* GPUs in an episode at a time, on average. */
static double episodes(const struct maq_step_question *w, const struct maq_variation *v)
{
    double gpus = w->m->replicas * w->m->stages * w->m->lockstep;
    return v->episode_ratio > 1 ? v->episodes_per_gpu_day / 86400 * v->episode_lasts_s * gpus : 0;
}

static enum maq_status draw(struct draws *d, const struct maq_step_question *w, const struct maq_variation *v,
                            uint32_t draws, bool independent)
{
    struct maq_step_run run = {.seed = w->seed,
                               .draws = draws,
                               .threads = w->threads,
                               .congestion = d->congestion,
                               .independent = independent,
                               .focus = d->focus};
    uint32_t given = w->slow->n, all = given + (episodes(w, v) > 0);
    d->of_kind = MAQ_ARENA_NEW(w->arena, double *, all);
    d->weight_of = MAQ_ARENA_NEW(w->arena, double *, all);
    if (!d->of_kind || !d->weight_of)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < all; k++) { /* those with an episode are else like the last of the given kinds */
        struct maq_step_slow slow = {w->slow->kind[k < given ? k : given - 1].stage, w->slow->communication,
                                     k < given ? 0 : v->episode_ratio};
        d->of_kind[k] = MAQ_ARENA_NEW(w->arena, double, draws);
        d->weight_of[k] = MAQ_ARENA_NEW(w->arena, double, draws);
        if (!d->of_kind[k] || !d->weight_of[k])
            return MAQ_NO_MEMORY;
        MAQ_TRY(maq_step_sample(d->of_kind[k], d->weight_of[k], w->m, v, &slow, &run, w->arena));
    }
    return MAQ_OK;
}

void maq_step_question_figures(double out[MAQ_STEP_ASK_FIGURES], const struct maq_step_law *law)
{
    for (int i = 0; i < LEVELS; i++)
        out[i] = maq_step_law_quantile(law, levels[i]);
    out[MAQ_STEP_ASK_MEAN] = maq_step_law_mean(law);
    out[MAQ_STEP_ASK_SD] = maq_step_law_sd(law);
}

#define CURVE_FROM 0.002
#define CURVE_TO 0.995

void maq_step_question_curve(struct maq_step_curve *curve, const struct maq_step_law *law)
{
    double from = maq_step_law_quantile(law, CURVE_FROM), to = maq_step_law_quantile(law, CURVE_TO);
    for (uint32_t i = 0; i < MAQ_RISK_CURVE; i++) {
        curve->x_ns[i] = from + (to - from) * i / (MAQ_RISK_CURVE - 1);
        curve->share[i] = maq_step_law_cdf(law, curve->x_ns[i]);
    }
}

/* Of a figure, or a difference of two, of all draws and without each part of them. */
static struct maq_risk_quantile interval(double whole_ns, const double without_ns[PARTS])
{
    double mean = 0, square = 0;
    for (uint32_t p = 0; p < PARTS; p++)
        mean += (without_ns[p] - whole_ns) / PARTS;
    for (uint32_t p = 0; p < PARTS; p++)
        square += (without_ns[p] - whole_ns - mean) * (without_ns[p] - whole_ns - mean);
    double reach = 2.262 * sqrt(square * (PARTS - 1) / PARTS); /* Student's, 9 degrees of freedom */
    return (struct maq_risk_quantile){whole_ns * 1e-9, (whole_ns - reach) * 1e-9, (whole_ns + reach) * 1e-9};
}

struct maq_risk_quantile maq_step_answer_quantile(const struct maq_step_answer *a, enum maq_step_question_figure figure)
{
    double without[PARTS];
    for (uint32_t p = 0; p < PARTS; p++)
        without[p] = a->without[p][figure];
    return interval(a->figure[figure], without);
}

struct maq_risk_quantile maq_step_answer_over(const struct maq_step_answer *a, const struct maq_step_answer *b)
{
    double without[PARTS];
    for (uint32_t p = 0; p < PARTS; p++)
        without[p] = a->without[p][MAQ_STEP_ASK_P95] - b->without[p][MAQ_STEP_ASK_P95];
    return interval(a->figure[MAQ_STEP_ASK_P95] - b->figure[MAQ_STEP_ASK_P95], without);
}

static int by_effect(const void *pa, const void *pb)
{
    const struct maq_risk_source *a = pa, *b = pb;
    if (a->alone.value_s < b->alone.value_s || b->alone.value_s < a->alone.value_s)
        return a->alone.value_s > b->alone.value_s ? -1 : 1;
    return strcmp(a->name, b->name);
}

void maq_step_answer_rank(struct maq_risk_source *sources, uint32_t n)
{
    qsort(sources, n, sizeof *sources, by_effect);
}

/* The figures from all draws but those of part `without` (PARTS: from all). */
static enum maq_status evaluate(double out[MAQ_STEP_ASK_FIGURES], struct maq_step_question *w,
                                const struct maq_variation *v, const struct draws *d, uint32_t n_regimes,
                                uint32_t without)
{
    uint32_t points = without < PARTS ? POINTS / 4 : POINTS;
    struct maq_step_law law = {.sigma = maq_lognormal_sigma(v->step_cv)};
    double expected = episodes(w, v);
    uint32_t kinds = w->slow->n + (expected > 0);
    struct maq_end_law *ends = MAQ_ARENA_NEW(w->arena, struct maq_end_law, kinds);
    law.atom = MAQ_ARENA_NEW(w->arena, struct maq_step_atom, n_regimes * maq_step_law_size(points, v));
    if (!ends || !law.atom)
        return MAQ_NO_MEMORY;
    for (uint32_t r = 0; r < n_regimes; r++) {
        for (uint32_t k = 0; k < kinds; k++) {
            struct maq_end_draw *x = MAQ_ARENA_NEW(w->arena, struct maq_end_draw, w->draws);
            uint32_t n = 0;
            if (!x)
                return MAQ_NO_MEMORY;
            for (uint32_t i = 0; i < w->draws; i++)
                if (i % PARTS != without)
                    x[n++] = (struct maq_end_draw){d[r].of_kind[k][i], d[r].weight_of[k][i]};
            double count = k < w->slow->n ? w->slow->kind[k].count : 0;
            if (!maq_end_law_init(&ends[k], x, n, count, w->arena))
                return MAQ_NO_MEMORY;
            ends[k].expected = k < w->slow->n ? 0 : expected;
            /* the 95th percentile of the slowest lies in the tail */
            w->tail = fmax(w->tail, ends[k].count * ends[k].tail_sf > 0.0513 ? ends[k].tail_sf : 0);
        }
        maq_step_law_add(&law, ends, kinds, points, d[r].share, norm_ns(w, &d[r]), w->m->end_ns, v);
    }
    maq_step_law_finish(&law);
    maq_step_question_figures(out, &law);
    if (w->curve && without == PARTS)
        maq_step_question_curve(w->curve, &law);
    return MAQ_OK;
}

/* The passes of each kind of replica, those with an episode last; NULL: they need sampling. */
static struct maq_exact_table *exact_tables(struct maq_step_question *w, const struct maq_variation *v, uint32_t kinds)
{
    struct maq_step_exact *exact = MAQ_ARENA_NEW(w->arena, struct maq_step_exact, 1);
    struct maq_exact_table *table = MAQ_ARENA_NEW(w->arena, struct maq_exact_table, kinds);
    if (!exact || !table || !maq_step_exact_find(exact, w->m, v, w->arena))
        return NULL;
    for (uint32_t k = 0; k < kinds; k++) { /* those with an episode are else like the last of the given kinds */
        double slow = k < w->slow->n ? w->slow->kind[k].stage[0] : w->slow->kind[k - 1].stage[0] * v->episode_ratio;
        if (!maq_step_exact_table(&table[k], exact, slow, w->arena))
            return NULL;
    }
    return table;
}

/* The figures without sampling, where that can be; false: it cannot. */
static bool ask_exact(double out[MAQ_STEP_ASK_FIGURES], struct maq_step_question *w, const struct maq_variation *v,
                      const struct draws *d, uint32_t n_regimes)
{
    struct maq_step_law law = {.sigma = maq_lognormal_sigma(v->step_cv)};
    double expected = episodes(w, v), rest_sigma = maq_lognormal_sigma(v->communication_cv);
    uint32_t given = w->slow->n, kinds = given + (expected > 0);
    struct maq_exact_table *table = w->sampled || d->focus ? NULL : exact_tables(w, v, kinds);
    struct maq_end_law *ends = MAQ_ARENA_NEW(w->arena, struct maq_end_law, kinds);
    law.atom = MAQ_ARENA_NEW(w->arena, struct maq_step_atom, n_regimes * maq_step_law_size(POINTS, v));
    if (!table || !ends || !law.atom)
        return false;
    for (uint32_t r = 0; r < n_regimes; r++) {
        double rest = w->m->rest_ns[0] * (d[r].congestion * w->slow->communication);
        for (uint32_t k = 0; k < kinds; k++) {
            double count = k < given ? w->slow->kind[k].count : 0;
            if (!maq_step_exact_ends(&ends[k], &table[k], rest, rest_sigma, count, w->arena))
                return false;
            ends[k].expected = k < given ? 0 : expected;
        }
        maq_step_law_add(&law, ends, kinds, POINTS, d[r].share, norm_ns(w, &d[r]), w->m->end_ns, v);
    }
    maq_step_law_finish(&law);
    maq_step_question_figures(out, &law);
    if (w->curve)
        maq_step_question_curve(w->curve, &law);
    return true;
}

static enum maq_status make_focus(struct maq_step_focus *out, const struct maq_step_question *w,
                                  const struct maq_variation *v)
{
    double *full = MAQ_ARENA_NEW(w->arena, double, w->signatures->n + w->m->stages);
    struct maq_spread all = {full, full};
    if (!full)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < w->signatures->n + w->m->stages; i++)
        full[i] = 1;
    return maq_step_focus_make(out, w->signatures, v, w->spread ? w->spread : &all, w->m, w->arena);
}

/* What at most 5 % of steps exceed: of draws of its own, as those of the figures depend on each other. */
static enum maq_status find_limit(const struct maq_step_question *w, const struct maq_variation *v,
                                  const struct draws *d, uint32_t n_regimes)
{
    struct maq_limit_regime regime[2];
    double *count = MAQ_ARENA_NEW(w->arena, double, w->slow->n);
    struct maq_limit_job job = {.v = v,
                                .regime = regime,
                                .n_regimes = n_regimes,
                                .n_kinds = w->slow->n,
                                .count = count,
                                .expected = episodes(w, v),
                                .end_ns = w->m->end_ns,
                                .seed = w->seed};
    for (uint32_t k = 0; count && k < w->slow->n; k++)
        count[k] = w->slow->kind[k].count;
    if (!count)
        return MAQ_NO_MEMORY;
    *w->limit = (struct maq_step_limit){.limit_ns = (double)NAN};
    if (w->draws < maq_step_limit_draws(&job, MAQ_RISK_BOUND_LEAST))
        return MAQ_OK;
    job.draws = (uint32_t)fmin(w->draws, maq_step_limit_draws(&job, LIMIT_VALUES));
    for (uint32_t r = 0; r < n_regimes; r++) {
        struct draws own = d[r];
        MAQ_TRY(draw(&own, w, v, job.draws, true));
        regime[r] = (struct maq_limit_regime){own.share, norm_ns(w, &own), own.of_kind};
    }
    return maq_step_limit(w->limit, &job, w->arena) ? MAQ_OK : MAQ_NO_MEMORY;
}

enum maq_status maq_step_question(struct maq_step_answer *out, struct maq_step_question *w,
                                  const struct maq_variation *v)
{
    struct maq_arena_mark mark = maq_arena_mark(w->arena);
    bool regimes = v->congested_share > 0 && v->congested_ratio > 1;
    struct draws d[2] = {{.share = regimes ? 1 - v->congested_share : 1, .congestion = 1},
                         {.share = v->congested_share, .congestion = v->congested_ratio}};
    uint32_t n = regimes ? 2 : 1;
    struct maq_step_focus focus;
    w->tail = 0;
    if (w->signatures) {
        MAQ_TRY(make_focus(&focus, w, v));
        d[0].focus = d[1].focus = &focus;
    }
    w->exact = ask_exact(out->figure, w, v, d, n);
    if (w->exact) {
        for (uint32_t p = 0; p < PARTS; p++)
            memcpy(out->without[p], out->figure, sizeof out->figure);
        if (w->limit)
            *w->limit = (struct maq_step_limit){.limit_ns = out->figure[MAQ_STEP_ASK_P95]};
        maq_arena_reset(w->arena, mark);
        return MAQ_OK;
    }
    for (uint32_t r = 0; r < n; r++)
        MAQ_TRY(draw(&d[r], w, v, w->draws, false));
    MAQ_TRY(evaluate(out->figure, w, v, d, n, PARTS));
    if (w->limit)
        MAQ_TRY(find_limit(w, v, d, n));
    for (uint32_t p = 0; p < PARTS; p++)
        MAQ_TRY(evaluate(out->without[p], w, v, d, n, p));
    maq_arena_reset(w->arena, mark);
    return MAQ_OK;
}
