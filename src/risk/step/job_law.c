/* SPDX-License-Identifier: Apache-2.0 */
/*
 * job_law.c - quantiles of the slowest of all replicas from tabled laws of single ends with an exponential tail, and
 * the mixture over spikes, modes, hours and regimes. See job_law.h.
 */
#include "risk/step/job_law.h"

#include <math.h>
#include <stdlib.h>

#include "base/stat/law.h"
#include "base/stat/special_functions.h"

#define TAIL 16u
#define SPIKES 16u
#define HOURS 8u

/* sin(t) in the middle of eighths of half a turn: equally likely values, as exact decimals on every machine. */
static const double sin_of_hour[HOURS] = {-0.98078528040323044, -0.83146961230254524, -0.55557023301960222,
                                          -0.19509032201612828, 0.19509032201612828,  0.55557023301960222,
                                          0.83146961230254524,  0.98078528040323044};

static int by_end(const void *pa, const void *pb)
{
    const struct maq_end_draw *a = pa, *b = pb;
    if (a->x_ns < b->x_ns || b->x_ns < a->x_ns)
        return a->x_ns < b->x_ns ? -1 : 1;
    return (a->weight > b->weight) - (a->weight < b->weight);
}

/* The exponential law above the highest TAIL draws. */
static void fit_tail(struct maq_end_law *l, const struct maq_end_draw *draws)
{
    double sum = 0, excess = 0, u = draws[l->n - 1 - TAIL].x_ns;
    for (uint32_t i = l->n - TAIL; i < l->n; i++) {
        sum += draws[i].weight;
        excess += draws[i].weight * (draws[i].x_ns - u);
    }
    if (!(excess > 0))
        return;
    l->threshold = u;
    l->tail_sf = l->sf[l->n - 1 - TAIL];
    l->tail_scale = excess / sum;
}

bool maq_end_law_init(struct maq_end_law *out, struct maq_end_draw *draws, uint32_t n, double count,
                      struct maq_arena *arena)
{
    double *x = MAQ_ARENA_NEW(arena, double, n), *sf = MAQ_ARENA_NEW(arena, double, n), above = 0, sum = 0;
    if (!x || !sf)
        return false;
    qsort(draws, n, sizeof *draws, by_end);
    for (uint32_t i = n; i-- > 0;) { /* from the top: small probabilities keep their digits */
        x[i] = draws[i].x_ns;
        sf[i] = above + 0.5 * draws[i].weight;
        above += draws[i].weight;
    }
    sum = above;
    for (uint32_t i = 0; i < n; i++)
        sf[i] /= sum;
    *out = (struct maq_end_law){.count = count, .n = n, .x = x, .sf = sf};
    if (n > 10 * TAIL)
        fit_tail(out, draws);
    return true;
}

/* Between two points, linear in ln P(end > x), as tails nearly are. */
static double between(double from, double to, double part)
{
    return from > 0 && to > 0 ? from * exp(part * log(to / from)) : from + part * (to - from);
}

static double end_sf(const struct maq_end_law *l, double x)
{
    if (x < l->x[0])
        return 1;
    if (l->tail_sf > 0 && x > l->threshold)
        return l->tail_sf * exp(-(x - l->threshold) / l->tail_scale);
    if (x >= l->x[l->n - 1])
        return 0;
    uint32_t low = 0, high = l->n - 1; /* x[low] <= x < x[high] */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (l->x[middle] <= x)
            low = middle;
        else
            high = middle;
    }
    return between(l->sf[low], l->sf[high], (x - l->x[low]) / (l->x[high] - l->x[low]));
}

/* The x that a share q of the ends exceed. */
static double end_upper(const struct maq_end_law *l, double q)
{
    uint32_t low = 0, high = l->n - 1; /* sf[low] > q >= sf[high] */
    if (q >= l->sf[0])
        return l->x[0];
    if (l->tail_sf > 0 && q < l->tail_sf)
        return l->threshold + l->tail_scale * log(l->tail_sf / q);
    if (q < l->sf[high])
        return l->x[high];
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (l->sf[middle] > q)
            low = middle;
        else
            high = middle;
    }
    double a = l->sf[low], b = l->sf[high], part = b > 0 && q > 0 ? log(q / a) / log(b / a) : (a - q) / (a - b);
    return l->x[low] + part * (l->x[high] - l->x[low]);
}

static double slowest_log_cdf(const struct maq_end_law *kinds, uint32_t n, double x)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (kinds[i].count > 0)
            sum += kinds[i].count * log1p(-end_sf(&kinds[i], x));
        if (kinds[i].expected > 0) {
            double usual = 1 - end_sf(&kinds[i - 1], x), slow = 1 - end_sf(&kinds[i], x);
            sum -= kinds[i].expected * (slow < usual ? 1 - slow / usual : 0);
        }
    }
    return sum;
}

/* Quantile of the slowest of all replicas. */
static double slowest_quantile(const struct maq_end_law *kinds, uint32_t n, double p)
{
    double low = -(double)INFINITY, high = -(double)INFINITY;
    for (uint32_t i = 0; i < n; i++) {
        if (kinds[i].expected > 0) { /* half of ln p for these, half for the others */
            double q = -log(p) / (2 * kinds[i].expected), x = q < 1 ? end_upper(&kinds[i], q) : kinds[i].x[0];
            high = x > high ? x : high;
        }
        if (kinds[i].count <= 0)
            continue;
        double own = end_upper(&kinds[i], -expm1(log(p) / kinds[i].count)),
               all = end_upper(&kinds[i], -expm1(log(p) / kinds[i].count / n));
        low = own > low ? own : low; /* the slowest of all is no faster than that of one kind */
        high = all > high ? all : high;
    }
    for (int i = 0; n > 1 && i < 60 && high - low > 1e-9 * high; i++) {
        double x = 0.5 * (low + high);
        if (slowest_log_cdf(kinds, n, x) < log(p))
            low = x;
        else
            high = x;
    }
    return n > 1 ? high : low;
}

