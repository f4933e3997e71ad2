/* SPDX-License-Identifier: Apache-2.0 */
/*
 * graph.c - the distribution of the makespan of a graph with durations, such as a captured job's.
 *
 * Makespans are drawn (sample.h), for each part of the steps by itself; the factors that everything shares are
 * a mixture that needs no draws, as for a step (risk/step/job_law.h). Intervals are a jackknife over the scramblings that
 * draws come from (risk/step/question.h), the guarantee is that of risk/step/tolerance_limit.h, of independent draws.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "risk/codes.h"
#include "risk/graph/sample.h"
#include "risk/step/question.h"

#define DRAWS 2560u /* 256 points of each scrambling: even in every dimension */
#define DRAWS_LEAST 200u
#define NODE_DRAWS 4e8 /* what all runs together may take: some seconds */
#define POINTS 256u
#define SOURCES ((1u << MAQ_SOURCE_COUNT) - 1 - (1u << MAQ_SOURCE_MICROBATCH))
#define NONE UINT32_MAX

/* Makespans of the parts of the steps under some variation. */
struct drawn {
    struct maq_variation v;
    uint32_t n;
    struct maq_graph_part part[MAQ_GRAPH_PARTS];
    double *ns[MAQ_GRAPH_PARTS]; /* [draws] */
};

static bool draw(struct drawn *d, struct maq_graph_sampler *s, const struct maq_variation *v, uint32_t sources,
                 struct maq_arena *arena)
{
    d->v = maq_variation_only(v, sources);
    d->n = maq_graph_parts(d->part, s, &d->v);
    for (uint32_t i = 0; i < d->n; i++) {
        d->ns[i] = MAQ_ARENA_NEW(arena, double, s->draws);
        if (!d->ns[i])
            return false;
        maq_graph_sample(d->ns[i], s, &d->v, &d->part[i]);
    }
    return true;
}

/* Figures of all draws but each tenth from `without` (MAQ_STEP_ASK_PARTS: of all), and where it is wanted their law. */
static bool evaluate(double out[MAQ_STEP_ASK_FIGURES], struct maq_step_curve *curve, const struct drawn *d,
                     uint32_t draws, uint32_t without, struct maq_arena *arena)
{
    uint32_t points = without < MAQ_STEP_ASK_PARTS ? POINTS / 4 : POINTS;
    struct maq_step_law law = {.sigma = maq_lognormal_sigma(d->v.step_cv)};
    law.atom = MAQ_ARENA_NEW(arena, struct maq_step_atom, d->n * maq_step_law_size(points, &d->v));
    if (!law.atom)
        return false;
    for (uint32_t i = 0; i < d->n; i++) {
        struct maq_end_law end;
        struct maq_end_draw *x = MAQ_ARENA_NEW(arena, struct maq_end_draw, draws);
        uint32_t n = 0;
        for (uint32_t k = 0; x && k < draws; k++)
            if (k % MAQ_STEP_ASK_PARTS != without)
                x[n++] = (struct maq_end_draw){d->ns[i][k], 1};
        if (!x || !maq_end_law_init(&end, x, n, 1, arena))
            return false;
        maq_step_law_add(&law, &end, 1, points, d->part[i].share, 0, 0, &d->v);
    }
    maq_step_law_finish(&law);
    maq_step_question_figures(out, &law);
    if (curve)
        maq_step_question_curve(curve, &law);
    return true;
}

static bool find_limit(double *limit_ns, const struct drawn *d, uint32_t draws, struct maq_arena *arena)
{
    struct maq_limit_regime regime[MAQ_GRAPH_PARTS] = {0};
    struct maq_limit_job job = {.v = &d->v, .regime = regime, .n_regimes = d->n};
    for (uint32_t i = 0; i < d->n; i++)
        regime[i].share = d->part[i].share;
    return maq_step_limit_of(limit_ns, d->ns, draws, &job, arena);
}

