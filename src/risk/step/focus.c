/* SPDX-License-Identifier: Apache-2.0 */
/*
 * focus.c - shares of each pass that vary with the pass, by laws of their own or not at all, and tables of equally
 * likely values of the own laws' part. See focus.h.
 */
#include "risk/step/focus.h"

#include <math.h>

#include "base/check.h"
#include "base/stat/law_sum.h"
#include "base/stat/maximum.h"

#define CELLS 16384u /* of the law of a sum */

/* The own laws' part of one pass. */
struct own_part {
    double share;               /* at the median */
    double mean, variance;      /* of the body */
    double operators;           /* variance V of the operators before the slowest counts */
    uint32_t n_slow;            /* signatures with slow runs: */
    double *each, *runs, *slow; /* what one adds; how many runs there are, and the share of slow ones */
};

static void add_law(struct own_part *o, const struct maq_signature *s, const struct maq_kernel_law *law, double c,
                    double n, double group)
{
    struct maq_law body = maq_kernel_law_body(law);
    double m = maq_law_mean(&body), v = c * c * maq_law_variance(&body) / n;
    v *= 1 + law->slow_share * (law->slow_ratio * law->slow_ratio - 1); /* what is slow varies as much in relation */
    o->share += c;
    o->mean += c * m;
    if (s->is_coll)
        o->variance += v;
    else
        o->operators += v;
    if (law->slow_share > 0 && law->slow_ratio > 1) {
        double runs = ceil(n - 1e-9); /* whole ones, of the same time together */
        o->each[o->n_slow] = c / runs * m * (law->slow_ratio - 1);
        o->runs[o->n_slow] = runs * (s->is_coll ? 1 : group);
        o->slow[o->n_slow++] = law->slow_share;
    }
}

/* The most slow runs of n there are, but for a probability of 1e-15 or less (Bernstein's bound). */
static double most_slow(double n, double q)
{
    return fmin(n, n * q + 25 + 9 * sqrt(n * q));
}

/* Equally likely values of the part, ascending. false: out of memory. */
static bool make_table(const double **out, const struct own_part *o, const struct maq_law *body,
                       struct maq_arena *arena)
{
    double *table = MAQ_ARENA_NEW(arena, double, MAQ_STEP_TABLE);
    *out = table;
    for (uint32_t i = 0; table && o->n_slow == 0 && i < MAQ_STEP_TABLE; i++)
        table[i] = maq_law_quantile(body, (i + 0.5) / MAQ_STEP_TABLE);
    if (!table || o->n_slow == 0)
        return table != NULL;
    struct maq_arena_mark mark = maq_arena_mark(arena);
    double low = maq_law_quantile(body, 1e-18), high = maq_law_upper(body, 1e-18);
    struct maq_law_sum sum;
    struct maq_grid grid;
    for (uint32_t k = 0; k < o->n_slow; k++)
        high += o->each[k] * most_slow(o->runs[k], o->slow[k]);
    if (!maq_law_sum_init(&sum, (high - low) / (CELLS - 8), CELLS, arena) || !maq_law_sum_add(&sum, body, 1, 1))
        return false;
    for (uint32_t k = 0; k < o->n_slow; k++)
        maq_law_sum_add_chances(&sum, o->each[k], o->slow[k], (uint32_t)fmin(o->runs[k], 4e9));
    if (!maq_law_sum_finish(&grid, &sum, low - 4 * sum.h, arena))
        return false;
    maq_grid_quantiles(table, MAQ_STEP_TABLE, &grid);
    maq_arena_reset(arena, mark);
    return true;
}

/* One transfer or reduction of a law of its own. */
static bool one_table(const double **out, const struct maq_kernel_law *law, struct maq_arena *arena)
{
    struct maq_law body = maq_kernel_law_body(law);
    double each = maq_law_mean(&body) * (law->slow_ratio - 1), rate = law->slow_share, once = 1;
    struct own_part one = {.n_slow = rate > 0 && each > 0, .each = &each, .runs = &once, .slow = &rate};
    return make_table(out, &one, &body, arena);
}

struct maker {
    const struct maq_signatures *signatures;
    const struct maq_variation *v;
    const struct maq_spread *spread;
    const struct maq_step_model *m;
    struct maq_arena *arena;
    struct own_part part;
    double largest_mean, largest_variance; /* of as many normal variables as a lockstep group has devices */
};

