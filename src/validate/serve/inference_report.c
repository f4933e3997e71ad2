/* SPDX-License-Identifier: Apache-2.0 */
/* inference_report.c - the result of `validate serve` as text and as JSON. */
#include <math.h>

#include "base/str.h"
#include "maquette/validate_serve.h"
#include "validate/error_table.h"
#include "validate/worst.h"

#define REPORT_MAX ((size_t)256 << 20)

const char *maq_validate_serve_metric_name(enum maq_validate_serve_metric metric)
{
    static const char *const names[MAQ_VALIDATE_SERVE_METRICS] = {"tpot", "ttft", "throughput"};
    return (unsigned)metric < MAQ_VALIDATE_SERVE_METRICS ? names[metric] : "unknown";
}

static double error_of(const void *of, uint32_t i)
{
    return ((const struct maq_validate_serve *)of)->rows[i].error;
}

static void add_row(struct maq_buf *b, const void *of, uint32_t i)
{
    const struct maq_validate_serve_row *row = &((const struct maq_validate_serve *)of)->rows[i];
    maq_buf_addf(b, "%+6.1f %%  %-10s %s\n", 100 * row->error, maq_validate_serve_metric_name(row->metric), row->id);
}

char *maq_validate_serve_text(const struct maq_validate_serve *r, uint32_t worst)
{
    struct maq_buf b;
    maq_buf_init(&b, REPORT_MAX);
    maq_buf_adds(&b, "  errors in %                                     rows  median   mean    p90   bias  inside\n");
    for (uint32_t i = 0; i < r->n_groups; i++) {
        const struct maq_validate_serve_group *g = &r->groups[i];
        maq_buf_addf(&b, "  %-22s %-10s %-13s %6u", g->kind, maq_validate_serve_metric_name(g->metric),
                     g->complete ? "" : "(incomplete)", g->stat.n);
        maq__add_errors(&b, 7, &g->stat);
        if (!isnan(g->inside))
            maq_buf_addf(&b, " %7.1f", 100 * g->inside);
        maq_buf_adds(&b, "\n");
    }
    uint32_t left = 0;
    for (uint32_t i = 0; i < r->n_left_out; i++)
        left += r->left_out[i].rows;
    struct maq_left_out l = maq__left_out(&b, left, r->n_table);
    for (uint32_t i = 0; i < r->n_left_out; i++)
        maq__left_out_add(&l, r->left_out[i].rows, r->left_out[i].why);
    maq__left_out_end(&l);
    if (worst > 0)
        maq__add_worst(&b, &(struct maq_worst){r, r->n, error_of, add_row}, NULL, worst);
    return maq_buf_take(&b);
}

char *maq_validate_serve_json(const struct maq_validate_serve *r)
{
    struct maq_json_document d;
    maq_json_begin(&d, "maquette.validate.serve/1");
    struct maq_json rows = maq_json_list(d.root, "rows");
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_validate_serve_row *row = &r->rows[i];
        struct maq_json item = maq_json_item(rows);
        maq_json_text(item, "id", row->id);
        maq_json_text(item, "source", row->source);
        maq_json_text(item, "metric", maq_validate_serve_metric_name(row->metric));
        maq_json_text(item, "kind", row->kind);
        maq_json_bool(item, "complete", row->complete);
        maq_json_text(item, "framework", row->framework);
        maq_json_text(item, "version", row->version);
        maq_json_text(item, "model", row->model);
        maq_json_text(item, "device", row->device);
        maq_json_text(item, "precision", row->precision);
        MAQ_JSON_INTS(item, {"tp", row->tp}, {"pp", row->pp}, {"ep", row->ep}, {"dp", row->dp});
        MAQ_JSON_REALS(item, {"isl", row->isl}, {"osl", row->osl}, {"load", row->load});
        maq__json_compared(item, row->measured, row->predicted, row->error);
    }
    struct maq_json groups = maq_json_list(d.root, "groups");
    for (uint32_t i = 0; i < r->n_groups; i++) {
        struct maq_json item = maq_json_item(groups);
        maq_json_text(item, "kind", r->groups[i].kind);
        maq_json_text(item, "metric", maq_validate_serve_metric_name(r->groups[i].metric));
        maq_json_bool(item, "complete", r->groups[i].complete);
        maq__json_errors(item, &r->groups[i].stat);
        maq_json_real(item, "inside", r->groups[i].inside);
    }
    struct maq_json left = maq_json_map(d.root, "left_out");
    for (uint32_t i = 0; i < r->n_left_out; i++)
        maq_json_int(left, r->left_out[i].why, r->left_out[i].rows);
    return maq_json_take(&d);
}
