/* SPDX-License-Identifier: Apache-2.0 */
/*
 * table.c - the surface of one table, and what it is worth on rows that it has not seen.
 *
 * Rows that a table lacks are often there in a relative: the same operators by another library on the device, or by the
 * same library on a device of the generation. What the relative took, plus a surface through the differences of the rows
 * that both have, stands in for them: libraries share kernels and the rules that choose among them, and those rules jump
 * from shape to shape as no neighbour in the own table tells. The relative that predicts held-back rows best is taken, or
 * none when the own neighbours predict them better.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/stat/summary.h"
#include "fit.h"

#define HELD_BACK 5      /* one row in so many is held back once */
#define LEAST_SHARED 200 /* rows that two tables must share to be compared */

/* Most knots of each axis before thinning. */
static const unsigned most_knots[MAQ_FIT_FAMILY_COUNT][FIT_AXES] = {
    [MAQ_FIT_GEMM] = {80, 24, 24, 1},       [MAQ_FIT_BMM] = {30, 14, 4, 4},
    [MAQ_FIT_PREFILL] = {18, 18, 8, 5},     [MAQ_FIT_DECODE] = {20, 20, 8, 1},
    [MAQ_FIT_EXPERTS] = {14, 10, 10, 18},   [MAQ_FIT_MLA_PREFILL] = {18, 12, 10, 1},
    [MAQ_FIT_MLA_DECODE] = {20, 12, 10, 1}, [MAQ_FIT_DELTA_RULE] = {22, 12, 6, 16},
    [MAQ_FIT_CONV1D] = {22, 12, 16, 1},     [MAQ_FIT_QUANTIZE] = {40, 22, 1, 1},
    [MAQ_FIT_ELEMENTWISE] = {40, 1, 1, 1},
};

/* Mean change of ln t that a knot must be worth. */
static double tolerance(enum maq_fit_family family)
{
    return family == MAQ_FIT_GEMM || family == MAQ_FIT_EXPERTS ? 0.031 : 0.017;
}

/* Points of a fit; x, y, left_out are one allocation each. */
struct cloud {
    size_t n;
    double (*x)[FIT_AXES];
    double *y;
    bool *left_out;
};

static bool cloud_new(struct cloud *c, size_t size)
{
    *c = (struct cloud){0, malloc((size + 1) * sizeof *c->x), malloc((size + 1) * sizeof *c->y),
                        malloc((size + 1) * sizeof *c->left_out)};
    return c->x && c->y && c->left_out;
}

static void cloud_free(struct cloud *c)
{
    free(c->x);
    free(c->y);
    free(c->left_out);
}

static void cloud_add(struct cloud *c, const struct fit_row *row, double y, bool left_out)
{
    for (int a = 0; a < FIT_AXES; a++)
        c->x[c->n][a] = (double)row->x[a];
    c->y[c->n] = y;
    c->left_out[c->n++] = left_out;
}

static struct fit_points points_of(const struct cloud *c, bool hold_back)
{
    return (struct fit_points){c->n, (const double(*)[FIT_AXES])c->x, c->y, hold_back ? c->left_out : NULL};
}

static bool is_held_back(const struct fit_row *row)
{
    return row->hash % HELD_BACK == 0;
}

/* Over the first n points; of those held back only when asked for. */
static bool errors_of(struct fit_errors *out, const struct fit_surface *s, const struct cloud *c, size_t n,
                      bool held_back)
{
    double *e = malloc((n + 1) * sizeof *e);
    size_t m = 0;
    for (size_t j = 0; e && j < n; j++)
        if (!held_back || c->left_out[j])
            e[m++] = fabs(exp(fit_at(s, c->x[j]) - c->y[j]) - 1.0);
    if (e)
        *out = (struct fit_errors){maq_quantile(e, m, 0.5), maq_quantile(e, m, 0.8), maq_quantile(e, m, 0.9)};
    free(e);
    return e != NULL;
}

/* ---- relatives ---- */

/* A copy of `like`'s knots without values. */
static struct fit_surface knots_of(const struct fit_surface *like)
{
    struct fit_surface s = *like;
    s.values = NULL;
    return s;
}

