/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - a comparison with kernel tables as text for people, as a picture, and as JSON. */
#include <stdlib.h>

#include "base/alloc.h"
#include "base/str.h"
#include "base/text.h"
#include "maquette/validate.h"
#include "validate/error_table.h"
#include "validate/plot.h"

#define MAX_BYTES ((size_t)64 << 20)

static void add_head(struct maq_buf *b, const char *what)
{
    maq_buf_addf(b, "\n  %-40s    rows  median    mean     p90    bias  inside  fitted\n", what);
}

static void add_group(struct maq_buf *b, const char *name, const struct maq_kernel_group *g)
{
    maq_buf_addf(b, "  %-40.40s %7u", name, g->rows);
    maq__add_errors(b, 7, &(struct maq_validate_stat){g->rows, 0, g->median_ape, g->mean_ape, g->p90_ape, g->bias, 0});
    maq__add_percent(b, 7, g->inside, false);
    maq__add_percent(b, 7, g->fitted, false);
    maq_buf_addc(b, '\n');
}

static void add_groups(struct maq_buf *b, const struct maq_validate_kernels *r)
{
    char name[128];
    add_head(b, "kind of operator");
    for (uint32_t i = 0; i < r->n_by_op; i++)
        add_group(b, r->by_op[i].op, &r->by_op[i]);
    add_head(b, "kind and device");
    for (uint32_t i = 0; i < r->n_by_op; i++)
        for (uint32_t j = 0; j < r->n_by_op_device; j++) {
            const struct maq_kernel_group *g = &r->by_op_device[j];
            if (maq_str_is(maq_str_of(g->op), r->by_op[i].op) &&
                maq__snprintf(name, sizeof name, "%s, %s", g->op, g->device) > 0)
                add_group(b, name, g);
        }
    add_head(b, "table");
    for (uint32_t i = 0; i < r->n_by_table; i++) {
        const struct maq_kernel_group *g = &r->by_table[i];
        if (maq__snprintf(name, sizeof name, "%s, %s, %s %s", g->table, g->device, g->library, g->version) > 0)
            add_group(b, name, g);
    }
}

static void add_worst(struct maq_buf *b, const struct maq_validate_kernels *r)
{
    if (r->n_worst > 0)
        maq_buf_addf(b, "\n  worst %u\n", r->n_worst);
    for (uint32_t i = 0; i < r->n_worst; i++) {
        const struct maq_kernel_worst *w = &r->worst[i];
        maq_buf_addf(b, "    %+.1f %%  %s, line %u: measured %.4g us, predicted %.4g us (%s)\n", 100.0 * w->error,
                     w->file, w->line, w->measured_s * 1e6, w->predicted_s * 1e6, maq_provider_name(w->provider));
        if (w->is_coll)
            maq_buf_addf(b, "      %s of %.0f bytes over %u\n", maq_coll_kind_name((enum maq_coll_kind)w->coll.kind),
                         w->coll.bytes, w->coll.at.size);
        else
            maq_buf_addf(b, "      %s %s, queries %u, d %lld %lld %lld %lld %lld %lld %s\n      %s\n",
                         maq_op_kind_name((enum maq_op_kind)w->op.kind), maq_dtype_name((enum maq_dtype)w->op.dtype),
                         w->op.queries, (long long)w->op.d[0], (long long)w->op.d[1], (long long)w->op.d[2],
                         (long long)w->op.d[3], (long long)w->op.d[4], (long long)w->op.d[5], w->kernel, w->why);
    }
}

char *maq_validate_kernels_text(const struct maq_validate_kernels *r)
{
    struct maq_buf b;
    uint64_t used = 0;
    maq_buf_init(&b, MAX_BYTES);
    for (uint32_t i = 0; i < r->n_by_op; i++)
        used += r->by_op[i].rows;
    maq_buf_addf(&b, "%s: %u tables, %llu rows, %llu compared\n", r->path, r->n_files, (unsigned long long)r->n_rows,
                 (unsigned long long)used);
    if (used > 0) {
        maq_buf_adds(&b,
                     "error in % of the measured time; inside: of the stated 80 % interval; fitted: answered by it\n");
        add_groups(&b, r);
    } else {
        maq_buf_adds(&b, "nothing is left to compare\n");
    }
    for (size_t i = 0; maq_validate_kernels_skip(i); i++)
        if (r->skipped[i] > 0)
            maq_buf_addf(&b, "\n  %llu rows left out: %s", (unsigned long long)r->skipped[i],
                         maq_validate_kernels_skip(i));
    maq_buf_adds(&b, "\n");
    add_worst(&b, r);
    if (b.failed)
        maq_buf_fini(&b);
    return b.ptr;
}

