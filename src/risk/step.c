/*
 * step.c - the distribution of a job's step time, and what drives it.
 *
 * For each regime of communication and each kind of replica (all the same but for --slow) a sample of pipeline ends is drawn; the
 * slowest of all replicas, the factors that everything shares and spikes follow without sampling (step_law.c). Samples of
 * different regimes, kinds and what-ifs use the same random numbers, so that differences are of what differs.
 *
 * Intervals are what sampling leaves open: a jackknife over ten parts of the draws, each left out in turn (Efron and Stein, "The jackknife
 * estimate of variance", 1981), +-2.262 standard errors (Student, 9 degrees of freedom). How well the variation itself is known is in
 * none of them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "maquette/risk.h"
#include "risk/slow.h"
#include "risk/step_law.h"

#define DRAWS 10000u
#define LEAST_DRAWS 400u
#define MOST_TASKS 4e9 /* sampled tasks at the most */
#define POINTS 256u
#define PARTS 10u

static const double levels[] = {0.05, 0.5, 0.95, 0.99};
enum { LEVELS = 4, FIGURES = LEVELS + 2 }; /* and mean, sd */

struct what_if {
    const struct maq_step_model *m;
    const struct maq_slow *slow;
    uint64_t seed;
    uint32_t draws, threads;
    struct maq_arena *arena; /* reset after each */
    bool sampled;            /* the exact law is not wanted */
    double tail; /* share of a replica's ends above which the last answer went beyond its draws; 0: nowhere */
    bool exact;  /* it needed no draws */
};

/* Draws of a regime and kind, unsorted. */
struct draws {
    double share, congestion;
    double **of_kind, **weight_of; /* [kinds][draws] */
};

static enum maq_status draw(struct draws *d, const struct what_if *w, const struct maq_variation *v)
{
    struct maq_step_run run = {.seed = w->seed, .draws = w->draws, .threads = w->threads, .congestion = d->congestion};
    d->of_kind = MAQ_ARENA_NEW(w->arena, double *, w->slow->n);
    d->weight_of = MAQ_ARENA_NEW(w->arena, double *, w->slow->n);
    if (!d->of_kind || !d->weight_of)
        return MAQ_NO_MEMORY;
    for (uint32_t k = 0; k < w->slow->n; k++) {
        struct maq_step_slow slow = {w->slow->kind[k].stage, w->slow->communication};
        d->of_kind[k] = MAQ_ARENA_NEW(w->arena, double, w->draws);
        d->weight_of[k] = MAQ_ARENA_NEW(w->arena, double, w->draws);
        if (!d->of_kind[k] || !d->weight_of[k])
            return MAQ_NO_MEMORY;
        MAQ_TRY(maq_step_sample(d->of_kind[k], d->weight_of[k], w->m, v, &slow, &run, w->arena));
    }
    return MAQ_OK;
}

/* The figures from all draws but those of part `without` (PARTS: from all). */
static enum maq_status evaluate(double out[FIGURES], struct what_if *w, const struct maq_variation *v,
                                const struct draws *d, uint32_t n_regimes, uint32_t without)
{
    uint32_t points = without < PARTS ? POINTS / 4 : POINTS;
    struct maq_step_law law = {.sigma = sqrt(log1p(v->step_cv * v->step_cv))};
    struct maq_end_law *ends = MAQ_ARENA_NEW(w->arena, struct maq_end_law, w->slow->n);
    law.atom = MAQ_ARENA_NEW(w->arena, struct maq_step_atom, n_regimes * maq_step_law_size(points, v));
    if (!ends || !law.atom)
        return MAQ_NO_MEMORY;
    for (uint32_t r = 0; r < n_regimes; r++) {
        for (uint32_t k = 0; k < w->slow->n; k++) {
            struct maq_end_draw *x = MAQ_ARENA_NEW(w->arena, struct maq_end_draw, w->draws);
            uint32_t n = 0;
            if (!x)
                return MAQ_NO_MEMORY;
            for (uint32_t i = 0; i < w->draws; i++)
                if (i % PARTS != without)
                    x[n++] = (struct maq_end_draw){d[r].of_kind[k][i], d[r].weight_of[k][i]};
            if (!maq_end_law_init(&ends[k], x, n, w->slow->kind[k].count, w->arena))
                return MAQ_NO_MEMORY;
            /* the 95th percentile of the slowest lies in the tail */
            w->tail = fmax(w->tail, ends[k].count * ends[k].tail_sf > 0.0513 ? ends[k].tail_sf : 0);
        }
        maq_step_law_add(&law, ends, w->slow->n, points, d[r].share,
                         w->m->norm_ns * d[r].congestion * w->slow->communication, w->m->end_ns, v);
    }
    maq_step_law_finish(&law);
    for (int i = 0; i < LEVELS; i++)
        out[i] = maq_step_law_quantile(&law, levels[i]);
    out[LEVELS] = maq_step_law_mean(&law);
    out[LEVELS + 1] = maq_step_law_sd(&law);
    return MAQ_OK;
}

