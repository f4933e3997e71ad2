/* SPDX-License-Identifier: Apache-2.0 */
/*
 * choice.c - a deployment chosen by what is predicted, judged by what was measured.
 *
 * What a user of a prediction does with it: of several deployments of a model, take the one with the most throughput that holds a
 * latency; where none is predicted to, the one that comes nearest, as long as the target is within the interval of what is predicted.
 * `maquette serve plan` says the same (planner/serve/nearest_candidate.c). Errors that all deployments share do not matter here; those that differ
 * between them do.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "maquette/serve.h"
#include "maquette/validate_serve.h"

#define TTFT_TARGET_S 2.0
#define TOLERANCE 1.05 /* a target that is missed by less is held */

/* A measured run: what was measured and predicted of it, [0] and [1]. */
struct run {
    const struct maq_validate_serve_row *row; /* the one of TPOT */
    double tpot_s[2], ttft_s[2], rate[2];     /* rate: generated tokens a second and GPU */
};

static int by_setting(const struct maq_validate_serve_row *a, const struct maq_validate_serve_row *b)
{
    int c = strcmp(a->model, b->model);
    if (c == 0)
        c = strcmp(a->device, b->device);
    if (c == 0)
        c = strcmp(a->framework, b->framework);
    if (c == 0)
        c = strcmp(a->precision, b->precision);
    if (c == 0)
        c = (a->isl > b->isl) - (a->isl < b->isl);
    return c != 0 ? c : (a->osl > b->osl) - (a->osl < b->osl);
}

static int by_deployment(const struct maq_validate_serve_row *a, const struct maq_validate_serve_row *b)
{
    int c = (a->tp > b->tp) - (a->tp < b->tp);
    if (c == 0)
        c = (a->pp > b->pp) - (a->pp < b->pp);
    if (c == 0)
        c = (a->dp > b->dp) - (a->dp < b->dp);
    return c != 0 ? c : (a->ep > b->ep) - (a->ep < b->ep);
}

static int compare_runs(const void *x, const void *y)
{
    const struct maq_validate_serve_row *a = ((const struct run *)x)->row, *b = ((const struct run *)y)->row;
    int c = by_setting(a, b);
    if (c == 0)
        c = by_deployment(a, b);
    return c != 0 ? c : (a > b) - (a < b); /* as in the table */
}

static double rate_of(const struct maq_validate_serve_row *row, double ttft_s, double tpot_s)
{
    return row->load * row->osl / (ttft_s + (row->osl - 1) * tpot_s) /
           (row->tp * row->pp * (row->dp > 1 ? row->dp : 1));
}

/* A run's latencies stand in rows behind each other. */
static uint32_t list_runs(struct run *out, const struct maq_validate_serve *rows)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i + 1 < rows->n; i++) {
        const struct maq_validate_serve_row *t = &rows->rows[i], *first = &rows->rows[i + 1];
        if (t->metric != MAQ_VALIDATE_SERVE_TPOT || first->metric != MAQ_VALIDATE_SERVE_TTFT ||
            strcmp(t->id, first->id) != 0 || strcmp(t->kind, "serving") != 0 || t->load < 1 || t->osl < 2)
            continue;
        out[n++] = (struct run){
            .row = t,
            .tpot_s = {t->measured, t->predicted},
            .ttft_s = {first->measured, first->predicted},
            .rate = {rate_of(t, first->measured, t->measured), rate_of(t, first->predicted, t->predicted)}};
    }
    return n;
}

/* ---- targets ---- */

struct target {
    double tpot_s, ttft_s; /* HUGE_VAL: none */
};

static bool holds(const struct run *r, int by, const struct target *t, double tolerance)
{
    return r->tpot_s[by] <= t->tpot_s * tolerance && r->ttft_s[by] <= t->ttft_s * tolerance;
}

/* Of those that hold the target by `by`, the one of the highest rate by `by`; NULL: none does. */
static const struct run *best(const struct run *runs, uint32_t n, int by, const struct target *t)
{
    const struct run *found = NULL;
    for (uint32_t i = 0; i < n; i++)
        if (holds(&runs[i], by, t, 1) && (!found || runs[i].rate[by] > found->rate[by]))
            found = &runs[i];
    return found;
}

/* How many times a target a run is predicted to take. */
static double times_of(const struct run *r, const struct target *t)
{
    return fmax(r->tpot_s[1] / t->tpot_s, r->ttft_s[1] / t->ttft_s);
}

