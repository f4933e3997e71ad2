/* SPDX-License-Identifier: Apache-2.0 */
/*
 * text.c - a result for people: a table per metric, why rows were left out, the worst rows, the rival and the ranking.
 *
 * Errors are percentages of what was measured: 100 (predicted / measured - 1); bias is their mean with sign: minus means predicted too
 * short or too small.
 */
#include <math.h>

#include "base/check.h"
#include "base/str.h"
#include "validate/error_table.h"
#include "validate/train/run.h"

#define MAX_BYTES ((size_t)64 << 20)

/* ---- errors ---- */

/* Count, median, mean, 90th percentile and bias. */
static void add_stat(struct maq_buf *b, const struct maq_validate_stat *s)
{
    maq_buf_addf(b, "  %5u", s->n);
    maq__add_errors(b, 6, s);
}

/* Without the mean: there is no room for three of them. */
static void add_short_stat(struct maq_buf *b, const struct maq_validate_stat *s)
{
    maq_buf_addf(b, "  %5u", s->n);
    maq__add_percent(b, 6, s->median, false);
    maq__add_percent(b, 6, s->p90, false);
    maq__add_percent(b, 6, s->bias, true);
}

/* One line: all rows, then full and near. */
static void add_line(struct maq_buf *b, const char *name, const struct maq_validate_stat stats[MAQ_VALIDATE_PART_COUNT])
{
    maq_buf_addf(b, "  %-26.26s", name);
    add_stat(b, &stats[MAQ_VALIDATE_ALL]);
    add_short_stat(b, &stats[MAQ_VALIDATE_FULL]);
    add_short_stat(b, &stats[MAQ_VALIDATE_NEAR]);
    maq_buf_adds(b, "\n");
}

static void add_sources(struct maq_buf *b, const struct maq_validate_grouping *g, int metric)
{
    maq_buf_addf(b, "\n  %s\n", maq_validate_by_title(MAQ_VALIDATE_BY_SOURCE));
    for (uint32_t i = 0; i < g->n; i++)
        if (g->groups[i].stats[metric][MAQ_VALIDATE_ALL].n > 0)
            add_line(b, g->groups[i].name, g->groups[i].stats[metric]);
}

/* One line: the capped rows, where no source outweighs the others, then every row. */
static void add_groups(struct maq_buf *b, const struct maq_validate_grouping *g, enum maq_validate_by by, int metric)
{
    maq_buf_addf(b, "\n  %s\n", maq_validate_by_title(by));
    for (uint32_t i = 0; i < g->n; i++) {
        const struct maq_validate_group *group = &g->groups[i];
        if (group->stats[metric][MAQ_VALIDATE_ALL].n == 0)
            continue;
        maq_buf_addf(b, "  %-26.26s", group->name);
        add_stat(b, &group->capped[metric][MAQ_VALIDATE_ALL]);
        add_short_stat(b, &group->stats[metric][MAQ_VALIDATE_ALL]);
        maq_buf_adds(b, "\n");
    }
}

static void add_skips(struct maq_buf *b, const struct maq_validate_group *g, int metric)
{
    uint32_t left_out = 0;
    for (int k = MAQ_VALIDATE_SKIP_PARTIAL; k < MAQ_VALIDATE_SKIP_COUNT; k++)
        left_out += g->skipped[metric][k];
    struct maq_left_out out = maq__left_out(b, left_out, g->rows);
    for (int k = MAQ_VALIDATE_SKIP_PARTIAL; k < MAQ_VALIDATE_SKIP_COUNT; k++)
        maq__left_out_add(&out, g->skipped[metric][k], maq_validate_skip_text((enum maq_validate_skip)k));
    maq__left_out_end(&out);
}

/* ---- the rival ---- */

static void add_rival(struct maq_buf *b, const struct maq_validate_rival *v)
{
    maq_buf_addf(b, "  %-26.26s  %5u", v->name, v->n);
    maq__add_percent(b, 8, v->own_mean, false);
    maq__add_percent(b, 12, v->fitted_mean, false);
    maq__add_percent(b, 12, v->left_out_mean, false);
    if (isfinite(v->utilisation))
        maq__add_percent(b, 12, v->utilisation, false);
    maq_buf_adds(b, "\n");
}

static void add_baseline(struct maq_buf *b, const struct maq_validate_baseline *base)
{
    if (base->total.n == 0)
        return;
    maq_buf_addf(b,
                 "\nagainst one constant utilisation per device: mean |error| in %%, at most %d rows of a source\n\n"
                 "  %-26s  %5s %8s %12s %12s %12s\n  %-26s  %5s %8s %12s %12s %12s\n",
                 MAQ_VALIDATE_CAP, "", "", "", "constant,", "constant,", "its", "", "rows", "maquette", "fitted here",
                 "model unseen", "value (%)");
    add_rival(b, &base->total);
    maq_buf_adds(b, "\n  by device\n");
    for (uint32_t i = 0; i < base->n_devices; i++)
        add_rival(b, &base->devices[i]);
    maq_buf_adds(b, "\n  by source\n");
    for (uint32_t i = 0; i < base->n_sources; i++)
        add_rival(b, &base->sources[i]);
}

/* ---- intervals ---- */