uint32_t maq_step_law_size(uint32_t points, const struct maq_variation *v)
{
    uint32_t modes = v->slow_mode_share > 0 ? 2 : 1;
    return points * ((v->spike_share > 0 ? SPIKES : 0) + modes * (v->diurnal_swing > 0 ? HOURS : 1));
}

void maq_step_law_put(struct maq_step_law *law, double x_ns, double weight, const struct maq_variation *v)
{
    uint32_t hours = v->diurnal_swing > 0 ? HOURS : 1;
    double usual = weight * (1 - v->spike_share) / hours, slow = v->slow_mode_share;
    for (uint32_t k = 0; k < hours; k++) {
        double at = x_ns * (hours > 1 ? 1 + 0.5 * v->diurnal_swing * sin_of_hour[k] : 1);
        law->atom[law->n++] = (struct maq_step_atom){.value_ns = at, .weight = usual * (1 - slow)};
        if (slow > 0)
            law->atom[law->n++] = (struct maq_step_atom){.value_ns = at * v->slow_mode_ratio, .weight = usual * slow};
    }
    if (v->spike_share <= 0)
        return;
    struct maq_law spike = maq_law_lognormal(v->spike_ratio, fmax(maq_lognormal_sigma(v->spike_cv), 1e-12));
    for (uint32_t k = 0; k < SPIKES; k++) { /* a spike makes no step faster */
        double s = fmax(1, maq_law_quantile(&spike, (k + 0.5) / SPIKES));
        law->atom[law->n++] = (struct maq_step_atom){.value_ns = x_ns * s, .weight = weight * v->spike_share / SPIKES};
    }
}

void maq_step_law_add(struct maq_step_law *law, const struct maq_end_law *kinds, uint32_t n_kinds, uint32_t points,
                      double weight, double norm_ns, double end_ns, const struct maq_variation *v)
{
    for (uint32_t i = 0; i < points; i++)
        maq_step_law_put(law, slowest_quantile(kinds, n_kinds, (i + 0.5) / points) + norm_ns + end_ns, weight / points,
                         v);
}

static int by_value(const void *pa, const void *pb)
{
    const struct maq_step_atom *a = pa, *b = pb;
    if (a->value_ns < b->value_ns || b->value_ns < a->value_ns)
        return a->value_ns < b->value_ns ? -1 : 1;
    return (a->weight > b->weight) - (a->weight < b->weight);
}

void maq_step_law_finish(struct maq_step_law *law)
{
    qsort(law->atom, law->n, sizeof *law->atom, by_value);
    for (uint32_t i = 0; i < law->n; i++)
        law->atom[i].log = log(law->atom[i].value_ns);
}

/* Normal ones in the logarithm; beyond 8.3 of their widths they are 0 or 1 to the last digit. */
static double step_cdf(const struct maq_step_law *law, double t)
{
    double sum = 0, at = log(t), reach = 8.3 * law->sigma;
    for (uint32_t i = 0; i < law->n; i++) {
        double off = at - law->atom[i].log;
        sum += law->atom[i].weight * (off > reach ? 1 : off < -reach ? 0 : maq_normal_cdf(off / law->sigma));
    }
    return sum;
}

double maq_step_law_cdf(const struct maq_step_law *law, double t_ns)
{
    double sum = 0;
    if (law->sigma > 0)
        return step_cdf(law, t_ns);
    for (uint32_t i = 0; i < law->n && law->atom[i].value_ns <= t_ns; i++)
        sum += law->atom[i].weight;
    return sum;
}

double maq_step_law_quantile(const struct maq_step_law *law, double p)
{
    if (law->sigma <= 0) {
        double sum = 0;
        for (uint32_t i = 0; i < law->n; i++)
            if ((sum += law->atom[i].weight) >= p * (1 - 1e-12))
                return law->atom[i].value_ns;
        return law->atom[law->n - 1].value_ns;
    }
    double reach = exp(law->sigma * 8), low = law->atom[0].value_ns / reach,
           high = law->atom[law->n - 1].value_ns * reach;
    for (int i = 0; i < 60 && high - low > 1e-10 * high; i++) {
        double t = 0.5 * (low + high);
        if (step_cdf(law, t) < p)
            low = t;
        else
            high = t;
    }
    return high;
}

double maq_step_law_mean(const struct maq_step_law *law)
{
    double sum = 0, origin = law->atom[0].value_ns;
    for (uint32_t i = 0; i < law->n; i++)
        sum += law->atom[i].weight * (law->atom[i].value_ns - origin);
    return (origin + sum) * exp(0.5 * law->sigma * law->sigma);
}

double maq_step_law_sd(const struct maq_step_law *law)
{
    double mean = 0, square = 0, origin = law->atom[0].value_ns, s2 = law->sigma * law->sigma;
    for (uint32_t i = 0; i < law->n; i++) {
        double off = law->atom[i].value_ns - origin;
        mean += law->atom[i].weight * off;
        square += law->atom[i].weight * off * off;
    }
    double variance = square - mean * mean, centre = origin + mean;
    variance = variance > 0 ? variance : 0;
    return sqrt(exp(s2) * (variance * exp(s2) + centre * centre * expm1(s2)));
}