/* The run that is predicted to miss the target by least; NULL: the low ends of its intervals miss it too. */
static const struct run *nearest(const struct run *runs, uint32_t n, const struct target *t)
{
    const struct run *found = &runs[0];
    double first, token, high;
    for (uint32_t i = 1; i < n; i++)
        if (times_of(&runs[i], t) < times_of(found, t))
            found = &runs[i];
    maq_serve_interval(&first, &high, MAQ_SERVE_TTFT);
    maq_serve_interval(&token, &high, MAQ_SERVE_TPOT);
    return found->tpot_s[1] * token <= t->tpot_s && found->ttft_s[1] * first <= t->ttft_s ? found : NULL;
}

static void judge(struct maq_validate_choice_group *g, const struct run *runs, uint32_t n, const struct target *t)
{
    const struct run *right = best(runs, n, 0, t), *chosen = best(runs, n, 1, t);
    if (!right)
        return;
    g->cases++;
    if (!chosen) {
        chosen = nearest(runs, n, t);
        g->nearest += chosen != NULL;
    }
    if (!chosen)
        g->none++;
    else if (!holds(chosen, 0, t, TOLERANCE))
        g->violates++;
    else if (chosen->rate[0] < right->rate[0])
        g->regret_sum += 1 - chosen->rate[0] / right->rate[0];
}

static int by_value(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

/* `scratch`: [n]. A quartile is one of the measured ones, so that there is a run that just holds it. */
static void judge_all(struct maq_validate_choice_group *g, const struct run *runs, uint32_t n, double *scratch)
{
    for (uint32_t i = 0; i < n; i++)
        scratch[i] = runs[i].tpot_s[0];
    qsort(scratch, n, sizeof *scratch, by_value);
    for (uint32_t quarter = 1; quarter <= 3; quarter++)
        for (int first = 0; first < 2; first++) {
            const struct target t = {.tpot_s = scratch[(n - 1) * quarter / 4],
                                     .ttft_s = first ? TTFT_TARGET_S : HUGE_VAL};
            judge(g, runs, n, &t);
        }
}

/* Pairs of different deployments, in the order measured and predicted. */
static void rank(struct maq_validate_choice_group *g, const struct run *runs, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t k = i + 1; k < n; k++) {
            if (by_deployment(runs[i].row, runs[k].row) == 0 || runs[i].rate[0] == runs[k].rate[0])
                continue;
            g->pairs++;
            g->discordant += (runs[i].rate[0] > runs[k].rate[0]) != (runs[i].rate[1] > runs[k].rate[1]);
        }
}

/* ---- groups ---- */

static void add_group(struct maq_validate_choice *r, const struct run *runs, uint32_t n, double *scratch)
{
    const struct maq_validate_serve_row *row = runs[0].row;
    struct maq_validate_choice_group g = {.model = row->model,
                                          .device = row->device,
                                          .framework = row->framework,
                                          .precision = row->precision,
                                          .isl = row->isl,
                                          .osl = row->osl,
                                          .runs = n,
                                          .deployments = 1};
    for (uint32_t i = 1; i < n; i++)
        g.deployments += by_deployment(runs[i - 1].row, runs[i].row) != 0;
    if (g.deployments < 2)
        return;
    judge_all(&g, runs, n, scratch);
    rank(&g, runs, n);
    r->cases += g.cases;
    r->none += g.none;
    r->nearest += g.nearest;
    r->violates += g.violates;
    r->regret_mean += g.regret_sum; /* a sum until the end */
    r->pairs += g.pairs;
    r->discordant += g.discordant;
    r->groups[r->n_groups++] = g;
}

enum maq_status maq_validate_choice(struct maq_validate_choice **out, const struct maq_validate_serve *rows,
                                    struct maq_diag *diag)
{
    size_t most = rows->n / 2 + 1; /* a run has two rows, a group two runs or more */
    struct maq_validate_choice *r = calloc(1, sizeof *r + most * sizeof *r->groups);
    struct run *runs = calloc(most, sizeof *runs);
    double *scratch = calloc(most, sizeof *scratch);
    enum maq_status status = r && runs && scratch ? MAQ_OK : maq_no_memory(diag, "a choice of deployments");
    if (status == MAQ_OK) {
        uint32_t n = list_runs(runs, rows);
        r->groups = (struct maq_validate_choice_group *)(r + 1);
        qsort(runs, n, sizeof *runs, compare_runs);
        for (uint32_t i = 0, k; i < n; i = k) {
            for (k = i + 1; k < n && by_setting(runs[i].row, runs[k].row) == 0;)
                k++;
            add_group(r, &runs[i], k - i, scratch);
        }
        uint32_t held = r->cases - r->none - r->violates;
        r->regret_mean = held > 0 ? r->regret_mean / held : (double)NAN;
        r->tau = r->pairs > 0 ? 1 - 2 * (double)r->discordant / (double)r->pairs : (double)NAN;
        *out = r;
    } else {
        free(r);
    }
    free(runs);
    free(scratch);
    return status;
}
