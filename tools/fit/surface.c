/* SPDX-License-Identifier: Apache-2.0 */
/* surface.c - the conjugate gradients and the rounds of weights. Everything is in a fixed order: the same points give the same bits. */
#include "surface.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SMOOTH 0.02 /* of the axis along which the surface bends least */
#define FLAT 1e-4
#define HUBER 0.10 /* a tenth off: no longer squared */
#define ROUNDS 4
#define STEPS 300
#define ENOUGH 1e-10 /* of the right side's square */

/* ---- knots ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void remove_knot(double *knots, unsigned *n, unsigned i)
{
    memmove(&knots[i], &knots[i + 1], (*n - i - 1) * sizeof knots[0]);
    --*n;
}

/* Removes the inner knot whose neighbours are nearest, until few enough are left. */
static unsigned crowd_out(double *knots, unsigned n, unsigned most)
{
    while (n > most && n > 2) {
        unsigned least = 1;
        for (unsigned i = 2; i + 1 < n; i++)
            if (knots[i + 1] - knots[i - 1] < knots[least + 1] - knots[least - 1])
                least = i;
        remove_knot(knots, &n, least);
    }
    return n;
}

void fit_place_knots(struct fit_surface *s, const struct fit_points *points, const unsigned most[FIT_AXES])
{
    double *all = malloc((points->n + 1) * sizeof *all);
    memset(s, 0, sizeof *s);
    s->size = 1;
    for (unsigned a = 0; a < FIT_AXES && all; a++) {
        unsigned n = 0;
        for (size_t j = 0; j < points->n; j++)
            all[j] = points->x[j][a];
        qsort(all, points->n, sizeof *all, by_value);
        for (size_t j = 0; j < points->n; j++)
            if (n == 0 || all[j] > all[n - 1] + 1e-5)
                all[n++] = all[j];
        n = crowd_out(all, n, most[a] < FIT_KNOTS ? most[a] : FIT_KNOTS);
        s->n[a] = n;
        memcpy(s->knots[a], all, n * sizeof *all);
        s->size *= n;
    }
    free(all);
}

/* ---- interpolation ---- */

struct corner {
    uint32_t at;
    float weight;
};
struct stencil { /* the corners of a point's cell */
    unsigned n;
    struct corner at[1u << FIT_AXES];
};

static void stencil_of(struct stencil *st, const struct fit_surface *s, const double x[FIT_AXES])
{
    unsigned cell[FIT_AXES];
    double place[FIT_AXES];
    for (unsigned a = 0; a < FIT_AXES; a++) {
        unsigned n = s->n[a], i = 0;
        while (i + 2 < n && x[a] >= s->knots[a][i + 1])
            i++;
        cell[a] = i;
        place[a] = n > 1 ? (x[a] - s->knots[a][i]) / (s->knots[a][i + 1] - s->knots[a][i]) : 0.0;
        place[a] = place[a] < 0.0 ? 0.0 : place[a] > 1.0 ? 1.0 : place[a];
    }
    st->n = 0;
    for (unsigned corner = 0; corner < 1u << FIT_AXES; corner++) {
        double weight = 1.0;
        size_t at = 0;
        for (unsigned a = 0; a < FIT_AXES; a++) {
            unsigned upper = corner >> a & 1u;
            weight *= upper ? place[a] : 1.0 - place[a];
            at = at * s->n[a] + cell[a] + (s->n[a] > 1 ? upper : 0u);
        }
        if (weight > 0.0)
            st->at[st->n++] = (struct corner){(uint32_t)at, (float)weight};
    }
}

static double apply(const struct stencil *st, const double *values)
{
    double sum = 0.0;
    for (unsigned c = 0; c < st->n; c++)
        sum += (double)st->at[c].weight * values[st->at[c].at];
    return sum;
}

double fit_at(const struct fit_surface *s, const double x[FIT_AXES])
{
    struct stencil st;
    stencil_of(&st, s, x);
    return apply(&st, s->values);
}

/* ---- the normal equations ---- */

struct system {
    const struct fit_surface *s;
    size_t n; /* points that count */
    struct stencil *stencils;
    double *y, *weight;
    double smooth[FIT_AXES];
};

/* out += penalty of one line of an axis, as the gradient of its half square. */
static void penalize_line(double *out, const double *v, const double *knots, unsigned n, size_t stride, double smooth)
{
    for (unsigned i = 0; i + 1 < n; i++) {
        double d = FLAT * (v[(i + 1) * stride] - v[i * stride]);
        out[(i + 1) * stride] += d;
        out[i * stride] -= d;
    }
    for (unsigned i = 1; i + 1 < n; i++) {
        double w = (knots[i] - knots[i - 1]) / (knots[i + 1] - knots[i - 1]);
        double d = smooth * (v[i * stride] - (1.0 - w) * v[(i - 1) * stride] - w * v[(i + 1) * stride]);
        out[i * stride] += d;
        out[(i - 1) * stride] -= (1.0 - w) * d;
        out[(i + 1) * stride] -= w * d;
    }
}

static void multiply(double *out, const struct system *sys, const double *v)
{
    const struct fit_surface *s = sys->s;
    memset(out, 0, s->size * sizeof *out);
    for (size_t j = 0; j < sys->n; j++) {
        const struct stencil *st = &sys->stencils[j];
        double r = sys->weight[j] * apply(st, v);
        for (unsigned c = 0; c < st->n; c++)
            out[st->at[c].at] += (double)st->at[c].weight * r;
    }
    size_t stride = s->size;
    for (unsigned a = 0; a < FIT_AXES; a++) {
        size_t block = stride;
        stride /= s->n[a];
        for (size_t at = 0; at < s->size; at += block)
            for (size_t line = at; line < at + stride; line++)
                penalize_line(out + line, v + line, s->knots[a], s->n[a], stride, sys->smooth[a]);
    }
}

