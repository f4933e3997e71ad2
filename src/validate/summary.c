/*
 * summary.c - what a table of errors says.
 *
 * For n rows with signed errors e: median, mean and 90th percentile of |e|, and the mean and median of e (bias). Over several sources three totals:
 * every row alike; every source alike (a row weighs 1 / rows of its source: quantiles are those of the weighted distribution, the smallest x
 * with at least q of the weight at or below it); and at most 40 rows of a source, evenly spaced in the order of the table.
 */
#include "validate/validate_internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/stats.h"
#include "base/str.h"
#include "validate/codes.h"

struct weighted {
    double error, weight;
};

static bool in_part(const struct maq_validate_row *row, int part)
{
    static const char *const names[MAQ_VALIDATE_PART_COUNT] = {"", "full", "near"};
    return part == MAQ_VALIDATE_ALL || strcmp(row->completeness, names[part]) == 0;
}

static bool is_used(const struct maq_validate_row *row, int metric, int part)
{
    return row->points[metric].skip == MAQ_VALIDATE_SKIP_NONE && in_part(row, part);
}

static struct maq_validate_stat no_stat(void)
{
    double nan_value = (double)NAN;
    return (struct maq_validate_stat){
        .median = nan_value, .mean = nan_value, .p90 = nan_value, .bias = nan_value, .median_signed = nan_value};
}

struct maq_validate_stat maq__validate_stat(double *errors, uint32_t n)
{
    struct maq_validate_stat s = no_stat();
    s.n = n;
    if (n == 0)
        return s;
    s.median_signed = maq_quantile(errors, n, 0.5);
    s.bias = maq_mean(errors, n);
    for (uint32_t i = 0; i < n; i++)
        errors[i] = fabs(errors[i]);
    s.median = maq_quantile(errors, n, 0.5);
    s.p90 = maq_quantile(errors, n, 0.9);
    s.mean = maq_mean(errors, n);
    return s;
}

/* ---- groups ---- */

/* Scratch of the size of the table, and the rows. */
struct summary {
    struct maq_validate_owner *owner;
    const struct maq_validate_row *rows;
    uint32_t n;
    double *errors;
    struct weighted *weighted;
    uint32_t *source_of; /* index into result.sources */
};

typedef bool row_test(const struct maq_validate_row *row, const void *what);

static void fill_group(struct maq_validate_group *g, const struct summary *s, row_test *test, const void *what)
{
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++) {
        for (int part = 0; part < MAQ_VALIDATE_PART_COUNT; part++) {
            uint32_t n = 0;
            for (uint32_t i = 0; i < s->n; i++)
                if (test(&s->rows[i], what) && is_used(&s->rows[i], m, part))
                    s->errors[n++] = s->rows[i].points[m].error;
            g->stats[m][part] = maq__validate_stat(s->errors, n);
        }
        for (uint32_t i = 0; i < s->n; i++)
            if (test(&s->rows[i], what))
                g->skipped[m][s->rows[i].points[m].skip]++;
        g->skipped[m][MAQ_VALIDATE_SKIP_NONE] = 0;
    }
    for (uint32_t i = 0; i < s->n; i++)
        g->rows += test(&s->rows[i], what) && s->rows[i].points[0].skip != MAQ_VALIDATE_SKIP_FILTERED;
}

static bool any_row(const struct maq_validate_row *row, const void *what)
{
    (void)row;
    (void)what;
    return true;
}

static bool of_source(const struct maq_validate_row *row, const void *what)
{
    return strcmp(row->source, (const char *)what) == 0;
}

static bool of_device(const struct maq_validate_row *row, const void *what)
{
    return strcmp(row->gpu, (const char *)what) == 0;
}

struct range {
    const char *name;
    uint32_t from, to;
};
static const struct range sizes[] = {{"1-64", 1, 64}, {"65-512", 65, 512}, {"513+", 513, UINT32_MAX}};

static bool of_size(const struct maq_validate_row *row, const void *what)
{
    const struct range *r = what;
    return row->devices >= r->from && row->devices <= r->to;
}

static int by_text(const void *a, const void *b)
{
    const char *const *pa = a, *const *pb = b;
    return strcmp(*pa, *pb);
}

/* The distinct texts of a column over the rows that pass the filters, sorted; *n of them. */
static const char **distinct(struct summary *s, size_t offset, uint32_t *n)
{
    const char **all = MAQ_ARENA_NEW(&s->owner->arena, const char *, s->n);
    uint32_t count = 0, kept = 0;
    if (!all)
        return NULL;
    for (uint32_t i = 0; i < s->n; i++)
        if (s->rows[i].points[0].skip != MAQ_VALIDATE_SKIP_FILTERED)
            memcpy(&all[count++], (const char *)&s->rows[i] + offset, sizeof all[0]);
    if (count > 0)
        qsort(all, count, sizeof all[0], by_text);
    for (uint32_t i = 0; i < count; i++)
        if (i == 0 || strcmp(all[i], all[kept - 1]) != 0)
            all[kept++] = all[i];
    *n = kept;
    return all;
}

/* Groups cost rows x groups: a table of a million sources is cut to the first 1,000. */
#define MAX_GROUPS 1000u

static const struct maq_validate_group *groups_of(struct summary *s, size_t offset, row_test *test, uint32_t *n)
{
    const char **names = distinct(s, offset, n);
    if (names && *n > MAX_GROUPS)
        *n = MAX_GROUPS;
    struct maq_validate_group *g = names ? MAQ_ARENA_NEW(&s->owner->arena, struct maq_validate_group, *n) : NULL;
    for (uint32_t i = 0; g && i < *n; i++) {
        g[i].name = names[i];
        fill_group(&g[i], s, test, names[i]);
    }
    return g;
}

