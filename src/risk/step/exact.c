/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exact.c - tables the distribution of the passes of a stage times its lasting factor, by quadrature over the slowest
 * node and GPU of the lockstep group. See exact.h.
 */
#include "risk/step/exact.h"

#include <math.h>

#include "base/stat/maximum.h"

#define LEVELS 700u   /* tabled values of the end */
#define EVEN 80u      /* of the factors: the lower 90 % */
#define TABLE 400u    /* points of a node's law */
#define Z_REACH 8.0   /* deviations of the node's factor */
#define Z_COARSE 0.25 /* steps of its deviate at the most, and at the least */
#define Z_FINE 0.03125

/* --- the lasting factor ------------------------------------------------------------------------------------------------- */

/* The law of one member, of which the group has n: GPUs, nodes that differ by themselves, or nodes with GPUs in them. */
struct members {
    double n;
    const struct maq_law *law; /* NULL: a table */
    double low, step;          /* of ln x */
    double sf[TABLE];          /* P(node > x) */
};

/* Where a member exceeds x with probability q: linear in ln sf between points. */
static double member_upper(const struct members *g, double q)
{
    if (g->law)
        return maq_law_upper(g->law, q);
    uint32_t i = 0;
    while (i + 2 < TABLE && g->sf[i + 1] > q)
        i++;
    double a = g->sf[i], b = g->sf[i + 1];
    double part = b > 0 && a > b ? log(a / q) / log(a / b) : 0;
    return exp(g->low + g->step * (i + fmin(fmax(part, 0), 1)));
}

/* Where the slowest of the group exceeds x with probability q. */
static double group_upper(const struct members *g, double q)
{
    return member_upper(g, -expm1(log1p(-q) / g->n));
}

/* Nodes with `each` GPUs in them. */
static void table_node(struct members *g, const struct maq_law *gpu, double gpu_sigma, double node_sigma, double each)
{
    const double outside = 1e-14;
    double fine = fmin(fmax(Z_COARSE * fmin(1, gpu_sigma / node_sigma), Z_FINE), Z_COARSE), sum = 0;
    int reach = (int)ceil(Z_REACH / fine);
    double high = log(maq_law_upper(gpu, outside / each)) + Z_REACH * node_sigma;
    g->law = NULL;
    g->low = log(maq_max_quantile(gpu, each, outside)) - Z_REACH * node_sigma;
    g->step = (high - g->low) / (TABLE - 1);
    for (int k = -reach; k <= reach; k++)
        sum += exp(-0.5 * fine * k * fine * k);
    for (uint32_t i = 0; i < TABLE; i++) {
        double x = g->low + g->step * i;
        g->sf[i] = 0;
        for (int k = -reach; k <= reach; k++)
            g->sf[i] += exp(-0.5 * fine * k * fine * k) / sum * maq_max_sf(gpu, each, exp(x - node_sigma * fine * k));
    }
}

/* Values of G with weights: even slices of the lower 90 %, then ever finer ones towards the slow end. */
static void find_factors(struct maq_step_exact *e, const struct maq_step_model *m, const struct maq_variation *v)
{
    struct maq_law part[2] = {
        maq_law_lognormal(1, fmax(maq_lognormal_sigma(v->gpu_cv), 1e-12)),
        maq_law_lognormal(v->gpu_outlier_ratio, fmax(maq_lognormal_sigma(v->gpu_outlier_cv), 1e-12))};
    double share[2] = {1 - v->gpu_outlier_share, v->gpu_outlier_share}, sigma = maq_lognormal_sigma(v->node_cv),
           edge = 1;
    bool gpus = v->gpu_cv > 0 || v->gpu_outlier_share > 0;
    struct maq_law gpu = v->gpu_outlier_share > 0 ? maq_law_mixture(part, share, 2) : part[0],
                   node = maq_law_lognormal(1, sigma);
    struct members g = {.n = gpus && !(sigma > 0) ? m->lockstep : m->nodes, .law = gpus ? &gpu : &node};
    e->factors = 1;
    e->value[0] = e->weight[0] = 1;
    if (!gpus && !(sigma > 0))
        return;
    if (gpus && sigma > 0)
        table_node(&g, &gpu, maq_lognormal_sigma(v->gpu_cv), sigma, m->lockstep / m->nodes);
    for (uint32_t i = 0; i < EVEN; i++) {
        e->value[i] = group_upper(&g, 1 - 0.9 * (i + 0.5) / EVEN);
        e->weight[i] = 0.9 / EVEN;
        edge -= 0.9 / EVEN;
    }
    for (uint32_t i = EVEN; i < MAQ_EXACT_FACTORS; i++) { /* each a fifth of what is left */
        double slice = i + 1 == MAQ_EXACT_FACTORS ? edge : 0.2 * edge;
        e->value[i] = group_upper(&g, edge - 0.5 * slice);
        e->weight[i] = slice;
        edge -= slice;
    }
    e->factors = MAQ_EXACT_FACTORS;
    for (uint32_t i = 0; i < e->factors; i++)
        e->value[i] = maq_step_lasting(m, 0, e->value[i]);
}