static void add_covered(struct maq_buf *b, const char *name, const struct maq_validate_coverage *c)
{
    uint32_t n = c->below + c->inside + c->above;
    if (n > 0)
        maq_buf_addf(b, "  %-26.26s  %5u %8.1f %8.1f %8.1f\n", name, n, 100.0 * c->inside / n, 100.0 * c->below / n,
                     100.0 * c->above / n);
}

static void add_coverage(struct maq_buf *b, const struct maq_validate_result *r, int metric)
{
    const struct maq_validate_grouping *sources = &r->by[MAQ_VALIDATE_BY_SOURCE];
    if (r->total.stats[metric][MAQ_VALIDATE_ALL].n == 0)
        return;
    maq_buf_addf(b, "\nstated 80 %% interval of the %s: share of measurements in %%\n\n  %-26s  %5s %8s %8s %8s\n",
                 maq_validate_metric_name((enum maq_validate_metric)metric), "", "rows", "inside",
                 metric == MAQ_VALIDATE_TIME ? "shorter" : "smaller",
                 metric == MAQ_VALIDATE_TIME ? "longer" : "larger");
    add_covered(b, "every row alike", &r->total.coverage[metric]);
    add_covered(b, "40 rows of a source", &r->total.capped_coverage[metric]);
    maq_buf_adds(b, "\n  by source\n");
    for (uint32_t i = 0; i < sources->n; i++)
        add_covered(b, sources->groups[i].name, &sources->groups[i].coverage[metric]);
}

/* ---- ranking ---- */

static void add_ranking(struct maq_buf *b, const struct maq_validate_result *r)
{
    if (r->ranking.sweeps == 0)
        return;
    maq_buf_addf(
        b,
        "\nranking of plans: %d rows and more of one source, framework, model, device and number of devices\n\n"
        "  %-26s  %6s %5s %9s %9s %12s\n  %-26s  %6s %5s %9s %9s %12s\n",
        MAQ_VALIDATE_SWEEP_ROWS, "", "", "", "mean", "lowest", "cost of the", "", "sweeps", "rows", "tau", "tau",
        "choice (%)");
    for (uint32_t i = 0; i <= r->n_rankings; i++) {
        const struct maq_validate_ranking *k = i == 0 ? &r->ranking : &r->rankings[i - 1];
        maq_buf_addf(b, "  %-26.26s  %6u %5u %9.3f %9.3f", k->name, k->sweeps, k->rows, k->mean_tau, k->least_tau);
        maq__add_percent(b, 12, k->mean_regret, false);
        maq_buf_adds(b, "\n");
    }
}

/* ---- the whole ---- */

static void add_metric(struct maq_buf *b, const struct maq_validate_result *r, int metric, uint32_t worst)
{
    static const char *const titles[MAQ_VALIDATE_METRIC_COUNT] = {"time per step", "peak memory"};
    if (r->total.stats[metric][MAQ_VALIDATE_ALL].n == 0) {
        maq_buf_addf(b, "\n%s: nothing to compare\n", titles[metric]);
        add_skips(b, &r->total, metric);
        return;
    }
    maq_buf_addf(b, "\n%s: error in %% of the measured value\n\n", titles[metric]);
    maq_buf_addf(b, "  %-26s  %5s %6s %6s %6s %6s  %-26s  %-26s\n", "", "all", "", "", "", "", " full", " near");
    maq_buf_addf(b, "  %-26s  %5s %6s %6s %6s %6s  %5s %6s %6s %6s  %5s %6s %6s %6s\n", "", "rows", "median", "mean",
                 "p90", "bias", "rows", "median", "p90", "bias", "rows", "median", "p90", "bias");
    add_line(b, "every row alike", r->total.stats[metric]);
    add_line(b, "every source alike", r->weighted[metric]);
    add_line(b, "40 rows of a source", r->total.capped[metric]);
    add_sources(b, &r->by[MAQ_VALIDATE_BY_SOURCE], metric);
    maq_buf_addf(b, "\n  %-26s  %-34s %s\n", "", "40 rows of a source", "every row alike");
    maq_buf_addf(b, "  %-26s  %5s %6s %6s %6s %6s  %5s %6s %6s %6s\n", "", "rows", "median", "mean", "p90", "bias",
                 "rows", "median", "p90", "bias");
    for (int by = MAQ_VALIDATE_BY_SOURCE + 1; by < MAQ_VALIDATE_BY_COUNT; by++)
        add_groups(b, &r->by[by], (enum maq_validate_by)by, metric);
    add_skips(b, &r->total, metric);
    if (worst > 0)
        maq__validate_add_worst(b, r, metric, worst);
}

char *maq_validate_text(const struct maq_validate_result *r, uint32_t worst)
{
    struct maq_buf b;
    maq_buf_init(&b, MAX_BYTES);
    maq_buf_addf(&b, "%s: %u rows", r->table, r->n_rows);
    if (r->total.rows < r->n_rows)
        maq_buf_addf(&b, ", %u after the filters", r->total.rows);
    maq_buf_adds(&b, "\n");
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
        add_metric(&b, r, m, worst);
    add_baseline(&b, &r->baseline);
    add_ranking(&b, r);
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
        add_coverage(&b, r, m);
    return maq_buf_take(&b);
}
