/* SPDX-License-Identifier: Apache-2.0 */
/* distribution.c - charts and tables of a distribution, for the pages of steps and of captured jobs. See distribution.h. */
#include "report/html/distribution.h"

#include "base/check.h"
#include "report/risk/parts.h"

/* A law without width has nothing to draw. */
static bool has_width(const struct maq_html_distribution *d)
{
    return d->curve_s[MAQ_RISK_CURVE - 1] > d->curve_s[0];
}

static void put_figure(struct maq_table *t, const char *name, const struct maq_risk_quantile *q, double base_s)
{
    maq_table_row(t, MAQ_INK_PLAIN);
    maq_table_cell(t, "%s", name);
    maq_table_cell(t, "%#.5g s", q->value_s);
    maq_table_cell(t, "%#.5g s to %#.5g s", q->low_s, q->high_s);
    maq_table_cell(t, "%+.2f %%", base_s > 0 ? 100 * (q->value_s / base_s - 1) : 0);
}

void maq_html_distribution(struct maq_html *h, const struct maq_html_distribution *d, const char *note)
{
    const struct maq_table_column columns[] = {
        {"", false, false}, {d->what, true, false}, {"95 % interval", true, false}, {"over base", true, false}};
    struct maq_table t;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    put_figure(&t, "p5", d->p5, d->base_s);
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++)
        put_figure(&t, maq_risk_figure_name((enum maq_risk_figure)f), &d->figure[f], d->base_s);
    maq_html_section(h, "distribution", d->title);
    if (has_width(d)) {
        maq_html_put(h, "<div class=\"pair\">\n");
        maq_html_chart(h, "density", "", d->density);
        maq_html_chart(h, "cumulative", "", d->cumulative);
        maq_html_put(h, "</div>\n");
    }
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_note(h, "%s", note);
    maq_html_end_section(h);
}

void maq_html_distribution_data(struct maq_buf *more, const struct maq_html_distribution *d)
{
    bool drawn = has_width(d);
    maq_buf_adds(more, "{\"t\":[");
    for (uint32_t i = 0; i < MAQ_RISK_CURVE && drawn; i++)
        maq_buf_addf(more, "%s%.8g", i > 0 ? "," : "", d->curve_s[i]);
    maq_buf_adds(more, "],\"share\":[");
    for (uint32_t i = 0; i < MAQ_RISK_CURVE && drawn; i++)
        maq_buf_addf(more, "%s%.6g", i > 0 ? "," : "", d->curve_share[i]);
    maq_buf_adds(more, "]}");
}

void maq_html_sources(struct maq_html *h, const struct maq_risk_source *sources, uint32_t n, double base_s)
{
    struct maq_table t;
    if (n == 0)
        return;
    maq_risk_sources_table(&t, sources, n, base_s);
    maq_html_section(h, "sources", "What varies");
    maq_html_chart(h, "tornado", "bars",
                   "What each source does to the 95th percentile: when it alone varies, and how much would be gone "
                   "without it, with 95 % "
                   "intervals, over the step in which nothing varies.");
    maq_html_table(h, &t, NULL);
    maq_table_fini(&t);
    maq_html_note(h, "Shares of the base; +-: half of the 95 %% interval. They do not add up: the slowest decides.");
    maq_html_end_section(h);
}
