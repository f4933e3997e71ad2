/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ranking.c - does the prediction put plans in the order in which they were measured?
 *
 * A sweep is what a user of a planner compares: rows of one source and framework (release and all, as the row writes it), with one model,
 * device and number of devices; four or more. They differ in mapping, batch, sequence length, precision or recomputation, and are ranked by
 * tokens per second. The measure is Kendall's tau-b. `regret` is what following the prediction would have cost.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/stat/summary.h"
#include "validate/train/run.h"

struct candidate {
    const struct maq_validate_row *row;
};

static int compare_texts(const char *a, const char *b)
{
    int c = strverscmp(a, b);
    return c != 0 ? c : strcmp(a, b);
}

/* 0 for rows of one sweep. */
static int compare_sweeps(const struct maq_validate_row *a, const struct maq_validate_row *b)
{
    int c = compare_texts(a->source, b->source);
    if (c == 0)
        c = compare_texts(a->framework, b->framework);
    if (c == 0)
        c = compare_texts(a->model, b->model);
    if (c == 0)
        c = compare_texts(a->label[MAQ_VALIDATE_BY_DEVICE], b->label[MAQ_VALIDATE_BY_DEVICE]);
    return c != 0 ? c : (a->devices > b->devices) - (a->devices < b->devices);
}

static int by_sweep(const void *pa, const void *pb)
{
    const struct maq_validate_row *a = ((const struct candidate *)pa)->row, *b = ((const struct candidate *)pb)->row;
    int c = compare_sweeps(a, b);
    return c != 0 ? c : (a > b) - (a < b); /* rows are in one array: the order of the table */
}

static double rate(const struct maq_validate_row *row, double step_s)
{
    return row->tokens / step_s;
}

/* Of the plans that are predicted to be best (several may be equal) the first in the table is taken. */
static double regret_of(const struct candidate *c, uint32_t n)
{
    double best_predicted = 0, taken = 0, best = 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_validate_point *p = &c[i].row->points[MAQ_VALIDATE_TIME];
        double measured = rate(c[i].row, p->measured), predicted = rate(c[i].row, p->predicted);
        best = measured > best ? measured : best;
        if (predicted > best_predicted) {
            best_predicted = predicted;
            taken = measured;
        }
    }
    return taken > 0 ? best / taken - 1 : (double)NAN;
}

static bool fill_sweep(struct maq_validate_sweep *out, const struct candidate *c, uint32_t n, struct maq_pair *pairs)
{
    const struct maq_validate_row *first = c[0].row;
    *out = (struct maq_validate_sweep){.source = first->source,
                                       .model = first->model,
                                       .device = first->label[MAQ_VALIDATE_BY_DEVICE],
                                       .devices = first->devices,
                                       .rows = n,
                                       .regret = regret_of(c, n)};
    for (uint32_t i = 0; i < n; i++) {
        const struct maq_validate_point *p = &c[i].row->points[MAQ_VALIDATE_TIME];
        pairs[i] = (struct maq_pair){rate(c[i].row, p->measured), rate(c[i].row, p->predicted)};
    }
    return maq_kendall_tau(&out->tau, pairs, n);
}

/* Over the sweeps of a source (NULL: of all) that have a tau. */
static struct maq_validate_ranking rank_source(const struct maq_validate_sweep *s, uint32_t n, const char *source)
{
    struct maq_validate_ranking r = {.name = source ? source : "every sweep", .least_tau = (double)NAN};
    double tau = 0, regret = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (isnan(s[i].tau) || (source && strcmp(s[i].source, source) != 0))
            continue;
        tau += s[i].tau;
        regret += s[i].regret;
        r.least_tau = r.sweeps == 0 || s[i].tau < r.least_tau ? s[i].tau : r.least_tau;
        r.sweeps++;
        r.rows += s[i].rows;
    }
    r.mean_tau = r.sweeps > 0 ? tau / r.sweeps : (double)NAN;
    r.mean_regret = r.sweeps > 0 ? regret / r.sweeps : (double)NAN;
    return r;
}

static bool fill_rankings(struct maq_validate_owner *owner)
{
    struct maq_validate_result *r = &owner->result;
    const struct maq_validate_grouping *sources = &r->by[MAQ_VALIDATE_BY_SOURCE];
    struct maq_validate_ranking *list = MAQ_ARENA_NEW(&owner->arena, struct maq_validate_ranking, sources->n);
    r->ranking = rank_source(r->sweeps, r->n_sweeps, NULL);
    r->rankings = list;
    for (uint32_t g = 0; list && g < sources->n; g++) {
        list[r->n_rankings] = rank_source(r->sweeps, r->n_sweeps, sources->groups[g].name);
        r->n_rankings += list[r->n_rankings].sweeps > 0;
    }
    return list != NULL;
}

bool maq__validate_rank(struct maq_validate_owner *owner)
{
    struct maq_validate_result *r = &owner->result;
    uint32_t n = 0;
    struct candidate *c = MAQ_ARENA_NEW(&owner->arena, struct candidate, r->n_rows);
    struct maq_pair *pairs = MAQ_ARENA_NEW(&owner->arena, struct maq_pair, r->n_rows);
    struct maq_validate_sweep *sweeps =
        MAQ_ARENA_NEW(&owner->arena, struct maq_validate_sweep, r->n_rows / MAQ_VALIDATE_SWEEP_ROWS);
    if (!c || !pairs || !sweeps)
        return false;
    for (uint32_t i = 0; i < r->n_rows; i++)
        if (r->rows[i].points[MAQ_VALIDATE_TIME].skip == MAQ_VALIDATE_SKIP_NONE && r->rows[i].tokens > 0)
            c[n++].row = &r->rows[i];
    qsort(c, n, sizeof *c, by_sweep);
    for (uint32_t i = 0, run; i < n; i += run) {
        for (run = 1; i + run < n && compare_sweeps(c[i].row, c[i + run].row) == 0;)
            run++;
        if (run >= MAQ_VALIDATE_SWEEP_ROWS && !fill_sweep(&sweeps[r->n_sweeps++], &c[i], run, pairs))
            return false;
    }
    r->sweeps = sweeps;
    return fill_rankings(owner);
}
