/* SPDX-License-Identifier: Apache-2.0 */
/* graph.c - the distribution of the time of a graph: text, and schema "maquette.risk.graph/1" (docs/imports.md). */
#include <math.h>
#include <string.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/risk/parts.h"
#include "report/words.h"

#define NAME 64

enum maq_status maq_report_risk_graph_json(char **out, const struct maq_risk_graph *risk,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_json_document document;
    (void)opts;
    maq_json_begin(&document, "maquette.risk.graph/1");
    struct maq_json root = document.root;
    maq_json_real(root, "base_s", risk->base_s);
    maq_risk_json_figures(root, &risk->p5, risk->figure);
    maq_json_real(root, "sd_s", risk->sd_s);
    maq_json_real(root, "guarantee_s", risk->guarantee_s);
    maq_json_int(root, "draws", risk->draws);
    maq_risk_json_sources(maq_json_list(root, "sources"), risk->source, risk->n_sources);
    struct maq_json list = maq_json_list(root, "longest_path");
    for (uint32_t i = 0; i < risk->n_drivers; i++) {
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "operator", risk->driver[i].name);
        maq_json_count(item, "count", risk->driver[i].count);
        maq_json_real(item, "seconds", risk->driver[i].seconds);
    }
    return maq_json_finish(out, &document, diag);
}

void maq_risk_longest_table(struct maq_table *t, const struct maq_risk_graph *risk)
{
    static const struct maq_table_column columns[] = {{"on the longest path", false, true},
                                                      {"count", true, false},
                                                      {"time", true, false},
                                                      {"of the base", true, false}};
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < risk->n_drivers; i++) {
        char time[32];
        const char *name = maq_text_clean(&t->arena, risk->driver[i].name);
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%.*s%s", NAME, name, strlen(name) > NAME ? "..." : "");
        maq_table_cell(t, "%u", risk->driver[i].count);
        maq_table_cell(t, "%s", maq_format_time(time, risk->driver[i].seconds));
        maq_table_cell(t, "%.1f %%", risk->base_s > 0 ? 100 * risk->driver[i].seconds / risk->base_s : 0);
    }
}

enum maq_status maq_report_risk_graph_text(char **out, const struct maq_risk_graph *risk,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_page page;
    struct maq_table table;
    maq_page_init(&page, opts);
    maq_page_putf(&page, MAQ_INK_PLAIN, "base  %#.5g s: nothing varies\n\n", risk->base_s);
    maq_risk_page_figures(&page, "captured", &risk->p5, risk->figure, risk->base_s);
    if (!isnan(risk->guarantee_s))
        maq_page_putf(&page, MAQ_INK_PLAIN, "\nwith 95 %% confidence at most 5 %% exceed %#.5g s\n", risk->guarantee_s);
    if (risk->n_sources > 0)
        maq_risk_page_sources(&page, risk->source, risk->n_sources, risk->base_s);
    maq_risk_longest_table(&table, risk);
    maq_page_putf(&page, MAQ_INK_PLAIN, "\n");
    maq_table_print(&page, &table, 0);
    maq_table_fini(&table);
    maq_page_putf(&page, MAQ_INK_FAINT, "%u draws; intervals are of sampling alone\n", risk->draws);
    return maq_page_finish(out, &page, diag);
}
