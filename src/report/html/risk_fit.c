/* SPDX-License-Identifier: Apache-2.0 */
/* risk_fit.c - the page of what was learnt of recorded times: quantiles predicted and observed, the law, what kernels vary by. */
#include "base/check.h"
#include "base/text.h"
#include "base/units.h"
#include "report/html/html.h"
#include "report/risk/fit_parts.h"
#include "report/words.h"

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

static void put_series(struct maq_html *h, const struct maq_risk_series *s, uint32_t number)
{
    const struct maq_lines to = {put_fact, h};
    struct maq_table t;
    char id[48], words[128];
    maq__snprintf(id, sizeof id, "series-%u", number);
    maq_fit_figures_table(&t, s);
    maq_html_section(h, id, maq_text_clean(&t.arena, s->name));
    maq__snprintf(id, sizeof id, "quantiles-%u", number);
    maq_html_chart(h, id, "short",
                   "Quantiles of the step: predicted with the 95 % interval of each, and as they were observed behind "
                   "the steps that it was fitted on.");
    maq_html_table(h, &t, maq_fit_series_words(words, s));
    maq_table_fini(&t);
    maq_html_facts(h);
    maq_fit_lines(&to, s);
    maq_html_end_facts(h);
    maq_html_end_section(h);
}

static void put_record(struct maq_html *h, const struct maq_risk_record *r, uint32_t number)
{
    struct maq_table t;
    char id[48], words[128];
    maq__snprintf(id, sizeof id, "kernels-%u", number);
    maq_fit_kernels_table(&t, r);
    maq_html_section(h, id, maq_text_clean(&t.arena, r->name));
    if (r->n_kernels > 0)
        maq_html_table(h, &t, maq_fit_record_words(words, r));
    else
        maq_html_note(h, "%s", maq_fit_record_words(words, r));
    maq_table_fini(&t);
    maq_html_end_section(h);
}

static void put_cards(struct maq_html *h, const struct maq_risk_fit *fit)
{
    char value[32], note[128], words[128];
    maq_html_cards(h);
    for (uint32_t i = 0; i < fit->n && i < 2; i++) {
        const struct maq_risk_series *s = &fit->series[i];
        const struct maq_risk_estimate *median = &s->figure[MAQ_RISK_P50], *tail = &s->figure[MAQ_RISK_P95];
        maq_html_card_range(h, "Median step", maq_format_time(value, median->predicted), maq_fit_series_words(words, s),
                            median->low, median->predicted, median->high);
        if (s->judged > 0)
            maq__snprintf(note, sizeof note, "%+.2f %% from what was observed", 100 * tail->error);
        else
            maq__snprintf(note, sizeof note, "of the steps that were recorded");
        maq_html_card_range(h, "95th percentile", maq_format_time(value, tail->predicted), note, tail->low,
                            tail->predicted, tail->high);
    }
    if (fit->n_records > 0) {
        maq__snprintf(note, sizeof note, "in %u file%s", fit->n_records, maq_words_s(fit->n_records));
        uint32_t kernels = 0;
        for (uint32_t i = 0; i < fit->n_records; i++)
            kernels += fit->record[i].n_kernels;
        maq_html_card(h, "Kinds of kernels", maq_words_integer(value, kernels), note);
    }
    maq_html_end_cards(h);
}

enum maq_status maq_report_risk_fit_html(char **out, const struct maq_risk_fit *fit, const struct maq_report_opts *opts,
                                         struct maq_diag *diag)
{
    struct maq_html h;
    char *document;
    MAQ_TRY(maq_report_risk_fit_json(&document, fit, opts, diag));
    maq_html_begin(&h, "risk fit", "What was learnt of recorded times");
    put_cards(&h, fit);
    for (uint32_t i = 0; i < fit->n; i++)
        put_series(&h, &fit->series[i], i);
    for (uint32_t i = 0; i < fit->n_records; i++)
        put_record(&h, &fit->record[i], i);
    return maq_html_finish(out, &h, document, NULL, diag);
}
