/* SPDX-License-Identifier: Apache-2.0 */
/*
 * risk_graph.c - the page of the distribution of a captured job's time: how long it takes, what varies, what the longest path is made of. With
 * the distribution function beside the document (distribution.h).
 */
#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/html/distribution.h"
#include "report/risk/parts.h"
#include "report/words.h"

static void put_cards(struct maq_html *h, const struct maq_risk_graph *risk)
{
    char value[32], note[160];
    const double p50 = risk->figure[MAQ_RISK_P50].value_s, p95 = risk->figure[MAQ_RISK_P95].value_s;
    maq_html_cards(h);
    maq__snprintf(value, sizeof value, "%#.5g s", p50);
    maq__snprintf(note, sizeof note, "median; nine of ten lie between %#.5g s and %#.5g s", risk->p5.value_s, p95);
    maq_html_card_range(h, "All of the job", value, note, risk->p5.value_s, p50, p95);
    maq__snprintf(value, sizeof value, "%#.5g s", p95);
    maq__snprintf(note, sizeof note, "95 %% take no longer: %+.2f %% over the job in which nothing varies",
                  risk->base_s > 0 ? 100 * (p95 / risk->base_s - 1) : 0);
    maq_html_card(h, "95th percentile", value, note);
    maq__snprintf(value, sizeof value, "%#.5g s", risk->figure[MAQ_RISK_MEAN].value_s);
    maq__snprintf(note, sizeof note, "standard deviation %.3g s; nothing varies: %#.5g s", risk->sd_s, risk->base_s);
    maq_html_card(h, "Mean", value, note);
    if (!isnan(risk->guarantee_s)) {
        maq__snprintf(value, sizeof value, "%#.5g s", risk->guarantee_s);
        maq_html_card(h, "Bound", value, "with 95 % confidence at most 5 % exceed it");
    }
    maq_html_end_cards(h);
}

static void put_longest(struct maq_html *h, const struct maq_risk_graph *risk)
{
    struct maq_table t;
    if (risk->n_drivers == 0)
        return;
    maq_risk_longest_table(&t, risk);
    maq_html_section(h, "longest", "The longest path");
    maq_html_chart(h, "longest-chart", "bars",
                   "What it is made of when nothing varies: whatever makes these longer makes the job longer.");
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_end_section(h);
}

enum maq_status maq_report_risk_graph_html(char **out, const struct maq_risk_graph *risk,
                                           const struct maq_report_opts *opts, struct maq_diag *diag)
{
    const struct maq_html_distribution distribution = {
        .title = "The distribution of its time",
        .density = "How often it takes how long, and its quantiles. Dashed: nothing varies.",
        .cumulative = "Share of jobs that take no longer.",
        .what = "job",
        .base_s = risk->base_s,
        .p5 = &risk->p5,
        .figure = risk->figure,
        .curve_s = risk->curve_s,
        .curve_share = risk->curve_share};
    struct maq_html h;
    struct maq_buf more;
    char *document, note[96], n[32];
    MAQ_TRY(maq_report_risk_graph_json(&document, risk, opts, diag));
    maq_buf_init(&more, 1 << 20);
    maq_html_distribution_data(&more, &distribution);
    maq_html_begin(&h, "risk", "How long a captured job takes");
    put_cards(&h, risk);
    maq__snprintf(note, sizeof note, "%s draws; intervals are of sampling alone.", maq_words_integer(n, risk->draws));
    maq_html_distribution(&h, &distribution, note);
    maq_html_sources(&h, risk->source, risk->n_sources, risk->base_s);
    put_longest(&h, risk);
    enum maq_status status = maq_html_finish(out, &h, document, &more, diag);
    maq_buf_fini(&more);
    return status;
}
