/* SPDX-License-Identifier: Apache-2.0 */
/*
 * uniform_text.c - the best plans of a job for a terminal: the list, how sure it is that nothing is better, the winner in full,
 * why others lose, or what would make the job fit.
 */
#include "base/text.h"
#include "base/units.h"
#include "report/job_text.h"
#include "report/plan/uniform_parts.h"

#define LABEL 12

static void put(void *user, const char *label, const char *text)
{
    maq_page_field(user, LABEL, label, text);
}

static void put_title(struct maq_page *page, const char *title)
{
    maq_buf_adds(&page->out, "\n");
    maq_page_putf(page, MAQ_INK_HEAD, "%s", title);
    maq_buf_adds(&page->out, "\n");
}

static void put_list(struct maq_page *page, const struct maq_report_plan *p)
{
    struct maq_table table;
    maq_plan_list_table(&table, p);
    maq_buf_adds(&page->out, "\n");
    maq_table_print(page, &table, 0);
    maq_table_fini(&table);
}

static void put_pareto(struct maq_page *page, const struct maq_report_plan *p)
{
    struct maq_table table;
    if (p->search->n_pareto == 0)
        return;
    put_title(page, "Time against memory (no other plan beats these in both)");
    maq_plan_front_table(&table, p);
    maq_table_print(page, &table, 2);
    maq_table_fini(&table);
}

static void put_alternatives(struct maq_page *page, const struct maq_report_plan *p)
{
    struct maq_table table;
    if (!p->alternatives || p->alternatives->n == 0)
        return;
    put_title(page, "The winner with one thing changed");
    maq_plan_alternatives_table(&table, p);
    maq_table_print(page, &table, 2);
    maq_table_fini(&table);
}

static void put_frugal(struct maq_page *page, const struct maq_report_plan *p)
{
    struct maq_buf words;
    maq_buf_init(&words, 1 << 12);
    maq_plan_none(&words, p, "\n");
    page->out.failed |= words.failed;
    maq_buf_adds(&page->out, "\n");
    maq_page_putf(page, MAQ_INK_BAD, "%s\n", words.ptr ? words.ptr : "");
    maq_buf_fini(&words);
}

static void put_remedies(struct maq_page *page, const struct maq_report_plan *p)
{
    struct maq_table table;
    if (!p->remedies)
        return;
    maq_page_putf(page, MAQ_INK_PLAIN, "it would fit with one of\n");
    maq_plan_remedies_table(&table, p);
    if (table.n_rows > 0)
        maq_table_print(page, &table, 2);
    else
        maq_page_putf(page, MAQ_INK_PLAIN, "  nothing that was tried: 64 times the memory, 64 times the nodes\n");
    maq_table_fini(&table);
}

enum maq_status maq_report_plan_text(char **out, const struct maq_report_plan *p, const struct maq_report_opts *opts,
                                     struct maq_diag *diag)
{
    struct maq_page page;
    const struct maq_lines to = {put, &page};
    maq_page_init(&page, opts);
    maq_page_open_job_of_tokens(&page, maq_job_get(p->open));
    maq_plan_kept_line(&to, p->search);
    if (p->search->n_plans > 0) {
        put_list(&page, p);
        maq_buf_adds(&page.out, "\n");
        maq_plan_proof_lines(&to, p);
        maq_plan_winner_lines(&to, p);
        put_pareto(&page, p);
        put_alternatives(&page, p);
        maq_page_put_winner(&page, p->document, p->words, p->said);
    } else {
        put_frugal(&page, p);
        put_remedies(&page, p);
        maq_buf_adds(&page.out, "\n");
        maq_plan_proof_lines(&to, p);
    }
    return maq_page_finish(out, &page, diag);
}
