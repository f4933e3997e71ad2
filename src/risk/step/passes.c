/* SPDX-License-Identifier: Apache-2.0 */
/*
 * passes.c - sorts the passes of a step by duration and microbatch, and convolves their laws on a grid, by microbatch
 * where work is uneven. See passes.h.
 */
#include "risk/step/passes.h"

#include <math.h>
#include <string.h>

#include "base/stat/maximum.h"

#define KINDS 8u        /* durations of passes, and kinds of microbatches */
#define POINTS 8u       /* of a first pass that waits */
#define PER_SIGMA 32.0  /* cells of the sum's standard deviation, at least */
#define PER_PART 8.0    /* and of that of one part: a grid adds h^2 / 6 to the variance of each */
#define REACH 12.0      /* deviations of the sum around its mean */
#define LEAST_CV 1e-6   /* of a pass, for a grid to have a width: a step of an hour is off by 4 ms */
#define LAST_FACTOR 8.0 /* deviations of the work of a microbatch that a grid has room for: base/stat/law_sum.c */

const double maq_three_points[MAQ_THREE_POINTS] = {-1.7320508075688773, 0, 1.7320508075688773};
const double maq_three_weights[MAQ_THREE_POINTS] = {1.0 / 6, 2.0 / 3, 1.0 / 6};

/* How many passes of each duration. */
struct counts {
    uint32_t of[KINDS];
};

/* The passes of a step: durations, and which microbatches have how many of each. */
struct sorted {
    uint32_t n_durs, n_kinds;
    double dur[KINDS];
    struct counts kind[KINDS];         /* [n_kinds] of a microbatch */
    uint32_t times[KINDS];             /* [n_kinds] how many there are */
    struct counts rest;                /* of the microbatch whose first pass waits */
    const struct maq_step_task *waits; /* NULL: none */
};

/* Which of the durations; KINDS: more than there is room for. */
static uint32_t dur_of(struct sorted *s, double dur)
{
    uint32_t k = 0;
    while (k < s->n_durs && (s->dur[k] < dur || s->dur[k] > dur))
        k++;
    if (k == s->n_durs && k < KINDS)
        s->dur[s->n_durs++] = dur;
    return k;
}

static bool add_kind(struct sorted *s, const struct counts *c)
{
    uint32_t k = 0;
    while (k < s->n_kinds && memcmp(&s->kind[k], c, sizeof *c) != 0)
        k++;
    if (k == KINDS)
        return false;
    if (k == s->n_kinds)
        s->kind[s->n_kinds++] = *c;
    s->times[k]++;
    return true;
}

/* Where work does not vary all passes are one microbatch. */
static bool sort_passes(struct sorted *s, const struct maq_step_model *m, bool uneven, struct maq_arena *arena)
{
    uint32_t batches = uneven ? m->microbatches : 1;
    struct counts *of = MAQ_ARENA_NEW(arena, struct counts, batches);
    *s = (struct sorted){0};
    if (!of)
        return false;
    for (uint32_t id = 0; id < m->n_tasks; id++) {
        const struct maq_step_task *t = &m->tasks[id];
        if (t->ready_ns > 0 && t->previous != MAQ_RISK_NO_TASK)
            return false;
        if (t->ready_ns > 0)
            s->waits = t;
        if (t->ready_ns > 0 || !(t->dur_ns > 0))
            continue;
        uint32_t k = dur_of(s, t->dur_ns);
        if (k == KINDS)
            return false;
        of[uneven ? t->microbatch : 0].of[k]++;
    }
    for (uint32_t b = 0; b < batches; b++)
        if (uneven && s->waits && b == s->waits->microbatch)
            s->rest = of[b];
        else if (!add_kind(s, &of[b]))
            return false;
    return s->n_durs > 0;
}

/* Law of the sum of so many passes. */
static bool sum_passes(struct maq_grid *out, const struct sorted *s, const struct counts *c, double sigma, double group,
                       struct maq_arena *arena)
{
    double variance = 0, mean = 0, above = 0, h = (double)INFINITY;
    struct maq_law law[KINDS];
    struct maq_law_sum sum;
    for (uint32_t k = 0; k < s->n_durs; k++) {
        double own, var;
        if (c->of[k] == 0)
            continue;
        law[k] = maq_law_lognormal(s->dur[k], sigma);
        maq_max_moments(&own, &var, &law[k], group);
        mean += c->of[k] * own;
        variance += c->of[k] * var;
        h = fmin(h, sqrt(var) / PER_PART);
        above = fmax(above, maq_law_upper(&law[k], MAQ_SUM_OUTSIDE / group) - own);
    }
    double sd = sqrt(variance), low = fmax(0, mean - REACH * sd), high = mean + REACH * sd + above;
    h = fmax(fmin(h, sd / PER_SIGMA), (high - low) / (MAQ_SUM_MOST - 8));
    if (!(sd > 0) || !maq_law_sum_init(&sum, h, (high - low) / h, arena))
        return false;
    for (uint32_t k = 0; k < s->n_durs; k++)
        if (c->of[k] > 0 && !maq_law_sum_add(&sum, &law[k], group, c->of[k]))
            return false;
    return maq_law_sum_finish(out, &sum, low, arena);
}

static void moments(double *mean, double *variance, const struct maq_grid *g)
{
    double square = 0;
    *mean = 0;
    for (uint32_t i = 0; i < g->n; i++)
        *mean += g->mass[i] * ((double)(g->first + i) * g->h);
    for (uint32_t i = 0; i < g->n; i++)
        square += g->mass[i] * ((double)(g->first + i) * g->h - *mean) * ((double)(g->first + i) * g->h - *mean);
    *variance = square;
}

