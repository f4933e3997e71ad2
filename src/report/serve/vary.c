/* SPDX-License-Identifier: Apache-2.0 */
/* vary.c - what becomes of requests as options vary: a row for each combination, and which of them none beats. */
#include "base/check.h"
#include "maquette/report_serve.h"
#include "report/json_util.h"
#include "report/page.h"
#include "report/serve/vary_table.h"

#define OWN_COLUMNS 9
#define WHY 200

/* ---- text ---- */

/* Axes that have a column of their own; the others share one, where the table would be too wide. */
static uint32_t own_columns(const struct maq_serve_variants *v)
{
    uint32_t most = MAQ_TABLE_COLUMNS - OWN_COLUMNS;
    return v->n_axes <= most ? v->n_axes : most - 1;
}

static void put_values(struct maq_table *t, const struct maq_serve_variants *all, const struct maq_serve_variant *v)
{
    uint32_t own = own_columns(all);
    struct maq_buf rest;
    maq_buf_init(&rest, 1 << 12);
    for (uint32_t a = 0; a < own; a++)
        maq_table_cell(t, "%s", v->values[a]);
    for (uint32_t a = own; a < all->n_axes; a++)
        maq_buf_addf(&rest, "%s%s=%s", a > own ? " " : "", all->axes[a], v->values[a]);
    if (own < all->n_axes)
        maq_table_cell(t, "%s", rest.ptr ? rest.ptr : "");
    maq_buf_fini(&rest);
}

static void put_row(struct maq_table *t, const struct maq_serve_variants *all, const struct maq_serve_variant *v)
{
    bool served = !v->why && v->fits;
    maq_table_row(t, !served ? MAQ_INK_FAINT : v->pareto ? MAQ_INK_GOOD : MAQ_INK_PLAIN);
    maq_table_cell(t, "%s", v->pareto ? "*" : "");
    put_values(t, all, v);
    if (!served) {
        for (int i = 0; i < 6; i++)
            maq_table_cell(t, "-");
        maq_table_cell(t, "%.*s", WHY, v->why ? v->why : "does not fit");
        return;
    }
    maq_table_cell(t, "%u", v->gpus);
    maq_table_cell(t, "%.3g", v->requests_per_s);
    maq_table_cell(t, "%.0f", v->ttft_mean_s * 1e3);
    maq_table_cell(t, "%.2f", v->tpot_mean_s * 1e3);
    maq_table_cell(t, "%.1f", v->tokens_per_s_per_user);
    maq_table_cell(t, "%.1f", v->tokens_per_s_per_gpu);
    maq_table_cell(t, "%s", v->overloaded ? "overloaded" : !all->bounded ? "" : v->slo_met ? "held" : "missed");
}

void maq_serve_vary_table(struct maq_table *t, struct maq_table_column columns[MAQ_TABLE_COLUMNS],
                          const struct maq_serve_variants *v)
{
    uint32_t n = 0, own = own_columns(v);
    columns[n++] = (struct maq_table_column){"", false, false};
    for (uint32_t a = 0; a < own; a++)
        columns[n++] = (struct maq_table_column){v->axes[a], false, false};
    if (own < v->n_axes)
        columns[n++] = (struct maq_table_column){"and", false, true};
    static const struct maq_table_column fixed[] = {
        {"GPUs", true, false},       {"req/s", true, false},     {"TTFT ms", true, false}, {"TPOT ms", true, false},
        {"tok/s/user", true, false}, {"tok/s/GPU", true, false}, {"", false, true}};
    for (size_t i = 0; i < MAQ_COUNT(fixed); i++)
        columns[n++] = fixed[i];
    maq_table_init(t, columns, n);
    t->wraps = true;
    for (uint32_t i = 0; i < v->n; i++)
        put_row(t, v, &v->at[i]);
}

enum maq_status maq_report_serve_vary_text(char **out, const struct maq_serve_variants *variants,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_table_column columns[MAQ_TABLE_COLUMNS];
    struct maq_page page;
    struct maq_table table;
    maq_page_init(&page, opts);
    maq_serve_vary_table(&table, columns, variants);
    maq_table_print(&page, &table, 0);
    maq_table_fini(&table);
    maq_page_putf(&page, MAQ_INK_FAINT,
                  "\nmeans over all requests. *: no other%s has more tokens a second, both of a user and of a GPU\n",
                  variants->bounded ? " within the bounds" : "");
    return maq_page_finish(out, &page, diag);
}

/* ---- JSON ---- */

enum maq_status maq_report_serve_vary_json(char **out, const struct maq_serve_variants *variants,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document d;
    (void)opts;
    maq_json_begin(&d, "maquette.serve.vary/1");
    struct maq_json list = maq_json_list(d.root, "variants");
    for (uint32_t i = 0; i < variants->n; i++) {
        const struct maq_serve_variant *v = &variants->at[i];
        struct maq_json item = maq_json_item(list), values = maq_json_map(item, "values");
        for (uint32_t a = 0; a < variants->n_axes; a++)
            maq_json_text(values, variants->axes[a], v->values[a]);
        maq_json_text(item, "why", v->why);
        maq_json_bool(item, "fits", v->fits);
        if (v->why || !v->fits)
            continue;
        maq_json_bool(item, "overloaded", v->overloaded);
        if (variants->bounded) {
            maq_json_bool(item, "slo_met", v->slo_met);
            maq_json_real(item, "goodput_per_s", v->goodput_per_s);
        }
        maq_json_bool(item, "pareto", v->pareto);
        MAQ_JSON_INTS(item, {"gpus", v->gpus});
        MAQ_JSON_REALS(item, {"requests_per_s", v->requests_per_s},
                       {"output_tokens_per_s_per_device", v->tokens_per_s_per_gpu},
                       {"output_tokens_per_s_per_user", v->tokens_per_s_per_user}, {"ttft_mean_s", v->ttft_mean_s},
                       {"ttft_p95_s", v->ttft_p95_s}, {"tpot_mean_s", v->tpot_mean_s}, {"tpot_p95_s", v->tpot_p95_s},
                       {"e2el_mean_s", v->e2el_mean_s}, {"e2el_p95_s", v->e2el_p95_s});
    }
    return maq_json_finish(out, &d, diag);
}
