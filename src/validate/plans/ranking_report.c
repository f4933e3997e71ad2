/* SPDX-License-Identifier: Apache-2.0 */
/* ranking_report.c - ranked plans for people, as JSON ("maquette.validate.ranking/1"). */
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "maquette/validate.h"
#include "validate/error_table.h"
#include "validate/worst.h"

#define MAX_BYTES ((size_t)64 << 20)

static bool compared(const struct maq_validate_plan *row)
{
    return !row->filtered && row->why[0] == '\0';
}

/* ---- text ---- */

static void add_figure(struct maq_buf *b, double x, bool percent)
{
    if (percent || !isfinite(x))
        maq__add_percent(b, 11, x, false);
    else
        maq_buf_addf(b, " %11.3f", x);
}

static void add_measure(struct maq_buf *b, const char *what, double own, double rival, bool has_rival, bool percent)
{
    maq_buf_addf(b, "  %-34s", what);
    add_figure(b, own, percent);
    if (has_rival)
        add_figure(b, rival, percent);
    maq_buf_adds(b, "\n");
}

static void add_skips(struct maq_buf *b, const struct maq_validate_plan_ranking *r)
{
    uint32_t left = 0;
    for (uint32_t i = 0; i < r->n_rows; i++)
        left += !r->rows[i].filtered && !compared(&r->rows[i]);
    struct maq_left_out out = maq__left_out(b, left, r->n_kept);
    for (uint32_t i = 0; i < r->n_rows; i++) {
        uint32_t rows = 0, first = i;
        if (r->rows[i].filtered || compared(&r->rows[i]))
            continue;
        for (uint32_t k = 0; k < r->n_rows; k++)
            if (!r->rows[k].filtered && strcmp(r->rows[k].why, r->rows[i].why) == 0) {
                first = k < first ? k : first;
                rows++;
            }
        if (first == i)
            maq__left_out_add(&out, rows, r->rows[i].why);
    }
    maq__left_out_end(&out);
    if (r->n_too_large > 0)
        maq_buf_addf(b, "  %u plans that ran are predicted not to fit in memory\n", r->n_too_large);
}

static double error_of(const void *of, uint32_t i)
{
    const struct maq_validate_plan_ranking *r = of;
    return compared(&r->rows[i]) ? r->rows[i].error : (double)NAN;
}

static void add_worst_row(struct maq_buf *b, const void *of, uint32_t i)
{
    const struct maq_validate_plan *p = &((const struct maq_validate_plan_ranking *)of)->rows[i];
    maq_buf_addf(b, "   %+7.1f %%  line %u: tp%d dp%d pp%d, microbatch %d%s%s; measured %.3g s, predicted %.3g s\n",
                 100 * p->error, p->line, p->tp, p->dp, p->pp, p->mbs, p->layout[0] ? ", layers " : "", p->layout,
                 p->measured_s, p->predicted_s);
}

char *maq_validate_plan_ranking_report(const struct maq_validate_plan_ranking *r, uint32_t worst)
{
    struct maq_buf b;
    bool rival = r->rival.rows > 0;
    maq_buf_init(&b, MAX_BYTES);
    maq_buf_addf(&b, "%s: %u plans of %s, %u compared\n\n", r->table, r->n_rows, r->job, r->own.rows);
    maq_buf_addf(&b, "  %-34s %11s%s\n", "", "maquette", rival ? " predicted_s" : "");
    add_measure(&b, "Kendall's tau-b", r->own.tau, r->rival.tau, rival, false);
    add_measure(&b, "Spearman's rho", r->own.rho, r->rival.rho, rival, false);
    add_measure(&b, "cost of the choice, %", r->own.regret, r->rival.regret, rival, true);
    add_measure(&b, "error of the step, %: median", r->own.error.median, r->rival.error.median, rival, true);
    add_measure(&b, "                      mean", r->own.error.mean, r->rival.error.mean, rival, true);
    add_measure(&b, "                      with sign", r->own.error.bias, r->rival.error.bias, rival, true);
    add_skips(&b, r);
    if (worst > 0)
        maq__add_worst(&b, &(struct maq_worst){r, r->n_rows, error_of, add_worst_row}, NULL, worst);
    return maq_buf_take(&b);
}

/* ---- JSON ---- */

static void add_order(struct maq_json map, const struct maq_validate_order *o)
{
    maq_json_int(map, "rows", o->rows);
    MAQ_JSON_REALS(map, {"kendall_tau", o->tau}, {"spearman_rho", o->rho}, {"regret", o->regret},
                   {"median_ape", o->error.median}, {"mean_ape", o->error.mean}, {"bias", o->error.bias});
}

static void add_row(struct maq_json list, const struct maq_validate_plan *p)
{
    struct maq_json map = maq_json_item(list);
    MAQ_JSON_INTS(map, {"line", p->line}, {"tensor_model_parallel_size", p->tp}, {"data_parallel_size", p->dp},
                  {"pipeline_model_parallel_size", p->pp}, {"micro_batch_size", p->mbs});
    maq_json_text(map, "pipeline_model_parallel_layout", p->layout);
    if (!compared(p)) {
        maq_json_text(map, "skipped", p->why);
        return;
    }
    maq__json_compared(map, p->measured_s, p->predicted_s, p->error);
    maq_json_real(map, "rival", p->rival_s);
    maq_json_bool(map, "fits", p->fits);
}

char *maq_validate_plan_ranking_json(const struct maq_validate_plan_ranking *r)
{
    struct maq_json_document document;
    maq_json_begin(&document, "maquette.validate.ranking/1");
    maq_json_text(document.root, "table", r->table);
    maq_json_text(document.root, "job", r->job);
    add_order(maq_json_map(document.root, "order"), &r->own);
    if (r->rival.rows > 0)
        add_order(maq_json_map(document.root, "rival"), &r->rival);
    else
        maq_json_null(document.root, "rival");
    struct maq_json rows = maq_json_list(document.root, "rows");
    for (uint32_t i = 0; i < r->n_rows; i++)
        if (!r->rows[i].filtered)
            add_row(rows, &r->rows[i]);
    return maq_json_take(&document);
}