/* The figures without sampling, where that can be; false: it cannot. */
static bool ask_exact(double out[FIGURES], struct what_if *w, const struct maq_variation *v, const struct draws *d,
                      uint32_t n_regimes)
{
    struct maq_step_law law = {.sigma = sqrt(log1p(v->step_cv * v->step_cv))};
    law.atom = MAQ_ARENA_NEW(w->arena, struct maq_step_atom, n_regimes * maq_step_law_size(POINTS, v));
    if (!law.atom || w->slow->n != 1 || w->sampled)
        return false;
    for (uint32_t r = 0; r < n_regimes; r++) {
        double comm = d[r].congestion * w->slow->communication, rest = w->m->rest_ns[0] * comm;
        struct maq_step_model m = *w->m;
        struct maq_end_law end;
        m.rest_ns = &rest;
        if (w->slow->kind[0].stage[0] != 1 || /* NOLINT: as it was set */
            !maq_step_exact(&end, &m, v, w->m->replicas, w->arena))
            return false;
        maq_step_law_add(&law, &end, 1, POINTS, d[r].share, w->m->norm_ns * comm, w->m->end_ns, v);
    }
    maq_step_law_finish(&law);
    for (int i = 0; i < LEVELS; i++)
        out[i] = maq_step_law_quantile(&law, levels[i]);
    out[LEVELS] = maq_step_law_mean(&law);
    out[LEVELS + 1] = maq_step_law_sd(&law);
    return true;
}

/* All figures, and what sampling leaves open of each when error is not NULL. */
static enum maq_status ask(double out[FIGURES], double *error, struct what_if *w, const struct maq_variation *v)
{
    struct maq_arena_mark mark = maq_arena_mark(w->arena);
    bool regimes = v->congested_share > 0 && v->congested_ratio > 1;
    struct draws d[2] = {{.share = regimes ? 1 - v->congested_share : 1, .congestion = 1},
                         {.share = v->congested_share, .congestion = v->congested_ratio}};
    uint32_t n = regimes ? 2 : 1;
    w->tail = 0;
    w->exact = ask_exact(out, w, v, d, n);
    if (w->exact) {
        for (int f = 0; error && f < FIGURES; f++)
            error[f] = 0;
        maq_arena_reset(w->arena, mark);
        return MAQ_OK;
    }
    for (uint32_t r = 0; r < n; r++)
        MAQ_TRY(draw(&d[r], w, v));
    MAQ_TRY(evaluate(out, w, v, d, n, PARTS));
    double parts[PARTS][FIGURES];
    for (uint32_t p = 0; error && p < PARTS; p++)
        MAQ_TRY(evaluate(parts[p], w, v, d, n, p));
    for (int f = 0; error && f < FIGURES; f++) {
        double mean = 0, square = 0;
        for (uint32_t p = 0; p < PARTS; p++)
            mean += (parts[p][f] - out[f]) / PARTS;
        for (uint32_t p = 0; p < PARTS; p++)
            square += (parts[p][f] - out[f] - mean) * (parts[p][f] - out[f] - mean);
        error[f] = sqrt(square * (PARTS - 1) / PARTS);
    }
    maq_arena_reset(w->arena, mark);
    return MAQ_OK;
}

static struct maq_risk_quantile quantile(double value_ns, double error_ns)
{
    return (struct maq_risk_quantile){value_ns * 1e-9, (value_ns - 2.262 * error_ns) * 1e-9,
                                      (value_ns + 2.262 * error_ns) * 1e-9};
}

