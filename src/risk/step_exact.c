/*
 * step_exact.c - the law of a replica's end where no pipeline needs sampling: one stage, passes one after another.
 *
 *   end = G x (sum of d_k E_k) + rest
 *
 * with G the lasting factor of the lockstep group, E_k the slowest pass of the group, independent from pass to pass, and d_k the passes'
 * times when nothing varies. The law of the sum is found on a grid by a Fourier transform (sum.h). G is a quadrature over its quantiles,
 * finer towards its slow end. What varies little or once is a few points: nodes and what of the reduction nothing hides three (Gauss
 * and Hermite's, exact for moments up to the fifth), a first pass that does not end before its parameters are there eight. Refused
 * (false) where microbatches vary and where a group spans nodes.
 */
#include <math.h>

#include "base/check.h"
#include "risk/extreme.h"
#include "risk/special.h"
#include "risk/step_law.h"
#include "risk/sum.h"

#define PER_SIGMA 32.0 /* cells of the sum's standard deviation, at least */
#define PER_PASS 8.0   /* and of that of one pass: a grid adds h^2 / 6 to the variance of each */
#define REACH 12.0     /* deviations of the sum around its mean */
#define FACTORS 160u   /* values of G */
#define FIRSTS 8u
#define LEVELS 700u /* tabled values of the end */

/* How many tasks have which duration: at most a few kinds. */
struct kinds {
    uint32_t n, count[8];
    double dur[8];
};

/* Passes by their duration, but a first one that waits for parameters. false: others wait too. */
static bool sort_tasks(struct kinds *out, const struct maq_step_task **waits, const struct maq_step_model *m)
{
    *out = (struct kinds){0};
    *waits = NULL;
    for (uint32_t id = 0; id < m->n_tasks; id++) {
        const struct maq_step_task *t = &m->tasks[id];
        uint32_t k = 0;
        if (t->ready_ns > 0 && t->previous != MAQ_RISK_NO_TASK)
            return false;
        if (t->ready_ns > 0)
            *waits = t;
        if (t->ready_ns > 0 || !(t->dur_ns > 0))
            continue;
        while (k < out->n && (out->dur[k] < t->dur_ns || out->dur[k] > t->dur_ns))
            k++;
        if (k == MAQ_COUNT(out->dur))
            return false;
        if (k == out->n)
            out->dur[out->n++] = t->dur_ns;
        out->count[k]++;
    }
    return out->n > 0;
}

/* Law of the sum of all passes. */
static bool sum_passes(struct maq_grid *out, const struct kinds *kinds, const struct maq_step_model *m, double pass_cv,
                       struct maq_arena *arena)
{
    double sigma = sqrt(log1p(pass_cv * pass_cv)), variance = 0, mean = 0, above = 0, h = (double)INFINITY;
    struct maq_law law[MAQ_COUNT(kinds->dur)];
    struct maq_sum sum;
    for (uint32_t k = 0; k < kinds->n; k++) {
        double own, var;
        law[k] = maq_law_lognormal(kinds->dur[k], sigma);
        maq_max_moments(&own, &var, &law[k], m->lockstep);
        mean += kinds->count[k] * own;
        variance += kinds->count[k] * var;
        h = fmin(h, sqrt(var) / PER_PASS);
        above = fmax(above, maq_law_upper(&law[k], MAQ_SUM_OUTSIDE / m->lockstep) - own);
    }
    double sd = sqrt(variance), low = fmax(0, mean - REACH * sd), high = mean + REACH * sd + above;
    h = fmax(fmin(h, sd / PER_SIGMA), (high - low) / (MAQ_SUM_MOST - 8));
    if (!maq_sum_init(&sum, h, (high - low) / h, arena))
        return false;
    for (uint32_t k = 0; k < kinds->n; k++)
        if (!maq_sum_add(&sum, &law[k], m->lockstep, kinds->count[k]))
            return false;
    return maq_sum_finish(out, &sum, low, arena);
}