static const struct maq_validate_group *groups_by_size(struct summary *s)
{
    struct maq_validate_group *g = MAQ_ARENA_NEW(&s->owner->arena, struct maq_validate_group, MAQ_COUNT(sizes));
    for (size_t i = 0; g && i < MAQ_COUNT(sizes); i++) {
        g[i].name = sizes[i].name;
        fill_group(&g[i], s, of_size, &sizes[i]);
    }
    return g;
}

/* ---- totals ---- */

static int by_error(const void *a, const void *b)
{
    double x = ((const struct weighted *)a)->error, y = ((const struct weighted *)b)->error;
    return (x > y) - (x < y);
}

static double weighted_quantile(const struct weighted *w, uint32_t n, double total, double q)
{
    double sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        sum += w[i].weight;
        if (sum >= q * total * (1 - 1e-12))
            return w[i].error;
    }
    return w[n - 1].error;
}

static void weigh_sources(struct maq_validate_stat *out, struct summary *s, int metric, int part)
{
    const struct maq_validate_result *r = &s->owner->result;
    struct maq_validate_stat stat = no_stat();
    double total = 0, bias = 0;
    uint32_t n = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!is_used(&s->rows[i], metric, part) || s->source_of[i] == UINT32_MAX)
            continue;
        double w = 1.0 / r->sources[s->source_of[i]].stats[metric][part].n;
        s->weighted[n++] = (struct weighted){s->rows[i].points[metric].error, w};
        bias += w * s->rows[i].points[metric].error;
        total += w;
    }
    stat.n = n;
    stat.sources = (uint32_t)(total + 0.5);
    if (n > 0) {
        double mean = 0;
        qsort(s->weighted, n, sizeof s->weighted[0], by_error);
        stat.median_signed = weighted_quantile(s->weighted, n, total, 0.5);
        for (uint32_t i = 0; i < n; i++) {
            s->weighted[i].error = fabs(s->weighted[i].error);
            mean += s->weighted[i].weight * s->weighted[i].error;
        }
        qsort(s->weighted, n, sizeof s->weighted[0], by_error);
        stat.median = weighted_quantile(s->weighted, n, total, 0.5);
        stat.p90 = weighted_quantile(s->weighted, n, total, 0.9);
        stat.mean = mean / total;
        stat.bias = bias / total;
    }
    *out = stat;
}

/* Of n rows of a source the k-th is taken when it starts a new one of MAQ_VALIDATE_CAP equal parts. */
static void cap_sources(struct maq_validate_stat *out, struct summary *s, int metric, int part)
{
    const struct maq_validate_result *r = &s->owner->result;
    uint32_t n = 0, sources = 0;
    for (uint32_t g = 0; g < r->n_sources; g++) {
        uint64_t of = r->sources[g].stats[metric][part].n, k = 0;
        sources += of > 0;
        for (uint32_t i = 0; i < s->n; i++) {
            if (s->source_of[i] != g || !is_used(&s->rows[i], metric, part))
                continue;
            if (of <= MAQ_VALIDATE_CAP || k == 0 || k * MAQ_VALIDATE_CAP / of != (k - 1) * MAQ_VALIDATE_CAP / of)
                s->errors[n++] = s->rows[i].points[metric].error;
            k++;
        }
    }
    *out = maq__validate_stat(s->errors, n);
    out->sources = sources;
}

static void find_sources(struct summary *s)
{
    const struct maq_validate_result *r = &s->owner->result;
    for (uint32_t i = 0; i < s->n; i++) {
        s->source_of[i] = UINT32_MAX;
        for (uint32_t g = 0; g < r->n_sources && s->source_of[i] == UINT32_MAX; g++)
            if (strcmp(r->sources[g].name, s->rows[i].source) == 0)
                s->source_of[i] = g;
    }
}

static void fill_totals(struct summary *s)
{
    struct maq_validate_result *r = &s->owner->result;
    r->total = (struct maq_validate_group){.name = "total"};
    fill_group(&r->total, s, any_row, NULL);
    find_sources(s);
    for (int m = 0; m < MAQ_VALIDATE_METRIC_COUNT; m++)
        for (int part = 0; part < MAQ_VALIDATE_PART_COUNT; part++) {
            weigh_sources(&r->weighted[m][part], s, m, part);
            cap_sources(&r->capped[m][part], s, m, part);
            r->total.stats[m][part].sources = r->weighted[m][part].sources;
        }
}

enum maq_status maq__validate_summarize(struct maq_validate_owner *owner, struct maq_diag *diag)
{
    struct maq_validate_result *r = &owner->result;
    struct summary s = {.owner = owner, .rows = r->rows, .n = r->n_rows};
    s.errors = MAQ_ARENA_NEW(&owner->arena, double, s.n);
    s.weighted = MAQ_ARENA_NEW(&owner->arena, struct weighted, s.n);
    s.source_of = MAQ_ARENA_NEW(&owner->arena, uint32_t, s.n);
    if (s.errors && s.weighted && s.source_of) {
        r->sources = groups_of(&s, offsetof(struct maq_validate_row, source), of_source, &r->n_sources);
        r->devices = groups_of(&s, offsetof(struct maq_validate_row, gpu), of_device, &r->n_devices);
        r->sizes = groups_by_size(&s);
        r->n_sizes = MAQ_COUNT(sizes);
    }
    if (!s.errors || !s.weighted || !s.source_of || !r->sources || !r->devices || !r->sizes)
        return maq_diag_fail(MAQ_NO_MEMORY, diag, MAQ_CODE_NO_MEMORY, (struct maq_span){0}, NULL,
                             "no memory for the statistics");
    fill_totals(&s);
    return MAQ_OK;
}
