/* SPDX-License-Identifier: Apache-2.0 */
/*
 * report.c - measured collectives against predictions for people, as JSON ("maquette.validate.collectives/1") and
 * as a picture.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/check.h"
#include "base/str.h"
#include "base/text.h"
#include "base/units.h"
#include "maquette/validate.h"
#include "validate/error_table.h"
#include "validate/plot.h"
#include "validate/worst.h"

#define MAX_BYTES ((size_t)64 << 20)

static bool compared(const struct maq_validate_coll_row *row)
{
    return !row->filtered && row->why[0] == '\0';
}

/* ---- text ---- */

static void add_group(struct maq_buf *b, const struct maq_validate_coll_group *g)
{
    static const struct {
        const char *distance, *text;
    } words[] = {{"all", ""}, {"near", "  inside a domain"}, {"far", "  between domains"}};
    for (size_t i = 0; i < MAQ_COUNT(words); i++)
        if (strcmp(g->distance, words[i].distance) == 0)
            maq_buf_addf(b, "  %-44.44s %6u", i == 0 ? g->name : words[i].text, g->stat.n);
    maq__add_errors(b, 7, &g->stat);
    maq_buf_adds(b, "\n");
}

static const char *title_of(const char *by)
{
    static const struct {
        const char *by, *title;
    } titles[] = {
        {"total", "every row alike"}, {"capped", "at most 40 rows of a source"}, {"source", "by source"},
        {"device", "by device"},      {"devices", "by number of devices"},       {"collective", "by collective"},
        {"size", "by size"}};
    for (size_t i = 0; i < MAQ_COUNT(titles); i++)
        if (strcmp(by, titles[i].by) == 0)
            return titles[i].title;
    return by;
}

static void add_groups(struct maq_buf *b, const struct maq_validate_coll_result *r)
{
    maq_buf_adds(b, "\ntime: error in % of the measured value\n");
    maq_buf_addf(b, "  %-44s %6s %7s %7s %7s %7s\n", "", "rows", "median", "mean", "p90", "bias");
    for (uint32_t i = 0; i < r->n_groups; i++) {
        if (i == 0 || strcmp(r->groups[i].by, r->groups[i - 1].by) != 0)
            maq_buf_addf(b, "\n  %s\n", title_of(r->groups[i].by));
        add_group(b, &r->groups[i]);
    }
}

static void add_skips(struct maq_buf *b, const struct maq_validate_coll_result *r)
{
    uint32_t rows = 0;
    for (uint32_t i = 0; i < r->n_skips; i++)
        rows += r->skips[i].rows;
    struct maq_left_out out = maq__left_out(b, rows, r->n_kept);
    for (uint32_t i = 0; i < r->n_skips; i++)
        maq__left_out_add(&out, r->skips[i].rows, r->skips[i].why);
    maq__left_out_end(&out);
}

static double error_of(const void *of, uint32_t i)
{
    const struct maq_validate_coll_result *r = of;
    return compared(&r->rows[i]) ? r->rows[i].error : (double)NAN;
}

static void add_worst_row(struct maq_buf *b, const void *of, uint32_t i)
{
    const struct maq_validate_coll_row *row = &((const struct maq_validate_coll_result *)of)->rows[i];
    char size[32], measured[32], predicted[32];
    maq_buf_addf(b, "   %+7.1f %%  line %u, %s: %s of %s on %u x %s, %u in a node; measured %s, predicted %s\n",
                 100 * row->error, row->line, row->source, row->collective, maq_format_bytes(size, row->bytes),
                 row->devices, row->gpu, row->devices_per_node, maq_format_time(measured, row->measured_s),
                 maq_format_time(predicted, row->predicted_s));
    maq_buf_addf(b, "      predicted as %s; most of it: %s; stated error %.0f %%\n", row->how, row->largest,
                 100 * row->stated_error);
}

