/* SPDX-License-Identifier: Apache-2.0 */
/*
 * external_text.c - the best plan that was composed of what a parallelizer answers, for a terminal: its stages, what
 * bounds it, what was asked for it, and the parallelizer's own words.
 */
#include "report/job_text.h"
#include "report/plan/external_parts.h"

#define LABEL 13

static void put(void *user, const char *label, const char *text)
{
    maq_page_field(user, LABEL, label, text);
}

static void put_table(struct maq_page *page, struct maq_table *table)
{
    maq_buf_adds(&page->out, "\n");
    maq_table_print(page, table, 0);
    maq_table_fini(table);
}

enum maq_status maq_report_slices_text(char **out, const struct maq_report_slices *p,
                                       const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_page page;
    struct maq_table table;
    const struct maq_lines to = {put, &page};
    const struct maq_slices_result *r = p->search;
    maq_page_init(&page, opts);
    maq_page_open_job(&page, maq_job_get(p->open));
    if (r->n_plans > 0) {
        maq_external_stages_table(&table, r);
        put_table(&page, &table);
        maq_buf_adds(&page.out, "\n");
        maq_external_step_lines(&to, r);
        maq_buf_adds(&page.out, "\n");
        maq_external_island_lines(&to, r);
    } else {
        maq_buf_adds(&page.out, "\n");
        maq_page_putf(&page, MAQ_INK_BAD, "no pipeline of the parallelizer's plans fits on these node groups\n\n");
    }
    maq_external_call_lines(&to, r);
    if (r->n_plans > 0) {
        maq_external_pieces_table(&table, r);
        put_table(&page, &table);
    }
    return maq_page_finish(out, &page, diag);
}