static enum maq_status make_pass(double *with_pass, double *own, const double **table, struct maker *k, uint32_t pass,
                                 uint32_t stage)
{
    struct own_part *o = &k->part;
    double keeps = k->spread->stage[stage];
    *o = (struct own_part){.each = o->each, .runs = o->runs, .slow = o->slow};
    for (uint32_t i = 0; i < k->signatures->n; i++) {
        const struct maq_signature *s = &k->signatures->at[i];
        double c = s->of_pass[pass] * k->spread->signature[i] * keeps;
        if (c > 0 && s->law >= 0)
            add_law(o, s, &k->v->kernel[s->law], c, s->runs[pass], k->m->lockstep);
        else
            *with_pass += c;
    }
    *own = o->share;
    if (!(o->share > 0))
        return MAQ_OK;
    o->mean += k->largest_mean * sqrt(k->signatures->meetings[pass] * o->operators);
    o->variance += k->largest_variance * o->operators;
    struct maq_law sum = o->variance > 0 ? maq_law_lognormal_of_mean_cv(o->mean, sqrt(o->variance) / o->mean)
                                         : maq_law_constant(o->mean);
    return make_table(table, o, &sum, k->arena) ? MAQ_OK : MAQ_NO_MEMORY;
}

/* Transfers, the norm, and the exposed reduction; the last by the law of the collective that is most of it. */
static enum maq_status make_joins(struct maq_step_focus *out, double *rest, struct maker *k)
{
    double most = 0;
    const struct maq_kernel_law *hop_law = NULL, *rest_law = NULL;
    for (uint32_t i = 0; i < k->signatures->n; i++) {
        const struct maq_signature *s = &k->signatures->at[i];
        double keeps = k->spread->signature[i], of_rest = 0;
        out->transfer = s->transfers ? keeps : out->transfer;
        out->norm = s->joins ? keeps : out->norm;
        const struct maq_kernel_law *law = s->law >= 0 ? &k->v->kernel[s->law] : NULL;
        hop_law = s->transfers ? law : hop_law;
        for (uint32_t st = 0; st < k->m->stages; st++) {
            rest[st] += s->of_rest[st] * keeps * k->spread->stage[st];
            of_rest += s->of_rest[st] * k->m->rest_ns[st];
        }
        if (of_rest > most) {
            most = of_rest;
            rest_law = law;
        }
    }
    return (!hop_law || one_table(&out->hop_table, hop_law, k->arena)) &&
                   (!rest_law || one_table(&out->rest_table, rest_law, k->arena))
               ? MAQ_OK
               : MAQ_NO_MEMORY;
}

enum maq_status maq_step_focus_make(struct maq_step_focus *out, const struct maq_signatures *signatures,
                                    const struct maq_variation *v, const struct maq_spread *spread,
                                    const struct maq_step_model *m, struct maq_arena *arena)
{
    struct maker k = {.signatures = signatures, .v = v, .spread = spread, .m = m, .arena = arena};
    double *with_pass = MAQ_ARENA_NEW(arena, double, m->n_passes), *own = MAQ_ARENA_NEW(arena, double, m->n_passes),
           *rest = MAQ_ARENA_NEW(arena, double, m->stages);
    const double **table = MAQ_ARENA_NEW(arena, const double *, m->n_passes);
    uint32_t *stage = MAQ_ARENA_NEW(arena, uint32_t, m->n_passes);
    k.part.each = MAQ_ARENA_NEW(arena, double, signatures->n);
    k.part.runs = MAQ_ARENA_NEW(arena, double, signatures->n);
    k.part.slow = MAQ_ARENA_NEW(arena, double, signatures->n);
    if (!with_pass || !own || !rest || !table || !stage || !k.part.each || !k.part.runs || !k.part.slow)
        return MAQ_NO_MEMORY;
    if (m->lockstep > 1) {
        struct maq_law normal = maq_law_normal(0, 1);
        maq_max_moments(&k.largest_mean, &k.largest_variance, &normal, m->lockstep);
    } else {
        k.largest_variance = 1;
    }
    *out = (struct maq_step_focus){.with_pass = with_pass, .own = own, .own_table = table, .rest = rest};
    for (uint32_t id = 0; id < m->n_tasks; id++)
        stage[m->tasks[id].pass] = m->tasks[id].stage;
    for (uint32_t p = 0; p < m->n_passes; p++)
        MAQ_TRY(make_pass(&with_pass[p], &own[p], &table[p], &k, p, stage[p]));
    return make_joins(out, rest, &k);
}
