/* SPDX-License-Identifier: Apache-2.0 */
/*
 * fit.c - the law of recorded step times, and how well it predicts what was held out.
 *
 * A series is warm-up, spikes and a body (series_split.c). The body's law is the one at the least Kolmogorov-Smirnov distance when
 * that is within the critical distance 0.886 / sqrt(effective) (Lilliefors, "On the Kolmogorov-Smirnov test for normality with mean
 * and variance unknown", 1967: the 5 % point where parameters come from the sample); otherwise the recorded values are the law.
 *
 *   quantiles  of the mixture (1 - r) body + r spikes, or of all recorded values with their weights
 *   mean       (1 - r) mean of the body + r (median + mean excess of spikes), r = (k + 1/2) / n after k spikes in n steps: the mean
 *              of the rate's posterior under Jeffreys' prior; r = 0 when none was seen, there being no size to go with it
 *   next       what as many steps again will show varies as the quarters of the record do: a t interval with 3 degrees of freedom
 *              of the difference of two means of four, in the logarithm, and at least the interval of the figure. Drift and regimes
 *              are in it as far as quarters differ by them
 *   stretch    steps in a row above the predicted p99: a law of single steps gives short ones, a regime that came later a long one
 *   intervals  of quantiles: order statistics of as many independent values as the weighted, correlated ones are worth,
 *              effective (1 - c) / (1 + c) with c the correlation of neighbours. Of the mean: spread of the means of 20 batches
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/codes.h"
#include "base/stat/order_statistics.h"
#include "base/stat/summary.h"
#include "base/str.h"
#include "risk/codes.h"
#include "risk/fit/records.h"
#include "risk/fit/series.h"

#define CONFIDENCE 0.95

const char *maq_risk_figure_name(enum maq_risk_figure figure)
{
    static const char *const names[] = {"p50", "p95", "p99", "mean"};
    return figure < MAQ_RISK_FIGURE_COUNT ? names[figure] : "?";
}

static const double levels[] = {[MAQ_RISK_P50] = 0.5, [MAQ_RISK_P95] = 0.95, [MAQ_RISK_P99] = 0.99};

/* Of neighbours without spikes, at least 0. */
static double correlation(const double *times, const struct maq_series_parts *p, uint32_t n)
{
    double limit = MAQ_SERIES_SPIKE * p->median, mean = 0, top = 0, bottom = 0;
    for (uint32_t i = p->warm_up; i < n; i++)
        mean += fmin(times[i], limit) / (n - p->warm_up);
    for (uint32_t i = p->warm_up; i < n; i++) {
        double now = fmin(times[i], limit) - mean;
        bottom += now * now;
        if (i > p->warm_up)
            top += now * (fmin(times[i - 1], limit) - mean);
    }
    bool varies = bottom > 1e-24 * mean * mean * (n - p->warm_up); /* more than by rounding */
    return varies ? fmax(top / bottom, 0) : 0;
}

static double drift(const double *times, const struct maq_series_parts *p, uint32_t n, double *spare)
{
    uint32_t kept = n - p->warm_up, quarter = kept / 4;
    if (quarter < 5)
        return 0;
    memcpy(spare, times + p->warm_up, quarter * sizeof *spare);
    double first = maq_quantile(spare, quarter, 0.5);
    memcpy(spare, times + n - quarter, quarter * sizeof *spare);
    return log(maq_quantile(spare, quarter, 0.5) / first);
}

/* All recorded values as a law. */
static bool make_pool(struct maq_law *out, const struct maq_sample *s, struct maq_arena *arena)
{
    double *below = MAQ_ARENA_NEW(arena, double, s->n), sum = 0;
    if (!below)
        return false;
    for (uint32_t i = 0; i < s->n; i++)
        below[i] = sum += s->weight[i];
    for (uint32_t i = 0; i < s->n; i++)
        below[i] /= sum;
    *out = maq_law_pool(s->value, s->n);
    out->below = below;
    return true;
}