static double dot(const double *a, const double *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* Conjugate gradients from the values that are there; scratch: three vectors. */
static void descend(struct fit_surface *s, const struct system *sys, double *scratch)
{
    double *r = scratch, *p = scratch + s->size, *q = scratch + 2 * s->size, right = 0.0;
    multiply(q, sys, s->values);
    memset(r, 0, s->size * sizeof *r);
    for (size_t j = 0; j < sys->n; j++)
        for (unsigned c = 0; c < sys->stencils[j].n; c++)
            r[sys->stencils[j].at[c].at] += (double)sys->stencils[j].at[c].weight * sys->weight[j] * sys->y[j];
    right = dot(r, r, s->size);
    for (size_t i = 0; i < s->size; i++)
        p[i] = r[i] -= q[i];
    double rr = dot(r, r, s->size);
    for (int step = 0; step < STEPS && rr > ENOUGH * right && rr > 0.0; step++) {
        multiply(q, sys, p);
        double alpha = rr / dot(p, q, s->size), old = rr;
        for (size_t i = 0; i < s->size; i++) {
            s->values[i] += alpha * p[i];
            r[i] -= alpha * q[i];
        }
        rr = dot(r, r, s->size);
        for (size_t i = 0; i < s->size; i++)
            p[i] = r[i] + rr / old * p[i];
    }
}

/* Mean distance of the values at knot i of an axis from the line between its neighbours. */
static double worth(const struct fit_surface *s, unsigned a, unsigned i)
{
    size_t stride = 1, lines;
    double w = (s->knots[a][i] - s->knots[a][i - 1]) / (s->knots[a][i + 1] - s->knots[a][i - 1]), sum = 0.0;
    for (unsigned b = a + 1; b < FIT_AXES; b++)
        stride *= s->n[b];
    lines = s->size / s->n[a];
    for (size_t line = 0; line < lines; line++) {
        const double *v = s->values + line / stride * stride * s->n[a] + line % stride + i * stride;
        sum += fabs(v[0] - (1.0 - w) * v[-(ptrdiff_t)stride] - w * v[stride]);
    }
    return sum / (double)lines;
}

/* The more a surface bends along an axis, the less its neighbours there say about a missing value. */
static void weigh_axes(double smooth[FIT_AXES], const struct fit_surface *s)
{
    double bend[FIT_AXES], least = 1.0;
    for (unsigned a = 0; a < FIT_AXES; a++) {
        bend[a] = 1e-3;
        for (unsigned i = 1; i + 1 < s->n[a]; i++)
            bend[a] += worth(s, a, i) / (double)(s->n[a] - 2);
        if (s->n[a] > 2)
            least = fmin(least, bend[a]);
    }
    for (unsigned a = 0; a < FIT_AXES; a++)
        smooth[a] = SMOOTH * least * least / (bend[a] * bend[a]);
}

bool fit_solve(struct fit_surface *s, const struct fit_points *points)
{
    struct system sys = {.s = s, .smooth = {SMOOTH, SMOOTH, SMOOTH, SMOOTH}};
    sys.stencils = malloc((points->n + 1) * sizeof *sys.stencils);
    sys.y = malloc((points->n + 1) * 2 * sizeof *sys.y);
    double *scratch = malloc((3 * s->size + 1) * sizeof *scratch), mean = 0.0;
    free(s->values);
    s->values = malloc(s->size * sizeof *s->values);
    bool ok = sys.stencils && sys.y && scratch && s->values;
    if (ok) {
        sys.weight = sys.y + points->n;
        for (size_t j = 0; j < points->n; j++) {
            if (points->left_out && points->left_out[j])
                continue;
            stencil_of(&sys.stencils[sys.n], s, points->x[j]);
            sys.weight[sys.n] = 1.0;
            mean += sys.y[sys.n++] = points->y[j];
        }
        for (size_t i = 0; i < s->size; i++)
            s->values[i] = sys.n ? mean / (double)sys.n : 0.0;
        for (int round = 0; round < ROUNDS; round++) {
            descend(s, &sys, scratch);
            for (size_t j = 0; j < sys.n; j++) {
                double off = fabs(apply(&sys.stencils[j], s->values) - sys.y[j]);
                sys.weight[j] = off > HUBER ? HUBER / off : 1.0;
            }
            weigh_axes(sys.smooth, s);
        }
    }
    free(sys.stencils);
    free(sys.y);
    free(scratch);
    return ok;
}

/* ---- fewer knots ---- */

static void drop(struct fit_surface *s, unsigned a, unsigned i)
{
    size_t stride = 1, to = 0;
    for (unsigned b = a + 1; b < FIT_AXES; b++)
        stride *= s->n[b];
    for (size_t from = 0; from < s->size; from++)
        if (from / stride % s->n[a] != i)
            s->values[to++] = s->values[from];
    s->size = to;
    remove_knot(s->knots[a], &s->n[a], i);
}

void fit_thin(struct fit_surface *s, double tolerance)
{
    for (unsigned a = 0; a < FIT_AXES; a++)
        for (;;) {
            unsigned least = 0;
            double value = tolerance;
            for (unsigned i = 1; i + 1 < s->n[a]; i++) {
                double w = worth(s, a, i);
                if (w < value) {
                    value = w;
                    least = i;
                }
            }
            if (least == 0)
                break;
            drop(s, a, least);
        }
}

void fit_free(struct fit_surface *s)
{
    free(s->values);
    s->values = NULL;
}
