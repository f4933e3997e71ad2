/*
 * step_exact.c - the law of a replica's end where no pipeline needs sampling: one stage, passes one after another.
 *
 *   end = G x (sum of d_k E_k) + rest
 *
 * with G the lasting factor of the lockstep group, E_k the slowest pass of the group, independent from pass to pass, and d_k the passes'
 * times when nothing varies. The sum is found on a grid of its standard deviation: each pass's law is put on the grid by splitting a
 * value between its two neighbours, which keeps the mean; powers are taken by squaring, with direct convolution, whose terms are all
 * positive, so that tails keep their digits where a Fourier transform ends at 1e-16 of the peak. G is a quadrature over its quantiles,
 * finer towards its slow end. What varies little or once is a few points: nodes and what of the reduction nothing hides three (Gauss
 * and Hermite's, exact for moments up to the fifth), a first pass that does not end before its parameters are there eight. Refused
 * (false) where microbatches vary and where a group spans nodes.
 */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "risk/extreme.h"
#include "risk/special.h"
#include "risk/step_law.h"

#define CELLS 4096u    /* of a grid, at the most */
#define PER_SIGMA 32.0 /* of the sum */
#define FACTORS 160u   /* values of G */
#define FIRSTS 8u
#define LEVELS 700u /* tabled values of the end */

/* A law on a grid: mass of cell i at (first + i) h. */
struct grid {
    int64_t first;
    uint32_t n;
    double *mass;
};

static bool convolve(struct grid *out, const struct grid *a, const struct grid *b, struct maq_arena *arena)
{
    uint32_t n = a->n + b->n - 1, from = 0;
    double *m = MAQ_ARENA_NEW(arena, double, n);
    if (!m)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t k = 0; k < b->n; k++)
            m[i + k] += a->mass[i] * b->mass[k];
    while (from + 1 < n && m[from] < 1e-24) /* what is cut off changes no figure */
        from++;
    while (n > from + 1 && m[n - 1] < 1e-24)
        n--;
    *out = (struct grid){a->first + b->first + from, n - from, m + from};
    return n - from <= CELLS;
}

/* Base x slowest of `group` lognormal factors, on the grid. */
static bool put_pass(struct grid *out, double base, double sigma, double group, double h, struct maq_arena *arena)
{
    struct maq_law law = maq_law_lognormal(base, sigma);
    double low = maq_max_quantile(&law, group, 1e-18), high = maq_law_upper(&law, 1e-18 / group);
    int64_t first = (int64_t)floor(low / h) - 1;
    uint32_t n = (uint32_t)((int64_t)ceil(high / h) + 2 - first);
    double *m = n <= CELLS ? MAQ_ARENA_NEW(arena, double, n) : NULL;
    if (!m)
        return false;
    enum { FINE = 8 };
    double before = 0, sum = 0;
    for (uint32_t i = 0; i + 1 < n; i++) /* cells of the law, each at its middle, split between its neighbours */
        for (int k = 0; k < FINE; k++) {
            double at = ((double)(first + i) + (k + 1.0) / FINE) * h, now = maq_max_cdf(&law, group, at);
            double mass = now - before, part = (k + 0.5) / FINE;
            m[i] += mass * (1 - part);
            m[i + 1] += mass * part;
            before = now;
        }
    for (uint32_t i = 0; i < n; i++)
        sum += m[i];
    for (uint32_t i = 0; i < n; i++)
        m[i] /= sum;
    *out = (struct grid){first, n, m};
    return true;
}

/* The sum of `times` independent copies. */
static bool power(struct grid *out, struct grid one, uint32_t times, struct maq_arena *arena)
{
    bool begun = false;
    for (;; times /= 2) {
        if (times & 1u) {
            struct grid before = *out;
            if (begun && !convolve(out, &before, &one, arena))
                return false;
            if (!begun)
                *out = one;
            begun = true;
        }
        if (times <= 1)
            return true;
        struct grid half = one;
        if (!convolve(&one, &half, &half, arena))
            return false;
    }
}

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

/* Law of the sum of all passes as values with probabilities of the rest above them. */
static bool sum_passes(struct grid *sum, double *h, const struct kinds *kinds, const struct maq_step_model *m,
                       double pass_cv, struct maq_arena *arena)
{
    double sigma = sqrt(log1p(pass_cv * pass_cv)), variance = 0, mean, var;
    for (uint32_t k = 0; k < kinds->n; k++) {
        struct maq_law law = maq_law_lognormal(kinds->dur[k], sigma);
        maq_max_moments(&mean, &var, &law, m->lockstep);
        variance += kinds->count[k] * var;
    }
    *h = sqrt(variance) / PER_SIGMA;
    for (uint32_t k = 0; k < kinds->n; k++) {
        struct grid one, all, before = *sum;
        if (!put_pass(&one, kinds->dur[k], sigma, m->lockstep, *h, arena) || !power(&all, one, kinds->count[k], arena))
            return false;
        if (k == 0)
            *sum = all;
        else if (!convolve(sum, &before, &all, arena))
            return false;
    }
    return true;
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

/* P(sum > x): the grid's, linear inside a cell. */
static double above(const struct grid *g, const double *rest, double h, double x)
{
    double at = x / h - (double)g->first;
    if (at < 0)
        return 1;
    uint32_t cell = (uint32_t)fmin(at, 4e9);
    if (cell + 1 >= g->n)
        return 0;
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
    struct grid sum;
    double *rest; /* [sum.n + 1] probability above a cell's middle */
    double h, first_ns[FIRSTS], ready_ns;
    uint32_t firsts; /* 0: none waits */
};

/* P(passes > x) for a factor. */
static double passes_above(const struct passes *p, double factor, double x)
{
    if (p->firsts == 0)
        return above(&p->sum, p->rest, p->h, x / factor);
    double q = 0;
    for (uint32_t k = 0; k < p->firsts; k++)
        q += above(&p->sum, p->rest, p->h, (x - fmax(factor * p->first_ns[k], p->ready_ns)) / factor) / p->firsts;
    return q;
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
    double low = (double)p->sum.first * p->h * fast + head[0];
    double high = (double)(p->sum.first + p->sum.n) * p->h * slow + head[1], step = (high - low) / (LEVELS - 1);
    for (uint32_t i = 0; i < LEVELS; i++) {
        x[i] = low + step * i;
        spare[i] = 0;
        for (uint32_t k = 0; k < factors; k++)
            spare[i] += weight[k] * passes_above(p, value[k], x[i]);
        spare[i] = fmin(spare[i], 1);
    }
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
    if (!sort_tasks(&kinds, &waits, m) || !sum_passes(&p->sum, &p->h, &kinds, m, v->pass_cv, arena))
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