static int by_effect(const void *pa, const void *pb)
{
    const struct maq_risk_source *a = pa, *b = pb;
    if (a->alone_s < b->alone_s || b->alone_s < a->alone_s)
        return a->alone_s > b->alone_s ? -1 : 1;
    return strcmp(a->name, b->name);
}

/* Each source alone and each source removed, with fewer draws and the same numbers. */
static enum maq_status ask_sources(struct maq_risk_step *out, struct what_if *w, const struct maq_variation *v)
{
    uint32_t all = (1u << MAQ_SOURCE_COUNT) - 1;
    double none[FIGURES], whole[FIGURES], one[FIGURES], rest[FIGURES];
    struct what_if few = *w;
    few.draws = w->draws / 5 > LEAST_DRAWS ? w->draws / 5 : LEAST_DRAWS;
    struct maq_variation nothing = maq_variation_only(v, 0);
    MAQ_TRY(ask(none, NULL, &few, &nothing));
    MAQ_TRY(ask(whole, NULL, &few, v));
    for (uint32_t s = 0; s < MAQ_SOURCE_COUNT; s++) {
        struct maq_variation alone = maq_variation_only(v, 1u << s), removed = maq_variation_only(v, all & ~(1u << s));
        MAQ_TRY(ask(one, NULL, &few, &alone));
        MAQ_TRY(ask(rest, NULL, &few, &removed));
        out->source[out->n_sources++] =
            (struct maq_risk_source){maq_source_name((enum maq_source)s), maq_source_text((enum maq_source)s),
                                     (one[2] - none[2]) * 1e-9, (whole[2] - rest[2]) * 1e-9};
    }
    qsort(out->source, out->n_sources, sizeof *out->source, by_effect);
    return MAQ_OK;
}

/* One replica more of what is slow, in one stage; the rest as it is. */
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
static enum maq_status ask_places(struct maq_risk_step *out, struct what_if *w, const struct maq_variation *v,
                                  double factor)
{
    double value[FIGURES];
    struct what_if few = *w;
    few.draws = w->draws / 5 > LEAST_DRAWS ? w->draws / 5 : LEAST_DRAWS;
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
        MAQ_TRY(ask(value, NULL, &few, v));
        out->place[s] = (struct maq_risk_place){value[1] * 1e-9, value[2] * 1e-9};
        maq_arena_reset(w->arena, mark);
    }
    return MAQ_OK;
}

static enum maq_status run(struct maq_risk_step *out, const struct maq_job *job, const struct maq_risk_step_opts *opts,
                           struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_step_model m;
    struct maq_variation v;
    struct maq_slow slow;
    double value[FIGURES], error[FIGURES];
    MAQ_TRY(maq_variation_load(&v, opts->variation, diag));
    MAQ_TRY(maq_step_model_build(&m, job, arena, diag));
    MAQ_TRY(maq_slow_read(&slow, opts->slow, opts->n_slow, job, &m, arena, diag));
    double most = MOST_TASKS / m.n_tasks;
    uint32_t draws = opts->draws > 0 ? opts->draws : DRAWS;
    if (opts->draws == 0 && draws > most)
        draws = most > LEAST_DRAWS ? (uint32_t)most : LEAST_DRAWS;
    struct what_if w = {.m = &m,
                        .slow = &slow,
                        .seed = opts->seed > 0 ? opts->seed : 1,
                        .draws = draws,
                        .threads = opts->threads,
                        .arena = arena,
                        .sampled = opts->sampled};
    *out = (struct maq_risk_step){.job = job,
                                  .base_s = m.base_ns * 1e-9,
                                  .replicas = m.replicas,
                                  .lockstep = m.lockstep,
                                  .stages = m.stages,
                                  .draws = draws};
    MAQ_TRY(ask(value, error, &w, &v));
    out->p5 = quantile(value[0], error[0]);
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++)
        out->figure[f] = quantile(value[f + 1], error[f + 1]);
    out->sd_s = value[LEVELS + 1] * 1e-9;
    out->tail_share = w.tail;
    out->exact = w.exact;
    out->draws = w.exact ? 0 : draws;
    if (opts->place > 0)
        MAQ_TRY(ask_places(out, &w, &v, opts->place));
    return opts->no_sources ? MAQ_OK : ask_sources(out, &w, &v);
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
    if (step)
        free(step->place);
    free(step);
}
