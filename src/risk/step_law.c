/* step_law.c - from the ends of single replicas to the step of a job: see step_law.h. */
#include "risk/step_law.h"

#include <math.h>
#include <stdlib.h>

#include "risk/law.h"
#include "risk/special.h"

#define SPIKES 16u

void maq_end_law_init(struct maq_end_law *out, const double *x, uint32_t n, double count)
{
    *out = (struct maq_end_law){.count = count, .n = n, .x = x};
    uint32_t k = (uint32_t)sqrt((double)n);
    if (k < 15 || !(x[n - 1] > x[n - 1 - k]))
        return;
    double u = x[n - 1 - k], a0 = 0, a1 = 0;
    for (uint32_t i = 0; i < k; i++) { /* excesses ascending */
        double y = x[n - k + i] - u;
        a0 += y / k;
        a1 += y * (1 - (i + 0.65) / k) / k;
    }
    double gap = a0 - 2 * a1, shape = gap > 0 ? 2 - a0 / gap : 0; /* xi of the form (1 + xi y / scale)^(-1 / xi) */
    if (!(gap > 0))
        return;
    shape = shape > 0.45 ? 0.45 : shape < -0.9 ? -0.9 : shape; /* a finite variance, and a density that falls */
    out->threshold = u;
    out->share = (double)k / n;
    out->shape = shape;
    out->scale = a0 * (1 - shape); /* the mean excess stays that of the sample */
}

/* Between two points of an exact law, linear in ln P(X > x), as tails nearly are. */
static double between(double from, double to, double part)
{
    return from > 0 && to > 0 ? from * exp(part * log(to / from)) : from + part * (to - from);
}

static double exact_sf(const struct maq_end_law *l, double x)
{
    if (x <= l->x[0])
        return l->sf[0];
    if (x >= l->x[l->n - 1])
        return l->sf[l->n - 1];
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

static double exact_upper(const struct maq_end_law *l, double q)
{
    uint32_t low = 0, high = l->n - 1; /* sf[low] > q >= sf[high] */
    if (q >= l->sf[0])
        return l->x[0];
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

/* P(X > x): the sample's with lines between plotting positions (i + 1/2) / n, the tail's above its threshold. */
static double end_sf(const struct maq_end_law *l, double x)
{
    if (l->sf)
        return exact_sf(l, x);
    if (l->share > 0 && x > l->threshold) {
        double z = (x - l->threshold) / l->scale;
        if (fabs(l->shape) < 1e-9)
            return l->share * exp(-z);
        double base = 1 + l->shape * z;
        return base > 0 ? l->share * exp(-log(base) / l->shape) : 0;
    }
    uint32_t low = 0, high = l->n; /* how many are <= x */
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (l->x[middle] <= x)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return 1;
    double part = 0.5;
    if (low < l->n)
        part = (x - l->x[low - 1]) / (l->x[low] - l->x[low - 1]) - 0.5;
    return 1 - fmin(1, fmax(0, (low + part) / l->n));
}

/* The x that a share q of the draws exceed. */
static double end_upper(const struct maq_end_law *l, double q)
{
    if (l->sf)
        return exact_upper(l, q);
    if (l->share > 0 && q < l->share) {
        double ratio = log(q / l->share);
        return l->threshold +
               (fabs(l->shape) < 1e-9 ? -l->scale * ratio : l->scale * expm1(-l->shape * ratio) / l->shape);
    }
    double at = (1 - q) * l->n - 0.5;
    if (at <= 0)
        return l->x[0];
    uint32_t below = (uint32_t)at;
    if (below + 1 >= l->n)
        return l->x[l->n - 1];
    return l->x[below] + (at - below) * (l->x[below + 1] - l->x[below]);
}

static double slowest_log_cdf(const struct maq_end_law *kinds, uint32_t n, double x)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++)
        if (kinds[i].count > 0)
            sum += kinds[i].count * log1p(-end_sf(&kinds[i], x));
    return sum;
}

/* Quantile of the slowest of all replicas. */
static double slowest_quantile(const struct maq_end_law *kinds, uint32_t n, double p)
{
    double low = -(double)INFINITY, high = -(double)INFINITY;
    for (uint32_t i = 0; i < n; i++) {
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
    return points * (v->spike_share > 0 ? SPIKES + 1 : 1);
}

void maq_step_law_add(struct maq_step_law *law, const struct maq_end_law *kinds, uint32_t n_kinds, uint32_t points,
                      double weight, double norm_ns, double end_ns, const struct maq_variation *v)
{
    double each = weight / points, rare = v->spike_share;
    struct maq_law spike = maq_law_lognormal(v->spike_ratio, fmax(sqrt(log1p(v->spike_cv * v->spike_cv)), 1e-12));
    for (uint32_t i = 0; i < points; i++) {
        double x = slowest_quantile(kinds, n_kinds, (i + 0.5) / points) + norm_ns + end_ns;
        law->atom[law->n++] = (struct maq_step_atom){x, each * (1 - rare)};
        for (uint32_t k = 0; rare > 0 && k < SPIKES; k++) { /* a spike makes no step faster */
            double s = maq_law_quantile(&spike, (k + 0.5) / SPIKES);
            law->atom[law->n++] = (struct maq_step_atom){x * (s > 1 ? s : 1), each * rare / SPIKES};
        }
    }
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
}

static double step_cdf(const struct maq_step_law *law, double t)
{
    double sum = 0;
    for (uint32_t i = 0; i < law->n; i++)
        sum += law->atom[i].weight * maq_normal_cdf(log(t / law->atom[i].value_ns) / law->sigma);
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
