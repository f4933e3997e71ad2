/* risk_graph.c - the distribution of the time of a graph: text, and schema "maquette.risk.graph/1" (docs/imports.md). */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/json_util.h"
#include "report/page.h"
#include "report/words.h"

#define NAME 64

static void put_quantile(struct maq_json map, const struct maq_risk_quantile *q)
{
    maq_json_real(map, "value_s", q->value_s);
    maq_json_real(map, "low_s", q->low_s);
    maq_json_real(map, "high_s", q->high_s);
}

enum maq_status maq_report_risk_graph_json(char **out, const struct maq_risk_graph *risk,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.risk.graph/1");
    struct maq_json root = document.root;
    maq_json_real(root, "base_s", risk->base_s);
    put_quantile(maq_json_map(root, "p5"), &risk->p5);
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++)
        put_quantile(maq_json_map(root, maq_risk_figure_name((enum maq_risk_figure)f)), &risk->figure[f]);
    maq_json_real(root, "sd_s", risk->sd_s);
    maq_json_real(root, "guarantee_s", risk->guarantee_s);
    maq_json_int(root, "draws", risk->draws);
    struct maq_json list = maq_json_list(root, "sources");
    for (uint32_t i = 0; i < risk->n_sources; i++) {
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "source", risk->source[i].name);
        maq_json_real(item, "p95_alone_s", risk->source[i].alone_s);
        maq_json_real(item, "p95_removed_s", risk->source[i].removed_s);
    }
    list = maq_json_list(root, "longest_path");
    for (uint32_t i = 0; i < risk->n_drivers; i++) {
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "operator", risk->driver[i].name);
        maq_json_count(item, "count", risk->driver[i].count);
        maq_json_real(item, "seconds", risk->driver[i].seconds);
    }
    return maq_json_finish(out, &document, diag);
}

static void put_row(struct maq_table *t, const char *name, const struct maq_risk_quantile *q, double base_s)
{
    maq_table_row(t, MAQ_INK_PLAIN);
    maq_table_cell(t, "%s", name);
    maq_table_cell(t, "%#.5g s", q->value_s);
    maq_table_cell(t, "%+.2f %%", base_s > 0 ? 100 * (q->value_s / base_s - 1) : 0);
    maq_table_cell(t, "%#.5g s", q->low_s);
    maq_table_cell(t, "%#.5g s", q->high_s);
}

static void put_sources(struct maq_page *page, const struct maq_risk_graph *risk)
{
    static const struct maq_table_column columns[] = {
        {"what varies", false, true}, {"p95 from it alone", true, false}, {"p95 without it", true, false}};
    struct maq_table t;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < risk->n_sources && risk->base_s > 0; i++) {
        maq_table_row(&t, MAQ_INK_PLAIN);
        maq_table_cell(&t, "%s", risk->source[i].text);
        maq_table_cell(&t, "%+.2f %%", 100 * risk->source[i].alone_s / risk->base_s);
        maq_table_cell(&t, "%+.2f %%", -100 * risk->source[i].removed_s / risk->base_s);
    }
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
    maq_page_putf(page, MAQ_INK_FAINT, "shares of the base; they do not add up, the slowest decides\n");
}

static void put_drivers(struct maq_page *page, const struct maq_risk_graph *risk)
{
    static const struct maq_table_column columns[] = {{"on the longest path", false, true},
                                                      {"count", true, false},
                                                      {"time", true, false},
                                                      {"of the base", true, false}};
    struct maq_table t;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < risk->n_drivers; i++) {
        char time[32];
        const char *name = maq_text_clean(&t.arena, risk->driver[i].name);
        maq_table_row(&t, MAQ_INK_PLAIN);
        maq_table_cell(&t, "%.*s%s", NAME, name, strlen(name) > NAME ? "..." : "");
        maq_table_cell(&t, "%u", risk->driver[i].count);
        maq_table_cell(&t, "%s", maq_format_time(time, risk->driver[i].seconds));
        maq_table_cell(&t, "%.1f %%", risk->base_s > 0 ? 100 * risk->driver[i].seconds / risk->base_s : 0);
    }
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
}

enum maq_status maq_report_risk_graph_text(char **out, const struct maq_risk_graph *risk,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    static const struct maq_table_column columns[] = {{"captured", false, false},
                                                      {"", true, false},
                                                      {"over base", true, false},
                                                      {"95 % low", true, false},
                                                      {"high", true, false}};
    struct maq_page page;
    struct maq_table t;
    maq_page_init(&page, opts);
    maq_page_putf(&page, MAQ_INK_PLAIN, "base  %#.5g s: nothing varies\n\n", risk->base_s);
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    put_row(&t, "p5", &risk->p5, risk->base_s);
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++)
        put_row(&t, maq_risk_figure_name((enum maq_risk_figure)f), &risk->figure[f], risk->base_s);
    maq_table_print(&page, &t, 0);
    maq_table_fini(&t);
    if (!isnan(risk->guarantee_s))
        maq_page_putf(&page, MAQ_INK_PLAIN, "\nwith 95 %% confidence at most 5 %% exceed %#.5g s\n", risk->guarantee_s);
    if (risk->n_sources > 0)
        put_sources(&page, risk);
    put_drivers(&page, risk);
    maq_page_putf(&page, MAQ_INK_FAINT, "%u draws; intervals are of sampling alone\n", risk->draws);
    return maq_page_finish(out, &page, diag);
}
