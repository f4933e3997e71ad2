/* SPDX-License-Identifier: Apache-2.0 */
/*
 * law.c - laws of durations: see law.h.
 *
 * Normal, lognormal, Weibull and exponential are closed formulae. A gamma quantile is Newton's method on the
 * logarithm of the probability of its own side, from Wilson and Hilferty's cube (Johnson, Kotz, Balakrishnan,
 * "Continuous univariate distributions" 1, ch. 17), kept inside a bracket; a mixture's is the same between the
 * quantiles of its parts, and bisection where it has no density. Both end where doubles do.
 */
#include "base/stat/law.h"

#include <math.h>
#include <stddef.h>

#include "base/stat/special_functions.h"

const char *maq_law_name(enum maq_law_kind kind)
{
    static const char *const names[] = {
#define MAQ_LAW_NAME(id, name) [MAQ_LAW_##id] = (name),
        MAQ_LAW_LIST(MAQ_LAW_NAME)
#undef MAQ_LAW_NAME
    };
    return kind < MAQ_LAW_COUNT ? names[kind] : "?";
}

struct maq_law maq_law_lognormal_of_median_mean(double median, double mean)
{
    return maq_law_lognormal(median, sqrt(2 * log(mean / median)));
}

struct maq_law maq_law_lognormal_of_mean_cv(double mean, double cv)
{
    return maq_law_lognormal(mean / sqrt(1 + cv * cv), maq_lognormal_sigma(cv));
}

double maq_lognormal_sigma(double cv)
{
    return sqrt(log1p(cv * cv));
}

static bool valid_pool(const struct maq_law *law)
{
    for (uint32_t i = 0; i < law->n; i++)
        if (!isfinite(law->value[i]) || (i > 0 && law->value[i] < law->value[i - 1]))
            return false;
    for (uint32_t i = 0; law->below && i < law->n; i++)
        if (!(law->below[i] > (i > 0 ? law->below[i - 1] : 0)))
            return false;
    return law->n > 0 && (!law->below || law->below[law->n - 1] == 1);
}

static bool valid_mixture(const struct maq_law *law)
{
    double sum = 0;
    for (uint32_t i = 0; i < law->n; i++) {
        if (!(law->weight[i] > 0) || !maq_law_valid(&law->part[i]))
            return false;
        sum += law->weight[i];
    }
    return fabs(sum - 1) < 1e-9;
}

bool maq_law_valid(const struct maq_law *law)
{
    bool scale = law->scale > 0 && isfinite(law->scale), shape = law->shape > 0 && isfinite(law->shape);
    if (!isfinite(law->shift))
        return false;
    switch (law->kind) {
    case MAQ_LAW_CONSTANT:
        return true;
    case MAQ_LAW_NORMAL:
    case MAQ_LAW_EXPONENTIAL:
        return scale;
    case MAQ_LAW_LOGNORMAL:
    case MAQ_LAW_GAMMA:
    case MAQ_LAW_WEIBULL:
        return scale && shape;
    case MAQ_LAW_POOL:
        return valid_pool(law);
    case MAQ_LAW_MIXTURE:
        return valid_mixture(law);
    case MAQ_LAW_COUNT:
        break;
    }
    return false;
}

/* How many of a pool are <= y. */
static uint32_t pool_rank(const struct maq_law *law, double y)
{
    uint32_t low = 0, high = law->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (law->value[middle] <= y)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Probability of the values up to the k-th, of a pool. */
static double pool_share(const struct maq_law *law, uint32_t k)
{
    return k == 0 ? 0 : law->below ? law->below[k - 1] : (double)k / law->n;
}

/* The least value with at least p at or below it. */
static double pool_inverse(const struct maq_law *law, double p)
{
    uint32_t low = 1, high = law->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (pool_share(law, middle) >= p * (1 - 1e-15))
            high = middle;
        else
            low = middle + 1;
    }
    return law->value[high - 1];
}

/* P(draw <= x), or P(draw > x) when `upper`. */
static double probability(const struct maq_law *law, double x, bool upper)
{
    double y = x - law->shift, t;
    switch (law->kind) {
    case MAQ_LAW_CONSTANT:
        return (y >= 0) != upper;
    case MAQ_LAW_NORMAL:
        return maq_normal_cdf(upper ? -y / law->scale : y / law->scale);
    case MAQ_LAW_LOGNORMAL:
        if (y <= 0)
            return upper;
        t = log(y / law->scale) / law->shape;
        return maq_normal_cdf(upper ? -t : t);
    case MAQ_LAW_GAMMA:
        return (upper ? maq_gamma_q : maq_gamma_p)(law->shape, y > 0 ? y / law->scale : 0);
    case MAQ_LAW_WEIBULL:
    case MAQ_LAW_EXPONENTIAL:
        if (y <= 0)
            return upper;
        t = law->kind == MAQ_LAW_WEIBULL ? pow(y / law->scale, law->shape) : y / law->scale;
        return upper ? exp(-t) : -expm1(-t);
    case MAQ_LAW_POOL:
        t = pool_share(law, pool_rank(law, y));
        return upper ? 1 - t : t;
    case MAQ_LAW_MIXTURE:
        t = 0;
        for (uint32_t i = 0; i < law->n; i++)
            t += law->weight[i] * probability(&law->part[i], y, upper);
        return t < 1 ? t : 1;
    case MAQ_LAW_COUNT:
        break;
    }
    return (double)NAN;
}

