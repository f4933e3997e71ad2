/*
 * validate_text.c - a result for people: a table per metric, why rows were left out, and the worst rows.
 *
 * Errors are percentages of what was measured: 100 (predicted / measured - 1); bias is their mean with sign: minus means predicted too
 * short or too small.
 */
#include "maquette/validate.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"

#define MAX_BYTES ((size_t)64 << 20)

static const char *percent(char buf[24], double x, bool sign)
{
    if (!isfinite(x))
        return "-";
    maq__snprintf(buf, 24, sign ? "%+.1f" : "%.1f", 100 * x);
    return buf;
}

static void add_stat(struct maq_buf *b, const struct maq_validate_stat *s)
{
    char p[4][24];
    maq_buf_addf(b, " %6u %7s %7s %7s %7s", s->n, percent(p[0], s->median, false), percent(p[1], s->mean, false),
                 percent(p[2], s->p90, false), percent(p[3], s->bias, true));
}

/* One line: all rows, then full and near as count, median and bias. */
static void add_line(struct maq_buf *b, const char *name, const struct maq_validate_stat stats[MAQ_VALIDATE_PART_COUNT])
{
    char p[2][24];
    maq_buf_addf(b, "  %-26.26s", name);
    add_stat(b, &stats[MAQ_VALIDATE_ALL]);
    for (int part = MAQ_VALIDATE_FULL; part < MAQ_VALIDATE_PART_COUNT; part++)
        maq_buf_addf(b, "  %6u %7s %7s", stats[part].n, percent(p[0], stats[part].median, false),
                     percent(p[1], stats[part].bias, true));
    maq_buf_adds(b, "\n");
}

static void add_groups(struct maq_buf *b, const char *title, const struct maq_validate_group *g, uint32_t n, int metric)
{
    maq_buf_addf(b, "\n  %s\n", title);
    for (uint32_t i = 0; i < n; i++)
        if (g[i].stats[metric][MAQ_VALIDATE_ALL].n > 0)
            add_line(b, g[i].name, g[i].stats[metric]);
}

static void add_skips(struct maq_buf *b, const struct maq_validate_group *g, int metric)
{
    uint32_t left_out = 0;
    for (int k = MAQ_VALIDATE_SKIP_PARTIAL; k < MAQ_VALIDATE_SKIP_COUNT; k++)
        left_out += g->skipped[metric][k];
    maq_buf_addf(b, "\n  %u of %u rows left out", left_out, g->rows);
    bool first = true;
    for (int k = MAQ_VALIDATE_SKIP_PARTIAL; k < MAQ_VALIDATE_SKIP_COUNT; k++)
        if (g->skipped[metric][k] > 0) {
            maq_buf_addf(b, "%s %u %s", first ? ":" : ",", g->skipped[metric][k],
                         maq_validate_skip_text((enum maq_validate_skip)k));
            first = false;
        }
    maq_buf_adds(b, "\n");
}

/* ---- worst rows ---- */

struct ranked {
    double error;
    uint32_t row;
};

static int by_error(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->error < y->error || x->error > y->error)
        return x->error < y->error ? 1 : -1;
    return (x->row > y->row) - (x->row < y->row);
}

static const struct maq_validate_row **sorted_by_error(const struct maq_validate_result *r, int metric, uint32_t *n)
{
    struct ranked *ranked = malloc(((size_t)r->n_rows + 1) * sizeof *ranked);
    const struct maq_validate_row **rows = malloc(((size_t)r->n_rows + 1) * sizeof *rows);
    uint32_t used = 0;
    for (uint32_t i = 0; ranked && rows && i < r->n_rows; i++)
        if (r->rows[i].points[metric].skip == MAQ_VALIDATE_SKIP_NONE)
            ranked[used++] = (struct ranked){fabs(r->rows[i].points[metric].error), i};
    if (ranked && rows) {
        qsort(ranked, used, sizeof *ranked, by_error);
        for (uint32_t i = 0; i < used; i++)
            rows[i] = &r->rows[ranked[i].row];
    }
    free(ranked);
    *n = used;
    return rows;
}

static void add_amount(struct maq_buf *b, int metric, double x)
{
    char buf[32];
    maq_buf_adds(b, metric == MAQ_VALIDATE_TIME ? maq_format_time(buf, x) : maq_format_bytes(buf, x));
}

static void add_shares(struct maq_buf *b, const struct maq_validate_row *row, int metric)
{
    double total = 0;
    for (int i = 0; i < MAQ_MEM_COUNT; i++)
        total += row->mem_bytes[i];
    maq_buf_adds(b, "      predicted:");
    int n = metric == MAQ_VALIDATE_TIME ? (int)MAQ_BUCKET_COUNT : (int)MAQ_MEM_COUNT;
    for (int i = 0; i < n; i++) {
        double share = metric == MAQ_VALIDATE_TIME ? row->bucket_share[i] : total > 0 ? row->mem_bytes[i] / total : 0;
        const char *name =
            metric == MAQ_VALIDATE_TIME ? maq_bucket_name((enum maq_bucket)i) : maq_mem_name((enum maq_mem_kind)i);
        if (share >= 0.005)
            maq_buf_addf(b, " %s %.0f %%,", name, 100 * share);
    }
    if (b->ptr && b->len > 0 && b->ptr[b->len - 1] == ',')
        b->len--;
    maq_buf_adds(b, "\n");
}

static void add_worst(struct maq_buf *b, const struct maq_validate_result *r, int metric, uint32_t worst)
{
    uint32_t n = 0;
    const struct maq_validate_row **rows = sorted_by_error(r, metric, &n);
    if (!rows) {
        b->failed = true;
        return;
    }
    maq_buf_addf(b, "\n  worst %u\n", worst < n ? worst : n);
    for (uint32_t i = 0; i < n && i < worst; i++) {
        const struct maq_validate_point *p = &rows[i]->points[metric];
        char percents[24];
        maq_buf_addf(b, "    %s %%  %s (line %u): %s on %u x %s, measured ", percent(percents, p->error, true),
                     rows[i]->id, rows[i]->line, rows[i]->model, rows[i]->devices, rows[i]->gpu);
        add_amount(b, metric, p->measured);
        maq_buf_adds(b, ", predicted ");
        add_amount(b, metric, p->predicted);
        maq_buf_adds(b, "\n");
        add_shares(b, rows[i], metric);
        for (uint32_t k = 0; k < rows[i]->n_assumed; k++)
            maq_buf_addf(b, "      assumed: %s\n", rows[i]->assumed[k]);
    }
    free(rows);
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
    maq_buf_addf(b, "  %-26s %6s %7s %7s %7s %7s  %-22s  %-22s\n", "", "all", "", "", "", "", "  full", "  near");
    maq_buf_addf(b, "  %-26s %6s %7s %7s %7s %7s  %6s %7s %7s  %6s %7s %7s\n", "", "rows", "median", "mean", "p90",
                 "bias", "rows", "median", "bias", "rows", "median", "bias");
    add_line(b, "every row alike", r->total.stats[metric]);
    add_line(b, "every source alike", r->weighted[metric]);
    add_line(b, "40 rows of a source", r->capped[metric]);
    add_groups(b, "by source", r->sources, r->n_sources, metric);
    add_groups(b, "by number of devices", r->sizes, r->n_sizes, metric);
    add_groups(b, "by device", r->devices, r->n_devices, metric);
    add_skips(b, &r->total, metric);
    if (worst > 0)
        add_worst(b, r, metric, worst);
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
    if (b.failed) {
        maq_buf_fini(&b);
        return NULL;
    }
    return b.ptr;
}
