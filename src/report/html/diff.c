/* SPDX-License-Identifier: Apache-2.0 */
/* diff.c - the page of a comparison: what differs, figures, and each change by what it is made of. */
#include <math.h>

#include "base/check.h"
#include "base/text.h"
#include "report/diff/diff_parts.h"
#include "report/html/html.h"

#define CARDS 4
#define ROWS 40 /* of a table */

static void put_fact(void *user, const char *label, const char *text)
{
    maq_html_fact(user, label, text);
}

static void put_verdict(void *user, const char *label, const char *text)
{
    (void)label;
    maq_html_verdict(user, MAQ_HTML_BAD, text);
}

static void put_head(struct maq_html *h, const struct maq_diff *d)
{
    const struct maq_lines facts = {put_fact, h}, verdicts = {put_verdict, h};
    struct maq_buf words;
    double low, high;
    maq_html_facts(h);
    maq_diff_asked_lines(&facts, d);
    maq_html_end_facts(h);
    maq_diff_verdict_lines(&verdicts, d);
    maq_buf_init(&words, 1024);
    maq_diff_sentence(&words, d);
    if (words.len > 0) {
        const struct maq_diff_figure *f = d->n_figures > 0 ? &d->figures[0] : NULL;
        bool told = f && maq_diff_change_interval(&low, &high, f) && (low > 0 || high < 0);
        bool good = told && (low > 0) == (f->better > 0);
        maq_html_verdict(h, good || maq_diff_is_same(d) ? MAQ_HTML_GOOD : MAQ_HTML_WARN, words.ptr);
    }
    h->out.failed |= words.failed;
    maq_buf_fini(&words);
}

static void put_cards(struct maq_html *h, const struct maq_diff *d)
{
    maq_html_cards(h);
    for (uint32_t i = 0; i < d->n_figures && i < CARDS; i++) {
        const struct maq_diff_figure *f = &d->figures[i];
        const double *v = f->value.of;
        double most = fmax(fabs(v[0]), fabs(v[1])), relative = 0;
        char a[48], b[48], change[48], note[128];
        bool both = f->value.has[0] && f->value.has[1];
        maq__snprintf(note, sizeof note, "%s before, %s after",
                      f->value.has[0] ? maq_diff_value(a, v[0], f->unit, most, false) : "nothing",
                      f->value.has[1] ? maq_diff_value(b, v[1], f->unit, most, false) : "nothing");
        if (!both)
            maq_html_card(h, f->name, "-", note);
        else if (v[0] == v[1])
            maq_html_card(h, f->name, "same", note);
        else if (f->unit != MAQ_DIFF_SHARE && maq_diff_relative(&relative, f->value))
            maq_html_card(h, f->name, maq_diff_percent(change, relative), note);
        else
            maq_html_card(h, f->name, maq_diff_value(change, v[1] - v[0], f->unit, most, true), note);
    }
    maq_html_end_cards(h);
}

static void put_tables(struct maq_html *h, const struct maq_diff *d)
{
    struct maq_table t;
    for (uint32_t i = 0; i < d->n_tables; i++) {
        const struct maq_diff_table *table = &d->tables[i];
        char id[64];
        bool any = false;
        for (uint32_t k = 0; k < table->n; k++)
            any |= !maq_diff_row_is_nothing(&table->rows[k]);
        if (!any)
            continue;
        maq_html_section(h, table->key, table->title);
        if (table->adds_up) {
            maq__snprintf(id, sizeof id, "chart-%s", table->key);
            maq_html_chart(h, id, "bars", "The change, part by part: to the left less, to the right more than before.");
        }
        maq_diff_rows_table(&t, table, ROWS);
        maq_html_table(h, &t, NULL);
        maq_table_fini(&t);
        if (table->note)
            maq_html_note(h, "%s", table->note);
        maq_html_end_section(h);
    }
}

enum maq_status maq_report_diff_html(char **out, const struct maq_diff *diff, const struct maq_report_opts *opts,
                                     struct maq_diag *diag)
{
    struct maq_html h;
    struct maq_table t;
    char *document;
    MAQ_TRY(maq_report_diff_json(&document, diff, opts, diag));
    struct maq_buf title;
    maq_buf_init(&title, 1 << 14);
    maq_buf_addf(&title, "%.200s to %.200s", diff->file[MAQ_DIFF_BEFORE], diff->file[MAQ_DIFF_AFTER]);
    maq_html_begin(&h, "diff", title.ptr ? title.ptr : "");
    h.out.failed |= title.failed;
    maq_buf_fini(&title);
    put_head(&h, diff);
    put_cards(&h, diff);
    maq_html_section(&h, "figures", "Figures");
    maq_diff_figures_table(&t, diff);
    maq_html_table(&h, &t, NULL);
    maq_table_fini(&t);
    maq_html_end_section(&h);
    put_tables(&h, diff);
    return maq_html_finish(out, &h, document, NULL, diag);
}