static bool answer(struct maq_step_answer *out, struct maq_step_curve *curve, const struct drawn *d, uint32_t draws,
                   struct maq_arena *arena)
{
    for (uint32_t p = 0; p < MAQ_STEP_ASK_PARTS; p++)
        if (!evaluate(out->without[p], NULL, d, draws, p, arena))
            return false;
    return evaluate(out->figure, curve, d, draws, MAQ_STEP_ASK_PARTS, arena);
}

static bool describe(struct maq_risk_graph *out, struct maq_step_answer *whole, struct maq_graph_sampler *s,
                     const struct maq_variation *v, bool with_curve, struct maq_arena *arena)
{
    struct drawn d;
    struct maq_step_curve curve;
    double limit;
    if (!draw(&d, s, v, SOURCES, arena) || !answer(whole, with_curve ? &curve : NULL, &d, s->draws, arena))
        return false;
    for (uint32_t i = 0; i < MAQ_RISK_CURVE && with_curve; i++) {
        out->curve_s[i] = curve.x_ns[i] * 1e-9;
        out->curve_share[i] = curve.share[i];
    }
    s->independent = true; /* the guarantee is counted from draws of its own */
    out->p5 = maq_step_answer_quantile(whole, MAQ_STEP_ASK_P5);
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++)
        out->figure[f] = maq_step_answer_quantile(whole, (enum maq_step_question_figure)(f + 1));
    out->sd_s = whole->figure[MAQ_STEP_ASK_SD] * 1e-9;
    out->draws = s->draws;
    if (!draw(&d, s, v, SOURCES, arena) || !find_limit(&limit, &d, s->draws, arena))
        return false;
    s->independent = false;
    out->guarantee_s = limit * 1e-9;
    return true;
}

/* Under some of the variation. */
static bool ask(struct maq_step_answer *out, struct maq_graph_sampler *s, const struct maq_variation *v,
                uint32_t sources, struct maq_arena *arena)
{
    struct maq_arena_mark mark = maq_arena_mark(arena);
    struct drawn d;
    bool whole = draw(&d, s, v, sources, arena) && answer(out, NULL, &d, s->draws, arena);
    maq_arena_reset(arena, mark);
    return whole;
}

static bool find_sources(struct maq_risk_graph *out, const struct maq_step_answer *whole, struct maq_graph_sampler *s,
                         const struct maq_variation *v, struct maq_arena *arena)
{
    struct maq_step_answer none, alone, others;
    if (!ask(&none, s, v, 0, arena)) /* given stragglers are there all the same */
        return false;
    for (uint32_t i = 0; i < MAQ_SOURCE_COUNT; i++) {
        if (!(SOURCES & 1u << i) || !maq_variation_has(v, (enum maq_source)i))
            continue;
        if (!ask(&alone, s, v, 1u << i, arena) || !ask(&others, s, v, SOURCES & ~(1u << i), arena))
            return false;
        out->source[out->n_sources++] =
            (struct maq_risk_source){maq_source_name((enum maq_source)i), maq_source_text((enum maq_source)i),
                                     maq_step_answer_over(&alone, &none), maq_step_answer_over(whole, &others)};
    }
    maq_step_answer_rank(out->source, out->n_sources);
    return true;
}

static int by_share(const void *a, const void *b)
{
    const struct maq_risk_longest *x = a, *y = b;
    if (x->seconds < y->seconds || x->seconds > y->seconds)
        return x->seconds > y->seconds ? -1 : 1;
    return strcmp(x->name, y->name);
}