bool maq_step_exact_find(struct maq_step_exact *e, const struct maq_step_model *m, const struct maq_variation *v,
                         struct maq_arena *arena)
{
    bool varies = v->pass_cv > 0 || v->microbatch_cv > 0 || v->gpu_cv > 0 || v->gpu_outlier_share > 0 || v->node_cv > 0;
    if (m->stages != 1 || m->tied_ns > 0 || !varies || !maq_step_passes_find(&e->passes, m, v, arena))
        return false;
    find_factors(e, m, v);
    return true;
}

/* --- ends ------------------------------------------------------------------------------------------------------------- */

/* The range of passes x factor. */
static void find_range(double *low, double *high, const struct maq_step_exact *e, double slow)
{
    const struct maq_step_passes *p = &e->passes;
    double fast = e->value[0], late = e->value[e->factors - 1], begin = 0, end = 0; /* ascending */
    for (uint32_t k = 0; k < p->firsts; k++) {
        double first = fmax(slow * fast * p->first[k].first_ns, p->ready_ns) + slow * fast * p->first[k].after_ns,
               last = fmax(slow * late * p->first[k].first_ns, p->ready_ns) + slow * late * p->first[k].after_ns;
        begin = k == 0 ? fmin(first, last) : fmin(begin, fmin(first, last));
        end = k == 0 ? fmax(first, last) : fmax(end, fmax(first, last));
    }
    *low = (double)p->sum.first * p->sum.h * slow * fast + begin;
    *high = (double)(p->sum.first + p->sum.n) * p->sum.h * slow * late + end;
}

/* What follows the passes is its median and a part that varies: three points. */
static double above_with_rest(const double *sf, double i, double rest, double sigma, double step)
{
    double sum = 0;
    for (int k = 0; k < MAQ_THREE_POINTS; k++) {
        double at = i - rest * expm1(sigma * maq_three_points[k]) / step, cell = floor(at);
        uint32_t j = at < 0 ? 0 : (uint32_t)fmin(cell, LEVELS - 1);
        double part = at < 0 || j + 1 >= LEVELS ? 0 : at - cell;
        sum += maq_three_weights[k] * (sf[j] + part * (sf[j + (part > 0)] - sf[j]));
    }
    return sum;
}

bool maq_step_exact_table(struct maq_exact_table *out, const struct maq_step_exact *e, double slow,
                          struct maq_arena *arena)
{
    double low, high, *above = MAQ_ARENA_NEW(arena, double, LEVELS);
    if (!above)
        return false;
    find_range(&low, &high, e, slow);
    double step = (high - low) / (LEVELS - 1);
    for (uint32_t k = 0; k < e->factors; k++)
        for (uint32_t i = 0; i < LEVELS; i++)
            above[i] += e->weight[k] * maq_step_passes_above(&e->passes, slow * e->value[k], low + step * i);
    for (uint32_t i = 0; i < LEVELS; i++)
        above[i] = fmin(above[i], 1);
    *out = (struct maq_exact_table){low, step, above};
    return true;
}

bool maq_step_exact_ends(struct maq_end_law *out, const struct maq_exact_table *t, double rest_ns, double rest_sigma,
                         double count, struct maq_arena *arena)
{
    double *x = MAQ_ARENA_NEW(arena, double, LEVELS), *sf = MAQ_ARENA_NEW(arena, double, LEVELS);
    if (!x || !sf)
        return false;
    for (uint32_t i = 0; i < LEVELS; i++) {
        sf[i] =
            rest_ns > 0 && rest_sigma > 0 ? above_with_rest(t->above, i, rest_ns, rest_sigma, t->step) : t->above[i];
        x[i] = t->low + t->step * i + rest_ns;
    }
    *out = (struct maq_end_law){.count = count, .n = LEVELS, .x = x, .sf = sf};
    return true;
}
