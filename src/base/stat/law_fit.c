/* SPDX-License-Identifier: Apache-2.0 */
/*
 * law_fit.c - laws of a weighted sample by maximum likelihood: see law_fit.h.
 *
 *   normal, lognormal    weighted mean and standard deviation, of x and of ln x
 *   gamma                ln k - digamma(k) = ln mean(x) - mean(ln x), by Newton's method
 *   Weibull              sum x^k ln x / sum x^k - 1/k = mean(ln x), by Newton's method inside a bracket
 *   exponential          begins at the least value
 *   mixture of two       normals of ln x, by expectation and maximization from the halves of Otsu's threshold
 *
 * A shifted law is fitted at each of a row of shifts below the least value and around the likeliest. The row ends 5 % of the
 * distance to the median before the least value: right at it the likelihood of these laws has no bound (Cohen and Whitten,
 * "Parameter estimation in reliability and life span models"). The sample is scaled by its median first.
 */
#include "base/stat/law_fit.h"

#include <math.h>
#include <stddef.h>

#include "base/check.h"
#include "base/stat/special_functions.h"

static double mean_of(const struct maq_sample *s, double shift, bool logs)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        sum += s->weight[i] * (logs ? log(s->value[i] - shift) : s->value[i] - shift);
    return sum;
}

static double sd_of(const struct maq_sample *s, double shift, bool logs, double mean)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        double off = (logs ? log(s->value[i] - shift) : s->value[i] - shift) - mean;
        sum += s->weight[i] * off * off;
    }
    return sqrt(sum);
}

static struct maq_law fit_normal(const struct maq_sample *s, double shift)
{
    double mean = mean_of(s, shift, false);
    return maq_law_normal(shift + mean, sd_of(s, shift, false, mean));
}

static struct maq_law fit_lognormal(const struct maq_sample *s, double shift)
{
    double mean = mean_of(s, shift, true);
    struct maq_law law = maq_law_lognormal(exp(mean), sd_of(s, shift, true, mean));
    law.shift = shift;
    return law;
}

static struct maq_law fit_gamma(const struct maq_sample *s, double shift)
{
    double mean = mean_of(s, shift, false), gap = log(mean) - mean_of(s, shift, true);
    double k = (3 - gap + sqrt((gap - 3) * (gap - 3) + 24 * gap)) / (12 * gap); /* within 1.5 %; Minka (2002) */
    for (int i = 0; i < 50; i++) {
        double step = (log(k) - maq_digamma(k) - gap) / (1 / k - maq_trigamma(k));
        double next = k - step > 0 ? k - step : k / 2;
        if (fabs(next - k) < 1e-13 * k)
            break;
        k = next;
    }
    struct maq_law law = maq_law_gamma(k, mean / k);
    law.shift = shift;
    return law;
}

/* The equation of the shape, with values over their mean so that powers stay small; rises with k. */
static double weibull_gap(const struct maq_sample *s, double shift, double scale, double k, double logs)
{
    double power = 0, with_log = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        double l = log((s->value[i] - shift) / scale), w = s->weight[i] * exp(k * l);
        power += w;
        with_log += w * l;
    }
    return with_log / power - 1 / k - logs;
}

static struct maq_law fit_weibull(const struct maq_sample *s, double shift)
{
    double scale = s->value[s->n - 1] - shift; /* the largest: no power above 1 */
    double logs = mean_of(s, shift, true) - log(scale), low = 1e-3, high = 1e6, power = 0;
    for (int i = 0; i < 60 && high / low > 1 + 1e-12; i++) {
        double k = sqrt(low * high);
        if (weibull_gap(s, shift, scale, k, logs) < 0)
            low = k;
        else
            high = k;
    }
    for (uint32_t i = 0; i < s->n; i++)
        power += s->weight[i] * exp(low * log((s->value[i] - shift) / scale));
    struct maq_law law = maq_law_weibull(low, scale * pow(power, 1 / low));
    law.shift = shift;
    return law;
}

static struct maq_law fit_exponential(const struct maq_sample *s, double shift)
{
    (void)shift;
    struct maq_law law = maq_law_exponential(mean_of(s, s->value[0], false));
    law.shift = s->value[0];
    return law;
}

static double likelihood(const struct maq_sample *s, const struct maq_law *law)
{
    double sum = 0;
    for (uint32_t i = 0; i < s->n; i++)
        sum += s->weight[i] * log(maq_law_pdf(law, s->value[i]));
    return sum;
}

typedef struct maq_law fit_function(const struct maq_sample *s, double shift);

/* The law at a shift that is 0.05 * 2^at times the way from the least value to the median below the least value; `now` its likelihood. */
static struct maq_law law_at(double *now, fit_function *fit, const struct maq_sample *s, double median, double at)
{
    struct maq_law law = fit(s, s->value[0] - (median - s->value[0]) * 0.05 * exp2(at));
    *now = maq_law_valid(&law) ? likelihood(s, &law) : -(double)INFINITY;
    return law;
}

/* The likeliest of the laws with shifts below the least value: a row of shifts, then thirds around the best of them. */
static struct maq_law fit_shift(fit_function *fit, const struct maq_sample *s, double median)
{
    enum { ROW = 9, THIRDS = 8 };
    double best = -(double)INFINITY, at = 0, now, other;
    struct maq_law found = {.kind = MAQ_LAW_COUNT};
    for (int i = 0; i <= ROW; i++) {
        struct maq_law law = law_at(&now, fit, s, median, i);
        if (now > best) {
            best = now;
            at = i;
            found = law;
        }
    }
    double low = fmax(at - 1, 0), high = fmin(at + 1, ROW);
    for (int i = 0; i < THIRDS && found.kind != MAQ_LAW_COUNT; i++) {
        double third = (high - low) / 3;
        struct maq_law below = law_at(&now, fit, s, median, low + third),
                       above = law_at(&other, fit, s, median, high - third);
        if (fmax(now, other) > best) {
            best = fmax(now, other);
            found = now >= other ? below : above;
        }
        if (now >= other)
            high -= third;
        else
            low += third;
    }
    return found;
}