/* What the longest path through the graph is made of, when nothing varies: whatever makes that longer makes all longer. */
static bool find_drivers(struct maq_risk_graph *out, struct maq_graph_sampler *s, struct maq_arena *arena)
{
    const struct maq_graph *g = &s->graph;
    struct maq_risk_longest *all = MAQ_ARENA_NEW(arena, struct maq_risk_longest, s->n_signatures);
    double end;
    uint32_t v = 0;
    for (uint32_t i = 0; i < s->n_cells; i++)
        s->dur[i] = s->cell[i].ns;
    if (!all)
        return false;
    maq_engine_static(&end, s->finish, g, 1, s->dur);
    for (uint32_t i = 0; i < g->n_nodes; i++)
        v = s->finish[i] > s->finish[v] ? i : v;
    while (g->n_nodes > 0 && v != NONE) {
        struct maq_risk_longest *d = &all[s->cell[s->cell_of[v]].signature];
        d->name = s->timed->item_name[s->timed->graph.item[v]];
        d->seconds += s->dur[s->cell_of[v]] * 1e-9;
        d->count += s->dur[s->cell_of[v]] > 0;
        uint32_t before = NONE;
        for (uint32_t e = g->pred_at[v]; e < g->pred_at[v + 1]; e++)
            if (before == NONE || s->finish[g->pred[e]] > s->finish[before])
                before = g->pred[e];
        v = before;
    }
    out->base_s = end * 1e-9;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n_signatures; i++)
        if (all[i].seconds > 0)
            all[n++] = all[i];
    qsort(all, n, sizeof *all, by_share);
    out->n_drivers = n < MAQ_RISK_DRIVERS ? n : MAQ_RISK_DRIVERS;
    memcpy(out->driver, all, out->n_drivers * sizeof *all);
    return true;
}

static enum maq_status check_slow(const struct maq_risk_graph_opts *opts, const struct maq_graph *g,
                                  struct maq_diag *diag)
{
    for (uint32_t i = 0; i < opts->n_slow; i++) {
        const struct maq_risk_slow_class *s = &opts->slow[i];
        if (s->class_id >= g->n_classes || s->ranks > g->multiplicity[s->class_id] || !(s->kernels > 0) ||
            !(s->communication > 0))
            return maq_diag_fail(MAQ_USAGE, diag, MAQ_CODE_RISK_SLOW, (struct maq_span){0}, NULL,
                                 "slow ranks of a class that the graph does not have");
    }
    return MAQ_OK;
}

static enum maq_status run(struct maq_risk_graph *out, const struct maq_timed_graph *timed,
                           const struct maq_risk_graph_opts *opts, struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_variation v;
    struct maq_graph_sampler s;
    struct maq_graph_part parts[MAQ_GRAPH_PARTS];
    struct maq_step_answer whole;
    MAQ_TRY(maq_variation_load(&v, opts->variation, diag));
    MAQ_TRY(check_slow(opts, &timed->graph, diag));
    if (maq_graph_sampler_init(&s, timed, opts, &v, arena)) {
        double nodes = s.graph.n_nodes + 1.0, most = NODE_DRAWS / (2.0 * MAQ_SOURCE_COUNT) / nodes;
        most /= maq_graph_parts(parts, &s, &v);
        s.draws = opts->draws           ? opts->draws
                  : most >= DRAWS       ? DRAWS
                  : most <= DRAWS_LEAST ? DRAWS_LEAST
                                        : (uint32_t)most;
        if (find_drivers(out, &s, arena) && describe(out, &whole, &s, &v, opts->curve, arena) &&
            (opts->no_sources || find_sources(out, &whole, &s, &v, arena)))
            return MAQ_OK;
    }
    return maq_no_memory(diag, "a distribution");
}

enum maq_status maq_risk_graph(struct maq_risk_graph *out, const struct maq_timed_graph *timed,
                               const struct maq_risk_graph_opts *opts, struct maq_diag *diag)
{
    struct maq_arena arena;
    struct maq_risk_graph result = {0};
    maq_arena_init(&arena, 0);
    enum maq_status status = run(&result, timed, opts, &arena, diag);
    maq_arena_fini(&arena);
    if (status == MAQ_OK)
        *out = result;
    return status;
}