/* ---- picture ---- */

char *maq_validate_kernels_svg(const struct maq_validate_kernels *r)
{
    struct maq_plot_point *points = maq__calloc(((size_t)r->n_points + 1) * sizeof *points);
    char about[160], *svg = NULL;
    for (uint32_t i = 0; points && i < r->n_points; i++) {
        double measured = (double)r->points[i].measured_s, predicted = (double)r->points[i].predicted_s;
        points[i] = (struct maq_plot_point){r->by_op[r->points[i].group].op, "", measured, predicted,
                                            predicted / measured - 1.0};
    }
    maq__snprintf(about, sizeof about, "%u of %llu rows of %u tables, evenly chosen", r->n_points,
                  (unsigned long long)r->n_rows, r->n_files);
    if (points)
        svg = maq__plot_svg(&(struct maq_plot){.what = "kernels", .about = about, .points = points, .n = r->n_points});
    free(points);
    return svg;
}

/* ---- JSON ---- */

static void add_stats(struct maq_json at, const struct maq_kernel_group *g)
{
    maq_json_text(at, "op", g->op);
    maq_json_text(at, "device", g->device ? g->device : "all");
    if (g->table) {
        maq_json_text(at, "library", g->library);
        maq_json_text(at, "table", g->table);
        maq_json_text(at, "version", g->version);
    }
    maq_json_int(at, "rows", g->rows);
    maq_json_int(at, "left_out", g->skipped);
    MAQ_JSON_REALS(at, {"median_ape", g->median_ape}, {"p90_ape", g->p90_ape}, {"mean_ape", g->mean_ape},
                   {"bias", g->bias}, {"inside_80", g->inside}, {"fitted", g->fitted});
}

static void add_row(struct maq_json at, const struct maq_kernel_worst *w)
{
    maq_json_text(at, "file", w->file);
    maq_json_int(at, "line", w->line);
    maq_json_text(at, "kind",
                  w->is_coll ? maq_coll_kind_name((enum maq_coll_kind)w->coll.kind)
                             : maq_op_kind_name((enum maq_op_kind)w->op.kind));
    maq_json_text(at, "dtype", w->is_coll ? NULL : maq_dtype_name((enum maq_dtype)w->op.dtype));
    maq_json_text(at, "kernel", w->kernel);
    maq_json_text(at, "provider", maq_provider_name(w->provider));
    maq__json_compared(at, w->measured_s, w->predicted_s, w->error);
    maq_json_text(at, "why", w->why);
}

char *maq_validate_kernels_json(const struct maq_validate_kernels *r)
{
    struct maq_json_document doc;
    maq_json_begin(&doc, "maquette.validate.kernels/1");
    maq_json_text(doc.root, "path", r->path);
    MAQ_JSON_INTS(doc.root, {"tables", r->n_files}, {"other_files", r->n_other}, {"row_count", r->n_rows});
    struct maq_json list = maq_json_list(doc.root, "groups");
    for (uint32_t i = 0; i < r->n_by_op; i++)
        add_stats(maq_json_item(list), &r->by_op[i]);
    for (uint32_t i = 0; i < r->n_by_op_device; i++)
        add_stats(maq_json_item(list), &r->by_op_device[i]);
    list = maq_json_list(doc.root, "by_table");
    for (uint32_t i = 0; i < r->n_by_table; i++)
        add_stats(maq_json_item(list), &r->by_table[i]);
    struct maq_json left_out = maq_json_map(doc.root, "left_out");
    for (size_t i = 1; maq_validate_kernels_skip(i); i++)
        maq_json_int(left_out, maq_validate_kernels_skip(i), (int64_t)r->skipped[i]);
    list = maq_json_list(doc.root, "rows"); /* the worst, as asked for */
    for (uint32_t i = 0; i < r->n_worst; i++)
        add_row(maq_json_item(list), &r->worst[i]);
    return maq_json_take(&doc);
}
