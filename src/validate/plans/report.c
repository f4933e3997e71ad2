/* SPDX-License-Identifier: Apache-2.0 */
/* report.c - executed plans against their prediction, as text for people and as JSON. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/validate.h"
#include "validate/error_table.h"
#include "validate/worst.h"

#define MAX_BYTES ((size_t)64 << 20)

/* Here bias is the median with sign. */
static struct maq_validate_stat stat_of(const struct maq_plan_group *g, enum maq_plan_metric m)
{
    struct maq_validate_stat s = g->stat[m];
    s.bias = s.median_signed;
    return s;
}

static void add_stat(struct maq_buf *b, struct maq_validate_stat s)
{
    maq_buf_addf(b, " %5u", s.n);
    maq__add_errors(b, 7, &s);
}

static void add_groups(struct maq_buf *b, const struct maq_validate_plans *r)
{
    maq_buf_addf(b, "\n  %-24s  time: n  median    mean     p90    bias   memory: n  median    mean     p90    bias\n",
                 "");
    for (uint32_t i = 0; i < r->n_groups; i++) {
        maq_buf_addf(b, "  %-24.24s   ", r->groups[i].name);
        add_stat(b, stat_of(&r->groups[i], MAQ_PLAN_TIME));
        maq_buf_adds(b, "       ");
        add_stat(b, stat_of(&r->groups[i], MAQ_PLAN_MEMORY));
        maq_buf_addc(b, '\n');
    }
}

struct worst_of {
    const struct maq_validate_plans *result;
    enum maq_plan_metric metric;
};

static double error_of(const void *of, uint32_t i)
{
    const struct worst_of *w = of;
    const struct maq_plan_row *row = &w->result->rows[i];
    return row->why[0] == '\0' ? row->points[w->metric].error : (double)NAN;
}

static void add_worst_row(struct maq_buf *b, const void *of, uint32_t i)
{
    const struct worst_of *w = of;
    const struct maq_plan_row *row = &w->result->rows[i];
    const struct maq_plan_point *p = &row->points[w->metric];
    bool time = w->metric == MAQ_PLAN_TIME;
    char measured[32], predicted[32], pipeline[32], reduce[32], update[32];
    (time ? maq_format_time : maq_format_bytes)(measured, p->measured);
    (time ? maq_format_time : maq_format_bytes)(predicted, p->predicted);
    maq_buf_addf(b, "    %+6.1f %%  %s: measured %s, predicted %s\n", 100.0 * p->error, row->file, measured, predicted);
    maq_buf_addf(b, "               %u devices, %u stages, %u replicas, batch %u of %u", row->devices, row->stages,
                 row->replicas, row->global_batch, row->micro_batch);
    if (time)
        maq_buf_addf(b, "; pipeline %s, reduction %s, optimizer %s", maq_format_time(pipeline, row->pipeline_s),
                     maq_format_time(reduce, row->reduce_s), maq_format_time(update, row->update_s));
    maq_buf_addc(b, '\n');
}

static void add_worst(struct maq_buf *b, const struct maq_validate_plans *r, uint32_t worst)
{
    static const char *const titles[MAQ_PLAN_METRIC_COUNT] = {"worst time", "worst memory"};
    for (int m = 0; worst > 0 && m < MAQ_PLAN_METRIC_COUNT; m++) {
        const struct worst_of of = {r, (enum maq_plan_metric)m};
        maq__add_worst(b, &(struct maq_worst){&of, r->n_rows, error_of, add_worst_row}, titles[m], worst);
    }
}

char *maq_validate_plans_text(const struct maq_validate_plans *r, uint32_t worst)
{
    struct maq_buf b;
    maq_buf_init(&b, MAX_BYTES);
    maq_buf_addf(&b, "%s: %u plans, %u compared\n", r->path, r->n_rows, r->n_compared);
    maq_buf_addf(&b, "predicted from %s by %s; error in %% of what was measured\n", r->profile,
                 r->judge == MAQ_PLAN_JUDGE_SAILOR ? "Sailor's published rule" : "maquette");
    add_groups(&b, r);
    for (uint32_t i = 0; i < r->n_rows; i++)
        if (r->rows[i].why[0] != '\0')
            maq_buf_addf(&b, "\n  left out: %s: %s", r->rows[i].file, r->rows[i].why);
    if (r->n_compared < r->n_rows)
        maq_buf_addc(&b, '\n');
    add_worst(&b, r, worst);
    if (b.failed)
        maq_buf_fini(&b);
    return b.ptr;
}

/* ---- JSON ---- */

static void add_json_row(struct maq_json at, const struct maq_plan_row *row)
{
    const struct maq_plan_point *time = &row->points[MAQ_PLAN_TIME], *memory = &row->points[MAQ_PLAN_MEMORY];
    maq_json_text(at, "file", row->file);
    maq_json_text(at, "group", row->group);
    maq_json_text(at, "left_out", row->why[0] != '\0' ? row->why : NULL);
    MAQ_JSON_INTS(at, {"devices", row->devices}, {"pipelines", row->pipelines}, {"stages", row->stages},
                  {"replicas", row->replicas}, {"micro_batch_size", row->micro_batch},
                  {"global_batch_size", row->global_batch});
    if (row->why[0] != '\0')
        return;
    MAQ_JSON_REALS(at, {"measured_step_time_s", time->measured}, {"step_time_s", time->predicted},
                   {"time_error", time->error}, {"pipeline_s", row->pipeline_s}, {"reduce_s", row->reduce_s},
                   {"measured_reduce_s", row->measured_reduce_s}, {"optimizer_s", row->update_s},
                   {"measured_memory_bytes", memory->measured}, {"memory_bytes", memory->predicted},
                   {"memory_error", memory->error});
}

char *maq_validate_plans_json(const struct maq_validate_plans *r)
{
    struct maq_json_document doc;
    maq_json_begin(&doc, "maquette.validate.plans/1");
    maq_json_text(doc.root, "path", r->path);
    maq_json_text(doc.root, "profile", r->profile);
    maq_json_text(doc.root, "judge", maq_plan_judge_name(r->judge));
    maq_json_int(doc.root, "row_count", r->n_rows);
    maq_json_int(doc.root, "compared", r->n_compared);
    struct maq_json list = maq_json_list(doc.root, "groups");
    for (uint32_t i = 0; i < r->n_groups; i++) {
        struct maq_json at = maq_json_item(list);
        struct maq_validate_stat time = stat_of(&r->groups[i], MAQ_PLAN_TIME);
        struct maq_validate_stat memory = stat_of(&r->groups[i], MAQ_PLAN_MEMORY);
        maq_json_text(at, "name", r->groups[i].name);
        maq__json_errors(maq_json_map(at, "time"), &time);
        maq__json_errors(maq_json_map(at, "memory"), &memory);
    }
    list = maq_json_list(doc.root, "rows");
    for (uint32_t i = 0; i < r->n_rows; i++)
        add_json_row(maq_json_item(list), &r->rows[i]);
    return maq_json_take(&doc);
}
