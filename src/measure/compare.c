/* SPDX-License-Identifier: Apache-2.0 */
/*
 * compare.c - measured kernels against the other providers: `maquette profile compare`.
 *
 * Each measurement is predicted under its own conditions (burst or sustained) by the fitted and by the analytical
 * provider; where there is no fitted model of a kind, that column stays empty. Errors are predicted / measured - 1.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "base/stat/summary.h"
#include "base/text.h"
#include "base/units.h"
#include "measure/parts.h"
#include "measure/plan.h"

#define WORST 10u
#define HEAD "Predicted against measured, |error| in %%"

enum { FITTED, ANALYTICAL, RIVALS };
static const enum maq_provider rivals[RIVALS] = {MAQ_PROVIDER_FITTED, MAQ_PROVIDER_ANALYTICAL};

struct compared {
    const struct maq_kernel_row *row;
    double predicted_s[RIVALS]; /* NaN: that provider does not answer */
};

struct comparison {
    struct maq_arena arena;
    struct maq_kernel_rows rows;
    struct compared *at;
    uint32_t n, unknown; /* unknown: of devices that the catalogue does not have */
};

/* One kind of operator or collective on one device. */
struct group {
    const char *device, *kind;
    uint32_t n[RIVALS], rows;
    double median[RIVALS], p90[RIVALS], bias[RIVALS];
};

static const char *kind_of(const struct maq_kernel_row *row)
{
    return row->is_coll ? maq_coll_kind_name((enum maq_coll_kind)row->coll.kind)
                        : maq_op_kind_name((enum maq_op_kind)row->op.kind);
}

static void predict(struct compared *c, const struct maq_cluster *cluster)
{
    const struct maq_kernel_row *row = c->row;
    for (int r = 0; r < RIVALS; r++) {
        const struct maq_costs costs = {.best = rivals[r], .burst = row->mode == MAQ_KERNEL_BURST};
        struct maq_cost cost = row->is_coll ? maq_cost_coll(&costs, &row->coll, cluster)
                                            : maq_cost_op(&costs, &row->op, &cluster->groups[0].device);
        c->predicted_s[r] = cost.provider == rivals[r] ? cost.seconds : (double)NAN;
    }
}

/* Rows are sorted by device within operators and within collectives. */
static enum maq_status compare(struct comparison *c, const char *path, struct maq_diag *diag)
{
    struct maq_cluster cluster;
    const char *device = NULL;
    bool known = false;
    MAQ_TRY(maq_kernel_rows_read(&c->rows, path, &c->arena, diag));
    c->at = MAQ_ARENA_NEW(&c->arena, struct compared, c->rows.n);
    if (!c->at)
        return MAQ_NO_MEMORY;
    for (uint32_t i = 0; i < c->rows.n; i++) {
        const struct maq_kernel_row *row = &c->rows.at[i];
        if (!device || strcmp(row->at.device, device) != 0) {
            device = row->at.device;
            known = maq_profile_device_named(device) != NULL;
            if (known)
                MAQ_TRY(maq_profile_cluster_of(&cluster, device, &c->arena, diag));
        }
        c->unknown += !known;
        if (!known)
            continue;
        c->at[c->n].row = row;
        predict(&c->at[c->n++], &cluster);
    }
    return MAQ_OK;
}

static void fill_group(struct group *g, const struct compared *at, uint32_t n, double *scratch)
{
    *g = (struct group){.device = at->row->at.device, .kind = kind_of(at->row), .rows = n};
    for (int r = 0; r < RIVALS; r++) {
        double sum = 0;
        uint32_t k = 0;
        for (uint32_t i = 0; i < n; i++) {
            double error = at[i].predicted_s[r] / at[i].row->times.median_s - 1;
            if (isnan(error))
                continue;
            scratch[k++] = fabs(error);
            sum += error;
        }
        g->n[r] = k;
        g->bias[r] = k > 0 ? sum / k : (double)NAN;
        g->median[r] = maq_quantile(scratch, k, 0.5);
        g->p90[r] = maq_quantile(scratch, k, 0.9);
    }
}

/* Groups in the order of the rows; *n of them. NULL when out of memory. */
static struct group *make_groups(struct comparison *c, uint32_t *n)
{
    struct group *groups = MAQ_ARENA_NEW(&c->arena, struct group, c->n);
    double *scratch = MAQ_ARENA_NEW(&c->arena, double, c->n);
    *n = 0;
    for (uint32_t from = 0, to; groups && scratch && from < c->n; from = to) {
        for (to = from + 1; to < c->n; to++)
            if (c->at[to].row->is_coll != c->at[from].row->is_coll ||
                strcmp(c->at[to].row->at.device, c->at[from].row->at.device) != 0 ||
                strcmp(kind_of(c->at[to].row), kind_of(c->at[from].row)) != 0)
                break;
        fill_group(&groups[(*n)++], c->at + from, to - from, scratch);
    }
    return scratch ? groups : NULL;
}

