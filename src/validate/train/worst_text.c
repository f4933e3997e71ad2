/* SPDX-License-Identifier: Apache-2.0 */
/*
 * worst_text.c - the rows with the largest errors: what was predicted, what it would take to explain the residual, what was assumed.
 *
 * A residual has no known cause; but each contributor has a factor that would explain all of it: a bucket of t seconds and a residual of
 * d seconds need (t + d) / t. A factor near 1 is plausible, one of 20 is not, and a negative one means that the bucket is not long enough.
 */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "validate/train/run.h"
#include "validate/worst.h"

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

/* ---- the largest contributors ---- */

#define NAMED 3 /* contributors that are named */

struct contributor {
    const char *name;
    double amount; /* seconds or bytes */
};

static int by_amount(const void *pa, const void *pb)
{
    const struct contributor *a = pa, *b = pb;
    return (a->amount < b->amount) - (a->amount > b->amount);
}

static uint32_t contributors_of(struct contributor out[MAQ_BUCKET_COUNT], const struct maq_validate_row *row,
                                int metric)
{
    uint32_t n = metric == MAQ_VALIDATE_TIME ? (uint32_t)MAQ_BUCKET_COUNT : (uint32_t)MAQ_MEM_COUNT;
    for (uint32_t i = 0; i < n; i++)
        out[i] = metric == MAQ_VALIDATE_TIME
                     ? (struct contributor){maq_bucket_name((enum maq_bucket)i),
                                            row->bucket_share[i] * row->points[metric].predicted}
                     : (struct contributor){maq_mem_name((enum maq_mem_kind)i), row->mem_bytes[i]};
    qsort(out, n, sizeof out[0], by_amount);
    return n;
}

/* "1.9 s missing (12 ms per layer and microbatch): backward would have to be 1.6 times as long, forward 2.1, tp comm 4.4" */
static void add_explanation(struct maq_buf *b, const struct maq_validate_row *row, int metric)
{
    struct contributor c[MAQ_BUCKET_COUNT];
    const struct maq_validate_point *p = &row->points[metric];
    double residual = p->measured - p->predicted;
    uint32_t n = contributors_of(c, row, metric);
    maq_buf_adds(b, "      ");
    add_amount(b, metric, fabs(residual));
    maq_buf_adds(b, residual > 0 ? " missing" : " too much");
    if (metric == MAQ_VALIDATE_TIME && row->passes > 0) {
        maq_buf_adds(b, " (");
        add_amount(b, metric, fabs(residual) / row->passes);
        maq_buf_adds(b, " per layer and microbatch)");
    }
    bool any = false;
    for (uint32_t i = 0; i < NAMED && i < n && c[i].amount > 0; i++) {
        double factor = (c[i].amount + residual) / c[i].amount;
        if (factor < 0)
            continue;
        maq_buf_addf(b, any ? ", %s %.*f" : ": to explain it, %s would have to be %.*f times", c[i].name,
                     factor < 10 ? 2 : 0, factor);
        maq_buf_adds(b, any ? "" : metric == MAQ_VALIDATE_TIME ? " as long" : " as large");
        any = true;
    }
    maq_buf_adds(b, any ? "\n" : ": more than any part of the prediction\n");
}

struct worst_of {
    const struct maq_validate_result *result;
    int metric;
};

static double error_of(const void *of, uint32_t i)
{
    const struct worst_of *w = of;
    const struct maq_validate_point *p = &w->result->rows[i].points[w->metric];
    return p->skip == MAQ_VALIDATE_SKIP_NONE ? p->error : (double)NAN;
}

static void add_row(struct maq_buf *b, const void *of, uint32_t i)
{
    const struct worst_of *w = of;
    const struct maq_validate_row *row = &w->result->rows[i];
    const struct maq_validate_point *p = &row->points[w->metric];
    maq_buf_addf(b, "    %+.1f %%  %s (line %u): %s on %u x %s, measured ", 100 * p->error, row->id, row->line,
                 row->model, row->devices, row->gpu);
    add_amount(b, w->metric, p->measured);
    maq_buf_adds(b, ", predicted ");
    add_amount(b, w->metric, p->predicted);
    maq_buf_adds(b, "\n");
    add_shares(b, row, w->metric);
    add_explanation(b, row, w->metric);
    for (uint32_t k = 0; k < row->n_assumed; k++)
        maq_buf_addf(b, "      assumed: %s\n", row->assumed[k]);
}

void maq__validate_add_worst(struct maq_buf *b, const struct maq_validate_result *r, int metric, uint32_t worst)
{
    const struct worst_of of = {r, metric};
    maq__add_worst(b, &(struct maq_worst){&of, r->n_rows, error_of, add_row}, NULL, worst);
}