/* The interval of a quantile, and the one-sided guarantee for `MAQ_RISK_P95`. */
static void set_interval(struct maq_risk_series *out, const struct maq_law *pool, int figure, uint32_t worth)
{
    double tail = 0.5 * (1 - CONFIDENCE), p = levels[figure];
    uint32_t low = maq_order_lower(worth, p, 1 - tail), high = maq_order_upper(worth, p, 1 - tail);
    struct maq_risk_estimate *e = &out->figure[figure];
    e->low = low > 0 ? fmin(maq_law_quantile(pool, (double)low / worth), e->predicted) : (double)NAN;
    e->high = high > 0 ? fmax(maq_law_quantile(pool, (double)high / worth), e->predicted) : (double)NAN;
    if (figure == MAQ_RISK_P95) {
        uint32_t bound = maq_order_upper(worth, p, CONFIDENCE);
        out->guarantee_s = bound > 0 ? maq_law_quantile(pool, (double)bound / worth) : (double)NAN;
    }
}

static void set_mean(struct maq_risk_series *out, const struct maq_series_parts *p, const double *times, uint32_t n)
{
    enum { BATCHES = 20 };
    double body = 0, mean = 0, square = 0;
    uint32_t kept = n - p->warm_up, batches = kept < 2 * BATCHES ? kept / 2 : BATCHES;
    for (uint32_t i = 0; i < p->body.n; i++)
        body += p->body.weight[i] * p->body.value[i];
    double rate = p->spikes > 0 ? (p->spikes + 0.5) / (kept + 1.0) : 0;
    struct maq_risk_estimate *e = &out->figure[MAQ_RISK_MEAN];
    e->predicted = (1 - rate) * body + rate * (p->median + p->spike_excess);
    for (uint32_t b = 0; b < batches; b++) {
        uint32_t from = p->warm_up + (uint32_t)((uint64_t)kept * b / batches),
                 to = p->warm_up + (uint32_t)((uint64_t)kept * (b + 1) / batches);
        double x = maq_mean(times + from, to - from) - p->median;
        mean += x / batches;
        square += x * x / batches;
    }
    double error = sqrt(fmax(square - mean * mean, 0) / (batches - 1));
    e->low = e->predicted - 1.96 * error;
    e->high = e->predicted + 1.96 * error;
}

/* A figure of the times, which are put in another order. */
static double figure_of(double *times, uint32_t n, int figure)
{
    return figure == MAQ_RISK_MEAN ? maq_mean(times, n) : maq_quantile(times, n, levels[figure]);
}

/* Where the same figure of as many steps again lies: see the head of the file. */
static void set_next(struct maq_risk_series *out, const double *times, uint32_t n, double *spare)
{
    enum { QUARTERS = 4, LEAST = 10 };
    const double student = 3.1824463053; /* 97.5 %, 3 degrees of freedom */
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++) {
        struct maq_risk_estimate *e = &out->figure[f];
        double part[QUARTERS], mean = 0, square = 0;
        double least = f == MAQ_RISK_MEAN ? LEAST : fmax(LEAST, 1 / (1 - levels[f])); /* of a quarter */
        bool enough = (double)n >= QUARTERS * (least - 1e-9);
        e->next_low = e->next_high = (double)NAN;
        for (uint32_t i = 0; i < QUARTERS && enough; i++) {
            uint32_t from = (uint32_t)((uint64_t)n * i / QUARTERS), to = (uint32_t)((uint64_t)n * (i + 1) / QUARTERS);
            memcpy(spare, times + from, (to - from) * sizeof *spare);
            part[i] = log(figure_of(spare, to - from, f));
            mean += part[i] / QUARTERS;
        }
        if (!enough)
            continue;
        for (uint32_t i = 0; i < QUARTERS; i++)
            square += (part[i] - mean) * (part[i] - mean);
        double half = student * sqrt(square / (QUARTERS - 1)) * sqrt(2.0 / QUARTERS);
        e->next_low = fmin(e->predicted * exp(-half), e->low); /* fmin and fmax pass over NaN */
        e->next_high = fmax(e->predicted * exp(half), e->high);
    }
}

