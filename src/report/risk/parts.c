/* SPDX-License-Identifier: Apache-2.0 */
/* parts.c - quantiles with their intervals and sources of variation, as tables and as JSON. See parts.h. */
#include "report/risk/parts.h"

#include <math.h>

#include "base/check.h"
#include "base/text.h"

void maq_risk_json_quantile(struct maq_json map, const struct maq_risk_quantile *q)
{
    MAQ_JSON_REALS(map, {"value_s", q->value_s}, {"low_s", q->low_s}, {"high_s", q->high_s});
}

void maq_risk_json_members(struct maq_json map, const char *key, const struct maq_risk_quantile *q)
{
    static const char *const ends[] = {"", "_low", "_high"};
    const double values[] = {q->value_s, q->low_s, q->high_s};
    for (int i = 0; i < 3; i++) {
        char name[64];
        maq__snprintf(name, sizeof name, "%s%s_s", key, ends[i]);
        maq_json_real(map, name, values[i]);
    }
}

void maq_risk_json_figures(struct maq_json map, const struct maq_risk_quantile *p5,
                           const struct maq_risk_quantile *figures)
{
    maq_risk_json_quantile(maq_json_map(map, "p5"), p5);
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++)
        maq_risk_json_quantile(maq_json_map(map, maq_risk_figure_name((enum maq_risk_figure)f)), &figures[f]);
}

void maq_risk_json_sources(struct maq_json list, const struct maq_risk_source *sources, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        struct maq_json item = maq_json_item(list);
        maq_json_text(item, "source", sources[i].name);
        maq_risk_json_members(item, "p95_alone", &sources[i].alone);
        maq_risk_json_members(item, "p95_removed", &sources[i].removed);
    }
}

double maq_risk_reach(const struct maq_risk_quantile *q)
{
    return 0.5 * (q->high_s - q->low_s);
}

static void put_figure(struct maq_table *t, const char *name, const struct maq_risk_quantile *q, double base_s)
{
    maq_table_row(t, MAQ_INK_PLAIN);
    maq_table_cell(t, "%s", name);
    maq_table_cell(t, "%#.5g s", q->value_s);
    maq_table_cell(t, "%+.2f %%", base_s > 0 ? 100 * (q->value_s / base_s - 1) : 0);
    maq_table_cell(t, "%#.5g s", q->low_s);
    maq_table_cell(t, "%#.5g s", q->high_s);
}

void maq_risk_page_figures(struct maq_page *page, const char *what, const struct maq_risk_quantile *p5,
                           const struct maq_risk_quantile *figures, double base_s)
{
    const struct maq_table_column columns[] = {{what, false, false},
                                               {"", true, false},
                                               {"over base", true, false},
                                               {"95 % low", true, false},
                                               {"high", true, false}};
    struct maq_table t;
    maq_table_init(&t, columns, MAQ_COUNT(columns));
    put_figure(&t, "p5", p5, base_s);
    for (int f = 0; f < MAQ_RISK_FIGURE_COUNT; f++)
        put_figure(&t, maq_risk_figure_name((enum maq_risk_figure)f), &figures[f], base_s);
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
}

void maq_risk_sources_table(struct maq_table *t, const struct maq_risk_source *sources, uint32_t n, double base_s)
{
    static const struct maq_table_column columns[] = {{"what varies", false, true},
                                                      {"p95 from it alone", true, false},
                                                      {"+-", true, false},
                                                      {"p95 without it", true, false},
                                                      {"+-", true, false}};
    maq_table_init(t, columns, MAQ_COUNT(columns));
    for (uint32_t i = 0; i < n && base_s > 0; i++) {
        const struct maq_risk_source *s = &sources[i];
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", s->text);
        maq_table_cell(t, "%+.2f %%", 100 * s->alone.value_s / base_s);
        maq_table_cell(t, "%.2f %%", 100 * maq_risk_reach(&s->alone) / base_s);
        maq_table_cell(t, "%+.2f %%", 0 - 100 * s->removed.value_s / base_s);
        maq_table_cell(t, "%.2f %%", 100 * maq_risk_reach(&s->removed) / base_s);
    }
}

void maq_risk_page_sources(struct maq_page *page, const struct maq_risk_source *sources, uint32_t n, double base_s)
{
    struct maq_table t;
    maq_risk_sources_table(&t, sources, n, base_s);
    maq_page_putf(page, MAQ_INK_PLAIN, "\n");
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
    maq_page_putf(page, MAQ_INK_FAINT,
                  "shares of the base; +-: half of the 95 %% interval; they do not add up, the slowest decides\n");
}

void maq_risk_driver_rows(struct maq_table *t, const struct maq_risk_step *step, enum maq_risk_parts parts)
{
    double p95 = step->figure[MAQ_RISK_P95].value_s;
    for (uint32_t i = 0; i < step->n_drivers[parts]; i++) {
        const struct maq_risk_driver *d = &step->driver[parts][i];
        maq_table_row(t, MAQ_INK_PLAIN);
        maq_table_cell(t, "%s", d->name);
        if (isnan(d->share))
            maq_table_cell(t, "-");
        else
            maq_table_cell(t, "%.1f %%", 100 * d->share);
        maq_table_cell(t, "%+.2f %%", 100 * d->alone.value_s / step->base_s);
        maq_table_cell(t, "%.2f %%", 100 * maq_risk_reach(&d->alone) / step->base_s);
        maq_table_cell(t, "%#.5g s", p95 - d->halved.value_s);
        maq_table_cell(t, "%.2g s", maq_risk_reach(&d->halved));
        maq_table_cell(t, "%#.5g s", p95 - d->removed.value_s);
        maq_table_cell(t, "%.2g s", maq_risk_reach(&d->removed));
    }
}