/* --- text ------------------------------------------------------------------------------------------------------ */

static void put_percent(struct maq_table *t, double x, bool sign)
{
    if (isnan(x))
        maq_table_cell(t, "-");
    else
        maq_table_cell(t, sign ? "%+.1f" : "%.1f", 100 * x);
}

static void make_groups_table(struct maq_table *t, const struct group *groups, uint32_t n)
{
    static const struct maq_table_column columns[] = {{"kind", false, false},
                                                      {"device", false, false},
                                                      {"rows", true, false},
                                                      {"fitted: median", true, false},
                                                      {"p90", true, false},
                                                      {"bias", true, false},
                                                      {"analytical: median", true, false},
                                                      {"p90", true, false},
                                                      {"bias", true, false}};
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < n; i++) {
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", groups[i].kind);
        maq_table_cell(t, "%s", groups[i].device);
        maq_table_cell(t, "%u", groups[i].rows);
        for (int r = 0; r < RIVALS; r++) {
            put_percent(t, groups[i].median[r], false);
            put_percent(t, groups[i].p90[r], false);
            put_percent(t, groups[i].bias[r], true);
        }
    }
}

static double error_of(const struct compared *c)
{
    int r = isnan(c->predicted_s[FITTED]) ? ANALYTICAL : FITTED;
    return c->predicted_s[r] / c->row->times.median_s - 1;
}

static int by_error(const void *a, const void *b)
{
    const struct compared *x = a, *y = b;
    double e = fabs(error_of(x)), f = fabs(error_of(y));
    if (e > f || e < f)
        return e > f ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Sorts c->at, those that are farthest off first. */
static void make_worst_table(struct maq_table *t, struct comparison *c)
{
    static const struct maq_table_column columns[] = {{"operator", false, true},   {"device", false, false},
                                                      {"measured", true, false},   {"fitted", true, false},
                                                      {"analytical", true, false}, {"error, %", true, false}};
    char text[96], time[32];
    qsort(c->at, c->n, sizeof *c->at, by_error);
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < c->n && i < WORST; i++) {
        const struct maq_kernel_row *row = c->at[i].row;
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", maq_profile_row_words(text, row));
        maq_table_cell(t, "%s", row->at.device);
        maq_table_cell(t, "%s", maq_format_time(time, row->times.median_s));
        for (int r = 0; r < RIVALS; r++)
            maq_table_cell(t, "%s",
                           isnan(c->at[i].predicted_s[r]) ? "-" : maq_format_time(time, c->at[i].predicted_s[r]));
        put_percent(t, error_of(&c->at[i]), true);
    }
}

static enum maq_status put_comparison(char **out, struct comparison *c, const struct maq_report_opts *opts,
                                      struct maq_diag *diag)
{
    struct maq_page page;
    struct maq_table t;
    uint32_t n;
    struct group *groups = make_groups(c, &n);
    if (!groups)
        return MAQ_NO_MEMORY;
    maq_page_init(&page, opts);
    if (c->n > 0) {
        maq_page_putf(&page, MAQ_INK_HEAD, HEAD "\n");
        make_groups_table(&t, groups, n);
        maq_table_print(&page, &t, 2);
        maq_table_fini(&t);
        maq_page_putf(&page, MAQ_INK_HEAD, "\nFarthest off\n");
        make_worst_table(&t, c);
        maq_table_print(&page, &t, 2);
        maq_table_fini(&t);
    } else {
        maq_page_putf(&page, MAQ_INK_PLAIN, "There is nothing to compare.\n");
    }
    if (c->unknown > 0)
        maq_page_putf(&page, MAQ_INK_BAD, "\n%u measurements are of devices that the catalogue does not have.\n",
                      c->unknown);
    return maq_page_finish(out, &page, diag);
}

enum maq_status maq_profile_compare_text(char **out, const char *path, const struct maq_report_opts *opts,
                                         struct maq_diag *diag)
{
    struct comparison c = {0};
    maq_arena_init(&c.arena, 0);
    enum maq_status status = compare(&c, path, diag);
    if (status == MAQ_OK)
        status = put_comparison(out, &c, opts, diag);
    maq_arena_fini(&c.arena);
    return status;
}

/* --- JSON ------------------------------------------------------------------------------------------------------ */