double maq_law_cdf(const struct maq_law *law, double x)
{
    return probability(law, x, false);
}

double maq_law_sf(const struct maq_law *law, double x)
{
    return probability(law, x, true);
}

double maq_law_pdf(const struct maq_law *law, double x)
{
    double y = x - law->shift, t, sum = 0;
    switch (law->kind) {
    case MAQ_LAW_NORMAL:
        return maq_normal_pdf(y / law->scale) / law->scale;
    case MAQ_LAW_LOGNORMAL:
        return y > 0 ? maq_normal_pdf(log(y / law->scale) / law->shape) / (y * law->shape) : 0;
    case MAQ_LAW_GAMMA:
        return y > 0 ? maq_gamma_kernel(law->shape, y / law->scale) / y : 0;
    case MAQ_LAW_WEIBULL:
        t = y > 0 ? pow(y / law->scale, law->shape) : 0;
        return y > 0 ? law->shape * t / y * exp(-t) : 0;
    case MAQ_LAW_EXPONENTIAL:
        return y >= 0 ? exp(-y / law->scale) / law->scale : 0;
    case MAQ_LAW_MIXTURE:
        for (uint32_t i = 0; i < law->n; i++)
            sum += law->weight[i] * maq_law_pdf(&law->part[i], y);
        return sum;
    case MAQ_LAW_CONSTANT:
    case MAQ_LAW_POOL:
    case MAQ_LAW_COUNT:
        break;
    }
    return (double)NAN;
}

/* y with P(a, y) = p, or with Q(a, y) = p when `upper`; 0 < p < 1. */
static double gamma_inverse(double a, double p, bool upper)
{
    double z = maq_normal_quantile(p) * (upper ? -1 : 1), cube = 1 - 1 / (9 * a) + z / (3 * sqrt(a));
    double low = 0, high = (double)INFINITY, y = a * cube * cube * cube;
    if (cube <= 0.1) /* far below the bulk: P is about y^a / Gamma(a + 1) there */
        y = exp((log(upper ? -expm1(log(p)) : p) + maq_log_gamma(a + 1)) / a);
    for (int i = 0; i < 200; i++) {
        double now = upper ? maq_gamma_q(a, y) : maq_gamma_p(a, y);
        if ((now > p) == upper)
            low = y;
        else
            high = y;
        double step = now > 0 ? log(now / p) * now * y / maq_gamma_kernel(a, y) * (upper ? 1 : -1) : (double)NAN;
        double next = y + step;
        if (!(next > low && next < high))
            next = isfinite(high) ? 0.5 * (low + high) : 2 * y + 1;
        if (fabs(next - y) <= 4e-16 * y)
            return next;
        y = next;
    }
    return y;
}

static double inverse(const struct maq_law *law, double p, bool upper);

static double mixture_inverse(const struct maq_law *law, double p, bool upper)
{
    double low = (double)INFINITY, high = -(double)INFINITY;
    for (uint32_t i = 0; i < law->n; i++) {
        double x = law->part[i].shift + inverse(&law->part[i], p, upper);
        low = x < low ? x : low;
        high = x > high ? x : high;
    }
    double y;
    if (upper ? probability(law, low + law->shift, true) <= p : probability(law, low + law->shift, false) >= p)
        return low;
    y = low + 0.5 * (high - low);
    if (!(y > low && y < high))
        return high;
    for (int i = 0;; i++) { /* low is too low, high is not */
        double now = probability(law, y + law->shift, upper), slope = maq_law_pdf(law, y + law->shift);
        if (upper ? now <= p : now >= p)
            high = y;
        else
            low = y;
        double next = i < 40 && now > 0 ? y + log(now / p) * now / slope * (upper ? 1 : -1) : (double)NAN;
        if (fabs(next - y) <= 4e-16 * fabs(y)) /* never where there is no density */
            return next;
        if (!(next > low && next < high))
            next = low + 0.5 * (high - low);
        if (!(next > low && next < high))
            return high;
        y = next;
    }
}