/* Differences of the rows that both have, as a surface. */
static bool fit_difference(struct fit_surface *d, size_t *shared, const struct fit_group *group,
                           const struct fit_group *relative, const struct fit_surface *like, bool hold_back)
{
    struct cloud c;
    bool ok = cloud_new(&c, group->n < relative->n ? group->n : relative->n);
    for (size_t i = 0, j = 0; ok && i < group->n && j < relative->n;) {
        const struct fit_row *a = &group->rows[i], *b = &relative->rows[j];
        if (a->hash == b->hash)
            cloud_add(&c, a, a->y - b->y, is_held_back(a));
        i += a->hash <= b->hash;
        j += b->hash <= a->hash;
    }
    *shared = c.n;
    *d = knots_of(like);
    struct fit_points points = points_of(&c, hold_back);
    ok = ok && (c.n < LEAST_SHARED || fit_solve(d, &points));
    cloud_free(&c);
    return ok;
}

/* Adds what the relative has and the group has not (held-back rows count as not there). */
static void add_missing(struct cloud *c, const struct fit_group *group, const struct fit_group *relative,
                        const struct fit_surface *difference, bool hold_back)
{
    size_t i = 0;
    for (size_t j = 0; j < relative->n; j++) {
        const struct fit_row *b = &relative->rows[j];
        double x[FIT_AXES] = {(double)b->x[0], (double)b->x[1], (double)b->x[2], (double)b->x[3]};
        while (i < group->n && group->rows[i].hash < b->hash)
            i++;
        bool there = i < group->n && group->rows[i].hash == b->hash;
        if (!there || (hold_back && is_held_back(b)))
            cloud_add(c, b, b->y + fit_at(difference, x), false);
    }
}

/* The fit with a relative's rows for missing ones; `like` gives the knots. *worse: it cannot be tried. */
static bool fit_with(struct fit_surface *s, struct fit_errors *errors, const struct fit_group *group,
                     const struct fit_group *relative, const struct fit_surface *like, bool hold_back)
{
    struct cloud c = {0};
    struct fit_surface d = {0};
    size_t shared = 0;
    bool ok = cloud_new(&c, group->n + (relative ? relative->n : 0));
    for (size_t i = 0; ok && i < group->n; i++)
        cloud_add(&c, &group->rows[i], group->rows[i].y, is_held_back(&group->rows[i]));
    if (relative) {
        ok = ok && fit_difference(&d, &shared, group, relative, like, hold_back);
        if (ok && shared >= LEAST_SHARED)
            add_missing(&c, group, relative, &d, hold_back);
    }
    struct fit_points points = points_of(&c, hold_back);
    *s = knots_of(like);
    ok = ok && fit_solve(s, &points) && errors_of(errors, s, &c, group->n, hold_back);
    fit_free(&d);
    cloud_free(&c);
    return ok;
}

/* ---- the whole ---- */

static double badness(const struct fit_errors *e)
{
    return e->median * e->p90;
}

/* Knots worth keeping, by a fit to all rows of the group. */
static bool choose_knots(struct fit_surface *knots, const struct fit_group *group)
{
    struct cloud c;
    bool ok = cloud_new(&c, group->n);
    for (size_t i = 0; ok && i < group->n; i++)
        cloud_add(&c, &group->rows[i], group->rows[i].y, false);
    struct fit_points points = points_of(&c, false);
    if (ok) {
        fit_place_knots(knots, &points, most_knots[group->rows[0].key.family]);
        ok = fit_solve(knots, &points);
    }
    if (ok)
        fit_thin(knots, tolerance((enum maq_fit_family)group->rows[0].key.family));
    cloud_free(&c);
    return ok;
}

bool fit_table(struct fit_table *out, const struct fit_group *group, const struct fit_group *const *relatives,
               size_t n_relatives)
{
    struct fit_surface knots = {0};
    *out = (struct fit_table){0};
    bool ok = choose_knots(&knots, group);
    for (size_t r = 0; ok && r <= n_relatives; r++) { /* r = 0: alone */
        const struct fit_group *relative = r ? relatives[r - 1] : NULL;
        struct fit_errors errors;
        struct fit_surface s;
        ok = fit_with(&s, &errors, group, relative, &knots, true);
        fit_free(&s);
        if (ok && (r == 0 || badness(&errors) < badness(&out->held_out))) {
            out->held_out = errors;
            out->relative = relative;
        }
    }
    ok = ok && fit_with(&out->surface, &out->seen, group, out->relative, &knots, false);
    fit_free(&knots);
    return ok;
}
