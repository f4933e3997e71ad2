/* SPDX-License-Identifier: Apache-2.0 */
/*
 * baseline.c - a constant utilisation per device: the rival of every simulator.
 *
 * A row of W hardware FLOP on N devices of peak P that took t seconds had the utilisation u = W / (N P t). Predicting it with a
 * constant c gives t' = W / (N P c) and the error t' / t - 1 = u / c - 1. Over rows i,
 *
 *     mean |u_i / c - 1|  =  mean u_i |1/c - 1/u_i|,
 *
 * which is least where 1/c is the median of 1/u_i with the weights u_i: a closed form, no search.
 *
 * The FLOP are those that maquette counts, recomputation included: the rival is given them.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/stat/summary.h"
#include "validate/train/run.h"

/* One capped row. */
struct entry {
    const struct maq_validate_row *row;
    double utilisation;
    double own, fitted, left_out; /* |error| */
};

struct rows {
    struct entry *at;
    uint32_t n;
    struct maq_weighted *scratch;
    double *errors;
};

double maq__validate_fit_utilisation(const double *utilisations, struct maq_weighted *scratch, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        scratch[i] = (struct maq_weighted){1 / utilisations[i], utilisations[i]};
    return 1 / maq_weighted_quantile(scratch, n, 0.5);
}

static const char *device_of(const struct entry *e)
{
    return e->row->label[MAQ_VALIDATE_BY_DEVICE];
}

/* Best constant over the rows of a device (NULL: of all), without those of a model (NULL: with all); NaN when there are none. */
static double fit(const struct rows *r, const char *device, const char *without)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++)
        if ((!device || strcmp(device_of(&r->at[i]), device) == 0) &&
            (!without || strcmp(r->at[i].row->model, without) != 0))
            r->errors[n++] = r->at[i].utilisation;
    return n > 0 ? maq__validate_fit_utilisation(r->errors, r->scratch, n) : (double)NAN;
}

static double fit_without_model(const struct rows *r, const struct entry *e)
{
    double c = fit(r, device_of(e), e->row->model);
    if (isnan(c))
        c = fit(r, NULL, e->row->model);
    return c; /* NaN in a table of one model: nothing to learn it from elsewhere */
}

static int by_device_and_model(const void *pa, const void *pb)
{
    const struct entry *a = pa, *b = pb;
    int c = strcmp(device_of(a), device_of(b));
    if (c == 0)
        c = strcmp(a->row->model, b->row->model);
    return c != 0 ? c : (a->row > b->row) - (a->row < b->row); /* rows are in one array: the order of the table */
}

/* Errors of every row; a constant serves all rows of its device and model. */
static void predict(struct rows *r)
{
    double fitted = 0, left_out = 0;
    qsort(r->at, r->n, sizeof *r->at, by_device_and_model);
    for (uint32_t i = 0; i < r->n; i++) {
        struct entry *e = &r->at[i];
        bool new_device = i == 0 || strcmp(device_of(e), device_of(e - 1)) != 0;
        if (new_device)
            fitted = fit(r, device_of(e), NULL);
        if (new_device || strcmp(e->row->model, e[-1].row->model) != 0)
            left_out = fit_without_model(r, e);
        e->fitted = fabs(e->utilisation / fitted - 1);
        e->left_out = fabs(e->utilisation / left_out - 1);
    }
}

static void collect(struct rows *r, struct maq_validate_owner *owner)
{
    const struct maq_validate_result *result = &owner->result;
    for (uint32_t i = 0; i < result->n_rows; i++) {
        const struct maq_validate_row *row = &result->rows[i];
        double work = row->hardware_flop, rate = row->devices * row->peak_flops;
        if (!maq__validate_is_capped(owner, i, MAQ_VALIDATE_TIME, MAQ_VALIDATE_ALL) || !(work > 0) || !(rate > 0))
            continue;
        r->at[r->n++] = (struct entry){.row = row,
                                       .utilisation = work / (rate * row->points[MAQ_VALIDATE_TIME].measured),
                                       .own = fabs(row->points[MAQ_VALIDATE_TIME].error)};
    }
}

enum { OWN, FITTED, LEFT_OUT };

static void fill_column(double *mean, double *median, const struct rows *r, enum maq_validate_by by, const char *name,
                        int which)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < r->n; i++) {
        const struct entry *e = &r->at[i];
        double error = which == OWN ? e->own : which == FITTED ? e->fitted : e->left_out;
        if (!isnan(error) && (!name || strcmp(e->row->label[by], name) == 0))
            r->errors[n++] = error;
    }
    *mean = maq_mean(r->errors, n);
    *median = maq_quantile(r->errors, n, 0.5);
}

static struct maq_validate_rival rival_of(const struct rows *r, enum maq_validate_by by, const char *name)
{
    struct maq_validate_rival v = {.name = name ? name : "total", .utilisation = (double)NAN};
    for (uint32_t i = 0; i < r->n; i++)
        v.n += !name || strcmp(r->at[i].row->label[by], name) == 0;
    fill_column(&v.own_mean, &v.own_median, r, by, name, OWN);
    fill_column(&v.fitted_mean, &v.fitted_median, r, by, name, FITTED);
    fill_column(&v.left_out_mean, &v.left_out_median, r, by, name, LEFT_OUT);
    if (by == MAQ_VALIDATE_BY_DEVICE && name)
        v.utilisation = fit(r, name, NULL);
    return v;
}

/* One line per group of the grouping that has rows. */
static bool lines_by(const struct maq_validate_rival **out, uint32_t *n, const struct rows *r,
                     struct maq_validate_owner *owner, enum maq_validate_by by)
{
    const struct maq_validate_grouping *g = &owner->result.by[by];
    struct maq_validate_rival *v = MAQ_ARENA_NEW(&owner->arena, struct maq_validate_rival, g->n);
    *out = v;
    for (uint32_t i = 0; v && i < g->n; i++) {
        v[*n] = rival_of(r, by, g->groups[i].name);
        *n += v[*n].n > 0;
    }
    return v != NULL;
}

bool maq__validate_baseline(struct maq_validate_owner *owner)
{
    struct maq_validate_baseline *b = &owner->result.baseline;
    uint32_t n = owner->result.n_rows;
    struct rows r = {.at = MAQ_ARENA_NEW(&owner->arena, struct entry, n),
                     .scratch = MAQ_ARENA_NEW(&owner->arena, struct maq_weighted, n),
                     .errors = MAQ_ARENA_NEW(&owner->arena, double, n)};
    if (!r.at || !r.scratch || !r.errors)
        return false;
    collect(&r, owner);
    predict(&r);
    b->total = rival_of(&r, MAQ_VALIDATE_BY_SOURCE, NULL);
    return lines_by(&b->devices, &b->n_devices, &r, owner, MAQ_VALIDATE_BY_DEVICE) &&
           lines_by(&b->sources, &b->n_sources, &r, owner, MAQ_VALIDATE_BY_SOURCE);
}
