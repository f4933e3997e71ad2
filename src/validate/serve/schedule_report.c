/* SPDX-License-Identifier: Apache-2.0 */
/* schedule_report.c - the result of `validate schedule` as text and as JSON. */
#include "base/str.h"
#include "maquette/validate_serve.h"
#include "report/json_util.h"

#define REPORT_MAX ((size_t)64 << 20)

char *maq_validate_schedule_text(const struct maq_validate_schedule *r)
{
    struct maq_buf b;
    maq_buf_init(&b, REPORT_MAX);
    maq_buf_adds(&b, "  steps   equal  recording\n");
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_validate_schedule_row *row = &r->rows[i];
        maq_buf_addf(&b, "%7u %7u  %s (%s %s, %u requests)\n", row->steps, row->equal_steps, row->file, row->engine,
                     row->version, row->requests);
        if (row->first_difference >= 0)
            maq_buf_addf(&b, "                 first difference: step %lld, %s\n", (long long)row->first_difference,
                         row->difference ? row->difference : "?");
    }
    maq_buf_addf(&b, "%u of %u recordings are equal in every step\n", r->equal, r->n);
    return maq_buf_take(&b);
}

char *maq_validate_schedule_json(const struct maq_validate_schedule *r)
{
    struct maq_json_document d;
    maq_json_begin(&d, "maquette.validate.schedule/1");
    MAQ_JSON_INTS(d.root, {"recordings", r->n}, {"equal", r->equal});
    struct maq_json rows = maq_json_list(d.root, "rows");
    for (uint32_t i = 0; i < r->n; i++) {
        const struct maq_validate_schedule_row *row = &r->rows[i];
        struct maq_json item = maq_json_item(rows);
        maq_json_text(item, "file", row->file);
        maq_json_text(item, "engine", row->engine);
        maq_json_text(item, "version", row->version);
        MAQ_JSON_INTS(item, {"requests", row->requests}, {"steps", row->steps}, {"equal_steps", row->equal_steps});
        if (row->first_difference < 0)
            maq_json_null(item, "first_difference");
        else
            maq_json_int(item, "first_difference", row->first_difference);
        maq_json_text(item, "difference", row->difference);
    }
    return maq_json_take(&d);
}