/* Law of the sum of all microbatches, each with its work. */
static bool sum_batches(struct maq_grid *out, const struct sorted *s, double pass_sigma, double work_sigma,
                        double group, double *rest_ns, struct maq_arena *arena)
{
    struct maq_grid part[KINDS + 1];
    double mean = 0, variance = 0, above = 0, h = (double)INFINITY, own, var, square = work_sigma * work_sigma;
    struct maq_law_sum sum;
    *rest_ns = 0;
    for (uint32_t k = 0; k < s->n_kinds; k++) {
        if (!sum_passes(&part[k], s, &s->kind[k], pass_sigma, group, arena))
            return false;
        moments(&own, &var, &part[k]);
        double high = (double)(part[k].first + part[k].n) * part[k].h * exp(LAST_FACTOR * work_sigma);
        var = exp(2 * square) * (var + own * own) - exp(square) * own * own; /* of the product */
        own *= exp(0.5 * square);
        mean += s->times[k] * own;
        variance += s->times[k] * var;
        h = fmin(h, sqrt(var) / PER_PART);
        above = fmax(above, high - own);
    }
    if (s->waits) {
        if (!sum_passes(&part[KINDS], s, &s->rest, pass_sigma, group, arena))
            return false;
        moments(rest_ns, &var, &part[KINDS]);
        mean += *rest_ns;
        variance += var;
        h = s->n_kinds > 0 ? h : sqrt(var) / PER_PART;
    }
    double sd = sqrt(variance), low = fmax(0, mean - REACH * sd), high = mean + REACH * sd + above;
    h = fmax(fmin(h, sd / PER_SIGMA), (high - low) / (MAQ_SUM_MOST - 8));
    if (!maq_law_sum_init(&sum, h, (high - low) / h, arena))
        return false;
    for (uint32_t k = 0; k < s->n_kinds; k++)
        if (!maq_law_sum_add_grid(&sum, &part[k], work_sigma, s->times[k]))
            return false;
    if (s->waits && !maq_law_sum_add_grid(&sum, &part[KINDS], 0, 1))
        return false;
    return maq_law_sum_finish(out, &sum, low, arena);
}

/* The first pass where it waits: equally likely values of its noise, times the work of its microbatch. */
static void find_firsts(struct maq_step_passes *p, const struct maq_step_task *waits, double pass_sigma,
                        double work_sigma, double group, double rest_ns)
{
    struct maq_law law = maq_law_lognormal(waits->dur_ns, pass_sigma);
    p->ready_ns = waits->ready_ns;
    for (uint32_t i = 0; i < POINTS; i++)
        for (uint32_t w = 0; w < (work_sigma > 0 ? MAQ_THREE_POINTS : 1); w++) {
            double work = work_sigma > 0 ? exp(work_sigma * maq_three_points[w]) : 1;
            p->first[p->firsts].first_ns = work * maq_max_quantile(&law, group, (i + 0.5) / POINTS);
            p->first[p->firsts].after_ns = (work - 1) * rest_ns;
            p->first[p->firsts].weight = (work_sigma > 0 ? maq_three_weights[w] : 1) / POINTS;
            p->firsts++;
        }
}

bool maq_step_passes_find(struct maq_step_passes *p, const struct maq_step_model *m, const struct maq_variation *v,
                          struct maq_arena *arena)
{
    struct sorted s;
    double cv = fmax(v->pass_cv, LEAST_CV), pass_sigma = maq_lognormal_sigma(cv),
           work_sigma = maq_lognormal_sigma(v->microbatch_cv), rest_ns = 0;
    *p = (struct maq_step_passes){.firsts = 0};
    if (!sort_passes(&s, m, work_sigma > 0, arena))
        return false;
    if (work_sigma > 0 ? !sum_batches(&p->sum, &s, pass_sigma, work_sigma, m->lockstep, &rest_ns, arena)
                       : !sum_passes(&p->sum, &s, &s.kind[0], pass_sigma, m->lockstep, arena))
        return false;
    p->above = MAQ_ARENA_NEW(arena, double, p->sum.n + 1);
    if (!p->above)
        return false;
    for (uint32_t i = p->sum.n; i-- > 0;)
        p->above[i] = p->above[i + 1] + p->sum.mass[i];
    for (uint32_t i = 0; i < p->sum.n; i++) /* half of a cell's mass is above its middle */
        p->above[i] -= 0.5 * p->sum.mass[i];
    if (s.waits)
        find_firsts(p, s.waits, pass_sigma, work_sigma, m->lockstep, rest_ns);
    return true;
}

/* Linear inside a cell. */
static inline double sum_above(const struct maq_step_passes *p, double at)
{
    if (at < 0)
        return 1;
    if (at >= p->sum.n - 1.0)
        return 0;
    uint32_t cell = (uint32_t)at;
    return p->above[cell] + (at - cell) * (p->above[cell + 1] - p->above[cell]);
}

double maq_step_passes_above(const struct maq_step_passes *p, double factor, double x_ns)
{
    double per_cell = 1 / (factor * p->sum.h), first = (double)p->sum.first, sum = 0;
    if (p->firsts == 0)
        return sum_above(p, x_ns * per_cell - first);
    for (uint32_t k = 0; k < p->firsts; k++) {
        double begun = fmax(factor * p->first[k].first_ns, p->ready_ns) + factor * p->first[k].after_ns;
        sum += p->first[k].weight * sum_above(p, (x_ns - begun) * per_cell - first);
    }
    return sum;
}
