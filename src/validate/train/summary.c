/* SPDX-License-Identifier: Apache-2.0 */
/*
 * summary.c - what a table of errors says.
 *
 * For n rows with signed errors e: median, mean and 90th percentile of |e|, and the mean and median of e (bias). Over
 * several sources three totals:
 * every row alike; every source alike (a row weighs 1 / rows of its source: quantiles are those of the weighted
 * distribution, the smallest x with at least q of the weight at or below it); and at most 40 rows of a source, evenly
 * spaced in the order of the table. Those capped rows are chosen once, over the whole table; a group's `capped`
 * counts the ones that are in the group.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/stat/summary.h"
#include "base/str.h"
#include "validate/stat.h"
#include "validate/train/run.h"

static bool in_part(const struct maq_validate_row *row, int part)
{
    static const char *const names[MAQ_VALIDATE_PART_COUNT] = {"", "full", "near"};
    return part == MAQ_VALIDATE_ALL || maq_str_ieq(maq_str_of(row->completeness), names[part]);
}

static bool is_used(const struct maq_validate_row *row, int metric, int part)
{
    return row->points[metric].skip == MAQ_VALIDATE_SKIP_NONE && in_part(row, part);
}

/* ---- groups ---- */

/* A row and the group it is in: sorted by label, then in the order of the table. */
struct member {
    const char *label;
    uint32_t row;
};

/* The rows, and scratch of the size of the table. */
struct summary {
    struct maq_validate_owner *owner;
    const struct maq_validate_row *rows;
    uint32_t n;
    double *errors;
    struct maq_weighted *weighted;
    struct member *members;
};

/* "8" before "16", "1-64" before "513+". */
static int by_label(const void *pa, const void *pb)
{
    const struct member *a = pa, *b = pb;
    int c = strverscmp(a->label, b->label);
    if (c == 0)
        c = strcmp(a->label, b->label);
    return c != 0 ? c : (a->row > b->row) - (a->row < b->row);
}

static void fill_stats(struct maq_validate_group *g, const struct summary *s, const struct member *m, uint32_t n,
                       int metric, int part)
{
    uint32_t all = 0, capped = 0;
    for (uint32_t i = 0; i < n; i++)
        if (is_used(&s->rows[m[i].row], metric, part))
            s->errors[all++] = s->rows[m[i].row].points[metric].error;
    g->stats[metric][part] = maq__validate_stat(s->errors, all);
    for (uint32_t i = 0; i < n; i++)
        if (maq__validate_is_capped(s->owner, m[i].row, metric, part))
            s->errors[capped++] = s->rows[m[i].row].points[metric].error;
    g->capped[metric][part] = maq__validate_stat(s->errors, capped);
}

static void add_coverage(struct maq_validate_coverage *c, const struct maq_validate_row *row, int metric)
{
    double measured = row->points[metric].measured;
    c->below += measured < row->low[metric];
    c->above += measured > row->high[metric];
    c->inside += measured >= row->low[metric] && measured <= row->high[metric];
}

static void fill_coverage(struct maq_validate_group *g, const struct summary *s, const struct member *m, uint32_t n,
                          int metric)
{
    for (uint32_t i = 0; i < n; i++) {
        if (is_used(&s->rows[m[i].row], metric, MAQ_VALIDATE_ALL))
            add_coverage(&g->coverage[metric], &s->rows[m[i].row], metric);
        if (maq__validate_is_capped(s->owner, m[i].row, metric, MAQ_VALIDATE_ALL))
            add_coverage(&g->capped_coverage[metric], &s->rows[m[i].row], metric);
    }
}

static void fill_group(struct maq_validate_group *g, const struct summary *s, const struct member *m, uint32_t n)
{
    for (int metric = 0; metric < MAQ_VALIDATE_METRIC_COUNT; metric++) {
        for (int part = 0; part < MAQ_VALIDATE_PART_COUNT; part++)
            fill_stats(g, s, m, n, metric, part);
        for (uint32_t i = 0; i < n; i++)
            g->skipped[metric][s->rows[m[i].row].points[metric].skip]++;
        g->skipped[metric][MAQ_VALIDATE_SKIP_NONE] = 0;
        fill_coverage(g, s, m, n, metric);
    }
    for (uint32_t i = 0; i < n; i++)
        g->rows += s->rows[m[i].row].points[0].skip != MAQ_VALIDATE_SKIP_FILTERED;
}

/* Lists the rows that have a label into s->members, sorted; returns how many. */
static uint32_t sort_members(struct summary *s, enum maq_validate_by by)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->rows[i].points[0].skip != MAQ_VALIDATE_SKIP_FILTERED && s->rows[i].label[by][0])
            s->members[n++] = (struct member){s->rows[i].label[by], i};
    qsort(s->members, n, sizeof s->members[0], by_label);
    return n;
}

/* Length of the run of equal labels that starts at m[0]. */
static uint32_t run_length(const struct member *m, uint32_t n)
{
    uint32_t run = 1;
    while (run < n && strcmp(m[run].label, m[0].label) == 0)
        run++;
    return run;
}

