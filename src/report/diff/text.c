/* SPDX-License-Identifier: Apache-2.0 */
/* text.c - a comparison for a terminal: what differs, figures, whether that can be told, and what they are made of. */
#include "base/text.h"
#include "base/check.h"
#include "report/diff/diff_parts.h"

#define LABEL 12
#define ROWS 16 /* of a table */

static void put_line(void *user, const char *label, const char *text)
{
    maq_page_field(user, LABEL, label, text);
}

static void put_verdict(void *user, const char *label, const char *text)
{
    (void)label;
    maq_page_putf(user, MAQ_INK_BAD, "%s\n", text);
}

static void put_figures(struct maq_page *page, const struct maq_diff *d)
{
    struct maq_table t;
    if (d->n_figures == 0)
        return;
    maq_diff_figures_table(&t, d);
    maq_buf_addc(&page->out, '\n');
    maq_table_print(page, &t, 0);
    maq_table_fini(&t);
}

static void put_sentence(struct maq_page *page, const struct maq_diff *d)
{
    struct maq_buf words;
    maq_buf_init(&words, 1024);
    maq_diff_sentence(&words, d);
    if (words.len > 0) {
        maq_buf_addc(&page->out, '\n');
        maq_page_field(page, 0, "", words.ptr);
    }
    page->out.failed |= words.failed;
    maq_buf_fini(&words);
}

/* Tables in which nothing moved are left out. */
static void put_table(struct maq_page *page, const struct maq_diff_table *table)
{
    struct maq_table t;
    bool moved = false;
    for (uint32_t i = 0; i < table->n; i++)
        moved |= maq_diff_change(table->rows[i].value) != 0;
    if (!moved)
        return;
    maq_page_putf(page, MAQ_INK_HEAD, "\n%s\n", table->title);
    maq_diff_rows_table(&t, table, ROWS);
    maq_table_print(page, &t, 2);
    maq_table_fini(&t);
    if (table->note)
        maq_page_putf(page, MAQ_INK_FAINT, "  %s\n", table->note);
}

enum maq_status maq_report_diff_text(char **out, const struct maq_diff *diff, const struct maq_report_opts *opts,
                                     struct maq_diag *diag)
{
    struct maq_page page;
    maq_page_init(&page, opts);
    const struct maq_lines lines = {put_line, &page}, verdicts = {put_verdict, &page};
    maq_diff_asked_lines(&lines, diff);
    maq_diff_verdict_lines(&verdicts, diff);
    put_figures(&page, diff);
    put_sentence(&page, diff);
    for (uint32_t i = 0; i < diff->n_tables; i++)
        put_table(&page, &diff->tables[i]);
    return maq_page_finish(out, &page, diag);
}
