/* SPDX-License-Identifier: Apache-2.0 */
/* predict_text.c - a mixed plan on the node groups of a job for a terminal. */
#include "report/job_text.h"
#include "report/plan/predict_parts.h"

static void put(void *user, const char *label, const char *text)
{
    maq_page_field(user, MAQ_JOB_LABEL, label, text);
}

enum maq_status maq_report_placed_text(char **out, const struct maq_report_placed *r,
                                       const struct maq_report_opts *opts, struct maq_diag *diag)
{
    struct maq_page page;
    struct maq_table table;
    const struct maq_lines to = {put, &page};
    char words[512];
    maq_page_init(&page, opts);
    maq_page_open_job(&page, maq_job_get(r->open));
    maq_placed_plan_words(words, r);
    put(&page, "plan", words);
    maq_placed_stages_table(&table, r);
    maq_buf_adds(&page.out, "\n");
    maq_table_print(&page, &table, 0);
    maq_table_fini(&table);
    maq_buf_adds(&page.out, "\n");
    maq_placed_step_lines(&to, r);
    return maq_page_finish(out, &page, diag);
}