static bool group_by(struct maq_validate_grouping *out, struct summary *s, enum maq_validate_by by)
{
    uint32_t n = sort_members(s, by);
    for (uint32_t i = 0; i < n; i += run_length(&s->members[i], n - i))
        out->n++;
    struct maq_validate_group *g = MAQ_ARENA_NEW(&s->owner->arena, struct maq_validate_group, out->n);
    out->groups = g;
    for (uint32_t i = 0, run; g && i < n; i += run, g++) {
        run = run_length(&s->members[i], n - i);
        g->name = s->members[i].label;
        fill_group(g, s, &s->members[i], run);
    }
    return out->groups != NULL;
}

/* ---- totals ---- */

/* Of n rows of a source the k-th is taken when it starts a new one of MAQ_VALIDATE_CAP equal parts. */
static void cap_source(struct summary *s, const struct member *m, uint32_t n, int metric, int part)
{
    uint64_t of = 0, k = 0;
    for (uint32_t i = 0; i < n; i++)
        of += is_used(&s->rows[m[i].row], metric, part);
    for (uint32_t i = 0; i < n; i++) {
        if (!is_used(&s->rows[m[i].row], metric, part))
            continue;
        if (of <= MAQ_VALIDATE_CAP || k == 0 || k * MAQ_VALIDATE_CAP / of != (k - 1) * MAQ_VALIDATE_CAP / of)
            s->owner->capped[m[i].row] |= maq__validate_cap_bit(metric, part);
        k++;
    }
}

static void choose_capped(struct summary *s)
{
    uint32_t n = sort_members(s, MAQ_VALIDATE_BY_SOURCE);
    for (uint32_t i = 0, run; i < n; i += run) {
        run = run_length(&s->members[i], n - i);
        for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
            for (int part = 0; part < MAQ_VALIDATE_PART_COUNT; part++)
                cap_source(s, &s->members[i], run, m, part);
    }
}

static struct maq_validate_stat stat_of_weighted(struct summary *s, uint32_t n, uint32_t sources)
{
    struct maq_validate_stat stat = maq__validate_stat(NULL, 0);
    stat.n = n;
    stat.sources = sources;
    if (n == 0)
        return stat;
    double mean = 0, bias = 0;
    stat.median_signed = maq_weighted_quantile(s->weighted, n, 0.5);
    for (uint32_t i = 0; i < n; i++) {
        bias += s->weighted[i].weight * s->weighted[i].value;
        s->weighted[i].value = fabs(s->weighted[i].value);
        mean += s->weighted[i].weight * s->weighted[i].value;
    }
    stat.median = maq_weighted_quantile(s->weighted, n, 0.5);
    stat.p90 = maq_weighted_quantile(s->weighted, n, 0.9);
    stat.mean = mean / sources;
    stat.bias = bias / sources;
    return stat;
}

/* Every source alike. */
static struct maq_validate_stat weigh_sources(struct summary *s, int metric, int part)
{
    uint32_t n = sort_members(s, MAQ_VALIDATE_BY_SOURCE), used = 0, sources = 0;
    for (uint32_t i = 0, run; i < n; i += run) {
        uint32_t from = used;
        run = run_length(&s->members[i], n - i);
        for (uint32_t k = i; k < i + run; k++)
            if (is_used(&s->rows[s->members[k].row], metric, part))
                s->weighted[used++].value = s->rows[s->members[k].row].points[metric].error;
        for (uint32_t k = from; k < used; k++)
            s->weighted[k].weight = 1.0 / (used - from);
        sources += used > from;
    }
    return stat_of_weighted(s, used, sources);
}

static void fill_totals(struct summary *s)
{
    struct maq_validate_result *r = &s->owner->result;
    for (uint32_t i = 0; i < s->n; i++)
        s->members[i] = (struct member){"", i};
    r->total = (struct maq_validate_group){.name = "total"};
    fill_group(&r->total, s, s->members, s->n);
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
        for (int part = 0; part < MAQ_VALIDATE_PART_COUNT; part++) {
            r->weighted[m][part] = weigh_sources(s, m, part);
            r->total.stats[m][part].sources = r->total.capped[m][part].sources = r->weighted[m][part].sources;
        }
}

enum maq_status maq__validate_summarize(struct maq_validate_owner *owner, struct maq_diag *diag)
{
    struct maq_validate_result *r = &owner->result;
    struct summary s = {.owner = owner, .rows = r->rows, .n = r->n_rows};
    s.errors = MAQ_ARENA_NEW(&owner->arena, double, s.n);
    s.weighted = MAQ_ARENA_NEW(&owner->arena, struct maq_weighted, s.n);
    s.members = MAQ_ARENA_NEW(&owner->arena, struct member, s.n);
    owner->capped = MAQ_ARENA_NEW(&owner->arena, uint8_t, s.n);
    bool ok = s.errors && s.weighted && s.members && owner->capped;
    if (ok) {
        choose_capped(&s);
        fill_totals(&s);
    }
    for (int by = 0; ok && by < MAQ_VALIDATE_BY_COUNT; by++)
        ok = group_by(&r->by[by], &s, (enum maq_validate_by)by);
    ok = ok && maq__validate_baseline(owner) && maq__validate_rank(owner);
    if (!ok)
        return maq_no_memory(diag, "the statistics");
    return MAQ_OK;
}