char *maq_validate_coll_text(const struct maq_validate_coll_result *r, uint32_t worst)
{
    struct maq_buf b;
    maq_buf_init(&b, MAX_BYTES);
    maq_buf_addf(&b, "%s: %u rows", r->table, r->n_rows);
    if (r->n_kept < r->n_rows)
        maq_buf_addf(&b, ", %u after the filters", r->n_kept);
    maq_buf_adds(&b, "\n");
    if (r->n_groups > 0)
        add_groups(&b, r);
    else
        maq_buf_adds(&b, "\nnothing to compare\n");
    add_skips(&b, r);
    if (worst > 0)
        maq__add_worst(&b, &(struct maq_worst){r, r->n_rows, error_of, add_worst_row}, NULL, worst);
    return maq_buf_take(&b);
}

/* ---- JSON ---- */

/* What it is about, then the comparison or the reason why there is none. */
static void add_json_row(struct maq_json list, const struct maq_validate_coll_row *row)
{
    char id[32];
    struct maq_json map = maq_json_item(list);
    maq__snprintf(id, sizeof id, "line-%u", row->line);
    maq_json_text(map, "id", id);
    maq_json_text(map, "source", row->source);
    maq_json_int(map, "line", row->line);
    maq_json_text(map, "gpu", row->gpu);
    maq_json_text(map, "collective", row->collective);
    maq_json_int(map, "devices", row->devices);
    maq_json_int(map, "devices_per_node", row->devices_per_node);
    maq_json_real(map, "size_bytes", row->bytes);
    if (!compared(row)) {
        maq_json_text(map, "skipped", row->why);
        return;
    }
    maq_json_text(map, "distance", row->far ? "far" : "near");
    maq__json_compared(map, row->measured_s, row->predicted_s, row->error);
    maq_json_real(map, "stated_error", row->stated_error);
    maq_json_text(map, "algorithm", row->how);
    maq_json_text(map, "largest", row->largest);
}

static void add_json_group(struct maq_json list, const struct maq_validate_coll_group *g)
{
    struct maq_json map = maq_json_item(list);
    maq_json_text(map, "by", g->by);
    maq_json_text(map, "name", g->name);
    maq_json_text(map, "distance", g->distance);
    maq__json_errors(map, &g->stat);
}

char *maq_validate_coll_json(const struct maq_validate_coll_result *r)
{
    struct maq_json_document document;
    maq_json_begin(&document, "maquette.validate.collectives/1");
    maq_json_text(document.root, "table", r->table);
    struct maq_json rows = maq_json_list(document.root, "rows");
    for (uint32_t i = 0; i < r->n_rows; i++)
        if (!r->rows[i].filtered)
            add_json_row(rows, &r->rows[i]);
    struct maq_json groups = maq_json_list(document.root, "groups");
    for (uint32_t i = 0; i < r->n_groups; i++)
        add_json_group(groups, &r->groups[i]);
    struct maq_json skips = maq_json_list(document.root, "left_out");
    for (uint32_t i = 0; i < r->n_skips; i++) {
        struct maq_json map = maq_json_item(skips);
        maq_json_text(map, "why", r->skips[i].why);
        maq_json_int(map, "rows", r->skips[i].rows);
    }
    return maq_json_take(&document);
}

/* ---- picture ---- */

char *maq_validate_coll_svg(const struct maq_validate_coll_result *r)
{
    struct maq_plot_point *points = maq__calloc(((size_t)r->n_rows + 1) * sizeof *points);
    const char *slash = strrchr(r->table, '/');
    uint32_t n = 0;
    for (uint32_t i = 0; points && i < r->n_rows; i++)
        if (compared(&r->rows[i]))
            points[n++] = (struct maq_plot_point){r->rows[i].source, r->rows[i].collective, r->rows[i].measured_s,
                                                  r->rows[i].predicted_s, r->rows[i].error};
    char *svg = NULL;
    if (points)
        svg = maq__plot_svg(&(struct maq_plot){
            .what = "time of collectives", .about = slash ? slash + 1 : r->table, .points = points, .n = n});
    free(points);
    return svg;
}