/* Values of the lasting factor with weights: halves of probability, then ever finer ones towards the slow end. */
static uint32_t spread_factor(double *value, double *weight, const struct maq_law *gpu, double group)
{
    enum { EVEN = 80 };
    uint32_t n = 0;
    double edge = 1;
    for (uint32_t i = 0; i < EVEN; i++, n++) { /* the lower 90 % */
        value[n] = maq_max_quantile(gpu, group, 0.9 * (i + 0.5) / EVEN);
        weight[n] = 0.9 / EVEN;
    }
    edge = 0.1;
    for (; n < FACTORS; n++) { /* each a fifth of what is left */
        double part = n + 1 == FACTORS ? edge : 0.2 * edge;
        value[n] = maq_law_upper(gpu, -expm1(log1p(-(edge - 0.5 * part)) / group));
        weight[n] = part;
        edge -= part;
    }
    return n;
}

/* P(sum > x), x = (first + at) h: the grid's, linear inside a cell. */
static inline double above(const struct maq_grid *g, const double *rest, double at)
{
    if (at < 0)
        return 1;
    if (at >= g->n - 1.0)
        return 0;
    uint32_t cell = (uint32_t)at;
    return rest[cell] + (at - cell) * (rest[cell + 1] - rest[cell]);
}

/* Gauss and Hermite's three points for a normal variable. */
static const double three[3] = {-1.7320508075688773, 0, 1.7320508075688773};
static const double three_weight[3] = {1.0 / 6, 2.0 / 3, 1.0 / 6};

static double sigma_of(double cv)
{
    return sqrt(log1p(cv * cv));
}

/* Values of GPU times node with weights. */
static uint32_t find_factors(double *value, double *weight, const struct maq_step_model *m,
                             const struct maq_variation *v)
{
    struct maq_law part[2] = {maq_law_lognormal(1, fmax(sigma_of(v->gpu_cv), 1e-12)),
                              maq_law_lognormal(v->gpu_outlier_ratio, fmax(sigma_of(v->gpu_outlier_cv), 1e-12))};
    double share[2] = {1 - v->gpu_outlier_share, v->gpu_outlier_share}, sigma = sigma_of(v->node_cv);
    struct maq_law gpu = v->gpu_outlier_share > 0 ? maq_law_mixture(part, share, 2) : part[0];
    uint32_t n = 1;
    value[0] = weight[0] = 1;
    if (v->gpu_cv > 0 || v->gpu_outlier_share > 0)
        n = spread_factor(value, weight, &gpu, m->lockstep);
    if (sigma <= 0)
        return n;
    for (uint32_t i = n; i-- > 0;) { /* from the end: the three go where one was */
        double f = value[i], w = weight[i];
        for (uint32_t k = 0; k < 3; k++) {
            value[3 * i + k] = f * exp(sigma * three[k]);
            weight[3 * i + k] = w * three_weight[k];
        }
    }
    return 3 * n;
}

/* The passes of a replica: those on the grid, and the one that waits. */
struct passes {
    struct maq_grid sum;
    double *rest; /* [sum.n + 1] probability above a cell's middle */
    double first_ns[FIRSTS], ready_ns;
    uint32_t firsts; /* 0: none waits */
};

/* Adds weight x P(passes > x) for a factor, at LEVELS values of x. */
static void add_passes(double *sf, const double *x, const struct passes *p, double factor, double weight)
{
    double per_cell = 1 / (factor * p->sum.h), first = (double)p->sum.first;
    for (uint32_t i = 0; p->firsts == 0 && i < LEVELS; i++)
        sf[i] += weight * above(&p->sum, p->rest, x[i] * per_cell - first);
    for (uint32_t k = 0; k < p->firsts; k++) {
        double begun = fmax(factor * p->first_ns[k], p->ready_ns);
        for (uint32_t i = 0; i < LEVELS; i++)
            sf[i] += weight / p->firsts * above(&p->sum, p->rest, (x[i] - begun) * per_cell - first);
    }
}

