/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - published observations and predictions for people, and as JSON ("maquette.validate.risk/1"). */
#include <math.h>
#include <stdlib.h>

#include "base/check.h"
#include "base/text.h"
#include "maquette/validate.h"
#include "report/json_util.h"
#include "report/page.h"

static const char *figure(char buf[32], double x)
{
    if (isnan(x))
        return "-";
    if (isinf(x))
        return x > 0 ? "any" : "-any";
    maq__snprintf(buf, 32, "%.4g", x);
    return buf;
}

char *maq_validate_risk_text(const struct maq_validate_risk *result)
{
    static const struct maq_table_column columns[] = {
        {"", false, false},         {"observation", false, true}, {"observed", true, false}, {"accepted", true, false},
        {"predicted", true, false}, {"unit", false, false},       {"", false, false}};
    static const enum maq_ink inks[] = {MAQ_INK_PLAIN, MAQ_INK_BAD, MAQ_INK_FAINT};
    struct maq_report_opts opts = MAQ_REPORT_OPTS_INIT;
    struct maq_page page;
    struct maq_table t;
    char a[32], b[32], *out = NULL;
    opts.columns = 132;
    maq_page_init(&page, &opts);
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < result->n_rows; i++) {
        const struct maq_validate_risk_row *r = &result->rows[i];
        maq_table_row(&t, inks[r->verdict]);
        maq_table_cell(&t, "%s", r->id);
        maq_table_cell(&t, "%s", r->verdict == MAQ_RISK_SKIP ? r->why : r->what ? r->what : "");
        maq_table_cell(&t, "%s", figure(a, r->observed));
        if (r->verdict == MAQ_RISK_SKIP)
            maq_table_cell(&t, "-");
        else
            maq_table_cell(&t, "%s to %s", figure(a, r->low), figure(b, r->high));
        maq_table_cell(&t, "%s", figure(a, r->predicted));
        maq_table_cell(&t, "%s", r->unit);
        maq_table_cell(&t, "%s", maq_risk_verdict_name(r->verdict));
    }
    maq_table_print(&page, &t, 0);
    maq_table_fini(&t);
    maq_page_putf(&page, MAQ_INK_PLAIN, "\n%u observations: %u inside, %u outside, %u skipped\n", result->n_rows,
                  result->n[MAQ_RISK_PASS], result->n[MAQ_RISK_FAIL], result->n[MAQ_RISK_SKIP]);
    return maq_page_finish(&out, &page, NULL) == MAQ_OK ? out : NULL;
}

char *maq_validate_risk_json(const struct maq_validate_risk *result)
{
    struct maq_json_document document;
    maq_json_begin(&document, "maquette.validate.risk/1");
    maq_json_text(document.root, "folder", result->folder);
    MAQ_JSON_INTS(document.root, {"passed", result->n[MAQ_RISK_PASS]}, {"failed", result->n[MAQ_RISK_FAIL]},
                  {"skipped", result->n[MAQ_RISK_SKIP]});
    struct maq_json list = maq_json_list(document.root, "rows");
    for (uint32_t i = 0; i < result->n_rows; i++) {
        const struct maq_validate_risk_row *r = &result->rows[i];
        struct maq_json row = maq_json_item(list);
        maq_json_text(row, "id", r->id);
        maq_json_text(row, "what", r->what);
        maq_json_text(row, "unit", r->unit);
        maq_json_text(row, "source", r->source);
        MAQ_JSON_REALS(row, {"observed", r->observed}, {"low", r->low}, {"high", r->high}, {"predicted", r->predicted});
        maq_json_text(row, "verdict", maq_risk_verdict_name(r->verdict));
        if (r->why[0] != '\0')
            maq_json_text(row, "why", r->why);
    }
    return maq_json_take(&document);
}