static void add_group(struct maq_json list, const struct group *g)
{
    struct maq_json map = maq_json_item(list);
    maq_json_text(map, "op", g->kind);
    maq_json_text(map, "device", g->device);
    maq_json_int(map, "rows", g->rows);
    for (int r = 0; r < RIVALS; r++) {
        struct maq_json rival = maq_json_map(map, maq_provider_name(rivals[r]));
        maq_json_int(rival, "rows", g->n[r]);
        MAQ_JSON_REALS(rival, {"median_ape", g->median[r]}, {"p90_ape", g->p90[r]}, {"bias", g->bias[r]});
    }
}

static enum maq_status add_comparison(char **out, struct comparison *c, const char *path, struct maq_diag *diag)
{
    struct maq_json_document document;
    uint32_t n;
    struct group *groups = make_groups(c, &n);
    if (!groups)
        return MAQ_NO_MEMORY;
    maq_json_begin(&document, "maquette.kernels.compare/1");
    maq_json_text(document.root, "file", path);
    maq_json_int(document.root, "unknown_devices", c->unknown);
    struct maq_json list = maq_json_list(document.root, "groups");
    for (uint32_t i = 0; i < n; i++)
        add_group(list, &groups[i]);
    list = maq_json_list(document.root, "rows");
    for (uint32_t i = 0; i < c->n; i++) {
        const struct maq_kernel_row *row = c->at[i].row;
        struct maq_json map = maq_json_item(list);
        maq_json_text(map, "device", row->at.device);
        maq_profile_json_key(map, row->is_coll, &row->op, &row->coll);
        maq_json_text(map, "mode", maq_kernel_mode_name((enum maq_kernel_mode)row->mode));
        maq_json_text(map, "cache", row->warm ? "warm" : "cold");
        MAQ_JSON_REALS(map, {"measured_s", row->times.median_s}, {"fitted_s", c->at[i].predicted_s[FITTED]},
                       {"analytical_s", c->at[i].predicted_s[ANALYTICAL]});
    }
    return maq_json_finish(out, &document, diag);
}

enum maq_status maq_profile_compare_json(char **out, const char *path, struct maq_diag *diag)
{
    struct comparison c = {0};
    maq_arena_init(&c.arena, 0);
    enum maq_status status = compare(&c, path, diag);
    if (status == MAQ_OK)
        status = add_comparison(out, &c, path, diag);
    maq_arena_fini(&c.arena);
    return status;
}

/* --- the page -------------------------------------------------------------------------------------------------- */

static const char *compared_name(char buf[96], const void *of, uint32_t i)
{
    return maq_profile_row_words(buf, ((const struct comparison *)of)->at[i].row);
}

static void put_tables(struct maq_html *h, struct comparison *c, const struct group *groups, uint32_t n)
{
    struct maq_table t;
    maq_html_section(h, "against", "Predicted against measured");
    maq_html_chart(h, "against-chart", "tall",
                   "Each measurement under its own conditions, by the fitted and by the analytical provider: on the "
                   "line where the prediction is right.");
    make_groups_table(&t, groups, n);
    maq_html_table(h, &t, "|error| in %");
    maq_table_fini(&t);
    maq_html_end_section(h);
    maq_html_section(h, "worst", "Farthest off");
    make_worst_table(&t, c);
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_end_section(h);
}

/* The document is made before the tables, which sort what is compared, and names in its order. */
static enum maq_status put_page(char **out, struct comparison *c, const char *path, struct maq_diag *diag)
{
    struct maq_html h;
    uint32_t n;
    char *document, text[96];
    struct group *groups = make_groups(c, &n);
    if (!groups)
        return MAQ_NO_MEMORY;
    MAQ_TRY(add_comparison(&document, c, path, diag));
    char *names = maq_profile_names(c->n, compared_name, c);
    maq_html_begin(&h, "profile", "Measured kernels against predictions");
    h.nature = "Predictions beside what was measured.";
    maq_html_facts(&h);
    maq_html_fact(&h, "file", path);
    maq_html_end_facts(&h);
    if (c->unknown > 0) {
        maq__snprintf(text, sizeof text, "%u measurements are of devices that the catalogue does not have", c->unknown);
        maq_html_verdict(&h, MAQ_HTML_WARN, text);
    }
    if (c->n == 0)
        maq_html_verdict(&h, MAQ_HTML_WARN, "there is nothing to compare");
    maq_html_put(&h, "</header>\n<main>\n");
    if (c->n > 0)
        put_tables(&h, c, groups, n);
    return maq_profile_finish_page(out, &h, document, names, diag);
}

enum maq_status maq_profile_compare_html(char **out, const char *path, const struct maq_report_opts *opts,
                                         struct maq_diag *diag)
{
    struct comparison c = {0};
    (void)opts;
    maq_arena_init(&c.arena, 0);
    enum maq_status status = compare(&c, path, diag);
    if (status == MAQ_OK)
        status = put_page(out, &c, path, diag);
    maq_arena_fini(&c.arena);
    return status;
}