/* Y with P(Y <= y) = p, or P(Y > y) = p when `upper`: without the shift. */
static double inverse(const struct maq_law *law, double p, bool upper)
{
    bool bottom = upper ? p >= 1 : p <= 0, top = upper ? p <= 0 : p >= 1;
    double hazard = upper ? -log(p) : -log1p(-p);
    switch (law->kind) {
    case MAQ_LAW_CONSTANT:
        return 0;
    case MAQ_LAW_NORMAL:
        return law->scale * maq_normal_quantile(p) * (upper ? -1 : 1);
    case MAQ_LAW_LOGNORMAL:
        return law->scale * exp(law->shape * maq_normal_quantile(p) * (upper ? -1 : 1));
    case MAQ_LAW_GAMMA:
        return bottom ? 0 : top ? (double)INFINITY : law->scale * gamma_inverse(law->shape, p, upper);
    case MAQ_LAW_WEIBULL:
        return law->scale * pow(hazard, 1 / law->shape);
    case MAQ_LAW_EXPONENTIAL:
        return law->scale * hazard;
    case MAQ_LAW_POOL:
        return pool_inverse(law, upper ? 1 - p : p);
    case MAQ_LAW_MIXTURE:
        return mixture_inverse(law, p, upper);
    case MAQ_LAW_COUNT:
        break;
    }
    return (double)NAN;
}

double maq_law_quantile(const struct maq_law *law, double p)
{
    return law->shift + inverse(law, p, false);
}

double maq_law_upper(const struct maq_law *law, double q)
{
    return law->shift + inverse(law, q, true);
}

double maq_law_mean(const struct maq_law *law)
{
    double sum = 0;
    switch (law->kind) {
    case MAQ_LAW_CONSTANT:
    case MAQ_LAW_NORMAL:
        return law->shift;
    case MAQ_LAW_LOGNORMAL:
        return law->shift + law->scale * exp(0.5 * law->shape * law->shape);
    case MAQ_LAW_GAMMA:
        return law->shift + law->scale * law->shape;
    case MAQ_LAW_WEIBULL:
        return law->shift + law->scale * exp(maq_log_gamma(1 + 1 / law->shape));
    case MAQ_LAW_EXPONENTIAL:
        return law->shift + law->scale;
    case MAQ_LAW_POOL:
        for (uint32_t i = 0; i < law->n; i++)
            sum += (law->value[i] - law->value[0]) * (pool_share(law, i + 1) - pool_share(law, i));
        return law->shift + law->value[0] + sum;
    case MAQ_LAW_MIXTURE:
        for (uint32_t i = 0; i < law->n; i++)
            sum += law->weight[i] * maq_law_mean(&law->part[i]);
        return law->shift + sum;
    case MAQ_LAW_COUNT:
        break;
    }
    return (double)NAN;
}

double maq_law_variance(const struct maq_law *law)
{
    double square = law->scale * law->scale, sum = 0, mean;
    switch (law->kind) {
    case MAQ_LAW_CONSTANT:
        return 0;
    case MAQ_LAW_NORMAL:
    case MAQ_LAW_EXPONENTIAL:
        return square;
    case MAQ_LAW_LOGNORMAL:
        return square * exp(law->shape * law->shape) * expm1(law->shape * law->shape);
    case MAQ_LAW_GAMMA:
        return square * law->shape;
    case MAQ_LAW_WEIBULL: { /* Gamma(1 + 2/k) - Gamma(1 + 1/k)^2 */
        double once = maq_log_gamma(1 + 1 / law->shape);
        return square * exp(2 * once) * expm1(maq_log_gamma(1 + 2 / law->shape) - 2 * once);
    }
    case MAQ_LAW_POOL:
        mean = maq_law_mean(law) - law->shift;
        for (uint32_t i = 0; i < law->n; i++)
            sum += (law->value[i] - mean) * (law->value[i] - mean) * (pool_share(law, i + 1) - pool_share(law, i));
        return sum;
    case MAQ_LAW_MIXTURE:
        mean = maq_law_mean(law) - law->shift;
        for (uint32_t i = 0; i < law->n; i++) {
            double off = maq_law_mean(&law->part[i]) - mean;
            sum += law->weight[i] * (maq_law_variance(&law->part[i]) + off * off);
        }
        return sum;
    case MAQ_LAW_COUNT:
        break;
    }
    return (double)NAN;
}

double maq_law_sample(const struct maq_law *law, struct maq_rng *r)
{
    double shift = 0;
    while (law->kind == MAQ_LAW_MIXTURE) {
        double u = maq_rng_next(r);
        uint32_t i = 0;
        for (; i + 1 < law->n && u >= law->weight[i]; i++)
            u -= law->weight[i];
        shift += law->shift;
        law = &law->part[i];
    }
    return shift + maq_law_quantile(law, maq_rng_next(r));
}