/* P(end > x) at LEVELS values of x: passes times factor, then what follows the passes. */
static void table_ends(double *x, double *sf, double *spare, const struct passes *p, const double *value,
                       const double *weight, uint32_t factors, double after, double after_sigma)
{
    double slow = value[0], fast = value[0], head[2] = {0};
    for (uint32_t k = 0; k < factors; k++) {
        slow = fmax(slow, value[k]);
        fast = fmin(fast, value[k]);
    }
    if (p->firsts > 0) {
        head[0] = fmax(fast * p->first_ns[0], p->ready_ns);
        head[1] = fmax(slow * p->first_ns[p->firsts - 1], p->ready_ns);
    }
    double low = (double)p->sum.first * p->sum.h * fast + head[0];
    double high = (double)(p->sum.first + p->sum.n) * p->sum.h * slow + head[1], step = (high - low) / (LEVELS - 1);
    for (uint32_t i = 0; i < LEVELS; i++) {
        x[i] = low + step * i;
        spare[i] = 0;
    }
    for (uint32_t k = 0; k < factors; k++)
        add_passes(spare, x, p, value[k], weight[k]);
    for (uint32_t i = 0; i < LEVELS; i++)
        spare[i] = fmin(spare[i], 1);
    for (uint32_t i = 0; i < LEVELS; i++) {
        sf[i] = after_sigma > 0 ? 0 : spare[i];
        for (int k = 0; after_sigma > 0 && k < 3; k++) { /* after = median + a part that varies */
            double at = i - after * expm1(after_sigma * three[k]) / step, cell = floor(at);
            uint32_t j = at < 0 ? 0 : (uint32_t)fmin(cell, LEVELS - 1);
            double part = at < 0 || j + 1 >= LEVELS ? 0 : at - cell;
            sf[i] += three_weight[k] * (spare[j] + part * (spare[j + (part > 0)] - spare[j]));
        }
        x[i] += after;
    }
}

static bool find_passes(struct passes *p, const struct maq_step_model *m, const struct maq_variation *v,
                        struct maq_arena *arena)
{
    struct kinds kinds;
    const struct maq_step_task *waits;
    if (!sort_tasks(&kinds, &waits, m) || !sum_passes(&p->sum, &kinds, m, v->pass_cv, arena))
        return false;
    p->rest = MAQ_ARENA_NEW(arena, double, p->sum.n + 1);
    if (!p->rest)
        return false;
    for (uint32_t i = p->sum.n; i-- > 0;)
        p->rest[i] = p->rest[i + 1] + p->sum.mass[i];
    for (uint32_t i = 0; i < p->sum.n; i++) /* half of a cell's mass is above its middle */
        p->rest[i] -= 0.5 * p->sum.mass[i];
    if (!waits)
        return true;
    struct maq_law law = maq_law_lognormal(waits->dur_ns, sigma_of(v->pass_cv));
    p->ready_ns = waits->ready_ns;
    for (p->firsts = 0; p->firsts < FIRSTS; p->firsts++)
        p->first_ns[p->firsts] = maq_max_quantile(&law, m->lockstep, (p->firsts + 0.5) / FIRSTS);
    return true;
}

bool maq_step_exact(struct maq_end_law *out, const struct maq_step_model *m, const struct maq_variation *v,
                    double count, struct maq_arena *arena)
{
    struct passes p = {.firsts = 0};
    if (m->stages != 1 || m->nodes != 1 || v->microbatch_cv > 0 || v->pass_cv <= 0 || m->tied_ns > 0 ||
        !find_passes(&p, m, v, arena))
        return false;
    double *value = MAQ_ARENA_NEW(arena, double, 3 * FACTORS), *weight = MAQ_ARENA_NEW(arena, double, 3 * FACTORS),
           *x = MAQ_ARENA_NEW(arena, double, LEVELS), *sf = MAQ_ARENA_NEW(arena, double, LEVELS),
           *spare = MAQ_ARENA_NEW(arena, double, LEVELS);
    if (!value || !weight || !x || !sf || !spare)
        return false;
    uint32_t factors = find_factors(value, weight, m, v);
    double sigma = m->rest_ns[0] > 0 ? sigma_of(v->communication_cv) : 0;
    table_ends(x, sf, spare, &p, value, weight, factors, m->rest_ns[0], sigma);
    *out = (struct maq_end_law){.count = count, .n = LEVELS, .x = x, .sf = sf};
    return true;
}