static enum maq_status set_laws(struct maq_risk_series *out, struct maq_law *law, const struct maq_series_parts *p,
                                const struct maq_law *pool, struct maq_arena *arena)
{
    struct maq_fitted_law *fitted = MAQ_ARENA_NEW(arena, struct maq_fitted_law, MAQ_FITTED_LAWS);
    struct maq_law *part = MAQ_ARENA_NEW(arena, struct maq_law, 2);
    double *weight = MAQ_ARENA_NEW(arena, double, 2);
    if (!fitted || !part || !weight)
        return MAQ_NO_MEMORY;
    out->n_laws = maq_fit_laws(fitted, &p->body, arena);
    out->floor = 0.886 / sqrt(out->effective);
    for (uint32_t i = 0; i < out->n_laws; i++)
        out->laws[i] =
            (struct maq_risk_law){fitted[i].name,      fitted[i].law.shift, fitted[i].law.scale,
                                  fitted[i].law.shape, fitted[i].distance,  fitted[i].distance <= out->floor};
    out->pooled = out->n_laws == 0 || !out->laws[0].accepted;
    *law = *pool;
    if (out->pooled)
        return MAQ_OK;
    double rate = 0;
    for (uint32_t i = p->body.n; i < p->all.n; i++)
        rate += p->all.weight[i];
    *law = fitted[0].law;
    if (p->spikes == 0)
        return MAQ_OK;
    struct maq_sample spikes = {p->spikes, p->all.value + p->body.n, p->all.weight + p->body.n};
    part[0] = fitted[0].law;
    if (!make_pool(&part[1], &spikes, arena))
        return MAQ_NO_MEMORY;
    weight[0] = 1 - rate;
    weight[1] = rate;
    *law = maq_law_mixture(part, weight, 2);
    return MAQ_OK;
}

/* Steps in a row above the limit, the most. */
static uint32_t longest_above(const double *times, uint32_t n, double limit)
{
    uint32_t longest = 0, now = 0;
    for (uint32_t i = 0; i < n; i++) {
        now = times[i] > limit ? now + 1 : 0;
        longest = now > longest ? now : longest;
    }
    return longest;
}

static enum maq_status fit_times(struct maq_risk_series *out, const double *times, uint32_t n, struct maq_arena *arena)
{
    struct maq_series_parts p;
    struct maq_law pool, law;
    double *spare = MAQ_ARENA_NEW(arena, double, n);
    if (!spare)
        return MAQ_NO_MEMORY;
    MAQ_TRY(maq_series_split(&p, times, n, arena));
    if (!make_pool(&pool, &p.all, arena))
        return MAQ_NO_MEMORY;
    out->fitted = n;
    out->warm_up = p.warm_up;
    out->correlation = correlation(times, &p, n);
    out->effective = fmax(1, p.effective * (1 - out->correlation) / (1 + out->correlation));
    out->spikes = p.spikes;
    out->clumps = p.clumps;
    out->spike_rate = (double)p.spikes / (n - p.warm_up);
    out->spike_mean_s = p.spikes > 0 ? p.median + p.spike_excess : (double)NAN;
    out->drift = drift(times, &p, n, spare);
    struct maq_law body;
    if (!make_pool(&body, &p.body, arena))
        return MAQ_NO_MEMORY;
    out->cv = sqrt(maq_law_variance(&body)) / maq_law_mean(&body);
    struct maq_series_modes modes = maq_series_modes(&p.body);
    out->slow_share = modes.share;
    out->slow_ratio = modes.ratio;
    out->mode_cv = modes.share > 0 ? modes.cv : out->cv;
    MAQ_TRY(set_laws(out, &law, &p, &pool, arena));
    uint32_t worth = (uint32_t)out->effective;
    for (int f = 0; f < MAQ_RISK_MEAN; f++) {
        out->figure[f].predicted = maq_law_quantile(&law, levels[f]);
        set_interval(out, &pool, f, worth);
    }
    set_mean(out, &p, times, n);
    set_next(out, times + p.warm_up, n - p.warm_up, spare);
    out->stretch = longest_above(times + p.warm_up, n - p.warm_up, out->figure[MAQ_RISK_P99].predicted);
    return MAQ_OK;
}

/* Held-out values are put in another order. */
static void judge(struct maq_risk_series *out, double *held, uint32_t n)
{
    out->held_stretch = longest_above(held, n, out->figure[MAQ_RISK_P99].predicted);
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++) {
        struct maq_risk_estimate *e = &out->figure[f];
        e->observed = n == 0 ? (double)NAN : figure_of(held, n, f);
        e->error = e->predicted / e->observed - 1;
    }
    out->judged = n;
}