/* --- a mixture of two lognormals ---------------------------------------------------------------------------------- */

uint32_t maq_otsu_cut(const struct maq_sample *s)
{
    double all = mean_of(s, 0, true), share = 0, sum = 0, best = -1;
    uint32_t cut = 1;
    for (uint32_t i = 0; i + 1 < s->n; i++) {
        share += s->weight[i];
        sum += s->weight[i] * log(s->value[i]);
        double gap = all * share - sum, between = gap * gap / (share * (1 - share));
        if (between > best && s->value[i] < s->value[i + 1]) {
            best = between;
            cut = i + 1;
        }
    }
    return cut;
}

/* One pass: new parameters from how much of each value belongs to the upper part. */
static void improve(struct maq_law part[2], double weight[2], const struct maq_sample *s)
{
    double share[2] = {0}, sum[2] = {0}, square[2] = {0};
    for (uint32_t i = 0; i < s->n; i++) {
        double x = log(s->value[i]), a = weight[0] * maq_law_pdf(&part[0], s->value[i]),
               b = weight[1] * maq_law_pdf(&part[1], s->value[i]), upper = a + b > 0 ? b / (a + b) : 0.5;
        for (int k = 0; k < 2; k++) {
            double w = s->weight[i] * (k ? upper : 1 - upper);
            share[k] += w;
            sum[k] += w * x;
            square[k] += w * x * x;
        }
    }
    for (int k = 0; k < 2; k++) {
        double mean = sum[k] / share[k], variance = square[k] / share[k] - mean * mean;
        weight[k] = share[k];
        part[k] = maq_law_lognormal(exp(mean), sqrt(variance > 1e-10 ? variance : 1e-10));
    }
}

static bool fit_two(struct maq_law *out, const struct maq_sample *s, struct maq_arena *arena)
{
    enum { PASSES = 100 };
    struct maq_law *part = MAQ_ARENA_NEW(arena, struct maq_law, 2);
    double *weight = MAQ_ARENA_NEW(arena, double, 2);
    uint32_t cut = maq_otsu_cut(s);
    if (!part || !weight || s->n < 4)
        return false;
    for (int k = 0; k < 2; k++) {
        uint32_t from = k ? cut : 0, to = k ? s->n : cut;
        double share = 0, sum = 0, square = 0;
        for (uint32_t i = from; i < to; i++) {
            double x = log(s->value[i]);
            share += s->weight[i];
            sum += s->weight[i] * x;
            square += s->weight[i] * x * x;
        }
        double mean = sum / share, variance = square / share - mean * mean;
        weight[k] = share;
        part[k] = maq_law_lognormal(exp(mean), sqrt(variance > 1e-10 ? variance : 1e-10));
    }
    for (int i = 0; i < PASSES; i++)
        improve(part, weight, s);
    double sum = weight[0] + weight[1];
    weight[0] /= sum;
    weight[1] /= sum;
    *out = maq_law_mixture(part, weight, 2);
    return maq_law_valid(out);
}

/* --- all of them -------------------------------------------------------------------------------------------------- */

double maq_sample_distance(const struct maq_sample *s, const struct maq_law *law)
{
    double below = 0, worst = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        double p = maq_law_cdf(law, s->value[i]), after = below + s->weight[i];
        worst = fmax(worst, fmax(p - below, after - p));
        below = after;
    }
    return worst;
}

uint32_t maq_fit_laws(struct maq_fitted_law out[MAQ_FITTED_LAWS], const struct maq_sample *s, struct maq_arena *arena)
{
    static const struct {
        const char *name;
        fit_function *fit;
        bool shifted;
    } laws[] = {
        {"normal", fit_normal, false},
        {"lognormal", fit_lognormal, false},
        {"gamma", fit_gamma, false},
        {"weibull", fit_weibull, false},
        {"lognormal shifted", fit_lognormal, true},
        {"gamma shifted", fit_gamma, true},
        {"weibull shifted", fit_weibull, true},
        {"exponential shifted", fit_exponential, false},
    };
    uint32_t n = 0;
    if (s->n < 2 || !(s->value[s->n - 1] > s->value[0]))
        return 0;
    double below = 0, median = s->value[0];
    for (uint32_t i = 0; i < s->n && below < 0.5; i++) {
        below += s->weight[i];
        median = s->value[i];
    }
    if (!(median > s->value[0]))
        median = s->value[s->n - 1];
    for (size_t i = 0; i <= MAQ_COUNT(laws); i++) {
        struct maq_fitted_law f = {.name = "mixture of two"};
        if (i == MAQ_COUNT(laws)) {
            if (!fit_two(&f.law, s, arena))
                continue;
        } else {
            f.name = laws[i].name;
            f.law = laws[i].shifted ? fit_shift(laws[i].fit, s, median) : laws[i].fit(s, 0);
        }
        if (!maq_law_valid(&f.law))
            continue;
        f.distance = maq_sample_distance(s, &f.law);
        uint32_t at = n++;
        for (; at > 0 && out[at - 1].distance > f.distance; at--)
            out[at] = out[at - 1];
        out[at] = f;
    }
    return n;
}