static enum maq_status fit_series(struct maq_risk_series *out, double *times, uint32_t n, const char *path,
                                  const struct maq_risk_fit_opts *opts, struct maq_arena *arena, struct maq_diag *diag)
{
    uint32_t held = (uint32_t)(opts->holdout * n + 0.5);
    if (n - held < MAQ_SERIES_LEAST)
        return maq_diag_fail(MAQ_BAD_INPUT, diag, MAQ_CODE_RISK_SHORT, (struct maq_span){0}, NULL,
                             "%s: %u steps to learn from; %u are needed", path, n - held, MAQ_SERIES_LEAST);
    out->n = n;
    MAQ_TRY(fit_times(out, times, n - held, arena));
    judge(out, times + n - held, held);
    return MAQ_OK;
}

/* Kernels of a trace, and its steps where there are enough of them. */
static enum maq_status fit_record(struct maq_risk_fit *fit, const char *path, const char *name,
                                  enum maq_record_kind kind, const struct maq_risk_fit_opts *opts,
                                  struct maq_arena *arena, struct maq_diag *diag)
{
    struct maq_risk_record *record = &fit->record[fit->n_records++];
    double *times = NULL;
    uint32_t n = 0;
    *record = (struct maq_risk_record){.name = name, .step_median_s = (double)NAN};
    if (kind == MAQ_RECORD_KERNELS)
        return maq_profile_read(record, path, arena, diag);
    MAQ_TRY(maq_trace_read(record, &times, &n, path, arena, diag));
    record->steps = n;
    double *spare = MAQ_ARENA_NEW(arena, double, n + 1);
    if (!spare)
        return MAQ_NO_MEMORY;
    if (n > 0) {
        memcpy(spare, times, n * sizeof *spare);
        record->step_median_s = maq_quantile(spare, n, 0.5);
    }
    if (n - (uint32_t)(opts->holdout * n + 0.5) < MAQ_SERIES_LEAST)
        return MAQ_OK;
    fit->series[fit->n].name = name;
    fit->series[fit->n].traced = true;
    return fit_series(&fit->series[fit->n++], times, n, path, opts, arena, diag);
}

static enum maq_status fit_file(struct maq_risk_fit *fit, const char *path, const struct maq_risk_fit_opts *opts,
                                struct maq_arena *arena, struct maq_diag *diag)
{
    double *times;
    uint32_t n;
    const char *slash = strrchr(path, '/'), *name = maq_arena_strdup(arena, maq_str_of(slash ? slash + 1 : path));
    enum maq_record_kind kind = maq_record_kind(path);
    if (!name)
        return MAQ_NO_MEMORY;
    if (kind != MAQ_RECORD_TABLE)
        return fit_record(fit, path, name, kind, opts, arena, diag);
    MAQ_TRY(maq_series_read(&times, &n, path, opts->column, arena, diag));
    fit->series[fit->n].name = name;
    return fit_series(&fit->series[fit->n++], times, n, path, opts, arena, diag);
}

enum maq_status maq_risk_fit(struct maq_risk_fit **out, const char *const *paths, uint32_t n_paths,
                             const struct maq_risk_fit_opts *opts, struct maq_diag *diag)
{
    struct maq_arena *arena = maq__calloc(sizeof *arena);
    if (!arena)
        return maq_no_memory(diag, NULL);
    maq_arena_init(arena, (size_t)4 << 30);
    struct maq_risk_fit *fit = MAQ_ARENA_NEW(arena, struct maq_risk_fit, 1);
    enum maq_status status = fit ? MAQ_OK : MAQ_NO_MEMORY;
    if (fit) {
        *fit = (struct maq_risk_fit){.owner = arena};
        fit->series = MAQ_ARENA_NEW(arena, struct maq_risk_series, n_paths);
        fit->record = MAQ_ARENA_NEW(arena, struct maq_risk_record, n_paths);
        status = fit->series && fit->record ? MAQ_OK : MAQ_NO_MEMORY;
    }
    for (uint32_t i = 0; status == MAQ_OK && i < n_paths; i++)
        status = fit_file(fit, paths[i], opts, arena, diag);
    if (status != MAQ_OK) {
        if (status == MAQ_NO_MEMORY && maq_diag_errors(diag) == 0)
            (void)maq_diag_fail(status, diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL,
                                "out of memory for a fit");
        maq_arena_fini(arena);
        free(arena);
        return status;
    }
    *out = fit;
    return MAQ_OK;
}

void maq_risk_fit_free(struct maq_risk_fit *fit)
{
    if (!fit)
        return;
    struct maq_arena *arena = fit->owner;
    maq_arena_fini(arena);
    free(arena);
}
